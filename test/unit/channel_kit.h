/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * channel_kit.h - what the tests of the channel library over fake_glex share.
 *
 * Processes with streams between them.  Every stream carries a known pattern,
 * and each byte is checked where it arrives.
 */
#ifndef CHANNEL_KIT_H
#define CHANNEL_KIT_H

#include "fake_glex.h"
#include "netmod-glex/channel/chan.h"
#include "test/lib/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define STEPS 400000
#define PROCS 10
#define RING  4096u /* bytes of a short one */

/* One end of a stream; the user pointer of its connection. */
struct end {
	struct glexch_conn *conn;
	unsigned tx_tag, rx_tag; /* which pattern */
	size_t sent, received;
	int queued, done, failed_items; /* items */
	int failed, drained;
	int held, holds; /* what the peer said last about it, and how often it said something */
	void (*on_data)(struct end *end);
	void (*on_done)(struct end *end); /* an item of it is done */
	int expect_zeros;		  /* at these places of the stream, in place of the pattern */
	size_t zeros_from, zeros_to;
	uint64_t land_max; /* bytes that what is lent may come in at a time; 0: nowhere */
	int lands, landed; /* asked for, and answered, also when nothing had come */
	int puts;	   /* of these, put by the peer */
	int lends;	   /* GLEXCH_LEND_NEAR, or 0 */
	int offers;	   /* what it lends is offered to be put: 1 always, 2 at random */
	struct end *next_temp;
	size_t packets; /* taken from where they arrived */
	size_t placed;	/* bytes received that the channel put where they belong */
	uint8_t place[4096];
};

struct proc {
	struct glexch *ch;
	struct glexch_peer card;
	struct end main_end;
	struct end ends[PROCS]; /* of streams from each other process, if kit_many */
	struct end temp_end;
	int refuse; /* hellos to answer with NULL */
};

struct message {
	struct glexch_item item; /* first */
	struct iovec iov[3];
	struct end *end;
	uint8_t *bytes;
	LIST_ENTRY(message) link; /* all that are not done: a destroyed connection gives nothing back */
};

extern struct proc procs[PROCS];
extern int kit_many;			/* processes 1 and up all send to 0 */
extern struct glexch_params kit_params; /* what start_proc does not set; start resets it */
extern const struct glexch_ops kit_ops;

void fill(uint8_t *p, unsigned tag, size_t pos, size_t n);

/* Opens the channel of a process; all other parameters are small, but for the size of blocks if kit_params has one. */
void start_proc(int i, uint32_t peers, uint32_t credits, uint32_t blocks);

/* Processes 0 and 1, alone on a fresh network; and their end. */
void start(unsigned seed, uint32_t credits, uint32_t blocks);
void stop(void);

/* Names the streams between two processes. */
void tag_ends(int from, int to);

void open_end(int from, int to);

/* A message in three segments, sent as far as possible, the rest queued. */
void send_message(struct end *end, size_t n);

/* A message whose first 80 bytes are sent, and the rest lent.  0: that cannot be, and nothing has happened. */
int lend_message(struct end *end, size_t n);

/* The network delivers a little, then everybody does a round.  Returns whether there was something. */
int step(void);

/* Steps until all that was sent has arrived, or everything is quiet; fails if that takes too long. */
void settle(const struct end *from, const struct end *to);
void quiet(struct proc *p);

void steps(int n);
const struct glexch_stats *stats(int i);

/* As start, with rings of so many bytes for so many peers at most. */
void start_er(unsigned seed, enum glexch_mode mode, uint32_t most, uint32_t ring);

/* What a process has sent through rings. */
uint64_t by_ring(int i);

/* Both ways, until the rings are there. */
void open_ring(void);

#endif /* CHANNEL_KIT_H */
