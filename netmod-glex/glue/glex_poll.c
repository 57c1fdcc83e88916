/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_poll.c - one round of the channel for each round of MPICH's progress engine.
 *
 * Where more ranks than processors share the machine, a rank that waits gives
 * its processor away: nothing else in the progress engine does.
 */
#include "glex_impl.h"

#include <sched.h>

#define MPID_NEM_GLEX_IDLE_WAITS   20  /* idle polls before yielding: somebody waits */
#define MPID_NEM_GLEX_LINGER_LOOKS 16  /* a third of a microsecond: what else there may be can wait as long */
#define MPID_NEM_GLEX_IDLE_TESTS   200 /* the same for an application that looks in now and then */
#define MPID_NEM_GLEX_CROWD_LOOKS  64  /* idle polls between two looks whether processes outnumber processors */

/* The next bytes of a VC's stream. */
void MPID_nem_glex_data(struct glexch_conn *conn, void *buf, size_t len)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);
	int mpi_errno = MPID_nem_handle_pkt(vc, buf, len);

	MPID_nem_glex.fed += len + sizeof(MPIR_Request);
	if (unlikely(mpi_errno))
		MPID_nem_glex_note(mpi_errno);
}

/*
 * The same of a message whose header lies there as its sender wrote it: straight to
 * its handler, without a copy.  Only for those whose handlers read nothing behind hdr_len,
 * and nothing longer than a word: there it is aligned to 8 bytes, other packets want 16.
 */
int MPID_nem_glex_packet(struct glexch_conn *conn, void *hdr, size_t hdr_len, void *bytes, size_t len)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);
	const MPIDI_CH3_Pkt_eagershort_send_t *brief = hdr;
	const MPIDI_CH3_Pkt_eager_send_t *eager = hdr;
	MPIR_Request *rreq = NULL;
	intptr_t taken = (intptr_t)len;
	int mpi_errno = MPI_SUCCESS;

	if (hdr_len < sizeof(*eager) || vc->ch.recv_active || vc->ch.pending_pkt_len)
		return 0;
	if (brief->type == MPIDI_CH3_PKT_EAGERSHORT_SEND &&
	    hdr_len >= offsetof(MPIDI_CH3_Pkt_eagershort_send_t, data) + (size_t)brief->data_sz)
		mpi_errno = MPIDI_CH3_PktHandler_EagerShortSend(vc, hdr, bytes, &taken, &rreq);
	else if (eager->type == MPIDI_CH3_PKT_EAGER_SEND)
		mpi_errno = MPIDI_CH3_PktHandler_EagerSend(vc, hdr, bytes, &taken, &rreq);
	else
		return 0;
	MPID_nem_glex.fed += sizeof(MPIDI_CH3_Pkt_t) + len + sizeof(MPIR_Request);
	if (rreq) {
		rreq->dev.iov_offset = 0;
		vc->ch.recv_active = rreq;
	}
	if (!mpi_errno && (size_t)taken < len)
		mpi_errno = MPID_nem_handle_pkt(vc, (char *)bytes + taken, (intptr_t)len - taken);
	if (unlikely(mpi_errno))
		MPID_nem_glex_note(mpi_errno);
	return 1;
}

/* Ranks come and go, also those of other process groups. */
static void MPID_nem_glex_look_round(void)
{
	MPID_nem_glex.looks = MPID_NEM_GLEX_CROWD_LOOKS;
	MPID_nem_glex.crowded = glexch_crowded(MPID_nem_glex.ch);
}

/* One idle poll is that of a call which has just got what it waited for, as often as not: it goes on at once. */
static void MPID_nem_glex_idle(int in_blocking_poll)
{
	int limit = in_blocking_poll ? MPID_NEM_GLEX_IDLE_WAITS : MPID_NEM_GLEX_IDLE_TESTS;

	if (--MPID_nem_glex.looks < 0)
		MPID_nem_glex_look_round();
	if (MPID_nem_glex.crowded) {
		if (++MPID_nem_glex.idle > limit)
			sched_yield();
	} else if (MPID_nem_glex.idle) {
		glexch_relax();
	} else {
		MPID_nem_glex.idle = 1;
	}
}

/*
 * How often the channel is to look again before it says that nothing has come: by as much as MPICH's own loop takes
 * what comes is found later.  Nobody else may be waited for: no rank that shares memory, no thread, nor what this
 * poll does besides.
 */
static inline uint32_t MPID_nem_glex_looks(int in_blocking_poll)
{
	if (!in_blocking_poll || !MPID_nem_glex.idle || !MPID_nem_glex.alone || MPID_nem_glex.coll_busy)
		return 0;
	return MPIR_IS_THREADED || MPID_nem_glex.crowded ? 0 : MPID_NEM_GLEX_LINGER_LOOKS;
}

/* Something has come, or is to be done besides. */
static __attribute__((noinline)) int MPID_nem_glex_after(int done, int in_blocking_poll)
{
	int mpi_errno = MPI_SUCCESS;

	if (MPID_nem_glex.coll_busy && done >= 0)
		done += MPID_nem_glex_coll_poll();
	if (done)
		MPID_nem_glex.idle = 0;
	else
		MPID_nem_glex_idle(in_blocking_poll);
	MPIR_ERR_CHKANDJUMP1(unlikely(done < 0), mpi_errno, MPI_ERR_OTHER, "**fail", "%s",
			     "glexd has ended, and with it the network; start the job again");
	MPID_nem_glex.fed += MPID_nem_glex.fed_by_poll;
	if (unlikely(MPID_nem_glex.fed >= MPID_nem_glex.look_at))
		MPID_nem_glex_look();
	if (unlikely(MPID_nem_glex.lmt_waiting != NULL))
		MPID_nem_glex_lmt_retry();
	if (unlikely(MPID_nem_glex.fetch_waiting != NULL))
		MPID_nem_glex_fetch_retry();
	if (unlikely(MPID_nem_glex.someone_lost))
		MPID_nem_glex_note(MPID_nem_glex_lost_poll(done, in_blocking_poll));
	if (unlikely(MPID_nem_glex.error != MPI_SUCCESS)) {
		mpi_errno = MPID_nem_glex.error;
		MPID_nem_glex.error = MPI_SUCCESS;
		MPIR_ERR_POP(mpi_errno);
	}
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* A round that finds nothing is what a waiting rank does all the time: it ends here, if nothing else is to be done. */
int MPID_nem_glex_poll(int in_blocking_poll)
{
	const struct MPID_nem_glex *glex = &MPID_nem_glex;
	int done = glexch_linger(glex->ch, MPID_nem_glex_looks(in_blocking_poll));

	if (unlikely(done < 0 || glex->fed >= glex->look_at ||
		     ((uintptr_t)glex->coll_busy | (uintptr_t)glex->lmt_waiting | (uintptr_t)glex->fetch_waiting |
		      glex->fed_by_poll | (unsigned)glex->someone_lost | (unsigned)glex->error)))
		return MPID_nem_glex_after(done, in_blocking_poll);
	if (done)
		MPID_nem_glex.idle = 0;
	else
		MPID_nem_glex_idle(in_blocking_poll);
	return MPI_SUCCESS;
}
