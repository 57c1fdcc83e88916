#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 36_idle.sh - a glexd that nobody needs takes next to no processor time, wherever
# the nodes are that it has.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
need "$client" "$GLEX_GLEXD"

holder=
cleanup() { [ -z "$holder" ] || kill "$holder" 2>/dev/null; }

# What all its threads have used, in ticks: a hundred a second.
ticks() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

# Sleeps so far; giving way to others does not count.
naps() {
	awk '/^voluntary/ { n += $2 } END { print n }' "/proc/$1"/task/*/status
}

# naps_are PID N
naps_are() {
	[ "$(naps "$1")" -ge "$2" ]
}

export GLEX_NODE=65535 GLEX_LOG_LEVEL=info GLEX_LOG_FILE=$work/log
"$client" hold </dev/zero >"$work/held" 2>&1 &
holder=$!
within 20 says ready held && within 20 says 'copies from' log # it has looked at the machine
result $? "node_65535__one_client__is_there"

pid=$(glexds)
before=$(ticks "$pid")
within 60 naps_are "$pid" $(($(naps "$pid") + 3))
result $? "idle_glexd__nothing_to_do__sleeps"
used=$(($(ticks "$pid") - before))
[ "$used" -le 15 ]
result $? "idle_glexd__three_sleeps__next_to_no_time_between_them ($used ticks)"
finish
