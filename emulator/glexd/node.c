/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * node.c - emulated hosts: NICs, the ports on them, and shared objects.
 *
 * Tables are arrays of pointers that only grow.  Numbers may be far apart, so who looks
 * at every node all the time (dma.c) goes by a list of those that there are.  A node is made when the first
 * process is put on it and stays; ports and shared objects go with their owner.
 * Everything here runs with glexd->lock held.
 */
#include <errno.h>
#include <fcntl.h>
#include <glex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cfg/log.h"
#include "emulator/glexd/glexd.h"
#include "emulator/host/attach.h"

#define SHARED_MAX 65536u

/* Makes *table hold index; 0 or -1. */
static int grow(void *table, uint32_t *room, uint32_t index, size_t each)
{
	char **p = table, *bigger;
	uint32_t want = *room ? *room : 16;

	if (index < *room)
		return 0;
	while (want <= index)
		want *= 2;
	bigger = realloc(*p, want * each);
	if (!bigger)
		return -1;
	memset(bigger + *room * each, 0, (want - *room) * each);
	*p = bigger;
	*room = want;
	return 0;
}

struct node *node_find(struct glexd *glexd, uint32_t nic_id)
{
	return nic_id < glexd->node_room ? glexd->nodes[nic_id] : NULL;
}

int node_get(struct glexd *glexd, uint32_t nic_id, struct node **node_p)
{
	struct node *node = node_find(glexd, nic_id);

	if (nic_id >= EMU_MAX_NICS)
		return EMU_CTL_BAD;
	if (!node) {
		if (grow(&glexd->nodes, &glexd->node_room, nic_id, sizeof(glexd->nodes[0])) < 0 ||
		    grow(&glexd->made, &glexd->made_room, glexd->node_count, sizeof(glexd->made[0])) < 0)
			return EMU_CTL_NO_MEMORY;
		node = calloc(1, sizeof(*node));
		if (!node || stock_take(glexd, STOCK_NIC, &node->seg, "a NIC's memory table",
					EMU_NIC_SIZE(glexd->host.model)) < 0) {
			free(node);
			return EMU_CTL_NO_MEMORY;
		}
		node->nic = node->seg.base;
		emu_seg_format(&node->nic->seg, EMU_MAGIC_NIC, node->seg.size);
		node->nic->nic_id = nic_id;
		node->nic->mmt_units = EMU_MMT_UNITS;
		glexd->nodes[nic_id] = node;
		glexd->made[glexd->node_count++] = node;
	}
	*node_p = node;
	return EMU_CTL_OK;
}

struct port *port_find(struct glexd *glexd, uint32_t nic_id, uint32_t ep_num)
{
	struct node *node = node_find(glexd, nic_id);

	return node && ep_num < node->room ? node->ports[ep_num] : NULL;
}

/* The numbers a type may have: [*first, *end). */
static bool class_of(uint32_t type, uint32_t *first, uint32_t *end)
{
	static const uint32_t bound[] = {0, EMU_FAST_EPS, EMU_HW_EPS, EMU_MAX_EPS};

	if (type > GLEX_EP_TYPE_EMULATE)
		return false;
	*first = bound[type];
	*end = bound[type + 1];
	return true;
}

static int pick_number(struct node *node, const struct emu_ctl_port *want, uint32_t *num_p)
{
	uint32_t first, end, num;

	if (!class_of(want->type, &first, &end))
		return EMU_CTL_BAD;
	if (want->ep_num != EMU_UNSET) {
		if (want->ep_num < first || want->ep_num >= end)
			return EMU_CTL_BAD;
		*num_p = want->ep_num;
		return want->ep_num < node->room && node->ports[want->ep_num] ? EMU_CTL_TAKEN : EMU_CTL_OK;
	}
	for (num = first; num < end; num++)
		if (num >= node->room || !node->ports[num])
			break;
	*num_p = num;
	return num < end ? EMU_CTL_OK : EMU_CTL_EXHAUSTED;
}

static bool is_capacity(uint32_t n, uint32_t max)
{
	return n != 0 && n <= max && (n & (n - 1)) == 0;
}

/* What is kept lies anywhere. */
static int make_queues(struct port *port, uint64_t size)
{
	static const char what[] = "an endpoint's queues";
	struct glexd *glexd = port->owner->glexd;
	int made, error;

	if (!numa_memory_of(port->owner))
		return stock_take(glexd, STOCK_PORT, &port->seg, what, size);
	made = segment_create(&port->seg, what, size);
	error = errno;
	numa_memory_anywhere(glexd);
	errno = error;
	return made;
}

static int make_port(struct port *port, const struct emu_ctl_port *want)
{
	const struct emu_engine *engine = port->owner->glexd->engine;
	struct emu_vport_shape shape = {
		.nic_id = port->nic_id,
		.ep_num = port->ep_num,
		.type = want->type,
		.key = want->key,
		.session = port->owner->id,
		.pid = port->owner->pid,
		.mpq_capacity = want->mpq_capacity,
		.eq_capacity = want->eq_capacity,
		.dq_capacity = want->type == GLEX_EP_TYPE_NORMAL || engine->reorder ? want->dq_capacity : 0,
	};
	if (make_queues(port, emu_vport_size(&shape)) < 0)
		return -1;
	emu_vport_format(port->seg.base, port->seg.size, &shape);
	emu_vport_attach(&port->view, port->seg.base, port->seg.size);
	port->reorder.window = engine->reorder;
	port->reorder.seed = emu_reorder_seed(engine->reorder_seed, port->nic_id, port->ep_num);
	return 0;
}

