/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c - more long messages at a time than a process may register: contiguous,
 * strided, expected or not, cut short, all checked.  2 ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 8
#define LEN	 (3 << 20)
#define ROUNDS	 3

static char *out[MESSAGES], *in[MESSAGES];
static MPI_Datatype strided; /* every other KiB of the first 2 * LEN bytes */

static char byte_of(int rank, int message, int round)
{
	return (char)(1 + rank + 2 * message + 16 * round);
}

static int wrong(const char *buf, size_t len, char want)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != want)
			return 1;
	return 0;
}

static int check(int peer, int message, int round)
{
	char want = byte_of(peer, message, round);
	size_t i;

	if (message % 2 == 0)
		return wrong(in[message], LEN, want) || wrong(in[message] + LEN, LEN, 0);
	for (i = 0; i < 2 * LEN; i += 2048)
		if (wrong(in[message] + i, 1024, want) || wrong(in[message] + i + 1024, 1024, 0))
			return 1;
	return 0;
}

static void exchange(int rank, int round)
{
	MPI_Request req[2 * MESSAGES];
	MPI_Status status[2 * MESSAGES];
	int i, peer = !rank;

	for (i = 0; i < MESSAGES; i++) {
		memset(in[i], 0, 2 * LEN);
		memset(out[i], byte_of(rank, i, round), 2 * LEN);
	}
	for (i = 0; i < MESSAGES; i++)
		MPI_Isend(out[i], i % 4 < 2 ? LEN : 1, i % 4 < 2 ? MPI_CHAR : strided, peer, i, MPI_COMM_WORLD,
			  &req[i]);
	if (round)
		MPI_Barrier(MPI_COMM_WORLD); /* all come unexpected */
	for (i = MESSAGES - 1; i >= 0; i--)
		MPI_Irecv(in[i], i % 2 ? 1 : LEN, i % 2 ? strided : MPI_CHAR, peer, i, MPI_COMM_WORLD,
			  &req[MESSAGES + i]);
	MPI_Waitall(2 * MESSAGES, req, status);
	for (i = 0; i < MESSAGES; i++) {
		if (check(peer, i, round)) {
			printf("rank %d, round %d: message %d is wrong\n", rank, round, i);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
}

/* The receiver has room for less: an error for it, and all goes on. */
static void cut_short(int rank)
{
	MPI_Request req;
	MPI_Status status;
	int error = 0, class = 0;

	memset(in[0], 0, 2 * LEN);
	memset(out[0], 7, LEN);
	MPI_Isend(out[0], LEN, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, &req);
	error = MPI_Recv(in[0], LEN / 2, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, &status);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Error_class(error, &class);
	if (class != MPI_ERR_TRUNCATE || wrong(in[0], LEN / 2, 7) || wrong(in[0] + LEN / 2, LEN / 2, 0)) {
		printf("rank %d: a message that does not fit was not cut\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	int i, rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_vector(LEN / 1024, 1024, 2048, MPI_CHAR, &strided);
	MPI_Type_commit(&strided);
	for (i = 0; i < MESSAGES; i++) {
		in[i] = malloc(2 * LEN);
		out[i] = malloc(2 * LEN);
	}
	for (i = 0; i < ROUNDS; i++)
		exchange(rank, i);
	cut_short(rank);
	MPI_Type_free(&strided);
	MPI_Finalize();
	if (rank == 0)
		puts("ok");
	return 0;
}
