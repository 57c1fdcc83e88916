/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick.h - finds out by measurement which way of copying suits which length.
 */
#ifndef EMU_PICK_H
#define EMU_PICK_H

#include <stdint.h>

#include "emulator/abi/shm_layout.h"
#include "emulator/nic/copy.h"

/* The shortest look at each copier and class so far; zeroed before the first. */
struct emu_looks {
	uint64_t ns[EMU_COPY_CLASSES][EMU_COPIERS]; /* 0: none yet */
};

/*
 * Times every copier that works at a few lengths, for about a millisecond, and
 * publishes in the engine's segment the picks that these and the looks before
 * say.  Called some times with pauses it sees past whatever goes on beside it.
 * Without memory for that it leaves the picks as they are: everything works
 * without.
 */
void emu_pick_copiers(struct emu_looks *looks, struct emu_engine *engine);

#endif /* EMU_PICK_H */
