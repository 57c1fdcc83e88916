#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# soak.sh - random messages among ranks for a long time, every byte compared, over a
# network that reorders; or so many short collectives by the NICs, each with its result
# looked at.  The last line is "ok", or says what went wrong first.
set -u

prog=soak.sh
here=$(cd "$(dirname "$0")" && pwd)
prefix=$here/../../_install seconds=1800 ranks=6 seed=1 window=16 calls=

usage() {
	cat <<TXT
usage: $prog [options]

  --prefix DIR    MPI over glex: bin/mpicc, bin/mpiexec (default: _install at the top of this source tree)
  --seconds N     how long (default $seconds)
  --coll N        N barriers, allreduces, broadcasts and reductions instead of messages: none may be lost
                  or mixed with another, and neither a rank's memory nor glexd's may grow
  --np N          ranks (default $ranks)
  --seed N        what is random (default $seed)
  --reorder N     GLEX_REORDER, 0 for a network in order (default $window)

Other GLEX_ variables of the environment hold for the run.
TXT
}

die() {
	echo "$prog: $*" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--prefix | --seconds | --coll | --np | --seed | --reorder)
		[ $# -gt 1 ] || die "$1 needs a value"
		case $1 in
		--prefix) prefix=$2 ;;
		--seconds) seconds=$2 ;;
		--coll) calls=$2 ;;
		--np) ranks=$2 ;;
		--seed) seed=$2 ;;
		--reorder) window=$2 ;;
		esac
		shift
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		die "unknown argument $1"
		;;
	esac
	shift
done
for n in "$seconds" "${calls:-0}" "$ranks" "$seed" "$window"; do
	case $n in '' | *[!0-9]*) die "not a number: $n" ;; esac
done
for tool in mpicc mpiexec; do
	[ -x "$prefix/bin/$tool" ] || die "there is no $prefix/bin/$tool; ./quickstart build makes it"
done

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
program=${calls:+coll_}soak
"$prefix/bin/mpicc" -std=gnu11 -O2 -o "$work/$program" "$here/../mpi/$program.c" || die "the program does not compile"
export GLEX_JOB=soak-$$ MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=glex GLEX_REORDER=$window GLEX_REORDER_SEED=$seed

# run LIMIT ARGUMENT... - the program, for at most so many seconds.
run() {
	timeout -k 10 "$1" "$prefix/bin/mpiexec" -n "$ranks" "$work/$program" "${@:2}" </dev/null |
		tee "$work/out" | grep -vx ok
	grep -qx ok "$work/out" && return
	echo "$prog: failed with seed $seed; the last line above says where, nothing: it hung"
	exit 1
}

# KiB that glexd has in memory of its own, twice a second: what it shares with the ranks it touches little by little.
watch_glexd() {
	local pid

	while sleep 0.5; do
		pid=$(pgrep -f "glexd .*-$GLEX_JOB\$" | head -n 1)
		[ -z "$pid" ] || awk '/^RssAnon:/ {print $2}' "/proc/$pid/status" 2>/dev/null
		[ ! -t 2 ] || printf '\r%s: %d s ' "$prog" "$SECONDS" >&2
	done
}

glexd_grows() {
	awk '{kib[NR] = $1} END {
		for (i = 1; i <= NR; i++)
			if (i <= 1 + NR / 5) { if (kib[i] > early) early = kib[i] }
			else if (kib[i] > late) late = kib[i]
		printf "glexd %d KiB, then %d KiB\n", early, late
		exit NR > 0 && late <= early + 1024
	}' "$work/glexd"
}

if [ -z "$calls" ]; then
	run $((seconds + 120)) "$seconds" "$seed"
else
	watch_glexd >"$work/glexd" &
	trap 'kill $!; rm -rf "$work"' EXIT
	export GLEX_MPI_COLL=all GLEX_MPI_COLL_AFTER=1
	run $((calls / 500 + 120)) "$work/come" "$calls" "$seed"
	! glexd_grows || die "the memory of glexd grows, or was not seen"
fi
echo ok
