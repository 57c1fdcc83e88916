/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_ahead.c SEED [refused|unreachable] - communicators that see no call that blocks: many collectives under way at
 * a time, of those that the NICs run and others, while the tree is made, and after; waited for in any
 * order.  All that comes is checked.
 * refused: one rank cannot have the endpoints, so MPICH does them, and from a call that blocks on as if nobody had asked.
 * unreachable: as in a container that forbids cross-memory attach, so what is long is not fetched.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"
#include "test/lib/seccomp.h"

#define UNDER_WAY 12
#define ROUNDS	  8
#define MOST	  100000 /* bytes of a broadcast, without gaps */
#define RANKS	  64

enum kind { BARRIER, SHORT, LONG, GAPS, REDUCE, ALLREDUCE, IN_PLACE, ALLTOALL, OF_OURS, GATHER, ALLGATHER, KINDS };

struct call {
	enum kind kind;
	unsigned seed;
	int root, len;
	MPI_Datatype type;
	int mine[RANKS], result[RANKS];
	unsigned char bytes[2 * MOST];
};

static struct call calls[UNDER_WAY];
static MPI_Request reqs[UNDER_WAY];
static unsigned common, own; /* the same in all ranks; another in each */
static int rank, ranks;
static MPI_Op greatest;

static unsigned next(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static unsigned char byte_at(unsigned seed, int i)
{
	return (unsigned char)(i * 7 + (i >> 8) * 13 + (int)(seed * 31));
}

static void take_greatest(void *in, void *inout, int *len, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *len; i++)
		b[i] = a[i] > b[i] ? a[i] : b[i];
}

/* In the memory of who is not the root nothing is as it must become, nor between the bytes of a type with gaps. */
static void fill(struct call *call)
{
	int step = call->kind == GAPS ? 2 : 1;

	memset(call->bytes, 0xee, sizeof(call->bytes));
	for (int i = 0; i < call->len && rank == call->root && call->kind < GATHER; i++)
		call->bytes[i * step] = byte_at(call->seed, i);
	for (int i = 0; i < RANKS; i++) {
		call->mine[i] = (int)(call->seed % 1000) * (i + 1) + rank;
		call->result[i] = -1;
	}
}

static void begin(struct call *call, MPI_Request *req, MPI_Comm comm)
{
	const int n = 1 + (int)(next(&common) % 4);

	call->kind = (enum kind)(next(&common) % KINDS);
	call->seed = next(&common);
	call->root = (int)(next(&common) % (unsigned)ranks);
	call->len = 1 + (int)(next(&common) % (call->kind == LONG ? MOST : call->kind == GAPS ? 9000 : 100));
	fill(call);
	if (call->kind >= REDUCE)
		call->len = n;
	switch (call->kind) {
	case BARRIER:
		MPI_Ibarrier(comm, req);
		break;
	case GAPS:
		MPI_Type_vector(call->len, 1, 2, MPI_BYTE, &call->type);
		MPI_Type_commit(&call->type);
		MPI_Ibcast(call->bytes, 1, call->type, call->root, comm, req);
		MPI_Type_free(&call->type);
		break;
	case REDUCE:
		MPI_Ireduce(call->mine, rank == call->root ? call->result : NULL, n, MPI_INT, MPI_SUM, call->root, comm,
			    req);
		break;
	case ALLREDUCE:
		MPI_Iallreduce(call->mine, call->result, n, MPI_INT, MPI_SUM, comm, req);
		break;
	case IN_PLACE:
		memcpy(call->result, call->mine, sizeof(call->mine));
		MPI_Iallreduce(MPI_IN_PLACE, call->result, n, MPI_INT, MPI_SUM, comm, req);
		break;
	case ALLTOALL:
		MPI_Ialltoall(call->mine, 1, MPI_INT, call->result, 1, MPI_INT, comm, req);
		break;
	case OF_OURS:
		MPI_Iallreduce(call->mine, call->result, n, MPI_INT, greatest, comm, req);
		break;
	case GATHER: /* with gaps where they come */
		MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &call->type);
		MPI_Type_commit(&call->type);
		MPI_Igather(call->mine, 1, MPI_INT, call->bytes, 1, call->type, call->root, comm, req);
		MPI_Type_free(&call->type);
		break;
	case ALLGATHER:
		MPI_Iallgather(call->mine, n, MPI_INT, call->bytes, n, MPI_INT, comm, req);
		break;
	default:
		MPI_Ibcast(call->bytes, call->len, MPI_BYTE, call->root, comm, req);
	}
}

static void ended_broadcast(const struct call *call)
{
	int step = call->kind == GAPS ? 2 : 1;

	for (int i = 0; i < call->len; i++)
		check(call->bytes[i * step] == byte_at(call->seed, i), "a byte of a broadcast");
	for (int i = 1; i < call->len && step == 2; i++)
		check(call->bytes[2 * i - 1] == 0xee, "a byte in a gap");
	check(call->len * step >= (int)sizeof(call->bytes) || call->bytes[call->len * step] == 0xee, "a byte behind");
}

