#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# patch.sh - what netmod-glex/install-into.sh does to an MPICH source tree, on one of its own: done twice it
# is as done once, nothing of it is left where MPICH is configured without glex, and taken out it leaves the
# tree as it was.
set -u

prog=patch.sh
here=$(cd "$(dirname "$0")" && pwd)
netmod=$here/../../netmod-glex

die() {
	echo "$prog: $*" >&2
	exit 1
}

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

source=$("$netmod/build-mpich.sh" --fetch) || die "there is no source of MPICH"
mkdir "$work/plain"
tar xf "$source" -C "$work/plain" --strip-components=1 || die "$source does not unpack"
cp -a "$work/plain" "$work/tree"

state() {
	find "$work/tree" -type f -newer "$work/stamp" -printf '%P %T@\n' | sort
}

touch -r "$work/plain/configure" "$work/stamp"
"$netmod/install-into.sh" --quiet "$work/tree" || die "it cannot be put in"
state >"$work/once"
[ -s "$work/once" ] || die "it puts nothing in"
"$netmod/install-into.sh" --quiet "$work/tree" || die "it cannot be put in twice"
state | diff "$work/once" - || die "put in twice it writes files that have not changed"

# Whatever MPICH's own files call of glex may be absent; what they define for it is all that they have else.
strong=$(grep -rh -A1 'glex netmod: begin' "$work/tree/src" --include=*.c --include=*.h |
	grep 'MPIDI_GLEX_[a-z_]*(' | grep -v -e '__attribute__((weak))' -e 'return recvq_unexpected_head')
[ -z "$strong" ] || die "glex has to be there for: $strong"

# none.c and mpid_coll.h include these, behind headers of MPICH that define MPIDI_NEM_GLEX where it has glex.
left=$(printf '#include "glex_all.c"\n#include "glex_hook.h"\n' |
	cc -E -P -nostdinc -I "$work/tree/src/mpid/ch3/channels/nemesis/netmod/glex" -x c -) ||
	die "MPICH without glex needs something for it"
[ -z "$left" ] || die "in MPICH without glex there is: $left"

"$netmod/install-into.sh" --quiet --remove "$work/tree" || die "it cannot be taken out"
diff -r "$work/plain" "$work/tree" || die "taken out it leaves something, or takes something with it"
echo "ok"
