/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * er.c - the exclusive channel: rings that one peer alone writes, by PUT.
 *
 * Two processes that talk a lot have a ring in each other's memory.  It consists
 * of lines of 64 bytes.  A record begins on a line:
 *
 *      | header, 8 bytes | stream bytes | mark |    one immediate PUT: up to 80 stream bytes, or 1,008, or 1,072
 *      | stream bytes ...      |                     further lines, if there are more
 *
 * What is in further lines is PUT first, and then, with a fence, the header: who
 * finds the header with its mark has all of it.  Of one PUT he sees the header come before the mark, and
 * asks for the other lines while they are being written.  That is faster up to a kilobyte, which is gathered in
 * answers, for which somebody waits; lines of a longer PUT he would take from a sender who is not done with them
 * (2 KiB: 350 ns instead of 305, 2.0 us instead of 1.3 between distant processors).  In the header: the number in
 * the stream, both lengths, how the first bytes are to be taken, and what is
 * returned of credits.
 *
 *      ring:  [ record | record | record |  ...          | record ][ tail ][ word ]
 *               ^ rx_line: the next            runs into the tail; the next is at the start, a lap later
 *
 * In the last line of a ring its sender says how much it has read of the other ring: a word that is
 * looked at whenever the other has no lines left, in the middle of sending too.  Each record says the
 * same, in ten bits.  Who writes where, and when: er_room.h.
 *
 * Where the NIC lets us (glex_put_place), messages of up to 4 KiB are made up in the ring, without a call that copies.
 * Else, where the endpoint can, bytes go straight from the caller's memory
 * (glex_inject), and immediate PUTs are longer: up to a kilobyte to gather them with
 * their header costs less than another PUT.  Else they go from a copy of the ring
 * that the sender keeps: a line of it is rewritten when the receiver has returned
 * the line, so the PUT has long ended.
 *
 * A long message is several records: while the receiver reads one, the sender writes the
 * next.  A stream of messages that fills half of the ring goes on by blocks (sr.c), but for
 * the short ones.
 *
 * What travels between cores is the lines of a record, of most (`brief`) one.  The peer
 * has them, from the last lap and from polling: so the sender asks for the first before
 * the message is made up (glexch_expect), and the receiver for the others when the first has come.
 *
 * I1  Each record validates itself: its mark is the last word of its PUT, and no
 *     word a ring ever held is the mark of another record, or of this one on another line (a
 *     secret of the receiver, the number of the record and its line make it).  So PUTs may arrive in
 *     any order, and what is in the midst of a record at the start, where the receiver looks for another, is none.
 * I2  The word that is polled, and what is inline with it, is written by immediate
 *     PUTs only, or stored as by one (glex_put_place): whole words, of which the mark is the last.
 * I3  Lines are counted: sent, read, said to be read; of each no more than of the one before.  Who owes
 *     GLEXCH_ER_OWED of a stream, or half of the ring, PUTs the word; the hand does for any, when no record has come for
 *     a while: the peer may wait for those.
 *     It counts all there ever were, so nothing is lost if the sender misses some;
 *     and goes behind all that was PUT before (a fence), so it never goes back.
 * I4  tx_heard is not ahead of what the peer has read.  The ten bits of a record move it on to the first
 *     number that ends with them.  The word's number takes its place, if all has been delivered that the
 *     peer sent before that: what comes later was sent when as much had been read.  Else it stays behind.
 * I5  A record is delivered when its number is next in the stream of the
 *     connection, whichever way what is before it came.
 */
#include "chan_priv.h"
#include "er_head.h"
#include "er_room.h"

#define GLEXCH_ER_TRIES	 64
#define GLEXCH_ER_BATCH	 16 /* records of one ring in one round */
#define GLEXCH_ER_OWED	 10u
#define GLEXCH_ER_STREAM 2 /* records without an answer */

/* ---- sending ------------------------------------------------------------- */

/*
 * Bytes of ours to place `at` in the ring of the peer.  Filled in place: a copy of
 * the whole would wait until its words, stored one by one, have left for the cache,
 * and all that was stored before them.
 */
