/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_put.c - messages that go back out of the buffer they came into: their sender puts them in place.
 *
 *      A: buffer X                                B: buffer Y
 *      MPI_Send(X): RTS {handles of X} --------->  MPI_Recv(Y)
 *                            <--- GETs ----------  X to Y
 *      MPI_Recv(X)           <--- RTS {offer} ---  MPI_Send(Y)
 *      CTS {handle of X} ----------------------->
 *                            <--- PUT -----------  Y to X
 *                            <--- DONE ----------
 *
 * Eager messages that are lent (glex_lend.c) do the same with events (lend.c), whether they are expected or not.
 *
 * Who copies takes the lines of both buffers into a cache of its own, and to write lines that another has read since
 * costs several times as much as to read what another has written.  If both fetch what comes, either writes
 * what the other has just read, at every message.  If one of them copies in both directions, Y never leaves its
 * cache, and X comes to it when it is read: 256 KiB take 12 us instead of 18 to 45 (EPYC).  Where programs have a buffer for each
 * direction there is nothing of that to be won, and the receiver fetches.
 *
 * I1  Offered is only what its sender waits for (MPI_Send): else the receiver, who could fetch it now, would wait
 *     until the sender looks.  And not where ranks outnumber processors: then he may be without one.
 * I2  The receiver accepts if its buffer is near (glex_lend.c) and takes all of the message; else it fetches as
 *     ever.  A buffer is not offered again soon if that was in vain.
 * I3  With the end of an accepted rendezvous by anything else than the sender's DONE or COOKIE its region is gone,
 *     not only unused: what the sender may still put must not come to memory that is the program's again.
 * I4  What cannot be put goes the late way of glex_lmt.c: the sender tells its handles.
 */
#include "glex_impl.h"

#define MPID_NEM_GLEX_PUT_MIN  (32u << 10) /* shorter ones are fetched while a CTS would still be under way */
#define MPID_NEM_GLEX_PUT_MAX  (8u << 20)  /* longer ones are in no cache */
#define MPID_NEM_GLEX_PUT_SKIP 64	   /* I2: messages */
#define MPID_NEM_GLEX_COPIED   64	   /* buffers remembered */

/* By its first page, where a message was copied to by us; another of the same place takes it over. */
static struct MPID_nem_glex_copied {
	uintptr_t page;
	const struct glexch_conn *from; /* NULL: the lines may be elsewhere by now */
	uint32_t skip;
} MPID_nem_glex_copied[MPID_NEM_GLEX_COPIED];

static struct MPID_nem_glex_copied *MPID_nem_glex_copied_at(const void *buf)
{
	return &MPID_nem_glex_copied[((uintptr_t)buf >> 12) * 2654435761u / 4096 % MPID_NEM_GLEX_COPIED];
}

static int MPID_nem_glex_is_of(const struct MPID_nem_glex_copied *copied, const void *buf)
{
	return copied->page == (uintptr_t)buf >> 12;
}

/* We have copied a message of that peer to buf. */
void MPID_nem_glex_copied_from(const void *buf, const struct glexch_conn *from)
{
	struct MPID_nem_glex_copied *copied = MPID_nem_glex_copied_at(buf);

	if (!MPID_nem_glex_is_of(copied, buf))
		copied->skip = 0;
	copied->page = (uintptr_t)buf >> 12;
	copied->from = from;
}

/* Others copy from or to buf. */
void MPID_nem_glex_copied_by_others(const void *buf)
{
	struct MPID_nem_glex_copied *copied = MPID_nem_glex_copied_at(buf);

	if (MPID_nem_glex_is_of(copied, buf))
		copied->from = NULL;
}

/* ---- sender -------------------------------------------------------------- */

/* The caller waits until a message out of buf is sent, which CH3 is to do next. */
void MPID_nem_glex_waits(const void *buf)
{
	MPID_nem_glex.waited_for = buf;
}

