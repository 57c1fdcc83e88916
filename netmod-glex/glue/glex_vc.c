/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_vc.c - virtual connections: how one gets its connection, and the ends it can come to.
 *
 *      INACTIVE --- first send, or hello of the peer ---> ACTIVE, with a connection
 *      ACTIVE   --- CH3's close packets both ways ------> CLOSED: vc_terminate
 *                     the queue is sent, the connection is destroyed, TERMINATED
 *      any      --- peer lost --------------------------> its requests end with an error, TERMINATED
 *                     (CH3 makes the VC MORIBUND; the failed connection stays until vc_destroy)
 *
 * A VC is made ACTIVE only if it is INACTIVE: the first packet this side sends may
 * be its close packet, and then CH3 has set LOCAL_CLOSE already.
 */
#include "glex_impl.h"

#define MPID_NEM_GLEX_TOLD "the process manager says that it has ended"

enum MPID_nem_glex_hello_kind {
	MPID_NEM_GLEX_HELLO_PG = 1,   /* rank `number` of the process group with that hash */
	MPID_NEM_GLEX_HELLO_TEMP = 2, /* a connect to the port with tag `number` */
};

struct MPID_nem_glex_hello_blob {
	uint32_t kind;
	int32_t number;
	uint64_t pg_hash;
};

_Static_assert(sizeof(struct MPID_nem_glex_hello_blob) <= GLEXCH_BLOB_MAX, "fits into the first packet");

int MPID_nem_glex_vc_init(MPIDI_VC_t *vc)
{
	MPIDI_CH3I_VC *vc_ch = &vc->ch;

	memset(vc_ch->netmod_area.padding, 0, sizeof(vc_ch->netmod_area.padding));
	vc_ch->iStartContigMsg = MPID_nem_glex_iStartContigMsg;
	vc_ch->iSendContig = MPID_nem_glex_iSendContig;
	vc_ch->iSendIov = MPID_nem_glex_iSendIov;
	vc_ch->lmt_initiate_lmt = MPID_nem_glex_lmt_initiate;
	vc_ch->lmt_start_recv = MPID_nem_glex_lmt_start_recv;
	vc_ch->lmt_start_send = MPID_nem_glex_lmt_start_send;
	vc_ch->lmt_handle_cookie = MPID_nem_glex_lmt_handle_cookie;
	vc_ch->lmt_done_send = MPID_nem_glex_lmt_done_send;
	vc_ch->lmt_done_recv = MPID_nem_glex_lmt_done_recv;
	vc_ch->lmt_vc_terminated = NULL;
	vc_ch->lmt_rts_queue.head = NULL;
	vc_ch->lmt_rts_queue.tail = NULL;
	vc_ch->pkt_handler = MPID_nem_glex_pkt_handlers;
	vc_ch->num_pkt_handlers = MPID_NEM_GLEX_PKT_HANDLERS;
	vc_ch->next = NULL;
	vc_ch->prev = NULL;
	vc->eager_max_msg_sz = MPID_nem_glex.eager_max;
	vc->ready_eager_max_msg_sz = MPID_nem_glex.eager_max;
	return MPI_SUCCESS;
}

/*
 * CH3 also passes VCs that vc_init never saw (local ones and the one to itself),
 * whose area is garbage.  is_local tells the first; the second, where it is not
 * set either, is of the own group, and that one goes only after finalize, which
 * has destroyed what it had.
 */
int MPID_nem_glex_vc_destroy(MPIDI_VC_t *vc)
{
	MPID_nem_glex_vc_t *area = MPID_nem_glex_vc(vc);

	if (!MPID_nem_glex.ch || vc->pg == MPID_nem_glex.pg || vc->ch.is_local || !area->conn)
		return MPI_SUCCESS;
	glexch_conn_destroy(area->conn);
	area->conn = NULL;
	return MPI_SUCCESS;
}

/* ---- beginning ----------------------------------------------------------- */

int MPID_nem_glex_card_read(const char *bc, struct glexch_peer *peer)
{
	char card[GLEXCH_CARD_MAX];

	if (MPL_str_get_string_arg(bc, MPID_NEM_GLEX_CARD_KEY, card, sizeof(card)) != MPL_SUCCESS)
		return 0;
	return glexch_card_parse(card, peer) == GLEX_SUCCESS;
}

