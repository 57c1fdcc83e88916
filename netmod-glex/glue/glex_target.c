/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_target.c - our windows, and those who write to them: one of them is lost.
 *
 * What was coming from it is dropped, and the locks that it waits for are another's turn; of a lock
 * that it has CH3 does not know who has it (glex_origin.c ends the waits for it).
 *
 * CH3 counts what others have not ended yet (at_completion_counter), and does not know who.  Where it waits
 * for that it asks here (install-into.sh), over any netmod; an error ends the call.
 *
 *      MPI_Win_wait, MPI_Win_test    the group that MPI_Win_post has named is remembered
 *      MPI_Win_fence, MPI_Win_free   all of the window (which MPI_Win_free then goes on to meet)
 *
 * I1  The error is that of a process lost, not of what is missing: another may be late, and the call
 *     may be made again.  What the dead had ended before is not missing, and no error.
 * I2  One group is remembered for a window, until its next MPI_Win_post: an epoch begins with one.
 */
#include "glex_impl.h"

#include "mpid_rma_types.h"

/* The group that a window was exposed to. */
struct MPID_nem_glex_exposed {
	struct MPID_nem_glex_exposed *next;
	MPIR_Win *win;
	MPIR_Group *group;
};

static struct MPID_nem_glex_exposed *MPID_nem_glex_exposed_first;

static struct MPID_nem_glex_exposed *MPID_nem_glex_exposed_find(const MPIR_Win *win)
{
	struct MPID_nem_glex_exposed *exposed;

	for (exposed = MPID_nem_glex_exposed_first; exposed && exposed->win != win; exposed = exposed->next)
		;
	return exposed;
}

/* MPI_Win_post.  Without memory for it the whole window counts. */
void MPIDI_GLEX_exposed(MPIR_Win *win, MPIR_Group *group);
void MPIDI_GLEX_exposed(MPIR_Win *win, MPIR_Group *group)
{
	struct MPID_nem_glex_exposed *exposed = MPID_nem_glex_exposed_find(win);

	if (exposed) {
		MPIR_Group_release(exposed->group); /* I2 */
	} else {
		exposed = MPL_malloc(sizeof(*exposed), MPL_MEM_RMA);
		if (!exposed)
			return;
		exposed->win = win;
		exposed->next = MPID_nem_glex_exposed_first;
		MPID_nem_glex_exposed_first = exposed;
	}
	MPIR_Object_add_ref(group);
	exposed->group = group;
}

/* At the end; windows that are gone are among them. */
void MPID_nem_glex_exposed_forget(void)
{
	struct MPID_nem_glex_exposed *exposed;

	while ((exposed = MPID_nem_glex_exposed_first)) {
		MPID_nem_glex_exposed_first = exposed->next;
		MPIR_Group_release(exposed->group);
		MPL_free(exposed);
	}
}

