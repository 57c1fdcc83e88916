/* SPDX-License-Identifier: BSD-2-Clause */
/* mem.c - registering memory, operating on it, and memory that is shareable from birth. */
#include "core/priv.h"

#include <unistd.h>

#define MEM_FLAGS (GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_IOMMU | GLEX_MEM_ATOMIC | GLEX_MEM_MAPPED)

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

/* The form that requests with plain memory at this end have. */
static bool is_plain(const struct glex_imm_rdma_req *req)
{
	return req && !req->next && !(req->flag & ~(GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_FENCE)) &&
	       (!req->len || req->data) && (!(req->flag & GLEX_FLAG_REMOTE_EVT) || req->rmt_evt.cookie_1 != 0);
}

glex_ret_t glex_fetch(glex_ep_handle_t handle, const struct glex_imm_rdma_req *req)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (GLEXI_UNLIKELY(!ep || !is_plain(req)))
		return GLEX_INVALID_PARAM;
	return ep->dev->ops->fetch(ep, req);
}

glex_ret_t glex_inject(glex_ep_handle_t handle, const struct glex_imm_rdma_req *req)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (GLEXI_UNLIKELY(!ep || !is_plain(req)))
		return GLEX_INVALID_PARAM;
	return ep->dev->ops->inject(ep, req);
}

const void *glex_prefetch_at(glex_ep_handle_t handle, const struct glex_imm_rdma_req *req)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	return ep && req ? ep->dev->ops->prefetch_at(ep, req) : NULL;
}

#define ALLOC_FIELDS (GLEX_ALLOC_ATTR_HUGE_PAGES | GLEX_ALLOC_ATTR_NUMA_NODE | GLEX_ALLOC_ATTR_UNTOUCHED)

/* What the attributes say, the others as they come.  False: they say what there is not. */
static bool read_wish(const struct glex_alloc_attr *attr, struct glexi_alloc_wish *wish)
{
	*wish = (struct glexi_alloc_wish){.node = -1};
	if (!attr)
		return true;
	if (attr->field_mask & ~(uint64_t)ALLOC_FIELDS)
		return false;
	if (attr->field_mask & GLEX_ALLOC_ATTR_HUGE_PAGES)
		wish->huge = attr->huge_pages;
	if (attr->field_mask & GLEX_ALLOC_ATTR_UNTOUCHED)
		wish->untouched = attr->untouched;
	if (attr->field_mask & GLEX_ALLOC_ATTR_NUMA_NODE)
		wish->node = attr->numa_node < GLEXI_NODES ? (int)attr->numa_node : GLEXI_NODES;
	return wish->node < GLEXI_NODES;
}

glex_ret_t glex_alloc_with(glex_device_handle_t handle, uint64_t len, const struct glex_alloc_attr *attr, void **addr_p)
{
	struct glexi_device *dev = glexi_device_of(handle);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct glexi_alloc_wish wish;

	if (!dev || !addr_p || len == 0 || len > INT64_MAX - page || !read_wish(attr, &wish))
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(dev))
		return GLEX_SYS_ERR;
	return dev->ops->alloc(dev, (len + page - 1) / page * page, &wish, addr_p);
}

glex_ret_t glex_alloc(glex_device_handle_t handle, uint64_t len, void **addr_p)
{
	return glex_alloc_with(handle, len, NULL, addr_p);
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
