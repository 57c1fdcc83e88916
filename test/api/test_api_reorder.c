/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_reorder.c - GLEX_REORDER: the order is broken, everything arrives, and
 * what holds without order still holds.
 *
 * The variables are glexd's, so each test has a glexd of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/side.h"

#define LIST   48
#define ROUNDS 40
#define CELL   256
#define HOLD   "20ms" /* much longer than a list takes to be posted */

static const enum glex_ep_type types[] = {GLEX_EP_TYPE_FAST, GLEX_EP_TYPE_NORMAL, GLEX_EP_TYPE_EMULATE};

/* Of endpoints of all types, and of both queues: that of descriptors, and that of collective requests. */
#define WAYS	   6
#define TYPE_OF(i) (types[(i) % 3])
#define FLAG_OF(i) ((i) < 3 ? 0 : GLEX_FLAG_COLL)

static void shuffle(const char *name, unsigned seed, const char *hold)
{
	char text[32];

	own_job(name);
	snprintf(text, sizeof(text), "%u", seed);
	setenv("GLEX_REORDER", "16", 1);
	setenv("GLEX_REORDER_SEED", text, 1);
	setenv("GLEX_REORDER_HOLD", hold, 1);
}

/* ---- MPs ----------------------------------------------------------------- */

/* Posts a list of numbered MPs from one endpoint to another, and tells in which order they came. */
static void order_of_mps(int fd, void *arg)
{
	const unsigned *what = arg; /* seed, way */
	static struct glex_imm_mp_req req[LIST];
	static uint32_t number[LIST], order[LIST];
	struct side from, to;
	uint32_t i, len;

	shuffle("reorder-mps", what[0], HOLD);
	side_open(&to, GLEX_EP_TYPE_FAST, 0, false);
	side_open(&from, TYPE_OF(what[1]), 0, false);
	for (i = 0; i < LIST; i++) {
		number[i] = i;
		req[i].rmt_ep_addr = to.card.addr;
		req[i].data = &number[i];
		req[i].len = sizeof(number[i]);
		req[i].flag = FLAG_OF(what[1]);
		req[i].next = i + 1 < LIST ? &req[i + 1] : NULL;
	}
	OK(glex_send_imm_mp(from.ep, req, NULL));
	for (i = 0; i < LIST; i++)
		OK(glex_receive_mp(to.ep, WAIT_MS, NULL, &order[i], &len));
	RETURNS(glex_receive_mp(to.ep, 0, NULL, &len, &len), GLEX_NO_MP);
	expect_no_error(from.ep);
	say(fd, order, sizeof(order));
	side_close(&from);
	side_close(&to);
}

static void hear_order(unsigned seed, unsigned way, uint32_t order[LIST])
{
	unsigned what[2] = {seed, way};
	struct peer peer = peer_start(order_of_mps, what);

	hear(peer.fd, order, LIST * sizeof(order[0]));
	peer_join(&peer);
}

START_TEST(mps__of_one_list__all_arrive_in_an_order_that_the_seed_gives)
{
	uint32_t order[3][LIST], seen[LIST] = {0}, i, misplaced = 0;

	hear_order(11, (unsigned)_i, order[0]);
	hear_order(11, (unsigned)_i, order[1]);
	hear_order(12, (unsigned)_i, order[2]);
	for (i = 0; i < LIST; i++) {
		ck_assert_uint_lt(order[0][i], LIST);
		ck_assert_uint_eq(seen[order[0][i]]++, 0);
		misplaced += order[0][i] != i;
	}
	ck_assert_uint_gt(misplaced, LIST / 2);
	ck_assert_mem_eq(order[0], order[1], sizeof(order[0]));
	ck_assert_mem_ne(order[0], order[2], sizeof(order[0]));
}
END_TEST

static void send_numbered(struct side *from, glex_ep_addr_t to, uint32_t n, uint32_t number, int32_t flag)
{
	uint32_t i;

	for (i = 0; i < n; i++, number++) {
		struct glex_imm_mp_req req = {.rmt_ep_addr = to, .data = &number, .len = sizeof(number), .flag = flag};

		post_mp(from->ep, &req);
	}
}

/* ---- collective requests ----------------------------------------------------- */