/* Gives a VC of some process group its connection. */
int MPID_nem_glex_vc_connect(MPIDI_VC_t *vc)
{
	int mpi_errno = MPI_SUCCESS;
	struct glexch_peer peer;
	char *bc = MPL_malloc(MPID_NEM_GLEX_CARD_BUF, MPL_MEM_ADDRESS);

	MPIR_ERR_CHKANDJUMP(!bc || !vc->pg, mpi_errno, MPI_ERR_OTHER, "**nomem");
	mpi_errno = vc->pg->getConnInfo(vc->pg_rank, bc, MPID_NEM_GLEX_CARD_BUF, vc->pg);
	MPIR_ERR_CHECK(mpi_errno);
	MPIR_ERR_CHKANDJUMP1(!MPID_nem_glex_card_read(bc, &peer), mpi_errno, MPI_ERR_OTHER, "**comm_fail",
			     "**comm_fail %d", vc->pg_rank);
	MPID_nem_glex_vc(vc)->conn =
		glexch_conn_open(MPID_nem_glex.ch, &peer, GLEXCH_CHAN_MAIN, vc->pg == MPID_nem_glex.pg, vc);
	MPIR_ERR_CHKANDJUMP(!MPID_nem_glex_vc(vc)->conn, mpi_errno, MPI_ERR_OTHER, "**nomem");
	if (vc->state == MPIDI_VC_STATE_INACTIVE)
		MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
fn_exit:
	MPL_free(bc);
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

size_t MPID_nem_glex_identify(struct glexch_conn *conn, void *blob)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);
	struct MPID_nem_glex_hello_blob hello = {0};

	if (vc->pg) {
		hello.kind = MPID_NEM_GLEX_HELLO_PG;
		hello.number = MPID_nem_glex.rank;
		hello.pg_hash = MPID_nem_glex_pg_hash(MPID_nem_glex.pg);
	} else {
		hello.kind = MPID_NEM_GLEX_HELLO_TEMP;
		hello.number = vc->port_name_tag;
	}
	memcpy(blob, &hello, sizeof(hello));
	return sizeof(hello);
}

static MPIDI_PG_t *MPID_nem_glex_find_pg(uint64_t hash)
{
	MPIDI_PG_iterator iter;
	MPIDI_PG_t *pg = NULL;

	MPIDI_PG_Get_iterator(&iter);
	while (MPIDI_PG_Has_next(&iter)) {
		MPIDI_PG_Get_next(&iter, &pg);
		if (MPID_nem_glex_pg_hash(pg) == hash)
			return pg;
	}
	return NULL;
}

/* The VC a stranger belongs to; NULL: its group is not known here yet. */
void *MPID_nem_glex_hello(struct glexch_conn *conn, const void *blob, size_t len)
{
	struct MPID_nem_glex_hello_blob hello;
	MPIDI_PG_t *pg;
	MPIDI_VC_t *vc;

	if (len != sizeof(hello))
		return NULL;
	memcpy(&hello, blob, sizeof(hello));
	if (hello.kind == MPID_NEM_GLEX_HELLO_TEMP)
		return MPID_nem_glex_temp_vc(conn, hello.number);
	pg = MPID_nem_glex_find_pg(hello.pg_hash);
	if (!pg || hello.number < 0 || hello.number >= pg->size)
		return NULL;
	MPIDI_PG_Get_vc_set_active(pg, hello.number, &vc);
	MPID_nem_glex_vc(vc)->conn = conn;
	return vc;
}

/* ---- end ----------------------------------------------------------------- */

static int MPID_nem_glex_vc_terminated(MPIDI_VC_t *vc)
{
	MPID_nem_glex_vc_t *area = MPID_nem_glex_vc(vc);

	if (area->conn)
		glexch_conn_destroy(area->conn);
	area->conn = NULL;
	MPID_nem_glex_held_forget(vc);
	return MPIDI_CH3U_Handle_connection(vc, MPIDI_VC_EVENT_TERMINATED);
}

int MPID_nem_glex_vc_terminate(MPIDI_VC_t *vc)
{
	MPID_nem_glex_vc_t *area = MPID_nem_glex_vc(vc);

	if (!area->conn && vc->state != MPIDI_VC_STATE_CLOSED)
		MPID_nem_glex_lost(vc, MPID_NEM_GLEX_TOLD);
	else if (!area->conn)
		return MPID_nem_glex_vc_terminated(vc);
	else if (vc->state == MPIDI_VC_STATE_CLOSED)
		glexch_conn_drain(area->conn); /* -> drained */
	else
		glexch_conn_fail(area->conn, MPID_NEM_GLEX_TOLD); /* -> failed */
	return MPI_SUCCESS;
}

void MPID_nem_glex_vc_drained(struct glexch_conn *conn)
{
	MPID_nem_glex_note(MPID_nem_glex_vc_terminated(glexch_conn_user(conn)));
}

/* All requests of the connection have been ended with an error. */
void MPID_nem_glex_vc_failed(struct glexch_conn *conn, const char *why)
{
	MPIDI_VC_t *vc = glexch_conn_user(conn);

	if (vc->state == MPIDI_VC_STATE_MORIBUND || vc->state == MPIDI_VC_STATE_INACTIVE_CLOSED)
		return;
	if (vc->state == MPIDI_VC_STATE_CLOSED) /* all but our last acknowledgement was done */
		MPID_nem_glex_note(MPID_nem_glex_vc_terminated(vc));
	else
		MPID_nem_glex_lost(vc, why);
}
