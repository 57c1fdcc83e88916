/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collsim_run.c - one measurement: a number of collectives one after the other on
 * a simulated machine, in one of two ways.
 *
 *   nic    what libglex/src/group posts on each node, executed by the NICs
 *   host   the same tree, but each node's program receives from its children,
 *          reduces, and sends; ordinary packets
 *
 * A collective begins on all nodes once the one before has ended on all, at the
 * same time or up to skew_ns apart, and lasts from the last that begins to the last
 * that ends.  Who is to compute does so as soon as he has begun, and looks for packets
 * after that.  Where a node has several processes, they meet in its memory before and
 * after, in as many steps as a binary tree of them has.
 *
 * A broadcast of more than a packet is passed down the tree in parts (puts.c), by the
 * host's way in the same: whoever has received one whole posts it again for each child.
 * Hosts need no buffers told, nor that all are ready, which is in their favour.
 *
 * Each result is compared bit by bit with one computed without any of this: own
 * value first, then the children's, the lowest member first, as the NICs promise.  Of a long
 * broadcast there are no bytes: each part must come once, in order, and from whoever has it.
 */
#include "collsim.h"

#include <stdlib.h>
#include <string.h>

#define MP_DATA 112u

struct member {
	glex_group_t group;
	glex_ep_handle_t ep; /* host: for everything */
	uint32_t got;	     /* host: children that have told, or parts that have come */
	uint32_t waiting;    /* packets that came before it began */
	bool begun, ended;
};

struct run {
	const struct collsim_case *c;
	struct sim *sim;
	struct collsim_device *dev;
	struct member *member;
	glex_ep_addr_t *addr;		 /* host: of each member */
	union glex_coll_data_loc *units; /* c->units of each member: what it gives, then what it gets */
	double *told;			 /* host: what it has told its parent */
	double *expected;		 /* what the subtree of each comes to */
	unsigned char *bytes;		 /* c->bytes of each member; of a long broadcast there are none */
	uint32_t part;			 /* host: of a long broadcast, but for the last */
	glex_mem_handle_t mh;		 /* host: of each member's buffer */
	uint32_t iteration, begun, ended;
	uint64_t last_begin, last_end;
	uint64_t sum, min, max;
	const char *error;
};

static void fail(struct run *run, const char *why)
{
	if (!run->error)
		run->error = why;
	sim_fail(run->sim, why);
}

static bool is_long(const struct collsim_case *c)
{
	return c->test == COLLSIM_BCAST && c->bytes > COLLSIM_SHORT;
}

struct place {
	uint32_t parent, child[GLEX_COLL_MAX_BRANCH_DEGREE], children;
};

static struct place place_of(const struct collsim_case *c, uint32_t node)
{
	struct place place;

	glex_group_tree(c->shape, c->nodes, node, c->degree, &place.parent, place.child, &place.children);
	return place;
}

bool collsim_has_tree(enum glex_group_shape shape, uint32_t nodes, uint32_t degree)
{
	struct place place;

	/* Nobody has more children than the root. */
	return glex_group_tree(shape, nodes, 0, degree, &place.parent, place.child, &place.children) == GLEX_SUCCESS;
}

/* ---- data ------------------------------------------------------------------- */

/* As place_of, the lowest child first: that is the order in which the NICs combine what comes from them. */
static struct place sorted_place_of(const struct collsim_case *c, uint32_t node)
{
	struct place place = place_of(c, node);
	uint32_t i, at, child;

	for (i = 1; i < place.children; i++) {
		child = place.child[i];
		for (at = i; at > 0 && place.child[at - 1] > child; at--)
			place.child[at] = place.child[at - 1];
		place.child[at] = child;
	}
	return place;
}

/* What a member gives: sums of these are rounded, so that their order matters. */
static double value_of(const struct run *run, uint32_t node, uint32_t unit)
{
	uint64_t bits = sim_mix(run->iteration * 8 + unit, node, run->c->params.seed);

	return (double)(bits >> 11) / 4398046511104.0 - 1024;
}

static unsigned char byte_of(const struct run *run, uint32_t at)
{
	return (unsigned char)sim_mix(run->iteration, at, run->c->params.seed);
}

static void expect(struct run *run)
{
	const struct collsim_case *c = run->c;
	uint32_t node, i, unit;

	for (node = c->nodes; node-- > 0;) {
		struct place place = sorted_place_of(c, node);

		for (unit = 0; unit < c->units; unit++) {
			double sum = value_of(run, node, unit);

			for (i = 0; i < place.children; i++) /* all of them are higher than node */
				sum += run->expected[(size_t)place.child[i] * c->units + unit];
			run->expected[(size_t)node * c->units + unit] = sum;
		}
	}
}

