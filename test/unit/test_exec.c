/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_exec.c - what becomes of a descriptor: data, events, and the error that
 * is told when it comes to nothing.
 */
#include "two_ports.h"

/* ---- MP ------------------------------------------------------------------ */

START_TEST(mp__open_port__arrives_with_source_and_bytes)
{
	static const uint32_t lens[] = {0, 1, 48, 111, 112};
	struct emu_desc desc = desc_of(EMU_OP_MP, lens[_i]);
	glex_ep_addr_t src = {.v = 0};
	struct emu_mp_slot *slot;

	src.nic_id = OUR_NIC;
	src.ep_num = OUR_EP;
	ck_assert_int_eq(emu_exec(&fake.host, &ours.port, &desc, lens[_i] ? ours.memory : NULL), EMU_OK);
	slot = first_mp(&theirs);
	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->len, lens[_i]);
	ck_assert_uint_eq(slot->src, src.v);
	ck_assert_uint_eq(slot->flags, 0);
	ck_assert(!memcmp(slot->data, ours.memory, lens[_i]));
	ck_assert(!has_event(&theirs));
}
END_TEST

START_TEST(mp__to_ourselves__arrives)
{
	struct emu_desc desc = desc_of(EMU_OP_MP, 8);
	glex_ep_addr_t self = {.v = 0};

	self.nic_id = OUR_NIC;
	self.ep_num = OUR_EP;
	desc.dst = self.v;
	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_ptr_nonnull(first_mp(&ours));
}
END_TEST

START_TEST(mp__closed_port__dest_vp_stop)
{
	struct emu_desc desc = desc_of(EMU_OP_MP, 8);

	atomic_store(&theirs.port.port->state, EMU_PORT_CLOSED);
	expect_refused(&desc, GLEX_ERR_STATUS_DEST_VP_STOP);
}
END_TEST

START_TEST(mp__no_such_port__dest_vp_stop)
{
	struct emu_desc desc = desc_of(EMU_OP_MP, 8);

	fake.no_port = true;
	expect_refused(&desc, GLEX_ERR_STATUS_DEST_VP_STOP);
}
END_TEST

START_TEST(mp__mpq_full__is_lost_and_counted)
{
	struct emu_desc desc = desc_of(EMU_OP_MP, 8);

	for (uint32_t n = 0; n < MPQ; n++)
		ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_int_eq(exec(&desc), GLEX_ERR_STATUS_DEST_MPQ_FULL);
	ck_assert_int_eq(exec(&desc), GLEX_ERR_STATUS_DEST_MPQ_FULL);
	ck_assert_uint_eq(atomic_load(&theirs.port.port->mpq.lost), 2);
	emu_ring_release(&theirs.port.mpq, 1);
	ck_assert_int_eq(exec(&desc), EMU_OK);
}
END_TEST

/* ---- PUT and GET that work ----------------------------------------------- */

START_TEST(put__valid__data_then_both_events)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 700);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_mem_eq(theirs.memory + 160, ours.memory + 16, 700);
	ck_assert_uint_eq(theirs.memory[159], 159 + 10);
	ck_assert_uint_eq(theirs.memory[860], 860 % 241 + 10);
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
	ck_assert_uint_eq(next_event(&theirs), 0);
	ck_assert_uint_eq(next_event(&ours), OUR_EVT);
	ck_assert_uint_eq(next_event(&ours), 0);
	ck_assert_int_eq(fake.writes, 1);
	ck_assert(fake.order_kept);
}
END_TEST

START_TEST(put__event__has_both_cookies)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 8);
	struct emu_event_slot *slot;

	desc.rmt_evt[0] = UINT64_MAX - 5;
	desc.rmt_evt[1] = 0x8000000000000001u;
	ck_assert_int_eq(exec(&desc), EMU_OK);
	slot = emu_ring_peek(&theirs.port.eq, 0);
	ck_assert_uint_eq(slot->cookie[0], desc.rmt_evt[0]);
	ck_assert_uint_eq(slot->cookie[1], desc.rmt_evt[1]);
	ck_assert_uint_eq(slot->flags, 0);
}
END_TEST

START_TEST(put__no_event_asked_for__raises_none)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 8);

	desc.flag = 0;
	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert(!has_event(&ours));
	ck_assert(!has_event(&theirs));
}
END_TEST

