/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - one client process, from accept to its end.
 *
 * The end is seen twice: as the end of the socket, and by a pidfd, because a
 * child that the client forked may hold the socket open after the client's
 * death.  Whichever comes first takes everything of the session away: its ports
 * are closed, its regions revoked, the slots it had claimed in other processes'
 * queues and never published are discarded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cfg/log.h"
#include "emulator/glexd/glexd.h"
#include "emulator/nic/intr.h"

/*
 * A mutex goes to whoever is running: the DMA thread, which takes it again at
 * once, would keep it from a request for seconds where cores are scarce.
 */
static void lock(struct glexd *glexd)
{
	atomic_store_explicit(&glexd->wanted, true, memory_order_relaxed); /* relaxed: a hint; the mutex orders */
	pthread_mutex_lock(&glexd->lock);
	atomic_store_explicit(&glexd->wanted, false, memory_order_relaxed); /* relaxed: as above */
}

static bool reap_port(struct port *port, void *arg)
{
	uint32_t id = *(uint32_t *)arg, n;

	n = emu_ring_reap(&port->view.mpq, id, offsetof(struct emu_mp_slot, flags));
	n += emu_ring_reap(&port->view.eq, id, offsetof(struct emu_event_slot, flags));
	n += emu_ring_reap(&port->view.err, id, offsetof(struct emu_err_slot, flags));
	n += emu_ring_reap(&port->view.intq, id, offsetof(struct emu_intr_slot, flags));
	n += emu_ring_reap(&port->view.epq, id, offsetof(struct emu_bad_slot, flags));
	n += coll_reap(port, id);
	/* What lay behind them can be seen now; and it may have died between publishing and waking. */
	emu_wake_after_death(&port->owner->glexd->host, &port->view);
	if (n)
		glexi_debug("discarded %u unfinished packets of session %u at port %u:%u", n, id, port->nic_id,
			    port->ep_num);
	return false;
}

static void give_back(struct session *session)
{
	struct glexd *glexd = session->glexd;
	struct node *node = node_find(glexd, session->nic_id);
	uint32_t i;

	coll_inherit_all(glexd, session->id);
	peers_tell_end(session);
	ports_close(session);
	if (node)
		emu_mmt_reclaim(node->nic, session->id, UINT32_MAX);
	for (i = 0; i < glexd->shared_room; i++)
		if (glexd->shared[i].owner == session)
			shared_remove(glexd, &glexd->shared[i]);
	port_each(glexd, reap_port, &session->id);
	coll_kick_all(glexd);
}

/*
 * Out of descriptors: who knocks waits at the door, or the event loop would go
 * round for nothing, until something is given back.
 */
static void stop_accepting(struct glexd *glexd)
{
	if (stock_give_up(glexd))
		return;
	glexi_warn_once(0, "no descriptors left: new processes have to wait; see ulimit -n");
	glexd->full = true;
	event_del(glexd->acceptor);
}

static void accept_again(struct glexd *glexd)
{
	if (!glexd->full)
		return;
	glexd->full = false;
	event_add(glexd->acceptor, NULL);
}

static void arm_leave(struct glexd *glexd)
{
	struct timeval linger = {.tv_sec = glexd->linger_ms / 1000, .tv_usec = glexd->linger_ms % 1000 * 1000};

	if (glexd->private && glexd->clients == 0)
		event_add(glexd->leave, &linger);
}

void session_end(struct session *session, const char *why)
{
	struct glexd *glexd = session->glexd;

	glexi_debug("session %u of pid %u ends: %s", session->id, session->pid, why);
	shutdown(session->fd, SHUT_RDWR); /* first: who finds its things gone finds us gone too */
	lock(glexd);
	if (session->welcome && !session->observer) {
		give_back(session);
		glexd->clients--;
		numa_client_out(session);
	}
	LIST_REMOVE(session, link);
	pthread_mutex_unlock(&glexd->lock);
	if (session->readable)
		event_free(session->readable);
	if (session->died)
		event_free(session->died);
	if (session->pidfd >= 0)
		close(session->pidfd);
	close(session->fd);
	free(session->known);
	free(session);
	accept_again(glexd);
	arm_leave(glexd);
}

static void on_death(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	session_end(arg, "its process died");
}