/* Whom of the communicator's ranks the window waits for, a flag each. */
static int MPID_nem_glex_waits_for(MPIR_Win *win, char *wanted)
{
	const struct MPID_nem_glex_exposed *exposed = MPID_nem_glex_exposed_find(win);
	int mpi_errno = MPI_SUCCESS, i, n = win->comm_ptr->local_size;
	MPIR_Group *all = NULL;
	int *ranks = NULL;

	memset(wanted, 1, (size_t)n);
	if (win->states.exposure_state != MPIDI_RMA_PSCW_EXPO || !exposed)
		goto fn_exit;
	mpi_errno = MPIR_Comm_group_impl(win->comm_ptr, &all);
	MPIR_ERR_CHECK(mpi_errno);
	ranks = MPL_malloc(2 * sizeof(*ranks) * (size_t)n, MPL_MEM_RMA);
	MPIR_ERR_CHKANDJUMP(!ranks, mpi_errno, MPI_ERR_OTHER, "**nomem");
	for (i = 0; i < n; i++)
		ranks[i] = i;
	mpi_errno = MPIR_Group_translate_ranks_impl(all, n, ranks, exposed->group, ranks + n);
	MPIR_ERR_CHECK(mpi_errno);
	for (i = 0; i < n; i++)
		wanted[i] = ranks[n + i] != MPI_UNDEFINED;
fn_exit:
	MPL_free(ranks);
	if (all)
		MPIR_Group_release(all);
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* MPI_Win_wait and others are about to wait: an error if somebody will not come. */
int MPIDI_GLEX_deserted(MPIR_Win *win);
int MPIDI_GLEX_deserted(MPIR_Win *win)
{
	int mpi_errno = MPI_SUCCESS, i;
	char *wanted = NULL;
	MPIDI_VC_t *vc;

	if (likely(!MPIDI_Failed_vc_count))
		return MPI_SUCCESS;
	wanted = MPL_malloc((size_t)win->comm_ptr->local_size, MPL_MEM_RMA);
	MPIR_ERR_CHKANDJUMP(!wanted, mpi_errno, MPI_ERR_OTHER, "**nomem");
	mpi_errno = MPID_nem_glex_waits_for(win, wanted);
	MPIR_ERR_CHECK(mpi_errno);
	for (i = 0; i < win->comm_ptr->local_size; i++) {
		MPIDI_Comm_get_vc(win->comm_ptr, i, &vc);
		MPIR_ERR_CHKANDJUMP1(wanted[i] && vc->state == MPIDI_VC_STATE_MORIBUND, mpi_errno, MPIX_ERR_PROC_FAILED,
				     "**comm_fail", "**comm_fail %d", i);
	}
fn_exit:
	MPL_free(wanted);
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* ---- what was coming ------------------------------------------------------ */

/* req was receiving what was to be written: if so, it is over, and nothing of it is left. */
int MPID_nem_glex_half_written(MPIR_Request *req)
{
	switch (MPIDI_Request_get_type(req)) {
	case MPIDI_REQUEST_TYPE_FOP_RECV:
		MPL_free(req->dev.user_buf);
		break;
	case MPIDI_REQUEST_TYPE_PUT_RECV:
	case MPIDI_REQUEST_TYPE_PUT_RECV_DERIVED_DT:
	case MPIDI_REQUEST_TYPE_ACCUM_RECV:
	case MPIDI_REQUEST_TYPE_ACCUM_RECV_DERIVED_DT:
	case MPIDI_REQUEST_TYPE_GET_RECV_DERIVED_DT:
	case MPIDI_REQUEST_TYPE_GET_ACCUM_RECV:
	case MPIDI_REQUEST_TYPE_GET_ACCUM_RECV_DERIVED_DT:
		break;
	default:
		if (req->dev.OnFinal != MPIDI_CH3_ReqHandler_PiggybackLockOpRecvComplete)
			return 0;
	}
	MPID_nem_glex_note(MPID_Request_complete(req)); /* the last reference: what it holds goes with it */
	return 1;
}

static void MPID_nem_glex_unqueue_lock(MPIR_Win *win, MPIDI_RMA_Target_lock_entry_t *entry)
{
	DL_DELETE(win->target_lock_queue_head, entry);
	if (entry->data) {
		win->current_target_lock_data_bytes -= entry->buf_size;
		MPL_free(entry->data);
	}
	DL_PREPEND(win->target_lock_entry_pool_head, entry);
}

static void MPID_nem_glex_unqueue_locks_of(MPIR_Win *list, MPIDI_VC_t *vc)
{
	MPIDI_RMA_Target_lock_entry_t *entry, *next;
	MPIR_Win *win;

	for (win = list; win; win = win->next) {
		for (entry = (MPIDI_RMA_Target_lock_entry_t *)win->target_lock_queue_head; entry; entry = next) {
			next = entry->next;
			if (entry->vc == vc)
				MPID_nem_glex_unqueue_lock(win, entry);
		}
	}
}

void MPID_nem_glex_unqueue_locks(MPIDI_VC_t *vc)
{
	MPID_nem_glex_unqueue_locks_of(MPIDI_RMA_Win_active_list_head, vc);
	MPID_nem_glex_unqueue_locks_of(MPIDI_RMA_Win_inactive_list_head, vc);
}
