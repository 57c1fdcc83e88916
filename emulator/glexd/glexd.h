/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glexd.h - the objects of the NIC emulator process.
 *
 *   listener -> session (a client process) -> ports and shared objects it owns
 *   node (an emulated host with one NIC)   -> ports that live on it
 *
 * Two threads, and for its first milliseconds a third (numa.c).  The control thread runs the event loop and makes and ends
 * objects; the DMA thread executes the descriptors of NORMAL ports.  `lock`
 * guards everything reachable from struct glexd; both take it for one request
 * or one quantum of a port; the control thread goes first.  Clients touch the
 * segments at any time.
 */
#ifndef GLEXD_H
#define GLEXD_H

#include <event2/event.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "emulator/abi/wire.h"
#include "emulator/nic/coll.h"
#include "emulator/nic/move.h"
#include "emulator/nic/reorder.h"

struct glexd;

/* A sealed memfd mapped here. */
struct segment {
	int fd; /* -1: none */
	void *base;
	uint64_t size;
};

/* Kept for who asks next; see stock.c. */
enum stock_kind { STOCK_NIC, STOCK_PORT, STOCK_KINDS };

struct stock {
	struct segment seg;
	uint64_t wanted; /* bytes: what was asked for last; 0: nothing */
};

struct session {
	LIST_ENTRY(session) link;
	struct glexd *glexd;
	uint32_t id;
	int fd;
	int pidfd; /* -1 where the kernel has none */
	struct event *readable;
	struct event *died;
	uint32_t pid;
	uint32_t nic_id;
	LIST_HEAD(, port) ports;
	uint32_t *known; /* sessions whose ports it has opened */
	uint32_t known_n;
	bool welcome; /* HELLO was accepted */
	bool observer;
	cpu_set_t cores; /* it may run on; none: it does not count */
};

/* Of what a port's collective unit has sent what is held back; see coll_shuffle.c. */
struct coll_shuffle {
	struct held *held; /* n of them; there is room for `room` */
	uint32_t n, room;
	uint64_t sent;	 /* how many there were */
	uint64_t moving; /* when the last one came, in ns */
};

struct port {
	LIST_ENTRY(port) link; /* of its owner */
	struct segment seg;
	struct emu_vport view;
	struct segment coll_seg; /* the collective unit, where somebody has asked for it */
	struct emu_coll_view coll;
	uint32_t cq_capacity;
	struct session *owner;
	uint32_t nic_id;
	uint32_t ep_num;
	int intr_fd;   /* eventfd that interrupts write to; -1: nobody has asked for it */
	uint64_t done; /* DMA: bytes of the descriptor under way already moved */
	struct emu_reorder reorder;
	uint32_t seen;	 /* DMA, out of order: the queue's tail when it was last seen to move, */
	uint64_t moving; /* and when that was, in ns */
	struct coll_shuffle shuffle;
};

struct node {
	struct segment seg;
	struct emu_nic *nic;
	struct port **ports; /* by number; `room` long */
	uint32_t room;
	uint64_t dma_active; /* ports with work left from the last round */
};

/* Memory a client made shareable. */
struct shared {
	int fd; /* -1: slot is free */
	uint32_t generation;
	uint64_t offset; /* in the file */
	uint64_t len;
	bool lasting;	/* sealed: it cannot become shorter */
	bool writable;	/* by this descriptor */
	bool mapped;	/* the DMA engine has tried */
	bool untouched; /* as its owner says, for who maps it */
	struct session *owner;
	unsigned char *base; /* where it has; NULL: not, or it cannot be had */
};

/* Who has died; see dead.c. */
struct death {
	uint64_t number;
	uint64_t addr; /* glex_ep_addr_t.v */
};

struct deaths {
	struct death *of;
	uint32_t n, room;
};

struct glexd {
	pthread_mutex_t lock;
	atomic_bool wanted; /* the control thread waits for lock: the DMA thread lets it go first */
	struct event_base *base;
	struct event *acceptor;
	struct event *leave; /* timer: nobody is here any more */
	int listener;
	const char *socket; /* as given: @abstract or a path */
	bool full;	    /* no descriptor left to accept anybody */
	bool private;	    /* leaves with its last client */
	uint32_t linger_ms;

	LIST_HEAD(, session) sessions; /* changed by the control thread, under lock: another looks at them (numa.c) */
	uint32_t clients;	       /* sessions that keep a private glexd alive */
	uint32_t next_session;
	uint32_t next_turn; /* round robin */

	struct node **nodes; /* by number */
	uint32_t node_room;
	struct node **made; /* those that there are, node_count of them: numbers may be far apart */
	uint32_t node_count, made_room;
	struct shared *shared;
	uint32_t shared_room;

	struct deaths deaths;

	struct stock stock[STOCK_KINDS];
	struct event *restock; /* timer: nobody has asked for anything for a while */

	struct segment engine_seg;
	struct emu_engine *engine;
	struct emu_host host; /* the DMA thread's */
	uint64_t steps;	      /* it has executed */
	pthread_t dma_thread;
	atomic_bool stopping;
	struct numa *numa; /* NULL: nothing is placed */
};

