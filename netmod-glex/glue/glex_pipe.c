/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_pipe.c - a rendezvous whose data is not contiguous, on one side or on both.
 *
 * Data is packed into, and unpacked from, chunks of a pool that peers can reach,
 * so what a message needs besides its own memory does not grow with its length.
 * One that fits into a chunk is packed before its RTS and then looks like any
 * other.  A longer one:
 *
 *      sender                                          receiver
 *      RTS {length, no handles} -------------------->  matched
 *                               <--------------- CTS   {how long a piece may be}
 *      packs into a chunk
 *      PIECE {position, handle} -------------------->  GETs it to its place, or into a chunk
 *      packs the next one       <------------- TAKEN   unpacks while the next one comes
 *      ...
 *                               <-------------- DONE
 *
 * The receiver of a contiguous buffer, whose handles came with the RTS, GETs parts
 * of it into chunks without asking.  Where peers cannot reach a sender's private
 * memory (glex_lmt.c), contiguous data goes by chunks too.
 *
 * I1  A process keeps GLEX_MPI_PACK_CHUNKS of them, half for each direction.  A receive
 *     that finds none free waits: they are in use for as long as GETs take.  A send
 *     does so for a while only, and then gets one of its own: the peers of those that
 *     have them may be slow.
 * I2  Pieces are put in place in the order of the message, whatever the order in which
 *     they arrive: datatypes are walked forward only.
 * I3  A chunk's end may split a basic type.  The sender packs no such part; the receiver
 *     keeps it as scraps, and unpacks it with the piece that follows.
 * I4  What is sent may end the connection, and with it the request: what goes on after
 *     that holds a reference, and looks whether it is over.
 * I5  What the receiver has no memory to fetch it does not, but says that it has: the sender
 *     goes on as ever, and the receive ends behind it, with an error (`vain`).
 */
#include "glex_impl.h"

#if MPICH_DATATYPE_ENGINE == MPICH_DATATYPE_ENGINE_DATALOOP
#include <dataloop.h>
#endif

#define MPID_NEM_GLEX_PATIENCE	 2000 /* polls that a send waits for a chunk of the pool */
#define MPID_NEM_GLEX_PIPE_DEPTH 4    /* chunks of a message at a time: one packed, one travelling, and some slack */
#define MPID_NEM_GLEX_CHUNK_HEAD 64   /* free bytes before a chunk, for scraps */
#define MPID_NEM_GLEX_NO_MEMORY	 "there is no memory to receive a message"

_Static_assert(MPID_NEM_GLEX_SCRAP <= MPID_NEM_GLEX_CHUNK_HEAD, "scraps lie before a chunk");

/* Subtypes of CH3's packet for netmods. */
enum { MPID_NEM_GLEX_PKT_PIECE, MPID_NEM_GLEX_PKT_TAKEN };

struct MPID_nem_glex_pkt_piece {
	MPID_nem_pkt_netmod_t head;
	MPI_Request receiver_req_id;
	uint32_t len;
	uint64_t pos;
	struct glexch_region region;
};

struct MPID_nem_glex_pkt_taken {
	MPID_nem_pkt_netmod_t head;
	MPI_Request sender_req_id;
	uint32_t unused;
	uint64_t pos; /* of the piece */
};

_Static_assert(sizeof(struct MPID_nem_glex_pkt_piece) <= sizeof(MPIDI_CH3_Pkt_t), "in a header");
_Static_assert(sizeof(struct MPID_nem_glex_pkt_taken) <= sizeof(MPIDI_CH3_Pkt_t), "in a header");

/* A part of a message on its way to the receiver. */
struct MPID_nem_glex_piece {
	struct MPID_nem_glex_piece *next;
	MPIR_Request *req;
	struct MPID_nem_glex_chunk *chunk; /* NULL: it goes straight to its place */
	uint64_t pos, len;
	struct glexch_region region; /* of the sender's chunk; else it is in the cookie */
	enum { MPID_NEM_GLEX_WAITING, MPID_NEM_GLEX_COMING, MPID_NEM_GLEX_ARRIVED } state;
};

/* ---- datatypes ----------------------------------------------------------- */

/*
 * A walk over the data of a request, one way.  MPICH's functions for it begin anew at
 * every call: where it can go on from where it was, it does (I2).
 */
#if MPICH_DATATYPE_ENGINE == MPICH_DATATYPE_ENGINE_DATALOOP

