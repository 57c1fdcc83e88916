/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_intr.c - waking who waits: each step of arming and answering, and both
 * sides at once, where no wake-up may be missed.
 */
#include "two_ports.h"

#include <pthread.h>

#include "emulator/nic/intr.h"

static uint64_t sleepers(void)
{
	return atomic_load(&theirs.port.port->sleepers);
}

static void deliver_mp(void)
{
	ck_assert_int_eq(emu_deliver_mp(&fake.host, &theirs.port, 1, "x", 1), EMU_OK);
}

static void deliver_event(void)
{
	const uint64_t cookie[2] = {1, 1};

	ck_assert_int_eq(emu_deliver_event(&fake.host, &theirs.port, cookie), EMU_OK);
}

/* ---- arming -------------------------------------------------------------------------- */

START_TEST(arm__not_armed__arrivals_interrupt_nobody)
{
	deliver_mp();
	deliver_event();
	ck_assert_int_eq(fake.interrupts, 0);
	ck_assert_int_eq(fake.wakes, 0);
}
END_TEST

START_TEST(arm__answered__word_is_0_again_and_the_next_arrival_pays_nothing)
{
	emu_arm(theirs.port.port, EMU_ARM_MP, 1);
	deliver_mp();
	ck_assert_int_eq(fake.interrupts, 1);
	ck_assert_uint_eq(sleepers(), 0);
	deliver_mp();
	ck_assert_int_eq(fake.interrupts, 1);
	ck_assert_int_eq(fake.wakes, 0); /* nobody sleeps on the futex */
}
END_TEST

START_TEST(arm__for_events__an_mp_leaves_it_armed)
{
	emu_arm(theirs.port.port, EMU_ARM_EVENT, 1);
	deliver_mp();
	ck_assert_int_eq(fake.interrupts, 0);
	deliver_event();
	ck_assert_int_eq(fake.interrupts, 1);
	ck_assert_uint_eq(sleepers(), 0);
}
END_TEST

START_TEST(arm__beside_sleepers__both_are_woken_and_they_stay_counted)
{
	atomic_store(&theirs.port.port->sleepers, 3);
	emu_arm(theirs.port.port, EMU_ARM_MP | EMU_ARM_EVENT, 9);
	ck_assert_uint_eq(sleepers() & EMU_SLEEPERS, 3);
	deliver_event();
	ck_assert_int_eq(fake.interrupts, 1);
	ck_assert_int_eq(fake.wakes, 1);
	ck_assert_uint_eq(sleepers(), 3);
	emu_arm(theirs.port.port, EMU_ARM_MP, 10);
	emu_arm(theirs.port.port, 0, 11);
	ck_assert_uint_eq(sleepers(), 3);
}
END_TEST

START_TEST(arm__any_turn__never_touches_the_count)
{
	for (uint32_t turn = 0; turn < 70000; turn += 7) {
		emu_arm(theirs.port.port, EMU_ARM_MP, turn);
		ck_assert_uint_eq(sleepers() & (EMU_SLEEPERS | EMU_ARM_WHAT), EMU_ARM_MP);
	}
}
END_TEST

static bool arms_again(struct emu_port *port)
{
	emu_arm(port, EMU_ARM_MP, 2);
	return true;
}

START_TEST(answer__late__does_not_end_the_next_arming)
{
	emu_arm(theirs.port.port, EMU_ARM_MP, 1);
	fake.on_interrupt = arms_again; /* woken, it has taken the MP and armed, before the sender goes on */
	deliver_mp();
	ck_assert_int_eq(fake.interrupts, 1);
	ck_assert_uint_ne(sleepers() & EMU_ARM_WHAT, 0);
	fake.on_interrupt = NULL;
	deliver_mp();
	ck_assert_int_eq(fake.interrupts, 2);
	ck_assert_uint_eq(sleepers(), 0);
}
END_TEST

static bool fails(struct emu_port *port)
{
	(void)port;
	return false;
}

START_TEST(answer__descriptor_cannot_be_written__stays_armed_for_the_next_sender)
{
	emu_arm(theirs.port.port, EMU_ARM_MP, 1);
	fake.on_interrupt = fails;
	deliver_mp();
	ck_assert_uint_ne(sleepers() & EMU_ARM_WHAT, 0);
	fake.on_interrupt = NULL;
	deliver_mp();
	ck_assert_uint_eq(sleepers(), 0);
}
END_TEST

/* ---- interrupts ----------------------------------------------------------------------- */

START_TEST(raise__nobody_asked_for_a_descriptor__only_recorded)
{
	struct emu_intr_slot *slot;

	emu_interrupt(&fake.host, &theirs.port, EMU_INTR_REMOTE, 42);
	ck_assert_int_eq(fake.interrupts, 0);
	slot = emu_ring_peek(&theirs.port.intq, 0);
	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->cause, EMU_INTR_REMOTE);
	ck_assert_uint_eq(slot->peer, 42);
}
END_TEST

START_TEST(raise__queue_full__counted_and_the_descriptor_written)
{
	uint32_t capacity = theirs.port.port->intq_capacity;

	atomic_store(&theirs.port.port->intr, 1);
	for (uint32_t i = 0; i < capacity + 3; i++)
		emu_interrupt(&fake.host, &theirs.port, EMU_INTR_REMOTE, i);
	ck_assert_int_eq(fake.interrupts, (int)capacity + 3);
	ck_assert_uint_eq(atomic_load(&theirs.port.port->intq.lost), 3);
}
END_TEST

