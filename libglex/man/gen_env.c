/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gen_env.c - prints the source of glex_env(7), from the rows of the
 * configuration, so that the page cannot lag behind.
 */
#include "cfg/cfg.h"

#include <ctype.h>
#include <stdio.h>

/* A backslash before each character that scdoc would take for markup. */
static void put_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '_' || *text == '*' || *text == '\\' || *text == '<' || *text == '#')
			putchar('\\');
		putchar(*text);
	}
}

static void put_capital(const char *text)
{
	putchar(toupper((unsigned char)*text));
	put_text(text + 1);
}

static void put_row(const struct glexi_cfg_row *row)
{
	char range[GLEXI_CFG_TEXT];

	printf("*");
	put_text(row->name);
	printf("*\n\t");
	put_capital(row->help);
	printf(". ");
	put_capital(glexi_cfg_type_name(row));
	if (*glexi_cfg_range(row, range, sizeof(range))) {
		printf(", ");
		put_text(range);
	}
	if (row->type == GLEXI_CFG_UINT && *row->unit)
		printf(" %s", row->unit);
	if (row->type == GLEXI_CFG_TIME)
		printf("; a number without unit is in %s", row->unit);
	if (row->kind == GLEXI_CFG_OWN) {
		printf("; default ");
		put_text(*row->def ? row->def : "empty");
	}
	printf(".\n\n");
}

static void put_rows(enum glexi_cfg_kind kind)
{
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		if (row->kind == kind)
			put_row(row);
	}
}

static const char head[] =
	"glex_env(7) \"libglex\" \"libglex\"\n"
	"\n"
	"# NAME\n"
	"\n"
	"glex_env - environment variables of libglex, glexd and what is built on them\n"
	"\n"
	"# DESCRIPTION\n"
	"\n"
	"The variables are read once a process, when the library first needs one. *glex_info -c* shows each with the "
	"value in force and where it comes from.\n"
	"\n"
	"A value that is malformed or out of range is not used: the default is, and one warning says what the range "
	"is. "
	"A variable that begins with GLEX\\_ and does not exist gets one warning with the name that is most like it. "
	"Of an MPI job only rank 0 warns; the others say the same at the level info.\n"
	"\n"
	"An empty value counts as none.\n"
	"\n"
	"## FORMS OF VALUES\n"
	"\n"
	"_number_\n"
	"\tDecimal digits.\n"
	"\n"
	"_size_\n"
	"\tBytes, or with a suffix: 64K, 1M, 2G, in powers of 1024.\n"
	"\n"
	"_time_\n"
	"\tWith a unit: 500ns, 10us, 5ms, 1s. What is finer than the unit of the variable is rounded up.\n"
	"\n"
	"_bool_\n"
	"\ty or n; also 1 and 0, yes and no, on and off, true and false.\n"
	"\n"
	"_choice_\n"
	"\tOne of the words listed, in any case.\n"
	"\n"
	"# VARIABLES\n"
	"\n";

static const char launcher[] =
	"# READ FROM THE LAUNCHER\n"
	"\n"
	"These are set by _mpiexec_ or _srun_. What is missing or malformed counts as not set, without a warning.\n"
	"\n";

static const char tail[] =
	"# MESSAGES\n"
	"\n"
	"A message is one line:\n"
	"\n"
	"```\n"
	"glex: warn: [13:05:42.123456 host 4711 3] GLEX_SOKCET: no such variable, did you mean GLEX_SOCKET?\n"
	"```\n"
	"\n"
	"program, importance, time of day in UTC, host, process, rank in the job or -, and what happened. Importance, "
	"from "
	"the highest: _error_ (a call fails because of this), _warn_ (it goes on, but not as asked for), _info_ (what "
	"was "
	"chosen and why), _debug_ (what happens to objects), _trace_ (what happens to requests). A cause that comes "
	"again "
	"and again is told once, and causes that come too many at a time are counted instead.\n"
	"\n"
	"# SEE ALSO\n"
	"\n"
	"*glex*(7), *glex_info*(1), *glexd*(8)\n";

int main(void)
{
	fputs(head, stdout);
	put_rows(GLEXI_CFG_OWN);
	fputs(launcher, stdout);
	put_rows(GLEXI_CFG_LAUNCHER);
	fputs(tail, stdout);
	return fflush(stdout) || ferror(stdout);
}
