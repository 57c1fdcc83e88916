/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * priv.h - a group, as its files see it.  A collective takes one of two ways:
 *
 *   tree.c, gates.c                       along a tree, by requests that packets trigger
 *   direct.c, board.c, meet.c, gather.c   no tree: members write into each other's boards, which are out of board_pool.c
 *
 * long.c makes a broadcast of any length out of short ones and of what the members fetch, or, puts.c, of what
 * is passed down a tree; stage.c reductions, gathers to all and exchanges of any length out of barriers and what the members
 * PUT between them.
 */
#ifndef GLEXI_GROUP_PRIV_H
#define GLEXI_GROUP_PRIV_H

#ifndef GLEXI_BUILD
#error "internal header of libglex"
#endif

#include <glex_ext.h>
#include <stdbool.h>
#include <stddef.h>

#include "emulator/nic/together.h"

#define GLEXI_GROUP_MP	    112u /* bytes of a packet */
#define GLEXI_GROUP_DQ	    64u	 /* requests, and events, of each endpoint; without a tree these are */
#define GLEXI_GROUP_EQ	    16u	 /* few */
#define GLEXI_GROUP_UP_MPQ  64u
#define GLEXI_GROUP_MPQ	    128u /* of `down`: a packet of a tree, or two notes of each other member; a third may be lost */
#define GLEXI_BOARD	    4544u /* bytes that other members reach, */
#define GLEXI_BOARD_OF_FEW  2560u /* where there are GLEXI_FEW at most; 16 of them fill whole pages */
#define GLEXI_FEW	    16u
#define GLEXI_GROUP_WAIT_MS 10000

enum glexi_what { GLEXI_NOTHING, GLEXI_BARRIER, GLEXI_BCAST, GLEXI_REDUCE, GLEXI_LONG, GLEXI_GATHER, GLEXI_LEAVE };

/* What there is to know of a tree's member, beside its card in near. */
struct glexi_branch {
	uint32_t member;
	uint32_t children, first; /* how many, and the first of them */
};

struct glexi_direct;
struct glexi_gates;

/*
 * What consists of several collectives: its own wait, as glexi_gates_wait; what is to be done before the wait
 * returns that it never will end, or NULL; and what is to go with the group.
 */
struct glexi_longer {
	glex_ret_t (*wait)(struct glex_group *group, int32_t timeout);
	void (*give_up)(struct glex_group *group);
	void (*drop)(struct glex_group *group);
	bool takes_errors; /* now: it looks at them itself */
};

struct glexi_puts;

/*
 * How an MP to the `up` of a tree's member begins that is for the member, and not for its gates: with the key on
 * that member's card.  No two groups' are equal, so what comes late, to an endpoint that has become
 * another group's, is not taken for that one's.  Alone it says that the group is broken.
 */
struct glexi_head {
	uint32_t key;
};

struct glex_group {
	glex_ep_handle_t up, down; /* the same one if it was opened for no tree */
	uint32_t direct_most;	   /* members then; 0: it was not */
	struct glex_group_card card;
	glex_device_handle_t dev;
	glex_mem_handle_t mh;
	void *board; /* at mh: direct.c's; NULL: a tree */
	uint32_t n, me;
	uint32_t neighbours;	      /* who is looked after: the first ones of near */
	uint32_t children;	      /* of a tree */
	uint32_t widest;	      /* how many has who has the most */
	struct glex_group_card *near; /* the children, the parent, member 0, or all others; NULL: not joined */
	struct glexi_branch *branch;  /* of a tree: the same */
	struct glexi_direct *direct;  /* NULL: a tree.  Behind this, if it was opened for that */
	struct glexi_gates *gates;    /* NULL: none */
	struct glexi_longer *longer;  /* what is_longer is about */
	struct glexi_longer *fetched; /* long.c's; NULL: there was none yet */
	struct glexi_longer *staged;  /* stage.c's; the same */
	struct glexi_puts *puts;      /* NULL: long broadcasts are fetched */
	/* An MP to `up` that is more than a head; false: it does not belong there.  NULL: none does. */
	bool (*note)(struct glex_group *group, glex_ep_addr_t from, const void *mp, uint32_t len);
	bool is_longer; /* one is under way */
	bool is_left;	/* nothing more is begun */
	bool is_broken;
	bool is_bereft;	      /* a neighbour has died, or something has gone wrong for good */
	uint64_t dead_next;   /* number of the next to die that has not been looked at */
	uint32_t tests, lost; /* waits without time, slices since a neighbour had died, of what was begun, */
	uint32_t astray;      /* and in which one seemed to have begun something else */
	uint64_t looked_ms;
	/* what was begun */
	enum glexi_what what;
	bool to_all;	 /* of a reduction, or a gather */
	bool is_by;	 /* a reduction by the caller's function */
	bool is_crossed; /* a gather to all of two members, each of which gives what is for the other alone */
	uint32_t root;
	void *result; /* NULL: it is not wanted here */
	uint32_t len; /* bytes, or units */
	enum glex_coll_reduce_data_bits bits;
};

