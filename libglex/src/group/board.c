/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * board.c - what members without a tree PUT into each other's boards: direct.h.
 *
 * More than DATA bytes take two lines.  Who only sends in a collective does not learn whether it
 * was read.  So each member keeps on his own board how far he has come, and who may be without room reads it there.
 */
#include "group/direct.h"

#include <string.h>

/* ---- lines ---------------------------------------------------------------------- */

/* Where a line begins that ends where that does: an operand may be narrower. */
EMU_TOGETHER static uint32_t offset_of(const struct glexi_direct *direct, enum kind kind, uint32_t slot, uint32_t line)
{
	uint32_t at = direct->team * line + slot, begin = (uint32_t)offsetof(struct glexi_board, line);

	if (kind == RESULT)
		return begin + (direct->result + line) * LINE;
	if (direct->level)
		at = direct->team * direct->lines + direct->teams * line + slot;
	return begin + direct->first * LINE + (at + 1) * direct->pitch - LINE;
}

/* Where a row of operands begins. */
static uint32_t row_of(const struct glexi_direct *direct, uint32_t line)
{
	return offset_of(direct, OPERAND, 0, line) + LINE - direct->pitch;
}

EMU_TOGETHER static struct line *line_of(const struct glexi_direct *direct, enum kind kind, uint32_t slot,
					 uint32_t line)
{
	struct glexi_board *board = kind == OPERAND ? direct->operands : direct->board;

	return (struct line *)(void *)((char *)board + offset_of(direct, kind, slot, line));
}

EMU_TOGETHER static void unpack_line(const struct glexi_direct *direct, const struct line *line, uint32_t i,
				     unsigned char *data)
{
	glexi_copy_words(data + i * DATA, line->data + DATA - glexi_words_of(direct, i), glexi_bytes_of(direct, i));
}

EMU_TOGETHER void glexi_board_unpack(const struct glex_group *group, enum kind kind, uint32_t slot, void *data)
{
	const struct glexi_direct *direct = group->direct;
	uint32_t i;

	for (i = 0; i < direct->lines; i++)
		unpack_line(direct, line_of(direct, kind, slot, i), i, data);
}

EMU_TOGETHER void glexi_board_own(const struct glexi_direct *direct, void *data)
{
	uint32_t i;

	for (i = 0; i < direct->lines; i++)
		unpack_line(direct, mine_of(direct, i), i, data);
}

void glexi_board_keep(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;

	direct->mine = line_of(direct, OPERAND, slot_of(group), 0);
	direct->step = direct->team;
}

EMU_TOGETHER const void *glexi_board_data(const struct glex_group *group, enum kind kind, uint32_t slot, void *room)
{
	const struct glexi_direct *direct = group->direct;

	if (direct->lines == 1)
		return line_of(direct, kind, slot, 0)->data + DATA - glexi_words_of(direct, 0);
	glexi_board_unpack(group, kind, slot, room);
	return room;
}

EMU_TOGETHER void glexi_board_pack(struct glex_group *group, const void *data)
{
	struct glexi_direct *direct = group->direct;
	uint32_t i;

	for (i = 0; i < direct->lines; i++)
		glexi_copy_words(mine_of(direct, i)->data + DATA - glexi_words_of(direct, i),
				 (const unsigned char *)data + i * DATA, glexi_bytes_of(direct, i));
}

EMU_TOGETHER glex_ret_t glexi_board_has(struct glex_group *group, enum kind kind, uint32_t slot)
{
	struct glexi_direct *direct = group->direct;
	const uint64_t *stamp;
	uint64_t is, want;
	uint32_t i;

	for (i = 0; i < direct->lines; i++) {
		stamp = &line_of(direct, kind, slot, i)->stamp;
		/* relaxed: stronger, pairs with the NIC: behind the last word of a PUT all of the line can be read (I3) */
		is = __atomic_load_n(stamp, __ATOMIC_ACQUIRE);
		want = mine_of(direct, i)->stamp;
		if (is != want) {
			direct->missing = stamp;
			direct->missed = want;
			return is >> 24 == want >> 24 ? GLEX_SYS_ERR : GLEX_NO_MP;
		}
	}
	return GLEX_SUCCESS;
}

