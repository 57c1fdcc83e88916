/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_stream.h - one side sends windows of messages, the other takes them.
 *
 *   side 0   post 1, post 2, wait credit 1, post 3, wait credit 2, post 4 ...
 *   side 1   take 1, credit 1, take 2, credit 2 ...
 *
 * Side 0 is at most PERF_AHEAD windows ahead.  That hides the credit's way back,
 * and bounds what can wait in side 1's queues: they cannot overflow.  Each
 * window has slots of its own until its credit came, so that the data of one
 * can be verified while the next arrives.
 */
#ifndef PERF_STREAM_H
#define PERF_STREAM_H

#include "perf.h"

#define PERF_AHEAD 2U

typedef void (*perf_window_fn)(struct perf_side *s, const struct perf_plan *plan, union perf_req *req, uint64_t window);

/* Where message i of a window lies in the sender's out and the receiver's in. */
PERF_INLINE uint32_t perf_slot(const struct perf_plan *plan, uint64_t window, uint32_t i)
{
	if (plan->slots == 1)
		return 0;
	return (uint32_t)(window % PERF_AHEAD) * plan->window + i;
}

/* Windows and messages count from 1. */
PERF_INLINE uint64_t perf_number(const struct perf_plan *plan, uint64_t window, uint32_t i)
{
	return (window - 1) * plan->window + i + 1;
}

/* Side 0 between two looks at the clock: batch windows, the last credits included. */
PERF_INLINE void perf_stream_send(struct perf_side *s, const struct perf_plan *plan, union perf_req *req,
				  uint64_t window, perf_window_fn post, perf_window_fn await_credit)
{
	uint32_t ahead = plan->batch < PERF_AHEAD ? plan->batch : PERF_AHEAD;

	for (uint32_t i = 0; i < plan->batch; i++) {
		if (i >= PERF_AHEAD)
			await_credit(s, plan, req, window + i - PERF_AHEAD);
		post(s, plan, req, window + i);
	}
	for (uint32_t i = plan->batch - ahead; i < plan->batch; i++)
		await_credit(s, plan, req, window + i);
}

PERF_INLINE void perf_stream(struct perf_side *s, const struct perf_plan *plan, double *sample, union perf_req *req,
			     perf_window_fn post, perf_window_fn await_credit, perf_window_fn take)
{
	uint64_t window = 1;

	perf_side_meet(s);
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++, window += plan->batch) {
		uint64_t start = perf_now_ns();

		if (s->side == 0)
			perf_stream_send(s, plan, req, window, post, await_credit);
		else
			for (uint32_t i = 0; i < plan->batch; i++)
				take(s, plan, req, window + i);
		if (k >= plan->warmup)
			sample[k - plan->warmup] =
				(double)(perf_now_ns() - start) / ((double)plan->batch * plan->window);
		perf_progress(s);
	}
}

#endif /* PERF_STREAM_H */
