/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_coll.c - collective requests between processes: what is refused, the
 * collectives that programs build of them, on every kind of endpoint; processes
 * that are stopped, or die, while others need them no more.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "test/lib/side.h"

#define P2	GLEX_FLAG_COLL
#define START	GLEX_FLAG_COLL_SEQ_START
#define TAIL	GLEX_FLAG_COLL_SEQ_TAIL
#define CONTROL GLEX_FLAG_COLL_COUNTER
#define CP_DATA GLEX_FLAG_COLL_CP_DATA
#define CP_SWAP GLEX_FLAG_COLL_CP_SWAP_DATA
#define SWAP	GLEX_FLAG_COLL_SWAP
#define SWAP_EP GLEX_FLAG_COLL_SWAP_EP
#define REDUCE	GLEX_FLAG_COLL_REDUCE

/* ---- what is refused ---------------------------------------------------------------------------- */

START_TEST(coll_flag__without_coll__invalid_and_nothing_done)
{
	int32_t flag =
		1 << (8 + _i); /* GLEX_FLAG_COLL_SEQ_START to GLEX_FLAG_COLL_REDUCE_RESULT, and one that is none */
	struct glex_imm_mp_req mp = {.data = "x", .len = 1}, *bad = NULL;
	struct glex_imm_rdma_req imm = {.data = "x", .len = 1};
	struct glex_rdma_req req;
	struct side side;

	side_open(&side, _i % 2 ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST, 64, false);
	mp.flag = imm.flag = flag;
	mp.rmt_ep_addr = imm.rmt_ep_addr = side.card.addr;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	RETURNS(glex_send_imm_mp(side.ep, &mp, &bad), GLEX_INVALID_PARAM);
	ck_assert_ptr_eq(bad, &mp);
	RETURNS(glex_imm_rdma(side.ep, &imm, NULL), GLEX_INVALID_PARAM);
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	req.flag = flag;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.type = GLEX_RDMA_TYPE_GET;
	req.flag = P2;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_GET, 0, 8);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, side.buf, &(uint32_t){0}), GLEX_NO_MP);
	ck_assert_uint_eq(side.buf[0], 0);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

static void refuse_mp(struct side *side, int32_t flag, uint32_t len, glex_ret_t want)
{
	struct glex_imm_mp_req mp = {.rmt_ep_addr = side->card.addr, .data = "01234567", .len = len, .flag = P2 | flag};

	RETURNS(glex_send_imm_mp(side->ep, &mp, NULL), want);
}

START_TEST(coll_request__that_makes_no_sense__invalid)
{
	struct glex_rdma_req req;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	refuse_mp(&side, REDUCE, 8, GLEX_INVALID_PARAM);
	refuse_mp(&side, REDUCE, 0, GLEX_INVALID_PARAM);
	refuse_mp(&side, GLEX_FLAG_COLL_SWAP_EP, 8, GLEX_INVALID_PARAM);
	refuse_mp(&side, GLEX_FLAG_COLL_REDUCE_RESULT, 8, GLEX_INVALID_PARAM);
	refuse_mp(&side, GLEX_FLAG_COLL_SWAP_SET, 8, GLEX_INVALID_PARAM);
	refuse_mp(&side, SWAP | GLEX_FLAG_COLL_SWAP_SET, 7, GLEX_INVALID_PARAM);
	refuse_mp(&side, SWAP, 113, GLEX_INVALID_PARAM);
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	req.flag = P2 | REDUCE;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.flag = P2 | SWAP | GLEX_FLAG_COLL_SWAP_SET;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_NOT_IMPLEMENTED);
	req.flag = P2;
	req.local_mh.v ^= UINT64_C(1) << 40;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, side.buf, &(uint32_t){0}), GLEX_NO_MP);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