EMU_TOGETHER const struct line *glexi_board_expect(struct glexi_direct *direct)
{
	const struct line *line = line_of(direct, RESULT, 0, 0);

	direct->missing = &line->stamp;
	direct->missed = direct->mine->stamp;
	return line;
}

/* As below, where each has one line, and by less: all are there, most of the time. */
EMU_TOGETHER static bool has_lines(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	const uint64_t *stamp = &line_of(direct, OPERAND, 0, 0)->stamp;
	uint32_t i, n = guests_of(group), mine = slot_of(group);

	for (i = 0; i < n; i++, stamp += direct->pitch / sizeof(*stamp))
		/* relaxed: stronger, as above */
		if (i != mine && __atomic_load_n(stamp, __ATOMIC_ACQUIRE) != direct->mine->stamp)
			return false;
	return true;
}

EMU_TOGETHER glex_ret_t glexi_board_has_all(struct glex_group *group)
{
	glex_ret_t ret = GLEX_SUCCESS;
	uint32_t i;

	if (group->direct->lines == 1 && group->what != GLEXI_GATHER && has_lines(group))
		return GLEX_SUCCESS;
	/* The last one first: of several lines that one PUT brings its stamp alone is sure to be the last. */
	for (i = guests_of(group); i > 0 && ret == GLEX_SUCCESS; i--)
		if (i - 1 != slot_of(group) || group->what == GLEXI_GATHER)
			ret = glexi_board_has(group, OPERAND, i - 1);
	return ret;
}

/* ---- sending -------------------------------------------------------------------- */

/* Who that is, among the others; one's own board needs none.  None of another level. */
static uint32_t way_goes_to(const struct glex_group *group)
{
	return group->n == 2 ? 0 : place_of(group, group->me - group->me % group->direct->team);
}

void glexi_board_find_way(struct glex_group *group)
{
	const struct glex_group_card *card = &group->near[way_goes_to(group)];

	if (group->n == 2 || slot_of(group))
		glex_put_way_open(group->down, card->up, card->mh, card->key, &group->direct->way);
}

/* To that other one; NULL: there is none. */
static struct glex_put_way *way_to(const struct glex_group *group, uint32_t other)
{
	return other == way_goes_to(group) ? group->direct->way : NULL;
}

/* A few words, of which the last is the one that is looked for: it needs no call.  False: it has to be PUT. */
EMU_TOGETHER static bool store(struct glex_group *group, uint32_t other, uint32_t offset, const unsigned char *data,
			       uint32_t len)
{
	struct glex_put_way *way = way_to(group, other);
	uint64_t *to = way ? glex_put_place(way, offset, len) : NULL;
	uint64_t word;

	if (!to)
		return false;
	for (; len > 8; len -= 8, data += 8, to++)
		memcpy(to, data, 8);
	memcpy(&word, data, 8);
	/* relaxed: stronger, pairs with glexi_board_has: who finds it has all of the line (I3) */
	__atomic_store_n(to, word, __ATOMIC_RELEASE);
	return true;
}

