/* SPDX-License-Identifier: BSD-2-Clause */
/* coll_net.c - see coll_net.h.  Has the engine's code in it, with points to die at. */
#include "coll_net.h"

#undef EMU_COLL_POINT
#define EMU_COLL_POINT() net_point()

static void net_point(void);

#include "emulator/nic/coll.c"
#include "emulator/nic/coll_send.c"

#define PACKETS 256u

struct net net;

/* A packet in the network. */
struct packet {
	struct net_port *from;
	struct emu_desc desc; /* with its payload */
	bool is_under_way;
};

static struct packet packet[PACKETS];
static uint32_t launched; /* in this run */

/* Deaths. */
static struct {
	bool armed;
	uint32_t at, passed;
	jmp_buf out;
} doom;

static void net_point(void)
{
	if (doom.armed && doom.passed++ == doom.at)
		longjmp(doom.out, 1);
}

/* ---- the host --------------------------------------------------------------- */

static struct net_port *port_at(uint32_t node, uint32_t ep)
{
	return node < net.nodes && ep < EPS ? &net.node[node].ep[ep] : NULL;
}

static struct emu_vport *fake_port(struct emu_host *host, uint32_t nic_id, uint32_t ep_num)
{
	struct net_port *port = port_at(nic_id, ep_num);

	(void)host;
	return port ? &port->port : NULL;
}

static int fake_hold(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data)
{
	struct packet *p = &packet[launched];

	(void)host;
	if (net.way != HELD)
		return EMU_NOW;
	UNIT_CHECK(launched < PACKETS);
	launched++;
	p->from = (struct net_port *)(void *)((char *)from - offsetof(struct net_port, coll));
	p->desc = *desc;
	if (desc->op == EMU_OP_MP && desc->len)
		memcpy(p->desc.imm, data, desc->len);
	p->is_under_way = true;
	return EMU_OK;
}

static struct emu_nic *fake_nic(struct emu_host *host, uint32_t nic_id)
{
	(void)host;
	return nic_id < net.nodes ? net.node[nic_id].nic : NULL;
}

static struct emu_coll_view *fake_coll(struct emu_host *host, struct emu_vport *port)
{
	(void)host;
	return &((struct net_port *)(void *)port)->coll;
}

static enum emu_reach fake_read(struct emu_host *host, uint32_t pid, void *here, uint64_t there, uint64_t len)
{
	(void)host;
	(void)pid;
	memcpy(here, (const void *)(uintptr_t)there, len);
	return EMU_REACH_OK;
}

static enum emu_reach fake_write(struct emu_host *host, uint32_t pid, const void *here, uint64_t there, uint64_t len,
				 uint32_t tail)
{
	(void)host;
	(void)pid;
	(void)tail;
	memcpy((void *)(uintptr_t)there, here, len);
	return EMU_REACH_OK;
}

static void fake_wake(struct emu_host *host, struct emu_port *port)
{
	(void)host;
	(void)port;
}

static bool fake_interrupt(struct emu_host *host, struct emu_port *port)
{
	(void)host;
	(void)port;
	return true;
}

static const struct emu_host_ops ops = {
	.port = fake_port,
	.nic = fake_nic,
	.coll = fake_coll,
	.hold = fake_hold,
	.read = fake_read,
	.write = fake_write,
	.wake = fake_wake,
	.interrupt = fake_interrupt,
};

static struct emu_engine engine;
static struct emu_host glexd = {.ops = &ops, .engine = &engine, .session = EMU_SESSION_GLEXD};

/* ---- ports ------------------------------------------------------------------ */

static struct emu_vport_shape port_shape(uint32_t node, uint32_t ep)
{
	return (struct emu_vport_shape){.nic_id = node,
					.ep_num = ep,
					.key = NET_KEY,
					.session = FIRST + node,
					.mpq_capacity = NET_MPQ,
					.eq_capacity = NET_EQ};
}

static void make_port(struct net_port *at, uint32_t node, uint32_t ep, void *port, void *coll)
{
	struct emu_vport_shape shape = port_shape(node, ep);
	struct emu_coll_shape unit = {.nic_id = node, .ep_num = ep, .cq_capacity = NET_CQ, .d_capacity = NET_MPQ};

	memset(port, 0, emu_vport_size(&shape));
	memset(coll, 0, emu_coll_size(&unit));
	emu_vport_format(port, emu_vport_size(&shape), &shape);
	emu_coll_format(coll, emu_coll_size(&unit), &unit);
	UNIT_CHECK(!emu_vport_attach(&at->port, port, emu_vport_size(&shape)));
	UNIT_CHECK(!emu_coll_attach(&at->coll, &at->port, coll, emu_coll_size(&unit)));
	at->posted = 0;
}

