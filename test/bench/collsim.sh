#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# collsim.sh - the sweep behind libglex/doc/collectives.md: glex_collsim over
# machines, tests, trees and up to 65,536 nodes, as one table and a picture.
#
# Virtual time: the figures do not depend on this machine, and equal runs give
# equal files.
set -u
LC_ALL=C
export LC_ALL

prog=collsim.sh
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../.." && pwd) || exit 1
# shellcheck source=test/bench/lib.sh
. "$here/lib.sh"

usage()
{
	cat <<END
usage: $prog [options]

  --collsim FILE   the program (glex_collsim)
  --nodes N        up to so many (64K)
  --out DIR        writes collectives.tsv, and with gnuplot collectives.svg, there (.)
END
}

collsim=glex_collsim nodes=64K out=.
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	esac
	[ $# -gt 1 ] || { usage >&2; exit 2; }
	case $1 in
	--collsim) collsim=$2 ;;
	--nodes) nodes=$2 ;;
	--out) out=$2 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift 2
done
command -v "$collsim" >/dev/null || die "there is no $collsim: build it, or say where it is with --collsim"
mkdir -p "$out" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM

# rows NAME ARGS...: its rows, under that name
rows()
{
	name=$1
	shift
	"$collsim" --tsv "$@" >"$work/rows" || die "$collsim $*: failed"
	sed "1s/^/sweep\t/; 2,\$s/^/$name\t/" "$work/rows" >>"$work/all"
}

rows kary --overlap -s kary -k 2,4,8,16,32 -n "2:$nodes" # the first: it names the last column, which others lack
rows knomial -s knomial -k 2,4,8 -n "2:$nodes"
rows tests -t barrier,bcast -k 16 -n "2:$nodes"
rows aries -m aries -s kary -k 2,4,8,16,32 -n "2:$nodes"
rows aries -m aries -s kary -k 2,4,8,16,32 -n 750
rows th2_12000 -s kary -k 2,4,8,16,32 -n 12000
for share in 0 0.001 0.01 0.1; do
	rows "noise$share" -k 16 -n 4096 -i 20 --noise $share,5000 -t barrier
done
for size in 64K 1M; do
	rows long$size -t bcast -b $size -k 1 -n 2:32
	rows long$size -t bcast -b $size -k 2,4,8 -n 2:4096
done
awk -F '\t' -v OFS='\t' 'NR == 1 { n = NF } $1 == "sweep" && NR > 1 { next } NF < n { $n = "-" } { print }' \
	"$work/all" >"$out/collectives.tsv"
echo "figures: $out/collectives.tsv"
if command -v gnuplot >/dev/null; then
	gnuplot -e "tsv='$out/collectives.tsv'; picture='$out/collectives.svg'" "$top/examples/plots/collsim.gp" ||
		die "gnuplot failed"
	echo "picture: $out/collectives.svg"
fi