static void set_data(struct run *run)
{
	const struct collsim_case *c = run->c;
	uint32_t node, i;

	for (node = 0; c->test == COLLSIM_ALLREDUCE && node < c->nodes; node++)
		for (i = 0; i < c->units; i++)
			run->units[(size_t)node * c->units + i].double_s.data = value_of(run, node, i);
	if (c->test == COLLSIM_ALLREDUCE) {
		expect(run);
		if (c->broken)
			run->units[(size_t)(c->nodes - 1) * c->units].double_s.data += 1;
	}
	for (node = 0; is_long(c) && node < c->nodes; node++)
		sim_hold(run->sim, node, node == c->root ? c->bytes - c->broken : 0);
	if (c->test != COLLSIM_BCAST || is_long(c))
		return;
	memset(run->bytes, 0, (size_t)c->nodes * c->bytes);
	for (i = 0; i < c->bytes; i++)
		run->bytes[(size_t)c->root * c->bytes + i] = byte_of(run, i);
	if (c->broken && c->bytes)
		run->bytes[(size_t)c->root * c->bytes] ^= 1;
}

static bool is_right(const struct run *run, uint32_t node)
{
	const struct collsim_case *c = run->c;
	uint32_t i;

	if (is_long(c))
		return sim_held(run->sim, node) == c->bytes;
	for (i = 0; c->test == COLLSIM_ALLREDUCE && i < c->units; i++)
		if (memcmp(&run->units[(size_t)node * c->units + i].double_s.data, &run->expected[i], sizeof(double)) !=
		    0)
			return false;
	for (i = 0; c->test == COLLSIM_BCAST && i < c->bytes; i++)
		if (run->bytes[(size_t)node * c->bytes + i] != byte_of(run, i))
			return false;
	return true;
}

/* ---- beginning and ending ---------------------------------------------------- */

/* How long the processes of a node need among themselves. */
static double local_ns(const struct collsim_case *c)
{
	uint32_t steps = 0;

	while (UINT32_C(1) << steps < c->processes)
		steps++;
	return steps * c->params.times.local;
}

static void begin_all(struct run *run, uint64_t at)
{
	const struct collsim_case *c = run->c;
	uint32_t node;

	run->begun = run->ended = 0;
	run->last_begin = run->last_end = 0;
	set_data(run);
	for (node = 0; node < c->nodes; node++) {
		double share = (double)(sim_mix(c->params.seed, node, run->iteration + 1) >> 11) / 9007199254740992.0;

		run->member[node].begun = run->member[node].ended = false;
		sim_begin(run->sim, node, at + (uint64_t)(share * c->skew_ns * SIM_PS));
	}
}

static void note_begin(struct run *run, uint32_t node)
{
	run->member[node].begun = true;
	run->begun++;
	if (run->last_begin < sim_now(run->sim, node))
		run->last_begin = sim_now(run->sim, node);
	if (run->c->test != COLLSIM_BCAST)
		sim_busy(run->sim, node, local_ns(run->c));
}

static void note_end(struct run *run, uint32_t node)
{
	uint64_t took;

	if (run->member[node].ended || !is_right(run, node) ||
	    (run->c->test != COLLSIM_BCAST && run->begun != run->c->nodes)) {
		fail(run, "a node ended with a wrong result, twice, or before others had begun");
		return;
	}
	run->member[node].ended = true;
	sim_busy(run->sim, node, local_ns(run->c));
	if (run->last_end < sim_now(run->sim, node))
		run->last_end = sim_now(run->sim, node);
	if (++run->ended < run->c->nodes)
		return;
	took = run->last_end - run->last_begin;
	run->sum += took;
	run->min = took < run->min ? took : run->min;
	run->max = took > run->max ? took : run->max;
	if (++run->iteration < run->c->iterations)
		begin_all(run, run->last_end);
}

/* ---- by the NICs -------------------------------------------------------------- */

static void nic_end(struct run *run, uint32_t node)
{
	glex_ret_t ret = glex_group_wait(run->member[node].group, 0);

	if (is_long(run->c) && ret == GLEX_NO_MP)
		return; /* it has several steps */
	if (ret != GLEX_SUCCESS) {
		fail(run, "a group did not end a collective");
		return;
	}
	sim_busy(run->sim, node, run->c->params.times.recv);
	note_end(run, node);
}

