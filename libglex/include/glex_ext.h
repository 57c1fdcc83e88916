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
 * process makes GLEX calls: the endpoints' locks then vanish, as they do anyway
 * while the process has one thread.  It is exported by the vendor's library too.
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

enum glex_alloc_attr_field {
	GLEX_ALLOC_ATTR_HUGE_PAGES = 1,
	GLEX_ALLOC_ATTR_NUMA_NODE = 2,
	GLEX_ALLOC_ATTR_UNTOUCHED = 4,
};

struct glex_alloc_attr {
	uint64_t field_mask; /* the members that are set */
	uint32_t huge_pages; /* 1: of huge pages (2 MiB), as far as the system has them; 0: as it comes */
	uint32_t numa_node;  /* whose memory is preferred */
	uint32_t untouched;  /* 1: the pages are reserved, and zeroed when each is first touched; 0: all now */
};

/*
 * As glex_alloc, with wishes; attr may be NULL.  A wish that the system does not
 * grant costs nothing but speed: the memory is there, and the log says at level
 * info how much of it is as wished and why the rest is not; glex_info -d counts
 * units of 2 MiB that were put into huge pages, and those that could not be.
 * All memory of both calls is touched beforehand, unless untouched is wished for:
 * nobody waits for a page later.  Untouched memory is the system's promise all the
 * same: no later access can fail for want of it.
 * GLEX_INVALID_PARAM: also an unknown field, a node above 1023.
 */
glex_ret_t glex_alloc_with(glex_device_handle_t dev, uint64_t len, const struct glex_alloc_attr *attr, void **addr_p);

/* addr: what one of them gave.  Deregister the regions inside first.  GLEX_INVALID_PARAM: not such an address. */
glex_ret_t glex_free(glex_device_handle_t dev, void *addr);

/* ---- atomic operations ------------------------------------------------------ */

/*
 * A further flag of glex_register_mem: others may operate on the region by
 * glex_atomic.  Every byte of it is then reached by a mapping: private memory is
 * adopted in place, with all of its pages (glex_register_mem(3)), and neither
 * its owner's nor anybody's atomic instructions miss those of others.
 * GLEX_SYS_ERR: it cannot be; the log says why.  Stacks, initialised static data,
 * private mappings of files, locked memory, shared files that may shrink, with
 * threads also memory of which a part is adopted already: use glex_alloc, or a block of its own.
 */
enum { GLEX_MEM_ATOMIC = 128 };

/*
 * Another: as with GLEX_MEM_ATOMIC every byte is reached by a mapping, or GLEX_SYS_ERR says that it
 * cannot be.  For a caller who goes on without, then: the log says why at level info, and nothing of a
 * memory table that is full, or of a limit.
 */
enum { GLEX_MEM_MAPPED = 256 };

enum glex_atomic_op {
	GLEX_ATOMIC_ADD,
	GLEX_ATOMIC_AND,
	GLEX_ATOMIC_OR,
	GLEX_ATOMIC_XOR,
	GLEX_ATOMIC_SWAP,
	GLEX_ATOMIC_CAS /* operand takes the word's place if that is equal to compare */
};

enum glex_atomic_field {
	GLEX_ATOMIC_FIELD_TARGET = 1, /* rmt_ep_addr, rmt_mh, rmt_offset, rmt_key */
	GLEX_ATOMIC_FIELD_OP = 2,     /* op, width, operand */
	GLEX_ATOMIC_FIELD_COMPARE = 4,
	GLEX_ATOMIC_FIELDS = 7
};

struct glex_atomic_req {
	uint64_t field_mask; /* the members that are set: TARGET and OP, for GLEX_ATOMIC_CAS also COMPARE */
	glex_ep_addr_t rmt_ep_addr;
	glex_mem_handle_t rmt_mh;
	uint32_t rmt_offset; /* of the word in the region; its address is a multiple of width */
	uint32_t rmt_key;
	enum glex_atomic_op op;
	uint32_t width; /* bytes: 4 or 8; of operand and compare the low ones count */
	uint64_t operand;
	uint64_t compare;
};

