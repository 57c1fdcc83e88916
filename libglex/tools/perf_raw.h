/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_raw.h - the yardsticks of every latency here: an 8-byte flag bounced
 * between two processes, one way.
 *
 *   RAW    over one cache line that both write: the line itself wanders, and who
 *          has read it may write it.  The least there can be.
 *   RAW2   over one line each way, one side always writing, the other always
 *          reading, as in every queue: the writer must first take the line from
 *          the reader.  Between RAW and a bit more than 2 RAW, as the machine is made.
 *
 * Two virtual CPUs are neighbours in one run and far apart in the next, and every
 * latency scales with that.  A latency is worth something only together with the
 * yardsticks of the same run.
 */
#ifndef PERF_RAW_H
#define PERF_RAW_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

/* Shared by the two sides and used for nothing else; zero at first.  128: a line and its prefetched neighbour. */
struct perf_raw_lines {
	struct {
		alignas(128) _Atomic uint64_t flag;
		uint8_t pad[120];
	} line[2];
};

/*
 * Both sides call it at about the same time, side 0 and side 1; lines: 1 for
 * RAW, 2 for RAW2.  Returns nanoseconds one way (the same on both sides within
 * the noise), or -1 if the other side did not answer for limit_ms.
 */
double perf_raw_bounce(struct perf_raw_lines *shared, int side, int lines, uint32_t limit_ms);

/* RAW with a child process of its own; core: where the two run, PERF_NO_CORE for anywhere.  -1: failed. */
double perf_raw_fork(const int core[2]);

#endif /* PERF_RAW_H */
