/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sr.c - the shared channel: what is sent as which packet, and what arrives.
 *
 *      up to 104 bytes             DATA
 *      up to GLEXCH_SPLIT_MAX      several DATA: cheaper than a block and a GET
 *      more                        BLOCK after BLOCK; while the receiver pulls one
 *                                  the sender fills the next
 *
 * A connection that cannot send for want of
 *      a credit        waits for one: its arrival puts it on the run queue
 *      a block, or
 *      room in the DQ  stays on the run queue: each round tries it again
 *
 * I1  slow is 0 only if nothing of this connection may go before a new packet.
 * I2  The sender is inside a connection once: a done callback that sends finds
 *     SLOW_ACTIVE or SLOW_QUEUE and queues behind.
 * I3  What a packet takes (credit, sequence number, bytes of the cursor) is
 *     taken when the post has succeeded, and then for good.
 * I4  An item is off the queue before its done callback: it may be gone after.
 */
#include "chan_priv.h"

#define GLEXCH_SPLIT_MAX    (5u * GLEXCH_MP_BODY)
#define GLEXCH_ER_LONG	    (3072u + GLEXCH_MP_BODY) /* a message that is longer goes by blocks, if the ring fills */
#define GLEXCH_ER_REST	    1536u		     /* what is left of one the same */
#define GLEXCH_BUSY_TRIES   64
#define GLEXCH_BLOCKS_SPARE 1  /* are left to those who have nothing but blocks */
#define GLEXCH_RUN_MAX	    16 /* connections served in one round */

/* ---- cursor -------------------------------------------------------------- */

void glexch_cursor_init(struct glexch_cursor *cur, const struct iovec *iov, int cnt)
{
	int i;

	cur->iov = iov;
	cur->off = 0;
	cur->left = 0;
	for (i = 0; i < cnt; i++)
		cur->left += iov[i].iov_len;
}

/* Copies the next n bytes to dst, or just skips them. */
void glexch_cursor_copy(struct glexch_cursor *cur, uint8_t *dst, size_t n)
{
	cur->left -= n;
	while (n) {
		size_t here = cur->iov->iov_len - cur->off;

		if (here > n)
			here = n;
		if (dst) {
			memcpy(dst, (const uint8_t *)cur->iov->iov_base + cur->off, here);
			dst += here;
		}
		n -= here;
		cur->off += here;
		if (cur->off == cur->iov->iov_len) {
			cur->iov++;
			cur->off = 0;
		}
	}
}

/* ---- one packet ---------------------------------------------------------- */

glex_ret_t glexch_post_mp(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t body_len)
{
	struct glex_imm_mp_req req;
	int tries = GLEXCH_BUSY_TRIES;
	glex_ret_t ret;

	req.rmt_ep_addr.v = conn->peer;
	req.data = mp;
	req.len = (uint32_t)sizeof(mp->hdr) + body_len;
	req.flag = conn->parting || (mp->hdr.type & GLEXCH_MP_TYPE) == GLEXCH_MP_ER ? GLEX_FLAG_FENCE : 0;
	req.next = NULL;
	do
		ret = glex_send_imm_mp(conn->ch->ep, &req, NULL);
	while (ret == GLEX_BUSY && --tries);
	return ret;
}

static void glexch_sr_header(struct glexch_conn *conn, struct glexch_mp *mp, enum glexch_mp_type type)
{
	const struct glexch_mp_hdr hdr = {
		.type = (uint8_t)(type | (conn->credits == 1 ? GLEXCH_MP_MORE : 0) | (conn->saw ? GLEXCH_MP_SAW : 0) |
				  (conn->accepted ? GLEXCH_MP_ANSWER : 0)),
		.credits = (uint8_t)conn->owed,
		.seq = conn->tx_seq,
		.tag = conn->tx_tag,
	};

	glexch_store_header(mp, hdr);
}

/* A sequenced packet that has its header: posts it and pays for it. */
static enum glexch_step glexch_sr_post(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t body_len)
{
	glex_ret_t ret = glexch_post_mp(conn, mp, body_len);

