/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mmt.c - the memory table.  See mmt.h for states and ordering.
 *
 * A handle is {mmt_index : 16, att_base_off : 16, att_index : 32}: the entry, the
 * offset of the region in its first page, the generation.  Generations start at
 * 1, so no handle is 0.
 */
#include "emulator/nic/mmt.h"

#include <glex.h>

#include "emulator/nic/ring.h"

#define PAGE_OFFSET_MASK 0xfffu

static uint32_t index_of(uint64_t handle)
{
	glex_mem_handle_t mh = {.v = handle};

	return mh.mmt_index;
}

static uint32_t generation_of(uint64_t handle)
{
	glex_mem_handle_t mh = {.v = handle};

	return mh.att_index;
}

/* The third field is redundant; checking it catches handles that were mangled on their way. */
static bool offset_matches(uint64_t handle, uint64_t addr)
{
	glex_mem_handle_t mh = {.v = handle};

	return mh.att_base_off == (addr & PAGE_OFFSET_MASK);
}

/* Claims a free entry from the hint on.  NULL: there is none. */
static struct emu_mmt_entry *claim(struct emu_nic *nic, uint32_t session, uint32_t *generation_p)
{
	uint32_t start = atomic_load_explicit(&nic->mmt_hint, memory_order_relaxed); /* relaxed: only a hint */
	uint32_t i;

	for (i = 0; i < EMU_MMT_UNITS; i++) {
		struct emu_mmt_entry *entry = &nic->mmt[(start + i) % EMU_MMT_UNITS];
		uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire); /* MMT-A1 */
		uint32_t generation = emu_high(stamp) + 1;

		if (emu_low(stamp) != EMU_SESSION_NONE)
			continue;
		if (generation == 0)
			generation = 1;
		if (atomic_compare_exchange_strong_explicit(&entry->stamp, &stamp, emu_pair(generation, session),
							    memory_order_release, memory_order_relaxed)) { /* MMT-R1 */
			*generation_p = generation;
			return entry;
		}
	}
	return NULL;
}

bool emu_mmt_register(struct emu_nic *nic, const struct emu_region *region, uint64_t *handle_p)
{
	glex_mem_handle_t mh = {.v = 0};
	uint32_t generation;
	struct emu_mmt_entry *entry = claim(nic, region->session, &generation);

	if (!entry)
		return false;
	atomic_store_explicit(&nic->used[entry - nic->mmt], 0, memory_order_relaxed); /* relaxed: number */
	atomic_store_explicit(&entry->addr, region->addr, memory_order_release);      /* MMT-R2 */
	atomic_store_explicit(&entry->len, region->len, memory_order_release);	      /* MMT-R2 */
	atomic_store_explicit(&entry->map, region->map, memory_order_release);	      /* MMT-R2 */
	atomic_store_explicit(&entry->map_offset, (uint64_t)region->map_offset, memory_order_release); /* MMT-R2 */
	atomic_store_explicit(&entry->key, region->key, memory_order_release);			       /* MMT-R2 */
	atomic_store_explicit(&entry->pid, region->pid, memory_order_release);			       /* MMT-R2 */
	atomic_store_explicit(&entry->ep_num, region->ep_num, memory_order_release);		       /* MMT-R2 */
	atomic_store_explicit(&entry->access, emu_mmt_access(region), memory_order_release);	       /* MMT-R2 */
	atomic_store_explicit(&entry->valid, generation, memory_order_release);			       /* MMT-R3 */
	atomic_fetch_add_explicit(&nic->mmt_used, 1, memory_order_relaxed); /* relaxed: for display only */
	mh.mmt_index = (uint16_t)(entry - nic->mmt);
	mh.att_base_off = (uint16_t)(region->addr & PAGE_OFFSET_MASK);
	mh.att_index = generation;
	*handle_p = mh.v;
	return true;
}

void emu_mmt_map(const struct emu_region *region, uint64_t map, int64_t map_offset, enum emu_kind kind)
{
	struct emu_mmt_entry *entry = &region->nic->mmt[region->index];

	atomic_store_explicit(&entry->map, map, memory_order_release);			       /* MMT-R2 */
	atomic_store_explicit(&entry->map_offset, (uint64_t)map_offset, memory_order_release); /* MMT-R2 */
	atomic_store_explicit(&entry->access, region->access | (uint32_t)EMU_WAY_MAP << 8 | (uint32_t)kind << 16,
			      memory_order_release); /* MMT-R5 */
}

/* The entry is nobody's from here on, and the first that the next registration tries: its line is warm. */
static void free_entry(struct emu_nic *nic, struct emu_mmt_entry *entry, uint32_t generation)
{
	atomic_store_explicit(&entry->stamp, emu_pair(generation, EMU_SESSION_NONE), memory_order_release); /* MMT-R1 */
	atomic_store_explicit(&nic->mmt_hint, (uint32_t)(entry - nic->mmt), memory_order_relaxed); /* relaxed: hint */
	atomic_fetch_sub_explicit(&nic->mmt_used, 1, memory_order_relaxed); /* relaxed: for display only */
}

