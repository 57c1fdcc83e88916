/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * er_room.h - where in the ring of a peer the next record goes: laps.  A part of er.c.
 *
 * A lap ends before the ring does, if its lines can be had again: what goes round is then in the
 * first-level caches of both sides (a bare program, messages of 1 KiB: 120 ns each in 24 KiB of lines or more, 60 in 16
 * or less).  So a stream ends a lap after GLEXCH_ER_HOT lines when half of it has been read:
 *
 *      lap 1  [=================|                    a receiver that is late leaves the ring to be filled: lap 2
 *      lap 2  [======|          |===============     goes on where lap 1 ended, once, when lines of that are in its way
 *
 * In a dialogue, who learns from a record that all he sent has been read ends his lap there and then.  The receiver
 * finds out by himself, for he looks at all these places: behind the record before, at the start, and
 * where he was when he went there.
 *
 * I1  A line is written again when what it held has been read.  Records are read in order: when so many lines of the
 *     lap before have been read as lie in front of the end of what is to be written, those of earlier laps have, too.
 */
#ifndef GLEXCH_ER_ROOM_H
#define GLEXCH_ER_ROOM_H

#include "chan_priv.h"

#define GLEXCH_ER_LOCATE 64  /* laps between two looks where a ring is */
#define GLEXCH_ER_HOT	 40u /* lines of a lap */

static void glexch_er_locate(const struct glexch_conn *conn, struct glexch_er *er);

/* Takes what the peer says it has read since.  Less than 0: it cannot have; glexch_er_poll fails the connection. */
static __attribute__((noinline)) int glexch_er_recount(struct glexch_er *er)
{
	uint64_t word = glexch_er_word(er);
	int32_t lines = glexch_er_news(er, word);

	if (lines > (int32_t)(er->tx_sent - er->tx_read))
		return -1;
	if (lines <= 0)
		return 0;
	er->tx_read += (uint32_t)lines;
	if ((int16_t)(er->conn->rx_seq - (uint16_t)(word >> 32)) >= 0) /* er.c, I4 */
		er->tx_heard = er->tx_read;
	return 1;
}

/* skip: where it may go on if lines are not read in time. */
static inline void glexch_er_next_lap(struct glexch_er *er, uint32_t skip)
{
	er->last = er->lap;
	er->lap = (struct glexch_er_lap){.sent = er->tx_sent};
	er->tx_skip = skip;
	er->tx_line = 0;
	if (er->laps++ % GLEXCH_ER_LOCATE == 0)
		glexch_er_locate(er->conn, er);
}

/* Half of this lap has been read, as far as is known. */
static inline int glexch_er_keeps_pace(const struct glexch_er *er)
{
	return (int32_t)(er->tx_read - er->lap.sent) >= (int32_t)(er->tx_sent - er->lap.sent) / 2;
}

/* A lap that has been long enough ends. */
static __attribute__((noinline)) void glexch_er_try_lap(struct glexch_er *er)
{
	if (er->tx_line >= er->starts)
		glexch_er_next_lap(er, 0);
	else if (glexch_er_keeps_pace(er) || (glexch_er_recount(er) > 0 && glexch_er_keeps_pace(er)))
		glexch_er_next_lap(er, er->tx_line);
}

/* Lines of the lap before that lie in front of a line. */
static inline uint32_t glexch_er_before(const struct glexch_er *er, uint32_t line)
{
	const struct glexch_er_lap *last = &er->last;
	uint32_t all = er->lap.sent - last->sent;

	if (line > last->from && last->to)
		line = line > last->to ? line - (last->to - last->from) : last->from;
	return line < all ? line : all;
}

/* The next n lines may be written. */
static inline int glexch_er_is_free(const struct glexch_er *er, uint32_t n)
{
	int32_t read = (int32_t)(er->tx_read - er->last.sent);

	/* I1; not more of the lap before lie in front of a line than there are lines */
	return read >= (int32_t)(er->tx_line + n) ||
	       read >= (er->lap.to ? 0 : (int32_t)glexch_er_before(er, er->tx_line + n));
}

/* Goes on behind the lap before, if this has not yet been done.  0: it has, or nothing is there. */
static int glexch_er_skip(struct glexch_er *er)
{
	if (er->lap.to || er->tx_line >= er->tx_skip)
		return 0;
	er->lap.from = er->tx_line;
	er->lap.to = er->tx_skip;
	er->tx_line = er->tx_skip;
	return 1;
}

static __attribute__((noinline)) int glexch_er_find_room(struct glexch_er *er, uint32_t n)
{
	return (glexch_er_recount(er) > 0 && glexch_er_is_free(er, n)) ||
	       (glexch_er_skip(er) && glexch_er_is_free(er, n));
}

static inline int glexch_er_has_room(struct glexch_er *er, uint32_t n)
{
	return glexch_er_is_free(er, n) || glexch_er_find_room(er, n);
}

#endif
