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
 * Data that
 * is not contiguous goes through a packed copy, on the side where it is not.
 *
 * Where the system lets no process reach another's private memory (containers
 * that forbid cross-memory attach), the first GET ends so.  The receiver then
 * sends a CTS with one byte, the sender makes a copy in shareable memory and
 * answers with its handles as above; from then on it copies at once.
 *
 * I1  The cookie lies in the request (or hangs on it): it is sent by reference.
 * I2  Nothing from a cookie is used before its lengths agree with each other.
 */
#include "glex_impl.h"

/*
 * Regions that a COOKIE packet can bring: CH3 loses a cookie that does not come
 * in one piece with its packet, so both must fit into one mini-packet.
 */
#define MPID_NEM_GLEX_LATE_MAX	  1u
#define MPID_NEM_GLEX_BOUNCE_KEEP ((size_t)16 << 20)

_Static_assert(sizeof(MPIDI_CH3_Pkt_t) + sizeof(struct MPID_nem_glex_cookie) +
			       MPID_NEM_GLEX_LATE_MAX * sizeof(struct glexch_region) <=
		       GLEXCH_MP_BODY,
	       "a late cookie in one mini-packet");

static const uint8_t MPID_nem_glex_copy_wanted = 1; /* the cookie of a CTS */

/* ---- datatypes ----------------------------------------------------------- */

/* Where the data of a contiguous buffer begins; NULL: it is not contiguous. */
static void *MPID_nem_glex_contig(MPIR_Request *req, intptr_t *size_p)
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

static int MPID_nem_glex_pack(MPIR_Request *req, void *tmp, intptr_t size)
{
	MPI_Aint done = 0;

#if MPICH_NUMVERSION < 40100000
	return MPIR_Typerep_pack(req->dev.user_buf, req->dev.user_count, req->dev.datatype, 0, tmp, size, &done);
#else
	return MPIR_Typerep_pack(req->dev.user_buf, req->dev.user_count, req->dev.datatype, 0, tmp, size, &done,
				 MPIR_TYPEREP_FLAG_NONE);
#endif
}

static int MPID_nem_glex_unpack(MPIR_Request *req, const void *tmp, intptr_t size)
{
	MPI_Aint done = 0;

#if MPICH_NUMVERSION < 40100000
	return MPIR_Typerep_unpack(tmp, size, req->dev.user_buf, req->dev.user_count, req->dev.datatype, 0, &done);
#else
	return MPIR_Typerep_unpack(tmp, size, req->dev.user_buf, req->dev.user_count, req->dev.datatype, 0, &done,
				   MPIR_TYPEREP_FLAG_NONE);
#endif
}

/* ---- sender -------------------------------------------------------------- */

static size_t MPID_nem_glex_cookie_size(uint32_t count)
{
	return sizeof(struct MPID_nem_glex_cookie) + count * sizeof(struct glexch_region);
}

/* Shareable memory: one kept from before, if it is not much too large, or new. */
static struct MPID_nem_glex_bounce *MPID_nem_glex_bounce_get(size_t size)
{
	struct MPID_nem_glex_bounce *b;

	for (b = MPID_nem_glex.bounces; b; b = b->next)
		if (!b->busy && b->size >= size && b->size / 8 <= size)
			break;
	if (!b) {
		b = MPL_malloc(sizeof(*b), MPL_MEM_BUFFER);
		if (!b)
			return NULL;
		b->mem = glexch_alloc(MPID_nem_glex.ch, size);
		b->size = size;
		if (!b->mem) {
			MPL_free(b);
			return NULL;
		}
		b->next = MPID_nem_glex.bounces;
		MPID_nem_glex.bounces = b;
	}
	b->busy = 1;
	return b;
}

/* Kept for the next, but for the odd giant. */
static void MPID_nem_glex_bounce_put(struct MPID_nem_glex_bounce *b)
{
	struct MPID_nem_glex_bounce **p;

	b->busy = 0;
	if (b->size <= MPID_NEM_GLEX_BOUNCE_KEEP)
		return;
	for (p = &MPID_nem_glex.bounces; *p != b; p = &(*p)->next)
		;
	*p = b->next;
	glexch_free(MPID_nem_glex.ch, b->mem);
	MPL_free(b);
}

void MPID_nem_glex_lmt_finalize(void)
{
	struct MPID_nem_glex_bounce *b;

	while ((b = MPID_nem_glex.bounces)) {
		MPID_nem_glex.bounces = b->next;
		glexch_free(MPID_nem_glex.ch, b->mem);
		MPL_free(b);
	}
}

/* Makes a copy where peers can reach it. */
static int MPID_nem_glex_lmt_copy(struct MPID_nem_glex_lmt *lmt)
{
	if (lmt->bounce)
		return 1;
	lmt->bounce = MPID_nem_glex_bounce_get(lmt->cookie->len);
	if (!lmt->bounce)
		return 0;
	MPID_nem_glex.stats.copied++;
	memcpy(lmt->bounce->mem, lmt->buf, lmt->cookie->len);
	lmt->buf = lmt->bounce->mem;
	return 1;
}

