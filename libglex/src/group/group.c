/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * group.c - barrier, broadcast and reductions on a tree, in two phases, each on an
 * endpoint of its own, so that what opens one's gate never opens the other's:
 *
 *   up     a member tells its parent, when all its children have told it; with an
 *          operand where something is to be reduced.  Who broadcasts and is not the
 *          root sends the data to the root besides: one control packet more there.
 *   down   the root tells itself; whoever is told has it passed on to its children.
 *
 * Everybody passes both phases in each collective, so none can overtake another
 * and no queue can overflow, whatever follows on what.
 *
 * Who waits for long looks after its neighbours, by an empty PUT to each, which
 * comes back as an error when the endpoint is gone.  If what was begun does not end
 * soon after (a member may leave when it has ended for itself), the group is broken,
 * and says so to all its neighbours: by an MP to `up`, where no other ever comes.
 */
#include <glex_ext.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MP_DATA	       112u
#define SLICE_MS       200
#define DEFAULT_DEGREE 8u
#define MPQ_CAPACITY   64u
#define GRACE	       4u /* slices between losing a neighbour and giving up */
#define UNITS_MS       10000
#define TESTS	       64u /* in one of so many without waiting: a look at the clock, and for bad news */

enum what { NOTHING, BARRIER, BCAST, REDUCE };

/* A member at the other end of a branch. */
struct neighbour {
	struct glex_group_card card;
	bool inner; /* it has children */
};

struct glex_group {
	glex_ep_handle_t up, down;
	struct glex_group_card card;
	glex_mem_handle_t mh;
	uint64_t memory; /* what neighbours look for */
	uint32_t n, me, children;
	struct neighbour *near; /* the children, the parent, the root; NULL: not joined */
	bool is_broken;
	uint32_t tests, lost; /* waits without time, slices without a neighbour, since something was begun */
	uint64_t looked_ms;
	/* what was begun */
	enum what what;
	void *result; /* NULL: it is not wanted here */
	uint32_t len; /* bytes, or units */
	enum glex_coll_reduce_data_bits bits;
};

/* ---- opening, joining ------------------------------------------------------- */

static glex_ret_t open_ends(struct glex_group *group, glex_device_handle_t dev, enum glex_ep_type type)
{
	struct glex_ep_attr attr = {.type = type, .num = GLEX_ANY_EP_NUM, .key = GLEX_EP_MAKE_KEY(0x67726f75u)};
	glex_ret_t ret;

	attr.dq_capacity = attr.mpq_capacity = attr.eq_capacity = MPQ_CAPACITY;
	ret = glex_create_ep(dev, &attr, &group->up);
	if (ret == GLEX_SUCCESS)
		ret = glex_create_ep(dev, &attr, &group->down);
	if (ret == GLEX_SUCCESS)
		ret = glex_register_mem(group->up, &group->memory, sizeof(group->memory), GLEX_MEM_WRITE, &group->mh);
	if (ret != GLEX_SUCCESS)
		return ret;
	group->card.mh = group->mh;
	group->card.key = attr.key;
	glex_get_ep_addr(group->up, &group->card.up);
	return glex_get_ep_addr(group->down, &group->card.down);
}

glex_ret_t glex_group_open(glex_device_handle_t dev, enum glex_ep_type type, glex_group_t *group_p,
			   struct glex_group_card *card)
{
	struct glex_group *group;
	glex_ret_t ret;

	if (!dev || !group_p || !card)
		return GLEX_INVALID_PARAM;
	group = calloc(1, sizeof(*group));
	if (!group)
		return GLEX_NO_MEM_RESOURCE;
	ret = open_ends(group, dev, type);
	if (ret != GLEX_SUCCESS) {
		glex_group_close(group);
		return ret;
	}
	*card = group->card;
	*group_p = group;
	return GLEX_SUCCESS;
}

glex_ret_t glex_group_close(glex_group_t group)
{
	if (!group)
		return GLEX_INVALID_PARAM;
	if (group->down)
		glex_destroy_ep(group->down);
	if (group->up)
		glex_destroy_ep(group->up);
	free(group->near);
	free(group);
	return GLEX_SUCCESS;
}

