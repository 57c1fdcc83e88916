/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_impl.h - what the files of the netmod share.
 *
 *   MPICH (CH3)          this netmod                    channel library
 *   MPIDI_VC_t  --------> MPID_nem_glex_vc_t ----------> struct glexch_conn
 *      ^                                                      |
 *      +------------------- user pointer ---------------------+
 *   MPIR_Request  ------> MPID_nem_glex_req_t: a queue item, or one side of a rendezvous
 *
 * Matching is CH3's: the netmod hands it the ordered byte stream of a VC
 * (MPID_nem_handle_pkt) and nothing else.  It is entered with MPICH's lock held.
 *
 * I1  A VC has a connection from its first packet, in either direction, until it
 *     is terminated; the connection's user pointer is the VC.
 * I2  Whatever completes does so through MPID_Request_complete: the progress
 *     engine looks at nothing else.
 * I3  Callbacks of the channel cannot return errors: the first is kept in
 *     MPID_nem_glex.error and returned by the next poll.
 * I4  What waits for a packet of a peer and is in none of CH3's queues is on the
 *     list of glex_lost.c until it is complete: only so does it end with the peer.
 */
#ifndef MPID_NEM_GLEX_IMPL_H
#define MPID_NEM_GLEX_IMPL_H

#include "mpid_nem_impl.h"
#include "mpidimpl.h"

#include <glex.h>
#include <glex_ext.h>
#include "chan.h"

#define MPID_NEM_GLEX_CARD_KEY "glex"
#define MPID_NEM_GLEX_HOST_KEY "glexhost"
#define MPID_NEM_GLEX_CARD_BUF 4096 /* no business card is longer */

/* Until MPI ends the job: hydra forwards nothing that it has not read by then. */
#define MPID_NEM_GLEX_LAST_WORDS_US 300000

enum MPID_nem_glex_coll_kind {
	MPID_NEM_GLEX_BARRIER,
	MPID_NEM_GLEX_BCAST,
	MPID_NEM_GLEX_REDUCE,
	MPID_NEM_GLEX_GATHER,
	MPID_NEM_GLEX_SCATTER, /* a reduction of which each gets a block */
	MPID_NEM_GLEX_ALLTOALL,
	MPID_NEM_GLEX_ALLTOALLV, /* blocks may differ in length; gathers to all of such, too */
	MPID_NEM_GLEX_KINDS,
	MPID_NEM_GLEX_LONGS = MPID_NEM_GLEX_KINDS, /* the tree's own: whether what is long can be fetched */
	MPID_NEM_GLEX_STAGE,			   /* and what goes by a stage can */
};

/* What CH3 gave the netmod to do; the channel counts by itself. */
struct MPID_nem_glex_stats {
	uint64_t eager[GLEXCH_SIZES]; /* packets sent, by the length of their data */
	uint64_t eager_bytes;
	uint64_t rndv[GLEXCH_SIZES]; /* messages sent by rendezvous */
	uint64_t rndv_bytes;
	uint64_t lent[GLEXCH_SIZES]; /* one-sided data that peers fetched */
	uint64_t lent_bytes;
	uint64_t put[GLEXCH_SIZES]; /* one-sided operations that were over with the call */
	uint64_t put_bytes;
	uint64_t got[GLEXCH_SIZES];
	uint64_t got_bytes;
	uint64_t summed[GLEXCH_SIZES]; /* or exchanged */
	uint64_t summed_bytes;
	uint64_t near[GLEXCH_SIZES]; /* messages that they fetched without being asked for them */
	uint64_t near_bytes;
	uint64_t packed;     /* of them, not contiguous at the sender */
	uint64_t copied;     /* to memory that peers can reach */
	uint64_t unpacked;   /* rendezvous received, not contiguous here */
	uint64_t chunks;     /* packed or unpacked */
	uint64_t chunks_max; /* bytes of those in use, at most */
	uint64_t streamed;   /* because they could not be registered */
	uint64_t held;	     /* times that a peer had our sends wait for their receives, and we a peer's */
	uint64_t holds;
	uint64_t coll[MPID_NEM_GLEX_KINDS]; /* collectives run by the NICs, by enum MPID_nem_glex_coll_kind */
	uint64_t coll_trees, coll_refused;
	uint64_t coll_long[MPID_NEM_GLEX_KINDS]; /* of coll[]: fetched or passed down the tree; by a stage */
};

