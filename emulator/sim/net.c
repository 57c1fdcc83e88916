/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.c - the nodes, and how a request becomes a packet, then what it does.
 *
 *   what happens   at          what is done then
 *   AT_CPU         a CPU       the program's begin
 *   AT_NIC         a NIC       a posted request: into CQ and executed; an ordinary one at once
 *   ARRIVES        a NIC       a packet waits until those before it are dealt with
 *   IS_IN          a NIC       it is delivered: MPQ, D; what waited for it is executed
 *   IS_SEEN        a CPU       the program's has_mp
 *   HAS_EVENT      a CPU       the program's has_event
 */
#include "emulator/sim/priv.h"

#include <glex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/nic/coll.h"
#include "emulator/nic/exec.h"

static uint64_t ps(double ns)
{
	return (uint64_t)(ns * SIM_PS + 0.5);
}

void sim_fail(struct sim *sim, const char *why)
{
	if (!sim->error)
		sim->error = why;
}

const char *sim_error(const struct sim *sim)
{
	return sim->error;
}

uint64_t sim_mix(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = a * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xd1b54a32d192ed03u ^ (c + 1) * 0x8cb92ba72f3d8dd7u;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 29) * 0xa0761d6478bd642fu;
	return x ^ x >> 32;
}

/* From 0 to below 1. */
static double draw(struct sim *sim, uint32_t node)
{
	uint64_t bits = sim_mix(sim->params.seed, node, sim->node[node].draws++);

	return (double)(bits >> 11) / 9007199254740992.0;
}

/* What comes from one node at one time stays in order, for its rank is the same. */
static void put(struct sim *sim, enum sim_event_kind kind, uint64_t time, uint32_t from, uint32_t node, uint32_t ep,
		void *what)
{
	struct sim_event event = {.time = time,
				  .rank = (uint32_t)sim_mix(sim->params.seed, from, 0),
				  .node = node,
				  .ep = ep,
				  .kind = kind,
				  .what = what};

	if (!sim_heap_put(&sim->heap, event))
		sim_fail(sim, "there is no memory for more events");
}

/* ---- packets ---------------------------------------------------------------- */

static uint64_t flight(const struct sim *sim, uint32_t from, uint32_t to)
{
	const struct sim_times *times = &sim->params.times;
	struct sim_path path;

	if (from == to)
		return 0;
	path = sim_path_of(&sim->params.topo, from, to);
	return ps(path.routers * times->router + (path.routers + 1) * times->link + path.globals * times->global +
		  times->wire);
}

static uint64_t pass(const struct sim *sim, const struct sim_item *item)
{
	return ps(item->bytes * sim->params.times.byte);
}

/* The NIC of `from` sends it, not before `at`.  Returns when its last byte has left. */
static uint64_t launch(struct sim *sim, uint32_t from, struct sim_port *capsule, struct sim_item *item, uint64_t at)
{
	struct sim_node *node = &sim->node[from];
	uint64_t start = at > node->tx ? at : node->tx, leaves = start + ps(sim->params.times.tx);

	node->tx = start + ps(sim->params.times.gap) + pass(sim, item);
	*(from == capsule->node ? &sim->counts.looped : &sim->counts.packets) += 1;
	put(sim, SIM_ARRIVES, leaves + flight(sim, from, capsule->node), from, capsule->node, capsule->ep, item);
	return leaves + pass(sim, item);
}

/* The CPU of an endpoint sees an event when it has come into memory. */
static void show_event(struct sim *sim, uint32_t node, uint32_t ep, const uint64_t cookie[2], uint64_t at)
{
	struct sim_item *item = sim_get_item(sim);

	if (!item)
		return;
	item->next = NULL;
	memcpy(item->desc.rmt_evt, cookie, sizeof(item->desc.rmt_evt));
	put(sim, SIM_HAS_EVENT, at + ps(sim->params.times.to_host), node, node, ep, item);
}

/* What the engine has put into the sender's EQ up to there. */
static void show_events(struct sim *sim, struct sim_port *port, uint32_t end, uint64_t at)
{
	uint32_t head = atomic_load_explicit(&port->view.eq.ctl->head, memory_order_relaxed); /* relaxed: one thread */

	for (; head != end; head++) {
		struct emu_event_slot *slot = emu_ring_peek(&port->view.eq, head);

		if (slot)
			show_event(sim, port->node, port->ep, slot->cookie, at);
	}
	emu_ring_release(&port->view.eq, head);
}

