/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bias.c - a ring that one sender has to itself (emulator/nic/bias.h), and
 * how it is taken away from him, at each point of his claim.
 *
 * The owner is stopped where it is told to by doing the steps of its claim by
 * hand; `during` is run where the other's membarrier would be.
 */
#include "unit.h"

#include "emulator/nic/bias.h"

#define SHIFT	 4 /* struct slot */
#define CAPACITY 8u
#define FLAGS_AT offsetof(struct slot, flags)
#define OWNER	 7u
#define OTHER	 8u

struct slot {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved;
	uint64_t tag;
};

static struct emu_ring ring;
static uint32_t first;
static uint32_t barriers;
static void (*during)(void);

static bool order(struct emu_bias *bias)
{
	(void)bias;
	barriers++;
	if (during)
		during();
	return true;
}

static struct emu_bias owner, other = {.order = order};

/* Where rings begin: at 0, where `lead` is 0 too, and so that the index runs over 2^32. */
static const uint32_t firsts[] = {0, 1000, 0xfffffffeu};

#define FIRSTS ((int)(sizeof(firsts) / sizeof(firsts[0])))

static void begin(int n)
{
	first = firsts[n];
	barriers = 0;
	during = NULL;
	owner = (struct emu_bias){.word = emu_bias_word(OWNER, 3), .order = order};
	unit_ring_init(&ring, unit_zeroed(unit_ring_size(CAPACITY, SHIFT)), CAPACITY, SHIFT, first);
	atomic_init(&ring.ctl->lead, first);
}

static void teardown(void)
{
	free(ring.ctl);
	ring.ctl = NULL;
}

/* The index that was claimed. */
static uint32_t claim(uint32_t session, struct emu_bias *bias)
{
	uint32_t index = 0;
	struct slot *slot = emu_ring_claim_as(&ring, session, bias, &index);

	ck_assert_ptr_nonnull(slot);
	ck_assert_ptr_eq(slot, emu_ring_slot(&ring, index));
	return index - first;
}

static void publish(uint32_t n)
{
	struct slot *slot = emu_ring_slot(&ring, first + n);

	slot->flags = 0;
	emu_ring_publish(slot, first + n);
}

static bool is_refused(uint32_t session, struct emu_bias *bias)
{
	uint32_t index;

	return emu_ring_claim_as(&ring, session, bias, &index) == NULL;
}

/* The owner's claim up to its store of lead. */
static void step_ahead(void)
{
	uint64_t lead = atomic_load(&ring.ctl->lead);

	atomic_store(&ring.ctl->lead, lead + 1);
}

/* The rest of it, after it has seen that the ring is not its own. */
static uint32_t step_on(void)
{
	uint32_t index = 0;

	ck_assert_ptr_nonnull(emu_ring_claim_revoked(&ring, OWNER, atomic_load(&ring.ctl->lead), &index));
	return index - first;
}

static bool is_discarded(uint32_t n)
{
	struct slot *slot = emu_ring_peek(&ring, first + n);

	return slot && (slot->flags & EMU_SLOT_DISCARDED);
}

static uint64_t tail(void)
{
	return atomic_load(&ring.ctl->tail);
}

START_TEST(claim__one_sender__has_the_ring_to_itself)
{
	begin(_i);
	for (uint32_t n = 0; n < CAPACITY; n++)
		ck_assert_uint_eq(claim(OWNER, &owner), n);
	ck_assert_uint_eq(tail(), owner.word);
	ck_assert_uint_eq(emu_ring_end(ring.ctl), first + CAPACITY);
	ck_assert_uint_eq(barriers, 0);
}
END_TEST

START_TEST(claim__full_then_released__has_room_again)
{
	begin(_i);
	for (uint32_t n = 0; n < CAPACITY; n++)
		claim(OWNER, &owner);
	ck_assert(is_refused(OWNER, &owner));
	ck_assert(is_refused(OWNER, &owner));
	emu_ring_release(&ring, first + 2);
	ck_assert_uint_eq(claim(OWNER, &owner), CAPACITY);
	ck_assert_uint_eq(claim(OWNER, &owner), CAPACITY + 1);
	ck_assert(is_refused(OWNER, &owner));
	ck_assert_uint_eq(tail(), owner.word);
}
END_TEST

