/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chan.h - ordered, flow-controlled byte streams between processes over GLEX.
 *
 * A channel is one endpoint with what belongs to it: a mini-packet queue, an
 * event queue and a pool of registered blocks, all shared by every peer.  A
 * connection is one bidirectional stream to one peer; it costs a small
 * structure and nothing in the network, and comes into being at its first use,
 * on either side.
 *
 *   sender                                     receiver
 *   up to 104 B   --- MP with the data ------------------>  on_data
 *   little, much  --- PUT into a ring of the receiver --->  on_data, from the ring: er.c
 *                     that this sender alone has
 *   more          --- MP naming a block ----------------->  takes a block of its own,
 *                 <-- RDMA GET of the block --------------  on_data when it has arrived
 *   any buffer    expose, tell the peer      ------------>  glexch_get into its place
 *   long, lent    --- MP naming a buffer ---------------->  its user says where it goes: lend.c
 *                 <-- RDMA GET of the buffer -------------
 *
 * What holds:
 *  - Bytes arrive in the order they were accepted, once, whatever order the
 *    network delivers MPs and GETs in.
 *  - A peer never has more MPs under way than it was granted, so the MPQ cannot
 *    overflow (credit.c).
 *  - Nothing is buffered without bound: what cannot be sent is queued by
 *    reference, and its memory must stay until its done callback.
 *  - No call waits.  All work happens inside the calls below.
 *
 * Threads: a channel and its connections belong to one thread at a time.
 * The library knows nothing of MPI.
 */
#ifndef GLEXCH_CHAN_H
#define GLEXCH_CHAN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <glex.h>

#define GLEXCH_MP_BODY	  104  /* stream bytes in one MP */
#define GLEXCH_SHORT_MAX  1008 /* header and data that may travel as one PUT, gathered: longer ones as two */
#define GLEXCH_ANSWER_MAX 1072 /* the same of an answer, for which somebody waits */
#define GLEXCH_BLOB_MAX	  80   /* bytes of identification in the first MP */
#define GLEXCH_CARD_MAX	  64   /* characters of a card, with the final 0 */
#define GLEXCH_CHAN_MAIN  0u   /* the channel id of the one lasting connection between two endpoints */

struct glexch;
struct glexch_conn;
struct glexch_item;
struct glexch_get;

/*
 * Callbacks.  They come from inside glexch_progress, and fail and done also from
 * the calls that notice the failure.  They may send, destroy connections and
 * call glexch_progress again, but must not close the channel.
 */
struct glexch_ops {
	/* The next bytes of the stream; buf is good until the return. */
	void (*data)(struct glexch_conn *conn, void *buf, size_t len);
	/*
	 * A header, of which no more than hdr_len bytes have come (zeros were behind them), at a multiple
	 * of 8, and the next len bytes of the stream: both lie where they arrived and are good until the
	 * return.  0: nothing has happened, data shall have all of it as it would be in the stream.  May be NULL.
	 */
	int (*packet)(struct glexch_conn *conn, void *hdr, size_t hdr_len, void *bytes, size_t len);
	/*
	 * Where the next len bytes of the stream will lie, if that is known already and is one
	 * piece; else NULL.  placed follows when they are there: instead of data.  May be NULL.
	 */
	void *(*place)(struct glexch_conn *conn, size_t len);
	void (*placed)(struct glexch_conn *conn, size_t len);
	/* Writes the identification of this process for the first MP of conn; returns its length. */
	size_t (*identify)(struct glexch_conn *conn, void *blob);
	/* A peer opened conn.  Returns the user pointer, or NULL: cannot be placed yet, ask again. */
	void *(*hello)(struct glexch_conn *conn, const void *blob, size_t len);
	/* The peer is lost.  Its items and gets have been told.  why is a static text. */
	void (*fail)(struct glexch_conn *conn, const char *why);
	/* After glexch_conn_drain: all that was queued has been handed to the network. */
	void (*drained)(struct glexch_conn *conn);
	/* The peer has called glexch_conn_hold.  May be NULL. */
	void (*held)(struct glexch_conn *conn, int on);
	/*
	 * A process of this network has died, whether there is a connection to it or not; those to
	 * it that are known to be have failed.  It is the one whose card says addr, if number is
	 * not before the card's born: an earlier process had the same address else.  May be NULL.
	 */
	void (*died)(struct glexch *ch, glex_ep_addr_t addr, uint32_t number);
	/*
	 * What comes next in the stream, left bytes, the peer lends: where are the first of them to be
	 * fetched to, and how many?  0: nowhere, for want of memory; the connection fails then.  All
	 * that was given to data is where it belongs.  NULL: this process does not borrow.
	 */
	uint64_t (*land)(struct glexch_conn *conn, uint64_t left, void **buf_p);
	/* They are there; put: the peer has put them, else we fetched them; once for each land.  n 0: they are not, and buf is needed no more. */
	void (*landed)(struct glexch_conn *conn, void *buf, uint64_t n, int put);
};

