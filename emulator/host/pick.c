/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick.c - finds out by measurement which way of copying suits which length.
 *
 * Of each copier and length the best of several short looks counts: whatever
 * disturbs a look only makes it longer.  The looks go round the copiers, so that
 * a clock that speeds up or slows down meets all.  Differences of a few hundredths
 * are noise: then it is the way of the class before, or the C library's, that
 * stays, and not whichever was lucky.
 *
 * What copies between processes meets lines of two kinds: its own, and lines that the
 * other processor has read or written since.  A way that is good for the one may be bad for
 * the other, where stores reach a cache one by one unless the processor knows that whole
 * lines follow: on an EPYC 16 KiB within a cache take .08 us by 64-byte moves, .12 by
 * rep movsb; with lines of another core 4.3 and 1.9.  So both are looked at, and the sum
 * counts, with the latter twice.  One thread can do it, without another that has to run at the same time: it
 * uses the lines on one processor, and goes to the other to copy them.
 */
#include "emulator/host/pick.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator/host/clock.h"

#define LONGEST	   (256u << 10) /* longer ones are copied as this one is: there it is the memory that counts */
#define LOOKS	   4
#define LOOK_BYTES (64u << 10) /* copied in one look, at least once */
#define BETTER_BY  0.97

#define FAR_LONGEST   (32u << 10) /* longer ones take as much longer as they are */
#define FAR_BYTES     (8u << 10)  /* copied in one such look, at least once: those of all fit into a cache */
#define FAR_WALKS     2		  /* at a time */
#define FAR_BETTER_BY 0.95	  /* these looks vary more */
#define FAR_WEIGHT    2		  /* programs that touch what they send and receive meet nothing else */
#define LINE	      64u

/* Lines of one processor that another will copy. */
struct far_walk {
	struct emu_looks *looks;
	int from, to; /* processors */
	unsigned char *room;
	uint64_t read; /* of what was there */
};

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

/* ---- between processors ------------------------------------------------------ */

static uint32_t far_classes(void)
{
	return emu_copy_class(FAR_LONGEST) + 1;
}

static uint32_t far_bytes(uint32_t class)
{
	uint32_t len = EMU_COPY_CLASS_MIN << class;

	return len < FAR_BYTES ? FAR_BYTES : len;
}

/* Bytes of the first classes: what is copied, and as much to copy it to. */
static uint32_t far_room(uint32_t classes)
{
	uint32_t bytes = 0;

	for (uint32_t k = 0; k < classes; k++)
		bytes += 2 * far_bytes(k);
	return bytes;
}

static unsigned char *far_place(const struct far_walk *walk, int copier, uint32_t class)
{
	return walk->room + (uint32_t)copier * far_room(far_classes()) + far_room(class);
}

