/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mmt.c - the memory table: who finds what under which handle, when
 * handles end, and what readers see while entries change hands.
 */
#include "unit.h"

#include <glex.h>
#include <pthread.h>

#include "emulator/nic/mmt.h"

#define OURS   7u /* sessions */
#define THEIRS 8u
#define EP     5u

static struct emu_nic *nic;

static void setup(void)
{
	nic = unit_zeroed(sizeof(*nic));
}

static void teardown(void)
{
	free(nic);
}

/* A region all of whose fields follow from n. */
static struct emu_region region_of(uint32_t n, uint32_t session, uint32_t ep_num)
{
	struct emu_region region = {
		.addr = UINT64_C(0x7f0000000000) + (uint64_t)n * 4099,
		.len = (uint64_t)n * 3 + 1,
		.map = emu_pair(n, n ^ 0x5555u),
		.map_offset = (n % 3 ? -1 : 1) * ((int64_t)n << 12), /* the region begins in front of its object */
		.key = n * 2654435761u,
		.pid = n + 100,
		.session = session,
		.ep_num = ep_num,
		.access = n % 4,
		.way = n % 2 ? EMU_WAY_MAP : EMU_WAY_ATTACH,
		.kind = (enum emu_kind)(n / 2 % 4),
	};
	return region;
}

static bool same(const struct emu_region *a, const struct emu_region *b)
{
	return a->addr == b->addr && a->len == b->len && a->map == b->map && a->map_offset == b->map_offset &&
	       a->key == b->key && a->pid == b->pid && a->session == b->session && a->ep_num == b->ep_num &&
	       a->access == b->access && a->way == b->way && a->kind == b->kind;
}

static uint64_t enter(uint32_t n, uint32_t session, uint32_t ep_num)
{
	struct emu_region region = region_of(n, session, ep_num);
	uint64_t handle = 0;

	UNIT_CHECK(emu_mmt_register(nic, &region, &handle));
	return handle;
}

static bool is_known(uint64_t handle)
{
	struct emu_region region;

	return emu_mmt_find(nic, handle, &region);
}

static uint32_t used(void)
{
	return atomic_load(&nic->mmt_used);
}

/* ---- register, find ------------------------------------------------------ */

START_TEST(find__registered__gives_every_field)
{
	struct emu_region expected = region_of((uint32_t)_i, OURS, EP), found;
	uint64_t handle = enter((uint32_t)_i, OURS, EP);

	ck_assert(emu_mmt_find(nic, handle, &found));
	ck_assert(same(&expected, &found));
}
END_TEST

START_TEST(register__first_of_all__handle_is_not_zero)
{
	struct emu_region region = {.session = OURS};
	uint64_t handle = 0;

	ck_assert(emu_mmt_register(nic, &region, &handle));
	ck_assert_uint_ne(handle, 0);
}
END_TEST

START_TEST(register__handle__holds_index_page_offset_and_generation)
{
	struct emu_region region = region_of(3, OURS, EP);
	glex_mem_handle_t mh;

	region.addr = 0x12345abcu;
	ck_assert(emu_mmt_register(nic, &region, &mh.v));
	ck_assert_uint_eq(mh.mmt_index, 0);
	ck_assert_uint_eq(mh.att_base_off, 0xabc);
	ck_assert_uint_eq(mh.att_index, 1);
}
END_TEST

START_TEST(register__same_memory_twice__two_handles)
{
	uint64_t a = enter(1, OURS, EP), b = enter(1, OURS, EP);

	ck_assert_uint_ne(a, b);
	ck_assert(emu_mmt_revoke(nic, a, OURS, EP));
	ck_assert(is_known(b));
}
END_TEST

