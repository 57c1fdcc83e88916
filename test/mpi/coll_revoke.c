/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_revoke.c CASE - a communicator is revoked by a rank that has not come to a
 * collective which the others wait in, run by the NICs: they get MPIX_ERR_REVOKED,
 * as in whatever they begin on it later, and go on with another.  3 ranks.
 *
 * CASE: barrier, iallreduce, bcast (of a length that is fetched), bcast_from (by who does not come); or, on a
 * communicator whose tree the others cannot make without who does not come, new_barrier, new_iallreduce; or
 * iallgather, which is MPICH's own, and ends with some error
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"

#define LATE 2
#define LONG (1 << 18)

static char *buf;

static int wait_on(const char *what, MPI_Comm comm)
{
	MPI_Request req[2];
	int one = 1, sum, ret, all[3] = {0};

	if (strstr(what, "barrier"))
		return MPI_Barrier(comm);
	if (!strncmp(what, "bcast", 5))
		return MPI_Bcast(buf, LONG, MPI_CHAR, strcmp(what, "bcast") ? LATE : 0, comm);
	if (!strcmp(what, "iallgather")) {
		MPI_Iallgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm, &req[0]);
		return MPI_Wait(&req[0], MPI_STATUS_IGNORE) == MPI_SUCCESS ? MPI_SUCCESS : MPIX_ERR_REVOKED;
	}
	if (!strcmp(what, "ialltoall")) {
		MPI_Ialltoall(MPI_IN_PLACE, 1, MPI_INT, all, 1, MPI_INT, comm, &req[0]);
		return MPI_Wait(&req[0], MPI_STATUS_IGNORE) == MPI_SUCCESS ? MPI_SUCCESS : MPIX_ERR_REVOKED;
	}
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &req[0]);
	MPI_Ibarrier(comm, &req[1]); /* waits for its turn */
	ret = MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	check(MPI_Wait(&req[1], MPI_STATUS_IGNORE) != MPI_SUCCESS, "what waited behind it is done");
	return ret;
}

static void expect_revoked(int ret, const char *what)
{
	int class;

	MPI_Error_class(ret, &class);
	check(class == MPIX_ERR_REVOKED, what);
}

/* By messages, from everybody to everybody: what was sent before them has come. */
static void hear_from_all(int rank)
{
	int n, i;

	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (i = 1; i < n; i++)
		MPI_Sendrecv(NULL, 0, MPI_INT, (rank + i) % n, 5, NULL, 0, MPI_INT, (rank + n - i) % n, 5,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int rank, ret, i, provided;
	MPI_Comm comm;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &rank);
	buf = calloc(1, LONG);
	for (i = 0; i < 3; i++) {
		check(MPI_Barrier(comm) == MPI_SUCCESS, "a barrier before has failed");
		check(MPI_Bcast(buf, LONG, MPI_CHAR, 0, comm) == MPI_SUCCESS, "a broadcast before has failed");
	}
	check(counted("glex_coll_barriers") > 0 && counted("glex_coll_long") > 0, "the NICs did not do them");
	if (!strncmp(what, "new", 3)) {
		MPI_Comm_free(&comm);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	}
	if (rank == LATE) {
		usleep(200000);
		check(MPIX_Comm_revoke(comm) == MPI_SUCCESS, "it cannot be revoked");
	} else {
		ret = wait_on(what, comm);
		/* who has the root's bytes, and the root if all have, need not wait for the one that has not come */
		if (ret != MPI_SUCCESS || strcmp(what, "bcast"))
			expect_revoked(ret, "who waits is not told");
	}
	/* On another: it works, and what is under way of the revocation comes before it. */
	hear_from_all(rank);
	check(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of all has failed");
	expect_revoked(MPI_Barrier(comm), "a later barrier is not refused");
	expect_revoked(MPI_Bcast(buf, 8, MPI_CHAR, 0, comm), "a later broadcast is not refused");
	hear_from_all(rank);
	MPI_Comm_free(&comm);
	free(buf);
	MPI_Finalize();
	MPI_T_finalize();
	if (rank == 0)
		puts("ok");
	return 0;
}
