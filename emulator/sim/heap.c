/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.c - events by time: a binary heap; parents are not later than their children.
 */
#include "emulator/sim/sim.h"

#include <stdlib.h>

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return a->rank != b->rank ? a->rank < b->rank : a->order < b->order;
}

bool sim_heap_put(struct sim_heap *heap, struct sim_event event)
{
	size_t at = heap->count;

	if (at == heap->room) {
		size_t room = heap->room ? heap->room * 2 : 1024;
		struct sim_event *more = realloc(heap->event, room * sizeof(*more));

		if (!more)
			return false;
		heap->event = more;
		heap->room = room;
	}
	event.order = heap->order++;
	for (; at > 0 && is_before(&event, &heap->event[(at - 1) / 2]); at = (at - 1) / 2)
		heap->event[at] = heap->event[(at - 1) / 2];
	heap->event[at] = event;
	heap->count++;
	return true;
}

bool sim_heap_take(struct sim_heap *heap, struct sim_event *event)
{
	size_t at = 0, child;
	struct sim_event last;

	if (heap->count == 0)
		return false;
	*event = heap->event[0];
	last = heap->event[--heap->count];
	while ((child = 2 * at + 1) < heap->count) {
		if (child + 1 < heap->count && is_before(&heap->event[child + 1], &heap->event[child]))
			child++;
		if (!is_before(&heap->event[child], &last))
			break;
		heap->event[at] = heap->event[child];
		at = child;
	}
	heap->event[at] = last;
	return true;
}
