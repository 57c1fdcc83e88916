/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_alloc.c - what memory of glex_alloc_with is like, and private memory
 * that is registered once and used a lot: huge pages, where they are to be had.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "test/lib/helper.h"
#include "test/lib/raw.h"

#define RW   (GLEX_MEM_READ | GLEX_MEM_WRITE)
#define HUGE ((size_t)2 << 20)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* In the order of struct emu_nic_counters. */
enum { ADOPTED = 9, HUGE_UNITS, NOT_HUGE, ATTACHED };

/* A line of a process's smaps about the mapping that holds addr, or if that is NULL one of glex_alloc's, in KiB. */
static long kib_in(pid_t pid, const void *addr, const char *what)
{
	unsigned long start, end;
	bool inside = false;
	char line[512], name[64];
	long kib = 0, found = -1;
	FILE *smaps;

	snprintf(line, sizeof(line), "/proc/%d/smaps", (int)pid);
	smaps = fopen(line, "re");
	ck_assert_ptr_nonnull(smaps);
	while (found < 0 && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = addr ? (uintptr_t)addr >= start && (uintptr_t)addr < end
				      : strstr(line, "glex_alloc") != NULL;
		else if (inside && sscanf(line, "%63[^:]: %ld", name, &kib) == 2 && strcmp(name, what) == 0)
			found = kib;
	}
	fclose(smaps);
	return found;
}

static long kib_of(const void *addr, const char *what)
{
	return kib_in(getpid(), addr, what);
}

/* Whether the system makes huge pages of such memory when it is asked to. */
static bool can_collapse(int flags)
{
	int fd = flags & MAP_ANONYMOUS ? -1 : memfd_create("x", MFD_CLOEXEC);
	unsigned char *room = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		      *base;
	bool can;

	ck_assert_ptr_ne(room, MAP_FAILED);
	base = (unsigned char *)(((uintptr_t)room + HUGE - 1) / HUGE * HUGE);
	if (fd >= 0)
		ck_assert_int_eq(ftruncate(fd, (off_t)HUGE), 0);
	ck_assert_ptr_eq(mmap(base, HUGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0), base);
	memset(base, 1, HUGE);
	can = madvise(base, HUGE, MADV_COLLAPSE) == 0;
	munmap(room, 2 * HUGE);
	if (fd >= 0)
		close(fd);
	return can;
}

static uint64_t counter(const struct side *side, int which)
{
	struct emu_ctl_nic nic;

	ck_assert_int_eq(raw_nic(side->card.addr.nic_id, &nic), 0);
	return nic.counter[which];
}

static void open_logging(struct side *side)
{
	log_begin();
	side_open(side, GLEX_EP_TYPE_FAST, 0, false);
}

static void expect_zero(const unsigned char *base, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (base[i])
			ck_abort_msg("byte %zu is %d", i, base[i]);
}

/* ---- glex_alloc_with ------------------------------------------------------------ */

static struct glex_alloc_attr huge_pages(void)
{
	struct glex_alloc_attr attr = {.field_mask = GLEX_ALLOC_ATTR_HUGE_PAGES, .huge_pages = 1};

	return attr;
}

START_TEST(alloc_with__huge_pages_wished__has_them_or_says_why_not)
{
	static const size_t lens[] = {1, 4096, HUGE - 1, HUGE, 3 * HUGE + 5};
	struct glex_alloc_attr attr = huge_pages();
	bool can = can_collapse(MAP_SHARED);
	glex_mem_handle_t mh;
	struct peer peer;
	struct side side;
	char said[100];
	void *mem;

	peer = peer_start(helper_main, &mapper);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t units = (lens[i] + 4095) / 4096 * 4096 / HUGE;
		uint64_t before;

		open_logging(&side);
		before = counter(&side, can ? HUGE_UNITS : NOT_HUGE);
		OK(glex_alloc_with(side.dev, lens[i], &attr, &mem));
		if (units)
			ck_assert_uint_eq((uintptr_t)mem % HUGE, 0);
		ck_assert_int_eq(kib_of(mem, "ShmemPmdMapped"), can ? (long)(units * HUGE / 1024) : 0);
		ck_assert_uint_eq(counter(&side, can ? HUGE_UNITS : NOT_HUGE), before + units);
		expect_zero(mem, lens[i]);
		OK(glex_register_mem(side.ep, mem, lens[i], RW, &mh));
		expect_reached(&peer, &side, mh, mem, 0, (uint32_t)(lens[i] < 1 << 20 ? lens[i] : 1 << 20));
		OK(glex_deregister_mem(side.ep, mh));
		OK(glex_free(side.dev, mem));
		RETURNS(glex_free(side.dev, mem), GLEX_INVALID_PARAM);
		snprintf(said, sizeof(said), "%zu of %zu units of 2 MiB are huge pages", can ? units : 0, units);
		ck_assert(!units || is_logged(said));
		side_close(&side);
	}
	log_end();
	let_go(&peer);
}
END_TEST

