/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_coll.c - collectives of the two sides and the further members, run by their
 * NICs: the time from beginning one to its end, whole, as side 0 sees it.
 */
#include "perf.h"

#include <stdlib.h>
#include <string.h>

enum what { BARRIER, BCAST, ALLREDUCE };

static enum glex_group_shape shape_of(const struct perf_options *opt)
{
	switch (opt->shape) {
	case PERF_SHAPE_KARY:
		return GLEX_GROUP_KARY;
	case PERF_SHAPE_KNOMIAL:
		return GLEX_GROUP_KNOMIAL;
	case PERF_SHAPE_DIRECT:
		return GLEX_GROUP_DIRECT;
	default:
		return opt->processes <= GLEX_GROUP_DIRECT_MAX ? GLEX_GROUP_DIRECT : GLEX_GROUP_KARY;
	}
}

static glex_group_t open_group(struct perf_side *s)
{
	uint32_t direct = shape_of(s->opt) == GLEX_GROUP_DIRECT ? s->opt->processes : 0;
	glex_group_t group;
	glex_ret_t ret = glex_group_open(s->dev, s->opt->ep_type, direct, &group, &s->shared->cards[s->side]);

	if (ret != GLEX_SUCCESS)
		perf_fail_ret(s, "glex_group_open", ret);
	perf_all_meet(s);
	ret = glex_group_join(group, s->shared->cards, s->opt->processes, (uint32_t)s->side, shape_of(s->opt),
			      s->opt->degree);
	if (ret != GLEX_SUCCESS)
		perf_fail_ret(s, "glex_group_join", ret);
	return group;
}

static glex_ret_t begin(glex_group_t group, const struct perf_plan *plan, enum what what, void *data)
{
	switch (what) {
	case BARRIER:
		return glex_group_barrier(group);
	case BCAST:
		return glex_group_bcast(group, 0, data, plan->size);
	default:
		return glex_group_allreduce(group, data, plan->size / 8, GLEX_COLL_REDUCE_DATA_BITS_64,
					    GLEX_COLL_REDUCE_SUM_UNSIGNED);
	}
}

static void one(struct perf_side *s, glex_group_t group, const struct perf_plan *plan, enum what what, uint64_t number)
{
	union glex_coll_data_loc unit[GLEX_COLL_REDUCE_MAX_DATA_UNITS] = {
		{.uint64_s = {.data = number + (uint64_t)s->side}}};
	void *data = what == BCAST ? (s->side == 0 ? (void *)s->out : (void *)s->in) : (void *)unit;
	uint64_t n = s->opt->processes;
	glex_ret_t ret;

	if (what == BCAST && plan->check && s->side == 0)
		perf_prepare(s, s->out, plan->size, number);
	ret = begin(group, plan, what, data);
	if (ret == GLEX_SUCCESS)
		ret = glex_group_wait(group, (int32_t)s->opt->deadline_s * 1000);
	if (ret != GLEX_SUCCESS)
		perf_fail_ret(s, "a collective", ret);
	if (what == BCAST && plan->check && s->side != 0)
		perf_verify(s, s->in, plan->size, number);
	if (what == ALLREDUCE && unit[0].uint64_s.data != n * number + n * (n - 1) / 2)
		perf_fail(s, "a wrong sum came");
}

static void run(struct perf_side *s, const struct perf_plan *plan, double *sample, enum what what)
{
	glex_group_t group = open_group(s);
	uint64_t number = 0;

	memset(s->out, 0, plan->size);
	perf_all_meet(s);
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		uint64_t start = perf_now_ns();

		for (uint32_t i = 0; i < plan->batch; i++)
			one(s, group, plan, what, ++number);
		if (k >= plan->warmup)
			sample[k - plan->warmup] = (double)(perf_now_ns() - start) / plan->batch;
		perf_progress(s);
	}
	perf_all_meet(s);
	glex_group_close(group);
	perf_all_meet(s); /* nobody's card is written again before */
}

static void barrier(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	run(s, plan, sample, BARRIER);
}

static void bcast(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	run(s, plan, sample, BCAST);
}

static void allreduce(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	run(s, plan, sample, ALLREDUCE);
}

/* The rows of collectives, one after the other: all that the two sides do together besides is not for this one. */
static void join_test(struct perf_side *s, const struct perf_test *test, uint64_t room)
{
	struct perf_sizes sizes;
	struct perf_plan plan;
	double *sample;

	s->test = test->name;
	perf_sizes_of(s->opt, test, &sizes);
	for (uint32_t i = 0; i < sizes.count; i++) {
		s->size = (uint32_t)sizes.size[i];
		if (test->refuse(s, s->size))
			continue;
		perf_make_plan(s->opt, test, s->size, room, &plan);
		sample = calloc(plan.samples, sizeof(*sample));
		if (!sample)
			perf_fail(s, "no memory for %u samples", plan.samples);
		test->run(s, &plan, sample);
		free(sample);
	}
}

void perf_run_member(const struct perf_options *opt, struct perf_shared *shared, int index)
{
	struct perf_side s = {.side = index, .opt = opt, .shared = shared, .sock = -1};
	uint64_t room = perf_room(opt);
	const struct perf_test *test = NULL;
	const char *at = opt->tests;

	perf_member_open(&s, room + 4096);
	while (perf_next_test(opt, &at, &test))
		if (test->collective)
			join_test(&s, test, room);
	perf_member_close(&s);
}

static const char *refuse_barrier(const struct perf_side *s, uint32_t size)
{
	(void)s;
	return size == 8 ? NULL : "a barrier has no size: 8 stands for it";
}

static const char *refuse_allreduce(const struct perf_side *s, uint32_t size)
{
	(void)s;
	return size % 8 == 0 && size <= 8 * GLEX_COLL_REDUCE_MAX_DATA_UNITS ? NULL : "1 to 6 values of 8 bytes";
}

const struct perf_test perf_barrier = {
	.name = "barrier",
	.help = "barrier of all processes by the NICs",
	.kind = PERF_LATENCY,
	.collective = true,
	.sizes = "8",
	.refuse = refuse_barrier,
	.run = barrier,
};

const struct perf_test perf_bcast = {
	.name = "bcast",
	.help = "broadcast by the NICs",
	.kind = PERF_LATENCY,
	.collective = true,
	.sizes = "8,64,112",
	.refuse = perf_refuse_mp,
	.run = bcast,
};

const struct perf_test perf_allreduce = {
	.name = "allreduce",
	.help = "sum of values of 8 bytes by the NICs",
	.kind = PERF_LATENCY,
	.collective = true,
	.sizes = "8,48",
	.refuse = refuse_allreduce,
	.run = allreduce,
};
