/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backend.h - what stands between the API (core/) and whatever plays the NIC.
 *
 * Cold calls go through a table, chosen once when the device is opened.  The hot
 * ones do not: a backend puts its three posting functions into the public
 * endpoint, and shows its queues as rings that core/ reads without calling it.
 */
#ifndef GLEXI_BACKEND_H
#define GLEXI_BACKEND_H

#ifndef GLEXI_BUILD
#error "backend.h is not for users"
#endif

#include <glex.h>
#include <glex_ext.h>

#include "emulator/nic/ring.h"
#include "emulator/nic/together.h"

struct glexi_device;
struct glexi_ep;
struct glexi_put_way;
struct glexi_queue;

/* What peers find in a region if the process unmaps its pages and maps others in their place. */
enum glexi_mem_tie {
	GLEXI_TIED_TO_ADDRESS, /* the new ones */
	GLEXI_TIED_TO_ALLOC,   /* cannot happen: memory of alloc, unmapped by free only */
	GLEXI_TIED_TO_OBJECT   /* the old ones */
};

#define GLEXI_NODES 1024
/* Of mem_register: */
#define GLEXI_MEM_KEPT	64 /* the way to the region stays what it is */
#define GLEXI_MEM_TRIAL 32 /* where there is no room for it the caller can make some: nothing is said of that */

/* What shareable memory should be like; granted as far as the system can. */
struct glexi_alloc_wish {
	bool huge;
	bool untouched; /* pages are zeroed when somebody touches them */
	int node;	/* -1: any */
};

/* Keep sorted.  Every member is set.  Callers have checked pointers and ranges that need no backend to judge. */
struct glexi_be_ops {
	const char *name;

	/* Shareable memory; core has rounded len up to pages. */
	glex_ret_t (*alloc)(struct glexi_device *dev, uint64_t len, const struct glexi_alloc_wish *wish, void **addr_p);

	/* True while the NIC behind the device answers.  May make a system call; never waits. */
	bool (*alive)(struct glexi_device *dev);

	/* Executed when it returns; the request's words have been checked. */
	glex_ret_t (*atomic)(struct glexi_ep *ep, const struct glex_atomic_req *req, uint64_t *old_p);

	/* The other end of open; all endpoints are gone. */
	void (*close)(struct glexi_device *dev);

	/* (Un)arms the descriptor for GLEX_ARM_*; after it returns, who sends next sees it.  0: disarms. */
	glex_ret_t (*ep_arm)(struct glexi_ep *ep, uint32_t what);

	/* True where spinning may keep off its core whom one waits for: more processes than cores. */
	bool (*crowded)(const struct glexi_device *dev);

	/* Endpoints whose process ended with them open, from number *next on, up to max; *next: what to go on with. */
	uint32_t (*dead)(const struct glexi_device *dev, uint64_t *next, uint32_t max, struct glex_dead *list);

	/* How many of them there have been. */
	uint64_t (*deaths)(const struct glexi_device *dev);

	/* Fills ep: pub, addr, attr (assigned number, real capacities), queues, counters, be. */
	glex_ret_t (*ep_create)(struct glexi_ep *ep);

	/* The descriptor of glex_ep_fd; made at the first call. */
	glex_ret_t (*ep_fd)(struct glexi_ep *ep, int *fd_p);

	/* It is readable no more until something comes. */
	void (*ep_fd_clear)(struct glexi_ep *ep);

	/* Completes what is queued, frees everything ep_create made.  Nobody uses the endpoint any more. */
	void (*ep_destroy)(struct glexi_ep *ep);

	/*
	 * Sleeps at most ns nanoseconds, unless the slot at queue->read is there
	 * already or arrives.  May return early for any reason.
	 */
	void (*ep_sleep)(struct glexi_ep *ep, struct glexi_queue *queue, uint64_t ns);

	/* addr was given by alloc, or INVALID_PARAM. */
	glex_ret_t (*free)(struct glexi_device *dev, void *addr);

	/* In the child of a fork: touch nothing shared, drop nothing. */
	void (*forked)(struct glexi_device *dev);

	/* The request's form has been checked. */
	glex_ret_t (*inject)(struct glexi_ep *ep, const struct glex_imm_rdma_req *req);
	glex_ret_t (*fetch)(struct glexi_ep *ep, const struct glex_imm_rdma_req *req);
	/* Fills the way, if PUTs along it are the poster's to make, without a lock; false: they have to be posted. */
	bool (*find_put_way)(struct glexi_ep *ep, struct glexi_put_way *way);
	/* NULL: not known, or nowhere. */
	const void *(*prefetch_at)(struct glexi_ep *ep, const struct glex_imm_rdma_req *req);
	glex_ret_t (*mem_deregister)(struct glexi_ep *ep, glex_mem_handle_t mh);

	/*
	 * These bytes are registered again and again: moves them to where peers reach
	 * them faster, as far as that is allowed.  Takes up to a millisecond a MiB, once;
	 * asked again about the same bytes it does nothing, in some tens of nanoseconds.
	 * quiet: no registration over them is in use by anybody now, and until it returns
	 * none will be; the caller has deregistered its own that peers may write to.
	 * Without that only such is done as peers do not notice (huge pages).
	 * True: a region registered now has a better way than one of before, so that the
	 * caller should register them anew.  False: nothing has changed in that.
	 */
	bool (*mem_promote)(struct glexi_device *dev, void *addr, uint64_t len, bool quiet);
	/* flag: also GLEXI_MEM_KEPT, for mem_tie's answer to stay true as long as the region is, and GLEXI_MEM_TRIAL. */
	glex_ret_t (*mem_register)(struct glexi_ep *ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh);

	/*
	 * Part of it was adopted, and no mapping holds all of its whole pages: peers map that
	 * part and reach the rest in another way, so mem_promote may do something for it.
	 */
	bool (*mem_is_split)(struct glexi_device *dev, void *addr, uint64_t len);

	/* Of a region registered with GLEXI_MEM_KEPT. */
	enum glexi_mem_tie (*mem_tie)(struct glexi_ep *ep, glex_mem_handle_t mh);

	/* Connects; sets dev->be. */
	glex_ret_t (*open)(struct glexi_device *dev);

	void (*query)(struct glexi_device *dev, struct glex_device_attr *attr);

	/* Called again and again by who waits or polls in vain, and holds no lock: gives back what nobody needs.  Never waits. */
	void (*tend)(struct glexi_device *dev);
};

extern const struct glexi_be_ops glexi_nic_ops;

#endif /* GLEXI_BACKEND_H */
