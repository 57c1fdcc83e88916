/* SPDX-License-Identifier: BSD-2-Clause */
/* test_patience.c - waits come to an end, but not because the clock leaps. */
#include "backend/nic/patience.h"

#include "test/unit/unit.h"

#define S	UINT64_C(1000000000)
#define LENGTH	(10 * S)
#define STARTED (123 * S)

/* How long it takes to its end where the clock goes on by `step` between two questions. */
static uint64_t length_by(uint64_t step, bool at_work)
{
	struct nic_patience p;
	uint64_t now = STARTED;

	nic_patience_begin(&p, LENGTH, now);
	do
		now += step;
	while (nic_patience_left(&p, now, at_work));
	return now - STARTED;
}

START_TEST(ends__when_it_is_over)
{
	ck_assert_uint_eq(length_by(NIC_SLICE_NS, false), LENGTH);
	ck_assert_uint_eq(length_by(S / 500, false), LENGTH);
	ck_assert_uint_eq(length_by(NIC_SLICE_NS + NIC_SLICE_NS / 4, false), LENGTH);
}
END_TEST

START_TEST(one_at_work__has_eight_times_as_long)
{
	ck_assert_uint_eq(length_by(NIC_SLICE_NS, true), 8 * LENGTH);
}
END_TEST

START_TEST(leap_of_the_clock__counts_for_two_slices)
{
	struct nic_patience p;
	uint64_t now = STARTED, slices = LENGTH / NIC_SLICE_NS - 2;

	nic_patience_begin(&p, LENGTH, now);
	now += 3600 * S;
	for (uint64_t i = 0; i < slices; i++) {
		ck_assert(nic_patience_left(&p, now, false));
		now += NIC_SLICE_NS;
	}
	ck_assert(!nic_patience_left(&p, now, false));
}
END_TEST

START_TEST(over__stays_over)
{
	struct nic_patience p;

	nic_patience_begin(&p, NIC_SLICE_NS, STARTED);
	ck_assert(!nic_patience_left(&p, STARTED + NIC_SLICE_NS, false));
	ck_assert(!nic_patience_left(&p, STARTED + NIC_SLICE_NS, false));
	ck_assert(!nic_patience_left(&p, STARTED + 2 * NIC_SLICE_NS, false));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("patience");
	TCase *tc = tcase_create("patience");

	tcase_add_test(tc, ends__when_it_is_over);
	tcase_add_test(tc, one_at_work__has_eight_times_as_long);
	tcase_add_test(tc, leap_of_the_clock__counts_for_two_slices);
	tcase_add_test(tc, over__stays_over);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
