/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vport.c - where things lie in a port's segment.
 *
 *   struct emu_port | mpq log | mpq slots | eq ... | err ... | dq slots | intq ... | epq log | epq slots
 *
 * Each part begins on its own EMU_LINE.  All offsets are computed here, by the
 * one who creates the port, and only read and checked elsewhere.
 */
#include "emulator/nic/vport.h"

#include <string.h>

static uint32_t place(uint64_t *end, uint64_t bytes)
{
	uint64_t at = (*end + EMU_LINE - 1) / EMU_LINE * EMU_LINE;

	*end = at + bytes;
	return (uint32_t)at;
}

/* Of what seldom comes there is room for no more than of what it is about: an endpoint with short queues is small. */
static uint32_t aside(uint32_t most, uint32_t queue)
{
	if (queue < EMU_MIN_ASIDE)
		return EMU_MIN_ASIDE;
	return queue < most ? queue : most;
}

/* Computes capacities and offsets into *port; returns the total size. */
static uint64_t lay_out(struct emu_port *port, const struct emu_vport_shape *shape)
{
	uint64_t end = sizeof(struct emu_port);

	port->mpq_capacity = shape->mpq_capacity;
	port->eq_capacity = shape->eq_capacity;
	port->dq_capacity = shape->dq_capacity;
	port->err_capacity = aside(EMU_ERR_CAPACITY, shape->eq_capacity);
	port->intq_capacity = aside(EMU_INTQ_CAPACITY, shape->mpq_capacity);
	port->epq_capacity = aside(EMU_EPQ_CAPACITY, shape->mpq_capacity);
	port->mpq_log = place(&end, (uint64_t)shape->mpq_capacity * sizeof(uint64_t));
	port->mpq_slots = place(&end, (uint64_t)shape->mpq_capacity * sizeof(struct emu_mp_slot));
	port->eq_log = place(&end, (uint64_t)shape->eq_capacity * sizeof(uint64_t));
	port->eq_slots = place(&end, (uint64_t)shape->eq_capacity * sizeof(struct emu_event_slot));
	port->err_log = place(&end, (uint64_t)port->err_capacity * sizeof(uint64_t));
	port->err_slots = place(&end, (uint64_t)port->err_capacity * sizeof(struct emu_err_slot));
	port->dq_slots = place(&end, (uint64_t)shape->dq_capacity * sizeof(struct emu_desc));
	port->intq_log = place(&end, (uint64_t)port->intq_capacity * sizeof(uint64_t));
	port->intq_slots = place(&end, (uint64_t)port->intq_capacity * sizeof(struct emu_intr_slot));
	port->epq_log = place(&end, (uint64_t)port->epq_capacity * sizeof(uint64_t));
	port->epq_slots = place(&end, (uint64_t)port->epq_capacity * sizeof(struct emu_bad_slot));
	return place(&end, 0);
}

uint64_t emu_vport_size(const struct emu_vport_shape *shape)
{
	struct emu_port scratch;

	return lay_out(&scratch, shape);
}

void emu_seg_format(struct emu_seg_head *head, uint64_t magic, uint64_t size)
{
	head->magic = magic;
	head->abi_version = EMU_ABI_VERSION;
	head->layout_hash = EMU_LAYOUT_HASH;
	head->total_size = size;
	head->reserved = 0;
}

const char *emu_seg_check(const struct emu_seg_head *head, uint64_t magic, uint64_t size)
{
	if (size < sizeof(*head))
		return "the segment is too short to have a head";
	if (head->magic != magic)
		return "wrong magic: not a segment of this kind";
	if (head->abi_version != EMU_ABI_VERSION)
		return "another abi_version: glexd and libglex are of different releases";
	if (head->layout_hash != EMU_LAYOUT_HASH)
		return "another layout_hash: glexd and libglex are of different builds";
	if (head->total_size != size)
		return "total_size is not the size of the segment";
	if (head->reserved != 0)
		return "a reserved word is not zero";
	return NULL;
}

