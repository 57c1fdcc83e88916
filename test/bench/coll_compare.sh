#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# coll_compare.sh - collectives of one MPICH, run in several ways by turns:
#
#   nic    by the NICs (glex netmod, NOLOCAL)     host   by MPICH, over the same netmod
#   shm    by MPICH, in its own shared memory     both   by the NICs, messages in shared memory
#   least  by a few lines in shared memory, without any library (coll_least.h); it has a row more, turn: what a
#          change from one rank to another takes
#
# What counts is the median over the rounds.  By these it is said at the end what nic had to reach.
set -u
LC_ALL=C
export LC_ALL

prog=coll_compare.sh
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$here/../..
# shellcheck source=test/bench/lib.sh
. "$here/lib.sh"

all_rows=turn,barrier,bcast,allreduce,reduce,allgather,gather,computing,overlap

usage()
{
	cat <<END
usage: $prog --prefix DIR [options]

  --prefix DIR   holds bin/mpicc and bin/mpiexec of an MPICH built with the glex netmod
  -n LIST        ranks (2,4,8,16,32)
  -r N           rounds (5)
  --sizes LIST   bytes of broadcasts and reductions, of each rank in gathers, from 8 (8)
  --time MS      of a sample, of which a row has some twenty (5)
  --ways LIST    of nic,host,shm,both,least
  --rows LIST    of $all_rows (all)
  --limit S      of one run (120)
END
}

prefix='' counts=2,4,8,16,32 rounds=5 sizes=8 time_ms=5 ways=nic,host,shm,both,least rows='' limit_s=120
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
"$prefix/bin/mpicc" -std=gnu11 -O2 -o "$work/coll_bench" "$here/coll_bench.c" "$here/coll_least.c" >"$work/out" 2>&1 ||
	{ cat "$work/out" >&2; die "coll_bench could not be built"; }

# Each way's environment; what the caller has set must not mix them up.
run_way()
(
	unset MPIR_CVAR_NOLOCAL MPIR_CVAR_NO_LOCAL MPIR_CVAR_NEMESIS_NETMOD
	least=''
	export GLEX_MPI_COLL=off
	case $1 in
	nic | host) export MPIR_CVAR_NOLOCAL=1 ;;
	shm | both | least) ;;
	*) die "there is no way $1: nic, host, shm, both or least" ;;
	esac
	case $1 in
	nic | both) export GLEX_MPI_COLL=all GLEX_MPI_COLL_AFTER=2 ;;
	least) least=1 ;;
	esac
	timeout -k 5 "$limit_s" "$prefix/bin/mpiexec" -n "$2" "$work/coll_bench" "$sizes" "$time_ms" \
		"${rows:-$all_rows}" ${least:+least} >"$work/out" 2>&1 || {
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
awk -v ways="$ways" -v cores="$(first_cores 1000 | wc -w)" "$awk_median"'
function value_of(way, k,   j, n, v) {
	n = count[way, row[k]] + 0
	for (j = 1; j <= n; j++) v[j] = value[way, row[k], j]
	return median(v, n)
}
function ratio(way, k) {
	return value_of(way, k) / value_of("nic", k)
}
# Where ranks outnumber processors each must have its turn, which is time that no collective can save.
function judge(k, ranks,   host, shm, least, met) {
	host = ratio("host", k)
	shm = ratio("shm", k)
	least = 1 / ratio("least", k)
	if (ranks <= cores)
		met = host >= 1 ? "met" : "MISSED"
	else
		met = host >= 4 && shm >= 2 ? "met" : least <= most_of_least ? "met: near what it takes at least" : "MISSED"
	printf "%-12s %6d %6d %10.2f %10.2f %10.2f  %s\n", part[1], part[2], part[3], host, shm, least, met
}
{
	key = $3 SUBSEP $4 SUBSEP $2
	if (!(key in unit)) { row[++rows] = key; unit[key] = $6 }
	value[$1, key, ++count[$1, key]] = $5 + 0
}
END {
	most_of_least = 1.5
	n = split(ways, way, " ")
	printf "%-12s %6s %6s", "", "bytes", "ranks"
	for (i = 1; i <= n; i++) printf " %10s", way[i]
	print ""
	for (k = 1; k <= rows; k++) {
		split(row[k], part, SUBSEP)
		printf "%-12s %6d %6d", part[1], part[2], part[3]
		for (i = 1; i <= n; i++) {
			m = value_of(way[i], k)
			printf " %10s", m == "NaN" ? "-" : sprintf("%.2f", m)
		}
		printf " %s\n", unit[row[k]]
	}
	if (!(" " ways " " ~ / nic / && " " ways " " ~ / host / && " " ways " " ~ / shm / && " " ways " " ~ / least /))
		exit
	printf "\n%-12s %6s %6s %10s %10s %10s\n", "", "bytes", "ranks", "host/nic", "shm/nic", "nic/least"
	printf "%-12s %6s %6s %10s %10s %10s\n", "limit", "", "<=" cores, 1, "", ""
	printf "%-12s %6s %6s %10s %10s %10s\n", "limit", "", ">" cores, 4, 2, "or " most_of_least
	for (k = 1; k <= rows; k++) {
		split(row[k], part, SUBSEP)
		if (part[1] ~ /^(barrier|bcast|allreduce)$/ && part[2] <= 8)
			judge(k, part[3])
	}
}' "$work/data"