START_TEST(claim__second_sender__takes_it_away_once)
{
	struct emu_bias third = {.word = emu_bias_word(OWNER, 4), .order = order};

	begin(_i);
	claim(OWNER, &owner);
	ck_assert_uint_eq(claim(OTHER, &other), 1);
	ck_assert_uint_eq(barriers, 1);
	ck_assert_uint_eq(tail(), emu_pair(OTHER, first + 2));
	ck_assert_uint_eq(claim(OWNER, &owner), 2);
	ck_assert_uint_eq(claim(OTHER, &other), 3);
	ck_assert_uint_eq(claim(OWNER, &third), 4); /* another sender of the owner's process */
	ck_assert_uint_eq(barriers, 1);
}
END_TEST

START_TEST(claim__taken_and_never_used__begins_at_the_start)
{
	begin(_i);
	atomic_store(&ring.ctl->tail, owner.word); /* as if the owner had been stopped just then */
	ck_assert_uint_eq(claim(OTHER, &other), 0);
	if (first == 0) /* who claimed before? nobody, so nobody is written down */
		ck_assert_uint_eq(atomic_load(&ring.log[CAPACITY - 1]), 0);
	ck_assert_uint_eq(claim(OWNER, &owner), 1);
}
END_TEST

START_TEST(claim__sender_that_takes_none__shares_it_from_the_start)
{
	begin(_i);
	ck_assert_uint_eq(claim(OTHER, &other), 0);
	ck_assert_uint_eq(claim(OWNER, &owner), 1);
	ck_assert_uint_eq(barriers, 0);
	ck_assert(!emu_ring_is_biased(tail()));
}
END_TEST

START_TEST(claim__nobody_can_order__is_refused_and_goes_on_later)
{
	struct emu_bias helpless = {0};

	begin(_i);
	claim(OWNER, &owner);
	ck_assert(is_refused(OTHER, &helpless));
	ck_assert_uint_eq(claim(OWNER, &owner), 1);
	ck_assert_uint_eq(claim(OTHER, &helpless), 2);
}
END_TEST

START_TEST(revoke__owner_between_its_steps_and_seen__its_claim_counts)
{
	begin(_i);
	claim(OWNER, &owner);
	step_ahead();
	ck_assert_uint_eq(claim(OTHER, &other), 2);
	ck_assert_uint_eq(claim(OTHER, &other), 3);
	ck_assert_uint_eq(step_on(), 1);
	ck_assert_uint_eq(claim(OWNER, &owner), 4);
}
END_TEST

START_TEST(revoke__owner_between_its_steps_and_not_seen__it_claims_again)
{
	begin(_i);
	claim(OWNER, &owner);
	ck_assert_uint_eq(claim(OTHER, &other), 1);
	step_ahead(); /* its load of tail before was too early, the one that follows is not */
	ck_assert_uint_eq(step_on(), 2);
	ck_assert_uint_eq(claim(OTHER, &other), 3);
}
END_TEST

static void owner_settles(void)
{
	step_ahead();
	ck_assert_uint_eq(step_on(), 1);
	ck_assert_uint_eq(emu_ring_end(ring.ctl), first + 2);
}

START_TEST(revoke__owner_is_faster__its_word_holds)
{
	begin(_i);
	claim(OWNER, &owner);
	during = owner_settles;
	ck_assert_uint_eq(claim(OTHER, &other), 2);
	ck_assert_uint_eq(claim(OWNER, &owner), 3);
}
END_TEST

static void third_comes(void)
{
	struct emu_bias third = {.order = order};

	during = NULL;
	ck_assert_uint_eq(claim(OTHER + 1, &third), 1);
	ck_assert_uint_eq(claim(OTHER + 1, &third), 2);
}

START_TEST(revoke__two_at_once__agree)
{
	begin(_i);
	claim(OWNER, &owner);
	during = third_comes;
	ck_assert_uint_eq(claim(OTHER, &other), 3);
	ck_assert_uint_eq(claim(OWNER, &owner), 4);
}
END_TEST