START_TEST(alloc_with__no_huge_pages_for_this_process__memory_all_the_same)
{
	struct glex_alloc_attr attr = huge_pages();
	struct side side;
	uint64_t before;
	void *mem;

	ck_assert_int_eq(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	open_logging(&side);
	before = counter(&side, NOT_HUGE);
	OK(glex_alloc_with(side.dev, 2 * HUGE, &attr, &mem));
	expect_zero(mem, 2 * HUGE);
	fill(mem, 2 * HUGE, 1);
	expect_filled(mem, 2 * HUGE, 1);
	ck_assert_int_eq(kib_of(mem, "ShmemPmdMapped"), 0);
	ck_assert_uint_eq(counter(&side, NOT_HUGE), before + 2);
	ck_assert(is_logged("0 of 2 units of 2 MiB are huge pages: "));
	OK(glex_free(side.dev, mem));
	log_end();
	side_close(&side);
}
END_TEST

/* _i: 0 a node that is there, 1 none that is */
START_TEST(alloc_with__numa_node__memory_is_there_whatever_the_node)
{
	struct glex_alloc_attr attr = {.field_mask = GLEX_ALLOC_ATTR_NUMA_NODE, .numa_node = _i ? 1023 : 0};
	struct side side;
	void *mem;

	open_logging(&side);
	OK(glex_alloc_with(side.dev, HUGE, &attr, &mem));
	expect_zero(mem, HUGE);
	ck_assert_int_eq(is_logged("is not of NUMA node 1023 in particular"), _i);
	log_end();
	OK(glex_free(side.dev, mem));
	side_close(&side);
}
END_TEST

/* All pages are there before anybody asks: a touch later costs nothing, and cannot fail. */
START_TEST(alloc_with__no_wish__like_alloc_and_touched_beforehand)
{
	struct glex_alloc_attr attr = {.field_mask = 0, .huge_pages = 77, .numa_node = UINT32_MAX};
	struct side side;
	void *mem[3];

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_alloc(side.dev, 300 * 4096, &mem[0]));
	OK(glex_alloc_with(side.dev, 300 * 4096, NULL, &mem[1]));
	OK(glex_alloc_with(side.dev, 300 * 4096, &attr, &mem[2]));
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(kib_of(mem[i], "Rss"), 1200);
		OK(glex_free(side.dev, mem[i]));
	}
	side_close(&side);
}
END_TEST

/* By whoever touches them: a peer that reaches a page of it leaves the others alone. */
START_TEST(alloc_with__untouched__pages_come_as_they_are_touched)
{
	struct glex_alloc_attr attr = {.field_mask = GLEX_ALLOC_ATTR_UNTOUCHED, .untouched = 1};
	glex_mem_handle_t mh;
	struct peer peer;
	struct side side;
	void *mem;

	peer = peer_start(helper_main, &mapper);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_alloc_with(side.dev, 300 * 4096, &attr, &mem));
	ck_assert_int_eq(kib_of(mem, "Rss"), 0);
	OK(glex_register_mem(side.ep, mem, 300 * 4096, RW, &mh));
	expect_reached(&peer, &side, mh, mem, 100 * 4096, 2 * 4096);
	ck_assert_int_le(kib_of(mem, "Rss"), 64);
	ck_assert_int_ge(kib_in(peer.pid, NULL, "Rss"), 8); /* it has it mapped */
	ck_assert_int_le(kib_in(peer.pid, NULL, "Rss"), 64);
	expect_zero(mem, 100 * 4096);
	OK(glex_deregister_mem(side.ep, mh));
	OK(glex_free(side.dev, mem));
	attr.untouched = 0;
	OK(glex_alloc_with(side.dev, 300 * 4096, &attr, &mem));
	ck_assert_int_eq(kib_of(mem, "Rss"), 1200);
	OK(glex_free(side.dev, mem));
	side_close(&side);
	let_go(&peer);
}
END_TEST