START_TEST(register__table_full__fails_until_one_is_revoked)
{
	static uint64_t handles[EMU_MMT_UNITS];
	struct emu_region region = region_of(1, OURS, EP), found;
	uint64_t handle = 42;

	for (uint32_t n = 0; n < EMU_MMT_UNITS; n++)
		handles[n] = enter(n, OURS, EP);
	ck_assert_uint_eq(used(), EMU_MMT_UNITS);
	ck_assert(!emu_mmt_register(nic, &region, &handle));
	ck_assert_uint_eq(handle, 42);
	for (uint32_t n = 0; n < EMU_MMT_UNITS; n++) {
		struct emu_region expected = region_of(n, OURS, EP);

		UNIT_CHECK(emu_mmt_find(nic, handles[n], &found) && same(&expected, &found));
	}
	ck_assert(emu_mmt_revoke(nic, handles[1234], OURS, EP));
	ck_assert(emu_mmt_register(nic, &region, &handle));
	ck_assert(!emu_mmt_register(nic, &region, &handle));
}
END_TEST

START_TEST(register__generation_wraps__skips_zero)
{
	glex_mem_handle_t mh;

	atomic_store(&nic->mmt[0].stamp, emu_pair(UINT32_MAX, EMU_SESSION_NONE));
	mh.v = enter(1, OURS, EP);
	ck_assert_uint_eq(mh.mmt_index, 0);
	ck_assert_uint_eq(mh.att_index, 1);
	ck_assert(is_known(mh.v));
}
END_TEST

/* ---- handles that must not match ----------------------------------------- */

START_TEST(find__revoked__is_unknown)
{
	uint64_t handle = enter(1, OURS, EP);

	ck_assert(emu_mmt_revoke(nic, handle, OURS, EP));
	ck_assert(!is_known(handle));
	ck_assert_uint_eq(used(), 0);
}
END_TEST

START_TEST(find__stale_handle_after_reuse__never_matches)
{
	uint64_t stale[300];

	for (uint32_t n = 0; n < 300; n++) {
		stale[n] = enter(1, OURS, EP); /* the same region each time: only the generation differs */
		ck_assert(is_known(stale[n]));
		for (uint32_t before = 0; before < n; before++)
			UNIT_CHECK(!is_known(stale[before]));
		ck_assert(emu_mmt_revoke(nic, stale[n], OURS, EP));
	}
}
END_TEST

START_TEST(find__zero_on_an_empty_table__is_unknown)
{
	ck_assert(!is_known(0));
}
END_TEST

START_TEST(find__any_bit_of_the_handle_flipped__is_unknown)
{
	uint64_t handle = enter(77, OURS, EP);

	for (int bit = 0; bit < 64; bit++)
		ck_assert(!is_known(handle ^ UINT64_C(1) << bit));
	ck_assert(is_known(handle));
}
END_TEST

START_TEST(find__index_outside_the_table__is_unknown)
{
	glex_mem_handle_t mh = {.v = enter(1, OURS, EP)};

	mh.mmt_index = EMU_MMT_UNITS;
	ck_assert(!is_known(mh.v));
	mh.mmt_index = UINT16_MAX;
	ck_assert(!is_known(mh.v));
	ck_assert(!emu_mmt_revoke(nic, mh.v, OURS, EP));
}
END_TEST

START_TEST(find__random_bits__are_unknown)
{
	uint32_t seed = 99;

	for (uint32_t n = 0; n < 64; n++)
		enter(n, OURS, EP);
	for (int n = 0; n < 100000; n++) {
		glex_mem_handle_t mh;

		mh.v = (uint64_t)unit_random(&seed) << 40 ^ (uint64_t)unit_random(&seed) << 20 ^ unit_random(&seed);
		if (mh.att_index != 1) /* the only generation given so far */
			UNIT_CHECK(!is_known(mh.v));
	}
}
END_TEST

/* ---- revoke -------------------------------------------------------------- */

START_TEST(revoke__another_session__is_refused)
{
	uint64_t handle = enter(1, OURS, EP);

	ck_assert(!emu_mmt_revoke(nic, handle, THEIRS, EP));
	ck_assert(is_known(handle));
}
END_TEST

START_TEST(revoke__another_endpoint__is_refused)
{
	uint64_t handle = enter(1, OURS, EP);

	ck_assert(!emu_mmt_revoke(nic, handle, OURS, EP + 1));
	ck_assert(is_known(handle));
}
END_TEST

START_TEST(revoke__twice__second_is_refused)
{
	uint64_t handle = enter(1, OURS, EP);

	ck_assert(emu_mmt_revoke(nic, handle, OURS, EP));
	ck_assert(!emu_mmt_revoke(nic, handle, OURS, EP));
	ck_assert_uint_eq(used(), 0);
}
END_TEST