#define GLEXCH_DIED "its process ended without closing its endpoint" /* why of fail, for who has died */

/* Which channels are used. */
enum glexch_mode {
	GLEXCH_MODE_AUTO, /* an exclusive one for the peers that much is sent to, if there is room, the shared one else */
	GLEXCH_MODE_SR,	  /* the shared one */
	GLEXCH_MODE_ER,	  /* an exclusive one for every peer, as long as there is room */
};

struct glexch_params {
	const struct glexch_ops *ops;
	uint32_t key;	     /* of the endpoint */
	uint32_t peers;	     /* expected peers; more can come, and then start with a smaller grant */
	uint32_t credits;    /* MPs a peer may have under way at most, 1 to 255 */
	uint32_t blocks;     /* for sending and receiving together, at least 4 */
	uint32_t block_size; /* bytes, a multiple of 64 */
	uint32_t sharers;    /* processes that share this one's memory table */
	uint32_t
		header; /* stream bytes that a header of glexch_try_short takes, at most GLEXCH_MP_BODY; as the peers' */
	enum glexch_mode mode;
	uint32_t er_max; /* peers that can have an exclusive channel at a time */
	uint32_t
		er_bytes; /* of a ring, with a copy of the peer's if that is needed, at least 4096; 0: of its own choice, 64 KiB at most */

	/* about the endpoint */
	enum glex_ep_type ep_type; /* another, where none of it is free */
	uint32_t mpq_slots;	   /* room in the MPQ, if that is more than needed */
	int hc_mpq;		   /* high capacity, even if it is not needed */
	int hc_eq;
};

/* How to reach a process: what its card says. */
struct glexch_peer {
	glex_ep_addr_t addr;
	uint32_t key;
	uint32_t grant;	     /* what a process counted in params.peers may send at once */
	uint32_t block_size; /* the longest block it takes */
	uint64_t pool;	     /* a region of it */
	uint32_t born;	     /* how many had died on this network when it opened */
};

/* ---- channel ------------------------------------------------------------- */

glex_ret_t glexch_open(const struct glexch_params *params, struct glexch **ch_p);

/* Destroys the remaining connections without telling anybody, then the endpoint. */
void glexch_close(struct glexch *ch);

/*
 * One round of bounded work.  Returns how much was done; 0: nothing was there;
 * -1: the network is lost (glexd has ended), and so are all peers: they have been
 * told to fail, and nothing will ever come.
 */
int glexch_progress(struct glexch *ch);

/* The same for who has nothing else to do: looks so many times more, if nothing is there, before it returns. */
int glexch_linger(struct glexch *ch, uint32_t looks);

/* The peer may be on the other half of this core: it goes on the faster the less this one does. */
static inline void glexch_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* Processes of the network outnumber the processors they may run on, just now: who waits has to give way. */
int glexch_crowded(const struct glexch *ch);

/* Nothing is queued, no block is with a peer, no GET is under way. */
int glexch_quiet(const struct glexch *ch);

/* Whether who has died with this number can be one that was born then: numbers go round. */
static inline int glexch_outlived(uint32_t born, uint32_t number)
{
	return (int32_t)(number - born) >= 0;
}

/* The text for a business card, and back.  GLEX_INVALID_PARAM: no card. */
void glexch_card_format(const struct glexch *ch, char card[GLEXCH_CARD_MAX]);
glex_ret_t glexch_card_parse(const char *card, struct glexch_peer *peer);

/* ---- connections --------------------------------------------------------- */

/*
 * Opens, or finds, the connection to a peer.  chan is GLEXCH_CHAN_MAIN or what
 * glexch_new_chan gave.  counted: this process is one of those the peer gave
 * its full grant (params.peers).  Returns NULL without memory.
 */
struct glexch_conn *glexch_conn_open(struct glexch *ch, const struct glexch_peer *peer, uint32_t chan, int counted,
				     void *user);
uint32_t glexch_new_chan(struct glexch *ch);

/* Forgets it: queued items are dropped without a callback, later packets are ignored. */
void glexch_conn_destroy(struct glexch_conn *conn);

/* Introduces this process now, not with the first bytes sent. */
void glexch_conn_announce(struct glexch_conn *conn);

