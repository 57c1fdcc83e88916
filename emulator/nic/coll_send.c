/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_send.c - one collective request to one destination: the bytes, then all
 * slots that it fills at once, so that it has happened whole or not at all even
 * if whoever executes it dies (I3 of coll.h).
 *
 *   MP   slot of the target's MPQ (unless it only counts), of its D (if it counts)
 *   PUT  bytes; slot of the target's EQ, of the poster's, of the target's D
 */
#include <glex.h>
#include <string.h>

#include "emulator/nic/coll.h"
#include "emulator/nic/exec.h"
#include "emulator/nic/fast.h"

/* A slot that has been claimed and must be published. */
struct claim {
	struct emu_vport *port;
	enum emu_coll_ring ring;
	uint32_t index;
	void *slot;
};

struct claims {
	struct claim of[EMU_COLL_CLAIMS];
	uint32_t n;
};

static void *claim(struct emu_host *host, struct claims *claims, struct emu_vport *port, enum emu_coll_ring which,
		   const struct emu_ring *ring)
{
	struct claim *claim = &claims->of[claims->n];

	claim->slot = which == EMU_COLL_D ? emu_ring_claim(ring, host->session, &claim->index)
					  : emu_ring_claim_as(ring, host->session, &host->bias, &claim->index);
	if (!claim->slot)
		return NULL;
	claim->port = port;
	claim->ring = which;
	claims->n++;
	EMU_COLL_POINT();
	return claim->slot;
}

/* Nothing comes of it after all. */
static void drop(struct claims *claims)
{
	uint32_t i;

	for (i = 0; i < claims->n; i++) {
		if (claims->of[i].ring == EMU_COLL_EQ)
			((struct emu_event_slot *)claims->of[i].slot)->flags = EMU_SLOT_DISCARDED;
		else
			((struct emu_mp_slot *)claims->of[i].slot)->flags = EMU_SLOT_DISCARDED;
		emu_ring_publish(claims->of[i].slot, claims->of[i].index);
	}
	claims->n = 0;
}

/* The slots are filled: says so, publishes them, wakes who waits for them.  I3 */
static void publish(struct emu_host *host, struct emu_coll_view *from, const struct claims *claims)
{
	const struct emu_coll_state *state = emu_coll_now(from);
	struct emu_coll_intent *intent = &from->coll->intent;
	uint32_t i;

	atomic_store_explicit(&intent->filled, 0, memory_order_release); /* COLL-R5 */
	for (i = 0; i < claims->n; i++) {
		intent->claim[i].port = emu_addr_of(claims->of[i].port->port);
		intent->claim[i].ring = claims->of[i].ring;
		intent->claim[i].index = claims->of[i].index;
	}
	intent->claims = claims->n;
	intent->cq_head = state->cq_head;
	intent->sent = state->sent;
	EMU_COLL_POINT();
	atomic_store_explicit(&intent->filled, 1, memory_order_release); /* COLL-R5 */
	EMU_COLL_POINT();
	/* What the owner sees last: then his gates have what belongs to it, and he may leave (nic_drain). */
	for (i = claims->n; i-- > 0;) {
		emu_ring_publish(claims->of[i].slot, claims->of[i].index);
		EMU_COLL_POINT();
	}
	for (i = 0; i < claims->n; i++)
		if (claims->of[i].ring != EMU_COLL_D)
			emu_ring_bell(host, claims->of[i].port->port);
}

static void fill_mp(struct emu_mp_slot *slot, const struct emu_coll_view *from, uint16_t flags, const void *data,
		    uint32_t len)
{
	slot->flags = flags;
	slot->len = (uint16_t)len;
	slot->src = emu_addr_of(from->port->port);
	if (len)
		memcpy(slot->data, data, len);
}

static uint16_t slot_flags(uint32_t flag)
{
	return (uint16_t)((flag & GLEX_FLAG_COLL_CP_SWAP_DATA ? EMU_SLOT_DATA : 0) |
			  (flag & GLEX_FLAG_COLL_CP_SWAP_ADDR ? EMU_SLOT_ADDR : 0) |
			  (flag & GLEX_FLAG_COLL_REDUCE ? EMU_SLOT_OPERAND : 0));
}

/* D is claimed last, so it is published first. */
static int send_mp(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data,
		   struct emu_vport *to, struct emu_coll_view *unit)
{
	bool queued = !unit || desc->flag & GLEX_FLAG_COLL_CP_DATA;
	struct emu_mp_slot *mp = NULL, *entry = NULL;
	uint16_t flags = slot_flags(desc->flag);
	struct claims claims = {.n = 0};

	if (queued && !(mp = claim(host, &claims, to, EMU_COLL_MPQ, &to->mpq)))
		return emu_lost(&to->port->mpq, GLEX_ERR_STATUS_DEST_MPQ_FULL);
	if (unit && !(entry = claim(host, &claims, to, EMU_COLL_D, &unit->d))) {
		drop(&claims);
		return emu_lost(&unit->coll->d, GLEX_ERR_STATUS_DEST_MPQ_FULL);
	}
	if (mp)
		fill_mp(mp, from, 0, data, desc->len);
	if (entry)
		fill_mp(entry, from, flags, data, flags ? desc->len : 0);
	publish(host, from, &claims);
	return EMU_OK;
}

