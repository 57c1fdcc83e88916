/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * post.c - the posting calls of glex.h, and glex_inject.
 *
 * A list is checked as a whole before anything of it happens.  Then, under the
 * endpoint's lock, which keeps requests in order:
 *
 *   FAST, EMULATE  the poster executes each request here and now (emu_exec)
 *   NORMAL         requests go into the descriptor queue, which glexd's DMA engine
 *                  empties; only MPs and immediate PUTs that find it empty are
 *                  executed here, for nothing is left to overtake
 *
 * So everything before a request is complete when it starts: FENCE costs nothing.
 * With GLEX_REORDER every endpoint has a queue, and requests past which others go
 * first are executed here (emulator/nic/reorder.h).
 * Collective requests go into a queue of their own (coll.c), behind which no other
 * request waits; with GLEX_REORDER glexd executes what is in it.
 *
 * Each call tries the usual case first: one small request to a peer, from
 * and to regions seen before; emulator/nic/fast.h has it, and says which cache
 * lines travel, and quiet.h has what raises no event.  Whatever is different about
 * a request goes the general way.
 */
#include "backend/nic/quiet.h"

#include <sched.h>
#include <string.h>

#define COLL_FLAGS ((int32_t)EMU_COLL_FLAGS)

#define QUIET_FLAGS GLEX_FLAG_FENCE

/* ---- what a list may be ---------------------------------------------------- */

/* How a list of n requests, all sound, besides those that are collective, is to be executed; or why it is not. */
enum course { HERE, QUEUED, REFUSED };

static enum course choose(struct glexi_ep *ep, uint32_t n, bool small, glex_ret_t *ret)
{
	struct nic_ep *nep = ep->be;
	uint32_t used;

	*ret = GLEX_SYS_ERR;
	if (glexi_is_lost(ep->dev))
		return REFUSED;
	if (!nep->port.dq || n == 0)
		return HERE;
	nic_tell_errors(nep);
	used = nic_dq_used(nep);
	if (small && used == 0 && !nep->shuffle.window)
		return HERE;
	if (n <= nep->port.dq_mask + 1 - used)
		return QUEUED;
	*ret = GLEX_INVALID_PARAM;
	if (n > nep->port.dq_mask + 1)
		return REFUSED;
	glexi_count(&nep->host.by->tx_busy, 1);
	/* It clears by itself unless glexd is dead; let it have the core. */
	*ret = glexi_device_check(ep->dev) == GLEX_SUCCESS ? GLEX_BUSY : GLEX_SYS_ERR;
	if (*ret == GLEX_BUSY)
		sched_yield();
	return REFUSED;
}

/* Out of order: this request is executed here, past what is queued.  Long ones of a NORMAL endpoint are the engine's. */
static __attribute__((noinline, cold)) bool goes_first(struct nic_ep *nep, int32_t flag, bool small)
{
	struct nic_shuffle *s = &nep->shuffle;
	uint32_t used = nic_dq_used(nep);
	/* relaxed: only counts what was passed; nic_dq_used has ordered it */
	uint32_t head = atomic_load_explicit(&nep->port.port->dq.head, memory_order_relaxed);
	bool first = emu_reorder_first(s->seed, s->turn++);

	if (head != s->head || used == 0) {
		s->head = head;
		s->passed = 0;
	}
	if (!first || (!small && nep->ep->attr.type == GLEX_EP_TYPE_NORMAL) || s->passed >= s->window ||
	    (flag & GLEX_FLAG_FENCE && used != 0))
		return false;
	s->passed += used != 0;
	return true;
}

/* Where a request of a list that is not refused is executed. */
GLEXI_INLINE bool is_for_here(struct nic_ep *nep, enum course course, int32_t flag, bool small)
{
	return course == HERE || (GLEXI_UNLIKELY(nep->shuffle.window) && goes_first(nep, flag, small));
}

/* The same for n requests and colls collective ones. */
static enum course choose_both(struct glexi_ep *ep, uint32_t n, uint32_t colls, bool small, glex_ret_t *ret)
{
	enum course course = choose(ep, n, small, ret);

