/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_inject.c - PUTs from memory that is not registered, and GETs into such:
 * what arrives, in which order, what becomes of the caller's bytes, and who cannot.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/lib/side.h"

#define LEN ((size_t)1 << 20)

static struct glex_imm_rdma_req request(const struct card *to, const void *data, uint32_t len, uint32_t offset)
{
	struct glex_imm_rdma_req req = {
		.rmt_ep_addr = to->addr,
		.data = (void *)(uintptr_t)data,
		.len = len,
		.rmt_mh = to->mh,
		.rmt_offset = offset,
		.rmt_key = to->key,
	};

	return req;
}

static void open_side(struct side *side, uint32_t type, bool shared)
{
	struct glex_ep_attr attr = {.type = type, .num = GLEX_ANY_EP_NUM, .key = 5};

	side_open_as(side, &attr, LEN, shared);
}

static unsigned char pattern(size_t i, unsigned seed)
{
	return (unsigned char)(i * 7 + i / 251 + seed);
}

static unsigned char *made(size_t len, unsigned seed)
{
	unsigned char *p = malloc(len);

	ck_assert_ptr_nonnull(p);
	for (size_t i = 0; i < len; i++)
		p[i] = pattern(i, seed);
	return p;
}

/* Where p differs from the pattern; len: nowhere. */
static size_t first_wrong(const unsigned char *p, size_t len, unsigned seed)
{
	size_t i = 0;

	while (i < len && p[i] == pattern(i, seed))
		i++;
	return i;
}

/* Lengths and offsets around all that copies may do differently; with what lies around them untouched. */
START_TEST(inject__any_length_and_place__arrives_and_nothing_else)
{
	static const uint32_t lens[] = {1, 7, 8, 95, 96, 97, 127, 128, 129, 255, 4096, 4097, 70000, LEN - 64};
	struct side side;
	unsigned char *mem;

	open_side(&side, GLEX_EP_TYPE_FAST, _i & 1);
	mem = side.buf;
	for (size_t l = 0; l < sizeof(lens) / sizeof(*lens); l++) {
		for (uint32_t offset = 1; offset < 64; offset += 13) {
			unsigned char *data = made(lens[l], (unsigned)l);
			struct glex_imm_rdma_req req = request(&side.card, data, lens[l], offset);

			memset(mem, 0xee, LEN);
			OK(glex_inject(side.ep, &req));
			memset(data, 0, lens[l]); /* the caller's again */
			ck_assert_uint_eq(first_wrong(mem + offset, lens[l], (unsigned)l), lens[l]);
			ck_assert_uint_eq(mem[offset - 1], 0xee);
			ck_assert_uint_eq(mem[offset + lens[l]], 0xee);
			free(data);
		}
	}
	side_close(&side);
}
END_TEST

/* Known when something has been PUT there, and only for who may. */
START_TEST(prefetch_at__after_a_put__is_where_it_went)
{
	const uint64_t word = 0x0123456789abcdefu;
	struct glex_imm_rdma_req req, wrong;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, _i & 1);
	req = request(&side.card, &word, sizeof(word), 64);
	OK(glex_imm_rdma(side.ep, &req, NULL));
	ck_assert_ptr_nonnull(glex_prefetch_at(side.ep, &req));
	ck_assert_mem_eq(glex_prefetch_at(side.ep, &req), &word, sizeof(word));
	wrong = req;
	wrong.rmt_key++;
	ck_assert_ptr_null(glex_prefetch_at(side.ep, &wrong));
	wrong = req;
	wrong.rmt_offset = UINT32_MAX;
	ck_assert_ptr_null(glex_prefetch_at(side.ep, &wrong));
	wrong = req;
	wrong.rmt_mh.v ^= 1;
	ck_assert_ptr_null(glex_prefetch_at(side.ep, &wrong));
	ck_assert_ptr_null(glex_prefetch_at(side.ep, NULL));
	ck_assert_ptr_null(glex_prefetch_at(NULL, &req));
	side_close(&side);
}
END_TEST

