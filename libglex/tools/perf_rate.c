/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_rate.c - how many mini-packets a second one pair of endpoints exchanges.
 *
 * The receiver looks at a whole window before it discards it, and returns the
 * credit by a mini-packet only then: never more than PERF_AHEAD windows are in
 * its queue.
 */
#include "perf_stream.h"

PERF_INLINE void mp_window(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	for (uint32_t i = 0; i < plan->window; i++) {
		if (plan->check)
			perf_prepare(s, s->out, plan->size, perf_number(plan, window, i));
		perf_send_mp(s, &req->mp);
	}
}

PERF_INLINE void mp_credit_wait(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	uint32_t len;

	(void)plan;
	(void)req;
	(void)window;
	perf_wait_mp(s, &len);
	glex_discard_probed_mp(s->ep);
}

PERF_INLINE void mp_take(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window)
{
	for (uint32_t i = 0; i < plan->window; i++) {
		uint32_t len;
		void *data = perf_wait_mp(s, &len);

		if (__builtin_expect(len != plan->size, 0))
			perf_fail(s, "a mini-packet of %u bytes came", len);
		if (plan->check)
			perf_verify(s, data, len, perf_number(plan, window, i));
	}
	glex_discard_probed_mp(s->ep);
	perf_send_mp(s, &req->mp);
}

static void mp_rate(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	union perf_req req;

	perf_req_mp(s, s->side == 0 ? plan->size : 0, &req);
	perf_stream(s, plan, sample, &req, mp_window, mp_credit_wait, mp_take);
}

const struct perf_test perf_mp_rate = {
	.name = "mp_rate",
	.help = "stream of mini-packets",
	.kind = PERF_RATE,
	.sizes = "8",
	.window = 64,
	.refuse = perf_refuse_mp,
	.run = mp_rate,
};
