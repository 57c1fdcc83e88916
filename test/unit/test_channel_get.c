/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_get.c - the channel library: regions exposed, and GETs of them, over a
 * network that reorders, refuses and dies.
 */
#include "channel_kit.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

struct got {
	int done;
	enum glexch_got failed;
};

static void on_got(void *arg, enum glexch_got how)
{
	struct got *got = arg;

	got->done++;
	got->failed = how;
}

static void connected(unsigned seed)
{
	start(seed, 16, 8);
	open_end(0, 1);
	send_message(&procs[0].main_end, 10);
	settle(&procs[0].main_end, &procs[1].main_end);
}

/* All n GETs end, and what they have brought is what was there. */
static void finish_gets(const struct got *got, int n, const uint8_t *src, const uint8_t *dst, size_t len)
{
	for (int i = 0; i < STEPS && got->done < n; i++)
		step();
	ck_assert_int_eq(got->done, n);
	ck_assert_int_eq(got->failed, GLEXCH_GOT_ALL);
	ck_assert_int_eq(memcmp(src, dst, len), 0);
}

START_TEST(get__several_megabytes__arrive)
{
	const size_t n = 5000001;
	uint8_t *src = malloc(n), *dst = malloc(n);
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;

	connected((unsigned)_i);
	fill(src, 5, 0, n);
	ck_assert_int_eq(glexch_expose(procs[0].ch, src, n, 0, &region), GLEX_SUCCESS);
	ck_assert_ptr_nonnull(glexch_get(procs[1].main_end.conn, dst, n, &region, on_got, &got));
	ck_assert_int_eq(got.done, 0);
	finish_gets(&got, 1, src, dst, n);
	glexch_unexpose(procs[0].ch, n, &region);
	stop();
	free(src);
	free(dst);
}
END_TEST

/* In parts, asked for together and backwards. */
START_TEST(get_part__all_parts__make_the_whole)
{
	const size_t n = 300007, part = 70001;
	uint8_t *src = malloc(n), *dst = malloc(n);
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;
	int parts = 0;

	connected((unsigned)_i);
	fill(src, 5, 0, n);
	ck_assert_int_eq(glexch_expose(procs[0].ch, src, n, 0, &region), GLEX_SUCCESS);
	for (size_t from = n - n % part;; from -= part, parts++) {
		size_t len = n - from < part ? n - from : part;

		ck_assert_ptr_nonnull(
			glexch_get_part(procs[1].main_end.conn, dst + from, len, &region, from, on_got, &got));
		if (!from)
			break;
	}
	finish_gets(&got, parts + 1, src, dst, n);
	glexch_unexpose(procs[0].ch, n, &region);
	stop();
	free(src);
	free(dst);
}
END_TEST

/* Nothing can be registered: it comes through blocks; then it can again. */
START_TEST(get__memory_table_full__goes_through_blocks)
{
	static uint8_t src[50000], dst[50000];
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;

	connected(1);
	fill(src, 9, 0, sizeof(src));
	ck_assert_int_eq(glexch_expose(procs[0].ch, src, sizeof(src), 0, &region), GLEX_SUCCESS);
	fake.regions_max = fake.regions;
	ck_assert_ptr_nonnull(glexch_get(procs[1].main_end.conn, dst, sizeof(dst), &region, on_got, &got));
	for (int i = 0; i < _i; i++)
		step();
	fake.regions_max += _i > 0;
	for (int i = 0; i < 5000 && !got.done; i++)
		step();
	ck_assert_int_eq(got.done, 1);
	ck_assert_int_eq(got.failed, GLEXCH_GOT_ALL);
	ck_assert_mem_eq(src, dst, sizeof(src));
	fake.regions_max = fake.regions + 1;
	quiet(&procs[1]); /* all blocks are back */
	glexch_unexpose(procs[0].ch, sizeof(src), &region);
	stop();
}
END_TEST

#define FLOODERS 3