static struct neighbour *parent_of(const struct glex_group *group)
{
	return &group->near[group->children];
}

static struct neighbour *root_of(const struct glex_group *group)
{
	return &group->near[group->children + 1];
}

static glex_ret_t find_place(struct glex_group *group, const struct glex_group_card *cards, enum glex_group_shape shape,
			     uint32_t degree)
{
	uint32_t i, parent, up, child[GLEX_COLL_MAX_BRANCH_DEGREE], below[GLEX_COLL_MAX_BRANCH_DEGREE], count;
	glex_ret_t ret;

	ret = glex_group_tree(shape, group->n, 0, degree, &up, below, &count); /* nobody has more children */
	if (ret == GLEX_SUCCESS)
		ret = glex_group_tree(shape, group->n, group->me, degree, &parent, child, &group->children);
	if (ret != GLEX_SUCCESS)
		return ret;
	group->near = calloc(group->children + 2, sizeof(*group->near));
	if (!group->near)
		return GLEX_NO_MEM_RESOURCE;
	for (i = 0; i < group->children; i++) {
		glex_group_tree(shape, group->n, child[i], degree, &up, below, &count);
		group->near[i] = (struct neighbour){.card = cards[child[i]], .inner = count != 0};
	}
	parent_of(group)->card = cards[parent];
	root_of(group)->card = cards[0];
	return GLEX_SUCCESS;
}

/*
 * A request of no effect through each endpoint's collective unit, which is made for
 * the first one: so that if there is no room for it, this is known before others
 * rely on it.
 */
static glex_ret_t try_units(struct glex_group *group)
{
	glex_ep_handle_t ep[2] = {group->up, group->down};
	struct glex_imm_mp_req req = {.flag = GLEX_FLAG_COLL};
	unsigned char data[MP_DATA];
	glex_ret_t ret = GLEX_SUCCESS;
	uint32_t i, len;

	for (i = 0; i < 2 && ret == GLEX_SUCCESS; i++) {
		req.rmt_ep_addr = i ? group->card.down : group->card.up;
		ret = glex_send_imm_mp(ep[i], &req, NULL);
		if (ret == GLEX_SUCCESS)
			ret = glex_receive_mp(ep[i], UNITS_MS, NULL, data, &len);
	}
	return ret == GLEX_NO_MP ? GLEX_SYS_ERR : ret;
}

glex_ret_t glex_group_join(glex_group_t group, const struct glex_group_card *cards, uint32_t n, uint32_t me,
			   enum glex_group_shape shape, uint32_t degree)
{
	glex_ret_t ret;

	if (!group || !cards || group->near || me >= n || cards[me].up.v != group->card.up.v ||
	    cards[me].down.v != group->card.down.v)
		return GLEX_INVALID_PARAM;
	group->n = n;
	group->me = me;
	ret = find_place(group, cards, shape, degree ? degree : DEFAULT_DEGREE);
	if (ret == GLEX_SUCCESS)
		ret = try_units(group);
	if (ret != GLEX_SUCCESS) {
		free(group->near);
		group->near = NULL;
	}
	return ret;
}

/* ---- beginning ---------------------------------------------------------------- */

static int32_t down_flags(enum what what)
{
	return GLEX_FLAG_COLL | GLEX_FLAG_COLL_SWAP | GLEX_FLAG_COLL_CP_DATA |
	       (what == REDUCE ? GLEX_FLAG_COLL_REDUCE_RESULT : 0);
}

/* What the children are sent once this member has been told. */
static glex_ret_t post_down(struct glex_group *group, enum what what)
{
	struct glex_imm_mp_req list[GLEX_COLL_MAX_BRANCH_DEGREE];
	uint32_t i, n = group->children;

	for (i = 0; i < n; i++)
		list[i] = (struct glex_imm_mp_req){
			.rmt_ep_addr = group->near[i].card.down,
			.coll_counter = 1,
			.flag = down_flags(what) | (i == 0 ? GLEX_FLAG_COLL_SEQ_START : 0) |
				(i + 1 == n ? GLEX_FLAG_COLL_SEQ_TAIL : 0) |
				(group->near[i].inner ? GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA : 0),
			.next = i + 1 < n ? &list[i + 1] : NULL,
		};
	return n ? glex_send_imm_mp(group->down, list, NULL) : GLEX_SUCCESS;
}

