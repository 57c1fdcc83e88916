/* SPDX-License-Identifier: BSD-2-Clause */
/* helper.h - what the MPI programs of the stories share. */
#ifndef GLEX_TEST_MPI_HELPER_H
#define GLEX_TEST_MPI_HELPER_H

#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Ends the job unless ok. */
static inline void check(int ok, const char *what)
{
	int rank;

	if (ok)
		return;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("rank %d: %s\n", rank, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A counter of the netmod's; 0 without it. */
static inline unsigned long long counted(const char *wanted)
{
	unsigned long long value = 0;
	MPI_T_pvar_session session;
	MPI_T_pvar_handle handle;
	int index, count;

	if (MPI_T_pvar_get_index(wanted, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS)
		return 0;
	MPI_T_pvar_session_create(&session);
	MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
	MPI_T_pvar_read(session, handle, &value);
	MPI_T_pvar_handle_free(session, &handle);
	MPI_T_pvar_session_free(&session);
	return value;
}

static inline MPI_Group only(int rank)
{
	MPI_Group world, group;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &rank, &group);
	MPI_Group_free(&world);
	return group;
}

/* One rank is to write to our window, and we to another's. */
static inline void pscw_begins(MPI_Win win, int from, int to)
{
	MPI_Group group = only(from);

	MPI_Win_post(group, 0, win);
	MPI_Group_free(&group);
	group = only(to);
	MPI_Win_start(group, 0, win);
	MPI_Group_free(&group);
}

/* No descriptor is left to this process; or it has them back. */
static inline void starve(int on)
{
	static struct rlimit limit;
	struct rlimit none;
	int fd;

	if (!on) {
		setrlimit(RLIMIT_NOFILE, &limit);
		return;
	}
	fd = dup(0);
	close(fd);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = (rlim_t)fd;
	setrlimit(RLIMIT_NOFILE, &none);
}

#endif /* GLEX_TEST_MPI_HELPER_H */
