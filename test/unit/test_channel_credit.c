/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_credit.c - credits that grow and shrink, floods, and what late
 * packets and lost peers do to connections.
 */
#include "channel_kit.h"

#include <malloc.h>

#define IDLE_PEERS 16384
#define IDLE_BYTES 256 /* memory of one */

/* How many MPs may be sent to a peer that does not listen. */
static unsigned sent_at_once(struct end *end, unsigned most)
{
	unsigned before = fake.mps;

	for (unsigned i = 0; i < most; i++)
		send_message(end, 100);
	return fake.mps - before;
}

/* ---- growing and shrinking ----------------------------------------------- */

START_TEST(grant__flooded__grows_to_the_limit)
{
	struct end *a, *b;

	start((unsigned)_i, 64, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	ck_assert_uint_lt(sent_at_once(a, 100), 20);
	settle(a, b);
	for (int i = 0; i < 1000; i++)
		send_message(a, 100);
	settle(a, b);
	steps(50);				     /* the last credits come home */
	ck_assert_uint_ge(sent_at_once(a, 300), 32); /* up to half may still be owed */
	settle(a, b);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

START_TEST(grant__both_directions_flooded__grows_to_the_limit)
{
	struct end *a, *b;

	start((unsigned)_i, 64, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	open_end(1, 0);
	for (int i = 0; i < 1000; i++) {
		send_message(a, 100);
		send_message(b, 100);
	}
	settle(a, b);
	settle(b, a);
	steps(50);
	ck_assert_uint_ge(sent_at_once(a, 300), 32);
	ck_assert_uint_ge(sent_at_once(b, 300), 32);
	settle(a, b);
	settle(b, a);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

/* Processes 1 and up around process 0, whose MPQ has no room for all to have what they can have at most. */
static void start_star(unsigned seed, uint32_t credits)
{
	fake_reset(seed);
	fake.def_capacity = 1024;
	kit_many = 1;
	for (int i = 0; i < PROCS; i++)
		start_proc(i, PROCS - 1, credits, 8);
	for (int i = 1; i < PROCS; i++) {
		procs[i].main_end.tx_tag = procs[0].ends[i].rx_tag = (unsigned)(10 * i);
		procs[0].ends[i].tx_tag = procs[i].main_end.rx_tag = (unsigned)i;
		open_end(i, 0);
	}
}

START_TEST(pool__empty__cold_peers_give_to_hot_ones)
{
	start_star((unsigned)_i, 255);
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < PROCS; i++) {
			struct end *end = &procs[i].main_end;

			/* More is asked for when all is used, and what others give takes some rounds to come. */
			for (int n = 0; n < 60; n++) {
				for (int k = 0; k < 300; k++)
					send_message(end, 100);
				settle(end, &procs[0].ends[i]);
				steps(100);
			}
			ck_assert_uint_ge(sent_at_once(end, 300), 127);
			settle(end, &procs[0].ends[i]);
		}
	}
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

/* ---- the flood ----------------------------------------------------------- */

START_TEST(flood__many_into_one_that_sleeps__queue_never_overflows)
{
	start_star((unsigned)_i, 255);
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < PROCS; i++)
			for (int k = 0; k < 1000; k++)
				send_message(&procs[i].main_end, 100);
		for (int n = 0; n < 3000; n++) { /* all but 0 */
			fake_deliver(8);
			for (int i = 1; i < PROCS; i++)
				glexch_progress(procs[i].ch);
		}
		for (int i = 1; i < PROCS; i++)
			settle(&procs[i].main_end, &procs[0].ends[i]);
	}
	ck_assert_uint_ge(fake.mpq_peak, 600); /* it was a flood */
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

START_TEST(strangers__more_than_planned__each_has_its_slots_or_fails)
{
	fake_reset((unsigned)_i);
	fake.def_capacity = 64;
	kit_many = 1;
	for (int i = 0; i < PROCS; i++)
		start_proc(i, 1, 64, 8);
	for (int i = 1; i < PROCS; i++) {
		struct end *end = &procs[i].main_end;

		end->tx_tag = procs[0].ends[i].rx_tag = (unsigned)(10 * i);
		procs[0].ends[i].tx_tag = end->rx_tag = (unsigned)i;
		end->conn = glexch_conn_open(procs[i].ch, &procs[0].card, GLEXCH_CHAN_MAIN, 0, end);
		for (int k = 0; k < 1000; k++)
			send_message(end, 100);
	}
	for (int i = 1; i < PROCS; i++)
		settle(&procs[i].main_end, &procs[0].ends[i]);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

/* ---- a peer that is gone ------------------------------------------------- */

START_TEST(starved__peer_dies__is_learnt)
{
	struct end *a;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	open_end(0, 1);
	if (_i % 2) { /* it has answered once, or never */
		send_message(a, 10);
		settle(a, &procs[1].main_end);
	}
	for (int i = 0; i < 100; i++)
		send_message(a, 100);
	for (int i = 0; i < 500; i++) {
		fake_deliver(8);
		glexch_progress(procs[0].ch);
	}
	ck_assert_int_eq(a->failed, 0);
	ck_assert_int_lt(a->done, a->queued);
	fake_kill(procs[1].card.addr);
	glexch_close(procs[1].ch);
	procs[1].ch = NULL;
	steps(12000);
	ck_assert_int_eq(a->failed, 1);
	ck_assert_int_eq(a->done, a->queued);
	stop();
}
END_TEST

START_TEST(waiting__peer_dies__is_learnt)
{
	struct end *a;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, &procs[1].main_end);
	steps(1200000); /* until it is asked for, more than once */
	ck_assert_int_eq(a->failed, 0);
	fake_kill(procs[1].card.addr);
	glexch_close(procs[1].ch);
	procs[1].ch = NULL;
	steps(1200000);
	ck_assert_int_eq(a->failed, 1);
	stop();
}
END_TEST

START_TEST(network__is_lost__all_peers_fail_and_progress_says_so)
{
	struct end *a;

	start(1, 16, 8);
	a = &procs[0].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, &procs[1].main_end);
	ck_assert_int_ge(glexch_progress(procs[0].ch), 0);
	fake.broken = 1;
	ck_assert_int_eq(glexch_progress(procs[0].ch), -1);
	ck_assert_int_eq(glexch_progress(procs[0].ch), -1);
	ck_assert_int_eq(a->failed, 1);
	stop();
}
END_TEST

START_TEST(starved__peer_only_busy__goes_on)
{
	struct end *a;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	open_end(0, 1);
	for (int i = 0; i < 100; i++)
		send_message(a, 100);
	for (int i = 0; i < 12000; i++) {
		fake_deliver(8);
		glexch_progress(procs[0].ch);
	}
	ck_assert_int_eq(a->failed, 0);
	settle(a, &procs[1].main_end);
	stop();
}
END_TEST

/* ---- packets that come late ---------------------------------------------- */

START_TEST(destroyed__peer_still_sends__opens_nothing)
{
	struct end *a;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	open_end(0, 1);
	send_message(a, 3000);
	settle(a, &procs[1].main_end);
	glexch_conn_destroy(procs[1].main_end.conn);
	for (int i = 0; i < 20; i++)
		send_message(a, 100);
	steps(3000);
	ck_assert_uint_eq(stats(1)->peers, 1);
	ck_assert(glexch_quiet(procs[1].ch));
	stop();
}
END_TEST

START_TEST(destroyed__answers_still_come__open_nothing)
{
	struct end *b;

	start((unsigned)_i, 16, 8);
	b = &procs[1].main_end;
	open_end(0, 1);
	send_message(&procs[0].main_end, 10);
	settle(&procs[0].main_end, b);
	glexch_conn_destroy(procs[0].main_end.conn);
	for (int i = 0; i < 20; i++)
		send_message(b, 100);
	steps(3000);
	ck_assert_uint_eq(stats(0)->peers, 1);
	stop();
}
END_TEST

/* Who has what he waited for may be gone: only one that cannot send his last packet is sent credits. */
START_TEST(parted__credits_are_owed__are_returned_when_the_peer_has_none)
{
	struct end *a, *b;
	unsigned before;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, b);
	send_message(b, 10); /* takes along what is owed */
	settle(b, a);
	glexch_conn_part(b->conn, 1);
	before = fake.mps;
	for (int i = 0; i < 7; i++)
		send_message(a, 100);
	settle(a, b);
	steps(1000);
	ck_assert_uint_eq(fake.mps, before + 7);
	for (int i = 0; i < 100; i++)
		send_message(a, 100);
	settle(a, b);
	ck_assert_uint_ge(fake.mps, before + 7 + 100 + 12);
	stop();
}
END_TEST

