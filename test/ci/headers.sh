#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# headers.sh - each installed header compiles by itself, as C11 and as C++11,
# with every compiler there is; and a C++ program can use what is in them.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

flags='-Wall -Wextra -Wpedantic -Werror -fsyntax-only'

# MODE: -std and -x for each compiler that exists
compilers() {
	for cc in gcc clang; do
		! command -v "$cc" >/dev/null || echo "$cc -std=c11 -x c"
	done
	for cxx in g++ clang++; do
		! command -v "$cxx" >/dev/null || echo "$cxx -std=c++11 -x c++"
	done
}

installed() {
	find libglex/include portals/include dmapp-compat/include -name '*.h' 2>/dev/null | sort
}

includes='-Ilibglex/include -Iportals/include -Idmapp-compat/include'

check() {
	installed | while IFS= read -r header; do
		printf '#include <%s>\n#include <%s>\ntypedef int not_empty;\n' "${header##*/}" "${header##*/}" \
			>"$tap_tmp/alone.c"
		compilers | while IFS= read -r compiler; do
			# shellcheck disable=SC2086 # words are meant to be split
			$compiler $flags $includes "$tap_tmp/alone.c" >"$tap_tmp/messages" 2>&1 || {
				echo "$header with $compiler:"
				head -n 5 "$tap_tmp/messages"
			}
		done
	done
}

[ -n "$(compilers)" ] || skip_all "no compiler"
guard "each installed header compiles alone" check
echo 'uint32_t x;' | given
must_complain "a header that lacks an include" libglex/include/x.h
printf '#include <stdint.h>\nstatic inline void *f(void) { return 0; }\nstatic inline int *g(void) { return f(); }\n' | given
must_complain "a header that is C but not C++" libglex/include/x.h
printf '#include <stdint.h>\n#define N(x) ((uint32_t)(x))\n' | given
must_accept "a header that compiles" libglex/include/x.h

# What C++ programs write: plain tags, both spellings, casts from 0, calls through the inline functions.
cat >"$tap_tmp/use.cc" <<'END'
#include <glex.h>
#include <glex_ext.h>

int use(glex_device_handle_t dev);

int use(glex_device_handle_t dev)
{
	glex_device_attr device_attr;
	struct glex_ep_attr attr = glex_ep_attr();
	glex_ep_handle_t ep;
	glex_ep_addr_t addr;
	glex_event_t event;
	glex_event_t *probed;
	struct glex_rdma_req req = glex_rdma_req();
	struct glex_rdma_req *bad = nullptr;

	attr.type = GLEX_EP_TYPE_FAST;
	attr.num = GLEX_ANY_EP_NUM;
	attr.key = GLEX_EP_MAKE_KEY(7);
	event.cookie_0 = 1;
	event.cookie[1] = 2;
	addr.ep_num = 1;
	addr.s.nic_id = 2;
	req.rmt_ep_addr = addr;
	req.local_evt.cookie_1 = event.cookie_1;
	req.flag = GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_FENCE;
	if (glex_query_device(dev, &device_attr) != GLEX_SUCCESS || glex_create_ep(dev, &attr, &ep) != GLEX_SUCCESS)
		return 1;
	if (glex_rdma(ep, &req, &bad) == GLEX_BUSY || glex_probe_first_event(ep, -1, &probed) == GLEX_NO_EVENT)
		return 2;
	return glex_single_threaded + (glex_error_str(glex_destroy_ep(ep)) != nullptr);
}
END

check() {
	compilers | grep -e '-x c++' | while IFS= read -r compiler; do
		# shellcheck disable=SC2086 # words are meant to be split
		$compiler $flags $includes "$tap_tmp/use.cc" 2>&1 | head -n 5
	done
}

if compilers | grep -q -e '-x c++'; then
	guard "a C++ program uses the interface" check
else
	skip "a C++ program uses the interface" "no C++ compiler"
fi
finish
