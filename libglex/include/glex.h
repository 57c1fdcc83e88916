/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex.h - the GLEX2 endpoint interface of the TH Express interconnect.
 *
 * An endpoint is a virtual port (VP) of a NIC: a descriptor queue (DQ) into
 * which requests are posted, a mini-packet queue (MPQ) in which mini-packets
 * (MPs) arrive, and an event queue (EQ) in which the completions arrive that
 * the two sides of a transfer asked for.  Data moves by RDMA PUT and GET
 * between registered memory.
 *
 * Layouts, constants and prototypes are those of the hardware's header, all its
 * generations unified; test/unit/test_header.c pins each of them.  What only
 * this implementation has is in glex_ext.h.
 *
 * Conventions, for every call unless its comment says otherwise:
 *  - It returns GLEX_SUCCESS or an error, and sets its outputs only on success.
 *  - A NULL handle or a NULL output pointer gives GLEX_INVALID_PARAM.
 *  - Lengths, offsets and capacities: bytes, bytes and entries.
 *  - Any thread may make it at any time on any endpoint; only destroying an
 *    endpoint or closing a device must not overlap with other calls on it.
 *  - GLEX_SYS_ERR says that the device is lost for this process (glexd died, or
 *    the process forked); nothing posted since can be relied upon.  Destroy the
 *    endpoints, close the device, and open it again.
 *  - A child made by fork() cannot use its parent's handles: it gets
 *    GLEX_SYS_ERR from every call.  It opens the device itself.
 */
#ifndef GLEX_H
#define GLEX_H

#include <endian.h>
#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* ---- return codes -------------------------------------------------------- */

typedef enum glex_ret {
	GLEX_SUCCESS = 0,
	GLEX_SYS_ERR = 1,	  /* the system refused, or the device is lost; the log on stderr names the cause */
	GLEX_INVALID_PARAM = 2,	  /* an argument is out of range; nothing was done */
	GLEX_NO_EP_RESOURCE = 3,  /* that number is taken, or none is left of that type: try another, or see the log */
	GLEX_NO_MEM_RESOURCE = 4, /* the memory table or memory itself is full; deregister something and repeat */
	GLEX_BUSY = 5,	     /* the descriptor queue has no room for the whole list: post it again; clears by itself */
	GLEX_NO_MP = 6,	     /* no mini-packet (within the timeout) */
	GLEX_NO_EVENT = 7,   /* no event (within the timeout) */
	GLEX_INTR = 8,	     /* never returned: a wait goes on after a signal */
	GLEX_ACCESS_ERR = 9, /* this user may not do that */
	GLEX_NOT_IMPLEMENTED = 10 /* a feature this version does not have; nothing was done */
} glex_ret_t;

/* ---- device -------------------------------------------------------------- */

typedef struct glex_device {
	pthread_mutex_t mutex;
} glex_device_t;

typedef glex_device_t *glex_device_handle_t;

typedef struct glex_device_attr {
	uint32_t nic_id;		/* this NIC's number in the fabric */
	uint32_t max_fast_ep_num;	/* highest number of a FAST endpoint */
	uint32_t max_ep_num;		/* highest number of a hardware endpoint */
	uint32_t max_emulate_ep_num;	/* EMULATE endpoints a NIC can have */
	uint32_t mmt_units;		/* regions that can be registered on a NIC */
	uint32_t att_units;		/* address translations, in pages */
	uint32_t max_imm_mp_data_len;	/* bytes in an immediate mini-packet */
	uint32_t max_mp_data_len;	/* bytes in a mini-packet */
	uint32_t max_imm_rdma_data_len; /* bytes in an immediate RDMA PUT */
	uint32_t max_rdma_data_len;	/* bytes in one RDMA request */
	uint32_t def_ep_dq_capacity;	/* what a capacity of 0 means */
	uint32_t def_ep_eq_capacity;
	uint32_t def_ep_mpq_capacity;
	uint32_t max_ep_dq_capacity;
	uint32_t max_ep_eq_capacity;
	uint32_t max_ep_mpq_capacity;
	uint32_t max_ep_hc_eq_capacity;	 /* with GLEX_EQ_TYPE_HIGH_CAPACITY */
	uint32_t max_ep_hc_mpq_capacity; /* with GLEX_MPQ_TYPE_HIGH_CAPACITY */
} glex_device_attr_t;