static void fill_item(struct sim_item *item, const struct emu_mp_slot *slot)
{
	item->src = slot->src;
	item->flags = slot->flags;
	item->desc.len = slot->len;
	memcpy(item->desc.imm, slot->data, slot->len);
}

static void *first_of(const struct emu_ring *ring)
{
	/* relaxed: one thread */
	return emu_ring_peek(ring, atomic_load_explicit(&ring->ctl->head, memory_order_relaxed));
}

static void take_first(const struct emu_ring *ring)
{
	/* relaxed: one thread */
	emu_ring_release(ring, atomic_load_explicit(&ring->ctl->head, memory_order_relaxed) + 1);
}

/* Takes the packet out of a capsule.  Returns when it has left. */
static uint64_t unpack(struct sim *sim, uint32_t from, struct sim_port *capsule, uint64_t at)
{
	struct emu_ring *mpq = &capsule->view.mpq, *eq = &capsule->view.eq, *d = &capsule->coll.d;
	struct emu_mp_slot *mp = first_of(mpq), *entry = first_of(d);
	struct emu_event_slot *event = first_of(eq);
	struct sim_item *item = mp || entry || event || capsule->bytes ? sim_get_item(sim) : NULL;

	if (!item)
		return at;
	item->mp = mp != NULL;
	item->control = entry != NULL;
	item->event = event != NULL;
	item->offset = capsule->offset;
	item->bytes = capsule->bytes;
	capsule->bytes = 0;
	if (mp) {
		fill_item(item, mp);
		take_first(mpq);
	}
	if (entry) {
		if (!mp || entry->flags) /* else the payload is for the MPQ only */
			fill_item(item, entry);
		take_first(d);
	}
	if (event) {
		memcpy(item->desc.rmt_evt, event->cookie, sizeof(item->desc.rmt_evt));
		take_first(eq);
	}
	return launch(sim, from, capsule, item, at);
}

/* What the engine has sent, and what it has told the sender of that. */
static void send_all(struct sim *sim, struct sim_port *port, uint64_t at)
{
	uint32_t i, end = emu_ring_end(port->view.eq.ctl);

	for (i = 0; i < sim->used; i++) {
		uint64_t left = unpack(sim, port->node, sim->capsule[i], at);

		show_events(sim, port, i + 1 < sim->used ? sim->capsule[i + 1]->events : end, left);
	}
}

/* Lets the engine execute what it can at a port, and puts on their way what it sends. */
static void execute(struct sim *sim, struct sim_port *port)
{
	uint32_t taken = emu_coll_now(&port->coll)->d_head;
	uint64_t at = sim->now;

	sim->used = 0;
	sim->turn = port;
	sim->alone = false;
	emu_coll_turn(&sim->host, &port->coll);
	if (emu_coll_now(&port->coll)->d_head != taken)
		at += ps(sim->params.times.trigger);
	send_all(sim, port, at);
	sim_rest(sim, port);
}

/* A request that the CPU posted has come to its NIC. */
static void at_nic(struct sim *sim, struct sim_port *port, const struct emu_desc *desc)
{
	if (desc->flag & EMU_COLL_FLAG) {
		sim_queue(sim, port, desc);
		execute(sim, port);
		return;
	}
	sim->used = 0;
	sim->turn = port;
	sim->alone = true;
	if (emu_exec(&sim->host, &port->view, desc, desc->imm) != EMU_OK)
		sim_fail(sim, "a packet could not be sent");
	send_all(sim, port, sim->now);
	sim_rest(sim, port);
}

/* The NIC deals with what comes in one after the other. */
static void arrives(struct sim *sim, const struct sim_event *event)
{
	const struct sim_times *times = &sim->params.times;
	struct sim_node *node = &sim->node[event->node];
	const struct sim_item *item = event->what;
	double reduce = item->control && item->flags & EMU_SLOT_OPERAND ? times->reduce : 0;
	uint64_t start = sim->now > node->rx ? sim->now : node->rx;

	node->rx = start + ps(times->rx_gap + reduce) + pass(sim, item);
	put(sim, SIM_IS_IN, start + ps(times->rx + reduce) + pass(sim, item), event->node, event->node, event->ep,
	    event->what);
}

