/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_stress.h - the queue of emulator/nic/ring.h under load.
 *
 * Producers, threads or forked processes, put numbered and checksummed messages
 * into a small ring whose index runs over 2^32 on the way; the caller consumes
 * and checks every byte and each producer's order.
 */
#ifndef RING_STRESS_H
#define RING_STRESS_H

#include <stdbool.h>
#include <stdint.h>

enum ring_stress_mode {
	RING_STRESS_THREAD,
	RING_STRESS_THREADS,
	RING_STRESS_PROCESS,
	RING_STRESS_PROCESSES,
	RING_STRESS_KILLED,	    /* processes that get SIGKILL at any moment, and are replaced */
	RING_STRESS_KILLED_THREADS, /* the same, and each runs several threads */
	RING_STRESS_BIASED,	    /* the same as KILLED, with a fresh ring, which one has to himself, for every two */
	RING_STRESS_BIASED_THREADS,
	RING_STRESS_MODES
};

const char *ring_stress_name(enum ring_stress_mode mode);

/*
 * Until `count` messages have come; with RING_STRESS_KILLED until `count` producers
 * have been killed, with RING_STRESS_BIASED in `count` rings.  False: something was
 * wrong, stderr says what.
 */
bool ring_stress(enum ring_stress_mode mode, uint32_t count, uint32_t seed);

#endif /* RING_STRESS_H */
