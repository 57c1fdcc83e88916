/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue.c - the descriptor queue of an endpoint, for requests that glexd's DMA engine
 * executes; and what became of requests that came to nothing, whoever executed them.
 * The poster's side (post.c), under the endpoint's post lock.
 *
 * The cache lines of a request that the engine executes, and which of them travel:
 *
 *   line                      written by    travels
 *   its slot, of 4 lines      the poster    two to the engine, a third and a fourth with more than 40 bytes
 *                                           of payload; to the poster when the queue has gone round
 *   tail of the queue         the poster    to the engine, once a list
 *   head of the queue         the engine    to the poster at his next post, which looks for room
 *   dma_pending of the NIC    both          once a list; all ports of the NIC share it
 *   asleep of the engine      the engine    only when it has fallen asleep or woken up
 *   counters of the port      both          hardly: what the engine counts is not on the poster's line
 *
 * A list is shown to the engine by one tail, one bit and one look at asleep (nic_dq_ring).  The
 * bit is a locked instruction, which waits for all stores before it: that is what a
 * post costs beside its slots.  The slots of a list travel while it is executed.
 */
#include <sched.h>
#include <string.h>

#include "backend/nic/nic.h"
#include "backend/nic/patience.h"
#include "cfg/log.h"
#include "emulator/host/bell.h"
#include "emulator/host/clock.h"
#include "emulator/nic/exec.h"

/* ---- asynchronous errors -------------------------------------------------- */

static __attribute__((noinline, cold)) void tell(struct nic_ep *nep, uint32_t op, int status, glex_ep_addr_t dst)
{
	glexi_count(&nep->host.by->tx_error, 1);
	if (atomic_load_explicit(&nep->ep->is_quiet, memory_order_relaxed)) /* relaxed: nothing comes with it */
		return;
	glexi_error_once((uint64_t)status << 56 ^ dst.v,
			 "%s from NIC %u endpoint %u to NIC %u endpoint %u came to nothing: status %d, %s%s",
			 glex_error_req_opcode_str((enum glex_err_req_op)op), nep->port.port->nic_id,
			 nep->port.port->ep_num, dst.nic_id, dst.ep_num, status,
			 glex_error_req_status_str((enum glex_err_req_status)status),
			 glexi_error_req_cure((enum glex_err_req_status)status));
}

/*
 * Errors that the DMA engine found, or who executed a collective request, are put
 * on stderr by the owner, when it next posts such.  What the program has polled by then it knows.
 */
void nic_tell_errors(struct nic_ep *nep)
{
	uint32_t polled = glexi_queue_read(&nep->ep->err);
	struct emu_err_slot *slot;

	if (GLEXI_UNLIKELY((int32_t)(polled - nep->err_logged) > 0))
		nep->err_logged = polled;
	while (GLEXI_UNLIKELY((slot = emu_ring_peek(&nep->port.err, nep->err_logged)) != NULL)) {
		glex_ep_addr_t dst = {.ep_num = (uint16_t)slot->rmt_ep_num};

		dst.nic_id = slot->rmt_nic_id;
		if (!(slot->flags & EMU_SLOT_DISCARDED))
			tell(nep, slot->op, (int)slot->status, dst);
		nep->err_logged++;
	}
}

__attribute__((noinline, cold)) void nic_report(struct nic_ep *nep, const struct emu_desc *desc, int status)
{
	glex_ep_addr_t dst = {.v = desc->dst};

	nic_tell_errors(nep); /* of collective requests */
	emu_report(&nep->host, &nep->port, desc, status);
	if (nep->shuffle.window)
		return; /* the engine reports at the same time: nic_tell_errors has them in order */
	tell(nep, emu_err_op(desc->op), status, dst);
	nep->err_logged++;
}

/* ---- the descriptor queue of NORMAL endpoints ------------------------------ */

uint32_t nic_dq_used(const struct nic_ep *nep)
{
	struct emu_ring_ctl *ctl = &nep->port.port->dq;
	uint32_t tail = emu_low(atomic_load_explicit(&ctl->tail, memory_order_relaxed)); /* relaxed: ours */

	return tail + nep->dq_filled - atomic_load_explicit(&ctl->head, memory_order_acquire); /* DQ-A2 */
}

void nic_dq_push(struct nic_ep *nep, const struct emu_desc *desc, const void *imm, uint32_t imm_len)
{
	struct emu_ring_ctl *ctl = &nep->port.port->dq;
	uint64_t tail = atomic_load_explicit(&ctl->tail, memory_order_relaxed); /* relaxed: ours */
	struct emu_desc *slot = &nep->port.dq[(emu_low(tail) + nep->dq_filled) & nep->port.dq_mask];

	memcpy(slot, desc, offsetof(struct emu_desc, imm));
	if (imm_len)
		memcpy(slot->imm, imm, imm_len);
	nep->dq_filled++;
}

void nic_dq_ring(struct nic_ep *nep)
{
	struct emu_ring_ctl *ctl = &nep->port.port->dq;
	uint64_t tail = atomic_load_explicit(&ctl->tail, memory_order_relaxed); /* relaxed: ours */

	if (nep->dq_filled == 0)
		return;
	/* All 64 bits: coll.c counts by them. */
	atomic_store_explicit(&ctl->tail, tail + nep->dq_filled, memory_order_release); /* DQ-R1 */
	nep->dq_filled = 0;
	emu_dma_ring(nep->dev->engine, nep->dev->nic, nep->port.port->ep_num);
}

#define COLL_PATIENCE (1u << 20) /* yields, some seconds: who executes for us may be stopped */
#define ASK_NS	      UINT64_C(1000000000)

/*
 * Whether it is worth waiting for glexd.  Long transfers of many take their time, but one
 * that is stopped looks alive: now and then it has to answer, or counts as lost.
 */
static bool is_at_work(struct nic_ep *nep, struct nic_patience *patience)
{
	struct emu_ctl_msg msg = {.port = {.nic_id = nep->port.port->nic_id}};

	if (!nic_patience_left(patience, emu_now_ns(), false)) {
		nic_ctl_call(&nep->dev->ctl, EMU_CTL_NIC_OPEN, &msg, -1, NULL);
		nic_patience_begin(patience, ASK_NS, emu_now_ns());
	}
	return glexi_device_check(nep->ep->dev) == GLEX_SUCCESS;
}

bool nic_drain(struct glexi_ep *ep)
{
	struct nic_ep *nep = ep->be;
	struct nic_patience patience;
	uint32_t turns = 0;

	nic_patience_begin(&patience, ASK_NS, emu_now_ns());
	while ((nep->port.dq && nic_dq_used(nep) != 0) || (turns < COLL_PATIENCE && !nic_coll_drained(nep))) {
		if (++turns % 1024 == 0 && !is_at_work(nep, &patience))
			return false;
		sched_yield();
	}
	nic_tell_errors(nep); /* there will be no next post */
	return true;
}
