/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ring_stress.c - short runs of test/stress/ring_stress.h, each with seeds
 * of its own; the long ones are test/stress/ring.
 */
#include "unit.h"

#include "test/stress/ring_stress.h"

#define MESSAGES 20000
#define KILLS	 25

START_TEST(ring__one_or_many_producers__every_message_whole_and_in_order)
{
	ck_assert(ring_stress((enum ring_stress_mode)_i, MESSAGES, (uint32_t)_i + 1));
}
END_TEST

START_TEST(ring__producers_killed__nothing_of_others_lost_and_consumer_never_stuck)
{
	ck_assert(ring_stress(RING_STRESS_KILLED, KILLS, (uint32_t)_i + 1));
}
END_TEST

START_TEST(ring__processes_with_threads_killed__nothing_of_others_lost_and_consumer_never_stuck)
{
	ck_assert(ring_stress(RING_STRESS_KILLED_THREADS, KILLS, (uint32_t)_i + 1));
}
END_TEST

START_TEST(ring__owner_and_others_killed__nothing_of_others_lost_and_consumer_never_stuck)
{
	ck_assert(ring_stress((enum ring_stress_mode)_i, KILLS, (uint32_t)_i + 1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_stress");
	TCase *stress = tcase_create("stress");

	tcase_add_loop_test(stress, ring__one_or_many_producers__every_message_whole_and_in_order, 0,
			    RING_STRESS_KILLED);
	tcase_add_loop_test(stress, ring__producers_killed__nothing_of_others_lost_and_consumer_never_stuck, 0, 3);
	tcase_add_loop_test(stress,
			    ring__processes_with_threads_killed__nothing_of_others_lost_and_consumer_never_stuck, 0, 2);
	tcase_add_loop_test(stress, ring__owner_and_others_killed__nothing_of_others_lost_and_consumer_never_stuck,
			    RING_STRESS_BIASED, RING_STRESS_MODES);
	suite_add_tcase(suite, stress);
	return suite_run(suite);
}
