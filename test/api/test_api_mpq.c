/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_mpq.c - the mini-packet queue: R, P and W.
 *
 * Most of it one process does alone, by MPs to itself.  R is the index that
 * receive and probe_first look at, P what probe_next looks at, W the end.
 */
#include <stdlib.h>
#include <string.h>

#include "test/lib/side.h"

static struct side side;

/* An endpoint with n numbered MPs of 4 bytes in its queue. */
static void open_with(uint32_t n, enum glex_ep_type type)
{
	uint32_t i;

	side_open(&side, type, 0, false);
	for (i = 0; i < n; i++)
		send_mp(&side, side.card.addr, &i, sizeof(i));
}

static uint32_t number_at(const void *data, uint32_t len)
{
	uint32_t n;

	ck_assert_uint_eq(len, sizeof(n));
	memcpy(&n, data, sizeof(n));
	return n;
}

static void *first(uint32_t want)
{
	uint32_t len = 0xdeadbeef;
	void *data = NULL;

	OK(glex_probe_first_mp(side.ep, 0, NULL, &data, &len));
	ck_assert_uint_eq(number_at(data, len), want);
	return data;
}

static void *next(uint32_t want)
{
	uint32_t len = 0xdeadbeef;
	void *data = NULL;

	OK(glex_probe_next_mp(side.ep, NULL, &data, &len));
	ck_assert_uint_eq(number_at(data, len), want);
	return data;
}

static void receive(uint32_t want)
{
	uint32_t len = 0xdeadbeef;
	unsigned char data[112];

	OK(glex_receive_mp(side.ep, 0, NULL, data, &len));
	ck_assert_uint_eq(number_at(data, len), want);
}

static void none_next(void)
{
	void *data = &side;
	uint32_t len = 5;

	RETURNS(glex_probe_next_mp(side.ep, NULL, &data, &len), GLEX_NO_MP);
	ck_assert_ptr_eq(data, &side);
	ck_assert_uint_eq(len, 5);
}

static void none_first(void)
{
	void *data = &side;
	uint32_t len = 5;

	RETURNS(glex_probe_first_mp(side.ep, 0, NULL, &data, &len), GLEX_NO_MP);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, &len, &len), GLEX_NO_MP);
	ck_assert_ptr_eq(data, &side);
	ck_assert_uint_eq(len, 5);
}

START_TEST(probe_first_mp__repeated__same_mp_and_probing_begins_anew)
{
	open_with(3, (enum glex_ep_type)_i);
	first(0);
	next(1);
	next(2);
	none_next();
	first(0);
	next(1);
	OK(glex_discard_probed_mp(side.ep));
	first(2);
	OK(glex_discard_probed_mp(side.ep));
	none_first();
	side_close(&side);
}
END_TEST

START_TEST(probe_next_mp__without_probe_first__begins_at_the_oldest)
{
	open_with(2, GLEX_EP_TYPE_FAST);
	next(0);
	next(1);
	none_next();
	OK(glex_discard_probed_mp(side.ep));
	none_next();
	send_mp(&side, side.card.addr, &(uint32_t){9}, 4);
	next(9);
	side_close(&side);
}
END_TEST

