/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm_layout.h - everything that lies in memory shared between glexd and the
 * processes of a job, and nothing else: fixed-width words and offsets, no
 * pointers, nothing that depends on a compiler or a process.
 *
 * Four kinds of segment, each a sealed memfd made by glexd:
 *
 *   engine  one a glexd   the DMA engine's bell, the switches all must agree on, and who has died
 *   NIC     one a node    the memory table (MMT) and the bells of its ports with descriptor queues
 *   port    one a VP      registers, MPQ, EQ, error queue, descriptor queue
 *   coll    one a VP      what triggers its collective requests; made when somebody first needs it
 *
 *   port:  +------+-------+------+-----+----+-----+----+----------+-----------+------- - -
 *          | head | state | wake | mpq | eq | err | dq | counters | intq, epq | logs, slots
 *          +------+-------+------+-----+----+-----+----+----------+-----------+------- - -
 *
 * Who writes what: glexd the heads, `state` and `intr`; whoever sends to a port
 * the producer lines of its mpq, eq, err, intq and epq; the owner their consumer
 * lines, the producer line of its dq, its counters; who sleeps on a port or arms
 * its descriptor, and who then wakes him, `sleepers`.  In a coll segment the owner
 * writes the requests, who sends control packets the producer line of d, and who
 * has the turn all else.
 * A change here changes EMU_LAYOUT_HASH, and attaching to an older segment fails.
 */
#ifndef EMU_SHM_LAYOUT_H
#define EMU_SHM_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_ABI_VERSION	 5u
#define EMU_MAGIC_ENGINE 0x31676e6578656c67ull /* "glexeng1" */
#define EMU_MAGIC_NIC	 0x3163696e78656c67ull /* "glxnic1" */
#define EMU_MAGIC_PORT	 0x3174726f70786c67ull /* "glxport1" */
#define EMU_MAGIC_COLL	 0x316c6c6f63786c67ull /* "glxcoll1" */

#define EMU_LINE 128 /* two cache lines: the prefetcher fetches them in pairs */

/* The limits of the emulated NIC; what the real one has where that is known. */
#define EMU_FAST_EPS	  8	 /* numbers 0..7 */
#define EMU_HW_EPS	  40	 /* numbers 8..39 are NORMAL */
#define EMU_EMULATE_EPS	  16384u /* numbers 40.. */
#define EMU_MAX_EPS	  (EMU_HW_EPS + EMU_EMULATE_EPS)
#define EMU_MAX_NICS	  (1u << 20)
#define EMU_MMT_UNITS	  4096u
#define EMU_ATT_UNITS	  (1u << 20)
#define EMU_ATC_WAYS	  8u
#define EMU_ATC_SETS	  (EMU_ATT_UNITS / EMU_ATC_WAYS)
#define EMU_MP_DATA	  112u
#define EMU_IMM_RDMA_DATA 96u
#define EMU_RDMA_DATA	  0x8000000u
#define EMU_DEF_DQ	  1024u
#define EMU_DEF_EQ	  4096u
#define EMU_DEF_MPQ	  4096u
#define EMU_MAX_DQ	  8192u
#define EMU_MAX_EQ	  32768u
#define EMU_MAX_MPQ	  32768u
#define EMU_MAX_HC_EQ	  (4u << 20)
#define EMU_MAX_HC_MPQ	  (1u << 20)
#define EMU_ERR_CAPACITY  256u /* at most, and no more than events, */
#define EMU_INTQ_CAPACITY 64u  /* than MPs, */
#define EMU_EPQ_CAPACITY  64u
#define EMU_MIN_ASIDE	  16u	/* but so many at least of each */
#define EMU_MIN_CONTROL	  64u	/* control packets that an endpoint has room for at least */
#define EMU_DEAD_KEPT	  4096u /* who has died: so many of the last */

/* Session 0 is nobody; glexd itself claims slots and reads memory as session 1. */
#define EMU_SESSION_NONE  0u
#define EMU_SESSION_GLEXD 1u
#define EMU_SESSION_MAX	  0x3ffffffeu

struct emu_seg_head {
	uint64_t magic;
	uint32_t abi_version;
	uint32_t layout_hash;
	uint64_t total_size;
	uint64_t reserved;
};

