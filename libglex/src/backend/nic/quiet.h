/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quiet.h - PUTs and GETs that raise no event, from and to regions seen before,
 * posted by a process with one thread: inline in the posting calls (post.c).
 *
 * Nothing comes after the copy, no event and no unlock, so nothing is kept over
 * it, and the stack sees few stores.  That counts: in a stream of PUTs of some KiB
 * the processor's queue of stores is what is short.  For the same reason the
 * copiers end by themselves (copy.h).
 */
#ifndef GLEXI_BACKEND_NIC_QUIET_H
#define GLEXI_BACKEND_NIC_QUIET_H

#include "backend/nic/nic.h"
#include "emulator/nic/fast.h"

/* The port at addr if it has been found before, and the poster executes; under the endpoint's lock. */
GLEXI_INLINE struct emu_vport *usual_port(const struct glexi_ep *ep, uint64_t addr)
{
	struct nic_ep *nep = ep->be;

	if (nep->port.dq || glexi_is_lost(ep->dev) ||
	    (GLEXI_UNLIKELY(!nep->last_port || nep->last_addr != addr) && !nic_peer_turn(nep, addr)) ||
	    !emu_is_open(&nep->last_port->view))
		return NULL;
	return &nep->last_port->view;
}

GLEXI_INLINE void nic_take_event(uint64_t to[2], const glex_event_t *from, bool wanted)
{
	if (wanted) {
		to[0] = from->cookie_0;
		to[1] = from->cookie_1;
	}
}

/* What the other side answers will be answered in turn, and into this slot. */
GLEXI_INLINE void nic_expect_answer_at(struct glexi_ep *ep, const void *slot)
{
	const void *answer = atomic_load_explicit(&ep->answer, memory_order_relaxed); /* relaxed: a hint */

	if (!answer)
		atomic_store_explicit(&ep->answer, slot, memory_order_relaxed); /* relaxed: a hint */
	else if (answer != &ep->answer)
		atomic_store_explicit(&ep->answer, &ep->answer, memory_order_relaxed); /* relaxed: a hint */
}

/* Several were posted: it would do nothing. */
GLEXI_INLINE bool nic_expects_no_answer(struct glexi_ep *ep)
{
	return atomic_load_explicit(&ep->answer, memory_order_relaxed) == &ep->answer; /* relaxed: a hint */
}

GLEXI_INLINE void nic_expect_answer(struct glexi_ep *ep, const struct emu_ring *ring)
{
	nic_expect_answer_at(ep, emu_ring_next(ring));
}

/* ---- mini-packets (stream.c) ------------------------------------------------ */

/* What the usual case knows about; FENCE asks for what is so anyway. */
#define USUAL_FLAGS (GLEX_FLAG_FENCE | GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT)

/* One, and nothing unusual is wanted of it. */
GLEXI_INLINE bool is_plain_mp(const struct glex_imm_mp_req *req)
{
	return req && !req->next && !(req->flag & ~USUAL_FLAGS) && req->len <= EMU_MP_DATA && (req->data || !req->len);
}

/* Any list, by any endpoint; and what seldom happens to one that was sent: it came to nothing, or it is to interrupt. */
__attribute__((noinline)) glex_ret_t nic_mp_aloud(struct glexi_ep *ep, struct glex_imm_mp_req *req,
						  struct glex_imm_mp_req **bad);
__attribute__((noinline, cold)) void nic_end_mp(struct nic_ep *nep, const struct glex_imm_mp_req *req, int status);

/* ---- the beaten track ------------------------------------------------------ */

GLEXI_INLINE bool track_end_fits(const struct nic_track_end *end, uint64_t handle, uint32_t offset, uint32_t len)
{
	return end->handle == handle && (uint64_t)offset + len <= end->len &&
	       atomic_load_explicit(end->valid, memory_order_acquire) == end->generation; /* MMT-A3 */
}