/* A number, and behind so many of them a fence, which has the last one. */
START_TEST(coll__behind_a_fence__finds_all_that_was_before)
{
	uint32_t round, i, n, len, early = 0;
	struct side from, to;

	shuffle("reorder-coll-fence", 81, "1ms");
	side_open(&to, GLEX_EP_TYPE_FAST, 0, false);
	side_open(&from, types[_i], 0, false);
	for (round = 0; round < ROUNDS; round++) {
		send_numbered(&from, to.card.addr, LIST - 1, round * LIST, GLEX_FLAG_COLL);
		send_numbered(&from, to.card.addr, 1, round * LIST + LIST - 1, GLEX_FLAG_COLL | GLEX_FLAG_FENCE);
	}
	for (i = 0; i < ROUNDS * LIST; i++) {
		OK(glex_receive_mp(to.ep, WAIT_MS, NULL, &n, &len));
		if (n % LIST == LIST - 1)
			ck_assert_uint_ge(i, n);
		early += i < n;
	}
	ck_assert_uint_gt(early, 0); /* it holds up nothing that is behind it */
	expect_no_error(from.ep);
	side_close(&from);
	side_close(&to);
}
END_TEST

/* from sends control packets, each of which opens a gate of middle, which passes its number on. */
START_TEST(gates__of_packets_out_of_order__pass_each_on_once)
{
	uint32_t round, i, n, len, seen[LIST], misplaced = 0, zero = 0;
	struct side from, middle, to;
	struct glex_imm_mp_req gate = {.data = &zero,
				       .len = sizeof(zero),
				       .coll_counter = 1,
				       .flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_SEQ_START | GLEX_FLAG_COLL_SEQ_TAIL |
					       GLEX_FLAG_COLL_SWAP};

	shuffle("reorder-gates", 91, "200us");
	side_open(&to, GLEX_EP_TYPE_FAST, 0, false);
	side_open(&middle, types[_i], 0, false);
	side_open(&from, types[_i], 0, false);
	gate.rmt_ep_addr = to.card.addr;
	for (round = 0; round < ROUNDS; round++) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < LIST / 2; i++)
			post_mp(middle.ep, &gate);
		send_numbered(&from, middle.card.addr, LIST, 0,
			      GLEX_FLAG_COLL | GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA);
		for (i = 0; i < LIST / 2; i++)
			post_mp(middle.ep, &gate);
		for (i = 0; i < LIST; i++) {
			OK(glex_receive_mp(to.ep, WAIT_MS, NULL, &n, &len));
			ck_assert_uint_lt(n, LIST);
			ck_assert_uint_eq(seen[n]++, 0);
			misplaced += n != i;
		}
	}
	RETURNS(glex_receive_mp(to.ep, 0, NULL, &n, &len), GLEX_NO_MP);
	ck_assert_uint_gt(misplaced, ROUNDS * LIST / 2);
	side_close(&from);
	side_close(&middle);
	side_close(&to);
}
END_TEST

/* ---- nobody calls -------------------------------------------------------- */

static void post_and_rest(int fd, void *arg)
{
	struct side side;
	struct card card;
	uint32_t i;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	card = swap_cards(&side, fd);
	for (i = 0; i < 5; i++)
		send_mp(&side, card.addr, &i, sizeof(i));
	meet(fd); /* this process is in the kernel until the other one has everything */
	side_close(&side);
}

