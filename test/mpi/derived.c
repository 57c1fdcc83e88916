/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * derived.c - long messages between all pairs of memory layouts, contiguous or not:
 * expected or not, synchronous, cut short, several at a time, from several threads.
 * 2 ranks.  copied: none of them fetched.  With a number: one message of so many MiB, for which no memory may be needed;
 * with a second: the rank of that number dies while such messages are under way.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "helper.h"

#define LAYOUTS 7
#define BURST	12
#define HOLE	0x5a5a5a5a

/* How many ints a layout of n ones takes, and where the i-th is. */
static long span(int layout, long n)
{
	static const long per_cent[LAYOUTS] = {100, 200, 125, 250, 200, 165, 200};

	return n * per_cent[layout] / 100 + 1024;
}

static long place(int layout, long n, long i)
{
	switch (layout) {
	case 1:
		return 2 * i;
	case 2:
		return i / 256 * 300 + i % 256;
	case 3: /* blocks of 1 and of 3, in turn, each with two free ones behind it */
		return i / 4 * 8 + (i % 4 ? i % 4 + 2 : 0);
	case 4:
		return span(layout, n) - 1 - 2 * i;
	case 5:
		return i / 128 * 200 + 10 + i % 128;
	case 6:
		return 1 + 4 * (i / 2) + i % 2;
	default:
		return i;
	}
}

static MPI_Datatype indexed(long n)
{
	int i, *lens = malloc(sizeof(int) * (size_t)(n / 2)), *at = malloc(sizeof(int) * (size_t)(n / 2));
	MPI_Datatype type;

	for (i = 0; i < n / 2; i++) {
		lens[i] = i % 2 ? 3 : 1;
		at[i] = i / 2 * 8 + (i % 2 ? 3 : 0);
	}
	MPI_Type_indexed((int)(n / 2), lens, at, MPI_INT, &type);
	free(lens);
	free(at);
	return type;
}

/* The datatype, how many of it, and where in buf they begin. */
static MPI_Datatype layout_type(int layout, long n, int *buf, int *count, int **start)
{
	int sizes[2] = {(int)(n / 128), 200}, part[2] = {(int)(n / 128), 128}, from[2] = {0, 10};
	MPI_Datatype type, pair;

	*count = 1;
	*start = buf;
	switch (layout) {
	case 1:
		MPI_Type_vector((int)n, 1, 2, MPI_INT, &type);
		break;
	case 2:
		MPI_Type_vector((int)(n / 256), 256, 300, MPI_INT, &type);
		break;
	case 3:
		type = indexed(n);
		break;
	case 4: /* backwards */
		MPI_Type_create_hvector((int)n, 1, -8, MPI_INT, &type);
		*start = buf + span(layout, n) - 1;
		break;
	case 5:
		MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &type);
		break;
	case 6: /* a lower bound before the data */
		MPI_Type_contiguous(2, MPI_INT, &pair);
		MPI_Type_create_resized(pair, -4, 16, &type);
		MPI_Type_free(&pair);
		*start = buf + 1;
		*count = (int)(n / 2);
		break;
	default:
		MPI_Type_contiguous((int)n, MPI_INT, &type);
	}
	MPI_Type_commit(&type);
	return type;
}

struct side {
	int layout, count;
	long n;
	int *buf, *start;
	MPI_Datatype type;
};

static void side_init(struct side *side, int layout, long n)
{
	long i;

	side->layout = layout;
	side->n = n;
	side->buf = malloc(sizeof(int) * (size_t)span(layout, n));
	check(side->buf != NULL, "no memory");
	for (i = 0; i < span(layout, n); i++)
		side->buf[i] = HOLE;
	side->type = layout_type(layout, n, side->buf, &side->count, &side->start);
}

static void side_free(struct side *side)
{
	if (side->type != MPI_DATATYPE_NULL)
		MPI_Type_free(&side->type);
	free(side->buf);
}

static int value(int seed, long i)
{
	return (int)(i * 2654435761u) ^ seed;
}

static void side_fill(struct side *side, int seed)
{
	long i;

	for (i = 0; i < side->n; i++)
		side->buf[place(side->layout, side->n, i)] = value(seed, i);
}

