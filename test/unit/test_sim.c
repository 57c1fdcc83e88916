/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim.c - collectives of simulated machines: results, numbers of packets,
 * times against closed forms and published ones, and that errors are found.
 */
#include "unit.h"

#include <math.h>

#include "emulator/sim/sim.h"
#include "libglex/tools/collsim.h"

#define NEAR_US 1e-5 /* times are rounded to picoseconds */

static struct collsim_case a_case(enum collsim_test test, enum collsim_way way, enum glex_group_shape shape,
				  uint32_t degree, uint32_t nodes)
{
	return (struct collsim_case){.test = test,
				     .way = way,
				     .shape = shape,
				     .degree = degree,
				     .nodes = nodes,
				     .processes = 1,
				     .units = 1,
				     .bytes = 8,
				     .iterations = 1,
				     .params = {.topo = {SIM_FLAT, 1}, .seed = 1}};
}

static struct collsim_case of_machine(const char *name, struct collsim_case c)
{
	struct sim_machine machine;

	ck_assert(sim_machine_find(name, &machine));
	c.params.times = machine.times;
	c.params.topo = machine.topo;
	return c;
}

static struct collsim_result must_run(const struct collsim_case *c)
{
	struct collsim_result result;
	const char *wrong = collsim_run(c, &result);

	if (wrong)
		ck_abort_msg("test %d, way %d, shape %d, degree %u, %u nodes: %s", c->test, c->way, c->shape, c->degree,
			     c->nodes, wrong);
	return result;
}

static double us(const struct collsim_case *c)
{
	return must_run(c).mean_us;
}

/* ---- results, and how many packets it takes ---------------------------------- */

static uint64_t packets_of(const struct collsim_case *c)
{
	bool down_only = c->test == COLLSIM_BCAST && c->way == COLLSIM_HOST;

	return (down_only ? 1 : 2) * ((uint64_t)c->nodes - 1) + (c->test == COLLSIM_BCAST && c->root ? 1 : 0);
}

/* By the NICs each broadcast packet is acknowledged; only what member 0 wants itself is sent there. */
static void check_counts(const struct collsim_case *c)
{
	bool loops = c->test != COLLSIM_BCAST || c->root;
	struct collsim_result result = must_run(c);

	ck_assert_uint_eq(result.counts.packets, packets_of(c) * c->iterations);
	ck_assert_uint_eq(result.counts.looped, loops && c->way == COLLSIM_NIC ? c->iterations : 0);
	if (c->way == COLLSIM_HOST)
		ck_assert_uint_eq(result.counts.requests, packets_of(c) * c->iterations);
}

START_TEST(every_tree__results_right__packets_as_in_theory)
{
	static const uint32_t degree[] = {2, 3, 8, 32}, nodes[] = {1, 2, 3, 9, 33, 100, 500};
	uint32_t test = (uint32_t)_i % COLLSIM_TESTS, shape = (uint32_t)_i / COLLSIM_TESTS, way, d, n;

	for (way = 0; way < COLLSIM_WAYS; way++)
		for (d = 0; d < 4; d++)
			for (n = 0; n < 7; n++) {
				struct collsim_case c = a_case(test, way, shape, degree[d], nodes[n]);

				c = of_machine("th2", c);
				if (!collsim_has_tree(shape, nodes[n], degree[d]))
					continue;
				check_counts(&c);
				c.iterations = 3;
				c.skew_ns = 3000;
				c.units = 6;
				c.bytes = 112;
				c.root = nodes[n] / 2;
				c.params.noise_share = 0.2;
				c.params.noise_ns = 2000;
				c.params.seed = 7 + n;
				check_counts(&c);
			}
}
END_TEST

START_TEST(wrong_value__given__run_fails)
{
	struct collsim_case c = a_case(COLLSIM_ALLREDUCE, (enum collsim_way)_i, GLEX_GROUP_KARY, 4, 50);
	struct collsim_result result;

	c.broken = true;
	ck_assert_ptr_nonnull(collsim_run(&c, &result));
	c.test = COLLSIM_BCAST;
	ck_assert_ptr_nonnull(collsim_run(&c, &result));
}
END_TEST

