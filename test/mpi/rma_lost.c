/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rma_lost.c CALL - rank 2 dies where ranks 0 and 1 synchronize with it: CALL gives those
 * who need it MPIX_ERR_PROC_FAILED, soon, and those who do not nothing; then both go on.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"

#define BYTES (8 << 20)
#define PART  (BYTES / 4)

static int rank;
static char *mem, *buf;
static MPI_Win win;

static MPI_Group group_of(int n, const int *ranks)
{
	MPI_Group world, group;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, n, ranks, &group);
	MPI_Group_free(&world);
	return group;
}

static void die(void)
{
	raise(SIGKILL);
}

/* In the middle of something, most likely. */
static void die_soon(void)
{
	ualarm(30 * 1000, 0);
}

/* While others need it to look into MPI. */
static void die_polling(void)
{
	int flag;

	die_soon();
	for (;;)
		MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static int put(int target)
{
	return MPI_Put(buf, PART, MPI_CHAR, target, 0, PART, MPI_CHAR, win);
}

static int get(int target)
{
	return MPI_Get(buf, PART, MPI_CHAR, target, 0, PART, MPI_CHAR, win);
}

static int post(int n, const int *ranks)
{
	MPI_Group group = group_of(n, ranks);
	int error = MPI_Win_post(group, 0, win);

	MPI_Group_free(&group);
	return error;
}

static int start(int target)
{
	MPI_Group group = group_of(1, &target);
	int error = MPI_Win_start(group, 0, win);

	MPI_Group_free(&group);
	return error;
}

/* Each returns the error that the caller has got, of whichever of its calls. */

static const int both[] = {1, 2}, dead[] = {2}, alive[] = {0};

static int case_wait(void)
{
	if (rank == 2) {
		sleep(1);
		die();
	}
	if (rank == 1) { /* has done its part; without an error */
		int error = start(0);

		check(error == MPI_SUCCESS, "an epoch with those who live cannot begin");
		check(put(0) == MPI_SUCCESS && MPI_Win_complete(win) == MPI_SUCCESS, "nor end");
		return MPIX_ERR_PROC_FAILED;
	}
	return post(2, both) != MPI_SUCCESS ? MPI_ERR_OTHER : MPI_Win_wait(win);
}

/* All is done before somebody dies, and before it is waited for. */
static int case_wait_done(void)
{
	int x, error;

	if (rank == 1)
		return MPIX_ERR_PROC_FAILED;
	if (rank == 2) {
		start(0);
		put(0);
		MPI_Win_complete(win);
		MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		sleep(1);
		die();
	}
	error = post(1, dead);
	check(error == MPI_SUCCESS, "nobody has died yet");
	MPI_Recv(&x, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(MPI_Recv(&x, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS, "it lives");
	check(MPI_Win_wait(win) == MPI_SUCCESS, "what was done is not there");
	return MPIX_ERR_PROC_FAILED;
}

static int case_wait_amidst(void)
{
	if (rank == 2) {
		start(0);
		die_soon();
		for (;;)
			put(0);
	}
	return rank == 1 ? MPIX_ERR_PROC_FAILED : post(1, dead) != MPI_SUCCESS ? MPI_ERR_OTHER : MPI_Win_wait(win);
}

static int case_test(void)
{
	int error, done = 0;

	if (rank == 2) {
		sleep(1);
		die();
	}
	if (rank == 1)
		return MPIX_ERR_PROC_FAILED;
	error = post(1, dead);
	while (error == MPI_SUCCESS && !done)
		error = MPI_Win_test(win, &done);
	return error;
}

static int case_post(void)
{
	int error, x;

	if (rank == 2)
		die();
	if (rank == 1)
		return MPIX_ERR_PROC_FAILED;
	check(MPI_Recv(&x, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS, "it lives");
	error = post(1, dead);
	return error != MPI_SUCCESS ? error : MPI_Win_wait(win);
}

static int case_start(void)
{
	int error;

	if (rank == 2) {
		sleep(1);
		die();
	}
	if (rank == 1)
		return MPIX_ERR_PROC_FAILED;
	error = start(2);
	if (error == MPI_SUCCESS)
		error = put(2);
	return error != MPI_SUCCESS ? error : MPI_Win_complete(win);
}

static int case_complete(void)
{
	int i, error;

	if (rank == 2) {
		post(1, alive);
		die_polling();
	}
	if (rank == 1)
		return MPIX_ERR_PROC_FAILED;
	error = start(2);
	for (i = 0; error == MPI_SUCCESS && i < 1000; i++)
		error = put(2);
	return error != MPI_SUCCESS ? error : MPI_Win_complete(win);
}

/* It never comes to the second one. */
static int case_fence(void)
{
	check(MPI_Win_fence(0, win) == MPI_SUCCESS, "nobody has died yet");
	if (rank == 2) {
		sleep(1);
		die();
	}
	put(!rank);
	return MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* It has told that it will write, and does not. */
static int case_fence_half(void)
{
	int error = MPI_Win_fence(0, win), i;

	if (rank == 2) {
		for (i = 0; i < 300; i++)
			put(i % 2);
		die_soon();
	}
	return error != MPI_SUCCESS ? error : MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* Nothing has come from it. */
static int case_fence_to(void)
{
	int error = MPI_Win_fence(0, win), x;

	if (rank == 2)
		die_polling();
	for (x = 0; error == MPI_SUCCESS && x < 100; x++)
		error = put(2);
	return error == MPI_SUCCESS ? MPI_Win_fence(MPI_MODE_NOSUCCEED, win) : error;
}

/* In whichever step of one of many, among puts to it and from it. */
static int case_fences(void)
{
	int error = MPI_Win_fence(0, win), i;

	if (rank == 2)
		die_soon();
	while (error == MPI_SUCCESS) {
		for (i = 0; error == MPI_SUCCESS && i < 4; i++)
			error = put((rank + 1 + i % 2) % 3);
		if (error == MPI_SUCCESS)
			error = MPI_Win_fence(0, win);
	}
	return error;
}

/* More of them by one than by the other: they fail, but end. */
static int case_fences_on(void)
{
	int error = case_fences(), i;

	for (i = 0; error != MPI_SUCCESS && i < 1 + 2 * rank; i++)
		error = MPI_Win_fence(0, win);
	return error;
}

static int passive(int (*flush)(int, MPI_Win), int (*flush_all)(MPI_Win), int all)
{
	int error;

	if (rank == 2)
		die_polling();
	if (rank == 1)
		return MPIX_ERR_PROC_FAILED;
	error = all ? MPI_Win_lock_all(0, win) : MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win);
	while (error == MPI_SUCCESS) {
		error = put(2);
		if (error == MPI_SUCCESS && flush)
			error = flush(2, win);
		else if (error == MPI_SUCCESS && flush_all)
			error = flush_all(win);
		else if (error == MPI_SUCCESS && all && (error = MPI_Win_unlock_all(win)) == MPI_SUCCESS)
			error = MPI_Win_lock_all(0, win);
		else if (error == MPI_SUCCESS && !all && (error = MPI_Win_unlock(2, win)) == MPI_SUCCESS)
			error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
	}
	return error;
}

static int case_unlock(void)
{
	return passive(NULL, NULL, 0);
}

static int case_unlock_all(void)
{
	return passive(NULL, NULL, 1);
}

static int case_flush(void)
{
	return passive(MPI_Win_flush, NULL, 0);
}

static int case_flush_local(void)
{
	return passive(MPI_Win_flush_local, NULL, 0);
}

static int case_flush_all(void)
{
	return passive(NULL, MPI_Win_flush_all, 1);
}

static int case_flush_local_all(void)
{
	return passive(NULL, MPI_Win_flush_local_all, 1);
}

/* It dies with a lock on the window of one who lives. */
static int case_lock_held(void)
{
	int error, x;

	if (rank == 2) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
		put(1);
		MPI_Win_flush(1, win);
		MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		sleep(1);
		die();
	}
	if (rank == 1)
		return MPIX_ERR_PROC_FAILED;
	MPI_Recv(&x, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
	if (error == MPI_SUCCESS)
		error = put(1);
	return error != MPI_SUCCESS ? error : MPI_Win_unlock(1, win);
}

/* The same where the lock is that of who waits. */
static int case_lock_own(void)
{
	int error, x;

	if (rank == 0)
		return MPIX_ERR_PROC_FAILED;
	if (rank == 2) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
		put(1);
		MPI_Win_flush(1, win);
		MPI_Send(&rank, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
		sleep(1);
		die();
	}
	MPI_Recv(&x, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
	return error != MPI_SUCCESS ? error : MPI_Win_unlock(1, win);
}

/* It dies while it waits for a lock: others have their turn. */
static int case_lock_queued(void)
{
	int k, error, x;

	if (rank == 0) { /* whose window it is, and who has to know first */
		check(MPI_Recv(&x, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS, "it lives");
		check(MPI_Send(&rank, 1, MPI_INT, 1, 2, MPI_COMM_WORLD) == MPI_SUCCESS, "no word to rank 1");
		check(MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS, "no word");
		return MPIX_ERR_PROC_FAILED;
	}
	if (rank == 1) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Put(buf, 4, MPI_CHAR, 0, 0, 4, MPI_CHAR, win);
		MPI_Win_flush(0, win);
		MPI_Send(&rank, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
		check(MPI_Recv(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS, "no word");
		for (k = 0; k < 3; k++) {
			error = MPI_Win_unlock(0, win);
			check(error == MPI_SUCCESS, "the lock is another's");
			if (k < 2)
				MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		}
		MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		return MPIX_ERR_PROC_FAILED;
	}
	MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	die_soon();
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
	put(0);
	MPI_Win_unlock(0, win);
	return MPI_SUCCESS;
}

/* It dies while others talk: they learn of it where they end what they wrote to it, or read of it. */
static int later(int (*move)(int target))
{
	int error, x;

	if (rank == 2)
		die_polling();
	if (rank == 1) {
		sleep(1);
		check(MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD) == MPI_SUCCESS, "a message cannot be sent");
		return MPIX_ERR_PROC_FAILED;
	}
	MPI_Win_lock_all(0, win);
	for (x = 0; x < 100; x++)
		move(2);
	error = MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(error == MPI_SUCCESS, "a receive has an error that is another's");
	check(put(1) == MPI_SUCCESS && MPI_Win_flush(1, win) == MPI_SUCCESS, "nor does a flush to who lives");
	return MPI_Win_unlock_all(win);
}

static int case_later(void)
{
	return later(put);
}

static int case_later_get(void)
{
	return later(get);
}

/* Of two threads the error is that one's whose wait is in vain. */
static void *flushes(void *error)
{
	int *e = error;

	*e = MPI_SUCCESS;
	while (*e == MPI_SUCCESS) {
		*e = put(2);
		if (*e == MPI_SUCCESS)
			*e = MPI_Win_flush(2, win);
	}
	return NULL;
}

static int case_thread(void)
{
	int error, x, k;
	pthread_t thread;

	if (rank == 2)
		die_polling();
	if (rank == 1) {
		for (k = 0; k < 100; k++) {
			usleep(1000);
			check(MPI_Send(&k, 1, MPI_INT, 0, 1, MPI_COMM_WORLD) == MPI_SUCCESS,
			      "a message cannot be sent");
		}
		return MPIX_ERR_PROC_FAILED;
	}
	MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win);
	check(pthread_create(&thread, NULL, flushes, &error) == 0, "no thread");
	for (k = 0; k < 100; k++)
		check(MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS && x == k,
		      "a receive has an error that is another's");
	pthread_join(thread, NULL);
	return error;
}

/* It dies in the middle of writing; then everybody wants to end the window. */
static int case_free(void)
{
	if (rank == 2) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		die_soon();
		for (;;)
			put(0);
	}
	sleep(1);
	return MPI_Win_free(&win);
}

#define CASE(name)                                                                                                     \
	{                                                                                                              \
#name, case_##name                                                                                     \
	}
static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	CASE(wait),	   CASE(wait_done), CASE(wait_amidst),	   CASE(test),	     CASE(post),
	CASE(start),	   CASE(complete),  CASE(fence),	   CASE(fence_half), CASE(fence_to),
	CASE(fences),	   CASE(fences_on), CASE(unlock),	   CASE(unlock_all), CASE(flush),
	CASE(flush_local), CASE(flush_all), CASE(flush_local_all), CASE(lock_held),  CASE(lock_own),
	CASE(lock_queued), CASE(later),	    CASE(later_get),	   CASE(thread),     CASE(free),
};

int main(int argc, char **argv)
{
	int error = MPI_SUCCESS, class, x;
	char text[MPI_MAX_ERROR_STRING];
	size_t i;

	MPI_Init_thread(&argc, &argv, argc > 1 && !strcmp(argv[1], "thread") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			&x);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	buf = calloc(1, BYTES);
	MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &mem);
	MPI_Win_create(mem, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	signal(SIGUSR1, SIG_IGN); /* mpiexec's word of it may come when MPICH ends, which does not survive that */
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			error = cases[i].run();
	MPI_Error_class(error, &class);
	if (class != MPIX_ERR_PROC_FAILED) {
		MPI_Error_string(error, text, &x);
		check(0, text);
	}
	error = MPI_Sendrecv(&rank, 1, MPI_INT, !rank, 0, &x, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(error == MPI_SUCCESS && x == !rank, "the survivors cannot go on");
	check(MPI_Finalize() == MPI_SUCCESS, "the end fails"); /* the window has lost a member: it stays */
	printf("rank %d: ok\n", rank);
	return 0;
}