/* As make_port, of one that has been used; most of it has not. */
static void renew_port(struct net_port *at, uint32_t node, uint32_t ep)
{
	struct emu_port *port = at->port.port;
	struct emu_coll *coll = at->coll.coll;
	uint64_t used = atomic_load(&port->mpq.tail) | atomic_load(&port->eq.tail) | atomic_load(&coll->cq.tail) |
			atomic_load(&coll->d.tail);

	if (atomic_load(&port->err.tail) | atomic_load(&port->intq.tail) | atomic_load(&port->epq.tail)) {
		make_port(at, node, ep, port, coll);
		return;
	}
	at->posted = 0;
	at->port.dq = NULL;
	if (!used)
		return;
	memset(&port->state, 0, offsetof(struct emu_port, intq) - offsetof(struct emu_port, state));
	atomic_store(&port->state, EMU_PORT_OPEN);
	memset((char *)port + port->mpq_log, 0, port->err_log - port->mpq_log);
	memset(&coll->turn, 0, offsetof(struct emu_coll, operand) - offsetof(struct emu_coll, turn));
	memset((char *)coll + coll->d_log, 0, coll->seg.total_size - coll->d_log);
}

static void new_port(struct net_port *at, uint32_t node, uint32_t ep)
{
	struct emu_vport_shape shape = port_shape(node, ep);
	struct emu_coll_shape unit = {.cq_capacity = NET_CQ, .d_capacity = NET_MPQ};

	make_port(at, node, ep, unit_zeroed(emu_vport_size(&shape)), unit_zeroed(emu_coll_size(&unit)));
}

static void free_port(struct net_port *at)
{
	free(at->port.port);
	free(at->coll.coll);
}

void net_setup(void)
{
	uint32_t i, ep;

	memset(&net, 0, sizeof(net));
	for (i = 0; i < NODES; i++) {
		struct net_node *node = &net.node[i];
		struct emu_region region = {.len = NET_MEMORY,
					    .key = NET_KEY,
					    .pid = 1000 + i,
					    .session = FIRST + i,
					    .access = GLEX_MEM_READ | GLEX_MEM_WRITE};

		node->host = (struct emu_host){.ops = &ops, .engine = &engine, .session = FIRST + i};
		node->nic = unit_zeroed(sizeof(*node->nic));
		node->memory = unit_zeroed(NET_MEMORY);
		region.addr = (uintptr_t)node->memory;
		ck_assert(emu_mmt_register(node->nic, &region, &node->handle));
		for (ep = 0; ep < EPS; ep++)
			new_port(&node->ep[ep], i, ep);
	}
}

void net_teardown(void)
{
	uint32_t i, ep;

	for (i = 0; i < NODES; i++) {
		for (ep = 0; ep < EPS; ep++)
			free_port(&net.node[i].ep[ep]);
		free(net.node[i].nic);
		free(net.node[i].memory);
	}
}

static struct emu_desc never; /* a descriptor queue, so that requests wait until its head says that they are due */

void net_begin(uint32_t nodes, enum net_way way, bool reorder)
{
	uint32_t i, ep;

	net.nodes = nodes;
	net.way = way;
	net.reorder = reorder;
	for (i = 0; i < nodes; i++) {
		for (ep = 0; ep < EPS; ep++) {
			struct net_port *at = &net.node[i].ep[ep];

			renew_port(at, i, ep);
			if (way == STEPPED)
				at->port.dq = &never;
		}
		memset(net.node[i].memory, 0, NET_MEMORY);
	}
	memset(net.seen_at, 0, sizeof(net.seen_at));
	launched = 0;
}

uint64_t net_addr(uint32_t node, uint32_t ep)
{
	glex_ep_addr_t addr = {.v = 0};

	addr.nic_id = node;
	addr.ep_num = (uint16_t)ep;
	return addr.v;
}

struct emu_desc net_mp(uint32_t flag, uint64_t dst, uint32_t counter)
{
	return (struct emu_desc){.op = EMU_OP_MP, .flag = flag | P2, .dst = dst, .counter = counter};
}

