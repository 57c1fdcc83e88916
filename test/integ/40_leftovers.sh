#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 40_leftovers.sh - after all that happened: no process, no file, no socket.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
crowd=$build/test/api/crowd
need "$client" "$crowd" "$GLEX_GLEXD"

# everything that can happen to a job
live_and_die() {
	"$client" hello
	"$client" alloc 1000000
	"$crowd" normal mapped 3
	"$client" hold </dev/zero >/dev/null &
	local held=$!
	within 10 one_glexd
	"$client" lose receive >"$work/lost" &
	local loser=$!
	within 10 says ready lost
	kill -KILL "$(glexds)"
	kill -KILL "$held"
	wait "$loser" "$held"
	"$client" hello
}

leftovers >"$work/before"
live_and_die >"$work/out" 2>"$work/err"
within 10 no_glexd
result $? "afterwards__no_glexd"
within 5 no_socket
result $? "afterwards__no_socket"
leftovers >"$work/after"
diff "$work/before" "$work/after" >"$work/difference"
result $? "afterwards__no_file_of_that_name"

# With folders of their own nothing can hide behind a name.  The build must not lie in what is covered.
covered=$(
	export -f live_and_die within says one_glexd glexds
	export client crowd uid
	# shellcheck disable=SC2016 # expands in there
	unshare -m bash -c '
		case $client in /tmp/*) folders=/dev/shm ;; *) folders="/dev/shm /tmp" ;; esac
		for folder in $folders; do mount -t tmpfs none "$folder" || exit 1; done
		work=/run/glex-leftovers.$$
		mkdir "$work" || exit 1
		live_and_die >/dev/null 2>&1
		rm -r "$work"
		echo "files:"
		find $folders -mindepth 1' 2>/dev/null
)
case $covered in
"files:") result 0 "own_folders__stay_empty" ;;
"files:"*)
	echo "$covered" >"$work/files"
	result 1 "own_folders__stay_empty"
	;;
*) skip "own_folders__stay_empty" "no right to mount" ;;
esac
within 10 no_glexd
result $? "own_folders__no_glexd"
finish
