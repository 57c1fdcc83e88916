#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 79_mpi_coll.sh - collectives of MPI run by the NICs come to what MPICH's own come to: all
# shapes of trees, in order and not, alone and beside shared memory; back to back, by several
# threads; where no call blocks; a rank that is late; a rank that has no room for it; a rank that dies.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi coll "$src/test/mpi/coll.c"
compile_mpi coll_ahead "$src/test/mpi/coll_ahead.c" "$src/test/lib/seccomp.c"
compile_mpi coll_blocks "$src/test/mpi/coll_blocks.c"
compile_mpi coll_death "$src/test/mpi/coll_death.c"
compile_mpi coll_late "$src/test/mpi/coll_late.c"
compile_mpi coll_merged "$src/test/mpi/coll_merged.c"
compile_mpi coll_refused "$src/test/mpi/coll_refused.c"
compile_mpi coll_revoke "$src/test/mpi/coll_revoke.c"
compile_mpi coll_row "$src/test/mpi/coll_row.c"
compile_mpi coll_soak "$src/test/mpi/coll_soak.c"

# ran NAME=VALUE... RANKS WHAT: all is right, nobody complains, and how many the NICs have done is in $nic
ran() {
	local what=${*: -1} ranks=${*: -2:1}
	env "${@:1:$#-2}" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n "$ranks" "$work/bin/coll" "$RANDOM" 10 \
		>"$work/out" 2>"$work/err" && says ok out && [ ! -s "$work/err" ]
	result $? "$what"
	nic=$(sed -n 's/^nic \([0-9]*\),.*/\1/p' "$work/out")
	staged=$(sed -n 's/^nic .* staged \([0-9]*\),.*/\1/p' "$work/out")
	gathers=$(sed -n 's/^nic .*, gathers \([0-9]*\),.*/\1/p' "$work/out")
}

export GLEX_MPI_COLL=nodes GLEX_MPI_COLL_AFTER=2
ran GLEX_MPI_COLL=off 4 "4 ranks, without the NICs"
[ "$nic" = 0 ]
result $? "and they have run none"
ran GLEX_MPI_COLL_AFTER=1 GLEX_MPI_COLL_STAGE=64K 4 "4 ranks"
[ "$nic" -gt 2000 ] && [ "$gathers" -gt 400 ]
result $? "and the NICs have run most of them, gathers too"
[ "$staged" -gt 100 ]
result $? "and long reductions go through memory of theirs ($staged)"
ran GLEX_MPI_COLL_STAGE=0 3 "3 ranks, without such memory"
[ "$nic" -gt 2000 ] && [ "$staged" = 0 ]
result $? "and none does"
ran GLEX_MPI_COLL_PACKETS=3 GLEX_REORDER=16 GLEX_REORDER_SEED=5 3 "3 ranks, each to each, several packets, out of order"
[ "$staged" = 0 ]
result $? "where no long reduction can go so"
ran GLEX_MPI_COLL_PACKETS=3 18 "18 ranks, in teams, several packets"
ran 16 "16 ranks, as many as gather by the NICs"
[ "$gathers" -gt 400 ]
result $? "and they do"
ran GLEX_MPI_COLL_SHAPE=kary GLEX_MPI_COLL_DEGREE=2 GLEX_MPI_COLL_PACKETS=5 5 "5 ranks, a k-ary tree of degree 2, several packets"
[ "$gathers" = 0 ]
result $? "along which the NICs do not gather"
ran GLEX_MPI_COLL_SHAPE=kary GLEX_MPI_COLL_DEGREE=8 11 "11 ranks, a k-ary tree of degree 8"
ran GLEX_MPI_COLL_SHAPE=knomial GLEX_MPI_COLL_DEGREE=2 GLEX_REORDER=16 GLEX_REORDER_SEED=3 6 \
	"6 ranks, a binomial tree, out of order"
