/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_send.c - the three ways CH3 sends: without a request, with one, with one and segments.
 *
 * Every packet is a header, which takes sizeof(MPIDI_CH3_Pkt_t) bytes of the
 * stream however much of it is used, and data.  What does not go out at once is
 * described in the request (header saved in pending_pkt, segments in iov) and
 * queued; the memory of the data stays the caller's until the request is complete.
 * A message with a request of which nothing is out yet is looked at again when it comes to the
 * head of the queue: if the peer has had enough meanwhile, only an offer goes (glex_held.c).
 */
#include "glex_impl.h"

/*
 * What answers an operation of a peer.  Nobody here waits for it, but its window's books have to be
 * kept: who waits until all has been answered would do so for ever.
 */
static int MPID_nem_glex_is_answer(const MPIR_Request *sreq)
{
	int type = MPIDI_Request_get_type(sreq);

	return sreq->dev.OnFinal && (type == MPIDI_REQUEST_TYPE_GET_RESP || type == MPIDI_REQUEST_TYPE_GET_ACCUM_RESP ||
				     type == MPIDI_REQUEST_TYPE_FOP_RESP);
}

/* A queued request is accepted, or lost.  1: its next batch of segments is in cur. */
static int MPID_nem_glex_sent(struct glexch_conn *conn, struct glexch_item *item, int failed)
{
	MPID_nem_glex_req_t *area = (MPID_nem_glex_req_t *)((char *)item - offsetof(MPID_nem_glex_req_t, send.item));
	MPIR_Request *sreq = area->send.req;
	int complete = 0;

	if (failed && !MPID_nem_glex_is_answer(sreq)) {
		sreq->status.MPI_ERROR = MPID_nem_glex_comm_error(area->send.vc);
		MPID_nem_glex_op_unsent(sreq);
		MPID_nem_glex_note(MPID_Request_complete(sreq));
		return 0;
	}
	if (failed) {
		MPID_nem_glex_note(sreq->dev.OnFinal(area->send.vc, sreq, &complete));
		return 0;
	}
	if (!sreq->dev.OnDataAvail) {
		MPID_nem_glex_note(MPID_Request_complete(sreq));
		return 0;
	}
	MPID_nem_glex_note(sreq->dev.OnDataAvail(area->send.vc, sreq, &complete));
	if (complete)
		return 0;
	glexch_cursor_init(&item->cur, sreq->dev.iov, sreq->dev.iov_count);
	return 1;
}

/* An offer is accepted, or lost. */
static int MPID_nem_glex_offered(struct glexch_conn *conn, struct glexch_item *item, int failed)
{
	MPID_nem_glex_req_t *area = (MPID_nem_glex_req_t *)((char *)item - offsetof(MPID_nem_glex_req_t, send.item));

	if (failed)
		return MPID_nem_glex_sent(conn, item, failed);
	MPID_nem_glex_lmt_offered(area->send.vc, area->send.req);
	return 0;
}

/* A message that has waited whole comes to the head of the queue: goes in the way that the peer wants by now. */
static int MPID_nem_glex_due(struct glexch_conn *conn, struct glexch_item *item, int failed)
{
	MPID_nem_glex_req_t *area = (MPID_nem_glex_req_t *)((char *)item - offsetof(MPID_nem_glex_req_t, send.item));
	MPIR_Request *sreq = area->send.req;

	if (failed)
		return MPID_nem_glex_sent(conn, item, failed);
	item->done = MPID_nem_glex_sent;
	if (MPID_nem_glex_vc(area->send.vc)->held && MPID_nem_glex_held_queued(area->send.vc, sreq))
		item->done = MPID_nem_glex_offered;
	else
		MPID_nem_glex_count_eager(sreq->dev.pending_pkt.eager_send.data_sz);
	glexch_cursor_init(&item->cur, sreq->dev.iov, sreq->dev.iov_count);
	return 1;
}

static void MPID_nem_glex_bind(MPIDI_VC_t *vc, MPIR_Request *sreq)
{
	MPID_nem_glex_req_t *area = MPID_nem_glex_req(sreq);

	area->send.item.done = MPID_nem_glex_sent;
	area->send.req = sreq;
	area->send.vc = vc;
	sreq->ch.vc = vc;
}

