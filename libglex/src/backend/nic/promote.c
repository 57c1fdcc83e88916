/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * promote.c - memory that is used often is moved to where it is reached faster.
 *
 * Huge pages: attach copies three times as fast out of them.  MADV_COLLAPSE puts
 * the whole 2 MiB units of a region into huge pages in place; nobody notices but
 * by the time it takes, so it is done once for a region, at the request of the
 * registration cache or when the same bytes are registered for the n-th time.  Only for memory of no
 * file: what a file's pages are is not ours to decide.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "cfg/cfg.h"
#include "cfg/log.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#define HUGE (UINT64_C(2) << 20)

static uint64_t round_up(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Asks for huge pages in the whole units of [addr, end) that are plain memory. */
static void collapse(struct nic_device *dev, uint64_t addr, uint64_t end)
{
	uint64_t done = 0, units = 0;
	struct nic_vma vma;
	int why = 0;

	while (addr < end && nic_vma_find(dev->vma_fd, addr, &vma) && vma.start < end) {
		uint64_t at = round_up(addr > vma.start ? addr : vma.start, HUGE), stop = lesser(end, vma.end);

		for (; nic_vma_is_plain(&vma) && at + HUGE <= stop; at += HUGE, units++) {
			if (madvise((void *)(uintptr_t)at, HUGE, MADV_COLLAPSE) == 0)
				done++;
			else
				why = errno;
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

void nic_mem_used(struct nic_device *dev, uint64_t addr, uint64_t len)
{
	struct nic_hot *hot;
	bool enough;

	if (len < HUGE)
		return;
	pthread_mutex_lock(&dev->lock);
	hot = hot_of(dev, addr, len);
	enough = ++hot->uses == glexi_cfg()->promote_after;
	pthread_mutex_unlock(&dev->lock);
	if (enough)
		nic_mem_promote(dev->dev, (void *)(uintptr_t)addr, len, false);
}

bool nic_mem_promote(struct glexi_device *device, void *addr, uint64_t len, bool quiet)
{
	struct nic_device *dev = device->be;
	uint64_t at = (uintptr_t)addr;
	struct nic_hot *hot;
	bool wanted;

	(void)quiet; /* huge pages need it not */
	if (len < HUGE || !glexi_cfg()->huge_pages)
		return false;
	pthread_mutex_lock(&dev->lock);
	hot = hot_of(dev, at, len);
	wanted = !hot->collapsed;
	hot->collapsed = true;
	pthread_mutex_unlock(&dev->lock);
	if (wanted)
		collapse(dev, at, at + len);
	return false;
}
