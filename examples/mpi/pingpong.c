/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pingpong.c - two ranks bounce messages of growing size; every byte is checked.
 *
 *     mpicc pingpong.c -o pingpong
 *     MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=glex mpiexec -n 2 ./pingpong
 *
 * NOLOCAL makes ranks of one machine talk through the network module instead of
 * MPICH's own shared memory.  Ranks beyond the second only look on.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1 << 20)
#define ROUNDS	20

static void fill(unsigned char *buf, int len, int round)
{
	for (int i = 0; i < len; i++)
		buf[i] = (unsigned char)(i * 31 + round);
}

static int wrong(const unsigned char *buf, int len, int round)
{
	int bad = 0;

	for (int i = 0; i < len; i++)
		bad += buf[i] != (unsigned char)(i * 31 + round);
	return bad;
}

/* Both ranks of one size.  Returns how many bytes arrived wrong here. */
static int bounce(int rank, unsigned char *buf, int len)
{
	int bad = 0;
	double start = MPI_Wtime(), us;

	for (int round = 0; round < ROUNDS; round++) {
		if (rank == 0) {
			fill(buf, len, round);
			MPI_Send(buf, len, MPI_BYTE, 1, round, MPI_COMM_WORLD);
			memset(buf, 0, (size_t)len); /* what comes back must really come back */
			MPI_Recv(buf, len, MPI_BYTE, 1, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(buf, len, MPI_BYTE, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buf, len, MPI_BYTE, 0, round, MPI_COMM_WORLD);
		}
		bad += wrong(buf, len, round);
	}
	us = (MPI_Wtime() - start) * 1e6 / (2 * ROUNDS);
	if (rank == 0)
		printf("%8d bytes %10.2f us one way, checking included\n", len, us);
	return bad;
}

int main(int argc, char **argv)
{
	int rank, size, bad = 0, all_bad;
	unsigned char *buf = malloc(LARGEST);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 2 || !buf) {
		fprintf(stderr, size < 2 ? "pingpong: start it with at least 2 ranks\n" : "pingpong: no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int len = 1; len <= LARGEST && rank < 2; len *= 4)
		bad += bounce(rank, buf, len);
	MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s\n", all_bad ? "FAILED" : "ok");
	free(buf);
	MPI_Finalize();
	return all_bad != 0;
}
