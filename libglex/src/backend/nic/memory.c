/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - entering regions into the own NIC's table.
 *
 * Registering writes the table directly: about a hundred nanoseconds, no talk
 * with glexd.  A region over memory of glex_alloc is entered with the shared
 * object that covers most of it and its place there, so that peers map it; what
 * the object does not cover, and any other region, is reached by cross-memory
 * attach.
 */
#include "backend/nic/nic.h"

#include "cfg/log.h"

static void choose_way(struct nic_device *dev, unsigned char *addr, struct emu_region *region)
{
	struct nic_alloc *alloc;

	region->way = EMU_WAY_ATTACH;
	/* relaxed: who registers memory of glex_alloc has seen that call return */
	if (atomic_load_explicit(&dev->alloc_count, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&dev->lock);
	alloc = nic_alloc_most(dev, addr, region->len);
	if (alloc) {
		region->way = EMU_WAY_MAP;
		region->map = alloc->id;
		region->map_offset = addr - alloc->base;
	}
	pthread_mutex_unlock(&dev->lock);
}

glex_ret_t nic_mem_register(struct glexi_ep *ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh)
{
	struct nic_ep *nep = ep->be;
	struct nic_device *dev = nep->dev;
	struct emu_region region = {
		.addr = (uintptr_t)addr,
		.len = len,
		.key = ep->attr.key,
		.pid = dev->welcome.pid,
		.session = dev->welcome.session,
		.ep_num = ep->attr.num,
		.access = (uint32_t)flag & (GLEX_MEM_READ | GLEX_MEM_WRITE),
	};

	choose_way(dev, addr, &region);
	if (region.way == EMU_WAY_ATTACH)
		nic_mem_used(dev, region.addr, len);
	if (emu_mmt_register(dev->nic, &region, &mh->v))
		return GLEX_SUCCESS;
	glexi_warn_once(
		dev->welcome.nic_id,
		"the memory table of NIC %u is full: %u regions; deregister some, or spread processes over more "
		"nodes (GLEX_PPN, GLEX_NODE)",
		dev->welcome.nic_id, EMU_MMT_UNITS);
	return GLEX_NO_MEM_RESOURCE;
}

glex_ret_t nic_mem_deregister(struct glexi_ep *ep, glex_mem_handle_t mh)
{
	struct nic_ep *nep = ep->be;

	if (emu_mmt_revoke(nep->dev->nic, mh.v, nep->dev->welcome.session, ep->attr.num))
		return GLEX_SUCCESS;
	/* a glexd that ends takes the regions back before we know that it is gone */
	return glexi_device_check(ep->dev) == GLEX_SUCCESS ? GLEX_INVALID_PARAM : GLEX_SYS_ERR;
}
