/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stage.c - reductions by the caller's function, and exchanges, of any length, through memory that the members keep.
 *
 *   stage      | area 0: slot of member 0 | ... | of member n-1 | area 1: the same |       each member has one
 *
 *   a member                                     every other
 *   PUTs what that one is to have into his slot ---->
 *                 barrier
 *   combines, or takes out, what is in all slots  likewise
 *
 * Of an allreduce of many bytes each combines one piece alone, that of his number: what is PUT is everybody's operand for
 * that, and after the barrier what it came to, before a second barrier; of a reduction to one likewise, but that only
 * the root is PUT that.  Gathers and exchanges are of a block of each, or of each for each; if these differ in length, the
 * barrier of the first part says how long the longest is.  What is longer than a stage goes part after part.  An exchange of
 * few bytes between two needs no barrier, and goes as a gather: gather.c.
 *
 * It is not the NICs that go on when a barrier has ended: members do, in their waits.
 *
 * I1  Phases (PUTs, a barrier, reading) take the areas in turn.  Who has passed a barrier knows that all have begun it,
 *     and so have read what was there in the phase before that one.
 * I2  Who has ended is sent nothing more, and nobody reads what he has: he may leave.
 * I3  Operands meet in the order of the members, and every byte by one of them for all, or by each alike.
 */
#include "group/priv.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 64u	  /* of slots */
#define WHOLE (48u << 10) /* bytes of all operands that each combines: it takes no longer than a second barrier */

/* TRY, OPERANDS and RESULTS send something; the one behind each waits until all have. */
enum step { CARDS, TRY, TRIED, AGREE, OPERANDS, MEET, RESULTS, MEET_AGAIN, OVER };

/* 0: none.  From REDUCE_SCATTER on, of blocks. */
enum kind { ALLREDUCE = 1, REDUCE, REDUCE_SCATTER, ALLGATHER, ALLTOALL, ALLTOALLV };

struct span {
	const unsigned char *data;
	uint32_t len;
};

/* What others know of a stage. */
struct card {
	glex_mem_handle_t mh;
	uint64_t is_there;
};

struct own {
	struct glexi_longer base;
	enum step step;
	bool is_ready;	/* all have one, and reach all others' */
	bool is_denied; /* somebody has a block that is longer than most */
	unsigned char *mem;
	glex_mem_handle_t mh;
	uint32_t slot; /* bytes */
	uint32_t area; /* of the phase */
	uint32_t to;   /* who is sent something next */
	/* what was begun */
	enum kind kind;
	uint32_t root; /* of REDUCE */
	const unsigned char *data;
	unsigned char *result;			    /* NULL: nobody's here */
	const unsigned char *sum;		    /* of this one's piece */
	const struct glex_group_block *from, *into; /* of ALLTOALLV */
	uint64_t most;
	uint64_t len, at;	    /* of all, or of each block, or of the longest: of this one's, then of all */
	uint32_t unit, part, piece; /* bytes; piece: all but the last; 0: who combines, combines everything */
	glex_group_combine_t combine;
	void *arg;
	uint64_t word;		       /* of a trial; or what all begin alike */
	union glex_coll_data_loc well; /* so far, here; then, with all */
	struct card card[GLEX_GROUP_GATHER_MEMBERS];
};

static struct own *own_of(const struct glex_group *group)
{
	return (struct own *)group->staged;
}

static uint32_t slot_at(const struct glex_group *group, uint32_t member)
{
	const struct own *own = own_of(group);

	return (own->area * group->n + member) * own->slot;
}

/* Of the own stage: what that member has sent. */
static unsigned char *slot_of(const struct glex_group *group, uint32_t member)
{
	return own_of(group)->mem + slot_at(group, member);
}

/* ---- sending --------------------------------------------------------------------- */

static bool is_of_blocks(const struct own *own)
{
	return own->kind >= REDUCE_SCATTER;
}

static bool wants_sum(const struct own *own, uint32_t member)
{
	return own->kind == ALLREDUCE || member == own->root;
}

