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
#include <glex_ext.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#include "cfg/cfg.h"
#include "cfg/log.h"
#include "core/monitor.h"

#define SUBSCRIBERS 4
#define BUSY	    UINT64_MAX
#define PATIENCE    10000u /* turns of waiting for changes to end */

struct slot {
	_Atomic uint64_t seq;
	_Atomic uint64_t start;
	_Atomic uint64_t end;
};

_Alignas(128) _Atomic uint64_t glexi_memwatch_length;
static _Alignas(128) _Atomic uint64_t open_changes;
static _Atomic bool paused;
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

/* A change is open from here on. */
static void open_one(void)
{
	while (atomic_fetch_add_explicit(&open_changes, 1, memory_order_seq_cst),  /* MEMW-R1 */
	       atomic_load_explicit(&paused, memory_order_seq_cst)) {		   /* MEMW-A7 */
		atomic_fetch_sub_explicit(&open_changes, 1, memory_order_release); /* MEMW-R4 */
		while (atomic_load_explicit(&paused, memory_order_seq_cst))	   /* MEMW-A7 */
			sched_yield();
	}
}

bool glexi_memwatch_pause(void)
{
	atomic_store_explicit(&paused, true, memory_order_seq_cst); /* MEMW-R7 */
	for (uint32_t turns = 0; turns < PATIENCE; turns++) {
		if (atomic_load_explicit(&open_changes, memory_order_seq_cst) == 0) /* MEMW-A1 */
			return true;
		sched_yield();
	}
	glexi_memwatch_resume();
	return false;
}

void glexi_memwatch_resume(void)
{
	atomic_store_explicit(&paused, false, memory_order_seq_cst); /* MEMW-R7 */
}

