/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_held.c - a receiver's memory does not grow with what it does not receive.
 *
 * CH3 keeps messages for which no receive is posted.  Now and then, after so many
 * bytes have come, its queue is counted here; when it holds more than
 * GLEX_MPI_UNEXPECTED_MAX, those who sent most of it are held:
 *
 *      receiver                              sender
 *      too much is unexpected --- HOLD --->  its sends wait for their receives from now on, also those
 *                                            that are in its queue: short ones become synchronous,
 *                                            others a rendezvous
 *      half of it is received --- HOLD, 0 -> as before
 *
 * So MPI_Send blocks, and what was not asked for stays where it is.  Its envelopes
 * still come, each a request of CH3's: who has begun a receive may want the last of them.  Nothing is
 * ever kept from flowing: a receive for a later message of the same sender is
 * reached, if that has been sent.
 *
 * I1  What arrives without a rendezvous adds to `fed`, at least as much as it costs
 *     when it is unexpected; so between two looks at the queue it cannot grow by more.
 * I2  Only messages that holding prevents are counted: a sender that is held cannot
 *     keep itself held.
 * I3  A look costs a step for each message; the next comes after as many bytes, or
 *     polls, as make up for it.
 */
#include "glex_impl.h"
#include "glex_release.h"

#define MPID_NEM_GLEX_HELD_EAGER  256 /* bytes: what is not longer costs the receiver no more than a rendezvous would */
#define MPID_NEM_GLEX_LIMIT_LOOKS 8   /* at the queue, while it fills up to the limit */
#define MPID_NEM_GLEX_LOOK_POLLS  256 /* between two of them at least, while somebody is held */

/* ---- sender -------------------------------------------------------------- */

/* The peer says that our messages pile up there, or no more. */
void MPID_nem_glex_held(struct glexch_conn *conn, int on)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);
	intptr_t limit = MPID_NEM_GLEX_HELD_EAGER + sizeof(MPIDI_CH3_Pkt_eager_send_t);

	MPID_nem_glex_vc(vc)->held = on != 0;
	vc->eager_max_msg_sz = on && limit < MPID_nem_glex.eager_max ? limit : MPID_nem_glex.eager_max;
	MPID_nem_glex.stats.held += on != 0;
}

/* The connection of vc is gone, and with it what was agreed. */
void MPID_nem_glex_held_forget(MPIDI_VC_t *vc)
{
	MPID_nem_glex_vc(vc)->held = 0;
	MPID_nem_glex_vc(vc)->holding = 0;
	vc->eager_max_msg_sz = MPID_nem_glex.eager_max;
}

static void MPID_nem_glex_make_synchronous(MPIR_Request *sreq, MPIDI_CH3_Pkt_t *pkt)
{
	int was_incomplete;

	pkt->type = MPIDI_CH3_PKT_EAGER_SYNC_SEND;
	pkt->eager_sync_send.sender_req_id = sreq->handle;
	MPIDI_CH3U_Request_increment_cc(sreq, &was_incomplete); /* sent, and acknowledged */
	(void)was_incomplete;
	MPIDI_Request_set_type(sreq, MPIDI_REQUEST_TYPE_SSEND);
}

/* The header of a message that becomes synchronous, in pkt; or as it is. */
void *MPID_nem_glex_held_header(MPIR_Request *sreq, void *hdr, intptr_t hdr_sz, MPIDI_CH3_Pkt_t *pkt)
{
	if (((MPIDI_CH3_Pkt_t *)hdr)->type != MPIDI_CH3_PKT_EAGER_SEND)
		return hdr;
	memcpy(pkt, hdr, hdr_sz);
	MPID_nem_glex_make_synchronous(sreq, pkt);
	return pkt;
}

