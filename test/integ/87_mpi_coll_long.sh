#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 87_mpi_coll_long.sh - long broadcasts that the ranks fetch from the root's buffer, or that are passed down a tree: all is
# there and nothing else, in all shapes of trees, in order and not, by several threads; where it cannot be
# fetched it comes in another way; who dies in the middle leaves nobody waiting.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi coll_long "$src/test/mpi/coll_long.c" "$src/test/lib/seccomp.c"
export GLEX_MPI_COLL=all GLEX_MPI_COLL_AFTER=2 GLEX_MPI_COLL_LONG=4096

# run NAME=VALUE... RANKS "SEED [MORE]" WHAT: how many were fetched is in $long
run() {
	local what=${*: -1} args=${*: -2:1} ranks=${*: -3:1}
	# shellcheck disable=SC2086 # one or two arguments
	env "${@:1:$#-3}" timeout -k 5 90 "$GLEX_PREFIX/bin/mpiexec" -n "$ranks" "$work/bin/coll_long" $args \
		>"$work/out" 2>"$work/err" && says ok out
	result $? "$what"
	long=$(sed -n 's/^long \([0-9]*\),.*/\1/p' "$work/out")
}

run GLEX_MPI_COLL_LONG=0 3 1 "3 ranks, MPICH's own"
[ "$long" = 0 ]
result $? "and none is fetched"
run 4 1 "4 ranks"
[ "$long" -gt 80 ]
result $? "and most are fetched"
run GLEX_MPI_COLL_LONG=1024 2 1 "2 ranks, for which it is four times that"
all=$long
[ "$long" -gt 80 ]
result $? "and most are fetched"
run 2 1 "2 ranks"
[ "$long" -gt 0 ] && [ "$long" -lt "$all" ]
result $? "and fewer are fetched"
run GLEX_MPI_COLL_SHAPE=kary GLEX_MPI_COLL_DEGREE=2 6 3 "6 ranks, a k-ary tree"
run GLEX_MPI_COLL_SHAPE=knomial GLEX_REORDER=16 GLEX_REORDER_SEED=3 4 4 "4 ranks, a binomial tree, out of order"
run GLEX_REORDER=32 GLEX_REORDER_SEED=7 3 5 "3 ranks, out of order"
run 3 "6 3" "3 ranks, of 3 threads each"
run MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NUM_CLIQUES=2 4 7 "4 ranks, two of which share memory with each other"
run MPIR_CVAR_NOLOCAL=0 4 8 "4 ranks that share memory"
run GLEX_MPI_COLL_SHAPE=kary GLEX_MPI_COLL_DEGREE=2 GLEX_MPI_COLL_LONG_BY=put 6 11 "6 ranks, passed down a k-ary tree"
[ "$long" -gt 80 ]
result $? "and most are passed"
run GLEX_MPI_COLL_SHAPE=knomial GLEX_MPI_COLL_LONG_BY=put GLEX_REORDER=16 GLEX_REORDER_SEED=5 4 12 \
	"4 ranks, passed down a binomial tree, out of order"
run GLEX_MPI_COLL_SHAPE=kary GLEX_MPI_COLL_DEGREE=2 GLEX_MPI_COLL_LONG_BY=put 3 "13 3" "3 ranks, of 3 threads each, passed"
run GLEX_ADOPT=never GLEX_MPI_COLL_SHAPE=kary GLEX_MPI_COLL_LONG_BY=put 3 "14 unreachable" "passed, where nobody can reach it"
[ "$long" = 0 ]
result $? "and none is passed"
run GLEX_ADOPT=never 3 "9 unreachable" "memory that the system lets nobody reach"
[ "$long" = 0 ]
result $? "and none is fetched"
run GLEX_MAX_REGIONS=14 3 10 "few regions"

# Who is left gets an error, and does not wait for ever; mpiexec does not learn of the death: it would end them all.
all_told() {
	[ "$(find "$work/$1" -name 'told.*' | wc -l)" = 3 ]
}
for shape in auto kary passed; do
	for victim in ROOT OTHER; do
		how=$shape.$victim by=get
		[ $shape != passed ] || by=put
		mkdir "$work/$how"
		# shellcheck disable=SC2016 # for the ranks' shells
		GLEX_MPI_COLL_SHAPE=${shape/passed/kary} GLEX_MPI_COLL_DEGREE=2 GLEX_MPI_COLL_LONG_BY=$by timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n 4 \
			sh -c '"$@"; until [ -e "$4/over" ]; do sleep 0.1; done' rank \
			"$work/bin/coll_long" death $victim "$work/$how" 150 >"$work/out" 2>"$work/err" &
		within 20 all_told "$how"
		result $? "a rank dies in the middle: the others get an error ($victim, $shape)"
		touch "$work/$how/over"
		wait
	done
done
finish
