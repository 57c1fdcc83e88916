/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collsim_options.c - the command line of glex_collsim.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "collsim.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

#define MAX_NS	       1e9
#define MAX_ITERATIONS 1000000

const char *argp_program_version = "glex_collsim " PACKAGE_VERSION;

const char *const collsim_test_name[] = {"barrier", "allreduce", "bcast", NULL};
const char *const collsim_way_name[] = {"nic", "host", NULL};
const char *const collsim_shape_name[] = {"kary", "knomial", NULL};

enum { OPT_SKEW = 256, OPT_NOISE, OPT_OVERLAP, OPT_SEED, OPT_TSV, OPT_TIMES, OPT_BREAK };

static const struct argp_option options[] = {
	{"test", 't', "LIST", 0, "Of barrier, allreduce, bcast (allreduce)", 0},
	{"way", 'w', "LIST", 0, "nic: by the NICs; host: the same tree, by the hosts (both)", 0},
	{"nodes", 'n', "LIST", 0, "Nodes: 100,2:64K (a range doubles; 2:4096)", 0},
	{"shape", 's', "LIST", 0, "Of the tree: kary, knomial (kary)", 0},
	{"degree", 'k', "LIST", 0, "Of the tree, up to 32 (8)", 0},
	{"machine", 'm', "NAME", 0, "Whose times and topology: th2, aries (th2)", 0},
	{"topology", 'T', "NAME[:SIZE]", 0,
	 "flat:ROUTERS between any two nodes, fattree:PORTS of a router, dragonfly (the machine's)", 0},
	{"set", 'P', "TIME=NS[,...]", 0, "Another value for one of the machine's times", 0},
	{"processes", 'p', "N", 0, "Processes of each node (the machine's)", 0},
	{"units", 'u', "N", 0, "Doubles that are summed, up to 6 (1)", 0},
	{"bytes", 'b', "N", 0, "That are broadcast, up to 1024M; more than 112 are passed down in parts (8)", 0},
	{"root", 'r', "NODE", 0, "Who broadcasts (0, the tree's root)", 0},
	{"iterations", 'i', "N", 0, "Collectives of each row, one after the other (1)", 0},
	{"skew", OPT_SKEW, "NS", 0, "Nodes begin so much apart at most (0)", 0},
	{"noise", OPT_NOISE, "SHARE,NS", 0, "That share of a CPU's doings is late, by NS on average (none)", 0},
	{"overlap", OPT_OVERLAP, 0, 0,
	 "How much is hidden if each node computes, for as long, before it looks what has come", 0},
	{"seed", OPT_SEED, "N", 0, "Of skew, noise, data, and the order of what is simultaneous (1)", 0},
	{"tsv", OPT_TSV, 0, 0, "Values separated by tabs, under their names, and nothing else", 0},
	{"times", OPT_TIMES, 0, 0, "List the times of the machine, and where they are from", 0},
	{"break", OPT_BREAK, 0, OPTION_HIDDEN, "Somebody gives what nobody expects, to try the verification", 0},
	{0},
};

static void parse_number(struct argp_state *state, const char *what, const char *arg, uint32_t min, uint32_t max,
			 uint32_t *value_p)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || n < min || n > max)
		argp_error(state, "%s: %s is not a number from %u to %u", what, arg, min, max);
	else
		*value_p = (uint32_t)n;
}

static bool read_ns(const char *arg, char end_at, double max, double *value_p, const char **end_p)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	if (errno || end == arg || (*end && *end != end_at) || !isfinite(v) || v < 0 || v > max)
		return false;
	*value_p = v;
	*end_p = end;
	return true;
}

/* Sets those of chosen[] whose names are in the list. */
static void parse_names(struct argp_state *state, const char *what, const char *arg, const char *const *names,
			bool *chosen)
{
	const char *at = arg;
	size_t i, len;

	for (i = 0; names[i]; i++)
		chosen[i] = false;
	for (;; at += len + 1) {
		len = strcspn(at, ",");
		for (i = 0; names[i] && (strlen(names[i]) != len || strncmp(names[i], at, len) != 0); i++)
			;
		if (!names[i])
			argp_error(state, "%s: %.*s is none of %s, %s%s%s", what, (int)len, at, names[0], names[1],
				   names[2] ? ", " : "", names[2] ? names[2] : "");
		else
			chosen[i] = true;
		if (!at[len])
			return;
	}
}

