/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * move.c - how the bytes of a PUT or GET get there.
 *
 *               dst own   dst mapped     dst private to another process
 *   src own     ordered   ordered        write
 *   src mapped  ordered   ordered        write
 *   src private read      read_ordered   read into bounce, write, in pieces
 *
 * Own: the mover's memory.  Mapped: a shared object that is mapped here.  Stores
 * that a third process may poll go through emu_copy_ordered, read_ordered or the
 * `tail` of write: the last word must not be visible before the rest.
 *
 * An object may cover a part of its region only; then the transfer is made in
 * runs, in ascending order, each by its own way:
 *
 *   region   |----------------------------------|
 *   object       |#######################|             ends on pages, so that no
 *   runs      ^^^ ^^^^^^^^^^^^^^^^^^^^^^^ ^^^^^^^       aligned word is in two runs
 *           attach         copy           attach
 */
#include "emulator/nic/move.h"

#include <string.h>

#include "emulator/nic/copy.h"
#include "emulator/nic/ring.h"

#define ASCENDING_MAX 128u /* below this the order is kept word by word */

uint32_t emu_tail_of(uint64_t end, uint64_t len)
{
	uint32_t word = 8;

	while (word > 1 && (word > len || end % word != 0))
		word /= 2;
	return word;
}

/* Stores eight bytes, at an address of which they are the word, after everything before them. */
static inline void put_word(unsigned char *dst, const unsigned char *src)
{
	uint64_t v8;

	memcpy(&v8, src, 8);
	__atomic_store_n((uint64_t *)(void *)dst, v8, __ATOMIC_RELEASE); /* relaxed: stronger, see store_word */
}

/* Stores one naturally aligned word after everything before it. */
static __attribute__((noinline)) void store_word(unsigned char *dst, const unsigned char *src, uint32_t word)
{
	uint32_t v4;
	uint16_t v2;

	/* Pollers read these with whatever they like, so no label pairs; release orders them behind the bytes before. */
	switch (word) {
	case 8:
		put_word(dst, src);
		return;
	case 4:
		memcpy(&v4, src, 4);
		__atomic_store_n((uint32_t *)(void *)dst, v4, __ATOMIC_RELEASE); /* relaxed: stronger, see above */
		return;
	case 2:
		memcpy(&v2, src, 2);
		__atomic_store_n((uint16_t *)(void *)dst, v2, __ATOMIC_RELEASE); /* relaxed: stronger, see above */
		return;
	default:
		__atomic_store_n(dst, *src, __ATOMIC_RELEASE); /* relaxed: stronger, see above */
	}
}

/* The longest aligned word at dst that is not longer than len. */
static uint32_t head_of(const unsigned char *dst, uint64_t len)
{
	uint32_t word = 8;

	while (word > len || (uintptr_t)dst % word != 0)
		word /= 2;
	return word;
}

/* Up to ASCENDING_MAX bytes, each word after the one before it. */
static __attribute__((noinline)) void copy_ascending(unsigned char *dst, const unsigned char *src, uint64_t len)
{
	unsigned char aside[ASCENDING_MAX];

	if ((uintptr_t)dst - (uintptr_t)src < len)
		src = memcpy(aside, src, len);
	if (((uintptr_t)dst & 7) == 0) {
		for (; len >= 32; len -= 32, dst += 32, src += 32) {
			put_word(dst, src);
			put_word(dst + 8, src + 8);
			put_word(dst + 16, src + 16);
			put_word(dst + 24, src + 24);
		}
		for (; len >= 8; len -= 8, dst += 8, src += 8)
			put_word(dst, src);
	}
	while (len > 0) {
		uint32_t word = head_of(dst, len);

		store_word(dst, src, word);
		dst += word;
		src += word;
		len -= word;
	}
}

/* A process may PUT within its own memory, overlapping: what will be overwritten is taken aside. */
static __attribute__((noinline, cold)) void copy_overlapping(unsigned char *dst, const unsigned char *src, uint64_t len,
							     uint32_t tail)
{
	unsigned char aside[8];

	memcpy(aside, src + len - tail, tail);
	memmove(dst, src, len - tail);
	store_word(dst + len - tail, aside, tail);
}

