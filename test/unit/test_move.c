/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_move.c - copies that somebody polls, and the ways from region to region.
 *
 * The host is made up: its "other process" is memory of this one, reached only
 * through read and write, which write down how they were called.
 */
#include "unit.h"

#include <pthread.h>

#include "emulator/nic/move.h"

/* ---- emu_copy_ordered ---------------------------------------------------- */

#define LONGEST 300
#define GUARD	16

static void fill(unsigned char *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(unit_random(&seed) % 255 + 1);
}

/* _i: alignment of the destination */
START_TEST(copy__any_length_and_alignment__exact_bytes_and_no_others)
{
	_Alignas(16) unsigned char src[LONGEST + 16], dst[GUARD + 16 + LONGEST + GUARD];

	fill(src, sizeof(src), 1);
	for (size_t from = 0; from < 16; from++) {
		for (size_t len = 0; len <= LONGEST; len++) {
			unsigned char *to = dst + GUARD + _i;

			memset(dst, 0, sizeof(dst));
			emu_copy_ordered(to, src + from, len);
			UNIT_CHECK(!memcmp(to, src + from, len));
			UNIT_CHECK(unit_is_zero(dst, (size_t)(to - dst)));
			UNIT_CHECK(unit_is_zero(to + len, sizeof(dst) - (size_t)(to - dst) - len));
		}
	}
}
END_TEST

START_TEST(copy__overlapping__as_memmove)
{
	static const int lens[] = {1, 8, 9, 64, 127, 128, 129, 136, 200, 4096};
	_Alignas(16) static unsigned char bytes[10000], expected[10000];

	for (size_t l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
		for (int shift = -40; shift <= 40; shift++) {
			size_t from = 100 + (size_t)_i, len = (size_t)lens[l];
			size_t to = (size_t)((int)from + shift);

			fill(bytes, sizeof(bytes), 7);
			memcpy(expected, bytes, sizeof(bytes));
			memmove(expected + to, expected + from, len);
			emu_copy_ordered(bytes + to, bytes + from, len);
			UNIT_CHECK(!memcmp(bytes, expected, sizeof(bytes)));
		}
	}
}
END_TEST

START_TEST(tail_of__end_and_length__is_the_last_aligned_word)
{
	static const struct {
		uint64_t end, len;
		uint32_t tail;
	} cases[] = {
		{0x1000, 8, 8},	 {0x1000, 300, 8}, {0x1000, 7, 4},  {0x1000, 3, 2},  {0x1000, 1, 1},
		{0x1004, 64, 4}, {0x1006, 64, 2},  {0x1007, 64, 1}, {0x100c, 12, 4}, {0x1008, 4, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(emu_tail_of(cases[i].end, cases[i].len), cases[i].tail);
}
END_TEST

/* ---- copies that are watched --------------------------------------------- */

#define COPIES 1500

static _Alignas(16) unsigned char watched[4096 + 16];
static _Atomic uint32_t acknowledged;
static _Atomic uint32_t stop;

struct writer {
	size_t at, len; /* in watched */
};

/* Copy n is all of the byte n + 1, and begins when copy n - 1 has been looked at. */
static void *write_copies(void *arg)
{
	const struct writer *writer = arg;
	static unsigned char src[4096];

	for (uint32_t n = 0; n < COPIES; n++) {
		UNIT_WAIT(atomic_load_explicit(&acknowledged, memory_order_acquire) == n);
		memset(src, (int)(n % 200 + 1), writer->len);
		emu_copy_ordered(watched + writer->at, src, writer->len);
	}
	return NULL;
}

/* The last byte with acquire, as a program would poll a word of its own memory. */
static unsigned char last_word(const struct writer *writer)
{
	unsigned char *end = watched + writer->at + writer->len;
	uint32_t tail = emu_tail_of((uintptr_t)end, writer->len);
	uint64_t word = 0;

	switch (tail) {
	case 8:
		word = __atomic_load_n((uint64_t *)(void *)(end - 8), __ATOMIC_ACQUIRE);
		break;
	case 4:
		word = __atomic_load_n((uint32_t *)(void *)(end - 4), __ATOMIC_ACQUIRE);
		break;
	case 2:
		word = __atomic_load_n((uint16_t *)(void *)(end - 2), __ATOMIC_ACQUIRE);
		break;
	default:
		word = __atomic_load_n(end - 1, __ATOMIC_ACQUIRE);
	}
	return (unsigned char)word;
}

static const struct writer writers[] = {{0, 8},	  {0, 128},  {3, 100},	{0, 129},
					{8, 256}, {1, 1000}, {2, 4094}, {4, 4092}};

#define WRITERS 8

START_TEST(copy__last_word_seen__all_bytes_are_there)
{
	struct writer writer = writers[_i];
	pthread_t thread;

	atomic_store(&acknowledged, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_copies, &writer), 0);
	for (uint32_t n = 0; n < COPIES; n++) {
		unsigned char byte = (unsigned char)(n % 200 + 1);

		UNIT_WAIT(last_word(&writer) == byte);
		for (size_t i = 0; i < writer.len; i++)
			UNIT_CHECK(watched[writer.at + i] == byte);
		atomic_store_explicit(&acknowledged, n + 1, memory_order_release);
	}
	pthread_join(thread, NULL);
}
END_TEST

#define WORDS	    16 /* 128 bytes */
#define GENERATIONS 100000

static void *write_generations(void *arg)
{
	uint64_t src[WORDS];

	for (uint64_t n = 1; n <= GENERATIONS; n++) {
		for (int w = 0; w < WORDS; w++)
			src[w] = n;
		emu_copy_ordered(watched, src, sizeof(src));
		if (n % 64 == 0)
			sched_yield();
	}
	atomic_store(&stop, 1);
	return arg;
}

/* Words are read from the last to the first: an earlier one may be newer, never older. */
START_TEST(copy__up_to_128_bytes__visible_in_ascending_order)
{
	const uint64_t *words = (const uint64_t *)(const void *)watched;
	pthread_t thread;

	atomic_store(&stop, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_generations, NULL), 0);
	while (!atomic_load(&stop)) {
		uint64_t later = __atomic_load_n(&words[WORDS - 1], __ATOMIC_ACQUIRE);

		for (int w = WORDS - 2; w >= 0; w--) {
			uint64_t earlier = __atomic_load_n(&words[w], __ATOMIC_ACQUIRE);

			UNIT_CHECK(earlier >= later);
			later = earlier;
		}
	}
	pthread_join(thread, NULL);
}
END_TEST

