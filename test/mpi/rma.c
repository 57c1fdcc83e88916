/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rma.c [SEED [unreachable]] - one-sided operations of lengths around and far above what is copied, with every
 * kind of synchronization, contiguous or not on either side; every byte of window and buffers
 * is checked, also those that must not change.  unreachable: as in a container that forbids
 * cross-memory attach.
 *
 * rma.c SEED late - a rank is late for a fence, whose barrier the others leave to the background: it
 * ends after the posts that their next start waits for.
 *
 * rma.c death TARGET|ORIGIN MS - a rank ends in the middle of such operations: the others get an
 * error in the call that waits, and end.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"
#include "test/lib/seccomp.h"

#define WORDS (1 << 19) /* of a window: 2 MiB */
#define GAP   3		/* words between those of a vector */

static int rank, ranks, to, from; /* to whose window we write, and who writes to ours */
static int *win_mem, *buf, *result, *expect;
static MPI_Win win;
static unsigned state;

static unsigned rnd(unsigned below)
{
	state = state * 1103515245u + 12345u;
	return (state >> 9) % below;
}

/* What rank r writes at word i in round k. */
static int word(int r, int k, int i)
{
	return (int)((unsigned)i * 2654435761u ^ (unsigned)(r * 7919 + k * 104729));
}

/* ---- synchronization ------------------------------------------------------- */

enum sync { FENCE, PSCW, LOCK, LOCK_ALL, FLUSH, SYNCS };

static void begin(enum sync how)
{
	switch (how) {
	case FENCE:
		MPI_Win_fence(0, win);
		break;
	case PSCW:
		pscw_begins(win, from, to);
		break;
	case LOCK:
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
		break;
	default:
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock_all(0, win);
	}
}

