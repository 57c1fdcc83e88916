# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# lib.sh - what the benchmark scripts share; to be sourced by one that has set prog.

# Where standard error is a terminal: what is being done just now.
progress()
{
	# shellcheck disable=SC2154 # prog is the one that sources this
	[ -t 2 ] && printf '\r\033[K%s: %s' "$prog" "$*" >&2
}

clear_line()
{
	[ -t 2 ] && printf '\r\033[K' >&2
}

die()
{
	clear_line
	echo "$prog: $*" >&2
	exit 1
}

# The first cores this process may run on, as many as asked for: "0 1"
first_cores()
{
	awk -v want="$1" '$1 == "Cpus_allowed_list:" {
		count = split($2, range, ",")
		for (i = 1; i <= count; i++) {
			n = split(range[i], end, "-")
			for (core = end[1]; core <= end[n] && want > 0; core++) {
				printf "%d ", core
				want--
			}
		}
	}' /proc/self/status
}

# For awk programs: the median of v[1..n], which it sorts
# shellcheck disable=SC2034 # used by those who source this
awk_median='
function median(v, n,   i, j, x) {
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && v[j] > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
	return n == 0 ? "NaN" : n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}'

# Ranks may outlive their launcher, in process groups of their own; they are known by
# a variable that only these runs have.  glexd has it too, but may be shared with
# other jobs, and leaves by itself.
bench_mark=$prog.$$
bench_running=

sweep()
{
	for environ in /proc/[0-9]*/environ; do
		grep -zqx "GLEX_BENCH_MARK=$bench_mark" "$environ" 2>/dev/null || continue
		pid=${environ#/proc/}
		pid=${pid%/environ}
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = glexd ] || kill -9 "$pid" 2>/dev/null
	done
}

# run_marked SECONDS OUT COMMAND...: its exit status, 124 if it had to be ended
run_marked()
{
	limit=$1 bench_out=$2
	shift 2
	GLEX_BENCH_MARK=$bench_mark timeout -k 5 "$limit" "$@" >"$bench_out" 2>&1 &
	bench_running=$!
	wait $bench_running
	bench_status=$?
	bench_running=
	[ $bench_status -eq 0 ] || sweep
	return $bench_status
}

# To be called on exit: nothing is left running
end_run()
{
	# shellcheck disable=SC2086 # there may be several
	[ -z "$bench_running" ] || { kill $bench_running; sweep; } 2>/dev/null
}

# ---- of those that compare MPIs: prefix, top, here and work are theirs ---------

build_mpi_bench()
{
	# shellcheck disable=SC2154
	for tool in mpicc mpiexec; do
		[ -x "$prefix/bin/$tool" ] || die "there is no $prefix/bin/$tool: give --prefix of an MPICH with the glex netmod"
	done
	progress "building mpi_bench"
	# shellcheck disable=SC2154
	"$prefix/bin/mpicc" -std=c11 -D_GNU_SOURCE -O2 -I"$top/libglex/tools" -o "$work/mpi_bench" "$here/mpi_bench.c" \
		"$top/libglex/tools/perf_base.c" "$top/libglex/tools/perf_raw.c" >"$work/out" 2>&1 ||
		{ cat "$work/out" >&2; die "mpi_bench could not be built"; }
}

# turned ROUND WORD...: the words, in each round from the next of them on: what goes first may be slower for that
turned()
{
	skip=$(($1 - 1))
	shift
	skip=$((skip % $#))
	while [ "$skip" -gt 0 ]; do
		first=$1
		shift
		set -- "$@" "$first"
		skip=$((skip - 1))
	done
	echo "$@"
}

# ---- near and far ----------------------------------------------------------------
#
# Virtual processors move: in one moment they share a cache, in the next they do not,
# and that is another machine (RAW 27 and 155 ns; whatever two processes do together is
# two to five times as slow).  Figures of one do not belong beside figures of the other.

# What the machine gives just now: raw_ns, and in $work/raw_now lines "raw 8 NS" and, if known, "busy - TASKS".  For those
# that have built mpi_bench; others have one of their own.
measure_raw()
{
	"$work/mpi_bench" --raw >"$work/raw_now" || die "RAW could not be measured"
	raw_ns=$(awk '$1 == "raw" { print $3 }' "$work/raw_now")
}

is_usual()
{
	awk -v a="$1" -v b="$usual_ns" 'BEGIN { exit !(a < 1.6 * b && b < 1.6 * a) }'
}

# To be called first: what this run of the script holds for its machine
find_usual()
{
	usual_ns=$(for _ in 1 2 3 4 5; do
		measure_raw
		echo "$raw_ns"
		sleep 0.2
	done | sort -n | sed -n 3p)
	strays=0 settled_runs=0
}

# settled COMMAND...: what the command leaves in $work/got goes to $work/data; it is made again,
# up to four times, as long as the machine was another before it or after.
settled()
{
	remade=0
	measure_raw
	while :; do
		before_ns=$raw_ns
		: >"$work/got"
		"$@" || return
		measure_raw
		is_usual "$before_ns" && is_usual "$raw_ns" && break
		if [ $remade -eq 4 ]; then
			strays=$((strays + 1))
			break
		fi
		remade=$((remade + 1))
	done
	settled_runs=$((settled_runs + 1))
	cat "$work/raw_now" >>"$work/raw"
	cat "$work/got" >>"$work/data"
}

# as_it_is COMMAND...: the same made once, of what compares by itself
as_it_is()
{
	: >"$work/got"
	"$@" || return
	measure_raw
	cat "$work/raw_now" >>"$work/raw"
	cat "$work/got" >>"$work/data"
}

# RAW at each run and how busy the machine was, each "# name median min max"; strays among the settled runs
raw_lines()
{
	awk "$awk_median"'
	{ value[$1, ++count[$1]] = $3 }
	function line(label, name,   i, v, middle) {
		for (i = 1; i <= count[name]; i++)
			v[i] = value[name, i] + 0
		middle = median(v, count[name])
		printf "# %s\t%.6g\t%.6g\t%.6g\n", label, middle, v[1], v[count[name]]
	}
	END { line("raw_ns", "raw"); line("busy", "busy") }' "$work/raw"
	printf '# strays\t%d\t%d\n' "$strays" "$settled_runs"
}

# For awk programs that print those lines: call it for every line that begins with #
# shellcheck disable=SC2034 # used by those who source this
awk_raw_heading='
function raw_heading(rounds) {
	if ($1 == "# raw_ns")
		printf "medians of %d interleaved rounds; RAW %.0f ns one way (%.0f to %.0f)\n", rounds, $2, $3, $4
	if ($1 == "# busy" && $2 > 0.3)
		printf "NOTE: %.1f other tasks were running on this machine: do not trust these figures\n", $2
	if ($1 == "# strays" && $2 > 0)
		printf "NOTE: in %d of %d runs the processors were not as far apart as in most: do not trust single figures\n", $2, $3
}'