/* ---- emu_move ------------------------------------------------------------ */

#define ME	 7u /* sessions */
#define OTHER	 8u
#define THIRD	 9u
#define SIZE	 5000u
#define BOUNCE	 1024u
#define MAP	 0x500000003u
#define PID(s)	 ((s) + 1000u)
#define PAGE_GAP 192u /* of a region from the beginning of its shared object */

struct call {
	char what; /* r, w, m */
	uint32_t pid;
	const void *here;
	uint64_t there, len, map;
	uint32_t tail;
	bool write;
};

static struct {
	struct emu_host host;
	struct call calls[64];
	int count;
	int fail_at; /* the call that does not work; -1: none */
	enum emu_reach with;
	bool no_map, read_only;
	uint64_t map_len;
	struct emu_port_counters counters;
} fake;

static _Alignas(64) unsigned char source[SIZE], target[SIZE], bounce[BOUNCE], shared[PAGE_GAP + SIZE];

static struct call *note(char what)
{
	struct call *call = &fake.calls[fake.count++];

	UNIT_CHECK(fake.count < 64);
	call->what = what;
	return call;
}

static unsigned char *fake_map(struct emu_host *host, uint64_t map, bool write, uint64_t *len_p)
{
	struct call *call = note('m');

	(void)host;
	call->map = map;
	call->write = write;
	if (fake.no_map || (write && fake.read_only))
		return NULL;
	*len_p = fake.map_len;
	return shared;
}

static enum emu_reach fake_read(struct emu_host *host, uint32_t pid, void *here, uint64_t there, uint64_t len)
{
	struct call *call = note('r');

	(void)host;
	call->pid = pid;
	call->here = here;
	call->there = there;
	call->len = len;
	if (fake.count - 1 == fake.fail_at)
		return fake.with;
	memcpy(here, (const void *)(uintptr_t)there, len);
	return EMU_REACH_OK;
}

static enum emu_reach fake_write(struct emu_host *host, uint32_t pid, const void *here, uint64_t there, uint64_t len,
				 uint32_t tail)
{
	struct call *call = note('w');

	(void)host;
	call->pid = pid;
	call->here = here;
	call->there = there;
	call->len = len;
	call->tail = tail;
	if (fake.count - 1 == fake.fail_at)
		return fake.with;
	memcpy((void *)(uintptr_t)there, here, len);
	return EMU_REACH_OK;
}

