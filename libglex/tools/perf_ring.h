/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_ring.h - RING: one-way time of a record of 8 bytes through the least queue
 * there can be: one producer, slots of one line with header, data and sequence
 * number in it, nothing checked, nothing counted, no library.  Polled with a
 * breath between two looks, and the answer's line asked for as soon as something
 * came, as GLEX does it.
 *
 * RAW is no floor for a queue: both sides write its one line, which crosses once a
 * message.  A slot crosses twice, to the sender and back.
 */
#ifndef PERF_RING_H
#define PERF_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#define PERF_RING_SLOTS 64

/* One way; zero at first. */
struct perf_ring {
	struct {
		alignas(64) _Atomic uint32_t seq;
		uint32_t len;
		uint64_t src;
		uint64_t data[6];
	} slot[PERF_RING_SLOTS];
	alignas(128) _Atomic uint32_t head; /* the consumer's */
	alignas(128) uint32_t next[2];	    /* where its consumer, its producer goes on */
};

/* As perf_raw_bounce; ring[k]: towards side k.  Side 1 gets 0, or -1. */
double perf_ring_bounce(struct perf_ring ring[2], int side, uint32_t limit_ms);

#endif /* PERF_RING_H */