/*
 * Operates on one word of a region, of this process or another, and gives what
 * it held before (4 bytes: the upper half of *old_p is 0).  One atomic
 * instruction, sequentially consistent, on the same memory as the instructions
 * of all others; the target need not call anything.  It is done when the call
 * returns, after everything that this endpoint has posted, unless GLEX_REORDER
 * is set; it raises no events.  Thread-safe.
 * GLEX_BUSY: the descriptor queue is not empty yet; repeat it; clears by itself.
 * GLEX_ACCESS_ERR: nothing was done; glex_poll_error_req, as of an immediate
 * PUT, has the status: _MMT (not registered with GLEX_MEM_ATOMIC, wrong key, out
 * of the region), _ATT, _DEST_VP_STOP, _FORMAT (not aligned), _PCIE_READ (this
 * process could not map it).
 * GLEX_INVALID_PARAM: op, width or field_mask.  GLEX_SYS_ERR: the device is lost.
 */
glex_ret_t glex_atomic(glex_ep_handle_t ep, const struct glex_atomic_req *req, uint64_t *old_p);

/*
 * An immediate PUT of up to max_rdma_data_len bytes, from any memory of the
 * caller, registered or not, which is the caller's again when the call returns.
 * The request is that of glex_imm_rdma, and so are errors and order; flag may have
 * GLEX_FLAG_REMOTE_EVT and GLEX_FLAG_FENCE, next must be NULL.  Of more than
 * max_imm_rdma_data_len bytes only the last aligned word is sure to come last.
 * It saves the copy into registered memory that glex_rdma would need, not the
 * time of the transfer: that is spent in the call.  Thread-safe.
 * GLEX_NOT_IMPLEMENTED: never possible at this endpoint, whose requests others
 * execute (NORMAL, or GLEX_REORDER is set): use glex_rdma.
 * GLEX_BUSY: not now; repeat it.  GLEX_INVALID_PARAM: length, flags, next, or no
 * data.  GLEX_SYS_ERR: the device is lost.
 */
glex_ret_t glex_inject(glex_ep_handle_t ep, const struct glex_imm_rdma_req *req);

/*
 * The opposite: an RDMA GET into any memory of the caller, registered or not, of up
 * to max_rdma_data_len bytes, which have come when the call returns.  In the request
 * data is where they go; the flags are those of glex_inject, the remote event follows
 * the bytes.  It saves the copy out of registered memory.  Thread-safe.
 * GLEX_ACCESS_ERR: nothing has come; glex_poll_error_req has the status, as of a GET.
 * GLEX_NOT_IMPLEMENTED: as of glex_inject; use glex_rdma.  GLEX_INVALID_PARAM: length,
 * flags, next, or no data.  GLEX_SYS_ERR: the device is lost.
 */
glex_ret_t glex_fetch(glex_ep_handle_t ep, const struct glex_imm_rdma_req *req);

/*
 * Where the first byte of such an immediate PUT goes in the address space of this
 * process, as far as that is known: for a prefetch (for writing), and nothing else.  A
 * poller has the line, and to take it from him lasts as long as all that is done before
 * the PUT.  It may be unmapped at any time, which a prefetch does not mind; so one
 * answer serves for as many requests to the region as may be: ask again now and then.
 * NULL: not mapped here (nothing has been PUT there yet, it is reached by attach, it is
 * on another machine), or a parameter is NULL.  Of req only rmt_ep_addr, rmt_mh, rmt_offset,
 * rmt_key and len are looked at.  Thread-safe.
 */
const void *glex_prefetch_at(glex_ep_handle_t ep, const struct glex_imm_rdma_req *req);

/*
 * The way of immediate PUTs from an endpoint to one region of another: what glex_put_place looks at, in the caller's
 * own code, which takes less than a call.  Its fields are the library's.
 */
struct glex_put_way {
	unsigned char *base; /* of the region, in this process */
	uint64_t len;	     /* of it; 0: it is not known where that is, or by no way to be stored to */
	const uint64_t *valid;
	uint64_t generation;   /* what *valid shows as long as the region is there, */
	const uint32_t *state; /* *state while its endpoint is, */
	uint32_t open;
	const uint32_t *lost;  /* *lost, which is 0, while the network is, */
	const uint8_t *alone;  /* and *alone, which is not 0, while no other thread can use the endpoint */
	uint64_t *counters[2]; /* that this endpoint alone counts in */
	uint32_t atomic;       /* not 0: the region was registered for glex_atomic, */
	uint32_t readable;     /* or for GETs */
};

/*
 * A way to a region; nothing is looked at yet, and nothing goes wrong if there is no such region.  It ends with
 * glex_put_way_close, or with the endpoint.  Thread-safe.
 * GLEX_INVALID_PARAM: ep or way_p is NULL.  GLEX_NO_MEM_RESOURCE: of this process.
 */
glex_ret_t glex_put_way_open(glex_ep_handle_t ep, glex_ep_addr_t to, glex_mem_handle_t rmt_mh, uint32_t rmt_key,
			     struct glex_put_way **way_p);