/* Where the caller may store what he would PUT, and NULL where it would be refused, or others do it. */
START_TEST(put_place__after_a_put__is_where_it_went)
{
	const uint64_t word = 0x0123456789abcdefu;
	struct glex_put_way *way, *wrong;
	struct glex_imm_rdma_req req;
	struct side side;
	uint64_t *place;

	open_side(&side, GLEX_EP_TYPE_FAST, _i & 1);
	OK(glex_put_way_open(side.ep, side.card.addr, side.card.mh, side.card.key, &way));
	OK(glex_put_way_open(side.ep, side.card.addr, side.card.mh, side.card.key + 1, &wrong));
	ck_assert_ptr_null(glex_put_place(way, 128, 16)); /* nothing has been PUT there */
	req = request(&side.card, &word, sizeof(word), 64);
	OK(glex_imm_rdma(side.ep, &req, NULL));
	place = glex_put_place(way, 128, 16);
	ck_assert_ptr_nonnull(place);
	place[0] = ~word;
	__atomic_store_n(&place[1], word, __ATOMIC_RELEASE); /* relaxed: stronger, as the NIC would */
	ck_assert_mem_eq((unsigned char *)side.buf + 136, &word, sizeof(word));
	ck_assert_ptr_nonnull(glex_put_place(way, LEN - 8, 8));
	ck_assert_ptr_null(glex_put_place(way, LEN - 8, 9));
	ck_assert_ptr_nonnull(glex_put_place(way, 0, 8)); /* what cannot be spoils nothing */
	ck_assert_ptr_null(glex_put_place(way, UINT32_MAX, 8));
	ck_assert_ptr_null(glex_put_place(wrong, 0, 8));
	OK(glex_deregister_mem(side.ep, side.card.mh));
	ck_assert_ptr_null(glex_put_place(way, 0, 8));
	OK(glex_register_mem(side.ep, side.buf, LEN, GLEX_MEM_READ | GLEX_MEM_WRITE, &side.card.mh));
	ck_assert_ptr_null(glex_put_place(way, 0, 8)); /* another region, by its handle */
	glex_put_way_close(wrong);
	glex_put_way_close(NULL);
	side_close(&side); /* and with it the other way */
}
END_TEST

/* Each target has its own way, and keeps it when others are PUT to. */
START_TEST(put_place__two_targets__each_until_it_ends)
{
	struct side from, to[2];
	struct glex_imm_rdma_req req[2];
	struct glex_put_way *way[2];
	const uint64_t word = 1;
	uint64_t *place;

	open_side(&from, GLEX_EP_TYPE_FAST, true);
	for (int i = 0; i < 2; i++) {
		open_side(&to[i], GLEX_EP_TYPE_FAST, true);
		req[i] = request(&to[i].card, &word, sizeof(word), 64);
		OK(glex_imm_rdma(from.ep, &req[i], NULL));
		OK(glex_put_way_open(from.ep, to[i].card.addr, to[i].card.mh, to[i].card.key, &way[i]));
	}
	for (uint64_t n = 0; n < 6; n++) {
		place = glex_put_place(way[n % 2], 128, 8);
		ck_assert_ptr_nonnull(place);
		__atomic_store_n(place, n, __ATOMIC_RELEASE); /* relaxed: stronger, as the NIC would */
		ck_assert_mem_eq((unsigned char *)to[n % 2].buf + 128, &n, sizeof(n));
	}
	side_close(&to[0]);
	ck_assert_ptr_null(glex_put_place(way[0], 128, 8));
	OK(glex_imm_rdma(from.ep, &req[1], NULL)); /* what has been forgotten with the other is found again */
	ck_assert_ptr_nonnull(glex_put_place(way[1], 128, 8));
	side_close(&to[1]);
	ck_assert_ptr_null(glex_put_place(way[1], 128, 8));
	glex_put_way_close(way[0]);
	glex_put_way_close(way[1]);
	side_close(&from);
}
END_TEST

static void *wait_for(void *flag_)
{
	_Atomic int *flag = flag_;

	while (!*flag)
		sched_yield();
	return NULL;
}

