/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * board_pool.c - memory of boards, several in a piece.
 *
 * A piece of shareable memory costs glexd a descriptor, and each process that reaches it a mapping, of which the system
 * allows 65,530.  So groups share them: the first piece has room for one board, the second for four, others for 16;
 * not much lies idle, of few groups or of many.
 *
 * I1  A board that others could still write to is never used again: who checks that he may, and is kept from
 *     running before he does, writes later.  It is spent, and goes with its piece.
 * I2  A piece goes with the last of its boards that is in use.  Whoever has one has endpoints, and so the device.
 *
 * Boards are taken and given by any thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "group/priv.h"

#define BOARDS_MAX 16u /* of a piece */

struct piece {
	struct piece *next;
	glex_device_handle_t dev;
	unsigned char *base;
	uint32_t len;	  /* of a board */
	uint32_t count;	  /* boards */
	uint32_t in_use;  /* how many */
	uint32_t taken;	  /* a bit each: in use, or spent */
	uint32_t written; /* a bit each: it may be not all zeros */
};

static struct piece *pieces; /* under the mutex */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void lock_pieces(void)
{
	pthread_mutex_lock(&mutex);
}

static void unlock_pieces(void)
{
	pthread_mutex_unlock(&mutex);
}

/* Else a child that another thread forks meanwhile could open no group. */
static void init_once(void)
{
	pthread_atfork(lock_pieces, unlock_pieces, unlock_pieces);
}

static struct piece *new_piece(glex_device_handle_t dev, uint32_t len, uint32_t count)
{
	struct piece *piece = calloc(1, sizeof(*piece));
	void *base;

	if (!piece || glex_alloc(dev, (uint64_t)len * count, &base) != GLEX_SUCCESS) {
		free(piece);
		return NULL;
	}
	*piece = (struct piece){.next = pieces, .dev = dev, .base = base, .len = len, .count = count};
	pieces = piece;
	return piece;
}

static uint32_t all_of(const struct piece *piece)
{
	return (1u << piece->count) - 1;
}

/* With room for one more. */
static struct piece *find_piece(glex_device_handle_t dev, uint32_t len)
{
	struct piece *piece;
	uint32_t count = 1;

	for (piece = pieces; piece; piece = piece->next) {
		if (piece->dev != dev || piece->len != len)
			continue;
		if (piece->taken != all_of(piece))
			return piece;
		count = 4 * piece->count > count ? 4 * piece->count : count;
	}
	return new_piece(dev, len, count < BOARDS_MAX ? count : BOARDS_MAX);
}

static void *take_of(struct piece *piece)
{
	uint32_t i = (uint32_t)__builtin_ctz(~piece->taken);
	unsigned char *board = piece->base + (size_t)i * piece->len;

	if (piece->written >> i & 1)
		memset(board, 0, piece->len);
	piece->taken |= 1u << i;
	piece->in_use++;
	return board;
}

void *glexi_board_take(glex_device_handle_t dev, uint32_t len)
{
	struct piece *piece;
	void *board = NULL;

	pthread_once(&once, init_once);
	lock_pieces();
	piece = find_piece(dev, len);
	if (piece)
		board = take_of(piece);
	unlock_pieces();
	return board;
}

static bool is_in(const struct piece *piece, const unsigned char *board)
{
	return board >= piece->base && board < piece->base + (size_t)piece->len * piece->count;
}

void glexi_board_give(void *board, enum glexi_board_state state)
{
	struct piece **at, *piece;
	uint32_t bit;

	lock_pieces();
	for (at = &pieces; !is_in(*at, board); at = &(*at)->next)
		;
	piece = *at;
	bit = 1u << (uint32_t)(((unsigned char *)board - piece->base) / piece->len);
	if (state != GLEXI_BOARD_SPENT)
		piece->taken &= ~bit;
	if (state != GLEXI_BOARD_UNWRITTEN)
		piece->written |= bit;
	if (--piece->in_use == 0) {
		*at = piece->next;
		glex_free(piece->dev, piece->base);
		free(piece);
	}
	unlock_pieces();
}
