/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cfg.c - the configuration and the log.
 *
 * Each test runs in a process of its own (Check forks), so the values that are
 * read once a process are read once a test.
 */
#include "cfg/cfg.h"
#include "cfg/log.h"
#include "test/lib/suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENV(...)                                                                                                       \
	(char *const[])                                                                                                \
	{                                                                                                              \
		__VA_ARGS__, NULL                                                                                      \
	}

/* ---- what a parse gave --------------------------------------------------- */

#define MAX_ROWS 128

static struct glexi_cfg cfg;
static enum glexi_cfg_source source[MAX_ROWS];
static char warnings[16][700];
static int warning_count;

static void keep_warning(void *arg, const char *text)
{
	(void)arg;
	ck_assert_int_lt(warning_count, 16);
	snprintf(warnings[warning_count++], sizeof(warnings[0]), "%s", text);
}

static void parse(char *const *env)
{
	warning_count = 0;
	glexi_cfg_parse(&cfg, source, env, keep_warning, NULL);
}

static const struct glexi_cfg_row *row_of(const char *name)
{
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		if (!strcmp(row->name, name))
			return row;
	}
	ck_abort_msg("no row %s", name);
}

static bool parses_to(const char *name, const char *text, uint64_t expected)
{
	const char *why = "";
	uint64_t value = 0;

	return glexi_cfg_parse_value(row_of(name), text, &value, &why) && value == expected;
}

static bool refuses(const char *name, const char *text)
{
	uint64_t value = 12345;
	const char *why = NULL;

	return !glexi_cfg_parse_value(row_of(name), text, &value, &why) && value == 12345 && why;
}

/* ---- what was printed ---------------------------------------------------- */

static FILE *capture;

static void capture_stderr(void)
{
	capture = tmpfile();
	ck_assert_ptr_nonnull(capture);
	ck_assert_int_ge(dup2(fileno(capture), STDERR_FILENO), 0);
}

static const char *captured(void)
{
	static char text[65536];
	ssize_t len = pread(fileno(capture), text, sizeof(text) - 1, 0);

	ck_assert_int_ge(len, 0);
	text[len] = '\0';
	return text;
}

static int count_of(const char *needle, const char *text)
{
	int count = 0;

	for (; (text = strstr(text, needle)); text += strlen(needle))
		count++;
	return count;
}

/* ---- the table ----------------------------------------------------------- */

START_TEST(table__every_default__parses_and_is_in_range)
{
	char *const nothing[] = {NULL};
	char text[GLEXI_CFG_TEXT];

	parse(nothing);
	ck_assert_int_eq(warning_count, 0);
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		uint64_t member[2];
		const char *why = "";

		ck_assert_msg(glexi_cfg_parse_value(row, row->def, member, &why), "%s: default %s is %s", row->name,
			      row->def, why);
		ck_assert_str_eq(glexi_cfg_format(&cfg, row, text, sizeof(text)), row->def);
	}
}
END_TEST

START_TEST(table__every_row__is_described)
{
	ck_assert_uint_le(glexi_cfg_rows(), MAX_ROWS);
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		bool own = !strncmp(row->name, "GLEX_", 5) || !strncmp(row->name, "PDP_GLEX_", 9);
		char range[GLEXI_CFG_TEXT];

		ck_assert_uint_gt(strlen(row->help), 10);
		ck_assert_msg(row->help[strlen(row->help) - 1] != '.', "%s: help ends with a full stop", row->name);
		ck_assert_msg((row->kind == GLEXI_CFG_OWN) == own, "%s", row->name);
		glexi_cfg_range(row, range, sizeof(range));
		ck_assert_msg(row->type == GLEXI_CFG_STRING || *range, "%s has no range", row->name);
		ck_assert_uint_lt(strlen(row->name), 64);
	}
}
END_TEST

START_TEST(table__names_and_members__are_used_once)
{
	for (const struct glexi_cfg_row *a = glexi_cfg_table; a->name; a++) {
		for (const struct glexi_cfg_row *b = a + 1; b->name; b++) {
			ck_assert_str_ne(a->name, b->name);
			ck_assert_msg(a->offset != b->offset, "%s and %s share a member", a->name, b->name);
		}
	}
}
END_TEST

