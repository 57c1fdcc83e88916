# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# tap.sh - what the stories of test/integ share: results, deadlines, and what is
# left of a glexd.  A story sources it, uses a job of its own (GLEX_JOB), and ends
# with `finish`.

build=${abs_top_builddir:-$PWD}
export GLEX_GLEXD=${GLEX_GLEXD:-$build/emulator/glexd/glexd}
story=$(basename "$0" .sh)
export GLEX_JOB=$story-$$
unset GLEX_SOCKET
uid=$(id -u)
count=0
failed=0
work=$(mktemp -d)
cleanup() { :; }
trap 'cleanup; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# need FILE...: these must have been built
need() {
	for file in "$@"; do
		[ -x "$file" ] || {
			echo "1..0 # SKIP there is no $file"
			exit 77
		}
	done
}

# result STATUS NAME: a line of TAP; what the programs said goes along with a failure
result() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
		return
	fi
	failed=1
	echo "not ok $count - $2"
	for file in "$work"/*; do
		[ -f "$file" ] && sed "s|^|# ${file##*/}: |" "$file" | tail -n 20
	done
}

skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

finish() {
	echo "1..$count"
	exit "$failed"
}

# within SECONDS COMMAND...: true as soon as the command is
within() {
	local left=$1 now=$SECONDS
	shift
	until "$@"; do
		# however far the clock leaps, where the machine stood still, it counts for one
		[ "$SECONDS" = "$now" ] || left=$((left - 1)) now=$SECONDS
		[ "$left" -ge 0 ] || return 1
		sleep 0.02
	done
}

# says TEXT FILE: the file in $work has the text
says() {
	grep -sqF -e "$1" "$work/$2"
}

# The glexds of this job, a pid a line; one that has ended and waits for its parent does not count.
glexds() {
	local file pid
	grep -lzxF -e "@glex-$uid-$GLEX_JOB" /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
		pid=${file#/proc/}
		pid=${pid%/cmdline}
		# the search has the name among its arguments too
		if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = glexd ]; then
			echo "$pid"
		fi
	done
}

no_glexd() {
	[ -z "$(glexds)" ]
}

one_glexd() {
	[ "$(glexds | wc -l)" = 1 ]
}

no_socket() {
	! grep -qF -e "@glex-$uid-$GLEX_JOB" /proc/net/unix
}

# What anybody may have left in the folders for such things, by name.
leftovers() {
	find /dev/shm /tmp /var/tmp -maxdepth 1 -iname '*glex*' 2>/dev/null | sort
}
