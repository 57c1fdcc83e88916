/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rma_direct.c data ALLOCATED|HEAP|STATIC|STACK DIRECT - puts and gets of all lengths around the limits, contiguous
 * or not, in epochs of every kind: what they leave in window, buffers and around them, and how many of them went
 * straight to the window (all that can if DIRECT, else none).
 *
 * rma_direct.c order - of two ranks that each put to a third and then get what the other puts, one sees it.
 * rma_direct.c spin - a rank that looks for something in a window, again and again, lets others go on that need it.
 * rma_direct.c sums DIRECT - all ranks add to counters of all, themselves included, in all ways there are, also ways that
 * go by packets: they add up, and nobody gets a number twice.
 * rma_direct.c types - sums and exchanges of every basic type and operation, and what else happens to the window.
 * rma_direct.c orphan - a rank is killed while it adds something long: the others go on with that window.
 * rma_direct.c nested - windows over the memory of others, and of one rank.
 * rma_direct.c many - windows by the hundred, one after the other, where few regions can be had.
 */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#define WINDOW 200001 /* bytes */

static int rank, ranks, to, from;
static MPI_Win win;

/* ---- data -------------------------------------------------------------------- */

static const int lengths[] = {1,  2,   3,   4,	 5,    7,    8,	   9,	 15,   16,    17,    31,    32,	    33,	   63,
			      64, 255, 256, 257, 1000, 4095, 4096, 4097, 9999, 16384, 65536, 65537, 131072, 200001};

#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

static unsigned char origin[WINDOW + 64];
static unsigned char static_memory[WINDOW + 2 * 4096]; /* its ends share pages with what cannot be adopted */
static unsigned state = 1;

static int rnd(int below)
{
	state = state * 1103515245u + 12345u;
	return (int)((state >> 9) % (unsigned)below);
}

/* What a rank's window has at byte i in round k, before anything is put there. */
static unsigned char old_byte(int r, int k, int i)
{
	return (unsigned char)((unsigned)(i + r * 31 + k * 17) * 2654435761u >> 24);
}

static unsigned char new_byte(int r, int k, int i)
{
	return (unsigned char)~old_byte(r + 7, k + 3, i * 5);
}

/* How the bytes are described: the same ones by each. */
enum shape { BYTES, PAIRS, SHIFTED, GAPS, SHAPES };

/* MPICH knows those to be in one piece; from 4.1 on it may not where that does not begin where the buffer does. */
#define PIECES (MPICH_NUMVERSION < 40100000 ? 1 << BYTES | 1 << PAIRS | 1 << SHIFTED : 1 << BYTES | 1 << PAIRS)

/* n bytes from at - shift on. */
static int describe(enum shape shape, int n, MPI_Datatype *type, int *shift)
{
	int two[2] = {n / 2, n - n / 2}, where[2] = {24, 24 + n / 2};

	*shift = 0;
	switch (shape) {
	case PAIRS:
		MPI_Type_contiguous(n, MPI_BYTE, type);
		n = 1;
		break;
	case SHIFTED: /* contiguous, behind what the program names */
	case GAPS:    /* not, but for the one who looks closely */
		if (shape == GAPS && n > 1)
			where[1]++;
		MPI_Type_indexed(2, two, where, MPI_BYTE, type);
		*shift = 24;
		n = 1;
		break;
	default:
		MPI_Type_dup(MPI_BYTE, type);
	}
	MPI_Type_commit(type);
	return n;
}

enum sync { FENCE, PSCW, LOCK_SHARED, LOCK_EXCLUSIVE, LOCK_ALL, SYNCS };

/* With the epoch begun at the target too, so that nothing has to wait for it. */
static void begin(enum sync how)
{
	char byte;

	MPI_Barrier(MPI_COMM_WORLD);
	if (how == FENCE)
		MPI_Win_fence(0, win);
	else if (how == PSCW)
		pscw_begins(win, from, to);
	else if (how == LOCK_ALL)
		MPI_Win_lock_all(0, win);
	else
		MPI_Win_lock(how == LOCK_SHARED ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, to, 0, win);
	if (how == FENCE || how == PSCW) {
		MPI_Barrier(MPI_COMM_WORLD); /* behind the posts, and the fence's own */
		MPI_Barrier(MPI_COMM_WORLD);
	} else {
		MPI_Get(&byte, 1, MPI_BYTE, to, 0, 1, MPI_BYTE, win);
		MPI_Win_flush(to, win);
	}
}

