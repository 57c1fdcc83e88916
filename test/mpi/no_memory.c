/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no_memory.c - a receive for which some allocation fails: it ends at both sides, with the data or with
 * an error of the receiver, and all goes on.  2 ranks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "helper.h"

#define LEN	(1 << 20)
#define FIRST	1 /* the first of all, of what the sender has said, ends the call */
#define LAST	16
#define LAYOUTS 4 /* bit 0: the sender's data is not contiguous; bit 1: the receiver's */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);

static int countdown = -1; /* allocations of MPI until one fails; less than 0: none will */
static int failures;

static int fails(const void *caller)
{
	Dl_info info;

	if (countdown < 0 || !dladdr(caller, &info) || !strstr(info.dli_fname, "libmpi") || countdown--)
		return 0;
	failures++;
	return 1;
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

static int right(const char *buf, int strided, char want)
{
	for (int i = 0; i < LEN; i++)
		if (buf[strided ? i / 1024 * 2048 + i % 1024 : i] != want)
			return 0;
	return 1;
}

int main(int argc, char **argv)
{
	int rank, error, class, errors = 0;
	char *buf = malloc(2 * LEN);
	MPI_Datatype type;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_vector(LEN / 1024, 1024, 2048, MPI_CHAR, &type);
	MPI_Type_commit(&type);
	for (int layout = 0; layout < LAYOUTS; layout++) {
		for (int n = FIRST; n <= LAST; n++) {
			int strided = layout >> rank & 1;
			char mark = (char)(n + 16 * layout);

			memset(buf, rank ? 0 : mark, 2 * LEN);
			if (rank == 0) {
				error = MPI_Send(buf, strided ? 1 : LEN, strided ? type : MPI_CHAR, 1, n,
						 MPI_COMM_WORLD);
				check(error == MPI_SUCCESS, "a send failed");
				continue;
			}
			MPI_Probe(0, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			failures = 0;
			countdown = n;
			error = MPI_Recv(buf, strided ? 1 : LEN, strided ? type : MPI_CHAR, 0, n, MPI_COMM_WORLD,
					 MPI_STATUS_IGNORE);
			countdown = -1;
			errors += error != MPI_SUCCESS;
			MPI_Error_class(error, &class);
			check(error == MPI_SUCCESS || (failures && (class == MPI_ERR_OTHER || class == MPI_ERR_NO_MEM)),
			      "an error of another kind");
			check(error != MPI_SUCCESS || right(buf, strided, mark), "wrong data");
		}
	}
	check(!rank || errors >= LAYOUTS, "nothing failed");
	MPI_Type_free(&type);
	MPI_Finalize();
	if (rank == 1)
		puts("ok");
	return 0;
}
