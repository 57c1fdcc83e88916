/* SPDX-License-Identifier: BSD-2-Clause */
/* test_copy.c - every way to copy, and the measurement that picks among them. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>

#include "emulator/host/pick.h"
#include "emulator/nic/copy.h"
#include "emulator/nic/move.h"

#define LONGEST 1500
#define GUARD	64
#define ROOM	(GUARD + 64 + LONGEST + GUARD)

static _Alignas(64) unsigned char src[64 + LONGEST], dst[ROOM];

static void setup(void)
{
	uint32_t seed = 3;

	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (unsigned char)(unit_random(&seed) % 255 + 1);
}

/* Bytes [at, at + len) of dst must be those from src + from, all others 0. */
static void must_be_exact(size_t at, size_t from, size_t len)
{
	UNIT_CHECK(!memcmp(dst + at, src + from, len));
	UNIT_CHECK(unit_is_zero(dst, at));
	UNIT_CHECK(unit_is_zero(dst + at + len, ROOM - at - len));
}

static const size_t offsets[] = {0, 1, 7, 8, 31, 32, 33, 60, 63};

#define OFFSETS (sizeof(offsets) / sizeof(offsets[0]))

static bool works(int way)
{
	return emu_copier_works((enum emu_copier)(way % (int)EMU_COPY_BACK));
}

/* _i: the way */
START_TEST(way__any_length_and_alignment__exact_bytes_and_no_others)
{
	if (!works(_i))
		return;
	for (size_t len = EMU_COPIER_MIN; len <= LONGEST; len += len < 600 ? 1 : 37) {
		for (size_t k = 0; k < OFFSETS * OFFSETS; k++) {
			size_t at = GUARD + offsets[k % OFFSETS], from = offsets[k / OFFSETS];

			memset(dst, 0, sizeof(dst));
			emu_copy_run((uint32_t)_i, dst + at, src + from, len);
			must_be_exact(at, from, len);
		}
	}
}
END_TEST

START_TEST(class__lengths__grow_by_powers_of_two_and_end_at_the_last)
{
	ck_assert_uint_eq(emu_copy_class(1), 0);
	ck_assert_uint_eq(emu_copy_class(128), 0);
	ck_assert_uint_eq(emu_copy_class(255), 0);
	ck_assert_uint_eq(emu_copy_class(256), 1);
	ck_assert_uint_eq(emu_copy_class(4096), 5);
	ck_assert_uint_eq(emu_copy_class(4 << 20), 15);
	ck_assert_uint_eq(emu_copy_class(UINT64_MAX), 15);
}
END_TEST

START_TEST(pick__one_class__leaves_the_others)
{
	uint64_t picks = emu_copy_pick(0, 3, EMU_COPIER_AVX512);

	picks = emu_copy_pick(picks, 15, EMU_COPIER_MOVSB);
	picks = emu_copy_pick(picks, 3, EMU_COPIER_AVX2);
	ck_assert_uint_eq(picks, (uint64_t)EMU_COPIER_MOVSB << 60 | (uint64_t)EMU_COPIER_AVX2 << 12);
}
END_TEST

/* _i: the nibble of every class; some are no copier, or none of this processor */
START_TEST(way_now__any_picks__copies)
{
	struct emu_engine engine = {.copiers = UINT64_C(0x1111111111111111) * (uint64_t)_i, .stream_from = 1200};
	struct emu_host host = {.engine = &engine};
	emu_copy_way *way[EMU_COPY_WAYS];

	emu_copy_ways(way);
	for (size_t len = EMU_COPIER_MIN; len <= LONGEST; len += 13) {
		memset(dst, 0, sizeof(dst));
		way[emu_copy_way_now(&host, len)](dst + GUARD + 5, src + 3, len);
		must_be_exact(GUARD + 5, 3, len);
	}
}
END_TEST

START_TEST(way_now__lengths__long_ones_turn)
{
	struct emu_engine engine = {.copiers = UINT64_C(0x1111111111111111) * EMU_COPIER_AVX2, .stream_from = 1 << 20};
	struct emu_host host = {.engine = &engine};
	uint32_t first = emu_copy_way_now(&host, EMU_COPY_TURN_MIN);

	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(emu_copy_way_now(&host, EMU_COPY_TURN_MIN - 1), EMU_COPIER_AVX2);
		ck_assert_uint_eq(emu_copy_way_now(&host, EMU_COPY_TURN_MIN), first ^ (i % 2 ? 0 : EMU_COPY_BACK));
	}
	ck_assert_uint_eq(emu_copy_way_now(&host, 2 << 20) & ~EMU_COPY_BACK, EMU_COPIER_STREAM);
}
END_TEST

