/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_raw.h - RAW, the yardstick of every latency here: the one-way time of an
 * 8-byte flag bounced between two processes over one shared cache line.
 *
 * Two virtual CPUs are neighbours in one run and far apart in the next, and every
 * latency scales with that.  A latency is worth something only together with the
 * RAW of the same run.
 */
#ifndef PERF_RAW_H
#define PERF_RAW_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

/* Shared by the two sides and used for nothing else; zero at first.  128: the line and its prefetched neighbour. */
struct perf_raw_line {
	alignas(128) _Atomic uint64_t flag;
	uint8_t pad[120];
};

/*
 * Both sides call it at about the same time, side 0 and side 1.  Returns
 * nanoseconds one way (the same on both sides within the noise), or -1 if the
 * other side did not answer for limit_ms.
 */
double perf_raw_bounce(struct perf_raw_line *line, int side, uint32_t limit_ms);

/* The same with a child process of its own; core: where the two run, PERF_NO_CORE for anywhere.  -1: failed. */
double perf_raw_fork(const int core[2]);

#endif /* PERF_RAW_H */