/* That member's piece of a part. */
static uint32_t piece_at(const struct own *own, uint32_t member)
{
	uint64_t at = (uint64_t)member * own->piece;

	return at < own->part ? (uint32_t)at : own->part;
}

static uint32_t piece_len(const struct own *own, uint32_t member)
{
	uint32_t left = own->part - piece_at(own, member);

	return left < own->piece ? left : own->piece;
}

/* What of a block belongs to the part. */
static struct span part_of(const struct own *own, const struct glex_group_block *block)
{
	uint64_t left;

	if (block->len <= own->at || own->is_denied)
		return (struct span){NULL, 0};
	left = block->len - own->at;
	return (struct span){(const unsigned char *)block->data + own->at,
			     left < own->part ? (uint32_t)left : own->part};
}

/* What this one has for that member. */
static struct span share_of(const struct own *own, uint32_t member)
{
	const unsigned char *data;

	if (own->kind == ALLTOALLV)
		return part_of(own, &own->from[member]);
	data = own->data + own->at;
	if (is_of_blocks(own))
		return (struct span){data + (own->kind == ALLGATHER ? 0 : member * own->len), own->part};
	if (own->piece)
		return (struct span){data + piece_at(own, member), piece_len(own, member)};
	return (struct span){data, wants_sum(own, member) ? own->part : 0};
}

/* And what of it goes there in this phase. */
static struct span sent_to(const struct glex_group *group, uint32_t member)
{
	const struct own *own = own_of(group);

	if (own->step == TRY)
		return (struct span){(const unsigned char *)&own->word, sizeof(own->word)};
	if (own->step == RESULTS)
		return (struct span){own->sum, wants_sum(own, member) ? piece_len(own, group->me) : 0};
	return share_of(own, member);
}

EMU_TOGETHER static glex_ret_t put_to(struct glex_group *group, uint32_t member)
{
	const struct glex_group_card *card = &group->near[place_of(group, member)];
	struct span span = sent_to(group, member);
	struct glex_imm_rdma_req req = {
		.rmt_ep_addr = card->up,
		.data = (void *)(uintptr_t)span.data,
		.len = span.len,
		.rmt_mh = own_of(group)->card[member].mh,
		.rmt_offset = slot_at(group, group->me),
		.rmt_key = card->key,
	};

	return span.len ? glex_inject(group->up, &req) : GLEX_SUCCESS;
}

/* What all begin alike is one word; 0: they do not. */
EMU_TOGETHER static void compare(const void *left, void *right, uint32_t len, void *arg)
{
	(void)arg;
	if (memcmp(left, right, len) != 0)
		memset(right, 0, len);
}

#define LEN_OF(word) ((word)&UINT32_MAX >> 1)

/* The same, but for the length: that is the longest. */
EMU_TOGETHER static void compare_longest(const void *left, void *right, uint32_t len, void *arg)
{
	uint64_t is, with;

	(void)len;
	(void)arg;
	memcpy(&is, right, sizeof(is));
	memcpy(&with, left, sizeof(with));
	if (is >> 31 != with >> 31)
		is = 0;
	else if (LEN_OF(with) > LEN_OF(is))
		is = with;
	memcpy(right, &is, sizeof(is));
}

/* A barrier that takes no longer for that. */
EMU_TOGETHER static glex_ret_t begin_meeting(struct glex_group *group)
{
	struct own *own = own_of(group);

	own->word = (uint64_t)own->kind << 60 | (uint64_t)own->root << 56 | (uint64_t)own->unit << 31 | own->len;
	return glex_group_allreduce_by(group, &own->word, &own->word, sizeof(own->word),
				       own->kind == ALLTOALLV ? compare_longest : compare, NULL);
}

/*
 * To all others, and then it waits for them.  An error else than these two is that of one PUT: its member has died, which
 * the barrier learns.
 */