START_TEST(discard_probed_mp__nothing_probed__success_and_nothing_lost)
{
	open_with(0, GLEX_EP_TYPE_FAST);
	OK(glex_discard_probed_mp(side.ep));
	send_mp(&side, side.card.addr, &(uint32_t){1}, 4);
	OK(glex_discard_probed_mp(side.ep));
	first(1);
	RETURNS(glex_discard_probed_mp(NULL), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

START_TEST(receive_mp__while_probing__takes_the_oldest_and_p_keeps_its_place)
{
	open_with(5, GLEX_EP_TYPE_FAST);
	first(0);
	next(1);
	next(2); /* P is 3 */
	receive(0);
	receive(1);
	next(3);
	OK(glex_discard_probed_mp(side.ep)); /* R is 4 */
	receive(4);
	none_first();
	none_next();
	side_close(&side);
}
END_TEST

START_TEST(receive_mp__overtakes_p__p_moves_along)
{
	open_with(4, GLEX_EP_TYPE_FAST);
	receive(0);
	receive(1);
	next(2); /* P was never moved by a probe */
	receive(2);
	next(3);
	receive(3);
	OK(glex_discard_probed_mp(side.ep));
	none_first();
	side_close(&side);
}
END_TEST

START_TEST(receive_mp__len_uninitialised__only_sent_bytes_copied)
{
	unsigned char ten[10], wide[112], guard[112];
	uint32_t len = 0xa5a5a5a5;

	memset(guard, 0xcc, sizeof(guard));
	memset(ten, 0xcc, sizeof(ten));
	memset(wide, 0xcc, sizeof(wide));
	open_with(0, (enum glex_ep_type)_i);
	send_mp(&side, side.card.addr, "tutorial", 9);
	OK(glex_receive_mp(side.ep, WAIT_MS, NULL, ten, &len));
	ck_assert_uint_eq(len, 9);
	ck_assert_str_eq((char *)ten, "tutorial");
	ck_assert_uint_eq(ten[9], 0xcc);
	send_mp(&side, side.card.addr, NULL, 0);
	len = 0xffffffff;
	OK(glex_receive_mp(side.ep, WAIT_MS, NULL, wide, &len));
	ck_assert_uint_eq(len, 0);
	ck_assert_mem_eq(wide, guard, sizeof(wide));
	side_close(&side);
}
END_TEST

START_TEST(receive_mp__null_arguments__source_may_be_others_not)
{
	unsigned char data[112];
	uint32_t len;
	void *at;

	open_with(1, GLEX_EP_TYPE_FAST);
	RETURNS(glex_receive_mp(NULL, 0, NULL, data, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, NULL, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, data, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_first_mp(NULL, 0, NULL, &at, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_first_mp(side.ep, 0, NULL, NULL, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_first_mp(side.ep, 0, NULL, &at, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_next_mp(NULL, NULL, &at, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_next_mp(side.ep, NULL, NULL, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_next_mp(side.ep, NULL, &at, NULL), GLEX_INVALID_PARAM);
	receive(0);
	side_close(&side);
}
END_TEST

START_TEST(mp__source__is_the_senders_address)
{
	unsigned char data[112];
	glex_ep_addr_t src;
	uint32_t len;
	void *at;

	open_with(3, (enum glex_ep_type)_i);
	OK(glex_probe_first_mp(side.ep, 0, &src, &at, &len));
	ck_assert_uint_eq(src.v, side.card.addr.v);
	src.v = 0;
	OK(glex_probe_next_mp(side.ep, &src, &at, &len));
	ck_assert_uint_eq(src.v, side.card.addr.v);
	src.v = 0;
	OK(glex_receive_mp(side.ep, 0, &src, data, &len));
	ck_assert_uint_eq(src.v, side.card.addr.v);
	side_close(&side);
}
END_TEST

#define HELD 128

START_TEST(probed_mp__until_discarded__stays_in_place_writable_and_aligned)
{
	static void *at[HELD];
	uint32_t i, n;

	open_with(HELD, (enum glex_ep_type)_i);
	for (i = 0; i < HELD; i++) {
		at[i] = next(i);
		ck_assert_uint_eq((uintptr_t)at[i] % 8, 0);
		memset(at[i], (int)i, 112); /* a pointer, a number of one's own: whatever */
	}
	/* later arrivals fill the rest of the queue */
	for (n = 0; n < 1000; n++)
		send_mp(&side, side.card.addr, &n, sizeof(n));
	for (i = 0; i < HELD; i++) {
		unsigned char want[112];

		memset(want, (int)i, sizeof(want));
		ck_assert_mem_eq(at[i], want, sizeof(want));
	}
	OK(glex_discard_probed_mp(side.ep));
	for (n = 0; n < 1000; n++)
		receive(n);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

START_TEST(discard_probed_mp__every_128__queue_of_256_never_overflows)
{
	struct glex_ep_attr attr = {.type = (enum glex_ep_type)_i, .num = GLEX_ANY_EP_NUM, .mpq_capacity = 256};
	uint32_t i;

	side_open_as(&side, &attr, 0, false);
	for (i = 0; i < 5000; i++) {
		send_mp(&side, side.card.addr, &i, sizeof(i));
		next(i);
		if (i % 128 == 127)
			OK(glex_discard_probed_mp(side.ep));
	}
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- a full queue --------------------------------------------------------------------- */

static void flood(int fd, void *arg)
{
	struct side me;
	struct card card;
	uint32_t i;

	side_open(&me, (enum glex_ep_type)(*(int *)arg), 0, false);
	card = swap_cards(&me, fd);
	for (i = 0; i < 70; i++)
		send_mp(&me, card.addr, &i, sizeof(i));
	for (i = 0; i < 6; i++) {
		struct glex_err_req err = take_error(me.ep);

		ck_assert_int_eq(err.op, GLEX_ERR_OP_IMM_MP);
		ck_assert_int_eq(err.status, GLEX_ERR_STATUS_DEST_MPQ_FULL);
		ck_assert_uint_eq(err.rmt_nic_id, card.addr.nic_id);
		ck_assert_uint_eq(err.rmt_ep_num, card.addr.ep_num);
		ck_assert_uint_eq(err.data0, 4);
	}
	expect_no_error(me.ep);
	meet(fd);
	meet(fd); /* there is room again */
	i = 71;
	send_mp(&me, card.addr, &i, sizeof(i));
	expect_no_error(me.ep);
	meet(fd);
	side_close(&me);
}

START_TEST(mpq__full__mp_lost_and_sender_told)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .mpq_capacity = 64};
	struct peer peer = peer_start(flood, &_i);
	uint32_t i;

	side_open_as(&side, &attr, 0, false);
	swap_cards(&side, peer.fd);
	meet(peer.fd);
	for (i = 0; i < 64; i++)
		receive(i);
	none_first();
	meet(peer.fd);
	meet(peer.fd);
	receive(71);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

START_TEST(mpq__default_capacity__1000_undrained_mps_fit)
{
	uint32_t i;

	open_with(1000, (enum glex_ep_type)_i);
	expect_no_error(side.ep);
	for (i = 0; i < 1000; i++)
		receive(i);
	side_close(&side);
}
END_TEST

/* ---- from another process, every length -------------------------------------------------- */

static void every_length(int fd, void *arg)
{
	unsigned char data[112];
	struct side me;
	struct card card;
	uint32_t len;

	side_open(&me, (enum glex_ep_type)(*(int *)arg), 0, false);
	card = swap_cards(&me, fd);
	for (len = 0; len <= 112; len++) {
		fill(data, len, len);
		send_mp(&me, card.addr, len ? data : NULL, len);
	}
	meet(fd);
	expect_no_error(me.ep);
	side_close(&me);
}

START_TEST(mp__every_length__arrives_as_sent)
{
	struct peer peer = peer_start(every_length, &_i);
	unsigned char data[112];
	glex_ep_addr_t src;
	struct card card;
	uint32_t len, got;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	card = swap_cards(&side, peer.fd);
	for (len = 0; len <= 112; len++) {
		OK(glex_receive_mp(side.ep, WAIT_MS, &src, data, &got));
		ck_assert_uint_eq(got, len);
		ck_assert_uint_eq(src.v, card.addr.v);
		expect_filled(data, len, len);
	}
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mpq");
	TCase *tc = tcase_create("mpq");

	own_job("mpq");
	tcase_add_loop_test(tc, probe_first_mp__repeated__same_mp_and_probing_begins_anew, 0, 3);
	tcase_add_test(tc, probe_next_mp__without_probe_first__begins_at_the_oldest);
	tcase_add_test(tc, discard_probed_mp__nothing_probed__success_and_nothing_lost);
	tcase_add_test(tc, receive_mp__while_probing__takes_the_oldest_and_p_keeps_its_place);
	tcase_add_test(tc, receive_mp__overtakes_p__p_moves_along);
	tcase_add_loop_test(tc, receive_mp__len_uninitialised__only_sent_bytes_copied, 0, 3);
	tcase_add_test(tc, receive_mp__null_arguments__source_may_be_others_not);
	tcase_add_loop_test(tc, mp__source__is_the_senders_address, 0, 3);
	tcase_add_loop_test(tc, probed_mp__until_discarded__stays_in_place_writable_and_aligned, 0, 3);
	tcase_add_loop_test(tc, discard_probed_mp__every_128__queue_of_256_never_overflows, 0, 3);
	tcase_add_loop_test(tc, mpq__full__mp_lost_and_sender_told, 0, 3);
	tcase_add_loop_test(tc, mpq__default_capacity__1000_undrained_mps_fit, 0, 3);
	tcase_add_loop_test(tc, mp__every_length__arrives_as_sent, 0, 3);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
