/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.c - collectives of few members, without a tree: they PUT into each other's boards.
 *
 *   bcast      the root PUTs its data into everybody's result line
 *   reduce     everybody PUTs an operand into his line on the root's board
 *   barrier, allreduce   everybody PUTs an operand into his line on the board where his team meets, then adds
 *              himself to `arrived` there.  Who finds that he is the last reads all lines, where they lie
 *              or by a GET, and combines them; of several teams he does the same where these meet.  The very last
 *              shows the result where all have met, or PUTs it to all others; so nobody has to be there but to begin.
 *              Of up to EXCHANGE members each PUTs to each instead.
 *
 * Gathers are in gather.c, what is shown in meet.c.
 *
 * What is waited for is a line of one's own board, or what is shown.  So where members outnumber
 * processors, each has to run but once for a collective, and a rank that waits costs one load.
 * Of several teams a reduction to one goes as that to all: a board has no room for lines from all.
 *
 * Who waits for long says so, by an MP to all others, and sleeps; who has sent something looks
 * whether there is such an MP, and wakes its sender.  An MP that was looked for too early is made
 * up for by sleeping but shortly at first.  It is said once a collective, however often that is waited for: who
 * computes takes none of these MPs, and has room for few.  One that is lost for want of room costs a slice.
 */
#include "group/direct.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS 200 /* rounds of eight looks before sleeping */
#define QUIET 64u /* collectives since somebody has been heard of who sleeps: that is long */

/* An MP. */
struct note {
	uint32_t from;
	uint32_t is_asleep; /* else: wake up */
	uint64_t seq;
};

static uint32_t others_of(const struct glex_group *group)
{
	return group->n - 1;
}

static bool is_for_all(const struct glex_group *group)
{
	return group->what == GLEXI_BARRIER || (group->what == GLEXI_GATHER && group->to_all) ||
	       (group->what == GLEXI_REDUCE && (group->to_all || group->direct->teams > 1));
}

/* Of what was begun. */
static bool is_all(const struct glex_group *group)
{
	return group->direct->all;
}

/* Those who only send come to the root's board. */
static bool is_to_one(const struct glex_group *group)
{
	return (group->what == GLEXI_REDUCE || group->what == GLEXI_GATHER) && !is_all(group);
}

/* What all members must have begun alike; the root they need not tell. */
EMU_TOGETHER static uint32_t what_of(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;

	if (group->what == GLEXI_GATHER)
		return (uint32_t)group->what | (uint32_t)group->to_all << 3 | (uint32_t)group->is_crossed << 4;
	if (group->what != GLEXI_REDUCE)
		return (uint32_t)group->what;
	if (group->is_by)
		return (uint32_t)group->what | (uint32_t)group->to_all << 2 | direct->bytes << 3 | GLEXI_BY;
	return (uint32_t)group->what | (uint32_t)group->to_all << 2 | (uint32_t)direct->own.bits << 3 |
	       (uint32_t)direct->own.count << 4 | (uint32_t)direct->own.op << 8;
}

/* What `lines`, `bytes` and `seq` say is how. */
EMU_TOGETHER static void stamp_lines(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint64_t first = first_of(direct);
	uint32_t i, left;

	for (i = 0; i < direct->lines; i++) {
		left = direct->bytes - DATA * i;
		mine_of(direct, i)->stamp =
			(first + i) << 24 | (uint64_t)direct->what << 8 | (i + 1 < direct->lines ? DATA : left);
	}
}

size_t glexi_direct_size(uint32_t n)
{
	return sizeof(struct glexi_direct) + (n - 1) * sizeof(uint64_t) + n * sizeof(uint32_t);
}

/* Behind the group, if it was opened for this: what each collective looks at is in few pages. */
static struct glexi_direct *place_for(struct glex_group *group)
{
	size_t size = glexi_direct_size(group->n);

	return group->direct_most ? memset(group + 1, 0, size) : calloc(1, size);
}

