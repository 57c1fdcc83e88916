/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_glex.h - a network inside one process, for tests that need orders and
 * faults a real one produces once in a million packets.
 *
 * It stands in for libglex: all endpoints are of this process, and nothing is
 * delivered until fake_deliver is called, which takes what is under way in a
 * random order.  Threads: one.
 */
#ifndef FAKE_GLEX_H
#define FAKE_GLEX_H

#include <glex.h>

struct fake_glex {
	int direct;		 /* deliver at once and in order, as an idle fabric does */
	int busy_percent;	 /* posts refused */
	int broken;		 /* the device is lost: polling says so */
	int regions_max;	 /* registrations possible at a time */
	int regions;		 /* registrations there are */
	int cache_broken;	 /* registration caches refuse everything, as for a reason nobody has thought of */
	int gets_invalid;	 /* GETs are refused likewise */
	int mapped;		 /* what is registered, peers map */
	unsigned registered;	 /* by registration caches, in all */
	uint64_t private_handle; /* of a region nobody can reach */
	int puts_refused;	 /* PUTs of regions reach nothing */
	unsigned invalidated;	 /* calls of glex_mem_invalidate */
	int words_lie;		 /* immediate PUTs of one word arrive as nonsense */
	unsigned lost;		 /* MPs and events that found a full queue */
	unsigned mpq_peak;	 /* the longest any MPQ has been */
	unsigned mps;		 /* sent in all */
	unsigned credit_mps;	 /* of them, those that bring only credits */
	int injects;		 /* glex_inject and glex_fetch are there; with every other seed */
	unsigned injected;	 /* PUTs made by it */
	unsigned fetched;	 /* GETs made by the other */
	uint32_t def_capacity;	 /* what the device says of its MPQs */
	uint64_t deaths;	 /* by fake_announce_death */
};

extern struct fake_glex fake;

void fake_reset(unsigned seed);
unsigned fake_random(unsigned below);

/* Delivers up to n packets; returns how many are still under way. */
int fake_deliver(int n);

/* The process behind an endpoint is dead. */
void fake_kill(glex_ep_addr_t addr);

/* glex_poll_dead tells of one, which need not be. */
void fake_announce_death(glex_ep_addr_t addr);

/* glex_poll_error_req tells `of` of a request to rmt that came to nothing. */
void fake_report(glex_ep_addr_t of, glex_ep_addr_t rmt, enum glex_err_req_status status);

/* What the MP sent last consists of. */
const uint8_t *fake_last_mp(void);

/* Puts an MP of any content into a queue. */
void fake_inject(glex_ep_addr_t from, glex_ep_addr_t to, const void *data, uint32_t len);

#endif /* FAKE_GLEX_H */
