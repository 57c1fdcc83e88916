/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_header.c - pins glex.h: each size, offset, member type, constant and
 * prototype, and that the spellings of all generations of clients compile.
 *
 * A wrong pin does not compile, and the message names it; the same lists are
 * walked at run time, so that the test prints what it holds.  The offsets are
 * those of 64-bit little-endian machines, where programs pass addresses and
 * handles as text or raw bytes.
 */
#include <glex.h>

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/suite.h"

/* clang-format off */

#define CONSTANTS(X) \
	X(GLEX_SUCCESS, 0) \
	X(GLEX_SYS_ERR, 1) \
	X(GLEX_INVALID_PARAM, 2) \
	X(GLEX_NO_EP_RESOURCE, 3) \
	X(GLEX_NO_MEM_RESOURCE, 4) \
	X(GLEX_BUSY, 5) \
	X(GLEX_NO_MP, 6) \
	X(GLEX_NO_EVENT, 7) \
	X(GLEX_INTR, 8) \
	X(GLEX_ACCESS_ERR, 9) \
	X(GLEX_NOT_IMPLEMENTED, 10) \
	\
	X(GLEX_EP_TYPE_FAST, 0) \
	X(GLEX_EP_TYPE_NORMAL, 1) \
	X(GLEX_EP_TYPE_EMULATE, 2) \
	X(GLEX_EP_TYPE_MANAGEMENT, 3) \
	\
	X(GLEX_MPQ_TYPE_NORMAL, 0) \
	X(GLEX_MPQ_TYPE_HIGH_CAPACITY, 1) \
	X(GLEX_MPQ_TYPE_IOMMU, 2) \
	\
	X(GLEX_EQ_TYPE_NORMAL, 0) \
	X(GLEX_EQ_TYPE_HIGH_CAPACITY, 1) \
	X(GLEX_EQ_TYPE_IOMMU, 2) \
	\
	X(GLEX_ANY_EP_NUM, 0xffffffffU) \
	X(GLEX_EP_DQ_CAPACITY_DEFAULT, 0) \
	X(GLEX_EP_MPQ_CAPACITY_DEFAULT, 0) \
	X(GLEX_EP_EQ_CAPACITY_DEFAULT, 0) \
	\
	X(GLEX_MEM_READ, 1) \
	X(GLEX_MEM_WRITE, 2) \
	X(GLEX_MEM_IOMMU, 4) \
	\
	X(GLEX_FLAG_LOCAL_INTR, 1 << 0) \
	X(GLEX_FLAG_REMOTE_INTR, 1 << 1) \
	X(GLEX_FLAG_FENCE, 1 << 2) \
	X(GLEX_FLAG_LOCAL_EVT, 1 << 3) \
	X(GLEX_FLAG_REMOTE_EVT, 1 << 4) \
	X(GLEX_FLAG_NO_CONNECTION, 1 << 5) \
	X(GLEX_FLAG_ROUTE_ADAPTIVE, 1 << 6) \
	X(GLEX_FLAG_COLL, 1 << 7) \
	X(GLEX_FLAG_COLL_SEQ_START, 1 << 8) \
	X(GLEX_FLAG_COLL_SEQ_TAIL, 1 << 9) \
	X(GLEX_FLAG_COLL_COUNTER, 1 << 10) \
	X(GLEX_FLAG_COLL_CP_DATA, 1 << 11) \
	X(GLEX_FLAG_COLL_CP_SWAP_DATA, 1 << 12) \
	X(GLEX_FLAG_COLL_CP_SWAP_ADDR, 1 << 13) \
	X(GLEX_FLAG_COLL_SWAP, 1 << 14) \
	X(GLEX_FLAG_COLL_SWAP_EP, 1 << 15) \
	X(GLEX_FLAG_COLL_SWAP_SET, 1 << 16) \
	X(GLEX_FLAG_COLL_REDUCE, 1 << 17) \
	X(GLEX_FLAG_COLL_REDUCE_RESULT, 1 << 18) \
	\
	X(GLEX_RDMA_TYPE_PUT, 0) \
	X(GLEX_RDMA_TYPE_GET, 1) \
	\
	X(GLEX_COLL_REDUCE_SUM_FLOAT, 0) \
	X(GLEX_COLL_REDUCE_MAXLOC_FLOAT, 1) \
	X(GLEX_COLL_REDUCE_MINLOC_FLOAT, 2) \
	X(GLEX_COLL_REDUCE_SUM_SIGNED, 3) \
	X(GLEX_COLL_REDUCE_MAXLOC_SIGNED, 4) \
	X(GLEX_COLL_REDUCE_MINLOC_SIGNED, 5) \
	X(GLEX_COLL_REDUCE_SUM_UNSIGNED, 6) \
	X(GLEX_COLL_REDUCE_MAXLOC_UNSIGNED, 7) \
	X(GLEX_COLL_REDUCE_MINLOC_UNSIGNED, 8) \
	X(GLEX_COLL_REDUCE_LAND, 9) \
	X(GLEX_COLL_REDUCE_LOR, 10) \
	X(GLEX_COLL_REDUCE_LXOR, 11) \
	X(GLEX_COLL_REDUCE_BAND, 12) \
	X(GLEX_COLL_REDUCE_BOR, 13) \
	X(GLEX_COLL_REDUCE_BXOR, 14) \
	\
	X(GLEX_COLL_REDUCE_DATA_BITS_32, 0) \
	X(GLEX_COLL_REDUCE_DATA_BITS_64, 1) \
	\
	X(GLEX_COLL_MAX_BRANCH_DEGREE, 32) \
	X(GLEX_COLL_REDUCE_MAX_DATA_UNITS, 6) \
	X(GLEX_COLL_SET_MAX_NUM, 14) \
	\
	X(GLEX_ERR_OP_IMM_MP, 0) \
	X(GLEX_ERR_OP_MP, 1) \
	X(GLEX_ERR_OP_IMM_RDMA_PUT, 2) \
	X(GLEX_ERR_OP_RDMA_PUT, 3) \
	X(GLEX_ERR_OP_RDMA_GET, 4) \
	\
	X(GLEX_ERR_STATUS_FORMAT, 0) \
	X(GLEX_ERR_STATUS_SRC_HOST_DEAD, 1) \
	X(GLEX_ERR_STATUS_DEST_HOST_DEAD, 2) \
	X(GLEX_ERR_STATUS_PCIE_READ, 3) \
	X(GLEX_ERR_STATUS_ATT, 4) \
	X(GLEX_ERR_STATUS_MMT, 5) \
	X(GLEX_ERR_STATUS_SRC_VP_STOP, 6) \
	X(GLEX_ERR_STATUS_DEST_VP_STOP, 7) \
	X(GLEX_ERR_STATUS_DEST_MPQ_FULL, 8) \
	X(GLEX_ERR_STATUS_DEST_EQ_FULL, 9) \
	X(GLEX_ERR_STATUS_CONNECTION_MAX_RETRY, 10) \
	X(GLEX_ERR_STATUS_CONNECTION_RDMA_GET, 11) \
	X(GLEX_ERR_STATUS_CONNECTION_NACK, 12) \
	X(GLEX_ERR_STATUS_CONNECTION_ECC, 13) \
	/* end */

