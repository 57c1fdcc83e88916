/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meet.c - barriers, and allreduces of a line, where all are one team: what comes of them is shown on member 0's board.
 *
 *   board 0   | arrived | blind, parted | shown | operands, results |
 *   all         +1 ->                             <- each PUTs its own
 *   the last                              <- the result, once
 *   all others                            look there
 *
 * All have touched that board before.  To PUT a result to everybody's, and to fetch one's own, would take longer than
 * all the rest, where members outnumber processors: it is as many lines more to be taken from other processors.
 *
 * Who cannot look there (its process has threads, or others execute its requests) says so before he arrives, in `blind`,
 * once: what is shown is sent to him besides.  Who could when he arrived, and cannot any more, GETs it.
 * glexi_meet_look, the short way of who waits, is for any result of one line: where it is sent, that lies on the own board.
 * Who has begun as the last of those of his processor keeps that from nobody if he does not give way, and is there the
 * sooner.  So members count, behind `arrived` and in its line, which is theirs then: by processor, this collective's and
 * those of the one before.  It is a guess: some may be on another one now, or cannot count, and two that write at a
 * time count as one.
 * The board has to stay until all have looked.  So who leaves says so, in `parted`, and member 0 leaves when all have;
 * who takes his time is asked how far he has come.
 *
 * Ordering:
 *   shown.stamp    the last of the line, release   by who looks, acquire: all of the line is there (I3)
 *   blind          before `arrived`, seq_cst       by who has added himself as the last, relaxed: it is there
 *   here           relaxed, nothing depends on it  relaxed
 *   parted         when all has been read, seq_cst by member 0, acquire: nobody reads any more
 *   ended          release                         by a GET: the same
 */
#include "group/direct.h"

#include <sched.h>
#include <time.h>

#define SHOWN	((uint32_t)offsetof(struct glexi_board, shown))
#define PART_MS 50 /* for who leaves at about the same time: it costs no request, which may come to nothing */

/* Where bytes of member 0's board are, as long as nothing of the library is called; NULL: they cannot be looked at. */
EMU_TOGETHER static inline const void *look_at(const struct glex_group *group, uint32_t offset, uint32_t len)
{
	const struct glexi_direct *direct = group->direct;

	if (!group->me)
		return (const char *)direct->board + offset;
	return direct->way ? glex_get_place(direct->way, offset, len) : NULL;
}

/* Where this process may operate on that of member 0's board, as long as nothing of the library is called; NULL: it may not. */
EMU_TOGETHER static inline struct glexi_board *first_line_of(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	char *last;

	if (!group->me)
		return direct->board;
	last = glex_atomic_place(direct->way, LINE - 8, 8);
	return last ? (struct glexi_board *)(void *)(last - (LINE - 8)) : NULL;
}

static uint64_t bit_of(uint32_t member)
{
	return UINT64_C(1) << member;
}

static uint64_t others_of(const struct glex_group *group)
{
	return (bit_of(group->n) - 1) & ~bit_of(0);
}

EMU_TOGETHER const struct line *glexi_meet_expect(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	const struct line *line = look_at(group, SHOWN, LINE);

	direct->missing = line ? &line->stamp : NULL;
	direct->missed = direct->mine->stamp;
	return line;
}

/* ---- arriving ------------------------------------------------------------------- */

/* A way is found to what has been reached before, and is remembered; since then others may have taken its place. */
static bool finds_way_back(struct glex_group *group)
{
	uint64_t ended;

	return group->me && glexi_board_ask_ended(group, place_of(group, 0), &ended) == GLEX_SUCCESS &&
	       look_at(group, SHOWN, LINE);
}

glex_ret_t glexi_meet_say_blind(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint64_t old;
	glex_ret_t ret;

	if (direct->looks || direct->is_blind)
		return GLEX_SUCCESS;
	direct->looks = finds_way_back(group);
	if (direct->looks)
		return GLEX_SUCCESS;
	ret = glexi_board_add(group, 0, (uint32_t)offsetof(struct glexi_board, blind), bit_of(group->me), &old);
	direct->is_blind = ret == GLEX_SUCCESS;
	return ret;
}

/* A word of `here`: the collective, how many of the one before, how many so far. */
#define CALL(seq)    ((uint32_t)(seq) << 16)
#define IS_OF(word)  ((word)&0xffff0000u)
#define BEFORE(n)    ((n) << 8)
#define SO_FAR(word) ((word)&0xffu)