/* The two ends of a ring, each on its own line; ring.h has the rules. */
struct emu_ring_ctl {
	_Atomic uint64_t tail; /* {session of the last claim : 32, next index : 32}; or whose the ring is, bias.h */
	_Atomic uint32_t head_seen; /* what producers last read of head */
	_Atomic uint32_t lost;	    /* arrivals dropped because it was full */
	_Atomic uint64_t lead;	    /* claims made by who has the ring to itself */
	_Atomic uint64_t settled;   /* how many of them counted, plus 1; 0: not decided */
	uint8_t pad0[EMU_LINE - 32];
	_Atomic uint32_t head; /* first index not yet given back by the consumer */
	uint8_t pad1[EMU_LINE - 4];
};

#define EMU_SLOT_DISCARDED 1u /* claimed by a process that died: the consumer steps over it */
#define EMU_SLOT_DATA	   2u /* a control packet whose payload is offered as swap data, */
#define EMU_SLOT_ADDR	   4u /* as an address, */
#define EMU_SLOT_OPERAND   8u /* as a reduce operand */
#define EMU_SLOT_CARRIES   (EMU_SLOT_DATA | EMU_SLOT_ADDR | EMU_SLOT_OPERAND)

#define EMU_MP_NEAR 48u /* bytes of payload in the line of seq */

struct emu_mp_slot {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t len;
	uint64_t src; /* glex_ep_addr_t.v */
	uint8_t data[EMU_MP_DATA];
};

struct emu_event_slot {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved0;
	uint64_t reserved1;
	uint64_t cookie[2];
};

struct emu_err_slot {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved0;
	uint32_t op;
	uint32_t status;
	uint32_t rmt_nic_id;
	uint32_t rmt_ep_num;
	uint64_t data[3];
	uint64_t reserved1[2];
};

/* Interrupts of a port. */
enum emu_intr_cause {
	EMU_INTR_LOCAL = 1,  /* a request of its own with LOCAL_INTR is complete */
	EMU_INTR_REMOTE,     /* one of another's with REMOTE_INTR is */
	EMU_INTR_ERROR,	     /* there is a new error request */
	EMU_INTR_BAD_PACKET, /* there is a new bad packet */
	EMU_INTR_PEER_DEAD   /* the process of an endpoint has ended */
};

struct emu_intr_slot {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved0;
	uint32_t cause; /* enum emu_intr_cause */
	uint32_t reserved1;
	uint64_t peer; /* glex_ep_addr_t.v of the other endpoint */
	uint64_t reserved2;
};

/* Why a target would not have a packet. */
enum emu_bad_cause {
	EMU_BAD_HANDLE = 1, /* no such region, or not any more */
	EMU_BAD_ENDPOINT,   /* a region of another endpoint */
	EMU_BAD_BOUNDS,
	EMU_BAD_KEY,
	EMU_BAD_ACCESS, /* the region is not for reading, or writing */
	EMU_BAD_MPQ_FULL,
	EMU_BAD_EQ_FULL /* the data is in place, the event is lost */
};

struct emu_bad_slot {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved0;
	uint32_t op;	/* enum glex_err_req_op */
	uint32_t cause; /* enum emu_bad_cause */
	uint64_t src;	/* glex_ep_addr_t.v */
	uint64_t handle;
	uint64_t offset;
	uint32_t len;
	uint32_t key;
	uint64_t reserved1[2];
};

/* A request, as the NIC executes it. */
enum emu_op { EMU_OP_MP = 0, EMU_OP_IMM_PUT = 1, EMU_OP_PUT = 2, EMU_OP_GET = 3 };

struct emu_desc {
	uint32_t op;   /* enum emu_op */
	uint32_t flag; /* enum glex_flag */
	uint64_t dst;  /* glex_ep_addr_t.v */
	uint64_t local_mh;
	uint64_t rmt_mh;
	uint32_t local_offset;
	uint32_t rmt_offset;
	uint32_t len;
	uint32_t rmt_key;
	uint64_t local_evt[2];
	uint64_t rmt_evt[2];
	uint8_t imm[EMU_MP_DATA];
	uint32_t counter; /* collective: control packets that open its gate */
	uint32_t reserved0;
	uint64_t after; /* collective: how many requests of the descriptor queue must have been executed */
	uint8_t reserved[48];
};

