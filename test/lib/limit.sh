#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# limit.sh SECONDS COMMAND... - runs a command that must end in that time.  Past
# it: says where each of its processes stands, those that left its session
# included, ends them all and exits with 124.  Sourced, `limited` does it, also
# for shell functions.

# marked MARK: the processes that inherited it; nested limits append to it
marked() {
	local file
	grep -lzE -e "^TEST_LIMIT_MARK=$1(/|\$)" /proc/[0-9]*/environ 2>/dev/null | while read -r file; do
		file=${file#/proc/}
		echo "${file%/environ}"
	done
}

# stands PID: what it is and what it waits for
stands() {
	local task
	[ -r "/proc/$1/cmdline" ] || return
	echo "-- process $1: $(tr '\0' ' ' <"/proc/$1/cmdline")"
	for task in "/proc/$1/task"/*; do
		echo "   thread ${task##*/}: $(sed -n 's/^State:\t//p' "$task/status"), $(cat "$task/wchan")"
	done 2>/dev/null
	if command -v gdb >/dev/null && ! grep -qE '^(bash|sh|make|timeout|sleep|gdb)$' "/proc/$1/comm"; then
		timeout -k 2 60 gdb -nx -batch -p "$1" -ex 'thread apply all backtrace 16' 2>/dev/null | grep -E '^(Thread|#)'
	fi
}

# watch SECONDS MARK NAME: the clock of a limit; ended by TERM when the command is through in time
watch() {
	local pid
	trap 'kill "$!" 2>/dev/null; exit 1' TERM
	sleep "$1" >/dev/null 2>&1 &
	wait "$!"
	trap '' TERM
	echo "-- not done after $1 s: $3"
	for pid in $(marked "$2"); do
		stands "$pid"
	done
	for pid in $(marked "$2"); do
		kill -KILL "$pid" 2>/dev/null
	done
	exit 0 # tells `limited` that the time was over, whatever the last kill says
}

limited() {
	local seconds=$1 mark=${TEST_LIMIT_MARK:-}/$BASHPID.$RANDOM clock status
	shift
	watch "$seconds" "${mark//./\\.}" "$*" &
	clock=$!
	(
		export TEST_LIMIT_MARK=$mark
		"$@"
	)
	status=$?
	kill "$clock" 2>/dev/null
	wait "$clock" && status=124
	return $status
}

if [ "$0" = "${BASH_SOURCE[0]}" ]; then
	limited "$@"
fi
