/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * board.c - what members without a tree PUT into each other's boards: direct.h.
 *
 * More than DATA bytes take two lines.  Who only sends in a collective does not learn whether it
 * was read.  Who cannot know that there is room for a line has begun, but does not send yet: he
 * PUTs into `asked` of whom it is for which line must have been ended, who PUTs into his `ended` how
 * far he is when he has come to it.  Whoever asks is there for the answer, and so is who is asked,
 * since he needs what is held back.  Nothing else is PUT to a member who may have left.
 */
#include "group/direct.h"

#include <string.h>

/* ---- lines ---------------------------------------------------------------------- */

static uint32_t bytes_of(const struct glexi_direct *direct, uint32_t line)
{
	return line + 1 < direct->lines ? DATA : direct->bytes - DATA * line;
}

/* Those that are PUT: whole words. */
static uint32_t words_of(const struct glexi_direct *direct, uint32_t line)
{
	return (bytes_of(direct, line) + 7) & ~7u;
}

static uint32_t offset_of(uint32_t index)
{
	return (uint32_t)offsetof(struct glexi_board, line) + index * LINE;
}

/* Mostly a word or two, for which a call takes longer. */
static inline void copy(unsigned char *to, const unsigned char *from, uint32_t len)
{
	for (; len >= 8; len -= 8, to += 8, from += 8)
		memcpy(to, from, 8);
	for (; len; len--)
		*to++ = *from++;
}

void glexi_board_unpack(const struct glex_group *group, uint32_t from, void *data)
{
	const struct glexi_direct *direct = group->direct;
	const struct line *line;
	uint32_t i;

	for (i = 0; i < direct->lines; i++) {
		line = &direct->board->line[direct->place[i] + from];
		copy((unsigned char *)data + i * DATA, line->data + DATA - words_of(direct, i), bytes_of(direct, i));
	}
}

void glexi_board_pack(struct glex_group *group, const void *data)
{
	struct glexi_direct *direct = group->direct;
	uint32_t i;

	for (i = 0; i < direct->lines; i++)
		copy(direct->out[i].data + DATA - words_of(direct, i), (const unsigned char *)data + i * DATA,
		     bytes_of(direct, i));
}

glex_ret_t glexi_board_has(const struct glex_group *group, uint32_t from)
{
	const struct glexi_direct *direct = group->direct;
	uint64_t stamp, want;
	uint32_t i;

	for (i = 0; i < direct->lines; i++) {
		/* relaxed: stronger, pairs with the NIC: behind the last word of a PUT all of the line can be read (I3) */
		stamp = __atomic_load_n(&direct->board->line[direct->place[i] + from].stamp, __ATOMIC_ACQUIRE);
		want = direct->out[i].stamp;
		if (stamp != want)
			return stamp >> 24 == want >> 24 ? GLEX_SYS_ERR : GLEX_NO_MP;
	}
	return GLEX_SUCCESS;
}

glex_ret_t glexi_board_has_all(const struct glex_group *group)
{
	glex_ret_t ret = GLEX_SUCCESS;
	uint32_t i;

	for (i = group->n; i > 0 && ret == GLEX_SUCCESS; i--)
		if (i - 1 != group->me)
			ret = glexi_board_has(group, i);
	return ret;
}

/* ---- sending -------------------------------------------------------------------- */

static glex_ret_t put(struct glex_group *group, uint32_t other, uint32_t offset, const void *data, uint32_t len,
		      int32_t flag)
{
	const struct glex_group_card *card = &group->near[other].card;
	struct glex_imm_rdma_req req = {
		.rmt_ep_addr = card->up,
		.data = (void *)(uintptr_t)data,
		.len = len,
		.rmt_mh = card->mh,
		.rmt_offset = offset,
		.rmt_key = card->key,
		.flag = flag,
	};
	glex_ret_t ret = glex_imm_rdma(group->down, &req, NULL);

	group->direct->is_held = ret == GLEX_BUSY;
	return ret == GLEX_BUSY ? GLEX_NO_MP : ret;
}

/* Nothing has been asked for yet, so this changes nothing. */
void glexi_board_greet(struct glex_group *group)
{
	uint32_t i, at = (uint32_t)offsetof(struct glexi_board, asked) + 8 * group->me;
	uint64_t nothing = 0;

	for (i = 0; i < group->neighbours; i++)
		put(group, i, at, &nothing, sizeof(nothing), 0);
}

