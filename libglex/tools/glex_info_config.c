/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_info_config.c - glex_info -b and -c.
 *
 * The environment is parsed here for show, apart from what the library in this
 * process reads: complaints come with the table instead of on stderr twice.
 */
#include "config.h"

#include "glex_info.h"

#include "cfg/cfg.h"

#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- the build ----------------------------------------------------------- */

static json_t *features(void)
{
	json_t *list = json_array();

#ifdef HAVE_MEMFD_CREATE
	json_array_append_new(list, json_string("memfd"));
#endif
#ifdef HAVE_PROCESS_VM_READV
	json_array_append_new(list, json_string("attach"));
#endif
#ifdef HAVE_LINUX_MEMBARRIER_H
	json_array_append_new(list, json_string("membarrier"));
#endif
#ifdef HAVE_LINUX_FUTEX_H
	json_array_append_new(list, json_string("futex"));
#endif
	return list;
}

json_t *info_build(void)
{
	json_t *build = json_object();
	struct utsname host = {.release = ""};

	uname(&host);
	info_set(build, "version", json_string(PACKAGE_VERSION));
#ifdef __clang__
	info_set(build, "compiler", json_string(__VERSION__));
#else
	info_set(build, "compiler", json_string("gcc " __VERSION__));
#endif
	info_set(build, "preset", json_string(GLEX_PRESET));
	info_set(build, "configure", json_string(GLEX_CONFIGURE_ARGS));
	info_set(build, "features", features());
	info_set(build, "libc", json_string(gnu_get_libc_version()));
	info_set(build, "kernel", json_string(host.release));
	info_set(build, "machine", json_string(host.machine));
	return build;
}

void info_print_build(const json_t *section, FILE *out)
{
	const json_t *feature;
	size_t i;

	fprintf(out, "libglex    %s\n", info_text(section, "version"));
	fprintf(out, "compiler   %s\n", info_text(section, "compiler"));
	fprintf(out, "preset     %s\n", info_text(section, "preset"));
	fprintf(out, "configure  %s\n", info_text(section, "configure"));
	fprintf(out, "features  ");
	json_array_foreach(json_object_get(section, "features"), i, feature)
		fprintf(out, " %s", json_string_value(feature));
	fprintf(out, "\nrunning on glibc %s, Linux %s, %s\n", info_text(section, "libc"), info_text(section, "kernel"),
		info_text(section, "machine"));
}

/* ---- the configuration --------------------------------------------------- */

static void keep_warning(void *arg, const char *text)
{
	json_array_append_new(arg, json_string(text));
}

/* A text that is not UTF-8 cannot be a JSON string: a question mark stands for each odd byte. */
static json_t *text_value(char *text)
{
	json_t *value = json_string(text);

	if (value)
		return value;
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	}
	return json_string(text);
}

static json_t *variable(const struct glexi_cfg *cfg, const struct glexi_cfg_row *row, enum glexi_cfg_source source)
{
	json_t *object = json_object();
	char text[4096];

	info_set(object, "name", json_string(row->name));
	info_set(object, "value", text_value((char *)glexi_cfg_format(cfg, row, text, sizeof(text))));
	info_set(object, "default", json_string(row->def));
	info_set(object, "source", json_string(glexi_cfg_source_name(source)));
	info_set(object, "type", json_string(glexi_cfg_type_name(row)));
	info_set(object, "unit", json_string(row->unit));
	info_set(object, "range", json_string(glexi_cfg_range(row, text, sizeof(text))));
	info_set(object, "help", json_string(row->help));
	info_set(object, "launcher", json_boolean(row->kind == GLEXI_CFG_LAUNCHER));
	return object;
}

json_t *info_config(const char *pattern)
{
	enum glexi_cfg_source *source = calloc(glexi_cfg_rows(), sizeof(*source));
	json_t *section = json_object(), *variables = json_array(), *warnings = json_array();
	static struct glexi_cfg cfg; /* its texts live as long as the process */

	if (!source)
		return NULL;
	glexi_cfg_parse(&cfg, source, environ, keep_warning, warnings);
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		if (!pattern || strcasestr(row->name, pattern))
			json_array_append_new(variables, variable(&cfg, row, source[row - glexi_cfg_table]));
	}
	free(source);
	info_set(section, "variables", variables);
	info_set(section, "warnings", warnings);
	if (pattern && json_array_size(variables) == 0) {
		json_decref(section);
		return NULL;
	}
	return section;
}

/* ---- and how it is shown ------------------------------------------------- */

static void print_warnings(const json_t *section, FILE *out)
{
	const json_t *warning;
	size_t i;

	json_array_foreach(json_object_get(section, "warnings"), i, warning)
		fprintf(out, "# warning: %s\n", json_string_value(warning));
}

static const char *or_dash(const char *text)
{
	return *text ? text : "-";
}

/* Columns as wide as their widest entry; the help comes last and needs none. */
static const char *const columns[] = {"name", "value", "default", "source", "unit"};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void measure(const json_t *variables, int width[COLUMNS])
{
	const json_t *object;
	size_t i;

	for (size_t c = 0; c < COLUMNS; c++)
		width[c] = (int)strlen(columns[c]);
	json_array_foreach(variables, i, object)
	{
		for (size_t c = 0; c < COLUMNS; c++) {
			int len = (int)strlen(info_text(object, columns[c]));

			if (len > width[c])
				width[c] = len;
		}
	}
}

void info_print_config(const json_t *section, FILE *out)
{
	const json_t *variables = json_object_get(section, "variables"), *object;
	int width[COLUMNS];
	size_t i;

	print_warnings(section, out);
	measure(variables, width);
	for (size_t c = 0; c < COLUMNS; c++)
		fprintf(out, "%-*s  ", width[c], columns[c]);
	fprintf(out, "help\n");
	json_array_foreach(variables, i, object)
	{
		for (size_t c = 0; c < COLUMNS; c++)
			fprintf(out, "%-*s  ", width[c], or_dash(info_text(object, columns[c])));
		fprintf(out, "%s\n", info_text(object, "help"));
	}
}

/* In single quotes, each quote inside as '\''. */
static void print_quoted(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	}
	fputc('\'', out);
}

/* What is not set is commented out, so that a shell can read the output and nothing changes. */
void info_print_config_full(const json_t *section, FILE *out)
{
	const json_t *object;
	size_t i;

	print_warnings(section, out);
	json_array_foreach(json_object_get(section, "variables"), i, object)
	{
		const char *range = info_text(object, "range"), *value = info_text(object, "value");
		const char *source = info_text(object, "source");
		bool launcher = json_is_true(json_object_get(object, "launcher"));
		bool plain = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%-") ==
			     strlen(value);

		fprintf(out, "%s# %s\n", i ? "\n" : "", info_text(object, "help"));
		fprintf(out, "# %s%s%s; default %s; value from %s%s\n", info_text(object, "type"), *range ? ", " : "",
			range, or_dash(info_text(object, "default")), source,
			launcher ? "; set by the launcher, not by you" : "");
		fprintf(out, "%s%s=", launcher || strcmp(source, "env") ? "# " : "", info_text(object, "name"));
		if (plain)
			fputs(value, out);
		else
			print_quoted(value, out);
		fputc('\n', out);
	}
}