/* Written by the owner only, read by anyone who is curious. */
struct emu_port_counters {
	_Atomic uint64_t tx_mp;
	_Atomic uint64_t tx_imm_put;
	_Atomic uint64_t tx_put;
	_Atomic uint64_t tx_get;
	_Atomic uint64_t tx_bytes; /* moved by PUT and GET */
	_Atomic uint64_t tx_busy;  /* posts refused with GLEX_BUSY */
	_Atomic uint64_t rx_mp;
	_Atomic uint64_t rx_event;
	_Atomic uint64_t tx_error; /* error requests of this port */
	_Atomic uint64_t by_map;   /* transfers by mapping */
	_Atomic uint64_t by_attach;
	_Atomic uint64_t sleeps; /* waits that ended up in the kernel */
	uint64_t reserved[4];
};

/*
 * The word `sleepers`: 0 while nobody wants to be woken, which is all that a
 * sender looks at.
 */
#define EMU_SLEEPERS  UINT64_C(0x0ffff) /* threads asleep on doorbell, or about to be */
#define EMU_ARM_MP    UINT64_C(0x10000) /* the next MP makes the descriptor readable */
#define EMU_ARM_EVENT UINT64_C(0x20000)
#define EMU_ARM_WHAT  (EMU_ARM_MP | EMU_ARM_EVENT)
#define EMU_ARM_TURN  UINT64_C(0x40000) /* from here up: which arming this is */
#define EMU_ARM_PART  (~EMU_SLEEPERS)

enum emu_port_state { EMU_PORT_OPEN = 1, EMU_PORT_CLOSED = 2 };

struct emu_port {
	struct emu_seg_head seg;
	uint32_t nic_id;
	uint32_t ep_num;
	uint32_t type; /* enum glex_ep_type */
	uint32_t key;
	uint32_t session; /* of the owner */
	uint32_t pid;
	uint32_t mpq_capacity;
	uint32_t eq_capacity;
	uint32_t err_capacity;
	uint32_t dq_capacity; /* slots really there: 0 where the poster executes */
	uint32_t intq_capacity;
	uint32_t epq_capacity;
	/* where they begin, in bytes */
	uint32_t mpq_log, mpq_slots;
	uint32_t eq_log, eq_slots;
	uint32_t err_log, err_slots;
	uint32_t dq_slots;
	uint32_t intq_log, intq_slots;
	uint32_t epq_log, epq_slots;
	uint32_t reserved0;
	_Atomic uint32_t state; /* enum emu_port_state; every sender reads this line, hardly anybody writes it */
	uint32_t reserved1;
	_Atomic uint64_t sleepers; /* see EMU_SLEEPERS */
	uint8_t pad1[EMU_LINE - 16];
	_Atomic uint32_t doorbell; /* futex word */
	_Atomic uint32_t intr;	   /* 1: the owner has a descriptor that interrupts make readable */
	uint8_t pad2[EMU_LINE - 8];
	struct emu_ring_ctl mpq;
	struct emu_ring_ctl eq;
	struct emu_ring_ctl err;
	struct emu_ring_ctl dq;
	struct emu_port_counters counters;
	struct emu_ring_ctl intq;
	struct emu_ring_ctl epq;
};

enum emu_way { EMU_WAY_ATTACH = 0, EMU_WAY_MAP = 1 };

/* What a region, or most of it, is made of; for display. */
enum emu_kind {
	EMU_KIND_PRIVATE = 0, /* and whatever else is reached by attach */
	EMU_KIND_ALLOC,	      /* shareable from the start */
	EMU_KIND_FILE,	      /* a shared mapping of the program's own */
	EMU_KIND_ADOPTED,     /* private once, moved into a shared mapping */
	EMU_KINDS
};

/* One region of the memory table; mmt.h has the rules. */
struct emu_mmt_entry {
	_Atomic uint64_t stamp; /* {generation : 32, session : 32}; session 0: free */
	_Atomic uint64_t addr;	/* in the owner's address space */
	_Atomic uint64_t len;
	_Atomic uint64_t map_offset; /* of the region's first byte in the object; two's complement */
	_Atomic uint64_t map;	     /* {generation : 32, slot : 32} of the shared object, EMU_WAY_MAP only */
	_Atomic uint32_t key;
	_Atomic uint32_t pid;
	_Atomic uint32_t ep_num;
	_Atomic uint32_t access; /* GLEX_MEM_READ, GLEX_MEM_WRITE | way << 8 | kind << 16 */
	_Atomic uint64_t valid;	 /* the generation that may be used; differs from stamp's while fields change */
};

