/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gates.c - barrier, broadcast and reductions on a tree, by requests that packets trigger, on two endpoints, so
 * that what opens one's gate never opens the other's:
 *
 *                       up                                 down
 *   barrier, allreduce  all children have told: it tells   it was told, member 0 by its `up`: it tells its
 *                       its parent, or its own `down`      children
 *   bcast                                                  the root tells member 0; who was told tells its children,
 *                                                          then its parent that it has (ack)
 *   reduce              all children have told: it tells   member 0's `up` tells the root the result
 *                       its parent, then its children
 *                       that it has (go)
 *
 * All wait for a barrier and a reduction to all.  Else only those wait who want something: who broadcasts and who only
 * gives an operand has done so when the requests are posted.  Acks and gos are control packets that no host waits for:
 * the gate that comes next at that endpoint counts them too (paper 4.7).  After a collective that all have waited
 * for there are none: there who begins a broadcast says itself, by an ack, that it has left that collective.
 *
 * I1  A packet that opens a gate is sent once the gate before it, of the same endpoint, is open.  So whatever the
 *     network does with their order, none is taken for another gate's, and no queue has more than one gate's.
 *       down, from the parent (to member 0 the root): its own gate counted an ack of all children, or the root's
 *           requests stand behind its gate before, which what came from member 0 has opened
 *       down, from a child: its gate is open, by what this one's has let through; or it has left a barrier
 *       up, from a child: its gate counted the go; or all have left a barrier, so all gates of `up` are open
 *       up, from the parent: its gate is open, to which this one's packet belongs
 * I2  Who runs ahead is stopped by its own queue of requests: what has no room there is posted by the wait.
 * I3  Of what a member has not taken yet at most one packet is from its parent: the second waits for its ack.
 *     It may come before a result that member 0 sends, which is what the member waits for: it is kept.
 */
#include "group/priv.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS  200u /* for room, before sleeping */
#define NOBODY UINT64_MAX

/* What the last gate of `down` was opened for. */
enum before { NOTHING, ALL_WAITED, ACKED };

enum todo { POST_DOWN = 1, POST_UP = 2, POST = POST_DOWN | POST_UP, TAKE = 4 };

struct glexi_gates {
	enum before before;
	bool is_owed_go;    /* by the parent */
	bool is_ahead;	    /* others may not have done yet what belongs to what has ended here */
	bool has_early;	    /* I3 */
	bool is_up_done;    /* of leaving: nothing is left at `up` */
	uint32_t todo;	    /* of what was begun */
	uint32_t len;	    /* of the data that was given */
	void *data;	    /* NULL: none was */
	glex_ep_addr_t *to; /* member 0's: everybody's `down` */
	uint32_t early_len;
	unsigned char early[GLEXI_GROUP_MP];
	unsigned char kept[GLEXI_GROUP_MP]; /* data, if it could not be posted at once */
};

static const struct glex_group_card *parent_of(const struct glex_group *group)
{
	return &group->near[group->children];
}

static const struct glex_group_card *first_of(const struct glex_group *group)
{
	return &group->near[group->children + 1];
}

static bool is_to_one(const struct glex_group *group)
{
	return group->what == GLEXI_REDUCE && !group->to_all;
}

/* ---- joining -------------------------------------------------------------------- */

struct tree {
	enum glex_group_shape shape;
	uint32_t n, degree;
};

static struct glexi_branch branch_to(const struct tree *tree, uint32_t member)
{
	uint32_t parent, child[GLEX_COLL_MAX_BRANCH_DEGREE] = {0};
	struct glexi_branch branch = {.member = member};

	glex_group_tree(tree->shape, tree->n, member, tree->degree, &parent, child, &branch.children);
	branch.first = child[0];
	return branch;
}

