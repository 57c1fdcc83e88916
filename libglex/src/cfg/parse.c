/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parse.c - from the environment to struct glexi_cfg.
 *
 *	environ --> each GLEX_* without a row: warning, nearest name
 *	   |
 *	   +-----> each row: value of env, else default --> member
 *	                     | bad: warning, range, default
 *	                     v
 *	           log set up with it --> warnings printed
 *
 * I1  A row's default parses (test_cfg.c), so every member is always set.
 * I2  The values are written inside pthread_once and never again: readers need
 *     no lock.  Strings are copies, since the program may change its environment.
 * I3  The warnings are printed last, because GLEX_LOG_FILE and GLEX_LOG_LEVEL
 *     hold for them too; the log does not come back here, since it is set up.
 *
 * A failure (no memory for a copy) leaves the text empty.
 */
#include "cfg/cfg.h"

#include "cfg/log.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PREFIX "GLEX_"

/* Enough for all rows; the table's length is not a constant here.  test_cfg.c checks it. */
#define MAX_ROWS 128

static struct glexi_cfg the_cfg;
static enum glexi_cfg_source the_source[MAX_ROWS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool inherited;

/* ---- values -------------------------------------------------------------- */

struct suffix {
	const char *text;
	uint64_t scale; /* of a size: bytes; of a time: nanoseconds */
};

static const struct suffix size_suffixes[] = {
	{"", 1},
	{"b", 1},
	{"k", UINT64_C(1) << 10},
	{"m", UINT64_C(1) << 20},
	{"g", UINT64_C(1) << 30},
	{"t", UINT64_C(1) << 40},
	{NULL, 0},
};

static const struct suffix time_suffixes[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000 * 1000}, {"s", 1000 * 1000 * 1000}, {NULL, 0},
};

/* The value of a digit, or a number not below the base. */
static unsigned digit_value(char c)
{
	const char *letters = "abcdef";
	const char *at = c ? strchr(letters, tolower((unsigned char)c)) : NULL;

	return isdigit((unsigned char)c) ? (unsigned)(c - '0') : at ? (unsigned)(at - letters) + 10 : 16;
}

/* Digits only, decimal or after 0x hexadecimal: no sign, no blank.  *rest_p: what follows them. */
static bool parse_digits(const char *text, uint64_t *value_p, const char **rest_p)
{
	unsigned base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
	uint64_t value = 0;

	if (base == 16)
		text += 2;
	if (digit_value(*text) >= base)
		return false;
	for (; digit_value(*text) < base; text++) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit_value(*text), &value))
			return false;
	}
	*value_p = value;
	*rest_p = text;
	return true;
}

static uint64_t suffix_scale(const struct suffix *list, const char *text)
{
	for (; list->text; list++) {
		if (!strcasecmp(list->text, text))
			return list->scale;
	}
	return 0;
}

static bool parse_size(const char *text, uint64_t *value_p)
{
	const char *rest;
	uint64_t value, scale;
	char unit[2] = "";

	if (!parse_digits(text, &value, &rest))
		return false;
	/* 64K, 64KB and 64KiB are the same */
	if (*rest && (!strcmp(rest + 1, "") || !strcasecmp(rest + 1, "b") || !strcasecmp(rest + 1, "ib")))
		unit[0] = *rest;
	else if (*rest)
		return false;
	scale = suffix_scale(size_suffixes, unit);
	return scale && !__builtin_mul_overflow(value, scale, value_p);
}

/* Into the row's unit, rounded up: what is not 0 does not become 0. */
static bool parse_time(const char *text, const char *row_unit, uint64_t *value_p)
{
	uint64_t unit = suffix_scale(time_suffixes, row_unit);
	uint64_t value, scale;
	const char *rest;

	if (!parse_digits(text, &value, &rest))
		return false;
	scale = *rest ? suffix_scale(time_suffixes, rest) : unit;
	if (!scale || __builtin_mul_overflow(value, scale, &value))
		return false;
	*value_p = value / unit + (value % unit != 0);
	return true;
}

static bool parse_bool(const char *text, bool *value_p)
{
	static const char *const yes[] = {"y", "1", "yes", "on", "true"};
	static const char *const no[] = {"n", "0", "no", "off", "false"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
			*value_p = !strcasecmp(text, yes[i]);
			return true;
		}
	}
	return false;
}

