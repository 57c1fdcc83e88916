/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_post.c - posting: what is copied when, lists, BUSY, what is refused
 * at once, what is not looked at.
 *
 * Where a full descriptor queue is needed, glexd is stopped for a while.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/lib/side.h"

#define RW	 (GLEX_MEM_READ | GLEX_MEM_WRITE)
#define SMALL_DQ 16

/* A NORMAL endpoint with a descriptor queue that is soon full, and one request in it that waits for glexd. */
static pid_t open_and_stop(struct side *side, size_t len)
{
	struct glex_ep_attr attr = {
		.type = GLEX_EP_TYPE_NORMAL, .num = GLEX_ANY_EP_NUM, .key = 3, .dq_capacity = SMALL_DQ};
	struct glex_rdma_req req;
	pid_t glexd;

	side_open_as(side, &attr, len, false);
	send_mp(side, side->card.addr, "warm", 4);
	expect_mp(side->ep, "warm", 4);
	rdma_done(side, &side->card, GLEX_RDMA_TYPE_PUT, 0, (uint32_t)len);
	glexd = glexd_stop();
	req = rdma_between(side, &side->card, GLEX_RDMA_TYPE_PUT, 0, 8);
	OK(glex_rdma(side->ep, &req, NULL));
	return glexd;
}

/* ---- what is copied ---------------------------------------------------------------- */

START_TEST(post__mp_and_imm_payload__copied_at_the_call)
{
	struct glex_imm_mp_req mp = {.len = 8};
	struct glex_imm_rdma_req imm = {.len = 8, .rmt_offset = 64};
	char payload[8] = "first..";
	struct side side;

	open_and_stop(&side, 4096);
	mp.rmt_ep_addr = imm.rmt_ep_addr = side.card.addr;
	mp.data = imm.data = payload;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	OK(glex_send_imm_mp(side.ep, &mp, NULL));
	OK(glex_imm_rdma(side.ep, &imm, NULL));
	/* neither the payload nor the requests are needed any more */
	memset(payload, 'x', sizeof(payload));
	memset(&mp, 0xff, sizeof(mp));
	memset(&imm, 0xff, sizeof(imm));
	RETURNS(glex_probe_first_mp(side.ep, 0, NULL, &(void *){NULL}, &(uint32_t){0}), GLEX_NO_MP);
	ck_assert_uint_eq(side.buf[64], 0);
	glexd_go_on();
	expect_mp(side.ep, "first..", 8);
	UNTIL(memcmp(side.buf + 64, "first..", 8) == 0);
	side_close(&side);
}
END_TEST

static void send_from_stack(int fd, void *arg)
{
	struct side side;
	struct card card;
	uint32_t i;

	side_open(&side, (enum glex_ep_type)(*(int *)arg), 0, false);
	card = swap_cards(&side, fd);
	for (i = 0; i < 3000; i++) {
		uint32_t on_stack[28];

		memset(on_stack, (int)i, sizeof(on_stack));
		on_stack[0] = i;
		send_mp(&side, card.addr, on_stack, sizeof(on_stack));
		memset(on_stack, 0xff, sizeof(on_stack));
	}
	meet(fd);
	expect_no_error(side.ep);
	side_close(&side);
}