/* Some send blocks without end, more than there is room for: the GET has its turn, and so have they. */
START_TEST(get__memory_table_full_and_blocks_without_end__both_go_on)
{
	static uint8_t src[50000], dst[50000];
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;
	size_t before = 0, after = 0;

	fake_reset((unsigned)_i);
	fake.direct = _i < 4;
	kit_many = 1;
	for (int i = 0; i <= FLOODERS; i++)
		start_proc(i, FLOODERS, 64, 4 + 2 * ((uint32_t)_i % 4));
	for (int i = 1; i <= FLOODERS; i++) {
		procs[i].main_end.tx_tag = procs[0].ends[i].rx_tag = (unsigned)(10 * i);
		open_end(i, 0);
		for (int k = 0; k < 200; k++)
			send_message(&procs[i].main_end, 100);
		settle(&procs[i].main_end, &procs[0].ends[i]);
	}
	fill(src, 9, 0, sizeof(src));
	ck_assert_int_eq(glexch_expose(procs[1].ch, src, sizeof(src), 0, &region), GLEX_SUCCESS);
	fake.regions_max = fake.regions;
	ck_assert_ptr_nonnull(glexch_get(procs[0].ends[1].conn, dst, sizeof(dst), &region, on_got, &got));
	for (int i = 1; i <= FLOODERS; i++)
		before += procs[0].ends[i].received;
	for (int n = 0; n < 5000 && !got.done; n++) {
		for (int i = 1; i <= FLOODERS; i++)
			while (procs[i].main_end.queued < procs[i].main_end.done + 20)
				send_message(&procs[i].main_end, 4000);
		step();
	}
	ck_assert_int_eq(got.done, 1);
	ck_assert_int_eq(got.failed, GLEXCH_GOT_ALL);
	ck_assert_mem_eq(src, dst, sizeof(src));
	for (int i = 1; i <= FLOODERS; i++)
		after += procs[0].ends[i].received;
	ck_assert_uint_gt(after, before + 20000);
	for (int i = 1; i <= FLOODERS; i++)
		settle(&procs[i].main_end, &procs[0].ends[i]);
	fake.regions_max = fake.regions + 1;
	quiet(&procs[0]);
	glexch_unexpose(procs[1].ch, sizeof(src), &region);
	stop();
}
END_TEST

/* It comes all the same; a receive that failed alone would leave its sender waiting. */
START_TEST(get__cannot_be_registered_for_another_reason__goes_through_blocks)
{
	static uint8_t src[50000], dst[50000];
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;

	connected((unsigned)_i);
	fill(src, 9, 0, sizeof(src));
	ck_assert_int_eq(glexch_expose(procs[0].ch, src, sizeof(src), 0, &region), GLEX_SUCCESS);
	fake.cache_broken = 1;
	ck_assert_ptr_nonnull(glexch_get(procs[1].main_end.conn, dst, sizeof(dst), &region, on_got, &got));
	finish_gets(&got, 1, src, dst, sizeof(src));
	ck_assert_int_eq(procs[1].main_end.failed, 0);
	quiet(&procs[1]);
	glexch_unexpose(procs[0].ch, sizeof(src), &region);
	stop();
}
END_TEST

static void on_got_first(void *arg, enum glexch_got how)
{
	ck_assert_int_eq(procs[1].main_end.failed, 0);
	on_got(arg, how);
}