START_TEST(coll_helpers__wrong_arguments__invalid)
{
	union glex_coll_data_loc units[7];
	glex_ep_addr_t addrs[15];
	unsigned char data[128];
	uint32_t len = 4711;
	struct side side;

	memset(units, 0, sizeof(units));
	memset(addrs, 0, sizeof(addrs));
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
#define COMPOSE(units, count, bits, op, degree, data, len)                                                             \
	RETURNS(glex_coll_compose_mp_reduce_data(units, count, (enum glex_coll_reduce_data_bits)(bits),                \
						 (enum glex_coll_reduce_op)(op), degree, data, len),                   \
		GLEX_INVALID_PARAM)
	COMPOSE(units, 7, 0, 0, 1, data, &len);
	COMPOSE(units, 1, 2, 0, 1, data, &len);
	COMPOSE(units, 1, 0, 15, 1, data, &len);
	COMPOSE(units, 1, 0, 0, 33, data, &len);
	COMPOSE(units, 1, 0, 0, 1, NULL, &len);
	COMPOSE(units, 1, 0, 0, 1, data, NULL);
	COMPOSE(NULL, 1, 0, 0, 1, data, &len);
	RETURNS(glex_coll_compose_mp_set_data(addrs, 15, data, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_coll_compose_mp_set_data(NULL, 1, data, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_coll_compose_mp_swap_addr_data(NULL, side.card.mh, 0, 0, data, &len), GLEX_INVALID_PARAM);
	RETURNS(glex_coll_compose_mp_swap_addr_data(side.ep, side.card.mh, 0, 0, NULL, &len), GLEX_INVALID_PARAM);
	ck_assert_uint_eq(len, 4711);
	memset(data, 0, sizeof(data));
	RETURNS(glex_coll_decompose_mp_reduce_data(units, 1, GLEX_COLL_REDUCE_DATA_BITS_64, data), GLEX_INVALID_PARAM);
	OK(glex_coll_compose_mp_reduce_data(units, 2, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_BOR, 1, data,
					    &len));
	RETURNS(glex_coll_decompose_mp_reduce_data(units, 3, GLEX_COLL_REDUCE_DATA_BITS_64, data), GLEX_INVALID_PARAM);
	RETURNS(glex_coll_decompose_mp_reduce_data(units, 2, GLEX_COLL_REDUCE_DATA_BITS_32, data), GLEX_INVALID_PARAM);
	OK(glex_coll_decompose_mp_reduce_data(units, 2, GLEX_COLL_REDUCE_DATA_BITS_64, data));
	side_close(&side);
}
END_TEST

START_TEST(coll_helpers__each_width__values_come_back)
{
	union glex_coll_data_loc in[6], out[6];
	unsigned char data[112];
	uint32_t len, i;

	memset(in, 0, sizeof(in));
	for (i = 0; i < 6; i++) {
		in[i].uint64_s.data = _i == GLEX_COLL_REDUCE_DATA_BITS_64 ? UINT64_C(0x123456789abcdef) * i : 0;
		if (_i == GLEX_COLL_REDUCE_DATA_BITS_32)
			in[i].float_s.data = 1.5f * (float)i;
		*(_i == GLEX_COLL_REDUCE_DATA_BITS_64 ? &in[i].uint64_s.location : &in[i].uint32_s.location) = i + 7;
	}
	OK(glex_coll_compose_mp_reduce_data(in, 6, (enum glex_coll_reduce_data_bits)_i, GLEX_COLL_REDUCE_BOR, 32, data,
					    &len));
	ck_assert_uint_eq(len, 112);
	OK(glex_coll_decompose_mp_reduce_data(out, 6, (enum glex_coll_reduce_data_bits)_i, data));
	ck_assert_int_eq(memcmp(in, out, sizeof(in)), 0);
}
END_TEST

/* ---- a full queue -------------------------------------------------------------------------------- */

START_TEST(coll_queue__full__busy_as_a_whole_and_clears_when_gates_open)
{
	struct glex_ep_attr attr = {.type = (enum glex_ep_type)_i, .num = GLEX_ANY_EP_NUM, .dq_capacity = 8};
	struct glex_imm_mp_req req[9], plain = {.data = "plain", .len = 5}, *bad;
	unsigned char data[112];
	struct side side;
	uint32_t i, len;

	side_open_as(&side, &attr, 64, false);
	for (i = 0; i < 9; i++)
		req[i] = (struct glex_imm_mp_req){.rmt_ep_addr = side.card.addr,
						  .data = "gated",
						  .len = 5,
						  .coll_counter = 1,
						  .flag = P2 | (i ? 0 : START),
						  .next = i < 8 ? &req[i + 1] : NULL};
	RETURNS(glex_send_imm_mp(side.ep, req, &bad), GLEX_INVALID_PARAM); /* longer than the queue */
	req[5].next = NULL;
	OK(glex_send_imm_mp(side.ep, req, NULL));
	req[2].next = NULL;
	RETURNS(glex_send_imm_mp(side.ep, req, &bad), GLEX_BUSY);
	ck_assert_ptr_eq(bad, req);
	plain.rmt_ep_addr = side.card.addr; /* does not wait behind the gate */
	OK(glex_send_imm_mp(side.ep, &plain, NULL));
	expect_mp(side.ep, "plain", 5);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, data, &len), GLEX_NO_MP);
	req[1].next = NULL;
	req[1].flag = req[0].flag = P2 | CONTROL;
	OK(glex_send_imm_mp(side.ep, req, NULL)); /* behind the gate, which only others open */
	RETURNS(glex_receive_mp(side.ep, 0, NULL, data, &len), GLEX_NO_MP);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- groups of processes --------------------------------------------------------------------------- */

#define MAX 8

struct group {
	struct side side; /* collectives up, or all */
	struct side down;
	struct card card[MAX], second[MAX];
	uint32_t me, n, k;
	enum glex_ep_type type;
	bool mapped;
	uint32_t what;
};

static uint32_t parent(const struct group *g)
{
	return (g->me - 1) / g->k;
}

static uint32_t first_child(const struct group *g, uint32_t node)
{
	return node * g->k + 1;
}

static uint32_t children(const struct group *g, uint32_t node)
{
	uint32_t first = first_child(g, node), end = first + g->k;

	return first >= g->n ? 0 : (end < g->n ? end : g->n) - first;
}

static void open_group(struct group *g)
{
	side_open(&g->side, g->type, 1 << 16, g->mapped);
	side_open(&g->down, g->type, 0, false);
}

static void close_group(struct group *g)
{
	expect_no_error(g->side.ep);
	expect_no_error(g->down.ep);
	side_close(&g->down);
	side_close(&g->side);
}

static void post(glex_ep_handle_t ep, struct glex_imm_mp_req *list)
{
	glex_ret_t ret;

	while ((ret = glex_send_imm_mp(ep, list, NULL)) == GLEX_BUSY)
		;
	ck_assert_msg(ret == GLEX_SUCCESS, "posting: %s", glex_error_str(ret));
}

static struct glex_imm_mp_req request(struct card to, int32_t flag, uint32_t counter, void *data, uint32_t len)
{
	return (struct glex_imm_mp_req){
		.rmt_ep_addr = to.addr, .data = data, .len = len, .coll_counter = counter, .flag = P2 | flag};
}

static void link_up(struct glex_imm_mp_req *list, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 1 < n; i++)
		list[i].next = &list[i + 1];
}