START_TEST(revoke__stale_handle__leaves_the_next_tenant)
{
	uint64_t stale = enter(1, OURS, EP), next;

	ck_assert(emu_mmt_revoke(nic, stale, OURS, EP));
	next = enter(1, OURS, EP);
	ck_assert(!emu_mmt_revoke(nic, stale, OURS, EP));
	ck_assert(is_known(next));
}
END_TEST

/* ---- reclaim ------------------------------------------------------------- */

START_TEST(reclaim__session__frees_all_of_its_own_and_no_other)
{
	uint64_t ours[3] = {enter(1, OURS, EP), enter(2, OURS, EP + 1), enter(3, OURS, EP)};
	uint64_t theirs = enter(4, THEIRS, EP);

	ck_assert_uint_eq(emu_mmt_reclaim(nic, OURS, UINT32_MAX), 3);
	for (int n = 0; n < 3; n++)
		ck_assert(!is_known(ours[n]));
	ck_assert(is_known(theirs));
	ck_assert_uint_eq(used(), 1);
	ck_assert_uint_eq(emu_mmt_reclaim(nic, OURS, UINT32_MAX), 0);
}
END_TEST

START_TEST(reclaim__endpoint__frees_that_session_s_regions_there_only)
{
	uint64_t there = enter(1, OURS, EP), elsewhere = enter(2, OURS, EP + 1), theirs = enter(3, THEIRS, EP);

	ck_assert_uint_eq(emu_mmt_reclaim(nic, OURS, EP), 1);
	ck_assert(!is_known(there));
	ck_assert(is_known(elsewhere));
	ck_assert(is_known(theirs));
}
END_TEST

/* A thread of the session is about to register on another endpoint: stamped, with the last tenant's fields. */
static void begin_registration(uint32_t session)
{
	uint64_t old = enter(1, session, EP);

	ck_assert(emu_mmt_revoke(nic, old, session, EP));
	atomic_store(&nic->mmt[0].stamp, emu_pair(2, session));
}

START_TEST(reclaim__session_died_while_registering__entry_is_free)
{
	begin_registration(OURS);
	ck_assert_uint_eq(emu_mmt_reclaim(nic, OURS, UINT32_MAX), 1);
	ck_assert_uint_eq(emu_low(atomic_load(&nic->mmt[0].stamp)), EMU_SESSION_NONE);
}
END_TEST

START_TEST(reclaim__endpoint_while_registering_on_another__entry_stays_claimed)
{
	begin_registration(OURS);
	ck_assert_uint_eq(emu_mmt_reclaim(nic, OURS, EP), 0);
	ck_assert_uint_eq(atomic_load(&nic->mmt[0].stamp), emu_pair(2, OURS));
}
END_TEST

/* ---- threads ------------------------------------------------------------- */

#define RIVALS	  2
#define ROUNDS	  20000u
#define OWNERS	  3
#define SPINS_MAX 2000

static _Atomic uint32_t round_begun, rivals_done, winners;
static _Atomic uint64_t contested, next_tenant;

/* No barrier of the system's: it would let them go one after the other. */
static void await_round(uint32_t round)
{
	uint32_t spins = 0;

	while (atomic_load(&round_begun) < round)
		if (++spins % SPINS_MAX == 0)
			sched_yield();
}

static void *revoke_and_reuse(void *arg)
{
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		await_round(round);
		if (emu_mmt_revoke(nic, atomic_load(&contested), OURS, EP)) {
			atomic_fetch_add(&winners, 1);
			atomic_store(&next_tenant, enter(2, THEIRS, EP));
		}
		atomic_fetch_add(&rivals_done, 1);
	}
	return arg;
}

