/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_limit.c - what the machine gives without GLEX.  No state but whose turn it is.
 *
 * label     access                     order     pairs     says
 * FUTEX-R1  waker    word = want       release   FUTEX-A1  what it did before
 * FUTEX-A1  sleeper  load word         acquire   FUTEX-R1
 */
#include "perf_limit.h"

#include "perf_base.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LOOKS	   7 /* at each way, to choose one */
#define LOOK_NS	   200000U
#define LONG_LOOKS 3 /* at the chosen one */
#define SLEEP_NS   50000000L

/* One way of moving len bytes; false: it does not work. */
struct way {
	bool (*move)(const struct way *way);
	void (*copy)(void *dst, const void *src, size_t len), (*back)(void *dst, const void *src, size_t len);
	void *dst;
	const void *src;
	size_t len, split;
	pid_t pid;
	uint64_t there;
};

/* At least so many moves, and for so long. */
static double look(const struct way *way, uint32_t least, uint64_t least_ns)
{
	uint64_t start = perf_now_ns(), ns;
	uint32_t times = 0;

	do {
		for (uint32_t i = 0; i < least; i++)
			if (!way->move(way))
				return 0;
		times += least;
		ns = perf_now_ns() - start;
	} while (ns < least_ns);
	return (double)way->len * times * 1e3 / (double)ns;
}

/* The way with the best median; the looks go round, so that a clock that speeds up or slows down meets all. */
static const struct way *best_of(const struct way *way, int count)
{
	double rate[8][LOOKS], best = 0;
	const struct way *found = way;

	for (int k = 0; k < LOOKS; k++)
		for (int i = 0; i < count; i++) {
			way[i].move(&way[i]); /* warm */
			rate[i][k] = look(&way[i], way[i].len < 1U << 20 ? 8 : 1, LOOK_NS);
		}
	for (int i = 0; i < count; i++) {
		struct perf_stat stat;

		perf_stat_of(rate[i], LOOKS, &stat);
		if (stat.p50 > best) {
			best = stat.p50;
			found = &way[i];
		}
	}
	return found;
}

/*
 * What it moves.  By looks of their own: of those that chose it, more were lucky than
 * of others.  Each as long as a sample of what is compared with it: short ones
 * fit between two interruptions, and their median would be that of no interruption.
 */
static double rate_of_best(const struct way *way, int count, uint32_t times)
{
	const struct way *best = best_of(way, count);
	struct perf_stat stat;
	double rate[LONG_LOOKS];

	best->move(best); /* warm */
	for (int k = 0; k < LONG_LOOKS; k++)
		rate[k] = look(best, times, 0);
	perf_stat_of(rate, LONG_LOOKS, &stat);
	return stat.p50;
}

/* ---- MEMCPY --------------------------------------------------------------- */

static void copy_libc(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

#if defined(__x86_64__)

typedef long long v32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef long long v64 __attribute__((vector_size(64), aligned(1), may_alias));

static void copy_movsb(void *dst, const void *src, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(len) : : "memory");
}

#define MOVE4(vec)                                                                                                     \
	do {                                                                                                           \
		vec a = *(const vec *)(const void *)(src + i), b = *(const vec *)(const void *)(src + i + v);          \
		vec c = *(const vec *)(const void *)(src + i + 2 * v),                                                 \
		    d = *(const vec *)(const void *)(src + i + 3 * v);                                                 \
                                                                                                                       \
		*(vec *)(void *)(dst + i) = a;                                                                         \
		*(vec *)(void *)(dst + i + v) = b;                                                                     \
		*(vec *)(void *)(dst + i + 2 * v) = c;                                                                 \
		*(vec *)(void *)(dst + i + 3 * v) = d;                                                                 \
	} while (0)

#define VECTOR_COPY(name, isa, vec)                                                                                    \
	__attribute__((target(isa))) static void name(void *dst_, const void *src_, size_t len)                        \
	{                                                                                                              \
		unsigned char *dst = dst_;                                                                             \
		const unsigned char *src = src_;                                                                       \
		size_t i, v = sizeof(vec);                                                                             \
                                                                                                                       \
		for (i = 0; i + 4 * v <= len; i += 4 * v)                                                              \
			MOVE4(vec);                                                                                    \
		memcpy(dst + i, src + i, len - i);                                                                     \
	}                                                                                                              \
                                                                                                                       \
	__attribute__((target(isa))) static void name##_back(void *dst_, const void *src_, size_t len)                 \
	{                                                                                                              \
		unsigned char *dst = dst_;                                                                             \
		const unsigned char *src = src_;                                                                       \
		size_t v = sizeof(vec), i = len / (4 * v) * (4 * v);                                                   \
                                                                                                                       \
		memcpy(dst + i, src + i, len - i);                                                                     \
		while (i > 0) {                                                                                        \
			i -= 4 * v;                                                                                    \
			MOVE4(vec);                                                                                    \
		}                                                                                                      \
	}

