/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_lat.c - latency: ping-pong of a message of each kind, and GET.
 *
 * A sample is a batch of round trips between two looks at the clock, which
 * costs a third of a message.  One way is half a round trip.  A GET is a round
 * trip by nature and what counts is when its data is there: whole, not halved.
 *
 * The loops take their send and wait functions as constants and are inlined, so
 * that no indirect call is measured beside the library's own.
 */
#include "perf.h"

#include <string.h>

typedef void (*setup_fn)(struct perf_side *s, const struct perf_plan *plan, union perf_req *req);
typedef void (*step_fn)(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number);

/* Nothing of a row before may look like a message of this one. */
static void prepare(struct perf_side *s, const struct perf_plan *plan)
{
	memset(s->in, 0, plan->size);
	if (!plan->check)
		perf_prepare(s, s->out, plan->size, 0);
}

PERF_INLINE void pingpong(struct perf_side *s, const struct perf_plan *plan, double *sample, setup_fn setup,
			  step_fn send, step_fn wait)
{
	union perf_req req;
	uint64_t number = 0;

	setup(s, plan, &req);
	prepare(s, plan);
	perf_side_meet(s);
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		uint64_t start = perf_now_ns();

		for (uint32_t i = 0; i < plan->batch; i++) {
			number++;
			if (s->side == 0) {
				send(s, plan, &req, number);
				wait(s, plan, &req, number);
			} else {
				wait(s, plan, &req, number);
				send(s, plan, &req, number);
			}
		}
		if (k >= plan->warmup)
			sample[k - plan->warmup] = (double)(perf_now_ns() - start) / (2.0 * plan->batch);
		perf_progress(s);
	}
}

/* ---- mini-packets -------------------------------------------------------- */

PERF_INLINE void mp_setup(struct perf_side *s, const struct perf_plan *plan, union perf_req *req)
{
	perf_req_mp(s, plan->size, req);
}

PERF_INLINE void mp_send(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	if (plan->check)
		perf_prepare(s, s->out, plan->size, number);
	perf_send_mp(s, &req->mp);
}

PERF_INLINE void mp_wait(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	uint32_t len;
	void *data = perf_wait_mp(s, &len);

	(void)req;
	if (__builtin_expect(len != plan->size, 0))
		perf_fail(s, "a mini-packet of %u bytes came", len);
	if (plan->check)
		perf_verify(s, data, len, number);
	glex_discard_probed_mp(s->ep);
}

static void mp_lat(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	pingpong(s, plan, sample, mp_setup, mp_send, mp_wait);
}

/* ---- PUT with remote event ----------------------------------------------- */

PERF_INLINE void imm_setup(struct perf_side *s, const struct perf_plan *plan, union perf_req *req)
{
	perf_req_imm(s, plan->size, PERF_EVENT_DATA, req);
}

PERF_INLINE void imm_send(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	if (plan->check)
		perf_prepare(s, s->out, plan->size, number);
	req->imm.rmt_evt.cookie_0 = number;
	perf_imm_put(s, &req->imm);
}

PERF_INLINE void put_setup(struct perf_side *s, const struct perf_plan *plan, union perf_req *req)
{
	perf_req_put(s, plan->size, PERF_EVENT_DATA, req);
}

PERF_INLINE void put_send(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	/* The answer to the message before says that its source has been read. */
	if (plan->check)
		perf_prepare(s, s->out, plan->size, number);
	req->rdma.rmt_evt.cookie_0 = number;
	perf_put(s, &req->rdma);
}

PERF_INLINE void event_wait(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	(void)req;
	perf_wait_event(s, number, PERF_EVENT_DATA);
	if (plan->check)
		perf_verify(s, s->in, plan->size, number);
}

static void imm_put_lat(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	pingpong(s, plan, sample, imm_setup, imm_send, event_wait);
}

static void put_lat(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	pingpong(s, plan, sample, put_setup, put_send, event_wait);
}

/* ---- PUT seen by polling its last word ----------------------------------- */

/* The message: the pattern, and its number in the last word, which becomes visible last. */
PERF_INLINE void number_message(struct perf_side *s, const struct perf_plan *plan, uint64_t number)
{
	if (plan->check)
		perf_prepare(s, s->out, plan->size - 8, number);
	memcpy(s->out + plan->size - 8, &number, 8);
}

