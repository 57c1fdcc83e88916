/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_group_order.c - collectives of libglex/src/group on a tree, one behind the other, by the engine itself: in
 * every order in which two members come to them and packets arrive, of more in many.
 *
 * Member n is node n of coll_net; its `up` is endpoint 0, its `down` endpoint 1.
 */
#include "coll_net.h"

#include <glex_ext.h>
#include <stdio.h>

#include "group/priv.h"

/* ---- the calls of glex.h that a group makes ----------------------------------- */

struct end {
	glex_ep_t base;
	uint32_t node, num;
};

static struct end ends[NODES][EPS];
static uint32_t opened; /* ends */
static uint32_t room;	/* requests that an endpoint takes */

static struct end *end_of(glex_ep_handle_t ep)
{
	return (struct end *)(void *)ep;
}

static glex_ret_t send_mp(glex_ep_t *ep, struct glex_imm_mp_req *list, struct glex_imm_mp_req **bad)
{
	struct end *end = end_of(ep);
	struct net_port *at = &net.node[end->node].ep[end->num];
	struct glex_imm_mp_req *req;
	uint32_t n = 0;

	(void)bad;
	for (req = list; req; req = req->next)
		n++;
	if (at->posted - emu_coll_now(&at->coll)->cq_head + n > room)
		return GLEX_BUSY;
	for (req = list; req; req = req->next)
		net_queue(end->node, end->num, net_mp((uint32_t)req->flag, req->rmt_ep_addr.v, req->coll_counter),
			  req->data, req->len);
	net_run(end->node, end->num);
	return GLEX_SUCCESS;
}

glex_ret_t glex_create_ep(glex_device_handle_t dev, struct glex_ep_attr *attr, glex_ep_handle_t *ep_p)
{
	struct end *end = &ends[opened / EPS][opened % EPS];

	(void)dev;
	(void)attr;
	*end = (struct end){.base.send_imm_mp = send_mp, .node = opened / EPS, .num = opened % EPS};
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

glex_ret_t glex_register_mem(glex_ep_handle_t ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh)
{
	(void)ep;
	(void)addr;
	(void)len;
	(void)flag;
	mh->v = 1;
	return GLEX_SUCCESS;
}

glex_ret_t glex_deregister_mem(glex_ep_handle_t ep, glex_mem_handle_t mh)
{
	(void)ep;
	(void)mh;
	return GLEX_SUCCESS;
}

void *glexi_board_take(glex_device_handle_t dev, uint32_t len)
{
	static unsigned char untouched[8];

	(void)dev;
	(void)len;
	return untouched;
}

void glexi_board_give(void *board, enum glexi_board_state state)
{
	(void)board;
	(void)state;
}

glex_ret_t glex_poll_dead(glex_device_handle_t dev, uint64_t *next, uint32_t *num, struct glex_dead *list)
{
	(void)dev;
	(void)list;
	*next = *num = 0;
	return GLEX_SUCCESS;
}

glex_ret_t glex_poll_error_req(glex_ep_handle_t ep, uint32_t *num, struct glex_err_req *errors)
{
	(void)ep;
	(void)errors;
	*num = 0;
	return GLEX_SUCCESS;
}

glex_ret_t glex_probe_first_event(glex_ep_handle_t ep, int32_t timeout, glex_event_t **event)
{
	(void)ep;
	(void)timeout;
	(void)event;
	return GLEX_NO_EVENT;
}

glex_ret_t glex_discard_probed_event(glex_ep_handle_t ep)
{
	(void)ep;
	return GLEX_SUCCESS;
}

/* ---- members ------------------------------------------------------------------ */

#define STEPS 40u

/* What all do, one behind the other. */
static struct {
	char what; /* Barrier, Allreduce, bcast, reduce */
	uint32_t root;
} step[STEPS];
static uint32_t steps;
static enum glex_group_shape shape;
static uint32_t degree;
static struct scenario now;

static struct {
	glex_group_t group;
	uint32_t ended;
	uint64_t word;
	union glex_coll_data_loc unit;
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
		member[i].ended = 0;
	}
	for (i = 0; i < now.nodes; i++)
		ck_assert_int_eq(glex_group_join(member[i].group, card, now.nodes, i, shape, degree), GLEX_SUCCESS);
}

static uint64_t word_of(uint32_t at)
{
	return 1000 + at;
}

static uint64_t share_of(uint32_t node, uint32_t at)
{
	return (uint64_t)(at + 1) << 4 * node;
}

static void begin(uint32_t node, uint32_t at)
{
	glex_group_t group = member[node].group;
	glex_ret_t ret;

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
	if (step[at - 1].what == 'B' || step[at - 1].what == 'A')
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

int main(void)
{
	Suite *suite = suite_create("group_order");
	TCase *tc = tcase_create("all orders"), *mixed = tcase_create("mixtures");

	tcase_add_checked_fixture(tc, net_setup, net_teardown);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, two__every_order__none_taken_for_another);
	tcase_add_test(tc, three__random_orders__none_taken_for_another);
	tcase_add_checked_fixture(mixed, net_setup, net_teardown);
	tcase_set_timeout(mixed, 300);
	tcase_add_loop_test(mixed, more__any_mixture_in_random_orders__none_taken_for_another, 0, 6);
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, mixed);
	return suite_run(suite);
}
