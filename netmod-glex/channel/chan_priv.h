/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chan_priv.h - what the files of the channel library share: the layout of its
 * mini-packets and events, and its objects.
 *
 *   glexch --- hash ---> conn ---> tx: items, by reference, FIFO
 *     |                    |
 *     |                    +-----> rx: packets that cannot be delivered yet, by sequence number
 *     |
 *     +-- pool: [ blocks for sending | blocks for receiving ], one registered region
 *     +-- run queue: connections that could send if there were a block or room
 */
#ifndef GLEXCH_CHAN_PRIV_H
#define GLEXCH_CHAN_PRIV_H

#include "chan.h"
#include "copy.h"

#include <glex_ext.h>
#include <string.h>

#define GLEXCH_START	     8u	    /* what a peer may send at once, before it has shown to need more */
#define GLEXCH_START_FOREIGN 1u	    /* the same of an unexpected process */
#define GLEXCH_FOREIGN_MAX   256u   /* so many of those have room in the MPQ at first contact */
#define GLEXCH_LOANS	     128u   /* buffers lent at a time */
#define GLEXCH_PLACES	     8u	    /* of those that peers lend to us, put here by them at a time */
#define GLEXCH_PIECES	     32u    /* GETs of glexch_get, and PUTs of glexch_put, under way at once */
#define GLEXCH_BATCH	     32	    /* MPs, and events, handled in one round */
#define GLEXCH_NESTED_MPS    256u   /* MPs a nested round may leave undiscarded */
#define GLEXCH_TICK_MASK     0x3ffu /* in one of so many rounds: error requests, and a few connections looked after */
#define GLEXCH_EVENT_MASK    0x3fu  /* in one of so many: events that nobody expects */
#define GLEXCH_SILENT	     250u   /* visits of the hand, after which a peer is asked for: some milliseconds */
#define GLEXCH_ER_LINES_MAX  4096u  /* of a ring, and so of records in it */
#define GLEXCH_AHEAD	     (GLEXCH_ER_LINES_MAX + UINT8_MAX) /* packets under way before one: records, and MPs */
#define GLEXCH_ER_ROUNDS     0x7u /* rounds that find something in a ring look at nothing else; but for one in so many */
#define GLEXCH_NONE	     0xffffffffu

/* ---- mini-packets -------------------------------------------------------- */

enum glexch_mp_type {
	GLEXCH_MP_DATA = 1,   /* sequenced: stream bytes */
	GLEXCH_MP_BLOCK = 2,  /* sequenced: stream bytes, and then a block to fetch */
	GLEXCH_MP_HELLO = 3,  /* sequenced, the first of who opens: who I am */
	GLEXCH_MP_CREDIT = 4, /* outside the stream, needs no credit */
	GLEXCH_MP_SHORT = 5,  /* sequenced: a header, to be filled up with zeros */
	GLEXCH_MP_ASK = 6,    /* sequenced: give credits back that you do not need */
	GLEXCH_MP_GIVE = 7,   /* sequenced, the answer: so many are given back */
	GLEXCH_MP_SPLIT = 8,  /* sequenced: a header, to be filled up with zeros, and stream bytes */
	GLEXCH_MP_ER = 9,     /* sequenced: enum glexch_er_word about the exclusive channel */
	GLEXCH_MP_HOLD = 10,  /* sequenced: what you send piles up here, or does no more */
	GLEXCH_MP_LENT = 11,  /* sequenced: as BLOCK, but to be fetched from any memory, when it is its turn: lend.c */
};

enum glexch_mp_flag {
	GLEXCH_MP_TYPE = 0x0f,
	GLEXCH_MP_ANSWER =
		0x20, /* from a connection that its receiver has opened, which chose the stream: opens nothing */
	GLEXCH_MP_SAW = 0x40,  /* the last credit MP has been read */
	GLEXCH_MP_MORE = 0x80, /* the sender has used up its credits */
};

/*
 * A stream is one opening of a connection, in one direction.  Its number tells
 * its packets from those of an earlier one between the same endpoints: they may
 * come late, from a peer that does not know yet, or from a process that is gone.
 */
struct glexch_mp_hdr {
	uint8_t type;	 /* and flags */
	uint8_t credits; /* returned to the receiver of this MP */
	uint16_t seq;	 /* CREDIT: the stream of its receiver that it is for */
	uint32_t tag;	 /* stream << 16 | channel id */
};

static inline uint32_t glexch_tag_chan(uint32_t tag)
{
	return tag & 0xffff;
}