/* Nobody is left to wait for what does not come. */
START_TEST(get__cannot_be_posted__connection_fails_with_it)
{
	uint8_t src[100], dst[2][100];
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;

	connected((unsigned)_i);
	ck_assert_int_eq(glexch_expose(procs[0].ch, src, sizeof(src), 0, &region), GLEX_SUCCESS);
	fake.gets_invalid = 1;
	for (int i = 0; i < 2; i++)
		ck_assert_ptr_nonnull(
			glexch_get(procs[1].main_end.conn, dst[i], sizeof(dst[i]), &region, on_got_first, &got));
	ck_assert_int_eq(got.done, 0);
	for (int i = 0; i < 3; i++)
		glexch_progress(procs[1].ch);
	ck_assert_int_eq(got.done, 2);
	ck_assert_int_eq(got.failed, GLEXCH_GOT_LOST_PEER);
	ck_assert_int_eq(procs[1].main_end.failed, 1);
	ck_assert(glexch_quiet(procs[1].ch));
	fake.gets_invalid = 0;
	glexch_unexpose(procs[0].ch, sizeof(src), &region);
	stop();
}
END_TEST

START_TEST(get__private_memory_out_of_reach__connection_survives)
{
	uint8_t src[100], dst[100];
	struct glexch_region region;
	struct got got = {0, GLEXCH_GOT_ALL};

	connected(1);
	ck_assert_int_eq(glexch_expose(procs[0].ch, src, sizeof(src), 0, &region), GLEX_SUCCESS);
	fake.private_handle = region.handle;
	ck_assert_ptr_nonnull(glexch_get(procs[1].main_end.conn, dst, sizeof(dst), &region, on_got, &got));
	for (int i = 0; i < 3000; i++)
		step();
	ck_assert_int_eq(got.done, 1);
	ck_assert_int_eq(got.failed, GLEXCH_GOT_NO_ACCESS);
	send_message(&procs[0].main_end, 3000);
	settle(&procs[0].main_end, &procs[1].main_end);
	ck_assert_int_eq(procs[1].main_end.failed, 0);
	glexch_unexpose(procs[0].ch, sizeof(src), &region);
	stop();
}
END_TEST

START_TEST(expose__share_used_up__is_refused_unless_wanted)
{
	struct glexch_region regions[64];
	uint8_t src[1];
	int n, wanted;

	connected(1);
	for (n = 0; glexch_expose(procs[0].ch, src, 1, 0, &regions[n]) == GLEX_SUCCESS; n++)
		ck_assert_int_lt(n, 32);
	for (wanted = 0; glexch_expose(procs[0].ch, src, 1, 1, &regions[n + wanted]) == GLEX_SUCCESS; wanted++)
		ck_assert_int_lt(wanted, 32);
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(wanted, n);
	for (n += wanted; n; n--)
		glexch_unexpose(procs[0].ch, 1, &regions[n - 1]);
	stop();
}
END_TEST

/* The other way round: into memory that is accepted, if peers map it. */
START_TEST(put__accepted_buffer__arrives)
{
	const size_t n = 3000001;
	uint8_t *src = malloc(n), *dst = malloc(n);
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;

	connected((unsigned)_i);
	fill(src, 5, 0, n);
	ck_assert_int_eq(glexch_accept(procs[1].ch, dst, n, &region), 0);
	fake.mapped = 1;
	ck_assert_int_eq(glexch_accept(procs[1].ch, dst, n, &region), 1);
	ck_assert_ptr_nonnull(glexch_put(procs[0].main_end.conn, src, n, &region, on_got, &got));
	ck_assert_int_eq(got.done, 0);
	finish_gets(&got, 1, src, dst, n);
	glexch_unexpose(procs[1].ch, n, &region);
	ck_assert_uint_eq(fake.invalidated, 0);
	stop();
	free(src);
	free(dst);
}
END_TEST

/* Nothing goes through blocks: who put is told, and the connection lives. */
START_TEST(put__no_access__connection_survives)
{
	uint8_t src[100] = {1}, dst[100] = {0};
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;

	connected(1);
	fake.mapped = 1;
	ck_assert_int_eq(glexch_accept(procs[1].ch, dst, sizeof(dst), &region), 1);
	fake.puts_refused = _i == 0;
	fake.cache_broken = _i == 1;
	ck_assert_ptr_nonnull(glexch_put(procs[0].main_end.conn, src, sizeof(src), &region, on_got, &got));
	for (int i = 0; i < 3000; i++)
		step();
	ck_assert_int_eq(got.done, 1);
	ck_assert_int_eq(got.failed, GLEXCH_GOT_NO_ACCESS);
	ck_assert_int_eq(dst[0], 0);
	fake.puts_refused = fake.cache_broken = 0;
	send_message(&procs[0].main_end, 3000);
	settle(&procs[0].main_end, &procs[1].main_end);
	glexch_unexpose(procs[1].ch, sizeof(dst), &region);
	stop();
}
END_TEST

