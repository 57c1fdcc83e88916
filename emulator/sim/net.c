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
 *
 * An endpoint in which nothing has come in is as if new, so it needs no memory: ports
 * are lent to endpoints from a pool, and come back clean.  Requests that are sure to
 * wait, for the first of them has a gate and no packet is there, lie in a list until
 * one comes.  That is what makes room for 65,536 nodes.
 */
#include "emulator/sim/sim.h"

#include <glex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emulator/nic/coll.h"
#include "emulator/nic/exec.h"

#define CHUNK_PORTS 512u
#define CHUNK_ITEMS 1024u
#define CAPSULE	    2u /* what a queue of a capsule has room for */

struct sim_port {
	struct emu_vport view; /* first: the engine gives it back to us */
	struct emu_coll_view coll;
	uint32_t node, ep; /* a capsule's: where its packet is to go */
	uint32_t seen;	   /* packets in its MPQ that the CPU knows of */
	struct sim_port *next;
};

struct sim_end {
	struct sim_port *port;	       /* NULL: as new, but for what waits */
	struct sim_item *first, *last; /* requests; only while there is no port */
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
	bool mp, control;
	struct emu_desc desc; /* of a packet: len and imm only */
};

struct chunk {
	struct chunk *next;
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
	struct sim_port **capsule; /* capsules + used: lent in this execution */
	uint32_t capsules, used;
	struct sim_port *ports, *new_port; /* given back; never used, new_ports of them */
	struct sim_item *items, *new_item;
	unsigned char *new_segment; /* of new_port */
	uint32_t new_ports, new_items;
	struct chunk *chunks;
	uint64_t now;
	struct sim_counts counts;
	const char *error;
};

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

/* ---- memory ----------------------------------------------------------------- */

/* Pages that have not been touched take no memory. */
static void *get_chunk(struct sim *sim, size_t size)
{
	struct chunk *chunk = malloc(sizeof(*chunk));
	void *memory;

	if (!chunk)
		return NULL;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		free(chunk);
		return NULL;
	}
	madvise(memory, size, MADV_NOHUGEPAGE);
	*chunk = (struct chunk){.next = sim->chunks, .memory = memory, .size = size};
	sim->chunks = chunk;
	return memory;
}

static struct sim_item *get_item(struct sim *sim)
{
	struct sim_item *item = sim->items;

	if (item) {
		sim->items = item->next;
		return item;
	}
	if (!sim->new_items) {
		sim->new_item = get_chunk(sim, CHUNK_ITEMS * sizeof(*item));
		sim->new_items = sim->new_item ? CHUNK_ITEMS : 0;
	}
	if (!sim->new_items) {
		sim_fail(sim, "there is no memory for more packets");
		return NULL;
	}
	sim->new_items--;
	return sim->new_item++;
}

static void put_item(struct sim *sim, struct sim_item *item)
{
	item->next = sim->items;
	sim->items = item;
}

/* ---- ports ------------------------------------------------------------------ */

static struct emu_vport_shape port_shape(uint32_t capacity)
{
	return (struct emu_vport_shape){.session = EMU_SESSION_GLEXD, .mpq_capacity = capacity, .eq_capacity = 1};
}

static struct emu_coll_shape coll_shape(uint32_t capacity)
{
	return (struct emu_coll_shape){.cq_capacity = capacity, .d_capacity = capacity};
}

/* Bytes of a port and its collective unit, one behind the other. */
static uint64_t port_size(uint32_t capacity)
{
	struct emu_vport_shape shape = port_shape(capacity);
	struct emu_coll_shape unit = coll_shape(capacity);

	return emu_vport_size(&shape) + emu_coll_size(&unit);
}

/* Lays it out in memory that is zero. */
static bool make_port(struct sim_port *port, uint32_t capacity, unsigned char *at)
{
	struct emu_vport_shape shape = port_shape(capacity);
	struct emu_coll_shape unit = coll_shape(capacity);
	uint64_t head = emu_vport_size(&shape), tail = emu_coll_size(&unit);

	emu_vport_format(at, head, &shape);
	emu_coll_format(at + head, tail, &unit);
	return !emu_vport_attach(&port->view, at, head) && !emu_coll_attach(&port->coll, &port->view, at + head, tail);
}