/* 0: not known yet. */
static inline uint32_t glexch_tag_stream(uint32_t tag)
{
	return tag >> 16;
}

struct glexch_block_ref {
	uint64_t handle; /* of the sender's pool */
	uint32_t offset;
	uint32_t len;
	uint32_t index; /* these two come back in the remote event of the GET */
	uint32_t gen;
	uint8_t inl[80]; /* stream bytes before those of the block */
};

struct glexch_hello {
	uint64_t pool; /* a region of the sender */
	uint32_t key;
	uint32_t block_size;
	uint8_t grant;	 /* what the receiver of this may send at once */
	uint8_t counted; /* the sender relied on its full grant */
	uint8_t blob_len;
	uint8_t zero;
	uint8_t blob[GLEXCH_BLOB_MAX];
};

/* What is said about an exclusive channel: er_open.c. */
enum glexch_er_word {
	GLEXCH_ER_OPEN = 1,
	GLEXCH_ER_ACCEPT,
	GLEXCH_ER_REFUSE,
	GLEXCH_ER_CLOSE,
	GLEXCH_ER_CLOSED,
	GLEXCH_ER_DONE,
};

struct glexch_er_mp {
	uint32_t word;
	uint32_t lines; /* OPEN and ACCEPT: of the ring of the sender of this */
	uint64_t handle;
	uint64_t mark; /* from which its marks follow */
};

/* The longest header with what follows it in one MP. */
#define GLEXCH_SPLIT_ROOM (GLEXCH_MP_BODY - 1)

struct glexch_mp {
	struct glexch_mp_hdr hdr;
	union {
		uint8_t bytes[GLEXCH_MP_BODY];
		struct glexch_block_ref block;
		struct glexch_hello hello;
		uint8_t given; /* GIVE; HOLD: 1 or 0 */
		struct glexch_er_mp er;
		struct {
			uint8_t header; /* bytes of it */
			uint8_t bytes[GLEXCH_SPLIT_ROOM];
		} split;
	} u;
};

#define GLEXCH_BLOCK_INLINE (sizeof(((struct glexch_block_ref *)0)->inl))
#define GLEXCH_BLOCK_FIXED  offsetof(struct glexch_block_ref, inl)

_Static_assert(sizeof(struct glexch_mp_hdr) == 8, "the header of every mini-packet");
_Static_assert(sizeof(struct glexch_mp) == 112, "a mini-packet carries 112 bytes");
_Static_assert(sizeof(struct glexch_block_ref) == GLEXCH_MP_BODY, "no byte of the body is lost");
_Static_assert(offsetof(struct glexch_hello, blob) == 20, "wire layout");

/*
 * In one store.  The packet is copied next, by words, and a load of a word that
 * several stores have written waits until they have left for the cache, behind all
 * that was stored before.
 */
static inline void glexch_store_header(struct glexch_mp *mp, struct glexch_mp_hdr hdr)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const uint64_t word = hdr.type | (uint64_t)hdr.credits << 8 | (uint64_t)hdr.seq << 16 | (uint64_t)hdr.tag << 32;

	memcpy(&mp->hdr, &word, sizeof(word));
#else
	mp->hdr = hdr;
#endif
}

/* ---- events -------------------------------------------------------------- */

/* cookie_1 = index << 8 | type, never 0; cookie_0 = generation of what index names: a stale event changes nothing. */
enum glexch_event_type {
	GLEXCH_EV_FETCHED = 1, /* local: a receive block is filled */
	GLEXCH_EV_FREED = 2,   /* remote: a send block has been read */
	GLEXCH_EV_PIECE = 3,   /* local: a piece of a glexch_get is there */
	/* lend.c: */
	GLEXCH_EV_RETURNED = 4, /* remote: all of a loan has been fetched */
	GLEXCH_EV_RECALL = 5,	/* remote: it cannot be; cookie_0 also numbers who says so */
	GLEXCH_EV_ANSWER = 6,	/* remote: cookie_0 is a handle, cookie_1 has offset, number, type */
	GLEXCH_EV_PLACE = 7,	/* remote: where to put a loan: a handle; offset, gen, number, index */
	GLEXCH_EV_PUT = 8,	/* remote: it is there; or cookie_0 says that it cannot be */
};

/* ---- objects ------------------------------------------------------------- */

/* A packet that waits: for its predecessors, for a block, for its GET, or for its connection to be free. */
enum glexch_rx_state {
	GLEXCH_RX_READY,
	GLEXCH_RX_WANTS_BLOCK,
	GLEXCH_RX_FETCHING,
};

