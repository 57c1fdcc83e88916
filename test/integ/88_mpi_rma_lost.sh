#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 88_mpi_rma_lost.sh - a rank dies where others synchronize a window with it: every call that
# needs it gives MPIX_ERR_PROC_FAILED soon, none that does not, and those who live go on.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi rma_lost "$src/test/mpi/rma_lost.c" -pthread

# lost CALL VARIABLE=VALUE...; with a host name of its own for each, or hydra ends them all with the first
lost() {
	local call=$1
	shift
	env "$@" timeout -k 5 20 "$GLEX_PREFIX/bin/mpiexec" -n 3 -disable-auto-cleanup -launcher fork -hosts h0:1,h1:1,h2:1 \
		"$work/bin/rma_lost" "$call" >"$work/out" 2>"$work/err"
	says "rank 0: ok" out && says "rank 1: ok" out
	result $? "$call${1:+, $1}"
}

for call in wait wait_done wait_amidst test post start complete fence fence_half fence_to fences fences_on unlock \
	unlock_all flush flush_local flush_all flush_local_all lock_held lock_own lock_queued later later_get thread \
	free; do
	lost $call GLEX_MPI_CHANNEL=auto
done
for call in wait_amidst complete fence_half fence_to fences unlock flush_all later_get free; do
	lost $call GLEX_MPI_CHANNEL=sr GLEX_REORDER=16
	lost $call GLEX_MPI_CHANNEL=er GLEX_MPI_RMA_COPY_MAX=64M
done
finish
