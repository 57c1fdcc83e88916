/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_memwatch.c - the log of memory changes and its subscribers: order, what a
 * reader may conclude, and that nothing is lost when many write.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/memwatch.h"
#include "test/lib/suite.h"

static void report(uint64_t addr, uint64_t len)
{
	struct glexi_mem_change change = {.kind = GLEXI_MEM_UNMAP, .addr = addr, .len = len};

	glexi_memwatch_begin(&change);
	glexi_memwatch_end(&change, true);
}

START_TEST(memwatch__changes__are_read_in_order)
{
	uint64_t at = glexi_memwatch_now(), start, end;

	report(0x1000, 0x2000);
	report(0x8000, 1);
	ck_assert_uint_eq(glexi_memwatch_now(), at + 2);
	ck_assert(glexi_memwatch_read(at, &start, &end));
	ck_assert_uint_eq(start, 0x1000);
	ck_assert_uint_eq(end, 0x3000);
	ck_assert(glexi_memwatch_read(at + 1, &start, &end));
	ck_assert_uint_eq(start, 0x8000);
	ck_assert(!glexi_memwatch_read(at + 2, &start, &end));
}
END_TEST

START_TEST(memwatch__range_up_to_the_last_byte__does_not_wrap)
{
	uint64_t at = glexi_memwatch_now(), start, end;

	report(UINT64_MAX - 10, 100);
	ck_assert(glexi_memwatch_read(at, &start, &end));
	ck_assert_uint_eq(end, UINT64_MAX);
}
END_TEST

START_TEST(memwatch__unchanged__only_without_overlap_and_without_open_change)
{
	struct glexi_mem_change change = {.kind = GLEXI_MEM_UNMAP, .addr = 0x90000, .len = 1};
	uint64_t at = glexi_memwatch_now();

	ck_assert(glexi_memwatch_unchanged(at, 0, UINT64_MAX));
	report(0x1000, 0x1000);
	ck_assert(glexi_memwatch_unchanged(at, 0x2000, 0x3000));
	ck_assert(glexi_memwatch_unchanged(at, 0, 0x1000));
	ck_assert(!glexi_memwatch_unchanged(at, 0x1fff, 0x3000));
	at = glexi_memwatch_now();
	glexi_memwatch_begin(&change);
	ck_assert(!glexi_memwatch_unchanged(at, 0x2000, 0x3000)); /* far away, but the kernel may be at it */
	glexi_memwatch_end(&change, true);
	ck_assert(glexi_memwatch_unchanged(at, 0x2000, 0x3000));
	ck_assert(!glexi_memwatch_unchanged(at, 0x90000, 0x90001));
}
END_TEST

START_TEST(memwatch__more_than_the_log_holds__reader_learns_that_it_missed_some)
{
	uint64_t at = glexi_memwatch_now(), start, end;

	for (uint32_t i = 0; i <= GLEXI_MEMWATCH_LOG; i++)
		report((uint64_t)i << 12, 1);
	ck_assert(!glexi_memwatch_read(at, &start, &end));
	ck_assert(glexi_memwatch_read(at + 1, &start, &end));
	ck_assert(!glexi_memwatch_unchanged(at, UINT64_MAX - 1, UINT64_MAX));
}
END_TEST

/* ---- subscribers ---------------------------------------------------------------- */

struct observer {
	struct glexi_memwatch watch; /* must be first */
	char calls[8];
	int n;
	struct glexi_mem_change last;
};

static void before(struct glexi_memwatch *watch, const struct glexi_mem_change *change)
{
	struct observer *observer = (struct observer *)(void *)watch;

	observer->calls[observer->n++ % 8] = 'b';
	observer->last = *change;
	ck_assert(!glexi_memwatch_unchanged(glexi_memwatch_now(), 0, 1)); /* it is open */
}

static void after(struct glexi_memwatch *watch, const struct glexi_mem_change *change, bool done)
{
	struct observer *observer = (struct observer *)(void *)watch;

	(void)change;
	observer->calls[observer->n++ % 8] = done ? 'a' : 'f';
}

