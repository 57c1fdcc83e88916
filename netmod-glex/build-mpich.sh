#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build-mpich.sh - builds MPICH with the netmod "glex" and puts it into a prefix.
#
#   source          Debian's mpich_4.0.2.orig.tar.xz, fetched by apt with a source list of our
#      |            own; nothing on the machine changes (or --mpich PATH)
#   tree-KEY/       src obj base: MPICH configured and compiled once with an empty placeholder
#      |            for the netmod.  KEY: source, configure flags, compiler, this recipe.
#      |            A changed netmod is compiled and linked in it by one small make.
#   stage-KEY/      the installed files, made for no prefix in particular.
#      |            KEY: the tree's, and the contents of the netmod and of glex*.h.
#   PREFIX          a copy of it with the prefix filled in.
#
# All but PREFIX is in ${GLEX_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/libglex}/mpich.
# What an interrupted run leaves is never taken for good: a tree counts once its file `complete`
# is there, a stage is made under another name and renamed, a tree whose small make was cut off
# carries the file `dirty` until the objects of that make are thrown away.
#
# shellcheck disable=SC2317 # many functions are called by run_step or by a trap
set -euo pipefail

prog=build-mpich.sh
recipe=2 # a change of this number makes all trees and stages out of date

mpich_version=4.0.2
mpich_sha256=b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860

# What a Debian 12 needs for it; apt-get itself and util-linux's flock are always there.
packages=(gcc libc6-dev make patchelf xz-utils)
packages_full=(g++ gfortran)

# The trees are configured for this prefix, which put_into_prefix replaces by the real one.
neutral_prefix=/opt/libglex-prefix

configure_flags=(
	--prefix="$neutral_prefix" "--with-device=ch3:nemesis:glex,tcp"
	--disable-maintainer-mode --enable-yield=sched_yield
	--disable-static --enable-shared
	"--enable-fast=O3,ndebug" --with-pm=hydra --without-ucx --without-libfabric
	# the result must not depend on what else the machine has
	--with-hwloc=embedded --with-yaksa=embedded --without-hcoll --without-xpmem --without-slurm
	--without-cuda
)

usage()
{
	cat <<EOF
usage: $prog --prefix DIR [options]
       $prog --prepare | --fetch | --packages | --print-key | --print-tree  [options]

Builds MPICH $mpich_version (ch3:nemesis) with the netmods glex and tcp and installs it into DIR.

  --prefix DIR       where bin/mpicc, bin/mpiexec and lib/libmpich.so.12 go
  --glex-prefix DIR  where libglex is: DIR/include/glex.h, DIR/lib/libglex.so (default: --prefix)
  --mpich PATH       an MPICH source tree or tarball to use instead of Debian's $mpich_version
  --netmod DIR       take the netmod from DIR/glue and DIR/channel (default: beside this script)
  --full             Fortran and C++ bindings too
  --jobs N           compile N files at a time (default: one a processor)
  --verbose          show what configure and make print

  --prepare          only fetch, configure and compile all but the netmod; needs no libglex
  --fetch            only fetch the source, and print the tarball's path
  --packages         print the Debian packages needed
  --print-key        print the cache key, TREE-NETMOD, of what would be built
  --print-tree       print the directory of the build tree

The cache is \${GLEX_CACHE_DIR:-\${XDG_CACHE_HOME:-~/.cache}/libglex}/mpich; it may be deleted
at any time.
EOF
}

die()
{
	clear_progress
	echo "$prog: $*" >&2
	exit 1
}

say()
{
	clear_progress
	printf '%s: %s\n' "$prog" "$*"
}