/* The place of member i among the others, as in near where there is no tree. */
static inline uint32_t place_of(const struct glex_group *group, uint32_t i)
{
	return i - (i > group->me);
}

/*
 * Finding the place of group->me in the group: near and neighbours are set, also if
 * it fails; leave frees what else it has made.  begin: data of len bytes, an operand where something is reduced.
 * wait: GLEX_SUCCESS: it has ended, and the result is there; GLEX_NO_MP: the time is
 * up; GLEX_SYS_ERR: what came does not belong to it.
 */
glex_ret_t glexi_gates_join(struct glex_group *group, const struct glex_group_card *cards, enum glex_group_shape shape,
			    uint32_t degree);
void glexi_gates_leave(struct glex_group *group);
glex_ret_t glexi_gates_begin(struct glex_group *group, void *data, uint32_t len);
glex_ret_t glexi_gates_wait(struct glex_group *group, int32_t timeout);

/* Bytes behind a group that is opened for n members without a tree. */
size_t glexi_direct_size(uint32_t n);
glex_ret_t glexi_direct_join(struct glex_group *group, const struct glex_group_card *cards);
void glexi_direct_leave(struct glex_group *group);
/* Where the operand is to be put that begin is given; by: what combines those that are not of units. */
void *glexi_direct_operand(struct glex_group *group);
void glexi_direct_by(struct glex_group *group, glex_group_combine_t function, void *arg);
glex_ret_t glexi_direct_begin(struct glex_group *group, void *data, uint32_t len);
glex_ret_t glexi_direct_wait(struct glex_group *group, int32_t timeout);

/*
 * Where what comes of a collective is shown on member 0's board (meet.c).  look: also of other results of one line;
 * GLEX_SUCCESS: as the wait; GLEX_NO_MP: it is not there, and *word_p and *value_p are as of glex_group_look;
 * GLEX_NOT_IMPLEMENTED: the wait has more to do.  is_last_here: as glex_group_is_last_here.  part: begins to leave;
 * parted: as the wait of that.  was_asked: somebody may write to the board yet.
 */
glex_ret_t glexi_meet_look(struct glex_group *group, const uint64_t **word_p, uint64_t *value_p);
bool glexi_meet_is_last_here(struct glex_group *group);
void glexi_meet_part(struct glex_group *group);
glex_ret_t glexi_meet_parted(struct glex_group *group, int32_t timeout);
bool glexi_meet_was_asked(const struct glex_group *group);

/* As glex_group_look. */
const uint64_t *glexi_direct_word(const struct glex_group *group, uint64_t *value_p);

/*
 * Of a group that may begin, of two members; up to GLEX_GROUP_GATHER_MAX bytes: data has a block for each; all, which
 * may be data, gets the own one, and the other's for this member.
 */
glex_ret_t glexi_group_cross(struct glex_group *group, const void *data, void *all, uint32_t len);

/* GLEX_SUCCESS: nothing is under way.  wait_one: for what was begun last, of the two ways that there are. */
glex_ret_t glexi_group_may_begin(const struct glex_group *group);
glex_ret_t glexi_group_wait_one(struct glex_group *group, int32_t timeout);

/* Of a clock that is cheap to ask. */
uint64_t glexi_group_now_ms(void);

/* What was said between collectives.  False: that the group is broken. */
bool glexi_group_hear(struct glex_group *group);

/* An error that who ends its part, or has no room for a note, brings others, and that says nothing. */
bool glexi_group_is_harmless(const struct glex_group *group, const struct glex_err_req *err);

/*
 * A board of len bytes, all zeros; NULL: there is no memory.  give: once its region is deregistered, and before the
 * endpoints go.  UNWRITTEN: by nobody; SPENT: somebody may write there yet.
 */
enum glexi_board_state { GLEXI_BOARD_UNWRITTEN, GLEXI_BOARD_WRITTEN, GLEXI_BOARD_SPENT };

void *glexi_board_take(glex_device_handle_t dev, uint32_t len);
void glexi_board_give(void *board, enum glexi_board_state state);

/* On everybody's board, without a tree: that it is broken, and whether somebody has said so. */
void glexi_board_break(struct glex_group *group);
bool glexi_board_is_broken(const struct glex_group *group);

/*
 * Somebody has ended what was begun, or has gone, and is to have sent something before, which is not there: it is under
 * way, or he has begun something else.  Not where all meet: what comes of that may be held up with who was the last.
 */
bool glexi_board_is_astray(struct glex_group *group);

/*
 * Of a long broadcast from group->root, what is done by PUTs.
 *
 * begin: its data is in this region; NULL: nobody's here.  All members begin all of them, so that they
 * are counted alike.  step: once all have a region; GLEX_SUCCESS: all is here, and passed on;
 * *lost: something that was passed on did not arrive.
 */
void glexi_puts_begin(struct glex_group *group, const struct glex_rcache_region *region, uint32_t len);
glex_ret_t glexi_puts_step(struct glex_group *group, int32_t timeout, bool *lost);

#endif /* GLEXI_GROUP_PRIV_H */
