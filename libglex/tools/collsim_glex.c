/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collsim_glex.c - those calls of glex.h that libglex/src/group makes, on nodes
 * of a simulated machine: the group's own code decides what each node posts.  The others are in collsim_near.c.
 *
 * Mini-packets, and the PUTs of long broadcasts: of memory there is only how much of
 * it a node holds (emulator/sim/memory.c).  The empty PUTs by which a group looks after
 * its members are never due here, and a run in which one is has failed.
 */
#include "collsim.h"

#include <stdlib.h>
#include <string.h>

#include "group/priv.h"

/* A handle points to it. */
struct collsim_ep {
	glex_ep_t base;
	struct sim *sim;
	uint32_t node, num, key;
	glex_event_t event; /* as it was looked at */
};

static struct collsim_ep *ep_of(glex_ep_handle_t handle)
{
	return (struct collsim_ep *)(void *)handle;
}

static glex_ret_t send_imm_mp(glex_ep_t *handle, struct glex_imm_mp_req *list, struct glex_imm_mp_req **bad)
{
	struct collsim_ep *ep = ep_of(handle);
	struct glex_imm_mp_req *req;

	(void)bad;
	for (req = list; req; req = req->next) {
		struct emu_desc desc = {.op = EMU_OP_MP,
					.flag = (uint32_t)req->flag,
					.dst = req->rmt_ep_addr.v,
					.len = req->len,
					.counter = req->coll_counter};

		if (req->len > EMU_MP_DATA)
			return GLEX_INVALID_PARAM;
		sim_post(ep->sim, ep->node, ep->num, &desc, req->data, req != list);
	}
	return sim_error(ep->sim) ? GLEX_SYS_ERR : GLEX_SUCCESS;
}

static glex_ret_t imm_rdma(glex_ep_t *handle, struct glex_imm_rdma_req *list, struct glex_imm_rdma_req **bad)
{
	(void)list;
	(void)bad;
	sim_fail(ep_of(handle)->sim, "a group has missed a member");
	return GLEX_NOT_IMPLEMENTED;
}

static glex_ret_t rdma(glex_ep_t *handle, struct glex_rdma_req *list, struct glex_rdma_req **bad)
{
	struct collsim_ep *ep = ep_of(handle);
	struct glex_rdma_req *req;

	(void)bad;
	for (req = list; req; req = req->next) {
		struct emu_desc desc = {.op = EMU_OP_PUT,
					.flag = (uint32_t)req->flag,
					.dst = req->rmt_ep_addr.v,
					.local_mh = req->local_mh.v,
					.rmt_mh = req->rmt_mh.v,
					.local_offset = req->local_offset,
					.rmt_offset = req->rmt_offset,
					.len = req->len,
					.rmt_key = req->rmt_key,
					.local_evt = {req->local_evt.cookie_0, req->local_evt.cookie_1},
					.rmt_evt = {req->rmt_evt.cookie_0, req->rmt_evt.cookie_1},
					.counter = req->coll_counter};

		if (req->type != GLEX_RDMA_TYPE_PUT)
			return GLEX_NOT_IMPLEMENTED;
		sim_post(ep->sim, ep->node, ep->num, &desc, NULL, req != list);
	}
	return sim_error(ep->sim) ? GLEX_SYS_ERR : GLEX_SUCCESS;
}

glex_ret_t glex_create_ep(glex_device_handle_t handle, struct glex_ep_attr *attr, glex_ep_handle_t *ep_p)
{
	struct collsim_device *dev = (struct collsim_device *)(void *)handle;
	struct collsim_ep *ep;

	if (dev->eps[dev->node] == SIM_EPS)
		return GLEX_NO_EP_RESOURCE;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return GLEX_NO_MEM_RESOURCE;
	ep->base.send_imm_mp = send_imm_mp;
	ep->base.imm_rdma = imm_rdma;
	ep->base.rdma = rdma;
	ep->sim = dev->sim;
	ep->node = dev->node;
	ep->key = attr->key;
	ep->num = dev->eps[dev->node]++;
	*ep_p = &ep->base;
	return GLEX_SUCCESS;
}

glex_ret_t glex_destroy_ep(glex_ep_handle_t ep)
{
	free(ep_of(ep));
	return GLEX_SUCCESS;
}

/* Nobody sends any more when groups are closed. */
glex_ret_t glex_retire_ep(glex_ep_handle_t ep)
{
	return glex_destroy_ep(ep);
}

glex_ret_t glex_get_ep_addr(glex_ep_handle_t handle, glex_ep_addr_t *addr)
{
	addr->v = 0;
	addr->nic_id = ep_of(handle)->node;
	addr->ep_num = (uint16_t)ep_of(handle)->num;
	return GLEX_SUCCESS;
}

/* Nobody waits here: the program is called when there is one. */
glex_ret_t glex_probe_first_event(glex_ep_handle_t handle, int32_t timeout, glex_event_t **event)
{
	struct collsim_ep *ep = ep_of(handle);
	const uint64_t *cookie = sim_event(ep->sim, ep->node, ep->num);

	(void)timeout;
	if (!cookie)
		return GLEX_NO_EVENT;
	ep->event = (glex_event_t){.cookie_0 = cookie[0], .cookie_1 = cookie[1]};
	*event = &ep->event;
	return GLEX_SUCCESS;
}

glex_ret_t glex_discard_probed_event(glex_ep_handle_t ep)
{
	sim_take_event(ep_of(ep)->sim, ep_of(ep)->node, ep_of(ep)->num);
	return GLEX_SUCCESS;
}

/* Who waits lets time pass. */
glex_ret_t glex_receive_mp(glex_ep_handle_t handle, int32_t timeout, glex_ep_addr_t *rmt_ep_addr, void *data,
			   uint32_t *data_len)
{
	struct collsim_ep *ep = ep_of(handle);
	uint64_t src;

	while (!sim_take(ep->sim, ep->node, ep->num, &src, data, data_len))
		if (timeout == 0 || !sim_step(ep->sim))
			return sim_error(ep->sim) ? GLEX_SYS_ERR : GLEX_NO_MP;
	if (rmt_ep_addr)
		rmt_ep_addr->v = src;
	return GLEX_SUCCESS;
}

/* ---- long broadcasts --------------------------------------------------------- */

glex_ret_t glex_query_device(glex_device_handle_t dev, struct glex_device_attr *attr)
{
	(void)dev;
	memset(attr, 0, sizeof(*attr));
	attr->max_rdma_data_len = EMU_RDMA_DATA;
	return GLEX_SUCCESS;
}

/* A node has one buffer, on the endpoint of its cache. */
glex_ret_t glex_rcache_create(glex_ep_handle_t ep, const struct glex_rcache_attr *attr, glex_rcache_handle_t *rc_p)
{
	(void)attr;
	*rc_p = (glex_rcache_handle_t)(void *)ep;
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_get(glex_rcache_handle_t rc, void *addr, uint64_t len, int32_t flag,
			   struct glex_rcache_region *region)
{
	const struct collsim_ep *ep = (const struct collsim_ep *)(void *)rc;

	(void)addr;
	(void)flag;
	if (len > SIM_BUFFER)
		return GLEX_INVALID_PARAM;
	*region = (struct glex_rcache_region){.mh.v = sim_register(ep->sim, ep->node, ep->num, ep->key)};
	return GLEX_SUCCESS;
}
