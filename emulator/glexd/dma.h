/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dma.h - what the two ways of serving a port's queue have in common: in order
 * (dma.c) and out of order on purpose (dma_shuffle.c).
 */
#ifndef GLEXD_DMA_H
#define GLEXD_DMA_H

#include "emulator/glexd/glexd.h"

#define DMA_SMALL_COST 4096u /* what a request counts at least, so that a quantum of tiny ones ends too */

enum dma_outcome {
	DMA_MORE,  /* of it is left to move */
	DMA_MOVED, /* its events come later */
	DMA_ENDED
};

/* Executes desc, or its next piece; all but its events, if they come later.  *cost_p: bytes it took. */
enum dma_outcome dma_step(struct emu_host *host, struct port *port, const struct emu_desc *desc, uint64_t quantum,
			  bool later, uint64_t *cost_p);

/* One quantum for a port whose requests are put out of order.  True: it has more. */
bool dma_serve_shuffled(struct glexd *glexd, struct port *port);

#endif /* GLEXD_DMA_H */
