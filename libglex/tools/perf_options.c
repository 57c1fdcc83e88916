/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_options.c - the table of tests, and the command line.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "perf.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

#define DEADLINE_S     20
#define SIZE_MAX_BYTES (128ULL << 20) /* of one message; both halves of a region must lie below 4 GiB */

static const struct perf_test *const tests[] = {
	&perf_imm_put_lat, &perf_put_lat,      &perf_put_poll_lat, &perf_get_lat,  &perf_mp_lat,
	&perf_mp_rate,	   &perf_imm_put_rate, &perf_put_bw,	   &perf_get_bw,   &perf_put_bibw,
	&perf_wake_lat,	   &perf_overlap,      &perf_open,	   &perf_ep_mem,   &perf_rcache_hit,
	&perf_barrier,	   &perf_bcast,	       &perf_allreduce,	   &perf_reg_miss,
};

#define TESTS (sizeof(tests) / sizeof(tests[0]))

const char *argp_program_version = "glex_perf " PACKAGE_VERSION;

enum { OPT_CHECK = 256, OPT_JSON, OPT_SHAPE, OPT_BREAK, OPT_OPEN_ONCE };

static const struct argp_option options[] = {
	{"test", 't', "TEST[,TEST...]", 0, "What to measure (see below); all: everything", 0},
	{"sizes", 's', "LIST", 0, "Bytes a message: 8,64,4K:1M (a range doubles)", 0},
	{"iterations", 'n', "N", 0, "Messages (round trips) measured per size", 0},
	{"warm-up", 'w', "N", 0, "Messages before those", 0},
	{"window", 'W', "N", 0, "Messages in a window (bandwidth and rate), up to 256", 0},
	{"endpoint", 'T', "fast|normal", 0, "Type of the endpoints (fast)", 0},
	{"processes", 'p', "N", 0, "Processes, up to 32: more than two for collectives", 0},
	{"shape", OPT_SHAPE, "auto|kary|knomial|direct", 0, "How a collective's members are connected", 0},
	{"degree", 'k', "N", 0, "Of a collective's tree, up to 32 (8); needs --shape kary or knomial", 0},
	{"memory", 'm', "alloc|malloc|huge", 0,
	 "alloc: shareable, mapped by the other side (default); malloc: private, attached to; huge: the same on huge "
	 "pages",
	 0},
	{"bind", 'b', "CORE,CORE|none", 0, "Where the two sides run (the first two cores)", 0},
	{"deadline", 'd', "SECONDS", 0, "Give up when nothing happens for so long (20)", 0},
	{"check", OPT_CHECK, 0, 0, "Verify every byte; the times then include it", 0},
	{"json", OPT_JSON, 0, 0, "One JSON object a row, and nothing else, on stdout", 0},
	{"break", OPT_BREAK, "N", OPTION_HIDDEN, "Corrupt message N, to try --check", 0},
	{"open-once", OPT_OPEN_ONCE, "BYTES", OPTION_HIDDEN, "What the test open starts", 0},
	{0},
};

static void parse_number(struct argp_state *state, const char *what, const char *arg, uint32_t max, uint32_t *value_p)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || n == 0 || n > max)
		argp_error(state, "%s: %s is not a number from 1 to %u", what, arg, max);
	else
		*value_p = (uint32_t)n;
}

static void parse_sizes(struct argp_state *state, const char *arg, struct perf_options *opt)
{
	if (perf_parse_sizes(arg, &opt->sizes))
		argp_error(state, "sizes: %s is not a list such as 8,64,4K:1M (up to %d sizes)", arg, PERF_MAX_SIZES);
	for (uint32_t i = 0; i < opt->sizes.count; i++)
		if (opt->sizes.size[i] > SIZE_MAX_BYTES)
			argp_error(state, "sizes: %llu is more than %llu bytes", (unsigned long long)opt->sizes.size[i],
				   SIZE_MAX_BYTES);
}

static void parse_bind(struct argp_state *state, const char *arg, struct perf_options *opt)
{
	int end = 0;

	opt->core[0] = opt->core[1] = PERF_NO_CORE;
	if (strcmp(arg, "none") == 0)
		return;
	if (sscanf(arg, "%d,%d%n", &opt->core[0], &opt->core[1], &end) != 2 || arg[end] || opt->core[0] < 0 ||
	    opt->core[1] < 0)
		argp_error(state, "bind: %s is neither two cores such as 0,1 nor none", arg);
}

/* Index in the '|'-separated words, or a usage error. */
static int parse_choice(struct argp_state *state, const char *what, const char *arg, const char *words)
{
	size_t len = strlen(arg);
	int index = 0;

	for (const char *at = words; len; at += strcspn(at, "|") + 1, index++) {
		if (strcspn(at, "|") == len && strncmp(at, arg, len) == 0)
			return index;
		if (!strchr(at, '|'))
			break;
	}
	argp_error(state, "%s: %s is none of %s", what, arg, words);
	return 0;
}