/* The first got ones have come, and nothing else has changed. */
static void side_check(const struct side *side, long got, int seed)
{
	long i, holes = 0, wrong = 0;

	for (i = 0; i < side->n; i++)
		wrong += side->buf[place(side->layout, side->n, i)] != (i < got ? value(seed, i) : HOLE);
	for (i = 0; i < span(side->layout, side->n); i++)
		holes += side->buf[i] == HOLE;
	if (wrong || holes < span(side->layout, side->n) - got)
		printf("layout %d, %ld ints, %ld to come: %ld wrong, %ld holes\n", side->layout, side->n, got, wrong,
		       holes);
	check(!wrong && holes >= span(side->layout, side->n) - got, "a message is wrong");
}

/* One message from rank 0 to rank 1. */
static void transfer(MPI_Comm comm, int from, int to, long n, long room, int how)
{
	int rank, seed = from * 100 + to + how, error, got;
	struct side side;
	MPI_Status status;

	MPI_Comm_rank(comm, &rank);
	side_init(&side, rank ? to : from, rank ? room : n);
	if (rank == 0) {
		side_fill(&side, seed);
		if (how == 1)
			MPI_Ssend(side.start, side.count, side.type, 1, how, comm);
		else
			MPI_Send(side.start, side.count, side.type, 1, how, comm);
	} else {
		if (how == 2) /* unexpected */
			MPI_Probe(0, how, comm, &status);
		error = MPI_Recv(side.start, side.count, side.type, 0, how, comm, &status);
		if (room < n)
			MPI_Error_class(error, &error);
		check(error == (room < n ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "the error is wrong");
		MPI_Get_elements(&status, MPI_INT, &got);
		check(room < n || got == n, "the count is wrong");
		side_check(&side, room < n ? room : n, seed);
	}
	side_free(&side);
}

/* Many at a time, received in the other order; their types are freed at once. */
static void burst(MPI_Comm comm, long n)
{
	struct side side[BURST];
	MPI_Request req[BURST];
	MPI_Status status[BURST];
	int i, rank;

	MPI_Comm_rank(comm, &rank);
	for (i = 0; i < BURST; i++)
		side_init(&side[i], (rank + i) % LAYOUTS, n);
	for (i = 0; !rank && i < BURST; i++) {
		side_fill(&side[i], i);
		MPI_Isend(side[i].start, side[i].count, side[i].type, 1, i, comm, &req[i]);
		MPI_Type_free(&side[i].type);
	}
	MPI_Barrier(comm);
	for (i = BURST - 1; rank && i >= 0; i--) {
		MPI_Irecv(side[i].start, side[i].count, side[i].type, 0, i, comm, &req[i]);
		MPI_Type_free(&side[i].type);
	}
	MPI_Waitall(BURST, req, status);
	for (i = 0; i < BURST; i++) {
		if (rank)
			side_check(&side[i], n, i);
		side_free(&side[i]);
	}
}

/* Elements of 13 bytes, which no chunk holds a whole number of. */
static MPI_Datatype record(MPI_Aint extent)
{
	int lens[3] = {1, 1, 1};
	MPI_Aint at[3] = {0, extent / 2, extent - 4};
	MPI_Datatype parts[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, type, resized;

	MPI_Type_create_struct(3, lens, at, parts, &type);
	MPI_Type_create_resized(type, 0, extent, &resized);
	MPI_Type_free(&type);
	MPI_Type_commit(&resized);
	return resized;
}

static void records(MPI_Comm comm, int n)
{
	MPI_Aint extent;
	MPI_Datatype type;
	char *buf, *p;
	int rank, i, k;
	double d;

	MPI_Comm_rank(comm, &rank);
	extent = rank ? 40 : 24;
	type = record(extent);
	buf = calloc((size_t)n, (size_t)extent);
	check(buf != NULL, "no memory");
	for (i = 0; i < n && !rank; i++) {
		p = buf + i * extent;
		d = i * 0.5;
		*p = (char)i;
		memcpy(p + extent / 2, &d, sizeof(d));
		memcpy(p + extent - 4, &i, sizeof(i));
	}
	if (!rank)
		MPI_Send(buf, n, type, 1, 0, comm);
	else
		MPI_Recv(buf, n, type, 0, 0, comm, MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++) {
		p = buf + i * extent;
		memcpy(&d, p + extent / 2, sizeof(d));
		memcpy(&k, p + extent - 4, sizeof(k));
		check(*p == (char)i && d == i * 0.5 && k == i, "a record is wrong");
	}
	MPI_Type_free(&type);
	free(buf);
}

static void *in_thread(void *arg)
{
	MPI_Comm comm = *(MPI_Comm *)arg;
	int i;

	for (i = 0; i < LAYOUTS; i++)
		transfer(comm, i, (i + 2) % LAYOUTS, 512 * 300, 512 * 300, 0);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[3];
	MPI_Comm comm[3];
	int i;

	for (i = 0; i < 3; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (i = 0; i < 3; i++)
		check(!pthread_create(&thread[i], NULL, in_thread, &comm[i]), "no thread");
	for (i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		MPI_Comm_free(&comm[i]);
	}
}

/* The most memory that this process has had, in KiB. */
static long peak(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* Both sides have holes, and nothing is needed besides the buffers. */
static void without_memory(MPI_Comm comm, long mib)
{
	struct side side;
	long before;
	int rank;

	MPI_Comm_rank(comm, &rank);
	transfer(comm, 1, 1, 1 << 18, 1 << 18, 0); /* what is needed once */
	side_init(&side, rank ? 2 : 1, mib << 18);
	if (!rank)
		side_fill(&side, 7);
	before = peak();
	if (!rank)
		MPI_Send(side.start, side.count, side.type, 1, 0, comm);
	else
		MPI_Recv(side.start, side.count, side.type, 0, 0, comm, MPI_STATUS_IGNORE);
	if (peak() - before > 4096)
		printf("rank %d needed %ld KiB\n", rank, peak() - before);
	check(peak() - before <= 4096, "a message needed memory besides its own");
	if (rank)
		side_check(&side, mib << 18, 7);
	side_free(&side);
}

static void *die_soon(void *arg)
{
	usleep(20000);
	kill(getpid(), SIGKILL);
	return arg;
}

/* The other one gets an error. */
static void one_dies(MPI_Comm comm, long mib, int victim)
{
	int rank, error = MPI_SUCCESS;
	struct side side;
	pthread_t thread;

	MPI_Comm_rank(comm, &rank);
	side_init(&side, rank ? 2 : 1, mib << 18);
	MPI_Barrier(comm);
	if (rank == victim)
		check(!pthread_create(&thread, NULL, die_soon, NULL), "no thread");
	while (error == MPI_SUCCESS && !rank)
		error = MPI_Send(side.start, side.count, side.type, 1, 0, comm);
	while (error == MPI_SUCCESS && rank)
		error = MPI_Recv(side.start, side.count, side.type, 0, 0, comm, MPI_STATUS_IGNORE);
	MPI_Error_class(error, &error);
	check(error == MPIX_ERR_PROC_FAILED, "the error is wrong");
	printf("rank %d: alone\n", rank);
	fflush(stdout);
	side_free(&side);
}

static void all_pairs(MPI_Comm comm)
{
	const long lens[] = {256 * 9, 256 * 40, 256 * 128, 256 * 1000}; /* from 9 KiB to 1 MiB */
	size_t k;
	int from, to;

	for (k = 0; k < sizeof(lens) / sizeof(lens[0]); k++)
		for (from = 0; from < LAYOUTS; from++)
			for (to = 0; to < LAYOUTS; to++)
				transfer(comm, from, to, lens[k], lens[k], (from + to) % 3);
	for (from = 0; from < LAYOUTS; from++)
		for (to = 0; to < LAYOUTS; to++)
			transfer(comm, from, to, 256 * 600, 256 * (to % 2 ? 100 : 500), from % 3);
	for (from = 0; from < LAYOUTS; from++)
		for (to = 0; to < LAYOUTS; to++)
			transfer(comm, from, to, 256 * 7, 256 * 3, 2 * (from % 2)); /* too short for a rendezvous */
}

/* copied: the netmod has been told not to fetch. */
static void everything(int rank, int copied)
{
	all_pairs(MPI_COMM_WORLD);
	burst(MPI_COMM_WORLD, 256 * 30);
	burst(MPI_COMM_WORLD, 256 * 500);
	records(MPI_COMM_WORLD, 100003);
	threads();
	if (!copied)
		check(rank ? counted("glex_rendezvous_unpacked") > 100 : counted("glex_rendezvous_packed") > 100,
		      "it went another way");
}

int main(int argc, char **argv)
{
	int rank, level;

	MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (argc > 2) {
		one_dies(MPI_COMM_WORLD, atol(argv[1]), atoi(argv[2]));
	} else if (argc > 1 && strcmp(argv[1], "copied") != 0) {
		without_memory(MPI_COMM_WORLD, atol(argv[1]));
	} else {
		everything(rank, argc > 1);
	}
	MPI_Finalize();
	MPI_T_finalize();
	if (!rank)
		printf("ok\n");
	return 0;
}
