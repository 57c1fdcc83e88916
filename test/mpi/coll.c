/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.c - barriers, broadcasts, reductions and gathers of MPI on all kinds of communicators:
 * every operation with every type it is allowed for, and one of the program's own, every root, lengths about the
 * limits of a packet, types with gaps, in place, several under way at a time, and
 * communicators that are freed meanwhile.
 *
 *     coll [SEED [ROUNDS]]
 *
 * What they must come to each rank computes for itself, by MPI_Reduce_local.  "nic"
 * in what rank 0 prints says how many the NICs ran.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "helper.h"

#define MOST	  40 /* elements */
#define LONGEST	  70000
#define ELEMENT	  16 /* bytes of the largest type */
#define UNDER_WAY 12

static const struct {
	MPI_Datatype type;
	const char *name;
	char class; /* i integer, f floating, b byte, l logical, p pair */
	int size;   /* of a number, or of a pair's value */
} types[] = {
	{MPI_INT, "int", 'i', 4},
	{MPI_DOUBLE, "double", 'f', 8},
	{MPI_FLOAT, "float", 'f', 4},
	{MPI_LONG, "long", 'i', 8},
	{MPI_UNSIGNED, "unsigned", 'i', 4},
	{MPI_UNSIGNED_LONG_LONG, "unsigned long long", 'i', 8},
	{MPI_SHORT, "short", 'i', 2},
	{MPI_UNSIGNED_SHORT, "unsigned short", 'i', 2},
	{MPI_SIGNED_CHAR, "signed char", 'i', 1},
	{MPI_UINT8_T, "uint8", 'i', 1},
	{MPI_CHAR, "char", 'i', 1},
	{MPI_BYTE, "byte", 'b', 1},
	{MPI_C_BOOL, "bool", 'l', 1},
	{MPI_LONG_DOUBLE, "long double", 'f', 16},
	{MPI_DOUBLE_INT, "double, int", 'p', 8},
	{MPI_FLOAT_INT, "float, int", 'p', 4},
	{MPI_2INT, "int, int", 'p', 4},
	{MPI_LONG_INT, "long, int", 'p', 8},
	{MPI_SHORT_INT, "short, int", 'p', 2},
};

static const struct {
	MPI_Op op;
	const char *name, *classes;
} ops[] = {
	{MPI_SUM, "sum", "if"},	  {MPI_MAX, "max", "if"},   {MPI_MIN, "min", "if"},	 {MPI_PROD, "prod", "if"},
	{MPI_LAND, "land", "il"}, {MPI_LOR, "lor", "il"},   {MPI_LXOR, "lxor", "il"},	 {MPI_BAND, "band", "ib"},
	{MPI_BOR, "bor", "ib"},	  {MPI_BXOR, "bxor", "ib"}, {MPI_MAXLOC, "maxloc", "p"}, {MPI_MINLOC, "minloc", "p"},
};

#define TYPES ((int)(sizeof(types) / sizeof(types[0])))
#define OPS   ((int)(sizeof(ops) / sizeof(ops[0])))

static int world_rank;
static const char *where = "";

