/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ports.c - the ports that endpoints are lent, the capsules that catch what the engine
 * sends, and what else the engine needs of whoever turns the crank.
 *
 * An endpoint in which nothing has come in is as if new, so it needs no memory: ports
 * are lent to endpoints from a pool, and come back clean.  Requests that are sure to
 * wait, for the first of them has a gate and no packet is there, lie in a list until
 * one comes.  That is what makes room for 65,536 nodes.
 */
#include "emulator/sim/priv.h"

#include <glex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_PORTS 512u
#define CHUNK_ITEMS 1024u

/* ---- memory ----------------------------------------------------------------- */

/* Pages that have not been touched take no memory. */
static void *get_chunk(struct sim *sim, size_t size)
{
	struct sim_chunk *chunk = malloc(sizeof(*chunk));
	void *memory;

	if (!chunk)
		return NULL;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		free(chunk);
		return NULL;
	}
	madvise(memory, size, MADV_NOHUGEPAGE);
	*chunk = (struct sim_chunk){.next = sim->chunks, .memory = memory, .size = size};
	sim->chunks = chunk;
	return memory;
}

struct sim_item *sim_get_item(struct sim *sim)
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

void sim_put_item(struct sim *sim, struct sim_item *item)
{
	item->next = sim->items;
	sim->items = item;
}

void sim_free_ports(struct sim *sim)
{
	struct sim_chunk *chunk;

	while ((chunk = sim->chunks)) {
		sim->chunks = chunk->next;
		munmap(chunk->memory, chunk->size);
		free(chunk);
	}
	free(sim->capsule);
}

/* ---- ports ------------------------------------------------------------------ */

static struct emu_vport_shape port_shape(uint32_t capacity)
{
	return (struct emu_vport_shape){
		.session = EMU_SESSION_GLEXD, .mpq_capacity = capacity, .eq_capacity = capacity};
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

void sim_queue(struct sim *sim, struct sim_port *port, const struct emu_desc *desc)
{
	if (emu_coll_room(&port->coll))
		emu_coll_post(&port->coll, desc, desc->imm, sim_imm_len(desc));
	else
		sim_fail(sim, "an endpoint has no room for a request");
}

/* The port of an endpoint that something happens at, with what has waited in its CQ.  NULL: no memory. */
struct sim_port *sim_port_of(struct sim *sim, uint32_t node, uint32_t ep)
{
	struct sim_end *end = &sim->node[node].end[ep];
	struct sim_item *item;

	if (end->port || !(end->port = get_port(sim)))
		return end->port;
	name_port(end->port, node, ep);
	while ((item = end->first)) {
		end->first = item->next;
		sim_queue(sim, end->port, &item->desc);
		sim_put_item(sim, item);
	}
	end->last = NULL;
	return end->port;
}

/* A request for an endpoint without a port.  True: it waits, for it, or one before it, has a closed gate. */
bool sim_has_to_wait(struct sim_end *end, struct sim_item *item)
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
void sim_rest(struct sim *sim, struct sim_port *port)
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
	clean_ring(&port->view.eq);
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
	unsigned char *segment = get_chunk(sim, port_size(SIM_CAPSULE));

	if (more)
		sim->capsule = more;
	if (!more || !port || !segment || !make_port(port, SIM_CAPSULE, segment)) {
		sim_fail(sim, "there is no memory for more packets");
		return false;
	}
	sim->capsule[sim->capsules++] = port;
	return true;
}

/* The last one that was lent, if it is for the same and nothing is in it yet: the engine asks more than once. */
static struct sim_port *same_capsule(struct sim *sim, uint32_t nic_id, uint32_t ep_num)
{
	struct sim_port *last = sim->used ? sim->capsule[sim->used - 1] : NULL;

	if (!last || last->node != nic_id || last->ep != ep_num)
		return NULL;
	return sim->alone || (!last->bytes && is_empty(&last->view.mpq) && is_empty(&last->view.eq) &&
			      is_empty(&last->coll.d))
		       ? last
		       : NULL;
}

/* Whatever is sent to a port goes into a capsule. */
static struct emu_vport *host_port(struct emu_host *host, uint32_t nic_id, uint32_t ep_num)
{
	struct sim *sim = sim_of(host);
	struct sim_port *capsule;

	if (nic_id >= sim->nodes || ep_num >= SIM_EPS)
		return NULL;
	capsule = same_capsule(sim, nic_id, ep_num);
	if (capsule)
		return &capsule->view;
	if (sim->used == sim->capsules && !add_capsule(sim))
		return NULL;
	capsule = sim->capsule[sim->used++];
	name_port(capsule, nic_id, ep_num);
	capsule->events = emu_ring_end(sim->turn->view.eq.ctl);
	return &capsule->view;
}

static struct emu_coll_view *host_coll(struct emu_host *host, struct emu_vport *port)
{
	(void)host;
	return &((struct sim_port *)(void *)port)->coll;
}

static struct emu_nic *host_nic(struct emu_host *host, uint32_t nic_id)
{
	struct sim *sim = sim_of(host);

	return nic_id < sim->nodes ? sim_memory_of(&sim->memory, nic_id) : NULL;
}

/* A PUT is moved by a read and a write of all of it: of bounce nothing is touched (memory.c). */
static enum emu_reach host_read(struct emu_host *host, uint32_t pid, void *here, uint64_t there, uint64_t len)
{
	struct sim *sim = sim_of(host);
	const char *wrong = sim_memory_leaves(&sim->memory, sim->turn->node, there, len);

	(void)pid;
	(void)here;
	if (wrong)
		sim_fail(sim, wrong);
	sim->source = (uint32_t)there;
	return EMU_REACH_OK;
}

static enum emu_reach host_write(struct emu_host *host, uint32_t pid, const void *here, uint64_t there, uint64_t len,
				 uint32_t tail)
{
	struct sim *sim = sim_of(host);
	struct sim_port *capsule = sim->capsule[sim->used - 1];

	(void)pid;
	(void)here;
	(void)tail;
	if (there != sim->source)
		sim_fail(sim, "a part was sent to another place than it is from");
	capsule->offset = (uint32_t)there;
	capsule->bytes = (uint32_t)len;
	return EMU_REACH_OK;
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

const struct emu_host_ops sim_host_ops = {
	.port = host_port,
	.nic = host_nic,
	.read = host_read,
	.write = host_write,
	.coll = host_coll,
	.wake = host_wake,
	.interrupt = host_interrupt,
};