/* Both forget it with packets under way; what is opened next between the same two gets none of them. */
START_TEST(reopened__packets_of_the_last_time_under_way__are_dropped)
{
	struct end *a, *b;

	start((unsigned)_i, 16, 8);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, b);
	for (int visit = 0; visit < 20; visit++) {
		while (step())
			; /* of the time before the last nothing is under way: what parts is fenced (glexch_conn_part) */
		for (int i = 0; i < 5; i++) {
			send_message(a, 100);
			send_message(b, 100);
		}
		steps((int)fake_random(3));
		glexch_conn_destroy(a->conn);
		glexch_conn_destroy(b->conn);
		memset(a, 0, sizeof(*a));
		memset(b, 0, sizeof(*b));
		tag_ends(0, 1);
		if (visit % 2)
			open_end(1, 0);
		open_end(0, 1);
		for (int i = 0; i < 5; i++)
			send_message(a, 1 + fake_random(300));
		settle(a, b);
		ck_assert_ptr_nonnull(b->conn);
		send_message(b, 1000);
		settle(b, a);
	}
	ck_assert_int_eq(a->failed + b->failed, 0);
	stop();
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

static void *any_hello(struct glexch_conn *conn, const void *blob, size_t len)
{
	(void)blob;
	(void)len;
	return conn;
}

