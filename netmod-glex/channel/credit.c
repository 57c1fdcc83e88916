/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credit.c - who may send how many MPs, so that the MPQ cannot overflow.
 *
 * A credit is the right to have one sequenced MP under way to a peer.  The
 * credits of one direction are constant in number between two changes of the grant:
 *
 *      sender: credits --- MP ---> receiver's MPQ --- delivered ---> owed
 *         ^                                                           |
 *         +------------ in any MP back, or in a credit MP ------------+
 *
 * A process counted when the channel was opened begins with start_grant credits
 * without any exchange, any other with GLEXCH_START_FOREIGN.  What is promised
 * to nobody is mpq_pool.
 *
 *      grow    an MP with MORE took its sender's last credit: the grant doubles,
 *              up to full_grant, from the pool; the new ones are owed
 *      shrink  the pool is empty and somebody has asked for more: those not heard
 *              of for a while get ASK, and give what they hold above their start
 *
 * I1  Slots promised: for each counted peer start_grant and one, for each other
 *     that is connected the same from the pool or the room for strangers, for
 *     what has grown its number, for the rounds in progress GLEXCH_NESTED_MPS +
 *     GLEXCH_BATCH.  Their sum never exceeds the MPQ.
 * I2  A credit MP needs no credit, yet only one a peer can be in the MPQ: it is
 *     sent when more than half of all the credits of that direction are owed,
 *     and those in an unread credit MP are not.  So a grant does not grow before
 *     the last one is known to be read (SAW); that it shrinks does no harm, for
 *     what is in an unread MP stays more than half of a smaller number.
 * I3  A sender without credits gets some: then all are owed, which is more than
 *     half, or under way, and will be owed.  (All MPs are delivered at last:
 *     seq.c and block.c never wait for a credit.)
 * I4  grant <= 255: what is owed fits into the header of one MP.
 * I5  A credit MP goes only to a peer that has spoken on this connection, and
 *     says on which stream: it cannot be taken for one of another time.
 * I6  To a peer that may be gone (parted) none goes, unless it has no credit left to
 *     send its last packet with.
 */
#include "chan_priv.h"

static uint32_t glexch_threshold(const struct glexch_conn *conn)
{
	return conn->parted && conn->grant ? conn->grant : conn->grant / 2u + 1; /* I2, I6 */
}

static uint32_t glexch_pow2(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p *= 2;
	return (uint32_t)p;
}

/* Chooses the grants; returns the MPQ capacity they need, 0: no MPQ can have it. */
uint32_t glexch_credit_plan(struct glexch *ch, const struct glexch_params *params, const struct glex_device_attr *attr)
{
	uint32_t peers = params->peers, credits = params->credits;
	uint64_t fixed = GLEXCH_NESTED_MPS + GLEXCH_BATCH + (uint64_t)GLEXCH_FOREIGN_MAX * (GLEXCH_START_FOREIGN + 1);
	uint64_t def = attr->def_ep_mpq_capacity;
	uint64_t most = attr->max_ep_hc_mpq_capacity > attr->max_ep_mpq_capacity ? attr->max_ep_hc_mpq_capacity
										 : attr->max_ep_mpq_capacity;
	uint64_t start = credits < GLEXCH_START ? credits : GLEXCH_START;
	uint64_t promised, cap;

	while (start > 1 && fixed + peers * (start + 1) > def / 2) /* many peers: most of them will hardly speak */
		start /= 2;
	promised = fixed + peers * (start + 1);
	cap = glexch_pow2(params->mpq_slots > promised ? params->mpq_slots
						       : promised + (params->mpq_slots ? 0 : def / 2));
	if (cap > most)
		cap = most;
	ch->strangers = GLEXCH_FOREIGN_MAX;
	ch->full_grant = credits;
	ch->start_grant = (uint32_t)start;
	ch->mpq_pool = cap > promised ? (uint32_t)(cap - promised) : 0;
	return promised > most ? 0 : (uint32_t)cap;
}

static uint32_t glexch_start(const struct glexch_conn *conn)
{
	return conn->counted ? conn->ch->start_grant : GLEXCH_START_FOREIGN;
}

/* First contact: what the peer counts on.  0: there is no room for it (I1). */
int glexch_credit_open(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;

	if (!conn->counted && ch->mpq_pool > GLEXCH_START_FOREIGN) {
		ch->mpq_pool -= GLEXCH_START_FOREIGN + 1;
		conn->paid = 1;
	} else if (!conn->counted && !ch->strangers) {
		return 0;
	} else if (!conn->counted) {
		ch->strangers--;
	}
	conn->grant = (uint16_t)glexch_start(conn);
	return 1;
}

