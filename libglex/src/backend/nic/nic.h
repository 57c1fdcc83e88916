/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic.h - the backend over the NIC emulator: what a process keeps of it.
 *
 *   nic_device ---- ctl (socket to glexd)
 *      |  \-------- own NIC's memory table, engine page
 *      |  \-------- peers: NICs and ports seen so far, mapped here
 *      |  \-------- own and foreign shared objects, mapped here
 *   nic_ep -------- own port; struct emu_host: this endpoint turns the crank
 *
 * Reading the tables of peers takes no lock: they are trees of pointers that are
 * set once and replaced under `lock`; what was replaced goes to a graveyard that
 * is emptied when no request can be using it.
 *
 * label    access                       order     pairs     says
 * PEER-R1  resolver pointer = view      release   PEER-A1   the view behind it is complete
 * PEER-A1  poster   load pointer        acquire   PEER-R1   it may be used for this request
 */
#ifndef GLEXI_NIC_H
#define GLEXI_NIC_H

#include "backend/nic/ctl.h"
#include "backend/nic/vma.h"
#include "core/priv.h"
#include "emulator/nic/coll.h"
#include "emulator/nic/fast.h"
#include "emulator/nic/reorder.h"

#define NIC_PAGE   1024u /* NICs a page of the tree */
#define NIC_PAGES  (EMU_MAX_NICS / NIC_PAGE)
#define LOW_PORTS  64u	/* ports kept in the NIC's view itself */
#define PORT_PAGE  256u /* further ones, by the page */
#define PORT_PAGES ((EMU_MAX_EPS + PORT_PAGE) / PORT_PAGE)
#define MAP_PAGE   256u
#define MAP_PAGES  256u

/* Something mapped, waiting to be unmapped. */
struct nic_grave {
	struct nic_grave *next;
	void *base;
	uint64_t size;
	void *memory; /* freed with it */
	int fd;	      /* closed with it; -1: none */
};

struct nic_port_view {
	struct emu_vport view;
	uint64_t size;			      /* 0: an own endpoint's, whose mapping and view go with the endpoint */
	_Atomic int intr_fd;		      /* + 1, to interrupt its owner; 0: not asked for yet */
	_Atomic(struct emu_coll_view *) coll; /* NULL: not asked for yet */
};

struct nic_port_page {
	_Atomic(struct nic_port_view *) port[PORT_PAGE];
};

struct nic_view {
	struct emu_nic *nic;
	_Atomic(struct nic_port_view *) low[LOW_PORTS];
	_Atomic(struct nic_port_page *) pages[PORT_PAGES];
};

struct nic_page {
	_Atomic(struct nic_view *) nic[NIC_PAGE];
};

/* A shared object of anybody, mapped here. */
struct nic_map_view {
	uint64_t id;	     /* {generation, slot} */
	unsigned char *base; /* NULL: it cannot be mapped here, and is reached by attach */
	uint64_t len;
	bool writable;
	uint32_t unnamed; /* looks in a row that found no region of it; under lock */
};

struct nic_map_page {
	_Atomic(struct nic_map_view *) map[MAP_PAGE];
};

/* What this process allocated with glex_alloc. */
struct nic_alloc {
	LIST_ENTRY(nic_alloc) link;
	unsigned char *base;
	uint64_t len;
	uint64_t id;
};

/* A shared mapping of the program's own; see file.c. */
struct nic_file {
	LIST_ENTRY(nic_file) link;
	uint64_t base; /* where it was seen last */
	uint64_t len;
	uint64_t dev, ino, offset; /* the part of which file */
	bool writable;
	bool shared; /* known to glexd; false: it cannot be */
	uint64_t id;
	uint32_t regions; /* that name it */
};

#define NIC_HOT 64u

/* Memory that is used often, or that somebody wanted to be promoted. */
struct nic_hot {
	uint64_t addr, len;
	uint64_t uses;	   /* times it was registered */
	uint64_t asked[2]; /* times it was to be promoted in vain: not quietly, and quietly */
};

/* What is registered; counted for GLEX_MAX_REGIONS and GLEX_MAX_LOCKED. */
struct nic_quota {
	_Atomic uint64_t regions;
	_Atomic uint64_t bytes; /* of whole pages */
};