static const struct emu_host_ops ops = {.map = fake_map, .read = fake_read, .write = fake_write};

static void setup(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.fail_at = -1;
	fake.host.ops = &ops;
	fake.host.session = ME;
	fake.host.bounce = bounce;
	fake.host.bounce_size = BOUNCE;
	fake.host.by = &fake.counters;
	fake.map_len = sizeof(shared);
	memset(target, 0, sizeof(target));
	memset(shared, 0, sizeof(shared));
	fill(source, sizeof(source), 3);
}

static struct emu_region private_of(uint32_t session, void *addr)
{
	struct emu_region region = {
		.addr = (uintptr_t)addr, .len = SIZE, .session = session, .pid = PID(session), .way = EMU_WAY_ATTACH};

	return region;
}

/* A region in a shared object; its own address means nothing here. */
static struct emu_region mapped_of(uint32_t session)
{
	struct emu_region region = {.addr = 0x123456789000u,
				    .len = SIZE,
				    .session = session,
				    .pid = PID(session),
				    .way = EMU_WAY_MAP,
				    .map = MAP,
				    .map_offset = PAGE_GAP};

	return region;
}

static uint64_t by_map(void)
{
	return atomic_load(&fake.counters.by_map);
}

static uint64_t by_attach(void)
{
	return atomic_load(&fake.counters.by_attach);
}

START_TEST(move__own_to_own__copies_here)
{
	struct emu_region dst = private_of(ME, target), src = private_of(ME, source);

	ck_assert_int_eq(emu_move(&fake.host, &dst, 100, &src, 30, 700), EMU_REACH_OK);
	ck_assert_mem_eq(target + 100, source + 30, 700);
	ck_assert(unit_is_zero(target, 100) && unit_is_zero(target + 800, SIZE - 800));
	ck_assert_int_eq(fake.count, 0);
	ck_assert_uint_eq(by_map(), 1);
	ck_assert_uint_eq(by_attach(), 0);
}
END_TEST

START_TEST(move__own_to_mapped__copies_into_the_mapping)
{
	struct emu_region dst = mapped_of(OTHER), src = private_of(ME, source);

	ck_assert_int_eq(emu_move(&fake.host, &dst, 100, &src, 30, 700), EMU_REACH_OK);
	ck_assert_mem_eq(shared + PAGE_GAP + 100, source + 30, 700);
	ck_assert_int_eq(fake.count, 1);
	ck_assert_uint_eq(fake.calls[0].map, MAP);
	ck_assert(fake.calls[0].write);
	ck_assert_uint_eq(by_map(), 1);
}
END_TEST

START_TEST(move__mapped_to_own__copies_out_of_the_mapping)
{
	struct emu_region dst = private_of(ME, target), src = mapped_of(OTHER);

	fill(shared, sizeof(shared), 5);
	ck_assert_int_eq(emu_move(&fake.host, &dst, 1, &src, 2, 3000), EMU_REACH_OK);
	ck_assert_mem_eq(target + 1, shared + PAGE_GAP + 2, 3000);
	ck_assert(!fake.calls[0].write);
	ck_assert_uint_eq(by_map(), 1);
}
END_TEST

START_TEST(move__own_to_private__writes_once_with_the_tail)
{
	struct emu_region dst = private_of(OTHER, target), src = private_of(ME, source);

	ck_assert_int_eq(emu_move(&fake.host, &dst, 64, &src, 30, 700), EMU_REACH_OK);
	ck_assert_mem_eq(target + 64, source + 30, 700);
	ck_assert_int_eq(fake.count, 1);
	ck_assert_int_eq(fake.calls[0].what, 'w');
	ck_assert_uint_eq(fake.calls[0].pid, PID(OTHER));
	ck_assert_ptr_eq(fake.calls[0].here, source + 30);
	ck_assert_uint_eq(fake.calls[0].there, (uintptr_t)(target + 64));
	ck_assert_uint_eq(fake.calls[0].len, 700);
	ck_assert_uint_eq(fake.calls[0].tail, 4);
	ck_assert_uint_eq(by_attach(), 1);
	ck_assert_uint_eq(by_map(), 0);
}
END_TEST