START_TEST(post__payload_on_the_stack__every_mp_intact)
{
	struct peer peer = peer_start(send_from_stack, &_i);
	struct side side;
	uint32_t got[28], want[28], len, i;

	side_open(&side, (enum glex_ep_type)_i, 0, false);
	swap_cards(&side, peer.fd);
	for (i = 0; i < 3000; i++) {
		OK(glex_receive_mp(side.ep, WAIT_MS, NULL, got, &len));
		memset(want, (int)i, sizeof(want));
		want[0] = i;
		ck_assert_uint_eq(len, sizeof(want));
		ck_assert_mem_eq(got, want, sizeof(want));
	}
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- lists ---------------------------------------------------------------------------- */

/* A list of n MPs that carry first, first+1, ... */
static glex_imm_mp_req_t *mp_list(glex_ep_addr_t to, uint32_t first, uint32_t n, uint32_t *numbers)
{
	glex_imm_mp_req_t *req = calloc(n, sizeof(*req));
	uint32_t i;

	for (i = 0; i < n; i++) {
		numbers[i] = first + i;
		req[i].rmt_ep_addr = to;
		req[i].data = &numbers[i];
		req[i].len = sizeof(numbers[i]);
		req[i].next = i + 1 < n ? &req[i + 1] : NULL;
	}
	return req;
}

START_TEST(post__list_of_100_on_fast_endpoint__never_busy)
{
	uint32_t numbers[100], i, round;
	struct side side;

	side_open(&side, (enum glex_ep_type)_i, 0, false);
	for (round = 0; round < 30; round++) {
		glex_imm_mp_req_t *list = mp_list(side.card.addr, round * 100, 100, numbers);

		OK(glex_send_imm_mp(side.ep, list, NULL));
		free(list);
	}
	for (i = 0; i < 3000; i++)
		expect_mp(side.ep, &i, sizeof(i));
	side_close(&side);
}
END_TEST

START_TEST(post__depth_of_128_on_normal_endpoint__never_busy)
{
	struct side side;
	struct glex_rdma_req req;
	int i;

	side_open(&side, GLEX_EP_TYPE_NORMAL, 4096, false);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	glexd_stop();
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	for (i = 0; i < 128; i++)
		OK(glex_rdma(side.ep, &req, NULL));
	glexd_go_on();
	side_close(&side);
}
END_TEST

START_TEST(post__chain_of_puts__in_order_and_bad_may_be_null)
{
	glex_rdma_req_t req[4], *bad = (void *)0x1;
	struct side side;
	int i;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	fill(side.buf, 1024, 1);
	for (i = 0; i < 4; i++) {
		req[i] = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 256);
		req[i].local_offset = (uint32_t)i * 256;
		req[i].rmt_offset = 2048 + (uint32_t)i * 256;
		req[i].flag = GLEX_FLAG_REMOTE_EVT;
		req[i].rmt_evt.cookie_1 = 10 + (unsigned)i;
		req[i].next = i < 3 ? &req[i + 1] : NULL;
	}
	OK(glex_rdma(side.ep, req, NULL));
	OK(glex_rdma(side.ep, req, &bad));
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(take_event(side.ep).cookie_1, 10 + (unsigned)i % 4);
	expect_filled(side.buf + 2048, 1024, 1);
	side_close(&side);
}
END_TEST

START_TEST(post__one_bad_request_in_a_list__named_and_nothing_posted)
{
	uint32_t numbers[3];
	glex_imm_mp_req_t *list, *bad = NULL;
	glex_rdma_req_t put[3], *bad_put = NULL;
	struct side side;
	int i;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	list = mp_list(side.card.addr, 0, 3, numbers);
	list[1].len = 113;
	RETURNS(glex_send_imm_mp(side.ep, list, &bad), GLEX_INVALID_PARAM);
	ck_assert_ptr_eq(bad, &list[1]);
	RETURNS(glex_send_imm_mp(side.ep, list, NULL), GLEX_INVALID_PARAM);
	for (i = 0; i < 3; i++) {
		put[i] = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
		put[i].flag = GLEX_FLAG_REMOTE_EVT;
		put[i].rmt_evt.cookie_1 = 1;
		put[i].next = i < 2 ? &put[i + 1] : NULL;
	}
	put[2].local_offset = 4089;
	RETURNS(glex_rdma(side.ep, put, &bad_put), GLEX_INVALID_PARAM);
	ck_assert_ptr_eq(bad_put, &put[2]);
	/* what comes next is the first thing that arrives */
	list[1].len = 4;
	OK(glex_send_imm_mp(side.ep, &list[2], NULL));
	expect_mp(side.ep, &numbers[2], 4);
	put[2].local_offset = 0;
	put[2].rmt_evt.cookie_1 = 2;
	OK(glex_rdma(side.ep, &put[2], NULL));
	ck_assert_uint_eq(take_event(side.ep).cookie_1, 2);
	free(list);
	side_close(&side);
}
END_TEST

/* ---- BUSY ------------------------------------------------------------------------------ */

