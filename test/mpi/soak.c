/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak.c SECONDS SEED - random messages among all ranks, for as long as wanted.
 *
 * Every rank draws the same plan of a round from the seed: who sends what to whom,
 * how long, with which datatype, by which call.  So each knows what must arrive, and
 * every byte of it, and the gaps between, are compared.  Some messages between two
 * ranks have one tag, so only their order says which is which.  Buffers are allocated
 * anew each round, so registrations come and go.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 48
#define STEADY	 100 /* seconds after which the heap has had its worst rounds */
#define SEASON	 8   /* rounds in which ranks write to all, or in pairs */
#define UNIT	 16  /* bytes of a piece of what is strided; the gap is as long */

enum how_sent { SEND_ISEND, SEND_ISSEND, SEND_BLOCKING, SENDS };
enum how_received { RECV_NAMED, RECV_ANY_SOURCE, RECV_PROBED, RECVS };

struct message {
	int src, dst;
	int tag;   /* its number, or that of an earlier one which it must not overtake */
	int units; /* of UNIT bytes */
	int strided_out, strided_in;
	enum how_sent sent;
	enum how_received received;
	unsigned char *out, *in;
};

static struct message plan[MESSAGES];
static MPI_Datatype piece, gapped;
static int rank, ranks;
static uint64_t dice, rounds, bytes;

static uint32_t roll(uint32_t below)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(dice >> 33) % below;
}

/* As many short ones as long ones, on a logarithmic scale. */
static int some_units(void)
{
	uint32_t bits = roll(18);

	return (int)roll(1u << bits);
}

static unsigned char byte_of(int message, int i)
{
	return (unsigned char)((uint32_t)(i * 31 + message * 7 + (int)rounds * 13) >> (i & 3));
}

/*
 * Ranks need not be in the same round, and a message of the next one must not meet a receive from any source.
 * The sums of collect() keep them from being apart by as many rounds as there are tags for.
 */
static int tag_of(int message)
{
	return plan[message].tag + MESSAGES * (int)(rounds % 600);
}

