/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_vport.c - where things lie in a port's segment, and that no segment of
 * another kind, build or shape is taken for one.
 */
#include "unit.h"

#include "emulator/nic/vport.h"

static unsigned char *base;
static uint64_t size;
static struct emu_vport view;

static const struct emu_vport_shape shapes[] = {
	{.nic_id = 1, .ep_num = 2, .key = 3, .session = 4, .pid = 5, .mpq_capacity = 1, .eq_capacity = 1},
	{.nic_id = 1, .ep_num = 9, .type = 1, .session = 4, .mpq_capacity = 2, .eq_capacity = 8, .dq_capacity = 1},
	{.ep_num = 8, .type = 1, .mpq_capacity = EMU_DEF_MPQ, .eq_capacity = EMU_DEF_EQ, .dq_capacity = EMU_DEF_DQ},
	{.ep_num = 50, .type = 2, .mpq_capacity = EMU_MAX_HC_MPQ, .eq_capacity = 2},
	{.ep_num = 50, .type = 2, .mpq_capacity = 4, .eq_capacity = EMU_MAX_HC_EQ},
};

#define SHAPES 5

/* The two with small queues; the tests of wrong heads need no more. */
#define SMALL 1

static void make(const struct emu_vport_shape *shape)
{
	size = emu_vport_size(shape);
	base = unit_zeroed(size);
	emu_vport_format(base, size, shape);
}

static void setup(void)
{
	make(&shapes[SMALL]);
}

static void teardown(void)
{
	free(base);
	base = NULL;
}

static struct emu_port *port(void)
{
	return (struct emu_port *)(void *)base;
}

/* Attaching fails, and what it says names the culprit. */
static void expect_refused(const char *word)
{
	struct emu_vport before = {.dq_mask = 42};
	const char *wrong;

	view = before;
	wrong = emu_vport_attach(&view, base, size);
	ck_assert_ptr_nonnull(wrong);
	ck_assert_msg(strstr(wrong, word), "\"%s\" does not speak of %s", wrong, word);
	ck_assert_mem_eq(&view, &before, sizeof(view));
}

/* ---- layout -------------------------------------------------------------- */

struct part {
	uint64_t at, bytes;
};

START_TEST(layout__any_shape__parts_are_aligned_disjoint_and_inside)
{
	const struct emu_vport_shape *shape = &shapes[_i];
	struct part parts[12];
	struct emu_port *p;
	uint64_t end = sizeof(struct emu_port);

	make(shape);
	p = port();
	parts[0] = (struct part){p->mpq_log, 8ull * shape->mpq_capacity};
	parts[1] = (struct part){p->mpq_slots, sizeof(struct emu_mp_slot) * (uint64_t)shape->mpq_capacity};
	parts[2] = (struct part){p->eq_log, 8ull * shape->eq_capacity};
	parts[3] = (struct part){p->eq_slots, sizeof(struct emu_event_slot) * (uint64_t)shape->eq_capacity};
	parts[4] = (struct part){p->err_log, 8ull * p->err_capacity};
	parts[5] = (struct part){p->err_slots, sizeof(struct emu_err_slot) * (uint64_t)p->err_capacity};
	parts[6] = (struct part){p->dq_slots, sizeof(struct emu_desc) * (uint64_t)shape->dq_capacity};
	parts[7] = (struct part){p->intq_log, 8ull * p->intq_capacity};
	parts[8] = (struct part){p->intq_slots, sizeof(struct emu_intr_slot) * (uint64_t)p->intq_capacity};
	parts[9] = (struct part){p->epq_log, 8ull * p->epq_capacity};
	parts[10] = (struct part){p->epq_slots, sizeof(struct emu_bad_slot) * (uint64_t)p->epq_capacity};
	parts[11] = (struct part){size, 0};
	for (int n = 0; n < 12; n++) {
		ck_assert_uint_eq(parts[n].at % EMU_LINE, 0);
		ck_assert_uint_ge(parts[n].at, end);
		end = parts[n].at + parts[n].bytes;
	}
	ck_assert_uint_le(end, size);
	teardown();
}
END_TEST

