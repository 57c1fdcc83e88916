/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_group_order.c - collectives of libglex/src/group on a tree, one behind the other, by the engine itself: in
 * every order in which two members come to them and packets arrive, of more in many.  So long broadcasts by PUTs, where
 * it also matters when members look, for they have to go on in the middle.
 *
 * Member n is node n of coll_net; its `up` is endpoint 0, its `down` endpoint 1.
 */
#include "coll_net.h"

#include <glex_ext.h>
#include <stdio.h>
#include <string.h>

#include "group/priv.h"

#define PART 4096u /* bytes of a PUT of a long broadcast */

/* ---- the calls of glex.h that a group makes ----------------------------------- */

struct end {
	glex_ep_t base;
	uint32_t node, num;
	bool has_event; /* as it was looked at */
	glex_event_t event;
};

static struct end ends[NODES][EPS];
static uint32_t opened; /* ends */
static uint32_t room;	/* requests that an endpoint takes */

static struct end *end_of(glex_ep_handle_t ep)
{
	return (struct end *)(void *)ep;
}

static bool has_room(const struct end *end, uint32_t n)
{
	const struct net_port *at = &net.node[end->node].ep[end->num];

	return at->posted - emu_coll_now(&at->coll)->cq_head + n <= room;
}

static glex_ret_t send_mp(glex_ep_t *ep, struct glex_imm_mp_req *list, struct glex_imm_mp_req **bad)
{
	struct end *end = end_of(ep);
	struct glex_imm_mp_req *req;
	uint32_t n = 0;

	(void)bad;
	for (req = list; req; req = req->next)
		n++;
	if (!has_room(end, n))
		return GLEX_BUSY;
	for (req = list; req; req = req->next)
		net_queue(end->node, end->num, net_mp((uint32_t)req->flag, req->rmt_ep_addr.v, req->coll_counter),
			  req->data, req->len);
	net_run(end->node, end->num);
	return GLEX_SUCCESS;
}

/* Regions are the nodes' memories, whose keys are the network's. */
static glex_ret_t put(glex_ep_t *ep, struct glex_rdma_req *list, struct glex_rdma_req **bad)
{
	struct end *end = end_of(ep);
	struct glex_rdma_req *req;
	struct emu_desc desc;
	uint32_t n = 0;

	(void)bad;
	for (req = list; req; req = req->next)
		n++;
	if (!has_room(end, n))
		return GLEX_BUSY;
	for (req = list; req; req = req->next) {
		UNIT_CHECK(req->type == GLEX_RDMA_TYPE_PUT);
		desc = net_put((uint32_t)req->flag, req->rmt_ep_addr.s.nic_id, req->coll_counter, req->rmt_offset,
			       req->len);
		desc.dst = req->rmt_ep_addr.v;
		desc.local_offset = req->local_offset;
		desc.local_evt[0] = req->local_evt.cookie_0;
		desc.local_evt[1] = req->local_evt.cookie_1;
		desc.rmt_evt[0] = req->rmt_evt.cookie_0;
		desc.rmt_evt[1] = req->rmt_evt.cookie_1;
		net_queue(end->node, end->num, desc, NULL, 0);
	}
	net_run(end->node, end->num);
	return GLEX_SUCCESS;
}

glex_ret_t glex_create_ep(glex_device_handle_t dev, struct glex_ep_attr *attr, glex_ep_handle_t *ep_p)
{
	struct end *end = &ends[opened / EPS][opened % EPS];

	(void)dev;
	(void)attr;
	*end = (struct end){.base.send_imm_mp = send_mp, .base.rdma = put, .node = opened / EPS, .num = opened % EPS};
	opened++;
	*ep_p = &end->base;
	return GLEX_SUCCESS;
}

glex_ret_t glex_destroy_ep(glex_ep_handle_t ep)
{
	(void)ep;
	return GLEX_SUCCESS;
}

glex_ret_t glex_retire_ep(glex_ep_handle_t ep)
{
	(void)ep;
	ck_abort_msg("a group was closed before its time");
	return GLEX_SUCCESS;
}

glex_ret_t glex_get_ep_addr(glex_ep_handle_t ep, glex_ep_addr_t *addr)
{
	addr->v = net_addr(end_of(ep)->node, end_of(ep)->num);
	return GLEX_SUCCESS;
}

glex_ret_t glex_receive_mp(glex_ep_handle_t ep, int32_t timeout, glex_ep_addr_t *from, void *data, uint32_t *len)
{
	uint64_t src;

	(void)timeout;
	if (!net_take_mp_from(end_of(ep)->node, end_of(ep)->num, &src, data, len))
		return GLEX_NO_MP;
	if (from)
		from->v = src;
	return GLEX_SUCCESS;
}

