#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 50_refusals.sh - what cannot be: each with an error in bounded time and a message that
# says why and what to do.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
hostile=$build/test/api/hostile
need "$client" "$hostile" "$GLEX_GLEXD"
job=$GLEX_JOB
others=
cleanup() {
	# shellcheck disable=SC2046,SC2086 # several words are meant
	kill -KILL $others $(glexds) 2>/dev/null
	# shellcheck disable=SC2086 # several words are meant
	wait $others 2>/dev/null
}

# refused NAME RETURN TEXT COMMAND...: the command fails; what the call returned, and the message
refused() {
	local name=$1 ret=$2 text=$3
	shift 3
	timeout -k 5 40 "$@" >"$work/out" 2>"$work/err"
	[ $? -eq 1 ] && says "$ret" out && says "$text" err
	result $? "$name"
}

sys_err="the system refused, or the device is lost"
no_mem="the memory table or the memory is full"
denied="access denied"

# These take ten seconds each, one thirteen, so they begin now and are looked at in the end.
GLEX_JOB=$job-true GLEX_GLEXD=/bin/true "$client" hello >"$work/true.out" 2>"$work/true.err" &
slow=$! late=
for how in busy asleep; do
	GLEX_SOCKET=@$job-$how "$hostile" serve $how >"$work/serve.$how" 2>&1 &
	others="$others $!"
	within 10 says ready "serve.$how"
	GLEX_SOCKET=@$job-$how "$client" hello >"$work/$how.out" 2>"$work/$how.err" &
	late="$late $!"
done

"$client" hello
result $? "before__all_is_well"

# ---- where there is none

GLEX_SOCKET=@nowhere-$$ refused "socket__nobody_listens__says_so" "$sys_err" \
	"no glexd listens at @nowhere-$$; start one with" "$client" hello
GLEX_SOCKET=$work/none refused "socket__no_such_path__says_so" "$sys_err" "no glexd listens at $work/none" "$client" hello
GLEX_SOCKET=$work/no/such/dir refused "socket__no_such_folder__says_so" "$sys_err" "no glexd listens at" "$client" hello
long=$(printf 'x%.0s' $(seq 200))
GLEX_SOCKET=@$long refused "socket__name_too_long__says_so" "$sys_err" "the socket's name is too long" "$client" hello
GLEX_JOB=$long refused "job__name_too_long__says_so" "$sys_err" "shorten GLEX_SOCKET or GLEX_JOB" "$client" hello
GLEX_JOB=$long$long refused "job__name_far_too_long__says_so" "$sys_err" "shorten GLEX_SOCKET or GLEX_JOB" "$client" hello
GLEX_JOB=$job-a GLEX_GLEXD=$work/glexd refused "glexd__missing__says_which" "$sys_err" \
	"cannot start glexd: $work/glexd: No such file" "$client" hello
GLEX_JOB=$job-b GLEX_GLEXD=/bin/false refused "glexd__ends_at_once__says_so" "$sys_err" \
	"ended with status 1 before it listened" "$client" hello

# ---- another build

"$hostile" hello >"$work/out" 2>"$work/err" || [ "$(cat "$work/out")" = "glexd does not listen any more" ]
GLEX_LINGER=20s "$client" hello && "$hostile" hello >"$work/out" 2>"$work/err"
result $? "hello__of_another_build__refused_with_that_status"
# shellcheck disable=SC2046 # several words are meant
kill $(glexds)

for how in version access garbage short close; do
	export GLEX_SOCKET=@$job-$how
	"$hostile" serve $how >"$work/serve.$how" 2>&1 &
	others="$others $!"
	within 10 says ready "serve.$how"
	case $how in
	version) refused "glexd__of_another_build__says_so" "$sys_err" "is of another build than this library" "$client" hello ;;
	access) refused "glexd__serves_another_user__says_so" "$denied" "serves another user" "$client" hello ;;
	*) refused "glexd__answers_with_${how}__error" "$sys_err" "$GLEX_SOCKET" "$client" hello ;;
	esac
	unset GLEX_SOCKET
