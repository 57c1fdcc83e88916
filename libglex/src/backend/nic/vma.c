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

/* Reads on until buf holds a whole line, or is full, or there is no more.  False: there is no line left. */
static bool next_piece(struct nic_vma_walk *walk)
{
	memmove(walk->buf, walk->buf + walk->used, walk->have - walk->used);
	walk->have -= walk->used;
	while (!memchr(walk->buf, '\n', walk->have) && walk->have < sizeof(walk->buf) - 1) {
		ssize_t n = pread(walk->fd, walk->buf + walk->have, sizeof(walk->buf) - 1 - walk->have, walk->at);

		if (n <= 0)
			break;
		walk->have += (size_t)n;
		walk->at += n;
	}
	walk->buf[walk->have] = '\0';
	walk->used = strcspn(walk->buf, "\n");
	return walk->have > 0;
}

/* The same; lines longer than buf are cut. */
static bool next_line(struct nic_vma_walk *walk)
{
	bool rest;

	do {
		if (!next_piece(walk))
			return false;
		rest = walk->cut;
		walk->cut = walk->buf[walk->used] != '\n';
		walk->used += !walk->cut;
	} while (rest);
	return true;
}

void nic_vma_walk(struct nic_vma_walk *walk, int fd)
{
	*walk = (struct nic_vma_walk){.fd = fd};
}

/* Without an allocation, as nic_vma_find: it may be called from inside the allocator. */
bool nic_vma_next(struct nic_vma_walk *walk, struct nic_vma *vma)
{
	int found = walk->text ? -1 : ask(walk->fd, walk->next, vma);

	walk->text = found < 0;
	while (found < 0)
		found = next_line(walk) ? (parse(walk->buf, vma) && vma->end > walk->next ? 1 : -1) : 0;
	if (found)
		walk->next = vma->end;
	return found;
}

/* By several threads at once. */
bool nic_vma_find_text(int fd, uint64_t addr, struct nic_vma *vma)
{
	struct nic_vma_walk walk;

	nic_vma_walk(&walk, fd);
	walk.text = true;
	walk.next = addr;
	return nic_vma_next(&walk, vma);
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