VECTOR_COPY(copy_avx2, "avx2", v32)
VECTOR_COPY(copy_avx512, "avx512f", v64)

#endif

static bool move_by_copy(const struct way *way)
{
	way->copy(way->dst, way->src, way->len);
	/* The compiler must not drop a copy that the next one overwrites. */
	__asm__ volatile("" : : "r"(way->dst) : "memory");
	return true;
}

/* Two of them, there and back: what was copied last is copied first, while it is in the cache. */
static bool move_in_turns(const struct way *way)
{
	static uint32_t turn;

	(++turn % 2 ? way->copy : way->back)(way->dst, way->src, way->len);
	__asm__ volatile("" : : "r"(way->dst) : "memory"); /* as above */
	return true;
}

double perf_copy_MBps(void *dst, const void *src, size_t len, uint32_t times)
{
	struct way way[6] = {{.move = move_by_copy, .copy = copy_libc}};
	int count = 1;

#if defined(__x86_64__)
	way[count++] = (struct way){.move = move_by_copy, .copy = copy_movsb};
	if (__builtin_cpu_supports("avx2")) {
		way[count++] = (struct way){.move = move_by_copy, .copy = copy_avx2};
		way[count++] = (struct way){.move = move_in_turns, .copy = copy_avx2, .back = copy_avx2_back};
	}
	if (__builtin_cpu_supports("avx512f")) {
		way[count++] = (struct way){.move = move_by_copy, .copy = copy_avx512};
		way[count++] = (struct way){.move = move_in_turns, .copy = copy_avx512, .back = copy_avx512_back};
	}
#endif
	for (int i = 0; i < count; i++) {
		way[i].dst = dst;
		way[i].src = src;
		way[i].len = len;
	}
	return rate_of_best(way, count, times);
}

/* ---- ATTACH --------------------------------------------------------------- */

static bool move_by_attach(const struct way *way, bool put)
{
	for (size_t done = 0; done < way->len; done += way->split) {
		size_t n = way->len - done < way->split ? way->len - done : way->split;
		struct iovec here = {.iov_base = (char *)way->dst + done, .iov_len = n};
		struct iovec there = {.iov_base = (void *)(uintptr_t)(way->there + done), .iov_len = n};
		ssize_t moved = put ? process_vm_writev(way->pid, &here, 1, &there, 1, 0)
				    : process_vm_readv(way->pid, &here, 1, &there, 1, 0);

		if (moved != (ssize_t)n)
			return false;
	}
	return true;
}

static bool move_by_read(const struct way *way)
{
	return move_by_attach(way, false);
}

static bool move_by_write(const struct way *way)
{
	return move_by_attach(way, true);
}

double perf_attach_MBps(pid_t pid, void *here, uint64_t there, size_t len, bool put, uint32_t times)
{
	static const size_t splits[] = {64U << 10, 256U << 10, 1U << 20, 4U << 20};
	struct way way[5];
	int count = 0;

	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]) && splits[i] < len; i++)
		way[count++].split = splits[i];
	way[count++].split = len;
	for (int i = 0; i < count; i++) {
		size_t split = way[i].split;

		way[i] = (struct way){.move = put ? move_by_write : move_by_read,
				      .dst = here,
				      .len = len,
				      .split = split,
				      .pid = pid,
				      .there = there};
	}
	return rate_of_best(way, count, times);
}

/* ---- FUTEX ---------------------------------------------------------------- */

bool perf_futex_wait(_Atomic uint32_t *word, uint32_t want)
{
	struct timespec limit = {.tv_nsec = SLEEP_NS};
	uint32_t is = atomic_load_explicit(word, memory_order_acquire); /* FUTEX-A1 */

	if (is == want)
		return true;
	syscall(SYS_futex, word, FUTEX_WAIT, is, &limit, NULL, 0);
	return atomic_load_explicit(word, memory_order_acquire) == want; /* FUTEX-A1 */
}

void perf_futex_wake(_Atomic uint32_t *word, uint32_t want)
{
	atomic_store_explicit(word, want, memory_order_release); /* FUTEX-R1 */
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
