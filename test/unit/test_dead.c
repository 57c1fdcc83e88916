/* SPDX-License-Identifier: BSD-2-Clause */
/* test_dead.c - the list of who has died: emulator/nic/dead.h. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "emulator/nic/dead.h"

static struct emu_engine engine;

static void reset(void)
{
	memset(&engine, 0, sizeof(engine));
}

START_TEST(read__nobody_has_died__there_is_none)
{
	uint64_t n = 0, addr;

	reset();
	ck_assert(!emu_dead_read(&engine, &n, &addr));
	ck_assert_uint_eq(emu_dead_count(&engine), 0);
}
END_TEST

START_TEST(read__some_have_died__each_is_found_by_its_number)
{
	uint64_t i, n, addr;

	reset();
	for (i = 0; i < 10; i++)
		emu_dead_note(&engine, 100 + i);
	ck_assert_uint_eq(emu_dead_count(&engine), 10);
	for (i = 0; i < 10; i++) {
		n = i;
		ck_assert(emu_dead_read(&engine, &n, &addr));
		ck_assert_uint_eq(n, i);
		ck_assert_uint_eq(addr, 100 + i);
	}
	n = 10;
	ck_assert(!emu_dead_read(&engine, &n, &addr));
}
END_TEST

START_TEST(read__more_have_died_than_are_kept__the_oldest_are_left_out)
{
	uint64_t i, n = 0, addr, found = 0;

	reset();
	for (i = 0; i < EMU_DEAD_KEPT + 5; i++)
		emu_dead_note(&engine, 100 + i);
	while (emu_dead_read(&engine, &n, &addr)) {
		ck_assert_uint_eq(addr, 100 + n);
		found++;
		n++;
	}
	ck_assert_uint_eq(found, EMU_DEAD_KEPT - 1);
	ck_assert_uint_eq(n, EMU_DEAD_KEPT + 5);
}
END_TEST

#define MANY (40 * EMU_DEAD_KEPT)

static void *reader(void *arg)
{
	uint64_t n = 0, addr, last = 0;

	(void)arg;
	while (n < MANY) {
		if (!emu_dead_read(&engine, &n, &addr))
			continue;
		if (addr != 100 + n || n < last)
			return "a wrong one";
		last = n++;
	}
	return NULL;
}

START_TEST(read__while_many_die__each_number_has_its_address)
{
	pthread_t thread[2];
	void *wrong;
	uint64_t i;
	int k;

	reset();
	for (k = 0; k < 2; k++)
		ck_assert_int_eq(pthread_create(&thread[k], NULL, reader, NULL), 0);
	for (i = 0; i < MANY; i++)
		emu_dead_note(&engine, 100 + i);
	for (k = 0; k < 2; k++) {
		pthread_join(thread[k], &wrong);
		ck_assert_msg(!wrong, "%s", (char *)wrong);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dead");
	TCase *tc = tcase_create("list");

	tcase_add_test(tc, read__nobody_has_died__there_is_none);
	tcase_add_test(tc, read__some_have_died__each_is_found_by_its_number);
	tcase_add_test(tc, read__more_have_died_than_are_kept__the_oldest_are_left_out);
	tcase_add_test(tc, read__while_many_die__each_number_has_its_address);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
