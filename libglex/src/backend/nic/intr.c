/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * intr.c - descriptors that become readable when something comes.
 *
 * Senders write to an eventfd, which glexd makes and hands out.  What the
 * program polls is an epoll descriptor around it and around the control socket,
 * of which it only sees the end: a glexd that is killed cannot wake anybody, and
 * who polls for ever would.
 *
 *   program --polls--> poll_fd --+--> intr_fd <--write-- senders, glexd
 *                                +--> control socket (its end only)
 *
 * A sender keeps the target's eventfd with its view of the port.  One that has no
 * descriptor left asks glexd to write.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cfg/log.h"
#include "emulator/host/futex.h"
#include "emulator/nic/intr.h"

static bool signal_fd(int fd)
{
	const uint64_t one = 1;

	/* Full, it is readable already. */
	return write(fd, &one, sizeof(one)) == (ssize_t)sizeof(one) || errno == EAGAIN;
}

/* ---- the own one ------------------------------------------------------------- */

void nic_intr_init(struct nic_ep *nep)
{
	pthread_mutex_init(&nep->intr_lock, NULL);
	atomic_init(&nep->intr_fd, -1);
	nep->poll_fd = -1;
}

static int own_fd(const struct nic_ep *nep)
{
	return atomic_load_explicit(&nep->intr_fd, memory_order_acquire); /* PEER-A1 */
}

void nic_intr_destroy(struct nic_ep *nep)
{
	if (nep->poll_fd >= 0)
		close(nep->poll_fd);
	if (own_fd(nep) >= 0)
		close(own_fd(nep));
	pthread_mutex_destroy(&nep->intr_lock);
}

static glex_ret_t no_descriptor(const struct nic_ep *nep, const char *why)
{
	glexi_error("a descriptor for endpoint %u:%u cannot be had: %s; see ulimit -n", nep->port.port->nic_id,
		    nep->port.port->ep_num, why);
	return GLEX_NO_EP_RESOURCE;
}

static bool watch(int poll_fd, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events};

	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The eventfd into *fd_p. */
static glex_ret_t ask_for_own(struct nic_ep *nep, int *fd_p)
{
	struct emu_ctl_msg msg = {.port = {.nic_id = nep->port.port->nic_id, .ep_num = nep->port.port->ep_num}};
	int fds[EMU_WIRE_FDS];
	int status = nic_ctl_call(&nep->dev->ctl, EMU_CTL_INTR_OPEN, &msg, -1, fds);

	if (status < 0)
		return glexi_device_lost(nep->dev->dev);
	if (status != EMU_CTL_OK)
		return no_descriptor(nep, nic_ctl_status_str(status));
	if (fds[0] < 0)
		return no_descriptor(nep, strerror(EMFILE));
	*fd_p = fds[0];
	return GLEX_SUCCESS;
}

/* Under intr_lock. */
static glex_ret_t open_own(struct nic_ep *nep)
{
	int fd = -1, poll_fd;
	glex_ret_t ret;

	if (nep->poll_fd >= 0)
		return GLEX_SUCCESS;
	ret = ask_for_own(nep, &fd);
	if (ret != GLEX_SUCCESS)
		return ret;
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (poll_fd < 0 || !watch(poll_fd, fd, EPOLLIN) || !watch(poll_fd, nep->dev->ctl.fd, EPOLLRDHUP)) {
		ret = no_descriptor(nep, strerror(errno));
		if (poll_fd >= 0)
			close(poll_fd);
		close(fd);
		return ret;
	}
	nep->poll_fd = poll_fd;
	atomic_store_explicit(&nep->intr_fd, fd, memory_order_release); /* PEER-R1 */
	/* Interrupts before this found nothing to make readable. */
	if (glexi_queue_has(&nep->ep->intq, glexi_queue_read(&nep->ep->intq)))
		signal_fd(fd);
	return GLEX_SUCCESS;
}