	if (GLEXI_LIKELY(!colls) || course == REFUSED)
		return course;
	nic_tell_errors(ep->be);
	*ret = nic_coll_room(ep->be, colls);
	if (*ret == GLEX_SUCCESS)
		return course;
	if (*ret == GLEX_BUSY)
		sched_yield();
	return REFUSED;
}

/* How each posting call ends: rings for what was queued, lets others post. */
static glex_ret_t finish(struct glexi_ep *ep, enum course course, glex_ret_t refusal, bool locked)
{
	if (course == QUEUED)
		nic_dq_ring(ep->be);
	glexi_unlock(&ep->post_lock, locked);
	return GLEXI_LIKELY(course != REFUSED) ? GLEX_SUCCESS : refusal;
}

/* ---- mini-packets ---------------------------------------------------------- */

GLEXI_INLINE glex_ret_t check_mp(const struct glex_imm_mp_req *req)
{
	if (GLEXI_UNLIKELY(req->len > EMU_MP_DATA || (req->len && !req->data)))
		return GLEX_INVALID_PARAM;
	return GLEXI_LIKELY(!(req->flag & COLL_FLAGS)) ? GLEX_SUCCESS
						       : nic_coll_check((uint32_t)req->flag, req->data, req->len, true);
}

static void describe_mp(const struct glex_imm_mp_req *req, struct emu_desc *desc)
{
	memset(desc, 0, offsetof(struct emu_desc, imm));
	desc->op = EMU_OP_MP;
	desc->flag = (uint32_t)req->flag & (EMU_INTR_FLAGS | GLEX_FLAG_FENCE | EMU_COLL_FLAGS);
	desc->dst = req->rmt_ep_addr.v;
	desc->len = req->len;
}

/* What seldom happens to an MP: it came to nothing, or it is to interrupt. */
void nic_end_mp(struct nic_ep *nep, const struct glex_imm_mp_req *req, int status)
{
	struct emu_desc desc;

	describe_mp(req, &desc);
	if (status == EMU_OK)
		emu_interrupts(&nep->host, &nep->port, &desc);
	else
		nic_report(nep, &desc, status);
}

static void send_mp_here(struct glexi_ep *ep, const struct glex_imm_mp_req *req)
{
	struct nic_ep *nep = ep->be;
	struct emu_vport *to = nic_host_ops.port(&nep->host, req->rmt_ep_addr.nic_id, req->rmt_ep_addr.ep_num);
	int status =
		to ? emu_deliver_mp(&nep->host, to, ep->addr.v, req->data, req->len) : GLEX_ERR_STATUS_DEST_VP_STOP;

	glexi_count(&nep->host.by->tx_mp, 1);
	if (GLEXI_UNLIKELY(status != EMU_OK || req->flag & (int32_t)EMU_INTR_FLAGS))
		nic_end_mp(nep, req, status);
}

static void queue_mp(struct glexi_ep *ep, const struct glex_imm_mp_req *req)
{
	struct nic_ep *nep = ep->be;
	struct emu_desc desc;

	describe_mp(req, &desc);
	glexi_count(&nep->host.by->tx_mp, 1);
	nic_dq_push(nep, &desc, req->data, req->len);
}

/* Collective requests that follow on one another are executed together, or what stands behind them would wait. */
#define RUN_LAST(nep, req)                                                                                             \
	do {                                                                                                           \
		if (!(req)->next || !((req)->next->flag & COLL_FLAGS))                                                 \
			nic_coll_run(nep);                                                                             \
	} while (0)

static void coll_mp(struct glexi_ep *ep, const struct glex_imm_mp_req *req)
{
	struct nic_ep *nep = ep->be;
	struct emu_desc desc;

	describe_mp(req, &desc);
	glexi_count(&nep->host.by->tx_mp, 1);
	nic_coll_push(nep, &desc, req->coll_counter, req->data, req->len);
	RUN_LAST(nep, req);
}