/* A number, with K or M behind it for 1024 or 1024 * 1024. */
static bool read_count(const char *text, char **end_p, uint64_t *value_p)
{
	uint64_t v;

	errno = 0;
	v = strtoull(text, end_p, 10);
	if (errno || *end_p == text || *text == '-')
		return false;
	if (**end_p == 'K' || **end_p == 'M') {
		uint32_t shift = **end_p == 'K' ? 10 : 20;

		if (v > UINT32_MAX)
			return false;
		v <<= shift;
		++*end_p;
	}
	*value_p = v;
	return true;
}

static bool read_list(const char *text, uint32_t max, struct collsim_list *list)
{
	uint64_t first, last;
	char *end;

	for (list->count = 0;; text = end + 1) {
		if (!read_count(text, &end, &first))
			return false;
		last = first;
		if (*end == ':' && !read_count(end + 1, &end, &last))
			return false;
		if (first < 1 || last < first || last > max || (*end && *end != ','))
			return false;
		for (; first <= last; first *= 2) {
			if (list->count == COLLSIM_LIST)
				return false;
			list->value[list->count++] = (uint32_t)first;
		}
		if (!*end)
			return true;
	}
}

static void parse_bytes(struct argp_state *state, const char *arg, uint32_t *bytes_p)
{
	uint64_t bytes;
	char *end;

	if (!read_count(arg, &end, &bytes) || *end || bytes > GLEX_GROUP_LONG_MAX)
		argp_error(state,
			   "bytes: %s is not a number from 0 to %u, with K or M behind it for 1024 of them, or "
			   "1024 * 1024",
			   arg, (unsigned)GLEX_GROUP_LONG_MAX);
	else
		*bytes_p = (uint32_t)bytes;
}

static void parse_list(struct argp_state *state, const char *what, const char *arg, uint32_t max,
		       struct collsim_list *list)
{
	if (!read_list(arg, max, list))
		argp_error(state, "%s: %s is not a list such as 3,8:32 of up to %u numbers from 1 to %u", what, arg,
			   COLLSIM_LIST, max);
}

static void parse_topology(struct argp_state *state, const char *arg, struct sim_topo *topo)
{
	const char *size = strchr(arg, ':');
	size_t len = size ? (size_t)(size - arg) : strlen(arg);

	if (len == 4 && strncmp(arg, "flat", len) == 0) {
		*topo = (struct sim_topo){SIM_FLAT, 1};
		if (size)
			parse_number(state, "topology flat", size + 1, 1, 1000, &topo->size);
	} else if (len == 7 && strncmp(arg, "fattree", len) == 0) {
		*topo = (struct sim_topo){SIM_FAT_TREE, 24};
		if (size)
			parse_number(state, "topology fattree", size + 1, 4, 4096, &topo->size);
	} else if (strcmp(arg, "dragonfly") == 0) {
		*topo = (struct sim_topo){SIM_DRAGONFLY, 0};
	} else {
		argp_error(state, "topology: %s is none of flat:ROUTERS, fattree:PORTS, dragonfly", arg);
	}
}

static void parse_times(struct argp_state *state, const char *arg, struct sim_times *times)
{
	char name[16];
	const char *at = arg;
	double *value;

	for (;; at++) {
		size_t len = strcspn(at, "=");

		if (len >= sizeof(name) || at[len] != '=') {
			argp_error(state, "set: %s is not TIME=NS", at);
			return;
		}
		memcpy(name, at, len);
		name[len] = '\0';
		value = sim_time_find(times, name);
		if (!value) {
			argp_error(state, "set: there is no time %s; --times lists them", name);
			return;
		}
		if (!read_ns(at + len + 1, ',', MAX_NS, value, &at)) {
			argp_error(state, "set: %s: not nanoseconds from 0 to %.0f", name, MAX_NS);
			return;
		}
		if (!*at)
			return;
	}
}

static void parse_noise(struct argp_state *state, const char *arg, struct sim_params *params)
{
	const char *end = "";

	if (!read_ns(arg, ',', 1, &params->noise_share, &end) || *end != ',' ||
	    !read_ns(end + 1, '\0', MAX_NS, &params->noise_ns, &end))
		argp_error(state, "noise: %s is not a share from 0 to 1 and nanoseconds, such as 0.01,5000", arg);
}

/* What the machine brings is known once all options have been read. */
struct later {
	struct collsim_options *opt;
	const char *set[16], *topology, *processes;
	uint32_t sets;
};