/* Told to the parent, or by the root to itself, when all children have told and `more` besides. */
static glex_ret_t post_up(struct glex_group *group, enum what what, void *data, uint32_t len, uint32_t more)
{
	bool root = group->me == 0;
	struct glex_imm_mp_req req = {
		.rmt_ep_addr = root ? group->card.down : parent_of(group)->card.up,
		.data = data,
		.len = len,
		.coll_counter = group->children + (root ? more : 0),
		.flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_SEQ_START | GLEX_FLAG_COLL_SEQ_TAIL,
	};

	if (!root || group->children) /* a root without children has no gate to open */
		req.flag |= GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA;
	if (what == REDUCE)
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
		.rmt_ep_addr = root_of(group)->card.up,
		.data = data,
		.len = len,
		.flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA,
	};

	return glex_send_imm_mp(group->up, &req, NULL);
}

static glex_ret_t may_begin(const struct glex_group *group)
{
	if (!group || !group->near)
		return GLEX_INVALID_PARAM;
	if (group->is_broken)
		return GLEX_SYS_ERR;
	return group->what == NOTHING ? GLEX_SUCCESS : GLEX_BUSY;
}

/* The queues are empty when nothing has begun, so none of the posts is refused for want of room. */
static glex_ret_t begin(struct glex_group *group, enum what what, void *data, uint32_t len, uint32_t from)
{
	glex_ret_t ret = post_down(group, what);
	bool mine = what != BCAST || group->me == from;

	if (ret == GLEX_SUCCESS && what == BCAST && from && group->me == from)
		ret = post_data(group, data, len);
	if (ret == GLEX_SUCCESS)
		ret = post_up(group, what, mine ? data : NULL, mine ? len : 0, what == BCAST && from ? 1 : 0);
	if (ret != GLEX_SUCCESS) {
		group->is_broken = true; /* half begun */
		return GLEX_SYS_ERR;
	}
	group->what = what;
	group->tests = group->lost = 0;
	group->looked_ms = 0;
	return GLEX_SUCCESS;
}

glex_ret_t glex_group_barrier(glex_group_t group)
{
	glex_ret_t ret = may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	group->result = NULL;
	return begin(group, BARRIER, NULL, 0, 0);
}

glex_ret_t glex_group_bcast(glex_group_t group, uint32_t root, void *data, uint32_t len)
{
	glex_ret_t ret = may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	if (root >= group->n || len > MP_DATA || (len && !data))
		return GLEX_INVALID_PARAM;
	group->result = data;
	group->len = len;
	return begin(group, BCAST, data, len, root);
}

static glex_ret_t reduce(glex_group_t group, bool wanted, union glex_coll_data_loc *units, uint32_t count,
			 enum glex_coll_reduce_data_bits bits, enum glex_coll_reduce_op op)
{
	unsigned char data[MP_DATA];
	uint32_t len;
	glex_ret_t ret = glex_coll_compose_mp_reduce_data(units, count, bits, op, 1, data, &len);

	if (ret != GLEX_SUCCESS)
		return ret;
	group->result = wanted ? units : NULL;
	group->len = count;
	group->bits = bits;
	return begin(group, REDUCE, data, len, 0);
}

glex_ret_t glex_group_reduce(glex_group_t group, uint32_t root, union glex_coll_data_loc *units, uint32_t count,
			     enum glex_coll_reduce_data_bits bits, enum glex_coll_reduce_op op)
{
	glex_ret_t ret = may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	return root < group->n ? reduce(group, group->me == root, units, count, bits, op) : GLEX_INVALID_PARAM;
}

