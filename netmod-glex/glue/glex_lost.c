/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_lost.c - a peer is lost: what ends with it.
 *
 * Who notices: glexd, which tells of every process that has died (glex_dead.c); a
 * request of ours that came to nothing (the channel asks for every peer it is connected
 * to now and then); or the process manager, whose signal makes CH3 terminate the VC.
 * Then end, with MPIX_ERR_PROC_FAILED,
 *
 *      packets that are queued            by the channel, before it tells that the connection has failed
 *      GETs                               likewise
 *      rendezvous whose next packet
 *      was to come from the peer,
 *      synchronous sends                  here, from a list
 *      a message half received            here
 *      receives posted for the peer       by CH3
 *      receives from any source, if the
 *      communicator has the peer in it    by CH3, which looks at that while it waits
 *      one-sided operations               the call that waits for them, here
 *      what others do to a window         where it is waited for: glex_target.c
 *      probes                             where they wait: install-into.sh
 *      what else has no request           here, if errors are fatal: nobody knows of it
 *
 * I1  A request is on the list from when it begins to wait until it is complete,
 *     whoever completes it: MPICH's hook at completion takes it off.
 * I2  What a rendezvous holds is given back then: also that of a send which is
 *     cancelled, of whose end CH3 tells nobody.
 */
#include "glex_impl.h"

#include "mpid_rma_types.h"

#include <stdio.h>

#define MPID_NEM_GLEX_HOST_MAX 64
#define MPID_NEM_GLEX_TEXT_MAX 256

/* ---- who, where and why -------------------------------------------------- */

/* The host of a peer, as its business card names it, and its endpoint; 0: it has none. */
static int MPID_nem_glex_host(MPIDI_VC_t *vc, char host[MPID_NEM_GLEX_HOST_MAX], struct glexch_peer *peer)
{
	char *bc = vc->pg ? MPL_malloc(MPID_NEM_GLEX_CARD_BUF, MPL_MEM_ADDRESS) : NULL;
	int found = 0;

	strcpy(host, "unknown");
	if (bc && vc->pg->getConnInfo(vc->pg_rank, bc, MPID_NEM_GLEX_CARD_BUF, vc->pg) == MPI_SUCCESS) {
		if (MPL_str_get_string_arg(bc, MPID_NEM_GLEX_HOST_KEY, host, MPID_NEM_GLEX_HOST_MAX) != MPL_SUCCESS)
			strcpy(host, "unknown");
		found = MPID_nem_glex_card_read(bc, peer);
	}
	MPL_free(bc);
	return found;
}

static void MPID_nem_glex_describe(MPIDI_VC_t *vc, const char *why, char text[MPID_NEM_GLEX_TEXT_MAX])
{
	struct glexch_conn *conn = MPID_nem_glex_vc(vc)->conn;
	char host[MPID_NEM_GLEX_HOST_MAX], node[32] = "", rank[64] = "a process of a connection that is being made";
	struct glexch_peer peer;
	int known = MPID_nem_glex_host(vc, host, &peer);

	if (conn)
		peer.addr = glexch_conn_addr(conn);
	if (conn || known)
		snprintf(node, sizeof(node), " (node %u)", (unsigned)peer.addr.s.nic_id);
	if (vc->pg)
		snprintf(rank, sizeof(rank), "rank %d%s", vc->pg_rank,
			 vc->pg == MPID_nem_glex.pg ? "" : " of another group");
	snprintf(text, MPID_NEM_GLEX_TEXT_MAX, "%s on host %s%s is lost: %s", rank, host, node, why);
}

/* The error of a request whose peer is lost. */
int MPID_nem_glex_comm_error(MPIDI_VC_t *vc)
{
	char text[MPID_NEM_GLEX_TEXT_MAX];

	MPID_nem_glex_describe(vc, glexch_why(MPID_nem_glex.ch), text);
	return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__, MPIX_ERR_PROC_FAILED,
				    "**comm_fail", "%s", text);
}

/* ---- the list ------------------------------------------------------------ */

static void MPID_nem_glex_wait_unlink(struct MPID_nem_glex_wait *wait)
{
	if (!wait->prev)
		return; /* it has ended already */
	*wait->prev = wait->next;
	if (wait->next)
		wait->next->prev = wait->prev;
	wait->prev = NULL;
}

