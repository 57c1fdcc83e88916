/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seq.c - the order of the stream at the receiver.
 *
 * Every packet of a connection but credit MPs has a number; what arrives early,
 * or must wait for a block, is kept in a list sorted by it:
 *
 *      rx_seq = 7      conn->rx: [7 FETCHING] -> [8 READY] -> [10 READY]
 *                                 when 7 is filled: 7 and 8 are delivered, 10 waits for 9
 *
 * The packet in order with nothing before it goes straight from the MPQ to the
 * user (sr.c) and never comes here.
 *
 * I1  Packets are delivered in order, each once, and one at a time: a round
 *     inside a data callback adds to the list of that connection but does not
 *     deliver from it.
 * I2  A packet leaves the list before it is delivered: whatever the callback
 *     does, nobody finds it twice.
 * I3  The list of a connection is no longer than the grant of its peer, and
 *     none of it is further ahead than GLEXCH_AHEAD.
 */
#include "chan_priv.h"

#include <stdlib.h>

static struct glexch_rx *glexch_seq_alloc(struct glexch *ch)
{
	struct glexch_rx *rx = ch->rx_free;

	if (!rx)
		return malloc(sizeof(*rx));
	ch->rx_free = rx->next;
	return rx;
}

/* Frees a packet and its block, if it has one. */
void glexch_seq_release(struct glexch *ch, struct glexch_rx *rx)
{
	if (rx->block != GLEXCH_NONE)
		glexch_block_put(&ch->rx, rx->block);
	rx->next = ch->rx_free;
	ch->rx_free = rx;
}

/* Where seq belongs in the list; NULL: it is there already. */
static struct glexch_rx **glexch_seq_place(struct glexch_conn *conn, uint16_t seq)
{
	struct glexch_rx **p = &conn->rx;
	uint16_t ahead = (uint16_t)(seq - conn->rx_seq);

	while (*p && (uint16_t)((*p)->mp.hdr.seq - conn->rx_seq) < ahead)
		p = &(*p)->next;
	return *p && (*p)->mp.hdr.seq == seq ? NULL : p;
}

/* Some packet before the place p is still to come. */
static int glexch_seq_gap(const struct glexch_conn *conn, struct glexch_rx *const *p, uint16_t seq)
{
	uint16_t next = conn->rx_seq;
	const struct glexch_rx *rx;

	for (rx = conn->rx; rx != *p; rx = rx->next)
		next++;
	return next != seq;
}

/* Keeps a copy of a packet.  0: it cannot be: seen before, out of any window, or no memory. */
int glexch_seq_insert(struct glexch_conn *conn, const struct glexch_mp *mp, uint32_t body_len)
{
	struct glexch_rx **p;
	struct glexch_rx *rx;

	if ((uint16_t)(mp->hdr.seq - conn->rx_seq) > GLEXCH_AHEAD) /* I3 */
		return 0;
	p = glexch_seq_place(conn, mp->hdr.seq);
	rx = p ? glexch_seq_alloc(conn->ch) : NULL;
	if (!rx)
		return 0;
	conn->ch->stats.reordered += (uint64_t)glexch_seq_gap(conn, p, mp->hdr.seq);
	memcpy(&rx->mp, mp, sizeof(mp->hdr) + body_len);
	rx->body_len = body_len;
	rx->conn = conn;
	rx->block = GLEXCH_NONE;
	rx->state = GLEXCH_RX_READY;
	rx->next = *p;
	*p = rx;
	if ((mp->hdr.type & GLEXCH_MP_TYPE) == GLEXCH_MP_BLOCK)
		glexch_block_want(conn->ch, rx);
	return 1;
}

static void glexch_seq_block(struct glexch_conn *conn, struct glexch_rx *rx)
{
	struct glexch *ch = conn->ch;

	if (rx->body_len > GLEXCH_BLOCK_FIXED)
		ch->ops->data(conn, rx->mp.u.block.inl, rx->body_len - GLEXCH_BLOCK_FIXED);
	if (!(conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED)))
		ch->ops->data(conn, glexch_block_mem(ch, &ch->rx, rx->block), rx->mp.u.block.len);
}