static void MPID_nem_glex_lmt_hide(struct MPID_nem_glex_lmt *lmt)
{
	if (lmt->count)
		glexch_unexpose(MPID_nem_glex.ch, lmt->cookie->len, lmt->cookie->regions);
	lmt->count = 0;
}

static void MPID_nem_glex_lmt_free(struct MPID_nem_glex_lmt *lmt)
{
	MPID_nem_glex_lmt_hide(lmt);
	if (lmt->bounce)
		MPID_nem_glex_bounce_put(lmt->bounce);
	lmt->bounce = NULL;
	if (lmt->cookie != &lmt->small.head)
		MPL_free(lmt->cookie);
	lmt->cookie = NULL;
	MPL_free(lmt->tmp);
	lmt->tmp = NULL;
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

static int MPID_nem_glex_lmt_prepare(MPIDI_VC_t *vc, MPIR_Request *req, struct MPID_nem_glex_lmt *lmt)
{
	int mpi_errno = MPI_SUCCESS;
	intptr_t size;
	uint32_t count;

	memset(lmt, 0, sizeof(*lmt));
	lmt->req = req;
	lmt->vc = vc;
	lmt->buf = MPID_nem_glex_contig(req, &size);
	count = glexch_region_count(size);
	lmt->cookie = &lmt->small.head;
	if (MPID_nem_glex_cookie_size(count) > sizeof(lmt->small))
		lmt->cookie = MPL_malloc(MPID_nem_glex_cookie_size(count), MPL_MEM_BUFFER);
	MPIR_ERR_CHKANDJUMP(!lmt->cookie, mpi_errno, MPI_ERR_OTHER, "**nomem");
	lmt->cookie->len = size;
	if (!MPID_nem_glex.zero_copy) { /* the CTS will have it streamed */
		lmt->never = 1;
		goto fn_exit;
	}
	if (!lmt->buf) {
		lmt->tmp = MPL_malloc(size, MPL_MEM_BUFFER);
		MPIR_ERR_CHKANDJUMP(!lmt->tmp, mpi_errno, MPI_ERR_OTHER, "**nomem");
		MPID_nem_glex.stats.packed++;
		mpi_errno = MPID_nem_glex_pack(req, lmt->tmp, size);
		MPIR_ERR_CHECK(mpi_errno);
		lmt->buf = lmt->tmp;
	}
	MPIR_ERR_CHKANDJUMP(MPID_nem_glex.bounce && !MPID_nem_glex_lmt_copy(lmt), mpi_errno, MPI_ERR_OTHER, "**nomem");
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

	MPID_nem_glex_await(vc, req, 1);
	mpi_errno = MPID_nem_glex_lmt_prepare(vc, req, lmt);
	MPIR_ERR_CHECK(mpi_errno);
	MPID_nem_glex.stats.rndv[glexch_size_class(lmt->cookie->len)]++;
	MPID_nem_glex.stats.rndv_bytes += lmt->cookie->len;
	MPID_nem_lmt_send_RTS(vc, rts_pkt, lmt->cookie, MPID_nem_glex_cookie_size(lmt->count));
fn_exit:
	return mpi_errno;
fn_fail:
	MPID_nem_glex_await_no_more(req);
	MPID_nem_glex_lmt_free(lmt);
	goto fn_exit;
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
	MPID_nem_glex_req(req)->wait.rndv_send = 0;
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

/* Exposes a buffer late and tells the receiver.  0: not yet. */
static int MPID_nem_glex_lmt_late(struct MPID_nem_glex_lmt *lmt)
{
	int mpi_errno = MPI_SUCCESS;

	if (MPID_nem_glex.zero_copy && glexch_region_count(lmt->cookie->len) <= MPID_NEM_GLEX_LATE_MAX) {
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

/* CTS: the receiver of an RTS asks for handles, or with a byte in the cookie for a copy it can reach. */
int MPID_nem_glex_lmt_start_send(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec r_cookie)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_lmt **p, *lmt = &MPID_nem_glex_req(req)->lmt;

	if (r_cookie.iov_len) {
		MPID_nem_glex.bounce = 1;
		MPID_nem_glex_lmt_hide(lmt);
		MPIR_ERR_CHKANDJUMP(!MPID_nem_glex_lmt_copy(lmt), mpi_errno, MPI_ERR_OTHER, "**nomem");
	}
	lmt->next = NULL;
	for (p = &MPID_nem_glex.lmt_waiting; *p; p = &(*p)->next)
		;
	*p = lmt;
	MPID_nem_glex_lmt_retry();
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

/* The message is in place, or lost. */
static void MPID_nem_glex_fetched(void *arg, enum glexch_got got)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_fetch *fetch = arg;
	MPIR_Request *req = fetch->req;

	if (got == GLEXCH_GOT_NO_ACCESS && !fetch->again) {
		MPL_free(fetch->tmp);
		fetch->again = 1;
		MPID_nem_lmt_send_CTS(fetch->vc, req, &MPID_nem_glex_copy_wanted, 1);
		return;
	}
	if (got != GLEXCH_GOT_ALL) {
		req->status.MPI_ERROR = MPID_nem_glex_comm_error(fetch->vc);
		MPL_free(fetch->tmp);
		goto fn_complete;
	}
	if (fetch->tmp) {
		mpi_errno = MPID_nem_glex_unpack(req, fetch->tmp, req->ch.lmt_data_sz);
		MPL_free(fetch->tmp);
		MPIR_ERR_CHECK(mpi_errno);
	}
	MPID_nem_lmt_send_DONE(fetch->vc, req);
fn_complete:
	MPID_nem_glex_note(MPID_Request_complete(req));
	return;
fn_exit:
fn_fail:
	req->status.MPI_ERROR = mpi_errno;
	goto fn_complete;
}

/* Begins the GETs of a message whose handles are known. */
static int MPID_nem_glex_fetch(MPIDI_VC_t *vc, MPIR_Request *req, const struct MPID_nem_glex_cookie *cookie)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_fetch *fetch = &MPID_nem_glex_req(req)->fetch;
	struct glexch_conn *conn = MPID_nem_glex_vc(vc)->conn;
	intptr_t size;

	fetch->req = req;
	fetch->vc = vc;
	fetch->tmp = NULL;
	fetch->buf = MPID_nem_glex_contig(req, &size);
	if (req->ch.lmt_data_sz == 0) {
		MPID_nem_glex_fetched(fetch, GLEXCH_GOT_ALL);
		goto fn_exit;
	}
	if (!fetch->buf) {
		fetch->tmp = MPL_malloc(req->ch.lmt_data_sz, MPL_MEM_BUFFER);
		MPIR_ERR_CHKANDJUMP(!fetch->tmp, mpi_errno, MPI_ERR_OTHER, "**nomem");
		fetch->buf = fetch->tmp;
	}
	MPIR_ERR_CHKANDJUMP(
		!glexch_get(conn, fetch->buf, req->ch.lmt_data_sz, cookie->regions, MPID_nem_glex_fetched, fetch),
		mpi_errno, MPI_ERR_OTHER, "**nomem");
fn_exit:
	return mpi_errno;
fn_fail:
	MPL_free(fetch->tmp);
	goto fn_exit;
}

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

/* RTS, matched. */
int MPID_nem_glex_lmt_start_recv(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec s_cookie)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_cookie *cookie = MPL_malloc(s_cookie.iov_len, MPL_MEM_BUFFER);
	uint32_t count;

	MPIR_ERR_CHKANDJUMP(!cookie, mpi_errno, MPI_ERR_OTHER, "**nomem");
	memcpy(cookie, s_cookie.iov_base, s_cookie.iov_len); /* it comes unaligned */
	s_cookie.iov_base = cookie;
	MPIR_ERR_CHKANDJUMP1(!MPID_nem_glex_cookie_sane(&s_cookie, req->ch.lmt_data_sz, &count), mpi_errno,
			     MPI_ERR_INTERN, "**fail", "%s", "a rendezvous cookie contradicts itself");
	MPID_nem_glex_req(req)->fetch.again = 0;
	MPID_nem_glex_await(vc, req, 0);
	if (count || req->ch.lmt_data_sz == 0) {
		mpi_errno = MPID_nem_glex_fetch(vc, req, cookie);
		MPIR_ERR_CHECK(mpi_errno);
	} else {
		req->dev.recv_data_sz = cookie->len; /* it may come as a stream */
		MPID_nem_lmt_send_CTS(vc, req, NULL, 0);
	}
fn_exit:
	MPL_free(cookie);
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* The handles asked for. */
int MPID_nem_glex_lmt_handle_cookie(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec s_cookie)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_cookie *cookie = MPL_malloc(s_cookie.iov_len + 1, MPL_MEM_BUFFER);
	uint32_t count;

	MPIR_ERR_CHKANDJUMP(!cookie, mpi_errno, MPI_ERR_OTHER, "**nomem");
	memcpy(cookie, s_cookie.iov_base, s_cookie.iov_len);
	s_cookie.iov_base = cookie;
	MPIR_ERR_CHKANDJUMP1(!MPID_nem_glex_cookie_sane(&s_cookie, req->ch.lmt_data_sz, &count) || !count, mpi_errno,
			     MPI_ERR_INTERN, "**fail", "%s", "a rendezvous cookie contradicts itself");
	mpi_errno = MPID_nem_glex_fetch(vc, req, cookie);
	MPIR_ERR_CHECK(mpi_errno);
fn_exit:
	MPL_free(cookie);
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* A DONE from the sender is not part of this protocol. */
int MPID_nem_glex_lmt_done_recv(MPIDI_VC_t *vc, MPIR_Request *req)
{
	int mpi_errno = MPI_SUCCESS;

	MPIR_ERR_SET1(mpi_errno, MPI_ERR_INTERN, "**fail", "%s", "a rendezvous ended by its sender");
	return mpi_errno;
}