static inline void glexch_er_describe_put(struct glex_imm_rdma_req *req, const struct glexch_conn *conn, uint32_t at,
					  const void *data, uint32_t len, int flag)
{
	req->rmt_ep_addr.v = conn->peer;
	req->data = (void *)(uintptr_t)data;
	req->len = len;
	req->rmt_mh = conn->er->tx_ring;
	req->rmt_offset = at;
	req->rmt_key = conn->key;
	req->flag = flag;
	req->next = NULL;
}

/* flag: GLEX_FLAG_FENCE, behind what was PUT before of the record or of the stream; or 0. */
static inline glex_ret_t glexch_er_imm(struct glexch_conn *conn, uint32_t line, const void *data, uint32_t len,
				       int flag)
{
	struct glex_imm_rdma_req req;
	int tries = GLEXCH_ER_TRIES;
	glex_ret_t ret;

	glexch_er_describe_put(&req, conn, line * GLEXCH_LINE, data, len, flag);
	do
		ret = len > GLEXCH_ER_IMM ? glex_inject(conn->ch->ep, &req) : glex_imm_rdma(conn->ch->ep, &req, NULL);
	while (ret == GLEX_BUSY && --tries);
	return ret;
}

static enum glexch_step glexch_er_step_of(struct glexch_conn *conn, glex_ret_t ret)
{
	if (ret == GLEX_SUCCESS)
		return GLEXCH_STEP_OK;
	if (ret == GLEX_BUSY)
		return GLEXCH_STEP_NO_ROOM;
	glexch_conn_fail(conn, glex_error_str(ret));
	return GLEXCH_STEP_FAILED;
}

/* Where the ring of the peer is mapped, if it is. */
static __attribute__((noinline)) void glexch_er_locate(const struct glexch_conn *conn, struct glexch_er *er)
{
	struct glex_imm_rdma_req req;

	glexch_er_describe_put(&req, conn, 0, NULL, er->tx_lines * GLEXCH_LINE, 0);
	er->tx_at = glex_prefetch_at(conn->ch->ep, &req);
}

/* Who owes so many lines returns them: in a dialogue, where answers say the same, later. */
static inline uint32_t glexch_er_threshold(const struct glexch_er *er)
{
	uint32_t most = er->starts / 2;
	int is_stream = (uint16_t)(er->conn->rx_seq - er->rx_seq) > GLEXCH_ER_STREAM;

	return is_stream && most > GLEXCH_ER_OWED ? GLEXCH_ER_OWED : most;
}

/* There are lines again. */
static inline void glexch_er_end_wait(struct glexch_er *er)
{
	if (er->waits) {
		er->waits = 0;
		glexch_sr_kick(er->conn);
	}
}

/* A record of the peer's came that says with w how far that has read: at the start again if it is all. */
static inline void glexch_er_hear_read(struct glexch_er *er, uint64_t w)
{
	/* I4 */
	er->tx_heard += ((uint32_t)(w >> GLEXCH_ER_AT_READ) - er->tx_heard) & GLEXCH_ER_READ_MASK;
	if ((int32_t)(er->tx_heard - er->tx_read) > 0) {
		er->tx_read = er->tx_heard;
		glexch_er_end_wait(er);
	}
	if (er->tx_heard == er->tx_sent && er->tx_line && !er->begun)
		glexch_er_next_lap(er, 0);
}

/* A record of n lines is out. */
static inline void glexch_er_pay(struct glexch_conn *conn, uint32_t n)
{
	struct glexch_er *er = conn->er;

	if (glexch_er_has_to_return(conn)) {
		conn->owed = 0;
		conn->saw = 0;
	}
	conn->tx_seq++;
	er->tx_mark += GLEXCH_ER_MARK_STEP;
	er->tx_line += n;
	er->tx_sent += n;
	er->rx_seq = conn->rx_seq;
	er->used++;
	if (er->tx_line >= GLEXCH_ER_HOT)
		glexch_er_try_lap(er);
}

/*
 * The header and inline bytes (rec[1] and up) of a record of n lines in all: the
 * record is sent with it, and paid for.
 */
