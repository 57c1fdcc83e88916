#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# man.sh - the manual pages and what they describe say the same.
#
# The tools are asked themselves, where the build folder has them.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

man=libglex/man

# ---- the interface ------------------------------------------------------------

exported() {
	cat libglex/include/glex.h libglex/include/glex_ext.h 2>/dev/null | strip_c - |
		sed -nE 's/^(static inline )?(extern int|int|void|glex_ret_t|(const )?(char|void) \*) ?\*?(glex_[a-z0-9_]+)[(;].*/\5/p' | sort -u
}

# The names a page of section 3 is found under.
described() {
	sed -nE '/^# NAME/,/^# SYNOPSIS/s/ - .*//p' "$man"/*.3.scd 2>/dev/null | tr -d ' ' | tr , '\n' | sort -u
}

check() {
	exported >"$tap_tmp/exported"
	described >"$tap_tmp/described"
	comm -23 "$tap_tmp/exported" "$tap_tmp/described" | sed 's/$/: is exported and has no page/'
	comm -13 "$tap_tmp/exported" "$tap_tmp/described" | grep -v '^glex_coll$' | sed 's/$/: has a page and is not exported/'
	while read -r name; do
		grep -q "/$name\\.3\\>" "$man/local.mk" || echo "$name: is not installed by $man/local.mk"
	done <"$tap_tmp/described"
}

page_3() {
	mkdir -p "$tap_tmp/copy/$man" "$tap_tmp/copy/libglex/include"
	printf '# NAME\n\n%s - do something\n\n# SYNOPSIS\n' "$1" >"$tap_tmp/copy/$man/glex_a.3.scd"
	echo "x = libglex/man/glex_a.3 libglex/man/glex_b.3" >"$tap_tmp/copy/$man/local.mk"
	printf 'glex_ret_t glex_a(void);\nextern int glex_b;\n' | given
}

guard "each exported symbol has a page" check
page_3 "glex_a, glex_b"
must_accept "all described" libglex/include/glex.h
page_3 "glex_a"
must_complain "a symbol without a page" libglex/include/glex.h
page_3 "glex_a, glex_b, glex_c"
must_complain "a page without a symbol" libglex/include/glex.h

# ---- the variables ------------------------------------------------------------

rows() {
	sed -nE 's/^[[:space:]]*[A-Z_]+\("([A-Z][A-Z0-9_]+)",.*/\1/p' libglex/src/cfg/table.c 2>/dev/null | sort -u
}

# The variables that pages other than glex_env(7) mention: bold, and no macro with arguments.
mentioned() {
	cat "$man"/*.scd 2>/dev/null | grep -oE '\*GLEX_[A-Z0-9_]+\*([^(]|$)' | grep -oE 'GLEX_[A-Z0-9_]+' | sort -u
}

check() {
	rows >"$tap_tmp/rows"
	mentioned >"$tap_tmp/mentioned"
	comm -13 "$tap_tmp/rows" "$tap_tmp/mentioned" | sed 's/$/: is mentioned in a page and is no variable/'
}

guard "pages mention only variables that exist" check
mkdir -p "$tap_tmp/copy/$man"
echo 'See *GLEX_NOPE*.' >"$tap_tmp/copy/$man/glex.7.scd"
printf '\tSTRING("GLEX_SOCKET", socket, "", "x"),\n' | given
must_complain "a variable that does not exist" libglex/src/cfg/table.c
mkdir -p "$tap_tmp/copy/$man"
echo 'See *GLEX_SOCKET* and *GLEX_EP_MAKE_KEY*(_x_).' >"$tap_tmp/copy/$man/glex.7.scd"
must_accept "a variable that exists" libglex/src/cfg/table.c

check() {
	rows >"$tap_tmp/rows"
	"$gen_env" | sed -nE 's/^\*([A-Z0-9_\\]+)\*$/\1/p' | tr -d '\134' | sort >"$tap_tmp/described"
	diff "$tap_tmp/rows" "$tap_tmp/described" | sed -n 's/^</in the table only:/p; s/^>/in the page only:/p'
}

gen_env=$build/$man/gen_env
if [ -x "$gen_env" ]; then
	guard "each variable is in glex_env(7)" check
	printf '\tSTRING("GLEX_NEW", x, "", "x"),\n' | given
	must_complain "a variable that is not in glex_env(7)" libglex/src/cfg/table.c
else
	skip "each variable is in glex_env(7)" "gen_env is not built"
fi

# ---- the options --------------------------------------------------------------

# All options in the help, and in the lines of a page that introduce one.
options_of_help() {
	sed -nE '/^ {2,6}-/{s/^ +//;s/   .*//;p;}' | grep -oE -e '(^|[ ,])--?[a-zA-Z?][a-z-]*' | tr -d ' ,' | sort -u
}

