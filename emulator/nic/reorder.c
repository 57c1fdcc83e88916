/* SPDX-License-Identifier: BSD-2-Clause */
/* reorder.c - random numbers and the choice; reorder.h has the rules. */
#include "emulator/nic/reorder.h"

#include <glex.h>

enum stage { DATA, EVENTS, COIN };

/* A number that looks random, the same for the same three. */
static uint64_t draw(uint64_t seed, uint32_t n, enum stage stage)
{
	uint64_t x = seed + ((uint64_t)n << 2 | stage) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint64_t emu_reorder_seed(uint64_t seed, uint32_t nic_id, uint32_t ep_num)
{
	return draw(seed ^ (uint64_t)nic_id << 32, ep_num, COIN);
}

bool emu_reorder_first(uint64_t seed, uint32_t n)
{
	return draw(seed, n, COIN) % 3 == 0;
}

uint32_t emu_reorder_delay(uint64_t seed, uint32_t window, uint32_t n)
{
	return (uint32_t)(draw(seed, n, DATA) % window);
}

/* The same for its events, too. */
static uint32_t delay_of(const struct emu_reorder *r, uint32_t n, bool data_moved)
{
	uint32_t delay = emu_reorder_delay(r->seed, r->window, n);

	return data_moved ? delay + (uint32_t)(draw(r->seed, n, EVENTS) % r->window) : delay;
}

bool emu_reorder_next(struct emu_reorder *r, const struct emu_vport *port, uint32_t head, uint32_t tail, bool overdue)
{
	uint32_t n = tail - head, i, key, best = 0;
	bool found = false;

	if (r->busy)
		return true;
	for (i = 0; i < n && i < r->window; i++) { /* I1 */
		bool fence = port->dq[(head + i) & port->dq_mask].flag & GLEX_FLAG_FENCE;

		if (r->done >> i & 1 || (fence && i > 0)) /* I2: all before the head are complete */
			continue;
		key = i + delay_of(r, head + i, r->data >> i & 1);
		if ((key < n || overdue || n >= r->window) && (!found || key < best)) { /* I3 */
			found = true;
			best = key;
			r->at = i;
		}
	}
	r->busy = found;
	return found;
}

uint32_t emu_reorder_end(struct emu_reorder *r, bool events_left)
{
	uint32_t freed = 0;

	r->busy = false;
	if (events_left) {
		r->data |= UINT64_C(1) << r->at;
		return 0;
	}
	r->done |= UINT64_C(1) << r->at;
	for (; r->done & 1; freed++) {
		r->done >>= 1;
		r->data >>= 1;
	}
	return freed;
}
