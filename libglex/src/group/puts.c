/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * puts.c - a long broadcast that is passed down a tree, by sequences of PUTs (paper 2.5).
 *
 *   member                               who PUTs to it: its parent; to member 0 the root
 *   says where its buffer is (MP) ---->
 *   posts a sequence for each part:      posts the same
 *   the part's PUTs to its children
 *                                 <----  PUTs part 0; that is a control packet, so the NIC here passes it on
 *                                 <----  PUTs part 1 ...
 *                                 <----  PUTs the last one, with an event
 *
 * So once all have posted, the NICs do the rest, and a part is under way on all levels of the tree while
 * others are on theirs.  The root's part of the tree hears from the root itself, and who is its parent
 * leaves it out; the rest begins at member 0, whose place in the tree is everybody's root.
 *
 * A PUT that comes to nothing is no control packet either.  Who has posted it learns what became of
 * all of his, and makes up for those that are missing: by a note, so that nobody waits for an event that
 * does not come, and by as many control packets as there were PUTs, so that all gates are opened.
 *
 * I1  All this is at `down`, where the collectives before and after it open gates too: what they send there is behind
 *     their own gates of a queue that is in order, and begins when all members have come so far; acks of broadcasts
 *     before it were counted by the reduction to all that it begins with.  At `up` it is not so:
 *     the root may have nothing more to do, and say so to a parent who has not got its first part.
 *     The network need not be in order: FENCE keeps each PUT behind what was sent before it, the parts before and the
 *     result of that reduction, which all open gates of the same member.
 * I2  A part is posted when there is room for all of it.
 * I3  A note is of the broadcast whose number it says.  Places are kept apart by who says it, and nobody says anything
 *     of the next one before who is meant by it has used what he said of this one.
 */
#include "group/priv.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 16u	/* of a broadcast; more than this many there is mostly no room for, */
#define PARTS_MIN 2u	/* but without two nothing overlaps */
#define PART_MIN  4096u /* bytes */
#define ROOM	  (GLEXI_GROUP_DQ * 3 / 4)
#define LOOK_MS	  10 /* how soon what does not wake the waiting is seen */
#define TARGETS	  (GLEX_COLL_MAX_BRANCH_DEGREE + 2)
#define ARRIVED	  UINT64_MAX /* of a remote event */

enum said { WHERE, WHO_ARE_YOU, MISSING };

/* An MP to `up`. */
struct note {
	struct glexi_head head;
	uint32_t from; /* the key of who says it */
	uint32_t seq;
	uint32_t said;
	uint32_t offset; /* WHERE: of the buffer */
	uint32_t none;
	glex_mem_handle_t mh;
};

/* Whom a note goes to. */
struct member {
	glex_ep_addr_t up;
	uint32_t key;
};

/* Somebody this one PUTs to, at its place in near. */
struct target {
	uint32_t seq; /* which broadcast the rest is of */
	uint32_t offset;
	glex_mem_handle_t mh;
	uint32_t missing;      /* PUTs that did not arrive, and have not been made up for */
	bool is_over, is_told; /* its last PUT; what is missing */
};

struct glexi_puts {
	uint32_t seq;	     /* how many broadcasts there were */
	uint32_t most;	     /* bytes of a PUT */
	uint32_t asked;	     /* the root, by a note of this broadcast, */
	struct member asker; /* which is this one */
	/* of what was begun */
	const struct glex_rcache_region *region;
	uint32_t len, part, parts, posted;
	uint32_t to[TARGETS], targets; /* places in near */
	bool has_said, has_come, is_lost;
	struct target target[TARGETS]; /* as near */
};

/* ---- who PUTs to whom ------------------------------------------------------------- */

static bool is_root(const struct glex_group *group)
{
	return group->me == group->root;
}

/* It passes on what it is sent. */
static bool is_inner(const struct glex_group *group, uint32_t at)
{
	const struct glexi_branch *branch = &group->branch[at];

	return branch->children > 1 || (branch->children == 1 && branch->first != group->root);
}

static void find_targets(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	uint32_t i;

	puts->targets = 0;
	if (is_root(group) && group->me)
		puts->to[puts->targets++] = group->children + 1;
	for (i = 0; i < group->children; i++)
		if (group->branch[i].member != group->root)
			puts->to[puts->targets++] = i;
	for (i = 0; i < puts->targets; i++) {
		puts->target[puts->to[i]].missing = 0;
		puts->target[puts->to[i]].is_over = puts->target[puts->to[i]].is_told = false;
	}
}

