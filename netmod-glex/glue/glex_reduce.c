/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_reduce.c - MPI's reductions, to one, to all, of a block for each: operations of glex_coll.c.
 *
 *   by MPICH    without a tree: any operation, the program's own too, on up to GLEX_GROUP_BY_MAX bytes of any predefined
 *               type.  Whichever rank has all operands calls MPICH's function
 *   by a stage  the same of up to 16 ranks, of more bytes (glex_stage.c)
 *   by units    on a tree, where they meet in the NICs, and of types with an index: up to 6 numbers, and an operation of
 *               the NIC's (glex_coll_op.c)
 *
 * Which of these, or neither, follows from what all ranks give alike.
 */
#include "glex_coll.h"

/* What all know alike of one. */
struct MPID_nem_glex_reduction {
	struct MPID_nem_glex_operand operand;
	MPI_Datatype type;
	MPI_Op mpi_op;
	int calls, is_long;
};

/* Bytes that go at a time. */
static size_t MPID_nem_glex_part(const MPIR_Comm *comm)
{
	return GLEX_GROUP_BY_MAX(comm->remote_size);
}

/*
 * What takes less time than by MPICH: to all of more than two ranks, two parts one after the other still do, from four
 * fifths (4 ranks) to a third of it; to one of two, who sends does not wait, and MPICH's messages stream.
 */
static size_t MPID_nem_glex_longest(const MPIR_Comm *comm, int root)
{
	size_t part = MPID_nem_glex_part(comm);

	if (comm->remote_size == 2)
		return root == MPIDI_GLEX_ALL ? part : MPID_NEM_GLEX_MP_BYTES;
	return root == MPIDI_GLEX_ALL ? 2 * part : part;
}

/*
 * Up to these a stage is not faster.  To one, MPICH's go up a tree until they are as long as this, and who has sent need not
 * wait for anybody; then by exchanges of everybody (MPIR_CVAR_REDUCE_SHORT_MSG_SIZE).
 */
static size_t MPID_nem_glex_unstaged(const MPIR_Comm *comm, int root)
{
	return root == MPIDI_GLEX_ALL ? MPID_nem_glex_part(comm) : 2048;
}

/* Whether those by MPICH are possible.  Of types that have a name in MPI: others may lie differently in the ranks' memory. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_may_call(const MPIR_Comm *comm, MPI_Datatype type,
						    struct MPID_nem_glex_operand *operand)
{
	MPI_Aint size, extent;

	if (!HANDLE_IS_BUILTIN(type) || MPID_nem_glex_shape((uint32_t)comm->remote_size) != GLEX_GROUP_DIRECT)
		return 0;
	MPIR_Datatype_get_size_macro(type, size);
	MPIR_Datatype_get_extent_macro(type, extent);
	operand->extent = (uint8_t)extent;
	return size > 0 && size == extent && (size_t)size <= MPID_nem_glex_part(comm);
}

MPID_NEM_GLEX_HOT static void MPID_nem_glex_combine(const void *left, void *right, uint32_t len, void *arg)
{
	struct MPID_nem_glex_op *op = arg;
	int mpi_errno = MPIR_Reduce_local(left, right, (MPI_Aint)(len / op->operand.extent), op->type, op->mpi_op);

	if (mpi_errno != MPI_SUCCESS)
		op->error = mpi_errno;
}

/* All of it, or a block for each. */
MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_reduce_stage(glex_group_t group, struct MPID_nem_glex_op *op)
{
	uint64_t len = (uint64_t)op->len * op->operand.extent;
	uint32_t unit = op->operand.extent;

	if (op->kind == MPID_NEM_GLEX_SCATTER)
		return glex_group_reduce_scatter(group, op->from, op->to, len, unit, MPID_nem_glex_combine, op);
	if (op->root == MPIDI_GLEX_ALL)
		return glex_group_allreduce_long(group, op->from, op->to, len, unit, MPID_nem_glex_combine, op);
	return glex_group_reduce_long(group, (uint32_t)op->root, op->from, op->to, len, unit, MPID_nem_glex_combine,
				      op);
}

MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_reduce_call(const struct MPID_nem_glex_tree *tree,
							      struct MPID_nem_glex_op *op)
{
	size_t at = op->at * op->operand.extent;
	uint32_t len = (uint32_t)(op->part * op->operand.extent);
	unsigned char *to = op->to ? op->to + at : NULL;

	if (op->is_long)
		return MPID_nem_glex_reduce_stage(tree->group, op);
	if (op->kind == MPID_NEM_GLEX_SCATTER) /* all of them to all */
		return glex_group_allreduce_by(tree->group, op->from, op->blocks,
					       len * (uint32_t)tree->comm->remote_size, MPID_nem_glex_combine, op);
	if (op->root == MPIDI_GLEX_ALL)
		return glex_group_allreduce_by(tree->group, op->from + at, to, len, MPID_nem_glex_combine, op);
	return glex_group_reduce_by(tree->group, (uint32_t)op->root, op->from + at, to, len, MPID_nem_glex_combine, op);
}

MPID_NEM_GLEX_HOT size_t MPID_nem_glex_reduce_most(const struct MPID_nem_glex_tree *tree,
						   const struct MPID_nem_glex_op *op)
{
	return op->calls ? MPID_nem_glex_part(tree->comm) / op->operand.extent : GLEX_COLL_REDUCE_MAX_DATA_UNITS;
}

MPID_NEM_GLEX_HOT glex_ret_t MPID_nem_glex_reduce_post(const struct MPID_nem_glex_tree *tree,
						       struct MPID_nem_glex_op *op)
{
	if (op->calls)
		return MPID_nem_glex_reduce_call(tree, op);
	MPID_nem_glex_operand_load(&op->operand, op->from + op->at * op->operand.extent, (uint32_t)op->part, op->units);
	if (op->root == MPIDI_GLEX_ALL)
		return glex_group_allreduce(tree->group, op->units, (uint32_t)op->part, op->operand.bits,
					    op->operand.op);
	return glex_group_reduce(tree->group, (uint32_t)op->root, op->units, (uint32_t)op->part, op->operand.bits,
				 op->operand.op);
}

MPID_NEM_GLEX_HOT void MPID_nem_glex_reduce_store(const struct MPID_nem_glex_tree *tree,
						  const struct MPID_nem_glex_op *op)
{
	size_t len = op->len * op->operand.extent;

	if (op->kind == MPID_NEM_GLEX_SCATTER && !op->is_long)
		memcpy(op->to, op->blocks + (size_t)tree->rank * len, len);
	else if (op->to && !op->calls)
		MPID_nem_glex_operand_store(&op->operand, op->units, (uint32_t)op->part,
					    op->to + op->at * op->operand.extent);
}

MPID_NEM_GLEX_HOT void MPID_nem_glex_reduce_end(const struct MPID_nem_glex_op *op)
{
	if (op->calls)
		MPIR_Op_release_if_not_builtin(op->mpi_op);
}

/* So many numbers; to: NULL: the result is not wanted.  By MPICH's function if it calls. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_reduce_do(struct MPID_nem_glex_tree *tree, enum MPID_nem_glex_coll_kind kind,
						     const void *from, void *to, MPI_Aint count, int root,
						     const struct MPID_nem_glex_reduction *how, MPIR_Request **req_p)
{
	struct MPID_nem_glex_op here, *op;
	int mpi_errno = MPID_nem_glex_op_new(&here, tree->comm, kind, req_p, &op);

	if (mpi_errno != MPI_SUCCESS)
		return mpi_errno;
	op->operand = how->operand;
	op->calls = how->calls;
	op->is_long = how->is_long;
	op->type = how->type;
	op->mpi_op = how->mpi_op;
	if (op->calls)
		MPIR_Op_add_ref_if_not_builtin(op->mpi_op); /* the program may free it before this has ended */
	op->root = root;
	op->len = (size_t)count;
	op->from = from;
	op->to = to;
	return MPID_nem_glex_coll_do(tree, op);
}

