#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run-suite.sh - MPICH's own test suite over the netmod "glex", compared with "tcp".
#
# The suite's runtests does the running and judging.  Around it:
#
#   suite-KEY/       the suite unpacked, configured and compiled once, in the cache beside the
#                    build trees of netmod-glex/build-mpich.sh; good for any prefix, because it
#                    sees MPI only through two small programs of ours, shim/mpicc and shim/mpiexec
#   exclude.txt      what is left out, when, and why
#   shim/mpiexec     a fence: whatever a test leaves behind is ended with it
#   san-cc.sh        the compiler for an MPICH to be tested under the sanitizers
#
# A test that fails over the first netmod is run again over the second one.  Only if it passes
# there it counts as failed; else it says nothing about the first one and counts as skipped.
#
# shellcheck disable=SC2317 # many functions are called by step or by a trap
set -euo pipefail

prog=run-suite.sh
recipe=1

usage()
{
	cat <<EOF
usage: $prog [--prefix DIR] [options]

Runs the test suite of MPICH with the MPI in DIR (bin/mpicc, bin/mpiexec; default: _install
at the top of this source tree).

  --netmods A[,B]   run over A, and what fails over B (default glex,tcp)
  --all             run everything over B, not only what fails over A
  --dirs D,...      directories of the suite (default $default_dirs)
  --mode nolocal    all messages through the netmod (default)
  --mode cliques    two make-believe nodes: shared memory within, the netmod between them
  --np N            at most N ranks; larger tests run with N (default 4)
  --only REGEX      only tests whose line in the test list matches
  --quick           without slow tests (exclude.txt); none has more than --timeout
  --timeout S       seconds a test may take if the suite does not say (default 120)
  --jobs N          compile N tests at a time (default: one a processor)
  --mpich PATH      source tree or tarball to take the suite from (default: that of build-mpich.sh)
  --out DIR         where logs go (default: a directory in the cache, emptied each time)
  --prepare         only unpack, configure and compile
  --verbose         a line for each test

The last line is "N passed, N failed, N skipped"; the status is 1 if a test failed.
EOF
}

die()
{
	clear_progress
	echo "$prog: $*" >&2
	exit 2
}

say()
{
	clear_progress
	echo "$prog: $*"
}

