/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bias.c - taking a ring, taking it away, and what became of a claim meanwhile.  See bias.h.
 */
#include "emulator/nic/bias.h"

/* On failure *tail_p is what it is. */
static bool swap_tail(const struct emu_ring *ring, uint64_t *tail_p, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&ring->ctl->tail, tail_p, to,
						       memory_order_acq_rel,  /* BIAS-R1, BIAS-R2, BIAS-R3 */
						       memory_order_acquire); /* BIAS-A1 */
}

static uint64_t revoked(uint64_t tail)
{
	return tail | emu_pair(EMU_RING_REVOKED, 0);
}

static uint32_t owner_of(uint64_t tail)
{
	return emu_high(tail) & ~(EMU_RING_BIASED | EMU_RING_REVOKED);
}

/*
 * The ring with this tail, revoked, becomes shared behind as many claims as are
 * settled: `claims`, unless somebody was faster.  Returns how many.
 */
static uint64_t settle(const struct emu_ring *ring, uint64_t tail, uint64_t claims)
{
	struct emu_ring_ctl *ctl = ring->ctl;
	uint64_t settled = 0, shared;

	if (atomic_compare_exchange_strong_explicit(&ctl->settled, &settled, claims + 1,
						    memory_order_acq_rel,  /* BIAS-R5 */
						    memory_order_acquire)) /* BIAS-A5 */
		settled = claims + 1;
	claims = settled - 1;
	/* A session in tail says who claimed what lies before: here that is nobody, ever. */
	shared = emu_pair(claims ? owner_of(tail) : EMU_RING_UNUSED, emu_low(claims));
	swap_tail(ring, &tail, shared);
	return claims;
}

/* False: the caller cannot.  True: look at the tail again. */
static bool take_away(const struct emu_ring *ring, uint64_t tail, struct emu_bias *bias)
{
	struct emu_ring_ctl *ctl = ring->ctl;
	uint64_t to = revoked(tail);

	if (tail != to && !swap_tail(ring, &tail, to))
		return true;
	if (!bias->order || !bias->order(bias))
		return false;
	settle(ring, to, atomic_load_explicit(&ctl->lead, memory_order_acquire)); /* BIAS-A4 */
	return true;
}

void *emu_ring_claim_revoked(const struct emu_ring *ring, uint32_t session, uint64_t claims, uint32_t *index_p)
{
	uint64_t tail = emu_ring_tail(ring), counted;

	if (emu_ring_is_biased(tail))
		counted = settle(ring, tail, claims);
	else
		counted = atomic_load_explicit(&ring->ctl->settled, memory_order_acquire) - 1; /* BIAS-A5 */
	if (counted != claims)
		return emu_ring_claim(ring, session, index_p);
	*index_p = emu_low(claims) - 1;
	return emu_ring_slot(ring, *index_p);
}

/* Ours, and it looked full. */
static void *claim_late(const struct emu_ring *ring, uint32_t session, struct emu_bias *bias, uint32_t *index_p)
{
	uint64_t lead =
		atomic_load_explicit(&ring->ctl->lead, memory_order_relaxed); /* relaxed: only its owner writes it */

	return emu_ring_has_room(ring, emu_low(lead)) ? emu_ring_claim_as(ring, session, bias, index_p) : NULL;
}

void *emu_ring_claim_unusual(const struct emu_ring *ring, uint32_t session, struct emu_bias *bias, uint32_t *index_p)
{
	for (;;) {
		uint64_t tail = emu_ring_tail(ring);
		bool fresh = emu_high(tail) == EMU_SESSION_NONE;
		void *slot;

		if (fresh && bias->word && swap_tail(ring, &tail, bias->word))
			return emu_ring_claim_as(ring, session, bias, index_p);
		if (bias->word && tail == bias->word)
			return claim_late(ring, session, bias, index_p);
		if (emu_ring_is_biased(tail)) {
			if (!take_away(ring, tail, bias))
				return NULL;
			continue;
		}
		slot = emu_ring_claim(ring, session, index_p);
		/* Full; or somebody took it just before, which happens once. */
		if (slot || !fresh)
			return slot;
	}
}

uint64_t emu_ring_reclaim(const struct emu_ring *ring, uint32_t session)
{
	uint64_t tail = emu_ring_tail(ring);

	while (emu_ring_is_biased(tail) && owner_of(tail) == session) {
		uint64_t to = revoked(tail);

		if (tail == to || swap_tail(ring, &tail, to))
			settle(ring, to, atomic_load_explicit(&ring->ctl->lead, memory_order_acquire)); /* BIAS-A4 */
		tail = emu_ring_tail(ring);
	}
	return tail;
}
