/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_meet.c - what comes of a collective is shown on member 0's board: to who comes late, when member 0
 * leaves, gives the group up or is asked; and sent to who cannot look there, from the beginning or in the middle.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/api/group.h"

#define N    4u
#define LATE 2u

static struct crowd direct_four = {.n = N, .shape = GLEX_GROUP_DIRECT};

static void begin_sum(uint32_t me, uint32_t round, union glex_coll_data_loc *unit)
{
	memset(unit, 0, sizeof(*unit));
	unit->uint64_s.data = 100 * round + me;
	OK(glex_group_allreduce(group, unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_UNSIGNED));
}

static void end_sum(uint32_t round, const union glex_coll_data_loc *unit)
{
	OK(glex_group_wait(group, WAIT_MS));
	ck_assert_uint_eq(unit->uint64_s.data, N * 100 * round + N * (N - 1) / 2);
}

static void sum(uint32_t me, uint32_t round)
{
	union glex_coll_data_loc unit;

	begin_sum(me, round, &unit);
	end_sum(round, &unit);
}

/* ---- leaving -------------------------------------------------------------------- */

/* Begins the last collective, and looks what came of it when it is told to. */
static void late_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	union glex_coll_data_loc unit;

	meet_all(fd, c);
	sum(c->me, 0);
	begin_sum(c->me, 1, &unit);
	if (c->me == LATE) {
		meet(fd); /* it has begun, */
		meet(fd); /* and goes on */
	}
	end_sum(1, &unit);
	if (c->me > LATE)
		meet(fd); /* it has ended, and stays */
	close_group();
}

/* As a late member, but member 1 gives the group up for itself when it has begun to leave: that counts for nobody else. */
static void leaving_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	union glex_coll_data_loc unit;

	if (c->me != 1) {
		late_member(fd, arg);
		return;
	}
	meet_all(fd, c);
	sum(c->me, 0);
	begin_sum(c->me, 1, &unit);
	end_sum(1, &unit);
	OK(glex_group_leave(group));
	OK(glex_group_abandon(group));
	close_group();
}

/* Begins to leave when member 1 has left, one has ended all, and the late one has not. */
static void leave_early(struct peer *peer)
{
	union glex_coll_data_loc unit;

	sum(0, 0);
	meet(peer[LATE].fd); /* who comes last has all at once */
	begin_sum(0, 1, &unit);
	end_sum(1, &unit);
	peer_join(&peer[1]);
	OK(glex_group_leave(group));
	if (CAN_BE_ALONE) {
		RETURNS(glex_group_wait(group, 0), GLEX_NO_MP);
		RETURNS(glex_group_wait(group, 300), GLEX_NO_MP);
	}
}

START_TEST(leave__member_0_when_one_has_not_looked__waits_for_that_one_alone)
{
	struct peer peer[MAX];

	start(&direct_four, peer, _i ? leaving_member : late_member);
	leave_early(peer);
	meet(peer[LATE].fd);
	OK(glex_group_wait(group, WAIT_MS));
	RETURNS(glex_group_barrier(group), GLEX_INVALID_PARAM);
	close_group();
	meet(peer[LATE + 1].fd);
	peer_join(&peer[LATE]);
	peer_join(&peer[LATE + 1]);
}
END_TEST

START_TEST(leave__member_0_when_one_dies_that_has_not_looked__does_not_wait_for_it)
{
	struct peer peer[MAX];
	glex_ret_t ret;

	start(&direct_four, peer, late_member);
	leave_early(peer);
	peer_kill(&peer[LATE]);
	ret = glex_group_wait(group, WAIT_MS);
	ck_assert(ret == GLEX_SUCCESS || ret == GLEX_SYS_ERR);
	close_group();
	meet(peer[LATE + 1].fd);
	peer_join(&peer[LATE + 1]);
}
END_TEST

/* Computes between beginning and looking. */
static void slow_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	union glex_coll_data_loc unit;

	meet_all(fd, c);
	begin_sum(c->me, 1, &unit);
	if (c->me == LATE)
		usleep(300000);
	end_sum(1, &unit);
	close_group();
}

START_TEST(close__member_0_while_one_computes__that_one_has_the_result)
{
	struct crowd c = direct_four;

	run_all(&c, slow_member);
}
END_TEST

/* Member 0 gives the group up when a collective has ended for it: so it has for all. */
static void given_up(int fd, void *arg)
{
	const struct crowd *c = arg;
	union glex_coll_data_loc unit;

	meet_all(fd, c);
	begin_sum(c->me, 3, &unit);
	if (c->me == 0) {
		end_sum(3, &unit);
		OK(glex_group_fail(group));
	} else {
		usleep(50000 * c->me);
		end_sum(3, &unit);
	}
	close_group();
}

START_TEST(fail__member_0_after_a_collective__others_have_the_result)
{
	struct crowd c = direct_four;

	run_all(&c, given_up);
}
END_TEST

/* ---- who cannot look ------------------------------------------------------------- */