static bool go_to(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

/* The lines that will be written: it was we who did that last time, too. */
static void own_lines(struct far_walk *walk, int copier, uint32_t class)
{
	memset(far_place(walk, copier, class) + far_bytes(class), 1, far_bytes(class));
}

/* As a program does that makes what it sends, and reads what it got. */
static void use_lines(struct far_walk *walk, int copier, uint32_t class)
{
	unsigned char *src = far_place(walk, copier, class), *dst = src + far_bytes(class);

	for (uint32_t i = 0; i < far_bytes(class); i += LINE) {
		src[i]++;
		walk->read += dst[i];
	}
}

static void keep_shortest(uint64_t two[2], uint64_t ns)
{
	if (two[0] == 0 || ns < two[0]) {
		two[1] = two[0];
		two[0] = ns;
	} else if (two[1] == 0 || ns < two[1]) {
		two[1] = ns;
	}
}

static void look_from_afar(struct far_walk *walk, int copier, uint32_t class)
{
	unsigned char *src = far_place(walk, copier, class), *dst = src + far_bytes(class);
	unsigned char scrap[2 * EMU_COPY_CLASS_MIN] = {0};
	uint32_t len = EMU_COPY_CLASS_MIN << class;
	uint64_t ns;

	emu_copy_run((uint32_t)copier, scrap, scrap + EMU_COPY_CLASS_MIN, EMU_COPY_CLASS_MIN); /* warm: its code */
	ns = emu_now_ns();
	for (uint32_t at = 0; at < far_bytes(class); at += len)
		emu_copy_run((uint32_t)copier, dst + at, src + at, len);
	ns = emu_now_ns() - ns;
	/* as many as in a look at lines of the own cache */
	keep_shortest(walk->looks->far[class][copier], ns * LOOK_BYTES / far_bytes(class));
}

/* A step with the lines of each copier, those of the longest copies first: what has left the cache by the end is least. */
static void walk_over(struct far_walk *walk, void (*step)(struct far_walk *walk, int copier, uint32_t class))
{
	for (uint32_t k = far_classes(); k-- > 0;)
		for (int c = 0; c < EMU_COPIER_STREAM; c++)
			if (emu_copier_works((enum emu_copier)c))
				step(walk, c, k);
}

static void *walk_between(void *arg)
{
	struct far_walk *walk = arg;

	for (int i = 0; i < FAR_WALKS; i++) {
		if (!go_to(walk->to))
			break;
		walk_over(walk, own_lines);
		if (!go_to(walk->from))
			break;
		walk_over(walk, use_lines);
		if (!go_to(walk->to))
			break;
		walk_over(walk, look_from_afar);
	}
	return NULL;
}

/* Two processors, which are no halves of one where those are numbered last. */
static bool find_processors(struct far_walk *walk, const cpu_set_t *cores)
{
	cpu_set_t set = *cores;
	int count, seen = 0;

	if (CPU_COUNT(&set) == 0 && sched_getaffinity(0, sizeof(set), &set) != 0)
		return false;
	count = CPU_COUNT(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		if (seen == 0)
			walk->to = cpu;
		if (seen == 1 || seen == count / 2 - 1)
			walk->from = cpu;
		seen++;
	}
	return seen > 1;
}

static void look_between(struct emu_looks *looks, const cpu_set_t *cores)
{
	struct far_walk walk = {.looks = looks};
	size_t size = (size_t)EMU_COPIER_STREAM * far_room(far_classes());
	pthread_t walker;

	if (!find_processors(&walk, cores))
		return;
	walk.room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (walk.room == MAP_FAILED)
		return;
	if (pthread_create(&walker, NULL, walk_between, &walk) == 0)
		pthread_join(walker, NULL);
	munmap(walk.room, size);
}

/* ---- picking ----------------------------------------------------------------- */

/* Adds to cost what a class costs where another processor has had the lines, if it is known. */
static void add_far(const struct emu_looks *looks, uint32_t class, uint64_t cost[EMU_COPIERS])
{
	uint32_t far = class < far_classes() ? class : far_classes() - 1;

	/* A look at lines of the own cache copies LOOK_BYTES, or once if that is more. */
	for (int c = 0; c < EMU_COPIER_STREAM; c++)
		cost[c] += FAR_WEIGHT * looks->far[far][c][1] *
			   (EMU_COPY_CLASS_MIN << class > LOOK_BYTES ? (EMU_COPY_CLASS_MIN << class) / LOOK_BYTES : 1);
}

static bool is_better(const uint64_t cost[EMU_COPIERS], int one, int other, double by)
{
	return (double)cost[one] < (double)cost[other] * by;
}

/* Which costs least; but stay with usual, or with the C library's, if that is hardly dearer. */
static enum emu_copier best_of(const uint64_t cost[EMU_COPIERS], enum emu_copier usual, double by)
{
	int pick = EMU_COPIER_LIBC;

	for (int c = 0; c < EMU_COPIER_STREAM; c++)
		if (cost[c] < cost[pick])
			pick = c;
	if (!is_better(cost, pick, usual, by))
		return usual;
	return is_better(cost, pick, EMU_COPIER_LIBC, BETTER_BY) ? (enum emu_copier)pick : EMU_COPIER_LIBC;
}

/* Beyond the last cache nobody finds the bytes there anyway. */
static uint64_t stream_from(void)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);

	if (!emu_copier_works(EMU_COPIER_STREAM) || cache <= 0)
		return 0;
	return (uint64_t)cache * 3 / 4;
}

void emu_pick_copiers(struct emu_looks *looks, const cpu_set_t *cores, struct emu_engine *engine)
{
	unsigned char *room =
		mmap(NULL, 2 * LONGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	enum emu_copier near = EMU_COPIER_LIBC, pick = EMU_COPIER_LIBC;
	uint64_t picks = 0, cost[EMU_COPIERS];

	if (room == MAP_FAILED)
		return;
	look_between(looks, cores);
	for (uint32_t k = 0; k < EMU_COPY_CLASSES; k++) {
		uint32_t len = EMU_COPY_CLASS_MIN << k;

		/* Powers of two are what is copied most. */
		if (len <= LONGEST) {
			look_at_all(looks->ns[k], room + LONGEST, room, len);
			near = best_of(looks->ns[k], near, BETTER_BY);
			memcpy(cost, looks->ns[k], sizeof(cost));
			add_far(looks, k, cost);
			pick = best_of(cost, near, FAR_BETTER_BY);
		}
		picks = emu_copy_pick(picks, k, pick);
	}
	munmap(room, 2 * LONGEST);
	/* relaxed: any picks will do */
	atomic_store_explicit(&engine->stream_from, stream_from(), memory_order_relaxed); /* relaxed: see above */
	atomic_store_explicit(&engine->copiers, picks, memory_order_relaxed);		  /* relaxed: see above */
}
