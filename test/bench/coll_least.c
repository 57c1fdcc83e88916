/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_least.c - collectives of one word in shared memory.
 *
 * I1  Numbers only grow, and all ranks count alike.
 * I2  A word of the barrier's or an allreduce's call k is written again in call k + 2: by who has seen all of k + 1,
 *     and so all of k ended.
 * I3  One of a broadcast or a reduction is written again `ranks` calls later, or more: meanwhile each has been root, and
 *     has waited for what the others did after they had ended this call.
 *
 * Ordering: whoever waits for a stamp, or for one of the words before them, loads it with acquire; it is stored, or
 * added to, with release (the addition with both), after the words that it tells of.  `here` is a guess, relaxed.
 */
#define _GNU_SOURCE
#include "coll_least.h"

#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TURNS 3000
#define HERE  8	    /* processors beyond share words with these */
#define STAYS 20000 /* looks of who came last of its processor, before it gives way */

struct word {
	_Alignas(64) double value;
	_Atomic uint64_t stamp;
};

struct shared {
	_Alignas(64) _Atomic uint64_t arrived;
	_Atomic uint32_t here[HERE]; /* a processor's: the meeting, how many at the one before, how many so far */
	_Alignas(64) _Atomic uint64_t met;
	_Alignas(64) _Atomic uint64_t turns; /* of least_turn */
	_Atomic uint64_t is_over;
	struct word words[];
};

static struct shared *shared;

static MPI_Win win;
static int rank, ranks, crowded;
static uint64_t calls, meetings;

int least_open(void)
{
	MPI_Comm node;
	MPI_Aint size;
	int here, unit;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(node, &here);
	if (here == ranks) {
		size = rank ? 0 : (MPI_Aint)(sizeof(*shared) + 2 * (size_t)ranks * (size_t)ranks * sizeof(struct word));
		MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, node, &shared, &win);
		MPI_Win_shared_query(win, 0, &size, &unit, &shared);
		if (rank == 0)
			memset(shared, 0, (size_t)size);
		MPI_Barrier(node);
	}
	MPI_Comm_free(&node);
	crowded = ranks > sysconf(_SC_NPROCESSORS_ONLN);
	return here == ranks;
}

void least_close(void)
{
	MPI_Win_free(&win);
}

/* stays: looks that bring on nobody, before it gives way to others. */
static void wait_for(const _Atomic uint64_t *number, uint64_t least, int stays)
{
	while (atomic_load_explicit(number, memory_order_acquire) < least)
		if (crowded && stays-- <= 0)
			sched_yield();
}

/* As of glex_group_is_last_here: whether all who were on this processor the last time have come. */
static int is_last_here(void)
{
	_Atomic uint32_t *here = &shared->here[sched_getcpu() % HERE];
	uint32_t word = atomic_load_explicit(here, memory_order_relaxed); /* relaxed: a guess */

	if (word >> 16 != (uint16_t)meetings)
		word = (uint32_t)meetings << 16 | (word & 0xff) << 8;
	atomic_store_explicit(here, ++word, memory_order_relaxed); /* relaxed: a guess */
	return (word & 0xff) == (word >> 8 & 0xff);
}

/* Of call n, what rank r says. */
static struct word *word_of(uint64_t n, int r)
{
	return &shared->words[n % (2 * (uint64_t)ranks) * (uint64_t)ranks + (uint64_t)r];
}

static void say(struct word *word, double value)
{
	word->value = value;
	atomic_store_explicit(&word->stamp, calls, memory_order_release);
}

static double hear(const struct word *word)
{
	wait_for(&word->stamp, calls, 0);
	return word->value;
}

double least_turn(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	double start = MPI_Wtime(), seconds;
	cpu_set_t all, one;
	int i = 0;

	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(i, &all))
		i++;
	CPU_ZERO(&one);
	CPU_SET(i, &one);
	if (rank < 2)
		sched_setaffinity(0, sizeof(one), &one);
	for (i = 0; rank < 2 && i < TURNS; i++) {
		if (i == TURNS / 10)
			start = MPI_Wtime();
		while (atomic_load_explicit(&shared->turns, memory_order_acquire) % 2 != (uint64_t)rank)
			sched_yield();
		atomic_fetch_add_explicit(&shared->turns, 1, memory_order_acq_rel);
	}
	seconds = (MPI_Wtime() - start) / (2 * (TURNS - TURNS / 10));
	if (rank == 1)
		atomic_store_explicit(&shared->is_over, 1, memory_order_release);
	while (!atomic_load_explicit(&shared->is_over, memory_order_acquire))
		nanosleep(&ms, NULL);
	sched_setaffinity(0, sizeof(all), &all);
	return seconds;
}

void least_barrier(void)
{
	uint64_t all = ++meetings * (uint64_t)ranks;
	int stays = crowded && is_last_here() ? STAYS : 0;

	if (atomic_fetch_add_explicit(&shared->arrived, 1, memory_order_acq_rel) + 1 == all)
		atomic_store_explicit(&shared->met, meetings, memory_order_release);
	else
		wait_for(&shared->met, meetings, stays);
}

void least_bcast(double *word, int root)
{
	struct word *there = word_of(++calls, root);

	if (rank == root)
		say(there, *word);
	else
		*word = hear(there);
}

void least_reduce(const double *mine, double *sum, int root)
{
	int i;

	calls++;
	if (rank != root) {
		say(word_of(calls, rank), *mine);
		return;
	}
	*sum = *mine;
	for (i = 0; i < ranks; i++)
		if (i != rank)
			*sum += hear(word_of(calls, i));
}

void least_begin(const double *mine)
{
	say(word_of(++calls, rank), *mine);
}

/* Nobody's word is written again before he has heard those of the next call, which come after this. */
void least_end(double *sum)
{
	int i;

	*sum = 0;
	for (i = 0; i < ranks; i++)
		*sum += hear(word_of(calls, i));
}

void least_allreduce(const double *mine, double *sum)
{
	int i;

	say(word_of(++calls, rank), *mine);
	least_barrier();
	*sum = 0;
	for (i = 0; i < ranks; i++)
		*sum += word_of(calls, i)->value;
}
