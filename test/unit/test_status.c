/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_status.c - the calls that need no device: the sentences behind the codes,
 * and the configuration.
 */
#include <glex_ext.h>

#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/suite.h"

static const char *error_text(int code)
{
	return glex_error_str((glex_ret_t)code);
}

static const char *status_text(int code)
{
	return glex_error_req_status_str((enum glex_err_req_status)code);
}

static const char *opcode_text(int code)
{
	return glex_error_req_opcode_str((enum glex_err_req_op)code);
}

static const struct {
	const char *(*text)(int code);
	int last; /* the largest code */
} families[] = {
	{error_text, GLEX_NOT_IMPLEMENTED},
	{status_text, GLEX_ERR_STATUS_CONNECTION_ECC},
	{opcode_text, GLEX_ERR_OP_RDMA_GET},
};

#define FAMILIES ((int)(sizeof(families) / sizeof(families[0])))

START_TEST(error_str__success__is_successful)
{
	ck_assert_str_eq(glex_error_str(GLEX_SUCCESS), "successful");
}
END_TEST

START_TEST(texts__every_code__has_one_of_its_own)
{
	for (int a = 0; a <= families[_i].last; a++) {
		ck_assert_ptr_nonnull(families[_i].text(a));
		ck_assert_ptr_null(strstr(families[_i].text(a), "unknown return"));
		for (int b = a + 1; b <= families[_i].last; b++)
			ck_assert_str_ne(families[_i].text(a), families[_i].text(b));
	}
}
END_TEST

START_TEST(texts__codes_out_of_range__are_unknown)
{
	const int codes[] = {families[_i].last + 1, 12345, -1, INT_MAX, INT_MIN};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		ck_assert_ptr_nonnull(families[_i].text(codes[i]));
		ck_assert_int_eq(strncmp(families[_i].text(codes[i]), "unknown ", 8), 0);
	}
}
END_TEST

START_TEST(config_uint__numeric_variable__gives_value)
{
	uint64_t value = 0;

	setenv("GLEX_MPI_EAGER_MAX", "1M", 1);
	ck_assert_int_eq(glex_config_uint("GLEX_MPI_EAGER_MAX", &value), GLEX_SUCCESS);
	ck_assert_uint_eq(value, 1 << 20);
}
END_TEST

START_TEST(config_uint__anything_else__is_invalid_and_sets_nothing)
{
	uint64_t value = 99;

	ck_assert_int_eq(glex_config_uint("GLEX_NOPE", &value), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_config_uint("GLEX_SOCKET", &value), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_config_uint(NULL, &value), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_config_uint("GLEX_PPN", NULL), GLEX_INVALID_PARAM);
	ck_assert_uint_eq(value, 99);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status");
	TCase *texts = tcase_create("texts"), *config = tcase_create("config");

	tcase_add_test(texts, error_str__success__is_successful);
	tcase_add_loop_test(texts, texts__every_code__has_one_of_its_own, 0, FAMILIES);
	tcase_add_loop_test(texts, texts__codes_out_of_range__are_unknown, 0, FAMILIES);
	tcase_add_test(config, config_uint__numeric_variable__gives_value);
	tcase_add_test(config, config_uint__anything_else__is_invalid_and_sets_nothing);
	suite_add_tcase(suite, texts);
	suite_add_tcase(suite, config);
	return suite_run(suite);
}
