#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 37_numa.sh - glexd's engine goes to the node that its clients sit on, and moves
# when they do.  The machine is one of hwloc's synthetic ones, two nodes of a core
# each; the cores are real, so what glexd's threads may run on shows it.
# shellcheck source=test/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

client=$build/test/api/client
need "$client" "$GLEX_GLEXD"
grep -q '^#define HAVE_HWLOC 1' "$build/config.h" || {
	echo "1..0 # SKIP built without hwloc"
	exit 77
}
{ taskset -c 0 true && taskset -c 1 true; } 2>/dev/null || {
	echo "1..0 # SKIP needs the cores 0 and 1"
	exit 77
}

holders=()
cleanup() { [ ${#holders[@]} = 0 ] || kill "${holders[@]}" 2>/dev/null; }

# hold CORES: a client that stays, bound to these
hold() {
	local out=held.${#holders[@]}
	: >"$work/$out"
	taskset -c "$1" "$client" hold </dev/zero >"$work/$out" 2>&1 &
	holders+=($!)
	within 20 says ready "$out"
}

# leave N: the last of them go
leave() {
	local left=$1
	for (( ; left > 0; left--)); do
		kill "${holders[-1]}"
		wait "${holders[-1]}" 2>/dev/null
		unset 'holders[-1]'
	done
}

# Whether of glexd's threads one may run on this core only, and none on another only.
engine_on() {
	[ "$(awk '/^Cpus_allowed_list/ && $2 ~ /^[0-9]+$/ { print $2 }' /proc/"$(glexds)"/task/*/status)" = "$1" ]
}

# begin [GLEX_NUMA=...]: glexd, by a client on both nodes, for it runs where who starts it does; and one on core 1
begin() {
	leave ${#holders[@]}
	within 20 no_glexd
	rm -f "$work/log"
	unset GLEX_NUMA
	[ $# = 0 ] || export GLEX_NUMA="${1#*=}"
	hold 0,1 && hold 1
}

export HWLOC_SYNTHETIC='NUMANode:2 Core:1 PU:1' HWLOC_THISSYSTEM=1
export GLEX_LOG_LEVEL=debug GLEX_LOG_FILE=$work/log
begin && within 20 engine_on 1
result $? "auto__one_client_on_core_1__engine_there"
hold 0 && hold 0 && within 20 engine_on 0
result $? "auto__most_clients_on_node_0__engine_moves_there"
leave 2 && within 20 engine_on 1
result $? "auto__they_leave__engine_moves_back"
if [ "$(cat /sys/devices/system/node/online 2>/dev/null)" = 0 ]; then
	hold 1 && within 20 says 'queues cannot be put on node 1' log
	result $? "auto__client_on_a_node_without_memory__asked_for_said_and_done_without"
else
	skip "auto__client_on_a_node_without_memory__asked_for_said_and_done_without" "there may be such a node"
fi
begin GLEX_NUMA=0 && within 20 engine_on 0
result $? "node_0__client_on_core_1__engine_on_node_0"
begin GLEX_NUMA=7 && within 20 says 'GLEX_NUMA: there is no node 7 on this machine: nothing is placed' log && engine_on ''
result $? "node_7__there_is_none__said_and_nothing_placed"
begin GLEX_NUMA=off && within 20 says 'copies from' log && engine_on ''
result $? "off__nothing_placed"
finish
