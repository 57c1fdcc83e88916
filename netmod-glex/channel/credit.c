/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credit.c - who may send how many MPs, so that the MPQ cannot overflow.
 *
 * A credit is the right to have one sequenced MP under way to a peer.  The
 * credits of one direction are constant in number once granted:
 *
 *      sender: credits --- MP ---> receiver's MPQ --- delivered ---> owed
 *         ^                                                           |
 *         +------------ in any MP back, or in a credit MP ------------+
 *
 * Start: a process counted when the channel was opened begins with start_grant
 * credits without any exchange, any other with GLEXCH_START_FOREIGN.  At first
 * contact the receiver raises the grant to full_grant if its MPQ has slots
 * promised to nobody (mpq_pool); the raise travels like credits returned.
 *
 * I1  Slots promised: for each peer its grant and one, for the rounds in
 *     progress GLEXCH_NESTED_MPS + GLEXCH_BATCH.  Their sum never exceeds the MPQ.
 * I2  A credit MP needs no credit, yet only one a peer can be in the MPQ: it is
 *     sent when more than half of all the credits of that direction are owed,
 *     and those in an unread credit MP are not.
 * I3  A sender without credits gets some: then all are owed, which is more than
 *     half, or under way, and will be owed.  (All MPs are delivered at last:
 *     seq.c and block.c never wait for a credit.)
 * I4  grant <= 255: what is owed fits into the header of one MP.
 * I5  A credit MP goes only to a peer that has spoken on this connection, so it
 *     is never the first thing a peer hears of it.
 */
#include "chan_priv.h"

static uint32_t glexch_threshold(const struct glexch_conn *conn)
{
	return conn->grant / 2u + 1;
}

static uint32_t glexch_pow2(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p *= 2;
	return (uint32_t)p;
}

/* Chooses the grants; returns the MPQ capacity they need. */
uint32_t glexch_credit_plan(struct glexch *ch, uint32_t peers, uint32_t credits, const struct glex_device_attr *attr)
{
	uint64_t fixed = GLEXCH_NESTED_MPS + GLEXCH_BATCH + (uint64_t)GLEXCH_FOREIGN_MAX * (GLEXCH_START_FOREIGN + 1);
	uint64_t promised = fixed + (uint64_t)peers * (credits + 1);
	uint64_t def = attr->def_ep_mpq_capacity;
	uint64_t most = attr->max_ep_hc_mpq_capacity > attr->max_ep_mpq_capacity ? attr->max_ep_hc_mpq_capacity
										 : attr->max_ep_mpq_capacity;
	uint64_t cap;

	ch->full_grant = credits;
	ch->start_grant = credits;
	cap = promised;
	if (promised > def) { /* many peers: most of them will hardly speak */
		ch->start_grant = 1;
		promised = fixed + (uint64_t)peers * 2;
		cap = promised + def;
	}
	cap = glexch_pow2(cap > def ? cap : def);
	if (cap > most)
		cap = most;
	ch->mpq_pool = cap > promised ? (uint32_t)(cap - promised) : 0;
	return (uint32_t)cap;
}

/* First contact: what the peer counts on, and more if there is room. */
void glexch_credit_open(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	uint32_t start = conn->counted ? ch->start_grant : GLEXCH_START_FOREIGN;
	uint32_t raise = ch->full_grant > start ? ch->full_grant - start : 0;

	if (raise > ch->mpq_pool)
		raise = ch->mpq_pool;
	ch->mpq_pool -= raise; /* I1 */
	conn->grant = (uint16_t)(start + raise);
	conn->owed = (uint16_t)(conn->owed + raise);
}

void glexch_credit_close(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	uint32_t start = conn->counted ? ch->start_grant : GLEXCH_START_FOREIGN;
	struct glexch_conn **p;

	if (conn->grant > start)
		ch->mpq_pool += conn->grant - start;
	conn->grant = 0;
	if (!conn->owing)
		return;
	for (p = &ch->owing; *p != conn; p = &(*p)->owing_next)
		;
	*p = conn->owing_next;
	conn->owing = 0;
}

/* A sequenced MP has been delivered. */
void glexch_credit_owe(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;

	conn->owed++;
	if (conn->owed < glexch_threshold(conn) || conn->owing || conn->draining)
		return;
	conn->owing = 1;
	conn->owing_next = ch->owing;
	ch->owing = conn;
}

static glex_ret_t glexch_credit_send(struct glexch_conn *conn)
{
	struct glexch_mp mp;
	uint16_t owed = conn->owed;
	glex_ret_t ret;

	mp.hdr.type = GLEXCH_MP_CREDIT;
	mp.hdr.credits = glexch_credit_take(conn);
	mp.hdr.seq = 0;
	mp.hdr.chan = conn->tx_chan;
	ret = glexch_post_mp(conn, &mp, 0);
	if (ret != GLEX_SUCCESS)
		conn->owed = owed;
	else
		conn->ch->stats.credit_mps++;
	return ret;
}

/* The end of a round: what no packet took along is returned now. */
void glexch_credit_flush(struct glexch *ch)
{
	struct glexch_conn **p = &ch->owing;

	while (*p) {
		struct glexch_conn *conn = *p;
		int due = conn->owed >= glexch_threshold(conn) && conn->heard && !conn->draining; /* I2, I5 */

		if (due && !(conn->slow & GLEXCH_SLOW_FAILED) && glexch_credit_send(conn) == GLEX_BUSY) {
			p = &conn->owing_next;
			continue;
		}
		*p = conn->owing_next;
		conn->owing = 0;
	}
}
