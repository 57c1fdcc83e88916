/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.c - memory that is shareable from the start: sealed memfds, mapped here
 * and known to glexd as shared objects.
 *
 * The memory is really there before anybody has its address.  Huge pages: the
 * mapping begins where one can, and MADV_COLLAPSE makes them of the pages, also
 * where the system gives shared memory none by itself.  Peers find them when they
 * map the object.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cfg/log.h"
#include "core/memwatch.h"

#define HUGE (UINT64_C(2) << 20)

/* How many of the len bytes at addr lie in it. */
static uint64_t overlap(const struct nic_alloc *alloc, const unsigned char *addr, uint64_t len)
{
	const unsigned char *from = addr > alloc->base ? addr : alloc->base;
	const unsigned char *end = addr + len < alloc->base + alloc->len ? addr + len : alloc->base + alloc->len;

	return from < end ? (uint64_t)(end - from) : 0;
}

struct nic_alloc *nic_alloc_most(struct nic_device *dev, const unsigned char *addr, uint64_t len)
{
	struct nic_alloc *alloc, *most = NULL;

	LIST_FOREACH(alloc, &dev->allocs, link)
	if (overlap(alloc, addr, len) > (most ? overlap(most, addr, len) : 0))
		most = alloc;
	return most;
}

/* ---- a memfd ------------------------------------------------------------------- */

/* The pages that are made from here on come from that node, as long as it has any. */
static void prefer_node(int fd, uint64_t len, int node)
{
	unsigned long mask[GLEXI_NODES / (8 * sizeof(unsigned long))] = {0};
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	long failed = -1;

	mask[(unsigned)node / (8 * sizeof(mask[0]))] |= 1ul << (unsigned)node % (8 * sizeof(mask[0]));
	if (base != MAP_FAILED) {
		failed = syscall(SYS_mbind, base, len, MPOL_PREFERRED, mask, GLEXI_NODES + 1, 0);
		munmap(base, len);
	}
	if (failed)
		glexi_info("memory of glex_alloc is not of NUMA node %d in particular: %s", node, strerror(errno));
}

/* errno's value. */
static int fill_memory(int fd, uint64_t len, const struct glexi_alloc_wish *wish)
{
	if (ftruncate(fd, (off_t)len) < 0)
		return errno;
	if (wish->node >= 0)
		prefer_node(fd, len, wish->node);
	return posix_fallocate(fd, 0, (off_t)len);
}