#define SIZES(X) \
	X(glex_device_t, sizeof(pthread_mutex_t)) \
	X(struct glex_device_attr, 72) \
	X(glex_device_attr_t, 72) \
	X(struct glex_ep, 24) \
	X(glex_ep_t, 24) \
	X(glex_ep_addr_t, 8) \
	X(struct glex_ep_attr, 32) \
	X(glex_event_t, 16) \
	X(glex_mem_handle_t, 8) \
	X(struct glex_imm_mp_req, 40) \
	X(glex_imm_mp_req_t, 40) \
	X(struct glex_imm_rdma_req, 80) \
	X(glex_imm_rdma_req_t, 80) \
	X(struct glex_rdma_req, 96) \
	X(glex_rdma_req_t, 96) \
	X(union glex_coll_data_loc, 16) \
	X(struct glex_err_req, 40) \
	X(enum glex_ret, 4) \
	X(enum glex_ep_type, 4) \
	X(enum glex_flag, 4) \
	/* end */

/* type, member, offset, type of the member */
#define MEMBERS(X) \
	X(struct glex_device_attr, nic_id, 0, uint32_t) \
	X(struct glex_device_attr, max_fast_ep_num, 4, uint32_t) \
	X(struct glex_device_attr, max_ep_num, 8, uint32_t) \
	X(struct glex_device_attr, max_emulate_ep_num, 12, uint32_t) \
	X(struct glex_device_attr, mmt_units, 16, uint32_t) \
	X(struct glex_device_attr, att_units, 20, uint32_t) \
	X(struct glex_device_attr, max_imm_mp_data_len, 24, uint32_t) \
	X(struct glex_device_attr, max_mp_data_len, 28, uint32_t) \
	X(struct glex_device_attr, max_imm_rdma_data_len, 32, uint32_t) \
	X(struct glex_device_attr, max_rdma_data_len, 36, uint32_t) \
	X(struct glex_device_attr, def_ep_dq_capacity, 40, uint32_t) \
	X(struct glex_device_attr, def_ep_eq_capacity, 44, uint32_t) \
	X(struct glex_device_attr, def_ep_mpq_capacity, 48, uint32_t) \
	X(struct glex_device_attr, max_ep_dq_capacity, 52, uint32_t) \
	X(struct glex_device_attr, max_ep_eq_capacity, 56, uint32_t) \
	X(struct glex_device_attr, max_ep_mpq_capacity, 60, uint32_t) \
	X(struct glex_device_attr, max_ep_hc_eq_capacity, 64, uint32_t) \
	X(struct glex_device_attr, max_ep_hc_mpq_capacity, 68, uint32_t) \
	\
	X(glex_device_t, mutex, 0, pthread_mutex_t) \
	\
	X(struct glex_ep, send_imm_mp, 0, glex_ret_t (*)(struct glex_ep *, struct glex_imm_mp_req *, struct glex_imm_mp_req **)) \
	X(struct glex_ep, imm_rdma, 8, glex_ret_t (*)(struct glex_ep *, struct glex_imm_rdma_req *, struct glex_imm_rdma_req **)) \
	X(struct glex_ep, rdma, 16, glex_ret_t (*)(struct glex_ep *, struct glex_rdma_req *, struct glex_rdma_req **)) \
	\
	X(glex_ep_addr_t, ep_num, 0, uint16_t) \
	X(glex_ep_addr_t, resv, 2, uint16_t) \
	X(glex_ep_addr_t, nic_id, 4, uint32_t) \
	X(glex_ep_addr_t, s.ep_num, 0, uint16_t) \
	X(glex_ep_addr_t, s.resv, 2, uint16_t) \
	X(glex_ep_addr_t, s.nic_id, 4, uint32_t) \
	X(glex_ep_addr_t, v, 0, uint64_t) \
	\
	X(struct glex_ep_attr, type, 0, enum glex_ep_type) \
	X(struct glex_ep_attr, mpq_type, 4, enum glex_mpq_type) \
	X(struct glex_ep_attr, eq_type, 8, enum glex_eq_type) \
	X(struct glex_ep_attr, num, 12, uint32_t) \
	X(struct glex_ep_attr, key, 16, uint32_t) \
	X(struct glex_ep_attr, dq_capacity, 20, uint32_t) \
	X(struct glex_ep_attr, mpq_capacity, 24, uint32_t) \
	X(struct glex_ep_attr, eq_capacity, 28, uint32_t) \
	\
	X(glex_event_t, cookie_0, 0, uint64_t) \
	X(glex_event_t, cookie_1, 8, uint64_t) \
	X(glex_event_t, cookie[0], 0, uint64_t) \
	X(glex_event_t, cookie[1], 8, uint64_t) \
	\
	X(glex_mem_handle_t, mmt_index, 0, uint16_t) \
	X(glex_mem_handle_t, att_base_off, 2, uint16_t) \
	X(glex_mem_handle_t, att_index, 4, uint32_t) \
	X(glex_mem_handle_t, s.mmt_index, 0, uint16_t) \
	X(glex_mem_handle_t, s.att_base_off, 2, uint16_t) \
	X(glex_mem_handle_t, s.att_index, 4, uint32_t) \
	X(glex_mem_handle_t, v, 0, uint64_t) \
	\
	X(struct glex_imm_mp_req, rmt_ep_addr, 0, glex_ep_addr_t) \
	X(struct glex_imm_mp_req, data, 8, void *) \
	X(struct glex_imm_mp_req, len, 16, uint32_t) \
	X(struct glex_imm_mp_req, coll_counter, 20, uint32_t) \
	X(struct glex_imm_mp_req, flag, 24, int32_t) \
	X(struct glex_imm_mp_req, next, 32, struct glex_imm_mp_req *) \
	\
	X(struct glex_imm_rdma_req, rmt_ep_addr, 0, glex_ep_addr_t) \
	X(struct glex_imm_rdma_req, data, 8, void *) \
	X(struct glex_imm_rdma_req, len, 16, uint32_t) \
	X(struct glex_imm_rdma_req, rmt_mh, 24, glex_mem_handle_t) \
	X(struct glex_imm_rdma_req, rmt_offset, 32, uint32_t) \
	X(struct glex_imm_rdma_req, rmt_evt, 40, glex_event_t) \
	X(struct glex_imm_rdma_req, rmt_key, 56, uint32_t) \
	X(struct glex_imm_rdma_req, coll_counter, 60, uint32_t) \
	X(struct glex_imm_rdma_req, flag, 64, int32_t) \
	X(struct glex_imm_rdma_req, next, 72, struct glex_imm_rdma_req *) \
	\
	X(struct glex_rdma_req, rmt_ep_addr, 0, glex_ep_addr_t) \
	X(struct glex_rdma_req, local_mh, 8, glex_mem_handle_t) \
	X(struct glex_rdma_req, local_offset, 16, uint32_t) \
	X(struct glex_rdma_req, len, 20, uint32_t) \
	X(struct glex_rdma_req, rmt_mh, 24, glex_mem_handle_t) \
	X(struct glex_rdma_req, rmt_offset, 32, uint32_t) \
	X(struct glex_rdma_req, type, 36, enum glex_rdma_type) \
	X(struct glex_rdma_req, local_evt, 40, glex_event_t) \
	X(struct glex_rdma_req, rmt_evt, 56, glex_event_t) \
	X(struct glex_rdma_req, rmt_key, 72, uint32_t) \
	X(struct glex_rdma_req, coll_counter, 76, uint32_t) \
	X(struct glex_rdma_req, coll_set_num, 80, uint32_t) \
	X(struct glex_rdma_req, flag, 84, int32_t) \
	X(struct glex_rdma_req, next, 88, struct glex_rdma_req *) \
	\
	X(union glex_coll_data_loc, int32_s.data, 0, int32_t) \
	X(union glex_coll_data_loc, int32_s.location, 4, uint32_t) \
	X(union glex_coll_data_loc, uint32_s.data, 0, uint32_t) \
	X(union glex_coll_data_loc, uint32_s.location, 4, uint32_t) \
	X(union glex_coll_data_loc, int64_s.data, 0, int64_t) \
	X(union glex_coll_data_loc, int64_s.location, 8, uint32_t) \
	X(union glex_coll_data_loc, uint64_s.data, 0, uint64_t) \
	X(union glex_coll_data_loc, uint64_s.location, 8, uint32_t) \
	X(union glex_coll_data_loc, float_s.data, 0, float) \
	X(union glex_coll_data_loc, float_s.location, 4, uint32_t) \
	X(union glex_coll_data_loc, double_s.data, 0, double) \
	X(union glex_coll_data_loc, double_s.location, 8, uint32_t) \
	\
	X(struct glex_err_req, op, 0, enum glex_err_req_op) \
	X(struct glex_err_req, status, 4, enum glex_err_req_status) \
	X(struct glex_err_req, rmt_nic_id, 8, uint32_t) \
	X(struct glex_err_req, rmt_ep_num, 12, uint32_t) \
	X(struct glex_err_req, data0, 16, uint64_t) \
	X(struct glex_err_req, data1, 24, uint64_t) \
	X(struct glex_err_req, data2, 32, uint64_t) \
	/* end */