/* Checks a list, counts its requests, those that are collective apart; on failure *bad_p names the request. */
#define CHECK_LIST(type, check, head, bad_p, n, colls)                                                                 \
	do {                                                                                                           \
		type *r_;                                                                                              \
		for (r_ = (head); r_; r_ = r_->next) {                                                                 \
			glex_ret_t ret_ = check(r_);                                                                   \
			if (GLEXI_UNLIKELY(ret_ != GLEX_SUCCESS)) {                                                    \
				if (bad_p)                                                                             \
					*(bad_p) = r_;                                                                 \
				return ret_;                                                                           \
			}                                                                                              \
			*(GLEXI_UNLIKELY(r_->flag & COLL_FLAGS) ? &(colls) : &(n)) += 1;                               \
		}                                                                                                      \
	} while (0)

static __attribute__((noinline)) glex_ret_t post_mps(struct glexi_ep *ep, struct glex_imm_mp_req *req,
						     struct glex_imm_mp_req **bad)
{
	struct glex_imm_mp_req *r;
	enum course course;
	uint32_t n = 0, colls = 0;
	glex_ret_t ret;
	bool locked;

	CHECK_LIST(struct glex_imm_mp_req, check_mp, req, bad, n, colls);
	locked = glexi_lock(&ep->post_lock);
	course = choose_both(ep, n, colls, true, &ret);
	for (r = req; r && course != REFUSED; r = r->next) {
		if (GLEXI_UNLIKELY(r->flag & COLL_FLAGS))
			coll_mp(ep, r);
		else if (is_for_here(ep->be, course, r->flag, true))
			send_mp_here(ep, r);
		else
			queue_mp(ep, r);
	}
	ret = finish(ep, course, ret, locked);
	if (GLEXI_UNLIKELY(ret != GLEX_SUCCESS) && bad)
		*bad = req;
	return ret;
}

/* Where a process has several threads, or a ring several senders; false: nothing has happened. */
GLEXI_INLINE bool send_mp_usual(struct glexi_ep *ep, const struct glex_imm_mp_req *req)
{
	struct nic_ep *nep = ep->be;
	bool locked = glexi_lock(&ep->post_lock);
	struct emu_vport *to = usual_port(ep, req->rmt_ep_addr.v);
	int status;

	if (GLEXI_LIKELY(to != NULL)) {
		emu_ring_want(&to->mpq, req->len > EMU_MP_NEAR);
		glexi_count(&nep->host.by->tx_mp, 1);
		status = emu_put_mp(&nep->host, to, ep->addr.v, req->data, req->len);
		nic_expect_answer(ep, &to->mpq);
		if (GLEXI_UNLIKELY(status != EMU_OK))
			nic_end_mp(nep, req, status);
	}
	glexi_unlock(&ep->post_lock, locked);
	return to != NULL;
}

glex_ret_t nic_mp_aloud(struct glexi_ep *ep, struct glex_imm_mp_req *req, struct glex_imm_mp_req **bad)
{
	if (GLEXI_UNLIKELY(!req))
		return GLEX_INVALID_PARAM;
	if (GLEXI_LIKELY(is_plain_mp(req) && send_mp_usual(ep, req)))
		return GLEX_SUCCESS;
	return post_mps(ep, req, bad);
}

/* ---- the beaten track (quiet.h) --------------------------------------------- */

static void lay_end(struct nic_track_end *end, const struct emu_known *known)
{
	glex_mem_handle_t mh = {.v = known->handle};

	end->handle = known->handle;
	end->len = known->len;
	end->base = known->base;
	end->valid = &known->nic->mmt[mh.mmt_index].valid;
	end->generation = mh.att_index;
}

void nic_track_lay(struct nic_track *track, struct emu_vport *to, uint64_t addr, const struct emu_known *remote,
		   const struct emu_known *local)
{
	lay_end(&track->remote, remote);
	if (local)
		lay_end(&track->local, local);
	track->state = &to->port->state;
	track->to = to;
	track->addr = addr;
	track->key = remote->key;
	track->access = remote->access;
	track->way_len = 0;
	track->apart = local && (remote->base + remote->len <= local->base || local->base + local->len <= remote->base);
}

