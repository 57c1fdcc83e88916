/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_raw.c - the bounce of one flag between two processes.
 *
 *   side 0   store 1 ........ load 2, store 3 ........ load 4 ...
 *   side 1   ........ load 1, store 2 ........ load 3, store 4 ...
 *
 * The value only grows while the two bounce and is put back to 0 by side 1,
 * which is the last to write; side 0 leaves when it has seen that.
 *
 * label    access                      order     pairs     says
 * RAW-R1   side 0  flag = odd          release   RAW-A1    its turn is over
 * RAW-A1   side 1  load flag           acquire   RAW-R1
 * RAW-R2   side 1  flag = even         release   RAW-A2    its turn is over
 * RAW-A2   side 0  load flag           acquire   RAW-R2
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

static int bounce_sample(struct perf_raw_line *line, int side, uint64_t *value_p, uint32_t limit_ms)
{
	uint64_t value = *value_p;

	for (int i = 0; i < ROUNDS; i++, value += 2) {
		if (side == 0) {
			atomic_store_explicit(&line->flag, value + 1, memory_order_release); /* RAW-R1 */
			if (await(&line->flag, value + 2, limit_ms))			     /* RAW-A2 */
				return -1;
		} else {
			if (await(&line->flag, value + 1, limit_ms)) /* RAW-A1 */
				return -1;
			atomic_store_explicit(&line->flag, value + 2, memory_order_release); /* RAW-R2 */
		}
	}
	*value_p = value;
	return 0;
}

/* One more exchange that leaves the flag at 0 for the next bounce. */
static int rewind_flag(struct perf_raw_line *line, int side, uint64_t value, uint32_t limit_ms)
{
	if (side == 0) {
		atomic_store_explicit(&line->flag, value + 1, memory_order_release); /* RAW-R1 */
		return await(&line->flag, 0, limit_ms);				     /* RAW-A2 */
	}
	if (await(&line->flag, value + 1, limit_ms)) /* RAW-A1 */
		return -1;
	atomic_store_explicit(&line->flag, 0, memory_order_release); /* RAW-R2 */
	return 0;
}

double perf_raw_bounce(struct perf_raw_line *line, int side, uint32_t limit_ms)
{
	struct perf_stat stat;
	double sample[SAMPLES];
	uint64_t value = 0;

	if (bounce_sample(line, side, &value, limit_ms)) /* warm-up: the two meet */
		return -1;
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t start = perf_now_ns();

		if (bounce_sample(line, side, &value, limit_ms))
			return -1;
		sample[i] = (double)(perf_now_ns() - start) / (2.0 * ROUNDS);
	}
	if (rewind_flag(line, side, value, limit_ms))
		return -1;
	perf_stat_of(sample, SAMPLES, &stat);
	return stat.p50;
}

double perf_raw_fork(const int core[2])
{
	struct perf_raw_line *line;
	double ns = -1;
	pid_t child;

	line = mmap(NULL, sizeof(*line), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (line == MAP_FAILED)
		return -1;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (perf_pin(core[1]) == 0)
			perf_raw_bounce(line, 1, FORK_LIMIT_MS);
		_exit(0);
	}
	if (child > 0 && perf_pin(core[0]) == 0)
		ns = perf_raw_bounce(line, 0, FORK_LIMIT_MS);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	munmap(line, sizeof(*line));
	return ns;
}
