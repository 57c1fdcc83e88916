/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_out.c - how results look: a table for people, JSON lines for programs.
 *
 * The table's remarks start with '#'.  With --json stdout holds nothing but one
 * object a row, and each object says by itself how it was measured.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "perf.h"

#include <jansson.h>
#include <stdio.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static const char *ep_type_name(const struct perf_options *opt)
{
	return opt->ep_type == GLEX_EP_TYPE_FAST ? "fast" : "normal";
}

static const char *memory_name(const struct perf_options *opt)
{
	static const char *const name[] = {"alloc", "malloc", "huge"};

	return name[opt->memory];
}

static const char *memory_words(const struct perf_options *opt)
{
	static const char *const words[] = {"glex_alloc, mapped by the other side",
					    "private, small pages, reached by attaching",
					    "private, huge pages, reached by attaching"};

	return words[opt->memory];
}

static void cores_name(const struct perf_options *opt, char *buf, size_t len)
{
	if (opt->core[0] == PERF_NO_CORE)
		snprintf(buf, len, "none");
	else
		snprintf(buf, len, "%d,%d", opt->core[0], opt->core[1]);
}

/* Of both directions, where data go both ways. */
static double rate_Mps(const struct perf_row *row)
{
	return row->ns.p50 > 0 ? (row->test->both_ways ? 2e3 : 1e3) / row->ns.p50 : 0;
}

double perf_MBps(const struct perf_row *row, double ns)
{
	return ns > 0 ? (row->test->both_ways ? 2e3 : 1e3) / ns * row->plan->size : 0;
}

static double bw_MBps(const struct perf_row *row)
{
	return perf_MBps(row, row->ns.p50);
}

void perf_out_head(const struct perf_options *opt)
{
	char cpu[128], cores[32];

	if (opt->json)
		return;
	perf_cpu_model(cpu, sizeof(cpu));
	cores_name(opt, cores, sizeof(cores));
	printf("# glex_perf %s\n", PACKAGE_VERSION);
	printf("# cpu: %s; the two sides run on cores: %s\n", cpu, cores);
	printf("# endpoints: %s; memory: %s (%s); data %s\n", ep_type_name(opt), memory_name(opt), memory_words(opt),
	       opt->check ? "verified, which the times include" : "not verified");
	printf("# a sample is the mean of a batch; median, p99, min and max are over samples, per message\n");
	printf("# one way; of a GET until its data is there; of a window its time divided by its messages\n");
	printf("# RAW: a flag bounced between the two cores over one cache line, in ns, one way, beside each row;\n");
	printf("# RAW2: the same over one line each way; RING: a record through a bare queue of one-line slots\n");
	if (opt->busy > PERF_BUSY)
		printf("# NOTE: %.1f other tasks were running on this machine: do not trust these times\n", opt->busy);
	fflush(stdout);
}

static const char *last_column(const struct perf_options *opt, const struct perf_test *test)
{
	if (test->kind == PERF_BANDWIDTH)
		return opt->memory == PERF_MEMORY_ALLOC ? "of memcpy" : "of attach";
	return test->one_at_a_time ? "of futex" : "";
}

void perf_out_test(const struct perf_options *opt, const struct perf_test *test)
{
	if (opt->json)
		return;
	printf("\n# %s: %s\n", test->name, test->help);
	if (test->collective)
		printf("# processes: %u\n", opt->processes);
	if (test->collective && opt->degree)
		printf("# degree: %u\n", opt->degree);
	if (test->kind == PERF_FIGURE)
		printf("# %8s %10s %10s %10s %10s  %s\n", "bytes", "median", "p99", "min", "max", test->unit);
	else
		printf("# %8s %10s %9s %10s %10s %10s %10s %10s %7s %7s %7s %s\n", "bytes", "median us", "x RAW",
		       "p99 us", "min us", "max us", "MB/s", "M msg/s", "RAW", "RAW2", "RING", last_column(opt, test));
	fflush(stdout);
}

void perf_out_left_out(const struct perf_options *opt, const struct perf_test *test, uint64_t size, const char *why)
{
	if (opt->json)
		fprintf(stderr, "glex_perf: %s: %llu bytes left out: %s\n", test->name, (unsigned long long)size, why);
	else
		printf("# %llu bytes left out: %s\n", (unsigned long long)size, why);
}

static void print_figure(const struct perf_row *row)
{
	printf("%10u %10.4g %10.4g %10.4g %10.4g  %s", row->plan->size, row->ns.p50, row->ns.p99, row->ns.min,
	       row->ns.max, row->test->unit);
}