START_TEST(put__length_zero__moves_nothing_and_raises_the_events)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 0);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert(untouched(&theirs));
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
	ck_assert_uint_eq(next_event(&ours), OUR_EVT);
}
END_TEST

START_TEST(put__whole_region__works)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, SIZE);

	desc.local_offset = desc.rmt_offset = 0;
	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_mem_eq(theirs.memory, ours.memory, SIZE);
}
END_TEST

START_TEST(get__valid__data_then_both_events)
{
	struct emu_desc desc = desc_of(EMU_OP_GET, 700);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_mem_eq(ours.memory + 16, theirs.memory + 160, 700);
	ck_assert(untouched(&theirs));
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
	ck_assert_uint_eq(next_event(&ours), OUR_EVT);
}
END_TEST

START_TEST(imm_put__valid__data_and_remote_event_only)
{
	struct emu_desc desc = desc_of(EMU_OP_IMM_PUT, EMU_IMM_RDMA_DATA);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_mem_eq(theirs.memory + 160, ours.memory, EMU_IMM_RDMA_DATA);
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
	ck_assert(!has_event(&ours));
	ck_assert(fake.order_kept);
}
END_TEST

START_TEST(imm_put__length_zero__raises_the_remote_event)
{
	struct emu_desc desc = desc_of(EMU_OP_IMM_PUT, 0);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert(untouched(&theirs));
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
}
END_TEST

/* ---- RDMA that breaks a rule: each for PUT, GET and immediate PUT (_i) --- */

static const enum emu_op rdma_ops[] = {EMU_OP_PUT, EMU_OP_GET, EMU_OP_IMM_PUT};

#define RDMA_OPS 3

static bool has_local_side(const struct emu_desc *desc)
{
	return desc->op != EMU_OP_IMM_PUT;
}

START_TEST(rdma__closed_port__dest_vp_stop)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	atomic_store(&theirs.port.port->state, EMU_PORT_CLOSED);
	expect_refused(&desc, GLEX_ERR_STATUS_DEST_VP_STOP);
}
END_TEST

START_TEST(rdma__no_such_port__dest_vp_stop)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);
	glex_ep_addr_t nobody = their_addr();

	nobody.ep_num = THEIR_EP + 1;
	desc.dst = nobody.v;
	expect_refused(&desc, GLEX_ERR_STATUS_DEST_VP_STOP);
}
END_TEST

START_TEST(rdma__no_such_node__dest_vp_stop)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	fake.no_nic = true;
	expect_refused(&desc, GLEX_ERR_STATUS_DEST_VP_STOP);
}
END_TEST

START_TEST(rdma__wrong_key__mmt)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	desc.rmt_key = KEY + 1;
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
}
END_TEST

START_TEST(rdma__wrong_key_and_length_zero__mmt)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 0);

	desc.rmt_key = KEY + 1;
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
}
END_TEST

START_TEST(rdma__outside_the_remote_region__mmt)
{
	static const struct {
		uint32_t offset, len;
	} wrong[] = {
		{SIZE, 1}, {SIZE - 63, 64}, {SIZE + 1, 0}, {UINT32_MAX, 1}, {UINT32_MAX - 31, 64}, {UINT32_MAX, 0},
	};

	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		struct emu_desc desc = desc_of(rdma_ops[_i], wrong[n].len);

		desc.rmt_offset = wrong[n].offset;
		expect_refused(&desc, GLEX_ERR_STATUS_MMT);
	}
}
END_TEST

/* Offset and length each fit 32 bits, their sum does not: it must not come out small. */
START_TEST(rdma__end_beyond_32_bits__mmt)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 0x20);

	desc.rmt_offset = 0xfffffff0u;
	desc.rmt_mh = enter(&theirs, THEIR_SESSION, THEIR_EP, UINT32_MAX, GLEX_MEM_READ | GLEX_MEM_WRITE);
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
}
END_TEST