/* ---- endpoint ------------------------------------------------------------ */

struct glex_imm_mp_req;
struct glex_imm_rdma_req;
struct glex_rdma_req;

typedef struct glex_ep {
	glex_ret_t (*send_imm_mp)(struct glex_ep *, struct glex_imm_mp_req *, struct glex_imm_mp_req **);
	glex_ret_t (*imm_rdma)(struct glex_ep *, struct glex_imm_rdma_req *, struct glex_imm_rdma_req **);
	glex_ret_t (*rdma)(struct glex_ep *, struct glex_rdma_req *, struct glex_rdma_req **);
} glex_ep_t;

typedef glex_ep_t *glex_ep_handle_t;

enum glex_ep_type {
	GLEX_EP_TYPE_FAST = 0,	    /* descriptors are written by the CPU (PIO): lowest latency */
	GLEX_EP_TYPE_NORMAL = 1,    /* descriptors are fetched by DMA: the NIC works while the poster computes */
	GLEX_EP_TYPE_EMULATE = 2,   /* many more than the hardware has ports; as FAST otherwise */
	GLEX_EP_TYPE_MANAGEMENT = 3 /* not for users: GLEX_ACCESS_ERR */
};

enum glex_mpq_type { GLEX_MPQ_TYPE_NORMAL = 0, GLEX_MPQ_TYPE_HIGH_CAPACITY = 1, GLEX_MPQ_TYPE_IOMMU = 2 };

enum glex_eq_type { GLEX_EQ_TYPE_NORMAL = 0, GLEX_EQ_TYPE_HIGH_CAPACITY = 1, GLEX_EQ_TYPE_IOMMU = 2 };

/*
 * The address of an endpoint: 8 bytes that may travel between processes by any
 * means.  Clients name the members bare (addr.ep_num) or through s (addr.s.ep_num).
 */
#if __BYTE_ORDER == __LITTLE_ENDIAN
#define GLEX_EP_ADDR_FIELDS_                                                                                           \
	uint16_t ep_num;                                                                                               \
	uint16_t resv;                                                                                                 \
	uint32_t nic_id;
#define GLEX_MEM_HANDLE_FIELDS_                                                                                        \
	uint16_t mmt_index;                                                                                            \
	uint16_t att_base_off;                                                                                         \
	uint32_t att_index;
#else
#define GLEX_EP_ADDR_FIELDS_                                                                                           \
	uint32_t nic_id;                                                                                               \
	uint16_t resv;                                                                                                 \
	uint16_t ep_num;
#define GLEX_MEM_HANDLE_FIELDS_                                                                                        \
	uint32_t att_index;                                                                                            \
	uint16_t att_base_off;                                                                                         \
	uint16_t mmt_index;
#endif

typedef union glex_ep_addr {
	__extension__ struct {
		GLEX_EP_ADDR_FIELDS_
	};
	struct {
		GLEX_EP_ADDR_FIELDS_
	} s;
	uint64_t v;
} glex_ep_addr_t;

struct glex_ep_attr {
	enum glex_ep_type type;
	enum glex_mpq_type mpq_type;
	enum glex_eq_type eq_type;
	uint32_t num;	      /* GLEX_ANY_EP_NUM, or the number wanted */
	uint32_t key;	      /* an RDMA towards this endpoint must carry it */
	uint32_t dq_capacity; /* entries; 0: the device's default */
	uint32_t mpq_capacity;
	uint32_t eq_capacity;
};

#define GLEX_ANY_EP_NUM		     0xffffffffU
#define GLEX_EP_DQ_CAPACITY_DEFAULT  0
#define GLEX_EP_MPQ_CAPACITY_DEFAULT 0
#define GLEX_EP_EQ_CAPACITY_DEFAULT  0

/* A key made of a job's number; may be 0.  The second marks it for the larger memory table. */
#define GLEX_EP_MAKE_KEY(x)	      ((uint32_t)(x)&0x7fffffffU)
#define GLEX_EP_MAKE_HC_UMMT_KEY(key) ((uint32_t)(key) | 0x80000000U)

/* ---- events and memory handles ------------------------------------------- */