/* It must not be used any more; NULL is none.  Thread-safe. */
void glex_put_way_close(struct glex_put_way *way);

/* What glex_put_place does where the way has not been found yet, or has changed: looks for it.  It counts nothing. */
void *glex_put_way_find(struct glex_put_way *way, uint32_t rmt_offset, uint32_t len);

/* What all of those below look at: whether it is as the way shows. */
static inline int glex_put_way_is_open(const struct glex_put_way *way, uint32_t rmt_offset, uint32_t len)
{
	/* First whether there is nobody else: another thread may be changing what the way shows. */
	return __builtin_expect(*way->alone, 1) && __builtin_expect((uint64_t)rmt_offset + len <= way->len, 1) &&
	       __builtin_expect(__atomic_load_n(way->valid, __ATOMIC_ACQUIRE) == way->generation, 1) && /* MMT-A3 */
	       /* relaxed: as the library itself looks at a port, */
	       __builtin_expect(__atomic_load_n(way->state, __ATOMIC_RELAXED) == way->open, 1) &&
	       /* relaxed: and at a flag that only ever goes up */
	       __builtin_expect(__atomic_load_n(way->lost, __ATOMIC_RELAXED) == 0, 1);
}

/*
 * Where the bytes of an immediate PUT go, for a caller who stores them there himself, and so has less to do than to call
 * glex_imm_rdma: of len bytes, at least 1, without an event.  They are his to store until he calls anything of
 * this library, and he stores all, as the NIC would: whole aligned words where somebody looks for words, and last, by a
 * release store, the one that is looked for last.  It counts as an immediate PUT, behind everything that this
 * endpoint has posted.  By one thread at a time.
 * NULL: use glex_imm_rdma or glex_inject, for whatever reason: nothing has been PUT there yet, the process has threads,
 * others execute the endpoint's requests (NORMAL, GLEX_REORDER), the region has gone, or would refuse it.  Once that has
 * been done a way may be found: ask again for each.
 */
static inline void *glex_put_place(struct glex_put_way *way, uint32_t rmt_offset, uint32_t len)
{
	void *place;
	uint64_t n;
	int i;

	if (glex_put_way_is_open(way, rmt_offset, len))
		place = way->base + rmt_offset;
	else if (!(place = glex_put_way_find(way, rmt_offset, len)))
		return NULL;
	for (i = 0; i < 2; i++) {
		n = __atomic_load_n(way->counters[i], __ATOMIC_RELAXED) + 1; /* relaxed: a counter */
		__atomic_store_n(way->counters[i], n, __ATOMIC_RELAXED);     /* relaxed: a counter */
	}
	return place;
}

/*
 * The same for glex_atomic: where the word is, of width bytes, 4 or 8, for a caller who operates on it himself, and at
 * once, by an instruction that is atomic for all processors; or loads it, and what is before it in the region.  By one
 * thread at a time.
 * NULL: use glex_atomic, for whatever reason: as above, or the region was not registered for it.
 */
static inline void *glex_atomic_place(struct glex_put_way *way, uint32_t rmt_offset, uint32_t width)
{
	if (!glex_put_way_is_open(way, rmt_offset, width) && !glex_put_way_find(way, rmt_offset, width))
		return NULL;
	return way->atomic && ((uintptr_t)way->base + rmt_offset) % width == 0 ? way->base + rmt_offset : NULL;
}

/*
 * The same for glex_fetch: where the bytes are that a caller loads himself, until he calls anything of this library.  By
 * one thread at a time; it is counted nowhere.
 * NULL: use glex_fetch, for whatever reason: as of glex_put_place, or the region was not registered to be read.
 */
static inline const void *glex_get_place(struct glex_put_way *way, uint32_t rmt_offset, uint32_t len)
{
	if (!glex_put_way_is_open(way, rmt_offset, len) && !glex_put_way_find(way, rmt_offset, len))
		return NULL;
	return way->readable ? way->base + rmt_offset : NULL;
}

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
 * The queue holds 64, or as many as the MPQ if these are fewer, but 16: *lost_p (may be NULL) becomes how many found it full since
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

/* Takes bad packets as glex_ep_poll_intr takes interrupts; that queue holds as many.  Leaves the descriptor alone. */
glex_ret_t glex_ep_poll_bad_packet(glex_ep_handle_t ep, uint32_t *num, struct glex_bad_packet *list, uint32_t *lost_p);

