/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_event.c - events: who gets which, when, and the queue they are in.
 */
#include <stdlib.h>
#include <string.h>

#include "test/lib/side.h"

/* A PUT to oneself that raises event n here. */
static void raise_here(struct side *side, uint64_t n)
{
	struct glex_rdma_req req = rdma_between(side, &side->card, GLEX_RDMA_TYPE_PUT, 0, 8);

	req.flag = GLEX_FLAG_REMOTE_EVT;
	req.rmt_evt.cookie_0 = n;
	req.rmt_evt.cookie_1 = ~n;
	post_rdma(side->ep, &req);
}

static void expect_event(const glex_event_t *event, uint64_t n)
{
	ck_assert_uint_eq(event->cookie_0, n);
	ck_assert_uint_eq(event->cookie_1, ~n);
	ck_assert_uint_eq(event->cookie[0], n);
}

static void none(struct side *side)
{
	glex_event_t *event = (void *)side;

	RETURNS(glex_probe_first_event(side->ep, 0, &event), GLEX_NO_EVENT);
	RETURNS(glex_probe_next_event(side->ep, &event), GLEX_NO_EVENT);
	ck_assert_ptr_eq(event, (void *)side);
}

/* ---- who gets what: PUT and GET, all four combinations, two processes -------------------- */

struct row {
	enum glex_rdma_type type;
	int32_t flag;
};

static const struct row rows[] = {
	{GLEX_RDMA_TYPE_PUT, 0},
	{GLEX_RDMA_TYPE_PUT, GLEX_FLAG_LOCAL_EVT},
	{GLEX_RDMA_TYPE_PUT, GLEX_FLAG_REMOTE_EVT},
	{GLEX_RDMA_TYPE_PUT, GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT},
	{GLEX_RDMA_TYPE_GET, 0},
	{GLEX_RDMA_TYPE_GET, GLEX_FLAG_LOCAL_EVT},
	{GLEX_RDMA_TYPE_GET, GLEX_FLAG_REMOTE_EVT},
	{GLEX_RDMA_TYPE_GET, GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT},
};

#define ROWS ((int)(sizeof(rows) / sizeof(rows[0])))
#define LEN  70001u

static void event_poster(int fd, void *arg)
{
	int i, kind = *(int *)arg;
	struct side side;
	struct card card;

	side_open(&side, type_of(kind), LEN, is_mapped(kind));
	card = swap_cards(&side, fd);
	for (i = 0; i < ROWS; i++) {
		struct glex_rdma_req req = rdma_between(&side, &card, rows[i].type, 0, LEN);
		glex_event_t event;

		fill(side.buf, LEN, rows[i].type == GLEX_RDMA_TYPE_PUT ? 100 + (unsigned)i : 0);
		req.flag = rows[i].flag;
		req.local_evt.cookie_0 = UINT64_C(0x1111111111111111) * (unsigned)(i + 1);
		req.local_evt.cookie_1 = UINT64_MAX;
		req.rmt_evt.cookie_0 = UINT64_C(0x0101010101010101) * (unsigned)(i + 1);
		req.rmt_evt.cookie_1 = UINT64_C(1) << 63;
		post_rdma(side.ep, &req);
		if (rows[i].flag & GLEX_FLAG_LOCAL_EVT) {
			event = take_event(side.ep);
			ck_assert_uint_eq(event.cookie_0, UINT64_C(0x1111111111111111) * (unsigned)(i + 1));
			ck_assert_uint_eq(event.cookie_1, UINT64_MAX);
			/* the data of a GET is here; that of a PUT is there, and the source may be reused */
			if (rows[i].type == GLEX_RDMA_TYPE_GET)
				expect_filled(side.buf, LEN, 50 + (unsigned)i);
			else
				memset(side.buf, 0, LEN);
		} else {
			rdma_done(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 0); /* everything before is complete */
		}
		none(&side);
		meet(fd);
		meet(fd);
	}
	expect_no_error(side.ep);
	side_close(&side);
}