static void MPID_nem_glex_give_back(struct MPID_nem_glex_wait *wait)
{
	if (wait->role == MPID_NEM_GLEX_LMT)
		MPID_nem_glex_lmt_release(wait->req);
	else if (wait->role == MPID_NEM_GLEX_FETCH)
		MPID_nem_glex_fetch_release(wait->req);
}

/*
 * I1, I2.  With MPIR_CVAR_ENABLE_FT MPICH keeps a list of its own, and expects a CTS to
 * take the send off.
 */
static int MPID_nem_glex_wait_over(MPIR_Request *req)
{
	struct MPID_nem_glex_wait *wait = &MPID_nem_glex_req(req)->wait;
	MPIR_Request *found;

	MPID_nem_glex_wait_unlink(wait);
	MPID_nem_glex_give_back(wait);
	if (!MPID_nem_lmt_rtsq_empty(wait->vc->ch.lmt_rts_queue))
		MPID_nem_lmt_rtsq_search_remove(&wait->vc->ch.lmt_rts_queue, req->handle, &found);
	return MPI_SUCCESS;
}

/* req waits for a packet on vc; what its room is, role says. */
void MPID_nem_glex_await(MPIDI_VC_t *vc, MPIR_Request *req, enum MPID_nem_glex_role role)
{
	struct MPID_nem_glex_wait *wait = &MPID_nem_glex_req(req)->wait;

	wait->req = req;
	wait->vc = vc;
	wait->role = role;
	wait->prev = &MPID_nem_glex.waits;
	wait->next = MPID_nem_glex.waits;
	if (wait->next)
		wait->next->prev = &wait->next;
	MPID_nem_glex.waits = wait;
	req->dev.request_completed_cb = MPID_nem_glex_wait_over;
}

/* It could not even be sent, and is its caller's again. */
void MPID_nem_glex_await_no_more(MPIR_Request *req)
{
	MPID_nem_glex_wait_unlink(&MPID_nem_glex_req(req)->wait);
	req->dev.request_completed_cb = NULL;
}

/* The end: whatever waits still has been given up by the program. */
void MPID_nem_glex_await_nothing(void)
{
	struct MPID_nem_glex_wait *wait;

	while ((wait = MPID_nem_glex.waits)) {
		MPID_nem_glex_await_no_more(wait->req);
		MPID_nem_glex_give_back(wait);
	}
}

/* ---- what ends ----------------------------------------------------------- */

static void MPID_nem_glex_end(MPIR_Request *req, int error)
{
	req->status.MPI_ERROR = error;
	MPIR_cc_set(req->cc_ptr, 1); /* a synchronous send counts two things */
	MPID_nem_glex_note(MPID_Request_complete(req));
}

static void MPID_nem_glex_end_waits(MPIDI_VC_t *vc, int error)
{
	struct MPID_nem_glex_wait *wait = MPID_nem_glex.waits;

	while (wait) {
		if (wait->vc != vc) {
			wait = wait->next;
			continue;
		}
		if (vc->ch.recv_active == wait->req)
			vc->ch.recv_active = NULL;
		MPID_nem_glex_end(wait->req, error); /* and with it from the list */
		wait = MPID_nem_glex.waits;
	}
}

/* A message of which a part has come.  For what was to be written to a window nobody waits here. */
static void MPID_nem_glex_end_half(MPIDI_VC_t *vc, int error)
{
	MPIR_Request *req = vc->ch.recv_active;
	int complete;

	vc->ch.recv_active = NULL;
	vc->ch.pending_pkt_len = 0;
	if (!req || MPID_nem_glex_half_written(req) || MPIDI_Request_get_type(req) != MPIDI_REQUEST_TYPE_RECV)
		return;
	req->status.MPI_ERROR = error;
	if (req->dev.OnDataAvail == MPIDI_CH3_ReqHandler_UnpackUEBufComplete)
		MPID_nem_glex_note(
			req->dev.OnDataAvail(vc, req, &complete)); /* it keeps the books of unexpected ones */
	else
		MPID_nem_glex_end(req, error);
}

/*
 * Receives from any source might wait for the lost one: CH3 ends those that wait
 * on a communicator with failed processes, and later ones until the program has
 * acknowledged the failure (MPIX_Comm_failure_ack), if it is told to.
 */