START_TEST(post__queue_nearly_full__whole_list_refused_and_bad_is_head)
{
	uint32_t first[10], second[10], i;
	glex_imm_mp_req_t *list, *more, *bad = NULL;
	glex_rdma_req_t put[10], *bad_put = NULL;
	struct side side;

	open_and_stop(&side, 4096);
	list = mp_list(side.card.addr, 0, 10, first);
	more = mp_list(side.card.addr, 10, 10, second);
	OK(glex_send_imm_mp(side.ep, list, &bad)); /* 11 of 16 */
	for (i = 0; i < 100; i++) {
		bad = NULL;
		RETURNS(glex_send_imm_mp(side.ep, more, &bad), GLEX_BUSY);
		ck_assert_ptr_eq(bad, more);
	}
	RETURNS(glex_send_imm_mp(side.ep, more, NULL), GLEX_BUSY);
	for (i = 0; i < 10; i++) {
		put[i] = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
		put[i].next = i < 9 ? &put[i + 1] : NULL;
	}
	RETURNS(glex_rdma(side.ep, put, &bad_put), GLEX_BUSY);
	ck_assert_ptr_eq(bad_put, put);
	OK(glex_send_imm_mp(side.ep, &more[5], NULL)); /* the five that have room: 16 of 16 */
	RETURNS(glex_send_imm_mp(side.ep, &more[9], &bad), GLEX_BUSY);
	glexd_go_on();
	for (i = 0; i < 10; i++)
		expect_mp(side.ep, &first[i], 4);
	for (i = 5; i < 10; i++)
		expect_mp(side.ep, &second[i], 4);
	RETURNS(glex_probe_first_mp(side.ep, 0, NULL, &(void *){NULL}, &(uint32_t){0}), GLEX_NO_MP);
	free(list);
	free(more);
	side_close(&side);
}
END_TEST

struct later {
	int ms;
	pid_t pid;
};

/* The poster must not have to do anything for it, so somebody else lets glexd go on. */
static void go_on_later(int fd, void *arg)
{
	struct later *later = arg;
	struct timespec ts = {.tv_nsec = later->ms * 1000000L};

	hear(fd, &later->pid, sizeof(later->pid));
	nanosleep(&ts, NULL); /* not a wait for something: it makes the poster loop */
	kill(later->pid, SIGCONT);
}

START_TEST(busy__clears_by_itself_while_poster_loops)
{
	struct later later = {.ms = 50};
	struct peer peer = peer_start(go_on_later, &later);
	uint32_t numbers[SMALL_DQ + 5], i;
	glex_imm_mp_req_t *list;
	struct side side;
	uint64_t busy = 0;
	glex_ret_t ret;
	pid_t glexd;

	glexd = open_and_stop(&side, 4096);
	list = mp_list(side.card.addr, 0, SMALL_DQ + 5, numbers);
	list[SMALL_DQ - 2].next = NULL; /* with the one that waits, the queue is full */
	OK(glex_send_imm_mp(side.ep, list, NULL));
	say(peer.fd, &glexd, sizeof(glexd));
	while ((ret = glex_send_imm_mp(side.ep, &list[SMALL_DQ - 1], NULL)) == GLEX_BUSY)
		busy++;
	ck_assert_int_eq(ret, GLEX_SUCCESS);
	ck_assert_uint_gt(busy, 0);
	peer_join(&peer);
	glexd_go_on();
	for (i = 0; i < SMALL_DQ + 5; i++)
		expect_mp(side.ep, &numbers[i], 4);
	RETURNS(glex_probe_first_mp(side.ep, 0, NULL, &(void *){NULL}, &(uint32_t){0}), GLEX_NO_MP);
	free(list);
	side_close(&side);
}
END_TEST

#define LISTS 400
#define EACH  5

static void idle_target(int fd, void *arg)
{
	struct glex_ep_attr attr = {
		.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = 9, .eq_capacity = LISTS * EACH};
	int kind = *(int *)arg;
	struct side side;
	uint32_t i;

	side_open_as(&side, &attr, 4096, is_mapped(kind));
	swap_cards(&side, fd);
	meet(fd); /* until then no call is made here */
	for (i = 0; i < LISTS * EACH; i++)
		ck_assert_uint_eq(take_event(side.ep).cookie_0, i);
	RETURNS(glex_probe_first_event(side.ep, 0, &(glex_event_t *){NULL}), GLEX_NO_EVENT);
	side_close(&side);
}