struct glexch_rx {
	struct glexch_rx *next;	  /* by sequence number; or the next free one */
	struct glexch_rx *wnext;  /* waiting for a receive block */
	struct glexch_conn *conn; /* NULL: destroyed meanwhile */
	enum glexch_rx_state state;
	uint32_t block;
	uint32_t body_len;
	struct glexch_mp mp; /* a copy: the slot in the MPQ is free at once */
};

struct glexch_block {
	uint32_t gen;		  /* odd while in use */
	struct glexch_conn *conn; /* send block: who it went to; NULL when destroyed */
	struct glexch_rx *rx;	  /* receive block: what it is for */
};

struct glexch_blocks {
	struct glexch_block *tab;
	uint32_t *stack; /* free ones, the warmest on top */
	uint32_t free;
	uint32_t count;
	uint32_t offset; /* of the first in the pool */
};

/* Why a connection cannot take the short way out; 0 when it can. */
enum glexch_slow {
	GLEXCH_SLOW_HELLO = 1,	/* has not introduced itself */
	GLEXCH_SLOW_QUEUE = 2,	/* something is queued */
	GLEXCH_SLOW_ACTIVE = 4, /* the sender is inside this connection already */
	GLEXCH_SLOW_FAILED = 8,
	GLEXCH_SLOW_DEAD = 16,	   /* destroyed; freed when the last callback has returned */
	GLEXCH_SLOW_STRANGER = 32, /* opened by the peer, whose introduction is still on its way */
};

/* Packets of the connection itself that wait for a credit; sent in this order. */
enum glexch_say {
	GLEXCH_SAY_GIVE = 1,
	GLEXCH_SAY_DONE = 2,
	GLEXCH_SAY_REFUSE = 4,
	GLEXCH_SAY_CLOSED = 8,
	GLEXCH_SAY_ACCEPT = 16,
	GLEXCH_SAY_OPEN = 32,
	GLEXCH_SAY_CLOSE = 64,
	GLEXCH_SAY_HOLD = 128,
};

enum glexch_step {
	GLEXCH_STEP_OK,
	GLEXCH_STEP_NO_CREDIT, /* or room in the ring: its coming puts the connection on the run queue */
	GLEXCH_STEP_NO_ROOM,
	GLEXCH_STEP_FAILED,
};

enum glexch_place {
	GLEXCH_NOWHERE,
	GLEXCH_ON_RUNQ,
};

struct glexch_conn {
	struct glexch *ch;
	void *user;
	uint64_t peer; /* with the channel id in rx_tag: how packets find it */
	uint32_t rx_tag;
	uint32_t tx_tag;
	uint16_t rx_seq;      /* next to be delivered */
	uint16_t tx_seq;      /* next to be sent */
	uint16_t credits;     /* MPs that may be sent */
	uint16_t owed;	      /* credits to be returned */
	uint16_t grant;	      /* all that the peer can have */
	uint16_t dead_stream; /* of the connection to this peer before this one: its packets are dropped */
	uint8_t slow;	      /* enum glexch_slow */
	uint8_t place;	      /* enum glexch_place */
	uint8_t delivering;
	uint8_t tx_start;      /* credits that are not given back */
	uint8_t to_say;	       /* enum glexch_say */
	uint8_t silent;	       /* visits of the hand since it was heard of, up to GLEXCH_SILENT */
	uint16_t er_mark;      /* tx_seq when its traffic was looked at last */
	uint16_t bound : 1;    /* user is known */
	uint16_t draining : 1; /* no credits are returned any more */
	uint16_t parting : 1;  /* what is sent now may be the last the peer waits for: glexch_conn_part */
	uint16_t parted : 1;   /* and is the last: nothing of the connection's own follows (credit.c, I6) */
	uint16_t owing : 1;    /* on the list of those that must get a credit MP */
	uint16_t heard : 1;    /* the peer has this connection too */
	uint16_t counted : 1;  /* the peer is one of those planned for: it starts with start_grant */
	uint16_t accepted : 1; /* opened by the peer alone */
	uint16_t hot : 1;      /* heard of since the hand of credit.c came by */
	uint16_t asked : 1;    /* for credits; the answer is to come */
	uint16_t unread : 1;   /* a credit MP of ours may not have been read */
	uint16_t saw : 1;      /* to be told: one of the peer's has been read */
	uint16_t hold : 1;     /* what glexch_conn_hold was told last */
	uint16_t paused : 1;   /* what the peer lends is being fetched: the stream stands still */
	uint16_t paid : 1;     /* a foreign one: has its slots from mpq_pool, not from the room for strangers */
	uint32_t key;
	uint32_t tx_block; /* bytes of the longest block to send */
	uint32_t born;	   /* of the peer, at the latest: see struct glexch_peer */
	uint64_t pool;	   /* a region of the peer, to see whether it is there */
	struct glexch_rx *rx;
	struct glexch_item *tx_head;
	struct glexch_item *tx_tail;
	struct glexch_conn *hash_next;
	struct glexch_conn *run_next;
	struct glexch_conn *owing_next;
	struct glexch_er *er; /* NULL: no exclusive channel */
};

