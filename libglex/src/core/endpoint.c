/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint.c - creating, asking and destroying endpoints, and their addresses.
 */
#include "core/priv.h"

#include <stdlib.h>

#define EP_NUM_MAX UINT16_MAX /* the address has 16 bits for it */

/* 0 becomes def; the result is a power of two.  False: above max. */
static bool settle_capacity(uint32_t *capacity, uint32_t def, uint32_t max)
{
	uint32_t want = *capacity ? *capacity : def, n = 1;

	if (want > max)
		return false;
	while (n < want)
		n *= 2;
	*capacity = n;
	return true;
}

static bool settle_attr(struct glex_ep_attr *attr, const struct glex_device_attr *dev)
{
	bool hc_mpq = attr->mpq_type == GLEX_MPQ_TYPE_HIGH_CAPACITY,
	     hc_eq = attr->eq_type == GLEX_EQ_TYPE_HIGH_CAPACITY;

	if ((unsigned)attr->type > GLEX_EP_TYPE_MANAGEMENT || (unsigned)attr->mpq_type > GLEX_MPQ_TYPE_IOMMU ||
	    (unsigned)attr->eq_type > GLEX_EQ_TYPE_IOMMU || (attr->num != GLEX_ANY_EP_NUM && attr->num > EP_NUM_MAX))
		return false;
	return settle_capacity(&attr->dq_capacity, dev->def_ep_dq_capacity, dev->max_ep_dq_capacity) &&
	       settle_capacity(&attr->mpq_capacity, dev->def_ep_mpq_capacity,
			       hc_mpq ? dev->max_ep_hc_mpq_capacity : dev->max_ep_mpq_capacity) &&
	       settle_capacity(&attr->eq_capacity, dev->def_ep_eq_capacity,
			       hc_eq ? dev->max_ep_hc_eq_capacity : dev->max_ep_eq_capacity);
}

glex_ret_t glex_create_ep(glex_device_handle_t handle, struct glex_ep_attr *attr, glex_ep_handle_t *ep_p)
{
	struct glexi_device *dev = glexi_device_of(handle);
	struct glex_device_attr limits;
	struct glexi_ep *ep;
	glex_ret_t ret;

	if (!dev || !attr || !ep_p)
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(dev))
		return GLEX_SYS_ERR;
	if (attr->type == GLEX_EP_TYPE_MANAGEMENT)
		return GLEX_ACCESS_ERR;
	dev->ops->query(dev, &limits);
	if (posix_memalign((void **)&ep, EMU_LINE, sizeof(*ep)) != 0)
		return GLEX_NO_MEM_RESOURCE;
	*ep = (struct glexi_ep){.dev = dev, .attr = *attr};
	ep->post_lock.never = ep->mpq.lock.never = ep->eq.lock.never = ep->err.lock.never = glex_single_threaded != 0;
	ret = settle_attr(&ep->attr, &limits) ? dev->ops->ep_create(ep) : GLEX_INVALID_PARAM;
	if (ret != GLEX_SUCCESS) {
		free(ep);
		return ret;
	}
	glexi_device_add_ep(dev, ep);
	*ep_p = &ep->pub;
	return GLEX_SUCCESS;
}

void glexi_ep_end(struct glexi_ep *ep)
{
	ep->dev->ops->ep_destroy(ep);
	glexi_put_ways_end(ep); /* now that no other thread finds the endpoint, to have them forgotten */
	glexi_device_remove_ep(ep->dev, ep);
	free(ep);
}

glex_ret_t glex_destroy_ep(glex_ep_handle_t handle)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	glexi_ep_end(ep);
	return GLEX_SUCCESS;
}

glex_ret_t glex_retire_ep(glex_ep_handle_t handle)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	glexi_device_retire_ep(ep->dev, ep);
	return GLEX_SUCCESS;
}

glex_ret_t glex_quiet_ep(glex_ep_handle_t handle)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep)
		return GLEX_INVALID_PARAM;
	atomic_store_explicit(&ep->is_quiet, true, memory_order_relaxed); /* relaxed: nothing comes with it */
	return GLEX_SUCCESS;
}

glex_ret_t glex_query_ep(glex_ep_handle_t handle, struct glex_ep_attr *attr)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep || !attr)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	*attr = ep->attr;
	return GLEX_SUCCESS;
}

glex_ret_t glex_get_ep_addr(glex_ep_handle_t handle, glex_ep_addr_t *addr)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep || !addr)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	*addr = ep->addr;
	return GLEX_SUCCESS;
}

glex_ret_t glex_compose_ep_addr(uint32_t nic_id, uint32_t ep_num, enum glex_ep_type type, glex_ep_addr_t *addr)
{
	if (!addr || ep_num > EP_NUM_MAX || (unsigned)type > GLEX_EP_TYPE_MANAGEMENT)
		return GLEX_INVALID_PARAM;
	addr->v = 0;
	addr->ep_num = (uint16_t)ep_num;
	addr->nic_id = nic_id;
	return GLEX_SUCCESS;
}

glex_ret_t glex_decompose_ep_addr(glex_ep_addr_t addr, enum glex_ep_type type, uint32_t *nic_id, uint32_t *ep_num)
{
	if (!nic_id || !ep_num || (unsigned)type > GLEX_EP_TYPE_MANAGEMENT)
		return GLEX_INVALID_PARAM;
	*nic_id = addr.nic_id;
	*ep_num = addr.ep_num;
	return GLEX_SUCCESS;
}
