/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_refused.c - one rank alone cannot have the endpoints for a communicator's
 * collectives: all agree that MPICH does them, and when it can again, the next
 * communicator has them.
 */
#include <mpi.h>
#include <stdio.h>

#include "helper.h"

static int rank, ranks;

static int some(MPI_Comm comm)
{
	int i, sum, bad = 0;

	for (i = 0; i < 20; i++) {
		int value = i * 10 + rank;

		MPI_Barrier(comm);
		MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
		bad += sum != i * 10 * ranks + ranks * (ranks - 1) / 2;
	}
	return bad;
}

int main(int argc, char **argv)
{
	int provided, bad, all[64], mine[64] = {0};
	MPI_Comm refused, granted;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &refused);
	MPI_Comm_dup(MPI_COMM_WORLD, &granted);
	MPI_Alltoall(mine, 1, MPI_INT, all, 1, MPI_INT, refused); /* whoever meets whom has done so */
	if (rank == ranks - 1)
		starve(1);
	bad = some(refused);
	if (rank == ranks - 1)
		starve(0);
	bad += some(granted);
	bad += some(refused);
	MPI_Comm_free(&refused);
	MPI_Comm_free(&granted);
	if (bad)
		printf("rank %d: %d wrong\n", rank, bad);
	else if (rank == 0)
		printf("trees %llu, refused %llu\nok\n", counted("glex_coll_trees"), counted("glex_coll_refused"));
	MPI_Finalize();
	MPI_T_finalize();
	return bad != 0;
}