static const struct perf_test *find_test(const char *name, size_t len)
{
	for (size_t i = 0; i < TESTS; i++)
		if (strlen(tests[i]->name) == len && strncmp(tests[i]->name, name, len) == 0)
			return tests[i];
	return NULL;
}

static void parse_tests(struct argp_state *state, const char *arg, struct perf_options *opt)
{
	opt->tests = arg;
	if (strcmp(arg, "all") == 0)
		return;
	for (const char *at = arg;; at++) {
		size_t len = strcspn(at, ",");

		if (!find_test(at, len))
			argp_error(state, "test: there is no %.*s", (int)len, at);
		at += len;
		if (*at == '\0')
			return;
	}
}

static void check_degree(struct argp_state *state, const struct perf_options *opt)
{
	bool nomial = opt->shape == PERF_SHAPE_KNOMIAL;

	if (!opt->degree)
		return;
	if (!nomial && opt->shape != PERF_SHAPE_KARY)
		argp_error(state, "degree: only --shape kary and knomial have one");
	if (nomial && opt->degree < 2)
		argp_error(state, "degree: that of a k-nomial tree is from 2");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct perf_options *opt = state->input;

	switch (key) {
	case 't':
		parse_tests(state, arg, opt);
		return 0;
	case 's':
		parse_sizes(state, arg, opt);
		return 0;
	case 'n':
		parse_number(state, "iterations", arg, 1000000000, &opt->iterations);
		return 0;
	case 'w':
		parse_number(state, "warm-up", arg, 1000000000, &opt->warmup);
		return 0;
	case 'W':
		parse_number(state, "window", arg, PERF_WINDOW_MAX, &opt->window);
		return 0;
	case 'd':
		parse_number(state, "deadline", arg, 100000, &opt->deadline_s);
		return 0;
	case 'T':
		opt->ep_type =
			parse_choice(state, "endpoint", arg, "fast|normal") ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST;
		return 0;
	case 'm':
		opt->memory = (enum perf_memory)parse_choice(state, "memory", arg, "alloc|malloc|huge");
		return 0;
	case 'b':
		parse_bind(state, arg, opt);
		return 0;
	case 'p':
		parse_number(state, "processes", arg, PERF_MEMBERS, &opt->processes);
		if (opt->processes < 2)
			argp_error(state, "processes: it takes two");
		return 0;
	case OPT_SHAPE:
		opt->shape = (enum perf_shape)parse_choice(state, "shape", arg, "auto|kary|knomial|direct");
		return 0;
	case 'k':
		parse_number(state, "degree", arg, GLEX_COLL_MAX_BRANCH_DEGREE, &opt->degree);
		return 0;
	case OPT_CHECK:
		opt->check = true;
		return 0;
	case OPT_JSON:
		opt->json = true;
		return 0;
	case OPT_BREAK:
		opt->broken = strtoull(arg, NULL, 10);
		return 0;
	case OPT_OPEN_ONCE:
		opt->open_once = strtoull(arg, NULL, 10);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is %s for?", arg);
		return 0;
	case ARGP_KEY_END:
		check_degree(state, opt);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The list of tests below the options, out of the table itself. */
static char *help_filter(int key, const char *text, void *input)
{
	size_t len = 0;
	char *out;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)(uintptr_t)text;
	f = open_memstream(&out, &len);
	if (!f)
		return NULL;
	fputs("Tests:\n", f);
	for (size_t i = 0; i < TESTS; i++)
		fprintf(f, "  %-14s %s\n", tests[i]->name, tests[i]->help);
	fputs("\nBandwidth is in MB (10^6 bytes) a second.  Exit status: 0, 1 if something failed, 2 for a wrong "
	      "option.",
	      f);
	fclose(f);
	return out;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.doc = "Measures latency, rate and bandwidth of the GLEX endpoint interface between two processes of this "
	       "machine, which it starts itself.\v",
	.help_filter = help_filter,
};

bool perf_next_test(const struct perf_options *opt, const char **at_p, const struct perf_test **test_p)
{
	size_t len;

	if (strcmp(opt->tests, "all") == 0) {
		uintptr_t i = *test_p ? 1 : 0;

		for (size_t k = 0; i && k < TESTS; k++)
			if (tests[k] == *test_p)
				i = k + 1;
		*test_p = i < TESTS ? tests[i] : NULL;
		return *test_p != NULL;
	}
	if (**at_p == '\0')
		return false;
	len = strcspn(*at_p, ",");
	*test_p = find_test(*at_p, len);
	*at_p += len + ((*at_p)[len] == ',');
	return true;
}

void perf_parse_options(int argc, char **argv, struct perf_options *opt_p)
{
	struct perf_options opt = {
		.tests = "imm_put_lat,put_lat,get_lat,mp_lat,mp_rate,put_bw",
		.deadline_s = DEADLINE_S,
		.processes = 2,
		.broken = PERF_NONE,
		.core = {PERF_NO_CORE, PERF_NO_CORE},
	};
	int core[2];

	if (perf_cores(core, 2) == 2)
		memcpy(opt.core, core, sizeof(core));
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &opt);
	if (!opt.open_once)
		opt.busy = perf_busy();
	*opt_p = opt;
}
