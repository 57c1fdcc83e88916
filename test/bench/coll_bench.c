/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_bench.c - how long collectives of MPI take, back to back.
 *
 *   barrier, bcast, allreduce, reduce, allgather, gather    microseconds a call, of the slowest rank
 *   pure         a non-blocking allreduce of 8 bytes, call and wait, of the slowest rank
 *   begin, end   of one with a computation as long as that in between: microseconds that its
 *                call takes, and the wait for it, of the slowest rank
 *   overlap      of the time of a pure one how much the computation hides, in per cent; what
 *                remains is the rank's own work, and where ranks outnumber processors the
 *                changes from one rank to the next, which no collective can hide
 *   computing    barrier, each rank computing for a random time (the mean of it is
 *                subtracted) before it calls
 *
 *   turn         of `least`: what a change from one rank to another takes on one processor.  Of n ranks on p
 *                processors each must have run once for a barrier: n / p - 1 changes on each
 *
 * The bytes of gathers are each rank's, and those of all up to 16 MiB.
 *
 * Named rows alone are measured, else all; with `least` those that coll_least.h has, by that and no MPI.  A sample is
 * a batch; the value of a row is the median of many.  Broadcasts change their root, so that nobody can run ahead of
 * the others for long.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll_least.h"

#define SAMPLES 15
#define MOST	(1 << 24)

static int rank, ranks;
static char *from, *to;
static double budget = 0.01; /* seconds a sample */
static const char *rows;     /* that are wanted, with commas between; NULL: all */
static int by_hand;	     /* by coll_least.h */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* For so many seconds of processor time, without a call of MPI. */
static void compute(double seconds)
{
	struct timespec t;
	double until;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	until = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 + seconds;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while ((double)t.tv_sec + (double)t.tv_nsec * 1e-9 < until);
}

/*
 * The same in rounds of a loop: where a look at the clock would take as long as what is
 * measured.  The eight additions of a round do not wait for each other: a processor that
 * waited for its own loop would do MPI's work beside it, and that would pass for overlap.
 */
static void turn(long rounds)
{
	static double x[8];
	long i;
	int k;

	for (i = 0; i < rounds; i++) {
		for (k = 0; k < 8; k++)
			x[k] += 0.5;
		__asm__ __volatile__("" : : "r"(x) : "memory");
	}
}

static double rounds_a_second(void)
{
	double best = 0, start, rate;
	int i;

	for (i = 0; i < 50; i++) {
		start = MPI_Wtime();
		turn(100000);
		rate = 100000 / (MPI_Wtime() - start);
		if (rate > best)
			best = rate;
	}
	return best;
}

/* By no MPI: coll_least.h. */
static void least(const char *what, int i)
{
	double *word = (double *)from, *sum = (double *)to;

	if (!strcmp(what, "barrier"))
		least_barrier();
	else if (!strcmp(what, "bcast"))
		least_bcast(word, i % ranks);
	else if (!strcmp(what, "allreduce"))
		least_allreduce(word, sum);
	else
		least_reduce(word, sum, i % ranks);
}

