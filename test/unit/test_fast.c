/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fast.c - what the usual case of a small request may rely on: regions that
 * are remembered, and that end with their registration; bytes copied inline;
 * data and event together.
 */
#include "two_ports.h"

#include "emulator/nic/fast.h"

static struct emu_known known[2 * EMU_KNOWN];
static struct emu_away away[EMU_KNOWN];

static void setup_known(void)
{
	setup();
	memset(known, 0, sizeof(known));
	fake.host.known = known;
	memset(away, 0, sizeof(away));
	fake.host.away = away;
}

static const struct emu_known *recall(uint64_t handle, uint64_t port, uint64_t offset, uint64_t len)
{
	return emu_recall(&fake.host, EMU_END_REMOTE, handle, port, offset, len);
}

static uint64_t our_addr(void)
{
	glex_ep_addr_t addr = {.v = 0};

	addr.nic_id = OUR_NIC;
	addr.ep_num = OUR_EP;
	return addr.v;
}

/* A PUT within our own memory, so that both ends lie open to us. */
static void put_to_ourselves(uint64_t handle)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 8);

	desc.dst = our_addr();
	desc.rmt_mh = handle;
	desc.flag = 0;
	desc.rmt_offset = 32;
	ck_assert_int_eq(exec(&desc), EMU_OK);
}

/* ---- regions ------------------------------------------------------------- */

START_TEST(recall__never_seen__nothing)
{
	ck_assert_ptr_null(recall(ours.handle, our_addr(), 0, 8));
	ck_assert_ptr_null(recall(0, 0, 0, 0));
}
END_TEST

START_TEST(recall__host_without_memory_of_them__nothing)
{
	fake.host.known = NULL;
	put_to_ourselves(ours.handle);
	ck_assert_ptr_null(recall(ours.handle, our_addr(), 0, 8));
}
END_TEST

START_TEST(recall__after_a_put__where_its_bytes_are)
{
	const struct emu_known *found;

	put_to_ourselves(ours.handle);
	found = recall(ours.handle, our_addr(), 0, 8);
	ck_assert_ptr_nonnull(found);
	ck_assert_ptr_eq(found->base, ours.memory);
	ck_assert_uint_eq(found->session, OUR_SESSION);
	ck_assert_ptr_nonnull(found->to);
	ck_assert_uint_eq(found->to->port->ep_num, OUR_EP);
	ck_assert_ptr_eq(emu_recall_remote(&fake.host, ours.handle, our_addr(), 0, 8, KEY, GLEX_MEM_WRITE), found);
}
END_TEST

START_TEST(recall__another_endpoint_or_handle__nothing)
{
	glex_mem_handle_t mh = {.v = ours.handle};

	put_to_ourselves(ours.handle);
	ck_assert_ptr_null(recall(ours.handle, their_addr().v, 0, 8));
	ck_assert_ptr_null(recall(ours.handle, our_addr() + 1, 0, 8));
	mh.att_index++;
	ck_assert_ptr_null(recall(mh.v, our_addr(), 0, 8));
}
END_TEST

START_TEST(recall__outside_the_region__nothing)
{
	put_to_ourselves(ours.handle);
	ck_assert_ptr_nonnull(recall(ours.handle, our_addr(), SIZE - 8, 8));
	ck_assert_ptr_null(recall(ours.handle, our_addr(), SIZE - 7, 8));
	ck_assert_ptr_null(recall(ours.handle, our_addr(), SIZE + 1, 0));
	ck_assert_ptr_null(recall(ours.handle, our_addr(), UINT64_MAX, 8));
	ck_assert_ptr_null(recall(ours.handle, our_addr(), 8, UINT64_MAX));
}
END_TEST

START_TEST(recall_remote__wrong_key_or_access__nothing)
{
	uint64_t read_only = enter(&ours, OUR_SESSION, OUR_EP, SIZE, GLEX_MEM_READ);
	struct emu_desc desc = desc_of(EMU_OP_GET, 8);

	desc.dst = our_addr();
	desc.rmt_mh = read_only;
	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_ptr_nonnull(emu_recall_remote(&fake.host, read_only, our_addr(), 0, 8, KEY, GLEX_MEM_READ));
	ck_assert_ptr_null(emu_recall_remote(&fake.host, read_only, our_addr(), 0, 8, KEY, GLEX_MEM_WRITE));
	ck_assert_ptr_null(emu_recall_remote(&fake.host, read_only, our_addr(), 0, 8, KEY + 1, GLEX_MEM_READ));
}
END_TEST

