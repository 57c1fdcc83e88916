/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_lines.c - the room in rings: what happens when they are full, how lines come back, and where
 * records lie in a dialogue.
 */
#include "channel_kit.h"
#include "netmod-glex/channel/chan_priv.h"

static const struct glexch_er *ring_of(const struct end *end)
{
	return end->conn->er;
}

/* Lines that are in its ring, or have been read, but it does not know. */
static uint32_t unread(const struct end *end)
{
	return ring_of(end)->tx_sent - ring_of(end)->tx_read;
}

START_TEST(ring__full__waits_for_lines)
{
	struct end *a, *b;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_ring();
	for (int i = 0; i < 400; i++)
		send_message(a, 40);
	for (int i = 0; i < 1000; i++) { /* only the sender is awake */
		fake_deliver(8);
		glexch_progress(procs[0].ch);
	}
	ck_assert_int_lt(a->done, 100);
	ck_assert_int_gt(a->done, 20);
	settle(a, b);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

/* How much of so many messages goes without the receiver: by the ring, and in blocks. */
static uint64_t send_alone(int count, size_t n, uint64_t *blocks)
{
	uint64_t ring = by_ring(0), block = stats(0)->bytes[GLEXCH_WAY_SR_BLOCK];

	for (int i = 0; i < count; i++)
		send_message(&procs[0].main_end, n);
	*blocks = stats(0)->bytes[GLEXCH_WAY_SR_BLOCK] - block;
	return by_ring(0) - ring;
}

static void start_roomy(unsigned seed)
{
	start_er(seed, GLEXCH_MODE_ER, 4, 8 * RING);
	open_ring();
	for (int i = 0; i < 20; i++) { /* which brings the grant of credits to its height */
		send_message(&procs[0].main_end, 9000);
		send_message(&procs[0].main_end, 40);
	}
	settle(&procs[0].main_end, &procs[1].main_end);
	steps(200);
}

/* A block costs both sides more than to wait for lines. */
START_TEST(ring__full_of_short_messages__no_blocks)
{
	uint64_t blocks;

	start_roomy((unsigned)_i);
	ck_assert_uint_gt(send_alone(100, 1000, &blocks), fake.injects ? 5 * RING : 2 * RING);
	ck_assert_uint_eq(blocks, 0);
	settle(&procs[0].main_end, &procs[1].main_end);
	stop();
}
END_TEST

/* Longer ones leave half of it to those. */
START_TEST(ring__half_full_of_longer_messages__blocks)
{
	uint64_t blocks;

	start_roomy((unsigned)_i);
	ck_assert_uint_le(send_alone(5, 5000, &blocks), 4 * RING + 4160); /* a record begins in the first half */
	ck_assert_uint_gt(blocks, 0);
	settle(&procs[0].main_end, &procs[1].main_end);
	stop();
}
END_TEST

/* So that a peer costs the same memory. */
START_TEST(ring__copy_needed__is_half_as_long)
{
	uint64_t blocks, most;

	start_roomy((unsigned)_i);
	most = send_alone(1000, 10, &blocks) / 10; /* a line each */
	ck_assert_uint_gt(most, fake.injects ? 400 : 150);
	ck_assert_uint_le(most, fake.injects ? 446 : 192);
	settle(&procs[0].main_end, &procs[1].main_end);
	stop();
}
END_TEST

/* Lines that have been read are found in the middle of sending. */
START_TEST(lines__returned_meanwhile__sender_needs_no_round)
{
	struct end *a, *b;

	start_roomy((unsigned)_i);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	for (int i = 0; i < 500; i++) { /* many times the ring */
		int done = a->done;

		send_message(a, 1 + fake_random(900));
		ck_assert_int_eq(a->done, done + 1);
		for (int k = 0; k < 20; k++) { /* only the receiver is awake */
			fake_deliver(64);
			glexch_progress(procs[1].ch);
		}
	}
	settle(a, b);
	stop();
}
END_TEST

START_TEST(lines__more_returned_than_were_written__connection_fails)
{
	struct end *a;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	open_ring();
	fake.words_lie = 1;
	for (int i = 0; i < 400; i++)
		send_message(a, 40);
	for (int n = 0; n < 3000 && !a->failed; n++)
		step();
	ck_assert_int_eq(a->failed, 1);
	stop();
}
END_TEST

/* Who has what he waited for may be gone. */
START_TEST(lines__parted__are_returned_until_the_last_packet)
{
	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	open_ring();
	glexch_conn_part(procs[1].main_end.conn, 0);
	for (int i = 0; i < 200; i++)
		send_message(&procs[0].main_end, 40);
	settle(&procs[0].main_end, &procs[1].main_end);
	glexch_conn_part(procs[1].main_end.conn, 1);
	for (int i = 0; i < 200; i++)
		send_message(&procs[0].main_end, 40);
	steps(3000);
	ck_assert_int_lt(procs[0].main_end.done, 200 + 64);
	stop();
}
END_TEST

/* Lines are returned without MPs; so of these there is one for credits, whatever is under way. */
START_TEST(lines__sender_asleep__credit_mps_are_bounded)
{
	struct end *a, *b;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_ring();
	steps(100);
	for (int round = 0; round < 50; round++) {
		unsigned before = fake.credit_mps;

		for (int i = 0; i < 100; i++)
			send_message(a, 40);
		for (int i = 0; i < 200; i++) { /* only the receiver is awake */
			fake_deliver(8);
			glexch_progress(procs[1].ch);
		}
		ck_assert_uint_le(fake.credit_mps - before, 1);
		settle(a, b);
		steps(100);
	}
	stop();
}
END_TEST

/* ---- what looks like a record ------------------------------------------------ */

static void take_anything(struct glexch_conn *conn, void *buf, size_t len)
{
	(void)buf;
	((struct end *)glexch_conn_user(conn))->received += len;
}

/* Bytes that are nothing but this word. */
static void send_words(struct end *from, const struct end *to, uint64_t word, size_t len)
{
	uint64_t words[RING / 8];
	struct iovec iov = {words, len};
	struct glexch_cursor cur;

	for (size_t i = 0; i < len / 8; i++)
		words[i] = word;
	from->sent += len;
	glexch_cursor_init(&cur, &iov, 1);
	while (cur.left) {
		glexch_try(from->conn, &cur);
		step();
	}
	settle(from, to);
}

/* What has been read looks like the header of what is expected: a number, and the length that its successor makes. */
START_TEST(ring__short_and_full_of_integers__nothing_behind_it_is_read)
{
	struct glexch_ops ops = kit_ops;
	struct end *a, *b;

	ops.data = take_anything;
	ops.packet = NULL;
	ops.place = NULL;
	kit_params.ops = &ops;
	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_ring();
	for (int n = 0; n < 60; n++) {
		uint32_t seq =
			(b->conn->rx_seq + 24u) & ~1u; /* when all lines are filled, and some records have followed */

		for (size_t left = 2 * RING; left; left -= RING / 4)
			send_words(a, b, seq | (uint64_t)(seq + 1) << 32, RING / 4);
		ck_assert_uint_lt(b->conn->rx_seq, seq);
		while (b->conn->rx_seq <= seq)
			send_words(a, b, 0, 8);
	}
	ck_assert_uint_gt(b->conn->rx_seq, 1080);
	ck_assert_int_eq(a->failed + b->failed, 0);
	stop();
}
END_TEST

/* ---- numbers of the stream -------------------------------------------------- */

/* The longest ring and the largest grant, for messages that can go by blocks whole. */
static void start_longest(void)
{
	struct end *a, *b;

	kit_params.mode = GLEXCH_MODE_ER;
	kit_params.er_max = 4;
	kit_params.er_bytes = 262144;
	kit_params.block_size = 8192;
	start(1, 255, 1024);
	fake.direct = 1;
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_ring();
	for (int n = 0; n < 8; n++) { /* which brings the grant of credits to its height */
		for (int i = 0; i < 2100; i++)
			send_message(a, 10);
		for (int i = 0; i < 300; i++)
			send_message(a, 5000);
		settle(a, b);
	}
	send_message(b, 10); /* takes along the credits that are owed */
	settle(b, a);
	while (b->conn->er->rx_owed) { /* and lines */
		send_message(a, 10);
		settle(a, b);
	}
	steps(8);
}

/* A packet may be ahead of the next in order by all that the ring and the credits allow. */
START_TEST(ring__longest_full_and_all_credits_used__is_in_order)
{
	struct end *a, *b;
	unsigned mps;

	start_longest();
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	for (int i = 0; i < _i; i++)
		glexch_progress(procs[1].ch);
	for (int i = 0; i < 4029; i++)
		send_message(a, 10);
	ck_assert_uint_eq(unread(a), a->conn->er->starts);
	mps = fake.mps;
	for (int i = 0; i < 250; i++)
		send_message(a, 5000);
	ck_assert_uint_gt(fake.mps - mps, 240);
	for (int i = 0; i < 2000 && !b->failed; i++)
		glexch_progress(procs[1].ch);
	ck_assert_int_eq(b->failed, 0);
	settle(a, b);
	stop();
}
END_TEST

/* ---- one that nobody uses any more ------------------------------------------ */

/* The lines that its connection waited for have come. */
START_TEST(ring__connection_destroyed_while_it_waits__others_are_heard_at_once)
{
	struct end *b, *c;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	fake.direct = 1;
	b = &procs[1].main_end;
	open_ring();
	for (int i = 0; i < 100; i++)
		send_message(b, 40);
	glexch_conn_destroy(b->conn);
	for (int i = 0; i < 100; i++) /* reads what has come, and says so */
		glexch_progress(procs[0].ch);
	kit_params.er_max = 0;
	start_proc(2, 2, 16, 8);
	c = &procs[2].main_end;
	memset(b, 0, sizeof(*b));
	tag_ends(2, 1);
	open_end(2, 1);
	send_message(c, 10);
	settle(c, b);
	for (int i = 0; i < 16; i++) {
		send_message(c, 10);
		glexch_progress(procs[1].ch);
		ck_assert_uint_eq(b->received, c->sent);
		glexch_progress(procs[2].ch);
	}
	stop();
}
END_TEST

/* ---- laps ---------------------------------------------------------------- */

/* A message that is read, and said to be. */
static void send_and_read(struct end *a, struct end *b, size_t n)
{
	send_message(a, n);
	for (int k = 0; k < 50 && b->received < a->sent; k++) {
		fake_deliver(64);
		glexch_progress(procs[1].ch);
	}
	fake_deliver(64);
	ck_assert_uint_eq(b->received, a->sent);
}

START_TEST(lap__receiver_keeps_pace__is_short)
{
	struct end *a, *b;
	uint32_t laps;

	start_roomy((unsigned)_i);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	laps = ring_of(a)->laps;
	for (int i = 0; i < 2000; i++) {
		send_and_read(a, b, 1 + fake_random(900));
		ck_assert_uint_lt(ring_of(a)->tx_line, 100);
	}
	ck_assert_uint_gt(ring_of(a)->laps, laps + 100);
	stop();
}
END_TEST

/* Wherever in a lap its receiver stops, the whole ring can be written, in parts of any length; and is read in order. */
START_TEST(lap__receiver_stops__whole_ring_is_written)
{
	unsigned skips = 0;
	struct end *a, *b;

	start_roomy((unsigned)_i);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	for (int round = 0; round < 60; round++) {
		size_t most = 1 + fake_random(600);

		for (unsigned i = fake_random(60); i; i--)
			send_and_read(a, b, 1 + fake_random((unsigned)most));
		for (unsigned i = 0; i < 450; i++)
			send_message(a, 1 + fake_random((unsigned)most));
		skips += ring_of(a)->lap.to || ring_of(a)->last.to;
		ck_assert_uint_ge(unread(a), ring_of(a)->starts - 20);
		ck_assert_uint_le(unread(a), ring_of(a)->starts + 20);
		settle(a, b);
		steps(100);
	}
	ck_assert_uint_gt(skips, 10);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

/* ---- dialogues ----------------------------------------------------------- */

/* Two ends that have rings. */
static void start_dialogue(unsigned seed, struct end **a, struct end **b)
{
	start_er(seed, GLEXCH_MODE_ER, 4, RING);
	*a = &procs[0].main_end;
	*b = &procs[1].main_end;
	open_ring();
	open_end(1, 0);
}

/* One record to the other side, which reads it. */
static void tell(struct end *from, struct end *to)
{
	send_message(from, 60);
	settle(from, to);
}

START_TEST(dialogue__records__lie_at_the_start)
{
	struct end *a, *b;

	start_dialogue((unsigned)_i, &a, &b);
	for (int i = 0; i < 300; i++) {
		tell(a, b);
		tell(b, a);
		ck_assert_uint_eq(ring_of(a)->tx_line, 0);
		tell(a, b);
		ck_assert_uint_eq(ring_of(a)->tx_line, 2);
		if (i % 50 == 0) /* a stream in between */
			for (int k = 0; k < 40; k++)
				send_message(a, 1 + fake_random(9000));
		settle(a, b);
	}
	stop();
}
END_TEST

/*
 * Who answers has not read what was sent meanwhile: never all has been read that the other sent, as far as that knows,
 * and never so much in a row that it were returned as of a stream.
 */
START_TEST(dialogue__answers_cross_what_they_answer__nobody_waits_for_lines)
{
	struct end *a, *b;

	start_roomy((unsigned)_i);
	open_end(1, 0);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	for (int round = 0; round < 3000; round++) {
		unsigned most = round % 300 < 150 ? 60 : 1900;

		send_and_read(a, b, 1 + fake_random(most));
		send_message(b, 1 + fake_random(60));
		send_and_read(a, b, 1 + fake_random(most));
		settle(b, a);
		settle(a, b);
	}
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

/* As little as it may be: who sent them may need just those. */
START_TEST(dialogue__ended__lines_are_returned)
{
	struct end *a, *b;

	start_dialogue((unsigned)_i, &a, &b);
	steps(200);
	for (int i = 0; i < 20; i++) {
		tell(a, b);
		tell(b, a);
		tell(a, b);
		ck_assert_uint_gt(ring_of(b)->rx_owed, 0);
		steps(20000);
		ck_assert_uint_eq(ring_of(b)->rx_owed, 0);
	}
	stop();
}
END_TEST

/* Delivers to process 0 alone, which then does a round. */
static void step_alone(void)
{
	fake_deliver(8);
	glexch_progress(procs[0].ch);
}

/*
 * A record that says how much has been read is delivered so late that 1,024 lines have been sent
 * since, of which the last have not been read: its ten bits are those of all that was sent.
 */
START_TEST(dialogue__late_record__is_not_taken_for_a_new_one)
{
	const struct glexch_er *er;
	struct end *a, *b;
	uint32_t said, sent;

	start_dialogue((unsigned)_i, &a, &b);
	tell(b, a);
	tell(a, b);
	tell(b, a);
	er = ring_of(a);
	said = ring_of(a)->tx_sent;
	a->conn->paused = 1;
	send_message(b, 60);
	for (sent = said; sent != said + 1024; sent = ring_of(a)->tx_sent) {
		if (sent == said + 1024 - 12)
			steps(100);
		send_message(a, sent == said + 1023 ? 30 : 60);
		if (sent < said + 1024 - 12)
			steps(20);
		else
			step_alone();
		ck_assert_uint_le(ring_of(a)->tx_sent, said + 1024);
	}
	ck_assert_uint_gt(er->tx_read, said);
	a->conn->paused = 0;
	for (int i = 0; i < 50; i++)
		step_alone();
	ck_assert_uint_eq(a->received, b->sent);
	ck_assert_uint_ne(er->tx_line, 0);
	ck_assert_uint_ge(unread(a), 12);
	for (int i = 0; i < 100; i++)
		send_message(a, 60);
	settle(a, b);
	tell(b, a);
	ck_assert_uint_eq(er->tx_line, 0);
	stop();
}
END_TEST

static void count_data(struct glexch_conn *conn, void *buf, size_t len)
{
	struct end *end = glexch_conn_user(conn);

	(void)buf;
	end->received += len;
}

/*
 * A record of two lines and two words begins at the start, where its receiver looks behind another of two
 * lines first: there its last bytes, which are those of a header, stand before its mark.
 */
START_TEST(dialogue__midst_of_a_record__is_not_taken_for_one)
{
	uint64_t words[16];
	struct glexch_ops ops = kit_ops;
	struct end *a, *b;

	ops.data = count_data;
	ops.packet = NULL;
	kit_params.ops = &ops;
	start_dialogue((unsigned)_i, &a, &b);
	for (int i = 0; fake.injects && i < 300; i++) { /* else no such record is one PUT */
		tell(a, b);
		tell(b, a);
		ck_assert_uint_eq(ring_of(a)->tx_line, 0);
		ck_assert_uint_eq(ring_of(b)->rx_line, 2);
		for (int k = 0; k < 16; k++)
			words[k] = b->conn->rx_seq;
		ck_assert_int_eq(glexch_try_short(a->conn, words, 80, 80, words + 10, 48), 1);
		a->sent += sizeof(words);
		settle(a, b);
		tell(b, a);
	}
	stop();
}
END_TEST

/* ---- main ---------------------------------------------------------------- */

int main(void)
{
	Suite *suite = suite_create("channel_lines");
	TCase *tc = tcase_create("lines");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, ring__full__waits_for_lines, 1, 5);
	tcase_add_loop_test(tc, ring__full_of_short_messages__no_blocks, 1, 5);
	tcase_add_loop_test(tc, ring__half_full_of_longer_messages__blocks, 1, 5);
	tcase_add_loop_test(tc, lap__receiver_keeps_pace__is_short, 1, 5);
	tcase_add_loop_test(tc, lap__receiver_stops__whole_ring_is_written, 1, 9);
	tcase_add_loop_test(tc, ring__copy_needed__is_half_as_long, 1, 5);
	tcase_add_loop_test(tc, lines__returned_meanwhile__sender_needs_no_round, 1, 5);
	tcase_add_loop_test(tc, lines__more_returned_than_were_written__connection_fails, 1, 5);
	tcase_add_loop_test(tc, lines__parted__are_returned_until_the_last_packet, 1, 5);
	tcase_add_loop_test(tc, lines__sender_asleep__credit_mps_are_bounded, 1, 5);
	tcase_add_loop_test(tc, ring__short_and_full_of_integers__nothing_behind_it_is_read, 1, 5);
	tcase_add_loop_test(tc, ring__longest_full_and_all_credits_used__is_in_order, 0, 8);
	tcase_add_loop_test(tc, ring__connection_destroyed_while_it_waits__others_are_heard_at_once, 0, 4);
	tcase_add_loop_test(tc, dialogue__records__lie_at_the_start, 1, 6);
	tcase_add_loop_test(tc, dialogue__answers_cross_what_they_answer__nobody_waits_for_lines, 1, 9);
	tcase_add_loop_test(tc, dialogue__ended__lines_are_returned, 1, 5);
	tcase_add_loop_test(tc, dialogue__late_record__is_not_taken_for_a_new_one, 1, 9);
	tcase_add_loop_test(tc, dialogue__midst_of_a_record__is_not_taken_for_one, 1, 4);
	suite_add_tcase(suite, tc);
	return suite_run_short(suite);
}