	if (ret == GLEX_SUCCESS) { /* I3 */
		conn->owed = (uint16_t)(conn->owed - mp->hdr.credits);
		conn->tx_seq++;
		conn->credits--;
		conn->saw = 0;
		if ((uint16_t)(conn->tx_seq - conn->er_mark) == conn->ch->er_after && conn->ch->er_max)
			glexch_er_consider(conn);
		return GLEXCH_STEP_OK;
	}
	if (ret == GLEX_BUSY)
		return GLEXCH_STEP_NO_ROOM;
	glexch_conn_fail(conn, glex_error_str(ret));
	return GLEXCH_STEP_FAILED;
}

static enum glexch_step glexch_sr_hello(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_mp mp;
	struct glexch_hello *hello = &mp.u.hello;
	enum glexch_step step;

	glexch_sr_header(conn, &mp, GLEXCH_MP_HELLO);
	hello->pool = ch->pool_mh.v;
	hello->key = ch->key;
	hello->block_size = ch->block_size;
	hello->grant = (uint8_t)(conn->counted ? ch->start_grant : GLEXCH_START_FOREIGN);
	hello->counted = conn->counted;
	hello->zero = 0;
	hello->blob_len = (uint8_t)ch->ops->identify(conn, hello->blob);
	step = glexch_sr_post(conn, &mp, (uint32_t)offsetof(struct glexch_hello, blob) + hello->blob_len);
	if (step == GLEXCH_STEP_OK)
		conn->slow &= (uint8_t)~GLEXCH_SLOW_HELLO;
	return step;
}

static enum glexch_step glexch_sr_data(struct glexch_conn *conn, struct glexch_cursor *cur)
{
	struct glexch_cursor c = *cur;
	size_t n = c.left < GLEXCH_MP_BODY ? c.left : GLEXCH_MP_BODY;
	struct glexch_mp mp;
	enum glexch_step step;

	glexch_sr_header(conn, &mp, GLEXCH_MP_DATA);
	glexch_cursor_copy(&c, mp.u.bytes, n);
	step = glexch_sr_post(conn, &mp, (uint32_t)n);
	if (step == GLEXCH_STEP_OK) {
		*cur = c;
		glexch_count(conn->ch, GLEXCH_WAY_SR_MP, n);
	}
	return step;
}

static enum glexch_step glexch_sr_block(struct glexch_conn *conn, struct glexch_cursor *cur)
{
	struct glexch *ch = conn->ch;
	struct glexch_cursor c = *cur;
	uint32_t index = glexch_block_take(&ch->tx);
	struct glexch_mp mp;
	struct glexch_block_ref *ref = &mp.u.block;
	size_t inl = 0;
	enum glexch_step step;

	if (index == GLEXCH_NONE)
		return GLEXCH_STEP_NO_ROOM;
	glexch_sr_header(conn, &mp, GLEXCH_MP_BLOCK);
	if (c.off == 0 && c.iov->iov_len <= GLEXCH_BLOCK_INLINE) /* a header: the data behind it stays aligned */
		inl = c.iov->iov_len;
	glexch_cursor_copy(&c, ref->inl, inl);
	ref->handle = ch->pool_mh.v;
	ref->offset = glexch_block_offset(ch, &ch->tx, index);
	ref->len = (uint32_t)(c.left < conn->tx_block ? c.left : conn->tx_block);
	ref->index = index;
	ref->gen = ch->tx.tab[index].gen;
	ch->tx.tab[index].conn = conn;
	glexch_cursor_copy(&c, glexch_block_mem(ch, &ch->tx, index), ref->len);
	step = glexch_sr_post(conn, &mp, (uint32_t)(GLEXCH_BLOCK_FIXED + inl));
	if (step == GLEXCH_STEP_OK) {
		*cur = c;
		glexch_count(ch, GLEXCH_WAY_SR_BLOCK, inl + ref->len);
	} else if (step == GLEXCH_STEP_NO_ROOM) { /* on failure glexch_conn_fail has put it back */
		glexch_block_put(&ch->tx, index);
	}
	return step;
}

