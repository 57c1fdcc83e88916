/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps.c - what the process itself may do with its memory, read from the kernel.
 *
 * Asked only when regions of different rights overlap.  Allocates nothing.
 */
#include "rcache/rcache.h"

#include <fcntl.h>
#include <unistd.h>

/* A line of /proc/self/maps begins with `from-to rwxp`; this follows its characters one by one. */
struct reader {
	uint64_t from, to;
	int field; /* 0 from, 1 to, 2 r, 3 w, 4 the rest */
	bool writable;
};

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* True at the end of a line. */
static bool step(struct reader *reader, char c)
{
	uint64_t *number = reader->field == 0 ? &reader->from : &reader->to;

	if (c == '\n')
		return true;
	if (reader->field < 2 && hex_digit(c) >= 0)
		*number = *number * 16 + (uint64_t)hex_digit(c);
	else if (reader->field < 4)
		reader->writable = reader->field++ == 3 && c == 'w';
	return false;
}

bool rcache_writable(uint64_t start, uint64_t end)
{
	struct reader reader = {0};
	char text[4096];
	ssize_t n = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	/* lines come in ascending order: start moves on over those that are writable, without a gap */
	while (start < end && (n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n && start < end; i++) {
			if (!step(&reader, text[i]))
				continue;
			if (reader.writable && reader.from <= start && start < reader.to)
				start = reader.to;
			reader = (struct reader){0};
		}
	}
	close(fd);
	return start >= end;
}
