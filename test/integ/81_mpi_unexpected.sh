#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 81_mpi_unexpected.sh - a flood of short messages to a rank that does not receive
# them: its memory stays bounded, and all arrive when it does, in order.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi unexpected "$src/test/mpi/unexpected.c"

# unexpected RANKS CASE COUNT VARIABLE=VALUE...
unexpected() {
	local ranks=$1 case=$2 count=$3
	shift 3
	env "$@" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -n "$ranks" "$work/bin/unexpected" "$case" "$count" \
		>"$work/out" 2>"$work/err"
}

# grew: what the receiver says
grew() {
	sed -n 's/^grew by \([0-9]*\) KiB$/\1/p' "$work/out"
}

# The measure itself: this is more than the limits below.
unexpected 3 flood 50000 GLEX_MPI_UNEXPECTED_MAX=0 && says "all right" out && [ "$(grew)" -gt 40000 ]
result $? "without a limit the memory of a rank grows with what it does not receive"

# Beside the limit: what is in a ring when its sender is told to wait, a request of a kilobyte for each line, and MPICH may
# allocate requests four MiB at a time.
for setting in "sr 0 1000000" "er 0 200000" "auto 0 200000" "sr 32 50000" "er 32 50000"; do
	# shellcheck disable=SC2086 # channel, window, messages
	set -- $setting
	unexpected 3 flood "$3" GLEX_MPI_CHANNEL="$1" GLEX_REORDER="$2" GLEX_MPI_UNEXPECTED_MAX=8M &&
		says "all right" out && [ "$(grew)" -lt 18000 ]
	result $? "$1, window $2: a limit of 8 MiB holds, and all arrive"
	unexpected 3 later 2000 GLEX_MPI_CHANNEL="$1" GLEX_REORDER="$2" GLEX_MPI_UNEXPECTED_MAX=100K GLEX_MPI_STATS=1 &&
		says "all right" out && grep -q 'wait for their receives [1-9]' "$work/err"
	result $? "$1, window $2: a later message of a sender that is held is reached"
done
for channel in sr auto; do
	unexpected 3 sync 12000 GLEX_MPI_CHANNEL=$channel GLEX_MPI_UNEXPECTED_MAX=8M && says "all right" out &&
		[ "$(grew)" -lt 40000 ] # the headers still come
	result $? "$channel: the limit holds for synchronous messages, too"
done
# What begins before its sender hears of it: the headers of all are here in the end, a kilobyte each.
unexpected 3 queued 12000 GLEX_MPI_UNEXPECTED_MAX=0 && says "all right" out && [ "$(grew)" -gt 45000 ]
result $? "without a limit the memory grows with all that MPI_Isend has begun"
for setting in "sr 0 12000 4M 30000" "er 0 12000 4M 30000" "auto 0 12000 4M 30000" "sr 32 3000 1M 14000" "er 32 3000 1M 14000"; do
	# shellcheck disable=SC2086 # channel, window, messages, limit, KiB
	set -- $setting
	unexpected 3 queued "$3" GLEX_MPI_CHANNEL="$1" GLEX_REORDER="$2" GLEX_MPI_UNEXPECTED_MAX="$4" &&
		says "all right" out && [ "$(grew)" -lt "$5" ]
	result $? "$1, window $2: the limit holds for what is begun before it is heard of"
done
for variable in GLEX_USE_ZC_RNDV=0 GLEX_MAX_REGIONS=8 MPIR_CVAR_ENABLE_FT=1; do
	unexpected 3 queued 3000 $variable GLEX_MPI_UNEXPECTED_MAX=100K && says "all right" out
	result $? "$variable: the same arrive"
done
GLEX_MPI_UNEXPECTED_MAX=20K GLEX_MPI_CHANNEL=auto "$src/test/mpich/soak.sh" \
	--prefix "$GLEX_PREFIX" --seconds 2 --np 4 --seed 3 --reorder 16 >"$work/out" 2>"$work/err"
result $? "random messages with hardly any room for unexpected ones"
unexpected 5 flood 30000 GLEX_MPI_UNEXPECTED_MAX=8M && says "all right" out && [ "$(grew)" -lt 24000 ]
result $? "three floods at once are held"
finish
