/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unexpected.c CASE COUNT - messages that come before their receives.
 *
 * flood: all ranks but 1 and 2 send COUNT short messages each to rank 1, by MPI_Send.
 * Rank 1 sleeps, then talks with rank 2 for a while, and then receives them.  It
 * prints by how much its memory grew until then.
 *
 * sync: the same of synchronous messages of LONGEST bytes, by MPI_Issend, all at once.
 *
 * queued: the same of messages of LONGEST bytes of several kinds, by MPI_Isend and MPI_Issend,
 * all of which begin before the first is waited for.
 *
 * later: rank 0 sends COUNT messages of many kinds, and then another, which rank 1
 * receives first.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"

#define TALKS	3000 /* at most; MPICH searches all that is unexpected for each */
#define STEADY	100  /* talks in which nothing has come any more */
#define LONGEST 4000
#define BATCH	100

enum { FLOOD = 1, TALK, LATER, CANCELLED };

#define GAPS (2 * LONGEST) /* bytes that a message with gaps lies in */

enum how { BY_SEND, BY_ISSEND, BY_ISEND };

static int rank, size, count;

/* The i-th message; some are empty. */
static int length(int i)
{
	static const int lengths[] = {0, 8, 16, 40, 120};

	return lengths[i % 5];
}

static void fill(char *buf, int i, int len)
{
	int k;

	for (k = 0; k < len; k++)
		buf[k] = (char)(i * 7 + k + (i >> 8));
}