START_TEST(alloc_with__bad_arguments__invalid)
{
	struct glex_alloc_attr attr = {.field_mask = 8};
	struct side side;
	void *mem;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	RETURNS(glex_alloc_with(side.dev, 4096, &attr, &mem), GLEX_INVALID_PARAM);
	attr = (struct glex_alloc_attr){.field_mask = GLEX_ALLOC_ATTR_NUMA_NODE, .numa_node = 1024};
	RETURNS(glex_alloc_with(side.dev, 4096, &attr, &mem), GLEX_INVALID_PARAM);
	attr = huge_pages();
	RETURNS(glex_alloc_with(side.dev, 0, &attr, &mem), GLEX_INVALID_PARAM);
	RETURNS(glex_alloc_with(side.dev, UINT64_MAX, &attr, &mem), GLEX_INVALID_PARAM);
	RETURNS(glex_alloc_with(side.dev, 4096, &attr, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_alloc_with(NULL, 4096, &attr, &mem), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

/* ---- registered once, used a lot ----------------------------------------------------- */

/* Looking for what does not come, as programs do; that is when the library sees to its memory. */
static bool is_huge_after_a_while(struct side *side, const void *base, bool can)
{
	glex_ep_addr_t from;
	uint32_t len;
	char data[128];

	for (int i = 0; i < 100000; i++)
		glex_receive_mp(side->ep, 0, &from, data, &len);
	return can ? kib_of(base, "AnonHugePages") == 4096 : counter(side, NOT_HUGE) > 0;
}

START_TEST(register_mem__once_and_reached_by_attach_often__is_put_into_huge_pages)
{
	unsigned char *room = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *base = (unsigned char *)(((uintptr_t)room + HUGE) / HUGE * HUGE);
	bool can = can_collapse(MAP_PRIVATE | MAP_ANONYMOUS);
	struct peer peer = peer_start(helper_main, &mover);
	glex_mem_handle_t mh;
	struct side side;

	ck_assert_ptr_ne(room, MAP_FAILED);
	fill(base, 2 * HUGE, 3);
	setenv("GLEX_ADOPT", "never", 1);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, base, 2 * HUGE, RW, &mh));
	for (int i = 0; i < 4 * 7; i++)
		ck_assert(!tell(&peer, &side, mh, PUT, (uint32_t)(i % 4) << 20, 1 << 20, 3).failed);
	is_huge_after_a_while(&side, base, can);
	ck_assert_int_eq(kib_of(base, "AnonHugePages"), 0); /* seven times is not often */
	for (int i = 0; i < 4 * 2; i++)
		ck_assert(!tell(&peer, &side, mh, PUT, (uint32_t)(i % 4) << 20, 1 << 20, 4).failed);
	ck_assert_uint_ge(counter(&side, ATTACHED), 9 * 1024);
	UNTIL(is_huge_after_a_while(&side, base, can));
	for (int i = 0; i < 4; i++)
		expect_filled(base + ((size_t)i << 20), 1 << 20, 4);
	expect_reached(&peer, &side, mh, base, 1 << 20, 1 << 20);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&peer);
	munmap(room, 4 * HUGE);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__adopted__is_counted)
{
	unsigned char *base = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	glex_mem_handle_t mh;
	struct side side;
	uint64_t before;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	before = counter(&side, ADOPTED);
	OK(glex_register_mem(side.ep, base, 64 * 4096, RW | GLEX_MEM_ATOMIC, &mh));
	ck_assert_uint_eq(counter(&side, ADOPTED), before + 64);
	OK(glex_deregister_mem(side.ep, mh));
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alloc");
	TCase *tc = tcase_create("alloc");

	own_job("alloc");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, alloc_with__huge_pages_wished__has_them_or_says_why_not);
	tcase_add_test(tc, alloc_with__no_huge_pages_for_this_process__memory_all_the_same);
	tcase_add_loop_test(tc, alloc_with__numa_node__memory_is_there_whatever_the_node, 0, 2);
	tcase_add_test(tc, alloc_with__no_wish__like_alloc_and_touched_beforehand);
	tcase_add_test(tc, alloc_with__untouched__pages_come_as_they_are_touched);
	tcase_add_test(tc, alloc_with__bad_arguments__invalid);
	tcase_add_test(tc, register_mem__once_and_reached_by_attach_often__is_put_into_huge_pages);
	tcase_add_test(tc, register_mem__adopted__is_counted);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
