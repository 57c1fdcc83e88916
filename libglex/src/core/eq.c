/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eq.c - receiving events; as mpq.c, with 16 bytes that stay in the queue.
 *
 * Two events share a cache line, so of a stream of them half as many lines travel as
 * of mini-packets, and a poll may take a line from the sender of which only the other
 * half is for now.  Otherwise as there.
 */
#include "core/priv.h"

#define FLAGS_AT offsetof(struct emu_event_slot, flags)

static uint32_t load_probe(const struct glexi_queue *queue)
{
	return atomic_load_explicit(&queue->probe, memory_order_relaxed); /* relaxed: under the lock, or a peek */
}

GLEXI_INLINE bool probe(struct glexi_queue *queue, bool first, glex_event_t **event)
{
	struct emu_event_slot *slot;
	uint32_t at;
	bool locked;

	locked = glexi_lock(&queue->lock);
	slot = glexi_queue_next(queue, first ? glexi_queue_read(queue) : load_probe(queue), FLAGS_AT, &at);
	if (slot) {
		*event = (glex_event_t *)(void *)slot->cookie;
		glexi_queue_probed(queue, first, at);
	}
	glexi_unlock(&queue->lock, locked);
	return slot != NULL;
}

GLEXI_INLINE bool probe_first(struct glexi_queue *queue, void *out)
{
	return probe(queue, true, out);
}

glex_ret_t glex_probe_first_event(glex_ep_handle_t handle, int32_t timeout, glex_event_t **event)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (GLEXI_UNLIKELY(!ep || !event))
		return GLEX_INVALID_PARAM;
	return glexi_queue_take(ep, &ep->eq, timeout, GLEX_NO_EVENT, probe_first, event);
}

glex_ret_t glex_probe_next_event(glex_ep_handle_t handle, glex_event_t **event)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (GLEXI_UNLIKELY(!ep || !event))
		return GLEX_INVALID_PARAM;
	if (!glexi_queue_has(&ep->eq, load_probe(&ep->eq)) || !probe(&ep->eq, false, event))
		return glexi_queue_empty(ep, &ep->eq, GLEX_NO_EVENT);
	return GLEX_SUCCESS;
}

glex_ret_t glex_discard_probed_event(glex_ep_handle_t handle)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep)
		return GLEX_INVALID_PARAM;
	return glexi_queue_discard(ep, &ep->eq);
}
