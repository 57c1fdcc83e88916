/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.c - collectives of few members, without a tree: they PUT into each other's boards.
 *
 *   board   | arrived 64 | ended 8 x 16 | asked 8 x 16 | place 0 | place 1 | ...       line q is at place q % window
 *   place   | result | from member 0 | from member 1 | ...              lines of 64 bytes
 *   line    | ... | data, to the right | stamp 8 |                      stamp: line's number, what, bytes
 *
 *   bcast      the root PUTs its data into everybody's result line
 *   reduce     everybody PUTs an operand into his line on the root's board
 *   barrier, allreduce   everybody PUTs an operand into his line on member 0's board, then adds
 *              himself to `arrived` there.  Who finds that he is the last GETs all lines, combines
 *              them, and PUTs the result to all others; so nobody has to be there but to begin.
 *              Of up to EXCHANGE members each PUTs to each instead.
 *
 * What is waited for is always a line of one's own board.  So where members outnumber
 * processors, each has to run but once for a collective, and a rank that waits costs one load.
 *
 * More than DATA bytes take two lines.  Who only sends in a collective does not learn whether it
 * was read.  Who cannot know that there is room for a line has begun, but does not send yet: he
 * PUTs into `asked` of whom it is for which line must have been ended, who PUTs into his `ended` how
 * far he is when he has come to it.  Whoever asks is there for the answer, and so is who is asked,
 * since he needs what is held back.  Nothing else is PUT to a member who may have left.
 *
 * Who waits for long says so, by an MP to all others, and sleeps; who has sent something looks
 * whether there is such an MP, and wakes its sender.  An MP that was looked for too early is made
 * up for by sleeping but shortly at first.
 *
 * I1  ended[i], known[i] and lag are not ahead of what i, and all others, have ended.
 * I2  line q is PUT to i while i has ended line q - window.
 * I3  a stamp is the last of its line that becomes visible; it is read first.
 */
#include "group/priv.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/nic/reduce.h"

#define LINE	 64u
#define DATA	 (LINE - 8u)
#define EXCHANGE 2u  /* members that send each to each: one way there, and no third party */
#define LOOKS	 200 /* rounds of eight looks before sleeping */

struct line {
	unsigned char data[DATA];
	uint64_t stamp;
};

struct glexi_board {
	uint64_t arrived; /* member 0's: how many, and above 32 bits at what, in sum since the beginning */
	unsigned char apart[LINE - 8];
	uint64_t ended[GLEX_GROUP_DIRECT_MAX];
	uint64_t asked[GLEX_GROUP_DIRECT_MAX]; /* for more than this one has ended: to be told */
	struct line line[(GLEXI_BOARD - LINE - 2 * 8 * GLEX_GROUP_DIRECT_MAX) / LINE];
};

static_assert(sizeof(struct glexi_board) <= GLEXI_BOARD && offsetof(struct glexi_board, line) % LINE == 0, "lines");
static_assert(2 * DATA >= GLEXI_GROUP_MP, "all that a collective carries is in two lines");

#define LINES ((uint32_t)(sizeof(((struct glexi_board *)0)->line) / LINE))

static_assert(LINES / (GLEX_GROUP_DIRECT_MAX + 1) >= 3,
	      "who has two lines to send need not wait for the next to begin");

/* What a member has still to do for what was begun; what does not apply is skipped. */
enum stage { SEND, ADD, GATHER, SPREAD, TAKE, OVER };

struct glexi_direct {
	struct glexi_board *board;
	uint32_t window;  /* places */
	uint64_t seq;	  /* the last line of what was begun */
	uint64_t total;	  /* what `arrived` comes to when everybody is there */
	uint64_t lag;	  /* what all others are known to have ended */
	uint64_t *told;	  /* by member: what he has asked for and been told */
	uint64_t *known;  /* what each is known to have ended, from what he sent */
	uint64_t *asleep; /* who is to be woken, by member: when this line is sent; 0: not */
	/* of what was begun */
	enum stage stage;
	glex_ret_t failed;
	bool exchange, is_last, has_asked, is_held; /* is_held: for want of room */
	uint64_t asked;				    /* whoever has no room for this line has been asked */
	uint32_t to, at;			    /* where the next one goes, which line */
	uint32_t lines, bytes, unit;		    /* lines, their data, that of a unit */
	struct emu_operand own;
	struct line out[2];
};

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

/* The place of member i among the others. */
static uint32_t place_of(const struct glex_group *group, uint32_t i)
{
	return i - (i > group->me);
}

