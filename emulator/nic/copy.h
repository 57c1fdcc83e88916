/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy.h - ways to copy many bytes, and which of them copies what.
 *
 * No way is the best for every length on every processor, so glexd measures
 * them when it starts (emulator/host/pick.c) and publishes one word of picks in
 * the engine's segment: a nibble, an enum emu_copier, for each class of lengths.
 * 0 says that nothing has been measured: the C library copies everything.
 *
 *   class    0    1    2    3  ...  13    14   15
 *   from   128  256  512   1K  ...  1M    2M   4M   bytes
 *
 * Stores past the cache are faster for the copier from the level-2 cache's size
 * on, but then whoever reads the bytes fetches them from memory: copy and read
 * together were measured to be slower at every length that the last cache holds.
 * So they begin where that ends, at `stream_from` (0: nowhere).
 *
 * Of copies of EMU_COPY_TURN_MIN bytes or more every other one begins at the back.  What
 * a program sends again and again from and to the same place just does not fit into a
 * cache, and always in the same order each line has gone when its turn comes; there and
 * back, the half that was copied last is found.  16 KiB in a first-level cache of 32:
 * 139 ns instead of 172; 32 KiB 422 instead of 573, 512 KiB in 1 MiB 9.6 instead of
 * 10.7 us.  Always from the back is as fast as always from the front.
 */
#ifndef EMU_COPY_H
#define EMU_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum emu_copier {
	EMU_COPIER_LIBC,   /* memcpy */
	EMU_COPIER_MOVSB,  /* rep movsb */
	EMU_COPIER_AVX2,   /* a loop of 32-byte moves */
	EMU_COPIER_AVX512, /* a loop of 64-byte moves */
	EMU_COPIER_STREAM, /* stores past the cache; ordered before what follows */
	EMU_COPIERS
};

#define EMU_COPY_CLASSES   16
#define EMU_COPY_CLASS_MIN 128u /* shorter ones copy as the first class does */

/* What a copier must be given at least. */
#define EMU_COPIER_MIN 72u

/* Whether this processor has it.  EMU_COPIER_LIBC always works. */
bool emu_copier_works(enum emu_copier copier);

/* A way of copying is an enum emu_copier, or that with EMU_COPY_BACK: from the back, if it can. */
#define EMU_COPY_BACK 8u
#define EMU_COPY_WAYS 16u

#define EMU_COPY_TURN_MIN 8192u /* with where it goes half of a first-level cache */

/*
 * Copies len >= EMU_COPIER_MIN bytes, which do not overlap, the last eight behind all
 * others: who polls for that word, aligned, finds the rest.  That is done in here so
 * that nothing has to be done after.  A copier that this processor has not, or that
 * is none, is the C library's.
 */
void emu_copy_run(uint32_t way, void *dst, const void *src, uint64_t len);

/*
 * Copies len bytes, which do not overlap, in any order.  Where there is another way
 * than memcpy an address sanitizer does not see it: on a heap it would find the gaps.
 */
void emu_copy_unwatched(void *dst, const void *src, uint64_t len);

const char *emu_copier_name(enum emu_copier copier);

/* One of them, as emu_copy_run calls it.  Always 0, so that who copies as the last thing can end in it. */
typedef int emu_copy_way(unsigned char *dst, const unsigned char *src, uint64_t len);

/* way[i] becomes what emu_copy_run would call here. */
void emu_copy_ways(emu_copy_way *way[EMU_COPY_WAYS]);

static inline uint32_t emu_copy_class(uint64_t len)
{
	uint32_t log = len < EMU_COPY_CLASS_MIN ? 7 : 63 - (uint32_t)__builtin_clzll(len);

	return log - 7 < EMU_COPY_CLASSES ? log - 7 : EMU_COPY_CLASSES - 1;
}

static inline uint64_t emu_copy_pick(uint64_t picks, uint32_t copy_class, enum emu_copier copier)
{
	return (picks & ~(UINT64_C(15) << 4 * copy_class)) | (uint64_t)copier << 4 * copy_class;
}

/* What picks and stream_from say of this length.  Any picks will do; a stream_from of 0 is never reached. */
static inline uint32_t emu_copier_for(uint64_t picks, uint64_t stream_from, uint64_t len)
{
	return stream_from - 1 < len ? EMU_COPIER_STREAM : (uint32_t)(picks >> 4 * emu_copy_class(len)) % EMU_COPY_BACK;
}

/* The way of that copier; turn: any number that is odd for every other copy. */
static inline uint32_t emu_copy_turned(uint32_t copier, uint64_t len, uint32_t turn)
{
	return copier | (len >= EMU_COPY_TURN_MIN) * (turn & 1) * EMU_COPY_BACK;
}

static inline bool emu_copy_overlaps(const void *dst, const void *src, uint64_t len)
{
	/* dst lies between src - len + 1 and src + len - 1 */
	return (uintptr_t)dst - (uintptr_t)src + len - 1 < 2 * len - 1;
}

#endif /* EMU_COPY_H */
