#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 10_autostart.sh - glexd starts by itself, once, and leaves with its last client.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
need "$client" "$GLEX_GLEXD"

no_glexd && no_socket
result $? "before__nothing_runs"

"$client" hello >"$work/out" 2>"$work/err"
result $? "first_program__glexd_starts_by_itself"

within 10 no_glexd && within 5 no_socket
result $? "after_the_last_client__glexd_and_socket_are_gone"

[ ! -s "$work/out" ] && [ ! -s "$work/err" ]
result $? "all_well__nothing_is_printed"

# The starter's output must not be held open by the glexd it started.
start=$SECONDS
text=$(GLEX_LINGER=20s GLEX_NODE=0 "$client" hello 2>&1)
[ -z "$text" ] && [ $((SECONDS - start)) -lt 15 ] && one_glexd
result $? "linger__glexd_stays_but_nobody_waits_for_it"

# Its own segment, a node's, and one of each kind for who comes next.
keeps() {
	[ "$(find "/proc/$(glexds)/fd" -lname '*memfd:glex*' | wc -l)" = "$1" ]
}
within 10 keeps 4
result $? "linger__a_nic_and_an_endpoint_are_kept_ready"
GLEX_NODE=0 "$client" hello >"$work/out" 2>"$work/err" && within 10 keeps 4
result $? "linger__what_was_taken_is_made_anew"

kill -TERM "$(glexds)"
within 10 no_glexd && no_socket
result $? "sigterm__glexd_ends"

# Twenty at once, and they hold until their input ends.
mkfifo "$work/gate"
printf '#!/bin/sh\necho start >>"%s"\nexec "%s" "$@"\n' "$work/starts" "$GLEX_GLEXD" >"$work/counted"
chmod +x "$work/counted"
pids=
for n in $(seq 20); do
	GLEX_GLEXD=$work/counted "$client" hold <"$work/gate" >"$work/hold.$n" 2>&1 &
	pids="$pids $!"
done
exec 9>"$work/gate"
all_ready() {
	[ "$(cat "$work"/hold.* | grep -c '^ready$')" = 20 ]
}
within 30 all_ready && one_glexd
result $? "twenty_at_once__one_glexd"
[ "$(wc -l <"$work/starts")" -le 3 ] # more than one only where that took seconds
result $? "twenty_at_once__hardly_more_than_one_was_started"
exec 9>&-
good=0
for pid in $pids; do
	wait "$pid" || good=1
done
result $good "twenty_at_once__all_end_well"
within 10 no_glexd
result $? "twenty_at_once__gone_afterwards"
rm -f "$work/gate"

# Anybody can take a name, also that of the turn to start one.
perl -MSocket -e 'socket(S, AF_UNIX, SOCK_DGRAM, 0) && bind(S, pack_sockaddr_un("\0$ARGV[0]")) or exit 1; print "ok\n"; close STDOUT; sleep 60' \
	"glex-$(id -u)-$GLEX_JOB.start" >"$work/taken" &
squatter=$!
within 10 grep -q ok "$work/taken" && "$client" hello >"$work/out" 2>"$work/err" && [ ! -s "$work/err" ]
result $? "turn_to_start_one_taken_for_ever__started_all_the_same"
kill "$squatter"
within 10 no_glexd
result $? "turn_to_start_one_taken_for_ever__gone_afterwards"

# With no linger, each start meets a glexd that is just leaving.
good=0
for n in $(seq 40); do
	GLEX_LINGER=0 "$client" hello >"$work/out" 2>"$work/err" || good=1
done
result $good "forty_in_a_row__each_finds_or_starts_one"

GLEX_LOG_FILE=$work/log GLEX_LOG_LEVEL=debug "$client" hello >"$work/out" 2>"$work/err" &&
	within 10 no_glexd && says "glexd: debug:" log && says "ends: it closed the connection" log
result $? "log_file__glexd_writes_to_it_too"

finish
