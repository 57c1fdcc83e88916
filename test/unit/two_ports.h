/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * two_ports.h - two ports on two nodes, both in this process: ours posts, theirs
 * is the target.  Memory of theirs is reached by the read and write of a host
 * that is made up.
 */
#ifndef TWO_PORTS_H
#define TWO_PORTS_H

#include "unit.h"

#include <glex.h>

#include "emulator/nic/exec.h"
#include "emulator/nic/mmt.h"

#define OUR_SESSION   7u
#define THEIR_SESSION 8u
#define OUR_NIC	      3u
#define THEIR_NIC     4u
#define OUR_EP	      2u
#define THEIR_EP      9u
#define KEY	      0x1234u
#define MPQ	      8u
#define EQ	      4u
#define SIZE	      4096u
#define BIG	      (UINT64_C(3) << 31) /* a region longer than 32 bits can say */

#define OUR_EVT	  0x1111u
#define THEIR_EVT 0x2222u
#define FULL_EVT  0x9999u

struct side {
	struct emu_vport port;
	struct emu_nic *nic;
	unsigned char *memory; /* SIZE bytes, of which each is unlike its neighbours and not 0 */
	void *segment;
	uint64_t handle; /* of memory, for reading and writing */
};

struct fake {
	struct emu_host host;
	enum emu_reach reach; /* what read and write answer */
	int writes, wakes;
	_Atomic int interrupts;
	bool (*on_interrupt)(struct emu_port *port); /* what the descriptor's write does besides; NULL: works */
	struct emu_port *woken;
	bool no_port, no_nic;
	bool order_kept; /* at each write there was no event yet */
};

extern struct side ours, theirs;
extern struct emu_engine engine;
extern struct fake fake;

void setup(void);
void teardown(void);

/* Registers the first len bytes of a side's memory. */
uint64_t enter(struct side *side, uint32_t session, uint32_t ep_num, uint64_t len, uint32_t access);

glex_ep_addr_t their_addr(void);

/* A valid descriptor from us to them, with events at both sides. */
struct emu_desc desc_of(enum emu_op op, uint32_t len);

/* Executes it as ours; our memory is its immediate data. */
int exec(const struct emu_desc *desc);

bool has_event(const struct side *side);

/* Takes the next event of a side; 0: there is none. */
uint64_t next_event(struct side *side);

/* What is first in a queue, or NULL. */
struct emu_mp_slot *first_mp(struct side *side);
struct emu_err_slot *first_error(void);

void fill_eq(struct side *side);

/* True while a side's memory is as setup left it. */
bool untouched(const struct side *side);

/* The outcome of a request that breaks a rule: that status, no byte moved, nothing raised. */
void expect_refused(const struct emu_desc *desc, int status);

#endif /* TWO_PORTS_H */
