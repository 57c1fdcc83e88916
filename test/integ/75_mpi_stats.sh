#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 75_mpi_stats.sh - GLEX_MPI_STATS and the performance variables say what happened.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi stats "$src/test/mpi/stats.c"

GLEX_MPI_STATS=1 mpirun_ 2 "$work/bin/stats" >"$work/out" 2>"$work/err"
result $? "MPI_T counts what a program sends"
says ok out
result $? "and the program is done"
[ "$(grep -c '^glex: rank [01] on ' "$work/err")" = 2 ]
result $? "each rank has printed a table"

# In the table of rank 0: 100 packets of 100 bytes, 3 messages of 1 MiB by rendezvous.
awk '
	/^glex: rank/ { rank = $3 }
	rank == 0 && /^  rendezvous  / && $2 == 3 && $3 == 3145728 && $10 == 3 { long_ones = 1 }
	rank == 0 && /^  MPI packets / && $3 >= 103 && $3 < 130 && $4 >= 10000 && $6 == 100 { short_ones = 1 }
	rank == 1 && /^  fetched, no copy / && $4 == 3 && $5 == 3145728 { fetched = 1 }
	END { exit !(long_ones && short_ones && fetched) }
' "$work/err"
result $? "the tables agree with what was sent"

mpirun_ 2 "$work/bin/stats" >"$work/out" 2>"$work/err"
! grep -q "^glex: rank" "$work/err"
result $? "nothing is printed without the variable"
finish