/* Gives the peer up: its items and gets end as failed, then fail is called. */
void glexch_conn_fail(struct glexch_conn *conn, const char *why);

/*
 * Before one of the packets by which both sides take leave.  The peer may go as soon as it has what is sent
 * from now on: that arrives after all that has been sent before, also what no stream orders, so that
 * nothing comes to nothing behind it; and nobody asks whether the peer is there.
 * last: nothing follows it, and only the peer's last one can still come: the connection
 * sends nothing of its own behind it, but what the peer needs for that.
 */
void glexch_conn_part(struct glexch_conn *conn, int last);

/* No credits are returned any more; drained comes when the queue is empty, perhaps at once. */
void glexch_conn_drain(struct glexch_conn *conn);

/*
 * Tells the peer that what it sends piles up here (on), or does no more: its user
 * hears of it and is to do something about it, the stream flows on as before.  Only
 * the last word counts if the peer has not heard the one before.
 */
void glexch_conn_hold(struct glexch_conn *conn, int on);

void *glexch_conn_user(const struct glexch_conn *conn);
uint32_t glexch_conn_chan(const struct glexch_conn *conn);
glex_ep_addr_t glexch_conn_addr(const struct glexch_conn *conn); /* of the peer */

/* Why the peer was given up that failed last: for done callbacks, which come before fail. */
const char *glexch_why(const struct glexch *ch);

/* ---- sending ------------------------------------------------------------- */

/* Where a transfer stands in a list of segments. */
struct glexch_cursor {
	const struct iovec *iov; /* first segment not finished */
	size_t off;		 /* bytes of it done */
	size_t left;		 /* bytes still to do in all */
};

/*
 * Something queued.  It, the segments and what they name belong to the channel
 * until done is called: with failed 0 when all was accepted; it may then set cur
 * anew and return 1, and that goes out next, before anything else of the
 * connection.  Otherwise it returns 0.  The item is not touched afterwards.
 */
struct glexch_item {
	struct glexch_item *next;
	struct glexch_cursor cur;
	uint32_t loan; /* set by glexch_queue and glexch_lend */
	int (*done)(struct glexch_conn *conn, struct glexch_item *item, int failed);
};

#define GLEXCH_AT_ONCE 4096u /* bytes behind a header that glexch_try_short may be able to send */

/* Something short will be sent next: begins to fetch what that takes.  _stream: len bytes, and others may follow at once. */
void glexch_expect(const struct glexch_conn *conn);
void glexch_expect_stream(const struct glexch_conn *conn, size_t len);

/*
 * One packet, if it can go at once: a header of hdr_len bytes that takes room bytes
 * of the stream, then len bytes.  1: sent.  0: not now, or it is too long; the same must be
 * sent next then, by glexch_try, as some of it may be in the ring of the peer already.
 */
int glexch_try_short(struct glexch_conn *conn, const void *hdr, size_t hdr_len, size_t room, const void *data,
		     size_t len);

/*
 * The same of a header alone that is made of whole words, at most GLEXCH_BRIEF_WORDS: they are
 * rec[1] to rec[words].  rec[0] and rec[words + 1] are the channel's, so that nothing needs to be copied.
 */
#define GLEXCH_BRIEF_WORDS 6u
int glexch_try_brief(struct glexch_conn *conn, uint64_t *rec, uint32_t words);

/* Sends what can be sent now, advances cur; what is left must be queued before anything else is sent. */
void glexch_try(struct glexch_conn *conn, struct glexch_cursor *cur);

/*
 * What glexch_try could not begin: 1: it has to be what is sent next all the same, as some of it may be
 * in the ring of the peer already.  0: something else may be sent in its place.
 */
int glexch_has_begun(const struct glexch_conn *conn);

/*
 * Queues item with its cur set; it may be done before the call returns.  One whose cur is empty
 * is done when it comes to the head of the queue, and can say only then what goes.
 */
void glexch_queue(struct glexch_conn *conn, struct glexch_item *item);

/* How something is lent. */
enum {
	/* Only if peers map buf, and so need no system call to copy.  One that is asked about often may become so. */
	GLEXCH_LEND_NEAR = 1,
	/*
	 * The peer may ask us to put them to where its user wants them instead, which it does if that is memory that
	 * peers map, and all in one place.  It waits then until we make progress.
	 */
	GLEXCH_LEND_OFFER = 2,
};

