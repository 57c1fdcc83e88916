/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_exchange.c - MPI's exchanges and gathers to all of blocks that differ in length, by a stage: operations of glex_coll.c.
 *
 * How long the blocks of a gather are all know.  Those of an exchange each rank knows of its own only, so it begins as if
 * they were short, and all learn how long the longest is when they meet for the first time (glex_group_alltoallv).  If
 * that was too long MPICH does it, and the next of that communicator at once: of what has come to an end before one
 * begins all know alike.
 */
#include "glex_coll.h"

#define MPID_NEM_GLEX_SKIPS 256 /* after as many exchanges that were MPICH's another is tried, at most */

/* What was packed, or is to be unpacked, and where. */
struct MPID_nem_glex_scattered {
	char *at[GLEX_GROUP_GATHER_MEMBERS];
	unsigned char bytes[];
};

/* One side of a call: of rank i counts[i] of a type at displs[i] extents. */
struct MPID_nem_glex_vector {
	char *buf;
	const MPI_Aint *counts, *displs;
	MPI_Datatype type;
	MPI_Aint lb, extent, size;
	int contig;
};

static void MPID_nem_glex_side_set(struct MPID_nem_glex_vector *side, const void *buf, const MPI_Aint counts[],
				   const MPI_Aint displs[], MPI_Datatype type)
{
	MPIR_Datatype *dt ATTRIBUTE((unused));
	intptr_t size;

	side->buf = (char *)(uintptr_t)buf;
	side->counts = counts;
	side->displs = displs;
	side->type = type;
	MPIDI_Datatype_get_info(1, type, side->contig, size, dt, side->lb);
	side->size = size;
	MPIR_Datatype_get_extent_macro(type, side->extent);
}

static char *MPID_nem_glex_side_at(const struct MPID_nem_glex_vector *side, int i)
{
	return side->buf + side->displs[i] * side->extent;
}

/* Where they lie without gaps: there, or one after the other in packed. */
static void MPID_nem_glex_side_blocks(const struct MPID_nem_glex_vector *side, int n, unsigned char **packed,
				      struct glex_group_block *blocks)
{
	int i;

	for (i = 0; i < n; i++) {
		blocks[i].len = (uint64_t)(side->counts[i] * side->size);
		blocks[i].data = NULL;
		if (!blocks[i].len)
			continue;
		blocks[i].data = side->contig ? (void *)(MPID_nem_glex_side_at(side, i) + side->lb) : *packed;
		if (!side->contig)
			*packed += blocks[i].len;
	}
}

static size_t MPID_nem_glex_side_packed(const struct MPID_nem_glex_vector *side, int n)
{
	size_t sum = 0;
	int i;

	for (i = 0; i < n && !side->contig; i++)
		sum += (size_t)(side->counts[i] * side->size);
	return sum;
}

static int MPID_nem_glex_side_pack(const struct MPID_nem_glex_vector *side, int n,
				   const struct glex_group_block *blocks)
{
	int i, mpi_errno = MPI_SUCCESS;

	for (i = 0; i < n && !side->contig && mpi_errno == MPI_SUCCESS; i++)
		if (blocks[i].len)
			mpi_errno = MPID_nem_glex_coll_pack(MPID_nem_glex_side_at(side, i), side->counts[i], side->type,
							    blocks[i].data, (MPI_Aint)blocks[i].len);
	return mpi_errno;
}

int MPID_nem_glex_exchange_unpack(struct MPID_nem_glex_op *op, int n)
{
	const struct MPID_nem_glex_scattered *packed = (void *)op->packed;
	int i, mpi_errno = MPI_SUCCESS;
	MPI_Aint size;

	MPIR_Datatype_get_size_macro(op->type, size);
	for (i = 0; i < n && mpi_errno == MPI_SUCCESS; i++)
		if (op->into[i].len)
			mpi_errno =
				MPID_nem_glex_coll_unpack(op->into[i].data, (MPI_Aint)op->into[i].len, packed->at[i],
							  (MPI_Aint)op->into[i].len / size, op->type);
	return mpi_errno;
}

