/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_lmt.c - large messages: CH3's LMT protocol with RDMA GET.
 *
 *      sender                                      receiver
 *      lmt_initiate: expose the buffer
 *      RTS {length, handles} ------------------->  matched: lmt_start_recv
 *                            <--- GETs ----------  into the user's buffer
 *      lmt_done_send         <--- DONE ----------  complete
 *      unexpose, complete
 *
 * A sender that has used up its share of the memory table sends an RTS without handles:
 *
 *      RTS {length, none} ---------------------->  lmt_start_recv
 *      lmt_start_send        <--- CTS -----------
 *      ... as soon as it can be exposed ...
 *      COOKIE {length, handles} ---------------->  lmt_handle_cookie, then as above
 *
 * so that what was never received does not occupy the table for ever.  Where the
 * buffer cannot be registered at all (a full table, a limit on regions or locked
 * memory), CH3's own packet brings the data through the stream instead:
 *
 *      RNDV_SEND {data} ----------------------->  complete
 *      complete
 *
 * Data that is not contiguous goes through chunks, on the side where it is not: glex_pipe.c.
 * A message that goes back out of the buffer it came into is put by its sender: glex_put.c.
 *
 * Where the system lets no process reach another's private memory (containers
 * that forbid cross-memory attach), the first GET ends so.  The receiver says
 * so in a CTS, and the sender copies into chunks, which are shareable; from
 * then on it does so at once.
 *
 * I1  The cookie lies in the request (or hangs on it): it is sent by reference.
 * I2  Nothing from a cookie is used before its lengths agree with each other.
 */
#include "glex_impl.h"

/*
 * Regions that a COOKIE packet can bring: CH3 loses a cookie that does not come
 * in one piece with its packet, so both must fit into one mini-packet.
 */
#define MPID_NEM_GLEX_LATE_MAX 1u

_Static_assert(sizeof(MPIDI_CH3_Pkt_t) + sizeof(struct MPID_nem_glex_cookie) +
			       MPID_NEM_GLEX_LATE_MAX * sizeof(struct glexch_region) <=
		       GLEXCH_MP_BODY,
	       "a late cookie in one mini-packet");

_Static_assert(sizeof(MPIDI_CH3_Pkt_t) + sizeof(struct MPID_nem_glex_want) <= GLEXCH_MP_BODY, "a CTS likewise");

/* Where the data of a contiguous buffer begins; NULL: it is not contiguous. */
void *MPID_nem_glex_contig(MPIR_Request *req, intptr_t *size_p)
{
	int dt_contig;
	intptr_t size;
	MPI_Aint true_lb;
	MPIR_Datatype *dt_ptr;

	MPIDI_Datatype_get_info(req->dev.user_count, req->dev.datatype, dt_contig, size, dt_ptr, true_lb);
	(void)dt_ptr;
	*size_p = size;
	return dt_contig ? (char *)req->dev.user_buf + true_lb : NULL;
}

/* ---- sender -------------------------------------------------------------- */

static size_t MPID_nem_glex_cookie_size(uint32_t count)
{
	return sizeof(struct MPID_nem_glex_cookie) + count * sizeof(struct glexch_region);
}

static void MPID_nem_glex_lmt_hide(struct MPID_nem_glex_lmt *lmt)
{
	if (lmt->count && !lmt->chunks)
		glexch_unexpose(MPID_nem_glex.ch, lmt->cookie->len, lmt->cookie->regions);
	lmt->count = 0;
	MPID_nem_glex_pipe_release(lmt);
}

static void MPID_nem_glex_lmt_free(struct MPID_nem_glex_lmt *lmt)
{
	MPID_nem_glex_lmt_hide(lmt);
	if (lmt->cookie != &lmt->small.head)
		MPL_free(lmt->cookie);
	lmt->cookie = NULL;
}

/* Fills the regions; a full table is no error, it leaves count 0, and sets never if waiting is of no use. */
static int MPID_nem_glex_lmt_expose(struct MPID_nem_glex_lmt *lmt, int wanted)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_cookie *cookie = lmt->cookie;
	glex_ret_t ret = glexch_expose(MPID_nem_glex.ch, lmt->buf, cookie->len, wanted, cookie->regions);

	lmt->count = ret == GLEX_SUCCESS ? glexch_region_count(cookie->len) : 0;
	lmt->never = ret == GLEX_NO_MEM_RESOURCE;
	if (ret != GLEX_SUCCESS && ret != GLEX_NO_MEM_RESOURCE && ret != GLEX_BUSY)
		MPIR_ERR_SETANDJUMP1(mpi_errno, MPI_ERR_OTHER, "**fail", "%s", glex_error_str(ret));
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

