#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# layering.sh - includes follow the arrows of ARCHITECTURE.md.
#
# A folder may include itself, the system, and what its line below names.  An
# include is named by its path from the top; what does not lie in one of our
# folders is the system's, or MPICH's.  The emulator knows glex.h, the hardware's
# header, for its constants, and not glex_ext.h.  backend.h knows the layout of a
# queue, so that an empty poll makes no call, and with the group what lies together in memory.
# emulator/sim puts many of emulator/nic into virtual time, as glexd puts them into processes; glex_collsim stands on it
# and not on the library, because its nodes are no processes: it offers libglex/src/group
# the calls of glex.h itself, and what is in place of boards.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

api='libglex/include/glex.h libglex/include/glex_ext.h'

# folder: what it may include (a folder ends with /).  The first line that fits a file counts.
rules() {
	cat <<END
netmod-glex/channel/: $api
netmod-glex/: $api
portals/: $api
dmapp-compat/: $api
examples/: $api portals/include/ dmapp-compat/include/
libglex/include/: $api
libglex/src/core/: $api libglex/src/cfg/ libglex/src/util/ libglex/src/backend/backend.h libglex/memhooks/memhooks.h
libglex/src/backend/nic/: $api libglex/src/cfg/ libglex/src/util/ libglex/src/core/priv.h libglex/src/core/memwatch.h libglex/src/backend/backend.h emulator/nic/ emulator/host/ emulator/abi/
libglex/src/backend/ofi/: $api libglex/src/cfg/ libglex/src/util/ libglex/src/core/priv.h libglex/src/backend/backend.h
libglex/src/backend/: $api libglex/src/cfg/ libglex/src/util/ libglex/src/core/priv.h emulator/nic/ring.h emulator/nic/together.h
libglex/src/cfg/:
libglex/src/rcache/: $api libglex/src/cfg/ libglex/src/core/ libglex/src/backend/backend.h
libglex/src/group/: $api emulator/nic/reduce.h emulator/nic/together.h
libglex/memhooks/: libglex/memhooks/
libglex/src/util/:
libglex/tools/glex_info: $api libglex/src/cfg/ libglex/src/backend/nic/ctl.h emulator/abi/
libglex/tools/glex_stat: $api libglex/src/cfg/ libglex/src/backend/nic/ctl.h emulator/abi/
libglex/tools/glex_collsim: $api emulator/sim/
libglex/tools/collsim_glex: $api emulator/sim/ libglex/src/group/priv.h
libglex/tools/collsim: $api emulator/sim/
libglex/tools/: $api
libglex/man/: libglex/src/cfg/
emulator/abi/:
emulator/nic/: libglex/include/glex.h emulator/abi/
emulator/host/: libglex/include/glex.h emulator/abi/ emulator/nic/
emulator/sim/: libglex/include/glex.h emulator/abi/ emulator/nic/
emulator/fabric/: emulator/abi/ emulator/nic/fabric.h
emulator/glexd/: libglex/include/glex.h emulator/ libglex/src/cfg/
emulator/out/: libglex/include/glex.h emulator/ libglex/src/cfg/
END
}