static inline __attribute__((always_inline)) enum glexch_step
glexch_er_commit(struct glexch_conn *conn, uint64_t *rec, const struct glexch_er_head *h, uint32_t n)
{
	const struct glexch_er *er = conn->er;
	uint32_t at = 1 + glexch_round8(h->inl) / 8;
	enum glexch_step step;
	int flag;

	rec[0] = glexch_er_pack(h, conn);
	rec[at] = er->tx_mark + er->tx_line;
	flag = (n > 1 && n > glexch_er_head_lines(h->inl)) || conn->parting ? GLEX_FLAG_FENCE : 0;
	step = glexch_er_step_of(conn, glexch_er_imm(conn, er->tx_line, rec, (at + 1) * 8, flag));
	if (step != GLEXCH_STEP_OK)
		return step;
	glexch_er_pay(conn, n);
	return GLEXCH_STEP_OK;
}

/*
 * Made up in the ring: what is stored elsewhere first, and copied there, waits for its stores, and these for the lines
 * of earlier records.
 */

/* Where the next record of n lines goes; NULL: it has to be PUT. */
static inline uint64_t *glexch_er_put_at(const struct glexch_conn *conn, uint32_t n)
{
	const struct glexch_er *er = conn->er;

	return er->way ? glex_put_place(er->way, er->tx_line * GLEXCH_LINE, n * GLEXCH_LINE) : NULL;
}

static inline void glexch_er_begin_there(const struct glexch_conn *conn, uint64_t *rec, const struct glexch_er_head *h,
					 const void *hdr, size_t hdr_len)
{
	/*
	 * First, for it is in the last line and stores leave in order: behind the header it would keep the rest of the
	 * first line back until the last has come, and the receiver, who sees the header, would take that line meanwhile.
	 * relaxed: nobody looks there before there is a mark
	 */
	__atomic_store_n(&rec[glexch_round8(h->inl) / 8], 0, __ATOMIC_RELAXED); /* the padding of the last word */
	/* relaxed: the mark tells whether it is one */
	__atomic_store_n(rec, glexch_er_pack(h, conn), __ATOMIC_RELAXED);
	glexch_copy_words(rec + 1, hdr, hdr_len);
}

/* It is all there. */
static inline void glexch_er_end_there(struct glexch_conn *conn, uint64_t *rec, const struct glexch_er_head *h,
				       uint32_t n)
{
	/* relaxed: stronger, pairs with glexch_er_look_at: who finds it has all of the record */
	__atomic_store_n(rec + 1 + glexch_round8(h->inl) / 8, conn->er->tx_mark + conn->er->tx_line, __ATOMIC_RELEASE);
	glexch_er_pay(conn, n);
}

/* A header, and data that is inline.  0: this cannot be. */
static inline __attribute__((always_inline)) int glexch_er_make_there(struct glexch_conn *conn,
								      const struct glexch_er_head *h, const void *hdr,
								      size_t hdr_len, const void *data, size_t len,
								      uint32_t n)
{
	uint64_t *rec = glexch_er_put_at(conn, n);

	if (!rec)
		return 0;
	glexch_er_begin_there(conn, rec, h, hdr, hdr_len);
	glexch_copy_data((uint8_t *)(rec + 1) + hdr_len, data, len);
	glexch_er_end_there(conn, rec, h, n);
	return 1;
}

/* The same with the data in further lines, which is first: who finds the header asks for those lines. */
static int glexch_er_make_long_there(struct glexch_conn *conn, const struct glexch_er_head *h, const void *hdr,
				     const void *data, uint32_t n)
{
	uint64_t *rec = glexch_er_put_at(conn, n);

	if (!rec)
		return 0;
	glexch_copy_lines(rec + GLEXCH_LINE / 8, data, h->more);
	glexch_er_begin_there(conn, rec, h, hdr, h->inl);
	glexch_er_end_there(conn, rec, h, n);
	return 1;
}

int glexch_er_try_brief(struct glexch_conn *conn, uint64_t *rec, uint32_t words)
{
	const struct glexch_er_head h = {.inl = words * 8, .kind = GLEXCH_ER_PAD};

	return glexch_er_has_room(conn->er, 1) && (glexch_er_make_there(conn, &h, rec + 1, h.inl, NULL, 0, 1) ||
						   glexch_er_commit(conn, rec, &h, 1) == GLEXCH_STEP_OK);
}