static uint64_t addr(uint32_t node, uint32_t ep)
{
	glex_ep_addr_t a = {.v = 0};

	a.nic_id = node;
	a.ep_num = (uint16_t)ep;
	return a.v;
}

/* ---- long broadcasts ------------------------------------------------------------ */

START_TEST(long_broadcast__every_tree_and_root__parts_come_once_and_in_order)
{
	static const uint32_t degree[] = {2, 3, 32}, nodes[] = {1, 2, 9, 100}, bytes[] = {113, 300001};
	uint64_t packets[COLLSIM_WAYS];
	uint32_t d, n, way;

	for (d = 0; d < 3; d++)
		for (n = 0; n < 4; n++) {
			struct collsim_case c =
				a_case(COLLSIM_BCAST, 0, (enum glex_group_shape)_i, degree[d], nodes[n]);

			if (!collsim_has_tree(c.shape, c.nodes, c.degree))
				continue;
			c = of_machine("th2", c);
			c.bytes = bytes[n % 2];
			for (way = 0; way < COLLSIM_WAYS; way++) {
				c.way = (enum collsim_way)way;
				packets[way] = must_run(&c).counts.packets;
			}
			/* The same parts; besides, two reductions to all, and who tells where its buffer is. */
			ck_assert_uint_eq(packets[COLLSIM_NIC], packets[COLLSIM_HOST] + 5 * (uint64_t)(nodes[n] - 1));
			c.root = nodes[n] / 2;
			c.iterations = 3;
			c.skew_ns = 100000;
			c.params.noise_share = 0.2;
			c.params.noise_ns = 2000;
			for (way = 0; way < COLLSIM_WAYS; way++) {
				c.way = (enum collsim_way)way;
				must_run(&c);
			}
		}
}
END_TEST

START_TEST(long_broadcast__root_lacks_a_byte__run_fails)
{
	struct collsim_case c = a_case(COLLSIM_BCAST, (enum collsim_way)_i, GLEX_GROUP_KARY, 3, 20);
	struct collsim_result result;

	c.bytes = 100000;
	c.broken = true;
	ck_assert_ptr_nonnull(collsim_run(&c, &result));
}
END_TEST

/*
 * Only bytes take time.  Down a chain a part is on its way on each link while others are on theirs; where a NIC has
 * k children, each part leaves it k times, and the last of them comes last.
 */
START_TEST(long_broadcast__only_bytes_take_time__closed_form)
{
	const uint32_t parts = 16, part = 8192;
	uint32_t depth, k;

	for (depth = 1; depth < 20; depth += 3) {
		struct collsim_case c = a_case(COLLSIM_BCAST, (enum collsim_way)_i, GLEX_GROUP_KARY, 1, depth + 1);

		c.bytes = parts * part - 1;
		c.params.times.byte = 0.5;
		ck_assert_double_eq_tol(us(&c), ((parts + depth - 1) * part - 1) * 0.5 / 1000, NEAR_US);
	}
	for (k = 1; k <= 2; k++) {
		struct collsim_case c = a_case(COLLSIM_BCAST, (enum collsim_way)_i, GLEX_GROUP_KARY, k, k + 1);

		c.bytes = parts * part;
		c.params.times.byte = 0.5;
		ck_assert_double_eq_tol(us(&c), parts * part * k * 0.5 / 1000, NEAR_US);
	}
}
END_TEST

/* PUTs between nodes 0 and 1, whose buffers are on endpoint 1. */
static const char *after_puts(uint64_t held, uint32_t n, const uint32_t offset[], const uint32_t to[], uint32_t key)
{
	struct sim_params params = {.queue = 4, .topo = {SIM_FLAT, 1}};
	struct sim *sim = sim_create(&params, 2);
	const char *wrong;
	uint32_t i;

	ck_assert_ptr_nonnull(sim);
	sim_hold(sim, 0, held);
	for (i = 0; i < n; i++) {
		struct emu_desc desc = {.op = EMU_OP_PUT,
					.dst = addr(1, 1),
					.local_mh = sim_register(sim, 0, 1, 5),
					.rmt_mh = sim_register(sim, 1, 1, 6),
					.local_offset = offset[i],
					.rmt_offset = to[i],
					.rmt_key = key,
					.len = 100};

		sim_post(sim, 0, 1, &desc, NULL, false);
	}
	while (sim_step(sim))
		;
	wrong = sim_error(sim);
	if (!wrong)
		ck_assert_uint_eq(sim_held(sim, 1), (uint64_t)n * 100);
	sim_destroy(sim);
	return wrong;
}

