/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group.c - barrier, broadcast and reductions of a group: every root,
 * shape and degree; what is refused; a member that computes, leaves, or dies.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/api/group.h"

static const struct crowd crowds[] = {
	{.n = 1},
	{.n = 2, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 3, .degree = 1},
	{.n = 5, .degree = 2},
	{.n = 5, .degree = 2, .shape = GLEX_GROUP_KNOMIAL},
	{.n = 6, .degree = 3, .type = GLEX_EP_TYPE_EMULATE},
	{.n = 11, .degree = 8},
	{.n = 1, .shape = GLEX_GROUP_DIRECT},
	{.n = 2, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 5, .shape = GLEX_GROUP_DIRECT},
	{.n = 8, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_EMULATE},
	{.n = 16, .shape = GLEX_GROUP_DIRECT},
	{.n = 17, .shape = GLEX_GROUP_DIRECT, .undecided = true},
	{.n = 20, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 33, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_EMULATE},
	{.n = 64, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_EMULATE},
	{.n = 3, .shape = GLEX_GROUP_DIRECT, .unregistered = true},
	{.n = 5, .shape = GLEX_GROUP_DIRECT, .unregistered = true, .undecided = true},
	{.n = 4, .degree = 2, .unregistered = true},
};

START_TEST(group__of_processes__all_collectives_from_every_root)
{
	struct crowd c = crowds[_i];
	struct peer peer[MAX];
	uint32_t i;

	start(&c, peer, member);
	take_part(&c);
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

#define SIX 6u

/* A sum of members that are all of this process, who open in their order, or the other way round. */
static double sum_opened(struct crowd *c, bool backwards)
{
	static const double value[SIX] = {1e16, 3.0, -1e16, 7e15, 1.0 / 3, -7e15};
	union glex_coll_data_loc unit[SIX];
	struct glex_group_card cards[SIX];
	glex_group_t member[SIX];
	uint32_t i;

	memset(unit, 0, sizeof(unit));
	for (i = 0; i < SIX; i++) {
		uint32_t who = backwards ? SIX - 1 - i : i;

		OK(glex_group_open(dev, c->type, direct_of(c, SIX), &member[who], &cards[who]));
	}
	ck_assert((cards[0].up.v < cards[1].up.v) == !backwards); /* else there is nothing to show */
	for (i = 0; i < SIX; i++)
		OK(glex_group_join(member[i], cards, SIX, i, c->shape, c->degree));
	for (i = 0; i < SIX; i++) {
		unit[i].double_s.data = value[i];
		OK(glex_group_allreduce(member[i], &unit[i], 1, GLEX_COLL_REDUCE_DATA_BITS_64,
					GLEX_COLL_REDUCE_SUM_FLOAT));
	}
	for (i = 0; i < SIX; i++)
		OK(glex_group_wait(member[i], WAIT_MS));
	for (i = 0; i < SIX; i++) {
		ck_assert(memcmp(&unit[i], &unit[0], sizeof(unit[0])) == 0);
		OK(glex_group_close(member[i]));
	}
	return unit[0].double_s.data;
}

START_TEST(allreduce__members_on_other_endpoints__the_same_bits)
{
	static struct crowd ways[] = {
		{.degree = 5, .type = GLEX_EP_TYPE_EMULATE},
		{.degree = 2, .type = GLEX_EP_TYPE_EMULATE},
		{.degree = 2, .type = GLEX_EP_TYPE_NORMAL, .shape = GLEX_GROUP_KNOMIAL},
		{.type = GLEX_EP_TYPE_EMULATE, .shape = GLEX_GROUP_DIRECT},
	};
	double forth, back;

	OK(glex_open_device(0, &dev));
	forth = sum_opened(&ways[_i], false);
	back = sum_opened(&ways[_i], true);
	ck_assert(memcmp(&forth, &back, sizeof(forth)) == 0);
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(group__wrong_arguments__invalid)
{
	union glex_coll_data_loc units[7];
	struct glex_group_card card, many[GLEX_GROUP_DIRECT_MAX + 1];
	struct crowd c = {.n = 1};
	unsigned char data[113];
	uint32_t i;

	memset(units, 0, sizeof(units));
	open_group(&card, &c);
	for (i = 0; i <= GLEX_GROUP_DIRECT_MAX; i++)
		many[i] = card;
	RETURNS(glex_group_join(group, many, GLEX_GROUP_DIRECT_MAX + 1, 0, GLEX_GROUP_DIRECT, 2), GLEX_INVALID_PARAM);
	RETURNS(glex_group_join(group, &card, 1, 1, GLEX_GROUP_KARY, 2), GLEX_INVALID_PARAM);
	RETURNS(glex_group_join(group, &card, 1, 0, GLEX_GROUP_KARY, 33), GLEX_INVALID_PARAM);
	RETURNS(glex_group_join(group, NULL, 1, 0, GLEX_GROUP_KARY, 2), GLEX_INVALID_PARAM);
	RETURNS(glex_group_fail(group), GLEX_INVALID_PARAM);
	OK(glex_group_join(group, &card, 1, 0, GLEX_GROUP_KARY, 0));
	RETURNS(glex_group_bcast(group, 1, data, 8), GLEX_INVALID_PARAM);
	RETURNS(glex_group_bcast(group, 0, data, 113), GLEX_INVALID_PARAM);
	RETURNS(glex_group_bcast(group, 0, NULL, 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_bcast_long(group, 1, data, 8), GLEX_INVALID_PARAM);
	RETURNS(glex_group_bcast_long(group, 0, data, GLEX_GROUP_LONG_MAX + 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_bcast_long(group, 0, NULL, 1), GLEX_INVALID_PARAM);
	RETURNS(glex_group_set_long(group, (enum glex_group_long)2), GLEX_INVALID_PARAM);
	RETURNS(glex_group_reduce(group, 1, units, 1, GLEX_COLL_REDUCE_DATA_BITS_32, GLEX_COLL_REDUCE_BOR),
		GLEX_INVALID_PARAM);
	RETURNS(glex_group_allreduce(group, units, 7, GLEX_COLL_REDUCE_DATA_BITS_32, GLEX_COLL_REDUCE_BOR),
		GLEX_INVALID_PARAM);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, 0));
	RETURNS(glex_group_open(NULL, GLEX_EP_TYPE_FAST, 0, &group, &card), GLEX_INVALID_PARAM);
	RETURNS(glex_group_open(dev, GLEX_EP_TYPE_FAST, GLEX_GROUP_DIRECT_MAX + 1, &group, &card), GLEX_INVALID_PARAM);
	RETURNS(glex_group_close(NULL), GLEX_INVALID_PARAM);
	close_group();
}
END_TEST

/* ---- who is slow, and who is gone ------------------------------------------------------------ */

static void late_member(int fd, void *arg)
{
	const struct crowd *c = arg;

	meet_all(fd, c);
	meet(fd);
	OK(glex_group_barrier(group));
	meet(fd); /* it computes, and does not wait */
	meet(fd);
	OK(glex_group_wait(group, 0));
	close_group();
}

START_TEST(wait__somebody_has_not_begun__no_mp_and_then_success)
{
	struct crowd c = {.n = _i == 2 ? 18 : 4, .degree = 1, .shape = _i ? GLEX_GROUP_DIRECT : GLEX_GROUP_KARY};
	const uint64_t *word = NULL;
	struct peer peer[MAX];
	uint64_t value = 0;
	uint32_t i;

	start(&c, peer, late_member);
	RETURNS(glex_group_look(group, &word, &value), GLEX_INVALID_PARAM); /* nothing was begun */
	RETURNS(glex_group_look(group, NULL, &value), GLEX_INVALID_PARAM);
	RETURNS(glex_group_look(group, &word, NULL), GLEX_INVALID_PARAM);
	OK(glex_group_barrier(group));
	RETURNS(glex_group_wait(group, 0), GLEX_NO_MP);
	RETURNS(glex_group_wait(group, 250), GLEX_NO_MP);
	RETURNS(glex_group_look(group, &word, &value), GLEX_NO_MP);
	ck_assert(!_i == !word);
	ck_assert(!_i || __atomic_load_n(word, __ATOMIC_RELAXED) != value); /* relaxed: nothing comes with it */
	for (i = 1; i < c.n; i++) {
		meet(peer[i].fd);
		meet(peer[i].fd);
	}
	ck_assert(!_i || __atomic_load_n(word, __ATOMIC_RELAXED) == value); /* relaxed: nothing comes with it */
	OK(glex_group_look(group, &word, &value));			    /* whoever came last has done it all */
	ck_assert_ptr_null(word);
	for (i = 1; i < c.n; i++) {
		meet(peer[i].fd);
		peer_join(&peer[i]);
	}
	close_group();
}
END_TEST

/* Members without a tree, of whom the others compute; this one has begun, and waits. */
static void wait_for_the_late(struct crowd *c, struct peer *peer)
{
	start(c, peer, late_member);
	OK(glex_group_barrier(group));
}

static void late_ones_begin(const struct crowd *c, struct peer *peer)
{
	uint32_t i;

	for (i = 1; i < c->n; i++) {
		meet(peer[i].fd);
		meet(peer[i].fd);
	}
	OK(glex_group_wait(group, WAIT_MS));
	for (i = 1; i < c->n; i++) {
		meet(peer[i].fd);
		peer_join(&peer[i]);
	}
	close_group();
}

/* More of them than a member that computes has room for MPs. */
START_TEST(direct__waited_for_in_many_short_slices__says_that_it_sleeps_once)
{
	struct crowd c = {.n = 3, .shape = GLEX_GROUP_DIRECT};
	struct peer peer[MAX];
	uint32_t i;

	log_begin();
	wait_for_the_late(&c, peer);
	for (i = 0; i < 160; i++)
		RETURNS(glex_group_wait(group, 1), GLEX_NO_MP);
	ck_assert(!is_logged("queue is full"));
	late_ones_begin(&c, peer);
	log_end();
}
END_TEST

/* By MPs of somebody else, so that none that says who sleeps finds room. */
static void fill_up(glex_ep_addr_t to)
{
	struct glex_imm_mp_req req = {.rmt_ep_addr = to};
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = 1};
	glex_ep_handle_t ep;
	uint32_t num = 0;

	OK(glex_create_ep(dev, &attr, &ep));
	UNTIL(({
		struct glex_err_req err;

		OK(glex_send_imm_mp(ep, &req, NULL));
		num = 1;
		OK(glex_poll_error_req(ep, &num, &err));
		num != 0;
	}));
	OK(glex_destroy_ep(ep));
}

START_TEST(direct__no_room_to_say_that_it_sleeps__nobody_is_missed)
{
	struct crowd c = {.n = 2, .shape = GLEX_GROUP_DIRECT};
	struct peer peer[MAX];

	wait_for_the_late(&c, peer);
	fill_up(all_cards[1].down);
	RETURNS(glex_group_wait(group, 1300), GLEX_NO_MP); /* longer than a death would be waited for */
	late_ones_begin(&c, peer);
}
END_TEST

/* From every root, so that each member sends something to each. */
static void tell_everybody(const struct crowd *c)
{
	uint64_t data;
	uint32_t root;

	for (root = 0; root < c->n; root++) {
		data = c->me == root ? root + 1 : 0;
		OK(glex_group_bcast(group, root, &data, sizeof(data)));
		UNTIL(glex_group_wait(group, 0) != GLEX_NO_MP); /* who waits and sleeps finds other ways besides */
		ck_assert_uint_eq(data, root + 1);
	}
}

static void acquainted_member(int fd, void *arg)
{
	meet_all(fd, arg);
	meet(fd);
	meet(fd);
	tell_everybody(arg);
	meet(fd);
	close_group();
}

START_TEST(direct__joined__asks_glexd_for_no_way_any_more)
{
	struct crowd c = {.n = _i ? 19 : 5, .shape = GLEX_GROUP_DIRECT};
	struct peer peer[MAX];
	uint32_t i;

	start(&c, peer, acquainted_member);
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	glexd_stop();
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	tell_everybody(&c);
	for (i = 1; i < c.n; i++)
		meet(peer[i].fd);
	glexd_go_on();
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

/* Of one line or two, to one or all; whether it came to what it should. */
static void reduce_some(const struct crowd *c, uint32_t round, uint32_t root, bool all, bool two)
{
	uint32_t count = two ? 6 : 1, i, winner = (c->n - 1 + round * (c->n - 1)) % c->n;
	enum glex_coll_reduce_op op = two ? GLEX_COLL_REDUCE_MAXLOC_UNSIGNED : GLEX_COLL_REDUCE_SUM_UNSIGNED;
	uint64_t sum = (uint64_t)round * c->n + c->n * (c->n - 1) / 2;
	union glex_coll_data_loc unit[6];

	memset(unit, 0, sizeof(unit));
	for (i = 0; i < count; i++) {
		unit[i].uint64_s.data = two ? (c->me + round) % c->n + i : round + c->me;
		unit[i].uint64_s.location = c->me;
	}
	if (all)
		OK(glex_group_allreduce(group, unit, count, GLEX_COLL_REDUCE_DATA_BITS_64, op));
	else
		OK(glex_group_reduce(group, root, unit, count, GLEX_COLL_REDUCE_DATA_BITS_64, op));
	OK(glex_group_wait(group, WAIT_MS));
	for (i = 0; i < count && (all || root == c->me); i++) {
		SURE(unit[i].uint64_s.data == (two ? c->n - 1 + i : sum));
		SURE(!two || unit[i].uint64_s.location == winner);
	}
}

#define MIXED 1200u

/* What and from where is drawn alike everywhere; who is late now and then is not. */
static void do_many(const struct crowd *c)
{
	uint32_t common = c->n, own = c->n + c->me + 1, round, root, len, i;
	unsigned char data[112];

	for (round = 0; round < MIXED; round++) {
		uint32_t what = draw(&common) % 8, two = draw(&common) % 3 == 0;

		root = draw(&common) % 4 ? draw(&common) % c->n : c->n - 1;
		for (i = draw(&own) % 32 ? 0 : draw(&own) % 64; i > 0; i--)
			sched_yield();
		if (what == 0) {
			OK(glex_group_barrier(group));
			OK(glex_group_wait(group, WAIT_MS));
		} else if (what < 4) {
			len = two ? 112 : 8;
			memset(data, 0, sizeof(data));
			if (c->me == root)
				fill(data, len, round);
			OK(glex_group_bcast(group, root, data, len));
			OK(glex_group_wait(group, WAIT_MS));
			expect_filled(data, len, round);
		} else {
			reduce_some(c, round, root, what < 6, two);
		}
	}
}

static void busy_member(int fd, void *arg)
{
	meet_all(fd, arg);
	do_many(arg);
	close_group(); /* others may not have ended yet */
}

static const struct crowd mixed[] = {
	{.n = 2, .shape = GLEX_GROUP_DIRECT},
	{.n = 3, .shape = GLEX_GROUP_DIRECT, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 7, .shape = GLEX_GROUP_DIRECT},
	{.n = 16, .shape = GLEX_GROUP_DIRECT},
	{.n = 18, .shape = GLEX_GROUP_DIRECT},
	{.n = 6, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
	{.n = 17, .shape = GLEX_GROUP_DIRECT, .shuffled = true},
	{.n = 2, .degree = 2},
	{.n = 6, .degree = 2},
	{.n = 7, .degree = 2, .shape = GLEX_GROUP_KNOMIAL, .type = GLEX_EP_TYPE_NORMAL},
	{.n = 5, .degree = 3, .shuffled = true},
};

START_TEST(group__any_mixture_of_collectives__none_lost_and_none_mixed)
{
	struct crowd c = mixed[_i];

	if (c.shuffled)
		shuffle("group-shuffled");
	run_all(&c, busy_member);
}
END_TEST

static void other_member(int fd, void *arg)
{
	meet_all(fd, arg);
	OK(glex_group_barrier(group));
	RETURNS(glex_group_wait(group, WAIT_MS), GLEX_SYS_ERR);
	close_group();
}

START_TEST(direct__others_begin_something_else__all_learn_it)
{
	struct crowd c = {.n = _i ? 18 : 3, .shape = GLEX_GROUP_DIRECT};
	union glex_coll_data_loc unit = {.uint64_s = {.data = 1}};
	struct peer peer[MAX];
	uint32_t i;

	start(&c, peer, other_member);
	OK(glex_group_allreduce(group, &unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_UNSIGNED));
	RETURNS(glex_group_wait(group, WAIT_MS), GLEX_SYS_ERR);
	for (i = 1; i < c.n; i++)
		peer_join(&peer[i]);
	close_group();
}
END_TEST

/* ---- who dies, and who leaves ------------------------------------------------------------------ */

/* Who, and of how many: the first of all, the first of a team, one among others. */
struct death {
	struct crowd crowd;
	uint32_t doomed;
};

static const struct death deaths[] = {
	{{.n = 6, .degree = 2}, 2},
	{{.n = 6, .degree = 2, .shape = GLEX_GROUP_KNOMIAL}, 2},
	{{.n = 6, .shape = GLEX_GROUP_DIRECT}, 2},
	{{.n = 6, .degree = 2, .tests = true}, 2},
	{{.n = 6, .degree = 2, .shape = GLEX_GROUP_KNOMIAL, .tests = true}, 2},
	{{.n = 6, .shape = GLEX_GROUP_DIRECT, .tests = true}, 2},
	{{.n = 20, .shape = GLEX_GROUP_DIRECT}, 8},
	{{.n = 20, .shape = GLEX_GROUP_DIRECT}, 19},
	{{.n = 6, .shape = GLEX_GROUP_DIRECT}, 0},
	{{.n = 20, .shape = GLEX_GROUP_DIRECT}, 0},
};

/* In processes of their own all, so that any of them may die. */
static void doomed_member(int fd, void *arg)
{
	const struct death *death = arg;
	const struct crowd *c = &death->crowd;

	meet_all(fd, c);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	meet(fd);
	if (c->me == death->doomed)
		hear(fd, &(char){0}, 1); /* nothing, ever */
	OK(glex_group_barrier(group));
	RETURNS(wait_or_test(c->tests), GLEX_SYS_ERR);
	RETURNS(glex_group_wait(group, 0), GLEX_SYS_ERR);
	RETURNS(glex_group_barrier(group), GLEX_SYS_ERR);
	close_group();
}

START_TEST(group__a_member_dies__all_others_learn_it)
{
	struct death death = deaths[_i];

	lose(&death.crowd, death.doomed, doomed_member, &death);
}
END_TEST

/* One gives the group up, instead of beginning what the others wait for. */
static void failing_member(int fd, void *arg)
{
	const struct death *death = arg;
	const struct crowd *c = &death->crowd;

	RETURNS(glex_group_fail(NULL), GLEX_INVALID_PARAM);
	meet_all(fd, c);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	if (c->me == death->doomed) {
		OK(glex_group_fail(group));
		OK(glex_group_fail(group));
		RETURNS(glex_group_barrier(group), GLEX_SYS_ERR);
	} else {
		OK(glex_group_barrier(group));
	}
	RETURNS(wait_or_test(c->tests), GLEX_SYS_ERR);
	RETURNS(glex_group_barrier(group), GLEX_SYS_ERR);
	close_group();
}

START_TEST(fail__one_member__all_others_learn_it)
{
	struct death death = deaths[_i];
	struct peer peer[MAX];
	uint32_t i;

	start_all(&death.crowd, peer, failing_member, &death);
	for (i = 0; i < death.crowd.n; i++)
		peer_join(&peer[i]);
}
END_TEST

/* One leaves in the middle, and tells nobody: each has to do the same. */
static void abandoning_member(int fd, void *arg)
{
	const struct death *death = arg;
	const struct crowd *c = &death->crowd;

	RETURNS(glex_group_abandon(NULL), GLEX_INVALID_PARAM);
	meet_all(fd, c);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	if (c->me != death->doomed) {
		OK(glex_group_barrier(group));
		RETURNS(glex_group_wait(group, 2000), GLEX_NO_MP); /* longer than a death takes to be learnt */
	}
	OK(glex_group_abandon(group));
	OK(glex_group_abandon(group));
	RETURNS(glex_group_barrier(group), GLEX_SYS_ERR);
	close_group();
}

START_TEST(abandon__one_member__others_are_not_told)
{
	struct death death = deaths[_i];
	struct peer peer[MAX];
	uint32_t i;

	start_all(&death.crowd, peer, abandoning_member, &death);
	for (i = 0; i < death.crowd.n; i++)
		peer_join(&peer[i]);
}
END_TEST

static glex_group_t meet_other(int fd, const struct crowd *c, struct glex_group_card card[2])
{
	glex_group_t two;

	OK(glex_group_open(dev, c->type, direct_of(c, 2), &two, &card[c->me]));
	say(fd, &card[c->me], sizeof(*card));
	hear(fd, &card[!c->me], sizeof(*card));
	OK(glex_group_join(two, card, 2, c->me, c->shape, c->degree));
	meet(fd);
	return two;
}

static void in_step(glex_group_t two)
{
	OK(glex_group_barrier(two));
	OK(glex_group_wait(two, WAIT_MS));
}

/* Its first group learns of a failure when the other member's endpoints have become those of the second. */
static void behind(int fd, void *arg)
{
	struct crowd c = *(struct crowd *)arg;
	struct glex_group_card card[2];
	glex_group_t first, second;

	c.me = 1;
	OK(glex_open_device(0, &dev));
	first = meet_other(fd, &c, card);
	in_step(first);
	second = meet_other(fd, &c, card);
	OK(glex_group_fail(first));
	meet(fd);
	usleep(1500000);
	in_step(second);
	OK(glex_group_close(first));
	OK(glex_group_close(second));
	OK(glex_close_device(dev));
}

START_TEST(fail__to_who_has_left__is_not_for_who_has_its_endpoints_now)
{
	struct crowd c = {.n = 2, .degree = 2, .shape = _i ? GLEX_GROUP_DIRECT : GLEX_GROUP_KARY};
	struct glex_group_card card[2], was;
	struct peer peer;
	glex_group_t two;

	peer = peer_start(behind, &c);
	OK(glex_open_device(0, &dev));
	two = meet_other(peer.fd, &c, card);
	in_step(two);
	was = card[0];
	OK(glex_group_close(two));
	two = meet_other(peer.fd, &c, card);
	ck_assert(card[0].up.v == was.up.v); /* else this test has nothing to show */
	ck_assert_uint_ne(card[0].key, was.key);
	meet(peer.fd);
	in_step(two);
	OK(glex_group_close(two));
	OK(glex_close_device(dev));
	peer_join(&peer);
}
END_TEST

/* Begins what the other has given up, and does not know it yet. */
static void unaware(int fd, void *arg)
{
	struct crowd c = *(struct crowd *)arg;
	struct glex_group_card card[2];
	glex_group_t first, second;

	c.me = 1;
	OK(glex_open_device(0, &dev));
	first = meet_other(fd, &c, card);
	in_step(first);
	second = meet_other(fd, &c, card);
	OK(glex_group_barrier(first));
	meet(fd);
	meet(fd);
	in_step(second);
	RETURNS(glex_group_wait(first, WAIT_MS), GLEX_SYS_ERR);
	OK(glex_group_close(first));
	OK(glex_group_close(second));
	OK(glex_close_device(dev));
}

START_TEST(fail__others_begin_something_meanwhile__no_gate_of_another_group_opens)
{
	struct crowd c = {.n = 2, .degree = 2, .shape = GLEX_GROUP_KARY};
	struct glex_group_card card[2];
	struct peer peer;
	glex_group_t two;

	peer = peer_start(unaware, &c);
	OK(glex_open_device(0, &dev));
	two = meet_other(peer.fd, &c, card);
	in_step(two);
	OK(glex_group_fail(two));
	OK(glex_group_close(two));
	two = meet_other(peer.fd, &c, card);
	meet(peer.fd);
	OK(glex_group_barrier(two));
	RETURNS(glex_group_wait(two, 500), GLEX_NO_MP);
	meet(peer.fd);
	OK(glex_group_wait(two, WAIT_MS));
	OK(glex_group_close(two));
	OK(glex_close_device(dev));
	peer_join(&peer);
}
END_TEST

/* As somebody who waits says to members that have left, whose endpoints these were. */
static void stranger(int fd, void *arg)
{
	struct crowd c = *(struct crowd *)arg;
	struct glex_group_card card[2];
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = 1};
	uint64_t words[2] = {1, 1};
	struct glex_imm_mp_req req = {.data = words, .len = sizeof(words)};
	glex_ep_handle_t ep;
	glex_group_t two;

	c.me = 1;
	OK(glex_open_device(0, &dev));
	OK(glex_create_ep(dev, &attr, &ep));
	two = meet_other(fd, &c, card);
	req.rmt_ep_addr = card[0].down;
	OK(glex_send_imm_mp(ep, &req, NULL));
	meet(fd);
	meet(fd);
	in_step(two);
	OK(glex_group_close(two));
	OK(glex_close_device(dev));
}

START_TEST(wait__a_packet_from_elsewhere__is_no_result)
{
	struct crowd c = {.n = 2, .degree = 2, .shape = GLEX_GROUP_KARY};
	struct glex_group_card card[2];
	struct peer peer;
	glex_group_t two;

	peer = peer_start(stranger, &c);
	OK(glex_open_device(0, &dev));
	two = meet_other(peer.fd, &c, card);
	meet(peer.fd);
	OK(glex_group_barrier(two));
	RETURNS(glex_group_wait(two, 100), GLEX_NO_MP);
	meet(peer.fd);
	OK(glex_group_wait(two, WAIT_MS));
	OK(glex_group_close(two));
	OK(glex_close_device(dev));
	peer_join(&peer);
}
END_TEST

/* The root waits for the last member; those whose part is done have left meanwhile. */
static void leaving_member(int fd, void *arg)
{
	union glex_coll_data_loc unit = {.uint32_s.data = 1};
	const struct crowd *c = arg;

	meet_all(fd, c);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	if (c->me + 1 == c->n)
		usleep(2500000); /* longer than a death would be waited for */
	OK(glex_group_reduce(group, 0, &unit, 1, GLEX_COLL_REDUCE_DATA_BITS_32, GLEX_COLL_REDUCE_SUM_UNSIGNED));
	OK(c->tests ? wait_or_test(true) : glex_group_wait(group, WAIT_MS));
	if (c->me == 0)
		ck_assert_uint_eq(unit.uint32_s.data, c->n);
	close_group();
}

static const struct crowd leaving[] = {
	{.n = 3, .shape = GLEX_GROUP_DIRECT},
	{.n = 5, .shape = GLEX_GROUP_DIRECT, .tests = true},
	{.n = 4, .degree = 3},
	{.n = 5, .degree = 4, .shape = GLEX_GROUP_KNOMIAL, .tests = true},
};

START_TEST(group__members_have_left__who_still_waits_does_not_miss_them)
{
	struct crowd c = leaving[_i];
	struct peer peer[MAX];
	uint32_t i;

	start_all(&c, peer, leaving_member, &c);
	for (i = 0; i < c.n; i++)
		peer_join(&peer[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group");
	TCase *tc = tcase_create("group");

	own_job("group");
	tcase_add_loop_test(tc, group__of_processes__all_collectives_from_every_root, 0,
			    (int)(sizeof(crowds) / sizeof(crowds[0])));
	tcase_add_loop_test(tc, allreduce__members_on_other_endpoints__the_same_bits, 0, 4);
	tcase_add_test(tc, group__wrong_arguments__invalid);
	tcase_add_loop_test(tc, wait__somebody_has_not_begun__no_mp_and_then_success, 0, 3);
	tcase_add_test(tc, direct__waited_for_in_many_short_slices__says_that_it_sleeps_once);
	tcase_add_test(tc, direct__no_room_to_say_that_it_sleeps__nobody_is_missed);
	tcase_add_loop_test(tc, direct__joined__asks_glexd_for_no_way_any_more, 0, 2);
	tcase_add_loop_test(tc, group__any_mixture_of_collectives__none_lost_and_none_mixed, 0,
			    (int)(sizeof(mixed) / sizeof(mixed[0])));
	tcase_add_loop_test(tc, direct__others_begin_something_else__all_learn_it, 0, 2);
	tcase_add_loop_test(tc, group__a_member_dies__all_others_learn_it, 0,
			    (int)(sizeof(deaths) / sizeof(deaths[0])));
	tcase_add_loop_test(tc, fail__one_member__all_others_learn_it, 0, (int)(sizeof(deaths) / sizeof(deaths[0])));
	tcase_add_loop_test(tc, abandon__one_member__others_are_not_told, 0, 3);
	tcase_add_loop_test(tc, fail__to_who_has_left__is_not_for_who_has_its_endpoints_now, 0, 2);
	tcase_add_test(tc, fail__others_begin_something_meanwhile__no_gate_of_another_group_opens);
	tcase_add_test(tc, wait__a_packet_from_elsewhere__is_no_result);
	tcase_add_loop_test(tc, group__members_have_left__who_still_waits_does_not_miss_them, 0,
			    (int)(sizeof(leaving) / sizeof(leaving[0])));
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
