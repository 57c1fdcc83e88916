/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_blocks.c - collectives of a block of each rank, or for each: allgather, alltoall, the same of blocks that differ,
 * reduce_scatter, and reductions to one, of lengths about all limits, in place and not, of types with gaps that differ from rank to rank, blocking
 * and several under way at a time, on all kinds of communicators.
 *
 *     coll_blocks [SEED [ahead]]
 *
 * ahead: those that do not block come before any that does.  What rank 0 prints says how many went through memory that
 * ranks keep for each other, and how many exchanges and scatters the NICs ran at all.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coll.h"
#include "helper.h"

#define UNDER_WAY 6
#define GUARD	  0xee
#define MOST	  18 /* ranks */

enum kind { ALLGATHER, ALLTOALL, ALLGATHERV, ALLTOALLV, SCATTER, SCATTER_COUNTS, SCATTER_UNEQUAL, REDUCE, KINDS };

static const char *const names[KINDS] = {"allgather",
					 "alltoall",
					 "allgatherv",
					 "alltoallv",
					 "reduce_scatter_block",
					 "reduce_scatter",
					 "reduce_scatter of unequal blocks",
					 "reduce"};

/* One of them: blocks of len bytes, or of so many numbers. */
struct one {
	MPI_Comm comm;
	enum kind kind;
	int n, me, root, len;
	unsigned seed;
	bool in_place, is_own; /* the program's own operation, that does not commute */
	int sent, received;    /* bytes of data and gap, for each byte of data */
	unsigned char *from, *to;
	int *counts;
	int scounts[MOST], sdispls[MOST], rcounts[MOST], rdispls[MOST], all; /* of those that differ; bytes and gaps */
	MPI_Datatype stype, rtype;
	MPI_Op op;
	MPI_Request req;
};