struct nic_device {
	struct nic_ctl ctl;
	struct glexi_device *dev;
	struct emu_ctl_hello_reply welcome;
	struct emu_host_ops
		ops; /* of its endpoints: nic_host_ops, but nobody attaches by another PID namespace's pids */
	struct emu_engine *engine;
	struct emu_nic *nic;

	/* Order: ep_lock, an endpoint's post_lock, lock. */
	pthread_mutex_t ep_lock; /* eps */
	LIST_HEAD(, nic_ep) eps;
	_Atomic uint32_t ep_count; /* of eps */
	pthread_mutex_t lock;	   /* resolving, allocating */
	_Atomic(struct nic_page *) pages[NIC_PAGES];
	_Atomic(struct nic_map_page *) maps[MAP_PAGES];
	uint32_t map_count; /* views in maps; under lock, as the next */
	uint32_t looks;	    /* for what peers have left */
	struct nic_grave *graveyard;
	uint32_t graves;
	_Atomic int64_t look_at; /* the next one not before */
	LIST_HEAD(, nic_alloc) allocs;
	LIST_HEAD(, nic_file) files;
	struct nic_quota quota;
	_Atomic uint32_t alloc_count; /* so that registering costs no lock where nothing was allocated */
	int vma_fd;		      /* of nic_vma_open */
	struct nic_hot hot[NIC_HOT];  /* by a hash of the address; under lock */
	_Atomic uint64_t tended;      /* the NIC's counter of pages moved by attach, when it was looked at last */
};

/* Requests out of order: the poster's side of emulator/nic/reorder.h. */
struct nic_shuffle {
	uint32_t window; /* 0: in order */
	uint32_t turn;	 /* requests posted */
	uint32_t head;	 /* of the descriptor queue when the last request went first, */
	uint32_t passed; /* and how many have since that head came */
	uint64_t seed;
};

/*
 * The beaten track: what a PUT or GET that raised nothing went between, if the last one
 * that was not on it did too.  Found here, a request of the same kind needs no other look but at
 * what may have changed since: `valid` of both regions, and the state of the port.
 */
struct nic_track_end {
	uint64_t handle; /* 0: none */
	uint64_t len;
	unsigned char *base;
	const _Atomic uint64_t *valid;
	uint64_t generation; /* that it must show */
};

struct nic_track {
	struct nic_track_end remote, local; /* local: of PUT and GET only */
	const _Atomic uint32_t *state;	    /* of the port */
	struct emu_vport *to;		    /* the same */
	uint64_t addr;			    /* of the endpoint: glex_ep_addr_t.v */
	uint64_t candidate;		    /* handles of the last request that was not on it, mixed */
	uint32_t key;
	uint32_t access;      /* of the remote region */
	bool apart;	      /* the two regions have no byte in common */
	uint64_t way_len;     /* of the last long request; 0: there was none */
	uint64_t way_for;     /* the engine's picks at that time */
	emu_copy_way *way[2]; /* to copy it, in turns (copy.h): what is as long goes there at once */
};

struct nic_ep {
	struct emu_host host; /* must be first */
	struct nic_device *dev;
	struct glexi_ep *ep;
	LIST_ENTRY(nic_ep) link;
	struct emu_vport port;
	uint64_t port_size;
	struct nic_port_view *own; /* the same port in the tree; NULL: it is not there */
	uint32_t err_logged;	   /* up to here asynchronous errors are on stderr */
	/* the last peer: most requests go where the one before went */
	uint64_t last_addr; /* glex_ep_addr_t.v */
	uint32_t last_nic_id;
	uint32_t last_ep_num;
	struct nic_port_view *last_port;
	struct nic_view *last_nic;
	alignas(64) struct nic_track track, imm_track;	   /* under the post lock, as known; goes with it */
	alignas(64) struct emu_known known[2 * EMU_KNOWN]; /* regions; under the post lock */
	alignas(64) struct emu_away away[EMU_KNOWN];	   /* the same */
	/* seldom touched */
	uint32_t dq_filled; /* descriptors written and not yet shown to the engine */
	struct nic_shuffle shuffle;
	struct nic_quota quota;
	pthread_mutex_t intr_lock; /* the three below */
	_Atomic int intr_fd;	   /* eventfd; -1: the program has not asked for it */
	int poll_fd;		   /* what it polls: that, and the end of glexd */
	uint64_t arm_turn;
};

