/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * er_open.c - exclusive channels come and go: who gets one, and how it is handed back.
 *
 *      A: much is sent to B                         B
 *      ring, OPEN {where it is} ------------------> room: a ring, too
 *      UP  <---------------------- ACCEPT {where} -- UP          or REFUSE: A gives its ring up
 *
 *      A: has not been used for long
 *      sends nothing more here; CLOSE ------------> sends nothing more here
 *      all of B's have been read  <------- CLOSED -- all of A's have been read
 *      gives its ring up;  DONE ------------------> gives its ring up
 *
 * These are packets of the stream, so that all that was sent before one, in
 * either way, has been delivered when it is.  Both may OPEN at once: each then
 * takes the other's for the ACCEPT of its own.  Both may CLOSE at once: each has
 * then read all when it reads the other's, and says DONE.
 *
 * Room: er_max channels.  Who finds none makes those look for unused ones who
 * tend the connections (conn.c); meanwhile the shared channel serves.
 *
 * How long rings are: as long as may be written before anything of it is read, of which laps that keep pace use
 * the start only (er.c).  Where the sender needs a copy of the peer's ring, what is asked for by length
 * is halved, so that a peer costs the same.  The first ring tells; until then nobody knows how long his are.
 *
 * I1  The memory of a channel is given up only when nothing can write it or read
 *     it any more: after CLOSED or DONE; or by taking its registration away, when
 *     the peer is lost.  When the connection is destroyed it is kept: until the
 *     end, or until there is no other room.
 * I2  These packets go behind all that was PUT before (a fence), and who has said
 *     or heard CLOSE returns no more lines: no PUT finds the ring gone.
 */
#include "chan_priv.h"

#include <stdlib.h>

#define GLEXCH_ER_BYTES	     65536u
#define GLEXCH_ER_BYTES_MIN  4096u
#define GLEXCH_ER_BYTES_MAX  (GLEXCH_ER_LINES_MAX * GLEXCH_LINE)
#define GLEXCH_ER_TRAFFIC    64u    /* packets between two visits of the hand that make a peer get one */
#define GLEXCH_ER_REFUSED    16384u /* packets until a peer that refused is asked again */
#define GLEXCH_ER_IDLE_SHORT 2u	    /* visits of the hand without a record: may be closed for somebody else */

static uint32_t glexch_er_half(uint32_t lines)
{
	return lines >= 2 * GLEXCH_ER_BYTES_MIN / GLEXCH_LINE ? lines / 2 & ~3u : lines;
}

void glexch_er_plan(struct glexch *ch, const struct glexch_params *params)
{
	uint32_t bytes = params->er_bytes ? params->er_bytes : GLEXCH_ER_BYTES;

	if (bytes < GLEXCH_ER_BYTES_MIN)
		bytes = GLEXCH_ER_BYTES_MIN;
	if (bytes > GLEXCH_ER_BYTES_MAX)
		bytes = GLEXCH_ER_BYTES_MAX;
	ch->er_injects = -1;
	ch->er_inline = ch->er_answer = GLEXCH_ER_INLINE;
	ch->er_max = params->mode == GLEXCH_MODE_SR ? 0 : params->er_max;
	ch->er_lines = bytes / GLEXCH_LINE & ~3u; /* the tail of a short one is a fourth */
	ch->er_lines_copy = glexch_er_half(ch->er_lines);
	ch->er_after = params->mode == GLEXCH_MODE_ER ? 1 : GLEXCH_ER_TRAFFIC;
}

/* ---- memory -------------------------------------------------------------- */

static void glexch_er_unlink(struct glexch *ch, struct glexch_er *er)
{
	struct glexch_er **p;

	for (p = &ch->ers; *p != er; p = &(*p)->next)
		;
	*p = er->next;
	ch->er_count--;
	ch->er_changes++;
}

/* Takes it off the list, the registration from the NIC, and the memory back. */
static void glexch_er_free(struct glexch *ch, struct glexch_er *er)
{
	glexch_er_unlink(ch, er);
	if (er->conn)
		er->conn->er = NULL;
	glex_put_way_close(er->way);
	glex_deregister_mem(ch->ep, er->mh);
	glex_free(ch->dev, er->rx_ring);
	free(er);
}

