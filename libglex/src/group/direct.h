/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.h - a group without a tree: what its files share.
 *
 *   board.c    lines, how they are sent, and whether there is room for them
 *   direct.c   which are sent to whom, and waited for
 *   meet.c     the same, where what comes of them is shown to all
 *   gather.c   the same, where those of all are the result
 *
 *   board      | arrived 2, blind, parted, here 8 | ended, broken | shown | lines of 64 bytes |
 *   lines      | ... | a collective | the next | ... | the first again | ...      a ring: all members count alike
 *   collective | operands, line by line: a team's, those of teams | results |
 *   line       | ... data, to the right | stamp 8 |                 stamp: line's number, what, bytes
 *   operands   of a word or less take a quarter of a line, of up to three words half of one:
 *              | data | stamp | data | stamp | ...
 *
 * What a collective takes of the ring, as many lines as are written to any board, lies in one piece: where it would not
 * fit before the end, it begins at the start.
 *
 * Up to FLAT members are one team, and meet at member 0's board.  More are teams of TEAM, each of
 * which meets at its first member's; who comes last there goes on to where teams meet, at member 0's:
 * level 1.  Each level has lines and a counter of its own.
 *
 * I1  `ended` and heard are not ahead of what the board's owner has ended, lag not of what all have.  Who has sent
 *     something of a collective has ended all that was before it.
 * I2  A line is PUT when the one before at its place has been read: whoever it is for has ended what is in the way.
 * I3  A stamp is the last of its line that becomes visible; it is read first.
 * I4  Who has ended a collective is sent nothing more of it: he may leave.  So nobody tells a sender that he has
 *     read a line, which that one might not be there for; the sender looks at `ended` when he is short of room.
 *     But member 0, who leaves when all have seen what he shows.
 * I5  On one's own board nobody else writes to the place of the own operand (a GET of all operands brings it what it has).
 *     What is to be reduced, and longer than a line, is kept there.  Where members meet the last one reads it: it is
 *     not written between the addition and the result, but by that one.
 * I6  What is shown is written when all have begun, so have ended what was shown before; and behind what is sent of it
 *     besides (I4).
 * I7  A stamp of a narrow operand may be where data of a wide one has been, which may look like it.  So what has ended
 *     leaves zeros, on its own board, wherever it may have had data and another one a stamp: every other word.
 */
#ifndef GLEXI_GROUP_DIRECT_H
#define GLEXI_GROUP_DIRECT_H

#include "group/priv.h"

#include <string.h>

#include "emulator/nic/reduce.h"

#define LINE 64u
#define DATA (LINE - 8u)

struct line {
	unsigned char data[DATA];
	uint64_t stamp;
};

#define FLAT	  16u /* members that are one team */
#define TEAM	  8u
#define EXCHANGE  2u  /* members that send each to each: one way there, and no third party */
#define LINES	  68u /* of the ring: */
#define FEW_LINES 37u
#define LEVELS	  2u
#define HERE	  8u /* processors beyond share words with these */

struct glexi_board {
	uint64_t arrived[LEVELS]; /* how many, and above 32 bits at what, in sum since the beginning */
	uint64_t blind;		  /* who cannot look at what is shown, a bit for each member, */
	uint64_t parted;	  /* and who will not any more */
	uint32_t here[HERE];	  /* a processor's: how many of it have begun what all have (meet.c) */
	uint64_t ended;		  /* up to where in the ring, its laps counted, its owner has ended all */
	uint64_t broken;	  /* of its owner's card, by whoever gives it up; else: by nobody */
	unsigned char apart2[LINE - 16];
	struct line shown;
	struct line line[];
};

/*
 * What a collective takes of so many lines each: of n who meet, then so many teams.  The ring has room for two, for
 * who has ended what all took part in knows that all have ended what was before it, and no more: with less he has
 * to ask each time.  So he does of more than two members where a reduction by a function is long, and of 9 to 16
 * where anything is longer than a line.
 */
#define TAKES(n, teams, lines) (((n) + (teams) + 1) * (lines))
#define TEAMS		       (GLEX_GROUP_DIRECT_MAX / TEAM)
#define GLEXI_BY	       (1u << 14) /* in what all begin alike: a reduction by a function */
#define BY_LINES(n)	       ((GLEX_GROUP_BY_MAX(n) + DATA - 1) / DATA)