glex_ret_t glexi_direct_join(struct glex_group *group, const struct glex_group_card *cards)
{
	uint32_t others = others_of(group), i;
	struct glexi_direct *direct;

	if (group->n > GLEX_GROUP_DIRECT_MAX)
		return GLEX_INVALID_PARAM;
	direct = group->direct = place_for(group);
	if (!direct)
		return GLEX_NO_MEM_RESOURCE;
	group->near = calloc(others ? others : 1, sizeof(*group->near));
	if (!group->near)
		return GLEX_NO_MEM_RESOURCE;
	direct->board = group->board;
	direct->asleep = (uint32_t *)&direct->heard[others];
	direct->team = group->n <= FLAT ? group->n : TEAM;
	direct->teams = (group->n + direct->team - 1) / direct->team;
	direct->room = group->n <= GLEXI_FEW ? FEW_LINES : LINES;
	for (i = 0; i < others; i++)
		group->near[i] = cards[i + (i >= group->me)];
	group->neighbours = others;
	glexi_board_greet(group);
	glexi_board_find_way(group);
	return GLEX_SUCCESS;
}

/* The way goes with its endpoint. */
void glexi_direct_leave(struct glex_group *group)
{
	if (group->direct && !group->direct_most)
		free(group->direct);
	group->direct = NULL;
}

/* ---- operands ------------------------------------------------------------------- */

/* Bytes of a unit on a line: without a location, unless that has a meaning, or costs nothing. */
static uint32_t unit_of(const struct emu_operand *operand)
{
	bool loc = operand->op <= GLEX_COLL_REDUCE_MINLOC_UNSIGNED && operand->op % 3 != 0;

	return loc && operand->bits == GLEX_COLL_REDUCE_DATA_BITS_64 ? 16 : 8;
}

EMU_TOGETHER static void narrow(const struct glexi_direct *direct, const struct emu_operand *operand, unsigned char *to)
{
	uint32_t i;

	for (i = 0; i < operand->count; i++) /* memcpy of a length that is known is no call */
		if (direct->unit == 8)
			memcpy(to + i * 8, operand->unit[i], 8);
		else
			memcpy(to + i * 16, operand->unit[i], 16);
}

EMU_TOGETHER static void widen(const struct glexi_direct *direct, const unsigned char *from, unsigned char to[][16])
{
	uint32_t i;

	for (i = 0; i < direct->own.count; i++) {
		memset(to[i], 0, 16);
		if (direct->unit == 8)
			memcpy(to[i], from + i * 8, 8);
		else
			memcpy(to[i], from + i * 16, 16);
	}
}

/* Of all who meet with this one, in their order. */
EMU_TOGETHER static void combine(const struct glex_group *group, struct emu_operand *sum)
{
	const struct glexi_direct *direct = group->direct;
	uint32_t i, k, n = guests_of(group), mine = slot_of(group);
	const struct emu_operand *with;
	unsigned char room[2 * DATA];
	struct emu_operand theirs;

	for (i = 0; i < n; i++) {
		with = i == mine ? &direct->own : &theirs;
		if (i != mine) {
			memcpy(&theirs, &direct->own, EMU_OPERAND_HEAD);
			widen(direct, glexi_board_data(group, OPERAND, i, room), theirs.unit);
		}
		if (i != 0) {
			emu_reduce(sum, with);
			continue;
		}
		memcpy(sum, with, EMU_OPERAND_HEAD);
		for (k = 0; k < with->count; k++)
			memcpy(sum->unit[k], with->unit[k], sizeof(sum->unit[k]));
	}
}

/* As combine, but by the caller's function; the result takes the place of the own operand. */
EMU_TOGETHER static void combine_by(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint32_t i, n = guests_of(group), mine = slot_of(group);
	struct {
		_Alignas(max_align_t) unsigned char data[BY_LINES(2) * DATA];
	} room[2];
	unsigned char *left = NULL, *right;

	for (i = 0; i < n; i++, left = right) {
		right = room[i % 2].data;
		if (i == mine)
			glexi_board_own(direct, right);
		else
			glexi_board_unpack(group, OPERAND, i, right);
		if (left)
			direct->by.combine(left, right, direct->bytes, direct->by.arg);
	}
	glexi_board_pack(group, left);
}