glex_ret_t glex_probe_first_event(glex_ep_handle_t ep, int32_t timeout, glex_event_t **event)
{
	struct end *end = end_of(ep);
	uint64_t cookie[2];

	(void)timeout;
	if (!end->has_event) {
		if (!net_take_cookies(end->node, end->num, cookie))
			return GLEX_NO_EVENT;
		end->event = (glex_event_t){.cookie_0 = cookie[0], .cookie_1 = cookie[1]};
		end->has_event = true;
	}
	*event = &end->event;
	return GLEX_SUCCESS;
}

glex_ret_t glex_discard_probed_event(glex_ep_handle_t ep)
{
	end_of(ep)->has_event = false;
	return GLEX_SUCCESS;
}

glex_ret_t glex_query_device(glex_device_handle_t dev, struct glex_device_attr *attr)
{
	(void)dev;
	*attr = (struct glex_device_attr){.max_rdma_data_len = PART};
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_create(glex_ep_handle_t ep, const struct glex_rcache_attr *attr, glex_rcache_handle_t *rc)
{
	(void)attr;
	*rc = (glex_rcache_handle_t)(void *)&net.node[end_of(ep)->node];
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_get(glex_rcache_handle_t rc, void *addr, uint64_t len, int32_t flag,
			   struct glex_rcache_region *region)
{
	const struct net_node *node = (const struct net_node *)(const void *)rc;

	(void)flag;
	*region = (struct glex_rcache_region){.mh.v = node->handle,
					      .offset = (uint32_t)((unsigned char *)addr - node->memory)};
	UNIT_CHECK(region->offset + len <= NET_MEMORY);
	return GLEX_SUCCESS;
}

/* ---- members ------------------------------------------------------------------ */

#define STEPS 40u

/* What all do, one behind the other. */
static struct {
	char what; /* Barrier, Allreduce, bcast, reduce; long bcast */
	uint32_t root;
} step[STEPS];
static uint32_t parts;	/* of a long one */
static bool are_passed; /* there are long ones */
static bool is_lazy;	/* when somebody looks is something that happens, too */
static uint32_t steps;
static enum glex_group_shape shape;
static uint32_t degree;
static struct scenario now;

static struct {
	glex_group_t group;
	uint32_t ended;
	uint64_t word;
	union glex_coll_data_loc unit;
	bool has_begun;	 /* is_lazy: the step behind `ended` */
	uint32_t looked; /* at what net.seen_at has, and one */
} member[NODES];

static void start(void)
{
	struct glex_group_card card[NODES];
	uint32_t i;

	opened = 0;
	for (i = 0; i < now.nodes; i++) {
		ck_assert_int_eq(
			glex_group_open((glex_device_handle_t)1, GLEX_EP_TYPE_FAST, 0, &member[i].group, &card[i]),
			GLEX_SUCCESS);
		member[i].ended = member[i].looked = 0;
		member[i].has_begun = false;
	}
	for (i = 0; i < now.nodes; i++)
		ck_assert_int_eq(glex_group_join(member[i].group, card, now.nodes, i, shape, degree), GLEX_SUCCESS);
	for (i = 0; i < now.nodes && are_passed; i++)
		ck_assert_int_eq(glex_group_set_long(member[i].group, GLEX_GROUP_LONG_PASSED), GLEX_SUCCESS);
}

static uint64_t word_of(uint32_t at)
{
	return 1000 + at;
}

static uint64_t share_of(uint32_t node, uint32_t at)
{
	return (uint64_t)(at + 1) << 4 * node;
}

static unsigned char byte_of(uint32_t at, uint32_t i)
{
	return (unsigned char)(1 + at * 7 + i / PART * 31 + i % PART);
}

/* Not whole parts. */
static uint32_t long_len(void)
{
	return parts * PART - 100;
}

static void begin(uint32_t node, uint32_t at)
{
	glex_group_t group = member[node].group;
	unsigned char *data = net.node[node].memory;
	glex_ret_t ret;
	uint32_t i;

	member[node].word = node == step[at].root ? word_of(at) : 0;
	member[node].unit.uint64_s.data = share_of(node, at);
	switch (step[at].what) {
	case 'B':
		ret = glex_group_barrier(group);
		break;
	case 'A':
		ret = glex_group_allreduce(group, &member[node].unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64,
					   GLEX_COLL_REDUCE_SUM_UNSIGNED);
		break;
	case 'b':
		ret = glex_group_bcast(group, step[at].root, &member[node].word, sizeof(uint64_t));
		break;
	case 'l':
		for (i = 0; i < long_len(); i++)
			data[i] = node == step[at].root ? byte_of(at, i) : 0;
		ret = glex_group_bcast_long(group, step[at].root, data, long_len());
		break;
	default:
		ret = glex_group_reduce(group, step[at].root, &member[node].unit, 1, GLEX_COLL_REDUCE_DATA_BITS_64,
					GLEX_COLL_REDUCE_SUM_UNSIGNED);
	}
	UNIT_CHECK(ret == GLEX_SUCCESS);
}

static void check_result(uint32_t node, uint32_t at)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < now.nodes; i++)
		sum += share_of(i, at);
	if (step[at].what == 'b' && member[node].word != word_of(at))
		ck_abort_msg("member %u, step %u: another broadcast's data", node, at);
	for (i = 0; step[at].what == 'l' && i < long_len(); i++)
		if (net.node[node].memory[i] != byte_of(at, i))
			ck_abort_msg("member %u, step %u: not the data at %u", node, at, i);
	if ((step[at].what == 'A' || (step[at].what == 'r' && step[at].root == node)) &&
	    member[node].unit.uint64_s.data != sum)
		ck_abort_msg("member %u, step %u: %llx", node, at, (unsigned long long)member[node].unit.uint64_s.data);
}

