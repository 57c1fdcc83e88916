/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_lend.c - long data of one-sided operations, and messages from memory that is near, are fetched
 * from where they lie; where CH3 wants what comes.
 *
 *      sender; origin of a put; target of a get   the other
 *      header; data is lent  -------------------> CH3 takes the header and says where
 *                            <--- GETs ---------- the data belongs: into the user's buffer, the
 *      complete              <--- event --------- window, the origin's buffer; the stream goes on
 *
 * (or, of a message that goes back out of the buffer it came into, has it put there: glex_put.c).
 *
 * Near is what the peer maps: there one copy takes half as long as two, and no call of the system is needed.
 * Private memory becomes so if it is used often (promote.c).  A buffer's first sends are only counted, since to
 * register it costs more than they do; then it is looked up for each.  Nobody who receives has to be
 * asked, as for a rendezvous: what is not expected is fetched too.
 *
 * CH3 knows nothing of it: to the sender the request completes when the data has left, to
 * the receiver the bytes come one after another, and nothing comes before they are there.
 *
 * I1  Only what is sent in one go is lent: what goes on afterwards (SendReloadIOV) would have to
 *     wait for the peer, with everything behind it.
 * I2  Where CH3 wants less than MPID_NEM_GLEX_LAND_MIN bytes in one place, but there are more, as for data that
 *     is not contiguous there, or none at all, they are fetched into a chunk and handed over from it.
 * I3  MPI_Send returns when its message has been fetched, and MPICH's collectives wait for it at each of their steps.
 *     Where ranks outnumber processors that is when another rank has had its turn: so there it is copied (8 ranks on
 *     two processors, broadcasts of 8 KiB 16 us instead of 54, sums of 32 KiB for all 88 instead of 167).  Who sends by
 *     MPI_Isend has other things to do meanwhile.
 * I4  Short ones are copied: MPI_Send is not to wait for the peer, and most buffers would be looked up in vain.  But
 *     what is sent by MPI_Isend, or one-sided, from where longer ones have been lent is lent, too: windows of 4 KiB
 *     take half as long.
 */
#include "glex_impl.h"
#include "glex_release.h"

#define MPID_NEM_GLEX_LAND_MIN	 4096
#define MPID_NEM_GLEX_LEND_FRONT 4096 /* bytes that may go before it: a header, and a datatype */

/* ---- sender: what is near -------------------------------------------------- */

#define MPID_NEM_GLEX_BUFFERS  256	  /* that are counted */
#define MPID_NEM_GLEX_NEAR_MAX (2u << 20) /* bytes lent at a time, after which messages are copied: glex_held.c, I1 */
#define MPID_NEM_GLEX_STRANGE  8	  /* sends of one before it is looked up */
#define MPID_NEM_GLEX_TRIES    32 /* times that it is, though it is not near; then as often as sent twice as often */

/* By its first page; another of the same place takes it over. */
struct MPID_nem_glex_buffer {
	uintptr_t page;
	uint32_t sends;
	uint32_t next; /* sends when it is looked up */
	uint32_t tries;
	size_t near; /* the most bytes of it that were; 0: not lately */
};

static struct MPID_nem_glex_buffer MPID_nem_glex_buffers[MPID_NEM_GLEX_BUFFERS];

static struct MPID_nem_glex_buffer *MPID_nem_glex_buffer(const void *buf)
{
	return &MPID_nem_glex_buffers[((uintptr_t)buf >> 12) * 2654435761u / 4096 % MPID_NEM_GLEX_BUFFERS];
}

/* As far as is known.  In a crowd no: then who waits for the peer does so for longer than a copy takes. */
int MPID_nem_glex_is_part_of_near(const void *buf, size_t len)
{
	const struct MPID_nem_glex_buffer *b = MPID_nem_glex_buffer(buf);

	return len <= b->near && b->page == (uintptr_t)buf >> 12 && !MPID_nem_glex.crowded;
}

/* Whether it is to be looked up. */
static int MPID_nem_glex_may_be_near(const void *buf)
{
	struct MPID_nem_glex_buffer *b = MPID_nem_glex_buffer(buf);

	if (b->page != (uintptr_t)buf >> 12)
		*b = (struct MPID_nem_glex_buffer){.page = (uintptr_t)buf >> 12, .next = MPID_NEM_GLEX_STRANGE};
	return ++b->sends >= b->next;
}

/* It has been. */
static void MPID_nem_glex_note_near(const void *buf, size_t len, int near)
{
	struct MPID_nem_glex_buffer *b = MPID_nem_glex_buffer(buf);

	if (b->page != (uintptr_t)buf >> 12) /* part of one that has lost its place */
		return;
	if (near) {
		b->tries = 0;
		b->near = len > b->near ? len : b->near;
	} else if (++b->tries % MPID_NEM_GLEX_TRIES == 0) {
		b->next = 2 * b->sends;
		b->near = 0;
	}
}