static void MPID_nem_glex_end_any_source(MPIDI_VC_t *vc)
{
	MPIR_Group *world = NULL, *lost = NULL;
	int rank = vc->pg_rank;

	if (vc->pg != MPID_nem_glex.pg || !MPIR_Process.comm_world)
		return;
	if (MPIR_Comm_group_impl(MPIR_Process.comm_world, &world) != MPI_SUCCESS)
		return;
	if (MPIR_Group_incl_impl(world, 1, &rank, &lost) == MPI_SUCCESS) {
		MPIR_CVAR_ENABLE_FT = 1;
		MPID_nem_glex_note(MPIDI_CH3I_Comm_handle_failed_procs(lost));
		MPIR_Group_release(lost);
	}
	MPIR_Group_release(world);
}

/* ---- one-sided operations -------------------------------------------------- */

/* Visits every target of one-sided operations whose process is lost, until visit returns an error. */
static int MPID_nem_glex_each_lost(MPIR_Win *list,
				   int (*visit)(MPIR_Win *win, MPIDI_RMA_Target_t *target, MPIDI_VC_t *vc))
{
	int i, mpi_errno = MPI_SUCCESS;
	MPIDI_RMA_Target_t *target;
	MPIDI_VC_t *vc;
	MPIR_Win *win;

	for (win = list; win; win = win->next) {
		for (i = 0; i < win->num_slots; i++) {
			for (target = win->slots[i].target_list_head; target; target = target->next) {
				MPIDI_Comm_get_vc(win->comm_ptr, target->target_rank, &vc);
				if (vc->state == MPIDI_VC_STATE_MORIBUND)
					mpi_errno = visit(win, target, vc);
				if (mpi_errno != MPI_SUCCESS)
					return mpi_errno;
			}
		}
	}
	return MPI_SUCCESS;
}

/* Requests of the program for operations that still wait to be sent (MPI_Rput and others).  Returns how many. */
static int MPID_nem_glex_end_ops(MPIDI_RMA_Op_t *list, MPIDI_VC_t *vc)
{
	MPIDI_RMA_Op_t *op;
	int n = 0;

	for (op = list; op; op = op->next) {
		MPIR_Request *req = op->ureq;

		if (!req)
			continue;
		op->ureq = NULL; /* the operation stays for the call that completes the epoch */
		MPID_nem_glex_end(req, MPID_nem_glex_comm_error(vc));
		n++;
	}
	return n;
}

static int MPID_nem_glex_in_pscw(const MPIR_Win *win)
{
	return win->states.access_state == MPIDI_RMA_PSCW_ISSUED || win->states.access_state == MPIDI_RMA_PSCW_GRANTED;
}

static int MPID_nem_glex_in_fence(const MPIR_Win *win)
{
	return win->states.access_state == MPIDI_RMA_FENCE_ISSUED ||
	       win->states.access_state == MPIDI_RMA_FENCE_GRANTED;
}

/*
 * A packet of an operation could not be sent.  To CH3 the end of its request is that of the operation, and an
 * epoch of MPI_Win_fence or MPI_Win_start waits for no more: there something is missing, until it is seen who is
 * lost.  Other epochs end with an acknowledgement.
 */
void MPID_nem_glex_op_unsent(MPIR_Request *sreq)
{
	MPIDI_RMA_Target_t *target = sreq->dev.rma_target_ptr;
	MPIR_Request *ureq;
	MPIR_Win *win;

	if (sreq->dev.request_completed_cb != MPIDI_CH3_Req_handler_rma_op_complete || !target)
		return;
	MPIR_Win_get_ptr(sreq->dev.source_win_handle, win);
	if (MPID_nem_glex_in_pscw(win) || MPID_nem_glex_in_fence(win)) {
		win->outstanding_acks++;
		target->sync.outstanding_acks++;
	}
	if (sreq->dev.request_handle == MPI_REQUEST_NULL)
		return;
	MPIR_Request_get_ptr(sreq->dev.request_handle, ureq);
	ureq->status.MPI_ERROR = sreq->status.MPI_ERROR;
}