START_TEST(puts__twice_or_with_a_gap_or_not_held__run_fails)
{
	static const uint32_t good[] = {0, 100}, twice[] = {0, 0}, gap[] = {0, 200};

	ck_assert_ptr_null(after_puts(200, 2, good, good, 6));
	ck_assert_ptr_nonnull(after_puts(200, 2, twice, twice, 6));
	ck_assert_ptr_nonnull(after_puts(400, 2, gap, gap, 6));
	ck_assert_ptr_nonnull(after_puts(400, 2, gap, good, 6));
	ck_assert_ptr_nonnull(after_puts(199, 2, good, good, 6));
	ck_assert_ptr_nonnull(after_puts(200, 2, good, good, 7)); /* that is not the key */
}
END_TEST

START_TEST(tree__too_many_children__there_is_none)
{
	ck_assert(!collsim_has_tree(GLEX_GROUP_KNOMIAL, 65536, 32));
	ck_assert(collsim_has_tree(GLEX_GROUP_KNOMIAL, 32, 32));
	ck_assert(collsim_has_tree(GLEX_GROUP_KARY, 65536, 32));
	ck_assert(!collsim_has_tree(GLEX_GROUP_KARY, 2, 33));
	ck_assert(!collsim_has_tree(GLEX_GROUP_KNOMIAL, 2, 1));
}
END_TEST

/* ---- one time at once ---------------------------------------------------------- */

/* Members of a complete k-ary tree. */
static uint32_t complete(uint32_t degree, uint32_t depth)
{
	uint32_t n = 1, level = 1;

	while (depth-- > 0)
		n += level *= degree;
	return n;
}

/* Everything takes no time but `name`, 10 ns: so many of them must lie one after the other. */
static void expect_times(struct collsim_case c, const char *name, uint32_t times)
{
	double *value = sim_time_find(&c.params.times, name), got;

	ck_assert_ptr_nonnull(value);
	*value = 10;
	got = us(&c) * 100;
	if (fabs(got - times) > NEAR_US)
		ck_abort_msg("%s, way %d, degree %u, %u nodes: %.3f times, not %u", name, c.way, c.degree, c.nodes, got,
			     times);
}

START_TEST(one_time__others_none__closed_form_by_the_nics)
{
	uint32_t k = (uint32_t)_i, depth;

	for (depth = 1; depth <= (k < 8 ? 4u : 2u); depth++) {
		struct collsim_case c = a_case(COLLSIM_BARRIER, COLLSIM_NIC, GLEX_GROUP_KARY, k, complete(k, depth));

		expect_times(c, "router", 2 * depth);
		expect_times(c, "link", 4 * depth);
		expect_times(c, "wire", 2 * depth);
		expect_times(c, "global", 0);
		expect_times(c, "trigger", 2 * depth);
		expect_times(c, "tx", 2 * depth + 1); /* the root tells itself, too */
		expect_times(c, "rx", 2 * depth + 1);
		expect_times(c, "gap", (k - 1) * depth + 1);
		expect_times(c, "rx_gap", (k - 1) * depth + 1);
		expect_times(c, "to_nic", 1);
		expect_times(c, "to_host", 1);
		expect_times(c, "poll", 1);
		expect_times(c, "send", 1);
		expect_times(c, "recv", 1);
		expect_times(c, "reduce", 0);
		expect_times(c, "combine", 0);
		expect_times(c, "local", 0);
		c.params.topo.size = 3;
		expect_times(c, "router", 6 * depth);
		c.processes = 9;
		expect_times(c, "local", 2 * 4);
		c.test = COLLSIM_ALLREDUCE;
		expect_times(c, "reduce", k * depth + 1);
	}
}
END_TEST

