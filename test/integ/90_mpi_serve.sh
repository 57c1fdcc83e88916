#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 90_mpi_serve.sh - a client of MPI_Comm_accept is killed: the server goes on, and the
# next client, which gets the address of the dead one, is served.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi serve "$src/test/mpi/serve.c"
export GLEX_JOB=$story-$$ # of all three: they meet on one network

# served CASE NAME VARIABLE=VALUE...
served() {
	local case=$1 name=$2 dir=$work/dir server
	shift 2
	rm -rf "$dir" && mkdir "$dir"
	env "$@" timeout -k 5 40 "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/bin/serve" server "$case" "$dir" \
		>"$work/out" 2>"$work/err" &
	server=$!
	within 20 test -f "$dir/port"
	env "$@" timeout -k 5 20 "$GLEX_PREFIX/bin/mpiexec" -n 1 "$work/bin/serve" client "$dir" die \
		>"$work/first" 2>&1
	within 20 test -f "$dir/next" &&
		env "$@" timeout -k 5 20 "$GLEX_PREFIX/bin/mpiexec" -n 1 "$work/bin/serve" client "$dir" talk \
			>"$work/second" 2>&1
	wait $server && says ok out
	result $? "$name"
}

served fatal "errors end the server, a client is killed: it waits for others, and serves the next"
for channel in sr er auto; do
	served successor "the next client has its address, $channel" GLEX_MPI_CHANNEL=$channel
done
for channel in sr er; do
	served successor "the same out of order, $channel" GLEX_MPI_CHANNEL=$channel GLEX_REORDER=16
done
within 10 no_glexd && no_socket
result $? "nothing is left of these"
finish