static_assert(sizeof(struct glexi_board) + LINES * LINE <= GLEXI_BOARD && sizeof(struct glexi_board) % LINE == 0,
	      "lines");
static_assert(offsetof(struct glexi_board, ended) == LINE, "arrived and here are in one line");
static_assert(sizeof(struct glexi_board) + FEW_LINES * LINE <= GLEXI_BOARD_OF_FEW, "of few");
static_assert(2 * TAKES(8, 0, 2) <= FEW_LINES && 2 * TAKES(GLEXI_FEW, 0, 1) <= FEW_LINES &&
		      TAKES(GLEXI_FEW, 0, 2) <= FEW_LINES && 2 * TAKES(TEAM, TEAMS, 2) <= LINES,
	      "two");
static_assert(GLEXI_FEW == FLAT, "who has more lines is in teams");
static_assert(2 * DATA >= GLEXI_GROUP_MP, "all other data of a collective is in two lines");
static_assert(BY_LINES(2) * 2 <= FEW_LINES && TAKES(4, 0, BY_LINES(4)) <= FEW_LINES &&
		      TAKES(8, 0, BY_LINES(8)) <= FEW_LINES && TAKES(GLEXI_FEW, 0, BY_LINES(GLEXI_FEW)) <= FEW_LINES &&
		      TAKES(TEAM, TEAMS, BY_LINES(GLEX_GROUP_DIRECT_MAX)) <= LINES,
	      "there is room for one by a function");
static_assert(GLEX_GROUP_BY_MAX(2) << 3 < GLEXI_BY, "what_of");
static_assert(GLEX_GROUP_GATHER_MEMBERS <= FLAT && GLEX_GROUP_GATHER_MAX <= 2 * DATA, "all parts are on one board");
static_assert(GLEX_GROUP_DIRECT_MAX <= TEAM * TEAM, "who stands for a team has a line where teams meet");

/* Two kinds of lines. */
enum kind { OPERAND, RESULT };

/* What a member has still to do for what was begun. */
enum stage { SEND, ADD, GATHER, CLIMB, SPREAD, SHOW, TAKE, OVER };

struct glexi_direct {
	struct glexi_board *board;
	struct glexi_board *operands; /* where these are: the same, or that of who is met with */
	struct glex_put_way *way;     /* to the board where the team meets, or the other one of two; NULL: none */
	uint32_t team, teams;	      /* members of one; how many */
	uint32_t room;		      /* lines of the ring */
	uint32_t skip;		   /* of these what was begun has left free, to lie in one piece: those before `from` */
	uint64_t seq;		   /* the last line of what was begun */
	uint64_t from, up_to;	   /* what that takes of the ring, its laps counted */
	uint32_t first, result;	   /* where its first line is, and the first of results */
	uint64_t total[LEVELS];	   /* what `arrived` comes to when everybody is there */
	uint64_t lag;		   /* up to where all have ended, as is known here */
	uint64_t shown_to;	   /* up to where that goes which was shown last; 0: nothing was */
	bool is_blind, has_parted; /* this one has said so */
	bool counts_here;	   /* who is here: this one has been asked */
	bool was_asked;		   /* by member 0: somebody who had not parted, */
	uint64_t parts_ms;	   /* which it waits for since then; 0: it does not */
	uint32_t *asleep; /* who is to be woken, by member: when this line, but for its upper bits, is sent; 0: not */
	bool some_asleep;
	uint32_t quiet; /* how many have ended since somebody has been heard of who sleeps, up to a limit */
	/* of what was begun */
	enum stage stage;
	uint32_t level;
	uint32_t steps; /* the stages that apply, a bit each */
	glex_ret_t failed;
	bool all, exchange, has_asked, is_held; /* all take part in all of it; is_held: for want of room */
	bool has_said;				/* that this one is asleep */
	bool is_last_here;			/* of its processor, by what `here` has */
	bool is_line;				/* what comes of it: one alone is waited for; */
	bool is_shown, looks;			/* it is shown; and this one looks there */
	uint64_t blind;				/* if it is shown: who the last one sends it to besides */
	uint32_t what;				/* what all begin alike */
	uint32_t to, at;			/* where the next one goes, which line */
	uint32_t lines, bytes, unit;		/* lines, their data, that of a unit if it has units */
	uint32_t pitch;				/* bytes from an operand to the next one */
	struct line *mine;			/* what is sent: `out`, or what I5 says is kept on the own board */
	uint32_t step;				/* from one of these to the next */
	const uint64_t *missing; /* the stamp that was looked for last, and was not there; NULL: none was */
	uint64_t missed;	 /* what it is to be */
	union {
		struct line out[2];
		struct {
			struct line only; /* out[0]; of a reduction there is no other (I5), but */
			union {
				struct emu_operand own;
				struct {
					glex_group_combine_t combine;
					void *arg;
				} by; /* group->is_by */
			};
		};
	};
	uint64_t heard[]; /* up to where each other member has ended, as is known here */
};