EMU_TOGETHER static void deliver_by(struct glex_group *group)
{
	if (group->result)
		glexi_board_own(group->direct, group->result);
}

EMU_TOGETHER static void deliver(struct glex_group *group, const struct emu_operand *sum)
{
	unsigned char(*to)[sizeof(sum->unit[0])] = group->result;
	uint32_t i;

	for (i = 0; to && i < group->len; i++) /* as above */
		memcpy(to[i], sum->unit[i], sizeof(to[i]));
}

static glex_ret_t send_to(struct glex_group *group, uint32_t member)
{
	uint32_t to = place_of(group, member);

	return glexi_board_send(group, to, to + 1, OPERAND);
}

/* Those of others come to where the own one is to be, too. */
static bool gathers_here(const struct glex_group *group)
{
	return group->what == GLEXI_GATHER && (group->to_all ? group->direct->exchange : group->me == group->root);
}

EMU_TOGETHER static glex_ret_t do_send(struct glex_group *group)
{
	if (gathers_here(group))
		glexi_board_lay_out(group);
	if (group->direct->exchange)
		return glexi_board_send(group, 0, others_of(group), OPERAND);
	if (group->what == GLEXI_BCAST)
		return glexi_board_send(group, 0, others_of(group), RESULT);
	if (!is_all(group))
		return group->me == group->root ? GLEX_SUCCESS : send_to(group, group->root);
	if (host_of(group) != group->me)
		return send_to(group, host_of(group));
	glexi_board_lay_out(group);
	return GLEX_SUCCESS;
}

EMU_TOGETHER static glex_ret_t do_add(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint64_t one = glexi_direct_one(direct), old;
	uint32_t at = (uint32_t)offsetof(struct glexi_board, arrived) + 8 * direct->level;
	glex_ret_t ret = direct->is_shown ? glexi_meet_say_blind(group) : GLEX_SUCCESS;

	if (ret == GLEX_SUCCESS)
		ret = glexi_board_add(group, host_of(group), at, one, &old);
	if (ret != GLEX_SUCCESS)
		return ret == GLEX_ACCESS_ERR ? GLEX_SYS_ERR
					      : ret; /* who has died; nobody leaves before all have arrived */
	return glexi_direct_arrived(group, old + one);
}

EMU_TOGETHER glex_ret_t glexi_direct_arrived(struct glex_group *group, uint64_t sum)
{
	struct glexi_direct *direct = group->direct;
	uint64_t total = direct->total[direct->level];
	bool top = direct->level + 1 == LEVELS || direct->teams == 1;

	if ((uint32_t)sum != (uint32_t)total)
		return GLEX_SUCCESS;
	/* This is the last one. */
	direct->steps = (group->what == GLEXI_BARRIER ? 0 : 1u << GATHER) | 1u << (top ? SPREAD : CLIMB) |
			(uint32_t)direct->is_shown << SHOW;
	return sum == total ? GLEX_SUCCESS : GLEX_SYS_ERR; /* else some have begun something else */
}

/* The last one's: all operands. */
EMU_TOGETHER static glex_ret_t do_gather(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	struct emu_operand sum;
	unsigned char data[2 * DATA];
	glex_ret_t ret;

	if (host_of(group) != group->me && !glexi_board_reach(group)) {
		ret = direct->has_asked ? GLEX_SUCCESS : glexi_board_ask(group);
		if (ret == GLEX_SUCCESS)
			ret = glexi_board_answered(group);
		if (ret != GLEX_SUCCESS)
			return ret;
	}
	ret = glexi_board_has_all(group);
	direct->is_held = ret == GLEX_NO_MP; /* a network that reorders may have it under way */
	if (ret != GLEX_SUCCESS || group->what == GLEXI_GATHER)
		return ret;
	if (group->is_by) {
		combine_by(group);
		return GLEX_SUCCESS;
	}
	combine(group, &sum);
	memcpy(&direct->own, &sum, sizeof(sum));
	narrow(direct, &sum, data);
	glexi_board_pack(group, data);
	return GLEX_SUCCESS;
}

