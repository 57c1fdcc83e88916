/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block.c - the pool of registered blocks and the GETs between them.
 *
 *      sender                                receiver
 *      take, copy in, MP {handle, offset,
 *      length, index, generation}  ------->  wants; takes a block; GET
 *      freed <----- remote event ----------  fetched <--- local event
 *                                            delivered in order; put
 *
 * One that is in order and finds the place of its bytes known needs no block here: it
 * is fetched there and then (glexch_block_place).
 *
 * Half of the pool is for sending, half for receiving, so that neither can
 * starve the other.  The free ones lie on a stack: the block used last is the
 * one still in the cache.
 *
 * I1  A block's generation is odd while it is in use and changes at every take
 *     and put.  An event names it, so one that comes late or is made up changes nothing.
 * I2  The last free receive block goes only to who returns it without needing another:
 *     a packet that is next in a stream which goes on, for it is delivered as soon as its
 *     GET is done; or a piece of a get that cannot register its place (rndv.c), for that is
 *     copied out of it.  What has overtaken others, or is behind a loan (lend.c, I4), may keep
 *     its block until those have come: however many it keeps, the last one always
 *     comes back, and both those packets and the loan come through it.
 * I3  Packets and gets have turns with it.  A get that finds no block while none of its
 *     kind has one is `hungry`: packets leave one more until it has had it.  One that has
 *     one leaves the last to packets.  So neither keeps the other out for ever, not even
 *     with two blocks in all; and of several gets the first in the list ends first.
 * I4  Events never overflow: at most one of each kind is under way for each block.
 */
#include "chan_priv.h"

#include <glex_ext.h>
#include <stdlib.h>

static glex_ret_t glexch_blocks_make(struct glexch_blocks *set, uint32_t count, uint32_t offset)
{
	uint32_t i;

	set->tab = calloc(count, sizeof(*set->tab));
	set->stack = calloc(count, sizeof(*set->stack));
	if (!set->tab || !set->stack)
		return GLEX_NO_MEM_RESOURCE;
	set->count = count;
	set->free = count;
	set->offset = offset;
	for (i = 0; i < count; i++)
		set->stack[i] = count - 1 - i;
	return GLEX_SUCCESS;
}

glex_ret_t glexch_blocks_open(struct glexch *ch, uint32_t blocks, uint32_t block_size)
{
	uint32_t half = blocks / 2;
	uint64_t bytes = (uint64_t)half * 2 * block_size;
	/* What is taken is what was put back last: most jobs never come to most of them, and all wait for Init. */
	const struct glex_alloc_attr lazily = {.field_mask = GLEX_ALLOC_ATTR_UNTOUCHED, .untouched = 1};
	void *mem;
	glex_ret_t ret;

	ch->block_size = block_size;
	ret = glexch_blocks_make(&ch->tx, half, 0);
	if (ret == GLEX_SUCCESS)
		ret = glexch_blocks_make(&ch->rx, half, half * block_size);
	if (ret == GLEX_SUCCESS)
		ret = glex_alloc_with(ch->dev, bytes, &lazily, &mem);
	if (ret != GLEX_SUCCESS)
		return ret;
	ch->pool = mem;
	return glex_register_mem(ch->ep, mem, bytes, GLEX_MEM_READ, &ch->pool_mh);
}

/* The endpoint is gone, and the registration with it: who was still executing its requests needed both. */
void glexch_blocks_close(struct glexch *ch)
{
	if (ch->pool)
		glex_free(ch->dev, ch->pool);
	free(ch->tx.tab);
	free(ch->tx.stack);
	free(ch->rx.tab);
	free(ch->rx.stack);
}

uint32_t glexch_block_take(struct glexch_blocks *set)
{
	uint32_t index;

	if (!set->free)
		return GLEXCH_NONE;
	index = set->stack[--set->free];
	set->tab[index].gen++; /* I1 */
	return index;
}

void glexch_block_put(struct glexch_blocks *set, uint32_t index)
{
	struct glexch_block *b = &set->tab[index];

	b->gen++; /* I1 */
	b->conn = NULL;
	b->rx = NULL;
	set->stack[set->free++] = index;
}

/* ---- receiving ----------------------------------------------------------- */

/* Posts the GET for a packet.  GLEX_BUSY: later. */
static glex_ret_t glexch_block_fetch(struct glexch *ch, struct glexch_rx *rx)
{
	const struct glexch_block_ref *ref = &rx->mp.u.block;
	uint32_t index = glexch_block_take(&ch->rx);
	struct glex_rdma_req req = {0};
	glex_ret_t ret;

	req.rmt_ep_addr.v = rx->conn->peer;
	req.local_mh = ch->pool_mh;
	req.local_offset = glexch_block_offset(ch, &ch->rx, index);
	req.len = ref->len;
	req.rmt_mh.v = ref->handle;
	req.rmt_offset = ref->offset;
	req.type = GLEX_RDMA_TYPE_GET;
	req.local_evt.cookie_0 = ch->rx.tab[index].gen;
	req.local_evt.cookie_1 = (uint64_t)index << 8 | GLEXCH_EV_FETCHED;
	req.rmt_evt.cookie_0 = ref->gen;
	req.rmt_evt.cookie_1 = (uint64_t)ref->index << 8 | GLEXCH_EV_FREED;
	req.rmt_key = rx->conn->key;
	req.flag = GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT;
	ret = glex_rdma(ch->ep, &req, NULL);
	if (ret != GLEX_SUCCESS) {
		glexch_block_put(&ch->rx, index);
		return ret;
	}
	ch->rx.tab[index].rx = rx;
	rx->block = index;
	rx->state = GLEXCH_RX_FETCHING;
	return GLEX_SUCCESS;
}

