/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_raw.c - the bounce of one flag between two processes.
 *
 *   side 0   ping = 1 ...................... pong is 2, ping = 3 ...
 *   side 1   ........ ping is 1, pong = 2 ......................... ping is 3 ...
 *
 * ping and pong are one word (RAW) or words of two lines (RAW2).  Values only grow
 * while they bounce; side 1 puts both words back to 0 at the end, and side 0
 * leaves when it has seen that.
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
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES	       25
#define ROUNDS	       500
#define FORK_LIMIT_MS  5000
#define SPINS_PER_LOOK 20000

/* Spins until the flag is want.  0, or -1 when limit_ms passed. */
static int await(_Atomic uint64_t *flag, uint64_t want, uint32_t limit_ms)
{
	uint64_t until = 0;

	for (;;) {
		for (int i = 0; i < SPINS_PER_LOOK; i++)
			if (atomic_load_explicit(flag, memory_order_acquire) == want) /* RAW-A1, RAW-A2 */
				return 0;
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
	int side;
	uint32_t limit_ms;
};

static int bounce_sample(struct bounce *b)
{
	uint64_t value = b->value;

	for (int i = 0; i < ROUNDS; i++, value += 2) {
		if (b->side == 0) {
			atomic_store_explicit(b->ping, value + 1, memory_order_release); /* RAW-R1 */
			if (await(b->pong, value + 2, b->limit_ms))			 /* RAW-A2 */
				return -1;
		} else {
			if (await(b->ping, value + 1, b->limit_ms)) /* RAW-A1 */
				return -1;
			atomic_store_explicit(b->pong, value + 2, memory_order_release); /* RAW-R2 */
		}
	}
	b->value = value;
	return 0;
}

/* One more exchange that leaves both words at 0 for the next bounce. */
static int rewind_words(struct bounce *b)
{
	if (b->side == 0) {
		atomic_store_explicit(b->ping, b->value + 1, memory_order_release); /* RAW-R1 */
		return await(b->pong, 0, b->limit_ms);				    /* RAW-A2 */
	}
	if (await(b->ping, b->value + 1, b->limit_ms)) /* RAW-A1 */
		return -1;
	atomic_store_explicit(b->ping, 0, memory_order_release); /* RAW-R1 */
	atomic_store_explicit(b->pong, 0, memory_order_release); /* RAW-R2 */
	return 0;
}

double perf_raw_bounce(struct perf_raw_lines *shared, int side, int lines, uint32_t limit_ms)
{
	struct bounce b = {.ping = &shared->line[0].flag,
			   .pong = &shared->line[lines - 1].flag,
			   .side = side,
			   .limit_ms = limit_ms};
	struct perf_stat stat;
	double sample[SAMPLES];

	if (bounce_sample(&b)) /* warm-up: the two meet */
		return -1;
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t start = perf_now_ns();

		if (bounce_sample(&b))
			return -1;
		sample[i] = (double)(perf_now_ns() - start) / (2.0 * ROUNDS);
	}
	if (rewind_words(&b))
		return -1;
	perf_stat_of(sample, SAMPLES, &stat);
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