START_TEST(one_time__others_none__closed_form_by_the_hosts)
{
	uint32_t k = (uint32_t)_i, depth;

	for (depth = 1; depth <= (k < 8 ? 4u : 2u); depth++) {
		struct collsim_case c = a_case(COLLSIM_BARRIER, COLLSIM_HOST, GLEX_GROUP_KARY, k, complete(k, depth));

		expect_times(c, "router", 2 * depth);
		expect_times(c, "trigger", 0);
		expect_times(c, "tx", 2 * depth);
		expect_times(c, "rx", 2 * depth);
		expect_times(c, "to_nic", 2 * depth);
		expect_times(c, "to_host", 2 * depth);
		expect_times(c, "poll", (k + 1) * depth);
		expect_times(c, "recv", (k + 1) * depth);
		expect_times(c, "post", (k + 1) * depth);
		expect_times(c, "send", (k + 1) * depth);
		expect_times(c, "combine", 0);
		c.test = COLLSIM_ALLREDUCE;
		expect_times(c, "combine", k * depth);
		c.test = COLLSIM_BCAST;
		expect_times(c, "tx", depth);
		expect_times(c, "post", k * depth);
	}
}
END_TEST

/* Each level more costs the same: the latency grows with the logarithm of the nodes to the base of the degree. */
START_TEST(complete_trees__one_level_more__costs_the_same)
{
	static const uint32_t degree[] = {2, 4, 8, 16, 32};
	uint32_t i, way, depth, k;

	for (i = 0; i < 5; i++)
		for (way = 0; way < COLLSIM_WAYS; way++) {
			double before = 0, step = 0, now;

			k = degree[i];
			for (depth = 1; depth <= 4 && complete(k, depth) < 5000; depth++) {
				struct collsim_case c =
					a_case(COLLSIM_ALLREDUCE, way, GLEX_GROUP_KARY, k, complete(k, depth));

				c = of_machine("th2", c);
				c.params.topo = (struct sim_topo){SIM_FLAT, 5};
				now = us(&c);
				if (depth > 2)
					ck_assert_double_eq_tol(now - before, step, NEAR_US);
				step = now - before;
				before = now;
				ck_assert_double_gt(step, 0);
			}
		}
}
END_TEST

START_TEST(nodes__squared__latency_doubles)
{
	struct collsim_case c = of_machine("th2", a_case(COLLSIM_BARRIER, COLLSIM_NIC, GLEX_GROUP_KARY, 8, 73));
	double small, large;

	c.params.topo = (struct sim_topo){SIM_FLAT, 5};
	small = us(&c);
	c.nodes = 4681; /* twice as deep */
	large = us(&c);
	ck_assert_double_gt(large, 1.4 * small);
	ck_assert_double_lt(large, 2.0 * small);
}
END_TEST

/* ---- seeds ---------------------------------------------------------------------- */

START_TEST(seed__same__all_the_same)
{
	struct collsim_case c =
		of_machine("th2", a_case(COLLSIM_ALLREDUCE, (enum collsim_way)_i, GLEX_GROUP_KNOMIAL, 3, 300));
	struct collsim_result a, b;

	c.iterations = 5;
	c.skew_ns = 2000;
	c.params.noise_share = 0.1;
	c.params.noise_ns = 1000;
	a = must_run(&c);
	b = must_run(&c);
	ck_assert_mem_eq(&a.mean_us, &b.mean_us, sizeof(double));
	ck_assert_mem_eq(&a.min_us, &b.min_us, sizeof(double));
	ck_assert_mem_eq(&a.max_us, &b.max_us, sizeof(double));
	ck_assert_uint_eq(a.counts.events, b.counts.events);
	c.params.seed++;
	b = must_run(&c);
	ck_assert(a.mean_us < b.mean_us || a.mean_us > b.mean_us);
}
END_TEST

START_TEST(skew__all_but_the_last_wait__latency_is_from_the_last)
{
	struct collsim_case c =
		of_machine("th2", a_case(COLLSIM_BARRIER, (enum collsim_way)_i, GLEX_GROUP_KARY, 4, 200));
	double at_once = us(&c);

	c.skew_ns = 1e6;
	ck_assert_double_le(us(&c), at_once);
}
END_TEST