glex_ret_t nic_track_copy(struct nic_ep *nep, unsigned char *dst, const unsigned char *src, uint64_t len)
{
	struct emu_engine *engine = nep->host.engine;
	struct nic_track *track = &nep->track;
	uint64_t picks, stream_from;
	uint32_t copier;

	emu_copy_short(&nep->host, dst, src, len);
	if (len > EMU_SHORT && track->apart && nep->host.way[0]) {
		picks = atomic_load_explicit(&engine->copiers, memory_order_relaxed); /* relaxed: any will do */
		stream_from = atomic_load_explicit(&engine->stream_from, memory_order_relaxed); /* relaxed: the same */
		copier = emu_copier_for(picks, stream_from, len);
		for (uint32_t turn = 0; turn < 2; turn++)
			track->way[turn] = nep->host.way[emu_copy_turned(copier, len, turn)];
		track->way_len = len;
		track->way_for = picks;
	}
	return GLEX_SUCCESS;
}

/* ---- immediate PUT ---------------------------------------------------------- */

static bool is_event(const glex_event_t *event)
{
	return event->cookie_1 != 0;
}

GLEXI_INLINE glex_ret_t check_imm(const struct glex_imm_rdma_req *req)
{
	if (GLEXI_UNLIKELY(req->len > EMU_IMM_RDMA_DATA || (req->len && !req->data) ||
			   (req->flag & GLEX_FLAG_REMOTE_EVT && !is_event(&req->rmt_evt))))
		return GLEX_INVALID_PARAM;
	return GLEXI_LIKELY(!(req->flag & COLL_FLAGS)) ? GLEX_SUCCESS
						       : nic_coll_check((uint32_t)req->flag, NULL, req->len, false);
}

static void describe_imm(const struct glex_imm_rdma_req *req, struct emu_desc *desc)
{
	desc->op = EMU_OP_IMM_PUT;
	desc->flag = (uint32_t)req->flag;
	desc->dst = req->rmt_ep_addr.v;
	desc->local_mh = 0;
	desc->rmt_mh = req->rmt_mh.v;
	desc->local_offset = 0;
	desc->rmt_offset = req->rmt_offset;
	desc->len = req->len;
	desc->rmt_key = req->rmt_key;
	nic_take_event(desc->rmt_evt, &req->rmt_evt, req->flag & GLEX_FLAG_REMOTE_EVT);
}

static __attribute__((noinline, cold)) void report_imm(struct nic_ep *nep, const struct glex_imm_rdma_req *req,
						       int status)
{
	struct emu_desc desc;

	describe_imm(req, &desc);
	nic_report(nep, &desc, status);
}

static void put_imm(struct glexi_ep *ep, const struct glex_imm_rdma_req *req, bool here)
{
	struct nic_ep *nep = ep->be;
	struct emu_desc desc;
	int status;

	describe_imm(req, &desc);
	glexi_count(&nep->host.by->tx_imm_put, 1);
	if (!here) {
		nic_dq_push(nep, &desc, req->data, req->len);
		return;
	}
	status = emu_exec(&nep->host, &nep->port, &desc, req->data);
	if (GLEXI_UNLIKELY(status != EMU_OK))
		nic_report(nep, &desc, status);
}

static void coll_imm(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	struct emu_desc desc;

	describe_imm(req, &desc);
	glexi_count(&nep->host.by->tx_imm_put, 1);
	nic_coll_push(nep, &desc, req->coll_counter, req->data, req->len);
	RUN_LAST(nep, req);
}

static __attribute__((noinline)) glex_ret_t post_imms(struct glexi_ep *ep, struct glex_imm_rdma_req *req,
						      struct glex_imm_rdma_req **bad)
{
	struct glex_imm_rdma_req *r;
	enum course course;
	uint32_t n = 0, colls = 0;
	glex_ret_t ret;
	bool locked;

	CHECK_LIST(struct glex_imm_rdma_req, check_imm, req, bad, n, colls);
	locked = glexi_lock(&ep->post_lock);
	course = choose_both(ep, n, colls, true, &ret);
	for (r = req; r && course != REFUSED; r = r->next) {
		if (GLEXI_UNLIKELY(r->flag & COLL_FLAGS))
			coll_imm(ep, r);
		else
			put_imm(ep, r, is_for_here(ep->be, course, r->flag, true));
	}
	ret = finish(ep, course, ret, locked);
	if (GLEXI_UNLIKELY(ret != GLEX_SUCCESS) && bad)
		*bad = req;
	return ret;
}

