/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic.h - operations on one word of a region, atomic for all who use it: the
 * processor's own, on the very page that the owner and every other peer have.
 *
 * So the region must lie open to this process; one that was registered for
 * EMU_ACCESS_ATOMIC does.  There is no descriptor of it: whoever asks turns the
 * crank, and has the answer at once.
 */
#ifndef EMU_ATOMIC_H
#define EMU_ATOMIC_H

#include "emulator/nic/exec.h"

enum emu_atomic_op {
	EMU_ATOMIC_ADD,
	EMU_ATOMIC_AND,
	EMU_ATOMIC_OR,
	EMU_ATOMIC_XOR,
	EMU_ATOMIC_SWAP,
	EMU_ATOMIC_CAS, /* the operand, if the word is equal to compare */
	EMU_ATOMIC_OPS
};

struct emu_atomic {
	enum emu_atomic_op op;
	uint64_t operand; /* of 4 bytes: the low half */
	uint64_t compare;
};

/*
 * Checks as emu_exec does and operates on the desc->len bytes, 4 or 8, that desc
 * names.  EMU_OK, and *old_p is the word before; else nothing has happened, and
 * the caller reports it with emu_report.
 */
int emu_exec_atomic(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc,
		    const struct emu_atomic *what, uint64_t *old_p);

#endif /* EMU_ATOMIC_H */
