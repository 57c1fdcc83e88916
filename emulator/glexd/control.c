/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c - what each request of wire.h does.
 *
 * Runs in the control thread with glexd->lock held.  A handler returns an
 * emu_ctl_status and fills the reply only with EMU_CTL_OK.  A descriptor that
 * came with a request is the handler's: kept or closed.
 */
#include <string.h>
#include <unistd.h>

#include "cfg/log.h"
#include "emulator/glexd/glexd.h"
#include "emulator/host/attach.h"
#include "emulator/host/pid_ns.h"

struct call {
	struct session *session;
	const struct emu_ctl_msg *request;
	int fd_in;
	struct emu_ctl_msg *reply;
	int *fds_out;
};

/* The node of a process: its wish, else its rank over the ranks per node, else in turn. */
static uint32_t place(struct glexd *glexd, const struct emu_ctl_hello *hello)
{
	if (hello->node != EMU_UNSET)
		return hello->node;
	if (hello->rank != EMU_UNSET)
		return hello->rank / (hello->ppn ? hello->ppn : 1);
	return glexd->next_turn++ % (hello->nodes ? hello->nodes : 1);
}

static void count_in(struct session *session, const struct emu_ctl_hello *hello)
{
	struct glexd *glexd = session->glexd;

	glexd->clients++;
	event_del(glexd->leave);
	/* Once a process is here that cannot order the others' memory, senders have to do it themselves. */
	if (!hello->membarrier)
		atomic_store_explicit(&glexd->engine->fences, 1, memory_order_seq_cst); /* relaxed: stronger */
	numa_client_in(session);
}

/* By its pid alone where there is no /proc: that may be the same by chance. */
static bool is_elsewhere(const struct session *session, const struct emu_ctl_hello *hello)
{
	uint64_t here = emu_pid_namespace();

	return hello->pid != session->pid || (here && hello->pid_ns && hello->pid_ns != here);
}

/*
 * Where attach does not work between all, regions must be reachable without it.
 * What glexd may not read, peers, who are the same user's, may not either.  What it
 * may, they may too, but for a process in another PID namespace: the numbers that
 * glexd and the peers know processes by are other processes' there, or nobody's.
 */
static void try_attach(struct session *session, const struct emu_ctl_hello *hello, bool elsewhere)
{
	struct emu_engine *engine = session->glexd->engine;
	uint32_t word = EMU_WIRE_MAGIC;

	if (elsewhere)
		word = 0;
	else if (hello->probe &&
		 emu_attach_read(session->pid, &word, hello->probe, sizeof(word), sizeof(word)) != EMU_REACH_OK)
		word = 0;
	if (word == EMU_WIRE_MAGIC && !hello->no_attach)
		return;
	glexi_info("cross-memory attach does not work for pid %u%s: memory has to be shared", session->pid,
		   elsewhere ? ", which is in another PID namespace" : "");
	atomic_store_explicit(&engine->no_attach, 1, memory_order_relaxed); /* relaxed: a hint for later regions */
}

static int serve_hello(struct call *call)
{
	const struct emu_ctl_hello *hello = &call->request->hello;
	struct session *session = call->session;
	struct glexd *glexd = session->glexd;
	struct emu_ctl_hello_reply *welcome = &call->reply->welcome;
	struct node *node;
	int status;

	if (hello->abi_version != EMU_ABI_VERSION || hello->layout_hash != EMU_LAYOUT_HASH)
		return EMU_CTL_VERSION;
	if (session->welcome)
		return EMU_CTL_BAD;
	session->observer = hello->observer != 0;
	welcome->session = session->id;
	welcome->nic_id = EMU_UNSET;
	welcome->pid = session->pid;
	welcome->glexd_pid = (uint32_t)getpid();
	welcome->elsewhere = is_elsewhere(session, hello);
	if (!session->observer) {
		session->nic_id = place(glexd, hello);
		status = node_get(glexd, session->nic_id, &node);
		if (status != EMU_CTL_OK)
			return status;
		welcome->nic_id = session->nic_id;
		call->fds_out[0] = glexd->engine_seg.fd;
		call->fds_out[1] = node->seg.fd;
		count_in(session, hello);
		try_attach(session, hello, welcome->elsewhere);
	}
	session->welcome = true;
	glexi_debug("session %u is pid %u on node %d", session->id, session->pid, (int)session->nic_id);
	return EMU_CTL_OK;
}

static int serve_nic_open(struct call *call)
{
	struct node *node = node_find(call->session->glexd, call->request->port.nic_id);

	if (!node)
		return EMU_CTL_ABSENT;
	call->fds_out[0] = node->seg.fd;
	return EMU_CTL_OK;
}

static void describe(struct call *call, const struct port *port)
{
	struct emu_ctl_port *out = &call->reply->port;
	const struct emu_port *p = port->view.port;

	out->nic_id = port->nic_id;
	out->ep_num = port->ep_num;
	out->type = p->type;
	out->key = p->key;
	out->dq_capacity = p->dq_capacity;
	out->mpq_capacity = p->mpq_capacity;
	out->eq_capacity = p->eq_capacity;
	call->fds_out[0] = port->seg.fd;
}

