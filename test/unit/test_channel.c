/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel.c - the channel library over a network that reorders, refuses and dies.
 *
 * Every stream carries a known pattern, and each byte is checked where it
 * arrives: lost, doubled, misplaced or foreign bytes are found at once.
 */
#include "channel_kit.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK	 200000
#define MESSAGES 120

/* ---- tests: the stream --------------------------------------------------- */

START_TEST(card__garbage__is_refused)
{
	static const char *const cards[] = {"",
					    "0",
					    "0123456789abcdef",
					    "0123456789abcdef.00000001.40",
					    "0123456789abcdef.00000001.40.1000",
					    "0123456789abcdef.00000001.40.1000.1x",
					    "0123456789abcdef.00000001.40.1000.1",
					    "0123456789abcdef.00000001.40.1000.1.x",
					    "0123456789abcdef.00000001.00.1000.1.0"};
	struct glexch_peer peer;

	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++)
		ck_assert_int_eq(glexch_card_parse(cards[i], &peer), GLEX_INVALID_PARAM);
}
END_TEST

START_TEST(open__parameters_out_of_range__are_refused)
{
	static const struct glexch_params bad[] = {
		{.key = 1, .credits = 0, .blocks = 64, .block_size = 4096},
		{.key = 1, .credits = 256, .blocks = 64, .block_size = 4096},
		{.key = 1, .credits = 16, .blocks = 2, .block_size = 4096},
		{.key = 1, .credits = 16, .blocks = 64, .block_size = 4097},
		{.key = 1, .credits = 16, .blocks = 64, .block_size = 0},
		{.key = 1, .credits = 16, .blocks = 64, .block_size = 4096, .header = 105},
	};
	struct glexch *ch;

	fake_reset(1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(glexch_open(&bad[i], &ch), GLEX_INVALID_PARAM);
}
END_TEST

START_TEST(try_short__connected__is_one_mp)
{
	uint8_t bytes[GLEXCH_MP_BODY];

	start(1, 16, 8);
	open_end(0, 1);
	ck_assert_int_eq(glexch_try_short(procs[0].main_end.conn, bytes, 1, 1, NULL, 0), 0); /* not introduced yet */
	send_message(&procs[0].main_end, 50);
	settle(&procs[0].main_end, &procs[1].main_end);
	fill(bytes, 1, 50, sizeof(bytes));
	fake.mps = 0;
	ck_assert_int_eq(glexch_try_short(procs[0].main_end.conn, bytes, 80, 80, bytes + 80, 24), 1);
	procs[0].main_end.sent += sizeof(bytes);
	settle(&procs[0].main_end, &procs[1].main_end);
	ck_assert_uint_eq(fake.mps, 1);
	stop();
}
END_TEST

START_TEST(stream__every_size__arrives)
{
	static const size_t sizes[] = {1, 2, 79, 80, 81, 104, 105, 208, 312, 313, 4096, 4097, 4176, 4177, 8192, CHUNK};

	start(3, 16, 8);
	open_end(0, 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_message(&procs[0].main_end, sizes[i]);
		settle(&procs[0].main_end, &procs[1].main_end);
	}
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

static size_t random_size(void)
{
	static const unsigned below[] = {104, 400, 5000, 40000};

	return 1 + fake_random(below[fake_random(4)]);
}

/* Blocks go where the receiver says, where the network can: with every other seed (fake_glex.h). */
START_TEST(stream__place_known__blocks_come_there)
{
	start((unsigned)_i, 16, 8);
	fake.direct = 1;
	open_end(0, 1);
	for (int i = 0; i < 200; i++) {
		send_message(&procs[0].main_end, 1000 + fake_random(9000));
		if (i % 3 == 0)
			settle(&procs[0].main_end, &procs[1].main_end);
	}
	settle(&procs[0].main_end, &procs[1].main_end);
	ck_assert_int_eq(procs[1].main_end.placed > 100000, fake.injects);
	ck_assert_int_eq(fake.fetched > 50, fake.injects);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

START_TEST(stream__peer_dies_before_its_block_is_placed__fails)
{
	start((unsigned)_i, 16, 8);
	open_end(0, 1);
	send_message(&procs[0].main_end, 10);
	settle(&procs[0].main_end, &procs[1].main_end);
	for (int i = 0; i < 4; i++)
		send_message(&procs[0].main_end, 3000);
	fake_deliver(100);
	fake_kill(procs[0].card.addr);
	for (int i = 0; i < 5000 && !procs[1].main_end.failed; i++) {
		glexch_progress(procs[1].ch);
		fake_deliver(100);
	}
	ck_assert_int_eq(procs[1].main_end.failed, 1);
	ck_assert_uint_eq(procs[1].main_end.placed, 0);
	stop();
}
END_TEST

/* Both directions at once, any order of arrival, refused posts, hardly any blocks. */
static void storm(unsigned seed, uint32_t credits, uint32_t blocks, int busy)
{
	struct end *a, *b;

	start(seed, credits, blocks);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	fake.busy_percent = busy;
	open_end(0, 1);
	open_end(1, 0);
	for (int i = 0; i < MESSAGES; i++) {
		send_message(a, random_size());
		send_message(b, random_size());
		for (unsigned n = fake_random(12); n; n--)
			step();
	}
	settle(a, b);
	settle(b, a);
	quiet(&procs[0]);
	quiet(&procs[1]);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}

START_TEST(stream__random_order_of_arrival__is_restored)
{
	storm((unsigned)_i, 16, 8, 0);
}
END_TEST

START_TEST(stream__one_credit__moves_on)
{
	storm((unsigned)_i, 1, 4, 0);
}
END_TEST

START_TEST(stream__queues_full__is_complete)
{
	storm((unsigned)_i, 64, 4, 90);
}
END_TEST

START_TEST(stream__network_in_order__delivers_without_delay)
{
	start(1, 16, 8);
	fake.direct = 1;
	open_end(0, 1);
	send_message(&procs[0].main_end, 60000);
	for (int i = 0; i < 30; i++)
		step();
	ck_assert_uint_eq(procs[1].main_end.received, 60000);
	stop();
}
END_TEST

/* ---- tests: credits ------------------------------------------------------ */

START_TEST(credits__receiver_asleep__queue_never_overflows)
{
	start(5, 40, 8);
	open_end(0, 1);
	for (int i = 0; i < 1000; i++)
		send_message(&procs[0].main_end, 100);
	for (int i = 0; i < 2000; i++) {
		fake_deliver(10);
		glexch_progress(procs[0].ch);
	}
	ck_assert_uint_eq(fake.mpq_peak, procs[1].card.grant);
	settle(&procs[0].main_end, &procs[1].main_end);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

START_TEST(credits__one_way_stream__are_returned_in_half_grants)
{
	start(5, 64, 8);
	open_end(0, 1);
	for (int i = 0; i < 3300; i++)
		send_message(&procs[0].main_end, 100);
	settle(&procs[0].main_end, &procs[1].main_end);
	ck_assert_uint_ge(fake.credit_mps, 3300 / 64);
	ck_assert_uint_le(fake.credit_mps, 3300 / 33 + 1);
	stop();
}
END_TEST

START_TEST(credits__ping_pong__ride_along)
{
	start(5, 8, 8);
	open_end(0, 1);
	for (int i = 0; i < 200; i++) {
		send_message(&procs[0].main_end, 10);
		settle(&procs[0].main_end, &procs[1].main_end);
		send_message(&procs[1].main_end, 10);
		settle(&procs[1].main_end, &procs[0].main_end);
	}
	ck_assert_uint_eq(fake.credit_mps, 0);
	stop();
}
END_TEST

START_TEST(credits__many_peers__start_small_and_grow)
{
	fake_reset(9);
	start_proc(0, 100000, 64, 8);
	start_proc(1, 100000, 64, 8);
	ck_assert_uint_eq(procs[0].card.grant, 1);
	tag_ends(0, 1);
	open_end(0, 1);
	for (int i = 0; i < 500; i++)
		send_message(&procs[0].main_end, 100);
	ck_assert_uint_eq(fake.mps, 1);
	settle(&procs[0].main_end, &procs[1].main_end);
	for (int i = 0; i < 200; i++)
		step();
	fake.mps = 0;
	for (int i = 0; i < 100; i++)
		send_message(&procs[0].main_end, 100);
	ck_assert_uint_ge(fake.mps, 32); /* without waiting for anything */
	settle(&procs[0].main_end, &procs[1].main_end);
	stop();
}
END_TEST

/* ---- tests: connections -------------------------------------------------- */

START_TEST(hello__refused_at_first__is_asked_again)
{
	start((unsigned)_i, 16, 8);
	procs[1].refuse = 5;
	open_end(0, 1);
	send_message(&procs[0].main_end, 3000);
	send_message(&procs[0].main_end, 30);
	settle(&procs[0].main_end, &procs[1].main_end);
	ck_assert_int_eq(procs[1].refuse, 0);
	stop();
}
END_TEST

/* The network may bring the introduction last: what is sent to the stranger meanwhile goes out then. */
START_TEST(open__towards_a_stranger_whose_hello_is_late__sends_after_it)
{
	start((unsigned)_i, 16, 8);
	procs[1].refuse = 1 + _i % 3;
	open_end(0, 1);
	send_message(&procs[0].main_end, 30);
	for (int n = 0; n < STEPS && procs[1].refuse == 1 + _i % 3; n++)
		step();
	open_end(1, 0); /* finds the connection that the packets have made */
	send_message(&procs[1].main_end, 20000);
	settle(&procs[0].main_end, &procs[1].main_end);
	settle(&procs[1].main_end, &procs[0].main_end);
	quiet(&procs[1]);
	stop();
}
END_TEST

/* _i % 2: somebody opens the connection that its packets have made.  Nothing is left that waits for its hello. */
START_TEST(stranger__dies_before_its_hello_is_taken__is_forgotten_or_told_of)
{
	int asked;

	start((unsigned)_i, 16, 8);
	procs[1].refuse = 1000000;
	open_end(0, 1);
	send_message(&procs[0].main_end, 30);
	for (int n = 0; n < STEPS && procs[1].refuse == 1000000; n++)
		step();
	ck_assert_int_lt(procs[1].refuse, 1000000);
	if (_i % 2) {
		open_end(1, 0);
		send_message(&procs[1].main_end, 20000);
	}
	fake_kill(procs[0].card.addr);
	fake_announce_death(procs[0].card.addr);
	for (int n = 0; n < 2048; n++)
		glexch_progress(procs[1].ch);
	ck_assert_uint_eq(stats(1)->peers_failed, 1);
	ck_assert_int_eq(procs[1].main_end.failed, _i % 2);
	asked = procs[1].refuse;
	for (int n = 0; n < 100; n++)
		glexch_progress(procs[1].ch);
	ck_assert_int_eq(procs[1].refuse, asked); /* nobody is asked who it is */
	stop();
}
END_TEST

START_TEST(channels__two_between_the_same_endpoints__stay_apart)
{
	struct end *temp;

	start((unsigned)_i, 16, 8);
	temp = &procs[0].temp_end;
	open_end(0, 1);
	temp->conn = glexch_conn_open(procs[0].ch, &procs[1].card, glexch_new_chan(procs[0].ch), 0, temp);
	ck_assert_ptr_nonnull(temp->conn);
	glexch_conn_announce(temp->conn);
	for (int i = 0; i < MESSAGES; i++) {
		send_message(&procs[0].main_end, random_size());
		send_message(temp, random_size());
		step();
		if (procs[1].temp_end.conn)
			send_message(&procs[1].temp_end, random_size());
	}
	settle(&procs[0].main_end, &procs[1].main_end);
	settle(temp, &procs[1].temp_end);
	settle(&procs[1].temp_end, temp);
	stop();
}
END_TEST

/* Whatever is under way: the peer ends up with the last word, and no byte is lost over it. */
START_TEST(hold__amid_a_stream__peer_hears_the_last_word)
{
	struct end *a, *b;

	start((unsigned)_i, 1 + (uint32_t)_i % 16, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	open_end(1, 0);
	for (int i = 0; i < MESSAGES; i++) {
		send_message(a, random_size());
		send_message(b, random_size());
		glexch_conn_hold(b->conn, (int)fake_random(2));
		for (unsigned n = fake_random(12); n; n--)
			step();
	}
	glexch_conn_hold(b->conn, _i % 2);
	settle(a, b);
	settle(b, a);
	for (int n = 0, idle = 0; n < STEPS && idle < 100; n++)
		idle = step() ? 0 : idle + 1; /* nothing is on its way any more */
	quiet(&procs[0]);
	quiet(&procs[1]);
	ck_assert_int_gt(a->holds, 0);
	ck_assert_int_eq(a->held, _i % 2);
	ck_assert_int_eq(b->holds, 0);
	stop();
}
END_TEST

START_TEST(announce__nothing_sent__peer_hears)
{
	struct end *temp;

	start(1, 16, 8);
	temp = &procs[0].temp_end;
	temp->conn = glexch_conn_open(procs[0].ch, &procs[1].card, glexch_new_chan(procs[0].ch), 0, temp);
	glexch_conn_announce(temp->conn);
	for (int i = 0; i < 10; i++)
		step();
	ck_assert_ptr_nonnull(procs[1].temp_end.conn);
	stop();
}
END_TEST

START_TEST(peer__dies__everything_of_it_fails_once)
{
	struct end *a;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, &procs[1].main_end);
	for (int i = 0; i < 20; i++)
		send_message(a, 30000);
	for (int i = 0; i < 20; i++)
		step();
	fake_kill(procs[1].card.addr);
	glexch_close(procs[1].ch);
	procs[1].ch = NULL;
	for (int i = 0; i < 3000; i++)
		step();
	ck_assert_int_eq(a->failed, 1);
	ck_assert_int_eq(a->done, a->queued);
	ck_assert_int_gt(a->failed_items, 0);
	ck_assert(glexch_quiet(procs[0].ch));
	send_message(a, 10); /* fails at once */
	ck_assert_int_eq(a->done, a->queued);
	stop();
}
END_TEST

static struct {
	int told;
	glex_ep_addr_t addr;
	uint32_t number;
} death;

static void on_died(struct glexch *ch, glex_ep_addr_t addr, uint32_t number)
{
	(void)ch;
	death.told++;
	death.addr = addr;
	death.number = number;
}

/* Nothing is asked of a silent peer, so that only glexd can have told. */
static void rounds(struct glexch *ch, int n)
{
	while (n--)
		glexch_progress(ch);
}

START_TEST(peer__is_said_to_have_died__fails_at_once_and_its_last_words_are_heard)
{
	struct glexch_ops ops = kit_ops;
	struct end *a;

	ops.died = on_died;
	memset(&death, 0, sizeof(death));
	start((unsigned)_i, 16, 8);
	kit_params.ops = &ops;
	start_proc(2, 1, 16, 8);
	tag_ends(2, 1);
	a = &procs[2].main_end;
	open_end(2, 1);
	send_message(a, 10);
	settle(a, &procs[1].main_end);
	send_message(&procs[1].main_end, 50);
	while (fake_deliver(1))
		;
	fake_announce_death(procs[1].card.addr);
	rounds(procs[2].ch, 2048);
	ck_assert_int_eq(a->received, 50);
	ck_assert_int_eq(a->failed, 1);
	ck_assert_int_eq(death.told, 1);
	ck_assert_uint_eq(death.addr.v, procs[1].card.addr.v);
	rounds(procs[2].ch, 2048);
	ck_assert_int_eq(death.told, 1);
	fake_announce_death(procs[0].card.addr); /* to which there is no connection */
	rounds(procs[2].ch, 2048);
	ck_assert_int_eq(death.told, 2);
	ck_assert_uint_eq(death.addr.v, procs[0].card.addr.v);
	ck_assert(glexch_outlived(procs[0].card.born, death.number));
	stop();
}
END_TEST

START_TEST(peer__earlier_process_with_its_address_died__lives)
{
	struct end *a;

	fake_reset((unsigned)_i);
	start_proc(0, 2, 16, 8);
	fake_announce_death((glex_ep_addr_t){.s = {.nic_id = 7, .ep_num = 1}});
	start_proc(1, 2, 16, 8);
	tag_ends(0, 1);
	ck_assert_uint_eq(procs[1].card.addr.s.ep_num, 1);
	ck_assert(!glexch_outlived(procs[1].card.born, 0));
	a = &procs[0].main_end;
	open_end(0, 1);
	send_message(a, 10);
	rounds(procs[0].ch, 2048);
	settle(a, &procs[1].main_end);
	ck_assert_int_eq(a->failed, 0);
	stop();
}
END_TEST

/* A process has died, and another has its address and is connected; only now comes what was sent to the first. */
static struct end *heir(enum glex_err_req_status status, int silent)
{
	glex_ep_addr_t addr = {.s = {.nic_id = 7, .ep_num = 1}};
	struct end *a;

	fake_reset(0);
	start_proc(0, 2, 16, 8);
	fake_announce_death(addr);
	start_proc(1, 2, 16, 8);
	tag_ends(0, 1);
	ck_assert_uint_eq(procs[1].card.addr.s.ep_num, 1);
	a = &procs[0].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, &procs[1].main_end);
	send_message(&procs[1].main_end, 10);
	settle(a, &procs[1].main_end);
	if (silent)
		rounds(procs[0].ch, 1024 * 4 * 256); /* until it is asked for */
	fake_report(procs[0].card.addr, procs[1].card.addr, status);
	rounds(procs[0].ch, 2048);
	return a;
}

START_TEST(peer__request_to_an_earlier_process_with_its_address_fails__lives)
{
	struct end *a = heir(_i ? GLEX_ERR_STATUS_ATT : GLEX_ERR_STATUS_DEST_HOST_DEAD, 0);

	ck_assert_int_eq(a->failed, 0);
	send_message(a, 10);
	settle(a, &procs[1].main_end);
	stop();
}
END_TEST

START_TEST(peer__has_an_earlier_ones_address_and_is_asked_for_in_vain__fails)
{
	ck_assert_int_eq(heir(GLEX_ERR_STATUS_DEST_VP_STOP, 1)->failed, 1);
	stop();
}
END_TEST

START_TEST(peer__has_an_earlier_ones_address_and_a_packet_is_lost__fails)
{
	ck_assert_int_eq(heir(GLEX_ERR_STATUS_DEST_MPQ_FULL, 0)->failed, 1);
	stop();
}
END_TEST

START_TEST(drain__queue_not_empty__waits_for_it)
{
	struct end *a;

	start(2, 4, 4);
	a = &procs[0].main_end;
	open_end(0, 1);
	for (int i = 0; i < 20; i++)
		send_message(a, 5000);
	glexch_conn_drain(a->conn);
	ck_assert_int_eq(a->drained, 0);
	settle(a, &procs[1].main_end);
	ck_assert_int_eq(a->drained, 1);
	glexch_conn_destroy(a->conn);
	quiet(&procs[0]);
	stop();
}
END_TEST

START_TEST(packets__malformed__are_dropped_or_end_the_connection)
{
	uint8_t mp[112], stream[2];
	struct end *b;

	start((unsigned)_i, 16, 8);
	b = &procs[1].main_end;
	open_end(0, 1);
	send_message(&procs[0].main_end, 10);
	settle(&procs[0].main_end, b);
	memcpy(stream, fake_last_mp() + 6, 2);
	for (int i = 0; i < 400; i++) {
		for (size_t k = 0; k < sizeof(mp); k++)
			mp[k] = (uint8_t)fake_random(256);
		mp[0] = (uint8_t)(mp[0] & 0xf0) |
			(uint8_t)(fake_random(2) ? 3 : 6 + fake_random(10)); /* none that carries bytes or credits */
		memset(mp + 4, 0, 2); /* the lasting connection's, of a stream that is sometimes the right one */
		if (fake_random(2))
			memcpy(mp + 6, stream, 2);
		fake_inject(procs[0].card.addr, procs[1].card.addr, mp, fake_random(113));
		step();
	}
	ck_assert_uint_eq(b->received, 10);
	stop();
}
END_TEST

/* ---- tests: callbacks that do things ------------------------------------- */

static void reply_and_poll(struct end *end)
{
	send_message(end, 1 + fake_random(6000));
	fake_deliver(4);
	glexch_progress(procs[0].ch);
	glexch_progress(procs[1].ch);
}

START_TEST(data_callback__sends_and_polls__order_holds)
{
	struct end *a, *b;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	b->on_data = reply_and_poll;
	open_end(0, 1);
	for (int i = 0; i < 60; i++) {
		send_message(a, random_size());
		step();
	}
	settle(a, b);
	settle(b, a);
	stop();
}
END_TEST

static void destroy_self(struct end *end)
{
	glexch_conn_destroy(end->conn);
	end->conn = NULL;
}

START_TEST(data_callback__destroys_connection__rest_is_ignored)
{
	start((unsigned)_i, 16, 8);
	procs[1].main_end.on_data = destroy_self;
	open_end(0, 1);
	send_message(&procs[0].main_end, 90);
	for (int i = 0; i < 100; i++)
		step();
	ck_assert_uint_eq(procs[1].main_end.received, 90);
	ck_assert_int_eq(procs[1].main_end.failed, 0);
	stop();
}
END_TEST

static void hold_and_poll(struct end *end)
{
	glexch_conn_hold(end->conn, 1);
	glexch_progress(procs[0].ch);
}

/* What the round inside finds to be said is said after the queue, whatever else comes. */
START_TEST(done_callback__has_something_said_and_polls__is_said)
{
	struct end *a, *b;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, b);
	fake.busy_percent = 100;
	send_message(a, 10);
	ck_assert_int_lt(a->done, a->queued);
	a->on_done = hold_and_poll;
	fake.busy_percent = 0;
	settle(a, b);
	for (int i = 0; i < 200; i++)
		step();
	ck_assert_int_eq(b->held, 1);
	stop();
}
END_TEST

/* ---- main ---------------------------------------------------------------- */

static TCase *stream_case(void)
{
	TCase *tc = tcase_create("stream");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, card__garbage__is_refused);
	tcase_add_test(tc, open__parameters_out_of_range__are_refused);
	tcase_add_test(tc, try_short__connected__is_one_mp);
	tcase_add_test(tc, stream__every_size__arrives);
	tcase_add_loop_test(tc, stream__place_known__blocks_come_there, 0, 4);
	tcase_add_loop_test(tc, stream__peer_dies_before_its_block_is_placed__fails, 0, 8);
	tcase_add_loop_test(tc, stream__random_order_of_arrival__is_restored, 1, 40);
	tcase_add_loop_test(tc, stream__one_credit__moves_on, 1, 10);
	tcase_add_loop_test(tc, stream__queues_full__is_complete, 1, 20);
	tcase_add_test(tc, stream__network_in_order__delivers_without_delay);
	tcase_add_test(tc, credits__receiver_asleep__queue_never_overflows);
	tcase_add_test(tc, credits__one_way_stream__are_returned_in_half_grants);
	tcase_add_test(tc, credits__ping_pong__ride_along);
	tcase_add_test(tc, credits__many_peers__start_small_and_grow);
	return tc;
}

static TCase *conn_case(void)
{
	TCase *tc = tcase_create("connections");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, hello__refused_at_first__is_asked_again, 1, 10);
	tcase_add_loop_test(tc, open__towards_a_stranger_whose_hello_is_late__sends_after_it, 0, 30);
	tcase_add_loop_test(tc, stranger__dies_before_its_hello_is_taken__is_forgotten_or_told_of, 0, 10);
	tcase_add_loop_test(tc, channels__two_between_the_same_endpoints__stay_apart, 1, 10);
	tcase_add_loop_test(tc, hold__amid_a_stream__peer_hears_the_last_word, 1, 20);
	tcase_add_test(tc, announce__nothing_sent__peer_hears);
	tcase_add_loop_test(tc, peer__dies__everything_of_it_fails_once, 1, 20);
	tcase_add_loop_test(tc, peer__is_said_to_have_died__fails_at_once_and_its_last_words_are_heard, 1, 5);
	tcase_add_test(tc, peer__earlier_process_with_its_address_died__lives);
	tcase_add_loop_test(tc, peer__request_to_an_earlier_process_with_its_address_fails__lives, 0, 2);
	tcase_add_test(tc, peer__has_an_earlier_ones_address_and_is_asked_for_in_vain__fails);
	tcase_add_test(tc, peer__has_an_earlier_ones_address_and_a_packet_is_lost__fails);
	tcase_add_test(tc, drain__queue_not_empty__waits_for_it);
	tcase_add_loop_test(tc, packets__malformed__are_dropped_or_end_the_connection, 1, 10);
	tcase_add_loop_test(tc, data_callback__sends_and_polls__order_holds, 1, 10);
	tcase_add_loop_test(tc, done_callback__has_something_said_and_polls__is_said, 1, 5);
	tcase_add_loop_test(tc, data_callback__destroys_connection__rest_is_ignored, 1, 5);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("channel");

	suite_add_tcase(suite, stream_case());
	suite_add_tcase(suite, conn_case());
	return suite_run_short(suite);
}