enum { GLEX_DEAD_FIELD_ADDR = 1, GLEX_DEAD_FIELD_NUMBER = 2, GLEX_DEAD_FIELDS = 3 };

struct glex_dead {
	uint64_t field_mask; /* which of the members below are set: GLEX_DEAD_FIELD_* */
	glex_ep_addr_t addr;
	uint64_t number; /* how many had died before it */
};

/*
 * Endpoints of all processes on this network that ended without destroying them (killed,
 * crashed, or by exit), whether anybody had sent to them or not, in the order of their deaths:
 * up to *num, from number *next on, go to list; *num becomes how many they are, 0 being no
 * error, *next the number to go on with.  It looks at one word when there is nothing new, so it
 * may be called often; milliseconds after a death it is there.
 * *num 0 on entry: nothing is taken (list may be NULL), *next becomes the number of the next to
 * die.  Who asks so right after creating an endpoint can tell it from earlier ones with its
 * address: those have lower numbers.  However late one looks, none is missed; where an address
 * has died several times, earlier ones may be left out, and with them their numbers.
 * GLEX_INVALID_PARAM: a pointer is NULL.  GLEX_SYS_ERR: the device is lost.  Thread-safe.
 */
glex_ret_t glex_poll_dead(glex_device_handle_t dev, uint64_t *next, uint32_t *num, struct glex_dead *list);

/*
 * 1: more processes have a device of this network open than there are processors that any of
 * them may run on, or there is one processor.  Then who polls without giving way (sched_yield)
 * keeps those he waits for from running.  0: not so, not known, or dev is NULL.  It changes as
 * processes come, go and are counted; two loads, so it may be asked often.  Thread-safe.
 */
int glex_is_crowded(glex_device_handle_t dev);

/*
 * Instead of glex_destroy_ep, for an endpoint that others may still send to, who would else reach whoever is given
 * its number next: the handle is gone, the number is not given out, and what comes is nobody's. Endpoint
 * and memory go when the device is closed for the last time, so as many can be retired as a NIC has endpoints.
 * GLEX_INVALID_PARAM: NULL.  GLEX_SYS_ERR: a child's copy of its parent's.  Thread-safe.
 */
glex_ret_t glex_retire_ep(glex_ep_handle_t ep);

/*
 * From now on stderr has nothing about its requests that come to nothing: for who asks somebody who may have gone, and
 * minds it as little.  glex_poll_error_req has them, and they are counted, as before.
 * GLEX_INVALID_PARAM: NULL.  Thread-safe.
 */
glex_ret_t glex_quiet_ep(glex_ep_handle_t ep);

/*
 * The value in force of a numeric variable of glex_env(7): for the layers above,
 * which have their rows in the same table and so need no parser of their own.
 * Sizes in bytes, times in the unit of the row, a choice as its place in the
 * list of them, from 0.  GLEX_INVALID_PARAM: no such variable, or not a number.
 * Thread-safe, needs no device.
 */
glex_ret_t glex_config_uint(const char *name, uint64_t *value_p);

/* ---- registration cache -------------------------------------------------- */

/*
 * Regions that are kept registered after their use, for those who send from the
 * same buffers again and again.  A cache belongs to one endpoint:
 *
 *      glex_rcache_get(rc, buf, len, GLEX_MEM_READ, &region);
 *      ... region.mh and region.offset in requests, or sent to a peer ...
 *      glex_rcache_put(rc, &region);
 *
 * get returns a region that covers the buffer: one that is cached (some ten
 * nanoseconds), or a new one of the buffer's whole pages, merged with cached
 * ones that it overlaps or touches.  So peers who hold the handle may reach more
 * than the buffer: its pages, and its neighbours', with the rights that any of
 * the overlapping ones was asked for.  Between get and put the region stays
 * registered whatever happens, and the buffer must stay mapped.
 *
 * A cached region must not outlive what it was made from.  A region that is
 * reached by its address (attach: what glex_register_mem usually makes of
 * private memory) cannot: peers find there whatever the process has mapped
 * there when they come.  One that names a shared object can: if its pages are
 * unmapped and others mapped in the same place, peers would still reach the
 * object.  Memory of glex_alloc is such an object, and glex_free tells the
 * caches.  For all others something must notice munmap, mremap, madvise, ...:
 * GLEX_MEM_MONITOR of glex_env(7) says what.  Where nothing does, such regions
 * are registered for each get and deregistered by its put.
 *
 * Thread-safe, on an endpoint of any kind, whatever glex_single_threaded says.
 */
typedef struct glex_rcache *glex_rcache_handle_t;

