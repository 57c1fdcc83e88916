/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reduce.h - what operands come to.
 *
 * The result does not depend on the order in which they came: they are combined
 * by the place that they name (a group's: the member's number, so that it is the same on whatever
 * endpoints), then by the address of their sender, the lowest first, those of one sender in the
 * order sent.  Integer sums wrap.  MAXLOC and MINLOC keep the location of the
 * winner, the lowest where several are equal; any number wins against a NaN.
 * Elsewhere the location of the result is 0.  Floats are combined with the usual rounding and
 * without traps, whatever the process that happens to execute has set (on x86-64).
 */
#ifndef EMU_REDUCE_H
#define EMU_REDUCE_H

#include <stdbool.h>

#include "emulator/abi/shm_layout.h"

/* True if a payload of len bytes is an operand. */
bool emu_is_operand(const void *data, uint32_t len);

/* The payload's length. */
static inline uint32_t emu_operand_len(const struct emu_operand *operand)
{
	return EMU_OPERAND_HEAD + operand->count * (uint32_t)sizeof(operand->unit[0]);
}

/* acc = acc (+) with, unit by unit.  False: another operation, width or number of units; acc is as it was. */
bool emu_reduce(struct emu_operand *acc, const struct emu_operand *with);

/*
 * All of own, which src sent, and n kept ones into *result.  False: they do not
 * fit together.  n is up to EMU_OPERANDS.
 */
bool emu_reduce_all(struct emu_operand *result, const void *own, uint32_t own_len, uint64_t src,
		    const struct emu_coll_kept *kept, uint32_t n);

#endif /* EMU_REDUCE_H */