/* After the endpoint has gone, and all registrations and ways with it. */
void glexch_er_free_all(struct glexch *ch)
{
	while (ch->ers) {
		struct glexch_er *er = ch->ers;

		ch->ers = er->next;
		glex_free(ch->dev, er->rx_ring);
		free(er);
	}
}

/* Room for one more: perhaps that of one whose connection is gone (I1). */
static int glexch_er_room(struct glexch *ch)
{
	struct glexch_er *er = ch->ers;

	if (ch->er_count >= ch->er_max) {
		while (er && er->state != GLEXCH_ER_RETIRED)
			er = er->next;
		if (er)
			glexch_er_free(ch, er);
	}
	if (ch->er_count < ch->er_max)
		return 1;
	if (ch->er_max)
		ch->er_wants = 4 * (ch->hash_mask + 1) + 64; /* a few rounds of the hand */
	return 0;
}

/* A ring, and behind it room for a copy of the peer's if that is needed.  NULL: there is no memory. */
static uint8_t *glexch_er_memory(struct glexch *ch, uint64_t bytes, glex_mem_handle_t *mh)
{
	void *mem;

	if (glex_alloc(ch->dev, bytes, &mem) != GLEX_SUCCESS)
		return NULL;
	if (glex_register_mem(ch->ep, mem, bytes, GLEX_MEM_WRITE, mh) != GLEX_SUCCESS) {
		glex_free(ch->dev, mem);
		return NULL;
	}
	memset(mem, 0, bytes); /* now, not when messages wait */
	return mem;
}

/* How long rings and records are, by whether bytes of any memory can be PUT: a PUT of nothing into a ring of ours tells. */
static void glexch_er_settle(struct glexch *ch, glex_mem_handle_t ring)
{
	struct glex_imm_rdma_req req = {.rmt_ep_addr = ch->addr, .rmt_mh = ring, .rmt_key = ch->key};

	if (ch->er_injects >= 0)
		return;
	ch->er_injects = glex_inject(ch->ep, &req) != GLEX_NOT_IMPLEMENTED;
	if (ch->er_injects) {
		ch->er_inline = glexch_er_whole(ch->er_lines, GLEXCH_SHORT_MAX);
		ch->er_answer = glexch_er_whole(ch->er_lines, GLEXCH_ANSWER_MAX);
	} else {
		ch->er_lines = ch->er_lines_copy;
	}
}

/* The memory of a channel at this end.  0: there is none. */
static int glexch_er_place(struct glexch *ch, struct glexch_er *er)
{
	uint64_t ring = (uint64_t)ch->er_lines * GLEXCH_LINE;

	if (ch->er_injects) { /* or it is not known yet: the first ring tells */
		er->rx_ring = glexch_er_memory(ch, ring, &er->mh);
		if (!er->rx_ring)
			return 0;
		glexch_er_settle(ch, er->mh);
		if (ch->er_injects)
			return 1;
		glex_deregister_mem(ch->ep, er->mh);
		glex_free(ch->dev, er->rx_ring);
		ring = (uint64_t)ch->er_lines * GLEXCH_LINE;
	}
	er->rx_ring = glexch_er_memory(ch, 2 * ring, &er->mh);
	er->tx_copy = er->rx_ring ? er->rx_ring + ring : NULL;
	return er->rx_ring != NULL;
}

static struct glexch_er *glexch_er_make(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_er *er;

	if (!glexch_er_room(ch))
		return NULL;
	er = calloc(1, sizeof(*er));
	if (!er || !glexch_er_place(ch, er)) {
		free(er);
		return NULL;
	}
	er->conn = conn;
	er->lines = ch->er_lines;
	er->starts = glexch_er_starts(er->lines);
	er->inl_max = glexch_er_whole(er->lines, GLEXCH_ANSWER_MAX);
	er->rx_mark = glexch_some_number(er);
	er->next = ch->ers;
	ch->ers = er;
	ch->er_count++;
	ch->er_changes++;
	conn->er = er;
	return er;
}

/* ---- beginning ----------------------------------------------------------- */

