/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_long.c [SEED [unreachable|THREADS]] - long broadcasts: contiguous or not, differently on each rank; several
 * under way at a time, between other collectives; the root writes into its buffer as soon as it may.  Every
 * byte is checked, also those that must not change.  unreachable: as in a container that forbids cross-memory
 * attach.  THREADS of each rank do so at once, each on a communicator of its own.  "long" in what
 * rank 0 prints says how many it fetched, or had fetched.
 *
 * coll_long death ROOT|OTHER DIRECTORY MS - a rank ends in the middle of them: the others get an error, and tell so
 * by a file there; then they leave without MPI_Finalize.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"
#include "coll.h"
#include "test/lib/seccomp.h"

#define MOST	  (5 << 20) /* bytes, with gaps */
#define UNDER_WAY 4
#define THREADS	  8
#define DOOMED	  1

static const int lens[] = {3000, 4096, 65535, 65536, 100001, 262144, 1 << 20, (2 << 20) + 13};
#define LENS ((int)(sizeof(lens) / sizeof(lens[0])))

struct worker {
	pthread_t thread;
	MPI_Comm comm;
	unsigned seed;
	unsigned char *buf[UNDER_WAY];
};

static unsigned char byte_at(unsigned seed, int i)
{
	return (unsigned char)((unsigned)i * 7 + (unsigned)(i >> 8) * 13 + seed * 31);
}

/* Of len bytes here: as they are, or every other eight of twice as many, and a rest. */
static int has_gaps(unsigned seed, int rank, int len)
{
	return len % 16 == 0 && mix(seed, (unsigned)rank) % 3 == 0;
}

static int place(int gaps, int i)
{
	return gaps ? i / 8 * 16 + i % 8 : i;
}

static void begin(const struct worker *w, int k, unsigned seed, int len, int root, MPI_Request *req)
{
	MPI_Datatype type = MPI_BYTE;
	unsigned char *buf = w->buf[k];
	int me, i, gaps;

	MPI_Comm_rank(w->comm, &me);
	gaps = has_gaps(seed, me, len);
	memset(buf, 0xee, (size_t)(2 * len + 64));
	for (i = 0; i < len && me == root; i++)
		buf[32 + place(gaps, i)] = byte_at(seed, i);
	if (gaps) {
		MPI_Type_vector(len / 8, 8, 16, MPI_BYTE, &type);
		MPI_Type_commit(&type);
	}
	if (req)
		MPI_Ibcast(buf + 32, gaps ? 1 : len, type, root, w->comm, req);
	else
		MPI_Bcast(buf + 32, gaps ? 1 : len, type, root, w->comm);
	if (gaps)
		MPI_Type_free(&type);
}

static void end(const struct worker *w, int k, unsigned seed, int len)
{
	unsigned char *buf = w->buf[k];
	int me, i, gaps, bad = 0;

	MPI_Comm_rank(w->comm, &me);
	gaps = has_gaps(seed, me, len);
	for (i = 0; i < len; i++) {
		bad |= buf[32 + place(gaps, i)] ^ byte_at(seed, i);
		if (gaps)
			bad |= buf[32 + place(gaps, i) + 8] ^ 0xee;
	}
	for (i = 0; i < 32; i++)
		bad |= (buf[i] ^ 0xee) | (buf[32 + place(gaps, len - 1) + 1 + i] ^ 0xee);
	check(!bad, "a byte is wrong");
	memset(buf, 0x55, (size_t)len); /* it is ours again: who still reads from it would notice */
}

static void one_by_one(const struct worker *w, unsigned seed)
{
	int n, i;

	MPI_Comm_size(w->comm, &n);
	for (i = 0; i < 2 * LENS; i++) {
		begin(w, 0, seed + (unsigned)i, lens[i % LENS], i % n, NULL);
		end(w, 0, seed + (unsigned)i, lens[i % LENS]);
	}
}

