/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lend.c - long data of the stream that is not sent: the peer fetches it from where it lies.
 *
 *      sender                                     receiver
 *      glexch_lend: exposes the buffer
 *      LENT {header, handle, length, -----------> the header is delivered; then the
 *            index, generation}                   stream stops here
 *                               <---- GETs -----  to where the user wants it
 *      unexposes it, done       <---- event ----  of the last one; the stream goes on
 *
 * Where the system lets no process reach another's private memory, a GET ends so.
 * No packet can tell of it, for the streams of both directions may have stopped.
 * Events can, of GETs that move nothing:
 *
 *      copies it to memory      <---- event ----  recall
 *      that can be reached
 *      answer {handle, offset}  ----- event --->  GETs from there, as above
 *
 * and from then on that process lends nothing.
 *
 * What is offered, the receiver can have put, if where it belongs is mapped by peers (why: glue/glex_put.c):
 *
 *      LENT {..., offered} ------------------->   the header is delivered
 *      PUTs                     <---- event ----  PLACE {handle, offset}
 *      unexposes it, done       ------ PUT ---->  to where the user wants it, with
 *                               ----- event --->  the event that it is there; the stream goes on
 *
 * If it cannot be put, an event says that instead, and it is fetched.
 *
 * I1  A loan's generation is odd while it is in use and changes at every take and
 *     put.  An event names it, so one that comes late changes nothing.
 * I2  The last GET of a loan is posted when all others have arrived: with its event
 *     the buffer is the owner's again.
 * I3  Events never overflow: one is under way for each loan, one answer, and GLEXCH_PLACES of what is put here.
 * I4  A connection whose stream has stopped is `paused`, and `delivering` with it, so
 *     that nobody delivers anything; packets gather as if a GET of block.c were under way.
 * I5  What the receiver maps it fetches within the call, where its endpoint can, and the stream does not stop.  No event
 *     of its own comes with that: who posts GETs has those in the queue where the peer's events of what he lends come
 *     too, and two who claim slots of a queue take turns at a line.  8 KiB in both directions take half as long.
 */
#include "chan_priv.h"

#include <stdlib.h>

#define GLEXCH_BORROWER_MASK 0xffffffu		   /* its number must fit into a cookie */
#define GLEXCH_OFFERED	     0x80000000u	   /* in the index that a packet tells */
#define GLEXCH_NEAR	     0x40000000u	   /* likewise */
#define GLEXCH_PUT_FAILED    UINT64_C(0x100000000) /* in cookie_0 of GLEXCH_EV_PUT, above the generation */

/*
 * cookie_1 of GLEXCH_EV_PLACE, which comes with a handle in cookie_0.  Of generation and number only the
 * last eight bits fit in: the loan is in use until what they ask for is done.
 */
static uint64_t glexch_place_cookie(uint32_t offset, uint32_t gen, uint32_t number, uint32_t index)
{
	return (uint64_t)offset << 32 | (gen & 0xff) << 24 | (number & 0xff) << 16 | index << 8 | GLEXCH_EV_PLACE;
}

_Static_assert(GLEXCH_LOANS <= 256, "an index in eight bits");

/* cookie_1 of GLEXCH_EV_PUT: from the number and index of the one above. */
static uint64_t glexch_put_cookie(uint64_t place_cookie)
{
	return (place_cookie & 0xffff00) | GLEXCH_EV_PUT;
}

/* What a peer lends to us. */
struct glexch_borrowed {
	struct glexch_borrowed *next;
	struct glexch_conn *conn;
	struct glexch_region region;
	uint64_t len;
	uint64_t pos; /* delivered up to here */
	uint64_t back_0, back_1;
	void *buf; /* where the next n bytes go */
	uint64_t n;
	uint32_t id;
	struct glexch_region place; /* of buf, while it is to be put there */
	uint8_t near;		    /* we map it */
	uint8_t denied;		    /* it was to be fetched at once: the report will say why not */
	uint8_t offered;	    /* it may be */
	uint8_t placing;	    /* it is to be */
	uint8_t ask;		    /* for that: to be said */
	uint8_t recall;		    /* to be said */
	uint8_t recalled;	    /* once, and no more */
};