/* What still comes is refused. */
START_TEST(revoke__put_under_way__memory_is_not_written)
{
	uint8_t src[100] = {1}, dst[100] = {0};
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region;

	connected(1);
	fake.mapped = 1;
	ck_assert_int_eq(glexch_accept(procs[1].ch, dst, sizeof(dst), &region), 1);
	ck_assert_ptr_nonnull(glexch_put(procs[0].main_end.conn, src, sizeof(src), &region, on_got, &got));
	glexch_revoke(procs[1].ch, dst, sizeof(dst), &region);
	ck_assert_uint_eq(fake.invalidated, 1);
	for (int i = 0; i < 3000; i++)
		step();
	ck_assert_int_eq(got.done, 1);
	ck_assert_int_eq(got.failed, GLEXCH_GOT_LOST_PEER);
	ck_assert_int_eq(dst[0], 0);
	stop();
}
END_TEST

START_TEST(get__peer_dies__fails_once)
{
	uint8_t dst[100];
	struct got got = {0, GLEXCH_GOT_ALL};
	struct glexch_region region = {.handle = 1};

	connected(1);
	fake_kill(procs[0].card.addr);
	ck_assert_ptr_nonnull(glexch_get(procs[1].main_end.conn, dst, sizeof(dst), &region, on_got, &got));
	for (int i = 0; i < 3000; i++)
		step();
	ck_assert_int_eq(got.done, 1);
	ck_assert_int_eq(got.failed, GLEXCH_GOT_LOST_PEER);
	ck_assert_int_eq(procs[1].main_end.failed, 1);
	stop();
}
END_TEST

START_TEST(region_count__around_the_limit__covers_all)
{
	ck_assert_uint_eq(glexch_region_count(1), 1);
	ck_assert_uint_eq(glexch_region_count(GLEXCH_REGION_BYTES), 1);
	ck_assert_uint_eq(glexch_region_count(GLEXCH_REGION_BYTES + 1), 2);
	ck_assert_uint_eq(glexch_region_count((uint64_t)9 << 30), 5);
}
END_TEST

static TCase *get_case(void)
{
	TCase *tc = tcase_create("zero copy");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, get__several_megabytes__arrive, 1, 4);
	tcase_add_loop_test(tc, get_part__all_parts__make_the_whole, 1, 4);
	tcase_add_loop_test(tc, get__memory_table_full__goes_through_blocks, 0, 8);
	tcase_add_loop_test(tc, get__memory_table_full_and_blocks_without_end__both_go_on, 0, 12);
	tcase_add_loop_test(tc, get__cannot_be_registered_for_another_reason__goes_through_blocks, 1, 4);
	tcase_add_loop_test(tc, get__cannot_be_posted__connection_fails_with_it, 1, 3);
	tcase_add_test(tc, get__private_memory_out_of_reach__connection_survives);
	tcase_add_test(tc, expose__share_used_up__is_refused_unless_wanted);
	tcase_add_loop_test(tc, put__accepted_buffer__arrives, 1, 4);
	tcase_add_loop_test(tc, put__no_access__connection_survives, 0, 2);
	tcase_add_test(tc, revoke__put_under_way__memory_is_not_written);
	tcase_add_test(tc, get__peer_dies__fails_once);
	tcase_add_test(tc, region_count__around_the_limit__covers_all);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("channel_get");

	suite_add_tcase(suite, get_case());
	return suite_run_short(suite);
}
