/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_info.c - what is there: the build, the configuration, the device.
 *
 * Ends with 0 if all that was asked for could be shown, 1 with a sentence on
 * stderr if not, 2 for a wrong command line.
 */
#include "config.h"

#include "glex_info.h"

#include <argp.h>
#include <stdlib.h>

const char *argp_program_version = "glex_info " PACKAGE_VERSION;

struct wishes {
	bool build;
	bool config;
	bool full;
	bool device;
	bool json;
	const char *pattern;
};

static const struct argp_option options[] = {
	{"build", 'b', NULL, 0, "Show version, compiler and configure options", 0},
	{"config", 'c', NULL, 0, "Show the variables: value, default, source, unit and help", 0},
	{"device", 'd', NULL, 0, "Show the device, its limits, and the ports in use with their counters (default)", 0},
	{"full", 'f', NULL, 0, "With --config: as lines to set, each under its description", 0},
	{"json", 'j', NULL, 0, "Print one JSON object", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct wishes *wishes = state->input;

	switch (key) {
	case 'b':
		wishes->build = true;
		return 0;
	case 'c':
		wishes->config = true;
		return 0;
	case 'd':
		wishes->device = true;
		return 0;
	case 'f':
		wishes->config = wishes->full = true;
		return 0;
	case 'j':
		wishes->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (wishes->pattern)
			argp_error(state, "one PATTERN, not also `%s'", arg);
		wishes->pattern = arg;
		return 0;
	case ARGP_KEY_END:
		if (wishes->pattern && !wishes->config)
			argp_error(state, "PATTERN `%s' goes with --config", wishes->pattern);
		if (!wishes->build && !wishes->config)
			wishes->device = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp parser = {
	.options = options,
	.parser = parse,
	.args_doc = "[PATTERN]",
	.doc = "Show what libglex was built with, how it is configured, and what its device can do.\v"
	       "PATTERN is part of the names of the variables to show, in any case.",
};

/* ---- what the sections share --------------------------------------------- */

const char *info_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : "";
}

void info_set(json_t *object, const char *member, json_t *value)
{
	if (!json_object_set_new(object, member, value))
		return;
	fprintf(stderr, "glex_info: no memory\n");
	exit(EXIT_FAILURE);
}

/* ---- the program --------------------------------------------------------- */

/* All sections asked for that can be made; *ok_p becomes false for those that cannot. */
static json_t *make(const struct wishes *wishes, bool *ok_p)
{
	json_t *all = json_object();
	json_t *section;

	if (wishes->build)
		info_set(all, "build", info_build());
	if (wishes->config) {
		section = info_config(wishes->pattern);
		if (section)
			info_set(all, "config", section);
		else
			fprintf(stderr, "glex_info: no variable has `%s' in its name; glex_info -c shows all\n",
				wishes->pattern);
		*ok_p = *ok_p && section;
	}
	if (wishes->device) {
		section = info_device();
		if (section)
			info_set(all, "device", section);
		*ok_p = *ok_p && section;
	}
	return all;
}

static void show(const json_t *all, const struct wishes *wishes)
{
	const json_t *build = json_object_get(all, "build");
	const json_t *config = json_object_get(all, "config");
	const json_t *device = json_object_get(all, "device");

	if (build)
		info_print_build(build, stdout);
	if (build && (config || device))
		putchar('\n');
	if (config && wishes->full)
		info_print_config_full(config, stdout);
	else if (config)
		info_print_config(config, stdout);
	if (config && device)
		putchar('\n');
	if (device)
		info_print_device(device, stdout);
}

int main(int argc, char **argv)
{
	struct wishes wishes = {.pattern = NULL};
	bool ok = true;
	json_t *all;

	argp_err_exit_status = 2;
	argp_parse(&parser, argc, argv, 0, NULL, &wishes);
	all = make(&wishes, &ok);
	if (wishes.json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		show(all, &wishes);
	}
	json_decref(all);
	if (fflush(stdout) || ferror(stdout)) {
		perror("glex_info: writing");
		ok = false;
	}
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
