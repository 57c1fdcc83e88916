/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dma_shuffle.c - the DMA engine with GLEX_REORDER: executes what is in a port's
 * queue in the order of emulator/nic/reorder.h.
 *
 * It waits GLEX_REORDER_HOLD for requests that might overtake, and is the only one
 * who has to do anything about the rest.  Labels: see dma.c.
 */
#include "cfg/cfg.h"
#include "emulator/glexd/dma.h"
#include "emulator/host/clock.h"
#include "emulator/nic/exec.h"

/* Nothing new has come for so long that what is there need not wait for it. */
static bool is_overdue(struct port *port, uint32_t tail)
{
	uint64_t now = emu_now_ns();

	if (tail != port->seen) {
		port->seen = tail;
		port->moving = now;
	}
	return now - port->moving >= glexi_cfg()->reorder_hold_us * 1000;
}

/* What was chosen: its data with or without its events, or those alone.  True: its events come later. */
static bool step_chosen(struct glexd *glexd, struct port *port, const struct emu_desc *desc, uint64_t quantum,
			enum dma_outcome *outcome_p, uint64_t *cost_p)
{
	int status;

	if (!emu_reorder_has_data(&port->reorder)) {
		*outcome_p = dma_step(&glexd->host, port, desc, quantum, true, cost_p);
		return *outcome_p == DMA_MOVED;
	}
	status = emu_exec_finish(&glexd->host, &port->view, desc);
	if (status != EMU_OK)
		emu_report(&glexd->host, &port->view, desc, status);
	*outcome_p = DMA_ENDED;
	*cost_p = DMA_SMALL_COST;
	return false;
}

bool dma_serve_shuffled(struct glexd *glexd, struct port *port)
{
	struct emu_ring_ctl *ctl = &port->view.port->dq;
	uint64_t quantum = glexi_cfg()->dma_chunk, spent = 0, cost;
	uint32_t head =
		atomic_load_explicit(&ctl->head, memory_order_relaxed); /* relaxed: only this thread writes it */
	uint32_t tail = emu_low(atomic_load_explicit(&ctl->tail, memory_order_acquire)); /* DQ-A1 */
	bool overdue = is_overdue(port, tail);

	glexd->host.by = &port->view.port->counters;
	while (spent < quantum && emu_reorder_next(&port->reorder, &port->view, head, tail, overdue)) {
		struct emu_desc desc = port->view.dq[(head + port->reorder.at) & port->view.dq_mask];
		enum dma_outcome outcome;
		bool events_left = step_chosen(glexd, port, &desc, quantum, &outcome, &cost);

		glexd->steps++;
		spent += cost;
		if (outcome == DMA_MORE)
			continue;
		head += emu_reorder_end(&port->reorder, events_left);
		atomic_store_explicit(&ctl->head, head, memory_order_release); /* DQ-R2 */
	}
	return head != tail;
}
