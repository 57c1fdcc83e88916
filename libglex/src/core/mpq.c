/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpq.c - receiving mini-packets.
 *
 *        R            P        (glex.h has the rules)
 *   | x | probed ...  | new ... |
 *
 * An empty poll reads the next slot's seq and the queue's own words, takes no
 * lock and makes no call.
 *
 * Of the cache lines that it touches, one travels: that of the slot.  It is taken from
 * the sender who has written it, and by every poll before he has, so that he must
 * take it back; a second one with more than EMU_MP_NEAR bytes of payload.  head of the
 * ring is written at each discard, and read by a sender once a lap; read, probe, empty
 * and the lock are this process's, in the endpoint.  The sender's side: fast.h.
 */
#include "core/priv.h"

#include <string.h>

#define FLAGS_AT offsetof(struct emu_mp_slot, flags)

static void store_probe(struct glexi_queue *queue, uint32_t index)
{
	atomic_store_explicit(&queue->probe, index, memory_order_relaxed); /* relaxed: under the lock */
}

static uint32_t load_probe(const struct glexi_queue *queue)
{
	return atomic_load_explicit(&queue->probe, memory_order_relaxed); /* relaxed: under the lock, or a peek */
}

/* Where a caller wants an MP: its address by probe, its bytes by receive. */
struct mp_out {
	glex_ep_addr_t *src; /* may be NULL */
	void **data;
	void *buffer;
	uint32_t *len;
};

static void show(const struct emu_mp_slot *slot, const struct mp_out *out)
{
	if (out->src)
		out->src->v = slot->src;
	*out->len = slot->len;
}

/* Looks at the first MP at or after R (or P); true with the outputs set and P behind it. */
GLEXI_INLINE bool probe(struct glexi_queue *queue, bool first, const struct mp_out *out)
{
	struct emu_mp_slot *slot;
	uint32_t at;
	bool locked;

	locked = glexi_lock(&queue->lock);
	slot = glexi_queue_next(queue, first ? glexi_queue_read(queue) : load_probe(queue), FLAGS_AT, &at);
	if (slot) {
		show(slot, out);
		*out->data = slot->data;
		glexi_queue_probed(queue, first, at);
	}
	glexi_unlock(&queue->lock, locked);
	return slot != NULL;
}

GLEXI_INLINE bool probe_first(struct glexi_queue *queue, void *out)
{
	return probe(queue, true, out);
}

GLEXI_INLINE bool receive(struct glexi_queue *queue, void *arg)
{
	const struct mp_out *out = arg;
	struct emu_mp_slot *slot;
	uint32_t at, read;
	bool locked;

	locked = glexi_lock(&queue->lock);
	read = glexi_queue_read(queue);
	slot = glexi_queue_next(queue, read, FLAGS_AT, &at);
	if (slot) {
		show(slot, out);
		if (slot->len)
			memcpy(out->buffer, slot->data, slot->len);
		if ((int32_t)(load_probe(queue) - (at + 1)) < 0) {
			store_probe(queue, at + 1);
			queue->dead = 0;
		} else {
			queue->dead -= at - read;
		}
		atomic_store_explicit(&queue->read, at + 1, memory_order_relaxed); /* relaxed: under the lock */
		emu_ring_release(&queue->ring, at + 1);
		glexi_count(queue->taken, 1);
	}
	glexi_unlock(&queue->lock, locked);
	return slot != NULL;
}

glex_ret_t glex_probe_first_mp(glex_ep_handle_t handle, int32_t timeout, glex_ep_addr_t *src, void **data,
			       uint32_t *len)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	struct mp_out out = {.src = src, .data = data, .len = len};

	if (GLEXI_UNLIKELY(!ep || !data || !len))
		return GLEX_INVALID_PARAM;
	return glexi_queue_take(ep, &ep->mpq, timeout, GLEX_NO_MP, probe_first, &out);
}

/* There may be one.  Apart, so that an empty poll saves no registers. */
static __attribute__((noinline)) glex_ret_t probe_next(struct glexi_ep *ep, const struct mp_out *out)
{
	glexi_want_answer(ep);
	return probe(&ep->mpq, false, out) ? GLEX_SUCCESS : glexi_queue_empty(ep, &ep->mpq, GLEX_NO_MP);
}

glex_ret_t glex_probe_next_mp(glex_ep_handle_t handle, glex_ep_addr_t *src, void **data, uint32_t *len)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (GLEXI_UNLIKELY(!ep || !data || !len))
		return GLEX_INVALID_PARAM;
	if (GLEXI_LIKELY(!glexi_queue_has(&ep->mpq, load_probe(&ep->mpq))))
		return glexi_queue_empty(ep, &ep->mpq, GLEX_NO_MP);
	return probe_next(ep, &(struct mp_out){.src = src, .data = data, .len = len});
}

glex_ret_t glex_discard_probed_mp(glex_ep_handle_t handle)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!ep)
		return GLEX_INVALID_PARAM;
	return glexi_queue_discard(ep, &ep->mpq);
}

EMU_TOGETHER glex_ret_t glex_receive_mp(glex_ep_handle_t handle, int32_t timeout, glex_ep_addr_t *src, void *data,
					uint32_t *len)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	struct mp_out out = {.src = src, .buffer = data, .len = len};

	if (GLEXI_UNLIKELY(!ep || !data || !len))
		return GLEX_INVALID_PARAM;
	return glexi_queue_take(ep, &ep->mpq, timeout, GLEX_NO_MP, receive, &out);
}
