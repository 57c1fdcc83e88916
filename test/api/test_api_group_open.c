/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_group_open.c - what a group takes: memory, endpoints.
 */
#include <malloc.h>
#include <stdio.h>

#include "test/api/group.h"

/* Bytes of the heap in use; 0 where a sanitizer has another one. */
static size_t heap_used(void)
{
	return mallinfo2().uordblks;
}

/* What a group's endpoints take of the heap, which is not asked for here. */
static size_t heap_of_ends(int n)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = 1};
	size_t before = heap_used(), used;
	glex_ep_handle_t ep[2];
	int i;

	for (i = 0; i < n; i++)
		OK(glex_create_ep(dev, &attr, &ep[i]));
	used = heap_used() - before;
	for (i = 0; i < n; i++)
		OK(glex_destroy_ep(ep[i]));
	return used;
}

#define BOARD	     4544u
#define BOARD_OF_FEW 2560u
#define FEW	     16u

/* What the first one makes for others, too: a piece of memory for boards. */
static void open_some(const struct crowd *c, bool direct, glex_group_t some[2])
{
	struct glex_group_card card;
	int i;

	for (i = 0; i < 2; i++)
		OK(glex_group_open(dev, c->type, direct ? c->n : 0, &some[i], &card));
}

/* Beside its endpoints, of one more group. */
START_TEST(group__joined__memory_is_a_board_and_little_more_than_the_cards)
{
	static const uint32_t members[] = {2, 8, 16, 32, 64};
	struct glex_group_card card, cards[GLEX_GROUP_DIRECT_MAX];
	bool direct = _i < 5;
	struct crowd c = {.n = members[_i % 5]};
	glex_group_t some[2];
	size_t before, used, ends, board = direct ? (c.n > FEW ? BOARD : BOARD_OF_FEW) : 0;
	uint32_t i;

	OK(glex_open_device(0, &dev));
	open_some(&c, direct, some);
	ends = heap_of_ends(direct ? 1 : 2);
	before = heap_used();
	OK(glex_group_open(dev, c.type, direct ? c.n : 0, &group, &card));
	for (i = 0; i < c.n; i++)
		cards[i] = card;
	OK(glex_group_join(group, cards, c.n, c.n - 1, direct ? GLEX_GROUP_DIRECT : GLEX_GROUP_KARY, direct ? 0 : 8));
	used = heap_used() - before;
	used = (used > ends ? used - ends : 0) + board;
	printf("# %s, %u members: %zu bytes\n", direct ? "direct" : "k-ary", c.n, used);
	ck_assert_uint_le(used, direct ? board + 1024 + c.n * (sizeof(card) + 12) : 1280 + c.n * 8);
	if (direct && c.n <= FEW)
		ck_assert_uint_le(used, 4096);
	OK(glex_group_close(some[0]));
	OK(glex_group_close(some[1]));
	close_group();
}
END_TEST

/* One endpoint does where there is to be no tree, for so many members; and no tree is joined then. */
START_TEST(open__for_no_tree__one_endpoint_and_no_more_members)
{
	struct glex_group_card card, cards[4];
	uint32_t i;

	OK(glex_open_device(0, &dev));
	OK(glex_group_open(dev, GLEX_EP_TYPE_FAST, 3, &group, &card));
	ck_assert_uint_eq(card.up.v, card.down.v);
	for (i = 0; i < 4; i++)
		cards[i] = card;
	RETURNS(glex_group_join(group, cards, 4, 0, GLEX_GROUP_DIRECT, 0), GLEX_INVALID_PARAM);
	RETURNS(glex_group_join(group, cards, 3, 0, GLEX_GROUP_KARY, 2), GLEX_INVALID_PARAM);
	OK(glex_group_join(group, cards, 1, 0, GLEX_GROUP_DIRECT, 0));
	OK(glex_group_barrier(group));
	OK(glex_group_wait(group, WAIT_MS));
	close_group();
}
END_TEST

/* Mappings of memory that was allocated. */
static uint32_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	uint32_t n = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:glex_alloc") != NULL;
	fclose(f);
	return n;
}

/* 1, 4, 16 and 16 boards. */
START_TEST(open__many_for_no_tree__few_pieces_of_memory_and_none_when_all_are_closed)
{
	struct glex_group_card card;
	glex_group_t groups[22];
	uint32_t before, i;

	OK(glex_open_device(0, &dev));
	before = mappings();
	for (i = 0; i < 22; i++)
		OK(glex_group_open(dev, GLEX_EP_TYPE_EMULATE, 2, &groups[i], &card));
	ck_assert_uint_eq(mappings() - before, 4);
	for (i = 0; i < 22; i++)
		OK(glex_group_close(groups[i]));
	ck_assert_uint_eq(mappings(), before);
	OK(glex_close_device(dev));
}
END_TEST

/* The endpoints of a group hold the device. */
START_TEST(close__after_the_device__gives_its_memory_back)
{
	struct glex_group_card card;

	OK(glex_open_device(0, &dev));
	OK(glex_group_open(dev, GLEX_EP_TYPE_FAST, 2, &group, &card));
	OK(glex_close_device(dev));
	OK(glex_group_close(group));
	ck_assert_uint_eq(mappings(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_open");
	TCase *tc = tcase_create("group_open");

	own_job("group-open");
	tcase_add_loop_test(tc, group__joined__memory_is_a_board_and_little_more_than_the_cards, 0, 10);
	tcase_add_test(tc, open__for_no_tree__one_endpoint_and_no_more_members);
	tcase_add_test(tc, open__many_for_no_tree__few_pieces_of_memory_and_none_when_all_are_closed);
	tcase_add_test(tc, close__after_the_device__gives_its_memory_back);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