static void take(glex_ep_handle_t ep, void *data, uint32_t want)
{
	uint32_t len;

	OK(glex_receive_mp(ep, WAIT_MS, NULL, data, &len));
	ck_assert_uint_eq(len, want);
}

/* On an endpoint of its own: what it sends to itself does not wait for what others send next. */
static void barrier(struct group *g)
{
	uint32_t i, n = children(g, g->me), m = 0;
	struct glex_imm_mp_req list[MAX + 2];
	unsigned char data[112];

	if (g->me)
		list[m++] = request(g->second[parent(g)], CONTROL | (n ? START | TAIL : 0), n, NULL, 0);
	for (i = 0; i < n; i++) {
		uint32_t to = first_child(g, g->me) + i;

		list[m++] = request(g->second[to], (i ? 0 : START) | (children(g, to) ? CONTROL : CP_DATA),
				    g->me ? 1 : n, NULL, 0);
	}
	if (n)
		list[m++] = request(g->down.card, CP_DATA | TAIL, 0, NULL, 0);
	link_up(list, m);
	post(g->down.ep, list);
	take(g->down.ep, data, 0);
}

static void bcast(struct group *g, uint32_t word)
{
	uint32_t i, n = children(g, g->me), got = g->me ? 0xdead : word;
	struct glex_imm_mp_req list[MAX];

	for (i = 0; i < n; i++) {
		uint32_t to = first_child(g, g->me) + i;

		list[i] = request(g->card[to],
				  CP_DATA | (i ? 0 : START) | (i + 1 == n ? TAIL : 0) | (g->me ? SWAP : 0) |
					  (children(g, to) ? CONTROL | CP_SWAP : 0),
				  g->me ? 1 : 0, &got, sizeof(got));
	}
	link_up(list, n);
	if (n)
		post(g->side.ep, list);
	if (g->me)
		take(g->side.ep, &got, sizeof(got));
	ck_assert_uint_eq(got, word);
}