/* 128 bits chosen by the poster.  cookie_1 must not be 0: on the hardware 0 marks a free slot. */
typedef struct glex_event {
	__extension__ union {
		__extension__ struct {
			volatile uint64_t cookie_0;
			volatile uint64_t cookie_1;
		};
		volatile uint64_t cookie[2];
	};
} glex_event_t;

/* A registered region.  Never 0; good only together with the endpoint it was registered on. */
typedef union glex_mem_handle {
	__extension__ struct {
		GLEX_MEM_HANDLE_FIELDS_
	};
	struct {
		GLEX_MEM_HANDLE_FIELDS_
	} s;
	uint64_t v;
} glex_mem_handle_t;

enum glex_mem_flag {
	GLEX_MEM_READ = 1,  /* others may GET from it */
	GLEX_MEM_WRITE = 2, /* others may PUT to it */
	GLEX_MEM_IOMMU = 4  /* accepted, no effect */
};

/* ---- requests ------------------------------------------------------------ */

enum glex_flag {
	GLEX_FLAG_LOCAL_INTR = 1 << 0,	       /* accepted, no effect on data */
	GLEX_FLAG_REMOTE_INTR = 1 << 1,	       /* accepted, no effect on data */
	GLEX_FLAG_FENCE = 1 << 2,	       /* start after all earlier requests of the endpoint have completed */
	GLEX_FLAG_LOCAL_EVT = 1 << 3,	       /* local_evt into the poster's EQ */
	GLEX_FLAG_REMOTE_EVT = 1 << 4,	       /* rmt_evt into the target's EQ */
	GLEX_FLAG_NO_CONNECTION = 1 << 5,      /* accepted, no effect on data */
	GLEX_FLAG_ROUTE_ADAPTIVE = 1 << 6,     /* accepted, no effect on data */
	GLEX_FLAG_COLL = 1 << 7,	       /* through the collective queue; required with all below */
	GLEX_FLAG_COLL_SEQ_START = 1 << 8,     /* a gate of coll_counter control packets; begins a sequence */
	GLEX_FLAG_COLL_SEQ_TAIL = 1 << 9,      /* ends the sequence */
	GLEX_FLAG_COLL_COUNTER = 1 << 10,      /* the outgoing packet is a control packet: it counts at the receiver */
	GLEX_FLAG_COLL_CP_DATA = 1 << 11,      /* the receiver also queues its payload in the MPQ */
	GLEX_FLAG_COLL_CP_SWAP_DATA = 1 << 12, /* its payload is offered as swap data to the sequence it triggers */
	GLEX_FLAG_COLL_CP_SWAP_ADDR = 1 << 13, /* as a swap address (glex_coll_compose_mp_swap_addr_data) */
	GLEX_FLAG_COLL_SWAP = 1 << 14,	       /* an MP takes the swap data's payload and length, a PUT the address */
	GLEX_FLAG_COLL_SWAP_EP = 1 << 15,      /* with SWAP: also the endpoint, of the address or who sent the data */
	GLEX_FLAG_COLL_SWAP_SET = 1 << 16,     /* with SWAP, MP: to rmt_ep_addr and all of its payload's list */
	GLEX_FLAG_COLL_REDUCE = 1 << 17,       /* MP: an operand; with SWAP, combined with those that opened the gate */
	GLEX_FLAG_COLL_REDUCE_RESULT = 1 << 18 /* with SWAP, MP: the finished value is passed on */
};

/*
 * Members that no flag selects are not looked at.  A list is linked by next and
 * ends with NULL.  The structures may be reused as soon as the call returns.
 */
typedef struct glex_imm_mp_req {
	glex_ep_addr_t rmt_ep_addr;
	void *data;   /* copied by the call; may be NULL with len 0 */
	uint32_t len; /* up to max_imm_mp_data_len */
	uint32_t coll_counter;
	int32_t flag;
	struct glex_imm_mp_req *next;
} glex_imm_mp_req_t;

