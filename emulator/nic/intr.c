/* SPDX-License-Identifier: BSD-2-Clause */
/* intr.c - interrupts, bad packets, waking.  See intr.h; nothing here is on the way of a usual request. */
#include "emulator/nic/intr.h"

#include <assert.h>
#include <glex.h>

#include "emulator/nic/exec.h"

static_assert(EMU_INTR_FLAGS == (GLEX_FLAG_LOCAL_INTR | GLEX_FLAG_REMOTE_INTR), "both, and nothing else");

uint64_t emu_addr_of(const struct emu_port *port)
{
	glex_ep_addr_t addr = {.v = 0};

	addr.ep_num = (uint16_t)port->ep_num;
	addr.nic_id = port->nic_id;
	return addr.v;
}

uint32_t emu_err_op(uint32_t op)
{
	switch (op) {
	case EMU_OP_MP:
		return GLEX_ERR_OP_IMM_MP;
	case EMU_OP_IMM_PUT:
	case EMU_OP_ATOMIC:
		return GLEX_ERR_OP_IMM_RDMA_PUT;
	case EMU_OP_PUT:
		return GLEX_ERR_OP_RDMA_PUT;
	default:
		return GLEX_ERR_OP_RDMA_GET;
	}
}

static void count_lost(struct emu_ring_ctl *ctl)
{
	atomic_fetch_add_explicit(&ctl->lost, 1, memory_order_relaxed); /* relaxed: counter */
}

/* relaxed: what the caller published itself it sees; what others do now they answer for */
static bool is_empty(const struct emu_ring_ctl *ctl)
{
	return emu_ring_end(ctl) == atomic_load_explicit(&ctl->head, memory_order_relaxed); /* relaxed: see above */
}

/* ---- waking ---------------------------------------------------------------- */

void emu_arm(struct emu_port *port, uint64_t what, uint64_t turn)
{
	uint64_t part = what ? (what & EMU_ARM_WHAT) | turn * EMU_ARM_TURN : 0;
	uint64_t word = atomic_load_explicit(&port->sleepers, memory_order_relaxed); /* relaxed: the CAS tells */

	while (!atomic_compare_exchange_weak_explicit(&port->sleepers, &word, (word & EMU_SLEEPERS) | part,
						      memory_order_seq_cst, memory_order_relaxed)) /* ARM-R1 */
		;
}

/* Did any of what `word` was armed for come? */
static bool has_come(const struct emu_port *port, uint64_t word)
{
	return (word & EMU_ARM_MP && !is_empty(&port->mpq)) || (word & EMU_ARM_EVENT && !is_empty(&port->eq));
}

/* Who arms again meanwhile has seen the queue after that, so this disarms nothing but what it has answered. */
static void answer(struct emu_host *host, struct emu_port *port, uint64_t armed)
{
	uint64_t word = armed;

	if (!host->ops->interrupt(host, port))
		return;
	while ((word & EMU_ARM_PART) == (armed & EMU_ARM_PART) &&
	       !atomic_compare_exchange_weak_explicit(&port->sleepers, &word, word & EMU_SLEEPERS, memory_order_acq_rel,
						      memory_order_relaxed)) /* ARM-A1 */
		;
}

void emu_wake(struct emu_host *host, struct emu_port *port)
{
	uint64_t word = atomic_load_explicit(&port->sleepers, memory_order_relaxed); /* relaxed: see emu_ring_bell */

	if (word & EMU_SLEEPERS)
		host->ops->wake(host, port);
	if (word & EMU_ARM_WHAT && has_come(port, word))
		answer(host, port, word);
}

void emu_wake_after_death(struct emu_host *host, struct emu_vport *to)
{
	if (atomic_load_explicit(&to->port->sleepers,
				 memory_order_relaxed)) /* relaxed: who comes later looks himself */
		emu_wake(host, to->port);
	if (atomic_load_explicit(&to->port->intr, memory_order_relaxed) &&
	    !is_empty(&to->port->intq)) /* relaxed: ours */
		host->ops->interrupt(host, to->port);
}

/* ---- interrupts ------------------------------------------------------------- */

void emu_interrupt(struct emu_host *host, struct emu_vport *to, uint32_t cause, uint64_t peer)
{
	uint32_t index;
	struct emu_intr_slot *slot = emu_ring_claim(&to->intq, host->session, &index);

	if (slot) {
		slot->flags = 0;
		slot->cause = cause;
		slot->peer = peer;
		emu_ring_publish(slot, index);
	} else {
		count_lost(&to->port->intq); /* that there was one is told all the same */
	}
	if (atomic_fetch_add_explicit(&to->port->intr, 0, memory_order_acq_rel)) /* INTR-R1 */
		host->ops->interrupt(host, to->port);
}