/* This one, on that board.  Where some are blind nobody knows how many are to come. */
EMU_TOGETHER static void count_here(struct glexi_direct *direct, struct glexi_board *board)
{
	uint32_t *here = &board->here[(uint32_t)sched_getcpu() % HERE];
	uint32_t word = __atomic_load_n(here, __ATOMIC_RELAXED); /* relaxed: a guess */

	if (IS_OF(word) != CALL(direct->seq))
		word = CALL(direct->seq) | BEFORE(SO_FAR(word));
	word++;
	__atomic_store_n(here, word, __ATOMIC_RELAXED); /* relaxed: a guess */
	direct->is_last_here = BEFORE(SO_FAR(word)) == (word & BEFORE(0xffu)) &&
			       !__atomic_load_n(&board->blind, __ATOMIC_RELAXED); /* relaxed: a guess */
}

/*
 * Most of the time all there is to do, and by the fewest steps: the operand is stored, and this member added, and he is not the
 * last.  False: the stages go on where this has left them.
 */
EMU_TOGETHER bool glexi_meet_arrive(struct glex_group *group, glex_ret_t *ret_p)
{
	struct glexi_direct *direct = group->direct;
	struct glexi_board *board;
	uint64_t sum;

	direct->looks = !direct->is_blind && look_at(group, SHOWN, LINE);
	if (!direct->looks)
		return false;
	if (group->what != GLEXI_BARRIER) {
		if (group->me && (!glexi_fits(direct, direct->lag) || !glexi_board_store(group)))
			return false;
		if (!group->me)
			glexi_board_lay_out(group);
		direct->stage = ADD;
	}
	board = first_line_of(group);
	if (!board)
		return false;
	direct->stage = ADD + 1;
	/* relaxed: stronger, as the NIC does it */
	sum = __atomic_add_fetch(&board->arrived[0], glexi_direct_one(direct), __ATOMIC_SEQ_CST);
	if (direct->counts_here)
		count_here(direct, board);
	*ret_p = glexi_direct_arrived(group, sum);
	if (*ret_p != GLEX_SUCCESS || !(direct->steps >> TAKE & 1))
		return false;
	direct->stage = TAKE;
	glexi_meet_expect(group);
	*ret_p = GLEX_NO_MP;
	return true;
}

/* ---- the last one ---------------------------------------------------------------- */

/* Who is to be sent it besides; all have been added, and had said so before. */
EMU_TOGETHER glex_ret_t glexi_meet_find_blind(struct glex_group *group, uint64_t *blind)
{
	uint32_t at = (uint32_t)offsetof(struct glexi_board, blind);
	const uint64_t *there = group->direct->looks ? look_at(group, at, sizeof(*there)) : NULL;

	if (!there)
		return glexi_board_add(group, 0, at, 0, blind);
	*blind = __atomic_load_n(there, __ATOMIC_RELAXED); /* relaxed: ordered by the addition */
	return GLEX_SUCCESS;
}

EMU_TOGETHER glex_ret_t glexi_meet_show(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;

	if (group->me)
		return glexi_board_put_line(group, 0, SHOWN);
	glexi_copy_words(direct->board->shown.data, direct->mine->data, DATA);
	/* relaxed: stronger, pairs with glexi_meet_take */
	__atomic_store_n(&direct->board->shown.stamp, direct->mine->stamp, __ATOMIC_RELEASE);
	return GLEX_SUCCESS;
}

/* ---- looking --------------------------------------------------------------------- */

/*
 * By who could look when he arrived: his process has threads now, or member 0 has gone without having waited, of which
 * group.c learns: he is not asked again.
 */
static glex_ret_t fetch_shown(struct glex_group *group, struct line *room)
{
	struct glexi_direct *direct = group->direct;
	uint32_t at = (uint32_t)offsetof(struct line, stamp);
	glex_ret_t ret;

	if (direct->has_asked)
		return GLEX_NO_MP;
	ret = glexi_board_fetch(group, 0, SHOWN + at, &room->stamp, sizeof(room->stamp)); /* it is read first (I3) */
	if (ret == GLEX_SUCCESS && room->stamp == direct->mine->stamp)
		ret = glexi_board_fetch(group, 0, SHOWN, room->data, DATA);
	direct->has_asked = ret == GLEX_ACCESS_ERR;
	return direct->has_asked ? GLEX_NO_MP : ret;
}