glex_ret_t glexi_direct_join(struct glex_group *group, const struct glex_group_card *cards)
{
	uint32_t others = others_of(group), i;
	struct glexi_direct *direct;

	if (group->n > GLEX_GROUP_DIRECT_MAX)
		return GLEX_INVALID_PARAM;
	direct = group->direct = calloc(1, sizeof(*direct));
	if (!direct)
		return GLEX_NO_MEM_RESOURCE;
	group->near = calloc(others + 1, sizeof(*group->near));
	direct->asleep = calloc(3 * group->n, sizeof(*direct->asleep));
	if (!group->near || !direct->asleep)
		return GLEX_NO_MEM_RESOURCE;
	direct->told = direct->asleep + group->n;
	direct->known = direct->told + group->n;
	direct->board = group->board;
	direct->window = LINES / (group->n + 1);
	for (i = 0; i < others; i++)
		group->near[i].card = cards[i + (i >= group->me)];
	group->neighbours = others;
	return GLEX_SUCCESS;
}

void glexi_direct_leave(struct glex_group *group)
{
	if (!group->direct)
		return;
	free(group->direct->asleep);
	free(group->direct);
	group->direct = NULL;
}

/* ---- lines ---------------------------------------------------------------------- */

static bool is_all(const struct glex_group *group)
{
	return group->what == GLEXI_BARRIER || (group->what == GLEXI_REDUCE && group->to_all);
}

/* What all members must have begun alike; the root they need not tell. */
static uint32_t what_of(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;

	if (group->what != GLEXI_REDUCE)
		return (uint32_t)group->what;
	return (uint32_t)group->what | (uint32_t)group->to_all << 2 | (uint32_t)direct->own.bits << 3 |
	       (uint32_t)direct->own.count << 4 | (uint32_t)direct->own.op << 8;
}

static uint64_t first_of(const struct glexi_direct *direct)
{
	return direct->seq + 1 - direct->lines;
}

static uint32_t bytes_of(const struct glexi_direct *direct, uint32_t line)
{
	return line + 1 < direct->lines ? DATA : direct->bytes - DATA * line;
}

/* Those that are PUT: whole words. */
static uint32_t words_of(const struct glexi_direct *direct, uint32_t line)
{
	return (bytes_of(direct, line) + 7) & ~7u;
}

static uint64_t stamp_of(const struct glex_group *group, uint32_t line)
{
	const struct glexi_direct *direct = group->direct;

	return (first_of(direct) + line) << 24 | (uint64_t)what_of(group) << 8 | bytes_of(direct, line);
}

/* Its index: of member `from`, or (0) the result, counted from 1. */
static uint32_t line_at(const struct glex_group *group, uint32_t line, uint32_t from)
{
	const struct glexi_direct *direct = group->direct;

	return (uint32_t)((first_of(direct) + line) % direct->window) * (group->n + 1) + from;
}

static uint32_t offset_of(uint32_t index)
{
	return (uint32_t)offsetof(struct glexi_board, line) + index * LINE;
}

/* The data of all lines from there (as line_at) on the own board. */
static void unpack(const struct glex_group *group, uint32_t from, void *data)
{
	const struct glexi_direct *direct = group->direct;
	const struct line *line;
	uint32_t i;

	for (i = 0; i < direct->lines; i++) {
		line = &direct->board->line[line_at(group, i, from)];
		if (bytes_of(direct, i))
			memcpy((unsigned char *)data + i * DATA, line->data + DATA - words_of(direct, i),
			       bytes_of(direct, i));
	}
}

static void pack(const struct glex_group *group, struct line *line, const void *data)
{
	const struct glexi_direct *direct = group->direct;
	uint32_t i;

	for (i = 0; i < direct->lines; i++, line++) {
		if (bytes_of(direct, i))
			memcpy(line->data + DATA - words_of(direct, i), (const unsigned char *)data + i * DATA,
			       bytes_of(direct, i));
		line->stamp = stamp_of(group, i);
	}
}

/* All lines from there (as line_at) are on the own board; GLEX_SYS_ERR: they belong to something else. */
static glex_ret_t is_there(const struct glex_group *group, uint32_t from)
{
	const struct glexi_direct *direct = group->direct;
	uint64_t stamp, want;
	uint32_t i;

	for (i = 0; i < direct->lines; i++) {
		/* relaxed: stronger, pairs with the NIC: behind the last word of a PUT all of the line can be read (I3) */
		stamp = __atomic_load_n(&direct->board->line[line_at(group, i, from)].stamp, __ATOMIC_ACQUIRE);
		want = stamp_of(group, i);
		if (stamp != want)
			return stamp >> 24 == want >> 24 ? GLEX_SYS_ERR : GLEX_NO_MP;
	}
	return GLEX_SUCCESS;
}