START_TEST(table__range_texts__have_units)
{
	char text[GLEXI_CFG_TEXT];

	ck_assert_str_eq(glexi_cfg_range(row_of("GLEX_MPI_SR_BLOCK_SIZE"), text, sizeof(text)), "1K to 1M");
	ck_assert_str_eq(glexi_cfg_range(row_of("GLEX_SPIN_TIME"), text, sizeof(text)), "0 to 10s");
	ck_assert_str_eq(glexi_cfg_range(row_of("GLEX_SINGLE_THREADED"), text, sizeof(text)), "y or n");
	ck_assert_str_eq(glexi_cfg_range(row_of("GLEX_LOG_LEVEL"), text, sizeof(text)),
			 "error, warn, info, debug, trace");
}
END_TEST

/* ---- values -------------------------------------------------------------- */

START_TEST(size__with_suffixes__parses)
{
	ck_assert(parses_to("GLEX_DMA_CHUNK", "8192", 8192));
	ck_assert(parses_to("GLEX_DMA_CHUNK", "64K", 65536));
	ck_assert(parses_to("GLEX_DMA_CHUNK", "64k", 65536));
	ck_assert(parses_to("GLEX_DMA_CHUNK", "64KiB", 65536));
	ck_assert(parses_to("GLEX_DMA_CHUNK", "1M", 1 << 20));
	ck_assert(parses_to("GLEX_DMA_CHUNK", "1g", 1 << 30));
}
END_TEST

START_TEST(size__malformed__is_refused)
{
	ck_assert(refuses("GLEX_DMA_CHUNK", ""));
	ck_assert(refuses("GLEX_DMA_CHUNK", "K"));
	ck_assert(refuses("GLEX_DMA_CHUNK", "-64K"));
	ck_assert(refuses("GLEX_DMA_CHUNK", " 64K"));
	ck_assert(refuses("GLEX_DMA_CHUNK", "64 K"));
	ck_assert(refuses("GLEX_DMA_CHUNK", "64Q"));
	ck_assert(refuses("GLEX_DMA_CHUNK", "64KK"));
	ck_assert(refuses("GLEX_DMA_CHUNK", "1.5M"));
	ck_assert(refuses("GLEX_DMA_CHUNK", "18446744073709551616"));
	ck_assert(refuses("GLEX_DMA_CHUNK", "17179869184G"));
}
END_TEST

START_TEST(size__outside_its_range__is_refused)
{
	ck_assert(refuses("GLEX_DMA_CHUNK", "4095"));
	ck_assert(parses_to("GLEX_DMA_CHUNK", "4096", 4096));
	ck_assert(refuses("GLEX_DMA_CHUNK", "1073741825"));
}
END_TEST

START_TEST(time__in_any_unit__becomes_the_rows)
{
	ck_assert(parses_to("GLEX_SPIN_TIME", "10us", 10));
	ck_assert(parses_to("GLEX_SPIN_TIME", "10", 10));
	ck_assert(parses_to("GLEX_SPIN_TIME", "5ms", 5000));
	ck_assert(parses_to("GLEX_SPIN_TIME", "1s", 1000000));
	ck_assert(parses_to("GLEX_LINGER", "2s", 2000));
	ck_assert(parses_to("GLEX_LINGER", "2", 2));
	ck_assert(parses_to("GLEX_LINGER", "0", 0));
}
END_TEST

START_TEST(time__finer_than_the_unit__rounds_up)
{
	ck_assert(parses_to("GLEX_SPIN_TIME", "1ns", 1));
	ck_assert(parses_to("GLEX_SPIN_TIME", "1001ns", 2));
	ck_assert(parses_to("GLEX_SPIN_TIME", "0ns", 0));
}
END_TEST

START_TEST(time__malformed__is_refused)
{
	ck_assert(refuses("GLEX_SPIN_TIME", "10m"));
	ck_assert(refuses("GLEX_SPIN_TIME", "us"));
	ck_assert(refuses("GLEX_SPIN_TIME", "10 us"));
	ck_assert(refuses("GLEX_SPIN_TIME", "18446744073709551615s"));
	ck_assert(refuses("GLEX_SPIN_TIME", "11s"));
}
END_TEST

