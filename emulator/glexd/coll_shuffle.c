/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_shuffle.c - collective requests with GLEX_REORDER: glexd executes those of all ports, and holds back what they
 * send.
 *
 *   unit  ->  packet 7  ->  | 3 | 5 | 6 |  ->  its target, which may have a gate that this one opens
 *              \ a coin: at once            the least key first: its number, and a random one below the window
 *
 * The owner posts, and asks (struct emu_coll, asked).  Nobody but glexd gains a turn, so what is sent long behind its
 * request, when the unit is at another one, is in nobody's way.  If glexd dies, so has the network.
 *
 * I1  A packet is passed by less than a window of later ones that were held back, and by those that went at once while
 *     fewer than a window were: a sequence is as long as it likes.
 * I2  FENCE: behind all that is held back; what follows may pass it.
 * I3  Nothing waits for what may never be sent: a key is due when there can be no smaller one any more, or when nothing
 *     has come for GLEX_REORDER_HOLD.
 * I4  A port that its owner closes has sent all that it could.  What is held of one who has died goes with his memory.
 */
#include <stdlib.h>
#include <string.h>

#include "cfg/cfg.h"
#include "emulator/glexd/dma.h"
#include "emulator/host/bell.h"
#include "emulator/host/clock.h"
#include "emulator/nic/exec.h"

struct held {
	uint64_t key;
	struct emu_desc desc; /* with its payload */
};

static struct port *port_of(struct emu_coll_view *view)
{
	return (struct port *)(void *)((char *)view - offsetof(struct port, coll));
}

static bool has_room(struct coll_shuffle *s)
{
	uint32_t room = s->room ? 2 * s->room : EMU_REORDER_MAX;
	struct held *held;

	if (s->n < s->room)
		return true;
	held = realloc(s->held, room * sizeof(*held));
	if (!held)
		return false;
	s->held = held;
	s->room = room;
	return true;
}

/* The last of all that are held, so far. */
static uint64_t last_key(const struct coll_shuffle *s)
{
	uint64_t last = 0;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->held[i].key > last)
			last = s->held[i].key;
	return last;
}

int coll_hold(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data)
{
	struct port *port = port_of(from);
	struct coll_shuffle *s = &port->shuffle;
	bool fence = desc->flag & GLEX_FLAG_FENCE;
	struct held *held;
	uint32_t number;

	if (!port->reorder.window)
		return EMU_NOW;
	number = (uint32_t)s->sent++;
	if (fence ? s->n == 0 : s->n >= port->reorder.window || emu_reorder_first(port->reorder.seed, number))
		return EMU_NOW;
	if (!has_room(s))
		return GLEX_ERR_STATUS_PCIE_READ; /* as where a unit cannot be had */
	held = &s->held[s->n];
	held->key = s->sent + emu_reorder_delay(port->reorder.seed, port->reorder.window, number);
	if (fence)
		held->key = last_key(s) + 1;
	held->desc = *desc;
	if (desc->op != EMU_OP_PUT && desc->len)
		memcpy(held->desc.imm, data, desc->len);
	s->n++;
	s->moving = emu_now_ns();
	emu_dma_ring(host->engine, node_find(port->owner->glexd, port->nic_id)->nic, port->ep_num);
	return EMU_OK;
}

/* What its target's gate sends is held back in turn, or goes at once, as here. */
static void deliver(struct glexd *glexd, struct port *port, const struct emu_desc *desc)
{
	struct emu_coll_view *told = NULL;
	int status = emu_coll_send(&glexd->host, &port->coll, desc, desc->imm, &told);

	glexd->steps++;
	if (status != EMU_OK)
		emu_report(&glexd->host, &port->view, desc, status);
	if (told)
		emu_coll_turn(&glexd->host, told);
}

/* What is due. */
static void deliver_due(struct glexd *glexd, struct port *port, bool all)
{
	struct coll_shuffle *s = &port->shuffle;
	bool overdue = all || (s->n && emu_now_ns() - s->moving >= glexi_cfg()->reorder_hold_us * 1000);

	while (s->n) {
		struct held *first = s->held, *held, out;

		for (held = s->held; held < s->held + s->n; held++)
			if (held->key < first->key)
				first = held;
		if (!overdue && first->key > s->sent) /* I3 */
			return;
		out = *first;
		*first = s->held[--s->n];
		deliver(glexd, port, &out.desc);
	}
}

/* What has been posted, and then what is due, or all. */
static void serve(struct glexd *glexd, struct port *port, bool all)
{
	struct emu_port_counters *by = glexd->host.by;

	coll_kick(glexd, port);
	glexd->host.by = NULL;
	deliver_due(glexd, port, all);
	glexd->host.by = by;
}

bool coll_serve_shuffled(struct glexd *glexd, struct port *port)
{
	struct emu_coll *coll = port->coll.coll;
	uint32_t asked;

	if (!port->coll_seg.base)
		return false;
	asked = atomic_load_explicit(&coll->asked, memory_order_acquire); /* COLL-A6 */
	serve(glexd, port, false);
	atomic_store_explicit(&coll->served, port->shuffle.n ? asked - 1 : asked, memory_order_release); /* COLL-R7 */
	return port->shuffle.n != 0;
}

void coll_end_shuffled(struct glexd *glexd, struct port *port)
{
	if (port->coll_seg.base && port->reorder.window)
		serve(glexd, port, true);
}