/* ---- the measurement ------------------------------------------------------- */

static const cpu_set_t any; /* of our own */

START_TEST(pick_copiers__picks__are_copiers_that_work)
{
	static struct emu_engine engine;
	static struct emu_looks looks;
	uint64_t picks;

	emu_pick_copiers(&looks, &any, &engine);
	picks = atomic_load(&engine.copiers);
	for (int k = 0; k < EMU_COPY_CLASSES; k++) {
		enum emu_copier copier = (enum emu_copier)(picks >> 4 * k & 15);

		ck_assert_int_lt(copier, EMU_COPIER_STREAM);
		ck_assert(emu_copier_works(copier));
	}
}
END_TEST

/* As if looks before had found one that no look can beat. */
START_TEST(pick_copiers__looks_before__are_remembered)
{
	static struct emu_engine engine;
	static struct emu_looks looks;

	looks.ns[3][EMU_COPIER_MOVSB] = 1;
	looks.far[3][EMU_COPIER_MOVSB][0] = looks.far[3][EMU_COPIER_MOVSB][1] = 1;
	for (int i = 0; i < 3; i++)
		emu_pick_copiers(&looks, &any, &engine);
	ck_assert_uint_eq(atomic_load(&engine.copiers) >> 4 * 3 & 15, EMU_COPIER_MOVSB);
	ck_assert_uint_eq(looks.ns[3][EMU_COPIER_MOVSB], 1);
	ck_assert_uint_gt(looks.ns[3][EMU_COPIER_LIBC], 1);
}
END_TEST

/* Where there is one processor only nobody has had the lines. */
START_TEST(pick_copiers__lines_from_afar__are_looked_at)
{
	static struct emu_engine engine;
	static struct emu_looks looks;
	cpu_set_t set;
	int seen = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	emu_pick_copiers(&looks, &any, &engine);
	for (int c = 0; c < EMU_COPIER_STREAM; c++)
		seen += looks.far[0][c][1] != 0 && looks.far[8][c][1] != 0;
	if (CPU_COUNT(&set) == 1)
		ck_assert_int_eq(seen, 0);
	else
		for (int c = 0; c < EMU_COPIER_STREAM; c++)
			ck_assert_int_eq(looks.far[8][c][1] != 0, emu_copier_works((enum emu_copier)c));
	ck_assert_uint_eq(looks.far[9][EMU_COPIER_LIBC][0], 0); /* longer ones are not looked at */
}
END_TEST

/* A single one, though there may be others. */
START_TEST(pick_copiers__clients_on_one_processor__nothing_is_looked_at_from_afar)
{
	static struct emu_engine engine;
	static struct emu_looks looks;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	emu_pick_copiers(&looks, &one, &engine);
	ck_assert_uint_ne(looks.ns[8][EMU_COPIER_LIBC], 0);
	ck_assert_uint_eq(looks.far[8][EMU_COPIER_LIBC][0], 0);
}
END_TEST

/* One that is as good as the others at lines of the own cache, and far better at others, is taken; also for longer ones. */
START_TEST(pick_copiers__better_from_afar__is_taken)
{
	static struct emu_engine engine;
	static struct emu_looks looks;

	for (int k = 0; k < EMU_COPY_CLASSES; k++)
		for (int c = 0; c < EMU_COPIERS; c++) {
			looks.ns[k][c] = 1;
			looks.far[k][c][0] = looks.far[k][c][1] = c == EMU_COPIER_MOVSB ? 1 : 4;
		}
	emu_pick_copiers(&looks, &any, &engine);
	ck_assert_uint_eq(atomic_load(&engine.copiers), UINT64_C(0x1111111111111111));
}
END_TEST

/* The same time for all, which no look can beat: whoever was there stays. */
START_TEST(pick_copiers__no_difference__stays_with_libc)
{
	static struct emu_engine engine;
	static struct emu_looks looks;

	for (int k = 0; k < EMU_COPY_CLASSES; k++)
		for (int c = 0; c < EMU_COPIERS; c++)
			looks.ns[k][c] = looks.far[k][c][0] = looks.far[k][c][1] = 1;
	emu_pick_copiers(&looks, &any, &engine);
	ck_assert_uint_eq(atomic_load(&engine.copiers), 0);
}
END_TEST

