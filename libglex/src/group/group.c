/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * group.c - a group: its endpoints, what is begun in it and what ends it.
 *
 *   up     requests of a tree towards its root
 *   down   all that a member waits for, and those away from the root; without a tree everything
 *
 * Who waits for long looks whether a neighbour has died.  A member that has left has not:
 * it may when all has ended for itself, and nothing more is needed of it then.  If what was begun
 * does not end soon after a death (it too may have come after its part was done), the group is
 * broken, and says so to all its neighbours: by an MP to `up`, where no other is for them but the notes of puts.c, or
 * without a tree on their boards.
 */
#include "group/priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "emulator/nic/reduce.h"

#define SLICE_MS       200
#define DEFAULT_DEGREE 8u
#define GRACE	       4u  /* slices between the death of a neighbour and giving up */
#define ASTRAY	       20u /* in which what a member has sent may be under way: it costs nothing to be sure */
#define TESTS	       64u /* in one of so many without waiting: a look at the clock, and for bad news */

/* ---- opening, joining ------------------------------------------------------- */

/* Not that of any other group, but for a chance of one in 2^31. */
static bool new_key(uint32_t *key)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return false;
	*key = GLEX_EP_MAKE_KEY(random);
	return true;
}

static glex_ret_t create_ends(struct glex_group *group, glex_device_handle_t dev, struct glex_ep_attr *attr)
{
	glex_ret_t ret;

	attr->dq_capacity = GLEXI_GROUP_DQ;
	attr->eq_capacity = group->direct_most ? GLEXI_GROUP_EQ : GLEXI_GROUP_DQ;
	attr->mpq_capacity = group->direct_most ? GLEXI_GROUP_EQ : GLEXI_GROUP_MPQ;
	while (attr->mpq_capacity < 2 * group->direct_most && attr->mpq_capacity < GLEXI_GROUP_MPQ)
		attr->mpq_capacity *= 2;
	ret = glex_create_ep(dev, attr, &group->down);
	attr->mpq_capacity = GLEXI_GROUP_UP_MPQ;
	if (group->direct_most)
		group->up = group->down;
	else if (ret == GLEX_SUCCESS)
		ret = glex_create_ep(dev, attr, &group->up);
	return ret;
}

static glex_ret_t open_ends(struct glex_group *group, glex_device_handle_t dev, enum glex_ep_type type)
{
	bool are_few = group->direct_most && group->direct_most <= GLEXI_FEW;
	uint32_t none = 0, len = are_few ? GLEXI_BOARD_OF_FEW : GLEXI_BOARD;
	struct glex_ep_attr attr = {.type = type, .num = GLEX_ANY_EP_NUM};
	glex_ret_t ret;

	if (!new_key(&attr.key))
		return GLEX_SYS_ERR;
	ret = create_ends(group, dev, &attr);
	if (ret != GLEX_SUCCESS)
		return ret;
	group->board = glexi_board_take(dev, len);
	if (!group->board)
		return GLEX_NO_MEM_RESOURCE;
	ret = glex_register_mem(group->up, group->board, len, GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_ATOMIC,
				&group->mh);
	if (ret != GLEX_SUCCESS)
		return ret;
	glex_poll_dead(dev, &group->dead_next, &none, NULL);
	group->card.born = (uint32_t)group->dead_next;
	group->card.mh = group->mh;
	group->card.key = attr.key;
	glex_get_ep_addr(group->up, &group->card.up);
	return glex_get_ep_addr(group->down, &group->card.down);
}

glex_ret_t glex_group_open(glex_device_handle_t dev, enum glex_ep_type type, uint32_t direct, glex_group_t *group_p,
			   struct glex_group_card *card)
{
	struct glex_group *group;
	glex_ret_t ret;

