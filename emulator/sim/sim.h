/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim.h - a machine of many nodes in one process and in virtual time: the engine
 * of emulator/nic executes every request, and what this folder adds is when.
 *
 *   program --post--> CPU --to_nic--> NIC: CQ, gate, swap, reduce   (emulator/nic/coll.c)
 *      ^                               |  trigger, tx, gap
 *      |                               v
 *      +--poll-- memory <--to_host-- NIC <--rx-- links and routers  (topo.c)
 *
 * A packet that the engine sends lands in a capsule, a port nobody owns (net.c);
 * it is taken out, put on its way, and delivered to its real port when its time
 * has come.  Each NIC sends and receives one packet after the other; each CPU
 * does one thing after the other.  Links are never full: packets of collectives
 * are few and short.  A PUT is one packet of many bytes; a NIC sends it while it comes
 * out of memory, but not before all of what it passes on has come in.
 *
 * Equal seeds give equal runs.  What happens at the same time happens in an order
 * drawn from the seed, but what one node does, and what it sends, stays in order.
 *
 * Time is in picoseconds here and in nanoseconds, with fractions, in parameters.
 * One thread; no system call but for memory.
 */
#ifndef EMU_SIM_H
#define EMU_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/abi/shm_layout.h"

#define SIM_EPS	      4u	 /* endpoints a node can have */
#define SIM_MAX_NODES (1u << 20) /* as many as there are numbers for NICs */
#define SIM_PS	      1000.0	 /* a nanosecond */
#define SIM_BUFFER    (1u << 30) /* bytes that a node's buffer has room for */

/* ---- how long things take (times.c) ----------------------------------------- */

/* All in nanoseconds. */
struct sim_times {
	double post;	/* CPU: the first request of a list is written to the NIC */
	double more;	/* CPU: each further one */
	double to_nic;	/* from the CPU to the NIC */
	double tx;	/* NIC: a packet leaves */
	double gap;	/* NIC: from one packet to the next that leaves */
	double router;	/* through one router */
	double link;	/* over one cable */
	double global;	/* what a cable between groups takes longer */
	double wire;	/* the bytes of a packet pass */
	double byte;	/* one byte of a PUT passes, besides: at a NIC, and to the next */
	double rx;	/* NIC: a packet has come in and is dealt with */
	double rx_gap;	/* NIC: from one packet to the next that comes in */
	double trigger; /* NIC: from the last control packet to the first packet of the sequence it opens */
	double reduce;	/* NIC: one operand more */
	double to_host; /* from the NIC into memory, where the CPU sees it */
	double poll;	/* CPU: a packet is taken */
	double send;	/* CPU: the software above, for each message or collective that is begun */
	double recv;	/* CPU: the same, for each that is received or ended */
	double combine; /* CPU: one operand more, where hosts reduce */
	double local;	/* between two processes of a node, where there are several */
};

struct sim_time_row {
	const char *name, *what;
	size_t offset; /* in struct sim_times */
	double th2, aries;
	const char *th2_source, *aries_source;
};

extern const struct sim_time_row sim_time_rows[];
extern const size_t sim_time_row_count;

enum sim_topo_kind { SIM_FLAT, SIM_FAT_TREE, SIM_DRAGONFLY };

/* ---- how far it is from node to node (topo.c) ------------------------------- */

struct sim_topo {
	enum sim_topo_kind kind;
	uint32_t size; /* routers between any two nodes; ports of a router, half of them up */
};

struct sim_path {
	uint32_t routers;
	uint32_t globals; /* cables between groups, among the routers + 1 that there are */
};

struct sim_path sim_path_of(const struct sim_topo *topo, uint32_t from, uint32_t to);

struct sim_machine {
	const char *name, *what;
	struct sim_times times;
	struct sim_topo topo;
	uint32_t processes; /* of a node, where nothing else is said */
};

/* False: there is none of that name. */
bool sim_machine_find(const char *name, struct sim_machine *machine);
/* A time by its name; NULL: there is none. */
double *sim_time_find(struct sim_times *times, const char *name);

/* ---- the machine (net.c) ---------------------------------------------------- */

struct sim;

struct sim_params {
	struct sim_times times;
	struct sim_topo topo;
	uint64_t seed;
	double noise_share, noise_ns; /* of a CPU's doings, so many come later, by so much on average */
	uint32_t queue;		      /* requests, control packets, packets that an endpoint has room for */
};

