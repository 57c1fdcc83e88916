/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_net.h - a network of ports with collective units in one process, on which
 * every order of events can be tried, and whoever executes can die anywhere.
 *
 * Each node is a process of its own (a session), with two endpoints and a piece
 * of memory.  How packets get from one to the other:
 *
 *   AT_ONCE   as they do: who executes puts them there
 *   HELD      a packet lies in the network until it may arrive; what it brings, and its sender hears, comes then
 *   STEPPED   a port executes its next request when it may
 *
 * A scenario tells each node's program; net_all_orders runs it once for every
 * order in which posts, arrivals or steps can happen.
 */
#ifndef COLL_NET_H
#define COLL_NET_H

#include "unit.h"

#include <glex.h>
#include <setjmp.h>

#include "emulator/nic/coll.h"
#include "emulator/nic/exec.h"

#define NODES	   12u
#define EPS	   2u
#define NET_MPQ	   32u
#define NET_EQ	   32u
#define NET_CQ	   32u
#define NET_MEMORY 16384u
#define NET_KEY	   0x77u
#define FIRST	   10u /* session of node 0 */
#define P2	   GLEX_FLAG_COLL
#define START	   GLEX_FLAG_COLL_SEQ_START
#define TAIL	   GLEX_FLAG_COLL_SEQ_TAIL
#define CONTROL	   GLEX_FLAG_COLL_COUNTER
#define CP_DATA	   GLEX_FLAG_COLL_CP_DATA
#define CP_SWAP	   GLEX_FLAG_COLL_CP_SWAP_DATA
#define SWAP	   GLEX_FLAG_COLL_SWAP
#define REDUCE	   GLEX_FLAG_COLL_REDUCE
#define RESULT	   GLEX_FLAG_COLL_REDUCE_RESULT

enum net_way { AT_ONCE, HELD, STEPPED };

struct net_port {
	struct emu_vport port;
	struct emu_coll_view coll;
	uint32_t posted;
};

struct net_node {
	struct emu_host host;
	struct net_port ep[EPS];
	struct emu_nic *nic;
	unsigned char *memory;
	uint64_t handle; /* of memory, registered on endpoint 0 */
};

struct net {
	struct net_node node[NODES];
	uint32_t nodes;
	enum net_way way;
	bool reorder;		 /* HELD: also packets of one pair */
	uint32_t seen_at[NODES]; /* HELD: packets that have arrived, there or from there */
};

extern struct net net;

/* Of all orders. */
struct scenario {
	uint32_t nodes;
	enum net_way way;
	bool reorder;
	void (*start)(void); /* before each run, with packets that go at once; NULL: nothing */
	/*
	 * Does what node does in its turn `at` (counted from 0), by one call of net_run at
	 * its end; true: it has more to do.  Beyond its end it does nothing.
	 */
	bool (*act)(uint32_t node, uint32_t at);
	/* Can it do that yet?  NULL: always. */
	bool (*may_act)(uint32_t node, uint32_t at);
	/* Everything has happened. */
	void (*check)(void);
};

void net_setup(void);
void net_teardown(void);

/* All ports as new. */
void net_begin(uint32_t nodes, enum net_way way, bool reorder);

uint64_t net_addr(uint32_t node, uint32_t ep);

/* A request of this node's endpoint 0, or of the other; its payload. */
struct emu_desc net_mp(uint32_t flag, uint64_t dst, uint32_t counter);
struct emu_desc net_put(uint32_t flag, uint32_t to_node, uint32_t counter, uint32_t offset, uint32_t len);
void net_queue(uint32_t node, uint32_t ep, struct emu_desc desc, const void *data, uint32_t len);

/* Executes what was queued, as that node's process. */
void net_run(uint32_t node, uint32_t ep);
void net_post(uint32_t node, uint32_t ep, struct emu_desc desc, const void *data, uint32_t len);

/* Takes an MP of that length and content; false: there is none. */
bool net_take_mp(uint32_t node, uint32_t ep, void *data, uint32_t *len_p);
bool net_take_mp_from(uint32_t node, uint32_t ep, uint64_t *src_p, void *data, uint32_t *len_p);
void net_expect_mp(uint32_t node, uint32_t ep, const void *data, uint32_t len);
uint64_t net_take_event(uint32_t node, uint32_t ep); /* its first word; 0: none */
bool net_take_cookies(uint32_t node, uint32_t ep, uint64_t cookie[2]);
/* Takes an error request; -1: there is none. */
int net_take_error(uint32_t node, uint32_t ep);

/* Nothing is left anywhere: no MP, event, error, waiting request, unused control packet. */
void net_expect_clean(void);

/* Returns how many orders there were. */
uint64_t net_all_orders(const struct scenario *scenario);
/* n orders at random. */
void net_some_orders(const struct scenario *scenario, uint32_t n, uint32_t seed);
/*
 * Runs the nodes' programs in turn, AT_ONCE, and lets whoever executes die at each
 * point there is; glexd goes on.  Returns how many deaths.
 */
uint64_t net_all_deaths(const struct scenario *scenario);

#endif /* COLL_NET_H */