/* The fields of that generation.  False: they are not valid, or not any more. */
static bool read_entry(struct emu_nic *nic, uint32_t index, uint32_t generation, struct emu_region *region)
{
	struct emu_mmt_entry *entry = &nic->mmt[index];
	uint32_t access;

	region->nic = nic;
	region->index = index;
	if (atomic_load_explicit(&entry->valid, memory_order_acquire) != generation) /* MMT-A3 */
		return false;
	region->addr = atomic_load_explicit(&entry->addr, memory_order_acquire);		      /* MMT-A2 */
	region->len = atomic_load_explicit(&entry->len, memory_order_acquire);			      /* MMT-A2 */
	access = atomic_load_explicit(&entry->access, memory_order_acquire);			      /* MMT-A5 */
	region->map = atomic_load_explicit(&entry->map, memory_order_acquire);			      /* MMT-A2 */
	region->map_offset = (int64_t)atomic_load_explicit(&entry->map_offset, memory_order_acquire); /* MMT-A2 */
	region->key = atomic_load_explicit(&entry->key, memory_order_acquire);			      /* MMT-A2 */
	region->pid = atomic_load_explicit(&entry->pid, memory_order_acquire);			      /* MMT-A2 */
	region->ep_num = atomic_load_explicit(&entry->ep_num, memory_order_acquire);		      /* MMT-A2 */
	region->session = emu_low(atomic_load_explicit(&entry->stamp, memory_order_acquire));	      /* MMT-A1 */
	region->access = access & 0xff;
	region->way = (enum emu_way)(access >> 8 & 0xff);
	region->kind = (enum emu_kind)(access >> 16 & 0xff);
	return atomic_load_explicit(&entry->valid, memory_order_acquire) == generation; /* MMT-A4 */
}

bool emu_mmt_find(struct emu_nic *nic, uint64_t handle, struct emu_region *region)
{
	uint32_t index = index_of(handle), generation = generation_of(handle);

	return index < EMU_MMT_UNITS && generation != 0 && read_entry(nic, index, generation, region) &&
	       offset_matches(handle, region->addr);
}

bool emu_mmt_at(struct emu_nic *nic, uint32_t index, struct emu_region *region)
{
	struct emu_mmt_entry *entry = &nic->mmt[index];
	uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire); /* MMT-A1 */

	return emu_low(stamp) != EMU_SESSION_NONE && read_entry(nic, index, emu_high(stamp), region);
}

/*
 * Ends a generation that may be in use.  Of several threads that try one wins:
 * the others must not free the entry's next tenant.
 */
static bool invalidate(struct emu_mmt_entry *entry, uint64_t generation)
{
	return atomic_compare_exchange_strong_explicit(&entry->valid, &generation, 0, memory_order_release, /* MMT-R4 */
						       memory_order_relaxed);
}

bool emu_mmt_revoke(struct emu_nic *nic, uint64_t handle, uint32_t session, uint32_t ep_num)
{
	struct emu_region region;
	struct emu_mmt_entry *entry;

	if (!emu_mmt_find(nic, handle, &region) || region.session != session || region.ep_num != ep_num)
		return false;
	entry = &nic->mmt[index_of(handle)];
	if (!invalidate(entry, generation_of(handle)))
		return false;
	free_entry(nic, entry, generation_of(handle));
	return true;
}

/*
 * The session lives and may be registering on other endpoints: an entry that is
 * not valid yet still shows the endpoint of its last tenant, and is none of ours.
 */
static bool reclaim_of_endpoint(struct emu_mmt_entry *entry, uint32_t generation, uint32_t ep_num)
{
	return atomic_load_explicit(&entry->valid, memory_order_acquire) == generation && /* MMT-A3 */
	       atomic_load_explicit(&entry->ep_num, memory_order_acquire) == ep_num &&	  /* MMT-A2 */
	       invalidate(entry, generation);
}

uint32_t emu_mmt_reclaim(struct emu_nic *nic, uint32_t session, uint32_t ep_num)
{
	uint32_t i, freed = 0;

	for (i = 0; i < EMU_MMT_UNITS; i++) {
		struct emu_mmt_entry *entry = &nic->mmt[i];
		uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire); /* MMT-A1 */

		if (emu_low(stamp) != session)
			continue;
		if (ep_num == UINT32_MAX)
			atomic_store_explicit(&entry->valid, 0, memory_order_release); /* MMT-R4 */
		else if (!reclaim_of_endpoint(entry, emu_high(stamp), ep_num))
			continue;
		free_entry(nic, entry, emu_high(stamp));
		freed++;
	}
	return freed;
}