done

# ---- other users

as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
# shellcheck disable=SC2086 # several words are meant, here and below
may_see() {
	$as_nobody "$GLEX_GLEXD" --version >/dev/null 2>&1 && $as_nobody test -x "$client"
}
# The programs in the build tree are only seen through folders that all may enter.
if [ "$uid" = 0 ] && may_see; then
	export GLEX_SOCKET=@$job-theirs
	$as_nobody "$GLEX_GLEXD" --socket "$GLEX_SOCKET" >"$work/theirs" 2>&1 &
	others="$others $!"
	within 10 grep -qF "$GLEX_SOCKET" /proc/net/unix
	refused "glexd__of_another_user__not_trusted" "$denied" "belongs to user 65534, not to user 0" "$client" hello
	export GLEX_SOCKET=@$job-ours
	"$GLEX_GLEXD" --socket "$GLEX_SOCKET" >"$work/ours" 2>&1 &
	others="$others $!"
	within 10 grep -qF "$GLEX_SOCKET" /proc/net/unix
	for _ in 1 2 3 4 5; do
		# shellcheck disable=SC2086 # several words are meant
		refused "user__of_another_glexd__turned_away" "$denied" "serves another user" $as_nobody "$client" hello
	done
	says "user 65534 may not use the glexd of user 0" ours
	result $? "user__of_another_glexd__glexd_says_so"
	"$client" hello >"$work/out" 2>"$work/err"
	result $? "user__of_another_glexd__others_are_served"
	unset GLEX_SOCKET
else
	skip "glexd__of_another_user__not_trusted" "not root, or nobody cannot see the build"
fi

# ---- memory

GLEX_JOB=$job-c "$client" attach >"$work/out" 2>"$work/err" && says "memory could not be reached" out &&
	says "cross-memory attach to pid" err && says "use memory of glex_alloc" err
result $? "attach__forbidden__error_request_and_message_but_mapped_memory_works"

# limited KIB COMMAND...: what it says goes through a pipe, for files have that limit too
limited() {
	local kib=$1 text status
	shift
	text=$( (ulimit -f "$kib" && exec "$@") 2>&1)
	status=$?
	echo "$text" | tee /dev/stderr
	return "$status"
}
export -f limited
GLEX_JOB=$job-d refused "file_size__too_small_for_glexd__says_so" "$sys_err" "see ulimit -f" \
	bash -c 'limited 0 "$@"' - "$client" hello
GLEX_JOB=$job-e refused "file_size__too_small_for_a_node__no_mem_resource" "$no_mem" "no memory left for another node" \
	bash -c 'limited 64 "$@"' - "$client" hello
GLEX_JOB=$job-f refused "file_size__too_small_for_an_endpoint__no_mem_resource" "$no_mem" \
	"no memory left for an endpoint's queues" bash -c 'limited 400 "$@"' - "$client" hello
GLEX_JOB=$job-g GLEX_LINGER=20s "$client" hello
GLEX_JOB=$job-g refused "file_size__too_small_for_glex_alloc__no_mem_resource" "$no_mem" \
	"allocating 9768 KiB of shareable memory failed: File too large" bash -c 'limited 100 "$@"' - "$client" alloc 10000000
GLEX_JOB=$job-g
# shellcheck disable=SC2046 # several words are meant
kill $(glexds)
GLEX_JOB=$job

# ---- the slow ones

wait $slow
[ $? -eq 1 ] && says "$sys_err" true.out && says "was started but does not answer" true.err
result $? "glexd__never_listens__error_in_bounded_time"
# shellcheck disable=SC2086 # several words are meant
wait $late
says "is of another build" busy.err
result $? "glexd__has_no_time_for_13_s__is_waited_for"
says "no glexd listens at" asleep.err
result $? "glexd__silent_for_13_s__is_given_up"

"$client" hello >"$work/out" 2>"$work/err"
result $? "afterwards__all_is_well"
finish
