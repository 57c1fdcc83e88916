/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick.c - finds out by measurement which way of copying suits which length.
 *
 * Of each copier and length the best of several short looks counts: whatever
 * disturbs a look only makes it longer.  The looks go round the copiers, so that
 * a clock that speeds up or slows down meets all.  Differences of a few hundredths
 * are noise: then it is the way of the class before, or the C library's, that
 * stays, and not whichever was lucky.
 */
#include "emulator/host/pick.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator/host/clock.h"

#define LONGEST	   (256u << 10) /* longer ones are copied as this one is: there it is the memory that counts */
#define LOOKS	   4
#define LOOK_BYTES (64u << 10) /* copied in one look, at least once */
#define BETTER_BY  0.97

static uint64_t look(enum emu_copier copier, unsigned char *dst, const unsigned char *src, uint32_t len)
{
	uint32_t copies = len < LOOK_BYTES ? LOOK_BYTES / len : 1;
	uint64_t start;

	emu_copy_run(copier, dst, src, len); /* warm */
	start = emu_now_ns();
	for (uint32_t i = 1; i <= copies; i++) {
		emu_copy_run(emu_copy_turned(copier, len, i), dst, src, len);
		__asm__ volatile("" : : "r"(dst) : "memory"); /* the next copy does not make this one needless */
	}
	return emu_now_ns() - start;
}

static void look_at_all(uint64_t best[EMU_COPIERS], unsigned char *dst, const unsigned char *src, uint32_t len)
{
	for (int i = 0; i < LOOKS; i++)
		for (int c = 0; c < EMU_COPIER_STREAM; c++) {
			uint64_t ns = emu_copier_works((enum emu_copier)c) ? look((enum emu_copier)c, dst, src, len)
									   : UINT64_MAX;

			if (best[c] == 0 || ns < best[c])
				best[c] = ns;
		}
}

static bool is_better(const uint64_t best[EMU_COPIERS], int one, int other)
{
	return (double)best[one] < (double)best[other] * BETTER_BY;
}

/* Who has the shortest look; but stay with usual, or with the C library's, if that is hardly longer. */
static enum emu_copier best_of(const uint64_t best[EMU_COPIERS], enum emu_copier usual)
{
	int pick = EMU_COPIER_LIBC;

	for (int c = 0; c < EMU_COPIER_STREAM; c++)
		if (best[c] < best[pick])
			pick = c;
	if (!is_better(best, pick, usual))
		return usual;
	return is_better(best, pick, EMU_COPIER_LIBC) ? (enum emu_copier)pick : EMU_COPIER_LIBC;
}

/* Beyond the last cache nobody finds the bytes there anyway. */
static uint64_t stream_from(void)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);

	if (!emu_copier_works(EMU_COPIER_STREAM) || cache <= 0)
		return 0;
	return (uint64_t)cache * 3 / 4;
}

void emu_pick_copiers(struct emu_looks *looks, struct emu_engine *engine)
{
	unsigned char *room =
		mmap(NULL, 2 * LONGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	enum emu_copier pick = EMU_COPIER_LIBC;
	uint64_t picks = 0;

	if (room == MAP_FAILED)
		return;
	for (uint32_t k = 0; k < EMU_COPY_CLASSES; k++) {
		uint32_t len = EMU_COPY_CLASS_MIN << k;

		/* Powers of two are what is copied most. */
		if (len <= LONGEST) {
			look_at_all(looks->ns[k], room + LONGEST, room, len);
			pick = best_of(looks->ns[k], pick);
		}
		picks = emu_copy_pick(picks, k, pick);
	}
	munmap(room, 2 * LONGEST);
	/* relaxed: any picks will do */
	atomic_store_explicit(&engine->stream_from, stream_from(), memory_order_relaxed); /* relaxed: see above */
	atomic_store_explicit(&engine->copiers, picks, memory_order_relaxed);		  /* relaxed: see above */
}
