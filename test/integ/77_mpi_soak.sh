#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 77_mpi_soak.sh - a few seconds of test/mpich/soak.sh, in order and not.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi

for window in 0 16 64; do
	"$src/test/mpich/soak.sh" --prefix "$GLEX_PREFIX" --seconds 2 --np 4 --seed "$window" --reorder "$window" \
		>"$work/out" 2>&1
	result $? "every byte arrives with a window of $window"
done
GLEX_MAX_ER_CHANNELS=1 GLEX_MPI_CHANNEL=er "$src/test/mpich/soak.sh" --prefix "$GLEX_PREFIX" \
	--seconds 2 --np 4 --seed 5 --reorder 16 >"$work/out" 2>&1
result $? "every byte arrives where only one peer at a time can have rings"
"$src/test/mpich/soak.sh" --seconds ten >"$work/out" 2>&1
[ $? = 2 ] && says "not a number: ten" out
result $? "a wrong argument is refused"
finish
