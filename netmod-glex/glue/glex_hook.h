/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_hook.h - where MPICH's collectives ask the netmod first.
 *
 * install-into.sh has CH3's mpid_coll.h include this before its first function, and
 * undefine these macros behind the last: so what is written there as a call of
 * MPIR_Barrier_impl, and of its like, becomes the question whether glex does it, and
 * the same call if not.  With another netmod nobody sets MPIDI_GLEX_coll, and all is
 * as it was; where MPICH is configured without glex none of this is compiled.
 */
#ifndef MPID_NEM_GLEX_HOOK_H
#define MPID_NEM_GLEX_HOOK_H

#ifdef MPIDI_NEM_GLEX

#define MPIDI_GLEX_PASS (-1) /* for MPICH to do; no error code is negative */
#define MPIDI_GLEX_ALL	(-1) /* as the root of a reduction or a gather: everybody wants the result */

/*
 * They return an error code, or MPIDI_GLEX_PASS.  req_p is NULL for what blocks.  failed: a step before this one, of
 * a collective made of several, has failed here: what this rank has to send is not what the others wait for.
 */
struct MPIDI_GLEX_coll {
	int (*barrier)(MPIR_Comm *comm, int failed, MPIR_Request **req_p);
	int (*bcast)(void *buf, MPI_Aint count, MPI_Datatype type, int root, MPIR_Comm *comm, int failed,
		     MPIR_Request **req_p);
	int (*reduce)(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op, int root,
		      MPIR_Comm *comm, int failed, MPIR_Request **req_p);
	int (*gather)(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Aint recvcount,
		      MPI_Datatype recvtype, int root, MPIR_Comm *comm, int failed, MPIR_Request **req_p);
	int (*scatter)(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
		       MPIR_Comm *comm, int failed, MPIR_Request **req_p);
	int (*scatter_counts)(const void *sendbuf, void *recvbuf, const MPI_Aint counts[], MPI_Datatype type, MPI_Op op,
			      MPIR_Comm *comm, int failed, MPIR_Request **req_p);
	int (*alltoall)(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm *comm, int failed, MPIR_Request **req_p);
	int (*allgatherv)(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			  const MPI_Aint counts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPIR_Comm *comm,
			  int failed, MPIR_Request **req_p);
	int (*alltoallv)(const void *sendbuf, const MPI_Aint scounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
			 void *recvbuf, const MPI_Aint rcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
			 MPIR_Comm *comm, int failed, MPIR_Request **req_p);
};

extern const struct MPIDI_GLEX_coll *MPIDI_GLEX_coll; /* NULL: glex does none */

#define MPIDI_GLEX_OR(what, args, otherwise)                                                                           \
	({                                                                                                             \
		int done_ = MPIDI_GLEX_coll ? MPIDI_GLEX_coll->what args : MPIDI_GLEX_PASS;                            \
		done_ == MPIDI_GLEX_PASS ? (otherwise) : done_;                                                        \
	})

/* What stands for the dots below, which changes with MPICH's releases: how the steps before have ended. */
#ifdef MPIR_COLL_ATTR_HAS_ERR
#define MPIDI_GLEX_FAILED(attr) (MPIR_COLL_ATTR_HAS_ERR(attr) != 0)
#elif MPICH_NUMVERSION >= 40200000
#define MPIDI_GLEX_FAILED(errflag) ((errflag) != MPIR_ERR_NONE)
#else
#define MPIDI_GLEX_FAILED(errflag) (*(errflag) != MPIR_ERR_NONE)
#endif

#define MPIR_Barrier_impl(comm, ...)                                                                                   \
	MPIDI_GLEX_OR(barrier, (comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL), MPIR_Barrier_impl(comm, __VA_ARGS__))
#define MPIR_Bcast_impl(buf, count, type, root, comm, ...)                                                             \
	MPIDI_GLEX_OR(bcast, (buf, count, type, root, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),                     \
		      MPIR_Bcast_impl(buf, count, type, root, comm, __VA_ARGS__))
#define MPIR_Reduce_impl(from, to, count, type, op, root, comm, ...)                                                   \
	MPIDI_GLEX_OR(reduce, (from, to, count, type, op, root, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),           \
		      MPIR_Reduce_impl(from, to, count, type, op, root, comm, __VA_ARGS__))
#define MPIR_Allreduce_impl(from, to, count, type, op, comm, ...)                                                      \
	MPIDI_GLEX_OR(reduce, (from, to, count, type, op, MPIDI_GLEX_ALL, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL), \
		      MPIR_Allreduce_impl(from, to, count, type, op, comm, __VA_ARGS__))
#define MPIR_Gather_impl(from, scount, stype, to, rcount, rtype, root, comm, ...)                                      \
	MPIDI_GLEX_OR(gather,                                                                                          \
		      (from, scount, stype, to, rcount, rtype, root, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),      \
		      MPIR_Gather_impl(from, scount, stype, to, rcount, rtype, root, comm, __VA_ARGS__))
#define MPIR_Allgather_impl(from, scount, stype, to, rcount, rtype, comm, ...)                                         \
	MPIDI_GLEX_OR(                                                                                                 \
		gather,                                                                                                \
		(from, scount, stype, to, rcount, rtype, MPIDI_GLEX_ALL, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),  \
		MPIR_Allgather_impl(from, scount, stype, to, rcount, rtype, comm, __VA_ARGS__))
#define MPIR_Reduce_scatter_block_impl(from, to, count, type, op, comm, ...)                                           \
	MPIDI_GLEX_OR(scatter, (from, to, count, type, op, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),                \
		      MPIR_Reduce_scatter_block_impl(from, to, count, type, op, comm, __VA_ARGS__))
