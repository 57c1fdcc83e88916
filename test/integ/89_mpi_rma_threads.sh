#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 89_mpi_rma_threads.sh - several threads of each rank write to and read from windows at once, long
# data being fetched from where it lies: what they read is what was written.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi rma_threads "$src/test/mpi/rma_threads.c" "$src/test/lib/seccomp.c" -pthread

# run "SEED ROUNDS [unreachable]" NAME VARIABLE=VALUE...
run() { run_three 90 rma_threads "$@"; }

for channel in sr er auto; do
	run "1 150" $channel GLEX_MPI_CHANNEL=$channel
	[ "$(lent)" -gt 100 ]
	result $? "$channel: many are fetched"
done
run "2 150" "out of order" GLEX_REORDER=32 GLEX_REORDER_SEED=2
run "3 150" "out of order, rings" GLEX_REORDER=32 GLEX_REORDER_SEED=3 GLEX_MPI_CHANNEL=er
run "4 100" "all that can be fetched, a DMA engine" GLEX_MPI_RMA_COPY_MAX=256 GLEX_EP_TYPE=1
run "5 50 unreachable" "memory that the system lets nobody reach" GLEX_ADOPT=never
finish
