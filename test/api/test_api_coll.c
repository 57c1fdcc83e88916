/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_coll.c - collective offload is not in this version: it says so, at
 * once, and does nothing.
 */
#include <stdlib.h>

#include "test/lib/side.h"

START_TEST(coll_flag__any_post__not_implemented_and_nothing_done)
{
	int32_t flag = 1 << (7 + _i); /* GLEX_FLAG_COLL to GLEX_FLAG_COLL_REDUCE_RESULT */
	struct glex_imm_mp_req mp = {.data = "x", .len = 1}, *bad = NULL;
	struct glex_imm_rdma_req imm = {.data = "x", .len = 1};
	struct glex_rdma_req req;
	struct side side;

	side_open(&side, _i % 2 ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST, 64, false);
	mp.flag = imm.flag = flag;
	mp.rmt_ep_addr = imm.rmt_ep_addr = side.card.addr;
	imm.rmt_mh = side.card.mh;
	imm.rmt_key = side.card.key;
	RETURNS(glex_send_imm_mp(side.ep, &mp, &bad), GLEX_NOT_IMPLEMENTED);
	ck_assert_ptr_eq(bad, &mp);
	RETURNS(glex_imm_rdma(side.ep, &imm, NULL), GLEX_NOT_IMPLEMENTED);
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	req.flag = flag;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_NOT_IMPLEMENTED);
	req.type = GLEX_RDMA_TYPE_GET;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_GET, 0, 8);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, side.buf, &(uint32_t){0}), GLEX_NO_MP);
	ck_assert_uint_eq(side.buf[0], 0);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

START_TEST(coll_helpers__always__not_implemented)
{
	union glex_coll_data_loc units[6] = {{.int64_s = {.data = 1}}};
	glex_ep_addr_t addrs[2] = {{.v = 1}, {.v = 2}};
	unsigned char data[1024];
	uint32_t len = 4711;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	RETURNS(glex_coll_compose_mp_swap_addr_data(side.ep, side.card.mh, 0, 0, data, &len), GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_coll_compose_mp_reduce_data(units, 6, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_SIGNED,
						 2, data, &len),
		GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_coll_decompose_mp_reduce_data(units, 6, GLEX_COLL_REDUCE_DATA_BITS_64, data),
		GLEX_NOT_IMPLEMENTED);
	RETURNS(glex_coll_compose_mp_set_data(addrs, 2, data, &len), GLEX_NOT_IMPLEMENTED);
	ck_assert_uint_eq(len, 4711);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll");
	TCase *tc = tcase_create("coll");

	own_job("coll");
	tcase_add_loop_test(tc, coll_flag__any_post__not_implemented_and_nothing_done, 0, 12);
	tcase_add_test(tc, coll_helpers__always__not_implemented);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
