/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_dyn.c - the temporary VCs of MPI_Comm_connect and MPI_Comm_accept.
 *
 *      client root                                    server root
 *      connect_to_root: a connection with a
 *      channel id of its own; hello {port tag} ---->  a new VC into the accept queue
 *             ... the roots exchange their groups over this pair, and CH3 closes it ...
 *
 * The two endpoints may be joined by a lasting connection as well: the channel
 * id keeps the streams apart.
 */
#include "glex_impl.h"

int MPID_nem_glex_connect_to_root(const char *port_name, MPIDI_VC_t *new_vc)
{
	int mpi_errno = MPI_SUCCESS;
	struct glexch *ch = MPID_nem_glex.ch;
	struct glexch_peer peer;
	struct glexch_conn *conn;

	mpi_errno = MPIDI_GetTagFromPort(port_name, &new_vc->port_name_tag);
	MPIR_ERR_CHECK(mpi_errno);
	MPIR_ERR_CHKANDJUMP1(!MPID_nem_glex_card_read(port_name, &peer), mpi_errno, MPI_ERR_PORT, "**fail", "%s",
			     "the port name has no glex address");
	conn = glexch_conn_open(ch, &peer, glexch_new_chan(ch), 0, new_vc);
	MPIR_ERR_CHKANDJUMP(!conn, mpi_errno, MPI_ERR_OTHER, "**nomem");
	MPID_nem_glex_vc(new_vc)->conn = conn;
	glexch_conn_announce(conn);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* Somebody connects to a port of ours.  CH3 frees the VC after its close protocol. */
MPIDI_VC_t *MPID_nem_glex_temp_vc(struct glexch_conn *conn, int port_tag)
{
	MPIDI_VC_t *vc = MPL_malloc(sizeof(*vc), MPL_MEM_ADDRESS);

	if (!vc)
		return NULL;
	MPIDI_VC_Init(vc, NULL, 0);
	vc->port_name_tag = port_tag;
	MPID_nem_glex_vc(vc)->conn = conn;
	MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
	MPID_nem_glex_note(MPIDI_CH3I_Acceptq_enqueue(vc, port_tag));
	return vc;
}
