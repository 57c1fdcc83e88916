#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# floor.sh - the speed below which a change is not acceptable.
#
# One interleaved run of two ranks over glex (NOLOCAL), shared memory and tcp of
# the same MPICH build.  Ratios only: they hold on any machine.  Exit status: 0
# if all are met, 1 if one is missed or nothing could be measured.
set -u
LC_ALL=C
export LC_ALL

prog=floor.sh
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=test/bench/lib.sh
. "$here/lib.sh"

usage()
{
	cat <<END
usage: floor.sh --prefix DIR [-r ROUNDS]

  --prefix DIR   holds bin/mpicc and bin/mpiexec of an MPICH built with the glex netmod
  -r N           rounds, at least 5 if the verdict is to count (7)
END
}

prefix=
rounds=7
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--prefix | -r) [ $# -gt 1 ] || { usage >&2; exit 2; } ;;
	*) usage >&2; exit 2 ;;
	esac
	[ "$1" = -r ] && rounds=$2
	[ "$1" = --prefix ] && prefix=$2
	shift 2
done
[ -n "$prefix" ] || { usage >&2; exit 2; }

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM

"$here/mpi_compare.sh" --prefix "$prefix" -r "$rounds" --sizes 8,64K,1M --tsv "$work/tsv" >"$work/out" ||
	die "nothing measured"

awk -F '\t' -v rounds="$rounds" "$awk_raw_heading"'
/^#/ {
	raw_heading(rounds)
	if ($1 == "# raw_ns")
		raw = $2
	next
}
!heads++ {
	printf "\n%-22s %10s %-5s %10s %-5s %7s %10s\n", "", "glex", "", "peer", "", "ratio", "limit"
}
{
	glex[$1, $2] = $4
	shm[$1, $2] = $7
	tcp[$1, $2] = $10
	unit[$1, $2] = $3
}
function judge(test, size, name, peer, peer_name, sign, limit,   mine, ratio, good) {
	mine = glex[test, size]
	if (mine == "" || mine == "NaN" || peer == "" || peer == "NaN" || peer == 0) {
		printf "%-22s not measured\n", name
		missed++
		return
	}
	ratio = mine / peer
	good = sign == "<=" ? ratio <= limit : ratio >= limit
	missed += !good
	printf "%-22s %10.3f %-5s %10.3f %-5s %7.2f %5s %4.2f  %s\n", name, mine, unit[test, size], peer, peer_name, ratio,
		sign, limit, good ? "pass" : "FAIL"
}
END {
	judge("latency", 8, "latency 8 B", shm["latency", 8], "shm", "<=", 2.0)
	judge("rate", 8, "message rate 8 B", shm["rate", 8], "shm", ">=", 0.5)
	judge("bandwidth", 65536, "bandwidth 64 KiB", tcp["bandwidth", 65536], "tcp", ">=", 2.0)
	judge("bandwidth", 1048576, "bandwidth 1 MiB", tcp["bandwidth", 1048576], "tcp", ">=", 2.0)
	if (glex["latency", 8] != "NaN" && raw > 0)
		printf "\nlatency 8 B is %.1f RAW over glex, %.1f over shm\n", glex["latency", 8] * 1e3 / raw,
			shm["latency", 8] * 1e3 / raw
	printf "%s\n", missed ? missed " missed" : "all met"
	exit missed != 0
}' "$work/tsv"