/* What an item lends, with what is left before it, its header. */
static enum glexch_step glexch_sr_lent(struct glexch_conn *conn, struct glexch_item *item)
{
	struct glexch_cursor c = item->cur;
	size_t inl = c.left;
	struct glexch_mp mp;
	enum glexch_step step;

	if (!conn->credits)
		return GLEXCH_STEP_NO_CREDIT;
	glexch_sr_header(conn, &mp, GLEXCH_MP_LENT);
	glexch_cursor_copy(&c, mp.u.block.inl, inl);
	glexch_lend_describe(conn->ch, item, &mp.u.block);
	step = glexch_sr_post(conn, &mp, (uint32_t)(GLEXCH_BLOCK_FIXED + inl));
	if (step == GLEXCH_STEP_OK)
		item->cur = c;
	return step;
}

static enum glexch_step glexch_sr_ready(const struct glexch_conn *conn)
{
	if (conn->slow & (GLEXCH_SLOW_HELLO | GLEXCH_SLOW_STRANGER | GLEXCH_SLOW_FAILED | GLEXCH_SLOW_DEAD))
		return GLEXCH_STEP_FAILED;
	return conn->credits ? GLEXCH_STEP_OK : GLEXCH_STEP_NO_CREDIT;
}

/* A packet of the connection itself, with a small number.  0: not now. */
int glexch_sr_control(struct glexch_conn *conn, enum glexch_mp_type type, uint8_t value)
{
	struct glexch_mp mp;

	if (glexch_sr_ready(conn) != GLEXCH_STEP_OK)
		return 0;
	glexch_sr_header(conn, &mp, type);
	mp.u.given = value;
	return glexch_sr_post(conn, &mp, sizeof(mp.u.given)) == GLEXCH_STEP_OK;
}

/* The peer has asked for what is not needed here. */
static enum glexch_step glexch_sr_give(struct glexch_conn *conn)
{
	uint8_t n = glexch_credit_spare(conn);

	if (!glexch_sr_control(conn, GLEXCH_MP_GIVE, n))
		return conn->slow & GLEXCH_SLOW_FAILED ? GLEXCH_STEP_FAILED : GLEXCH_STEP_NO_ROOM;
	conn->credits = (uint16_t)(conn->credits - n);
	return GLEXCH_STEP_OK;
}

static enum glexch_step glexch_sr_say_hold(struct glexch_conn *conn)
{
	if (glexch_sr_control(conn, GLEXCH_MP_HOLD, conn->hold))
		return GLEXCH_STEP_OK;
	return conn->slow & GLEXCH_SLOW_FAILED ? GLEXCH_STEP_FAILED : GLEXCH_STEP_NO_ROOM;
}

static enum glexch_step glexch_sr_say_er(struct glexch_conn *conn, enum glexch_say what)
{
	struct glexch_mp mp;
	enum glexch_step step;

	glexch_sr_header(conn, &mp, GLEXCH_MP_ER);
	if (!glexch_er_describe(conn, what, &mp.u.er))
		return GLEXCH_STEP_OK;
	step = glexch_sr_post(conn, &mp, sizeof(mp.u.er));
	if (step == GLEXCH_STEP_OK)
		glexch_er_said(conn, what);
	return step;
}

/* Sends what the connection has to say for itself. */
static enum glexch_step glexch_sr_say(struct glexch_conn *conn)
{
	enum glexch_step step = GLEXCH_STEP_OK;

	while (conn->to_say && (step = glexch_sr_ready(conn)) == GLEXCH_STEP_OK) {
		enum glexch_say what = (enum glexch_say)(conn->to_say & -conn->to_say);

		if (what == GLEXCH_SAY_GIVE)
			step = glexch_sr_give(conn);
		else if (what == GLEXCH_SAY_HOLD)
			step = glexch_sr_say_hold(conn);
		else
			step = glexch_sr_say_er(conn, what);
		if (step != GLEXCH_STEP_OK)
			break;
		conn->to_say &= (uint8_t)~what;
	}
	return step;
}

/* Has it sent as soon as possible, by the next round. */
void glexch_say(struct glexch_conn *conn, enum glexch_say what)
{
	if (conn->parted)
		return;
	conn->to_say |= (uint8_t)what;
	glexch_sr_wake(conn);
}