/* Where a rank's endpoint is, and since when: struct glexch_peer. */
struct MPID_nem_glex_place {
	uint64_t addr;
	uint32_t born;
	uint32_t known;
};

#define MPID_NEM_GLEX_COLL_AUTO 3 /* GLEX_MPI_COLL_SHAPE: behind enum glex_group_shape */

/* GLEX_MPI_COLL: among which ranks the NICs run collectives. */
enum MPID_nem_glex_coll_where { MPID_NEM_GLEX_COLL_OFF, MPID_NEM_GLEX_COLL_NODES, MPID_NEM_GLEX_COLL_ALL };

/* Memory that a part of a message is packed into, or unpacked from: glex_pipe.c. */
struct MPID_nem_glex_chunk {
	struct MPID_nem_glex_chunk *next;
	uint8_t *mem;		     /* GLEX_MPI_PACK_SIZE bytes; some before it are free too */
	void *alone;		     /* memory of its own, not of the pool */
	struct glexch_region region; /* of mem, for peers */
	uint64_t pos;		     /* where in the message its bytes begin */
};

enum MPID_nem_glex_side { MPID_NEM_GLEX_SENDS, MPID_NEM_GLEX_RECEIVES };

struct MPID_nem_glex_pool {
	uint32_t size;	/* of a chunk */
	uint32_t count; /* of chunks, half for each side */
	int opened;	/* 1: it has been tried */
	uint8_t *mem;
	struct glexch_region region;
	struct MPID_nem_glex_chunk *chunks, *free;
	uint32_t held[2]; /* by side, also those alone */
};

#define MPID_NEM_GLEX_TEXT_MAX 256 /* of an error */

struct MPID_nem_glex {
	struct glexch *ch; /* NULL outside of init ... finalize */
	MPIDI_PG_t *pg;
	int rank;
	int alone;   /* there are no peers but those of the channel */
	int idle;    /* polls in a row that found nothing */
	int crowded; /* processes outnumber processors: as of the last look */
	int looks;   /* idle polls until the next */
	int error;   /* I3 */
	intptr_t eager_max;
	size_t lend_above;			   /* longer one-sided data is fetched: glex_lend.c */
	uint32_t rma_done;			   /* operations that went so */
	int rma_put;				   /* one of them, since the last get */
	int rma_direct;				   /* windows are reached at once: glex_window.c */
	uint32_t rma_adopted;			   /* windows of the program's memory that are */
	uint64_t rma_adopt;			   /* so long ones of the program's memory too */
	size_t near_above;			   /* longer messages are, if their buffers are near */
	size_t part_above;			   /* and shorter ones down to this: there, I4 */
	int zero_copy;				   /* else long messages are streamed when they are asked for */
	struct MPID_nem_glex_lmt *lmt_waiting;	   /* sends that found the memory table full */
	struct MPID_nem_glex_fetch *fetch_waiting; /* receives that found no chunk free */
	int unreachable;			   /* peers cannot reach private memory here: glex_lmt.c */
	const void *waited_for;			   /* buffer of a send that CH3 is to do next: glex_put.c */
	struct MPID_nem_glex_pool pool;
	struct MPID_nem_glex_wait *waits;	  /* I4 */
	struct MPID_nem_glex_place *places;	  /* of the own group's ranks, since somebody has died */
	int someone_lost;			  /* of any group */
	char member_lost[MPID_NEM_GLEX_TEXT_MAX]; /* the last one of the own, and why; "": nobody */
	char link_lost[MPID_NEM_GLEX_TEXT_MAX];	  /* what was to join two groups */
	MPL_time_t polled, idle_since;		  /* the last poll; when something came last */
	int in_vain;				  /* nothing has for long, and somebody is lost */
	MPL_time_t looked;			  /* when all who wait were told to look, last */
	uint64_t unexpected_max;		  /* bytes: glex_held.c; 0: no limit */
	uint64_t fed;				  /* bytes since the last look at the unexpected messages, */
	uint64_t look_at;			  /* and how many are worth another */
	uint64_t fed_by_poll;			  /* what a poll counts for */
	int holding;				  /* somebody is held */
	enum MPID_nem_glex_coll_where coll_where;
	uint32_t coll_shape; /* enum glex_group_shape, or MPID_NEM_GLEX_COLL_AUTO */
	uint32_t coll_degree;
	uint32_t coll_after;		      /* so many eligible calls make a tree */
	uint32_t coll_packets;		      /* the longest has so many */
	uint32_t coll_row;		      /* so many broadcasts of a root in a row are not MPICH's; 0: all */
	uint64_t coll_stage;		      /* bytes of a stage; 0: none */
	uint64_t coll_long;		      /* the shortest broadcast that goes from buffer to buffer; 0: none */
	uint32_t coll_long_by;		      /* enum glex_group_long, where there is a tree */
	struct MPID_nem_glex_tree *coll_busy; /* those with operations */
	struct MPID_nem_glex_op *coll_ops;    /* to be used again */
	struct MPID_nem_glex_leaving *coll_leaving;
	struct MPID_nem_glex_stats stats;
};