/* Whether a message is offered: asked once for each that will be copied from its buffer by a peer or by us. */
int MPID_nem_glex_offers(const struct glexch_conn *conn, const void *buf, size_t len)
{
	struct MPID_nem_glex_copied *copied = MPID_nem_glex_copied_at(buf);
	int waited_for = MPID_nem_glex.waited_for == buf;

	MPID_nem_glex.waited_for = NULL;
	if (!MPID_nem_glex_is_of(copied, buf) || !copied->from)
		return 0;
	copied->skip -= copied->skip > 0;
	if (waited_for && copied->from == conn && !copied->skip && len >= MPID_NEM_GLEX_PUT_MIN &&
	    len <= MPID_NEM_GLEX_PUT_MAX && MPID_nem_glex.zero_copy && !MPID_nem_glex.crowded &&
	    !MPID_nem_glex.unreachable)
		return 1;    /* I1 */
	copied->from = NULL; /* it will be fetched */
	return 0;
}

/* A CTS without a place: for what was offered, too. */
void MPID_nem_glex_offered_in_vain(const void *buf)
{
	struct MPID_nem_glex_copied *copied = MPID_nem_glex_copied_at(buf);

	if (!MPID_nem_glex_is_of(copied, buf))
		return;
	copied->from = NULL;
	copied->skip = MPID_NEM_GLEX_PUT_SKIP;
}

static int MPID_nem_glex_put_done(MPIDI_VC_t *vc, MPIR_Request *req)
{
	int mpi_errno = MPI_SUCCESS;

	MPID_nem_lmt_send_DONE(vc, req);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

static void MPID_nem_glex_put_over(void *arg, enum glexch_got got)
{
	struct MPID_nem_glex_lmt *lmt = arg;
	MPIR_Request *req = lmt->req;

	if (got == GLEXCH_GOT_LOST_PEER) /* and glex_lost.c ends what waits for it */
		return;
	if (got == GLEXCH_GOT_NO_ACCESS) { /* I4 */
		MPID_nem_glex_offered_in_vain(lmt->buf);
		MPID_nem_glex_lmt_tell(lmt);
		return;
	}
	MPIR_Request_add_ref(req); /* to say so may end the connection, and all that waits for it */
	MPID_nem_glex_note(MPID_nem_glex_put_done(lmt->vc, req));
	if (lmt->cookie)
		MPID_nem_glex_note(MPID_Request_complete(req));
	MPIR_Request_free(req);
}

/* CTS with a place.  0: there is no memory to begin. */
int MPID_nem_glex_put(struct MPID_nem_glex_lmt *lmt, const struct glexch_region *region)
{
	return glexch_put(MPID_nem_glex_vc(lmt->vc)->conn, lmt->buf, lmt->cookie->len, region, MPID_nem_glex_put_over,
			  lmt) != NULL;
}

/* ---- receiver ------------------------------------------------------------ */

/* RTS with an offer.  1: it is accepted, and the CTS is in fetch->want. */
int MPID_nem_glex_accepts(MPIDI_VC_t *vc, MPIR_Request *req, const struct MPID_nem_glex_cookie *cookie)
{
	struct MPID_nem_glex_fetch *fetch = &MPID_nem_glex_req(req)->fetch;
	intptr_t size;

	fetch->buf = MPID_nem_glex_contig(req, &size);
	if (!cookie->offer || !fetch->buf || cookie->len != (uint64_t)req->ch.lmt_data_sz ||
	    !glexch_accept(MPID_nem_glex.ch, fetch->buf, cookie->len, &fetch->want.place))
		return 0;
	fetch->want.chunk = MPID_nem_glex.pool.size;
	fetch->want.how = MPID_NEM_GLEX_WANT_PUT;
	fetch->accepted = 1;
	MPID_nem_glex_copied_by_others(fetch->buf);
	return 1;
}

/* DONE or COOKIE: nothing is put any more.  0: there was nothing to be. */
int MPID_nem_glex_accepted_over(struct MPID_nem_glex_fetch *fetch)
{
	if (!fetch->accepted)
		return 0;
	fetch->accepted = 0;
	glexch_unexpose(MPID_nem_glex.ch, (uint64_t)fetch->req->ch.lmt_data_sz, &fetch->want.place);
	return 1;
}

/* I3 */
void MPID_nem_glex_accepted_no_more(struct MPID_nem_glex_fetch *fetch)
{
	if (fetch->accepted)
		glexch_revoke(MPID_nem_glex.ch, fetch->buf, (uint64_t)fetch->req->ch.lmt_data_sz, &fetch->want.place);
	fetch->accepted = 0;
}