START_TEST(uint__signs_bases_and_rests__are_refused)
{
	ck_assert(parses_to("GLEX_NODES", "12", 12));
	ck_assert(parses_to("GLEX_NODES", "0x1fF", 0x1ff));
	ck_assert(parses_to("GLEX_EP_MEM_SIZE", "0x8000000", 128 << 20));
	ck_assert(refuses("GLEX_NODES", "0x"));
	ck_assert(refuses("GLEX_NODES", "0x1g"));
	ck_assert(refuses("GLEX_NODES", "x10"));
	ck_assert(refuses("GLEX_NODES", "1f"));
	ck_assert(refuses("GLEX_NODES", "0x10000000000000000"));
	ck_assert(refuses("GLEX_NODES", "0"));
	ck_assert(refuses("GLEX_NODES", "+1"));
	ck_assert(refuses("GLEX_NODES", "-1"));
	ck_assert(refuses("GLEX_NODES", "1K"));
	ck_assert(refuses("GLEX_NODES", "banana"));
}
END_TEST

START_TEST(bool__usual_words__parse)
{
	const char *const yes[] = {"y", "Y", "1", "yes", "on", "TRUE"};
	const char *const no[] = {"n", "0", "no", "off", "False"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		char entry[64];

		snprintf(entry, sizeof(entry), "GLEX_SINGLE_THREADED=%s", yes[i]);
		parse(ENV(entry));
		ck_assert(cfg.single_threaded);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		char entry[64];

		snprintf(entry, sizeof(entry), "GLEX_MEM_ATTACH=%s", no[i]);
		parse(ENV(entry));
		ck_assert(!cfg.mem_attach);
	}
	ck_assert_int_eq(warning_count, 0);
}
END_TEST

START_TEST(value__formatted__parses_back)
{
	char text[GLEXI_CFG_TEXT];

	parse(ENV("GLEX_DMA_CHUNK=12345", "GLEX_SPIN_TIME=1500", "GLEX_LOG_LEVEL=Debug", "GLEX_NODE=3"));
	ck_assert_str_eq(glexi_cfg_format(&cfg, row_of("GLEX_DMA_CHUNK"), text, sizeof(text)), "12345");
	ck_assert_str_eq(glexi_cfg_format(&cfg, row_of("GLEX_SPIN_TIME"), text, sizeof(text)), "1500us");
	ck_assert_str_eq(glexi_cfg_format(&cfg, row_of("GLEX_LOG_LEVEL"), text, sizeof(text)), "debug");
	ck_assert_str_eq(glexi_cfg_format(&cfg, row_of("GLEX_NODE"), text, sizeof(text)), "3");
}
END_TEST

/* ---- the environment ----------------------------------------------------- */

START_TEST(env__set__wins_over_default)
{
	parse(ENV("HOME=/", "GLEX_PPN=4", "GLEX_JOB=my job"));
	ck_assert_uint_eq(cfg.ppn, 4);
	ck_assert_str_eq(cfg.job, "my job");
	ck_assert_uint_eq(cfg.nodes, 8);
	ck_assert_int_eq(source[row_of("GLEX_PPN") - glexi_cfg_table], GLEXI_CFG_FROM_ENV);
	ck_assert_int_eq(source[row_of("GLEX_NODES") - glexi_cfg_table], GLEXI_CFG_FROM_DEFAULT);
	ck_assert_int_eq(warning_count, 0);
}
END_TEST

START_TEST(env__empty_value__counts_as_unset)
{
	parse(ENV("GLEX_PPN=", "GLEX_NODE=", "GLEX_SOCKET="));
	ck_assert_uint_eq(cfg.ppn, 1);
	ck_assert_uint_eq(cfg.node, GLEXI_CFG_UNSET);
	ck_assert_str_eq(cfg.socket, "");
	ck_assert_int_eq(source[row_of("GLEX_PPN") - glexi_cfg_table], GLEXI_CFG_FROM_DEFAULT);
	ck_assert_int_eq(warning_count, 0);
}
END_TEST