	if (!dev || !group_p || !card || direct > GLEX_GROUP_DIRECT_MAX)
		return GLEX_INVALID_PARAM;
	group = calloc(1, sizeof(*group) + (direct ? glexi_direct_size(direct) : 0));
	if (!group)
		return GLEX_NO_MEM_RESOURCE;
	group->dev = dev;
	group->direct_most = direct;
	ret = open_ends(group, dev, type);
	if (ret != GLEX_SUCCESS) {
		glex_group_close(group);
		return ret;
	}
	*card = group->card;
	*group_p = group;
	return GLEX_SUCCESS;
}

/*
 * What a tree's NICs send each other says nothing of the group.  If that has not come to an end, others may still
 * send some: what they have posted waits for third parties, and they may not know yet.
 */
static void close_ends(struct glex_group *group)
{
	bool awaited = group->near && !group->direct && (group->is_broken || group->what != GLEXI_NOTHING);
	glex_ret_t (*end)(glex_ep_handle_t ep) = awaited ? glex_retire_ep : glex_destroy_ep;

	if (group->down)
		end(group->down);
	if (group->up && group->up != group->down)
		end(group->up);
}

static void give_board(struct glex_group *group, enum glexi_board_state state)
{
	glex_deregister_mem(group->up, group->mh);
	glexi_board_give(group->board, state);
	group->board = NULL;
}

/* All have done what there was, and nobody writes to the board of who has left: direct.h, I4. */
static bool has_gone_well(const struct glex_group *group)
{
	return group->direct && group->is_left && !group->is_broken && !group->is_bereft &&
	       !glexi_meet_was_asked(group);
}

/* Who gives it up instead lets the others see for a while what has ended well before. */
static void leave(struct glex_group *group)
{
	if (group->near && !group->is_left && group->what == GLEXI_NOTHING)
		glex_group_leave(group);
	if (group->what == GLEXI_LEAVE)
		glex_group_wait(group, -1);
	if (!group->direct || group->is_left)
		return;
	glexi_meet_part(group);
	glexi_meet_parted(group, GRACE * SLICE_MS);
}

glex_ret_t glex_group_close(glex_group_t group)
{
	if (!group)
		return GLEX_INVALID_PARAM;
	leave(group);
	if (group->fetched)
		group->fetched->drop(group);
	if (group->staged)
		group->staged->drop(group);
	if (group->board)
		give_board(group, has_gone_well(group) ? GLEXI_BOARD_WRITTEN : GLEXI_BOARD_SPENT);
	close_ends(group);
	glexi_direct_leave(group);
	glexi_gates_leave(group);
	free(group->puts);
	free(group->branch);
	free(group->near);
	free(group);
	return GLEX_SUCCESS;
}

/* To the deaths since the first of the members was there. */
static void look_back(struct glex_group *group, const struct glex_group_card *cards)
{
	uint32_t i;

	for (i = 0; i < group->n; i++)
		if ((int32_t)(cards[i].born - (uint32_t)group->dead_next) < 0)
			group->dead_next -= (uint32_t)group->dead_next - cards[i].born;
}

glex_ret_t glex_group_join(glex_group_t group, const struct glex_group_card *cards, uint32_t n, uint32_t me,
			   enum glex_group_shape shape, uint32_t degree)
{
	glex_ret_t ret;

	if (!group || !cards || group->near || me >= n || cards[me].up.v != group->card.up.v ||
	    cards[me].down.v != group->card.down.v ||
	    (group->direct_most && (shape != GLEX_GROUP_DIRECT || n > group->direct_most)))
		return GLEX_INVALID_PARAM;
	group->n = n;
	group->me = me;
	look_back(group, cards);
	if (shape == GLEX_GROUP_DIRECT)
		ret = glexi_direct_join(group, cards);
	else
		ret = glexi_gates_join(group, cards, shape, degree ? degree : DEFAULT_DEGREE);
	if (ret == GLEX_SUCCESS && !group->direct)
		give_board(group, GLEXI_BOARD_UNWRITTEN); /* nobody writes there */
	if (ret != GLEX_SUCCESS) {
		glexi_direct_leave(group);
		glexi_gates_leave(group);
		free(group->near);
		free(group->branch);
		group->near = NULL;
		group->branch = NULL;
	}
	return ret;
}

