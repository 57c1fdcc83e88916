/* SPDX-License-Identifier: BSD-2-Clause */
/* mem.c - registering memory, operating on it, and memory that is shareable from birth. */
#include "core/priv.h"

#include <unistd.h>

#define MEM_FLAGS (GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_IOMMU | GLEX_MEM_ATOMIC)

glex_ret_t glex_register_mem(glex_ep_handle_t handle, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep || !addr || !mh || len == 0 || (uintptr_t)addr + len < (uintptr_t)addr || (flag & ~MEM_FLAGS))
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(ep->dev))
		return GLEX_SYS_ERR;
	return ep->dev->ops->mem_register(ep, addr, len, flag, mh);
}

glex_ret_t glex_deregister_mem(glex_ep_handle_t handle, glex_mem_handle_t mh)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep)
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(ep->dev))
		return GLEX_SYS_ERR;
	return ep->dev->ops->mem_deregister(ep, mh);
}

glex_ret_t glex_atomic(glex_ep_handle_t handle, const struct glex_atomic_req *req, uint64_t *old_p)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep || !req || !old_p || (req->field_mask | GLEX_ATOMIC_FIELD_COMPARE) != GLEX_ATOMIC_FIELDS ||
	    (unsigned)req->op > GLEX_ATOMIC_CAS || (req->width != 4 && req->width != 8) ||
	    (req->op == GLEX_ATOMIC_CAS && !(req->field_mask & GLEX_ATOMIC_FIELD_COMPARE)))
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(ep->dev))
		return GLEX_SYS_ERR;
	return ep->dev->ops->atomic(ep, req, old_p);
}

glex_ret_t glex_alloc(glex_device_handle_t handle, uint64_t len, void **addr_p)
{
	struct glexi_device *dev = glexi_device_of(handle);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!dev || !addr_p || len == 0 || len > INT64_MAX - page)
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(dev))
		return GLEX_SYS_ERR;
	return dev->ops->alloc(dev, (len + page - 1) / page * page, addr_p);
}

glex_ret_t glex_free(glex_device_handle_t handle, void *addr)
{
	struct glexi_device *dev = glexi_device_of(handle);

	if (!dev || !addr)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(dev))
		return GLEX_SYS_ERR;
	return dev->ops->free(dev, addr);
}
