#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 73_debian_mpi.sh - programs that Debian built for its own MPICH run over our
# libmpich.so.12, by LD_LIBRARY_PATH and nothing else: NetPIPE (netpipe-mpich2),
# testers of ScaLAPACK (scalapack-mpi-test), and two that compute molecules, by one-sided
# operations and with threads (nwchem-mpich, bagel), where they are installed.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi

testers=$(dpkg -L scalapack-mpi-test 2>/dev/null | sed -n 's|/mpich-tests/xdlu$|/mpich-tests|p')
netpipe=$(command -v NPmpich2)
nwchem=$(command -v nwchem.mpich)
bagel=$(command -v BAGEL)
[ -n "$netpipe$testers$nwchem$bagel" ] || need "netpipe-mpich2, scalapack-mpi-test, nwchem-mpich or bagel"

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

# energies RANKS PROGRAM INPUT: those of the molecule, in order
energies() {
	over_glex "$@" && sed -nE 's/^ *(Total (SCF|DFT)|MP2 total) energy *[=:] *(-[0-9]+\.[0-9]{8}).*/\3/p' out
}

# same_energies COUNT PROGRAM INPUT: so many, and of four ranks those of one
same_energies() {
	energies 1 "$2" "$3" >one && energies 4 "$2" "$3" >four && [ "$(wc -l <one)" = "$1" ] && diff one four
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

export OMP_NUM_THREADS=1 BAGEL_NUM_THREADS=1
if [ -n "$nwchem" ]; then
	cat >water.nw <<'INPUT'
start water
geometry
 O  0.000 0.000 0.000
 H  0.757 0.586 0.000
 H -0.757 0.586 0.000
end
basis
 * library 6-31g*
end
task scf energy
dft
 xc b3lyp
end
task dft energy
INPUT
	same_energies 2 "$nwchem" water.nw
	result $? "nwchem__4_ranks__energies_of_1"
else
	skip "nwchem" "nwchem-mpich is not installed"
fi
if [ -n "$bagel" ]; then
	cat >water.json <<'INPUT'
{ "bagel": [
  { "title": "molecule", "basis": "svp", "df_basis": "svp-jkfit", "angstrom": true, "geometry": [
    { "atom": "O", "xyz": [ 0.0, 0.0, 0.0 ] },
    { "atom": "H", "xyz": [ 0.757, 0.586, 0.0 ] },
    { "atom": "H", "xyz": [ -0.757, 0.586, 0.0 ] } ] },
  { "title": "mp2", "aux_basis": "svp-jkfit", "frozen": true }
] }
INPUT
	same_energies 1 "$bagel" water.json
	result $? "bagel__4_ranks__energy_of_1"
else
	skip "bagel" "bagel is not installed"
fi
finish
