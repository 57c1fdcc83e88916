/* SPDX-License-Identifier: BSD-2-Clause */
/* coll.h - what the programs that check collectives share. */
#ifndef GLEX_TEST_MPI_COLL_H
#define GLEX_TEST_MPI_COLL_H

#include <mpi.h>

static inline unsigned mix(unsigned a, unsigned b)
{
	unsigned long long x = (a * 0x9e3779b97f4a7c15ull) ^ (b * 0xc2b2ae3d27d4eb4full);

	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
	return (unsigned)(x >> 32);
}

/* Of x -> a x + b, modulo 2^16, one after the other, which does not commute: a above, b below. */
static inline void compose(void *left, void *right, int *len, MPI_Datatype *type)
{
	unsigned *first = left, *then = right;
	int i;

	for (i = 0; *type == MPI_UNSIGNED && i < *len; i++) {
		unsigned a = then[i] >> 16, b = then[i] & 0xffff;

		then[i] = (a * (first[i] >> 16)) << 16 | ((a * (first[i] & 0xffff) + b) & 0xffff);
	}
}

/* Its bytes with gaps between them, if step is 2. */
static inline MPI_Datatype part_of(int len, int step)
{
	MPI_Datatype vector, type;

	MPI_Type_vector(len, 1, step, MPI_BYTE, &vector);
	MPI_Type_create_resized(vector, 0, len * step, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&vector);
	return type;
}

static inline unsigned char byte_of(unsigned seed, int rank, int i)
{
	return (unsigned char)mix(seed + (unsigned)rank, (unsigned)i);
}

#endif /* GLEX_TEST_MPI_COLL_H */