static double allreduce(struct group *g, double value)
{
	uint32_t i, n = children(g, g->me), len;
	union glex_coll_data_loc unit = {.double_s = {.data = value}};
	struct glex_imm_mp_req up, list[MAX];
	unsigned char data[112];
	struct group above = *g;

	above.me = g->me ? parent(g) : 0;
	OK(glex_coll_compose_mp_reduce_data(&unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_FLOAT,
					    g->me ? children(g, above.me) : 1, data, &len));
	up = request(g->me ? g->card[above.me] : g->down.card,
		     START | TAIL | REDUCE | CP_SWAP | CONTROL | (n ? SWAP : 0) | (g->me ? 0 : CP_DATA), n, data, len);
	for (i = 0; i < n; i++) {
		uint32_t to = first_child(g, g->me) + i;

		list[i] = request(g->second[to],
				  GLEX_FLAG_COLL_REDUCE_RESULT | SWAP | CP_DATA | (i ? 0 : START) |
					  (i + 1 == n ? TAIL : 0) | (children(g, to) ? CONTROL | CP_SWAP : 0),
				  1, data, len);
	}
	link_up(list, n);
	if (n)
		post(g->down.ep, list);
	post(g->side.ep, &up);
	take(g->down.ep, data, len);
	OK(glex_coll_decompose_mp_reduce_data(&unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64, data));
	return unit.double_s.data;
}

/* A chain of PUTs: each passes on what has come. */
static void put_chain(struct group *g, uint32_t seed)
{
	struct glex_rdma_req req;
	uint32_t half = (uint32_t)g->side.len / 2, f;

	if (g->me == 0)
		fill(g->side.buf, g->side.len, seed);
	for (f = 0; f < 2 && g->me + 1 < g->n; f++) {
		req = rdma_between(&g->side, &g->card[g->me + 1], GLEX_RDMA_TYPE_PUT, f * half, half);
		req.flag = P2 | START | TAIL | (g->me + 2 < g->n ? CONTROL : 0) | (f ? GLEX_FLAG_REMOTE_EVT : 0);
		req.coll_counter = g->me ? 1 : 0;
		req.rmt_evt.cookie_1 = seed;
		post_rdma(g->side.ep, &req);
	}
	if (g->me)
		ck_assert_uint_eq(take_event(g->side.ep).cookie_1, seed);
	expect_filled(g->side.buf, g->side.len, seed);
}

/* Member 0 tells member 1, whose one request goes to all others. */
static void set_bcast(struct group *g, uint32_t word)
{
	uint32_t i, n = 0, len, got;
	glex_ep_addr_t others[MAX];
	struct glex_imm_mp_req req;
	unsigned char list[112];

	for (i = 0; i < g->n; i++)
		if (i != 1 && i != 2)
			others[n++] = g->card[i].addr;
	OK(glex_coll_compose_mp_set_data(others, n, list, &len));
	ck_assert_uint_eq(len, n * sizeof(others[0]));
	if (g->me == 0)
		req = request(g->card[1], CONTROL | CP_SWAP, 0, &word, sizeof(word));
	else
		req = request(g->card[2], START | TAIL | SWAP | GLEX_FLAG_COLL_SWAP_SET | CP_DATA, 1, list, len);
	if (g->me < 2)
		post(g->side.ep, &req);
	if (g->me == 1)
		return;
	take(g->side.ep, &got, sizeof(got));
	ck_assert_uint_eq(got, word);
}

#define PULLED 4096u

static uint32_t offset_of(uint32_t member)
{
	return member * 2 * PULLED;
}

/* Where to, and to whose endpoint, the address says; one: to this member's, and only its address comes. */
static void put_pulled(struct group *g, uint32_t seed, bool imm, uint32_t one)
{
	int32_t flag = P2 | START | TAIL | SWAP | GLEX_FLAG_REMOTE_EVT | (one ? 0 : SWAP_EP);
	struct glex_rdma_req req = rdma_between(&g->side, &g->card[one], GLEX_RDMA_TYPE_PUT, 0, PULLED);
	struct glex_imm_rdma_req small = {.rmt_ep_addr = req.rmt_ep_addr, .data = g->side.buf, .len = 64};
	uint32_t i;

	fill(g->side.buf, PULLED, seed);
	req.coll_counter = small.coll_counter = 1;
	req.rmt_evt.cookie_1 = small.rmt_evt.cookie_1 = seed;
	req.flag = small.flag = flag;
	req.rmt_mh.v = small.rmt_mh.v = 0;
	for (i = 1; i < (one ? 2 : g->n); i++)
		if (imm)
			post_imm(g->side.ep, &small);
		else
			post_rdma(g->side.ep, &req);
}