/* An event for the peer, and nothing else. */
static glex_ret_t glexch_lend_signal(const struct glexch_conn *conn, uint64_t cookie_0, uint64_t cookie_1)
{
	struct glex_rdma_req req = {0};

	req.rmt_ep_addr.v = conn->peer;
	req.rmt_mh.v = conn->pool;
	req.rmt_key = conn->key;
	req.type = GLEX_RDMA_TYPE_GET;
	req.rmt_evt.cookie_0 = cookie_0;
	req.rmt_evt.cookie_1 = cookie_1;
	req.flag = GLEX_FLAG_REMOTE_EVT;
	return glex_rdma(conn->ch->ep, &req, NULL);
}

/* ---- lending ------------------------------------------------------------- */

void glexch_lend_open(struct glexch *ch)
{
	uint32_t i;

	for (i = 0; i < GLEXCH_LOANS; i++)
		ch->loans[i].next = i + 1 < GLEXCH_LOANS ? i + 1 : GLEXCH_NONE;
}

static void glexch_loan_put(struct glexch *ch, struct glexch_loan *loan)
{
	glexch_unexpose(ch, loan->len, &loan->region);
	if (loan->copied)
		glexch_unexpose(ch, loan->len, &loan->copy_region);
	glexch_free(ch, loan->copy);
	ch->lend_todo -= loan->recalled + loan->put_fails;
	loan->gen++; /* I1 */
	loan->conn = NULL;
	loan->next = ch->loan_free;
	ch->loan_free = (uint32_t)(loan - ch->loans);
	ch->loans_out--;
	ch->lent -= loan->len;
}

/* 0: it cannot be. */
static int glexch_loan_expose(struct glexch *ch, void *buf, uint64_t len, int how, struct glexch_region *region)
{
	if (how & GLEXCH_LEND_NEAR)
		return glexch_expose_near(ch, buf, len, region);
	return len <= GLEXCH_REGION_BYTES && glexch_expose(ch, buf, len, 0, region) == GLEX_SUCCESS;
}

int glexch_lend(struct glexch_conn *conn, struct glexch_item *item, void *buf, uint64_t len, int how)
{
	struct glexch *ch = conn->ch;
	struct glexch_loan *loan;
	struct glexch_region region;
	uint32_t index = ch->loan_free;

	if (index == GLEXCH_NONE || ch->lend_never || !len || (conn->slow & (GLEXCH_SLOW_FAILED | GLEXCH_SLOW_DEAD)) ||
	    !glexch_loan_expose(ch, buf, len, how, &region))
		return 0;
	loan = &ch->loans[index];
	ch->loan_free = loan->next;
	ch->loans_out++;
	ch->lent += len;
	loan->gen++; /* I1 */
	loan->conn = conn;
	loan->item = item;
	loan->buf = buf;
	loan->len = len;
	loan->region = region;
	loan->copy = NULL;
	loan->near = (how & GLEXCH_LEND_NEAR) != 0;
	loan->offered = (how & GLEXCH_LEND_OFFER) != 0;
	loan->putting = loan->put_fails = loan->told = loan->recalled = loan->copied = 0;
	item->loan = index + 1;
	glexch_queue_now(conn, item);
	return 1;
}

/* For the packet that tells of it. */
void glexch_lend_describe(const struct glexch *ch, const struct glexch_item *item, struct glexch_block_ref *ref)
{
	const struct glexch_loan *loan = &ch->loans[item->loan - 1];

	ref->handle = loan->region.handle;
	ref->offset = loan->region.offset;
	ref->len = (uint32_t)loan->len;
	ref->index = (item->loan - 1) | (loan->offered ? GLEXCH_OFFERED : 0) | (loan->near ? GLEXCH_NEAR : 0);
	ref->gen = loan->gen;
}

/* The packet is out, and the item off the queue. */
void glexch_lend_told(struct glexch *ch, const struct glexch_item *item)
{
	ch->loans[item->loan - 1].told = 1;
}

static struct glexch_loan *glexch_loan_find(struct glexch *ch, uint32_t index, uint32_t gen)
{
	if (index >= GLEXCH_LOANS || ch->loans[index].gen != gen || !(gen & 1)) /* I1 */
		return NULL;
	return &ch->loans[index];
}

uint64_t glexch_lent(const struct glexch *ch)
{
	return ch->lent;
}