EMU_TOGETHER static glex_ret_t send_all(struct glex_group *group)
{
	struct own *own = own_of(group);
	glex_ret_t ret;

	for (; own->to < group->n; own->to++) {
		ret = own->to == group->me ? GLEX_SUCCESS : put_to(group, own->to);
		if (ret == GLEX_BUSY)
			return GLEX_NO_MP;
		if (ret == GLEX_SYS_ERR)
			return ret;
		own->well.uint32_s.data &= ret == GLEX_SUCCESS;
	}
	group->what = GLEXI_NOTHING;
	ret = own->step == OPERANDS ? begin_meeting(group) : glex_group_barrier(group);
	own->step += ret == GLEX_SUCCESS;
	return ret;
}

/* A phase: I1. */
EMU_TOGETHER static void begin_phase(struct glex_group *group, enum step step)
{
	struct own *own = own_of(group);

	own->step = step;
	own->area ^= 1;
	own->to = 0;
	group->what = GLEXI_LONG; /* until the barrier */
}

/* ---- combining ------------------------------------------------------------------- */

/* Of this one's operand and what is in the others' slots. */
EMU_TOGETHER static void combine(const struct glex_group *group, const unsigned char *data, unsigned char *to,
				 uint32_t len)
{
	struct own *own = own_of(group);
	uint32_t i = group->n - 1;
	unsigned char *sum = i == group->me ? to : slot_of(group, i);

	if (!len)
		return;
	if (sum == to && to != data)
		memcpy(to, data, len);
	while (i-- > 0)
		own->combine(i == group->me ? data : slot_of(group, i), sum, len, own->arg);
	if (sum != to)
		memcpy(to, sum, len);
}

/* What everybody's piece came to. */
EMU_TOGETHER static void collect(const struct glex_group *group)
{
	const struct own *own = own_of(group);
	uint32_t i;

	for (i = 0; i < group->n && own->result; i++)
		if (i != group->me && piece_len(own, i))
			memcpy(own->result + own->at + piece_at(own, i), slot_of(group, i), piece_len(own, i));
}

/* A block of each. */
EMU_TOGETHER static void take_out(const struct glex_group *group)
{
	const struct own *own = own_of(group);
	const unsigned char *from;
	unsigned char *to;
	uint32_t i;

	for (i = 0; i < group->n; i++) {
		from = i == group->me ? share_of(own, i).data : slot_of(group, i);
		to = own->result + own->at + i * own->len;
		if (from != to)
			memcpy(to, from, own->part);
	}
}

EMU_TOGETHER static void take_out_any(const struct glex_group *group)
{
	const struct own *own = own_of(group);
	struct span from, to;
	uint32_t i;

	for (i = 0; i < group->n; i++) {
		to = part_of(own, &own->into[i]);
		from = i == group->me ? share_of(own, i) : (struct span){slot_of(group, i), to.len};
		if (from.len && to.len && to.data != from.data)
			memcpy((void *)(uintptr_t)to.data, from.data, to.len < from.len ? to.len : from.len);
	}
}

/* As much as there is room for; and how. */
EMU_TOGETHER static void begin_part(struct glex_group *group)
{
	struct own *own = own_of(group);
	uint32_t most = own->slot / own->unit * own->unit, whole = WHOLE / group->n, pieces = group->n;
	uint64_t left = own->len - own->at;

	if (is_of_blocks(own)) {
		whole = most;
		pieces = 1;
	} else if (whole > most) {
		whole = most;
	}
	/* not the longest of this one, which others need not have */
	own->part = left < (uint64_t)most * pieces && own->kind != ALLTOALLV ? (uint32_t)left : most * pieces;
	own->piece = left > whole && pieces > 1 ? (own->part / own->unit + group->n - 1) / group->n * own->unit : 0;
	begin_phase(group, OPERANDS);
}

EMU_TOGETHER static void end_part(struct glex_group *group)
{
	struct own *own = own_of(group);

	own->at += own->part;
	if (own->at < own->len)
		begin_part(group);
	else
		own->step = OVER;
}