_Static_assert(sizeof(struct glexch_conn) <= 136, "what a connection costs");

/* What is remembered of a connection destroyed while its peer may still send. */
struct glexch_grave {
	struct glexch_grave *next;
	uint64_t peer;
	uint32_t stream;
};

/* ---- exclusive channels --------------------------------------------------- */

#define GLEXCH_LINE	 64u
#define GLEXCH_ER_GATHER 512u /* up to so many bytes are handed over together with their header */
#define GLEXCH_ER_IMM	 96u  /* bytes of an immediate PUT on any endpoint */
#define GLEXCH_ER_FRAME	 16u  /* the header of a record and its mark */
#define GLEXCH_ER_INLINE (GLEXCH_ER_IMM - GLEXCH_ER_FRAME)     /* stream bytes of it */
#define GLEXCH_ER_RECORD (GLEXCH_ANSWER_MAX + GLEXCH_ER_FRAME) /* bytes of a PUT of any memory */
#define GLEXCH_ER_AHEAD	 18u				       /* lines asked for at a time: all of a kilobyte */
#define GLEXCH_ER_NEXT	 8u				       /* the same of one that comes after */
#define GLEXCH_ER_TAIL	 67u				       /* lines of a record at most, and the word's */

#define GLEXCH_ER_IDLE_LONG 8192u /* visits of the hand without a record, after which it is closed */

enum glexch_er_state {
	GLEXCH_ER_OPENING,
	GLEXCH_ER_ACCEPTING, /* until ACCEPT is sent */
	GLEXCH_ER_UP,
	GLEXCH_ER_CLOSING, /* CLOSE is said: nothing more is sent here */
	GLEXCH_ER_LEAVING, /* CLOSED is said, or the peer said CLOSE too: waits for DONE */
	GLEXCH_ER_RETIRED, /* the connection has been destroyed */
};

/* One way from the first line of a ring of the peer on: er_room.h. */
struct glexch_er_lap {
	uint32_t sent; /* tx_sent when it began */
	uint32_t from; /* lines that it left out, since they had not been read */
	uint32_t to;   /* 0: none */
};

/* One end of a pair of rings: er.c. */
struct glexch_er {
	struct glexch_er *next;
	struct glexch_conn *conn;
	enum glexch_er_state state;
	uint32_t lines;	  /* of a ring here, tail and all; those of the peer are as long */
	uint32_t starts;  /* where records may begin: glexch_er_starts */
	uint32_t inl_max; /* stream bytes that are inline in a record here */
	uint8_t *rx_ring;
	uint8_t *tx_copy; /* of the ring of the peer, as far as it has been written; NULL: not needed */
	uint64_t rx_mark; /* that the next record here must have, and the number of its line added */
	uint64_t tx_mark;
	uint32_t rx_line; /* where it will be, unless its sender goes back to the start */
	uint32_t rx_skip; /* or on to where the lap before ended; 0: nowhere */
	uint32_t rx_owed; /* lines read and not returned */
	uint32_t rx_read; /* lines returned, since the ring is there */
	uint32_t tx_line;
	uint32_t tx_sent;  /* lines sent, since the ring is there */
	uint32_t tx_read;  /* of these, those the peer has read, as far as it is known */
	uint32_t tx_heard; /* what the peer had read when it sent its last record, or less */
	uint32_t tx_lines;
	uint32_t tx_skip; /* where the lap before ended: what is behind is free; 0: it went to the end */
	struct glexch_er_lap lap;
	struct glexch_er_lap last; /* the one before, whose lines are being written again */
	uint32_t laps;
	struct glex_put_way *way; /* to the ring of the peer; NULL: there was no memory for it */
	const uint8_t *tx_at;	  /* the ring of the peer: for prefetches only, it may be gone; or NULL */
	uint16_t rx_seq; /* of the connection, when something was sent last: who has heard more since answers */
	uint32_t used;	 /* records since the hand came by */
	uint32_t idle;	 /* visits of it without any */
	int waits;	 /* what is queued, for lines: their coming puts the connection on the run queue */
	int begun;	 /* bytes of a record have been PUT whose header found no room: it must be sent next */
	glex_mem_handle_t tx_ring;
	glex_mem_handle_t mh; /* of both rings here */
};

