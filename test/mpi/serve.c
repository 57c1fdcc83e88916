/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.c - a server whose first client is killed serves the next, which has the same address.
 *
 * server CASE DIR: writes its port to DIR/port, accepts a client, talks with it, and the client dies.
 *   fatal      an error would end the server, but for those on what it shares with the client.  When
 *              it knows that the client is dead, rank 0 waits for rank 1, which lives and takes its time
 *   successor  it learns of the death only when the next client has begun to connect
 * Then it writes DIR/next, accepts another client, and says ok when they have talked.
 *
 * client DIR die|talk: says in DIR/begun that it is about to connect, if it is to talk.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"

#define TALKS	 300 /* enough for a ring of one's own */
#define PATIENCE 2.5 /* seconds, more than anybody is waited for in vain */
#define DEADLINE 20.0

static const char *dir;

static const char *path(const char *name)
{
	static char buf[4096];

	snprintf(buf, sizeof(buf), "%s/%s", dir, name);
	return buf;
}

/* The file is there with all of its text. */
static void put(const char *name, const char *text)
{
	char whole[4096];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s", path(name));
	f = fopen(path("new"), "w");
	check(f && fputs(text, f) >= 0 && fclose(f) == 0, "a file cannot be written");
	check(rename(path("new"), whole) == 0, "a file cannot be named");
}

static void await(const char *name)
{
	double begin = MPI_Wtime();

	while (access(path(name), R_OK) != 0) {
		check(MPI_Wtime() - begin < DEADLINE, "a file does not come");
		usleep(1000);
	}
}

static void talk(MPI_Comm other, int first)
{
	int i, x;

	for (i = 0; i < TALKS; i++) {
		x = i;
		if (first)
			MPI_Send(&x, 1, MPI_INT, 0, 0, other);
		x = -1;
		MPI_Recv(&x, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
		check(x == i, "another number than was sent");
		if (!first)
			MPI_Send(&x, 1, MPI_INT, 0, 0, other);
	}
}

/* ---- client -------------------------------------------------------------- */

static void client(int die)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm server;
	FILE *f;

	f = fopen(path("port"), "r");
	check(f && fgets(port, sizeof(port), f), "there is no port");
	fclose(f);
	if (!die)
		put("begun", "");
	MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server);
	talk(server, 1);
	if (die) {
		kill(getpid(), SIGKILL);
		pause();
	}
	MPI_Comm_disconnect(&server);
}

/* ---- server -------------------------------------------------------------- */

/* Rank 1 answers when it has worked for a while. */
static void work(void)
{
	double begin;
	int x;

	MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (begin = MPI_Wtime(); MPI_Wtime() - begin < PATIENCE;)
		usleep(1000);
	MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

/* The client is dead, and we know. */
static void learn_of_it(MPI_Comm client)
{
	int x, error;

	error = MPI_Recv(&x, 1, MPI_INT, 0, 0, client, MPI_STATUS_IGNORE);
	check(error != MPI_SUCCESS, "a dead client has sent something");
}

static void serve_first(const char *name, MPI_Comm client)
{
	int x = 1;

	MPI_Comm_set_errhandler(client, MPI_ERRORS_RETURN);
	talk(client, 0);
	if (!strcmp(name, "fatal")) {
		learn_of_it(client);
		MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		put("next", "");
	} else {
		put("next", "");
		await("begun");
		usleep(300000); /* its first packets have come */
	}
}

static void serve(const char *name)
{
	MPI_Comm first, second;
	char port[MPI_MAX_PORT_NAME];
	MPI_Request req = MPI_REQUEST_NULL;
	int x = 0;

	MPI_Open_port(MPI_INFO_NULL, port);
	put("port", port);
	MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &first);
	serve_first(name, first);
	if (!strcmp(name, "successor"))
		MPI_Isend(&x, 1, MPI_INT, 0, 0, first, &req);
	MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &second);
	talk(second, 0);
	MPI_Comm_disconnect(&second);
	if (req != MPI_REQUEST_NULL)
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	puts("ok");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	check(argc == 4, "server CASE DIR, or client DIR die|talk");
	if (!strcmp(argv[1], "client")) {
		dir = argv[2];
		client(!strcmp(argv[3], "die"));
	} else {
		dir = argv[3];
		if (rank == 0)
			serve(argv[2]);
		else if (!strcmp(argv[2], "fatal"))
			work();
	}
	MPI_Finalize();
	return 0;
}