static void fill_event(struct emu_event_slot *slot, const uint64_t cookie[2])
{
	slot->flags = 0;
	slot->cookie[0] = cookie[0];
	slot->cookie[1] = cookie[1];
}

/* The data has moved, so whatever of the rest can be told is told. */
static int send_put(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data,
		    struct emu_vport *to, struct emu_coll_view *unit)
{
	int status = desc->op == EMU_OP_IMM_PUT ? emu_exec_imm(host, from->port, desc, data)
						: emu_exec_move(host, from->port, desc, 0, desc->len);
	struct claims claims = {.n = 0};
	void *slot;

	if (status != EMU_OK)
		return status;
	EMU_COLL_POINT();
	if (desc->flag & GLEX_FLAG_REMOTE_EVT) {
		slot = claim(host, &claims, to, EMU_COLL_EQ, &to->eq);
		if (slot)
			fill_event(slot, desc->rmt_evt);
		else
			status = emu_lost(&to->port->eq, GLEX_ERR_STATUS_DEST_EQ_FULL);
	}
	if (desc->flag & GLEX_FLAG_LOCAL_EVT && desc->op != EMU_OP_IMM_PUT) {
		slot = claim(host, &claims, from->port, EMU_COLL_EQ, &from->port->eq);
		if (slot)
			fill_event(slot, desc->local_evt);
		else
			status = emu_lost(&from->port->port->eq, GLEX_ERR_STATUS_DEST_EQ_FULL);
	}
	if (unit) {
		slot = claim(host, &claims, to, EMU_COLL_D, &unit->d);
		if (slot)
			fill_mp(slot, from, 0, NULL, 0);
		else
			status = emu_lost(&unit->coll->d, GLEX_ERR_STATUS_DEST_MPQ_FULL);
	}
	publish(host, from, &claims);
	return status;
}

int emu_coll_send(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data,
		  struct emu_coll_view **told_p)
{
	glex_ep_addr_t addr = {.v = desc->dst};
	struct emu_vport *to = host->ops->port(host, addr.nic_id, addr.ep_num);
	struct emu_coll_view *unit = NULL;
	int status;

	if (!to || !emu_is_open(to))
		return GLEX_ERR_STATUS_DEST_VP_STOP;
	if (desc->flag & GLEX_FLAG_COLL_COUNTER) {
		/* Before anything is claimed: it may take its time. */
		unit = host->ops->coll(host, to);
		if (!unit)
			return emu_is_open(to) ? GLEX_ERR_STATUS_PCIE_READ : GLEX_ERR_STATUS_DEST_VP_STOP;
	}
	status = desc->op == EMU_OP_MP ? send_mp(host, from, desc, data, to, unit)
				       : send_put(host, from, desc, data, to, unit);
	*told_p = unit;
	if (desc->flag & EMU_INTR_FLAGS && status == EMU_OK)
		emu_interrupts(host, from->port, desc);
	return status;
}

/* ---- what a dead one left ----------------------------------------------------- */

static const struct emu_ring *ring_at(struct emu_host *host, uint64_t port, uint32_t which, struct emu_vport **to_p)
{
	glex_ep_addr_t addr = {.v = port};
	struct emu_vport *to = host->ops->port(host, addr.nic_id, addr.ep_num);
	struct emu_coll_view *unit;

	*to_p = to;
	if (!to || !emu_is_open(to))
		return NULL;
	switch (which) {
	case EMU_COLL_MPQ:
		return &to->mpq;
	case EMU_COLL_EQ:
		return &to->eq;
	case EMU_COLL_D:
		unit = host->ops->coll(host, to);
		return unit ? &unit->d : NULL;
	default:
		return NULL;
	}
}

bool emu_coll_settle(struct emu_host *host, struct emu_coll_view *from)
{
	const struct emu_coll_state *state = emu_coll_now(from);
	struct emu_coll_intent *intent = &from->coll->intent;
	uint32_t i;

	if (!atomic_load_explicit(&intent->filled, memory_order_acquire) || /* COLL-A5 */
	    intent->cq_head != state->cq_head || intent->sent != state->sent)
		return false;
	for (i = 0; i < intent->claims && i < EMU_COLL_CLAIMS; i++) {
		struct emu_vport *to;
		const struct emu_ring *ring = ring_at(host, intent->claim[i].port, intent->claim[i].ring, &to);
		uint32_t index = intent->claim[i].index;

		if (ring && emu_ring_claimed(ring, index) && emu_ring_unpublished(ring, index))
			emu_ring_publish(emu_ring_slot(ring, index), index);
		if (ring)
			emu_ring_bell(host, to->port);
	}
	return true;
}