START_TEST(memwatch__subscriber__called_before_and_after_until_it_leaves)
{
	struct observer observer = {.watch = {before, after}}, silent = {.watch = {NULL, NULL}};
	struct glexi_mem_change change = {.kind = GLEXI_MEM_DISCARD, .how = 4, .addr = 0x7000, .len = 0x1000};

	ck_assert(glexi_memwatch_subscribe(&silent.watch));
	ck_assert(glexi_memwatch_subscribe(&observer.watch));
	report(0x1000, 0x1000);
	glexi_memwatch_begin(&change);
	ck_assert_int_eq(observer.last.kind, GLEXI_MEM_DISCARD);
	ck_assert_int_eq(observer.last.how, 4);
	glexi_memwatch_end(&change, false);
	ck_assert_mem_eq(observer.calls, "babf", 4);
	glexi_memwatch_unsubscribe(&observer.watch);
	report(0x1000, 0x1000);
	ck_assert_int_eq(observer.n, 4);
	glexi_memwatch_unsubscribe(&silent.watch);
}
END_TEST

START_TEST(memwatch__too_many_subscribers__refused)
{
	struct glexi_memwatch watch[64] = {{NULL, NULL}};
	int n = 0;

	while (n < 64 && glexi_memwatch_subscribe(&watch[n]))
		n++;
	ck_assert_int_gt(n, 1);
	ck_assert_int_lt(n, 64);
	glexi_memwatch_unsubscribe(&watch[0]);
	ck_assert(glexi_memwatch_subscribe(&watch[63]));
	glexi_memwatch_unsubscribe(&watch[63]);
	while (--n > 0)
		glexi_memwatch_unsubscribe(&watch[n]);
}
END_TEST

/* ---- threads -------------------------------------------------------------------- */

#define WRITERS 3
#define EACH	20000

static void *writer(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 40;

	for (uint64_t i = 0; i < EACH; i++)
		report(base + i, base);
	return NULL;
}

/* Several writers call it at once. */
static void look(struct glexi_memwatch *watch, const struct glexi_mem_change *change, bool done)
{
	(void)change;
	(void)done;
	(void)*(volatile int *)&((struct observer *)(void *)watch)->n;
}

static void *come_and_go(void *arg)
{
	struct observer observer = {.watch = {NULL, look}};

	(void)arg;
	for (int i = 0; i < 300; i++) {
		ck_assert(glexi_memwatch_subscribe(&observer.watch));
		glexi_memwatch_unsubscribe(&observer.watch);
		observer.n = 0; /* nobody calls it any more: the sanitizer would see */
	}
	return NULL;
}

/* A range is whole, a writer's ranges come in its order, and who is told nothing is told so. */
START_TEST(memwatch__many_writers__no_change_is_torn_or_lost)
{
	uint64_t at = glexi_memwatch_now(), start, end, last[WRITERS + 1] = {0}, seen = 0, missed = 0;
	pthread_t threads[WRITERS + 1];

	for (uintptr_t i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, writer, (void *)(i + 1)), 0);
	ck_assert_int_eq(pthread_create(&threads[WRITERS], NULL, come_and_go, NULL), 0);
	while (seen + missed < (uint64_t)WRITERS * EACH) {
		if (at == glexi_memwatch_now())
			continue;
		if (!glexi_memwatch_read(at++, &start, &end)) {
			missed++;
			continue;
		}
		ck_assert_uint_eq(end - start, start >> 40 << 40);
		ck_assert_uint_ge(start >> 40, 1);
		ck_assert_uint_le(start >> 40, WRITERS);
		ck_assert_uint_ge(start, last[start >> 40]);
		last[start >> 40] = start;
		seen++;
	}
	for (int i = 0; i <= WRITERS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(at, glexi_memwatch_now());
	ck_assert(glexi_memwatch_unchanged(at, 0, UINT64_MAX));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memwatch");
	TCase *tc = tcase_create("memwatch");

	tcase_add_test(tc, memwatch__changes__are_read_in_order);
	tcase_add_test(tc, memwatch__range_up_to_the_last_byte__does_not_wrap);
	tcase_add_test(tc, memwatch__unchanged__only_without_overlap_and_without_open_change);
	tcase_add_test(tc, memwatch__more_than_the_log_holds__reader_learns_that_it_missed_some);
	tcase_add_test(tc, memwatch__subscriber__called_before_and_after_until_it_leaves);
	tcase_add_test(tc, memwatch__too_many_subscribers__refused);
	tcase_add_test(tc, memwatch__many_writers__no_change_is_torn_or_lost);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