/* All operands of a reduction to one or all are here. */
EMU_TOGETHER static void meet(struct glex_group *group)
{
	struct own *own = own_of(group);
	struct span mine = share_of(own, group->me);
	/* who does not want the result combines his piece where his own slot is, into which nobody PUTs */
	unsigned char *to = own->result ? own->result + own->at + piece_at(own, group->me) : slot_of(group, group->me);

	combine(group, mine.data, to, mine.len);
	own->sum = to;
	if (own->piece)
		begin_phase(group, RESULTS);
	else
		end_part(group);
}

/* All that was sent is here. */
EMU_TOGETHER static void take(struct glex_group *group)
{
	struct own *own = own_of(group);

	if (!is_of_blocks(own)) {
		meet(group);
		return;
	}
	if (own->kind == REDUCE_SCATTER)
		combine(group, share_of(own, group->me).data, own->result + own->at, own->part);
	else if (own->kind == ALLTOALLV)
		take_out_any(group);
	else
		take_out(group);
	end_part(group);
}

/* ---- whether all have one ---------------------------------------------------------- */

static void let_go(struct glex_group *group)
{
	struct own *own = own_of(group);

	if (own->card[group->me].is_there)
		glex_deregister_mem(group->up, own->mh);
	if (own->mem)
		glex_free(group->dev, own->mem);
	own->mem = NULL;
	own->card[group->me].is_there = 0;
}

/* Bad news of PUTs, which are about nothing else until then. */
static bool had_errors(struct glex_group *group)
{
	struct glex_err_req error;
	bool any = false;
	uint32_t num = 1;

	while (glex_poll_error_req(group->up, &num, &error) == GLEX_SUCCESS && num)
		any = true;
	return any;
}

/* A word of each has come. */
static void look_at_trial(struct glex_group *group)
{
	struct own *own = own_of(group);
	uint64_t word;
	uint32_t i;

	own->well.uint32_s.data &= !had_errors(group);
	own->base.takes_errors = false;
	for (i = 0; i < group->n; i++) {
		memcpy(&word, slot_of(group, i), sizeof(word));
		own->well.uint32_s.data &= i == group->me || word == i + 1;
	}
}

static void begin_trial(struct glex_group *group)
{
	struct own *own = own_of(group);
	uint32_t i;

	for (i = 0; i < group->n; i++)
		own->well.uint32_s.data &= own->card[i].is_there != 0;
	own->word = group->me + 1;
	own->base.takes_errors = own->well.uint32_s.data;
	begin_phase(group, TRY);
	if (!own->well.uint32_s.data) /* all know that alike */
		own->step = OVER;
}

static glex_ret_t begin_agreeing(struct glex_group *group)
{
	struct own *own = own_of(group);

	own->step = AGREE;
	own->well.uint32_s.location = 0;
	group->what = GLEXI_NOTHING;
	return glex_group_allreduce(group, &own->well, 1, GLEX_COLL_REDUCE_DATA_BITS_32, GLEX_COLL_REDUCE_LAND);
}

/* ---- step by step ------------------------------------------------------------------ */

/* What follows the step that was waited for. */
EMU_TOGETHER static glex_ret_t go_on(struct glex_group *group)
{
	struct own *own = own_of(group);

	switch (own->step) {
	case CARDS:
		begin_trial(group);
		break;
	case TRIED:
		look_at_trial(group);
		return begin_agreeing(group);
	case AGREE:
		own->is_ready = own->well.uint32_s.data;
		own->step = OVER;
		break;
	case MEET:
		if (!own->word)
			return GLEX_SYS_ERR;
		if (own->kind == ALLTOALLV)
			own->len = LEN_OF(own->word);
		own->is_denied = own->kind == ALLTOALLV && own->len > own->most;
		if (own->is_denied)
			own->step = OVER;
		else
			take(group);
		break;
	case MEET_AGAIN:
		collect(group);
		end_part(group);
		break;
	default: /* sends, or is over: nothing that has been waited for */
		break;
	}
	return GLEX_SUCCESS;
}