START_TEST(noise__more_of_it__hosts_suffer_more_than_nics)
{
	double quiet[COLLSIM_WAYS], noisy[COLLSIM_WAYS];
	uint32_t way;

	for (way = 0; way < COLLSIM_WAYS; way++) {
		struct collsim_case c = of_machine("th2", a_case(COLLSIM_BARRIER, way, GLEX_GROUP_KARY, 4, 1000));

		c.iterations = 10;
		quiet[way] = us(&c);
		c.params.noise_share = 0.01;
		c.params.noise_ns = 5000;
		noisy[way] = us(&c);
	}
	ck_assert_double_gt(noisy[COLLSIM_NIC], quiet[COLLSIM_NIC]);
	ck_assert_double_gt(noisy[COLLSIM_HOST] - quiet[COLLSIM_HOST], noisy[COLLSIM_NIC] - quiet[COLLSIM_NIC]);
}
END_TEST

/* ---- what has been published ------------------------------------------------------ */

START_TEST(one_message__between_neighbours__takes_the_published_time)
{
	struct collsim_case c = of_machine("th2", a_case(COLLSIM_BCAST, COLLSIM_HOST, GLEX_GROUP_KARY, 2, 2));

	ck_assert_double_eq_tol(us(&c), 1.30, 0.005); /* an MP */
	c = of_machine("aries", c);
	ck_assert_double_eq_tol(us(&c), 1.30, 0.005); /* an MPI message */
	c.params.times.send = c.params.times.recv = 0;
	ck_assert_double_eq_tol(us(&c), 0.80, 0.005); /* a put */
}
END_TEST

START_TEST(aries__12000_processes__allreduce_below_10_us)
{
	struct collsim_case c = of_machine("aries", a_case(COLLSIM_ALLREDUCE, COLLSIM_NIC, GLEX_GROUP_KARY, 32, 750));
	double by_nics, by_hosts;

	c.processes = 16;
	by_nics = us(&c);
	ck_assert_double_lt(by_nics, 10);
	c.way = COLLSIM_HOST;
	c.degree = 4; /* hosts do best with it, or nearly so */
	by_hosts = us(&c);
	ck_assert_double_gt(by_hosts, 2.5 * by_nics);
	c.way = COLLSIM_NIC;
	c.degree = 32;
	c.processes = 1;
	c.nodes = 12000;
	ck_assert_double_lt(us(&c), 10);
}
END_TEST

START_TEST(th2__12000_nodes__nics_half_the_time_of_hosts)
{
	struct collsim_case c = of_machine("th2", a_case(COLLSIM_ALLREDUCE, COLLSIM_NIC, GLEX_GROUP_KARY, 16, 12000));
	double by_nics = us(&c);

	c.way = COLLSIM_HOST;
	ck_assert_double_gt(us(&c), 2 * by_nics);
}
END_TEST

/* ---- distances --------------------------------------------------------------------- */

static uint32_t routers(enum sim_topo_kind kind, uint32_t size, uint32_t from, uint32_t to)
{
	struct sim_topo topo = {kind, size};

	return sim_path_of(&topo, from, to).routers;
}

