/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_by.c - reductions by a function of the program's: every root and length, in the order of the members,
 * among reductions by units, in order and not; what is refused, and who begins something else.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "test/api/group.h"

#define MOST GLEX_GROUP_BY_MAX(1)

/* 0: as many as there may be. */
static const uint32_t lens[] = {8, 1, 7, 55, 56, 0, 57, 111, 112, 200, 0, 0};

#define LENS (sizeof(lens) / sizeof(lens[0]))

static uint32_t len_of(const struct crowd *c, uint32_t i)
{
	uint32_t most = GLEX_GROUP_BY_MAX(c->n);

	return lens[i] && lens[i] < most ? lens[i] : most;
}

/* One byte of three is the first member's, one the last's, one all members' sum: associative, and not commutative. */
static void merge(const unsigned char *left, unsigned char *right, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		right[i] = i % 3 == 0 ? left[i] : i % 3 == 1 ? right[i] : (unsigned char)(left[i] + right[i]);
}

static void combine(const void *left, void *right, uint32_t len, void *arg)
{
	uint32_t want = *(const uint32_t *)arg;

	SURE(len == want);
	SURE((uintptr_t)left % _Alignof(max_align_t) == 0 && (uintptr_t)right % _Alignof(max_align_t) == 0);
	merge(left, right, len);
}

static void expect_merged(const struct crowd *c, const unsigned char *got, uint32_t len, uint32_t round)
{
	unsigned char one[MOST], two[MOST], *left = one, *right = two, *swap;
	uint32_t i;

	fill(left, len, round * MAX);
	for (i = 1; i < c->n; i++) {
		fill(right, len, round * MAX + i);
		merge(left, right, len);
		swap = left;
		left = right;
		right = swap;
	}
	SURE(memcmp(got, left, len) == 0);
}

/* To where the operand is, or not; that is the caller's again at once where it is not. */
static void reduce(const struct crowd *c, uint32_t root, bool to_all, uint32_t len, uint32_t round)
{
	unsigned char part[MOST + 1], result[MOST + 1];
	bool wanted = to_all || c->me == root, in_place = wanted && round % 3 == 0;
	unsigned char *to = in_place ? part : wanted ? result : NULL;

	memset(part, 0xee, sizeof(part));
	memset(result, 0xee, sizeof(result));
	fill(part, len, round * MAX + c->me);
	if (to_all)
		OK(glex_group_allreduce_by(group, part, to, len, combine, &len));
	else
		OK(glex_group_reduce_by(group, root, part, to, len, combine, &len));
	if (!in_place)
		memset(part, 0xbd, sizeof(part));
	RETURNS(glex_group_allreduce_by(group, part, result, len, combine, &len), GLEX_BUSY);
	OK(c->tests ? wait_or_test(true) : glex_group_wait(group, WAIT_MS));
	if (wanted) {
		expect_merged(c, to, len, round);
		SURE(to[len] == 0xee);
	}
}

/* What is of units keeps its place among them. */
static void reducing_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t root, i, round = 0, step = c->n <= 16 ? 1 : 7;

	meet_all(fd, c);
	for (i = 0; i < LENS; i++) {
		for (root = 0; root < c->n; root += step)
			reduce(c, root, false, len_of(c, i), round++);
		sum_up(c, i, true);
		reduce(c, 0, true, len_of(c, i), round++);
		sum_up(c, i, false);
		reduce(c, 0, true, len_of(c, i), round++);
	}
	close_group(); /* others may not have ended yet */
}

