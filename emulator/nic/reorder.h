/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reorder.h - out of order on purpose: which request of a port comes next.
 *
 * The real network may deliver what one endpoint sends to another in any order.
 * With GLEX_REORDER every port has a descriptor queue, and each request is
 *
 *      executed by the poster at once, past all that is queued     a coin says so
 *      or queued, and executed by glexd in the order of its keys
 *
 *   queue    | 4 | 5 | 6 | 7 | 8 |       key of n: n plus a random number below the window
 *   keys       9   5  11   7  10         -> 5, 7, 4, 8, 6
 *
 * The data and the events of a PUT or GET have a key each, the events the larger one:
 * other requests may take effect between the two.
 *
 * I1  A request is passed by less than a window of later queued ones, and by at most
 *     a window executed at once for each step of the queue's head.
 * I2  FENCE: executed when all earlier ones are complete, events and all.
 * I3  Nothing waits for what may never be posted: a key is due when all smaller ones
 *     that there can be are in the queue, or when the engine has waited long enough.
 * I4  What a request does by itself keeps its order: data ascending, then events.
 *
 * Collective requests are another queue, whose packets are held back when they are sent: glexd's coll_shuffle.c.
 *
 * Keys come from the seed, the port and the number of the request alone, so the
 * order within one list is the same in every run.
 */
#ifndef EMU_REORDER_H
#define EMU_REORDER_H

#include "emulator/nic/vport.h"

#define EMU_REORDER_MAX 64u /* the largest window: a bit for each request */

/* The engine's side of a port. */
struct emu_reorder {
	uint64_t seed; /* of this port */
	uint64_t done; /* bit n: request head + n is complete */
	uint64_t data; /* its data has moved, its events are due later */
	uint32_t window;
	uint32_t at; /* under way: request head + at */
	bool busy;   /* there is one */
};

/* The seed of a port, from that of the engine. */
uint64_t emu_reorder_seed(uint64_t seed, uint32_t nic_id, uint32_t ep_num);

/* The coin: request number n of a poster goes first. */
bool emu_reorder_first(uint64_t seed, uint32_t n);

/* How far behind its own place request number n is due: less than a window. */
uint32_t emu_reorder_delay(uint64_t seed, uint32_t window, uint32_t n);

/*
 * Chooses what to do next among [head, tail): at is the place behind head.
 * False: nothing is due yet.  What was chosen stays until emu_reorder_end.
 */
bool emu_reorder_next(struct emu_reorder *r, const struct emu_vport *port, uint32_t head, uint32_t tail, bool overdue);

/* The data of what was chosen has been moved by now; only its events are left. */
static inline bool emu_reorder_has_data(const struct emu_reorder *r)
{
	return r->data >> r->at & 1;
}

/* What was chosen is over, but for its events where they come later.  Returns by how much head moves. */
uint32_t emu_reorder_end(struct emu_reorder *r, bool events_left);

#endif /* EMU_REORDER_H */
