#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 73_debian_mpi.sh - programs that Debian built for its own MPICH run over our
# libmpich.so.12, by LD_LIBRARY_PATH and nothing else: NetPIPE (netpipe-mpich2)
# and testers of ScaLAPACK (scalapack-mpi-test), where they are installed.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi

testers=$(dpkg -L scalapack-mpi-test 2>/dev/null | sed -n 's|/mpich-tests/xdlu$|/mpich-tests|p')
netpipe=$(command -v NPmpich2)
[ -n "$netpipe$testers" ] || need "netpipe-mpich2 or scalapack-mpi-test"

export LD_LIBRARY_PATH=$GLEX_PREFIX/lib
cd "$work" || exit 99

# over_glex RANKS PROGRAM [ARGUMENT...]: its libmpich is ours, and it runs
over_glex() {
	local ranks=$1
	shift
	ldd "$1" | grep -F "libmpich.so.12 => $GLEX_PREFIX/" >out &&
		mpirun_ "$ranks" "$@" >out 2>err
}

# passed PROGRAM: the tester compared results, and none was wrong
passed() {
	over_glex 4 "$testers/$1" &&
		grep -Eq '^ *[1-9][0-9]* tests completed and passed residual checks' out &&
		grep -Eq '^ *0 tests completed and failed residual checks' out
}

if [ -n "$netpipe" ]; then
	over_glex 2 "$netpipe" -n 20 -u 1048579 -o np.out && [ "$(wc -l <np.out)" -gt 40 ]
	result $? "netpipe__up_to_1_MiB__writes_its_table"
else
	skip "netpipe" "netpipe-mpich2 is not installed"
fi
for tester in xsqr xcinv; do
	if [ -n "$testers" ]; then
		cp "$testers"/*.dat .
		passed $tester
		result $? "scalapack_${tester}__4_ranks__all_residuals_pass"
	else
		skip "scalapack_$tester" "scalapack-mpi-test is not installed"
	fi
done
finish
