/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_merged.c [VARIABLE=VALUE] - two ranks start two more, which have that in their environment, and become one
 * communicator with them: its collectives come to what they must, and say whether it has a tree.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "helper.h"

#define CALLS 30

static void play(MPI_Comm all)
{
	MPI_Request req;
	int rank, ranks, sum;

	MPI_Comm_rank(all, &rank);
	MPI_Comm_size(all, &ranks);
	check(ranks == 4, "they are not four");
	for (int i = 0; i < CALLS; i++) {
		int value = i * 10 + rank, told = rank == i % 4 ? i : -1;

		MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all);
		check(sum == i * 40 + 6, "an allreduce");
		MPI_Bcast(&told, 1, MPI_INT, i % 4, all);
		check(told == i, "a broadcast");
		MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_MAX, all, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		check(sum == i * 10 + 3, "an Iallreduce");
		MPI_Barrier(all);
	}
}

int main(int argc, char **argv)
{
	int provided, rank;
	MPI_Comm parent, inter, all;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL) {
		char *child[] = {argc > 1 ? argv[1] : NULL, argv[0], NULL};

		check(argc > 1, "no variable is given");
		MPI_Comm_spawn("env", child, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
		MPI_Intercomm_merge(inter, 0, &all);
	} else {
		MPI_Intercomm_merge(parent, 1, &all);
	}
	play(all);
	MPI_Comm_free(&all);
	if (parent == MPI_COMM_NULL && rank == 0)
		printf("reductions %llu\nok\n", counted("glex_coll_reductions"));
	MPI_Comm_disconnect(parent == MPI_COMM_NULL ? &inter : &parent);
	MPI_Finalize();
	MPI_T_finalize();
	return 0;
}
