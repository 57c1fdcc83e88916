/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * priv.h - the objects behind the handles of glex.h.
 *
 * Locks: device.c's mutex for opening, closing and the list of endpoints; in an
 * endpoint one lock for posting and one for each queue's consumer side.  None is
 * held while waiting, none in shared memory.  The endpoint's vanish with
 * glex_single_threaded, and while the process has one thread.
 */
#ifndef GLEXI_PRIV_H
#define GLEXI_PRIV_H

#include "backend/backend.h"

#include <sched.h>
#include <stdalign.h>
#include <sys/queue.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define GLEXI_KNOWS_THREADS 1
#endif

#define GLEXI_LIKELY(x)	  __builtin_expect(!!(x), 1)
#define GLEXI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define GLEXI_INLINE	  static inline __attribute__((always_inline))

/* ---- lock ---------------------------------------------------------------- */

/*
 * A spin lock that yields: held for tens of nanoseconds, or for a long copy.
 *
 * label    access               order     pairs     says
 * LOCK-R1  holder held = 0      release   LOCK-A1   what the lock guards is consistent
 * LOCK-A1  taker  held = 1      acquire   LOCK-R1   it may be read and changed
 *
 * Taking it costs as much as the rest of a small request, for a locked
 * instruction waits until everything stored before has left for the caches.  A
 * process with one thread does without: it is in no call when it makes its
 * second one, and what it did before, pthread_create hands on.  So that is asked
 * when locking, and the unlock does what the lock did.
 */
struct glexi_lock {
	_Atomic uint32_t held;
	bool never; /* glex_single_threaded, as it was when the endpoint was created */
};

void glexi_lock_contended(struct glexi_lock *lock);

static inline bool glexi_one_thread(void)
{
#ifdef GLEXI_KNOWS_THREADS
	return __libc_single_threaded;
#else
	return false;
#endif
}

/* Nobody else can take it now. */
static inline bool glexi_is_lockless(const struct glexi_lock *lock)
{
	return lock->never || glexi_one_thread();
}

/* What it returns is for the unlock. */
static inline bool glexi_lock(struct glexi_lock *lock)
{
	if (glexi_is_lockless(lock))
		return false;
	if (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire)) /* LOCK-A1 */
		glexi_lock_contended(lock);
	return true;
}

/* False: somebody has it; *locked_p is for the unlock. */
static inline bool glexi_try_lock(struct glexi_lock *lock, bool *locked_p)
{
	*locked_p = !glexi_is_lockless(lock);
	return !*locked_p || !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire); /* LOCK-A1 */
}

static inline void glexi_unlock(struct glexi_lock *lock, bool locked)
{
	if (locked)
		atomic_store_explicit(&lock->held, 0, memory_order_release); /* LOCK-R1 */
}

/* ---- objects ------------------------------------------------------------- */

enum glexi_loss { GLEXI_PRESENT = 0, GLEXI_LOST, GLEXI_FORKED };

/* One a process at most. */
struct glexi_device {
	glex_device_t pub;
	const struct glexi_be_ops *ops;
	void *be;
	uint32_t opens;
	_Atomic uint32_t lost; /* enum glexi_loss; once set it stays */
	LIST_HEAD(, glexi_ep) eps;
};

/* The consumer's side of a ring.  read <= probe; both only move under lock, but are peeked at without. */
struct glexi_queue {
	alignas(64) struct emu_ring ring; /* one cache line up to `taken` */
	_Atomic uint32_t read;		  /* R of glex.h: everything before is given back */
	_Atomic uint32_t probe;		  /* P */
	struct glexi_lock lock;
	_Atomic uint32_t empty;	 /* polls in a row that found nothing */
	uint32_t dead;		 /* slots from read to probe that a dead process left; under lock */
	_Atomic uint64_t *taken; /* counter */
};

struct glexi_ep {
	glex_ep_t pub; /* must be first: the handle points to it */
	struct glexi_device *dev;
	glex_ep_addr_t addr;
	struct glexi_lock post_lock;
	/*
	 * Where an answer to an answer would go, if one request was posted since
	 * something came; itself if several were: who does not wait for answers shall
	 * not pay for the hint, a store each time.  NULL: none was.  The line is asked
	 * for as soon as something comes.  Never read or written through.
	 */
	_Atomic(const void *) answer;
	struct glexi_queue mpq;
	struct glexi_queue eq;
	struct glexi_queue err;
	struct glexi_queue intq;
	struct glexi_queue epq;
	_Atomic uint64_t *sleeps; /* counter */
	bool is_retired;	  /* glex_retire_ep; under the mutex of device.c */
	_Atomic bool is_quiet;	  /* glex_quiet_ep */
	struct glex_ep_attr attr;
	void *be;
	LIST_HEAD(, glexi_put_way) ways; /* under post_lock */
	LIST_ENTRY(glexi_ep) link;
};