/* What is told of, errors, interrupts and bad packets, has room as its queue has, within bounds. */
START_TEST(layout__queues_aside__as_long_as_what_they_are_about)
{
	const struct emu_vport_shape some[] = {{.mpq_capacity = 4, .eq_capacity = 1},
					       {.mpq_capacity = 32, .eq_capacity = 128},
					       {.mpq_capacity = 4096, .eq_capacity = 4096}};
	const uint32_t errors[] = {16, 128, 256}, packets[] = {16, 32, 64};

	for (int n = 0; n < 3; n++) {
		make(&some[n]);
		ck_assert_uint_eq(port()->err_capacity, errors[n]);
		ck_assert_uint_eq(port()->intq_capacity, packets[n]);
		ck_assert_uint_eq(port()->epq_capacity, packets[n]);
		teardown();
	}
	ck_assert_uint_le(emu_vport_size(&(struct emu_vport_shape){.mpq_capacity = 16, .eq_capacity = 16}), 8192);
}
END_TEST

START_TEST(format__shape__is_in_the_head)
{
	const struct emu_vport_shape *shape = &shapes[_i];

	make(shape);
	ck_assert_uint_eq(port()->nic_id, shape->nic_id);
	ck_assert_uint_eq(port()->ep_num, shape->ep_num);
	ck_assert_uint_eq(port()->type, shape->type);
	ck_assert_uint_eq(port()->key, shape->key);
	ck_assert_uint_eq(port()->session, shape->session);
	ck_assert_uint_eq(port()->pid, shape->pid);
	ck_assert_uint_eq(port()->dq_capacity, shape->dq_capacity);
	ck_assert_uint_eq(atomic_load(&port()->state), EMU_PORT_OPEN);
	teardown();
}
END_TEST

/* ---- attach -------------------------------------------------------------- */

static void expect_ring(const struct emu_ring *ring, struct emu_ring_ctl *ctl, uint64_t log, uint64_t slots,
			uint32_t capacity, size_t slot_size)
{
	ck_assert_ptr_eq(ring->ctl, ctl);
	ck_assert_ptr_eq((unsigned char *)ring->log, base + log);
	ck_assert_ptr_eq(ring->slots, base + slots);
	ck_assert_uint_eq(ring->mask, capacity - 1);
	ck_assert_uint_eq((size_t)1 << ring->shift, slot_size);
}

START_TEST(attach__any_shape__view_points_to_the_parts)
{
	const struct emu_vport_shape *shape = &shapes[_i];
	struct emu_port *p;

	make(shape);
	p = port();
	ck_assert_ptr_null(emu_vport_attach(&view, base, size));
	ck_assert_ptr_eq(view.port, p);
	expect_ring(&view.mpq, &p->mpq, p->mpq_log, p->mpq_slots, shape->mpq_capacity, sizeof(struct emu_mp_slot));
	expect_ring(&view.eq, &p->eq, p->eq_log, p->eq_slots, shape->eq_capacity, sizeof(struct emu_event_slot));
	expect_ring(&view.err, &p->err, p->err_log, p->err_slots, p->err_capacity, sizeof(struct emu_err_slot));
	expect_ring(&view.intq, &p->intq, p->intq_log, p->intq_slots, p->intq_capacity, sizeof(struct emu_intr_slot));
	expect_ring(&view.epq, &p->epq, p->epq_log, p->epq_slots, p->epq_capacity, sizeof(struct emu_bad_slot));
	if (shape->dq_capacity)
		ck_assert_ptr_eq((unsigned char *)view.dq, base + p->dq_slots);
	else
		ck_assert_ptr_null(view.dq);
	ck_assert_uint_eq(view.dq_mask, shape->dq_capacity ? shape->dq_capacity - 1 : 0);
	teardown();
}
END_TEST

