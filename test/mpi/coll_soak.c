/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_soak.c FILE CALLS SEED [THREADS] - collectives back to back, most of them short, each rank
 * coming late to some of them; with THREADS, each of them on a communicator of its
 * own, all at once.
 *
 * All ranks draw the same calls from the seed.  FILE is memory that they share beside
 * MPI: each writes down how far it has come, so that whoever leaves a barrier sees
 * whether all had come to it.  What is reduced and broadcast depends on the call, so
 * results of different calls cannot be taken for each other.  Memory that grows from
 * the first tenth of the calls, or thousand, to the last is an error.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 8
#define RANKS	64
#define PART	2048 /* bytes that are fetched from the sender's blocks */
#define LONG	512  /* numbers: more than a line, or two, of each */
#define FIRST	1000 /* calls, at least, before memory is looked at: there were some of all kinds */
#define GROWTH	1024 /* KiB: who broadcasts on a tree for the first time maps another endpoint of its root's */

static _Atomic uint64_t (*come)[RANKS]; /* [thread][rank]: the call it has come to, from 1 */
static int rank, ranks;
static uint64_t calls;
static unsigned seed;

struct worker {
	pthread_t thread;
	int index;
	MPI_Comm comm;
};

static uint32_t roll(uint64_t *dice, uint32_t below)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*dice >> 33) % below;
}

