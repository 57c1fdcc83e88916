/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_ext.h - what libglex has beyond the real GLEX2 interface.
 *
 * Kept as small as can be: a program that uses it needs an #ifdef to be built
 * for the hardware.
 */
#ifndef GLEX_EXT_H
#define GLEX_EXT_H

#include <glex.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/*
 * Set it to 1 before the first endpoint is created if only one thread of the
 * process makes GLEX calls: the endpoints' locks then vanish.  It is exported by
 * the vendor's library too.
 */
extern int glex_single_threaded;

/*
 * Allocates len bytes (rounded up to whole pages) that are shareable from the
 * start: zeroed, page-aligned, and, once registered, reached by other processes
 * as a mapping, by plain copies, where private memory takes a system call a
 * transfer.  Anything inside may be registered any number of times.
 * GLEX_NO_MEM_RESOURCE: the system has not that much shared memory.
 * Thread-safe.  The memory belongs to the caller until glex_free, at the latest
 * when the process ends; it must not be unmapped by other means.
 */
glex_ret_t glex_alloc(glex_device_handle_t dev, uint64_t len, void **addr_p);

/* addr: what glex_alloc gave.  Deregister the regions inside first.  GLEX_INVALID_PARAM: not such an address. */
glex_ret_t glex_free(glex_device_handle_t dev, void *addr);

/* ---- being woken by a descriptor ------------------------------------------ */

/*
 * A descriptor for poll, select or epoll (not to be read or closed): readable
 * from an interrupt, or an arrival it was armed for, until the next
 * glex_ep_poll_intr; for good once glexd is gone.  One an endpoint, made at the
 * first call, closed with the endpoint.  Thread-safe.
 * GLEX_NO_EP_RESOURCE: this process or glexd can have no more descriptors.
 * GLEX_SYS_ERR: the device is lost, or this is a forked child.
 */
glex_ret_t glex_ep_fd(glex_ep_handle_t ep, int *fd_p);

enum glex_arm { GLEX_ARM_MP = 1, GLEX_ARM_EVENT = 2 };

/*
 * Makes the descriptor readable, once, when the next MP (GLEX_ARM_MP) or event
 * (GLEX_ARM_EVENT) arrives, whatever its sender's flags.  It replaces an arming
 * that was not answered yet; 0 only ends that.  Senders to an endpoint that is
 * not armed pay nothing.
 * GLEX_BUSY: nothing is armed, for there is something already that has not been
 * probed or received: take it first.  So nobody can miss anything who does
 *
 *	for (;;) {
 *		while (glex_receive_mp(ep, 0, &src, data, &len) == GLEX_SUCCESS)
 *			...
 *		if (glex_ep_arm(ep, GLEX_ARM_MP) == GLEX_BUSY)
 *			continue;
 *		poll(&fd, 1, -1);
 *		num = 8;
 *		glex_ep_poll_intr(ep, &num, list, NULL);
 *	}
 *
 * The descriptor may also become readable for nothing.  Other results as
 * glex_ep_fd.  Thread-safe; threads that arm one endpoint replace each other's.
 */
glex_ret_t glex_ep_arm(glex_ep_handle_t ep, uint32_t what);

enum glex_intr_cause {
	GLEX_INTR_LOCAL = 1,  /* a request of this endpoint with GLEX_FLAG_LOCAL_INTR is complete; peer: its target */
	GLEX_INTR_REMOTE,     /* one of peer's with GLEX_FLAG_REMOTE_INTR has arrived, its data and event are here */
	GLEX_INTR_ERROR,      /* glex_poll_error_req has something new; peer: the target of that request */
	GLEX_INTR_BAD_PACKET, /* glex_ep_poll_bad_packet has something new; peer: who sent it */
	GLEX_INTR_PEER_DEAD   /* the process of peer, to which one of both had sent, has ended with the endpoint open */
};

enum { GLEX_INTR_FIELD_CAUSE = 1, GLEX_INTR_FIELD_PEER = 2, GLEX_INTR_FIELDS = 3 };

struct glex_intr {
	uint64_t field_mask; /* which of the members below are set: GLEX_INTR_FIELD_* */
	enum glex_intr_cause cause;
	uint32_t reserved;
	glex_ep_addr_t peer;
};

/*
 * Ends the descriptor's being readable and takes up to *num (1 to 4096)
 * interrupts, oldest first; *num becomes how many they are, 0 being no error.
 * The queue holds 64: *lost_p (may be NULL) becomes how many found it full since
 * the endpoint was created; they made the descriptor readable all the same.
 * GLEX_SYS_ERR, when there are none: the device is lost.  Thread-safe.
 */
glex_ret_t glex_ep_poll_intr(glex_ep_handle_t ep, uint32_t *num, struct glex_intr *list, uint32_t *lost_p);

/* Why a packet was not, or not wholly, accepted here; its sender has an error request. */
enum glex_bad_cause {
	GLEX_BAD_HANDLE = 1, /* no such region, or not any more */
	GLEX_BAD_ENDPOINT,   /* the region is registered on another endpoint */
	GLEX_BAD_BOUNDS,
	GLEX_BAD_KEY,
	GLEX_BAD_ACCESS,   /* the region is not registered for writing, or for reading */
	GLEX_BAD_MPQ_FULL, /* the MP is lost */
	GLEX_BAD_EQ_FULL   /* the data is in place, the event is lost */
};

enum {
	GLEX_BAD_PACKET_FIELD_SRC = 1,
	GLEX_BAD_PACKET_FIELD_OP = 2,
	GLEX_BAD_PACKET_FIELD_CAUSE = 4,
	GLEX_BAD_PACKET_FIELD_REGION = 8, /* mh, offset, len, key */
	GLEX_BAD_PACKET_FIELDS = 15
};

struct glex_bad_packet {
	uint64_t field_mask; /* which of the members below are set: GLEX_BAD_PACKET_FIELD_* */
	glex_ep_addr_t src;
	enum glex_err_req_op op;
	enum glex_bad_cause cause;
	glex_mem_handle_t mh; /* this, offset and key as the packet had them; 0 for an MP */
	uint64_t offset;
	uint32_t len;
	uint32_t key;
};

/* Takes bad packets as glex_ep_poll_intr takes interrupts; that queue too holds 64.  Leaves the descriptor alone. */
glex_ret_t glex_ep_poll_bad_packet(glex_ep_handle_t ep, uint32_t *num, struct glex_bad_packet *list, uint32_t *lost_p);

/*
 * The value in force of a numeric variable of glex_env(7): for the layers above,
 * which have their rows in the same table and so need no parser of their own.
 * Sizes in bytes, times in the unit of the row.  GLEX_INVALID_PARAM: no such
 * variable, or not a number.  Thread-safe, needs no device.
 */
glex_ret_t glex_config_uint(const char *name, uint64_t *value_p);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* GLEX_EXT_H */
