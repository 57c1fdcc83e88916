/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.c - gates, sequences, swaps, sets, and who executes them.  See coll.h.
 */
#include "emulator/nic/coll.h"

#include <glex.h>
#include <string.h>

#include "emulator/nic/exec.h"
#include "emulator/nic/fast.h"
#include "emulator/nic/reduce.h"

static_assert(EMU_COLL_FLAG == GLEX_FLAG_COLL, "it and all above it are collective");

#define SET_MAX (1u + GLEX_COLL_SET_MAX_NUM)

/* ---- the unit in its segment ----------------------------------------------- */

static uint64_t place(uint64_t *end, uint64_t bytes)
{
	uint64_t at = (*end + EMU_LINE - 1) / EMU_LINE * EMU_LINE;

	*end = at + bytes;
	return at;
}

static uint64_t lay_out(struct emu_coll *coll, const struct emu_coll_shape *shape)
{
	uint64_t end = sizeof(struct emu_coll);

	coll->cq_slots = place(&end, (uint64_t)shape->cq_capacity * sizeof(struct emu_desc));
	coll->d_log = place(&end, (uint64_t)shape->d_capacity * sizeof(uint64_t));
	coll->d_slots = place(&end, (uint64_t)shape->d_capacity * sizeof(struct emu_mp_slot));
	return place(&end, 0);
}

uint64_t emu_coll_size(const struct emu_coll_shape *shape)
{
	struct emu_coll scratch;

	return lay_out(&scratch, shape);
}

void emu_coll_format(void *base, uint64_t size, const struct emu_coll_shape *shape)
{
	struct emu_coll *coll = base;

	emu_seg_format(&coll->seg, EMU_MAGIC_COLL, size);
	lay_out(coll, shape);
	coll->nic_id = shape->nic_id;
	coll->ep_num = shape->ep_num;
	coll->cq_capacity = shape->cq_capacity;
	coll->d_capacity = shape->d_capacity;
}