/*
 * The same of an item that ends with len bytes which are not sent: the peer is to fetch
 * them from buf, whose user says where to.  cur is of what goes before them: a header.  done
 * is called when they have been fetched, what it returns does not matter.  Returns 0 if that cannot be (no room to
 * register buf, too much is lent already, peers cannot reach private memory): nothing has happened then, and it goes
 * as a stream.
 */
int glexch_lend(struct glexch_conn *conn, struct glexch_item *item, void *buf, uint64_t len, int how);

/* Bytes that are lent now. */
uint64_t glexch_lent(const struct glexch *ch);

void glexch_cursor_init(struct glexch_cursor *cur, const struct iovec *iov, int cnt);

/* ---- what it did --------------------------------------------------------- */

/* How bytes left, or for a get came. */
enum glexch_way {
	GLEXCH_WAY_SR_MP,    /* in mini-packets of the shared channel */
	GLEXCH_WAY_SR_BLOCK, /* in its blocks, fetched by the receiver */
	GLEXCH_WAY_ER_IMM,   /* into an exclusive ring by immediate PUT */
	GLEXCH_WAY_ER_PUT,   /* into it by PUT */
	GLEXCH_WAY_GET,	     /* fetched by glexch_get: zero copy */
	GLEXCH_WAY_PUT,	     /* put into the peer's buffer by glexch_put: the same */
	GLEXCH_WAYS
};

#define GLEXCH_SIZES 8u /* classes: up to 64, 256, 1 Ki, 4 Ki, 16 Ki, 64 Ki, 1 Mi bytes, and more */

/* Written by the owner of the channel where the thing happens; read at any time. */
struct glexch_stats {
	uint64_t sent[GLEXCH_WAYS][GLEXCH_SIZES]; /* packets or blocks, by their length; gets by the message's */
	uint64_t bytes[GLEXCH_WAYS];
	uint64_t credit_waits; /* items queued for want of a credit */
	uint64_t room_waits;   /* of a block, or of room in the NIC's queue */
	uint64_t credit_mps;   /* sent only to give credits back */
	uint64_t reordered;    /* packets that arrived before one sent earlier */
	uint64_t peers;	       /* connections opened, by either side */
	uint64_t peers_failed;
	uint64_t er_opened; /* exclusive rings, by either side */
	uint64_t er_refused;
	uint64_t er_closed;
	uint64_t expose_refused; /* buffers the memory table had no room for */
	uint64_t cache_hits;	 /* of the registration cache: as of the call of glexch_stats */
	uint64_t cache_misses;
};

static inline unsigned glexch_size_class(uint64_t len)
{
	unsigned bits =
		64u - (unsigned)__builtin_clzll((len - (len != 0)) | 63); /* of the next power of two, from 64 on */

	return bits <= 16 ? (bits - 5) / 2 : bits <= 20 ? 6u : 7u;
}

const struct glexch_stats *glexch_stats(struct glexch *ch);

/* The endpoint as it was made, and the bytes of the pool of blocks. */
void glexch_describe(const struct glexch *ch, struct glex_ep_attr *ep, uint64_t *pool_p);

/* What it opened, good until glexch_close: for endpoints besides the channel's. */
glex_device_handle_t glexch_device(struct glexch *ch);

/* ---- zero copy ----------------------------------------------------------- */

#define GLEXCH_REGION_BYTES ((uint64_t)1 << 31) /* what one region covers of a buffer: offsets have 32 bits */

/* What a peer must know of one; the same on all machines of a job, as its bytes are sent. */
struct glexch_region {
	uint64_t handle;
	uint32_t offset; /* of the buffer in it */
	uint32_t slot;	 /* for who exposed it */
};

/* How many of them a buffer of len bytes needs. */
static inline uint32_t glexch_region_count(uint64_t len)
{
	return (uint32_t)((len + GLEXCH_REGION_BYTES - 1) / GLEXCH_REGION_BYTES);
}

/*
 * Lets peers GET from buf: fills glexch_region_count(len) regions, or none.
 * GLEX_BUSY: this process uses its share of the memory table, until others are
 * unexposed.  GLEX_NO_MEM_RESOURCE: the table has no room, or a limit is in the
 * way, and may be for ever: send it as a stream.  wanted: the peer is waiting for it; those have a share of their
 * own, so that what nobody fetches yet cannot keep out what would be fetched at once.
 */
glex_ret_t glexch_expose(struct glexch *ch, void *buf, uint64_t len, int wanted, struct glexch_region *regions);
void glexch_unexpose(struct glexch *ch, uint64_t len, const struct glexch_region *regions);