START_TEST(move__private_to_own__reads)
{
	struct emu_region dst = private_of(ME, target), src = private_of(OTHER, source);

	ck_assert_int_eq(emu_move(&fake.host, &dst, 64, &src, 30, 700), EMU_REACH_OK);
	ck_assert_mem_eq(target + 64, source + 30, 700);
	for (int n = 0; n < fake.count; n++) {
		ck_assert_int_eq(fake.calls[n].what, 'r');
		ck_assert_uint_eq(fake.calls[n].pid, PID(OTHER));
	}
	ck_assert_uint_eq(by_attach(), 1);
	ck_assert_uint_eq(by_map(), 0);
}
END_TEST

START_TEST(move__private_to_mapped__reads_into_the_mapping)
{
	static const uint64_t lens[] = {1, 7, 8, 100, 128, 129, 700, 4001};
	struct emu_region dst = mapped_of(OTHER), src = private_of(THIRD, source);

	for (size_t n = 0; n < sizeof(lens) / sizeof(lens[0]); n++) {
		memset(shared, 0, sizeof(shared));
		ck_assert_int_eq(emu_move(&fake.host, &dst, 8, &src, 30, lens[n]), EMU_REACH_OK);
		ck_assert_mem_eq(shared + PAGE_GAP + 8, source + 30, lens[n]);
		ck_assert(unit_is_zero(shared + PAGE_GAP + 8 + lens[n], SIZE - 8 - lens[n]));
	}
}
END_TEST

/* A read copies in whatever order the system likes: the word that the target polls must not be in it. */
START_TEST(move__private_to_mapped__last_word_is_not_stored_by_read)
{
	static const uint64_t lens[] = {8, 100, 128, 129, 700, 4096};
	struct emu_region dst = mapped_of(OTHER), src = private_of(THIRD, source);

	for (size_t n = 0; n < sizeof(lens) / sizeof(lens[0]); n++) {
		uintptr_t last = (uintptr_t)(shared + PAGE_GAP + lens[n] - 1);

		fake.count = 0;
		ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &src, 0, lens[n]), EMU_REACH_OK);
		for (int c = 0; c < fake.count; c++) {
			uintptr_t here = (uintptr_t)fake.calls[c].here;

			if (fake.calls[c].what == 'r')
				ck_assert(last < here || last >= here + fake.calls[c].len);
		}
	}
}
END_TEST

START_TEST(move__private_to_private__bounces_in_pieces_with_the_tail_last)
{
	struct emu_region dst = private_of(OTHER, target), src = private_of(THIRD, source);
	const uint64_t len = 2 * BOUNCE + 100;

	ck_assert_int_eq(emu_move(&fake.host, &dst, 40, &src, 30, len), EMU_REACH_OK);
	ck_assert_mem_eq(target + 40, source + 30, len);
	ck_assert_int_eq(fake.count, 6);
	for (int n = 0; n < 6; n++) {
		struct call *call = &fake.calls[n];
		uint64_t done = (uint64_t)(n / 2) * BOUNCE;

		ck_assert_int_eq(call->what, n % 2 ? 'w' : 'r');
		ck_assert_uint_eq(call->pid, n % 2 ? PID(OTHER) : PID(THIRD));
		ck_assert_ptr_eq(call->here, bounce);
		ck_assert_uint_eq(call->there, (n % 2 ? (uintptr_t)target + 40 : (uintptr_t)source + 30) + done);
		ck_assert_uint_eq(call->len, n < 4 ? BOUNCE : 100);
		ck_assert_uint_eq(call->tail, n == 5 ? 4 : 0);
	}
	ck_assert_uint_eq(by_attach(), 1);
}
END_TEST

START_TEST(move__private_to_private_without_bounce__goes_all_the_same)
{
	struct emu_region dst = private_of(OTHER, target), src = private_of(THIRD, source);
	const uint64_t len = SIZE - 40;

	fake.host.bounce = NULL;
	ck_assert_int_eq(emu_move(&fake.host, &dst, 40, &src, 30, len), EMU_REACH_OK);
	ck_assert_mem_eq(target + 40, source + 30, len);
	ck_assert_int_eq(fake.count % 2, 0);
	for (int n = 0; n < fake.count; n++) {
		ck_assert_int_eq(fake.calls[n].what, n % 2 ? 'w' : 'r');
		ck_assert_int_eq(fake.calls[n].tail != 0, n == fake.count - 1);
	}
	fake.fail_at = fake.count;
	fake.with = EMU_REACH_REFUSED;
	ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &src, 0, 100), EMU_REACH_REFUSED);
}
END_TEST

