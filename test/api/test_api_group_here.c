/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_here.c - who of a processor has begun as the last: where members are told in which order to begin, and
 * on which processors.
 */
#include <sched.h>

#include "test/api/group.h"

#define N      4u
#define END    (-1)
#define THREAD (-2)

static cpu_set_t all;

/* The i-th processor that this process may run on; -1: it has not so many. */
static int processor(int i)
{
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	if (i >= CPU_COUNT(&all))
		return -1;
	while (!CPU_ISSET(cpu, &all) || i--)
		cpu++;
	return cpu;
}

static void go_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* As it is told: where to begin, that it has; then to wait. */
static void told_member(int fd, void *arg)
{
	int is_last, cpu;

	meet_all(fd, arg);
	for (hear(fd, &cpu, sizeof(cpu)); cpu != END; hear(fd, &cpu, sizeof(cpu))) {
		if (cpu == THREAD) {
			have_thread();
			continue;
		}
		go_to(cpu);
		OK(glex_group_barrier(group));
		is_last = glex_group_is_last_here(group);
		say(fd, &is_last, sizeof(is_last));
		hear(fd, &cpu, sizeof(cpu));
		OK(glex_group_wait(group, WAIT_MS));
		ck_assert_int_eq(glex_group_is_last_here(group), 0);
		say(fd, &cpu, sizeof(cpu));
	}
	close_group();
}

static void tell(struct peer *peer, uint32_t i, int what)
{
	say(peer[i].fd, &what, sizeof(what));
}

/* A barrier that they begin one after the other, each there.  Which of them say that they are the last there, a bit each. */
static uint32_t barrier_at(struct peer *peer, const int *cpu)
{
	uint32_t i, who = 0;
	int is_last, dummy;

	for (i = 0; i < N; i++) {
		tell(peer, i, cpu[i]);
		hear(peer[i].fd, &is_last, sizeof(is_last));
		who |= (uint32_t)is_last << i;
	}
	for (i = 0; i < N; i++)
		tell(peer, i, 0);
	for (i = 0; i < N; i++)
		hear(peer[i].fd, &dummy, sizeof(dummy));
	return who;
}

static void start_told(struct peer *peer)
{
	static struct crowd c = {.n = N, .shape = GLEX_GROUP_DIRECT};

	start_all(&c, peer, told_member, &c);
}

static void end_told(struct peer *peer)
{
	uint32_t i;

	for (i = 0; i < N; i++)
		tell(peer, i, END);
	for (i = 0; i < N; i++)
		peer_join(&peer[i]);
}

/* Where they begin, on the first and the second processor; who is the last there then, and has to wait. */
static const struct {
	int place[N];
	uint32_t last;
} rows[] = {{{0, 0, 1, 1}, 1 << 1},
	    {{0, 1, 0, 1}, 1 << 2},
	    {{1, 1, 1, 0}, 1 << 2},
	    {{0, 1, 1, 1}, 1 << 0},
	    {{0, 0, 0, 0}, 0}};
#define ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

/* Each place as a processor; false: there is one alone. */
static bool find_places(const int *place, int *cpu)
{
	uint32_t i;

	for (i = 0; i < N; i++)
		cpu[i] = processor(place[i]);
	return processor(1) >= 0;
}

START_TEST(here__from_the_second_barrier_on_at_the_same_places__who_comes_last_knows)
{
	struct peer peer[MAX];
	int cpu[N], before[N], round;

	if (!find_places(rows[_i].place, cpu) || !find_places(rows[(_i + 1) % ROWS].place, before))
		return;
	start_told(peer);
	ck_assert_uint_eq(barrier_at(peer, before), 0); /* nobody had asked */
	barrier_at(peer, before);
	barrier_at(peer, cpu); /* it counts as many as were there before */
	for (round = 0; round < 20; round++)
		ck_assert_uint_eq(barrier_at(peer, cpu), CAN_BE_ALONE ? rows[_i].last : 0);
	end_told(peer);
}
END_TEST

START_TEST(here__one_has_threads__nobody_is_taken_for_the_last)
{
	struct peer peer[MAX];
	int cpu[N], round;

	if (!find_places(rows[0].place, cpu))
		return;
	start_told(peer);
	for (round = 0; round < 3; round++)
		barrier_at(peer, cpu);
	tell(peer, N - 1, THREAD);
	barrier_at(peer, cpu); /* that one is the last to say so */
	for (round = 0; round < 5; round++)
		ck_assert_uint_eq(barrier_at(peer, cpu), 0);
	end_told(peer);
}
END_TEST

/* What is not the same for all, or not in one place: of a barrier of a tree, one of two, a broadcast. */
static struct crowd others[] = {{.n = N, .shape = GLEX_GROUP_KARY, .degree = 2},
				{.n = 2, .shape = GLEX_GROUP_DIRECT},
				{.n = N, .shape = GLEX_GROUP_DIRECT}};

static void asking_member(int fd, void *arg)
{
	const struct crowd *c = arg;
	uint64_t word = 0;
	int round;

	meet_all(fd, c);
	for (round = 0; round < 5; round++) {
		if (c == &others[2])
			OK(glex_group_bcast(group, 0, &word, sizeof(word)));
		else
			OK(glex_group_barrier(group));
		ck_assert_int_eq(glex_group_is_last_here(group), 0);
		OK(glex_group_wait(group, WAIT_MS));
	}
	close_group();
}

START_TEST(here__of_what_says_nothing_of_all__nobody_is_the_last)
{
	struct crowd *c = &others[_i];

	ck_assert_int_eq(glex_group_is_last_here(NULL), 0);
	run_all(c, asking_member);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_here");
	TCase *tc = tcase_create("group_here");

	own_job("group-here");
	tcase_add_loop_test(tc, here__from_the_second_barrier_on_at_the_same_places__who_comes_last_knows, 0, ROWS);
	tcase_add_test(tc, here__one_has_threads__nobody_is_taken_for_the_last);
	tcase_add_loop_test(tc, here__of_what_says_nothing_of_all__nobody_is_the_last, 0, 3);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