static void wrong(const struct one *one, int at)
{
	printf("%s of %d bytes each, %d ranks, seed %u: rank %d has something wrong at %d\n", names[one->kind],
	       one->len, one->n, one->seed, one->me, at);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static bool is_numbers(const struct one *one)
{
	return one->kind >= SCATTER;
}

static int count_of(const struct one *one, int rank)
{
	return one->kind == SCATTER_UNEQUAL ? one->len / 4 + rank % 3 : one->len / 4;
}

/* Numbers of all blocks before that rank's. */
static int first_of(const struct one *one, int rank)
{
	int i, sum = 0;

	for (i = 0; i < rank && one->kind != REDUCE; i++)
		sum += count_of(one, i);
	return sum;
}

static int all_of(const struct one *one)
{
	return one->kind == REDUCE ? count_of(one, 0) : first_of(one, one->n);
}

static unsigned number_of(const struct one *one, int rank, int i)
{
	return mix(one->seed + (unsigned)i, (unsigned)rank) | 1 << 16;
}

/* Of a rank's block for another, or all. */
static unsigned char data_of(const struct one *one, int from, int to, int i)
{
	return byte_of(one->seed * 31 + (one->kind == ALLTOALL || one->kind == ALLTOALLV ? (unsigned)to * 1009 : 0),
		       from, i);
}

/* ---- bytes ------------------------------------------------------------------------- */

static void make_bytes(struct one *one)
{
	int blocks = one->kind == ALLTOALL ? one->n : 1, k, i, at, step;
	size_t most = (size_t)one->len * 2 * (size_t)one->n + 1;

	one->sent = (int)(mix(one->seed, (unsigned)one->me + 7) & 1) + 1;
	one->received = (int)(mix(one->seed, (unsigned)one->me + 70) & 1) + 1;
	one->from = memset(malloc(most), GUARD, most);
	one->to = memset(malloc(most), GUARD, most);
	for (k = 0; k < blocks; k++)
		for (i = 0; i < one->len; i++) {
			step = one->in_place ? one->received : one->sent;
			at = (one->in_place && one->kind == ALLGATHER ? one->me : k) * one->len + i;
			(one->in_place ? one->to : one->from)[at * step] = data_of(one, one->me, k, i);
		}
	one->stype = part_of(one->len, one->sent);
	one->rtype = part_of(one->len, one->received);
}

static void check_bytes(const struct one *one)
{
	int i, all = one->len * one->n;

	for (i = 0; i < all; i++) {
		if (one->to[i * one->received] != data_of(one, i / one->len, one->me, i % one->len))
			wrong(one, i);
		if (one->received == 2 && one->to[i * 2 + 1] != GUARD)
			wrong(one, i);
	}
	if (one->to[all * one->received] != GUARD)
		wrong(one, all);
}

static void begin_bytes(struct one *one, bool blocks)
{
	const void *from = one->in_place ? MPI_IN_PLACE : one->from;
	MPI_Datatype stype = one->sent == 1 ? MPI_BYTE : one->stype, rtype = one->received == 1 ? MPI_BYTE : one->rtype;
	int scount = one->sent == 1 ? one->len : 1, rcount = one->received == 1 ? one->len : 1;

	if (one->kind == ALLGATHER && blocks)
		MPI_Allgather(from, scount, stype, one->to, rcount, rtype, one->comm);
	else if (one->kind == ALLGATHER)
		MPI_Iallgather(from, scount, stype, one->to, rcount, rtype, one->comm, &one->req);
	else if (blocks)
		MPI_Alltoall(from, scount, stype, one->to, rcount, rtype, one->comm);
	else
		MPI_Ialltoall(from, scount, stype, one->to, rcount, rtype, one->comm, &one->req);
}

/* ---- bytes, of blocks that differ ---------------------------------------------------- */

/* 0 to len; in place as many there and back. */
static int len_between(const struct one *one, int from, int to)
{
	int low = from < to ? from : to, high = from < to ? to : from;
	unsigned x;

	if (one->kind == ALLGATHERV)
		x = mix(one->seed + 5, (unsigned)from);
	else
		x = mix(one->seed + 5 + (unsigned)(one->in_place ? low : from) * 64,
			(unsigned)(one->in_place ? high : to));
	return x % 8 == 0 ? 0 : x % 8 == 1 ? one->len : (int)(x >> 4) % (one->len + 1);
}

/* A byte between them. */
static void lay_out(struct one *one)
{
	int i, sent = 0;

	for (i = 0; i < one->n; i++) {
		one->scounts[i] = len_between(one, one->me, i);
		one->rcounts[i] = len_between(one, i, one->me);
		one->sdispls[i] = sent + i;
		one->rdispls[i] = one->all + i;
		sent += one->scounts[i];
		one->all += one->rcounts[i];
	}
}

static void make_any(struct one *one)
{
	size_t most = ((size_t)one->len + 1) * 2 * (size_t)one->n + 1;
	int first = 0, last = one->n - 1, k, i, at;

	one->sent = (int)(mix(one->seed, (unsigned)one->me + 7) & 1) + 1;
	/* of a gather everywhere the same: MPICH's ring divides blocks by the extent, and loses count if that differs */
	one->received = (int)(mix(one->seed, one->kind == ALLGATHERV ? 70 : (unsigned)one->me + 70) & 1) + 1;
	lay_out(one);
	one->from = memset(malloc(most), GUARD, most);
	one->to = memset(malloc(most), GUARD, most);
	if (one->kind == ALLGATHERV)
		first = last = one->me;
	for (k = first; k <= last; k++)
		for (i = 0; i < one->scounts[k]; i++) {
			at = (one->kind == ALLTOALLV ? one->sdispls[k] : 0) + i;
			if (one->in_place)
				one->to[(one->rdispls[k] + i) * one->received] = data_of(one, one->me, k, i);
			else
				one->from[at * one->sent] = data_of(one, one->me, k, i);
		}
	one->stype = part_of(1, one->sent);
	one->rtype = part_of(1, one->received);
}

static void check_any(const struct one *one)
{
	int k, i, at = 0;

	for (k = 0; k < one->n; k++, at++) {
		for (i = 0; i < one->rcounts[k]; i++, at++)
			if (one->to[at * one->received] != data_of(one, k, one->me, i) ||
			    (one->received == 2 && one->to[at * 2 + 1] != GUARD))
				wrong(one, at);
		if (one->to[at * one->received] != GUARD)
			wrong(one, at);
	}
}

static void begin_any(struct one *one, bool blocks)
{
	const void *from = one->in_place ? MPI_IN_PLACE : one->from;
	int own = one->scounts[one->me];

	if (one->kind == ALLGATHERV && blocks)
		MPI_Allgatherv(from, own, one->stype, one->to, one->rcounts, one->rdispls, one->rtype, one->comm);
	else if (one->kind == ALLGATHERV)
		MPI_Iallgatherv(from, own, one->stype, one->to, one->rcounts, one->rdispls, one->rtype, one->comm,
				&one->req);
	else if (blocks)
		MPI_Alltoallv(from, one->scounts, one->sdispls, one->stype, one->to, one->rcounts, one->rdispls,
			      one->rtype, one->comm);
	else
		MPI_Ialltoallv(from, one->scounts, one->sdispls, one->stype, one->to, one->rcounts, one->rdispls,
			       one->rtype, one->comm, &one->req);
}

/* ---- numbers ------------------------------------------------------------------------ */

static void make_numbers(struct one *one)
{
	int all = all_of(one), i;
	size_t size = (size_t)all * 4 + 1;
	unsigned *numbers;

	one->from = memset(malloc(size), GUARD, size);
	one->to = memset(malloc(size), GUARD, size);
	numbers = (unsigned *)(one->in_place ? one->to : one->from);
	for (i = 0; i < all; i++)
		numbers[i] = number_of(one, one->me, i);
	one->counts = malloc((size_t)one->n * sizeof(*one->counts));
	for (i = 0; i < one->n; i++)
		one->counts[i] = count_of(one, i);
	one->op = MPI_SUM;
	if (one->is_own)
		MPI_Op_create(compose, 0, &one->op);
}

static void begin_numbers(struct one *one, bool blocks)
{
	const void *from = one->in_place ? MPI_IN_PLACE : one->from;
	int count = count_of(one, 0);
	MPI_Comm comm = one->comm;

	if (one->kind == SCATTER && blocks)
		MPI_Reduce_scatter_block(from, one->to, count, MPI_UNSIGNED, one->op, comm);
	else if (one->kind == SCATTER)
		MPI_Ireduce_scatter_block(from, one->to, count, MPI_UNSIGNED, one->op, comm, &one->req);
	else if (one->kind == REDUCE && blocks)
		MPI_Reduce(one->me == one->root ? from : one->from, one->to, count, MPI_UNSIGNED, one->op, one->root,
			   comm);
	else if (one->kind == REDUCE)
		MPI_Ireduce(one->me == one->root ? from : one->from, one->to, count, MPI_UNSIGNED, one->op, one->root,
			    comm, &one->req);
	else if (blocks)
		MPI_Reduce_scatter(from, one->to, one->counts, MPI_UNSIGNED, one->op, comm);
	else
		MPI_Ireduce_scatter(from, one->to, one->counts, MPI_UNSIGNED, one->op, comm, &one->req);
	if (one->is_own)
		MPI_Op_free(&one->op); /* it outlives that */
}

static unsigned sum_of(const struct one *one, int i)
{
	unsigned sum = number_of(one, one->n - 1, i), left;
	MPI_Datatype type = MPI_UNSIGNED;
	int k, single = 1;

	for (k = one->n - 2; k >= 0; k--) {
		left = number_of(one, k, i);
		if (one->is_own)
			compose(&left, &sum, &single, &type);
		else
			sum += left;
	}
	return sum;
}

static void check_numbers(const struct one *one)
{
	int i, first = one->kind == REDUCE ? 0 : first_of(one, one->me);
	bool wanted = one->kind != REDUCE || one->me == one->root;
	unsigned got;

	for (i = 0; i < count_of(one, one->me) && wanted; i++) {
		memcpy(&got, one->to + (size_t)i * 4, sizeof(got));
		if (got != sum_of(one, first + i))
			wrong(one, i);
	}
	for (i = 0; i < all_of(one) * 4 && !wanted && !one->in_place; i++)
		if (one->to[i] != GUARD) /* nobody else's buffer is touched */
			wrong(one, i);
	if (one->to[(size_t)all_of(one) * 4] != GUARD)
		wrong(one, -1);
}

/* ---- one of each, many at a time --------------------------------------------------- */

static void begin(struct one *one, MPI_Comm comm, enum kind kind, int len, unsigned seed, bool blocks)
{
	memset(one, 0, sizeof(*one));
	one->comm = comm;
	one->kind = kind;
	one->len = len;
	one->seed = seed;
	one->in_place = seed >> 1 & 1;
	one->is_own = seed >> 2 & 1;
	one->stype = one->rtype = MPI_DATATYPE_NULL;
	one->req = MPI_REQUEST_NULL;
	MPI_Comm_size(comm, &one->n);
	MPI_Comm_rank(comm, &one->me);
	one->root = (int)(seed % (unsigned)one->n);
	if (kind == REDUCE && one->me != one->root)
		one->in_place = false;
	if (is_numbers(one)) {
		make_numbers(one);
		begin_numbers(one, blocks);
		return;
	}
	if (kind == ALLGATHERV || kind == ALLTOALLV) {
		make_any(one);
		begin_any(one, blocks);
	} else {
		make_bytes(one);
		begin_bytes(one, blocks);
	}
	MPI_Type_free(&one->stype); /* the operation keeps them */
	MPI_Type_free(&one->rtype);
}

static void end(struct one *one)
{
	MPI_Wait(&one->req, MPI_STATUS_IGNORE);
	if (is_numbers(one))
		check_numbers(one);
	else if (one->kind == ALLGATHERV || one->kind == ALLTOALLV)
		check_any(one);
	else
		check_bytes(one);
	free(one->from);
	free(one->to);
	free(one->counts);
}

/* About what a packet, a part, the longest block of two ranks, and a stage hold. */
static const int lens[] = {4, 16, 28, 112, 116, 252, 256, 2048, 2052, 4096, 8192, 16384, 16388, 32768, 32772, 65536};

#define LENS ((int)(sizeof(lens) / sizeof(lens[0])))

/* Per rank; so that it is about the limits of what all have. */
static int len_of(MPI_Comm comm, int i)
{
	int n, len;

	MPI_Comm_size(comm, &n);
	len = lens[i % LENS] / (i / LENS % 2 ? n : 1) / 4 * 4;
	return len < 4 ? 4 : len;
}

static void one_by_one(MPI_Comm comm, unsigned seed)
{
	struct one one;
	int kind, i;

	for (i = 0; i < 2 * LENS; i++)
		for (kind = 0; kind < KINDS; kind++) {
			begin(&one, comm, (enum kind)kind, len_of(comm, i), seed++, true);
			end(&one);
			begin(&one, comm, (enum kind)kind, len_of(comm, i), seed++, false);
			end(&one);
		}
}

/* Of random kinds, of two communicators, ended in another order. */
static void storm(MPI_Comm a, MPI_Comm b, unsigned seed, int rounds)
{
	struct one one[UNDER_WAY];
	int round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < UNDER_WAY; i++) {
			unsigned x = mix(seed + (unsigned)round, (unsigned)i);
			MPI_Comm comm = x & 1 ? a : b;

			begin(&one[i], comm, (enum kind)(x % 7919 % KINDS), len_of(comm, (int)(x >> 8 & 0xff)), x >> 4,
			      false);
		}
		for (i = UNDER_WAY - 1; i >= 0; i--)
			end(&one[i]);
	}
}

