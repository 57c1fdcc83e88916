#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# wait.sh BUILD [ROUNDS] - where the defaults of GLEX_SPIN_TIME and GLEX_YIELD_TIME come
# from: blocking waits with several of them, in turns; medians over the rounds (5).
#
# To wake a sleeper takes 25 to 60 us where the defaults were chosen.  Who spins as
# long as that loses at most twice what he would have by knowing when it comes:
#
#   message after            20 us           50 us          100 us          500 us
#   sleep at once      1.1 us late       23 us late      36 us late      59 us late    10 % of a core
#   spin 20 us           .3               20              31              67           14
#   spin 50 us           .3               .3              26              59           21
#   ... yield 200 us     .3               .3              .5              50           56
#
# Yielding costs the core only while nobody else wants it, and with 8 processes on
# 2 cores a hop takes 4 us with it and 28 us without.
set -u
LC_ALL=C
export LC_ALL

prog=wait.sh
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=test/bench/lib.sh
. "$here/lib.sh"
[ $# -ge 1 ] || { echo "usage: $prog BUILD [ROUNDS]" >&2; exit 2; }
bench=$1/test/bench/wait_bench
rounds=${2:-5}
GLEX_GLEXD=$1/emulator/glexd/glexd
GLEX_JOB=wait-$$
export GLEX_GLEXD GLEX_JOB
[ -x "$bench" ] || die "there is no $bench: make check_PROGRAMS first"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# one SPIN YIELD ARGS: a line of figures, what it was before a colon
one()
{
	echo "$3 $4, spin $1, yield $2: $(GLEX_SPIN_TIME=$1 GLEX_YIELD_TIME=$2 timeout 60 "$bench" "$3" "$4" || echo failed)"
}

round=1
while [ "$round" -le "$rounds" ]; do
	for gap in 20 50 100 500; do
		for spin in 0us 20us 50us 100us 1000us; do
			one "$spin" 0us gap "$gap"
		done
		one 50us 200us gap "$gap"
	done
	one 50us 200us ring 8
	one 0us 10s ring 8
	one 0us 0us ring 8
	one 50us 200us ring 2
	one 0us 10s ring 2
	round=$((round + 1))
done >"$work/data"
awk -F ': ' "$awk_median"'
{
	if (!($1 in count))
		order[++rows] = $1
	split($2, word, " ")
	late[$1, ++count[$1]] = word[1]
	core[$1, count[$1]] = word[5]
	failed += $2 ~ /failed/
}
END {
	for (i = 1; i <= rows; i++) {
		n = count[order[i]]
		for (k = 1; k <= n; k++) {
			a[k] = late[order[i], k] + 0
			b[k] = core[order[i], k] + 0
		}
		if (order[i] ~ /^gap/)
			printf "%-34s %8.2f us late %6.1f %% of a core\n", order[i], median(a, n), median(b, n)
		else
			printf "%-34s %8.2f us a hop\n", order[i], median(a, n)
	}
	exit failed > 0
}' "$work/data"
