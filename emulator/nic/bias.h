/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bias.h - the ring of ring.h for a sender that has it to itself: a claim is a
 * store, not a compare-and-swap, which would wait for every store before it.
 *
 * The first who claims takes the ring (`tail` says whose it is) and counts its
 * claims in `lead`.  Whoever else comes takes it away, once and for all; then it
 * is as ring.h says.
 *
 *   tail   {NONE, 0} -> {BIASED|session, id} -> {BIASED|REVOKED|session, id} -> {session, claims}
 *            fresh          the owner's              being taken away              shared
 *
 *   owner   lead = n+1 ........ tail still mine?  then slot n is.  Else: did n+1 count?
 *   other   tail = REVOKED, membarrier, see lead, settle that many, tail = shared
 *
 * The owner does not fence between its store and its load; the other's membarrier
 * does it for him.  So either the other sees n+1, or the owner sees REVOKED.  Both
 * can be so; then `settled` decides, which is written once, by whoever is first,
 * and both go by it.  Nobody waits for anybody: an owner that was stopped or
 * killed between the two has claimed n or has not, and if it has, n is reaped as
 * any slot of the dead.
 *
 * I1  lead is written by the owner only, and only while it may believe that tail is its own.
 * I2  of what the owner claimed after the membarrier nothing counts unless settled says so.
 * I3  a ring is fresh, then perhaps biased, then shared, and never anything before again.
 *
 * Why never again, even if one sender is left: an owner that was stopped between its
 * look at tail and its store of lead stores whenever it goes on, and nobody can tell
 * that it is there: a membarrier orders its memory, it does not end what it has begun.
 * So lead and settled serve one owner only.  A ring that could be biased again would
 * need a lead and a settled for each time, and a tail that says which.
 *
 * at once     owner: one thread at a time | others, each of them: any thread of any process |
 *             reclaim: glexd, at any time after the owner's death
 * label       access                        order     pairs     says
 * BIAS-R1     tail = the owner's, by CAS    acq_rel   BIAS-A1   nobody has claimed
 * BIAS-R2     tail = revoked, by CAS        acq_rel   BIAS-A1   look at settled
 * BIAS-R3     tail = shared, by CAS         acq_rel   BIAS-A1   settled stands; so it is a RING-R5, too
 * BIAS-A1     load tail                     acquire   BIAS-R1 BIAS-R2 BIAS-R3
 * BIAS-R4     owner lead = n+1              release   BIAS-A4   n is claimed, if the owner then sees tail unchanged
 * BIAS-A4     other load lead               acquire   BIAS-R4   after the membarrier: all that can count is in it
 * BIAS-R5     settled, by CAS from 0        acq_rel   BIAS-A5   the owner's claims that count
 * BIAS-A5     load settled                  acquire   BIAS-R5   they do
 * progress    the owner is wait-free, the others are lock-free but for the membarrier
 */
#ifndef EMU_BIAS_H
#define EMU_BIAS_H

#include "emulator/nic/ring.h"

#define EMU_RING_REVOKED 0x40000000u
#define EMU_RING_UNUSED	 0x3fffffffu /* as session: shared now, and the owner never claimed */

static_assert(EMU_SESSION_MAX < EMU_RING_UNUSED, "no session looks like one of the marks");

/* How one sender claims.  All zero: it never takes a ring, nor can it take one away. */
struct emu_bias {
	uint64_t word; /* what `tail` of a ring of its own says; 0: it takes none */
	/* Makes every process that may own a ring order its memory.  False: that could not be done. */
	bool (*order)(struct emu_bias *bias);
};

/* The word of sender `id` of a session, which must not be two senders' at a time. */
static inline uint64_t emu_bias_word(uint32_t session, uint32_t id)
{
	return emu_pair(EMU_RING_BIASED | session, id);
}

/* Everything but the usual case. */
void *emu_ring_claim_unusual(const struct emu_ring *ring, uint32_t session, struct emu_bias *bias, uint32_t *index_p);

/* The owner has claimed `claims` - 1, and then seen that the ring is not its own any more. */
void *emu_ring_claim_revoked(const struct emu_ring *ring, uint32_t session, uint64_t claims, uint32_t *index_p);

static inline uint64_t emu_ring_tail(const struct emu_ring *ring)
{
	return atomic_load_explicit(&ring->ctl->tail, memory_order_acquire); /* BIAS-A1 */
}

/* True if the ring is its own and has room for what it claims next: *lead_p, an index that may be over 2^32. */
static inline bool emu_ring_is_own(const struct emu_ring *ring, const struct emu_bias *bias, uint64_t *lead_p)
{
	struct emu_ring_ctl *ctl = ring->ctl;
	uint32_t seen = atomic_load_explicit(&ctl->head_seen, memory_order_acquire); /* RING-A3 */

	*lead_p = atomic_load_explicit(&ctl->lead, memory_order_relaxed); /* relaxed: only its owner writes it */
	return bias->word && emu_ring_tail(ring) == bias->word && emu_low(*lead_p) - seen <= ring->mask;
}

/* Claims that.  False: it may not count, ask emu_ring_claim_revoked with lead + 1. */
static inline bool emu_ring_claim_own(const struct emu_ring *ring, const struct emu_bias *bias, uint64_t lead)
{
	atomic_store_explicit(&ring->ctl->lead, lead + 1, memory_order_release); /* BIAS-R4 */
	__asm__ __volatile__("" : : : "memory"); /* what the processor does membarrier sees to */
	return emu_ring_tail(ring) == bias->word;
}

/*
 * As emu_ring_claim.  NULL also where a ring could not be taken away: this process has no
 * membarrier and glexd, which has, does not answer.  The sender is told of a full queue then,
 * and by the next call that the device is lost.
 */
static inline void *emu_ring_claim_as(const struct emu_ring *ring, uint32_t session, struct emu_bias *bias,
				      uint32_t *index_p)
{
	uint64_t lead;

	if (!emu_ring_is_own(ring, bias, &lead))
		return emu_ring_claim_unusual(ring, session, bias, index_p);
	if (!emu_ring_claim_own(ring, bias, lead))
		return emu_ring_claim_revoked(ring, session, lead + 1, index_p);
	*index_p = emu_low(lead);
	return emu_ring_slot(ring, *index_p);
}

/*
 * Takes the ring away from a session whose processes are gone, if it had it; no
 * membarrier is needed for that.  Returns the tail.
 */
uint64_t emu_ring_reclaim(const struct emu_ring *ring, uint32_t session);

#endif /* EMU_BIAS_H */
