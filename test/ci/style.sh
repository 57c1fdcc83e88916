#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# style.sh - C is as clang-format leaves it, scripts are as shellcheck wants them.
#
# Each release of clang-format breaks lines its own way: 14 it is.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

format=
for name in clang-format-14 clang-format; do
	if command -v "$name" >/dev/null && "$name" --version | grep -q 'version 14\.'; then
		format=$name
		break
	fi
done

check() {
	[ -f .clang-format ] || cp "$tree/.clang-format" .
	files c h | xargs -r -d '\n' "$format" --style=file --dry-run -Werror 2>&1 | grep 'error:'
}

if [ -n "$format" ]; then
	guard "C is formatted" check
	printf 'int f(void){return 0;}\n' | given
must_complain "C of another style" libglex/src/core/x.c
	printf 'int f(void)\n{\n\treturn 0;\n}\n' | given
must_accept "C of this style" libglex/src/core/x.c
else
	skip "C is formatted" "no clang-format 14"
fi

# Scripts are known by their first line: some have no ending.
scripts() {
	{
		files sh
		for top in libglex emulator netmod-glex portals dmapp-compat examples test .ci; do
			[ ! -d "$top" ] || find "$top" -type f -perm -u+x ! -name '*.sh'
		done
		find . -maxdepth 1 -type f -perm -u+x ! -name 'configure*' ! -name config.status ! -name libtool
	} | sort -u | while IFS= read -r file; do
		case $(head -c 64 "$file" | head -n 1 | tr -d '\0') in
		'#!'*/sh | '#!'*/bash | '#!'*/dash | '#!'*'env bash' | '#!'*'env sh') echo "$file" ;;
		esac
		case $file in
		test/ci/lib.sh) echo "$file" ;;
		esac
	done
}

# SC2317: functions that are called through their name in a variable.
check() {
	scripts | xargs -r -d '\n' shellcheck -x -e SC2317 -f gcc
}

if command -v shellcheck >/dev/null; then
	guard "scripts are clean" check
	# shellcheck disable=SC2016 # it is the text that matters
	printf '#!/bin/sh\nrm -r $1\n' | given
must_complain "a word left unquoted" test/x.sh
	# shellcheck disable=SC2016 # likewise
	printf '#!/bin/sh\nrm -r "$1"\n' | given
must_accept "a word quoted" test/x.sh
else
	skip "scripts are clean" "no shellcheck"
fi
finish
