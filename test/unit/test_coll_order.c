/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_coll_order.c - the collectives that programs build, in every order in
 * which their posts and packets can happen, and with whoever executes dying at
 * every point.  Prints how many orders and deaths there were.
 */
#include <stdio.h>

#include "coll_net.h"

static struct scenario now;
static uint32_t k;	/* a tree's degree, a sweep's rows */
static uint32_t rounds; /* of the same, one after the other */

static void tell(const char *what, uint64_t n)
{
	printf("# %-58s %8llu orders\n", what, (unsigned long long)n);
	fflush(stdout);
}

/* Every order, packets of a pair in order; and, where the program stands that, in any. */
static void all_orders(const char *what, bool reorder)
{
	char text[128];

	tell(what, net_all_orders(&now));
	if (!reorder)
		return;
	now.reorder = true;
	snprintf(text, sizeof(text), "%s, reordered", what);
	tell(text, net_all_orders(&now));
}

static void all_deaths(const char *what)
{
	uint64_t n = net_all_deaths(&now);

	ck_assert_uint_gt(n, now.nodes);
	printf("# %-58s %8llu deaths\n", what, (unsigned long long)n);
}

/* ---- trees ------------------------------------------------------------------- */

static uint32_t parent(uint32_t node)
{
	return (node - 1) / k;
}

static uint32_t children(uint32_t node)
{
	uint32_t first = node * k + 1, end = first + k;

	return first >= now.nodes ? 0 : (end < now.nodes ? end : now.nodes) - first;
}

static uint32_t child(uint32_t node, uint32_t n)
{
	return node * k + 1 + n;
}

/* ---- a chain ------------------------------------------------------------------- */

static bool chain_act(uint32_t node, uint32_t at)
{
	uint32_t flag = START | TAIL | CONTROL | CP_SWAP | (node ? CP_DATA | SWAP : 0);
	uint32_t word = node ? 0xdeadu : 100 + at;

	if (node + 1 < now.nodes && at < rounds) {
		net_queue(node, 0, net_mp(flag, net_addr(node + 1, 0), node ? 1 : 0), &word, sizeof(word));
		net_run(node, 0);
	}
	return node + 1 < now.nodes && at + 1 < rounds;
}

static void chain_check(void)
{
	uint32_t node, at, word;

	for (node = 2; node < now.nodes; node++)
		for (at = 0; at < rounds; at++) {
			word = 100 + at;
			net_expect_mp(node, 0, &word, sizeof(word));
		}
	/* The last has no sequence: as many control packets as messages are left, which open a gate now. */
	net_queue(now.nodes - 1, 0, net_mp(START | SWAP | CP_DATA, net_addr(0, 1), rounds), "", 0);
	net_run(now.nodes - 1, 0);
	net_expect_mp(0, 1, &word, sizeof(word));
}

static struct scenario chain(uint32_t nodes, enum net_way way)
{
	return (struct scenario){.nodes = nodes, .way = way, .act = chain_act, .check = chain_check};
}

START_TEST(chain__every_order__the_message_goes_through)
{
	rounds = 1;
	now = chain(5, HELD);
	all_orders("chain of 5", true);
	rounds = 2;
	now = chain(4, HELD);
	all_orders("chain of 4, twice", false);
	now = chain(3, STEPPED);
	all_orders("chain of 3, twice, stepped", false);
}
END_TEST

/* ---- broadcast of MPs on a tree ------------------------------------------------- */

static void bcast_list(uint32_t node, uint32_t word)
{
	uint32_t n, last = children(node) - 1;

	for (n = 0; n <= last; n++) {
		bool inner = children(child(node, n)) != 0;
		uint32_t flag = CP_DATA | (n == 0 ? START : 0) | (n == last ? TAIL : 0) |
				(inner ? CONTROL | CP_SWAP : 0) | (node ? SWAP : 0);

		net_queue(node, 0, net_mp(flag, net_addr(child(node, n), 0), node ? 1 : 0), &word, sizeof(word));
	}
	net_run(node, 0);
}