/* Gives a port its name, which is all that tells endpoints apart. */
static void name_port(struct sim_port *port, uint32_t node, uint32_t ep)
{
	port->node = port->view.port->nic_id = port->coll.coll->nic_id = node;
	port->ep = port->view.port->ep_num = port->coll.coll->ep_num = ep;
}

static struct sim_port *get_port(struct sim *sim)
{
	uint64_t size = port_size(sim->params.queue);
	struct sim_port *port = sim->ports;

	if (port) {
		sim->ports = port->next;
		return port;
	}
	if (!sim->new_ports) {
		sim->new_port = get_chunk(sim, CHUNK_PORTS * sizeof(*port));
		sim->new_segment = get_chunk(sim, CHUNK_PORTS * size);
		sim->new_ports = sim->new_port && sim->new_segment ? CHUNK_PORTS : 0;
	}
	if (!sim->new_ports || !make_port(sim->new_port, sim->params.queue, sim->new_segment)) {
		sim_fail(sim, "there is no memory for more endpoints");
		return NULL;
	}
	sim->new_ports--;
	sim->new_segment += size;
	return sim->new_port++;
}

static void queue(struct sim *sim, struct sim_port *port, const struct emu_desc *desc)
{
	if (emu_coll_room(&port->coll))
		emu_coll_post(&port->coll, desc, desc->imm, desc->len);
	else
		sim_fail(sim, "an endpoint has no room for a request");
}

/* The port of an endpoint that something happens at, with what has waited in its CQ.  NULL: no memory. */
static struct sim_port *port_of(struct sim *sim, uint32_t node, uint32_t ep)
{
	struct sim_end *end = &sim->node[node].end[ep];
	struct sim_item *item;

	if (end->port || !(end->port = get_port(sim)))
		return end->port;
	name_port(end->port, node, ep);
	while ((item = end->first)) {
		end->first = item->next;
		queue(sim, end->port, &item->desc);
		put_item(sim, item);
	}
	end->last = NULL;
	return end->port;
}

/* A request for an endpoint without a port.  True: it waits, for it, or one before it, has a closed gate. */
static bool has_to_wait(struct sim_end *end, struct sim_item *item)
{
	const struct emu_desc *first = end->first ? &end->first->desc : &item->desc;

	if (end->port || !(item->desc.flag & EMU_COLL_FLAG) || !(first->flag & GLEX_FLAG_COLL_SEQ_START) ||
	    first->counter == 0)
		return false;
	item->next = NULL;
	if (end->last)
		end->last->next = item;
	else
		end->first = item;
	end->last = item;
	return true;
}

/* What has been used of a ring is as new again. */
static void clean_ring(const struct emu_ring *ring)
{
	uint32_t used = emu_ring_end(ring->ctl);

	if (used > ring->mask + 1)
		used = ring->mask + 1;
	memset(ring->slots, 0, (size_t)used << ring->shift);
	memset((void *)ring->log, 0, used * sizeof(*ring->log));
	memset((void *)ring->ctl, 0, sizeof(*ring->ctl));
}

static bool is_empty(const struct emu_ring *ring)
{
	/* relaxed: one thread */
	return emu_ring_end(ring->ctl) == atomic_load_explicit(&ring->ctl->head, memory_order_relaxed);
}

/* If nothing waits in it, the endpoint needs no port until something comes. */
static void rest(struct sim *sim, struct sim_port *port)
{
	struct emu_coll *coll = port->coll.coll;
	const struct emu_coll_state *state = emu_coll_now(&port->coll);

	if (emu_ring_end(&port->view.port->err)) {
		sim_fail(sim, "a request came to nothing: a queue was full, or operands did not fit together");
		return;
	}
	if (port->seen || !is_empty(&port->view.mpq) || !is_empty(&port->coll.d) || state->got || state->flags ||
	    emu_ring_end(&coll->cq) != state->cq_head)
		return;
	clean_ring(&port->view.mpq);
	clean_ring(&port->coll.d);
	memset((void *)&coll->cq, 0, sizeof(coll->cq));
	memset((void *)&coll->turn, 0, offsetof(struct emu_coll, cq) - offsetof(struct emu_coll, turn));
	memset((void *)&coll->intent, 0, sizeof(coll->intent));
	sim->node[port->node].end[port->ep].port = NULL;
	port->next = sim->ports;
	sim->ports = port;
}

