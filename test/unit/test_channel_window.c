/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_window.c - the channel library: windows, which peers reach at once, over a
 * network that refuses and dies.
 */
#include "channel_kit.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 9000

static uint8_t mem[BYTES], before[BYTES], buf[BYTES];
static struct glexch_window window; /* of process 0, as process 1 knows it */

/* Of a network where that is possible. */
static void connected(unsigned seed)
{
	start(seed, 16, 8);
	fake.injects = 1;
	fake.direct = 1;
	open_end(0, 1);
	send_message(&procs[0].main_end, 10);
	settle(&procs[0].main_end, &procs[1].main_end);
	fill(mem, 3, 0, BYTES);
	memcpy(before, mem, BYTES);
	glexch_window_open(procs[0].ch, mem, BYTES, &window);
	ck_assert_uint_eq(window.len, BYTES);
}

static void disconnected(void)
{
	glexch_window_forget(&window);
	glexch_window_close(procs[0].ch, &window);
	ck_assert_uint_eq(window.len, 0);
	stop();
}

static int put(uint64_t offset, uint64_t len)
{
	return glexch_window_put(procs[1].ch, &window, offset, buf, len);
}

static int get(uint64_t offset, uint64_t len)
{
	return glexch_window_get(procs[1].ch, &window, offset, buf, len);
}

/* Any place and length, by whichever way: nothing else changes. */
START_TEST(put__any_place__is_there_when_the_call_returns)
{
	connected((unsigned)_i);
	for (int k = 0; k < 300; k++) {
		uint32_t len = 1 + fake_random(k % 3 ? 100 : 5000), at = fake_random(BYTES - len);

		fill(buf, (unsigned)k + 10, 0, len);
		ck_assert_int_eq(put(at, len), 1);
		memcpy(before + at, buf, len);
		ck_assert_mem_eq(mem, before, BYTES);
	}
	ck_assert_uint_gt(fake.injected, 0);
	disconnected();
}
END_TEST

START_TEST(get__any_place__has_come_when_the_call_returns)
{
	connected((unsigned)_i);
	for (int k = 0; k < 300; k++) {
		uint32_t len = 1 + fake_random(k % 3 ? 100 : 5000), at = fake_random(BYTES - len);

		memset(buf, 0, sizeof(buf));
		ck_assert_int_eq(get(at, len), 1);
		ck_assert_mem_eq(buf, mem + at, len);
		ck_assert_uint_eq(len < BYTES ? buf[len] : 0, 0);
	}
	disconnected();
}
END_TEST

START_TEST(window__beyond_its_end__is_not_reached)
{
	static const uint64_t places[][2] = {
		{BYTES, 1}, {BYTES - 1, 2}, {0, BYTES + 1}, {UINT64_MAX, 1}, {1, UINT64_MAX}};

	connected(1);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		ck_assert_int_eq(put(places[i][0], places[i][1]), 0);
		ck_assert_int_eq(get(places[i][0], places[i][1]), 0);
	}
	ck_assert_mem_eq(mem, before, BYTES);
	ck_assert_int_eq(put(BYTES - 1, 1), 1);
	ck_assert_int_eq(procs[1].main_end.failed, 0);
	disconnected();
}
END_TEST

/* Whose requests others execute: never asked again. */
START_TEST(window__endpoint_cannot__is_not_reached)
{
	connected(2);
	fake.injects = 0;
	ck_assert_int_eq(_i ? put(0, 8) : get(0, 8), 0);
	fake.injects = 1;
	ck_assert_int_eq(_i ? put(0, 8) : get(0, 8), 0);
	ck_assert_mem_eq(mem, before, BYTES);
	disconnected();
}
END_TEST

/* That one process cannot map it is no fault of the peer's. */
START_TEST(window__cannot_be_mapped_here__peer_lives)
{
	connected(3);
	fake.private_handle = window.handle;
	ck_assert_int_eq(_i ? put(0, 8) : get(0, 8), 0);
	ck_assert_uint_eq(window.len, 0);
	ck_assert_mem_eq(mem, before, BYTES);
	send_message(&procs[1].main_end, 1000);
	settle(&procs[1].main_end, &procs[0].main_end);
	ck_assert_int_eq(procs[1].main_end.failed, 0);
	disconnected();
}
END_TEST

START_TEST(window__peer_is_dead__is_not_reached_and_the_connection_fails)
{
	connected(4);
	if (_i >= 2)
		ck_assert_int_eq(put(0, 8), 1);
	fake_kill(procs[0].card.addr);
	ck_assert_int_eq(_i % 2 ? put(0, 5000) : get(0, 5000), 0);
	ck_assert_int_eq(procs[1].main_end.failed, 1);
	ck_assert_int_eq(put(0, 8), 0);
	glexch_window_forget(&window);
	stop();
}
END_TEST

START_TEST(window__endpoint_is_busy__is_reached_or_tried_again_later)
{
	int done = 0;

	connected(5);
	fake.busy_percent = 99;
	for (int k = 0; k < 200; k++) {
		fill(buf, (unsigned)k, 0, 300);
		if (put(7, 300)) {
			ck_assert_mem_eq(mem + 7, buf, 300);
			done++;
		}
	}
	ck_assert_int_gt(done, 0);
	fake.busy_percent = 0;
	ck_assert_int_eq(put(7, 300), 1);
	disconnected();
}
END_TEST