struct emu_desc net_put(uint32_t flag, uint32_t to_node, uint32_t counter, uint32_t offset, uint32_t len)
{
	return (struct emu_desc){
		.op = EMU_OP_PUT,
		.flag = flag | P2,
		.dst = net_addr(to_node, 0),
		.counter = counter,
		.rmt_mh = net.node[to_node].handle,
		.local_offset = offset,
		.rmt_offset = offset,
		.len = len,
		.rmt_key = NET_KEY,
		.local_evt = {1, 1},
		.rmt_evt = {2, 2},
	};
}

void net_queue(uint32_t node, uint32_t ep, struct emu_desc desc, const void *data, uint32_t len)
{
	struct net_port *at = &net.node[node].ep[ep];

	UNIT_CHECK(emu_coll_room(&at->coll) > 0);
	desc.local_mh = net.node[node].handle;
	desc.after = ++at->posted;
	if (desc.op == EMU_OP_MP)
		desc.len = len;
	emu_coll_post(&at->coll, &desc, data, len);
}

void net_run(uint32_t node, uint32_t ep)
{
	emu_coll_turn(&net.node[node].host, &net.node[node].ep[ep].coll);
}

void net_post(uint32_t node, uint32_t ep, struct emu_desc desc, const void *data, uint32_t len)
{
	net_queue(node, ep, desc, data, len);
	net_run(node, ep);
}

/* ---- what has come ------------------------------------------------------------ */

/* The next slot that is none of a dead one's. */
static void *next(const struct emu_ring *ring, size_t flags_at)
{
	uint32_t head = atomic_load(&ring->ctl->head);
	unsigned char *slot;

	while ((slot = emu_ring_peek(ring, head))) {
		emu_ring_release(ring, ++head);
		if (!(*(uint16_t *)(void *)(slot + flags_at) & EMU_SLOT_DISCARDED))
			return slot;
	}
	return NULL;
}

bool net_take_mp_from(uint32_t node, uint32_t ep, uint64_t *src_p, void *data, uint32_t *len_p)
{
	struct emu_mp_slot *slot = next(&net.node[node].ep[ep].port.mpq, offsetof(struct emu_mp_slot, flags));

	if (!slot)
		return false;
	memcpy(data, slot->data, slot->len);
	*len_p = slot->len;
	*src_p = slot->src;
	return true;
}

bool net_take_mp(uint32_t node, uint32_t ep, void *data, uint32_t *len_p)
{
	uint64_t src;

	return net_take_mp_from(node, ep, &src, data, len_p);
}

void net_expect_mp(uint32_t node, uint32_t ep, const void *data, uint32_t len)
{
	unsigned char got[EMU_MP_DATA];
	uint32_t got_len;

	if (!net_take_mp(node, ep, got, &got_len))
		ck_abort_msg("no MP at %u:%u", node, ep);
	if (got_len != len || (len && memcmp(got, data, len) != 0))
		ck_abort_msg("another MP at %u:%u: %u bytes, %02x..., not %u", node, ep, got_len, got[0], len);
}

bool net_take_cookies(uint32_t node, uint32_t ep, uint64_t cookie[2])
{
	struct emu_event_slot *slot = next(&net.node[node].ep[ep].port.eq, offsetof(struct emu_event_slot, flags));

	if (slot)
		memcpy(cookie, slot->cookie, sizeof(slot->cookie));
	return slot != NULL;
}

uint64_t net_take_event(uint32_t node, uint32_t ep)
{
	uint64_t cookie[2];

	return net_take_cookies(node, ep, cookie) ? cookie[0] : 0;
}

int net_take_error(uint32_t node, uint32_t ep)
{
	struct emu_err_slot *slot = next(&net.node[node].ep[ep].port.err, offsetof(struct emu_err_slot, flags));

	return slot ? (int)slot->status : -1;
}

static bool only_discarded(const struct emu_ring *ring, uint32_t from)
{
	struct emu_mp_slot *slot;

	for (; (slot = emu_ring_peek(ring, from)); from++)
		if (!(slot->flags & EMU_SLOT_DISCARDED))
			return false;
	return emu_ring_end(ring->ctl) == from;
}

