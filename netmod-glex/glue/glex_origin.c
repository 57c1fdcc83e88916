/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_origin.c - what we do to the windows of others: one of them is lost.
 *
 * CH3 does not know for whom a call waits that completes one-sided operations, only what is missing at each
 * target.  Before it waits it asks here (install-into.sh), over any netmod, for one target or for all of the
 * window: what is missing at a process that is lost will not come, and the call ends with that error.
 *
 * I1  No other call gets that error: a receive that waits meanwhile, of whichever thread, goes on.  Requests of the
 *     program (MPI_Rput and others) have one of their own, when the process is lost or when they were to be sent.
 * I2  Who goes over all targets to send what is theirs passes by those that are lost: it may be at work for a call
 *     that has nothing to do with the window, and what is for the others has to go on.
 * I3  Whose a lock is nobody knows.  Who has waited long for one in a window of which a member is lost gets an
 *     error, and may call again.
 * I4  The collective step of MPI_Win_fence fails where a member is lost, but who has that error already comes to no
 *     other one: who has waited long in it receives nothing any more, and has the error too.
 */
#include "glex_impl.h"

#include "mpid_rma_types.h"

/* As install-into.sh declares it where MPI_Win_fence meets. */
struct MPID_nem_glex_meeting {
	struct MPID_nem_glex_meeting *next;
	MPIR_Win *win;
};

static MPIDI_VC_t *MPID_nem_glex_target_vc(const MPIR_Win *win, const MPIDI_RMA_Target_t *target)
{
	MPIDI_VC_t *vc;

	MPIDI_Comm_get_vc(win->comm_ptr, target->target_rank, &vc);
	return vc;
}

static int MPID_nem_glex_target_lost(const MPIR_Win *win, const MPIDI_RMA_Target_t *target)
{
	return MPID_nem_glex_target_vc(win, target)->state == MPIDI_VC_STATE_MORIBUND;
}

/* I2.  Over other netmods it is what it was. */
int MPIDI_GLEX_unreachable(MPIR_Win *win, MPIDI_RMA_Target_t *target);
int MPIDI_GLEX_unreachable(MPIR_Win *win, MPIDI_RMA_Target_t *target)
{
	return unlikely(MPID_nem_glex.someone_lost) && MPID_nem_glex_target_lost(win, target);
}

/* ---- when somebody is lost ----------------------------------------------- */

/* I1: of operations that have not been sent. */
static void MPID_nem_glex_end_ops(MPIDI_RMA_Op_t *list, MPIDI_VC_t *vc)
{
	MPIDI_RMA_Op_t *op;

	for (op = list; op; op = op->next) {
		MPIR_Request *req = op->ureq;

		if (!req)
			continue;
		op->ureq = NULL; /* the operation stays for the call that completes the epoch */
		MPID_nem_glex_end(req, MPID_nem_glex_comm_error(vc));
	}
}

static void MPID_nem_glex_end_ops_of(const MPIR_Win *list)
{
	MPIDI_RMA_Target_t *target;
	const MPIR_Win *win;
	int i;

	for (win = list; win; win = win->next) {
		for (i = 0; i < win->num_slots; i++) {
			for (target = win->slots[i].target_list_head; target; target = target->next) {
				if (!MPID_nem_glex_target_lost(win, target))
					continue;
				MPID_nem_glex_end_ops(target->pending_net_ops_list_head,
						      MPID_nem_glex_target_vc(win, target));
				MPID_nem_glex_end_ops(target->pending_user_ops_list_head,
						      MPID_nem_glex_target_vc(win, target));
			}
		}
	}
}

/* Whenever something may be waited for, since somebody is lost: a program may begin some yet. */
void MPID_nem_glex_end_unsent_ops(void)
{
	MPID_nem_glex_end_ops_of(MPIDI_RMA_Win_active_list_head);
	MPID_nem_glex_end_ops_of(MPIDI_RMA_Win_inactive_list_head);
}

/*
 * CH3 has sent a packet of an operation, the request of which goes on (install-into.sh): that of what is read goes
 * on until it comes.
 */