/* The remote end of a request without events is where that of the one before was, and nothing has changed. */
GLEXI_INLINE bool track_leads(const struct nic_track *track, uint64_t addr, uint64_t handle, uint32_t offset,
			      uint32_t len, uint32_t key, uint32_t access)
{
	/* Where no track is there is no access either: what is laid has a handle, and a `valid` to look at. */
	return track->addr == addr && track->key == key && (track->access & access) &&
	       track_end_fits(&track->remote, handle, offset, len) &&
	       /* relaxed: as in emu_is_open */
	       atomic_load_explicit(track->state, memory_order_relaxed) == EMU_PORT_OPEN;
}

/* A request that was not on it.  True: the last such was like it, so that is where it leads from now on. */
GLEXI_INLINE bool track_turns(struct nic_track *track, uint64_t local_mh, uint64_t rmt_mh, uint64_t addr)
{
	uint64_t candidate = (local_mh * 3 ^ rmt_mh) * 3 ^ addr; /* another may look the same: nothing is wrong then */

	if (track->candidate == candidate)
		return true;
	track->candidate = candidate;
	return false;
}

/* Between these two from now on; local: NULL, of an immediate PUT.  In post.c. */
__attribute__((noinline, cold)) void nic_track_lay(struct nic_track *track, struct emu_vport *to, uint64_t addr,
						   const struct emu_known *remote, const struct emu_known *local);

/* ---- requests --------------------------------------------------------------- */

/* What stands before a request on the track: no lock is needed, and there is a network. */
GLEXI_INLINE bool is_quiet(const struct glexi_ep *ep)
{
	return glexi_is_lockless(&ep->post_lock) && !glexi_is_lost(ep->dev);
}

GLEXI_INLINE void count_imm(struct nic_ep *nep)
{
	struct emu_port_counters *by = nep->host.by;

	glexi_count(&by->tx_imm_put, 1);
	glexi_count(&by->by_map, 1);
}

GLEXI_INLINE void put_imm_counted(struct nic_ep *nep, const struct glex_imm_rdma_req *req, unsigned char *base)
{
	count_imm(nep);
	emu_copy_short(&nep->host, base + req->rmt_offset, req->data, req->len);
}

/* Returns how many went this way. */
GLEXI_INLINE uint64_t count_rdma(struct nic_ep *nep, bool put, uint64_t len)
{
	struct emu_port_counters *by = nep->host.by;

	glexi_count(put ? &by->tx_put : &by->tx_get, 1);
	glexi_count(&by->tx_bytes, len);
	return glexi_count(&by->by_map, 1);
}

GLEXI_INLINE void rdma_counted(struct nic_ep *nep, const struct glex_rdma_req *req, unsigned char *there,
			       unsigned char *here)
{
	bool put = req->type == GLEX_RDMA_TYPE_PUT;

	there += req->rmt_offset;
	here += req->local_offset;
	count_rdma(nep, put, req->len);
	emu_copy_short(&nep->host, put ? there : here, put ? here : there, req->len);
}

GLEXI_INLINE bool imm_track_leads(const struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	const struct nic_ep *nep = ep->be;

	return is_quiet(ep) && track_leads(&nep->imm_track, req->rmt_ep_addr.v, req->rmt_mh.v, req->rmt_offset,
					   req->len, req->rmt_key, GLEX_MEM_WRITE);
}

/* An immediate PUT on the track; false: nothing has happened. */
GLEXI_INLINE bool put_imm_track(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;

	if (!imm_track_leads(ep, req))
		return false;
	put_imm_counted(nep, req, nep->imm_track.remote.base);
	return true;
}