/* What runs on every node.  Called in virtual time, while the node's CPU is free. */
struct sim_program {
	void *arg;
	void (*begin)(void *arg, uint32_t node);		  /* what sim_begin was told */
	void (*has_mp)(void *arg, uint32_t node, uint32_t ep);	  /* a packet is there, for sim_take */
	void (*has_event)(void *arg, uint32_t node, uint32_t ep); /* an event, for sim_event */
};

struct sim_counts {
	uint64_t packets; /* over links */
	uint64_t looped;  /* from a NIC to itself */
	uint64_t requests;
	uint64_t events;
};

/* NULL: no memory. */
struct sim *sim_create(const struct sim_params *params, uint32_t nodes);
void sim_destroy(struct sim *sim);

void sim_run_program(struct sim *sim, const struct sim_program *program);

/* program->begin is called for that node, at that time or when its CPU is free. */
void sim_begin(struct sim *sim, uint32_t node, uint64_t at);

/*
 * The node's CPU posts a request, collective or not: an MP (desc->op, flag, dst,
 * counter, len) with its payload, or a PUT.  more: behind another of the same list.
 */
void sim_post(struct sim *sim, uint32_t node, uint32_t ep, const struct emu_desc *desc, const void *data, bool more);

/* Takes the oldest packet that the CPU can see.  False: there is none. */
bool sim_take(struct sim *sim, uint32_t node, uint32_t ep, uint64_t *src, void *data, uint32_t *len);

/* The oldest event that the CPU can see: its two words.  NULL: there is none. */
const uint64_t *sim_event(const struct sim *sim, uint32_t node, uint32_t ep);
void sim_take_event(struct sim *sim, uint32_t node, uint32_t ep);

/* The node registers its buffer on that endpoint, under that key; the handle is the same for all. */
uint64_t sim_register(struct sim *sim, uint32_t node, uint32_t ep, uint32_t key);
/* So many bytes of it are there, from its beginning on. */
void sim_hold(struct sim *sim, uint32_t node, uint64_t bytes);
uint64_t sim_held(const struct sim *sim, uint32_t node);

/* The node's CPU is busy for so long. */
void sim_busy(struct sim *sim, uint32_t node, double ns);
/* Until when what the node's CPU has been told to do lasts. */
uint64_t sim_now(const struct sim *sim, uint32_t node);

/* Until when any CPU or NIC is busy. */
uint64_t sim_idle_at(const struct sim *sim);

/* The next thing happens.  False: nothing more does. */
bool sim_step(struct sim *sim);

/* Why the run is no good; NULL: it is. */
const char *sim_error(const struct sim *sim);
void sim_fail(struct sim *sim, const char *why);

struct sim_counts sim_counted(const struct sim *sim);

/* ---- what of buffers has come (memory.c) ------------------------------------- */

struct sim_buffer {
	uint64_t held; /* bytes, from its beginning on */
	uint32_t key;
	uint16_t ep;
	bool is_there;
};

struct sim_memory {
	struct sim_buffer *buffer; /* of each node */
	struct emu_nic *nic;
	uint64_t handle;
};

/* False: no memory; it is to be destroyed all the same. */
bool sim_memory_create(struct sim_memory *memory, uint32_t nodes);
void sim_memory_destroy(struct sim_memory *memory);
/* The node's memory table, until it is asked for another's; NULL: it has no buffer. */
struct emu_nic *sim_memory_of(struct sim_memory *memory, uint32_t node);
/* Bytes of a PUT leave a node's buffer, come into one.  Why that is wrong; NULL: it is not. */
const char *sim_memory_leaves(const struct sim_memory *memory, uint32_t node, uint64_t offset, uint64_t len);
const char *sim_memory_comes(struct sim_memory *memory, uint32_t node, uint64_t offset, uint64_t len);

/* ---- what happens next (heap.c) --------------------------------------------- */

enum sim_event_kind { SIM_AT_CPU, SIM_AT_NIC, SIM_ARRIVES, SIM_IS_IN, SIM_IS_SEEN, SIM_HAS_EVENT };

struct sim_event {
	uint64_t time;
	uint64_t order; /* among those of one time and rank: as they were put in */
	uint32_t rank;	/* among those of one time */
	uint32_t node;
	uint32_t ep;
	uint32_t kind; /* enum sim_event_kind */
	void *what;
};

struct sim_heap {
	struct sim_event *event;
	size_t count, room;
	uint64_t order;
};

/* False: no memory. */
bool sim_heap_put(struct sim_heap *heap, struct sim_event event);
/* The first.  False: it is empty. */
bool sim_heap_take(struct sim_heap *heap, struct sim_event *event);

/* A number that depends on all three in no simple way. */
uint64_t sim_mix(uint64_t a, uint64_t b, uint64_t c);

#endif /* EMU_SIM_H */
