#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 83_mpi_derived.sh - long messages whose data is not contiguous, on one side or both:
# nothing is lost in the chunks they are packed into, and they need no memory of their own;
# whose peer dies in the middle of one gets an error.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi derived "$src/test/mpi/derived.c"

# run NAME VARIABLE=VALUE...
run() {
	local name=$1
	shift
	# shellcheck disable=SC2086 # no word, or one
	env "$@" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/bin/derived" ${how:-} \
		>"$work/out" 2>"$work/err" && says ok out
	result $? "$name"
}

for channel in sr er auto; do
	run "$channel" GLEX_MPI_CHANNEL=$channel
done
run "out of order" GLEX_REORDER=32 GLEX_REORDER_SEED=7
run "out of order, rings" GLEX_REORDER=32 GLEX_REORDER_SEED=8 GLEX_MPI_CHANNEL=er
run "few small chunks" GLEX_MPI_PACK_SIZE=20K GLEX_MPI_PACK_CHUNKS=4
run "a DMA engine" GLEX_EP_TYPE=1
how=copied run "copied" GLEX_USE_ZC_RNDV=0

# chunks_of RANK: KiB of them at a time, at most
chunks_of() {
	awk -v rank="$1" '/^glex: rank/ { r = $3 } r == rank && /not contiguous/ { print $(NF - 1) }' "$work/err"
}

for mib in 4 64; do
	GLEX_MPI_STATS=1 mpirun_ 2 "$work/bin/derived" $mib >"$work/out" 2>"$work/err" && says ok out
	result $? "$mib MiB come without memory of their own"
	[ "$(chunks_of 0)" -le 512 ] && [ "$(chunks_of 1)" -le 512 ]
	result $? "in a few chunks"
done

for channel in sr er; do
	for victim in 0 1; do
		GLEX_MPI_CHANNEL=$channel mpirun_ 2 -disable-auto-cleanup -launcher fork -hosts h0:1,h1:1 \
			"$work/bin/derived" 64 $victim >"$work/out" 2>"$work/err"
		says "rank $((1 - victim)): alone" out && grep -q "rank $victim .* is lost" "$work/err"
		result $? "rank $victim dies, $channel"
	done
done
finish
