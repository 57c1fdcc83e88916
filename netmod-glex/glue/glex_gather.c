/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_gather.c - MPI's gathers and exchanges: operations of glex_coll.c.
 *
 *   by packets  one of each rank, to one or to all
 *   by a stage  more of each to all, or of each for each: straight from where it lies, or where it was packed, to where
 *               it belongs, or is unpacked
 */
#include "glex_coll.h"

/* Of all ranks the parts are as long: where all of them meet is room for so many. */
static int MPID_nem_glex_may_gather(const MPIR_Comm *comm, intptr_t len)
{
	return len >= 1 && len <= GLEX_GROUP_GATHER_MAX && comm->remote_size <= GLEX_GROUP_GATHER_MEMBERS &&
	       MPID_nem_glex_shape((uint32_t)comm->remote_size) == GLEX_GROUP_DIRECT;
}

/* What a call was given to send, or where to receive: so many of a type of each rank, or for each. */
struct MPID_nem_glex_blocks {
	char *buf;
	MPI_Aint count, lb;
	MPI_Datatype type;
	intptr_t len; /* bytes of one */
	int contig;
};

struct MPID_nem_glex_exchange {
	struct MPID_nem_glex_blocks send, recv; /* in place: the same */
	MPIR_Comm *comm;
	int in_place, is_long;
	intptr_t len;		   /* bytes of a block, of whatever rank */
	const unsigned char *from; /* what is sent, without gaps */
	unsigned char *to;	   /* the same of what is received; NULL: nothing is */
	unsigned char *packed;	   /* where one of these is, if there are gaps */
};

static void MPID_nem_glex_blocks_set(struct MPID_nem_glex_blocks *blocks, const void *buf, MPI_Aint count,
				     MPI_Datatype type)
{
	MPIR_Datatype *dt ATTRIBUTE((unused));

	blocks->buf = (char *)(uintptr_t)buf;
	blocks->count = count;
	blocks->type = type;
	MPIDI_Datatype_get_info(count, type, blocks->contig, blocks->len, dt, blocks->lb);
}

/* So many of them, from that one on: their first len bytes. */
static int MPID_nem_glex_blocks_pack(const struct MPID_nem_glex_blocks *blocks, int first, int n, void *to,
				     intptr_t len)
{
	const char *from = blocks->buf;
	MPI_Aint extent;

	if (first) {
		MPIR_Datatype_get_extent_macro(blocks->type, extent);
		from += first * blocks->count * extent;
	}
	if (!blocks->contig || n * blocks->len < len)
		return MPID_nem_glex_coll_pack(from, n * blocks->count, blocks->type, to, len);
	memcpy(to, from + blocks->lb, (size_t)len);
	return MPI_SUCCESS;
}

static int MPID_nem_glex_has_gaps(const struct MPID_nem_glex_exchange *ex, const struct MPID_nem_glex_blocks *blocks)
{
	return !blocks->contig || blocks->len != ex->len;
}

static int MPID_nem_glex_exchange_is_staged(const struct MPID_nem_glex_exchange *ex)
{
	int n = ex->comm->remote_size;

	return (n > 2 || ex->len <= MPID_NEM_GLEX_BLOCK_OF_TWO) &&
	       MPID_nem_glex_is_staged(ex->comm, (uint64_t)ex->len * (uint64_t)n);
}

/* Memory for what has gaps: of what is received, and for so many blocks of what is sent behind that. */
static int MPID_nem_glex_exchange_room(struct MPID_nem_glex_exchange *ex, int sent)
{
	int mpi_errno = MPI_SUCCESS, n = ex->comm->remote_size, received = ex->recv.contig ? 0 : n;

	ex->to = (unsigned char *)ex->recv.buf + ex->recv.lb;
	if (received + sent > 0) {
		ex->packed = MPL_malloc((size_t)(ex->len * (received + sent)), MPL_MEM_COLL);
		MPIR_ERR_CHKANDJUMP(!ex->packed, mpi_errno, MPI_ERR_OTHER, "**nomem");
	}
	if (received)
		ex->to = ex->packed;
fn_fail:
	return mpi_errno;
}

/* All is in place: begun.  What was packed is gone afterwards, or the operation's. */
static int MPID_nem_glex_exchange_do(struct MPID_nem_glex_exchange *ex, struct MPID_nem_glex_tree *tree,
				     enum MPID_nem_glex_coll_kind kind, int root, MPIR_Request **req_p)
{
	struct MPID_nem_glex_op here, *op;
	int mpi_errno = MPID_nem_glex_op_new(&here, ex->comm, kind, req_p, &op), n = ex->comm->remote_size;

	if (mpi_errno != MPI_SUCCESS) {
		MPL_free(ex->packed);
		return mpi_errno;
	}
	op->root = root;
	op->len = (size_t)ex->len;
	op->is_long = ex->is_long;
	if (op->is_long)
		op->from = ex->from;
	else
		memcpy(op->part_of_it, ex->from, (size_t)ex->len);
	op->to = ex->to;
	if (ex->packed)
		MPID_nem_glex_op_set_packed(op, ex->packed, (size_t)(ex->len * n), ex->recv.buf, ex->recv.count * n,
					    ex->recv.type);
	return MPID_nem_glex_coll_do(tree, op);
}

