/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper.h - a peer that does to a region of ours what it is told.
 *
 * One that may not use attach tells the ways apart: what it reaches it has mapped.
 */
#ifndef TEST_HELPER_H
#define TEST_HELPER_H

#include "test/lib/side.h"

/* What a peer is told to do with a region, and what it tells. */
enum act { END, PUT, GET };

struct order {
	enum act act;
	struct card target;
	uint32_t offset, len, seed;
};

struct report {
	bool failed;
	enum glex_err_req_status status;
};

struct helper {
	enum glex_ep_type type;
	bool may_attach;
};

/* Moves itself and may not attach; moves itself; lets glexd move. */
extern struct helper mapper, mover, engine;

/* For peer_start; arg: a struct helper. */
void helper_main(int fd, void *arg);

/* PUT: of bytes made from seed; GET: expects them. */
struct report tell(const struct peer *peer, const struct side *side, glex_mem_handle_t mh, enum act what,
		   uint32_t offset, uint32_t len, uint32_t seed);

void let_go(struct peer *peer);

/* PUT and GET, with what they do looked at here; base: the region's first byte. */
void expect_reached(const struct peer *peer, const struct side *side, glex_mem_handle_t mh, unsigned char *base,
		    uint32_t offset, uint32_t len);

/* len bytes from the region's beginning end as this error. */
void expect_refusal(const struct peer *peer, const struct side *side, glex_mem_handle_t mh, enum act what, uint32_t len,
		    enum glex_err_req_status status);

#endif /* TEST_HELPER_H */