#define MPIR_Reduce_scatter_impl(from, to, counts, type, op, comm, ...)                                                \
	MPIDI_GLEX_OR(scatter_counts, (from, to, counts, type, op, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),        \
		      MPIR_Reduce_scatter_impl(from, to, counts, type, op, comm, __VA_ARGS__))
#define MPIR_Alltoall_impl(from, scount, stype, to, rcount, rtype, comm, ...)                                          \
	MPIDI_GLEX_OR(alltoall, (from, scount, stype, to, rcount, rtype, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),  \
		      MPIR_Alltoall_impl(from, scount, stype, to, rcount, rtype, comm, __VA_ARGS__))
#define MPIR_Allgatherv_impl(from, scount, stype, to, counts, displs, rtype, comm, ...)                                \
	MPIDI_GLEX_OR(allgatherv,                                                                                      \
		      (from, scount, stype, to, counts, displs, rtype, comm, MPIDI_GLEX_FAILED(__VA_ARGS__), NULL),    \
		      MPIR_Allgatherv_impl(from, scount, stype, to, counts, displs, rtype, comm, __VA_ARGS__))
#define MPIR_Alltoallv_impl(from, scounts, sdispls, stype, to, rcounts, rdispls, rtype, comm, ...)                     \
	MPIDI_GLEX_OR(                                                                                                 \
		alltoallv,                                                                                             \
		(from, scounts, sdispls, stype, to, rcounts, rdispls, rtype, comm, MPIDI_GLEX_FAILED(__VA_ARGS__),     \
		 NULL),                                                                                                \
		MPIR_Alltoallv_impl(from, scounts, sdispls, stype, to, rcounts, rdispls, rtype, comm, __VA_ARGS__))
#define MPIR_Ibarrier_impl(comm, req_p) MPIDI_GLEX_OR(barrier, (comm, 0, req_p), MPIR_Ibarrier_impl(comm, req_p))
#define MPIR_Ibcast_impl(buf, count, type, root, comm, req_p)                                                          \
	MPIDI_GLEX_OR(bcast, (buf, count, type, root, comm, 0, req_p),                                                 \
		      MPIR_Ibcast_impl(buf, count, type, root, comm, req_p))
#define MPIR_Ireduce_impl(from, to, count, type, op, root, comm, req_p)                                                \
	MPIDI_GLEX_OR(reduce, (from, to, count, type, op, root, comm, 0, req_p),                                       \
		      MPIR_Ireduce_impl(from, to, count, type, op, root, comm, req_p))
#define MPIR_Iallreduce_impl(from, to, count, type, op, comm, req_p)                                                   \
	MPIDI_GLEX_OR(reduce, (from, to, count, type, op, MPIDI_GLEX_ALL, comm, 0, req_p),                             \
		      MPIR_Iallreduce_impl(from, to, count, type, op, comm, req_p))
#define MPIR_Igather_impl(from, scount, stype, to, rcount, rtype, root, comm, req_p)                                   \
	MPIDI_GLEX_OR(gather, (from, scount, stype, to, rcount, rtype, root, comm, 0, req_p),                          \
		      MPIR_Igather_impl(from, scount, stype, to, rcount, rtype, root, comm, req_p))
#define MPIR_Iallgather_impl(from, scount, stype, to, rcount, rtype, comm, req_p)                                      \
	MPIDI_GLEX_OR(gather, (from, scount, stype, to, rcount, rtype, MPIDI_GLEX_ALL, comm, 0, req_p),                \
		      MPIR_Iallgather_impl(from, scount, stype, to, rcount, rtype, comm, req_p))
#define MPIR_Ireduce_scatter_block_impl(from, to, count, type, op, comm, req_p)                                        \
	MPIDI_GLEX_OR(scatter, (from, to, count, type, op, comm, 0, req_p),                                            \
		      MPIR_Ireduce_scatter_block_impl(from, to, count, type, op, comm, req_p))
#define MPIR_Ireduce_scatter_impl(from, to, counts, type, op, comm, req_p)                                             \
	MPIDI_GLEX_OR(scatter_counts, (from, to, counts, type, op, comm, 0, req_p),                                    \
		      MPIR_Ireduce_scatter_impl(from, to, counts, type, op, comm, req_p))
#define MPIR_Iallgatherv_impl(from, scount, stype, to, counts, displs, rtype, comm, req_p)                             \
	MPIDI_GLEX_OR(allgatherv, (from, scount, stype, to, counts, displs, rtype, comm, 0, req_p),                    \
		      MPIR_Iallgatherv_impl(from, scount, stype, to, counts, displs, rtype, comm, req_p))
#define MPIR_Ialltoallv_impl(from, scounts, sdispls, stype, to, rcounts, rdispls, rtype, comm, req_p)                  \
	MPIDI_GLEX_OR(alltoallv, (from, scounts, sdispls, stype, to, rcounts, rdispls, rtype, comm, 0, req_p),         \
		      MPIR_Ialltoallv_impl(from, scounts, sdispls, stype, to, rcounts, rdispls, rtype, comm, req_p))
#define MPIR_Ialltoall_impl(from, scount, stype, to, rcount, rtype, comm, req_p)                                       \
	MPIDI_GLEX_OR(alltoall, (from, scount, stype, to, rcount, rtype, comm, 0, req_p),                              \
		      MPIR_Ialltoall_impl(from, scount, stype, to, rcount, rtype, comm, req_p))

#endif
#endif /* MPID_NEM_GLEX_HOOK_H */
