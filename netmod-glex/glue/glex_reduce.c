/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_reduce.c - MPI's reductions: an operation of glex_coll.c.
 *
 *   by MPICH    without a tree: any operation, the program's own too, on up to GLEX_GROUP_BY_MAX bytes of any predefined
 *               type.  Whichever rank has all operands calls MPICH's function
 *   by a stage  the same to all of up to 16 ranks, of more bytes: glex_group_allreduce_long
 *   by units    on a tree, where they meet in the NICs, and of types with an index: up to 6 numbers, and an operation of
 *               the NIC's (glex_coll_op.c)
 *
 * Which of these, or neither, follows from what all ranks give alike.
 */
#include "glex_coll.h"

/* ---- a stage --------------------------------------------------------------- */

int MPID_nem_glex_stage_try(struct MPID_nem_glex_tree *tree)
{
	struct MPID_nem_glex_op *op;
	int mpi_errno = MPID_nem_glex_coll_own(&op, MPID_NEM_GLEX_STAGE);

	if (mpi_errno != MPI_SUCCESS)
		return mpi_errno;
	tree->longs[MPID_NEM_GLEX_REDUCE].state = MPID_NEM_GLEX_TREE_BUILDING;
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
	MPID_nem_glex_longs_found(tree, MPID_NEM_GLEX_REDUCE, ret, !op->is_denied);
}

/* ---- reductions ------------------------------------------------------------ */

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

/* Too long for one part; and longer than one turn of a stage it is MPICH's, whose messages nobody has to copy then. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_is_staged(const MPIR_Comm *comm, int root, uint64_t len)
{
	return root == MPIDI_GLEX_ALL && comm->remote_size <= GLEX_GROUP_GATHER_MEMBERS &&
	       len > MPID_nem_glex_part(comm) && len <= MPID_nem_glex.coll_stage;
}

MPID_NEM_GLEX_HOT static void MPID_nem_glex_combine(const void *left, void *right, uint32_t len, void *arg)
{
	struct MPID_nem_glex_op *op = arg;
	int mpi_errno = MPIR_Reduce_local(left, right, (MPI_Aint)(len / op->operand.extent), op->type, op->mpi_op);

	if (mpi_errno != MPI_SUCCESS)
		op->error = mpi_errno;
}

MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_reduce_call(glex_group_t group, struct MPID_nem_glex_op *op)
{
	size_t at = op->at * op->operand.extent;
	uint32_t len = (uint32_t)(op->part * op->operand.extent);
	unsigned char *to = op->to ? op->to + at : NULL;

	if (op->is_long)
		return glex_group_allreduce_long(group, op->from, to, len, op->operand.extent, MPID_nem_glex_combine,
						 op);
	if (op->root == MPIDI_GLEX_ALL)
		return glex_group_allreduce_by(group, op->from + at, to, len, MPID_nem_glex_combine, op);
	return glex_group_reduce_by(group, (uint32_t)op->root, op->from + at, to, len, MPID_nem_glex_combine, op);
}

MPID_NEM_GLEX_HOT size_t MPID_nem_glex_reduce_most(const struct MPID_nem_glex_tree *tree,
						   const struct MPID_nem_glex_op *op)
{
	return op->calls ? MPID_nem_glex_part(tree->comm) / op->operand.extent : GLEX_COLL_REDUCE_MAX_DATA_UNITS;
}

MPID_NEM_GLEX_HOT glex_ret_t MPID_nem_glex_reduce_post(glex_group_t group, struct MPID_nem_glex_op *op)
{
	if (op->calls)
		return MPID_nem_glex_reduce_call(group, op);
	MPID_nem_glex_operand_load(&op->operand, op->from + op->at * op->operand.extent, (uint32_t)op->part, op->units);
	if (op->root == MPIDI_GLEX_ALL)
		return glex_group_allreduce(group, op->units, (uint32_t)op->part, op->operand.bits, op->operand.op);
	return glex_group_reduce(group, (uint32_t)op->root, op->units, (uint32_t)op->part, op->operand.bits,
				 op->operand.op);
}

MPID_NEM_GLEX_HOT void MPID_nem_glex_reduce_store(const struct MPID_nem_glex_op *op)
{
	if (op->to && !op->calls)
		MPID_nem_glex_operand_store(&op->operand, op->units, (uint32_t)op->part,
					    op->to + op->at * op->operand.extent);
}

MPID_NEM_GLEX_HOT void MPID_nem_glex_reduce_end(const struct MPID_nem_glex_op *op)
{
	if (op->calls)
		MPIR_Op_release_if_not_builtin(op->mpi_op);
}

MPID_NEM_GLEX_HOT int MPID_nem_glex_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type,
					   MPI_Op mpi_op, int root, MPIR_Comm *comm, int failed, MPIR_Request **req_p)
{
	size_t most = MPID_nem_glex.coll_packets * GLEX_COLL_REDUCE_MAX_DATA_UNITS;
	struct MPID_nem_glex_operand operand;
	struct MPID_nem_glex_op here, *op;
	struct MPID_nem_glex_tree *tree;
	int mpi_errno, calls, is_long = 0, is_short = 0;
	uint64_t len;

	if (count < 1)
		return MPIDI_GLEX_PASS;
	calls = MPID_nem_glex_may_call(comm, type, &operand);
	if (calls) {
		len = (uint64_t)count * operand.extent;
		is_long = MPID_nem_glex_is_staged(comm, root, len);
		is_short = len <= MPID_nem_glex.coll_packets * MPID_nem_glex_longest(comm, root);
		calls = is_long || is_short;
	}
	if (!calls && ((size_t)count > most || !MPID_nem_glex_operand(type, mpi_op, &operand)))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_tree_of(comm, !req_p, failed, &tree);
	if (tree && is_long)
		mpi_errno =
			MPID_nem_glex_tree_has(tree, MPID_NEM_GLEX_REDUCE, MPID_nem_glex_stage_try, !req_p, &is_long);
	if (!tree || mpi_errno != MPI_SUCCESS || (calls && !is_long && !is_short))
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	mpi_errno = MPID_nem_glex_op_new(&here, comm, MPID_NEM_GLEX_REDUCE, req_p, &op);
	if (mpi_errno != MPI_SUCCESS)
		return mpi_errno;
	op->operand = operand;
	op->calls = calls;
	op->is_long = is_long;
	op->type = type;
	op->mpi_op = mpi_op;
	if (calls)
		MPIR_Op_add_ref_if_not_builtin(mpi_op); /* the program may free it before this has ended */
	op->root = root;
	op->len = (size_t)count;
	op->from = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
	op->to = root == MPIDI_GLEX_ALL || root == comm->rank ? recvbuf : NULL;
	return MPID_nem_glex_coll_do(tree, op);
}
