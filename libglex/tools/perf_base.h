/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_base.h - what every benchmark of this project shares: the clock, cores,
 * percentiles, lists of sizes, and the pattern by which data are verified.
 * Knows neither GLEX nor MPI.
 */
#ifndef PERF_BASE_H
#define PERF_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define PERF_MAX_SIZES 64
#define PERF_NO_CORE   (-1)
#define PERF_BUSY      0.3

struct perf_sizes {
	uint32_t count;
	uint64_t size[PERF_MAX_SIZES];
};

struct perf_stat {
	double min, p50, p99, max;
	uint32_t samples;
};

static inline uint64_t perf_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* "8,64,4K:1M": single sizes and ranges that double; K, M and G are powers of 1024.  0, or -1 where it makes no sense.
 */
int perf_parse_sizes(const char *text, struct perf_sizes *sizes_p);

/* The cores this process may run on, ascending.  Returns how many were stored. */
int perf_cores(int *core_p, int max);

/* Binds the calling thread.  0 or -1 with errno; PERF_NO_CORE does nothing. */
int perf_pin(int core);

/* Sorts value[] in place. */
void perf_stat_of(double *value, uint32_t count, struct perf_stat *stat_p);

/* The bytes of message seed: no two neighbouring words and no two seeds look alike. */
void perf_fill(void *buf, size_t len, uint64_t seed);

/* Where buf differs from perf_fill's bytes, or len where it does not. */
size_t perf_differs(const void *buf, size_t len, uint64_t seed);

/* How many other tasks want a core, looking for a tenth of a second.  Above PERF_BUSY no time is to be trusted. */
double perf_busy(void);

/* The CPU's name, "unknown" where the system does not tell. */
void perf_cpu_model(char *buf, size_t len);

#endif /* PERF_BASE_H */