/* ---- beginning ---------------------------------------------------------------- */

/* Operands meet in the order of the members, whatever endpoints these have: so equal values give equal bits. */
static void name_place(const struct glex_group *group, void *operand)
{
	memcpy((unsigned char *)operand + offsetof(struct emu_operand, order), &group->me, sizeof(group->me));
}

EMU_TOGETHER glex_ret_t glexi_group_may_begin(const struct glex_group *group)
{
	if (!group || !group->near || group->is_left)
		return GLEX_INVALID_PARAM;
	if (group->is_broken)
		return GLEX_SYS_ERR;
	return group->what == GLEXI_NOTHING ? GLEX_SUCCESS : GLEX_BUSY;
}

EMU_TOGETHER static glex_ret_t begin(struct glex_group *group, enum glexi_what what, void *data, uint32_t len)
{
	glex_ret_t ret;

	group->what = what;
	group->tests = group->lost = group->astray = 0;
	group->looked_ms = 0;
	ret = group->direct ? glexi_direct_begin(group, data, len) : glexi_gates_begin(group, data, len);
	if (ret == GLEX_SUCCESS)
		return GLEX_SUCCESS;
	group->is_broken = true; /* half begun */
	return GLEX_SYS_ERR;
}

EMU_TOGETHER glex_ret_t glex_group_barrier(glex_group_t group)
{
	glex_ret_t ret = glexi_group_may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	group->root = 0;
	group->to_all = true;
	group->result = NULL;
	return begin(group, GLEXI_BARRIER, NULL, 0);
}

EMU_TOGETHER glex_ret_t glex_group_bcast(glex_group_t group, uint32_t root, void *data, uint32_t len)
{
	glex_ret_t ret = glexi_group_may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	if (root >= group->n || len > GLEXI_GROUP_MP || (len && !data))
		return GLEX_INVALID_PARAM;
	group->root = root;
	group->to_all = false;
	group->result = data;
	group->len = len;
	return begin(group, GLEXI_BCAST, data, len);
}

EMU_TOGETHER static glex_ret_t reduce(glex_group_t group, union glex_coll_data_loc *units, uint32_t count,
				      enum glex_coll_reduce_data_bits bits, enum glex_coll_reduce_op op)
{
	unsigned char tree_data[GLEXI_GROUP_MP];
	void *data = group->direct ? glexi_direct_operand(group) : tree_data;
	uint32_t len;
	glex_ret_t ret = glex_coll_compose_mp_reduce_data(units, count, bits, op, 1, data, &len);

	if (ret != GLEX_SUCCESS)
		return ret;
	name_place(group, data);
	group->is_by = false;
	group->result = group->to_all || group->me == group->root ? units : NULL;
	group->len = count;
	group->bits = bits;
	return begin(group, GLEXI_REDUCE, data, len);
}

/* Whether one that ends at root, or is begun for all, may begin; then that is what it will be. */
EMU_TOGETHER static glex_ret_t may_end_at(struct glex_group *group, uint32_t root, bool to_all)
{
	glex_ret_t ret = glexi_group_may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	if (root >= group->n)
		return GLEX_INVALID_PARAM;
	group->root = root;
	group->to_all = to_all;
	return GLEX_SUCCESS;
}

EMU_TOGETHER glex_ret_t glex_group_reduce(glex_group_t group, uint32_t root, union glex_coll_data_loc *units,
					  uint32_t count, enum glex_coll_reduce_data_bits bits,
					  enum glex_coll_reduce_op op)
{
	glex_ret_t ret = may_end_at(group, root, false);

	return ret == GLEX_SUCCESS ? reduce(group, units, count, bits, op) : ret;
}