void emu_vport_format(void *base, uint64_t size, const struct emu_vport_shape *shape)
{
	struct emu_port *port = base;

	emu_seg_format(&port->seg, EMU_MAGIC_PORT, size);
	lay_out(port, shape);
	port->nic_id = shape->nic_id;
	port->ep_num = shape->ep_num;
	port->type = shape->type;
	port->key = shape->key;
	port->session = shape->session;
	port->pid = shape->pid;
	atomic_init(&port->state, EMU_PORT_OPEN);
}

static bool is_capacity(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static bool fits(uint64_t at, uint64_t count, uint64_t each, uint64_t size)
{
	return at % EMU_LINE == 0 && at >= sizeof(struct emu_port) && at <= size && count * each <= size - at;
}

static bool ring_fits(uint32_t log, uint32_t slots, uint32_t capacity, size_t slot_size, uint64_t size)
{
	return fits(log, capacity, sizeof(uint64_t), size) && fits(slots, capacity, slot_size, size);
}

static uint32_t log2_of(uint32_t n)
{
	return (uint32_t)__builtin_ctz(n);
}

static struct emu_ring ring_view(unsigned char *base, struct emu_ring_ctl *ctl, uint64_t log, uint64_t slots,
				 uint32_t capacity, uint32_t slot_size)
{
	struct emu_ring ring = {
		.ctl = ctl,
		.log = (_Atomic uint64_t *)(void *)(base + log),
		.slots = base + slots,
		.mask = capacity - 1,
		.shift = log2_of(slot_size),
	};
	return ring;
}

const char *emu_vport_attach(struct emu_vport *view, void *base, uint64_t size)
{
	struct emu_port *port = base;
	const char *wrong = emu_seg_check(&port->seg, EMU_MAGIC_PORT, size);

	if (wrong)
		return wrong;
	if (size < sizeof(*port))
		return "the segment is too short for a port";
	if (!is_capacity(port->mpq_capacity) || !is_capacity(port->eq_capacity) || !is_capacity(port->err_capacity) ||
	    !is_capacity(port->intq_capacity) || !is_capacity(port->epq_capacity) ||
	    (port->dq_capacity != 0 && !is_capacity(port->dq_capacity)))
		return "a queue's capacity is not a power of two";
	if (!ring_fits(port->mpq_log, port->mpq_slots, port->mpq_capacity, sizeof(struct emu_mp_slot), size) ||
	    !ring_fits(port->eq_log, port->eq_slots, port->eq_capacity, sizeof(struct emu_event_slot), size) ||
	    !ring_fits(port->err_log, port->err_slots, port->err_capacity, sizeof(struct emu_err_slot), size) ||
	    !ring_fits(port->intq_log, port->intq_slots, port->intq_capacity, sizeof(struct emu_intr_slot), size) ||
	    !ring_fits(port->epq_log, port->epq_slots, port->epq_capacity, sizeof(struct emu_bad_slot), size) ||
	    !fits(port->dq_slots, port->dq_capacity, sizeof(struct emu_desc), size))
		return "a queue lies outside the segment";
	view->port = port;
	view->mpq = ring_view(base, &port->mpq, port->mpq_log, port->mpq_slots, port->mpq_capacity,
			      sizeof(struct emu_mp_slot));
	view->eq = ring_view(base, &port->eq, port->eq_log, port->eq_slots, port->eq_capacity,
			     sizeof(struct emu_event_slot));
	view->err = ring_view(base, &port->err, port->err_log, port->err_slots, port->err_capacity,
			      sizeof(struct emu_err_slot));
	view->dq = port->dq_capacity ? (void *)((unsigned char *)base + port->dq_slots) : NULL;
	view->dq_mask = port->dq_capacity ? port->dq_capacity - 1 : 0;
	view->intq = ring_view(base, &port->intq, port->intq_log, port->intq_slots, port->intq_capacity,
			       sizeof(struct emu_intr_slot));
	view->epq = ring_view(base, &port->epq, port->epq_log, port->epq_slots, port->epq_capacity,
			      sizeof(struct emu_bad_slot));
	return NULL;
}