/* All but member 0 say where they want its data. */
static void pull(struct group *g, uint32_t seed)
{
	bool imm = seed % 2;
	uint32_t one = seed % 3 ? 0 : 2, len;
	struct glex_imm_mp_req req;
	unsigned char addr[112];

	if (g->me == 0) {
		put_pulled(g, seed, imm, one);
		return;
	}
	if (one && g->me != one)
		return;
	OK(glex_coll_compose_mp_swap_addr_data(g->side.ep, g->side.card.mh, offset_of(g->me), g->side.card.key, addr,
					       &len));
	req = request(g->card[0], CONTROL | GLEX_FLAG_COLL_CP_SWAP_ADDR, 0, addr, len);
	post(g->side.ep, &req);
	ck_assert_uint_eq(take_event(g->side.ep).cookie_1, seed);
	expect_filled(g->side.buf + offset_of(g->me), imm ? 64 : PULLED, seed);
}

/* What comes to member 0 goes back to whoever sent it. */
static void echo(struct group *g, uint32_t round)
{
	uint32_t word = round * MAX + g->me, got, i;
	struct glex_imm_mp_req req;

	for (i = 1; i < g->n && g->me == 0; i++) {
		req = request(g->card[0], START | TAIL | SWAP | SWAP_EP | CP_DATA, 1, NULL, 0);
		post(g->side.ep, &req);
	}
	if (g->me == 0)
		return;
	req = request(g->card[0], CONTROL | CP_SWAP, 0, &word, sizeof(word));
	post(g->side.ep, &req);
	take(g->side.ep, &got, sizeof(got));
	ck_assert_uint_eq(got, word);
}

enum what { BARRIERS, BCASTS, ALLREDUCES, PUTS, SETS, PULLS, ECHOES, KINDS_OF };

/* Operands are combined by the address of their sender: a node's own and what its children have. */
static double expected_sum(struct group *g, uint32_t round, uint32_t node)
{
	uint32_t i, j, n = children(g, node) + 1, order[MAX] = {node};
	double sum = 0;

	for (i = 1; i < n; i++) {
		uint32_t it = first_child(g, node) + i - 1;

		for (j = i; j > 0 && g->card[order[j - 1]].addr.v > g->card[it].addr.v; j--)
			order[j] = order[j - 1];
		order[j] = it;
	}
	for (i = 0; i < n; i++) {
		double value = order[i] == node ? (round + 1) / (node + 3.0) : expected_sum(g, round, order[i]);

		sum = i ? sum + value : value;
	}
	return sum;
}

static void take_part(struct group *g)
{
	uint32_t round;

	for (round = 0; round < 60; round++) {
		if (g->what == BARRIERS) {
			barrier(g);
		} else if (g->what == BCASTS) {
			bcast(g, round * 3);
			barrier(g);
		} else if (g->what == ALLREDUCES) {
			double sum = allreduce(g, (round + 1) / (g->me + 3.0));

			ck_assert(sum == expected_sum(g, round, 0));
		} else if (g->what == SETS) {
			set_bcast(g, round * 3);
			barrier(g);
		} else if (g->what == PULLS) {
			pull(g, round + 1);
			barrier(g);
		} else if (g->what == ECHOES) {
			echo(g, round);
			barrier(g);
		} else if (round < 10) {
			put_chain(g, round + 1);
			barrier(g);
		}
	}
}

static void exchange(struct group *g, int fd)
{
	say(fd, &g->side.card, sizeof(struct card));
	say(fd, &g->down.card, sizeof(struct card));
	hear(fd, g->card, sizeof(g->card));
	hear(fd, g->second, sizeof(g->second));
}

static void member(int fd, void *arg)
{
	struct group g = *(struct group *)arg;

	open_group(&g);
	exchange(&g, fd);
	take_part(&g);
	meet(fd);
	close_group(&g);
}