/* As emu_coll_send would have done in place. */
static void is_in(struct sim *sim, struct sim_port *port, const struct sim_item *item)
{
	const char *wrong = item->bytes ? sim_memory_comes(&sim->memory, port->node, item->offset, item->bytes) : NULL;
	struct emu_mp_slot *slot;
	uint32_t index;

	if (wrong)
		sim_fail(sim, wrong);
	if (item->event)
		show_event(sim, port->node, port->ep, item->desc.rmt_evt, sim->now);
	if (item->mp) {
		if (emu_deliver_mp(&sim->host, &port->view, item->src, item->desc.imm, item->desc.len) != EMU_OK)
			sim_fail(sim, "an MPQ has overflowed");
		put(sim, SIM_IS_SEEN, sim->now + ps(sim->params.times.to_host), port->node, port->node, port->ep, NULL);
	}
	if (!item->control) {
		sim_rest(sim, port);
		return;
	}
	slot = emu_ring_claim(&port->coll.d, sim->host.session, &index);
	if (!slot) {
		sim_fail(sim, "an endpoint has no room for a control packet");
		return;
	}
	slot->flags = (uint16_t)item->flags;
	slot->src = item->src;
	slot->len = item->flags ? (uint16_t)item->desc.len : 0;
	memcpy(slot->data, item->desc.imm, slot->len);
	emu_ring_publish(slot, index);
	execute(sim, port);
}

/* ---- time ------------------------------------------------------------------- */

/* The CPU is free for what the event brings, now; false: it will be later, and the event waits for that. */
static bool has_cpu(struct sim *sim, const struct sim_event *event)
{
	struct sim_node *node = &sim->node[event->node];

	if (node->cpu > sim->now) {
		put(sim, event->kind, node->cpu, event->node, event->node, event->ep, event->what);
		return false;
	}
	node->cpu = sim->now;
	if (sim->params.noise_share > 0 && draw(sim, event->node) < sim->params.noise_share)
		node->cpu += ps(-log(1 - draw(sim, event->node)) * sim->params.noise_ns);
	return true;
}

/* Something happens to an endpoint, by a request or a packet. */
static void at_end(struct sim *sim, const struct sim_event *event)
{
	struct sim_item *item = event->what;
	struct sim_port *port;

	if (event->kind == SIM_AT_NIC && sim_has_to_wait(&sim->node[event->node].end[event->ep], item))
		return;
	port = sim_port_of(sim, event->node, event->ep);
	if (port && event->kind == SIM_AT_NIC)
		at_nic(sim, port, &item->desc);
	else if (port)
		is_in(sim, port, item);
	sim_put_item(sim, item);
}

static void has_event(struct sim *sim, const struct sim_event *event)
{
	struct sim_end *end = &sim->node[event->node].end[event->ep];
	struct sim_item *item = event->what;

	if (end->event)
		end->last_event->next = item;
	else
		end->event = item;
	end->last_event = item;
	if (sim->program.has_event)
		sim->program.has_event(sim->program.arg, event->node, event->ep);
}

static void happens(struct sim *sim, const struct sim_event *event)
{
	switch (event->kind) {
	case SIM_AT_CPU:
		if (has_cpu(sim, event) && sim->program.begin)
			sim->program.begin(sim->program.arg, event->node);
		return;
	case SIM_IS_SEEN:
		if (!has_cpu(sim, event))
			return;
		sim->node[event->node].end[event->ep].port->seen++;
		if (sim->program.has_mp)
			sim->program.has_mp(sim->program.arg, event->node, event->ep);
		return;
	case SIM_HAS_EVENT:
		if (has_cpu(sim, event))
			has_event(sim, event);
		return;
	case SIM_ARRIVES:
		arrives(sim, event);
		return;
	default:
		at_end(sim, event);
	}
}

bool sim_step(struct sim *sim)
{
	struct sim_event event;

	if (sim->error || !sim_heap_take(&sim->heap, &event))
		return false;
	sim->now = event.time;
	sim->counts.events++;
	happens(sim, &event);
	return true;
}

/* ---- what the program does -------------------------------------------------- */

void sim_begin(struct sim *sim, uint32_t node, uint64_t at)
{
	put(sim, SIM_AT_CPU, at > sim->now ? at : sim->now, node, node, 0, NULL);
}

