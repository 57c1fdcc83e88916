/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_stage.c - long reductions and exchanges through memory that members keep for each other: lengths and units
 * about all limits, in place and not, among other collectives; where there is no such memory; what is refused; who begins
 * another one; a member that dies.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/api/group.h"

#define STAGE 20000u
#define MOST  100000u

static const struct {
	uint32_t len, unit;
} lens[] = {
	{1, 1},	      {8, 8},	  {504, 8},   {505, 1},	   {4096, 16},	  {12000, 24}, {12288, 8}, {24576, 8},
	{24584, 8},   {20000, 1}, {20001, 1}, {19992, 24}, {MOST, 4},	  {99996, 12}, {48, 24},   {1248, 1248},
	{2496, 1248}, {64, 64},	  {65, 65},   {3, 1},	   {81000, 1000}, {112, 1},    {113, 1},
};

#define LENS (sizeof(lens) / sizeof(lens[0]))

static uint32_t slot_of(const struct crowd *c)
{
	return (STAGE + c->n - 1) / c->n;
}

/* One byte of three is the first member's, one the last's, one all members' sum: associative, and not commutative. */
static void merge(const unsigned char *left, unsigned char *right, uint32_t len, uint32_t at)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		switch ((at + i) % 3) {
		case 0:
			right[i] = left[i];
			break;
		case 1:
			break;
		default:
			right[i] = (unsigned char)(left[i] + right[i]);
		}
}

/* Units of 8 bytes or more begin with the number of their first byte, as all members' do; of shorter ones it is the sum. */
static void combine(const void *left, void *right, uint32_t len, void *arg)
{
	const unsigned char *from = left;
	unsigned char *to = right;
	uint32_t unit = *(const uint32_t *)arg, i, at, other;

	SURE(len > 0 && len % unit == 0);
	for (i = 0; unit < 8 && i < len; i++)
		to[i] = (unsigned char)(from[i] + to[i]);
	for (i = 0; unit >= 8 && i < len; i += unit) {
		memcpy(&at, from + i, sizeof(at));
		memcpy(&other, to + i, sizeof(other));
		SURE(at == other); /* the same unit of each, and not divided */
		merge(from + i + 4, to + i + 4, unit - 4, at + 4);
	}
}

static void fill_units(unsigned char *data, uint32_t len, uint32_t unit, uint32_t seed)
{
	uint32_t i;

	fill(data, len, seed);
	for (i = 0; unit >= 8 && i < len; i += unit)
		memcpy(data + i, &i, sizeof(i));
}

/* Of what everybody has of `all` bytes: those from `at` on. */
static void expect_merged(const struct crowd *c, const unsigned char *got, uint32_t all, uint32_t at, uint32_t len,
			  uint32_t unit, uint32_t round)
{
	unsigned char *left = malloc(all), *right = malloc(all), *swap;
	uint32_t i;

	fill_units(left, all, unit, round * MAX);
	for (i = 1; i < c->n; i++) {
		fill_units(right, all, unit, round * MAX + i);
		combine(left, right, all, &unit);
		swap = left;
		left = right;
		right = swap;
	}
	SURE(memcmp(got, left + at, len) == 0);
	free(left);
	free(right);
}

static void end_it(const struct crowd *c)
{
	OK(c->tests ? wait_or_test(true) : glex_group_wait(group, WAIT_MS));
}

/* root: n: to all. */
static void reduce(const struct crowd *c, uint32_t root, uint32_t len, uint32_t unit, uint32_t round)
{
	unsigned char *part = malloc(len + 1), *result = malloc(len + 1);
	bool in_place = (round + c->me) % 3 == 0, wanted = root == c->n || root == c->me;
	unsigned char *to = in_place ? part : result;

	memset(part, 0xee, len + 1);
	memset(result, 0xee, len + 1);
	fill_units(part, len, unit, round * MAX + c->me);
	if (root == c->n)
		OK(glex_group_allreduce_long(group, part, to, len, unit, combine, &unit));
	else
		OK(glex_group_reduce_long(group, root, part, wanted || round % 2 ? to : NULL, len, unit, combine,
					  &unit));
	RETURNS(glex_group_allreduce_long(group, part, result, len, unit, combine, &unit), GLEX_BUSY);
	RETURNS(glex_group_barrier(group), GLEX_BUSY);
	end_it(c);
	if (wanted)
		expect_merged(c, to, len, 0, len, unit, round);
	else
		SURE(result[0] == 0xee && result[len - 1] == 0xee); /* nothing is put there */
	SURE(part[len] == 0xee && result[len] == 0xee);
	free(part);
	free(result);
}

