#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 91_mpi_rma_direct.sh - one-sided operations straight to the window: all that can goes so, and is
# there; what cannot goes otherwise, with the same result; sums add up; who looks on meanwhile, or
# dies, keeps nobody.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi rma_direct "$src/test/mpi/rma_direct.c"

# run "ARGUMENTS" NAME VARIABLE=VALUE...
run() { run_three 60 rma_direct "$@"; }

for kind in ALLOCATED HEAP STATIC; do
	run "data $kind DIRECT" "$kind"
done
run "data STACK not" "the stack: by packets"
run "data ALLOCATED DIRECT" "with rings" GLEX_MPI_CHANNEL=er
run "data ALLOCATED DIRECT" "memory that is allocated is not adopted" GLEX_ADOPT=never
run "data HEAP not" "memory that is not adopted: by packets" GLEX_ADOPT=never
run "data HEAP not" "longer than what is adopted: by packets" GLEX_MPI_RMA_ADOPT=100K
run "data ALLOCATED not" "out of order: by packets" GLEX_REORDER=32 GLEX_REORDER_SEED=9
run "data ALLOCATED not" "a DMA engine: by packets" GLEX_EP_TYPE=1
run "data ALLOCATED not" "switched off" GLEX_MPI_RMA_DIRECT=0
run "data ALLOCATED DIRECT" "more ranks than processors, and collectives by the NICs" GLEX_MPI_COLL_AFTER=1
run "sums DIRECT" "sums and exchanges, at once and by packets"
run "sums DIRECT" "the same, rings" GLEX_MPI_CHANNEL=er
run "sums not" "the same, out of order: by packets" GLEX_REORDER=32 GLEX_REORDER_SEED=5
run "sums not" "the same, switched off" GLEX_MPI_RMA_DIRECT=0
run types "every basic type and operation"
run order "a get comes behind the puts before it"
run spin "who looks again and again lets others go on"
run spin "the same, out of order" GLEX_REORDER=32 GLEX_REORDER_SEED=3
for i in 1 2 3; do
	mpirun_ 3 -disable-auto-cleanup -launcher fork -hosts h0:1,h1:1,h2:1 "$work/bin/rma_direct" orphan \
		>"$work/out" 2>"$work/err"
	says "rank 0: ok" out && says "rank 1: ok" out
	result $? "who is killed holds no lock, $i"
done
run nested "windows over the memory of other windows"
run nested "the same by packets" GLEX_MPI_RMA_DIRECT=0
run many "windows that come and go, where regions are few" GLEX_MAX_REGIONS=12
finish