glex_ret_t nic_ep_fd(struct glexi_ep *ep, int *fd_p)
{
	struct nic_ep *nep = ep->be;
	glex_ret_t ret;

	pthread_mutex_lock(&nep->intr_lock);
	ret = open_own(nep);
	if (ret == GLEX_SUCCESS)
		*fd_p = nep->poll_fd;
	pthread_mutex_unlock(&nep->intr_lock);
	return ret;
}

void nic_ep_fd_clear(struct glexi_ep *ep)
{
	struct nic_ep *nep = ep->be;
	int fd = own_fd(nep);
	uint64_t n;

	nic_empty_graveyard(nep->dev); /* a server may do little else, and its clients come and go */
	if (fd >= 0 && read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		glexi_warn_once((uint64_t)fd, "clearing a descriptor of an endpoint failed: %s", strerror(errno));
}

glex_ret_t nic_ep_arm(struct glexi_ep *ep, uint32_t what)
{
	struct nic_ep *nep = ep->be;
	uint64_t bits = (what & GLEX_ARM_MP ? EMU_ARM_MP : 0) | (what & GLEX_ARM_EVENT ? EMU_ARM_EVENT : 0);
	glex_ret_t ret;

	pthread_mutex_lock(&nep->intr_lock);
	ret = what ? open_own(nep) : GLEX_SUCCESS;
	if (ret == GLEX_SUCCESS)
		emu_arm(nep->port.port, bits, ++nep->arm_turn);
	pthread_mutex_unlock(&nep->intr_lock);
	if (what) /* also where `fences` is set, as in ep_sleep */
		emu_membarrier_all();
	return ret;
}

/* ---- those of others --------------------------------------------------------- */

static bool ring_by_glexd(struct nic_device *dev, const struct emu_port *port)
{
	struct emu_ctl_msg msg = {.port = {.nic_id = port->nic_id, .ep_num = port->ep_num}};

	return nic_ctl_call(&dev->ctl, EMU_CTL_INTR_RING, &msg, -1, NULL) == EMU_CTL_OK;
}

/* Under dev->lock: the target's eventfd, now kept with the view; -1: glexd must write. */
static int ask_for_theirs(struct nic_device *dev, struct nic_port_view *view)
{
	struct emu_ctl_msg msg = {.port = {.nic_id = view->view.port->nic_id, .ep_num = view->view.port->ep_num}};
	int fd = atomic_load_explicit(&view->intr_fd, memory_order_acquire) - 1; /* PEER-A1 */
	int fds[EMU_WIRE_FDS];

	if (fd >= 0 || nic_ctl_call(&dev->ctl, EMU_CTL_INTR_OPEN, &msg, -1, fds) != EMU_CTL_OK)
		return fd;
	if (fds[0] >= 0)
		atomic_store_explicit(&view->intr_fd, fds[0] + 1, memory_order_release); /* PEER-R1 */
	return fds[0];
}

bool nic_host_interrupt(struct emu_host *host, struct emu_port *port)
{
	struct nic_ep *nep = nic_ep_of(host);
	struct nic_device *dev = nep->dev;
	struct nic_port_view *view;
	int fd;

	/* An MP to oneself goes by a second mapping of the port. */
	if (port->nic_id == nep->port.port->nic_id && port->ep_num == nep->port.port->ep_num)
		return own_fd(nep) >= 0 && signal_fd(own_fd(nep));
	view = nic_peer_port(dev, port->nic_id, port->ep_num);
	if (!view || view->view.port != port)
		return ring_by_glexd(dev, port);
	fd = atomic_load_explicit(&view->intr_fd, memory_order_acquire) - 1; /* PEER-A1 */
	if (fd < 0) {
		pthread_mutex_lock(&dev->lock);
		fd = ask_for_theirs(dev, view);
		pthread_mutex_unlock(&dev->lock);
	}
	return fd >= 0 ? signal_fd(fd) : ring_by_glexd(dev, port);
}