/* Is it there?  This moves nothing, needs no credit, and comes to nothing if the peer is gone. */
void glexch_sr_probe(struct glexch_conn *conn)
{
	struct glex_rdma_req req = {0};
	glex_ret_t ret;

	req.rmt_ep_addr.v = conn->peer;
	req.rmt_mh.v = conn->pool;
	req.rmt_key = conn->key;
	req.type = GLEX_RDMA_TYPE_GET;
	ret = glex_rdma(conn->ch->ep, &req, NULL);
	if (ret != GLEX_SUCCESS && ret != GLEX_BUSY)
		glexch_conn_fail(conn, glex_error_str(ret));
}

/* Whether a block can carry it, and sooner than a ring that is full. */
static int glexch_sr_may_block(const struct glexch_conn *conn, const struct glexch_cursor *cur)
{
	size_t waits = glexch_cursor_at_header(conn->ch, cur) ? GLEXCH_ER_LONG : GLEXCH_ER_REST;

	return cur->left > waits && conn->credits && conn->ch->tx.free > GLEXCH_BLOCKS_SPARE;
}

/*
 * Where there is a ring.  Messages that follow on one another, and have filled half of it, go by blocks, so
 * that the sender need not wait; the longest rather wait for a block.  For short ones a block takes both sides
 * longer than to wait for the ring; of 3.5 KiB and more, windows in both directions at a time are a fifth faster by
 * blocks, in one direction they take as long (distant processors).
 */
static enum glexch_step glexch_sr_ring_step(struct glexch_conn *conn, struct glexch_cursor *cur)
{
	int may_block = glexch_sr_may_block(conn, cur);
	enum glexch_step step;

	if (!conn->er->begun && glexch_er_is_half_full(conn->er)) {
		if (may_block)
			return glexch_sr_block(conn, cur);
		if (cur->left > conn->tx_block && conn->credits)
			return GLEXCH_STEP_NO_ROOM;
	}
	step = glexch_er_step(conn, cur);
	return step == GLEXCH_STEP_NO_CREDIT && may_block ? glexch_sr_block(conn, cur) : step;
}

/* Sends one packet of what is left at cur. */
static enum glexch_step glexch_sr_step(struct glexch_conn *conn, struct glexch_cursor *cur)
{
	if (glexch_er_usable(conn))
		return glexch_sr_ring_step(conn, cur);
	if (!conn->credits)
		return GLEXCH_STEP_NO_CREDIT;
	if (conn->slow & GLEXCH_SLOW_HELLO)
		return glexch_sr_hello(conn);
	if (cur->left <= GLEXCH_SPLIT_MAX)
		return glexch_sr_data(conn, cur);
	return glexch_sr_block(conn, cur);
}

/* ---- sending now --------------------------------------------------------- */

/* Fills in a header and what follows it.  0: that is too long; the length of the body else. */
static size_t glexch_sr_short(struct glexch_conn *conn, struct glexch_mp *mp, const void *hdr, size_t hdr_len,
			      size_t room, const void *data, size_t len)
{
	if (room == conn->ch->header && !len) {
		glexch_sr_header(conn, mp, GLEXCH_MP_SHORT);
		glexch_copy_few(mp->u.bytes, hdr, hdr_len);
		return hdr_len;
	}
	if (room == conn->ch->header && hdr_len + len <= GLEXCH_SPLIT_ROOM) {
		glexch_sr_header(conn, mp, GLEXCH_MP_SPLIT);
		mp->u.split.header = (uint8_t)hdr_len;
		glexch_copy_few(mp->u.split.bytes, hdr, hdr_len);
		glexch_copy_few(mp->u.split.bytes + hdr_len, data, len);
		return 1 + hdr_len + len;
	}
	if (room + len > GLEXCH_MP_BODY)
		return 0;
	glexch_sr_header(conn, mp, GLEXCH_MP_DATA);
	memcpy(mp->u.bytes, hdr, hdr_len);
	memset(mp->u.bytes + hdr_len, 0, room - hdr_len);
	if (len)
		memcpy(mp->u.bytes + room, data, len);
	return room + len;
}