/* ---- what the engine needs of whoever turns the crank ----------------------- */

static struct sim *sim_of(struct emu_host *host)
{
	return (struct sim *)(void *)((char *)host - offsetof(struct sim, host));
}

static bool add_capsule(struct sim *sim)
{
	struct sim_port **more = realloc(sim->capsule, (sim->capsules + 1) * sizeof(*more));
	struct sim_port *port = get_chunk(sim, sizeof(*port));
	unsigned char *segment = get_chunk(sim, port_size(CAPSULE));

	if (more)
		sim->capsule = more;
	if (!more || !port || !segment || !make_port(port, CAPSULE, segment)) {
		sim_fail(sim, "there is no memory for more packets");
		return false;
	}
	sim->capsule[sim->capsules++] = port;
	return true;
}

/* Whatever is sent to a port goes into a capsule. */
static struct emu_vport *host_port(struct emu_host *host, uint32_t nic_id, uint32_t ep_num)
{
	struct sim *sim = sim_of(host);

	if (nic_id >= sim->nodes || ep_num >= SIM_EPS)
		return NULL;
	if (sim->used == sim->capsules && !add_capsule(sim))
		return NULL;
	name_port(sim->capsule[sim->used], nic_id, ep_num);
	return &sim->capsule[sim->used++]->view;
}

static struct emu_coll_view *host_coll(struct emu_host *host, struct emu_vport *port)
{
	(void)host;
	return &((struct sim_port *)(void *)port)->coll;
}

static struct emu_nic *host_nic(struct emu_host *host, uint32_t nic_id)
{
	(void)host;
	(void)nic_id;
	return NULL; /* no memory is registered on simulated nodes */
}

static void host_wake(struct emu_host *host, struct emu_port *port)
{
	(void)host;
	(void)port;
}

static bool host_interrupt(struct emu_host *host, struct emu_port *port)
{
	(void)host;
	(void)port;
	return true;
}

static const struct emu_host_ops host_ops = {
	.port = host_port,
	.nic = host_nic,
	.coll = host_coll,
	.wake = host_wake,
	.interrupt = host_interrupt,
};

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

/* The NIC of `from` sends it, not before `at`. */
static void launch(struct sim *sim, uint32_t from, struct sim_port *capsule, struct sim_item *item, uint64_t at)
{
	struct sim_node *node = &sim->node[from];
	uint64_t start = at > node->tx ? at : node->tx;

	node->tx = start + ps(sim->params.times.gap);
	*(from == capsule->node ? &sim->counts.looped : &sim->counts.packets) += 1;
	put(sim, SIM_ARRIVES, start + ps(sim->params.times.tx) + flight(sim, from, capsule->node), from, capsule->node,
	    capsule->ep, item);
}

static void fill_item(struct sim_item *item, const struct emu_mp_slot *slot)
{
	item->src = slot->src;
	item->flags = slot->flags;
	item->desc.len = slot->len;
	memcpy(item->desc.imm, slot->data, slot->len);
}

/* Takes the packet out of a capsule. */
static void unpack(struct sim *sim, uint32_t from, struct sim_port *capsule, uint64_t at)
{
	struct emu_ring *mpq = &capsule->view.mpq, *d = &capsule->coll.d;
	uint32_t mp_at = atomic_load_explicit(&mpq->ctl->head, memory_order_relaxed); /* relaxed: one thread */
	uint32_t d_at = atomic_load_explicit(&d->ctl->head, memory_order_relaxed);    /* relaxed: one thread */
	struct emu_mp_slot *mp = emu_ring_peek(mpq, mp_at), *entry = emu_ring_peek(d, d_at);
	struct sim_item *item = mp || entry ? get_item(sim) : NULL;

	if (!item)
		return;
	item->mp = mp != NULL;
	item->control = entry != NULL;
	if (mp) {
		fill_item(item, mp);
		emu_ring_release(mpq, mp_at + 1);
	}
	if (entry) {
		if (!mp || entry->flags) /* else the payload is for the MPQ only */
			fill_item(item, entry);
		emu_ring_release(d, d_at + 1);
	}
	launch(sim, from, capsule, item, at);
}