/* PUT only; it has no local event. */
typedef struct glex_imm_rdma_req {
	glex_ep_addr_t rmt_ep_addr;
	void *data;   /* copied by the call */
	uint32_t len; /* up to max_imm_rdma_data_len */
	glex_mem_handle_t rmt_mh;
	uint32_t rmt_offset;
	glex_event_t rmt_evt;
	uint32_t rmt_key;
	uint32_t coll_counter;
	int32_t flag;
	struct glex_imm_rdma_req *next;
} glex_imm_rdma_req_t;

enum glex_rdma_type { GLEX_RDMA_TYPE_PUT = 0, GLEX_RDMA_TYPE_GET = 1 };

typedef struct glex_rdma_req {
	glex_ep_addr_t rmt_ep_addr;
	glex_mem_handle_t local_mh; /* registered on the posting endpoint */
	uint32_t local_offset;
	uint32_t len; /* up to max_rdma_data_len; 0 moves nothing and raises the events */
	glex_mem_handle_t rmt_mh;
	uint32_t rmt_offset;
	enum glex_rdma_type type;
	glex_event_t local_evt;
	glex_event_t rmt_evt;
	uint32_t rmt_key;
	uint32_t coll_counter;
	uint32_t coll_set_num;
	int32_t flag;
	struct glex_rdma_req *next;
} glex_rdma_req_t;

/* ---- collective reduce --------------------------------------------------- */

enum glex_coll_reduce_op {
	GLEX_COLL_REDUCE_SUM_FLOAT = 0,
	GLEX_COLL_REDUCE_MAXLOC_FLOAT = 1,
	GLEX_COLL_REDUCE_MINLOC_FLOAT = 2,
	GLEX_COLL_REDUCE_SUM_SIGNED = 3,
	GLEX_COLL_REDUCE_MAXLOC_SIGNED = 4,
	GLEX_COLL_REDUCE_MINLOC_SIGNED = 5,
	GLEX_COLL_REDUCE_SUM_UNSIGNED = 6,
	GLEX_COLL_REDUCE_MAXLOC_UNSIGNED = 7,
	GLEX_COLL_REDUCE_MINLOC_UNSIGNED = 8,
	GLEX_COLL_REDUCE_LAND = 9,
	GLEX_COLL_REDUCE_LOR = 10,
	GLEX_COLL_REDUCE_LXOR = 11,
	GLEX_COLL_REDUCE_BAND = 12,
	GLEX_COLL_REDUCE_BOR = 13,
	GLEX_COLL_REDUCE_BXOR = 14
};

enum glex_coll_reduce_data_bits { GLEX_COLL_REDUCE_DATA_BITS_32 = 0, GLEX_COLL_REDUCE_DATA_BITS_64 = 1 };

union glex_coll_data_loc {
	struct {
		int32_t data;
		uint32_t location;
	} int32_s;
	struct {
		uint32_t data;
		uint32_t location;
	} uint32_s;
	struct {
		int64_t data;
		uint32_t location;
	} int64_s;
	struct {
		uint64_t data;
		uint32_t location;
	} uint64_s;
	struct {
		float data;
		uint32_t location;
	} float_s;
	struct {
		double data;
		uint32_t location;
	} double_s;
};

#define GLEX_COLL_MAX_BRANCH_DEGREE	32
#define GLEX_COLL_REDUCE_MAX_DATA_UNITS 6
#define GLEX_COLL_SET_MAX_NUM		14

/* ---- asynchronous errors ------------------------------------------------- */

enum glex_err_req_op {
	GLEX_ERR_OP_IMM_MP = 0,
	GLEX_ERR_OP_MP = 1,
	GLEX_ERR_OP_IMM_RDMA_PUT = 2,
	GLEX_ERR_OP_RDMA_PUT = 3,
	GLEX_ERR_OP_RDMA_GET = 4
};