EMU_TOGETHER static glex_ret_t put(struct glex_group *group, uint32_t other, uint32_t offset, const void *data,
				   uint32_t len, int32_t flag)
{
	const struct glex_group_card *card = &group->near[other];
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

/* Not what a board has that nobody gave up, and no other group's. */
static uint64_t broken_of(const struct glex_group_card *card)
{
	return UINT64_C(1) << 32 | card->key;
}

/* Not by an MP, for which there may be no room. */
void glexi_board_break(struct glex_group *group)
{
	uint64_t broken;
	uint32_t i;

	for (i = 0; i < group->neighbours; i++) {
		broken = broken_of(&group->near[i]);
		put(group, i, offsetof(struct glexi_board, broken), &broken, sizeof(broken), 0);
	}
}

bool glexi_board_is_broken(const struct glex_group *group)
{
	const uint64_t *broken = &group->direct->board->broken;

	return __atomic_load_n(broken, __ATOMIC_RELAXED) ==
	       broken_of(&group->card); /* relaxed: nothing comes with it */
}

glex_ret_t glexi_board_fetch(struct glex_group *group, uint32_t other, uint32_t offset, void *to, uint32_t len)
{
	const struct glex_group_card *card = &group->near[other];
	struct glex_imm_rdma_req req = {
		.rmt_ep_addr = card->up,
		.data = to,
		.len = len,
		.rmt_mh = card->mh,
		.rmt_offset = offset,
		.rmt_key = card->key,
	};

	return glex_fetch(group->down, &req);
}

/* Not by an addition, if it can be helped: that takes the line from its owner. */
glex_ret_t glexi_board_ask_ended(struct glex_group *group, uint32_t other, uint64_t *ended)
{
	uint32_t at = (uint32_t)offsetof(struct glexi_board, ended);
	glex_ret_t ret = glexi_board_fetch(group, other, at, ended, sizeof(*ended));

	if (ret == GLEX_NOT_IMPLEMENTED)
		ret = glexi_board_add(group, other + (other >= group->me), at, 0, ended);
	return ret == GLEX_ACCESS_ERR ? GLEX_SYS_ERR : ret;
}

/* No PUT: a network that reorders may hold one up until the member has left. */
void glexi_board_greet(struct glex_group *group)
{
	uint64_t ended;
	uint32_t i;

	for (i = 0; i < group->neighbours; i++)
		glexi_board_ask_ended(group, i, &ended);
}

bool glexi_board_is_astray(struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	enum kind kind = group->what == GLEXI_BCAST ? RESULT : OPERAND;
	uint64_t ended, before = direct->from - direct->skip;
	bool waits = direct->stage == TAKE && (direct->exchange || !direct->all);
	glex_ret_t ret;
	uint32_t i;

	for (i = 0; waits && i < group->n; i++) {
		if (i == group->me || (kind == RESULT && i != group->root))
			continue;
		if (glexi_board_has(group, kind, i) != GLEX_NO_MP)
			continue;
		ret = glexi_board_ask_ended(group, place_of(group, i), &ended);
		if (ret == GLEX_SYS_ERR || (ret == GLEX_SUCCESS && ended > before))
			return true;
	}
	return false;
}

/* On the board of that other one: he is asked if what is known of him will not do. */
static glex_ret_t find_room_of(struct glex_group *group, uint32_t other)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret = GLEX_SUCCESS;

	if (!glexi_fits(direct, direct->heard[other]))
		ret = glexi_board_ask_ended(group, other, &direct->heard[other]);
	if (ret != GLEX_SUCCESS)
		return ret;
	direct->is_held = !glexi_fits(direct, direct->heard[other]);
	return direct->is_held ? GLEX_NO_MP : GLEX_SUCCESS;
}

static glex_ret_t find_room_of_all(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret = GLEX_SUCCESS;
	uint64_t least = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < group->neighbours && ret == GLEX_SUCCESS; i++) {
		ret = find_room_of(group, i);
		if (direct->heard[i] < least)
			least = direct->heard[i];
	}
	if (ret == GLEX_SUCCESS)
		direct->lag = least;
	return ret;
}

/* I2.  Operands go to one other member. */
EMU_TOGETHER static glex_ret_t find_room(struct glex_group *group, uint32_t first, enum kind kind)
{
	if (glexi_fits(group->direct, group->direct->lag))
		return GLEX_SUCCESS;
	return kind == RESULT ? find_room_of_all(group) : find_room_of(group, first);
}

EMU_TOGETHER bool glexi_board_store(struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	uint32_t left = DATA - glexi_words_of(direct, 0);
	uint32_t at = offset_of(direct, OPERAND, slot_of(group), 0) + left;

	return store(group, place_of(group, host_of(group)), at, direct->mine->data + left, LINE - left);
}

/* Line i of `mine`, to that offset. */
EMU_TOGETHER static glex_ret_t send_line(struct glex_group *group, uint32_t other, uint32_t offset, uint32_t i)
{
	uint32_t left = DATA - glexi_words_of(group->direct, i);
	const unsigned char *data = (const unsigned char *)mine_of(group->direct, i) + left;

	if (store(group, other, offset + left, data, LINE - left))
		return GLEX_SUCCESS;
	return put(group, other, offset + left, data, LINE - left, 0);
}

