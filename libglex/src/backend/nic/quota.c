/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quota.c - how much a process may register: GLEX_MAX_REGIONS and GLEX_MAX_LOCKED,
 * which play the limit of locked memory on the hardware.
 *
 * Counted for the process, and for each endpoint, which takes its regions along
 * when it goes.  Only numbers: nothing is published with them.
 */
#include "backend/nic/nic.h"

#include "cfg/cfg.h"
#include "cfg/log.h"

#define PAGE 4096u

/* Whole pages: that is what would be locked. */
static uint64_t span(uint64_t addr, uint64_t len)
{
	return (addr % PAGE + len + PAGE - 1) / PAGE * PAGE;
}

/* The new value. */
static uint64_t add(_Atomic uint64_t *n, uint64_t more)
{
	return atomic_fetch_add_explicit(n, more, memory_order_relaxed) + more; /* relaxed: a number */
}

static void sub(_Atomic uint64_t *n, uint64_t less)
{
	atomic_fetch_sub_explicit(n, less, memory_order_relaxed); /* relaxed: a number */
}

/* As many as the table has, and who finds it full says so: these could not be raised. */
static bool has_regions(uint64_t regions)
{
	uint64_t most = glexi_cfg()->max_regions;

	return regions <= most || most >= EMU_MMT_UNITS;
}

/* What is said of it. */
static void refuse(uint64_t regions, uint64_t bytes, uint64_t locked)
{
	const struct glexi_cfg *cfg = glexi_cfg();

	if (!has_regions(regions))
		glexi_warn_once(0,
				"registering %llu KiB failed (GLEX_NO_MEM_RESOURCE): %llu regions are registered, and "
				"GLEX_MAX_REGIONS allows no more; deregister some, or raise it",
				(unsigned long long)bytes / 1024, (unsigned long long)cfg->max_regions);
	else
		glexi_warn_once(1,
				"registering %llu KiB failed (GLEX_NO_MEM_RESOURCE): it would make %llu KiB, "
				"and GLEX_MAX_LOCKED allows %llu KiB; deregister some memory, or raise it",
				(unsigned long long)bytes / 1024, (unsigned long long)locked / 1024,
				(unsigned long long)cfg->max_locked / 1024);
}

bool nic_quota_take(struct nic_ep *nep, const void *addr, uint64_t len, bool trial)
{
	const struct glexi_cfg *cfg = glexi_cfg();
	struct nic_quota *all = &nep->dev->quota;
	uint64_t bytes = span((uintptr_t)addr, len);
	uint64_t regions = add(&all->regions, 1), locked = add(&all->bytes, bytes);

	if (has_regions(regions) && (!cfg->max_locked || locked <= cfg->max_locked)) {
		add(&nep->quota.regions, 1);
		add(&nep->quota.bytes, bytes);
		return true;
	}
	sub(&all->regions, 1);
	sub(&all->bytes, bytes);
	if (!trial)
		refuse(regions, bytes, locked);
	return false;
}

static void give(struct nic_ep *nep, uint64_t regions, uint64_t bytes)
{
	sub(&nep->quota.regions, regions);
	sub(&nep->quota.bytes, bytes);
	sub(&nep->dev->quota.regions, regions);
	sub(&nep->dev->quota.bytes, bytes);
}

void nic_quota_give(struct nic_ep *nep, uint64_t addr, uint64_t len)
{
	give(nep, 1, span(addr, len));
}

void nic_quota_give_all(struct nic_ep *nep)
{
	/* relaxed: nobody uses the endpoint any more */
	give(nep, atomic_load_explicit(&nep->quota.regions, memory_order_relaxed),
	     atomic_load_explicit(&nep->quota.bytes, memory_order_relaxed)); /* relaxed: as above */
}
