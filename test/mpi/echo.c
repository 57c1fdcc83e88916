/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo.c - messages of 20,000 bytes to 3 MB that go back out of the buffer they came into, in all the ways in which
 * they can be received: what comes is what was sent.  2 ranks.  echo.c N [ROUNDS]: at least N were put by their senders.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#define ROUNDS 24 /* of them */
#define MOST   3000000
#define EAGER  60000 /* no sender of less waits for the receive */
#define TAG    5

static int rank, other;

static unsigned char byte_at(int i, int serial)
{
	return (unsigned char)(i * 7 + i / 251 + serial * 31);
}

static void fill(unsigned char *buf, int len, int serial)
{
	for (int i = 0; i < len; i++)
		buf[i] = byte_at(i, serial);
}

static void compare(const unsigned char *buf, int len, int serial, const char *what)
{
	for (int i = 0; i < len; i++)
		check(buf[i] == byte_at(i, serial), what);
}

static void send_it(const unsigned char *buf, int len)
{
	MPI_Send(buf, len, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

static void send_soon(const unsigned char *buf, int len)
{
	MPI_Request req;

	MPI_Isend(buf, len, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void send_synchronously(const unsigned char *buf, int len)
{
	MPI_Ssend(buf, len, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

typedef void (*send_fn)(const unsigned char *buf, int len);

/* To rank 1, which makes others of the bytes, and back. */
static void there_and_back(unsigned char *buf, int len, send_fn send)
{
	for (int serial = 1; serial < 6; serial += 2) {
		if (rank == 0) {
			fill(buf, len, serial);
			send(buf, len);
		}
		MPI_Recv(buf, len, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		compare(buf, len, serial + (rank == 0), "wrong bytes of an echo");
		if (rank == 1) {
			fill(buf, len, serial + 1);
			send(buf, len);
		}
	}
}

/* To rank 1 and back, where rank 0 gets it as receive wants. */
static void back_to(unsigned char *buf, int len, void (*receive)(unsigned char *buf, int len))
{
	there_and_back(buf, len, send_it);
	if (rank == 1) {
		MPI_Recv(buf, len, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		fill(buf, len, 9);
		send_it(buf, len);
		return;
	}
	fill(buf, len, 8);
	send_it(buf, len);
	receive(buf, len);
}

static void with_room(unsigned char *buf, int len)
{
	MPI_Status status;
	int count;

	buf[len] = 99;
	MPI_Recv(buf, MOST, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &count);
	check(count == len && buf[len] == 99, "an echo has another length than it was sent with");
	compare(buf, len, 9, "wrong bytes of an echo with more room");
}

static void with_less(unsigned char *buf, int len)
{
	int class = 0, room = len / 3;

	buf[room] = 99;
	MPI_Error_class(MPI_Recv(buf, room, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
	check(class == MPI_ERR_TRUNCATE && buf[room] == 99, "an echo too long is no error, or overran its buffer");
	compare(buf, room, 9, "wrong bytes of an echo that was too long");
}

/* Every third int. */
static void scattered(unsigned char *buf, int len)
{
	int n = len / 4, spread_len = 12 * n + len % 4;
	unsigned char *spread = malloc((size_t)spread_len);
	const int lengths[2] = {1, len % 4};
	MPI_Aint places[2] = {0, 12 * (MPI_Aint)n};
	MPI_Datatype third, types[2], all;

	(void)buf;
	MPI_Type_vector(n, 1, 3, MPI_INT, &third);
	types[0] = third;
	types[1] = MPI_BYTE;
	MPI_Type_create_struct(2, lengths, places, types, &all);
	MPI_Type_commit(&all);
	MPI_Recv(spread, 1, all, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < len; i++)
		check(spread[i < 4 * n ? 12 * (i / 4) + i % 4 : 12 * n + i - 4 * n] == byte_at(i, 9),
		      "wrong bytes of a scattered echo");
	MPI_Type_free(&third);
	MPI_Type_free(&all);
	free(spread);
}

/* Memory that was never used for this. */
static void elsewhere(unsigned char *buf, int len)
{
	unsigned char *in = malloc((size_t)len);

	(void)buf;
	MPI_Recv(in, len, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	compare(in, len, 9, "wrong bytes of an echo elsewhere");
	free(in);
}

static void probed(unsigned char *buf, int len)
{
	MPI_Message handle;

	MPI_Mprobe(other, TAG, MPI_COMM_WORLD, &handle, MPI_STATUS_IGNORE);
	MPI_Mrecv(buf, len, MPI_BYTE, &handle, MPI_STATUS_IGNORE);
	compare(buf, len, 9, "wrong bytes of a probed echo");
}

static void asked_for_early(unsigned char *buf, int len)
{
	MPI_Request req;
	int there = 0;

	MPI_Irecv(buf, len, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &req);
	while (!there)
		MPI_Test(&req, &there, MPI_STATUS_IGNORE);
	compare(buf, len, 9, "wrong bytes of an echo that is tested for");
}

/* Both send what they have received, and then receive: what is short enough waits for no receive. */
static void head_on(unsigned char *buf, int len)
{
	unsigned char *in = malloc((size_t)len);

	there_and_back(buf, len, send_it);
	fill(buf, len, 20 + rank);
	send_it(buf, len);
	MPI_Recv(in, len, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	compare(in, len, 20 + other, "wrong bytes of echoes that meet");
	free(in);
}

/* Several of which each is put, or not, behind shorter ones. */
static void in_a_row(unsigned char *buf, int len)
{
	int parts = 4, part = len / parts;
	char brief[3];

	there_and_back(buf, len, send_it);
	for (int i = 0; i < parts; i++) {
		if (rank == 0) {
			MPI_Recv(brief, 3, MPI_BYTE, other, TAG + 1 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(buf + i * part, part, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			compare(buf + i * part, part, 30 + i, "wrong bytes of one of several echoes");
		} else {
			fill(buf + i * part, part, 30 + i);
			MPI_Send("ab", 3, MPI_BYTE, other, TAG + 1 + i, MPI_COMM_WORLD);
			send_it(buf + i * part, part);
		}
	}
}

static void all_ways(unsigned char *buf, int len)
{
	static void (*const receive[])(unsigned char *buf, int len) = {with_room, with_less, scattered,
								       elsewhere, probed,    asked_for_early};

	there_and_back(buf, len, send_it);
	there_and_back(buf, len, send_soon);
	there_and_back(buf, len, send_synchronously);
	for (size_t i = 0; i < sizeof(receive) / sizeof(receive[0]); i++)
		back_to(buf, len, receive[i]);
	if (len < EAGER)
		head_on(buf, len);
	in_a_row(buf, len);
}

int main(int argc, char **argv)
{
	static const int lens[] = {20000, 33333, 40004, 65505, 100000, 300001, 1000000, MOST - 1};
	unsigned char *buf = malloc(MOST);
	unsigned long long put, all = 0;
	int provided, rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	other = 1 - rank;
	memset(buf, 0, MOST);
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
			if (round % 8 == 0 || lens[i] < 400000)
				all_ways(buf, lens[i]);
		if (round % 8 == 7) { /* it comes again, perhaps elsewhere */
			free(buf);
			buf = malloc(MOST);
			memset(buf, 0, MOST);
		}
	}
	put = counted("glex_puts");
	MPI_Allreduce(&put, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
	check(argc < 2 || all >= (unsigned long long)atoi(argv[1]), "hardly any message was put by its sender");
	if (rank == 0)
		printf("put %llu\nok\n", all);
	free(buf);
	MPI_T_finalize();
	MPI_Finalize();
	return 0;
}
