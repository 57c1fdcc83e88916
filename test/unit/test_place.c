/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_place.c - emulator/host/place.h and crowd.h on machines that exist in
 * name alone (hwloc's synthetic topologies).
 */
#include "config.h"

#include "unit.h"

#include "emulator/host/crowd.h"
#include "emulator/host/place.h"

START_TEST(crowd__processes_and_cores__spinning_pays_while_each_has_one)
{
	ck_assert(emu_is_crowded(1, 1)); /* whoever answers needs the core */
	ck_assert(emu_is_crowded(1, 2));
	ck_assert(!emu_is_crowded(2, 1));
	ck_assert(!emu_is_crowded(2, 2));
	ck_assert(emu_is_crowded(2, 4)); /* 4 ranks on 2 cores */
	ck_assert(!emu_is_crowded(64, 64));
	ck_assert(emu_is_crowded(64, 65));
	ck_assert(!emu_is_crowded(0, 8)); /* not known */
}
END_TEST

#ifdef HAVE_HWLOC

#define CLIENTS_MAX 8

static hwloc_topology_t topology;
static hwloc_cpuset_t client[CLIENTS_MAX], engine;
static unsigned clients;

static void machine(const char *description)
{
	ck_assert_int_eq(hwloc_topology_init(&topology), 0);
	ck_assert_int_eq(hwloc_topology_set_synthetic(topology, description), 0);
	ck_assert_int_eq(hwloc_topology_load(topology), 0);
	engine = hwloc_bitmap_alloc();
	clients = 0;
}

/* A client that may run on these, as hwloc writes lists: "0-3,8". */
static void add(const char *list)
{
	client[clients] = hwloc_bitmap_alloc();
	ck_assert_int_eq(hwloc_bitmap_list_sscanf(client[clients], list), 0);
	clients++;
}

static void no_machine(void)
{
	while (clients)
		hwloc_bitmap_free(client[--clients]);
	hwloc_bitmap_free(engine);
	hwloc_topology_destroy(topology);
}

static int memory_of(unsigned n, int wish)
{
	hwloc_obj_t node = emu_place_memory(topology, client[n], wish);

	return node ? (int)node->os_index : -1;
}

static const char *engine_at(int wish)
{
	static char text[128];
	hwloc_const_cpuset_t sets[CLIENTS_MAX];
	unsigned i;

	for (i = 0; i < clients; i++)
		sets[i] = client[i];
	if (!emu_place_engine(topology, sets, clients, wish, engine))
		return "anywhere";
	hwloc_bitmap_list_snprintf(text, sizeof(text), engine);
	return text;
}

START_TEST(memory__owner_within_a_node__there)
{
	machine("numa:2 core:4 pu:2"); /* 0-7, 8-15 */
	add("0-7");
	add("9");
	add("0-15");
	add("7-8");
	ck_assert_int_eq(memory_of(0, EMU_PLACE_AUTO), 0);
	ck_assert_int_eq(memory_of(1, EMU_PLACE_AUTO), 1);
	ck_assert_int_eq(memory_of(2, EMU_PLACE_AUTO), -1);
	ck_assert_int_eq(memory_of(3, EMU_PLACE_AUTO), -1);
	no_machine();
}
END_TEST

START_TEST(memory__wish__is_followed_where_the_node_exists)
{
	machine("numa:2 core:4 pu:2");
	add("0-7");
	ck_assert_int_eq(memory_of(0, 1), 1);
	ck_assert_int_eq(memory_of(0, 2), -1);
	ck_assert_int_eq(memory_of(0, EMU_PLACE_OFF), -1);
	ck_assert_str_eq(engine_at(1), "8-15");
	ck_assert_str_eq(engine_at(2), "anywhere");
	ck_assert_str_eq(engine_at(EMU_PLACE_OFF), "anywhere");
	no_machine();
}
END_TEST

START_TEST(engine__nobody_is_there__stays)
{
	machine("numa:2 core:4 pu:2");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "anywhere");
	no_machine();
}
END_TEST

START_TEST(engine__clients_bound__free_cores_of_their_node)
{
	machine("numa:2 core:4 pu:2");
	add("8");     /* a thread of the first core of node 1 */
	add("10-11"); /* its second core */
	add("0-1");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "12-15");
	no_machine();
}
END_TEST

START_TEST(engine__all_cores_taken__a_thread_of_one_else_all)
{
	machine("numa:1 core:2 pu:2");
	add("0");
	add("2");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "1,3");
	add("1");
	add("3");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "0-3");
	no_machine();
}
END_TEST

START_TEST(engine__nobody_bound__the_whole_machine)
{
	machine("numa:2 core:4 pu:2");
	add("0-15");
	add("0-15");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "0-15");
	no_machine();
}
END_TEST

/* mpiexec -bind-to core: rank 0 starts glexd, whose engine must not stay on rank 0's core. */
START_TEST(engine__two_cores_two_bound_ranks__both_cores)
{
	machine("core:2 pu:1");
	add("0");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "1");
	add("1");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "0-1");
	no_machine();
}
END_TEST

START_TEST(engine__one_core__there)
{
	machine("core:1 pu:1");
	add("0");
	add("0");
	ck_assert_str_eq(engine_at(EMU_PLACE_AUTO), "0");
	ck_assert_int_eq(memory_of(0, EMU_PLACE_AUTO), 0);
	no_machine();
}
END_TEST

#endif

int main(void)
{
	Suite *suite = suite_create("place");
	TCase *tc = tcase_create("place");

	tcase_add_test(tc, crowd__processes_and_cores__spinning_pays_while_each_has_one);
#ifdef HAVE_HWLOC
	tcase_add_test(tc, memory__owner_within_a_node__there);
	tcase_add_test(tc, memory__wish__is_followed_where_the_node_exists);
	tcase_add_test(tc, engine__nobody_is_there__stays);
	tcase_add_test(tc, engine__clients_bound__free_cores_of_their_node);
	tcase_add_test(tc, engine__all_cores_taken__a_thread_of_one_else_all);
	tcase_add_test(tc, engine__nobody_bound__the_whole_machine);
	tcase_add_test(tc, engine__two_cores_two_bound_ranks__both_cores);
	tcase_add_test(tc, engine__one_core__there);
#endif
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
