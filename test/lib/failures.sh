#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# failures.sh TEST-SUITE.LOG - what automake's log of a whole suite says of the
# tests that failed, the last 60 lines of each; the many that were skipped are
# left out, as they would be all that one sees of a log's end.
set -u

awk -v most=60 '
# A section begins with a line "FAIL: name" and one of as many "=".
function begins(line) { return line ~ /^=+$/ && length(line) == length(last) && last ~ /^[A-Z]+: / }
function print_section(   i) {
	if (kind ~ /^(FAIL|ERROR|XPASS): /) {
		print kind
		for (i = n - most > 0 ? n - most : 0; i < n; i++)
			print "  " text[i]
	}
	n = 0
}
begins($0) { n--; print_section(); kind = last; last = ""; next }
{ text[n++] = last = $0 }
END { print_section() }' "$1"
