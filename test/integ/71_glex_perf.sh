#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# 71_glex_perf.sh - glex_perf measures, verifies, notices a death, leaves nothing behind.
#
# Run from the top of the build tree.  How fast anything is does not matter here.
set -u

perf=${GLEX_PERF:-./libglex/tools/glex_perf}
GLEX_GLEXD=${GLEX_GLEXD:-$PWD/emulator/glexd/glexd}
export GLEX_GLEXD

[ -x "$perf" ] || { echo "1..0 # SKIP there is no $perf"; exit 77; }

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

count=0
failed=0

result()
{
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
		return
	fi
	failed=1
	echo "not ok $count - $2"
	cat "$work/out" "$work/err" 2>/dev/null | sed 's/^/# /'
}

# run ARGS: glex_perf with a limit; its words are in out and err.
run()
{
	timeout -k 5 100 "$perf" -d 20 "$@" >"$work/out" 2>"$work/err"
}

# rows: how many rows the table holds.
rows()
{
	grep -c '^ *[0-9][0-9]* ' "$work/out"
}

all_tests="imm_put_lat put_lat put_poll_lat get_lat mp_lat mp_rate imm_put_rate put_bw get_bw put_bibw wake_lat bcast"

echo "1..41"
for way in alloc malloc huge; do
	run -t all -m $way -n 256 -w 64 --check -s 8,64,1000,4K,128K
	result $? "all tests, memory $way: every byte verified"
done
run -t all -T normal -n 256 -w 64 --check -s 8,64,4K,128K
result $? "all tests on NORMAL endpoints: every byte verified"
run -t put_lat,mp_rate -b none -n 500 -s 8
result $? "unbound"

# A test that passes whatever arrives is worth nothing.
for test in $all_tests; do
	run -t "$test" --check --break 2 -n 64 -s 64
	status=$?
	[ $status -eq 1 ] && grep -q "is corrupt" "$work/err"
	result $? "$test: --check sees a corrupt message"
done
run -t overlap -T normal --check --break 2 -n 2 -s 64
[ $? -eq 1 ] && grep -q "is corrupt" "$work/err"
result $? "overlap: --check sees a corrupt message"

run -t mp_lat,put_bw -n 200 -s 8:32 --json &&
	[ "$(wc -l <"$work/out")" -eq 6 ] && ! grep -qv '^{"test":.*"lat_us":.*"raw_ns":.*}$' "$work/out"
result $? "--json: one object a row and nothing else"
run -t open,ep_mem,rcache_hit,reg_miss -n 2 --json &&
	grep -q '^{"test":"reg_miss",.*"unit":"ns","value":[1-9].*"register_ns":' "$work/out" &&
	grep -q '^{"test":"rcache_hit",.*"unit":"ns","value":[1-9]' "$work/out" &&
	grep -q '^{"test":"open",.*"unit":"ms","value":[0-9].*"register_ms":' "$work/out" &&
	grep -q '^{"test":"ep_mem",.*"unit":"KiB","value":[1-9]' "$work/out" && [ "$(wc -l <"$work/out")" -eq 4 ]
result $? "--json: figures come with their unit"
run -t put_bw,get_bw,put_bibw -n 64 -s 4K --json && [ "$(grep -c '"limit":[1-9].*"limit_name":"memcpy"' "$work/out")" -eq 3 ] &&
	run -t put_bw,get_bw,put_bibw -n 64 -s 4K -m malloc --json &&
	[ "$(grep -c '"limit":[1-9].*"limit_name":"attach"' "$work/out")" -eq 3 ]
result $? "a bandwidth comes with what the machine gives"
run -t wake_lat -n 3 --json && grep -q '"limit":[1-9].*"limit_name":"futex"' "$work/out"
result $? "a wake-up comes with that of a bare futex"
run -t overlap -s 64 && grep -q "left out" "$work/out"
result $? "overlap is for NORMAL endpoints"
run -t mp_lat -n 200 -s 8,64 &&
	[ "$(rows)" -eq 2 ]
result $? "the table has one row a size"
run -t mp_lat -n 200 -s 1M &&
	grep -q "left out" "$work/out"
result $? "a size that does not fit is left out with the reason"
run -p 5 -t mp_lat,barrier,bcast,allreduce -n 64 -s 8 --check --json &&
	[ "$(grep -c '^{"test":"\(barrier\|bcast\|allreduce\)",.*"processes":5' "$work/out")" -eq 3 ] &&
	[ "$(wc -l <"$work/out")" -eq 3 ] && grep -q "mp_lat: 8 bytes left out: it is of two processes" "$work/err"
result $? "collectives of five processes, and nothing else"
run -p 4 --shape knomial -t barrier,bcast,allreduce -n 64 --check && [ "$(rows)" -eq 6 ]
result $? "collectives of four on a tree: every byte verified"
for tree in "kary -k 1" "kary --degree 2" "knomial -k 2"; do
	# shellcheck disable=SC2086
	run -p 4 --shape $tree -t barrier,bcast,allreduce -n 64 -s 8 --check --json &&
		[ "$(grep -c "\"degree\":${tree##* }" "$work/out")" -eq 3 ]
	result $? "collectives of four on a $tree tree: every byte verified"
done
for wrong in "-k 2" "--shape direct -k 2" "--shape knomial -k 1" "--shape kary -k 33" "--shape kary -k 0"; do
	# shellcheck disable=SC2086
	run -p 4 $wrong -t barrier
	[ $? -eq 2 ] && grep -q "degree: " "$work/err"
	result $? "no such tree, $wrong: exit status 2"
done
run -p 3 -t bcast --check --break 2 -n 64 -s 64
[ $? -eq 1 ] && grep -q "is corrupt" "$work/err"
result $? "collectives of three: --check sees a corrupt message"
run -p 33 -t barrier
[ $? -eq 2 ]
result $? "more processes than can be: exit status 2"
run -t nonsense
[ $? -eq 2 ]
result $? "an unknown test: exit status 2"
run -s 8,banana
[ $? -eq 2 ]
result $? "a size that is none: exit status 2"

# One side is killed in the middle: the other must not wait for it.
"$perf" -t mp_lat -n 1000000000 -s 8 -d 20 >"$work/out" 2>"$work/err" &
parent=$!
sides=
tries=0
while [ $tries -lt 100 ]; do
	sides=$(ps -o pid= --ppid $parent)
	# shellcheck disable=SC2086
	[ "$(echo $sides | wc -w)" -eq 2 ] && [ -s "$work/out" ] && break
	tries=$((tries + 1))
	sleep 0.1
done
# shellcheck disable=SC2086
set -- $sides
kill -9 "${2:-none}" 2>/dev/null
wait $parent
status=$?
[ $status -eq 1 ] && grep -q "signal 9" "$work/err"
result $? "a killed side is noticed"
left=0
for pid in "$@"; do
	kill -0 "$pid" 2>/dev/null && left=1
done
[ $left -eq 0 ]
result $? "no process is left"
exit $failed
