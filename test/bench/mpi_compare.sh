#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mpi_compare.sh - one MPICH, three ways between two ranks, measured in turns:
#
#   glex   the glex netmod (NOLOCAL)      shm   MPICH's own shared memory
#   tcp    the tcp netmod (NOLOCAL)
#
# A run of each, then the next round, so that whatever the machine does meanwhile
# meets all three.  What counts is the median over the rounds.
set -u
LC_ALL=C
export LC_ALL

prog=mpi_compare.sh
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$here/../..
# shellcheck source=test/bench/lib.sh
. "$here/lib.sh"

usage()
{
	cat <<END
usage: $prog --prefix DIR [options]

  --prefix DIR   holds bin/mpicc and bin/mpiexec of an MPICH built with the glex netmod
  --out DIR      write mpi_compare.tsv, .png and .svg there (default: only print)
  --tsv FILE     write the figures alone
  -r N           rounds (5)
  --quick        2 rounds, few sizes, short samples: well below a minute
  --tests LIST   of latency,rate,bandwidth
  --sizes LIST   bytes: 8,64,4K:1M
  --time MS      of a row (100)
  --ways LIST    of glex,shm,tcp
  --limit S      of one run (180)
END
}

# ---- options -----------------------------------------------------------------

prefix=
out=
tsv=
rounds=5
tests=latency,rate,bandwidth
sizes=8:4M
time_ms=100
ways="glex shm tcp"
limit_s=180

while [ $# -gt 0 ]; do
	option=$1
	shift
	case $option in
	--quick)
		rounds=2
		time_ms=40
		sizes=8,64,512,4K,16K,64K,256K,1M,4M
		continue
		;;
	-h | --help)
		usage
		exit 0
		;;
	esac
	[ $# -gt 0 ] || { usage >&2; exit 2; }
	case $option in
	--prefix) prefix=$1 ;;
	--out) out=$1 ;;
	--tsv) tsv=$1 ;;
	-r) rounds=$1 ;;
	--tests) tests=$1 ;;
	--sizes) sizes=$1 ;;
	--time) time_ms=$1 ;;
	--ways) ways=$(echo "$1" | tr ',' ' ') ;;
	--limit) limit_s=$1 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done
case $rounds in
'' | *[!0-9]* | 0) usage >&2; exit 2 ;;
esac

# ---- running -----------------------------------------------------------------

work=$(mktemp -d) || exit 1
trap 'end_run; rm -rf "$work"' EXIT
trap 'clear_line; exit 130' HUP INT TERM

# Each way's environment; what the caller has set must not mix the three up.
environment()
{
	unset MPIR_CVAR_NOLOCAL MPIR_CVAR_NO_LOCAL MPIR_CVAR_NEMESIS_NETMOD
	case $1 in
	glex) MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=glex ;;
	tcp) MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=tcp ;;
	shm) return ;;
	*) die "there is no way $1: glex, shm or tcp" ;;
	esac
	export MPIR_CVAR_NOLOCAL MPIR_CVAR_NEMESIS_NETMOD
}

# run_way WAY ROUND: leaves "WAY test size value unit ..." in got.
run_way()
{
	environment "$1"
	run_marked "$limit_s" "$work/out" "$prefix/bin/mpiexec" -n 2 "$work/mpi_bench" -t "$tests" -s "$sizes" -m "$time_ms"
	status=$?
	if [ $status -ne 0 ]; then
		clear_line
		tail -n 15 "$work/out" >&2
		[ $status -eq 124 ] && die "$1, round $2: mpiexec did not end within $limit_s s"
		die "$1, round $2: mpiexec failed with exit status $status"
	fi
	awk -v way="$1" '/^(latency|rate|bandwidth) / { print way, $0 }' "$work/out" >"$work/got"
}

