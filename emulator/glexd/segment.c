/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment.c - shared memory without a name.
 *
 * The space is allocated before anyone maps it, and sealed against shrinking,
 * so no process that holds it can ever get SIGBUS; the kernel frees it with the
 * last descriptor and mapping.  Its pages are zeroed by who touches them first:
 * clients, as they map it, do so side by side, where glexd would do it for one
 * after the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cfg/log.h"
#include "emulator/glexd/glexd.h"

/* Which limit is in the way. */
static const char *hint(int error, bool mapping)
{
	if (error == EMFILE || error == ENFILE)
		return "ulimit -Hn: each endpoint and each piece of shared memory takes a descriptor";
	return mapping ? "ulimit -v and vm.max_map_count" : "ulimit -f and the memory limits of this session";
}

static int fail(struct segment *seg, const char *what, const char *step, bool mapping, int error)
{
	if (what)
		glexi_error("%s for %s failed: %llu KiB: %s; see %s", step, what,
			    (unsigned long long)(seg->size / 1024), strerror(error), hint(error, mapping));
	segment_destroy(seg);
	errno = error;
	return -1;
}

uint64_t segment_round(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

int segment_create(struct segment *seg, const char *what, uint64_t size)
{
	int error;

	size = segment_round(size);
	seg->base = NULL;
	seg->size = size;
	seg->fd = memfd_create("glex", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (seg->fd < 0)
		return fail(seg, what, "creating shared memory", false, errno);
	error = posix_fallocate(seg->fd, 0, (off_t)size);
	if (error)
		return fail(seg, what, "allocating shared memory", false, error);
	if (fcntl(seg->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return fail(seg, what, "sealing shared memory", false, errno);
	seg->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, seg->fd, 0);
	if (seg->base == MAP_FAILED) {
		seg->base = NULL;
		return fail(seg, what, "mapping shared memory", true, errno);
	}
	return 0;
}

void segment_destroy(struct segment *seg)
{
	if (seg->base)
		munmap(seg->base, seg->size);
	if (seg->fd >= 0)
		close(seg->fd);
	seg->base = NULL;
	seg->fd = -1;
}