/* The same of all members but this one, who is there. */
static glex_ret_t are_there(const struct glex_group *group)
{
	glex_ret_t ret = GLEX_SUCCESS;
	uint32_t i;

	for (i = group->n; i > 0 && ret == GLEX_SUCCESS; i--)
		if (i - 1 != group->me)
			ret = is_there(group, i);
	return ret;
}

/* ---- operands ------------------------------------------------------------------- */

/* Bytes of a unit on a line: without a location, unless that has a meaning, or costs nothing. */
static uint32_t unit_of(const struct emu_operand *operand)
{
	bool loc = operand->op <= GLEX_COLL_REDUCE_MINLOC_UNSIGNED && operand->op % 3 != 0;

	return loc && operand->bits == GLEX_COLL_REDUCE_DATA_BITS_64 ? 16 : 8;
}

static void narrow(const struct glexi_direct *direct, const struct emu_operand *operand, unsigned char *to)
{
	uint32_t i;

	for (i = 0; i < operand->count; i++)
		memcpy(to + i * direct->unit, operand->unit[i], direct->unit);
}

static void widen(const struct glexi_direct *direct, const unsigned char *from, struct emu_operand *operand)
{
	uint32_t i;

	memcpy(operand, &direct->own, EMU_OPERAND_HEAD);
	memset(operand->unit, 0, sizeof(operand->unit));
	for (i = 0; i < operand->count; i++)
		memcpy(operand->unit[i], from + i * direct->unit, direct->unit);
}

/* Of all members, in their order. */
static void combine(const struct glex_group *group, struct emu_operand *sum)
{
	const struct glexi_direct *direct = group->direct;
	unsigned char data[2 * DATA];
	struct emu_operand with;
	uint32_t i;

	for (i = 0; i < group->n; i++) {
		if (i == group->me) {
			with = direct->own;
		} else {
			unpack(group, i + 1, data);
			widen(direct, data, &with);
		}
		if (i == 0)
			*sum = with;
		else
			emu_reduce(sum, &with);
	}
}

static void deliver(struct glex_group *group, const struct emu_operand *sum)
{
	if (group->result)
		memcpy(group->result, sum->unit, group->len * sizeof(sum->unit[0]));
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

/* What is in `out`, to others from first to end: into the line of `from` (as line_at). */
static glex_ret_t send_out(struct glex_group *group, uint32_t first, uint32_t end, uint32_t from)
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
			ret = put(group, first + direct->to, offset_of(line_at(group, direct->at, from)) + left,
				  (unsigned char *)&direct->out[direct->at] + left, LINE - left, 0);
			if (ret != GLEX_SUCCESS)
				return ret;
		}
	direct->to = direct->at = 0;
	return GLEX_SUCCESS;
}

static glex_ret_t do_send(struct glex_group *group)
{
	bool bcast = group->what == GLEXI_BCAST, root = group->me == group->root;
	struct glexi_direct *direct = group->direct;
	uint32_t others = others_of(group), to;

	if (direct->exchange)
		return send_out(group, 0, others, group->me + 1);
	if (bcast)
		return root ? send_out(group, 0, others, 0) : GLEX_SUCCESS;
	if (root || group->what == GLEXI_BARRIER) /* of an allreduce: member 0 */
		return GLEX_SUCCESS;
	to = place_of(group, group->root);
	return send_out(group, to, to + 1, group->me + 1);
}

/* Member 0's own lines, for whoever is the last. */
static void lay_out(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint32_t i;

	for (i = 0; i < direct->lines; i++)
		direct->board->line[line_at(group, i, 1)] = direct->out[i]; /* ordered by the addition */
}

static glex_ret_t do_add(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint64_t one = 1 | (uint64_t)what_of(group) << 32, old;
	struct glex_atomic_req req = {
		.field_mask = GLEX_ATOMIC_FIELD_TARGET | GLEX_ATOMIC_FIELD_OP,
		.rmt_ep_addr = group->me ? group->near[0].card.up : group->card.up,
		.rmt_mh = group->me ? group->near[0].card.mh : group->card.mh,
		.rmt_key = group->me ? group->near[0].card.key : group->card.key,
		.op = GLEX_ATOMIC_ADD,
		.width = 8,
		.operand = one,
	};
	glex_ret_t ret;

	if (group->me == 0 && !direct->has_asked)
		lay_out(group);
	direct->has_asked = true;
	ret = glex_atomic(group->down, &req, &old);
	direct->is_held = ret == GLEX_BUSY;
	if (ret != GLEX_SUCCESS)
		return ret == GLEX_BUSY ? GLEX_NO_MP : ret;
	direct->has_asked = false;
	direct->total += group->n * one;
	if ((uint32_t)(old + one) != (uint32_t)direct->total)
		return GLEX_SUCCESS;
	direct->is_last = true;
	direct->lag = first_of(direct) - 1;
	return old + one == direct->total ? GLEX_SUCCESS : GLEX_SYS_ERR; /* else some have begun something else */
}