/* Of one rank with all others: the lengths that each group has are as many as its own ranks, and nothing is behind them. */
static void between_groups(int rank, int n)
{
	int page = (int)sysconf(_SC_PAGESIZE), mine = rank ? 1 : n - 1, own = rank ? n - 1 : 1, i;
	char *room = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MPI_Count *counts = (MPI_Count *)(void *)(room + page) - own; /* MPICH copies others */
	int *from, *to;
	MPI_Comm group, inter;

	if (n < 3)
		return;
	check(room != MAP_FAILED && mprotect(room + page, (size_t)page, PROT_NONE) == 0, "no page");
	from = malloc((size_t)n * sizeof(*from));
	to = malloc((size_t)n * sizeof(*to));
	for (i = 0; i < own; i++)
		counts[i] = mine;
	for (i = 0; i < n - 1; i++)
		from[i] = rank * 100 + i;
	MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &group);
	MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank ? 0 : 1, 3, &inter);
	MPI_Reduce_scatter_c(from, to, counts, MPI_INT, MPI_SUM, inter);
	for (i = 0; i < mine; i++)
		check(to[i] == (rank ? rank - 1 : 100 * (n - 1) * n / 2 + (n - 1) * i), "between groups it is wrong");
	MPI_Comm_free(&inter);
	MPI_Comm_free(&group);
	munmap(room, (size_t)page * 2);
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 1;
	bool ahead = argc > 2 && strcmp(argv[2], "ahead") == 0;
	MPI_Comm dup, back, half;
	int rank, n, provided;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &back);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	if (ahead)
		storm(dup, half, seed + 3000, 12);
	one_by_one(MPI_COMM_WORLD, seed);
	one_by_one(back, seed + 1000);
	one_by_one(half, seed + 2000);
	storm(MPI_COMM_WORLD, dup, seed + 4000, 20);
	storm(half, back, seed + 5000, 20);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	between_groups(rank, n);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&back);
	MPI_Comm_free(&half);
	if (rank == 0)
		printf("staged %llu, exchanges %llu, of any %llu, scatters %llu\nok\n", counted("glex_coll_staged"),
		       counted("glex_coll_exchanges"), counted("glex_coll_exchanges_any"),
		       counted("glex_coll_scatters"));
	MPI_Finalize();
	MPI_T_finalize();
	return 0;
}
