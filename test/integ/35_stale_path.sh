#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 35_stale_path.sh - several glexds are started at once on a path that a killed
# one left: one gets it, the others say so and end, and it can be reached.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

info=$build/libglex/tools/glex_info
need "$info" "$GLEX_GLEXD"

socket=$work/socket
pids=()
cleanup() { [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null; }

# start N: that many glexds at once, numbered
start() {
	local i
	pids=()
	for ((i = 0; i < $1; i++)); do
		"$GLEX_GLEXD" --socket "$socket" 2>"$work/glexd$i" &
		pids+=($!)
	done
}

# living N: so many of them run
living() {
	[ "$(count_living)" = "$1" ]
}

count_living() {
	local pid n=0
	for pid in "${pids[@]}"; do
		kill -0 "$pid" 2>/dev/null && n=$((n + 1))
	done
	echo "$n"
}

listens() {
	grep -qF -e "$socket" /proc/net/unix
}

status=0
for _ in 1 2 3 4 5 6 7 8 9 10; do
	start 1
	within 10 listens || status=1
	kill -9 "${pids[0]}"
	wait "${pids[0]}" 2>/dev/null
	[ -S "$socket" ] || status=1
	start 6
	within 10 living 1 || status=1
	[ "$(grep -lF 'cannot listen' "$work"/glexd[0-9]* | wc -l)" = 5 ] || status=1
	GLEX_SOCKET=$socket timeout -k 5 20 "$info" -d >"$work/info" 2>&1 || status=1
	grep -q "0 ports in use" "$work/info" || status=1
	kill "${pids[@]}" 2>/dev/null
	wait 2>/dev/null
	[ $status = 0 ] || break
done
result $status "stale_path__six_started_at_once__one_has_it_and_can_be_reached"

[ ! -e "$socket" ]
result $? "afterwards__nothing_is_left"
finish