clear_progress()
{
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# ---- children -----------------------------------------------------------------------------

child=

# The whole process group; mpiexec's fence sees to the ranks.
end_child()
{
	[ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null || true
	child=
}

# in_group LOG COMMAND... - runs it in a process group of its own, progress line meanwhile
in_group()
{
	local log=$1 rc=0
	shift
	set -m
	"$@" >"$log" 2>&1 9>&- </dev/null &
	child=$!
	set +m
	if [ -t 2 ]; then
		while kill -0 "$child" 2>/dev/null; do
			progress
			sleep 0.5
		done
	fi
	wait "$child" || rc=$?
	child=
	clear_progress
	return "$rc"
}

progress()
{
	printf '\r%s: %s ... %d s\033[K' "$prog" "$what" $((SECONDS - what_since)) >&2
}

# step WHAT LOG COMMAND...
step()
{
	what=$1 what_since=$SECONDS
	if ! in_group "$2" "${@:3}"; then
		echo "$prog: $what failed; the last lines of $2:" >&2
		tail -n 25 "$2" | sed 's/^/    /' >&2
		exit 2
	fi
	say "$what: $((SECONDS - what_since)) s"
}

# ---- the suite, once ----------------------------------------------------------------------

find_suite()
{
	local source id
	if [ -n "$mpich" ]; then
		source=$("$build" --fetch --mpich "$mpich")
	else
		source=$("$build" --fetch)
	fi
	suite_source=$source
	if [ -d "$source" ]; then
		id=$(cd "$source/test/mpi" && find . -type f -printf '%P %s %T@\n' | sort | sha256sum)
	else
		id=$(sha256sum <"$source")
	fi
	suite=$cache/suite-$({
		echo "$recipe $(uname -m) $id"
		cat "$prefix/include/mpi.h"
		gcc --version 2>/dev/null | head -n 1
	} | sha256sum | cut -c1-16)
}

unpack()
{
	mkdir -p "$suite/src"
	if [ -d "$suite_source" ]; then
		tar -c -f - -C "$suite_source" test/mpi | tar -x -f - -C "$suite/src" --no-same-owner
	else
		tar -x -f "$suite_source" -C "$suite/src" --strip-components=1 --no-same-owner \
			--wildcards '*/test/mpi'
	fi
	[ -f "$suite/src/test/mpi/configure" ] || {
		echo "$suite_source has no test/mpi/configure"
		return 1
	}
}

# The suite keeps the path of its mpicc for ever: these stand in for that of any prefix.
write_shims()
{
	mkdir -p "$suite/shim/bin"
	cat >"$suite/shim/bin/mpicc" <<'EOF'
#!/bin/sh
exec "${SUITE_PREFIX:?}/bin/mpicc" "$@"
EOF
	# runtests calls make before each test, which takes longer than many of them
	cat >"$suite/shim/bin/make" <<'EOF'
#!/bin/sh
[ $# != 1 ] || [ ! -x "$1" ] || exit 0
PATH=${PATH#*:} exec make "$@"
EOF
	# libtool takes longer than the linker, and tests need nothing of it: the suite's libraries are archives.  What the
	# linker refuses, a library for one, libtool gets.
	cat >"$suite/shim/bin/libtool" <<'EOF'
#!/bin/sh
fast() {
	while [ "$1" != --mode=link ]; do shift; done
	shift
	for arg; do
		case $arg in
		*/*.la) arg=${arg%/*}/.libs/${arg##*/} arg=${arg%.la}.a ;;
		esac
		set -- "$@" "$arg"
		shift
	done
	"$@" 2>/dev/null
}
case " $* " in *" --mode=link "*) fast "$@" && exit 0 ;; esac
exec "${SUITE_LIBTOOL:?}" "$@"
EOF
	cp "$here/fenced-mpiexec.sh" "$suite/shim/bin/mpiexec"
	chmod +x "$suite/shim/bin"/*
}

configure_suite()
{
	cd "$suite/obj" &&
		env -u CFLAGS -u CPPFLAGS -u LDFLAGS -u LIBS \
			../src/test/mpi/configure --with-mpi="$suite/shim" --disable-fortran --disable-cxx &&
		make -C dtpools &&
		make -C util
}

prepare_suite()
{
	if [ ! -f "$suite/complete" ] || [ "$(cat "$suite/complete")" != "$suite" ]; then
		rm -rf "$suite"
		mkdir -p "$suite/obj"
		step "unpacking the suite" "$suite/unpack.log" unpack
		write_shims
		step "configuring the suite" "$suite/configure.log" configure_suite
		echo "$suite" >"$suite/complete"
	fi
	write_shims # they are no part of the key
	touch "$suite/complete"
	prune
}

# Keeps the two suites used last.
prune()
{
	local old
	find "$cache" -maxdepth 2 -path "$cache/suite-*/complete" -printf '%T@ %h\n' | sort -rn |
		tail -n +3 | cut -d' ' -f2- |
		while IFS= read -r old; do
			rm -f "$old/complete"
			rm -rf "$old"
		done
}

# ---- lists of tests -----------------------------------------------------------------------

# Some lists are made by configure, the others are where they were.
list_of()
{
	local list=$suite/obj/$1/testlist
	[ -f "$list" ] || list=$suite/src/test/mpi/$1/testlist
	echo "$list"
}

# A directory's list may name directories; each is a directory of ours then. Adds to dirs.
expand_dirs()
{
	local dir sub
	for dir in "$@"; do
		[ -f "$(list_of "$dir")" ] || die "--dirs: the suite has no directory $dir with tests"
		while read -r sub _; do
			[ -z "$sub" ] || [ ! -d "$suite/obj/$dir/$sub" ] || expand_dirs "$dir/$sub"
		done < <(sed 's/#.*//' "$(list_of "$dir")")
		dirs+=("$dir")
	done
}

# make_list DIR - writes $out/DIR.list, lines of the suite's own form, and $out/DIR.left-out,
# "test: reason".  exclude.txt: see its head.
make_list()
{
	local dir=$1 base=$out/${1//\//.}
	: >"$base.left-out"
	sed 's/#.*//; s/[[:space:]]*$//' "$(list_of "$dir")" |
		while read -r test rest; do
			[ -z "$test" ] || [ "${test#!}" != "$test" ] || [ -d "$suite/obj/$dir/$test" ] ||
				echo "$test${rest:+ $rest}"
		done |
		awk -v dir="$dir" -v np="$np" -v quick="$quick" -v only="$only" -v timeout="$timeout" \
			-v left_out="$base.left-out" -v rules="$here/exclude.txt" '
		BEGIN {
			while ((getline line < rules) > 0) {
				sub(/^#.*/, "", line)
				if (split(line, f, /[ \t]+/) < 3) continue
				when[++n] = f[1]; test[n] = f[2]
				match(line, /^[^ \t]+[ \t]+[^ \t]+[ \t]+/)
				why[n] = substr(line, RLENGTH + 1)
			}
		}
		function applies(w, ranks) {
			if (w == "always") return 1
			if (w == "quick") return quick != ""
			return substr(w, 1, 3) == "np<" && np + 0 < substr(w, 4) + 0
		}
		function matches(pattern, line,   i) {
			i = index(pattern, ":")   # dir/program:text - only lines that contain the text
			if (i && index(line, substr(pattern, i + 1)) == 0) return 0
			if (i) pattern = substr(pattern, 1, i - 1)
			if (pattern ~ /\/\*$/) return dir == substr(pattern, 1, length(pattern) - 2)
			return pattern == dir "/" $1
		}
		only != "" && $0 !~ only { next }
		{
			for (i = 1; i <= n; i++)
				if (applies(when[i]) && matches(test[i], $0)) {
					print dir "/" $0 ": " why[i] > left_out
					next
				}
			if (quick != "")
				while (match($0, /timeLimit=[0-9]+/) && substr($0, RSTART + 10, RLENGTH - 10) + 0 > timeout + 0)
					$0 = substr($0, 1, RSTART + 9) timeout substr($0, RSTART + RLENGTH)
			print
		}' >"$base.list"
}

# For all of dirs; those without a test are left out of the table too.
make_lists()
{
	local dir with=()
	for dir in "${dirs[@]}"; do
		make_list "$dir"
		[ ! -s "$out/${dir//\//.}.list" ] && [ ! -s "$out/${dir//\//.}.left-out" ] || with+=("$dir")
	done
	[ ${#with[@]} -gt 0 ] || die "no test matches"
	dirs=("${with[@]}")
}

# Errors are no matter here: a test that does not compile fails when its turn comes.
compile_tests()
{
	local dir
	for dir in "${dirs[@]}"; do
		awk '{ print $1 }' "$out/${dir//\//.}.list" | sort -u |
			SUITE_LIBTOOL=$suite/obj/libtool xargs -r make -C "$suite/obj/$dir" -k -j"$jobs" \
				LIBTOOL="$suite/shim/bin/libtool" || true
	done
}

# ---- running ------------------------------------------------------------------------------

# run_list NETMOD DIR LIST RESULT - RESULT gets a line for each of LIST: "pass TEST" and so on
run_list()
{
	local netmod=$1 dir=$2 list=$3 result=$4 name=testlist.run
	local log=${result%.result}.log tap=${result%.result}.tap
	rm -f "$tap"
	cp "$list" "$suite/obj/$dir/$name"
	what="$netmod: $dir, $(wc -l <"$list") tests" what_since=$SECONDS
	in_group "$log" run_tests "$netmod" "$dir" "$name" "$tap" || true
	rm -f "$suite/obj/$dir/$name"
	echo $((SECONDS - what_since)) >"${result%.result}.seconds"
	judge "$dir" "$list" "$tap" >"$result"
}

run_tests()
{
	cd "$suite/obj"
	rm -f .stoptest
	case $mode in
	nolocal) export MPIR_CVAR_NOLOCAL=1 ;;
	cliques) export MPIR_CVAR_NUM_CLIQUES=2 ;;
	esac
	# Each rank writes to all of a pool for one-sided operations when it starts: an eighth of the time of most tests.
	case $2 in
	*rma*) ;;
	*) export MPIR_CVAR_CH3_RMA_OP_GLOBAL_POOL_SIZE=${MPIR_CVAR_CH3_RMA_OP_GLOBAL_POOL_SIZE:-1024} ;;
	esac
	MPIR_CVAR_NEMESIS_NETMOD=$1 MPITEST_TIMEOUT=$timeout MPITEST_CLEANUP=0 \
		MPITEST_MEMORY_TOTAL=$memory_gb PATH="$suite/shim/bin:$PATH" \
		./runtests -srcdir="$suite/src/test/mpi" -mpiexec="$suite/shim/bin/mpiexec" \
		-testdirs="$2" -tests="$3" -maxnp="$np" -tapfile="$4" -xmlfile="${4%.tap}.xml" -showprogress
}

# runtests reports in the order of the list, with a name that leaves the arguments out: so by
# position.  What it does not report (it stops when most tests time out) has not passed.
judge()
{
	local tap=$3
	[ -f "$tap" ] || tap=/dev/null
	awk -v dir="$1" '
		FNR == NR {
			if (/^(not )?ok /) {
				seconds = match($0, /time=[0-9.]+/) ? substr($0, RSTART + 5, RLENGTH - 5) : 0
				verdict[++n] = (/^not/ ? "fail" : /# SKIP/ ? "skip" : "pass") sprintf(" %.1f", seconds)
			}
			next
		}
		{ print (FNR <= n ? verdict[FNR] : "fail 0.0"), dir "/" $0 }
	' "$tap" "$2"
}

# nth_output TAP N PROGRAM - what the N-th test of the file printed, or runtests about it
nth_output()
{
	local text
	[ -f "$1" ] || return 0
	text=$(awk -v want="$2" '
		/^(not )?ok / { n++ }
		n == want && /^## / && !/^## Test output/ { print "        " substr($0, 4) }
	' "$1")
	[ -n "$text" ] || text=$(grep -F "rogram $3 " "${1%.tap}.log" | sort -u | sed 's/^/        /') || true
	head -n 12 <<<"$text"
}

# run_dir DIR - over the first netmod, then over the second what needs it
run_dir()
{
	local dir=$1 base=$out/${1//\//.} first=${netmods[0]} second=${netmods[1]:-}
	if [ ! -s "$base.list" ]; then
		: >"$base.$first.result"
		: >"$base.verdict"
		return 0
	fi
	run_list "$first" "$dir" "$base.list" "$base.$first.result"
	if [ -n "$second" ]; then
		if [ -n "$all" ]; then
			cp "$base.list" "$base.again"
		else
			# the results are in the order of the list
			paste -d '|' <(cut -d' ' -f1 "$base.$first.result") "$base.list" |
				sed -n 's/^fail|//p' >"$base.again"
		fi
		: >"$base.$second.result"
		[ ! -s "$base.again" ] || run_list "$second" "$dir" "$base.again" "$base.$second.result"
	fi
	compare "$base" "$first" "$second" >"$base.verdict"
}

# compare BASE FIRST SECOND - for each line of the list, in its order, "WORD TEST":
#   pass     it passed over FIRST (and over SECOND, if it ran there)
#   worse    it failed over FIRST alone, or there is no SECOND: this is what we look for
#   better   it failed over SECOND alone
#   neither  it failed over both
compare()
{
	local other=/dev/null
	[ -z "$3" ] || other=$1.$3.result
	awk -v two="$3" -v all="$all" -v other="$other" '
		BEGIN { while ((getline line < other) > 0) { split(line, f); o[++n] = f[1] } }
		{
			verdict = $1
			sub(/^[a-z]+ [0-9.]+ /, "")
			# over SECOND ran all, or, in the same order, what had failed
			there = all != "" ? o[FNR] : verdict == "fail" ? o[++k] : ""
			if (verdict == "skip") print "skip", $0
			else if (verdict == "pass") print (there == "fail" ? "better" : "pass"), $0
			else print (two == "" || there == "pass" ? "worse" : "neither"), $0
		}
	' "$1.$2.result"
}

# ---- the report ---------------------------------------------------------------------------

# count FILE WORDS - lines that begin with one of the words, a|b
count()
{
	grep -cE "^($2) " "$1" || true
}

table()
{
	local dir base first=${netmods[0]} second=${netmods[1]:-} again
	printf '\n%-18s %6s %8s %14s %8s %8s  %s\n' directory tests "$first" "${second:-}" "left out" seconds \
		"${second:+only $second passes}"
	for dir in "${dirs[@]}"; do
		base=$out/${dir//\//.}
		again=
		if [ -n "$second" ] && [ -s "$base.again" ]; then
			again="$(count "$base.$second.result" pass) of $(wc -l <"$base.again")"
		fi
		printf '%-18s %6d %8d %14s %8d %8s  %s\n' "$dir" "$(wc -l <"$base.list")" \
			"$(count "$base.$first.result" pass)" "${again:-${second:+-}}" \
			"$(wc -l <"$base.left-out")" "$(cat "$base.$first.seconds" 2>/dev/null)" \
			"$(sed -n "s|^worse $dir/||p" "$base.verdict" | awk '{ print $1 }' | paste -sd' ')"
	done
	echo
}

# What else a reader wants to see by name; of the first failures the output too.
details()
{
	local dir base n word test shown=0 first=${netmods[0]} second=${netmods[1]:-}
	for dir in "${dirs[@]}"; do
		base=$out/${dir//\//.}
		n=0
		while read -r word test; do
			n=$((n + 1))
			case $word in
			worse)
				echo "    FAILED over $first: $test"
				shown=$((shown + 1))
				[ "$shown" -gt 12 ] || nth_output "$base.$first.tap" "$n" "$(basename "${test%% *}")"
				;;
			neither) echo "    fails over $first and over $second alike: $test" ;;
			better) echo "    passes over $first, fails over $second: $test" ;;
			esac
		done <"$base.verdict"
	done
}

report()
{
	local passed failed skipped
	table
	details
	[ -z "$verbose" ] || sed 's/^/    left out: /' "$out"/*.left-out
	cat "$out"/*.verdict >"$out/verdicts"
	passed=$(count "$out/verdicts" 'pass|better')
	failed=$(count "$out/verdicts" worse)
	skipped=$(($(count "$out/verdicts" 'skip|neither') + $(cat "$out"/*.left-out | wc -l)))
	echo "logs: $out"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

# ---- arguments ----------------------------------------------------------------------------

default_dirs=pt2pt,coll,comm,datatype,init,attr,info,group,errhan,topo,io

parse_args()
{
	local value
	while [ $# -gt 0 ]; do
		case $1 in
		--prefix | --netmods | --dirs | --mode | --np | --only | --timeout | --jobs | --mpich | --out)
			[ $# -gt 1 ] || die "$1 needs a value"
			value=$2
			case $1 in
			--prefix) prefix=$value ;;
			--netmods) IFS=, read -r -a netmods <<<"$value" ;;
			--dirs) dir_list=$value ;;
			--mode) mode=$value ;;
			--np) np=$value ;;
			--only) only=$value ;;
			--timeout) timeout=$value ;;
			--jobs) jobs=$value ;;
			--mpich) mpich=$value ;;
			--out) out=$value ;;
			esac
			shift
			;;
		--all) all=1 ;;
		--quick) quick=1 ;;
		--prepare) prepare=1 ;;
		--verbose) verbose=1 ;;
		-h | --help) usage; exit 0 ;;
		*) usage >&2; die "unknown argument $1" ;;
		esac
		shift
	done
	case $mode in nolocal | cliques) ;; *) die "--mode $mode: nolocal or cliques" ;; esac
	for value in "$np" "$jobs" "${timeout:-1}"; do
		case $value in '' | *[!0-9]* | 0) die "not a number of 1 or more: $value" ;; esac
	done
	case ${#netmods[@]} in 1 | 2) ;; *) die "--netmods: one or two names" ;; esac
	timeout=${timeout:-120}
}

check_prefix()
{
	local tool
	for tool in mpicc mpiexec; do
		[ -x "$prefix/bin/$tool" ] ||
			die "$prefix/bin/$tool is absent; build it with netmod-glex/build-mpich.sh --prefix $prefix"
	done
	prefix=$(cd "$prefix" && pwd)
	for tool in gcc make perl flock; do
		command -v "$tool" >/dev/null || die "$tool is missing; on Debian: apt-get install gcc make perl util-linux"
	done
}

# What of the kernel's means to end a test with all its descendants is permitted here.
choose_fence()
{
	local try
	if [ -n "${SUITE_FENCE+set}" ]; then # for a test of this script
		fence=$SUITE_FENCE
		return
	fi
	for try in "--pid --fork --kill-child --mount-proc" "--user --map-current-user --pid --fork --kill-child --mount-proc"; do
		# shellcheck disable=SC2086 # words on purpose
		if unshare $try true 2>/dev/null; then
			fence=$try
			return
		fi
	done
	fence=
}

main()
{
	local dir wanted
	here=$(cd "$(dirname "$0")" && pwd)
	build=$here/../../netmod-glex/build-mpich.sh
	cache=${GLEX_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/libglex}/mpich
	prefix=$here/../../_install mode=nolocal np=4 dir_list=$default_dirs
	netmods=(glex tcp)
	only='' quick='' all='' prepare='' verbose='' mpich='' out='' timeout=''
	jobs=$(nproc)
	parse_args "$@"
	check_prefix
	memory_gb=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
	find_suite
	choose_fence
	# Not GLEX_ names: libglex warns of those it does not know, and a test that prints anything fails.
	export SUITE_PREFIX=$prefix SUITE_FENCE=$fence
	unset GLEX_CACHE_DIR
	export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

	trap end_child EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkdir -p "$cache"
	exec 9>"$cache/suite.lock"
	flock -n 9 || { say "another $prog is at work in $cache; waiting for it"; flock 9; }
	prepare_suite
	if [ -z "$out" ]; then
		out=$suite/out
		rm -rf "$out"
	fi
	mkdir -p "$out"
	out=$(cd "$out" && pwd)
	rm -f "$out"/*.{list,left-out,seconds,result,verdict,again,tap,xml,log}
	dirs=()
	IFS=, read -r -a wanted <<<"$dir_list"
	expand_dirs "${wanted[@]}"
	make_lists
	step "compiling $(cat "$out"/*.list | wc -l) tests" "$out/compile.log" compile_tests
	[ -z "$prepare" ] || return 0
	for dir in "${dirs[@]}"; do
		run_dir "$dir"
		say "$dir: $(count "$out/${dir//\//.}.verdict" 'pass|better') of $(wc -l <"$out/${dir//\//.}.list") passed"
	done
	report
}

main "$@"
exit