START_TEST(check_region__end_beyond_32_bits_in_a_longer_region__ok)
{
	uint64_t handle = enter(&theirs, THEIR_SESSION, THEIR_EP, BIG, GLEX_MEM_READ);
	struct emu_region region;

	ck_assert_int_eq(emu_check_region(theirs.nic, handle, THEIR_EP, 0xfffffff0u, 0x20, &region), EMU_OK);
	ck_assert_int_eq(emu_check_region(theirs.nic, handle, THEIR_EP, BIG, 0, &region), EMU_OK);
	ck_assert_int_eq(emu_check_region(theirs.nic, handle, THEIR_EP, BIG, 1, &region), GLEX_ERR_STATUS_MMT);
	ck_assert_int_eq(emu_check_region(theirs.nic, handle, THEIR_EP, UINT64_MAX, 2, &region), GLEX_ERR_STATUS_MMT);
}
END_TEST

START_TEST(rdma__unknown_remote_handle__att)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	desc.rmt_mh ^= 1;
	expect_refused(&desc, GLEX_ERR_STATUS_ATT);
	desc.rmt_mh = 0;
	expect_refused(&desc, GLEX_ERR_STATUS_ATT);
}
END_TEST

START_TEST(rdma__revoked_remote_handle__att)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	ck_assert(emu_mmt_revoke(theirs.nic, theirs.handle, THEIR_SESSION, THEIR_EP));
	expect_refused(&desc, GLEX_ERR_STATUS_ATT);
	enter(&theirs, THEIR_SESSION, THEIR_EP, SIZE, GLEX_MEM_READ | GLEX_MEM_WRITE);
	expect_refused(&desc, GLEX_ERR_STATUS_ATT);
}
END_TEST

START_TEST(rdma__handle_of_another_endpoint__mmt)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	desc.rmt_mh = enter(&theirs, THEIR_SESSION, THEIR_EP + 1, SIZE, GLEX_MEM_READ | GLEX_MEM_WRITE);
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
}
END_TEST

START_TEST(rdma__access_not_allowed__mmt)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);
	uint32_t others = desc.op == EMU_OP_GET ? GLEX_MEM_WRITE : GLEX_MEM_READ;

	desc.rmt_mh = enter(&theirs, THEIR_SESSION, THEIR_EP, SIZE, others);
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
	desc.rmt_mh = enter(&theirs, THEIR_SESSION, THEIR_EP, SIZE, 0);
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
}
END_TEST

START_TEST(rdma__just_the_access_it_needs__ok)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);
	uint32_t its = desc.op == EMU_OP_GET ? GLEX_MEM_READ : GLEX_MEM_WRITE;

	desc.rmt_mh = enter(&theirs, THEIR_SESSION, THEIR_EP, SIZE, its);
	ck_assert_int_eq(exec(&desc), EMU_OK);
}
END_TEST

START_TEST(rdma__local_side_wrong__refused)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	if (!has_local_side(&desc))
		return;
	desc.local_offset = SIZE - 63;
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
	desc.local_offset = 0xfffffff0u;
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
	desc.local_offset = 0;
	desc.local_mh = enter(&ours, OUR_SESSION, OUR_EP + 1, SIZE, 0);
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
	desc.local_mh = ours.handle;
	ck_assert(emu_mmt_revoke(ours.nic, ours.handle, OUR_SESSION, OUR_EP));
	expect_refused(&desc, GLEX_ERR_STATUS_ATT);
}
END_TEST

START_TEST(rdma__local_region_without_access_flags__ok)
{
	struct emu_desc desc = desc_of(rdma_ops[_i], 64);

	desc.local_mh = enter(&ours, OUR_SESSION, OUR_EP, SIZE, 0);
	ck_assert_int_eq(exec(&desc), EMU_OK);
}
END_TEST

START_TEST(rdma__memory_out_of_reach__says_why_and_raises_nothing)
{
	static const struct {
		enum emu_reach reach;
		int status;
	} cases[] = {
		{EMU_REACH_GONE, GLEX_ERR_STATUS_DEST_HOST_DEAD},
		{EMU_REACH_FAULT, GLEX_ERR_STATUS_ATT},
		{EMU_REACH_REFUSED, GLEX_ERR_STATUS_PCIE_READ},
	};

	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct emu_desc desc = desc_of(rdma_ops[_i], 64);

		fake.reach = cases[n].reach;
		expect_refused(&desc, cases[n].status);
	}
}
END_TEST

/* ---- full event queues --------------------------------------------------- */