/* On the track, with an event; false: nothing has happened. */
GLEXI_INLINE bool put_imm_event_track(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	struct emu_vport *to = nep->imm_track.to;
	uint64_t cookie[2] = {req->rmt_evt.cookie_0, req->rmt_evt.cookie_1};
	struct emu_event_claim claim;
	int status;

	if (GLEXI_UNLIKELY(!imm_track_leads(ep, req)))
		return false;
	emu_ring_want(&to->eq, false);
	count_imm(nep);
	claim = emu_claim_event(&nep->host, to);
	emu_copy_short(&nep->host, nep->imm_track.remote.base + req->rmt_offset, req->data, req->len);
	status = emu_raise(&nep->host, to, claim, cookie);
	if (GLEXI_LIKELY(status == EMU_OK))
		nic_expect_answer_at(ep, emu_ring_slot(&to->eq, claim.index + 1));
	else
		report_imm(nep, req, status);
	return true;
}

/* The usual case; false: nothing has happened. */
GLEXI_INLINE bool put_imm_usual(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	bool event = req->flag & GLEX_FLAG_REMOTE_EVT, locked = glexi_lock(&ep->post_lock);
	struct emu_vport *to = usual_port(ep, req->rmt_ep_addr.v);
	const struct emu_known *dst = NULL;
	uint64_t cookie[2] = {0, 0}; /* not read without an event, which gcc -O1 does not see */
	int status;

	if (GLEXI_LIKELY(to != NULL)) {
		if (event)
			emu_ring_want(&to->eq, false);
		dst = emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset, req->len,
					req->rmt_key, GLEX_MEM_WRITE);
	}
	if (GLEXI_LIKELY(dst != NULL)) {
		nic_take_event(cookie, &req->rmt_evt, event);
		count_imm(nep);
		if (track_turns(&nep->imm_track, 0, req->rmt_mh.v, req->rmt_ep_addr.v))
			nic_track_lay(&nep->imm_track, to, req->rmt_ep_addr.v, dst, NULL);
		status = emu_put_data(&nep->host, event ? to : NULL, dst->base + req->rmt_offset, req->data, req->len,
				      cookie);
		if (event)
			nic_expect_answer(ep, &to->eq);
		if (GLEXI_UNLIKELY(status != EMU_OK))
			report_imm(nep, req, status);
	}
	glexi_unlock(&ep->post_lock, locked);
	return dst != NULL;
}

static __attribute__((noinline)) glex_ret_t imm_rdma_aloud(struct glexi_ep *ep, struct glex_imm_rdma_req *req,
							   struct glex_imm_rdma_req **bad)
{
	if (GLEXI_UNLIKELY(!req))
		return GLEX_INVALID_PARAM;
	if (GLEXI_LIKELY(!req->next && req->len && !(req->flag & ~USUAL_FLAGS) && check_imm(req) == GLEX_SUCCESS &&
			 put_imm_usual(ep, req)))
		return GLEX_SUCCESS;
	return post_imms(ep, req, bad);
}

static EMU_TOGETHER __attribute__((noinline)) glex_ret_t
imm_rdma_off_track(struct glexi_ep *ep, struct glex_imm_rdma_req *req, struct glex_imm_rdma_req **bad)
{
	return put_imm_quiet(ep, req) ? GLEX_SUCCESS : imm_rdma_aloud(ep, req, bad);
}

static __attribute__((noinline)) glex_ret_t imm_rdma_event(struct glexi_ep *ep, struct glex_imm_rdma_req *req,
							   struct glex_imm_rdma_req **bad)
{
	return is_event(&req->rmt_evt) && put_imm_event_track(ep, req) ? GLEX_SUCCESS : imm_rdma_aloud(ep, req, bad);
}

EMU_TOGETHER glex_ret_t nic_imm_rdma(struct glex_ep *handle, struct glex_imm_rdma_req *req,
				     struct glex_imm_rdma_req **bad)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!req || req->next || req->flag & ~(QUIET_FLAGS | GLEX_FLAG_REMOTE_EVT) || !req->len || !req->data ||
	    req->len > EMU_IMM_RDMA_DATA)
		return imm_rdma_aloud(ep, req, bad);
	if (req->flag & GLEX_FLAG_REMOTE_EVT)
		return imm_rdma_event(ep, req, bad);
	return put_imm_track(ep, req) ? GLEX_SUCCESS : imm_rdma_off_track(ep, req, bad);
}

