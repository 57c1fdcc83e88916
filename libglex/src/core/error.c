/* SPDX-License-Identifier: BSD-2-Clause */
/* error.c - requests that came to nothing after they had been accepted. */
#include "core/priv.h"

#define FLAGS_AT offsetof(struct emu_err_slot, flags)
#define LIST_MAX 4096u /* a larger capacity is an uninitialised word of the caller's */

static uint32_t pending(struct glexi_queue *queue)
{
	uint32_t n = 0, at = glexi_queue_read(queue);

	while (glexi_queue_find(queue, at, FLAGS_AT, &at)) {
		n++;
		at++;
	}
	return n;
}

static void take(const void *from, void *list, uint32_t n)
{
	const struct emu_err_slot *slot = from;
	struct glex_err_req *req = (struct glex_err_req *)list + n;

	req->op = (enum glex_err_req_op)slot->op;
	req->status = (enum glex_err_req_status)slot->status;
	req->rmt_nic_id = slot->rmt_nic_id;
	req->rmt_ep_num = slot->rmt_ep_num;
	req->data0 = slot->data[0];
	req->data1 = slot->data[1];
	req->data2 = slot->data[2];
}

uint32_t glexi_queue_drain(struct glexi_queue *queue, uint32_t room, size_t flags_at, glexi_record_fn record,
			   void *list)
{
	uint32_t n = 0, at, read = glexi_queue_read(queue);
	const void *slot;

	while (n < room && (slot = glexi_queue_find(queue, read, flags_at, &at))) {
		record(slot, list, n++);
		read = at + 1;
	}
	if (n) {
		atomic_store_explicit(&queue->read, read, memory_order_relaxed);  /* relaxed: under the lock */
		atomic_store_explicit(&queue->probe, read, memory_order_relaxed); /* relaxed: under the lock */
		emu_ring_release(&queue->ring, read);
	}
	return n;
}

glex_ret_t glex_poll_error_req(glex_ep_handle_t handle, uint32_t *num, struct glex_err_req *list)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	uint32_t room;
	bool locked;

	if (!ep || !num)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	room = *num;
	if (!glexi_queue_has(&ep->err, glexi_queue_read(&ep->err))) {
		*num = 0;
		return GLEX_SUCCESS;
	}
	if (room != 0 && room <= LIST_MAX && !list)
		return GLEX_INVALID_PARAM;
	locked = glexi_lock(&ep->err.lock);
	*num = room == 0 || room > LIST_MAX ? pending(&ep->err)
					    : glexi_queue_drain(&ep->err, room, FLAGS_AT, take, list);
	glexi_unlock(&ep->err.lock, locked);
	return GLEX_SUCCESS;
}
