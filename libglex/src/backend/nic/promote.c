/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * promote.c - memory that is used often is moved to where it is reached faster.
 *
 * Adopting it: peers then map it.  Memory that is not private any more behaves
 * like it only if munmap and madvise are seen, so this is done if a monitor of
 * memwatch.h sees them, or if GLEX_ADOPT=always says that it does no harm.  The
 * regions that are over it already get the better way too, under their handles;
 * but not those of a registration cache, which knows what it has to watch by the
 * way a region had when it was registered, and registers anew.
 *
 * Huge pages: attach copies three times as fast out of them.  MADV_COLLAPSE puts
 * the whole 2 MiB units of a region into huge pages in place; nobody notices but
 * by the time it takes, so it is done once for a region.  Only for memory of no
 * file: what a file's pages are is not ours to decide.
 *
 * When: at the request of the registration cache, when the same bytes are
 * registered for the n-th time, or when peers have moved all of a region so often.
 * Who moves by attach counts pages in the owner's memory table; the owner looks
 * there while it waits.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/nic/adopt.h"
#include "cfg/cfg.h"
#include "cfg/log.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#define PAGE UINT64_C(4096)
#define HUGE (UINT64_C(2) << 20)

static uint64_t round_up(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void add(_Atomic uint64_t *n, uint64_t more)
{
	atomic_fetch_add_explicit(n, more, memory_order_relaxed); /* relaxed: counter */
}

/* Anything of this unit has memory: what has none is left alone. */
static bool is_used(uint64_t unit)
{
	unsigned char there[HUGE / PAGE];

	if (mincore((void *)(uintptr_t)unit, HUGE, there))
		return true;
	for (size_t i = 0; i < sizeof(there); i++)
		if (there[i] & 1)
			return true;
	return false;
}

/* Units from addr to end, all used; returns how many are in huge pages now. */
static uint64_t collapse_used(uint64_t addr, uint64_t end, int *why_p)
{
	uint64_t done = 0;

	if (addr == end || madvise((void *)(uintptr_t)addr, end - addr, MADV_COLLAPSE) == 0)
		return (end - addr) / HUGE;
	for (; addr < end; addr += HUGE) {
		if (madvise((void *)(uintptr_t)addr, HUGE, MADV_COLLAPSE) == 0)
			done++;
		else
			*why_p = errno;
	}
	return done;
}

/* In few calls: each has the system wait until all its processors have emptied their lists of pages. */
uint64_t nic_collapse(struct nic_device *dev, uint64_t addr, uint64_t end)
{
	uint64_t done = 0, units = (end - addr) / HUGE, from = addr;
	int why = 0;

	for (; addr + HUGE <= end; addr += HUGE) {
		if (is_used(addr))
			continue;
		done += collapse_used(from, addr, &why);
		from = addr + HUGE;
	}
	done += collapse_used(from, addr, &why);
	add(&dev->nic->counters.huge, done);
	add(&dev->nic->counters.not_huge, units - done);
	errno = why;
	return done;
}

/* Asks for huge pages in the whole units of [addr, end) that are plain memory. */
static void collapse(struct nic_device *dev, uint64_t addr, uint64_t end)
{
	uint64_t done = 0, units = 0;
	struct nic_vma vma;
	int why = 0;

	while (addr < end && nic_vma_find(dev->vma_fd, addr, &vma) && vma.start < end) {
		uint64_t at = round_up(addr > vma.start ? addr : vma.start, HUGE), stop = lesser(end, vma.end);

		if (nic_vma_is_plain(&vma) && at + HUGE <= stop) {
			uint64_t n = (stop - at) / HUGE, got = nic_collapse(dev, at, at + n * HUGE);

			why = got < n ? errno : why;
			done += got;
			units += n;
		}
		addr = vma.end;
	}
	if (units)
		glexi_info("memory used often by attach: %llu of %llu units of 2 MiB put into huge pages%s%s",
			   (unsigned long long)done, (unsigned long long)units, why ? ": " : "",
			   why ? strerror(why) : "");
}

/* The entry for these bytes, fresh if there was none.  Under dev->lock. */
static struct nic_hot *hot_of(struct nic_device *dev, uint64_t addr, uint64_t len)
{
	struct nic_hot *hot = &dev->hot[(addr >> 12) * 2654435761u % NIC_HOT];

	if (hot->addr != addr || hot->len != len)
		*hot = (struct nic_hot){.addr = addr, .len = len};
	return hot;
}

/* Whether the program's munmap and madvise would be seen, and in time, for memory that is not private any more. */
static bool is_watched(void)
{
	uint32_t all = GLEXI_SEES_UNMAP | GLEXI_SEES_DISCARD | GLEXI_SEES_BEFORE;

	return (glexi_memwatch_sees() & all) == all;
}

/* NULL: it may be. */
static const char *why_not(uint64_t len)
{
	const struct glexi_cfg *cfg = glexi_cfg();

	if (cfg->adopt == GLEXI_ADOPT_NEVER)
		return "GLEX_ADOPT is never";
	if (cfg->adopt != GLEXI_ADOPT_ALWAYS && !is_watched())
		return "nothing tells before it changes, as libglex-memhooks.so or userfaultfd would";
	return len < cfg->adopt_min ? "it is shorter than GLEX_ADOPT_MIN" : NULL;
}

/* The whole pages in [addr, end). */
static bool adopt(struct nic_device *dev, uint64_t addr, uint64_t end)
{
	const char *why = why_not(end - addr);

	if (!why && nic_adopt_range(dev, round_up(addr, PAGE), end / PAGE * PAGE, &why))
		return true;
	glexi_info("%llu bytes at %#llx that are used often stay private: %s", (unsigned long long)(end - addr),
		   (unsigned long long)addr, why);
	return false;
}

/*
 * Asked in vain the first, second, fourth, eighth time: what cannot be now is not tried each time, and may be
 * later.  Who can have it adopted is counted apart: else those who cannot take the turns of those who can.
 */
static bool is_time(struct nic_device *dev, uint64_t addr, uint64_t len, bool quiet)
{
	uint64_t asked;

	pthread_mutex_lock(&dev->lock);
	asked = ++hot_of(dev, addr, len)->asked[quiet];
	pthread_mutex_unlock(&dev->lock);
	return (asked & (asked - 1)) == 0;
}

/* It was not in vain: if these bytes go and others come in their place, they are moved as readily. */
static void start_anew(struct nic_device *dev, uint64_t addr, uint64_t len)
{
	pthread_mutex_lock(&dev->lock);
	hot_of(dev, addr, len)->asked[true] = 0;
	pthread_mutex_unlock(&dev->lock);
}

bool nic_mem_promote(struct glexi_device *device, void *addr, uint64_t len, bool quiet)
{
	struct nic_device *dev = device->be;
	uint64_t at = (uintptr_t)addr;

	if (len < 2 * PAGE || !is_time(dev, at, len, quiet))
		return false;
	if (quiet && adopt(dev, at, at + len)) {
		if (!nic_mem_is_split(device, addr, len)) /* else it would be moved again and again, in vain */
			start_anew(dev, at, len);
		nic_mem_remap(dev, at, at + len);
		return true;
	}
	if (glexi_cfg()->huge_pages)
		collapse(dev, at, at + len);
	return false;
}

bool nic_mem_used(struct nic_device *dev, uint64_t addr, uint64_t len)
{
	const struct glexi_cfg *cfg = glexi_cfg();
	struct nic_hot *hot;
	bool enough;

	if (len < cfg->adopt_min)
		return false;
	pthread_mutex_lock(&dev->lock);
	hot = hot_of(dev, addr, len);
	enough = ++hot->uses % cfg->promote_after == 0;
	pthread_mutex_unlock(&dev->lock);
	return enough && nic_mem_promote(dev->dev, (void *)(uintptr_t)addr, len, true);
}

/* A region of this process that all of its pages were moved of, or to, often enough. */
static bool is_hot(struct nic_device *dev, uint32_t index, struct emu_region *region)
{
	uint64_t enough;
	uint32_t used = atomic_load_explicit(&dev->nic->used[index], memory_order_relaxed); /* relaxed: a number */

	if (used == 0 || !emu_mmt_at(dev->nic, index, region) || region->session != dev->welcome.session ||
	    region->way != EMU_WAY_ATTACH || region->len < lesser(HUGE, glexi_cfg()->adopt_min))
		return false;
	enough = (region->len / PAGE + 1) * glexi_cfg()->promote_after;
	/* relaxed: numbers; the one who takes it down is the one who acts */
	return used >= enough && atomic_exchange_explicit(&dev->nic->used[index], 0, memory_order_relaxed) >= enough;
}

void nic_mem_tend(struct nic_device *dev)
{
	/* relaxed: numbers */
	uint64_t attached = atomic_load_explicit(&dev->nic->counters.attached, memory_order_relaxed);
	struct emu_region region;
	uint32_t i;

	if (attached == atomic_load_explicit(&dev->tended, memory_order_relaxed)) /* relaxed: see above */
		return;
	atomic_store_explicit(&dev->tended, attached, memory_order_relaxed); /* relaxed: see above */
	for (i = 0; i < EMU_MMT_UNITS; i++)
		if (is_hot(dev, i, &region))
			nic_mem_promote(dev->dev, (void *)(uintptr_t)region.addr, region.len,
					!(region.access & EMU_ACCESS_KEPT));
}
