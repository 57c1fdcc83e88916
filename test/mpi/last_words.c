/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * last_words.c - a rank says a lot, and aborts: mpiexec reads it before it ends (install-into.sh, mend_abort).
 */
#include <mpi.h>
#include <stdio.h>

#define LINES 800

int main(int argc, char **argv)
{
	int rank, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; rank == 1 && i < LINES; i++)
		fprintf(stderr, "last words %d of %d\n", i, LINES);
	if (rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 15);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