static inline glex_ret_t glexch_er_inject_at(const struct glexch_conn *conn, uint32_t at, const void *data,
					     uint32_t len)
{
	struct glex_imm_rdma_req req;
	int tries = GLEXCH_ER_TRIES;
	glex_ret_t ret;

	glexch_er_describe_put(&req, conn, at, data, len, 0);
	do
		ret = glex_inject(conn->ch->ep, &req);
	while (ret == GLEX_BUSY && --tries);
	return ret;
}

/*
 * A header, and what follows it straight from where it is.  If there is no room for the
 * header, glexch_er_step goes on with the same bytes to the same lines (`begun`): it is of one line here and there.
 */
static int glexch_er_try_long(struct glexch_conn *conn, const void *hdr, uint32_t hdr_len, const void *data,
			      uint32_t len)
{
	const struct glexch_er_head h = {.inl = hdr_len, .more = len, .kind = GLEXCH_ER_PAD};
	uint32_t n = 1 + glexch_lines_of(len);
	uint64_t rec[GLEXCH_LINE / 8];
	struct glexch_er *er = conn->er;

	if (er->tx_copy || len > glexch_er_most(er->tx_lines) || hdr_len > GLEXCH_ER_BRIEF ||
	    !glexch_er_has_room(er, n))
		return 0;
	if (glexch_er_make_long_there(conn, &h, hdr, data, n)) {
		glexch_count(conn->ch, GLEXCH_WAY_ER_PUT, conn->ch->header + len);
		return 1;
	}
	er->begun = 1;
	if (glexch_er_step_of(conn, glexch_er_inject_at(conn, (er->tx_line + 1) * GLEXCH_LINE, data, len)) !=
	    GLEXCH_STEP_OK)
		return 0;
	rec[glexch_round8(hdr_len) / 8] = 0; /* the padding of the last word */
	glexch_copy_few(rec + 1, hdr, hdr_len);
	if (glexch_er_commit(conn, rec, &h, n) != GLEXCH_STEP_OK)
		return 0;
	er->begun = 0;
	glexch_count(conn->ch, GLEXCH_WAY_ER_PUT, conn->ch->header + len);
	return 1;
}

/* A message of so many stream bytes goes as one PUT. */
static inline int glexch_er_gathers(const struct glexch_conn *conn, uint32_t len)
{
	const struct glexch *ch = conn->ch;

	return len <= ch->er_inline || (len <= ch->er_answer && conn->er->rx_seq != conn->rx_seq);
}

/* One PUT, from a copy. */
static __attribute__((noinline)) int glexch_er_put_short(struct glexch_conn *conn, struct glexch_er_head h,
							 const void *hdr, size_t hdr_len, const void *data, size_t len)
{
	uint64_t rec[GLEXCH_ER_RECORD / 8];

	rec[glexch_round8(h.inl) / 8] = 0; /* the padding of the last word */
	glexch_copy_few(rec + 1, hdr, hdr_len);
	glexch_copy_some((uint8_t *)(rec + 1) + hdr_len, data, len);
	return glexch_er_commit(conn, rec, &h, glexch_er_head_lines(h.inl)) == GLEXCH_STEP_OK;
}

int glexch_er_try_short(struct glexch_conn *conn, const void *hdr, size_t hdr_len, size_t room, const void *data,
			size_t len)
{
	const struct glexch_er_head h = {(uint32_t)hdr_len, (uint32_t)(hdr_len + len), GLEXCH_ER_SPLIT};
	uint32_t n;

	if (room != conn->ch->header)
		return 0;
	if (!glexch_er_gathers(conn, h.inl))
		return len <= GLEXCH_AT_ONCE && glexch_er_try_long(conn, hdr, (uint32_t)hdr_len, data, (uint32_t)len);
	n = glexch_er_head_lines(h.inl);
	if (!glexch_er_has_room(conn->er, n))
		return 0;
	glexch_er_want_more(conn->er, n);
	if (!glexch_er_make_there(conn, &h, hdr, hdr_len, data, len, n) &&
	    !glexch_er_put_short(conn, h, hdr, hdr_len, data, len))
		return 0;
	glexch_count(conn->ch, GLEXCH_WAY_ER_IMM, room + len);
	return 1;
}