PERF_INLINE void poll_imm_setup(struct perf_side *s, const struct perf_plan *plan, union perf_req *req)
{
	perf_req_imm(s, plan->size, 0, req);
}

PERF_INLINE void poll_imm_send(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	number_message(s, plan, number);
	perf_imm_put(s, &req->imm);
}

PERF_INLINE void poll_put_setup(struct perf_side *s, const struct perf_plan *plan, union perf_req *req)
{
	perf_req_put(s, plan->size, 0, req);
}

PERF_INLINE void poll_put_send(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	number_message(s, plan, number);
	perf_put(s, &req->rdma);
}

PERF_INLINE void poll_wait(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	(void)req;
	perf_wait_word(s, (const uint64_t *)(const void *)(s->in + plan->size - 8), number);
	if (plan->check)
		perf_verify(s, s->in, plan->size - 8, number);
}

static void put_poll_lat(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	if (plan->size <= s->dev_attr.max_imm_rdma_data_len)
		pingpong(s, plan, sample, poll_imm_setup, poll_imm_send, poll_wait);
	else
		pingpong(s, plan, sample, poll_put_setup, poll_put_send, poll_wait);
}

static const char *refuse_poll(const struct perf_side *s, uint32_t size)
{
	if (size % 8)
		return "its last 8 bytes must be an aligned word";
	return perf_refuse_rdma(s, size);
}

/* ---- GET ----------------------------------------------------------------- */

/*
 * Side 1 only lends its memory, asleep.  To check, it fills every slot with a
 * message of its own, and all land in one place: what a GET left there is never
 * what the next must bring.
 */
static void get_lend(struct perf_side *s, const struct perf_plan *plan)
{
	for (uint32_t slot = 0; slot < plan->slots; slot++)
		perf_prepare(s, s->out + (uint64_t)slot * plan->stride, plan->size, slot);
}

PERF_INLINE void get_one(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t number)
{
	uint32_t slot = number % plan->slots;

	if (plan->check)
		req->rdma.rmt_offset = slot * plan->stride;
	req->rdma.local_evt.cookie_0 = number;
	perf_put(s, &req->rdma);
	perf_wait_event(s, number, PERF_EVENT_LOCAL);
	if (plan->check)
		perf_verify(s, s->in, plan->size, slot);
}

static void get_lat(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	union perf_req req;
	uint64_t number = 0;

	perf_req_get(s, plan->size, &req);
	get_lend(s, plan);
	perf_side_meet(s);
	if (s->side == 1)
		return;
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		uint64_t start = perf_now_ns();

		for (uint32_t i = 0; i < plan->batch; i++)
			get_one(s, plan, &req, ++number);
		if (k >= plan->warmup)
			sample[k - plan->warmup] = (double)(perf_now_ns() - start) / plan->batch;
		perf_progress(s);
	}
}

#define SIZES_SMALL "8,16,32,64,96"
#define SIZES_ALL   "8,64,512,4K,32K,256K,1M"

const struct perf_test perf_imm_put_lat = {
	.name = "imm_put_lat",
	.help = "immediate RDMA PUT, seen by its event",
	.kind = PERF_LATENCY,
	.sizes = SIZES_SMALL,
	.refuse = perf_refuse_imm,
	.run = imm_put_lat,
};

const struct perf_test perf_put_lat = {
	.name = "put_lat",
	.help = "RDMA PUT, seen by its event",
	.kind = PERF_LATENCY,
	.sizes = SIZES_ALL,
	.refuse = perf_refuse_rdma,
	.run = put_lat,
};

const struct perf_test perf_put_poll_lat = {
	.name = "put_poll_lat",
	.help = "PUT (immediate where it fits), seen by polling its last word",
	.kind = PERF_LATENCY,
	.sizes = SIZES_ALL,
	.refuse = refuse_poll,
	.run = put_poll_lat,
};

const struct perf_test perf_get_lat = {
	.name = "get_lat",
	.help = "RDMA GET of idle memory, until the local event",
	.kind = PERF_LATENCY,
	.one_sided = true,
	.sizes = SIZES_ALL,
	.refuse = perf_refuse_rdma,
	.run = get_lat,
};

const struct perf_test perf_mp_lat = {
	.name = "mp_lat",
	.help = "mini-packet",
	.kind = PERF_LATENCY,
	.sizes = "8,16,32,64,112",
	.refuse = perf_refuse_mp,
	.run = mp_lat,
};
