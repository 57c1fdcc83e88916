/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.h - the collective engine of a port: requests that wait until control
 * packets have come in, and are then executed by whoever delivered the last one.
 *
 *   owner posts ->  CQ  [ h | . | . | . ]        h SEQ_START: waits for `counter` control packets
 *                         ^ cq_head              else: is executed when it is first
 *   packets ----->  D   [ p | p | p | . ]        one entry a control packet, in the order of arrival
 *                         ^ d_head
 *
 *   h SEQ_START takes its entries out of D; the last of them that carries data is
 *   the swap value X of the sequence, or, for REDUCE, what h's own operand and all
 *   of theirs come to.  Then h is sent, and what stands behind it, up to the next
 *   gate.  SEQ_TAIL forgets X.
 *
 * Who puts something into CQ or D asks for a turn afterwards.  If nobody has it,
 * he has it himself and executes until there is nothing more to do; else whoever
 * has it will look again before he gives it back.  Nobody waits.  A packet that is
 * sent to another port asks for a turn there; turns gained in that way are worked
 * off one after the other, so a chain of triggers takes no stack.
 *
 * With GLEX_REORDER the owner tells glexd to ask, which so has all turns, and holds packets back (coll_shuffle.c).
 *
 * I1  only who has the turn reads D, and writes anything but turn, CQ and D.
 * I2  state[which] is always whole; a step writes the other one, then `which`.
 *     Kept operands and the other x are written before the state that counts them.
 * I3  the slots of a request are filled, then written down in `intent`, then
 *     published, then the request is done with in the state.  So whoever takes over
 *     knows: not filled, or of another request: nothing was seen of it, it is
 *     executed (again); else it is enough to publish what is not published yet.
 *     Only bytes of a PUT may so be written twice.
 *
 * at once     posts: one thread at a time, in the owner's process | control packets: anybody |
 *             turns: anybody, one at a time has it | inherit: glexd, once a session is dead
 * label       access                     order     pairs     says
 * COLL-R1     owner  cq.tail = n         release   COLL-A1   the requests up to n are complete
 * COLL-A1     turn   load cq.tail        acquire   COLL-R1   they may be read
 * COLL-R2     turn   cq.head = n         release   COLL-A2   the requests up to n have been read
 * COLL-A2     owner  load cq.head        acquire   COLL-R2   their slots may be written
 * COLL-R3     asker  turn by CAS         acq_rel   COLL-A3   what is there to do is in CQ or D
 * COLL-A3     turn   given back by CAS   acq_rel   COLL-R3   nobody has asked since it was looked; the state is whole
 * COLL-R4     turn   which = other       release   COLL-A4   the new state is whole (I2)
 * COLL-A4     turn   load which          acquire   COLL-R4   also if the last one died
 * COLL-R5     turn   intent.filled = n   release   COLL-A5   claims and slots are complete (I3)
 * COLL-A5     glexd  load filled         acquire   COLL-R5   they may be published
 * COLL-R6     owner  asked += 1          release   COLL-A6   out of order: what was posted before can be seen
 * COLL-A6     glexd  load asked          acquire   COLL-R6   it is executed by what follows
 * COLL-R7     glexd  served = asked      release   COLL-A7   it has been, and nothing is held back
 * COLL-A7     owner  load served         acquire   COLL-R7   what came to nothing has been told
 * crash       who has the turn dies: glexd publishes what was complete (emu_coll_inherit), gives the
 *             turn back, discards other slots of his, then asks for a turn at every port | who has put
 *             in something dies before he asks: the same | the owner dies: the port is closed
 * progress    asking is lock-free; linearisation points COLL-R3, COLL-A3; D is ring.h's
 */
#ifndef EMU_COLL_H
#define EMU_COLL_H

#include "emulator/nic/move.h"

#define EMU_COLL_FLAG  0x80u /* GLEX_FLAG_COLL; it and all above it are collective */
#define EMU_COLL_FLAGS (~(EMU_COLL_FLAG - 1))

/* A process's view of a port's collective unit: pointers into its own mapping. */
struct emu_coll_view {
	struct emu_coll *coll;
	struct emu_vport *port;
	struct emu_desc *cq;
	uint32_t cq_mask;
	struct emu_ring d;
	struct emu_coll_view *next; /* turns that one run has gained and not yet worked off */
};

struct emu_coll_shape {
	uint32_t nic_id, ep_num;
	uint32_t cq_capacity, d_capacity; /* powers of two */
};

uint64_t emu_coll_size(const struct emu_coll_shape *shape);

/* Lays it out in size zeroed bytes at base. */
void emu_coll_format(void *base, uint64_t size, const struct emu_coll_shape *shape);

/* As emu_vport_attach; port: the view of the port it belongs to, which stays where it is. */
const char *emu_coll_attach(struct emu_coll_view *view, struct emu_vport *port, void *base, uint64_t size);

/* Requests that can still be posted. */
uint32_t emu_coll_room(const struct emu_coll_view *view);

/* Appends a request, with its immediate data, to CQ; there is room.  The caller then asks for a turn. */
void emu_coll_post(struct emu_coll_view *view, const struct emu_desc *desc, const void *imm, uint32_t imm_len);

/* There may be something to do: sees to it that it is done. */
void emu_coll_turn(struct emu_host *host, struct emu_coll_view *view);

/*
 * Ends what a dead session was doing at this port, if it had the turn: publishes
 * its complete slots and gives the turn back.  Called by glexd for all ports before
 * it discards that session's other slots; then it asks for a turn at all of them.
 */
void emu_coll_inherit(struct emu_host *host, struct emu_coll_view *view, uint32_t dead);

/* coll_send.c: one request to one destination, with this payload.  EMU_OK, or the status for the poster. */
int emu_coll_send(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data,
		  struct emu_coll_view **told_p);

/* coll_send.c: the slots of the request that from's state is at are published.  False: it is to be executed anew. */
bool emu_coll_settle(struct emu_host *host, struct emu_coll_view *from);

static inline const struct emu_coll_state *emu_coll_now(const struct emu_coll_view *view)
{
	return &view->coll->state[atomic_load_explicit(&view->coll->which, memory_order_acquire) & 1]; /* COLL-A4 */
}

/*
 * A place where a test lets a process die: everything before it has happened,
 * nothing behind it.
 */
#ifndef EMU_COLL_POINT
#define EMU_COLL_POINT() ((void)0)
#endif

#endif /* EMU_COLL_H */
