#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# words.sh - spelling, and nothing marked as left undone.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

texts() {
	files c h sh awk mk in map scd py md
	find . -maxdepth 1 -type f \( -name '*.md' -o -name '*.ac' -o -name '*.am' -o -name CHANGES \) | sort
	[ ! -d doc ] || find doc -type f -name '*.md' | sort
}

# Words that are right here and that codespell takes for others.
ours=ba,nd,te,creat,inout,clen,ypes

check() {
	texts | xargs -r -d '\n' codespell -L "$ours"
}

if command -v codespell >/dev/null; then
	guard "words are spelt right" check
	# put together here, so that this file is spelt right itself
	echo "/* rec""ieve it */" | given
must_complain "a misspelt word" libglex/src/core/x.c
	echo "/* receive it */" | given
must_accept "a word spelt right" libglex/src/core/x.c
else
	skip "words are spelt right" "no codespell"
fi

check() {
	texts | grep -v '^test/ci/words.sh$' | xargs -r -d '\n' grep -nHE '\<(TODO|FIXME|XXX)\>'
}

guard "nothing is marked as left undone" check
echo "/* TODO: write it */" | given
must_complain "a TODO" libglex/src/core/x.c
echo "FIXME later" | given
must_complain "a FIXME in a script" test/x.sh
echo 'char path[] = "/tmp/x.XXXXXX";' | given
must_accept "a mkdtemp pattern" test/x.c
finish
