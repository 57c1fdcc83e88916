/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt_shown.c - what of the memfd is mapped somewhere; what is not goes back to
 * the system.
 *
 *   memfd   |....|=====|......|===|........|====|...
 *   shown        ^ first, sorted ^         ^          a list, of one look at all mappings
 *                    by where in the memfd they begin
 *
 * The program maps, moves and protects adopted memory as it likes, and only the
 * kernel knows what is where.  It is asked for all mappings at once: where it has
 * to be asked by text, each look takes a microsecond a mapping.
 *
 * All of this is under nic_adopt.lock, and without an allocation: whoever unmaps
 * comes here, from inside malloc too.
 */
#include "backend/nic/nic.h"

#include <fcntl.h>

#include "backend/nic/adopt.h"

#define SHOWN_MAX 1024u

struct shown {
	uint64_t offset; /* in the memfd */
	uint64_t start, end;
};

/* The first ones; more: there are others, that begin where the last one does or behind. */
static struct {
	struct shown at[SHOWN_MAX];
	uint32_t count;
	bool more;
} shown;

void nic_adopt_punch(uint64_t from, uint64_t to)
{
	fallocate(nic_adopt.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
}

/* ---- the list ------------------------------------------------------------------------- */

static uint64_t stop_of(const struct shown *part)
{
	return part->offset + (part->end - part->start);
}

static void enter(const struct nic_vma *vma)
{
	uint32_t i;

	if (shown.count == SHOWN_MAX) {
		shown.more = true;
		if (vma->offset >= shown.at[SHOWN_MAX - 1].offset)
			return;
		shown.count--;
	}
	for (i = shown.count++; i > 0 && shown.at[i - 1].offset > vma->offset; i--)
		shown.at[i] = shown.at[i - 1];
	shown.at[i] = (struct shown){vma->offset, vma->start, vma->end};
}

/* Anew, of what shows the memfd from `from` on. */
static void look(uint64_t from)
{
	struct nic_vma_walk walk;
	struct nic_vma vma;

	shown.count = 0;
	shown.more = false;
	nic_vma_walk(&walk, nic_adopt.vma_fd);
	while (nic_vma_next(&walk, &vma))
		if (nic_adopt_shows(&vma) && vma.offset + (vma.end - vma.start) > from)
			enter(&vma);
}

/* What is listed at `at` or first behind it, below `end`; NULL: nothing. */
static const struct shown *listed_from(uint64_t at, uint64_t end)
{
	for (uint32_t i = 0; i < shown.count && shown.at[i].offset < end; i++)
		if (stop_of(&shown.at[i]) > at)
			return &shown.at[i];
	return NULL;
}

/* The same of what is shown.  After look(), with nothing mapped or unmapped since. */
static const struct shown *shown_from(uint64_t at, uint64_t end)
{
	const struct shown *part = listed_from(at, end);

	if (!part && shown.more) {
		look(at);
		part = listed_from(at, end);
	}
	return part;
}

bool nic_adopt_is_free(uint64_t from, uint64_t to)
{
	look(from);
	if (shown_from(from, to))
		return false;
	nic_adopt_punch(from, to);
	return true;
}

bool nic_adopt_is_shown_elsewhere(uint64_t from, uint64_t to, uint64_t addr, uint64_t end)
{
	struct nic_vma_walk walk;
	struct nic_vma vma;

	nic_vma_walk(&walk, nic_adopt.vma_fd);
	while (nic_vma_next(&walk, &vma)) {
		uint64_t first = from > vma.offset ? from : vma.offset;
		uint64_t stop = vma.offset + (vma.end - vma.start);

		stop = to < stop ? to : stop;
		if (nic_adopt_shows(&vma) && first < stop &&
		    (vma.start + (first - vma.offset) < addr || vma.start + (stop - vma.offset) > end))
			return true;
	}
	return false;
}

/* ---- what goes back ----------------------------------------------------------------------- */

/* Punches what of the piece's window no mapping shows; false: none shows anything of it. */
static bool settle_piece(struct adopt_piece *piece)
{
	uint64_t at = piece->offset >> ADOPT_WINDOW << ADOPT_WINDOW, end = at + (UINT64_C(1) << ADOPT_WINDOW);
	const struct shown *part;
	bool any = false;

	while (at < end && (part = shown_from(at, end))) {
		if (part->offset > at)
			nic_adopt_punch(at, part->offset);
		/* in whatever order they lie: what is behind in the memfd may have been moved below what is in front */
		piece->start = any && piece->start < part->start ? piece->start : part->start;
		piece->end = any && piece->end > part->end ? piece->end : part->end;
		at = stop_of(part);
		any = true;
	}
	if (at < end)
		nic_adopt_punch(at, end);
	return any;
}

static bool is_in(const struct adopt_piece *piece, uint64_t start, uint64_t end)
{
	return piece->start < end && start < piece->end;
}

void nic_adopt_settle(uint64_t start, uint64_t end)
{
	/* relaxed: under the lock */
	uint32_t i = 0, count = atomic_load_explicit(&nic_adopt.count, memory_order_relaxed);
	bool looked = false;

	while (i < count) {
		struct adopt_piece *piece = &nic_adopt.piece[i];
		bool in = is_in(piece, start, end);

		if (in && !looked)
			look(0);
		looked |= in;
		if (in && !settle_piece(piece))
			*piece = nic_adopt.piece[--count];
		else
			i++;
	}
	atomic_store_explicit(&nic_adopt.count, count, memory_order_relaxed); /* relaxed: see above */
}

void nic_adopt_sweep(void)
{
	nic_adopt_settle(0, UINT64_MAX);
}