/* One that ends with an unaligned word: all before that, then ever shorter words, each aligned. */
static __attribute__((noinline)) void copy_odd(uint32_t way, unsigned char *dst, const unsigned char *src, uint64_t len)
{
	uint32_t rest = ((uintptr_t)dst + len) % 8;

	emu_copy_run(way, dst, src, len - rest);
	dst += len - rest;
	src += len - rest;
	for (uint32_t word = 4; word > 0; word /= 2)
		if (rest & word) {
			store_word(dst, src, word);
			dst += word;
			src += word;
		}
}

/*
 * host: or NULL.  Into both of its callers, and what does not copy much out of it: a PUT
 * of 4 KiB is some thirty nanoseconds, so what is done around the copy counts (quiet.h).
 */
static inline __attribute__((always_inline)) void copy_ordered(struct emu_host *host, void *dst_, const void *src_,
							       uint64_t len)
{
	unsigned char *dst = dst_;
	const unsigned char *src = src_;

	if (len <= ASCENDING_MAX)
		copy_ascending(dst, src, len);
	else if (emu_copy_overlaps(dst, src, len))
		copy_overlapping(dst, src, len, emu_tail_of((uintptr_t)dst + len, len));
	else if (((uintptr_t)dst + len) % 8 != 0)
		copy_odd(host ? emu_copy_way_now(host, len) : EMU_COPIER_LIBC, dst, src, len);
	else
		emu_copy_run(host ? emu_copy_way_now(host, len) : EMU_COPIER_LIBC, dst, src, len);
}

void emu_copy_ordered(void *dst, const void *src, uint64_t len)
{
	copy_ordered(NULL, dst, src, len);
}

void emu_copy_here(struct emu_host *host, void *dst, const void *src, uint64_t len)
{
	copy_ordered(host->engine ? host : NULL, dst, src, len);
}

/*
 * How the bytes from offset on are reached: *here_p is where they lie in this
 * process, NULL: only by attach.  Returns for how many of len that holds; what
 * is in front of the shared object and what is behind it goes another way.
 */
static uint64_t run_of(struct emu_host *host, const struct emu_region *region, uint64_t offset, uint64_t len,
		       bool write, unsigned char **here_p)
{
	uint64_t size, at = (uint64_t)region->map_offset + offset; /* below 0: in front of the object */
	unsigned char *base;

	if (region->session == host->session) {
		*here_p = (unsigned char *)(uintptr_t)(region->addr + offset);
		return len;
	}
	*here_p = NULL;
	if (region->way != EMU_WAY_MAP)
		return len;
	base = host->ops->map(host, region->map, write, &size);
	if (!base)
		return len;
	if (at < size) {
		*here_p = base + at;
		return len < size - at ? len : size - at;
	}
	return (int64_t)at < 0 && 0 - at < len ? 0 - at : len;
}

unsigned char *emu_direct(struct emu_host *host, const struct emu_region *region, bool write)
{
	unsigned char *here;

	return run_of(host, region, 0, region->len, write, &here) == region->len ? here : NULL;
}

