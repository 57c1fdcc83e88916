/* SPDX-License-Identifier: BSD-2-Clause */
/* att.c - the translation cache.  See att.h. */
#include "emulator/nic/att.h"

#include <glex.h>

#define PAGE_SHIFT 12u

/* Bits of a handle all over a word, so that regions do not start in the same sets. */
static uint64_t mix(uint64_t v)
{
	v ^= v >> 31;
	v *= UINT64_C(0xbf58476d1ce4e5b9);
	v ^= v >> 29;
	v *= UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 32;
}

uint32_t emu_atc_place(const struct emu_atc *atc, uint64_t handle, uint64_t page)
{
	return (uint32_t)(mix(handle) + page) & (atc->sets - 1);
}

enum emu_atc_found emu_atc_use(const struct emu_atc *atc, uint64_t handle, uint64_t page)
{
	_Atomic uint64_t *way = atc->set[emu_atc_place(atc, handle, page)].way;
	uint64_t tag = mix(mix(handle) + page), moving = tag, here;
	uint32_t i;

	if (tag == 0) /* that means empty */
		tag = moving = 1;
	for (i = 0; i < EMU_ATC_WAYS && moving; i++) {
		here = atomic_load_explicit(&way[i], memory_order_relaxed); /* relaxed: only counts */
		if (here != moving)
			atomic_store_explicit(&way[i], moving, memory_order_relaxed); /* relaxed: only counts */
		if (here == tag)
			return EMU_ATC_HIT;
		moving = here;
	}
	return moving ? EMU_ATC_EVICTED : EMU_ATC_MISS;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	if (n)
		atomic_fetch_add_explicit(counter, n, memory_order_relaxed); /* relaxed: counter */
}

static void walk(struct emu_nic *nic, uint64_t handle, uint64_t offset, uint64_t len)
{
	struct emu_atc atc = {.set = (struct emu_atc_set *)(void *)(nic + 1), .sets = EMU_ATC_SETS};
	glex_mem_handle_t mh = {.v = handle};
	uint64_t page = (mh.att_base_off + offset) >> PAGE_SHIFT;
	uint64_t end = (mh.att_base_off + offset + len - 1) >> PAGE_SHIFT;
	uint64_t found[3] = {0};

	for (; page <= end; page++)
		found[emu_atc_use(&atc, handle, page)]++;
	count(&nic->counters.passed, 1);
	count(&nic->counters.att_hit, found[EMU_ATC_HIT]);
	count(&nic->counters.att_miss, found[EMU_ATC_MISS] + found[EMU_ATC_EVICTED]);
	count(&nic->counters.att_evicted, found[EMU_ATC_EVICTED]);
}

void emu_att_request(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, uint64_t done,
		     uint64_t n)
{
	glex_ep_addr_t addr = {.v = desc->dst};
	struct emu_nic *remote = host->ops->nic(host, addr.nic_id);
	bool plain = desc->op == EMU_OP_IMM_PUT || desc->local_mh == 0; /* its data here is in no region */
	struct emu_nic *local = plain ? NULL : host->ops->nic(host, from->port->nic_id);

	if (local)
		walk(local, desc->local_mh, desc->local_offset + done, n);
	if (remote)
		walk(remote, desc->rmt_mh, desc->rmt_offset + done, n);
}
