/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_att.c - the translation cache against a plain one that looks at everything
 * it has; and which pages of which region a request makes it look up.
 */
#include "two_ports.h"

#include "emulator/nic/att.h"

#define SETS 16u

static struct emu_atc atc;

static void make(uint32_t sets)
{
	atc.set = unit_zeroed(sets * sizeof(*atc.set));
	atc.sets = sets;
}

/* ---- the plain one: entries with the time they were last used ---------------------- */

struct entry {
	uint64_t handle, page, used;
};

static struct entry plain[SETS][EMU_ATC_WAYS];
static uint64_t now;

static enum emu_atc_found use_plain(uint64_t handle, uint64_t page)
{
	struct entry *set = plain[emu_atc_place(&atc, handle, page)], *oldest = &set[0];
	enum emu_atc_found found;

	for (uint32_t i = 0; i < EMU_ATC_WAYS; i++) {
		if (set[i].used && set[i].handle == handle && set[i].page == page) {
			set[i].used = ++now;
			return EMU_ATC_HIT;
		}
		if (set[i].used < oldest->used)
			oldest = &set[i];
	}
	found = oldest->used ? EMU_ATC_EVICTED : EMU_ATC_MISS;
	*oldest = (struct entry){.handle = handle, .page = page, .used = ++now};
	return found;
}

START_TEST(atc__any_sequence__finds_what_a_plain_lru_finds)
{
	uint64_t handles = UINT64_C(1) << _i, seed = 88172645463325252u + (uint64_t)_i;
	uint32_t kinds[3] = {0};

	make(SETS);
	for (int n = 0; n < 200000; n++) {
		uint64_t handle, page;
		enum emu_atc_found found;

		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		handle = seed % handles + 1;
		page = (seed >> 20) % (seed & 1 << 19 ? 8 : 200 / handles + 1);
		found = emu_atc_use(&atc, handle, page);
		if (found != use_plain(handle, page))
			ck_abort_msg("use %d of page %llu of region %llu: %d", n, (unsigned long long)page,
				     (unsigned long long)handle, (int)found);
		kinds[found]++;
	}
	ck_assert_uint_gt(kinds[EMU_ATC_HIT], 1000);
	ck_assert_uint_gt(kinds[EMU_ATC_MISS], 0);
	ck_assert_uint_gt(kinds[EMU_ATC_EVICTED], _i < 7 ? 0 : 1000);
	free(atc.set);
}
END_TEST

START_TEST(atc__region_as_large_as_it_is__fits_exactly)
{
	const uint64_t pages = EMU_ATT_UNITS;

	make(EMU_ATC_SETS);
	for (uint64_t page = 0; page < pages; page++)
		if (emu_atc_use(&atc, 77, page) != EMU_ATC_MISS)
			ck_abort_msg("page %llu was there", (unsigned long long)page);
	for (uint64_t page = 0; page < pages; page++)
		if (emu_atc_use(&atc, 77, page) != EMU_ATC_HIT)
			ck_abort_msg("page %llu was pushed out", (unsigned long long)page);
	ck_assert_int_eq(emu_atc_use(&atc, 77, pages), EMU_ATC_EVICTED);
	ck_assert_int_eq(emu_atc_use(&atc, 77, 0), EMU_ATC_EVICTED); /* it was the least recently used of its set */
	free(atc.set);
}
END_TEST

START_TEST(atc__same_page_of_a_later_generation__is_another)
{
	glex_mem_handle_t mh = {.v = 0};

	make(SETS);
	mh.mmt_index = 5;
	mh.att_index = 1;
	ck_assert_int_eq(emu_atc_use(&atc, mh.v, 3), EMU_ATC_MISS);
	ck_assert_int_eq(emu_atc_use(&atc, mh.v, 3), EMU_ATC_HIT);
	mh.att_index = 2;
	ck_assert_int_eq(emu_atc_use(&atc, mh.v, 3), EMU_ATC_MISS);
	free(atc.set);
}
END_TEST

/* ---- requests ------------------------------------------------------------------------ */

static void grow_nic(struct side *side)
{
	struct emu_nic *nic = unit_zeroed(EMU_NIC_SIZE(true));

	memcpy(nic, side->nic, sizeof(*nic));
	free(side->nic);
	side->nic = nic;
}

static void setup_model(void)
{
	setup();
	grow_nic(&ours);
	grow_nic(&theirs);
	fake.host.model = 1;
}