static bool bcast_act(uint32_t node, uint32_t at)
{
	if (at < rounds && children(node))
		bcast_list(node, node ? 0xdead : 1000 + at);
	return children(node) && at + 1 < rounds;
}

static void bcast_check(void)
{
	uint32_t node, at, word;

	for (node = 1; node < now.nodes; node++)
		for (at = 0; at < rounds; at++) {
			word = 1000 + at;
			net_expect_mp(node, 0, &word, sizeof(word));
		}
}

static struct scenario bcast(uint32_t nodes, uint32_t degree, enum net_way way)
{
	k = degree;
	return (struct scenario){.nodes = nodes, .way = way, .act = bcast_act, .check = bcast_check};
}

START_TEST(bcast_small__every_order__all_have_it_once)
{
	rounds = 1;
	now = bcast(5, 2, HELD);
	all_orders("broadcast, 5 nodes, degree 2", true);
	now = bcast(5, 3, HELD);
	all_orders("broadcast, 5 nodes, degree 3", true);
	rounds = 2;
	now = bcast(3, 1, HELD);
	all_orders("broadcast, chain of 3, twice", false);
	now = bcast(3, 2, HELD);
	all_orders("broadcast, 3 nodes, degree 2, twice", false);
	now = bcast(4, 2, STEPPED);
	all_orders("broadcast, 4 nodes, degree 2, twice, stepped", false);
}
END_TEST

/* ---- broadcast by sets ----------------------------------------------------------- */

/*
 * One request a node, which goes to all its children: the same flags for all, so they are all inner nodes or none
 * is.  The root tells itself, and so has a swap value too.
 */
static void set_list(uint32_t node)
{
	bool inner = children(child(node, 0)) != 0;
	uint32_t flag = START | TAIL | SWAP | GLEX_FLAG_COLL_SWAP_SET | CP_DATA | (inner ? CONTROL | CP_SWAP : 0), n;
	uint64_t others[NODES];

	for (n = 1; n < children(node); n++)
		others[n - 1] = net_addr(child(node, n), 0);
	net_queue(node, 0, net_mp(flag, net_addr(child(node, 0), 0), 1), others,
		  (uint32_t)sizeof(others[0]) * (children(node) - 1));
}

static bool set_act(uint32_t node, uint32_t at)
{
	uint32_t word = 2000 + at;

	if (at >= rounds || !children(node))
		return false;
	set_list(node);
	net_run(node, 0);
	if (node == 0) {
		net_queue(0, 1, net_mp(CONTROL | CP_SWAP, net_addr(0, 0), 0), &word, sizeof(word));
		net_run(0, 1);
	}
	return at + 1 < rounds;
}

static void set_check(void)
{
	uint32_t node, at, word;

	for (node = 1; node < now.nodes; node++)
		for (at = 0; at < rounds; at++) {
			word = 2000 + at;
			net_expect_mp(node, 0, &word, sizeof(word));
		}
}

static struct scenario sets(uint32_t nodes, uint32_t degree, enum net_way way)
{
	k = degree;
	return (struct scenario){.nodes = nodes, .way = way, .act = set_act, .check = set_check};
}

START_TEST(bcast_set__every_order__all_have_it_once)
{
	rounds = 1;
	now = sets(4, 3, HELD);
	all_orders("broadcast by a set of 3", true);
	now = sets(4, 1, HELD);
	all_orders("broadcast by sets of 1, chain of 4", true);
	now = sets(7, 2, HELD);
	net_some_orders(&now, 2000, 800000);
	rounds = 2;
	now = sets(3, 2, STEPPED);
	all_orders("broadcast by a set of 2, twice, stepped", false);
}
END_TEST

/* ---- broadcast of fragments by PUT ------------------------------------------------ */

#define FRAGMENT 64u

static void fragment_list(uint32_t node, uint32_t f)
{
	uint32_t n, last = children(node) - 1;

	for (n = 0; n <= last; n++) {
		bool inner = children(child(node, n)) != 0;
		uint32_t flag = (n == 0 ? START : 0) | (n == last ? TAIL : 0) | (inner ? CONTROL : 0) |
				(f + 1 == rounds ? GLEX_FLAG_REMOTE_EVT : 0);

		net_queue(node, 0, net_put(flag, child(node, n), node ? 1 : 0, f * FRAGMENT, FRAGMENT), NULL, 0);
	}
	net_run(node, 0);
}