START_TEST(put__their_eq_full__data_in_place_local_event_raised_loss_counted)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 64);

	fill_eq(&theirs);
	ck_assert_int_eq(exec(&desc), GLEX_ERR_STATUS_DEST_EQ_FULL);
	ck_assert_mem_eq(theirs.memory + 160, ours.memory + 16, 64);
	ck_assert_uint_eq(next_event(&ours), OUR_EVT);
	ck_assert_uint_eq(atomic_load(&theirs.port.port->eq.lost), 1);
	for (uint32_t n = 0; n < EQ; n++)
		ck_assert_uint_eq(next_event(&theirs), FULL_EVT);
	ck_assert_uint_eq(next_event(&theirs), 0);
}
END_TEST

START_TEST(put__our_eq_full__data_in_place_remote_event_raised_loss_counted)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 64);

	fill_eq(&ours);
	ck_assert_int_eq(exec(&desc), GLEX_ERR_STATUS_DEST_EQ_FULL);
	ck_assert_mem_eq(theirs.memory + 160, ours.memory + 16, 64);
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
	ck_assert_uint_eq(atomic_load(&ours.port.port->eq.lost), 1);
}
END_TEST

START_TEST(imm_put__their_eq_full__data_in_place)
{
	struct emu_desc desc = desc_of(EMU_OP_IMM_PUT, 64);

	fill_eq(&theirs);
	ck_assert_int_eq(exec(&desc), GLEX_ERR_STATUS_DEST_EQ_FULL);
	ck_assert_mem_eq(theirs.memory + 160, ours.memory, 64);
}
END_TEST

/* ---- pieces -------------------------------------------------------------- */

START_TEST(exec_move__in_pieces__moves_all_and_raises_nothing_before_finish)
{
	static const enum emu_op both[] = {EMU_OP_PUT, EMU_OP_GET};
	struct emu_desc desc = desc_of(both[_i], 1000);
	uint64_t done, n;

	for (done = 0; done < desc.len; done += n) {
		n = desc.len - done < 300 ? desc.len - done : 300;
		ck_assert_int_eq(emu_exec_move(&fake.host, &ours.port, &desc, done, n), EMU_OK);
		ck_assert(!has_event(&ours));
		ck_assert(!has_event(&theirs));
	}
	ck_assert_mem_eq(theirs.memory + 160, ours.memory + 16, 1000);
	ck_assert_int_eq(emu_exec_finish(&fake.host, &ours.port, &desc), EMU_OK);
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
	ck_assert_uint_eq(next_event(&ours), OUR_EVT);
}
END_TEST

START_TEST(exec_move__first_piece__moves_just_that)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 1000);

	ck_assert_int_eq(emu_exec_move(&fake.host, &ours.port, &desc, 300, 300), EMU_OK);
	ck_assert_uint_eq(theirs.memory[160 + 299], (160 + 299) % 241 + 10);
	ck_assert_mem_eq(theirs.memory + 460, ours.memory + 316, 300);
	ck_assert_uint_eq(theirs.memory[160 + 600], (160 + 600) % 241 + 10);
}
END_TEST

START_TEST(exec_move__region_too_short_for_the_whole__refused_at_the_first_piece)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, SIZE);

	ck_assert_int_eq(emu_exec_move(&fake.host, &ours.port, &desc, 0, 10), GLEX_ERR_STATUS_MMT);
	ck_assert(untouched(&theirs));
}
END_TEST

START_TEST(exec_move__revoked_between_pieces__att)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 1000);

	ck_assert_int_eq(emu_exec_move(&fake.host, &ours.port, &desc, 0, 500), EMU_OK);
	ck_assert(emu_mmt_revoke(theirs.nic, theirs.handle, THEIR_SESSION, THEIR_EP));
	ck_assert_int_eq(emu_exec_move(&fake.host, &ours.port, &desc, 500, 500), GLEX_ERR_STATUS_ATT);
}
END_TEST

START_TEST(exec_finish__port_closed_since__dest_vp_stop_and_local_event)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 64);

	ck_assert_int_eq(emu_exec_move(&fake.host, &ours.port, &desc, 0, 64), EMU_OK);
	atomic_store(&theirs.port.port->state, EMU_PORT_CLOSED);
	ck_assert_int_eq(emu_exec_finish(&fake.host, &ours.port, &desc), GLEX_ERR_STATUS_DEST_VP_STOP);
	ck_assert_uint_eq(next_event(&ours), OUR_EVT);
	ck_assert(!has_event(&theirs));
}
END_TEST

/* ---- errors -------------------------------------------------------------- */