measure()
{
	round=1
	: >"$work/data"
	find_usual
	while [ "$round" -le "$rounds" ]; do
		# shellcheck disable=SC2086 # words wanted
		for way in $(turned "$round" $ways); do
			progress "round $round of $rounds: $way"
			settled run_way "$way" "$round"
		done
		round=$((round + 1))
	done
	clear_line
}

# ---- results -----------------------------------------------------------------

# Medians, smallest and largest over the rounds, one line a test and size.
to_tsv()
{
	raw_lines | tee "$work/raw_lines"
	awk -v raw="$(awk '$2 == "raw_ns" { print $3 }' "$work/raw_lines")" "$awk_median"'
	{
		key = $1 SUBSEP $2 SUBSEP $3
		value[key, ++count[key]] = $4
		if (!(($2, $3) in seen)) {
			seen[$2, $3] = ++rows
			test[rows] = $2
			size[rows] = $3
			unit[rows] = $5
		}
	}
	function summary(way, t, s,   n, i, v, key, middle) {
		key = way SUBSEP t SUBSEP s
		n = count[key]
		if (!n)
			return "NaN\tNaN\tNaN"
		for (i = 1; i <= n; i++)
			v[i] = value[key, i] + 0
		middle = median(v, n)
		return sprintf("%.6g\t%.6g\t%.6g", middle, v[1], v[n])
	}
	END {
		print "# test\tsize\tunit\tglex\tglex_min\tglex_max\tshm\tshm_min\tshm_max\ttcp\ttcp_min\ttcp_max\traw_ns"
		for (i = 1; i <= rows; i++)
			printf "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", test[i], size[i], unit[i], summary("glex", test[i], size[i]),
				summary("shm", test[i], size[i]), summary("tcp", test[i], size[i]), raw
	}' "$work/data"
}

print_table()
{
	awk -F '\t' -v rounds="$rounds" "$awk_raw_heading"'
	function figure(x, digits) {
		return x == "NaN" ? "-" : sprintf("%." digits "f", x)
	}
	function ratio(x, y) {
		return x == "NaN" || y == "NaN" || y == 0 ? "-" : sprintf("%.2f", x / y)
	}
	/^#/ { raw_heading(rounds); next }
	$1 != last {
		last = $1
		name = $1 == "latency" ? "latency, us" : $1 == "rate" ? "message rate, million a second" : "bandwidth, GB/s"
		printf "\n%-31s %10s %10s %10s   %8s %8s\n", name ", bytes", "glex", "shm", "tcp", "glex/shm", "glex/tcp"
	}
	{
		scale = $1 == "bandwidth" ? 1000 : 1
		digits = $1 == "bandwidth" ? 2 : 3
		for (i = 4; i <= 12; i++)
			if ($i != "NaN")
				$i /= scale
		printf "%31d %10s %10s %10s   %8s %8s\n", $2, figure($4, digits), figure($7, digits), figure($10, digits),
			ratio($4, $7), ratio($4, $10)
	}' "$work/tsv"
}

draw()
{
	if ! command -v gnuplot >/dev/null; then
		echo "$prog: no picture: gnuplot is not installed" >&2
		return
	fi
	for kind in png svg; do
		gnuplot -e "tsv='$out/mpi_compare.tsv'; picture='$out/mpi_compare.$kind'" \
			"$top/examples/plots/mpi_compare.gp" || die "gnuplot failed"
	done
	echo "picture: $out/mpi_compare.png (and .svg), figures: $out/mpi_compare.tsv"
}

[ -n "$prefix" ] || { usage >&2; exit 2; }
build_mpi_bench
measure
to_tsv >"$work/tsv"
print_table
if [ -n "$tsv" ]; then
	cp "$work/tsv" "$tsv" || die "cannot write $tsv"
fi
if [ -n "$out" ]; then
	if ! mkdir -p "$out" || ! cp "$work/tsv" "$out/mpi_compare.tsv"; then
		die "cannot write to $out"
	fi
	echo
	draw
fi
