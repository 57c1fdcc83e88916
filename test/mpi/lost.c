/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost.c CASE - rank 2 of 3 is killed, and the others wait for it in the way that
 * CASE says.  They get MPIX_ERR_PROC_FAILED, go on with each other, and end.
 *
 * CASE network DIR: somebody else kills glexd; all get an error, leave a file in DIR
 * that says so, and end together: who ends alone is a reason for mpiexec to end the others.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"

#define DEAD 2
#define LONG (4 << 20)

static int rank;
static char *buf;

/* The error of a call that needed the dead one.  named: its text says who that is. */
static void check_failed(int error, int named)
{
	char text[MPI_MAX_ERROR_STRING];
	int class = MPI_SUCCESS, len;

	if (error != MPI_SUCCESS)
		MPI_Error_class(error, &class);
	check(class == MPIX_ERR_PROC_FAILED, "another error than MPIX_ERR_PROC_FAILED, or none");
	MPI_Error_string(error, text, &len);
	check(!named || strstr(text, "rank 2 on host "), text);
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	pause();
}

/* ---- the cases: what happens until rank 2 is dead ------------------------- */

static void posted(void)
{
	int x;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD)
		die();
	check_failed(MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
}

static MPI_Win window(void)
{
	MPI_Win win;

	MPI_Win_create(buf, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	return win;
}

/* Until it dies it lives, but does not answer. */
static void die_late(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD) {
		usleep(200000);
		die();
	}
}

static int put_or_get(int put, MPI_Win win)
{
	return put ? MPI_Put(buf + LONG, 9100, MPI_CHAR, DEAD, 0, 9100, MPI_CHAR, win)
		   : MPI_Get(buf + LONG, 100, MPI_CHAR, DEAD, 20000, 100, MPI_CHAR, win);
}

/*
 * Operations on the memory of one who lives, but does not answer, until it dies (the
 * first may still find it in its barrier); and again when that is known.
 */
static void one_sided(int put)
{
	int error, k;
	MPI_Win win;

	win = window();
	die_late();
	do {
		error = MPI_Win_lock(MPI_LOCK_SHARED, DEAD, 0, win);
		if (error == MPI_SUCCESS)
			error = put_or_get(put, win);
		if (error == MPI_SUCCESS)
			error = MPI_Win_unlock(DEAD, win);
	} while (error == MPI_SUCCESS);
	check_failed(error, 0);
	for (k = 0; k < 2; k++) {
		error = put_or_get(put, win);
		if (error == MPI_SUCCESS)
			error = MPI_Win_flush(DEAD, win);
		check_failed(error, 0);
	}
}

/* The same by operations that have requests. */
static void requested(int put)
{
	MPI_Request req;
	int error, waited;
	MPI_Win win;

	win = window();
	die_late();
	do {
		waited = 0;
		error = MPI_Win_lock(MPI_LOCK_SHARED, DEAD, 0, win);
		if (error != MPI_SUCCESS)
			break;
		error = put ? MPI_Rput(buf + LONG, 9100, MPI_CHAR, DEAD, 0, 9100, MPI_CHAR, win, &req)
			    : MPI_Rget(buf + LONG, 100, MPI_CHAR, DEAD, 20000, 100, MPI_CHAR, win, &req);
		if (error != MPI_SUCCESS)
			break;
		error = MPI_Wait(&req, MPI_STATUS_IGNORE);
		waited = error != MPI_SUCCESS;
		if (!waited)
			error = MPI_Win_unlock(DEAD, win);
	} while (error == MPI_SUCCESS);
	check_failed(error, 0);
	if (waited)
		check_failed(MPI_Win_unlock(DEAD, win), 0);
}