static void scatter(const struct crowd *c, uint32_t len, uint32_t unit, uint32_t round)
{
	uint32_t all = len * c->n;
	unsigned char *part = malloc(all + 1), *result = malloc(len + 1);
	bool in_place = (round + c->me) % 3 == 0;

	part[all] = result[len] = 0xee;
	fill_units(part, all, unit, round * MAX + c->me);
	OK(glex_group_reduce_scatter(group, part, in_place ? part : result, len, unit, combine, &unit));
	end_it(c);
	expect_merged(c, in_place ? part : result, all, len * c->me, len, unit, round);
	SURE(part[all] == 0xee && result[len] == 0xee);
	free(part);
	free(result);
}

/* That of one for another; with a gather, that of one. */
static void fill_block(unsigned char *block, uint32_t len, uint32_t from, uint32_t to, uint32_t round)
{
	fill(block, len, (round * MAX + from) * MAX + to);
}

static void exchange(const struct crowd *c, bool gathers, uint32_t len, uint32_t round)
{
	uint32_t all = len * c->n, i;
	unsigned char *data = malloc(all + 1), *result = malloc(all + 1), *want = malloc(len);
	bool in_place = (round + c->me) % 3 == 0;
	unsigned char *to = in_place ? data : result;

	memset(result, 0xee, all + 1);
	data[all] = 0xee;
	for (i = 0; i < c->n; i++)
		fill_block(data + i * len, len, c->me, gathers ? c->n : i, round);
	if (gathers)
		OK(glex_group_allgather_long(group, data + c->me * len, to, len));
	else
		OK(glex_group_alltoall(group, data, to, len));
	end_it(c);
	for (i = 0; i < c->n; i++) {
		fill_block(want, len, i, gathers ? c->n : c->me, round);
		SURE(memcmp(to + i * len, want, len) == 0);
	}
	SURE(data[all] == 0xee && result[all] == 0xee);
	free(data);
	free(result);
	free(want);
}

static uint32_t any_len(uint32_t from, uint32_t to, uint32_t most, uint32_t round)
{
	uint32_t x = (from * 31 + to * 17 + round) * 2654435761u;

	return x >> 29 == 0 ? 0 : x >> 29 == 1 ? most : (x >> 4) % (most + 1);
}

/* Blocks of 0 to most bytes, each with a byte behind it. */
static void exchange_any(const struct crowd *c, uint32_t most, uint32_t round)
{
	struct glex_group_block from[MAX] = {{0}}, into[MAX] = {{0}};
	bool in_place = (round + c->me) % 3 == 0;
	unsigned char *want = malloc(most + 1);
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		from[i].len = any_len(c->me, i, most, round);
		into[i].len = any_len(i, c->me, most, round);
		from[i].data = malloc((from[i].len > into[i].len ? from[i].len : into[i].len) + 1);
		into[i].data = in_place ? from[i].data : malloc(into[i].len + 1);
		((unsigned char *)into[i].data)[into[i].len] = 0xee;
		fill_block(from[i].data, (uint32_t)from[i].len, c->me, i, round);
		if (in_place && from[i].len <= into[i].len)
			((unsigned char *)into[i].data)[into[i].len] = 0xee;
	}
	OK(glex_group_alltoallv(group, from, into, most));
	RETURNS(glex_group_alltoallv(group, from, into, most), GLEX_BUSY);
	end_it(c);
	for (i = 0; i < c->n; i++) {
		fill_block(want, (uint32_t)into[i].len, i, c->me, round);
		SURE(memcmp(into[i].data, want, into[i].len) == 0);
		SURE((in_place && from[i].len > into[i].len) || ((unsigned char *)into[i].data)[into[i].len] == 0xee);
		if (!in_place)
			free(into[i].data);
		free(from[i].data);
	}
	free(want);
}

/* The last member has one that is longer than most. */
static void exchange_too_long(const struct crowd *c, uint32_t most)
{
	struct glex_group_block from[MAX] = {{0}}, into[MAX] = {{0}};
	unsigned char *data = malloc(most + 1), *to = malloc(c->n * (most + 1));
	uint32_t i;

	memset(data, 1, most + 1);
	memset(to, 0xee, c->n * (most + 1));
	for (i = 0; i < c->n; i++) {
		from[i] = (struct glex_group_block){data, c->me == c->n - 1 ? most + 1 : most};
		into[i] = (struct glex_group_block){to + i * (most + 1), i == c->n - 1 ? most + 1 : most};
	}
	OK(glex_group_alltoallv(group, from, into, most));
	RETURNS(c->tests ? wait_or_test(true) : glex_group_wait(group, WAIT_MS), GLEX_ACCESS_ERR);
	for (i = 0; i < c->n * (most + 1); i++)
		SURE(to[i] == 0xee);
	free(data);
	free(to);
}

