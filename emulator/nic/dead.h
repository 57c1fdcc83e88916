/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dead.h - who has died: a list in the engine's segment that anybody reads and glexd alone writes.
 *
 *      deaths   how many there were; number n is dead[n % EMU_DEAD_KEPT]
 *
 * Looking whether there is a new one takes one load of a line that hardly ever changes.
 * Who is EMU_DEAD_KEPT behind has missed the oldest here, and asks glexd, which has them all (glexd/dead.c).
 *
 * label     access                       order     pairs     says
 * DEAD-R1   glexd   deaths = n + 1       release   DEAD-A1   number n is written
 * DEAD-A1   reader  deaths               acquire   DEAD-R1   so number n may be read
 * DEAD-R2   glexd   dead[n % KEPT] = a   release   DEAD-A2   deaths says n at least,
 * DEAD-A2   reader  dead[m % KEPT]       acquire   DEAD-R2   and if that is m + KEPT, a may not be number m
 * at once   note: glexd, under its lock | read: any thread of any process
 * crash     glexd's: what is not counted is not read
 * progress  wait-free
 */
#ifndef EMU_DEAD_H
#define EMU_DEAD_H

#include <stdbool.h>

#include "emulator/abi/shm_layout.h"

/* How many endpoints have died so far: the number of the next one. */
static inline uint64_t emu_dead_count(const struct emu_engine *engine)
{
	return atomic_load_explicit(&engine->deaths, memory_order_acquire); /* DEAD-A1 */
}

static inline void emu_dead_note(struct emu_engine *engine, uint64_t addr)
{
	uint64_t n = emu_dead_count(engine);

	atomic_store_explicit(&engine->dead[n % EMU_DEAD_KEPT], addr, memory_order_release); /* DEAD-R2 */
	atomic_store_explicit(&engine->deaths, n + 1, memory_order_release);		     /* DEAD-R1 */
}

/* The first from number *n_p on that can still be read: its address, and *n_p its number.  False: there is none yet. */
static inline bool emu_dead_read(const struct emu_engine *engine, uint64_t *n_p, uint64_t *addr_p)
{
	uint64_t count, addr, n = *n_p;

	while (n < (count = emu_dead_count(engine))) {
		if (count - n < EMU_DEAD_KEPT) {
			addr = atomic_load_explicit(&engine->dead[n % EMU_DEAD_KEPT],
						    memory_order_acquire); /* DEAD-A2 */
			if (emu_dead_count(engine) - n < EMU_DEAD_KEPT) {
				*addr_p = addr;
				*n_p = n;
				return true;
			}
		}
		n = emu_dead_count(engine) - EMU_DEAD_KEPT + 1;
	}
	return false;
}

#endif /* EMU_DEAD_H */
