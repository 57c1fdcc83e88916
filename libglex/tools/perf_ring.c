/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_ring.c - the bounce of a record between two processes.
 *
 *   side 0   record n into ring[1] ................... record n from ring[0]
 *   side 1   ...... record n from ring[1], record n into ring[0]
 *
 * Indices run on from one bounce to the next, so nothing has to be put back.  Side
 * 0 says in a record that it was the last, which is not answered.
 *
 * label        access                    order     pairs        says
 * RECORD-R1    producer seq = n+1        release   RECORD-A1    the record is whole
 * RECORD-A1    consumer load seq         acquire   RECORD-R1
 */
#include "perf_ring.h"

#include "perf_base.h"

#include <sched.h>
#include <stdbool.h>

#define SAMPLES	       25
#define ROUNDS	       500
#define ENOUGH_MS      300
#define SPINS_PER_LOOK 20000
#define LAST	       UINT64_MAX

struct bounce {
	struct perf_ring *in, *out;
	uint32_t received, sent;
	uint32_t limit_ms;
};

static inline void breathe(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static inline void put(struct bounce *b, uint64_t word)
{
	uint32_t at = b->sent % PERF_RING_SLOTS;

	b->out->slot[at].len = 8;
	b->out->slot[at].src = 1;
	b->out->slot[at].data[0] = word;
	atomic_store_explicit(&b->out->slot[at].seq, ++b->sent, memory_order_release); /* RECORD-R1 */
}

/* False: nothing came for limit_ms. */
static __attribute__((noinline)) bool await(struct bounce *b, uint32_t at)
{
	uint64_t until = perf_now_ns() + b->limit_ms * 1000000ULL;

	do {
		for (int i = 0; i < SPINS_PER_LOOK; i++)
			if (atomic_load_explicit(&b->in->slot[at].seq, memory_order_acquire) ==
			    b->received + 1) /* RECORD-A1 */
				return true;
		sched_yield(); /* both may be on one core */
	} while (perf_now_ns() < until);
	return false;
}

static inline bool get(struct bounce *b, uint64_t *word_p)
{
	uint32_t at = b->received % PERF_RING_SLOTS;
	int spins = 0;

	while (atomic_load_explicit(&b->in->slot[at].seq, memory_order_acquire) != b->received + 1) { /* RECORD-A1 */
		if (++spins == SPINS_PER_LOOK) {
			if (!await(b, at))
				return false;
			break;
		}
		breathe();
	}
	__builtin_prefetch(&b->out->slot[b->sent % PERF_RING_SLOTS], 1);
	*word_p = b->in->slot[at].data[0];
	atomic_store_explicit(&b->in->head, ++b->received, memory_order_relaxed); /* relaxed: nobody needs room */
	return true;
}

static bool echo(struct bounce *b)
{
	uint64_t word;

	for (;;) {
		if (!get(b, &word))
			return false;
		if (word == LAST)
			return true;
		put(b, word);
	}
}

/* Samples until there are enough; returns how many, 0: the other side did not answer. */
static uint32_t drive(struct bounce *b, double sample[SAMPLES + 1])
{
	uint64_t since = perf_now_ns(), word;
	uint32_t n = 0;

	do {
		uint64_t start = perf_now_ns();
		uint32_t done = 0;

		while (done < ROUNDS) {
			put(b, done);
			if (!get(b, &word))
				return 0;
			if (++done % 50 == 0 && perf_now_ns() - since > ENOUGH_MS * 1000000ULL)
				break;
		}
		sample[n++] = (double)(perf_now_ns() - start) / (2.0 * done);
	} while (n <= SAMPLES && perf_now_ns() - since <= ENOUGH_MS * 1000000ULL);
	put(b, LAST);
	return n;
}

double perf_ring_bounce(struct perf_ring ring[2], int side, uint32_t limit_ms)
{
	struct bounce b = {.in = &ring[side],
			   .out = &ring[!side],
			   .received = ring[side].next[0],
			   .sent = ring[!side].next[1],
			   .limit_ms = limit_ms};
	double sample[SAMPLES + 1];
	struct perf_stat stat;
	bool good = true;
	uint32_t n = 0;

	if (side == 0)
		good = (n = drive(&b, sample)) > 0;
	else
		good = echo(&b);
	ring[side].next[0] = b.received;
	ring[!side].next[1] = b.sent;
	if (!good || side == 1)
		return good ? 0 : -1;
	/* The first was to warm up, if there are others. */
	perf_stat_of(n > 1 ? sample + 1 : sample, n > 1 ? n - 1 : n, &stat);
	return stat.p50;
}
