#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 85_mpi_part.sh - ranks leave while a network that reorders holds packets back: nothing
# of theirs is left to arrive where nobody is any more, and nothing is said of it.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi part "$src/test/mpi/part.c"

# Held back for 20 ms: far longer than anybody takes to leave.
for channel in sr er; do
	bad=
	for seed in 1 2 3 4 5 6 7 8 9 10; do
		GLEX_MPI_CHANNEL=$channel GLEX_REORDER=16 GLEX_REORDER_SEED=$seed GLEX_REORDER_HOLD=20000 \
			mpirun_ 2 "$work/bin/part" >"$work/out" 2>"$work/err" && says ok out && ! [ -s "$work/err" ] ||
			bad="$bad $seed"
	done
	[ -z "$bad" ]
	result $? "ten seeds, $channel${bad:+, not those:$bad}"
done
finish