START_TEST(revoke__by_many_threads_at_once__one_wins_and_the_next_tenant_stays)
{
	pthread_t threads[RIVALS];

	for (int t = 0; t < RIVALS; t++)
		ck_assert_int_eq(pthread_create(&threads[t], NULL, revoke_and_reuse, NULL), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		atomic_store(&contested, enter(1, OURS, EP));
		atomic_store(&winners, 0);
		atomic_store(&rivals_done, 0);
		atomic_store(&round_begun, round);
		UNIT_WAIT(atomic_load(&rivals_done) == RIVALS);
		UNIT_CHECK(atomic_load(&winners) == 1);
		UNIT_CHECK(is_known(atomic_load(&next_tenant)) && used() == 1);
		UNIT_CHECK(emu_mmt_revoke(nic, atomic_load(&next_tenant), THEIRS, EP));
	}
	for (int t = 0; t < RIVALS; t++)
		pthread_join(threads[t], NULL);
}
END_TEST

#define READERS	    2
#define GENERATIONS 60000u

static _Atomic uint64_t latest;
static _Atomic uint32_t stop;
static _Atomic uint32_t found_any;

/* What map_it makes of a region that was reached by attach. */
static struct emu_region mapped(struct emu_region region)
{
	region.way = EMU_WAY_MAP;
	region.kind = EMU_KIND_ADOPTED;
	region.map = emu_pair(region.key, 0x77777777u);
	region.map_offset = -(int64_t)region.len * 5;
	return region;
}

static void map_it(uint64_t handle)
{
	glex_mem_handle_t mh = {.v = handle};
	struct emu_region region, better;

	UNIT_CHECK(emu_mmt_at(nic, mh.mmt_index, &region));
	if (region.way != EMU_WAY_ATTACH)
		return;
	better = mapped(region);
	emu_mmt_map(&region, better.map, better.map_offset, better.kind);
}

/* What the one who wrote generation n into the handle wrote into the fields. */
static bool is_whole(uint64_t handle, const struct emu_region *found)
{
	glex_mem_handle_t mh = {.v = handle};
	struct emu_region expected = region_of(mh.att_index, OURS, EP);

	if (found->way == EMU_WAY_ATTACH) { /* these nobody uses, and map_it may be writing them */
		expected.map = found->map;
		expected.map_offset = found->map_offset;
	} else if (expected.way == EMU_WAY_ATTACH) {
		expected = mapped(expected);
	}
	return same(&expected, found);
}

static void *read_regions(void *arg)
{
	struct emu_region found;

	while (!atomic_load(&stop)) {
		uint64_t handle = atomic_load(&latest);

		if (!emu_mmt_find(nic, handle, &found))
			continue;
		UNIT_CHECK(is_whole(handle, &found));
		atomic_store(&found_any, 1);
	}
	return arg;
}

/* One entry, used again and again: each find gives a region that was there as a whole, or none. */
START_TEST(find__entry_is_registered_anew_all_the_time__never_a_mixed_region)
{
	pthread_t readers[READERS];
	uint32_t n;

	atomic_store(&latest, enter(1, OURS, EP));
	for (int t = 0; t < READERS; t++)
		ck_assert_int_eq(pthread_create(&readers[t], NULL, read_regions, NULL), 0);
	UNIT_WAIT(atomic_load(&found_any));
	for (n = 2; n < GENERATIONS; n++) {
		UNIT_CHECK(emu_mmt_revoke(nic, atomic_load(&latest), OURS, EP));
		atomic_store(&latest, enter(n, OURS, EP));
		if (n % 4 < 2)
			map_it(atomic_load(&latest));
		if (n % 512 == 0)
			sched_yield();
	}
	atomic_store(&stop, 1);
	for (int t = 0; t < READERS; t++)
		pthread_join(readers[t], NULL);
	ck_assert_uint_eq(used(), 1);
}
END_TEST

START_TEST(map__reached_by_attach__same_handle_and_the_object)
{
	struct emu_region region = region_of(2, OURS, EP), expected = mapped(region), found;
	uint64_t handle = enter(2, OURS, EP);

	map_it(handle);
	ck_assert(emu_mmt_find(nic, handle, &found));
	ck_assert(same(&expected, &found));
	ck_assert(emu_mmt_revoke(nic, handle, OURS, EP));
	ck_assert(!is_known(handle));
	handle = enter(2, OURS, EP);
	ck_assert(emu_mmt_find(nic, handle, &found));
	ck_assert(same(&region, &found));
}
END_TEST

