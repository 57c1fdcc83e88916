/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcache.c - the calls of the registration cache.  See rcache.h for the picture.
 *
 * A hit takes the lock, compares the log's length with what was seen, probes the
 * front, counts.  Its costs are one locked instruction and two lines of its own:
 * the front's and the entry's.
 */
#include "rcache/rcache.h"

#include <sys/mman.h>
#include <unistd.h>

#include "cfg/cfg.h"

#define RIGHTS (GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_IOMMU)

/* ---- creating and destroying -------------------------------------------------- */

static void set_limits(struct glex_rcache *rc, const struct glex_rcache_attr *attr)
{
	uint64_t fields = attr ? attr->field_mask : 0;
	uint64_t count = fields & GLEX_RCACHE_ATTR_MAX_COUNT ? attr->max_count : glexi_cfg()->rcache_entries;

	rc->max_count = count < rc->entry_room ? (uint32_t)count : rc->entry_room;
	rc->max_size = fields & GLEX_RCACHE_ATTR_MAX_SIZE ? attr->max_size : glexi_cfg()->rcache_bytes;
}

/* Whether a shared mapping would be watched as private memory need not be. */
static bool may_share(void)
{
	if (glexi_memwatch_monitor() == GLEX_MEM_MONITOR_HOOKS)
		glexi_memwatch_start();
	return glexi_memwatch_sees() & GLEXI_SEES_BEFORE;
}

glex_ret_t glex_rcache_create(glex_ep_handle_t handle, const struct glex_rcache_attr *attr, glex_rcache_handle_t *rc_p)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	struct glex_device_attr limits;
	struct glex_rcache *rc;
	uint64_t head, entries, spans;

	if (!ep || !rc_p ||
	    (attr && attr->field_mask & ~(uint64_t)(GLEX_RCACHE_ATTR_MAX_COUNT | GLEX_RCACHE_ATTR_MAX_SIZE)))
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(ep->dev))
		return GLEX_SYS_ERR;
	ep->dev->ops->query(ep->dev, &limits);
	head = (sizeof(*rc) + EMU_LINE - 1) / EMU_LINE * EMU_LINE;
	entries = limits.mmt_units * sizeof(struct rcache_entry);
	spans = (limits.mmt_units + 1) *
		sizeof(struct rcache_span); /* one more, so that a look behind the last is no harm */
	rc = mmap(NULL, head + entries + spans, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (rc == MAP_FAILED)
		return GLEX_NO_MEM_RESOURCE;
	rc->map_size = head + entries + spans;
	rc->page = (uint64_t)sysconf(_SC_PAGESIZE);
	rc->ep = ep;
	rc->dev = ep->dev;
	rc->entries = (struct rcache_entry *)(void *)((unsigned char *)rc + head);
	rc->index = (struct rcache_span *)(void *)((unsigned char *)rc + head + entries);
	rc->entry_room = rc->index_room = limits.mmt_units;
	rc->free = rc->oldest = rc->newest = rc->doomed = RCACHE_NONE;
	rc->stamp = 1;
	rc->seen = glexi_memwatch_now();
	rc->promote_after = (uint32_t)glexi_cfg()->promote_after;
	rc->may_share = may_share();
	set_limits(rc, attr);
	*rc_p = rc;
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_destroy(glex_rcache_handle_t rc)
{
	glex_mem_handle_t mh;

	if (!rc)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(rc->dev))
		return GLEX_SYS_ERR;
	for (uint32_t i = 0; i < rc->entry_used; i++) {
		mh.v = rc->entries[i].mh;
		if (mh.v)
			glex_deregister_mem(&rc->ep->pub, mh);
	}
	munmap(rc, rc->map_size);
	return GLEX_SUCCESS;
}

/* ---- changes ------------------------------------------------------------------ */