START_TEST(busy__neither_side_calls_anything_else__all_lists_arrive_once_in_order)
{
	struct glex_ep_attr attr = {
		.type = GLEX_EP_TYPE_NORMAL, .num = GLEX_ANY_EP_NUM, .key = 3, .dq_capacity = SMALL_DQ};
	int kind = NORMAL_PRIVATE + _i;
	struct peer peer = peer_start(idle_target, &kind);
	glex_rdma_req_t put[EACH], *bad;
	struct side side;
	struct card card;
	uint32_t i, j;
	glex_ret_t ret;

	side_open_as(&side, &attr, 4096, is_mapped(kind));
	card = swap_cards(&side, peer.fd);
	for (i = 0; i < LISTS; i++) {
		for (j = 0; j < EACH; j++) {
			put[j] = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, j * 8, 8);
			put[j].flag = GLEX_FLAG_REMOTE_EVT;
			put[j].rmt_evt.cookie_0 = i * EACH + j;
			put[j].rmt_evt.cookie_1 = 1;
			put[j].next = j + 1 < EACH ? &put[j + 1] : NULL;
		}
		while ((ret = glex_rdma(side.ep, put, &bad)) == GLEX_BUSY)
			ck_assert_ptr_eq(bad, put);
		ck_assert_int_eq(ret, GLEX_SUCCESS);
	}
	rdma_done(&side, &card, GLEX_RDMA_TYPE_GET, 0, 8);
	meet(peer.fd);
	peer_join(&peer);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

START_TEST(post__list_longer_than_the_queue__invalid)
{
	struct glex_ep_attr attr = {
		.type = GLEX_EP_TYPE_NORMAL, .num = GLEX_ANY_EP_NUM, .key = 3, .dq_capacity = SMALL_DQ};
	glex_rdma_req_t put[SMALL_DQ + 1];
	struct side side;
	int i;

	side_open_as(&side, &attr, 4096, false);
	for (i = 0; i <= SMALL_DQ; i++) {
		put[i] = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
		put[i].next = i < SMALL_DQ ? &put[i + 1] : NULL;
	}
	RETURNS(glex_rdma(side.ep, put, NULL), GLEX_INVALID_PARAM);
	OK(glex_rdma(side.ep, &put[1], NULL));
	side_close(&side);
}
END_TEST

/* ---- lengths ------------------------------------------------------------------------------ */

