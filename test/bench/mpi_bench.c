/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpi_bench.c - latency, message rate and bandwidth between two MPI ranks.
 *
 *   latency     blocking ping-pong; half a round trip
 *   rate        windows of non-blocking messages one way, a short answer per window
 *   bandwidth   the same, told in MB (10^6 bytes) a second
 *
 * A sample is a batch of iterations between two looks at the clock; the value of
 * a row is the median of many.  Any MPI
 * will do: what is underneath, the environment decides.  --raw measures instead
 * what the machine gives, without MPI.
 */
#include "perf_base.h"
#include "perf_raw.h"

#include <mpi.h>

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW	      64
#define MAX_SAMPLES   1000
#define MIN_SAMPLES   3U
#define CHECKED_BYTES (32U << 20) /* of the windows of --check, whose messages need room side by side */
#define GROUP	      3		  /* samples per order to rank 1 */
#define OVERTIME      4
#define TAG	      1

enum kind { LATENCY, RATE, BANDWIDTH, KINDS };

static const char *const kind_name[KINDS] = {"latency", "rate", "bandwidth"};
static const char *const kind_unit[KINDS] = {"us", "Mps", "MBps"};

static struct {
	bool kind[KINDS];
	struct perf_sizes sizes[KINDS];
	uint32_t samples;
	double time_s; /* of all samples of a row */
	bool check;
	bool json;
	bool bind;
	bool raw;
} opt = {.kind = {true, true, true}, .samples = 51, .time_s = 0.06, .bind = true};

/* One row while it is measured.  out and in hold slots messages of size bytes each. */
struct row {
	enum kind kind;
	int size;
	int window;
	int slots;
	char *out, *in;
	uint64_t number; /* of the last message sent or received */
};

static int rank;

/* ---- data ---------------------------------------------------------------- */

static char *slot(char *base, const struct row *row, int i)
{
	return base + (size_t)(i % row->slots) * (size_t)row->size;
}

static void prepare(struct row *row, int i, uint64_t number)
{
	if (opt.check)
		perf_fill(slot(row->out, row, i), (size_t)row->size, number * 2 + (uint64_t)rank);
}

