# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# mpi.sh - for stories that need MPI over the netmod; sourced after tap.sh.
# GLEX_PREFIX names a prefix with bin/mpicc and bin/mpiexec of it.

need_mpi() {
	[ -n "${GLEX_PREFIX:-}" ] || {
		echo "1..0 # SKIP GLEX_PREFIX does not name a prefix with MPICH over glex"
		exit 77
	}
	need "$GLEX_PREFIX/bin/mpicc" "$GLEX_PREFIX/bin/mpiexec"
	# its own glexd, and the job is found from the launcher
	unset GLEX_GLEXD GLEX_JOB
	export MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=glex
}

# compile_mpi NAME SOURCE...: into $work/bin
compile_mpi() {
	local name=$1 top=${src:-${srcdir:-$(dirname "$0")/../..}}
	shift
	mkdir -p "$work/bin"
	"$GLEX_PREFIX/bin/mpicc" -std=gnu11 -O2 -Wall -I"$top" -o "$work/bin/$name" "$@" >"$work/compile" 2>&1 || {
		result 1 "$1 is compiled"
		finish
	}
}

# run_three SECONDS PROGRAM "ARGUMENTS" NAME VARIABLE=VALUE...: three ranks of one of $work/bin, which says ok
run_three() {
	local seconds=$1 program=$2 args=$3 name=$4
	shift 4
	# shellcheck disable=SC2086 # several arguments
	env "$@" timeout -k 5 "$seconds" "$GLEX_PREFIX/bin/mpiexec" -n 3 "$work/bin/$program" $args \
		>"$work/out" 2>"$work/err" && says ok out
	result $? "$name"
}

# lent: how many one-sided operations were, in the run before
lent() {
	awk '/^lent/ { print $2 }' "$work/out"
}

# mpirun_ RANKS OPTIONS AND PROGRAM: ended after a minute, with all its ranks
mpirun_() {
	timeout -k 5 "${mpi_limit:-60}" "$GLEX_PREFIX/bin/mpiexec" -n "$@"
}
