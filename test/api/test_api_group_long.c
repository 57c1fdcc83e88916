/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_long.c - long broadcasts that are passed down a tree: every root and shape, between all other
 * collectives, in order and not; memory that nobody reaches; a member that dies.
 */
#include <stdlib.h>
#include <string.h>

#include "test/api/group.h"
#include "test/lib/seccomp.h"

static const struct crowd crowds[] = {
	{.n = 1, .passed = true},
	{.n = 2, .degree = 1, .passed = true},
	{.n = 4, .degree = 1, .passed = true, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 7, .degree = 2, .passed = true},
	{.n = 8, .degree = 2, .passed = true, .shape = GLEX_GROUP_KNOMIAL},
	{.n = 9, .degree = 3, .passed = true, .type = GLEX_EP_TYPE_EMULATE},
	/* more at a time than there is room for */
	{.n = 36, .degree = 32, .passed = true, .type = GLEX_EP_TYPE_EMULATE},
	{.n = 4, .degree = 2, .passed = true, .unregistered = true},
};

START_TEST(passed__of_processes__all_collectives_from_every_root)
{
	struct crowd c = crowds[_i];

	run_all(&c, member);
}
END_TEST

START_TEST(set_long__no_tree_or_too_late__invalid)
{
	struct crowd c = {.n = 1, .shape = _i ? GLEX_GROUP_DIRECT : GLEX_GROUP_KARY};
	struct glex_group_card card;

	open_group(&card, &c);
	RETURNS(glex_group_set_long(group, GLEX_GROUP_LONG_PASSED), GLEX_INVALID_PARAM);
	OK(glex_group_join(group, &card, 1, 0, c.shape, 0));
	RETURNS(glex_group_set_long(group, (enum glex_group_long)2), GLEX_INVALID_PARAM);
	RETURNS(glex_group_set_long(group, GLEX_GROUP_LONG_PASSED), _i ? GLEX_INVALID_PARAM : GLEX_SUCCESS);
	OK(glex_group_set_long(group, GLEX_GROUP_LONG_FETCHED));
	OK(glex_group_barrier(group));
	RETURNS(glex_group_set_long(group, GLEX_GROUP_LONG_FETCHED), GLEX_BUSY);
	OK(glex_group_wait(group, 0));
	OK(glex_group_bcast_long(group, 0, &card, sizeof(card)));
	OK(glex_group_wait(group, 0));
	RETURNS(glex_group_set_long(group, GLEX_GROUP_LONG_PASSED), GLEX_INVALID_PARAM);
	close_group();
}
END_TEST

static void spread_passed(const struct crowd *c, uint32_t root, uint32_t len, uint32_t seed)
{
	static unsigned char data[70000];

	memset(data, 0, len);
	if (c->me == root)
		fill(data, len, seed);
	OK(glex_group_bcast_long(group, root, data, len));
	OK(glex_group_wait(group, WAIT_MS));
	expect_filled(data, len, seed);
}

/* What and from where is drawn alike everywhere; who is late now and then is not. */
static void busy_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t common = c->n, own = c->n + c->me + 1, round, what, i;

	meet_all(fd, arg);
	for (round = 0; round < 400; round++) {
		what = draw(&common) % 4;
		for (i = draw(&own) % 16 ? 0 : draw(&own) % 64; i > 0; i--)
			sched_yield();
		if (what == 0)
			spread(c, draw(&common));
		else if (what == 1)
			sum_up(c, round, draw(&common) % 2);
		else
			spread_passed(c, draw(&common) % c->n, draw(&common) % 70000, round);
	}
	close_group(); /* others may not have ended yet */
}

static const struct crowd mixed[] = {
	{.n = 7, .degree = 2, .passed = true},
	{.n = 6, .degree = 2, .passed = true, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 7, .degree = 2, .passed = true, .shuffled = true},
	{.n = 8, .degree = 2, .shape = GLEX_GROUP_KNOMIAL, .passed = true, .shuffled = true},
};

START_TEST(passed__among_other_collectives__none_lost_and_none_mixed)
{
	struct crowd c = mixed[_i];

	if (c.shuffled)
		shuffle("group-long-shuffled");
	run_all(&c, busy_member);
}
END_TEST

/* ---- memory that others cannot reach --------------------------------------------------------- */

/* What they can, after what they cannot: nothing of it is left. */
static void spread_reachable(const struct crowd *c, uint32_t round)
{
	void *data;

	OK(glex_alloc(dev, 300000, &data));
	if (c->me == round % c->n)
		fill(data, 300000, round);
	OK(glex_group_bcast_long(group, round % c->n, data, 300000));
	OK(glex_group_wait(group, WAIT_MS));
	expect_filled(data, 300000, round);
	OK(glex_free(dev, data));
}

static void secluded_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	unsigned char data[5000]; /* on the stack, which nobody else can be given */
	uint32_t round, root;

	ck_assert_int_eq(forbid_attach(), 0);
	meet_all(fd, c);
	for (round = 0; round < 2 * c->n; round++) {
		root = round % c->n;
		OK(glex_group_bcast_long(group, root, data, sizeof(data)));
		RETURNS(glex_group_wait(group, WAIT_MS), GLEX_ACCESS_ERR);
		OK(glex_group_barrier(group));
		OK(glex_group_wait(group, WAIT_MS));
		spread_reachable(c, round);
	}
	close_group();
}

static const struct crowd secluded[] = {
	{.n = 3, .degree = 2},
	{.n = 3, .shape = GLEX_GROUP_DIRECT},
	{.n = 7, .degree = 2, .passed = true},
	{.n = 5, .degree = 1, .passed = true, .type = GLEX_EP_TYPE_EMULATE},
};

