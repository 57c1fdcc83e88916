/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collsim_glex.c - those calls of glex.h that libglex/src/group makes, on nodes
 * of a simulated machine: the group's own code decides what each node posts.
 *
 * Only mini-packets: the empty PUTs by which a group looks after its members are
 * never due here, and a run in which one is has failed.
 */
#include "collsim.h"

#include <stdlib.h>

/* A handle points to it. */
struct collsim_ep {
	glex_ep_t base;
	struct sim *sim;
	uint32_t node, num;
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
	(void)list;
	(void)bad;
	sim_fail(ep_of(handle)->sim, "simulated nodes have no memory to move");
	return GLEX_NOT_IMPLEMENTED;
}

glex_ret_t glex_create_ep(glex_device_handle_t handle, struct glex_ep_attr *attr, glex_ep_handle_t *ep_p)
{
	struct collsim_device *dev = (struct collsim_device *)(void *)handle;
	struct collsim_ep *ep;

	(void)attr;
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

/* Nobody reaches it: see imm_rdma. */
glex_ret_t glex_register_mem(glex_ep_handle_t ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh)
{
	(void)ep;
	(void)addr;
	(void)len;
	(void)flag;
	mh->v = 1;
	return GLEX_SUCCESS;
}

glex_ret_t glex_deregister_mem(glex_ep_handle_t ep, glex_mem_handle_t mh)
{
	(void)ep;
	(void)mh;
	return GLEX_SUCCESS;
}

glex_ret_t glex_alloc(glex_device_handle_t dev, uint64_t len, void **addr_p)
{
	static unsigned char untouched[8];

	(void)dev;
	(void)len;
	*addr_p = untouched;
	return GLEX_SUCCESS;
}

glex_ret_t glex_free(glex_device_handle_t dev, void *addr)
{
	(void)dev;
	(void)addr;
	return GLEX_SUCCESS;
}

/* Nobody dies. */
glex_ret_t glex_poll_dead(glex_device_handle_t dev, uint64_t *next, uint32_t *num, struct glex_dead *list)
{
	(void)dev;
	(void)list;
	*next = 0;
	*num = 0;
	return GLEX_SUCCESS;
}

/* What groups without a tree do is not simulated: there are none here. */
glex_ret_t glex_atomic(glex_ep_handle_t ep, const struct glex_atomic_req *req, uint64_t *old_p)
{
	(void)ep;
	(void)req;
	(void)old_p;
	return GLEX_NOT_IMPLEMENTED;
}

glex_ret_t glex_probe_first_event(glex_ep_handle_t ep, int32_t timeout, glex_event_t **event)
{
	(void)ep;
	(void)timeout;
	(void)event;
	return GLEX_NO_EVENT;
}

glex_ret_t glex_discard_probed_event(glex_ep_handle_t ep)
{
	(void)ep;
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

/* Errors end the whole run (sim_error). */
glex_ret_t glex_poll_error_req(glex_ep_handle_t ep, uint32_t *num, struct glex_err_req *errors)
{
	(void)ep;
	(void)errors;
	*num = 0;
	return GLEX_SUCCESS;
}