START_TEST(report__rdma__names_target_handle_offset_and_length)
{
	static const struct {
		enum emu_op op;
		enum glex_err_req_op err_op;
	} cases[] = {
		{EMU_OP_PUT, GLEX_ERR_OP_RDMA_PUT},
		{EMU_OP_GET, GLEX_ERR_OP_RDMA_GET},
		{EMU_OP_IMM_PUT, GLEX_ERR_OP_IMM_RDMA_PUT},
	};
	struct emu_desc desc = desc_of(cases[_i].op, 64);
	struct emu_err_slot *slot;

	emu_report(&fake.host, &ours.port, &desc, GLEX_ERR_STATUS_MMT);
	slot = first_error();
	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->op, cases[_i].err_op);
	ck_assert_uint_eq(slot->status, GLEX_ERR_STATUS_MMT);
	ck_assert_uint_eq(slot->rmt_nic_id, THEIR_NIC);
	ck_assert_uint_eq(slot->rmt_ep_num, THEIR_EP);
	ck_assert_uint_eq(slot->data[0], theirs.handle);
	ck_assert_uint_eq(slot->data[1], 160);
	ck_assert_uint_eq(slot->data[2], 64);
	ck_assert_uint_eq(slot->flags, 0);
}
END_TEST

START_TEST(report__mp__names_target_and_length)
{
	struct emu_desc desc = desc_of(EMU_OP_MP, 64);
	struct emu_err_slot *slot;

	emu_report(&fake.host, &ours.port, &desc, GLEX_ERR_STATUS_DEST_MPQ_FULL);
	slot = first_error();
	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->op, GLEX_ERR_OP_IMM_MP);
	ck_assert_uint_eq(slot->status, GLEX_ERR_STATUS_DEST_MPQ_FULL);
	ck_assert_uint_eq(slot->rmt_nic_id, THEIR_NIC);
	ck_assert_uint_eq(slot->rmt_ep_num, THEIR_EP);
	ck_assert_uint_eq(slot->data[0], 64);
	ck_assert_uint_eq(slot->data[1], 0);
	ck_assert_uint_eq(slot->data[2], 0);
}
END_TEST

START_TEST(report__error_queue_full__keeps_the_first_and_counts_the_rest)
{
	struct emu_desc desc = desc_of(EMU_OP_MP, 0);

	for (uint32_t n = 0; n < ours.port.port->err_capacity + 3; n++) {
		desc.len = n;
		emu_report(&fake.host, &ours.port, &desc, GLEX_ERR_STATUS_DEST_VP_STOP);
	}
	ck_assert_uint_eq(atomic_load(&ours.port.port->err.lost), 3);
	for (uint32_t n = 0; n < ours.port.port->err_capacity; n++) {
		struct emu_err_slot *slot = emu_ring_peek(&ours.port.err, n);

		ck_assert_ptr_nonnull(slot);
		ck_assert_uint_eq(slot->data[0], n);
	}
}
END_TEST

/* ---- the bell ------------------------------------------------------------ */

START_TEST(bell__nobody_sleeps__does_not_ring)
{
	struct emu_desc mp = desc_of(EMU_OP_MP, 8), put = desc_of(EMU_OP_PUT, 8);

	ck_assert_int_eq(exec(&mp), EMU_OK);
	ck_assert_int_eq(exec(&put), EMU_OK);
	ck_assert_int_eq(fake.wakes, 0);
}
END_TEST

/* _i: whether senders have to fence */
START_TEST(bell__somebody_sleeps__rings_for_mp_and_event)
{
	struct emu_desc mp = desc_of(EMU_OP_MP, 8), put = desc_of(EMU_OP_PUT, 8);

	atomic_store(&engine.fences, (uint32_t)_i);
	atomic_store(&theirs.port.port->sleepers, 1);
	ck_assert_int_eq(exec(&mp), EMU_OK);
	ck_assert_int_eq(fake.wakes, 1);
	ck_assert_ptr_eq(fake.woken, theirs.port.port);
	ck_assert_int_eq(exec(&put), EMU_OK);
	ck_assert_int_eq(fake.wakes, 2);
	ck_assert_ptr_eq(fake.woken, theirs.port.port);
	ck_assert_uint_eq(atomic_load(&theirs.port.port->sleepers), 1);
	atomic_store(&engine.fences, 0);
}
END_TEST