glex_ret_t glexi_board_put_line(struct glex_group *group, uint32_t other, uint32_t offset)
{
	return send_line(group, other, offset, 0);
}

/* What is shown to others need not be sent to them. */
static bool is_sent(const struct glex_group *group, uint32_t other, enum kind kind)
{
	const struct glexi_direct *direct = group->direct;

	return kind != RESULT || !direct->is_shown || direct->blind >> (other + (other >= group->me)) & 1;
}

EMU_TOGETHER glex_ret_t glexi_board_send(struct glex_group *group, uint32_t first, uint32_t end, enum kind kind)
{
	struct glexi_direct *direct = group->direct;
	uint32_t at, other;
	glex_ret_t ret;

	ret = first == end ? GLEX_SUCCESS : find_room(group, first, kind); /* who is alone needs none */
	if (ret != GLEX_SUCCESS)
		return ret;
	for (; direct->at < direct->lines; direct->at++, direct->to = 0) {
		at = offset_of(direct, kind, slot_of(group), direct->at);
		for (; first + direct->to < end; direct->to++) {
			/* first to who comes behind: he is the next to send, as often as not */
			other = first + (direct->to + group->me) % (end - first);
			ret = is_sent(group, other, kind) ? send_line(group, other, at, direct->at) : GLEX_SUCCESS;
			if (ret != GLEX_SUCCESS)
				return ret;
		}
	}
	direct->to = direct->at = 0;
	return GLEX_SUCCESS;
}

EMU_TOGETHER void glexi_board_lay_out(struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	uint32_t i, left;
	struct line *to;

	for (i = 0; i < direct->lines; i++) {
		to = line_of(direct, OPERAND, slot_of(group), i);
		if (to == mine_of(direct, i))
			continue;
		left = DATA - glexi_words_of(direct, i);
		/* ordered by the addition */
		glexi_copy_words(to->data + left, mine_of(direct, i)->data + left, LINE - left);
	}
}

EMU_TOGETHER void glexi_board_clear(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	struct line *line = &direct->board->line[direct->first], *end = line + (direct->up_to - direct->from);

	if (group->n <= EXCHANGE || direct->pitch == LINE / 4)
		return;
	for (; line < end; line++) {
		memset(line->data + 8, 0, 8);
		memset(line->data + 24, 0, 8);
		memset(line->data + 40, 0, 8);
		line->stamp = 0;
	}
}

/* Of a reduction: nothing is written there, nor kept. */
EMU_TOGETHER bool glexi_board_reach(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	struct glex_put_way *way = way_to(group, place_of(group, host_of(group)));
	uint32_t end = offset_of(direct, OPERAND, guests_of(group) - 1, direct->lines - 1) + LINE;
	unsigned char *last = way && group->what == GLEXI_REDUCE ? glex_atomic_place(way, end - 8, 8) : NULL;

	direct->operands = last ? (struct glexi_board *)(void *)(last - (end - 8)) : direct->board;
	return last != NULL;
}