/* From the team to the teams, for all of it. */
static glex_ret_t do_climb(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;

	direct->level++;
	direct->operands = direct->board;
	direct->missing = NULL;
	direct->steps = (group->what == GLEXI_BARRIER ? 0 : 1u << SEND) | 1u << ADD | 1u << TAKE;
	return GLEX_SUCCESS;
}

EMU_TOGETHER static glex_ret_t do_spread(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret = GLEX_SUCCESS;

	direct->lag = direct->from; /* all have begun */
	if (group->what == GLEXI_GATHER)
		return glexi_gather_spread(group);
	if (direct->is_shown)
		ret = glexi_meet_find_blind(group, &direct->blind);
	if (ret == GLEX_SUCCESS && (!direct->is_shown || direct->blind))
		ret = glexi_board_send(group, 0, others_of(group), RESULT);
	if (ret != GLEX_SUCCESS || group->what != GLEXI_REDUCE)
		return ret;
	if (group->is_by)
		deliver_by(group);
	else
		deliver(group, &direct->own);
	return GLEX_SUCCESS;
}

/* ---- receiving ------------------------------------------------------------------ */

/* Of all, here. */
EMU_TOGETHER static glex_ret_t take_operands(struct glex_group *group)
{
	glex_ret_t ret = glexi_board_has_all(group);
	struct emu_operand sum;

	if (ret != GLEX_SUCCESS || group->what != GLEXI_REDUCE)
		return ret;
	if (group->is_by) {
		combine_by(group);
		deliver_by(group);
		return GLEX_SUCCESS;
	}
	combine(group, &sum);
	deliver(group, &sum);
	return GLEX_SUCCESS;
}

/* As it comes in one line. */
EMU_TOGETHER void glexi_direct_deliver(struct glex_group *group, const struct line *line)
{
	const unsigned char *data = line->data + DATA - glexi_words_of(group->direct, 0);

	if (group->what == GLEXI_BARRIER || !group->result)
		return;
	if (group->what == GLEXI_REDUCE && !group->is_by)
		widen(group->direct, data, group->result);
	else
		glexi_copy_words(group->result, data, group->len);
}

EMU_TOGETHER static glex_ret_t take_result(struct glex_group *group)
{
	glex_ret_t ret = glexi_board_has(group, RESULT, 0);
	unsigned char room[2 * DATA];
	const void *data;

	if (ret != GLEX_SUCCESS || group->what == GLEXI_BARRIER || !group->result)
		return ret;
	if (group->what == GLEXI_REDUCE && group->is_by) {
		glexi_board_unpack(group, RESULT, 0, group->result);
		return GLEX_SUCCESS;
	}
	data = glexi_board_data(group, RESULT, 0, room);
	if (group->what == GLEXI_REDUCE)
		widen(group->direct, data, group->result);
	else
		glexi_copy_words(group->result, data, group->len);
	return GLEX_SUCCESS;
}

/* Of one, or of who came last. */
static bool waits_for_result(const struct glex_group *group)
{
	return group->what != GLEXI_GATHER && !group->direct->exchange && !is_to_one(group);
}

EMU_TOGETHER static glex_ret_t do_take(struct glex_group *group)
{
	if (group->direct->looks)
		return glexi_meet_take(group);
	if (waits_for_result(group))
		return take_result(group);
	return group->what == GLEXI_GATHER ? glexi_gather_take(group) : take_operands(group);
}

/* ---- who sleeps ------------------------------------------------------------------- */

static void send_note(struct glex_group *group, uint32_t other, bool is_asleep)
{
	struct note note = {.from = group->me, .is_asleep = is_asleep, .seq = group->direct->seq};
	struct glex_imm_mp_req req = {.rmt_ep_addr = group->near[other].down, .data = &note, .len = sizeof(note)};

	/* If it is not taken, or there is no room for it (group.c overlooks that), somebody sleeps a little longer. */
	glex_send_imm_mp(group->down, &req, NULL);
}