START_TEST(recall__revoked_since__nothing_even_if_registered_anew)
{
	uint64_t again;

	put_to_ourselves(ours.handle);
	ck_assert(emu_mmt_revoke(ours.nic, ours.handle, OUR_SESSION, OUR_EP));
	ck_assert_ptr_null(recall(ours.handle, our_addr(), 0, 8));
	again = enter(&ours, OUR_SESSION, OUR_EP, SIZE, GLEX_MEM_READ | GLEX_MEM_WRITE);
	ck_assert_ptr_null(recall(ours.handle, our_addr(), 0, 8));
	ck_assert_ptr_null(recall(again, our_addr(), 0, 8));
	ours.handle = again;
	put_to_ourselves(again);
	ck_assert_ptr_nonnull(recall(again, our_addr(), 0, 8));
}
END_TEST

START_TEST(recall__owner_ended__nothing)
{
	put_to_ourselves(ours.handle);
	ck_assert_uint_ge(emu_mmt_reclaim(ours.nic, OUR_SESSION, UINT32_MAX), 1);
	ck_assert_ptr_null(recall(ours.handle, our_addr(), 0, 8));
}
END_TEST

START_TEST(recall__memory_of_others_reached_by_attach__nothing)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 8);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_ptr_null(recall(theirs.handle, their_addr().v, 0, 8));
	ck_assert_ptr_nonnull(emu_recall_local(&fake.host, ours.handle, our_addr(), 0, 8));
}
END_TEST

START_TEST(recall_local__somebody_elses_region__nothing)
{
	uint64_t foreign = enter(&ours, THEIR_SESSION, OUR_EP, SIZE, GLEX_MEM_WRITE);

	put_to_ourselves(ours.handle);
	ck_assert_ptr_nonnull(emu_recall_local(&fake.host, ours.handle, our_addr(), 0, 8));
	known[0] = *recall(ours.handle, our_addr(), 0, 8);
	for (uint32_t i = 0; i < 2 * EMU_KNOWN; i++) {
		known[i] = known[0];
		known[i].handle = foreign;
		known[i].session = THEIR_SESSION;
	}
	ck_assert_ptr_nonnull(recall(foreign, our_addr(), 0, 8));
	ck_assert_ptr_null(emu_recall_local(&fake.host, foreign, our_addr(), 0, 8));
}
END_TEST

START_TEST(recall__request_refused__nothing)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 8);

	desc.dst = our_addr();
	desc.rmt_mh = ours.handle;
	desc.rmt_key = KEY + 1;
	ck_assert_int_eq(exec(&desc), GLEX_ERR_STATUS_MMT);
	ck_assert_ptr_null(recall(ours.handle, our_addr(), 0, 8));
}
END_TEST

START_TEST(recall__more_regions_than_places__the_last_is_found_and_none_is_mixed_up)
{
	uint64_t handle[3 * EMU_KNOWN];
	const struct emu_known *found;

	for (uint32_t i = 0; i < 3 * EMU_KNOWN; i++) {
		handle[i] = enter(&ours, OUR_SESSION, OUR_EP, SIZE - i, GLEX_MEM_WRITE);
		put_to_ourselves(handle[i]);
		found = emu_recall_remote(&fake.host, handle[i], our_addr(), 0, 8, KEY, GLEX_MEM_WRITE);
		ck_assert_ptr_nonnull(found);
		for (uint32_t j = 0; j <= i; j++) {
			found = recall(handle[j], our_addr(), 0, 8);
			ck_assert(!found || found->len == SIZE - j);
		}
	}
}
END_TEST

/* ---- regions reached by attach -------------------------------------------- */

static const struct emu_away *recall_away(uint64_t handle, uint64_t offset, uint64_t len, uint32_t key, uint32_t access)
{
	return emu_recall_away(&fake.host, handle, their_addr().v, offset, len, key, access);
}

static const struct emu_away *recall_theirs(void)
{
	return recall_away(theirs.handle, 0, 8, KEY, GLEX_MEM_WRITE);
}

static void put_to_them(void)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 8);

	desc.flag = 0;
	ck_assert_int_eq(exec(&desc), EMU_OK);
}

START_TEST(recall_away__after_a_put__where_its_bytes_are_there)
{
	const struct emu_away *found;

	ck_assert_ptr_null(recall_theirs());
	ck_assert_ptr_null(recall_away(0, 0, 0, 0, GLEX_MEM_WRITE));
	put_to_them();
	found = recall_theirs();
	ck_assert_ptr_nonnull(found);
	ck_assert_uint_eq(found->addr, (uintptr_t)theirs.memory);
	ck_assert_ptr_eq(found->nic, theirs.nic);
}
END_TEST