void MPIDI_GLEX_expects(MPIR_Win *win, MPIDI_RMA_Target_t *target, MPIR_Request *req);
void MPIDI_GLEX_expects(MPIR_Win *win, MPIDI_RMA_Target_t *target, MPIR_Request *req)
{
	MPIDI_VC_t *vc = MPID_nem_glex_target_vc(win, target);

	if (req->kind != MPIR_REQUEST_KIND__SEND && vc->ch.iStartContigMsg == MPID_nem_glex_iStartContigMsg)
		MPID_nem_glex_await(vc, req, MPID_NEM_GLEX_READ);
}

/* It has come, or will not; I1. */
int MPID_nem_glex_read_over(MPIR_Request *req)
{
	MPIR_Request *ureq;

	if (req->status.MPI_ERROR != MPI_SUCCESS && req->dev.request_handle != MPI_REQUEST_NULL) {
		MPIR_Request_get_ptr(req->dev.request_handle, ureq);
		ureq->status.MPI_ERROR = req->status.MPI_ERROR;
	}
	return MPIDI_CH3_Req_handler_rma_op_complete(req);
}

static int MPID_nem_glex_ends_locally(const MPIR_Win *win)
{
	return win->states.access_state == MPIDI_RMA_PSCW_ISSUED ||
	       win->states.access_state == MPIDI_RMA_PSCW_GRANTED ||
	       win->states.access_state == MPIDI_RMA_FENCE_ISSUED ||
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
	if (MPID_nem_glex_ends_locally(win)) {
		win->outstanding_acks++;
		target->sync.outstanding_acks++;
	}
	if (sreq->dev.request_handle == MPI_REQUEST_NULL)
		return;
	MPIR_Request_get_ptr(sreq->dev.request_handle, ureq);
	ureq->status.MPI_ERROR = sreq->status.MPI_ERROR;
}

/* ---- when a call is about to wait ---------------------------------------- */

/* Something that was begun there is not over. */
int MPID_nem_glex_missing(const struct MPIDI_RMA_Target *target)
{
	return target->sync.outstanding_acks || target->num_pkts_wait_for_local_completion ||
	       target->pending_net_ops_list_head || target->pending_user_ops_list_head ||
	       target->sync.sync_flag != MPIDI_RMA_SYNC_NONE;
}

/* Who completes something there later has to send first, and learns of it so. */
static void MPID_nem_glex_expect_nothing(MPIR_Win *win, MPIDI_RMA_Target_t *target)
{
	win->outstanding_acks -= target->sync.outstanding_acks;
	target->sync.outstanding_acks = 0;
	target->num_pkts_wait_for_local_completion = 0;
	target->sync.sync_flag = MPIDI_RMA_SYNC_NONE;
	target->num_ops_flush_not_issued = 1;
}

/* A member of the window that is lost; NULL: none. */
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

/* I3.  vc: a member that is lost. */
static int MPID_nem_glex_lock_error(MPIDI_VC_t *vc)
{
	MPID_nem_glex.in_vain = 0;
	MPL_wtime(&MPID_nem_glex.idle_since); /* the next call waits as long */
	return MPID_nem_glex_comm_error(vc);
}

/* What the call waits for at the target cannot be. */
static int MPID_nem_glex_target_error(MPIR_Win *win, MPIDI_RMA_Target_t *target, int alone)
{
	MPIDI_VC_t *vc = NULL;

	if (MPID_nem_glex_target_lost(win, target)) {
		if (!MPID_nem_glex_missing(target))
			return MPI_SUCCESS;
		MPID_nem_glex_expect_nothing(win, target);
		return MPID_nem_glex_comm_error(MPID_nem_glex_target_vc(win, target));
	}
	if (MPID_nem_glex.in_vain && target->access_state == MPIDI_RMA_LOCK_ISSUED &&
	    (alone || target->sync.sync_flag != MPIDI_RMA_SYNC_NONE))
		vc = MPID_nem_glex_lost_member(win);
	if (!vc)
		return MPI_SUCCESS;
	target->sync.sync_flag = MPIDI_RMA_SYNC_NONE;
	return MPID_nem_glex_lock_error(vc);
}