/* Something of this connection is lent still. */
int glexch_lend_has(const struct glexch_conn *conn)
{
	const struct glexch *ch = conn->ch;
	uint32_t i;

	for (i = 0; ch->loans_out && i < GLEXCH_LOANS; i++)
		if (ch->loans[i].conn == conn)
			return 1;
	return 0;
}

/* The peer has all of it. */
static void glexch_loan_over(struct glexch *ch, struct glexch_loan *loan)
{
	struct glexch_conn *conn = loan->conn;
	struct glexch_item *item = loan->item;

	glexch_loan_put(ch, loan);
	item->done(conn, item, 0);
	if (conn->draining && !(conn->slow & GLEXCH_SLOW_DEAD))
		glexch_conn_drain(conn);
}

/* Remote event: it has fetched it. */
void glexch_lend_returned(struct glexch *ch, uint32_t index, uint32_t gen)
{
	struct glexch_loan *loan = glexch_loan_find(ch, index, gen);

	if (loan && loan->told)
		glexch_loan_over(ch, loan);
}

/* Says that it cannot be put; if not now, in a later round. */
static void glexch_loan_put_fails(struct glexch *ch, struct glexch_loan *loan)
{
	glex_ret_t ret =
		glexch_lend_signal(loan->conn, loan->gen | GLEXCH_PUT_FAILED,
				   glexch_put_cookie(loan->borrower << 16 | (uint32_t)(loan - ch->loans) << 8));

	if (ret == GLEX_BUSY)
		return;
	loan->put_fails = 0;
	ch->lend_todo--;
	if (ret != GLEX_SUCCESS)
		glexch_conn_fail(loan->conn, glex_error_str(ret));
}

static void glexch_loan_was_put(void *arg, enum glexch_got got)
{
	struct glexch_loan *loan = arg;
	struct glexch *ch = loan->conn->ch;

	if (got == GLEXCH_GOT_ALL) {
		glexch_loan_over(ch, loan);
	} else if (got == GLEXCH_GOT_NO_ACCESS) {
		loan->put_fails = 1;
		ch->lend_todo++;
	} /* else the connection fails, which ends it */
}

/* Remote event: the peer wants to have it put. */
void glexch_lend_place(struct glexch *ch, uint64_t handle, uint64_t cookie_1)
{
	uint32_t index = (uint32_t)(cookie_1 >> 8) & 0xff;
	const struct glexch_region place = {.handle = handle, .offset = (uint32_t)(cookie_1 >> 32)};
	struct glexch_loan *loan = index < GLEXCH_LOANS ? &ch->loans[index] : NULL;
	glex_event_t there;

	if (!loan || !(loan->gen & 1) || ((loan->gen ^ (uint32_t)(cookie_1 >> 24)) & 0xff) || !loan->told ||
	    !loan->offered || loan->putting) /* I1 */
		return;
	loan->putting = 1;
	loan->borrower = (uint32_t)(cookie_1 >> 16) & 0xff;
	there.cookie_0 = loan->gen;
	there.cookie_1 = glexch_put_cookie(cookie_1);
	if (!glexch_put_and_tell(loan->conn, loan->buf, loan->len, &place, &there, glexch_loan_was_put, loan))
		glexch_loan_was_put(loan, GLEXCH_GOT_NO_ACCESS);
}

/* Remote event: the peer cannot reach it. */
void glexch_lend_recalled(struct glexch *ch, uint32_t index, uint64_t cookie_0)
{
	struct glexch_loan *loan = glexch_loan_find(ch, index, (uint32_t)cookie_0);

	if (!loan || !loan->told || loan->recalled || loan->copied)
		return;
	ch->lend_never = 1;
	loan->borrower = (uint32_t)(cookie_0 >> 32) & GLEXCH_BORROWER_MASK;
	loan->recalled = 1;
	ch->lend_todo++;
}

/* Copies it to where the peer can reach it.  GLEX_BUSY: not now. */
static glex_ret_t glexch_loan_copy(struct glexch *ch, struct glexch_loan *loan)
{
	glex_ret_t ret;

	if (!loan->copy) {
		loan->copy = glexch_alloc(ch, loan->len);
		if (!loan->copy)
			return GLEX_NO_MEM_RESOURCE;
		memcpy(loan->copy, loan->buf, loan->len);
	}
	if (loan->copied)
		return GLEX_SUCCESS;
	ret = glexch_expose(ch, loan->copy, loan->len, 1, &loan->copy_region);
	loan->copied = ret == GLEX_SUCCESS;
	return ret;
}