/* Mostly a word or two, for which a call takes longer. */
static inline void glexi_copy_words(unsigned char *to, const unsigned char *from, uint32_t len)
{
	for (; len >= 8; len -= 8, to += 8, from += 8)
		memcpy(to, from, 8);
	for (; len; len--)
		*to++ = *from++;
}

/* Line i of what is sent; once all operands have been combined, of what they come to. */
static inline struct line *mine_of(const struct glexi_direct *direct, uint32_t i)
{
	return direct->mine + i * direct->step;
}

static inline uint32_t glexi_bytes_of(const struct glexi_direct *direct, uint32_t line)
{
	return line + 1 < direct->lines ? DATA : direct->bytes - DATA * line;
}

/* Those that are PUT: whole words. */
static inline uint32_t glexi_words_of(const struct glexi_direct *direct, uint32_t line)
{
	return (glexi_bytes_of(direct, line) + 7) & ~7u;
}

/* Lines of the ring that so many operands take. */
static inline uint32_t glexi_area_of(const struct glexi_direct *direct, uint32_t operands)
{
	return (operands * direct->lines * direct->pitch + LINE - 1) / LINE;
}

/* Is there room for what was begun, where all up to there has ended?  Where all before it has there always is. */
static inline bool glexi_fits(const struct glexi_direct *direct, uint64_t ended)
{
	return ended + direct->room >= direct->up_to || ended + direct->skip >= direct->from;
}

/* What a member adds to `arrived`. */
static inline uint64_t glexi_direct_one(const struct glexi_direct *direct)
{
	return 1 | (uint64_t)direct->what << 32;
}

static inline uint64_t first_of(const struct glexi_direct *direct)
{
	return direct->seq + 1 - direct->lines;
}

/* Where the team meets, or at level 1 the teams; who else does, and this one's place among them. */
static inline uint32_t host_of(const struct glex_group *group)
{
	return group->direct->level ? 0 : group->me - group->me % group->direct->team;
}

static inline uint32_t guests_of(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;
	uint32_t rest = group->n - host_of(group);

	return direct->level ? direct->teams : rest < direct->team ? rest : direct->team;
}

static inline uint32_t slot_of(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;

	return direct->level ? group->me / direct->team : group->me % direct->team;
}

/*
 * Of the collective that has begun.
 *
 * unpack: the data of a kind's lines, for OPERAND those in a slot.  own: those of `mine`.  keep: has that be the own operand's
 * place on the own board, which nobody else writes to.  data: what unpack gives, where it lies in one line, or in room
 * for all lines'.  pack: data into `mine`.
 * clear: leaves zeros where I7 asks for them; what was begun has ended.
 * has: all lines of that are on the board, the own one unless `reach` has found operands elsewhere; GLEX_NO_MP: not yet;
 * GLEX_SYS_ERR: they belong to something else.  has_all: operands of all others who meet with this one; of a gather
 * also the own one, which is laid out, or comes with theirs.  expect: as if the result had been looked for in vain;
 * where the first line of it is to be.
 * send: what is in `mine` to others from first to end, into such lines there.
 * greet: finds the ways to all others, which takes long and is else done in the middle of the
 * first collectives, by one member after the other.
 * find_way: to where the team meets.
 * lay_out: what is in `mine` to the own board, as an operand.  reach: has all operands of a reduction read where
 * they lie, until the next call of the library; false: that cannot be.  ask: begins to GET them from where this one meets
 * others.  share: begins to PUT all operands, which are on the own board, to the others' at
 * the same place, but for where they have met: there what is in `mine`, as a result.  answered: what was begun of
 * these is over.
 * add: to a word of a board; GLEX_NO_MP: not now.  fetch: from that other one's board; GLEX_ACCESS_ERR: it has gone.  ask_ended:
 * how far he has come.  say_ended: all up to what was begun.
 * Of a line: store: the operand's, to where all meet, without a call; false: that has to be sent.  put_line: what is in
 * `mine` to that offset of that other one's board.
 */
