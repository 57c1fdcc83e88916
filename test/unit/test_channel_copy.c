/* SPDX-License-Identifier: BSD-2-Clause */
/* test_channel_copy.c - the channel's copies: exactly the bytes asked for, of any length, from and to anywhere. */
#include "unit.h"

#include "netmod-glex/channel/copy.h"

#define LONGEST 4160 /* data of a record, and some */
#define GUARD	64
#define ROOM	(GUARD + 64 + LONGEST + GUARD)
#define OFFSETS (sizeof(offsets) / sizeof(offsets[0]))

typedef void copy_fn(void *dst, const void *src, size_t len);

static copy_fn *const copies[] = {glexch_copy_few, glexch_copy_words, glexch_copy_data, glexch_copy_some,
				  glexch_copy_lines};
static const size_t offsets[] = {0, 1, 8, 31, 40, 63};
static _Alignas(64) unsigned char dst[ROOM];

/* Out of memory that ends where the bytes do: the address sanitizer sees who reads on. */
static void must_copy(copy_fn *copy, size_t at, size_t from, size_t len)
{
	unsigned char *mem = malloc(from + len + 1), *src = mem + 1 + from;
	uint32_t seed = (uint32_t)len + 1;

	ck_assert_ptr_nonnull(mem);
	for (size_t i = 0; i < len; i++)
		src[i] = (unsigned char)(unit_random(&seed) % 255 + 1);
	memset(dst, 0, sizeof(dst));
	copy(dst + at, src, len);
	UNIT_CHECK(!len || !memcmp(dst + at, src, len));
	UNIT_CHECK(unit_is_zero(dst, at));
	UNIT_CHECK(unit_is_zero(dst + at + len, ROOM - at - len));
	free(mem);
}

/* _i: which */
START_TEST(copy__any_length_and_place__exact_bytes_and_no_others)
{
	for (size_t len = 0; len <= LONGEST; len += len < 330 ? 1 : 29)
		for (size_t k = 0; k < OFFSETS * OFFSETS; k++)
			must_copy(copies[_i], GUARD + offsets[k % OFFSETS], offsets[k / OFFSETS], len);
}
END_TEST

static Suite *channel_copy_suite(void)
{
	Suite *suite = suite_create("channel_copy");
	TCase *tc = tcase_create("copies");

	tcase_set_timeout(tc, 120); /* with a sanitizer */
	tcase_add_loop_test(tc, copy__any_length_and_place__exact_bytes_and_no_others, 0,
			    sizeof(copies) / sizeof(copies[0]));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return suite_run_short(channel_copy_suite());
}