static bool parse_enum(const struct glexi_cfg_row *row, const char *text, int *value_p)
{
	for (int i = 0; row->choices[i]; i++) {
		if (!strcasecmp(text, row->choices[i])) {
			*value_p = i;
			return true;
		}
	}
	return false;
}

static bool parse_number(const struct glexi_cfg_row *row, const char *text, uint64_t *value_p, const char **why_p)
{
	uint64_t value;
	const char *rest;
	bool ok;

	if (row->type == GLEXI_CFG_SIZE) {
		ok = parse_size(text, &value);
		*why_p = "not a size such as 4096, 64K or 1M";
	} else if (row->type == GLEXI_CFG_TIME) {
		ok = parse_time(text, row->unit, &value);
		*why_p = "not a time such as 10us, 5ms or 1s";
	} else {
		ok = parse_digits(text, &value, &rest) && !*rest;
		*why_p = "not a whole number";
	}
	if (ok && (value < row->min || value > row->max)) {
		ok = false;
		*why_p = "out of range";
	}
	if (ok)
		*value_p = value;
	return ok;
}

bool glexi_cfg_parse_value(const struct glexi_cfg_row *row, const char *text, void *member, const char **why_p)
{
	char *copy;

	switch (row->type) {
	case GLEXI_CFG_STRING:
		copy = *text ? strdup(text) : NULL;
		*(const char **)member = copy ? copy : "";
		return true;
	case GLEXI_CFG_BOOL:
		*why_p = "not a yes or no";
		return parse_bool(text, member);
	case GLEXI_CFG_ENUM:
		*why_p = "not a choice";
		return parse_enum(row, text, member);
	default:
		if (!*text && !*row->def) {
			*(uint64_t *)member = GLEXI_CFG_UNSET;
			return true;
		}
		return parse_number(row, text, member, why_p);
	}
}

/* ---- names --------------------------------------------------------------- */

#define MAX_NAME 64

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/*
 * Insertions, deletions, replacements and swaps of neighbours that lead from a
 * to b.  A row of the usual matrix needs the two rows above it.
 */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][MAX_NAME + 1];
	size_t *above2 = rows[0], *above = rows[1], *row = rows[2], *swap;

	for (size_t j = 0; j <= b_len; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    above2[j - 2] + 1 < row[j])
				row[j] = above2[j - 2] + 1;
		}
		swap = above2;
		above2 = above;
		above = row;
		row = swap;
	}
	return above[b_len];
}

/*
 * The row whose name is most like this one, NULL if none is much like it: a
 * third of it may differ, or its end may be missing.
 */
static const struct glexi_cfg_row *nearest_row(const char *name, size_t len)
{
	const struct glexi_cfg_row *best = NULL;
	size_t best_distance = (len - strlen(PREFIX)) / 3 + 2;

	if (len > MAX_NAME)
		return NULL;
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		size_t distance, row_len = strlen(row->name);

		if (row->kind != GLEXI_CFG_OWN || row_len > MAX_NAME)
			continue;
		distance = edit_distance(name, len, row->name, row_len);
		if (row_len > len && row->name[len] == '_' && !memcmp(name, row->name, len))
			distance = 1;
		if (distance < best_distance) {
			best_distance = distance;
			best = row;
		}
	}
	return best;
}

static const struct glexi_cfg_row *find_row(const char *name, size_t len)
{
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		if (strlen(row->name) == len && !memcmp(row->name, name, len))
			return row;
	}
	return NULL;
}

/* ---- the environment ----------------------------------------------------- */

struct warner {
	glexi_cfg_warn_fn warn;
	void *arg;
};

__attribute__((format(printf, 2, 3))) static void tell(const struct warner *to, const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	to->warn(to->arg, text);
}

