/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * part.c - a few short messages to everybody, then MPI_Finalize: what is returned for them
 * (credits, lines of rings) is under way while the peers leave.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size, i, peer, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < 3 + rank; i++)
		for (peer = 0; peer < size; peer++)
			if (peer != rank)
				MPI_Send(&i, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
	for (peer = 0; peer < size; peer++) {
		for (i = 0; i < 3 + peer && peer != rank; i++) {
			int got;

			MPI_Recv(&got, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			sum += got != i;
		}
	}
	if (!sum && !rank)
		puts("ok");
	MPI_Finalize();
	return sum != 0;
}