START_TEST(name__any_number__has_one)
{
	ck_assert_str_eq(emu_copier_name(EMU_COPIER_MOVSB), "movsb");
	ck_assert_str_eq(emu_copier_name(EMU_COPIERS), "?");
}
END_TEST

/* ---- what a polling program sees of each way ------------------------------- */

#define COPIES	    1000
#define WATCHED_LEN EMU_COPY_TURN_MIN /* every other copy begins at the back */

static _Alignas(64) unsigned char watched[WATCHED_LEN];
static _Atomic uint32_t acknowledged;

struct writer {
	struct emu_engine engine;
	struct emu_host host;
	struct emu_region region;
};

static void writer_init(struct writer *w, enum emu_copier copier)
{
	memset(w, 0, sizeof(*w));
	if (copier == EMU_COPIER_STREAM)
		atomic_store(&w->engine.stream_from, 1);
	else
		atomic_store(&w->engine.copiers, UINT64_C(0x1111111111111111) * copier);
	w->host.engine = &w->engine;
	w->host.session = 7;
	w->region.session = 7; /* own memory: no mapping is asked for */
	w->region.addr = (uintptr_t)watched;
	w->region.len = WATCHED_LEN;
}

/* Copy n is all of the byte n + 1, and begins when copy n - 1 has been looked at. */
static void *write_copies(void *arg)
{
	static unsigned char from[WATCHED_LEN];
	struct writer *w = arg;

	for (uint32_t n = 0; n < COPIES; n++) {
		UNIT_WAIT(atomic_load_explicit(&acknowledged, memory_order_acquire) == n);
		memset(from, (int)(n % 200 + 1), WATCHED_LEN);
		emu_move_from(&w->host, &w->region, 0, from, WATCHED_LEN);
	}
	return NULL;
}

/* _i: the copier */
START_TEST(move__last_word_seen__all_bytes_are_there)
{
	const uint64_t *last = (const uint64_t *)(const void *)(watched + WATCHED_LEN - 8);
	struct writer w;
	pthread_t thread;

	if (!emu_copier_works((enum emu_copier)_i))
		return;
	writer_init(&w, (enum emu_copier)_i);
	memset(watched, 0, sizeof(watched));
	atomic_store(&acknowledged, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_copies, &w), 0);
	for (uint32_t n = 0; n < COPIES; n++) {
		unsigned char byte = (unsigned char)(n % 200 + 1);

		UNIT_WAIT((unsigned char)__atomic_load_n(last, __ATOMIC_ACQUIRE) == byte);
		for (size_t i = 0; i < WATCHED_LEN; i++)
			UNIT_CHECK(watched[i] == byte);
		atomic_store_explicit(&acknowledged, n + 1, memory_order_release);
	}
	pthread_join(thread, NULL);
}
END_TEST

static Suite *copy_suite(void)
{
	Suite *suite = suite_create("copy");
	TCase *ways = tcase_create("ways"), *seen = tcase_create("seen");

	tcase_add_checked_fixture(ways, setup, NULL);
	tcase_set_timeout(ways, 120); /* with a sanitizer */
	tcase_add_loop_test(ways, way__any_length_and_alignment__exact_bytes_and_no_others, 0, EMU_COPY_WAYS);
	tcase_add_test(ways, class__lengths__grow_by_powers_of_two_and_end_at_the_last);
	tcase_add_test(ways, pick__one_class__leaves_the_others);
	tcase_add_loop_test(ways, way_now__any_picks__copies, 0, 16);
	tcase_add_test(ways, way_now__lengths__long_ones_turn);
	tcase_add_test(ways, pick_copiers__picks__are_copiers_that_work);
	tcase_add_test(ways, pick_copiers__looks_before__are_remembered);
	tcase_add_test(ways, pick_copiers__no_difference__stays_with_libc);
	tcase_add_test(ways, pick_copiers__lines_from_afar__are_looked_at);
	tcase_add_test(ways, pick_copiers__clients_on_one_processor__nothing_is_looked_at_from_afar);
	tcase_add_test(ways, pick_copiers__better_from_afar__is_taken);
	tcase_add_test(ways, name__any_number__has_one);
	tcase_set_timeout(seen, 300); /* with a sanitizer, on a busy machine */
	tcase_add_loop_test(seen, move__last_word_seen__all_bytes_are_there, 0, EMU_COPIERS);
	suite_add_tcase(suite, ways);
	suite_add_tcase(suite, seen);
	return suite;
}

int main(void)
{
	return suite_run(copy_suite());
}