static bool fragment_act(uint32_t node, uint32_t at)
{
	if (node == 0 && at < rounds)
		memset(net.node[0].memory + at * FRAGMENT, (int)at + 1, FRAGMENT);
	if (at < rounds && children(node))
		fragment_list(node, at);
	return children(node) && at + 1 < rounds;
}

static void fragment_check(void)
{
	uint32_t node, i;

	for (node = 1; node < now.nodes; node++) {
		ck_assert_uint_eq(net_take_event(node, 0), 2);
		for (i = 0; i < rounds * FRAGMENT; i++)
			UNIT_CHECK(net.node[node].memory[i] == i / FRAGMENT + 1);
	}
}

static struct scenario fragments(uint32_t nodes, uint32_t degree, enum net_way way)
{
	k = degree;
	return (struct scenario){.nodes = nodes, .way = way, .act = fragment_act, .check = fragment_check};
}

START_TEST(bcast_large__every_order__fragments_are_forwarded_after_they_came)
{
	rounds = 2;
	now = fragments(4, 2, STEPPED);
	all_orders("broadcast of 2 fragments, 4 nodes, degree 2, stepped", false);
	now = fragments(3, 1, STEPPED);
	all_orders("broadcast of 2 fragments, chain of 3, stepped", false);
}
END_TEST

/* ---- barrier ------------------------------------------------------------------------ */

static void barrier_down(uint32_t node)
{
	uint32_t n;

	for (n = 0; n < children(node); n++) {
		uint32_t flag = (children(child(node, n)) ? CONTROL : CP_DATA) | (n == 0 ? START : 0);

		net_queue(node, 0, net_mp(flag, net_addr(child(node, n), 0), node ? 1 : children(0)), NULL, 0);
	}
	net_queue(node, 0, net_mp(CP_DATA | TAIL, net_addr(node, 0), 0), NULL, 0);
}

/* A node enters the next barrier when it has left the last one: its MP has come. */
static bool barrier_may(uint32_t node, uint32_t at)
{
	return emu_ring_end(&net.node[node].ep[0].port.port->mpq) >= at;
}

static bool barrier_act(uint32_t node, uint32_t at)
{
	if (at >= rounds)
		return false;
	if (node && !children(node))
		net_queue(node, 0, net_mp(CONTROL, net_addr(parent(node), 0), 77), NULL, 0);
	else if (node)
		net_queue(node, 0, net_mp(CONTROL | START | TAIL, net_addr(parent(node), 0), children(node)), NULL, 0);
	if (children(node))
		barrier_down(node);
	net_run(node, 0);
	return at + 1 < rounds;
}

static void barrier_check(void)
{
	uint32_t node, at;

	for (node = 0; node < now.nodes; node++)
		for (at = 0; at < rounds; at++)
			net_expect_mp(node, 0, "", 0);
}

static struct scenario barrier(uint32_t nodes, uint32_t degree, enum net_way way)
{
	k = degree;
	return (struct scenario){
		.nodes = nodes, .way = way, .act = barrier_act, .may_act = barrier_may, .check = barrier_check};
}

START_TEST(barrier__every_order__nobody_leaves_before_all_have_come)
{
	rounds = 1;
	now = barrier(4, 2, HELD);
	all_orders("barrier, 4 nodes, degree 2", true);
	now = barrier(4, 3, HELD);
	all_orders("barrier, 4 nodes, degree 3", true);
	now = barrier(4, 1, HELD);
	all_orders("barrier, 4 nodes, degree 1", true);
	now = barrier(4, 2, STEPPED);
	all_orders("barrier, 4 nodes, degree 2, stepped", false);
	rounds = 2;
	now = barrier(3, 2, HELD);
	all_orders("barrier, 3 nodes, degree 2, twice", false);
}
END_TEST

/* ---- allreduce ----------------------------------------------------------------------- */

