/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rma_threads.c SEED ROUNDS [unreachable] - several threads of each rank write to and read from windows at once,
 * a window for each thread and one for all of them, lengths around and far above what is copied; every byte is
 * checked that a thread reads back, or that its counterpart has got.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"
#include "test/lib/seccomp.h"

#define THREADS 4
#define WORDS	(1 << 17) /* of the room that a thread has in each window, 512 KiB */

struct thread {
	pthread_t id;
	int nr;
	unsigned state;
	int *out, *in;
	MPI_Win own;
};

static int rank, ranks, to, rounds;
static MPI_Win common;

static unsigned rnd(struct thread *t, unsigned below)
{
	t->state = t->state * 1103515245u + 12345u;
	return (t->state >> 9) % below;
}

static int word(const struct thread *t, int k, int i)
{
	return (int)((unsigned)i * 2654435761u ^ (unsigned)(rank * 7919 + t->nr * 31 + k * 104729));
}

/* Writes n words, in one of the ways that there are. */
static void write_words(struct thread *t, MPI_Win win, MPI_Aint disp, int n)
{
	MPI_Request req;

	switch (rnd(t, 3)) {
	case 0:
		MPI_Put(t->out, n, MPI_INT, to, disp, n, MPI_INT, win);
		break;
	case 1:
		MPI_Rput(t->out, n, MPI_INT, to, disp, n, MPI_INT, win, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		break;
	default:
		MPI_Accumulate(t->out, n, MPI_INT, to, disp, n, MPI_INT, MPI_REPLACE, win);
		MPI_Win_flush_local(to, win);
	}
	MPI_Win_flush(to, win);
}

static void read_words(struct thread *t, MPI_Win win, MPI_Aint disp, int n)
{
	MPI_Request req;

	switch (rnd(t, 3)) {
	case 0:
		MPI_Get(t->in, n, MPI_INT, to, disp, n, MPI_INT, win);
		break;
	case 1:
		MPI_Rget(t->in, n, MPI_INT, to, disp, n, MPI_INT, win, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		return;
	default:
		MPI_Get_accumulate(NULL, 0, MPI_INT, t->in, n, MPI_INT, to, disp, n, MPI_INT, MPI_NO_OP, win);
	}
	MPI_Win_flush(to, win);
}

static void round_of(struct thread *t, int k)
{
	static const int sizes[] = {1, 1000, 4096, 4097, 8192, 16384, 65536, 100000};
	int shared = (int)rnd(t, 2), n = sizes[rnd(t, sizeof(sizes) / sizeof(sizes[0]))], i, bad = 0;
	MPI_Aint disp = (shared ? t->nr * WORDS : 0) + (MPI_Aint)rnd(t, 1000);
	MPI_Win win = shared ? common : t->own;

	for (i = 0; i < n; i++) {
		t->out[i] = word(t, k, i);
		t->in[i] = -1;
	}
	write_words(t, win, disp, n);
	memset(t->out, 0, (size_t)n * sizeof(int)); /* it is ours again */
	read_words(t, win, disp, n);
	for (i = 0; i < n; i++)
		bad += t->in[i] != word(t, k, i);
	check(!bad, "what was written is not what is read");
}

static void *run(void *arg)
{
	struct thread *t = arg;
	int k;

	for (k = 0; k < rounds; k++)
		round_of(t, k);
	return NULL;
}

static MPI_Win window(MPI_Aint words)
{
	MPI_Win win;
	void *mem;

	MPI_Win_allocate(words * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	MPI_Win_lock_all(0, win);
	return win;
}

static void end_window(MPI_Win *win)
{
	MPI_Win_unlock_all(*win);
	MPI_Win_free(win);
}

int main(int argc, char **argv)
{
	struct thread threads[THREADS];
	int i, level;

	if (argc > 3 && forbid_attach()) {
		perror("rma_threads: seccomp");
		return 1;
	}
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &i);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	check(level == MPI_THREAD_MULTIPLE && argc > 2, "no threads, or no arguments");
	to = (rank + 1) % ranks;
	rounds = atoi(argv[2]);
	common = window(THREADS * WORDS);
	for (i = 0; i < THREADS; i++) {
		threads[i].nr = i;
		threads[i].state = (unsigned)(atoi(argv[1]) * 1000 + rank * 100 + i);
		threads[i].out = malloc(WORDS * sizeof(int));
		threads[i].in = malloc(WORDS * sizeof(int));
		threads[i].own = window(WORDS);
	}
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i].id, NULL, run, &threads[i]);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	for (i = 0; i < THREADS; i++) {
		end_window(&threads[i].own);
		free(threads[i].out);
		free(threads[i].in);
	}
	end_window(&common);
	if (!rank)
		printf("lent %llu\n", counted("glex_lent"));
	MPI_T_finalize();
	MPI_Finalize();
	if (!rank)
		puts("ok");
	return 0;
}
