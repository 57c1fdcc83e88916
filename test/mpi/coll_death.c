/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_death.c - a rank is killed when the others are in a collective that the NICs
 * run; they get an error.  Then they leave without MPI_Finalize, which needs it.
 *
 *     coll_death barrier|bcast|reduce|ireduce|alltoall|ialltoall|inside|inter|build|ibuild DIRECTORY
 *
 * bcast: it is the root.  reduce: rank 0 is, and nobody else waits.  inside: it waits in a barrier, to which rank 0 comes
 * later; that may end well, but no other.
 * inter: who dies leads one of two groups, and only the other's leader misses it in an allreduce between
 * the groups; it tells the others of its group in a broadcast.
 * build, ibuild: it dies while trees are made, by what blocks or not, at some time; who has an error does not come to the
 * next barrier, which he revokes for those who have come through this one, but does not leave.
 * A file in the directory tells: what is printed is lost when mpiexec gives up first.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define DOOMED 1
#define COMMS  50

static int blocks[16];

static int reduce(MPI_Comm comm, int *sum)
{
	int one = 1;

	*sum = 0;
	return MPI_Allreduce(&one, sum, 1, MPI_INT, MPI_SUM, comm);
}

/* The odd ranks, whose first one is doomed, and the even ones. */
static MPI_Comm between(int rank)
{
	MPI_Comm half, inter;
	int i, sum;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 0, &inter);
	for (i = 0; i < 10; i++)
		if (reduce(inter, &sum) != MPI_SUCCESS || sum != 2)
			_exit(1);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	return inter;
}

static void tell(const char *directory, int rank)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/told.%d", directory, rank);
	file = fopen(path, "w");
	if (file)
		fclose(file);
}

static void await_over(const char *directory)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/over", directory);
	while (access(path, F_OK) != 0)
		usleep(50000);
}

static void die(int sig)
{
	(void)sig;
	raise(SIGKILL);
}

static int wait_for_all(MPI_Comm comm, int blocks)
{
	MPI_Request req;

	if (blocks)
		return MPI_Barrier(comm);
	MPI_Ibarrier(comm, &req);
	return MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* Each communicator's first barrier makes its tree. */
static void build(const char *directory, int rank, int blocks)
{
	struct itimerval soon = {.it_value.tv_usec = 1 + getpid() * 7919 % 20000};
	MPI_Comm comm[COMMS];
	int i;

	for (i = 0; i < COMMS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
	}
	signal(SIGALRM, die);
	if (rank == DOOMED)
		setitimer(ITIMER_REAL, &soon, NULL);
	for (i = 0; wait_for_all(comm[i], blocks) == MPI_SUCCESS; i = (i + 1) % COMMS)
		;
	MPIX_Comm_revoke(comm[(i + 1) % COMMS]);
	tell(directory, rank);
	await_over(directory);
	_exit(0);
}

static int exchange(MPI_Comm comm)
{
	return MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, blocks, 1, MPI_INT, comm);
}

static int call(const char *what, MPI_Comm comm)
{
	int one = 1, sum = 0;
	MPI_Request req;

	if (strcmp(what, "inter") == 0)
		return reduce(comm, &sum);
	if (strcmp(what, "barrier") == 0 || strcmp(what, "inside") == 0)
		return MPI_Barrier(comm);
	if (strcmp(what, "bcast") == 0)
		return MPI_Bcast(&sum, 1, MPI_INT, DOOMED, comm);
	if (strcmp(what, "reduce") == 0)
		return MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, comm);
	if (strcmp(what, "alltoall") == 0)
		return exchange(comm);
	if (strcmp(what, "ialltoall") == 0) {
		MPI_Ialltoall(MPI_IN_PLACE, 1, MPI_INT, blocks, 1, MPI_INT, comm, &req);
		return MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &req);
	return MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* Of the others in that call. */
static int may_end_well(const char *what, int rank)
{
	return strcmp(what, "inside") == 0 || (strcmp(what, "reduce") == 0 && rank != 0);
}

static void end(const char *what, MPI_Comm comm)
{
	const struct itimerval soon = {.it_value.tv_usec = 50000};

	if (strcmp(what, "inside") != 0)
		raise(SIGKILL);
	signal(SIGALRM, die);
	setitimer(ITIMER_REAL, &soon, NULL);
	MPI_Barrier(comm);
	_exit(1);
}

int main(int argc, char **argv)
{
	int rank, i;
	MPI_Comm comm;

	if (argc != 3)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &rank);
	for (i = 0; i < 10; i++)
		if (MPI_Barrier(comm) != MPI_SUCCESS ||
		    (strcmp(argv[1], "alltoall") == 0 && exchange(comm) != MPI_SUCCESS))
			return 1;
	if (strstr(argv[1], "build"))
		build(argv[2], rank, argv[1][0] == 'b');
	if (strcmp(argv[1], "inter") == 0)
		comm = between(rank);
	if (rank == DOOMED)
		end(argv[1], comm);
	if (rank == 0 && strcmp(argv[1], "inside") == 0)
		usleep(200000);
	if (call(argv[1], comm) == MPI_SUCCESS && !may_end_well(argv[1], rank))
		_exit(1);
	/* Not between groups: MPICH makes a ring of its error codes there, over any network, and goes round it. */
	if (strcmp(argv[1], "inter") != 0 && MPI_Barrier(comm) == MPI_SUCCESS)
		_exit(1);
	tell(argv[2], rank);
	_exit(0);
}
