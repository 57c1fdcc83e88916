/* SPDX-License-Identifier: BSD-2-Clause */
/* raw.c - see raw.h. */
#include "test/lib/raw.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "emulator/abi/shm_layout.h"

#define PATIENCE_MS 10000
#define MOST_FDS    16

void raw_name(char *name, size_t size)
{
	const char *job = getenv("GLEX_JOB"), *given = getenv("GLEX_SOCKET");

	if (given && *given)
		snprintf(name, size, "%s", given);
	else
		snprintf(name, size, "@glex-%u%s%s", (unsigned)geteuid(), job ? "-" : "", job ? job : "");
}

static int open_at(const char *name, int (*act)(int fd, const struct sockaddr *addr, socklen_t len))
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), error;

	if (fd < 0 || n >= sizeof(addr.sun_path))
		return -1;
	memcpy(addr.sun_path, name, n);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	n += offsetof(struct sockaddr_un, sun_path) + (name[0] != '@');
	if (act(fd, (struct sockaddr *)&addr, (socklen_t)n) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int bind_and_listen(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len) < 0 ? -1 : listen(fd, 16);
}

int raw_listen(const char *name)
{
	return open_at(name, bind_and_listen);
}

int raw_dial(const char *name)
{
	return open_at(name, connect);
}

bool raw_send(int fd, const void *data, size_t size, const int *fds, size_t n)
{
	char control[CMSG_SPACE(sizeof(int) * MOST_FDS)] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (n > 0 && n <= MOST_FDS) {
		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	return sendmsg(fd, &mh, MSG_NOSIGNAL) == (ssize_t)size;
}

bool raw_receive(int fd, struct emu_ctl_msg *msg, int *fds)
{
	char control[CMSG_SPACE(sizeof(int) * EMU_WIRE_FDS)];
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct pollfd in = {.fd = fd, .events = POLLIN};
	int got[EMU_WIRE_FDS] = {-1, -1};
	struct cmsghdr *c;
	size_t i;

	if (poll(&in, 1, PATIENCE_MS) != 1 || recvmsg(fd, &mh, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*msg))
		return false;
	c = CMSG_FIRSTHDR(&mh);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(got, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	for (i = 0; i < EMU_WIRE_FDS; i++) {
		if (fds)
			fds[i] = got[i];
		else if (got[i] >= 0)
			close(got[i]);
	}
	return true;
}

int raw_call(int fd, uint16_t op, struct emu_ctl_msg *msg, int fd_in, int *fds_out)
{
	msg->head.magic = EMU_WIRE_MAGIC;
	msg->head.version = EMU_WIRE_VERSION;
	msg->head.code = op;
	if (!raw_send(fd, msg, sizeof(*msg), &fd_in, fd_in >= 0) || !raw_receive(fd, msg, fds_out))
		return -1;
	return msg->head.code;
}

void raw_hello(struct emu_ctl_msg *msg, bool observer)
{
	memset(msg, 0, sizeof(*msg));
	msg->hello.abi_version = EMU_ABI_VERSION;
	msg->hello.layout_hash = EMU_LAYOUT_HASH;
	msg->hello.rank = msg->hello.node = EMU_UNSET;
	msg->hello.nodes = msg->hello.ppn = 1;
	msg->hello.membarrier = 1;
	msg->hello.observer = observer;
	msg->hello.pid = (uint32_t)getpid();
}

pid_t raw_glexd_pid(const char *name)
{
	struct emu_ctl_msg msg;
	int fd = raw_dial(name), status;

	if (fd < 0)
		return 0;
	raw_hello(&msg, true);
	status = raw_call(fd, EMU_CTL_HELLO, &msg, -1, NULL);
	close(fd);
	return status == EMU_CTL_OK ? (pid_t)msg.welcome.glexd_pid : 0;
}

int raw_nic(uint32_t nic_id, struct emu_ctl_nic *nic)
{
	struct emu_ctl_msg msg;
	char name[128];
	int fd, found = -1;
	uint32_t i;

	raw_name(name, sizeof(name));
	fd = raw_dial(name);
	if (fd < 0)
		return -1;
	raw_hello(&msg, true);
	if (raw_call(fd, EMU_CTL_HELLO, &msg, -1, NULL) == EMU_CTL_OK) {
		for (i = 0; found < 0; i++) {
			memset(&msg, 0, sizeof(msg));
			msg.nic.position = i;
			if (raw_call(fd, EMU_CTL_NIC_LIST, &msg, -1, NULL) != EMU_CTL_OK)
				break;
			found = msg.nic.nic_id == nic_id ? 0 : -1;
		}
	}
	close(fd);
	*nic = msg.nic;
	return found;
}