static void nic_begin(void *arg, uint32_t node)
{
	struct run *run = arg;
	const struct collsim_case *c = run->c;
	glex_group_t group = run->member[node].group;
	glex_ret_t ret = GLEX_SYS_ERR;

	note_begin(run, node);
	sim_busy(run->sim, node, c->params.times.send);
	switch (c->test) {
	case COLLSIM_ALLREDUCE:
		ret = glex_group_allreduce(group, &run->units[(size_t)node * c->units], c->units,
					   GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_FLOAT);
		break;
	case COLLSIM_BCAST:
		if (is_long(c))
			ret = glex_group_bcast_long(group, c->root, run->bytes, c->bytes);
		else
			ret = glex_group_bcast(group, c->root, &run->bytes[(size_t)node * c->bytes], c->bytes);
		break;
	default:
		ret = glex_group_barrier(group);
	}
	sim_busy(run->sim, node, c->compute_ns);
	if (ret != GLEX_SUCCESS)
		fail(run, "a group did not begin a collective");
	else if (run->member[node].waiting || (c->test == COLLSIM_BCAST && !is_long(c) && node == c->root))
		nic_end(run, node); /* nobody tells the root */
	run->member[node].waiting = 0;
}

/* Who has not begun does not look for packets. */
static void nic_has_mp(void *arg, uint32_t node, uint32_t ep)
{
	struct run *run = arg;

	(void)ep;
	if (!run->member[node].begun)
		run->member[node].waiting++;
	else if (!is_long(run->c) || !run->member[node].ended)
		nic_end(run, node);
}

static bool open_groups(struct run *run)
{
	uint32_t node, n = run->c->nodes;
	struct glex_group_card *card = calloc(n, sizeof(*card));
	bool ok = card != NULL;

	for (node = 0; ok && node < n; node++) {
		run->dev->node = node;
		ok = glex_group_open(&run->dev->base, GLEX_EP_TYPE_FAST, 0, &run->member[node].group, &card[node]) ==
		     GLEX_SUCCESS;
	}
	for (node = 0; ok && node < n; node++) {
		ok = glex_group_join(run->member[node].group, card, n, node, run->c->shape, run->c->degree) ==
		     GLEX_SUCCESS;
		if (ok && is_long(run->c))
			ok = glex_group_set_long(run->member[node].group, GLEX_GROUP_LONG_PASSED) == GLEX_SUCCESS;
	}
	free(card);
	return ok;
}

/* ---- by the hosts ------------------------------------------------------------- */

static void send_to(struct run *run, uint32_t node, uint32_t to, void *data, uint32_t len)
{
	struct glex_imm_mp_req req = {.rmt_ep_addr = run->addr[to], .data = data, .len = len};

	sim_busy(run->sim, node, run->c->params.times.send);
	if (glex_send_imm_mp(run->member[node].ep, &req, NULL) != GLEX_SUCCESS)
		fail(run, "a packet was not sent");
}

/* What the tree's root knows goes down; node has it. */
static void pass_down(struct run *run, uint32_t node, const void *data, uint32_t len)
{
	const struct collsim_case *c = run->c;
	struct place place = place_of(c, node);
	unsigned char copy[MP_DATA] = {0};
	uint32_t i;

	memcpy(copy, data, len);
	for (i = 0; i < place.children; i++)
		send_to(run, node, place.child[i], copy, len);
	if (c->test == COLLSIM_BCAST)
		memcpy(&run->bytes[(size_t)node * c->bytes], copy, len);
	for (i = 0; c->test == COLLSIM_ALLREDUCE && i < c->units; i++)
		memcpy(&run->units[(size_t)node * c->units + i].double_s.data, copy + i * sizeof(double),
		       sizeof(double));
	note_end(run, node);
}

/* Once node has begun and all its children have told. */
static void pass_up(struct run *run, uint32_t node)
{
	const struct collsim_case *c = run->c;
	struct place place = sorted_place_of(c, node);
	uint32_t i, unit, len = c->test == COLLSIM_ALLREDUCE ? c->units * (uint32_t)sizeof(double) : 0;
	double *mine = &run->told[(size_t)node * c->units];

	if (!run->member[node].begun || run->member[node].got < place.children)
		return;
	run->member[node].got = 0;
	for (unit = 0; len && unit < c->units; unit++) {
		mine[unit] = run->units[(size_t)node * c->units + unit].double_s.data;
		for (i = 0; i < place.children; i++)
			mine[unit] += run->told[(size_t)place.child[i] * c->units + unit];
	}
	if (node == 0)
		pass_down(run, node, mine, len);
	else
		send_to(run, node, place.parent, mine, len);
}

