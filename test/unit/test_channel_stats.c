/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_stats.c - what a channel says it did is what it did.
 */
#include "fake_glex.h"
#include "netmod-glex/channel/chan.h"
#include "test/lib/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 20000

struct side {
	struct glexch *ch;
	struct glexch_peer card;
	struct glexch_conn *conn;
	size_t received;
	int done, got;
};

static struct side sides[2];

static void on_data(struct glexch_conn *conn, void *buf, size_t len)
{
	(void)buf;
	((struct side *)glexch_conn_user(conn))->received += len;
}

static size_t on_identify(struct glexch_conn *conn, void *blob)
{
	(void)conn;
	(void)blob;
	return 0;
}

static void *on_hello(struct glexch_conn *conn, const void *blob, size_t len)
{
	(void)blob;
	(void)len;
	sides[1].conn = conn;
	return &sides[1];
}

static void on_fail(struct glexch_conn *conn, const char *why)
{
	(void)conn;
	(void)why;
}

static void on_drained(struct glexch_conn *conn)
{
	(void)conn;
}

static const struct glexch_ops ops = {
	.data = on_data,
	.identify = on_identify,
	.hello = on_hello,
	.fail = on_fail,
	.drained = on_drained,
};

static void start(unsigned seed, uint32_t credits)
{
	struct glexch_params params = {
		.ops = &ops, .key = 7, .peers = 1, .credits = credits, .blocks = 8, .block_size = 4096, .sharers = 1};
	char card[GLEXCH_CARD_MAX];

	fake_reset(seed);
	memset(sides, 0, sizeof(sides));
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(glexch_open(&params, &sides[i].ch), GLEX_SUCCESS);
		glexch_card_format(sides[i].ch, card);
		ck_assert_int_eq(glexch_card_parse(card, &sides[i].card), GLEX_SUCCESS);
	}
	sides[0].conn = glexch_conn_open(sides[0].ch, &sides[1].card, GLEXCH_CHAN_MAIN, 1, &sides[0]);
	ck_assert_ptr_nonnull(sides[0].conn);
}

static void stop(void)
{
	for (int i = 0; i < 2; i++)
		glexch_close(sides[i].ch);
}

static const struct glexch_stats *stats(int i)
{
	return glexch_stats(sides[i].ch);
}

struct message {
	struct glexch_item item; /* first */
	struct iovec iov;
};

static int on_done(struct glexch_conn *conn, struct glexch_item *item, int failed)
{
	(void)conn;
	(void)failed;
	free(((struct message *)item)->iov.iov_base);
	free(item);
	sides[0].done++;
	return 0;
}

static void send_bytes(size_t n)
{
	struct message *m = calloc(1, sizeof(*m));

	m->iov = (struct iovec){calloc(1, n), n};
	m->item.done = on_done;
	glexch_cursor_init(&m->item.cur, &m->iov, 1);
	glexch_try(sides[0].conn, &m->item.cur);
	if (m->item.cur.left)
		glexch_queue(sides[0].conn, &m->item);
	else
		on_done(sides[0].conn, &m->item, 0);
}

static void settle(size_t received)
{
	for (int n = 0; n < STEPS && sides[1].received < received; n++) {
		fake_deliver(1 + (int)fake_random(8));
		glexch_progress(sides[0].ch);
		glexch_progress(sides[1].ch);
	}
	ck_assert_uint_eq(sides[1].received, received);
}

START_TEST(size_class__around_each_limit__is_the_next)
{
	static const uint64_t limit[] = {64, 256, 1024, 4096, 16384, 65536, 1 << 20};

	ck_assert_uint_eq(glexch_size_class(0), 0);
	for (unsigned i = 0; i < GLEXCH_SIZES - 1; i++) {
		ck_assert_uint_eq(glexch_size_class(limit[i]), i);
		ck_assert_uint_eq(glexch_size_class(limit[i] + 1), i + 1);
	}
	ck_assert_uint_eq(glexch_size_class(UINT64_MAX), GLEXCH_SIZES - 1);
}
END_TEST