/*
 * What the memory checker and the address translation of a NIC did.  Written by
 * whoever executes a request: refusals always, the rest where the cache is
 * modelled.
 */
struct emu_nic_counters {
	_Atomic uint64_t passed;		  /* accesses to regions that were allowed */
	_Atomic uint64_t refused[EMU_BAD_ACCESS]; /* by enum emu_bad_cause - 1 */
	_Atomic uint64_t att_hit;		  /* pages whose translation was in the cache */
	_Atomic uint64_t att_miss;
	_Atomic uint64_t att_evicted; /* translations that a miss pushed out */
	_Atomic uint64_t adopted;     /* pages of private memory that its processes have put into shared mappings */
	_Atomic uint64_t huge;	      /* units of 2 MiB that they have put into huge pages, */
	_Atomic uint64_t not_huge;    /* and could not */
	_Atomic uint64_t attached;    /* pages moved by attach, into and out of its regions */
	uint64_t reserved[3];
};

/* One set of the translation cache: tags, the most recently used first; 0: empty. */
struct emu_atc_set {
	_Atomic uint64_t way[EMU_ATC_WAYS];
};

/* Behind it, where the translation cache is modelled, lie EMU_ATC_SETS sets of it. */
struct emu_nic {
	struct emu_seg_head seg;
	uint32_t nic_id;
	uint32_t mmt_units;
	uint8_t pad0[EMU_LINE - 40];
	_Atomic uint64_t dma_pending; /* bit n: port n has descriptors waiting; see emu_dma_bit */
	uint8_t pad1[EMU_LINE - 8];
	_Atomic uint32_t mmt_hint; /* where to begin the search for a free entry */
	_Atomic uint32_t mmt_used;
	uint8_t pad2[EMU_LINE - 8];
	struct emu_nic_counters counters;
	struct emu_mmt_entry mmt[EMU_MMT_UNITS];
	_Atomic uint32_t
		used[EMU_MMT_UNITS]; /* pages moved by attach since the region was registered, or looked after */
};

#define EMU_NIC_SIZE(modelled) (sizeof(struct emu_nic) + (modelled ? EMU_ATC_SETS * sizeof(struct emu_atc_set) : 0))

/* ---- collectives; emulator/nic/coll.h has the rules ------------------------- */

/* Payload of a reduce operand: what the interface keeps private. */
struct emu_operand {
	uint32_t magic;
	uint8_t count; /* units */
	uint8_t bits;  /* enum glex_coll_reduce_data_bits */
	uint8_t op;    /* enum glex_coll_reduce_op */
	uint8_t degree;
	uint32_t order; /* place among those it meets, before the sender's address; 0 where nobody says */
	uint32_t reserved;
	uint8_t unit[6][16]; /* union glex_coll_data_loc */
};

#define EMU_OPERAND_MAGIC 0x64657267u /* "gred" */
#define EMU_OPERAND_HEAD  16u	      /* bytes before the units */
#define EMU_OPERANDS	  32u	      /* of one gate */

/* Payload of a swap address. */
struct emu_swap_addr {
	uint64_t ep; /* glex_ep_addr_t.v */
	uint64_t mh; /* glex_mem_handle_t.v */
	uint32_t offset;
	uint32_t key;
};

#define EMU_COLL_OPEN	1u /* the gate of the request at cq_head has opened */
#define EMU_COLL_SWAP	2u /* there is a swap value, in x */
#define EMU_COLL_BROKEN 4u /* the operands of this sequence did not fit together */

/* How far the collective requests of a port are. */
struct emu_coll_state {
	uint32_t cq_head;  /* the next request */
	uint32_t d_head;   /* the next control packet to take */
	uint32_t got;	   /* taken for the gate of the request at cq_head */
	uint32_t operands; /* kept of those */
	uint32_t sent;	   /* destinations that the request at cq_head has been sent to */
	uint32_t flags;	   /* EMU_COLL_* */
	uint32_t x;	   /* which of x[] has the swap value */
	uint32_t reserved[9];
};

