#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# getenv.sh - only the configuration reads the environment.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

check() {
	files c h | grep -v -e '^libglex/src/cfg/' -e '^test/' | while IFS= read -r file; do
		strip_c "$file" | grep -nE '\<(secure_)?getenv[[:space:]]*\(' | sed "s|^|$file:|"
	done
}

guard "only libglex/src/cfg reads the environment" check
echo 'char *x = getenv("X");' | given
must_complain "getenv in the core" libglex/src/core/x.c
echo 'char *x = secure_getenv ("X");' | given
must_complain "secure_getenv in glexd" emulator/glexd/x.c
echo 'char *x = getenv("X");' | given
must_accept "getenv in the configuration" libglex/src/cfg/x.c
printf '/* no getenv(3) here */\nchar *x = "getenv()"; // getenv()\n' | given
must_accept "getenv in a comment" libglex/src/core/x.c
finish
