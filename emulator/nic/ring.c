/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.c - the slower ways through the queue of ring.h: claims behind another
 * session or near the end of the free slots, and what a dead producer left.
 */
#include "emulator/nic/bias.h"

#include <string.h>

/* True when a lies before b on the circle of indices. */
static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/*
 * Writes down who made the last claim that `tail` tells of.  False: the tail has
 * moved on.  Asked after the entry was read: while the tail stands, the entry is
 * of an earlier lap, however old, and may be replaced.
 */
static bool log_claim(const struct emu_ring *ring, uint64_t tail)
{
	uint32_t index = emu_low(tail) - 1;
	_Atomic uint64_t *entry = &ring->log[index & ring->mask];
	uint64_t old = atomic_load_explicit(entry, memory_order_acquire); /* RING-A4 */
	uint64_t new = emu_pair(index, emu_high(tail));

	while (old != new) {
		if (atomic_load_explicit(&ring->ctl->tail, memory_order_acquire) != tail) /* RING-A5 */
			return false;
		/* Losing the race is no reason to go: the winner may be a claimer that slept for a lap. */
		if (atomic_compare_exchange_strong_explicit(entry, &old, new, memory_order_release, /* RING-R4 */
							    memory_order_acquire))		    /* RING-A4 */
			break;
	}
	return true;
}

/*
 * Looks at the consumer's word only when producers' knowledge does not do.  That
 * may be of any age: a producer can sleep before R3.
 */
bool emu_ring_has_room(const struct emu_ring *ring, uint32_t index)
{
	struct emu_ring_ctl *ctl = ring->ctl;
	uint32_t head = atomic_load_explicit(&ctl->head_seen, memory_order_acquire); /* RING-A3 */

	if (index - head <= ring->mask)
		return true;
	head = atomic_load_explicit(&ctl->head, memory_order_acquire);	    /* RING-A2 */
	atomic_store_explicit(&ctl->head_seen, head, memory_order_release); /* RING-R3 */
	return (int32_t)(index - head) <= (int32_t)ring->mask;
}

void *emu_ring_claim_contended(const struct emu_ring *ring, uint32_t session, uint32_t *index_p)
{
	struct emu_ring_ctl *ctl = ring->ctl;
	uint64_t tail = atomic_load_explicit(&ctl->tail, memory_order_acquire); /* RING-A5 */

	for (;;) {
		uint32_t index = emu_low(tail);
		uint32_t last = emu_high(tail);
		bool room;
		uint64_t now;

		if (emu_ring_is_biased(tail))
			return NULL;
		room = emu_ring_has_room(ring, index);

		/* A stale tail can look full: judge by a fresh one. */
		if (!room || (last != session && last != EMU_SESSION_NONE && last != EMU_RING_UNUSED &&
			      !log_claim(ring, tail))) {
			now = atomic_load_explicit(&ctl->tail, memory_order_acquire); /* RING-A5 */
			if (now == tail && !room)
				return NULL;
			tail = now;
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(&ctl->tail, &tail, emu_pair(session, index + 1),
							  memory_order_release, /* RING-R5 */
							  memory_order_acquire)) {
			*index_p = index;
			return emu_ring_slot(ring, index);
		}
	}
}

/* I3: who claimed index, given the tail it lies before. */
static uint32_t owner_of(const struct emu_ring *ring, uint32_t index, uint64_t tail)
{
	uint32_t n;

	for (n = index; n != emu_low(tail); n++) {
		uint64_t entry = atomic_load_explicit(&ring->log[n & ring->mask], memory_order_acquire); /* RING-A4 */

		if (emu_high(entry) == n && emu_low(entry) != EMU_SESSION_NONE)
			return emu_low(entry);
	}
	return emu_high(tail);
}

bool emu_ring_unpublished(const struct emu_ring *ring, uint32_t index)
{
	uint32_t seq =
		atomic_load_explicit(emu_ring_seq(emu_ring_slot(ring, index)), memory_order_acquire); /* RING-A1 */

	return seq == index - ring->mask || (seq == 0 && index <= ring->mask);
}

uint32_t emu_ring_reap(const struct emu_ring *ring, uint32_t session, size_t flags_at)
{
	uint64_t tail = emu_ring_reclaim(ring, session);
	uint32_t index = atomic_load_explicit(&ring->ctl->head, memory_order_acquire); /* RING-A2 */
	uint32_t reaped = 0;

	if (emu_ring_is_biased(tail))
		return 0; /* every claim is another's */
	for (; before(index, emu_low(tail)); index++) {
		uint16_t flags = EMU_SLOT_DISCARDED;
		unsigned char *slot = emu_ring_slot(ring, index);

		/* Asked again after the log was read: while it is unpublished the log behind it stands. */
		if (!emu_ring_unpublished(ring, index) || owner_of(ring, index, tail) != session ||
		    !emu_ring_unpublished(ring, index))
			continue;
		memcpy(slot + flags_at, &flags, sizeof(flags));
		emu_ring_publish(slot, index);
		reaped++;
	}
	return reaped;
}