/* As puts.c cuts it. */
static uint32_t part_of(const struct collsim_case *c)
{
	uint32_t parts = 48 / (place_of(c, 0).children + 1), part;

	parts = parts > 16 ? 16 : parts < 2 ? 2 : parts;
	part = (c->bytes / parts + 4096) / 4096 * 4096;
	return part < EMU_RDMA_DATA ? part : EMU_RDMA_DATA;
}

static void put_to(struct run *run, uint32_t node, uint32_t to)
{
	uint32_t at = run->member[node].got * run->part, left = run->c->bytes - at;
	struct glex_rdma_req req = {
		.rmt_ep_addr = run->addr[to],
		.local_mh = run->mh,
		.local_offset = at,
		.len = left < run->part ? left : run->part,
		.rmt_mh = run->mh,
		.rmt_offset = at,
		.type = GLEX_RDMA_TYPE_PUT,
		.flag = GLEX_FLAG_REMOTE_EVT,
	};

	sim_busy(run->sim, node, run->c->params.times.send);
	if (glex_rdma(run->member[node].ep, &req, NULL) != GLEX_SUCCESS)
		fail(run, "a part was not sent");
}

/* The next part goes on: the root's children are its own, and to the tree's root it sends, too. */
static void put_part(struct run *run, uint32_t node)
{
	const struct collsim_case *c = run->c;
	struct place place = place_of(c, node);
	uint32_t i;

	if (node == c->root && node)
		put_to(run, node, 0);
	for (i = 0; i < place.children; i++)
		if (place.child[i] != c->root)
			put_to(run, node, place.child[i]);
	if ((uint64_t)++run->member[node].got * run->part < c->bytes)
		return;
	run->member[node].got = 0;
	note_end(run, node);
}

static void receive_part(struct run *run, uint32_t node)
{
	glex_event_t *event;

	if (glex_probe_first_event(run->member[node].ep, 0, &event) != GLEX_SUCCESS) {
		fail(run, "a part was not received");
		return;
	}
	glex_discard_probed_event(run->member[node].ep);
	sim_busy(run->sim, node, run->c->params.times.recv);
	put_part(run, node);
}

static void receive(struct run *run, uint32_t node)
{
	const struct collsim_case *c = run->c;
	unsigned char data[MP_DATA] = {0};
	glex_ep_addr_t src = {.v = 0};
	uint32_t len = 0;

	if (is_long(c)) {
		receive_part(run, node);
		return;
	}
	if (glex_receive_mp(run->member[node].ep, 0, &src, data, &len) != GLEX_SUCCESS) {
		fail(run, "a packet was not received");
		return;
	}
	sim_busy(run->sim, node, c->params.times.recv);
	if (c->test == COLLSIM_BCAST || (node != 0 && src.nic_id == place_of(c, node).parent)) {
		pass_down(run, node, data, len);
		return;
	}
	if (c->test == COLLSIM_ALLREDUCE) {
		memcpy(&run->told[(size_t)src.nic_id * c->units], data, len);
		sim_busy(run->sim, node, c->params.times.combine);
	}
	run->member[node].got++;
	pass_up(run, node);
}

static void host_begin(void *arg, uint32_t node)
{
	struct run *run = arg;
	const struct collsim_case *c = run->c;

	note_begin(run, node);
	if (c->test != COLLSIM_BCAST)
		pass_up(run, node);
	else if (is_long(c) && node == c->root)
		while (!run->member[node].ended && !run->error)
			put_part(run, node);
	else if (node == c->root && node == 0)
		pass_down(run, node, run->bytes, c->bytes);
	else if (node == c->root) /* one hop more, as by the NICs */
		send_to(run, node, 0, &run->bytes[(size_t)node * c->bytes], c->bytes);
	sim_busy(run->sim, node, c->compute_ns);
	for (; run->member[node].waiting; run->member[node].waiting--)
		receive(run, node);
}

/* Who has not begun does not look for packets. */
static void host_has_mp(void *arg, uint32_t node, uint32_t ep)
{
	struct run *run = arg;

	(void)ep;
	if (run->member[node].begun)
		receive(run, node);
	else
		run->member[node].waiting++;
}