enum glex_rcache_attr_field {
	GLEX_RCACHE_ATTR_MAX_COUNT = 1,
	GLEX_RCACHE_ATTR_MAX_SIZE = 2,
};

struct glex_rcache_attr {
	uint64_t field_mask; /* the members that are set; of the others GLEX_RCACHE_MAX_COUNT and MAX_SIZE hold */
	uint64_t max_count;  /* regions kept */
	uint64_t max_size;   /* bytes they cover together */
};

struct glex_rcache_region {
	glex_mem_handle_t mh;
	uint32_t offset; /* of the buffer in the region */
	uint32_t slot;	 /* for put */
	int32_t mapped;	 /* 1: peers on this machine map it, and copy without the system's help */
};

/* attr may be NULL.  NO_MEM_RESOURCE: no memory.  Destroy it before its endpoint. */
glex_ret_t glex_rcache_create(glex_ep_handle_t ep, const struct glex_rcache_attr *attr, glex_rcache_handle_t *rc_p);

/* Deregisters everything, also what was not put back: no request may be using it. */
glex_ret_t glex_rcache_destroy(glex_rcache_handle_t rc);

/*
 * A region that covers [addr, addr+len), at most 4 GiB less a page, with at
 * least these rights (enum glex_mem_flag; 0: only for the own side of requests).
 * GLEX_NO_MEM_RESOURCE: the NIC's table is full and nothing idle is left in
 * this cache: put something back, or do without.  Never waits for other users.
 */
glex_ret_t glex_rcache_get(glex_rcache_handle_t rc, void *addr, uint64_t len, int32_t flag,
			   struct glex_rcache_region *region);

/* Once for each get.  GLEX_INVALID_PARAM: it was not got, or put already. */
glex_ret_t glex_rcache_put(glex_rcache_handle_t rc, const struct glex_rcache_region *region);

/*
 * Says that [addr, addr+len) is about to be unmapped, or was, or that its pages
 * change in another way that no monitor sees: no cache of the process returns a
 * region made before.  Needs no device; may be called anywhere, also inside an
 * allocator or a signal handler.  INVALID_PARAM: len is 0, or too large.
 */
glex_ret_t glex_mem_invalidate(void *addr, uint64_t len);

enum glex_mem_monitor {
	GLEX_MEM_MONITOR_NONE, /* only what cannot become wrong is cached */
	GLEX_MEM_MONITOR_HOOKS,
	GLEX_MEM_MONITOR_USERFAULTFD,
	GLEX_MEM_MONITOR_EXPLICIT,
};

enum glex_rcache_stats_field { GLEX_RCACHE_STATS_ALL = 1 };

struct glex_rcache_stats {
	uint64_t field_mask;  /* set by the call: what it knows of */
	uint64_t hits;	      /* gets answered by a cached region */
	uint64_t misses;      /* all others */
	uint64_t merges;      /* misses that took cached regions into the new one */
	uint64_t uncached;    /* misses whose region lasted only until its put */
	uint64_t evicted;     /* regions dropped for want of room */
	uint64_t invalidated; /* regions of which at least a part was dropped because memory changed */
	uint64_t count;	      /* regions cached now, */
	uint64_t size;	      /* bytes they cover, */
	uint64_t in_use;      /* and regions between get and put */
	uint64_t registered;  /* regions of this cache in the NIC's table */
	uint64_t monitor;     /* enum glex_mem_monitor: what is on, or comes on with the first region that needs it */
};

glex_ret_t glex_rcache_query(glex_rcache_handle_t rc, struct glex_rcache_stats *stats);

/* ---- collectives of a group ------------------------------------------------- */

enum glex_group_shape { GLEX_GROUP_KARY = 0, GLEX_GROUP_KNOMIAL = 1, GLEX_GROUP_DIRECT = 2 };

#define GLEX_GROUP_DIRECT_MAX 64		   /* members */
#define GLEX_GROUP_LONG_MAX   UINT64_C(0x40000000) /* bytes of a long broadcast, reduction or block */

#define GLEX_GROUP_STAGE_MAX	  (16u << 20) /* of what glex_group_stage is given */
#define GLEX_GROUP_GATHER_MAX	  112	      /* bytes of each member */
#define GLEX_GROUP_GATHER_MEMBERS 16
/* Bytes of each of n members. */
#define GLEX_GROUP_BY_MAX(n) ((n) <= 2 ? 504 : (n) <= 4 ? 392 : (n) <= 8 || (n) > 16 ? 224 : 112)