START_TEST(post__lengths_at_and_above_the_limit__accepted_and_refused)
{
	unsigned char data[113] = "payload";
	struct glex_imm_mp_req mp = {.data = data};
	struct glex_imm_rdma_req imm = {.data = data};
	struct side side;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	mp.rmt_ep_addr = imm.rmt_ep_addr = side.card.addr;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	mp.len = 113;
	RETURNS(glex_send_imm_mp(side.ep, &mp, NULL), GLEX_INVALID_PARAM);
	mp.len = 112;
	OK(glex_send_imm_mp(side.ep, &mp, NULL));
	expect_mp(side.ep, data, 112);
	mp.data = NULL;
	RETURNS(glex_send_imm_mp(side.ep, &mp, NULL), GLEX_INVALID_PARAM);
	mp.len = 0;
	OK(glex_send_imm_mp(side.ep, &mp, NULL));
	expect_mp(side.ep, data, 0);
	RETURNS(glex_send_imm_mp(side.ep, NULL, NULL), GLEX_INVALID_PARAM);
	imm.len = 97;
	RETURNS(glex_imm_rdma(side.ep, &imm, NULL), GLEX_INVALID_PARAM);
	imm.len = 96;
	OK(glex_imm_rdma(side.ep, &imm, NULL));
	UNTIL(memcmp(side.buf, data, 96) == 0);
	imm.data = NULL;
	RETURNS(glex_imm_rdma(side.ep, &imm, NULL), GLEX_INVALID_PARAM);
	imm.len = 0;
	OK(glex_imm_rdma(side.ep, &imm, NULL));
	RETURNS(glex_imm_rdma(side.ep, NULL, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_rdma(side.ep, NULL, NULL), GLEX_INVALID_PARAM);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

START_TEST(rdma__local_handle_or_range_not_ours__invalid)
{
	struct side side;
	struct glex_rdma_req good, req;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	good = req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	OK(glex_rdma(side.ep, &req, NULL));
	req.local_offset = 1;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.local_offset = UINT32_MAX;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req = good;
	req.local_mh.v = 0;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.local_mh.v = good.local_mh.v ^ (UINT64_C(1) << 40);
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.local_mh.v = UINT64_MAX;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req = good;
	req.type = (enum glex_rdma_type)2;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

#define LARGEST 0x8000000u
#define WINDOW	0x10000u

/* Looking at each byte takes longer than moving them: the ends and the middle do. */
static const uint32_t windows[] = {0, LARGEST / 2 - 7, LARGEST - WINDOW};

static void fill_windows(unsigned char *buf)
{
	int i;

	for (i = 0; i < 3; i++)
		fill(buf + windows[i], WINDOW, (unsigned)i);
}

static void expect_windows(const unsigned char *buf)
{
	int i;

	for (i = 0; i < 3; i++)
		expect_filled(buf + windows[i], WINDOW, (unsigned)i);
}

static void largest_target(int fd, void *arg)
{
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, LARGEST, is_mapped(*(int *)arg));
	swap_cards(&side, fd);
	ck_assert_uint_eq(take_event(side.ep).cookie_0, 11);
	expect_windows(side.buf);
	meet(fd);
	meet(fd);
	side_close(&side);
}

START_TEST(rdma__128_mib__moves_and_one_more_byte_is_refused)
{
	struct peer peer = peer_start(largest_target, &_i);
	struct glex_rdma_req req;
	struct side side;
	struct card card;

	side_open(&side, type_of(_i), LARGEST + 1, is_mapped(_i));
	card = swap_cards(&side, peer.fd);
	fill_windows(side.buf);
	req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, LARGEST + 1);
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.len = LARGEST;
	req.flag = GLEX_FLAG_REMOTE_EVT;
	req.rmt_evt.cookie_0 = 11;
	req.rmt_evt.cookie_1 = 1;
	post_rdma(side.ep, &req);
	meet(peer.fd);
	memset(side.buf, 0, LARGEST);
	rdma_done(&side, &card, GLEX_RDMA_TYPE_GET, 0, LARGEST);
	expect_windows(side.buf);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

START_TEST(rdma__length_0__only_the_events)
{
	struct side side;
	struct glex_rdma_req req;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 0);
	req.flag = GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT;
	req.rmt_evt.cookie_1 = 1;
	req.local_evt.cookie_1 = 2;
	post_rdma(side.ep, &req);
	ck_assert_uint_eq(take_event(side.ep).cookie_1, 1);
	ck_assert_uint_eq(take_event(side.ep).cookie_1, 2);
	req.type = GLEX_RDMA_TYPE_GET;
	post_rdma(side.ep, &req);
	ck_assert_uint_eq(take_event(side.ep).cookie_1, 1);
	ck_assert_uint_eq(take_event(side.ep).cookie_1, 2);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- garbage ------------------------------------------------------------------------------ */

START_TEST(post__garbage_in_unselected_fields__ignored)
{
	struct glex_imm_mp_req mp;
	struct glex_imm_rdma_req imm;
	struct glex_rdma_req put, good;
	struct side side;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	memset(&mp, 0xa5, sizeof(mp));
	mp.rmt_ep_addr = side.card.addr;
	mp.data = &side;
	mp.len = 8;
	mp.flag = GLEX_FLAG_LOCAL_INTR | GLEX_FLAG_REMOTE_INTR | GLEX_FLAG_FENCE | GLEX_FLAG_NO_CONNECTION |
		  GLEX_FLAG_ROUTE_ADAPTIVE;
	mp.next = NULL;
	OK(glex_send_imm_mp(side.ep, &mp, NULL));
	expect_mp(side.ep, &side, 8);
	memset(&imm, 0xa5, sizeof(imm));
	imm.rmt_ep_addr = side.card.addr;
	imm.data = &side;
	imm.len = 8;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	imm.rmt_offset = 0;
	imm.flag = 0;
	imm.rmt_evt.cookie_1 = 0;
	imm.next = NULL;
	OK(glex_imm_rdma(side.ep, &imm, NULL));
	UNTIL(memcmp(side.buf, &side, 8) == 0);
	good = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	memset(&put, 0xa5, sizeof(put));
	put.rmt_ep_addr = good.rmt_ep_addr;
	put.local_mh = good.local_mh;
	put.rmt_mh = good.rmt_mh;
	put.local_offset = put.rmt_offset = 0;
	put.len = 64;
	put.type = GLEX_RDMA_TYPE_PUT;
	put.rmt_key = good.rmt_key;
	put.flag = GLEX_FLAG_LOCAL_EVT;
	put.local_evt.cookie_1 = 4;
	put.rmt_evt.cookie_1 = 0;
	put.next = NULL;
	OK(glex_rdma(side.ep, &put, NULL));
	ck_assert_uint_eq(take_event(side.ep).cookie_1, 4);
	RETURNS(glex_probe_first_event(side.ep, 0, &(glex_event_t *){NULL}), GLEX_NO_EVENT);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------- */

#define THREADS 4
#define PER	2000

struct poster {
	struct side *side;
	glex_ep_addr_t to;
	uint32_t id;
};

static void *post_many(void *arg)
{
	struct poster *poster = arg;
	uint32_t word[2] = {poster->id, 0};

	for (word[1] = 0; word[1] < PER; word[1]++)
		send_mp(poster->side, poster->to, word, sizeof(word));
	return NULL;
}

static void *take_many(void *arg)
{
	static _Atomic uint32_t taken;
	static _Atomic uint32_t seen[THREADS][PER];
	struct side *side = arg;
	uint32_t word[28], len;
	glex_ret_t ret;

	while (taken < THREADS * PER) {
		ret = glex_receive_mp(side->ep, 20, NULL, word, &len);
		if (ret == GLEX_NO_MP)
			continue;
		ck_assert_int_eq(ret, GLEX_SUCCESS);
		ck_assert_uint_eq(len, 8);
		ck_assert_uint_lt(word[0], THREADS);
		ck_assert_uint_lt(word[1], PER);
		ck_assert_uint_eq(seen[word[0]][word[1]]++, 0);
		taken++;
	}
	return NULL;
}

static void threaded_posters(int fd, void *arg)
{
	struct poster poster[THREADS];
	pthread_t thread[THREADS];
	struct side side;
	struct card card;
	uint32_t i;

	side_open(&side, (enum glex_ep_type)(*(int *)arg), 0, false);
	card = swap_cards(&side, fd);
	for (i = 0; i < THREADS; i++) {
		poster[i] = (struct poster){&side, card.addr, i};
		ck_assert_int_eq(pthread_create(&thread[i], NULL, post_many, &poster[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	expect_no_error(side.ep);
	meet(fd);
	side_close(&side);
}

START_TEST(threads__several_post_and_several_poll_one_endpoint__each_mp_once)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .mpq_capacity = THREADS * PER};
	struct peer peer = peer_start(threaded_posters, &_i);
	pthread_t thread[THREADS];
	struct side side;
	int i;

	side_open_as(&side, &attr, 0, false);
	swap_cards(&side, peer.fd);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_many, &side), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	meet(peer.fd);
	peer_join(&peer);
	RETURNS(glex_probe_first_mp(side.ep, 0, NULL, &(void *){NULL}, &(uint32_t){0}), GLEX_NO_MP);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("post");
	TCase *tc = tcase_create("post");

	own_job("post");
	tcase_add_test(tc, post__mp_and_imm_payload__copied_at_the_call);
	tcase_add_loop_test(tc, post__payload_on_the_stack__every_mp_intact, 0, 3);
	tcase_add_loop_test(tc, post__list_of_100_on_fast_endpoint__never_busy, 0, 3);
	tcase_add_test(tc, post__depth_of_128_on_normal_endpoint__never_busy);
	tcase_add_loop_test(tc, post__chain_of_puts__in_order_and_bad_may_be_null, 0, KINDS);
	tcase_add_loop_test(tc, post__one_bad_request_in_a_list__named_and_nothing_posted, 0, KINDS);
	tcase_add_test(tc, post__queue_nearly_full__whole_list_refused_and_bad_is_head);
	tcase_add_test(tc, busy__clears_by_itself_while_poster_loops);
	tcase_add_loop_test(tc, busy__neither_side_calls_anything_else__all_lists_arrive_once_in_order, 0, 2);
	tcase_add_test(tc, post__list_longer_than_the_queue__invalid);
	tcase_add_loop_test(tc, post__lengths_at_and_above_the_limit__accepted_and_refused, 0, KINDS);
	tcase_add_loop_test(tc, rdma__local_handle_or_range_not_ours__invalid, 0, KINDS);
	tcase_add_loop_test(tc, rdma__128_mib__moves_and_one_more_byte_is_refused, 0, KINDS);
	tcase_add_loop_test(tc, rdma__length_0__only_the_events, 0, KINDS);
	tcase_add_loop_test(tc, post__garbage_in_unselected_fields__ignored, 0, KINDS);
	tcase_add_loop_test(tc, threads__several_post_and_several_poll_one_endpoint__each_mp_once, 0, 3);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