options_of_page() {
	sed -nE '/^\*-/p' "$1" | grep -oE '\*--?[a-zA-Z?][a-z-]*\*' | tr -d '*' | sort -u
}

# PROGRAM PAGE
compare_options() {
	"$1" --help | options_of_help >"$tap_tmp/in_help"
	options_of_page "$2" >"$tap_tmp/in_page"
	comm -23 "$tap_tmp/in_help" "$tap_tmp/in_page" | sed 's/$/: is in --help only/'
	comm -13 "$tap_tmp/in_help" "$tap_tmp/in_page" | sed 's/$/: is in the page only/'
}

check() {
	compare_options "$program" "$page"
}

for pair in libglex/tools/glex_info=glex_info.1 libglex/tools/glex_perf=glex_perf.1 \
	libglex/tools/glex_collsim=glex_collsim.1 emulator/glexd/glexd=glexd.8; do
	program=$build/${pair%=*}
	page=$man/${pair#*=}.scd
	if [ -x "$program" ]; then
		guard "options of ${program##*/}" check
	else
		skip "options of ${program##*/}" "it is not built"
	fi
done

program=$tap_tmp/program
cat >"$program" <<'END'
#!/bin/sh
cat <<HELP
Usage: program [OPTION...]

  -a, --all                  Show all, and --none of
                             the rest
      --size=N               How much
  -?, --help                 Give this help list
HELP
END
chmod +x "$program"
page=page.scd
printf '*-a*, *--all*\n\tShow.\n\n*--size* _N_\n\tSize.\n\n*-?*, *--help*\n\tHelp with *-x*.\n' | given
must_accept "a page with all options" page.scd
printf '*-a*, *--all*\n\tShow.\n\n*-?*, *--help*\n\tHelp.\n' | given
must_complain "an option that is not in the page" page.scd
printf '*-a*, *--all*\n\n*--size* _N_\n\n*-?*, *--help*\n\n*--more*\n' | given
must_complain "an option that is not in --help" page.scd

# ---- the pages ----------------------------------------------------------------

# References to our own pages.
check() {
	for page in "$man"/*.scd; do
		grep -oE '\*glex[a-z_0-9]*\*\([0-9]\)' "$page" | tr -d '*' | sort -u | while read -r reference; do
			name=${reference%(*}
			section=${reference#*(}
			grep -qE "/$name\\.${section%)}\\>" "$man/local.mk" || echo "$page: $reference: no such page"
		done
	done
}

guard "references lead somewhere" check
mkdir -p "$tap_tmp/copy/$man"
echo "x = libglex/man/glex.7" >"$tap_tmp/copy/$man/local.mk"
echo 'See *glex*(7) and *glex_nope*(3).' | given
must_complain "a reference to nowhere" "$man"/glex.7.scd

check() {
	for page in "$man"/*.scd; do
		scdoc <"$page" 2>&1 >/dev/null | sed "s|^|$page: |"
	done
}

if command -v scdoc >/dev/null; then
	guard "pages are well-formed" check
	printf 'glex(7)\n\n# NAME\n\n*bold without an end\n\n_more\n' | given
	must_complain "a page that is not" "$man"/glex.7.scd
else
	skip "pages are well-formed" "no scdoc"
fi

check() {
	# shellcheck disable=SC2016 # three backquotes fence the program
	sed -n '/^# EXAMPLE/,/^# FILES/p' "$man"/glex.7.scd | sed -n '/^```/,/^```/p' | grep -v '^```' |
		sed 's/\\\\/\\/g' >"$tap_tmp/example.c"
	"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$tree/libglex/include" "$tap_tmp/example.c" 2>&1
}

if command -v "${CC:-cc}" >/dev/null; then
	guard "the program in glex(7) compiles" check
	# shellcheck disable=SC2016 # likewise
	printf '# EXAMPLE\n\n```\n#include <glex.h>\nint main(void) { return glex_nope(); }\n```\n\n# FILES\n' | given
	must_complain "a program that does not" "$man"/glex.7.scd
else
	skip "the program in glex(7) compiles" "no compiler"
fi
finish
