/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick.h - finds out by measurement which way of copying suits which length.
 */
#ifndef EMU_PICK_H
#define EMU_PICK_H

#include <sched.h>
#include <stdint.h>

#include "emulator/abi/shm_layout.h"
#include "emulator/nic/copy.h"

/* The looks so far; zeroed before the first. */
struct emu_looks {
	/* At lines of the own cache: the shortest; 0: none yet. */
	uint64_t ns[EMU_COPY_CLASSES][EMU_COPIERS];
	/* At those another processor has used since: the shortest and the next, as one may have met a few that it had not. */
	uint64_t far[EMU_COPY_CLASSES][EMU_COPIERS][2];
};

/*
 * Times every copier that works at a few lengths, for one to two milliseconds, and
 * publishes in the engine's segment the picks that these and the looks before
 * say.  Called some times with pauses it sees past whatever goes on beside it.
 * Where another processor has had the lines that takes a thread which goes from
 * one of cores to another (of none: of those that we may use); where both are busy it waits for its turn there.  Without memory,
 * a thread or another processor for that it leaves out what it cannot do: everything
 * works without.
 */
void emu_pick_copiers(struct emu_looks *looks, const cpu_set_t *cores, struct emu_engine *engine);

#endif /* EMU_PICK_H */
