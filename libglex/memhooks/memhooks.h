/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memhooks.h - between libglex-memhooks.so and libglex.so.
 *
 * The hooks library is preloaded, or linked to the program, and knows nothing of
 * libglex; libglex looks for it by name when it needs it, and connects.
 */
#ifndef GLEX_MEMHOOKS_H
#define GLEX_MEMHOOKS_H

#include <stdint.h>

#define GLEX_MEMHOOKS_VERSION 2

enum glex_memhooks_kind {
	GLEX_MEMHOOKS_UNMAP,
	GLEX_MEMHOOKS_MOVE,
	GLEX_MEMHOOKS_DISCARD,
	GLEX_MEMHOOKS_RELEASE, /* to the allocator */
};

struct glex_memhooks_change {
	enum glex_memhooks_kind kind;
	int how; /* DISCARD: of madvise; MOVE: mremap's flags */
	uint64_t addr, len;
	uint64_t to, to_len; /* MOVE that was done: where it is now */
};

/* Called around the change, by the thread that makes it, in whatever state the program is. */
struct glex_memhooks_client {
	uint32_t version;
	void (*begin)(const struct glex_memhooks_change *change);
	void (*end)(const struct glex_memhooks_change *change, int done);
};

/*
 * From now on the client is told, for ever: it lives as long as the process.
 * Also makes malloc keep what it cannot be seen giving back.  0, or -1: not this version.
 */
int glex_memhooks_connect(const struct glex_memhooks_client *client);

typedef int (*glex_memhooks_connect_fn)(const struct glex_memhooks_client *client);

#endif /* GLEX_MEMHOOKS_H */