/* What a control packet brought, kept. */
struct emu_coll_kept {
	uint64_t src; /* glex_ep_addr_t.v */
	uint32_t len;
	uint32_t flags; /* of its slot */
	uint8_t data[EMU_MP_DATA];
};

enum emu_coll_ring { EMU_COLL_MPQ = 1, EMU_COLL_EQ, EMU_COLL_D };

#define EMU_COLL_CLAIMS 3u /* slots that one request fills at most */

/* The slots of a request that are complete: whoever takes over publishes them. */
struct emu_coll_intent {
	_Atomic uint32_t filled; /* 1: they are */
	uint32_t claims;
	uint32_t cq_head; /* of which request, to which of its destinations */
	uint32_t sent;
	struct {
		uint64_t port; /* glex_ep_addr_t.v */
		uint32_t ring; /* enum emu_coll_ring */
		uint32_t index;
	} claim[EMU_COLL_CLAIMS];
};

struct emu_coll {
	struct emu_seg_head seg;
	uint32_t nic_id;
	uint32_t ep_num;
	uint32_t cq_capacity;
	uint32_t d_capacity;
	uint64_t cq_slots;
	uint64_t d_log, d_slots;
	uint8_t pad0[EMU_LINE - 72];
	_Atomic uint64_t turn;	/* {session that executes : 32, times it was asked to : 32} */
	_Atomic uint32_t which; /* of state[] */
	/* Out of order, where glexd has all turns: */
	_Atomic uint32_t asked;	 /* by the owner, so many times */
	_Atomic uint32_t served; /* of these, with nothing held back any more */
	uint8_t pad1[EMU_LINE - 20];
	struct emu_coll_state state[2];
	struct emu_ring_ctl cq;
	struct emu_ring_ctl d;
	struct emu_coll_intent intent;
	uint8_t pad2[EMU_LINE - sizeof(struct emu_coll_intent)];
	struct emu_coll_kept x[2];
	struct emu_coll_kept operand[EMU_OPERANDS];
};

struct emu_engine {
	struct emu_seg_head seg;
	uint8_t pad0[EMU_LINE - 32];
	_Atomic uint32_t fences; /* 1: some process has no membarrier, so senders fence before they look at sleepers */
	_Atomic uint32_t no_attach;   /* 1: some process may not use cross-memory attach, or not be its target */
	_Atomic uint64_t copiers;     /* which way of copying suits which length (copy.h); 0: not measured */
	_Atomic uint64_t stream_from; /* copies from here on go past the cache; 0: none does */
	_Atomic uint32_t cores;	      /* that any client may use; 0: not known */
	_Atomic uint32_t processes;   /* clients, and glexd if nothing goes without it */
	uint32_t reorder;	      /* window of reorder.h, 0: in order; this and the next never change */
	uint32_t reserved0;
	uint64_t reorder_seed;
	uint8_t pad1[EMU_LINE - 48];
	_Atomic uint32_t asleep; /* the DMA engine sleeps on bell, or is about to */
	_Atomic uint32_t bell;	 /* futex word */
	uint8_t pad2[EMU_LINE - 8];
	_Atomic uint64_t deaths; /* endpoints whose process ended with them open; dead.h has the rules */
	uint8_t pad3[EMU_LINE - 8];
	_Atomic uint64_t dead[EMU_DEAD_KEPT]; /* glex_ep_addr_t.v of the last of them, number n at n % EMU_DEAD_KEPT */
};

#define EMU_LAYOUT_HASH                                                                                                \
	((uint32_t)(sizeof(struct emu_port) * 2654435761u ^ offsetof(struct emu_port, mpq) * 40503u ^                  \
		    sizeof(struct emu_nic) * 97u ^ sizeof(struct emu_mmt_entry) * 8191u ^ sizeof(struct emu_desc) ^    \
		    offsetof(struct emu_port, counters) * 131u ^ sizeof(struct emu_coll) * 31u ^                       \
		    sizeof(struct emu_engine) * 13u ^ EMU_ABI_VERSION))