MPID_NEM_GLEX_HOT int MPID_nem_glex_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
					   MPI_Op mpi_op, int root, MPIR_Comm *comm, int failed, MPIR_Request **req_p)
{
	size_t most = MPID_nem_glex.coll_packets * GLEX_COLL_REDUCE_MAX_DATA_UNITS;
	struct MPID_nem_glex_reduction how = {.type = type, .mpi_op = mpi_op};
	struct MPID_nem_glex_tree *tree;
	int mpi_errno, is_short = 0;
	uint64_t len;

	if (count < 1)
		return MPIDI_GLEX_PASS;
	how.calls = MPID_nem_glex_may_call(comm, type, &how.operand);
	if (how.calls) {
		len = (uint64_t)count * how.operand.extent;
		how.is_long = len > MPID_nem_glex_unstaged(comm, root) && MPID_nem_glex_is_staged(comm, len);
		is_short = len <= MPID_nem_glex.coll_packets * MPID_nem_glex_longest(comm, root);
		how.calls = how.is_long || is_short;
	}
	if (!how.calls && ((size_t)count > most || !MPID_nem_glex_operand(type, mpi_op, &how.operand)))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_tree_of(comm, !req_p, failed, &tree);
	if (tree && how.is_long)
		mpi_errno = MPID_nem_glex_tree_has_stage(tree, !req_p, &how.is_long);
	if (!tree || mpi_errno != MPI_SUCCESS || (how.calls && !how.is_long && !is_short))
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	if (root != MPIDI_GLEX_ALL && !how.is_long &&
	    MPID_nem_glex_row_is_over(tree, MPID_NEM_GLEX_REDUCE, root, (size_t)count * how.operand.extent))
		return MPIDI_GLEX_PASS;
	return MPID_nem_glex_reduce_do(tree, MPID_NEM_GLEX_REDUCE, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
				       root == MPIDI_GLEX_ALL || root == comm->rank ? recvbuf : NULL, count, root, &how,
				       req_p);
}

/* A block of so many for each: of few bytes in all, an allreduce of which each takes his block. */
int MPID_nem_glex_scatter(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op mpi_op,
			  MPIR_Comm *comm, int failed, MPIR_Request **req_p)
{
	struct MPID_nem_glex_reduction how = {.calls = 1, .type = type, .mpi_op = mpi_op};
	struct MPID_nem_glex_tree *tree;
	int mpi_errno;
	uint64_t len;

	if (count < 1 || !MPID_nem_glex_may_call(comm, type, &how.operand))
		return MPIDI_GLEX_PASS;
	len = (uint64_t)count * how.operand.extent * (uint64_t)comm->remote_size;
	how.is_long = len > MPID_nem_glex_part(comm);
	if (how.is_long && !MPID_nem_glex_is_staged(comm, len))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_stage_of(comm, how.is_long, !req_p, failed, &tree);
	if (!tree || mpi_errno != MPI_SUCCESS)
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	return MPID_nem_glex_reduce_do(tree, MPID_NEM_GLEX_SCATTER, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
				       recvbuf, count, MPIDI_GLEX_ALL, &how, req_p);
}

/* If all blocks are as long. */
int MPID_nem_glex_scatter_counts(const void *sendbuf, void *recvbuf, const MPI_Aint counts[], MPI_Datatype type,
				 MPI_Op mpi_op, MPIR_Comm *comm, int failed, MPIR_Request **req_p)
{
	int i;

	if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM) /* between groups counts has one for each of the own */
		return MPIDI_GLEX_PASS;
	for (i = 1; i < comm->remote_size; i++)
		if (counts[i] != counts[0])
			return MPIDI_GLEX_PASS;
	return MPID_nem_glex_scatter(sendbuf, recvbuf, counts[0], type, mpi_op, comm, failed, req_p);
}