static inline struct nic_ep *nic_ep_of(struct emu_host *host)
{
	return (struct nic_ep *)(void *)host;
}

/* peer.c */
extern const struct emu_host_ops nic_host_ops; /* an endpoint's host has dev->ops */
/* Maps a segment that glexd sent, and closes its descriptor.  NULL: logged. */
void *nic_map_segment(int fd, const char *what, uint64_t *size_p);
struct nic_view *nic_peer_add_own(struct nic_device *dev);
/* An endpoint's own port comes into the tree; it goes, and its mapping, once the requests under way are done. */
void nic_peer_add_port(struct nic_ep *nep);
void nic_peer_remove_port(struct nic_ep *nep);
void nic_peers_free(struct nic_device *dev);
/* Of a NIC and port that have been resolved; NULL: not (any more). */
struct nic_port_view *nic_peer_port(struct nic_device *dev, uint32_t nic_id, uint32_t num);
/* The same is the last peer from now on; false: it is not known, and nothing has changed.  Under the post lock. */
bool nic_peer_turn(struct nic_ep *nep, uint64_t addr);

static inline bool nic_port_is_open(const struct nic_port_view *view)
{
	/* relaxed: a port that closes right after is as if the packet had come a little earlier */
	return atomic_load_explicit(&view->view.port->state, memory_order_relaxed) == EMU_PORT_OPEN;
}

/* -1: not asked for yet. */
static inline int nic_port_intr_fd(const struct nic_port_view *view)
{
	return atomic_load_explicit(&view->intr_fd, memory_order_acquire) - 1; /* PEER-A1 */
}

/* grave.c: what is not in the tree any more, and may still be in use by requests under way.  Under dev->lock. */
void nic_bury(struct nic_device *dev, void *base, uint64_t size, void *memory, int fd);
/* A port's queues, with its view (NULL: it has none), and what that has. */
void nic_bury_port(struct nic_device *dev, struct nic_port_view *view, void *base, uint64_t size);
/*
 * Lets go of what peers have left behind, if it is time to look for that, and unmaps
 * what was buried, once the requests under way are done; with very many endpoints
 * only when enough has gathered.  The caller holds no lock.
 */
void nic_empty_graveyard(struct nic_device *dev);
/* The same, for who must not wait for anybody: at a time when nobody posts. */
void nic_tend_views(struct nic_device *dev);

/* intr.c: descriptors that become readable. */
void nic_intr_init(struct nic_ep *nep);
void nic_intr_destroy(struct nic_ep *nep);
glex_ret_t nic_ep_fd(struct glexi_ep *ep, int *fd_p);
void nic_ep_fd_clear(struct glexi_ep *ep);
glex_ret_t nic_ep_arm(struct glexi_ep *ep, uint32_t what);
bool nic_host_interrupt(struct emu_host *host, struct emu_port *port);

/* coll.c: collective requests */
struct emu_coll_view *nic_host_coll(struct emu_host *host, struct emu_vport *port);
/* What a list with collective requests may be: flags of one request, its data if it is an MP, GET apart. */
glex_ret_t nic_coll_check(uint32_t flag, const void *mp_data, uint32_t len, bool mp);
/* Room for n of them.  Anything but GLEX_SUCCESS: nothing of the list may be posted.  Under the post lock, as the rest. */
glex_ret_t nic_coll_room(struct nic_ep *nep, uint32_t n);
void nic_coll_push(struct nic_ep *nep, struct emu_desc *desc, uint32_t counter, const void *imm, uint32_t imm_len);
/* Executes what was pushed, as far as its gates are open. */
void nic_coll_run(struct nic_ep *nep);
/* The same for an endpoint that goes; false: somebody else is at it.  Not under the post lock. */
bool nic_coll_drained(struct nic_ep *nep);

/* quota.c: false: a limit is in the way, which has been logged, unless it was a trial */
bool nic_quota_take(struct nic_ep *nep, const void *addr, uint64_t len, bool trial);
void nic_quota_give(struct nic_ep *nep, uint64_t addr, uint64_t len);
/* The endpoint goes, and its regions with it. */
void nic_quota_give_all(struct nic_ep *nep);

