/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topo.c - how many routers lie between two nodes, on the shortest way.
 *
 *   flat       always as many
 *   fat tree   routers of `size` ports, half of them down: 1, 3, 5 ... routers,
 *              up to the lowest level that has both nodes below it and down again
 *   dragonfly  that of the Cray XC: 4 nodes a router, 16 routers a chassis, each
 *              linked to all others of it; 6 chassis a group, each router linked to
 *              those in its place there; groups linked in pairs.  The white paper
 *              (Cray XC Series Network, WP-Aries01-1112, "Dragonfly Implementation")
 */
#include "emulator/sim/sim.h"

#define NODES_OF_ROUTER	   4u
#define ROUTERS_OF_CHASSIS 16u
#define CHASSIS_OF_GROUP   6u
#define ROUTERS_OF_GROUP   (ROUTERS_OF_CHASSIS * CHASSIS_OF_GROUP)

static uint32_t fat_tree_routers(uint32_t size, uint32_t from, uint32_t to)
{
	uint32_t down = size / 2, level = 1;

	for (from /= down, to /= down; from != to; from /= down, to /= down)
		level++;
	return 2 * level - 1;
}

/* Links from router to router within a group. */
static uint32_t hops_in_group(uint32_t from, uint32_t to)
{
	return (from % ROUTERS_OF_CHASSIS != to % ROUTERS_OF_CHASSIS) +
	       (from / ROUTERS_OF_CHASSIS != to / ROUTERS_OF_CHASSIS);
}

/* The router of a group that the cable to another ends at: a group's cables are spread over its routers. */
static uint32_t gateway(uint32_t other)
{
	return other % ROUTERS_OF_GROUP;
}

static struct sim_path dragonfly(uint32_t from, uint32_t to)
{
	uint32_t a = from / NODES_OF_ROUTER, b = to / NODES_OF_ROUTER;
	uint32_t group_a = a / ROUTERS_OF_GROUP, group_b = b / ROUTERS_OF_GROUP;

	a %= ROUTERS_OF_GROUP;
	b %= ROUTERS_OF_GROUP;
	if (group_a == group_b)
		return (struct sim_path){.routers = 1 + hops_in_group(a, b)};
	return (struct sim_path){
		.routers = 2 + hops_in_group(a, gateway(group_b)) + hops_in_group(gateway(group_a), b),
		.globals = 1,
	};
}

struct sim_path sim_path_of(const struct sim_topo *topo, uint32_t from, uint32_t to)
{
	switch (topo->kind) {
	case SIM_FAT_TREE:
		return (struct sim_path){.routers = fat_tree_routers(topo->size, from, to)};
	case SIM_DRAGONFLY:
		return dragonfly(from, to);
	case SIM_FLAT:
		break;
	}
	return (struct sim_path){.routers = topo->size};
}