/* Bytes of a header without the words of zeros at its end. */
static uint32_t glexch_er_trim(const uint8_t *p, uint32_t len)
{
	uint64_t word;

	while (len >= sizeof(word)) {
		memcpy(&word, p + len - sizeof(word), sizeof(word));
		if (word)
			break;
		len -= (uint32_t)sizeof(word);
	}
	return len;
}

/* A whole header without its zeros, and what follows it if all of that is inline too. */
static void glexch_er_take_header(struct glexch_conn *conn, struct glexch_cursor *cur, uint64_t *rec,
				  struct glexch_er_head *h)
{
	uint32_t room = conn->ch->header, header = glexch_er_trim(cur->iov->iov_base, room);

	glexch_copy_few(rec + 1, cur->iov->iov_base, room); /* with the zeros: they fill its last word */
	glexch_cursor_copy(cur, NULL, room);
	h->kind = GLEXCH_ER_PAD;
	h->inl = header;
	if (!conn->er->begun && cur->left && header + cur->left <= conn->ch->er_inline) {
		h->kind = GLEXCH_ER_SPLIT;
		h->more = header;
		h->inl = header + (uint32_t)cur->left;
		glexch_cursor_copy(cur, (uint8_t *)(rec + 1) + header, cur->left);
	}
}

/* Takes what can be inline from cur: a header, or all that is left. */
static void glexch_er_take_inline(struct glexch_conn *conn, struct glexch_cursor *cur, uint64_t *rec,
				  struct glexch_er_head *h)
{
	uint32_t header = conn->ch->header;

	if (header <= GLEXCH_ER_INLINE && glexch_cursor_at_header(conn->ch, cur)) {
		glexch_er_take_header(conn, cur, rec, h);
	} else if (cur->left <= conn->ch->er_inline) {
		h->inl = (uint32_t)cur->left;
		rec[glexch_round8(h->inl) / 8] = 0; /* the padding of the last word */
		glexch_cursor_copy(cur, (uint8_t *)(rec + 1), cur->left);
	}
}

/* PUTs the further bytes of a record to their lines, straight from where the caller has them, segment by segment. */
static enum glexch_step glexch_er_inject(struct glexch_conn *conn, struct glexch_cursor *cur, uint32_t line,
					 uint32_t len)
{
	uint32_t at = line * GLEXCH_LINE;
	glex_ret_t ret = GLEX_SUCCESS;

	while (len && ret == GLEX_SUCCESS) {
		size_t here = cur->iov->iov_len - cur->off;
		uint32_t n = here < len ? (uint32_t)here : len;

		if (!here) { /* an empty segment */
			cur->iov++;
			cur->off = 0;
			continue;
		}
		ret = glexch_er_inject_at(conn, at, (const uint8_t *)cur->iov->iov_base + cur->off, n);
		glexch_cursor_copy(cur, NULL, n);
		at += n;
		len -= n;
	}
	return glexch_er_step_of(conn, ret);
}

/* The same out of a copy of the ring: in our region it lies behind the ring. */
static enum glexch_step glexch_er_put_copy(struct glexch_conn *conn, struct glexch_cursor *cur, uint32_t line,
					   uint32_t len)
{
	struct glexch_er *er = conn->er;
	struct glex_rdma_req req = {
		.rmt_ep_addr.v = conn->peer,
		.local_mh = er->mh,
		.local_offset = (er->lines + line) * GLEXCH_LINE,
		.len = len,
		.rmt_mh = er->tx_ring,
		.rmt_offset = line * GLEXCH_LINE,
		.type = GLEX_RDMA_TYPE_PUT,
		.rmt_key = conn->key,
	};
	uint8_t bytes[GLEXCH_ER_IMM];
	int tries = GLEXCH_ER_TRIES;
	glex_ret_t ret;

	if (len <= GLEXCH_ER_IMM) {
		glexch_cursor_copy(cur, bytes, len);
		return glexch_er_step_of(conn, glexch_er_imm(conn, line, bytes, len, 0));
	}
	glexch_cursor_copy(cur, er->tx_copy + line * GLEXCH_LINE, len);
	do
		ret = glex_rdma(conn->ch->ep, &req, NULL);
	while (ret == GLEX_BUSY && --tries);
	return glexch_er_step_of(conn, ret);
}