static int MPID_nem_glex_walk(MPIR_Request *req, void **walk)
{
	if (!*walk)
		*walk = MPIR_Segment_alloc(req->dev.user_buf, req->dev.user_count, req->dev.datatype);
	return *walk ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void MPID_nem_glex_walk_end(void **walk)
{
	if (*walk)
		MPIR_Segment_free(*walk);
	*walk = NULL;
}

/* Packs up to size bytes of the message from byte pos on; what it came to is in done. */
static int MPID_nem_glex_pack(MPIR_Request *req, void **walk, uint64_t pos, void *to, MPI_Aint size, MPI_Aint *done)
{
	MPI_Aint last = (MPI_Aint)pos + size;
	int mpi_errno = MPID_nem_glex_walk(req, walk);

	if (mpi_errno == MPI_SUCCESS)
		MPIR_Segment_pack(*walk, (MPI_Aint)pos, &last, to);
	*done = last - (MPI_Aint)pos;
	return mpi_errno;
}

static int MPID_nem_glex_unpack(MPIR_Request *req, void **walk, uint64_t pos, const void *from, MPI_Aint size,
				MPI_Aint *done)
{
	MPI_Aint last = (MPI_Aint)pos + size;
	int mpi_errno = MPID_nem_glex_walk(req, walk);

	if (mpi_errno == MPI_SUCCESS)
		MPIR_Segment_unpack(*walk, (MPI_Aint)pos, &last, from);
	*done = last - (MPI_Aint)pos;
	return mpi_errno;
}

#else

static void MPID_nem_glex_walk_end(void **walk)
{
}

static int MPID_nem_glex_pack(MPIR_Request *req, void **walk, uint64_t pos, void *to, MPI_Aint size, MPI_Aint *done)
{
#ifndef MPIR_TYPEREP_FLAG_NONE /* since MPICH 4.1 */
	return MPIR_Typerep_pack(req->dev.user_buf, req->dev.user_count, req->dev.datatype, pos, to, size, done);
#else
	return MPIR_Typerep_pack(req->dev.user_buf, req->dev.user_count, req->dev.datatype, pos, to, size, done,
				 MPIR_TYPEREP_FLAG_NONE);
#endif
}

static int MPID_nem_glex_unpack(MPIR_Request *req, void **walk, uint64_t pos, const void *from, MPI_Aint size,
				MPI_Aint *done)
{
#ifndef MPIR_TYPEREP_FLAG_NONE /* since MPICH 4.1 */
	return MPIR_Typerep_unpack(from, size, req->dev.user_buf, req->dev.user_count, req->dev.datatype, pos, done);
#else
	return MPIR_Typerep_unpack(from, size, req->dev.user_buf, req->dev.user_count, req->dev.datatype, pos, done,
				   MPIR_TYPEREP_FLAG_NONE);
#endif
}

#endif

/* ---- chunks -------------------------------------------------------------- */

void MPID_nem_glex_pool_init(uint32_t size, uint32_t count)
{
	MPID_nem_glex.pool.size = size;
	MPID_nem_glex.pool.count = count;
}

/* At the first need of it.  Without the memory every chunk is alone. */
static void MPID_nem_glex_pool_open(void)
{
	struct MPID_nem_glex_pool *pool = &MPID_nem_glex.pool;
	uint32_t i, stride = pool->size + MPID_NEM_GLEX_CHUNK_HEAD;
	uint64_t len = (uint64_t)pool->count * stride;

	pool->opened = 1;
	if (len > GLEXCH_REGION_BYTES)
		return;
	pool->chunks = MPL_calloc(pool->count, sizeof(*pool->chunks), MPL_MEM_BUFFER);
	pool->mem = pool->chunks ? glexch_alloc(MPID_nem_glex.ch, len) : NULL;
	if (pool->mem && glexch_expose(MPID_nem_glex.ch, pool->mem, len, 1, &pool->region) != GLEX_SUCCESS) {
		glexch_free(MPID_nem_glex.ch, pool->mem);
		pool->mem = NULL;
	}
	for (i = 0; pool->mem && i < pool->count; i++) {
		struct MPID_nem_glex_chunk *chunk = &pool->chunks[i];
		uint32_t at = i * stride + MPID_NEM_GLEX_CHUNK_HEAD;

		chunk->mem = pool->mem + at;
		chunk->region = pool->region;
		chunk->region.offset += at;
		chunk->next = pool->free;
		pool->free = chunk;
	}
}

void MPID_nem_glex_pool_finalize(void)
{
	struct MPID_nem_glex_pool *pool = &MPID_nem_glex.pool;

	if (pool->mem) {
		glexch_unexpose(MPID_nem_glex.ch, (uint64_t)pool->count * (pool->size + MPID_NEM_GLEX_CHUNK_HEAD),
				&pool->region);
		glexch_free(MPID_nem_glex.ch, pool->mem);
	}
	MPL_free(pool->chunks);
	memset(pool, 0, sizeof(*pool));
}

static void MPID_nem_glex_chunk_free(struct MPID_nem_glex_chunk *chunk, enum MPID_nem_glex_side side)
{
	if (side == MPID_NEM_GLEX_SENDS)
		glexch_free(MPID_nem_glex.ch, chunk->alone);
	else
		MPL_free(chunk->alone);
	MPL_free(chunk);
}

/* One that is not of the pool: shareable where peers read it. */
static struct MPID_nem_glex_chunk *MPID_nem_glex_chunk_alone(enum MPID_nem_glex_side side, glex_ret_t *ret)
{
	uint64_t len = MPID_nem_glex.pool.size + MPID_NEM_GLEX_CHUNK_HEAD;
	struct MPID_nem_glex_chunk *chunk = MPL_calloc(1, sizeof(*chunk), MPL_MEM_BUFFER);

	*ret = GLEX_NO_MEM_RESOURCE;
	if (!chunk)
		return NULL;
	chunk->alone =
		side == MPID_NEM_GLEX_SENDS ? glexch_alloc(MPID_nem_glex.ch, len) : MPL_malloc(len, MPL_MEM_BUFFER);
	if (chunk->alone)
		*ret = GLEX_SUCCESS;
	chunk->mem = (uint8_t *)chunk->alone + MPID_NEM_GLEX_CHUNK_HEAD;
	if (chunk->alone && side == MPID_NEM_GLEX_SENDS)
		*ret = glexch_expose(MPID_nem_glex.ch, chunk->mem, MPID_nem_glex.pool.size, 1, &chunk->region);
	if (*ret == GLEX_SUCCESS)
		return chunk;
	MPID_nem_glex_chunk_free(chunk, side);
	return NULL;
}

static void MPID_nem_glex_chunk_count(struct MPID_nem_glex_pool *pool)
{
	uint64_t bytes = (uint64_t)pool->size * (pool->held[0] + pool->held[1]);

	if (bytes > MPID_nem_glex.stats.chunks_max)
		MPID_nem_glex.stats.chunks_max = bytes;
}

/* must: not only one that is free (I1).  ret says why there is none then. */
static struct MPID_nem_glex_chunk *MPID_nem_glex_chunk_get(enum MPID_nem_glex_side side, int must, glex_ret_t *ret)
{
	struct MPID_nem_glex_pool *pool = &MPID_nem_glex.pool;
	struct MPID_nem_glex_chunk *chunk = NULL;

	*ret = GLEX_BUSY;
	if (!pool->opened)
		MPID_nem_glex_pool_open();
	if (pool->free && pool->held[side] < pool->count / 2) {
		chunk = pool->free;
		pool->free = chunk->next;
		*ret = GLEX_SUCCESS;
	} else if (must) {
		chunk = MPID_nem_glex_chunk_alone(side, ret);
	}
	if (chunk) {
		chunk->next = NULL;
		pool->held[side]++;
		MPID_nem_glex_chunk_count(pool);
	}
	return chunk;
}

static void MPID_nem_glex_chunk_put(struct MPID_nem_glex_chunk *chunk, enum MPID_nem_glex_side side)
{
	struct MPID_nem_glex_pool *pool = &MPID_nem_glex.pool;

	pool->held[side]--;
	if (!chunk->alone) {
		chunk->next = pool->free;
		pool->free = chunk;
		return;
	}
	if (side == MPID_NEM_GLEX_SENDS)
		glexch_unexpose(MPID_nem_glex.ch, pool->size, &chunk->region);
	MPID_nem_glex_chunk_free(chunk, side);
}

/* One to receive into, for somebody who cannot wait for it; NULL: no memory. */
struct MPID_nem_glex_chunk *MPID_nem_glex_chunk_borrow(void)
{
	glex_ret_t ret;

	return MPID_nem_glex_chunk_get(MPID_NEM_GLEX_RECEIVES, 1, &ret);
}

void MPID_nem_glex_chunk_return(struct MPID_nem_glex_chunk *chunk)
{
	MPID_nem_glex_chunk_put(chunk, MPID_NEM_GLEX_RECEIVES);
}

/* ---- packets ------------------------------------------------------------- */

static void MPID_nem_glex_say_pkt(MPIDI_VC_t *vc, void *pkt, intptr_t size)
{
	MPIR_Request *req = NULL;
	int mpi_errno = MPIDI_CH3_iStartMsg(vc, pkt, size, &req);

	if (req)
		MPIR_Request_free(req);
	MPID_nem_glex_note(mpi_errno);
}

/* ---- sender -------------------------------------------------------------- */

/* Fills a chunk with what comes next.  It is the request's then. */
static int MPID_nem_glex_pipe_fill(struct MPID_nem_glex_lmt *lmt, struct MPID_nem_glex_chunk *chunk, MPI_Aint *done)
{
	uint64_t left = lmt->cookie->len - lmt->packed;
	uint64_t most = lmt->piece < left ? lmt->piece : left;

	chunk->pos = lmt->packed;
	chunk->next = lmt->chunks;
	lmt->chunks = chunk;
	MPID_nem_glex.stats.chunks++;
	return MPID_nem_glex_pack(lmt->req, &lmt->walk, lmt->packed, chunk->mem, (MPI_Aint)most, done);
}

/* The whole message, if it fits into one chunk, and one is free.  0: it does not. */
int MPID_nem_glex_pipe_whole(struct MPID_nem_glex_lmt *lmt)
{
	struct MPID_nem_glex_chunk *chunk = NULL;
	MPI_Aint done = 0;
	glex_ret_t ret;

	if (lmt->cookie->len && lmt->cookie->len <= MPID_nem_glex.pool.size)
		chunk = MPID_nem_glex_chunk_get(MPID_NEM_GLEX_SENDS, 0, &ret);
	if (!chunk)
		return 0;
	lmt->piece = MPID_nem_glex.pool.size;
	MPID_nem_glex_note(MPID_nem_glex_pipe_fill(lmt, chunk, &done));
	MPID_nem_glex_walk_end(&lmt->walk);
	lmt->cookie->regions[0] = chunk->region;
	lmt->count = 1;
	return 1;
}

void MPID_nem_glex_pipe_release(struct MPID_nem_glex_lmt *lmt)
{
	struct MPID_nem_glex_chunk *chunk;

	MPID_nem_glex_walk_end(&lmt->walk);
	while ((chunk = lmt->chunks)) {
		lmt->chunks = chunk->next;
		MPID_nem_glex_chunk_put(chunk, MPID_NEM_GLEX_SENDS);
	}
}

/* Packs a piece and tells the receiver of it.  The receiver wants no more than lmt_data_sz (I3: nor a part of a type). */
static int MPID_nem_glex_pipe_piece(struct MPID_nem_glex_lmt *lmt, struct MPID_nem_glex_chunk *chunk)
{
	int mpi_errno = MPI_SUCCESS;
	uint64_t want = (uint64_t)lmt->req->ch.lmt_data_sz - lmt->packed;
	struct MPID_nem_glex_pkt_piece pkt = {.receiver_req_id = lmt->req->ch.lmt_req_id};
	MPI_Aint done = 0;

	mpi_errno = MPID_nem_glex_pipe_fill(lmt, chunk, &done);
	MPIR_ERR_CHECK(mpi_errno);
	MPIR_ERR_CHKANDJUMP1(done <= 0, mpi_errno, MPI_ERR_INTERN, "**fail", "%s",
			     "a piece of a datatype does not fit into GLEX_MPI_PACK_SIZE");
	MPIDI_Pkt_init(&pkt.head, MPIDI_NEM_PKT_NETMOD);
	pkt.head.subtype = MPID_NEM_GLEX_PKT_PIECE;
	pkt.len = (uint32_t)((uint64_t)done < want ? (uint64_t)done : want);
	pkt.pos = lmt->packed;
	pkt.region = chunk->region;
	lmt->packed += pkt.len;
	MPID_nem_glex_say_pkt(lmt->vc, &pkt, sizeof(pkt));
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* Goes on as far as there are chunks; first is one already. */
static int MPID_nem_glex_pipe_push(struct MPID_nem_glex_lmt *lmt, struct MPID_nem_glex_chunk *first)
{
	int mpi_errno = MPI_SUCCESS;
	MPIR_Request *req = lmt->req;
	struct MPID_nem_glex_chunk *chunk;
	glex_ret_t ret;

	MPIR_Request_add_ref(req); /* I4 */
	mpi_errno = MPID_nem_glex_pipe_piece(lmt, first);
	while (mpi_errno == MPI_SUCCESS && lmt->cookie && lmt->packed < (uint64_t)req->ch.lmt_data_sz) {
		int held = 0;

		for (chunk = lmt->chunks; chunk; chunk = chunk->next)
			held++;
		chunk = held < MPID_NEM_GLEX_PIPE_DEPTH ? MPID_nem_glex_chunk_get(MPID_NEM_GLEX_SENDS, 0, &ret) : NULL;
		if (!chunk)
			break;
		mpi_errno = MPID_nem_glex_pipe_piece(lmt, chunk);
	}
	MPIR_Request_free(req);
	return mpi_errno;
}

/* The receiver waits for it.  1: begun; 0: not now; -1: it cannot go this way. */
int MPID_nem_glex_pipe_start(struct MPID_nem_glex_lmt *lmt, int *mpi_errno_p)
{
	glex_ret_t ret;
	int must = !MPID_nem_glex.pool.mem || lmt->tries++ > MPID_NEM_GLEX_PATIENCE; /* I1 */
	struct MPID_nem_glex_chunk *chunk = MPID_nem_glex_chunk_get(MPID_NEM_GLEX_SENDS, must, &ret);

	if (!chunk)
		return ret == GLEX_BUSY ? 0 : -1;
	*mpi_errno_p = MPID_nem_glex_pipe_push(lmt, chunk);
	return 1;
}

/* TAKEN: a chunk is free for the next piece. */
static int MPID_nem_glex_pipe_taken(MPIDI_VC_t *vc, MPIDI_CH3_Pkt_t *pkt, void *data, intptr_t *buflen,
				    MPIR_Request **rreqp)
{
	int mpi_errno = MPI_SUCCESS;
	const struct MPID_nem_glex_pkt_taken *taken = (const void *)pkt;
	struct MPID_nem_glex_chunk **p, *chunk;
	struct MPID_nem_glex_lmt *lmt;
	MPIR_Request *req;

	*buflen = 0;
	*rreqp = NULL;
	MPIR_Request_get_ptr(taken->sender_req_id, req);
	lmt = &MPID_nem_glex_req(req)->lmt;
	for (p = &lmt->chunks; *p && (*p)->pos != taken->pos; p = &(*p)->next)
		;
	MPIR_ERR_CHKANDJUMP1(!*p, mpi_errno, MPI_ERR_INTERN, "**fail", "%s", "a piece was taken that was not sent");
	chunk = *p;
	*p = chunk->next;
	if (lmt->packed < (uint64_t)req->ch.lmt_data_sz)
		mpi_errno = MPID_nem_glex_pipe_push(lmt, chunk);
	else
		MPID_nem_glex_chunk_put(chunk, MPID_NEM_GLEX_SENDS);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* ---- receiver ------------------------------------------------------------ */

static uint64_t MPID_nem_glex_fetch_len(const struct MPID_nem_glex_fetch *fetch)
{
	return (uint64_t)fetch->req->ch.lmt_data_sz;
}

/* The last of those that wait for a chunk. */
static void MPID_nem_glex_fetch_wait(struct MPID_nem_glex_fetch *fetch)
{
	struct MPID_nem_glex_fetch **p;

	for (p = &MPID_nem_glex.fetch_waiting; *p && *p != fetch; p = &(*p)->next)
		;
	if (!*p)
		*p = fetch;
}

static void MPID_nem_glex_fetch_wait_no_more(struct MPID_nem_glex_fetch *fetch)
{
	struct MPID_nem_glex_fetch **p;

	for (p = &MPID_nem_glex.fetch_waiting; *p && *p != fetch; p = &(*p)->next)
		;
	if (*p)
		*p = fetch->next;
	fetch->next = NULL;
}

static void MPID_nem_glex_piece_free(struct MPID_nem_glex_fetch *fetch, struct MPID_nem_glex_piece *piece)
{
	if (piece->chunk) {
		MPID_nem_glex_chunk_put(piece->chunk, MPID_NEM_GLEX_RECEIVES);
		fetch->held--;
	}
	MPL_free(piece);
}

static void MPID_nem_glex_fetch_clear(struct MPID_nem_glex_fetch *fetch)
{
	struct MPID_nem_glex_piece *piece;

	while ((piece = fetch->pieces)) {
		fetch->pieces = piece->next;
		MPID_nem_glex_piece_free(fetch, piece);
	}
	MPID_nem_glex_walk_end(&fetch->walk);
	MPL_free(fetch->cookie);
	fetch->cookie = NULL;
	fetch->asked = fetch->done = 0;
	fetch->scraps = 0;
}

/* The request is complete, however it came to that. */
void MPID_nem_glex_fetch_release(MPIR_Request *req)
{
	struct MPID_nem_glex_fetch *fetch = &MPID_nem_glex_req(req)->fetch;

	MPID_nem_glex_fetch_wait_no_more(fetch);
	MPID_nem_glex_fetch_clear(fetch);
	MPID_nem_glex_accepted_no_more(fetch);
	fetch->over = 1;
}

/* One more piece is to come: the last, so far. */
static int MPID_nem_glex_piece_add(struct MPID_nem_glex_fetch *fetch, uint64_t len, const struct glexch_region *region)
{
	struct MPID_nem_glex_piece **p, *piece = MPL_calloc(1, sizeof(*piece), MPL_MEM_BUFFER);

	if (!piece)
		return 0;
	piece->req = fetch->req;
	piece->pos = fetch->asked;
	piece->len = len;
	if (region)
		piece->region = *region;
	fetch->asked += len;
	for (p = &fetch->pieces; *p; p = &(*p)->next)
		;
	*p = piece;
	return 1;
}

static void MPID_nem_glex_piece_got(void *arg, enum glexch_got got);

/* Begins the GET of a piece.  0: there is no memory. */
static int MPID_nem_glex_piece_get(struct MPID_nem_glex_fetch *fetch, struct MPID_nem_glex_piece *piece)
{
	struct glexch_conn *conn = MPID_nem_glex_vc(fetch->vc)->conn;
	const struct glexch_region *regions = fetch->cookie ? fetch->cookie->regions : &piece->region;
	uint64_t from = fetch->cookie ? piece->pos : 0;
	uint8_t *to = piece->chunk ? piece->chunk->mem : fetch->buf + piece->pos;

	if (!glexch_get_part(conn, to, piece->len, regions, from, MPID_nem_glex_piece_got, piece))
		return 0;
	piece->state = MPID_NEM_GLEX_COMING;
	fetch->under_way++;
	return 1;
}

/* I5 */
static void MPID_nem_glex_fetch_in_vain(struct MPID_nem_glex_fetch *fetch, const char *why)
{
	fetch->vain = 1;
	fetch->req->status.MPI_ERROR = MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__,
							    MPI_ERR_OTHER, "**fail", "%s", why);
}

/* Begins what can be begun. */
static void MPID_nem_glex_fetch_push(struct MPID_nem_glex_fetch *fetch)
{
	uint64_t total = MPID_nem_glex_fetch_len(fetch), most = fetch->buf ? total : MPID_nem_glex.pool.size;
	struct MPID_nem_glex_piece *piece;
	int n = 0, ok = 1;
	glex_ret_t ret;

	for (piece = fetch->pieces; piece; piece = piece->next)
		n++;
	for (; ok && fetch->cookie && fetch->asked < total && n < MPID_NEM_GLEX_PIPE_DEPTH; n++)
		ok = MPID_nem_glex_piece_add(fetch, most < total - fetch->asked ? most : total - fetch->asked, NULL);
	for (piece = fetch->pieces; ok && piece; piece = piece->next) {
		if (piece->state != MPID_NEM_GLEX_WAITING)
			continue;
		if (!fetch->buf && !piece->chunk) {
			piece->chunk = MPID_nem_glex_chunk_get(MPID_NEM_GLEX_RECEIVES, 0, &ret);
			if (!piece->chunk && !fetch->held && !MPID_nem_glex.pool.mem)
				piece->chunk = MPID_nem_glex_chunk_get(MPID_NEM_GLEX_RECEIVES, 1, &ret);
			if (!piece->chunk)
				break;
			fetch->held++;
			MPID_nem_glex.stats.chunks++;
		}
		ok = MPID_nem_glex_piece_get(fetch, piece);
	}
	if (fetch->under_way)
		return;
	if (ok && MPID_nem_glex.pool.mem)
		MPID_nem_glex_fetch_wait(fetch);
	else /* without memory it would wait for ever */
		MPID_nem_glex_fetch_in_vain(fetch, MPID_NEM_GLEX_NO_MEMORY);
}

/* A piece has arrived, and all before it is in place. */
static void MPID_nem_glex_piece_place(struct MPID_nem_glex_fetch *fetch, const struct MPID_nem_glex_piece *piece)
{
	MPI_Aint len = (MPI_Aint)piece->len + fetch->scraps, done = 0;
	uint8_t *from;
	int mpi_errno;

	fetch->done += piece->len;
	if (!piece->chunk)
		return;
	from = piece->chunk->mem - fetch->scraps;
	memcpy(from, fetch->scrap, fetch->scraps);
	mpi_errno = MPID_nem_glex_unpack(fetch->req, &fetch->walk, piece->pos - fetch->scraps, from, len, &done);
	if (mpi_errno == MPI_SUCCESS && len - done > MPID_NEM_GLEX_SCRAP)
		MPIR_ERR_SET1(mpi_errno, MPI_ERR_INTERN, "**fail", "%s", "a piece of a datatype cannot be unpacked");
	if (mpi_errno != MPI_SUCCESS) { /* the peer is to go on */
		fetch->req->status.MPI_ERROR = mpi_errno;
		done = len;
	}
	fetch->scraps = (uint8_t)(len - done);
	memcpy(fetch->scrap, from + done, fetch->scraps);
}

/* Nothing is under way any more: another way, or the end. */
static void MPID_nem_glex_fetch_failed(struct MPID_nem_glex_fetch *fetch)
{
	MPIR_Request *req = fetch->req;

	MPID_nem_glex_fetch_clear(fetch);
	if (fetch->failed == GLEXCH_GOT_NO_ACCESS) {
		fetch->failed = GLEXCH_GOT_ALL;
		fetch->again = 1;
		MPID_nem_glex_note(MPID_nem_glex_ask(fetch->vc, req, MPID_NEM_GLEX_WANT_COPY));
		return;
	}
	req->status.MPI_ERROR = MPID_nem_glex_comm_error(fetch->vc);
	MPID_nem_glex_note(MPID_Request_complete(req));
}

static int MPID_nem_glex_fetch_done(struct MPID_nem_glex_fetch *fetch)
{
	int mpi_errno = MPI_SUCCESS;
	MPIR_Request *req = fetch->req;

	if (fetch->buf && fetch->cookie)
		MPID_nem_glex_copied_from(fetch->buf, MPID_nem_glex_vc(fetch->vc)->conn);
	MPID_nem_lmt_send_DONE(fetch->vc, req);
	if (!fetch->over) /* I4 */
		mpi_errno = MPID_Request_complete(req);
fn_exit:
	return mpi_errno;
fn_fail:
	req->status.MPI_ERROR = mpi_errno;
	if (!fetch->over)
		MPID_nem_glex_note(MPID_Request_complete(req));
	goto fn_exit;
}

/* Its chunk at the sender may be filled again, if anything is left to be. */
static void MPID_nem_glex_piece_taken(struct MPID_nem_glex_fetch *fetch, uint64_t pos)
{
	struct MPID_nem_glex_pkt_taken pkt = {.sender_req_id = fetch->req->ch.lmt_req_id, .pos = pos};

	if (fetch->cookie || fetch->asked == MPID_nem_glex_fetch_len(fetch))
		return;
	MPIDI_Pkt_init(&pkt.head, MPIDI_NEM_PKT_NETMOD);
	pkt.head.subtype = MPID_NEM_GLEX_PKT_TAKEN;
	MPID_nem_glex_say_pkt(fetch->vc, &pkt, sizeof(pkt));
}

/* I5: of what has not been begun, and to the end if nothing is under way. */
static void MPID_nem_glex_fetch_skip(struct MPID_nem_glex_fetch *fetch)
{
	struct MPID_nem_glex_piece **p = &fetch->pieces, *piece;

	while ((piece = *p)) {
		int waits = piece->state == MPID_NEM_GLEX_WAITING;
		uint64_t pos = piece->pos;

		if (piece->state == MPID_NEM_GLEX_COMING) {
			p = &piece->next;
			continue;
		}
		*p = piece->next;
		MPID_nem_glex_piece_free(fetch, piece);
		if (waits)
			MPID_nem_glex_piece_taken(fetch, pos);
		if (fetch->over) /* I4 */
			return;
	}
	if (!fetch->under_way && (fetch->cookie || fetch->asked == MPID_nem_glex_fetch_len(fetch)))
		MPID_nem_glex_note(MPID_nem_glex_fetch_done(fetch));
}

/* Puts in place what is next, and goes on. */
static void MPID_nem_glex_fetch_settle(struct MPID_nem_glex_fetch *fetch)
{
	struct MPID_nem_glex_piece *piece;

	while (!fetch->failed && !fetch->vain && (piece = fetch->pieces) && piece->state == MPID_NEM_GLEX_ARRIVED) {
		MPID_nem_glex_piece_place(fetch, piece);
		fetch->pieces = piece->next;
		MPID_nem_glex_piece_free(fetch, piece);
	}
	if (!fetch->failed && !fetch->vain && fetch->done == MPID_nem_glex_fetch_len(fetch)) {
		MPID_nem_glex_note(MPID_nem_glex_fetch_done(fetch));
		return;
	}
	if (!fetch->failed && !fetch->vain && (fetch->cookie || fetch->pieces))
		MPID_nem_glex_fetch_push(fetch);
	if (fetch->failed && !fetch->under_way)
		MPID_nem_glex_fetch_failed(fetch);
	else if (fetch->vain && !fetch->failed)
		MPID_nem_glex_fetch_skip(fetch);
}

/* A GET has ended. */
static void MPID_nem_glex_piece_got(void *arg, enum glexch_got got)
{
	struct MPID_nem_glex_piece *piece = arg;
	MPIR_Request *req = piece->req;
	struct MPID_nem_glex_fetch *fetch = &MPID_nem_glex_req(req)->fetch;

	piece->state = MPID_NEM_GLEX_ARRIVED;
	fetch->under_way--;
	if (got == GLEXCH_GOT_NO_ACCESS && fetch->again && !fetch->vain)
		MPID_nem_glex_fetch_in_vain(fetch, "the copy of a message cannot be reached either");
	if (got == GLEXCH_GOT_NO_ACCESS && fetch->vain)
		got = GLEXCH_GOT_ALL;
	if (got != GLEXCH_GOT_ALL && fetch->failed != GLEXCH_GOT_LOST_PEER)
		fetch->failed = (uint8_t)got;
	MPIR_Request_add_ref(req); /* I4 */
	if (!fetch->failed)
		MPID_nem_glex_piece_taken(fetch, piece->pos);
	if (!fetch->over)
		MPID_nem_glex_fetch_settle(fetch);
	MPIR_Request_free(req);
}

/* Fetches a message whose handles are known.  The cookie is kept, and freed. */
int MPID_nem_glex_fetch(MPIDI_VC_t *vc, MPIR_Request *req, struct MPID_nem_glex_cookie *cookie)
{
	struct MPID_nem_glex_fetch *fetch = &MPID_nem_glex_req(req)->fetch;
	intptr_t size;

	MPL_free(fetch->cookie);
	fetch->cookie = cookie;
	fetch->buf = MPID_nem_glex_contig(req, &size);
	MPID_nem_glex.stats.unpacked += !fetch->buf;
	MPIR_Request_add_ref(req); /* I4 */
	MPID_nem_glex_fetch_settle(fetch);
	MPIR_Request_free(req);
	return MPI_SUCCESS;
}

/* Chunks may be free for those that wait. */
void MPID_nem_glex_fetch_retry(void)
{
	struct MPID_nem_glex_pool *pool = &MPID_nem_glex.pool;
	struct MPID_nem_glex_fetch *fetch;

	while ((fetch = MPID_nem_glex.fetch_waiting) && pool->free &&
	       pool->held[MPID_NEM_GLEX_RECEIVES] < pool->count / 2) {
		MPIR_Request *req = fetch->req;

		MPID_nem_glex_fetch_wait_no_more(fetch);
		MPIR_Request_add_ref(req); /* I4 */
		MPID_nem_glex_fetch_settle(fetch);
		MPIR_Request_free(req);
	}
}

/* PIECE: the sender has packed one. */
static int MPID_nem_glex_piece_come(MPIDI_VC_t *vc, MPIDI_CH3_Pkt_t *pkt, void *data, intptr_t *buflen,
				    MPIR_Request **rreqp)
{
	int mpi_errno = MPI_SUCCESS;
	const struct MPID_nem_glex_pkt_piece *come = (const void *)pkt;
	struct MPID_nem_glex_fetch *fetch;
	MPIR_Request *req;
	intptr_t size;

	*buflen = 0;
	*rreqp = NULL;
	MPIR_Request_get_ptr(come->receiver_req_id, req);
	fetch = &MPID_nem_glex_req(req)->fetch;
	MPIR_ERR_CHKANDJUMP1(fetch->cookie || come->pos != fetch->asked || !come->len ||
				     come->len > MPID_nem_glex.pool.size ||
				     come->len > MPID_nem_glex_fetch_len(fetch) - fetch->asked,
			     mpi_errno, MPI_ERR_INTERN, "**fail", "%s", "a piece of a rendezvous contradicts it");
	if (!come->pos) {
		fetch->buf = MPID_nem_glex_contig(req, &size);
		MPID_nem_glex.stats.unpacked += !fetch->buf;
	}
	MPIR_Request_add_ref(req); /* I4 */
	if (!fetch->vain && !MPID_nem_glex_piece_add(fetch, come->len, &come->region))
		MPID_nem_glex_fetch_in_vain(fetch, MPID_NEM_GLEX_NO_MEMORY);
	if (fetch->vain) {
		fetch->asked += come->len;
		MPID_nem_glex_piece_taken(fetch, come->pos);
	}
	if (!fetch->over)
		MPID_nem_glex_fetch_settle(fetch);
	MPIR_Request_free(req);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

MPIDI_CH3_PktHandler_Fcn *MPID_nem_glex_pkt_handlers[MPID_NEM_GLEX_PKT_HANDLERS] = {
	[MPID_NEM_GLEX_PKT_PIECE] = MPID_nem_glex_piece_come,
	[MPID_NEM_GLEX_PKT_TAKEN] = MPID_nem_glex_pipe_taken,
};