START_TEST(held__poster_makes_no_more_calls__is_delivered)
{
	uint32_t i, n, len, sum = 0;
	struct side side;
	struct peer peer;

	shuffle("reorder-rest", 5, "1ms");
	peer = peer_start(post_and_rest, NULL);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	swap_cards(&side, peer.fd);
	for (i = 0; i < 5; i++) {
		OK(glex_receive_mp(side.ep, WAIT_MS, NULL, &n, &len));
		sum += n;
	}
	ck_assert_uint_eq(sum, 0 + 1 + 2 + 3 + 4);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- PUTs, events, FENCE -------------------------------------------------- */

static struct glex_rdma_req numbered_put(const struct side *side, const struct card *card, uint32_t i)
{
	struct glex_rdma_req req = rdma_between(side, card, GLEX_RDMA_TYPE_PUT, i * CELL, CELL);

	req.flag = GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT;
	req.rmt_evt.cookie_0 = i;
	req.rmt_evt.cookie_1 = 1;
	req.local_evt.cookie_1 = 2;
	return req;
}

/* Each round: a list of PUTs, each into a cell of its own, then a fenced MP. */
static void put_rounds(int fd, void *arg)
{
	static struct glex_rdma_req req[LIST];
	struct side side;
	struct card card;
	uint32_t round, i;

	side_open(&side, type_of(*(int *)arg), LIST * CELL, is_mapped(*(int *)arg));
	card = swap_cards(&side, fd);
	for (round = 1; round <= ROUNDS; round++) {
		struct glex_imm_mp_req done = {
			.rmt_ep_addr = card.addr, .data = &round, .len = sizeof(round), .flag = GLEX_FLAG_FENCE};

		memset(side.buf, (int)round, LIST * CELL);
		for (i = 0; i < LIST; i++) {
			req[i] = numbered_put(&side, &card, i);
			req[i].next = i + 1 < LIST ? &req[i + 1] : NULL;
		}
		post_rdma(side.ep, req);
		OK(glex_send_imm_mp(side.ep, &done, NULL));
		for (i = 0; i < LIST; i++)
			ck_assert_uint_eq(take_event(side.ep).cookie_1, 2);
		meet(fd);
	}
	expect_no_error(side.ep);
	side_close(&side);
}

static bool has_round(const struct side *side, uint32_t i, uint32_t round)
{
	uint32_t j;

	for (j = 0; j < CELL; j++)
		if (side->buf[i * CELL + j] != round)
			return false;
	return true;
}

START_TEST(puts__of_a_list__events_out_of_order_data_before_each_and_fence_behind_all)
{
	uint32_t round, i, n, len, misplaced = 0, early = 0;
	struct peer peer;
	struct side side;

	shuffle("reorder-puts", 21 + (unsigned)_i, "20ms");
	peer = peer_start(put_rounds, &_i);
	side_open(&side, GLEX_EP_TYPE_FAST, LIST * CELL, is_mapped(_i));
	swap_cards(&side, peer.fd);
	for (round = 1; round <= ROUNDS; round++) {
		for (i = 0; i < LIST; i++) {
			n = (uint32_t)take_event(side.ep).cookie_0;
			ck_assert_uint_lt(n, LIST);
			ck_assert(has_round(&side, n, round));
			misplaced += n != i;
			early += n > 0 && !has_round(&side, n - 1, round);
		}
		OK(glex_receive_mp(side.ep, WAIT_MS, NULL, &n, &len));
		ck_assert_uint_eq(n, round);
		for (i = 0; i < LIST; i++)
			ck_assert(has_round(&side, i, round));
		meet(peer.fd);
	}
	ck_assert_uint_gt(misplaced, ROUNDS * LIST / 2);
	ck_assert_uint_gt(early, 0); /* an event came although earlier data was not there */
	peer_join(&peer);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* The fenced MP must not even pass the events of what was posted before. */
START_TEST(fence__after_puts_with_events__finds_them_all_in_the_queue)
{
	uint32_t round, i, len, n;
	struct side from, to;
	glex_event_t *event;

	shuffle("reorder-fence", 31, "200us");
	side_open(&to, GLEX_EP_TYPE_FAST, LIST * CELL, true);
	side_open(&from, types[_i], LIST * CELL, true);
	for (round = 0; round < ROUNDS; round++) {
		struct glex_imm_mp_req done = {
			.rmt_ep_addr = to.card.addr, .data = &round, .len = sizeof(round), .flag = GLEX_FLAG_FENCE};

		for (i = 0; i < LIST; i++) {
			struct glex_rdma_req req = numbered_put(&from, &to.card, i);

			post_rdma(from.ep, &req);
		}
		OK(glex_send_imm_mp(from.ep, &done, NULL));
		OK(glex_receive_mp(to.ep, WAIT_MS, NULL, &n, &len));
		for (i = 0; i < LIST; i++) {
			OK(glex_probe_next_event(to.ep, &event));
			OK(glex_probe_next_event(from.ep, &event));
		}
		OK(glex_discard_probed_event(to.ep));
		OK(glex_discard_probed_event(from.ep));
	}
	expect_no_error(from.ep);
	side_close(&from);
	side_close(&to);
}
END_TEST

START_TEST(immediate_puts_and_gets__mixed__all_take_effect)
{
	struct side from, to;
	uint32_t round, i;

	shuffle("reorder-mixed", 41, "100us");
	side_open(&to, GLEX_EP_TYPE_FAST, LIST * CELL, _i & 1);
	side_open(&from, types[_i / 2], LIST * CELL, _i & 1);
	fill(to.buf + LIST / 2 * CELL, LIST / 2 * CELL, 9);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < LIST / 2; i++) {
			struct glex_rdma_req get =
				rdma_between(&from, &to.card, GLEX_RDMA_TYPE_GET, (LIST / 2 + i) * CELL, CELL);
			struct glex_imm_rdma_req put = {.rmt_ep_addr = to.card.addr,
							.rmt_mh = to.card.mh,
							.rmt_key = to.card.key,
							.rmt_offset = i * CELL,
							.data = &round,
							.len = sizeof(round),
							.flag = GLEX_FLAG_REMOTE_EVT,
							.rmt_evt = {.cookie_1 = 3}};

			get.flag = GLEX_FLAG_LOCAL_EVT;
			get.local_evt.cookie_1 = 4;
			post_imm(from.ep, &put);
			post_rdma(from.ep, &get);
		}
		for (i = 0; i < LIST / 2; i++) {
			ck_assert_uint_eq(take_event(to.ep).cookie_1, 3);
			ck_assert_uint_eq(take_event(from.ep).cookie_1, 4);
		}
		for (i = 0; i < LIST / 2; i++)
			ck_assert_int_eq(memcmp(to.buf + i * CELL, &round, sizeof(round)), 0);
		expect_filled(from.buf + LIST / 2 * CELL, LIST / 2 * CELL, 9);
		memset(from.buf, 0, LIST * CELL);
	}
	expect_no_error(from.ep);
	side_close(&from);
	side_close(&to);
}
END_TEST