START_TEST(env__bad_value__warns_with_range_and_uses_default)
{
	parse(ENV("GLEX_PPN=banana"));
	ck_assert_uint_eq(cfg.ppn, 1);
	ck_assert_int_eq(source[row_of("GLEX_PPN") - glexi_cfg_table], GLEXI_CFG_FROM_DEFAULT);
	ck_assert_int_eq(warning_count, 1);
	ck_assert_str_eq(warnings[0],
			 "GLEX_PPN: `banana' is not a whole number (1 to 65536 ranks); the default 1 is used");
}
END_TEST

START_TEST(env__value_out_of_range__warns_with_range)
{
	parse(ENV("GLEX_MPI_SR_BLOCK_SIZE=2M"));
	ck_assert_uint_eq(cfg.mpi_sr_block_size, 16384);
	ck_assert_int_eq(warning_count, 1);
	ck_assert_str_eq(warnings[0],
			 "GLEX_MPI_SR_BLOCK_SIZE: `2M' is out of range (1K to 1M); the default 16K is used");
}
END_TEST

START_TEST(env__unknown_choice__names_the_choices)
{
	parse(ENV("GLEX_LOG_LEVEL=loud"));
	ck_assert_int_eq(cfg.log_level, GLEXI_LOG_WARN);
	ck_assert_int_eq(warning_count, 1);
	ck_assert_ptr_nonnull(strstr(warnings[0], "(error, warn, info, debug, trace)"));
}
END_TEST

START_TEST(env__typo__suggests_nearest_name)
{
	const char *const typos[][2] = {
		{"GLEX_SOKCET=x", "GLEX_SOCKET"},
		{"GLEX_LOGLEVEL=x", "GLEX_LOG_LEVEL"},
		{"GLEX_LOG=x", "GLEX_LOG_LEVEL"},
		{"GLEX_MPI_BLOCK_SIZE=x", "GLEX_MPI_SR_BLOCK_SIZE"},
		{"GLEX_MPI_EAGERMAX=x", "GLEX_MPI_EAGER_MAX"},
		{"GLEX_SPINTIME=x", "GLEX_SPIN_TIME"},
		{"GLEX_EAGER_MAX_SIZE=x", "GLEX_EAGER_MAX_MSG_SIZE"},
	};

	for (size_t i = 0; i < sizeof(typos) / sizeof(typos[0]); i++) {
		char expected[128], entry[64];

		snprintf(entry, sizeof(entry), "%s", typos[i][0]);
		snprintf(expected, sizeof(expected), "did you mean %s?", typos[i][1]);
		parse(ENV(entry));
		ck_assert_int_eq(warning_count, 1);
		ck_assert_msg(strstr(warnings[0], expected), "%s: %s", typos[i][0], warnings[0]);
	}
}
END_TEST

START_TEST(env__name_like_no_other__warns_without_suggestion)
{
	parse(ENV("GLEX_XYZZY_PLUGH=1"));
	ck_assert_int_eq(warning_count, 1);
	ck_assert_str_eq(warnings[0],
			 "GLEX_XYZZY_PLUGH: no such variable; see glex_env(7), or set GLEX_WARN_UNUSED to n");
}
END_TEST

START_TEST(env__unknown_with_warn_unused_off__is_silent)
{
	parse(ENV("GLEX_SOKCET=x", "GLEX_WARN_UNUSED=n"));
	ck_assert_int_eq(warning_count, 0);
}
END_TEST

START_TEST(env__names_of_others__are_left_alone)
{
	parse(ENV("GLEXD=x", "MY_GLEX_SOKCET=x", "PMI_RANKS=x", "GLEX_NO_EQUAL_SIGN", "SLURM_JOB=9"));
	ck_assert_int_eq(warning_count, 0);
}
END_TEST

START_TEST(env__launcher_value__is_read_and_never_warned_about)
{
	parse(ENV("PMI_RANK=3", "PMI_SIZE=many", "SLURM_JOB_ID=77", "MPI_LOCALRANKID=1"));
	ck_assert_uint_eq(cfg.pmi_rank, 3);
	ck_assert_uint_eq(cfg.pmi_size, GLEXI_CFG_UNSET);
	ck_assert_uint_eq(cfg.local_rank, 1);
	ck_assert_uint_eq(cfg.pmi_fd, GLEXI_CFG_UNSET);
	ck_assert_str_eq(cfg.slurm_job_id, "77");
	ck_assert_int_eq(warning_count, 0);
}
END_TEST

