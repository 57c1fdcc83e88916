/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - the queue behind MPQ, EQ and error queue: many producers, in as many
 * processes, and one consumer; bounded, in shared memory, safe against a
 * producer killed at any instruction.
 *
 *        head                         tail
 *         v                            v
 *   | 4 | 5 | 6 | 7 | ... | 11 | 12 |     n: index, runs freely over 2^32
 *     ^   ^   ^     ^                     slot of index n: n & mask
 *     |   |   |     claimed, not yet published (seq is of the lap before)
 *     |   published: seq == n + 1
 *     consumed
 *
 * I1  head <= tail <= head + capacity.
 * I2  a slot in [head, tail) belongs to the process that claimed it until it is
 *     published, then to the consumer.  No return between claim and publish.
 * I3  who claimed an unpublished index n can always be told: the session in
 *     tail says who made the last claim, and whoever claims behind another
 *     session first writes into log[(n-1) & mask] whose n-1 was.  So a run of
 *     claims by one session needs no log entry at all (one sender pays
 *     nothing), and the owner of n is the first valid log entry at or after n,
 *     else the session in tail.
 *
 * Claims of one sender alone need no locked instruction either: bias.h.  A ring
 * is claimed in one of the two ways, always.
 *
 * at once     claim/publish: any thread of any process | peek/release: one thread at a
 *             time | both sides together: yes | reap: glexd, at any time
 * label       access                       order     pairs     says
 * RING-R1     producer slot.seq = n+1      release   RING-A1   the slot's body is complete
 * RING-A1     consumer load slot.seq       acquire   RING-R1   the body may be read
 * RING-R2     consumer head = n+1          release   RING-A2   the body has been read; the slot may be reused
 * RING-A2     producer load head           acquire   RING-R2   the slot may be written
 * RING-R3     producer head_seen = head    release   RING-A3   hands on what A2 learnt
 * RING-A3     producer load head_seen      acquire   RING-R3   as A2, without touching the consumer's line
 * RING-R4     claim log[n-1] by CAS        release   RING-A4   the session that claimed n-1
 * RING-A4     load of log                  acquire   RING-R4   the entry is whole (one word)
 * RING-R5     claim tail by CAS            release   RING-A5   log entries of earlier sessions are written
 * RING-A5     load of tail                 acquire   RING-R5   the log may be trusted up to this index
 * crash       a producer dies between claim and R1: the consumer sees an empty queue until
 *             glexd, told by the socket's EOF, publishes the slot as discarded | the consumer
 *             dies: the ring fills, producers get full, glexd closes the port
 * progress    claim is lock-free, publish, peek and release are wait-free; linearisation
 *             points R5 and R2
 * A reader of a single word that tolerates staleness is marked "relaxed:" with the reason.
 */
#ifndef EMU_RING_H
#define EMU_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emulator/abi/shm_layout.h"

/* A process's view of a ring: pointers into its own mapping. */
struct emu_ring {
	struct emu_ring_ctl *ctl;
	_Atomic uint64_t *log; /* {index : 32, session : 32}, one per slot */
	unsigned char *slots;  /* each begins with its seq */
	uint32_t mask;
	uint32_t shift; /* log2 of the slot size */
};

static inline uint64_t emu_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static inline uint32_t emu_high(uint64_t pair)
{
	return (uint32_t)(pair >> 32);
}

static inline uint32_t emu_low(uint64_t pair)
{
	return (uint32_t)pair;
}

static inline void *emu_ring_slot(const struct emu_ring *ring, uint32_t index)
{
	return ring->slots + ((size_t)(index & ring->mask) << ring->shift);
}

static inline _Atomic uint32_t *emu_ring_seq(void *slot)
{
	return slot;
}

