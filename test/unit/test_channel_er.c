/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_er.c - exclusive channels over a network that reorders everything:
 * opened, refused, full, handed back, lost, and mixed with the shared channel.
 */
#include "channel_kit.h"
#include "netmod-glex/channel/chan_priv.h"

#define MESSAGES 150

static size_t random_size(void)
{
	static const unsigned below[] = {80, 200, 1000, 9000, 40000};

	return 1 + fake_random(below[fake_random(5)]);
}

/* ---- opening ------------------------------------------------------------- */

START_TEST(open__little_sent__no_ring)
{
	start_er((unsigned)_i, GLEXCH_MODE_AUTO, 4, RING);
	open_end(0, 1);
	for (int i = 0; i < 20; i++)
		send_message(&procs[0].main_end, 100);
	settle(&procs[0].main_end, &procs[1].main_end);
	quiet(&procs[0]);
	ck_assert_uint_eq(stats(0)->er_opened + stats(1)->er_opened, 0);
	stop();
}
END_TEST

START_TEST(open__much_sent__goes_through_a_ring)
{
	struct end *a, *b;

	start_er((unsigned)_i, GLEXCH_MODE_AUTO, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	for (int i = 0; i < 300; i++)
		send_message(a, 100);
	settle(a, b);
	ck_assert_uint_eq(stats(0)->er_opened, 1);
	ck_assert_uint_eq(stats(1)->er_opened, 1);
	for (int i = 0; i < 100; i++) {
		send_message(a, random_size());
		send_message(b, random_size());
	}
	settle(a, b);
	settle(b, a);
	ck_assert_uint_gt(by_ring(0),
			  300 * 80 + 40000); /* nearly all of the first, and of what came then what found room */
	ck_assert_uint_lt(stats(0)->bytes[GLEXCH_WAY_SR_MP], 300 * 80);
	ck_assert_uint_gt(by_ring(1), 20000);
	ck_assert_int_eq(fake.injected > 50, fake.injects);
	ck_assert_uint_eq(stats(1)->bytes[GLEXCH_WAY_SR_MP], 0);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

START_TEST(open__mode_sr__never)
{
	start_er((unsigned)_i, GLEXCH_MODE_SR, 4, RING);
	open_end(0, 1);
	for (int i = 0; i < 300; i++)
		send_message(&procs[0].main_end, 100);
	settle(&procs[0].main_end, &procs[1].main_end);
	ck_assert_uint_eq(by_ring(0), 0);
	stop();
}
END_TEST

START_TEST(open__both_at_once__is_one_channel)
{
	struct end *a, *b;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	open_end(1, 0);
	for (int i = 0; i < MESSAGES; i++) {
		send_message(a, random_size());
		send_message(b, random_size());
		steps((int)fake_random(4));
	}
	settle(a, b);
	settle(b, a);
	ck_assert_uint_eq(stats(0)->er_opened, 1);
	ck_assert_uint_eq(stats(1)->er_opened, 1);
	ck_assert_uint_eq(stats(0)->er_refused + stats(1)->er_refused, 0);
	ck_assert_uint_gt(by_ring(0), 0);
	ck_assert_uint_gt(by_ring(1), 0);
	stop();
}
END_TEST

/* Only one of the two has room. */
/* What is said about a ring would follow the packet after which the peer may go. */
START_TEST(open__one_takes_leave__nothing_is_said)
{
	struct end *a, *b;
	unsigned before;

	start_er((unsigned)_i, GLEXCH_MODE_AUTO, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, b);
	send_message(b, 10);
	settle(b, a);
	glexch_conn_part(b->conn, _i % 2);
	before = fake.mps;
	for (int i = 0; i < 200; i++) {
		send_message(b, 10);
		settle(b, a);
	}
	ck_assert_uint_eq(stats(1)->er_opened, 0);
	ck_assert_uint_eq(by_ring(1), 0);
	ck_assert_uint_lt(fake.mps, before + 200 + 200 / 4); /* messages, and credits for them */
	for (int i = 0; i < 200; i++)			     /* the other one asks for a ring */
		send_message(a, 10);
	settle(a, b);
	ck_assert_uint_eq(stats(0)->er_opened, 0);
	stop();
}
END_TEST

START_TEST(open__refused__shared_channel_serves)
{
	struct end *a, *b;

	fake_reset((unsigned)_i);
	kit_params.mode = GLEXCH_MODE_ER;
	kit_params.er_bytes = RING;
	kit_params.er_max = 1;
	start_proc(0, 2, 16, 8);
	kit_params.er_max = 0;
	start_proc(1, 2, 16, 8);
	tag_ends(0, 1);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	for (int i = 0; i < MESSAGES; i++) {
		send_message(a, random_size());
		if (b->conn)
			send_message(b, random_size());
		step();
	}
	settle(a, b);
	settle(b, a);
	ck_assert_uint_eq(stats(1)->er_refused, 1);
	ck_assert_uint_eq(by_ring(0) + by_ring(1), 0);
	quiet(&procs[0]);
	quiet(&procs[1]);
	stop();
}
END_TEST

/* The rings of the two are not of one size: whoever opens, nobody gets one. */
START_TEST(open__sizes_differ__shared_channel_serves)
{
	struct end *a, *b;
	int regions;

	fake_reset((unsigned)_i);
	kit_params.mode = GLEXCH_MODE_ER;
	kit_params.er_max = 4;
	kit_params.er_bytes = RING;
	start_proc(0, 2, 16, 8);
	kit_params.er_bytes = 4 * RING; /* the half of it is not the other's either */
	start_proc(1, 2, 16, 8);
	tag_ends(0, 1);
	regions = fake.regions;
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	if (_i % 2)
		open_end(1, 0);
	for (int i = 0; i < MESSAGES; i++) {
		send_message(a, random_size());
		if (b->conn)
			send_message(b, random_size());
		step();
	}
	settle(a, b);
	settle(b, a);
	quiet(&procs[0]);
	quiet(&procs[1]);
	ck_assert_uint_eq(by_ring(0) + by_ring(1), 0);
	ck_assert_int_eq(fake.regions, regions); /* nobody keeps a ring that the other one does not know of */
	stop();
}
END_TEST

/* ---- the ring ------------------------------------------------------------ */

/* Both directions, any order, refused posts; the ring wraps a hundred times. */
static void storm(unsigned seed, uint32_t ring, int busy, enum glexch_mode mode)
{
	struct end *a, *b;

	start_er(seed, mode, 4, ring);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	fake.busy_percent = busy;
	open_end(0, 1);
	open_end(1, 0);
	for (int i = 0; i < MESSAGES; i++) {
		send_message(a, random_size());
		send_message(b, random_size());
		steps((int)fake_random(12));
	}
	settle(a, b);
	settle(b, a);
	quiet(&procs[0]);
	quiet(&procs[1]);
	ck_assert_uint_gt(by_ring(0), 20 * RING);
	ck_assert_uint_gt(by_ring(1), 20 * RING);
	ck_assert_uint_eq(fake.lost, 0);
	ck_assert_int_eq(a->failed + b->failed, 0);
	stop();
}

START_TEST(ring__any_order_of_arrival__is_restored)
{
	storm((unsigned)_i, RING, 0, GLEXCH_MODE_ER);
}
END_TEST

START_TEST(ring__posts_refused__is_complete)
{
	storm((unsigned)_i, RING, 95, GLEXCH_MODE_ER);
}
END_TEST

START_TEST(ring__usual_size__is_complete)
{
	storm((unsigned)_i, 0, 20, GLEXCH_MODE_AUTO);
}
END_TEST

START_TEST(ring__every_size__arrives)
{
	struct end *a, *b;

	start_er(3, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_ring();
	for (size_t n = 1; n < 500; n++) {
		send_message(a, n);
		if (n % 8 == 0)
			settle(a, b);
	}
	for (size_t n = 800; n < 1100; n += 7)
		send_message(a, n);
	settle(a, b);
	stop();
}
END_TEST

/* Headers that are mostly zeros, alone or with some bytes, in both channels. */
START_TEST(try_short__header_with_zeros__arrives_whole)
{
	enum glexch_mode mode = _i % 2 ? GLEXCH_MODE_ER : GLEXCH_MODE_SR;
	static const size_t rooms[] = {80, 90};
	struct end *a, *b;
	uint8_t zeros[80 + 1040];
	size_t most;

	start_er((unsigned)_i, mode, 4, 2 * RING); /* the longest is one record only in such a ring */
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	if (mode == GLEXCH_MODE_ER)
		open_ring();
	else
		open_end(0, 1);
	send_message(a, 10);
	settle(a, b);
	b->expect_zeros = 1;
	most = mode == GLEXCH_MODE_ER && fake.injects ? GLEXCH_SHORT_MAX : 80;
	for (size_t hdr = 1; hdr <= 80; hdr++) {
		for (size_t len = 0; len < 1040; len += len < 40 ? 1 : len < 170 ? 13 : 83) {
			size_t room = rooms[(hdr + len) % 9 == 0];
			int sent;

			memset(zeros, 0, sizeof(zeros));
			fill(zeros, a->tx_tag, a->sent, hdr);
			fill(zeros + 80, a->tx_tag, a->sent + room, len);
			sent = glexch_try_short(a->conn, zeros, hdr, room, zeros + 80, len);
			if (hdr + len <= most && room == 80)
				ck_assert_int_eq(sent, 1);
			if (sent) {
				b->zeros_from = a->sent + hdr;
				b->zeros_to = a->sent + room;
				a->sent += room + len;
			}
			settle(a, b);
			steps(2);
		}
	}
	stop();
}
END_TEST

/* What is longer goes from where it is; what finds no room meanwhile, as a stream. */
START_TEST(try_short__long__arrives_whole)
{
	uint8_t bytes[80 + 3000];
	struct end *a, *b;
	int at_once = 0;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, 2 * RING);
	open_ring();
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	b->expect_zeros = 1;
	fake.busy_percent = 98; /* often all tries are in vain */
	for (int n = 0; n < 400; n++) {
		size_t len = 150 + fake_random(1600), hdr = 1 + fake_random(48);
		struct iovec iov[] = {{bytes, 80}, {bytes + 80, len}};
		struct glexch_cursor cur;

		memset(bytes, 0, 80);
		fill(bytes, a->tx_tag, a->sent, hdr);
		fill(bytes + 80, a->tx_tag, a->sent + 80, len);
		b->zeros_from = a->sent + hdr;
		b->zeros_to = a->sent + 80;
		a->sent += 80 + len;
		if (glexch_try_short(a->conn, bytes, hdr, 80, bytes + 80, len)) {
			at_once++;
		} else {
			glexch_cursor_init(&cur, iov, 2);
			do {
				glexch_try(a->conn, &cur);
				step();
			} while (cur.left);
		}
		settle(a, b);
	}
	ck_assert_int_eq(at_once > 100, fake.injects);
	ck_assert_int_lt(at_once, 400);
	stop();
}
END_TEST

#define HEADER 48 /* bytes without the zeros at its end */

/* A header and len bytes; how many of all went in PUTs of their own. */
static uint64_t apart(struct end *from, struct end *to, size_t len)
{
	uint8_t bytes[80 + GLEXCH_ANSWER_MAX];
	int i = from == &procs[1].main_end;
	uint64_t before = stats(i)->bytes[GLEXCH_WAY_ER_PUT];

	to->expect_zeros = 1;
	to->zeros_from = from->sent + HEADER;
	to->zeros_to = from->sent + 80;
	fill(bytes, from->tx_tag, from->sent, HEADER);
	fill(bytes + 80, from->tx_tag, from->sent + 80, len);
	from->sent += 80 + len;
	ck_assert_int_eq(glexch_try_short(from->conn, bytes, HEADER, 80, bytes + 80, len), 1);
	settle(from, to);
	return stats(i)->bytes[GLEXCH_WAY_ER_PUT] - before;
}

START_TEST(try_short__answer__is_one_put_where_a_stream_takes_two)
{
	size_t most = GLEXCH_ANSWER_MAX - HEADER;
	struct end *a, *b;

	start_er(1, GLEXCH_MODE_ER, 4, 4 * RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_ring();
	open_end(1, 0);
	for (size_t len = GLEXCH_SHORT_MAX - HEADER + 1; len <= most; len += 3) {
		send_message(a, 100);
		settle(a, b);
		ck_assert_uint_eq(apart(b, a, len), 0);
		ck_assert_uint_gt(apart(b, a, len), len);
	}
	send_message(a, 100);
	settle(a, b);
	ck_assert_uint_gt(apart(b, a, most + 1), most);
	stop();
}
END_TEST

/* Headers of whole words, in both channels, among other messages. */
START_TEST(try_brief__any_length__arrives_whole)
{
	enum glexch_mode mode = _i % 2 ? GLEXCH_MODE_ER : GLEXCH_MODE_SR;
	uint64_t rec[GLEXCH_BRIEF_WORDS + 2];
	struct end *a, *b;

	start_er((unsigned)_i, mode, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_end(0, 1);
	ck_assert_int_eq(glexch_try_brief(a->conn, rec, 1), 0); /* not introduced yet */
	send_message(a, 10);
	settle(a, b);
	for (int n = 0; mode == GLEXCH_MODE_ER && n < 3000 && !stats(0)->er_opened; n++)
		step();
	steps(20);
	b->expect_zeros = 1;
	for (int n = 0; n < 300; n++) {
		uint32_t words = 1 + (uint32_t)n % GLEXCH_BRIEF_WORDS;

		memset(rec, 0xff, sizeof(rec));
		fill((uint8_t *)(rec + 1), a->tx_tag, a->sent, words * 8);
		ck_assert_int_eq(glexch_try_brief(a->conn, rec, words), 1);
		b->zeros_from = a->sent + words * 8;
		b->zeros_to = a->sent + 80;
		a->sent += 80;
		send_message(a, 1 + fake_random(200));
		settle(a, b);
		steps(2);
	}
	ck_assert_uint_gt(b->packets, 100);
	ck_assert_uint_eq(stats(0)->er_opened, mode == GLEXCH_MODE_ER);
	stop();
}
END_TEST

/* ---- handing back -------------------------------------------------------- */

/* Process 0 has room for one channel, the others take turns in needing it. */
static void start_star(unsigned seed, uint32_t most)
{
	fake_reset(seed);
	kit_many = 1;
	kit_params.mode = GLEXCH_MODE_AUTO;
	kit_params.er_bytes = RING;
	for (int i = 0; i < PROCS; i++) {
		kit_params.er_max = i ? 4 : most;
		start_proc(i, PROCS - 1, 16, 8);
	}
	for (int i = 1; i < PROCS; i++) {
		procs[i].main_end.tx_tag = procs[0].ends[i].rx_tag = (unsigned)(10 * i);
		procs[0].ends[i].tx_tag = procs[i].main_end.rx_tag = (unsigned)i;
		open_end(i, 0);
	}
}

START_TEST(cap__reached__unused_ones_are_handed_back)
{
	start_star((unsigned)_i, 1);
	for (int i = 1; i < 5; i++) {
		struct end *end = &procs[i].main_end;

		for (int n = 0; n < 600 && !stats(i)->er_opened; n++) {
			for (int k = 0; k < 100; k++)
				send_message(end, 90);
			settle(end, &procs[0].ends[i]);
			steps(200);
		}
		ck_assert_uint_eq(stats(i)->er_opened, 1);
		ck_assert_uint_le(fake.regions,
				  PROCS + 2 + PROCS); /* the pools, one channel, what is being asked for */
		if (i > 1)
			ck_assert_uint_eq(stats(i - 1)->er_closed, 1);
	}
	ck_assert_uint_ge(stats(0)->er_refused, 3);
	ck_assert_uint_eq(stats(0)->er_closed, 3);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

/* Messages of all others are under way while channels come and go: order holds across every change. */
START_TEST(cap__everybody_talks__order_holds_across_switches)
{
	uint64_t opened = 0;

	start_star((unsigned)_i, 2);
	for (int n = 0; n < 200; n++) {
		int hot = 1 + n / 8 % (PROCS - 1);

		for (int k = 0; k < 100; k++) {
			send_message(&procs[hot].main_end, 1 + fake_random(300));
			if (procs[0].ends[hot].conn)
				send_message(&procs[0].ends[hot], 1 + fake_random(300));
			if (k % 32 == 0) {
				size_t size = random_size(); /* first: compilers differ in the order of arguments */

				send_message(&procs[1 + fake_random(PROCS - 1)].main_end, size);
			}
		}
		steps(3000);
	}
	for (int i = 1; i < PROCS; i++) {
		settle(&procs[i].main_end, &procs[0].ends[i]);
		settle(&procs[0].ends[i], &procs[i].main_end);
		opened += stats(i)->er_opened;
		ck_assert_int_eq(procs[i].main_end.failed + procs[0].ends[i].failed, 0);
	}
	ck_assert_uint_ge(opened, 4);
	ck_assert_uint_ge(stats(0)->er_closed, 2);
	ck_assert_uint_eq(fake.lost, 0);
	stop();
}
END_TEST

#define VISIT_ROUNDS 4096 /* between two visits of the hand, where there are few connections */

/* No packet moves. */
static void rounds(int n)
{
	while (n--) {
		glexch_progress(procs[0].ch);
		glexch_progress(procs[1].ch);
	}
}

/* A ring that has nearly not been used for long enough, at both ends. */
static int open_unused_ring(unsigned seed)
{
	int regions;

	start_er(seed, GLEXCH_MODE_ER, 4, RING);
	regions = fake.regions;
	open_ring();
	send_message(&procs[1].main_end, 10);
	settle(&procs[1].main_end, &procs[0].main_end);
	steps(2 * VISIT_ROUNDS);
	while (fake_deliver(100))
		;
	procs[0].main_end.conn->er->idle = GLEXCH_ER_IDLE_LONG - 2;
	procs[1].main_end.conn->er->idle = GLEXCH_ER_IDLE_LONG - 2;
	rounds(2 * VISIT_ROUNDS);
	ck_assert_int_eq(procs[0].main_end.conn->er->state, GLEXCH_ER_UP);
	ck_assert_int_eq(procs[1].main_end.conn->er->state, GLEXCH_ER_UP);
	return regions;
}

/* It is given up by both, and there can be another. */
static void expect_closed_and_reopened(int regions)
{
	struct end *a = &procs[0].main_end, *b = &procs[1].main_end;

	for (int n = 0; n < 3000 && !(stats(0)->er_closed && stats(1)->er_closed); n++)
		step();
	ck_assert_uint_eq(stats(0)->er_closed, 1);
	ck_assert_uint_eq(stats(1)->er_closed, 1);
	ck_assert_int_eq(fake.regions, regions);
	settle(a, b);
	settle(b, a);
	for (int i = 0; i < 20; i++) {
		send_message(a, random_size());
		send_message(b, random_size());
		step();
	}
	settle(a, b);
	settle(b, a);
	ck_assert_ptr_null(a->conn->er); /* it is considered when some more has been sent */
	for (int n = 0; n < 40 && stats(0)->er_opened < 2; n++) {
		for (int k = 0; k < 500; k++)
			send_message(a, 10);
		settle(a, b);
		steps(100);
	}
	ck_assert_uint_eq(stats(0)->er_opened, 2);
	ck_assert_uint_eq(stats(1)->er_opened, 2);
	ck_assert_int_eq(a->failed + b->failed, 0);
	ck_assert_uint_eq(fake.lost, 0);
}

/* Each says CLOSE before it hears the other's; _i % 2: and goes on sending, without the ring. */
START_TEST(idle__long_at_both_ends__is_handed_back_by_both_at_once)
{
	int regions = open_unused_ring((unsigned)_i);

	rounds(2 * VISIT_ROUNDS);
	ck_assert_int_eq(procs[0].main_end.conn->er->state, GLEXCH_ER_CLOSING);
	ck_assert_int_eq(procs[1].main_end.conn->er->state, GLEXCH_ER_CLOSING);
	for (int i = 0; i < 10 * (_i % 2); i++) {
		send_message(&procs[0].main_end, random_size());
		send_message(&procs[1].main_end, random_size());
	}
	expect_closed_and_reopened(regions);
	stop();
}
END_TEST

/* The other one, which has used it, hears of it. */
START_TEST(idle__long_at_one_end__is_handed_back_by_it)
{
	int regions = open_unused_ring((unsigned)_i);

	procs[1].main_end.conn->er->idle = 0;
	rounds(2 * VISIT_ROUNDS);
	ck_assert_int_eq(procs[0].main_end.conn->er->state, GLEXCH_ER_CLOSING);
	ck_assert_int_eq(procs[1].main_end.conn->er->state, GLEXCH_ER_UP);
	for (int i = 0; i < 10 * (_i % 2); i++) {
		send_message(&procs[0].main_end, random_size());
		send_message(&procs[1].main_end, random_size());
	}
	expect_closed_and_reopened(regions);
	stop();
}
END_TEST

/* ---- ends ---------------------------------------------------------------- */

START_TEST(peer__dies_with_a_ring_open__everything_of_it_fails_once)
{
	struct end *a;
	int regions;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	open_ring();
	regions = fake.regions;
	for (int i = 0; i < 60; i++)
		send_message(a, random_size());
	steps(20);
	fake_kill(procs[1].card.addr);
	glexch_close(procs[1].ch);
	procs[1].ch = NULL;
	steps(12000);
	ck_assert_int_eq(a->failed, 1);
	ck_assert_int_eq(a->done, a->queued);
	ck_assert(glexch_quiet(procs[0].ch));
	ck_assert_int_eq(fake.regions, regions - 3); /* its pool and ring, and our ring */
	send_message(a, 10);			     /* fails at once */
	ck_assert_int_eq(a->done, a->queued);
	stop();
}
END_TEST

START_TEST(peer__dies_while_opening__ring_is_given_up)
{
	struct end *a;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	open_end(0, 1);
	send_message(a, 10);
	settle(a, &procs[1].main_end);
	for (int i = 0; i < 3; i++)
		glexch_progress(procs[0].ch);
	fake_kill(procs[1].card.addr);
	glexch_close(procs[1].ch);
	procs[1].ch = NULL;
	for (int i = 0; i < 5; i++)
		send_message(a, 30000);
	steps(12000);
	ck_assert_int_eq(a->failed, 1);
	ck_assert_int_eq(fake.regions, 1);
	stop();
}
END_TEST

/* Destroyed without a word, again and again, on both sides: the next rings get nothing of the last. */
START_TEST(reopened__ring_of_the_last_time__is_not_taken)
{
	struct end *a, *b;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 3, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	for (int visit = 0; visit < 12; visit++) {
		open_end(0, 1);
		for (int i = 0; i < 20; i++) {
			send_message(a, random_size());
			step();
		}
		settle(a, b);
		send_message(b, 2000);
		settle(b, a);
		quiet(&procs[0]);
		quiet(&procs[1]);
		glexch_conn_destroy(a->conn);
		glexch_conn_destroy(b->conn);
		memset(a, 0, sizeof(*a));
		memset(b, 0, sizeof(*b));
		tag_ends(0, 1);
		ck_assert_int_le(fake.regions, 2 + 2 * 3);
	}
	ck_assert_uint_ge(stats(0)->er_opened, 10);
	stop();
}
END_TEST

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

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	a = &procs[0].main_end;
	b = &procs[1].main_end;
	open_ring();
	b->on_data = reply_and_poll;
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
	struct end *b;

	start_er((unsigned)_i, GLEXCH_MODE_ER, 4, RING);
	b = &procs[1].main_end;
	open_ring();
	for (int i = 0; i < 100; i++) /* fills the other ring, and waits for its lines */
		send_message(b, 40);
	b->on_data = destroy_self;
	for (int i = 0; i < 5; i++)
		send_message(&procs[0].main_end, 60);
	steps(300);
	ck_assert_ptr_null(b->conn);
	ck_assert_uint_eq(b->received, 160);
	ck_assert_int_eq(b->failed, 0);
	stop();
}
END_TEST

/* ---- main ---------------------------------------------------------------- */

int main(void)
{
	Suite *suite = suite_create("channel_er");
	TCase *tc = tcase_create("rings");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, open__little_sent__no_ring, 1, 3);
	tcase_add_loop_test(tc, open__much_sent__goes_through_a_ring, 1, 10);
	tcase_add_test(tc, open__mode_sr__never);
	tcase_add_loop_test(tc, open__both_at_once__is_one_channel, 1, 40);
	tcase_add_loop_test(tc, open__one_takes_leave__nothing_is_said, 0, 6);
	tcase_add_loop_test(tc, open__refused__shared_channel_serves, 1, 10);
	tcase_add_loop_test(tc, open__sizes_differ__shared_channel_serves, 1, 200);
	tcase_add_loop_test(tc, ring__any_order_of_arrival__is_restored, 1, 40);
	tcase_add_loop_test(tc, ring__posts_refused__is_complete, 1, 10);
	tcase_add_loop_test(tc, ring__usual_size__is_complete, 1, 10);
	tcase_add_test(tc, ring__every_size__arrives);
	tcase_add_loop_test(tc, try_short__header_with_zeros__arrives_whole, 0, 4);
	tcase_add_loop_test(tc, try_short__long__arrives_whole, 1, 9);
	tcase_add_test(tc, try_short__answer__is_one_put_where_a_stream_takes_two);
	tcase_add_loop_test(tc, try_brief__any_length__arrives_whole, 0, 6);
	tcase_add_loop_test(tc, cap__reached__unused_ones_are_handed_back, 1, 5);
	tcase_add_loop_test(tc, cap__everybody_talks__order_holds_across_switches, 1, 5);
	tcase_add_loop_test(tc, idle__long_at_both_ends__is_handed_back_by_both_at_once, 1, 9);
	tcase_add_loop_test(tc, idle__long_at_one_end__is_handed_back_by_it, 1, 9);
	tcase_add_loop_test(tc, peer__dies_with_a_ring_open__everything_of_it_fails_once, 1, 20);
	tcase_add_loop_test(tc, peer__dies_while_opening__ring_is_given_up, 1, 10);
	tcase_add_loop_test(tc, reopened__ring_of_the_last_time__is_not_taken, 1, 5);
	tcase_add_loop_test(tc, data_callback__sends_and_polls__order_holds, 1, 10);
	tcase_add_loop_test(tc, data_callback__destroys_connection__rest_is_ignored, 1, 5);
	suite_add_tcase(suite, tc);
	return suite_run_short(suite);
}
