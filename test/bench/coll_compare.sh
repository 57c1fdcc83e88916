#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# coll_compare.sh - collectives of one MPICH, run four ways in turns:
#
#   nic    by the NICs (glex netmod, NOLOCAL)     host   by MPICH, over the same netmod
#   shm    by MPICH, in its own shared memory     both   by the NICs, messages in shared memory
#
# What counts is the median over the rounds.
set -u
LC_ALL=C
export LC_ALL

prog=coll_compare.sh
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$here/../..
# shellcheck source=test/bench/lib.sh
. "$here/lib.sh"

all_rows=barrier,bcast,allreduce,reduce,allgather,gather,computing,overlap

usage()
{
	cat <<END
usage: $prog --prefix DIR [options]

  --prefix DIR   holds bin/mpicc and bin/mpiexec of an MPICH built with the glex netmod
  -n LIST        ranks (2,4,8,16,32)
  -r N           rounds (5)
  --sizes LIST   bytes of broadcasts and reductions, of each rank in gathers, from 8 (8)
  --time MS      of a sample, of which a row has some twenty (5)
  --ways LIST    of nic,host,shm,both
  --rows LIST    of $all_rows (all)
  --limit S      of one run (120)
END
}

prefix='' counts=2,4,8,16,32 rounds=5 sizes=8 time_ms=5 ways=nic,host,shm,both rows='' limit_s=120
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	esac
	[ $# -gt 1 ] || { usage >&2; exit 2; }
	case $1 in
	--prefix) prefix=$2 ;;
	-n) counts=$2 ;;
	-r) rounds=$2 ;;
	--sizes) sizes=$2 ;;
	--time) time_ms=$2 ;;
	--ways) ways=$2 ;;
	--rows) rows=$2 ;;
	--limit) limit_s=$2 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift 2
done
case $rounds in
'' | *[!0-9]* | 0) usage >&2; exit 2 ;;
esac
for row in $(echo "$rows" | tr ',' ' '); do
	case ",$all_rows," in
	*",$row,"*) ;;
	*) die "there is no row $row: $all_rows" ;;
	esac
done
counts=$(echo "$counts" | tr ',' ' ')
ways=$(echo "$ways" | tr ',' ' ')
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'clear_line; exit 130' HUP INT TERM
build_mpi_bench
"$prefix/bin/mpicc" -std=gnu11 -O2 -o "$work/coll_bench" "$here/coll_bench.c" >"$work/out" 2>&1 ||
	{ cat "$work/out" >&2; die "coll_bench could not be built"; }

# Each way's environment; what the caller has set must not mix them up.
run_way()
(
	unset MPIR_CVAR_NOLOCAL MPIR_CVAR_NO_LOCAL MPIR_CVAR_NEMESIS_NETMOD
	export GLEX_MPI_COLL=off
	case $1 in
	nic | host) export MPIR_CVAR_NOLOCAL=1 ;;
	shm | both) ;;
	*) die "there is no way $1: nic, host, shm or both" ;;
	esac
	case $1 in
	nic | both) export GLEX_MPI_COLL=all GLEX_MPI_COLL_AFTER=2 ;;
	esac
	timeout -k 5 "$limit_s" "$prefix/bin/mpiexec" -n "$2" "$work/coll_bench" "$sizes" "$time_ms" \
		${rows:+"$rows"} >"$work/out" 2>&1 || {
		clear_line
		tail -n 15 "$work/out" >&2
		die "$1, $2 ranks: mpiexec failed or did not end within $limit_s s"
	}
	sed "s/^/$1 $2 /" "$work/out" >"$work/got"
)

: >"$work/data"
find_usual
for n in $counts; do
	round=1
	while [ "$round" -le "$rounds" ]; do
		# shellcheck disable=SC2086 # words wanted
		for way in $(turned "$round" $ways); do
			progress "$n ranks, round $round of $rounds: $way"
			settled run_way "$way" "$n" || exit 1
		done
		round=$((round + 1))
	done
done
clear_line
raw_lines | awk -F '\t' -v rounds="$rounds" "$awk_raw_heading"'{ raw_heading(rounds) }'
awk -v ways="$ways" "$awk_median"'
{
	key = $3 SUBSEP $4 SUBSEP $2
	if (!(key in unit)) { row[++rows] = key; unit[key] = $6 }
	value[$1, key, ++count[$1, key]] = $5 + 0
}
END {
	n = split(ways, way, " ")
	printf "%-12s %6s %6s", "", "bytes", "ranks"
	for (i = 1; i <= n; i++) printf " %10s", way[i]
	print ""
	for (k = 1; k <= rows; k++) {
		split(row[k], part, SUBSEP)
		printf "%-12s %6d %6d", part[1], part[2], part[3]
		for (i = 1; i <= n; i++) {
			for (j = 1; j <= count[way[i], row[k]]; j++) v[j] = value[way[i], row[k], j]
			m = median(v, count[way[i], row[k]] + 0)
			printf " %10s", m == "NaN" ? "-" : sprintf("%.2f", m)
		}
		printf " %s\n", unit[row[k]]
	}
}' "$work/data"