/* Member 0's lines of this collective, to the same place here, where nobody else writes now. */
static glex_ret_t ask(struct glex_group *group)
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
		req.local_offset = req.rmt_offset = offset_of(line_at(group, direct->at, 1));
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

/* The last one's: all operands. */
static glex_ret_t do_gather(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	glex_event_t *event;
	glex_ret_t ret;

	if (!direct->is_last || group->what == GLEXI_BARRIER)
		return GLEX_SUCCESS;
	if (group->me != 0) {
		ret = direct->has_asked ? GLEX_SUCCESS : ask(group);
		if (ret != GLEX_SUCCESS)
			return ret;
		ret = glex_probe_first_event(group->up, 0, &event);
		direct->is_held = true;
		if (ret != GLEX_SUCCESS)
			return ret == GLEX_NO_EVENT ? GLEX_NO_MP : ret;
		glex_discard_probed_event(group->up);
		direct->has_asked = false;
	}
	ret = are_there(group);
	direct->is_held = ret == GLEX_NO_MP; /* a network that reorders may have it under way */
	if (ret == GLEX_SUCCESS) {
		struct emu_operand sum;
		unsigned char data[2 * DATA];

		combine(group, &sum);
		deliver(group, &sum);
		narrow(direct, &sum, data);
		pack(group, direct->out, data);
	}
	return ret;
}

/* ---- receiving ------------------------------------------------------------------ */

static glex_ret_t do_take(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	unsigned char data[2 * DATA];
	struct emu_operand sum;
	glex_ret_t ret;

	if (direct->is_last || (!is_all(group) && (group->what == GLEXI_BCAST) == (group->me == group->root)))
		return GLEX_SUCCESS;
	if (direct->exchange || (group->what == GLEXI_REDUCE && !group->to_all)) {
		ret = are_there(group);
		if (ret == GLEX_SUCCESS && group->what == GLEXI_REDUCE)
			combine(group, &sum);
	} else {
		ret = is_there(group, 0);
		if (ret == GLEX_SUCCESS && group->what != GLEXI_BARRIER)
			unpack(group, 0, data);
		if (ret == GLEX_SUCCESS && group->what == GLEXI_REDUCE)
			widen(direct, data, &sum);
	}
	if (ret != GLEX_SUCCESS)
		return ret;
	if (group->what == GLEXI_REDUCE)
		deliver(group, &sum);
	else if (group->what == GLEXI_BCAST && group->len)
		memcpy(group->result, data, group->len);
	return GLEX_SUCCESS;
}

/* ---- who sleeps ------------------------------------------------------------------- */

static void send_note(struct glex_group *group, uint32_t other, bool is_asleep)
{
	struct note note = {.from = group->me, .is_asleep = is_asleep, .seq = group->direct->seq};
	struct glex_imm_mp_req req = {.rmt_ep_addr = group->near[other].card.down, .data = &note, .len = sizeof(note)};

	glex_send_imm_mp(group->down, &req, NULL); /* if it is not taken somebody sleeps a little longer */
}

static void take_note(struct glex_group *group, const void *mp, uint32_t len)
{
	struct note note;

	if (len != sizeof(note))
		return;
	memcpy(&note, mp, sizeof(note));
	if (note.is_asleep && note.from < group->n && note.from != group->me)
		group->direct->asleep[note.from] = note.seq;
}

/* Whoever says so; all lines up to seq have been sent, or taken. */
static void wake(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	unsigned char mp[GLEXI_GROUP_MP];
	bool some = false;
	uint32_t i, len;

	while (glex_receive_mp(group->down, 0, NULL, mp, &len) == GLEX_SUCCESS)
		take_note(group, mp, len);
	for (i = 0; i < group->n; i++)
		some |= direct->asleep[i] != 0;
	for (i = 0; some && i < group->n; i++)
		if (direct->asleep[i] && direct->asleep[i] <= direct->seq) {
			direct->asleep[i] = 0;
			send_note(group, place_of(group, i), false);
		}
}