/* Lets the engine execute what it can at a port, and puts on their way what it sends. */
static void execute(struct sim *sim, struct sim_port *port)
{
	uint32_t taken = emu_coll_now(&port->coll)->d_head, i;
	uint64_t at = sim->now;

	sim->used = 0;
	emu_coll_turn(&sim->host, &port->coll);
	if (emu_coll_now(&port->coll)->d_head != taken)
		at += ps(sim->params.times.trigger);
	for (i = 0; i < sim->used; i++)
		unpack(sim, port->node, sim->capsule[i], at);
	rest(sim, port);
}

/* A request that the CPU posted has come to its NIC. */
static void at_nic(struct sim *sim, struct sim_port *port, const struct emu_desc *desc)
{
	if (desc->flag & EMU_COLL_FLAG) {
		queue(sim, port, desc);
		execute(sim, port);
		return;
	}
	sim->used = 0;
	if (emu_exec(&sim->host, &port->view, desc, desc->imm) != EMU_OK)
		sim_fail(sim, "a packet could not be sent");
	if (sim->used)
		unpack(sim, port->node, sim->capsule[0], sim->now);
	rest(sim, port);
}

/* The NIC deals with what comes in one after the other. */
static void arrives(struct sim *sim, const struct sim_event *event)
{
	const struct sim_times *times = &sim->params.times;
	struct sim_node *node = &sim->node[event->node];
	const struct sim_item *item = event->what;
	double reduce = item->control && item->flags & EMU_SLOT_OPERAND ? times->reduce : 0;
	uint64_t start = sim->now > node->rx ? sim->now : node->rx;

	node->rx = start + ps(times->rx_gap + reduce);
	put(sim, SIM_IS_IN, start + ps(times->rx + reduce), event->node, event->node, event->ep, event->what);
}

/* As emu_coll_send would have done in place. */
static void is_in(struct sim *sim, struct sim_port *port, const struct sim_item *item)
{
	struct emu_mp_slot *slot;
	uint32_t index;

	if (item->mp) {
		if (emu_deliver_mp(&sim->host, &port->view, item->src, item->desc.imm, item->desc.len) != EMU_OK)
			sim_fail(sim, "an MPQ has overflowed");
		put(sim, SIM_IS_SEEN, sim->now + ps(sim->params.times.to_host), port->node, port->node, port->ep, NULL);
	}
	if (!item->control)
		return;
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

	if (event->kind == SIM_AT_NIC && has_to_wait(&sim->node[event->node].end[event->ep], item))
		return;
	port = port_of(sim, event->node, event->ep);
	if (port && event->kind == SIM_AT_NIC)
		at_nic(sim, port, &item->desc);
	else if (port)
		is_in(sim, port, item);
	put_item(sim, item);
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
	struct sim_item *item = get_item(sim);

	if (!item)
		return;
	item->desc = *desc;
	if (desc->len)
		memcpy(item->desc.imm, data, desc->len);
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
	rest(sim, port);
	return true;
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
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim)
		return NULL;
	sim->params = *params;
	sim->nodes = nodes;
	sim->node = calloc(nodes, sizeof(*sim->node));
	sim->host = (struct emu_host){.ops = &host_ops, .engine = &sim->engine, .session = EMU_SESSION_GLEXD};
	for (sim->params.queue = CAPSULE; sim->params.queue < params->queue;)
		sim->params.queue *= 2;
	if (sim->node)
		return sim;
	free(sim);
	return NULL;
}

void sim_destroy(struct sim *sim)
{
	struct chunk *chunk;

	if (!sim)
		return;
	while ((chunk = sim->chunks)) {
		sim->chunks = chunk->next;
		munmap(chunk->memory, chunk->size);
		free(chunk);
	}
	free(sim->capsule);
	free(sim->heap.event);
	free(sim->node);
	free(sim);
}