/* ---- sender -------------------------------------------------------------- */

static int MPID_nem_glex_one_sided(const void *hdr)
{
	switch (((const MPIDI_CH3_Pkt_t *)hdr)->type) {
	case MPIDI_CH3_PKT_PUT:
	case MPIDI_CH3_PKT_ACCUMULATE:
	case MPIDI_CH3_PKT_GET_ACCUM:
	case MPIDI_CH3_PKT_GET_RESP:
	case MPIDI_CH3_PKT_GET_ACCUM_RESP:
		return 1;
	default:
		return 0;
	}
}

/* I3 */
static int MPID_nem_glex_is_waited_for(const MPIR_Request *sreq, const MPIDI_CH3_Pkt_eager_send_t *message)
{
	return MPID_nem_glex.crowded && (!sreq || (message->match.parts.context_id & MPID_NEM_GLEX_COLL_ID));
}

/* The data of a message, which has a segment of its own. */
static int MPID_nem_glex_is_message_alone(const MPIR_Request *sreq, const void *hdr, int n_iov)
{
	int type = ((const MPIDI_CH3_Pkt_t *)hdr)->type;

	return n_iov == 2 && (type == MPIDI_CH3_PKT_EAGER_SEND || type == MPIDI_CH3_PKT_EAGER_SYNC_SEND) &&
	       !MPID_nem_glex_is_waited_for(sreq, hdr);
}

/* Whether it is to be lent if it is near. */
static int MPID_nem_glex_lends_near(const MPIR_Request *sreq, const struct iovec *data)
{
	size_t len = data->iov_len;

	if (glexch_lent(MPID_nem_glex.ch) + len > MPID_NEM_GLEX_NEAR_MAX)
		return 0;
	if (len > MPID_nem_glex.near_above)
		return MPID_nem_glex_may_be_near(data->iov_base);
	return sreq && MPID_nem_glex_is_part_of_near(data->iov_base, len); /* I4 */
}

static size_t MPID_nem_glex_front(const struct iovec *iov, int n_iov)
{
	size_t front = 0;

	for (int i = 0; i < n_iov - 1; i++)
		front += iov[i].iov_len;
	return front;
}

/*
 * Whether the last of the segments of a packet, the first of which is its header, is to be
 * lent.  sreq: its request, or NULL: it will have one of its own.
 */
enum MPID_nem_glex_lends MPID_nem_glex_lends(const MPIR_Request *sreq, const void *hdr, const struct iovec *iov,
					     int n_iov)
{
	const struct iovec *data = &iov[n_iov - 1];
	int one_sided, far = data->iov_len > MPID_nem_glex.lend_above;

	if ((data->iov_len <= MPID_nem_glex.part_above && !far) || MPID_nem_glex.unreachable)
		return MPID_NEM_GLEX_LENDS_NOTHING;
	if (sreq && sreq->dev.OnDataAvail == MPIDI_CH3_ReqHandler_SendReloadIOV) /* I1 */
		return MPID_NEM_GLEX_LENDS_NOTHING;
	one_sided = MPID_nem_glex_one_sided(hdr);
	if (one_sided ? MPID_nem_glex_front(iov, n_iov) > MPID_NEM_GLEX_LEND_FRONT
		      : !MPID_nem_glex_is_message_alone(sreq, hdr, n_iov))
		return MPID_NEM_GLEX_LENDS_NOTHING;
	if (data->iov_len > MPID_nem_glex.part_above && MPID_nem_glex_lends_near(sreq, data))
		return one_sided && far ? MPID_NEM_GLEX_LENDS_ANY : MPID_NEM_GLEX_LENDS_NEAR;
	return one_sided && far ? MPID_NEM_GLEX_LENDS_FAR : MPID_NEM_GLEX_LENDS_NOTHING;
}

static int MPID_nem_glex_lend_near(struct glexch_conn *conn, struct glexch_item *item, const struct iovec *data,
				   int offers)
{
	void *buf = data->iov_base; /* the item's end may be that of the segments, too */
	size_t len = data->iov_len;
	int how = GLEXCH_LEND_NEAR, lent;

	if (offers && MPID_nem_glex_offers(conn, buf, len))
		how |= GLEXCH_LEND_OFFER;
	lent = glexch_lend(conn, item, buf, len, how);
	MPID_nem_glex_note_near(buf, len, lent);
	return lent;
}

