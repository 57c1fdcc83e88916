/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_stage.c - the memory that the ranks of a communicator keep for what the others send them: glex_group_stage.
 *
 * It is made by an operation of the tree's own, in front of the first that asks, if all ranks can.
 */
#include "glex_coll.h"

/* Longer than one turn of a stage they are MPICH's, whose messages nobody has to copy then. */
MPID_NEM_GLEX_HOT int MPID_nem_glex_is_staged(const MPIR_Comm *comm, uint64_t len)
{
	return len <= MPID_nem_glex.coll_stage && comm->remote_size <= GLEX_GROUP_GATHER_MEMBERS &&
	       MPID_nem_glex_shape((uint32_t)comm->remote_size) == GLEX_GROUP_DIRECT;
}

static int MPID_nem_glex_stage_try(struct MPID_nem_glex_tree *tree)
{
	struct MPID_nem_glex_op *op;
	int mpi_errno = MPID_nem_glex_coll_own(&op, MPID_NEM_GLEX_STAGE);

	if (mpi_errno != MPI_SUCCESS)
		return mpi_errno;
	tree->longs[MPID_NEM_GLEX_NEEDS_STAGE].state = MPID_NEM_GLEX_TREE_BUILDING;
	op->len = 1;
	MPID_nem_glex_tree_add(tree, op);
	return MPI_SUCCESS;
}

/* That there is to be none is no error. */
glex_ret_t MPID_nem_glex_stage_stepped(struct MPID_nem_glex_op *op, glex_ret_t ret)
{
	op->is_denied = ret == GLEX_ACCESS_ERR;
	return op->is_denied ? GLEX_SUCCESS : ret;
}

void MPID_nem_glex_stage_end(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op, glex_ret_t ret)
{
	MPID_nem_glex_longs_found(tree, MPID_NEM_GLEX_NEEDS_STAGE, ret, !op->is_denied);
}

MPID_NEM_GLEX_HOT int MPID_nem_glex_tree_has_stage(struct MPID_nem_glex_tree *tree, int may_block, int *has_p)
{
	return MPID_nem_glex_tree_has(tree, MPID_NEM_GLEX_NEEDS_STAGE, MPID_nem_glex_stage_try, may_block, has_p);
}

MPID_NEM_GLEX_HOT int MPID_nem_glex_stage_of(MPIR_Comm *comm, int is_wanted, int may_block, int failed,
					     struct MPID_nem_glex_tree **tree_p)
{
	int mpi_errno = MPID_nem_glex_tree_of(comm, may_block, failed, tree_p), has = 1;

	if (*tree_p && is_wanted)
		mpi_errno = MPID_nem_glex_tree_has_stage(*tree_p, may_block, &has);
	if (!has)
		*tree_p = NULL;
	return mpi_errno;
}
