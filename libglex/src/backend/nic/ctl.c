/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl.c - asking glexd.
 *
 * Every wait has an end: a glexd that is stopped or hangs costs a caller
 * REPLY_NS, one that works or waits for a processor eight times as much, and
 * then counts as lost (patience.h).
 */
#include "backend/nic/ctl.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "backend/nic/patience.h"
#include "cfg/cfg.h"
#include "cfg/log.h"
#include "emulator/abi/shm_layout.h"
#include "emulator/host/clock.h"
#include "emulator/host/futex.h"
#include "emulator/host/pid_ns.h"

#define REPLY_NS    UINT64_C(10000000000)
#define ALONE_AFTER 4000 /* tries: whoever starts a glexd has not done it in two seconds */
#define CONNECT_NS  UINT64_C(10000000000)

/* Whether a call that failed is to be made again: it was interrupted, or a slice of our patience is over, not all. */
static bool is_to_repeat(const struct nic_ctl *ctl, struct nic_patience *patience)
{
	bool over = errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;

	return over && nic_patience_left(patience, emu_now_ns(), nic_is_at_work(ctl->glexd));
}

/* 0 or -1 with errno. */
static int dial(struct nic_ctl *ctl, struct nic_patience *patience)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval slice = {.tv_usec = NIC_SLICE_NS / 1000};
	size_t n = strlen(ctl->name);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (ctl->name[0] != '@'));
	int ret, error;

	memcpy(addr.sun_path, ctl->name, n);
	if (ctl->name[0] == '@')
		addr.sun_path[0] = '\0';
	ctl->glexd = 0;
	ctl->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ctl->fd < 0)
		return -1;
	setsockopt(ctl->fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice));
	setsockopt(ctl->fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof(slice));
	do
		ret = connect(ctl->fd, (struct sockaddr *)&addr, len);
	while (ret < 0 && is_to_repeat(ctl, patience));
	if (ret == 0)
		return 0;
	error = errno;
	close(ctl->fd);
	ctl->fd = -1;
	errno = error;
	return -1;
}

/* Who listens there must be us or root: anybody can take an abstract name. */
static bool is_trusted(struct nic_ctl *ctl)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(ctl->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return false;
	ctl->glexd = who.pid;
	if (who.uid == geteuid() || who.uid == 0)
		return true;
	glexi_error("the glexd at %s belongs to user %u, not to user %u; choose another GLEX_SOCKET or GLEX_JOB",
		    ctl->name, (unsigned)who.uid, (unsigned)geteuid());
	return false;
}

/* Sends msg; the descriptor rides along.  0 or -1. */
static int send_msg(const struct nic_ctl *ctl, struct emu_ctl_msg *msg, int fd_in, struct nic_patience *patience)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (fd_in >= 0) {
		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd_in, sizeof(int));
	}
	do
		n = sendmsg(ctl->fd, &mh, MSG_NOSIGNAL);
	while (n < 0 && is_to_repeat(ctl, patience));
	return n == (ssize_t)sizeof(*msg) ? 0 : -1;
}

static void drop_fds(int fds[EMU_WIRE_FDS])
{
	size_t i;

	for (i = 0; i < EMU_WIRE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static int receive_msg(const struct nic_ctl *ctl, struct emu_ctl_msg *msg, int fds[EMU_WIRE_FDS],
		       struct nic_patience *patience)
{
	char control[CMSG_SPACE(sizeof(int) * EMU_WIRE_FDS)];
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n;

	/* A reset is told once, before what the other end said last. */
	do
		n = recvmsg(ctl->fd, &mh, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == ECONNRESET || is_to_repeat(ctl, patience)));
	c = n > 0 ? CMSG_FIRSTHDR(&mh) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		memcpy(fds, CMSG_DATA(c), bytes <= sizeof(int) * EMU_WIRE_FDS ? bytes : 0);
	}
	if (n == (ssize_t)sizeof(*msg) && msg->head.magic == EMU_WIRE_MAGIC)
		return 0;
	drop_fds(fds);
	return -1;
}

/* True when there may be a reply: a glexd that turns us away says so and closes before it has read anything. */
static bool ask(const struct nic_ctl *ctl, struct emu_ctl_msg *msg, int fd_in, struct nic_patience *patience)
{
	return send_msg(ctl, msg, fd_in, patience) == 0 || errno == EPIPE || errno == ECONNRESET;
}