static_assert(sizeof(struct emu_seg_head) == 32, "every segment begins alike");
static_assert(sizeof(struct emu_ring_ctl) == 2 * EMU_LINE, "producers and the consumer must not share a line");
static_assert(offsetof(struct emu_ring_ctl, lead) == 16, "a claim touches one line of the ring");
static_assert(offsetof(struct emu_ring_ctl, head) == EMU_LINE, "the consumer's word has its own line");
static_assert(sizeof(struct emu_mp_slot) == 128, "an MP slot is two cache lines");
static_assert(offsetof(struct emu_mp_slot, data) == 16, "48 bytes of payload share the line of seq");
static_assert(sizeof(struct emu_event_slot) == 32, "two events a cache line");
static_assert(offsetof(struct emu_event_slot, cookie) == 16, "glex_event_t is 16-byte aligned in its slot");
static_assert(sizeof(struct emu_err_slot) == 64, "an error slot is one cache line");
static_assert(sizeof(struct emu_intr_slot) == 32, "the slots of a ring are a power of two");
static_assert(sizeof(struct emu_bad_slot) == 64, "a bad packet is one cache line");
static_assert(sizeof(struct emu_desc) == 256, "the DMA engine strides by a power of two");
static_assert(offsetof(struct emu_desc, imm) == 80, "immediate data follows the request");
static_assert(offsetof(struct emu_desc, after) == 200, "no padding on the wire");
static_assert(sizeof(struct emu_operand) == EMU_MP_DATA, "an operand fills a mini-packet");
static_assert(sizeof(struct emu_swap_addr) == 24, "no padding on the wire");
static_assert(sizeof(struct emu_coll_state) == 64, "changing it writes one cache line");
static_assert(sizeof(struct emu_coll_kept) == EMU_LINE, "kept values do not share lines");
static_assert(offsetof(struct emu_coll, turn) == EMU_LINE, "what all write is apart from the head");
static_assert(offsetof(struct emu_coll, state) == 2 * EMU_LINE, "the state is apart from what all write");
static_assert(offsetof(struct emu_coll, cq) == 3 * EMU_LINE, "queues begin on their own line");
static_assert(offsetof(struct emu_coll, x) == 8 * EMU_LINE, "kept values are aligned");
static_assert(sizeof(struct emu_port_counters) == EMU_LINE, "the owner's counters have their own line");
static_assert(offsetof(struct emu_port, state) == EMU_LINE, "what senders read is apart from the head");
static_assert(offsetof(struct emu_port, doorbell) == 2 * EMU_LINE, "sleepers ring apart from what senders read");
static_assert(offsetof(struct emu_port, mpq) == 3 * EMU_LINE, "rings begin on their own line");
static_assert(offsetof(struct emu_port, counters) == 11 * EMU_LINE, "four rings, then the counters");
static_assert(offsetof(struct emu_port, intq) == 12 * EMU_LINE, "what is hardly ever touched comes last");
static_assert(EMU_MAX_HC_MPQ * (8 + sizeof(struct emu_mp_slot)) + EMU_MAX_HC_EQ * (8 + sizeof(struct emu_event_slot)) <
		      1u << 30,
	      "offsets of all queues are 32 bits wide");
static_assert(sizeof(struct emu_mmt_entry) == 64, "checking a region reads one cache line");
static_assert(offsetof(struct emu_nic, dma_pending) == EMU_LINE, "bells have their own line");
static_assert(sizeof(struct emu_nic_counters) == EMU_LINE, "counters have their own line");
static_assert(sizeof(struct emu_atc_set) == 64, "a look at the translation cache reads one cache line");
static_assert(sizeof(struct emu_nic) % 64 == 0, "the sets behind it are aligned to cache lines");
static_assert(offsetof(struct emu_nic, mmt) == 4 * EMU_LINE, "entries are aligned to cache lines");
static_assert(offsetof(struct emu_engine, fences) == EMU_LINE, "read by every sender, written once");
static_assert(offsetof(struct emu_engine, copiers) == EMU_LINE + 8, "read with fences");
static_assert(offsetof(struct emu_engine, cores) == EMU_LINE + 24, "rarely written: a client comes or goes");
static_assert(offsetof(struct emu_engine, reorder_seed) == EMU_LINE + 40, "what creating an endpoint reads");
static_assert(offsetof(struct emu_engine, asleep) == 2 * EMU_LINE, "written at each nap of the engine");
static_assert(offsetof(struct emu_engine, deaths) == 3 * EMU_LINE,
	      "all look at it now and then, and only a death writes it");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "no hidden locks in shared memory");

#endif /* EMU_SHM_LAYOUT_H */