static bool is_capacity(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static bool fits(uint64_t at, uint64_t count, uint64_t each, uint64_t size)
{
	return at % EMU_LINE == 0 && at >= sizeof(struct emu_coll) && at <= size && count * each <= size - at;
}

const char *emu_coll_attach(struct emu_coll_view *view, struct emu_vport *port, void *base, uint64_t size)
{
	struct emu_coll *coll = base;
	const char *wrong = emu_seg_check(&coll->seg, EMU_MAGIC_COLL, size);

	if (wrong)
		return wrong;
	if (size < sizeof(*coll))
		return "the segment is too short for a collective unit";
	if (coll->nic_id != port->port->nic_id || coll->ep_num != port->port->ep_num)
		return "the collective unit of another port";
	if (!is_capacity(coll->cq_capacity) || !is_capacity(coll->d_capacity))
		return "a queue's capacity is not a power of two";
	if (!fits(coll->cq_slots, coll->cq_capacity, sizeof(struct emu_desc), size) ||
	    !fits(coll->d_log, coll->d_capacity, sizeof(uint64_t), size) ||
	    !fits(coll->d_slots, coll->d_capacity, sizeof(struct emu_mp_slot), size))
		return "a queue lies outside the segment";
	view->coll = coll;
	view->port = port;
	view->cq = (void *)((unsigned char *)base + coll->cq_slots);
	view->cq_mask = coll->cq_capacity - 1;
	view->d = (struct emu_ring){
		.ctl = &coll->d,
		.log = (_Atomic uint64_t *)(void *)((unsigned char *)base + coll->d_log),
		.slots = (unsigned char *)base + coll->d_slots,
		.mask = coll->d_capacity - 1,
		.shift = 7,
	};
	static_assert(sizeof(struct emu_mp_slot) == 1 << 7, "the slots of D");
	view->next = NULL;
	return NULL;
}

/* ---- posting ---------------------------------------------------------------- */

uint32_t emu_coll_room(const struct emu_coll_view *view)
{
	struct emu_ring_ctl *ctl = &view->coll->cq;
	uint32_t tail = emu_low(atomic_load_explicit(&ctl->tail, memory_order_relaxed)); /* relaxed: ours */

	return view->cq_mask + 1 - (tail - atomic_load_explicit(&ctl->head, memory_order_acquire)); /* COLL-A2 */
}

void emu_coll_post(struct emu_coll_view *view, const struct emu_desc *desc, const void *imm, uint32_t imm_len)
{
	struct emu_ring_ctl *ctl = &view->coll->cq;
	uint32_t tail = emu_low(atomic_load_explicit(&ctl->tail, memory_order_relaxed)); /* relaxed: ours */
	struct emu_desc *slot = &view->cq[tail & view->cq_mask];

	memcpy(slot, desc, offsetof(struct emu_desc, imm));
	slot->counter = desc->counter;
	slot->after = desc->after;
	if (imm_len)
		memcpy(slot->imm, imm, imm_len);
	atomic_store_explicit(&ctl->tail, (uint64_t)(tail + 1), memory_order_release); /* COLL-R1 */
}

/* ---- turns ------------------------------------------------------------------ */

/* Turns that one run has gained and has still to work off. */
struct run {
	struct emu_host *host;
	struct emu_coll_view *first, *last;
};

/* Asks for the turn.  True: it is ours now. */
static bool ask(struct emu_host *host, struct emu_coll *coll)
{
	uint64_t word = atomic_load_explicit(&coll->turn, memory_order_relaxed); /* relaxed: the CAS tells */
	uint64_t new;

	do
		new = emu_high(word) == EMU_SESSION_NONE ? emu_pair(host->session, 1)
							 : emu_pair(emu_high(word), emu_low(word) + 1);
	while (!atomic_compare_exchange_weak_explicit(&coll->turn, &word, new, memory_order_acq_rel,
						      memory_order_relaxed)); /* COLL-R3 */
	return emu_high(word) == EMU_SESSION_NONE;
}

static void add(struct run *run, struct emu_coll_view *view)
{
	view->next = NULL;
	if (run->first)
		run->last->next = view;
	else
		run->first = view;
	run->last = view;
}

/* Gives it back, unless somebody has asked since *word_p was read, which is then brought up to date. */
static bool give_back(struct emu_coll *coll, uint64_t *word_p)
{
	return atomic_compare_exchange_strong_explicit(&coll->turn, word_p, 0, memory_order_acq_rel,
						       memory_order_acquire); /* COLL-A3 */
}

/* ---- gates ------------------------------------------------------------------ */

/* I2 */
static void commit(struct emu_coll_view *view, const struct emu_coll_state *state)
{
	uint32_t other =
		(atomic_load_explicit(&view->coll->which, memory_order_relaxed) & 1) ^ 1; /* relaxed: our turn */

	view->coll->state[other] = *state;
	EMU_COLL_POINT();
	atomic_store_explicit(&view->coll->which, other, memory_order_release); /* COLL-R4 */
	EMU_COLL_POINT();
}

/* The unit is the owner's to write, and not only whose processes do as they should: what is used as a number is one. */
static struct emu_coll_state believed(const struct emu_coll_view *view)
{
	struct emu_coll_state state = *emu_coll_now(view);

	state.x &= 1;
	if (state.operands > EMU_OPERANDS)
		state.operands = EMU_OPERANDS;
	return state;
}

static uint32_t mp_len(uint32_t len)
{
	return len <= EMU_MP_DATA ? len : EMU_MP_DATA;
}

static void keep(struct emu_coll_kept *kept, const struct emu_mp_slot *slot)
{
	uint32_t len = mp_len(slot->len);

	kept->src = slot->src;
	kept->len = len;
	kept->flags = slot->flags;
	memcpy(kept->data, slot->data, len);
}

/* An entry of D that carries something, for the gate of desc. */
static void take(struct emu_coll_view *view, struct emu_coll_state *state, const struct emu_desc *desc,
		 const struct emu_mp_slot *slot)
{
	if (!(desc->flag & GLEX_FLAG_COLL_REDUCE))
		keep(&view->coll->x[state->x ^ 1], slot);
	else if (slot->flags & EMU_SLOT_OPERAND && state->operands < EMU_OPERANDS)
		keep(&view->coll->operand[state->operands++], slot);
	else
		state->flags |= EMU_COLL_BROKEN; /* something else, or more than a tree's branches */
	state->flags |= EMU_COLL_SWAP;
}

/* All that belongs to the gate of desc is there. */
static void open_gate(struct emu_coll_view *view, struct emu_coll_state *state, const struct emu_desc *desc)
{
	struct emu_coll_kept *x = &view->coll->x[state->x ^ 1];
	struct emu_operand result;

	state->flags |= EMU_COLL_OPEN;
	if (desc->flag & GLEX_FLAG_COLL_REDUCE && !(state->flags & EMU_COLL_BROKEN)) {
		if (!emu_reduce_all(&result, desc->imm, desc->len, emu_addr_of(view->port->port), view->coll->operand,
				    state->operands)) {
			state->flags |= EMU_COLL_BROKEN;
			return;
		}
		x->src = state->operands ? view->coll->operand[state->operands - 1].src : 0;
		x->flags = state->operands ? EMU_SLOT_OPERAND : 0; /* else it is nobody's but its own */
		x->len = emu_operand_len(&result);
		memcpy(x->data, &result, x->len);
		state->flags |= EMU_COLL_SWAP;
	}
}

/* The gate of a request that begins a sequence.  True: it is open. */
static bool pass(struct emu_coll_view *view, const struct emu_desc *desc)
{
	struct emu_coll_state state = believed(view);
	uint32_t before = state.d_head;
	struct emu_mp_slot *slot;
	bool swap = false;

	if (state.flags & EMU_COLL_OPEN)
		return true;
	if (state.got == 0) {
		state.flags = 0;
		state.operands = 0;
	}
	while (state.got < desc->counter && (slot = emu_ring_peek(&view->d, state.d_head))) {
		state.d_head++;
		if (slot->flags & EMU_SLOT_DISCARDED)
			continue;
		state.got++;
		if (!(slot->flags & EMU_SLOT_CARRIES))
			continue;
		take(view, &state, desc, slot);
		swap = true;
	}
	if (state.got == desc->counter) {
		open_gate(view, &state, desc);
		swap |= (desc->flag & GLEX_FLAG_COLL_REDUCE) != 0;
	} else if (state.d_head == before) {
		return false;
	}
	if (swap)
		state.x ^= 1;
	commit(view, &state);
	emu_ring_release(&view->d, state.d_head);
	EMU_COLL_POINT();
	return state.flags & EMU_COLL_OPEN;
}

/* ---- sending ---------------------------------------------------------------- */

/* The request as it is to be sent: *data_p its payload, dst[] where to.  EMU_OK, or why it is not. */
static int swap_in(const struct emu_coll_view *view, const struct emu_coll_state *state, struct emu_desc *desc,
		   const void **data_p, uint64_t dst[SET_MAX], uint32_t *n_p)
{
	const struct emu_coll_kept *x = &view->coll->x[state->x & 1];
	bool set = desc->flag & GLEX_FLAG_COLL_SWAP_SET, has_x = state->flags & EMU_COLL_SWAP;
	struct emu_swap_addr addr = {.ep = 0};
	bool is_addr;

	*data_p = desc->imm;
	*n_p = 1;
	if (desc->flag & GLEX_FLAG_COLL_SWAP) {
		if (state->flags & EMU_COLL_BROKEN)
			return GLEX_ERR_STATUS_FORMAT;
		if (set) {
			*n_p += desc->len / (uint32_t)sizeof(dst[0]);
			memcpy(&dst[1], desc->imm, desc->len);
			desc->len = 0;
		}
		is_addr = has_x && x->flags & EMU_SLOT_ADDR && x->len == sizeof(addr);
		if (is_addr)
			memcpy(&addr, x->data, sizeof(addr));
		else if (has_x && desc->op != EMU_OP_MP)
			return GLEX_ERR_STATUS_FORMAT;
		if (has_x && desc->flag & GLEX_FLAG_COLL_SWAP_EP && x->flags & EMU_SLOT_CARRIES)
			desc->dst = is_addr ? addr.ep : x->src;
		if (has_x && desc->op == EMU_OP_MP) {
			*data_p = x->data;
			desc->len = mp_len(x->len);
		} else if (has_x) {
			desc->rmt_mh = addr.mh;
			desc->rmt_offset = addr.offset;
			desc->rmt_key = addr.key;
		}
	}
	dst[0] = desc->dst;
	return EMU_OK;
}

/* What the owner's process put there is not believed: others execute it. */
static bool is_sound(const struct emu_desc *desc)
{
	bool set = desc->flag & GLEX_FLAG_COLL_SWAP_SET, swap = desc->flag & GLEX_FLAG_COLL_SWAP;

	switch (desc->op) {
	case EMU_OP_MP:
		return desc->len <= EMU_MP_DATA && (!set || (swap && desc->len % sizeof(uint64_t) == 0));
	case EMU_OP_IMM_PUT:
		return desc->len <= EMU_IMM_RDMA_DATA && !set;
	case EMU_OP_PUT:
		return desc->len <= EMU_RDMA_DATA && !set;
	default:
		return false;
	}
}

/* The request at cq_head has been sent to one more of n destinations. */
static void sent_one(struct emu_coll_view *view, uint32_t n, bool tail)
{
	struct emu_coll_state state = believed(view);

	if (state.sent >= n || ++state.sent >= n) {
		state.cq_head++;
		state.sent = state.got = 0;
		state.flags &= ~EMU_COLL_OPEN;
		if (tail)
			state.flags = 0;
	}
	commit(view, &state);
	if (state.sent == 0)
		atomic_store_explicit(&view->coll->cq.head, state.cq_head, memory_order_release); /* COLL-R2 */
}

/* Now, or if the network is out of order perhaps later. */
static int send_one(struct emu_host *host, struct emu_coll_view *view, const struct emu_desc *desc, const void *data,
		    struct emu_coll_view **told_p)
{
	int status = host->ops->hold ? host->ops->hold(host, view, desc, data) : EMU_NOW;

	return status == EMU_NOW ? emu_coll_send(host, view, desc, data, told_p) : status;
}

/* Sends the request at cq_head to wherever it has not been sent to yet. */
static void transmit(struct run *run, struct emu_coll_view *view, struct emu_desc *desc)
{
	const struct emu_coll_state state = believed(view);
	uint32_t at = state.sent, n = 1;
	uint64_t dst[SET_MAX] = {0};
	const void *data = NULL;
	int wrong = is_sound(desc) ? swap_in(view, &state, desc, &data, dst, &n) : GLEX_ERR_STATUS_FORMAT;

	if (wrong != EMU_OK || at >= n)
		at = n - 1; /* told once */
	for (; at < n; at++) {
		struct emu_coll_view *told = NULL;
		int status = wrong;

		if (wrong == EMU_OK) {
			desc->dst = dst[at];
			status = send_one(run->host, view, desc, data, &told);
		}
		sent_one(view, wrong == EMU_OK ? n : 0, desc->flag & GLEX_FLAG_COLL_SEQ_TAIL);
		if (status != EMU_OK)
			emu_report(run->host, view->port, desc, status);
		if (told && ask(run->host, told->coll))
			add(run, told);
		EMU_COLL_POINT();
	}
}

/*
 * A NORMAL endpoint's earlier requests are executed by glexd, which asks for a turn when it has.  A gate may stay
 * closed for longer than 32 bits can count those of its endpoint: tail has all 64, and head is that far behind it.
 */
static bool is_due(const struct emu_coll_view *view, const struct emu_desc *desc)
{
	struct emu_ring_ctl *dq = &view->port->port->dq;
	uint64_t tail;
	uint32_t head;

	if (!view->port->dq)
		return true;
	head = atomic_load_explicit(&dq->head, memory_order_acquire); /* DQ-A2 */
	tail = atomic_load_explicit(&dq->tail, memory_order_relaxed); /* relaxed: after head, so not behind it */
	return tail - (uint32_t)(emu_low(tail) - head) >= desc->after;
}

/* Executes the next request.  False: there is none, or its gate is closed. */
static bool step(struct run *run, struct emu_coll_view *view)
{
	uint32_t head = emu_coll_now(view)->cq_head;
	struct emu_desc desc, *slot = &view->cq[head & view->cq_mask];

	if (!emu_is_open(view->port) ||
	    head == emu_low(atomic_load_explicit(&view->coll->cq.tail, memory_order_acquire))) /* COLL-A1 */
		return false;
	desc = *slot; /* what is checked is what is executed, whatever the owner does to his queue meanwhile */
	if (!is_due(view, &desc) || (desc.flag & GLEX_FLAG_COLL_SEQ_START && !pass(view, &desc)))
		return false;
	transmit(run, view, &desc);
	return true;
}

void emu_coll_turn(struct emu_host *host, struct emu_coll_view *first)
{
	struct run run = {.host = host};
	struct emu_coll_view *view;
	uint64_t word;

	if (ask(host, first->coll))
		add(&run, first);
	while ((view = run.first)) {
		run.first = view->next; /* once the turn is given back, it may be in somebody else's list */
		word = atomic_load_explicit(&view->coll->turn, memory_order_acquire); /* COLL-R3 */
		do
			while (step(&run, view))
				;
		while (!give_back(view->coll, &word));
	}
}

void emu_coll_inherit(struct emu_host *host, struct emu_coll_view *view, uint32_t dead)
{
	struct emu_coll *coll = view->coll;
	uint64_t word = atomic_load_explicit(&coll->turn, memory_order_acquire); /* COLL-R3 */
	const struct emu_coll_state *state;
	struct emu_desc desc;

	if (emu_high(word) != dead)
		return;
	state = emu_coll_now(view);
	desc = view->cq[state->cq_head & view->cq_mask];
	if (emu_coll_settle(host, view)) {
		uint32_t n = desc.flag & GLEX_FLAG_COLL_SWAP_SET ? 1 + desc.len / (uint32_t)sizeof(uint64_t) : 1;

		sent_one(view, n, desc.flag & GLEX_FLAG_COLL_SEQ_TAIL);
		state = emu_coll_now(view);
	}
	/* What follows a new state, and may not have come to it. */
	atomic_store_explicit(&coll->cq.head, state->cq_head, memory_order_release); /* COLL-R2 */
	emu_ring_release(&view->d, state->d_head);
	while (!atomic_compare_exchange_weak_explicit(&coll->turn, &word, 0, memory_order_acq_rel,
						      memory_order_acquire)) /* COLL-A3 */
		;
}