glex_ret_t glex_mem_invalidate(void *addr, uint64_t len)
{
	struct glexi_mem_change change = {.kind = GLEXI_MEM_SAID, .addr = (uintptr_t)addr, .len = len};

	if (len == 0 || change.addr + len < change.addr)
		return GLEX_INVALID_PARAM;
	glexi_memwatch_begin(&change);
	glexi_memwatch_end(&change, true);
	return GLEX_SUCCESS;
}

void rcache_absorb(struct glex_rcache *rc)
{
	uint64_t now = glexi_memwatch_now(), start, end;

	if (now - rc->seen > GLEXI_MEMWATCH_LOG)
		goto all;
	for (; rc->seen != now; rc->seen++) {
		if (!glexi_memwatch_read(rc->seen, &start, &end))
			goto all;
		start -= start % rc->page;
		end = end > UINT64_MAX - rc->page ? UINT64_MAX : (end + rc->page - 1) / rc->page * rc->page;
		rc->invalidated += rcache_index_cut(rc, start, end);
	}
	return;
all: /* the log is too short, or somebody is just writing it: anything may have changed */
	rc->invalidated += rcache_index_cut(rc, 0, UINT64_MAX);
	rc->seen = now;
}

void rcache_unlock_dispose(struct glex_rcache *rc)
{
	uint32_t id = rc->doomed, last = RCACHE_NONE, n = 0;
	glex_mem_handle_t mh;

	rc->doomed = RCACHE_NONE;
	rcache_unlock(rc);
	if (GLEXI_LIKELY(id == RCACHE_NONE))
		return;
	for (uint32_t i = id; i != RCACHE_NONE; i = rc->entries[i].next) {
		mh.v = rc->entries[i].mh;
		glex_deregister_mem(&rc->ep->pub, mh); /* fails only with a device that is lost */
		last = i;
		n++;
	}
	rcache_lock(rc);
	rc->registered -= n;
	while (id != RCACHE_NONE) {
		uint32_t next = id == last ? RCACHE_NONE : rc->entries[id].next;

		rcache_entry_give(rc, id);
		id = next;
	}
	rcache_unlock(rc);
}

/* ---- get ---------------------------------------------------------------------- */

