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
 *      synchronous sends, and what
 *      one-sided operations read          here, from a list
 *      a message half received            here
 *      receives posted for the peer       by CH3
 *      receives from any source, if the
 *      communicator has the peer in it    by CH3, which looks at that while it waits
 *      one-sided operations               where they are waited for: glex_origin.c
 *      what others do to a window         likewise: glex_target.c
 *      probes                             where they wait: install-into.sh
 *      what else has no request           here, if errors are fatal: nobody knows of it,
 *                                         and only where it can be what is waited for
 *
 * I1  A request is on the list from when it begins to wait until it is complete,
 *     whoever completes it: MPICH's hook at completion takes it off.
 * I2  What a rendezvous holds is given back then: also that of a send which is
 *     cancelled, of whose end CH3 tells nobody.
 */
#include "glex_impl.h"

#include <stdio.h>

#define MPID_NEM_GLEX_HOST_MAX 64

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

/* A new one each time: MPICH keeps the last 128 errors only, and hangs others behind them. */
static int MPID_nem_glex_lost_error(const char *text)
{
	return MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__, MPIX_ERR_PROC_FAILED,
				    "**comm_fail", "%s", text);
}

/* The error of a request whose peer is lost. */
int MPID_nem_glex_comm_error(MPIDI_VC_t *vc)
{
	char text[MPID_NEM_GLEX_TEXT_MAX];

	MPID_nem_glex_describe(vc, glexch_why(MPID_nem_glex.ch), text);
	return MPID_nem_glex_lost_error(text);
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
	if (wait->role == MPID_NEM_GLEX_READ)
		return MPID_nem_glex_read_over(req);
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

void MPID_nem_glex_end(MPIR_Request *req, int error)
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

static int MPID_nem_glex_is_in(MPIR_Comm *comm, const MPIDI_VC_t *vc)
{
	MPIDI_VC_t *member;
	int i;

	for (i = 0; i < comm->remote_size; i++) {
		MPIDI_Comm_get_vc(comm, i, &member);
		if (member == vc)
			return 1;
	}
	return 0;
}

/*
 * Receives from any source might wait for the lost one: CH3 ends those that wait on a
 * communicator on which they are not enabled, and later ones until the program has
 * acknowledged the failure (MPIX_Comm_failure_ack), if it is told to.  What it has for
 * that itself (MPIDI_CH3I_Comm_handle_failed_procs) knows the own process group only.
 *
 * All communicators are in CH3's list, whose head only CH3 knows: it is the one before
 * which the last comes, and no other's `next` is NULL.
 */
static void MPID_nem_glex_end_any_source(MPIDI_VC_t *vc)
{
	MPIR_Comm *comm = MPIR_Process.comm_world;

	if (!comm)
		return;
	MPIR_CVAR_ENABLE_FT = 1;
	while (comm->dev.prev->dev.next)
		comm = comm->dev.prev;
	for (; comm; comm = comm->dev.next)
		if (comm->dev.anysource_enabled && MPID_nem_glex_is_in(comm, vc))
			comm->dev.anysource_enabled = 0;
	MPIDI_CH3_Progress_signal_completion();
}

/*
 * For CH3, which mpiexec has told of a death (install-into.sh), over any netmod: it was known here, and receives from
 * any source have ended with it.  The program may have acknowledged it since, and enabled them again.  Other netmods
 * end none: there it is news.
 */
int MPIDI_GLEX_knows(MPIDI_VC_t *vc)
{
	return MPID_nem_glex.someone_lost && vc->state == MPIDI_VC_STATE_MORIBUND;
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
 * which errors are fatal gets one where it waits, when nothing has come for a while: if one
 * of its own group is lost, since all of that end together, or if a connection was that
 * MPI_Comm_accept or MPI_Comm_connect was making, which is what it waits for.  Of other groups
 * all that may be waited for has a request or is looked at where it waits (glex_origin.c,
 * glex_target.c, probes): who serves them outlives them.
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

/* The error of such a call.  A connection that was being made is none of the next's. */
static int MPID_nem_glex_why_in_vain(void)
{
	int error = MPID_nem_glex_lost_error(*MPID_nem_glex.member_lost ? MPID_nem_glex.member_lost
									: MPID_nem_glex.link_lost);

	*MPID_nem_glex.link_lost = 0;
	return error;
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

/* Once a second while nothing comes: what waits may have begun to since. */
static int MPID_nem_glex_is_time_to_look(int in_vain_before)
{
	MPL_time_t now;
	double since;

	MPL_wtime(&now);
	MPL_wtime_diff(&MPID_nem_glex.looked, &now, &since);
	if (in_vain_before && since < MPID_NEM_GLEX_VAIN_SECONDS)
		return 0;
	MPID_nem_glex.looked = now;
	return 1;
}

/*
 * A poll since somebody is lost; done: something has come.  Where nothing has for a while, who waits looks whether
 * what it waits for can be (glex_origin.c).
 */
int MPID_nem_glex_lost_poll(int done, int in_blocking_poll)
{
	int in_vain = MPID_nem_glex.in_vain;

	MPID_nem_glex_end_unsent_ops();
	if (!in_blocking_poll)
		return MPI_SUCCESS;
	MPID_nem_glex.in_vain = MPID_nem_glex_waits_long(done);
	if (!MPID_nem_glex.in_vain)
		return MPI_SUCCESS;
	if (MPID_nem_glex_errors_are_fatal() && (*MPID_nem_glex.member_lost || *MPID_nem_glex.link_lost))
		return MPID_nem_glex_why_in_vain();
	if (MPID_nem_glex_is_time_to_look(in_vain)) {
		MPID_nem_glex_end_meetings();
		MPIDI_CH3_Progress_signal_completion();
	}
	return MPI_SUCCESS;
}

/* ---- the end of it ------------------------------------------------------- */

/* The channel has ended what was its to end. */
void MPID_nem_glex_lost(MPIDI_VC_t *vc, const char *why)
{
	char text[MPID_NEM_GLEX_TEXT_MAX];
	int error;

	MPID_nem_glex_describe(vc, why, text);
	fprintf(stderr, "glex netmod: rank %d: %s\n", MPID_nem_glex.rank, text);
	error = MPID_nem_glex_lost_error(text);
	MPID_nem_glex_end_waits(vc, error);
	MPID_nem_glex_end_half(vc, error);
	MPID_nem_glex_unqueue_locks(vc);
	MPID_nem_glex_note(MPIDI_CH3U_Handle_connection(vc, MPIDI_VC_EVENT_TERMINATED));
	MPID_nem_glex_end_any_source(vc);
	MPID_nem_glex.someone_lost = 1;
	if (vc->pg == MPID_nem_glex.pg)
		strcpy(MPID_nem_glex.member_lost, text);
	else if (!vc->pg)
		strcpy(MPID_nem_glex.link_lost, text);
	MPIDI_CH3_Progress_signal_completion(); /* who waits without a request has to look */
}