/* Takes the descriptors out of a message: the first into *fd_p, any others are closed. */
static void take_fds(struct msghdr *msg, int *fd_p)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t i, n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*fd_p < 0)
				*fd_p = fd;
			else
				close(fd);
		}
	}
}

static ssize_t receive(int fd, struct emu_ctl_msg *msg, int *fd_p)
{
	char control[CMSG_SPACE(sizeof(int) * EMU_WIRE_FDS)];
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	*fd_p = -1;
	if (n >= 0) /* even an empty message can bring some */
		take_fds(&mh, fd_p);
	return mh.msg_flags & MSG_TRUNC && n > 0 ? n + 1 : n; /* longer than a message is: no message */
}

static int reply_with(int fd, const struct emu_ctl_msg *reply, const int fds[EMU_WIRE_FDS])
{
	char control[CMSG_SPACE(sizeof(int) * EMU_WIRE_FDS)] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof(*reply)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	size_t n = 0;

	while (n < EMU_WIRE_FDS && fds[n] >= 0)
		n++;
	if (n) {
		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	return sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*reply) ? 0 : -1;
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	struct session *session = arg;
	struct emu_ctl_msg request, reply = {0};
	int fd_in, fds_out[EMU_WIRE_FDS] = {-1, -1};
	ssize_t n = receive(fd, &request, &fd_in);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (fd_in >= 0)
			close(fd_in);
		session_end(session, n == 0 ? "it closed the connection" : strerror(errno));
		return;
	}
	if (n != (ssize_t)sizeof(request) || request.head.magic != EMU_WIRE_MAGIC ||
	    request.head.version != EMU_WIRE_VERSION) {
		reply.head.code = EMU_CTL_VERSION;
		if (fd_in >= 0)
			close(fd_in);
	} else {
		lock(session->glexd);
		control_serve(session, &request, fd_in, &reply, fds_out);
		pthread_mutex_unlock(&session->glexd->lock);
		accept_again(session->glexd); /* it may have closed a port */
	}
	reply.head.magic = EMU_WIRE_MAGIC;
	reply.head.version = EMU_WIRE_VERSION;
	if (reply_with(fd, &reply, fds_out) < 0)
		session_end(session, "it does not take its reply");
}

/* Only the user that runs glexd, and root, may use it. */
static bool may_enter(const struct ucred *who)
{
	return who->uid == geteuid() || who->uid == 0;
}

static void turn_away(int fd, const struct ucred *who)
{
	struct emu_ctl_msg reply = {
		.head = {.magic = EMU_WIRE_MAGIC, .version = EMU_WIRE_VERSION, .code = EMU_CTL_ACCESS}};
	const int none[EMU_WIRE_FDS] = {-1, -1};

	glexi_warn_once(who->uid, "refused pid %d: user %u may not use the glexd of user %u", (int)who->pid,
			(unsigned)who->uid, (unsigned)geteuid());
	reply_with(fd, &reply, none);
	close(fd);
}

void session_accept(evutil_socket_t listener, short what, void *arg)
{
	struct glexd *glexd = arg;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred who;
	socklen_t len = sizeof(who);
	struct session *session;

	(void)what;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			stop_accepting(glexd);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || !may_enter(&who)) {
		turn_away(fd, &who);
		return;
	}
	session = glexd->next_session <= EMU_SESSION_MAX ? calloc(1, sizeof(*session)) : NULL;
	if (!session) {
		close(fd);
		return;
	}
	session->glexd = glexd;
	session->id = glexd->next_session++;
	session->fd = fd;
	session->pid = (uint32_t)who.pid;
	session->nic_id = EMU_UNSET;
	LIST_INIT(&session->ports);
	session->pidfd = (int)syscall(SYS_pidfd_open, who.pid, 0);
	lock(glexd);
	LIST_INSERT_HEAD(&glexd->sessions, session, link);
	pthread_mutex_unlock(&glexd->lock);
	session->readable = event_new(glexd->base, fd, EV_READ | EV_PERSIST, on_request, session);
	if (session->pidfd >= 0)
		session->died = event_new(glexd->base, session->pidfd, EV_READ, on_death, session);
	if (!session->readable || event_add(session->readable, NULL) < 0 ||
	    (session->died && event_add(session->died, NULL) < 0))
		session_end(session, "out of memory");
}