static __attribute__((noinline)) glex_ret_t inject_aloud(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	glex_ret_t ret = GLEX_SYS_ERR;
	bool locked;

	if (GLEXI_UNLIKELY(req->len > EMU_RDMA_DATA))
		return GLEX_INVALID_PARAM;
	if (GLEXI_UNLIKELY(nep->port.dq != NULL))
		return GLEX_NOT_IMPLEMENTED;
	if (!(req->flag & ~QUIET_FLAGS) && req->len && put_imm_quiet(ep, req))
		return GLEX_SUCCESS;
	if (GLEXI_LIKELY(req->len && put_imm_usual(ep, req)))
		return GLEX_SUCCESS;
	locked = glexi_lock(&ep->post_lock);
	if (choose(ep, 1, true, &ret) == HERE) {
		put_imm(ep, req, true);
		ret = GLEX_SUCCESS;
	}
	glexi_unlock(&ep->post_lock, locked);
	return ret;
}

/* As long as an RDMA PUT: the data cannot wait in a queue. */
glex_ret_t nic_inject(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	if (!(req->flag & ~QUIET_FLAGS) && req->len && req->len <= EMU_RDMA_DATA && put_imm_track(ep, req))
		return GLEX_SUCCESS;
	return inject_aloud(ep, req);
}

/* ---- PUT and GET ------------------------------------------------------------ */

/* A glexd that ends takes the regions back before we know that it is gone. */
static __attribute__((noinline, cold)) glex_ret_t wrong_handle(struct nic_ep *nep)
{
	return glexi_device_check(nep->dev->dev) == GLEX_SUCCESS ? GLEX_INVALID_PARAM : GLEX_SYS_ERR;
}

/* What can be said of it without looking at memory. */
GLEXI_INLINE glex_ret_t check_form(const struct glex_rdma_req *req)
{
	if (GLEXI_UNLIKELY(req->len > EMU_RDMA_DATA || (unsigned)req->type > GLEX_RDMA_TYPE_GET ||
			   (req->flag & GLEX_FLAG_REMOTE_EVT && !is_event(&req->rmt_evt)) ||
			   (req->flag & GLEX_FLAG_LOCAL_EVT && !is_event(&req->local_evt))))
		return GLEX_INVALID_PARAM;
	if (GLEXI_UNLIKELY(req->flag & COLL_FLAGS))
		return req->type == GLEX_RDMA_TYPE_GET ? GLEX_INVALID_PARAM
						       : nic_coll_check((uint32_t)req->flag, NULL, req->len, false);
	return GLEX_SUCCESS;
}

static glex_ret_t check_rdma(struct nic_ep *nep, const struct glex_rdma_req *req)
{
	glex_ret_t ret = check_form(req);
	struct emu_region local;

	if (GLEXI_UNLIKELY(ret != GLEX_SUCCESS))
		return ret;
	if (req->len && (emu_check_region(nep->dev->nic, req->local_mh.v, nep->port.port->ep_num, req->local_offset,
					  req->len, &local) != EMU_OK ||
			 local.session != nep->host.session))
		return wrong_handle(nep);
	return GLEX_SUCCESS;
}

static void describe_rdma(const struct glex_rdma_req *req, struct emu_desc *desc)
{
	desc->op = req->type == GLEX_RDMA_TYPE_PUT ? EMU_OP_PUT : EMU_OP_GET;
	desc->flag = (uint32_t)req->flag;
	desc->dst = req->rmt_ep_addr.v;
	desc->local_mh = req->local_mh.v;
	desc->rmt_mh = req->rmt_mh.v;
	desc->local_offset = req->local_offset;
	desc->rmt_offset = req->rmt_offset;
	desc->len = req->len;
	desc->rmt_key = req->rmt_key;
	nic_take_event(desc->local_evt, &req->local_evt, req->flag & GLEX_FLAG_LOCAL_EVT);
	nic_take_event(desc->rmt_evt, &req->rmt_evt, req->flag & GLEX_FLAG_REMOTE_EVT);
}