START_TEST(bell__request_refused__does_not_ring)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 8);

	atomic_store(&theirs.port.port->sleepers, 1);
	desc.rmt_key = KEY + 1;
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
	ck_assert_int_eq(fake.wakes, 0);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, setup, teardown);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static void add_what_works(Suite *suite)
{
	TCase *mp = add_case(suite, "mp"), *rdma = add_case(suite, "rdma");

	tcase_add_loop_test(mp, mp__open_port__arrives_with_source_and_bytes, 0, 5);
	tcase_add_test(mp, mp__to_ourselves__arrives);
	tcase_add_test(mp, mp__closed_port__dest_vp_stop);
	tcase_add_test(mp, mp__no_such_port__dest_vp_stop);
	tcase_add_test(mp, mp__mpq_full__is_lost_and_counted);
	tcase_add_test(rdma, put__valid__data_then_both_events);
	tcase_add_test(rdma, put__event__has_both_cookies);
	tcase_add_test(rdma, put__no_event_asked_for__raises_none);
	tcase_add_test(rdma, put__length_zero__moves_nothing_and_raises_the_events);
	tcase_add_test(rdma, put__whole_region__works);
	tcase_add_test(rdma, get__valid__data_then_both_events);
	tcase_add_test(rdma, imm_put__valid__data_and_remote_event_only);
	tcase_add_test(rdma, imm_put__length_zero__raises_the_remote_event);
	tcase_add_test(rdma, check_region__end_beyond_32_bits_in_a_longer_region__ok);
	tcase_add_loop_test(rdma, rdma__just_the_access_it_needs__ok, 0, RDMA_OPS);
	tcase_add_loop_test(rdma, rdma__local_region_without_access_flags__ok, 0, RDMA_OPS);
}

static void add_what_does_not(Suite *suite)
{
	TCase *wrong = add_case(suite, "wrong"), *full = add_case(suite, "full");

	tcase_add_loop_test(wrong, rdma__closed_port__dest_vp_stop, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__no_such_port__dest_vp_stop, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__no_such_node__dest_vp_stop, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__wrong_key__mmt, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__wrong_key_and_length_zero__mmt, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__outside_the_remote_region__mmt, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__end_beyond_32_bits__mmt, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__unknown_remote_handle__att, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__revoked_remote_handle__att, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__handle_of_another_endpoint__mmt, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__access_not_allowed__mmt, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__local_side_wrong__refused, 0, RDMA_OPS);
	tcase_add_loop_test(wrong, rdma__memory_out_of_reach__says_why_and_raises_nothing, 0, RDMA_OPS);
	tcase_add_test(full, put__their_eq_full__data_in_place_local_event_raised_loss_counted);
	tcase_add_test(full, put__our_eq_full__data_in_place_remote_event_raised_loss_counted);
	tcase_add_test(full, imm_put__their_eq_full__data_in_place);
}

static void add_the_rest(Suite *suite)
{
	TCase *pieces = add_case(suite, "pieces"), *report = add_case(suite, "report");
	TCase *bell = add_case(suite, "bell");

	tcase_add_loop_test(pieces, exec_move__in_pieces__moves_all_and_raises_nothing_before_finish, 0, 2);
	tcase_add_test(pieces, exec_move__first_piece__moves_just_that);
	tcase_add_test(pieces, exec_move__region_too_short_for_the_whole__refused_at_the_first_piece);
	tcase_add_test(pieces, exec_move__revoked_between_pieces__att);
	tcase_add_test(pieces, exec_finish__port_closed_since__dest_vp_stop_and_local_event);
	tcase_add_loop_test(report, report__rdma__names_target_handle_offset_and_length, 0, RDMA_OPS);
	tcase_add_test(report, report__mp__names_target_and_length);
	tcase_add_test(report, report__error_queue_full__keeps_the_first_and_counts_the_rest);
	tcase_add_test(bell, bell__nobody_sleeps__does_not_ring);
	tcase_add_loop_test(bell, bell__somebody_sleeps__rings_for_mp_and_event, 0, 2);
	tcase_add_test(bell, bell__request_refused__does_not_ring);
}

int main(void)
{
	Suite *suite = suite_create("exec");

	add_what_works(suite);
	add_what_does_not(suite);
	add_the_rest(suite);
	return suite_run(suite);
}