static const double values[NODES] = {1e16, 1.0, -1e16, 3.0, 1e-3, 7e15, -5.5, 2e8, 1.0 / 3, -7e15, 1e300, -1e300};

/* As the library composes it. */
static uint32_t operand(double value, uint32_t location, uint32_t degree, enum glex_coll_reduce_op op, void *data)
{
	union glex_coll_data_loc unit;
	struct emu_operand o = {.magic = EMU_OPERAND_MAGIC,
				.count = 1,
				.bits = GLEX_COLL_REDUCE_DATA_BITS_64,
				.op = (uint8_t)op,
				.degree = (uint8_t)degree};

	memset(&unit, 0, sizeof(unit)); /* all of it is compared */
	unit.double_s.data = value;
	unit.double_s.location = location;
	memcpy(o.unit[0], &unit, sizeof(unit));
	memcpy(data, &o, EMU_OPERAND_HEAD + 16);
	return EMU_OPERAND_HEAD + 16;
}

/* Operands are added by the address of who sent them: a node's own first, then its children's. */
static double sum_of(uint32_t node)
{
	double sum = values[node];
	uint32_t n;

	for (n = 0; n < children(node); n++)
		sum += sum_of(child(node, n));
	return sum;
}

static void allreduce_down(uint32_t node)
{
	unsigned char data[EMU_MP_DATA];
	uint32_t n, last = children(node) - 1, len;

	for (n = 0; n <= last; n++) {
		uint32_t flag = RESULT | SWAP | CP_DATA | (n == 0 ? START : 0) | (n == last ? TAIL : 0) |
				(children(child(node, n)) ? CONTROL | CP_SWAP : 0);

		len = operand(-1, 0, 1, GLEX_COLL_REDUCE_SUM_FLOAT, data);
		net_queue(node, 1, net_mp(flag, net_addr(child(node, n), 1), 1), data, len);
	}
	net_run(node, 1);
}

static void allreduce_up(uint32_t node)
{
	uint32_t flag = START | TAIL | REDUCE | CP_SWAP | CONTROL | (children(node) ? SWAP : 0), len;
	uint64_t to = node ? net_addr(parent(node), 0) : net_addr(0, 1);
	unsigned char data[EMU_MP_DATA];

	len = operand(values[node], node, node ? children(parent(node)) : 1, GLEX_COLL_REDUCE_SUM_FLOAT, data);
	if (!node)
		flag |= CP_DATA;
	net_queue(node, 0, net_mp(flag, to, children(node)), data, len);
	net_run(node, 0);
}

static bool allreduce_act(uint32_t node, uint32_t at)
{
	bool both = children(node) != 0;

	if (at / 2 >= rounds)
		return false;
	if (at % 2 == 0)
		allreduce_up(node);
	else if (both)
		allreduce_down(node);
	return both ? at + 1 < rounds * 2 : at / 2 + 1 < rounds;
}

static void allreduce_check(void)
{
	unsigned char data[EMU_MP_DATA];
	uint32_t node, len;

	len = operand(sum_of(0), 0, 1, GLEX_COLL_REDUCE_SUM_FLOAT, data);
	for (node = 0; node < now.nodes; node++)
		net_expect_mp(node, 1, data, len);
}

static struct scenario allreduce(uint32_t nodes, uint32_t degree, enum net_way way)
{
	k = degree;
	rounds = 1;
	return (struct scenario){.nodes = nodes, .way = way, .act = allreduce_act, .check = allreduce_check};
}

START_TEST(allreduce__every_order__the_same_bits_everywhere)
{
	now = allreduce(3, 2, HELD);
	all_orders("allreduce, 3 nodes, degree 2", true);
	now = allreduce(4, 3, HELD);
	all_orders("allreduce, 4 nodes, degree 3", true);
	now = allreduce(4, 1, HELD);
	all_orders("allreduce, 4 nodes, degree 1", true);
	now = allreduce(4, 3, STEPPED);
	all_orders("allreduce, 4 nodes, degree 3, stepped", false);
}
END_TEST

/* ---- sweeps ---------------------------------------------------------------------------- */