void sim_post(struct sim *sim, uint32_t node, uint32_t ep, const struct emu_desc *desc, const void *data, bool more)
{
	struct sim_item *item = sim_get_item(sim);

	if (!item)
		return;
	item->desc = *desc;
	if (sim_imm_len(desc))
		memcpy(item->desc.imm, data, sim_imm_len(desc));
	sim_busy(sim, node, more ? sim->params.times.more : sim->params.times.post);
	sim->counts.requests++;
	put(sim, SIM_AT_NIC, sim->node[node].cpu + ps(sim->params.times.to_nic), node, node, ep, item);
}

bool sim_take(struct sim *sim, uint32_t node, uint32_t ep, uint64_t *src, void *data, uint32_t *len)
{
	struct sim_port *port = sim->node[node].end[ep].port;
	struct emu_mp_slot *slot;
	uint32_t head;

	if (!port || !port->seen)
		return false;
	head = atomic_load_explicit(&port->view.mpq.ctl->head, memory_order_relaxed); /* relaxed: one thread */
	slot = emu_ring_peek(&port->view.mpq, head);
	if (!slot) {
		sim_fail(sim, "a packet that was seen is not there");
		return false;
	}
	if (src)
		*src = slot->src;
	*len = slot->len;
	memcpy(data, slot->data, slot->len);
	emu_ring_release(&port->view.mpq, head + 1);
	port->seen--;
	sim_busy(sim, node, sim->params.times.poll);
	sim_rest(sim, port);
	return true;
}

const uint64_t *sim_event(const struct sim *sim, uint32_t node, uint32_t ep)
{
	const struct sim_item *item = sim->node[node].end[ep].event;

	return item ? item->desc.rmt_evt : NULL;
}

void sim_take_event(struct sim *sim, uint32_t node, uint32_t ep)
{
	struct sim_end *end = &sim->node[node].end[ep];
	struct sim_item *item = end->event;

	if (!item)
		return;
	end->event = item->next;
	sim_put_item(sim, item);
	sim_busy(sim, node, sim->params.times.poll);
}

uint64_t sim_register(struct sim *sim, uint32_t node, uint32_t ep, uint32_t key)
{
	struct sim_buffer *buffer = &sim->memory.buffer[node];

	buffer->ep = (uint16_t)ep;
	buffer->key = key;
	buffer->is_there = true;
	return sim->memory.handle;
}

void sim_hold(struct sim *sim, uint32_t node, uint64_t bytes)
{
	sim->memory.buffer[node].held = bytes;
}

uint64_t sim_held(const struct sim *sim, uint32_t node)
{
	return sim->memory.buffer[node].held;
}

void sim_busy(struct sim *sim, uint32_t node, double ns)
{
	if (sim->node[node].cpu < sim->now)
		sim->node[node].cpu = sim->now;
	sim->node[node].cpu += ps(ns);
}

uint64_t sim_now(const struct sim *sim, uint32_t node)
{
	return sim->node[node].cpu > sim->now ? sim->node[node].cpu : sim->now;
}

uint64_t sim_idle_at(const struct sim *sim)
{
	uint64_t at = sim->now;
	uint32_t i;

	for (i = 0; i < sim->nodes; i++) {
		const struct sim_node *node = &sim->node[i];

		at = node->cpu > at ? node->cpu : at;
		at = node->tx > at ? node->tx : at;
		at = node->rx > at ? node->rx : at;
	}
	return at;
}

void sim_run_program(struct sim *sim, const struct sim_program *program)
{
	sim->program = *program;
}

struct sim_counts sim_counted(const struct sim *sim)
{
	return sim->counts;
}

struct sim *sim_create(const struct sim_params *params, uint32_t nodes)
{
	static unsigned char untouched[1]; /* but its size tells the engine to move all at once */
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim)
		return NULL;
	sim->params = *params;
	sim->nodes = nodes;
	sim->node = calloc(nodes, sizeof(*sim->node));
	sim->host = (struct emu_host){.ops = &sim_host_ops,
				      .engine = &sim->engine,
				      .session = EMU_SESSION_GLEXD,
				      .bounce = untouched,
				      .bounce_size = SIM_BUFFER};
	for (sim->params.queue = SIM_CAPSULE; sim->params.queue < params->queue;)
		sim->params.queue *= 2;
	if (sim_memory_create(&sim->memory, nodes) && sim->node)
		return sim;
	sim_destroy(sim);
	return NULL;
}

void sim_destroy(struct sim *sim)
{
	if (!sim)
		return;
	sim_free_ports(sim);
	sim_memory_destroy(&sim->memory);
	free(sim->heap.event);
	free(sim->node);
	free(sim);
}