static size_t no_identity(struct glexch_conn *conn, void *blob)
{
	(void)conn;
	(void)blob;
	return 0;
}

static void no_data(struct glexch_conn *conn, void *buf, size_t len)
{
	(void)conn;
	(void)buf;
	(void)len;
}

/* As many as the largest machines have nodes: each has been heard of once. */
START_TEST(memory__16384_idle_peers__is_bounded)
{
	static const struct glexch_ops ops = {.hello = any_hello, .identify = no_identity, .data = no_data};
	struct glexch_params params = {.ops = &ops,
				       .key = 1,
				       .peers = IDLE_PEERS,
				       .credits = 64,
				       .blocks = 8,
				       .block_size = 4096,
				       .sharers = 1,
				       .header = 80};
	glex_ep_addr_t from = {.v = 0};
	struct glexch *ch, *other;
	struct glexch_peer card;
	char text[GLEXCH_CARD_MAX];
	uint8_t hello[112];
	size_t before, used;

	fake_reset(1);
	ck_assert_int_eq(glexch_open(&params, &ch), GLEX_SUCCESS);
	ck_assert_int_eq(glexch_open(&params, &other), GLEX_SUCCESS);
	glexch_card_format(ch, text);
	ck_assert_int_eq(glexch_card_parse(text, &card), GLEX_SUCCESS);
	glexch_conn_announce(glexch_conn_open(other, &card, GLEXCH_CHAN_MAIN, 1, &card));
	glexch_progress(other);
	memcpy(hello, fake_last_mp(), sizeof(hello));
	fake_deliver(1);
	glexch_progress(ch);
	before = mallinfo2().uordblks;
	for (uint32_t i = 0; i < IDLE_PEERS; i++) {
		from.s.nic_id = 1000 + i;
		fake_inject(from, card.addr, hello, 8 + 20);
		glexch_progress(ch);
	}
	used = mallinfo2().uordblks - before;
	ck_assert_uint_eq(glexch_stats(ch)->peers, IDLE_PEERS + 1);
	if (before) /* a sanitizer's allocator does not tell */
		ck_assert_uint_le(used, (size_t)IDLE_PEERS * IDLE_BYTES);
	ck_assert_uint_eq(fake.lost, 0);
	glexch_close(ch);
	glexch_close(other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("channel_credit");
	TCase *tc = tcase_create("credits");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, grant__flooded__grows_to_the_limit, 1, 10);
	tcase_add_loop_test(tc, grant__both_directions_flooded__grows_to_the_limit, 1, 10);
	tcase_add_loop_test(tc, pool__empty__cold_peers_give_to_hot_ones, 1, 3);
	tcase_add_loop_test(tc, flood__many_into_one_that_sleeps__queue_never_overflows, 1, 5);
	tcase_add_loop_test(tc, strangers__more_than_planned__each_has_its_slots_or_fails, 1, 5);
	tcase_add_loop_test(tc, starved__peer_dies__is_learnt, 1, 10);
	tcase_add_loop_test(tc, starved__peer_only_busy__goes_on, 1, 3);
	tcase_add_loop_test(tc, waiting__peer_dies__is_learnt, 1, 4);
	tcase_add_test(tc, network__is_lost__all_peers_fail_and_progress_says_so);
	tcase_add_loop_test(tc, destroyed__peer_still_sends__opens_nothing, 1, 10);
	tcase_add_loop_test(tc, destroyed__answers_still_come__open_nothing, 1, 10);
	tcase_add_loop_test(tc, parted__credits_are_owed__are_returned_when_the_peer_has_none, 1, 10);
	tcase_add_loop_test(tc, reopened__packets_of_the_last_time_under_way__are_dropped, 1, 100);
	tcase_add_test(tc, memory__16384_idle_peers__is_bounded);
	suite_add_tcase(suite, tc);
	return suite_run_short(suite);
}