static void move_rdma(struct glexi_ep *ep, const struct glex_rdma_req *req, bool here)
{
	struct nic_ep *nep = ep->be;
	struct emu_desc desc;
	int status;

	describe_rdma(req, &desc);
	glexi_count(desc.op == EMU_OP_PUT ? &nep->host.by->tx_put : &nep->host.by->tx_get, 1);
	glexi_count(&nep->host.by->tx_bytes, req->len);
	if (!here) {
		nic_dq_push(nep, &desc, NULL, 0);
		return;
	}
	status = emu_exec(&nep->host, &nep->port, &desc, NULL);
	if (GLEXI_UNLIKELY(status != EMU_OK))
		nic_report(nep, &desc, status);
}

static void coll_put(struct glexi_ep *ep, const struct glex_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	struct emu_desc desc;

	describe_rdma(req, &desc);
	glexi_count(&nep->host.by->tx_put, 1);
	glexi_count(&nep->host.by->tx_bytes, req->len);
	nic_coll_push(nep, &desc, req->coll_counter, NULL, 0);
	RUN_LAST(nep, req);
}

static __attribute__((noinline)) glex_ret_t post_rdmas(struct glexi_ep *ep, struct glex_rdma_req *req,
						       struct glex_rdma_req **bad)
{
	struct nic_ep *nep = ep->be;
	struct glex_rdma_req *r;
	enum course course;
	uint32_t n = 0, colls = 0;
	glex_ret_t ret;
	bool locked;

#define CHECK_RDMA(r) check_rdma(nep, r)
	CHECK_LIST(struct glex_rdma_req, CHECK_RDMA, req, bad, n, colls);
	locked = glexi_lock(&ep->post_lock);
	course = choose_both(ep, n, colls, false, &ret);
	for (r = req; r && course != REFUSED; r = r->next) {
		if (GLEXI_UNLIKELY(r->flag & COLL_FLAGS))
			coll_put(ep, r);
		else
			move_rdma(ep, r, is_for_here(ep->be, course, r->flag, false));
	}
	ret = finish(ep, course, ret, locked);
	if (GLEXI_UNLIKELY(ret != GLEX_SUCCESS) && bad)
		*bad = req;
	return ret;
}

static __attribute__((noinline, cold)) void report_rdma(struct nic_ep *nep, const struct glex_rdma_req *req, int status)
{
	struct emu_desc desc;

	describe_rdma(req, &desc);
	nic_report(nep, &desc, status);
}

/* What comes last: the poster's event, and a line about what came to nothing. */
GLEXI_INLINE void end_usual(struct glexi_ep *ep, const struct glex_rdma_req *req, int status)
{
	struct nic_ep *nep = ep->be;
	uint64_t cookie[2];
	int raised = EMU_OK;

	if (req->flag & GLEX_FLAG_LOCAL_EVT) {
		nic_take_event(cookie, &req->local_evt, true);
		raised = emu_is_open(&nep->port) ? emu_put_event(&nep->host, &nep->port, cookie)
						 : GLEX_ERR_STATUS_DEST_VP_STOP;
	}
	if (status == EMU_OK)
		status = raised;
	if (GLEXI_UNLIKELY(status != EMU_OK))
		report_rdma(nep, req, status);
}

/* Both ends of a request are known: the bytes, then the events, as emu_exec would. */
GLEXI_INLINE void move_usual(struct glexi_ep *ep, struct emu_vport *to, const struct glex_rdma_req *req,
			     unsigned char *local, unsigned char *remote)
{
	struct nic_ep *nep = ep->be;
	bool put = req->type == GLEX_RDMA_TYPE_PUT, event = req->flag & GLEX_FLAG_REMOTE_EVT;
	uint64_t cookie[2] = {0, 0}; /* not read without an event, which gcc -O1 does not see */
	int status;

	nic_take_event(cookie, &req->rmt_evt, event);
	glexi_count(put ? &nep->host.by->tx_put : &nep->host.by->tx_get, 1);
	glexi_count(&nep->host.by->tx_bytes, req->len);
	glexi_count(&nep->host.by->by_map, 1);
	status = emu_put_data(&nep->host, event ? to : NULL, put ? remote : local, put ? local : remote, req->len,
			      cookie);
	if (event)
		nic_expect_answer(ep, &to->eq);
	end_usual(ep, req, status);
}

