/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collsim_near.c - calls of glex_ext.h that reach another member's memory at once, where there is no such memory: of
 * groups without a tree, which are not simulated, and of long broadcasts that are fetched.  And those of which nothing
 * comes where nobody dies, waits, or fails: boards, that trees have none of, and what is kept of regions.
 */
#include <glex_ext.h>

#include "group/priv.h"

glex_ret_t glex_atomic(glex_ep_handle_t ep, const struct glex_atomic_req *req, uint64_t *old_p)
{
	(void)ep;
	(void)req;
	(void)old_p;
	return GLEX_NOT_IMPLEMENTED;
}

glex_ret_t glex_quiet_ep(glex_ep_handle_t ep)
{
	(void)ep;
	return GLEX_NOT_IMPLEMENTED;
}

glex_ret_t glex_put_way_open(glex_ep_handle_t ep, glex_ep_addr_t to, glex_mem_handle_t rmt_mh, uint32_t rmt_key,
			     struct glex_put_way **way_p)
{
	(void)ep;
	(void)to;
	(void)rmt_mh;
	(void)rmt_key;
	(void)way_p;
	return GLEX_NOT_IMPLEMENTED;
}

void *glex_put_way_find(struct glex_put_way *way, uint32_t rmt_offset, uint32_t len)
{
	(void)way;
	(void)rmt_offset;
	(void)len;
	return NULL;
}

glex_ret_t glex_fetch(glex_ep_handle_t ep, const struct glex_imm_rdma_req *req)
{
	(void)ep;
	(void)req;
	return GLEX_NOT_IMPLEMENTED;
}

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

void *glexi_board_take(glex_device_handle_t dev, uint32_t len)
{
	static unsigned char untouched[8];

	(void)dev;
	(void)len;
	return untouched;
}

void glexi_board_give(void *board, enum glexi_board_state state)
{
	(void)board;
	(void)state;
}

glex_ret_t glex_poll_dead(glex_device_handle_t dev, uint64_t *next, uint32_t *num, struct glex_dead *list)
{
	(void)dev;
	(void)list;
	*next = 0;
	*num = 0;
	return GLEX_SUCCESS;
}

/* An error ends the whole run. */
glex_ret_t glex_poll_error_req(glex_ep_handle_t ep, uint32_t *num, struct glex_err_req *errors)
{
	(void)ep;
	(void)errors;
	*num = 0;
	return GLEX_SUCCESS;
}

glex_ret_t glex_probe_first_mp(glex_ep_handle_t ep, int32_t timeout, glex_ep_addr_t *src_ep_addr, void **data,
			       uint32_t *len)
{
	(void)ep;
	(void)timeout;
	(void)src_ep_addr;
	(void)data;
	(void)len;
	return GLEX_NO_MP;
}

glex_ret_t glex_rcache_destroy(glex_rcache_handle_t rc)
{
	(void)rc;
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_put(glex_rcache_handle_t rc, const struct glex_rcache_region *region)
{
	(void)rc;
	(void)region;
	return GLEX_SUCCESS;
}