extern struct MPID_nem_glex MPID_nem_glex;

typedef struct {
	struct glexch_conn *conn;	  /* I1 */
	struct MPID_nem_glex_chunk *lent; /* what the peer lends is fetched into it */
	uint64_t piled;			  /* bytes of its unexpected messages, when they were counted last */
	uint8_t held;			  /* the peer wants our sends to wait for their receives */
	uint8_t holding;		  /* we the peer's */
} MPID_nem_glex_vc_t;

/* What the area of a request is that waits. */
enum MPID_nem_glex_role { MPID_NEM_GLEX_ANY, MPID_NEM_GLEX_LMT, MPID_NEM_GLEX_FETCH, MPID_NEM_GLEX_READ };

/* A request that ends by a packet of a peer. */
struct MPID_nem_glex_wait {
	struct MPID_nem_glex_wait *next;
	struct MPID_nem_glex_wait **prev; /* what points here */
	MPIR_Request *req;
	MPIDI_VC_t *vc;
	enum MPID_nem_glex_role role;
};

/* What a sender tells in its RTS; regions follow. */
struct MPID_nem_glex_cookie {
	uint64_t len : 63;
	uint64_t offer : 1;		/* it would put it in place: glex_put.c */
	struct glexch_region regions[]; /* all of them, or none: to be asked for with a CTS */
};

/* What a receiver tells in its CTS. */
struct MPID_nem_glex_want {
	uint32_t chunk; /* bytes that it takes in one piece, if the sender packs */
	enum MPID_nem_glex_how {
		MPID_NEM_GLEX_WANT_HANDLES, /* or pieces */
		MPID_NEM_GLEX_WANT_COPY,    /* it cannot reach the sender's buffer */
		MPID_NEM_GLEX_WANT_PUT,	    /* to place */
	} how;
	struct glexch_region place;
};