/* Of an endpoint to a region.  Filled by the backend, which forgets it before what it shows is unmapped. */
struct glexi_put_way {
	struct glex_put_way pub; /* must be first: the caller has it */
	struct glexi_ep *ep;
	uint64_t to, mh; /* the endpoint and the region there */
	uint32_t key;
	LIST_ENTRY(glexi_put_way) link;
};

static inline struct glexi_put_way *glexi_put_way_of(struct glex_put_way *way)
{
	return (struct glexi_put_way *)(void *)way;
}

static inline struct glexi_ep *glexi_ep_of(glex_ep_handle_t handle)
{
	return (struct glexi_ep *)(void *)handle;
}

static inline struct glexi_device *glexi_device_of(glex_device_handle_t handle)
{
	return (struct glexi_device *)(void *)handle;
}

static inline bool glexi_is_lost(const struct glexi_device *dev)
{
	/* relaxed: a flag that only ever goes up; nothing is published with it */
	return GLEXI_UNLIKELY(atomic_load_explicit(&dev->lost, memory_order_relaxed) != GLEXI_PRESENT);
}

/* A child's copy of its parent's object: no call may do anything with it. */
static inline bool glexi_is_forked(const struct glexi_device *dev)
{
	/* relaxed: set before the child runs */
	return GLEXI_UNLIKELY(atomic_load_explicit(&dev->lost, memory_order_relaxed) == GLEXI_FORKED);
}

/*
 * Adds to a counter for display, and returns what it is then.  Writers hold a lock of the
 * endpoint; of two that do not (sleeps) one may be lost.
 */
GLEXI_INLINE uint64_t glexi_count(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t v = atomic_load_explicit(counter, memory_order_relaxed) + n; /* relaxed: counter */

	atomic_store_explicit(counter, v, memory_order_relaxed); /* relaxed: counter */
	return v;
}

/* device.c: marks the device lost, once, with a message; returns GLEX_SYS_ERR. */
glex_ret_t glexi_device_lost(struct glexi_device *dev);

/* device.c: asks the backend whether it lives; GLEX_SUCCESS or GLEX_SYS_ERR. */
glex_ret_t glexi_device_check(struct glexi_device *dev);

/* device.c: the same, by who waits or polls in vain, and holds no lock: he has the time to see to other things. */
glex_ret_t glexi_device_idle(struct glexi_device *dev);

/* What helps against it: ready to follow on its text, perhaps empty. */
const char *glexi_error_req_cure(enum glex_err_req_status status);

/* device.c: the list of endpoints; keeps the device while one lives. */
void glexi_device_add_ep(struct glexi_device *dev, struct glexi_ep *ep);
void glexi_device_remove_ep(struct glexi_device *dev, struct glexi_ep *ep);
/* It stays in the list, and does not keep the device: ends with it. */
void glexi_device_retire_ep(struct glexi_device *dev, struct glexi_ep *ep);
/* endpoint.c: destroys it. */
void glexi_ep_end(struct glexi_ep *ep);

/* put_way.c: nothing is known of the endpoint's ways any more; under its lock. */
void glexi_put_ways_forget(struct glexi_ep *ep);
/* They end with it; nobody uses it any more. */
void glexi_put_ways_end(struct glexi_ep *ep);

/* Something came: who has posted since the last time will most likely post again. */
static inline void glexi_want_answer(struct glexi_ep *ep)
{
	const void *line = atomic_load_explicit(&ep->answer, memory_order_relaxed); /* relaxed: a hint */

	if (!line)
		return;
	emu_want_line(line);
	atomic_store_explicit(&ep->answer, NULL, memory_order_relaxed); /* relaxed: a hint */
}

/* ---- queues: wait.c ------------------------------------------------------ */

/* relaxed: the queue's own lock orders those who change them, a peek tolerates any value */
static inline uint32_t glexi_queue_read(const struct glexi_queue *queue)
{
	return atomic_load_explicit(&queue->read, memory_order_relaxed); /* relaxed: see above */
}

static inline bool glexi_queue_has(const struct glexi_queue *queue, uint32_t index)
{
	return emu_ring_peek(&queue->ring, index) != NULL;
}

/*
 * The first live slot at or after index from, or NULL; *at_p: its index.  Under
 * the queue's lock.  Steps over slots that a dead process left.  flags_at: offset
 * of a slot's flags.
 */
void *glexi_queue_find(struct glexi_queue *queue, uint32_t from, size_t flags_at, uint32_t *at_p);

