/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fast.h - small requests towards what has been found before, inline in who
 * posts them.  exec.c does the same in general, and is where all this is
 * explained; what is unusual (another target, a region not seen yet or not open
 * to this process, interrupts) goes there.
 *
 * The cache lines of a message, and which of them travel between cores:
 *
 *   line                          written by               travels
 *   its slot in the MPQ or EQ     the sender               twice a message: to the sender, back to the reader
 *   the slot's second line        the sender               above EMU_MP_NEAR bytes of payload, as the first
 *   memory that a PUT writes      the sender               if the reader has touched it, as a slot
 *   tail, lead, head_seen of it   whoever sends there      only when senders take turns
 *   log of the ring               ditto                    only when sessions take turns
 *   head of the ring              the reader, on his own   once a lap (A2 in ring.h)
 *   state, sleepers of the port   hardly anybody           no: each sender keeps a copy
 *   `fences` of the engine        nobody, mostly           no
 *   the region's table entry      who registers            no: only `valid` of it is read
 *   counters                      each port's owner        no
 *
 * So it is one line, and its two crossings are the latency (RAW2 of glex_perf, not
 * RAW: a line that both sides write crosses once, if it is answered at once).
 *
 *   - The writer must take it from the reader who polls it.  That can begin before
 *     anything is known of the request but its target: emu_ring_want, and after a
 *     message came, `answer` in core/priv.h.  All else a sender does is done
 *     meanwhile and costs nothing.
 *   - The reader must fetch it back.  Each of his polls in between takes the line
 *     from the writer again: who polls in a loop should pause between two polls.
 *   - The claim of a sender that has the ring to itself is a store (bias.h).  That
 *     of one among several is a locked instruction, which waits until everything
 *     stored before has arrived, so it stands before the copy of the data; behind
 *     it, it would wait for the data's line.  In a stream it waits for the slot
 *     before: a stream to a ring of one's own is twice as fast.
 *   - Stores leave for the cache in order, so in a stream each waits for the slot's
 *     line of the message before.  The lines of several messages are on their way at
 *     once as far as the processor's queue of stores reaches (64 here): what counts
 *     is how many stores a message takes, be they to private lines.  With 18 of them
 *     it was 27 M/s between neighbours and 7 between distant cores; with 5, the call
 *     included, it is 54 to 85 and 20.
 *   - Fetching slots further ahead, another order of the slots, demoting the line
 *     (cldemote), direct stores (movdir64b), or polling later win nothing.
 */
#ifndef EMU_FAST_H
#define EMU_FAST_H

#include <string.h>

#include "emulator/nic/exec.h"
#include "emulator/nic/intr.h"

#define EMU_LIKELY(x) __builtin_expect(!!(x), 1)

#define EMU_SHORT 128u /* bytes of a PUT for which a claimed slot may wait */

/*
 * One word, and by a load of its own: two that the caller has just stored one after
 * the other cannot be loaded as one before both have left for the cache.
 */
static inline uint64_t emu_word(const void *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof word);
	__asm__("" : "+r"(word));
	return word;
}

/* emu_copy_here; what is long, ends aligned and does not overlap goes straight to the copier. */
static inline __attribute__((always_inline)) void emu_copy_long(struct emu_host *host, unsigned char *dst,
								const void *src, uint64_t len)
{
	if (!EMU_LIKELY(host->way[0] && len > EMU_SHORT && (((uintptr_t)dst + len) & 7) == 0 &&
			!emu_copy_overlaps(dst, src, len))) {
		emu_copy_here(host, dst, src, len);
		return;
	}
	host->way[emu_copy_way_now(host, len)](dst, src, len);
}

/* emu_copy_here; what an immediate PUT may carry, in aligned words, inline. */
static inline __attribute__((always_inline)) void emu_copy_short(struct emu_host *host, unsigned char *dst,
								 const void *src_, uint64_t len)
{
	const unsigned char *src = (const unsigned char *)src_ + len;
	int64_t at = -(int64_t)len; /* from the end: one counter */
	uint64_t word;

	if (!EMU_LIKELY(len <= EMU_IMM_RDMA_DATA && (((uintptr_t)dst | len) & 7) == 0 && len != 0 &&
			(uintptr_t)dst - (uintptr_t)src_ >= len)) {
		emu_copy_long(host, dst, src_, len);
		return;
	}
	dst += len;
	do {
		memcpy(&word, src + at, 8);
		/* relaxed: stronger; as in emu_copy_ordered, pollers read them with whatever they like */
		__atomic_store_n((uint64_t *)(void *)(dst + at), word, __ATOMIC_RELEASE);
		at += 8;
	} while (at);
}

