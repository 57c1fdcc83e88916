/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.c - memory that is shareable from the start: sealed memfds, mapped here
 * and known to glexd as shared objects.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cfg/log.h"
#include "core/memwatch.h"

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

/* A sealed memfd of len bytes; -1 with errno. */
static int make_memory(uint64_t len)
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
	error = posix_fallocate(fd, 0, (off_t)len);
	if (!error && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		error = errno;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

static glex_ret_t no_memory(uint64_t len, const char *step, const char *why)
{
	glexi_error("%s %llu KiB of shareable memory failed: %s", step, (unsigned long long)(len / 1024), why);
	return GLEX_NO_MEM_RESOURCE;
}

/* Maps fd and makes it known to glexd.  Fills alloc; a failure is logged. */
static glex_ret_t publish(struct nic_device *dev, int fd, struct nic_alloc *alloc)
{
	struct emu_ctl_msg msg = {.share = {.len = alloc->len}};
	void *base = mmap(NULL, alloc->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	int status;

	if (base == MAP_FAILED)
		return no_memory(alloc->len, "mapping", strerror(errno));
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

glex_ret_t nic_alloc(struct glexi_device *device, uint64_t len, void **addr_p)
{
	struct nic_device *dev = device->be;
	struct nic_alloc *alloc = calloc(1, sizeof(*alloc));
	glex_ret_t ret;
	int fd;

	if (!alloc)
		return GLEX_NO_MEM_RESOURCE;
	alloc->len = len;
	fd = make_memory(len);
	ret = fd < 0 ? no_memory(len, "allocating", strerror(errno)) : publish(dev, fd, alloc);
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

static void discard_alloc(struct nic_alloc *alloc)
{
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