glex_ret_t glex_group_allreduce(glex_group_t group, union glex_coll_data_loc *units, uint32_t count,
				enum glex_coll_reduce_data_bits bits, enum glex_coll_reduce_op op)
{
	glex_ret_t ret = may_begin(group);

	return ret == GLEX_SUCCESS ? reduce(group, true, units, count, bits, op) : ret;
}

/* ---- waiting -------------------------------------------------------------------- */

/* Each neighbour in turn: children, then the parent. */
static const struct glex_group_card *neighbour(const struct glex_group *group, uint32_t i)
{
	return i < group->children + (group->me != 0) ? &group->near[i].card : NULL;
}

static glex_ret_t tell_broken(struct glex_group *group)
{
	struct glex_imm_mp_req req = {.len = 0};
	const struct glex_group_card *card;
	uint32_t i;

	group->is_broken = true;
	for (i = 0; (card = neighbour(group, i)); i++) {
		req.rmt_ep_addr = card->up;
		glex_send_imm_mp(group->up, &req, NULL);
	}
	return GLEX_SYS_ERR;
}

static bool has_errors(glex_ep_handle_t ep)
{
	uint32_t num = 0;

	return glex_poll_error_req(ep, &num, NULL) != GLEX_SUCCESS || num != 0;
}

/* False: somebody is gone. */
static bool look_after(struct glex_group *group)
{
	const struct glex_group_card *card;
	uint32_t i;

	for (i = 0; (card = neighbour(group, i)); i++) {
		struct glex_imm_rdma_req req = {.rmt_ep_addr = card->up, .rmt_mh = card->mh, .rmt_key = card->key};

		glex_imm_rdma(group->up, &req, NULL);
	}
	return !has_errors(group->up) && !has_errors(group->down);
}

static glex_ret_t finish(struct glex_group *group, void *data, uint32_t len)
{
	glex_ret_t ret = GLEX_SUCCESS;

	if (group->what == REDUCE && group->result)
		ret = glex_coll_decompose_mp_reduce_data(group->result, group->len, group->bits, data);
	else if (group->what == BCAST && len == group->len && len)
		memcpy(group->result, data, len);
	else if (group->what == BCAST && len != group->len)
		ret = GLEX_INVALID_PARAM;
	group->what = NOTHING;
	return ret == GLEX_SUCCESS ? GLEX_SUCCESS : tell_broken(group); /* the others had begun something else */
}

/* How it stands after a wait of so many milliseconds for nothing. */
static glex_ret_t still_well(struct glex_group *group, int32_t slice)
{
	unsigned char data[MP_DATA];
	struct timespec now;
	uint64_t now_ms;
	uint32_t len;

	if (!slice && ++group->tests % TESTS != 0)
		return GLEX_NO_MP;
	if (glex_receive_mp(group->up, 0, NULL, data, &len) != GLEX_NO_MP)
		return tell_broken(group);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (!group->looked_ms)
		group->looked_ms = now_ms - (uint64_t)slice;
	if (now_ms - group->looked_ms < SLICE_MS * 3 / 4)
		return GLEX_NO_MP;
	group->looked_ms = now_ms;
	return !look_after(group) && ++group->lost > GRACE ? tell_broken(group) : GLEX_NO_MP;
}

glex_ret_t glex_group_wait(glex_group_t group, int32_t timeout)
{
	unsigned char data[MP_DATA];
	int32_t slice;
	uint32_t len;
	glex_ret_t ret;

	if (!group || (group->what == NOTHING && !group->is_broken))
		return GLEX_INVALID_PARAM;
	if (group->is_broken)
		return GLEX_SYS_ERR;
	for (;;) {
		slice = timeout < 0 || timeout > SLICE_MS ? SLICE_MS : timeout;
		ret = glex_receive_mp(group->down, slice, NULL, data, &len);
		if (ret == GLEX_SUCCESS)
			return finish(group, data, len);
		if (ret == GLEX_NO_MP)
			ret = still_well(group, slice);
		if (ret != GLEX_NO_MP)
			return ret;
		if (timeout >= 0 && (timeout -= slice) == 0)
			return GLEX_NO_MP;
	}
}
