/* SPDX-License-Identifier: BSD-2-Clause */
/* peer.c - see peer.h. */
#include "test/lib/peer.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static bool is_peer;

void peer_mark_point(const char *file, int line)
{
	if (!is_peer)
		(_mark_point)(file, line);
}

struct peer peer_start(void (*body)(int fd, void *arg), void *arg)
{
	struct peer peer;
	int fd[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	peer.pid = fork();
	ck_assert_int_ge(peer.pid, 0);
	if (peer.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		is_peer = true;
		close(fd[0]);
		body(fd[1], arg);
		exit(EXIT_SUCCESS);
	}
	close(fd[1]);
	peer.fd = fd[0];
	return peer;
}

static int reap(struct peer *peer)
{
	int status = -1;

	ck_assert_int_eq(waitpid(peer->pid, &status, 0), peer->pid);
	close(peer->fd);
	peer->fd = -1;
	return status;
}

void peer_join(struct peer *peer)
{
	struct pollfd end = {.events = POLLIN};
	int status;

	end.fd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	if (end.fd >= 0) {
		ck_assert_msg(poll(&end, 1, PATIENCE_S * 1000) == 1, "a peer does not end");
		close(end.fd);
	}
	status = reap(peer);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS, "a peer failed: status %#x", status);
}

void peer_kill(struct peer *peer)
{
	kill(peer->pid, SIGKILL);
	reap(peer);
}

void say(int fd, const void *data, size_t size)
{
	ck_assert_msg(send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size, "the other process is gone");
}

void hear(int fd, void *data, size_t size)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};

	ck_assert_msg(poll(&in, 1, PATIENCE_S * 1000) == 1, "the other process says nothing");
	ck_assert_msg(recv(fd, data, size, MSG_WAITALL) == (ssize_t)size, "the other process is gone");
}

void meet(int fd)
{
	char here = 'h';

	say(fd, &here, 1);
	hear(fd, &here, 1);
}