START_TEST(reap__owner_died_with_slots_in_hand__they_are_discarded)
{
	begin(_i);
	for (int n = 0; n < 3; n++)
		claim(OWNER, &owner);
	publish(1);
	ck_assert_uint_eq(emu_ring_reap(&ring, OTHER, FLAGS_AT), 0);
	ck_assert_uint_eq(emu_ring_reap(&ring, OWNER, FLAGS_AT), 2);
	ck_assert(is_discarded(0) && !is_discarded(1) && is_discarded(2));
	ck_assert_uint_eq(claim(OTHER, &other), 3);
	ck_assert_uint_eq(barriers, 0);
}
END_TEST

START_TEST(reap__owner_died_between_its_steps__the_slot_is_discarded)
{
	begin(_i);
	publish(claim(OWNER, &owner));
	step_ahead();
	ck_assert_uint_eq(emu_ring_reap(&ring, OWNER, FLAGS_AT), 1);
	ck_assert(is_discarded(1));
	ck_assert_uint_eq(claim(OTHER, &other), 2);
}
END_TEST

START_TEST(reap__owner_died_after_it_was_taken_away__only_what_counted_is_discarded)
{
	begin(_i);
	publish(claim(OWNER, &owner));
	ck_assert_uint_eq(claim(OTHER, &other), 1);
	step_ahead();
	ck_assert_uint_eq(emu_ring_reap(&ring, OWNER, FLAGS_AT), 0);
	ck_assert_uint_eq(emu_ring_reap(&ring, OTHER, FLAGS_AT), 1);
}
END_TEST

START_TEST(reap__other_died_while_it_took_it_away__owner_and_third_go_on)
{
	begin(_i);
	claim(OWNER, &owner);
	atomic_store(&ring.ctl->tail, owner.word | emu_pair(EMU_RING_REVOKED, 0));
	ck_assert_uint_eq(emu_ring_reap(&ring, OTHER, FLAGS_AT), 0);
	ck_assert_uint_eq(claim(OTHER + 1, &other), 1);
	ck_assert_uint_eq(claim(OWNER, &owner), 2);
}
END_TEST

START_TEST(reap__both_died__everything_is_discarded)
{
	begin(_i);
	claim(OWNER, &owner);
	atomic_store(&ring.ctl->tail, owner.word | emu_pair(EMU_RING_REVOKED, 0));
	ck_assert_uint_eq(emu_ring_reap(&ring, OWNER, FLAGS_AT), 1);
	ck_assert_uint_eq(claim(OTHER, &other), 1);
}
END_TEST

static Suite *bias_suite(void)
{
	Suite *suite = suite_create("bias");
	TCase *tc = tcase_create("bias");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_loop_test(tc, claim__one_sender__has_the_ring_to_itself, 0, FIRSTS);
	tcase_add_loop_test(tc, claim__full_then_released__has_room_again, 0, FIRSTS);
	tcase_add_loop_test(tc, claim__second_sender__takes_it_away_once, 0, FIRSTS);
	tcase_add_loop_test(tc, claim__taken_and_never_used__begins_at_the_start, 0, FIRSTS);
	tcase_add_loop_test(tc, claim__sender_that_takes_none__shares_it_from_the_start, 0, FIRSTS);
	tcase_add_loop_test(tc, claim__nobody_can_order__is_refused_and_goes_on_later, 0, FIRSTS);
	tcase_add_loop_test(tc, revoke__owner_between_its_steps_and_seen__its_claim_counts, 0, FIRSTS);
	tcase_add_loop_test(tc, revoke__owner_between_its_steps_and_not_seen__it_claims_again, 0, FIRSTS);
	tcase_add_loop_test(tc, revoke__owner_is_faster__its_word_holds, 0, FIRSTS);
	tcase_add_loop_test(tc, revoke__two_at_once__agree, 0, FIRSTS);
	tcase_add_loop_test(tc, reap__owner_died_with_slots_in_hand__they_are_discarded, 0, FIRSTS);
	tcase_add_loop_test(tc, reap__owner_died_between_its_steps__the_slot_is_discarded, 0, FIRSTS);
	tcase_add_loop_test(tc, reap__owner_died_after_it_was_taken_away__only_what_counted_is_discarded, 0, FIRSTS);
	tcase_add_loop_test(tc, reap__other_died_while_it_took_it_away__owner_and_third_go_on, 0, FIRSTS);
	tcase_add_loop_test(tc, reap__both_died__everything_is_discarded, 0, FIRSTS);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return suite_run(bias_suite());
}