/* The same for all: every PUT of a part opens a gate. */
static void cut(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	uint32_t parts = ROOM / (group->widest + 1);
	uint64_t part;

	parts = parts > PARTS_MAX ? PARTS_MAX : parts < PARTS_MIN ? PARTS_MIN : parts;
	part = ((uint64_t)puts->len / parts + PART_MIN) / PART_MIN * PART_MIN;
	puts->part = (uint32_t)(part < puts->most ? part : puts->most);
	puts->parts = (uint32_t)(((uint64_t)puts->len + puts->part - 1) / puts->part);
}

static uint32_t last_at(const struct glexi_puts *puts)
{
	return (puts->parts - 1) * puts->part;
}

/* ---- notes -------------------------------------------------------------------- */

static glex_ret_t say(struct glex_group *group, const struct member *to, enum said said)
{
	struct glexi_puts *puts = group->puts;
	struct note note = {.head.key = to->key, .from = group->card.key, .seq = puts->seq, .said = said};
	struct glex_imm_mp_req req = {.rmt_ep_addr = to->up, .data = &note, .len = sizeof(note)};

	if (said == WHERE) {
		note.offset = puts->region->offset;
		note.mh = puts->region->mh;
	}
	return glex_send_imm_mp(group->up, &req, NULL);
}

static struct member member_at(const struct glex_group *group, uint32_t at)
{
	return (struct member){.up = group->near[at].up, .key = group->near[at].key};
}

/* Where this one's buffer is.  Member 0 does not know the root, unless it has asked. */
static glex_ret_t say_where(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	struct member to = member_at(group, group->children);
	glex_ret_t ret;

	if (is_root(group))
		to = member_at(group, group->children + 1);
	else if (!group->me && puts->asked != puts->seq)
		return GLEX_NO_MP;
	else if (!group->me)
		to = puts->asker;
	if (is_root(group) && !group->me)
		ret = GLEX_SUCCESS;
	else
		ret = say(group, &to, is_root(group) ? WHO_ARE_YOU : WHERE);
	puts->has_said = ret == GLEX_SUCCESS;
	return ret;
}

static struct target *target_at(struct glex_group *group, glex_ep_addr_t up)
{
	uint32_t i;

	for (i = 0; i < group->children + 2; i++)
		if (i != group->children && group->near[i].up.v == up.v)
			return &group->puts->target[i];
	return NULL;
}

static bool take_note(struct glex_group *group, glex_ep_addr_t from, const void *mp, uint32_t len)
{
	struct glexi_puts *puts = group->puts;
	struct target *target;
	struct note note;

	if (len != sizeof(note))
		return false;
	memcpy(&note, mp, sizeof(note));
	switch (note.said) {
	case WHERE:
		target = target_at(group, from);
		if (!target)
			return false;
		target->seq = note.seq;
		target->offset = note.offset;
		target->mh = note.mh;
		return true;
	case WHO_ARE_YOU:
		puts->asked = note.seq;
		puts->asker = (struct member){.up = from, .key = note.from};
		return true;
	default:
		if (note.seq == puts->seq) /* all that could come has come */
			puts->has_come = puts->is_lost = true;
		return true;
	}
}

/* ---- sequences ------------------------------------------------------------------ */

static bool are_all_there(const struct glexi_puts *puts)
{
	uint32_t i;

	for (i = 0; i < puts->targets; i++)
		if (puts->target[puts->to[i]].seq != puts->seq)
			return false;
	return true;
}