/* Sends such a packet, whose request has its front described; 0: it cannot be lent. */
int MPID_nem_glex_lend(struct glexch_conn *conn, MPIR_Request *sreq, const struct iovec *data,
		       enum MPID_nem_glex_lends lends)
{
	int one_sided = MPID_nem_glex_one_sided(&sreq->dev.pending_pkt); /* the request may be gone afterwards */
	uint64_t *number = one_sided ? MPID_nem_glex.stats.lent : MPID_nem_glex.stats.near;
	uint64_t *bytes = one_sided ? &MPID_nem_glex.stats.lent_bytes : &MPID_nem_glex.stats.near_bytes;
	struct glexch_item *item = &MPID_nem_glex_req(sreq)->send.item;
	size_t len = data->iov_len;
	int lent = lends != MPID_NEM_GLEX_LENDS_FAR && MPID_nem_glex_lend_near(conn, item, data, !one_sided);

	if (!lent && lends != MPID_NEM_GLEX_LENDS_NEAR)
		lent = glexch_lend(conn, item, data->iov_base, len, 0);
	if (!lent)
		return 0;
	number[glexch_size_class(len)]++;
	*bytes += len;
	return 1;
}

/* ---- receiver ------------------------------------------------------------ */

/* Where CH3 wants the next bytes, if it wants so many in one place: the segment, else NULL. */
static struct iovec *MPID_nem_glex_segment(MPIDI_VC_t *vc, size_t least)
{
	MPIR_Request *rreq = vc->ch.recv_active;
	struct iovec *iov;

	if (!rreq || rreq->dev.drop_data || rreq->dev.iov_count <= 0)
		return NULL;
	iov = &rreq->dev.iov[rreq->dev.iov_offset];
	return iov->iov_len >= least ? iov : NULL;
}

uint64_t MPID_nem_glex_land(struct glexch_conn *conn, uint64_t left, void **buf_p)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);
	size_t least = left < MPID_NEM_GLEX_LAND_MIN ? left : MPID_NEM_GLEX_LAND_MIN;
	struct iovec *iov = MPID_nem_glex_segment(vc, least); /* I2 */
	struct MPID_nem_glex_chunk *chunk;
	uint64_t most;

	if (iov) {
		*buf_p = iov->iov_base;
		most = iov->iov_len;
	} else {
		chunk = MPID_nem_glex_chunk_borrow();
		if (!chunk)
			return 0;
		MPID_nem_glex_vc(vc)->lent = chunk;
		*buf_p = chunk->mem;
		most = MPID_nem_glex.pool.size;
	}
	return left < most ? left : most;
}

/* n bytes have come to the first segment that CH3 waits for. */
static int MPID_nem_glex_came(MPIDI_VC_t *vc, uint64_t n)
{
	MPIR_Request *rreq = vc->ch.recv_active;
	struct iovec *iov = &rreq->dev.iov[rreq->dev.iov_offset];
	int mpi_errno = MPI_SUCCESS, complete = 1;

	iov->iov_base = (char *)iov->iov_base + n;
	iov->iov_len -= n;
	if (iov->iov_len)
		return MPI_SUCCESS;
	rreq->dev.iov_offset++;
	if (--rreq->dev.iov_count)
		return MPI_SUCCESS;
	if (rreq->dev.OnDataAvail) {
		complete = 0;
		mpi_errno = rreq->dev.OnDataAvail(vc, rreq, &complete);
	} else {
		mpi_errno = MPID_Request_complete(rreq);
	}
	if (complete || mpi_errno != MPI_SUCCESS)
		vc->ch.recv_active = NULL;
	else
		rreq->dev.iov_offset = 0; /* it has segments again */
	return mpi_errno;
}

void MPID_nem_glex_landed(struct glexch_conn *conn, void *buf, uint64_t n, int put)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);
	struct MPID_nem_glex_chunk *chunk = MPID_nem_glex_vc(vc)->lent;

	MPID_nem_glex_vc(vc)->lent = NULL;
	MPID_nem_glex.fed += n; /* of one-sided data too: a look too early does no harm */
	if (n && chunk)
		MPID_nem_glex_note(MPID_nem_handle_pkt(vc, buf, (intptr_t)n));
	else if (n) {
		if (put)
			MPID_nem_glex_copied_by_others(buf);
		else
			MPID_nem_glex_copied_from(buf, conn);
		MPID_nem_glex_note(MPID_nem_glex_came(vc, n));
	}
	if (chunk)
		MPID_nem_glex_chunk_return(chunk);
}

/* ---- the same for blocks of the channel ------------------------------------ */

void *MPID_nem_glex_room(struct glexch_conn *conn, size_t len)
{
	struct iovec *iov = MPID_nem_glex_segment(glexch_conn_user(conn), len);

	return iov ? iov->iov_base : NULL;
}

void MPID_nem_glex_filled(struct glexch_conn *conn, size_t len)
{
	MPID_nem_glex_note(MPID_nem_glex_came(glexch_conn_user(conn), len));
	MPID_nem_glex.fed += len;
}
