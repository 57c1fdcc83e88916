/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collsim_near.c - calls of glex_ext.h that reach another member's memory at once, where there is no such memory: of
 * groups without a tree, which are not simulated, and of long broadcasts that are fetched.
 */
#include <glex_ext.h>

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