static void take_note(struct glex_group *group, const void *mp, uint32_t len)
{
	struct note note;

	if (len != sizeof(note))
		return;
	memcpy(&note, mp, sizeof(note));
	if (note.is_asleep && note.from < group->n && note.from != group->me)
		group->direct->asleep[note.from] = (uint32_t)note.seq ? (uint32_t)note.seq : 1;
	group->direct->some_asleep = true;
	group->direct->quiet = 0;
}

/*
 * Others may wait for what this one has sent.  Who has only taken, and has not heard for long of anybody who sleeps,
 * looks now and then, so that he does hear of it: where all poll there is nothing to hear.
 */
EMU_TOGETHER static bool listens(const struct glexi_direct *direct)
{
	bool sends = direct->steps >> SEND & 1 && !(direct->steps >> ADD & 1);

	return sends || direct->steps >> SPREAD & 1 || direct->quiet < QUIET || (direct->seq & 6) == 0;
}

/* Whoever says so; all lines up to seq have been sent, or taken. */
EMU_TOGETHER static void wake(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	unsigned char mp[GLEXI_GROUP_MP];
	uint32_t i, len;

	while (listens(direct) && glex_receive_mp(group->down, 0, NULL, mp, &len) == GLEX_SUCCESS)
		take_note(group, mp, len);
	if (!direct->some_asleep)
		return;
	direct->some_asleep = false;
	for (i = 0; i < group->n; i++) {
		if (direct->asleep[i] && (int32_t)(direct->asleep[i] - (uint32_t)direct->seq) <= 0) {
			direct->asleep[i] = 0;
			send_note(group, place_of(group, i), false);
		}
		direct->some_asleep |= direct->asleep[i] != 0;
	}
}

/* To those who may have something to send. */
static void say_asleep(struct glex_group *group)
{
	uint32_t i;

	for (i = 0; i < group->n; i++) {
		if (i == group->me || (group->what == GLEXI_BCAST && i != group->root))
			continue;
		if (is_to_one(group) && glexi_board_has(group, OPERAND, i) == GLEX_SUCCESS)
			continue;
		send_note(group, place_of(group, i), true);
	}
}

/* ---- beginning, waiting ----------------------------------------------------------- */

EMU_TOGETHER static glex_ret_t do_stage(struct glex_group *group, enum stage stage)
{
	switch (stage) {
	case SEND:
		return do_send(group);
	case ADD:
		return do_add(group);
	case GATHER:
		return do_gather(group);
	case CLIMB:
		return do_climb(group);
	case SPREAD:
		return do_spread(group);
	default:
		return glexi_meet_show(group);
	}
}

/* Of what was begun, which has ended here: who has begun it, has ended what was before. */
EMU_TOGETHER static void learn(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint32_t i;

	if (is_all(group))
		direct->lag = direct->from;
	else if (group->me != group->root && group->what == GLEXI_BCAST)
		direct->heard[place_of(group, group->root)] = direct->from;
	else if (group->me == group->root && is_to_one(group))
		for (i = 0; i < group->neighbours; i++)
			direct->heard[i] = direct->from;
}

/* All that was to be done here of what was begun. */
EMU_TOGETHER void glexi_direct_finish(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;

	direct->stage = OVER;
	if (direct->is_shown)
		direct->shown_to = direct->up_to;
	learn(group);
	glexi_board_clear(group);
	glexi_board_say_ended(direct);
	direct->quiet += direct->quiet < QUIET;
	if (listens(direct) || direct->some_asleep)
		wake(group);
}

/* What comes before TAKE; GLEX_SUCCESS: it has been done. */
EMU_TOGETHER static glex_ret_t do_before(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret;
	uint32_t level;

	while (direct->steps >> direct->stage) {
		direct->stage += (uint32_t)__builtin_ctz(direct->steps >> direct->stage); /* the next that applies */
		if (direct->stage >= TAKE)
			return GLEX_SUCCESS;
		level = direct->level;
		ret = do_stage(group, direct->stage);
		if (ret != GLEX_SUCCESS)
			return ret;
		direct->stage = direct->level == level ? direct->stage + 1 : SEND;
	}
	direct->stage = OVER;
	return GLEX_SUCCESS;
}