START_TEST(paths__of_each_topology__are_the_shortest)
{
	struct sim_topo xc = {SIM_DRAGONFLY, 0};
	uint32_t seed = 1, i, most = 0;

	ck_assert_uint_eq(routers(SIM_FLAT, 5, 0, 1), 5);
	ck_assert_uint_eq(routers(SIM_FAT_TREE, 24, 0, 11), 1);
	ck_assert_uint_eq(routers(SIM_FAT_TREE, 24, 0, 12), 3);
	ck_assert_uint_eq(routers(SIM_FAT_TREE, 24, 11, 12), 3);
	ck_assert_uint_eq(routers(SIM_FAT_TREE, 24, 0, 143), 3);
	ck_assert_uint_eq(routers(SIM_FAT_TREE, 24, 0, 144), 5);
	ck_assert_uint_eq(routers(SIM_DRAGONFLY, 0, 0, 3), 1);
	ck_assert_uint_eq(routers(SIM_DRAGONFLY, 0, 0, 4), 2);	 /* the chassis */
	ck_assert_uint_eq(routers(SIM_DRAGONFLY, 0, 0, 64), 2);	 /* the same place in another */
	ck_assert_uint_eq(routers(SIM_DRAGONFLY, 0, 0, 68), 3);	 /* another place */
	ck_assert_uint_eq(routers(SIM_DRAGONFLY, 0, 0, 384), 3); /* by the router of the cable to group 1 */
	ck_assert_uint_eq(routers(SIM_DRAGONFLY, 0, 4, 384), 2); /* which is this one */
	ck_assert_uint_eq(routers(SIM_DRAGONFLY, 0, 4, 384 + 4), 3);
	for (i = 0; i < 20000; i++) {
		uint32_t a = unit_random(&seed) % 65536, b = unit_random(&seed) % 65536;
		struct sim_path to = sim_path_of(&xc, a, b), back = sim_path_of(&xc, b, a);

		UNIT_CHECK(to.routers == back.routers && to.globals == (a / 384 != b / 384));
		most = to.routers > most ? to.routers : most;
	}
	ck_assert_uint_eq(most, 6); /* five hops: the 500 ns of the white paper */
}
END_TEST

/* ---- the parts ----------------------------------------------------------------------- */

START_TEST(heap__events_in_any_order__come_out_by_time_rank_and_order)
{
	struct sim_heap heap = {.count = 0};
	struct sim_event last = {.time = 0}, event;
	uint32_t seed = 5, i;

	for (i = 0; i < 5000; i++)
		ck_assert(sim_heap_put(
			&heap, (struct sim_event){.time = unit_random(&seed) % 200, .rank = unit_random(&seed) % 3}));
	for (i = 0; sim_heap_take(&heap, &event); i++) {
		UNIT_CHECK(event.time >= last.time);
		if (i && event.time == last.time)
			UNIT_CHECK(event.rank > last.rank || (event.rank == last.rank && event.order > last.order));
		last = event;
	}
	ck_assert_uint_eq(i, 5000);
	free(heap.event);
}
END_TEST

START_TEST(endpoint__more_control_packets_than_room__run_fails)
{
	struct sim_params params = {.queue = 4, .topo = {SIM_FLAT, 1}};
	struct emu_desc desc = {.op = EMU_OP_MP, .flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_COUNTER, .dst = addr(1, 0)};
	struct sim *sim = sim_create(&params, 2);
	uint32_t i;

	ck_assert_ptr_nonnull(sim);
	for (i = 0; i < 4; i++)
		sim_post(sim, 0, 0, &desc, NULL, false);
	while (sim_step(sim))
		;
	ck_assert_ptr_null(sim_error(sim));
	sim_post(sim, 0, 0, &desc, NULL, false);
	while (sim_step(sim))
		;
	ck_assert_ptr_nonnull(sim_error(sim));
	sim_destroy(sim);
}
END_TEST

START_TEST(request__to_nobody__run_fails)
{
	struct sim_params params = {.queue = 4, .topo = {SIM_FLAT, 1}};
	struct emu_desc desc = {.op = EMU_OP_MP, .flag = _i ? GLEX_FLAG_COLL : 0, .dst = addr(2, 0)};
	struct sim *sim = sim_create(&params, 2);

	sim_post(sim, 0, 0, &desc, NULL, false);
	while (sim_step(sim))
		;
	ck_assert_ptr_nonnull(sim_error(sim));
	sim_destroy(sim);
}
END_TEST