struct glexch_connq {
	struct glexch_conn *head;
	struct glexch_conn *tail;
};

struct glexch_piece {
	struct glexch_get *get; /* NULL: free */
	uint64_t handle;	/* what is read */
	uint32_t offset;
	uint32_t gen;
	uint32_t block; /* it comes into this block first; GLEXCH_NONE: straight into the buffer */
	uint32_t len;
	uint64_t at; /* place in the buffer */
};

struct glexch_borrowed;

/* A buffer that a peer is to fetch: lend.c. */
struct glexch_loan {
	uint32_t gen;		  /* odd while in use */
	uint32_t next;		  /* free one */
	struct glexch_conn *conn; /* NULL: free */
	struct glexch_item *item;
	void *buf;
	uint64_t len;
	struct glexch_region region;
	void *copy; /* which peers can reach, if they cannot reach buf */
	struct glexch_region copy_region;
	uint32_t borrower; /* what the peer calls it */
	uint8_t near;	   /* peers map it */
	uint8_t offered;   /* it is put, if the peer asks for that */
	uint8_t putting;   /* it is being put, or has been */
	uint8_t put_fails; /* it cannot be: to be said */
	uint8_t told;	   /* the peer knows of it */
	uint8_t recalled;  /* and cannot reach it: to be answered */
	uint8_t copied;	   /* copy is exposed */
};

struct glexch {
	glex_ep_handle_t ep;
	const struct glexch_ops *ops;
	struct glexch_conn *last; /* the one that spoke last */
	int depth;		  /* rounds inside rounds */
	uint32_t undiscarded;	  /* MPs probed and not discarded */
	uint32_t tick;
	struct glexch_connq runq;
	struct glexch_conn *owing;
	struct glexch_get *gets; /* not finished */
	uint32_t get_blocks;	 /* receive blocks that pieces of them have */
	int hungry;		 /* one of them waits for a block, and none has any: block.c, I3 */
	struct glexch_borrowed *borrowed;
	struct glexch_conn *borrower;	   /* its stream has come to a loan just now */
	struct glexch_borrowed *lend_asks; /* waits for an answer */
	uint32_t lend_todo;		   /* events to be posted */
	uint32_t placing;		   /* loans of peers that they put here */
	uint32_t loans_out;
	uint64_t lent;	    /* bytes of them */
	uint32_t loan_free; /* the first */
	uint32_t lend_id;
	int lend_never;		 /* peers cannot reach private memory */
	uint32_t unbound;	 /* connections that wait for hello to accept them */
	struct glexch_rx *wants; /* FIFO of packets that wait for a receive block */
	struct glexch_rx **wants_tail;
	struct glexch_blocks tx;
	struct glexch_blocks rx;
	uint8_t *pool;
	glex_mem_handle_t pool_mh;
	uint32_t block_size;
	uint32_t max_rdma;
	uint32_t key;
	uint32_t full_grant;
	uint32_t start_grant;
	uint32_t mpq_pool;     /* slots of the MPQ promised to nobody */
	uint32_t strangers;    /* of GLEXCH_FOREIGN_MAX, those that are free */
	uint32_t header;       /* what a header takes in the stream */
	struct glexch_er *ers; /* all that have rings */
	uint32_t er_count;
	uint32_t er_changes; /* of that list */
	uint32_t er_max;
	uint32_t er_lines;	/* of a ring */
	uint32_t er_lines_copy; /* the same, if its sender needs a copy */
	int er_injects;		/* bytes of any memory can be PUT there; -1: not tried yet */
	int fetches;		/* and GET into any */
	uint32_t er_inline;	/* stream bytes beside the header of a record */
	uint32_t er_answer;	/* the same in an answer */
	uint32_t er_after;	/* packets, after which a peer gets one */
	uint32_t er_wants;	/* somebody found no room: those unused are closed */
	uint32_t thirst;	/* rounds of looking for credits that nobody needs */
	int closing;
	int lost;	 /* the device is: nothing goes any more */
	const char *why; /* the last failure */
	uint32_t hand;	 /* the bucket of the hash that is looked after next */
	uint32_t pulse;	 /* the bucket whose peers are looked for next */
	uint32_t next_chan;
	uint32_t next_stream;
	uint32_t exposed;     /* regions exposed now */
	uint32_t exposed_max; /* without being asked for; twice as many in all */
	uint32_t windows;     /* regions that peers reach unasked */
	uint64_t *locks;      /* of those; NULL: none yet, or no memory for them */
	uint64_t locks_used;  /* a bit each */
	glex_mem_handle_t locks_mh;
	uint64_t *held; /* the lock of a peer's, between glexch_window_hold and _release */
	struct glexch_conn **hash;
	uint32_t hash_mask;
	uint32_t conns;
	struct glexch_conn *dead;
	uint64_t dead_next; /* number of the next to die that has not been looked at */
	uint32_t born;
	struct glexch_grave **graves; /* by hash of the peer; as many as hash had when the first was needed */
	uint32_t graves_mask;
	struct glexch_rx *rx_free;
	struct glexch_piece pieces[GLEXCH_PIECES];
	struct glexch_loan loans[GLEXCH_LOANS];
	glex_ep_addr_t addr;
	glex_device_handle_t dev;
	glex_rcache_handle_t rc;
	struct glexch_stats stats;
};

