/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_release.h - what MPICH's releases, 4.0.2 to 5.0, call differently.
 *
 * Told apart by macros that came with the change, not by version numbers, which
 * snapshots between two releases have too early.
 */
#ifndef MPID_NEM_GLEX_RELEASE_H
#define MPID_NEM_GLEX_RELEASE_H

#include "mpidimpl.h"

/*
 * MPICH 5.0 swaps the types of its callers for some of its own at the entrance (many names, one
 * representation), and knows only those behind it: so does who calls it from here.
 */
#ifdef MPIR_DATATYPE_REPLACE_BUILTIN
#define MPID_NEM_GLEX_BYTE MPIR_BYTE_INTERNAL
#define MPID_NEM_GLEX_INT  MPIR_INT_INTERNAL
#else
#define MPID_NEM_GLEX_BYTE MPI_BYTE
#define MPID_NEM_GLEX_INT  MPI_INT
#endif

/* What collectives of a communicator add to its id. */
#ifdef MPIR_CONTEXT_INTRA_COLL
#define MPID_NEM_GLEX_COLL_ID MPIR_CONTEXT_INTRA_COLL
#else /* MPICH 4.2 */
#define MPID_NEM_GLEX_COLL_ID MPIR_CONTEXT_COLL_OFFSET
#endif

/* The type as tables have it: without the name that the caller had for it. */
static inline MPI_Datatype MPID_nem_glex_plain(MPI_Datatype type)
{
#ifdef MPIR_DATATYPE_REPLACE_BUILTIN
	MPIR_DATATYPE_REPLACE_BUILTIN(type);
	if (MPIR_DATATYPE_IS_INTERNAL(type))
		type = MPIR_DATATYPE_GET_RAW_INTERNAL(type);
#endif
	return type;
}

/* Of the ranks of an intracommunicator, as MPICH goes about its collectives. */
enum MPID_nem_glex_nearness {
	MPID_NEM_GLEX_APART, /* no two share memory, or nobody cares */
	MPID_NEM_GLEX_MIXED, /* some do: MPICH has communicators inside for those who do, and for one of each such */
	MPID_NEM_GLEX_NEAR,  /* such a one inside, of ranks that do */
};

static inline enum MPID_nem_glex_nearness MPID_nem_glex_nearness(const MPIR_Comm *comm)
{
#ifdef MPIR_COMM_ATTR__HIERARCHY /* since MPICH 5.0 */
	if (comm->attr & MPIR_COMM_ATTR__SUBCOMM)
		return (comm->context_id & MPIR_CONTEXT_SUBCOMM_MASK) == MPIR_CONTEXT_INTERNODE_OFFSET
			       ? MPID_NEM_GLEX_APART
			       : MPID_NEM_GLEX_NEAR;
	return !(comm->attr & MPIR_COMM_ATTR__HIERARCHY) || (comm->hierarchy_flags & MPIR_COMM_HIERARCHY__NO_LOCAL)
		       ? MPID_NEM_GLEX_APART
		       : MPID_NEM_GLEX_MIXED;
#else
	switch (comm->hierarchy_kind) {
	case MPIR_COMM_HIERARCHY_KIND__FLAT:
	case MPIR_COMM_HIERARCHY_KIND__NODE_ROOTS:
		return MPID_NEM_GLEX_APART;
	case MPIR_COMM_HIERARCHY_KIND__PARENT:
		return MPID_NEM_GLEX_MIXED;
	default:
		return MPID_NEM_GLEX_NEAR;
	}
#endif
}

/* Of len bytes each, at their places in all. */
static inline int MPID_nem_glex_allgather(void *all, int len, MPIR_Comm *comm)
{
	int mpi_errno;
#ifdef MPIR_COLL_ATTR_HAS_ERR /* MPICH 5.0 */
	mpi_errno = MPIR_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, len, MPID_NEM_GLEX_BYTE, comm, 0);
#elif MPICH_NUMVERSION >= 40200000
	mpi_errno =
		MPIR_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, len, MPID_NEM_GLEX_BYTE, comm, MPIR_ERR_NONE);
#else
	MPIR_Errflag_t errflag = MPIR_ERR_NONE;

	mpi_errno = MPIR_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, len, MPID_NEM_GLEX_BYTE, comm, &errflag);
	if (mpi_errno == MPI_SUCCESS && errflag != MPIR_ERR_NONE)
		MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**coll_fail");
#endif
	return mpi_errno;
}

#endif /* MPID_NEM_GLEX_RELEASE_H */