/*
 * One record of what is left at cur.  Until its header is posted nothing of it
 * counts: when that finds no room, the same bytes are PUT to the same lines again,
 * and nothing else is meanwhile (`begun`), for those PUTs may still be under way.
 */
enum glexch_step glexch_er_step(struct glexch_conn *conn, struct glexch_cursor *cur)
{
	struct glexch_er *er = conn->er;
	uint32_t most = glexch_er_most(er->tx_lines);
	struct glexch_er_head h = {0};
	struct glexch_cursor c = *cur;
	uint64_t rec[GLEXCH_ER_RECORD / 8];
	enum glexch_step step = GLEXCH_STEP_OK;
	uint32_t head, n, len = 0;

	glexch_er_take_inline(conn, &c, rec, &h);
	head = glexch_er_head_lines(h.inl);
	if (c.left && h.kind != GLEXCH_ER_SPLIT)
		h.more = len = (uint32_t)(c.left < most ? c.left : most);
	n = head + glexch_lines_of(len);
	if (!glexch_er_has_room(er, n)) {
		er->waits = 1;
		return GLEXCH_STEP_NO_CREDIT;
	}
	if (len) {
		er->begun = 1;
		step = er->tx_copy ? glexch_er_put_copy(conn, &c, er->tx_line + head, len)
				   : glexch_er_inject(conn, &c, er->tx_line + head, len);
	}
	if (step == GLEXCH_STEP_OK)
		step = glexch_er_commit(conn, rec, &h, n);
	if (step != GLEXCH_STEP_OK)
		return step;
	er->begun = 0;
	glexch_count(conn->ch, len ? GLEXCH_WAY_ER_PUT : GLEXCH_WAY_ER_IMM, cur->left - c.left);
	*cur = c;
	return GLEXCH_STEP_OK;
}

/* ---- receiving ----------------------------------------------------------- */

/* A header and all that is inline with it, or little enough to be handed over together; else as two parts of the stream. */
static inline void glexch_er_hand_header(struct glexch_conn *conn, uint8_t *header, uint32_t header_len, uint8_t *bytes,
					 uint32_t len)
{
	const struct glexch_ops *ops = conn->ch->ops;

	if (ops->packet && ops->packet(conn, header, header_len, bytes, len))
		return;
	if (len <= GLEXCH_ER_GATHER) {
		glexch_data_short(conn, header, header_len, bytes, len);
		return;
	}
	glexch_data_short(conn, header, header_len, NULL, 0);
	if (!(conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED)))
		ops->data(conn, bytes, len);
}

static inline void glexch_er_hand_over(struct glexch_conn *conn, uint64_t w, uint8_t *rec)
{
	uint32_t len = glexch_er_more(w), n = glexch_er_inl(w);
	const struct glexch_ops *ops = conn->ch->ops;
	enum glexch_er_kind kind = glexch_er_kind_of(w);
	uint8_t *inl = rec + 8, *more = rec + glexch_er_head_lines(n) * GLEXCH_LINE;

	if (kind == GLEXCH_ER_SPLIT) {
		glexch_er_hand_header(conn, inl, len, inl + len, n - len);
		return;
	}
	if (kind == GLEXCH_ER_PAD) {
		glexch_er_hand_header(conn, inl, n, more, len);
		return;
	}
	if (n)
		ops->data(conn, inl, n);
	if (len && !(conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED)))
		ops->data(conn, more, len);
}

static __attribute__((noinline)) int glexch_er_sane_long(const struct glexch_er *er, uint64_t w)
{
	uint32_t more = glexch_er_more(w), inl = glexch_er_inl(w);
	enum glexch_er_kind kind = glexch_er_kind_of(w);

	if (kind > GLEXCH_ER_SPLIT || (kind == GLEXCH_ER_PLAIN && inl && more)) /* together they might leave the ring */
		return 0;
	return more <= glexch_er_most(er->lines) && (kind == GLEXCH_ER_PLAIN || inl <= er->conn->ch->header);
}