/* Another thread might destroy the endpoint, or have what is mapped unmapped, while the caller stores. */
START_TEST(put_place__process_with_threads__is_nowhere)
{
	const uint64_t word = 1;
	struct glex_imm_rdma_req req;
	struct glex_put_way *way;
	_Atomic int over = 0;
	struct side side;
	pthread_t thread;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	req = request(&side.card, &word, sizeof(word), 64);
	OK(glex_imm_rdma(side.ep, &req, NULL));
	OK(glex_put_way_open(side.ep, side.card.addr, side.card.mh, side.card.key, &way));
	ck_assert_ptr_nonnull(glex_put_place(way, 64, 8));
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for, &over), 0);
	ck_assert_ptr_null(glex_put_place(way, 64, 8));
	OK(glex_imm_rdma(side.ep, &req, NULL));
	ck_assert_ptr_null(glex_put_place(way, 64, 8));
	over = 1;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	side_close(&side);
}
END_TEST

START_TEST(put_way_open__nonsense__invalid_param)
{
	struct glex_put_way *way;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	RETURNS(glex_put_way_open(NULL, side.card.addr, side.card.mh, side.card.key, &way), GLEX_INVALID_PARAM);
	RETURNS(glex_put_way_open(side.ep, side.card.addr, side.card.mh, side.card.key, NULL), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

START_TEST(put_place__others_execute__is_nowhere)
{
	const uint64_t word = 1;
	struct glex_imm_rdma_req req;
	struct glex_put_way *way;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_NORMAL, true);
	req = request(&side.card, &word, sizeof(word), 64);
	for (int i = 0; i < 3; i++)
		OK(glex_imm_rdma(side.ep, &req, NULL));
	OK(glex_put_way_open(side.ep, side.card.addr, side.card.mh, side.card.key, &way));
	ck_assert_ptr_null(glex_put_place(way, 64, 8));
	side_close(&side);
}
END_TEST

START_TEST(inject__with_remote_event__comes_after_the_bytes)
{
	unsigned char *data = made(5000, 3);
	struct glex_imm_rdma_req req;
	glex_event_t *event;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	req = request(&side.card, data, 5000, 0);
	req.flag = GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_FENCE;
	req.rmt_evt.cookie_0 = 11;
	req.rmt_evt.cookie_1 = 22;
	OK(glex_inject(side.ep, &req));
	OK(glex_probe_first_event(side.ep, 1000, &event));
	ck_assert_uint_eq(event->cookie_0, 11);
	ck_assert_uint_eq(event->cookie_1, 22);
	ck_assert_mem_eq(side.buf, data, 5000);
	free(data);
	side_close(&side);
}
END_TEST

START_TEST(inject__nothing__moves_nothing_and_still_tells)
{
	struct glex_imm_rdma_req req;
	glex_event_t *event;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	req = request(&side.card, NULL, 0, 0);
	req.flag = GLEX_FLAG_REMOTE_EVT;
	req.rmt_evt.cookie_1 = 1;
	OK(glex_inject(side.ep, &req));
	OK(glex_probe_first_event(side.ep, 1000, &event));
	side_close(&side);
}
END_TEST

START_TEST(inject__normal_endpoint__not_implemented)
{
	struct glex_imm_rdma_req req;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_NORMAL, true);
	req = request(&side.card, "12345678", 8, 0);
	ck_assert_int_eq(glex_inject(side.ep, &req), GLEX_NOT_IMPLEMENTED);
	req.len = 0;
	ck_assert_int_eq(glex_inject(side.ep, &req), GLEX_NOT_IMPLEMENTED);
	side_close(&side);
}
END_TEST