/* Nobody leaves a barrier before all have come to it. */
static void check_barrier(uint32_t at)
{
	uint32_t i;

	for (i = 0; i < now.nodes; i++)
		UNIT_CHECK(member[i].ended >= at);
}

/* It does one step after the other, and then leaves. */
static bool may(uint32_t node, uint32_t at)
{
	glex_ret_t ret;

	if (member[node].ended == at)
		return true;
	ret = glex_group_wait(member[node].group, 0);
	if (ret == GLEX_NO_MP)
		return false;
	UNIT_CHECK(ret == GLEX_SUCCESS);
	if (strchr("BAl", step[at - 1].what))
		check_barrier(at - 1);
	check_result(node, at - 1);
	member[node].ended++;
	return true;
}

static bool act(uint32_t node, uint32_t at)
{
	if (at < steps)
		begin(node, at);
	else
		UNIT_CHECK(glex_group_leave(member[node].group) == GLEX_SUCCESS);
	return at < steps;
}

/* It has something to begin, or something has happened since it looked. */
static bool may_look(uint32_t node, uint32_t at)
{
	(void)at;
	return !member[node].has_begun || member[node].looked <= net.seen_at[node];
}

/* Begins, or looks. */
static bool look(uint32_t node, uint32_t at)
{
	uint32_t step_at = member[node].ended;

	(void)at;
	if (!member[node].has_begun) {
		member[node].has_begun = true;
		member[node].looked = 0;
		return act(node, step_at);
	}
	member[node].looked = net.seen_at[node] + 1;
	member[node].has_begun = !may(node, step_at + 1);
	return true;
}

static void check(void)
{
	uint32_t i;

	for (i = 0; i < now.nodes; i++) {
		if (member[i].ended < steps)
			ck_abort_msg("member %u hangs in step %u of %u", i, member[i].ended, steps);
		UNIT_CHECK(glex_group_wait(member[i].group, 0) == GLEX_SUCCESS);
		UNIT_CHECK(glex_group_close(member[i].group) == GLEX_SUCCESS);
	}
}

/* "b0" is a broadcast from member 0, "r2" a reduction to member 2. */
static void set(uint32_t nodes, const char *text)
{
	now = (struct scenario){
		.nodes = nodes, .way = HELD, .start = start, .act = act, .may_act = may, .check = check};
	if (is_lazy) {
		now.act = look;
		now.may_act = may_look;
	}
	are_passed = strchr(text, 'l') != NULL;
	room = NET_CQ;
	for (steps = 0; *text; steps++) {
		step[steps].what = *text++;
		step[steps].root = step[steps].what >= 'a' ? (uint32_t)(*text++ - '0') : 0;
	}
}

static void all(uint32_t nodes, const char *text)
{
	set(nodes, text);
	printf("# %s, %u members: %llu orders", text, nodes, (unsigned long long)net_all_orders(&now));
	now.reorder = true;
	printf(", reordered %llu\n", (unsigned long long)net_all_orders(&now));
}