/* The longest block there may be. */
static uint64_t MPID_nem_glex_exchange_most(const MPIR_Comm *comm)
{
	uint64_t most = MPID_nem_glex.coll_stage / (uint64_t)comm->remote_size;

	return comm->remote_size == 2 && most > MPID_NEM_GLEX_BLOCK_OF_TWO ? MPID_NEM_GLEX_BLOCK_OF_TWO : most;
}

glex_ret_t MPID_nem_glex_exchange_post(const struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	return glex_group_alltoallv(tree->group, op->sent, op->into, MPID_nem_glex_exchange_most(tree->comm));
}

/* Of a list of blocks, as MPICH wants them: bytes, from address 0 on. */
static void MPID_nem_glex_blocks_list(const struct glex_group_block *blocks, int n, MPI_Aint *lens, MPI_Aint *displs)
{
	int i;

	for (i = 0; i < n; i++) {
		lens[i] = (MPI_Aint)blocks[i].len;
		displs[i] = (MPI_Aint)blocks[i].data;
	}
}

int MPID_nem_glex_exchange_sched(struct MPID_nem_glex_op *op, MPIR_Comm *comm, MPIR_Sched_t sched)
{
	MPI_Aint lens[2][GLEX_GROUP_GATHER_MEMBERS], displs[2][GLEX_GROUP_GATHER_MEMBERS];

	MPID_nem_glex_blocks_list(op->sent, comm->remote_size, lens[0], displs[0]);
	MPID_nem_glex_blocks_list(op->into, comm->remote_size, lens[1], displs[1]);
	return MPIR_Ialltoallv_intra_sched_auto(op->is_in_place ? MPI_IN_PLACE : NULL, lens[0], displs[0],
						MPID_NEM_GLEX_BYTE, NULL, lens[1], displs[1], MPID_NEM_GLEX_BYTE, comm,
						sched);
}

int MPID_nem_glex_exchange_skips(struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op)
{
	if (op->kind != MPID_NEM_GLEX_ALLTOALLV || !op->is_blind || !tree->skip)
		return 0;
	tree->skip--;
	return 1;
}

/* One more was too long, or not. */
void MPID_nem_glex_exchange_learn(struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op, int too_long)
{
	if (op->kind != MPID_NEM_GLEX_ALLTOALLV || !op->is_blind)
		return;
	tree->skips = !too_long ? 0 : tree->skips ? 2 * tree->skips : 4;
	if (tree->skips > MPID_NEM_GLEX_SKIPS)
		tree->skips = MPID_NEM_GLEX_SKIPS;
	tree->skip = tree->skips;
}

/*
 * in_place: what is sent lies, packed or not, where what is received comes to.  is_blind: of other ranks' blocks it is not
 * known how long they are; else it is a gather, and the same one goes to all.
 */
static int MPID_nem_glex_exchange_go(struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_vector *send,
				     const struct MPID_nem_glex_vector *recv, int in_place, int is_blind,
				     MPIR_Request **req_p)
{
	int mpi_errno = MPI_SUCCESS, n = tree->comm->remote_size, sends = is_blind ? n : 1, i;
	struct MPID_nem_glex_scattered *packed = NULL;
	size_t received = MPID_nem_glex_side_packed(recv, n);
	size_t sent = in_place ? 0 : MPID_nem_glex_side_packed(send, sends);
	struct glex_group_block from[GLEX_GROUP_GATHER_MEMBERS], into[GLEX_GROUP_GATHER_MEMBERS];
	struct MPID_nem_glex_op here, *op;
	unsigned char *next = NULL;

	if (received + sent) {
		packed = MPL_malloc(sizeof(*packed) + received + sent, MPL_MEM_COLL);
		MPIR_ERR_CHKANDJUMP(!packed, mpi_errno, MPI_ERR_OTHER, "**nomem");
		next = packed->bytes;
		for (i = 0; i < n; i++)
			packed->at[i] = MPID_nem_glex_side_at(recv, i);
	}
	MPID_nem_glex_side_blocks(recv, n, &next, into);
	if (in_place)
		memcpy(from, into, sizeof(from));
	else
		MPID_nem_glex_side_blocks(send, sends, &next, from);
	mpi_errno = MPID_nem_glex_side_pack(send, sends, from);
	MPIR_ERR_CHECK(mpi_errno);
	for (i = sends; i < n; i++)
		from[i] = from[0];
	mpi_errno = MPID_nem_glex_op_new(&here, tree->comm, MPID_NEM_GLEX_ALLTOALLV, req_p, &op);
	MPIR_ERR_CHECK(mpi_errno);
	memcpy(op->sent, from, sizeof(from));
	memcpy(op->into, into, sizeof(into));
	op->len = 1;
	op->is_long = 1;
	op->is_blind = is_blind;
	op->is_in_place = in_place;
	if (packed)
		MPID_nem_glex_op_set_packed(op, (unsigned char *)packed, 0, NULL, 0, recv->type);
	op->to = received ? op->packed : NULL;
	return MPID_nem_glex_coll_do(tree, op);
fn_fail:
	MPL_free(packed);
	return mpi_errno;
}