/* The sender's side of a rendezvous. */
struct MPID_nem_glex_lmt {
	struct MPID_nem_glex_lmt *next; /* in lmt_waiting */
	MPIR_Request *req;
	MPIDI_VC_t *vc;
	void *buf;			    /* the user's; NULL: not contiguous */
	struct MPID_nem_glex_chunk *chunks; /* packed, and not yet taken */
	struct MPID_nem_glex_cookie *cookie;
	void *walk;	 /* over the data */
	uint64_t packed; /* so many bytes */
	uint32_t tries;	 /* polls in which there was no chunk to begin with */
	uint32_t piece;	 /* the longest that the receiver takes */
	uint32_t count;	 /* of the cookie's regions; 0: nothing is exposed */
	uint8_t never;	 /* it cannot be exposed */
	uint8_t pipe;	 /* it goes in chunks */
	union {
		struct MPID_nem_glex_cookie head;
		uint8_t room[sizeof(struct MPID_nem_glex_cookie) + 4 * sizeof(struct glexch_region)];
	} small; /* a cookie for up to 8 GiB */
};

#define MPID_NEM_GLEX_SCRAP 32 /* no basic type is longer */

/* The receiver's. */
struct MPID_nem_glex_fetch {
	MPIR_Request *req;
	MPIDI_VC_t *vc;
	uint8_t *buf;			     /* NULL: not contiguous */
	struct MPID_nem_glex_cookie *cookie; /* where all of it is; NULL: the sender tells piece by piece */
	struct MPID_nem_glex_piece *pieces;  /* asked for, by position */
	uint64_t asked;			     /* up to here */
	uint64_t done;			     /* in place up to here */
	struct MPID_nem_glex_fetch *next;    /* in fetch_waiting */
	void *walk;			     /* over the data */
	uint32_t held;			     /* chunks */
	uint32_t under_way;		     /* GETs */
	uint8_t again;			     /* the copy of the sender has been asked for */
	uint8_t failed;			     /* enum glexch_got */
	uint8_t vain;			     /* it has an error, and nothing is fetched any more */
	uint8_t over;
	uint8_t accepted; /* the sender is to put it to want.place */
	uint8_t scraps;	  /* bytes of a basic type whose rest comes with the next piece: */
	union {
		uint8_t scrap[MPID_NEM_GLEX_SCRAP];
		struct MPID_nem_glex_want want; /* what is asked for, before any piece has come */
	};
};

typedef struct {
	struct MPID_nem_glex_wait wait; /* of those that wait.  A synchronous send is in the queue at the same time */
	union {
		struct {
			struct glexch_item item;
			MPIR_Request *req;
			MPIDI_VC_t *vc;
			uint8_t brief[MPIDI_EAGER_SHORT_SIZE]; /* data that came in a header */
		} send;
		struct MPID_nem_glex_lmt lmt;
		struct MPID_nem_glex_fetch fetch;
	};
} MPID_nem_glex_req_t;

_Static_assert(sizeof(MPID_nem_glex_vc_t) <= MPIDI_NEM_VC_NETMOD_AREA_LEN, "the area of a VC");
_Static_assert(sizeof(MPID_nem_glex_req_t) <= MPIDI_NEM_REQ_NETMOD_AREA_LEN, "the area of a request");

static inline MPID_nem_glex_vc_t *MPID_nem_glex_vc(MPIDI_VC_t *vc)
{
	return (MPID_nem_glex_vc_t *)vc->ch.netmod_area.padding;
}

static inline MPID_nem_glex_req_t *MPID_nem_glex_req(MPIR_Request *req)
{
	return (MPID_nem_glex_req_t *)req->ch.netmod_area.padding;
}

/* Keeps the first error (I3). */
static inline void MPID_nem_glex_note(int mpi_errno)
{
	if (mpi_errno != MPI_SUCCESS && MPID_nem_glex.error == MPI_SUCCESS)
		MPID_nem_glex.error = mpi_errno;
}

static inline void MPID_nem_glex_count_eager(size_t len)
{
	MPID_nem_glex.stats.eager[glexch_size_class(len)]++;
	MPID_nem_glex.stats.eager_bytes += len;
}

/* ---- glex_init.c --------------------------------------------------------- */