/* The epoch has failed: else CH3 would tell those who live that it has ended, in each round, for ever. */
static int MPID_nem_glex_epoch_failed(MPIR_Win *win, int mpi_errno)
{
	MPIDI_RMA_Target_t *target;
	int i;

	for (i = 0; i < win->num_slots; i++)
		for (target = win->slots[i].target_list_head; target; target = target->next)
			target->win_complete_flag = 0;
	return mpi_errno;
}

static int MPID_nem_glex_window_error(MPIR_Win *win)
{
	int i, mpi_errno = MPI_SUCCESS;
	MPIDI_RMA_Target_t *target;
	MPIDI_VC_t *vc;

	for (i = 0; i < win->num_slots; i++) {
		for (target = win->slots[i].target_list_head; target; target = target->next) {
			mpi_errno = MPID_nem_glex_target_error(win, target, 0);
			if (mpi_errno != MPI_SUCCESS)
				return MPID_nem_glex_epoch_failed(win, mpi_errno);
		}
	}
	if (!MPID_nem_glex.in_vain || !win->outstanding_locks)
		return MPI_SUCCESS;
	vc = MPID_nem_glex_lost_member(win); /* MPI_Win_lock_all */
	return vc ? MPID_nem_glex_lock_error(vc) : MPI_SUCCESS;
}

/* A call is about to wait for the target, or for all of the window: an error if that would be in vain. */
int MPIDI_GLEX_given_up(MPIR_Win *win, MPIDI_RMA_Target_t *target);
int MPIDI_GLEX_given_up(MPIR_Win *win, MPIDI_RMA_Target_t *target)
{
	if (likely(!MPID_nem_glex.someone_lost))
		return MPI_SUCCESS;
	return target ? MPID_nem_glex_target_error(win, target, 1) : MPID_nem_glex_window_error(win);
}

/* ---- where a fence meets -------------------------------------------------- */

static struct MPID_nem_glex_meeting *MPID_nem_glex_meetings; /* each on the stack of its MPI_Win_fence */

/* The collective step of a fence begins. */
void MPIDI_GLEX_meets(struct MPID_nem_glex_meeting *meeting, MPIR_Win *win);
void MPIDI_GLEX_meets(struct MPID_nem_glex_meeting *meeting, MPIR_Win *win)
{
	meeting->win = win;
	meeting->next = MPID_nem_glex_meetings;
	MPID_nem_glex_meetings = meeting;
}

/* I4.  A call has waited for long. */
void MPID_nem_glex_end_meetings(void)
{
	const struct MPID_nem_glex_meeting *meeting;

	for (meeting = MPID_nem_glex_meetings; meeting; meeting = meeting->next) {
		if (MPID_nem_glex_lost_member(meeting->win))
			MPID_nem_glex_note(MPIDI_CH3U_Clean_recvq(meeting->win->comm_ptr));
	}
}

/* It has ended, with that error.  Returns the fence's; CH3 counts all members while they meet. */
int MPIDI_GLEX_met(struct MPID_nem_glex_meeting *meeting, int mpi_errno);
int MPIDI_GLEX_met(struct MPID_nem_glex_meeting *meeting, int mpi_errno)
{
	struct MPID_nem_glex_meeting **at = &MPID_nem_glex_meetings;
	MPIDI_VC_t *vc;

	while (*at != meeting)
		at = &(*at)->next;
	*at = meeting->next;
	if (likely(mpi_errno == MPI_SUCCESS) || !MPID_nem_glex.someone_lost)
		return mpi_errno;
	vc = MPID_nem_glex_lost_member(meeting->win);
	if (!vc)
		return mpi_errno;
	meeting->win->at_completion_counter -= meeting->win->comm_ptr->local_size;
	return MPID_nem_glex_comm_error(vc);
}