static int call_within(struct nic_patience *patience, struct nic_ctl *ctl, uint16_t op, struct emu_ctl_msg *msg,
		       int fd_in, int *fds_out)
{
	int fds[EMU_WIRE_FDS] = {-1, -1}, status = -1;

	msg->head.magic = EMU_WIRE_MAGIC;
	msg->head.version = EMU_WIRE_VERSION;
	msg->head.code = op;
	pthread_mutex_lock(&ctl->lock);
	if (ctl->fd >= 0 && ask(ctl, msg, fd_in, patience) && receive_msg(ctl, msg, fds, patience) == 0)
		status = msg->head.code;
	else if (ctl->fd >= 0) /* a reply that comes late must not be taken for that of the next request */
		shutdown(ctl->fd, SHUT_RDWR);
	pthread_mutex_unlock(&ctl->lock);
	if (fds_out)
		memcpy(fds_out, fds, sizeof(fds));
	else
		drop_fds(fds);
	return status;
}

int nic_ctl_call(struct nic_ctl *ctl, uint16_t op, struct emu_ctl_msg *msg, int fd_in, int *fds_out)
{
	struct nic_patience patience;

	nic_patience_begin(&patience, REPLY_NS, emu_now_ns());
	return call_within(&patience, ctl, op, msg, fd_in, fds_out);
}

const char *nic_ctl_status_str(int status)
{
	static const char *const text[] = {
		[EMU_CTL_OK] = "done",
		[EMU_CTL_VERSION] = "glexd is of another build",
		[EMU_CTL_ACCESS] = "glexd serves another user",
		[EMU_CTL_BAD] = "glexd does not accept the request",
		[EMU_CTL_TAKEN] = "the number is in use",
		[EMU_CTL_EXHAUSTED] = "none is left",
		[EMU_CTL_NO_MEMORY] = "glexd has no memory left",
		[EMU_CTL_ABSENT] = "there is no such thing",
		[EMU_CTL_NO_DESCRIPTORS] = "glexd has no descriptors left",
	};

	if (status < 0)
		return "glexd is gone or does not answer";
	return (size_t)status < sizeof(text) / sizeof(text[0]) ? text[status] : "glexd gives an unknown answer";
}