int MPID_nem_glex_init(MPIDI_PG_t *pg_p, int pg_rank, char **bc_val_p, int *val_max_sz_p);
int MPID_nem_glex_finalize(void);
int MPID_nem_glex_get_business_card(int my_rank, char **bc_val_p, int *val_max_sz_p);
int MPID_nem_glex_get_ordering(int *ordering);
uint64_t MPID_nem_glex_pg_hash(MPIDI_PG_t *pg);

/* ---- glex_vc.c ----------------------------------------------------------- */

int MPID_nem_glex_vc_init(MPIDI_VC_t *vc);
int MPID_nem_glex_vc_destroy(MPIDI_VC_t *vc);
int MPID_nem_glex_vc_terminate(MPIDI_VC_t *vc);
int MPID_nem_glex_vc_connect(MPIDI_VC_t *vc);
int MPID_nem_glex_card_read(const char *bc, struct glexch_peer *peer);
void MPID_nem_glex_vc_failed(struct glexch_conn *conn, const char *why);
void MPID_nem_glex_vc_drained(struct glexch_conn *conn);
size_t MPID_nem_glex_identify(struct glexch_conn *conn, void *blob);
void *MPID_nem_glex_hello(struct glexch_conn *conn, const void *blob, size_t len);

/* ---- glex_lost.c --------------------------------------------------------- */

int MPID_nem_glex_comm_error(MPIDI_VC_t *vc);
int MPIDI_GLEX_vain(int source, MPIR_Comm *comm);
void MPID_nem_glex_await(MPIDI_VC_t *vc, MPIR_Request *req, enum MPID_nem_glex_role role);
void MPID_nem_glex_await_no_more(MPIR_Request *req);
void MPID_nem_glex_await_nothing(void);
void MPID_nem_glex_lost(MPIDI_VC_t *vc, const char *why);
int MPID_nem_glex_lost_poll(int done, int in_blocking_poll);
void MPID_nem_glex_end(MPIR_Request *req, int error);

/* ---- glex_origin.c ------------------------------------------------------- */

struct MPIDI_RMA_Target;
int MPID_nem_glex_missing(const struct MPIDI_RMA_Target *target);
int MPID_nem_glex_read_over(MPIR_Request *req);
void MPID_nem_glex_op_unsent(MPIR_Request *sreq);
void MPID_nem_glex_end_unsent_ops(void);
void MPID_nem_glex_end_meetings(void);

/* ---- glex_target.c ------------------------------------------------------- */

void MPID_nem_glex_exposed_forget(void);
int MPID_nem_glex_half_written(MPIR_Request *req);
void MPID_nem_glex_unqueue_locks(MPIDI_VC_t *vc);

/* ---- glex_window.c ------------------------------------------------------- */

void MPID_nem_glex_windows_forget(void);

/* ---- glex_dead.c --------------------------------------------------------- */

void MPID_nem_glex_died(struct glexch *ch, glex_ep_addr_t addr, uint32_t number);

/* ---- glex_dyn.c ---------------------------------------------------------- */

int MPID_nem_glex_connect_to_root(const char *port_name, MPIDI_VC_t *new_vc);
MPIDI_VC_t *MPID_nem_glex_temp_vc(struct glexch_conn *conn, int port_tag);

/* ---- glex_send.c --------------------------------------------------------- */

int MPID_nem_glex_iStartContigMsg(MPIDI_VC_t *vc, void *hdr, intptr_t hdr_sz, void *data, intptr_t data_sz,
				  MPIR_Request **sreq_ptr);
int MPID_nem_glex_iSendContig(MPIDI_VC_t *vc, MPIR_Request *sreq, void *hdr, intptr_t hdr_sz, void *data,
			      intptr_t data_sz);
int MPID_nem_glex_iSendIov(MPIDI_VC_t *vc, MPIR_Request *sreq, void *hdr, intptr_t hdr_sz, struct iovec *iov,
			   int n_iov);

