/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_gather.c - MPI's gathers of a packet from each rank: an operation of glex_coll.c.
 */
#include "glex_coll.h"

/* Of all ranks the parts are as long: where all of them meet is room for so many. */
static int MPID_nem_glex_may_gather(const MPIR_Comm *comm, intptr_t len)
{
	return len >= 1 && len <= GLEX_GROUP_GATHER_MAX && comm->remote_size <= GLEX_GROUP_GATHER_MEMBERS &&
	       MPID_nem_glex_shape((uint32_t)comm->remote_size) == GLEX_GROUP_DIRECT;
}

static int MPID_nem_glex_part_pack(const void *buf, MPI_Aint count, MPI_Datatype type, void *to, MPI_Aint len)
{
	MPIR_Datatype *dt ATTRIBUTE((unused));
	intptr_t size;
	MPI_Aint lb;
	int contig;

	MPIDI_Datatype_get_info(count, type, contig, size, dt, lb);
	if (!contig || size < len)
		return MPID_nem_glex_coll_pack(buf, count, type, to, len);
	memcpy(to, (const char *)buf + lb, (size_t)len);
	return MPI_SUCCESS;
}

/* Only who wants the result knows its type; the bytes of a part are as many as anybody sends. */
int MPID_nem_glex_gather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			 MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm *comm, int failed,
			 MPIR_Request **req_p)
{
	int mpi_errno = MPI_SUCCESS, contig, wanted = root == MPIDI_GLEX_ALL || root == comm->rank;
	unsigned char part[GLEX_GROUP_GATHER_MAX], *packed = NULL;
	MPIR_Datatype *dt ATTRIBUTE((unused));
	struct MPID_nem_glex_op here, *op;
	struct MPID_nem_glex_tree *tree;
	MPI_Aint lb, extent;
	intptr_t len;

	if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM)
		return MPIDI_GLEX_PASS;
	MPIDI_Datatype_get_info(wanted ? recvcount : sendcount, wanted ? recvtype : sendtype, contig, len, dt, lb);
	if (!MPID_nem_glex_may_gather(comm, len))
		return MPIDI_GLEX_PASS;
	mpi_errno = MPID_nem_glex_tree_of(comm, !req_p, failed, &tree);
	if (!tree)
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	if (sendbuf == MPI_IN_PLACE) {
		MPIR_Datatype_get_extent_macro(recvtype, extent);
		sendbuf = (const char *)recvbuf + comm->rank * recvcount * extent;
		sendcount = recvcount;
		sendtype = recvtype;
	}
	mpi_errno = MPID_nem_glex_part_pack(sendbuf, sendcount, sendtype, part, len);
	MPIR_ERR_CHECK(mpi_errno);
	if (wanted && !contig) {
		packed = MPL_malloc((size_t)(len * comm->remote_size), MPL_MEM_COLL);
		MPIR_ERR_CHKANDJUMP(!packed, mpi_errno, MPI_ERR_OTHER, "**nomem");
	}
	mpi_errno = MPID_nem_glex_op_new(&here, comm, MPID_NEM_GLEX_GATHER, req_p, &op);
	MPIR_ERR_CHECK(mpi_errno);
	op->root = root;
	op->len = (size_t)len;
	memcpy(op->part_of_it, part, (size_t)len);
	if (wanted)
		op->to = packed ? packed : (unsigned char *)recvbuf + lb;
	if (packed)
		MPID_nem_glex_op_set_packed(op, packed, (size_t)(len * comm->remote_size), recvbuf,
					    recvcount * comm->remote_size, recvtype);
	return MPID_nem_glex_coll_do(tree, op);
fn_fail:
	MPL_free(packed);
	return mpi_errno;
}