ran GLEX_MPI_COLL_SHAPE=knomial GLEX_MPI_COLL_DEGREE=32 GLEX_MPI_COLL_PACKETS=3 2 "2 ranks"
ran MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NUM_CLIQUES=2 4 "4 ranks, two of which share memory with each other"
ran MPIR_CVAR_NOLOCAL=0 GLEX_MPI_COLL=all 4 "4 ranks that share memory"
[ "$nic" -gt 2000 ]
result $? "and the NICs have run most of them"
ran MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NEMESIS_NETMOD=tcp 2 "2 ranks over tcp"
[ "$nic" = 0 ]
result $? "and the NICs have run none"

# blocks NAME=VALUE... RANKS "SEED [ahead]" STAGED EXCHANGES WHAT: + for some
blocks() {
	local what=${*: -1} exchanges=${*: -2:1} staged=${*: -3:1} args=${*: -4:1} ranks=${*: -5:1}
	# shellcheck disable=SC2086 # one or two arguments
	env "${@:1:$#-5}" timeout -k 5 100 "$GLEX_PREFIX/bin/mpiexec" -n "$ranks" "$work/bin/coll_blocks" $args \
		>"$work/out" 2>"$work/err" && says ok out && [ ! -s "$work/err" ] &&
		grep -qE "^staged ${staged/+/[1-9][0-9]*}, exchanges ${exchanges/+/[1-9][0-9]*}, of any ${exchanges/+/[1-9][0-9]*}, " "$work/out"
	result $? "blocks of each, and for each, $what"
}
blocks 2 "$RANDOM" + + "2 ranks"
blocks 4 "$RANDOM" + + "4 ranks"
blocks GLEX_MPI_COLL_AFTER=1 4 "$RANDOM ahead" + + "4 ranks, nothing blocks at first"
blocks GLEX_MPI_COLL_STAGE=4K 3 "$RANDOM ahead" + + "3 ranks, little memory"
blocks 16 "$RANDOM ahead" + + "16 ranks"
blocks GLEX_MPI_COLL_STAGE=0 3 "$RANDOM" 0 0 "without such memory"
blocks GLEX_MPI_COLL_AFTER=1 GLEX_REORDER=16 GLEX_REORDER_SEED=7 4 "$RANDOM ahead" 0 0 "out of order, where none can be had"
blocks GLEX_MPI_COLL_SHAPE=kary 4 "$RANDOM ahead" 0 0 "a tree"
blocks MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NUM_CLIQUES=2 GLEX_MPI_COLL=all 4 "$RANDOM" + + "two share memory with each other"

# rows NAME=VALUE... RANKS LIMIT|tree WHAT
rows() {
	local what=${*: -1} limit=${*: -2:1} ranks=${*: -3:1}
	env "${@:1:$#-3}" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n "$ranks" "$work/bin/coll_row" "$limit" \
		>"$work/out" 2>"$work/err" && says ok out && [ ! -s "$work/err" ]
	result $? "calls with the same root in a row, $what"
}
rows 8 64 "as many as usual are by the NICs"
rows GLEX_MPI_COLL_ROW=5 4 5 "5 of each row are"
rows GLEX_MPI_COLL_ROW=1 3 1 "the first of each row is"
rows GLEX_MPI_COLL_ROW=0 4 0 "all are"
rows GLEX_MPI_COLL_SHAPE=kary 4 tree "on a tree all are"
rows GLEX_MPI_COLL_ROW=6 9 6 "with little room"
rows GLEX_MPI_COLL_ROW=9 17 9 "in teams"
rows MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NUM_CLIQUES=2 GLEX_MPI_COLL=all GLEX_MPI_COLL_ROW=3 4 0 "two share memory with each other: all are"

# They would wait for each other without end.
timeout -k 5 30 "$GLEX_PREFIX/bin/mpiexec" -n 1 "$work/bin/coll" 1 2 : -n 1 -env GLEX_MPI_COLL_AFTER 5 "$work/bin/coll" 1 2 \
	>"$work/out" 2>"$work/err"
[ $? != 124 ] && grep -q 'rank 1 has .*,5,.*give all ranks the same' "$work/err" "$work/out"
result $? "ranks with different settings are refused, and told which"

