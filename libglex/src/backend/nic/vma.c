/* SPDX-License-Identifier: BSD-2-Clause */
/* vma.c - see vma.h. */
#include "backend/nic/vma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAPS "/proc/self/maps"

/* As in linux/fs.h since 6.11; older headers have it not, older kernels answer ENOTTY. */
struct vma_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start, vma_end, vma_flags;
	uint64_t vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

#define VMA_QUERY	_IOWR('f', 17, struct vma_query)
#define QUERY_OR_NEXT	0x10u
#define FLAG_READABLE	0x01u
#define FLAG_WRITABLE	0x02u
#define FLAG_EXECUTABLE 0x04u
#define FLAG_SHARED	0x08u

int nic_vma_open(void)
{
	return open(MAPS, O_RDONLY | O_CLOEXEC);
}

static void take_query(const struct vma_query *query, struct nic_vma *vma)
{
	vma->start = query->vma_start;
	vma->end = query->vma_end;
	vma->offset = query->vma_offset;
	vma->dev = makedev(query->dev_major, query->dev_minor);
	vma->ino = query->inode;
	vma->page = query->vma_page_size;
	vma->readable = query->vma_flags & FLAG_READABLE;
	vma->writable = query->vma_flags & FLAG_WRITABLE;
	vma->executable = query->vma_flags & FLAG_EXECUTABLE;
	vma->shared = query->vma_flags & FLAG_SHARED;
	if (query->vma_name_size == 0)
		vma->name[0] = '\0';
}

/* 1: found, 0: there is none, -1: this kernel cannot say. */
static int ask(int fd, uint64_t addr, struct nic_vma *vma)
{
	struct vma_query query = {
		.size = sizeof(query),
		.query_flags = QUERY_OR_NEXT,
		.query_addr = addr,
		.vma_name_size = sizeof(vma->name),
		.vma_name_addr = (uintptr_t)vma->name,
	};

	if (ioctl(fd, VMA_QUERY, &query) < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno != ENAMETOOLONG)
			return -1;
		query.vma_name_size = 0;
		query.vma_name_addr = 0;
		if (ioctl(fd, VMA_QUERY, &query) < 0)
			return -1;
	}
	take_query(&query, vma);
	return 1;
}

/* One line of the text.  False: it is none. */
static bool parse(const char *line, struct nic_vma *vma)
{
	unsigned long long start, end, offset, ino;
	unsigned major, minor;
	char mode[5];
	int at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu%n", &start, &end, mode, &offset, &major, &minor, &ino, &at) < 7)
		return false;
	*vma = (struct nic_vma){
		.start = start,
		.end = end,
		.offset = offset,
		.dev = makedev(major, minor),
		.ino = ino,
		.readable = mode[0] == 'r',
		.writable = mode[1] == 'w',
		.executable = mode[2] == 'x',
		.shared = mode[3] == 's',
	};
	at += (int)strspn(line + at, " "); /* and not into the next line, as sscanf would */
	snprintf(vma->name, sizeof(vma->name), "%.*s", (int)strcspn(line + at, "\n"), line + at);
	return true;
}

/*
 * Reads on until buf holds a whole line, or the end.  used: bytes of it that are
 * done with; at: of the file, that were read.  A line longer than buf is cut.
 * False: there is no line left.
 */
static bool next_line(int fd, off_t *at, char *buf, size_t size, size_t *have, size_t *used)
{
	memmove(buf, buf + *used, *have - *used);
	*have -= *used;
	*used = 0;
	while (!memchr(buf, '\n', *have) && *have < size - 1) {
		ssize_t n = pread(fd, buf + *have, size - 1 - *have, *at);

		if (n <= 0)
			break;
		*have += (size_t)n;
		*at += n;
	}
	buf[*have] = '\0';
	*used = strcspn(buf, "\n");
	*used += buf[*used] == '\n';
	return *used > 0;
}

/* Without an allocation: it may be called from inside the allocator; by several threads at once. */
bool nic_vma_find_text(int fd, uint64_t addr, struct nic_vma *vma)
{
	char buf[4096 + 128]; /* a path, and what stands before it */
	size_t have = 0, used = 0;
	bool found = false;
	off_t at = 0;

	while (!found && next_line(fd, &at, buf, sizeof(buf), &have, &used))
		found = parse(buf, vma) && vma->end > addr;
	return found;
}

bool nic_vma_find(int fd, uint64_t addr, struct nic_vma *vma)
{
	int found = ask(fd, addr, vma), now;

	if (found >= 0)
		return found > 0;
	now = fd < 0 ? nic_vma_open() : fd; /* there was none when it was wanted */
	found = nic_vma_find_text(now, addr, vma);
	if (fd < 0 && now >= 0)
		close(now);
	return found > 0;
}

bool nic_vma_is_plain(const struct nic_vma *vma)
{
	return !vma->shared && vma->ino == 0 && vma->readable && vma->writable && !vma->executable &&
	       strcmp(vma->name, "[stack]") != 0;
}