static int serve_port_create(struct call *call)
{
	struct port *port;
	int status = port_create(call->session->glexd, call->session, &call->request->port, &port);

	if (status == EMU_CTL_OK)
		describe(call, port);
	return status;
}

static int serve_port_open(struct call *call)
{
	const struct emu_ctl_port *want = &call->request->port;
	struct port *port = port_find(call->session->glexd, want->nic_id, want->ep_num);

	if (!port)
		return EMU_CTL_ABSENT;
	peers_note(call->session, port->owner->id);
	describe(call, port);
	return EMU_CTL_OK;
}

static int serve_port_close(struct call *call)
{
	struct session *session = call->session;
	struct port *port = port_find(session->glexd, session->nic_id, call->request->port.ep_num);

	if (!port || port->owner != session)
		return EMU_CTL_ABSENT;
	port_close(session->glexd, port);
	return EMU_CTL_OK;
}

static int serve_intr_open(struct call *call)
{
	const struct emu_ctl_port *want = &call->request->port;
	struct port *port = port_find(call->session->glexd, want->nic_id, want->ep_num);
	int status = EMU_CTL_OK;

	if (!port || (port->intr_fd < 0 && port->owner != call->session))
		return EMU_CTL_ABSENT;
	if (port->intr_fd < 0)
		status = intr_open(port);
	call->fds_out[0] = port->intr_fd;
	return status;
}

static int serve_intr_ring(struct call *call)
{
	const struct emu_ctl_port *want = &call->request->port;
	struct port *port = port_find(call->session->glexd, want->nic_id, want->ep_num);

	return port && intr_raise(port) ? EMU_CTL_OK : EMU_CTL_ABSENT;
}

static int serve_coll_open(struct call *call)
{
	const struct emu_ctl_port *want = &call->request->port;
	struct port *port = port_find(call->session->glexd, want->nic_id, want->ep_num);
	int status = port ? coll_open(port) : EMU_CTL_ABSENT;

	if (status == EMU_CTL_OK)
		call->fds_out[0] = port->coll_seg.fd;
	return status;
}

static int serve_share(struct call *call)
{
	const struct emu_ctl_share *what = &call->request->share;
	int status;

	if (call->fd_in < 0)
		return EMU_CTL_BAD;
	call->reply->share = *what;
	status = shared_add(call->session->glexd, call->session, call->fd_in, what, &call->reply->share.id);
	if (status == EMU_CTL_OK)
		call->fd_in = -1; /* it has it */
	return status;
}

static int serve_unshare(struct call *call)
{
	struct shared *shared = shared_find(call->session->glexd, call->request->share.id);

	if (!shared || shared->owner != call->session)
		return EMU_CTL_ABSENT;
	shared_remove(call->session->glexd, shared);
	return EMU_CTL_OK;
}

static int serve_share_open(struct call *call)
{
	struct shared *shared = shared_find(call->session->glexd, call->request->share.id);

	if (!shared)
		return EMU_CTL_ABSENT;
	call->reply->share.id = call->request->share.id;
	call->reply->share.offset = shared->offset;
	call->reply->share.len = shared->len;
	call->reply->share.untouched = shared->untouched;
	call->fds_out[0] = shared->fd;
	return EMU_CTL_OK;
}

/* For a process that may not do it itself, where a ring is to be taken away (emulator/nic/bias.h). */
static int serve_order(struct call *call)
{
	struct emu_bias *bias = &call->session->glexd->host.bias;

	return bias->order(bias) ? EMU_CTL_OK : EMU_CTL_ABSENT;
}

/* relaxed: everything below is a snapshot for display */
static uint32_t ring_used(const struct emu_ring *ring)
{
	return emu_ring_end(ring->ctl) -
	       atomic_load_explicit(&ring->ctl->head, memory_order_relaxed); /* relaxed: display */
}

static void fill_list(const struct port *port, const struct node *node, struct emu_ctl_list *out)
{
	struct emu_port *p = port->view.port;
	const _Atomic uint64_t *counter = (const _Atomic uint64_t *)&p->counters;
	size_t i;

	out->nic_id = port->nic_id;
	out->ep_num = port->ep_num;
	out->type = p->type;
	out->session = p->session;
	out->pid = p->pid;
	out->mpq_capacity = p->mpq_capacity;
	out->mpq_used = ring_used(&port->view.mpq);
	out->mpq_lost = atomic_load_explicit(&p->mpq.lost, memory_order_relaxed); /* relaxed: display */
	out->eq_capacity = p->eq_capacity;
	out->eq_used = ring_used(&port->view.eq);
	out->eq_lost = atomic_load_explicit(&p->eq.lost, memory_order_relaxed); /* relaxed: display */
	out->dq_capacity = p->dq_capacity;
	out->dq_used = emu_low(atomic_load_explicit(&p->dq.tail, memory_order_relaxed)) - /* relaxed: display */
		       atomic_load_explicit(&p->dq.head, memory_order_relaxed);		  /* relaxed: display */
	out->intq_capacity = p->intq_capacity;
	out->intq_used = ring_used(&port->view.intq);
	out->intq_lost = atomic_load_explicit(&p->intq.lost, memory_order_relaxed); /* relaxed: display */
	out->epq_capacity = p->epq_capacity;
	out->epq_used = ring_used(&port->view.epq);
	out->epq_lost = atomic_load_explicit(&p->epq.lost, memory_order_relaxed);	 /* relaxed: display */
	out->regions = atomic_load_explicit(&node->nic->mmt_used, memory_order_relaxed); /* relaxed: display */
	for (i = 0; i < sizeof(out->counter) / sizeof(out->counter[0]); i++)
		out->counter[i] = atomic_load_explicit(&counter[i], memory_order_relaxed); /* relaxed: display */
}