# merged SETTING "YES|NO" WHAT: whether the NICs have run any
merged() {
	mpirun_ 2 "$work/bin/coll_merged" "$1" >"$work/out" 2>"$work/err" && says ok out && [ ! -s "$work/err" ] &&
		if [ "$2" = YES ]; then grep -q 'reductions [1-9]' "$work/out"; else says "reductions 0" out; fi
	result $? "$3"
}
merged NOTHING=1 YES "with ranks of another group of processes, the NICs run them too"
merged GLEX_MPI_COLL_AFTER=9 NO "and MPICH does if that has other settings"
merged GLEX_MPI_COLL=off NO "and if it has the NICs run none"

timeout -k 5 300 sh "$src/test/bench/coll_compare.sh" --prefix "$GLEX_PREFIX" -n 2,3 -r 1 --time 1 >"$work/out" 2>"$work/err" &&
	[ ! -s "$work/err" ] &&
	awk '/^$/ { judged = 1 }
	judged || $2 !~ /^[0-9]+$/ || $9 == "%" { next }
	$1 == "turn" { turns += $8 > 0; next }
	NF != 9 || !($4 > 0 && $5 > 0 && $6 > 0 && $7 > 0) { bad++ }
	{ rows++; least += $1 != "begin" && $8 > 0 }
	END { exit bad || rows != 20 || least != 12 || turns != 2 || !judged }' "$work/out"
result $? "test/bench/coll_compare.sh measures them beside MPICH's algorithms, its shared memory, and what it takes at least"

# Who gives way does so to those of its session.  Process group and session of whoever reads it:
timeout 20 "$GLEX_PREFIX/bin/mpiexec" -n 3 cut -d ' ' -f 5,6 /proc/self/stat >"$work/ids"
[ "$(cut -d ' ' -f 2 "$work/ids" | sort -u | wc -l)" = 1 ] && [ "$(cut -d ' ' -f 1 "$work/ids" | sort -u | wc -l)" = 3 ]
result $? "ranks are in one session, and in process groups of their own"

# Longer than a rank that has died would be waited for.
for shape in auto kary; do
	GLEX_MPI_COLL_SHAPE=$shape mpirun_ 4 "$work/bin/coll_late" 2 >"$work/out" 2>"$work/err" && says ok out &&
		[ ! -s "$work/err" ]
	result $? "one is late, and the others leave, $shape"
done

# soaked SHAPE RANKS CALLS THREADS
soaked() {
	GLEX_MPI_COLL_SHAPE=$1 mpirun_ "$2" "$work/bin/coll_soak" "$work/come" "$3" "$RANDOM" "$4" >"$work/out" 2>"$work/err" &&
		says ok out && [ ! -s "$work/err" ]
	result $? "$2 ranks, $3 calls back to back by $4 threads, late at random ($1)"
	rm -f "$work/come"
}
soaked auto 8 2000 1
soaked kary 5 1000 1
soaked auto 3 500 3
soaked knomial 3 300 3

for shape in auto kary; do
	GLEX_MPI_COLL_SHAPE=$shape mpirun_ 4 "$work/bin/coll_refused" >"$work/out" 2>"$work/err" && says "trees 1, refused 1" out &&
		says ok out && says "this process can have no more" err
	result $? "a rank can have no endpoints: MPICH does it for all, and the next communicator has a tree ($shape)"
done

