#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 82_mpi_kill.sh - a rank or glexd is killed at some moment of a job that is busy in all
# ways: the job ends soon, where mpiexec cleans up somebody says why, and nothing is left.
#
# GLEX_TEST_KILLS: how often (default 5); GLEX_TEST_SEED: which ranks and moments.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi soak "$src/test/mpi/soak.c"
compile_mpi echo "$src/test/mpi/echo.c"
compile_mpi last_words "$src/test/mpi/last_words.c"
export GLEX_JOB=$story-$$ # so that its glexd can be found
kills=${GLEX_TEST_KILLS:-5}
RANDOM=${GLEX_TEST_SEED:-1}
unset GLEX_TEST_KILLS GLEX_TEST_SEED # libglex warns of names it does not know

# The ranks of the job, a pid a line.
ranks() {
	find /proc -maxdepth 2 -name exe -lname "$work/bin/${busy%% *}" 2>/dev/null | cut -d / -f 3
}

all_ranks() { [ "$(ranks | wc -l)" -ge "$np" ]; }
no_rank() { [ -z "$(ranks)" ]; }
some_glexd() { [ -n "$(glexds)" ]; }

# moment AT_LEAST: sleeps so many milliseconds, and up to half a second more, mostly less
moment() {
	local more=$((RANDOM % (RANDOM % 2 ? 500 : 60))) # not in a subshell, which would not go on with the numbers
	sleep "0.$(printf '%03d' $(($1 + more)))"
}

# strike VICTIM AT_LEAST: sets killed
strike() {
	local pids
	killed=
	if [ "$1" = glexd ]; then
		within 10 some_glexd
		moment "$2"
		killed=$(glexds)
	else
		within 10 all_ranks
		moment "$2"
		mapfile -t pids < <(ranks)
		[ ${#pids[@]} = 0 ] || killed=${pids[RANDOM % ${#pids[@]}]}
	fi
	# shellcheck disable=SC2086 # there may be two glexds for a moment
	[ -n "$killed" ] && kill -9 $killed
}

ended() { ! kill -0 "$1" 2>/dev/null; }

# kill_one NUMBER VICTIM OPTIONS OF MPIEXEC...
kill_one() {
	local what="kill $1: $2" job at_least=0
	shift 2
	# shellcheck disable=SC2086 # its arguments
	timeout -s KILL 60 "$GLEX_PREFIX/bin/mpiexec" "$@" -n "$np" "$work/bin/"$busy >"$work/out" 2>&1 </dev/null &
	job=$!
	# Without a cleanup mpiexec lets the others wait in MPI_Init for one that died there.
	[ $# = 0 ] || at_least=400
	strike "${what##* }" $at_least || bad="$what: it could not be found"
	within 30 ended $job || bad="$what: the job does not end"
	wait $job
	status=$?
	[ $status != 0 ] || bad="$what: the job ends well"
	# mpiexec speaks for one that is still in MPI_Init.  If it loses a proxy it may end, even by SIGPIPE,
	# with what the others say unread.
	[ $# -gt 0 ] || [ $status = 141 ] ||
		grep -qiE 'signal 9|signal: 9|glexd|glex netmod|error waiting for event' "$work/out" ||
		bad="$what: nobody says why"
	within 10 no_rank || bad="$what: ranks are left"
	within 10 no_glexd || bad="$what: a glexd is left"
	no_socket || bad="$what: a socket is left"
}

leftovers >"$work/before"
heard=0
for ((i = 0; i < 10; i++)); do
	mpirun_ 4 "$work/bin/last_words" >"$work/out" 2>&1
	[ $? = 15 ] && [ "$(grep -c '^last words' "$work/out")" = 800 ] && heard=$((heard + 1))
done
[ $heard = 10 ]
result $? "what a rank says before it aborts is heard, and its status is the job's ($heard of $i)"
bad=
victims=(rank glexd rank)
channels=(sr er auto)
for ((i = 0; i < kills && ${#bad} == 0; i++)); do
	export GLEX_MPI_CHANNEL=${channels[i / 2 % 3]} GLEX_REORDER=$(((i % 4 == 3) * 16))
	np=4 busy="soak 40 $RANDOM"
	[ $((i % 5)) -lt 3 ] || np=2 busy="echo 0 100000" # no more than processors: senders put what goes back
	if ((i % 2)); then # a host name of its own for each, or hydra ends them all with the first
		kill_one $i "${victims[i % 3]}" -disable-auto-cleanup -launcher fork -hosts "h0:1,h1:1,h2:1,h3:1"
	else
		kill_one $i "${victims[i % 3]}"
	fi
done
if [ -n "$bad" ]; then
	echo "# $bad (status of mpiexec $status, whom: $killed)"
	tail -n 12 "$work/out" | sed 's/^/# out: /'
fi
[ -z "$bad" ]
result $? "$i times somebody is killed: the job ends, says why where mpiexec cleans up, and nothing runs on"
leftovers >"$work/after"
diff "$work/before" "$work/after" >"$work/difference"
result $? "no file is left either"
finish