/* segment.c: memory, of whole pages.  0 or -1 with errno; a failure is logged with what it was for, or NULL: not. */
int segment_create(struct segment *seg, const char *what, uint64_t size);
void segment_destroy(struct segment *seg);
uint64_t segment_round(uint64_t size); /* to whole pages */

/* stock.c: the same at once, if there is one of that size. */
void stock_start(struct glexd *glexd);
void stock_stop(struct glexd *glexd);
void stock_want(struct glexd *glexd, enum stock_kind kind, uint64_t size);
int stock_take(struct glexd *glexd, enum stock_kind kind, struct segment *seg, const char *what, uint64_t size);
bool stock_give_up(struct glexd *glexd); /* false: there was nothing */

/* node.c: NICs, ports, shared objects.  All with the lock held.  Return enum emu_ctl_status. */
int node_get(struct glexd *glexd, uint32_t nic_id, struct node **node_p); /* creates it */
struct node *node_find(struct glexd *glexd, uint32_t nic_id);
struct port *port_find(struct glexd *glexd, uint32_t nic_id, uint32_t ep_num);
int port_create(struct glexd *glexd, struct session *owner, const struct emu_ctl_port *want, struct port **port_p);
void port_close(struct glexd *glexd, struct port *port);
void ports_close(struct session *owner); /* all; their regions are the caller's to reclaim */
/* Takes fd, of a regular file that has these bytes.  BAD: it has not, and is the caller's still. */
int shared_add(struct glexd *glexd, struct session *owner, int fd, const struct emu_ctl_share *what, uint64_t *id_p);
struct shared *shared_find(struct glexd *glexd, uint64_t id);
void shared_remove(struct glexd *glexd, struct shared *shared);
/* Calls fn for every port; stops when it returns true. */
bool port_each(struct glexd *glexd, bool (*fn)(struct port *port, void *arg), void *arg);

/* intr.c: descriptors of ports, and who must be told of a death.  All with the lock held. */
int intr_open(struct port *port); /* enum emu_ctl_status */
void intr_close(struct port *port);
bool intr_raise(struct port *port); /* makes the descriptor readable; false: there is none */
bool intr_host(struct emu_host *host, struct emu_port *port);
/* The session has opened a port of that one. */
void peers_note(struct session *session, uint32_t other);
/* Closes the ports of a session that ends and raises interrupts at those of its peers. */
void peers_tell_end(struct session *session);

/* dead.c: endpoints whose process has ended with them open.  With the lock held. */
void dead_note(struct glexd *glexd, uint64_t addr);
/* Those with this number or a later one, the first of them. */
void dead_list(const struct glexd *glexd, uint64_t next, struct emu_ctl_dead *out);

/* coll.c: collective units.  All with the lock held. */
int coll_open(struct port *port); /* makes it, if there is none; enum emu_ctl_status */
void coll_close(struct port *port);
/* Requests that waited for the descriptor queue may be due. */
void coll_kick(struct glexd *glexd, struct port *port);
/* Before and after what a dead session has claimed is discarded: what it was executing is brought to its end. */
void coll_inherit_all(struct glexd *glexd, uint32_t dead);
void coll_kick_all(struct glexd *glexd);
/* Discards what it has claimed of the unit's queue; returns how many. */
uint32_t coll_reap(struct port *port, uint32_t dead);

/* coll_shuffle.c: the same out of order, with the lock held.  The first is of emu_host_ops; in order it holds nothing. */
int coll_hold(struct emu_host *host, struct emu_coll_view *from, const struct emu_desc *desc, const void *data);
/* Executes what has been posted, and sends what is due.  True: something is held back. */
bool coll_serve_shuffled(struct glexd *glexd, struct port *port);
/* Sends all, before its owner closes the port; in order there is nothing to send. */
void coll_end_shuffled(struct glexd *glexd, struct port *port);

/* session.c: clients. */
void session_accept(evutil_socket_t listener, short what, void *glexd);
void session_end(struct session *session, const char *why);

/* control.c: one request of a session.  fds: EMU_WIRE_FDS entries, -1 where none; replies' fds stay glexd's. */
void control_serve(struct session *session, const struct emu_ctl_msg *request, int fd_in, struct emu_ctl_msg *reply,
		   int fds_out[EMU_WIRE_FDS]);

/* numa.c: clients and cores.  The lock is held, but at start and stop, when the engine runs and when it has ended. */
void numa_start(struct glexd *glexd);
void numa_stop(struct glexd *glexd);
void numa_client_in(struct session *session);
void numa_client_out(struct session *session);
uint32_t numa_cores(const struct glexd *glexd, cpu_set_t *cores); /* that clients run on; returns how many these are */
/* Between the two, memory comes from where the owner's cores are. */
bool numa_memory_of(const struct session *owner); /* false: it is all the same */
void numa_memory_anywhere(struct glexd *glexd);

/* dma.c: the engine.  0 or -1 with errno. */
int dma_start(struct glexd *glexd);
void dma_stop(struct glexd *glexd);

#endif /* GLEXD_H */