/* What the sender may conclude: the request had no effect at the target, unless the comment says otherwise. */
enum glex_err_req_status {
	GLEX_ERR_STATUS_FORMAT = 0,	    /* the request makes no sense */
	GLEX_ERR_STATUS_SRC_HOST_DEAD = 1,  /* the sender's own node is gone */
	GLEX_ERR_STATUS_DEST_HOST_DEAD = 2, /* the target's process died, maybe in the middle of the transfer */
	GLEX_ERR_STATUS_PCIE_READ = 3,	    /* memory could not be reached; part of it may have moved */
	GLEX_ERR_STATUS_ATT = 4,	    /* unknown or revoked memory handle, or unmapped pages behind it */
	GLEX_ERR_STATUS_MMT = 5,	    /* wrong key, outside the region, or access not allowed */
	GLEX_ERR_STATUS_SRC_VP_STOP = 6,    /* the sender's endpoint was destroyed first */
	GLEX_ERR_STATUS_DEST_VP_STOP = 7,   /* the target endpoint does not exist (any more) */
	GLEX_ERR_STATUS_DEST_MPQ_FULL = 8,  /* the mini-packet was lost */
	GLEX_ERR_STATUS_DEST_EQ_FULL = 9,   /* the data moved, an event was lost */
	GLEX_ERR_STATUS_CONNECTION_MAX_RETRY = 10,
	GLEX_ERR_STATUS_CONNECTION_RDMA_GET = 11,
	GLEX_ERR_STATUS_CONNECTION_NACK = 12,
	GLEX_ERR_STATUS_CONNECTION_ECC = 13
};

struct glex_err_req {
	enum glex_err_req_op op;
	enum glex_err_req_status status;
	uint32_t rmt_nic_id;
	uint32_t rmt_ep_num;
	uint64_t data0; /* MP: length.  RDMA: the remote handle */
	uint64_t data1; /* RDMA: remote offset */
	uint64_t data2; /* RDMA: length */
};

/* ---- devices ------------------------------------------------------------- */

/* How many devices this machine has: 1. */
glex_ret_t glex_num_of_device(uint32_t *num);

/*
 * Opens device dev_id (0).  The first open of a process connects to glexd, and
 * starts one if none runs (GLEX_SOCKET, GLEX_GLEXD in glex_env(7)); further
 * opens share that connection and the NIC it was given.
 * GLEX_INVALID_PARAM: no such device.  GLEX_ACCESS_ERR: the glexd found belongs
 * to another user.  GLEX_SYS_ERR: glexd cannot be reached or started; the log says why.
 */
glex_ret_t glex_open_device(uint32_t dev_id, glex_device_handle_t *dev);

/* Gives back one open.  Endpoints still alive stay usable; the connection goes with the last of both. */
glex_ret_t glex_close_device(glex_device_handle_t dev);

glex_ret_t glex_query_device(glex_device_handle_t dev, struct glex_device_attr *attr);

/* ---- endpoints ----------------------------------------------------------- */

/*
 * Creates an endpoint.  Numbers 0..max_fast_ep_num are FAST, from there to
 * max_ep_num NORMAL, EMULATE ones lie above.  Capacities are rounded up to a
 * power of two; glex_query_ep tells what was given.
 * GLEX_NO_EP_RESOURCE: the number is taken or the class is exhausted (another type may do), or the process or
 * glexd has no descriptor left, which the log says.
 * GLEX_INVALID_PARAM: unknown type, number outside its class, capacity above the device's maximum.
 * GLEX_NO_MEM_RESOURCE: no memory for the queues.
 */
glex_ret_t glex_create_ep(glex_device_handle_t dev, struct glex_ep_attr *attr, glex_ep_handle_t *ep);

/*
 * Destroys it: queued requests are completed first, but collective ones only if
 * their gates are open: the others are dropped; MPs and events not yet
 * received are lost; its registrations are revoked; requests of others towards
 * it end with GLEX_ERR_STATUS_DEST_VP_STOP.  Pointers probed from it are invalid afterwards.
 */
glex_ret_t glex_destroy_ep(glex_ep_handle_t ep);

/* The attributes in force: the number assigned, the capacities really there. */
glex_ret_t glex_query_ep(glex_ep_handle_t ep, struct glex_ep_attr *attr);

glex_ret_t glex_get_ep_addr(glex_ep_handle_t ep, glex_ep_addr_t *addr);

/* The address the owner of that endpoint gets from glex_get_ep_addr.  type must be the endpoint's. */
glex_ret_t glex_compose_ep_addr(uint32_t nic_id, uint32_t ep_num, enum glex_ep_type type, glex_ep_addr_t *addr);
glex_ret_t glex_decompose_ep_addr(glex_ep_addr_t addr, enum glex_ep_type type, uint32_t *nic_id, uint32_t *ep_num);

/* ---- memory -------------------------------------------------------------- */