static void wrong(const char *what, const char *op, const char *type, int count, int root)
{
	printf("rank %d, %s: %s %s of %d %s, root %d, is wrong\n", world_rank, where, what, op, count, type, root);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- values ---------------------------------------------------------------------- */

/* Small whole numbers, so that no order of additions matters; equal ones among them, for the pairs. */
static void set_number(void *at, char class, int size, int value, bool real)
{
	float f = (float)value;
	double d = value;
	long double l = value;
	long long i = value;
	char truth = value & 1;

	if (class == 'l')
		memcpy(at, &truth, 1);
	else if (real)
		memcpy(at,
		       size == 4   ? (void *)&f
		       : size == 8 ? (void *)&d
				   : (void *)&l,
		       size == 16 ? 10 : (size_t)size);
	else
		memcpy(at, &i, (size_t)size);
}

static void set_values(void *buf, int t, int count, unsigned seed, int rank)
{
	int size = types[t].size, at = size < 4 ? 4 : size, i, index;
	MPI_Aint lb, extent;
	char *to = buf;

	MPI_Type_get_extent(types[t].type, &lb, &extent);
	memset(buf, 0, (size_t)(extent * count));
	for (i = 0; i < count; i++, to += extent) {
		unsigned x = mix(seed + (unsigned)i, (unsigned)rank);

		set_number(to, types[t].class, size, (int)(x % 7) - 3,
			   types[t].type == MPI_DOUBLE_INT || types[t].type == MPI_FLOAT_INT || types[t].class == 'f');
		if (types[t].class != 'p')
			continue;
		index = (int)(x >> 8 & 15) - 5;
		memcpy(to + at, &index, sizeof(index));
	}
}

/* What n ranks' values come to. */
static void expect_values(void *buf, int t, MPI_Op op, int count, unsigned seed, int n)
{
	char other[MOST * ELEMENT];
	int i;

	set_values(buf, t, count, seed, 0);
	for (i = 1; i < n; i++) {
		set_values(other, t, count, seed, i);
		MPI_Reduce_local(other, buf, count, types[t].type, op);
	}
}

static bool same(const char *a, const char *b, int t, int count)
{
	int size = types[t].size, at = size < 4 ? 4 : size, i;
	size_t bytes = size == 16 ? 10 : (size_t)size; /* the rest of a long double is anything */
	MPI_Aint lb, extent;

	MPI_Type_get_extent(types[t].type, &lb, &extent);
	for (i = 0; i < count; i++, a += extent, b += extent)
		if (memcmp(a, b, bytes) != 0 || (types[t].class == 'p' && memcmp(a + at, b + at, sizeof(int)) != 0))
			return false;
	return true;
}

/* ---- one of each ------------------------------------------------------------------ */

static void try_reductions(MPI_Comm comm, int t, int o, int count, unsigned seed)
{
	char mine[MOST * ELEMENT], got[MOST * ELEMENT], want[MOST * ELEMENT];
	int n, me, root = (int)(seed % 97);
	bool in_place = seed & 1;
	MPI_Request req;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	root %= n;
	set_values(mine, t, count, seed, me);
	expect_values(want, t, ops[o].op, count, seed, n);
	memset(got, 0, sizeof(got));
	if (in_place)
		memcpy(got, mine, sizeof(got));
	MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, got, count, types[t].type, ops[o].op, comm);
	if (!same(got, want, t, count))
		wrong("allreduce", ops[o].name, types[t].name, count, -1);
	memcpy(got, mine, sizeof(got));
	if (seed & 2) {
		MPI_Reduce(in_place && me == root ? MPI_IN_PLACE : mine, got, count, types[t].type, ops[o].op, root,
			   comm);
	} else {
		MPI_Ireduce(in_place && me == root ? MPI_IN_PLACE : mine, got, count, types[t].type, ops[o].op, root,
			    comm, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	if (!same(got, me == root ? want : mine, t, count)) /* nobody else's buffer is touched */
		wrong("reduce", ops[o].name, types[t].name, count, root);
}

static void all_reductions(MPI_Comm comm)
{
	static const int counts[] = {1, 5, 6, 7, 0, MOST};
	unsigned seed = 0;
	int t, o, c;

	for (t = 0; t < TYPES; t++)
		for (o = 0; o < OPS; o++)
			for (c = 0; c < 6 && strchr(ops[o].classes, types[t].class); c++)
				try_reductions(comm, t, o, counts[c], seed++);
}

/* Blocking or not, the operation freed before it is done, which it outlives. */
static void try_own(MPI_Comm comm, int count, unsigned seed)
{
	static unsigned mine[LONGEST], got[LONGEST], want[LONGEST], other[LONGEST];
	const unsigned *from = seed & 2 ? MPI_IN_PLACE : mine;
	int n, me, root, i, k, len = count;
	MPI_Datatype type = MPI_UNSIGNED;
	MPI_Request req[2];
	MPI_Op op;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	root = (int)(seed % (unsigned)n);
	MPI_Op_create(compose, 0, &op);
	for (k = n - 1; k >= 0; k--) {
		for (i = 0; i < count; i++)
			other[i] = mix(seed + (unsigned)i, (unsigned)k) | 1 << 16;
		if (k == me)
			memcpy(mine, other, (size_t)count * sizeof(*mine));
		if (k == n - 1)
			memcpy(want, other, (size_t)count * sizeof(*want));
		else
			compose(other, want, &len, &type);
	}
	memcpy(got, mine, (size_t)count * sizeof(*got));
	if (seed & 1) {
		MPI_Allreduce(from, got, count, MPI_UNSIGNED, op, comm);
		MPI_Reduce(mine, other, count, MPI_UNSIGNED, op, root, comm);
		MPI_Op_free(&op);
	} else {
		MPI_Iallreduce(from, got, count, MPI_UNSIGNED, op, comm, &req[0]);
		MPI_Ireduce(mine, other, count, MPI_UNSIGNED, op, root, comm, &req[1]);
		MPI_Op_free(&op);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	}
	if (memcmp(got, want, (size_t)count * sizeof(*got)) != 0)
		wrong("allreduce", "of its own", "unsigned", count, -1);
	if (me == root && memcmp(other, want, (size_t)count * sizeof(*got)) != 0)
		wrong("reduce", "of its own", "unsigned", count, root);
}

static void all_own(MPI_Comm comm)
{
	static const int counts[] = {2, 14, 16, 28, 30, MOST};
	unsigned seed;

	for (seed = 0; seed < 48; seed++)
		try_own(comm, counts[seed % 6], seed + seed / 6);
}

/* About what one part, a stage, and a piece of that hold. */
static void all_long(MPI_Comm comm)
{
	static const int counts[] = {57, 98, 99, 126, 127, 1000, 6144, 6145, 16384, 20000, 65536, 65537, LONGEST};
	unsigned seed;

	for (seed = 0; seed < 52; seed++)
		try_own(comm, counts[seed % 13], seed + 3);
}

/* len bytes, as they are, or every other one of twice as many; the type differs from rank to rank. */
static void try_bcast(MPI_Comm comm, int root, int len, unsigned seed)
{
	unsigned char buf[2048];
	int me, i, step;
	MPI_Datatype gaps = MPI_DATATYPE_NULL;
	MPI_Request req;

	MPI_Comm_rank(comm, &me);
	step = (int)(mix(seed, (unsigned)me) & 1) + 1;
	memset(buf, 0xee, sizeof(buf));
	for (i = 0; i < len && me == root; i++)
		buf[i * step] = (unsigned char)mix(seed, (unsigned)i);
	MPI_Type_vector(len, 1, 2, MPI_BYTE, &gaps);
	MPI_Type_commit(&gaps);
	if (seed & 1) {
		MPI_Bcast(buf, step == 1 ? len : 1, step == 1 ? MPI_BYTE : gaps, root, comm);
	} else {
		MPI_Ibcast(buf, step == 1 ? len : 1, step == 1 ? MPI_BYTE : gaps, root, comm, &req);
		MPI_Type_free(&gaps); /* the operation keeps it */
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	if (gaps != MPI_DATATYPE_NULL)
		MPI_Type_free(&gaps);
	for (i = 0; i < (int)sizeof(buf); i++) {
		bool data = i < len * step && i % step == 0;

		if (buf[i] != (data ? (unsigned char)mix(seed, (unsigned)(i / step)) : 0xee))
			wrong("bcast", "", step == 1 ? "bytes" : "bytes with gaps", len, root);
	}
}

static void all_bcasts(MPI_Comm comm)
{
	static const int lens[] = {1, 8, 111, 112, 113, 0, 448, 449, 1000};
	unsigned seed = 0;
	int n, root, i;

	MPI_Comm_size(comm, &n);
	for (root = 0; root < n; root++)
		for (i = 0; i < 9; i++) {
			try_bcast(comm, root, lens[i], seed++);
			try_bcast(comm, root, lens[i], seed++);
		}
}

/* ---- gathers ----------------------------------------------------------------------- */

static void do_gather(MPI_Comm comm, int root, bool blocks, const void *from, int len, MPI_Datatype stype, void *to,
		      int count, MPI_Datatype rtype)
{
	MPI_Request req = MPI_REQUEST_NULL;

	if (root < 0 && blocks)
		MPI_Allgather(from, len, stype, to, count, rtype, comm);
	else if (root < 0)
		MPI_Iallgather(from, len, stype, to, count, rtype, comm, &req);
	else if (blocks)
		MPI_Gather(from, len, stype, to, count, rtype, root, comm);
	else
		MPI_Igather(from, len, stype, to, count, rtype, root, comm, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* To one, or all (root -1); types, and who has its part in its place, differ from rank to rank. */
static void try_gather(MPI_Comm comm, int root, int len, unsigned seed)
{
	static unsigned char to[MOST * 512], from[512];
	int n, me, i, k, step = (int)(mix(seed, 1) & 1) + 1, own;
	MPI_Datatype stype, rtype;
	bool wanted, in_place;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	own = (int)(mix(seed, (unsigned)me + 7) & 1) + 1;
	wanted = root < 0 || root == me;
	in_place = wanted && (seed >> 1 & 1);
	memset(to, 0xee, sizeof(to));
	memset(from, 0xdd, sizeof(from));
	for (i = 0; i < len; i++)
		if (in_place)
			to[(me * len + i) * step] = byte_of(seed, me, i);
		else
			from[i * own] = byte_of(seed, me, i);
	stype = part_of(len, own);
	rtype = part_of(len, step);
	do_gather(comm, root, seed & 1, in_place ? MPI_IN_PLACE : from, own == 1 ? len : len > 0,
		  own == 1 ? MPI_BYTE : stype, to, step == 1 ? len : len > 0, step == 1 ? MPI_BYTE : rtype);
	MPI_Type_free(&stype);
	MPI_Type_free(&rtype);
	for (k = 0; k < n * len && wanted; k++)
		if (to[k * step] != byte_of(seed, k / len, k % len) || (step == 2 && to[k * step + 1] != 0xee))
			wrong(root < 0 ? "allgather" : "gather", "", step == 1 ? "bytes" : "bytes with gaps", len,
			      root);
	if (to[wanted ? n * len * step : 0] != 0xee)
		wrong("gather", "too much of", "bytes", len, root);
}

static void all_gathers(MPI_Comm comm)
{
	static const int lens[] = {1, 8, 56, 57, 111, 112, 113, 0, 200};
	unsigned seed = 0;
	int n, root, i, k;

	MPI_Comm_size(comm, &n);
	for (root = -1; root < n; root++)
		for (i = 0; i < 9; i++)
			for (k = 0; k < 4; k++)
				try_gather(comm, root, lens[i], seed++);
}

/* Nobody leaves a barrier before all have come: the flag of the last one is seen. */
static void try_barrier(MPI_Comm comm, unsigned round)
{
	int n, me, late, flag = 0;
	MPI_Request req;
	MPI_Status status;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	late = (int)(round % (unsigned)n);
	if (me == late) {
		int i;

		for (i = 0; i < n; i++)
			if (i != me)
				MPI_Send(&round, 1, MPI_UNSIGNED, i, 77, comm); /* eager */
	}
	if (round & 1) {
		MPI_Barrier(comm);
	} else {
		MPI_Ibarrier(comm, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	if (me == late)
		return;
	while (!flag) /* it was sent before; delivery may take its time */
		MPI_Iprobe(late, 77, comm, &flag, &status);
	MPI_Recv(&round, 1, MPI_UNSIGNED, late, 77, comm, &status);
}

/* ---- many at a time ----------------------------------------------------------------- */

static void expect_gathered(const char *got, int t, unsigned seed, int n)
{
	char want[5 * ELEMENT];
	MPI_Aint lb, extent;
	int k;

	MPI_Type_get_extent(types[t].type, &lb, &extent);
	for (k = 0; k < n; k++) {
		set_values(want, t, 5, seed, k);
		if (!same(got + 5 * extent * k, want, t, 5))
			wrong("one of many", "allgather", types[t].name, 5, k);
	}
}

/* Of random kinds, and of two communicators, ended in another order. */
static void storm(MPI_Comm a, MPI_Comm b, unsigned seed, int rounds)
{
	static char mine[UNDER_WAY][8 * ELEMENT], got[UNDER_WAY][8 * ELEMENT], want[8 * ELEMENT];
	static char gathered[UNDER_WAY][MOST * 5 * ELEMENT];
	MPI_Request req[UNDER_WAY];
	MPI_Status status[UNDER_WAY];
	int round, i, t[UNDER_WAY], n, me;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < UNDER_WAY; i++) {
			unsigned x = mix(seed + (unsigned)round, (unsigned)i);
			MPI_Comm comm = x & 1 ? a : b;

			MPI_Comm_size(comm, &n);
			MPI_Comm_rank(comm, &me);
			t[i] = (int)(x >> 8) % 6;
			memset(got[i], 0, sizeof(got[i]));
			if ((x >> 1) % 4 == 0) {
				t[i] = -1;
				MPI_Ibarrier(comm, &req[i]);
			} else if ((x >> 1) % 4 == 1) {
				if (me == (int)(x >> 16) % n)
					set_values(got[i], t[i], 5, x, 0);
				MPI_Ibcast(got[i], 5, types[t[i]].type, (int)(x >> 16) % n, comm, &req[i]);
			} else if ((x >> 1) % 4 == 2 && n * 5 * ELEMENT <= (int)sizeof(gathered[i])) {
				set_values(mine[i], t[i], 5, x, me);
				MPI_Iallgather(mine[i], 5, types[t[i]].type, gathered[i], 5, types[t[i]].type, comm,
					       &req[i]);
				t[i] += TYPES;
			} else {
				set_values(mine[i], t[i], 6, x, me);
				MPI_Iallreduce(mine[i], got[i], 6, types[t[i]].type, MPI_SUM, comm, &req[i]);
			}
		}
		if (round % 3 == 0)
			MPI_Barrier(round & 1 ? a : b);
		for (i = UNDER_WAY - 1; i >= 0 && round % 2; i--)
			MPI_Wait(&req[i], MPI_STATUS_IGNORE);
		MPI_Waitall(UNDER_WAY, req, status);
		for (i = 0; i < UNDER_WAY; i++) {
			unsigned x = mix(seed + (unsigned)round, (unsigned)i);
			bool bcast = (x >> 1) % 4 == 1;

			MPI_Comm_size(x & 1 ? a : b, &n);
			if (t[i] < 0)
				continue;
			if (t[i] >= TYPES) {
				expect_gathered(gathered[i], t[i] - TYPES, x, n);
				continue;
			}
			if (bcast)
				set_values(want, t[i], 5, x, 0);
			else
				expect_values(want, t[i], MPI_SUM, 6, x, n);
			if (!same(got[i], want, t[i], bcast ? 5 : 6))
				wrong("one of many", bcast ? "bcast" : "sum", types[t[i]].name, 6, 0);
		}
	}
}

/* ---- communicators ------------------------------------------------------------------ */

static void all_of(MPI_Comm comm, const char *name)
{
	unsigned round;

	where = name;
	for (round = 0; round < 12; round++)
		try_barrier(comm, round);
	all_bcasts(comm);
	all_gathers(comm);
	all_reductions(comm);
	all_own(comm);
	all_long(comm);
}

/* Freed while something is under way: it ends all the same. */
static void free_under_way(unsigned seed)
{
	MPI_Request req[3];
	MPI_Status status[3];
	MPI_Comm comm;
	int one = 1, sum = 0, n, i;

	where = "freed";
	for (i = 0; i < 20; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_size(comm, &n);
		MPI_Barrier(comm);
		MPI_Barrier(comm);
		MPI_Ibarrier(comm, &req[0]);
		sum = 0;
		MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &req[1]);
		MPI_Ibarrier(comm, &req[2]);
		MPI_Comm_free(&comm);
		if (mix(seed, (unsigned)i) & 1)
			MPI_Barrier(MPI_COMM_WORLD);
		MPI_Waitall(3, req, status);
		if (sum != n)
			wrong("allreduce", "sum", "int", 1, -1);
	}
}

static void between_two(MPI_Comm half)
{
	MPI_Comm inter, merged;
	int n, me, sum = 0, one = 1;

	where = "two groups";
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	if (n < 2)
		return;
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, world_rank % 2 ? 0 : 1, 5, &inter);
	MPI_Barrier(inter);
	MPI_Barrier(inter);
	MPI_Barrier(inter);
	MPI_Comm_remote_size(inter, &n);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	if (sum != n)
		wrong("allreduce", "sum", "int", 1, -1);
	MPI_Intercomm_merge(inter, world_rank % 2, &merged);
	MPI_Comm_rank(merged, &me);
	all_of(merged, "merged");
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
}

int main(int argc, char **argv)
{
	unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 1;
	int rounds = argc > 2 ? atoi(argv[2]) : 60, provided;
	MPI_Comm dup, back, half;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	all_of(MPI_COMM_WORLD, "world");
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &back);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
	all_of(back, "backwards");
	all_of(half, "half");
	all_of(MPI_COMM_SELF, "self");
	where = "world and dup";
	storm(MPI_COMM_WORLD, dup, seed, rounds);
	where = "half and backwards";
	storm(half, back, seed + 1000, rounds);
	between_two(half);
	free_under_way(seed);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&back);
	MPI_Comm_free(&half);
	if (world_rank == 0)
		printf("nic %llu, gathers %llu, staged %llu, trees %llu, refused %llu\nok\n",
		       counted("glex_coll_barriers") + counted("glex_coll_bcasts") + counted("glex_coll_reductions") +
			       counted("glex_coll_gathers"),
		       counted("glex_coll_gathers"), counted("glex_coll_staged"), counted("glex_coll_trees"),
		       counted("glex_coll_refused"));
	MPI_Finalize();
	MPI_T_finalize();
	return 0;
}
