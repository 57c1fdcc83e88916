/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_plan.c - how many messages, in how many samples, and where they lie.
 *
 * Both sides work it out for themselves from the same options.
 */
#include "perf_stream.h"

#include <string.h>

#define MAX_SAMPLES	400U
#define CHECKED_BYTES	(16U << 20)    /* room for the slots of --check */
#define BANDWIDTH_BYTES (512ULL << 20) /* moved per row unless -n says otherwise */

static uint32_t clamp(uint64_t value, uint32_t low, uint32_t high)
{
	return value < low ? low : value > high ? high : (uint32_t)value;
}

static uint64_t stride_of(uint64_t size)
{
	uint64_t unit = size < 4096 ? 64 : 4096;

	return (size + unit - 1) / unit * unit;
}

void perf_sizes_of(const struct perf_options *opt, const struct perf_test *test, struct perf_sizes *sizes_p)
{
	if (opt->sizes.count)
		*sizes_p = opt->sizes;
	else
		perf_parse_sizes(test->sizes, sizes_p);
}

static uint64_t largest_size(const struct perf_options *opt)
{
	const struct perf_test *test = NULL;
	const char *at = opt->tests;
	uint64_t largest = 1;

	while (perf_next_test(opt, &at, &test)) {
		struct perf_sizes sizes;

		perf_sizes_of(opt, test, &sizes);
		for (uint32_t i = 0; i < sizes.count; i++)
			if (sizes.size[i] > largest)
				largest = sizes.size[i];
	}
	return largest;
}

uint64_t perf_room(const struct perf_options *opt)
{
	uint64_t usual = opt->check ? CHECKED_BYTES : 1U << 20;
	uint64_t least = (opt->check ? PERF_AHEAD : 1) * stride_of(largest_size(opt));

	return least > usual ? least : usual;
}

/* How long a row may take by default: round trips up to 8 KiB are a microsecond, from there size decides. */
static uint64_t default_messages(const struct perf_test *test, uint32_t size)
{
	switch (test->kind) {
	case PERF_LATENCY:
		return clamp((200ULL << 20) / size, 200, 20000);
	case PERF_BANDWIDTH:
		return clamp(BANDWIDTH_BYTES / size, 640, 200000);
	default:
		return 2000000;
	}
}

/* Tests whose messages take long by nature: a sample each, and no more than they ask for. */
static void plan_singly(const struct perf_options *opt, const struct perf_test *test, struct perf_plan *plan)
{
	plan->window = plan->batch = plan->slots = 1;
	plan->warmup = opt->warmup && opt->warmup < 2 ? opt->warmup : 2;
	plan->samples = opt->iterations && opt->iterations < test->samples ? opt->iterations : test->samples;
}

static void plan_slots(const struct perf_test *test, uint64_t room, struct perf_plan *plan)
{
	uint64_t fit = room / plan->stride;

	plan->slots = 1;
	if (test->kind == PERF_LATENCY) {
		if (plan->check)
			plan->slots = clamp(fit, 1, 16);
	} else if (plan->check || test->kind == PERF_RATE) {
		plan->window = clamp(fit / PERF_AHEAD, 1, plan->window);
		plan->slots = PERF_AHEAD * plan->window;
	}
}

void perf_make_plan(const struct perf_options *opt, const struct perf_test *test, uint32_t size, uint64_t room,
		    struct perf_plan *plan)
{
	uint64_t messages = opt->iterations ? opt->iterations : default_messages(test, size);
	uint64_t warmup = opt->warmup ? opt->warmup : messages / 10;
	uint64_t units;

	memset(plan, 0, sizeof(*plan));
	plan->size = size;
	plan->stride = (uint32_t)stride_of(size);
	plan->check = opt->check;
	if (test->one_at_a_time) {
		plan_singly(opt, test, plan);
		return;
	}
	plan->window = test->window ? test->window : 1;
	if (test->window && opt->window)
		plan->window = opt->window;
	plan_slots(test, room, plan);
	units = (messages + plan->window - 1) / plan->window;
	/* At least 20 samples as long as there are as many messages, and up to 100 round trips in each. */
	plan->batch = clamp(units / 20, 1, 100);
	if (units / plan->batch > MAX_SAMPLES)
		plan->batch = clamp(units / MAX_SAMPLES, 1, UINT32_MAX);
	plan->samples = clamp(units / plan->batch, 1, 2 * MAX_SAMPLES);
	plan->warmup = clamp(warmup / plan->window / plan->batch, 1, MAX_SAMPLES);
}