EMU_TOGETHER static glex_ret_t stage_wait(struct glex_group *group, int32_t timeout)
{
	struct own *own = own_of(group);
	glex_ret_t ret;

	while (own->step != OVER) {
		bool sends = own->step == TRY || own->step == OPERANDS || own->step == RESULTS;

		ret = sends ? send_all(group) : glexi_group_wait_one(group, timeout);
		if (ret == GLEX_SUCCESS && !sends)
			ret = go_on(group);
		if (ret == GLEX_NO_MP && sends && timeout)
			sched_yield(); /* it clears by itself */
		else if (ret != GLEX_SUCCESS)
			return ret;
	}
	if (own->is_ready)
		return own->is_denied ? GLEX_ACCESS_ERR : GLEX_SUCCESS;
	let_go(group);
	return GLEX_ACCESS_ERR;
}

static void stage_drop(struct glex_group *group)
{
	let_go(group);
	free(own_of(group));
}

/* ---- beginning --------------------------------------------------------------------- */

static struct own *open_own(struct glex_group *group, uint64_t len)
{
	struct own *own = calloc(1, sizeof(*own));
	struct glex_device_attr device;
	void *mem;

	if (!own)
		return NULL;
	own->base.wait = stage_wait;
	own->base.drop = stage_drop;
	own->slot = ((uint32_t)(len + group->n - 1) / group->n + ALIGN - 1) & ~(ALIGN - 1);
	if (glex_query_device(group->dev, &device) == GLEX_SUCCESS && device.max_rdma_data_len < own->slot)
		own->slot = device.max_rdma_data_len & ~(ALIGN - 1);
	group->staged = &own->base;
	if (glex_alloc(group->dev, (uint64_t)2 * group->n * own->slot, &mem) != GLEX_SUCCESS)
		return own;
	own->mem = mem;
	own->card[group->me].is_there = glex_register_mem(group->up, mem, (uint64_t)2 * group->n * own->slot,
							  GLEX_MEM_WRITE, &own->mh) == GLEX_SUCCESS;
	own->card[group->me].mh = own->mh;
	return own;
}

static glex_ret_t begin_longer(struct glex_group *group, struct own *own, glex_ret_t ret)
{
	group->longer = &own->base;
	group->is_longer = ret == GLEX_SUCCESS;
	return ret;
}

glex_ret_t glex_group_stage(glex_group_t group, uint64_t len)
{
	glex_ret_t ret = glexi_group_may_begin(group);
	struct own *own;

	if (ret != GLEX_SUCCESS)
		return ret;
	if (!group->direct || group->n > GLEX_GROUP_GATHER_MEMBERS)
		return GLEX_NOT_IMPLEMENTED;
	if (group->staged || !len || len > GLEX_GROUP_STAGE_MAX)
		return GLEX_INVALID_PARAM;
	own = open_own(group, len);
	if (!own)
		return GLEX_NO_MEM_RESOURCE;
	own->step = CARDS;
	own->well.uint32_s.data = 1;
	return begin_longer(group, own,
			    glex_group_allgather(group, &own->card[group->me], own->card, sizeof(own->card[0])));
}

/* As a public function was given it. */
struct what {
	enum kind kind;
	uint32_t root, unit;
	const void *data;
	void *result;
	uint64_t len;
	glex_group_combine_t combine;
	void *arg;
	const struct glex_group_block *from, *into;
	uint64_t most;
};

static bool is_valid(const struct glex_group *group, const struct what *what)
{
	if (what->kind == ALLTOALLV)
		return what->from && what->into && what->most <= GLEX_GROUP_LONG_MAX;
	if (!what->len || what->len > GLEX_GROUP_LONG_MAX || !what->data || what->root >= group->n)
		return false;
	if (!what->result && (what->kind != REDUCE || what->root == group->me))
		return false;
	if (!what->combine && what->kind < ALLGATHER)
		return false;
	return what->unit && what->unit <= own_of(group)->slot && what->len % what->unit == 0;
}

