/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * move.h - bytes from one region to another, and what the model needs of the
 * process that turns its crank: libglex in the poster, or glexd.
 */
#ifndef EMU_MOVE_H
#define EMU_MOVE_H

#include "emulator/nic/bias.h"
#include "emulator/nic/copy.h"
#include "emulator/nic/mmt.h"
#include "emulator/nic/together.h"
#include "emulator/nic/vport.h"

/* The result of reaching memory; the errno-like causes are the host's to log. */
enum emu_reach { EMU_REACH_OK, EMU_REACH_GONE, EMU_REACH_FAULT, EMU_REACH_REFUSED };

struct emu_host;
struct emu_coll_view;

/* Everything here may be called from the post path: none may block for long. */
struct emu_host_ops {
	/* The port, or NULL when there is none (any more).  Valid until the crank's caller returns. */
	struct emu_vport *(*port)(struct emu_host *host, uint32_t nic_id, uint32_t ep_num);
	/* The memory table of that node, or NULL. */
	struct emu_nic *(*nic)(struct emu_host *host, uint32_t nic_id);
	/* Where the shared object {generation, slot} is mapped here, and how long it is; NULL: cannot be had, or written. */
	unsigned char *(*map)(struct emu_host *host, uint64_t map, bool write, uint64_t *len_p);
	/* Copies between here and the private memory of pid.  A tail > 0: the last `tail` bytes are stored last. */
	enum emu_reach (*read)(struct emu_host *host, uint32_t pid, void *here, uint64_t there, uint64_t len);
	enum emu_reach (*write)(struct emu_host *host, uint32_t pid, const void *here, uint64_t there, uint64_t len,
				uint32_t tail);
	/* Wakes who sleeps on the port. */
	void (*wake)(struct emu_host *host, struct emu_port *port);
	/* The collective unit of a port that `port` gave, made if need be; NULL: it cannot be had.  As long as the port. */
	struct emu_coll_view *(*coll)(struct emu_host *host, struct emu_vport *port);
	/*
	 * Out of order: EMU_OK: has kept a packet of a collective unit, and sees to it that it is sent later
	 * (emu_coll_send); EMU_NOW: it is to be sent now; else the status for the poster.  NULL: all go at once.
	 */
	int (*hold)(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data);
	/* Makes the descriptor of a port that has one readable.  False: that could not be done. */
	bool (*interrupt)(struct emu_host *host, struct emu_port *port);
};

/*
 * A region that a request of this host has found and that lies open to it: as
 * long as the table shows its generation as valid, nothing of this changes but the port's mapping.
 */
struct emu_known {
	uint64_t handle; /* 0: none */
	uint64_t port;	 /* glex_ep_addr_t.v of the endpoint it is registered on */
	struct emu_nic *nic;
	unsigned char *base; /* where its first byte is here */
	uint64_t len;
	uint32_t key;
	uint32_t access;
	uint32_t session;
	uint32_t reserved0;
	struct emu_vport *to; /* the endpoint's port, of the other end; open or not.  One cache line */
};

/* The same of another process's private memory, which is reached by attach. */
struct emu_away {
	uint64_t handle; /* 0: none */
	uint64_t port;
	struct emu_nic *nic;
	uint64_t addr; /* of its first byte, there */
	uint64_t len;
	uint32_t key;
	uint32_t access; /* emu_mmt_access: it says so as long as the region has no better way */
	uint32_t pid;
	uint32_t reserved0;
	uint64_t reserved1; /* one cache line */
};

#define EMU_KNOWN 16u /* of each end */

enum emu_end { EMU_END_LOCAL = 0, EMU_END_REMOTE = 1 };

/* Who turns the crank.  Embedded in the caller's own structure. */
struct emu_host {
	const struct emu_host_ops *ops;
	struct emu_engine *engine;
	uint32_t model;	       /* 1: the NICs have translation caches that each access walks through (att.h) */
	uint32_t session;      /* claims slots under this name, and reaches its own regions directly */
	struct emu_bias bias;  /* and so in MPQs and EQs */
	unsigned char *bounce; /* for moves between two private memories of others; NULL: there is a smaller one */
	uint64_t bounce_size;
	uint32_t turn;		      /* counts long copies (copy.h); the crank's caller serialises */
	uint64_t attach_chunk;	      /* what ops->read and write move by one call; 0: they may not */
	struct emu_port_counters *by; /* counts the ways taken; may be NULL */
	/*
	 * 2 * EMU_KNOWN regions found before (fast.h), or NULL.  Who unmaps anything that
	 * ops->map, ops->nic or ops->port gave clears them first; the crank's caller serialises.
	 */
	struct emu_known *known;
	struct emu_away *away;		  /* EMU_KNOWN of those, or NULL; as known */
	emu_copy_way *way[EMU_COPY_WAYS]; /* emu_copy_ways, for who copies inline (fast.h); or NULL */
};

/*
 * Copies so that a process that polls dst sees what the interface promises: up
 * to 128 bytes in ascending order, and always the last naturally aligned word
 * (8, 4, 2 or 1 bytes) at the very end.
 */
void emu_copy_ordered(void *dst, const void *src, uint64_t len);

/* The way for a copy of len bytes, which will be the next: what was measured to be the best, and turned. */
static inline uint32_t emu_copy_way_now(struct emu_host *host, uint64_t len)
{
	struct emu_engine *engine = host->engine;
	uint64_t picks = atomic_load_explicit(&engine->copiers, memory_order_relaxed), /* relaxed: any will do */
		stream_from = atomic_load_explicit(&engine->stream_from, memory_order_relaxed); /* relaxed: the same */

	if (len >= EMU_COPY_TURN_MIN)
		host->turn++;
	return emu_copy_turned(emu_copier_for(picks, stream_from, len), len, host->turn);
}

/* The same in that way. */
void emu_copy_here(struct emu_host *host, void *dst, const void *src, uint64_t len);

/* Length of that last word for a copy that ends at address end. */
uint32_t emu_tail_of(uint64_t end, uint64_t len);

/* Where the region begins in this process if all of it lies open here, for reading or also for writing; else NULL. */
unsigned char *emu_direct(struct emu_host *host, const struct emu_region *region, bool write);

/* Moves len bytes from src+src_off to dst+dst_off.  The ranges have been checked. */
enum emu_reach emu_move(struct emu_host *host, const struct emu_region *dst, uint64_t dst_off,
			const struct emu_region *src, uint64_t src_off, uint64_t len);

/* The same from plain memory of the caller. */
enum emu_reach emu_move_from(struct emu_host *host, const struct emu_region *dst, uint64_t dst_off, const void *src,
			     uint64_t len);

/* The same to plain memory of the caller, which nobody polls. */
enum emu_reach emu_move_to(struct emu_host *host, void *dst, const struct emu_region *src, uint64_t src_off,
			   uint64_t len);

/* Moves len bytes from memory of this process into such a region, or from there to here. */
enum emu_reach emu_move_away(struct emu_host *host, const struct emu_away *away, uint64_t offset, void *here,
			     uint64_t len, bool put);

#endif /* EMU_MOVE_H */
