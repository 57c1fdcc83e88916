/* SPDX-License-Identifier: BSD-2-Clause */
/* er_head.h - the first word of a record in a ring, and how many lines it has.  A part of er.c. */
#ifndef GLEXCH_ER_HEAD_H
#define GLEXCH_ER_HEAD_H

#include "chan_priv.h"

/* How the inline bytes of a record are to be taken. */
enum glexch_er_kind {
	GLEXCH_ER_PLAIN,
	GLEXCH_ER_PAD,	 /* a header, to be filled up with zeros */
	GLEXCH_ER_SPLIT, /* such a header of `more` bytes, then others; there are no further lines */
};

_Static_assert(GLEXCH_ER_FRAME + GLEXCH_BRIEF_WORDS * 8 <= GLEXCH_LINE, "a brief record is one line");

/* The header of a record to be sent. */
struct glexch_er_head {
	uint32_t more; /* bytes in further lines; SPLIT: of the header */
	uint32_t inl;  /* inline bytes */
	enum glexch_er_kind kind;
};

/*
 * The same as the word it is in the ring, from the lowest bit: 16 seq, 15 more,
 * 12 inl, 8 credits returned, 2 kind, 1 saw, 10 of how many lines its sender has read.
 */
#define GLEXCH_ER_AT_MORE    16
#define GLEXCH_ER_AT_INL     31
#define GLEXCH_ER_AT_CREDITS 43
#define GLEXCH_ER_AT_KIND    51
#define GLEXCH_ER_AT_SAW     53
#define GLEXCH_ER_AT_READ    54
#define GLEXCH_ER_READ_MASK  0x3ffu
#define GLEXCH_ER_MORE_MAX   0x7fffu
#define GLEXCH_ER_INL_MAX    0xfffu

_Static_assert(GLEXCH_ANSWER_MAX <= GLEXCH_ER_INL_MAX, "inl of a header");
_Static_assert(GLEXCH_ER_TAIL *GLEXCH_LINE <= GLEXCH_ER_MORE_MAX, "more of a header");

/* Credits, or that one of the peer's credit MPs has been read: seldom, where most goes by the ring. */
static inline int glexch_er_has_to_return(const struct glexch_conn *conn)
{
	return __builtin_expect(conn->owed || conn->saw, 0);
}

static inline uint64_t glexch_er_pack(const struct glexch_er_head *h, const struct glexch_conn *conn)
{
	const struct glexch_er *er = conn->er;
	uint64_t w = conn->tx_seq | h->more << GLEXCH_ER_AT_MORE | (uint64_t)h->inl << GLEXCH_ER_AT_INL |
		     (uint64_t)h->kind << GLEXCH_ER_AT_KIND |
		     (uint64_t)(er->rx_read + er->rx_owed) << GLEXCH_ER_AT_READ;

	if (glexch_er_has_to_return(conn)) /* owed <= grant <= 255 */
		w |= (uint64_t)conn->owed << GLEXCH_ER_AT_CREDITS | (uint64_t)conn->saw << GLEXCH_ER_AT_SAW;
	return w;
}

static inline uint32_t glexch_er_more(uint64_t w)
{
	return (uint32_t)w >> GLEXCH_ER_AT_MORE & GLEXCH_ER_MORE_MAX;
}

static inline uint32_t glexch_er_inl(uint64_t w)
{
	return w >> GLEXCH_ER_AT_INL & GLEXCH_ER_INL_MAX;
}

static inline enum glexch_er_kind glexch_er_kind_of(uint64_t w)
{
	return (enum glexch_er_kind)(w >> GLEXCH_ER_AT_KIND & 3);
}

/* Whether anything comes back with it. */
static inline int glexch_er_returns(uint64_t w)
{
	return (w & ((uint64_t)0xff << GLEXCH_ER_AT_CREDITS | (uint64_t)1 << GLEXCH_ER_AT_SAW)) != 0;
}

/*
 * What most are: a header of so many bytes at most, in one line, with nothing returned.
 * Such a word differs from others of its kind in its number, its length, and what has been read.
 */
#define GLEXCH_ER_BRIEF (GLEXCH_BRIEF_WORDS * 8)

static inline int glexch_er_is_brief(uint64_t w)
{
	const uint64_t varies = 0xffff | (uint64_t)GLEXCH_ER_INL_MAX << GLEXCH_ER_AT_INL |
				(uint64_t)GLEXCH_ER_READ_MASK << GLEXCH_ER_AT_READ;

	return (w & ~varies) == (uint64_t)GLEXCH_ER_PAD << GLEXCH_ER_AT_KIND && glexch_er_inl(w) <= GLEXCH_ER_BRIEF;
}

#define GLEXCH_ER_MARK_STEP 0x9e3779b97f4a7c15u

static uint32_t glexch_round8(uint32_t n)
{
	return (n + 7) & ~7u;
}

static uint32_t glexch_lines_of(uint32_t bytes)
{
	return (bytes + GLEXCH_LINE - 1) / GLEXCH_LINE;
}

/* Lines of the first part of a record. */
static uint32_t glexch_er_head_lines(uint32_t inl)
{
	return glexch_lines_of(GLEXCH_ER_FRAME + glexch_round8(inl));
}

/* Bytes in further lines of a record: such that it fits into the tail, before the word. */
static uint32_t glexch_er_most(uint32_t lines)
{
	return (glexch_er_tail(lines) - 1 - glexch_er_head_lines(GLEXCH_ER_INLINE)) * GLEXCH_LINE;
}

#endif