static inline bool emu_is_open(const struct emu_vport *to)
{
	/* relaxed: a port that closes right after is as if the packet had arrived a little earlier */
	return atomic_load_explicit(&to->port->state, memory_order_relaxed) == EMU_PORT_OPEN;
}

/* A counter that one thread at a time adds to. */
static inline void emu_count(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t v = atomic_load_explicit(counter, memory_order_relaxed); /* relaxed: counter */

	atomic_store_explicit(counter, v + n, memory_order_relaxed); /* relaxed: counter */
}

/*
 * A sleeper adds itself to `sleepers` and then makes every other process order
 * its memory (membarrier) before it looks at the queue a last time; so the
 * plain load below, after the slot was published, cannot miss it.  Where some
 * process has no membarrier, `fences` makes senders pay for the order instead.
 */
static inline void emu_ring_bell(struct emu_host *host, struct emu_port *port)
{
	/* relaxed: see above; fences changes once, before the process that needs it sleeps */
	if (!EMU_LIKELY(!atomic_load_explicit(&host->engine->fences, memory_order_relaxed)))
		atomic_fetch_add_explicit(&port->sleepers, 0, memory_order_seq_cst); /* relaxed: stronger, as a fence */
	if (EMU_LIKELY(atomic_load_explicit(&port->sleepers, memory_order_relaxed) == 0)) /* relaxed: see above */
		return;
	emu_wake(host, port);
}

/* False: emu_ring_bell would do nothing. */
static inline bool emu_bell_rings(const struct emu_host *host, const struct emu_port *port)
{
	return atomic_load_explicit(&host->engine->fences, memory_order_relaxed) || /* relaxed: as in emu_ring_bell */
	       atomic_load_explicit(&port->sleepers, memory_order_relaxed) != 0;    /* relaxed: the same */
}

/* Two words by one store. */
static inline void emu_put_two(void *to, uint64_t first, uint64_t second)
{
	typedef uint64_t __attribute__((vector_size(16), aligned(8), may_alias)) two;

	*(two *)to = (two){first, second};
}

/*
 * Fills and publishes a claimed slot of an MPQ with whole words, one at least, in as
 * few stores as can be.  The first word apart, for it is often a header that has just
 * been stored: a load of more than one store wrote would wait until that has left for
 * the cache, and all that was stored before it.
 */
static inline __attribute__((always_inline)) void emu_fill_mp_words(struct emu_mp_slot *slot, uint32_t index,
								    uint64_t src, const void *data, uint32_t len)
{
	const unsigned char *from = data;
	uint32_t at = 8;

	emu_put_two(&slot->src, src, emu_word(from));
	for (; at + 16 <= len; at += 16)
		memcpy(slot->data + at, from + at, 16);
	if (at < len)
		memcpy(slot->data + at, from + at, 8);
	emu_ring_publish_with(slot, index, 0, (uint16_t)len);
}

/* The same of any length.  A call of memcpy takes longer. */
static inline void emu_fill_mp(struct emu_mp_slot *slot, uint32_t index, uint64_t src, const void *data, uint32_t len)
{
	const unsigned char *from = data;
	uint32_t at = 0;

	slot->src = src;
	for (; at + 8 <= len; at += 8)
		memcpy(slot->data + at, from + at, 8);
	for (; at < len; at++)
		slot->data[at] = from[at];
	emu_ring_publish_with(slot, index, 0, (uint16_t)len);
}

/* Puts an MP into the MPQ of an open port.  As emu_deliver_mp. */
static inline int emu_put_mp(struct emu_host *host, struct emu_vport *to, uint64_t src, const void *data, uint32_t len)
{
	uint32_t index;
	struct emu_mp_slot *slot = emu_ring_claim_as(&to->mpq, host->session, &host->bias, &index);

	if (!EMU_LIKELY(slot))
		return emu_lost(&to->port->mpq, GLEX_ERR_STATUS_DEST_MPQ_FULL);
	if (len % 8 == 0 && len != 0)
		emu_fill_mp_words(slot, index, src, data, len);
	else
		emu_fill_mp(slot, index, src, data, len);
	emu_ring_bell(host, to->port);
	return EMU_OK;
}

/* An event's slot, claimed; NULL: the queue is full. */
struct emu_event_claim {
	struct emu_event_slot *slot;
	uint32_t index;
};