/* All return glex_ret_t. */
#define CALLS(X) \
	X(glex_num_of_device, (uint32_t *)) \
	X(glex_open_device, (uint32_t, glex_device_handle_t *)) \
	X(glex_close_device, (glex_device_handle_t)) \
	X(glex_query_device, (glex_device_handle_t, struct glex_device_attr *)) \
	X(glex_create_ep, (glex_device_handle_t, struct glex_ep_attr *, glex_ep_handle_t *)) \
	X(glex_destroy_ep, (glex_ep_handle_t)) \
	X(glex_query_ep, (glex_ep_handle_t, struct glex_ep_attr *)) \
	X(glex_get_ep_addr, (glex_ep_handle_t, glex_ep_addr_t *)) \
	X(glex_compose_ep_addr, (uint32_t, uint32_t, enum glex_ep_type, glex_ep_addr_t *)) \
	X(glex_decompose_ep_addr, (glex_ep_addr_t, enum glex_ep_type, uint32_t *, uint32_t *)) \
	X(glex_register_mem, (glex_ep_handle_t, void *, uint64_t, int32_t, glex_mem_handle_t *)) \
	X(glex_deregister_mem, (glex_ep_handle_t, glex_mem_handle_t)) \
	X(glex_send_imm_mp, (glex_ep_handle_t, struct glex_imm_mp_req *, struct glex_imm_mp_req **)) \
	X(glex_imm_rdma, (glex_ep_handle_t, struct glex_imm_rdma_req *, struct glex_imm_rdma_req **)) \
	X(glex_rdma, (glex_ep_handle_t, struct glex_rdma_req *, struct glex_rdma_req **)) \
	X(glex_probe_first_mp, (glex_ep_handle_t, int32_t, glex_ep_addr_t *, void **, uint32_t *)) \
	X(glex_probe_next_mp, (glex_ep_handle_t, glex_ep_addr_t *, void **, uint32_t *)) \
	X(glex_discard_probed_mp, (glex_ep_handle_t)) \
	X(glex_receive_mp, (glex_ep_handle_t, int32_t, glex_ep_addr_t *, void *, uint32_t *)) \
	X(glex_probe_first_event, (glex_ep_handle_t, int32_t, glex_event_t **)) \
	X(glex_probe_next_event, (glex_ep_handle_t, glex_event_t **)) \
	X(glex_discard_probed_event, (glex_ep_handle_t)) \
	X(glex_poll_error_req, (glex_ep_handle_t, uint32_t *, struct glex_err_req *)) \
	X(glex_coll_compose_mp_swap_addr_data, (glex_ep_handle_t, glex_mem_handle_t, uint32_t, uint32_t, void *, uint32_t *)) \
	X(glex_coll_compose_mp_reduce_data, (union glex_coll_data_loc *, uint32_t, enum glex_coll_reduce_data_bits, enum glex_coll_reduce_op, uint32_t, void *, uint32_t *)) \
	X(glex_coll_decompose_mp_reduce_data, (union glex_coll_data_loc *, uint32_t, enum glex_coll_reduce_data_bits, void *)) \
	X(glex_coll_compose_mp_set_data, (glex_ep_addr_t *, uint32_t, void *, uint32_t *)) \
	/* end */