START_TEST(move__no_mapping_to_be_had__writes_to_the_address)
{
	struct emu_region dst = mapped_of(OTHER), src = private_of(ME, source);

	fake.no_map = true;
	dst.addr = (uintptr_t)target;
	ck_assert_int_eq(emu_move(&fake.host, &dst, 5, &src, 0, 100), EMU_REACH_OK);
	ck_assert_mem_eq(target + 5, source, 100);
	ck_assert_uint_eq(by_attach(), 1);
}
END_TEST

START_TEST(move__mapping_for_reading_alone__read_from_it_and_written_to_the_address)
{
	struct emu_region own = private_of(ME, source), there = mapped_of(OTHER);

	fake.read_only = true;
	there.addr = (uintptr_t)target;
	ck_assert_int_eq(emu_move(&fake.host, &there, 5, &own, 0, 100), EMU_REACH_OK);
	ck_assert_mem_eq(target + 5, source, 100);
	ck_assert_uint_eq(by_attach(), 1);
	fill(shared, sizeof(shared), 5);
	ck_assert_int_eq(emu_move(&fake.host, &own, 0, &there, 5, 100), EMU_REACH_OK);
	ck_assert_mem_eq(source, shared + PAGE_GAP + 5, 100);
	ck_assert_uint_eq(by_map(), 1);
}
END_TEST

/* ---- objects that cover a part of their region ------------------------------------------ */

#define OBJECT 3000u /* bytes of `shared` that are the object */

/* Where each byte of a region of SIZE bytes lies: in front of the object and behind it at its own address. */
static struct emu_region covered_of(uint32_t session, void *addr, int64_t map_offset)
{
	struct emu_region region = private_of(session, addr);

	region.way = EMU_WAY_MAP;
	region.map = MAP;
	region.map_offset = map_offset;
	fake.map_len = OBJECT;
	return region;
}

static unsigned char *byte_of(unsigned char *addr, int64_t map_offset, uint64_t offset)
{
	uint64_t at = (uint64_t)map_offset + offset; /* beyond the object if the sum is negative */

	return at < OBJECT ? shared + at : addr + offset;
}

static const int64_t covers[] = {
	-1000,				  /* begins in the region, ends in it */
	-4000,				  /* begins in it, covers its end */
	0,     200,			  /* covers its beginning */
	-5000, 3000, INT64_MIN, INT64_MAX /* covers nothing */
};

#define COVERS 8

static const struct {
	uint64_t offset, len;
} parts[] = {{0, SIZE}, {0, 1},	   {990, 20}, {999, 1},	 {1000, 1},    {3990, 20}, {900, 3300},
	     {0, 1000}, {4000, 8}, {4999, 1}, {5, 4000}, {1000, 3000}, {1, 128},   {950, 128}};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* _i: of covers[] */
START_TEST(move__object_covers_a_part__each_byte_goes_its_way)
{
	static unsigned char before_shared[sizeof(shared)], before_target[SIZE];
	struct emu_region src = private_of(ME, source), dst = covered_of(OTHER, target, covers[_i]);

	for (size_t p = 0; p < PARTS; p++) {
		fill(target, sizeof(target), 11);
		fill(shared, sizeof(shared), 12);
		memcpy(before_target, target, sizeof(target));
		memcpy(before_shared, shared, sizeof(shared));
		fake.count = 0;
		ck_assert_int_eq(emu_move(&fake.host, &dst, parts[p].offset, &src, 0, parts[p].len), EMU_REACH_OK);
		for (uint64_t i = 0; i < parts[p].len; i++) {
			unsigned char *at = byte_of(target, covers[_i], parts[p].offset + i);

			UNIT_CHECK(*at == source[i]);
			if (at >= shared && at < shared + sizeof(shared))
				*at = before_shared[at - shared];
			else
				*at = before_target[at - target];
		}
		ck_assert_mem_eq(target, before_target, sizeof(target)); /* and no other byte was touched */
		ck_assert_mem_eq(shared, before_shared, sizeof(shared));
	}
}
END_TEST