/* So many bytes go this way. */
static inline void glexch_count(struct glexch *ch, enum glexch_way way, uint64_t len)
{
	ch->stats.sent[way][glexch_size_class(len)]++;
	ch->stats.bytes[way] += len;
}

/* ---- chan.c -------------------------------------------------------------- */

uint64_t glexch_some_number(const void *place);
uint32_t glexch_deaths(struct glexch *ch);

/* ---- conn.c -------------------------------------------------------------- */

struct glexch_conn *glexch_conn_source(struct glexch *ch, uint64_t peer, const struct glexch_mp_hdr *hdr);
int glexch_conn_greet(struct glexch_conn *conn, const struct glexch_hello *hello);
int glexch_conn_at(const struct glexch_conn *conn, glex_ep_addr_t addr);
void glexch_conn_fail_peer(struct glexch *ch, glex_ep_addr_t addr, int gone, const char *why);
void glexch_conn_fail_dead(struct glexch *ch, glex_ep_addr_t addr, uint32_t number);
void glexch_conn_fail_all(struct glexch *ch, const char *why);
void glexch_conn_reap(struct glexch *ch);
void glexch_conn_free_graves(struct glexch *ch);
void glexch_conn_tend(struct glexch *ch);

/* ---- credit.c ------------------------------------------------------------ */

uint32_t glexch_credit_plan(struct glexch *ch, const struct glexch_params *params, const struct glex_device_attr *attr);
int glexch_credit_open(struct glexch_conn *conn);
void glexch_credit_close(struct glexch_conn *conn);
void glexch_credit_owe(struct glexch_conn *conn);
void glexch_credit_due(struct glexch_conn *conn);
void glexch_credit_more(struct glexch_conn *conn);
int glexch_credit_given(struct glexch_conn *conn, uint32_t n);
uint8_t glexch_credit_spare(const struct glexch_conn *conn);
void glexch_credit_flush(struct glexch *ch);
void glexch_credit_cool(struct glexch_conn *conn);

/* Takes the credits an MP can carry home. */
static inline uint8_t glexch_credit_take(struct glexch_conn *conn)
{
	uint8_t n = (uint8_t)conn->owed; /* owed <= grant <= 255 */

	conn->owed = 0;
	return n;
}

/* ---- seq.c --------------------------------------------------------------- */

int glexch_seq_insert(struct glexch_conn *conn, const struct glexch_mp *mp, uint32_t body_len);
void glexch_seq_deliver(struct glexch_conn *conn);
void glexch_seq_drop(struct glexch_conn *conn);
void glexch_seq_retry(struct glexch *ch);
void glexch_seq_release(struct glexch *ch, struct glexch_rx *rx);
void glexch_seq_free_all(struct glexch *ch);

/* ---- block.c ------------------------------------------------------------- */

glex_ret_t glexch_blocks_open(struct glexch *ch, uint32_t blocks, uint32_t block_size);
void glexch_blocks_close(struct glexch *ch);
uint32_t glexch_block_take(struct glexch_blocks *set);
void glexch_block_put(struct glexch_blocks *set, uint32_t index);
int glexch_block_place(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t *body_len);
void glexch_block_want(struct glexch *ch, struct glexch_rx *rx);
void glexch_block_feed(struct glexch *ch);
void glexch_block_fetched(struct glexch *ch, uint32_t index, uint32_t gen);
void glexch_block_freed(struct glexch *ch, uint32_t index, uint32_t gen);
void glexch_block_forget(struct glexch_conn *conn, int reclaim);