static glex_ret_t find_place(struct glex_group *group, const struct glex_group_card *cards, enum glex_group_shape shape,
			     uint32_t degree)
{
	uint32_t i, up, near[GLEX_COLL_MAX_BRANCH_DEGREE + 2];
	struct tree tree = {shape, group->n, degree};
	glex_ret_t ret;

	ret = glex_group_tree(shape, group->n, 0, degree, &up, near, &group->widest); /* nobody has more children */
	if (ret == GLEX_SUCCESS)
		ret = glex_group_tree(shape, group->n, group->me, degree, &up, near, &group->children);
	if (ret != GLEX_SUCCESS)
		return ret;
	near[group->children] = up;
	near[group->children + 1] = 0;
	group->near = calloc(group->children + 2, sizeof(*group->near));
	group->branch = calloc(group->children + 2, sizeof(*group->branch));
	if (!group->near || !group->branch)
		return GLEX_NO_MEM_RESOURCE;
	for (i = 0; i < group->children + 2; i++) {
		group->near[i] = cards[near[i]];
		group->branch[i] = branch_to(&tree, near[i]);
	}
	group->neighbours = group->children + (group->me != 0);
	return GLEX_SUCCESS;
}

static glex_ret_t make_gates(struct glex_group *group, const struct glex_group_card *cards)
{
	struct glexi_gates *gates = group->gates = calloc(1, sizeof(*gates));
	uint32_t i;

	if (!gates)
		return GLEX_NO_MEM_RESOURCE;
	if (group->me)
		return GLEX_SUCCESS;
	gates->to = calloc(group->n, sizeof(*gates->to));
	for (i = 0; gates->to && i < group->n; i++)
		gates->to[i] = cards[i].down;
	return gates->to ? GLEX_SUCCESS : GLEX_NO_MEM_RESOURCE;
}

/*
 * A request of no effect through each endpoint's collective unit, which is made for
 * the first one: so that if there is no room for it, this is known before others
 * rely on it.  What has come before is for who had the endpoint before; who had those of this one's neighbours
 * then sends no more.
 */
static glex_ret_t try_units(struct glex_group *group)
{
	glex_ep_handle_t ep[2] = {group->up, group->down};
	struct glex_imm_mp_req req = {.flag = GLEX_FLAG_COLL};
	unsigned char data[GLEXI_GROUP_MP];
	glex_ret_t ret = GLEX_SUCCESS;
	glex_ep_addr_t from;
	uint32_t i, len;

	for (i = 0; i < 2 && ret == GLEX_SUCCESS; i++) {
		req.rmt_ep_addr = i ? group->card.down : group->card.up;
		ret = glex_send_imm_mp(ep[i], &req, NULL);
		do
			if (ret == GLEX_SUCCESS)
				ret = glex_receive_mp(ep[i], GLEXI_GROUP_WAIT_MS, &from, data, &len);
		while (ret == GLEX_SUCCESS && from.v != req.rmt_ep_addr.v);
	}
	return ret == GLEX_NO_MP ? GLEX_SYS_ERR : ret;
}

glex_ret_t glexi_gates_join(struct glex_group *group, const struct glex_group_card *cards, enum glex_group_shape shape,
			    uint32_t degree)
{
	glex_ret_t ret = find_place(group, cards, shape, degree);

	if (ret == GLEX_SUCCESS)
		ret = make_gates(group, cards);
	return ret == GLEX_SUCCESS ? try_units(group) : ret;
}

void glexi_gates_leave(struct glex_group *group)
{
	if (!group->gates)
		return;
	free(group->gates->to);
	free(group->gates);
	group->gates = NULL;
}

/* ---- requests ------------------------------------------------------------------- */

/* For one endpoint, taken whole or not at all. */
struct requests {
	struct glex_imm_mp_req of[GLEX_COLL_MAX_BRANCH_DEGREE + 4];
	uint32_t n;
};

static struct glex_imm_mp_req *add(struct requests *list, glex_ep_addr_t to, int32_t flag)
{
	struct glex_imm_mp_req *req = &list->of[list->n++];

