/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.c - collective requests: what they may be, and their way into the
 * collective unit of the endpoint (emulator/nic/coll.h).
 *
 * The unit is made by glexd when somebody first needs it: the owner, who posts,
 * or a peer, whose control packet may come earlier.  It is mapped once a process,
 * and belongs to the port's view in the tree.
 */
#include "backend/nic/nic.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "cfg/log.h"
#include "emulator/host/bell.h"
#include "emulator/nic/reduce.h"

/* Under dev->lock. */
static struct emu_coll_view *ask_for_coll(struct nic_device *dev, struct emu_vport *port)
{
	struct emu_ctl_msg msg = {.port = {.nic_id = port->port->nic_id, .ep_num = port->port->ep_num}};
	struct emu_coll_view *view;
	int fds[EMU_WIRE_FDS], status;
	const char *wrong;
	uint64_t size = 0;
	void *base;

	status = nic_ctl_call(&dev->ctl, EMU_CTL_COLL_OPEN, &msg, -1, fds);
	if (status < 0)
		glexi_device_lost(dev->dev);
	if (status == EMU_CTL_NO_MEMORY || status == EMU_CTL_NO_DESCRIPTORS)
		glexi_error("glexd has no %s left for the collective unit of endpoint %u:%u",
			    status == EMU_CTL_NO_MEMORY ? "memory" : "descriptor", port->port->nic_id,
			    port->port->ep_num);
	if (status != EMU_CTL_OK)
		return NULL;
	view = malloc(sizeof(*view));
	base = view ? nic_map_segment(fds[0], "a collective unit", &size) : NULL;
	if (!base) {
		free(view);
		return NULL;
	}
	wrong = emu_coll_attach(view, port, base, size);
	if (!wrong)
		return view;
	glexi_error("the collective unit of port %u:%u cannot be used: %s", port->port->nic_id, port->port->ep_num,
		    wrong);
	munmap(base, size);
	free(view);
	return NULL;
}

struct emu_coll_view *nic_host_coll(struct emu_host *host, struct emu_vport *port)
{
	struct nic_port_view *view = (struct nic_port_view *)(void *)port;
	struct emu_coll_view *coll = atomic_load_explicit(&view->coll, memory_order_acquire); /* PEER-A1 */
	struct nic_device *dev = nic_ep_of(host)->dev;

	static_assert(offsetof(struct nic_port_view, view) == 0, "the tree gives out views of ports");
	if (GLEXI_LIKELY(coll != NULL))
		return coll;
	pthread_mutex_lock(&dev->lock);
	coll = atomic_load_explicit(&view->coll, memory_order_acquire); /* PEER-A1 */
	if (!coll && emu_is_open(port)) {
		coll = ask_for_coll(dev, port);
		atomic_store_explicit(&view->coll, coll, memory_order_release); /* PEER-R1 */
	}
	pthread_mutex_unlock(&dev->lock);
	return coll;
}

glex_ret_t nic_coll_check(uint32_t flag, const void *mp_data, uint32_t len, bool mp)
{
	uint32_t reduces = GLEX_FLAG_COLL_REDUCE | GLEX_FLAG_COLL_REDUCE_RESULT;
	bool set = flag & GLEX_FLAG_COLL_SWAP_SET;

	if (!(flag & GLEX_FLAG_COLL) || flag & ~((uint32_t)GLEX_FLAG_COLL_REDUCE_RESULT * 2 - 1))
		return GLEX_INVALID_PARAM;
	if (flag & (GLEX_FLAG_COLL_SWAP_EP | GLEX_FLAG_COLL_SWAP_SET | GLEX_FLAG_COLL_REDUCE_RESULT) &&
	    !(flag & GLEX_FLAG_COLL_SWAP))
		return GLEX_INVALID_PARAM;
	if (!mp)
		return flag & reduces ? GLEX_INVALID_PARAM : set ? GLEX_NOT_IMPLEMENTED : GLEX_SUCCESS;
	if (set && (len % sizeof(glex_ep_addr_t) != 0 || flag & GLEX_FLAG_COLL_REDUCE))
		return GLEX_INVALID_PARAM;
	if (flag & GLEX_FLAG_COLL_REDUCE && !emu_is_operand(mp_data, len))
		return GLEX_INVALID_PARAM;
	return GLEX_SUCCESS;
}

/* The unit of an own endpoint; NULL: it cannot be had. */
static struct emu_coll_view *own_coll(struct nic_ep *nep)
{
	return nep->own ? nic_host_coll(&nep->host, &nep->own->view) : NULL;
}

glex_ret_t nic_coll_room(struct nic_ep *nep, uint32_t n)
{
	struct emu_coll_view *coll = own_coll(nep);

	if (!coll)
		return glexi_device_check(nep->dev->dev) == GLEX_SUCCESS ? GLEX_NO_MEM_RESOURCE : GLEX_SYS_ERR;
	if (n > coll->cq_mask + 1)
		return GLEX_INVALID_PARAM;
	if (n <= emu_coll_room(coll))
		return GLEX_SUCCESS;
	glexi_count(&nep->host.by->tx_busy, 1);
	return glexi_device_check(nep->dev->dev) == GLEX_SUCCESS ? GLEX_BUSY : GLEX_SYS_ERR;
}

void nic_coll_push(struct nic_ep *nep, struct emu_desc *desc, uint32_t counter, const void *imm, uint32_t imm_len)
{
	desc->counter = counter;
	/* relaxed: ours.  What was posted before and glexd has not executed yet comes first, also of this list. */
	desc->after = atomic_load_explicit(&nep->port.port->dq.tail, memory_order_relaxed) + nep->dq_filled;
	emu_coll_post(own_coll(nep), desc, imm, imm_len);
}

/* Out of order glexd has all turns (emulator/glexd/coll_shuffle.c). */
static __attribute__((noinline, cold)) void ask_glexd(struct nic_ep *nep, struct emu_coll *coll)
{
	atomic_fetch_add_explicit(&coll->asked, 1, memory_order_release); /* COLL-R6 */
	emu_dma_ring(nep->dev->engine, nep->dev->nic, nep->port.port->ep_num);
}

void nic_coll_run(struct nic_ep *nep)
{
	struct emu_coll_view *coll = own_coll(nep);

	if (GLEXI_UNLIKELY(nep->shuffle.window))
		ask_glexd(nep, coll->coll);
	else
		emu_coll_turn(&nep->host, coll);
}

bool nic_coll_drained(struct nic_ep *nep)
{
	struct emu_coll_view *coll =
		nep->own ? atomic_load_explicit(&nep->own->coll, memory_order_acquire) : NULL; /* PEER-A1 */
	bool locked;

	if (!coll)
		return true; /* this process has not needed it, so it has posted nothing */
	if (nep->shuffle.window)
		return atomic_load_explicit(&coll->coll->served, memory_order_acquire) == /* COLL-A7 */
		       atomic_load_explicit(&coll->coll->asked, memory_order_relaxed);	  /* relaxed: ours */
	locked = glexi_lock(&nep->ep->post_lock);
	nic_coll_run(nep);
	glexi_unlock(&nep->ep->post_lock, locked);
	return atomic_load_explicit(&coll->coll->turn, memory_order_acquire) == 0; /* COLL-R3 */
}
