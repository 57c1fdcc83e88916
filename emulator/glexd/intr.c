/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * intr.c - the descriptors that ports' owners poll, and who is told of a death.
 *
 * An eventfd is made when the owner of a port first asks for it; senders get it
 * when they first have to write to it.  Peers of a session are those whose ports
 * it has opened, and those that have opened its.  All others find the dead in a
 * list that they look at when they like.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cfg/log.h"
#include "emulator/glexd/glexd.h"
#include "emulator/nic/dead.h"
#include "emulator/nic/intr.h"

int intr_open(struct port *port)
{
	port->intr_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (port->intr_fd < 0) {
		glexi_error("a descriptor for the interrupts of endpoint %u:%u cannot be had: %s; see ulimit -Hn",
			    port->nic_id, port->ep_num, strerror(errno));
		return errno == ENOMEM ? EMU_CTL_NO_MEMORY : EMU_CTL_NO_DESCRIPTORS;
	}
	atomic_fetch_or_explicit(&port->view.port->intr, 1, memory_order_acq_rel); /* INTR-A1 */
	return EMU_CTL_OK;
}

void intr_close(struct port *port)
{
	if (port->intr_fd >= 0)
		close(port->intr_fd);
	port->intr_fd = -1;
}

bool intr_raise(struct port *port)
{
	const uint64_t one = 1;

	if (port->intr_fd < 0)
		return false;
	/* Full, it is readable already. */
	return write(port->intr_fd, &one, sizeof(one)) == (ssize_t)sizeof(one) || errno == EAGAIN;
}

bool intr_host(struct emu_host *host, struct emu_port *p)
{
	struct glexd *glexd = (struct glexd *)(void *)((char *)host - offsetof(struct glexd, host));
	struct port *port = port_find(glexd, p->nic_id, p->ep_num);

	return port && port->view.port == p && intr_raise(port);
}

static bool knows(const struct session *session, uint32_t other)
{
	uint32_t i;

	for (i = 0; i < session->known_n; i++)
		if (session->known[i] == other)
			return true;
	return false;
}

void peers_note(struct session *session, uint32_t other)
{
	uint32_t n = session->known_n, *bigger;

	if (other == session->id || knows(session, other))
		return;
	if ((n & (n - 1)) == 0) { /* full: room is a power of two */
		bigger = realloc(session->known, (n ? n * 2 : 1) * sizeof(*bigger));
		if (!bigger)
			return; /* it will not be told of that one's end, which is worth no refusal */
		session->known = bigger;
	}
	session->known[session->known_n++] = other;
}

static void forget(struct session *session, uint32_t other)
{
	uint32_t i;

	for (i = 0; i < session->known_n; i++)
		if (session->known[i] == other) {
			memmove(&session->known[i], &session->known[i + 1],
				(session->known_n - i - 1) * sizeof(session->known[0]));
			session->known_n--;
			return;
		}
}

static void tell(struct glexd *glexd, struct session *peer, const struct session *ended)
{
	struct port *port, *gone;

	LIST_FOREACH(port, &peer->ports, link)
	{
		if (port->intr_fd < 0)
			continue;
		LIST_FOREACH(gone, &ended->ports, link)
		emu_interrupt(&glexd->host, &port->view, EMU_INTR_PEER_DEAD, emu_addr_of(gone->view.port));
	}
}

void peers_tell_end(struct session *session)
{
	struct glexd *glexd = session->glexd;
	struct session *peer;
	struct port *port;

	/* First, so that who is told and sends again finds them closed. */
	LIST_FOREACH(port, &session->ports, link)
	atomic_store_explicit(&port->view.port->state, EMU_PORT_CLOSED, memory_order_release); /* relaxed: stronger */
	LIST_FOREACH(port, &session->ports, link)
	dead_note(glexd, emu_addr_of(port->view.port));
	LIST_FOREACH(peer, &glexd->sessions, link)
	{
		bool met = knows(peer, session->id) || knows(session, peer->id);

		if (peer != session && met && !LIST_EMPTY(&session->ports))
			tell(glexd, peer, session);
		forget(peer, session->id);
	}
}
