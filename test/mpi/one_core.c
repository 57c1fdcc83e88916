/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * one_core.c - ranks that are all bound to one processor, of a machine that may have
 * more: who waits gives way, or each message would cost a turn of the scheduler.
 *
 * What is asked for is the processor time of a round trip, which other programs do
 * not make longer: some microseconds, and half a millisecond or more without.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

#include "helper.h"

#define TRIPS 1000
#define MOST  100e-6

/* Before MPI_Init: glexd asks when the device is opened. */
static int bind_to_one(void)
{
	cpu_set_t set;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -1;
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void trips(int rank, int n)
{
	char word[8] = "";

	for (int i = 0; i < n; i++) {
		if (rank == 0)
			MPI_Send(word, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(word, 8, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(word, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	double start, each;
	int rank, bound = bind_to_one();

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	check(bound == 0, "the processor cannot be chosen");
	trips(rank, 100);
	start = cpu_s();
	trips(rank, TRIPS);
	each = (cpu_s() - start) / TRIPS;
	if (each > MOST)
		fprintf(stderr, "rank %d: a round trip took %.1f us of the processor\n", rank, each * 1e6);
	check(each <= MOST, "ranks on one processor do not give way to each other");
	MPI_Finalize();
	if (rank == 0)
		puts("ok");
	return 0;
}