static void print_times(const struct perf_row *row)
{
	char per_raw[32] = "-"; /* of a stream it would say nothing */

	if (row->test->kind == PERF_LATENCY)
		snprintf(per_raw, sizeof(per_raw), "%.2f", row->ns.p50 / row->raw_ns);
	printf("%10u %10.4f %9s %10.4f %10.4f %10.4f %10.1f %10.4f %7.1f %7.1f %7.1f", row->plan->size,
	       row->ns.p50 / 1e3, per_raw, row->ns.p99 / 1e3, row->ns.min / 1e3, row->ns.max / 1e3, bw_MBps(row),
	       rate_Mps(row), row->raw_ns, row->raw2_ns, row->ring_ns);
	if (row->limit > 0)
		printf(" %9.2f", row->of_limit);
}

static void print_table(const struct perf_row *row)
{
	if (row->test->kind == PERF_FIGURE)
		print_figure(row);
	else
		print_times(row);
	for (int i = 0; i < PERF_EXTRAS && row->extra[i].name; i++)
		printf("  %s %.4g", row->extra[i].name, row->extra[i].value);
	putchar('\n');
}

static uint64_t messages_measured(const struct perf_plan *plan)
{
	return (uint64_t)plan->samples * plan->batch * plan->window;
}

/* How the row came about, the same for every kind. */
static json_t *circumstances(const struct perf_options *opt, const struct perf_row *row)
{
	char cpu[128], cores[32];
	json_t *object;

	perf_cpu_model(cpu, sizeof(cpu));
	cores_name(opt, cores, sizeof(cores));
	object = json_pack("{s:I s:I s:I s:f s:f s:f s:f s:s s:s s:b s:s s:s s:s}",				    /**/
			   "samples", (json_int_t)row->ns.samples,						    /**/
			   "messages", (json_int_t)messages_measured(row->plan),				    /**/
			   "window", (json_int_t)row->plan->window, "raw_ns", row->raw_ns, "raw2_ns", row->raw2_ns, /**/
			   "ring_ns", row->ring_ns, "busy", opt->busy, "endpoint", ep_type_name(opt), "memory",
			   memory_name(opt), /**/
			   "checked", (int)opt->check, "cores", cores, "cpu", cpu, "version", PACKAGE_VERSION);
	for (int i = 0; object && i < PERF_EXTRAS && row->extra[i].name; i++)
		json_object_set_new(object, row->extra[i].name, json_real(row->extra[i].value));
	if (object && row->test->collective)
		json_object_set_new(object, "processes", json_integer(opt->processes));
	if (object && row->test->collective && opt->degree)
		json_object_set_new(object, "degree", json_integer(opt->degree));
	if (object && row->limit > 0) {
		json_object_set_new(object, "limit", json_real(row->limit));
		json_object_set_new(object, "of_limit", json_real(row->of_limit));
		json_object_set_new(object, "limit_name", json_string(row->limit_name));
	}
	return object;
}

static json_t *figures(const struct perf_row *row)
{
	if (row->test->kind == PERF_FIGURE)
		return json_pack("{s:s s:I s:s s:f s:f s:f s:f}", "test", row->test->name, "size",
				 (json_int_t)row->plan->size, "unit", row->test->unit, "value", row->ns.p50, "p99",
				 row->ns.p99, "min", row->ns.min, "max", row->ns.max);
	return json_pack("{s:s s:I s:f s:f s:f s:f s:f s:f s:f s:f}", "test", row->test->name, "size",
			 (json_int_t)row->plan->size, "lat_us", row->ns.p50 / 1e3, "bw_MBps", bw_MBps(row), "rate_Mps",
			 rate_Mps(row), "lat_per_raw", row->ns.p50 / row->raw_ns, "p50_us", row->ns.p50 / 1e3, "p99_us",
			 row->ns.p99 / 1e3, "min_us", row->ns.min / 1e3, "max_us", row->ns.max / 1e3);
}

void perf_out_row(const struct perf_options *opt, const struct perf_row *row)
{
	json_t *object, *more;

	if (!opt->json) {
		print_table(row);
		fflush(stdout);
		return;
	}
	object = figures(row);
	more = circumstances(opt, row);
	if (object && json_object_update(object, more) == 0 &&
	    json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) == 0)
		putchar('\n');
	json_decref(object);
	json_decref(more);
	fflush(stdout);
}