/* ---- ends ---------------------------------------------------------------- */

START_TEST(destroy__requests_held_back__are_delivered_first)
{
	struct side from, to;
	uint32_t i, n, len, sum = 0;

	shuffle("reorder-end", 51, HOLD);
	side_open(&to, GLEX_EP_TYPE_FAST, 0, false);
	side_open(&from, TYPE_OF(_i), 0, false);
	send_numbered(&from, to.card.addr, 10, 0, FLAG_OF(_i));
	OK(glex_destroy_ep(from.ep));
	for (i = 0; i < 10; i++) {
		OK(glex_receive_mp(to.ep, 0, NULL, &n, &len));
		sum += n;
	}
	ck_assert_uint_eq(sum, 45);
	OK(glex_close_device(from.dev));
	side_close(&to);
}
END_TEST

START_TEST(errors__of_held_requests__are_told)
{
	glex_ep_addr_t nobody;
	struct side side;
	uint32_t i;

	shuffle("reorder-errors", 61, "100us");
	side_open(&side, TYPE_OF(_i), 0, false);
	nobody = side.card.addr;
	nobody.ep_num = 30;
	send_numbered(&side, nobody, 12, 0, FLAG_OF(_i));
	for (i = 0; i < 12; i++)
		expect_error(side.ep, GLEX_ERR_OP_IMM_MP, GLEX_ERR_STATUS_DEST_VP_STOP);
	side_close(&side);
}
END_TEST

/* More endpoints than the engine has bells for. */
START_TEST(endpoints__beyond_the_bells__are_served)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_EMULATE, .num = GLEX_ANY_EP_NUM};
	static glex_ep_handle_t ep[40];
	uint32_t i, n, len, sum = 0;
	struct side to;

	shuffle("reorder-many", 71, "100us");
	side_open(&to, GLEX_EP_TYPE_FAST, 0, false);
	for (i = 0; i < 40; i++) {
		OK(glex_create_ep(to.dev, &attr, &ep[i]));
		for (n = 0; n < 4; n++) {
			struct glex_imm_mp_req req = {.rmt_ep_addr = to.card.addr, .data = &i, .len = sizeof(i)};

			OK(glex_send_imm_mp(ep[i], &req, NULL));
		}
	}
	for (i = 0; i < 40 * 4; i++) {
		OK(glex_receive_mp(to.ep, WAIT_MS, NULL, &n, &len));
		sum += n;
	}
	ck_assert_uint_eq(sum, 4 * 39 * 40 / 2);
	for (i = 0; i < 40; i++)
		OK(glex_destroy_ep(ep[i]));
	side_close(&to);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reorder");
	TCase *tc = tcase_create("reorder");

	own_job("reorder");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, mps__of_one_list__all_arrive_in_an_order_that_the_seed_gives, 0, WAYS);
	tcase_add_loop_test(tc, coll__behind_a_fence__finds_all_that_was_before, 0, 3);
	tcase_add_loop_test(tc, gates__of_packets_out_of_order__pass_each_on_once, 0, 3);
	tcase_add_test(tc, held__poster_makes_no_more_calls__is_delivered);
	tcase_add_loop_test(tc, puts__of_a_list__events_out_of_order_data_before_each_and_fence_behind_all, 0, KINDS);
	tcase_add_loop_test(tc, fence__after_puts_with_events__finds_them_all_in_the_queue, 0, 3);
	tcase_add_loop_test(tc, immediate_puts_and_gets__mixed__all_take_effect, 0, 6);
	tcase_add_loop_test(tc, destroy__requests_held_back__are_delivered_first, 0, WAYS);
	tcase_add_loop_test(tc, errors__of_held_requests__are_told, 0, WAYS);
	tcase_add_test(tc, endpoints__beyond_the_bells__are_served);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
