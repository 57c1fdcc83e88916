/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vport.h - a virtual port: laying one out in a fresh segment, looking at one
 * that somebody else laid out, and what arrives at it.
 */
#ifndef EMU_VPORT_H
#define EMU_VPORT_H

#include "emulator/nic/ring.h"

/* A process's view of a port; pointers into its own mapping. */
struct emu_vport {
	struct emu_port *port;
	struct emu_ring mpq;
	struct emu_ring eq;
	struct emu_ring err;
	struct emu_desc *dq; /* NULL where the poster executes */
	uint32_t dq_mask;
	struct emu_ring intq;
	struct emu_ring epq;
};

struct emu_vport_shape {
	uint32_t nic_id, ep_num, type, key, session, pid;
	uint32_t mpq_capacity, eq_capacity, dq_capacity; /* powers of two; dq_capacity may be 0 */
};

/* The bit of a port with descriptors in the engine's bells; the last is shared by all that have none of their own. */
static inline uint64_t emu_dma_bit(uint32_t ep_num)
{
	return UINT64_C(1) << (ep_num < 63 ? ep_num : 63);
}

/* Bytes a port of this shape takes. */
uint64_t emu_vport_size(const struct emu_vport_shape *shape);

/* Lays it out in size zeroed bytes at base. */
void emu_vport_format(void *base, uint64_t size, const struct emu_vport_shape *shape);

/*
 * Fills view from a segment of size bytes at base, after checking everything
 * in its head.  NULL if all is well, else what is wrong (static text).
 */
const char *emu_vport_attach(struct emu_vport *view, void *base, uint64_t size);

/* NULL if the head is that of a segment of this kind and build, else what differs (static text). */
const char *emu_seg_check(const struct emu_seg_head *head, uint64_t magic, uint64_t size);
void emu_seg_format(struct emu_seg_head *head, uint64_t magic, uint64_t size);

#endif /* EMU_VPORT_H */