void glexch_credit_close(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_conn **p;

	if (conn->grant) {
		ch->mpq_pool += conn->grant - glexch_start(conn);
		if (conn->paid)
			ch->mpq_pool += GLEXCH_START_FOREIGN + 1;
		else if (!conn->counted)
			ch->strangers++;
	}
	conn->grant = 0;
	if (!conn->owing)
		return;
	for (p = &ch->owing; *p != conn; p = &(*p)->owing_next)
		;
	*p = conn->owing_next;
	conn->owing = 0;
}

static int glexch_credit_is_due(const struct glexch_conn *conn)
{
	return conn->owed >= glexch_threshold(conn) || glexch_er_lines_due(conn);
}

/* Puts the connection on the list of those that get a credit MP, if it is due. */
void glexch_credit_due(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;

	if (conn->owing || conn->draining || !glexch_credit_is_due(conn))
		return;
	conn->owing = 1;
	conn->owing_next = ch->owing;
	ch->owing = conn;
}

/* A sequenced MP has been delivered. */
void glexch_credit_owe(struct glexch_conn *conn)
{
	conn->owed++;
	glexch_credit_due(conn);
}

static glex_ret_t glexch_credit_send(struct glexch_conn *conn)
{
	struct glexch_mp mp;
	glex_ret_t ret;

	mp.hdr.type = GLEXCH_MP_CREDIT | GLEXCH_MP_ANSWER;
	mp.hdr.credits = (uint8_t)conn->owed;			/* I4 */
	mp.hdr.seq = (uint16_t)glexch_tag_stream(conn->rx_tag); /* what it is for */
	mp.hdr.tag = conn->tx_tag;
	ret = glexch_post_mp(conn, &mp, 0);
	if (ret != GLEX_SUCCESS)
		return ret;
	conn->owed = 0;
	conn->unread = 1;
	conn->ch->stats.credit_mps++;
	return GLEX_SUCCESS;
}

/* Returns what is due.  0: there is no room for it now. */
static int glexch_credit_pay(struct glexch_conn *conn)
{
	if (glexch_er_lines_due(conn) && glexch_er_return(conn) == GLEX_BUSY)
		return 0;
	return conn->owed < glexch_threshold(conn) || glexch_credit_send(conn) != GLEX_BUSY;
}

/* The end of a round: what no packet took along is returned now. */
void glexch_credit_flush(struct glexch *ch)
{
	struct glexch_conn **p = &ch->owing;

	while (*p) {
		struct glexch_conn *conn = *p;
		int due = glexch_credit_is_due(conn) && conn->heard && !conn->draining; /* I2, I5 */

		if (due && !(conn->slow & GLEXCH_SLOW_FAILED) && !glexch_credit_pay(conn)) {
			p = &conn->owing_next;
			continue;
		}
		*p = conn->owing_next;
		conn->owing = 0;
	}
}

/* ---- growing and shrinking ----------------------------------------------- */

/* The peer has used its last credit. */
void glexch_credit_more(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	uint32_t more = ch->full_grant - conn->grant;

	if (!conn->grant || conn->grant >= ch->full_grant || conn->unread || conn->draining ||
	    conn->parted) /* I2, I6 */
		return;
	if (more > conn->grant)
		more = conn->grant;
	if (more > ch->mpq_pool) {
		more = ch->mpq_pool;
		ch->thirst = 2 * (ch->hash_mask + 1) + 32; /* the hand's way round, twice */
	}
	ch->mpq_pool -= more; /* I1 */
	conn->grant = (uint16_t)(conn->grant + more);
	conn->owed = (uint16_t)(conn->owed + more);
	glexch_credit_due(conn);
}

/* What a packet that is to be sent now may give back. */
uint8_t glexch_credit_spare(const struct glexch_conn *conn)
{
	return conn->credits > conn->tx_start + 1 ? (uint8_t)(conn->credits - conn->tx_start - 1) : 0;
}

/* The peer gives n credits back.  0: it has not got so many. */
int glexch_credit_given(struct glexch_conn *conn, uint32_t n)
{
	if (n > conn->grant - glexch_start(conn))
		return 0;
	conn->asked = 0;
	conn->grant = (uint16_t)(conn->grant - n);
	conn->ch->mpq_pool += n;
	glexch_credit_due(conn);
	return 1;
}

/* The hand comes by, for the second time at least if the peer is not hot. */
void glexch_credit_cool(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;

	if (!conn->hot && ch->thirst && !conn->asked && conn->bound && !conn->parting &&
	    conn->grant > glexch_start(conn))
		conn->asked = glexch_sr_control(conn, GLEXCH_MP_ASK, 0) != 0;
	conn->hot = 0;
}
