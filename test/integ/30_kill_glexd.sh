#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 30_kill_glexd.sh - glexd is killed, or hangs: whoever waits or polls gets an error in
# bounded time with a clear message, and can open the device again.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
need "$client" "$GLEX_GLEXD"
calls="receive event timeouts polling posting creating"
pids=
cleanup() {
	# shellcheck disable=SC2086 # several words are meant
	kill $pids 2>/dev/null
	# shellcheck disable=SC2046 # several words are meant
	kill -KILL $(glexds) 2>/dev/null
}

# start_all: one client in each call, all of this job
start_all() {
	pids=
	rm -f "$work"/out.* "$work"/err.*
	for call in $calls; do
		timeout -k 5 60 "$client" lose "$call" >"$work/out.$call" 2>"$work/err.$call" &
		pids="$pids $!"
	done
	for call in $calls; do
		within 20 says ready "out.$call" || return 1
	done
	one_glexd
}

# check_all WHAT: all clients have lost it, said so, and were well again
check_all() {
	local n=0 pid
	for call in $calls; do
		n=$((n + 1))
		pid=$(echo "$pids" | cut -d' ' -f$((n + 1)))
		wait "$pid"
		local good=$?
		says lost "out.$call" || good=1
		result $good "$1__client_in_${call}__gets_sys_err_and_opens_again"
		says "glexd is gone" "err.$call"
		result $? "$1__client_in_${call}__says_why"
	done
}

all_lost() {
	for call in $calls; do
		says lost "out.$call" || return 1
	done
}

start_all
result $? "kill_9__before__all_have_one_glexd"
kill -KILL "$(glexds)"
within 10 all_lost
result $? "kill_9__all_know_in_bounded_time"
check_all kill_9
within 10 no_glexd && within 5 no_socket
result $? "kill_9__nothing_left_in_the_end"

start_all
result $? "sigterm__before__all_have_one_glexd"
kill -TERM "$(glexds)"
within 10 all_lost
result $? "sigterm__all_know_in_bounded_time"
check_all sigterm

# One that hangs: what needs it gives up after ten seconds, and it counts as lost.
calls=creating
start_all
result $? "stopped__before__all_have_one_glexd"
hung=$(glexds)
kill -STOP "$hung"
within 20 all_lost
result $? "stopped__a_call_gives_up_in_bounded_time"
kill -CONT "$hung"
check_all stopped

within 10 no_glexd && no_socket
result $? "afterwards__nothing_is_left"
pids=
finish