	*req = (struct glex_imm_mp_req){.rmt_ep_addr = to, .flag = GLEX_FLAG_COLL | flag};
	return req;
}

/* With what was given here. */
static struct glex_imm_mp_req *add_data(struct requests *list, const struct glexi_gates *gates, glex_ep_addr_t to,
					int32_t flag)
{
	struct glex_imm_mp_req *req = add(list, to, flag);

	req->data = gates->data;
	req->len = gates->len;
	return req;
}

/* Those from this one on are a sequence, behind a gate. */
static void make_sequence(struct requests *list, uint32_t from, uint32_t counter)
{
	if (list->n == from)
		return;
	list->of[from].flag |= GLEX_FLAG_COLL_SEQ_START;
	list->of[from].coll_counter = counter;
	list->of[list->n - 1].flag |= GLEX_FLAG_COLL_SEQ_TAIL;
}

static glex_ret_t post_list(glex_ep_handle_t ep, struct requests *list)
{
	uint32_t i;

	for (i = 1; i < list->n; i++)
		list->of[i - 1].next = &list->of[i];
	return list->n ? glex_send_imm_mp(ep, list->of, NULL) : GLEX_SUCCESS;
}

/* ---- beginning ---------------------------------------------------------------- */

/* What is passed on to the children. */
static int32_t pass_flags(const struct glex_group *group, uint32_t child)
{
	return GLEX_FLAG_COLL_SWAP | (group->branch[child].children ? GLEX_FLAG_COLL_CP_SWAP_DATA : 0) |
	       (group->what == GLEXI_REDUCE ? GLEX_FLAG_COLL_REDUCE_RESULT : 0);
}

/* Of what all wait for. */
static void tell_children(struct glex_group *group, struct requests *list)
{
	const struct glexi_gates *gates = group->gates;
	uint32_t i, acks = gates->before == ACKED ? group->children : 0;

	for (i = 0; i < group->children; i++)
		add(list, group->near[i].down,
		    pass_flags(group, i) | GLEX_FLAG_COLL_CP_DATA |
			    (group->branch[i].children ? GLEX_FLAG_COLL_COUNTER : 0));
	make_sequence(list, 0, 1 + acks);
}

static void broadcast(struct glex_group *group, struct requests *list)
{
	const struct glexi_gates *gates = group->gates;
	bool is_root = group->me == group->root;
	uint32_t i, start, acks = gates->before == NOTHING ? 0 : group->children;
	int32_t flag;

	if (group->me && gates->before == ALL_WAITED)
		add(list, parent_of(group)->down, GLEX_FLAG_COLL_COUNTER);
	if (group->me && is_root)
		add_data(list, gates, first_of(group)->down, GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA);
	start = list->n;
	for (i = 0; i < group->children; i++) {
		flag = pass_flags(group, i) | GLEX_FLAG_COLL_COUNTER |
		       (group->branch[i].member == group->root ? 0 : GLEX_FLAG_COLL_CP_DATA);
		if (group->me || !is_root)
			add(list, group->near[i].down, flag);
		else
			add_data(list, gates, group->near[i].down, flag & ~GLEX_FLAG_COLL_SWAP);
	}
	if (group->me)
		add(list, parent_of(group)->down, GLEX_FLAG_COLL_COUNTER);
	else if (!is_root)
		add(list, group->card.down, GLEX_FLAG_COLL_SWAP | GLEX_FLAG_COLL_CP_DATA);
	make_sequence(list, start, (group->me || !is_root) + acks);
}

