/* SPDX-License-Identifier: BSD-2-Clause */
/* copy.h - copies of headers and short messages, for which a call takes longer than the copy. */
#ifndef GLEXCH_COPY_H
#define GLEXCH_COPY_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define GLEXCH_FEW 256u /* bytes for which a call of memcpy takes longer than a loop */

/* Else gcc makes rep movs or rep stos of the loop, which take longer to begin than some hundred bytes to copy. */
#define GLEXCH_STAY_LOOP(i) __asm__("" : "+r"(i))

/* Headers and short messages. */
static inline void glexch_copy_few(void *dst_, const void *src_, size_t len)
{
	const uint8_t *src = src_;
	uint8_t *dst = dst_;
	size_t i;

	if (len >= 16) {
		for (i = 0; i + 16 <= len; i += 16) {
			memcpy(dst + i, src + i, 16);
			GLEXCH_STAY_LOOP(i);
		}
		memcpy(dst + len - 16, src + len - 16, 16); /* whatever part of it has been copied */
	} else if (len >= 8) {
		memcpy(dst, src, 8);
		memcpy(dst + len - 8, src + len - 8, 8);
	} else {
		for (i = 0; i < len; i++)
			dst[i] = src[i];
	}
}

/* Else gcc makes one load of two. */
static inline void glexch_copy_word(uint8_t *dst, const uint8_t *src)
{
	uint64_t word;

	memcpy(&word, src, sizeof(word));
	__asm__("" : "+r"(word));
	memcpy(dst, &word, sizeof(word));
}

/* A header that has just been made of words or fields: a load of more than one store wrote waits for these. */
static inline void glexch_copy_words(void *dst_, const void *src_, size_t len)
{
	const uint8_t *src = src_;
	uint8_t *dst = dst_;
	size_t i = 0;

	if (len == 32) { /* as most are */
		glexch_copy_word(dst, src);
		glexch_copy_word(dst + 8, src + 8);
		glexch_copy_word(dst + 16, src + 16);
		glexch_copy_word(dst + 24, src + 24);
		return;
	}
	for (; i + 8 <= len; i += 8) {
		memcpy(dst + i, src + i, 8);
		GLEXCH_STAY_LOOP(i);
	}
	for (; i < len; i++)
		dst[i] = src[i];
}

/* What the caller has had for long, up to some kilobytes, in as few stores as can be without a call. */
static inline void glexch_copy_data(void *dst_, const void *src_, size_t len)
{
	const uint8_t *src = src_;
	uint8_t *dst = dst_;
	size_t i;

	if (len < 32) {
		glexch_copy_few(dst, src, len);
		return;
	}
	for (i = 0; i + 32 <= len; i += 32) {
		memcpy(dst + i, src + i, 32);
		GLEXCH_STAY_LOOP(i);
	}
	memcpy(dst + len - 32, src + len - 32, 32);
}

#if defined(__x86_64__)
/* The whole lines of len bytes; returns how much that is.  By 16 bytes it takes twice as long in the own cache. */
static inline __attribute__((target("avx2"))) size_t glexch_copy_wide(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t i;

	for (i = 0; i + 64 <= len; i += 64) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(src + i));
		__m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 32));

		_mm256_storeu_si256((__m256i *)(void *)(dst + i), a);
		_mm256_storeu_si256((__m256i *)(void *)(dst + i + 32), b);
	}
	return i;
}
#endif

/*
 * Up to some kilobytes into lines that another processor has read, straight on: by glibc's memcpy, whose
 * stores have another order, messages of 1 to 4 KiB take a tenth to a sixth longer between distant processors.
 */
static inline void glexch_copy_lines(void *dst, const void *src, size_t len)
{
	size_t done = 0;

#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		done = glexch_copy_wide(dst, src, len);
#endif
	glexch_copy_data((uint8_t *)dst + done, (const uint8_t *)src + done, len - done);
}

static inline void glexch_clear_words(uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		words[i] = 0;
		GLEXCH_STAY_LOOP(i);
	}
}

/* Bytes that may be so few, or up to some kilobytes. */
static inline void glexch_copy_some(void *dst, const void *src, size_t len)
{
	if (len <= GLEXCH_FEW)
		glexch_copy_few(dst, src, len);
	else
		memcpy(dst, src, len);
}

#endif
