#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh - explores the models of this folder with spin, each mutation of them
# too.  A model must hold in every state; a mutation, which breaks the protocol
# on purpose, must be found, or the model could not fail at all.
#
#   run.sh          all rows, about a minute on two cores
#   run.sh --long   the larger instances too, half an hour each at most and 8 GB
#   run.sh --hash   the same, of each state only a hash of 12 bytes: three times as many
#                   fit; two that have the same are taken for one, which 64 bits make unlikely
#
# What that shows: the rows that hold or are found have been explored to the end, in
# every run, and nothing larger is claimed.  Of the long rows, these have been explored
# to the end: ring with CAP=4 (7.6 million states), bias (5.1), coll (8.1), memwatch (17.0), mmt with
# BETTER (4.7).  With --hash: mmt OTHER READER SIBLING KILL CLOSE (119.7 million, 5.3 GB,
# four minutes of an idle core), ring with M1=2 (49.3 million, 4 GB, two minutes), dma POSTS=4
# (40.6 million, 2.6 GB, one minute).
#
# A row is: model | defines | holds, found or long (holds, with --long only).
# The last line is `N passed, N failed, N skipped`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=90 megabytes=2048 store=COLLAPSE
case ${1:-} in
--long) seconds=1800 megabytes=8192 ;;
--hash) seconds=1800 megabytes=8192 store=HC4 ;;
esac

rows() {
	cat <<'ROWS'
ring  | S0=1 S1=1 S2=2 M0=1 M1=1 M2=1 | holds
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 FIRST=0 | holds
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 CAP=1 | holds
ring  | S0=1 S1=2 S2=3 M0=1 M1=2 M2=1 | long
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 CAP=4 | long
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 MUT_PUBLISH_FIRST | found
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 MUT_NO_LOG | found
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 MUT_LOG_LATE | found
ring  | S0=1 S1=2 S2=3 M0=1 M1=2 M2=1 MUT_REAP_ONCE | found
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 MUT_NO_REAP | found
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 MUT_NO_ROOM | found
ring  | S0=1 S1=2 S2=3 M0=1 M1=1 M2=1 MUT_RELEASE_FIRST | found
bias  | KILL=0 | holds
bias  | KILL=1 | holds
bias  | KILL=2 | holds
bias  | KILL=1 OWNER=3 EACH=2 | long
bias  | KILL=0 MUT_NO_BARRIER | found
bias  | KILL=0 MUT_LEAD_EARLY | found
bias  | KILL=0 MUT_LOOK_FIRST | found
bias  | KILL=0 MUT_LOOK_ONCE | found
bias  | KILL=0 MUT_NOT_COUNTED | found
bias  | KILL=0 MUT_COUNTED | found
bias  | KILL=0 MUT_PLAIN_SETTLE | found
bias  | KILL=1 MUT_NO_RECLAIM | found
sleep | CANNOT=0 | holds
sleep | CANNOT=1 | holds
sleep | CANNOT=2 | holds
sleep | CANNOT=0 SLEEPERS=1 | holds
sleep | CANNOT=0 MUT_NO_BARRIER | found
sleep | CANNOT=1 MUT_TRUST_FENCES | found
sleep | CANNOT=0 MUT_LOOK_FIRST | found
sleep | CANNOT=0 MUT_BELL_LATE | found
sleep | CANNOT=2 MUT_NO_FENCE | found
sleep | CANNOT=0 MUT_WAKE_FIRST | found
arm   | CANNOT=0 | holds
arm   | CANNOT=1 | holds
arm   | CANNOT=2 | holds
arm   | CANNOT=0 INTR=1 | holds
arm   | CANNOT=1 INTR=1 | holds
arm   | CANNOT=0 MUT_NO_BARRIER | found
arm   | CANNOT=1 MUT_TRUST_FENCES | found
arm   | CANNOT=0 MUT_LOOK_FIRST | found
arm   | CANNOT=2 MUT_NO_FENCE | found
arm   | CANNOT=0 MUT_NO_TURNS | found
arm   | CANNOT=0 INTR=1 MUT_PLAIN_INTR | found
arm   | CANNOT=0 INTR=1 MUT_NO_LOOK | found
dma   | KILL=0 | holds
dma   | KILL=1 | holds
dma   | KILL=1 POSTS=4 | long
dma   | MUT_TAIL_FIRST | found
dma   | MUT_LOOK_FIRST | found
dma   | MUT_PLAIN_ASLEEP | found
dma   | MUT_BELL_FIRST | found
dma   | MUT_FORGET_ACTIVE | found
dma   | MUT_HEAD_FIRST | found
dma   | MUT_NO_LOCK | found
coll  | SENDERS=2 | holds
coll  | SENDERS=3 | long
coll  | SENDERS=3 KILL=0 | holds
coll  | SENDERS=2 KILL=0 MUT_NO_RECHECK | found
coll  | SENDERS=2 KILL=0 MUT_ASK_FIRST | found
coll  | SENDERS=2 MUT_FILL_LATE | found
coll  | SENDERS=2 MUT_COMMIT_FIRST | found
coll  | SENDERS=2 MUT_REAP_FIRST | found
coll  | SENDERS=2 MUT_NO_INHERIT | found
coll  | SENDERS=2 MUT_NO_KICK | found
mmt   | OTHER READER SIBLING | holds
mmt   | OTHER READER EACH=2 | holds
mmt   | OTHER CLOSE RIVAL | holds
mmt   | OTHER CLOSE SIBLING | holds
mmt   | OTHER READER KILL | holds
mmt   | OTHER READER BETTER | holds
mmt   | OTHER RIVAL BETTER | holds
mmt   | OTHER CLOSE BETTER | holds
mmt   | OTHER READER BETTER KILL | long
mmt   | OTHER READER SIBLING KILL CLOSE | long
mmt   | OTHER READER SIBLING MUT_VALID_FIRST | found
mmt   | OTHER READER SIBLING MUT_CHECK_ONCE | found
mmt   | OTHER READER SIBLING MUT_SAME_AGAIN | found
mmt   | OTHER CLOSE RIVAL MUT_PLAIN_REVOKE | found
mmt   | OTHER CLOSE RIVAL MUT_FREE_FIRST | found
mmt   | OTHER CLOSE SIBLING MUT_BLIND_RECLAIM | found
mmt   | OTHER READER KILL MUT_NO_RECLAIM | found
mmt   | OTHER READER BETTER MUT_WAY_FIRST | found
mmt   | OTHER READER BETTER MUT_MAP_FIRST | found
mmt   | OTHER READER BETTER MUT_NO_TURNS | found
dead  | DEATHS=6 | holds
dead  | KEPT=2 | holds
dead  | MUT_COUNT_FIRST | found
dead  | MUT_NO_RECHECK | found
dead  | MUT_RECHECK_FIRST | found
dead  | MUT_ALL_KEPT | found
memwatch | LOG=1 | holds
memwatch | LOG=2 | holds
memwatch | LOG=1 WRITERS=3 EACH=1 | holds
memwatch | LOG=2 EACH=3 | long
memwatch | MUT_SEQ_FIRST | found
memwatch | MUT_NO_CLAIM | found
memwatch | MUT_ONE_LOOK | found
memwatch | MUT_SKIP | found
ROWS
}

