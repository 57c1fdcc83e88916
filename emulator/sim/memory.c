/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - buffers without bytes: what of them has come, and in what order.
 *
 *   buffer   [ held ..........| not yet ............. ]    parts come and leave at the same offset
 *                   ^ a part leaves     ^ a part comes: only at `held`
 *
 * So that 65,536 nodes can have a gigabyte each, nothing is copied.  Instead it is checked
 * that nobody passes on what it does not hold, and that what comes is what comes next:
 * neither twice, nor with a gap, nor in another place than it was sent from.
 *
 * The engine checks regions in the memory table of a NIC.  They differ by endpoint and
 * key only, and one thread asks for one table at a time: there is one, of one region.
 */
#include "emulator/sim/sim.h"

#include <glex.h>
#include <stdlib.h>

#include "emulator/nic/mmt.h"

#define ELSEWHERE 2u /* a session that is not the simulation's: nothing of it lies open here */

bool sim_memory_create(struct sim_memory *memory, uint32_t nodes)
{
	struct emu_region region = {.len = SIM_BUFFER,
				    .session = ELSEWHERE,
				    .access = GLEX_MEM_READ | GLEX_MEM_WRITE,
				    .way = EMU_WAY_ATTACH};

	memory->buffer = calloc(nodes, sizeof(*memory->buffer));
	memory->nic = calloc(1, sizeof(*memory->nic));
	return memory->buffer && memory->nic && emu_mmt_register(memory->nic, &region, &memory->handle);
}

void sim_memory_destroy(struct sim_memory *memory)
{
	free(memory->buffer);
	free(memory->nic);
}

struct emu_nic *sim_memory_of(struct sim_memory *memory, uint32_t node)
{
	const struct sim_buffer *buffer = &memory->buffer[node];
	struct emu_mmt_entry *entry = &memory->nic->mmt[0]; /* the first that was registered */

	if (!buffer->is_there)
		return NULL;
	atomic_store_explicit(&entry->key, buffer->key, memory_order_relaxed);	 /* relaxed: one thread */
	atomic_store_explicit(&entry->ep_num, buffer->ep, memory_order_relaxed); /* relaxed: one thread */
	return memory->nic;
}

const char *sim_memory_leaves(const struct sim_memory *memory, uint32_t node, uint64_t offset, uint64_t len)
{
	return offset + len <= memory->buffer[node].held ? NULL : "a node passed on what it did not hold";
}

const char *sim_memory_comes(struct sim_memory *memory, uint32_t node, uint64_t offset, uint64_t len)
{
	if (offset != memory->buffer[node].held)
		return "a part came twice, or before the one in front of it";
	memory->buffer[node].held += len;
	return NULL;
}
