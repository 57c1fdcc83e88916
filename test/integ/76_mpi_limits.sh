#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 76_mpi_limits.sh - where memory cannot be registered a job becomes slower, and fails no more than without limits.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi limits "$src/test/mpi/limits.c"

# run NAME VARIABLE=VALUE...
run() {
	local name=$1
	shift
	env GLEX_MPI_STATS=1 "$@" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/bin/limits" \
		>"$work/out" 2>"$work/err" && says ok out
	result $? "$name"
}

run "without limits" GLEX_LOG_LEVEL=warn
! grep -q 'streamed [1-9]' "$work/err" && grep -q 'fetched, no copy' "$work/err"
result $? "long messages are fetched"
for regions in 1 2 3 5; do
	run "$regions regions" GLEX_MAX_REGIONS=$regions
done
GLEX_MAX_REGIONS=1 mpirun_ 2 env GLEX_MPI_STATS=1 "$work/bin/limits" >"$work/out" 2>"$work/err"
grep -q 'streamed [1-9]' "$work/err" && says "GLEX_MAX_REGIONS allows no more; deregister some, or raise it" err
result $? "and it is said why"
for size in 3M 5M 17M; do
	run "$size locked" GLEX_MAX_LOCKED=$size
done
run "zero copy switched off" GLEX_USE_ZC_RNDV=0
! grep -q 'fetched, no copy' "$work/err"
result $? "nothing is fetched then"
# The limits are each process's own
for program in limits rma; do
	[ $program = limits ] || compile_mpi rma "$src/test/mpi/rma.c" "$src/test/lib/seccomp.c"
	for limit in GLEX_MAX_REGIONS=3 GLEX_MAX_LOCKED=3M GLEX_USE_ZC_RNDV=0; do
		timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n 1 -env "${limit%%=*}" "${limit#*=}" "$work/bin/$program" : \
			-n 1 "$work/bin/$program" >"$work/out" 2>"$work/err" && says ok out
		result $? "$program: one rank alone has $limit"
	done
done
compile_mpi cancel "$src/test/mpi/cancel.c"
GLEX_MPI_STATS=1 mpirun_ 2 "$work/bin/cancel" >"$work/out" 2>"$work/err"
says ok out && [ "$(grep -c 'found no room 0,' "$work/err")" = 2 ]
result $? "cancelled sends give back what they held"
compile_mpi no_memory "$src/test/mpi/no_memory.c"
mpirun_ 2 "$work/bin/no_memory" >"$work/out" 2>"$work/err" && says ok out
result $? "receives for which there is no memory end at both sides"
run "no rendezvous for these" GLEX_EAGER_MAX_MSG_SIZE=4000000
! grep -q '^  rendezvous ' "$work/err"
result $? "there was none"
finish