static void ended_gather(const struct call *call)
{
	int n = call->kind == GATHER ? 1 : call->len, step = call->kind == GATHER ? 2 : 1, got[2], k;

	if (call->kind == GATHER && rank != call->root)
		return;
	for (k = 0; k < ranks * n; k++) {
		memcpy(got, call->bytes + k * step * (int)sizeof(int), sizeof(got));
		check(got[0] == (int)(call->seed % 1000) * (k % n + 1) + k / n, "a part of a gather");
		check(step == 1 || got[1] == (int)0xeeeeeeee, "a gap of a gather");
	}
}

static void ended(const struct call *call)
{
	const int a = (int)(call->seed % 1000), sum = ranks * (ranks - 1) / 2;

	if (call->kind >= SHORT && call->kind <= GAPS)
		ended_broadcast(call);
	if (call->kind >= GATHER)
		ended_gather(call);
	for (int i = 0; i < ranks && call->kind == ALLTOALL; i++)
		check(call->result[i] == a * (rank + 1) + i, "an Ialltoall");
	for (int i = 0; i < call->len && (call->kind == ALLREDUCE || call->kind == IN_PLACE); i++)
		check(call->result[i] == ranks * a * (i + 1) + sum, "an Iallreduce");
	for (int i = 0; i < call->len && call->kind == OF_OURS; i++)
		check(call->result[i] == a * (i + 1) + ranks - 1, "an Iallreduce with an operation of ours");
	for (int i = 0; i < call->len && call->kind == REDUCE && rank == call->root; i++)
		check(call->result[i] == ranks * a * (i + 1) + sum, "an Ireduce");
}

/* Begins some, as late as it happens, and ends some, whichever. */
static void play(MPI_Comm comm, int rounds)
{
	int i, flag;

	for (int round = 0; round < rounds; round++) {
		for (i = 0; i < UNDER_WAY; i++) {
			if (next(&own) % 8 == 0)
				usleep(next(&own) % 2000);
			begin(&calls[i], &reqs[i], comm);
			if (next(&own) % 4 == 0)
				MPI_Test(&reqs[next(&own) % (unsigned)(i + 1)], &flag, MPI_STATUS_IGNORE);
		}
		i = (int)(next(&own) % UNDER_WAY);
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
		MPI_Waitall(UNDER_WAY, reqs, MPI_STATUSES_IGNORE);
		for (i = 0; i < UNDER_WAY; i++)
			ended(&calls[i]);
	}
}

/* A communicator that its user has freed is there until all has ended. */
static void play_freed(void)
{
	int one = 1, sum[4];
	MPI_Request req[4];
	MPI_Comm comm;

	for (int i = 0; i < 4; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Iallreduce(&one, &sum[i], 1, MPI_INT, MPI_SUM, comm, &req[i]);
		MPI_Comm_free(&comm);
	}
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 4; i++)
		check(sum[i] == ranks, "an Iallreduce of a freed communicator");
}

/* Who has sent another something, short and long, has the descriptors that he needs for that. */
static void meet(MPI_Comm comm)
{
	for (int i = 1; i < ranks; i++)
		for (int len = 1; len <= MOST; len = len * 10)
			MPI_Sendrecv(calls[0].bytes, len, MPI_BYTE, (rank + i) % ranks, 0, calls[1].bytes, len,
				     MPI_BYTE, (rank + ranks - i) % ranks, 0, comm, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int provided, is_refused = argc > 2 && strcmp(argv[2], "refused") == 0;
	MPI_Comm comm;

	if (argc < 2 || (argc > 2 && strcmp(argv[2], "unreachable") == 0 && forbid_attach() != 0))
		return 2;
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	check(ranks <= RANKS, "too many ranks");
	MPI_Op_create(take_greatest, 1, &greatest);
	common = (unsigned)atoi(argv[1]);
	own = common + 77u * (unsigned)rank;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	meet(comm);
	if (is_refused && rank == ranks - 1)
		starve(1);
	play(comm, 2);
	if (is_refused && rank == ranks - 1)
		starve(0);
	play(comm, ROUNDS);
	MPI_Bcast(calls[0].bytes, MOST, MPI_BYTE, 0, comm);
	play(comm, ROUNDS);
	MPI_Comm_free(&comm);
	play_freed();
	if (rank == 0)
		printf("nic %llu, long %llu, trees %llu, refused %llu\nok\n",
		       counted("glex_coll_barriers") + counted("glex_coll_bcasts") + counted("glex_coll_reductions") +
			       counted("glex_coll_gathers"),
		       counted("glex_coll_long"), counted("glex_coll_trees"), counted("glex_coll_refused"));
	MPI_Op_free(&greatest);
	MPI_Finalize();
	MPI_T_finalize();
	return 0;
}