static inline uint32_t glexch_block_offset(const struct glexch *ch, const struct glexch_blocks *set, uint32_t index)
{
	return set->offset + index * ch->block_size;
}

static inline uint8_t *glexch_block_mem(const struct glexch *ch, const struct glexch_blocks *set, uint32_t index)
{
	return ch->pool + glexch_block_offset(ch, set, index);
}

/* ---- er.c, er_open.c ------------------------------------------------------ */

/* Behind where records start: as long as the longest of them, and a line for the word. */
static inline uint32_t glexch_er_tail(uint32_t lines)
{
	return lines / 4 < GLEXCH_ER_TAIL ? lines / 4 : GLEXCH_ER_TAIL;
}

static inline uint32_t glexch_er_starts(uint32_t lines)
{
	return lines - glexch_er_tail(lines);
}

/* Stream bytes of a record that is one PUT, at most `wish`: it fits into the tail of a ring, on whichever line it begins. */
static inline uint32_t glexch_er_whole(uint32_t lines, uint32_t wish)
{
	uint32_t most = (glexch_er_tail(lines) - 1) * GLEXCH_LINE - GLEXCH_ER_FRAME;

	return most < wish ? most : wish;
}

/* As far as is known, half of the ring of the peer is written and not read. */
static inline int glexch_er_is_half_full(const struct glexch_er *er)
{
	return er->tx_sent - er->tx_read > er->starts / 2;
}

static inline int glexch_er_usable(const struct glexch_conn *conn)
{
	return conn->er && conn->er->state == GLEXCH_ER_UP;
}

/* What the peer says it has read of its ring: lines, and above 32 bits the number in the stream of what it sends next. */
static inline uint64_t glexch_er_word(const struct glexch_er *er)
{
	const void *at = er->rx_ring + (er->lines - 1) * GLEXCH_LINE;

	/* relaxed: stronger, pairs with the NIC: those lines are written after they have been read */
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

/* How many lines that is more than is known here. */
static inline int32_t glexch_er_news(const struct glexch_er *er, uint64_t word)
{
	return (int32_t)((uint32_t)word - er->tx_read);
}

static inline int glexch_er_may_begin(const struct glexch_er *er, uint32_t line)
{
	const void *at = er->rx_ring + line * GLEXCH_LINE;

	/* relaxed: only a guess */
	return (uint16_t)__atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED) == er->conn->rx_seq;
}

/* What may be its next record has come, or lines that are waited for: glexch_er_poll finds out. */
static inline int glexch_er_may_have(const struct glexch_er *er)
{
	return er->conn &&
	       (glexch_er_may_begin(er, er->rx_line) || glexch_er_may_begin(er, 0) ||
		glexch_er_may_begin(er, er->rx_skip) || (er->waits && glexch_er_news(er, glexch_er_word(er)) > 0));
}

/* The first ring of which that is so; NULL: none. */
static inline struct glexch_er *glexch_er_next(const struct glexch *ch)
{
	struct glexch_er *er;

	for (er = ch->ers; er && !glexch_er_may_have(er); er = er->next)
		;
	return er;
}

