/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * near.c - messages of 5,000 to 60,000 bytes from buffers that are used again and again, in all the
 * ways that MPI has: what is received is what was sent when it was, whoever asked first.  2 ranks, which
 * both send and receive.  near.c N: at least N of each rank's have been fetched from where they lay.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#define ROUNDS	60
#define BUFFERS 6
#define MOST	60000

static int rank, other, serial;
static unsigned char in_data[MOST] = {1}, in_bss[MOST];

static unsigned next(void)
{
	static unsigned state = 1; /* the same in both */

	state = state * 1103515245u + 12345u;
	return state >> 8;
}

static unsigned char byte_at(int from, int message, int i)
{
	return (unsigned char)(i * 7 + i / 251 + message * 31 + from * 113);
}

static void fill(unsigned char *buf, int len, int message)
{
	for (int i = 0; i < len; i++)
		buf[i] = byte_at(rank, message, i);
}

static void compare(const unsigned char *buf, int len, int message, const char *what)
{
	for (int i = 0; i < len; i++)
		check(buf[i] == byte_at(other, message, i), what);
}

/* Both send before they receive: neither waits for the other's receive. */
static void head_on(unsigned char *out, unsigned char *in, int len)
{
	int message = serial++;

	fill(out, len, message);
	MPI_Send(out, len, MPI_BYTE, other, message, MPI_COMM_WORLD);
	memset(out, 0, (size_t)len);
	MPI_Recv(in, len, MPI_BYTE, other, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	compare(in, len, message, "wrong bytes of messages sent at a time");
}

/* Two under way, the second received first. */
static void crossed(unsigned char *out, unsigned char *in, int len)
{
	int first = serial++, second = serial++, half = len / 2;
	MPI_Request req[2];
	MPI_Status status[2];

	fill(out, half, first);
	fill(out + half, half, second);
	MPI_Isend(out, half, MPI_BYTE, other, first, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(out + half, half, MPI_BYTE, other, second, MPI_COMM_WORLD, &req[1]);
	MPI_Recv(in, half, MPI_BYTE, other, second, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(in + half, half, MPI_BYTE, MPI_ANY_SOURCE, first, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Waitall(2, req, status);
	compare(in, half, second, "wrong bytes of the second of two messages");
	compare(in + half, half, first, "wrong bytes of the first of two messages");
}

static void synchronous(unsigned char *out, unsigned char *in, int len)
{
	int message = serial++;
	MPI_Request req;

	MPI_Irecv(in, len, MPI_BYTE, other, message, MPI_COMM_WORLD, &req);
	fill(out, len, message);
	MPI_Ssend(out, len, MPI_BYTE, other, message, MPI_COMM_WORLD);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	compare(in, len, message, "wrong bytes of a synchronous message");
}

/* The receiver has less room, and gets an error and the front. */
static void truncated(unsigned char *out, unsigned char *in, int len)
{
	int message = serial++, class = 0, room = len / 3;
	MPI_Request req;

	fill(out, len, message);
	in[room] = 99;
	MPI_Isend(out, len, MPI_BYTE, other, message, MPI_COMM_WORLD, &req);
	MPI_Error_class(MPI_Recv(in, room, MPI_BYTE, other, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
	check(class == MPI_ERR_TRUNCATE && in[room] == 99, "a message too long is no error, or overran its buffer");
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	compare(in, room, message, "wrong bytes of a message that was too long");
}

/* Every third int, on the receiving side. */
static void scattered(unsigned char *out, unsigned char *in, int len)
{
	int message = serial++, n = len / 12;
	MPI_Datatype third;
	MPI_Request req;

	MPI_Type_vector(n, 1, 3, MPI_INT, &third);
	MPI_Type_commit(&third);
	fill(out, 4 * n, message);
	MPI_Isend(out, 4 * n, MPI_BYTE, other, message, MPI_COMM_WORLD, &req);
	MPI_Recv(in, 1, third, other, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 4; k++)
			check(in[12 * i + k] == byte_at(other, message, 4 * i + k), "wrong bytes of scattered ones");
	MPI_Type_free(&third);
}

/* Taken from the queue of those that were not expected, or sent and forgotten. */
static void probed(unsigned char *out, unsigned char *in, int len)
{
	int message = serial++, count = 0;
	MPI_Message handle;
	MPI_Status status;
	MPI_Request req;

	fill(out, len, message);
	MPI_Isend(out, len, MPI_BYTE, other, message, MPI_COMM_WORLD, &req);
	MPI_Mprobe(other, message, MPI_COMM_WORLD, &handle, &status);
	MPI_Get_count(&status, MPI_BYTE, &count);
	check(count == len, "a probe tells another length");
	MPI_Mrecv(in, len, MPI_BYTE, &handle, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	compare(in, len, message, "wrong bytes of a probed message");
}

static void cancelled(unsigned char *out, unsigned char *in, int len)
{
	int message = serial++, gone = 0;
	MPI_Status status;
	MPI_Request req;

	fill(out, len, message);
	MPI_Isend(out, len, MPI_BYTE, other, message, MPI_COMM_WORLD, &req);
	MPI_Cancel(&req);
	MPI_Wait(&req, &status);
	MPI_Test_cancelled(&status, &gone);
	MPI_Sendrecv(&gone, 1, MPI_INT, other, MOST, in, 1, MPI_INT, other, MOST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	memcpy(&gone, in, sizeof(gone));
	if (gone)
		return;
	MPI_Recv(in, len, MPI_BYTE, other, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	compare(in, len, message, "wrong bytes of a message that could not be cancelled");
}

int main(int argc, char **argv)
{
	static void (*const ways[])(unsigned char *, unsigned char *,
				    int) = {head_on, crossed, synchronous, truncated, scattered, probed, cancelled};
	unsigned char on_stack[MOST], *buf[BUFFERS], *in = malloc(MOST);
	int provided;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	other = 1 - rank;
	buf[0] = in_data;
	buf[1] = in_bss;
	buf[2] = on_stack;
	for (int i = 3; i < BUFFERS; i++)
		buf[i] = malloc(MOST);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BUFFERS; i++)
			for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
				ways[w](buf[i], in, 5000 + (int)(next() % (MOST - 5000)));
		free(buf[BUFFERS - 1]); /* and it comes again, perhaps elsewhere */
		buf[BUFFERS - 1] = malloc(MOST + next() % 100000);
		memset(buf[BUFFERS - 1], 0, MOST);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	check(argc < 2 || counted("glex_near") >= (unsigned long long)atoi(argv[1]), "hardly any message was lent");
	if (rank == 0)
		puts("ok");
	for (int i = 3; i < BUFFERS; i++)
		free(buf[i]);
	free(in);
	MPI_T_finalize();
	MPI_Finalize();
	return 0;
}
