/* SPDX-License-Identifier: BSD-2-Clause */
/* intr.c - being woken by a descriptor, and what one is told beside MPs and events. */
#include "core/priv.h"

#define LIST_MAX 4096u

static_assert((int)GLEX_INTR_LOCAL == EMU_INTR_LOCAL && (int)GLEX_INTR_PEER_DEAD == EMU_INTR_PEER_DEAD, "the same");
static_assert((int)GLEX_BAD_HANDLE == EMU_BAD_HANDLE && (int)GLEX_BAD_EQ_FULL == EMU_BAD_EQ_FULL, "the same");

glex_ret_t glex_ep_fd(glex_ep_handle_t handle, int *fd_p)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep || !fd_p)
		return GLEX_INVALID_PARAM;
	if (glexi_device_check(ep->dev) != GLEX_SUCCESS)
		return GLEX_SYS_ERR;
	return ep->dev->ops->ep_fd(ep, fd_p);
}

/* Is there something that has not been probed? */
static bool has_new(struct glexi_queue *queue, size_t flags_at)
{
	uint32_t probe, at;
	bool locked;
	void *slot;

	locked = glexi_lock(&queue->lock);
	probe = atomic_load_explicit(&queue->probe, memory_order_relaxed); /* relaxed: under the lock */
	slot = glexi_queue_find(queue, probe, flags_at, &at);
	glexi_unlock(&queue->lock, locked);
	return slot != NULL;
}

glex_ret_t glex_ep_arm(glex_ep_handle_t handle, uint32_t what)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	glex_ret_t ret;

	if (!ep || (what & ~(uint32_t)(GLEX_ARM_MP | GLEX_ARM_EVENT)))
		return GLEX_INVALID_PARAM;
	if (glexi_device_check(ep->dev) != GLEX_SUCCESS)
		return GLEX_SYS_ERR;
	ret = ep->dev->ops->ep_arm(ep, what);
	if (ret != GLEX_SUCCESS)
		return ret;
	if ((what & GLEX_ARM_MP && has_new(&ep->mpq, offsetof(struct emu_mp_slot, flags))) ||
	    (what & GLEX_ARM_EVENT && has_new(&ep->eq, offsetof(struct emu_event_slot, flags)))) {
		ep->dev->ops->ep_arm(ep, 0);
		return GLEX_BUSY;
	}
	return GLEX_SUCCESS;
}

static void take_intr(const void *from, void *list, uint32_t n)
{
	const struct emu_intr_slot *slot = from;
	struct glex_intr *intr = (struct glex_intr *)list + n;

	*intr = (struct glex_intr){.field_mask = GLEX_INTR_FIELDS, .cause = (enum glex_intr_cause)slot->cause};
	intr->peer.v = slot->peer;
}

static void take_bad(const void *from, void *list, uint32_t n)
{
	const struct emu_bad_slot *slot = from;
	struct glex_bad_packet *bad = (struct glex_bad_packet *)list + n;

	*bad = (struct glex_bad_packet){
		.field_mask = GLEX_BAD_PACKET_FIELDS,
		.op = (enum glex_err_req_op)slot->op,
		.cause = (enum glex_bad_cause)slot->cause,
		.offset = slot->offset,
		.len = slot->len,
		.key = slot->key,
	};
	bad->src.v = slot->src;
	bad->mh.v = slot->handle;
}

static glex_ret_t take(struct glexi_ep *ep, struct glexi_queue *queue, uint32_t *num, size_t flags_at,
		       glexi_record_fn record, void *list, uint32_t *lost_p)
{
	bool locked;

	if (*num == 0 || *num > LIST_MAX)
		return GLEX_INVALID_PARAM;
	locked = glexi_lock(&queue->lock);
	*num = glexi_queue_drain(queue, *num, flags_at, record, list);
	glexi_unlock(&queue->lock, locked);
	if (lost_p)
		*lost_p = atomic_load_explicit(&queue->ring.ctl->lost, memory_order_relaxed); /* relaxed: counter */
	return *num ? GLEX_SUCCESS : glexi_device_check(ep->dev);
}

glex_ret_t glex_ep_poll_intr(glex_ep_handle_t handle, uint32_t *num, struct glex_intr *list, uint32_t *lost_p)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep || !num || !list)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	ep->dev->ops->ep_fd_clear(ep); /* first: what comes from now on makes it readable again */
	return take(ep, &ep->intq, num, offsetof(struct emu_intr_slot, flags), take_intr, list, lost_p);
}

glex_ret_t glex_ep_poll_bad_packet(glex_ep_handle_t handle, uint32_t *num, struct glex_bad_packet *list,
				   uint32_t *lost_p)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep || !num || !list)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	return take(ep, &ep->epq, num, offsetof(struct emu_bad_slot, flags), take_bad, list, lost_p);
}
