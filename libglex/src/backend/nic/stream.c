/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.c - the shortest way of one mini-packet, to a queue that the sender has to itself.
 *
 * A stream of them is as fast as its stores leave for the cache, in order (fast.h).
 * So there are none here but the call's, a count, the claim and the slot's; nothing
 * is saved on the stack, nothing kept over a call.  Each function ends in the next,
 * and has registers enough for all it does.  What is unusual is post.c's.
 */
#include "backend/nic/quiet.h"

/* Another sender has come just now, while we claimed. */
static __attribute__((noinline, cold)) glex_ret_t mp_in_turn(struct glexi_ep *ep, const struct glex_imm_mp_req *req,
							     struct emu_vport *to, uint64_t claims)
{
	struct nic_ep *nep = ep->be;
	uint32_t index;
	struct emu_mp_slot *slot = emu_ring_claim_revoked(&to->mpq, nep->host.session, claims, &index);

	if (!slot) {
		nic_end_mp(nep, req, emu_lost(&to->port->mpq, GLEX_ERR_STATUS_DEST_MPQ_FULL));
		return GLEX_SUCCESS;
	}
	emu_fill_mp(slot, index, ep->addr.v, req->data, req->len);
	emu_ring_bell(&nep->host, to->port);
	return GLEX_SUCCESS;
}

/* What is not done for each message of a stream. */
static __attribute__((noinline)) glex_ret_t mp_sent(struct glexi_ep *ep, struct emu_vport *to, uint32_t index)
{
	struct nic_ep *nep = ep->be;

	nic_expect_answer_at(ep, emu_ring_slot(&to->mpq, index + 1));
	emu_ring_bell(&nep->host, to->port);
	return GLEX_SUCCESS;
}

GLEXI_INLINE glex_ret_t mp_filled(struct glexi_ep *ep, struct emu_vport *to, uint32_t index)
{
	struct nic_ep *nep = ep->be;

	if (nic_expects_no_answer(ep) && GLEXI_LIKELY(!emu_bell_rings(&nep->host, to->port)))
		return GLEX_SUCCESS;
	return mp_sent(ep, to, index);
}

static __attribute__((noinline)) glex_ret_t mp_words(struct glexi_ep *ep, const struct glex_imm_mp_req *req,
						     struct emu_vport *to, struct emu_mp_slot *slot, uint32_t index)
{
	emu_fill_mp_words(slot, index, ep->addr.v, req->data, req->len);
	return mp_filled(ep, to, index);
}

static __attribute__((noinline)) glex_ret_t mp_bytes(struct glexi_ep *ep, const struct glex_imm_mp_req *req,
						     struct emu_vport *to, struct emu_mp_slot *slot, uint32_t index)
{
	emu_fill_mp(slot, index, ep->addr.v, req->data, req->len);
	return mp_filled(ep, to, index);
}

/* The usual case of a process with one thread. */
glex_ret_t nic_send_imm_mp(struct glex_ep *handle, struct glex_imm_mp_req *req, struct glex_imm_mp_req **bad)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	struct nic_ep *nep = ep->be;
	struct emu_mp_slot *slot;
	struct emu_vport *to;
	uint64_t lead;

	if (GLEXI_UNLIKELY(!is_plain_mp(req) || !glexi_is_lockless(&ep->post_lock)))
		return nic_mp_aloud(ep, req, bad);
	to = usual_port(ep, req->rmt_ep_addr.v);
	if (GLEXI_UNLIKELY(!to || !emu_ring_is_own(&to->mpq, &nep->host.bias, &lead)))
		return nic_mp_aloud(ep, req, bad);
	slot = emu_ring_slot(&to->mpq, emu_low(lead));
	emu_want_line(slot);
	if (req->len > EMU_MP_NEAR)
		emu_want_line((unsigned char *)slot + 64);
	glexi_count(&nep->host.by->tx_mp, 1);
	if (GLEXI_UNLIKELY(!emu_ring_claim_own(&to->mpq, &nep->host.bias, lead)))
		return mp_in_turn(ep, req, to, lead + 1);
	return req->len % 8 == 0 && req->len ? mp_words(ep, req, to, slot, emu_low(lead))
					     : mp_bytes(ep, req, to, slot, emu_low(lead));
}