static struct emu_vport *target_of(struct emu_host *host, const struct emu_desc *desc)
{
	glex_ep_addr_t addr = {.v = desc->dst};
	struct emu_vport *to = host->ops->port(host, addr.nic_id, addr.ep_num);

	/* relaxed: a port that closes right after is as if this had come a little earlier */
	return to && atomic_load_explicit(&to->port->state, memory_order_relaxed) == EMU_PORT_OPEN ? to : NULL;
}

void emu_interrupts(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc)
{
	struct emu_vport *to = desc->flag & GLEX_FLAG_REMOTE_INTR ? target_of(host, desc) : NULL;

	if (to)
		emu_interrupt(host, to, EMU_INTR_REMOTE, emu_addr_of(from->port));
	if (desc->flag & GLEX_FLAG_LOCAL_INTR)
		emu_interrupt(host, from, EMU_INTR_LOCAL, desc->dst);
}

/* ---- bad packets ------------------------------------------------------------ */

/* In the order in which a request is checked.  0: nothing is wrong with it at the target. */
static uint32_t wrong_with(struct emu_nic *nic, uint32_t ep_num, const struct emu_desc *desc)
{
	uint32_t access = emu_access_of(desc->op);
	struct emu_region region;

	if (!emu_mmt_find(nic, desc->rmt_mh, &region))
		return EMU_BAD_HANDLE;
	if (region.ep_num != ep_num)
		return EMU_BAD_ENDPOINT;
	if (desc->rmt_offset > region.len || desc->len > region.len - desc->rmt_offset)
		return EMU_BAD_BOUNDS;
	if (region.key != desc->rmt_key)
		return EMU_BAD_KEY;
	return region.access & access ? 0 : EMU_BAD_ACCESS;
}

static uint32_t why_refused(struct emu_host *host, const struct emu_desc *desc)
{
	glex_ep_addr_t addr = {.v = desc->dst};
	struct emu_nic *nic = host->ops->nic(host, addr.nic_id);
	uint32_t cause = nic ? wrong_with(nic, addr.ep_num, desc) : 0;

	if (cause)
		atomic_fetch_add_explicit(&nic->counters.refused[cause - 1], 1,
					  memory_order_relaxed); /* relaxed: counter */
	return cause;
}

static bool is_full(const struct emu_ring *ring)
{
	return emu_ring_end(ring->ctl) - atomic_load_explicit(&ring->ctl->head, memory_order_relaxed) >
	       ring->mask; /* relaxed: display */
}

static uint32_t cause_of(struct emu_host *host, const struct emu_vport *to, const struct emu_desc *desc, int status)
{
	switch (status) {
	case GLEX_ERR_STATUS_DEST_MPQ_FULL:
		return EMU_BAD_MPQ_FULL;
	case GLEX_ERR_STATUS_DEST_EQ_FULL:
		if (!(desc->flag & GLEX_FLAG_REMOTE_EVT))
			return 0;
		/* Or was it the poster's own?  If there are two, only how full they are now can tell. */
		return !(desc->flag & GLEX_FLAG_LOCAL_EVT) || is_full(&to->eq) ? EMU_BAD_EQ_FULL : 0;
	case GLEX_ERR_STATUS_ATT:
	case GLEX_ERR_STATUS_MMT:
		return desc->op == EMU_OP_MP ? 0 : why_refused(host, desc);
	default:
		return 0;
	}
}

void emu_record_bad(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, int status)
{
	struct emu_vport *to = target_of(host, desc);
	uint32_t cause = to ? cause_of(host, to, desc, status) : 0, index;
	struct emu_bad_slot *slot;

	if (!cause)
		return;
	slot = emu_ring_claim(&to->epq, host->session, &index);
	if (slot) {
		slot->flags = 0;
		slot->op = emu_err_op(desc->op);
		slot->cause = cause;
		slot->src = emu_addr_of(from->port);
		slot->handle = desc->op == EMU_OP_MP ? 0 : desc->rmt_mh;
		slot->offset = desc->op == EMU_OP_MP ? 0 : desc->rmt_offset;
		slot->len = desc->len;
		slot->key = desc->op == EMU_OP_MP ? 0 : desc->rmt_key;
		emu_ring_publish(slot, index);
	} else {
		count_lost(&to->port->epq);
	}
	emu_interrupt(host, to, EMU_INTR_BAD_PACKET, emu_addr_of(from->port));
}