START_TEST(env__very_long_name_and_value__are_cut)
{
	static char name[5000] = "GLEX_", value[5000] = "GLEX_PPN=";

	memset(name + 5, 'A', 4000);
	strcat(name, "=1");
	memset(value + 9, 'b', 4000);
	parse(ENV(name, value));
	ck_assert_int_eq(warning_count, 2);
	ck_assert_uint_lt(strlen(warnings[0]), 400);
	ck_assert_uint_lt(strlen(warnings[1]), 400);
}
END_TEST

/* ---- the process's own --------------------------------------------------- */

START_TEST(process__unknown_variable__warns_once)
{
	capture_stderr();
	setenv("GLEX_SOKCET", "x", 1);
	glexi_cfg();
	glexi_cfg();
	glexi_error("something else");
	ck_assert_int_eq(count_of("did you mean GLEX_SOCKET?", captured()), 1);
}
END_TEST

START_TEST(process__rank_other_than_0__leaves_the_warning_to_rank_0)
{
	const char *const rank[] = {"0", "1"};

	capture_stderr();
	setenv("GLEX_SOKCET", "x", 1);
	setenv("PMI_RANK", rank[_i], 1);
	glexi_cfg();
	ck_assert_int_eq(count_of("did you mean GLEX_SOCKET?", captured()), _i == 0);
}
END_TEST

START_TEST(process__inherited__leaves_the_warning_to_its_parent)
{
	capture_stderr();
	setenv("GLEX_SOKCET", "x", 1);
	setenv("GLEX_PPN", "x", 1);
	glexi_cfg_inherited();
	glexi_cfg();
	ck_assert_str_eq(captured(), "");
}
END_TEST

START_TEST(process__string__survives_a_change_of_the_environment)
{
	const struct glexi_cfg *values;

	setenv("GLEX_JOB", "first", 1);
	values = glexi_cfg();
	setenv("GLEX_JOB", "second", 1);
	ck_assert_str_eq(values->job, "first");
	ck_assert_ptr_eq(values, glexi_cfg());
}
END_TEST

static void *read_config(void *arg)
{
	*(uint64_t *)arg = glexi_cfg()->ppn;
	glexi_warn("from a thread");
	return NULL;
}

START_TEST(process__first_use_by_many_threads__all_see_it)
{
	pthread_t threads[8];
	uint64_t seen[8] = {0};

	capture_stderr();
	setenv("GLEX_PPN", "5", 1);
	setenv("GLEX_NODES", "none", 1);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_config, &seen[i]), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 8; i++)
		ck_assert_uint_eq(seen[i], 5);
	ck_assert_int_eq(count_of("GLEX_NODES: `none'", captured()), 1);
	ck_assert_int_eq(count_of("from a thread\n", captured()), 8);
}
END_TEST

START_TEST(cfg_uint__numeric_row__gives_value)
{
	uint64_t value = 0;

	setenv("GLEX_MPI_EAGER_MAX", "1M", 1);
	setenv("GLEX_LINGER", "3s", 1);
	ck_assert(glexi_cfg_uint("GLEX_MPI_EAGER_MAX", &value));
	ck_assert_uint_eq(value, 1 << 20);
	ck_assert(glexi_cfg_uint("GLEX_LINGER", &value));
	ck_assert_uint_eq(value, 3000);
	ck_assert(glexi_cfg_uint("GLEX_MPI_CHANNEL", &value));
	ck_assert_uint_eq(value, GLEXI_MPI_CHANNEL_AUTO);
	ck_assert(glexi_cfg_uint("GLEX_MEM_ATTACH", &value));
	ck_assert_uint_eq(value, 1);
}
END_TEST

START_TEST(cfg_uint__anything_else__gives_nothing)
{
	uint64_t value = 99;

	ck_assert(!glexi_cfg_uint("GLEX_NOPE", &value));
	ck_assert(!glexi_cfg_uint("GLEX_SOCKET", &value));
	ck_assert(!glexi_cfg_uint("GLEX_NODE", &value));
	ck_assert_uint_eq(value, 99);
}
END_TEST

