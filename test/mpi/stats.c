/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c - sends what is easily counted and compares it with the performance
 * variables of the netmod.  2 ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORTS 100
#define SHORT  100 /* bytes; very short ones are inside the header */
#define LONGS  3
#define LONG   (1 << 20)

static MPI_T_pvar_session session;

static void fail(const char *what, unsigned long long value)
{
	printf("%s is %llu\n", what, value);
	exit(1);
}

#define CLASSES 8 /* of length: to 64, 256, 1 Ki, 4 Ki, 16 Ki, 64 Ki, 1 Mi bytes, more */

/* value has `expected` elements. */
static void values_of(const char *wanted, int expected, unsigned long long *value)
{
	int n, i;

	MPI_T_pvar_get_num(&n);
	for (i = 0; i < n; i++) {
		int name_len, verbosity, class, bind, readonly, continuous, atomic, desc_len, count;
		char name[256], desc[256];
		MPI_T_pvar_handle handle;
		MPI_Datatype type;
		MPI_T_enum values;

		name_len = sizeof(name);
		desc_len = sizeof(desc);
		MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &values, desc, &desc_len, &bind,
				    &readonly, &continuous, &atomic);
		if (strcmp(name, wanted) != 0)
			continue;
		if (type != MPI_UNSIGNED_LONG_LONG || class != MPI_T_PVAR_CLASS_COUNTER)
			fail("the type of a variable", 0);
		MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count);
		if (count != expected)
			fail("the number of values of a variable", (unsigned long long)count);
		MPI_T_pvar_read(session, handle, value);
		MPI_T_pvar_handle_free(session, &handle);
		return;
	}
	fail(wanted, 0);
}

static unsigned long long value_of(const char *wanted)
{
	unsigned long long value;

	values_of(wanted, 1, &value);
	return value;
}

/* So many, within this class of length; and what all classes have is what the variable without them says. */
static void expect_of_class(const char *name, int class, unsigned long long least, unsigned long long most)
{
	unsigned long long value[CLASSES], sum = 0;
	char by_size[64];

	snprintf(by_size, sizeof(by_size), "%s_by_size", name);
	values_of(by_size, CLASSES, value);
	for (int i = 0; i < CLASSES; i++)
		sum += value[i];
	if (value[class] < least || value[class] > most)
		fail(by_size, value[class]);
	if (sum != value_of(name))
		fail("the sum of all classes", sum);
}

static void expect(const char *name, unsigned long long least, unsigned long long most)
{
	unsigned long long value = value_of(name);

	if (value < least || value > most)
		fail(name, value);
}

int main(int argc, char **argv)
{
	int i, rank, provided;
	char *buf = calloc(1, LONG);

	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_T_pvar_session_create(&session);
	for (i = 0; i < SHORTS + LONGS; i++) {
		if (rank == 0)
			MPI_Send(buf, i < SHORTS ? SHORT : LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	expect("glex_peers", 1, 1);
	if (rank == 0) {
		expect("glex_packets", SHORTS + LONGS, SHORTS + LONGS + 20);
		expect("glex_packet_bytes", SHORT * SHORTS, SHORT * SHORTS + 2000);
		expect("glex_rendezvous", LONGS, LONGS);
		expect("glex_rendezvous_bytes", LONGS * LONG, LONGS * LONG);
		expect("glex_gets", 0, 0);
		expect_of_class("glex_packets", 1, SHORTS, SHORTS + 10);
		expect_of_class("glex_rendezvous", 6, LONGS, LONGS);
		expect_of_class("glex_gets", 6, 0, 0);
		expect("glex_rings_opened", 1, 1);
		expect("glex_rings_refused", 0, 0);
		expect("glex_rings_closed", 0, 0);
		expect("glex_peers_lost", 0, 0);
		expect("glex_rendezvous_no_room", 0, 0);
	} else {
		expect_of_class("glex_gets", 6, LONGS, LONGS);
		expect("glex_rendezvous", 0, 0);
		expect("glex_gets", LONGS, LONGS);
		expect("glex_get_bytes", LONGS * LONG, LONGS * LONG);
		expect("glex_cache_misses", 1, 3);
	}
	MPI_T_pvar_session_free(&session);
	MPI_Finalize();
	MPI_T_finalize();
	if (rank == 0)
		puts("ok");
	free(buf);
	return 0;
}
