/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_soak.c FILE CALLS SEED [THREADS] - short collectives back to back, each rank
 * coming late to some of them; with THREADS, each of them on a communicator of its
 * own, all at once.
 *
 * All ranks draw the same calls from the seed.  FILE is memory that they share beside
 * MPI: each writes down how far it has come, so that whoever leaves a barrier sees
 * whether all had come to it.  What is reduced and broadcast depends on the call, so
 * results of different calls cannot be taken for each other.  Memory that grows from
 * the first tenth of the calls to the last is an error.
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

static void one(const struct worker *worker, uint64_t call, uint64_t *shared)
{
	uint64_t value, sum = 0;
	uint32_t what = roll(shared, 16), root = roll(shared, (uint32_t)ranks), i;
	int t = worker->index;

	/* relaxed: the barrier orders it */
	atomic_store_explicit(&come[t][rank], call, memory_order_relaxed);
	if (what < 7) {
		MPI_Barrier(worker->comm);
		for (i = 0; i < (uint32_t)ranks; i++) /* relaxed: as above */
			if (atomic_load_explicit(&come[t][i], memory_order_relaxed) < call)
				wrong(t, call, "a rank has left a barrier that another had not come to");
	} else if (what < 14) {
		value = call * 7 + (uint64_t)rank;
		MPI_Allreduce(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, worker->comm);
		if (sum != call * 7 * (uint64_t)ranks + (uint64_t)ranks * ((uint64_t)ranks - 1) / 2)
			wrong(t, call, "a sum is wrong");
	} else if (what == 14) {
		value = rank == (int)root ? call * 11 : 0;
		MPI_Bcast(&value, 1, MPI_UINT64_T, (int)root, worker->comm);
		if (value != call * 11)
			wrong(t, call, "a broadcast is wrong");
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
	static char mine[RANKS * PART], all[RANKS * PART];
	long before, after;

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
	MPI_Alltoall(mine, 1, MPI_CHAR, all, 1, MPI_CHAR, MPI_COMM_WORLD);
	MPI_Alltoall(mine, PART, MPI_CHAR, all, PART, MPI_CHAR, MPI_COMM_WORLD);
	calls = strtoull(argv[2], NULL, 0) / 10;
	all_work(worker, threads);
	before = resident();
	calls *= 9;
	seed++;
	all_work(worker, threads);
	after = resident();
	if (after > before + GROWTH)
		wrong(0, calls, "memory grows");
	for (t = 0; t < threads; t++)
		MPI_Comm_free(&worker[t].comm);
	if (rank == 0)
		printf("resident %ld KiB, then %ld KiB\nok\n", before, after);
	MPI_Finalize();
	return 0;
}