/* 0: nothing that a peer of this library would write; its mark may be looked for behind the ring. */
static inline int glexch_er_sane(const struct glexch_er *er, uint64_t w)
{
	uint32_t header = er->conn->ch->header, more = glexch_er_more(w), inl = glexch_er_inl(w);

	if (glexch_er_is_brief(w))
		return inl <= header;
	if (inl > er->inl_max)
		return 0;
	return glexch_er_kind_of(w) == GLEXCH_ER_SPLIT ? more <= header && more <= inl : glexch_er_sane_long(er, w);
}

static inline uint32_t glexch_er_lines_in(uint64_t w)
{
	uint32_t lines = glexch_er_head_lines(glexch_er_inl(w));

	return glexch_er_kind_of(w) == GLEXCH_ER_SPLIT ? lines : lines + glexch_lines_of(glexch_er_more(w));
}

/* The other lines of a record, all at a time: else each would be waited for when it is read. */
static inline void glexch_er_fetch(const uint64_t *rec, uint64_t w)
{
	uint32_t i, n = glexch_er_lines_in(w);

	for (i = 1; i < n && i < GLEXCH_ER_AHEAD; i++)
		__builtin_prefetch(rec + i * GLEXCH_LINE / 8);
}

/*
 * The lines of a record that comes after this one, if all are about as long: they come while those before it are
 * delivered.  Of short ones the third, for between distant processors a line takes as long as two or three
 * deliveries.  Only where the sender is ahead, or they are taken from him too early.  With the next one 6 to 9 % more
 * messages of up to 256 bytes between close processors; with the third 10 to 20 % more than that between distant ones.
 */
static inline void glexch_er_fetch_ahead(const struct glexch_er *er, uint64_t w)
{
	uint32_t i, n = glexch_er_lines_in(w), by = n > GLEXCH_ER_NEXT ? n : 3 * n;
	const uint8_t *next = er->rx_ring + (er->rx_line + by) * GLEXCH_LINE;

	for (i = 0; i < n && i < GLEXCH_ER_NEXT; i++) {
		__builtin_prefetch(next + i * GLEXCH_LINE);
		GLEXCH_STAY_LOOP(i); /* gcc 12 leaves out a loop of nothing but prefetches */
	}
}

/* The header of the record at a line, if that is there and next in the stream.  0: it is not; none is 0. */
static inline uint64_t glexch_er_look_at(const struct glexch_er *er, uint32_t line)
{
	uint64_t *rec = (uint64_t *)(void *)(er->rx_ring + line * GLEXCH_LINE);
	/* relaxed: only a guess, until the mark is there */
	uint64_t w = __atomic_load_n(rec, __ATOMIC_RELAXED);

	if ((uint16_t)w != er->conn->rx_seq) /* I5 */
		return 0;
	if (!glexch_er_is_brief(w))
		glexch_er_fetch(rec, w); /* at once; it may be any number */
	if (!glexch_er_sane(er, w))
		return 0;
	/* relaxed: stronger, pairs with the NIC: behind the last word of a PUT all of the record can be read (I1) */
	if (__atomic_load_n(rec + 1 + glexch_round8(glexch_er_inl(w)) / 8, __ATOMIC_ACQUIRE) != er->rx_mark + line)
		return 0;
	/* relaxed: ordered by the load before; what was guessed from may have been an old record */
	return __atomic_load_n(rec, __ATOMIC_RELAXED) == w ? w : 0;
}

/* The same of the next record, wherever that is: at rx_line, unless its sender has gone elsewhere. */
static inline uint64_t glexch_er_look(struct glexch_er *er)
{
	uint64_t w = glexch_er_look_at(er, er->rx_line);

	if (w || !er->rx_line)
		return w;
	w = glexch_er_look_at(er, 0);
	if (w) {
		er->rx_skip = er->rx_line;
		er->rx_line = 0;
	} else if (er->rx_skip) {
		w = glexch_er_look_at(er, er->rx_skip);
		er->rx_line = w ? er->rx_skip : er->rx_line;
	}
	return w;
}

