/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt.h - private memory moved into a shared mapping, in place.
 *
 * All of it lies in one sealed memfd of this process, each piece in a window of
 * its own, 2^40 bytes wide:
 *
 *   addresses  ....|== piece ==|.....................|== piece ==|....
 *                     \                                  |
 *   memfd      |.......|=========|............|.......|=========|.....
 *              window 0                       window 1
 *
 * A piece begins in the middle of its window, and where its address lies in a
 * huge page.  What is adopted beside it later, for a region over both, comes
 * beside it in the file too, so that both are one mapping.  Else the file is
 * empty behind it: who makes the mapping longer reads zeros there, as of private
 * memory.  From then on the piece is a shared mapping like those the program
 * makes itself, and file.c shares it.
 */
#ifndef GLEXI_ADOPT_H
#define GLEXI_ADOPT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/nic/vma.h"
#include "core/memwatch.h"

#define ADOPT_FILE   (INT64_C(1) << 60)
#define ADOPT_WINDOW 40	  /* bits */
#define ADOPT_MAX    512u /* pieces at once: each is one or two more mappings, and a descriptor of glexd */
#define ADOPT_ROOMS  ((uint64_t)ADOPT_FILE >> ADOPT_WINDOW) /* windows; far more than pieces */

struct adopt_piece {
	uint64_t start, end; /* between these all of it was last seen: the program may move it, in parts too */
	uint64_t offset;     /* in the memfd; of the first that was moved into this window */
};

/* Of the process, whatever devices come and go. */
struct adopt {
	pthread_mutex_t turn; /* one thread adopts at a time; taken before `lock`, and before changes are paused */
	pthread_mutex_t lock; /* nobody allocates or frees with it, for memory's changes are reported from in there */
	int fd;		      /* -1: nothing was adopted yet */
	int vma_fd;	      /* of nic_vma_open, as long as fd: later there may be no descriptor left */
	uint64_t dev, ino;
	uint64_t window;	/* to be tried next; one that a piece has is passed over */
	_Atomic uint32_t count; /* written under the lock */
	struct adopt_piece piece[ADOPT_MAX];
};

extern struct adopt nic_adopt;

struct nic_device;

/*
 * Moves the plain private pages of [addr, end), whole pages, into the memfd.  Of
 * what lies apart in it then, all becomes one piece where that is safe.  False:
 * nothing was moved; *why_p says why.
 */
bool nic_adopt_range(struct nic_device *dev, uint64_t addr, uint64_t end, const char **why_p);

/* adopt_move.c: the descriptor by which pages are taken out from under who uses them; -1, *why_p: there is none. */
int nic_adopt_open_mover(const char **why_p);
/*
 * Moves the pages of [piece->start, piece->end) to piece->offset; the end becomes
 * where it stopped.  uffd: of open_mover, or -1.  False: nothing has moved.
 * Under the lock.
 */
bool nic_adopt_move(int uffd, int vma_fd, struct adopt_piece *piece, bool again);

/* A part of the memfd. */
static inline bool nic_adopt_is(uint64_t dev, uint64_t ino)
{
	return nic_adopt.fd >= 0 && nic_adopt.ino == ino && nic_adopt.dev == dev;
}

static inline bool nic_adopt_shows(const struct nic_vma *vma)
{
	return nic_adopt_is(vma->dev, vma->ino);
}

/* adopt_watch.c: learns from now on when adopted memory goes. */
void nic_adopt_watch(void);

/*
 * adopt_shown.c: what of the memfd is mapped, and giving back what is not.  All
 * under the lock, for nobody else may read by nic_adopt.vma_fd meanwhile.
 */

/* The memfd's bytes [from, to) are empty from here on. */
void nic_adopt_punch(uint64_t from, uint64_t to);
/* No mapping shows the memfd's bytes [from, to); they are empty then. */
bool nic_adopt_is_free(uint64_t from, uint64_t to);
/* Mappings other than [addr, end) show the memfd's bytes [from, to) too. */
bool nic_adopt_is_shown_elsewhere(uint64_t from, uint64_t to, uint64_t addr, uint64_t end);
/* Gives back to the system what is not mapped any more of the pieces last seen in [start, end); or of all. */
void nic_adopt_settle(uint64_t start, uint64_t end);
void nic_adopt_sweep(void);

#endif /* GLEXI_ADOPT_H */