/* To the same place here, where nobody else writes now. */
glex_ret_t glexi_board_ask(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	const struct glex_group_card *card = &group->near[place_of(group, host_of(group))];
	struct glex_rdma_req req = {
		.rmt_ep_addr = card->up,
		.local_mh = group->mh,
		.rmt_mh = card->mh,
		.rmt_key = card->key,
		.type = GLEX_RDMA_TYPE_GET,
		.local_evt = {.cookie_0 = direct->seq, .cookie_1 = 1},
		.len = guests_of(group) * direct->pitch,
	};
	glex_ret_t ret;

	for (; direct->at < direct->lines; direct->at++) {
		req.local_offset = req.rmt_offset = row_of(direct, direct->at);
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

static glex_ret_t put_row(struct glex_group *group, uint32_t other, bool last)
{
	struct glexi_direct *direct = group->direct;
	const struct glex_group_card *card = &group->near[other];
	uint32_t at = row_of(direct, direct->at);
	struct glex_rdma_req req = {
		.rmt_ep_addr = card->up,
		.local_mh = group->mh,
		.local_offset = at,
		.rmt_mh = card->mh,
		.rmt_offset = at,
		.rmt_key = card->key,
		.type = GLEX_RDMA_TYPE_PUT,
		.local_evt = {.cookie_0 = direct->seq, .cookie_1 = 1},
		.len = guests_of(group) * direct->pitch,
		.flag = last ? GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_FENCE : 0,
	};
	glex_ret_t ret = glex_rdma(group->up, &req, NULL);

	direct->is_held = ret == GLEX_BUSY;
	return ret == GLEX_BUSY ? GLEX_NO_MP : ret;
}

/* All have begun, so they have read what was at these places before. */
glex_ret_t glexi_board_share(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint32_t host = host_of(group), line, left, lines = direct->lines;
	glex_ret_t ret = GLEX_SUCCESS;

	for (; direct->at < lines; direct->at++, direct->to = 0) {
		line = offset_of(direct, RESULT, 0, direct->at);
		left = DATA - glexi_words_of(direct, direct->at);
		for (; direct->to < group->neighbours; direct->to++) {
			if (host != group->me && direct->to == place_of(group, host))
				ret = put(group, direct->to, line + left, mine_of(direct, direct->at)->data + left,
					  LINE - left, 0);
			else
				ret = put_row(group, direct->to,
					      direct->at + 1 == lines && direct->to + 1 == group->neighbours);
			if (ret != GLEX_SUCCESS)
				return ret;
		}
	}
	direct->to = direct->at = 0;
	direct->has_asked = true;
	return GLEX_SUCCESS;
}

glex_ret_t glexi_board_answered(struct glex_group *group)
{
	glex_event_t *event;
	glex_ret_t ret = glex_probe_first_event(group->up, 0, &event);

	group->direct->is_held = true;
	if (ret != GLEX_SUCCESS)
		return ret == GLEX_NO_EVENT ? GLEX_NO_MP : ret;
	glex_discard_probed_event(group->up);
	group->direct->has_asked = false;
	return GLEX_SUCCESS;
}

static glex_ret_t add_by_nic(struct glex_group *group, uint32_t member, uint32_t offset, uint64_t value, uint64_t *old)
{
	const struct glex_group_card *card = member == group->me ? &group->card : &group->near[place_of(group, member)];
	struct glex_atomic_req req = {
		.field_mask = GLEX_ATOMIC_FIELD_TARGET | GLEX_ATOMIC_FIELD_OP,
		.rmt_ep_addr = card->up,
		.rmt_mh = card->mh,
		.rmt_offset = offset,
		.rmt_key = card->key,
		.op = GLEX_ATOMIC_ADD,
		.width = 8,
		.operand = value,
	};
	glex_ret_t ret = glex_atomic(group->down, &req, old);

	group->direct->is_held = ret == GLEX_BUSY;
	if (ret == GLEX_ACCESS_ERR)
		return GLEX_SYS_ERR; /* who has died: nobody leaves before all have been there */
	return ret == GLEX_BUSY ? GLEX_NO_MP : ret;
}

/* The word, where this process itself can add to it; NULL: the NIC has to. */
static uint64_t *word_at(struct glex_group *group, uint32_t member, uint32_t offset)
{
	struct glex_put_way *way;

	if (member == group->me)
		return (uint64_t *)(void *)((char *)group->direct->board + offset);
	way = way_to(group, place_of(group, member));
	return way ? glex_atomic_place(way, offset, 8) : NULL;
}

EMU_TOGETHER glex_ret_t glexi_board_add(struct glex_group *group, uint32_t member, uint32_t offset, uint64_t value,
					uint64_t *old)
{
	uint64_t *word = word_at(group, member, offset);

	if (!word)
		return add_by_nic(group, member, offset, value, old);
	/* relaxed: stronger, as the NIC does it */
	*old = __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
	return GLEX_SUCCESS;
}

EMU_TOGETHER void glexi_board_say_ended(struct glexi_direct *direct)
{
	/* relaxed: stronger, pairs with the NIC: what was read before this may be overwritten */
	__atomic_store_n(&direct->board->ended, direct->up_to, __ATOMIC_RELEASE);
}