EMU_TOGETHER glex_ret_t glexi_meet_take(struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	const struct line *line = glexi_meet_expect(group);
	struct line room;
	glex_ret_t ret;
	uint64_t is;

	if (!line) {
		ret = fetch_shown(group, &room);
		if (ret != GLEX_SUCCESS)
			return ret;
		line = &room;
	}
	/* relaxed: stronger, pairs with glexi_meet_show, or the NIC */
	is = __atomic_load_n(&line->stamp, __ATOMIC_ACQUIRE);
	if (is != direct->missed)
		return is >> 24 == direct->missed >> 24 ? GLEX_SYS_ERR : GLEX_NO_MP;
	glexi_direct_deliver(group, line);
	return GLEX_SUCCESS;
}

EMU_TOGETHER glex_ret_t glexi_meet_look(struct glex_group *group, const uint64_t **word_p, uint64_t *value_p)
{
	struct glexi_direct *direct = group->direct;
	const struct line *line;
	uint64_t is;

	if (!direct || group->what == GLEXI_LEAVE)
		return GLEX_NOT_IMPLEMENTED;
	if (direct->stage == OVER)
		return GLEX_SUCCESS;
	if (direct->stage != TAKE || !direct->is_line)
		return GLEX_NOT_IMPLEMENTED;
	line = direct->looks ? glexi_meet_expect(group) : glexi_board_expect(direct);
	if (!line)
		return GLEX_NOT_IMPLEMENTED;
	is = __atomic_load_n(&line->stamp, __ATOMIC_ACQUIRE); /* relaxed: stronger, as above */
	*value_p = direct->missed;
	if (is == direct->missed) {
		glexi_direct_deliver(group, line);
		glexi_direct_finish(group);
		return GLEX_SUCCESS;
	}
	*word_p = direct->missing;
	return (is ^ direct->missed) >> 24 ? GLEX_NO_MP : GLEX_NOT_IMPLEMENTED;
}

bool glexi_meet_is_last_here(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;

	direct->counts_here = true;
	return direct->stage == TAKE && direct->looks && direct->is_last_here;
}

/* ---- leaving --------------------------------------------------------------------- */

void glexi_meet_part(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint32_t at = (uint32_t)offsetof(struct glexi_board, parted);
	uint64_t old;

	if (!direct->shown_to)
		return;
	glex_quiet_ep(group->down); /* some have gone, perhaps */
	/* Once: it is an addition.  If there is no room for it, this one will be asked. */
	if (group->me && !direct->is_blind && !direct->has_parted)
		direct->has_parted = glexi_board_add(group, 0, at, bit_of(group->me), &old) == GLEX_SUCCESS;
}

/* Whether all whose bits are in `late` have ended what was shown last.  Who has gone meanwhile has, or never will. */
static bool have_ended(struct glex_group *group, uint64_t late)
{
	struct glexi_direct *direct = group->direct;
	bool all = true;
	glex_ret_t ret;
	uint32_t i;

	for (i = 0; i < group->neighbours; i++) {
		if (!(late & bit_of(i + 1)) || direct->heard[i] >= direct->shown_to)
			continue;
		direct->was_asked = true;
		ret = glexi_board_ask_ended(group, i, &direct->heard[i]);
		if (ret != GLEX_SUCCESS && ret != GLEX_NO_MP)
			direct->heard[i] = direct->shown_to;
		all &= direct->heard[i] >= direct->shown_to;
	}
	return all;
}

static bool may_leave(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	/* relaxed: they had said so before they arrived */
	uint64_t blind = __atomic_load_n(&direct->board->blind, __ATOMIC_RELAXED);
	/* relaxed: stronger, pairs with glexi_meet_part */
	uint64_t parted = __atomic_load_n(&direct->board->parted, __ATOMIC_ACQUIRE);
	uint64_t late = others_of(group) & ~(blind | parted);

	if (!late)
		return true;
	if (!direct->parts_ms)
		direct->parts_ms = glexi_group_now_ms();
	return glexi_group_now_ms() - direct->parts_ms >= PART_MS && have_ended(group, late);
}

glex_ret_t glexi_meet_parted(struct glex_group *group, int32_t timeout)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	if (group->me || !group->direct->shown_to)
		return GLEX_SUCCESS;
	while (!may_leave(group)) {
		if (timeout-- <= 0)
			return GLEX_NO_MP;
		nanosleep(&ms, NULL);
	}
	return GLEX_SUCCESS;
}

bool glexi_meet_was_asked(const struct glex_group *group)
{
	return group->direct->was_asked;
}