/* A request of CH3's is ours until it is sent; and what has to be acknowledged until then. */
static void MPID_nem_glex_take(MPIDI_VC_t *vc, MPIR_Request *sreq, const void *hdr)
{
	MPID_nem_glex_bind(vc, sreq);
	if (((const MPIDI_CH3_Pkt_t *)hdr)->type == MPIDI_CH3_PKT_EAGER_SYNC_SEND)
		MPID_nem_glex_await(vc, sreq, MPID_NEM_GLEX_ANY);
}

/* Moves what is left of a packet into its request: first is its first segment, the header in pkt. */
static void MPID_nem_glex_save(MPIR_Request *sreq, const struct glexch_cursor *cur, const MPIDI_CH3_Pkt_t *pkt,
			       const struct iovec *last)
{
	struct glexch_item *item = &MPID_nem_glex_req(sreq)->send.item;
	const struct iovec *iov;
	size_t off = cur->off;
	int n = 0;

	for (iov = cur->iov; iov <= last; iov++) {
		char *base = iov->iov_base;

		if (base == (const char *)pkt) {
			sreq->dev.pending_pkt = *pkt;
			base = (char *)&sreq->dev.pending_pkt;
		}
		sreq->dev.iov[n].iov_base = base + off;
		sreq->dev.iov[n].iov_len = iov->iov_len - off;
		off = 0;
		n++;
	}
	sreq->dev.iov_count = n;
	sreq->dev.iov_offset = 0;
	glexch_cursor_init(&item->cur, sreq->dev.iov, n);
}

/* What does not go out at once has a request; whose caller has none, gets one. */
static MPIR_Request *MPID_nem_glex_new_request(MPIDI_VC_t *vc)
{
	MPIR_Request *sreq = MPIR_Request_create(MPIR_REQUEST_KIND__SEND);

	if (!sreq)
		return NULL;
	MPIR_Object_set_ref(sreq, 2); /* the caller's, and the one that completion drops */
	sreq->dev.OnDataAvail = NULL;
	MPID_nem_glex_bind(vc, sreq);
	return sreq;
}

/* The connection of a VC, made at its first use. */
static inline int MPID_nem_glex_conn(MPIDI_VC_t *vc, struct glexch_conn **conn_p)
{
	int mpi_errno = MPI_SUCCESS;

	if (unlikely(!MPID_nem_glex_vc(vc)->conn))
		mpi_errno = MPID_nem_glex_vc_connect(vc);
	*conn_p = MPID_nem_glex_vc(vc)->conn;
	return mpi_errno;
}

static void MPID_nem_glex_header(MPIDI_CH3_Pkt_t *pkt, const void *hdr, intptr_t hdr_sz)
{
	memcpy(pkt, hdr, hdr_sz);
	memset((char *)pkt + hdr_sz, 0, sizeof(*pkt) - hdr_sz);
}

/* A message whose sender would not wait for its receive. */
static int MPID_nem_glex_is_message(const void *hdr)
{
	int type = ((const MPIDI_CH3_Pkt_t *)hdr)->type;

	return type == MPIDI_CH3_PKT_EAGER_SEND || type == MPIDI_CH3_PKT_EAGERSHORT_SEND;
}

/* The same of one with a request, whether its sender would wait or not. */
static int MPID_nem_glex_is_eager(const void *hdr)
{
	int type = ((const MPIDI_CH3_Pkt_t *)hdr)->type;

	return type == MPIDI_CH3_PKT_EAGER_SEND || type == MPIDI_CH3_PKT_EAGER_SYNC_SEND;
}

/* Queues a message of which nothing is out: it may still become another packet. */
static void MPID_nem_glex_queue_whole(struct glexch_conn *conn, MPIR_Request *sreq)
{
	struct glexch_item *item = &MPID_nem_glex_req(sreq)->send.item;

	item->done = MPID_nem_glex_due;
	glexch_cursor_init(&item->cur, sreq->dev.iov, 0);
	glexch_queue(conn, item);
}

