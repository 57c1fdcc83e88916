/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memwatch.c - the log of what happened to memory.  See memwatch.h for who
 * writes, who reads, and the order of their accesses.
 *
 *      length ---------------------------+
 *                                        v
 *      ... | seq n+1: [start, end) | seq n+2: ... | (claimed) | free
 *
 * I1  A slot is written only by who has its seq set to BUSY; who finds it so
 *     (a writer a whole ring behind was stopped in the middle) leaves it alone:
 *     its reader then finds another seq than it expects, and takes that for
 *     "anything may have changed".  So nothing is ever lost, and nobody waits.
 */
#include "core/memwatch.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>

#include "cfg/cfg.h"

#define SUBSCRIBERS 4
#define BUSY	    UINT64_MAX

struct slot {
	_Atomic uint64_t seq;
	_Atomic uint64_t start;
	_Atomic uint64_t end;
};

_Alignas(128) _Atomic uint64_t glexi_memwatch_length;
static _Alignas(128) _Atomic uint64_t open_changes;
static struct slot ring[GLEXI_MEMWATCH_LOG];
static _Atomic(struct glexi_memwatch *) subscribers[SUBSCRIBERS];

/* ---- writing ---------------------------------------------------------------- */

static void append(uint64_t start, uint64_t end)
{
	uint64_t n = atomic_fetch_add_explicit(&glexi_memwatch_length, 1, memory_order_acq_rel); /* MEMW-R2 */
	struct slot *slot = &ring[n % GLEXI_MEMWATCH_LOG];
	uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_relaxed); /* relaxed: the exchange decides */

	if (seq > n ||
	    !atomic_compare_exchange_strong_explicit(&slot->seq, &seq, BUSY, memory_order_acquire,
						     memory_order_relaxed)) /* relaxed: who wins writes, I1 */
		return;
	atomic_store_explicit(&slot->start, start, memory_order_release); /* relaxed: stronger; seq is BUSY before it */
	atomic_store_explicit(&slot->end, end, memory_order_release);	  /* relaxed: likewise */
	atomic_store_explicit(&slot->seq, n + 1, memory_order_release);	  /* MEMW-R3 */
}

void glexi_memwatch_begin(const struct glexi_mem_change *change)
{
	uint64_t end = change->addr + change->len;
	int saved = errno;

	atomic_fetch_add_explicit(&open_changes, 1, memory_order_seq_cst); /* MEMW-R1 */
	for (size_t i = 0; i < SUBSCRIBERS; i++) {
		struct glexi_memwatch *watch =
			atomic_load_explicit(&subscribers[i], memory_order_seq_cst); /* MEMW-A5 */

		if (watch && watch->before)
			watch->before(watch, change);
	}
	append(change->addr, end < change->addr ? UINT64_MAX : end);
	errno = saved;
}

void glexi_memwatch_end(const struct glexi_mem_change *change, bool done)
{
	int saved = errno;

	for (size_t i = 0; i < SUBSCRIBERS; i++) {
		struct glexi_memwatch *watch =
			atomic_load_explicit(&subscribers[i], memory_order_seq_cst); /* MEMW-A5 */

		if (watch && watch->after)
			watch->after(watch, change, done);
	}
	atomic_fetch_sub_explicit(&open_changes, 1, memory_order_release); /* MEMW-R4 */
	errno = saved;
}

/* ---- reading ---------------------------------------------------------------- */

bool glexi_memwatch_read(uint64_t n, uint64_t *start_p, uint64_t *end_p)
{
	struct slot *slot = &ring[n % GLEXI_MEMWATCH_LOG];

	if (atomic_load_explicit(&slot->seq, memory_order_acquire) != n + 1) /* MEMW-A3 */
		return false;
	*start_p =
		atomic_load_explicit(&slot->start, memory_order_acquire); /* relaxed: stronger, for the second look */
	*end_p = atomic_load_explicit(&slot->end, memory_order_acquire);  /* relaxed: likewise */
	return atomic_load_explicit(&slot->seq, memory_order_acquire) == n + 1; /* MEMW-A3 */
}

bool glexi_memwatch_unchanged(uint64_t since, uint64_t start, uint64_t end)
{
	uint64_t now, from, to;

	if (atomic_load_explicit(&open_changes, memory_order_seq_cst) != 0) /* MEMW-A1 */
		return false;
	now = glexi_memwatch_now();
	for (; since != now; since++)
		if (!glexi_memwatch_read(since, &from, &to) || (from < end && start < to))
			return false;
	return true;
}

/* ---- subscribing ------------------------------------------------------------ */

bool glexi_memwatch_subscribe(struct glexi_memwatch *watch)
{
	for (size_t i = 0; i < SUBSCRIBERS; i++) {
		struct glexi_memwatch *none = NULL;

		if (atomic_compare_exchange_strong_explicit(&subscribers[i], &none, watch, memory_order_seq_cst,
							    memory_order_relaxed)) /* MEMW-R5 */
			return true;
	}
	return false;
}

void glexi_memwatch_unsubscribe(struct glexi_memwatch *watch)
{
	for (size_t i = 0; i < SUBSCRIBERS; i++) {
		/* relaxed: set by an earlier call of this thread or one that it knows to have returned */
		if (atomic_load_explicit(&subscribers[i], memory_order_relaxed) == watch)
			atomic_store_explicit(&subscribers[i], NULL, memory_order_seq_cst); /* MEMW-R5 */
	}
	/* who saw the subscriber had its change open before, and has it until the callbacks are over */
	while (atomic_load_explicit(&open_changes, memory_order_seq_cst) != 0) /* MEMW-A1 */
		sched_yield();
}

/* ---- monitors --------------------------------------------------------------- */

uint32_t glexi_memwatch_sees(void)
{
	return glexi_cfg()->mem_monitor == GLEXI_MONITOR_EXPLICIT ? GLEXI_SEES_UNMAP | GLEXI_SEES_DISCARD : 0;
}

uint32_t glexi_memwatch_start(void)
{
	return glexi_memwatch_sees();
}

bool glexi_memwatch_caches(void)
{
	return glexi_cfg()->mem_monitor != GLEXI_MONITOR_OFF;
}

bool glexi_memwatch_track(uint64_t start, uint64_t end)
{
	(void)start;
	(void)end;
	return true;
}

bool glexi_memwatch_lags(void)
{
	return false;
}

void glexi_memwatch_settle(void)
{
}

void glexi_memwatch_forked(void)
{
	/* relaxed: the child has one thread; those that were in the middle of a change are not in it */
	atomic_store_explicit(&open_changes, 0, memory_order_relaxed); /* relaxed: see above */
}