/* Asks for a line that is going to be written.  Only a hint, harmless for any address. */
static inline void emu_want_line(const void *line)
{
#if defined(__x86_64__)
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const unsigned char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

#define EMU_RING_BIASED 0x80000000u /* in the session of tail: one sender has the ring to itself, see bias.h */

static inline bool emu_ring_is_biased(uint64_t tail)
{
	return tail >> 63;
}

/* The index that a claim would get now: a guess. */
static inline uint32_t emu_ring_end(const struct emu_ring_ctl *ctl)
{
	uint64_t tail = atomic_load_explicit(&ctl->tail, memory_order_relaxed); /* relaxed: a guess */

	if (emu_ring_is_biased(tail))
		tail = atomic_load_explicit(&ctl->lead, memory_order_relaxed); /* relaxed: a guess */
	return emu_low(tail);
}

static inline unsigned char *emu_ring_next(const struct emu_ring *ring)
{
	return emu_ring_slot(ring, emu_ring_end(ring->ctl));
}

/*
 * Asks for the line of that slot, and, if both, for the one behind it: the
 * consumer has them, and taking them away lasts as long as everything else a
 * sender does.
 */
static inline void emu_ring_want(const struct emu_ring *ring, bool both)
{
	unsigned char *slot = emu_ring_next(ring);

	emu_want_line(slot);
	if (both)
		emu_want_line(slot + 64);
}

/* True if index can be claimed, as far as the consumer has told by now. */
bool emu_ring_has_room(const struct emu_ring *ring, uint32_t index);

/*
 * Claims the next slot for session.  NULL: full, or biased.  The caller fills it and
 * must publish it.
 */
void *emu_ring_claim_contended(const struct emu_ring *ring, uint32_t session, uint32_t *index_p);

static inline void *emu_ring_claim(const struct emu_ring *ring, uint32_t session, uint32_t *index_p)
{
	struct emu_ring_ctl *ctl = ring->ctl;
	uint64_t tail = atomic_load_explicit(&ctl->tail, memory_order_acquire);	     /* RING-A5 */
	uint32_t seen = atomic_load_explicit(&ctl->head_seen, memory_order_acquire); /* RING-A3 */
	uint32_t index = emu_low(tail);

	/* The usual case: the last claim was ours too, and there is room for all we know. */
	if (emu_high(tail) == session && index - seen <= ring->mask &&
	    atomic_compare_exchange_strong_explicit(&ctl->tail, &tail, emu_pair(session, index + 1),
						    memory_order_release, memory_order_relaxed)) { /* RING-R5 */
		*index_p = index;
		return emu_ring_slot(ring, index);
	}
	return emu_ring_claim_contended(ring, session, index_p);
}

static inline void emu_ring_publish(void *slot, uint32_t index)
{
	atomic_store_explicit(emu_ring_seq(slot), index + 1, memory_order_release); /* RING-R1 */
}

typedef uint64_t __attribute__((may_alias)) emu_ring_word;

/* The same of a slot in which flags and 16 bits more follow seq: all three by one store, see fast.h. */
static inline void emu_ring_publish_with(void *slot, uint32_t index, uint16_t flags, uint16_t more)
{
	const struct {
		uint32_t seq;
		uint16_t flags, more;
	} head = {index + 1, flags, more};
	uint64_t word;

	memcpy(&word, &head, sizeof word);
	__atomic_store_n((emu_ring_word *)slot, word, __ATOMIC_RELEASE); /* RING-R1 */
}

/* The slot of index if it has been published, else NULL. */
static inline void *emu_ring_peek(const struct emu_ring *ring, uint32_t index)
{
	void *slot = emu_ring_slot(ring, index);

	return atomic_load_explicit(emu_ring_seq(slot), memory_order_acquire) == index + 1 ? slot : NULL; /* RING-A1 */
}

/* Gives all slots before index back to the producers. */
static inline void emu_ring_release(const struct emu_ring *ring, uint32_t index)
{
	atomic_store_explicit(&ring->ctl->head, index, memory_order_release); /* RING-R2 */
}

/* False: nobody has claimed index yet. */
static inline bool emu_ring_claimed(const struct emu_ring *ring, uint32_t index)
{
	return (int32_t)(index - emu_ring_end(ring->ctl)) < 0;
}

/* True while index, which has been claimed, is not published: its slot still shows the lap before. */
bool emu_ring_unpublished(const struct emu_ring *ring, uint32_t index);

/*
 * Publishes every slot that a dead session claimed and left, marking it with
 * flags_at (offset of the slot's uint16_t flags).  Returns how many.
 * Only glexd calls it, after it has learnt that the session's processes are gone.
 */
uint32_t emu_ring_reap(const struct emu_ring *ring, uint32_t session, size_t flags_at);

#endif /* EMU_RING_H */