/*
 * Registers [addr, addr+len) for RDMA on this endpoint: any address, any length
 * but 0, any number of times, overlapping or not.  flag: GLEX_MEM_READ and
 * GLEX_MEM_WRITE say what others may do; the poster's own side needs neither.
 * The memory must stay mapped until it is deregistered.  Offset 0 is addr; only
 * the first 4 GiB of a region can be addressed by a request.
 * GLEX_NO_MEM_RESOURCE: the NIC's table (mmt_units) is full.
 */
glex_ret_t glex_register_mem(glex_ep_handle_t ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh);

/* Revokes it.  A request that comes later ends with GLEX_ERR_STATUS_ATT.  INVALID_PARAM: not this endpoint's handle. */
glex_ret_t glex_deregister_mem(glex_ep_handle_t ep, glex_mem_handle_t mh);

/* ---- posting ------------------------------------------------------------- */

/*
 * The three calls post a list.  They never wait.  On anything but GLEX_SUCCESS
 * nothing of the list was posted and *bad_req (where given) is the request that
 * failed the check, or with GLEX_BUSY the head.  Requests of one endpoint
 * towards one target take effect in the order posted, unless GLEX_REORDER asks
 * for what hardware may do: then only FENCE orders them.
 *
 * What goes wrong later (no such endpoint, wrong key, full queue) moves no
 * data, raises no event, and is told by glex_poll_error_req and once on stderr.
 *
 * GLEX_BUSY: fewer free descriptors than requests; repeat the same list.
 * GLEX_INVALID_PARAM: too long, a list longer than the descriptor queue, a local
 * handle or range not of this endpoint, an event with cookie_1 0, GET with COLL,
 * collective flags without COLL or that do not go together.
 * GLEX_NOT_IMPLEMENTED: a set (SWAP_SET) of PUTs.
 * GLEX_NO_MEM_RESOURCE: no memory for the endpoint's collective queues, which are made when first needed.
 *
 * Collective requests (COLL) go through a queue of their own, of as many entries
 * as the descriptor queue; others do not wait behind them.  The first of them waits,
 * if it has SEQ_START, until coll_counter control packets have come to the endpoint
 * that no earlier gate has taken; then it is executed, and so is what follows up to
 * the next gate.  Whoever delivers the last packet executes: the poster's process
 * may compute, sleep or be stopped.  The data of an MP or immediate PUT is copied
 * by the call, that of a PUT read when it is executed.  FENCE waits for earlier
 * requests of the endpoint, but for no gate.  Operands of a reduction are combined
 * in the order of their senders' addresses, so that equal values give equal bits.
 * Operands that do not fit together end with GLEX_ERR_STATUS_FORMAT, and so does all
 * of the sequence that was to carry their result.  Control packets not yet taken: up
 * to the larger of 64 and the MPQ's capacity, then GLEX_ERR_STATUS_DEST_MPQ_FULL.
 *
 * Memory order: the last naturally aligned word of a PUT (up to 8 bytes) becomes
 * visible after all its other bytes, and up to 128 bytes become visible in
 * ascending order, so a target may poll its memory for them; a remote event after
 * all of them; a local event of a PUT after the data is in place, of a GET
 * after it has arrived.  Where source and destination overlap, what is there
 * afterwards is undefined.
 */
static inline glex_ret_t glex_send_imm_mp(glex_ep_handle_t ep, struct glex_imm_mp_req *mp_req,
					  struct glex_imm_mp_req **bad_mp_req)
{
	return ep->send_imm_mp(ep, mp_req, bad_mp_req);
}

static inline glex_ret_t glex_imm_rdma(glex_ep_handle_t ep, struct glex_imm_rdma_req *rdma_req,
				       struct glex_imm_rdma_req **bad_rdma_req)
{
	return ep->imm_rdma(ep, rdma_req, bad_rdma_req);
}

static inline glex_ret_t glex_rdma(glex_ep_handle_t ep, struct glex_rdma_req *rdma_req,
				   struct glex_rdma_req **bad_rdma_req)
{
	return ep->rdma(ep, rdma_req, bad_rdma_req);
}

/* ---- mini-packet queue --------------------------------------------------- */