EMU_TOGETHER bool nic_move_away(struct glexi_ep *ep, struct emu_vport *to, const struct glex_rdma_req *req,
				const struct emu_known *local)
{
	struct nic_ep *nep = ep->be;
	bool put = req->type == GLEX_RDMA_TYPE_PUT;
	const struct emu_away *away = emu_recall_away(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset,
						      req->len, req->rmt_key, put ? GLEX_MEM_WRITE : GLEX_MEM_READ);
	uint64_t cookie[2];
	int status;

	if (!away)
		return false;
	glexi_count(put ? &nep->host.by->tx_put : &nep->host.by->tx_get, 1);
	glexi_count(&nep->host.by->tx_bytes, req->len);
	status = emu_status_of(
		emu_move_away(&nep->host, away, req->rmt_offset, local->base + req->local_offset, req->len, put));
	if (GLEXI_UNLIKELY(status != EMU_OK)) {
		report_rdma(nep, req, status);
		return true;
	}
	if (req->flag & GLEX_FLAG_REMOTE_EVT) {
		nic_take_event(cookie, &req->rmt_evt, true);
		status = emu_put_event(&nep->host, to, cookie);
		nic_expect_answer(ep, &to->eq);
	}
	end_usual(ep, req, status);
	return true;
}

/* The usual case; false: nothing has happened. */
GLEXI_INLINE bool rdma_usual(struct glexi_ep *ep, const struct glex_rdma_req *req)
{
	uint32_t access = req->type == GLEX_RDMA_TYPE_GET ? GLEX_MEM_READ : GLEX_MEM_WRITE;
	struct nic_ep *nep = ep->be;
	bool locked = glexi_lock(&ep->post_lock);
	struct emu_vport *to = usual_port(ep, req->rmt_ep_addr.v);
	const struct emu_known *remote = NULL, *local = NULL;

	if (GLEXI_LIKELY(to != NULL)) {
		if (req->flag & GLEX_FLAG_REMOTE_EVT)
			emu_ring_want(&to->eq, false);
		remote = emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset, req->len,
					   req->rmt_key, access);
		local = emu_recall_local(&nep->host, req->local_mh.v, ep->addr.v, req->local_offset, req->len);
	}
	if (GLEXI_LIKELY(remote && local))
		move_usual(ep, to, req, local->base + req->local_offset, remote->base + req->rmt_offset);
	else if (!local || !nic_move_away(ep, to, req, local))
		to = NULL;
	glexi_unlock(&ep->post_lock, locked);
	return to != NULL;
}

static __attribute__((noinline)) glex_ret_t rdma_aloud(struct glexi_ep *ep, struct glex_rdma_req *req,
						       struct glex_rdma_req **bad)
{
	if (GLEXI_UNLIKELY(!req))
		return GLEX_INVALID_PARAM;
	if (GLEXI_LIKELY(!req->next && req->len && !(req->flag & ~USUAL_FLAGS) && check_form(req) == GLEX_SUCCESS &&
			 rdma_usual(ep, req)))
		return GLEX_SUCCESS;
	return post_rdmas(ep, req, bad);
}

static EMU_TOGETHER __attribute__((noinline)) glex_ret_t rdma_off_track(struct glexi_ep *ep, struct glex_rdma_req *req,
									struct glex_rdma_req **bad)
{
	return rdma_quiet(ep, req) ? GLEX_SUCCESS : rdma_aloud(ep, req, bad);
}

EMU_TOGETHER glex_ret_t nic_rdma(struct glex_ep *handle, struct glex_rdma_req *req, struct glex_rdma_req **bad)
{
	struct glexi_ep *ep = glexi_ep_of(handle);

	if (!req || req->next || req->flag & ~QUIET_FLAGS || (unsigned)req->type > GLEX_RDMA_TYPE_GET || !req->len ||
	    req->len > EMU_RDMA_DATA)
		return rdma_aloud(ep, req, bad);
	return rdma_track_leads(ep, req) ? rdma_along(ep->be, req) : rdma_off_track(ep, req, bad);
}