/* The next part, to all. */
static glex_ret_t post_part(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	struct glex_rdma_req list[TARGETS];
	uint32_t i, at = puts->posted * puts->part, left = puts->len - at, n = puts->targets;
	bool last = puts->posted + 1 == puts->parts;

	for (i = 0; i < n; i++) {
		const struct target *target = &puts->target[puts->to[i]];
		const struct glex_group_card *card = &group->near[puts->to[i]];

		list[i] = (struct glex_rdma_req){
			.rmt_ep_addr = card->down,
			.local_mh = puts->region->mh,
			.local_offset = puts->region->offset + at,
			.len = left < puts->part ? left : puts->part,
			.rmt_mh = target->mh,
			.rmt_offset = target->offset + at,
			.type = GLEX_RDMA_TYPE_PUT,
			.local_evt = {.cookie_0 = puts->seq, .cookie_1 = puts->to[i] + 1},
			.rmt_evt = {.cookie_0 = puts->seq, .cookie_1 = ARRIVED},
			.rmt_key = card->key,
			.coll_counter = is_root(group) ? 0 : 1,
			.flag = GLEX_FLAG_COLL | GLEX_FLAG_FENCE | (i == 0 ? GLEX_FLAG_COLL_SEQ_START : 0) |
				(i + 1 == n ? GLEX_FLAG_COLL_SEQ_TAIL : 0) |
				(is_inner(group, puts->to[i]) ? GLEX_FLAG_COLL_COUNTER : 0) |
				(last ? GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT : 0),
			.next = i + 1 < n ? &list[i + 1] : NULL,
		};
	}
	return glex_rdma(group->down, list, NULL);
}

static glex_ret_t post(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	glex_ret_t ret = GLEX_SUCCESS;

	if (!are_all_there(puts))
		return GLEX_SUCCESS;
	while (puts->posted < puts->parts && ret == GLEX_SUCCESS) {
		ret = puts->targets ? post_part(group) : GLEX_SUCCESS;
		puts->posted += ret == GLEX_SUCCESS;
	}
	return ret;
}

/* ---- what became of them ----------------------------------------------------------- */

static glex_ret_t take_events(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	glex_event_t *probed, event;
	glex_ret_t ret;

	while ((ret = glex_probe_first_event(group->down, 0, &probed)) == GLEX_SUCCESS) {
		event = *probed;
		glex_discard_probed_event(group->down);
		if (event.cookie_0 != puts->seq)
			continue; /* of one that was made up for */
		if (event.cookie_1 == ARRIVED)
			puts->has_come = true;
		else if (event.cookie_1 <= group->children + 2)
			puts->target[event.cookie_1 - 1].is_over = true;
	}
	return ret == GLEX_NO_EVENT ? GLEX_SUCCESS : ret;
}

static bool is_access(const struct glex_err_req *error)
{
	return error->op == GLEX_ERR_OP_RDMA_PUT &&
	       (error->status == GLEX_ERR_STATUS_PCIE_READ || error->status == GLEX_ERR_STATUS_ATT ||
		error->status == GLEX_ERR_STATUS_MMT);
}

static glex_ret_t take_errors(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	struct glex_err_req error;
	uint32_t i, num = 1;

	while (glex_poll_error_req(group->down, &num, &error) == GLEX_SUCCESS && num) {
		if (!is_access(&error))
			return GLEX_SYS_ERR;
		for (i = 0; i < puts->targets; i++) {
			struct target *target = &puts->target[puts->to[i]];
			glex_ep_addr_t down = group->near[puts->to[i]].down;

			if (down.nic_id != error.rmt_nic_id || down.ep_num != error.rmt_ep_num)
				continue;
			target->missing++;
			target->is_over |= error.data1 == target->offset + last_at(puts);
			puts->is_lost = true;
		}
	}
	return num ? GLEX_SYS_ERR : GLEX_SUCCESS;
}

/* Of a target whose last PUT is over, so that this endpoint's queue is in nobody's way. */
static glex_ret_t make_up_for(struct glex_group *group, uint32_t at)
{
	struct target *target = &group->puts->target[at];
	struct member to = member_at(group, at);
	struct glex_imm_mp_req req = {
		.rmt_ep_addr = group->near[at].down,
		.flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_COUNTER,
	};
	glex_ret_t ret = GLEX_SUCCESS;

	if (!target->is_told && target->missing) {
		ret = say(group, &to, MISSING);
		target->is_told = ret == GLEX_SUCCESS;
	}
	if (!is_inner(group, at))
		target->missing = ret == GLEX_SUCCESS ? 0 : target->missing;
	while (target->missing && ret == GLEX_SUCCESS) {
		ret = glex_send_imm_mp(group->down, &req, NULL);
		target->missing -= ret == GLEX_SUCCESS;
	}
	return ret;
}