/* Apart: what goes by the ring is to find few registers in use. */
static __attribute__((noinline)) int glexch_sr_try_short(struct glexch_conn *conn, const void *hdr, size_t hdr_len,
							 size_t room, const void *data, size_t len)
{
	struct glexch_mp mp;
	size_t body;

	if (!conn->credits)
		return 0;
	body = glexch_sr_short(conn, &mp, hdr, hdr_len, room, data, len);
	if (!body || glexch_sr_post(conn, &mp, (uint32_t)body) != GLEXCH_STEP_OK)
		return 0;
	glexch_count(conn->ch, GLEXCH_WAY_SR_MP, room + len);
	return 1;
}

int glexch_try_short(struct glexch_conn *conn, const void *hdr, size_t hdr_len, size_t room, const void *data,
		     size_t len)
{
	if (conn->slow) /* I1 */
		return 0;
	return glexch_er_usable(conn) ? glexch_er_try_short(conn, hdr, hdr_len, room, data, len)
				      : glexch_sr_try_short(conn, hdr, hdr_len, room, data, len);
}

/* rec[0] has room for what either channel puts before a header: that of a record, or of an MP. */
int glexch_try_brief(struct glexch_conn *conn, uint64_t *rec, uint32_t words)
{
	struct glexch_mp *mp = (struct glexch_mp *)(void *)rec;
	int er = glexch_er_usable(conn);

	if (conn->slow) /* I1 */
		return 0;
	if (er && !glexch_er_try_brief(conn, rec, words))
		return 0;
	if (!er) {
		if (!conn->credits)
			return 0;
		glexch_sr_header(conn, mp, GLEXCH_MP_SHORT);
		if (glexch_sr_post(conn, mp, words * 8) != GLEXCH_STEP_OK)
			return 0;
	}
	glexch_count(conn->ch, er ? GLEXCH_WAY_ER_IMM : GLEXCH_WAY_SR_MP, conn->ch->header);
	return 1;
}

void glexch_try(struct glexch_conn *conn, struct glexch_cursor *cur)
{
	if (conn->slow & ~GLEXCH_SLOW_HELLO)
		return;
	conn->slow |= GLEXCH_SLOW_ACTIVE;
	while (cur->left && glexch_sr_step(conn, cur) == GLEXCH_STEP_OK)
		;
	conn->slow &= (uint8_t)~GLEXCH_SLOW_ACTIVE;
}

/* ---- the queue ----------------------------------------------------------- */

static void glexch_runq_add(struct glexch_conn *conn)
{
	struct glexch_connq *q = &conn->ch->runq;

	if (conn->place == GLEXCH_ON_RUNQ)
		return;
	conn->place = GLEXCH_ON_RUNQ;
	conn->run_next = NULL;
	if (q->head)
		q->tail->run_next = conn;
	else
		q->head = conn;
	q->tail = conn;
}

static struct glexch_conn *glexch_runq_pop(struct glexch *ch)
{
	struct glexch_conn *conn = ch->runq.head;

	ch->runq.head = conn->run_next;
	conn->place = GLEXCH_NOWHERE;
	return conn;
}

static void glexch_runq_remove(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_conn **p, *prev = NULL;

	if (conn->place != GLEXCH_ON_RUNQ)
		return;
	for (p = &ch->runq.head; *p != conn; p = &(*p)->run_next)
		prev = *p;
	*p = conn->run_next;
	if (ch->runq.tail == conn)
		ch->runq.tail = prev;
	conn->place = GLEXCH_NOWHERE;
}

/* There is something to be sent, though nothing may be queued. */
void glexch_sr_wake(struct glexch_conn *conn)
{
	glexch_runq_add(conn);
}

/* Something it may have waited for has come. */
void glexch_sr_kick(struct glexch_conn *conn)
{
	if ((conn->slow & GLEXCH_SLOW_QUEUE) || conn->to_say)
		glexch_runq_add(conn);
}