# ahead NAME=VALUE... RANKS "SEED [MORE]" LONG REFUSED WHAT: so many long ones, + for some, by the NICs, so many refused
ahead() {
	local what=${*: -1} refused=${*: -2:1} long=${*: -3:1} args=${*: -4:1} ranks=${*: -5:1}
	# shellcheck disable=SC2086 # one or two arguments
	env GLEX_MPI_COLL_LONG=4096 "${@:1:$#-5}" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n "$ranks" "$work/bin/coll_ahead" $args \
		>"$work/out" 2>"$work/err" && says ok out && grep -qE "long ${long/+/[1-9][0-9]*}, .* refused $refused\$" "$work/out"
	result $? "nothing blocks, $what"
}
ahead 4 "$RANDOM" + 0 "4 ranks"
ahead GLEX_MPI_COLL_AFTER=7 GLEX_MPI_COLL_SHAPE=kary GLEX_MPI_COLL_DEGREE=2 5 "$RANDOM" + 0 "5 ranks, a k-ary tree"
ahead GLEX_MPI_COLL_SHAPE=knomial GLEX_REORDER=16 GLEX_REORDER_SEED=9 3 "$RANDOM" + 0 "3 ranks, a binomial tree, out of order"
ahead GLEX_MPI_COLL_AFTER=1 2 "$RANDOM" + 0 "2 ranks, from the first call on"
ahead GLEX_MPI_COLL=all MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NUM_CLIQUES=2 4 "$RANDOM" + 0 "4 ranks, two of which share memory with each other"
ahead 4 "$RANDOM refused" 0 1 "a rank can have no endpoints"
ahead GLEX_REORDER=16 GLEX_MPI_COLL_SHAPE=kary 3 "$RANDOM refused" 0 1 "a rank can have no endpoints, out of order"
ahead GLEX_ADOPT=never 3 "$RANDOM unreachable" 0 0 "memory that the system lets nobody reach"
ahead GLEX_MPI_COLL=off 3 "$RANDOM" 0 0 "without the NICs"

for shape in auto kary; do
	for what in barrier iallreduce bcast bcast_from new_barrier new_iallreduce iallgather ialltoall; do
		GLEX_MPI_COLL_SHAPE=$shape GLEX_MPI_COLL_AFTER=1 mpirun_ 3 "$work/bin/coll_revoke" $what >"$work/out" 2>"$work/err" && says ok out &&
			{ [ "${what#new_}" = "$what" ] || ! grep "came to nothing" "$work/err"; } # no tree, so nobody is written to
		result $? "revoked while the others wait: $what ($shape)"
	done
done

# Who is left gets an error, and does not wait for ever.  mpiexec does not learn of the death: it
# would end them all.
all_told() {
	[ "$(find "$work/$how" -name 'told.*' | wc -l)" = 3 ]
}
# dies WHAT NAME=VALUE...
dies() {
	local what=$1
	how=$what.$((++deaths))
	shift
	mkdir "$work/$how"
	# shellcheck disable=SC2016 # for the ranks' shells
	env "$@" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n 4 sh -c '"$@"; until [ -e "$3/over" ]; do sleep 0.1; done' rank \
		"$work/bin/coll_death" "$what" "$work/$how" >"$work/out" 2>"$work/err" &
	within 20 all_told
	result $? "a rank dies in the middle: the others get an error ($what, $*)"
	touch "$work/$how/over"
	wait
}
deaths=0
dies barrier GLEX_MPI_COLL_SHAPE=kary
dies barrier GLEX_MPI_COLL_SHAPE=knomial
dies bcast GLEX_MPI_COLL_SHAPE=kary
dies bcast GLEX_MPI_COLL_SHAPE=auto
dies reduce GLEX_MPI_COLL_SHAPE=knomial
dies reduce GLEX_MPI_COLL_SHAPE=auto
dies inside GLEX_MPI_COLL_SHAPE=kary
dies inside GLEX_MPI_COLL_SHAPE=auto
dies ireduce GLEX_MPI_COLL_SHAPE=auto
dies alltoall GLEX_MPI_COLL_SHAPE=auto
dies ialltoall GLEX_MPI_COLL_SHAPE=auto
dies inter GLEX_MPI_COLL_SHAPE=kary
dies inter GLEX_MPI_COLL_SHAPE=auto
dies inter GLEX_MPI_COLL=off
for shape in auto kary knomial; do
	dies build GLEX_MPI_COLL_SHAPE=$shape GLEX_MPI_COLL_DEGREE=2 GLEX_MPI_COLL_AFTER=1
	dies ibuild GLEX_MPI_COLL_SHAPE=$shape GLEX_MPI_COLL_DEGREE=2 GLEX_MPI_COLL_AFTER=1
done
dies ireduce GLEX_MPI_COLL=off MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM=sched_recursive_doubling
dies ireduce GLEX_MPI_COLL=off MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM=tsp_recexch_single_buffer
finish
