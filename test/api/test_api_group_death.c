/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_death.c - a member of a tree dies in the middle: it has begun a collective of each kind, and the
 * others begin when it is gone.  It is an inner member, so that its part of it is never done, or member 0, who is
 * the root of each tree, whatever the collective's.
 */
#include <stdlib.h>
#include <string.h>

#include "test/api/group.h"

enum what { BCAST, REDUCE, ALLREDUCE, ALL_KINDS };

struct middle {
	struct crowd crowd;
	enum what what;
	uint32_t doomed, root;
};

static uint64_t deaths(void)
{
	uint64_t next = 0;
	uint32_t none = 0;

	OK(glex_poll_dead(dev, &next, &none, NULL));
	return next;
}

static void begin(const struct middle *m, unsigned char *data, union glex_coll_data_loc *unit)
{
	if (m->what == BCAST)
		OK(glex_group_bcast(group, m->root, data, 8));
	else if (m->what == REDUCE)
		OK(glex_group_reduce(group, m->root, unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64,
				     GLEX_COLL_REDUCE_SUM_FLOAT));
	else
		OK(glex_group_allreduce(group, unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_FLOAT));
}

static void doomed_member(int fd, void *arg)
{
	const struct middle *m = arg;
	union glex_coll_data_loc unit = {.double_s = {.data = 1.5}};
	unsigned char data[8] = {0};
	uint64_t before;
	glex_ret_t ret;

	meet_all(fd, &m->crowd);
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	before = deaths();
	meet(fd); /* so that nobody is still in that one */
	if (m->crowd.me == m->doomed) {
		begin(m, data, &unit);
		ret = glex_group_wait(group, 0);
		ck_assert(ret == GLEX_NO_MP || (ret == GLEX_SUCCESS && m->what != ALLREDUCE));
		meet(fd);
		hear(fd, &(char){0}, 1); /* nothing, ever */
	}
	meet(fd); /* it is dead; until glexd knows its NIC goes on for it */
	UNTIL(deaths() > before);
	begin(m, data, &unit);
	ret = wait_or_test(m->crowd.tests);
	if (ret == GLEX_SUCCESS) { /* who has only to send, or has what the dead one had sent */
		ck_assert(m->what != ALLREDUCE);
		ret = glex_group_barrier(group);
		if (ret == GLEX_SUCCESS)
			ret = wait_or_test(m->crowd.tests);
	}
	ck_assert_int_eq(ret, GLEX_SYS_ERR);
	RETURNS(glex_group_barrier(group), GLEX_SYS_ERR);
	close_group();
}

START_TEST(group__a_member_that_has_begun_dies__all_others_learn_it)
{
	static const uint32_t doomed[] = {2, 0}, roots[] = {0, 2, 4};
	struct middle m = {.crowd = {.n = 7, .degree = 2}};
	struct peer peer[MAX];
	uint32_t i;

	m.what = (enum what)(_i % ALL_KINDS);
	m.crowd.shape = _i / ALL_KINDS % 2 ? GLEX_GROUP_KNOMIAL : GLEX_GROUP_KARY;
	m.crowd.tests = _i % 2;
	m.doomed = doomed[_i / ALL_KINDS / 2];
	m.root = roots[_i / 2 % 3];
	start_all(&m.crowd, peer, doomed_member, &m);
	for (i = 0; i < m.crowd.n; i++)
		meet(peer[i].fd);
	meet(peer[m.doomed].fd);
	peer_kill(&peer[m.doomed]);
	for (i = 0; i < m.crowd.n; i++)
		if (i != m.doomed)
			meet(peer[i].fd);
	for (i = 0; i < m.crowd.n; i++)
		if (i != m.doomed)
			peer_join(&peer[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_death");
	TCase *tc = tcase_create("group_death");

	own_job("group-death");
	tcase_add_loop_test(tc, group__a_member_that_has_begun_dies__all_others_learn_it, 0, ALL_KINDS * 2 * 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
