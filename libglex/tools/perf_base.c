/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_base.c - clock, cores, percentiles, sizes and data pattern of the benchmarks.
 * No state; every function may be called from anywhere.
 */
#include "perf_base.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_LOOKS 10

static int parse_one(const char *text, char **end_p, uint64_t *size_p)
{
	unsigned shift = 0;
	uint64_t n;

	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	n = strtoull(text, end_p, 10);
	switch (**end_p) {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	default:
		break;
	}
	if (shift)
		(*end_p)++;
	if (errno || n > (UINT64_MAX >> shift))
		return -1;
	*size_p = n << shift;
	return 0;
}

static int add_range(struct perf_sizes *sizes, uint64_t first, uint64_t last)
{
	if (first == 0 || last < first)
		return -1;
	for (uint64_t n = first; n <= last; n *= 2) {
		if (sizes->count == PERF_MAX_SIZES)
			return -1;
		sizes->size[sizes->count++] = n;
		if (n > UINT64_MAX / 2)
			break;
	}
	return 0;
}

int perf_parse_sizes(const char *text, struct perf_sizes *sizes_p)
{
	struct perf_sizes sizes = {0};

	for (;;) {
		uint64_t first, last;
		char *end;

		if (parse_one(text, &end, &first))
			return -1;
		last = first;
		if (*end == ':' && parse_one(end + 1, &end, &last))
			return -1;
		if (add_range(&sizes, first, last))
			return -1;
		if (*end == '\0')
			break;
		if (*end != ',')
			return -1;
		text = end + 1;
	}
	*sizes_p = sizes;
	return 0;
}

int perf_cores(int *core_p, int max)
{
	cpu_set_t set;
	int count = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	for (int core = 0; core < CPU_SETSIZE && count < max; core++)
		if (CPU_ISSET(core, &set))
			core_p[count++] = core;
	return count;
}

int perf_pin(int core)
{
	cpu_set_t set;

	if (core == PERF_NO_CORE)
		return 0;
	if (core < 0 || core >= CPU_SETSIZE) {
		errno = EINVAL;
		return -1;
	}
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void perf_stat_of(double *value, uint32_t count, struct perf_stat *stat_p)
{
	memset(stat_p, 0, sizeof(*stat_p));
	if (count == 0)
		return;
	qsort(value, count, sizeof(*value), compare);
	stat_p->min = value[0];
	stat_p->p50 = count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
	stat_p->p99 = value[((uint64_t)count * 99 + 99) / 100 - 1];
	stat_p->max = value[count - 1];
	stat_p->samples = count;
}

static inline uint64_t pattern(uint64_t seed, uint64_t i)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15U + i * 0xd1342543de82ef95U;

	return x ^ (x >> 29);
}

void perf_fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *out = buf;
	size_t i;

	for (i = 0; (i + 1) * 8 <= len; i++) {
		uint64_t word = pattern(seed, i);

		memcpy(out + i * 8, &word, 8);
	}
	if (len % 8) {
		uint64_t word = pattern(seed, i);

		memcpy(out + i * 8, &word, len % 8);
	}
}

/* The first byte of a word that is wrong, or len. */
static size_t differs_in(const uint8_t *is, uint64_t word, size_t len)
{
	uint8_t should[8];
	size_t at = 0;

	memcpy(should, &word, sizeof(should));
	while (at < len && is[at] == should[at])
		at++;
	return at;
}

size_t perf_differs(const void *buf, size_t len, uint64_t seed)
{
	const uint8_t *in = buf;
	size_t at;

	for (at = 0; at + 8 <= len; at += 8) {
		uint64_t word;

		memcpy(&word, in + at, 8);
		if (word != pattern(seed, at / 8))
			return at + differs_in(in + at, pattern(seed, at / 8), 8);
	}
	return at + differs_in(in + at, pattern(seed, at / 8), len - at);
}

double perf_busy(void)
{
	struct timespec nap = {.tv_nsec = 10000000};
	unsigned sum = 0, looks = 0;

	for (int i = 0; i < BUSY_LOOKS; i++) {
		FILE *f = fopen("/proc/loadavg", "re");
		unsigned running;

		/* The fourth word is running/all; one of the running is this process. */
		if (f && fscanf(f, "%*s %*s %*s %u/", &running) == 1 && running) {
			sum += running - 1;
			looks++;
		}
		if (f)
			fclose(f);
		nanosleep(&nap, NULL);
	}
	return looks ? (double)sum / looks : 0;
}

void perf_cpu_model(char *buf, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, len, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(buf, len, "%s", colon[1] == ' ' ? colon + 2 : colon + 1);
		break;
	}
	if (f)
		fclose(f);
}
