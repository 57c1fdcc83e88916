/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_death.c - a rank is killed when the others are in a collective that the NICs
 * run; they get an error.  Then they leave without MPI_Finalize, which needs it.
 *
 *     coll_death barrier|ireduce DIRECTORY
 *
 * A file there tells: what is printed is lost when mpiexec gives up first.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DOOMED 1

int main(int argc, char **argv)
{
	int rank, one = 1, sum = 0, i, ret;
	MPI_Request req;
	MPI_Comm comm;
	char path[512];
	FILE *file;

	if (argc != 3)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &rank);
	for (i = 0; i < 10; i++)
		if (MPI_Barrier(comm) != MPI_SUCCESS)
			return 1;
	if (rank == DOOMED)
		raise(SIGKILL);
	if (strcmp(argv[1], "ireduce") == 0) {
		MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &req);
		ret = MPI_Wait(&req, MPI_STATUS_IGNORE);
	} else {
		ret = MPI_Barrier(comm);
	}
	if (ret == MPI_SUCCESS || MPI_Barrier(comm) == MPI_SUCCESS)
		_exit(1);
	snprintf(path, sizeof(path), "%s/told.%d", argv[2], rank);
	file = fopen(path, "w");
	if (file)
		fclose(file);
	_exit(0);
}
