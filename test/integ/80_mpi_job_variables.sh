#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 80_mpi_job_variables.sh - the variables that job scripts of the machine set mean here what they mean there.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi limits "$src/test/mpi/limits.c"

# run NAME VARIABLE=VALUE...: the job is right, and nobody is warned
run() {
	local name=$1
	shift
	env GLEX_MPI_STATS=1 "$@" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/bin/limits" \
		>"$work/out" 2>"$work/err"
	says ok out && ! grep -q '^glex: warn' "$work/err"
	result $? "$name"
}

# has NAME PATTERN: both tables have a line like this
has() {
	[ "$(grep -cE -e "$2" "$work/err")" = 2 ]
	result $? "$1"
}

run "a job without any" GLEX_MPI_CHANNEL=er
has "its endpoint is fast" '^  endpoint type 0, key 0x[0-7]?[0-9a-f]{0,7}, MPQ 4096, EQ [0-9]+; blocks 2048 KiB$'
has "its peers have rings" 'rings opened 1,'

# as a site's profile has it
run "a job with all" GLEX_MPI_CHANNEL=er GLEX_BYPASS_ER=1 GLEX_EP_TYPE=1 GLEX_EP_HC_MR=1 GLEX_EP_HC_EQ=1 \
	GLEX_EP_HC_MPQ=1 GLEX_EP_MPQ_SLOTS=131072 GLEX_EP_MEM_SIZE=0x1000000 GLEX_EAGER_MAX_MSG_SIZE=32768 \
	GLEX_MAX_ER_CHANNELS=128 GLEX_USE_ZC_RNDV=1 MPICH_NO_LOCAL=1
has "its endpoint is as told" '^  endpoint type 1, key 0x[89a-f][0-9a-f]{7}, MPQ 131072 \(HC\), EQ [0-9]+ \(HC\); blocks 16384 KiB$'
has "no peer has rings" 'rings opened 0,'

run "rings are bypassed by the older name" GLEX_MPI_CHANNEL=er GLEX_BYPASS_RDMA_WRITE_CHANNEL=1
has "no peer has rings then" 'rings opened 0,'
run "the queue is told by older names" PDP_GLEX_USE_HC_MPQ=1 PDP_GLEX_HC_MPQ_L1_CAPACITY=16384
has "it is as told then" '^  endpoint type 0, key 0x[0-9a-f]*, MPQ 16384 \(HC\),'
run "and by the new ones" GLEX_EP_HC_MPQ=1 GLEX_EP_MPQ_SLOTS=16384
has "it is as told then, too" '^  endpoint type 0, key 0x[0-9a-f]*, MPQ 16384 \(HC\),'
run "an emulated endpoint" GLEX_EP_TYPE=2
has "it is one" '^  endpoint type 2,'
run "fewer slots than the peers need" GLEX_EP_MPQ_SLOTS=1
has "are as many as they need" '^  endpoint type 0, key 0x[0-9a-f]*, MPQ (1024|2048),'

# Three messages of 20,000 to 60,000 bytes
compile_mpi eager "$src/test/mpi/eager.c"
# longer NAME COUNT VARIABLE=VALUE...: so many of them go by rendezvous
longer() {
	local name=$1 count=$2
	shift 2
	env GLEX_MPI_STATS=1 "$@" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/bin/eager" 20000 40000 60000 \
		>"$work/out" 2>"$work/err" && says ok out &&
		[ "$(awk '/^glex: rank/ { rank = $3 } rank == 0 && /^  rendezvous  / { print $2 }' "$work/err")" = "$count" ]
	result $? "$name"
}
longer "all are eager" "" NOTHING=1
longer "longer than GLEX_EAGER_MAX_MSG_SIZE: by rendezvous" 2 GLEX_EAGER_MAX_MSG_SIZE=32768
longer "longer than GLEX_MPI_EAGER_MAX: the same" 3 GLEX_MPI_EAGER_MAX=16384
longer "of the two the job's variable holds" 2 GLEX_MPI_EAGER_MAX=16384 GLEX_EAGER_MAX_MSG_SIZE=32768
longer "also where it is the greater one" "" GLEX_MPI_EAGER_MAX=16384 GLEX_EAGER_MAX_MSG_SIZE=65536

unset MPIR_CVAR_NOLOCAL
run "ranks that may share memory"
has "share it" '^  peers 0,'
run "ranks that may not" MPICH_NO_LOCAL=1
has "do not" '^  peers 1,'
export MPIR_CVAR_NOLOCAL=1

# what a machine cannot give
! GLEX_MAX_LOCKED=4096 mpirun_ 1 "$work/bin/limits" >"$work/out" 2>"$work/err" &&
	grep -qE "^glex netmod: rank 0 on host $(hostname): opening the endpoint: .*GLEX_EP_MEM_SIZE.*GLEX_MAX_LOCKED" \
	"$work/err"
result $? "no room for the blocks: rank, host, operation, cause and cure are named"
finish