static void wrong(int thread, uint64_t call, const char *what)
{
	printf("rank %d, thread %d, call %llu: %s\n", rank, thread, (unsigned long long)call, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void be_late(uint64_t *dice)
{
	uint32_t i, n;

	switch (roll(dice, 16)) {
	case 0:
		sched_yield();
		break;
	case 1:
		for (i = 0, n = roll(dice, 4000); i < n; i++)
			atomic_signal_fence(memory_order_seq_cst); /* relaxed: passes the time */
		break;
	default:
		break;
	}
}

/* Each gives all, or one, what says who it is and which call this is; those others have it of everybody. */
static void gather(const struct worker *worker, uint64_t call, int root)
{
	uint64_t value = call * 13 + (uint64_t)rank, all[RANKS];
	int i;

	if (root < 0)
		MPI_Allgather(&value, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, worker->comm);
	else
		MPI_Gather(&value, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, root, worker->comm);
	for (i = 0; i < ranks && (root < 0 || rank == root); i++)
		if (all[i] != call * 13 + (uint64_t)i)
			wrong(worker->index, call, "a gather is wrong");
}

static void exchange(const struct worker *worker, uint64_t call, int sums)
{
	uint64_t to[RANKS], from[RANKS], sum = 0;
	int i;

	for (i = 0; i < ranks; i++)
		to[i] = call * 17 + (uint64_t)(rank * ranks + i);
	if (sums)
		MPI_Reduce_scatter_block(to, &sum, 1, MPI_UINT64_T, MPI_SUM, worker->comm);
	else
		MPI_Alltoall(to, 1, MPI_UINT64_T, from, 1, MPI_UINT64_T, worker->comm);
	for (i = 0; i < ranks; i++) {
		to[i] = call * 17 + (uint64_t)(i * ranks + rank);
		sum -= to[i];
		if (!sums && from[i] != to[i])
			wrong(worker->index, call, "an exchange is wrong");
	}
	if (sums && sum)
		wrong(worker->index, call, "a sum of blocks is wrong");
}

static void reduce_long(const struct worker *worker, uint64_t call)
{
	uint64_t value[LONG], sum[LONG];
	uint64_t i;

	for (i = 0; i < LONG; i++)
		value[i] = call * i + (uint64_t)rank;
	MPI_Allreduce(value, sum, LONG, MPI_UINT64_T, MPI_MAX, worker->comm);
	for (i = 0; i < LONG; i++)
		if (sum[i] != call * i + (uint64_t)ranks - 1)
			wrong(worker->index, call, "a long maximum is wrong");
}

/* Several are under way, one behind the other. */
static void all_later(const struct worker *worker, uint64_t call, int root)
{
	uint64_t value = call ^ (uint64_t)rank << 40, one = 0, all = 0, word = rank == root ? call * 19 : 0, want = 0;
	MPI_Status status[4];
	MPI_Request req[4];
	uint64_t i;

	MPI_Ireduce(&value, &one, 1, MPI_UINT64_T, MPI_BXOR, root, worker->comm, &req[0]);
	MPI_Ibcast(&word, 1, MPI_UINT64_T, root, worker->comm, &req[1]);
	MPI_Ibarrier(worker->comm, &req[2]);
	MPI_Iallreduce(&value, &all, 1, MPI_UINT64_T, MPI_BXOR, worker->comm, &req[3]);
	if (call % 2)
		MPI_Wait(&req[3], &status[3]);
	MPI_Waitall(4, req, status);
	for (i = 0; i < (uint64_t)ranks; i++)
		want ^= call ^ i << 40;
	if (all != want || (rank == root && one != want))
		wrong(worker->index, call, "a reduction that does not block is wrong");
	if (word != call * 19)
		wrong(worker->index, call, "a broadcast that does not block is wrong");
	for (i = 0; i < (uint64_t)ranks; i++) /* relaxed: behind a barrier */
		if (atomic_load_explicit(&come[worker->index][i], memory_order_relaxed) < call)
			wrong(worker->index, call, "a barrier that does not block is wrong");
}

/* What there is less of. */
static void one_more(const struct worker *worker, uint64_t call, uint32_t what, int root)
{
	switch (what) {
	case 0:
		gather(worker, call, root);
		break;
	case 1:
		gather(worker, call, -1);
		break;
	case 2:
	case 3:
		exchange(worker, call, what == 3);
		break;
	case 4:
		reduce_long(worker, call);
		break;
	default:
		all_later(worker, call, root);
	}
}

static void one(const struct worker *worker, uint64_t call, uint64_t *shared)
{
	uint64_t value, sum = 0;
	uint32_t what = roll(shared, 64), root = roll(shared, (uint32_t)ranks), i;
	int t = worker->index;

	/* relaxed: the barrier orders it */
	atomic_store_explicit(&come[t][rank], call, memory_order_relaxed);
	if (what < 26) {
		MPI_Barrier(worker->comm);
		for (i = 0; i < (uint32_t)ranks; i++) /* relaxed: as above */
			if (atomic_load_explicit(&come[t][i], memory_order_relaxed) < call)
				wrong(t, call, "a rank has left a barrier that another had not come to");
	} else if (what < 52) {
		value = call * 7 + (uint64_t)rank;
		MPI_Allreduce(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, worker->comm);
		if (sum != call * 7 * (uint64_t)ranks + (uint64_t)ranks * ((uint64_t)ranks - 1) / 2)
			wrong(t, call, "a sum is wrong");
	} else if (what < 55) {
		value = rank == (int)root ? call * 11 : 0;
		MPI_Bcast(&value, 1, MPI_UINT64_T, (int)root, worker->comm);
		if (value != call * 11)
			wrong(t, call, "a broadcast is wrong");
	} else if (what >= 58) {
		one_more(worker, call, what - 58, (int)root);
	} else {
		value = call + (uint64_t)rank;
		MPI_Reduce(&value, &sum, 1, MPI_UINT64_T, MPI_MAX, (int)root, worker->comm);
		if (rank == (int)root && sum != call + (uint64_t)ranks - 1)
			wrong(t, call, "a maximum is wrong");
	}
}

static void *work(void *arg)
{
	const struct worker *worker = arg;
	uint64_t shared = seed * 1000003u + (unsigned)worker->index, mine = shared ^ (uint64_t)(rank + 1) << 40, call;

	for (call = 1; call <= calls; call++) {
		be_late(&mine);
		one(worker, call, &shared);
	}
	return NULL;
}

/* Of this process, in KiB. */
static long resident(void)
{
	long pages = 0, all = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/*
 * MPICH takes memory for 1024 requests, a MiB, when more than eight are first under way
 * at once.  When that is depends on how late the threads are; here it is before memory is
 * looked at.
 */
static void many_requests(void)
{
	MPI_Request req[16];
	MPI_Status status[16];
	int i;

	for (i = 0; i < 16; i++)
		MPI_Irecv(NULL, 0, MPI_CHAR, rank, i, MPI_COMM_WORLD, &req[i]);
	for (i = 0; i < 16; i++)
		MPI_Send(NULL, 0, MPI_CHAR, rank, i, MPI_COMM_WORLD);
	MPI_Waitall(16, req, status);
}

static void all_work(struct worker *worker, int threads)
{
	int t;

	for (t = 1; t < threads; t++)
		if (pthread_create(&worker[t].thread, NULL, work, &worker[t]) != 0)
			wrong(t, 0, "no thread");
	work(&worker[0]);
	for (t = 1; t < threads; t++)
		pthread_join(worker[t].thread, NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	for (t = 0; t < threads; t++) /* relaxed: between two barriers of main */
		atomic_store_explicit(&come[t][rank], 0, memory_order_relaxed);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int threads = argc > 4 ? atoi(argv[4]) : 1, provided, fd, t;
	struct worker worker[THREADS];
	static char mine[RANKS * PART], theirs[RANKS * PART];
	long before, after;
	uint64_t all;

	if (argc < 4 || threads < 1 || threads > THREADS) {
		fputs("usage: coll_soak FILE CALLS SEED [THREADS]\n", stderr);
		return 2;
	}
	MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(uint64_t) * THREADS * RANKS) != 0 || ranks > RANKS ||
	    (threads > 1 && provided < MPI_THREAD_MULTIPLE))
		wrong(0, 0, "it cannot begin");
	come = mmap(NULL, sizeof(uint64_t) * THREADS * RANKS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (come == MAP_FAILED)
		wrong(0, 0, "no memory");
	seed = (unsigned)strtoul(argv[3], NULL, 0);
	for (t = 0; t < threads; t++) {
		worker[t].index = t;
		MPI_Comm_dup(MPI_COMM_WORLD, &worker[t].comm);
	}
	/* All map all others' endpoints, and their blocks, where a peer that is silent for long is looked for. */
	MPI_Alltoall(mine, 1, MPI_CHAR, theirs, 1, MPI_CHAR, MPI_COMM_WORLD);
	MPI_Alltoall(mine, PART, MPI_CHAR, theirs, PART, MPI_CHAR, MPI_COMM_WORLD);
	many_requests();
	all = strtoull(argv[2], NULL, 0);
	calls = all / 10 < FIRST ? FIRST : all / 10;
	all_work(worker, threads);
	before = resident();
	calls = all - all / 10;
	seed++;
	all_work(worker, threads);
	after = resident();
	if (after > before + GROWTH) {
		printf("resident %ld KiB, then %ld KiB\n", before, after);
		wrong(0, calls, "memory grows");
	}
	for (t = 0; t < threads; t++)
		MPI_Comm_free(&worker[t].comm);
	if (rank == 0)
		printf("resident %ld KiB, then %ld KiB\nok\n", before, after);
	MPI_Finalize();
	return 0;
}