static void count(struct emu_host *host, bool attached)
{
	_Atomic uint64_t *n;

	if (!host->by)
		return;
	n = attached ? &host->by->by_attach : &host->by->by_map;
	/* relaxed: counter, one writer */
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* As read, for a `to` that a third process may poll: a read stores in whatever order the system likes. */
static enum emu_reach read_ordered(struct emu_host *host, uint32_t pid, unsigned char *to, uint64_t from, uint64_t len)
{
	uint32_t tail = len > ASCENDING_MAX ? emu_tail_of((uintptr_t)to + len, len) : (uint32_t)len;
	unsigned char last[ASCENDING_MAX];
	enum emu_reach reach = host->ops->read(host, pid, last, from + len - tail, tail);

	if (reach == EMU_REACH_OK && len > tail)
		reach = host->ops->read(host, pid, to, from, len - tail);
	if (reach == EMU_REACH_OK)
		emu_copy_ordered(to + len - tail, last, tail);
	return reach;
}

#define BOUNCE_SIZE 8192u

/* Both ends are private memory of other processes: glexd meets this, and who triggers a third one's PUT. */
static enum emu_reach move_bounced(struct emu_host *host, const struct emu_region *dst, uint64_t to,
				   const struct emu_region *src, uint64_t from, uint64_t len)
{
	unsigned char small[BOUNCE_SIZE], *bounce = host->bounce ? host->bounce : small;
	uint64_t size = host->bounce ? host->bounce_size : sizeof(small);
	enum emu_reach reach = EMU_REACH_OK;

	while (len > 0) {
		uint64_t n = len < size ? len : size;
		uint32_t tail = n == len ? emu_tail_of(to + n, n) : 0;

		reach = host->ops->read(host, src->pid, bounce, from, n);
		if (reach == EMU_REACH_OK)
			reach = host->ops->write(host, dst->pid, bounce, to, n, tail);
		if (reach != EMU_REACH_OK)
			break;
		from += n;
		to += n;
		len -= n;
	}
	return reach;
}

enum emu_reach emu_move_from(struct emu_host *host, const struct emu_region *dst, uint64_t dst_off, const void *src_,
			     uint64_t len)
{
	const unsigned char *src = src_;
	enum emu_reach reach = EMU_REACH_OK;
	bool attached = false;
	unsigned char *to;

	while (len > 0 && reach == EMU_REACH_OK) {
		uint64_t n = run_of(host, dst, dst_off, len, true, &to), there = dst->addr + dst_off;

		if (to) {
			emu_copy_here(host, to, src, n);
		} else {
			emu_mmt_count_use(dst, n);
			reach = host->ops->write(host, dst->pid, src, there, n, emu_tail_of(there + n, n));
		}
		attached |= !to;
		dst_off += n;
		src += n;
		len -= n;
	}
	count(host, attached);
	return reach;
}

enum emu_reach emu_move_to(struct emu_host *host, void *dst_, const struct emu_region *src, uint64_t src_off,
			   uint64_t len)
{
	enum emu_reach reach = EMU_REACH_OK;
	unsigned char *dst = dst_, *from;
	bool attached = false;

	while (len > 0 && reach == EMU_REACH_OK) {
		uint64_t n = run_of(host, src, src_off, len, false, &from);

		if (from) {
			emu_copy_here(host, dst, from, n);
		} else {
			emu_mmt_count_use(src, n);
			reach = host->ops->read(host, src->pid, dst, src->addr + src_off, n);
		}
		attached |= !from;
		src_off += n;
		dst += n;
		len -= n;
	}
	count(host, attached);
	return reach;
}

EMU_TOGETHER enum emu_reach emu_move_away(struct emu_host *host, const struct emu_away *away, uint64_t offset,
					  void *here, uint64_t len, bool put)
{
	glex_mem_handle_t mh = {.v = away->handle};
	uint64_t there = away->addr + offset;

	emu_mmt_count_at(away->nic, mh.mmt_index, len);
	count(host, true);
	return put ? host->ops->write(host, away->pid, here, there, len, emu_tail_of(there + len, len))
		   : host->ops->read(host, away->pid, here, there, len);
}

/* n bytes that all go the same way; from, to: where they lie here, or NULL. */
static enum emu_reach move_run(struct emu_host *host, const struct emu_region *dst, uint64_t dst_off, unsigned char *to,
			       const struct emu_region *src, uint64_t src_off, const unsigned char *from, uint64_t n)
{
	uint64_t dst_addr = dst->addr + dst_off, src_addr = src->addr + src_off;

	if (from && to) {
		emu_copy_here(host, to, from, n);
		return EMU_REACH_OK;
	}
	if (!from)
		emu_mmt_count_use(src, n);
	if (!to)
		emu_mmt_count_use(dst, n);
	if (from)
		return host->ops->write(host, dst->pid, from, dst_addr, n, emu_tail_of(dst_addr + n, n));
	if (to && dst->session != host->session)
		return read_ordered(host, src->pid, to, src_addr, n);
	if (to)
		return host->ops->read(host, src->pid, to, src_addr, n);
	return move_bounced(host, dst, dst_addr, src, src_addr, n);
}

enum emu_reach emu_move(struct emu_host *host, const struct emu_region *dst, uint64_t dst_off,
			const struct emu_region *src, uint64_t src_off, uint64_t len)
{
	enum emu_reach reach = EMU_REACH_OK;
	unsigned char *from, *to;
	bool attached = false;

	while (len > 0 && reach == EMU_REACH_OK) {
		uint64_t n = run_of(host, src, src_off, len, false, &from);

		n = run_of(host, dst, dst_off, n, true, &to);
		reach = move_run(host, dst, dst_off, to, src, src_off, from, n);
		attached |= !from || !to;
		dst_off += n;
		src_off += n;
		len -= n;
	}
	count(host, attached);
	return reach;
}
