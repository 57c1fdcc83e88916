/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.c - memory that peers PUT to and GET from at once, whenever they like, without a word to its owner.
 *
 * Its owner registers it so that all of it is mapped by whoever reaches it, and tells where it is.  What others do
 * there the caller's own processor does, and has done when the call returns: nothing is under way, nothing is to be
 * waited for, and what the caller sends next comes later.  So it is only for endpoints that execute their requests
 * themselves; others (NORMAL, out of order) are told so by glex_inject, and never try again.
 *
 * I1  A window has one region, whose offsets have 32 bits.  A process shows no more of them than its share of the
 *     memory table, so they leave room for what is sent by rendezvous.
 * I2  What a peer's window refuses is not tried again: its description is marked.  Whether the peer is lost, the error
 *     request tells, which is looked at there and then; one that only this process cannot map is no fault of his.
 */
#include "chan_priv.h"

#define GLEXCH_WINDOW_TRIES 64
#define GLEXCH_WINDOW_NEAR  4096u /* bytes that are copied here: longer ones the library copies as fast, or faster */

/* ---- ours ---------------------------------------------------------------- */

/* len 0 in the description: peers have to ask. */
void glexch_window_open(struct glexch *ch, void *mem, uint64_t len, struct glexch_window *window)
{
	glex_mem_handle_t mh;

	memset(window, 0, sizeof(*window));
	if (!len || len > UINT32_MAX || ch->windows >= ch->exposed_max ||
	    glex_register_mem(ch->ep, mem, len, GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_MAPPED, &mh) != GLEX_SUCCESS)
		return;
	ch->windows++;
	window->ep = ch->addr.v;
	window->handle = mh.v;
	window->key = ch->key;
	window->len = (uint32_t)len;
}

void glexch_window_close(struct glexch *ch, struct glexch_window *window)
{
	glex_mem_handle_t mh = {.v = window->handle};

	if (!window->handle)
		return;
	glex_deregister_mem(ch->ep, mh);
	ch->windows--;
	memset(window, 0, sizeof(*window));
}

/* ---- those of others ----------------------------------------------------- */

/* I2.  BUSY: it is none that a later one would not find otherwise. */
static __attribute__((noinline)) void glexch_window_refused(struct glexch *ch, struct glexch_window *peer,
							    glex_ret_t ret)
{
	if (ret == GLEX_BUSY)
		return;
	if (ret == GLEX_NOT_IMPLEMENTED)
		ch->fetches = 0;
	glexch_poll_errors(ch, peer->handle);
	peer->len = 0;
}

static inline void glexch_window_describe(const struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len,
					  struct glex_imm_rdma_req *req)
{
	req->rmt_ep_addr.v = peer->ep;
	req->data = buf;
	req->len = (uint32_t)len;
	req->rmt_mh.v = peer->handle;
	req->rmt_offset = (uint32_t)offset;
	req->rmt_key = peer->key;
	req->flag = 0;
	req->next = NULL;
}

/* Words whole, for somebody may look at one meanwhile. */
static inline void glexch_window_copy(void *to, const void *from, uint64_t len)
{
	switch (len) {
	case 8:
		memcpy(to, from, 8);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	default:
		glexch_copy_some(to, from, len);
	}
}

/* By the way, if that leads there. */
static inline int glexch_window_load(struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len)
{
	const void *at = len <= GLEXCH_WINDOW_NEAR ? glex_get_place(peer->way, (uint32_t)offset, (uint32_t)len) : NULL;

	if (at)
		glexch_window_copy(buf, at, len);
	return at != NULL;
}

static inline int glexch_window_store(struct glexch_window *peer, uint64_t offset, const void *buf, uint64_t len)
{
	void *at = len <= GLEXCH_WINDOW_NEAR ? glex_put_place(peer->way, (uint32_t)offset, (uint32_t)len) : NULL;

	if (at)
		glexch_window_copy(at, buf, len);
	return at != NULL;
}

static int glexch_window_fetch(struct glexch *ch, struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len)
{
	int tries = GLEXCH_WINDOW_TRIES;
	struct glex_imm_rdma_req req;
	glex_ret_t ret;

	glexch_window_describe(peer, offset, buf, len, &req);
	do
		ret = glex_fetch(ch->ep, &req);
	while (ret == GLEX_BUSY && --tries);
	if (ret != GLEX_SUCCESS)
		glexch_window_refused(ch, peer, ret);
	return ret == GLEX_SUCCESS;
}

static int glexch_window_inject(struct glexch *ch, struct glexch_window *peer, uint64_t offset, const void *buf,
				uint64_t len)
{
	int tries = GLEXCH_WINDOW_TRIES;
	struct glex_imm_rdma_req req;
	glex_ret_t ret;

	glexch_window_describe(peer, offset, (void *)(uintptr_t)buf, len, &req);
	do
		ret = glex_inject(ch->ep, &req);
	while (ret == GLEX_BUSY && --tries);
	if (ret == GLEX_SUCCESS && glexch_poll_errors(ch, peer->handle))
		ret = GLEX_ACCESS_ERR;
	if (ret != GLEX_SUCCESS)
		glexch_window_refused(ch, peer, ret);
	return ret == GLEX_SUCCESS;
}

/* The answer to a PUT that is refused is an error request; to a GET, the call's: so one is first.  0: it cannot be. */
static __attribute__((noinline)) int glexch_window_try(struct glexch *ch, struct glexch_window *peer)
{
	glex_ep_addr_t addr = {.v = peer->ep};
	glex_mem_handle_t mh = {.v = peer->handle};
	uint8_t byte;

	return glexch_window_fetch(ch, peer, 0, &byte, sizeof(byte)) &&
	       glex_put_way_open(ch->ep, addr, mh, peer->key, &peer->way) == GLEX_SUCCESS;
}

static inline int glexch_window_has(struct glexch *ch, struct glexch_window *peer, uint64_t offset, uint64_t len)
{
	return ch->fetches && offset <= peer->len && len <= peer->len - offset && len <= ch->max_rdma &&
	       (peer->way || glexch_window_try(ch, peer));
}

int glexch_window_get(struct glexch *ch, struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len)
{
	if (!glexch_window_has(ch, peer, offset, len))
		return 0;
	return glexch_window_load(peer, offset, buf, len) || glexch_window_fetch(ch, peer, offset, buf, len);
}

int glexch_window_put(struct glexch *ch, struct glexch_window *peer, uint64_t offset, const void *buf, uint64_t len)
{
	if (!glexch_window_has(ch, peer, offset, len))
		return 0;
	return glexch_window_store(peer, offset, buf, len) || glexch_window_inject(ch, peer, offset, buf, len);
}

void glexch_window_forget(struct glexch_window *peer)
{
	glex_put_way_close(peer->way);
	peer->way = NULL;
}