START_TEST(recall_away__host_without_memory_of_them_or_own_region__nothing)
{
	put_to_ourselves(ours.handle);
	ck_assert_ptr_null(emu_recall_away(&fake.host, ours.handle, our_addr(), 0, 8, KEY, GLEX_MEM_WRITE));
	fake.host.away = NULL;
	put_to_them();
	ck_assert_ptr_null(recall_theirs());
}
END_TEST

START_TEST(recall_away__not_what_was_asked_for__nothing)
{
	glex_mem_handle_t mh = {.v = theirs.handle};

	put_to_them();
	ck_assert_ptr_nonnull(recall_away(theirs.handle, SIZE - 8, 8, KEY, GLEX_MEM_READ));
	ck_assert_ptr_null(recall_away(theirs.handle, SIZE - 7, 8, KEY, GLEX_MEM_READ));
	ck_assert_ptr_null(recall_away(theirs.handle, UINT64_MAX, 8, KEY, GLEX_MEM_READ));
	ck_assert_ptr_null(recall_away(theirs.handle, 0, 8, KEY + 1, GLEX_MEM_READ));
	ck_assert_ptr_null(recall_away(theirs.handle, 0, 8, KEY, EMU_ACCESS_ATOMIC));
	ck_assert_ptr_null(emu_recall_away(&fake.host, theirs.handle, our_addr(), 0, 8, KEY, GLEX_MEM_READ));
	mh.att_index++;
	ck_assert_ptr_null(recall_away(mh.v, 0, 8, KEY, GLEX_MEM_READ));
}
END_TEST

START_TEST(recall_away__revoked_since__nothing)
{
	put_to_them();
	ck_assert(emu_mmt_revoke(theirs.nic, theirs.handle, THEIR_SESSION, THEIR_EP));
	ck_assert_ptr_null(recall_theirs());
}
END_TEST

START_TEST(recall_away__mapped_since__nothing)
{
	glex_mem_handle_t mh = {.v = theirs.handle};
	struct emu_region region;

	put_to_them();
	ck_assert(emu_mmt_at(theirs.nic, mh.mmt_index, &region));
	emu_mmt_map(&region, 1, 0, EMU_KIND_ADOPTED);
	ck_assert_ptr_null(recall_theirs());
}
END_TEST

START_TEST(move_away__either_direction__moved_and_counted)
{
	glex_mem_handle_t mh = {.v = theirs.handle};
	unsigned char here[24];
	uint32_t before;

	put_to_them();
	before = atomic_load(&theirs.nic->used[mh.mmt_index]);
	ck_assert_int_eq(emu_move_away(&fake.host, recall_theirs(), 40, here, sizeof(here), false), EMU_REACH_OK);
	ck_assert_mem_eq(here, theirs.memory + 40, sizeof(here));
	ck_assert_int_eq(emu_move_away(&fake.host, recall_theirs(), 100, here, sizeof(here), true), EMU_REACH_OK);
	ck_assert_mem_eq(theirs.memory + 100, here, sizeof(here));
	ck_assert_uint_eq(atomic_load(&theirs.nic->used[mh.mmt_index]), before + 2);
	fake.reach = EMU_REACH_GONE;
	ck_assert_int_eq(emu_move_away(&fake.host, recall_theirs(), 0, here, 8, true), EMU_REACH_GONE);
}
END_TEST

/* ---- bytes and events ---------------------------------------------------- */

static void check_filled(const struct emu_mp_slot *slot, uint32_t len)
{
	ck_assert_uint_eq(atomic_load(&slot->seq), 41 + len);
	ck_assert_uint_eq(slot->flags, 0);
	ck_assert_uint_eq(slot->len, len);
	ck_assert_uint_eq(slot->src, 0x1122334455667788);
	ck_assert_mem_eq(slot->data, ours.memory + 3, len);
	for (uint32_t i = len; i < EMU_MP_DATA; i++)
		UNIT_CHECK(slot->data[i] == 0xee);
}

START_TEST(fill_mp__every_length__those_bytes_and_no_others)
{
	struct emu_mp_slot slot;

	for (uint32_t len = 0; len <= EMU_MP_DATA; len++) {
		memset(&slot, 0xee, sizeof(slot));
		emu_fill_mp(&slot, 40 + len, 0x1122334455667788, len ? ours.memory + 3 : NULL, len);
		check_filled(&slot, len);
	}
	for (uint32_t len = 8; len <= EMU_MP_DATA; len += 8) {
		memset(&slot, 0xee, sizeof(slot));
		emu_fill_mp_words(&slot, 40 + len, 0x1122334455667788, ours.memory + 3, len);
		check_filled(&slot, len);
	}
}
END_TEST