static void glexch_loan_answer(struct glexch *ch, struct glexch_loan *loan)
{
	glex_ret_t ret = glexch_loan_copy(ch, loan);

	if (ret == GLEX_SUCCESS)
		ret = glexch_lend_signal(loan->conn, loan->copy_region.handle,
					 (uint64_t)loan->copy_region.offset << 32 | (uint64_t)loan->borrower << 8 |
						 GLEXCH_EV_ANSWER);
	if (ret == GLEX_BUSY)
		return;
	loan->recalled = 0;
	ch->lend_todo--;
	if (ret != GLEX_SUCCESS)
		glexch_conn_fail(loan->conn, "it cannot read our memory, and there is none that it could");
}

/* ---- borrowing ----------------------------------------------------------- */

static void glexch_borrowed_unlink(struct glexch *ch, struct glexch_borrowed *b)
{
	struct glexch_borrowed **p;

	for (p = &ch->borrowed; *p != b; p = &(*p)->next)
		;
	*p = b->next;
	ch->lend_todo -= b->recall + b->ask;
	if (ch->lend_asks == b)
		ch->lend_asks = NULL;
}

static void glexch_borrowed_got(void *arg, enum glexch_got got);

/* These bytes are the last. */
static int glexch_borrowed_is_last(const struct glexch_borrowed *b)
{
	return b->pos + b->n == b->len;
}

/* Fetches it to where the user has it. */
static void glexch_borrowed_fetch(struct glexch_borrowed *b)
{
	struct glexch_conn *conn = b->conn;
	glex_event_t back = {.cookie_0 = b->back_0, .cookie_1 = b->back_1};

	if (b->n && glexch_get_and_tell(conn, b->buf, b->n, &b->region, b->pos,
					glexch_borrowed_is_last(b) ? &back : NULL, glexch_borrowed_got, b))
		return;
	glexch_conn_fail(conn, "there is no memory to fetch what it lends");
}

/* The same at once (I5).  0: not so. */
static int glexch_borrowed_fetch_now(struct glexch_borrowed *b)
{
	struct glexch_conn *conn = b->conn;
	struct glexch *ch = conn->ch;
	struct glex_imm_rdma_req req;
	glex_ret_t ret;

	if (!b->near || !ch->fetches || !b->n || b->n > ch->max_rdma)
		return 0;
	req.rmt_ep_addr.v = conn->peer;
	req.data = b->buf;
	req.len = (uint32_t)b->n;
	req.rmt_mh.v = b->region.handle;
	req.rmt_offset = b->region.offset + (uint32_t)b->pos;
	req.rmt_evt.cookie_0 = b->back_0;
	req.rmt_evt.cookie_1 = b->back_1;
	req.rmt_key = conn->key;
	req.coll_counter = 0;
	req.flag = glexch_borrowed_is_last(b) ? GLEX_FLAG_REMOTE_EVT : 0;
	req.next = NULL;
	ret = glex_fetch(ch->ep, &req);
	if (ret == GLEX_SUCCESS)
		glexch_count(ch, GLEXCH_WAY_GET, b->n);
	else if (ret == GLEX_NOT_IMPLEMENTED)
		ch->fetches = 0;
	b->denied = ret == GLEX_ACCESS_ERR;
	return ret == GLEX_SUCCESS;
}

/* Asks to have it put; if not now, in a later round. */
static void glexch_borrowed_ask(struct glexch *ch, struct glexch_borrowed *b)
{
	glex_ret_t ret = glexch_lend_signal(
		b->conn, b->place.handle,
		glexch_place_cookie(b->place.offset, (uint32_t)b->back_0, b->id, (uint32_t)(b->back_1 >> 8)));

	if (ret == GLEX_BUSY)
		return;
	b->ask = 0;
	ch->lend_todo--;
	if (ret != GLEX_SUCCESS)
		glexch_conn_fail(b->conn, glex_error_str(ret));
}

/* Has it put, if all of it belongs to where the peer can.  0: no. */
static int glexch_borrowed_place(struct glexch_borrowed *b)
{
	struct glexch *ch = b->conn->ch;

	if (!b->offered || b->n != b->len || ch->placing == GLEXCH_PLACES ||
	    !glexch_accept(ch, b->buf, b->n, &b->place))
		return 0;
	b->offered = 0; /* once */
	b->placing = b->ask = 1;
	ch->placing++;
	ch->lend_todo++;
	glexch_borrowed_ask(ch, b);
	return 1;
}

