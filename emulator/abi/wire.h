/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.h - what a process and glexd say to each other over the control socket.
 *
 * A SOCK_SEQPACKET UNIX socket; one request, one reply, in this order; file
 * descriptors ride in SCM_RIGHTS.  Cold path only: creating and resolving
 * things.  Nothing on the message path talks to glexd.
 *
 *   HELLO        who I am            -> session, node; fds: engine, own NIC
 *   NIC_OPEN     node                -> fd: NIC
 *   PORT_CREATE  endpoint attributes -> number, capacities; fd: port
 *   PORT_OPEN    node, number        -> fd: port of somebody
 *   PORT_CLOSE   number              -> -
 *   SHARE        part of a file; fd  -> shared object
 *   UNSHARE      shared object       -> -
 *   SHARE_OPEN   shared object       -> part of a file; fd, for reading alone if that was so
 *   PORT_LIST    position            -> next port and its counters, or ABSENT
 *   NIC_LIST     position            -> next NIC and its counters, or ABSENT
 *   INTR_OPEN    node, number        -> fd: eventfd of the port; made when its owner asks first, ABSENT before
 *   INTR_RING    node, number        -> -; for who has no room for the fd
 *   ORDER        -                   -> -; every process has ordered its memory; for who has no membarrier
 *   COLL_OPEN    node, number        -> fd: collective unit of the port; made when somebody asks first
 *   DEAD_LIST    number              -> who has died, from that number on; for who has missed it in the engine's list
 *
 * The first message must be HELLO.  The end of the connection, by close or by
 * death, closes everything the session had.
 */
#ifndef EMU_WIRE_H
#define EMU_WIRE_H

#include <assert.h>
#include <stdint.h>

#define EMU_WIRE_MAGIC	 0x786c6743u /* "Cglx" */
#define EMU_WIRE_VERSION 4u
#define EMU_WIRE_FDS	 2

enum emu_ctl_op {
	EMU_CTL_HELLO = 1,
	EMU_CTL_NIC_OPEN,
	EMU_CTL_PORT_CREATE,
	EMU_CTL_PORT_OPEN,
	EMU_CTL_PORT_CLOSE,
	EMU_CTL_SHARE,
	EMU_CTL_UNSHARE,
	EMU_CTL_SHARE_OPEN,
	EMU_CTL_PORT_LIST,
	EMU_CTL_INTR_OPEN,
	EMU_CTL_INTR_RING,
	EMU_CTL_NIC_LIST,
	EMU_CTL_ORDER,
	EMU_CTL_COLL_OPEN,
	EMU_CTL_DEAD_LIST
};

enum emu_ctl_status {
	EMU_CTL_OK = 0,
	EMU_CTL_VERSION,   /* other release or build */
	EMU_CTL_ACCESS,	   /* not for this user */
	EMU_CTL_BAD,	   /* the request makes no sense */
	EMU_CTL_TAKEN,	   /* that endpoint number is in use */
	EMU_CTL_EXHAUSTED, /* none of that class left */
	EMU_CTL_NO_MEMORY,
	EMU_CTL_ABSENT, /* there is no such thing */
	EMU_CTL_NO_DESCRIPTORS
};

#define EMU_UNSET UINT32_MAX

struct emu_ctl_head {
	uint32_t magic;
	uint16_t version;
	uint16_t code; /* enum emu_ctl_op, or emu_ctl_status in a reply */
};

struct emu_ctl_hello {
	uint32_t abi_version;
	uint32_t layout_hash;
	uint32_t rank; /* of the launcher, or EMU_UNSET */
	uint32_t node; /* wish, or EMU_UNSET */
	uint32_t nodes;
	uint32_t ppn;
	uint32_t membarrier; /* 1: this process can make the others order their memory */
	uint32_t observer;   /* 1: only looks; gets no node and keeps no glexd alive */
	uint64_t probe;	     /* where EMU_WIRE_MAGIC can be read in its memory, to see whether attach works; or 0 */
	uint32_t no_attach;  /* 1: this process may not use attach */
	uint32_t pid;	     /* as it sees itself: another than glexd sees in another PID namespace, mostly */
	uint64_t pid_ns;     /* emu_pid_namespace */
};

struct emu_ctl_hello_reply {
	uint32_t session;
	uint32_t nic_id;
	uint32_t pid; /* of the client, as glexd sees it */
	uint32_t glexd_pid;
	uint32_t elsewhere; /* 1: the client is in another PID namespace than glexd */
};

struct emu_ctl_port {
	uint32_t nic_id; /* PORT_OPEN */
	uint32_t ep_num; /* or EMU_UNSET: any of the type */
	uint32_t type;
	uint32_t key;
	uint32_t dq_capacity;
	uint32_t mpq_capacity;
	uint32_t eq_capacity;
	uint32_t reserved;
};

struct emu_ctl_share {
	uint64_t id;	 /* {generation, slot} */
	uint64_t offset; /* of the object in the file, on a page's bound */
	uint64_t len;
	uint64_t untouched; /* 1: who maps it leaves its pages to who comes to them */
};

struct emu_ctl_list {
	uint32_t position;
	uint32_t nic_id;
	uint32_t ep_num;
	uint32_t type;
	uint32_t session;
	uint32_t pid;
	uint32_t mpq_capacity, mpq_used, mpq_lost;
	uint32_t eq_capacity, eq_used, eq_lost;
	uint32_t dq_capacity, dq_used;
	uint32_t regions; /* registered on the whole NIC */
	uint32_t reserved;
	uint64_t counter[12]; /* struct emu_port_counters, in its order */
	uint32_t intq_capacity, intq_used, intq_lost;
	uint32_t epq_capacity, epq_used, epq_lost;
};

struct emu_ctl_nic {
	uint32_t position;
	uint32_t nic_id;
	uint32_t regions;
	uint32_t modelled;    /* 1: the translation cache is */
	uint64_t counter[13]; /* struct emu_nic_counters, in its order */
	uint32_t kind[4];     /* regions of each enum emu_kind */
};

#define EMU_CTL_DEAD_MAX 10

/* Of an address that has died more than once the last time is enough. */
struct emu_ctl_dead {
	uint64_t next; /* DEAD_LIST: the first number that is wanted */
	uint32_t num;
	uint32_t reserved;
	struct {
		uint64_t number;
		uint64_t addr; /* glex_ep_addr_t.v */
	} of[EMU_CTL_DEAD_MAX];
};

struct emu_ctl_msg {
	struct emu_ctl_head head;
	union {
		struct emu_ctl_hello hello;
		struct emu_ctl_hello_reply welcome;
		struct emu_ctl_port port;
		struct emu_ctl_share share;
		struct emu_ctl_list list;
		struct emu_ctl_nic nic;
		struct emu_ctl_dead dead;
		uint8_t room[176];
	};
};

static_assert(sizeof(struct emu_ctl_head) == 8, "read before anything else is believed");
static_assert(sizeof(struct emu_ctl_hello) == 56, "the same on both sides");
static_assert(sizeof(struct emu_ctl_port) == 32, "the same on both sides");
static_assert(sizeof(struct emu_ctl_list) == 184, "the same on both sides");
static_assert(sizeof(struct emu_ctl_nic) == 136, "the same on both sides");
static_assert(sizeof(struct emu_ctl_dead) == 176, "the same on both sides");
static_assert(sizeof(struct emu_ctl_msg) == 192, "one size for all, so a short read is an error");

#endif /* EMU_WIRE_H */