/* ---- the log ------------------------------------------------------------- */

static int evaluated;

static int evaluate(void)
{
	return ++evaluated;
}

START_TEST(log__below_the_level__evaluates_nothing)
{
	capture_stderr();
	setenv("GLEX_LOG_LEVEL", "warn", 1);
	glexi_cfg();
	glexi_info("%d", evaluate());
	glexi_trace("%d", evaluate());
	ck_assert_int_eq(evaluated, 0);
	ck_assert_str_eq(captured(), "");
	glexi_warn("%d", evaluate());
	ck_assert_int_eq(evaluated, 1);
}
END_TEST

START_TEST(log__before_anybody_read_the_configuration__keeps_to_the_level)
{
	capture_stderr();
	setenv("GLEX_LOG_LEVEL", "error", 1);
	glexi_warn("unwanted");
	glexi_error("wanted");
	ck_assert_int_eq(count_of("unwanted", captured()), 0);
	ck_assert_int_eq(count_of(" wanted\n", captured()), 1);
}
END_TEST

START_TEST(log__line__has_prefix_rank_and_error_text)
{
	char expected[64];

	capture_stderr();
	setenv("PMI_RANK", "7", 1);
	errno = ENOMEM;
	glexi_error("mapping failed: %m");
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_int_eq(strncmp(captured(), "glex: error: [", 14), 0);
	snprintf(expected, sizeof(expected), " %d 7] mapping failed: Cannot allocate memory\n", (int)getpid());
	ck_assert_msg(strstr(captured(), expected), "%s", captured());
}
END_TEST

START_TEST(log__long_message__is_one_cut_line)
{
	char text[4000];

	capture_stderr();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	glexi_error("%s", text);
	ck_assert_uint_le(strlen(captured()), 1024);
	ck_assert_int_eq(count_of("\n", captured()), 1);
}
END_TEST

START_TEST(log__file__takes_messages_under_its_expanded_name)
{
	char dir[] = "/tmp/test_cfg.XXXXXX", pattern[128], path[128], text[512] = "";
	FILE *file;

	capture_stderr();
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(pattern, sizeof(pattern), "%s/log.%%p.100%%%%", dir);
	snprintf(path, sizeof(path), "%s/log.%d.100%%", dir, (int)getpid());
	setenv("GLEX_LOG_FILE", pattern, 1);
	glexi_error("into the file");
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	fclose(file);
	unlink(path);
	rmdir(dir);
	ck_assert_ptr_nonnull(strstr(text, "into the file"));
	ck_assert_str_eq(captured(), "");
}
END_TEST

START_TEST(log__file_that_cannot_be_opened__says_so_and_uses_stderr)
{
	capture_stderr();
	setenv("GLEX_LOG_FILE", "/nonexistent/log", 1);
	glexi_error("the message");
	ck_assert_ptr_nonnull(strstr(captured(), "opening /nonexistent/log failed: No such file or directory"));
	ck_assert_ptr_nonnull(strstr(captured(), "the message"));
}
END_TEST

START_TEST(log_once__same_cause__speaks_once)
{
	capture_stderr();
	for (int i = 0; i < 12; i++)
		glexi_warn_once((uint64_t)(i % 3), "key %d", i % 3);
	ck_assert_int_eq(count_of("key", captured()), 3);
}
END_TEST

START_TEST(log_once__same_key_at_another_place__is_another_cause)
{
	capture_stderr();
	glexi_warn_once(1, "here");
	glexi_warn_once(1, "there");
	ck_assert_int_eq(count_of("here", captured()), 2);
}
END_TEST

START_TEST(log_once__flood_of_causes__is_limited_and_counted)
{
	capture_stderr();
	for (uint64_t i = 0; i < 10000; i++)
		glexi_warn_once(i, "cause %d", (int)i);
	ck_assert_int_ge(count_of("cause", captured()), 32);
	ck_assert_int_le(count_of("cause", captured()), 64);
	glexi_error("later");
	ck_assert_int_eq(count_of("messages left out", captured()), 1);
}
END_TEST