/* Every slot of every queue is written to its end: a sanitizer would see one that lies outside. */
START_TEST(attach__queues_filled__nothing_overwrites_another)
{
	struct emu_ring *rings[5] = {&view.mpq, &view.eq, &view.err, &view.intq, &view.epq};
	uint32_t index;
	unsigned char *slot;

	ck_assert_ptr_null(emu_vport_attach(&view, base, size));
	for (int n = 0; n < 5; n++)
		while ((slot = emu_ring_claim(rings[n], 9, &index))) {
			memset(slot + 4, n + 1, ((size_t)1 << rings[n]->shift) - 4);
			emu_ring_publish(slot, index);
		}
	memset(view.dq, 9, sizeof(struct emu_desc) * port()->dq_capacity);
	for (int n = 0; n < 5; n++)
		for (index = 0; index <= rings[n]->mask; index++) {
			slot = emu_ring_peek(rings[n], index);
			UNIT_CHECK(slot && slot[4] == n + 1 && slot[((size_t)1 << rings[n]->shift) - 1] == n + 1);
		}
}
END_TEST

START_TEST(attach__wrong_magic__is_named)
{
	port()->seg.magic = EMU_MAGIC_NIC;
	expect_refused("magic");
}
END_TEST

START_TEST(attach__other_abi_version__is_named)
{
	port()->seg.abi_version++;
	expect_refused("abi_version");
}
END_TEST

START_TEST(attach__other_layout_hash__is_named)
{
	port()->seg.layout_hash ^= 1;
	expect_refused("layout_hash");
}
END_TEST

START_TEST(attach__other_total_size__is_named)
{
	port()->seg.total_size--;
	expect_refused("total_size");
}
END_TEST

START_TEST(attach__reserved_word_not_zero__is_named)
{
	port()->seg.reserved = 1;
	expect_refused("reserved");
}
END_TEST

START_TEST(attach__several_wrong__the_most_basic_is_named)
{
	port()->seg.magic = 0;
	port()->seg.abi_version = 0;
	port()->seg.layout_hash = 0;
	expect_refused("magic");
	port()->seg.magic = EMU_MAGIC_PORT;
	expect_refused("abi_version");
}
END_TEST

START_TEST(attach__too_short_for_a_head__is_named)
{
	size = sizeof(struct emu_seg_head) - 1;
	expect_refused("short");
}
END_TEST

START_TEST(attach__too_short_for_a_port__is_named)
{
	size = sizeof(struct emu_port) - 1;
	port()->seg.total_size = size;
	expect_refused("short");
}
END_TEST

/* _i: a capacity that no queue has */
static const uint32_t wrong_capacities[] = {0, 3, 6, 0x80000001u, UINT32_MAX};

START_TEST(attach__capacity_not_a_power_of_two__is_named)
{
	uint32_t *fields[] = {&port()->mpq_capacity,  &port()->eq_capacity,  &port()->err_capacity,
			      &port()->intq_capacity, &port()->epq_capacity, &port()->dq_capacity};
	uint32_t wrong = wrong_capacities[_i];

	for (int n = 0; n < 6; n++) {
		uint32_t right = *fields[n];

		if (n == 5 && wrong == 0)
			continue; /* the poster executes: no queue is needed */
		*fields[n] = wrong;
		expect_refused("capacity");
		*fields[n] = right;
	}
	ck_assert_ptr_null(emu_vport_attach(&view, base, size));
}
END_TEST

START_TEST(attach__capacity_larger_than_the_segment__lies_outside)
{
	uint32_t *fields[] = {&port()->mpq_capacity,  &port()->eq_capacity,  &port()->err_capacity,
			      &port()->intq_capacity, &port()->epq_capacity, &port()->dq_capacity};

	for (int n = 0; n < 6; n++) {
		uint32_t right = *fields[n];

		*fields[n] = 0x80000000u;
		expect_refused("outside");
		*fields[n] = right;
	}
}
END_TEST