/* ---- gathers --------------------------------------------------------------- */

/* What this rank sends is made ready in `part`, or its place in what is received, if it is not where it lies. */
static int MPID_nem_glex_gather_own(struct MPID_nem_glex_exchange *ex, unsigned char *part)
{
	unsigned char *own = ex->is_long ? ex->to + ex->comm->rank * ex->len : part;

	ex->from = own;
	if (ex->is_long && !ex->in_place && !MPID_nem_glex_has_gaps(ex, &ex->send)) {
		ex->from = (unsigned char *)ex->send.buf + ex->send.lb;
		return MPI_SUCCESS;
	}
	if (ex->is_long && ex->in_place && !ex->packed)
		return MPI_SUCCESS;
	return MPID_nem_glex_blocks_pack(&ex->send, ex->in_place ? ex->comm->rank : 0, 1, own, ex->len);
}

static int MPID_nem_glex_gathers(const struct MPID_nem_glex_exchange *ex, int root)
{
	if (ex->is_long)
		return root == MPIDI_GLEX_ALL && MPID_nem_glex_exchange_is_staged(ex);
	return MPID_nem_glex_may_gather(ex->comm, ex->len);
}

/* Only who wants the result knows its type; the bytes of a part are as many as anybody sends. */
int MPID_nem_glex_gather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			 MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm *comm, int failed,
			 MPIR_Request **req_p)
{
	struct MPID_nem_glex_exchange ex = {.comm = comm, .in_place = sendbuf == MPI_IN_PLACE};
	int mpi_errno, wanted = root == MPIDI_GLEX_ALL || root == comm->rank;
	unsigned char part[GLEX_GROUP_GATHER_MAX];
	struct MPID_nem_glex_tree *tree;

	if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM)
		return MPIDI_GLEX_PASS;
	if (wanted)
		MPID_nem_glex_blocks_set(&ex.recv, recvbuf, recvcount, recvtype);
	if (ex.in_place)
		ex.send = ex.recv;
	else
		MPID_nem_glex_blocks_set(&ex.send, sendbuf, sendcount, sendtype);
	ex.len = wanted ? ex.recv.len : ex.send.len;
	ex.is_long = ex.len > GLEX_GROUP_GATHER_MAX;
	if (!MPID_nem_glex_gathers(&ex, root))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_stage_of(comm, ex.is_long, !req_p, failed, &tree);
	if (!tree || mpi_errno != MPI_SUCCESS)
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	if (root != MPIDI_GLEX_ALL && MPID_nem_glex_row_is_over(tree, MPID_NEM_GLEX_GATHER, root, (size_t)ex.len))
		return MPIDI_GLEX_PASS;
	if (wanted)
		mpi_errno = MPID_nem_glex_exchange_room(&ex, 0);
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPID_nem_glex_gather_own(&ex, part);
	MPIR_ERR_CHECK(mpi_errno);
	return MPID_nem_glex_exchange_do(&ex, tree, MPID_NEM_GLEX_GATHER, root, req_p);
fn_fail:
	MPL_free(ex.packed);
	return mpi_errno;
}

/* ---- exchanges ------------------------------------------------------------- */

/* Types may differ among ranks, the bytes of a block do not. */
int MPID_nem_glex_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			   MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm *comm, int failed, MPIR_Request **req_p)
{
	struct MPID_nem_glex_exchange ex = {.comm = comm, .in_place = sendbuf == MPI_IN_PLACE, .is_long = 1};
	int mpi_errno, n = comm->remote_size, packs;
	struct MPID_nem_glex_tree *tree;

	if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM)
		return MPIDI_GLEX_PASS;
	MPID_nem_glex_blocks_set(&ex.recv, recvbuf, recvcount, recvtype);
	ex.len = ex.recv.len;
	if (ex.len < 1 || !MPID_nem_glex_exchange_is_staged(&ex))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_stage_of(comm, ex.is_long, !req_p, failed, &tree);
	if (!tree || mpi_errno != MPI_SUCCESS)
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	if (ex.in_place)
		ex.send = ex.recv;
	else
		MPID_nem_glex_blocks_set(&ex.send, sendbuf, sendcount, sendtype);
	packs = MPID_nem_glex_has_gaps(&ex, &ex.send);
	mpi_errno = MPID_nem_glex_exchange_room(&ex, packs && !ex.in_place ? n : 0);
	MPIR_ERR_CHECK(mpi_errno);
	ex.from = packs ? ex.packed : (unsigned char *)ex.send.buf + ex.send.lb;
	if (packs && !ex.in_place && ex.to == ex.packed)
		ex.from += n * ex.len;
	if (packs)
		mpi_errno = MPID_nem_glex_blocks_pack(&ex.send, 0, n, (void *)(uintptr_t)ex.from, n * ex.len);
	MPIR_ERR_CHECK(mpi_errno);
	return MPID_nem_glex_exchange_do(&ex, tree, MPID_NEM_GLEX_ALLTOALL, MPIDI_GLEX_ALL, req_p);
fn_fail:
	MPL_free(ex.packed);
	return mpi_errno;
}