/* ---- locks ------------------------------------------------------------------ */

/* As process 1, until the network has a way there. */
static uint8_t *hold(uint64_t offset, uint64_t len)
{
	uint8_t *at = NULL;

	for (int i = 0; i < 1000 && !at; i++)
		at = glexch_window_hold(procs[1].ch, &window, offset, len);
	return at;
}

START_TEST(hold__any_place__is_the_window_itself)
{
	struct glexch_window own;

	connected((unsigned)_i);
	own = window;
	for (uint32_t k = 0; k < 50; k++) {
		ck_assert_ptr_eq(hold(k * 8, 100), mem + k * 8);
		glexch_window_release(procs[1].ch);
		glexch_window_hold_own(procs[0].ch, &own);
		glexch_window_release_own(procs[0].ch, &own);
	}
	ck_assert_ptr_null(hold(BYTES - 7, 8));
	glexch_window_hold_own(procs[0].ch, &own); /* which has left nothing held */
	glexch_window_release_own(procs[0].ch, &own);
	disconnected();
}
END_TEST

/* The holder is dead: it is whoever's is next. */
START_TEST(hold__by_a_process_that_died__is_taken_over)
{
	struct glexch_window own;

	connected(1);
	own = window;
	ck_assert_ptr_nonnull(hold(0, 8));
	fake_kill(procs[1].card.addr);
	fake_announce_death(procs[1].card.addr);
	glexch_window_hold_own(procs[0].ch, &own);
	glexch_window_release_own(procs[0].ch, &own);
	glexch_window_hold_own(procs[0].ch, &own); /* and given back as ever */
	glexch_window_release_own(procs[0].ch, &own);
	disconnected();
}
END_TEST

/* More windows than locks: the others are reached, but not held. */
START_TEST(hold__window_without_a_lock__cannot_be)
{
	struct glexch_window *many = calloc(300, sizeof(*many));
	int n = 0, locked = 0;

	connected(8);
	glexch_window_close(procs[0].ch, &window);
	fake.regions_max = 10000;
	while (n < 300 && (glexch_window_open(procs[0].ch, mem, BYTES, &many[n]), many[n].len))
		locked += many[n++].lock_handle != 0;
	ck_assert_int_eq(locked, n < 64 ? n : 64);
	window = many[n - 1];
	window.lock_handle = 0;
	ck_assert_ptr_null(hold(0, 8));
	ck_assert_int_eq(put(0, 8), 1);
	glexch_window_forget(&window);
	for (int i = 0; i < n; i++)
		glexch_window_close(procs[0].ch, &many[i]);
	free(many);
	stop();
}
END_TEST

/* No room in the memory table: nobody is told of a window. */
START_TEST(open__no_room__is_none)
{
	struct glexch_window other;

	connected(6);
	fake.regions_max = fake.regions;
	glexch_window_open(procs[0].ch, buf, BYTES, &other);
	ck_assert_uint_eq(other.len, 0);
	ck_assert_uint_eq(other.handle, 0);
	glexch_window_close(procs[0].ch, &other);
	disconnected();
}
END_TEST

/* A process leaves room in the table for what is sent by rendezvous. */
START_TEST(open__very_many__are_no_more_than_a_share)
{
	struct glexch_window *many = calloc(300, sizeof(*many));
	int n = 0;

	connected(7);
	fake.regions_max = 10000;
	while (n < 300 && (glexch_window_open(procs[0].ch, buf, 8, &many[n]), many[n].len))
		n++;
	ck_assert_int_gt(n, 2);
	ck_assert_int_lt(n, 250);
	for (int i = 0; i < n; i++)
		glexch_window_close(procs[0].ch, &many[i]);
	glexch_window_open(procs[0].ch, buf, 8, &many[0]);
	ck_assert_uint_eq(many[0].len, 8);
	glexch_window_close(procs[0].ch, &many[0]);
	free(many);
	disconnected();
}
END_TEST

static TCase *window_case(void)
{
	TCase *tc = tcase_create("window");

	tcase_add_loop_test(tc, put__any_place__is_there_when_the_call_returns, 0, 5);
	tcase_add_loop_test(tc, get__any_place__has_come_when_the_call_returns, 0, 5);
	tcase_add_test(tc, window__beyond_its_end__is_not_reached);
	tcase_add_loop_test(tc, window__endpoint_cannot__is_not_reached, 0, 2);
	tcase_add_loop_test(tc, window__cannot_be_mapped_here__peer_lives, 0, 2);
	tcase_add_loop_test(tc, window__peer_is_dead__is_not_reached_and_the_connection_fails, 0, 4);
	tcase_add_test(tc, window__endpoint_is_busy__is_reached_or_tried_again_later);
	tcase_add_loop_test(tc, hold__any_place__is_the_window_itself, 0, 5);
	tcase_add_test(tc, hold__by_a_process_that_died__is_taken_over);
	tcase_add_test(tc, hold__window_without_a_lock__cannot_be);
	tcase_add_test(tc, open__no_room__is_none);
	tcase_add_test(tc, open__very_many__are_no_more_than_a_share);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("channel_window");

	suite_add_tcase(suite, window_case());
	return suite_run_short(suite);
}