static void end(enum sync how)
{
	switch (how) {
	case FENCE:
		MPI_Win_fence(0, win);
		return;
	case PSCW:
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		return;
	case LOCK:
		MPI_Win_unlock(to, win);
		break;
	case FLUSH:
		MPI_Win_flush(to, win);
		MPI_Win_unlock_all(win);
		break;
	default:
		MPI_Win_unlock_all(win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- operations ------------------------------------------------------------ */

enum op { PUT, GET, ACCUMULATE, GET_ACCUMULATE, RPUT, RGET, OPS };

/* n words of a buffer or window; in every other case with gaps between pieces of them. */
struct shape {
	int contiguous;
	int piece; /* words */
	int count, n;
	MPI_Datatype type;
};

static int extent(const struct shape *s)
{
	return s->contiguous ? s->n : s->n / s->piece * (s->piece + GAP);
}

/* Place of the i-th word. */
static int at(const struct shape *s, int i)
{
	return s->contiguous ? i : i / s->piece * (s->piece + GAP) + i % s->piece;
}

static struct shape shape(int contiguous, int piece, int n)
{
	struct shape s = {contiguous, piece, n, n, MPI_INT};

	if (contiguous)
		return s;
	s.count = 1;
	MPI_Type_vector(n / piece, piece, piece + GAP, MPI_INT, &s.type);
	MPI_Type_commit(&s.type);
	return s;
}

static void free_shape(struct shape *s)
{
	if (!s->contiguous)
		MPI_Type_free(&s->type);
}

static void start_op(enum op op, const struct shape *o, const struct shape *t, MPI_Aint disp, MPI_Request *req)
{
	switch (op) {
	case PUT:
		MPI_Put(buf, o->count, o->type, to, disp, t->count, t->type, win);
		break;
	case GET:
		MPI_Get(result, o->count, o->type, to, disp, t->count, t->type, win);
		break;
	case ACCUMULATE:
		MPI_Accumulate(buf, o->count, o->type, to, disp, t->count, t->type, MPI_SUM, win);
		break;
	case GET_ACCUMULATE:
		MPI_Get_accumulate(buf, o->count, o->type, result, o->count, o->type, to, disp, t->count, t->type,
				   MPI_SUM, win);
		break;
	case RPUT:
		MPI_Rput(buf, o->count, o->type, to, disp, t->count, t->type, win, req);
		break;
	default:
		MPI_Rget(result, o->count, o->type, to, disp, t->count, t->type, win, req);
	}
}

/* What our window holds after rank `from` has done it, and what our result does. */
static void check_op(enum op op, const struct shape *o, const struct shape *t, int disp, int k)
{
	int i, reads = op == GET || op == RGET || op == GET_ACCUMULATE;

	for (i = 0; i < WORDS; i++)
		expect[i] = word(rank, -1 - k, i);
	for (i = 0; i < t->n; i++) {
		if (op == PUT || op == RPUT)
			expect[disp + at(t, i)] = word(from, k, i);
		else if (op == ACCUMULATE || op == GET_ACCUMULATE)
			expect[disp + at(t, i)] = (int)((unsigned)expect[disp + at(t, i)] + (unsigned)word(from, k, i));
	}
	check(!memcmp(win_mem, expect, WORDS * sizeof(int)), "the window has other words than it should");
	for (i = 0; i < WORDS; i++)
		expect[i] = -1;
	for (i = 0; reads && i < o->n; i++)
		expect[at(o, i)] = word(to, -1 - k, disp + at(t, i));
	check(!memcmp(result, expect, WORDS * sizeof(int)), "the origin has read other words than there were");
}

static void round_of(int k)
{
	static const int sizes[] = {1, 1000, 4096, 4097, 8192, 16384, 65536, 65537, 100000, 262144};
	enum sync how = (enum sync)rnd(SYNCS);
	enum op op = (enum op)rnd(OPS);
	int i, piece = rnd(2) ? 1 + (int)rnd(20) : 1500 + (int)rnd(8000);
	int n = sizes[rnd(sizeof(sizes) / sizeof(sizes[0]))], disp = (int)rnd(1000);
	MPI_Request req = MPI_REQUEST_NULL;
	struct shape o, t;

	if ((op == RPUT || op == RGET) && how < LOCK)
		how = LOCK;
	while (n > piece && n / piece * (piece + GAP) + 1000 > WORDS)
		n /= 2;
	n = n < piece ? piece : n - n % piece;
	o = shape((int)rnd(2), piece, n);
	t = shape((int)rnd(2), piece, n);
	if (extent(&o) > WORDS || disp + extent(&t) > WORDS)
		check(0, "the test asks for too much");
	for (i = 0; i < WORDS; i++) {
		win_mem[i] = word(rank, -1 - k, i);
		result[i] = -1;
	}
	for (i = 0; i < n; i++)
		buf[at(&o, i)] = word(rank, k, i);
	begin(how);
	start_op(op, &o, &t, disp, &req);
	if (req != MPI_REQUEST_NULL) {
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		if (op == RPUT) /* what was put is ours again */
			memset(buf, 0, WORDS * sizeof(int));
	}
	end(how);
	check_op(op, &o, &t, disp, k);
	free_shape(&o);
	free_shape(&t);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Long and short ones in turns: what is sent later comes later, whichever way it takes. */
static void in_order(void)
{
	int i, k, n = 50000, bad = 0;

	memset(win_mem, 0, WORDS * sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (k = 1; k <= 20; k++) {
		for (i = 0; i < n; i++)
			buf[k % 2 * n + i] = k;
		MPI_Accumulate(buf + k % 2 * n, k % 3 ? n : 10, MPI_INT, to, 0, k % 3 ? n : 10, MPI_INT, MPI_REPLACE,
			       win);
		MPI_Win_flush_local(to, win);
	}
	MPI_Get_accumulate(NULL, 0, MPI_INT, result, n, MPI_INT, to, 0, n, MPI_INT, MPI_NO_OP, win);
	MPI_Win_unlock_all(win);
	for (i = 0; i < n; i++)
		bad += result[i] != 20;
	check(!bad, "accumulates have overtaken each other");
	MPI_Barrier(MPI_COMM_WORLD);
}

/* All write to rank 0 at once, more than can be lent at a time, and then what is to stay: puts have no order. */
static void flood(void)
{
	int i, k, n = 8000, bad = 0;

	memset(win_mem, 0, WORDS * sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < WORDS; i++)
		buf[i] = word(rank, 3, i);
	MPI_Win_lock_all(0, win);
	for (k = 0; k < 400; k++)
		MPI_Put(buf + k * 100, n, MPI_INT, 0, rank * (WORDS / ranks), n, MPI_INT, win);
	MPI_Win_flush(0, win);
	MPI_Put(buf + 39900, n, MPI_INT, 0, rank * (WORDS / ranks), n, MPI_INT, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (k = 0; !rank && k < ranks; k++)
		for (i = 0; i < n; i++)
			bad += win_mem[k * (WORDS / ranks) + i] != word(k, 3, 39900 + i);
	check(!bad, "after many puts, what was put last is not there");
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 2 comes when ranks 0 and 1 have begun to write to each other. */
static void late(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 2)
		usleep(200000);
	MPI_Win_fence(0, win);
	to = from = !rank;
	win_mem[0] = -1;
	if (rank != 2) {
		begin(PSCW);
		MPI_Put(&rank, 1, MPI_INT, to, 0, 1, MPI_INT, win);
		end(PSCW);
		check(win_mem[0] == from, "what was put is not there");
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- death ----------------------------------------------------------------- */

/* Rank 2 is the one to die; rank 0 writes to it and reads from it, or it does so from rank 0. */
static void death(int of_target, int ms)
{
	int k, error = MPI_SUCCESS, class = MPI_SUCCESS, x;

	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	signal(SIGUSR1, SIG_IGN); /* mpiexec's word of it may come when MPICH ends, which does not survive that */
	signal(SIGALRM, SIG_DFL);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 2)
		ualarm((useconds_t)ms * 1000, 0);
	to = of_target ? 2 : 0;
	if (rank == 2 - to) {
		for (k = 0; error == MPI_SUCCESS; k++) {
			error = MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
			if (error == MPI_SUCCESS)
				error = k % 2 ? MPI_Put(buf, 200000, MPI_INT, to, 0, 200000, MPI_INT, win)
					      : MPI_Get(result, 200000, MPI_INT, to, 0, 200000, MPI_INT, win);
			if (error == MPI_SUCCESS)
				error = k % 3 ? MPI_Accumulate(buf, 100000, MPI_INT, to, 0, 100000, MPI_INT, MPI_SUM,
							       win)
					      : MPI_SUCCESS;
			if (error == MPI_SUCCESS)
				error = MPI_Win_unlock(to, win);
		}
	} else {
		error = MPI_Recv(&x, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Error_class(error, &class);
	check(class == MPIX_ERR_PROC_FAILED, "another error than MPIX_ERR_PROC_FAILED, or none");
	error = MPI_Sendrecv(&rank, 1, MPI_INT, !rank, 0, &x, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(error == MPI_SUCCESS && x == !rank, "the survivors cannot go on");
	check(MPI_Finalize() == MPI_SUCCESS, "the end fails"); /* the window has lost a member: it stays */
	printf("rank %d: ok\n", rank);
}

int main(int argc, char **argv)
{
	int k, lethal = argc > 3 && !strcmp(argv[1], "death");

	if (argc > 2 && !strcmp(argv[2], "unreachable") && forbid_attach()) {
		perror("rma: seccomp");
		return 1;
	}
	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &k);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	to = (rank + 1) % ranks;
	from = (rank + ranks - 1) % ranks;
	state = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	buf = malloc(WORDS * sizeof(int));
	result = malloc(WORDS * sizeof(int));
	expect = malloc(WORDS * sizeof(int));
	if (state % 2)
		MPI_Alloc_mem(WORDS * sizeof(int), MPI_INFO_NULL, &win_mem);
	else
		win_mem = malloc(WORDS * sizeof(int));
	memset(win_mem, 0, WORDS * sizeof(int));
	memset(buf, 0, WORDS * sizeof(int));
	MPI_Win_create(win_mem, WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (lethal) {
		death(!strcmp(argv[2], "TARGET"), atoi(argv[3]));
		return 0;
	}
	if (argc > 2 && !strcmp(argv[2], "late")) {
		late();
	} else {
		for (k = 0; k < 60; k++)
			round_of(k);
		in_order();
		flood();
	}
	if (!rank)
		printf("lent %llu\n", counted("glex_lent"));
	MPI_Win_free(&win);
	if (state % 2)
		MPI_Free_mem(win_mem);
	else
		free(win_mem);
	free(buf);
	free(result);
	free(expect);
	MPI_T_finalize();
	MPI_Finalize();
	if (!rank)
		puts("ok");
	return 0;
}
