/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic.c - see atomic.h.
 *
 * The words are the program's: what they order, it knows.  So each operation
 * has the strongest order there is.
 *
 * One cache line travels: the word's, from who operated on it last, once an operation,
 * and the processor waits for it, as the instruction is locked.  Where many operate on
 * one word that is all the time there is.  What is looked at before (the port, the
 * region) is as in fast.h.  The poster looks at nothing else of the target's.
 */
#include "emulator/nic/atomic.h"

#include "emulator/nic/att.h"
#include "emulator/nic/fast.h"

static uint64_t operate_8(_Atomic uint64_t *word, const struct emu_atomic *what)
{
	uint64_t old = what->compare;

	switch (what->op) {
	case EMU_ATOMIC_ADD:
		return atomic_fetch_add_explicit(word, what->operand, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_AND:
		return atomic_fetch_and_explicit(word, what->operand, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_OR:
		return atomic_fetch_or_explicit(word, what->operand, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_XOR:
		return atomic_fetch_xor_explicit(word, what->operand, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_SWAP:
		return atomic_exchange_explicit(word, what->operand, memory_order_seq_cst); /* relaxed: stronger */
	default:
		atomic_compare_exchange_strong_explicit(word, &old, what->operand, memory_order_seq_cst,
							memory_order_seq_cst); /* relaxed: stronger */
		return old;
	}
}

static uint32_t operate_4(_Atomic uint32_t *word, const struct emu_atomic *what)
{
	uint32_t old = (uint32_t)what->compare, v = (uint32_t)what->operand;

	switch (what->op) {
	case EMU_ATOMIC_ADD:
		return atomic_fetch_add_explicit(word, v, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_AND:
		return atomic_fetch_and_explicit(word, v, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_OR:
		return atomic_fetch_or_explicit(word, v, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_XOR:
		return atomic_fetch_xor_explicit(word, v, memory_order_seq_cst); /* relaxed: stronger */
	case EMU_ATOMIC_SWAP:
		return atomic_exchange_explicit(word, v, memory_order_seq_cst); /* relaxed: stronger */
	default:
		atomic_compare_exchange_strong_explicit(word, &old, v, memory_order_seq_cst,
							memory_order_seq_cst); /* relaxed: stronger */
		return old;
	}
}

int emu_exec_atomic(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc,
		    const struct emu_atomic *what, uint64_t *old_p)
{
	unsigned char *word;
	int status = emu_open_word(host, desc, &word);

	if (status != EMU_OK)
		return status;
	if ((uintptr_t)word % desc->len != 0)
		return GLEX_ERR_STATUS_FORMAT;
	if (!EMU_LIKELY(!host->model))
		emu_att_request(host, from, desc, 0, desc->len);
	*old_p = desc->len == 8 ? operate_8((_Atomic uint64_t *)(void *)word, what)
				: operate_4((_Atomic uint32_t *)(void *)word, what);
	return EMU_OK;
}
