#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# shape.sh - no file above 800 lines, no function above 100.
#
# A function above 60 lines should carry a comment `long: why`, in it or right
# above it; one that does not is named, which is no failure.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

# clang-format puts the brace of a function, and nothing else, alone into the first column.
measure() {
	files c h | while IFS= read -r file; do
		awk -v f="$file" -v want="$1" '
		/^[A-Za-z_].*\(/ {
			name = $0
			sub(/\(.*/, "", name)
			sub(/.*[ \t*]/, "", name)
		}
		/^$/ && !inside { reason = 0 }
		/long: / { reason = 1 }
		/^\{/ {
			inside = 1
			first = FNR
		}
		/^\}/ && inside {
			inside = 0
			len = FNR - first - 1
			if (len > 100 && want == "complaints")
				print f ":" first ": " name " has " len " lines, more than 100"
			else if (len > 60 && !reason && want == "warnings")
				print f ":" first ": " name " has " len " lines and no `long:` reason"
			reason = 0
		}
		END {
			if (FNR > 800 && want == "complaints")
				print f ": " FNR " lines, more than 800"
		}' "$file"
	done
}

check() {
	measure complaints
}

guard "files and functions are not too long" check
(cd "$tree" && measure warnings) | sed 's/^/# warning: /'

function_of() {
	printf '/* SPDX */\nstatic int long_one(int a)\n{\n'
	awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) print "\ta++;" }'
	printf '}\n'
}

function_of 101 | given
must_complain "a function of 101 lines" libglex/src/core/x.c
function_of 100 | given
must_accept "a function of 100 lines" libglex/src/core/x.c
yes '/* line */' | head -n 801 | given
must_complain "a file of 801 lines" emulator/nic/x.h
yes '/* line */' | head -n 800 | given
must_accept "a file of 800 lines" emulator/nic/x.h

check() {
	measure warnings
}
function_of 61 | given
must_complain "a function of 61 lines without a reason" examples/x.c
{
	echo '/* long: one case a line */'
	function_of 61
} | given
must_accept "a function of 61 lines with a reason" examples/x.c
finish