/* Which members have threads before the first collective, and which in the middle of the second. */
static const struct {
	uint32_t before, between;
} threaded[] = {{1 << 1, 0}, {1 << 0, 0}, {0, 1 << 2}, {0, 1 << 0}, {1 << 3, 1 << 1 | 1 << 2},
		{0, 15},     {15, 0},	  {0, 14}};

static uint32_t row;

static void add(const void *left, void *right, uint32_t len, void *arg)
{
	uint64_t one, other;

	(void)arg;
	ck_assert_uint_eq(len, 8);
	memcpy(&one, left, 8);
	memcpy(&other, right, 8);
	other += one;
	memcpy(right, &other, 8);
}

static void sum_by(uint32_t me, uint32_t round)
{
	uint64_t mine = round + me, got = 0;

	OK(glex_group_allreduce_by(group, &mine, &got, sizeof(mine), add, NULL));
	OK(glex_group_wait(group, WAIT_MS));
	ck_assert_uint_eq(got, N * round + N * (N - 1) / 2);
}

static void some_rounds(const struct crowd *c)
{
	uint32_t round;

	for (round = 0; round < 40; round++) {
		OK(glex_group_barrier(group));
		OK(glex_group_wait(group, WAIT_MS));
		sum(c->me, round);
		sum_by(c->me, round);
		sum_up(c, round, true);
	}
}

static void threaded_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	union glex_coll_data_loc unit;

	meet_all(fd, c);
	if (threaded[row].before >> c->me & 1)
		have_thread();
	begin_sum(c->me, 1, &unit);
	end_sum(1, &unit);
	some_rounds(c);
	begin_sum(c->me, 2, &unit);
	if (threaded[row].between >> c->me & 1)
		have_thread();
	end_sum(2, &unit);
	some_rounds(c);
	close_group();
}

START_TEST(meet__some_have_threads__all_have_what_comes_of_it)
{
	struct crowd c = direct_four;

	row = (uint32_t)_i;
	run_all(&c, threaded_member);
}
END_TEST

/* ---- where they look ------------------------------------------------------------- */

/* A word of shared memory, whoever maps it. */
struct spot {
	unsigned long inode, at;
};

static struct spot spot_of(const void *word)
{
	unsigned long from, to, offset, address = (unsigned long)(uintptr_t)word;
	struct spot spot = {0, 0};
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	ck_assert_ptr_nonnull(maps);
	while (!spot.inode && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx %*s %lu", &from, &to, &offset, &spot.inode) == 4 && address >= from &&
		    address < to)
			spot.at = address - from + offset;
		else
			spot.inode = 0;
	fclose(maps);
	return spot;
}

static void looking_member(int fd, void *arg)
{
	const uint64_t *word;
	struct spot spot;
	uint64_t value;

	meet_all(fd, arg);
	OK(glex_group_barrier(group));
	RETURNS(glex_group_look(group, &word, &value), GLEX_NO_MP);
	spot = spot_of(word);
	say(fd, &spot, sizeof(spot));
	OK(glex_group_wait(group, WAIT_MS));
	close_group();
}

/* So many that none remembers the ways to all. */
START_TEST(look__from_the_first_barrier_on__all_do_at_one_word)
{
	struct crowd many = {.n = 16, .shape = GLEX_GROUP_DIRECT};
	struct spot spot[MAX];
	struct peer peer[MAX];
	uint32_t i;

	start(&many, peer, looking_member);
	for (i = 1; i < many.n; i++)
		hear(peer[i].fd, &spot[i], sizeof(spot[i]));
	ck_assert_uint_ne(spot[1].inode, 0);
	for (i = 2; i < many.n && CAN_BE_ALONE; i++)
		ck_assert_mem_eq(&spot[i], &spot[1], sizeof(spot[i]));
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	for (i = 1; i < many.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

/* The last collective of all, and member 0, which others look at, may not look at theirs. */
static void last_member(int fd, void *arg)
{
	const struct crowd *c = arg;

	meet_all(fd, c);
	sum(c->me, 1);
	if (c->me == (uint32_t)row)
		have_thread();
	if (c->me == LATE)
		usleep(200000);
	close_group();
}

START_TEST(close__who_has_threads_by_then__all_leave)
{
	struct crowd c = direct_four;

	row = (uint32_t)_i;
	run_all(&c, last_member);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_meet");
	TCase *tc = tcase_create("group_meet");

	own_job("group-meet");
	tcase_add_loop_test(tc, leave__member_0_when_one_has_not_looked__waits_for_that_one_alone, 0, 2);
	tcase_add_test(tc, leave__member_0_when_one_dies_that_has_not_looked__does_not_wait_for_it);
	tcase_add_test(tc, close__member_0_while_one_computes__that_one_has_the_result);
	tcase_add_test(tc, fail__member_0_after_a_collective__others_have_the_result);
	tcase_add_loop_test(tc, meet__some_have_threads__all_have_what_comes_of_it, 0,
			    (int)(sizeof(threaded) / sizeof(threaded[0])));
	tcase_add_loop_test(tc, look__from_the_first_barrier_on__all_do_at_one_word, 0, 3);
	tcase_add_loop_test(tc, close__who_has_threads_by_then__all_leave, 0, 3);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