static void end(enum sync how)
{
	if (how == FENCE)
		MPI_Win_fence(0, win);
	else if (how == PSCW)
		MPI_Win_complete(win), MPI_Win_wait(win);
	else if (how == LOCK_ALL)
		MPI_Win_unlock_all(win);
	else
		MPI_Win_unlock(to, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void prepare(unsigned char *mem, int k)
{
	for (int i = 0; i < WINDOW; i++)
		mem[i] = old_byte(rank, k, i);
	for (int i = 0; i < (int)sizeof(origin); i++)
		origin[i] = new_byte(rank, k, i);
}

static unsigned long long at_once(void)
{
	return counted("glex_rma_puts") + counted("glex_rma_gets");
}

/* Where a block of n bytes begins, the same at all ranks. */
static int place(int n)
{
	return n < WINDOW - 64 ? 24 + rnd(WINDOW - 64 - n) : 0;
}

/* Puts n bytes of origin + at to the same place of the window, or gets them. */
static void operate(enum shape shape, int at, int n, int is_get, int is_request)
{
	MPI_Request req = MPI_REQUEST_NULL;
	MPI_Datatype type;
	int shift, count = describe(shape, n, &type, &shift);
	unsigned char *buf = origin + at - shift;

	if (is_get && is_request)
		MPI_Rget(buf, count, type, to, at - shift, count, type, win, &req);
	else if (is_get)
		MPI_Get(buf, count, type, to, at - shift, count, type, win);
	else if (is_request)
		MPI_Rput(buf, count, type, to, at - shift, count, type, win, &req);
	else
		MPI_Put(buf, count, type, to, at - shift, count, type, win);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Type_free(&type);
}

/* The byte that shape leaves out of n at 0; -1: none. */
static int hole(enum shape shape, int n)
{
	return shape == GAPS && n > 1 ? n / 2 : -1;
}

/* One more than n if there is a hole. */
static int reach(enum shape shape, int n)
{
	return n + (hole(shape, n) >= 0);
}

static void check_put(const unsigned char *mem, enum shape shape, int at, int n, int k)
{
	int bad = 0;

	for (int i = 0; i < WINDOW; i++) {
		int is_new = i >= at && i < at + reach(shape, n) && i - at != hole(shape, n);

		bad += mem[i] != (is_new ? new_byte(from, k, i) : old_byte(rank, k, i));
	}
	check(!bad, "a put has left something else in the window");
}

static void check_got(enum shape shape, int at, int n, int k)
{
	int bad = 0;

	for (int i = 0; i < (int)sizeof(origin); i++) {
		int is_new = i >= at && i < at + reach(shape, n) && i - at != hole(shape, n);

		bad += origin[i] != (is_new ? old_byte(to, k, i) : new_byte(rank, k, i));
	}
	check(!bad, "a get has left something else in the buffer");
}

/* One operation an epoch: how many went at once. */
static int round_of(unsigned char *mem, enum sync how, enum shape shape, int n, int k)
{
	int at = shape == BYTES || shape == PAIRS ? place(n) : 24 + rnd(40), is_request = 0, is_get = rnd(2);
	unsigned long long before;

	if (at + n + 1 > WINDOW)
		n = WINDOW - at - 1;
	if (how >= LOCK_SHARED)
		is_request = rnd(3) == 0;
	prepare(mem, k);
	begin(how);
	before = at_once();
	operate(shape, at, n, is_get, is_request);
	before = at_once() - before;
	end(how);
	if (is_get)
		check_got(shape, at, n, k);
	else
		check_put(mem, shape, at, n, k);
	return (int)before;
}

static void data(unsigned char *mem, int direct)
{
	int k = 0, n = 0, all = 0;

	for (int how = 0; how < SYNCS; how++) {
		for (int i = 0; i < LENGTHS; i++) {
			for (int shape = 0; shape < SHAPES; shape++) {
				int went = round_of(mem, (enum sync)how, (enum shape)shape, lengths[i], k++);

				all += PIECES >> shape & 1;
				n += went;
				if (shape == GAPS && lengths[i] > 1)
					check(!went, "what is not contiguous went at once");
			}
		}
	}
	/* an epoch of which an answer was late is no error */
	check(direct ? n > all * 3 / 4 : n == 0, direct ? "few went at once" : "some went at once");
}

static void run_data(const char *kind, int direct)
{
	unsigned char *mem = static_memory + (4096 - (uintptr_t)static_memory % 4096), stack_window[WINDOW],
		      *heap = malloc(WINDOW + 100);
	int is_allocated = !strcmp(kind, "ALLOCATED");

	if (!strcmp(kind, "HEAP"))
		mem = heap + 37;
	if (!strcmp(kind, "STACK"))
		mem = stack_window;
	if (is_allocated)
		MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	else
		MPI_Win_create(mem, WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	data(mem, direct);
	MPI_Win_free(&win);
	free(heap);
}

/* ---- order --------------------------------------------------------------------- */

static void run_order(void)
{
	enum { ROUNDS = 20000, LINE = 128 };
	int *mem, *seen = calloc(ROUNDS, sizeof(int)), *both = calloc(ROUNDS, sizeof(int)), bad = 0;

	MPI_Win_allocate(ROUNDS * 2 * LINE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	memset(mem, 0, (size_t)ROUNDS * 2 * LINE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Get(seen, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
	MPI_Win_flush_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int k = 0; k < ROUNDS && rank < 2; k++) {
		int one = 1;

		MPI_Put(&one, 1, MPI_INT, 2, (MPI_Aint)(2 * k + rank) * LINE, 1, MPI_INT, win);
		MPI_Win_flush(2, win);
		MPI_Get(&seen[k], 1, MPI_INT, 2, (MPI_Aint)(2 * k + !rank) * LINE, 1, MPI_INT, win);
		MPI_Win_flush(2, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(seen, both, ROUNDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int k = 0; k < ROUNDS; k++)
		bad += both[k] == 0;
	check(!bad, "both got what was there before the other's put, which was complete");
	MPI_Win_free(&win);
	free(seen);
	free(both);
}

/* ---- a rank that looks ------------------------------------------------------------ */

/* Rank 0 looks in rank 1's window for what rank 1 writes when rank 2 has written to rank 0, which needs rank 0. */
static void run_spin(void)
{
	int *mem, value = 0, one = 1;

	MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	*mem = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int k = 1; k <= 200; k++) {
		if (rank == 0) {
			MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
			while (value < k) {
				MPI_Get(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
				MPI_Win_flush(1, win);
			}
			MPI_Win_unlock(1, win);
		} else if (rank == 1) {
			MPI_Recv(&value, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
			__atomic_store_n(mem, k, __ATOMIC_RELEASE); /* relaxed: stronger, the NIC may look at it */
			MPI_Win_unlock(1, win);
		} else if (rank == 2) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
			MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
			MPI_Win_unlock(0, win);
			MPI_Send(&k, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	check(rank != 0 || *mem == 200, "what was added is not there");
	MPI_Win_free(&win);
}

/* ---- sums ------------------------------------------------------------------------- */

enum { ADDED, TICKETS, SWAPPED, GATHERED, DERIVED, COUNTERS };

/* One that is done by compare and swap. */
static void add_by_swap(long *one, int target)
{
	long seen = 0, next, old;

	for (;;) {
		next = seen + *one;
		MPI_Compare_and_swap(&next, &seen, &old, MPI_LONG, target, SWAPPED, win);
		MPI_Win_flush(target, win);
		if (old == seen)
			return;
		seen = old;
	}
}

/* In every way once. */
static void add_to(int target, unsigned char *taken, MPI_Datatype pair)
{
	long one = 1, ones[2] = {1, 1}, ticket, before[2];

	MPI_Accumulate(&one, 1, MPI_LONG, target, ADDED, 1, MPI_LONG, MPI_SUM, win);
	MPI_Fetch_and_op(&one, &ticket, MPI_LONG, target, TICKETS, MPI_SUM, win);
	MPI_Get_accumulate(ones, 1, MPI_LONG, before, 1, MPI_LONG, target, GATHERED, 1, MPI_LONG, MPI_SUM, win);
	if (rnd(4) == 0) /* by packets: of every other number */
		MPI_Accumulate(ones, 2, MPI_LONG, target, DERIVED, 1, pair, MPI_SUM, win);
	MPI_Win_flush(target, win);
	add_by_swap(&one, target);
	taken[ticket]++;
}

static void run_sums(int direct)
{
	enum { ROUNDS = 3000 };
	int n = ROUNDS * ranks, bad = 0, rounds[2] = {0, 0};
	unsigned char *taken = calloc((size_t)n * (size_t)ranks, 1), *all = calloc((size_t)n * (size_t)ranks, 1);
	unsigned long long before = counted("glex_rma_sums");
	MPI_Datatype pair;
	long *mem;

	state = (unsigned)rank + 1;
	MPI_Type_vector(2, 1, 2, MPI_LONG, &pair);
	MPI_Type_commit(&pair);
	MPI_Win_allocate((COUNTERS + 4) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	memset(mem, 0, (COUNTERS + 4) * sizeof(long));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int k = 0; k < ROUNDS; k++)
		for (int target = 0; target < ranks; target++)
			add_to(target, taken + (size_t)target * (size_t)n, pair);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Reduce(taken, all, n * ranks, MPI_UNSIGNED_CHAR, MPI_SUM, 0, MPI_COMM_WORLD);
	for (int i = 0; i < n * ranks && rank == 0; i++)
		bad += all[i] != 1;
	check(!bad, "a number was given twice, or not at all");
	check(mem[ADDED] == n && mem[TICKETS] == n && mem[SWAPPED] == n && mem[GATHERED] == n, "something was lost");
	rounds[0] = (int)mem[DERIVED];
	MPI_Allreduce(&rounds[0], &rounds[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check(mem[DERIVED] == mem[DERIVED + 2] && rounds[1] > 0, "something of what came by packets was lost");
	before = counted("glex_rma_sums") - before;
	check(direct ? before > (unsigned)n : before == 0, direct ? "few went at once" : "some went at once");
	MPI_Type_free(&pair);
	MPI_Win_free(&win);
	free(taken);
	free(all);
}

/* ---- types ---------------------------------------------------------------------------- */

/* Elements of a type as MPI_Reduce_local has them, the reference. */
static void sum_of(MPI_Datatype type, MPI_Op op, int n)
{
	unsigned char in[64 * 32], old[64 * 32], want[64 * 32], result[64 * 32], *mem = NULL;
	int size;

	MPI_Type_size(type, &size);
	for (int i = 0; i < n * size; i++) {
		in[i] = (unsigned char)(i % size == size - 1 ? 0x3f
							     : rnd(100)); /* of floating point something finite */
		old[i] = (unsigned char)(i % size == size - 1 ? 0x40 : rnd(100));
	}
	MPI_Win_allocate(64 * 32 + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	memset(mem, 0x55, 64 * 32 + 64);
	memcpy(mem + 16, old, (size_t)(n * size));
	memcpy(want, old, (size_t)(n * size));
	if (op == MPI_REPLACE)
		memcpy(want, in, (size_t)(n * size));
	else if (op != MPI_NO_OP)
		MPI_Reduce_local(in, want, n, type, op);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, to, MPI_MODE_NOCHECK, win);
	if (rnd(2) && op != MPI_NO_OP) {
		MPI_Accumulate(in, n, type, to, 16, n, type, op, win);
	} else {
		MPI_Get_accumulate(in, n, type, result, n, type, to, 16, n, type, op, win);
		MPI_Win_flush(to, win);
		check(!memcmp(result, old, (size_t)(n * size)), "it was not what it had been");
	}
	MPI_Win_unlock(to, win);
	MPI_Barrier(MPI_COMM_WORLD);
	check(!memcmp(mem + 16, want, (size_t)(n * size)), "a sum is wrong");
	for (int i = 0; i < 64 * 32 + 64; i++)
		check((i >= 16 && i < 16 + n * size) || mem[i] == 0x55, "something else has changed");
	MPI_Win_free(&win);
}

static void run_types(void)
{
	static const MPI_Op whole[] = {MPI_SUM,	 MPI_PROD, MPI_MIN, MPI_MAX,  MPI_BAND,	   MPI_BOR,
				       MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_REPLACE, MPI_NO_OP};
	static const MPI_Datatype numbers[] = {MPI_INT8_T,  MPI_UINT8_T,  MPI_SHORT,   MPI_UNSIGNED_SHORT,
					       MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T};
	static const MPI_Datatype reals[] = {MPI_FLOAT, MPI_DOUBLE};
	unsigned long long before = counted("glex_rma_sums");
	int n = 0;

	for (size_t o = 0; o < sizeof(whole) / sizeof(whole[0]); o++) {
		for (size_t t = 0; t < sizeof(numbers) / sizeof(numbers[0]); t++, n++)
			sum_of(numbers[t], whole[o], 1 + rnd(64));
		for (size_t t = 0; t < 2 && (o < 4 || o >= 10); t++, n++)
			sum_of(reals[t], whole[o], 1 + rnd(64));
	}
	sum_of(MPI_BYTE, MPI_REPLACE, 63);
	check(counted("glex_rma_sums") - before == (unsigned)n + 1, "not all went at once");
}

/* ---- a lock that nobody gives back ------------------------------------------------------ */

static void run_orphan(void)
{
	enum { LONG = 1 << 19 };
	static int ones[LONG];
	int *mem, pid = (int)getpid(), pids[3];
	double start;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Win_allocate(LONG * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	memset(mem, 0, LONG * sizeof(int));
	MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	for (int i = 0; i < LONG; i++)
		ones[i] = 1;
	if (rank == 2)
		for (;;) /* but for moments the lock is its own */
			MPI_Accumulate(ones, LONG, MPI_INT, 0, 0, LONG, MPI_INT, MPI_SUM, win);
	if (rank == 1) {
		usleep(100000);
		kill(pids[2], SIGKILL);
	}
	usleep(200000);
	start = MPI_Wtime();
	for (int k = 0; k < 100; k++) {
		check(MPI_Accumulate(ones, 10, MPI_INT, 0, 0, 10, MPI_INT, MPI_SUM, win) == MPI_SUCCESS, "an error");
		check(MPI_Win_flush(0, win) == MPI_SUCCESS, "another error");
	}
	check(MPI_Wtime() - start < 5, "it took very long");
	MPI_Sendrecv(&pid, 1, MPI_INT, !rank, 0, pids, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("rank %d: ok\n", rank);
	fflush(stdout);
	_exit(0); /* the window cannot be freed any more */
}

/* ---- many -------------------------------------------------------------------------- */

static void put_to(MPI_Win where, int target, int x)
{
	MPI_Win_lock_all(MPI_MODE_NOCHECK, where);
	MPI_Put(&x, 1, MPI_INT, target, 0, 1, MPI_INT, where);
	MPI_Win_flush(target, where);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(where);
}

/* Windows over the memory of another one, and of one rank. */
static void run_nested(void)
{
	MPI_Win outer, inner, self, own;
	int *mem, *mine;

	MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &outer);
	MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_SELF, &mine, &own);
	MPI_Win_create(mem, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &inner);
	MPI_Win_create(mine, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &self);
	for (int k = 1; k < 4; k++) {
		put_to(k == 2 ? inner : outer, to, 10 * k + rank);
		check(*mem == 10 * k + from, "what was put is not there");
		put_to(self, to, 10 * k + rank);
		check(*mine == 10 * k + from, "what was put there is not there");
		put_to(own, 0, 7);
		check(*mine == 7, "what was put by oneself is not there");
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Win_free(&inner);
	MPI_Win_free(&self);
	MPI_Win_free(&own);
	put_to(outer, to, rank);
	check(*mem == from, "what was put in the end is not there");
	MPI_Win_free(&outer);
}

static void run_many(void)
{
	unsigned long long before = at_once();
	int n = 300, x = rank, *mem, mine;

	for (int k = 0; k < n; k++) {
		if (k % 2)
			MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
		else
			MPI_Win_create(mem = &mine, sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
		MPI_Put(&x, 1, MPI_INT, to, 0, 1, MPI_INT, win);
		MPI_Win_flush(to, win);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_unlock_all(win);
		check(*mem == from, "what was put is not there");
		MPI_Win_free(&win);
	}
	check(at_once() - before == (unsigned)n / 2, "not all windows that can be reached at once were");
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	to = (rank + 1) % ranks;
	from = (rank + ranks - 1) % ranks;
	check(argc > 1, "what is to be done?");
	if (!strcmp(argv[1], "data") && argc > 3)
		run_data(argv[2], !strcmp(argv[3], "DIRECT"));
	else if (!strcmp(argv[1], "order"))
		run_order();
	else if (!strcmp(argv[1], "spin"))
		run_spin();
	else if (!strcmp(argv[1], "sums") && argc > 2)
		run_sums(!strcmp(argv[2], "DIRECT"));
	else if (!strcmp(argv[1], "types"))
		run_types();
	else if (!strcmp(argv[1], "orphan"))
		run_orphan();
	else if (!strcmp(argv[1], "nested"))
		run_nested();
	else if (!strcmp(argv[1], "many"))
		run_many();
	else
		check(0, "no such thing");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		puts("ok");
	MPI_T_finalize();
	MPI_Finalize();
	return 0;
}
