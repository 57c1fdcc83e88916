/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.c - collective units of ports: made when somebody first asks, run by
 * glexd where nobody else can: a NORMAL port's requests that waited for its
 * descriptor queue, and what a process that died had begun (emulator/nic/coll.h); with
 * GLEX_REORDER all (coll_shuffle.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "emulator/glexd/glexd.h"

int coll_open(struct port *port)
{
	const struct emu_coll_shape shape = {
		.nic_id = port->nic_id,
		.ep_num = port->ep_num,
		.cq_capacity = port->cq_capacity,
		.d_capacity = port->view.port->mpq_capacity > EMU_MIN_CONTROL ? port->view.port->mpq_capacity
									      : EMU_MIN_CONTROL,
	};
	int made, error;

	if (port->coll_seg.base)
		return EMU_CTL_OK;
	numa_memory_of(port->owner);
	made = segment_create(&port->coll_seg, "a collective unit", emu_coll_size(&shape));
	error = errno;
	numa_memory_anywhere(port->owner->glexd);
	if (made < 0)
		return error == EMFILE || error == ENFILE ? EMU_CTL_NO_DESCRIPTORS : EMU_CTL_NO_MEMORY;
	emu_coll_format(port->coll_seg.base, port->coll_seg.size, &shape);
	emu_coll_attach(&port->coll, &port->view, port->coll_seg.base, port->coll_seg.size);
	return EMU_CTL_OK;
}

void coll_close(struct port *port)
{
	free(port->shuffle.held);
	segment_destroy(&port->coll_seg);
}

/* What it moves is counted nowhere: the ports' counters are their owners'. */
void coll_kick(struct glexd *glexd, struct port *port)
{
	struct emu_port_counters *by = glexd->host.by;

	if (!port->coll_seg.base)
		return;
	glexd->host.by = NULL;
	emu_coll_turn(&glexd->host, &port->coll);
	glexd->host.by = by;
}

static bool inherit(struct port *port, void *arg)
{
	if (port->coll_seg.base)
		emu_coll_inherit(&port->owner->glexd->host, &port->coll, *(uint32_t *)arg);
	return false;
}

void coll_inherit_all(struct glexd *glexd, uint32_t dead)
{
	port_each(glexd, inherit, &dead);
}

static bool kick(struct port *port, void *arg)
{
	coll_kick(arg, port);
	return false;
}

void coll_kick_all(struct glexd *glexd)
{
	port_each(glexd, kick, glexd);
}

uint32_t coll_reap(struct port *port, uint32_t dead)
{
	return port->coll_seg.base ? emu_ring_reap(&port->coll.d, dead, offsetof(struct emu_mp_slot, flags)) : 0;
}
