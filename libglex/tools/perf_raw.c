/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_raw.c - the bounce of one flag between two processes.
 *
 *   side 0   ping = 1 ...................... pong is 2, ping = 3 ...
 *   side 1   ........ ping is 1, pong = 2 ......................... ping is 3 ...
 *
 * ping and pong are one word (RAW) or words of two lines (RAW2).  Values only grow
 * while they bounce, until side 0 says ENOUGH; then side 1 puts both words back
 * to 0, and side 0 leaves when it has seen that.
 *
 * label    access                      order     pairs     says
 * RAW-R1   side 0  ping = odd          release   RAW-A1    its turn is over
 * RAW-A1   side 1  load ping           acquire   RAW-R1
 * RAW-R2   side 1  pong = even         release   RAW-A2    its turn is over
 * RAW-A2   side 0  load pong           acquire   RAW-R2
 */
#include "perf_raw.h"

#include "perf_base.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES	       25
#define ROUNDS	       500
#define FORK_LIMIT_MS  5000
#define SPINS_PER_LOOK 20000
#define ENOUGH_MS      300 /* where cores are shared each bounce takes a time slice or two: what is there by then must do */
#define ENOUGH	       UINT64_MAX

/* Spins until the flag is want.  0, 1 when it says ENOUGH (which who waits for 0 has said himself), or -1 when limit_ms passed. */
static int await(_Atomic uint64_t *flag, uint64_t want, uint32_t limit_ms)
{
	uint64_t until = 0;

	for (;;) {
		for (int i = 0; i < SPINS_PER_LOOK; i++)
			if (atomic_load_explicit(flag, memory_order_acquire) == want) /* RAW-A1, RAW-A2 */
				return 0;
		if (want && atomic_load_explicit(flag, memory_order_acquire) == ENOUGH) /* RAW-A1 */
			return 1;
		if (until == 0)
			until = perf_now_ns() + limit_ms * 1000000ULL;
		else if (perf_now_ns() > until)
			return -1;
		sched_yield(); /* both may be on one core */
	}
}

struct bounce {
	_Atomic uint64_t *ping, *pong;
	uint64_t value; /* last seen */
	uint64_t since; /* side 0: when it began */
	uint32_t done;	/* rounds of the sample */
	int side;
	uint32_t limit_ms;
};

/* 0, 1: enough, or -1. */
static int bounce_sample(struct bounce *b)
{
	uint64_t value = b->value;

	for (b->done = 0; b->done < ROUNDS; value += 2) {
		if (b->side == 0) {
			atomic_store_explicit(b->ping, value + 1, memory_order_release); /* RAW-R1 */
			if (await(b->pong, value + 2, b->limit_ms))			 /* RAW-A2 */
				return -1;
		} else {
			int end = await(b->ping, value + 1, b->limit_ms); /* RAW-A1 */

			if (end)
				return end;
			atomic_store_explicit(b->pong, value + 2, memory_order_release); /* RAW-R2 */
		}
		b->value = value + 2;
		/* A look at the clock each fifty rounds costs them half a nanosecond. */
		if (++b->done % 50 == 0 && b->side == 0 && perf_now_ns() - b->since > ENOUGH_MS * 1000000ULL)
			return 1;
	}
	return 0;
}

/* Side 0 says that it is enough; both words are 0 for the next bounce. */
static int rewind_words(struct bounce *b, bool told)
{
	if (b->side == 0) {
		atomic_store_explicit(b->ping, ENOUGH, memory_order_release); /* RAW-R1 */
		return await(b->pong, 0, b->limit_ms);			      /* RAW-A2 */
	}
	if (!told && await(b->ping, ENOUGH, b->limit_ms) < 0) /* RAW-A1 */
		return -1;
	/* Side 0 goes on as soon as it sees pong: nothing may be stored after it, nor twice where they are one. */
	if (b->ping != b->pong)
		atomic_store_explicit(b->ping, 0, memory_order_relaxed); /* relaxed: RAW-R2 */
	atomic_store_explicit(b->pong, 0, memory_order_release);	 /* RAW-R2 */
	return 0;
}

double perf_raw_bounce(struct perf_raw_lines *shared, int side, int lines, uint32_t limit_ms)
{
	struct bounce b = {.ping = &shared->line[0].flag,
			   .pong = &shared->line[lines - 1].flag,
			   .since = perf_now_ns(),
			   .side = side,
			   .limit_ms = limit_ms};
	double sample[SAMPLES + 1];
	struct perf_stat stat;
	uint32_t n = 0;
	int end = 0;

	for (; n <= SAMPLES && !end; n++) {
		uint64_t start = perf_now_ns();

		end = bounce_sample(&b);
		if (end < 0)
			return -1;
		sample[n] = b.done ? (double)(perf_now_ns() - start) / (2.0 * b.done) : 0;
	}
	if (rewind_words(&b, end))
		return -1;
	/* The first was to warm up, if there are others. */
	perf_stat_of(n > 1 ? sample + 1 : sample, n > 1 ? n - 1 : n, &stat);
	return stat.p50;
}

double perf_raw_fork(const int core[2])
{
	struct perf_raw_lines *shared;
	double ns = -1;
	pid_t child;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -1;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (perf_pin(core[1]) == 0)
			perf_raw_bounce(shared, 1, 1, FORK_LIMIT_MS);
		_exit(0);
	}
	if (child > 0 && perf_pin(core[0]) == 0)
		ns = perf_raw_bounce(shared, 0, 1, FORK_LIMIT_MS);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	munmap(shared, sizeof(*shared));
	return ns;
}