static void one(const char *what, int size, int i)
{
	if (by_hand) {
		least(what, i);
		return;
	}
	switch (what[0]) {
	case 'b':
		if (what[1] == 'a')
			MPI_Barrier(MPI_COMM_WORLD);
		else
			MPI_Bcast(from, size, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
		return;
	case 'a':
		if (what[3] == 'g')
			MPI_Allgather(from, size, MPI_BYTE, to, size, MPI_BYTE, MPI_COMM_WORLD);
		else
			MPI_Allreduce(from, to, size / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		return;
	case 'g':
		MPI_Gather(from, size, MPI_BYTE, to, size, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
		return;
	default:
		MPI_Reduce(from, to, size / 8, MPI_DOUBLE, MPI_SUM, i % ranks, MPI_COMM_WORLD);
	}
}

static double batch(const char *what, int size, int count)
{
	double start, taken, most;
	int i;

	PMPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (i = 0; i < count; i++)
		one(what, size, i);
	taken = (MPI_Wtime() - start) / count;
	MPI_Allreduce(&taken, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static double row(const char *what, int size)
{
	double sample[SAMPLES], taken;
	int count = 4, i;

	while ((taken = batch(what, size, count)) * count < budget / 2 && count < 1000000)
		count *= 2;
	for (i = 0; i < SAMPLES; i++)
		sample[i] = batch(what, size, count);
	qsort(sample, SAMPLES, sizeof(sample[0]), compare);
	return sample[SAMPLES / 2] * 1e6;
}

/* So many fill a sample. */
static int calls_of(double seconds)
{
	int count = (int)(budget / seconds);

	return count < 5 ? 5 : count > 1000 ? 1000 : count;
}

enum { ALONE, IDLE, WITH, WAYS };

static MPI_Request under_way;

static void begin(void)
{
	if (by_hand)
		least_begin((double *)from);
	else
		MPI_Iallreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &under_way);
}

static void end(void)
{
	if (by_hand)
		least_end((double *)to);
	else
		MPI_Wait(&under_way, MPI_STATUS_IGNORE);
}

/* Seconds a call of non-blocking allreduces (IDLE: of none) with so much computing before the wait. */
static double overlapped(int way, int count, long rounds)
{
	double start;
	int i;

	PMPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (i = 0; i < count; i++) {
		if (way != IDLE)
			begin();
		if (way != ALONE)
			turn(rounds);
		if (way != IDLE)
			end();
	}
	return (MPI_Wtime() - start) / count;
}

/* Where it goes: the same as WITH, with looks at the clock in between, the time of which is left out. */
static void parts(int count, long rounds, double *begin_p, double *end_p)
{
	double clock = MPI_Wtime(), begun = 0, ended = 0, t, u;
	int i;

	for (i = 0; i < count; i++)
		t = MPI_Wtime();
	clock = (t - clock) / count;
	PMPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < count; i++) {
		t = MPI_Wtime();
		begin();
		u = MPI_Wtime();
		begun += u - t - clock;
		turn(rounds);
		t = MPI_Wtime();
		end();
		u = MPI_Wtime();
		ended += u - t - clock;
	}
	*begin_p = begun / count;
	*end_p = ended / count;
}

static double median_of(double *sample)
{
	qsort(sample, SAMPLES, sizeof(sample[0]), compare);
	return sample[SAMPLES / 2];
}

static void tell(const char *what, int size, double value, const char *unit)
{
	if (rank == 0)
		printf("%s %d %.3f %s\n", what, size, value, unit);
	fflush(stdout);
}

/* Of the slowest rank each: that a fast one waits for it is nothing a collective could hide. */
static void overlap(void)
{
	double sample[4][SAMPLES], mine[4], most[4], alone = batch("allreduce", 8, 50), speed = rounds_a_second(), more;
	static const char *const name[] = {"pure", "begin", "end", "overlap"};
	int count = calls_of(3 * alone), k, i;
	long rounds;

	for (k = 0; k < SAMPLES; k++) {
		mine[ALONE] = overlapped(ALONE, count, 0);
		MPI_Allreduce(mine, most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		rounds = (long)(most[ALONE] * speed);
		mine[IDLE] = overlapped(IDLE, count, rounds); /* as it is on a shared processor */
		mine[WITH] = overlapped(WITH, count, rounds);
		MPI_Allreduce(mine, most, WAYS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		more = (most[WITH] - most[IDLE]) / most[ALONE];
		sample[0][k] = 1e6 * most[ALONE];
		sample[3][k] = 100 * (more < 0 ? 1 : more > 1 ? 0 : 1 - more);
		parts(count, rounds, &mine[0], &mine[1]);
		MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		sample[1][k] = 1e6 * most[0];
		sample[2][k] = 1e6 * most[1];
	}
	for (i = 0; i < 4; i++)
		tell(name[i], 8, median_of(sample[i]), i < 3 ? "us" : "%");
}

static double computing(void)
{
	double sample[SAMPLES], start, idle, with;
	int count = calls_of(batch("barrier", 0, 50)), i, k, pass;

	for (k = 0; k < SAMPLES; k++) {
		for (pass = 0, idle = with = 0; pass < 2; pass++) {
			srand((unsigned)(rank * 1000 + k));
			PMPI_Barrier(MPI_COMM_WORLD);
			start = MPI_Wtime();
			for (i = 0; i < count; i++) {
				compute(rand() % 16 * 1e-6);
				if (pass)
					MPI_Barrier(MPI_COMM_WORLD);
			}
			*(pass ? &with : &idle) = (MPI_Wtime() - start) / count;
		}
		with -= idle;
		MPI_Allreduce(&with, &sample[k], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	}
	qsort(sample, SAMPLES, sizeof(sample[0]), compare);
	return sample[SAMPLES / 2] * 1e6;
}

static int is_wanted(const char *name)
{
	size_t len = strlen(name);
	const char *at;

	for (at = rows; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, len) && (at[len] == ',' || !at[len]))
			return 1;
	return !rows;
}

static void measure(const int *sizes, int n)
{
	static const char *const sized[] = {"bcast", "allreduce", "reduce", "allgather", "gather"};
	int i, k;

	if (is_wanted("barrier"))
		tell("barrier", 0, row("barrier", 0), "us");
	for (k = 0; k < 5; k++)
		for (i = 0; is_wanted(sized[k]) && i < n; i++)
			if (k < 3 || sizes[i] <= MOST / ranks)
				tell(sized[k], sizes[i], row(sized[k], sizes[i]), "us");
	if (is_wanted("computing"))
		tell("computing", 0, computing(), "us");
	if (is_wanted("overlap"))
		overlap();
}

/* What coll_least.h has, of 8 bytes. */
static void measure_by_hand(void)
{
	static const char *const name[] = {"barrier", "bcast", "allreduce", "reduce"};

	if (ranks > 1 && is_wanted("turn"))
		tell("turn", 0, least_turn() * 1e6, "us");
	for (int k = 0; k < 4; k++)
		if (is_wanted(name[k]))
			tell(name[k], k ? 8 : 0, row(name[k], 8), "us");
	if (is_wanted("overlap"))
		overlap();
}

int main(int argc, char **argv)
{
	int i, sizes[16], n = 0;
	char *word;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 2) {
		if (rank == 0)
			fputs("usage: coll_bench SIZE,... [SAMPLE_MS [ROW,... [least]]]\n", stderr);
		MPI_Finalize();
		return 2;
	}
	for (word = strtok(argv[1], ","); word && n < 16; word = strtok(NULL, ",")) {
		sizes[n] = atoi(word);
		if (sizes[n] >= 8 && sizes[n] <= MOST)
			n++;
	}
	if (argc > 2)
		budget = atof(argv[2]) / 1000;
	if (argc > 3)
		rows = argv[3];
	from = calloc(1, MOST);
	to = calloc(1, MOST);
	for (i = 0; i < 8; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	by_hand = argc > 4 && least_open();
	if (by_hand) {
		measure_by_hand();
		least_close();
	} else {
		measure(sizes, n);
	}
	free(from);
	free(to);
	MPI_Finalize();
	return 0;
}