int glexch_er_lines_due(const struct glexch_conn *conn)
{
	const struct glexch_er *er = conn->er;

	return er && er->rx_owed >= glexch_er_threshold(er) && er->state == GLEXCH_ER_UP && !conn->draining &&
	       !conn->parted;
}

/* Says how much has been read here. */
glex_ret_t glexch_er_return(struct glexch_conn *conn)
{
	struct glexch_er *er = conn->er;
	uint64_t read = (er->rx_read + er->rx_owed) | (uint64_t)conn->tx_seq << 32;
	glex_ret_t ret = glexch_er_imm(conn, er->tx_lines - 1, &read, sizeof(read), GLEX_FLAG_FENCE);

	if (ret == GLEX_SUCCESS) {
		er->rx_read += er->rx_owed;
		er->rx_owed = 0;
	}
	return ret;
}

/* Delivers the record with the header w.  0: that is all of this ring in this round. */
static inline __attribute__((always_inline)) int glexch_er_deliver_one(struct glexch_conn *conn, struct glexch_er *er,
								       uint64_t w, int brief)
{
	uint8_t *rec = er->rx_ring + er->rx_line * GLEXCH_LINE;
	uint32_t lines = brief ? 1 : glexch_er_lines_in(w);

	er->rx_line += lines;
	if (er->rx_line >= er->starts)
		er->rx_line = er->rx_skip = 0;
	er->rx_mark += GLEXCH_ER_MARK_STEP;
	er->used++;
	conn->rx_seq++;
	conn->heard = conn->hot = 1;
	glexch_er_hear_read(er, w);
	if (!brief && glexch_er_returns(w))
		glexch_sr_take(conn, (uint8_t)(w >> GLEXCH_ER_AT_CREDITS), w >> GLEXCH_ER_AT_SAW & 1);
	conn->delivering = 1;
	if (brief)
		glexch_er_hand_header(conn, rec + 8, glexch_er_inl(w), NULL, 0);
	else
		glexch_er_hand_over(conn, w, rec);
	conn->delivering = 0;
	if (conn->slow & (GLEXCH_SLOW_DEAD | GLEXCH_SLOW_FAILED))
		return 0; /* er is gone */
	er->rx_owed += lines;
	if (glexch_er_lines_due(conn) && glexch_er_return(conn) == GLEX_BUSY)
		glexch_credit_due(conn);
	if (conn->rx)
		glexch_seq_deliver(conn);
	return conn->er == er;
}

/* Delivers what is in order.  Returns how many records. */
static int glexch_er_deliver(struct glexch_conn *conn)
{
	struct glexch_er *er = conn->er;
	uint64_t w = conn->paused ? 0 : glexch_er_look(er);
	int n = 0;

	while (w) {
		if (n++ > 1)
			glexch_er_fetch_ahead(er, w);
		if (!(glexch_er_is_brief(w) ? glexch_er_deliver_one(conn, er, w, 1)
					    : glexch_er_deliver_one(conn, er, w, 0)) ||
		    n == GLEXCH_ER_BATCH || conn->paused)
			break;
		w = glexch_er_look_at(er, er->rx_line); /* a stream goes on there; elsewhere the next round looks */
	}
	return n;
}

/* Lines may have come that something waits for. */
static void glexch_er_look_for_lines(struct glexch_conn *conn)
{
	int n = glexch_er_recount(conn->er);

	if (n > 0)
		glexch_er_end_wait(conn->er);
	else if (n < 0)
		glexch_conn_fail(conn, "it says it has read more of its ring than was written");
}

/* Looks at the rings, from the given one on. */
int glexch_er_poll(struct glexch *ch, struct glexch_er *from)
{
	uint32_t changes = ch->er_changes;
	struct glexch_er *er;
	int n = 0;

	for (er = from; er; er = er->next) {
		struct glexch_conn *conn = er->conn;

		if (!conn || conn->delivering || (conn->slow & GLEXCH_SLOW_FAILED))
			continue;
		n += glexch_er_deliver(conn);
		if (ch->er_changes == changes && er->conn && (er->waits || glexch_er_is_half_full(er)))
			glexch_er_look_for_lines(conn);
		if (ch->er_changes != changes)
			break; /* a callback has changed the list: the rest in the next round */
	}
	return n;
}