/* All of it is there: the stream goes on. */
static void glexch_borrowed_end(struct glexch_conn *conn)
{
	conn->paused = 0; /* I4 */
	if (conn->ch->borrower == conn)
		return; /* to glexch_seq_deliver, which goes on */
	conn->delivering = 0;
	glexch_seq_deliver(conn);
}

/* What was fetched is the user's.  1: there is more of it. */
static int glexch_borrowed_hand_over(struct glexch_borrowed *b, int put)
{
	struct glexch_conn *conn = b->conn;
	uint64_t n = b->n;
	void *buf = b->buf;
	int all;

	b->n = 0;
	b->pos += n;
	all = b->pos == b->len;
	if (all) {
		glexch_borrowed_unlink(conn->ch, b);
		free(b);
	}
	conn->ch->ops->landed(conn, buf, n, put);
	if (conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED))
		return 0; /* b is gone */
	if (all)
		glexch_borrowed_end(conn);
	return !all;
}

/* What comes next. */
static void glexch_borrowed_next(struct glexch_borrowed *b)
{
	struct glexch_conn *conn = b->conn;

	do {
		b->n = conn->ch->ops->land ? conn->ch->ops->land(conn, b->len - b->pos, &b->buf) : 0;
		if (glexch_borrowed_place(b))
			return;
		if (!glexch_borrowed_fetch_now(b)) {
			if (!b->denied)
				glexch_borrowed_fetch(b);
			return;
		}
	} while (glexch_borrowed_hand_over(b, 0));
}

/* It cannot be reached: to be said. */
static void glexch_borrowed_no_access(struct glexch_borrowed *b)
{
	struct glexch *ch = b->conn->ch;

	b->n = 0;
	b->near = b->denied = 0;
	b->recall = b->recalled = 1;
	ch->lend_todo++;
	ch->ops->landed(b->conn, b->buf, 0, 0);
}

/* Error request: 0: none of them was meant. */
int glexch_lend_no_access(struct glexch *ch, glex_ep_addr_t addr, const struct glex_err_req *err)
{
	struct glexch_borrowed *b = ch->borrowed;

	while (b && (!b->denied || b->region.handle != err->data0 || !glexch_conn_at(b->conn, addr)))
		b = b->next;
	if (b)
		glexch_borrowed_no_access(b);
	return b != NULL;
}

static void glexch_borrowed_got(void *arg, enum glexch_got got)
{
	struct glexch_borrowed *b = arg;
	struct glexch_conn *conn = b->conn;

	if (got == GLEXCH_GOT_ALL) {
		if (glexch_borrowed_hand_over(b, 0))
			glexch_borrowed_next(b);
	} else if (got == GLEXCH_GOT_NO_ACCESS && !b->recalled) {
		glexch_borrowed_no_access(b);
	} else { /* nothing, if that is why we are here */
		glexch_conn_fail(conn, "what it lends cannot be fetched");
	}
}

/* Remote event: it was put, or cannot be. */
void glexch_lend_was_put(struct glexch *ch, uint64_t cookie_0, uint64_t cookie_1)
{
	struct glexch_borrowed *b = ch->borrowed;

	while (b && (!b->placing || b->ask || (uint32_t)b->back_0 != (uint32_t)cookie_0 ||
		     glexch_put_cookie(glexch_place_cookie(0, 0, b->id, (uint32_t)(b->back_1 >> 8))) != cookie_1))
		b = b->next;
	if (!b)
		return;
	glexch_unexpose(ch, b->n, &b->place);
	b->placing = 0;
	ch->placing--;
	if (cookie_0 & GLEXCH_PUT_FAILED)
		glexch_borrowed_fetch(b);
	else if (glexch_borrowed_hand_over(b, 1))
		glexch_borrowed_next(b);
}