# explore FOLDER MODEL DEFINES WANT: leaves pan's words in FOLDER/log.  What is to be found is, mostly, before a compiler
# that optimises would be through.
explore() {
	local define defines=() optimise=-O1
	[ "$4" != found ] || optimise=-O0
	for define in $3; do
		defines+=("-D$define")
	done
	cp "$here/$2.pml" "$1/" && cd "$1" || return 1
	spin -a "${defines[@]}" "$2.pml" >log 2>&1 || return 1
	cc "$optimise" -w -DSAFETY -D"$store" -DNOFAIR -DMEMLIM="$megabytes" -o pan pan.c >>log 2>&1 || return 1
	timeout "$seconds" ./pan -m1000000 >>log 2>&1
}

# row "MODEL | DEFINES | WANT": one line, ok or not ok
row() {
	local model defines want folder name states got
	IFS='|' read -r model defines want <<<"$1"
	read -r model <<<"$model"
	read -r want <<<"$want"
	folder=$(mktemp -d)
	(explore "$folder" "$model" "$defines" "$want")
	states=$(awk '/states, stored/ { print $1; exit }' "$folder/log")
	name="$model:$defines(${states:-no} states)"
	got=undecided
	if grep -q 'errors: [1-9]' "$folder/log" && ! grep -q 'search depth too small' "$folder/log"; then
		got=found
	elif grep -q 'errors: 0$' "$folder/log" && ! grep -qE 'MEMLIM|search depth too small|not completed|aborted' "$folder/log"; then
		got=holds
	fi
	if [ "$got" = "${want/long/holds}" ]; then
		echo "ok - $name $got"
	else
		echo "not ok - $name $got, ${want/long/holds} expected"
		grep -vE '^[[:space:]]*$|^hint|unreached|^\(' "$folder/log" | head -n 12 | sed 's/^/# /'
	fi
	rm -rf "$folder"
}

# A mutation that a model names and no row tries.
untried() {
	local mutation file
	for file in "$here"/*.pml; do
		file=$(basename "$file" .pml)
		# shellcheck disable=SC2013 # words wanted
		for mutation in $(grep -oE '\<MUT_[A-Z_]+' "$here/$file.pml" | sort -u); do
			rows | grep -qE "^$file +\|.*\<$mutation\>.*\| found" || echo "not ok - $file: $mutation is not tried"
		done
	done
}

if ! command -v spin >/dev/null; then
	echo "spin is not installed: the models are not explored"
	echo "0 passed, 0 failed, 1 skipped"
	exit 77
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
export -f row explore
export here seconds megabytes store
# shellcheck disable=SC2016 # the inner shell expands it
{
	untried
	rows | if [ "$seconds" -gt 90 ]; then cat; else grep -v '| long$'; fi |
		xargs -d '\n' -P "$(nproc)" -I '{}' bash -c 'row "$1"' row '{}'
} | tee "$out"
failed=$(grep -c '^not ok' "$out")
echo "$(grep -c '^ok' "$out") passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