static const char *env_value(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++) {
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

static void warn_bad_value(const struct glexi_cfg_row *row, const char *value, const char *why, const struct warner *to)
{
	char range[GLEXI_CFG_TEXT];

	tell(to, "%s: `%.200s' is %s (%s%s%s); the default%s%s is used", row->name, value, why,
	     glexi_cfg_range(row, range, sizeof(range)), row->type == GLEXI_CFG_UINT && *row->unit ? " " : "",
	     row->type == GLEXI_CFG_UINT ? row->unit : "", *row->def ? " " : "", row->def);
}

static void warn_unknown(const char *entry, const struct warner *to)
{
	const char *end = strchr(entry, '=');
	const struct glexi_cfg_row *row;
	size_t len;

	if (!end || strncmp(entry, PREFIX, strlen(PREFIX)))
		return;
	len = (size_t)(end - entry);
	if (find_row(entry, len))
		return;
	row = nearest_row(entry, len);
	if (row)
		tell(to, "%.*s: no such variable, did you mean %s?", len > 200 ? 200 : (int)len, entry, row->name);
	else
		tell(to, "%.*s: no such variable; see glex_env(7), or set GLEX_WARN_UNUSED to n",
		     len > 200 ? 200 : (int)len, entry);
}

void glexi_cfg_parse(struct glexi_cfg *cfg, enum glexi_cfg_source *source, char *const *env, glexi_cfg_warn_fn warn,
		     void *arg)
{
	const struct warner to = {warn, arg};

	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		void *member = (char *)cfg + row->offset;
		const char *value = env_value(env, row->name);
		const char *why = "";
		bool used = value && *value && glexi_cfg_parse_value(row, value, member, &why);

		if (!used) {
			glexi_cfg_parse_value(row, row->def, member, &(const char *){NULL}); /* I1 */
			if (value && *value && row->kind == GLEXI_CFG_OWN)
				warn_bad_value(row, value, why, &to);
		}
		if (source)
			source[row - glexi_cfg_table] = used ? GLEXI_CFG_FROM_ENV : GLEXI_CFG_FROM_DEFAULT;
	}
	if (!cfg->warn_unused)
		return;
	for (; *env; env++)
		warn_unknown(*env, &to);
}

/* ---- the process's own --------------------------------------------------- */

/* Warnings wait here until the log is set up. */
struct backlog {
	char *lines[32];
	size_t count;
};

static void backlog_add(void *arg, const char *text)
{
	struct backlog *backlog = arg;

	if (backlog->count < sizeof(backlog->lines) / sizeof(backlog->lines[0]))
		backlog->lines[backlog->count++] = strdup(text);
}

static void load(void)
{
	static char *const nothing[] = {NULL};
	struct backlog backlog = {.count = 0};
	enum glexi_log_level level = GLEXI_LOG_WARN;

	glexi_cfg_parse(&the_cfg, the_source, environ ? environ : nothing, backlog_add, &backlog); /* I2 */
	glexi_log_setup((enum glexi_log_level)the_cfg.log_level, the_cfg.log_file, the_cfg.pmi_rank);
	if (inherited || (the_cfg.pmi_rank != GLEXI_CFG_UNSET && the_cfg.pmi_rank != 0))
		level = GLEXI_LOG_INFO;
	for (size_t i = 0; i < backlog.count; i++) { /* I3 */
		if (backlog.lines[i])
			glexi_log(level, "%s", backlog.lines[i]);
		free(backlog.lines[i]);
	}
}

const struct glexi_cfg *glexi_cfg(void)
{
	pthread_once(&once, load);
	return &the_cfg;
}

void glexi_cfg_inherited(void)
{
	inherited = true;
}

bool glexi_cfg_uint(const char *name, uint64_t *value_p)
{
	const struct glexi_cfg_row *row = find_row(name, strlen(name));
	const char *member;
	uint64_t value;

	if (!row)
		return false;
	member = (const char *)glexi_cfg() + row->offset;
	switch (row->type) {
	case GLEXI_CFG_UINT:
	case GLEXI_CFG_SIZE:
	case GLEXI_CFG_TIME:
		value = *(const uint64_t *)(const void *)member;
		break;
	case GLEXI_CFG_BOOL:
		value = *(const bool *)member;
		break;
	case GLEXI_CFG_ENUM:
		value = (uint64_t) * (const int *)(const void *)member;
		break;
	default:
		return false;
	}
	if (value == GLEXI_CFG_UNSET)
		return false;
	*value_p = value;
	return true;
}

enum glexi_cfg_source glexi_cfg_source(const struct glexi_cfg_row *row)
{
	glexi_cfg();
	return the_source[row - glexi_cfg_table];
}
