/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_row.c - short broadcasts from the same root, one behind the other, and reductions and gathers to it: so many of
 * them are run by the NICs, and then MPICH does them, until there is something else; each brings its result either way.
 *
 *   coll_row LIMIT|tree    as GLEX_MPI_COLL_ROW says; 0: all are by the NICs; on a tree, too, which gathers nothing
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "helper.h"

enum { LONG = 40000, MORE = 7, LONGEST = 100, MANY = 300, RANKS = 32, WIDE = 14 };

static int rank, size, limit;
static int made; /* broadcasts, of all communicators */

static int most(int calls)
{
	return limit && limit < calls ? limit : calls;
}

/* Other data each time. */
static void fill(unsigned char *data, int len, int root, int call)
{
	int i;

	for (i = 0; i < len; i++)
		data[i] = rank == root ? byte_of((unsigned)call, root, i) : 0;
}

static void look(const unsigned char *data, int len, int root, int call)
{
	int i;

	for (i = 0; i < len; i++)
		check(data[i] == byte_of((unsigned)call, root, i), "a broadcast's data");
}

static void once(MPI_Comm comm, int len, int root)
{
	static unsigned char data[LONG];

	fill(data, len, root, ++made);
	MPI_Bcast(data, len, MPI_BYTE, root, comm);
	look(data, len, root, made);
}

static void some(MPI_Comm comm, int calls, int root)
{
	int i;

	for (i = 0; i < calls; i++)
		once(comm, 1 + (int)(mix((unsigned)i, (unsigned)made) % LONGEST), root);
}

/* All under way at a time. */
static void some_at_once(MPI_Comm comm, int calls, int root)
{
	static unsigned char data[MANY][LONGEST];
	static MPI_Request req[MANY];
	static MPI_Status status[MANY];
	int i;

	for (i = 0; i < calls; i++) {
		fill(data[i], LONGEST, root, made + i);
		MPI_Ibcast(data[i], LONGEST, MPI_BYTE, root, comm, &req[i]);
	}
	MPI_Waitall(calls, req, status);
	for (i = 0; i < calls; i++)
		look(data[i], LONGEST, root, made + i);
	made += calls;
}

/* Of so many numbers each, all to a root. */
static void sum_up(int calls, int len, int root)
{
	double data[WIDE], sum[WIDE] = {0};
	int i, k;

	for (i = 0; i < calls; i++) {
		for (k = 0; k < len; k++)
			data[k] = i * len + k + rank;
		MPI_Reduce(data, sum, len, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
		for (k = 0; k < len && rank == root; k++)
			check(sum[k] == (double)size * (i * len + k) + size * (size - 1) / 2, "a reduction's result");
	}
}

static void collect(int calls, int len, int root)
{
	double data[WIDE], all[RANKS * WIDE] = {0};
	int i, k;

	for (i = 0; i < calls; i++) {
		for (k = 0; k < len; k++)
			data[k] = i * len + k + 1000 * rank;
		MPI_Gather(data, len, MPI_DOUBLE, all, len, MPI_DOUBLE, root, MPI_COMM_WORLD);
		for (k = 0; k < len * size && rank == root; k++)
			check(all[k] == i * len + k % len + 1000 * (k / len), "what was gathered");
	}
}

/* So many have been run by the NICs since it was at *before. */
static void expect_of(const char *name, unsigned long long *before_p, int calls, const char *what)
{
	unsigned long long before = *before_p, now = counted(name);

	if (now - before != (unsigned long long)calls)
		printf("rank %d: the NICs have run %llu, not %d\n", rank, now - before, calls);
	check(now - before == (unsigned long long)calls, what);
	*before_p = now;
}

static void expect(int calls, const char *what)
{
	static unsigned long long before;

	expect_of("glex_coll_bcasts", &before, calls, what);
}

/* To one, of some numbers: as README.md says which have room. */
static void rows_to_one(int calls, int len, int root)
{
	int limited = size > 16 || (size > 8 && len > 3) || (size > 4 && len > 7);
	unsigned long long sums = counted("glex_coll_reductions"), parts = counted("glex_coll_gathers");

	sum_up(calls, len, root);
	expect_of("glex_coll_reductions", &sums, limited ? most(calls) : calls, "reductions to one");
	sum_up(calls, len, (root + 1) % size);
	expect_of("glex_coll_reductions", &sums, limited ? most(calls) : calls, "to another one");
	collect(calls, len, root);
	if (size <= 16)
		expect_of("glex_coll_gathers", &parts, limited ? most(calls) : calls, "gathers");
	once(MPI_COMM_WORLD, 8, root);
	sum_up(MORE, len, root);
	expect_of("glex_coll_reductions", &sums, limited ? most(MORE) : MORE, "behind a broadcast");
}

int main(int argc, char **argv)
{
	bool on_tree = argc > 1 && !strcmp(argv[1], "tree");
	static const int lens[] = {1, 3, 7, WIDE};
	int provided, root, calls, sum;
	MPI_Comm dup;

	limit = argc > 1 && !on_tree ? atoi(argv[1]) : 0;
	calls = limit ? 2 * limit + MORE : MANY / 2;
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	check(limit >= 0 && calls <= MANY && size <= RANKS, "a limit");
	root = size - 1;
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(dup);
	MPI_Barrier(dup);
	expect(0, "none yet");
	some(MPI_COMM_WORLD, calls, root);
	expect(most(calls), "in a row");
	some(MPI_COMM_WORLD, calls, 0);
	expect(most(calls), "from another root");
	MPI_Barrier(MPI_COMM_WORLD);
	some(MPI_COMM_WORLD, MORE, 0);
	expect(most(MORE), "behind a barrier");
	MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	some_at_once(MPI_COMM_WORLD, calls, 0);
	expect(most(calls), "that do not block");
	for (int i = 0; i < calls; i++)
		some(MPI_COMM_WORLD, 1, (i + 1) % size);
	expect(calls, "from roots in turn");
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < calls; i++) {
		some(MPI_COMM_WORLD, 1, root);
		some(dup, 1, root);
	}
	expect(2 * most(calls), "on two communicators");
	once(MPI_COMM_WORLD, LONG, root);
	expect(1, "a long one");
	some(MPI_COMM_WORLD, calls, root);
	expect(most(calls), "behind a long one");
	MPI_Comm_free(&dup);
	for (int i = 0; i < 4 && !on_tree; i++)
		rows_to_one(calls, lens[i], i % 2 ? root : 0);
	if (rank == 0)
		puts("ok");
	MPI_Finalize();
	MPI_T_finalize();
	return 0;
}