/* What was sent before the peer has said so, and is in the queue, whole.  1: its packet is an offer now, a rendezvous. */
int MPID_nem_glex_held_queued(MPIDI_VC_t *vc, MPIR_Request *sreq)
{
	MPIDI_CH3_Pkt_t *pkt = &sreq->dev.pending_pkt;

	if (pkt->eager_send.data_sz > MPID_NEM_GLEX_HELD_EAGER) {
		MPID_nem_glex_lmt_offer(sreq);
		return 1;
	}
	if (pkt->type == MPIDI_CH3_PKT_EAGER_SEND) {
		MPID_nem_glex_make_synchronous(sreq, pkt);
		MPID_nem_glex_await(vc, sreq, MPID_NEM_GLEX_ANY);
	}
	return 0;
}

/* A message without a request gets one. */
int MPID_nem_glex_held_send(MPIDI_VC_t *vc, const void *hdr, intptr_t hdr_sz, void *data, intptr_t data_sz,
			    MPIR_Request **sreq_ptr)
{
	int mpi_errno = MPI_SUCCESS;
	const MPIDI_CH3_Pkt_eagershort_send_t *brief = hdr;
	MPIR_Request *sreq = MPIR_Request_create(MPIR_REQUEST_KIND__SEND);
	MPIDI_CH3_Pkt_t pkt;

	MPIR_ERR_CHKANDJUMP(!sreq, mpi_errno, MPI_ERR_OTHER, "**nomemreq");
	MPIR_Object_set_ref(sreq, 2); /* the caller's, and the one that completion drops */
	sreq->dev.OnDataAvail = NULL;
	memset(&pkt, 0, sizeof(pkt));
	memcpy(&pkt, hdr, hdr_sz);
	if (brief->type == MPIDI_CH3_PKT_EAGERSHORT_SEND) { /* its data lies in the header, which goes away */
		memset(&pkt, 0, sizeof(pkt));
		pkt.eager_send.match = brief->match;
#ifdef MPID_USE_SEQUENCE_NUMBERS
		pkt.eager_send.seqnum = brief->seqnum;
#endif
		pkt.eager_send.data_sz = data_sz = brief->data_sz;
		data = memcpy(MPID_nem_glex_req(sreq)->send.brief, brief->data, data_sz);
	}
	pkt.type = MPIDI_CH3_PKT_EAGER_SEND; /* to be made synchronous */
	mpi_errno = MPID_nem_glex_iSendContig(vc, sreq, &pkt, sizeof(pkt.eager_send), data, data_sz);
	MPIR_ERR_CHECK(mpi_errno);
	*sreq_ptr = sreq;
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* ---- receiver ------------------------------------------------------------ */

/* What a message costs that would not be here if its sender were held (I2). */
static uint64_t MPID_nem_glex_cost(const MPIR_Request *req)
{
	if (MPIDI_Request_get_msg_type(req) != MPIDI_REQUEST_EAGER_MSG)
		return 0;
	if (MPIDI_Request_get_sync_send_flag(req) && req->dev.recv_data_sz <= MPID_NEM_GLEX_HELD_EAGER)
		return 0;
	return sizeof(*req) + req->dev.recv_data_sz;
}

/* Who sent it; NULL: that cannot be told, as for messages between two groups. */
static MPIDI_VC_t *MPID_nem_glex_sender(const MPIR_Request *req)
{
	const int kind = MPID_NEM_GLEX_COLL_ID, id = req->dev.match.parts.context_id;
	MPIR_Comm *comm = NULL;
	MPIDI_VC_t *vc;

	MPIDI_CH3I_Comm_find(id, &comm);
	if (comm && comm->context_id != id && comm->context_id + kind != id)
		comm = comm->node_comm &&
				       (comm->node_comm->context_id == id || comm->node_comm->context_id + kind == id)
			       ? comm->node_comm
			       : comm->node_roots_comm;
	if (!comm || comm->comm_kind != MPIR_COMM_KIND__INTRACOMM || req->dev.match.parts.rank >= comm->local_size)
		return NULL;
	MPIDI_Comm_get_vc(comm, req->dev.match.parts.rank, &vc);
	return vc;
}

/* Messages of a VC come through this netmod.  The areas of others are garbage. */
static int MPID_nem_glex_ours(const MPIDI_VC_t *vc)
{
	return vc->ch.iStartContigMsg == MPID_nem_glex_iStartContigMsg;
}

static void MPID_nem_glex_each_vc(void (*visit)(MPIDI_VC_t *vc, uint64_t arg), uint64_t arg)
{
	MPIDI_PG_iterator iter;
	MPIDI_PG_t *pg;
	int i;

	MPIDI_PG_Get_iterator(&iter);
	while (MPIDI_PG_Has_next(&iter)) {
		MPIDI_PG_Get_next(&iter, &pg);
		for (i = 0; pg && i < pg->size; i++)
			if (MPID_nem_glex_ours(&pg->vct[i]))
				visit(&pg->vct[i], arg);
	}
}

static void MPID_nem_glex_begin_count(MPIDI_VC_t *vc, uint64_t arg)
{
	MPID_nem_glex_vc(vc)->piled = arg;
}

static void MPID_nem_glex_hold(MPIDI_VC_t *vc, uint64_t at_least)
{
	MPID_nem_glex_vc_t *area = MPID_nem_glex_vc(vc);

	if (area->holding || !area->conn || area->piled < at_least)
		return;
	area->holding = 1;
	MPID_nem_glex.holding = 1;
	MPID_nem_glex.stats.holds++;
	glexch_conn_hold(area->conn, 1);
}

static void MPID_nem_glex_let_go(MPIDI_VC_t *vc, uint64_t arg)
{
	MPID_nem_glex_vc_t *area = MPID_nem_glex_vc(vc);

	if (area->holding && area->conn)
		glexch_conn_hold(area->conn, 0);
	area->holding = 0;
}

/* Holds those who have sent most: who is left has sent no more than half the limit, all together. */
static void MPID_nem_glex_hold_most(void)
{
	uint64_t senders = 1, unknown = 0, at_least;
	MPIR_Request *req;

	MPID_nem_glex_each_vc(MPID_nem_glex_begin_count, 0);
	for (req = MPIDI_GLEX_unexpected(); req; req = req->next) {
		uint64_t cost = MPID_nem_glex_cost(req);
		MPIDI_VC_t *vc = cost ? MPID_nem_glex_sender(req) : NULL;

		if (vc && MPID_nem_glex_ours(vc)) {
			senders += !MPID_nem_glex_vc(vc)->piled;
			MPID_nem_glex_vc(vc)->piled += cost;
		} else if (!vc) {
			unknown += cost;
		}
	}
	at_least = unknown > MPID_nem_glex.unexpected_max / 2 ? 0 : MPID_nem_glex.unexpected_max / (2 * senders);
	MPID_nem_glex_each_vc(MPID_nem_glex_hold, at_least);
}

/* Looks at the queue. */
void MPID_nem_glex_look(void)
{
	uint64_t limit = MPID_nem_glex.unexpected_max, total = 0, steps = 0;
	MPIR_Request *req;

	for (req = MPIDI_GLEX_unexpected(); req; req = req->next, steps++)
		total += MPID_nem_glex_cost(req);
	if (total > limit) {
		MPID_nem_glex_hold_most();
	} else if (MPID_nem_glex.holding && total <= limit / 2) {
		MPID_nem_glex_each_vc(MPID_nem_glex_let_go, 0);
		MPID_nem_glex.holding = 0;
	}
	MPID_nem_glex.fed = 0;
	MPID_nem_glex.look_at = limit / MPID_NEM_GLEX_LIMIT_LOOKS + 1;
	MPID_nem_glex.fed_by_poll =
		MPID_nem_glex.holding ? MPID_nem_glex.look_at / (steps / 4 + MPID_NEM_GLEX_LOOK_POLLS) + 1 : 0; /* I3 */
}

/* limit: 0 for none. */
void MPID_nem_glex_held_init(uint64_t limit)
{
	MPID_nem_glex.unexpected_max = limit;
	MPID_nem_glex.look_at = limit ? limit / MPID_NEM_GLEX_LIMIT_LOOKS + 1 : UINT64_MAX;
}