/*
 * Lets the peer PUT into buf, if peers map it; 0: they do not, or it is too long, or this process uses its share of
 * the table.  glexch_unexpose ends that when the peer has said that it is done; until then it may be written to.
 * glexch_revoke does where it has not: the region is gone then, and what would still come is refused.
 */
int glexch_accept(struct glexch *ch, void *buf, uint64_t len, struct glexch_region *region);
void glexch_revoke(struct glexch *ch, void *buf, uint64_t len, const struct glexch_region *region);

/* Memory that every peer can reach: glex_alloc.  NULL: there is none. */
void *glexch_alloc(struct glexch *ch, uint64_t len);
void glexch_free(struct glexch *ch, void *mem);

enum glexch_got {
	GLEXCH_GOT_ALL,
	GLEXCH_GOT_LOST_PEER, /* the connection has failed, or does so next */
	GLEXCH_GOT_NO_ACCESS, /* the system lets nobody reach private memory of the peer; the connection is well */
};

/*
 * Fetches len bytes, at least 1, of what the peer exposed into buf.  done comes
 * once, later; NULL without memory.  What cannot be registered goes through blocks
 * of the pool, more slowly.
 * glexch_conn_destroy drops it without done.
 */
typedef void (*glexch_get_fn)(void *arg, enum glexch_got got);
struct glexch_get *glexch_get(struct glexch_conn *conn, void *buf, uint64_t len, const struct glexch_region *regions,
			      glexch_get_fn done, void *arg);

/* The same of what begins at byte from of the peer's buffer, whose regions are given. */
struct glexch_get *glexch_get_part(struct glexch_conn *conn, void *buf, uint64_t len,
				   const struct glexch_region *regions, uint64_t from, glexch_get_fn done, void *arg);

/*
 * Puts len bytes of buf into what the peer accepts, in the same way: with GLEXCH_GOT_ALL they are in place there.
 * GLEXCH_GOT_NO_ACCESS: nothing is under way any more, and it has to be sent in another way: buf cannot be
 * registered, or the peer's memory not be reached.
 */
struct glexch_get *glexch_put(struct glexch_conn *conn, void *buf, uint64_t len, const struct glexch_region *region,
			      glexch_get_fn done, void *arg);

/* ---- windows ------------------------------------------------------------- */

/* Memory that peers reach without asking: what they must know of it, all zeros if it is none.  Its bytes are sent. */
struct glexch_window {
	uint64_t ep;
	uint64_t handle;
	uint64_t lock_handle; /* of words that keep others out; 0: it has none */
	uint32_t lock;	      /* where in them its own is */
	uint32_t key;
	uint32_t len; /* 0: they have to ask */
	/* of who has reached it: */
	uint32_t born; /* deaths before its members met, which are not theirs */
	struct glex_put_way *way;
	struct glex_put_way *lock_way;
};

/*
 * Lets peers reach len bytes at mem until glexch_window_close.  window->len is 0 if that cannot be: longer than 4 GiB
 * less one byte, memory that cannot be mapped (glex_register_mem(3), GLEX_MEM_MAPPED), or no room in the memory table.
 */
void glexch_window_open(struct glexch *ch, void *mem, uint64_t len, struct glexch_window *window);
void glexch_window_close(struct glexch *ch, struct glexch_window *window);

/* What was kept of a peer's. */
void glexch_window_forget(struct glexch_window *peer);

/*
 * PUTs len bytes of buf, or GETs them, at least 1, to or from byte offset of a peer's window.  1: they are there, and
 * buf is the caller's again; what is sent to anybody later comes later.  0: nothing has happened, and it has to
 * be sent in another way: the peer's window, or this endpoint, does not have it, or the peer is lost.
 * A GET may pass PUTs before it, as loads pass stores: who minds has a barrier between.
 */
int glexch_window_put(struct glexch *ch, struct glexch_window *peer, uint64_t offset, const void *buf, uint64_t len);
int glexch_window_get(struct glexch *ch, struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len);

/*
 * Keeps everybody else who calls this out of a peer's window: where len bytes from offset on are in this process, to
 * be read and written until glexch_window_release, with nothing of this interface called between.  NULL: it has to be
 * done by the peer, for the reasons above, or as the window has no lock, or this process has threads.
 */
void *glexch_window_hold(struct glexch *ch, struct glexch_window *peer, uint64_t offset, uint64_t len);
void glexch_window_release(struct glexch *ch);

/* The same of a window of ours, for what is done in it here.  Nothing if it has no lock. */
void glexch_window_hold_own(struct glexch *ch, struct glexch_window *window);
void glexch_window_release_own(struct glexch *ch, const struct glexch_window *window);

#endif /* GLEXCH_CHAN_H */
