/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost_child.c CASE - a spawned process is killed while its parent waits for anybody
 * on a communicator with it: in a receive (inter), in one on the merged communicator
 * (merged), in a probe (probe).  The parent gets MPIX_ERR_PROC_FAILED, its other
 * communicators are as before, and it ends.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"

static void be_child(MPI_Comm parent)
{
	MPI_Comm all;
	int x = 1;

	MPI_Intercomm_merge(parent, 1, &all);
	MPI_Send(&x, 1, MPI_INT, 0, 0, parent);
	usleep(300000);
	kill(getpid(), SIGKILL);
	pause();
}

static int wait_for_anybody(const char *name, MPI_Comm inter, MPI_Comm all)
{
	int x;

	if (!strcmp(name, "probe"))
		return MPI_Probe(MPI_ANY_SOURCE, 1, inter, MPI_STATUS_IGNORE);
	return MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 1, strcmp(name, "merged") ? inter : all, MPI_STATUS_IGNORE);
}

/* Nobody is missing there. */
static void check_others(void)
{
	MPI_Request req;
	int x = 0, y = 7;

	MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &req);
	MPI_Send(&y, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
	check(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS && x == 7, "a communicator without the dead has failed");
}

int main(int argc, char **argv)
{
	MPI_Comm parent, inter, all;
	int x, error, class = MPI_SUCCESS;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		be_child(parent);
	MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Intercomm_merge(inter, 0, &all);
	MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
	MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE);
	error = wait_for_anybody(argc > 1 ? argv[1] : "", inter, all);
	if (error != MPI_SUCCESS)
		MPI_Error_class(error, &class);
	check(class == MPIX_ERR_PROC_FAILED, "another error than MPIX_ERR_PROC_FAILED, or none");
	check_others();
	check(MPI_Finalize() == MPI_SUCCESS, "the end fails");
	puts("ok");
	return 0;
}
