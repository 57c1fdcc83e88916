#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 60_hostile.sh - garbage to glexd's socket and queues: it survives, keeps nothing of it,
# and the traffic of others goes on.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
crowd=$build/test/api/crowd
hostile=$build/test/api/hostile
need "$client" "$crowd" "$hostile" "$GLEX_GLEXD"
cleanup() {
	# shellcheck disable=SC2046 # several words are meant
	kill -KILL $(glexds) 2>/dev/null
}

GLEX_LINGER=60s "$client" hello
glexd=$(glexds)
one_glexd
result $? "before__one_glexd"
descriptors() {
	find "/proc/$glexd/fd" -mindepth 1 2>/dev/null | wc -l
}
before=$(descriptors)

timeout -k 5 100 "$crowd" normal private "${GLEX_TEST_KILLS:-60}" >"$work/crowd" 2>"$work/crowd.err" &
traffic=$!
"$hostile" hello >"$work/out" 2>"$work/err"
result $? "hello__wrong_ones__refused"
for seed in 1 2 3 4 5; do
	timeout -k 5 60 "$hostile" fuzz $seed 8000 >"$work/out" 2>"$work/err"
	result $? "fuzz__seed_${seed}__glexd_answers"
done
timeout -k 5 60 "$hostile" crowd 400 >"$work/out" 2>"$work/err"
result $? "four_hundred_connections__that_never_listen__glexd_answers"
for seed in 1 2 3; do
	timeout -k 5 60 "$hostile" descriptors $seed >"$work/out" 2>"$work/err"
	result $? "descriptors__garbage_seed_${seed}__error_requests_and_glexd_answers"
done
wait $traffic
result $? "traffic_of_others__went_on"

[ "$(glexds)" = "$glexd" ]
result $? "afterwards__the_same_glexd"
# nodes are kept, the rest goes with its connection: one more for each node that was named
kept() {
	[ "$(descriptors)" -le $((before + 200)) ]
}
within 10 kept
result $? "afterwards__it_holds_no_descriptor_of_them"
"$client" hello >"$work/out" 2>"$work/err"
result $? "afterwards__all_is_well"
kill -TERM "$glexd"
within 10 no_glexd && no_socket
result $? "afterwards__it_ends_when_asked"
finish