/* KiB that this process has had at most. */
static long most_memory(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmHWM: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

/* ---- flood --------------------------------------------------------------- */

static void send_all(void)
{
	char buf[LONGEST];
	int i;

	for (i = 0; i < count; i++) {
		fill(buf, i, length(i));
		MPI_Send(buf, length(i), MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD);
	}
}

/* All from one buffer: what they cost they cost the receiver. */
static void send_all_synchronous(void)
{
	MPI_Request *reqs = calloc((size_t)count, sizeof(*reqs));
	char buf[LONGEST];
	int i, k, flag;

	fill(buf, 0, LONGEST);
	for (i = 0; i < count; i++) {
		MPI_Issend(buf, LONGEST, MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD, &reqs[i]);
		for (k = 0; k < 200 && i % BATCH == 0; k++) /* what the receiver says is heard */
			MPI_Iprobe(1, TALK, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		if (i % BATCH == 0)
			usleep(3000);
	}
	for (i = 0; i < count; i++)
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
	free(reqs);
}

/* The i-th begins there. */
static const char *queued_data(const char *data, int i)
{
	return data + i % 200 * 8;
}

/* Whose type is gone before it is sent; with gaps; synchronous; and plain ones. */
static void begin_queued(const char *data, int i, MPI_Request *req)
{
	const char *buf = queued_data(data, i);
	MPI_Datatype type;

	if (i % 4 == 0) {
		MPI_Isend(buf, LONGEST, MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD, req);
		return;
	}
	if (i % 4 == 1) {
		MPI_Issend(buf, LONGEST, MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD, req);
		return;
	}
	if (i % 4 == 2)
		MPI_Type_contiguous(LONGEST, MPI_CHAR, &type);
	else
		MPI_Type_vector(LONGEST / 8, 8, 16, MPI_CHAR, &type);
	MPI_Type_commit(&type);
	MPI_Isend(buf, 1, type, 1, FLOOD, MPI_COMM_WORLD, req);
	MPI_Type_free(&type);
}

static void fill_queued(char *data)
{
	fill(data, 0, GAPS + 200 * 8);
}

static void send_all_queued(void)
{
	MPI_Request *reqs = calloc((size_t)count, sizeof(*reqs));
	char data[GAPS + 200 * 8];
	int i;

	fill_queued(data);
	for (i = 0; i < count; i++)
		begin_queued(data, i, &reqs[i]);
	for (i = 0; i < count; i++)
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
	free(reqs);
}

static void check_queued(const char *buf, const char *data, int i)
{
	const char *sent = queued_data(data, i);
	int k;

	for (k = 0; k < LONGEST; k++)
		check(buf[k] == (i % 4 == 3 ? sent[k / 8 * 16 + k % 8] : sent[k]), "another message than was sent");
}

static void receive_queued(int from)
{
	char buf[LONGEST], data[GAPS + 200 * 8];
	MPI_Status status;
	int i, len;

	fill_queued(data);
	for (i = 0; i < count; i++) {
		MPI_Recv(buf, sizeof(buf), MPI_CHAR, from, FLOOD, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_CHAR, &len);
		check(len == LONGEST, "another length than was sent");
		check_queued(buf, data, i);
	}
}

/* Rank 2 asks now and then, rank 1 answers whether it has seen enough: its memory does not grow any more. */
static void talk(int peer)
{
	int i, more = 1, steady = 0;
	long before = 0, now;

	for (i = 0; i < TALKS && more; i++) {
		if (rank == 2) {
			usleep(3000); /* in which the flood comes in */
			MPI_Send(&i, 1, MPI_INT, peer, TALK, MPI_COMM_WORLD);
		}
		MPI_Recv(&more, 1, MPI_INT, peer, TALK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1) {
			now = most_memory();
			steady = now == before ? steady + 1 : 0;
			before = now;
			more = steady < STEADY;
			MPI_Send(&more, 1, MPI_INT, peer, TALK, MPI_COMM_WORLD);
		}
	}
}

static void receive_from(int from, int sync)
{
	char buf[LONGEST], want[LONGEST];
	MPI_Status status;
	int i, len;

	for (i = 0; i < count; i++) {
		MPI_Recv(buf, sizeof(buf), MPI_CHAR, from, FLOOD, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_CHAR, &len);
		fill(want, sync ? 0 : i, sync ? LONGEST : length(i));
		check(len == (sync ? LONGEST : length(i)) && !memcmp(buf, want, (size_t)len),
		      "another message than was sent");
	}
}

static void send_flood(enum how how)
{
	if (how == BY_ISSEND)
		send_all_synchronous();
	else if (how == BY_ISEND)
		send_all_queued();
	else
		send_all();
}

static void flood(enum how how)
{
	long before;
	int from;

	before = most_memory();
	if (rank == 1) {
		if (how != BY_ISSEND) /* else all are on their way before anybody is told to wait */
			usleep(300000);
		talk(2);
		printf("grew by %ld KiB\n", most_memory() - before);
		fflush(stdout);
		for (from = 0; from < size; from++)
			if (from != 1 && from != 2 && how == BY_ISEND)
				receive_queued(from);
			else if (from != 1 && from != 2)
				receive_from(from, how == BY_ISSEND);
	} else if (rank == 2) {
		talk(1);
	} else {
		send_flood(how);
	}
}

/* ---- later --------------------------------------------------------------- */

static MPI_Datatype spread; /* three ints with gaps */

/* The kinds: as flood's, longer, with gaps, synchronous, buffered. */
static void isend(char *buf, int i, MPI_Request *req)
{
	switch (i % 8) {
	case 5:
		fill(buf, i, LONGEST);
		MPI_Isend(buf, LONGEST, MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD, req);
		break;
	case 6:
		fill(buf, i, 24);
		MPI_Isend(buf, 1, spread, 1, FLOOD, MPI_COMM_WORLD, req);
		break;
	case 7:
		fill(buf, i, 16);
		MPI_Issend(buf, 16, MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD, req);
		break;
	default:
		fill(buf, i, length(i));
		MPI_Isend(buf, length(i), MPI_CHAR, 1, FLOOD, MPI_COMM_WORLD, req);
	}
}

/* One that is never received. */
static void send_and_cancel(void)
{
	MPI_Request req;
	MPI_Status status;
	int x = 1, cancelled;

	MPI_Isend(&x, 1, MPI_INT, 1, CANCELLED, MPI_COMM_WORLD, &req);
	MPI_Cancel(&req);
	MPI_Wait(&req, &status);
	MPI_Test_cancelled(&status, &cancelled);
	check(cancelled, "a message that waits cannot be cancelled");
}

static void send_kinds(void)
{
	MPI_Request *reqs = calloc((size_t)count + 1, sizeof(*reqs));
	char *bufs = calloc((size_t)count, LONGEST);
	int i, k, flag, last = 4711;

	for (i = 0; i < count; i++) {
		isend(bufs + (size_t)i * LONGEST, i, &reqs[i]);
		for (k = 0; k < 200 && i % BATCH == 0; k++)
			MPI_Iprobe(1, TALK, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	}
	send_and_cancel();
	MPI_Isend(&last, 1, MPI_INT, 1, LATER, MPI_COMM_WORLD, &reqs[count]);
	for (i = 0; i <= count; i++)
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
	free(bufs);
	free(reqs);
}

static void receive_kind(int i)
{
	char buf[LONGEST], want[LONGEST];
	int len = i % 8 == 5 ? LONGEST : i % 8 == 6 ? 24 : i % 8 == 7 ? 16 : length(i), got;
	MPI_Status status;

	memset(buf, 0, sizeof(buf));
	fill(want, i, len);
	MPI_Recv(buf, i % 8 == 6 ? 1 : LONGEST, i % 8 == 6 ? spread : MPI_CHAR, 0, FLOOD, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_CHAR, &got);
	if (i % 8 != 6)
		check(got == len && !memcmp(buf, want, (size_t)len), "another message than was sent");
	else
		check(!memcmp(buf, want, 4) && !memcmp(buf + 8, want + 8, 4) && !memcmp(buf + 16, want + 16, 4),
		      "another message with gaps than was sent");
}

static void later(void)
{
	int i, x = 0;

	MPI_Type_vector(3, 1, 2, MPI_INT, &spread);
	MPI_Type_commit(&spread);
	if (rank == 0) {
		send_kinds();
	} else if (rank == 1) {
		MPI_Recv(&x, 1, MPI_INT, 0, LATER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(x == 4711, "the later one is wrong");
		for (i = 0; i < count; i++)
			receive_kind(i);
	}
	MPI_Type_free(&spread);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	count = argc > 2 ? atoi(argv[2]) : 0;
	if (argc > 1 && !strcmp(argv[1], "flood"))
		flood(BY_SEND);
	else if (argc > 1 && !strcmp(argv[1], "sync"))
		flood(BY_ISSEND);
	else if (argc > 1 && !strcmp(argv[1], "queued"))
		flood(BY_ISEND);
	else if (argc > 1 && !strcmp(argv[1], "later"))
		later();
	else
		check(0, "unknown case");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		puts("all right");
	MPI_Finalize();
	return 0;
}