/* To be written soon.  As emu_want_line, which this library may not know. */
static inline void glexch_prefetch_own(const void *line)
{
#if defined(__x86_64__)
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const uint8_t *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* The line that is written next: the peer polls it, and has to be asked for it. */
static inline void glexch_er_want(const struct glexch_er *er)
{
	if (er->tx_at)
		glexch_prefetch_own(er->tx_at + er->tx_line * GLEXCH_LINE);
}

/* And those behind it of n lines: else they come one after the other. */
static inline void glexch_er_want_more(const struct glexch_er *er, uint32_t n)
{
	uint32_t i;

	for (i = 1; er->tx_at && i < n && i < GLEXCH_ER_AHEAD; i++)
		glexch_prefetch_own(er->tx_at + (er->tx_line + i) * GLEXCH_LINE);
}

int glexch_er_try_short(struct glexch_conn *conn, const void *hdr, size_t hdr_len, size_t room, const void *data,
			size_t len);
int glexch_er_try_brief(struct glexch_conn *conn, uint64_t *rec, uint32_t words);
enum glexch_step glexch_er_step(struct glexch_conn *conn, struct glexch_cursor *cur);
int glexch_er_poll(struct glexch *ch, struct glexch_er *from);
int glexch_er_lines_due(const struct glexch_conn *conn);
glex_ret_t glexch_er_return(struct glexch_conn *conn);

void glexch_er_plan(struct glexch *ch, const struct glexch_params *params);
void glexch_er_consider(struct glexch_conn *conn);
void glexch_er_hear(struct glexch_conn *conn, const struct glexch_er_mp *er);
int glexch_er_describe(struct glexch_conn *conn, enum glexch_say say, struct glexch_er_mp *er);
void glexch_er_said(struct glexch_conn *conn, enum glexch_say say);
void glexch_er_cool(struct glexch_conn *conn);
void glexch_er_leave(struct glexch_conn *conn, int failed);
void glexch_er_free_all(struct glexch *ch);

/* ---- sr.c ---------------------------------------------------------------- */

glex_ret_t glexch_post_mp(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t body_len);
int glexch_sr_control(struct glexch_conn *conn, enum glexch_mp_type type, uint8_t value);
void glexch_sr_wake(struct glexch_conn *conn);
void glexch_sr_probe(struct glexch_conn *conn);
void glexch_say(struct glexch_conn *conn, enum glexch_say what);
void glexch_data_short(struct glexch_conn *conn, const void *header, size_t header_len, const void *bytes, size_t len);
void glexch_cursor_copy(struct glexch_cursor *cur, uint8_t *dst, size_t n);

/* Nothing has been taken yet of what begins with a header. */
static inline int glexch_cursor_at_header(const struct glexch *ch, const struct glexch_cursor *cur)
{
	return ch->header && cur->off == 0 && cur->iov->iov_len == ch->header;
}

void glexch_queue_now(struct glexch_conn *conn, struct glexch_item *item);
void glexch_sr_hand_over(struct glexch_conn *conn, struct glexch_mp *mp, uint32_t body_len);
void glexch_sr_take(struct glexch_conn *conn, uint8_t credits, int saw);
void glexch_sr_receive(struct glexch *ch, uint64_t peer, struct glexch_mp *mp, uint32_t len);
void glexch_sr_run(struct glexch *ch);
void glexch_sr_kick(struct glexch_conn *conn);
void glexch_sr_drop(struct glexch_conn *conn, int tell);

/* ---- rndv.c -------------------------------------------------------------- */

uint32_t glexch_region_share(uint32_t units, uint32_t sharers);
int glexch_expose_near(struct glexch *ch, void *buf, uint64_t len, struct glexch_region *region);
void glexch_rndv_run(struct glexch *ch);
int glexch_rndv_no_access(struct glexch *ch, glex_ep_addr_t addr, const struct glex_err_req *err);
glex_ret_t glexch_rndv_open(struct glexch *ch);
void glexch_rndv_close(struct glexch *ch);
void glexch_rndv_arrived(struct glexch *ch, uint32_t index, uint32_t gen);
void glexch_rndv_drop(struct glexch_conn *conn, int tell);
struct glexch_get *glexch_get_and_tell(struct glexch_conn *conn, void *buf, uint64_t len,
				       const struct glexch_region *regions, uint64_t from, const glex_event_t *tell,
				       glexch_get_fn done, void *arg);
struct glexch_get *glexch_put_and_tell(struct glexch_conn *conn, void *buf, uint64_t len,
				       const struct glexch_region *region, const glex_event_t *tell, glexch_get_fn done,
				       void *arg);

/* ---- lend.c -------------------------------------------------------------- */

void glexch_lend_open(struct glexch *ch);
void glexch_lend_describe(const struct glexch *ch, const struct glexch_item *item, struct glexch_block_ref *ref);
void glexch_lend_told(struct glexch *ch, const struct glexch_item *item);
int glexch_lend_has(const struct glexch_conn *conn);
void glexch_lend_begin(struct glexch_conn *conn, struct glexch_block_ref *ref, uint32_t inl);
void glexch_lend_returned(struct glexch *ch, uint32_t index, uint32_t gen);
void glexch_lend_recalled(struct glexch *ch, uint32_t index, uint64_t cookie_0);
void glexch_lend_answered(struct glexch *ch, uint64_t handle, uint64_t cookie_1);
void glexch_lend_place(struct glexch *ch, uint64_t handle, uint64_t cookie_1);
void glexch_lend_was_put(struct glexch *ch, uint64_t cookie_0, uint64_t cookie_1);
int glexch_poll_errors(struct glexch *ch, uint64_t window);
int glexch_lend_no_access(struct glexch *ch, glex_ep_addr_t addr, const struct glex_err_req *err);
void glexch_lend_run(struct glexch *ch);
void glexch_lend_drop(struct glexch_conn *conn, int tell);

#endif /* GLEXCH_CHAN_PRIV_H */