/* I2 */
static bool has_room(const struct glex_group *group, uint32_t other, uint64_t number)
{
	const struct glexi_direct *direct = group->direct;
	uint32_t member = other + (other >= group->me);

	return direct->lag + direct->window >= number || direct->known[member] + direct->window >= number ||
	       /* relaxed: stronger, pairs with the NIC: what was read before he said so may be overwritten */
	       __atomic_load_n(&direct->board->ended[member], __ATOMIC_ACQUIRE) + direct->window >= number;
}

/* For this line of what was begun; GLEX_NO_MP: there is none, and those it is for, up to end, have been asked. */
static glex_ret_t find_room(struct glex_group *group, uint32_t other, uint32_t end, uint32_t line)
{
	struct glexi_direct *direct = group->direct;
	uint32_t at = (uint32_t)offsetof(struct glexi_board, asked) + 8 * group->me;
	uint64_t number = first_of(direct) + line, half = number - 1 - direct->window / 2;
	glex_ret_t ret;

	if (has_room(group, other, number))
		return GLEX_SUCCESS;
	for (; direct->asked < number && other < end; other++) {
		if (has_room(group, other, number))
			continue;
		ret = put(group, other, at, &half, sizeof(half), GLEX_FLAG_FENCE);
		if (ret != GLEX_SUCCESS)
			return ret;
	}
	direct->asked = number;
	direct->is_held = true;
	return GLEX_NO_MP;
}

glex_ret_t glexi_board_send(struct glex_group *group, uint32_t first, uint32_t end, uint32_t from)
{
	struct glexi_direct *direct = group->direct;
	uint32_t left;
	glex_ret_t ret;

	for (; first + direct->to < end; direct->to++, direct->at = 0)
		for (; direct->at < direct->lines; direct->at++) {
			ret = find_room(group, first + direct->to, end, direct->at);
			if (ret != GLEX_SUCCESS)
				return ret;
			left = DATA - words_of(direct, direct->at);
			ret = put(group, first + direct->to, offset_of(direct->place[direct->at] + from) + left,
				  (unsigned char *)&direct->out[direct->at] + left, LINE - left, 0);
			if (ret != GLEX_SUCCESS)
				return ret;
		}
	direct->to = direct->at = 0;
	return GLEX_SUCCESS;
}

void glexi_board_lay_out(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint32_t i;

	for (i = 0; i < direct->lines; i++)
		direct->board->line[direct->place[i] + 1] = direct->out[i]; /* ordered by the addition */
}

/* To the same place here, where nobody else writes now. */
glex_ret_t glexi_board_ask(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	const struct glex_group_card *card = &group->near[0].card;
	struct glex_rdma_req req = {
		.rmt_ep_addr = card->up,
		.local_mh = group->mh,
		.rmt_mh = card->mh,
		.rmt_key = card->key,
		.type = GLEX_RDMA_TYPE_GET,
		.local_evt = {.cookie_0 = direct->seq, .cookie_1 = 1},
		.len = group->n * LINE,
	};
	glex_ret_t ret;

	for (; direct->at < direct->lines; direct->at++) {
		req.local_offset = req.rmt_offset = offset_of(direct->place[direct->at] + 1);
		req.flag = direct->at + 1 == direct->lines ? GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_FENCE : 0;
		ret = glex_rdma(group->up, &req, NULL);
		direct->is_held = ret == GLEX_BUSY;
		if (ret != GLEX_SUCCESS)
			return ret == GLEX_BUSY ? GLEX_NO_MP : ret;
	}
	direct->at = 0;
	direct->has_asked = true;
	return GLEX_SUCCESS;
}

/* ---- room ------------------------------------------------------------------------ */

glex_ret_t glexi_board_tell(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint64_t ended = direct->stage == OVER ? direct->seq : first_of(direct) - 1, asked;
	uint32_t i, at = (uint32_t)offsetof(struct glexi_board, ended) + 8 * group->me;
	glex_ret_t ret;

	for (i = 0; i < group->n; i++) {
		asked = __atomic_load_n(&direct->board->asked[i], __ATOMIC_RELAXED); /* relaxed: orders nothing */
		if (asked <= direct->told[i] || asked > ended)
			continue;
		ret = put(group, place_of(group, i), at, &ended, sizeof(ended), GLEX_FLAG_FENCE);
		if (ret == GLEX_SUCCESS)
			direct->told[i] = asked;
		else if (ret != GLEX_NO_MP) /* else with the next look */
			return ret;
	}
	return GLEX_SUCCESS;
}
