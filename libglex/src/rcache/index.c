/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * index.c - the sorted spans of a registration cache, and the list of its entries.
 *
 * Everything here runs under the cache's lock.  What has neither span nor user
 * ends on the list of the doomed, which rcache.c deregisters without the lock.
 */
#include "rcache/rcache.h"

#include <string.h>

/* ---- entries ---------------------------------------------------------------- */

uint32_t rcache_entry_take(struct glex_rcache *rc)
{
	uint32_t id = rc->free;

	if (id != RCACHE_NONE)
		rc->free = rc->entries[id].next;
	else if (rc->entry_used < rc->entry_room)
		id = rc->entry_used++;
	return id;
}

void rcache_entry_give(struct glex_rcache *rc, uint32_t id)
{
	struct rcache_entry *entry = &rc->entries[id];

	entry->mh = 0; /* no handle is 0: a second put finds out */
	entry->next = rc->free;
	rc->free = id;
}

void rcache_list_remove(struct glex_rcache *rc, uint32_t id)
{
	struct rcache_entry *entry = &rc->entries[id];

	if (!entry->listed)
		return;
	entry->listed = false;
	*(entry->prev == RCACHE_NONE ? &rc->oldest : &rc->entries[entry->prev].next) = entry->next;
	*(entry->next == RCACHE_NONE ? &rc->newest : &rc->entries[entry->next].prev) = entry->prev;
}

void rcache_list_touch(struct glex_rcache *rc, uint32_t id)
{
	struct rcache_entry *entry = &rc->entries[id];

	if (rc->newest == id)
		return;
	rcache_list_remove(rc, id);
	entry->listed = true;
	entry->next = RCACHE_NONE;
	entry->prev = rc->newest;
	*(rc->newest == RCACHE_NONE ? &rc->oldest : &rc->entries[rc->newest].next) = id;
	rc->newest = id;
}

void rcache_entry_settle(struct glex_rcache *rc, uint32_t id)
{
	struct rcache_entry *entry = &rc->entries[id];

	if (entry->spans)
		return;
	rcache_list_remove(rc, id);
	if (entry->refs) /* I3 */
		return;
	entry->next = rc->doomed;
	rc->doomed = id;
	rc->doomed_count++;
}

bool rcache_evict(struct glex_rcache *rc, uint32_t keep)
{
	uint32_t id = rc->oldest;

	while (id != RCACHE_NONE && (rc->entries[id].refs || id == keep))
		id = rc->entries[id].next;
	if (id == RCACHE_NONE)
		return false;
	rc->evicted++;
	rcache_index_remove(rc, id);
	return true;
}

/* ---- spans ------------------------------------------------------------------ */

uint32_t rcache_index_find(const struct glex_rcache *rc, uint64_t addr)
{
	const struct rcache_span *base = rc->index;
	uint32_t n = rc->index_used;

	while (n > 0) {
		uint32_t half = n / 2;

		if (base[half].end <= addr) {
			base += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return (uint32_t)(base - rc->index);
}

const struct rcache_span *rcache_index_cover(const struct glex_rcache *rc, uint64_t start, uint64_t end,
					     uint32_t rights)
{
	uint32_t at = rcache_index_find(rc, start);
	const struct rcache_span *span = &rc->index[at];

	return at < rc->index_used && span->start <= start && end <= span->end && !(rights & ~span->rights) ? span
													    : NULL;
}

static void open_gap(struct glex_rcache *rc, uint32_t at)
{
	memmove(&rc->index[at + 1], &rc->index[at], (rc->index_used - at) * sizeof(*rc->index));
	rc->index_used++;
}

static void close_gap(struct glex_rcache *rc, uint32_t at)
{
	rc->index_used--;
	memmove(&rc->index[at], &rc->index[at + 1], (rc->index_used - at) * sizeof(*rc->index));
}

/* The span goes. */
static void drop_span(struct glex_rcache *rc, uint32_t at)
{
	uint32_t id = rc->index[at].entry;

	rc->size -= rc->index[at].end - rc->index[at].start;
	rc->stamp++; /* I4 */
	close_gap(rc, at);
	if (--rc->entries[id].spans == 0) {
		rc->count--;
		rcache_entry_settle(rc, id);
	}
}

/*
 *      [ start .................. end )     a span, and what is cut out of it
 *      [ kept )   from     to   [ kept )
 *
 * Without room for a second span only the first is kept.
 */
static void cut_span(struct glex_rcache *rc, uint32_t at, uint64_t from, uint64_t to)
{
	struct rcache_span *span = &rc->index[at], rest = *span;

	if (from <= span->start && span->end <= to) {
		drop_span(rc, at);
		return;
	}
	rc->stamp++; /* I4 */
	rc->size -= span->end - span->start;
	if (from <= span->start) {
		span->start = to;
		rc->size += span->end - span->start;
		return;
	}
	span->end = from;
	rc->size += span->end - span->start;
	if (to >= rest.end || rc->index_used == rc->index_room)
		return;
	open_gap(rc, at + 1);
	rest.start = to;
	rc->index[at + 1] = rest;
	rc->entries[rest.entry].spans++;
	rc->size += rest.end - rest.start;
}

uint32_t rcache_index_cut(struct glex_rcache *rc, uint64_t start, uint64_t end)
{
	uint32_t at = rcache_index_find(rc, start), touched = 0;

	while (at < rc->index_used && rc->index[at].start < end) {
		bool before = rc->index[at].start < start;

		cut_span(rc, at, start, end);
		touched++;
		at += before; /* that part stays */
		if (at < rc->index_used && rc->index[at].start == end)
			break;
	}
	return touched;
}

bool rcache_index_insert(struct glex_rcache *rc, uint32_t id)
{
	struct rcache_entry *entry = &rc->entries[id];
	uint32_t at = rcache_index_find(rc, entry->start);

	if (rc->index_used == rc->index_room)
		return false;
	open_gap(rc, at);
	rc->index[at] = (struct rcache_span){entry->start, entry->end, id, entry->rights};
	entry->spans = 1;
	rc->count++;
	rc->size += entry->end - entry->start;
	return true;
}

void rcache_index_remove(struct glex_rcache *rc, uint32_t id)
{
	struct rcache_entry *entry = &rc->entries[id];
	uint32_t at = rcache_index_find(rc, entry->start);

	while (entry->spans) {
		if (rc->index[at].entry == id)
			drop_span(rc, at);
		else
			at++;
	}
}