/* As far as it goes without waiting; takes: what others send is looked for, too. */
EMU_TOGETHER static glex_ret_t advance(struct glex_group *group, bool takes)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret = GLEX_SUCCESS;

	direct->is_held = false;
	if (direct->stage < TAKE)
		ret = do_before(group);
	if (ret == GLEX_SUCCESS && direct->stage == TAKE)
		ret = takes ? do_take(group) : GLEX_NO_MP;
	if (ret == GLEX_SUCCESS)
		glexi_direct_finish(group);
	return ret;
}

/* What applies, as long as this one is not found to be the last. */
static uint32_t steps_of(const struct glex_group *group)
{
	bool root = group->me == group->root;

	if (group->direct->exchange)
		return 1u << SEND | 1u << TAKE;
	if (group->what == GLEXI_BCAST)
		return root ? 1u << SEND : 1u << TAKE;
	if (!is_all(group))
		return (root ? 1u << TAKE : 1u << SEND) | (gathers_here(group) ? 1u << SEND : 0);
	return (group->what == GLEXI_BARRIER ? 0 : 1u << SEND) | 1u << ADD | 1u << TAKE;
}

/* When all have arrived who meet for this one. */
static void expect_all(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint64_t one = glexi_direct_one(direct);

	direct->total[0] += guests_of(group) * one;
	direct->total[1] += direct->teams * one;
}

EMU_TOGETHER void *glexi_direct_operand(struct glex_group *group)
{
	return &group->direct->own;
}

EMU_TOGETHER void glexi_direct_by(struct glex_group *group, glex_group_combine_t function, void *arg)
{
	group->direct->by.combine = function;
	group->direct->by.arg = arg;
}

/* Of the ring, the next that is long enough in one piece. */
EMU_TOGETHER static void take_lines(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	bool has_operands = group->what == GLEXI_REDUCE || group->what == GLEXI_GATHER || direct->exchange;
	bool has_results = !direct->exchange && !is_to_one(group);
	uint32_t operands = has_operands ? direct->team + (direct->teams > 1 ? direct->teams : 0) : 0;
	uint32_t first = direct->first + (uint32_t)(direct->up_to - direct->from);
	uint32_t area = glexi_area_of(direct, operands), lines = area + has_results * direct->lines;

	direct->skip = 0;
	if (first + lines > direct->room) {
		direct->skip = direct->room - first;
		first = 0;
	}
	direct->from = direct->up_to + direct->skip;
	direct->first = first;
	direct->result = first + area;
	direct->up_to = direct->from + lines;
}

/* Of operands of more than two members: the others' are whole lines, which need no zeros afterwards. */
EMU_TOGETHER static uint32_t pitch_of(const struct glex_group *group)
{
	uint32_t bytes = group->direct->bytes;

	if (group->n <= EXCHANGE || bytes > LINE / 2 - 8)
		return LINE;
	return bytes > LINE / 4 - 8 ? LINE / 2 : LINE / 4;
}

/* An operand of units is in place. */
EMU_TOGETHER static void prepare(struct glex_group *group, const void *data, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	unsigned char units[2 * DATA];

	direct->bytes = len;
	if (group->what == GLEXI_REDUCE && !group->is_by) {
		direct->unit = unit_of(&direct->own);
		direct->bytes = direct->own.count * direct->unit;
		narrow(direct, &direct->own, units);
		data = units;
	}
	direct->lines = direct->bytes > DATA ? (direct->bytes + DATA - 1) / DATA : 1;
	direct->pitch = pitch_of(group);
	direct->seq += direct->lines;
	direct->what = what_of(group);
	take_lines(group);
	direct->mine = direct->out;
	direct->step = 1;
	if (direct->lines > 1 && group->what == GLEXI_REDUCE)
		glexi_board_keep(group);
	stamp_lines(group);
	if (direct->bytes && (group->what != GLEXI_BCAST || group->me == group->root))
		glexi_board_pack(group, data);
}