/* ---- glex_lend.c --------------------------------------------------------- */

int MPID_nem_glex_is_part_of_near(const void *buf, size_t len);
enum MPID_nem_glex_lends {
	MPID_NEM_GLEX_LENDS_NOTHING,
	MPID_NEM_GLEX_LENDS_NEAR, /* if it is near */
	MPID_NEM_GLEX_LENDS_FAR,  /* as far */
	MPID_NEM_GLEX_LENDS_ANY	  /* as near if it is, else as far */
};
enum MPID_nem_glex_lends MPID_nem_glex_lends(const MPIR_Request *sreq, const void *hdr, const struct iovec *iov,
					     int n_iov);
int MPID_nem_glex_lend(struct glexch_conn *conn, MPIR_Request *sreq, const struct iovec *data,
		       enum MPID_nem_glex_lends lends);
uint64_t MPID_nem_glex_land(struct glexch_conn *conn, uint64_t left, void **buf_p);
void MPID_nem_glex_landed(struct glexch_conn *conn, void *buf, uint64_t n, int put);
void *MPID_nem_glex_room(struct glexch_conn *conn, size_t len);
void MPID_nem_glex_filled(struct glexch_conn *conn, size_t len);

/* ---- glex_held.c --------------------------------------------------------- */

MPIR_Request *MPIDI_GLEX_unexpected(void); /* the first of them, by next the others: install-into.sh */
void MPID_nem_glex_held_init(uint64_t limit);
void MPID_nem_glex_held(struct glexch_conn *conn, int on);
void MPID_nem_glex_held_forget(MPIDI_VC_t *vc);
void *MPID_nem_glex_held_header(MPIR_Request *sreq, void *hdr, intptr_t hdr_sz, MPIDI_CH3_Pkt_t *pkt);
int MPID_nem_glex_held_queued(MPIDI_VC_t *vc, MPIR_Request *sreq);
int MPID_nem_glex_held_send(MPIDI_VC_t *vc, const void *hdr, intptr_t hdr_sz, void *data, intptr_t data_sz,
			    MPIR_Request **sreq_ptr);
void MPID_nem_glex_look(void);

/* ---- glex_poll.c --------------------------------------------------------- */

int MPID_nem_glex_poll(int in_blocking_poll);
int MPID_nem_glex_packet(struct glexch_conn *conn, void *hdr, size_t hdr_len, void *bytes, size_t len);
void MPID_nem_glex_data(struct glexch_conn *conn, void *buf, size_t len);

/* ---- glex_stats.c -------------------------------------------------------- */

void MPID_nem_glex_stats_init(void);
void MPID_nem_glex_stats_print(void);

/* ---- glex_lmt.c ---------------------------------------------------------- */

void *MPID_nem_glex_contig(MPIR_Request *req, intptr_t *size_p);
void MPID_nem_glex_lmt_tell(struct MPID_nem_glex_lmt *lmt);
int MPID_nem_glex_ask(MPIDI_VC_t *vc, MPIR_Request *req, enum MPID_nem_glex_how how);
int MPID_nem_glex_lmt_initiate(MPIDI_VC_t *vc, MPIDI_CH3_Pkt_t *rts_pkt, MPIR_Request *req);
void MPID_nem_glex_lmt_offer(MPIR_Request *sreq);
void MPID_nem_glex_lmt_offered(MPIDI_VC_t *vc, MPIR_Request *sreq);
int MPID_nem_glex_lmt_start_recv(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec s_cookie);
int MPID_nem_glex_lmt_start_send(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec r_cookie);
int MPID_nem_glex_lmt_handle_cookie(MPIDI_VC_t *vc, MPIR_Request *req, struct iovec cookie);
int MPID_nem_glex_lmt_done_send(MPIDI_VC_t *vc, MPIR_Request *req);
int MPID_nem_glex_lmt_done_recv(MPIDI_VC_t *vc, MPIR_Request *req);
void MPID_nem_glex_lmt_retry(void);
void MPID_nem_glex_lmt_release(MPIR_Request *req);