# FILE:LINE:NAME of each include
includes() {
	files c h | while IFS= read -r file; do
		awk -v f="$file" '/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
			name = $0
			sub(/^[^<"]*[<"]/, "", name)
			sub(/[>"].*$/, "", name)
			print f ":" FNR ":" name
		}' "$file"
	done
}

check() {
	includes | awk -F: -v rules="$(rules)" '
	BEGIN {
		count = split(rules, line, "\n")
		for (i = 1; i <= count; i++) {
			at = index(line[i], ":")
			folder[i] = substr(line[i], 1, at - 1)
			allowed[i] = substr(line[i], at + 1)
		}
		tops = "^(libglex|emulator|netmod-glex|portals|dmapp-compat|examples|test)/"
	}
	function normal(path,    n, part, i, out, m) {
		n = split(path, part, "/")
		m = 0
		for (i = 1; i <= n; i++) {
			if (part[i] == ".." && m > 0)
				m--
			else if (part[i] != "." && part[i] != "")
				out[++m] = part[i]
		}
		path = ""
		for (i = 1; i <= m; i++)
			path = path (i > 1 ? "/" : "") out[i]
		return path
	}
	# the path from the top, "" for what is not ours
	function place(file, name,    dir) {
		if (name == "glex.h" || name == "glex_ext.h")
			return "libglex/include/" name
		if (name == "portals4.h")
			return "portals/include/" name
		if (name == "dmapp.h")
			return "dmapp-compat/include/" name
		if (name ~ tops)
			return normal(name)
		if (name ~ /^(core|cfg|backend|rcache|util|boot)\//)
			return "libglex/src/" normal(name)
		dir = file
		sub(/[^\/]*$/, "", dir)
		if (name ~ /\.\.\// || (getline junk < (dir name)) >= 0) {
			close(dir name)
			return normal(dir name)
		}
		return ""
	}
	function fits(path, list,    n, word, i) {
		n = split(list, word, " ")
		for (i = 1; i <= n; i++)
			if (path == word[i] || (word[i] ~ /\/$/ && index(path, word[i]) == 1))
				return 1
		return 0
	}
	{
		path = place($1, $3)
		if ($1 ~ /^netmod-glex\/channel\// && $3 ~ /^(mpi|mpid|mpl|opa|pmi)[a-z_]*\.h$/)
			print $1 ":" $2 ": " $3 ": the channel library knows no MPICH"
		if (path == "")
			next
		for (i = 1; i <= count; i++) {
			if (index($1, folder[i]) != 1)
				continue
			dir = $1
			sub(/[^\/]*$/, "", dir)
			own = folder[i] ~ /\/$/ ? folder[i] : dir
			if (!fits(path, own " " allowed[i]))
				print $1 ":" $2 ": " folder[i] " must not include " path
			next
		}
		if ($1 !~ /^test\//)
			print $1 ":" $2 ": this folder has no rule in layering.sh"
	}'
}

guard "includes follow the arrows" check

try() {
	printf '#include <stdint.h>\n#include "%s"\n' "$3" | given
	"$1" "$2 including $3" "$2"
}

bad() {
	try must_complain "$@"
}

good() {
	try must_accept "$@"
}

bad netmod-glex/channel/x.c core/priv.h
bad netmod-glex/channel/x.c mpidimpl.h
bad netmod-glex/channel/x.c ../../emulator/nic/ring.h
bad netmod-glex/channel/x.c netmod-glex/glue/glex_impl.h
bad netmod-glex/glue/x.c cfg/cfg.h
good netmod-glex/glue/x.c mpidimpl.h
good netmod-glex/glue/x.c netmod-glex/channel/chan.h
good netmod-glex/channel/x.c glex_ext.h
bad portals/src/x.c emulator/abi/wire.h
bad dmapp-compat/src/x.c backend/backend.h
bad examples/x.c libglex/src/cfg/log.h
good examples/x.c glex.h
bad libglex/include/glex.h emulator/abi/wire.h
bad libglex/src/core/x.c backend/nic/nic.h
bad libglex/src/core/x.c emulator/nic/ring.h
good libglex/src/core/x.c backend/backend.h
bad libglex/src/backend/backend.h emulator/abi/shm_layout.h
bad libglex/src/backend/nic/x.c core/secret.h
good libglex/src/backend/nic/x.c emulator/nic/ring.h
bad libglex/src/cfg/x.c core/priv.h
bad libglex/src/util/x.c cfg/log.h
good libglex/src/rcache/x.c core/memwatch.h
bad libglex/src/core/x.c rcache/rcache.h
bad libglex/memhooks/x.c cfg/log.h
bad libglex/tools/glex_perf.c core/priv.h
bad libglex/tools/glex_perf.c cfg/cfg.h
bad libglex/tools/glex_info.c backend/nic/nic.h
good libglex/tools/glex_info.c cfg/cfg.h
good libglex/tools/collsim_run.c emulator/sim/sim.h
bad libglex/tools/collsim_run.c emulator/nic/coll.h
bad libglex/tools/glex_perf.c emulator/sim/sim.h
bad emulator/abi/x.h emulator/nic/ring.h
bad emulator/nic/x.c emulator/glexd/glexd.h
bad emulator/nic/x.c ../glexd/glexd.h
bad emulator/nic/x.c cfg/log.h
bad emulator/nic/x.c glex_ext.h
bad emulator/nic/x.c emulator/host/attach.h
good emulator/nic/x.c glex.h
good emulator/nic/x.c emulator/abi/wire.h
bad emulator/nic/x.c emulator/sim/sim.h
good emulator/sim/x.c emulator/nic/coll.h
bad emulator/sim/x.c emulator/host/attach.h
bad emulator/sim/x.c glex_ext.h
bad emulator/fabric/x.c emulator/nic/ring.h
bad emulator/glexd/x.c core/priv.h
bad emulator/glexd/x.c glex_ext.h
good emulator/glexd/x.c emulator/nic/ring.h
good emulator/glexd/x.c cfg/log.h
bad libglex/newcomer/x.c cfg/log.h
finish