EMU_TOGETHER glex_ret_t glex_group_allreduce(glex_group_t group, union glex_coll_data_loc *units, uint32_t count,
					     enum glex_coll_reduce_data_bits bits, enum glex_coll_reduce_op op)
{
	glex_ret_t ret = may_end_at(group, 0, true);

	return ret == GLEX_SUCCESS ? reduce(group, units, count, bits, op) : ret;
}

EMU_TOGETHER static glex_ret_t reduce_by(glex_group_t group, const void *data, void *result, uint32_t len,
					 glex_group_combine_t combine, void *arg)
{
	bool is_wanted = group->to_all || group->me == group->root;

	if (!group->direct)
		return GLEX_NOT_IMPLEMENTED;
	if (!len || len > GLEX_GROUP_BY_MAX(group->n) || !data || !combine || (is_wanted && !result))
		return GLEX_INVALID_PARAM;
	glexi_direct_by(group, combine, arg);
	group->is_by = true;
	group->result = is_wanted ? result : NULL;
	group->len = len;
	return begin(group, GLEXI_REDUCE, (void *)(uintptr_t)data, len);
}

EMU_TOGETHER glex_ret_t glex_group_reduce_by(glex_group_t group, uint32_t root, const void *data, void *result,
					     uint32_t len, glex_group_combine_t combine, void *arg)
{
	glex_ret_t ret = may_end_at(group, root, false);

	return ret == GLEX_SUCCESS ? reduce_by(group, data, result, len, combine, arg) : ret;
}

EMU_TOGETHER glex_ret_t glex_group_allreduce_by(glex_group_t group, const void *data, void *result, uint32_t len,
						glex_group_combine_t combine, void *arg)
{
	glex_ret_t ret = may_end_at(group, 0, true);

	return ret == GLEX_SUCCESS ? reduce_by(group, data, result, len, combine, arg) : ret;
}

EMU_TOGETHER static glex_ret_t begin_gather(struct glex_group *group, const void *data, void *all, uint32_t len,
					    bool is_crossed)
{
	group->result = all;
	group->len = len;
	group->is_crossed = is_crossed;
	return begin(group, GLEXI_GATHER, (void *)(uintptr_t)data, len);
}

static glex_ret_t gather(glex_group_t group, const void *data, void *all, uint32_t len)
{
	if (!group->direct || group->n > GLEX_GROUP_GATHER_MEMBERS)
		return GLEX_NOT_IMPLEMENTED;
	if (len > GLEX_GROUP_GATHER_MAX || (len && !data) ||
	    (len && !all && (group->to_all || group->me == group->root)))
		return GLEX_INVALID_PARAM;
	return begin_gather(group, data, all, len, false);
}

EMU_TOGETHER glex_ret_t glexi_group_cross(struct glex_group *group, const void *data, void *all, uint32_t len)
{
	const unsigned char *block = data;

	group->root = 0;
	group->to_all = true;
	if (all != data)
		memcpy((unsigned char *)all + group->me * len, block + group->me * len, len);
	return begin_gather(group, block + (1 - group->me) * len, all, len, true);
}

glex_ret_t glex_group_gather(glex_group_t group, uint32_t root, const void *data, void *all, uint32_t len)
{
	glex_ret_t ret = may_end_at(group, root, false);

	return ret == GLEX_SUCCESS ? gather(group, data, all, len) : ret;
}

glex_ret_t glex_group_allgather(glex_group_t group, const void *data, void *all, uint32_t len)
{
	glex_ret_t ret = may_end_at(group, 0, true);

	return ret == GLEX_SUCCESS ? gather(group, data, all, len) : ret;
}

/* Without a tree who has ended a collective is not needed for it any more, but for what is shown on his board. */
glex_ret_t glex_group_leave(glex_group_t group)
{
	glex_ret_t ret = glexi_group_may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	if (!group->direct)
		return begin(group, GLEXI_LEAVE, NULL, 0);
	group->what = GLEXI_LEAVE;
	glexi_meet_part(group);
	return GLEX_SUCCESS;
}