/*
 * A tree over members 0 to n-1, member 0 being its root: the parent of `me` (0 for
 * the root) and its children.  degree: children of each (k-ary, from 1), the base
 * (k-nomial, from 2).  GLEX_INVALID_PARAM: no such tree, or somebody would have
 * more than 32 children.
 */
glex_ret_t glex_group_tree(enum glex_group_shape shape, uint32_t n, uint32_t me, uint32_t degree, uint32_t *parent,
			   uint32_t children[GLEX_COLL_MAX_BRANCH_DEGREE], uint32_t *count);

typedef struct glex_group *glex_group_t;

/* What the other members must know of one. */
struct glex_group_card {
	glex_ep_addr_t up;
	glex_ep_addr_t down;
	glex_mem_handle_t mh;
	uint32_t key;
	uint32_t born; /* how many endpoints had died before this member's were made: glex_poll_dead */
};

/*
 * Barrier, broadcast, reductions and gathers of a group of endpoints, run by the NICs: once
 * all members have begun one, it needs none of their processors.
 *
 * Each member opens its part, which creates two endpoints of this type, gives its
 * card to all others by whatever means, and joins with all n cards, in the same
 * order, shape and degree everywhere (degree 0: 8).  Nobody may begin before the
 * last member has joined.  direct: how many there will be at most if the shape is to be GLEX_GROUP_DIRECT, which
 * takes one endpoint then, with queues for so many; 0: it is another one, or not known.
 * GLEX_GROUP_DIRECT: no tree, members write into each other's memory, up to GLEX_GROUP_DIRECT_MAX; who is sent nothing
 * (a broadcast's root, of up to 16 members those others than a reduction's or gather's root) need not wait for anybody.
 * One thread at a time uses a group.
 * glex_group_open: as glex_create_ep and glex_register_mem; GLEX_INVALID_PARAM: direct is above GLEX_GROUP_DIRECT_MAX.
 * glex_group_join: GLEX_INVALID_PARAM: no such tree, not what it was opened for, joined already, or not our card at `me`;
 * GLEX_NO_MEM_RESOURCE: no memory for what collectives need.  Only neighbours' cards are kept.
 */
glex_ret_t glex_group_open(glex_device_handle_t dev, enum glex_ep_type type, uint32_t direct, glex_group_t *group,
			   struct glex_group_card *card);
glex_ret_t glex_group_join(glex_group_t group, const struct glex_group_card *cards, uint32_t n, uint32_t me,
			   enum glex_group_shape shape, uint32_t degree);

/*
 * Ends it; the endpoints go, whatever the others do.  A member may leave so when it has ended
 * its last collective: before that the others would wait for it without end.  On a tree it
 * waits until the NIC has done this member's part of collectives that ended here before others began them; without one
 * member 0 of up to 16 waits until the others have ended what they have begun, and has ended here: they read it from this
 * member.  If it is killed, that ends for them as a death does; if it gives the group up, it waits for a second at most.
 */
glex_ret_t glex_group_close(glex_group_t group);

/*
 * Begins to leave, as a collective begins: once glex_group_wait has ended it, nothing is left to do for this member, and
 * the group can only be closed, which does not wait then.  For who has other things to do meanwhile.  Errors as of
 * glex_group_barrier.
 */
glex_ret_t glex_group_leave(glex_group_t group);

/*
 * These begin a collective, and never wait; glex_group_wait ends it.  All members
 * begin the same ones, in the same order.  What a result goes to must stay until
 * then; what is sent is copied by the call.
 *
 * bcast: len bytes (up to 112) of member root's data; those of the others are written.
 * reduce: count (up to 6) units; the result replaces those of root, or of all (allreduce).
 * Values are combined in an order that does not depend on time: equal calls give equal bits.
 * GLEX_BUSY: one has begun and not ended.  GLEX_INVALID_PARAM: not joined, too much
 * data, no such root or operation.  GLEX_SYS_ERR: the device is lost, or the group
 * broken: a member died.
 */
glex_ret_t glex_group_barrier(glex_group_t group);
glex_ret_t glex_group_bcast(glex_group_t group, uint32_t root, void *data, uint32_t len);

/*
 * As glex_group_bcast, of up to GLEX_GROUP_LONG_MAX bytes in any memory.  The others fetch them from root's while they
 * wait, so root's stays as it is until it has ended there; each byte is copied once.
 * GLEX_NO_MEM_RESOURCE: no memory for what it needs; nothing has begun.  glex_group_wait may return GLEX_ACCESS_ERR: a
 * member could not reach root's memory; that member and root learn it, and the group goes on.
 */