/* No acknowledgement will come, and nothing be sent.  Returns how many requests have ended with an error. */
static int MPID_nem_glex_no_acks(MPIR_Win *win, MPIDI_RMA_Target_t *target, MPIDI_VC_t *vc)
{
	win->outstanding_acks -= target->sync.outstanding_acks;
	target->sync.outstanding_acks = 0;
	target->num_pkts_wait_for_local_completion = 0;
	return MPID_nem_glex_end_ops(target->pending_net_ops_list_head, vc) +
	       MPID_nem_glex_end_ops(target->pending_user_ops_list_head, vc);
}

/*
 * It has just been lost, and something was to come from it.  Who completes that later
 * has to send to it first, and gets an error so.  (A fence has one: it is collective.)
 * If it was for requests they have the error, and no other call is to get one too; where
 * a group was named, MPI_Win_complete gets it, which may wait just now.
 */
static int MPID_nem_glex_lost_amidst(MPIR_Win *win, MPIDI_RMA_Target_t *target, MPIDI_VC_t *vc)
{
	int completed, waits = target->sync.sync_flag != MPIDI_RMA_SYNC_NONE;

	if (MPID_nem_glex_in_fence(win))
		return MPI_SUCCESS;
	if (!target->sync.outstanding_acks && !target->num_pkts_wait_for_local_completion)
		return MPI_SUCCESS;
	completed = MPID_nem_glex_no_acks(win, target, vc);
	target->sync.sync_flag = MPIDI_RMA_SYNC_NONE;
	target->num_ops_flush_not_issued = 1;
	if (MPID_nem_glex_in_pscw(win))
		return target->win_complete_flag ? MPID_nem_glex_comm_error(vc) : MPI_SUCCESS;
	return completed && !waits ? MPI_SUCCESS : MPID_nem_glex_comm_error(vc);
}

/* Whoever ended the epoch there had only that to send, and got an error for it. */
static int MPID_nem_glex_has_told(const MPIDI_RMA_Target_t *target)
{
	return target->access_state == MPIDI_RMA_LOCK_GRANTED && !target->pending_net_ops_list_head &&
	       !target->pending_user_ops_list_head;
}

/* A call waits for what cannot be; or has had its error, of which only the wait for an acknowledgement is left. */
static int MPID_nem_glex_lost_since(MPIR_Win *win, MPIDI_RMA_Target_t *target, MPIDI_VC_t *vc)
{
	int told = target->sync.sync_flag == MPIDI_RMA_SYNC_NONE || MPID_nem_glex_has_told(target);

	target->sync.sync_flag = MPIDI_RMA_SYNC_NONE;
	if (told) {
		MPID_nem_glex_no_acks(win, target, vc);
		return MPI_SUCCESS;
	}
	return MPID_nem_glex_comm_error(vc);
}

static int MPID_nem_glex_lost_windows(int (*visit)(MPIR_Win *win, MPIDI_RMA_Target_t *target, MPIDI_VC_t *vc))
{
	int mpi_errno = MPID_nem_glex_each_lost(MPIDI_RMA_Win_active_list_head, visit);

	return mpi_errno == MPI_SUCCESS ? MPID_nem_glex_each_lost(MPIDI_RMA_Win_inactive_list_head, visit) : mpi_errno;
}

/*
 * CH3 does not know for whom a call waits that completes one-sided operations, only
 * what is missing at each target.  An error of the progress engine ends the call.
 */
static int MPID_nem_glex_lost_rma(void)
{
	return MPID_nem_glex_lost_windows(MPID_nem_glex_lost_since);
}

/* Somebody of the window's is lost. */
static MPIDI_VC_t *MPID_nem_glex_lost_member(const MPIR_Win *win)
{
	MPIDI_VC_t *vc;
	int i;

	for (i = 0; i < win->comm_ptr->local_size; i++) {
		MPIDI_Comm_get_vc(win->comm_ptr, i, &vc);
		if (vc->state == MPIDI_VC_STATE_MORIBUND)
			return vc;
	}
	return NULL;
}

/*
 * A call waits, and has done so for long, for a lock that a process has which lives no more, by all
 * appearances: whose it is nobody knows.  It may be called again.
 */