START_TEST(bcast_long__out_of_reach__who_needs_to_know_does_and_the_group_goes_on)
{
	struct crowd c = secluded[_i];

	run_all(&c, secluded_member);
}
END_TEST

/* One whose memory cannot be reached by anybody, in the middle of the tree. */
static void lonely_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	unsigned char data[50000];
	uint32_t round, root, failed = 0;
	glex_ret_t ret;
	void *mem;

	if (c->me == 1)
		ck_assert_int_eq(forbid_attach(), 0);
	meet_all(fd, c);
	OK(glex_alloc(dev, sizeof(data), &mem));
	for (round = 0; round < 2 * c->n; round++) {
		root = round % c->n;
		OK(glex_group_bcast_long(group, root, c->me == 2 ? data : mem, sizeof(data)));
		ret = glex_group_wait(group, WAIT_MS);
		SURE(ret == GLEX_SUCCESS || ret == GLEX_ACCESS_ERR);
		failed += ret != GLEX_SUCCESS;
		spread(c, round);
		sum_up(c, round, true);
		spread_reachable(c, round);
	}
	SURE(failed > 0);
	close_group();
}

/* Who can reach whom depends on who executes, so some of these succeed; all members go on. */
START_TEST(bcast_long__some_are_out_of_reach__the_group_goes_on)
{
	struct crowd c = {.n = 7, .degree = 2, .passed = true};

	run_all(&c, lonely_member);
}
END_TEST

/* ---- who dies ------------------------------------------------------------------------------ */

/* Who, and of how many. */
struct death {
	struct crowd crowd;
	uint32_t doomed;
};

static const struct death deaths[] = {
	{{.n = 6, .degree = 2, .passed = true}, 2},
	{{.n = 6, .degree = 2, .passed = true, .tests = true}, 0},
	{{.n = 6, .degree = 2, .shape = GLEX_GROUP_KNOMIAL, .passed = true}, 4},
};

/* All have begun, and it alone does not get on. */
static void doomed_member(int fd, void *arg)
{
	const struct death *death = arg;
	const struct crowd *c = &death->crowd;
	unsigned char data[70000];

	meet_all(fd, c);
	OK(glex_group_bcast_long(group, 3, data, sizeof(data)));
	meet(fd);
	if (c->me == death->doomed)
		hear(fd, &(char){0}, 1); /* nothing, ever */
	RETURNS(wait_or_test(c->tests), GLEX_SYS_ERR);
	RETURNS(glex_group_wait(group, 0), GLEX_SYS_ERR);
	RETURNS(glex_group_bcast_long(group, 3, data, sizeof(data)), GLEX_SYS_ERR);
	close_group();
}

START_TEST(passed__a_member_dies__all_others_learn_it)
{
	struct death death = deaths[_i];

	lose(&death.crowd, death.doomed, doomed_member, &death);
}
END_TEST

/* Member 0 sends, 1 gives the group up, and 2 comes when what was sent is no longer there. */
static void late_for_long(int fd, void *arg)
{
	static unsigned char data[300000];
	const struct crowd *c = arg;

	meet_all(fd, c);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	memset(data, 0, sizeof(data));
	if (c->me == 0)
		fill(data, sizeof(data), 1);
	if (c->me != 2) {
		OK(glex_group_bcast_long(group, 0, data, sizeof(data)));
		if (c->me == 1)
			OK(glex_group_fail(group));
		RETURNS(glex_group_wait(group, -1), GLEX_SYS_ERR);
		memset(data, 0xbd, sizeof(data));
	}
	meet(fd);
	if (c->me == 2) {
		OK(glex_group_bcast_long(group, 0, data, sizeof(data)));
		ck_assert_int_ne(glex_group_wait(group, -1), GLEX_SUCCESS);
	}
	meet(fd);
	close_group();
}

static const struct crowd late[] = {
	{.n = 3, .shape = GLEX_GROUP_DIRECT},
	{.n = 3, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 3, .degree = 2},
	{.n = 3, .degree = 2, .passed = true},
};

START_TEST(bcast_long__given_up_and_the_buffer_used_again__nobody_takes_that_for_it)
{
	struct crowd c = late[_i];
	struct peer peer[MAX];
	uint32_t i;

	start_all(&c, peer, late_for_long, &c);
	for (i = 0; i < c.n; i++) /* the late one last */
		meet(peer[i].fd);
	for (i = c.n; i > 0; i--)
		meet(peer[i - 1].fd);
	for (i = 0; i < c.n; i++)
		peer_join(&peer[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_long");
	TCase *tc = tcase_create("group_long");

	own_job("group_long");
	tcase_add_loop_test(tc, passed__of_processes__all_collectives_from_every_root, 0,
			    (int)(sizeof(crowds) / sizeof(crowds[0])));
	tcase_add_loop_test(tc, set_long__no_tree_or_too_late__invalid, 0, 2);
	tcase_add_loop_test(tc, passed__among_other_collectives__none_lost_and_none_mixed, 0,
			    (int)(sizeof(mixed) / sizeof(mixed[0])));
	tcase_add_loop_test(tc, bcast_long__out_of_reach__who_needs_to_know_does_and_the_group_goes_on, 0,
			    (int)(sizeof(secluded) / sizeof(secluded[0])));
	tcase_add_test(tc, bcast_long__some_are_out_of_reach__the_group_goes_on);
	tcase_add_loop_test(tc, passed__a_member_dies__all_others_learn_it, 0,
			    (int)(sizeof(deaths) / sizeof(deaths[0])));
	tcase_add_loop_test(tc, bcast_long__given_up_and_the_buffer_used_again__nobody_takes_that_for_it, 0,
			    (int)(sizeof(late) / sizeof(late[0])));
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
