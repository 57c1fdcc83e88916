/* SPDX-License-Identifier: BSD-2-Clause */
/* place.c - see place.h. */
#include "config.h"

#include "emulator/host/place.h"

#ifdef HAVE_HWLOC

static hwloc_obj_t next_node(hwloc_topology_t topology, hwloc_obj_t node)
{
	return hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node);
}

hwloc_obj_t emu_place_memory(hwloc_topology_t topology, hwloc_const_cpuset_t owner, int wish)
{
	hwloc_obj_t node = NULL;

	if (wish == EMU_PLACE_OFF)
		return NULL;
	if (wish >= 0)
		return hwloc_get_numanode_obj_by_os_index(topology, (unsigned)wish);
	while ((node = next_node(topology, node)))
		if (!hwloc_bitmap_iszero(owner) && hwloc_bitmap_isincluded(owner, node->cpuset))
			return node;
	return NULL;
}

/* The node that most clients sit on; NULL: none sits on one in particular. */
static hwloc_obj_t favourite(hwloc_topology_t topology, hwloc_const_cpuset_t *clients, unsigned n)
{
	hwloc_obj_t node = NULL, best = NULL;
	unsigned i, most = 0;

	while ((node = next_node(topology, node))) {
		unsigned here = 0;

		for (i = 0; i < n; i++)
			here += emu_place_memory(topology, clients[i], EMU_PLACE_AUTO) == node;
		if (here > most) {
			most = here;
			best = node;
		}
	}
	return best;
}

/* Takes away from set the cores, with all their threads, that somebody is bound to. */
static void spare_cores(hwloc_topology_t topology, hwloc_const_cpuset_t bound, hwloc_cpuset_t set)
{
	hwloc_obj_t core = NULL;

	while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)))
		if (hwloc_bitmap_intersects(core->cpuset, bound))
			hwloc_bitmap_andnot(set, set, core->cpuset);
	hwloc_bitmap_andnot(set, set, bound);
}

/* What the clients that may not use all of `where` may use of it. */
static void bound_in(hwloc_const_cpuset_t where, hwloc_const_cpuset_t *clients, unsigned n, hwloc_bitmap_t bound)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (!hwloc_bitmap_isincluded(where, clients[i]))
			hwloc_bitmap_or(bound, bound, clients[i]);
}

bool emu_place_engine(hwloc_topology_t topology, hwloc_const_cpuset_t *clients, unsigned n, int wish,
		      hwloc_cpuset_t engine)
{
	hwloc_obj_t node = wish >= 0 ? emu_place_memory(topology, NULL, wish) : NULL;
	hwloc_const_cpuset_t where;
	hwloc_bitmap_t bound;

	if (wish == EMU_PLACE_OFF || n == 0 || (wish >= 0 && !node))
		return false;
	bound = hwloc_bitmap_alloc();
	if (!bound)
		return false;
	if (!node)
		node = favourite(topology, clients, n);
	where = node && !hwloc_bitmap_iszero(node->cpuset) ? node->cpuset : hwloc_topology_get_allowed_cpuset(topology);
	bound_in(where, clients, n, bound);
	hwloc_bitmap_copy(engine, where);
	spare_cores(topology, bound, engine);
	if (hwloc_bitmap_iszero(engine)) /* no whole core: a thread of one */
		hwloc_bitmap_andnot(engine, where, bound);
	if (hwloc_bitmap_iszero(engine))
		hwloc_bitmap_copy(engine, where);
	hwloc_bitmap_free(bound);
	return true;
}

#endif /* HAVE_HWLOC */
