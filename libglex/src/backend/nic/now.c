/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * now.c - glex_fetch and glex_atomic: requests that the caller executes, and that
 * are over when the call returns, whatever became of them.  And where a PUT would go.
 */
#include <sched.h>
#include <string.h>

#include "backend/nic/quiet.h"
#include "emulator/nic/atomic.h"

/* ---- GET into any memory ------------------------------------------------------- */

/* A region found before; NULL: nothing is known. */
static const struct emu_known *recall_source(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;

	return emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset, req->len, req->rmt_key,
				 GLEX_MEM_READ);
}

/* The usual case; false: nothing has happened. */
static bool fetch_usual(struct glexi_ep *ep, const struct glex_imm_rdma_req *req, int *status_p)
{
	struct emu_vport *to = usual_port(ep, req->rmt_ep_addr.v);
	struct nic_ep *nep = ep->be;
	const struct emu_known *src = to ? recall_source(ep, req) : NULL;
	bool event = req->flag & GLEX_FLAG_REMOTE_EVT;
	uint64_t cookie[2] = {0, 0};

	if (!src)
		return false;
	if (event)
		emu_ring_want(&to->eq, false);
	nic_take_event(cookie, &req->rmt_evt, event);
	glexi_count(&nep->host.by->by_map, 1);
	*status_p =
		emu_put_data(&nep->host, event ? to : NULL, req->data, src->base + req->rmt_offset, req->len, cookie);
	return true;
}

/* The bytes of what is not usual. */
static int fetch_data(struct glexi_ep *ep, const struct glex_imm_rdma_req *req, const struct emu_desc *desc)
{
	struct nic_ep *nep = ep->be;
	const struct emu_away *away = NULL;

	if (usual_port(ep, desc->dst))
		away = emu_recall_away(&nep->host, desc->rmt_mh, desc->dst, desc->rmt_offset, desc->len, desc->rmt_key,
				       GLEX_MEM_READ);
	if (away)
		return emu_status_of(emu_move_away(&nep->host, away, desc->rmt_offset, req->data, desc->len, false));
	return emu_exec_fetch(&nep->host, &nep->port, desc, req->data);
}

static void describe_fetch(const struct glex_imm_rdma_req *req, struct emu_desc *desc)
{
	memset(desc, 0, offsetof(struct emu_desc, imm));
	desc->op = EMU_OP_GET;
	desc->flag = (uint32_t)req->flag;
	desc->dst = req->rmt_ep_addr.v;
	desc->rmt_mh = req->rmt_mh.v;
	desc->rmt_offset = req->rmt_offset;
	desc->len = req->len;
	desc->rmt_key = req->rmt_key;
	nic_take_event(desc->rmt_evt, &req->rmt_evt, req->flag & GLEX_FLAG_REMOTE_EVT);
}

/* GLEX_SUCCESS: the bytes have come, though perhaps not the event. */
static glex_ret_t fetch_here(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	struct emu_desc desc;
	int status, raised = EMU_OK;

	glexi_count(&nep->host.by->tx_get, 1);
	glexi_count(&nep->host.by->tx_bytes, req->len);
	if (GLEXI_LIKELY(fetch_usual(ep, req, &raised))) {
		if (GLEXI_LIKELY(raised == EMU_OK))
			return GLEX_SUCCESS;
		describe_fetch(req, &desc);
		nic_report(nep, &desc, raised);
		return GLEX_SUCCESS;
	}
	describe_fetch(req, &desc);
	status = fetch_data(ep, req, &desc);
	if (status == EMU_OK)
		raised = emu_exec_finish(&nep->host, &nep->port, &desc);
	if (status != EMU_OK || raised != EMU_OK)
		nic_report(nep, &desc, status != EMU_OK ? status : raised);
	return status == EMU_OK ? GLEX_SUCCESS : GLEX_ACCESS_ERR;
}