static intptr_t MPID_nem_glex_lmt_begin(MPIDI_VC_t *vc, MPIR_Request *req, struct MPID_nem_glex_lmt *lmt)
{
	intptr_t size;

	memset(lmt, 0, sizeof(*lmt));
	lmt->req = req;
	lmt->vc = vc;
	lmt->buf = MPID_nem_glex_contig(req, &size);
	MPID_nem_glex.stats.rndv[glexch_size_class(size)]++;
	MPID_nem_glex.stats.rndv_bytes += size;
	return size;
}

static int MPID_nem_glex_lmt_prepare(MPIDI_VC_t *vc, MPIR_Request *req, struct MPID_nem_glex_lmt *lmt)
{
	int mpi_errno = MPI_SUCCESS;
	intptr_t size = MPID_nem_glex_lmt_begin(vc, req, lmt);
	int offer = MPID_nem_glex_offers(MPID_nem_glex_vc(vc)->conn, lmt->buf, size);
	uint32_t count;

	count = glexch_region_count(size);
	lmt->cookie = &lmt->small.head;
	if (MPID_nem_glex_cookie_size(count) > sizeof(lmt->small))
		lmt->cookie = MPL_malloc(MPID_nem_glex_cookie_size(count), MPL_MEM_BUFFER);
	MPIR_ERR_CHKANDJUMP(!lmt->cookie, mpi_errno, MPI_ERR_OTHER, "**nomem");
	lmt->cookie->len = size;
	lmt->cookie->offer = 0;
	if (!MPID_nem_glex.zero_copy) { /* the CTS will have it streamed */
		lmt->never = 1;
		goto fn_exit;
	}
	if (!lmt->buf || MPID_nem_glex.unreachable) {
		MPID_nem_glex.stats.packed += !lmt->buf;
		MPID_nem_glex.stats.copied += lmt->buf != NULL;
		lmt->pipe = 1;
		MPID_nem_glex_pipe_whole(lmt);
		goto fn_exit;
	}
	lmt->cookie->offer = offer;
	mpi_errno = MPID_nem_glex_lmt_expose(lmt, count > MPID_NEM_GLEX_LATE_MAX);
	MPIR_ERR_CHECK(mpi_errno);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

int MPID_nem_glex_lmt_initiate(MPIDI_VC_t *vc, MPIDI_CH3_Pkt_t *pkt, MPIR_Request *req)
{
	int mpi_errno = MPI_SUCCESS;
	MPID_nem_pkt_lmt_rts_t *const rts_pkt = (MPID_nem_pkt_lmt_rts_t *)pkt;
	struct MPID_nem_glex_lmt *lmt = &MPID_nem_glex_req(req)->lmt;

	MPID_nem_glex_await(vc, req, MPID_NEM_GLEX_LMT);
	mpi_errno = MPID_nem_glex_lmt_prepare(vc, req, lmt);
	MPIR_ERR_CHECK(mpi_errno);
	MPID_nem_lmt_send_RTS(vc, rts_pkt, lmt->cookie, MPID_nem_glex_cookie_size(lmt->count));
fn_exit:
	return mpi_errno;
fn_fail:
	MPID_nem_glex_await_no_more(req);
	MPID_nem_glex_lmt_free(lmt);
	goto fn_exit;
}

/* ---- of an eager message that is in the queue, whole (glex_held.c) -------- */

/* What is not contiguous is described by a type that CH3 has a reference to; of other types the user has perhaps none. */
static void MPID_nem_glex_lmt_name_bytes(MPIR_Request *sreq, intptr_t size)
{
	if (sreq->dev.datatype_ptr)
		return;
	sreq->dev.user_buf = sreq->dev.iov[1].iov_base;
	sreq->dev.user_count = size;
	sreq->dev.datatype = MPI_BYTE;
}

/* Its packet becomes an RTS without handles.  The queue has the room of the rendezvous until that is sent. */
void MPID_nem_glex_lmt_offer(MPIR_Request *sreq)
{
	const MPIDI_CH3_Pkt_eager_send_t eager = sreq->dev.pending_pkt.eager_send;
	const struct MPID_nem_glex_cookie cookie = {.len = eager.data_sz};
	uint8_t *room = MPID_nem_glex_req(sreq)->send.brief;
	int incomplete;

	MPID_PKT_DECL_CAST(upkt, MPID_nem_pkt_lmt_rts_t, rts);
	_Static_assert(sizeof(cookie) <= MPIDI_EAGER_SHORT_SIZE, "it lies where a header's data would");
	if (eager.type == MPIDI_CH3_PKT_EAGER_SYNC_SEND) { /* a rendezvous ends once */
		MPID_nem_glex_await_no_more(sreq);
		MPIDI_CH3U_Request_decrement_cc(sreq, &incomplete);
		(void)incomplete;
	}
	MPID_nem_glex_lmt_name_bytes(sreq, eager.data_sz);
	memset(&upkt, 0, sizeof(upkt));
	MPIDI_Pkt_init(rts, MPIDI_NEM_PKT_LMT_RTS);
	rts->match = eager.match;
	rts->sender_req_id = sreq->handle;
	rts->data_sz = eager.data_sz;
	rts->cookie_len = sizeof(cookie);
	sreq->dev.pending_pkt = upkt.p;
	memcpy(room, &cookie, sizeof(cookie));
	sreq->dev.iov[1].iov_base = room;
	sreq->dev.iov[1].iov_len = sizeof(cookie);
	sreq->dev.iov_count = 2;
	sreq->dev.OnDataAvail = NULL;
	sreq->dev.partner_request = NULL;
	sreq->ch.lmt_tmp_cookie.iov_len = 0;
	MPIDI_Request_set_msg_type(sreq, MPIDI_REQUEST_RNDV_MSG);
}

/* It is sent. */
void MPID_nem_glex_lmt_offered(MPIDI_VC_t *vc, MPIR_Request *sreq)
{
	struct MPID_nem_glex_lmt *lmt = &MPID_nem_glex_req(sreq)->lmt;
	intptr_t size;

	MPID_nem_glex_await(vc, sreq, MPID_NEM_GLEX_LMT);
	size = MPID_nem_glex_lmt_begin(vc, sreq, lmt);
	lmt->cookie = &lmt->small.head;
	lmt->cookie->len = size;
	lmt->cookie->offer = 0;
	lmt->never = !MPID_nem_glex.zero_copy;
	lmt->pipe = MPID_nem_glex.zero_copy && (!lmt->buf || MPID_nem_glex.unreachable);
	MPID_nem_glex.stats.packed += lmt->pipe && !lmt->buf;
	MPID_nem_glex.stats.copied += lmt->pipe && lmt->buf;
	if (MPIR_CVAR_ENABLE_FT)
		MPID_nem_lmt_rtsq_enqueue(&vc->ch.lmt_rts_queue, sreq);
}

/* Sends the data itself, as CH3 does without LMT. */
static int MPID_nem_glex_lmt_stream(struct MPID_nem_glex_lmt *lmt)
{
	MPIR_Request *req = lmt->req;
	MPIDI_VC_t *vc = lmt->vc;
	MPIDI_CH3_Pkt_t upkt;
	MPIDI_CH3_Pkt_rndv_send_t *pkt = &upkt.rndv_send;
	intptr_t size;
	void *buf;

	MPID_nem_glex_lmt_free(lmt); /* its room in the request is the queue's now */
	MPID_nem_glex_req(req)->wait.role = MPID_NEM_GLEX_ANY;
	MPID_nem_glex.stats.streamed++;
	buf = MPID_nem_glex_contig(req, &size);
	MPIDI_Pkt_init(pkt, MPIDI_CH3_PKT_RNDV_SEND);
	pkt->receiver_req_id = req->ch.lmt_req_id;
	req->dev.OnDataAvail = NULL;
	if (buf)
		return MPID_nem_glex_iSendContig(vc, req, pkt, sizeof(*pkt), buf, size);
	req->dev.msg_offset = 0;
	req->dev.msgsize = size;
	return vc->sendNoncontig_fn(vc, req, pkt, sizeof(*pkt), NULL, 0);
}

/* Begins with the chunks.  0: not yet. */
static int MPID_nem_glex_lmt_pipe(struct MPID_nem_glex_lmt *lmt)
{
	int mpi_errno = MPI_SUCCESS;
	int begun = MPID_nem_glex_pipe_start(lmt, &mpi_errno);

	if (begun < 0)
		mpi_errno = MPID_nem_glex_lmt_stream(lmt);
	MPID_nem_glex_note(mpi_errno);
	return begun;
}

/* Exposes a buffer late and tells the receiver.  0: not yet. */
static int MPID_nem_glex_lmt_late(struct MPID_nem_glex_lmt *lmt)
{
	int mpi_errno = MPI_SUCCESS;

	if (lmt->pipe)
		return MPID_nem_glex_lmt_pipe(lmt);
	if (!lmt->count && MPID_nem_glex.zero_copy && glexch_region_count(lmt->cookie->len) <= MPID_NEM_GLEX_LATE_MAX) {
		mpi_errno = MPID_nem_glex_lmt_expose(lmt, 1);
		if (mpi_errno == MPI_SUCCESS && !lmt->count && !lmt->never)
			return 0;
	}
	if (mpi_errno == MPI_SUCCESS && !lmt->count)
		mpi_errno = MPID_nem_glex_lmt_stream(lmt);
	else if (mpi_errno == MPI_SUCCESS)
		mpi_errno =
			MPID_nem_lmt_send_COOKIE(lmt->vc, lmt->req, lmt->cookie, MPID_nem_glex_cookie_size(lmt->count));
	MPID_nem_glex_note(mpi_errno);
	return 1;
}

/* The receiver waits for handles, or for pieces. */
void MPID_nem_glex_lmt_tell(struct MPID_nem_glex_lmt *lmt)
{
	struct MPID_nem_glex_lmt **p;

	lmt->next = NULL;
	for (p = &MPID_nem_glex.lmt_waiting; *p; p = &(*p)->next)
		;
	*p = lmt;
	MPID_nem_glex_lmt_retry();
}

/* CTS: the receiver of an RTS asks for handles or pieces, or that it be put. */
int MPID_nem_glex_lmt_start_send(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec r_cookie)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_lmt *lmt = &MPID_nem_glex_req(req)->lmt;
	struct MPID_nem_glex_want want = {0};

	if (r_cookie.iov_len == sizeof(want))
		memcpy(&want, r_cookie.iov_base, sizeof(want));
	MPIR_ERR_CHKANDJUMP1(!want.chunk || (want.how == MPID_NEM_GLEX_WANT_PUT && !lmt->cookie->offer), mpi_errno,
			     MPI_ERR_INTERN, "**fail", "%s", "a CTS that is no answer to its RTS");
	lmt->piece = want.chunk < MPID_nem_glex.pool.size ? want.chunk : MPID_nem_glex.pool.size;
	if (want.how == MPID_NEM_GLEX_WANT_PUT && MPID_nem_glex_put(lmt, &want.place))
		goto fn_exit;
	if (lmt->cookie->offer)
		MPID_nem_glex_offered_in_vain(lmt->buf);
	if (want.how == MPID_NEM_GLEX_WANT_COPY) {
		MPID_nem_glex.unreachable = 1;
		MPID_nem_glex.stats.copied += !lmt->pipe;
		MPID_nem_glex_lmt_hide(lmt);
		lmt->pipe = 1;
	}
	MPID_nem_glex_lmt_tell(lmt);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

void MPID_nem_glex_lmt_retry(void)
{
	struct MPID_nem_glex_lmt *lmt;

	while ((lmt = MPID_nem_glex.lmt_waiting)) {
		MPID_nem_glex.lmt_waiting = lmt->next; /* before: it may be gone with its request */
		if (!MPID_nem_glex_lmt_late(lmt)) {
			lmt->next = MPID_nem_glex.lmt_waiting;
			MPID_nem_glex.lmt_waiting = lmt;
			return;
		}
	}
}

/* Nobody fetches it any more: it is done, or cancelled, or the receiver is lost. */
void MPID_nem_glex_lmt_release(MPIR_Request *req)
{
	struct MPID_nem_glex_lmt **p, *lmt = &MPID_nem_glex_req(req)->lmt;

	for (p = &MPID_nem_glex.lmt_waiting; *p && *p != lmt; p = &(*p)->next)
		;
	if (*p)
		*p = lmt->next;
	MPID_nem_glex_lmt_free(lmt);
}

/* DONE: the receiver has everything. */
int MPID_nem_glex_lmt_done_send(MPIDI_VC_t *vc, MPIR_Request *req)
{
	return MPID_Request_complete(req); /* glex_lost.c gives back what it held */
}

/* ---- receiver ------------------------------------------------------------ */

/* The lengths of a cookie agree (I2): with its own, and with what is to be fetched. */
static int MPID_nem_glex_cookie_sane(const struct iovec *iov, intptr_t size, uint32_t *count_p)
{
	const struct MPID_nem_glex_cookie *cookie = iov->iov_base;

	if (iov->iov_len < sizeof(*cookie) || cookie->len < (uint64_t)size)
		return 0;
	*count_p = (uint32_t)((iov->iov_len - sizeof(*cookie)) / sizeof(struct glexch_region));
	return iov->iov_len == MPID_nem_glex_cookie_size(*count_p) &&
	       (*count_p == 0 || *count_p == glexch_region_count(cookie->len));
}

/* A copy of a cookie, which comes unaligned. */
static int MPID_nem_glex_cookie_read(MPIR_Request *req, const struct iovec *from,
				     struct MPID_nem_glex_cookie **cookie_p, uint32_t *count)
{
	int mpi_errno = MPI_SUCCESS;
	struct iovec iov = {.iov_base = MPL_malloc(from->iov_len + 1, MPL_MEM_BUFFER), .iov_len = from->iov_len};

	*cookie_p = iov.iov_base;
	MPIR_ERR_CHKANDJUMP(!iov.iov_base, mpi_errno, MPI_ERR_OTHER, "**nomem");
	memcpy(iov.iov_base, from->iov_base, from->iov_len);
	MPIR_ERR_CHKANDJUMP1(!MPID_nem_glex_cookie_sane(&iov, req->ch.lmt_data_sz, count), mpi_errno, MPI_ERR_INTERN,
			     "**fail", "%s", "a rendezvous cookie contradicts itself");
fn_exit:
	return mpi_errno;
fn_fail:
	MPL_free(iov.iov_base);
	*cookie_p = NULL;
	goto fn_exit;
}

/* CTS: where it is, or how it shall come. */
int MPID_nem_glex_ask(MPIDI_VC_t *vc, MPIR_Request *req, enum MPID_nem_glex_how how)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_want *want = &MPID_nem_glex_req(req)->fetch.want; /* sent by reference */

	if (how != MPID_NEM_GLEX_WANT_PUT)
		memset(want, 0, sizeof(*want));
	want->chunk = MPID_nem_glex.pool.size;
	want->how = how;
	MPID_nem_lmt_send_CTS(vc, req, want, sizeof(*want));
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* RTS, matched. */
int MPID_nem_glex_lmt_start_recv(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec s_cookie)
{
	struct MPID_nem_glex_fetch *fetch = &MPID_nem_glex_req(req)->fetch;
	struct MPID_nem_glex_cookie *cookie;
	uint32_t count;
	int accepted, mpi_errno = MPID_nem_glex_cookie_read(req, &s_cookie, &cookie, &count);

	MPIR_ERR_CHECK(mpi_errno);
	memset(fetch, 0, sizeof(*fetch));
	fetch->req = req;
	fetch->vc = vc;
	MPID_nem_glex_await(vc, req, MPID_NEM_GLEX_FETCH);
	accepted = MPID_nem_glex_accepts(vc, req, cookie);
	if (!accepted && (count || req->ch.lmt_data_sz == 0))
		return MPID_nem_glex_fetch(vc, req, cookie);
	req->dev.recv_data_sz = cookie->len; /* it may come as a stream */
	MPL_free(cookie);
	mpi_errno = MPID_nem_glex_ask(vc, req, accepted ? MPID_NEM_GLEX_WANT_PUT : MPID_NEM_GLEX_WANT_HANDLES);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* The handles asked for. */
int MPID_nem_glex_lmt_handle_cookie(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec s_cookie)
{
	struct MPID_nem_glex_cookie *cookie;
	uint32_t count;
	int mpi_errno = MPID_nem_glex_cookie_read(req, &s_cookie, &cookie, &count);

	(void)MPID_nem_glex_accepted_over(&MPID_nem_glex_req(req)->fetch);
	if (mpi_errno == MPI_SUCCESS && !count) {
		MPL_free(cookie);
		MPIR_ERR_SET1(mpi_errno, MPI_ERR_INTERN, "**fail", "%s", "a rendezvous cookie contradicts itself");
	}
	return mpi_errno == MPI_SUCCESS ? MPID_nem_glex_fetch(vc, req, cookie) : mpi_errno;
}

/* DONE: the sender has put everything in place. */
int MPID_nem_glex_lmt_done_recv(MPIDI_VC_t *vc, MPIR_Request *req)
{
	int mpi_errno = MPI_SUCCESS;
	MPID_nem_glex_req_t *area = MPID_nem_glex_req(req);

	if (area->wait.role == MPID_NEM_GLEX_FETCH && MPID_nem_glex_accepted_over(&area->fetch))
		return MPID_Request_complete(req);
	MPIR_ERR_SET1(mpi_errno, MPI_ERR_INTERN, "**fail", "%s",
		      "a rendezvous was ended by its sender, who was not to put it");
	return mpi_errno;
}