/* The same, the usual case inline: there is one, or there is none, and nobody died. */
static inline void *glexi_queue_next(struct glexi_queue *queue, uint32_t from, size_t flags_at, uint32_t *at_p)
{
	unsigned char *slot = emu_ring_peek(&queue->ring, from);

	*at_p = from;
	if (GLEXI_LIKELY(!slot || !(*(const uint16_t *)(const void *)(slot + flags_at) & EMU_SLOT_DISCARDED)))
		return slot;
	return glexi_queue_find(queue, from, flags_at, at_p);
}

/*
 * Waits until the queue has something at its read index.  GLEX_SUCCESS: look
 * again (somebody else may have been faster); `none`: the time is up.
 */
glex_ret_t glexi_queue_wait(struct glexi_ep *ep, struct glexi_queue *queue, int64_t deadline_ns, glex_ret_t none);

#define GLEXI_POLLS_PER_CHECK 0x10000u /* a dead glexd cannot say so: pollers ask now and then */

/* What an empty poll returns: `none`, or GLEX_SYS_ERR once the device is known to be lost. */
static inline glex_ret_t glexi_queue_empty(struct glexi_ep *ep, struct glexi_queue *queue, glex_ret_t none)
{
	uint32_t n = atomic_load_explicit(&queue->empty, memory_order_relaxed) + 1; /* relaxed: rough count */

	atomic_store_explicit(&queue->empty, n, memory_order_relaxed); /* relaxed: rough count */
	if (glexi_is_lost(ep->dev))
		return GLEX_SYS_ERR;
	if (GLEXI_UNLIKELY(n % GLEXI_POLLS_PER_CHECK == 0) && glexi_device_idle(ep->dev) != GLEX_SUCCESS)
		return GLEX_SYS_ERR;
	return none;
}

/* When a wait of timeout ms that begins now ends; INT64_MAX: never. */
int64_t glexi_deadline(int32_t timeout);

/* P goes behind `at`, the first live slot from R (first) or P on: what lies between is of the dead.  Under the lock. */
static inline void glexi_queue_probed(struct glexi_queue *queue, bool first, uint32_t at)
{
	uint32_t probe = atomic_load_explicit(&queue->probe, memory_order_relaxed); /* relaxed: under the lock */

	queue->dead = first ? at - glexi_queue_read(queue) : queue->dead + (at - probe);
	atomic_store_explicit(&queue->probe, at + 1, memory_order_relaxed); /* relaxed: under the lock */
}

/* Takes or looks at what the queue has, under its lock; false: nothing.  out: what the caller wants filled. */
typedef bool (*glexi_take_fn)(struct glexi_queue *queue, void *out);

/* The three calls with a timeout: take what is at the read index, or wait for it.  Inlined with its take. */
GLEXI_INLINE glex_ret_t glexi_queue_take(struct glexi_ep *ep, struct glexi_queue *queue, int32_t timeout,
					 glex_ret_t none, glexi_take_fn take, void *out)
{
	int64_t deadline = 0;
	glex_ret_t ret;

	for (;;) {
		if (glexi_queue_has(queue, glexi_queue_read(queue))) {
			glexi_want_answer(ep);
			if (take(queue, out))
				return GLEX_SUCCESS;
		}
		if (timeout == 0)
			return glexi_queue_empty(ep, queue, none);
		if (deadline == 0)
			deadline = glexi_deadline(timeout);
		ret = glexi_queue_wait(ep, queue, deadline, none);
		if (ret != GLEX_SUCCESS)
			return ret;
	}
}

/* Takes a slot into the caller's list, at the place of number n. */
typedef void (*glexi_record_fn)(const void *slot, void *list, uint32_t n);

/* Takes up to room records, all those there are if fewer; returns how many.  Under the queue's lock. */
uint32_t glexi_queue_drain(struct glexi_queue *queue, uint32_t room, size_t flags_at, glexi_record_fn take, void *list);

/* Everything probed is given back.  GLEX_SYS_ERR in a forked child. */
static inline glex_ret_t glexi_queue_discard(struct glexi_ep *ep, struct glexi_queue *queue)
{
	uint32_t read, probe;
	bool locked;

	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	locked = glexi_lock(&queue->lock);
	read = glexi_queue_read(queue);
	probe = atomic_load_explicit(&queue->probe, memory_order_relaxed); /* relaxed: under the lock */
	if (probe != read) {
		atomic_store_explicit(&queue->read, probe, memory_order_relaxed); /* relaxed: under the lock */
		emu_ring_release(&queue->ring, probe);
		glexi_count(queue->taken, probe - read - queue->dead);
		queue->dead = 0;
	}
	glexi_unlock(&queue->lock, locked);
	return GLEX_SUCCESS;
}

#endif /* GLEXI_PRIV_H */
