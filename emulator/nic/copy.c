/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy.c - the ways to copy.  See copy.h.
 *
 * The loops store the first vector as it lies, go on at the next aligned one, and
 * end with ever smaller parts, so that no other store lies in two lines: a byte may
 * be stored twice, with the same value.  Loads come before stores in groups, so that
 * they do not wait for stores that only look as if they met (equal low twelve bits).
 * What is aligned and of a round length has few turns and hardly a branch: where
 * another thread has half of the processor, a copy of some KiB waits for those too.
 * From the back they take the same groups in the other order, but for the last: the
 * last word stays behind all others, and its line, which somebody may be polling, is
 * touched once.
 * No state; what the processor has is looked up at each call, or once by who keeps
 * the ways (emu_copy_ways), for the picks come from another process.
 */
#include "emulator/nic/copy.h"

#include <string.h>

/* The last eight bytes, behind all others. */
static inline __attribute__((always_inline)) void copy_last(unsigned char *dst, const unsigned char *src)
{
	uint64_t word;

	memcpy(&word, src, sizeof(word));
	if (((uintptr_t)dst & 7) == 0) {
		/* Pollers read it with whatever they like, so no label pairs. */
		__atomic_store_n((uint64_t *)(void *)dst, word, __ATOMIC_RELEASE); /* relaxed: stronger, see above */
		return;
	}
	memcpy(dst, &word, sizeof(word)); /* nobody can wait for it */
}

/*
 * Short ones a receiver may be polling at any word, guessing until the last one is
 * there (as in the rings of a channel): that is not for the thread sanitizer to see.
 */
#ifdef __SANITIZE_THREAD__
#define POLLED_MAX 4288u /* the longest record of a channel's ring: its receiver may look in its midst */
#else
#define POLLED_MAX 0u
#endif

static int copy_libc(unsigned char *dst, const unsigned char *src, uint64_t len)
{
	if (len <= POLLED_MAX)
		emu_copy_unwatched(dst, src, len - 8);
	else
		memcpy(dst, src, len - 8);
	copy_last(dst + len - 8, src + len - 8);
	return 0;
}

#if defined(__x86_64__)

#include <immintrin.h>

typedef long long v32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef long long v64 __attribute__((vector_size(64), aligned(1), may_alias));

/* Less than 64 bytes of a copy that has eight at least, and its last word. */
static inline __attribute__((always_inline)) void copy_rest(unsigned char *dst, const unsigned char *src, uint64_t len)
{
	if (len & 32)
		memcpy(dst, src, 32), dst += 32, src += 32;
	if (len & 16)
		memcpy(dst, src, 16), dst += 16, src += 16;
	if (len & 8)
		memcpy(dst, src, 8), dst += 8, src += 8;
	len &= 7;
	if (len)
		memcpy(dst + len - 8, src + len - 8, 8);
	copy_last(dst + len, src + len);
}

#define LOAD(vec, i)	 (*(const vec *)(const void *)(src + (i) * sizeof(vec)))
#define STORE(vec, i, x) (*(vec *)(void *)(dst + (i) * sizeof(vec)) = (x))

#define COPY1(vec)                                                                                                     \
	do {                                                                                                           \
		STORE(vec, 0, LOAD(vec, 0));                                                                           \
		dst += sizeof(vec);                                                                                    \
		src += sizeof(vec);                                                                                    \
	} while (0)

#define COPY4(vec)                                                                                                     \
	do {                                                                                                           \
		vec a_ = LOAD(vec, 0), b_ = LOAD(vec, 1), c_ = LOAD(vec, 2), d_ = LOAD(vec, 3);                        \
                                                                                                                       \
		STORE(vec, 0, a_);                                                                                     \
		STORE(vec, 1, b_);                                                                                     \
		STORE(vec, 2, c_);                                                                                     \
		STORE(vec, 3, d_);                                                                                     \
		dst += 4 * sizeof(vec);                                                                                \
		src += 4 * sizeof(vec);                                                                                \
	} while (0)

#define COPY7(vec)                                                                                                     \
	do {                                                                                                           \
		vec a_ = LOAD(vec, 0), b_ = LOAD(vec, 1), c_ = LOAD(vec, 2), d_ = LOAD(vec, 3);                        \
		vec e_ = LOAD(vec, 4), f_ = LOAD(vec, 5), g_ = LOAD(vec, 6);                                           \
                                                                                                                       \
		STORE(vec, 0, a_);                                                                                     \
		STORE(vec, 1, b_);                                                                                     \
		STORE(vec, 2, c_);                                                                                     \
		STORE(vec, 3, d_);                                                                                     \
		STORE(vec, 4, e_);                                                                                     \
		STORE(vec, 5, f_);                                                                                     \
		STORE(vec, 6, g_);                                                                                     \
		dst += 7 * sizeof(vec);                                                                                \
		src += 7 * sizeof(vec);                                                                                \
	} while (0)

/* Not COPY7 and COPY1: all loads before all stores. */
#define COPY8(vec)                                                                                                     \
	do {                                                                                                           \
		vec last_ = LOAD(vec, 7);                                                                              \
                                                                                                                       \
		COPY7(vec);                                                                                            \
		STORE(vec, 0, last_);                                                                                  \
		dst += sizeof(vec);                                                                                    \
		src += sizeof(vec);                                                                                    \
	} while (0)

/* count groups of n vectors, each by COPY, the last of them first. */
#define COPY_BACK(vec, n, COPY, count)                                                                                 \
	do {                                                                                                           \
		const uint64_t group_ = (n) * sizeof(vec), all_ = group_ * (count);                                    \
                                                                                                                       \
		dst += all_, src += all_;                                                                              \
		for (uint64_t i_ = (count); i_ > 0; i_--) {                                                            \
			dst -= group_, src -= group_;                                                                  \
			COPY(vec);                                                                                     \
			dst -= group_, src -= group_;                                                                  \
		}                                                                                                      \
		dst += all_, src += all_;                                                                              \
	} while (0)

