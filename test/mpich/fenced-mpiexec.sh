#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The mpiexec of the test suite: the real one in a fence.  No rank outlives its test, whatever
# became of mpiexec, for a rank left spinning would spoil every test and measurement after it.
#
# SUITE_PREFIX  where the real mpiexec is
# SUITE_FENCE   options of unshare(1) that make a process namespace, which ends as a whole
#                    with its first process; empty: not permitted here, use a session
# MPIEXEC_TIMEOUT    the test's limit, kept by mpiexec itself; this one is for when it hangs too
set -u

mpiexec=${SUITE_PREFIX:?}/bin/mpiexec
limit=$((${MPIEXEC_TIMEOUT:-180} + 20))

# A job is called after its mpiexec's pid, and in two fences those can be equal: after ours, which is outside.
export GLEX_JOB=${GLEX_JOB:-suite}-$$

if [ -n "${SUITE_FENCE:-}" ]; then
	# shellcheck disable=SC2086 # words on purpose
	exec timeout --foreground --signal=KILL "$limit" unshare $SUITE_FENCE "$mpiexec" "$@"
fi

end_session()
{
	local pids
	pids=$(ps -o pid= -s "$session" 2>/dev/null) || return 0
	# shellcheck disable=SC2086 # a list
	kill -KILL $pids 2>/dev/null
}

setsid timeout --foreground --signal=KILL "$limit" "$mpiexec" "$@" &
session=$!
trap end_session EXIT
trap 'exit 143' INT TERM HUP
wait "$session"