static int MPID_nem_glex_may_exchange(const MPIR_Comm *comm)
{
	return comm->comm_kind == MPIR_COMM_KIND__INTRACOMM && MPID_nem_glex.coll_stage &&
	       MPID_nem_glex_is_staged(comm, 1);
}

int MPID_nem_glex_alltoallv(const void *sendbuf, const MPI_Aint scounts[], const MPI_Aint sdispls[],
			    MPI_Datatype sendtype, void *recvbuf, const MPI_Aint rcounts[], const MPI_Aint rdispls[],
			    MPI_Datatype recvtype, MPIR_Comm *comm, int failed, MPIR_Request **req_p)
{
	int in_place = sendbuf == MPI_IN_PLACE, mpi_errno;
	struct MPID_nem_glex_vector send, recv;
	struct MPID_nem_glex_tree *tree;

	if (!MPID_nem_glex_may_exchange(comm))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_stage_of(comm, 1, !req_p, failed, &tree);
	if (!tree || mpi_errno != MPI_SUCCESS)
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	MPID_nem_glex_side_set(&recv, recvbuf, rcounts, rdispls, recvtype);
	send = recv;
	if (!in_place)
		MPID_nem_glex_side_set(&send, sendbuf, scounts, sdispls, sendtype);
	return MPID_nem_glex_exchange_go(tree, &send, &recv, in_place, 1, req_p);
}

/* What all know alike: none is too long. */
static int MPID_nem_glex_may_gather_any(const MPIR_Comm *comm, const struct MPID_nem_glex_vector *recv)
{
	uint64_t most = MPID_nem_glex_exchange_most(comm);
	int i;

	for (i = 0; i < comm->remote_size; i++)
		if ((uint64_t)(recv->counts[i] * recv->size) > most)
			return 0;
	return 1;
}

int MPID_nem_glex_allgatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			     const MPI_Aint counts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPIR_Comm *comm,
			     int failed, MPIR_Request **req_p)
{
	struct MPID_nem_glex_vector send, recv;
	struct MPID_nem_glex_tree *tree;
	MPI_Aint none = 0;
	int mpi_errno;

	if (!MPID_nem_glex_may_exchange(comm))
		return MPIDI_GLEX_PASS;
	MPID_nem_glex_side_set(&recv, recvbuf, counts, displs, recvtype);
	if (!MPID_nem_glex_may_gather_any(comm, &recv))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_stage_of(comm, 1, !req_p, failed, &tree);
	if (!tree || mpi_errno != MPI_SUCCESS)
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	if (sendbuf == MPI_IN_PLACE)
		MPID_nem_glex_side_set(&send, recvbuf, counts + comm->rank, displs + comm->rank, recvtype);
	else
		MPID_nem_glex_side_set(&send, sendbuf, &sendcount, &none, sendtype);
	return MPID_nem_glex_exchange_go(tree, &send, &recv, 0, 0, req_p);
}
