/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quiet.h - PUTs and GETs that raise no event, from and to regions seen before,
 * posted by a process with one thread: inline in the posting calls (post.c).
 *
 * Nothing comes after the copy, no event and no unlock, so nothing is kept over
 * it, and the stack sees few stores.  That counts: in a stream of PUTs of some KiB
 * the processor's queue of stores is what is short.  For the same reason the
 * copiers end by themselves (copy.h).
 */
#ifndef GLEXI_BACKEND_NIC_QUIET_H
#define GLEXI_BACKEND_NIC_QUIET_H

#include "backend/nic/nic.h"
#include "emulator/nic/fast.h"

/* The port at addr if that is where the last request went too, and the poster executes; under the endpoint's lock. */
GLEXI_INLINE struct emu_vport *usual_port(const struct glexi_ep *ep, uint64_t addr)
{
	const struct nic_ep *nep = ep->be;
	struct nic_port_view *view = nep->last_port;

	if (!view || nep->last_addr != addr || nep->port.dq || glexi_is_lost(ep->dev) || !emu_is_open(&view->view))
		return NULL;
	return &view->view;
}

GLEXI_INLINE void nic_take_event(uint64_t to[2], const glex_event_t *from, bool wanted)
{
	if (wanted) {
		to[0] = from->cookie_0;
		to[1] = from->cookie_1;
	}
}

/* What the other side answers will be answered in turn, and into this queue. */
GLEXI_INLINE void nic_expect_answer(struct glexi_ep *ep, const struct emu_ring *ring)
{
	atomic_store_explicit(&ep->answer, emu_ring_next(ring), memory_order_relaxed); /* relaxed: a hint */
}

/* An immediate PUT; false: nothing has happened. */
GLEXI_INLINE bool put_imm_quiet(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	const struct emu_known *dst;

	if (!glexi_is_lockless(&ep->post_lock) || !usual_port(ep, req->rmt_ep_addr.v))
		return false;
	dst = emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset, req->len, req->rmt_key,
				GLEX_MEM_WRITE);
	if (GLEXI_UNLIKELY(!dst))
		return false;
	glexi_count(&nep->host.by->tx_imm_put, 1);
	glexi_count(&nep->host.by->by_map, 1);
	emu_copy_short(&nep->host, dst->base + req->rmt_offset, req->data, req->len);
	return true;
}

/* A PUT or GET; false: nothing has happened. */
GLEXI_INLINE bool rdma_quiet(struct glexi_ep *ep, const struct glex_rdma_req *req)
{
	bool put = req->type == GLEX_RDMA_TYPE_PUT;
	const struct emu_known *remote, *local;
	struct nic_ep *nep = ep->be;
	unsigned char *here, *there;

	if (!glexi_is_lockless(&ep->post_lock) || !usual_port(ep, req->rmt_ep_addr.v))
		return false;
	remote = emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset, req->len,
				   req->rmt_key, put ? GLEX_MEM_WRITE : GLEX_MEM_READ);
	if (GLEXI_UNLIKELY(!remote))
		return false;
	there = remote->base + req->rmt_offset;
	local = emu_recall_local(&nep->host, req->local_mh.v, ep->addr.v, req->local_offset, req->len);
	if (GLEXI_UNLIKELY(!local))
		return false;
	here = local->base + req->local_offset;
	glexi_count(put ? &nep->host.by->tx_put : &nep->host.by->tx_get, 1);
	glexi_count(&nep->host.by->tx_bytes, req->len);
	glexi_count(&nep->host.by->by_map, 1);
	emu_copy_short(&nep->host, put ? there : here, put ? here : there, req->len);
	return true;
}

#endif /* GLEXI_BACKEND_NIC_QUIET_H */