void net_expect_clean(void)
{
	uint32_t i, ep, len;
	unsigned char data[EMU_MP_DATA];

	for (i = 0; i < net.nodes; i++)
		for (ep = 0; ep < EPS; ep++) {
			struct net_port *at = &net.node[i].ep[ep];
			const struct emu_coll_state *state = emu_coll_now(&at->coll);

			if (net_take_mp(i, ep, data, &len))
				ck_abort_msg("an MP too many at %u:%u", i, ep);
			if (net_take_event(i, ep) || net_take_error(i, ep) != -1)
				ck_abort_msg("an event or error too many at %u:%u", i, ep);
			if (state->cq_head != at->posted || emu_coll_room(&at->coll) != NET_CQ)
				ck_abort_msg("%u:%u: %u of %u requests done", i, ep, state->cq_head, at->posted);
			if (!only_discarded(&at->coll.d, state->d_head))
				ck_abort_msg("a control packet too many at %u:%u", i, ep);
			UNIT_CHECK(atomic_load(&at->coll.coll->turn) == 0);
		}
}

/* ---- orders ------------------------------------------------------------------- */

/* A packet comes to its port: what it brings there, and what its sender hears of it. */
static void arrive(struct packet *p)
{
	glex_ep_addr_t to = {.v = p->desc.dst};
	struct emu_coll_view *told = NULL;
	int status = emu_coll_send(&glexd, &p->from->coll, &p->desc, p->desc.imm, &told);

	p->is_under_way = false;
	if (status != EMU_OK)
		emu_report(&glexd, &p->from->port, &p->desc, status);
	if (told)
		emu_coll_turn(&glexd, told);
	net.seen_at[to.nic_id]++;
	net.seen_at[p->from->port.port->nic_id]++;
}

/*
 * May it come next?  With FENCE not before an earlier one of its sender, nor, unless they may overtake each other, of its
 * pair.
 */
static bool may_arrive(uint32_t n)
{
	const struct packet *p = &packet[n], *before;

	for (before = packet; before < p; before++)
		if (before->is_under_way && before->from == p->from &&
		    (p->desc.flag & GLEX_FLAG_FENCE || (!net.reorder && before->desc.dst == p->desc.dst)))
			return false;
	return p->is_under_way;
}

/* The order that is tried: choice n is path[n] of width[n]. */
#define DEPTH 256u
static uint32_t path[DEPTH], width[DEPTH], depth, known;
static uint32_t seed; /* 0: all orders, one after the other */

static uint32_t choose(uint32_t n)
{
	if (seed)
		return unit_random(&seed) % n;
	UNIT_CHECK(depth < DEPTH);
	if (depth == known) {
		path[known] = 0;
		width[known++] = n;
	}
	UNIT_CHECK(width[depth] == n); /* the same run up to here */
	return path[depth++];
}

static bool next_path(void)
{
	while (known && path[known - 1] + 1 == width[known - 1])
		known--;
	if (!known)
		return false;
	path[known - 1]++;
	return true;
}

static bool may_step(uint32_t node, uint32_t ep)
{
	struct net_port *at = port_at(node, ep);
	const struct emu_coll_state *state = emu_coll_now(&at->coll);
	struct emu_desc *desc = &at->coll.cq[state->cq_head & at->coll.cq_mask];
	uint32_t i = state->d_head, n = 0;

	if (net.way != STEPPED || state->cq_head == at->posted)
		return false;
	while (n < desc->counter && emu_ring_peek(&at->coll.d, i + n))
		n++;
	return !(desc->flag & START) || n == desc->counter;
}

/* From here on everything goes at once. */
static void settle(void)
{
	uint32_t i, ep;

	net.way = AT_ONCE;
	for (i = 0; i < net.nodes; i++)
		for (ep = 0; ep < EPS; ep++)
			net.node[i].ep[ep].port.dq = NULL;
}

static bool may_act(const struct scenario *s, uint32_t node, const uint32_t *at, const bool *done)
{
	return !done[node] && (!s->may_act || s->may_act(node, at[node]));
}

/* Who can do something; what they would do is numbered node by node, then packet by packet. */
static uint32_t count_moves(const struct scenario *s, const uint32_t *at, const bool *done)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->nodes; i++)
		n += (uint32_t)may_act(s, i, at, done) + may_step(i, 0) + may_step(i, 1);
	for (i = 0; i < launched; i++)
		n += may_arrive(i);
	return n;
}