EMU_TOGETHER static glex_ret_t begin(struct glex_group *group, const struct what *what)
{
	glex_ret_t ret = glexi_group_may_begin(group);
	struct own *own;

	if (ret != GLEX_SUCCESS)
		return ret;
	own = own_of(group);
	if (!own || !own->is_ready)
		return GLEX_NOT_IMPLEMENTED;
	if (!is_valid(group, what))
		return GLEX_INVALID_PARAM;
	if (what->kind == ALLTOALL && group->n == 2 && what->len <= GLEX_GROUP_GATHER_MAX)
		return glexi_group_cross(group, what->data, what->result, (uint32_t)what->len);
	own->kind = what->kind;
	own->root = what->root;
	own->data = what->data;
	own->result = what->kind == REDUCE && what->root != group->me ? NULL : what->result;
	own->len = what->len;
	own->at = 0;
	own->unit = what->unit;
	own->combine = what->combine;
	own->arg = what->arg;
	own->from = what->from;
	own->into = what->into;
	own->most = what->most;
	own->is_denied = own->kind == ALLTOALLV && own->len > own->most;
	begin_part(group);
	begin_longer(group, own, GLEX_SUCCESS);
	ret = send_all(group);
	group->is_broken |= ret == GLEX_SYS_ERR; /* half begun */
	return ret == GLEX_NO_MP ? GLEX_SUCCESS : ret;
}

static struct what reduction(enum kind kind, const void *data, void *result, uint64_t len, uint32_t unit,
			     glex_group_combine_t function, void *arg)
{
	return (struct what){.kind = kind,
			     .unit = unit,
			     .data = data,
			     .result = result,
			     .len = len,
			     .combine = function,
			     .arg = arg};
}

EMU_TOGETHER glex_ret_t glex_group_allreduce_long(glex_group_t group, const void *data, void *result, uint64_t len,
						  uint32_t unit, glex_group_combine_t function, void *arg)
{
	struct what what = reduction(ALLREDUCE, data, result, len, unit, function, arg);

	return begin(group, &what);
}

EMU_TOGETHER glex_ret_t glex_group_reduce_long(glex_group_t group, uint32_t root, const void *data, void *result,
					       uint64_t len, uint32_t unit, glex_group_combine_t function, void *arg)
{
	struct what what = reduction(REDUCE, data, result, len, unit, function, arg);

	what.root = root;
	return begin(group, &what);
}

EMU_TOGETHER glex_ret_t glex_group_reduce_scatter(glex_group_t group, const void *data, void *result, uint64_t len,
						  uint32_t unit, glex_group_combine_t function, void *arg)
{
	struct what what = reduction(REDUCE_SCATTER, data, result, len, unit, function, arg);

	return begin(group, &what);
}

EMU_TOGETHER glex_ret_t glex_group_allgather_long(glex_group_t group, const void *data, void *all, uint64_t len)
{
	struct what what = {.kind = ALLGATHER, .data = data, .result = all, .len = len, .unit = 1};

	return begin(group, &what);
}

EMU_TOGETHER glex_ret_t glex_group_alltoall(glex_group_t group, const void *data, void *all, uint64_t len)
{
	struct what what = {.kind = ALLTOALL, .data = data, .result = all, .len = len, .unit = 1};

	return begin(group, &what);
}

EMU_TOGETHER glex_ret_t glex_group_alltoallv(glex_group_t group, const struct glex_group_block *from,
					     const struct glex_group_block *into, uint64_t most)
{
	struct what what = {.kind = ALLTOALLV, .from = from, .into = into, .most = most, .unit = 1};
	uint32_t i;

	for (i = 0; group && group->near && from && i < group->n; i++)
		if (from[i].len > what.len)
			what.len = from[i].len;
	if (what.len > GLEX_GROUP_LONG_MAX)
		what.len = GLEX_GROUP_LONG_MAX + 1; /* more than most, and all learn it */
	return begin(group, &what);
}
