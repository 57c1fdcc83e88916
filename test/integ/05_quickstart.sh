#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 05_quickstart.sh - quickstart says which packages are missing, before it does anything.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"

# A machine that has every package but one.
mkdir "$work/bin"
cat >"$work/bin/dpkg-query" <<'TXT'
#!/bin/sh
case " $* " in
*" $MISSING "*) echo not-installed ;;
*) echo installed ;;
esac
TXT
chmod +x "$work/bin/dpkg-query"

# stops MISSING ARGUMENT...: it names that package and no other, and nothing has been made
stops() {
	MISSING=$1 PATH=$work/bin:$PATH timeout 60 "$src/quickstart" build --no-install --prefix "$work/prefix" "${@:2}" \
		>"$work/out" 2>"$work/err"
	[ $? = 1 ] && grep -qx "quickstart: missing packages: $1 *" "$work/err" && [ ! -s "$work/out" ] &&
		[ ! -e "$work/prefix" ]
}

stops libhwloc-dev
result $? "package_missing__is_named"
stops patchelf
result $? "package_of_the_mpich_build_missing__is_named"
stops gfortran --full
result $? "full__compiler_of_its_bindings_missing__is_named"
"$src/quickstart" --whole >"$work/out" 2>&1
[ $? = 2 ] && grep -q "unknown argument '--whole'" "$work/out"
result $? "argument_unknown__is_said"
finish