bool nic_ctl_alive(struct nic_ctl *ctl)
{
	char byte;
	ssize_t n;
	bool alive;

	/* glexd never speaks unasked: there is nothing to read, or the end, or a reply that came too late. */
	if (pthread_mutex_trylock(&ctl->lock) != 0)
		return true; /* somebody is talking to it right now */
	n = ctl->fd < 0 ? 0 : recv(ctl->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	alive = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
	pthread_mutex_unlock(&ctl->lock);
	return alive;
}

static uint32_t number_or_unset(uint64_t v)
{
	return v == GLEXI_CFG_UNSET ? EMU_UNSET : (uint32_t)v;
}

static const uint32_t probe = EMU_WIRE_MAGIC;

/* Whether this process may use attach at all: it may look into itself wherever it may look anywhere. */
static bool may_attach(void)
{
	uint32_t word = 0;
	struct iovec here = {.iov_base = &word, .iov_len = sizeof(word)};
	struct iovec there = {.iov_base = (void *)(uintptr_t)&probe, .iov_len = sizeof(probe)};

	return glexi_cfg()->mem_attach && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof(word);
}

static int hello(struct nic_ctl *ctl, struct nic_patience *patience, bool observer, struct emu_ctl_hello_reply *welcome,
		 int fds[EMU_WIRE_FDS])
{
	const struct glexi_cfg *cfg = glexi_cfg();
	struct emu_ctl_msg msg = {.hello = {
					  .abi_version = EMU_ABI_VERSION,
					  .layout_hash = EMU_LAYOUT_HASH,
					  .rank = number_or_unset(cfg->pmi_rank),
					  .node = number_or_unset(cfg->node),
					  .nodes = (uint32_t)cfg->nodes,
					  .ppn = (uint32_t)cfg->ppn,
					  .observer = observer,
					  .probe = (uintptr_t)&probe,
					  .no_attach = !observer && !may_attach(),
					  .pid = (uint32_t)getpid(),
					  .pid_ns = emu_pid_namespace(),
				  }};
	int status;

	ctl->membarrier = emu_membarrier_join() == 0;
	msg.hello.membarrier = ctl->membarrier;
	status = call_within(patience, ctl, EMU_CTL_HELLO, &msg, -1, fds);

	*welcome = msg.welcome;
	return status;
}

static glex_ret_t refuse(struct nic_ctl *ctl, int status)
{
	nic_ctl_close(ctl);
	switch (status) {
	case EMU_CTL_VERSION:
		glexi_error("the glexd at %s is of another build than this library; end it, or use the one installed "
			    "beside this library (GLEX_GLEXD)",
			    ctl->name);
		return GLEX_SYS_ERR;
	case EMU_CTL_ACCESS:
		glexi_error("the glexd at %s serves another user; choose another GLEX_SOCKET or GLEX_JOB", ctl->name);
		return GLEX_ACCESS_ERR;
	case EMU_CTL_NO_MEMORY:
		glexi_error("the glexd at %s has no memory left for another node", ctl->name);
		return GLEX_NO_MEM_RESOURCE;
	default:
		glexi_error("the glexd at %s refused this process: %s; is GLEX_NODE too large?", ctl->name,
			    nic_ctl_status_str(status));
		return GLEX_SYS_ERR;
	}
}

/*
 * One attempt.  GLEX_BUSY: nobody there, or one that was just leaving.
 */
static glex_ret_t attempt(struct nic_ctl *ctl, struct nic_patience *patience, bool observer,
			  struct emu_ctl_hello_reply *welcome, int fds[EMU_WIRE_FDS])
{
	int status;

	if (dial(ctl, patience) < 0) {
		if (errno == ECONNREFUSED || errno == ENOENT || errno == EAGAIN)
			return GLEX_BUSY;
		glexi_error("cannot connect to %s: %s", ctl->name, strerror(errno));
		return GLEX_SYS_ERR;
	}
	if (!is_trusted(ctl)) {
		nic_ctl_close(ctl);
		return GLEX_ACCESS_ERR;
	}
	status = hello(ctl, patience, observer, welcome, fds);
	if (status == EMU_CTL_OK)
		return GLEX_SUCCESS;
	if (status != -1)
		return refuse(ctl, status);
	nic_ctl_close(ctl);
	return GLEX_BUSY;
}

glex_ret_t nic_ctl_open(struct nic_ctl *ctl, bool start, struct emu_ctl_hello_reply *welcome, int fds[EMU_WIRE_FDS])
{
	const struct timespec pause = {.tv_nsec = 500000};
	struct nic_patience patience;
	uint32_t tries;
	int started;
	bool private;
	glex_ret_t ret;

	ctl->fd = -1;
	if (nic_socket_name(ctl->name, sizeof(ctl->name), &private) < 0)
		return GLEX_SYS_ERR;
	pthread_mutex_init(&ctl->lock, NULL);
	nic_patience_begin(&patience, CONNECT_NS, emu_now_ns());
	for (tries = 0;; tries++) {
		ret = attempt(ctl, &patience, !start, welcome, fds);
		if (ret != GLEX_BUSY)
			return ret;
		if (!start)
			return GLEX_NO_MP;
		started = private ? nic_start_glexd(ctl->name, tries > ALONE_AFTER) : 0;
		if (started < 0)
			return GLEX_SYS_ERR;
		if (!private || !nic_patience_left(&patience, emu_now_ns(), false))
			break;
		if (started == 0 || tries > 0) /* else it listens now */
			nanosleep(&pause, NULL);
	}
	if (private)
		glexi_error("glexd was started but does not answer at %s; see GLEX_LOG_FILE", ctl->name);
	else
		glexi_error("no glexd listens at %s; start one with `glexd --socket %s` or unset GLEX_SOCKET",
			    ctl->name, ctl->name);
	return GLEX_SYS_ERR;
}

void nic_ctl_close(struct nic_ctl *ctl)
{
	if (ctl->fd >= 0)
		close(ctl->fd);
	ctl->fd = -1;
}