START_TEST(events__put_and_get__exactly_those_asked_for_after_the_data)
{
	struct peer peer = peer_start(event_poster, &_i);
	struct side side;
	glex_event_t event;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, LEN, is_mapped(_i));
	fill(side.buf, LEN, 50);
	swap_cards(&side, peer.fd);
	for (i = 0; i < ROWS; i++) {
		if (rows[i].flag & GLEX_FLAG_REMOTE_EVT) {
			event = take_event(side.ep);
			ck_assert_uint_eq(event.cookie_0, UINT64_C(0x0101010101010101) * (unsigned)(i + 1));
			ck_assert_uint_eq(event.cookie_1, UINT64_C(1) << 63);
			/* of a PUT: every byte is visible; of a GET: it has been read */
			if (rows[i].type == GLEX_RDMA_TYPE_PUT)
				expect_filled(side.buf, LEN, 100 + (unsigned)i);
		}
		meet(peer.fd);
		if (rows[i].type == GLEX_RDMA_TYPE_PUT)
			expect_filled(side.buf, LEN, 100 + (unsigned)i);
		none(&side);
		fill(side.buf, LEN, 50 + (unsigned)i + 1);
		meet(peer.fd);
	}
	peer_join(&peer);
	side_close(&side);
}
END_TEST

START_TEST(events__without_flags__none_and_cookies_not_looked_at)
{
	struct glex_rdma_req req;
	struct side side;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	post_rdma(side.ep, &req);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	none(&side);
	side_close(&side);
}
END_TEST

START_TEST(event__cookie_1_zero__invalid)
{
	struct glex_imm_rdma_req imm = {.data = "x", .len = 1, .flag = GLEX_FLAG_REMOTE_EVT};
	struct glex_rdma_req req, *bad = NULL;
	struct side side;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	req.local_evt.cookie_0 = req.rmt_evt.cookie_0 = 1;
	req.flag = GLEX_FLAG_LOCAL_EVT;
	RETURNS(glex_rdma(side.ep, &req, &bad), GLEX_INVALID_PARAM);
	ck_assert_ptr_eq(bad, &req);
	req.flag = GLEX_FLAG_REMOTE_EVT;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.flag = GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT;
	req.rmt_evt.cookie_1 = 1;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	imm.rmt_ep_addr = side.card.addr;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	imm.rmt_evt.cookie_0 = 1;
	RETURNS(glex_imm_rdma(side.ep, &imm, NULL), GLEX_INVALID_PARAM);
	none(&side);
	side_close(&side);
}
END_TEST

START_TEST(imm_rdma__both_event_flags__remote_event_only)
{
	struct glex_imm_rdma_req imm = {.data = "imm", .len = 4, .flag = GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT};
	struct side side;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	imm.rmt_ep_addr = side.card.addr;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	imm.rmt_evt.cookie_0 = 5;
	imm.rmt_evt.cookie_1 = ~UINT64_C(5);
	post_imm(side.ep, &imm);
	glex_event_t event = take_event(side.ep);
	expect_event(&event, 5);
	ck_assert_str_eq((char *)side.buf, "imm");
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	none(&side);
	side_close(&side);
}
END_TEST

/* ---- the queue ------------------------------------------------------------------------------ */

START_TEST(probe_first_event__300_times_without_discard__same_event_at_once)
{
	glex_event_t *event = malloc(sizeof(*event)), *before, *mine = event;
	struct side side;
	int i;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	raise_here(&side, 7);
	OK(glex_probe_first_event(side.ep, WAIT_MS, &event));
	ck_assert_ptr_ne(event, mine);
	before = event;
	for (i = 0; i < 300; i++) {
		raise_here(&side, 8 + (unsigned)i);
		OK(glex_probe_first_event(side.ep, -1, &event));
		ck_assert_ptr_eq(event, before);
		expect_event(event, 7);
	}
	expect_no_error(side.ep);
	free(mine);
	side_close(&side);
}
END_TEST