/* So many packets have been sent to a peer without one. */
void glexch_er_consider(struct glexch_conn *conn)
{
	if (conn->er || !conn->bound || conn->parting || conn->draining ||
	    glexch_tag_chan(conn->rx_tag) != GLEXCH_CHAN_MAIN)
		return;
	conn->er_mark = (uint16_t)(conn->tx_seq + GLEXCH_ER_REFUSED);
	if (!glexch_er_make(conn))
		return;
	conn->er->state = GLEXCH_ER_OPENING;
	glexch_say(conn, GLEXCH_SAY_OPEN);
}

/* 0: their rings do not fit together. */
static int glexch_er_bind(struct glexch_er *er, const struct glexch_er_mp *mp)
{
	const struct glexch_conn *conn = er->conn;
	glex_ep_addr_t to = {.v = conn->peer};

	er->tx_ring.v = mp->handle;
	er->tx_mark = mp->mark;
	er->tx_lines = mp->lines;
	if (mp->lines != er->lines)
		return 0;
	glex_put_way_close(er->way);
	if (glex_put_way_open(conn->ch->ep, to, er->tx_ring, conn->key, &er->way) != GLEX_SUCCESS)
		er->way = NULL;
	return 1;
}

static void glexch_er_up(struct glexch_conn *conn)
{
	conn->er->state = GLEXCH_ER_UP;
	conn->ch->stats.er_opened++;
}

static void glexch_er_refuse(struct glexch_conn *conn)
{
	conn->ch->stats.er_refused++;
	glexch_say(conn, GLEXCH_SAY_REFUSE);
}

/* One that goes with a ring of so many lines.  0: there is none. */
static int glexch_er_make_alike(struct glexch_conn *conn, uint32_t lines)
{
	if (conn->parting || conn->draining || !glexch_er_make(conn))
		return 0;
	if (conn->er->lines == lines)
		return 1;
	glexch_er_free(conn->ch, conn->er);
	return 0;
}

static int glexch_er_hear_open(struct glexch_conn *conn, const struct glexch_er_mp *mp)
{
	struct glexch_er *er = conn->er;

	if (er && er->state != GLEXCH_ER_OPENING)
		return 0;
	if (!er && !glexch_er_make_alike(conn, mp->lines)) {
		glexch_er_refuse(conn);
		return 1;
	}
	if (!glexch_er_bind(conn->er, mp)) {
		int crossed = er && !(conn->to_say & GLEXCH_SAY_OPEN); /* with ours: they see it, too */

		conn->to_say &= (uint8_t)~GLEXCH_SAY_OPEN;
		glexch_er_free(conn->ch, conn->er);
		if (!crossed)
			glexch_er_refuse(conn);
		return 1;
	}
	if (er && !(conn->to_say & GLEXCH_SAY_OPEN)) {
		glexch_er_up(conn); /* our OPEN is their ACCEPT */
		return 1;
	}
	conn->to_say &= (uint8_t)~GLEXCH_SAY_OPEN;
	conn->er->state = GLEXCH_ER_ACCEPTING;
	glexch_say(conn, GLEXCH_SAY_ACCEPT);
	return 1;
}

/* ---- end ----------------------------------------------------------------- */

static void glexch_er_begin_close(struct glexch_conn *conn)
{
	conn->er->state = GLEXCH_ER_CLOSING;
	glexch_say(conn, GLEXCH_SAY_CLOSE);
}

static int glexch_er_hear_close(struct glexch_conn *conn)
{
	struct glexch_er *er = conn->er;

	if (!er || (er->state != GLEXCH_ER_UP && er->state != GLEXCH_ER_CLOSING))
		return 0;
	if (er->state == GLEXCH_ER_CLOSING && !(conn->to_say & GLEXCH_SAY_CLOSE)) {
		glexch_say(conn, GLEXCH_SAY_DONE); /* both have said it */
	} else {
		conn->to_say &= (uint8_t)~GLEXCH_SAY_CLOSE;
		glexch_say(conn, GLEXCH_SAY_CLOSED);
	}
	er->state = GLEXCH_ER_LEAVING;
	return 1;
}

static int glexch_er_hear_end(struct glexch_conn *conn, enum glexch_er_state expected)
{
	if (!conn->er || conn->er->state != expected)
		return 0;
	conn->ch->stats.er_closed++;
	glexch_er_free(conn->ch, conn->er);
	if (expected == GLEXCH_ER_CLOSING)
		glexch_say(conn, GLEXCH_SAY_DONE);
	return 1;
}

