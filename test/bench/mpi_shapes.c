/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpi_shapes.c - the patterns by which the OSU micro-benchmarks measure an MPI,
 * for machines where those are not built.  osu runs either in the same way.
 *
 * A shape is timed over a fixed number of iterations of each size and prints what
 * the program it stands for prints: size and value, mbw_mr a third column.  The iterations are done
 * in parts, and the parts of all sizes take turns, with -T those of several such programs too: where the processors are
 * near each other at one moment and far at the next, as virtual ones are, all meet the same.
 * Between pairs of ranks the value is not the average, which tells how long the processors were which, but the
 * median of the parts; without -T their first quartile, since who runs alone meets what others do not.
 */
#include "perf_base.h"
#include "turns.h"

#include <mpi.h>

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64
#define TAG    1
#define PARTS  40 /* of the iterations, at most */

static struct {
	const struct shape *shape;
	struct perf_sizes sizes;
	int count; /* of iterations that are timed */
	int parts; /* of these */
	int warm;  /* iterations before */
	bool in_turns;
} opt = {.count = 1000, .warm = 100};

static int rank, ranks;
static double init_seconds;
static char *out, *in; /* as large as the largest size, for every rank where all exchange */
static MPI_Win win;
static MPI_Status status[2 * WINDOW]; /* some compilers take MPI_STATUSES_IGNORE for too small an array */

/* One iteration with messages of size bytes; the caller has the clock. */
typedef void (*iteration_fn)(int size);
/* What a row's value is, from the seconds an iteration took on this rank. */
typedef double (*value_fn)(int size, double seconds);

struct shape {
	const char *name;
	iteration_fn iterate; /* NULL: what took its time was MPI_Init */
	value_fn value;
	int only;      /* ranks this shape is for, 0: any; -2: any even number */
	bool sized;    /* has rows of several sizes */
	bool averages; /* over all ranks, not rank 0's alone */
	bool window;   /* needs an MPI window */
	int smallest;  /* size in bytes */
};

/* ---- point to point ------------------------------------------------------ */

static void send_to(int peer, int size)
{
	MPI_Send(out, size, MPI_CHAR, peer, TAG, MPI_COMM_WORLD);
}

