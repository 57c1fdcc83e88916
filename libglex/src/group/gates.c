/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gates.c - barrier, broadcast and reductions on a tree, in two phases, each on an
 * endpoint of its own, so that what opens one's gate never opens the other's:
 *
 *   up     a member tells its parent, when all its children have told it; with an
 *          operand where something is to be reduced.  Who broadcasts and is not the
 *          root sends the data to the root besides: one control packet more there.
 *   down   the root tells itself; whoever is told has it passed on to its children.
 *
 * Everybody passes both phases in each collective, so none can overtake another
 * and no queue can overflow, whatever follows on what.
 */
#include "group/priv.h"

#include <stdlib.h>
#include <string.h>

static const struct glex_group_card *parent_of(const struct glex_group *group)
{
	return &group->near[group->children];
}

static const struct glex_group_card *root_of(const struct glex_group *group)
{
	return &group->near[group->children + 1];
}

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

	return ret == GLEX_SUCCESS ? try_units(group) : ret;
}

/* ---- beginning ---------------------------------------------------------------- */

static int32_t down_flags(enum glexi_what what)
{
	return GLEX_FLAG_COLL | GLEX_FLAG_COLL_SWAP | GLEX_FLAG_COLL_CP_DATA |
	       (what == GLEXI_REDUCE ? GLEX_FLAG_COLL_REDUCE_RESULT : 0);
}

/* What the children are sent once this member has been told. */
static glex_ret_t post_down(struct glex_group *group)
{
	struct glex_imm_mp_req list[GLEX_COLL_MAX_BRANCH_DEGREE];
	uint32_t i, n = group->children;

	for (i = 0; i < n; i++)
		list[i] = (struct glex_imm_mp_req){
			.rmt_ep_addr = group->near[i].down,
			.coll_counter = 1,
			.flag = down_flags(group->what) | (i == 0 ? GLEX_FLAG_COLL_SEQ_START : 0) |
				(i + 1 == n ? GLEX_FLAG_COLL_SEQ_TAIL : 0) |
				(group->branch[i].children ? GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA : 0),
			.next = i + 1 < n ? &list[i + 1] : NULL,
		};
	return n ? glex_send_imm_mp(group->down, list, NULL) : GLEX_SUCCESS;
}

/* Told to the parent, or by the root to itself, when all children have told and `more` besides. */
static glex_ret_t post_up(struct glex_group *group, void *data, uint32_t len, uint32_t more)
{
	bool root = group->me == 0;
	struct glex_imm_mp_req req = {
		.rmt_ep_addr = root ? group->card.down : parent_of(group)->up,
		.data = data,
		.len = len,
		.coll_counter = group->children + (root ? more : 0),
		.flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_SEQ_START | GLEX_FLAG_COLL_SEQ_TAIL,
	};

	if (!root || group->children) /* a root without children has no gate to open */
		req.flag |= GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA;
	if (group->what == GLEXI_REDUCE)
		req.flag |= GLEX_FLAG_COLL_REDUCE | GLEX_FLAG_COLL_SWAP;
	else if (!root)
		req.flag &= ~GLEX_FLAG_COLL_CP_SWAP_DATA; /* the data, if any, comes from another */
	if (root)
		req.flag |= GLEX_FLAG_COLL_CP_DATA | GLEX_FLAG_COLL_SWAP;
	return glex_send_imm_mp(group->up, &req, NULL);
}

/* Who broadcasts and is not the root. */
static glex_ret_t post_data(struct glex_group *group, void *data, uint32_t len)
{
	struct glex_imm_mp_req req = {
		.rmt_ep_addr = root_of(group)->up,
		.data = data,
		.len = len,
		.flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA,
	};

	return glex_send_imm_mp(group->up, &req, NULL);
}

/* The queues are empty when nothing has begun, so none of the posts is refused for want of room. */
glex_ret_t glexi_gates_begin(struct glex_group *group, void *data, uint32_t len)
{
	bool bcast = group->what == GLEXI_BCAST, mine = !bcast || group->me == group->root;
	glex_ret_t ret = post_down(group);

	if (ret == GLEX_SUCCESS && bcast && group->root && mine)
		ret = post_data(group, data, len);
	if (ret == GLEX_SUCCESS)
		ret = post_up(group, mine ? data : NULL, mine ? len : 0, bcast && group->root ? 1 : 0);
	return ret;
}

/* ---- waiting -------------------------------------------------------------------- */

/* The next from this endpoint.  Others have nothing to say here but what they wanted to say to who had it before. */
static glex_ret_t take_from(struct glex_group *group, glex_ep_addr_t source, int32_t timeout, void *data, uint32_t *len)
{
	glex_ep_addr_t from;
	glex_ret_t ret;

	do
		ret = glex_receive_mp(group->down, timeout, &from, data, len);
	while (ret == GLEX_SUCCESS && from.v != source.v);
	return ret;
}

glex_ret_t glexi_gates_wait(struct glex_group *group, int32_t timeout)
{
	unsigned char data[GLEXI_GROUP_MP];
	uint32_t len;
	glex_ret_t ret = take_from(group, group->me ? parent_of(group)->down : group->card.up, timeout, data, &len);

	if (ret != GLEX_SUCCESS)
		return ret;
	if (group->what == GLEXI_REDUCE && group->result)
		ret = glex_coll_decompose_mp_reduce_data(group->result, group->len, group->bits, data);
	else if (group->what == GLEXI_BCAST && len != group->len)
		ret = GLEX_SYS_ERR;
	else if (group->what == GLEXI_BCAST && len)
		memcpy(group->result, data, len);
	return ret == GLEX_SUCCESS ? GLEX_SUCCESS : GLEX_SYS_ERR; /* else the others had begun something else */
}
