# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# lib.sh - what the guards of this folder share.  A guard is
#
#	check() { ... }              # in the root of a tree: prints a complaint a line
#	guard "what holds" check     # ok, or not ok and the complaints
#	... | given                  # self-test: the content of a file,
#	must_complain "what" FILE    # which alone in a copy, as FILE, makes check complain
#	must_accept "what" FILE      # or does not
#	finish                       # the plan; exit status
#
# Usage of each: guard.sh [source folder [build folder]].  Output is TAP.

tree=${1:-${srcdir:-$(dirname "$0")/../..}}
tree=$(cd "$tree" && pwd)
build=${2:-${abs_top_builddir:-${top_builddir:-$tree}}}
build=$(cd "$build" && pwd)
tap_count=0
tap_failed=0
tap_tmp=$(mktemp -d)
trap 'rm -rf "$tap_tmp"' EXIT
trap 'exit 1' HUP INT TERM

ok() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1"
}

not_ok() {
	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $1"
}

skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

finish() {
	echo "1..$tap_count"
	[ "$tap_failed" = 0 ]
	exit
}

# The files of the project with these endings; the tree may hold build folders, which do not count.
files() {
	set -f
	args=
	for ending in "$@"; do
		args="$args${args:+ -o }-name *.$ending"
	done
	for top in libglex emulator netmod-glex portals dmapp-compat examples test; do
		# shellcheck disable=SC2086 # the words of args are meant to be split
		[ -d "$top" ] && find "$top" -type f \( $args \) ! -path '*/.*' ! -path '*/_*'
	done | sort
	set +f
}

# stdin without comments, strings and character constants; the lines stay where they are.
strip_c() {
	awk -f "$tree/test/ci/strip.awk" "$@"
}

guard() {
	(cd "$tree" && "$2") >"$tap_tmp/complaints"
	if [ -s "$tap_tmp/complaints" ]; then
		not_ok "$1"
		sed 's/^/# /; 100q' "$tap_tmp/complaints"
	else
		ok "$1"
	fi
}

given() {
	cat >"$tap_tmp/given"
}

# In the copy only what the caller put there (in $tap_tmp/copy) and FILE.
try_in_copy() {
	mkdir -p "$tap_tmp/copy/$(dirname "$1")"
	cp "$tap_tmp/given" "$tap_tmp/copy/$1"
	(cd "$tap_tmp/copy" && check) >"$tap_tmp/complaints"
	rm -rf "$tap_tmp/copy"
}

must_complain() {
	try_in_copy "$2"
	if [ -s "$tap_tmp/complaints" ]; then
		ok "self-test: $1 is found"
	else
		not_ok "self-test: $1 is not found"
	fi
}

must_accept() {
	try_in_copy "$2"
	if [ -s "$tap_tmp/complaints" ]; then
		not_ok "self-test: $1 is not accepted"
		sed 's/^/# /' "$tap_tmp/complaints"
	else
		ok "self-test: $1 is accepted"
	fi
}