START_TEST(sent__short_and_long__are_counted_by_way_and_size)
{
	uint8_t header[GLEXCH_MP_BODY] = {0};
	uint64_t in_mps;

	start(1, 16);
	send_bytes(50);
	settle(50);
	ck_assert_int_eq(glexch_try_short(sides[0].conn, header, 80, 80, NULL, 0), 1);
	settle(130);
	ck_assert_uint_eq(stats(0)->sent[GLEXCH_WAY_SR_MP][0], 1);
	ck_assert_uint_eq(stats(0)->sent[GLEXCH_WAY_SR_MP][1], 1);
	ck_assert_uint_eq(stats(0)->bytes[GLEXCH_WAY_SR_MP], 130);
	send_bytes(4096 + 1024);
	settle(130 + 4096 + 1024);
	in_mps = stats(0)->bytes[GLEXCH_WAY_SR_MP] - 130;
	ck_assert_uint_ge(stats(0)->sent[GLEXCH_WAY_SR_BLOCK][3], 1);
	ck_assert_uint_eq(stats(0)->bytes[GLEXCH_WAY_SR_BLOCK] + in_mps, 4096 + 1024);
	ck_assert_uint_eq(stats(0)->peers, 1);
	ck_assert_uint_eq(stats(1)->peers, 1);
	ck_assert_uint_eq(stats(1)->bytes[GLEXCH_WAY_SR_MP], 0);
	stop();
}
END_TEST

START_TEST(credit_waits__receiver_asleep__are_counted)
{
	start(1, 4);
	fake.direct = 1;
	for (int i = 0; i < 4; i++)
		send_bytes(100); /* the first credit goes for the introduction */
	ck_assert_uint_eq(stats(0)->credit_waits, 1);
	settle(400);
	ck_assert_uint_ge(stats(1)->credit_mps, 1);
	ck_assert_uint_eq(stats(0)->room_waits, 0);
	stop();
}
END_TEST

START_TEST(reordered__network_in_order_or_not__says_so)
{
	size_t sent = 0;

	start(5, 64);
	fake.direct = _i;
	for (int i = 0; i < 40; i++, sent += 100)
		send_bytes(100);
	settle(sent);
	if (_i)
		ck_assert_uint_eq(stats(1)->reordered, 0);
	else
		ck_assert_uint_gt(stats(1)->reordered, 0);
	stop();
}
END_TEST

static void on_got(void *arg, enum glexch_got got)
{
	((struct side *)arg)->got = got == GLEXCH_GOT_ALL;
}

START_TEST(get__of_a_long_buffer__counts_once_with_its_length)
{
	static uint8_t from[100000], to[100000];
	struct glexch_region region;

	start(3, 16);
	send_bytes(8);
	settle(8);
	ck_assert_int_eq(glexch_expose(sides[0].ch, from, sizeof(from), 0, &region), GLEX_SUCCESS);
	ck_assert_ptr_nonnull(glexch_get(sides[1].conn, to, sizeof(to), &region, on_got, &sides[1]));
	for (int n = 0; n < STEPS && !sides[1].got; n++) {
		fake_deliver(4);
		glexch_progress(sides[1].ch);
	}
	ck_assert_int_eq(sides[1].got, 1);
	ck_assert_uint_eq(stats(1)->sent[GLEXCH_WAY_GET][6], 1);
	ck_assert_uint_eq(stats(1)->bytes[GLEXCH_WAY_GET], sizeof(to));
	ck_assert_uint_gt(stats(1)->cache_misses, 0);
	glexch_unexpose(sides[0].ch, sizeof(from), &region);
	stop();
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("channel statistics");
	TCase *tcase = tcase_create("counts");

	tcase_add_test(tcase, size_class__around_each_limit__is_the_next);
	tcase_add_test(tcase, sent__short_and_long__are_counted_by_way_and_size);
	tcase_add_test(tcase, credit_waits__receiver_asleep__are_counted);
	tcase_add_loop_test(tcase, reordered__network_in_order_or_not__says_so, 0, 2);
	tcase_add_test(tcase, get__of_a_long_buffer__counts_once_with_its_length);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return suite_run_short(make_suite());
}
