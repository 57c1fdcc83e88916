/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vma.h - what the kernel knows of a range of this process's addresses.
 *
 * Half a microsecond by an ioctl of the kernel (since 6.11); before, the text of
 * /proc/self/maps is read, which takes a microsecond a mapping.
 */
#ifndef GLEXI_VMA_H
#define GLEXI_VMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nic_vma {
	uint64_t start, end;
	uint64_t offset;   /* in the file */
	uint64_t dev, ino; /* ino 0: no file */
	uint64_t page;	   /* size; 0: unknown */
	bool readable, writable, executable, shared;
	char name[256]; /* "" where it has none; cut off if longer */
};

/* What nic_vma_find needs; -1: no /proc.  Is of the process that opened it: not for its children. */
int nic_vma_open(void);

/* The mapping that holds addr, or the next above it.  False: there is none, or /proc cannot be read. */
bool nic_vma_find(int fd, uint64_t addr, struct nic_vma *vma);

/* The same by text alone, as where the kernel has no better way. */
bool nic_vma_find_text(int fd, uint64_t addr, struct nic_vma *vma);

/*
 * All mappings, in the order of their addresses: the text is read once for all of
 * them, where nic_vma_find would read it from its beginning for each.  Meanwhile
 * nobody else may read by this descriptor: what others map and unmap then moves
 * no line that is still to come.
 */
struct nic_vma_walk {
	int fd;
	bool text;	   /* the kernel has no better way */
	bool cut;	   /* what is to come of the text is the rest of a line */
	uint64_t next;	   /* the last one's end */
	int64_t at;	   /* of the text, that was read */
	size_t have, used; /* of buf, that is there, and is done with */
	char buf[1024];	   /* longer lines are cut: no name that struct nic_vma has room for */
};

void nic_vma_walk(struct nic_vma_walk *walk, int fd);

/* False: that was all. */
bool nic_vma_next(struct nic_vma_walk *walk, struct nic_vma *vma);

/* Memory of no file, not shared, that the program may write, and no stack. */
bool nic_vma_is_plain(const struct nic_vma *vma);

#endif /* GLEXI_VMA_H */