int port_create(struct glexd *glexd, struct session *owner, const struct emu_ctl_port *want, struct port **port_p)
{
	struct node *node = node_find(glexd, owner->nic_id);
	struct port *port;
	uint32_t num;
	int status;

	if (!node || !is_capacity(want->mpq_capacity, EMU_MAX_HC_MPQ) ||
	    !is_capacity(want->eq_capacity, EMU_MAX_HC_EQ) || !is_capacity(want->dq_capacity, EMU_MAX_DQ))
		return EMU_CTL_BAD;
	status = pick_number(node, want, &num);
	if (status != EMU_CTL_OK)
		return status;
	if (grow(&node->ports, &node->room, num, sizeof(node->ports[0])) < 0)
		return EMU_CTL_NO_MEMORY;
	port = calloc(1, sizeof(*port));
	if (!port)
		return EMU_CTL_NO_MEMORY;
	port->owner = owner;
	port->nic_id = owner->nic_id;
	port->ep_num = num;
	port->intr_fd = -1;
	port->coll_seg.fd = -1;
	port->cq_capacity = want->dq_capacity;
	if (make_port(port, want) < 0) {
		free(port);
		return errno == EMFILE || errno == ENFILE ? EMU_CTL_NO_DESCRIPTORS : EMU_CTL_NO_MEMORY;
	}
	node->ports[num] = port;
	LIST_INSERT_HEAD(&owner->ports, port, link);
	*port_p = port;
	return EMU_CTL_OK;
}

static void shut(struct glexd *glexd, struct port *port)
{
	/* Senders that still have it mapped look at this word before each packet. */
	atomic_store_explicit(&port->view.port->state, EMU_PORT_CLOSED, memory_order_release); /* relaxed: stronger */
	emu_host_wake(&glexd->host, port->view.port);
	node_find(glexd, port->nic_id)->ports[port->ep_num] = NULL;
	LIST_REMOVE(port, link);
	intr_close(port);
	coll_close(port);
	segment_destroy(&port->seg);
	free(port);
}

void port_close(struct glexd *glexd, struct port *port)
{
	coll_end_shuffled(glexd, port);
	emu_mmt_reclaim(node_find(glexd, port->nic_id)->nic, port->owner->id, port->ep_num);
	shut(glexd, port);
}

/* Looking through the whole table for each of 16384 endpoints would keep everybody else waiting. */
void ports_close(struct session *owner)
{
	struct port *port;

	while ((port = LIST_FIRST(&owner->ports)))
		shut(owner->glexd, port);
}

bool port_each(struct glexd *glexd, bool (*fn)(struct port *port, void *arg), void *arg)
{
	uint32_t n, i;

	for (n = 0; n < glexd->node_room; n++) {
		struct node *node = glexd->nodes[n];

		for (i = 0; node && i < node->room; i++)
			if (node->ports[i] && fn(node->ports[i], arg))
				return true;
	}
	return false;
}

/* The bytes are there, at least now; the last page may be so in part. */
static bool has_bytes(int fd, const struct emu_ctl_share *what)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || what->len == 0 || what->offset % page != 0)
		return false;
	size = ((uint64_t)st.st_size + page - 1) / page * page;
	return what->offset <= size && what->len <= size - what->offset;
}

int shared_add(struct glexd *glexd, struct session *owner, int fd, const struct emu_ctl_share *what, uint64_t *id_p)
{
	int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);
	struct shared *shared;
	uint32_t slot;

	if (mode < 0 || !has_bytes(fd, what))
		return EMU_CTL_BAD;
	for (slot = 0; slot < glexd->shared_room; slot++)
		if (!glexd->shared[slot].owner)
			break;
	if (slot >= SHARED_MAX)
		return EMU_CTL_EXHAUSTED;
	if (grow(&glexd->shared, &glexd->shared_room, slot, sizeof(glexd->shared[0])) < 0)
		return EMU_CTL_NO_MEMORY;
	shared = &glexd->shared[slot];
	shared->fd = fd;
	shared->generation++;
	shared->offset = what->offset;
	shared->len = what->len;
	shared->untouched = what->untouched;
	shared->lasting = seals >= 0 && seals & F_SEAL_SHRINK;
	shared->writable = (mode & O_ACCMODE) == O_RDWR;
	shared->mapped = false;
	shared->owner = owner;
	shared->base = NULL;
	*id_p = emu_pair(shared->generation, slot);
	return EMU_CTL_OK;
}

struct shared *shared_find(struct glexd *glexd, uint64_t id)
{
	struct shared *shared = emu_low(id) < glexd->shared_room ? &glexd->shared[emu_low(id)] : NULL;

	return shared && shared->owner && shared->generation == emu_high(id) ? shared : NULL;
}

void shared_remove(struct glexd *glexd, struct shared *shared)
{
	(void)glexd;
	if (shared->base)
		munmap(shared->base, shared->len);
	close(shared->fd);
	shared->owner = NULL;
	shared->base = NULL;
	shared->fd = -1;
}
