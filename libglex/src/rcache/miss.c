/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * miss.c - a buffer that no cached region covers: registering it, alone or with
 * what it overlaps and touches.
 *
 *      request            [======]                rounded to pages
 *      cached    [======]    [=======][===]       of which it takes in those that
 *                                                   - are reached in the same way, and
 *                                                   - overlap, or touch and have the same rights,
 *                                                     and are no shared objects
 *      region             [==========]
 *
 * First the request is registered by itself, which tells how it is reached; then
 * the wider region, and the first is given up.  The wider one must be reached in
 * the same way too: of a region that begins in one object and ends in another only
 * one can be mapped, and the rest is reached by attach.
 *
 * Rights.  A wider region has those of all its parts.  Where that would let
 * peers write to pages that the process itself may not, only parts of equal
 * rights are taken in.
 *
 * All of this happens without the lock: others may do the same for the same
 * buffer, which costs a registration and harms nobody: who comes last wins.
 */
#include "rcache/rcache.h"

/* ---- registering ------------------------------------------------------------ */

static void give_back(struct glex_rcache *rc, const struct rcache_plan *plan)
{
	rcache_lock(rc);
	rcache_entry_give(rc, plan->id);
	rcache_unlock(rc);
}

/* Makes room for one more.  False: nothing idle is left. */
static bool make_room(struct glex_rcache *rc)
{
	bool found;

	rcache_lock(rc);
	rcache_absorb(rc);
	found = rc->doomed != RCACHE_NONE || rcache_evict(rc, RCACHE_NONE);
	rcache_unlock_dispose(rc);
	return found;
}

static bool is_split(const struct glex_rcache *rc, const struct rcache_plan *plan)
{
	return rc->dev->ops->mem_is_split(rc->dev, (void *)(uintptr_t)plan->start, plan->end - plan->start);
}

static glex_ret_t try_register(struct glex_rcache *rc, struct rcache_plan *plan, int32_t trial)
{
	glex_mem_handle_t mh;
	glex_ret_t ret;

	rcache_lock(rc);
	plan->id = rcache_entry_take(rc);
	rcache_unlock(rc);
	if (plan->id == RCACHE_NONE)
		return GLEX_NO_MEM_RESOURCE;
	ret = glexi_is_lost(rc->dev)
		      ? GLEX_SYS_ERR
		      : rc->dev->ops->mem_register(rc->ep, (void *)(uintptr_t)plan->start, plan->end - plan->start,
						   (int32_t)plan->rights | GLEXI_MEM_KEPT | trial, &mh);
	if (ret != GLEX_SUCCESS) {
		give_back(rc, plan);
		return ret;
	}
	plan->mh = mh.v;
	plan->tie = rc->dev->ops->mem_tie(rc->ep, mh);
	plan->improves =
		plan->tie == GLEXI_TIED_TO_ADDRESS || (plan->tie == GLEXI_TIED_TO_OBJECT && is_split(rc, plan));
	rcache_lock(rc);
	rc->registered++;
	rcache_unlock(rc);
	return GLEX_SUCCESS;
}

/* Registers it; with the table full, at the expense of what is idle. */
static glex_ret_t enter(struct glex_rcache *rc, struct rcache_plan *plan)
{
	glex_ret_t ret;

	do
		ret = try_register(rc, plan, GLEXI_MEM_TRIAL);
	while (ret == GLEX_NO_MEM_RESOURCE && make_room(rc));
	return ret;
}

/* The same for who can do nothing else: at the first time that it is in vain, what is in the way is said. */
static glex_ret_t enter_or_say(struct glex_rcache *rc, struct rcache_plan *plan)
{
	glex_ret_t ret = enter(rc, plan);
	bool told;

	if (GLEXI_LIKELY(ret != GLEX_NO_MEM_RESOURCE))
		return ret;
	rcache_lock(rc);
	told = rc->told;
	rc->told = true;
	rcache_unlock(rc);
	return told ? ret : try_register(rc, plan, 0);
}

static void leave(struct glex_rcache *rc, const struct rcache_plan *plan)
{
	glex_mem_handle_t mh = {.v = plan->mh};

	glex_deregister_mem(&rc->ep->pub, mh);
	rcache_lock(rc);
	rc->registered--;
	rcache_entry_give(rc, plan->id);
	rcache_unlock(rc);
}

/* ---- merging ---------------------------------------------------------------- */

/* True if the span may become part of wide, which is then as large as both. */
static bool take_in(const struct glex_rcache *rc, const struct rcache_plan *plan, const struct rcache_span *span,
		    bool equal_rights, struct rcache_plan *wide)
{
	uint64_t most = rc->max_size < RCACHE_REACH ? rc->max_size : RCACHE_REACH; /* longer ones are not kept */
	bool touches = span->end == plan->start || span->start == plan->end;
	uint64_t start = span->start < wide->start ? span->start : wide->start;
	uint64_t end = span->end > wide->end ? span->end : wide->end;

	if (rc->entries[span->entry].tie != plan->tie || end - start > most ||
	    (span->rights != plan->rights && (equal_rights || touches)) ||
	    (touches && plan->tie != GLEXI_TIED_TO_ADDRESS))
		return false;
	wide->start = start;
	wide->end = end;
	wide->rights |= span->rights;
	return true;
}