/* All but member 0, which is us. */
static void start_members(struct group *g, struct peer *peer, void (*body)(int fd, void *arg))
{
	for (g->me = 1; g->me < g->n; g->me++)
		peer[g->me] = peer_start(body, g);
	g->me = 0;
	open_group(g);
	g->card[0] = g->side.card;
	g->second[0] = g->down.card;
}

static void introduce(struct group *g, struct peer *peer)
{
	uint32_t i;

	for (i = 1; i < g->n; i++) {
		hear(peer[i].fd, &g->card[i], sizeof(struct card));
		hear(peer[i].fd, &g->second[i], sizeof(struct card));
	}
	for (i = 1; i < g->n; i++) {
		say(peer[i].fd, g->card, sizeof(g->card));
		say(peer[i].fd, g->second, sizeof(g->second));
	}
}

static void end_members(struct group *g, struct peer *peer)
{
	uint32_t i;

	for (i = 1; i < g->n; i++) {
		meet(peer[i].fd);
		peer_join(&peer[i]);
	}
	close_group(g);
}

START_TEST(coll__of_five_processes__right_on_every_kind_of_endpoint)
{
	static const enum glex_ep_type types[] = {GLEX_EP_TYPE_FAST, GLEX_EP_TYPE_NORMAL, GLEX_EP_TYPE_EMULATE};
	struct group g = {.n = 5, .k = 2, .what = (uint32_t)_i % KINDS_OF, .type = types[_i / KINDS_OF % 3]};
	struct peer peer[MAX];

	g.mapped = _i / KINDS_OF / 3;
	start_members(&g, peer, member);
	introduce(&g, peer);
	take_part(&g);
	end_members(&g, peer);
}
END_TEST

/* ---- nobody's processor ------------------------------------------------------------------------------ */

/* Posts what it has to do, and is then stopped. */
static void stopped_member(int fd, void *arg)
{
	struct group g = *(struct group *)arg;
	struct glex_imm_mp_req on;

	open_group(&g);
	exchange(&g, fd);
	on = request(g.card[g.me + 1], START | TAIL | CP_DATA | CONTROL | CP_SWAP | SWAP, 1, NULL, 0);
	if (g.me + 1 < g.n)
		post(g.side.ep, &on);
	meet(fd);
	if (g.me + 1 == g.n) {
		expect_mp(g.side.ep, "through", 7);
		meet(fd);
	}
	meet(fd);
	close_group(&g);
}

START_TEST(coll__inner_processes_are_stopped__goes_on_without_them)
{
	struct group g = {.n = 5, .k = 1, .type = _i ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST};
	struct glex_imm_mp_req first;
	struct peer peer[MAX];
	uint32_t i;

	start_members(&g, peer, stopped_member);
	introduce(&g, peer);
	for (i = 1; i < g.n; i++)
		meet(peer[i].fd);
	for (i = 1; i + 1 < g.n; i++) {
		int status;

		ck_assert_int_eq(kill(peer[i].pid, SIGSTOP), 0);
		ck_assert_int_eq(waitpid(peer[i].pid, &status, WUNTRACED), peer[i].pid);
		ck_assert(WIFSTOPPED(status));
	}
	first = request(g.card[1], START | TAIL | CONTROL | CP_SWAP, 0, "through", 7);
	post(g.side.ep, &first);
	meet(peer[g.n - 1].fd);
	for (i = 1; i + 1 < g.n; i++)
		ck_assert_int_eq(kill(peer[i].pid, SIGCONT), 0);
	end_members(&g, peer);
}
END_TEST

/* ---- after what was posted before ---------------------------------------------------------------------- */

#define AREA (8u << 20)

/* arg: in one list, by an event; else by a packet posted later */
static void put_then_tell(int fd, void *arg)
{
	struct glex_rdma_req req, last;
	struct glex_imm_mp_req tell;
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_NORMAL, AREA, false);
	card = swap_cards(&side, fd);
	fill(side.buf, AREA, 77);
	req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, AREA);
	if (arg) {
		last = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 64);
		last.flag = GLEX_FLAG_COLL | START | TAIL | GLEX_FLAG_FENCE | GLEX_FLAG_REMOTE_EVT;
		last.rmt_evt.cookie_1 = 1;
		req.next = &last;
	}
	post_rdma(side.ep, &req);
	if (!arg) {
		tell = request(card, START | TAIL | GLEX_FLAG_FENCE, 0, "there", 5);
		post(side.ep, &tell);
	}
	meet(fd);
	expect_no_error(side.ep);
	side_close(&side);
}