glex_ret_t glex_group_bcast_long(glex_group_t group, uint32_t root, void *data, uint64_t len);

/*
 * How the bytes of a long broadcast get to all members of a tree.  FETCHED, unless this is called: by RDMA GET from
 * root's memory, each member's own, so that as many processors copy as there are.  PASSED: by sequences of RDMA PUTs, from
 * each member to its children, a part after the other; once all have begun and know where to, it needs none of
 * their processors, and nobody sends more than its part of the tree.  Where one member's memory cannot be
 * reached then, glex_group_wait returns GLEX_ACCESS_ERR to all.
 * To be called by all members alike, after glex_group_join and before the first collective.
 * GLEX_INVALID_PARAM: not joined, no tree (GLEX_GROUP_DIRECT), no such way, or a long broadcast has been.
 * GLEX_BUSY, GLEX_SYS_ERR: as the collectives.  GLEX_NO_MEM_RESOURCE: no memory for what it needs.
 */
enum glex_group_long { GLEX_GROUP_LONG_FETCHED = 0, GLEX_GROUP_LONG_PASSED = 1 };

glex_ret_t glex_group_set_long(glex_group_t group, enum glex_group_long how);
glex_ret_t glex_group_reduce(glex_group_t group, uint32_t root, union glex_coll_data_loc *units, uint32_t count,
			     enum glex_coll_reduce_data_bits bits, enum glex_coll_reduce_op op);
glex_ret_t glex_group_allreduce(glex_group_t group, union glex_coll_data_loc *units, uint32_t count,
				enum glex_coll_reduce_data_bits bits, enum glex_coll_reduce_op op);

/*
 * As reduce and allreduce, of len bytes of whatever kind, the same number everywhere: 1 to GLEX_GROUP_BY_MAX(members).
 * combine(left, right, len, arg) puts left (+) right to where right is; both are aligned for any type.  It has to be
 * associative, and no more: operands meet in the order of the members.  Whichever member has all of them calls it, in
 * the call that begins the collective or waits for it; it must not use this library.  data is the caller's again
 * when the call returns.  result: where it goes; may be data, and NULL where none does.
 * GLEX_NOT_IMPLEMENTED: the group has a tree, whose NICs combine units alone.
 */
typedef void (*glex_group_combine_t)(const void *left, void *right, uint32_t len, void *arg);

glex_ret_t glex_group_reduce_by(glex_group_t group, uint32_t root, const void *data, void *result, uint32_t len,
				glex_group_combine_t combine, void *arg);
glex_ret_t glex_group_allreduce_by(glex_group_t group, const void *data, void *result, uint32_t len,
				   glex_group_combine_t combine, void *arg);

/*
 * Has every member keep twice len bytes, len being up to GLEX_GROUP_STAGE_MAX, that the others write to, for
 * the collectives that follow here, up to glex_group_alltoallv.  Once a group; begun by all alike, and ended by
 * glex_group_wait, like a collective, but that returns GLEX_ACCESS_ERR to all if somebody has no such memory, or
 * reaches somebody's only by requests that others execute (glex_inject).  There is no stage then, and the group goes on without.
 * GLEX_NOT_IMPLEMENTED: the group has a tree, or more than GLEX_GROUP_GATHER_MEMBERS members.  GLEX_INVALID_PARAM: also
 * that it has been called before.  GLEX_NO_MEM_RESOURCE: nothing has begun.
 */
glex_ret_t glex_group_stage(glex_group_t group, uint64_t len);

/*
 * As glex_group_allreduce_by, of up to GLEX_GROUP_LONG_MAX bytes in units of so many (a divisor of len), which are
 * not divided; combine is called for some of them at a time, by several members for different ones, where data and
 * result lie or in memory that is aligned for any type.  What is longer than the stage takes several turns.  The members'
 * processors go on with it while they wait, so it needs them; data stays as it is until it has ended.
 * result: everybody's; may be data.
 * GLEX_NOT_IMPLEMENTED: there is no stage.  GLEX_INVALID_PARAM: also a unit that is longer than the stage's part of
 * each member, len / members.
 */
glex_ret_t glex_group_allreduce_long(glex_group_t group, const void *data, void *result, uint64_t len, uint32_t unit,
				     glex_group_combine_t combine, void *arg);

/*
 * Likewise: to member root alone, result being unused elsewhere; and of a block of len bytes for each member, data being
 * those for all in their order, where each gets what came to be of his (result may be data: it is put at its
 * beginning).  All members wait for all.
 */
