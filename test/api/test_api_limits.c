/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_limits.c - what a process may register at most, and what a NIC counts
 * of the accesses to its regions.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/raw.h"
#include "test/lib/side.h"

#define ALL  (GLEX_MEM_READ | GLEX_MEM_WRITE)
#define PAGE 4096u

static unsigned char pages[64 * PAGE] __attribute__((aligned(4096)));

static glex_ret_t enter(struct side *side, size_t offset, size_t len, glex_mem_handle_t *mh)
{
	return glex_register_mem(side->ep, pages + offset, len, ALL, mh);
}

/* ---- GLEX_MAX_REGIONS, GLEX_MAX_LOCKED -------------------------------------------------------------- */

START_TEST(register_mem__beyond_max_regions__refused_until_one_is_deregistered)
{
	glex_mem_handle_t mh[4];
	struct side side, other;

	setenv("GLEX_MAX_REGIONS", "3", 1);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	side_open(&other, GLEX_EP_TYPE_FAST, 0, false);
	OK(enter(&side, 0, 1, &mh[0]));
	OK(enter(&side, 0, 1, &mh[1]));
	OK(enter(&other, 0, 1, &mh[2]));
	RETURNS(enter(&side, 0, 1, &mh[3]), GLEX_NO_MEM_RESOURCE);
	RETURNS(enter(&other, 0, 1, &mh[3]), GLEX_NO_MEM_RESOURCE);
	OK(glex_deregister_mem(side.ep, mh[0]));
	RETURNS(glex_deregister_mem(side.ep, mh[0]), GLEX_INVALID_PARAM);
	OK(enter(&other, 0, 1, &mh[3]));
	RETURNS(enter(&side, 0, 1, &mh[0]), GLEX_NO_MEM_RESOURCE);
	OK(glex_destroy_ep(other.ep)); /* with two regions */
	OK(enter(&side, 0, 1, &mh[0]));
	OK(enter(&side, 0, 1, &mh[2]));
	RETURNS(enter(&side, 0, 1, &mh[3]), GLEX_NO_MEM_RESOURCE);
	OK(glex_close_device(other.dev));
	side_close(&side);
}
END_TEST

START_TEST(register_mem__beyond_max_locked__counts_whole_pages)
{
	glex_mem_handle_t mh[4];
	struct side side;

	setenv("GLEX_MAX_LOCKED", "32K", 1); /* 8 pages */
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	RETURNS(enter(&side, 0, 8 * PAGE + 1, &mh[0]), GLEX_NO_MEM_RESOURCE);
	RETURNS(enter(&side, 1, 8 * PAGE, &mh[0]), GLEX_NO_MEM_RESOURCE);
	OK(enter(&side, 0, 8 * PAGE, &mh[0]));
	RETURNS(enter(&side, 0, 1, &mh[1]), GLEX_NO_MEM_RESOURCE);
	OK(glex_deregister_mem(side.ep, mh[0]));
	OK(enter(&side, PAGE - 1, 2, &mh[0]));			  /* two pages */
	OK(enter(&side, PAGE - 1, 2, &mh[1]));			  /* locked once more */
	OK(enter(&side, 8 * PAGE + 100, 4 * PAGE - 100, &mh[2])); /* four */
	RETURNS(enter(&side, 0, 1, &mh[3]), GLEX_NO_MEM_RESOURCE);
	OK(glex_deregister_mem(side.ep, mh[1]));
	OK(enter(&side, 0, 2 * PAGE, &mh[1]));
	side_close(&side);
}
END_TEST

/* ---- what the NIC counts ------------------------------------------------------------------------------ */

static struct emu_ctl_nic counted(uint32_t nic_id)
{
	struct emu_ctl_nic nic;

	ck_assert_int_eq(raw_nic(nic_id, &nic), 0);
	return nic;
}

enum { PASSED, HANDLE, ENDPOINT, BOUNDS, KEY, ACCESS, HIT, MISS, EVICTED };

static void expect_counted(const struct side *side, uint64_t passed, uint64_t hit, uint64_t miss)
{
	struct emu_ctl_nic nic = counted(side->card.addr.nic_id);

	ck_assert_uint_eq(nic.modelled, 1);
	ck_assert_uint_eq(nic.counter[PASSED], passed);
	ck_assert_uint_eq(nic.counter[HIT], hit);
	ck_assert_uint_eq(nic.counter[MISS], miss);
	ck_assert_uint_eq(nic.counter[EVICTED], 0);
}

static void serve_memory(int fd, void *arg)
{
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 16 * PAGE, *(int *)arg);
	swap_cards(&side, fd);
	meet(fd);
	side_close(&side);
}

/* A buffer of side_open may begin anywhere in a page. */
static uint64_t pages_of(glex_mem_handle_t mh, uint64_t len)
{
	return (mh.att_base_off + len + PAGE - 1) / PAGE;
}

START_TEST(atc__modelled__both_nics_count_the_pages_of_each_access)
{
	struct peer peer;
	struct side side, target;
	uint64_t here, there;
	int mapped = is_mapped(_i);

	setenv("GLEX_MODEL_ATC", "count", 1);
	own_job("limits-atc");
	peer = peer_start(serve_memory, &mapped);
	side_open(&side, type_of(_i), 16 * PAGE, mapped);
	target.card = swap_cards(&side, peer.fd);
	ck_assert_uint_ne(target.card.addr.nic_id, side.card.addr.nic_id);
	here = pages_of(side.card.mh, 10 * PAGE);
	there = pages_of(target.card.mh, 10 * PAGE);
	rdma_done(&side, &target.card, GLEX_RDMA_TYPE_PUT, 0, 10 * PAGE);
	expect_counted(&side, 1, 0, here);
	expect_counted(&target, 1, 0, there);
	rdma_done(&side, &target.card, GLEX_RDMA_TYPE_GET, 0, 10 * PAGE);
	expect_counted(&side, 2, here, here);
	expect_counted(&target, 2, there, there);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

START_TEST(checker__wrong_key__counted_though_nothing_is_modelled)
{
	struct glex_imm_rdma_req req = {.data = "x", .len = 1};
	struct emu_ctl_nic nic;
	struct side side;

	own_job("limits-off");
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	req.rmt_ep_addr = side.card.addr;
	req.rmt_mh = side.card.mh;
	req.rmt_key = side.card.key;
	post_imm(side.ep, &req);
	req.rmt_key++;
	post_imm(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, GLEX_ERR_STATUS_MMT);
	nic = counted(side.card.addr.nic_id);
	ck_assert_uint_eq(nic.modelled, 0);
	ck_assert_uint_eq(nic.regions, 1);
	ck_assert_uint_eq(nic.counter[KEY], 1);
	ck_assert_uint_eq(nic.counter[PASSED], 0);
	ck_assert_uint_eq(nic.counter[MISS], 0);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tc = tcase_create("limits");

	own_job("limits");
	tcase_add_test(tc, register_mem__beyond_max_regions__refused_until_one_is_deregistered);
	tcase_add_test(tc, register_mem__beyond_max_locked__counts_whole_pages);
	tcase_add_loop_test(tc, atc__modelled__both_nics_count_the_pages_of_each_access, 0, KINDS);
	tcase_add_test(tc, checker__wrong_key__counted_though_nothing_is_modelled);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