static void several(const struct worker *w, unsigned seed)
{
	int n, me, i, k, sum = 0, one = 1;
	MPI_Request req[UNDER_WAY + 1];
	MPI_Status status[UNDER_WAY + 1];

	MPI_Comm_size(w->comm, &n);
	MPI_Comm_rank(w->comm, &me);
	for (i = 0; i < LENS; i++, seed += UNDER_WAY) {
		for (k = 0; k < UNDER_WAY; k++)
			begin(w, k, seed + (unsigned)k, lens[(i + k) % LENS], (int)(mix(seed, 5) % (unsigned)n),
			      &req[k]);
		MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, w->comm, &req[k]);
		MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % n, 3, &k, 1, MPI_INT, (me + n - 1) % n, 3, w->comm,
			     MPI_STATUS_IGNORE);
		MPI_Waitall(UNDER_WAY + 1, req, status);
		check(sum == n && k == (me + n - 1) % n, "something in between is wrong");
		for (k = 0; k < UNDER_WAY; k++)
			end(w, k, seed + (unsigned)k, lens[(i + k) % LENS]);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int k;

	for (k = 0; k < UNDER_WAY; k++) {
		w->buf[k] = malloc(MOST);
		check(w->buf[k] != NULL, "no memory");
	}
	one_by_one(w, w->seed);
	several(w, w->seed + 100);
	for (k = 0; k < UNDER_WAY; k++)
		free(w->buf[k]);
	return NULL;
}

static void on(MPI_Comm comm, unsigned seed)
{
	struct worker w = {.comm = comm, .seed = seed};

	work(&w);
}

static void at_once(unsigned seed, int threads)
{
	struct worker w[THREADS];
	int t;

	for (t = 0; t < threads; t++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &w[t].comm);
		w[t].seed = seed + 1000 * (unsigned)t;
	}
	for (t = 0; t < threads; t++)
		check(!pthread_create(&w[t].thread, NULL, work, &w[t]), "no thread");
	for (t = 0; t < threads; t++) {
		pthread_join(w[t].thread, NULL);
		MPI_Comm_free(&w[t].comm);
	}
}

static void everywhere(unsigned seed)
{
	MPI_Comm back, half;
	int me;

	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &back);
	MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
	on(MPI_COMM_WORLD, seed);
	on(back, seed + 1);
	on(half, seed + 2);
	MPI_Comm_free(&back);
	MPI_Comm_free(&half);
}

/* ---- death ---------------------------------------------------------------- */

static void death(int of_root, const char *dir, int ms)
{
	char *buf = calloc(1, MOST), path[512];
	int me, error, i;
	FILE *file;

	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (i = 0; i < 10; i++)
		check(MPI_Bcast(buf, MOST, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "a broadcast fails too early");
	if (me == DOOMED)
		ualarm((useconds_t)ms * 1000, 0);
	do
		error = MPI_Bcast(buf, MOST, MPI_BYTE, of_root ? DOOMED : 0, MPI_COMM_WORLD);
	while (error == MPI_SUCCESS);
	snprintf(path, sizeof(path), "%s/told.%d", dir, me);
	file = fopen(path, "w");
	if (file)
		fclose(file);
	_exit(0);
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0, me, provided;
	unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;

	if (argc > 2 && !strcmp(argv[2], "unreachable") && forbid_attach()) {
		perror("coll_long: seccomp");
		return 1;
	}
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	if (argc > 4 && !strcmp(argv[1], "death"))
		death(!strcmp(argv[2], "ROOT"), argv[3], atoi(argv[4]));
	else if (threads)
		at_once(seed, threads < THREADS ? threads : THREADS);
	else
		everywhere(seed);
	if (me == 0)
		printf("long %llu, trees %llu\nok\n", counted("glex_coll_long"), counted("glex_coll_trees"));
	MPI_Finalize();
	MPI_T_finalize();
	return 0;
}
