/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_dead.c - somebody on the network has died: which rank is it?
 *
 * glexd tells of every endpoint that its process has left open at its end, so also of
 * ranks that nothing was ever sent to, for which a receive, a collective, or a probe
 * may wait all the same.  It knows addresses; ranks are found by their business cards.
 *
 * Not of ranks whose messages go through memory that MPICH shares on a node: what they
 * leave there when they are killed nobody can clean up, and mpiexec ends their node.
 */
#include "glex_impl.h"

/* Where a rank is, as its card says.  0: that cannot be had. */
static int MPID_nem_glex_place(MPIDI_PG_t *pg, int rank, struct MPID_nem_glex_place *place)
{
	char *bc = MPL_malloc(MPID_NEM_GLEX_CARD_BUF, MPL_MEM_ADDRESS);
	struct glexch_peer peer;
	int found;

	found = bc && pg->getConnInfo && pg->getConnInfo(rank, bc, MPID_NEM_GLEX_CARD_BUF, pg) == MPI_SUCCESS &&
		MPID_nem_glex_card_read(bc, &peer);
	MPL_free(bc);
	if (found)
		*place = (struct MPID_nem_glex_place){.addr = peer.addr.v, .born = peer.born, .known = 1};
	return found;
}

/* The same of the own group, from what has been asked for before. */
static int MPID_nem_glex_place_here(int rank, struct MPID_nem_glex_place *place)
{
	struct MPID_nem_glex *nem = &MPID_nem_glex;

	if (!nem->places)
		nem->places = MPL_calloc(nem->pg->size, sizeof(*nem->places), MPL_MEM_ADDRESS);
	if (!nem->places)
		return MPID_nem_glex_place(nem->pg, rank, place);
	if (!nem->places[rank].known && !MPID_nem_glex_place(nem->pg, rank, &nem->places[rank]))
		return 0;
	*place = nem->places[rank];
	return 1;
}

/* Ranks begin at a guess, which is right unless somebody chose the nodes himself. */
static MPIDI_VC_t *MPID_nem_glex_find(MPIDI_PG_t *pg, glex_ep_addr_t addr, uint32_t number)
{
	uint64_t ppn = 1, first;
	int i, own = pg == MPID_nem_glex.pg;
	struct MPID_nem_glex_place place;

	glex_config_uint("GLEX_PPN", &ppn);
	first = addr.s.nic_id * ppn;
	for (i = 0; i < pg->size; i++) {
		int rank = (int)((first + (uint64_t)i) % (uint64_t)pg->size);

		if (own && rank == MPID_nem_glex.rank)
			continue;
		if (!(own ? MPID_nem_glex_place_here(rank, &place) : MPID_nem_glex_place(pg, rank, &place)))
			continue;
		if (place.addr == addr.v && glexch_outlived(place.born, number))
			return &pg->vct[rank];
	}
	return NULL;
}

/* Its connections have failed already, but perhaps one that its last words have opened. */
void MPID_nem_glex_died(struct glexch *ch, glex_ep_addr_t addr, uint32_t number)
{
	MPIDI_PG_iterator iter;
	MPIDI_VC_t *vc = NULL;
	MPIDI_PG_t *pg;

	(void)ch;
	MPIDI_PG_Get_iterator(&iter);
	while (!vc && MPIDI_PG_Has_next(&iter)) {
		MPIDI_PG_Get_next(&iter, &pg);
		vc = MPID_nem_glex_find(pg, addr, number);
	}
	if (!vc || vc->ch.is_local || vc->state == MPIDI_VC_STATE_MORIBUND ||
	    vc->state == MPIDI_VC_STATE_INACTIVE_CLOSED)
		return;
	if (MPID_nem_glex_vc(vc)->conn)
		glexch_conn_fail(MPID_nem_glex_vc(vc)->conn, GLEXCH_DIED);
	else
		MPID_nem_glex_lost(vc, GLEXCH_DIED);
}
