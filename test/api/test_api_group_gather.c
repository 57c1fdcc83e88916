/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_gather.c - everybody's part, to one member or to all: every root and length, in order and not,
 * among other collectives; what is refused; who runs ahead, leaves, or dies.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/api/group.h"

#define MOST GLEX_GROUP_GATHER_MAX

static const uint32_t lens[] = {8, 0, 1, 7, 55, 56, 57, 111, MOST};

#define LENS (sizeof(lens) / sizeof(lens[0]))

/* What a buffer for all must hold, and nothing behind it may have been written. */
static void expect_all(const struct crowd *c, const unsigned char *all, uint32_t len, uint32_t round)
{
	unsigned char part[MOST];
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		fill(part, len, round * MAX + i);
		SURE(memcmp(all + i * len, part, len) == 0);
	}
	for (i = 0; i < 16; i++)
		SURE(all[c->n * len + i] == 0xee);
}

/* Of a part that is in its place already, or not; it is the caller's again at once where it is not. */
static void gather(const struct crowd *c, uint32_t root, bool to_all, uint32_t len, uint32_t round)
{
	unsigned char all[GLEX_GROUP_GATHER_MEMBERS * MOST + 16], part[MOST];
	bool wanted = to_all || c->me == root, in_place = wanted && round % 3 == 0;
	unsigned char *own = in_place ? all + c->me * len : part;

	memset(all, 0xee, sizeof(all));
	fill(own, len, round * MAX + c->me);
	if (to_all)
		OK(glex_group_allgather(group, len ? own : NULL, len ? all : NULL, len));
	else
		OK(glex_group_gather(group, root, own, wanted ? all : NULL, len));
	if (!in_place)
		memset(part, 0xbd, sizeof(part));
	RETURNS(glex_group_allgather(group, part, all, 1), GLEX_BUSY);
	OK(c->tests ? wait_or_test(true) : glex_group_wait(group, WAIT_MS));
	if (wanted)
		expect_all(c, all, len, round);
}

static void gather_everything(const struct crowd *c)
{
	uint32_t root, i, round = 0;

	for (i = 0; i < LENS; i++) {
		for (root = 0; root < c->n; root++)
			gather(c, root, false, lens[i], round++);
		gather(c, 0, true, lens[i], round++);
		gather(c, 0, true, lens[i], round++);
	}
}

static void gathering_member(int fd, void *arg)
{
	meet_all(fd, arg);
	gather_everything(arg);
	close_group(); /* others may not have ended yet */
}