START_TEST(inject__nonsense__invalid_param)
{
	struct glex_imm_rdma_req good, req;
	struct glex_device_attr attr;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	OK(glex_query_device(side.dev, &attr));
	good = request(&side.card, "12345678", 8, 0);
	ck_assert_int_eq(glex_inject(NULL, &good), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_inject(side.ep, NULL), GLEX_INVALID_PARAM);
	req = good;
	req.next = &good;
	ck_assert_int_eq(glex_inject(side.ep, &req), GLEX_INVALID_PARAM);
	req = good;
	req.data = NULL;
	ck_assert_int_eq(glex_inject(side.ep, &req), GLEX_INVALID_PARAM);
	req = good;
	req.flag = GLEX_FLAG_LOCAL_EVT;
	ck_assert_int_eq(glex_inject(side.ep, &req), GLEX_INVALID_PARAM);
	req.flag = GLEX_FLAG_REMOTE_EVT; /* with a cookie of 0 */
	ck_assert_int_eq(glex_inject(side.ep, &req), GLEX_INVALID_PARAM);
	req = good;
	req.len = attr.max_rdma_data_len + 1;
	ck_assert_int_eq(glex_inject(side.ep, &req), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

/* As an immediate PUT: accepted, and told later. */
START_TEST(inject__wrong_key_or_place__error_request)
{
	unsigned char *data = made(5000, 4);
	struct glex_imm_rdma_req req;
	struct glex_err_req err;
	uint32_t n;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	for (int what = 0; what < 3; what++) {
		req = request(&side.card, data, 5000, 0);
		if (what == 0)
			req.rmt_key++;
		else if (what == 1)
			req.rmt_offset = LEN - 4999;
		else
			req.rmt_ep_addr.s.ep_num = 39;
		OK(glex_inject(side.ep, &req));
		n = 1;
		OK(glex_poll_error_req(side.ep, &n, &err));
		ck_assert_uint_eq(n, 1);
		ck_assert_int_eq(err.op, GLEX_ERR_OP_IMM_RDMA_PUT);
		ck_assert_int_eq(err.status, what == 2 ? GLEX_ERR_STATUS_DEST_VP_STOP : GLEX_ERR_STATUS_MMT);
	}
	free(data);
	side_close(&side);
}
END_TEST

/* ---- the opposite ------------------------------------------------------------ */

START_TEST(fetch__any_length_and_place__comes_and_nothing_else)
{
	static const uint32_t lens[] = {1, 7, 8, 95, 96, 97, 127, 128, 129, 255, 4096, 4097, 70000, LEN - 64};
	unsigned char *to = malloc(LEN);
	struct side side;

	ck_assert_ptr_nonnull(to);
	open_side(&side, GLEX_EP_TYPE_FAST, _i & 1);
	for (size_t l = 0; l < sizeof(lens) / sizeof(*lens); l++) {
		for (uint32_t offset = 1; offset < 64; offset += 13) {
			unsigned char *data = made(lens[l], (unsigned)l);
			struct glex_imm_rdma_req req = request(&side.card, to + 64 - offset, lens[l], offset);

			memcpy((unsigned char *)side.buf + offset, data, lens[l]);
			memset(to, 0xee, LEN);
			OK(glex_fetch(side.ep, &req));
			ck_assert_uint_eq(first_wrong(to + 64 - offset, lens[l], (unsigned)l), lens[l]);
			ck_assert_uint_eq(to[63 - offset], 0xee);
			if (64 - offset + lens[l] < LEN)
				ck_assert_uint_eq(to[64 - offset + lens[l]], 0xee);
			free(data);
		}
	}
	free(to);
	side_close(&side);
}
END_TEST

START_TEST(fetch__with_remote_event__owner_hears)
{
	unsigned char to[5000];
	struct glex_imm_rdma_req req;
	glex_event_t *event;
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	memset(side.buf, 7, sizeof(to));
	for (uint32_t len = 0; len <= sizeof(to); len += 1250) {
		memset(to, 0, sizeof(to));
		req = request(&side.card, to, len, 0);
		req.flag = GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_FENCE;
		req.rmt_evt.cookie_0 = len;
		req.rmt_evt.cookie_1 = 22;
		OK(glex_fetch(side.ep, &req));
		ck_assert_mem_eq(to, side.buf, len);
		OK(glex_probe_next_event(side.ep, &event));
		ck_assert_uint_eq(event->cookie_0, len);
		ck_assert_uint_eq(event->cookie_1, 22);
		OK(glex_discard_probed_event(side.ep));
	}
	side_close(&side);
}
END_TEST

START_TEST(fetch__normal_endpoint__not_implemented)
{
	struct glex_imm_rdma_req req;
	unsigned char to[8];
	struct side side;

	open_side(&side, GLEX_EP_TYPE_NORMAL, true);
	req = request(&side.card, to, 8, 0);
	ck_assert_int_eq(glex_fetch(side.ep, &req), GLEX_NOT_IMPLEMENTED);
	side_close(&side);
}
END_TEST

START_TEST(fetch__nonsense__invalid_param)
{
	struct glex_imm_rdma_req good, req;
	struct glex_device_attr attr;
	unsigned char to[8];
	struct side side;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	OK(glex_query_device(side.dev, &attr));
	good = request(&side.card, to, 8, 0);
	ck_assert_int_eq(glex_fetch(NULL, &good), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_fetch(side.ep, NULL), GLEX_INVALID_PARAM);
	req = good;
	req.next = &good;
	ck_assert_int_eq(glex_fetch(side.ep, &req), GLEX_INVALID_PARAM);
	req = good;
	req.data = NULL;
	ck_assert_int_eq(glex_fetch(side.ep, &req), GLEX_INVALID_PARAM);
	req = good;
	req.flag = GLEX_FLAG_REMOTE_EVT; /* with a cookie of 0 */
	ck_assert_int_eq(glex_fetch(side.ep, &req), GLEX_INVALID_PARAM);
	req = good;
	req.len = attr.max_rdma_data_len + 1;
	ck_assert_int_eq(glex_fetch(side.ep, &req), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

/* Told at once: the caller must know whether the bytes are there. */
START_TEST(fetch__wrong_key_place_or_access__nothing_comes)
{
	static const enum glex_err_req_status status[] = {GLEX_ERR_STATUS_MMT, GLEX_ERR_STATUS_MMT,
							  GLEX_ERR_STATUS_DEST_VP_STOP, GLEX_ERR_STATUS_MMT};
	unsigned char to[5000];
	struct glex_imm_rdma_req req;
	struct glex_err_req err;
	glex_mem_handle_t deaf;
	struct side side;
	uint32_t n;

	open_side(&side, GLEX_EP_TYPE_FAST, true);
	OK(glex_register_mem(side.ep, side.buf, LEN, GLEX_MEM_WRITE, &deaf));
	memset(to, 1, sizeof(to));
	for (int what = 0; what < 4; what++) {
		req = request(&side.card, to, sizeof(to), 0);
		if (what == 0)
			req.rmt_key++;
		else if (what == 1)
			req.rmt_offset = LEN - 4999;
		else if (what == 2)
			req.rmt_ep_addr.s.ep_num = 39;
		else
			req.rmt_mh = deaf;
		ck_assert_int_eq(glex_fetch(side.ep, &req), GLEX_ACCESS_ERR);
		n = 1;
		OK(glex_poll_error_req(side.ep, &n, &err));
		ck_assert_uint_eq(n, 1);
		ck_assert_int_eq(err.op, GLEX_ERR_OP_RDMA_GET);
		ck_assert_int_eq(err.status, status[what]);
	}
	for (size_t i = 0; i < sizeof(to); i++)
		ck_assert_uint_eq(to[i], 1);
	OK(glex_deregister_mem(side.ep, deaf));
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inject");
	TCase *tc = tcase_create("inject");

	own_job("inject");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, inject__any_length_and_place__arrives_and_nothing_else, 0, 2);
	tcase_add_loop_test(tc, prefetch_at__after_a_put__is_where_it_went, 0, 2);
	if (CAN_BE_ALONE) {
		tcase_add_loop_test(tc, put_place__after_a_put__is_where_it_went, 0, 2);
		tcase_add_test(tc, put_place__two_targets__each_until_it_ends);
		tcase_add_test(tc, put_place__process_with_threads__is_nowhere);
	}
	tcase_add_test(tc, put_place__others_execute__is_nowhere);
	tcase_add_test(tc, put_way_open__nonsense__invalid_param);
	tcase_add_test(tc, inject__with_remote_event__comes_after_the_bytes);
	tcase_add_test(tc, inject__nothing__moves_nothing_and_still_tells);
	tcase_add_test(tc, inject__normal_endpoint__not_implemented);
	tcase_add_test(tc, inject__nonsense__invalid_param);
	tcase_add_test(tc, inject__wrong_key_or_place__error_request);
	tcase_add_loop_test(tc, fetch__any_length_and_place__comes_and_nothing_else, 0, 2);
	tcase_add_test(tc, fetch__with_remote_event__owner_hears);
	tcase_add_test(tc, fetch__normal_endpoint__not_implemented);
	tcase_add_test(tc, fetch__nonsense__invalid_param);
	tcase_add_test(tc, fetch__wrong_key_place_or_access__nothing_comes);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