/* ---- waiting -------------------------------------------------------------------- */

static void give_up(struct glex_group *group)
{
	group->is_broken = true;
	if (group->is_longer && group->longer->give_up)
		group->longer->give_up(group);
}

static glex_ret_t tell_broken(struct glex_group *group)
{
	struct glexi_head head;
	struct glex_imm_mp_req req = {.data = &head, .len = sizeof(head)};
	uint32_t i;

	give_up(group);
	if (group->direct)
		glexi_board_break(group);
	for (i = 0; i < group->neighbours && !group->direct; i++) {
		head.key = group->near[i].key;
		req.rmt_ep_addr = group->near[i].up;
		glex_send_imm_mp(group->up, &req, NULL);
	}
	return GLEX_SYS_ERR;
}

glex_ret_t glex_group_fail(glex_group_t group)
{
	if (!group || !group->near)
		return GLEX_INVALID_PARAM;
	if (!group->is_broken)
		tell_broken(group);
	return GLEX_SUCCESS;
}

glex_ret_t glex_group_abandon(glex_group_t group)
{
	if (!group || !group->near)
		return GLEX_INVALID_PARAM;
	if (!group->is_broken)
		give_up(group);
	return GLEX_SUCCESS;
}

/* Requests to who has left come to nothing too, and that is well; so is a note of direct.c that found no room. */
bool glexi_group_is_harmless(const struct glex_group *group, const struct glex_err_req *err)
{
	return err->status == GLEX_ERR_STATUS_DEST_VP_STOP || err->status == GLEX_ERR_STATUS_DEST_HOST_DEAD ||
	       (group->direct && err->op == GLEX_ERR_OP_IMM_MP && err->status == GLEX_ERR_STATUS_DEST_MPQ_FULL);
}

static bool has_errors(const struct glex_group *group, glex_ep_handle_t ep)
{
	struct glex_err_req err[16];
	uint32_t i, num = 16;

	if (glex_poll_error_req(ep, &num, err) != GLEX_SUCCESS)
		return true;
	for (i = 0; i < num; i++)
		if (!glexi_group_is_harmless(group, &err[i]))
			return true;
	return false;
}

static bool is_neighbour(const struct glex_group *group, const struct glex_dead *dead)
{
	const struct glex_group_card *card;
	uint32_t i;

	for (i = 0; i < group->neighbours; i++) {
		card = &group->near[i];
		if ((card->up.v == dead->addr.v || card->down.v == dead->addr.v) &&
		    (int32_t)((uint32_t)dead->number - card->born) >= 0)
			return true;
	}
	return false;
}

static void look_after(struct glex_group *group)
{
	struct glex_dead dead[16];
	uint32_t i, num;

	do {
		num = 16;
		if (glex_poll_dead(group->dev, &group->dead_next, &num, dead) != GLEX_SUCCESS)
			return; /* the wait learns what is the matter */
		for (i = 0; i < num; i++)
			group->is_bereft |= is_neighbour(group, &dead[i]);
	} while (num);
	if (!group->is_longer || !group->longer->takes_errors)
		group->is_bereft |= has_errors(group, group->up) || has_errors(group, group->down);
}

/* False: that the group is broken. */
static bool take(struct glex_group *group, glex_ep_addr_t from, const void *mp, uint32_t len)
{
	struct glexi_head head;

	if (len < sizeof(head))
		return true;
	memcpy(&head, mp, sizeof(head));
	if (head.key != group->card.key)
		return true; /* for who had this endpoint before */
	return len > sizeof(head) && group->note && group->note(group, from, mp, len);
}

