/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * intr.h - what a port is told beside its MPs and events: interrupts (INTQ), bad
 * packets (EPQ), and waking whoever waits for any of it.
 *
 * Who waits sleeps on the futex of the port, or polls a descriptor.  That is
 * made readable by an interrupt at any time, and by an MP or event when it has
 * been armed: bits in the word `sleepers`, which every sender looks at anyway.
 * Arming is for one time; a spurious wake-up may happen, a missed one may not:
 *
 *   who waits                          who sends
 *   arms                               publishes the slot
 *   membarrier                         sleepers != 0?  (a plain load)
 *   looks at the queue once more         makes the descriptor readable,
 *   polls the descriptor                 then disarms, if it is still the same arming
 *
 * Of load and look one sees the other's store, as with sleepers on the futex
 * (emu_ring_bell; test/model/arm.pml).  A sender that dies before it has disarmed leaves it armed;
 * one that dies before it has woken anybody is made up for by glexd.
 *
 * label     access                         order     pairs     says
 * INTR-R1   sender  intr += 0              acq_rel   INTR-A1   the interrupt is in the INTQ
 * INTR-A1   glexd   intr = 1               acq_rel   INTR-R1   so the owner finds it there, or the sender sees 1
 * ARM-R1    owner   sleepers, arm part     seq_cst   ARM-A1    before it looks at the queue
 * ARM-A1    sender  sleepers, disarms      acq_rel   ARM-R1    only the arming that was answered ends
 * crash     see above
 * progress  raising is that of the ring; waking is lock-free
 */
#ifndef EMU_INTR_H
#define EMU_INTR_H

#include "emulator/nic/move.h"

#define EMU_INTR_FLAGS 3u /* GLEX_FLAG_LOCAL_INTR | GLEX_FLAG_REMOTE_INTR */

/* glex_ep_addr_t.v of a port. */
uint64_t emu_addr_of(const struct emu_port *port);

/* enum glex_err_req_op of an enum emu_op. */
uint32_t emu_err_op(uint32_t op);

/* Wakes who sleeps on the port, answers its arming.  Called when `sleepers` is not 0. */
void emu_wake(struct emu_host *host, struct emu_port *port);

/* Raises an interrupt at the port; peer: the other endpoint's address. */
void emu_interrupt(struct emu_host *host, struct emu_vport *to, uint32_t cause, uint64_t peer);

/* Raises the interrupts that the flags of a request ask for; it is complete. */
void emu_interrupts(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc);

/*
 * Tells the target why it would not have a request, if it was the target that
 * would not: finds the cause out anew, and says nothing if there is none any more.
 */
void emu_record_bad(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, int status);

/* (Un)arms the port's descriptor for EMU_ARM_*; turn: another number each time.  The caller then orders memory. */
void emu_arm(struct emu_port *port, uint64_t what, uint64_t turn);

/* Whatever senders left undone that died: wakes all who wait on the port. */
void emu_wake_after_death(struct emu_host *host, struct emu_vport *to);

#endif /* EMU_INTR_H */