static bool open_ends(struct run *run)
{
	struct glex_ep_attr attr = {.num = GLEX_ANY_EP_NUM};
	uint32_t node;

	for (node = 0; node < run->c->nodes; node++) {
		run->dev->node = node;
		if (glex_create_ep(&run->dev->base, &attr, &run->member[node].ep) != GLEX_SUCCESS)
			return false;
		glex_get_ep_addr(run->member[node].ep, &run->addr[node]);
		if (is_long(run->c))
			run->mh.v = sim_register(run->sim, node, run->addr[node].ep_num, 0);
	}
	return true;
}

/* ---- one measurement ---------------------------------------------------------- */

static const struct sim_program programs[] = {
	[COLLSIM_NIC] = {.begin = nic_begin, .has_mp = nic_has_mp, .has_event = nic_has_mp},
	[COLLSIM_HOST] = {.begin = host_begin, .has_mp = host_has_mp, .has_event = host_has_mp},
};

static bool allocate(struct run *run)
{
	size_t n = run->c->nodes, units = n * (run->c->units ? run->c->units : 1);
	struct sim_params params = run->c->params;

	/* A node's own requests of one collective, or what all its neighbours send at once, and a little more. */
	params.queue = place_of(run->c, 0).children + 4;
	if (is_long(run->c)) /* or all parts for all of them: what a group's endpoint has room for, and more where it would wait */
		params.queue = 64 + params.queue;
	run->part = part_of(run->c);
	run->sim = sim_create(&params, run->c->nodes);
	run->dev = calloc(1, sizeof(*run->dev));
	run->member = calloc(n, sizeof(*run->member));
	run->addr = calloc(n, sizeof(*run->addr));
	run->units = calloc(units, sizeof(*run->units));
	run->told = calloc(units, sizeof(*run->told));
	run->expected = calloc(units, sizeof(*run->expected));
	run->bytes = calloc(n, run->c->bytes && !is_long(run->c) ? run->c->bytes : 1);
	if (!run->sim || !run->dev || !run->member || !run->addr || !run->units || !run->told || !run->expected ||
	    !run->bytes)
		return false;
	run->dev->sim = run->sim;
	return run->c->way == COLLSIM_NIC ? open_groups(run) : open_ends(run);
}

static void release(struct run *run)
{
	struct sim_program nothing = {.arg = NULL}; /* who leaves lets time pass */
	uint32_t node;

	if (run->sim)
		sim_run_program(run->sim, &nothing);
	for (node = 0; run->member && node < run->c->nodes; node++) {
		if (run->member[node].group)
			glex_group_close(run->member[node].group);
		if (run->member[node].ep)
			glex_destroy_ep(run->member[node].ep);
	}
	sim_destroy(run->sim);
	free(run->dev);
	free(run->member);
	free(run->addr);
	free(run->units);
	free(run->told);
	free(run->expected);
	free(run->bytes);
}

static uint32_t depth_of(const struct collsim_case *c)
{
	uint32_t node, at, deep, depth = 0;

	for (node = 0; node < c->nodes; node++) {
		for (deep = 0, at = node; at; deep++)
			at = place_of(c, at).parent;
		depth = deep > depth ? deep : depth;
	}
	return depth;
}

static void measure(struct run *run)
{
	struct sim_program program = programs[run->c->way];

	while (sim_step(run->sim)) /* what is left of opening */
		;
	program.arg = run;
	sim_run_program(run->sim, &program);
	begin_all(run, sim_idle_at(run->sim));
	while (sim_step(run->sim))
		;
	if (!run->error)
		run->error = sim_error(run->sim);
	if (!run->error && run->iteration < run->c->iterations)
		run->error = "nothing happens any more, and not all have ended";
}

const char *collsim_run(const struct collsim_case *c, struct collsim_result *result)
{
	struct run run = {.c = c, .min = UINT64_MAX};
	struct sim_counts before;

	if (!allocate(&run)) {
		run.error = run.sim && sim_error(run.sim) ? sim_error(run.sim) : "there is not enough memory";
		release(&run);
		return run.error;
	}
	before = sim_counted(run.sim);
	measure(&run);
	result->mean_us = (double)run.sum / c->iterations / 1e6;
	result->min_us = (double)run.min / 1e6;
	result->max_us = (double)run.max / 1e6;
	result->depth = depth_of(c);
	result->counts = sim_counted(run.sim);
	result->counts.packets -= before.packets;
	result->counts.looped -= before.looped;
	result->counts.requests -= before.requests;
	result->counts.events -= before.events;
	release(&run);
	return run.error;
}