struct seek {
	uint32_t left;
	struct port *found;
};

static bool seek_one(struct port *port, void *arg)
{
	struct seek *seek = arg;

	seek->found = port;
	return seek->left-- == 0;
}

static int serve_port_list(struct call *call)
{
	struct glexd *glexd = call->session->glexd;
	struct seek seek = {.left = call->request->list.position};

	if (!port_each(glexd, seek_one, &seek))
		return EMU_CTL_ABSENT;
	call->reply->list.position = call->request->list.position;
	fill_list(seek.found, node_find(glexd, seek.found->nic_id), &call->reply->list);
	return EMU_CTL_OK;
}

static void count_kinds(struct emu_nic *nic, struct emu_ctl_nic *out)
{
	struct emu_region region;
	uint32_t i;

	static_assert(sizeof(out->kind) / sizeof(out->kind[0]) == EMU_KINDS, "a count for each kind");
	for (i = 0; i < EMU_MMT_UNITS; i++)
		if (emu_mmt_at(nic, i, &region) && region.kind < EMU_KINDS)
			out->kind[region.kind]++;
}

static int serve_nic_list(struct call *call)
{
	struct glexd *glexd = call->session->glexd;
	uint32_t left = call->request->nic.position, n = 0;
	struct emu_ctl_nic *out = &call->reply->nic;
	const _Atomic uint64_t *counter;
	const struct node *node;
	size_t i;

	while (n < glexd->node_room && (!glexd->nodes[n] || left-- > 0))
		n++;
	if (n == glexd->node_room)
		return EMU_CTL_ABSENT;
	node = glexd->nodes[n];
	counter = (const _Atomic uint64_t *)&node->nic->counters;
	out->position = call->request->nic.position;
	out->nic_id = n;
	out->regions = atomic_load_explicit(&node->nic->mmt_used, memory_order_relaxed); /* relaxed: display */
	out->modelled = glexd->host.model;
	count_kinds(node->nic, out);
	for (i = 0; i < sizeof(out->counter) / sizeof(out->counter[0]); i++)
		out->counter[i] = atomic_load_explicit(&counter[i], memory_order_relaxed); /* relaxed: display */
	return EMU_CTL_OK;
}

static int serve_dead_list(struct call *call)
{
	dead_list(call->session->glexd, call->request->dead.next, &call->reply->dead);
	return EMU_CTL_OK;
}

static int dispatch(struct call *call)
{
	static int (*const serve[])(struct call *) = {
		[EMU_CTL_HELLO] = serve_hello,
		[EMU_CTL_NIC_OPEN] = serve_nic_open,
		[EMU_CTL_PORT_CREATE] = serve_port_create,
		[EMU_CTL_PORT_OPEN] = serve_port_open,
		[EMU_CTL_PORT_CLOSE] = serve_port_close,
		[EMU_CTL_SHARE] = serve_share,
		[EMU_CTL_UNSHARE] = serve_unshare,
		[EMU_CTL_SHARE_OPEN] = serve_share_open,
		[EMU_CTL_PORT_LIST] = serve_port_list,
		[EMU_CTL_NIC_LIST] = serve_nic_list,
		[EMU_CTL_INTR_OPEN] = serve_intr_open,
		[EMU_CTL_INTR_RING] = serve_intr_ring,
		[EMU_CTL_ORDER] = serve_order,
		[EMU_CTL_COLL_OPEN] = serve_coll_open,
		[EMU_CTL_DEAD_LIST] = serve_dead_list,
	};
	uint16_t op = call->request->head.code;

	if (op >= sizeof(serve) / sizeof(serve[0]) || !serve[op])
		return EMU_CTL_BAD;
	if (!call->session->welcome && op != EMU_CTL_HELLO)
		return EMU_CTL_BAD;
	if (call->session->observer && op != EMU_CTL_PORT_LIST && op != EMU_CTL_NIC_LIST)
		return EMU_CTL_BAD;
	return serve[op](call);
}

void control_serve(struct session *session, const struct emu_ctl_msg *request, int fd_in, struct emu_ctl_msg *reply,
		   int fds_out[EMU_WIRE_FDS])
{
	struct call call = {session, request, fd_in, reply, fds_out};
	int status = dispatch(&call);

	if (call.fd_in >= 0)
		close(call.fd_in);
	reply->head.code = (uint16_t)status;
	if (status != EMU_CTL_OK)
		fds_out[0] = fds_out[1] = -1;
}
