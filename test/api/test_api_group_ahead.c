/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_ahead.c - members who have only to send do not wait for those who take: they run ahead, are held
 * back where there is no more room, and nothing is lost.
 */
#include <string.h>

#include "test/api/group.h"

#define AHEAD 400u

/* Broadcasts by member 0, of one packet or two; how many it did before it was held back. */
static uint32_t broadcast_ahead(uint32_t me, int32_t timeout)
{
	uint32_t round, held = AHEAD;
	unsigned char data[112];

	for (round = 0; round < AHEAD; round++) {
		uint32_t len = round % 3 ? 8 : 112;
		glex_ret_t ret;

		memset(data, 0, sizeof(data));
		if (me == 0)
			fill(data, len, round);
		OK(glex_group_bcast(group, 0, data, len));
		ret = glex_group_wait(group, timeout);
		if (ret == GLEX_NO_MP) {
			held = round;
			return held;
		}
		ck_assert_int_eq(ret, GLEX_SUCCESS);
		expect_filled(data, len, round);
	}
	return held;
}

/* On a tree. */
static const struct crowd ahead[] = {
	{.n = 4, .degree = 2},
	{.n = 5, .degree = 2, .shape = GLEX_GROUP_KNOMIAL, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 4, .degree = 3, .shuffled = true},
};

static void slow_member(int fd, void *arg)
{
	const struct crowd *c = arg;

	meet_all(fd, c);
	meet(fd);
	ck_assert_uint_eq(broadcast_ahead(c->me, WAIT_MS), AHEAD);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	close_group();
}

START_TEST(direct__one_sends_what_nobody_takes__held_back_and_then_all_there)
{
	struct crowd c = {.n = _i ? 17 : 3, .shape = GLEX_GROUP_DIRECT};
	uint32_t round, held, i;
	struct peer peer[MAX];
	unsigned char data[112];

	start(&c, peer, slow_member);
	held = broadcast_ahead(0, 20);
	ck_assert_uint_gt(held, 8);
	ck_assert_uint_lt(held, 256);
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	OK(glex_group_wait(group, WAIT_MS));
	for (round = held + 1; round < AHEAD; round++) {
		fill(data, round % 3 ? 8 : 112, round);
		OK(glex_group_bcast(group, 0, data, round % 3 ? 8 : 112));
		OK(glex_group_wait(group, WAIT_MS));
	}
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

/* Everybody's number and the round's, summed up for member 0. */
static glex_ret_t add_up(const struct crowd *c, uint32_t round, int32_t timeout)
{
	union glex_coll_data_loc unit = {.uint64_s = {.data = round + c->me}};
	glex_ret_t ret;

	OK(glex_group_reduce(group, 0, &unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_UNSIGNED));
	ret = glex_group_wait(group, timeout);
	if (c->me == 0 && ret == GLEX_SUCCESS)
		ck_assert_uint_eq(unit.uint64_s.data, (uint64_t)round * c->n + c->n * (c->n - 1) / 2);
	return ret;
}

static void hasty_leaf(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t round;

	meet_all(fd, c);
	for (round = 0; round < 8; round++) /* while member 0 does nothing */
		OK(add_up(c, round, WAIT_MS));
	meet(fd);
	for (; round < AHEAD; round++)
		OK(add_up(c, round, WAIT_MS));
	close_group(); /* before member 0 has them all */
}

START_TEST(tree__leaves_run_ahead_in_reductions__all_there)
{
	struct crowd c = ahead[_i];
	struct peer peer[MAX];
	uint32_t i, round;

	if (c.shuffled)
		shuffle("leaves-shuffled");
	start(&c, peer, hasty_leaf);
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	for (round = 0; round < AHEAD; round++)
		OK(add_up(&c, round, WAIT_MS));
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

static void hasty_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t round;
	glex_ret_t ret = GLEX_SUCCESS;

	meet_all(fd, c);
	for (round = 0; ret == GLEX_SUCCESS; round++)
		ret = add_up(c, round, 20);
	ck_assert_int_eq(ret, GLEX_NO_MP);
	ck_assert_uint_gt(round, 4);
	ck_assert_uint_lt(round, 256);
	meet(fd);
	OK(glex_group_wait(group, WAIT_MS));
	for (; round < AHEAD; round++)
		OK(add_up(c, round, WAIT_MS));
	close_group(); /* before member 0 has them all */
}

START_TEST(tree__root_runs_ahead_of_slow_members__held_back_and_then_all_there)
{
	struct crowd c = ahead[_i];
	uint32_t round, held, i;
	struct peer peer[MAX];
	unsigned char data[112];

	if (c.shuffled)
		shuffle("ahead-shuffled");
	start(&c, peer, slow_member);
	held = broadcast_ahead(0, 20);
	ck_assert_uint_gt(held, 8);
	ck_assert_uint_lt(held, 256);
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	OK(glex_group_wait(group, WAIT_MS));
	for (round = held + 1; round < AHEAD; round++) {
		fill(data, round % 3 ? 8 : 112, round);
		OK(glex_group_bcast(group, 0, data, round % 3 ? 8 : 112));
		OK(glex_group_wait(group, WAIT_MS));
	}
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

START_TEST(direct__several_send_what_one_does_not_take__held_back_and_then_all_there)
{
	struct crowd c = {.n = 4, .shape = GLEX_GROUP_DIRECT};
	struct peer peer[MAX];
	uint32_t i, round;

	start(&c, peer, hasty_member);
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	for (round = 0; round < AHEAD; round++)
		OK(add_up(&c, round, WAIT_MS));
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_ahead");
	TCase *tc = tcase_create("group_ahead");

	own_job("group-ahead");
	tcase_add_loop_test(tc, direct__one_sends_what_nobody_takes__held_back_and_then_all_there, 0, 2);
	tcase_add_loop_test(tc, tree__root_runs_ahead_of_slow_members__held_back_and_then_all_there, 0, 3);
	tcase_add_loop_test(tc, tree__leaves_run_ahead_in_reductions__all_there, 0, 3);
	tcase_add_test(tc, direct__several_send_what_one_does_not_take__held_back_and_then_all_there);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
