#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 86_mpi_rma.sh - one-sided operations, at once by the NIC, by packets, or with data that is
# fetched from where it lies: all that was written is there and nothing else, whichever way it
# went, and in order; who dies in the middle of one leaves nobody waiting.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi rma "$src/test/mpi/rma.c" "$src/test/lib/seccomp.c"

# run "SEED [unreachable|late]" NAME VARIABLE=VALUE...
run() { run_three 60 rma "$@"; }

for channel in sr er auto; do
	run 1 "$channel, at once" GLEX_MPI_CHANNEL=$channel
	run 1 "$channel" GLEX_MPI_CHANNEL=$channel GLEX_MPI_RMA_DIRECT=0
	[ "$(lent)" -gt 10 ]
	result $? "$channel: some are fetched"
done
run 2 "windows that are not adopted" GLEX_MPI_RMA_ADOPT=0
run 2 "out of order" GLEX_REORDER=32 GLEX_REORDER_SEED=7
run 3 "out of order, rings" GLEX_REORDER=32 GLEX_REORDER_SEED=8 GLEX_MPI_CHANNEL=er
run 4 "all that can be fetched, a DMA engine" GLEX_MPI_RMA_COPY_MAX=256 GLEX_EP_TYPE=1
run 5 "few regions" GLEX_MAX_REGIONS=10
run 6 "copied" GLEX_USE_ZC_RNDV=0 GLEX_MPI_RMA_DIRECT=0
[ "$(lent)" = 0 ]
result $? "copied: none is fetched"
run "2 unreachable" "memory that the system lets nobody reach" GLEX_ADOPT=never
grep -q "cross-memory attach .* refused" "$work/err"
result $? "it is tried, and then told by other means"
run 1 "between collectives by the NICs" GLEX_MPI_COLL_AFTER=1
for where in off all; do
	run "1 late" "a start before the end of the fence before it, GLEX_MPI_COLL=$where" GLEX_MPI_COLL=$where GLEX_MPI_COLL_AFTER=1
	run "1 late" "the same by packets, GLEX_MPI_COLL=$where" GLEX_MPI_COLL=$where GLEX_MPI_COLL_AFTER=1 GLEX_MPI_RMA_DIRECT=0
done

for channel in sr er; do
	for victim in TARGET ORIGIN; do
		GLEX_MPI_CHANNEL=$channel mpirun_ 3 -disable-auto-cleanup -launcher fork -hosts h0:1,h1:1,h2:1 \
			"$work/bin/rma" death $victim 150 >"$work/out" 2>"$work/err"
		says "rank 0: ok" out && says "rank 1: ok" out && grep -q "rank 2 .* is lost" "$work/err"
		result $? "the $victim dies, $channel"
	done
done
finish