/* _i: of covers[] */
START_TEST(move__source_covered_in_part__each_byte_comes_its_way)
{
	struct emu_region dst = private_of(ME, target), src = covered_of(OTHER, source, covers[_i]);

	fill(shared, sizeof(shared), 12);
	for (size_t p = 0; p < PARTS; p++) {
		fake.count = 0;
		memset(target, 0, sizeof(target));
		ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &src, parts[p].offset, parts[p].len), EMU_REACH_OK);
		for (uint64_t i = 0; i < parts[p].len; i++)
			UNIT_CHECK(target[i] == *byte_of(source, covers[_i], parts[p].offset + i));
		ck_assert(unit_is_zero(target + parts[p].len, SIZE - parts[p].len));
	}
}
END_TEST

/* What a third party does, as glexd: both sides in runs of their own.  _i: of covers[] */
START_TEST(move__both_covered_in_part__all_bytes_arrive)
{
	struct emu_region dst = covered_of(OTHER, target, covers[_i]), src = private_of(THIRD, source);

	for (size_t p = 0; p < PARTS; p++) {
		fake.count = 0;
		ck_assert_int_eq(emu_move(&fake.host, &dst, parts[p].offset, &src, 0, parts[p].len), EMU_REACH_OK);
		for (uint64_t i = 0; i < parts[p].len; i++)
			UNIT_CHECK(*byte_of(target, covers[_i], parts[p].offset + i) == source[i]);
	}
}
END_TEST

START_TEST(move__object_in_the_middle__runs_in_ascending_order_and_the_last_has_its_tail)
{
	struct emu_region src = private_of(ME, source), dst = covered_of(OTHER, target, -1000);

	ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &src, 0, SIZE), EMU_REACH_OK);
	ck_assert_int_eq(fake.count, 5); /* map, write, map, map, write */
	ck_assert_int_eq(fake.calls[1].what, 'w');
	ck_assert_uint_eq(fake.calls[1].there, (uintptr_t)target);
	ck_assert_uint_eq(fake.calls[1].len, 1000);
	ck_assert_int_eq(fake.calls[4].what, 'w');
	ck_assert_uint_eq(fake.calls[4].there, (uintptr_t)target + 4000);
	ck_assert_uint_eq(fake.calls[4].len, 1000);
	ck_assert_uint_eq(fake.calls[4].tail, 8);
	ck_assert_uint_eq(by_attach(), 1);
	ck_assert_uint_eq(by_map(), 0);
}
END_TEST

START_TEST(move__first_run_fails__nothing_follows)
{
	struct emu_region src = private_of(ME, source), dst = covered_of(OTHER, target, -1000);

	fake.fail_at = 1;
	fake.with = EMU_REACH_FAULT;
	ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &src, 0, SIZE), EMU_REACH_FAULT);
	ck_assert_int_eq(fake.count, 2);
	ck_assert(unit_is_zero(shared, sizeof(shared)));
	ck_assert_int_eq(emu_move_from(&fake.host, &dst, 1010, source, 96), EMU_REACH_OK);
	ck_assert_mem_eq(shared + 10, source, 96);
}
END_TEST

START_TEST(move_from__over_the_bound_of_an_object__all_arrives)
{
	struct emu_region dst = covered_of(OTHER, target, -1000);

	ck_assert_int_eq(emu_move_from(&fake.host, &dst, 960, source, 96), EMU_REACH_OK);
	ck_assert_mem_eq(target + 960, source, 40);
	ck_assert_mem_eq(shared, source + 40, 56);
	ck_assert_uint_eq(by_attach(), 1);
}
END_TEST

START_TEST(move__nobody_counts__works)
{
	struct emu_region dst = private_of(OTHER, target), src = private_of(ME, source);

	fake.host.by = NULL;
	ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &src, 0, 100), EMU_REACH_OK);
	ck_assert_mem_eq(target, source, 100);
}
END_TEST

START_TEST(move_from__own_mapped_and_private__all_arrive)
{
	struct emu_region own = private_of(ME, target), mapped = mapped_of(OTHER), private = private_of(OTHER, target);

	ck_assert_int_eq(emu_move_from(&fake.host, &own, 0, source, 96), EMU_REACH_OK);
	ck_assert_mem_eq(target, source, 96);
	ck_assert_int_eq(emu_move_from(&fake.host, &mapped, 3, source, 96), EMU_REACH_OK);
	ck_assert_mem_eq(shared + PAGE_GAP + 3, source, 96);
	ck_assert_int_eq(emu_move_from(&fake.host, &private, 200, source, 96), EMU_REACH_OK);
	ck_assert_mem_eq(target + 200, source, 96);
	ck_assert_uint_eq(fake.calls[1].tail, 8);
	ck_assert_uint_eq(by_map(), 2);
	ck_assert_uint_eq(by_attach(), 1);
}
END_TEST

