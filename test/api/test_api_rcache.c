/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_rcache.c - the registration cache: what it keeps, merges and drops.
 *
 * Loops run over the ways in which it may learn of changes (MONITORS).
 */
#include "test/api/rcache_bench.h"

/* ---- hits --------------------------------------------------------------------- */

START_TEST(rcache__same_buffer_again__same_region)
{
	struct glex_rcache_region first, again, part;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, _i, NULL);
	mem = map_at(NULL, 16 * page, 7);
	first = get(&b, mem + 100, 10 * page, R);
	ck_assert_uint_eq(first.offset, 100);
	peer_finds(&b, &first, 10 * K, 7);
	again = get(&b, mem + 100, 10 * page, R);
	part = get(&b, mem + page + 1, 3, 0);
	if (_i != OFF) {
		ck_assert_uint_eq(first.mh.v, again.mh.v);
		ck_assert_uint_eq(first.mh.v, part.mh.v);
		ck_assert_uint_eq(part.offset, page + 1);
		peer_finds(&b, &part, 3, 7);
		ck_assert_uint_eq(stats_of(&b).registered, 1);
		ck_assert_uint_eq(stats_of(&b).hits, 2);
	} else {
		ck_assert_uint_eq(stats_of(&b).registered, 3);
		ck_assert_uint_eq(stats_of(&b).uncached, 3);
	}
	ck_assert_uint_eq(stats_of(&b).in_use, _i == OFF ? 3 : 1);
	put(&b, &first);
	put(&b, &part);
	put(&b, &again);
	ck_assert_uint_eq(stats_of(&b).registered, _i == OFF ? 0 : 1);
	RETURNS(glex_rcache_put(b.rc, &again), GLEX_INVALID_PARAM);
	unmap(_i, mem, 16 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__bad_arguments__invalid)
{
	struct glex_rcache_attr attr = {.field_mask = 1 << 20};
	struct glex_rcache_region region = {.slot = 77};
	glex_rcache_handle_t rc;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, NULL);
	mem = map_at(NULL, page, 0);
	RETURNS(glex_rcache_create(NULL, NULL, &rc), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_create(b.side.ep, &attr, &rc), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_create(b.side.ep, NULL, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_get(NULL, mem, 1, R, &region), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_get(b.rc, NULL, 1, R, &region), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_get(b.rc, mem, 0, R, &region), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_get(b.rc, mem, 1, 64, &region), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_get(b.rc, mem, 1, R, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_get(b.rc, mem, UINT64_C(1) << 32, R, &region), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_get(b.rc, mem, UINT64_MAX - 5, R, &region), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_put(b.rc, &region), GLEX_INVALID_PARAM);
	region.slot = UINT32_MAX;
	RETURNS(glex_rcache_put(b.rc, &region), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_put(b.rc, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_query(b.rc, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_rcache_destroy(NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_mem_invalidate(mem, 0), GLEX_INVALID_PARAM);
	RETURNS(glex_mem_invalidate(mem, UINT64_MAX), GLEX_INVALID_PARAM);
	ck_assert_uint_eq(stats_of(&b).registered, 0);
	munmap(mem, page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__more_rights_wanted__registered_with_both)
{
	struct glex_rcache_region reader, writer;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, NULL);
	mem = map_at(NULL, page, 1);
	reader = get(&b, mem, page, R);
	ck_assert_uint_eq(ask_peer(&b, &reader, 0, 8, true, 9).failed, 1);
	writer = get(&b, mem, page, W);
	ck_assert_uint_ne(reader.mh.v, writer.mh.v);
	ck_assert_uint_eq(ask_peer(&b, &writer, 0, 8, true, 9).failed, 0);
	peer_finds(&b, &writer, 8, 9);
	peer_finds(&b, &reader, 8, 9); /* still good: it is held */
	ck_assert_uint_eq(stats_of(&b).registered, 2);
	put(&b, &reader);
	ck_assert_uint_eq(stats_of(&b).registered, 1);
	put(&b, &writer);
	ck_assert_uint_eq(get_put(&b, mem, page, R).mh.v, writer.mh.v);
	munmap(mem, page);
	bench_close(&b);
}
END_TEST

/* ---- merging and splitting ------------------------------------------------------ */

START_TEST(rcache__merge__overlapping_and_adjacent_become_one)
{
	struct glex_rcache_region held, left, all;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, NULL);
	mem = map_at(NULL, 12 * page, 3);
	held = get(&b, mem + 2 * page, 2 * page, R);
	get_put(&b, mem + 6 * page, 2 * page, R);
	ck_assert_uint_eq(stats_of(&b).count, 2);
	left = get_put(&b, mem + 3 * page, 2 * page, R); /* overlaps */
	ck_assert_uint_eq(left.offset, page);
	all = get_put(&b, mem + 5 * page, 1, R); /* fills the gap */
	ck_assert_uint_eq(all.offset, 3 * page);
	ck_assert_uint_eq(stats_of(&b).count, 1);
	ck_assert_uint_eq(stats_of(&b).size, 6 * page);
	ck_assert_uint_eq(stats_of(&b).merges, 2);
	ck_assert_uint_eq(stats_of(&b).registered, 2);
	peer_finds(&b, &held, (uint32_t)(2 * page), 3);
	put(&b, &held);
	ck_assert_uint_eq(stats_of(&b).registered, 1);
	ck_assert_uint_eq(get_put(&b, mem + 2 * page, 6 * page, R).mh.v, all.mh.v);
	munmap(mem, 12 * page);
	bench_close(&b);
}
END_TEST

/* What is longer than the cache may be would not be kept, and so be registered each time. */
START_TEST(rcache__merge_longer_than_the_cache__not_merged)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_SIZE, .max_size = 4 * 4096};
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, &attr);
	mem = map_at(NULL, 8 * page, 3);
	get_put(&b, mem, 3 * page, R);
	get_put(&b, mem + 3 * page, 2 * page, R); /* touches */
	get_put(&b, mem + 4 * page, 4 * page, R); /* overlaps */
	ck_assert_uint_eq(stats_of(&b).merges, 0);
	ck_assert_uint_eq(stats_of(&b).misses, 3);
	get_put(&b, mem + 4 * page, 4 * page, R);
	ck_assert_uint_eq(stats_of(&b).misses, 3);
	ck_assert_uint_le(stats_of(&b).size, 4 * page);
	munmap(mem, 8 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__adjacent_with_other_rights__not_merged)
{
	struct glex_rcache_region left, right;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, NULL);
	mem = map_at(NULL, 2 * page, 3);
	left = get_put(&b, mem, page, R);
	right = get_put(&b, mem + page, page, RW);
	ck_assert_uint_eq(stats_of(&b).count, 2);
	ck_assert_uint_eq(ask_peer(&b, &left, (uint32_t)page, 8, true, 9).failed, 1);
	ck_assert_uint_eq(ask_peer(&b, &right, 0, 8, true, 9).failed, 0);
	munmap(mem, 2 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__merge_with_unwritable__peers_get_no_right_to_write_there)
{
	struct glex_rcache_region first, second, third;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, NULL);
	mem = map_at(NULL, 4 * page, 3);
	ck_assert_int_eq(mprotect(mem + 2 * page, 2 * page, PROT_READ), 0);
	first = get_put(&b, mem, 2 * page, RW);
	second = get_put(&b, mem + page, 2 * page, R); /* overlaps with it, and with what is not writable */
	ck_assert_uint_eq(second.offset, 0);
	ck_assert_uint_eq(ask_peer(&b, &second, 0, 8, true, 9).failed, 1);
	peer_finds(&b, &second, (uint32_t)(2 * page), 3);
	/* where all is writable they are merged, with both rights */
	ck_assert_int_eq(mprotect(mem + 2 * page, 2 * page, PROT_READ | PROT_WRITE), 0);
	first = get_put(&b, mem, 2 * page, RW);
	third = get_put(&b, mem + page, 3 * page, R);
	ck_assert_uint_eq(third.offset, page);
	ck_assert_uint_ne(third.mh.v, first.mh.v);
	ck_assert_uint_eq(ask_peer(&b, &third, (uint32_t)page, 8, true, 9).failed, 0);
	munmap(mem, 4 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__part_invalidated__the_rest_stays)
{
	struct glex_rcache_region all, left, right, middle;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, EXPLICIT, NULL);
	mem = map_at(NULL, 9 * page, 3);
	all = get_put(&b, mem, 9 * page, R);
	OK(glex_mem_invalidate(mem + 4 * page + 5, 1));
	left = get_put(&b, mem, 4 * page, R);
	right = get_put(&b, mem + 5 * page, 4 * page, R);
	ck_assert_uint_eq(left.mh.v, all.mh.v);
	ck_assert_uint_eq(right.mh.v, all.mh.v);
	ck_assert_uint_eq(right.offset, 5 * page);
	ck_assert_uint_eq(stats_of(&b).size, 8 * page);
	ck_assert_uint_eq(stats_of(&b).count, 1);
	middle = get_put(&b, mem + 4 * page, page, R);
	ck_assert_uint_ne(middle.mh.v, all.mh.v);
	ck_assert_uint_eq(stats_of(&b).size, 9 * page); /* one again */
	ck_assert_uint_eq(stats_of(&b).registered, 1);
	ck_assert_uint_eq(get_put(&b, mem, 9 * page, R).mh.v, middle.mh.v);
	/* ends cut off, then everything */
	OK(glex_mem_invalidate(mem, page));
	OK(glex_mem_invalidate(mem + 8 * page, page));
	ck_assert_uint_eq(get_put(&b, mem + page, 7 * page, R).mh.v, middle.mh.v);
	OK(glex_mem_invalidate(mem, 9 * page));
	ck_assert_uint_eq(stats_of(&b).registered, 0);
	munmap(mem, 9 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__alloc_freed__its_regions_go)
{
	struct glex_rcache_region region;
	struct bench b;
	void *mem;

	bench_open(&b, _i, NULL);
	for (int round = 1; round < 10; round++) {
		OK(glex_alloc(b.side.dev, 64 * K, &mem));
		memset(mem, round, 64 * K);
		region = get(&b, mem, 64 * K, RW);
		peer_finds(&b, &region, 64 * K, (unsigned char)round);
		put(&b, &region);
		ck_assert_uint_eq(get_put(&b, mem, 64 * K, RW).mh.v == region.mh.v, _i != OFF);
		OK(glex_free(b.side.dev, mem));
		ck_assert_uint_eq(stats_of(&b).registered, 0);
	}
	bench_close(&b);
}
END_TEST

START_TEST(rcache__two_allocs_side_by_side__each_stays_mapped)
{
	struct glex_rcache_region region;
	struct bench b;
	void *one, *two;

	bench_open(&b, AUTO, NULL);
	OK(glex_alloc(b.side.dev, 64 * K, &one));
	OK(glex_alloc(b.side.dev, 64 * K, &two));
	get_put(&b, one, 64 * K, R);
	region = get_put(&b, two, 64 * K, R);
	ck_assert_uint_eq(region.offset, 0);
	ck_assert_uint_eq(stats_of(&b).count, 2);
	OK(glex_free(b.side.dev, one));
	OK(glex_free(b.side.dev, two));
	bench_close(&b);
}
END_TEST

START_TEST(rcache__put_and_invalidate__deregistered_once_both_happened)
{
	struct glex_rcache_region region, again;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, EXPLICIT, NULL);
	mem = map_at(NULL, 4 * page, 5);
	region = get_put(&b, mem, page, R); /* put, then invalidated */
	OK(glex_mem_invalidate(mem, page));
	ck_assert_uint_eq(stats_of(&b).registered, 0);
	region = get(&b, mem, page, R); /* invalidated, then put */
	OK(glex_mem_invalidate(mem, page));
	ck_assert_uint_eq(stats_of(&b).registered, 1);
	again = get(&b, mem, page, R);
	ck_assert_uint_ne(again.mh.v, region.mh.v);
	put(&b, &region);
	ck_assert_uint_eq(ask_peer(&b, &region, 0, 8, false, 0).failed, 1);
	peer_finds(&b, &again, 8, 5);
	put(&b, &again);
	ck_assert_uint_eq(stats_of(&b).registered, 1);
	munmap(mem, 4 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__release_inuse__handle_is_good_until_put)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_COUNT, .max_count = 1};
	struct glex_rcache_region region, other;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, EXPLICIT, &attr);
	mem = map_at(NULL, 8 * page, 5);
	region = get(&b, mem, page, RW);
	other = get_put(&b, mem + 4 * page, page, RW); /* too many, but it is in use */
	OK(glex_mem_invalidate(mem, page));
	peer_finds(&b, &region, 8, 5);
	ck_assert_uint_eq(ask_peer(&b, &region, 0, 8, true, 6).failed, 0);
	ck_assert_uint_eq(mem[0], 6);
	put(&b, &region);
	ck_assert_uint_eq(ask_peer(&b, &region, 0, 8, false, 0).failed, 1);
	ck_assert_uint_le(stats_of(&b).registered, 1);
	(void)other;
	munmap(mem, 8 * page);
	bench_close(&b);
}
END_TEST