/* clang-format on */

#define ASSERT_CONSTANT(name, value) _Static_assert((name) == (value), #name " is " #value);
#define ASSERT_SIZE(type, size)	     _Static_assert(sizeof(type) == (size), "size of " #type " is " #size);
#define ASSERT_MEMBER(type, member, offset, member_type)                                                               \
	_Static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member " is " #offset);             \
	_Static_assert(_Generic(((type *)0)->member, member_type : 1, default : 0),                                    \
		       "type of " #type "." #member " is " #member_type);
#define ASSERT_CALL(name, arguments)                                                                                   \
	_Static_assert(_Generic(&name, glex_ret_t(*) arguments : 1, default : 0), "prototype of " #name);

CONSTANTS(ASSERT_CONSTANT)
SIZES(ASSERT_SIZE)
MEMBERS(ASSERT_MEMBER)
CALLS(ASSERT_CALL)

_Static_assert(_Generic(&glex_error_str, const char *(*)(glex_ret_t) : 1, default : 0), "glex_error_str");
_Static_assert(_Generic(&glex_error_req_status_str, const char *(*)(enum glex_err_req_status) : 1, default : 0),
	       "glex_error_req_status_str");
_Static_assert(_Generic(&glex_error_req_opcode_str, const char *(*)(enum glex_err_req_op) : 1, default : 0),
	       "glex_error_req_opcode_str");
_Static_assert(_Generic((glex_device_handle_t)0, glex_device_t * : 1, default : 0), "glex_device_handle_t");
_Static_assert(_Generic((glex_ep_handle_t)0, glex_ep_t * : 1, default : 0), "glex_ep_handle_t");
_Static_assert(_Generic((glex_ret_t)0, enum glex_ret : 1, default : 0), "glex_ret_t");

struct pin {
	const char *name;
	unsigned long long is;
	unsigned long long pinned;
};

#define PIN_CONSTANT(name, value)		      {#name, (unsigned long long)(name), (unsigned long long)(value)},
#define PIN_SIZE(type, size)			      {"sizeof " #type, sizeof(type), size},
#define PIN_MEMBER(type, member, offset, member_type) {#type "." #member, offsetof(type, member), offset},

static const struct pin pins[] = {CONSTANTS(PIN_CONSTANT) SIZES(PIN_SIZE) MEMBERS(PIN_MEMBER)};

START_TEST(header__every_pin__holds)
{
	for (size_t i = 0; i < sizeof(pins) / sizeof(pins[0]); i++) {
		printf("# %s %llu\n", pins[i].name, pins[i].is);
		ck_assert_msg(pins[i].is == pins[i].pinned, "%s is %llu, not %llu", pins[i].name, pins[i].is,
			      pins[i].pinned);
	}
}
END_TEST

START_TEST(address__all_spellings__are_one_member)
{
	glex_ep_addr_t addr = {.v = 0};

	addr.ep_num = 7;
	addr.s.nic_id = 0x01020304;
	ck_assert_uint_eq(addr.s.ep_num, 7);
	ck_assert_uint_eq(addr.nic_id, 0x01020304);
	ck_assert_uint_eq(addr.v, UINT64_C(0x0102030400000007));
}
END_TEST

START_TEST(memory_handle__all_spellings__are_one_member)
{
	glex_mem_handle_t mh = {.v = 0};

	mh.mmt_index = 9;
	mh.s.att_base_off = 0x0a0b;
	mh.att_index = 1;
	ck_assert_uint_eq(mh.s.mmt_index, 9);
	ck_assert_uint_eq(mh.att_base_off, 0x0a0b);
	ck_assert_uint_eq(mh.s.att_index, 1);
	ck_assert_uint_eq(mh.v, UINT64_C(0x000000010a0b0009));
}
END_TEST

START_TEST(event__names_and_array__are_the_same_words)
{
	glex_event_t by_name = {.cookie_0 = 11, .cookie_1 = 12};
	glex_event_t by_index = {.cookie = {21, 22}};

	ck_assert_uint_eq(by_name.cookie[0], 11);
	ck_assert_uint_eq(by_name.cookie[1], 12);
	ck_assert_uint_eq(by_index.cookie_0, 21);
	ck_assert_uint_eq(by_index.cookie_1, 22);
}
END_TEST

START_TEST(event__inside_a_request__takes_designated_initialisers)
{
	struct glex_rdma_req req = {
		.rmt_ep_addr.v = 1,
		.local_evt = {.cookie_0 = 1, .cookie_1 = 2},
		.rmt_evt.cookie_1 = 4,
		.rmt_mh.s.mmt_index = 5,
		.flag = GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT,
	};

	ck_assert_uint_eq(req.local_evt.cookie[1], 2);
	ck_assert_uint_eq(req.rmt_evt.cookie[1], 4);
	ck_assert_uint_eq(req.rmt_mh.mmt_index, 5);
	ck_assert_ptr_null(req.next);
}
END_TEST

START_TEST(address__as_text__comes_back)
{
	/* programs send addresses so, and set .v last */
	glex_ep_addr_t addr = {.v = 0}, back = {.v = 0};
	unsigned int ep_num, resv, nic_id;
	unsigned long long v;
	char text[64];

	addr.ep_num = 39;
	addr.nic_id = 4711;
	snprintf(text, sizeof(text), "%04x:%04x:%08x:%016llx", addr.ep_num, addr.resv, addr.nic_id,
		 (unsigned long long)addr.v);
	ck_assert_int_eq(sscanf(text, "%x:%x:%x:%llx", &ep_num, &resv, &nic_id, &v), 4);
	back.v = v;
	ck_assert_uint_eq(back.ep_num, ep_num);
	ck_assert_uint_eq(back.resv, resv);
	ck_assert_uint_eq(back.nic_id, nic_id);
}
END_TEST

START_TEST(device__by_value__embeds)
{
	struct holder {
		struct glex_device device;
		glex_device_handle_t handle;
	} holder;

	holder.handle = &holder.device;
	ck_assert_ptr_eq(holder.handle, &holder.device);
}
END_TEST

START_TEST(keys__made__fit_and_are_tagged)
{
	ck_assert_uint_eq(GLEX_EP_MAKE_KEY(0), 0);
	ck_assert_uint_eq(GLEX_EP_MAKE_KEY(12345), 12345);
	ck_assert_uint_eq(GLEX_EP_MAKE_KEY(UINT64_C(0x1ffffffff)), 0x7fffffff);
	ck_assert_uint_eq(GLEX_EP_MAKE_HC_UMMT_KEY(GLEX_EP_MAKE_KEY(5)), 0x80000005);
}
END_TEST

START_TEST(reduce_data__all_widths__start_at_the_same_byte)
{
	union glex_coll_data_loc unit = {.int64_s = {.data = 0, .location = 3}};
	double expected = 1.5;

	unit.double_s.data = expected;
	ck_assert_int_eq(memcmp(&unit.int64_s.data, &expected, sizeof(expected)), 0);
	ck_assert_uint_eq(unit.double_s.location, 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("header");
	TCase *pinned = tcase_create("pinned"), *spellings = tcase_create("spellings");

	tcase_add_test(pinned, header__every_pin__holds);
	tcase_add_test(spellings, address__all_spellings__are_one_member);
	tcase_add_test(spellings, memory_handle__all_spellings__are_one_member);
	tcase_add_test(spellings, event__names_and_array__are_the_same_words);
	tcase_add_test(spellings, event__inside_a_request__takes_designated_initialisers);
	tcase_add_test(spellings, address__as_text__comes_back);
	tcase_add_test(spellings, device__by_value__embeds);
	tcase_add_test(spellings, keys__made__fit_and_are_tagged);
	tcase_add_test(spellings, reduce_data__all_widths__start_at_the_same_byte);
	suite_add_tcase(suite, pinned);
	suite_add_tcase(suite, spellings);
	return suite_run(suite);
}