static void make_stage(const struct crowd *c, glex_ret_t want)
{
	OK(glex_group_stage(group, STAGE));
	RETURNS(glex_group_stage(group, STAGE), GLEX_BUSY);
	RETURNS(c->tests ? wait_or_test(true) : glex_group_wait(group, WAIT_MS), want);
	RETURNS(glex_group_stage(group, STAGE), GLEX_INVALID_PARAM);
}

static void reducing_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t i, round = 0;

	meet_all(fd, c);
	make_stage(c, GLEX_SUCCESS);
	for (i = 0; i < LENS; i++) {
		if (lens[i].unit > slot_of(c))
			continue;
		reduce(c, c->n, lens[i].len, lens[i].unit, round++);
		reduce(c, c->n, lens[i].len, lens[i].unit, round++);
		reduce(c, i % c->n, lens[i].len, lens[i].unit, round++);
		sum_up(c, i, true);
		scatter(c, lens[i].len, lens[i].unit, round++);
		spread_long(c, round);
		exchange(c, true, lens[i].len, round++);
		exchange(c, false, lens[i].len, round++);
		exchange_any(c, lens[i].len, round++);
		exchange_too_long(c, lens[i].len);
		exchange(c, false, lens[i].len, round++);
		exchange_any(c, lens[i].len / 2, round++);
		reduce(c, (i + 1) % c->n, lens[i].len, lens[i].unit, round++);
		scatter(c, lens[i].len, lens[i].unit, round++);
	}
	close_group(); /* others may not have ended yet */
}

static const struct crowd crowds[] = {
	{.n = 1, .shape = GLEX_GROUP_DIRECT},
	{.n = 2, .shape = GLEX_GROUP_DIRECT},
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .tests = true},
	{.n = 3, .shape = GLEX_GROUP_DIRECT},
	{.n = 5, .shape = GLEX_GROUP_DIRECT, .tests = true},
	{.n = 8, .shape = GLEX_GROUP_DIRECT},
	{.n = 16, .shape = GLEX_GROUP_DIRECT},
};

START_TEST(long_ones__of_processes__every_length_and_unit)
{
	struct crowd c = crowds[_i];

	run_all(&c, reducing_member);
}
END_TEST

/* All learn it, and the group goes on. */
static void refused_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	unsigned char byte[1] = {0};
	uint32_t unit = 1;

	meet_all(fd, c);
	make_stage(c, GLEX_ACCESS_ERR);
	RETURNS(glex_group_allreduce_long(group, byte, byte, 1, 1, combine, &unit), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_group_alltoall(group, byte, byte, 1), GLEX_NOT_IMPLEMENTED);
	take_part(c);
	close_group();
}

static const struct crowd refused[] = {
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 5, .shape = GLEX_GROUP_DIRECT, .unregistered = true},
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
	{.n = 6, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
};

START_TEST(stage__cannot_be_had__all_learn_it)
{
	struct crowd c = refused[_i];

	if (c.shuffled)
		shuffle("stage-shuffled");
	run_all(&c, refused_member);
}
END_TEST