static void glexch_queue_push(struct glexch_conn *conn, struct glexch_item *item)
{
	item->next = NULL;
	if (conn->tx_head)
		conn->tx_tail->next = item;
	else
		conn->tx_head = item;
	conn->tx_tail = item;
	conn->slow |= GLEXCH_SLOW_QUEUE;
}

/* The first item is accepted: tells its owner.  It may come back with more. */
static void glexch_queue_finish(struct glexch_conn *conn)
{
	struct glexch_item *item = conn->tx_head;

	conn->tx_head = item->next; /* I4 */
	if (item->loan) {
		glexch_lend_told(conn->ch, item);
		return;
	}
	if (!item->done(conn, item, 0) || (conn->slow & GLEXCH_SLOW_DEAD))
		return;
	if (conn->slow & GLEXCH_SLOW_FAILED) {
		item->done(conn, item, 1);
		return;
	}
	item->next = conn->tx_head;
	if (!conn->tx_head)
		conn->tx_tail = item;
	conn->tx_head = item;
}

/* Sends the first item as far as it goes. */
static enum glexch_step glexch_queue_step(struct glexch_conn *conn)
{
	struct glexch_item *item = conn->tx_head;
	enum glexch_step step = GLEXCH_STEP_OK;

	while (step == GLEXCH_STEP_OK && item->cur.left > (item->loan ? GLEXCH_BLOCK_INLINE : 0))
		step = glexch_sr_step(conn, &item->cur);
	if (step == GLEXCH_STEP_OK && item->loan)
		step = glexch_sr_lent(conn, item);
	return step;
}

/* Sends from the queue until it is empty or something is missing. */
static enum glexch_step glexch_queue_run(struct glexch_conn *conn)
{
	const uint8_t gone = GLEXCH_SLOW_FAILED | GLEXCH_SLOW_DEAD;
	enum glexch_step step = GLEXCH_STEP_OK;

	if (conn->slow & (gone | GLEXCH_SLOW_ACTIVE | GLEXCH_SLOW_STRANGER)) /* I2 */
		return GLEXCH_STEP_OK;
	conn->slow |= GLEXCH_SLOW_ACTIVE;
	if ((conn->slow & GLEXCH_SLOW_HELLO) && conn->credits)
		step = glexch_sr_hello(conn);
	if (conn->to_say && step == GLEXCH_STEP_OK) {
		step = glexch_sr_say(conn);
		if (step == GLEXCH_STEP_NO_CREDIT && glexch_er_usable(conn))
			step = GLEXCH_STEP_OK; /* the queue can go on without */
	}
	while (conn->tx_head && step == GLEXCH_STEP_OK && !(conn->slow & gone)) {
		step = glexch_queue_step(conn);
		if (step == GLEXCH_STEP_OK)
			glexch_queue_finish(conn);
	}
	conn->slow &= (uint8_t)~GLEXCH_SLOW_ACTIVE;
	if (conn->to_say && conn->credits && !(conn->slow & gone))
		glexch_runq_add(conn); /* said meanwhile: a round inside a done callback found this active */
	if (!conn->tx_head)
		conn->slow &= (uint8_t)~GLEXCH_SLOW_QUEUE;
	if (!conn->tx_head && conn->draining && !(conn->slow & gone) && !glexch_lend_has(conn))
		conn->ch->ops->drained(conn);
	return step;
}

void glexch_queue(struct glexch_conn *conn, struct glexch_item *item)
{
	item->loan = 0;
	if (conn->slow & GLEXCH_SLOW_FAILED) {
		item->done(conn, item, 1);
		return;
	}
	glexch_queue_push(conn, item);
	if (conn->credits || glexch_er_usable(conn)) {
		conn->ch->stats.room_waits++;
		glexch_runq_add(conn);
	} else {
		conn->ch->stats.credit_waits++;
	}
}

/* An item of glexch_lend: sent at once, if that can be. */
void glexch_queue_now(struct glexch_conn *conn, struct glexch_item *item)
{
	glexch_queue_push(conn, item);
	if (glexch_queue_run(conn) == GLEXCH_STEP_NO_ROOM || (conn->slow & GLEXCH_SLOW_ACTIVE))
		glexch_runq_add(conn);
}

