/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_bcast.c - MPI's broadcasts: operations of glex_coll.c, by packets or, if long, from the root's buffer.
 */
#include "glex_coll.h"

/*
 * Two that share memory copy twice, but both at a time, and that is faster.  Others of two
 * have one message to save, not several: only where there is a way without copies.
 */
static int MPID_nem_glex_is_long(const MPIR_Comm *comm, uint64_t len)
{
	uint64_t least = comm->remote_size == 2 ? 4 * MPID_nem_glex.coll_long : MPID_nem_glex.coll_long;

	if (comm->remote_size == 2 && MPID_nem_glex_nearness(comm) == MPID_NEM_GLEX_MIXED)
		return 0;
	return least && len >= least && len <= GLEX_GROUP_LONG_MAX;
}

/* Types may differ among ranks, the number of bytes does not. */
MPID_NEM_GLEX_HOT int MPID_nem_glex_bcast(void *buf, MPI_Aint count, MPI_Datatype type, int root, MPIR_Comm *comm,
					  int failed, MPIR_Request **req_p)
{
	struct MPID_nem_glex_op here, *op;
	struct MPID_nem_glex_tree *tree;
	int mpi_errno = MPI_SUCCESS, contig, is_long, does = 1;
	MPIR_Datatype *dt ATTRIBUTE((unused));
	unsigned char *packed = NULL;
	MPI_Aint lb;
	intptr_t len;

	MPIDI_Datatype_get_info(count, type, contig, len, dt, lb);
	is_long = MPID_nem_glex_is_long(comm, (uint64_t)len);
	if (len < 1 || (!is_long && (size_t)len > MPID_nem_glex.coll_packets * MPID_NEM_GLEX_MP_BYTES))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_tree_of(comm, !req_p, failed, &tree);
	if (tree && is_long)
		mpi_errno = MPID_nem_glex_tree_has(tree, MPID_NEM_GLEX_NEEDS_BUFFERS, MPID_nem_glex_longs_try, !req_p,
						   &does);
	MPIR_ERR_CHECK(mpi_errno);
	if (!tree || !does || (!is_long && MPID_nem_glex_row_is_over(tree, MPID_NEM_GLEX_BCAST, root, (size_t)len)))
		return MPIDI_GLEX_PASS;
	if (!contig) {
		packed = MPL_malloc((size_t)len, MPL_MEM_COLL);
		MPIR_ERR_CHKANDJUMP(!packed, mpi_errno, MPI_ERR_OTHER, "**nomem");
		if (root == comm->rank)
			mpi_errno = MPID_nem_glex_coll_pack(buf, count, type, packed, len);
		MPIR_ERR_CHECK(mpi_errno);
	}
	mpi_errno = MPID_nem_glex_op_new(&here, comm, MPID_NEM_GLEX_BCAST, req_p, &op);
	MPIR_ERR_CHECK(mpi_errno);
	op->root = root;
	op->is_long = is_long;
	op->len = (size_t)len;
	op->to = packed ? packed : (unsigned char *)buf + lb;
	if (packed)
		MPID_nem_glex_op_set_packed(op, packed, (size_t)len, buf, count, type);
	return MPID_nem_glex_coll_do(tree, op);
fn_fail:
	MPL_free(packed);
	return mpi_errno;
}