/* GLEX_SUCCESS: of all; GLEX_NO_MP: not yet. */
static glex_ret_t are_all_over(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	glex_ret_t ret, all = GLEX_SUCCESS;
	uint32_t i;

	for (i = 0; i < puts->targets; i++) {
		ret = puts->target[puts->to[i]].is_over ? make_up_for(group, puts->to[i]) : GLEX_NO_MP;
		if (ret != GLEX_SUCCESS && ret != GLEX_NO_MP && ret != GLEX_BUSY)
			return ret;
		if (ret != GLEX_SUCCESS)
			all = GLEX_NO_MP;
	}
	return all;
}

/* ---- as a whole ----------------------------------------------------------------- */

void glexi_puts_begin(struct glex_group *group, const struct glex_rcache_region *region, uint32_t len)
{
	struct glexi_puts *puts = group->puts;

	puts->seq++;
	puts->region = region;
	puts->len = len;
	puts->posted = 0;
	puts->has_come = is_root(group);
	puts->has_said = puts->is_lost = false;
	find_targets(group);
	cut(group);
	if (region)
		say_where(group); /* else, or if that is not taken, when all have begun */
}

/* Events before errors: when the last PUT's event is there, the errors of those before it are, too. */
static glex_ret_t advance(struct glex_group *group)
{
	struct glexi_puts *puts = group->puts;
	glex_ret_t ret = glexi_group_hear(group) ? GLEX_SUCCESS : GLEX_SYS_ERR;

	if (ret == GLEX_SUCCESS && !puts->has_said)
		ret = say_where(group);
	if (ret == GLEX_SUCCESS)
		ret = post(group);
	if (ret == GLEX_SUCCESS || ret == GLEX_BUSY)
		ret = take_events(group);
	if (ret == GLEX_SUCCESS)
		ret = take_errors(group);
	if (ret == GLEX_SUCCESS)
		ret = are_all_over(group);
	if (ret == GLEX_BUSY || (ret == GLEX_SUCCESS && (!puts->has_come || puts->posted < puts->parts)))
		return GLEX_NO_MP;
	return ret;
}

/* For what comes next: notes, then events.  Room tells nobody. */
static glex_ret_t wait_more(struct glex_group *group, int32_t timeout)
{
	struct glexi_puts *puts = group->puts;
	bool waits_for_room = puts->has_said ? are_all_there(puts) : group->me || puts->asked == puts->seq;
	glex_event_t *event;
	glex_ret_t ret;
	void *mp;
	uint32_t len;

	if (puts->has_said && puts->posted == puts->parts)
		ret = glex_probe_first_event(group->down, timeout, &event);
	else
		ret = glex_probe_first_mp(group->up, waits_for_room ? 1 : timeout, NULL, &mp, &len);
	return ret == GLEX_NO_EVENT || ret == GLEX_NO_MP ? GLEX_SUCCESS : ret;
}

glex_ret_t glexi_puts_step(struct glex_group *group, int32_t timeout, bool *lost)
{
	glex_ret_t ret = advance(group);
	int32_t slice;

	while (ret == GLEX_NO_MP && timeout > 0) {
		slice = timeout < LOOK_MS ? timeout : LOOK_MS;
		timeout -= slice;
		ret = wait_more(group, slice);
		if (ret == GLEX_SUCCESS)
			ret = advance(group);
	}
	*lost |= group->puts->is_lost;
	return ret;
}

/* ---- asking for it ---------------------------------------------------------------- */

glex_ret_t glex_group_set_long(glex_group_t group, enum glex_group_long how)
{
	struct glex_device_attr device;
	glex_ret_t ret = glexi_group_may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	if (group->fetched || (how != GLEX_GROUP_LONG_FETCHED && (how != GLEX_GROUP_LONG_PASSED || group->direct)))
		return GLEX_INVALID_PARAM;
	free(group->puts);
	group->puts = NULL;
	group->note = NULL;
	if (how == GLEX_GROUP_LONG_FETCHED)
		return GLEX_SUCCESS;
	ret = glex_query_device(group->dev, &device);
	if (ret != GLEX_SUCCESS)
		return ret;
	group->puts = calloc(1, sizeof(*group->puts));
	if (!group->puts)
		return GLEX_NO_MEM_RESOURCE;
	group->note = take_note;
	group->puts->most = device.max_rdma_data_len / PART_MIN * PART_MIN;
	return GLEX_SUCCESS;
}