/* A packet of a request is out: so is the request, or it has more, which follows. */
static void MPID_nem_glex_go_on(struct glexch_conn *conn, MPIR_Request *sreq)
{
	struct glexch_item *item = &MPID_nem_glex_req(sreq)->send.item;

	while (MPID_nem_glex_sent(conn, item, 0)) {
		glexch_try(conn, &item->cur);
		if (item->cur.left) {
			glexch_queue(conn, item);
			return;
		}
	}
}

/* The same of one whose last segment is lent.  0: it cannot be. */
static int MPID_nem_glex_send_lent(struct glexch_conn *conn, MPIR_Request *sreq, const struct iovec *iov, int n_iov,
				   enum MPID_nem_glex_lends lends)
{
	struct glexch_cursor front;

	glexch_cursor_init(&front, iov, n_iov - 1);
	MPID_nem_glex_save(sreq, &front, iov[0].iov_base, &iov[n_iov - 2]);
	return MPID_nem_glex_lend(conn, sreq, &iov[n_iov - 1], lends);
}

/* Sends a packet of a request: now as far as possible, the rest from the queue.  lends: its last segment is fetched. */
static void MPID_nem_glex_send(struct glexch_conn *conn, MPIR_Request *sreq, const struct iovec *iov, int n_iov,
			       enum MPID_nem_glex_lends lends)
{
	struct glexch_cursor cur;
	size_t all;

	if (unlikely(lends) && MPID_nem_glex_send_lent(conn, sreq, iov, n_iov, lends))
		return;
	glexch_cursor_init(&cur, iov, n_iov);
	all = cur.left;
	glexch_try(conn, &cur);
	if (cur.left == all && MPID_nem_glex_is_eager(iov[0].iov_base) && !glexch_has_begun(conn)) {
		MPID_nem_glex_save(sreq, &cur, iov[0].iov_base, &iov[n_iov - 1]);
		MPID_nem_glex_queue_whole(conn, sreq);
		return;
	}
	MPID_nem_glex_count_eager(all - sizeof(MPIDI_CH3_Pkt_t));
	if (cur.left) {
		MPID_nem_glex_save(sreq, &cur, iov[0].iov_base, &iov[n_iov - 1]);
		glexch_queue(conn, &MPID_nem_glex_req(sreq)->send.item);
		return;
	}
	MPID_nem_glex_go_on(conn, sreq);
}

/* It may go as it is: too long for that is what would be lent. */
static inline int MPID_nem_glex_in_one(intptr_t len)
{
	return (size_t)len <= GLEXCH_AT_ONCE && (size_t)len <= MPID_nem_glex.lend_above;
}

