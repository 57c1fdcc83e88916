/* SPDX-License-Identifier: BSD-2-Clause */
/* crowd.h - whether the processes of a job have a core each: what spinning depends on. */
#ifndef EMU_CROWD_H
#define EMU_CROWD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * True where whoever spins may keep off its core the very process it waits for:
 * more processes than cores that any of them may use, or one core.  cores 0: not
 * known.
 */
static inline bool emu_is_crowded(uint32_t cores, uint32_t processes)
{
	return cores == 1 || (cores != 0 && processes > cores);
}

#endif /* EMU_CROWD_H */
