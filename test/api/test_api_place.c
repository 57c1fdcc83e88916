/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_place.c - a glexd that a process bound to one core has started: its
 * engine must not stay on that core.  What goes where is test_place's business.
 * And who is told that processes outnumber processors.
 */
#include "config.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/side.h"

#ifdef HAVE_HWLOC
static const bool has_hwloc = true;
#else
static const bool has_hwloc = false;
#endif

static cpu_set_t all, one;

/* Binds this process, and whoever it starts, to the first core it has. */
static void bind_to_one(void)
{
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* How many threads of the process may not run on that core. */
static int threads_elsewhere(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		cpu_set_t set;

		if (entry->d_name[0] == '.' || sched_getaffinity((pid_t)atoi(entry->d_name), sizeof(set), &set) < 0)
			continue;
		CPU_AND(&set, &set, &one);
		n += CPU_COUNT(&set) == 0;
	}
	closedir(dir);
	return n;
}

static pid_t glexd_of_this_job(void)
{
	pid_t pid = glexd_stop();

	glexd_go_on();
	return pid;
}

START_TEST(place__starter_bound_to_a_core__the_engine_goes_to_another)
{
	struct side side;
	pid_t glexd;

	own_job("place-auto");
	bind_to_one();
	side_open(&side, GLEX_EP_TYPE_NORMAL, 4096, false);
	glexd = glexd_of_this_job();
	UNTIL(threads_elsewhere(glexd) == 1);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	side_close(&side);
}
END_TEST

/* The reader of the topology would have ended by the time glexd has: off means that nobody is moved. */
START_TEST(place__off__the_engine_stays)
{
	struct side side;

	own_job("place-off");
	setenv("GLEX_NUMA", "off", 1);
	bind_to_one();
	side_open(&side, GLEX_EP_TYPE_NORMAL, 4096, false);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	ck_assert_int_eq(threads_elsewhere(glexd_of_this_job()), 0);
	side_close(&side);
}
END_TEST

/* Two processors, and as many processes, then one more. */
static void bind_to_two(void)
{
	cpu_set_t two = all;
	int cpu = 0;

	for (int seen = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && ++seen > 2)
			CPU_CLR(cpu, &two);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(two), &two), 0);
}

static void be_there(int fd, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	meet(fd);
	side_close(&side);
}

START_TEST(crowded__processes_come_and_go__as_long_as_they_outnumber_the_processors_they_have)
{
	struct peer second, third;
	struct side side;

	own_job("place-crowd");
	bind_to_two();
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	ck_assert_int_eq(glex_is_crowded(NULL), 0);
	ck_assert_int_eq(glex_is_crowded(side.dev), 0);
	second = peer_start(be_there, NULL);
	third = peer_start(be_there, NULL);
	UNTIL(glex_is_crowded(side.dev) == 1);
	meet(third.fd);
	peer_join(&third);
	UNTIL(glex_is_crowded(side.dev) == 0);
	meet(second.fd);
	peer_join(&second);
	side_close(&side);
}
END_TEST

START_TEST(crowded__one_processor__always)
{
	struct side side;

	own_job("place-one");
	bind_to_one();
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	ck_assert_int_eq(glex_is_crowded(side.dev), 1);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("place");
	TCase *tc = tcase_create("place");

	if (sched_getaffinity(0, sizeof(all), &all))
		return EXIT_FAILURE;
	if (has_hwloc && CPU_COUNT(&all) > 1) {
		tcase_add_test(tc, place__starter_bound_to_a_core__the_engine_goes_to_another);
		tcase_add_test(tc, place__off__the_engine_stays);
	} else {
		puts("no hwloc, or one core: there is nowhere to go");
	}
	tcase_add_test(tc, crowded__one_processor__always);
	if (CPU_COUNT(&all) > 1)
		tcase_add_test(tc, crowded__processes_come_and_go__as_long_as_they_outnumber_the_processors_they_have);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
