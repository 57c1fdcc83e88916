#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 72_glex_collsim.sh - glex_collsim verifies, repeats itself, and says what is wrong with its options.
#
# Run from the top of the build tree.
set -u

# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
collsim=$build/libglex/tools/glex_collsim
need "$collsim"

run() {
	timeout -k 5 100 "$collsim" "$@" >"$work/out" 2>"$work/err"
}

# fails STATUS WORDS ARGS...: with that status, and those words on stderr
fails() {
	local status=$1 words=$2
	shift 2
	run "$@"
	[ $? -eq "$status" ] && grep -qe "$words" "$work/err"
	result $? "$*: status $status, and '$words'"
}

run -t barrier,allreduce,bcast -s kary,knomial -k 2,8 -n 1:64 && [ ! -s "$work/err" ]
result $? "all tests, shapes and ways: every result is right"
[ "$(grep -c '^[bab]' "$work/out")" -eq 168 ]
result $? "a row for each"

run -t bcast -b 1M -s kary,knomial -k 2,8 -n 1:64 -r 0 && [ "$(grep -c '^bcast' "$work/out")" -eq 56 ]
result $? "long broadcasts, shapes and ways: every part came once, and in order"

run --tsv -n 100 --noise 0.1,1000 -i 5 --seed 3 && cp "$work/out" "$work/first"
run --tsv -n 100 --noise 0.1,1000 -i 5 --seed 3 && cmp -s "$work/out" "$work/first"
result $? "the same seed: the same figures"
run --tsv -n 100 --noise 0.1,1000 -i 5 --seed 4 && ! cmp -s "$work/out" "$work/first"
result $? "another seed: other figures"
awk -F '\t' 'NF != 14 { exit 1 } END { exit NR != 3 }' "$work/out"
result $? "tab-separated values: a name for each column"

# What is hidden is what NICs do: a node posts and takes, and by the NICs that is all.  Columns: 3 way, 5 degree, 6 nodes, 15 overlap.
run --tsv --overlap -k 2,16 -n 16,1K &&
	awk -F '\t' 'NF != 15 { exit 1 }
		NR > 1 { hidden[$3, $5, $6] = $15 }
		END { exit !(NR == 9 && hidden["nic", 2, 1024] > 95 && hidden["nic", 2, 16] > hidden["nic", 16, 16] &&
			hidden["nic", 16, 1024] > 85 && hidden["host", 2, 1024] < 50) }' "$work/out"
result $? "what is computed meanwhile hides what the NICs do, and little of what the hosts do"
run --tsv --overlap -P to_nic=0,post=0,more=0,poll=0 -w nic -k 16 -n 1K && awk -F '\t' 'NR == 2 { exit $15 != "100.0" }' "$work/out"
result $? "all of it, if processors have nothing to do"

run --tsv --overlap -w host -n 1 && awk -F '\t' 'NR == 2 { exit $15 !~ /nan/ }' "$work/out"
result $? "a node alone has nothing to hide"

run -P post=1.5,router=7 --times && grep -q '^router *7.0 ns' "$work/out" && grep -q 'as given' "$work/out"
result $? "times can be set, and listed"
run -m aries -n 750 -k 32 -w nic --tsv && awk -F '\t' 'NR == 2 { exit !($7 == 12000 && $9 < 10) }' "$work/out"
result $? "the collective engine of Aries over 12,000 processes: below 10 us"

run -n 64K -k 16 -t barrier && [ "$(wc -l <"$work/out")" -eq 4 ]
result $? "65,536 nodes"

# The curves of the documentation, up to fewer nodes.  Columns: 1 sweep, 4 way, 6 degree, 7 nodes, 10 us.
src=${srcdir:-$(dirname "$0")/../..}
timeout -k 5 100 sh "$src/test/bench/collsim.sh" --collsim "$collsim" --nodes 256 --out "$work/curves" >"$work/out" 2>"$work/err" &&
	[ ! -s "$work/err" ]
result $? "test/bench/collsim.sh writes the figures of all curves"
tsv=$work/curves/collectives.tsv
awk -F '\t' '
	$1 == "kary" && $6 == 8 { t[$4, $7] = $10; n = $7 > n ? $7 : n }
	END {
		for (k = 4; k <= n; k *= 2)
			if (t["nic", k] < t["nic", k / 2] || t["host", k] <= t["nic", k]) exit 1
		exit !(n == 256 && t["nic", n] < 6 * t["nic", 4]) # as the tree is deep, not as its nodes are many
	}' "$tsv"
result $? "more nodes take longer, by the depth of the tree, and the hosts longer than their NICs"
awk -F '\t' '$1 ~ /^noise/ { t[$1, $4] = $10 }
	END { exit !(t["noise0.1", "host"] - t["noise0", "host"] > t["noise0.1", "nic"] - t["noise0", "nic"]) }' "$tsv"
result $? "what interrupts the hosts costs a collective of theirs more"
[ ! -x "$(command -v gnuplot)" ] || [ -s "$work/curves/collectives.svg" ]
result $? "and a picture"

# A simulation that passes whatever arrives is worth nothing.
fails 1 'wrong result' --break -w nic -n 50
fails 1 'wrong result' --break -w host -n 50
fails 1 'did not hold' --break -t bcast -b 1M -w nic -n 50
fails 1 'wrong result' --break -t bcast -b 1M -w host -n 50
fails 2 'not a number from 0' -t bcast -b 1025M
fails 1 'more than 32 children' -s knomial -k 32 -n 64K
fails 2 'there is no time patience' -P patience=1
fails 2 'not nanoseconds' -P post=soon
fails 2 'not nanoseconds' -P post=-1
fails 2 'is not TIME=NS' -P post
fails 2 'none of barrier' -t bcast,alltoall
fails 2 'not a list' -n 8:2
fails 2 'not a list' -n 2M
fails 2 'not a list' -k 33
fails 2 'no abacus' -m abacus
fails 2 'none of flat' -T torus
fails 2 'not a number from 4' -T fattree:2
fails 2 'not a share' --noise 2,100
fails 2 'no node 64 among 64' -t bcast -r 64 -n 64
fails 2 'what is this for' this
finish