/* Its queue was read between the loss and the record of it. */
START_TEST(bad_packet__event_queue_is_read_just_then__recorded_if_it_was_the_targets)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 16);
	struct emu_bad_slot *slot;

	desc.flag = _i ? GLEX_FLAG_REMOTE_EVT : GLEX_FLAG_LOCAL_EVT;
	emu_record_bad(&fake.host, &ours.port, &desc, GLEX_ERR_STATUS_DEST_EQ_FULL);
	slot = emu_ring_peek(&theirs.port.epq, 0);
	ck_assert_int_eq(slot != NULL, _i);
	if (slot)
		ck_assert_uint_eq(slot->cause, EMU_BAD_EQ_FULL);
}
END_TEST

START_TEST(flags__of_each_request__interrupt_whom_they_name)
{
	static const enum emu_op ops[] = {EMU_OP_MP, EMU_OP_IMM_PUT, EMU_OP_PUT, EMU_OP_GET};
	struct emu_desc desc = desc_of(ops[_i / 4], 16);
	uint32_t flags = (uint32_t)_i % 4;

	desc.flag |= flags;
	ck_assert_int_eq(exec(&desc), EMU_OK);
	ck_assert_int_eq(emu_ring_peek(&ours.port.intq, 0) != NULL, (flags & GLEX_FLAG_LOCAL_INTR) != 0);
	ck_assert_int_eq(emu_ring_peek(&theirs.port.intq, 0) != NULL, (flags & GLEX_FLAG_REMOTE_INTR) != 0);
}
END_TEST

START_TEST(flags__request_refused__raise_nothing)
{
	struct emu_desc desc = desc_of(EMU_OP_PUT, 16);

	desc.flag |= EMU_INTR_FLAGS;
	desc.rmt_key++;
	expect_refused(&desc, GLEX_ERR_STATUS_MMT);
	ck_assert_ptr_null(emu_ring_peek(&ours.port.intq, 0));
	ck_assert_ptr_null(emu_ring_peek(&theirs.port.intq, 0));
}
END_TEST

/* ---- both sides at once ------------------------------------------------------------------ */

#define SENDERS 2
#define EACH	20000u

static void *send_all(void *arg)
{
	struct emu_host host = fake.host; /* a session of its own each */
	uint32_t n;

	host.session = *(uint32_t *)arg;
	for (n = 0; n < EACH;) {
		if (emu_deliver_mp(&host, &theirs.port, host.session, &n, sizeof(n)) == EMU_OK)
			n++;
		else
			sched_yield();
	}
	return NULL;
}

/* As a program with poll: the counter of interrupts is the descriptor. */
static void take_all(uint32_t total)
{
	uint32_t head = 0, turn = 0;
	int64_t deadline;
	int seen;

	while (head < total) {
		while (emu_ring_peek(&theirs.port.mpq, head))
			emu_ring_release(&theirs.port.mpq, ++head);
		if (head == total)
			break;
		seen = atomic_load(&fake.interrupts);
		emu_arm(theirs.port.port, EMU_ARM_MP, ++turn);
		if (emu_ring_peek(&theirs.port.mpq, head))
			continue;
		deadline = unit_now_ns() + UNIT_PATIENCE_NS;
		while (atomic_load(&fake.interrupts) == seen) {
			if (unit_now_ns() > deadline)
				ck_abort_msg("a wake-up was missed behind message %u", head);
			sched_yield();
		}
	}
}

START_TEST(arm__senders_at_once__no_wake_up_is_missed)
{
	pthread_t thread[SENDERS];
	uint32_t session[SENDERS];

	atomic_store(&engine.fences, 1); /* as where there is no membarrier: senders pay for the order */
	for (uint32_t i = 0; i < SENDERS; i++) {
		session[i] = OUR_SESSION + 10 + i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, send_all, &session[i]), 0);
	}
	take_all(SENDERS * EACH);
	for (uint32_t i = 0; i < SENDERS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&engine.fences, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("intr");
	TCase *tc = tcase_create("intr");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, arm__not_armed__arrivals_interrupt_nobody);
	tcase_add_test(tc, arm__answered__word_is_0_again_and_the_next_arrival_pays_nothing);
	tcase_add_test(tc, arm__for_events__an_mp_leaves_it_armed);
	tcase_add_test(tc, arm__beside_sleepers__both_are_woken_and_they_stay_counted);
	tcase_add_test(tc, arm__any_turn__never_touches_the_count);
	tcase_add_test(tc, answer__late__does_not_end_the_next_arming);
	tcase_add_test(tc, answer__descriptor_cannot_be_written__stays_armed_for_the_next_sender);
	tcase_add_test(tc, raise__nobody_asked_for_a_descriptor__only_recorded);
	tcase_add_test(tc, raise__queue_full__counted_and_the_descriptor_written);
	tcase_add_loop_test(tc, bad_packet__event_queue_is_read_just_then__recorded_if_it_was_the_targets, 0, 2);
	tcase_add_loop_test(tc, flags__of_each_request__interrupt_whom_they_name, 0, 16);
	tcase_add_test(tc, flags__request_refused__raise_nothing);
	tcase_add_test(tc, arm__senders_at_once__no_wake_up_is_missed);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
