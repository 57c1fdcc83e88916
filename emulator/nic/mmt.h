/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mmt.h - the memory table of a NIC: which regions are registered, who may do
 * what with them, and how they are reached.
 *
 * An entry goes free -> claimed -> valid -> free.  `stamp` = {generation, session}
 * says whose it is; `valid` = the generation whose fields may be used.  The
 * handle holds index and generation, so a handle of a region that was revoked,
 * even if the entry is in use again, never matches.
 *
 * at once     register/revoke: any process, each its own entries | check: everybody | reclaim:
 *             glexd, for sessions and endpoints that ended | all together: yes
 * label       access                     order     pairs     says
 * MMT-R1      owner  stamp by CAS        release   MMT-A1    the entry is this session's; glexd may free it if it dies
 * MMT-A1      anyone load stamp          acquire   MMT-R1    who owns it
 * MMT-R2      owner  fields              release   MMT-A2    written while valid differs from the handle's generation
 * MMT-A2      reader load fields         acquire   MMT-R2    if a field is of a later generation, MMT-A4 sees valid changed
 * MMT-R3      owner  valid = generation  release   MMT-A3    the fields are complete
 * MMT-A3      reader load valid          acquire   MMT-R3    before the fields
 * MMT-R4      owner  valid = 0           release   MMT-A4    before any field is written again
 * MMT-A4      reader load valid          acquire   MMT-R4    after the fields: they were not touched in between
 * MMT-R5      owner  access, in place    release   MMT-A5    map and map_offset are those of an object; before, nobody
 *                                                            used them
 * MMT-A5      reader load access         acquire   MMT-R5    before map and map_offset
 * crash       the owner dies anywhere: glexd frees every entry stamped with its session
 * progress    check is wait-free; register is lock-free; linearisation points MMT-R3 and MMT-R4
 */
#ifndef EMU_MMT_H
#define EMU_MMT_H

#include <glex.h>
#include <stdbool.h>

#include "emulator/abi/shm_layout.h"

/* Beside GLEX_MEM_READ and WRITE: */
#define EMU_ACCESS_KEPT	  0x40u /* how it is reached never changes: its owner has drawn conclusions from that */
#define EMU_ACCESS_ATOMIC 0x80u /* all of the region is mapped by those who reach it */

/* What one needs to know of a region to move its bytes. */
struct emu_region {
	uint64_t addr; /* in the owner's address space */
	uint64_t len;
	uint64_t map;	    /* EMU_WAY_MAP: the shared object ... */
	int64_t map_offset; /* ... and where in it the region begins; below 0: so many bytes in front of it */
	uint32_t key;
	uint32_t pid;
	uint32_t session;
	uint32_t ep_num;
	uint32_t access;
	enum emu_way way;
	enum emu_kind kind;
	struct emu_nic *nic; /* where it was found, */
	uint32_t index;	     /* and in which place of the table; not of a region that is only to be entered */
};

/* Counts what was moved by attach, so that the owner sees what is worth a better way. */
static inline void emu_mmt_count_at(struct emu_nic *nic, uint32_t index, uint64_t bytes)
{
	uint32_t pages = (uint32_t)(bytes / 4096) + 1;

	atomic_fetch_add_explicit(&nic->used[index], pages, memory_order_relaxed);	 /* relaxed: number */
	atomic_fetch_add_explicit(&nic->counters.attached, pages, memory_order_relaxed); /* relaxed: number */
}

static inline void emu_mmt_count_use(const struct emu_region *region, uint64_t bytes)
{
	if (region->nic)
		emu_mmt_count_at(region->nic, region->index, bytes);
}

/* Enters a region; the handle's bits into *handle_p.  False: the table is full. */
bool emu_mmt_register(struct emu_nic *nic, const struct emu_region *region, uint64_t *handle_p);

/*
 * A region reached by attach, as emu_mmt_at gave it, is reached as this object from
 * now on, under the same handle; transfers under way go on as they began.  Its owner
 * sees to it that it is not revoked since.
 */
void emu_mmt_map(const struct emu_region *region, uint64_t map, int64_t map_offset, enum emu_kind kind);

/* Frees it if the handle is this session's region on that endpoint.  False: it is not. */
bool emu_mmt_revoke(struct emu_nic *nic, uint64_t handle, uint32_t session, uint32_t ep_num);

/* True while the region of a handle that was found once has not been revoked since. */
static inline bool emu_mmt_is_valid(const struct emu_nic *nic, uint64_t handle)
{
	glex_mem_handle_t mh = {.v = handle};

	return atomic_load_explicit(&nic->mmt[mh.mmt_index].valid, memory_order_acquire) == mh.att_index; /* MMT-A3 */
}

/* How the region is reached and what may be done with it, as the table has it: one word, which differs if anything does. */
static inline uint32_t emu_mmt_access(const struct emu_region *region)
{
	return region->access | (uint32_t)region->way << 8 | (uint32_t)region->kind << 16;
}

/* The same of a handle that was found once, for who has that word from then. */
static inline bool emu_mmt_is_still(const struct emu_nic *nic, uint64_t handle, uint32_t access)
{
	glex_mem_handle_t mh = {.v = handle};

	return atomic_load_explicit(&nic->mmt[mh.mmt_index].access, memory_order_acquire) == access && /* MMT-A5 */
	       emu_mmt_is_valid(nic, handle);
}

/* Looks a handle up.  False: unknown or revoked. */
bool emu_mmt_find(struct emu_nic *nic, uint64_t handle, struct emu_region *region);

/* The region in this place of the table, index < EMU_MMT_UNITS.  False: there is none. */
bool emu_mmt_at(struct emu_nic *nic, uint32_t index, struct emu_region *region);

/*
 * Frees all entries of a session that has ended (ep_num UINT32_MAX), or those on
 * one endpoint of one that may live on.  Returns how many.
 */
uint32_t emu_mmt_reclaim(struct emu_nic *nic, uint32_t session, uint32_t ep_num);

#endif /* EMU_MMT_H */