/* The connection ends.  failed: the peer may be alive and still write here (I1). */
void glexch_er_leave(struct glexch_conn *conn, int failed)
{
	struct glexch_er *er = conn->er;

	if (!er)
		return;
	conn->er = NULL;
	er->conn = NULL;
	er->state = GLEXCH_ER_RETIRED;
	conn->ch->stats.er_closed++;
	if (failed)
		glexch_er_free(conn->ch, er);
}

/* The hand of conn.c comes by. */
void glexch_er_cool(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_er *er = conn->er;

	if (!er) {
		if ((int16_t)(conn->tx_seq - conn->er_mark) > 0)
			conn->er_mark = conn->tx_seq;
		return;
	}
	er->idle = er->used ? 0 : er->idle + 1;
	er->used = 0;
	if (er->idle && er->rx_owed && er->state == GLEXCH_ER_UP && !conn->draining && !conn->parted)
		glexch_er_return(conn); /* er.c, I3; if it cannot be posted, the next time */
	if (er->state != GLEXCH_ER_UP || (conn->slow & GLEXCH_SLOW_QUEUE) || conn->parting)
		return;
	if (er->idle > GLEXCH_ER_IDLE_LONG || (er->idle > GLEXCH_ER_IDLE_SHORT && ch->er_wants)) {
		ch->er_wants = 0; /* one at a time */
		conn->er_mark = conn->tx_seq;
		glexch_er_begin_close(conn);
	}
}

/* ---- what is said about it ----------------------------------------------- */

/* A packet of the peer's about it, in its place in the stream. */
void glexch_er_hear(struct glexch_conn *conn, const struct glexch_er_mp *mp)
{
	int ok = 0;

	switch (mp->word) {
	case GLEXCH_ER_OPEN:
		ok = glexch_er_hear_open(conn, mp);
		break;
	case GLEXCH_ER_ACCEPT:
		ok = conn->er && conn->er->state == GLEXCH_ER_OPENING && glexch_er_bind(conn->er, mp);
		if (ok)
			glexch_er_up(conn);
		break;
	case GLEXCH_ER_REFUSE:
		ok = conn->er && conn->er->state == GLEXCH_ER_OPENING;
		if (ok)
			glexch_er_free(conn->ch, conn->er);
		break;
	case GLEXCH_ER_CLOSE:
		ok = glexch_er_hear_close(conn);
		break;
	case GLEXCH_ER_CLOSED:
		ok = glexch_er_hear_end(conn, GLEXCH_ER_CLOSING);
		break;
	case GLEXCH_ER_DONE:
		ok = glexch_er_hear_end(conn, GLEXCH_ER_LEAVING);
		break;
	default:
		break;
	}
	if (!ok)
		glexch_conn_fail(conn, "what it says about its ring makes no sense");
}

/* Fills the packet.  0: there is nothing to be said any more. */
int glexch_er_describe(struct glexch_conn *conn, enum glexch_say say, struct glexch_er_mp *mp)
{
	memset(mp, 0, sizeof(*mp));
	switch (say) {
	case GLEXCH_SAY_OPEN:
	case GLEXCH_SAY_ACCEPT:
		if (!conn->er)
			return 0;
		mp->word = say == GLEXCH_SAY_OPEN ? GLEXCH_ER_OPEN : GLEXCH_ER_ACCEPT;
		mp->lines = conn->er->lines;
		mp->handle = conn->er->mh.v;
		mp->mark = conn->er->rx_mark;
		return 1;
	case GLEXCH_SAY_REFUSE:
		mp->word = GLEXCH_ER_REFUSE;
		return 1;
	case GLEXCH_SAY_CLOSE:
		mp->word = GLEXCH_ER_CLOSE;
		return 1;
	case GLEXCH_SAY_CLOSED:
		mp->word = GLEXCH_ER_CLOSED;
		return 1;
	case GLEXCH_SAY_DONE:
		mp->word = GLEXCH_ER_DONE;
		return 1;
	default:
		return 0;
	}
}

/* It has been sent. */
void glexch_er_said(struct glexch_conn *conn, enum glexch_say say)
{
	if (say == GLEXCH_SAY_ACCEPT)
		glexch_er_up(conn);
}
