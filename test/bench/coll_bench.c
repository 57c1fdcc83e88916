/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_bench.c - how long collectives of MPI take, back to back.
 *
 *   barrier, bcast, allreduce, reduce    microseconds a call, of the slowest rank
 *   begin, end   of a non-blocking allreduce of 8 bytes with a computation of ten times
 *                its time in between: microseconds that its call takes, and the wait for it,
 *                of the slowest rank
 *   overlap      of the time that call and wait take without a computation in between, how
 *                much a computation hides, in per cent; what remains is the rank's own work
 *   computing    barrier, each rank computing for a random time (the mean of it is
 *                subtracted) before it calls
 *
 * A sample is a batch; the value of a row is the median of many.  Broadcasts change
 * their root, so that nobody can run ahead of the others for long.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES 15
#define MOST	(1 << 20)

static int rank, ranks;
static char *from, *to;
static double budget = 0.01; /* seconds a sample */

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

/* The same in rounds of a loop: where a look at the clock would take as long as what is measured. */
static void turn(long rounds)
{
	volatile long i;

	for (i = 0; i < rounds; i++)
		;
}

static double rounds_a_second(void)
{
	double best = 0, start, rate;
	int i;

	for (i = 0; i < 50; i++) {
		start = MPI_Wtime();
		turn(10000);
		rate = 10000 / (MPI_Wtime() - start);
		if (rate > best)
			best = rate;
	}
	return best;
}

static void one(const char *what, int size, int i)
{
	switch (what[0]) {
	case 'b':
		if (what[1] == 'a')
			MPI_Barrier(MPI_COMM_WORLD);
		else
			MPI_Bcast(from, size, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
		return;
	case 'a':
		MPI_Allreduce(from, to, size / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
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

enum { ALONE, IDLE, WITH, BEGIN, END, TIMES };

/* Seconds a call of non-blocking allreduces (but not of IDLE) with so much computing before the wait. */
static void overlapped(int way, int count, long rounds, double taken[TIMES])
{
	double start, begin = 0, end = 0, t;
	MPI_Request req;
	int i;

	PMPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (i = 0; i < count; i++) {
		t = MPI_Wtime();
		if (way != IDLE)
			MPI_Iallreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &req);
		begin += MPI_Wtime() - t;
		if (way != ALONE)
			turn(rounds);
		t = MPI_Wtime();
		if (way != IDLE)
			MPI_Wait(&req, MPI_STATUS_IGNORE);
		end += MPI_Wtime() - t;
	}
	taken[way] = (MPI_Wtime() - start) / count;
	taken[BEGIN] = begin / count;
	taken[END] = end / count;
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

static void overlap(void)
{
	double begin[SAMPLES], end[SAMPLES], hidden[SAMPLES], taken[TIMES], mine[4], most[4], speed = rounds_a_second();
	double more, alone = batch("allreduce", 8, 50);
	int count = calls_of(12 * alone), k;

	for (k = 0; k < SAMPLES; k++) {
		overlapped(ALONE, count, 0, taken);
		MPI_Allreduce(&taken[ALONE], &alone, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		overlapped(IDLE, count, (long)(10 * alone * speed), taken); /* as it is on a shared processor */
		overlapped(WITH, count, (long)(10 * alone * speed), taken);
		mine[0] = taken[BEGIN];
		mine[1] = taken[END];
		mine[2] = taken[IDLE];
		mine[3] = taken[WITH];
		MPI_Allreduce(mine, most, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		begin[k] = most[0];
		end[k] = most[1];
		/* Of the slowest rank each: that a fast one waits for it is nothing a collective could hide. */
		more = (most[3] - most[2]) / alone;
		hidden[k] = more < 0 ? 1 : more > 1 ? 0 : 1 - more;
	}
	tell("begin", 8, 1e6 * median_of(begin), "us");
	tell("end", 8, 1e6 * median_of(end), "us");
	tell("overlap", 8, 100 * median_of(hidden), "%");
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

int main(int argc, char **argv)
{
	static const char *const sized[] = {"bcast", "allreduce", "reduce"};
	int i, k, sizes[16], n = 0;
	char *word;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 2) {
		if (rank == 0)
			fputs("usage: coll_bench SIZE,... [SAMPLE_MS]\n", stderr);
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
	from = calloc(1, MOST);
	to = calloc(1, MOST);
	for (i = 0; i < 8; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	tell("barrier", 0, row("barrier", 0), "us");
	for (k = 0; k < 3; k++)
		for (i = 0; i < n; i++)
			tell(sized[k], sizes[i], row(sized[k], sizes[i]), "us");
	tell("computing", 0, computing(), "us");
	overlap();
	free(from);
	free(to);
	MPI_Finalize();
	return 0;
}
