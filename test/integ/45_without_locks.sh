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

! "$threads" --without-locks >"$work/out" 2>&1 && grep -q 'WARNING: ThreadSanitizer: data race' "$work/out"
result $? "threads_without_locks__are_seen"
finish