static void verify(struct row *row, int i, uint64_t number)
{
	size_t at;

	if (!opt.check)
		return;
	at = perf_differs(slot(row->in, row, i), (size_t)row->size, number * 2 + (uint64_t)!rank);
	if (at == (size_t)row->size)
		return;
	fprintf(stderr, "mpi_bench: %s, %d bytes: message %llu is corrupt at byte %zu\n", kind_name[row->kind],
		row->size, (unsigned long long)number, at);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- the two patterns ---------------------------------------------------- */

static void send_one(struct row *row)
{
	prepare(row, 0, row->number);
	MPI_Send(row->out, row->size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD);
}

static void receive_one(struct row *row)
{
	MPI_Recv(row->in, row->size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	verify(row, 0, row->number);
}

static void bounce(struct row *row, int count)
{
	for (int i = 0; i < count; i++) {
		row->number++;
		if (rank == 0) {
			send_one(row);
			receive_one(row);
		} else {
			receive_one(row);
			send_one(row);
		}
	}
}

static void stream(struct row *row, int count)
{
	MPI_Status status[WINDOW];
	MPI_Request req[WINDOW];
	char answer[4] = {0};

	for (int k = 0; k < count; k++, row->number += (uint64_t)row->window) {
		for (int i = 0; i < row->window; i++) {
			if (rank == 0) {
				prepare(row, i, row->number + (uint64_t)i);
				MPI_Isend(slot(row->out, row, i), row->size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &req[i]);
			} else {
				MPI_Irecv(slot(row->in, row, i), row->size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &req[i]);
			}
		}
		MPI_Waitall(row->window, req, status);
		if (rank == 0) {
			MPI_Recv(answer, 4, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			continue;
		}
		for (int i = 0; i < row->window; i++)
			verify(row, i, row->number + (uint64_t)i);
		MPI_Send(answer, 4, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
	}
}

/* ---- a row --------------------------------------------------------------- */

static double batch(struct row *row, int count)
{
	double start = MPI_Wtime();

	if (row->kind == LATENCY)
		bounce(row, count);
	else
		stream(row, count);
	return MPI_Wtime() - start;
}

/* What rank 0 tells rank 1: so many batches of so many iterations; {0, 0} ends the row. */
static void announce(int batches, int count)
{
	int order[2] = {batches, count};

	MPI_Send(order, 2, MPI_INT, 1, TAG, MPI_COMM_WORLD);
}

static void follow(struct row *row)
{
	for (;;) {
		int order[2];

		MPI_Recv(order, 2, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (order[0] == 0)
			return;
		for (int i = 0; i < order[0]; i++)
			batch(row, order[1]);
	}
}

/* The better of two, so that a core lost for a moment does not count. */
static double try_batch(struct row *row, int count)
{
	double first, second;

	announce(2, count);
	first = batch(row, count);
	second = batch(row, count);
	return first < second ? first : second;
}

/*
 * How many iterations fill a sample: doubles until a batch takes long enough to
 * tell, which is the warm-up too.  Samples are short and many: one that lost its
 * core to somebody else is an outlier and does not move the median.
 */
static int calibrate(struct row *row, uint32_t *samples_p)
{
	double sample_s = opt.time_s / opt.samples, taken;
	double until = MPI_Wtime() + OVERTIME * opt.time_s;
	int count = 1;

	*samples_p = opt.samples;
	try_batch(row, 2);
	while ((taken = try_batch(row, count)) < sample_s / 4 && count < 1000000 && MPI_Wtime() < until)
		count *= 2;
	if (taken < sample_s)
		count = (int)(count * sample_s / taken) + 1;
	else if (taken * MIN_SAMPLES > opt.time_s)
		*samples_p = MIN_SAMPLES;
	else if (count == 1)
		*samples_p = (uint32_t)(opt.time_s / taken);
	return count;
}

/* What one iteration's seconds mean in the row's unit. */
static double value_of(const struct row *row, double seconds)
{
	switch (row->kind) {
	case LATENCY:
		return seconds / 2 * 1e6;
	case RATE:
		return row->window / seconds / 1e6;
	default:
		return (double)row->window * row->size / seconds / 1e6;
	}
}

static void print_row(const struct row *row, const struct perf_stat *stat)
{
	double us = stat->p50, rate = stat->p50;

	if (!opt.json) {
		printf("%-10s %8d %12.4f %-5s %12.4f %12.4f %4u\n", kind_name[row->kind], row->size, stat->p50,
		       kind_unit[row->kind], stat->min, stat->max, stat->samples);
		fflush(stdout);
		return;
	}
	if (row->kind == LATENCY)
		rate = 1 / us;
	else if (row->kind == BANDWIDTH)
		rate = stat->p50 / row->size;
	us = 1 / rate;
	printf("{\"test\":\"%s\",\"size\":%d,\"lat_us\":%.6g,\"bw_MBps\":%.6g,\"rate_Mps\":%.6g,\"min_%s\":%.6g,"
	       "\"max_%s\":%.6g,\"samples\":%u,\"window\":%d,\"checked\":%s}\n",
	       kind_name[row->kind], row->size, us, rate * row->size, rate, kind_unit[row->kind], stat->min,
	       kind_unit[row->kind], stat->max, stat->samples, row->window, opt.check ? "true" : "false");
	fflush(stdout);
}

static void lead(struct row *row)
{
	double sample[MAX_SAMPLES];
	struct perf_stat stat;
	uint32_t samples, done = 0;
	int count = calibrate(row, &samples);
	double until = MPI_Wtime() + OVERTIME * opt.time_s;

	/* In groups, so that a row ends even where other programs hold the cores. */
	while (done < samples && (done < MIN_SAMPLES || MPI_Wtime() < until)) {
		int group = samples - done < GROUP ? (int)(samples - done) : GROUP;

		announce(group, count);
		for (int i = 0; i < group; i++)
			sample[done++] = value_of(row, batch(row, count) / count);
	}
	announce(0, 0);
	perf_stat_of(sample, done, &stat);
	print_row(row, &stat);
}

static void measure(enum kind kind, int size)
{
	struct row row = {.kind = kind, .size = size, .window = kind == LATENCY ? 1 : WINDOW, .slots = 1};
	size_t len;

	if (opt.check && kind != LATENCY) {
		while (row.window > 1 && (uint64_t)row.window * (uint64_t)size > CHECKED_BYTES)
			row.window /= 2;
		row.slots = row.window;
	}
	len = (size_t)row.slots * (size_t)size;
	row.out = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	row.in = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	if (!row.out || !row.in) {
		fprintf(stderr, "mpi_bench: no memory for messages of %d bytes\n", size);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(row.out, 1, len);
	memset(row.in, 2, len);
	if (rank == 0)
		lead(&row);
	else
		follow(&row);
	free(row.out);
	free(row.in);
}

/* ---- start --------------------------------------------------------------- */

static void usage(FILE *f)
{
	fputs("usage: mpiexec -n 2 mpi_bench [options], or mpi_bench --raw\n"
	      "  -t, --test LIST    latency,rate,bandwidth (all three)\n"
	      "  -s, --sizes LIST   bytes of latency and bandwidth: 8,64,4K:1M (8:4M)\n"
	      "  -S, --rate-sizes LIST  bytes of rate (8)\n"
	      "  -r, --samples N    samples of a row, whose median counts (51; fewer where messages are large)\n"
	      "  -m, --time MS      how long they take together (60)\n"
	      "      --check        verify every byte; the times then include it\n"
	      "      --json         one JSON object a row\n"
	      "      --no-bind      do not bind the ranks to the first two cores\n"
	      "      --raw          the time of a flag between two cores, in ns, and nothing else\n",
	      f);
}

static bool choose_kinds(char *list)
{
	memset(opt.kind, 0, sizeof(opt.kind));
	for (char *save, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		int kind = 0;

		while (kind < KINDS && strcmp(word, kind_name[kind]))
			kind++;
		if (kind == KINDS)
			return false;
		opt.kind[kind] = true;
	}
	return true;
}

static bool choose_sizes(const char *list, struct perf_sizes *sizes_p)
{
	if (perf_parse_sizes(list, sizes_p))
		return false;
	for (uint32_t i = 0; i < sizes_p->count; i++)
		if (sizes_p->size[i] > 1U << 30)
			return false;
	return true;
}

static bool parse_options(int argc, char **argv)
{
	static const struct option options[] = {{"test", required_argument, NULL, 't'},
						{"sizes", required_argument, NULL, 's'},
						{"rate-sizes", required_argument, NULL, 'S'},
						{"samples", required_argument, NULL, 'r'},
						{"time", required_argument, NULL, 'm'},
						{"check", no_argument, NULL, 'c'},
						{"json", no_argument, NULL, 'j'},
						{"no-bind", no_argument, NULL, 'b'},
						{"raw", no_argument, NULL, 'R'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	bool good = true;
	int key;

	perf_parse_sizes("8:4M", &opt.sizes[LATENCY]);
	perf_parse_sizes("8", &opt.sizes[RATE]);
	perf_parse_sizes("8:4M", &opt.sizes[BANDWIDTH]);
	while (good && (key = getopt_long(argc, argv, "t:s:S:r:m:h", options, NULL)) != -1) {
		switch (key) {
		case 't':
			good = choose_kinds(optarg);
			break;
		case 's':
			good = choose_sizes(optarg, &opt.sizes[LATENCY]);
			opt.sizes[BANDWIDTH] = opt.sizes[LATENCY];
			break;
		case 'S':
			good = choose_sizes(optarg, &opt.sizes[RATE]);
			break;
		case 'r':
			opt.samples = (uint32_t)strtoul(optarg, NULL, 10);
			good = opt.samples >= 1 && opt.samples <= MAX_SAMPLES;
			break;
		case 'm':
			opt.time_s = strtod(optarg, NULL) / 1e3;
			good = opt.time_s > 0 && opt.time_s < 100;
			break;
		case 'c':
			opt.check = true;
			break;
		case 'j':
			opt.json = true;
			break;
		case 'b':
			opt.bind = false;
			break;
		case 'R':
			opt.raw = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			good = false;
			break;
		}
	}
	return good && optind == argc;
}

static int measure_raw(void)
{
	int core[2] = {PERF_NO_CORE, PERF_NO_CORE}, found[2];
	double ns, busy = perf_busy();

	if (opt.bind && perf_cores(found, 2) == 2)
		memcpy(core, found, sizeof(core));
	ns = perf_raw_fork(core);
	if (ns < 0) {
		fprintf(stderr, "mpi_bench: the flag could not be bounced\n");
		return 1;
	}
	if (!opt.json)
		printf("busy              0 %12.2f tasks\n", busy);
	printf(opt.json ? "{\"test\":\"raw\",\"size\":8,\"raw_ns\":%.2f}\n" : "raw               8 %12.2f ns\n", ns);
	return 0;
}

/* After MPI_Init, so that nothing MPI_Init starts is bound with us. */
static void bind_rank(void)
{
	int core[2];

	if (opt.bind && perf_cores(core, 2) == 2)
		perf_pin(core[rank]);
}

static void print_head(void)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING], cpu[128];
	int len;

	if (opt.json)
		return;
	MPI_Get_library_version(version, &len);
	version[strcspn(version, "\n")] = '\0';
	perf_cpu_model(cpu, sizeof(cpu));
	printf("# %s; cpu: %s; window %d; %u samples in %.0f ms; data %s\n", version, cpu, WINDOW, opt.samples,
	       opt.time_s * 1e3, opt.check ? "verified, which the times include" : "not verified");
	printf("# test         size       median unit           min          max samples\n");
}

int main(int argc, char **argv)
{
	int ranks;

	if (!parse_options(argc, argv)) {
		usage(stderr);
		return 2;
	}
	if (opt.raw)
		return measure_raw();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2) {
		fprintf(stderr, "mpi_bench: start it with 2 ranks, not %d\n", ranks);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	bind_rank();
	if (rank == 0)
		print_head();
	for (int kind = 0; kind < KINDS; kind++)
		for (uint32_t i = 0; opt.kind[kind] && i < opt.sizes[kind].count; i++)
			measure((enum kind)kind, (int)opt.sizes[kind].size[i]);
	MPI_Finalize();
	return 0;
}