/* The region for plan and all cached ones that fit it.  False: there are none.  Under the lock. */
static bool widen(const struct glex_rcache *rc, const struct rcache_plan *plan, bool equal_rights,
		  struct rcache_plan *wide)
{
	bool any = false;

	*wide = *plan;
	for (uint32_t at = rcache_index_find(rc, plan->start - 1);
	     at < rc->index_used && rc->index[at].start <= plan->end; at++)
		any |= take_in(rc, plan, &rc->index[at], equal_rights, wide);
	return any;
}

static bool choose_wide(struct glex_rcache *rc, const struct rcache_plan *plan, struct rcache_plan *wide)
{
	bool any;

	rcache_lock(rc);
	rcache_absorb(rc);
	any = widen(rc, plan, false, wide);
	rcache_unlock_dispose(rc);
	if (!any || wide->rights == plan->rights || !(wide->rights & GLEX_MEM_WRITE) ||
	    rcache_writable(wide->start, wide->end))
		return any;
	rcache_lock(rc);
	any = widen(rc, plan, true, wide);
	rcache_unlock(rc);
	return any;
}

static void merge(struct glex_rcache *rc, struct rcache_plan *plan)
{
	struct rcache_plan wide;

	if (!choose_wide(rc, plan, &wide) ||
	    (wide.start == plan->start && wide.end == plan->end && wide.rights == plan->rights) ||
	    enter(rc, &wide) != GLEX_SUCCESS)
		return;
	if (wide.tie != plan->tie) {
		leave(rc, &wide);
		return;
	}
	leave(rc, plan);
	*plan = wide;
	plan->merged = true;
}

/* ---- what is found by others ------------------------------------------------ */

/* Whether something would tell if the region became wrong. */
static bool may_stay(const struct rcache_plan *plan)
{
	if (!glexi_memwatch_caches())
		return false;
	if (plan->tie != GLEXI_TIED_TO_OBJECT) {
		if (glexi_memwatch_wants_all() && glexi_memwatch_start())
			glexi_memwatch_track(plan->start, plan->end);
		return true;
	}
	return (glexi_memwatch_start() & GLEXI_SEES_UNMAP) && glexi_memwatch_track(plan->start, plan->end);
}

/* Makes the plan an entry, held once; keep: others may find it, if nothing has changed since. */
static void admit(struct glex_rcache *rc, const struct rcache_plan *plan, bool keep, uint64_t since)
{
	struct rcache_entry *entry = &rc->entries[plan->id];

	rcache_lock(rc);
	rcache_absorb(rc);
	*entry = (struct rcache_entry){
		.start = plan->start,
		.end = plan->end,
		.mh = plan->mh,
		.refs = 1,
		.rights = plan->rights,
		.tie = plan->tie,
		.promote_at = plan->improves ? rc->promote_after : UINT32_MAX,
	};
	rc->in_use++;
	rc->merges += plan->merged;
	keep = keep && plan->end - plan->start <= rc->max_size &&
	       glexi_memwatch_unchanged(since, plan->start, plan->end);
	if (keep) {
		rcache_index_cut(rc, plan->start, plan->end);
		keep = rcache_index_insert(rc, plan->id);
	}
	if (keep)
		rcache_list_touch(rc, plan->id);
	else
		rc->uncached++;
	while ((rc->count > rc->max_count || rc->size > rc->max_size) && rcache_evict(rc, plan->id))
		;
	rcache_unlock_dispose(rc);
}

/*
 * A region of an object counts as tracked only if it was registered after the
 * tracking began: what was mapped there before may have gone unseen.
 */
static bool track(struct glex_rcache *rc, struct rcache_plan *plan, glex_ret_t *ret_p)
{
	bool keep = may_stay(plan);

	if (keep && plan->tie == GLEXI_TIED_TO_OBJECT && glexi_memwatch_lags()) {
		leave(rc, plan);
		*ret_p = enter_or_say(rc, plan);
	}
	return keep;
}

glex_ret_t rcache_miss(struct glex_rcache *rc, uint64_t start, uint64_t end, uint32_t rights, uint32_t *id_p)
{
	struct rcache_plan plan = {.start = start, .end = end, .rights = rights};
	uint64_t since;
	glex_ret_t ret;
	bool keep;

	glexi_memwatch_settle(); /* of the caller's own changes nothing is open any more */
	since = glexi_memwatch_now();
	ret = enter_or_say(rc, &plan);
	if (ret != GLEX_SUCCESS)
		return ret;
	keep = track(rc, &plan, &ret);
	if (ret != GLEX_SUCCESS)
		return ret;
	if (keep)
		merge(rc, &plan);
	admit(rc, &plan, keep, since);
	*id_p = plan.id;
	return GLEX_SUCCESS;
}
