/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec.h - what one NIC does with one descriptor.
 *
 * No globals, no threads, no system calls of its own: everything outside comes
 * through struct emu_host.  Linked into libglex (the poster turns the crank) and
 * into glexd (its DMA engine does).  A caller serialises the requests of one
 * sending port; requests of different ports may be executed at once.
 */
#ifndef EMU_EXEC_H
#define EMU_EXEC_H

#include <glex.h>

#include "emulator/nic/move.h"

#define EMU_OK	(-1) /* else an enum glex_err_req_status */
#define EMU_NOW (-2) /* of ops->hold alone */

#define EMU_OP_ATOMIC 16u /* beside enum emu_op: of a request that is never queued (atomic.h) */

/* What a region must have been registered for. */
static inline uint32_t emu_access_of(uint32_t op)
{
	return op == EMU_OP_GET ? GLEX_MEM_READ : op == EMU_OP_ATOMIC ? EMU_ACCESS_ATOMIC : GLEX_MEM_WRITE;
}

/* Puts an MP into the target's MPQ.  Returns EMU_OK or the status for the sender. */
int emu_deliver_mp(struct emu_host *host, struct emu_vport *to, uint64_t src, const void *data, uint32_t len);

/* Puts an event into a port's EQ. */
int emu_deliver_event(struct emu_host *host, struct emu_vport *to, const uint64_t cookie[2]);

/* Counts an arrival that found ctl's queue full, and returns status. */
int emu_lost(struct emu_ring_ctl *ctl, int status);

/*
 * Executes a descriptor posted on `from`: checks, moves, raises events.  imm is
 * the immediate data of an MP or immediate PUT.  Returns EMU_OK or what went
 * wrong; then nothing was raised at either side (but DEST_EQ_FULL: the data is
 * in place) and the caller reports it with emu_report.
 */
int emu_exec(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, const void *imm);

/*
 * One piece of a PUT or GET, for an engine that must not stay with one request
 * too long: moves [done, done+n) after the same checks.  emu_exec_finish then
 * raises the events.
 */
int emu_exec_move(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, uint64_t done,
		  uint64_t n);
int emu_exec_finish(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc);

/* What a move that ended so means for its request. */
int emu_status_of(enum emu_reach reach);

/* The data of an immediate PUT; emu_exec_finish then raises the event. */
int emu_exec_imm(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, const void *imm);

/* The data of a GET into plain memory of the caller; emu_exec_finish then raises the event. */
int emu_exec_fetch(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, void *here);

/* Checks a handle for an access at a port's side.  EMU_OK and *region, or ATT or MMT. */
int emu_check_region(struct emu_nic *nic, uint64_t handle, uint32_t ep_num, uint64_t offset, uint64_t len,
		     struct emu_region *region);

/* Checks an atomic operation; *word_p becomes where its word is here.  For atomic.c. */
int emu_open_word(struct emu_host *host, const struct emu_desc *desc, unsigned char **word_p);

/* Tells the sending port that a request came to nothing. */
void emu_report(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, int status);

#endif /* EMU_EXEC_H */