static inline struct emu_event_claim emu_claim_event(struct emu_host *host, struct emu_vport *to)
{
	struct emu_event_claim claim;

	claim.slot = emu_ring_claim_as(&to->eq, host->session, &host->bias, &claim.index);
	return claim;
}

/* Fills and publishes it: no return between the two. */
static inline int emu_raise(struct emu_host *host, struct emu_vport *to, struct emu_event_claim claim,
			    const uint64_t cookie[2])
{
	if (!EMU_LIKELY(claim.slot))
		return emu_lost(&to->port->eq, GLEX_ERR_STATUS_DEST_EQ_FULL);
	emu_put_two(claim.slot->cookie, emu_word(&cookie[0]), emu_word(&cookie[1]));
	emu_ring_publish_with(claim.slot, claim.index, 0, 0);
	emu_ring_bell(host, to->port);
	return EMU_OK;
}

/* Puts an event into the EQ of an open port.  As emu_deliver_event. */
static inline int emu_put_event(struct emu_host *host, struct emu_vport *to, const uint64_t cookie[2])
{
	return emu_raise(host, to, emu_claim_event(host, to), cookie);
}

/* Writes len bytes, and tells `to` by an event where there is one: the data first, whatever becomes of the event. */
static inline __attribute__((always_inline)) int emu_put_data(struct emu_host *host, struct emu_vport *to,
							      unsigned char *dst, const void *src, uint64_t len,
							      const uint64_t cookie[2])
{
	struct emu_event_claim claim;

	if (!to || len > EMU_SHORT) {
		emu_copy_short(host, dst, src, len);
		return to ? emu_put_event(host, to, cookie) : EMU_OK;
	}
	claim = emu_claim_event(host, to);
	emu_copy_short(host, dst, src, len);
	return emu_raise(host, to, claim, cookie);
}

/* Where a region is remembered, for each end of a request apart, or the two would oust each other; NULL: nowhere. */
static inline struct emu_known *emu_known_place(struct emu_host *host, enum emu_end end, uint64_t handle, uint64_t port)
{
	return host->known ? &host->known[end * EMU_KNOWN + (handle ^ port >> 32) % EMU_KNOWN] : NULL;
}

/* The same of one that is reached by attach, at the other end. */
static inline struct emu_away *emu_away_place(struct emu_host *host, uint64_t handle, uint64_t port)
{
	return host->away ? &host->away[(handle ^ port >> 32) % EMU_KNOWN] : NULL;
}

/* The region, if it has been found before, still stands, and reaches that far. */
static inline const struct emu_known *emu_recall(struct emu_host *host, enum emu_end end, uint64_t handle,
						 uint64_t port, uint64_t offset, uint64_t len)
{
	const struct emu_known *known = emu_known_place(host, end, handle, port);

	if (known && known->handle == handle && known->port == port && handle != 0 && offset <= known->len &&
	    len <= known->len - offset && emu_mmt_is_valid(known->nic, handle))
		return known;
	return NULL;
}

/* The poster's own end. */
static inline const struct emu_known *emu_recall_local(struct emu_host *host, uint64_t handle, uint64_t port,
						       uint64_t offset, uint64_t len)
{
	const struct emu_known *known = emu_recall(host, EMU_END_LOCAL, handle, port, offset, len);

	return known && known->session == host->session ? known : NULL;
}

/* The other end, which must allow the access. */
static inline const struct emu_known *emu_recall_remote(struct emu_host *host, uint64_t handle, uint64_t port,
							uint64_t offset, uint64_t len, uint32_t key, uint32_t access)
{
	const struct emu_known *known = emu_recall(host, EMU_END_REMOTE, handle, port, offset, len);

	return known && known->key == key && (known->access & access) ? known : NULL;
}

/* The other end, if it is another process's private memory, still stands, and has no better way by now. */
static inline const struct emu_away *emu_recall_away(struct emu_host *host, uint64_t handle, uint64_t port,
						     uint64_t offset, uint64_t len, uint32_t key, uint32_t access)
{
	const struct emu_away *away = emu_away_place(host, handle, port);

	if (away && away->handle == handle && away->port == port && handle != 0 && away->key == key &&
	    (away->access & access) && offset <= away->len && len <= away->len - offset &&
	    emu_mmt_is_still(away->nic, handle, away->access))
		return away;
	return NULL;
}

#endif /* EMU_FAST_H */