/* ---- limits --------------------------------------------------------------------- */

START_TEST(rcache__by_count__least_recently_used_goes)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_COUNT, .max_count = 3};
	struct glex_rcache_region region[5];
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, &attr);
	mem = map_at(NULL, 10 * page, 5);
	for (int i = 0; i < 3; i++)
		region[i] = get_put(&b, mem + (size_t)i * 2 * page, page, R);
	get_put(&b, mem, page, R); /* 0 was used again: 1 is the oldest */
	region[3] = get_put(&b, mem + 6 * page, page, R);
	ck_assert_uint_eq(stats_of(&b).count, 3);
	ck_assert_uint_eq(stats_of(&b).evicted, 1);
	ck_assert_uint_eq(get_put(&b, mem, page, R).mh.v, region[0].mh.v);
	ck_assert_uint_eq(get_put(&b, mem + 4 * page, page, R).mh.v, region[2].mh.v);
	ck_assert_uint_eq(ask_peer(&b, &region[1], 0, 8, false, 0).failed, 1);
	ck_assert_uint_ne(get_put(&b, mem + 2 * page, page, R).mh.v, region[1].mh.v);
	munmap(mem, 10 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__by_size__least_recently_used_go)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_SIZE, .max_size = 6 * 4096};
	struct glex_rcache_region region[3];
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, &attr);
	ck_assert_uint_eq(page, 4096);
	mem = map_at(NULL, 40 * page, 5);
	for (int i = 0; i < 3; i++)
		region[i] = get_put(&b, mem + (size_t)i * 4 * page, 2 * page, R);
	get_put(&b, mem, 2 * page, R);		   /* 0 was used again: 1 is the oldest, then 2 */
	get_put(&b, mem + 20 * page, 3 * page, R); /* takes the place of both */
	ck_assert_uint_eq(stats_of(&b).size, 5 * page);
	ck_assert_uint_eq(stats_of(&b).evicted, 2);
	ck_assert_uint_eq(get_put(&b, mem, 2 * page, R).mh.v, region[0].mh.v);
	ck_assert_uint_eq(ask_peer(&b, &region[1], 0, 8, false, 0).failed, 1);
	ck_assert_uint_eq(ask_peer(&b, &region[2], 0, 8, false, 0).failed, 1);
	munmap(mem, 40 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__by_size_inuse__goes_when_it_is_put)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_SIZE, .max_size = 4 * 4096};
	struct glex_rcache_region first, second;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, &attr);
	attr.max_size = 4 * page;
	mem = map_at(NULL, 20 * page, 5);
	first = get(&b, mem, 3 * page, R);
	second = get(&b, mem + 4 * page, 3 * page, R);
	ck_assert_uint_eq(stats_of(&b).size, 6 * page);
	ck_assert_uint_eq(stats_of(&b).evicted, 0);
	peer_finds(&b, &first, 8, 5);
	put(&b, &first);
	ck_assert_uint_eq(stats_of(&b).size, 3 * page);
	ck_assert_uint_eq(stats_of(&b).evicted, 1);
	put(&b, &second);
	ck_assert_uint_eq(stats_of(&b).size, 3 * page);
	first = get(&b, mem + 8 * page, 5 * page, R); /* larger than all that is kept: disturbs nothing */
	ck_assert_uint_eq(stats_of(&b).size, 3 * page);
	put(&b, &first);
	ck_assert_uint_eq(stats_of(&b).registered, 1);
	munmap(mem, 20 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__no_room__is_said_only_by_who_cannot_make_any)
{
	enum { IDLE = 20, REST = 40 };
	const char *said = "GLEX_MAX_REGIONS allows no more";
	glex_mem_handle_t mh[REST];
	struct glex_rcache_region held[IDLE], region;
	unsigned char *mem;
	struct bench b;

	log_begin();
	setenv("GLEX_MAX_REGIONS", "60", 1); /* IDLE + REST */
	bench_open(&b, AUTO, NULL);
	mem = map_at(NULL, 200 * page, 5);
	for (int i = 0; i < IDLE; i++)
		get_put(&b, mem + (size_t)i * 2 * page, page, R);
	for (int i = 0; i < REST; i++)
		OK(glex_register_mem(b.side.ep, mem, 1, R, &mh[i]));
	for (int i = 0; i < IDLE; i++)
		held[i] = get(&b, mem + (size_t)(100 + 2 * i) * page, page, R);
	ck_assert_uint_eq(stats_of(&b).evicted, IDLE);
	ck_assert(!is_logged(said));
	RETURNS(glex_rcache_get(b.rc, mem, page, R, &region), GLEX_NO_MEM_RESOURCE);
	ck_assert(is_logged(said));
	log_end();
	for (int i = 0; i < IDLE; i++)
		put(&b, &held[i]);
	for (int i = 0; i < REST; i++)
		OK(glex_deregister_mem(b.side.ep, mh[i]));
	munmap(mem, 200 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__table_full__idle_ones_make_room_then_no_resource)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_COUNT, .max_count = 100};
	struct glex_rcache_region held[10], region;
	glex_mem_handle_t *mh = calloc(4096, sizeof(*mh));
	struct bench b;
	unsigned char *mem;
	int n = 0, i;

	bench_open(&b, AUTO, &attr);
	mem = map_at(NULL, 200 * page, 5);
	for (i = 0; i < 50; i++)
		get_put(&b, mem + (size_t)i * 2 * page, page, R);
	while (glex_register_mem(b.side.ep, mem, 1, R, &mh[n]) == GLEX_SUCCESS)
		n++;
	ck_assert_int_ge(n, 4096 - 100);
	for (i = 0; i < 10; i++)
		held[i] = get(&b, mem + (size_t)(100 + 2 * i) * page, page, R);
	ck_assert_uint_ge(stats_of(&b).evicted, 10);
	peer_finds(&b, &held[9], 8, 5);
	for (i = 0; i < 10; i++)
		put(&b, &held[i]);
	/* all of the cache's own in use, and not one place left */
	for (i = 0; glex_rcache_get(b.rc, mem + (size_t)2 * (size_t)i * page, page, R, &region) == GLEX_SUCCESS; i++)
		ck_assert_int_lt(i, 50);
	ck_assert_int_eq(i, 50);
	OK(glex_deregister_mem(b.side.ep, mh[--n]));
	OK(glex_rcache_get(b.rc, mem + 150 * page, page, R, &region));
	while (n > 0)
		OK(glex_deregister_mem(b.side.ep, mh[--n]));
	put(&b, &region);
	ck_assert_uint_eq(stats_of(&b).in_use, 50);
	/* destroy takes away what was never put back */
	OK(glex_rcache_destroy(b.rc));
	OK(glex_rcache_create(b.side.ep, NULL, &b.rc));
	for (n = 0; glex_register_mem(b.side.ep, mem, 1, R, &mh[n]) == GLEX_SUCCESS; n++)
		;
	ck_assert_int_ge(n, 4096 - 10);
	while (n > 0)
		OK(glex_deregister_mem(b.side.ep, mh[--n]));
	munmap(mem, 200 * page);
	free(mh);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__inv_q_bounded__changes_without_number_cost_no_memory)
{
	struct glex_rcache_region old, other;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, EXPLICIT, NULL);
	mem = map_at(NULL, 8 * page, 5);
	old = get_put(&b, mem, page, R);
	other = get_put(&b, mem + 4 * page, page, R);
	for (int i = 0; i < 100; i++) /* of other memory: nothing is lost for it */
		OK(glex_mem_invalidate(mem + 2 * page, page));
	ck_assert_uint_eq(get_put(&b, mem, page, R).mh.v, old.mh.v);
	OK(glex_mem_invalidate(mem, page));
	for (int i = 0; i < 100000; i++)
		OK(glex_mem_invalidate(mem + 2 * page, page));
	/* the cache cannot know all of them any more, but that there were: nothing old is given */
	ck_assert_uint_ne(get_put(&b, mem, page, R).mh.v, old.mh.v);
	ck_assert_uint_ne(get_put(&b, mem + 4 * page, page, R).mh.v, other.mh.v);
	munmap(mem, 8 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__in_a_forked_child__sys_err)
{
	struct glex_rcache_region region;
	struct glex_rcache_stats stats;
	struct peer child;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, AUTO, NULL);
	mem = map_at(NULL, page, 4);
	region = get(&b, mem, page, R);
	child.pid = fork();
	if (child.pid == 0) {
		RETURNS(glex_rcache_get(b.rc, mem, page, R, &region), GLEX_SYS_ERR);
		RETURNS(glex_rcache_put(b.rc, &region), GLEX_SYS_ERR);
		RETURNS(glex_rcache_query(b.rc, &stats), GLEX_SYS_ERR);
		RETURNS(glex_rcache_destroy(b.rc), GLEX_SYS_ERR);
		_exit(EXIT_SUCCESS);
	}
	child.fd = dup(0);
	peer_join(&child);
	peer_finds(&b, &region, 8, 4);
	put(&b, &region);
	munmap(mem, page);
	bench_close(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rcache");
	TCase *tc = tcase_create("rcache");

	own_job("rcache");
	tcase_add_loop_test(tc, rcache__same_buffer_again__same_region, 0, MONITORS);
	tcase_add_test(tc, rcache__bad_arguments__invalid);
	tcase_add_test(tc, rcache__more_rights_wanted__registered_with_both);
	tcase_add_test(tc, rcache__merge__overlapping_and_adjacent_become_one);
	tcase_add_test(tc, rcache__merge_longer_than_the_cache__not_merged);
	tcase_add_test(tc, rcache__adjacent_with_other_rights__not_merged);
	tcase_add_test(tc, rcache__merge_with_unwritable__peers_get_no_right_to_write_there);
	tcase_add_test(tc, rcache__part_invalidated__the_rest_stays);
	tcase_add_loop_test(tc, rcache__alloc_freed__its_regions_go, 0, MONITORS);
	tcase_add_test(tc, rcache__two_allocs_side_by_side__each_stays_mapped);
	tcase_add_test(tc, rcache__put_and_invalidate__deregistered_once_both_happened);
	tcase_add_test(tc, rcache__release_inuse__handle_is_good_until_put);
	tcase_add_test(tc, rcache__by_count__least_recently_used_goes);
	tcase_add_test(tc, rcache__by_size__least_recently_used_go);
	tcase_add_test(tc, rcache__by_size_inuse__goes_when_it_is_put);
	tcase_add_test(tc, rcache__no_room__is_said_only_by_who_cannot_make_any);
	tcase_add_test(tc, rcache__table_full__idle_ones_make_room_then_no_resource);
	tcase_add_test(tc, rcache__inv_q_bounded__changes_without_number_cost_no_memory);
	tcase_add_test(tc, rcache__in_a_forked_child__sys_err);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
