/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_pass.c - what was in the queue of a tree (glex_coll.c) and the NICs do not do: a schedule of MPICH's does, in its turn.
 */
#include "glex_coll.h"

/* What this rank gives to a gather to all. */
static const void *MPID_nem_glex_gather_from(const struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op)
{
	if (!op->is_long)
		return op->part_of_it;
	return op->from == op->to + (size_t)tree->rank * op->len ? MPI_IN_PLACE : op->from;
}

int MPID_nem_glex_op_pass(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	const void *from = op->from == op->to ? MPI_IN_PLACE : op->from;
	const MPI_Aint len = (MPI_Aint)op->len;
	MPIR_Comm *comm = tree->comm;
	MPIR_Sched_t sched = MPIR_SCHED_NULL;
	int mpi_errno = MPID_nem_glex_sched_new(&sched);

	MPIR_ERR_CHECK(mpi_errno);
	if (op->kind == MPID_NEM_GLEX_BARRIER)
		mpi_errno = MPIR_Ibarrier_intra_sched_auto(comm, sched);
	else if (op->kind == MPID_NEM_GLEX_BCAST)
		mpi_errno = MPIR_Ibcast_intra_sched_auto(op->to, len, MPID_NEM_GLEX_BYTE, op->root, comm, sched);
	else if (op->kind == MPID_NEM_GLEX_ALLTOALL)
		mpi_errno = MPIR_Ialltoall_intra_sched_auto(from, len, MPID_NEM_GLEX_BYTE, op->to, len,
							    MPID_NEM_GLEX_BYTE, comm, sched);
	else if (op->kind == MPID_NEM_GLEX_ALLTOALLV)
		mpi_errno = MPID_nem_glex_exchange_sched(op, comm, sched);
	else if (op->kind == MPID_NEM_GLEX_SCATTER)
		mpi_errno = MPIR_Ireduce_scatter_block_intra_sched_auto(from, op->to, len, op->type, op->mpi_op, comm,
									sched);
	else if (op->kind == MPID_NEM_GLEX_GATHER && op->root == MPIDI_GLEX_ALL)
		mpi_errno =
			MPIR_Iallgather_intra_sched_auto(MPID_nem_glex_gather_from(tree, op), len, MPID_NEM_GLEX_BYTE,
							 op->to, len, MPID_NEM_GLEX_BYTE, comm, sched);
	else if (op->kind == MPID_NEM_GLEX_GATHER)
		mpi_errno = MPIR_Igather_intra_sched_auto(op->part_of_it, len, MPID_NEM_GLEX_BYTE, op->to, len,
							  MPID_NEM_GLEX_BYTE, op->root, comm, sched);
	else if (op->root == MPIDI_GLEX_ALL)
		mpi_errno = MPIR_Iallreduce_intra_sched_auto(from, op->to, len, op->type, op->mpi_op, comm, sched);
	else
		mpi_errno =
			MPIR_Ireduce_intra_sched_auto(from, op->to, len, op->type, op->mpi_op, op->root, comm, sched);
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPIR_Sched_start(sched, comm, &op->inner);
fn_fail:
	return mpi_errno;
}