/* To those who may have something to send. */
static void say_asleep(struct glex_group *group)
{
	uint32_t i;

	for (i = 0; i < group->n; i++) {
		if (i == group->me || (group->what == GLEXI_BCAST && i != group->root))
			continue;
		if (group->what == GLEXI_REDUCE && !group->to_all && is_there(group, i + 1) == GLEX_SUCCESS)
			continue;
		send_note(group, place_of(group, i), true);
	}
}

/* ---- beginning, waiting ----------------------------------------------------------- */

/* Those who have asked, and wait for it: how far this one is. */
static glex_ret_t tell(struct glex_group *group)
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

/* I1: whose lines have come has begun it, and so ended all before. */
static void learn(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint64_t before = first_of(direct) - 1;

	if (is_all(group) || (group->what == GLEXI_REDUCE && group->me == group->root))
		direct->lag = before;
	else if (group->what == GLEXI_BCAST && group->me != group->root)
		direct->known[group->root] = before;
}

/* As far as it goes without waiting. */
static glex_ret_t advance(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret = GLEX_SUCCESS, told;

	for (direct->is_held = false; direct->stage < OVER && ret == GLEX_SUCCESS;) {
		switch (direct->stage) {
		case SEND:
			ret = do_send(group);
			break;
		case ADD:
			ret = is_all(group) && !direct->exchange ? do_add(group) : GLEX_SUCCESS;
			break;
		case GATHER:
			ret = do_gather(group);
			break;
		case SPREAD:
			ret = direct->is_last ? send_out(group, 0, others_of(group), 0) : GLEX_SUCCESS;
			break;
		default:
			ret = do_take(group);
			break;
		}
		if (ret == GLEX_SUCCESS)
			direct->stage++;
	}
	if (ret != GLEX_SUCCESS && ret != GLEX_NO_MP)
		return ret;
	if (ret == GLEX_SUCCESS)
		learn(group);
	told = tell(group);
	if (ret == GLEX_SUCCESS)
		wake(group);
	return told == GLEX_SUCCESS ? ret : told;
}

static void prepare(struct glex_group *group, const void *data, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	unsigned char units[2 * DATA];

	direct->bytes = len;
	if (group->what == GLEXI_BCAST)
		direct->bytes = group->len;
	if (group->what == GLEXI_REDUCE) {
		memcpy(&direct->own, data, len);
		direct->unit = unit_of(&direct->own);
		direct->bytes = direct->own.count * direct->unit;
		narrow(direct, &direct->own, units);
		data = units;
	}
	direct->lines = 1 + (direct->bytes > DATA);
	direct->seq += direct->lines;
	pack(group, direct->out, data);
}

glex_ret_t glexi_direct_begin(struct glex_group *group, void *data, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret;

	direct->stage = SEND;
	direct->exchange = is_all(group) && group->n <= EXCHANGE;
	direct->is_last = direct->has_asked = false;
	direct->to = direct->at = 0;
	direct->asked = 0;
	prepare(group, data, len);
	ret = advance(group);
	direct->failed = ret == GLEX_NO_MP ? GLEX_SUCCESS : ret; /* told by the wait */
	return GLEX_SUCCESS;
}

/* Looks for a while, and lets others run. */
static glex_ret_t look(struct glex_group *group)
{
	glex_ret_t ret = GLEX_NO_MP;
	int i;

	for (i = 1; i <= 8 * LOOKS && ret == GLEX_NO_MP; i++) {
		ret = advance(group);
		if (i % 8 == 0)
			sched_yield();
	}
	return ret;
}

glex_ret_t glexi_direct_wait(struct glex_group *group, int32_t timeout)
{
	struct glexi_direct *direct = group->direct;
	unsigned char mp[GLEXI_GROUP_MP];
	bool has_said = false;
	int32_t slice;
	uint32_t len;
	glex_ret_t ret;

	if (direct->failed != GLEX_SUCCESS)
		return direct->failed;
	if (direct->stage == OVER)
		return GLEX_SUCCESS;
	ret = timeout ? look(group) : advance(group);
	while (ret == GLEX_NO_MP && timeout > 0) {
		slice = direct->is_held || !has_said ? 1 : timeout; /* room tells nobody */
		if (!direct->is_held && !has_said)
			say_asleep(group);
		has_said |= !direct->is_held;
		ret = glex_receive_mp(group->down, slice, NULL, mp, &len);
		if (ret == GLEX_SUCCESS)
			take_note(group, mp, len);
		else if (ret == GLEX_NO_MP)
			timeout -= slice;
		else
			return ret;
		ret = advance(group);
	}
	return ret;
}