START_TEST(two__every_order__none_taken_for_another)
{
	static const char *const text[] = {"b0b0", "b1b1", "b0b1", "b1b0", "r0r0", "r1r1", "r0r1", "b0r0", "b0r1",
					   "r1b1", "Bb1",  "b1B",  "Br1",  "r1B",  "BB",   "BA",   "AB",   "AA"};
	uint32_t i;

	shape = GLEX_GROUP_KARY;
	degree = 2;
	for (i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		all(2, text[i]);
}
END_TEST

START_TEST(three__random_orders__none_taken_for_another)
{
	static const char *const text[] = {"b0b0b0", "b1b1b1", "b0b2b1", "b2b1b2", "r0r0r0", "r1r1r1", "r2b1r0",
					   "b2r0b2", "Bb1Bb0", "r1Br2A", "b1r1b1", "Ab2r2B", "BBB",    "AAA"};
	uint32_t i;

	shape = GLEX_GROUP_KARY;
	for (degree = 1; degree <= 2; degree++)
		for (i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
			set(3, text[i]);
			net_some_orders(&now, 300, degree * 100000 + i * 1000 + 1);
			now.reorder = true;
			net_some_orders(&now, 300, degree * 200000 + i * 1000 + 1);
		}
}
END_TEST

/* With little room, so that who is ahead is stopped. */
START_TEST(more__any_mixture_in_random_orders__none_taken_for_another)
{
	uint32_t state = 1 + (uint32_t)_i, round, i;

	shape = _i % 2 ? GLEX_GROUP_KNOMIAL : GLEX_GROUP_KARY;
	degree = 2 + (uint32_t)_i % 3;
	for (round = 0; round < 300; round++) {
		set(4 + unit_random(&state) % 6, "");
		steps = 12;
		for (i = 0; i < steps; i++) {
			step[i].what = "bbbrrrBA"[unit_random(&state) % 8];
			step[i].root = unit_random(&state) % 3 ? unit_random(&state) % now.nodes : 0;
		}
		room = 10 + unit_random(&state) % 12;
		now.reorder = round % 4 != 0;
		net_some_orders(&now, 4, (uint32_t)_i * 1000 + round + 1);
	}
}
END_TEST

static void some(uint32_t nodes, const char *text, uint32_t n, uint32_t seed)
{
	set(nodes, text);
	net_some_orders(&now, n, seed);
	now.reorder = true;
	net_some_orders(&now, n, seed + n * 2);
}

static const char *const longs_of_two[] = {"l0", "l1", "b0l1", "b1l0", "l0r1", "l1r0", "l0l0", "l1l1", "l0l1", "l1l0"};

START_TEST(long_two__every_order__all_have_it)
{
	shape = GLEX_GROUP_KARY;
	degree = 2;
	parts = 2;
	all(2, longs_of_two[_i]);
}
END_TEST

/* Members begin, and look, as late as comes. */
START_TEST(long_lazy__random_orders__all_have_it)
{
	static const char *const text[] = {"l0", "l1l0", "l0l0l1", "b1l0r1", "l2Bl1", "Al1b0l2", "r0l0b0"};
	uint32_t i, nodes;

	is_lazy = true;
	shape = _i % 2 ? GLEX_GROUP_KNOMIAL : GLEX_GROUP_KARY;
	degree = 2 + (uint32_t)_i / 2 % 3;
	for (parts = 1; parts <= 3; parts++)
		for (i = 0; i < sizeof(text) / sizeof(text[0]); i++)
			for (nodes = 3; nodes <= 7; nodes += 2)
				some(nodes, text[i], 10, (uint32_t)_i * 100000 + i * 1000 + parts * 100 + nodes);
	is_lazy = false;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_order");
	TCase *tc = tcase_create("all orders"), *mixed = tcase_create("mixtures"), *longs = tcase_create("long");

	tcase_add_checked_fixture(tc, net_setup, net_teardown);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, two__every_order__none_taken_for_another);
	tcase_add_test(tc, three__random_orders__none_taken_for_another);
	tcase_add_checked_fixture(mixed, net_setup, net_teardown);
	tcase_set_timeout(mixed, 300);
	tcase_add_loop_test(mixed, more__any_mixture_in_random_orders__none_taken_for_another, 0, 6);
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, mixed);
	tcase_add_checked_fixture(longs, net_setup, net_teardown);
	tcase_set_timeout(longs, 300);
	tcase_add_loop_test(longs, long_two__every_order__all_have_it, 0,
			    (int)(sizeof(longs_of_two) / sizeof(longs_of_two[0])));
	tcase_add_loop_test(longs, long_lazy__random_orders__all_have_it, 0, 6);
	suite_add_tcase(suite, longs);
	return suite_run(suite);
}
