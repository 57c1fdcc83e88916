/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait.c - the consumer's side of the queues, and waiting on them.
 *
 * A wait goes through three phases: spin (GLEX_SPIN_TIME), which catches what
 * is on its way; yield (GLEX_YIELD_TIME), which lets others run where processes
 * outnumber cores, and there comes first; sleep, which costs nothing.  No lock
 * is held in any of them.
 *
 * A dead glexd cannot say so: sleepers look after it between naps, and pollers
 * every GLEXI_POLLS_PER_CHECK empty polls.
 */
#include "core/priv.h"

#include <time.h>

#include "cfg/cfg.h"

#define NAP_NS	       100000000u
#define SPINS_PER_LOOK 64

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t glexi_deadline(int32_t timeout)
{
	return timeout < 0 ? INT64_MAX : now_ns() + (int64_t)timeout * 1000000;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

void glexi_lock_contended(struct glexi_lock *lock)
{
	uint32_t tries = 0;

	for (;;) {
		/* relaxed: only looks; the exchange below orders */
		while (atomic_load_explicit(&lock->held, memory_order_relaxed)) {
			if (++tries % SPINS_PER_LOOK == 0)
				sched_yield();
			relax();
		}
		if (!atomic_exchange_explicit(&lock->held, 1, memory_order_acquire)) /* LOCK-A1 */
			return;
	}
}

/* Nothing but slots of dead processes from read to index: give them back, or a wait would find them for ever. */
static void drop_discarded(struct glexi_queue *queue, uint32_t index)
{
	atomic_store_explicit(&queue->read, index, memory_order_relaxed);  /* relaxed: under the lock */
	atomic_store_explicit(&queue->probe, index, memory_order_relaxed); /* relaxed: under the lock */
	emu_ring_release(&queue->ring, index);
}

void *glexi_queue_find(struct glexi_queue *queue, uint32_t from, size_t flags_at, uint32_t *at_p)
{
	uint32_t at = from;
	unsigned char *slot;

	while ((slot = emu_ring_peek(&queue->ring, at))) {
		if (GLEXI_LIKELY(!(*(const uint16_t *)(const void *)(slot + flags_at) & EMU_SLOT_DISCARDED))) {
			*at_p = at;
			return slot;
		}
		at++;
	}
	if (at != from && from == glexi_queue_read(queue) &&
	    from == atomic_load_explicit(&queue->probe, memory_order_relaxed)) /* relaxed: under the lock */
		drop_discarded(queue, at);
	return NULL;
}

/* Spins or yields until `until`; true when something came. */
static bool poll_until(const struct glexi_queue *queue, int64_t until, bool yield)
{
	uint32_t i = 0;

	while (!glexi_queue_has(queue, glexi_queue_read(queue))) {
		if (yield)
			sched_yield();
		else
			relax();
		if ((yield || ++i % SPINS_PER_LOOK == 0) && now_ns() >= until)
			return false;
	}
	return true;
}

glex_ret_t glexi_queue_wait(struct glexi_ep *ep, struct glexi_queue *queue, int64_t deadline, glex_ret_t none)
{
	const struct glexi_cfg *cfg = glexi_cfg();
	int64_t now = now_ns(), until = now + (ep->dev->ops->crowded(ep->dev) ? 0 : (int64_t)cfg->spin_us * 1000);

	if (poll_until(queue, until < deadline ? until : deadline, false))
		return GLEX_SUCCESS;
	until += (int64_t)cfg->yield_us * 1000;
	if (poll_until(queue, until < deadline ? until : deadline, true))
		return GLEX_SUCCESS;
	for (;;) {
		if (glexi_device_idle(ep->dev) != GLEX_SUCCESS)
			return GLEX_SYS_ERR;
		now = now_ns();
		if (now >= deadline)
			return none;
		glexi_count(ep->sleeps, 1);
		ep->dev->ops->ep_sleep(ep, queue, deadline - now < NAP_NS ? (uint64_t)(deadline - now) : NAP_NS);
		if (glexi_queue_has(queue, glexi_queue_read(queue)))
			return GLEX_SUCCESS;
	}
}