static const struct crowd crowds[] = {
	{.n = 1, .shape = GLEX_GROUP_DIRECT},
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 3, .shape = GLEX_GROUP_DIRECT},
	{.n = 5, .shape = GLEX_GROUP_DIRECT, .tests = true},
	{.n = 8, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_EMULATE},
	{.n = 16, .shape = GLEX_GROUP_DIRECT},
	{.n = 17, .shape = GLEX_GROUP_DIRECT},
	{.n = 30, .shape = GLEX_GROUP_DIRECT},
	{.n = 3, .shape = GLEX_GROUP_DIRECT, .unregistered = true},
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
	{.n = 6, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
	{.n = 20, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
};

START_TEST(reduce_by__of_processes__every_root_and_length)
{
	struct crowd c = crowds[_i];

	if (c.shuffled)
		shuffle("by-shuffled");
	run_all(&c, reducing_member);
}
END_TEST

START_TEST(reduce_by__wrong_arguments__invalid)
{
	struct crowd c = {.n = 1, .shape = GLEX_GROUP_DIRECT};
	unsigned char part[MOST + 1] = {1}, to[MOST + 1];
	struct glex_group_card card;
	uint32_t len = MOST;

	open_group(&card, &c);
	RETURNS(glex_group_reduce_by(group, 0, part, to, 1, combine, &len), GLEX_INVALID_PARAM); /* not joined */
	RETURNS(glex_group_allreduce_by(group, part, to, 1, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_by(NULL, 0, part, to, 1, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_by(NULL, part, to, 1, combine, &len), GLEX_INVALID_PARAM);
	OK(glex_group_join(group, &card, 1, 0, GLEX_GROUP_DIRECT, 0));
	RETURNS(glex_group_reduce_by(group, 0, part, to, MOST + 1, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_by(group, 0, part, to, 0, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_by(group, 1, part, to, 1, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_by(group, 0, NULL, to, 1, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce_by(group, 0, part, NULL, 1, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_by(group, part, NULL, 1, combine, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce_by(group, part, to, 1, NULL, &len), GLEX_INVALID_PARAM);
	OK(glex_group_allreduce_by(group, part, to, MOST, combine, &len)); /* nothing of that has begun */
	OK(glex_group_wait(group, 0));
	ck_assert_int_eq(memcmp(part, to, MOST), 0);
	close_group();
}
END_TEST

START_TEST(reduce_by__a_tree__not_implemented_and_nothing_has_begun)
{
	struct glex_group_card card, cards[3];
	struct crowd c = {.n = 3, .degree = 2};
	unsigned char part[1] = {0}, to[1];
	uint32_t i, len = 1;

	open_group(&card, &c);
	for (i = 0; i < c.n; i++)
		cards[i] = card;
	OK(glex_group_join(group, cards, c.n, 0, c.shape, c.degree));
	RETURNS(glex_group_reduce_by(group, 0, part, to, 1, combine, &len), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_group_allreduce_by(group, part, to, 1, combine, &len), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_group_wait(group, 0), GLEX_INVALID_PARAM);
	close_group();
}
END_TEST

/* Others begin a reduction of units, of another length, or to one. */
static void other_member(int fd, void *arg)
{
	union glex_coll_data_loc unit = {.uint64_s = {.data = 1}};
	const struct crowd *c = arg;
	unsigned char part[8] = {0};
	uint32_t len = 7;

	meet_all(fd, c);
	if (c->degree == 1)
		OK(glex_group_allreduce(group, &unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_UNSIGNED));
	else
		OK(glex_group_allreduce_by(group, part, part, len, combine, &len));
	glex_group_wait(group, WAIT_MS);
	close_group();
}

START_TEST(allreduce_by__others_begin_something_else__learns_it)
{
	struct crowd c = {.n = _i % 2 ? 2 : 4, .degree = 1 + (uint32_t)_i / 2, .shape = GLEX_GROUP_DIRECT};
	unsigned char part[8] = {0};
	struct peer peer[MAX];
	uint32_t i, len = 8;

	start(&c, peer, other_member);
	OK(glex_group_allreduce_by(group, part, part, len, combine, &len));
	RETURNS(glex_group_wait(group, WAIT_MS), GLEX_SYS_ERR);
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_by");
	TCase *tc = tcase_create("group_by");

	own_job("group_by");
	tcase_add_loop_test(tc, reduce_by__of_processes__every_root_and_length, 0,
			    (int)(sizeof(crowds) / sizeof(crowds[0])));
	tcase_add_test(tc, reduce_by__wrong_arguments__invalid);
	tcase_add_test(tc, reduce_by__a_tree__not_implemented_and_nothing_has_begun);
	tcase_add_loop_test(tc, allreduce_by__others_begin_something_else__learns_it, 0, 4);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