static void move(const struct scenario *s, uint32_t pick, uint32_t *at, bool *done)
{
	uint32_t i, ep;

	for (i = 0; i < s->nodes; i++) {
		if (may_act(s, i, at, done) && pick-- == 0) {
			done[i] = !s->act(i, at[i]++);
			return;
		}
		for (ep = 0; ep < EPS; ep++)
			if (may_step(i, ep) && pick-- == 0) {
				atomic_fetch_add(&net.node[i].ep[ep].port.port->dq.tail, 1);
				atomic_fetch_add(&net.node[i].ep[ep].port.port->dq.head, 1);
				emu_coll_turn(&glexd, &net.node[i].ep[ep].coll);
				return;
			}
	}
	for (i = 0; i < launched; i++)
		if (may_arrive(i) && pick-- == 0) {
			arrive(&packet[i]);
			return;
		}
}

static void run_once(const struct scenario *s)
{
	uint32_t at[NODES] = {0}, n;
	bool done[NODES] = {false};

	depth = 0;
	net_begin(s->nodes, s->start ? AT_ONCE : s->way, s->reorder);
	if (s->start)
		s->start();
	net.way = s->way;
	while ((n = count_moves(s, at, done)))
		move(s, n > 1 ? choose(n) : 0, at, done);
	settle();
	s->check();
	net_expect_clean();
}

uint64_t net_all_orders(const struct scenario *scenario)
{
	uint64_t orders = 0;

	seed = 0;
	known = 0;
	do {
		run_once(scenario);
		orders++;
	} while (next_path());
	return orders;
}

void net_some_orders(const struct scenario *scenario, uint32_t n, uint32_t first)
{
	while (n-- > 0) {
		seed = first + n * 2 + 1;
		run_once(scenario);
	}
	seed = 0;
}

/* ---- deaths -------------------------------------------------------------------- */

static bool nobody_else_runs(struct emu_bias *bias)
{
	(void)bias;
	return true;
}

/* Each node has rings to itself, as long as no other sends there. */
static void own_rings(void)
{
	uint32_t i;

	for (i = 0; i < net.nodes; i++)
		net.node[i].host.bias =
			(struct emu_bias){.word = emu_bias_word(FIRST + i, 0), .order = nobody_else_runs};
	glexd.bias.order = nobody_else_runs;
}

/* What glexd does when the session of node has ended; its ports stay here, to see what became of the others'. */
static void glexd_takes_over(uint32_t dead)
{
	uint32_t i, ep;

	for (i = 0; i < net.nodes; i++)
		for (ep = 0; ep < EPS; ep++)
			emu_coll_inherit(&glexd, &net.node[i].ep[ep].coll, dead);
	for (i = 0; i < net.nodes; i++)
		for (ep = 0; ep < EPS; ep++) {
			struct net_port *at = &net.node[i].ep[ep];

			emu_ring_reap(&at->port.mpq, dead, offsetof(struct emu_mp_slot, flags));
			emu_ring_reap(&at->port.eq, dead, offsetof(struct emu_event_slot, flags));
			emu_ring_reap(&at->coll.d, dead, offsetof(struct emu_mp_slot, flags));
		}
	for (i = 0; i < net.nodes; i++)
		for (ep = 0; ep < EPS; ep++)
			emu_coll_turn(&glexd, &net.node[i].ep[ep].coll);
}

/* Each node acts in turn until none has more to do; false: nobody died. */
static bool run_doomed(const struct scenario *s, uint32_t first, uint32_t point)
{
	static uint32_t at[NODES], i, left; /* static: they must survive the jump */
	static bool done[NODES], died;

	memset(at, 0, sizeof(at));
	memset(done, 0, sizeof(done));
	died = false;
	net_begin(s->nodes, AT_ONCE, false);
	own_rings();
	doom.at = point;
	doom.passed = 0;
	for (left = s->nodes, i = first; left > 0; i = (i + 1) % s->nodes) {
		if (!may_act(s, i, at, done))
			continue;
		doom.armed = !died;
		if (setjmp(doom.out) == 0) {
			done[i] = !s->act(i, at[i]);
		} else {
			died = true;
			doom.armed = false;
			glexd_takes_over(net.node[i].host.session);
		}
		at[i]++;
		left -= done[i];
	}
	doom.armed = false;
	s->check();
	net_expect_clean();
	return died;
}

uint64_t net_all_deaths(const struct scenario *scenario)
{
	uint64_t deaths = 0;
	uint32_t first, point;

	for (first = 0; first < scenario->nodes; first++)
		for (point = 0; run_doomed(scenario, first, point); point++)
			deaths++;
	return deaths;
}