void glexi_memwatch_begin(const struct glexi_mem_change *change)
{
	uint64_t end = change->addr + change->len;
	int saved = errno;

	open_one();
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

#define ALL (GLEXI_SEES_UNMAP | GLEXI_SEES_DISCARD)

/* What runs: chosen under the mutex, once; a monitor that stops makes it be chosen anew. */
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;
static struct choice {
	_Atomic bool made;
	_Atomic uint32_t sees;
	_Atomic uint32_t monitor; /* enum glex_mem_monitor */
} choice;

/* Tries one; true: it runs. */
static bool try_monitor(const char *name, const char *why_not, uint32_t monitor, uint32_t sees)
{
	bool asked_for = glexi_cfg()->mem_monitor != GLEXI_MONITOR_AUTO;

	if (why_not) {
		glexi_log(asked_for ? GLEXI_LOG_WARN : GLEXI_LOG_INFO, "changes of memory are not noticed by %s: %s",
			  name, why_not);
		return false;
	}
	glexi_info("changes of memory are noticed by %s", name);
	atomic_store_explicit(&choice.monitor, monitor, memory_order_release); /* MEMW-R8 */
	atomic_store_explicit(&choice.sees, sees, memory_order_relaxed);       /* relaxed: before MEMW-R6 */
	return true;
}

static bool try_hooks(void)
{
	return try_monitor("libglex-memhooks.so", glexi_hooks_start(), GLEX_MEM_MONITOR_HOOKS, ALL | GLEXI_SEES_BEFORE);
}

static bool try_uffd(void)
{
	return try_monitor("userfaultfd", glexi_uffd_start(), GLEX_MEM_MONITOR_USERFAULTFD, ALL);
}

/* Under the mutex. */
static void choose(void)
{
	bool found = false;

	switch (glexi_cfg()->mem_monitor) {
	case GLEXI_MONITOR_AUTO:
		found = (glexi_hooks_present() && try_hooks()) || try_uffd();
		break;
	case GLEXI_MONITOR_HOOKS:
		found = try_hooks();
		break;
	case GLEXI_MONITOR_USERFAULTFD:
		found = try_uffd();
		break;
	case GLEXI_MONITOR_EXPLICIT:
		found = try_monitor("the program itself", NULL, GLEX_MEM_MONITOR_EXPLICIT, ALL);
		break;
	default:
		return;
	}
	if (!found)
		glexi_info("changes of memory are not noticed: only what cannot become wrong is cached");
}

uint32_t glexi_memwatch_start(void)
{
	if (!atomic_load_explicit(&choice.made, memory_order_acquire)) { /* MEMW-A6 */
		pthread_mutex_lock(&choosing);
		if (!atomic_load_explicit(&choice.made, memory_order_acquire)) /* MEMW-A6 */
			choose();
		atomic_store_explicit(&choice.made, true, memory_order_release); /* MEMW-R6 */
		pthread_mutex_unlock(&choosing);
	}
	return glexi_memwatch_sees();
}

uint32_t glexi_memwatch_sees(void)
{
	return atomic_load_explicit(&choice.made, memory_order_acquire) ?	/* MEMW-A6 */
		       atomic_load_explicit(&choice.sees, memory_order_relaxed) /* relaxed: after MEMW-A6 */
									: 0;
}

static uint32_t running(void)
{
	return atomic_load_explicit(&choice.monitor, memory_order_acquire); /* MEMW-A8 */
}

uint32_t glexi_memwatch_monitor(void)
{
	int wish = glexi_cfg()->mem_monitor;

	if (atomic_load_explicit(&choice.made, memory_order_acquire)) /* MEMW-A6 */
		return running();
	if (wish == GLEXI_MONITOR_EXPLICIT)
		return GLEX_MEM_MONITOR_EXPLICIT;
	if ((wish == GLEXI_MONITOR_AUTO || wish == GLEXI_MONITOR_HOOKS) && glexi_hooks_present())
		return GLEX_MEM_MONITOR_HOOKS;
	if ((wish == GLEXI_MONITOR_AUTO || wish == GLEXI_MONITOR_USERFAULTFD) && glexi_uffd_allowed())
		return GLEX_MEM_MONITOR_USERFAULTFD;
	return GLEX_MEM_MONITOR_NONE;
}

bool glexi_memwatch_caches(void)
{
	return glexi_cfg()->mem_monitor != GLEXI_MONITOR_OFF;
}

bool glexi_memwatch_wants_all(void)
{
	return glexi_cfg()->mem_monitor == GLEXI_MONITOR_HOOKS || glexi_cfg()->mem_monitor == GLEXI_MONITOR_USERFAULTFD;
}

bool glexi_memwatch_track(uint64_t start, uint64_t end)
{
	return running() != GLEX_MEM_MONITOR_USERFAULTFD || glexi_uffd_track(start, end);
}

bool glexi_memwatch_lags(void)
{
	return running() == GLEX_MEM_MONITOR_USERFAULTFD;
}

void glexi_memwatch_settle(void)
{
	if (glexi_memwatch_lags())
		glexi_uffd_settle();
}

/* Hooks stay for ever, and cost nothing; the thread of userfaultfd does. */
void glexi_memwatch_stop(void)
{
	pthread_mutex_lock(&choosing);
	if (running() == GLEX_MEM_MONITOR_USERFAULTFD) {
		atomic_store_explicit(&choice.made, false, memory_order_release); /* MEMW-R6 */
		atomic_store_explicit(&choice.sees, 0, memory_order_relaxed);	  /* relaxed: nobody uses it any more */
		atomic_store_explicit(&choice.monitor, 0, memory_order_relaxed);  /* relaxed: likewise */
		glexi_uffd_stop();
	}
	pthread_mutex_unlock(&choosing);
}

void glexi_memwatch_hold(void)
{
	atomic_fetch_add_explicit(&open_changes, 1, memory_order_seq_cst); /* MEMW-R1 */
}

void glexi_memwatch_unhold(void)
{
	atomic_fetch_sub_explicit(&open_changes, 1, memory_order_release); /* MEMW-R4 */
}

void glexi_memwatch_forked(void)
{
	/* relaxed: the child has one thread; those that were in the middle of a change are not in it */
	atomic_store_explicit(&open_changes, 0, memory_order_relaxed); /* relaxed: see above */
	atomic_store_explicit(&paused, false, memory_order_relaxed);   /* relaxed: likewise */
	pthread_mutex_init(&choosing, NULL);
	if (running() == GLEX_MEM_MONITOR_USERFAULTFD) {
		glexi_uffd_forked();
		choice = (struct choice){0};
	}
}