START_TEST(event_queue__probe_first_next_discard__as_mps)
{
	glex_event_t *event, *held[5];
	struct side side;
	uint64_t i;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	OK(glex_discard_probed_event(side.ep));
	for (i = 0; i < 5; i++)
		raise_here(&side, i);
	OK(glex_discard_probed_event(side.ep));
	for (i = 0; i < 5; i++) {
		OK(glex_probe_next_event(side.ep, &held[i]));
		expect_event(held[i], i);
	}
	RETURNS(glex_probe_next_event(side.ep, &event), GLEX_NO_EVENT);
	for (i = 5; i < 100; i++)
		raise_here(&side, i);
	for (i = 0; i < 5; i++)
		expect_event(held[i], i); /* until discarded they stay in place */
	OK(glex_probe_first_event(side.ep, 0, &event));
	expect_event(event, 0);
	OK(glex_probe_next_event(side.ep, &event));
	expect_event(event, 1);
	OK(glex_discard_probed_event(side.ep));
	OK(glex_probe_first_event(side.ep, 0, &event));
	expect_event(event, 2);
	RETURNS(glex_probe_first_event(side.ep, 0, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_first_event(NULL, 0, &event), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_next_event(side.ep, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_probe_next_event(NULL, &event), GLEX_INVALID_PARAM);
	RETURNS(glex_discard_probed_event(NULL), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

START_TEST(discard_probed_event__every_128__queue_of_256_never_overflows)
{
	struct glex_ep_attr attr = {.type = type_of(_i), .num = GLEX_ANY_EP_NUM, .eq_capacity = 256};
	glex_event_t *event;
	struct side side;
	uint64_t i;

	side_open_as(&side, &attr, 64, is_mapped(_i));
	for (i = 0; i < 600; i++) {
		raise_here(&side, i);
		UNTIL(glex_probe_next_event(side.ep, &event) == GLEX_SUCCESS);
		expect_event(event, i);
		if (i % 128 == 127)
			OK(glex_discard_probed_event(side.ep));
	}
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- overflow --------------------------------------------------------------------------------- */

static void overflow_poster(int fd, void *arg)
{
	int i, kind = *(int *)arg;
	struct side side;
	struct card card;

	side_open(&side, type_of(kind), 64, is_mapped(kind));
	card = swap_cards(&side, fd);
	for (i = 0; i < 20; i++) {
		struct glex_rdma_req req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 8);

		memset(side.buf, i, 8);
		req.flag = GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT;
		req.rmt_evt.cookie_0 = (unsigned)i;
		req.rmt_evt.cookie_1 = req.local_evt.cookie_1 = 1;
		post_rdma(side.ep, &req);
		take_event(side.ep); /* the poster's own is due all the same */
	}
	for (i = 0; i < 4; i++)
		expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_DEST_EQ_FULL);
	expect_no_error(side.ep);
	meet(fd);
	side_close(&side);
}

START_TEST(eq__full__event_lost_data_in_place_and_sender_told)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .eq_capacity = 16};
	struct peer peer = peer_start(overflow_poster, &_i);
	struct side side;
	unsigned i;

	side_open_as(&side, &attr, 64, is_mapped(_i));
	swap_cards(&side, peer.fd);
	meet(peer.fd);
	ck_assert_uint_eq(side.buf[7], 19);
	for (i = 0; i < 16; i++)
		ck_assert_uint_eq(take_event(side.ep).cookie_0, i);
	none(&side);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("event");
	TCase *tc = tcase_create("event");

	own_job("event");
	tcase_add_loop_test(tc, events__put_and_get__exactly_those_asked_for_after_the_data, 0, KINDS);
	tcase_add_loop_test(tc, events__without_flags__none_and_cookies_not_looked_at, 0, KINDS);
	tcase_add_loop_test(tc, event__cookie_1_zero__invalid, 0, KINDS);
	tcase_add_loop_test(tc, imm_rdma__both_event_flags__remote_event_only, 0, KINDS);
	tcase_add_loop_test(tc, probe_first_event__300_times_without_discard__same_event_at_once, 0, KINDS);
	tcase_add_test(tc, event_queue__probe_first_next_discard__as_mps);
	tcase_add_loop_test(tc, discard_probed_event__every_128__queue_of_256_never_overflows, 0, KINDS);
	tcase_add_loop_test(tc, eq__full__event_lost_data_in_place_and_sender_told, 0, KINDS);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
