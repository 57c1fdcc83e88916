/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_device.c - devices and their limits, endpoints and their addresses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/abi/shm_layout.h"
#include "test/lib/raw.h"
#include "test/lib/side.h"

/* ---- devices ----------------------------------------------------------------- */

START_TEST(num_of_device__always__one)
{
	uint32_t num = 0;

	OK(glex_num_of_device(&num));
	ck_assert_uint_eq(num, 1);
	RETURNS(glex_num_of_device(NULL), GLEX_INVALID_PARAM);
}
END_TEST

START_TEST(open_device__no_such_number__invalid_and_output_untouched)
{
	glex_device_handle_t dev = (void *)&dev;

	RETURNS(glex_open_device(1, &dev), GLEX_INVALID_PARAM);
	ck_assert_ptr_eq(dev, (void *)&dev);
	RETURNS(glex_open_device(0, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_close_device(NULL), GLEX_INVALID_PARAM);
}
END_TEST

START_TEST(query_device__limits__are_those_programs_were_written_for)
{
	struct glex_device_attr attr;
	glex_device_handle_t dev;

	OK(glex_open_device(0, &dev));
	OK(glex_query_device(dev, &attr));
	ck_assert_uint_eq(attr.max_fast_ep_num, 7);
	ck_assert_uint_eq(attr.max_ep_num, 39);
	ck_assert_uint_eq(attr.max_emulate_ep_num, 16384);
	ck_assert_uint_eq(attr.mmt_units, 4096);
	ck_assert_uint_ge(attr.att_units, 2048);
	ck_assert_uint_eq(attr.max_imm_mp_data_len, 112);
	ck_assert_uint_eq(attr.max_mp_data_len, 112);
	ck_assert_uint_eq(attr.max_imm_rdma_data_len, 96);
	ck_assert_uint_eq(attr.max_rdma_data_len, 0x8000000);
	ck_assert_uint_ge(attr.def_ep_dq_capacity, 128);
	ck_assert_uint_ge(attr.def_ep_eq_capacity, 300);
	ck_assert_uint_ge(attr.def_ep_mpq_capacity, 1000);
	ck_assert_uint_ge(attr.max_ep_dq_capacity, 8192);
	ck_assert_uint_ge(attr.max_ep_hc_eq_capacity, 1u << 20);
	ck_assert_uint_ge(attr.max_ep_hc_mpq_capacity, 1u << 20);
	ck_assert_uint_lt(attr.nic_id, 1u << 24);
	RETURNS(glex_query_device(dev, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_query_device(NULL, &attr), GLEX_INVALID_PARAM);
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(open_device__twice__same_nic_and_each_close_counts)
{
	struct glex_device_attr a, b;
	glex_device_handle_t first, second;

	OK(glex_open_device(0, &first));
	OK(glex_open_device(0, &second));
	OK(glex_query_device(first, &a));
	OK(glex_query_device(second, &b));
	ck_assert_mem_eq(&a, &b, sizeof(a));
	OK(glex_close_device(first));
	OK(glex_query_device(second, &b));
	OK(glex_close_device(second));
}
END_TEST

START_TEST(open_device__after_close__works_again)
{
	struct side side;
	int i;

	for (i = 0; i < 20; i++) {
		side_open(&side, GLEX_EP_TYPE_FAST, 64, i & 1);
		send_mp(&side, side.card.addr, "again", 5);
		expect_mp(side.ep, "again", 5);
		side_close(&side);
	}
}
END_TEST

START_TEST(device_struct__by_value__is_complete)
{
	struct {
		struct glex_device device;
		int more;
	} embedding;

	ck_assert_uint_ge(sizeof(embedding), sizeof(pthread_mutex_t));
}
END_TEST

/* ---- endpoints: numbers and capacities ------------------------------------------ */

static glex_ret_t create(glex_device_handle_t dev, enum glex_ep_type type, uint32_t num, glex_ep_handle_t *ep)
{
	struct glex_ep_attr attr = {.type = type, .num = num};

	return glex_create_ep(dev, &attr, ep);
}

START_TEST(create_ep__number_taken__no_ep_resource)
{
	static const struct {
		enum glex_ep_type type;
		uint32_t num;
	} rows[] = {{GLEX_EP_TYPE_FAST, 0},    {GLEX_EP_TYPE_FAST, 6},	   {GLEX_EP_TYPE_NORMAL, 8},
		    {GLEX_EP_TYPE_NORMAL, 39}, {GLEX_EP_TYPE_EMULATE, 40}, {GLEX_EP_TYPE_EMULATE, 16423}};
	glex_device_handle_t dev;
	glex_ep_handle_t ep, other;
	struct glex_ep_attr attr;
	glex_ep_addr_t addr;

	OK(glex_open_device(0, &dev));
	OK(create(dev, rows[_i].type, rows[_i].num, &ep));
	OK(glex_query_ep(ep, &attr));
	OK(glex_get_ep_addr(ep, &addr));
	ck_assert_uint_eq(attr.num, rows[_i].num);
	ck_assert_uint_eq(addr.ep_num, rows[_i].num);
	RETURNS(create(dev, rows[_i].type, rows[_i].num, &other), GLEX_NO_EP_RESOURCE);
	OK(glex_destroy_ep(ep));
	OK(create(dev, rows[_i].type, rows[_i].num, &other));
	OK(glex_destroy_ep(other));
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(create_ep__number_of_another_class__invalid)
{
	glex_device_handle_t dev;
	glex_ep_handle_t ep;

	OK(glex_open_device(0, &dev));
	RETURNS(create(dev, GLEX_EP_TYPE_FAST, 8, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, GLEX_EP_TYPE_NORMAL, 7, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, GLEX_EP_TYPE_NORMAL, 40, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, GLEX_EP_TYPE_EMULATE, 39, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, GLEX_EP_TYPE_EMULATE, 16424, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, GLEX_EP_TYPE_EMULATE, 65536, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, (enum glex_ep_type)4, GLEX_ANY_EP_NUM, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, GLEX_EP_TYPE_MANAGEMENT, GLEX_ANY_EP_NUM, &ep), GLEX_ACCESS_ERR);
	RETURNS(create(NULL, GLEX_EP_TYPE_FAST, GLEX_ANY_EP_NUM, &ep), GLEX_INVALID_PARAM);
	RETURNS(create(dev, GLEX_EP_TYPE_FAST, GLEX_ANY_EP_NUM, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_create_ep(dev, NULL, &ep), GLEX_INVALID_PARAM);
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(create_ep__fast_class_exhausted__another_type_works)
{
	glex_device_handle_t dev;
	glex_ep_handle_t ep[8 + 32], more, emulated;
	int i;

	OK(glex_open_device(0, &dev));
	for (i = 0; i < 8; i++)
		OK(create(dev, GLEX_EP_TYPE_FAST, GLEX_ANY_EP_NUM, &ep[i]));
	RETURNS(create(dev, GLEX_EP_TYPE_FAST, GLEX_ANY_EP_NUM, &more), GLEX_NO_EP_RESOURCE);
	for (; i < 40; i++)
		OK(create(dev, GLEX_EP_TYPE_NORMAL, GLEX_ANY_EP_NUM, &ep[i]));
	RETURNS(create(dev, GLEX_EP_TYPE_NORMAL, GLEX_ANY_EP_NUM, &more), GLEX_NO_EP_RESOURCE);
	OK(create(dev, GLEX_EP_TYPE_EMULATE, GLEX_ANY_EP_NUM, &emulated));
	OK(glex_destroy_ep(emulated));
	while (i > 0)
		OK(glex_destroy_ep(ep[--i]));
	OK(create(dev, GLEX_EP_TYPE_FAST, GLEX_ANY_EP_NUM, &more));
	OK(glex_destroy_ep(more));
	OK(glex_close_device(dev));
}
END_TEST

#define MANY 1500

START_TEST(create_ep__emulate__many_more_than_the_hardware_has)
{
	static glex_ep_handle_t ep[MANY];
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_EMULATE,
				    .num = GLEX_ANY_EP_NUM,
				    .dq_capacity = 1,
				    .mpq_capacity = 2,
				    .eq_capacity = 2};
	glex_imm_mp_req_t req = {.data = "x", .len = 1};
	glex_device_handle_t dev;
	int i;

	OK(glex_open_device(0, &dev));
	for (i = 0; i < MANY; i++)
		OK(glex_create_ep(dev, &attr, &ep[i]));
	OK(glex_get_ep_addr(ep[MANY - 1], &req.rmt_ep_addr));
	OK(glex_send_imm_mp(ep[0], &req, NULL));
	expect_mp(ep[MANY - 1], "x", 1);
	for (i = 0; i < MANY; i++)
		OK(glex_destroy_ep(ep[i]));
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(query_ep__capacities_0__device_defaults)
{
	struct glex_ep_attr attr = {.type = (enum glex_ep_type)_i, .num = GLEX_ANY_EP_NUM, .key = 77}, real;
	struct glex_device_attr limits;
	glex_device_handle_t dev;
	glex_ep_handle_t ep;

	OK(glex_open_device(0, &dev));
	OK(glex_query_device(dev, &limits));
	OK(glex_create_ep(dev, &attr, &ep));
	ck_assert_uint_eq(attr.num, GLEX_ANY_EP_NUM);
	OK(glex_query_ep(ep, &real));
	ck_assert_uint_ne(real.num, GLEX_ANY_EP_NUM);
	ck_assert_uint_eq(real.key, 77);
	ck_assert_int_eq(real.type, attr.type);
	ck_assert_uint_eq(real.dq_capacity, limits.def_ep_dq_capacity);
	ck_assert_uint_eq(real.mpq_capacity, limits.def_ep_mpq_capacity);
	ck_assert_uint_eq(real.eq_capacity, limits.def_ep_eq_capacity);
	RETURNS(glex_query_ep(ep, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_query_ep(NULL, &real), GLEX_INVALID_PARAM);
	OK(glex_destroy_ep(ep));
	RETURNS(glex_destroy_ep(NULL), GLEX_INVALID_PARAM);
	OK(glex_close_device(dev));
}
END_TEST

/* With an endpoint that outlives the last close, or without. */
START_TEST(retire_ep__until_the_device_is_closed__nobody_has_its_number)
{
	struct glex_ep_attr attr = {.num = GLEX_ANY_EP_NUM};
	glex_ep_handle_t ep, other;
	glex_ep_addr_t was, is;
	glex_device_handle_t dev;

	RETURNS(glex_retire_ep(NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_quiet_ep(NULL), GLEX_INVALID_PARAM);
	OK(glex_open_device(0, &dev));
	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_get_ep_addr(ep, &was));
	OK(glex_retire_ep(ep));
	OK(glex_create_ep(dev, &attr, &other));
	OK(glex_get_ep_addr(other, &is));
	ck_assert_uint_ne(is.ep_num, was.ep_num);
	if (_i == 0)
		OK(glex_destroy_ep(other));
	OK(glex_close_device(dev));
	if (_i == 1)
		OK(glex_destroy_ep(other));
	OK(glex_open_device(0, &dev));
	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_get_ep_addr(ep, &is));
	ck_assert_uint_eq(is.ep_num, was.ep_num);
	OK(glex_destroy_ep(ep));
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(query_ep__odd_capacities__at_least_what_was_asked)
{
	struct glex_ep_attr attr = {
		.num = GLEX_ANY_EP_NUM, .dq_capacity = 5000, .mpq_capacity = 4099, .eq_capacity = 3};
	struct glex_ep_attr real;
	glex_device_handle_t dev;
	glex_ep_handle_t ep;

	OK(glex_open_device(0, &dev));
	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_query_ep(ep, &real));
	ck_assert_uint_eq(real.dq_capacity, 8192);
	ck_assert_uint_eq(real.mpq_capacity, 8192);
	ck_assert_uint_eq(real.eq_capacity, 4);
	OK(glex_destroy_ep(ep));
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(create_ep__capacity_above_maximum__invalid_unless_high_capacity)
{
	struct glex_ep_attr attr = {.num = GLEX_ANY_EP_NUM};
	struct glex_device_attr limits;
	glex_device_handle_t dev;
	glex_ep_handle_t ep;

	OK(glex_open_device(0, &dev));
	OK(glex_query_device(dev, &limits));
	attr.dq_capacity = limits.max_ep_dq_capacity + 1;
	RETURNS(glex_create_ep(dev, &attr, &ep), GLEX_INVALID_PARAM);
	attr.dq_capacity = 0;
	attr.mpq_capacity = limits.max_ep_mpq_capacity + 1;
	RETURNS(glex_create_ep(dev, &attr, &ep), GLEX_INVALID_PARAM);
	attr.mpq_type = GLEX_MPQ_TYPE_HIGH_CAPACITY;
	attr.eq_capacity = 139240;
	RETURNS(glex_create_ep(dev, &attr, &ep), GLEX_INVALID_PARAM);
	attr.eq_type = GLEX_EQ_TYPE_HIGH_CAPACITY;
	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_destroy_ep(ep));
	attr.eq_capacity = limits.max_ep_hc_eq_capacity + 1;
	RETURNS(glex_create_ep(dev, &attr, &ep), GLEX_INVALID_PARAM);
	OK(glex_close_device(dev));
}
END_TEST

START_TEST(create_ep__largest_high_capacity_queues__work)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_NORMAL,
				    .mpq_type = GLEX_MPQ_TYPE_HIGH_CAPACITY,
				    .eq_type = GLEX_EQ_TYPE_HIGH_CAPACITY,
				    .num = GLEX_ANY_EP_NUM};
	struct glex_device_attr limits;
	glex_device_handle_t dev;
	struct glex_ep_attr real;
	struct side side;

	OK(glex_open_device(0, &dev));
	OK(glex_query_device(dev, &limits));
	attr.dq_capacity = limits.max_ep_dq_capacity;
	attr.mpq_capacity = limits.max_ep_hc_mpq_capacity;
	attr.eq_capacity = limits.max_ep_hc_eq_capacity;
	side_open_as(&side, &attr, 4096, false);
	OK(glex_query_ep(side.ep, &real));
	ck_assert_uint_eq(real.mpq_capacity, limits.max_ep_hc_mpq_capacity);
	ck_assert_uint_eq(real.eq_capacity, limits.max_ep_hc_eq_capacity);
	send_mp(&side, side.card.addr, "large", 5);
	expect_mp(side.ep, "large", 5);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	side_close(&side);
	OK(glex_close_device(dev));
}
END_TEST

/* ---- addresses -------------------------------------------------------------------- */

START_TEST(compose_ep_addr__own_numbers__equals_get_ep_addr)
{
	struct glex_ep_attr attr = {.type = (enum glex_ep_type)_i, .num = GLEX_ANY_EP_NUM}, real;
	struct glex_device_attr limits;
	glex_ep_addr_t got, made;
	glex_device_handle_t dev;
	uint32_t nic, num;
	glex_ep_handle_t ep;

	OK(glex_open_device(0, &dev));
	OK(glex_query_device(dev, &limits));
	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_query_ep(ep, &real));
	OK(glex_get_ep_addr(ep, &got));
	memset(&made, 0xff, sizeof(made));
	OK(glex_compose_ep_addr(limits.nic_id, real.num, real.type, &made));
	ck_assert_uint_eq(made.v, got.v);
	OK(glex_decompose_ep_addr(got, real.type, &nic, &num));
	ck_assert_uint_eq(nic, limits.nic_id);
	ck_assert_uint_eq(num, real.num);
	ck_assert_uint_eq(got.s.ep_num, real.num);
	ck_assert_uint_eq(got.s.nic_id, limits.nic_id);
	RETURNS(glex_get_ep_addr(ep, NULL), GLEX_INVALID_PARAM);
	OK(glex_destroy_ep(ep));
	OK(glex_close_device(dev));
}
END_TEST

/* As programs do it that hand addresses on in files: the fields first, then the whole. */
static void through_text(uint16_t low, uint16_t mid, uint32_t high, uint64_t whole, uint16_t out[2], uint32_t *out_high,
			 uint64_t *out_whole)
{
	char text[64];
	unsigned a, b, c;
	unsigned long long v;

	snprintf(text, sizeof(text), "%04x:%04x:%08x:%016llx", low, mid, high, (unsigned long long)whole);
	ck_assert_int_eq(sscanf(text, "%4x:%4x:%8x:%16llx", &a, &b, &c, &v), 4);
	out[0] = (uint16_t)a;
	out[1] = (uint16_t)b;
	*out_high = c;
	*out_whole = v;
}

START_TEST(ep_addr_and_mem_handle__through_text__still_good)
{
	glex_mem_handle_t mh = {.v = 0};
	glex_ep_addr_t addr = {.v = 0};
	uint16_t half[2];
	struct card card;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 4096, _i);
	card = side.card;
	through_text(card.addr.ep_num, card.addr.resv, card.addr.nic_id, card.addr.v, half, &addr.nic_id, &addr.v);
	ck_assert_uint_eq(addr.v, card.addr.v);
	ck_assert_uint_eq(addr.ep_num, half[0]);
	ck_assert_uint_eq(addr.resv, half[1]);
	through_text(card.mh.s.mmt_index, card.mh.s.att_base_off, card.mh.s.att_index, card.mh.v, half, &mh.s.att_index,
		     &mh.v);
	ck_assert_uint_eq(mh.v, card.mh.v);
	ck_assert_uint_ne(mh.v, 0);
	card.addr = addr;
	card.mh = mh;
	rdma_done(&side, &card, GLEX_RDMA_TYPE_GET, 0, 4096);
	side_close(&side);
}
END_TEST

/* ---- sending to oneself -------------------------------------------------------------- */

START_TEST(self__mp_put_get__arrive)
{
	struct glex_imm_rdma_req imm = {.data = "immediately", .len = 11};
	struct side side;
	struct glex_rdma_req req;

	side_open(&side, type_of(_i), 8192, is_mapped(_i));
	send_mp(&side, side.card.addr, "to myself", 9);
	expect_mp(side.ep, "to myself", 9);
	fill(side.buf, 4096, 3);
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	req.rmt_offset = 4096;
	req.flag = GLEX_FLAG_REMOTE_EVT;
	req.rmt_evt.cookie_1 = 1;
	post_rdma(side.ep, &req);
	take_event(side.ep);
	expect_filled(side.buf + 4096, 4096, 3);
	fill(side.buf + 4096, 4096, 4);
	req.type = GLEX_RDMA_TYPE_GET;
	post_rdma(side.ep, &req);
	take_event(side.ep);
	expect_filled(side.buf, 4096, 4);
	imm.rmt_ep_addr = side.card.addr;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	imm.rmt_offset = 5;
	post_imm(side.ep, &imm);
	UNTIL(memcmp(side.buf + 5, "immediately", 11) == 0);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

START_TEST(several_endpoints__one_process__each_gets_its_own)
{
	glex_ep_handle_t ep[7];
	glex_imm_mp_req_t req = {.len = sizeof(int)};
	glex_device_handle_t dev;
	glex_ep_addr_t from, want;
	unsigned char got[112];
	uint32_t len;
	int i, j;

	OK(glex_open_device(0, &dev));
	for (i = 0; i < 7; i++)
		OK(create(dev, i & 1 ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST, GLEX_ANY_EP_NUM, &ep[i]));
	for (i = 0; i < 7; i++)
		for (j = 0; j < 7; j++) {
			OK(glex_get_ep_addr(ep[j], &req.rmt_ep_addr));
			req.data = &j;
			OK(glex_send_imm_mp(ep[i], &req, NULL));
		}
	for (j = 0; j < 7; j++)
		for (i = 0; i < 7; i++) {
			OK(glex_receive_mp(ep[j], WAIT_MS, &from, got, &len));
			OK(glex_get_ep_addr(ep[i], &want));
			ck_assert_uint_eq(len, sizeof(int));
			ck_assert_mem_eq(got, &j, sizeof(j));
			ck_assert_uint_eq(from.v, want.v);
		}
	for (i = 0; i < 7; i++)
		OK(glex_destroy_ep(ep[i]));
	OK(glex_close_device(dev));
}
END_TEST

/* ---- the end ---------------------------------------------------------------------------- */

START_TEST(close_device__endpoints_alive__they_go_on)
{
	struct side side;

	side_open(&side, GLEX_EP_TYPE_NORMAL, 64, false);
	OK(glex_close_device(side.dev));
	send_mp(&side, side.card.addr, "alive", 5);
	expect_mp(side.ep, "alive", 5);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	OK(glex_destroy_ep(side.ep));
	free(side.buf);
	/* and the next open is a fresh one */
	side_open(&side, GLEX_EP_TYPE_FAST, 64, true);
	side_close(&side);
}
END_TEST

static void leave_all_open(int fd, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 64, true);
	OK(glex_close_device(side.dev));
	swap_cards(&side, fd);
	exit(EXIT_SUCCESS);
}

START_TEST(process__ends_without_destroying__endpoint_is_gone_for_others)
{
	struct peer peer = peer_start(leave_all_open, NULL);
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	card = swap_cards(&side, peer.fd);
	peer_join(&peer);
	UNTIL(({
		uint32_t num = 0;

		send_mp(&side, card.addr, "?", 1);
		OK(glex_poll_error_req(side.ep, &num, NULL));
		num != 0;
	}));
	expect_error(side.ep, GLEX_ERR_OP_IMM_MP, GLEX_ERR_STATUS_DEST_VP_STOP);
	side_close(&side);
}
END_TEST

static void leave_properly(int fd, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 64, true);
	swap_cards(&side, fd);
	meet(fd);
	side_close(&side);
}

/* Takes what has died since *next, at most 8; waits until something has. */
static uint32_t who_died(const struct side *side, uint64_t *next, struct glex_dead *list)
{
	uint32_t num;

	UNTIL(({
		num = 8;
		OK(glex_poll_dead(side->dev, next, &num, list));
		num != 0;
	}));
	return num;
}

START_TEST(poll_dead__one_leaves_and_one_just_ends__the_second_is_told_to_who_never_sent_to_it)
{
	struct peer leaver = peer_start(leave_properly, NULL), ender = peer_start(leave_all_open, NULL);
	struct glex_dead list[8];
	uint64_t next = 1, born;
	uint32_t num = 0;
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_poll_dead(side.dev, &next, &num, NULL));
	born = next;
	swap_cards(&side, leaver.fd);
	meet(leaver.fd);
	peer_join(&leaver);
	card = swap_cards(&side, ender.fd);
	peer_join(&ender);
	num = who_died(&side, &next, list);
	ck_assert_uint_eq(num, 1);
	ck_assert_uint_eq(list[0].field_mask, GLEX_DEAD_FIELDS);
	ck_assert_uint_eq(list[0].addr.v, card.addr.v);
	ck_assert_uint_eq(list[0].number, born);
	ck_assert_uint_eq(next, born + 1);
	num = 8;
	OK(glex_poll_dead(side.dev, &next, &num, list));
	ck_assert_uint_eq(num, 0);
	next = born; /* whoever asks for it finds it again */
	ck_assert_uint_eq(who_died(&side, &next, list), 1);
	RETURNS(glex_poll_dead(NULL, &next, &num, list), GLEX_INVALID_PARAM);
	RETURNS(glex_poll_dead(side.dev, NULL, &num, list), GLEX_INVALID_PARAM);
	RETURNS(glex_poll_dead(side.dev, &next, NULL, list), GLEX_INVALID_PARAM);
	num = 1;
	RETURNS(glex_poll_dead(side.dev, &next, &num, NULL), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

#define LOT 500u /* endpoints of one client; as many clients as it takes have them, one after the other */

/* So many endpoints die that the list in memory has lost what was before. */
static void many_die(void)
{
	struct emu_ctl_msg msg;
	char name[128];
	uint32_t n, i;
	int ctl;

	raw_name(name, sizeof(name));
	for (n = 0; n < EMU_DEAD_KEPT + LOT; n += LOT) {
		ctl = raw_dial(name);
		ck_assert_int_ge(ctl, 0);
		raw_hello(&msg, false);
		ck_assert_int_eq(raw_call(ctl, EMU_CTL_HELLO, &msg, -1, NULL), EMU_CTL_OK);
		for (i = 0; i < LOT; i++) {
			memset(&msg, 0, sizeof(msg));
			msg.port = (struct emu_ctl_port){.ep_num = EMU_UNSET,
							 .type = GLEX_EP_TYPE_EMULATE,
							 .dq_capacity = 64,
							 .mpq_capacity = 64,
							 .eq_capacity = 64};
			SURE(raw_call(ctl, EMU_CTL_PORT_CREATE, &msg, -1, NULL) == EMU_CTL_OK);
		}
		close(ctl);
	}
}

static uint64_t deaths_of(const struct side *side)
{
	uint64_t next = 0;
	uint32_t none = 0;

	OK(glex_poll_dead(side->dev, &next, &none, NULL));
	return next;
}

START_TEST(poll_dead__more_die_than_are_kept__the_first_is_not_missed)
{
	uint64_t next, born, end, last;
	struct glex_dead list[8];
	uint32_t num, i, found = 0;
	struct peer ender;
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	next = born = deaths_of(&side);
	ender = peer_start(leave_all_open, NULL);
	card = swap_cards(&side, ender.fd);
	peer_join(&ender);
	UNTIL(deaths_of(&side) > born);
	many_die();
	end = born + 1 + (EMU_DEAD_KEPT + LOT + LOT - 1) / LOT * LOT;
	UNTIL(deaths_of(&side) == end);
	for (last = born; next < end; last = next) {
		num = 8;
		OK(glex_poll_dead(side.dev, &next, &num, list));
		SURE(num > 0 && next > last);
		for (i = 0; i < num; i++) {
			SURE(list[i].field_mask == GLEX_DEAD_FIELDS && list[i].number >= last);
			last = list[i].number + 1;
			found += list[i].addr.v == card.addr.v && list[i].number == born;
		}
		SURE(next == last);
	}
	ck_assert_uint_eq(found, 1);
	num = 8;
	OK(glex_poll_dead(side.dev, &next, &num, list));
	ck_assert_uint_eq(num, 0);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device");
	TCase *tc = tcase_create("device and endpoint");

	own_job("device");
	tcase_add_test(tc, num_of_device__always__one);
	tcase_add_test(tc, open_device__no_such_number__invalid_and_output_untouched);
	tcase_add_test(tc, query_device__limits__are_those_programs_were_written_for);
	tcase_add_test(tc, open_device__twice__same_nic_and_each_close_counts);
	tcase_add_test(tc, open_device__after_close__works_again);
	tcase_add_test(tc, device_struct__by_value__is_complete);
	tcase_add_loop_test(tc, create_ep__number_taken__no_ep_resource, 0, 6);
	tcase_add_test(tc, create_ep__number_of_another_class__invalid);
	tcase_add_test(tc, create_ep__fast_class_exhausted__another_type_works);
	tcase_add_test(tc, create_ep__emulate__many_more_than_the_hardware_has);
	tcase_add_loop_test(tc, query_ep__capacities_0__device_defaults, 0, 3);
	tcase_add_loop_test(tc, retire_ep__until_the_device_is_closed__nobody_has_its_number, 0, 2);
	tcase_add_test(tc, query_ep__odd_capacities__at_least_what_was_asked);
	tcase_add_test(tc, create_ep__capacity_above_maximum__invalid_unless_high_capacity);
	tcase_add_test(tc, create_ep__largest_high_capacity_queues__work);
	tcase_add_loop_test(tc, compose_ep_addr__own_numbers__equals_get_ep_addr, 0, 3);
	tcase_add_loop_test(tc, ep_addr_and_mem_handle__through_text__still_good, 0, 2);
	tcase_add_loop_test(tc, self__mp_put_get__arrive, 0, KINDS);
	tcase_add_test(tc, several_endpoints__one_process__each_gets_its_own);
	tcase_add_test(tc, close_device__endpoints_alive__they_go_on);
	tcase_add_test(tc, process__ends_without_destroying__endpoint_is_gone_for_others);
	tcase_add_test(tc, poll_dead__one_leaves_and_one_just_ends__the_second_is_told_to_who_never_sent_to_it);
	tcase_add_test(tc, poll_dead__more_die_than_are_kept__the_first_is_not_missed);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