START_TEST(attach__offset_wrong__lies_outside)
{
	const uint32_t wrong[] = {0,
				  sizeof(struct emu_port) - EMU_LINE,
				  (uint32_t)size,
				  (uint32_t)size + EMU_LINE,
				  UINT32_MAX - EMU_LINE + 1,
				  sizeof(struct emu_port) + 8};
	uint32_t *fields[] = {&port()->mpq_log,	   &port()->mpq_slots, &port()->eq_log,	  &port()->eq_slots,
			      &port()->err_log,	   &port()->err_slots, &port()->dq_slots, &port()->intq_log,
			      &port()->intq_slots, &port()->epq_log,   &port()->epq_slots};

	for (int f = 0; f < 11; f++) {
		uint32_t right = *fields[f];

		for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
			*fields[f] = wrong[n];
			expect_refused("outside");
		}
		*fields[f] = right;
	}
	ck_assert_ptr_null(emu_vport_attach(&view, base, size));
}
END_TEST

START_TEST(layout__default_queues__within_the_budget_of_an_endpoint)
{
	const struct emu_vport_shape shape = {
		.type = 1, .mpq_capacity = EMU_DEF_MPQ, .eq_capacity = EMU_DEF_EQ, .dq_capacity = EMU_DEF_DQ};

	ck_assert_uint_le(emu_vport_size(&shape), 3u << 19); /* 1.5 MiB */
}
END_TEST

/* ---- any segment --------------------------------------------------------- */

START_TEST(seg_check__formatted__is_right_for_its_kind_only)
{
	struct emu_seg_head head;

	emu_seg_format(&head, EMU_MAGIC_ENGINE, 4096);
	ck_assert_ptr_null(emu_seg_check(&head, EMU_MAGIC_ENGINE, 4096));
	ck_assert_ptr_nonnull(emu_seg_check(&head, EMU_MAGIC_NIC, 4096));
	ck_assert_ptr_nonnull(emu_seg_check(&head, EMU_MAGIC_ENGINE, 8192));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vport");
	TCase *layout = tcase_create("layout"), *attach = tcase_create("attach");

	tcase_add_loop_test(layout, layout__any_shape__parts_are_aligned_disjoint_and_inside, 0, SHAPES);
	tcase_add_test(layout, layout__queues_aside__as_long_as_what_they_are_about);
	tcase_add_loop_test(layout, format__shape__is_in_the_head, 0, SHAPES);
	tcase_add_loop_test(layout, attach__any_shape__view_points_to_the_parts, 0, SHAPES);
	tcase_add_test(layout, layout__default_queues__within_the_budget_of_an_endpoint);
	tcase_add_test(layout, seg_check__formatted__is_right_for_its_kind_only);
	tcase_add_checked_fixture(attach, setup, teardown);
	tcase_add_test(attach, attach__queues_filled__nothing_overwrites_another);
	tcase_add_test(attach, attach__wrong_magic__is_named);
	tcase_add_test(attach, attach__other_abi_version__is_named);
	tcase_add_test(attach, attach__other_layout_hash__is_named);
	tcase_add_test(attach, attach__other_total_size__is_named);
	tcase_add_test(attach, attach__reserved_word_not_zero__is_named);
	tcase_add_test(attach, attach__several_wrong__the_most_basic_is_named);
	tcase_add_test(attach, attach__too_short_for_a_head__is_named);
	tcase_add_test(attach, attach__too_short_for_a_port__is_named);
	tcase_add_loop_test(attach, attach__capacity_not_a_power_of_two__is_named, 0, 5);
	tcase_add_test(attach, attach__capacity_larger_than_the_segment__lies_outside);
	tcase_add_test(attach, attach__offset_wrong__lies_outside);
	suite_add_tcase(suite, layout);
	suite_add_tcase(suite, attach);
	return suite_run(suite);
}
