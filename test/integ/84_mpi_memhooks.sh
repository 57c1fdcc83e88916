#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 84_mpi_memhooks.sh - an MPI program with libglex-memhooks.so preloaded: its
# buffers come and go at the same addresses, and every byte arrives.  What mpicc
# links has it anyway.  Messages of buffers that are used often are fetched from there.
# shellcheck source=test/lib/tap.sh
. "${srcdir:-$(dirname "$0")/../..}/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "${srcdir:-$(dirname "$0")/../..}/test/lib/mpi.sh"

need_mpi
need "$GLEX_PREFIX/lib/libglex-memhooks.so"
compile_mpi come_and_go "${srcdir:-$(dirname "$0")/../..}/test/mpi/come_and_go.c"

# run RANKS OPTIONS: the program with the hooks
run() {
	mpirun_ "$@" -genv LD_PRELOAD "$GLEX_PREFIX/lib/libglex-memhooks.so" "$work/bin/come_and_go" >"$work/out" 2>&1 &&
		grep -qx ok "$work/out"
}

run 2
result $? "2 ranks: every byte arrives"
run 4
result $? "4 ranks: every byte arrives"
run 2 -genv GLEX_ADOPT always -genv GLEX_PROMOTE_AFTER 2 -genv GLEX_ADOPT_MIN 8K
result $? "2 ranks, whose buffers are adopted again and again"
run 2 -genv GLEX_LOG_LEVEL info && grep -q "noticed by libglex-memhooks.so" "$work/out"
result $? "the hooks are what tells of memory that goes"

compile_mpi near "${srcdir:-$(dirname "$0")/../..}/test/mpi/near.c"

# near LEAST NAME=VALUE...: each rank has at least so many messages of its own fetched
near() {
	least=$1
	shift
	env "$@" MPIR_CVAR_NOLOCAL=1 timeout -k 5 100 "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/bin/near" "$least" \
		>"$work/out" 2>&1 && grep -qx ok "$work/out"
}

for how in GLEX_MPI_CHANNEL=auto GLEX_MPI_CHANNEL=sr GLEX_MPI_CHANNEL=er GLEX_REORDER=8 GLEX_EP_TYPE=1 \
	GLEX_MPI_UNEXPECTED_MAX=100K GLEX_MAX_REGIONS=20; do
	near 500 $how
	result $? "buffers used often, $how: all bytes, once they are fetched from there"
done
near 0 GLEX_ADOPT=never
result $? "and where they stay private"
near 0 GLEX_MEM_ATTACH=n
result $? "and where private memory cannot be reached"

compile_mpi echo "${srcdir:-$(dirname "$0")/../..}/test/mpi/echo.c"

# echoes LEAST NAME=VALUE...: at least so many messages are put by their senders, all ranks' together
echoes() {
	least=$1
	shift
	env "$@" MPIR_CVAR_NOLOCAL=1 timeout -k 5 100 "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/bin/echo" "$least" \
		>"$work/out" 2>&1 && grep -qx ok "$work/out"
}

# Nobody offers to put where ranks outnumber processors, as one of them may have nothing else to do.
offers=0
[ "$(nproc)" -lt 2 ] || offers=500
for how in GLEX_MPI_CHANNEL=auto GLEX_MPI_CHANNEL=sr GLEX_MPI_CHANNEL=er GLEX_EP_TYPE=1 GLEX_MPI_UNEXPECTED_MAX=100K \
	GLEX_MAX_REGIONS=20 GLEX_EAGER_MAX_MSG_SIZE=400000; do
	echoes $offers $how
	result $? "messages go back out of the buffer they came into, $how: all bytes, once they are put by their senders"
done
for how in GLEX_REORDER=8 GLEX_ADOPT=never GLEX_MEM_ATTACH=n GLEX_USE_ZC_RNDV=0; do
	echoes 0 $how
	result $? "the same, $how"
done

# One that calls none of the functions which are hooked.
cat >"$work/calls_none.c" <<EOF
#include <mpi.h>
int main(void) { return MPI_Init(0, 0) || MPI_Finalize(); }
EOF
compile_mpi calls_none "$work/calls_none.c"
mpirun_ 2 -genv GLEX_LOG_LEVEL info "$work/bin/calls_none" >"$work/out" 2>&1 &&
	grep -q "noticed by libglex-memhooks.so" "$work/out"
result $? "mpicc links every program to them"
finish