/* _i: memory that is mapped | in one list */
START_TEST(coll__behind_a_queued_put__overtakes_it_not)
{
	struct peer peer = peer_start(put_then_tell, _i & 2 ? &peer : NULL);
	glex_event_t *event;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, AREA, _i & 1);
	swap_cards(&side, peer.fd);
	if (_i & 2)
		OK(glex_probe_first_event(side.ep, WAIT_MS, &event));
	else
		expect_mp(side.ep, "there", 5);
	expect_filled(side.buf, AREA, 77);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- deaths ---------------------------------------------------------------------------------------------- */

#define DEATHS 12
#define WINDOW 200u

/* Sends numbered control packets until it is killed. */
static void send_for_ever(int fd, void *arg)
{
	uint32_t word[2] = {*(uint32_t *)arg, 0};
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	card = swap_cards(&side, fd);
	for (;; word[1]++) {
		struct glex_imm_mp_req req = request(card, START | TAIL | CONTROL | CP_SWAP, 0, word, sizeof(word));

		post(side.ep, &req);
		if (word[1] % WINDOW == WINDOW - 1)
			expect_mp(side.ep, "on", 2);
	}
}

/* The packets of one sender as they are passed on; true: that was the last. */
static bool next_of(struct group *g, uint32_t who, uint32_t next, uint32_t *posted, const struct card *to)
{
	uint32_t word[28], len;

	for (; *posted < next + WINDOW; (*posted)++) {
		struct glex_imm_mp_req on = request(g->down.card, START | TAIL | SWAP, 1, NULL, 0);

		post(g->side.ep, &on);
	}
	OK(glex_receive_mp(g->down.ep, WAIT_MS, NULL, word, &len));
	if (len == 3)
		return true;
	ck_assert(len == 8 && word[0] == who && word[1] == next);
	if (to && next % WINDOW == WINDOW - 1)
		send_mp(&g->side, to->addr, "on", 2);
	return false;
}

/*
 * A gate of ours passes each packet on to another endpoint of ours, and who sends
 * it executes that.  Killed at any moment he leaves neither a gap nor a packet
 * that came twice, and the next one is not kept waiting.
 */
START_TEST(coll__who_executes_is_killed__each_packet_passed_on_once)
{
	struct group g = {.n = 1, .k = 1, .type = _i ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST};
	struct glex_imm_mp_req last;
	uint32_t who, next, posted;
	struct peer peer;
	struct card card;

	for (who = 0; who < DEATHS; who++) {
		peer = peer_start(send_for_ever, &who);
		open_group(&g);
		card = swap_cards(&g.side, peer.fd);
		for (next = posted = 0; next < 300 + who * 37; next++)
			ck_assert(!next_of(&g, who, next, &posted, &card));
		peer_kill(&peer);
		/* What had been sent still comes, and behind it what another sends. */
		last = request(g.side.card, CONTROL | CP_SWAP, 0, "end", 3);
		post(g.down.ep, &last);
		while (!next_of(&g, who, next, &posted, NULL))
			next++;
		close_group(&g);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll");
	TCase *tc = tcase_create("coll");

	own_job("coll");
	tcase_add_loop_test(tc, coll_flag__without_coll__invalid_and_nothing_done, 0, 12);
	tcase_add_test(tc, coll_request__that_makes_no_sense__invalid);
	tcase_add_test(tc, coll_helpers__wrong_arguments__invalid);
	tcase_add_loop_test(tc, coll_helpers__each_width__values_come_back, 0, 2);
	tcase_add_loop_test(tc, coll_queue__full__busy_as_a_whole_and_clears_when_gates_open, 0, 3);
	tcase_add_loop_test(tc, coll__of_five_processes__right_on_every_kind_of_endpoint, 0, KINDS_OF * 6);
	tcase_add_loop_test(tc, coll__inner_processes_are_stopped__goes_on_without_them, 0, 2);
	tcase_add_loop_test(tc, coll__behind_a_queued_put__overtakes_it_not, 0, 4);
	tcase_add_loop_test(tc, coll__who_executes_is_killed__each_packet_passed_on_once, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