static void *flood(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < 20; i++)
		glexi_warn_once(i, "cause %d.", (int)i);
	return NULL;
}

START_TEST(log_once__many_threads__each_cause_once)
{
	pthread_t threads[8];

	capture_stderr();
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, flood, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 20; i++) {
		char needle[32];

		snprintf(needle, sizeof(needle), "cause %d.", i);
		ck_assert_int_eq(count_of(needle, captured()), 1);
	}
}
END_TEST

static Suite *cfg_suite(void)
{
	Suite *suite = suite_create("cfg");
	TCase *table = tcase_create("table"), *value = tcase_create("value"), *env = tcase_create("env");
	TCase *process = tcase_create("process"), *log = tcase_create("log");

	tcase_add_test(table, table__every_default__parses_and_is_in_range);
	tcase_add_test(table, table__every_row__is_described);
	tcase_add_test(table, table__names_and_members__are_used_once);
	tcase_add_test(table, table__range_texts__have_units);
	tcase_add_test(value, size__with_suffixes__parses);
	tcase_add_test(value, size__malformed__is_refused);
	tcase_add_test(value, size__outside_its_range__is_refused);
	tcase_add_test(value, time__in_any_unit__becomes_the_rows);
	tcase_add_test(value, time__finer_than_the_unit__rounds_up);
	tcase_add_test(value, time__malformed__is_refused);
	tcase_add_test(value, uint__signs_bases_and_rests__are_refused);
	tcase_add_test(value, bool__usual_words__parse);
	tcase_add_test(value, value__formatted__parses_back);
	tcase_add_test(env, env__set__wins_over_default);
	tcase_add_test(env, env__empty_value__counts_as_unset);
	tcase_add_test(env, env__bad_value__warns_with_range_and_uses_default);
	tcase_add_test(env, env__value_out_of_range__warns_with_range);
	tcase_add_test(env, env__unknown_choice__names_the_choices);
	tcase_add_test(env, env__typo__suggests_nearest_name);
	tcase_add_test(env, env__name_like_no_other__warns_without_suggestion);
	tcase_add_test(env, env__unknown_with_warn_unused_off__is_silent);
	tcase_add_test(env, env__names_of_others__are_left_alone);
	tcase_add_test(env, env__launcher_value__is_read_and_never_warned_about);
	tcase_add_test(env, env__very_long_name_and_value__are_cut);
	tcase_add_test(process, process__unknown_variable__warns_once);
	tcase_add_loop_test(process, process__rank_other_than_0__leaves_the_warning_to_rank_0, 0, 2);
	tcase_add_test(process, process__inherited__leaves_the_warning_to_its_parent);
	tcase_add_test(process, process__string__survives_a_change_of_the_environment);
	tcase_add_test(process, process__first_use_by_many_threads__all_see_it);
	tcase_add_test(process, cfg_uint__numeric_row__gives_value);
	tcase_add_test(process, cfg_uint__anything_else__gives_nothing);
	tcase_add_test(log, log__below_the_level__evaluates_nothing);
	tcase_add_test(log, log__before_anybody_read_the_configuration__keeps_to_the_level);
	tcase_add_test(log, log__line__has_prefix_rank_and_error_text);
	tcase_add_test(log, log__long_message__is_one_cut_line);
	tcase_add_test(log, log__file__takes_messages_under_its_expanded_name);
	tcase_add_test(log, log__file_that_cannot_be_opened__says_so_and_uses_stderr);
	tcase_add_test(log, log_once__same_cause__speaks_once);
	tcase_add_test(log, log_once__same_key_at_another_place__is_another_cause);
	tcase_add_test(log, log_once__flood_of_causes__is_limited_and_counted);
	tcase_add_test(log, log_once__many_threads__each_cause_once);
	suite_add_tcase(suite, table);
	suite_add_tcase(suite, value);
	suite_add_tcase(suite, env);
	suite_add_tcase(suite, process);
	suite_add_tcase(suite, log);
	return suite;
}

int main(void)
{
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++)
		unsetenv(row->name); /* what the user of the tests has set is not for them */
	return suite_run(cfg_suite());
}