START_TEST(stage__wrong_arguments__invalid)
{
	struct crowd c = {.n = 1, .shape = GLEX_GROUP_DIRECT};
	unsigned char part[64] = {1}, to[64];
	struct glex_group_block block = {part, 64};
	struct glex_group_card card;
	uint32_t unit = 1;

	open_group(&card, &c);
	RETURNS(glex_group_stage(group, 64), GLEX_INVALID_PARAM); /* not joined */
	RETURNS(glex_group_alltoallv(group, &block, &block, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_stage(NULL, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(NULL, part, to, 64, 1, combine, &unit), GLEX_INVALID_PARAM);
	OK(glex_group_join(group, &card, 1, 0, GLEX_GROUP_DIRECT, 0));
	RETURNS(glex_group_allreduce_long(group, part, to, 64, 1, combine, &unit), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_group_stage(group, 0), GLEX_INVALID_PARAM);
	RETURNS(glex_group_stage(group, GLEX_GROUP_STAGE_MAX + 1), GLEX_INVALID_PARAM);
	OK(glex_group_stage(group, 64));
	OK(glex_group_wait(group, 0));
	RETURNS(glex_group_allreduce_long(group, part, to, 0, 1, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(group, part, to, GLEX_GROUP_LONG_MAX + 1, 1, combine, &unit),
		GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(group, NULL, to, 64, 1, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(group, part, NULL, 64, 1, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(group, part, to, 64, 1, NULL, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(group, part, to, 64, 0, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(group, part, to, 64, 3, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_long(group, part, to, 130, 65, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_long(group, 1, part, to, 64, 1, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_long(group, 0, part, NULL, 64, 1, combine, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_scatter(group, part, to, 64, 1, NULL, &unit), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allgather_long(group, part, NULL, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allgather_long(group, NULL, to, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_alltoall(group, part, to, 0), GLEX_INVALID_PARAM);
	RETURNS(glex_group_alltoall(NULL, part, to, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_alltoallv(NULL, &block, &block, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_alltoallv(group, NULL, &block, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_alltoallv(group, &block, NULL, 64), GLEX_INVALID_PARAM);
	RETURNS(glex_group_alltoallv(group, &block, &block, GLEX_GROUP_LONG_MAX + 1), GLEX_INVALID_PARAM);
	OK(glex_group_allreduce_long(group, part, to, 64, 1, combine, &unit)); /* nothing of that has begun */
	OK(glex_group_wait(group, 0));
	ck_assert_int_eq(memcmp(part, to, 64), 0);
	close_group();
}
END_TEST

/* A tree; or more members than gather. */
START_TEST(stage__not_for_such_a_group__not_implemented)
{
	struct crowd c = {.n = _i ? GLEX_GROUP_GATHER_MEMBERS + 1 : 3, .degree = 2};
	struct glex_group_card card, cards[GLEX_GROUP_GATHER_MEMBERS + 1];
	uint32_t i;

	c.shape = _i ? GLEX_GROUP_DIRECT : GLEX_GROUP_KARY;
	open_group(&card, &c);
	for (i = 0; i < c.n; i++)
		cards[i] = card;
	OK(glex_group_join(group, cards, c.n, 0, c.shape, c.degree));
	RETURNS(glex_group_stage(group, STAGE), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_group_wait(group, 0), GLEX_INVALID_PARAM);
	close_group();
}
END_TEST

/* Others begin one of another length, or of other units, or a barrier, or of another kind; or die. */
static void other_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	unsigned char part[64] = {0};
	uint32_t unit = 1;

	meet_all(fd, c);
	make_stage(c, GLEX_SUCCESS);
	if (c->degree == 4 && c->me == 1)
		pause();
	if (c->degree == 3)
		OK(glex_group_barrier(group));
	else if (c->degree == 5)
		OK(glex_group_reduce_long(group, 0, part, part, 64, 1, combine, &unit));
	else if (c->degree == 6)
		OK(glex_group_reduce_long(group, 1, part, part, 64, 1, combine, &unit));
	else
		OK(glex_group_allreduce_long(group, part, part, c->degree == 1 ? 56 : 64, c->degree == 2 ? 2 : 1,
					     combine, &unit));
	glex_group_wait(group, WAIT_MS);
	close_group();
}

START_TEST(allreduce_long__others_begin_something_else_or_die__learns_it)
{
	struct crowd c = {.n = _i % 2 ? 2 : 4, .degree = 1 + (uint32_t)_i / 2, .shape = GLEX_GROUP_DIRECT};
	unsigned char part[64] = {0};
	uint32_t unit = 1;
	struct peer peer[MAX];
	uint32_t i;

	start(&c, peer, other_member);
	make_stage(&c, GLEX_SUCCESS);
	if (c.degree == 4)
		peer_kill(&peer[1]);
	if (c.degree == 6)
		OK(glex_group_reduce_long(group, 0, part, part, 64, 1, combine, &unit));
	else
		OK(glex_group_allreduce_long(group, part, part, 64, 1, combine, &unit));
	RETURNS(glex_group_wait(group, WAIT_MS), GLEX_SYS_ERR);
	for (i = c.degree == 4 ? 2 : 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_stage");
	TCase *tc = tcase_create("group_stage");

	own_job("group_stage");
	tcase_add_loop_test(tc, long_ones__of_processes__every_length_and_unit, 0,
			    (int)(sizeof(crowds) / sizeof(crowds[0])));
	tcase_add_loop_test(tc, stage__cannot_be_had__all_learn_it, 0, (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_test(tc, stage__wrong_arguments__invalid);
	tcase_add_loop_test(tc, stage__not_for_such_a_group__not_implemented, 0, 2);
	tcase_add_loop_test(tc, allreduce_long__others_begin_something_else_or_die__learns_it, 0, 12);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
