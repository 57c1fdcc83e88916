/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_late.c - ranks whose part in a collective is done free the communicator, and end, while
 * others still wait for a rank that is late: nobody misses them.
 *
 *   coll_late SECONDS    how late the last rank is
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { USUAL = 20 };

/* The last rank is late for one of the three, and the others leave the communicator as soon as they can. */
static int once(int which, unsigned late)
{
	long one = 1, sum = 0, word = 0;
	int rank, size, i, wrong = 0;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (i = 0; i < USUAL; i++) {
		MPI_Reduce(&one, &sum, 1, MPI_LONG, MPI_SUM, 0, comm);
		MPI_Barrier(comm);
	}
	if (rank == size - 1)
		sleep(late);
	if (which == 0) {
		MPI_Reduce(&one, &sum, 1, MPI_LONG, MPI_SUM, 0, comm);
		wrong = rank == 0 && sum != size;
	} else if (which == 1) {
		word = rank == 0 ? 7 : 0;
		MPI_Bcast(&word, 1, MPI_LONG, 0, comm);
		wrong = word != 7;
	} else {
		MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, comm);
		wrong = sum != size;
	}
	MPI_Comm_free(&comm);
	return wrong;
}

int main(int argc, char **argv)
{
	unsigned late = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	int rank, which, wrong = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (which = 2; which >= 0; which--)
		wrong |= once(which, late);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
	if (rank == 0)
		puts(wrong ? "wrong" : "ok");
	MPI_Finalize();
	return wrong;
}