static void expect_counted(const struct side *side, uint64_t passed, uint64_t hit, uint64_t miss)
{
	ck_assert_uint_eq(atomic_load(&side->nic->counters.passed), passed);
	ck_assert_uint_eq(atomic_load(&side->nic->counters.att_hit), hit);
	ck_assert_uint_eq(atomic_load(&side->nic->counters.att_miss), miss);
	ck_assert_uint_eq(atomic_load(&side->nic->counters.att_evicted), 0);
}

/* How many pages the bytes [offset, offset+len) of a side's memory lie on. */
static uint64_t pages(const struct side *side, uint64_t offset, uint64_t len)
{
	uintptr_t first = (uintptr_t)side->memory + offset;

	return (first + len - 1) / 4096 - first / 4096 + 1;
}

START_TEST(request__put_and_get__walk_the_pages_of_both_regions)
{
	struct emu_desc desc = desc_of(_i ? EMU_OP_GET : EMU_OP_PUT, 3000);
	uint64_t here = pages(&ours, 16, 3000), there = pages(&theirs, 160, 3000);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	expect_counted(&ours, 1, 0, here);
	expect_counted(&theirs, 1, 0, there);
	ck_assert_int_eq(exec(&desc), EMU_OK);
	expect_counted(&ours, 2, here, here);
	expect_counted(&theirs, 2, there, there);
}
END_TEST

START_TEST(request__imm_put__walks_the_target_only)
{
	struct emu_desc desc = desc_of(EMU_OP_IMM_PUT, 8);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	expect_counted(&ours, 0, 0, 0);
	expect_counted(&theirs, 1, 0, 1);
}
END_TEST

START_TEST(request__length_zero_or_an_mp__walks_nothing)
{
	struct emu_desc desc = desc_of(_i ? EMU_OP_MP : EMU_OP_PUT, _i ? 8 : 0);

	ck_assert_int_eq(exec(&desc), EMU_OK);
	expect_counted(&ours, 0, 0, 0);
	expect_counted(&theirs, 0, 0, 0);
}
END_TEST

START_TEST(request__refused__counts_its_cause_and_walks_nothing)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 64);
	uint32_t cause = (uint32_t)_i + 1;

	if (cause == EMU_BAD_HANDLE)
		desc.rmt_mh ^= UINT64_C(1) << 40;
	else if (cause == EMU_BAD_ENDPOINT)
		desc.rmt_mh = enter(&theirs, THEIR_SESSION, THEIR_EP + 1, SIZE, GLEX_MEM_WRITE);
	else if (cause == EMU_BAD_BOUNDS)
		desc.rmt_offset = SIZE;
	else if (cause == EMU_BAD_KEY)
		desc.rmt_key++;
	else
		desc.rmt_mh = enter(&theirs, THEIR_SESSION, THEIR_EP, SIZE, GLEX_MEM_READ);
	emu_report(&fake.host, &ours.port, &desc, exec(&desc));
	for (uint32_t i = 0; i < EMU_BAD_ACCESS; i++)
		ck_assert_uint_eq(atomic_load(&theirs.nic->counters.refused[i]), i + 1 == cause);
	expect_counted(&ours, 0, 0, 0);
	expect_counted(&theirs, 0, 0, 0);
}
END_TEST

START_TEST(request__not_modelled__touches_no_cache)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 64);

	fake.host.model = 0;
	ck_assert_int_eq(exec(&desc), EMU_OK);
	expect_counted(&ours, 0, 0, 0);
	expect_counted(&theirs, 0, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("att");
	TCase *cache = tcase_create("cache"), *requests = tcase_create("requests");

	tcase_add_loop_test(cache, atc__any_sequence__finds_what_a_plain_lru_finds, 0, 8);
	tcase_add_test(cache, atc__region_as_large_as_it_is__fits_exactly);
	tcase_add_test(cache, atc__same_page_of_a_later_generation__is_another);
	tcase_add_checked_fixture(requests, setup_model, teardown);
	tcase_add_loop_test(requests, request__put_and_get__walk_the_pages_of_both_regions, 0, 2);
	tcase_add_test(requests, request__imm_put__walks_the_target_only);
	tcase_add_loop_test(requests, request__length_zero_or_an_mp__walks_nothing, 0, 2);
	tcase_add_loop_test(requests, request__refused__counts_its_cause_and_walks_nothing, 0, EMU_BAD_ACCESS);
	tcase_add_test(requests, request__not_modelled__touches_no_cache);
	suite_add_tcase(suite, cache);
	suite_add_tcase(suite, requests);
	return suite_run(suite);
}
