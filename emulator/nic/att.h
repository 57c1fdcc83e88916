/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * att.h - the model of a NIC's address translation: for each page of 4 KiB that
 * an access touches, is its translation in the cache of the NIC, or has the NIC
 * to fetch it from the table (ATT) in host memory?
 *
 *   set = page + place of the region      8 ways, most recently used first
 *        +------+------+- - -+------+
 *        | tag  | tag  |     | tag  |     a hit moves to the front; a miss
 *        +------+------+- - -+------+     comes in there and pushes the last out
 *
 * 1 Mi entries, 8 ways, least recently used goes.  Consecutive pages of a region
 * lie in consecutive sets, as consecutive entries of the table would; the tag
 * tells region (with its generation) and page, so that translations of a region
 * that was deregistered are never hit again and age out.
 *
 * Only counts: nothing depends on it.  Those who walk one set at the same time
 * may lose an entry or have it twice, which is worth no lock: "relaxed:" all over.
 */
#ifndef EMU_ATT_H
#define EMU_ATT_H

#include "emulator/nic/move.h"

/* A cache of any size: sets is a power of two. */
struct emu_atc {
	struct emu_atc_set *set;
	uint32_t sets;
};

enum emu_atc_found { EMU_ATC_HIT, EMU_ATC_MISS, EMU_ATC_EVICTED /* a miss that pushed another out */ };

/* Where the translation of a page of the region goes. */
uint32_t emu_atc_place(const struct emu_atc *atc, uint64_t handle, uint64_t page);

/* Uses the translation of one page of a region. */
enum emu_atc_found emu_atc_use(const struct emu_atc *atc, uint64_t handle, uint64_t page);

/*
 * Walks the pages of both regions of a request, as far as [done, done+n) of it
 * goes, and counts them in the NICs.  Called when the checks have passed and
 * host->model is set.
 */
void emu_att_request(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, uint64_t done,
		     uint64_t n);

#endif /* EMU_ATT_H */
