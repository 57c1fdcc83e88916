#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# 65_glex_info.sh - glex_info shows build, configuration and device, and says why not.
#
# Run from the top of the build tree.
set -u

client=${abs_top_builddir:-.}/test/api/client
info=${GLEX_INFO:-${abs_top_builddir:-.}/libglex/tools/glex_info}
GLEX_GLEXD=${GLEX_GLEXD:-${abs_top_builddir:-$PWD}/emulator/glexd/glexd}
GLEX_JOB=info-$$
export GLEX_GLEXD GLEX_JOB

[ -x "$info" ] || {
	echo "1..0 # SKIP there is no $info"
	exit 77
}

work=$(mktemp -d) || exit 99
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

count=0
failed=0

result() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
		return
	fi
	failed=1
	echo "not ok $count - $2"
	sed 's/^/# /' "$work/out" "$work/err"
}

run() {
	timeout -k 5 60 "$info" "$@" >"$work/out" 2>"$work/err"
}

# expect TEXT FILE: a line of it has the text
expect() {
	grep -qF -e "$1" "$work/$2"
}

wait_for() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || return 1
		sleep 0.05
	done
}

run -b
expect "libglex    " out && expect "compiler   " out && expect "configure  " out
result $? "build__asked_for__shows_version_compiler_and_options"

GLEX_PPN=4 run -c ppn
grep -qE '^GLEX_PPN +4 +1 +env +ranks +MPI ranks' "$work/out" && [ "$(wc -l <"$work/out")" -eq 2 ]
result $? "config__with_pattern__shows_value_default_source_unit_and_help"

GLEX_SOKCET=x run -c
expect "did you mean GLEX_SOCKET?" out && [ ! -s "$work/err" ]
result $? "config__with_a_typo__warns_in_the_table"

GLEX_JOB="it's me" run -f
(
	unset GLEX_JOB
	# shellcheck disable=SC1091 # it was just made
	. "$work/out" && [ "$GLEX_JOB" = "it's me" ] && [ "${GLEX_NODES-unset}" = unset ]
)
result $? "config__in_full__is_read_back_by_a_shell"

run -c nosuchname
[ $? -eq 1 ] && expect "no variable has" err
result $? "config__pattern_that_fits_nothing__fails_with_a_sentence"

run -d && expect "none runs at @glex-" out && expect "max_imm_mp_data_len" out
result $? "device__no_glexd__says_so_and_shows_limits"

GLEX_PPN=x run -d
[ "$(grep -c GLEX_PPN "$work/err")" -eq 1 ]
result $? "device__bad_variable__is_warned_about_once"

GLEX_SOCKET=$work/socket
export GLEX_SOCKET
"$GLEX_GLEXD" --socket "$GLEX_SOCKET" 2>"$work/glexd" &
server=$!
wait_for test -S "$GLEX_SOCKET"
run -d && expect "glexd   pid $server at $GLEX_SOCKET, 0 ports in use" out
result $? "device__glexd_runs__is_shown_with_its_ports"

mkfifo "$work/gate"
"$client" hold <"$work/gate" >"$work/hold" 2>&1 &
held=$!
exec 3>"$work/gate"
wait_for grep -q '^ready$' "$work/hold"
run -d && expect "regions 2/4096  attach 1  alloc 1" out
result $? "device__regions__are_counted_by_the_way_they_are_reached"
exec 3>&-
wait "$held"

if command -v python3 >/dev/null; then
	run -bcdj
	python3 - "$work/out" "$server" <<'END' 2>"$work/err"
import json, sys
all = json.load(open(sys.argv[1]))
assert all["device"]["glexd"]["pid"] == int(sys.argv[2])
assert all["device"]["limits"]["max_fast_ep_num"] == 7
assert any(v["name"] == "GLEX_SOCKET" and v["source"] == "env" for v in all["config"]["variables"])
assert all["build"]["version"]
END
	result $? "json__everything__is_one_object"
else
	count=$((count + 1))
	echo "ok $count - json__everything__is_one_object # SKIP no python3"
fi

kill "$server"
wait "$server" 2>/dev/null
server=
run -d
[ $? -eq 1 ] && expect "the device cannot be used" err && expect "no glexd listens at" err
result $? "device__glexd_gone__fails_with_the_cause"

unset GLEX_SOCKET
GLEX_JOB=info-b-$$ GLEX_GLEXD=/nonexistent/glexd run
[ $? -eq 1 ] && expect "cannot start glexd: /nonexistent/glexd" err
result $? "device__no_glexd_program__fails_with_the_cause"

run --nosuchoption
[ $? -eq 2 ]
result $? "option__unknown__ends_with_2"

echo "1..$count"
exit $failed
