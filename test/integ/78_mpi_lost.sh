#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 78_mpi_lost.sh - a rank is killed: the others get an error that says who, where
# and why, go on and end.  glexd is killed: all get an error.  Nothing is left.
#
# hydra kills all ranks of a proxy when one of them ends by a signal, so each has
# a proxy, and thereby a host name, of its own.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
compile_mpi lost "$src/test/mpi/lost.c"
compile_mpi lost_child "$src/test/mpi/lost_child.c"
export GLEX_JOB=$story-$$ # so that its glexd can be found

three_proxies=(-disable-auto-cleanup -launcher fork -hosts "h0:1,h1:1,h2:1")

# survivors NAME CASE VARIABLE=VALUE...
survivors() {
	local name=$1 case=$2
	shift 2
	env "$@" timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" "${three_proxies[@]}" -n 3 \
		"$work/bin/lost" "$case" >"$work/out" 2>"$work/err"
	says "rank 0: ok" out && says "rank 1: ok" out
	result $? "$name"
	[ "$(grep -cE "^glex netmod: rank [01]: rank 2 on host $(hostname) \(node 2\) is lost: [a-z]" "$work/err")" = 2 ]
	result $? "$name: each says once who, where and why"
}

for channel in sr er; do
	for case in posted any_source rendezvous synchronous unsent amidst lock get rput rget fence; do
		survivors "$case, $channel" $case GLEX_MPI_CHANNEL=$channel
	done
done
survivors "amidst, copied" amidst GLEX_USE_ZC_RNDV=0
survivors "unsent, copied" unsent GLEX_USE_ZC_RNDV=0
survivors "rendezvous, copied" rendezvous GLEX_USE_ZC_RNDV=0
survivors "rendezvous, MPICH keeps a list too" rendezvous MPIR_CVAR_ENABLE_FT=1
for case in late_news probe0 probe1 probe2 probe3 broadcast silent silent_any_source silent_collective; do
	survivors "$case" $case
done
# Hosts that tcp can find.
MPIR_CVAR_NEMESIS_NETMOD=tcp MPIR_CVAR_ENABLE_FT=1 timeout -k 5 60 "$GLEX_PREFIX/bin/mpiexec" -disable-auto-cleanup \
	-launcher fork -hosts 127.0.0.1:1,127.0.0.2:1,127.0.0.3:1 -n 3 "$work/bin/lost" only_news >"$work/out" 2>"$work/err"
says "rank 0: ok" out && says "rank 1: ok" out
result $? "over tcp it is as MPICH has it"
for case in inter merged probe; do
	timeout -k 5 20 "$GLEX_PREFIX/bin/mpiexec" -disable-auto-cleanup -launcher fork -n 1 \
		"$work/bin/lost_child" $case >"$work/out" 2>"$work/err"
	says ok out
	result $? "a spawned process is killed: its parent does not wait for it ($case)"
done
within 10 no_glexd && no_socket
result $? "nothing is left of these"

mpirun_ 3 "${three_proxies[@]}" "$work/bin/lost" network "$work" >"$work/out" 2>"$work/err" &
job=$!
within 20 says ready out
result $? "a job runs"
kill -9 "$(glexds)"
wait $job
[ -f "$work/ok.0" ] && [ -f "$work/ok.1" ] && [ -f "$work/ok.2" ]
result $? "glexd is killed: every rank gets an error"
within 10 no_glexd && no_socket
result $? "and nothing is left"
finish