static const uint32_t lens[] = {1, 8, 96, EMU_SHORT, EMU_SHORT + 1, 1000};

START_TEST(put_data__any_length__data_then_event)
{
	const uint64_t cookie[2] = {THEIR_EVT, 5};

	ck_assert_int_eq(emu_put_data(&fake.host, &theirs.port, theirs.memory + 5, ours.memory, lens[_i], cookie),
			 EMU_OK);
	ck_assert_mem_eq(theirs.memory + 5, ours.memory, lens[_i]);
	ck_assert_uint_eq(theirs.memory[4], 4 + 10);
	ck_assert_uint_eq(theirs.memory[5 + lens[_i]], (5 + lens[_i]) % 241 + 10);
	ck_assert_uint_eq(next_event(&theirs), THEIR_EVT);
	ck_assert_uint_eq(next_event(&theirs), 0);
}
END_TEST

START_TEST(put_data__eq_full__data_in_place_and_loss_counted)
{
	const uint64_t cookie[2] = {THEIR_EVT, 5};

	fill_eq(&theirs);
	ck_assert_int_eq(emu_put_data(&fake.host, &theirs.port, theirs.memory, ours.memory, lens[_i], cookie),
			 GLEX_ERR_STATUS_DEST_EQ_FULL);
	ck_assert_mem_eq(theirs.memory, ours.memory, lens[_i]);
	ck_assert_uint_eq(atomic_load(&theirs.port.port->eq.lost), 1);
	for (uint32_t n = 0; n < EQ; n++)
		ck_assert_uint_eq(next_event(&theirs), FULL_EVT);
	ck_assert_uint_eq(next_event(&theirs), 0);
}
END_TEST

START_TEST(put_data__nobody_to_tell__only_data)
{
	ck_assert_int_eq(emu_put_data(&fake.host, NULL, theirs.memory, ours.memory, lens[_i], NULL), EMU_OK);
	ck_assert_mem_eq(theirs.memory, ours.memory, lens[_i]);
	ck_assert(!has_event(&theirs));
	ck_assert_int_eq(fake.wakes, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fast");
	TCase *regions = tcase_create("regions"), *bytes = tcase_create("bytes");
	int n = sizeof(lens) / sizeof(lens[0]);

	tcase_add_checked_fixture(regions, setup_known, teardown);
	tcase_add_test(regions, recall__never_seen__nothing);
	tcase_add_test(regions, recall__host_without_memory_of_them__nothing);
	tcase_add_test(regions, recall__after_a_put__where_its_bytes_are);
	tcase_add_test(regions, recall__another_endpoint_or_handle__nothing);
	tcase_add_test(regions, recall__outside_the_region__nothing);
	tcase_add_test(regions, recall_remote__wrong_key_or_access__nothing);
	tcase_add_test(regions, recall__revoked_since__nothing_even_if_registered_anew);
	tcase_add_test(regions, recall__owner_ended__nothing);
	tcase_add_test(regions, recall__memory_of_others_reached_by_attach__nothing);
	tcase_add_test(regions, recall_local__somebody_elses_region__nothing);
	tcase_add_test(regions, recall__request_refused__nothing);
	tcase_add_test(regions, recall__more_regions_than_places__the_last_is_found_and_none_is_mixed_up);
	tcase_add_test(regions, recall_away__after_a_put__where_its_bytes_are_there);
	tcase_add_test(regions, recall_away__host_without_memory_of_them_or_own_region__nothing);
	tcase_add_test(regions, recall_away__not_what_was_asked_for__nothing);
	tcase_add_test(regions, recall_away__revoked_since__nothing);
	tcase_add_test(regions, recall_away__mapped_since__nothing);
	tcase_add_test(regions, move_away__either_direction__moved_and_counted);
	suite_add_tcase(suite, regions);
	tcase_add_checked_fixture(bytes, setup_known, teardown);
	tcase_add_test(bytes, fill_mp__every_length__those_bytes_and_no_others);
	tcase_add_loop_test(bytes, put_data__any_length__data_then_event, 0, n);
	tcase_add_loop_test(bytes, put_data__eq_full__data_in_place_and_loss_counted, 0, n);
	tcase_add_loop_test(bytes, put_data__nobody_to_tell__only_data, 0, n);
	suite_add_tcase(suite, bytes);
	return suite_run(suite);
}