clear_progress()
{
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# ---- steps with a log ---------------------------------------------------------------------

child=

end_child()
{
	[ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null || true
	child=
}

# run_step WHAT LINES LOG COMMAND... - LINES: how many the log has in the end, for the percentage
run_step()
{
	local what=$1 lines=$2 log=$3 start=$SECONDS rc=0 shown=
	shift 3
	set -m # a process group of its own, so that nothing of it survives us
	if [ -n "$verbose" ]; then
		{ "$@" 2>&1 | tee "$log" >&2; } 9>&- </dev/null &
	else
		"$@" >"$log" 2>&1 9>&- </dev/null &
	fi
	child=$!
	set +m
	if [ -z "$verbose" ] && [ -t 2 ]; then
		while kill -0 "$child" 2>/dev/null; do
			shown=$(($(wc -l <"$log") * 100 / lines))
			[ "$shown" -lt 99 ] || shown=99
			printf '\r%s: %s ... %d %%  %d s\033[K' "$prog" "$what" "$shown" $((SECONDS - start)) >&2
			sleep 0.5
		done
	fi
	wait "$child" || rc=$?
	child=
	if [ "$rc" != 0 ]; then
		clear_progress
		echo "$prog: $what failed after $((SECONDS - start)) s; the last lines of $log:" >&2
		tail -n 25 "$log" | sed 's/^/    /' >&2
		exit 1
	fi
	say "$what: $((SECONDS - start)) s"
}

hash_of()
{
	sha256sum | cut -c1-16
}

# ---- keys ---------------------------------------------------------------------------------

source_id()
{
	if [ -z "$mpich" ]; then
		echo "sha256 $mpich_sha256"
	elif [ -d "$mpich" ]; then
		echo "tree $( (cd "$mpich" && find . -name .git -prune -o -type f -printf '%P %s %T@\n') | sort | hash_of)"
	else
		echo "sha256 $(sha256sum <"$mpich" | cut -d' ' -f1)"
	fi
}

compute_tree_key()
{
	tree_key=$({
		echo "recipe $recipe $(uname -m)"
		source_id
		printf '%s\n' "${configure_flags[@]}"
		for compiler in "${compilers[@]}"; do
			echo "$compiler $($compiler --version 2>&1 | head -n 1)"
		done
	} | hash_of)
	tree=$cache/tree-$tree_key
}

# Before libglex is installed the headers in its source are the ones that will be.
glex_include()
{
	if [ -f "$glex_prefix/include/glex.h" ]; then
		echo "$glex_prefix/include"
	else
		echo "$here/../libglex/include"
	fi
}

compute_stage_key()
{
	local include
	include=$(glex_include)
	stage_key=$tree_key-$({
		cat "$here/install-into.sh"
		(cd "$netmod" && find glue channel -name '*.[ch]' -type f | LC_ALL=C sort | xargs -r sha256sum)
		(cd "$include" && find . -name 'glex*.h' | LC_ALL=C sort | xargs -r sha256sum)
	} | hash_of)
	stage=$cache/stage-$stage_key
}

# ---- the source ---------------------------------------------------------------------------

need_tools()
{
	local tool missing=()
	for tool in "$@"; do
		command -v "${tool%% *}" >/dev/null || missing+=("$tool")
	done
	[ ${#missing[@]} = 0 ] ||
		die "not found: ${missing[*]}; on Debian: apt-get install ${packages[*]}"
}

# The machine's own sources with deb-src for deb, in a directory of ours.
write_source_lists()
{
	local etc=/etc/apt f
	mkdir -p "$1/parts" "$1/lists/partial"
	for f in "$etc/sources.list" "$etc"/sources.list.d/*.list; do
		[ ! -f "$f" ] || sed -n 's/^[[:space:]]*deb\([[:space:]]\)/deb-src\1/p' "$f" \
			>"$1/parts/$(basename "$f" .list).list"
	done
	for f in "$etc"/sources.list.d/*.sources; do
		[ ! -f "$f" ] || sed 's/^[Tt]ypes:.*/Types: deb-src/' "$f" >"$1/parts/$(basename "$f")"
	done
	# Read after the machine's configuration, so its proxies and the like hold here too.
	cat >"$1/apt.conf" <<EOF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$1/parts";
Dir::State::lists "$1/lists";
Dir::Cache "$1";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOF
}

# Runs in the directory $1; leaves the tarball there.
apt_fetch()
{
	local version
	cd "$1"
	write_source_lists "$1"
	# A third-party list without sources makes the update fail, which is no matter here.
	apt-get -c "$1/apt.conf" update || true
	version=$(apt-cache -c "$1/apt.conf" showsrc mpich |
		sed -n "s/^Version: \($mpich_version-.*\)/\1/p" | head -n 1)
	if [ -z "$version" ]; then
		echo "this machine's apt sources have no mpich $mpich_version (Debian 12 has it)."
		echo "fetch the release mpich-$mpich_version.tar.gz of the MPICH project, or a newer one up to 5.0,"
		echo "and name it with --mpich"
		return 1
	fi
	apt-get -c "$1/apt.conf" source --download-only --tar-only "mpich=$version"
}

# Sets tarball, or leaves it empty when --mpich names a directory.
fetch_source()
{
	local tmp sum
	tarball=
	if [ -n "$mpich" ]; then
		[ -d "$mpich" ] || tarball=$mpich
		return
	fi
	tarball=$cache/source/mpich_$mpich_version.orig.tar.xz
	mkdir -p "$cache/source"
	if [ ! -f "$tarball" ]; then
		need_tools apt-get
		tmp=$cache/tmp-fetch
		rm -rf "$tmp"
		mkdir -p "$tmp"
		run_step "fetching the source of MPICH $mpich_version" 40 "$cache/fetch.log" apt_fetch "$tmp"
		mv "$tmp/$(basename "$tarball")" "$tarball.new"
		mv "$tarball.new" "$tarball"
		rm -rf "$tmp"
	fi
	sum=$(sha256sum <"$tarball" | cut -d' ' -f1)
	[ "$sum" = "$mpich_sha256" ] ||
		die "$tarball is damaged: its sha256 is $sum, it should be $mpich_sha256; remove it and run again"
}

# ---- the build tree -----------------------------------------------------------------------

# Big parts that ch3 never uses, and what nobody builds.
unpack()
{
	local skip=(--exclude='*/modules/ucx/*' --exclude='*/modules/libfabric/*' --exclude='*/test/mpi/*' --exclude='.git')
	mkdir -p "$tree/src"
	if [ -n "$tarball" ]; then
		tar -x -f "$tarball" -C "$tree/src" --strip-components=1 --no-same-owner "${skip[@]}"
	else
		tar -c -f - -C "$(dirname "$mpich")" "${skip[@]}" "$(basename "$mpich")" |
			tar -x -f - -C "$tree/src" --strip-components=1 --no-same-owner
	fi
}

check_unpacked()
{
	[ -f "$tree/src/maint/version.m4" ] ||
		die "${mpich:-$tarball} is no MPICH source (no maint/version.m4 at its top)"
	[ -f "$tree/src/configure" ] ||
		die "${mpich:-$tarball} has no configure; take a release tarball, or run ./autogen.sh there first"
	[ ! -f "$tree/src/config.status" ] ||
		die "$mpich is configured already; run make distclean there, or unpack a fresh copy"
}

# A netmod of a few lines stands in, so that a tree depends on nothing of ours but where MPICH's
# collectives ask: its functions are those of the netmod "none" that includes it.
write_placeholder()
{
	local from=$tree/placeholder
	mkdir -p "$from/glue" "$from/channel" "$tree/obj/glex-api/include" "$tree/obj/glex-api/lib"
	cat >"$from/glue/glex_all.c" <<'EOF'
MPID_nem_netmod_funcs_t MPIDI_nem_glex_funcs = {
    .init = nm_init, .finalize = nm_finalize, .poll = nm_poll, .get_business_card = nm_get_business_card,
    .connect_to_root = nm_connect_to_root, .vc_init = nm_vc_init, .vc_destroy = nm_vc_destroy, .vc_terminate = nm_vc_terminate
};
const struct MPIDI_GLEX_coll *MPIDI_GLEX_coll;
EOF
	cp "$netmod/glue/glex_hook.h" "$from/glue/"
	"$here/install-into.sh" --quiet --from "$from" "$tree/src"
	: >"$from/empty.c"
	"${compilers[0]}" -shared -fPIC -o "$tree/obj/glex-api/lib/libglex.so" "$from/empty.c"
}

# The flags people export for their own programs (sanitizers, -Werror) are not meant for MPICH.
configure_tree()
{
	local fortran=()
	# gfortran 10 and newer refuse the bindings' calls without it
	if [ -n "$full" ] && echo end | ${compilers[2]} -fallow-argument-mismatch -x f95 -fsyntax-only - 2>/dev/null; then
		fortran=(FFLAGS=-fallow-argument-mismatch FCFLAGS=-fallow-argument-mismatch)
	fi
	cd "$tree/obj"
	env -u CFLAGS -u CPPFLAGS -u CXXFLAGS -u FFLAGS -u FCFLAGS -u LDFLAGS -u LIBS -u DESTDIR \
		CC="${compilers[0]}" MPILIBNAME=mpich MPICXXLIBNAME=mpichcxx MPIFCLIBNAME=mpichfort \
		../src/configure "${configure_flags[@]}" MPICHLIB_CPPFLAGS=-Iglex-api/include \
		"${fortran[@]}" || return
	# Only libmpich links to libglex: configure's LIBS would put it into every program as well.
	sed -i "s|^lib_libmpich_la_LDFLAGS = .*|& -L$tree/obj/glex-api/lib -lglex|" Makefile
	grep -q '^lib_libmpich_la_LDFLAGS = .* -lglex$' Makefile || {
		echo "no rule for libmpich.la in the generated Makefile; is this an MPICH newer than 5.0?"
		return 1
	}
}

# The maps keep the names of our directories out of what is installed.
compile_tree()
{
	make -C "$tree/obj" -j"$jobs" V=0 "CC=$ccache${compilers[0]} -ffile-prefix-map=$tree/= "
}

install_tree()
{
	make -C "$tree/obj" V=0 install DESTDIR="$tree/base.new" &&
		rm -rf "$tree/base.new$neutral_prefix/share/doc" "$tree/base.new$neutral_prefix"/lib/*.la &&
		mv "$tree/base.new" "$tree/base"
}

tree_is_complete()
{
	# A tree names itself in its Makefiles: a copy of it elsewhere is of no use.
	[ -f "$tree/complete" ] && [ "$(cat "$tree/complete")" = "$tree" ]
}

prepare_tree()
{
	if tree_is_complete; then
		touch "$tree/complete"
		say "build tree: $tree, in the cache"
		return
	fi
	need_tools make xz
	fetch_source
	rm -rf "$tree"
	mkdir -p "$tree/obj"
	run_step "unpacking MPICH" 1 "$tree/unpack.log" unpack
	check_unpacked
	write_placeholder
	run_step "configuring MPICH" "$configure_lines" "$tree/configure.log" configure_tree
	run_step "compiling MPICH" "$make_lines" "$tree/make.log" compile_tree
	run_step "installing MPICH into the cache" 1770 "$tree/install.log" install_tree
	echo "$tree" >"$tree/complete.new"
	mv "$tree/complete.new" "$tree/complete"
}

# ---- the netmod ---------------------------------------------------------------------------

copy_if_changed()
{
	cmp -s "$1" "$2" || { cp -L "$1" "$2.new" && mv "$2.new" "$2"; }
}

# libglex's headers and library go into the tree too, where the compiler's dependency files and
# the Makefile expect them under the same name for every prefix.
copy_glex_api()
{
	local api=$tree/obj/glex-api f
	for f in "$glex_prefix"/include/glex*.h; do
		copy_if_changed "$f" "$api/include/$(basename "$f")"
	done
	copy_if_changed "$glex_prefix/lib/libglex.so" "$api/lib/libglex.so"
}

# What a killed make may have left half written is newer than the file `dirty`.
discard_dirty()
{
	[ -f "$tree/dirty" ] || return 0
	find "$tree/obj" -type f \( -name '*.o' -o -name '*.lo' -o -name '*.la' -o -name '*.so*' \) \
		-newer "$tree/dirty" -not -path '*/glex-api/*' -delete
}

# They have lines of ours too.
hydra=src/pm/hydra
launchers='mpiexec.hydra hydra_pmi_proxy'

compile_netmod()
{
	make -C "$tree/obj" -j"$jobs" V=0 lib/libmpich.la || return
	# shellcheck disable=SC2086 # two words
	[ ! -f "$tree/obj/$hydra/mpiexec.hydra" ] || make -C "$tree/obj/$hydra" -j"$jobs" V=0 $launchers
}

check_libmpich()
{
	local lib=$1
	# grep reads to the end: with -q it would end readelf by a signal, and pipefail tell of it
	readelf -d "$lib" | grep 'NEEDED.*libglex' >/dev/null ||
		die "$lib does not link to libglex; see $tree/netmod.log"
	readelf --wide --symbols "$lib" | grep MPIDI_nem_glex_funcs >/dev/null ||
		die "$lib has no netmod glex; see $tree/netmod.log"
}

build_stage()
{
	local tmp=$cache/tmp-stage lib built f
	discard_dirty
	: >"$tree/dirty"
	sleep 0.02 # make compares times: what it writes must be newer than the mark
	"$here/install-into.sh" --quiet --from "$netmod" "$tree/src"
	copy_glex_api
	run_step "compiling the netmod, linking libmpich" 12 "$tree/netmod.log" compile_netmod
	rm -f "$tree/dirty"

	rm -rf "$tmp"
	cp -a "$tree/base$neutral_prefix" "$tmp"
	for lib in "$tmp"/lib/libmpich.so.*.*; do
		if [ ! -L "$lib" ]; then
			built=$tree/obj/lib/.libs/$(basename "$lib")
			check_libmpich "$built"
			cp "$built" "$lib"
		fi
	done
	for f in $launchers; do
		[ ! -f "$tree/obj/$hydra/$f" ] || cp "$tree/obj/$hydra/$f" "$tmp/bin/$f"
	done
	# Programs linked to the common MPICH ABI ask for this name.
	[ -e "$tmp/lib/libmpi.so.12" ] || ln -s libmpich.so.12 "$tmp/lib/libmpi.so.12"
	soname_of "$glex_prefix/lib/libglex.so" >"$tmp/.libglex"
	rm -rf "$stage"
	mv "$tmp" "$stage"
}

soname_of()
{
	readelf -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'
}

stage_is_complete()
{
	[ -f "$stage/.libglex" ] && [ "$(cat "$stage/.libglex")" = "$(soname_of "$glex_prefix/lib/libglex.so")" ]
}

# ---- the prefix ---------------------------------------------------------------------------

set_run_paths()
{
	local f path=$3
	for f in "$1"/lib/lib*.so.*; do
		# shellcheck disable=SC2016 # $ORIGIN is for the loader
		[ -L "$f" ] || patchelf --set-rpath '$ORIGIN'"$path" "$f"
	done
	for f in "$1"/bin/*; do
		if [ ! -L "$f" ] && readelf -d "$f" 2>/dev/null | grep 'NEEDED.*libmpi' >/dev/null; then
			# shellcheck disable=SC2016
			patchelf --set-rpath '$ORIGIN/../lib' "$f"
		fi
	done
}

# What the prefix has; the number grows when something else is done to it below.
prefix_key()
{
	echo "$stage_key $prefix $glex_prefix 4"
}

# Programs are linked to the hooks that tell libglex of memory that goes, before the C library: then
# buffers that are used often are mapped by their peers.  Also those that call none of them themselves:
# compilers may leave out libraries that are not called.
link_to_memhooks()
{
	local f where='' hooks='-Wl,--push-state,--no-as-needed -lglex-memhooks -Wl,--pop-state'
	[ -e "$glex_prefix/lib/libglex-memhooks.so" ] || return 0
	[ "$glex_prefix" = "$prefix" ] || where="-L$glex_prefix/lib -Wl,-rpath -Wl,$glex_prefix/lib "
	for f in "$1"/bin/mpi* "$1"/lib/pkgconfig/mpich.pc; do
		if [ ! -f "$f" ] || [ -L "$f" ] || ! grep -Iq . "$f"; then
			continue
		fi
		# MPICH 5 says mpi_libs_shared
		sed -i "/-L[$]{*libdir/s# \(-lmpich\|[$]{mpi_libs_shared}\) # $where$hooks \1 #" "$f"
	done
}

# Everything is made ready in a directory inside the prefix; then each file replaces its
# predecessor by name, so that a running program keeps the library it has.
put_into_prefix()
{
	local share=$prefix/share/libglex/mpich new=$prefix/.mpich.new elsewhere='' f
	mkdir -p "$prefix"
	if [ -f "$share/key" ] && [ "$(cat "$share/key")" = "$(prefix_key)" ] && [ -x "$prefix/bin/mpicc" ]; then
		say "$prefix is up to date"
		return
	fi
	rm -rf "$new"
	cp -a "$stage" "$new"
	rm -f "$new/.libglex"
	chown -R "$(id -u):$(id -g)" "$new"
	{ grep -rlI --null -F "$neutral_prefix" "$new" || true; } |
		xargs -0 -r sed -i "s|$neutral_prefix|$prefix|g"
	[ "$glex_prefix" = "$prefix" ] || elsewhere=:$glex_prefix/lib
	set_run_paths "$new" "" "$elsewhere"
	link_to_memhooks "$new"
	mkdir -p "$share"
	(cd "$new" && find . ! -type d | LC_ALL=C sort) >"$share/files.new"
	rm -f "$share/key"
	if [ -f "$share/files" ]; then # of the last time, and no longer part of it
		LC_ALL=C comm -23 "$share/files" "$share/files.new" |
			while IFS= read -r f; do rm -f "${prefix:?}/$f"; done
	fi
	cp -a -l --remove-destination "$new/." "$prefix/"
	rm -rf "$new"
	mv "$share/files.new" "$share/files"
	check_prefix
	prefix_key >"$share/key"
	say "installed into $prefix"
}

# One program compiled, linked and run for one rank: the wrapper and the run paths hold, and glexd starts.
check_prefix()
{
	local tmp log
	tmp=$(mktemp -d)
	log=$tmp/log
	printf '%s\n' '#include <mpi.h>' \
		'int main(int c, char **v) { MPI_Init(&c, &v); return MPI_Finalize(); }' >"$tmp/hello.c"
	if ! (cd "$tmp" && "$prefix/bin/mpicc" hello.c -o hello &&
		env -u GLEX_CACHE_DIR "$prefix/bin/mpiexec" -launcher fork -n 1 ./hello) >"$log" 2>&1; then
		sed 's/^/    /' "$log" >&2
		rm -rf "$tmp"
		die "a first program does not compile or run with $prefix/bin/mpicc, see above"
	fi
	rm -rf "$tmp"
}

# ---- the cache ----------------------------------------------------------------------------

# prune KIND MARK - keeps the two entries used last; MARK is the file in them that says when
prune()
{
	local old
	find "$cache" -maxdepth 2 -path "$cache/$1-*/$2" -printf '%T@ %h\n' | sort -rn | tail -n +3 | cut -d' ' -f2- |
		while IFS= read -r old; do
			rm -f "$old/$2" # no longer complete
			rm -rf "$old"
		done
}

take_lock()
{
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock -n 9 || {
		say "another $prog is at work in $cache; waiting for it"
		flock 9
	}
}

# ---- arguments ----------------------------------------------------------------------------

absolute()
{
	case $1 in
	/*) echo "${1%/}" ;;
	*) echo "$PWD/${1%/}" ;;
	esac
}

check_glex_prefix()
{
	local f
	for f in include/glex.h lib/libglex.so; do
		[ -f "$glex_prefix/$f" ] ||
			die "$glex_prefix/$f is absent; install libglex first (make install), or name its prefix with --glex-prefix"
	done
}

parse_args()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--prefix | --glex-prefix | --mpich | --netmod | --jobs)
			[ $# -gt 1 ] || die "$1 needs a value"
			case $1 in
			--prefix) prefix=$(absolute "$2") ;;
			--glex-prefix) glex_prefix=$(absolute "$2") ;;
			--mpich) mpich=$(absolute "$2") ;;
			--netmod) netmod=$(absolute "$2") ;;
			--jobs) jobs=$2 ;;
			esac
			shift
			;;
		--full) full=1 ;;
		--verbose) verbose=1 ;;
		--prepare) action=prepare ;;
		--fetch) action=fetch ;;
		--packages) action=packages ;;
		--print-key) action=key ;;
		--print-tree) action=tree ;;
		-h | --help) action=help ;;
		*) usage >&2; die "unknown argument $1" ;;
		esac
		shift
	done
	case $jobs in '' | *[!0-9]* | 0) die "--jobs $jobs: not a number of 1 or more" ;; esac
	[ -z "$mpich" ] || [ -e "$mpich" ] || die "--mpich $mpich: no such file or directory"
	case $cache in *[[:space:]]*)
		die "$cache: make cannot build in a directory with a space in its name; set GLEX_CACHE_DIR"
		;;
	esac
	glex_prefix=${glex_prefix:-$prefix}
	# by them the others learn of a dead rank in a collective; since 4.3 MPICH has to be asked for them
	[ -z "$mpich" ] || configure_flags+=(--enable-tag-error-bits)
}

choose_bindings()
{
	compilers=("${CC:-gcc}")
	configure_lines=1630 # of their logs
	make_lines=1640
	if [ -n "$full" ]; then
		compilers+=("${CXX:-g++}" "${FC:-gfortran}")
		packages+=("${packages_full[@]}")
		configure_flags+=(--enable-fortran=all --enable-cxx)
		configure_lines=1750
		make_lines=1690
	else
		configure_flags+=(--disable-fortran --disable-cxx)
	fi
}

print_tarball()
{
	exec 3>&1 1>&2 # the answer alone goes to stdout
	# it comes by rename: when it is there it is whole
	[ -n "$mpich" ] || [ -f "$cache/source/mpich_$mpich_version.orig.tar.xz" ] || take_lock
	fetch_source
	echo "${tarball:-$mpich}" >&3
}

install()
{
	[ -n "$prefix" ] || { usage >&2; die "--prefix is missing"; }
	check_glex_prefix
	need_tools patchelf readelf
	take_lock
	compute_stage_key
	if stage_is_complete; then
		touch "$stage/.libglex"
		say "MPICH with this netmod: in the cache"
	else
		prepare_tree
		build_stage
	fi
	put_into_prefix
	prune tree complete
	prune stage .libglex
}

# All in a function, so that bash has read the whole script before it starts: somebody may
# replace the file meanwhile.
main()
{
	here=$(cd "$(dirname "$0")" && pwd)
	cache=$(absolute "${GLEX_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/libglex}")/mpich
	netmod=$here
	prefix='' glex_prefix='' mpich='' full='' verbose='' action=install
	jobs=$(nproc)
	parse_args "$@"
	choose_bindings
	ccache=
	! command -v ccache >/dev/null || ccache="ccache "

	trap end_child EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	case $action in
	help) usage; return ;;
	packages) echo "${packages[*]}"; return ;;
	fetch) print_tarball; return ;;
	esac
	need_tools sha256sum flock "${compilers[@]}"
	compute_tree_key
	case $action in
	tree) echo "$tree" ;;
	key) compute_stage_key; echo "$stage_key" ;;
	prepare) take_lock; prepare_tree; prune tree complete ;;
	install) install ;;
	esac
}

main "$@"
exit
