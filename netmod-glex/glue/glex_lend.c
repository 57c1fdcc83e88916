/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_lend.c - long data of one-sided operations is fetched from where it lies; where CH3
 * wants what comes.
 *
 *      origin of a put, or target of a get        the other
 *      header; data is lent  -------------------> CH3 takes the header and says where
 *                            <--- GETs ---------- the data belongs: into the window,
 *      complete              <--- event --------- into the origin's buffer; the stream goes on
 *
 * CH3 knows nothing of it: to the sender the request completes when the data has left, to
 * the receiver the bytes come one after another, and nothing comes before they are there.
 *
 * I1  Only what is sent in one go is lent: what goes on afterwards (SendReloadIOV) would have to
 *     wait for the peer, with everything behind it.
 * I2  Where CH3 wants less than MPID_NEM_GLEX_LAND_MIN bytes in one place, as for data that is
 *     not contiguous there, or none at all, they are fetched into a chunk and handed over from it.
 */
#include "glex_impl.h"

#define MPID_NEM_GLEX_LAND_MIN	 4096
#define MPID_NEM_GLEX_LEND_FRONT 4096 /* bytes that may go before it: a header, and a datatype */

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

/*
 * Whether the last of the segments of a packet, the first of which is its header, is to be
 * lent.  sreq: its request, or NULL: it will have one of its own.
 */
int MPID_nem_glex_lends(const MPIR_Request *sreq, const void *hdr, const struct iovec *iov, int n_iov)
{
	size_t front = 0;
	int i;

	if (iov[n_iov - 1].iov_len <= MPID_nem_glex.lend_above || MPID_nem_glex.unreachable ||
	    !MPID_nem_glex_one_sided(hdr))
		return 0;
	if (sreq && sreq->dev.OnDataAvail == MPIDI_CH3_ReqHandler_SendReloadIOV) /* I1 */
		return 0;
	for (i = 0; i < n_iov - 1; i++)
		front += iov[i].iov_len;
	return front <= MPID_NEM_GLEX_LEND_FRONT;
}

/* Sends such a packet, whose request has its front described; 0: it cannot be lent. */
int MPID_nem_glex_lend(struct glexch_conn *conn, MPIR_Request *sreq, const struct iovec *data)
{
	if (!glexch_lend(conn, &MPID_nem_glex_req(sreq)->send.item, data->iov_base, data->iov_len))
		return 0;
	MPID_nem_glex.stats.lent[glexch_size_class(data->iov_len)]++;
	MPID_nem_glex.stats.lent_bytes += data->iov_len;
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
	struct iovec *iov = MPID_nem_glex_segment(vc, MPID_NEM_GLEX_LAND_MIN); /* I2 */
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

void MPID_nem_glex_landed(struct glexch_conn *conn, void *buf, uint64_t n)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);
	struct MPID_nem_glex_chunk *chunk = MPID_nem_glex_vc(vc)->lent;

	MPID_nem_glex_vc(vc)->lent = NULL;
	if (n && chunk)
		MPID_nem_glex_note(MPID_nem_handle_pkt(vc, buf, (intptr_t)n));
	else if (n)
		MPID_nem_glex_note(MPID_nem_glex_came(vc, n));
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
