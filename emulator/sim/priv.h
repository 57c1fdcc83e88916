/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * priv.h - a simulated machine, as its files see it: what happens, when (net.c);
 * ports, and what the engine asks for (ports.c); buffers (memory.c).
 */
#ifndef EMU_SIM_PRIV_H
#define EMU_SIM_PRIV_H

#include "emulator/sim/sim.h"

#include "emulator/nic/coll.h"
#include "emulator/nic/exec.h"

#define SIM_CAPSULE 2u /* what a queue of a capsule has room for */

struct sim_port {
	struct emu_vport view; /* first: the engine gives it back to us */
	struct emu_coll_view coll;
	uint32_t node, ep;	/* a capsule's: where its packet is to go */
	uint32_t seen;		/* packets in its MPQ that the CPU knows of */
	uint32_t offset, bytes; /* a capsule's: of a PUT, 0: it is none */
	uint32_t events;	/* a capsule's: where the sender's EQ was before */
	struct sim_port *next;
};

struct sim_end {
	struct sim_port *port;		     /* NULL: as new, but for what waits */
	struct sim_item *first, *last;	     /* requests; only while there is no port */
	struct sim_item *event, *last_event; /* that the CPU can see */
};

struct sim_node {
	uint64_t cpu, tx, rx; /* until when each is busy */
	uint64_t draws;	      /* random numbers drawn for it */
	struct sim_end end[SIM_EPS];
};

/* A packet on its way, or a request on its way to the NIC. */
struct sim_item {
	struct sim_item *next;
	uint64_t src;
	uint32_t flags; /* of its slot */
	bool mp, control, event;
	uint32_t offset, bytes; /* of a PUT */
	struct emu_desc desc;	/* of a packet: len and imm only; of an event: rmt_evt */
};

struct sim_chunk {
	struct sim_chunk *next;
	void *memory;
	size_t size;
};

struct sim {
	struct sim_params params;
	struct sim_program program;
	struct sim_node *node;
	uint32_t nodes;
	struct sim_heap heap;
	struct emu_host host;
	struct emu_engine engine;
	struct sim_memory memory;
	struct sim_port *turn;	   /* whose requests are executed */
	bool alone;		   /* it is one request */
	uint32_t source;	   /* the offset that a PUT comes from */
	struct sim_port **capsule; /* capsules + used: lent in this execution */
	uint32_t capsules, used;
	struct sim_port *ports, *new_port; /* given back; never used, new_ports of them */
	struct sim_item *items, *new_item;
	unsigned char *new_segment; /* of new_port */
	uint32_t new_ports, new_items;
	struct sim_chunk *chunks;
	uint64_t now;
	struct sim_counts counts;
	const char *error;
};

/* Bytes that a request brings along. */
static inline uint32_t sim_imm_len(const struct emu_desc *desc)
{
	return desc->op == EMU_OP_MP ? desc->len : 0;
}

/* ---- ports.c ----------------------------------------------------------------- */

/* NULL: no memory, and the run has failed. */
struct sim_item *sim_get_item(struct sim *sim);
void sim_put_item(struct sim *sim, struct sim_item *item);
/* All ports and items. */
void sim_free_ports(struct sim *sim);

/* The port of an endpoint that something happens at, with what has waited in its CQ.  NULL: no memory. */
struct sim_port *sim_port_of(struct sim *sim, uint32_t node, uint32_t ep);
/* A request for an endpoint without a port.  True: it waits, for it, or one before it, has a closed gate. */
bool sim_has_to_wait(struct sim_end *end, struct sim_item *item);
/* A collective request, into the port's CQ. */
void sim_queue(struct sim *sim, struct sim_port *port, const struct emu_desc *desc);
/* If nothing waits in it, the endpoint needs no port until something comes. */
void sim_rest(struct sim *sim, struct sim_port *port);

extern const struct emu_host_ops sim_host_ops;

#endif /* EMU_SIM_PRIV_H */