/* memory.c: regions */
glex_ret_t nic_mem_register(struct glexi_ep *ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh);
glex_ret_t nic_mem_deregister(struct glexi_ep *ep, glex_mem_handle_t mh);
bool nic_mem_is_split(struct glexi_device *dev, void *addr, uint64_t len);
enum glexi_mem_tie nic_mem_tie(struct glexi_ep *ep, glex_mem_handle_t mh);
/* [addr, end) was adopted: regions there that were reached by attach are mapped by peers from now on. */
void nic_mem_remap(struct nic_device *dev, uint64_t addr, uint64_t end);

/* alloc.c: memory that is shareable from the start */
glex_ret_t nic_alloc(struct glexi_device *dev, uint64_t len, const struct glexi_alloc_wish *wish, void **addr_p);
glex_ret_t nic_free(struct glexi_device *dev, void *addr);
void nic_allocs_free(struct nic_device *dev);
/* As mmap, where its huge pages can be mapped as such. */
unsigned char *nic_map_aligned(uint64_t len, int prot, int flags, int fd, uint64_t offset);
/* The one that covers most of these bytes, or NULL.  Under dev->lock. */
struct nic_alloc *nic_alloc_most(struct nic_device *dev, const unsigned char *addr, uint64_t len);

/* file.c: shared mappings that the program made itself */
/* The one that covers most of these bytes.  False: there is none. */
bool nic_file_look(struct nic_device *dev, uint64_t addr, uint64_t len, struct nic_vma *most);
/* The object of that mapping; NULL: it cannot be shared.  This and the rest under dev->lock. */
struct nic_file *nic_file_get(struct nic_device *dev, const struct nic_vma *vma);
/* A region that named the object with this number is gone. */
void nic_file_put(struct nic_device *dev, uint64_t id);
/* Regions went without being deregistered. */
void nic_files_recount(struct nic_device *dev);
void nic_files_free(struct nic_device *dev);

/* promote.c: memory in use again and again */
/* Makes huge pages of [addr, end), whole units of 2 MiB, and counts them; how many.  errno: why not of all. */
uint64_t nic_collapse(struct nic_device *dev, uint64_t addr, uint64_t end);
/* These bytes are registered and reached by attach.  True: not any more, they are shared now. */
bool nic_mem_used(struct nic_device *dev, uint64_t addr, uint64_t len);
/* Looks after regions that peers have reached by attach often since it was called last; else a load and no more. */
void nic_mem_tend(struct nic_device *dev);
bool nic_mem_promote(struct glexi_device *device, void *addr, uint64_t len, bool quiet);

/* post.c */
glex_ret_t nic_send_imm_mp(struct glex_ep *ep, struct glex_imm_mp_req *req, struct glex_imm_mp_req **bad);
glex_ret_t nic_imm_rdma(struct glex_ep *ep, struct glex_imm_rdma_req *req, struct glex_imm_rdma_req **bad);
glex_ret_t nic_rdma(struct glex_ep *ep, struct glex_rdma_req *req, struct glex_rdma_req **bad);
bool nic_find_put_way(struct glexi_ep *ep, struct glexi_put_way *way);
const void *nic_prefetch_at(struct glexi_ep *ep, const struct glex_imm_rdma_req *req);
glex_ret_t nic_inject(struct glexi_ep *ep, const struct glex_imm_rdma_req *req);

/* queue.c */
/* Descriptors not yet executed.  0 also says that everything earlier is complete. */
uint32_t nic_dq_used(const struct nic_ep *nep);
/* There is room.  nic_dq_ring then shows the engine what has been pushed. */
void nic_dq_push(struct nic_ep *nep, const struct emu_desc *desc, const void *imm, uint32_t imm_len);
void nic_dq_ring(struct nic_ep *nep);
/* A request of this process's came to nothing: an error request, and a line. */
void nic_report(struct nic_ep *nep, const struct emu_desc *desc, int status);
/* A line each for what came to nothing elsewhere since. */
void nic_tell_errors(struct nic_ep *nep);
/* Waits until the DMA engine has executed everything posted, tells of errors; false: glexd is gone. */
bool nic_drain(struct glexi_ep *ep);

/* now.c: requests that are over when the call returns */
glex_ret_t nic_fetch(struct glexi_ep *ep, const struct glex_imm_rdma_req *req);
glex_ret_t nic_atomic(struct glexi_ep *ep, const struct glex_atomic_req *req, uint64_t *old_p);

#endif /* GLEXI_NIC_H */