static void fence(void)
{
	MPI_Win win;
	int error, x;

	win = window();
	MPI_Win_fence(0, win);
	die_late();
	MPI_Put(buf + LONG, 9100, MPI_CHAR, DEAD, 0, 9100, MPI_CHAR, win);
	MPI_Get(buf + LONG, 100, MPI_CHAR, DEAD, 20000, 100, MPI_CHAR, win);
	error = MPI_Win_fence(0, win);
	check(error != MPI_SUCCESS, "a fence with a dead one succeeds");
	/* It may have failed because another rank has noticed. */
	check_failed(MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
}

static void any_source(void)
{
	int x;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD)
		die();
	check_failed(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
	check(MPIX_Comm_failure_ack(MPI_COMM_WORLD) == MPI_SUCCESS, "the failure cannot be acknowledged");
}

static volatile sig_atomic_t told, proxy;

static void count(int sig)
{
	(void)sig;
	told++;
}

static void go_on(int sig)
{
	(void)sig;
	kill(proxy, SIGCONT);
}

/*
 * Both wait for each other in turn, from any source, and for so long that they look whether they may.  They say
 * whether that is enough, so that both know when it is for both.
 */
static int enough(int mine)
{
	int i, error, others = 0;

	for (i = 0; i < 2; i++) {
		if (rank == i) {
			error = MPI_Recv(&others, 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			check(error == MPI_SUCCESS, "what has been acknowledged is an error again");
		} else {
			usleep(2000);
			MPI_Send(&mine, 1, MPI_INT, i, 8, MPI_COMM_WORLD);
		}
	}
	return mine && others;
}

/*
 * mpiexec tells of the death when the survivors have long noticed: its proxy there has been stopped.  Now and then
 * it never does: its proxy may see that its rank is gone before it sees that this has not said good-bye.
 */
static void die_untold(void)
{
	int x, pid = getppid();

	MPI_Bcast(&pid, 1, MPI_INT, DEAD, MPI_COMM_WORLD);
	proxy = pid;
	if (rank == 0) {
		signal(SIGALRM, go_on);
		alarm(20);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD) {
		kill(proxy, SIGSTOP);
		die();
	}
	check_failed(MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
	check(!told, "mpiexec tells of a death while its proxy is stopped");
}

/* They have acknowledged it, too. */
static void late_news(void)
{
	int i;

	die_untold();
	check(MPIX_Comm_failure_ack(MPI_COMM_WORLD) == MPI_SUCCESS, "the failure cannot be acknowledged");
	enough(1);
	if (rank == 0)
		go_on(0);
	for (i = 0; !enough(told || i == 500); i++)
		;
	enough(1);
}

/* Over a netmod that ends only what waits for the dead one: mpiexec's word ends what waits for anybody. */
static void only_news(void)
{
	MPI_Request req;
	int i, x, error, done = 0;

	die_untold();
	MPI_Sendrecv(&rank, 1, MPI_INT, !rank, 1, &x, 1, MPI_INT, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &req);
	if (rank == 0)
		go_on(0);
	for (i = 0, error = MPI_SUCCESS; i < 3000 && !done && error == MPI_SUCCESS; i++) {
		error = MPI_Test(&req, &done, MPI_STATUS_IGNORE);
		usleep(1000);
	}
	check(error != MPI_SUCCESS || !told, "what waits for anybody goes on waiting for a dead one");
	printf("rank %d: ok\n", rank);
	fflush(stdout);
	_exit(0); /* what else this netmod does of a death is not ours */
}

/* How: 0 the dead one, 1 anybody, 2 and 3 the same by a matched probe. */
static void probe(int how)
{
	int source = how & 1 ? MPI_ANY_SOURCE : DEAD;
	MPI_Message message;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD)
		die();
	if (how < 2)
		check_failed(MPI_Probe(source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
	else
		check_failed(MPI_Mprobe(source, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE), 0);
	check(MPIX_Comm_failure_ack(MPI_COMM_WORLD) == MPI_SUCCESS, "the failure cannot be acknowledged");
}

/*
 * Nobody has ever heard of the dead one: no request can tell of it; nor can mpiexec,
 * whose signal is the program's own here.
 */
static void die_silently(void)
{
	signal(SIGUSR1, SIG_IGN);
	if (rank == DEAD)
		die();
}

static void silent(void)
{
	int x;

	die_silently();
	check_failed(MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
}

static void silent_any_source(void)
{
	int x;

	die_silently();
	check_failed(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
	check(MPIX_Comm_failure_ack(MPI_COMM_WORLD) == MPI_SUCCESS, "the failure cannot be acknowledged");
}

/* It may have failed because another rank has noticed: that is waited for. */
static void silent_collective(void)
{
	int in = rank, out, x;

	die_silently();
	check(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS,
	      "a collective with a dead one succeeds");
	check_failed(MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
}

/*
 * MPICH notes two errors of a broadcast that does not come, and the second one is caused by the first: none is to
 * lead back to itself (install-into.sh, mend_error_chains).
 */
static void broadcast(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD)
		die();
	check_failed(MPI_Bcast(buf, 10000, MPI_CHAR, DEAD, MPI_COMM_WORLD), 0);
}

/* What nobody receives; the last word before is of another message, so that this one has been seen. */
static void unreceived(int len, int sync)
{
	MPI_Request req;
	MPI_Status status;
	int x;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD) {
		MPI_Probe(0, 1, MPI_COMM_WORLD, &status);
		MPI_Probe(1, 1, MPI_COMM_WORLD, &status);
		die();
	}
	if (sync)
		MPI_Issend(buf, len, MPI_CHAR, DEAD, 1, MPI_COMM_WORLD, &req);
	else
		MPI_Isend(buf, len, MPI_CHAR, DEAD, 1, MPI_COMM_WORLD, &req);
	check_failed(MPI_Wait(&req, MPI_STATUS_IGNORE), 1);
	check_failed(MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
}

/* A long message whose sender dies before it is fetched. */
static void unsent(void)
{
	MPI_Request req;
	MPI_Status status;
	int x;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD) {
		MPI_Isend(buf, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &req);
		MPI_Isend(buf, LONG, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &req);
		MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
		MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &status);
		die();
	}
	MPI_Probe(DEAD, 1, MPI_COMM_WORLD, &status);
	MPI_Send(&rank, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD);
	check_failed(MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, &status), 0);
	check_failed(MPI_Recv(buf, LONG, MPI_CHAR, DEAD, 1, MPI_COMM_WORLD, &status), 0);
}

/* The sender dies while long messages are on their way; the receiver may be anywhere in one. */
static void amidst(void)
{
	MPI_Status status;
	int i, error = MPI_SUCCESS;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD) {
		alarm(1); /* its default ends the process, as abruptly */
		for (;;) {
			MPI_Send(buf, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
			MPI_Send(buf, LONG, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		}
	}
	for (i = 0; error == MPI_SUCCESS; i++)
		error = MPI_Recv(buf, LONG, MPI_CHAR, DEAD, 1, MPI_COMM_WORLD, &status);
	check_failed(error, 0);
}

/* Round and round until glexd is gone; everybody learns it, whoever it talks to. */
static void network(const char *dir)
{
	char name[256];
	FILE *file;
	int i, x, error = MPI_SUCCESS;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		puts("ready");
		fflush(stdout);
	}
	while (error == MPI_SUCCESS && rank != DEAD)
		error = MPI_Sendrecv(&rank, 1, MPI_INT, !rank, 0, &x, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
	if (rank == DEAD) /* waits, nothing else */
		error = MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(error != MPI_SUCCESS, "no error although the network is gone");
	snprintf(name, sizeof(name), "%s/ok.%d", dir, rank);
	file = fopen(name, "w");
	check(file && !fclose(file), "no file can be written");
	alarm(30);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s/ok.%d", dir, i);
		while (access(name, F_OK))
			usleep(1000);
	}
	_exit(0);
}

/* ---- afterwards ----------------------------------------------------------- */

static void afterwards(void)
{
	MPI_Request req;
	int i, x = -1, error, peer = !rank;

	error = MPI_Send(&rank, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD);
	check_failed(error, 0);
	error = MPI_Isend(buf, LONG, MPI_CHAR, DEAD, 0, MPI_COMM_WORLD, &req);
	check_failed(error == MPI_SUCCESS ? MPI_Wait(&req, MPI_STATUS_IGNORE) : error, 0);
	error = MPI_Recv(&x, 1, MPI_INT, DEAD, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_failed(error, 0);
	MPIX_Comm_failure_ack(MPI_COMM_WORLD);
	for (i = 0; i < 100; i++) {
		memset(buf + LONG, rank + i, LONG);
		MPI_Isend(buf + LONG, i % 10 ? 100 : LONG, MPI_CHAR, peer, 7, MPI_COMM_WORLD, &req);
		error = MPI_Recv(buf, LONG, MPI_CHAR, i % 2 ? MPI_ANY_SOURCE : peer, 7, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		check(error == MPI_SUCCESS, "the survivors cannot go on");
		check(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a message to a survivor is lost");
		check(buf[0] == (char)(peer + i) && buf[i % 10 ? 99 : LONG - 1] == (char)(peer + i),
		      "the survivors get wrong data");
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	signal(SIGUSR1, count); /* MPICH's handler calls it, too */
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	buf = calloc(2, LONG);
	if (!strcmp(name, "posted"))
		posted();
	else if (!strcmp(name, "lock"))
		one_sided(1);
	else if (!strcmp(name, "get"))
		one_sided(0);
	else if (!strcmp(name, "rput"))
		requested(1);
	else if (!strcmp(name, "rget"))
		requested(0);
	else if (!strcmp(name, "fence"))
		fence();
	else if (!strcmp(name, "any_source"))
		any_source();
	else if (!strcmp(name, "broadcast"))
		broadcast();
	else if (!strcmp(name, "rendezvous"))
		unreceived(LONG, 0);
	else if (!strcmp(name, "synchronous"))
		unreceived(100, 1);
	else if (!strcmp(name, "unsent"))
		unsent();
	else if (!strcmp(name, "amidst"))
		amidst();
	else if (!strcmp(name, "late_news"))
		late_news();
	else if (!strcmp(name, "only_news"))
		only_news();
	else if (!strncmp(name, "probe", 5))
		probe(atoi(name + 5));
	else if (!strcmp(name, "silent"))
		silent();
	else if (!strcmp(name, "silent_any_source"))
		silent_any_source();
	else if (!strcmp(name, "silent_collective"))
		silent_collective();
	else if (!strcmp(name, "network"))
		network(argc > 2 ? argv[2] : ".");
	else
		check(0, "unknown case");
	afterwards();
	free(buf);
	check(MPI_Finalize() == MPI_SUCCESS, "the end fails");
	printf("rank %d: ok\n", rank);
	return 0;
}
