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

/* Memory of no file, not shared, that the program may write, and no stack. */
bool nic_vma_is_plain(const struct nic_vma *vma);

#endif /* GLEXI_VMA_H */
