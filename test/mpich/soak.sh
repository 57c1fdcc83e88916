#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# soak.sh - random messages among ranks for a long time, every byte compared, over a
# network that reorders.  The last line is "ok", or says what went wrong first.
set -u

prog=soak.sh
here=$(cd "$(dirname "$0")" && pwd)
prefix=$here/../../_install seconds=1800 ranks=6 seed=1 window=16

usage() {
	cat <<TXT
usage: $prog [options]

  --prefix DIR    MPI over glex: bin/mpicc, bin/mpiexec (default: _install at the top of this source tree)
  --seconds N     how long (default $seconds)
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
	--prefix | --seconds | --np | --seed | --reorder)
		[ $# -gt 1 ] || die "$1 needs a value"
		case $1 in
		--prefix) prefix=$2 ;;
		--seconds) seconds=$2 ;;
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
for n in "$seconds" "$ranks" "$seed" "$window"; do
	case $n in '' | *[!0-9]*) die "not a number: $n" ;; esac
done
for tool in mpicc mpiexec; do
	[ -x "$prefix/bin/$tool" ] || die "there is no $prefix/bin/$tool; ./quickstart build makes it"
done

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
"$prefix/bin/mpicc" -std=gnu11 -O2 -o "$work/soak" "$here/../mpi/soak.c" || die "the program does not compile"
export MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=glex GLEX_REORDER=$window GLEX_REORDER_SEED=$seed
timeout -k 10 $((seconds + 120)) "$prefix/bin/mpiexec" -n "$ranks" "$work/soak" "$seconds" "$seed" </dev/null |
	tee "$work/out"
grep -qx ok "$work/out" || {
	echo "$prog: failed with seed $seed; the last line above says where, nothing: it hung"
	exit 1
}