void glexi_board_unpack(const struct glex_group *group, enum kind kind, uint32_t slot, void *data);
void glexi_board_own(const struct glexi_direct *direct, void *data);
void glexi_board_keep(struct glex_group *group);
const void *glexi_board_data(const struct glex_group *group, enum kind kind, uint32_t slot, void *room);
void glexi_board_pack(struct glex_group *group, const void *data);
void glexi_board_clear(const struct glex_group *group);
glex_ret_t glexi_board_has(struct glex_group *group, enum kind kind, uint32_t slot);
const struct line *glexi_board_expect(struct glexi_direct *direct);
bool glexi_board_store(struct glex_group *group);
glex_ret_t glexi_board_put_line(struct glex_group *group, uint32_t other, uint32_t offset);
glex_ret_t glexi_board_fetch(struct glex_group *group, uint32_t other, uint32_t offset, void *to, uint32_t len);
glex_ret_t glexi_board_ask_ended(struct glex_group *group, uint32_t other, uint64_t *ended);
glex_ret_t glexi_board_has_all(struct glex_group *group);
glex_ret_t glexi_board_send(struct glex_group *group, uint32_t first, uint32_t end, enum kind kind);
void glexi_board_greet(struct glex_group *group);
void glexi_board_find_way(struct glex_group *group);
void glexi_board_lay_out(struct glex_group *group);
bool glexi_board_reach(struct glex_group *group);
glex_ret_t glexi_board_ask(struct glex_group *group);
glex_ret_t glexi_board_share(struct glex_group *group);
glex_ret_t glexi_board_answered(struct glex_group *group);
void glexi_board_say_ended(struct glexi_direct *direct);
glex_ret_t glexi_board_add(struct glex_group *group, uint32_t member, uint32_t offset, uint64_t value, uint64_t *old);

/*
 * In stages: `arrived` has come to that with this member, who may be the last one; that line is the result; all has been
 * done here.
 */
glex_ret_t glexi_direct_arrived(struct glex_group *group, uint64_t sum);
void glexi_direct_deliver(struct glex_group *group, const struct line *line);
void glexi_direct_finish(struct glex_group *group);

/*
 * Of what is shown: meet.c.  arrive: sends and adds, and true: now this member waits.  say_blind: else, before he adds
 * himself, if he cannot look, and does not find the way back; GLEX_NO_MP: not now.  find_blind, show: the last one's, of
 * what is in `mine`.  expect: it is waited for; where it lies until the next call of the library, NULL: nowhere to look
 * at.  take: as of boards.
 */
bool glexi_meet_arrive(struct glex_group *group, glex_ret_t *ret_p);
glex_ret_t glexi_meet_say_blind(struct glex_group *group);
const struct line *glexi_meet_expect(struct glex_group *group);
glex_ret_t glexi_meet_find_blind(struct glex_group *group, uint64_t *blind);
glex_ret_t glexi_meet_show(struct glex_group *group);
glex_ret_t glexi_meet_take(struct glex_group *group);

/* The last one's of those who gather to all: all have what he has.  And what the others wait for, or who gathers alone. */
glex_ret_t glexi_gather_spread(struct glex_group *group);
glex_ret_t glexi_gather_take(struct glex_group *group);

#endif /* GLEXI_GROUP_DIRECT_H */