/* Serves the run queue; the first that finds no room ends the round, the next round begins with another. */
void glexch_sr_run(struct glexch *ch)
{
	int n;

	for (n = 0; n < GLEXCH_RUN_MAX && ch->runq.head; n++) {
		struct glexch_conn *conn = glexch_runq_pop(ch);

		if (glexch_queue_run(conn) == GLEXCH_STEP_NO_ROOM) {
			glexch_runq_add(conn);
			return;
		}
	}
}

/* Empties the queue of a connection that sends no more. */
void glexch_sr_drop(struct glexch_conn *conn, int tell)
{
	glexch_runq_remove(conn);
	while (conn->tx_head) {
		struct glexch_item *item = conn->tx_head;

		conn->tx_head = item->next; /* I4 */
		if (tell)
			item->done(conn, item, 1);
	}
	conn->slow &= (uint8_t)~GLEXCH_SLOW_QUEUE;
}

void glexch_conn_announce(struct glexch_conn *conn)
{
	glexch_sr_wake(conn);
}

void glexch_conn_part(struct glexch_conn *conn, int last)
{
	conn->parting = 1;
	if (!last || (glexch_er_lines_due(conn) && glexch_er_return(conn) != GLEX_SUCCESS))
		return;
	conn->parted = 1;
	conn->to_say = 0;
}

void glexch_conn_drain(struct glexch_conn *conn)
{
	conn->draining = 1;
	if (!(conn->slow & (GLEXCH_SLOW_QUEUE | GLEXCH_SLOW_ACTIVE)) && !glexch_lend_has(conn))
		conn->ch->ops->drained(conn);
}

/* ---- receiving ----------------------------------------------------------- */

/* Lengths are checked before anything in a packet is believed. */
static int glexch_sr_sane(const struct glexch *ch, const struct glexch_mp *mp, uint32_t len)
{
	uint32_t body = len - (uint32_t)sizeof(mp->hdr);

	if (len < sizeof(mp->hdr) || len > sizeof(*mp))
		return 0;
	switch (mp->hdr.type & GLEXCH_MP_TYPE) {
	case GLEXCH_MP_DATA:
		return body > 0;
	case GLEXCH_MP_SHORT:
		return body <= ch->header;
	case GLEXCH_MP_ASK:
	case GLEXCH_MP_GIVE:
	case GLEXCH_MP_HOLD:
		return body == sizeof(mp->u.given);
	case GLEXCH_MP_SPLIT:
		return body >= 1 && mp->u.split.header <= body - 1 && mp->u.split.header <= ch->header;
	case GLEXCH_MP_ER:
		return body == sizeof(mp->u.er);
	case GLEXCH_MP_BLOCK:
		return body >= GLEXCH_BLOCK_FIXED && mp->u.block.len > 0 && mp->u.block.len <= ch->block_size;
	case GLEXCH_MP_LENT:
		return body >= GLEXCH_BLOCK_FIXED && mp->u.block.len > 0 && ch->ops->land;
	case GLEXCH_MP_HELLO:
		return body >= offsetof(struct glexch_hello, blob) && mp->u.hello.blob_len <= GLEXCH_BLOB_MAX &&
		       mp->u.hello.blob_len == body - offsetof(struct glexch_hello, blob);
	case GLEXCH_MP_CREDIT:
		return 1;
	default:
		return 0;
	}
}

/* Hands a header over that came without its zeros, and len bytes behind it, up to GLEXCH_ER_GATHER: as a stream. */
void glexch_data_short(struct glexch_conn *conn, const void *header, size_t header_len, const void *bytes, size_t len)
{
	uint64_t whole[(GLEXCH_MP_BODY + GLEXCH_ER_GATHER) / 8];
	uint8_t *p = (uint8_t *)whole;
	uint32_t room = conn->ch->header;

	glexch_clear_words(whole, GLEXCH_MP_BODY / 8);
	glexch_copy_few(p, header, header_len);
	glexch_copy_some(p + room, bytes, len);
	conn->ch->ops->data(conn, p, room + len);
}