glex_ret_t glex_group_reduce_long(glex_group_t group, uint32_t root, const void *data, void *result, uint64_t len,
				  uint32_t unit, glex_group_combine_t combine, void *arg);
glex_ret_t glex_group_reduce_scatter(glex_group_t group, const void *data, void *result, uint64_t len, uint32_t unit,
				     glex_group_combine_t combine, void *arg);

/*
 * Likewise, and nothing is combined.  allgather_long: data is the member's block of len bytes, everybody's come to all,
 * those of member i to i * len; data may be the member's own place there.  alltoall: data has a block for each member in
 * their order, and that of member i for this one comes to i * len of all, which may be data.
 */
glex_ret_t glex_group_allgather_long(glex_group_t group, const void *data, void *all, uint64_t len);
glex_ret_t glex_group_alltoall(glex_group_t group, const void *data, void *all, uint64_t len);

struct glex_group_block {
	void *data; /* may be NULL if len is 0 */
	uint64_t len;
};

/*
 * As alltoall, of blocks of which only these two members know how long they are, 0 too: from[i] for member i, and into[i]
 * for that of member i for this one, which is as long.  Both arrays stay as they are until it has ended; into[i].data
 * may be from[i].data.
 * most: the longest there may be, the same everywhere, up to GLEX_GROUP_LONG_MAX.  If somebody's is longer, glex_group_wait
 * returns GLEX_ACCESS_ERR to all, nothing has been put into anybody's blocks, and the group goes on.
 */
glex_ret_t glex_group_alltoallv(glex_group_t group, const struct glex_group_block *from,
				const struct glex_group_block *into, uint64_t most);

/*
 * As those before: len bytes of everybody (up to GLEX_GROUP_GATHER_MAX, the same number everywhere) come to
 * member root, or to all.  all: where those of member i go, at i * len; may be NULL where none do.  data may be
 * the member's own place there.
 * GLEX_NOT_IMPLEMENTED: the group has a tree, or more than GLEX_GROUP_GATHER_MEMBERS members.
 */
glex_ret_t glex_group_gather(glex_group_t group, uint32_t root, const void *data, void *all, uint32_t len);
glex_ret_t glex_group_allgather(glex_group_t group, const void *data, void *all, uint32_t len);

/*
 * Waits until what was begun has ended; timeout in milliseconds as for
 * glex_receive_mp.  GLEX_NO_MP: it has not.  GLEX_INVALID_PARAM: nothing was begun.
 * GLEX_SYS_ERR: it never will, for a member has died (killed, crashed, or by exit), which every member learns within
 * seconds of waiting, or of calling this with timeout 0 all the time; only glex_group_close
 * is left to do.
 */
glex_ret_t glex_group_wait(glex_group_t group, int32_t timeout);

/*
 * glex_group_wait with timeout 0, for who calls it again and again, and has little time for each.  After GLEX_NO_MP
 * another call has nothing to do as long as *word_p, a word of this process's memory, is not value; NULL: no word
 * tells.  It is good until the next call of this library; now and then one on this group has to be made all the same, for
 * members may have died.  Loads of the word are atomic and need no order.
 * Also GLEX_INVALID_PARAM: a parameter is NULL.
 */
glex_ret_t glex_group_look(glex_group_t group, const uint64_t **word_p, uint64_t *value_p);

/*
 * 1: of the members that run on this processor this one was the last to begin what was begun, it seems, and it has not
 * ended.  Then to give way (sched_yield) before each look brings nothing on, and costs changes of process; it is better to
 * look alone for a while, and to give way after that, for it is a guess: by where members were when they began, and by how
 * many began the collective before there.  For groups that are all there is to run on their processors.
 * 0: not so, or not known: on a tree, of what does not involve all members, and where one's process has threads; and at
 * first, for nobody counts before he has asked once.
 * What glex_group_look has given stays good.
 */
int glex_group_is_last_here(glex_group_t group);

/*
 * Gives the group up, for all members: for who cannot go on, as when it has no data for a broadcast that others
 * have begun.  What is under way, or begun later, ends here at once, and with those who
 * wait within a second or so, as after a member's death.  Does not wait.  What has ended for a member stays as it is.
 * GLEX_INVALID_PARAM: not joined.
 */
glex_ret_t glex_group_fail(glex_group_t group);

/*
 * As glex_group_fail, but the others are not told: for who knows that each of them learns it in a way of their own, before
 * a note of the group's would say that a member had died.  Who does not would wait without end.
 */
glex_ret_t glex_group_abandon(glex_group_t group);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* GLEX_EXT_H */
