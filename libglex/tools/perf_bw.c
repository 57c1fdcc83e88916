/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_bw.c - bandwidth: windows of PUTs or GETs.
 *
 * The last request of a window carries FENCE and the event: it completes after
 * all others, whatever order the fabric keeps.
 *
 * Without --check every message of a window goes to the same place, as in the
 * benchmarks whose figures one compares with; then nobody reads the data and
 * what is measured is a copy into the writer's own cache.
 */
#include "perf_stream.h"

#include <string.h>

/* ---- PUT one way --------------------------------------------------------- */

PERF_INLINE void put_window(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	for (uint32_t i = 0; i < plan->window; i++) {
		uint32_t at = perf_slot(plan, window, i) * plan->stride;
		bool last = i + 1 == plan->window;

		if (plan->check)
			perf_prepare(s, s->out + at, plan->size, perf_number(plan, window, i));
		req->rdma.local_offset = at;
		req->rdma.rmt_offset = (uint32_t)s->half + at;
		req->rdma.flag = last ? GLEX_FLAG_FENCE | GLEX_FLAG_REMOTE_EVT : 0;
		req->rdma.rmt_evt.cookie_0 = window;
		perf_put(s, &req->rdma);
	}
}

PERF_INLINE void take_data(struct perf_side *s, const struct perf_plan *plan, uint64_t window)
{
	perf_wait_event(s, window, PERF_EVENT_DATA);
	if (!plan->check)
		return;
	for (uint32_t i = 0; i < plan->window; i++)
		perf_verify(s, s->in + (uint64_t)perf_slot(plan, window, i) * plan->stride, plan->size,
			    perf_number(plan, window, i));
}

PERF_INLINE void credit_wait(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	(void)plan;
	(void)req;
	perf_wait_event(s, window, PERF_EVENT_CREDIT);
}

/* Side 1's request is the credit: an event with 8 bytes behind the last slot. */
PERF_INLINE void take_window(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	take_data(s, plan, window);
	req->imm.rmt_evt.cookie_0 = window;
	perf_imm_put(s, &req->imm);
}

static void credit_setup(struct perf_side *s, union perf_req *req)
{
	perf_req_imm(s, 8, PERF_EVENT_CREDIT, req);
	req->imm.data = s->out + s->half - 8;
	req->imm.rmt_offset = (uint32_t)(2 * s->half - 8);
}

static void put_bw(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	union perf_req req;

	if (s->side == 0)
		perf_req_put(s, plan->size, PERF_EVENT_DATA, &req);
	else
		credit_setup(s, &req);
	perf_stream(s, plan, sample, &req, put_window, credit_wait, take_window);
}

/* ---- immediate PUTs, for their rate -------------------------------------- */

PERF_INLINE void imm_window(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	for (uint32_t i = 0; i < plan->window; i++) {
		uint32_t at = perf_slot(plan, window, i) * plan->stride;

		if (plan->check)
			perf_prepare(s, s->out, plan->size, perf_number(plan, window, i));
		req->imm.rmt_offset = (uint32_t)s->half + at;
		req->imm.flag = i + 1 == plan->window ? GLEX_FLAG_FENCE | GLEX_FLAG_REMOTE_EVT : 0;
		req->imm.rmt_evt.cookie_0 = window;
		perf_imm_put(s, &req->imm);
	}
}

static void imm_put_rate(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	union perf_req req;

	if (s->side == 0)
		perf_req_imm(s, plan->size, PERF_EVENT_DATA, &req);
	else
		credit_setup(s, &req);
	perf_stream(s, plan, sample, &req, imm_window, credit_wait, take_window);
}

/* ---- GET ----------------------------------------------------------------- */

/* Each window reads the lent slots from another start, so that no slot gets what it has. */
PERF_INLINE uint32_t lent_slot(const struct perf_plan *plan, uint64_t window, uint32_t i)
{
	return plan->slots == 1 ? 0 : (uint32_t)((window / PERF_AHEAD + perf_slot(plan, window, i)) % plan->slots);
}

PERF_INLINE void get_window(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	for (uint32_t i = 0; i < plan->window; i++) {
		req->rdma.local_offset = (uint32_t)s->half + perf_slot(plan, window, i) * plan->stride;
		req->rdma.rmt_offset = lent_slot(plan, window, i) * plan->stride;
		req->rdma.flag = i + 1 == plan->window ? GLEX_FLAG_FENCE | GLEX_FLAG_LOCAL_EVT : 0;
		req->rdma.local_evt.cookie_0 = window;
		perf_put(s, &req->rdma);
	}
}

PERF_INLINE void get_wait(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	(void)req;
	perf_wait_event(s, window, PERF_EVENT_LOCAL);
	if (!plan->check)
		return;
	for (uint32_t i = 0; i < plan->window; i++)
		perf_verify(s, s->in + (uint64_t)perf_slot(plan, window, i) * plan->stride, plan->size,
			    lent_slot(plan, window, i));
}

PERF_INLINE void take_nothing(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	(void)s;
	(void)plan;
	(void)req;
	(void)window;
}

static void get_bw(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	union perf_req req;

	perf_req_get(s, plan->size, &req);
	for (uint32_t slot = 0; slot < plan->slots; slot++)
		perf_prepare(s, s->out + (uint64_t)slot * plan->stride, plan->size, slot);
	perf_stream(s, plan, sample, &req, get_window, get_wait, take_nothing);
}

/* ---- PUT both ways ------------------------------------------------------- */

/*
 * Both post a window and wait for the other's.  Who has window k of the other
 * knows that the other verified k-1, and may overwrite its slots.
 */
static void put_bibw(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	union perf_req req;
	uint64_t window = 1;

	perf_req_put(s, plan->size, PERF_EVENT_DATA, &req);
	perf_side_meet(s);
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		uint64_t start = perf_now_ns();

		for (uint32_t i = 0; i < plan->batch; i++, window++) {
			put_window(s, plan, &req, window);
			take_data(s, plan, window);
		}
		if (k >= plan->warmup)
			sample[k - plan->warmup] =
				(double)(perf_now_ns() - start) / ((double)plan->batch * plan->window);
		perf_progress(s);
	}
}

#define SIZES_BW "512,4K,16K,64K,256K,1M,4M"

const struct perf_test perf_put_bw = {
	.name = "put_bw",
	.help = "windows of PUTs one way",
	.kind = PERF_BANDWIDTH,
	.sizes = SIZES_BW,
	.window = 64,
	.refuse = perf_refuse_rdma,
	.run = put_bw,
};

const struct perf_test perf_get_bw = {
	.name = "get_bw",
	.help = "windows of GETs",
	.kind = PERF_BANDWIDTH,
	.one_sided = true,
	.sizes = SIZES_BW,
	.window = 64,
	.refuse = perf_refuse_rdma,
	.run = get_bw,
};

const struct perf_test perf_put_bibw = {
	.name = "put_bibw",
	.help = "windows of PUTs both ways at once, the sum of both",
	.kind = PERF_BANDWIDTH,
	.both_ways = true,
	.sizes = SIZES_BW,
	.window = 64,
	.refuse = perf_refuse_rdma,
	.run = put_bibw,
};

const struct perf_test perf_imm_put_rate = {
	.name = "imm_put_rate",
	.help = "stream of immediate PUTs, one event per window",
	.kind = PERF_RATE,
	.sizes = "8",
	.window = 64,
	.refuse = perf_refuse_imm,
	.run = imm_put_rate,
};
