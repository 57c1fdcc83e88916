/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_lend.c - data that is lent: fetched by the peer, in its place in the stream.
 */
#include "channel_kit.h"

#define MESSAGES 80
#define LOANS	 128

static struct end *a, *b; /* of processes 0 and 1 */

static void connected(unsigned seed, enum glexch_mode mode)
{
	kit_params.mode = mode;
	kit_params.er_max = mode == GLEXCH_MODE_SR ? 0 : 4;
	start(seed, 16, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, b);
}

static void many_steps(int n)
{
	while (n--)
		step();
}

/* Whatever is lent in the rest of the test is near. */
static void all_near(void)
{
	fake.mapped = 1;
	a->lends = b->lends = GLEXCH_LEND_NEAR;
}

START_TEST(lend__near__a_stream_of_them_takes_one_round)
{
	connected(1, GLEXCH_MODE_SR);
	fake.direct = 1;
	all_near();
	b->land_max = 2000;
	for (int i = 0; i < 3; i++) { /* no more than there are credits for */
		ck_assert_int_eq(lend_message(a, 5000), 1);
		send_message(a, 30);
	}
	glexch_progress(procs[1].ch);
	ck_assert_uint_eq(b->received, a->sent);
	ck_assert_int_eq(b->lands, 9);
	ck_assert_uint_eq(fake.fetched, 9);
	settle(a, b);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

START_TEST(lend__one_buffer__arrives_in_one_packet)
{
	connected(1, GLEXCH_MODE_SR);
	fake.mps = 0;
	ck_assert_int_eq(lend_message(a, 50000), 1);
	settle(a, b);
	ck_assert_uint_eq(fake.mps, 1);
	ck_assert_int_eq(b->lands, 1);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

/* Both directions at once, lent and sent, in any order of arrival; places of any length. */
static void storm(unsigned seed, enum glexch_mode mode, int busy)
{
	int lent = 0;

	connected(seed, mode);
	fake.busy_percent = busy;
	for (int i = 0; i < MESSAGES; i++) {
		struct end *from = fake_random(2) && b->conn ? b : a;

		fake.mapped = fake_random(4) != 0;
		from->lends = fake_random(2) ? GLEXCH_LEND_NEAR : 0;
		a->land_max = 1 + fake_random(9000);
		b->land_max = 1 + fake_random(9000);
		if (fake_random(2) && lend_message(from, 81 + fake_random(20000)))
			lent++;
		else
			send_message(from, 1 + fake_random(6000));
		many_steps((int)fake_random(12));
	}
	settle(a, b);
	settle(b, a);
	ck_assert_int_gt(lent, 0);
	quiet(&procs[0]);
	quiet(&procs[1]);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}

START_TEST(lend__random_order_of_arrival__stream_is_in_order)
{
	storm((unsigned)_i, GLEXCH_MODE_SR, 0);
}
END_TEST

/* Offered or not, to places that are mapped or not, in any order: a loan is put, or fetched in parts. */
static void storm_of_offers(unsigned seed, enum glexch_mode mode, int busy)
{
	int lent = 0;

	connected(seed, mode);
	a->offers = b->offers = 2;
	a->land_max = b->land_max = 1 << 20;
	fake.busy_percent = busy;
	for (int i = 0; i < MESSAGES; i++) {
		struct end *from = fake_random(2) && b->conn ? b : a;

		from->lends = fake_random(2) ? GLEXCH_LEND_NEAR : 0;
		fake.mapped = fake_random(4) != 0;
		if (fake_random(4) == 0)
			a->land_max = b->land_max = fake_random(2) ? 1 + fake_random(9000) : 1 << 20;
		if (fake_random(2) && lend_message(from, 81 + fake_random(20000)))
			lent++;
		else
			send_message(from, 1 + fake_random(6000));
		many_steps((int)fake_random(12));
	}
	settle(a, b);
	settle(b, a);
	ck_assert_int_gt(lent, 0);
	ck_assert_int_gt(a->puts + b->puts, 0);
	ck_assert_int_lt(a->puts + b->puts, lent);
	quiet(&procs[0]);
	quiet(&procs[1]);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}

START_TEST(lend__offered__stream_is_in_order)
{
	storm_of_offers((unsigned)_i, _i % 2 ? GLEXCH_MODE_SR : GLEXCH_MODE_ER, _i % 3 ? 0 : 60);
}
END_TEST

START_TEST(lend__offered_to_mapped_memory__is_put_without_a_get)
{
	connected((unsigned)_i, _i % 2 ? GLEXCH_MODE_SR : GLEXCH_MODE_ER);
	a->offers = 1;
	fake.mapped = 1;
	ck_assert_int_eq(lend_message(a, 50000), 1);
	settle(a, b);
	ck_assert_int_eq(b->puts, 1);
	ck_assert_uint_eq(glexch_stats(procs[0].ch)->sent[GLEXCH_WAY_PUT][5], 1);
	ck_assert_uint_eq(glexch_stats(procs[1].ch)->sent[GLEXCH_WAY_GET][5], 0);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

/* Whatever the reason, it comes, and the connection lives. */
static void put_fails(unsigned seed, int registers)
{
	connected(seed, GLEXCH_MODE_SR);
	a->offers = 1;
	fake.mapped = 1;
	fake.busy_percent = (int)(seed % 2) * 50;
	fake.puts_refused = registers;
	ck_assert_int_eq(lend_message(a, 3000), 1);
	for (int i = 0; i < STEPS && !glexch_stats(procs[0].ch)->sent[GLEXCH_WAY_PUT][3]; i++) {
		fake.cache_broken = !registers && b->lands;
		step();
	}
	fake.cache_broken = 0;
	settle(a, b);
	ck_assert_uint_eq(glexch_stats(procs[0].ch)->sent[GLEXCH_WAY_PUT][3], 1);
	ck_assert_int_eq(b->puts, 0);
	ck_assert_int_eq(a->failed + b->failed, 0);
	fake.puts_refused = 0;
	send_message(a, 3000);
	settle(a, b);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}

START_TEST(lend__place_cannot_be_reached__is_fetched)
{
	put_fails((unsigned)_i, 1);
}
END_TEST

START_TEST(lend__put_cannot_be_registered__is_fetched)
{
	put_fails((unsigned)_i, 0);
}
END_TEST

/* What may still be put, or was about to be, is refused then: nothing stays registered. */
START_TEST(lend__offered_and_a_peer_dies__place_is_given_back)
{
	int dead = _i % 2;

	connected((unsigned)_i, GLEXCH_MODE_SR);
	a->offers = 1;
	fake.mapped = 1;
	for (int i = 0; i < 3; i++)
		lend_message(a, 4000);
	many_steps((int)fake_random(25));
	fake_kill(procs[dead].card.addr);
	fake_announce_death(procs[dead].card.addr);
	for (int i = 0; i < 20000; i++) {
		fake_deliver(5);
		glexch_progress(procs[!dead].ch);
	}
	ck_assert_int_eq(dead ? a->failed : b->failed, 1);
	ck_assert_int_eq(dead ? a->done - a->queued : b->lands - b->landed, 0);
	stop();
}
END_TEST

START_TEST(lend__rings_besides__stream_is_in_order)
{
	storm((unsigned)_i, GLEXCH_MODE_ER, 0);
}
END_TEST

START_TEST(lend__queues_full__stream_is_in_order)
{
	storm((unsigned)_i, _i % 2 ? GLEXCH_MODE_SR : GLEXCH_MODE_ER, 80);
}
END_TEST

START_TEST(lend__memory_table_full_at_the_receiver__goes_through_blocks)
{
	connected((unsigned)_i, GLEXCH_MODE_SR);
	ck_assert_int_eq(lend_message(a, 30000), 1);
	fake.regions_max = fake.regions;
	send_message(a, 100);
	settle(a, b);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

/* Packets behind what is lent must not have all blocks that it is to come through: whatever overtook it. */
static void through_few_blocks(unsigned seed, uint32_t blocks, enum glexch_mode mode)
{
	kit_params.mode = mode;
	kit_params.er_max = mode == GLEXCH_MODE_SR ? 0 : 4;
	start(seed, 64, blocks);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	for (int i = 0; i < 200; i++) /* which brings the grant of credits to its height */
		send_message(a, 100);
	settle(a, b);
	many_steps(200);
	for (int round = 0; round < 5; round++) {
		for (unsigned n = fake_random(4); n; n--)
			send_message(a, 4000);
		ck_assert_int_eq(lend_message(a, 30000), 1);
		fake.regions_max = fake.regions;
		for (int i = 0; i < 12; i++)
			send_message(a, 4000);
		settle(a, b);
		fake.regions_max = 256;
	}
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}

START_TEST(lend__memory_table_full_and_blocks_behind_it__both_arrive)
{
	through_few_blocks((unsigned)_i, 4 + 2 * ((uint32_t)_i % 7), GLEXCH_MODE_SR);
}
END_TEST

START_TEST(lend__memory_table_full_and_a_ring_besides__both_arrive)
{
	through_few_blocks((unsigned)_i, 4 + 2 * ((uint32_t)_i % 7), GLEXCH_MODE_ER);
}
END_TEST

/* Each stream stands still, and blocks of each lie behind it. */
START_TEST(lend__memory_table_full_and_several_lend__all_arrive)
{
	int lenders = 2 + _i % 3;

	fake_reset((unsigned)_i);
	kit_many = 1;
	for (int i = 0; i <= lenders; i++)
		start_proc(i, 4, 64, 4 + 2 * ((uint32_t)_i / 3 % 3));
	for (int i = 1; i <= lenders; i++) {
		procs[i].main_end.tx_tag = procs[0].ends[i].rx_tag = (unsigned)(10 * i);
		procs[0].ends[i].land_max = 3000 + fake_random(9000);
		open_end(i, 0);
		send_message(&procs[i].main_end, 10);
		settle(&procs[i].main_end, &procs[0].ends[i]);
	}
	for (int i = 1; i <= lenders; i++)
		ck_assert_int_eq(lend_message(&procs[i].main_end, 30000), 1);
	fake.regions_max = fake.regions;
	for (int k = 0; k < 12; k++)
		for (int i = 1; i <= lenders; i++)
			send_message(&procs[i].main_end, 4000);
	for (int i = 1; i <= lenders; i++)
		settle(&procs[i].main_end, &procs[0].ends[i]);
	quiet(&procs[0]);
	stop();
}
END_TEST

START_TEST(lend__memory_table_full_at_the_sender__is_refused)
{
	connected(1, GLEXCH_MODE_SR);
	fake.regions_max = fake.regions;
	ck_assert_int_eq(lend_message(a, 30000), 0);
	stop();
}
END_TEST

START_TEST(lend__near_memory_only__nothing_else_is_lent)
{
	connected(1, GLEXCH_MODE_SR);
	a->lends = GLEXCH_LEND_NEAR;
	ck_assert_int_eq(lend_message(a, 50000), 0);
	quiet(&procs[0]);
	fake.mapped = 1;
	ck_assert_int_eq(lend_message(a, 50000), 1);
	settle(a, b);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

START_TEST(lend__more_than_can_be_lent__is_refused_until_some_is_back)
{
	int n;

	connected(1, GLEXCH_MODE_SR);
	for (n = 0; lend_message(a, 200); n++)
		ck_assert_int_lt(n, LOANS);
	ck_assert_int_gt(n, 0);
	settle(a, b);
	ck_assert_int_eq(lend_message(a, 200), 1);
	settle(a, b);
	stop();
}
END_TEST

START_TEST(lend__owner_done__only_when_all_has_been_fetched)
{
	connected((unsigned)_i, GLEXCH_MODE_SR);
	b->land_max = 700;
	ck_assert_int_eq(lend_message(a, 9000), 1);
	while (a->done < a->queued) {
		ck_assert_uint_le(b->received, a->sent);
		step();
	}
	settle(a, b);
	stop();
}
END_TEST

/* The stream stands still, and only that of the connection. */
START_TEST(lend__nowhere_to_put_it__connection_fails)
{
	connected(1, GLEXCH_MODE_SR);
	b->land_max = 0;
	ck_assert_int_eq(lend_message(a, 9000), 1);
	many_steps(500);
	ck_assert_int_eq(b->failed, 1);
	stop();
}
END_TEST

/* The fake network gives the handle that was given back last. */
static void lend_private(size_t n)
{
	struct glexch_region region;
	uint8_t byte;

	ck_assert_int_eq(glexch_expose(procs[0].ch, &byte, 1, 1, &region), GLEX_SUCCESS);
	glexch_unexpose(procs[0].ch, 1, &region);
	fake.private_handle = region.handle;
	ck_assert_int_eq(lend_message(a, n), 1);
}

START_TEST(lend__private_memory_out_of_reach__comes_as_a_copy)
{
	connected((unsigned)_i, _i % 2 ? GLEXCH_MODE_SR : GLEXCH_MODE_ER);
	if (_i > 10)
		all_near();
	lend_private(30000);
	send_message(a, 500);
	settle(a, b);
	ck_assert_int_eq(b->failed, 0);
	ck_assert_int_gt(b->lands, 1);
	ck_assert_int_eq(lend_message(a, 30000), 0); /* from now on it is copied at once */
	send_message(a, 500);
	settle(a, b);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

START_TEST(lend__private_memory_and_no_other__connection_fails)
{
	connected(1, GLEXCH_MODE_SR);
	lend_private(30000);
	fake.regions_max = fake.regions;
	many_steps(20000);
	ck_assert_int_eq(a->failed, 1);
	ck_assert_int_eq(a->failed_items, 1);
	stop();
}
END_TEST

START_TEST(lend__receiver_dies__item_fails_once)
{
	connected((unsigned)_i, GLEXCH_MODE_SR);
	b->land_max = 500;
	for (int i = 0; i < 5; i++)
		lend_message(a, 4000);
	many_steps((int)fake_random(15));
	fake_kill(procs[1].card.addr);
	many_steps(20000);
	ck_assert_int_eq(a->failed, 1);
	ck_assert_int_eq(a->done, a->queued);
	stop();
}
END_TEST

START_TEST(lend__sender_dies__place_is_given_back)
{
	connected((unsigned)_i, GLEXCH_MODE_SR);
	b->land_max = 500;
	for (int i = 0; i < 3; i++)
		lend_message(a, 4000);
	many_steps((int)fake_random(15));
	fake_kill(procs[0].card.addr);
	fake_announce_death(procs[0].card.addr);
	for (int i = 0; i < 20000; i++) {
		fake_deliver(5);
		glexch_progress(procs[1].ch);
	}
	ck_assert_int_eq(b->failed, 1);
	ck_assert_int_eq(b->lands, b->landed);
	stop();
}
END_TEST

/* Neither end says anything of it, and what is under way does no harm. */
START_TEST(lend__connection_destroyed__is_forgotten)
{
	struct end *victim;

	connected((unsigned)_i, GLEXCH_MODE_SR);
	b->land_max = 500;
	for (int i = 0; i < 3; i++)
		lend_message(a, 4000);
	many_steps((int)fake_random(60));
	victim = _i % 2 ? a : b;
	glexch_conn_destroy(victim->conn);
	ck_assert_int_eq(b->lands == b->landed || victim == a, 1);
	many_steps(2000);
	stop();
}
END_TEST

static size_t destroy_at;

static void destroy_self(struct end *end)
{
	if (end->received < destroy_at)
		return;
	glexch_conn_destroy(end->conn);
	end->conn = NULL;
	end->on_data = NULL;
}

START_TEST(lend__data_callback_destroys_connection__rest_is_ignored)
{
	connected((unsigned)_i, GLEXCH_MODE_SR);
	if (_i > 10)
		all_near();
	destroy_at = b->received + 80 + (_i % 2) * 500u;
	b->on_data = destroy_self;
	b->land_max = 500;
	ck_assert_int_eq(lend_message(a, 4000), 1);
	many_steps(300);
	ck_assert_ptr_null(b->conn);
	ck_assert_uint_lt(b->received, a->sent);
	ck_assert_int_eq(b->lands, b->landed);
	stop();
}
END_TEST

static void reply_and_poll(struct end *end)
{
	if (fake_random(2))
		send_message(end, 1 + fake_random(300));
	else
		lend_message(end, 81 + fake_random(3000));
	fake_deliver(4);
	glexch_progress(procs[0].ch);
	glexch_progress(procs[1].ch);
}

START_TEST(lend__callbacks_send_and_poll__order_holds)
{
	connected((unsigned)_i, _i % 2 ? GLEXCH_MODE_SR : GLEXCH_MODE_ER);
	b->on_data = reply_and_poll;
	b->land_max = _i % 3 ? 3000 : 1 << 20;
	a->offers = b->offers = _i % 3 ? 0 : 2;
	fake.mapped = 1;
	for (int i = 0; i < 40; i++) {
		a->lends = fake_random(2) ? GLEXCH_LEND_NEAR : 0;
		if (!lend_message(a, 81 + fake_random(9000)))
			send_message(a, 100);
		step();
	}
	settle(a, b);
	b->on_data = NULL;
	settle(b, a);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

START_TEST(drain__something_lent__waits_for_it)
{
	connected(1, GLEXCH_MODE_SR);
	ck_assert_int_eq(lend_message(a, 4000), 1);
	glexch_conn_drain(a->conn);
	ck_assert_int_eq(a->drained, 0);
	settle(a, b);
	ck_assert_int_eq(a->drained, 1);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("channel: lent");
	TCase *tc = tcase_create("lent");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, lend__one_buffer__arrives_in_one_packet);
	tcase_add_test(tc, lend__near_memory_only__nothing_else_is_lent);
	tcase_add_test(tc, lend__near__a_stream_of_them_takes_one_round);
	tcase_add_loop_test(tc, lend__random_order_of_arrival__stream_is_in_order, 1, 40);
	tcase_add_loop_test(tc, lend__offered__stream_is_in_order, 1, 60);
	tcase_add_loop_test(tc, lend__offered_to_mapped_memory__is_put_without_a_get, 1, 9);
	tcase_add_loop_test(tc, lend__place_cannot_be_reached__is_fetched, 1, 9);
	tcase_add_loop_test(tc, lend__put_cannot_be_registered__is_fetched, 1, 9);
	tcase_add_loop_test(tc, lend__offered_and_a_peer_dies__place_is_given_back, 1, 60);
	tcase_add_loop_test(tc, lend__rings_besides__stream_is_in_order, 1, 40);
	tcase_add_loop_test(tc, lend__queues_full__stream_is_in_order, 1, 20);
	tcase_add_loop_test(tc, lend__memory_table_full_at_the_receiver__goes_through_blocks, 1, 4);
	tcase_add_loop_test(tc, lend__memory_table_full_and_blocks_behind_it__both_arrive, 1, 50);
	tcase_add_loop_test(tc, lend__memory_table_full_and_a_ring_besides__both_arrive, 1, 50);
	tcase_add_loop_test(tc, lend__memory_table_full_and_several_lend__all_arrive, 1, 50);
	tcase_add_test(tc, lend__memory_table_full_at_the_sender__is_refused);
	tcase_add_test(tc, lend__more_than_can_be_lent__is_refused_until_some_is_back);
	tcase_add_loop_test(tc, lend__owner_done__only_when_all_has_been_fetched, 1, 5);
	tcase_add_test(tc, lend__nowhere_to_put_it__connection_fails);
	tcase_add_loop_test(tc, lend__private_memory_out_of_reach__comes_as_a_copy, 1, 20);
	tcase_add_test(tc, lend__private_memory_and_no_other__connection_fails);
	tcase_add_loop_test(tc, lend__receiver_dies__item_fails_once, 1, 20);
	tcase_add_loop_test(tc, lend__sender_dies__place_is_given_back, 1, 20);
	tcase_add_loop_test(tc, lend__connection_destroyed__is_forgotten, 1, 20);
	tcase_add_loop_test(tc, lend__data_callback_destroys_connection__rest_is_ignored, 1, 20);
	tcase_add_loop_test(tc, lend__callbacks_send_and_poll__order_holds, 1, 60);
	tcase_add_test(tc, drain__something_lent__waits_for_it);
	suite_add_tcase(suite, tc);
	return suite_run_short(suite);
}
