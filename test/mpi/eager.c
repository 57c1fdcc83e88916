/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eager.c - a message of each of the lengths named by its arguments, from rank 0 to rank 1.
 * 2 ranks; GLEX_MPI_STATS says which of them went by rendezvous.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int rank, i, k, len, wrong = 0;
	unsigned char *buf;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 1; i < argc; i++) {
		len = atoi(argv[i]);
		buf = malloc((size_t)len);
		memset(buf, rank == 0 ? i : 0, (size_t)len);
		if (rank == 0)
			MPI_Send(buf, len, MPI_CHAR, 1, i, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, len, MPI_CHAR, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (k = 0; k < len; k++)
			wrong += buf[k] != i;
		free(buf);
	}
	if (rank == 1)
		puts(wrong ? "wrong bytes" : "ok");
	MPI_Finalize();
	return wrong != 0;
}