static void *register_own(void *arg)
{
	uint32_t session = *(uint32_t *)arg, seed = session;
	uint64_t handles[32] = {0};
	struct emu_region found;

	for (int n = 0; n < 20000; n++) {
		uint32_t at = unit_random(&seed) % 32;

		if (handles[at]) {
			UNIT_CHECK(emu_mmt_find(nic, handles[at], &found) && found.session == session &&
				   found.key == at);
			UNIT_CHECK(emu_mmt_revoke(nic, handles[at], session, EP));
			handles[at] = 0;
		} else {
			struct emu_region region = region_of(at, session, EP);

			region.key = at;
			UNIT_CHECK(emu_mmt_register(nic, &region, &handles[at]));
		}
	}
	return NULL;
}

START_TEST(register__many_sessions_at_once__each_keeps_its_own)
{
	uint32_t sessions[OWNERS];
	pthread_t threads[OWNERS];
	uint32_t left, freed = 0;

	for (uint32_t t = 0; t < OWNERS; t++) {
		sessions[t] = OURS + t;
		ck_assert_int_eq(pthread_create(&threads[t], NULL, register_own, &sessions[t]), 0);
	}
	for (int t = 0; t < OWNERS; t++)
		pthread_join(threads[t], NULL);
	left = used();
	for (uint32_t t = 0; t < OWNERS; t++)
		freed += emu_mmt_reclaim(nic, sessions[t], UINT32_MAX);
	ck_assert_uint_eq(freed, left);
	ck_assert_uint_eq(used(), 0);
}
END_TEST

static Suite *mmt_suite(void)
{
	Suite *suite = suite_create("mmt");
	TCase *find = tcase_create("find"), *revoke = tcase_create("revoke"), *race = tcase_create("race");

	tcase_add_checked_fixture(find, setup, teardown);
	tcase_add_loop_test(find, find__registered__gives_every_field, 0, 8);
	tcase_add_test(find, register__first_of_all__handle_is_not_zero);
	tcase_add_test(find, register__handle__holds_index_page_offset_and_generation);
	tcase_add_test(find, register__same_memory_twice__two_handles);
	tcase_add_test(find, register__table_full__fails_until_one_is_revoked);
	tcase_add_test(find, register__generation_wraps__skips_zero);
	tcase_add_test(find, find__revoked__is_unknown);
	tcase_add_test(find, find__stale_handle_after_reuse__never_matches);
	tcase_add_test(find, find__zero_on_an_empty_table__is_unknown);
	tcase_add_test(find, find__any_bit_of_the_handle_flipped__is_unknown);
	tcase_add_test(find, find__index_outside_the_table__is_unknown);
	tcase_add_test(find, find__random_bits__are_unknown);
	tcase_add_checked_fixture(revoke, setup, teardown);
	tcase_add_test(revoke, revoke__another_session__is_refused);
	tcase_add_test(revoke, revoke__another_endpoint__is_refused);
	tcase_add_test(revoke, revoke__twice__second_is_refused);
	tcase_add_test(revoke, revoke__stale_handle__leaves_the_next_tenant);
	tcase_add_test(revoke, reclaim__session__frees_all_of_its_own_and_no_other);
	tcase_add_test(revoke, reclaim__endpoint__frees_that_session_s_regions_there_only);
	tcase_add_test(revoke, reclaim__session_died_while_registering__entry_is_free);
	tcase_add_test(revoke, reclaim__endpoint_while_registering_on_another__entry_stays_claimed);
	tcase_set_timeout(race, 300); /* with a sanitizer, on a busy machine */
	tcase_add_checked_fixture(race, setup, teardown);
	tcase_add_test(race, revoke__by_many_threads_at_once__one_wins_and_the_next_tenant_stays);
	tcase_add_test(race, map__reached_by_attach__same_handle_and_the_object);
	tcase_add_test(race, find__entry_is_registered_anew_all_the_time__never_a_mixed_region);
	tcase_add_test(race, register__many_sessions_at_once__each_keeps_its_own);
	suite_add_tcase(suite, find);
	suite_add_tcase(suite, revoke);
	suite_add_tcase(suite, race);
	return suite;
}

int main(void)
{
	return suite_run(mmt_suite());
}