/*
 * A packet that is in order and has nothing before it: its block straight to where the
 * user wants it, and no block of ours is needed.  0: it must wait for one; what it had
 * in itself has been handed over all the same.
 */
int glexch_block_place(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t *body_len)
{
	const struct glexch_block_ref *ref = &mp->u.block;
	struct glex_imm_rdma_req req = {0};
	struct glexch *ch = conn->ch;
	glex_ret_t ret;

	if (*body_len > GLEXCH_BLOCK_FIXED)
		ch->ops->data(conn, mp->u.block.inl, *body_len - GLEXCH_BLOCK_FIXED);
	*body_len = GLEXCH_BLOCK_FIXED;
	if (conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED))
		return 0;
	req.data = ch->ops->place(conn, ref->len);
	if (!req.data)
		return 0;
	req.rmt_ep_addr.v = conn->peer;
	req.len = ref->len;
	req.rmt_mh.v = ref->handle;
	req.rmt_offset = ref->offset;
	req.rmt_evt.cookie_0 = ref->gen;
	req.rmt_evt.cookie_1 = (uint64_t)ref->index << 8 | GLEXCH_EV_FREED;
	req.rmt_key = conn->key;
	req.flag = GLEX_FLAG_REMOTE_EVT;
	ret = glex_fetch(ch->ep, &req);
	if (ret == GLEX_NOT_IMPLEMENTED)
		ch->fetches = 0;
	if (ret != GLEX_SUCCESS)
		return 0;
	ch->ops->placed(conn, ref->len);
	return 1;
}

/* Its GET is all that it would wait for (I2). */
static int glexch_block_is_next(const struct glexch_rx *rx)
{
	return rx->mp.hdr.seq == rx->conn->rx_seq && !rx->conn->paused;
}

/* The packet whose turn it is for a block (I2). */
static struct glexch_rx **glexch_block_next(struct glexch *ch)
{
	uint32_t kept = ch->gets && ch->hungry; /* I3 */
	struct glexch_rx **p;

	for (p = &ch->wants; *p; p = &(*p)->wnext) {
		struct glexch_conn *conn = (*p)->conn;

		if (!conn)
			return p; /* needs none any more */
		if (!conn->bound || ch->rx.free <= kept)
			continue; /* before its hello the key of the peer is not known */
		if (ch->rx.free > kept + 1 || glexch_block_is_next(*p))
			return p;
	}
	return NULL;
}

/* Starts GETs for waiting packets as far as blocks and the network allow. */
void glexch_block_feed(struct glexch *ch)
{
	struct glexch_rx **p;

	while (ch->wants && (p = glexch_block_next(ch))) {
		struct glexch_rx *rx = *p;
		glex_ret_t ret = GLEX_INVALID_PARAM;

		if (rx->conn)
			ret = glexch_block_fetch(ch, rx);
		if (ret == GLEX_BUSY)
			break; /* the next round comes back */
		*p = rx->wnext;
		if (!*p)
			ch->wants_tail = p;
		if (!rx->conn) {
			glexch_seq_release(ch, rx);
		} else if (ret != GLEX_SUCCESS) {
			rx->state = GLEXCH_RX_READY; /* to be dropped with the connection */
			glexch_conn_fail(rx->conn, glex_error_str(ret));
		}
	}
}

void glexch_block_want(struct glexch *ch, struct glexch_rx *rx)
{
	rx->state = GLEXCH_RX_WANTS_BLOCK;
	rx->wnext = NULL;
	*ch->wants_tail = rx;
	ch->wants_tail = &rx->wnext;
	glexch_block_feed(ch);
}

/* Local event: the data of a packet has arrived. */
void glexch_block_fetched(struct glexch *ch, uint32_t index, uint32_t gen)
{
	struct glexch_rx *rx;

	if (index >= ch->rx.count || ch->rx.tab[index].gen != gen || !ch->rx.tab[index].rx) /* I1 */
		return;
	rx = ch->rx.tab[index].rx;
	rx->state = GLEXCH_RX_READY;
	if (rx->conn)
		glexch_seq_deliver(rx->conn);
	else
		glexch_seq_release(ch, rx);
}

/* ---- sending ------------------------------------------------------------- */

/* Remote event: the receiver has read a block. */
void glexch_block_freed(struct glexch *ch, uint32_t index, uint32_t gen)
{
	if (index < ch->tx.count && ch->tx.tab[index].gen == gen && (gen & 1)) /* I1 */
		glexch_block_put(&ch->tx, index);
}

/* ---- end of a connection ------------------------------------------------- */

/*
 * Before glexch_seq_drop.  reclaim: the peer is dead and no event will come, so
 * its blocks are free now; otherwise they become free with their events.
 */
void glexch_block_forget(struct glexch_conn *conn, int reclaim)
{
	struct glexch *ch = conn->ch;
	uint32_t i;

	for (i = 0; i < ch->tx.count; i++) {
		if (ch->tx.tab[i].conn != conn)
			continue;
		ch->tx.tab[i].conn = NULL;
		if (reclaim)
			glexch_block_put(&ch->tx, i);
	}
	for (i = 0; reclaim && i < ch->rx.count; i++) {
		struct glexch_rx *rx = ch->rx.tab[i].rx;

		if (rx && rx->conn == conn && rx->state == GLEXCH_RX_FETCHING)
			rx->state = GLEXCH_RX_READY;
	}
}