/* But not of what has a request, and is to be lent instead: glex_lend.c, I4. */
static inline int MPID_nem_glex_lends_part(const void *buf, intptr_t len)
{
	return (size_t)len > MPID_nem_glex.part_above && MPID_nem_glex_is_part_of_near(buf, (size_t)len);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

/* Up to 16 bytes, and zeros behind them to the end of their last word. */
static inline void MPID_nem_glex_load_few(uint64_t words[2], const uint8_t *p, size_t len)
{
	uint64_t first = 0, last = 0;
	uint32_t front, back;

	if (len >= 8) {
		memcpy(&first, p, 8);
		memcpy(&last, p + len - 8, 8);
		last = len > 8 ? last >> 8 * (16 - len) : 0;
	} else if (len >= 4) {
		memcpy(&front, p, 4);
		memcpy(&back, p + len - 4, 4);
		first = front | (uint64_t)back << 8 * (len - 4);
	} else if (len) {
		first = p[0] | (uint64_t)p[len / 2] << 8 * (len / 2) | (uint64_t)p[len - 1] << 8 * (len - 1);
	}
	words[0] = first;
	words[1] = last;
}

#define MPID_NEM_GLEX_SET(words, type, field, value)                                                                   \
	((words)[offsetof(type, field) / 8] |=                                                                         \
	 ((uint64_t)(value) & (UINT64_MAX >> (64 - 8 * sizeof(((type *)0)->field))))                                   \
	 << 8 * (offsetof(type, field) % 8))

/* What all of CH3's messages begin with, made of words: its own are stored by fields, and who loads words of that waits. */
#define MPID_NEM_GLEX_SET_MESSAGE(words, type_, kind, len)                                                             \
	do {                                                                                                           \
		MPID_NEM_GLEX_SET(words, type_, type, kind);                                                           \
		MPID_NEM_GLEX_SET(words, type_, match.parts.rank, comm->rank);                                         \
		MPID_NEM_GLEX_SET(words, type_, match.parts.tag, tag);                                                 \
		MPID_NEM_GLEX_SET(words, type_, match.parts.context_id, comm->context_id + context_offset);            \
		MPID_NEM_GLEX_SET(words, type_, data_sz, len);                                                         \
	} while (0)

/* The connection of a VC that a message can go out on at once; NULL: there is none, or it is not ours. */
static inline struct glexch_conn *MPID_nem_glex_free_way(MPIDI_VC_t *vc)
{
	const MPID_nem_glex_vc_t *area = MPID_nem_glex_vc(vc);

	return vc->ch.iStartContigMsg == MPID_nem_glex_iStartContigMsg && !area->held ? area->conn : NULL;
}

/* A message of up to 16 bytes: the packet that CH3 would make of it, if it can go at once. */
static inline int MPID_nem_glex_try_brief(struct glexch_conn *conn, const void *buf, intptr_t len, int tag,
					  MPIR_Comm *comm, int context_offset)
{
	uint64_t rec[2 + GLEXCH_BRIEF_WORDS], *words = rec + 1;

	words[0] = words[1] = words[2] = 0;
	MPID_NEM_GLEX_SET_MESSAGE(words, MPIDI_CH3_Pkt_eagershort_send_t, MPIDI_CH3_PKT_EAGERSHORT_SEND, len);
	MPID_nem_glex_load_few(&words[3], buf, (size_t)len);
	if (!glexch_try_brief(conn, rec, 3 + ((uint32_t)len + 7) / 8))
		return 0;
	MPID_nem_glex_count_eager(0);
	return 1;
}

_Static_assert(offsetof(MPIDI_CH3_Pkt_eagershort_send_t, data) == 24 && MPIDI_EAGER_SHORT_SIZE <= 16 &&
		       5 <= GLEXCH_BRIEF_WORDS,
	       "three words and the data");

/* The same of one that is longer, but goes in one piece. */
static inline int MPID_nem_glex_try_eager(struct glexch_conn *conn, const void *buf, intptr_t len, int tag,
					  MPIR_Comm *comm, int context_offset, int request)
{
	uint64_t words[sizeof(MPIDI_CH3_Pkt_eager_send_t) / 8] = {0};

	MPID_NEM_GLEX_SET_MESSAGE(words, MPIDI_CH3_Pkt_eager_send_t, MPIDI_CH3_PKT_EAGER_SEND, len);
	MPID_NEM_GLEX_SET(words, MPIDI_CH3_Pkt_eager_send_t, sender_req_id, request);
	if (unlikely(!glexch_try_short(conn, words, sizeof(words), sizeof(MPIDI_CH3_Pkt_t), buf, (size_t)len)))
		return 0;
	MPID_nem_glex_count_eager((size_t)len);
	return 1;
}

_Static_assert(sizeof(MPIDI_CH3_Pkt_eager_send_t) % 8 == 0, "words");

static inline int MPID_nem_glex_goes_at_once(const MPIDI_VC_t *vc, const MPIR_Comm *comm, intptr_t len)
{
	int eager_threshold = -1;

	MPIDI_CH3_GET_EAGER_THRESHOLD(&eager_threshold, comm, vc);
	return MPID_nem_glex_in_one(len) && len + (intptr_t)sizeof(MPIDI_CH3_Pkt_eager_send_t) <= eager_threshold;
}

/*
 * MPID_Send asks with a message that lies in one piece (install-into.sh).  0: CH3 is to do it,
 * with the same bytes, as a channel wants it that may have some of them on the way.
 */
int MPIDI_GLEX_send(MPIDI_VC_t *vc, const void *buf, intptr_t len, int tag, MPIR_Comm *comm, int context_offset);
int MPIDI_GLEX_send(MPIDI_VC_t *vc, const void *buf, intptr_t len, int tag, MPIR_Comm *comm, int context_offset)
{
	struct glexch_conn *conn = MPID_nem_glex_free_way(vc);

	if (!conn)
		return 0;
	glexch_expect(conn);
	if (len <= MPIDI_EAGER_SHORT_SIZE)
		return MPID_nem_glex_try_brief(conn, buf, len, tag, comm, context_offset);
	if (MPID_nem_glex_goes_at_once(vc, comm, len))
		return MPID_nem_glex_try_eager(conn, buf, len, tag, comm, context_offset, MPI_REQUEST_NULL);
	MPID_nem_glex_waits(buf);
	return 0;
}

/* The request of a send that has ended: with what a cancel needs, which asks the peer to forget the message. */
static inline MPIR_Request *MPID_nem_glex_sent_request(int rank, int tag, MPIR_Comm *comm, int context_offset)
{
	MPIR_Request *sreq = MPIR_Request_create(MPIR_REQUEST_KIND__SEND);

	if (unlikely(!sreq))
		return NULL;
	sreq->comm = comm;
	MPIR_Comm_add_ref(comm);
	sreq->dev.partner_request = NULL;
	sreq->dev.match.parts.rank = rank;
	sreq->dev.match.parts.tag = tag;
	sreq->dev.match.parts.context_id = comm->context_id + context_offset;
	MPIDI_Request_set_type(sreq, MPIDI_REQUEST_TYPE_SEND);
	MPIDI_Request_set_msg_type(sreq, MPIDI_REQUEST_EAGER_MSG);
	MPIR_cc_set(&sreq->cc, 0);
	return sreq;
}

/* The same for MPID_Isend: *sreq_p is complete. */
int MPIDI_GLEX_isend(MPIDI_VC_t *vc, const void *buf, intptr_t len, int rank, int tag, MPIR_Comm *comm,
		     int context_offset, MPIR_Request **sreq_p);
int MPIDI_GLEX_isend(MPIDI_VC_t *vc, const void *buf, intptr_t len, int rank, int tag, MPIR_Comm *comm,
		     int context_offset, MPIR_Request **sreq_p)
{
	struct glexch_conn *conn = MPID_nem_glex_free_way(vc);
	MPIR_Request *sreq;

	if (!conn || !MPID_nem_glex_goes_at_once(vc, comm, len) || MPID_nem_glex_lends_part(buf, len))
		return 0;
	glexch_expect_stream(conn, (size_t)len);
	sreq = MPID_nem_glex_sent_request(rank, tag, comm, context_offset);
	if (unlikely(!sreq))
		return 0;
	if (unlikely(!MPID_nem_glex_try_eager(conn, buf, len, tag, comm, context_offset, sreq->handle))) {
		MPIR_Request_free(sreq);
		return 0;
	}
	*sreq_p = sreq;
	return 1;
}

#endif

int MPID_nem_glex_iStartContigMsg(MPIDI_VC_t *vc, void *hdr, intptr_t hdr_sz, void *data, intptr_t data_sz,
				  MPIR_Request **sreq_ptr)
{
	int mpi_errno = MPI_SUCCESS;
	struct iovec iov[2];
	struct glexch_conn *conn;
	struct glexch_cursor cur;
	enum MPID_nem_glex_lends lends;
	MPIDI_CH3_Pkt_t pkt;
	MPIR_Request *sreq = NULL;

	*sreq_ptr = NULL;
	mpi_errno = MPID_nem_glex_conn(vc, &conn);
	MPIR_ERR_CHECK(mpi_errno);
	glexch_expect(conn);
	if (unlikely(MPID_nem_glex_vc(vc)->held) && MPID_nem_glex_is_message(hdr)) {
		mpi_errno = MPID_nem_glex_held_send(vc, hdr, hdr_sz, data, data_sz, sreq_ptr);
		goto fn_exit;
	}
	if (unlikely(((const MPIDI_CH3_Pkt_t *)hdr)->type == MPIDI_CH3_PKT_CLOSE))
		glexch_conn_part(conn, ((const MPIDI_CH3_Pkt_close_t *)hdr)->ack);
	if (MPID_nem_glex_in_one(data_sz) && glexch_try_short(conn, hdr, hdr_sz, sizeof(pkt), data, data_sz)) {
		MPID_nem_glex_count_eager((size_t)data_sz);
		goto fn_exit;
	}
	MPID_nem_glex_header(&pkt, hdr, hdr_sz);
	iov[0].iov_base = &pkt;
	iov[0].iov_len = sizeof(pkt);
	iov[1].iov_base = data;
	iov[1].iov_len = data_sz;
	lends = MPID_nem_glex_lends(NULL, &pkt, iov, 2);
	if (unlikely(lends)) {
		sreq = MPID_nem_glex_new_request(vc);
		MPIR_ERR_CHKANDJUMP(!sreq, mpi_errno, MPI_ERR_OTHER, "**nomemreq");
		*sreq_ptr = sreq;
		MPID_nem_glex_send(conn, sreq, iov, 2, lends);
		goto fn_exit;
	}
	MPID_nem_glex_count_eager((size_t)data_sz);
	glexch_cursor_init(&cur, iov, 2);
	glexch_try(conn, &cur);
	if (!cur.left)
		goto fn_exit;
	sreq = MPID_nem_glex_new_request(vc);
	MPIR_ERR_CHKANDJUMP(!sreq, mpi_errno, MPI_ERR_OTHER, "**nomemreq");
	MPID_nem_glex_save(sreq, &cur, &pkt, &iov[1]);
	glexch_queue(conn, &MPID_nem_glex_req(sreq)->send.item);
	*sreq_ptr = sreq;
fn_exit:
	MPID_nem_glex_waits(NULL); /* it has been looked at, or did not matter */
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

int MPID_nem_glex_iSendContig(MPIDI_VC_t *vc, MPIR_Request *sreq, void *hdr, intptr_t hdr_sz, void *data,
			      intptr_t data_sz)
{
	int mpi_errno = MPI_SUCCESS;
	struct glexch_conn *conn;
	struct iovec iov[2];
	MPIDI_CH3_Pkt_t pkt, awaited;

	mpi_errno = MPID_nem_glex_conn(vc, &conn);
	MPIR_ERR_CHECK(mpi_errno);
	glexch_expect(conn);
	if (unlikely(MPID_nem_glex_vc(vc)->held))
		hdr = MPID_nem_glex_held_header(sreq, hdr, hdr_sz, &awaited);
	MPID_nem_glex_take(vc, sreq, hdr);
	if (MPID_nem_glex_in_one(data_sz) && !MPID_nem_glex_lends_part(data, data_sz) &&
	    glexch_try_short(conn, hdr, hdr_sz, sizeof(pkt), data, data_sz)) {
		MPID_nem_glex_count_eager((size_t)data_sz);
		MPID_nem_glex_go_on(conn, sreq);
		goto fn_exit;
	}
	MPID_nem_glex_header(&pkt, hdr, hdr_sz);
	iov[0].iov_base = &pkt;
	iov[0].iov_len = sizeof(pkt);
	iov[1].iov_base = data;
	iov[1].iov_len = data_sz;
	MPID_nem_glex_send(conn, sreq, iov, 2, MPID_nem_glex_lends(sreq, &pkt, iov, 2));
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

int MPID_nem_glex_iSendIov(MPIDI_VC_t *vc, MPIR_Request *sreq, void *hdr, intptr_t hdr_sz, struct iovec *iov, int n_iov)
{
	int mpi_errno = MPI_SUCCESS;
	struct iovec all[MPL_IOV_LIMIT + 1];
	struct glexch_conn *conn;
	MPIDI_CH3_Pkt_t pkt, awaited;

	MPIR_Assert(n_iov < MPL_IOV_LIMIT);
	mpi_errno = MPID_nem_glex_conn(vc, &conn);
	MPIR_ERR_CHECK(mpi_errno);
	if (unlikely(MPID_nem_glex_vc(vc)->held))
		hdr = MPID_nem_glex_held_header(sreq, hdr, hdr_sz, &awaited);
	MPID_nem_glex_header(&pkt, hdr, hdr_sz);
	MPID_nem_glex_take(vc, sreq, hdr);
	all[0].iov_base = &pkt;
	all[0].iov_len = sizeof(pkt);
	memcpy(all + 1, iov, n_iov * sizeof(*iov));
	MPID_nem_glex_send(conn, sreq, all, n_iov + 1, MPID_nem_glex_lends(sreq, &pkt, all, n_iov + 1));
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}