static int MPID_nem_glex_lost_lock(MPIR_Win *list)
{
	MPIDI_RMA_Target_t *target;
	MPIDI_VC_t *vc;
	MPIR_Win *win;
	int i;

	for (win = list; win; win = win->next) {
		for (i = 0; i < win->num_slots; i++) {
			for (target = win->slots[i].target_list_head; target; target = target->next) {
				if (target->access_state != MPIDI_RMA_LOCK_ISSUED ||
				    target->sync.sync_flag == MPIDI_RMA_SYNC_NONE)
					continue;
				vc = MPID_nem_glex_lost_member(win);
				if (!vc)
					break;
				target->sync.sync_flag = MPIDI_RMA_SYNC_NONE;
				return MPID_nem_glex_comm_error(vc);
			}
		}
	}
	return MPI_SUCCESS;
}

/* ---- what nobody knows of ------------------------------------------------ */

#define MPID_NEM_GLEX_VAIN_SECONDS 1.0
#define MPID_NEM_GLEX_AWAY_SECONDS 0.1 /* between two polls: they are not of the same call */

/* An error ends the job: so says who has not asked for anything else. */
static int MPID_nem_glex_errors_are_fatal(void)
{
	const MPIR_Comm *world = MPIR_Process.comm_world;

	return world && (!world->errhandler || world->errhandler->handle == MPI_ERRORS_ARE_FATAL);
}

/*
 * Some calls wait without a request: nothing can be completed for them.  So a process for
 * which errors are fatal gets one where it waits, when nothing has come for a while.
 */
static int MPID_nem_glex_waits_long(int done)
{
	MPL_time_t now;
	double away, idle;

	MPL_wtime(&now);
	MPL_wtime_diff(&MPID_nem_glex.polled, &now, &away);
	MPID_nem_glex.polled = now;
	if (done || away > MPID_NEM_GLEX_AWAY_SECONDS)
		MPID_nem_glex.idle_since = now;
	MPL_wtime_diff(&MPID_nem_glex.idle_since, &now, &idle);
	return idle > MPID_NEM_GLEX_VAIN_SECONDS;
}

/* For a probe that MPICH is about to wait in (install-into.sh), over any netmod: who it asks for is lost. */
int MPIDI_GLEX_vain(int source, MPIR_Comm *comm)
{
	MPIDI_VC_t *vc;

	if (source == MPI_ANY_SOURCE) {
		if (MPID_Comm_AS_enabled(comm))
			return MPI_SUCCESS;
	} else {
		MPIDI_Comm_get_vc(comm, source, &vc);
		if (vc->state != MPIDI_VC_STATE_MORIBUND)
			return MPI_SUCCESS;
	}
	return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__, MPIX_ERR_PROC_FAILED,
				    "**comm_fail", "**comm_fail %d", source);
}

/* A call waits, and somebody is lost; done: something has come. */
int MPID_nem_glex_lost_wait(int done)
{
	int mpi_errno = MPID_nem_glex_lost_rma();

	if (mpi_errno != MPI_SUCCESS || !MPID_nem_glex_waits_long(done))
		return mpi_errno;
	if (MPID_nem_glex_errors_are_fatal())
		return MPID_nem_glex.someone_lost;
	mpi_errno = MPID_nem_glex_lost_lock(MPIDI_RMA_Win_active_list_head);
	return mpi_errno == MPI_SUCCESS ? MPID_nem_glex_lost_lock(MPIDI_RMA_Win_inactive_list_head) : mpi_errno;
}

/* ---- the end of it ------------------------------------------------------- */

/* The channel has ended what was its to end. */
void MPID_nem_glex_lost(MPIDI_VC_t *vc, const char *why)
{
	char text[MPID_NEM_GLEX_TEXT_MAX];
	int error;

	MPID_nem_glex_describe(vc, why, text);
	fprintf(stderr, "glex netmod: rank %d: %s\n", MPID_nem_glex.rank, text);
	error = MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__, MPIX_ERR_PROC_FAILED,
				     "**comm_fail", "%s", text);
	MPID_nem_glex_end_waits(vc, error);
	MPID_nem_glex_end_half(vc, error);
	MPID_nem_glex_unqueue_locks(vc);
	MPID_nem_glex_note(MPIDI_CH3U_Handle_connection(vc, MPIDI_VC_EVENT_TERMINATED));
	MPID_nem_glex_end_any_source(vc);
	MPID_nem_glex_note(MPID_nem_glex_lost_windows(MPID_nem_glex_lost_amidst));
	MPID_nem_glex.someone_lost = error;
	MPIDI_CH3_Progress_signal_completion(); /* who waits without a request has to look */
}