static void parse_machine(struct argp_state *state, const char *arg, struct sim_machine *machine)
{
	if (!sim_machine_find(arg, machine))
		argp_error(state, "machine: there is no %s, but th2 and aries", arg);
}

static void finish(struct argp_state *state, struct later *later)
{
	struct collsim_options *opt = later->opt;
	uint32_t i;

	for (i = 0; i < later->sets; i++)
		parse_times(state, later->set[i], &opt->machine.times);
	if (later->topology)
		parse_topology(state, later->topology, &opt->machine.topo);
	if (later->processes)
		parse_number(state, "processes", later->processes, 1, 1024, &opt->machine.processes);
	opt->base.params.times = opt->machine.times;
	opt->base.params.topo = opt->machine.topo;
	opt->base.processes = opt->machine.processes;
	for (i = 0; opt->test[COLLSIM_BCAST] && i < opt->nodes.count; i++)
		if (opt->base.root >= opt->nodes.value[i])
			argp_error(state, "root: there is no node %u among %u", opt->base.root, opt->nodes.value[i]);
}

/* long: an option a line */
static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct later *later = state->input;
	struct collsim_options *opt = later->opt;
	struct collsim_case *base = &opt->base;
	const char *end;
	uint32_t seed = 0;

	switch (key) {
	case 't':
		parse_names(state, "test", arg, collsim_test_name, opt->test);
		return 0;
	case 'w':
		parse_names(state, "way", arg, collsim_way_name, opt->way);
		return 0;
	case 's':
		parse_names(state, "shape", arg, collsim_shape_name, opt->shape);
		return 0;
	case 'n':
		parse_list(state, "nodes", arg, SIM_MAX_NODES, &opt->nodes);
		return 0;
	case 'k':
		parse_list(state, "degree", arg, GLEX_COLL_MAX_BRANCH_DEGREE, &opt->degrees);
		return 0;
	case 'm':
		parse_machine(state, arg, &opt->machine);
		return 0;
	case 'T':
		later->topology = arg;
		return 0;
	case 'P':
		if (later->sets == sizeof(later->set) / sizeof(later->set[0]))
			argp_error(state, "set: too many of them; one may hold several times");
		else
			later->set[later->sets++] = arg;
		return 0;
	case 'p':
		later->processes = arg;
		return 0;
	case 'u':
		parse_number(state, "units", arg, 1, GLEX_COLL_REDUCE_MAX_DATA_UNITS, &base->units);
		return 0;
	case 'b':
		parse_bytes(state, arg, &base->bytes);
		return 0;
	case 'r':
		parse_number(state, "root", arg, 0, SIM_MAX_NODES - 1, &base->root);
		return 0;
	case 'i':
		parse_number(state, "iterations", arg, 1, MAX_ITERATIONS, &base->iterations);
		return 0;
	case OPT_SKEW:
		if (!read_ns(arg, '\0', MAX_NS, &base->skew_ns, &end))
			argp_error(state, "skew: %s is not nanoseconds from 0 to %.0f", arg, MAX_NS);
		return 0;
	case OPT_NOISE:
		parse_noise(state, arg, &base->params);
		return 0;
	case OPT_OVERLAP:
		opt->overlap = true;
		return 0;
	case OPT_SEED:
		parse_number(state, "seed", arg, 0, UINT32_MAX, &seed);
		base->params.seed = seed;
		return 0;
	case OPT_TSV:
		opt->tsv = true;
		return 0;
	case OPT_BREAK:
		base->broken = true;
		return 0;
	case OPT_TIMES:
		opt->list_times = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is %s for?", arg);
		return 0;
	case ARGP_KEY_END:
		finish(state, later);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.doc = "Simulates collectives of many nodes: the emulated NIC and the groups of libglex decide what happens, "
	       "the times of a machine when.  No process is started, no device opened.\v"
	       "Each result of each collective is verified.  Exit status: 0, 1 if something failed, 2 for a wrong "
	       "option.",
};

void collsim_parse(struct collsim_options *opt, int argc, char **argv)
{
	struct later later = {.opt = opt};

	*opt = (struct collsim_options){
		.test = {[COLLSIM_ALLREDUCE] = true},
		.way = {true, true},
		.shape = {[GLEX_GROUP_KARY] = true},
		.degrees = {.value = {8}, .count = 1},
		.base = {.units = 1, .bytes = 8, .iterations = 1, .params = {.seed = 1}},
	};
	sim_machine_find("th2", &opt->machine);
	read_list("2:4096", SIM_MAX_NODES, &opt->nodes);
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &later);
}