/* Requests wait in order, whether there is a port or not: three gates, one packet each, opened by another node. */
START_TEST(requests__behind_closed_gates__leave_in_order)
{
	struct sim_params params = {.queue = 8, .topo = {SIM_FLAT, 1}};
	struct emu_desc gated = {.op = EMU_OP_MP,
				 .flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_SEQ_START | GLEX_FLAG_COLL_SEQ_TAIL,
				 .dst = addr(2, 1),
				 .counter = 1,
				 .len = 1};
	struct emu_desc key = {.op = EMU_OP_MP, .flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_COUNTER, .dst = addr(0, 0)};
	struct sim *sim = sim_create(&params, 3);
	unsigned char i, got;
	uint32_t len;

	for (i = 0; i < 3; i++)
		sim_post(sim, 0, 0, &gated, &i, i > 0);
	while (sim_step(sim))
		;
	ck_assert(!sim_take(sim, 2, 1, NULL, &got, &len));
	for (i = 0; i < 3; i++) {
		sim_post(sim, 1, 0, &key, NULL, false);
		while (sim_step(sim))
			;
		ck_assert(sim_take(sim, 2, 1, NULL, &got, &len));
		ck_assert_uint_eq(len, 1);
		ck_assert_uint_eq(got, i);
		ck_assert(!sim_take(sim, 2, 1, NULL, &got, &len));
	}
	ck_assert_ptr_null(sim_error(sim));
	sim_destroy(sim);
}
END_TEST

START_TEST(time__each_row__found_by_name_and_has_sources)
{
	struct sim_machine machine;
	size_t i;

	ck_assert(!sim_machine_find("abacus", &machine));
	ck_assert(sim_machine_find("aries", &machine));
	ck_assert_ptr_null(sim_time_find(&machine.times, "patience"));
	ck_assert_uint_eq(sim_time_row_count, sizeof(struct sim_times) / sizeof(double));
	for (i = 0; i < sim_time_row_count; i++) {
		const struct sim_time_row *row = &sim_time_rows[i];

		ck_assert_ptr_eq(sim_time_find(&machine.times, row->name), (char *)&machine.times + row->offset);
		ck_assert_double_eq(*sim_time_find(&machine.times, row->name), row->aries);
		ck_assert(row->what[0] && row->th2_source[0] && row->aries_source[0]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim");
	TCase *tcase = tcase_create("sim");

	tcase_add_loop_test(tcase, every_tree__results_right__packets_as_in_theory, 0, 2 * COLLSIM_TESTS);
	tcase_add_loop_test(tcase, wrong_value__given__run_fails, 0, COLLSIM_WAYS);
	tcase_add_loop_test(tcase, long_broadcast__every_tree_and_root__parts_come_once_and_in_order, 0, 2);
	tcase_add_loop_test(tcase, long_broadcast__root_lacks_a_byte__run_fails, 0, COLLSIM_WAYS);
	tcase_add_loop_test(tcase, long_broadcast__only_bytes_take_time__closed_form, 0, COLLSIM_WAYS);
	tcase_add_test(tcase, puts__twice_or_with_a_gap_or_not_held__run_fails);
	tcase_add_test(tcase, tree__too_many_children__there_is_none);
	tcase_add_loop_test(tcase, one_time__others_none__closed_form_by_the_nics, 2, 12);
	tcase_add_loop_test(tcase, one_time__others_none__closed_form_by_the_hosts, 2, 12);
	tcase_add_test(tcase, complete_trees__one_level_more__costs_the_same);
	tcase_add_test(tcase, nodes__squared__latency_doubles);
	tcase_add_loop_test(tcase, seed__same__all_the_same, 0, COLLSIM_WAYS);
	tcase_add_loop_test(tcase, skew__all_but_the_last_wait__latency_is_from_the_last, 0, COLLSIM_WAYS);
	tcase_add_test(tcase, noise__more_of_it__hosts_suffer_more_than_nics);
	tcase_add_test(tcase, one_message__between_neighbours__takes_the_published_time);
	tcase_add_test(tcase, aries__12000_processes__allreduce_below_10_us);
	tcase_add_test(tcase, th2__12000_nodes__nics_half_the_time_of_hosts);
	tcase_add_test(tcase, paths__of_each_topology__are_the_shortest);
	tcase_add_test(tcase, heap__events_in_any_order__come_out_by_time_rank_and_order);
	tcase_add_test(tcase, endpoint__more_control_packets_than_room__run_fails);
	tcase_add_loop_test(tcase, request__to_nobody__run_fails, 0, 2);
	tcase_add_test(tcase, requests__behind_closed_gates__leave_in_order);
	tcase_add_test(tcase, time__each_row__found_by_name_and_has_sources);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