/* Told to the parent, or by member 0 to its own `down`, or to the only one who wants it; when all children have told. */
static void tell_parent(struct glex_group *group, struct requests *list)
{
	const struct glexi_gates *gates = group->gates;
	bool first = group->me == 0, counts = !first || (group->children && !is_to_one(group));
	int32_t flag = counts ? GLEX_FLAG_COLL_COUNTER : 0;
	glex_ep_addr_t to = !first	       ? parent_of(group)->up
			    : is_to_one(group) ? gates->to[group->root]
					       : group->card.down;
	uint32_t i;

	if (first)
		flag |= GLEX_FLAG_COLL_CP_DATA;
	if (group->what == GLEXI_REDUCE)
		flag |= GLEX_FLAG_COLL_REDUCE | GLEX_FLAG_COLL_SWAP | (counts ? GLEX_FLAG_COLL_CP_SWAP_DATA : 0);
	add_data(list, gates, to, flag);
	for (i = 0; i < group->children && is_to_one(group); i++)
		add(list, group->near[i].up, GLEX_FLAG_COLL_COUNTER);
	make_sequence(list, 0, group->children + gates->is_owed_go);
}

/* A packet to oneself, when all that was posted at an endpoint has been executed, and what it is owed has come. */
static void look_behind(struct glex_group *group, struct requests *list, uint32_t owed)
{
	add(list, group->card.down, GLEX_FLAG_COLL_CP_DATA);
	make_sequence(list, 0, owed);
}

static glex_ret_t post_down(struct glex_group *group)
{
	struct requests list = {.n = 0};
	glex_ret_t ret;

	if (group->what == GLEXI_LEAVE)
		look_behind(group, &list, group->gates->before == ACKED ? group->children : 0);
	else if (group->what == GLEXI_BCAST)
		broadcast(group, &list);
	else
		tell_children(group, &list);
	ret = post_list(group->down, &list);
	if (ret == GLEX_SUCCESS)
		group->gates->before = group->what == GLEXI_BCAST ? ACKED : ALL_WAITED;
	return ret;
}

static glex_ret_t post_up(struct glex_group *group)
{
	struct requests list = {.n = 0};
	glex_ret_t ret;

	if (group->what == GLEXI_LEAVE)
		look_behind(group, &list, group->gates->is_owed_go);
	else
		tell_parent(group, &list);
	ret = post_list(group->up, &list);
	if (ret == GLEX_SUCCESS)
		group->gates->is_owed_go = is_to_one(group) && group->me;
	return ret;
}

/* What is left of it.  GLEX_BUSY: there is no room yet. */
static glex_ret_t post(struct glex_group *group)
{
	struct glexi_gates *gates = group->gates;
	glex_ret_t ret = GLEX_SUCCESS;

	if (gates->todo & POST_DOWN)
		ret = post_down(group);
	if (ret == GLEX_SUCCESS)
		gates->todo &= ~(uint32_t)POST_DOWN;
	if (ret == GLEX_SUCCESS && gates->todo & POST_UP)
		ret = post_up(group);
	if (ret == GLEX_SUCCESS)
		gates->todo &= ~(uint32_t)POST_UP;
	return ret;
}

/* What this member does for it. */
static uint32_t todo_of(const struct glex_group *group)
{
	switch (group->what) {
	case GLEXI_LEAVE:
		return group->gates->is_ahead ? POST_UP | TAKE : 0;
	case GLEXI_BCAST:
		return POST_DOWN | (group->me == group->root ? 0 : TAKE);
	default:
		return !is_to_one(group) ? POST | TAKE : POST_UP | (group->me == group->root ? TAKE : 0);
	}
}

glex_ret_t glexi_gates_begin(struct glex_group *group, void *data, uint32_t len)
{
	struct glexi_gates *gates = group->gates;
	bool gives = group->what == GLEXI_REDUCE || (group->what == GLEXI_BCAST && group->me == group->root);
	glex_ret_t ret;

	gates->todo = todo_of(group);
	gates->data = gives ? data : NULL;
	gates->len = gives ? len : 0;
	ret = post(group);
	if (ret != GLEX_BUSY)
		return ret;
	if (gates->len)
		memcpy(gates->kept, data, gates->len);
	gates->data = gates->kept;
	return GLEX_SUCCESS; /* I2 */
}

/* ---- waiting -------------------------------------------------------------------- */