static void glexch_seq_hand_over(struct glexch_conn *conn, struct glexch_rx *rx)
{
	switch (rx->mp.hdr.type & GLEXCH_MP_TYPE) {
	case GLEXCH_MP_DATA:
	case GLEXCH_MP_SHORT:
	case GLEXCH_MP_SPLIT:
		glexch_sr_hand_over(conn, &rx->mp, rx->body_len);
		break;
	case GLEXCH_MP_BLOCK:
		glexch_seq_block(conn, rx);
		break;
	case GLEXCH_MP_LENT:
		glexch_lend_begin(conn, &rx->mp.u.block, rx->body_len - (uint32_t)GLEXCH_BLOCK_FIXED);
		break;
	case GLEXCH_MP_ASK:
		glexch_say(conn, GLEXCH_SAY_GIVE);
		break;
	case GLEXCH_MP_ER:
		glexch_er_hear(conn, &rx->mp.u.er);
		break;
	case GLEXCH_MP_GIVE:
		if (!glexch_credit_given(conn, rx->mp.u.given))
			glexch_conn_fail(conn, "it gives back more credits than it has");
		break;
	case GLEXCH_MP_HOLD:
		if (conn->ch->ops->held)
			conn->ch->ops->held(conn, rx->mp.u.given);
		break;
	default: /* HELLO: the connection knows it already */
		break;
	}
}

/* What must come first has come.  0: not yet, or never. */
static int glexch_seq_admits(struct glexch_conn *conn, const struct glexch_rx *rx)
{
	if ((rx->mp.hdr.type & GLEXCH_MP_TYPE) == GLEXCH_MP_HELLO)
		return glexch_conn_greet(conn, &rx->mp.u.hello); /* 0: nobody wants it yet: glexch_seq_retry */
	if (conn->bound)
		return 1;
	glexch_conn_fail(conn, "its first packet does not say who it is");
	return 0;
}

/* Delivers what is in order and complete. */
void glexch_seq_deliver(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_rx *rx;

	if (conn->delivering) /* I1 */
		return;
	conn->delivering = 1;
	while (!conn->paused && (rx = conn->rx) && rx->mp.hdr.seq == conn->rx_seq && rx->state == GLEXCH_RX_READY) {
		if (!glexch_seq_admits(conn, rx))
			break;
		conn->rx = rx->next; /* I2 */
		conn->rx_seq++;
		glexch_seq_hand_over(conn, rx);
		glexch_seq_release(ch, rx);
		if (conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED))
			break;
		glexch_credit_owe(conn);
	}
	conn->delivering = conn->paused; /* until glexch_borrowed_end */
	glexch_block_feed(ch);
}

/* Asks again for connections that could not be placed. */
void glexch_seq_retry(struct glexch *ch)
{
	uint32_t i, conns = ch->conns;
	struct glexch_conn *conn;

	for (i = 0; i <= ch->hash_mask; i++) {
		for (conn = ch->hash[i]; conn; conn = conn->hash_next) {
			if (conn->bound || !conn->rx)
				continue;
			glexch_seq_deliver(conn);
			if (ch->conns != conns)
				return; /* the callback changed the table: go on in the next round */
		}
	}
}

/* The connection is gone, and with it what it waited for. */
void glexch_seq_drop(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_rx *rx;

	while ((rx = conn->rx)) {
		conn->rx = rx->next;
		rx->conn = NULL;
		if (rx->state == GLEXCH_RX_READY)
			glexch_seq_release(ch, rx);
		/* the others are released by block.c: when the GET ends, or at their turn for a block */
	}
}

void glexch_seq_free_all(struct glexch *ch)
{
	struct glexch_rx *rx;

	while ((rx = ch->rx_free)) {
		ch->rx_free = rx->next;
		free(rx);
	}
}