/* A sealed memfd of len bytes; -1 with errno. */
static int make_memory(uint64_t len, const struct glexi_alloc_wish *wish)
{
	struct rlimit limit;
	int fd, error;

	/* Beyond it the system would not only refuse, but send a signal that ends the process. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && len > limit.rlim_cur) {
		errno = EFBIG;
		return -1;
	}
	fd = memfd_create("glex_alloc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	error = fill_memory(fd, len, wish);
	if (!error && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		error = errno;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

/* ---- its mapping ---------------------------------------------------------------- */

unsigned char *nic_map_aligned(uint64_t len, int prot, int flags, int fd, uint64_t offset)
{
	unsigned char *room, *base;

	if (len < HUGE)
		return mmap(NULL, len, prot, flags, fd, (off_t)offset);
	room = mmap(NULL, len + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return mmap(NULL, len, prot, flags, fd, (off_t)offset);
	base = room + (offset - (uintptr_t)room) % HUGE;
	if (mmap(base, len, prot, flags | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED) {
		munmap(room, len + HUGE);
		return MAP_FAILED;
	}
	if (base > room)
		munmap(room, (size_t)(base - room));
	munmap(base + len, (size_t)(room + HUGE - base));
	return base;
}

static glex_ret_t no_memory(uint64_t len, const char *step, const char *why)
{
	glexi_error("%s %llu KiB of shareable memory failed: %s", step, (unsigned long long)(len / 1024), why);
	return GLEX_NO_MEM_RESOURCE;
}

/* Makes huge pages of what is there, as far as that goes. */
static void make_huge(struct nic_device *dev, unsigned char *base, uint64_t len)
{
	uint64_t units = len / HUGE, done = nic_collapse(dev, (uintptr_t)base, (uintptr_t)base + units * HUGE);
	int why = errno;

	glexi_info("memory of glex_alloc: %llu of %llu units of 2 MiB are huge pages%s%s", (unsigned long long)done,
		   (unsigned long long)units, done < units ? ": " : "", done < units ? strerror(why) : "");
}

/* Maps fd and makes it known to glexd.  Fills alloc; a failure is logged. */
static glex_ret_t publish(struct nic_device *dev, int fd, const struct glexi_alloc_wish *wish, struct nic_alloc *alloc)
{
	struct emu_ctl_msg msg = {.share = {.len = alloc->len, .untouched = wish->untouched}};
	int flags = MAP_SHARED | (wish->untouched ? 0 : MAP_POPULATE);
	void *base = nic_map_aligned(alloc->len, PROT_READ | PROT_WRITE, flags, fd, 0);
	int status;

	if (base == MAP_FAILED)
		return no_memory(alloc->len, "mapping", strerror(errno));
	if (wish->huge && alloc->len >= HUGE)
		make_huge(dev, base, alloc->len);
	status = nic_ctl_call(&dev->ctl, EMU_CTL_SHARE, &msg, fd, NULL);
	if (status != EMU_CTL_OK) {
		munmap(base, alloc->len);
		return status < 0 ? glexi_device_lost(dev->dev)
				  : no_memory(alloc->len, "sharing", nic_ctl_status_str(status));
	}
	alloc->base = base;
	alloc->id = msg.share.id;
	return GLEX_SUCCESS;
}

glex_ret_t nic_alloc(struct glexi_device *device, uint64_t len, const struct glexi_alloc_wish *wish, void **addr_p)
{
	struct nic_device *dev = device->be;
	struct nic_alloc *alloc = calloc(1, sizeof(*alloc));
	glex_ret_t ret;
	int fd;

	if (!alloc)
		return GLEX_NO_MEM_RESOURCE;
	alloc->len = len;
	fd = make_memory(len, wish);
	ret = fd < 0 ? no_memory(len, "allocating", strerror(errno)) : publish(dev, fd, wish, alloc);
	if (fd >= 0)
		close(fd);
	if (ret != GLEX_SUCCESS) {
		free(alloc);
		return ret;
	}
	pthread_mutex_lock(&dev->lock);
	LIST_INSERT_HEAD(&dev->allocs, alloc, link);
	pthread_mutex_unlock(&dev->lock);
	atomic_fetch_add_explicit(&dev->alloc_count, 1, memory_order_relaxed); /* relaxed: see choose_way */
	*addr_p = alloc->base;
	return GLEX_SUCCESS;
}

/*
 * Peers that have it mapped have not heard of its end yet, and its pages would stay as
 * long as that takes.  What is locked is not given back.
 */
static void give_pages_back(const struct nic_alloc *alloc)
{
	if (syscall(SYS_madvise, alloc->base, alloc->len, MADV_REMOVE) == 0)
		return;
	syscall(SYS_munlock, alloc->base, alloc->len);
	syscall(SYS_madvise, alloc->base, alloc->len, MADV_REMOVE);
}

static void discard_alloc(struct nic_alloc *alloc)
{
	give_pages_back(alloc);
	munmap(alloc->base, alloc->len);
	free(alloc);
}

glex_ret_t nic_free(struct glexi_device *device, void *addr)
{
	struct nic_device *dev = device->be;
	struct emu_ctl_msg msg = {0};
	struct glexi_mem_change change = {.kind = GLEXI_MEM_UNMAP, .addr = (uintptr_t)addr};
	struct nic_alloc *alloc;

	pthread_mutex_lock(&dev->lock);
	alloc = nic_alloc_most(dev, addr, 1);
	if (alloc && alloc->base == addr)
		LIST_REMOVE(alloc, link);
	else
		alloc = NULL;
	pthread_mutex_unlock(&dev->lock);
	if (!alloc)
		return GLEX_INVALID_PARAM;
	atomic_fetch_sub_explicit(&dev->alloc_count, 1, memory_order_relaxed); /* relaxed: see choose_way */
	msg.share.id = alloc->id;
	change.len = alloc->len;
	glexi_memwatch_begin(&change);
	nic_ctl_call(&dev->ctl, EMU_CTL_UNSHARE, &msg, -1, NULL);
	discard_alloc(alloc);
	glexi_memwatch_end(&change, true);
	return GLEX_SUCCESS;
}

void nic_allocs_free(struct nic_device *dev)
{
	struct nic_alloc *alloc;

	while ((alloc = LIST_FIRST(&dev->allocs))) {
		LIST_REMOVE(alloc, link);
		discard_alloc(alloc);
	}
}