/* Whom what is waited for comes from. */
static uint64_t source_of(const struct glex_group *group)
{
	if (!(group->gates->todo & TAKE))
		return NOBODY;
	if (is_to_one(group))
		return first_of(group)->up.v;
	if (group->what == GLEXI_LEAVE)
		return group->gates->is_up_done ? group->card.down.v : group->card.up.v;
	if (group->what == GLEXI_BCAST && !group->me)
		return group->card.down.v;
	return group->me ? parent_of(group)->down.v : group->card.up.v;
}

static glex_ret_t deliver(struct glex_group *group, void *data, uint32_t len)
{
	glex_ret_t ret = GLEX_SUCCESS;

	if (group->what == GLEXI_REDUCE && group->result)
		ret = glex_coll_decompose_mp_reduce_data(group->result, group->len, group->bits, data);
	else if (group->what == GLEXI_BCAST && len != group->len)
		ret = GLEX_SYS_ERR;
	else if (group->what == GLEXI_BCAST && len)
		memcpy(group->result, data, len);
	return ret == GLEX_SUCCESS ? GLEX_SUCCESS : GLEX_SYS_ERR; /* else the others had begun something else */
}

/* I3 */
static glex_ret_t keep(struct glexi_gates *gates, const void *data, uint32_t len)
{
	if (gates->has_early)
		return GLEX_SYS_ERR;
	gates->has_early = true;
	gates->early_len = len;
	memcpy(gates->early, data, len);
	return GLEX_SUCCESS;
}

/* What others send is for who had this endpoint before. */
static glex_ret_t take(struct glex_group *group, int32_t timeout)
{
	uint64_t source = source_of(group), parent = group->me ? parent_of(group)->down.v : NOBODY;
	struct glexi_gates *gates = group->gates;
	unsigned char data[GLEXI_GROUP_MP];
	glex_ret_t ret = GLEX_SUCCESS;
	glex_ep_addr_t from;
	uint32_t len;

	if (gates->has_early && source == parent) {
		gates->has_early = false;
		return deliver(group, gates->early, gates->early_len);
	}
	while (ret == GLEX_SUCCESS) {
		ret = glex_receive_mp(group->down, timeout, &from, data, &len);
		if (ret == GLEX_SUCCESS && from.v == source)
			return deliver(group, data, len);
		if (ret == GLEX_SUCCESS && from.v == parent)
			ret = keep(gates, data, len);
	}
	return ret;
}

/* It has ended here. */
static glex_ret_t note_end(struct glex_group *group)
{
	group->gates->is_ahead = group->what == GLEXI_BCAST || is_to_one(group);
	return GLEX_SUCCESS;
}

/* What it has waited for; who leaves has two endpoints to look behind. */
static void took(struct glex_group *group)
{
	struct glexi_gates *gates = group->gates;

	gates->todo &= ~(uint32_t)TAKE;
	if (group->what != GLEXI_LEAVE || gates->is_up_done)
		return;
	gates->is_up_done = true;
	gates->todo |= POST_DOWN | TAKE;
}

/* Room tells nobody: it is looked for again and again. */
glex_ret_t glexi_gates_wait(struct glex_group *group, int32_t timeout)
{
	struct glexi_gates *gates = group->gates;
	uint32_t looks = 0;
	int32_t slice;
	glex_ret_t ret;

	for (;;) {
		ret = gates->todo & POST ? post(group) : GLEX_SUCCESS;
		if (ret != GLEX_SUCCESS && ret != GLEX_BUSY)
			return GLEX_SYS_ERR;
		if (!gates->todo)
			return note_end(group);
		slice = !(gates->todo & POST) ? timeout : timeout && looks++ >= LOOKS ? 1 : 0;
		ret = take(group, slice);
		if (ret == GLEX_SUCCESS)
			took(group);
		else if (ret != GLEX_NO_MP || !(gates->todo & POST) || timeout == slice)
			return ret;
		else if (slice)
			timeout -= slice;
		else
			sched_yield();
	}
}
