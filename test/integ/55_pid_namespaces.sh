#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 55_pid_namespaces.sh - glexd outside, clients in PID namespaces of their own, as in
# containers: glexd may attach to them, but the numbers it knows processes by are nobody's,
# or somebody else's, in there.  Memory is shared or out of reach, and nobody counts as dead.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
need "$client" "$GLEX_GLEXD"
inside="unshare --user --pid --fork --kill-child --mount-proc"
$inside true 2>/dev/null || {
	echo "1..0 # SKIP no right to make a PID namespace"
	exit 77
}

others=()
cleanup() { [ ${#others[@]} = 0 ] || kill "${others[@]}" 2>/dev/null; }

export GLEX_SOCKET=$work/socket
"$GLEX_GLEXD" --socket "$GLEX_SOCKET" 2>"$work/glexd" &
others+=($!)
within 10 test -S "$GLEX_SOCKET"

# puts TARGET POSTER: a PUT from one to the other, each started by that; what came of it in $work/put and $work/target
puts() {
	local status=0 card
	rm -f "$work/target" # that of the last ones says that it is ready
	mkfifo "$work/end"
	# shellcheck disable=SC2086 # several words are meant, or none
	$1 "$client" target <"$work/end" >"$work/target" 2>"$work/target.err" &
	others+=($!)
	exec 7>"$work/end"
	within 20 says ready target || status=1
	read -r _ card <"$work/target"
	# shellcheck disable=SC2086 # several words are meant, or none
	timeout -k 5 40 $2 "$client" put $card >"$work/put" 2>"$work/put.err" || status=1
	exec 7>&-
	wait "${others[-1]}" || status=1
	rm "$work/end"
	return $status
}

arrives() { says "no error" put && says there target; }
is_refused() { says "memory could not be reached" put && says ------ target; }

puts "" "" && arrives
result $? "glexd_s_namespace__both__put_arrives"

# Memory of before anybody was elsewhere is reached by attach, or not at all.
puts "" "$inside" && is_refused && says "another PID namespace than glexd" put.err
result $? "poster_elsewhere__private_memory__refused_and_says_why"

puts "$inside" "$inside" && arrives
result $? "both_elsewhere__memory_that_can_be_shared__put_arrives"

puts "$inside" "" && arrives
result $? "target_elsewhere__memory_that_can_be_shared__put_arrives"

export GLEX_ADOPT=never
puts "$inside" "" && arrives
result $? "target_elsewhere__private_memory__put_arrives"
puts "$inside" "$inside" && is_refused
result $? "both_elsewhere__private_memory__refused"

# One namespace for both: they could reach each other by the numbers they have there, which nobody knows.
# shellcheck disable=SC2016 # expands in there
$inside bash -c '
	coproc "$0" target
	exec 8<&"${COPROC[0]}" # bash closes the other when the target has ended, perhaps before it is read
	read -r _ card <&8
	"$0" put $card
	eval "exec ${COPROC[1]}>&-"
	cat <&8' "$client" >"$work/put" 2>"$work/put.err"
says "memory could not be reached" put && says ------ put
result $? "one_namespace_elsewhere__private_memory__refused"

# The same pid in there as out here.  Without a /proc of its own, NSpid of a process says both; the next pid
# in there can be chosen, the next out here only guessed, from the last: whatever else forks here meanwhile
# makes that wrong, so it is tried for a while.
cat >"$work/same" <<'END'
#!/bin/bash
found=$1
shift
outer=$$
end=$((SECONDS + 20))
while [ $SECONDS -lt $end ]; do
	echo "$outer" >/proc/sys/kernel/ns_last_pid || exit 9
	(
		while read -r name out_here in_there _; do
			[ "$name" = NSpid: ] && break
		done </proc/self/status
		echo "$out_here" >"$found.last"
		[ "$out_here" = "$in_there" ] || exit 9
		: >"$found"
		exec "$@"
	)
	status=$?
	[ ! -e "$found" ] || exit $status
	read -r outer <"$found.last"
done
exit 9
END
equal=poster_elsewhere_of_the_same_pid__private_memory__refused_and_says_why
puts "" "unshare --user --map-root-user --pid --fork --kill-child bash $work/same $work/found"
status=$?
if [ -e "$work/found" ]; then
	[ $status = 0 ] && is_refused && says "another PID namespace than glexd" put.err
	result $? "$equal"
else
	skip "$equal" "no pid in there became that of out here"
fi
"$client" hello >"$work/hello" 2>&1
result $? "afterwards__others_are_served"
finish