static void receive_from(int peer, int size)
{
	MPI_Recv(in, size, MPI_CHAR, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The first half of the ranks leads, each has its partner in the second. */
static bool leads(void)
{
	return rank < ranks / 2;
}

static int partner(void)
{
	return leads() ? rank + ranks / 2 : rank - ranks / 2;
}

static void ping_pong(int size)
{
	if (leads()) {
		send_to(partner(), size);
		receive_from(partner(), size);
	} else {
		receive_from(partner(), size);
		send_to(partner(), size);
	}
}

static void send_window(int size)
{
	MPI_Request req[WINDOW];

	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(out, size, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD, &req[i]);
	MPI_Waitall(WINDOW, req, status);
}

static void receive_window(int size)
{
	MPI_Request req[WINDOW];

	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(in, size, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD, &req[i]);
	MPI_Waitall(WINDOW, req, status);
}

static void one_way(int size)
{
	char answer[4] = {0};

	if (leads()) {
		send_window(size);
		MPI_Recv(answer, 4, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		receive_window(size);
		MPI_Send(answer, 4, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD);
	}
}

static void both_ways(int size)
{
	MPI_Request req[2 * WINDOW];
	char answer[4] = {0};

	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(in, size, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD, &req[i]);
	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(out, size, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD, &req[WINDOW + i]);
	MPI_Waitall(2 * WINDOW, req, status);
	if (leads())
		MPI_Recv(answer, 4, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(answer, 4, MPI_CHAR, partner(), TAG, MPI_COMM_WORLD);
}

/* ---- one-sided ----------------------------------------------------------- */

static void put_flush(int size)
{
	if (rank)
		return;
	MPI_Put(out, size, MPI_CHAR, 1, 0, size, MPI_CHAR, win);
	MPI_Win_flush(1, win);
}

static void get_flush(int size)
{
	if (rank)
		return;
	MPI_Get(in, size, MPI_CHAR, 1, 0, size, MPI_CHAR, win);
	MPI_Win_flush(1, win);
}

/* ---- collectives --------------------------------------------------------- */

static void allreduce(int size)
{
	MPI_Allreduce(out, in, size / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void bcast(int size)
{
	MPI_Bcast(out, size, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void alltoall(int size)
{
	MPI_Alltoall(out, size, MPI_CHAR, in, size, MPI_CHAR, MPI_COMM_WORLD);
}

static void allgather(int size)
{
	MPI_Allgather(out, size, MPI_CHAR, in, size, MPI_CHAR, MPI_COMM_WORLD);
}

static void reduce(int size)
{
	MPI_Reduce(out, in, size / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* So many bytes in all. */
static void reduce_scatter(int size)
{
	MPI_Reduce_scatter_block(out, in, size / 4 / ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(int size)
{
	(void)size;
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- values -------------------------------------------------------------- */

static double whole_us(int size, double seconds)
{
	(void)size;
	return seconds * 1e6;
}

static double half_us(int size, double seconds)
{
	(void)size;
	return seconds / 2 * 1e6;
}

static double window_MBps(int size, double seconds)
{
	return (double)WINDOW * size / seconds / 1e6;
}

static double both_MBps(int size, double seconds)
{
	return 2 * window_MBps(size, seconds);
}

static double pairs_MBps(int size, double seconds)
{
	return ranks / 2 * window_MBps(size, seconds);
}

static const struct shape shapes[] = {
	{"latency", ping_pong, half_us, 2, true, false, false, 1},
	{"bw", one_way, window_MBps, 2, true, false, false, 1},
	{"bibw", both_ways, both_MBps, 2, true, false, false, 1},
	{"mbw_mr", one_way, pairs_MBps, -2, true, true, false, 1},
	{"multi_lat", ping_pong, half_us, -2, true, true, false, 1},
	{"put_latency", put_flush, whole_us, 2, true, false, true, 1},
	{"get_latency", get_flush, whole_us, 2, true, false, true, 1},
	{"allreduce", allreduce, whole_us, 0, true, true, false, 4},
	{"bcast", bcast, whole_us, 0, true, true, false, 1},
	{"alltoall", alltoall, whole_us, 0, true, true, false, 1},
	{"allgather", allgather, whole_us, 0, true, true, false, 1},
	{"reduce", reduce, whole_us, 0, true, true, false, 4},
	{"reduce_scatter", reduce_scatter, whole_us, 0, true, true, false, 4},
	{"barrier", barrier, whole_us, 0, false, true, false, 0},
	{"init", NULL, whole_us, 0, false, true, false, 0},
};

/* ---- a row --------------------------------------------------------------- */

static double part[PERF_MAX_SIZES][PARTS]; /* seconds of an iteration */

static void repeat(int size, int count)
{
	for (int i = 0; i < count; i++)
		opt.shape->iterate(size);
}

/* Seconds of an iteration, of count in a row that all begin together */
static double seconds_of(int size, int count)
{
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	repeat(size, count);
	return (MPI_Wtime() - start) / count;
}

/* The same where all take part in each: a barrier between, so that nobody is ahead. */
static double seconds_of_each(int size, int count)
{
	double taken = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < count; i++) {
		double start = MPI_Wtime();

		opt.shape->iterate(size);
		taken += MPI_Wtime() - start;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return taken / count;
}

static void print_value(int size, double seconds)
{
	double value = opt.shape->value(size, seconds);

	if (!opt.shape->sized)
		printf("%20.3f\n", value);
	else if (!strcmp(opt.shape->name, "mbw_mr"))
		printf("%-10d %20.3f %20.2f\n", size, value, value / size * 1e6);
	else
		printf("%-10d %20.3f\n", size, value);
	fflush(stdout);
}

/* Of each part, for who compares: those of other programs that took turns met the same machine. */
static void print_parts(int size, const double *seconds, int parts)
{
	printf("# parts %d", size);
	for (int k = 0; k < parts; k++)
		printf(" %.6g", seconds[k]);
	printf("\n");
}

/* What the parts of a size come to. */
static double seconds_of_parts(double *seconds, int parts)
{
	struct perf_stat stat;
	double sum = 0;

	if (opt.shape->only) {
		perf_stat_of(seconds, (uint32_t)parts, &stat); /* sorts */
		return opt.in_turns ? stat.p50 : seconds[parts / 4];
	}
	for (int k = 0; k < parts; k++)
		sum += seconds[k];
	return sum / parts;
}

/* seconds of an iteration, in each of the parts */
static void report(int size, double *seconds, int parts)
{
	double sum[PARTS] = {0};

	if (opt.shape->averages) {
		MPI_Reduce(seconds, sum, parts, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		for (int k = 0; k < parts; k++)
			seconds[k] = sum[k] / ranks;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		return;
	if (opt.in_turns)
		print_parts(size, seconds, parts);
	print_value(size, seconds_of_parts(seconds, parts));
}

static void begin_turn(void)
{
	if (turns_wait())
		return;
	fprintf(stderr, "mpi_shapes: a program that this one takes turns with has ended\n");
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void end_turn(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	turns_pass(rank == 0);
}

static void measure_part(int size, int count, double *seconds_p)
{
	begin_turn();
	repeat(size, count / 10 + 1); /* the caches still have what was before */
	*seconds_p = opt.shape->only || !opt.shape->sized ? seconds_of(size, count) : seconds_of_each(size, count);
	end_turn();
}

static void measure(const int *size, int sizes)
{
	int count = opt.count / opt.parts;

	begin_turn();
	for (int s = 0; s < sizes; s++)
		repeat(size[s], opt.warm);
	end_turn();
	for (int k = 0; k < opt.parts; k++)
		for (int s = 0; s < sizes; s++)
			measure_part(size[s], count ? count : 1, &part[s][k]);
	begin_turn(); /* all have ended their parts before anybody does anything else */
	for (int s = 0; s < sizes; s++)
		report(size[s], part[s], opt.parts);
	end_turn();
}

/* ---- start --------------------------------------------------------------- */

static void usage(FILE *f)
{
	fputs("usage: mpiexec -n N mpi_shapes -t SHAPE [-m MIN:MAX] [-i ITERATIONS] [-p PARTS] [-x WARM-UP]\n"
	      "                              [-T INDEX/COUNT/FILE]\n"
	      "  SHAPE is one of",
	      f);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		fprintf(f, " %s", shapes[i].name);
	fputs("\n", f);
}

static const struct shape *find_shape(const char *name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (!strcmp(shapes[i].name, name))
			return &shapes[i];
	return NULL;
}

static bool number(const char *text, int *value_p)
{
	char *end;
	long value = strtol(text, &end, 10);

	*value_p = (int)value;
	return *text && !*end && value >= 0 && value <= 1 << 30;
}

static bool parse_options(int argc, char **argv)
{
	bool good = !perf_parse_sizes("1:4M", &opt.sizes);
	int key;

	while (good && (key = getopt(argc, argv, "t:m:i:p:x:T:")) != -1) {
		switch (key) {
		case 't':
			opt.shape = find_shape(optarg);
			break;
		case 'm':
			good = !perf_parse_sizes(optarg, &opt.sizes);
			break;
		case 'i':
			good = number(optarg, &opt.count) && opt.count > 0;
			break;
		case 'p':
			good = number(optarg, &opt.parts) && opt.parts > 0 && opt.parts <= PARTS;
			break;
		case 'x':
			good = number(optarg, &opt.warm);
			break;
		case 'T':
			good = opt.in_turns = turns_join(optarg);
			break;
		default:
			good = false;
			break;
		}
	}
	if (!opt.parts)
		opt.parts = opt.count < PARTS ? opt.count : PARTS;
	for (uint32_t i = 0; good && i < opt.sizes.count; i++)
		good = opt.sizes.size[i] <= 1 << 28;
	return good && opt.shape && optind == argc;
}

static bool suits(void)
{
	int only = opt.shape->only;

	return ranks >= 2 && (only == 0 || (only > 0 ? ranks == only : ranks % 2 == 0));
}

/* The sizes this shape is measured with; returns how many: one of 0 where it has none */
static int choose_sizes(int *size)
{
	int sizes = 0;

	for (uint32_t i = 0; opt.shape->sized && i < opt.sizes.count; i++)
		if ((int)opt.sizes.size[i] >= opt.shape->smallest)
			size[sizes++] = (int)opt.sizes.size[i];
	if (!opt.shape->sized)
		size[sizes++] = 0;
	return sizes;
}

static size_t largest_of(const int *size, int sizes)
{
	int largest = 1;

	for (int s = 0; s < sizes; s++)
		if (size[s] > largest)
			largest = size[s];
	return (size_t)largest;
}

static void run(void)
{
	int size[PERF_MAX_SIZES], sizes = choose_sizes(size);
	size_t largest = largest_of(size, sizes), len = largest * (size_t)ranks;

	len = (len + 4095) / 4096 * 4096;
	out = aligned_alloc(4096, len);
	in = aligned_alloc(4096, len);
	if (!out || !in) {
		fprintf(stderr, "mpi_shapes: no memory for messages of %zu bytes\n", largest);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(out, 0, len);
	memset(in, 0, len);
	if (opt.shape->window) {
		MPI_Win_create(in, (MPI_Aint)len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_lock_all(0, win);
	}
	if (!opt.shape->iterate)
		report(0, &init_seconds, 1);
	else
		measure(size, sizes);
	if (opt.shape->window) {
		MPI_Win_unlock_all(win);
		MPI_Win_free(&win);
	}
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	uint64_t start;

	if (!parse_options(argc, argv)) {
		usage(stderr);
		return 2;
	}
	start = perf_now_ns();
	MPI_Init(&argc, &argv);
	init_seconds = (double)(perf_now_ns() - start) / 1e9;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!suits()) {
		if (rank == 0)
			fprintf(stderr, "mpi_shapes: %s is not for %d ranks\n", opt.shape->name, ranks);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	run();
	MPI_Finalize();
	return 0;
}
