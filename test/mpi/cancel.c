/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cancel.c - more long sends are cancelled than a process can have under way: what
 * they held must be given back.  2 ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMES 2000
#define LEN   (1 << 20)

int main(int argc, char **argv)
{
	int i, rank, cancelled, missed = 0;
	MPI_Request req;
	MPI_Status status;
	char *buf;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	buf = malloc(LEN);
	memset(buf, rank, LEN);
	for (i = 0; i < TIMES && rank == 0; i++) {
		MPI_Isend(buf, LEN, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &req);
		MPI_Cancel(&req);
		MPI_Wait(&req, &status);
		MPI_Test_cancelled(&status, &cancelled);
		missed += !cancelled;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Send(buf, LEN, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
	else
		MPI_Recv(buf, LEN, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &status);
	if (missed || buf[LEN - 1]) {
		printf("rank %d: %d sends were not cancelled, or the last message is wrong\n", rank, missed);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	free(buf);
	MPI_Finalize();
	if (rank == 0)
		puts("ok");
	return 0;
}