/*
 * The queue has a read index R and a probe cursor P behind which MPs have been
 * looked at.  timeout in milliseconds: -1 waits for ever, 0 looks once.
 *
 * probe_first: looks at the MP at R, puts P behind it.  probe_next: looks at
 * the MP at P and advances P.  discard: R = P, which frees those slots; no
 * harm if nothing was probed.  receive: copies the MP at R and advances R
 * (and P, where it lagged).
 *
 * Pointers returned stay valid, and the 112 bytes behind them writable, until
 * the MP is discarded.  src_ep_addr may be NULL.  *len is output only;
 * glex_receive_mp writes just the bytes that were sent.
 * GLEX_NO_MP: none there, or none came in time.
 */
glex_ret_t glex_probe_first_mp(glex_ep_handle_t ep, int32_t timeout, glex_ep_addr_t *src_ep_addr, void **data,
			       uint32_t *len);
glex_ret_t glex_probe_next_mp(glex_ep_handle_t ep, glex_ep_addr_t *src_ep_addr, void **data, uint32_t *len);
glex_ret_t glex_discard_probed_mp(glex_ep_handle_t ep);
glex_ret_t glex_receive_mp(glex_ep_handle_t ep, int32_t timeout, glex_ep_addr_t *src_ep_addr, void *data,
			   uint32_t *len);

/* ---- event queue --------------------------------------------------------- */

/* As the three probing calls above, for events.  *event points into the queue until it is discarded. */
glex_ret_t glex_probe_first_event(glex_ep_handle_t ep, int32_t timeout, glex_event_t **event);
glex_ret_t glex_probe_next_event(glex_ep_handle_t ep, glex_event_t **event);
glex_ret_t glex_discard_probed_event(glex_ep_handle_t ep);

/* ---- errors -------------------------------------------------------------- */

/*
 * Takes the error requests of this endpoint.  *num: in, room in err_req_list;
 * out, how many were stored.  With none pending *num = 0 and the list is not
 * touched; with *num 0 or above 4096 on entry *num says how many wait, and they stay.
 * The queue holds 256, or as many as the event queue if these are fewer, but 16; more are lost.
 */
glex_ret_t glex_poll_error_req(glex_ep_handle_t ep, uint32_t *num, struct glex_err_req *err_req_list);

/* Never NULL, never freed.  GLEX_SUCCESS is "successful". */
const char *glex_error_str(glex_ret_t ret);
const char *glex_error_req_status_str(enum glex_err_req_status status);
const char *glex_error_req_opcode_str(enum glex_err_req_op opcode);

/* ---- collective offload helpers ------------------------------------------ */

/*
 * Build and read the payloads of collective mini-packets: up to 112 bytes at data,
 * *data_len is output.  GLEX_INVALID_PARAM: too many units or addresses, an unknown
 * operation or width, or (decompose) no operand, of another width or of fewer units.
 *
 * swap_addr: where a triggered PUT is to go: this endpoint, a region of it, its key.
 * reduce: up to 6 units; the operation says which member counts (float or double,
 * signed, unsigned; bits for the logical ones).  MAXLOC and MINLOC keep the location
 * of the winner, the lowest of equal ones.  branch_degree: how many operands will
 * meet where it goes, up to 32.
 * set: up to 14 endpoints that a request with SWAP_SET goes to beside rmt_ep_addr.
 */
glex_ret_t glex_coll_compose_mp_swap_addr_data(glex_ep_handle_t ep, glex_mem_handle_t mh, uint32_t offset, uint32_t key,
					       void *data, uint32_t *data_len);
glex_ret_t glex_coll_compose_mp_reduce_data(union glex_coll_data_loc send_buf[], uint32_t count,
					    enum glex_coll_reduce_data_bits data_bits,
					    enum glex_coll_reduce_op reduce_op, uint32_t branch_degree, void *data,
					    uint32_t *data_len);
glex_ret_t glex_coll_decompose_mp_reduce_data(union glex_coll_data_loc recv_buf[], uint32_t count,
					      enum glex_coll_reduce_data_bits data_bits, void *data);
glex_ret_t glex_coll_compose_mp_set_data(glex_ep_addr_t ep_addrs[], uint32_t count, void *data, uint32_t *data_len);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* GLEX_H */