bool glexi_group_hear(struct glex_group *group)
{
	unsigned char data[GLEXI_GROUP_MP];
	glex_ep_addr_t from;
	glex_ret_t ret;
	uint32_t len;

	if (group->direct)
		return !glexi_board_is_broken(group);
	while ((ret = glex_receive_mp(group->up, 0, &from, data, &len)) == GLEX_SUCCESS)
		if (!take(group, from, data, len))
			return false;
	return ret == GLEX_NO_MP;
}

uint64_t glexi_group_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* How it stands after a wait of so many milliseconds for nothing. */
EMU_TOGETHER static glex_ret_t still_well(struct glex_group *group, int32_t slice)
{
	uint64_t now_ms;

	if (!slice && ++group->tests % TESTS != 0)
		return GLEX_NO_MP;
	if (!glexi_group_hear(group))
		return tell_broken(group);
	now_ms = glexi_group_now_ms();
	if (!group->looked_ms)
		group->looked_ms = now_ms - (uint64_t)slice;
	if (now_ms - group->looked_ms < SLICE_MS * 3 / 4)
		return GLEX_NO_MP;
	group->looked_ms = now_ms;
	look_after(group);
	group->lost += group->is_bereft;
	group->astray += group->direct && glexi_board_is_astray(group);
	return group->lost > GRACE || group->astray > ASTRAY ? tell_broken(group) : GLEX_NO_MP;
}

EMU_TOGETHER glex_ret_t glexi_group_wait_one(struct glex_group *group, int32_t timeout)
{
	if (!group->direct)
		return glexi_gates_wait(group, timeout);
	return group->what == GLEXI_LEAVE ? glexi_meet_parted(group, timeout) : glexi_direct_wait(group, timeout);
}

/* Over, well or not: the next may begin. */
EMU_TOGETHER static glex_ret_t end(struct glex_group *group, glex_ret_t ret)
{
	group->is_left = group->what == GLEXI_LEAVE;
	group->what = GLEXI_NOTHING;
	group->is_longer = false;
	return ret;
}

EMU_TOGETHER glex_ret_t glex_group_wait(glex_group_t group, int32_t timeout)
{
	int32_t slice;
	glex_ret_t ret;

	if (!group || (group->what == GLEXI_NOTHING && !group->is_broken))
		return GLEX_INVALID_PARAM;
	if (group->is_broken)
		return GLEX_SYS_ERR;
	for (;;) {
		slice = timeout < 0 || timeout > SLICE_MS ? SLICE_MS : timeout;
		ret = group->is_longer ? group->longer->wait(group, slice) : glexi_group_wait_one(group, slice);
		if (ret == GLEX_SUCCESS || ret == GLEX_ACCESS_ERR)
			return end(group, ret);
		ret = ret == GLEX_NO_MP ? still_well(group, slice) : tell_broken(group);
		if (ret != GLEX_NO_MP)
			return ret;
		if (timeout >= 0 && (timeout -= slice) == 0)
			return GLEX_NO_MP;
	}
}

EMU_TOGETHER glex_ret_t glex_group_look(glex_group_t group, const uint64_t **word_p, uint64_t *value_p)
{
	glex_ret_t ret;

	if (!word_p || !value_p)
		return GLEX_INVALID_PARAM;
	*word_p = NULL;
	if (group && !group->is_broken && !group->is_longer && group->what != GLEXI_NOTHING) {
		ret = glexi_meet_look(group, word_p, value_p);
		if (ret == GLEX_SUCCESS)
			return end(group, ret);
		if (ret == GLEX_NO_MP && (group->tests + 1) % TESTS != 0) {
			group->tests++;
			return ret;
		}
	}
	ret = glex_group_wait(group, 0);
	*word_p = ret == GLEX_NO_MP && group->direct && !group->is_longer ? glexi_direct_word(group, value_p) : NULL;
	return ret;
}

int glex_group_is_last_here(glex_group_t group)
{
	return group && group->direct && !group->is_broken && !group->is_longer && glexi_meet_is_last_here(group);
}
