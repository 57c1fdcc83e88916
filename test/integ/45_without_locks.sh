#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 45_without_locks.sh - the test of threads is one that can fail: with the locks
# off, as for a program of one thread, the thread sanitizer sees it.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

threads=$build/test/api/test_api_threads
need "$threads" "$GLEX_GLEXD"
grep -q '^#define GLEX_PRESET "tsan"' "$build/config.h" || {
	echo "1..0 # SKIP without the thread sanitizer luck decides"
	exit 77
}

# The threads must meet for it, which they do in one of a few runs.  The first
# report ends a test: without locks notes get lost, and are waited for.
seen=1
for _ in 1 2 3 4 5 6 7 8; do
	if ! TSAN_OPTIONS=halt_on_error=1 "$threads" --without-locks >"$work/out" 2>&1 &&
		grep -q 'WARNING: ThreadSanitizer: data race' "$work/out"; then
		seen=0
		break
	fi
done
result $seen "threads_without_locks__are_seen"
finish