#define VECTOR_COPY(name, isa, vec)                                                                                    \
	static inline __attribute__((target(isa), always_inline)) int name##_either(                                   \
		unsigned char *dst, const unsigned char *src, uint64_t len, bool back)                                 \
	{                                                                                                              \
		const uint64_t v = sizeof(vec), skip = v - (uintptr_t)dst % v;                                         \
                                                                                                                       \
		if (((uintptr_t)dst % v | len % (8 * v)) == 0) { /* the usual: straight on */                          \
			if (back)                                                                                      \
				COPY_BACK(vec, 8, COPY8, len / (8 * v) - 1);                                           \
			else                                                                                           \
				for (const unsigned char *end = src + len - 8 * v; src != end;)                        \
					COPY8(vec);                                                                    \
			COPY7(vec);                                                                                    \
			copy_rest(dst, src, v - 8);                                                                    \
			return 0;                                                                                      \
		}                                                                                                      \
		STORE(vec, 0, LOAD(vec, 0));                                                                           \
		len -= 8;                                                                                              \
		dst += skip, src += skip, len -= skip;                                                                 \
		if (back)                                                                                              \
			COPY_BACK(vec, 4, COPY4, len / (4 * v));                                                       \
		else                                                                                                   \
			for (const unsigned char *end = src + len / (4 * v) * (4 * v); src != end;)                    \
				COPY4(vec);                                                                            \
		for (len %= 4 * v; len >= v; len -= v)                                                                 \
			COPY1(vec);                                                                                    \
		copy_rest(dst, src, len);                                                                              \
		return 0;                                                                                              \
	}                                                                                                              \
                                                                                                                       \
	__attribute__((target(isa), aligned(64))) static int name(unsigned char *dst, const unsigned char *src,        \
								  uint64_t len)                                        \
	{                                                                                                              \
		return name##_either(dst, src, len, false);                                                            \
	}                                                                                                              \
                                                                                                                       \
	__attribute__((target(isa), aligned(64))) static int name##_back(unsigned char *dst, const unsigned char *src, \
									 uint64_t len)                                 \
	{                                                                                                              \
		return name##_either(dst, src, len, true);                                                             \
	}

VECTOR_COPY(copy_avx2, "avx2", v32)
VECTOR_COPY(copy_avx512, "avx512f", v64)

void emu_copy_unwatched(void *dst, const void *src, uint64_t len)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(len) : : "memory");
}

static int copy_movsb(unsigned char *dst, const unsigned char *src, uint64_t len)
{
	emu_copy_unwatched(dst, src, len - 8);
	copy_last(dst + len - 8, src + len - 8);
	return 0;
}

/* Whole lines past the cache, what lies before and after them as usual. */
static int copy_stream(unsigned char *dst, const unsigned char *src, uint64_t len)
{
	uint64_t head = -(uintptr_t)dst % 64;

	memcpy(dst, src, head);
	len -= 8;
	for (dst += head, src += head, len -= head; len >= 64; dst += 64, src += 64, len -= 64) {
		__m128i a = _mm_loadu_si128((const __m128i *)(const void *)src);
		__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(const void *)(src + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(const void *)(src + 48));

		_mm_stream_si128((__m128i *)(void *)dst, a);
		_mm_stream_si128((__m128i *)(void *)(dst + 16), b);
		_mm_stream_si128((__m128i *)(void *)(dst + 32), c);
		_mm_stream_si128((__m128i *)(void *)(dst + 48), d);
	}
	_mm_sfence(); /* they wait in buffers of their own: a store that follows would overtake them */
	copy_rest(dst, src, len);
	return 0;
}

bool emu_copier_works(enum emu_copier copier)
{
	switch (copier) {
	case EMU_COPIER_AVX2:
		return __builtin_cpu_supports("avx2");
	case EMU_COPIER_AVX512:
		return __builtin_cpu_supports("avx512f");
	default:
		return copier < EMU_COPIERS;
	}
}

static emu_copy_way *way_of(uint32_t way)
{
	enum emu_copier copier = (enum emu_copier)(way & ~EMU_COPY_BACK);
	bool usable = emu_copier_works(copier) && !POLLED_MAX, back = way & EMU_COPY_BACK;

	switch (copier) {
	case EMU_COPIER_AVX512:
		return !usable ? copy_libc : back ? copy_avx512_back : copy_avx512;
	case EMU_COPIER_AVX2:
		return !usable ? copy_libc : back ? copy_avx2_back : copy_avx2;
	case EMU_COPIER_MOVSB:
		return copy_movsb;
	case EMU_COPIER_STREAM:
		return copy_stream;
	default:
		return copy_libc;
	}
}

#else

void emu_copy_unwatched(void *dst, const void *src, uint64_t len)
{
	memcpy(dst, src, len);
}

bool emu_copier_works(enum emu_copier copier)
{
	return copier == EMU_COPIER_LIBC;
}

static emu_copy_way *way_of(uint32_t way)
{
	(void)way;
	return copy_libc;
}

#endif

void emu_copy_run(uint32_t way, void *dst, const void *src, uint64_t len)
{
	way_of(way)(dst, src, len);
}

void emu_copy_ways(emu_copy_way *way[EMU_COPY_WAYS])
{
	for (uint32_t i = 0; i < EMU_COPY_WAYS; i++)
		way[i] = way_of(i);
}

const char *emu_copier_name(enum emu_copier copier)
{
	static const char *const name[] = {"libc", "movsb", "avx2", "avx512", "stream"};

	return copier < EMU_COPIERS ? name[copier] : "?";
}
