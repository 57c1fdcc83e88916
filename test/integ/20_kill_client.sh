#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 20_kill_client.sh - clients are killed in the middle of traffic: the others are
# told in bounded time and go on, and successors get the same numbers.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

crowd=$build/test/api/crowd
need "$crowd" "$GLEX_GLEXD"

for type in fast normal; do
	for memory in private mapped; do
		timeout -k 5 100 "$crowd" "$type" "$memory" "${GLEX_TEST_KILLS:-25}" >"$work/out" 2>"$work/err"
		result $? "kill_client__${type}_endpoints_${memory}_memory__all_others_go_on"
		sed 's/^/# /' "$work/out"
	done
done

within 10 no_glexd && no_socket
result $? "afterwards__nothing_is_left"
finish