/* A header, which is not aligned there, and len bytes behind it. */
static inline void glexch_sr_hand_split(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t len)
{
	const struct glexch_ops *ops = conn->ch->ops;
	uint32_t header = mp->u.split.header;
	uint8_t *bytes = mp->u.split.bytes + header;
	uint64_t head[GLEXCH_MP_BODY / 8];

	glexch_copy_few(head, mp->u.split.bytes, header);
	if (!ops->packet || !ops->packet(conn, head, header, bytes, len))
		glexch_data_short(conn, head, header, bytes, len);
}

/* One of the three that carry nothing but bytes. */
void glexch_sr_hand_over(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t body_len)
{
	const struct glexch_ops *ops = conn->ch->ops;

	switch (mp->hdr.type & GLEXCH_MP_TYPE) {
	case GLEXCH_MP_SHORT:
		if (!ops->packet || !ops->packet(conn, mp->u.bytes, body_len, NULL, 0))
			glexch_data_short(conn, mp->u.bytes, body_len, NULL, 0);
		break;
	case GLEXCH_MP_SPLIT:
		glexch_sr_hand_split(conn, mp, body_len - 1 - mp->u.split.header);
		break;
	default:
		ops->data(conn, mp->u.bytes, body_len);
	}
}

static void glexch_sr_deliver_now(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t body_len)
{
	conn->rx_seq++;
	conn->delivering = 1;
	glexch_sr_hand_over(conn, mp, body_len);
	conn->delivering = 0;
	if (conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED))
		return;
	glexch_credit_owe(conn);
	if (conn->rx)
		glexch_seq_deliver(conn);
}

/* One with a block, in order: 1: it is delivered, or the connection is gone. */
static int glexch_sr_place_now(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t *body_len)
{
	int placed;

	conn->delivering = 1;
	placed = glexch_block_place(conn, mp, body_len);
	conn->delivering = 0;
	if (conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED))
		return 1;
	if (!placed)
		return 0;
	conn->rx_seq++;
	glexch_credit_owe(conn);
	if (conn->rx)
		glexch_seq_deliver(conn);
	return 1;
}

/* What any packet tells, whatever else it is. */
void glexch_sr_take(struct glexch_conn *conn, uint8_t credits, int saw)
{
	conn->heard = 1;
	conn->hot = 1;
	if (saw)
		conn->unread = 0;
	if (credits) {
		conn->credits = (uint16_t)(conn->credits + credits);
		glexch_sr_kick(conn);
	}
}

/* One MP.  mp points into the MPQ and is good until the end of the round. */
void glexch_sr_receive(struct glexch *ch, uint64_t peer, struct glexch_mp *mp, uint32_t len)
{
	struct glexch_conn *conn = ch->last;
	uint32_t body_len = len - (uint32_t)sizeof(mp->hdr);
	int type = mp->hdr.type & GLEXCH_MP_TYPE;

	if (!glexch_sr_sane(ch, mp, len))
		return;
	if (!conn || conn->peer != peer || conn->rx_tag != mp->hdr.tag)
		conn = glexch_conn_source(ch, peer, &mp->hdr);
	if (!conn || (conn->slow & GLEXCH_SLOW_FAILED))
		return;
	ch->last = conn;
	glexch_sr_take(conn, mp->hdr.credits, mp->hdr.type & GLEXCH_MP_SAW);
	if (type == GLEXCH_MP_CREDIT) {
		conn->saw = 1;
		return;
	}
	if (mp->hdr.type & GLEXCH_MP_MORE)
		glexch_credit_more(conn);
	if (mp->hdr.seq == conn->rx_seq && !conn->rx && !conn->delivering && conn->bound) {
		if (type == GLEXCH_MP_DATA || type == GLEXCH_MP_SHORT || type == GLEXCH_MP_SPLIT) {
			glexch_sr_deliver_now(conn, mp, body_len);
			return;
		}
		if (type == GLEXCH_MP_BLOCK && ch->fetches && glexch_sr_place_now(conn, mp, &body_len))
			return;
	}
	if (glexch_seq_insert(conn, mp, body_len))
		glexch_seq_deliver(conn);
	else
		glexch_conn_fail(conn, "a packet came twice or out of any order");
}
