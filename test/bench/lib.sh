# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# lib.sh - what the benchmark scripts share; to be sourced by one that has set prog.

# Where standard error is a terminal: what is being done just now.
progress()
{
	# shellcheck disable=SC2154 # prog is the one that sources this
	[ -t 2 ] && printf '\r\033[K%s: %s' "$prog" "$*" >&2
}

clear_line()
{
	[ -t 2 ] && printf '\r\033[K' >&2
}

die()
{
	clear_line
	echo "$prog: $*" >&2
	exit 1
}

# The first cores this process may run on, as many as asked for: "0 1"
first_cores()
{
	awk -v want="$1" '$1 == "Cpus_allowed_list:" {
		count = split($2, range, ",")
		for (i = 1; i <= count; i++) {
			n = split(range[i], end, "-")
			for (core = end[1]; core <= end[n] && want > 0; core++) {
				printf "%d ", core
				want--
			}
		}
	}' /proc/self/status
}

# For awk programs: the median of v[1..n], which it sorts
# shellcheck disable=SC2034 # used by those who source this
awk_median='
function median(v, n,   i, j, x) {
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && v[j] > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
	return n == 0 ? "NaN" : n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}'