/* The same beside it, of regions seen before: who takes turns among targets finds each where it was. */
GLEXI_INLINE bool put_imm_quiet(struct glexi_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct nic_ep *nep = ep->be;
	const struct emu_known *dst = NULL;

	if (!nep->port.dq && is_quiet(ep))
		dst = emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset, req->len,
					req->rmt_key, GLEX_MEM_WRITE);
	if (!dst || !emu_is_open(dst->to))
		return false;
	if (track_turns(&nep->imm_track, 0, req->rmt_mh.v, req->rmt_ep_addr.v))
		nic_track_lay(&nep->imm_track, dst->to, req->rmt_ep_addr.v, dst, NULL);
	put_imm_counted(nep, req, dst->base);
	return true;
}

/* A PUT or GET is on the track. */
GLEXI_INLINE bool rdma_track_leads(const struct glexi_ep *ep, const struct glex_rdma_req *req)
{
	uint32_t access = req->type == GLEX_RDMA_TYPE_PUT ? GLEX_MEM_WRITE : GLEX_MEM_READ;
	const struct nic_ep *nep = ep->be;

	return is_quiet(ep) &&
	       track_leads(&nep->track, req->rmt_ep_addr.v, req->rmt_mh.v, req->rmt_offset, req->len, req->rmt_key,
			   access) &&
	       track_end_fits(&nep->track.local, req->local_mh.v, req->local_offset, req->len);
}

/* Copies between the two regions of the track, and finds the way of what is long; in post.c. */
__attribute__((noinline)) glex_ret_t nic_track_copy(struct nic_ep *nep, unsigned char *dst, const unsigned char *src,
						    uint64_t len);

/*
 * Then this is all of it.  A stream of PUTs of some KiB is as fast as little is done
 * beside the copy, by the processor and in stores: one of the same length as before
 * is not looked at closely, and its copier does the return.
 */
GLEXI_INLINE glex_ret_t rdma_along(struct nic_ep *nep, const struct glex_rdma_req *req)
{
	unsigned char *there = nep->track.remote.base + req->rmt_offset;
	unsigned char *here = nep->track.local.base + req->local_offset;
	bool put = req->type == GLEX_RDMA_TYPE_PUT;
	unsigned char *dst = put ? there : here, *src = put ? here : there;
	uint64_t picks = atomic_load_explicit(&nep->host.engine->copiers, memory_order_relaxed), /* relaxed: a hint */
		len = req->len, turn = count_rdma(nep, put, len) & 1;

	if (EMU_LIKELY(len == nep->track.way_len && picks == nep->track.way_for && ((uintptr_t)dst + len) % 8 == 0))
		return (glex_ret_t)nep->track.way[turn](dst, src, len);
	return nic_track_copy(nep, dst, src, len);
}

/* The same where the other end is reached by attach; in post.c. */
bool nic_move_away(struct glexi_ep *ep, struct emu_vport *to, const struct glex_rdma_req *req,
		   const struct emu_known *local);

/* The same beside it, between regions seen before. */
GLEXI_INLINE bool rdma_quiet(struct glexi_ep *ep, const struct glex_rdma_req *req)
{
	uint32_t access = req->type == GLEX_RDMA_TYPE_PUT ? GLEX_MEM_WRITE : GLEX_MEM_READ;
	struct emu_vport *to = glexi_is_lockless(&ep->post_lock) ? usual_port(ep, req->rmt_ep_addr.v) : NULL;
	const struct emu_known *remote, *local;
	struct nic_ep *nep = ep->be;

	if (!to)
		return false;
	remote = emu_recall_remote(&nep->host, req->rmt_mh.v, req->rmt_ep_addr.v, req->rmt_offset, req->len,
				   req->rmt_key, access);
	local = emu_recall_local(&nep->host, req->local_mh.v, ep->addr.v, req->local_offset, req->len);
	if (!remote || !local)
		return local && nic_move_away(ep, to, req, local);
	if (track_turns(&nep->track, req->local_mh.v, req->rmt_mh.v, req->rmt_ep_addr.v))
		nic_track_lay(&nep->track, to, req->rmt_ep_addr.v, remote, local);
	rdma_counted(nep, req, remote->base, local->base);
	return true;
}

#endif /* GLEXI_BACKEND_NIC_QUIET_H */