glex_ret_t nic_fetch(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	glex_ret_t ret;
	bool locked;

	if (GLEXI_UNLIKELY(req->len > EMU_RDMA_DATA))
		return GLEX_INVALID_PARAM;
	if (GLEXI_UNLIKELY(nep->port.dq != NULL))
		return GLEX_NOT_IMPLEMENTED;
	if (GLEXI_UNLIKELY(glexi_is_lost(ep->dev)))
		return GLEX_SYS_ERR;
	locked = glexi_lock(&ep->post_lock);
	ret = fetch_here(ep, req);
	glexi_unlock(&ep->post_lock, locked);
	return ret;
}

/* ---- atomic operations --------------------------------------------------------- */

glex_ret_t nic_atomic(struct glexi_ep *ep, const struct glex_atomic_req *req, uint64_t *old_p)
{
	struct emu_desc desc = {
		.op = EMU_OP_ATOMIC,
		.dst = req->rmt_ep_addr.v,
		.rmt_mh = req->rmt_mh.v,
		.rmt_offset = req->rmt_offset,
		.rmt_key = req->rmt_key,
		.len = req->width,
	};
	struct emu_atomic what = {(enum emu_atomic_op)req->op, req->operand, req->compare};
	struct nic_ep *nep = ep->be;
	bool locked = glexi_lock(&ep->post_lock);
	glex_ret_t ret = GLEX_SUCCESS;
	int status;

	/* behind everything that this endpoint has posted */
	if (nep->port.dq && nic_dq_used(nep) != 0) {
		glexi_count(&nep->host.by->tx_busy, 1);
		ret = glexi_device_check(ep->dev) == GLEX_SUCCESS ? GLEX_BUSY : GLEX_SYS_ERR;
		sched_yield();
	} else {
		status = emu_exec_atomic(&nep->host, &nep->port, &desc, &what, old_p);
		if (GLEXI_UNLIKELY(status != EMU_OK)) {
			nic_report(nep, &desc, status);
			ret = GLEX_ACCESS_ERR;
		}
	}
	glexi_unlock(&ep->post_lock, locked);
	return ret;
}

/* ---- where a PUT would go -------------------------------------------------------- */

/* A PUT has gone there, so both the region and its port are known; what has changed since, the next PUT finds out. */
bool nic_find_put_way(struct glexi_ep *ep, struct glexi_put_way *way)
{
	struct nic_ep *nep = ep->be;
	struct emu_port_counters *by = nep->host.by;
	glex_mem_handle_t mh = {.v = way->mh};
	glex_ep_addr_t to = {.v = way->to};
	const struct emu_known *known;
	struct emu_vport *port;

	known = nep->port.dq ? NULL : emu_recall_remote(&nep->host, way->mh, way->to, 0, 1, way->key, GLEX_MEM_WRITE);
	port = known ? nep->host.ops->port(&nep->host, to.nic_id, to.ep_num) : NULL;
	if (!port || !emu_is_open(port))
		return false;
	way->pub.base = known->base;
	way->pub.len = known->len;
	way->pub.valid = (const uint64_t *)(const void *)&known->nic->mmt[mh.mmt_index].valid; /* MMT-A3 */
	way->pub.generation = mh.att_index;
	way->pub.state = (const uint32_t *)(const void *)&port->port->state;
	way->pub.open = EMU_PORT_OPEN;
	way->pub.counters[0] = (uint64_t *)(void *)&by->tx_imm_put;
	way->pub.counters[1] = (uint64_t *)(void *)&by->by_map;
	way->pub.atomic = known->access & GLEX_MEM_ATOMIC;
	way->pub.readable = known->access & GLEX_MEM_READ;
	return true;
}

const void *nic_prefetch_at(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	bool locked = glexi_lock(&ep->post_lock);
	struct nic_ep *nep = ep->be;
	const struct emu_known *known = emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v,
							  req->rmt_offset, req->len, req->rmt_key, GLEX_MEM_WRITE);
	const void *at = known ? known->base + req->rmt_offset : NULL;

	glexi_unlock(&ep->post_lock, locked);
	return at;
}