static uint32_t columns(void)
{
	return now.nodes / k;
}

static uint32_t upstream(uint32_t node)
{
	return (node % columns() != 0) + (node >= columns());
}

/* Packets that come to a node: each neighbour sends all that it gets, and one of its own. */
static uint32_t expected(uint32_t node)
{
	return (node % columns() ? expected(node - 1) + 1 : 0) +
	       (node >= columns() ? expected(node - columns()) + 1 : 0);
}

static void sweep_on(uint32_t node, uint32_t flag, uint32_t counter, uint32_t word)
{
	bool right = node % columns() + 1 < columns(), down = node + columns() < now.nodes;

	if (right)
		net_queue(node, 0, net_mp(flag | START | (down ? 0 : TAIL), net_addr(node + 1, 0), counter), &word,
			  sizeof(word));
	if (down)
		net_queue(node, 0, net_mp(flag | (right ? 0 : START) | TAIL, net_addr(node + columns(), 0), counter),
			  &word, sizeof(word));
}

static bool sweep_act(uint32_t node, uint32_t at)
{
	uint32_t n, flag = CONTROL | CP_SWAP | CP_DATA;

	if (at > 0)
		return false;
	for (n = 0; n < expected(node); n++)
		sweep_on(node, flag | SWAP, 1, 0xdead);
	sweep_on(node, flag, 0, 1u << 4 * node);
	net_run(node, 0);
	return false;
}

/* What a node gets in all: its neighbours' words, and what they got. */
static uint32_t sweep_sum(uint32_t node)
{
	uint32_t sum = 0;

	if (node % columns())
		sum += sweep_sum(node - 1) + (1u << 4 * (node - 1));
	if (node >= columns())
		sum += sweep_sum(node - columns()) + (1u << 4 * (node - columns()));
	return sum;
}

static void sweep_check(void)
{
	uint32_t node, n, word, len, sum;

	for (node = 0; node < now.nodes; node++) {
		sum = 0;
		for (n = 0; n < expected(node); n++) {
			UNIT_CHECK(net_take_mp(node, 0, &word, &len) && len == 4);
			sum += word;
		}
		ck_assert_uint_eq(sum, sweep_sum(node));
	}
	/* The last one forwards nothing: it takes what is left. */
	net_queue(node - 1, 0, net_mp(START, net_addr(0, 1), expected(node - 1)), "", 0);
	net_run(node - 1, 0);
	net_expect_mp(0, 1, "", 0);
}

static struct scenario sweep(uint32_t nodes, uint32_t rows, enum net_way way)
{
	k = rows;
	return (struct scenario){.nodes = nodes, .way = way, .act = sweep_act, .check = sweep_check};
}

START_TEST(sweep_mp__every_order__each_packet_is_forwarded_once)
{
	/* Every packet is forwarded, whichever comes first.  (A sweep of PUTs has but one on each way; fragments of a
	 * broadcast are told of by the last one's event, and need their order.) */
	now = sweep(4, 2, HELD);
	all_orders("sweep of MPs, 2 x 2", true);
	now = sweep(4, 2, STEPPED);
	all_orders("sweep of MPs, 2 x 2, stepped", false);
}
END_TEST

static bool put_sweep_act(uint32_t node, uint32_t at)
{
	bool right = node % columns() + 1 < columns(), down = node + columns() < now.nodes;
	uint32_t n = upstream(node), last = now.nodes - 1, flag;

	if (at > 0 || node == last)
		return false;
	if (node == 0)
		memset(net.node[0].memory, 0x5a, 256);
	if (right) {
		flag = START | (node + 1 == last ? GLEX_FLAG_REMOTE_EVT : CONTROL);
		net_queue(node, 0, net_put(flag, node + 1, n, 0, 256), NULL, 0);
	}
	if (down) {
		flag = (right ? 0 : START) | (node + columns() == last ? GLEX_FLAG_REMOTE_EVT : CONTROL);
		net_queue(node, 0, net_put(flag, node + columns(), n, 0, 256), NULL, 0);
	}
	net_run(node, 0);
	return false;
}

