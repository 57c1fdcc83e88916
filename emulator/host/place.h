/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.h - where on the machine things are put: decisions only, so that they can
 * be tried on machines that exist in name alone.  Who asks carries them out.
 *
 *   wish     auto: near those who use it | off: nowhere | a node's number
 *   queues   on the NUMA node that has all cores of their owner
 *   engine   on the node most of the clients sit on, there on cores that nobody
 *            is bound to; it need not stay near the process that started glexd
 */
#ifndef EMU_PLACE_H
#define EMU_PLACE_H

#include <stdbool.h>

enum emu_place_wish { EMU_PLACE_OFF = -2, EMU_PLACE_AUTO = -1 }; /* 0 and more: that node */

#ifdef HAVE_HWLOC
#include <hwloc.h>

/* The node for what a process with these cores uses most; NULL: no node in particular. */
hwloc_obj_t emu_place_memory(hwloc_topology_t topology, hwloc_const_cpuset_t owner, int wish);

/*
 * The cores for the engine of n clients, each of which runs on its cpuset, into
 * *engine.  False: leave it where it is.
 */
bool emu_place_engine(hwloc_topology_t topology, hwloc_const_cpuset_t *clients, unsigned n, int wish,
		      hwloc_cpuset_t engine);
#endif

#endif /* EMU_PLACE_H */
