/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * come_and_go.c - messages from and to buffers that are mapped, used, unmapped
 * and mapped again in the same place, of many lengths.  Prints "ok".
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 60
#define PAGE   4096u
/* Where nobody else's mappings come to lie in between. */
#define OUT ((void *)0x200000000000)
#define IN  ((void *)0x200040000000)

static unsigned char *map_at(void *where, size_t len)
{
	unsigned char *base =
		mmap(where, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (base != where)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return base;
}

static unsigned char byte_of(int rank, int round, size_t at)
{
	return (unsigned char)(rank * 31 + round * 7 + (int)(at / PAGE) + (int)(at % 251));
}

static void check(const unsigned char *buf, size_t len, int rank, int round)
{
	for (size_t at = 0; at < len; at++)
		if (buf[at] != byte_of(rank, round, at)) {
			fprintf(stderr, "round %d, from rank %d: byte %zu of %zu is %d, not %d\n", round, rank, at, len,
				buf[at], byte_of(rank, round, at));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

int main(int argc, char **argv)
{
	static const size_t lens[] = {200000, 3u << 20, 70000, 1u << 20};
	unsigned char *out, *in, *heap;
	int rank, size, to, from;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	to = (rank + 1) % size;
	from = (rank + size - 1) % size;
	for (int round = 0; round < ROUNDS; round++) {
		size_t len = lens[round / 15];

		out = map_at(OUT, len);
		in = map_at(IN, len);
		for (int use = 0; use < 4; use++) {
			for (size_t at = 0; at < len; at++)
				out[at] = byte_of(rank, round + use, at);
			MPI_Sendrecv(out, (int)len, MPI_BYTE, to, 1, in, (int)len, MPI_BYTE, from, 1, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
			check(in, len, from, round + use);
		}
		if (round % 3 == 2) /* only its contents go */
			madvise(in, len, MADV_DONTNEED);
		munmap(out, len);
		munmap(in, len);
		heap = malloc(len);
		if (!heap)
			MPI_Abort(MPI_COMM_WORLD, 2);
		for (size_t at = 0; at < len; at++)
			heap[at] = byte_of(rank, round, at);
		MPI_Bcast(heap, (int)len, MPI_BYTE, round % size, MPI_COMM_WORLD);
		check(heap, len, round % size, round);
		free(heap);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		puts("ok");
	MPI_Finalize();
	return 0;
}