static void put_sweep_check(void)
{
	uint32_t n, i;

	for (n = 0; n < upstream(now.nodes - 1); n++)
		ck_assert_uint_eq(net_take_event(now.nodes - 1, 0), 2);
	for (n = 0; n < now.nodes; n++)
		for (i = 0; i < 256; i++)
			UNIT_CHECK(net.node[n].memory[i] == 0x5a);
}

START_TEST(sweep_put__every_order__a_node_sends_when_both_have_come)
{
	k = 2;
	now = (struct scenario){.nodes = 4, .way = STEPPED, .act = put_sweep_act, .check = put_sweep_check};
	all_orders("sweep of PUTs, 2 x 2, stepped", false);
	now.nodes = 6;
	net_some_orders(&now, 1000, 700000);
}
END_TEST

/* ---- larger ones, at random --------------------------------------------------------------- */

START_TEST(larger__random_orders__the_same)
{
	uint32_t degree;

	for (degree = 1; degree <= 5; degree++) {
		rounds = 2;
		now = bcast(12, degree, HELD);
		net_some_orders(&now, 300, degree * 100000);
		now = barrier(12, degree, HELD);
		net_some_orders(&now, 300, degree * 200000);
		now = sets(degree == 2 ? 7 : degree + 1, degree, HELD);
		net_some_orders(&now, 300, degree * 250000);
		now = fragments(12, degree, STEPPED);
		net_some_orders(&now, 300, degree * 300000);
		now = allreduce(12, degree, HELD);
		now.reorder = true;
		net_some_orders(&now, 300, degree * 400000);
	}
	now = sweep(6, 2, HELD);
	net_some_orders(&now, 300, 500000);
	now.reorder = true;
	net_some_orders(&now, 300, 550000);
	rounds = 3;
	now = chain(9, HELD);
	net_some_orders(&now, 300, 600000);
}
END_TEST

/* ---- deaths ---------------------------------------------------------------------------------- */

START_TEST(death__of_who_executes_at_any_point__all_happens_once)
{
	rounds = 2;
	now = chain(5, AT_ONCE);
	all_deaths("chain of 5, twice");
	now = bcast(7, 2, AT_ONCE);
	all_deaths("broadcast, 7 nodes, degree 2, twice");
	now = sets(7, 2, AT_ONCE);
	all_deaths("broadcast by sets, 7 nodes, degree 2, twice");
	now = sets(12, 11, AT_ONCE);
	all_deaths("broadcast by a set of 11, twice");
	now = fragments(7, 2, AT_ONCE);
	all_deaths("broadcast of 2 fragments, 7 nodes, degree 2");
	now = barrier(7, 2, AT_ONCE);
	all_deaths("barrier, 7 nodes, degree 2, twice");
	now = allreduce(7, 2, AT_ONCE);
	all_deaths("allreduce, 7 nodes, degree 2");
	now = sweep(6, 2, AT_ONCE);
	all_deaths("sweep of MPs, 2 x 3");
	k = 2;
	now = (struct scenario){.nodes = 6, .act = put_sweep_act, .check = put_sweep_check};
	all_deaths("sweep of PUTs, 2 x 3");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_order");
	TCase *tc = tcase_create("coll_order");

	tcase_add_checked_fixture(tc, net_setup, net_teardown);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, chain__every_order__the_message_goes_through);
	tcase_add_test(tc, bcast_small__every_order__all_have_it_once);
	tcase_add_test(tc, bcast_set__every_order__all_have_it_once);
	tcase_add_test(tc, bcast_large__every_order__fragments_are_forwarded_after_they_came);
	tcase_add_test(tc, barrier__every_order__nobody_leaves_before_all_have_come);
	tcase_add_test(tc, allreduce__every_order__the_same_bits_everywhere);
	tcase_add_test(tc, sweep_mp__every_order__each_packet_is_forwarded_once);
	tcase_add_test(tc, sweep_put__every_order__a_node_sends_when_both_have_come);
	tcase_add_test(tc, larger__random_orders__the_same);
	tcase_add_test(tc, death__of_who_executes_at_any_point__all_happens_once);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
