/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reorder.c - the order that GLEX_REORDER makes of a queue.
 *
 * A run executes a whole queue and writes down when each request had its data
 * moved and when it was complete.
 */
#include "emulator/nic/reorder.h"
#include "test/unit/unit.h"

#include <glex.h>

#define QUEUE 256u
#define NEVER UINT32_MAX

struct run {
	struct emu_desc dq[QUEUE];
	struct emu_vport port;
	struct emu_reorder r;
	uint32_t data[QUEUE], complete[QUEUE]; /* by request: the step that did it */
	uint32_t head, steps;
};

static struct run run, other;

static void begin(struct run *u, uint64_t seed, uint32_t window)
{
	uint32_t i;

	memset(u, 0, sizeof(*u));
	u->port.dq = u->dq;
	u->port.dq_mask = QUEUE - 1;
	u->r.seed = seed;
	u->r.window = window;
	for (i = 0; i < QUEUE; i++)
		u->data[i] = u->complete[i] = NEVER;
}

/* Executes what is due; every other request has events that come later. */
static void go_on(struct run *u, uint32_t tail, bool overdue)
{
	while (emu_reorder_next(&u->r, &u->port, u->head, tail, overdue)) {
		uint32_t n = u->head + u->r.at;

		UNIT_CHECK(n < tail);
		if (emu_reorder_has_data(&u->r) || n % 2 == 0) {
			UNIT_CHECK(u->complete[n] == NEVER);
			u->complete[n] = u->steps;
			if (u->data[n] == NEVER)
				u->data[n] = u->steps;
			u->head += emu_reorder_end(&u->r, false);
		} else {
			UNIT_CHECK(u->data[n] == NEVER);
			u->data[n] = u->steps;
			u->head += emu_reorder_end(&u->r, true);
		}
		u->steps++;
	}
}

static void expect_all(const struct run *u, uint32_t n)
{
	uint32_t i;

	ck_assert_uint_eq(u->head, n);
	for (i = 0; i < n; i++) {
		ck_assert_uint_ne(u->complete[i], NEVER);
		ck_assert_uint_le(u->data[i], u->complete[i]);
	}
}

START_TEST(order__any_seed__all_once_and_never_passed_by_a_window)
{
	static const uint32_t windows[] = {2, 3, 16, 63, 64};
	uint32_t w, i, j, passed, misplaced = 0, apart = 0;

	for (w = 0; w < 5; w++) {
		begin(&run, (uint64_t)_i, windows[w]);
		go_on(&run, 200, true);
		expect_all(&run, 200);
		for (i = 0; i < 200; i++) {
			for (j = i + 1, passed = 0; j < 200; j++)
				passed += run.data[j] < run.data[i];
			ck_assert_uint_lt(passed, windows[w]);
			misplaced += passed;
			apart += run.complete[i] > run.data[i] + 1;
		}
	}
	ck_assert_uint_gt(misplaced, 500);
	ck_assert_uint_gt(apart, 50); /* something happened between data and events */
}
END_TEST

START_TEST(order__posted_bit_by_bit__is_that_of_one_list)
{
	uint32_t state = (uint32_t)_i, tail;

	begin(&run, 7 + (uint64_t)_i, 16);
	go_on(&run, 150, false);
	begin(&other, 7 + (uint64_t)_i, 16);
	for (tail = 0; tail < 150; tail += 1 + unit_random(&state) % 20)
		go_on(&other, tail, false);
	go_on(&other, 150, false);
	ck_assert_mem_eq(run.data, other.data, sizeof(run.data));
	go_on(&run, 150, true);
	go_on(&other, 150, true);
	expect_all(&run, 150);
	ck_assert_mem_eq(run.complete, other.complete, sizeof(run.complete));
}
END_TEST

START_TEST(order__seed_or_port_differs__differs)
{
	begin(&run, 1, 16);
	begin(&other, 2, 16);
	go_on(&run, 100, true);
	go_on(&other, 100, true);
	ck_assert_mem_ne(run.data, other.data, sizeof(run.data));
	ck_assert(emu_reorder_seed(1, 0, 0) != emu_reorder_seed(1, 0, 1));
	ck_assert(emu_reorder_seed(1, 0, 0) != emu_reorder_seed(1, 1, 0));
	ck_assert(emu_reorder_seed(1, 0, 0) != emu_reorder_seed(2, 0, 0));
}
END_TEST

START_TEST(fence__among_others__all_before_it_are_complete)
{
	uint32_t i, j;

	begin(&run, (uint64_t)_i, 32);
	for (i = 5; i < 200; i += 17)
		run.dq[i].flag = GLEX_FLAG_FENCE;
	go_on(&run, 200, true);
	expect_all(&run, 200);
	for (i = 5; i < 200; i += 17)
		for (j = 0; j < i; j++)
			ck_assert_uint_lt(run.complete[j], run.data[i]);
}
END_TEST

START_TEST(hold__few_requests__wait_until_overdue)
{
	uint32_t held = 0;

	for (uint64_t seed = 0; seed < 50; seed++) {
		begin(&run, seed, 64);
		go_on(&run, 2, false);
		held += run.steps == 0;
		go_on(&run, 2, true);
		expect_all(&run, 2);
	}
	ck_assert_uint_gt(held, 25);
}
END_TEST

START_TEST(chosen__in_pieces__stays_chosen)
{
	uint32_t at;

	begin(&run, 3, 8);
	ck_assert(emu_reorder_next(&run.r, &run.port, 0, 20, false));
	at = run.r.at;
	ck_assert(emu_reorder_next(&run.r, &run.port, 0, 40, true));
	ck_assert_uint_eq(run.r.at, at);
}
END_TEST

START_TEST(coin__many_throws__both_sides)
{
	uint32_t n, first = 0;

	for (n = 0; n < 3000; n++)
		first += emu_reorder_first(42, n);
	ck_assert_uint_gt(first, 800);
	ck_assert_uint_lt(first, 1200);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reorder");
	TCase *tcase = tcase_create("order");

	tcase_add_loop_test(tcase, order__any_seed__all_once_and_never_passed_by_a_window, 0, 20);
	tcase_add_loop_test(tcase, order__posted_bit_by_bit__is_that_of_one_list, 0, 20);
	tcase_add_test(tcase, order__seed_or_port_differs__differs);
	tcase_add_loop_test(tcase, fence__among_others__all_before_it_are_complete, 0, 20);
	tcase_add_test(tcase, hold__few_requests__wait_until_overdue);
	tcase_add_test(tcase, chosen__in_pieces__stays_chosen);
	tcase_add_test(tcase, coin__many_throws__both_sides);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
