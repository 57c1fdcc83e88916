/* SPDX-License-Identifier: BSD-2-Clause */
/* unit.h - what unit tests share: running a suite, waiting for a condition, a ring in plain memory. */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulator/nic/ring.h"
#include "test/lib/suite.h"

#define UNIT_PATIENCE_NS INT64_C(100000000000)

static inline int64_t unit_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* For inner loops: ck_assert() writes to a file each time, this only when it fails. */
#define UNIT_CHECK(condition)                                                                                          \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			ck_abort_msg("%s", #condition);                                                                \
	} while (0)

/* Waits until the condition holds; fails the test when it never does. */
#define UNIT_WAIT(condition)                                                                                           \
	do {                                                                                                           \
		int64_t unit_deadline = unit_now_ns() + UNIT_PATIENCE_NS;                                              \
		while (!(condition)) {                                                                                 \
			if (unit_now_ns() >= unit_deadline)                                                            \
				ck_abort_msg("never: %s", #condition);                                                 \
			sched_yield();                                                                                 \
		}                                                                                                      \
	} while (0)

/* A small generator, so that a seed gives the same run on every machine. */
static inline uint32_t unit_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static inline bool unit_is_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static inline void *unit_zeroed(size_t size)
{
	void *mem = aligned_alloc(EMU_LINE, (size + EMU_LINE - 1) / EMU_LINE * EMU_LINE);

	ck_assert_ptr_nonnull(mem);
	memset(mem, 0, size);
	return mem;
}

/* Bytes of memory for a ring. */
static inline size_t unit_ring_size(uint32_t capacity, uint32_t shift)
{
	return sizeof(struct emu_ring_ctl) + capacity * sizeof(uint64_t) + ((size_t)capacity << shift);
}

/*
 * An empty ring in zeroed memory whose next index is `first`, as if all indices
 * before had been claimed, published and given back.
 */
static inline void unit_ring_init(struct emu_ring *ring, void *mem, uint32_t capacity, uint32_t shift, uint32_t first)
{
	ring->ctl = mem;
	ring->slots = (unsigned char *)mem + sizeof(struct emu_ring_ctl);
	ring->log = (_Atomic uint64_t *)(void *)(ring->slots + ((size_t)capacity << shift));
	ring->mask = capacity - 1;
	ring->shift = shift;
	atomic_init(&ring->ctl->tail, emu_pair(EMU_SESSION_NONE, first));
	atomic_init(&ring->ctl->head, first);
	atomic_init(&ring->ctl->head_seen, first);
	if (first == 0)
		return;
	for (uint32_t i = 0; i < capacity; i++)
		atomic_init(emu_ring_seq(emu_ring_slot(ring, first + i)), first + i - capacity + 1);
}

/* A backend's, which has nothing to see to. */
struct glexi_device;
static inline void unit_tend(struct glexi_device *device)
{
	(void)device;
}

#endif /* UNIT_H */