/* A line that all wait for, of one team; two have no third to show it. */
static bool is_shown(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;

	return direct->is_line && is_all(group) && direct->teams == 1;
}

static void expect(struct glex_group *group)
{
	if (group->direct->looks)
		glexi_meet_expect(group);
	else
		glexi_board_expect(group->direct);
}

/*
 * Of a collective of all, who begins does not look for what others send: mostly it is not there, or he takes the line
 * from them while they write; the wait looks for it anyway.  Nor of one line: glexi_meet_look takes that by less.
 */
EMU_TOGETHER glex_ret_t glexi_direct_begin(struct glex_group *group, void *data, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret;

	direct->stage = SEND;
	direct->level = 0;
	direct->all = is_for_all(group);
	direct->exchange = is_all(group) && group->n <= EXCHANGE;
	direct->has_asked = direct->has_said = false;
	direct->missing = NULL;
	direct->operands = direct->board;
	direct->to = direct->at = 0;
	prepare(group, data, len);
	direct->steps = steps_of(group);
	direct->is_line = direct->lines == 1 && waits_for_result(group);
	direct->is_shown = is_shown(group);
	direct->looks = direct->is_last_here = false;
	if (is_all(group) && !direct->exchange)
		expect_all(group);
	ret = GLEX_SUCCESS;
	if (!direct->is_shown || !glexi_meet_arrive(group, &ret)) {
		if (ret == GLEX_SUCCESS)
			ret = advance(group, !is_all(group) && !direct->is_line);
		if (direct->stage == TAKE && !direct->missing && waits_for_result(group))
			expect(group);
	}
	direct->failed = ret == GLEX_NO_MP ? GLEX_SUCCESS : ret; /* told by the wait */
	return GLEX_SUCCESS;
}

/* Looks for a while, and lets others run. */
static glex_ret_t look(struct glex_group *group)
{
	glex_ret_t ret = GLEX_NO_MP;
	int i;

	for (i = 1; i <= 8 * LOOKS && ret == GLEX_NO_MP; i++) {
		ret = advance(group, true);
		if (i % 8 == 0)
			sched_yield();
	}
	return ret;
}

/* What was missed last is not there yet: so much one word tells, without a round of all that is looked for. */
static bool is_vain(struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	uint64_t is;

	if (direct->looks)
		glexi_meet_expect(group); /* the board may have gone, and with it the word */
	if (direct->stage != TAKE || !direct->missing)
		return false;
	is = __atomic_load_n(direct->missing, __ATOMIC_RELAXED); /* relaxed: who finds it there loads it again */
	return (is ^ direct->missed) >> 24;
}

EMU_TOGETHER glex_ret_t glexi_direct_wait(struct glex_group *group, int32_t timeout)
{
	struct glexi_direct *direct = group->direct;
	unsigned char mp[GLEXI_GROUP_MP];
	int32_t slice;
	uint32_t len;
	glex_ret_t ret;

	if (direct->failed != GLEX_SUCCESS)
		return direct->failed;
	if (direct->stage == OVER)
		return GLEX_SUCCESS;
	if (!timeout && is_vain(group))
		return GLEX_NO_MP;
	ret = timeout ? look(group) : advance(group, true);
	while (ret == GLEX_NO_MP && timeout > 0) {
		slice = direct->is_held || !direct->has_said ? 1 : timeout; /* room tells nobody */
		if (!direct->is_held && !direct->has_said)
			say_asleep(group);
		direct->has_said |= !direct->is_held;
		ret = glex_receive_mp(group->down, slice, NULL, mp, &len);
		if (ret == GLEX_SUCCESS)
			take_note(group, mp, len);
		else if (ret == GLEX_NO_MP)
			timeout -= slice;
		else
			return ret;
		ret = advance(group, true);
	}
	return ret;
}

/* Only what others send is waited for, and nothing else: no room. */
EMU_TOGETHER const uint64_t *glexi_direct_word(const struct glex_group *group, uint64_t *value_p)
{
	const struct glexi_direct *direct = group->direct;

	*value_p = direct->missed;
	return direct->stage == TAKE ? direct->missing : NULL;
}
