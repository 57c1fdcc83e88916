/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_same.c - what all ranks must be told alike.
 *
 * Whether the NICs run a collective, and how, every rank decides for itself, by what all know
 * (glex_coll.c); the variables of that are part of it.  Ranks that differ would wait for each other without
 * end, in different places.  So each says in its business card how they are set for it, and
 * compares with rank 0 when MPI_COMM_WORLD is made, the first time that cards can be read.  Those of
 * other process groups may differ: then MPICH does the collectives of communicators that they share.
 */
#include "glex_impl.h"

#include <stdio.h>
#include <unistd.h>

#define MPID_NEM_GLEX_SETTINGS_KEY "glex-coll"
#define MPID_NEM_GLEX_SETTINGS_MAX 96

#define MPID_NEM_GLEX_SETTINGS_NAMES "GLEX_MPI_COLL,_AFTER,_PACKETS,_ROW,_LONG,_LONG_BY,_STAGE,_SHAPE,_DEGREE"

/* In the order of the names.  Without blanks, which process managers do not pass on. */
static void MPID_nem_glex_coll_settings(char settings[MPID_NEM_GLEX_SETTINGS_MAX])
{
	snprintf(settings, MPID_NEM_GLEX_SETTINGS_MAX, "%u,%u,%u,%u,%llu,%u,%llu,%u,%u",
		 (unsigned)MPID_nem_glex.coll_where, MPID_nem_glex.coll_after, MPID_nem_glex.coll_packets,
		 MPID_nem_glex.coll_row, (unsigned long long)MPID_nem_glex.coll_long, MPID_nem_glex.coll_long_by,
		 (unsigned long long)MPID_nem_glex.coll_stage, MPID_nem_glex.coll_shape, MPID_nem_glex.coll_degree);
}

int MPID_nem_glex_same_say(char **bc_val_p, int *val_max_sz_p)
{
	char settings[MPID_NEM_GLEX_SETTINGS_MAX];

	MPID_nem_glex_coll_settings(settings);
	return MPL_str_add_string_arg(bc_val_p, val_max_sz_p, MPID_NEM_GLEX_SETTINGS_KEY, settings);
}

static int MPID_nem_glex_differs(const char *theirs, const char *ours)
{
	int mpi_errno = MPI_SUCCESS;
	char text[2 * MPID_NEM_GLEX_SETTINGS_MAX + 200];

	snprintf(text, sizeof(text),
		 "rank %d has %s for " MPID_NEM_GLEX_SETTINGS_NAMES ", and rank 0 has %s: give all ranks the same",
		 MPID_nem_glex.rank, ours, theirs);
	fprintf(stderr, "glex netmod: %s\n", text);
	usleep(MPID_NEM_GLEX_LAST_WORDS_US);
	MPIR_ERR_SET1(mpi_errno, MPI_ERR_OTHER, "**fail", "%s", text);
	return mpi_errno;
}

/* What a rank of a group says. */
static int MPID_nem_glex_settings_of(MPIDI_PG_t *pg, int rank, char theirs[MPID_NEM_GLEX_SETTINGS_MAX])
{
	int mpi_errno = MPI_SUCCESS;
	char *bc = MPL_malloc(MPID_NEM_GLEX_CARD_BUF, MPL_MEM_ADDRESS);

	MPIR_ERR_CHKANDJUMP(!bc, mpi_errno, MPI_ERR_OTHER, "**nomem");
	mpi_errno = pg->getConnInfo(rank, bc, MPID_NEM_GLEX_CARD_BUF, pg);
	MPIR_ERR_CHECK(mpi_errno);
	if (MPL_str_get_string_arg(bc, MPID_NEM_GLEX_SETTINGS_KEY, theirs, MPID_NEM_GLEX_SETTINGS_MAX) != MPL_SUCCESS)
		snprintf(theirs, MPID_NEM_GLEX_SETTINGS_MAX, "none");
fn_fail:
	MPL_free(bc);
	return mpi_errno;
}

static int MPID_nem_glex_compare(MPIR_Comm *comm, void *param)
{
	int mpi_errno = MPI_SUCCESS;
	char theirs[MPID_NEM_GLEX_SETTINGS_MAX], ours[MPID_NEM_GLEX_SETTINGS_MAX];

	if (comm != MPIR_Process.comm_world || MPID_nem_glex.pg->size < 2 || MPID_nem_glex.rank == 0)
		return MPI_SUCCESS;
	MPID_nem_glex_coll_settings(ours);
	mpi_errno = MPID_nem_glex_settings_of(MPID_nem_glex.pg, 0, theirs);
	if (mpi_errno == MPI_SUCCESS && strcmp(theirs, ours) != 0)
		mpi_errno = MPID_nem_glex_differs(theirs, ours);
	return mpi_errno;
}

/* In a group all are alike.  So all ranks of the communicator come to the same answer. */
int MPID_nem_glex_same_in(MPIR_Comm *comm)
{
	const MPIDI_PG_t *last = MPID_nem_glex.pg;
	char theirs[MPID_NEM_GLEX_SETTINGS_MAX], ours[MPID_NEM_GLEX_SETTINGS_MAX];
	int i;

	MPID_nem_glex_coll_settings(ours);
	for (i = 0; i < comm->remote_size; i++) {
		MPIDI_VC_t *vc;

		MPIDI_Comm_get_vc(comm, i, &vc);
		if (vc->pg == last || vc->pg == MPID_nem_glex.pg)
			continue;
		last = vc->pg;
		if (!last || MPID_nem_glex_settings_of(vc->pg, vc->pg_rank, theirs) != MPI_SUCCESS ||
		    strcmp(theirs, ours) != 0)
			return 0;
	}
	return 1;
}

int MPID_nem_glex_same_init(void)
{
	return MPIDI_CH3U_Comm_register_create_hook(MPID_nem_glex_compare, NULL);
}
