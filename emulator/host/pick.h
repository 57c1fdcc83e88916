/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick.h - finds out by measurement which way of copying suits which length.
 */
#ifndef EMU_PICK_H
#define EMU_PICK_H

#include "emulator/abi/shm_layout.h"

/*
 * Times every copier that works at a few lengths, for some milliseconds, and
 * publishes the picks in the engine's segment.  Without memory for that it
 * leaves them as they are: everything works without picks.
 */
void emu_pick_copiers(struct emu_engine *engine);

#endif /* EMU_PICK_H */
