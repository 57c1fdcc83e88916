#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# 70_mpi_examples.sh - the MPI examples run over the netmod, with 2 and 4 ranks.
#
# GLEX_PREFIX names the prefix that holds bin/mpicc and bin/mpiexec of an MPICH
# with the netmod in it.  Without one there is nothing to test.
set -u

src=${srcdir:-$(dirname "$0")/../..}
limit_s=120

skip_all()
{
	echo "1..0 # SKIP $*"
	exit 77
}

[ -n "${GLEX_PREFIX:-}" ] || skip_all "GLEX_PREFIX does not name a prefix with MPICH over glex"
for tool in mpicc mpiexec; do
	[ -x "$GLEX_PREFIX/bin/$tool" ] || skip_all "there is no $GLEX_PREFIX/bin/$tool"
done

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

count=0
failed=0

# result STATUS NAME: one TAP line; what the command printed goes below it if it failed.
result()
{
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
		return
	fi
	failed=1
	echo "not ok $count - $2 (exit status $1)"
	sed 's/^/# /' "$work/out"
}

MPIR_CVAR_NOLOCAL=1
MPIR_CVAR_NEMESIS_NETMOD=glex
export MPIR_CVAR_NOLOCAL MPIR_CVAR_NEMESIS_NETMOD

echo "1..9"
for example in pingpong halo; do
	"$GLEX_PREFIX/bin/mpicc" -std=c11 -O2 -o "$work/$example" "$src/examples/mpi/$example.c" >"$work/out" 2>&1
	result $? "mpi/$example.c is compiled"
	for ranks in 2 4; do
		timeout -k 5 $limit_s "$GLEX_PREFIX/bin/mpiexec" -n $ranks "$work/$example" >"$work/out" 2>&1
		status=$?
		[ $status -ne 0 ] || grep -qx ok "$work/out" || status=1
		result $status "mpi/$example with $ranks ranks"
	done
done

# One of the ranks alone is run by a shell or a debugger, which stays.
run_around()
{
	timeout -k 5 $limit_s "$GLEX_PREFIX/bin/mpiexec" "$@" >"$work/out" 2>&1 && grep -qx ok "$work/out"
}
run_around -n 1 sh -c "\"$work/pingpong\"; exit \$?" : -n 1 "$work/pingpong"
result $? "mpi/pingpong, one rank in a shell"
run_around -launcher fork -hosts a:1,b:1 -n 2 sh -c "sh -c '\"$work/pingpong\"; exit \$?'; exit \$?"
result $? "mpi/pingpong, the ranks in two shells each, a proxy for either"

"$GLEX_PREFIX/bin/mpicc" -std=c11 -O2 -o "$work/one_core" "$src/test/mpi/one_core.c" >"$work/out" 2>&1 && run_around -n 2 "$work/one_core"
result $? "mpi/one_core: two ranks on one processor give way to each other"
exit $failed
