/* SPDX-License-Identifier: BSD-2-Clause */
/* test_board_pool.c - libglex/src/group/board_pool.c: who gets which memory, and when that goes. */
#include "unit.h"

#include "group/priv.h"

#define LEN GLEXI_BOARD_OF_FEW

/* ---- glex_ext.h, as far as it is used ------------------------------------------- */

static glex_device_t device[2];
static uint32_t pieces; /* that there are */
static bool is_short;	/* of memory */

glex_ret_t glex_alloc(glex_device_handle_t dev, uint64_t len, void **addr_p)
{
	(void)dev;
	*addr_p = is_short ? NULL : calloc(1, len);
	if (!*addr_p)
		return GLEX_NO_MEM_RESOURCE;
	pieces++;
	return GLEX_SUCCESS;
}

glex_ret_t glex_free(glex_device_handle_t dev, void *addr)
{
	(void)dev;
	free(addr);
	pieces--;
	return GLEX_SUCCESS;
}

/* ---- tests ------------------------------------------------------------------------ */

static void take(unsigned char **boards, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		boards[i] = glexi_board_take(&device[0], LEN);
		ck_assert_ptr_nonnull(boards[i]);
	}
}

static void give(unsigned char **boards, uint32_t n, enum glexi_board_state state)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		glexi_board_give(boards[i], state);
}

START_TEST(take__many__pieces_of_1_4_and_16_boards_that_do_not_overlap)
{
	unsigned char *boards[37];
	uint32_t i, k;

	for (i = 0; i < 37; i++) {
		take(&boards[i], 1);
		ck_assert_uint_eq(pieces, i < 1 ? 1 : i < 5 ? 2 : i < 21 ? 3 : 4);
		memset(boards[i], (int)i + 1, LEN);
	}
	for (i = 0; i < 37; i++)
		for (k = 0; k < LEN; k++)
			UNIT_CHECK(boards[i][k] == i + 1);
	give(boards, 37, GLEXI_BOARD_WRITTEN);
	ck_assert_uint_eq(pieces, 0);
}
END_TEST

START_TEST(take__one_that_was_given__all_zeros)
{
	unsigned char *boards[5], *again;

	take(boards, 5);
	memset(boards[3], 0xff, LEN);
	memset(boards[4], 0xff, LEN);
	glexi_board_give(boards[3], GLEXI_BOARD_WRITTEN);
	take(&again, 1);
	ck_assert_ptr_eq(again, boards[3]);
	ck_assert(unit_is_zero(again, LEN));
	ck_assert_uint_eq(boards[4][0], 0xff);
	ck_assert_uint_eq(boards[4][LEN - 1], 0xff);
	give(boards, 5, GLEXI_BOARD_WRITTEN);
}
END_TEST

/* Nobody touches it but who has it: a page that nobody needs need not be there. */
START_TEST(take__one_that_was_given_unwritten__as_it_is)
{
	unsigned char *boards[3], *again;

	take(boards, 3);
	boards[1][0] = 1;
	glexi_board_give(boards[1], GLEXI_BOARD_UNWRITTEN);
	take(&again, 1);
	ck_assert_ptr_eq(again, boards[1]);
	ck_assert_uint_eq(again[0], 1);
	give(boards, 3, GLEXI_BOARD_WRITTEN);
	ck_assert_uint_eq(pieces, 0);
}
END_TEST

/* I1, I2 */
START_TEST(take__one_was_spent__never_that_one)
{
	unsigned char *boards[6], *other;

	take(boards, 5);
	glexi_board_give(boards[2], GLEXI_BOARD_SPENT);
	take(&other, 1);
	ck_assert_ptr_ne(other, boards[2]);
	ck_assert_uint_eq(pieces, 3); /* the second has no room any more */
	glexi_board_give(boards[1], GLEXI_BOARD_WRITTEN);
	glexi_board_give(boards[3], GLEXI_BOARD_WRITTEN);
	glexi_board_give(boards[4], GLEXI_BOARD_SPENT);
	ck_assert_uint_eq(pieces, 2); /* what is spent holds none */
	glexi_board_give(boards[0], GLEXI_BOARD_WRITTEN);
	glexi_board_give(other, GLEXI_BOARD_WRITTEN);
	ck_assert_uint_eq(pieces, 0);
}
END_TEST

START_TEST(take__of_another_device_or_length__out_of_another_piece)
{
	unsigned char *boards[2];
	void *other, *longer;

	take(boards, 2); /* the second piece has room for three more */
	other = glexi_board_take(&device[1], LEN);
	longer = glexi_board_take(&device[0], GLEXI_BOARD);
	ck_assert_uint_eq(pieces, 4);
	memset(longer, 1, GLEXI_BOARD);
	ck_assert(unit_is_zero(other, LEN));
	glexi_board_give(other, GLEXI_BOARD_WRITTEN);
	glexi_board_give(longer, GLEXI_BOARD_WRITTEN);
	ck_assert_uint_eq(pieces, 2);
	give(boards, 2, GLEXI_BOARD_WRITTEN);
}
END_TEST

START_TEST(take__no_memory__null_and_later_a_board)
{
	unsigned char *board;

	is_short = true;
	ck_assert_ptr_null(glexi_board_take(&device[0], LEN));
	is_short = false;
	take(&board, 1);
	glexi_board_give(board, GLEXI_BOARD_WRITTEN);
	ck_assert_uint_eq(pieces, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("board_pool");
	TCase *tc = tcase_create("board_pool");

	tcase_add_test(tc, take__many__pieces_of_1_4_and_16_boards_that_do_not_overlap);
	tcase_add_test(tc, take__one_that_was_given__all_zeros);
	tcase_add_test(tc, take__one_that_was_given_unwritten__as_it_is);
	tcase_add_test(tc, take__one_was_spent__never_that_one);
	tcase_add_test(tc, take__of_another_device_or_length__out_of_another_piece);
	tcase_add_test(tc, take__no_memory__null_and_later_a_board);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