static void fail(const char *what, int message)
{
	printf("rank %d, round %llu, message %d from %d to %d, %d bytes: %s\n", rank, (unsigned long long)rounds,
	       message, plan[message].src, plan[message].dst, plan[message].units * UNIT, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The tag of the message before, where both are between the same two, and received by their names. */
static int shared_tag(int i)
{
	const struct message *m = &plan[i], *before = m - 1;

	if (i == 0 || m->src != before->src || m->dst != before->dst || m->received != RECV_NAMED ||
	    before->received != RECV_NAMED)
		return i;
	return before->tag;
}

/*
 * Every other season ranks write in pairs, always others: who is hot today is cold
 * tomorrow, so rings are opened and handed back.
 */
static int some_target(int src)
{
	int season = (int)(rounds / SEASON % (2 * (uint64_t)ranks)), any = (int)roll((uint32_t)ranks);

	return season % 2 ? (season / 2 + ranks - src) % ranks : any;
}

static void make_plan(void)
{
	int i;

	for (i = 0; i < MESSAGES; i++) {
		struct message *m = &plan[i];

		m->src = (int)roll((uint32_t)ranks);
		m->dst = some_target(m->src);
		if (i > 0 && roll(2) == 0) { /* several in a row */
			m->src = m[-1].src;
			m->dst = m[-1].dst;
		}
		m->units = some_units();
		m->strided_out = roll(4) == 0;
		m->strided_in = roll(4) == 0;
		m->sent = (enum how_sent)roll(SENDS);
		m->received = (enum how_received)roll(RECVS);
		m->tag = shared_tag(i);
		m->out = m->in = NULL;
	}
}

static size_t room_of(int units, int strided)
{
	return (size_t)units * UNIT * (strided ? 2 : 1) + 1;
}

/* Where byte i of a message lies in its buffer. */
static size_t place_of(int i, int strided)
{
	return strided ? (size_t)(i / UNIT) * 2 * UNIT + (size_t)(i % UNIT) : (size_t)i;
}

static void fill(struct message *m, int number)
{
	int i;

	m->out = malloc(room_of(m->units, m->strided_out));
	for (i = 0; i < m->units * UNIT; i++)
		m->out[place_of(i, m->strided_out)] = byte_of(number, i);
}

static void check(const struct message *m, int number)
{
	size_t room = room_of(m->units, m->strided_in), left = 0, i;

	for (i = 0; i < (size_t)m->units * UNIT; i++)
		if (m->in[place_of((int)i, m->strided_in)] != byte_of(number, (int)i))
			fail("a byte is wrong", number);
	for (i = 0; m->strided_in && i < room - 1; i++)
		if (i % (2 * UNIT) >= UNIT && m->in[i] != 0xa5)
			fail("something was written into a gap", number);
	left += m->in[room - 1] != 0xa5;
	if (left)
		fail("something was written behind the end", number);
}

static void receive_probed(struct message *m, int number)
{
	MPI_Message handle;
	MPI_Status status;
	int count;

	MPI_Mprobe(m->src, tag_of(number), MPI_COMM_WORLD, &handle, &status);
	MPI_Get_count(&status, piece, &count);
	if (count != m->units)
		fail("a probe tells another length", number);
	MPI_Mrecv(m->in, m->units, m->strided_in ? gapped : piece, &handle, &status);
}

static int post_receive(struct message *m, int number, MPI_Request *req)
{
	if (m->dst != rank)
		return 0;
	m->in = malloc(room_of(m->units, m->strided_in));
	memset(m->in, 0xa5, room_of(m->units, m->strided_in));
	if (m->received == RECV_PROBED)
		return 0;
	MPI_Irecv(m->in, m->units, m->strided_in ? gapped : piece,
		  m->received == RECV_ANY_SOURCE ? MPI_ANY_SOURCE : m->src, tag_of(number), MPI_COMM_WORLD, req);
	return 1;
}

/* The last first, but those of one tag in the order in which they are sent. */
static int post_receives(MPI_Request *req)
{
	int i, k, n = 0;

	for (i = MESSAGES - 1; i >= 0; i--)
		for (k = i; plan[i].tag == i && k < MESSAGES && plan[k].tag == i; k++)
			n += post_receive(&plan[k], k, &req[n]);
	return n;
}

/* A blocking send may wait for a receive that its target posts only after its own: so those are not synchronous. */
static int post_sends(MPI_Request *req)
{
	int i, n = 0;

	for (i = 0; i < MESSAGES; i++) {
		struct message *m = &plan[i];
		MPI_Datatype type = m->strided_out ? gapped : piece;
		int blocking = m->sent == SEND_BLOCKING && m->received != RECV_PROBED;

		if (m->src != rank)
			continue;
		fill(m, i);
		bytes += (uint64_t)m->units * UNIT;
		if (blocking)
			MPI_Send(m->out, m->units, type, m->dst, tag_of(i), MPI_COMM_WORLD);
		else if (m->sent == SEND_ISSEND)
			MPI_Issend(m->out, m->units, type, m->dst, tag_of(i), MPI_COMM_WORLD, &req[n++]);
		else
			MPI_Isend(m->out, m->units, type, m->dst, tag_of(i), MPI_COMM_WORLD, &req[n++]);
	}
	return n;
}

static void exchange(void)
{
	static MPI_Request req[2 * MESSAGES];
	static MPI_Status status[2 * MESSAGES];
	int i, n;

	make_plan();
	n = post_receives(req);
	n += post_sends(req + n);
	for (i = 0; i < MESSAGES; i++)
		if (plan[i].dst == rank && plan[i].received == RECV_PROBED)
			receive_probed(&plan[i], i);
	MPI_Waitall(n, req, status);
	for (i = 0; i < MESSAGES; i++) {
		if (plan[i].dst == rank)
			check(&plan[i], i);
		free(plan[i].in);
		free(plan[i].out);
	}
}

static void collect(void)
{
	uint64_t mine = (uint64_t)rank + rounds, sum;
	int n = (int)roll(20000) + 1, root = (int)roll((uint32_t)ranks), i;
	int *v = malloc((size_t)n * sizeof(int));

	MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (sum != (uint64_t)ranks * rounds + (uint64_t)(ranks * (ranks - 1) / 2))
		fail("a sum is wrong", 0);
	for (i = 0; i < n; i++)
		v[i] = rank == root ? i + (int)rounds : -1;
	MPI_Bcast(v, n, MPI_INT, root, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		if (v[i] != i + (int)rounds)
			fail("a broadcast is wrong", 0);
	free(v);
}

/* KiB of this process in memory. */
static long resident(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5, end;
	long early = 0, late;
	int more = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Type_contiguous(UNIT, MPI_CHAR, &piece);
	MPI_Type_create_resized(piece, 0, 2 * UNIT, &gapped);
	MPI_Type_commit(&piece);
	MPI_Type_commit(&gapped);
	dice = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (end = MPI_Wtime() + seconds; more; rounds++) {
		exchange();
		if (roll(3) == 0)
			collect();
		if (!early && MPI_Wtime() > end - seconds + (seconds > 5 * STEADY ? seconds / 5 : STEADY))
			early = resident();
		more = MPI_Wtime() < end;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	late = resident();
	printf("rank %d: %llu rounds, %llu MB sent, resident %ld KiB, early on %ld\n", rank, (unsigned long long)rounds,
	       (unsigned long long)(bytes >> 20), late, early);
	if (early && late > early + early / 4 + 32768) {
		printf("rank %d: memory grows\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Type_free(&piece);
	MPI_Type_free(&gapped);
	MPI_Finalize();
	if (rank == 0)
		puts("ok");
	return 0;
}