/* Its packet is the next in the stream. */
void glexch_lend_begin(struct glexch_conn *conn, struct glexch_block_ref *ref, uint32_t inl)
{
	struct glexch *ch = conn->ch;
	struct glexch_conn *outer = ch->borrower; /* a callback of it polls */
	struct glexch_borrowed *b = malloc(sizeof(*b));

	if (!b) {
		glexch_conn_fail(conn, "there is no memory to fetch what it lends");
		return;
	}
	b->conn = conn;
	b->region.handle = ref->handle;
	b->region.offset = ref->offset;
	b->len = ref->len;
	b->pos = b->n = 0;
	b->placing = b->denied = b->ask = b->recall = b->recalled = 0;
	b->back_0 = ref->gen;
	b->back_1 = (uint64_t)(ref->index & ~(GLEXCH_OFFERED | GLEXCH_NEAR)) << 8 | GLEXCH_EV_RETURNED;
	b->near = (ref->index & GLEXCH_NEAR) != 0;
	b->offered = (ref->index & GLEXCH_OFFERED) != 0;
	b->id = ++ch->lend_id & GLEXCH_BORROWER_MASK;
	b->next = ch->borrowed;
	ch->borrowed = b;
	conn->paused = 1; /* I4 */
	if (inl)
		ch->ops->data(conn, ref->inl, inl);
	if (conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED))
		return;
	ch->borrower = conn; /* glexch_seq_deliver goes on, if all of it comes now */
	glexch_borrowed_next(b);
	ch->borrower = outer;
}

/* Says that it cannot be reached; if not now, in a later round. */
static void glexch_borrowed_recall(struct glexch *ch, struct glexch_borrowed *b)
{
	glex_ret_t ret;

	if (ch->lend_asks) /* I3 */
		return;
	ret = glexch_lend_signal(b->conn, b->back_0 | (uint64_t)b->id << 32,
				 (b->back_1 & ~(uint64_t)0xff) | GLEXCH_EV_RECALL);
	if (ret == GLEX_BUSY)
		return;
	b->recall = 0;
	ch->lend_todo--;
	ch->lend_asks = b;
	if (ret != GLEX_SUCCESS)
		glexch_conn_fail(b->conn, glex_error_str(ret));
}

/* Remote event: the answer. */
void glexch_lend_answered(struct glexch *ch, uint64_t handle, uint64_t cookie_1)
{
	struct glexch_borrowed *b = ch->lend_asks;

	if (!b || b->id != ((uint32_t)(cookie_1 >> 8) & GLEXCH_BORROWER_MASK))
		return;
	ch->lend_asks = NULL;
	b->region.handle = handle;
	b->region.offset = (uint32_t)(cookie_1 >> 32);
	glexch_borrowed_next(b);
}

/* ---- both ---------------------------------------------------------------- */

/* Says what is to be said by events. */
void glexch_lend_run(struct glexch *ch)
{
	struct glexch_borrowed *b = ch->borrowed;
	uint32_t i;

	while (b && !b->recall && !b->ask)
		b = b->next;
	if (b && b->ask)
		glexch_borrowed_ask(ch, b); /* another in the next round */
	else if (b)
		glexch_borrowed_recall(ch, b); /* likewise */
	for (i = 0; i < GLEXCH_LOANS; i++) {
		if (ch->loans[i].recalled && ch->loans[i].conn)
			glexch_loan_answer(ch, &ch->loans[i]);
		if (ch->loans[i].put_fails && ch->loans[i].conn)
			glexch_loan_put_fails(ch, &ch->loans[i]);
	}
}

/* The connection ends: before its queue is dropped, and after its GETs. */
void glexch_lend_drop(struct glexch_conn *conn, int tell)
{
	struct glexch *ch = conn->ch;
	struct glexch_borrowed *b;
	uint32_t i;

	for (i = 0; ch->loans_out && i < GLEXCH_LOANS; i++) {
		struct glexch_loan *loan = &ch->loans[i];
		struct glexch_item *item = loan->item;
		int told = loan->told;

		if (loan->conn != conn)
			continue;
		glexch_loan_put(ch, loan);
		if (tell && told) /* else the queue has it */
			item->done(conn, item, 1);
	}
	for (b = ch->borrowed; conn->paused && b && b->conn != conn;)
		b = b->next;
	if (!conn->paused || !b)
		return;
	glexch_borrowed_unlink(ch, b);
	if (b->placing) {
		glexch_revoke(ch, b->buf, b->n, &b->place);
		ch->placing--;
	}
	if (b->n)
		ch->ops->landed(conn, b->buf, 0, 0);
	free(b);
}
