/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcache.h - the registration cache of an endpoint.
 *
 *      front                index, sorted                      entries
 *   +-----------+      +-----------------------+          +-----------------+
 *   | span ---- | ---> | [s, e) -------------- | -------> | handle, start   |--+ least recently
 *   | span      |      | [s, e) --+            |  +-----> | handle, ...     |<-+ used first
 *   | (64)      |      | [s, e) --|----------- |--+       | (free)          |
 *   +-----------+      |          +----------- | --^      | (detached)      |
 *                      +-----------------------+          +-----------------+
 *
 * An entry is a registration.  A span is a range of addresses that an entry
 * serves: at first one, all of it; invalidating the middle leaves two, and the
 * registration as it is.  The spans of the index do not overlap.  An entry
 * without spans is detached: it goes with its last put.
 *
 * The index is an array: a thousand spans are found with ten comparisons of
 * which the last six share a line or two, and moving half of them on a miss
 * costs less than registering.  Before it stands the front, one probe by page,
 * which serves those who use few buffers.
 *
 * I1  Under the lock nobody allocates, frees, registers or makes a system call:
 *     all that may unmap memory, and so come back here, or take long.  Entries
 *     and spans lie in one mapping that is made with the cache.
 * I2  Nothing is looked up before the log of memwatch.h has been absorbed.
 * I3  An entry with refs > 0 is not deregistered.
 * I4  A front span is good if its stamp is the cache's: that moves on whenever
 *     something leaves the index.
 */
#ifndef GLEXI_RCACHE_H
#define GLEXI_RCACHE_H

#include "core/memwatch.h"
#include "core/priv.h"

#define RCACHE_FRONT 64u
#define RCACHE_NONE  UINT32_MAX
#define RCACHE_REACH (UINT64_C(1) << 32) /* offsets have 32 bits */

struct rcache_span {
	uint64_t start;
	uint64_t end;
	uint32_t entry;
	uint32_t rights; /* of the entry */
};

struct rcache_entry {
	uint64_t start; /* of the region: offsets count from here */
	uint64_t end;
	uint64_t mh;
	uint32_t refs;
	uint32_t spans;
	uint32_t next; /* least recently used list, or free, or doomed */
	uint32_t prev;
	uint32_t rights;
	uint32_t uses;	     /* gets */
	uint32_t promote_at; /* so many uses make it worth moving to a faster place, once */
	enum glexi_mem_tie tie;
	bool listed;
};

struct rcache_front {
	struct rcache_span span;
	uint64_t stamp;
};

struct glex_rcache {
	/* what a hit touches */
	struct glexi_lock lock;
	uint64_t seen;
	uint64_t stamp;
	struct rcache_entry *entries;
	struct glexi_device *dev;
	uint64_t hits;
	uint32_t in_use;
	uint32_t newest; /* the list's end */
	struct rcache_front front[RCACHE_FRONT];

	/* the rest */
	struct glexi_ep *ep;
	struct rcache_span *index;
	uint32_t index_used;
	uint32_t index_room;
	uint32_t entry_room;
	uint32_t entry_used; /* the rest was never taken */
	uint32_t oldest;
	uint32_t free;	 /* entries, linked by next */
	uint32_t doomed; /* to be deregistered as soon as the lock is released */
	uint32_t doomed_count;
	uint64_t size; /* bytes covered by spans */
	uint32_t count;
	uint64_t max_size;
	uint32_t max_count;
	uint64_t map_size;
	uint64_t page;
	uint32_t registered;
	uint32_t missing; /* gets that are registering */
	uint32_t promote_after;
	bool may_share;	     /* promote into shared mappings too */
	bool told;	     /* that there was no room, and why */
	uint64_t gate_start; /* nobody registers here: it is being promoted */
	uint64_t gate_end;
	uint64_t misses, merges, uncached, evicted, invalidated;
};

/* A region to be, or one that is registered and not yet an entry that anybody can find. */
struct rcache_plan {
	uint64_t start;
	uint64_t end;
	uint32_t rights;
	uint32_t id; /* of the entry taken for it */
	uint64_t mh;
	enum glexi_mem_tie tie;
	bool merged;
	bool improves; /* it has not the best way that there is */
};

/* ---- index.c; all under the lock ------------------------------------------ */

/* The first span that ends behind addr; index_used: none. */
uint32_t rcache_index_find(const struct glex_rcache *rc, uint64_t addr);

/* The span that covers all of it, with the rights; NULL: there is none. */
const struct rcache_span *rcache_index_cover(const struct glex_rcache *rc, uint64_t start, uint64_t end,
					     uint32_t rights);

/* Takes [start, end) out of the index: cuts spans, splits them.  Returns how many were touched. */
uint32_t rcache_index_cut(struct glex_rcache *rc, uint64_t start, uint64_t end);

/* Puts an entry in with all its range, from which everything else has been cut.  False: no room. */
bool rcache_index_insert(struct glex_rcache *rc, uint32_t id);

/* Detaches an entry. */
void rcache_index_remove(struct glex_rcache *rc, uint32_t id);

/* ---- list.c; all under the lock ------------------------------------------- */

/* RCACHE_NONE: none free. */
uint32_t rcache_entry_take(struct glex_rcache *rc);
void rcache_entry_give(struct glex_rcache *rc, uint32_t id);

/* Makes it the most recently used. */
void rcache_list_touch(struct glex_rcache *rc, uint32_t id);
void rcache_list_remove(struct glex_rcache *rc, uint32_t id);

/* Its last span or its last user is gone: if both are, it is doomed. */
void rcache_entry_settle(struct glex_rcache *rc, uint32_t id);

/* Detaches the least recently used idle one but keep.  False: there is none. */
bool rcache_evict(struct glex_rcache *rc, uint32_t keep);

/* ---- miss.c; without the lock ----------------------------------------------- */

/* Registers a region for [start, end), whole pages, and returns it held. */
glex_ret_t rcache_miss(struct glex_rcache *rc, uint64_t start, uint64_t end, uint32_t rights, uint32_t *id_p);

/* True if the process may write to all pages of [start, end). */
bool rcache_writable(uint64_t start, uint64_t end);

/* ---- rcache.c --------------------------------------------------------------- */

/* Under the lock: drops what the log says has changed.  I2 */
void rcache_absorb(struct glex_rcache *rc);

/*
 * A miss begins, unless its range is being promoted: then it waits for the end of
 * that.  Called with the lock, leaves without.
 */
void rcache_miss_begin(struct glex_rcache *rc, uint64_t start, uint64_t end);

/* Releases the lock, and deregisters the doomed. */
void rcache_unlock_dispose(struct glex_rcache *rc);

/* As glexi_lock, whatever glex_single_threaded says: threads that make no GLEX call may still unmap memory. */
static inline void rcache_lock(struct glex_rcache *rc)
{
	if (GLEXI_UNLIKELY(atomic_exchange_explicit(&rc->lock.held, 1, memory_order_acquire))) /* LOCK-A1 */
		glexi_lock_contended(&rc->lock);
}

static inline void rcache_unlock(struct glex_rcache *rc)
{
	atomic_store_explicit(&rc->lock.held, 0, memory_order_release); /* LOCK-R1 */
}

#endif /* GLEXI_RCACHE_H */