static const enum emu_reach causes[] = {EMU_REACH_GONE, EMU_REACH_FAULT, EMU_REACH_REFUSED};

/* _i: the cause */
START_TEST(move__host_fails__cause_passes_through_and_nothing_follows)
{
	struct emu_region own_dst = private_of(ME, target), own_src = private_of(ME, source);
	struct emu_region dst = private_of(OTHER, target), src = private_of(THIRD, source);
	struct emu_region map_dst = mapped_of(OTHER);

	fake.with = causes[_i];
	fake.fail_at = 0;
	ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &own_src, 0, 2000), causes[_i]);
	fake.fail_at = 1;
	ck_assert_int_eq(emu_move(&fake.host, &own_dst, 0, &src, 0, 2000), causes[_i]);
	ck_assert_int_eq(fake.count, 2);
	for (int n = 2; n < 6; n++) {
		fake.count = 2;
		fake.fail_at = n;
		ck_assert_int_eq(emu_move(&fake.host, &dst, 0, &src, 0, 2 * BOUNCE), causes[_i]);
		ck_assert_int_eq(fake.count, n + 1);
	}
	fake.count = 0;
	fake.fail_at = 1; /* after the map */
	ck_assert_int_eq(emu_move(&fake.host, &map_dst, 0, &src, 0, 2000), causes[_i]);
	ck_assert(unit_is_zero(shared, sizeof(shared)));
}
END_TEST

static Suite *move_suite(void)
{
	Suite *suite = suite_create("move");
	TCase *copy = tcase_create("copy"), *watched_copy = tcase_create("watched"), *move = tcase_create("move");

	tcase_add_loop_test(copy, copy__any_length_and_alignment__exact_bytes_and_no_others, 0, 16);
	tcase_add_loop_test(copy, copy__overlapping__as_memmove, 0, 8);
	tcase_add_test(copy, tail_of__end_and_length__is_the_last_aligned_word);
	tcase_set_timeout(watched_copy, 300); /* with a sanitizer, on a busy machine */
	tcase_add_loop_test(watched_copy, copy__last_word_seen__all_bytes_are_there, 0, WRITERS);
	tcase_add_test(watched_copy, copy__up_to_128_bytes__visible_in_ascending_order);
	tcase_add_checked_fixture(move, setup, NULL);
	tcase_add_test(move, move__own_to_own__copies_here);
	tcase_add_test(move, move__own_to_mapped__copies_into_the_mapping);
	tcase_add_test(move, move__mapped_to_own__copies_out_of_the_mapping);
	tcase_add_test(move, move__own_to_private__writes_once_with_the_tail);
	tcase_add_test(move, move__private_to_own__reads);
	tcase_add_test(move, move__private_to_mapped__reads_into_the_mapping);
	tcase_add_test(move, move__private_to_mapped__last_word_is_not_stored_by_read);
	tcase_add_test(move, move__private_to_private__bounces_in_pieces_with_the_tail_last);
	tcase_add_test(move, move__private_to_private_without_bounce__goes_all_the_same);
	tcase_add_test(move, move__no_mapping_to_be_had__writes_to_the_address);
	tcase_add_test(move, move__mapping_for_reading_alone__read_from_it_and_written_to_the_address);
	tcase_add_loop_test(move, move__object_covers_a_part__each_byte_goes_its_way, 0, COVERS);
	tcase_add_loop_test(move, move__source_covered_in_part__each_byte_comes_its_way, 0, COVERS);
	tcase_add_loop_test(move, move__both_covered_in_part__all_bytes_arrive, 0, COVERS);
	tcase_add_test(move, move__object_in_the_middle__runs_in_ascending_order_and_the_last_has_its_tail);
	tcase_add_test(move, move__first_run_fails__nothing_follows);
	tcase_add_test(move, move_from__over_the_bound_of_an_object__all_arrives);
	tcase_add_test(move, move__nobody_counts__works);
	tcase_add_test(move, move_from__own_mapped_and_private__all_arrive);
	tcase_add_loop_test(move, move__host_fails__cause_passes_through_and_nothing_follows, 0, 3);
	suite_add_tcase(suite, copy);
	suite_add_tcase(suite, watched_copy);
	suite_add_tcase(suite, move);
	return suite;
}

int main(void)
{
	return suite_run(move_suite());
}
