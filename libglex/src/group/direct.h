/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.h - a group without a tree: what its two files share.
 *
 *   board.c    lines, how they are sent, and whether there is room for them
 *   direct.c   which are sent to whom, and waited for
 *
 *   board   | arrived 64 | ended 8 x 16 | asked 8 x 16 | place 0 | place 1 | ...       line q is at place q % window
 *   place   | result | from member 0 | from member 1 | ...              lines of 64 bytes
 *   line    | ... | data, to the right | stamp 8 |                      stamp: line's number, what, bytes
 *
 * I1  ended[i], known[i] and lag are not ahead of what i, and all others, have ended.
 * I2  line q is PUT to i while i has ended line q - window.
 * I3  a stamp is the last of its line that becomes visible; it is read first.
 */
#ifndef GLEXI_GROUP_DIRECT_H
#define GLEXI_GROUP_DIRECT_H

#include "group/priv.h"

#include "emulator/nic/reduce.h"

#define LINE 64u
#define DATA (LINE - 8u)

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

/* What a member has still to do for what was begun. */
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
	bool some_asleep;
	/* of what was begun */
	enum stage stage;
	uint32_t steps; /* the stages that apply, a bit each */
	glex_ret_t failed;
	bool exchange, has_asked, is_held; /* is_held: for want of room */
	uint64_t asked;			   /* whoever has no room for this line has been asked */
	uint32_t to, at;		   /* where the next one goes, which line */
	uint32_t lines, bytes, unit;	   /* lines, their data, that of a unit */
	uint32_t place[2];		   /* on each board, by line: the result's; the members' follow */
	struct emu_operand own;
	struct line out[2];
};

/* The place of member i among the others. */
static inline uint32_t place_of(const struct glex_group *group, uint32_t i)
{
	return i - (i > group->me);
}

static inline uint64_t first_of(const struct glexi_direct *direct)
{
	return direct->seq + 1 - direct->lines;
}

/*
 * Of the collective that has begun.  from: a member, counted from 1, or 0: the result.
 *
 * unpack: what came from there.  pack: data into `out`.
 * has: all lines from there are on the own board; GLEX_NO_MP: not yet; GLEX_SYS_ERR:
 * they belong to something else.  has_all: the same of all other members.
 * send: what is in `out` to others from first to end, into their lines of `from`.
 * greet: finds the ways to all others, which takes long and is else done in the middle of the
 * first collectives, by one member after the other.
 * lay_out: what is in `out` to the own board, as member 0's.  ask: begins to GET all
 * that is there at member 0's.  tell: those who have asked hear how far this one is.
 * GLEX_NO_MP: not now.
 */
void glexi_board_unpack(const struct glex_group *group, uint32_t from, void *data);
void glexi_board_pack(struct glex_group *group, const void *data);
glex_ret_t glexi_board_has(const struct glex_group *group, uint32_t from);
glex_ret_t glexi_board_has_all(const struct glex_group *group);
glex_ret_t glexi_board_send(struct glex_group *group, uint32_t first, uint32_t end, uint32_t from);
void glexi_board_greet(struct glex_group *group);
void glexi_board_lay_out(struct glex_group *group);
glex_ret_t glexi_board_ask(struct glex_group *group);
glex_ret_t glexi_board_tell(struct glex_group *group);

#endif /* GLEXI_GROUP_DIRECT_H */