static const struct crowd crowds[] = {
	{.n = 1, .shape = GLEX_GROUP_DIRECT},
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 3, .shape = GLEX_GROUP_DIRECT},
	{.n = 4, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 5, .shape = GLEX_GROUP_DIRECT, .tests = true},
	{.n = 8, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_EMULATE},
	{.n = 9, .shape = GLEX_GROUP_DIRECT},
	{.n = 16, .shape = GLEX_GROUP_DIRECT},
	{.n = 3, .shape = GLEX_GROUP_DIRECT, .unregistered = true},
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
	{.n = 6, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
	{.n = 16, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
};

START_TEST(gather__of_processes__every_root_and_length)
{
	struct crowd c = crowds[_i];

	if (c.shuffled)
		shuffle("gather-shuffled");
	run_all(&c, gathering_member);
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(gather__wrong_arguments__invalid)
{
	struct crowd c = {.n = 1, .shape = GLEX_GROUP_DIRECT};
	unsigned char part[MOST + 1] = {1}, all[MOST + 1];
	struct glex_group_card card;

	open_group(&card, &c);
	RETURNS(glex_group_gather(group, 0, part, all, 1), GLEX_INVALID_PARAM); /* not joined */
	RETURNS(glex_group_allgather(group, part, all, 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_gather(NULL, 0, part, all, 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allgather(NULL, part, all, 1), GLEX_INVALID_PARAM);
	OK(glex_group_join(group, &card, 1, 0, GLEX_GROUP_DIRECT, 0));
	RETURNS(glex_group_gather(group, 0, part, all, MOST + 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allgather(group, part, all, MOST + 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_gather(group, 1, part, all, 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_gather(group, 0, NULL, all, 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_gather(group, 0, part, NULL, 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_allgather(group, part, NULL, 1), GLEX_INVALID_PARAM);
	OK(glex_group_allgather(group, part, all, MOST)); /* nothing of that has begun */
	OK(glex_group_wait(group, 0));
	ck_assert_int_eq(memcmp(part, all, MOST), 0);
	close_group();
}
END_TEST

static const struct crowd others[] = {
	{.n = GLEX_GROUP_GATHER_MEMBERS + 1, .shape = GLEX_GROUP_DIRECT},
	{.n = 20, .shape = GLEX_GROUP_DIRECT},
	{.n = 3, .degree = 2},
	{.n = 3, .degree = 2, .shape = GLEX_GROUP_KNOMIAL},
};

START_TEST(gather__a_tree_or_too_many_members__not_implemented_and_nothing_has_begun)
{
	struct glex_group_card card, cards[MAX];
	struct crowd c = others[_i];
	unsigned char part[1] = {0}, all[MAX];
	uint32_t i;

	open_group(&card, &c);
	for (i = 0; i < c.n; i++)
		cards[i] = card;
	OK(glex_group_join(group, cards, c.n, 0, c.shape, c.degree));
	RETURNS(glex_group_gather(group, 0, part, all, 1), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_group_allgather(group, part, all, 1), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_group_wait(group, 0), GLEX_INVALID_PARAM);
	close_group();
}
END_TEST

/* ---- among others -------------------------------------------------------------------------------- */

static void spread_some(const struct crowd *c, uint32_t root, uint32_t len, uint32_t round)
{
	unsigned char data[112];

	memset(data, 0, sizeof(data));
	if (c->me == root)
		fill(data, len, round);
	OK(glex_group_bcast(group, root, data, len));
	OK(glex_group_wait(group, WAIT_MS));
	expect_filled(data, len, round);
}

static void add_up(const struct crowd *c, uint32_t root, bool all, uint32_t round)
{
	union glex_coll_data_loc unit = {.uint64_s = {.data = round + c->me}};

	if (all)
		OK(glex_group_allreduce(group, &unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_UNSIGNED));
	else
		OK(glex_group_reduce(group, root, &unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64,
				     GLEX_COLL_REDUCE_SUM_UNSIGNED));
	OK(glex_group_wait(group, WAIT_MS));
	if (all || c->me == root)
		SURE(unit.uint64_s.data == (uint64_t)round * c->n + c->n * (c->n - 1) / 2);
}

/* Where they outnumber processors so much, or glexd executes what they post, each takes longer. */
static uint32_t rounds_of(const struct crowd *c)
{
	return c->shuffled ? 300 : c->n > 8 ? 600 : 1500;
}

/* What and from where is drawn alike everywhere; who is late now and then is not. */
static void mixing_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t common = c->n, own = c->n + c->me + 1, round, root, i;

	meet_all(fd, c);
	for (round = 0; round < rounds_of(c); round++) {
		uint32_t what = draw(&common) % 16, two = draw(&common) % 3 == 0;

		root = draw(&common) % 4 ? draw(&common) % c->n : c->n - 1;
		for (i = draw(&own) % 32 ? 0 : draw(&own) % 64; i > 0; i--)
			sched_yield();
		if (what == 0)
			spread_long(c, 5);
		else if (what == 1)
			OK(glex_group_barrier(group));
		else if (what < 4)
			spread_some(c, root, two ? 112 : 8, round);
		else if (what < 8)
			add_up(c, root, what < 6, round);
		else
			gather(c, root, what < 12, two ? 57 + round % 56 : round % 57, round);
		if (what == 1)
			OK(glex_group_wait(group, WAIT_MS));
	}
	close_group();
}

static const struct crowd mixed[] = {
	{.n = 2, .shape = GLEX_GROUP_DIRECT},
	{.n = 3, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL, .unregistered = true},
	{.n = 7, .shape = GLEX_GROUP_DIRECT, .unregistered = true},
	{.n = 16, .shape = GLEX_GROUP_DIRECT, .unregistered = true},
	{.n = 6, .shape = GLEX_GROUP_DIRECT, .shuffled = true, .unregistered = true},
	{.n = 12, .shape = GLEX_GROUP_DIRECT, .shuffled = true, .unregistered = true},
};

START_TEST(gather__among_other_collectives__none_lost_and_none_mixed)
{
	struct crowd c = mixed[_i];

	if (c.shuffled)
		shuffle("gather-mixed");
	run_all(&c, mixing_member);
}
END_TEST

/*
 * Lines of a board where wide operands have been serve narrow ones a lap later, which are looked for at other places.
 * So the wide ones are all made up to look like a narrow one then: its number, what it is (direct.c, what_of), and its
 * bytes.
 */
#define RING 37u

static void disguised_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t len = c->degree, lines = c->n * (len + 8) / 64 + 1, lap = (RING - c->n) / lines, i;
	uint64_t disguise = (uint64_t)(lap + 2) << 24 | 5u << 8 | len, part[7], all[3 * 7];
	bool late = c->me + 1 == c->n;

	for (i = 0; i < 7; i++)
		part[i] = disguise;
	meet_all(fd, c);
	for (i = 0; i <= lap; i++) {
		OK(glex_group_gather(group, 0, part, all, i ? len : sizeof(part)));
		OK(glex_group_wait(group, WAIT_MS));
	}
	if (late)
		meet(fd);
	OK(glex_group_gather(group, 0, part, all, len));
	if (c->me == 0) {
		RETURNS(glex_group_wait(group, 100), GLEX_NO_MP);
		meet(fd);
	}
	OK(glex_group_wait(group, WAIT_MS));
	close_group();
}

START_TEST(gather__parts_that_look_like_stamps__are_not_taken_for_any)
{
	static const uint32_t narrow[] = {8, 24};
	struct crowd c = {.n = 3, .degree = narrow[_i], .shape = GLEX_GROUP_DIRECT};
	struct peer peer[MAX];
	uint32_t i;

	start_all(&c, peer, disguised_member, &c);
	meet(peer[0].fd);
	meet(peer[2].fd);
	for (i = 0; i < c.n; i++)
		peer_join(&peer[i]);
}
END_TEST

/* ---- who runs ahead, leaves, or dies --------------------------------------------------------------- */

#define AHEAD 200u

static glex_ret_t gather_for_first(const struct crowd *c, uint32_t round, int32_t timeout)
{
	unsigned char all[GLEX_GROUP_GATHER_MEMBERS * MOST + 16], part[MOST];
	uint32_t len = round % 3 ? 8 : MOST;
	glex_ret_t ret;

	memset(all, 0xee, sizeof(all));
	fill(part, len, round * MAX + c->me);
	OK(glex_group_gather(group, 0, part, all, len));
	ret = glex_group_wait(group, timeout);
	if (c->me == 0 && ret == GLEX_SUCCESS)
		expect_all(c, all, len, round);
	return ret;
}

static void hasty_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t round;
	glex_ret_t ret = GLEX_SUCCESS;

	meet_all(fd, c);
	for (round = 0; ret == GLEX_SUCCESS && round < AHEAD; round++)
		ret = gather_for_first(c, round, 20);
	ck_assert_int_eq(ret, GLEX_NO_MP);
	ck_assert_uint_gt(round, 1);
	meet(fd);
	OK(glex_group_wait(group, WAIT_MS));
	for (; round < AHEAD; round++)
		OK(gather_for_first(c, round, WAIT_MS));
	close_group(); /* before member 0 has them all */
}

START_TEST(gather__several_send_what_one_does_not_take__held_back_and_then_all_there)
{
	struct crowd c = {.n = _i ? 16 : 4, .shape = GLEX_GROUP_DIRECT};
	struct peer peer[MAX];
	uint32_t i, round;

	start(&c, peer, hasty_member);
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	for (round = 0; round < AHEAD; round++)
		OK(gather_for_first(&c, round, WAIT_MS));
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

/* All come, one after the other; who came last has done it all, and those who then leave are not missed. */
static void punctual_member(int fd, void *arg)
{
	unsigned char all[GLEX_GROUP_GATHER_MEMBERS * MOST + 16], part[MOST];
	const struct crowd *c = arg;

	meet_all(fd, c);
	memset(all, 0xee, sizeof(all));
	fill(part, sizeof(part), c->me);
	meet(fd);
	OK(glex_group_allgather(group, part, all, sizeof(part)));
	meet(fd); /* it computes, and does not wait */
	meet(fd);
	OK(glex_group_wait(group, 0));
	expect_all(c, all, sizeof(part), 0);
	close_group();
	meet(fd);
}

/* The members come in their order, or the other way round, which makes the first one the last. */
START_TEST(allgather__the_last_has_begun__needs_nobody_any_more)
{
	struct crowd c = {.n = 5, .shape = GLEX_GROUP_DIRECT};
	struct peer peer[MAX];
	uint32_t i, k, step;

	start_all(&c, peer, punctual_member, &c);
	for (step = 0; step < 2; step++)
		for (i = 0; i < c.n; i++) {
			k = _i ? c.n - 1 - i : i;
			meet(peer[k].fd);
			if (step == 0)
				meet(peer[k].fd);
		}
	for (i = 0; i < c.n; i++) {
		meet(peer[i].fd);
		peer_join(&peer[i]);
	}
}
END_TEST

/* Others begin something else, or gather to one, or parts of another length. */
static void other_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	unsigned char all[MAX * 8], part[8] = {0};

	meet_all(fd, c);
	if (c->degree == 1)
		OK(glex_group_barrier(group));
	else if (c->degree == 2)
		OK(glex_group_gather(group, 0, part, NULL, 8));
	else
		OK(glex_group_allgather(group, part, all, 7));
	glex_group_wait(group, WAIT_MS); /* who has only sent has ended well */
	close_group();
}

START_TEST(allgather__others_begin_something_else__learns_it)
{
	struct crowd c = {.n = _i % 2 ? 2 : 4, .degree = 1 + (uint32_t)_i / 2, .shape = GLEX_GROUP_DIRECT};
	unsigned char all[MAX * 8], part[8] = {0};
	struct peer peer[MAX];
	uint32_t i;

	start(&c, peer, other_member);
	OK(glex_group_allgather(group, part, all, 8));
	if (c.degree == 2) { /* nobody else is there any more, who might tell */
		ck_assert_int_ne(glex_group_wait(group, 300), GLEX_SUCCESS);
	} else {
		RETURNS(glex_group_wait(group, WAIT_MS), GLEX_SYS_ERR);
	}
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

struct mistake {
	struct crowd crowd;
	uint32_t want, give; /* bytes; to want none is to wait for a broadcast of member 1 */
	bool leave;	     /* all who have given */
};

static const struct mistake mistakes[] = {
	{{.n = 2}, 8, 56, true},   {{.n = 3}, 24, 8, false}, {{.n = 4}, 0, 8, false},
	{{.n = 9}, 8, 112, false}, {{.n = 16}, 8, 7, false}, {{.n = 4}, 56, 24, true},
};

static void mistaken_member(int fd, void *arg)
{
	unsigned char part[MOST] = {0};
	const struct mistake *mistake = arg;
	const struct crowd *c = &mistake->crowd;

	meet_all(fd, c);
	OK(glex_group_gather(group, 0, part, NULL, mistake->give));
	OK(glex_group_wait(group, WAIT_MS));
	if (!mistake->leave)
		meet(fd);
	close_group();
}

START_TEST(gather__others_give_what_is_not_wanted__learns_it)
{
	unsigned char all[GLEX_GROUP_GATHER_MEMBERS * MOST];
	struct mistake mistake = mistakes[_i];
	struct crowd *c = &mistake.crowd;
	struct peer peer[MAX];
	uint32_t i;

	c->shape = GLEX_GROUP_DIRECT;
	start(c, peer, mistaken_member);
	if (mistake.want)
		OK(glex_group_gather(group, 0, all, all, mistake.want));
	else
		OK(glex_group_bcast(group, 1, all, 8));
	RETURNS(wait_or_test(_i % 2), GLEX_SYS_ERR);
	for (i = 1; i < c->n; i++) {
		if (!mistake.leave)
			meet(peer[i].fd);
		peer_join(&peer[i]);
	}
	close_group();
}
END_TEST

/* For longer than what somebody gives would be under way. */
static void slow_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint32_t i;

	meet_all(fd, c);
	if (c->me == 1)
		sleep(6);
	for (i = 0; i < 2; i++)
		gather(c, 0, false, i ? 8 : MOST, i);
	close_group();
}

START_TEST(gather__a_member_is_late__is_waited_for)
{
	struct crowd c = {.n = 3, .shape = GLEX_GROUP_DIRECT, .tests = true};

	run_all(&c, slow_member);
}
END_TEST

struct death {
	struct crowd crowd;
	uint32_t doomed, root;
	bool to_all;
};

static const struct death deaths[] = {
	{{.n = 5, .shape = GLEX_GROUP_DIRECT}, 2, 0, true},
	{{.n = 5, .shape = GLEX_GROUP_DIRECT, .tests = true}, 0, 0, true},
	{{.n = 2, .shape = GLEX_GROUP_DIRECT}, 1, 0, true},
	{{.n = 16, .shape = GLEX_GROUP_DIRECT}, 15, 0, true},
	{{.n = 5, .shape = GLEX_GROUP_DIRECT}, 2, 3, false},
	{{.n = 5, .shape = GLEX_GROUP_DIRECT, .tests = true}, 3, 0, false},
};

static void doomed_member(int fd, void *arg)
{
	unsigned char all[GLEX_GROUP_GATHER_MEMBERS * 8], part[8] = {0};
	const struct death *death = arg;
	const struct crowd *c = &death->crowd;

	meet_all(fd, c);
	gather(c, 0, true, 8, 0);
	meet(fd);
	if (c->me == death->doomed)
		hear(fd, &(char){0}, 1); /* nothing, ever */
	if (death->to_all)
		OK(glex_group_allgather(group, part, all, 8));
	else
		OK(glex_group_gather(group, death->root, part, all, 8));
	if (death->to_all || c->me == death->root) {
		RETURNS(wait_or_test(c->tests), GLEX_SYS_ERR);
		RETURNS(glex_group_allgather(group, part, all, 8), GLEX_SYS_ERR);
		RETURNS(glex_group_gather(group, 0, part, all, 8), GLEX_SYS_ERR);
	} else {
		OK(glex_group_wait(group, WAIT_MS));
	}
	close_group();
}

START_TEST(gather__a_member_dies__who_waits_learns_it)
{
	struct death death = deaths[_i];

	lose(&death.crowd, death.doomed, doomed_member, &death);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_gather");
	TCase *tc = tcase_create("group_gather");

	own_job("group_gather");
	tcase_add_loop_test(tc, gather__of_processes__every_root_and_length, 0,
			    (int)(sizeof(crowds) / sizeof(crowds[0])));
	tcase_add_test(tc, gather__wrong_arguments__invalid);
	tcase_add_loop_test(tc, gather__a_tree_or_too_many_members__not_implemented_and_nothing_has_begun, 0,
			    (int)(sizeof(others) / sizeof(others[0])));
	tcase_add_loop_test(tc, gather__among_other_collectives__none_lost_and_none_mixed, 0,
			    (int)(sizeof(mixed) / sizeof(mixed[0])));
	tcase_add_loop_test(tc, gather__parts_that_look_like_stamps__are_not_taken_for_any, 0, 2);
	tcase_add_loop_test(tc, gather__several_send_what_one_does_not_take__held_back_and_then_all_there, 0, 2);
	tcase_add_loop_test(tc, allgather__the_last_has_begun__needs_nobody_any_more, 0, 2);
	tcase_add_loop_test(tc, allgather__others_begin_something_else__learns_it, 0, 6);
	tcase_add_loop_test(tc, gather__others_give_what_is_not_wanted__learns_it, 0,
			    (int)(sizeof(mistakes) / sizeof(mistakes[0])));
	tcase_add_test(tc, gather__a_member_is_late__is_waited_for);
	tcase_add_loop_test(tc, gather__a_member_dies__who_waits_learns_it, 0,
			    (int)(sizeof(deaths) / sizeof(deaths[0])));
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
