/* SPDX-License-Identifier: BSD-2-Clause */
/* bell.h - telling the DMA engine that a port has something for it.  Labels: emulator/glexd/dma.c. */
#ifndef EMU_BELL_H
#define EMU_BELL_H

#include "emulator/host/futex.h"
#include "emulator/nic/vport.h"

static inline void emu_dma_ring(struct emu_engine *engine, struct emu_nic *nic, uint32_t ep_num)
{
	atomic_fetch_or_explicit(&nic->dma_pending, emu_dma_bit(ep_num), memory_order_seq_cst); /* DQ-R3 */
	if (!atomic_load_explicit(&engine->asleep, memory_order_seq_cst))			/* DQ-A4 */
		return;
	atomic_fetch_add_explicit(&engine->bell, 1, memory_order_relaxed); /* relaxed: the kernel compares it */
	emu_futex_wake(&engine->bell);
}

#endif /* EMU_BELL_H */