/* ---- glex_put.c -------------------------------------------------------- */

void MPID_nem_glex_copied_from(const void *buf, const struct glexch_conn *from);
void MPID_nem_glex_copied_by_others(const void *buf);
void MPID_nem_glex_waits(const void *buf);
int MPID_nem_glex_offers(const struct glexch_conn *conn, const void *buf, size_t len);
void MPID_nem_glex_offered_in_vain(const void *buf);
int MPID_nem_glex_put(struct MPID_nem_glex_lmt *lmt, const struct glexch_region *region);
int MPID_nem_glex_accepts(MPIDI_VC_t *vc, MPIR_Request *req, const struct MPID_nem_glex_cookie *cookie);
int MPID_nem_glex_accepted_over(struct MPID_nem_glex_fetch *fetch);
void MPID_nem_glex_accepted_no_more(struct MPID_nem_glex_fetch *fetch);

/* ---- glex_pipe.c --------------------------------------------------------- */

extern MPIDI_CH3_PktHandler_Fcn *MPID_nem_glex_pkt_handlers[];
#define MPID_NEM_GLEX_PKT_HANDLERS 2

struct MPID_nem_glex_chunk *MPID_nem_glex_chunk_borrow(void);
void MPID_nem_glex_chunk_return(struct MPID_nem_glex_chunk *chunk);
void MPID_nem_glex_pool_init(uint32_t size, uint32_t count);
void MPID_nem_glex_pool_finalize(void);
int MPID_nem_glex_pipe_whole(struct MPID_nem_glex_lmt *lmt);
int MPID_nem_glex_pipe_start(struct MPID_nem_glex_lmt *lmt, int *mpi_errno_p);
void MPID_nem_glex_pipe_release(struct MPID_nem_glex_lmt *lmt);
int MPID_nem_glex_fetch(MPIDI_VC_t *vc, MPIR_Request *req, struct MPID_nem_glex_cookie *cookie);
void MPID_nem_glex_fetch_release(MPIR_Request *req);
void MPID_nem_glex_fetch_retry(void);

/* ---- glex_coll.c --------------------------------------------------------- */

int MPID_nem_glex_coll_init(void);
void MPID_nem_glex_coll_finalize(void);
int MPID_nem_glex_coll_poll(void);
int MPIDI_GLEX_wait(MPIR_Request *req);

/* ---- glex_same.c --------------------------------------------------------- */

int MPID_nem_glex_same_init(void);
int MPID_nem_glex_same_in(MPIR_Comm *comm); /* whether all of them have, also of other process groups */
int MPID_nem_glex_same_say(char **bc_val_p, int *val_max_sz_p); /* MPL_SUCCESS, or that there is no room */

/* ---- glex_coll_op.c ------------------------------------------------------ */

/* An MPI reduction in the NIC's terms. */
struct MPID_nem_glex_operand {
	uint8_t size;	/* of a value in memory, */
	uint8_t extent; /* and of one with all that belongs to it */
	uint8_t is_signed;
	uint8_t pair; /* with the index of an int behind it */
	enum glex_coll_reduce_data_bits bits;
	enum glex_coll_reduce_op op;
};

/* False: the NIC cannot do it. */
int MPID_nem_glex_operand(MPI_Datatype type, MPI_Op op, struct MPID_nem_glex_operand *operand);
void MPID_nem_glex_operand_load(const struct MPID_nem_glex_operand *operand, const void *buf, uint32_t count,
				union glex_coll_data_loc *units);
void MPID_nem_glex_operand_store(const struct MPID_nem_glex_operand *operand, const union glex_coll_data_loc *units,
				 uint32_t count, void *buf);

#endif /* MPID_NEM_GLEX_IMPL_H */