static inline struct rcache_front *front_of(struct glex_rcache *rc, uint64_t addr)
{
	/* Fibonacci: buffers of powers of two spread */
	return &rc->front[(addr >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

_Static_assert(RCACHE_FRONT == 1u << (64 - 58), "the hash has as many values as the front has places");

/* Under the lock. */
static inline void hold(struct glex_rcache *rc, uint32_t id)
{
	rc->in_use += rc->entries[id].refs++ == 0;
	rc->entries[id].uses++;
}

static inline void show(const struct glex_rcache *rc, uint32_t id, uint64_t addr, struct glex_rcache_region *region)
{
	region->mh.v = rc->entries[id].mh;
	region->offset = (uint32_t)(addr - rc->entries[id].start);
	region->slot = id;
	region->mapped = rc->entries[id].tie != GLEXI_TIED_TO_ADDRESS;
}

/* Looks into the index; true: found, and held.  Called and left with the lock. */
static bool look_up(struct glex_rcache *rc, uint64_t addr, uint64_t end, uint32_t rights, uint32_t *id_p)
{
	const struct rcache_span *span;
	bool settled = false;

	for (;;) {
		rcache_absorb(rc);
		span = rcache_index_cover(rc, addr, end, rights);
		if (!span)
			return false;
		if (settled || rc->entries[span->entry].tie != GLEXI_TIED_TO_OBJECT || !glexi_memwatch_lags())
			break;
		rcache_unlock(rc);
		glexi_memwatch_settle();
		rcache_lock(rc);
		settled = true;
	}
	if (rc->entries[span->entry].tie != GLEXI_TIED_TO_OBJECT || !glexi_memwatch_lags())
		*front_of(rc, addr) = (struct rcache_front){*span, rc->stamp};
	*id_p = span->entry;
	rc->hits++;
	hold(rc, span->entry);
	return true;
}

void rcache_miss_begin(struct glex_rcache *rc, uint64_t start, uint64_t end)
{
	while (start < rc->gate_end && rc->gate_start < end) {
		rcache_unlock_dispose(rc);
		sched_yield();
		rcache_lock(rc);
	}
	rc->misses++;
	rc->missing++;
	rcache_unlock_dispose(rc);
}

/* Everything but a hit in the front.  Called with the lock, leaves without. */
static __attribute__((noinline)) glex_ret_t get_slowly(struct glex_rcache *rc, uint64_t addr, uint64_t len,
						       int32_t flag, struct glex_rcache_region *region)
{
	uint64_t start = addr - addr % rc->page, end = addr + len;
	uint32_t id;
	glex_ret_t ret = GLEX_SUCCESS;

	if (!addr || !len || end < addr || end > UINT64_MAX - rc->page || len > RCACHE_REACH - rc->page ||
	    (flag & ~RIGHTS)) {
		rcache_unlock(rc);
		return GLEX_INVALID_PARAM;
	}
	if (look_up(rc, addr, end, (uint32_t)flag, &id)) {
		show(rc, id, addr, region);
		rcache_unlock_dispose(rc);
		return GLEX_SUCCESS;
	}
	end = (end + rc->page - 1) / rc->page * rc->page;
	rcache_miss_begin(rc, start, end);
	ret = rcache_miss(rc, start, end, (uint32_t)flag, &id);
	rcache_lock(rc);
	rc->missing--;
	rcache_unlock(rc);
	if (ret == GLEX_SUCCESS)
		show(rc, id, addr, region); /* held: nobody changes it */
	return ret;
}

glex_ret_t glex_rcache_get(glex_rcache_handle_t rc, void *addr_, uint64_t len, int32_t flag,
			   struct glex_rcache_region *region)
{
	uint64_t addr = (uintptr_t)addr_, end = addr + len;
	struct rcache_front *front;

	if (GLEXI_UNLIKELY(!rc || !region))
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(rc->dev))
		return GLEX_SYS_ERR;
	rcache_lock(rc);
	front = front_of(rc, addr);
	if (GLEXI_UNLIKELY(front->stamp != rc->stamp || addr < front->span.start || end > front->span.end ||
			   end <= addr || ((uint32_t)flag & ~front->span.rights) || rc->seen != glexi_memwatch_now()))
		return get_slowly(rc, addr, len, flag, region);
	rc->hits++;
	hold(rc, front->span.entry);
	show(rc, front->span.entry, addr, region);
	rcache_unlock(rc);
	return GLEX_SUCCESS;
}

/* ---- put ---------------------------------------------------------------------- */

/*
 * Memory that is used often is moved to where peers reach it faster.
 *
 * Into huge pages: nobody notices.  The entry stays held meanwhile.
 */
static void promote_pages(struct glex_rcache *rc, uint32_t id)
{
	struct rcache_entry *entry = &rc->entries[id];

	entry->promote_at = UINT32_MAX;
	rc->in_use += entry->refs++ == 0;
	rcache_unlock(rc);
	if (rc->dev->ops->mem_promote(rc->dev, (void *)(uintptr_t)entry->start, entry->end - entry->start, false)) {
		rcache_lock(rc);
		rcache_index_remove(rc, id);
	} else {
		rcache_lock(rc);
	}
	rc->in_use -= --entry->refs == 0;
}

/*
 * Into a shared mapping: no region may be there meanwhile.  So the entry goes,
 * and those who want it wait at the gate.  Leaves without the lock.
 */
static void promote_quietly(struct glex_rcache *rc, uint32_t id)
{
	uint64_t start = rc->entries[id].start, end = rc->entries[id].end;
	bool better;

	rc->gate_start = start;
	rc->gate_end = end;
	rcache_index_remove(rc, id);
	rcache_unlock_dispose(rc);
	better = rc->dev->ops->mem_promote(rc->dev, (void *)(uintptr_t)start, end - start, true);
	rcache_lock(rc);
	rc->gate_start = rc->gate_end = 0;
	if (better)
		rc->promote_after = (uint32_t)glexi_cfg()->promote_after; /* it is worth trying */
	else if (rc->promote_after < UINT32_MAX / 2)
		rc->promote_after *= 2; /* each attempt costs a registration */
	rcache_unlock(rc);
}

/* mem_promote adopts nothing shorter: trying it would only raise promote_after for the longer ones that follow. */
static bool is_worth_sharing(const struct rcache_entry *entry)
{
	return entry->end - entry->start >= glexi_cfg()->adopt_min;
}

/* The last user is gone.  Called with the lock, leaves without. */
static __attribute__((noinline)) void put_slowly(struct glex_rcache *rc, uint32_t id)
{
	if (rc->entries[id].uses >= rc->entries[id].promote_at && rc->entries[id].spans) {
		if (!rc->may_share || !is_worth_sharing(&rc->entries[id])) {
			promote_pages(rc, id);
		} else if (rc->gate_end == 0 && rc->missing == 0) {
			promote_quietly(rc, id);
			return;
		} /* else it may not just now, and is asked for again at its next put */
	}
	if (rc->entries[id].refs) {
		rcache_unlock_dispose(rc); /* somebody has got it meanwhile */
		return;
	}
	if (rc->entries[id].spans)
		rcache_list_touch(rc, id);
	else
		rcache_entry_settle(rc, id);
	rcache_absorb(rc);
	while ((rc->count > rc->max_count || rc->size > rc->max_size) && rcache_evict(rc, RCACHE_NONE))
		;
	rcache_unlock_dispose(rc);
}

glex_ret_t glex_rcache_put(glex_rcache_handle_t rc, const struct glex_rcache_region *region)
{
	struct rcache_entry *entry;

	if (GLEXI_UNLIKELY(!rc || !region))
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(rc->dev))
		return GLEX_SYS_ERR;
	rcache_lock(rc);
	entry = &rc->entries[region->slot];
	if (GLEXI_UNLIKELY(region->slot >= rc->entry_used || entry->mh != region->mh.v || entry->refs == 0)) {
		rcache_unlock(rc);
		return GLEX_INVALID_PARAM;
	}
	if (--entry->refs == 0) {
		rc->in_use--;
		/* the most recently used one stays where it is, if nothing is too much, has changed or is to be moved */
		if (GLEXI_UNLIKELY(rc->newest != region->slot || rc->count > rc->max_count || rc->size > rc->max_size ||
				   entry->uses >= entry->promote_at || rc->seen != glexi_memwatch_now())) {
			put_slowly(rc, region->slot);
			return GLEX_SUCCESS;
		}
	}
	rcache_unlock(rc);
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_query(glex_rcache_handle_t rc, struct glex_rcache_stats *stats)
{
	if (!rc || !stats)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(rc->dev))
		return GLEX_SYS_ERR;
	glexi_memwatch_settle();
	rcache_lock(rc);
	rcache_absorb(rc);
	*stats = (struct glex_rcache_stats){
		.field_mask = GLEX_RCACHE_STATS_ALL,
		.hits = rc->hits,
		.misses = rc->misses,
		.merges = rc->merges,
		.uncached = rc->uncached,
		.evicted = rc->evicted,
		.invalidated = rc->invalidated,
		.count = rc->count,
		.size = rc->size,
		.in_use = rc->in_use,
		.monitor = glexi_memwatch_monitor(),
	};
	rcache_unlock_dispose(rc);
	rcache_lock(rc);
	stats->registered = rc->registered;
	rcache_unlock(rc);
	return GLEX_SUCCESS;
}
