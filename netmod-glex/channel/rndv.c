/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rndv.c - zero copy: the receiver GETs out of the sender's buffer into its own, or
 * the sender PUTs into the receiver's.
 *
 * A buffer is exposed in parts of GLEXCH_REGION_BYTES, each with its region of
 * the registration cache, because an offset has 32 bits.  A get walks through them; each region is cut
 * into pieces, a few of which are under way at once:
 *
 *      region 0                region 1            the last
 *      [piece|piece|piece|...] [piece|piece|...]   [...]
 *                  ^ pos                ^ its own side is got from the cache when pos comes to it,
 *                                         after the pieces of the one before have arrived
 *
 * I1  A piece under way has a slot of ch->pieces; its event names slot and
 *     generation, so one that comes late changes nothing.  It ends with that
 *     event, or with an error request that names handle and offset.
 * I2  A process exposes no more than a share of the memory table unasked, as much
 *     again for peers that wait, and registers its own side for GLEXCH_PIECES
 *     gets at most; what all caches keep idle is half of the table at most: so it
 *     is never full of what only more registrations could finish.
 *     Where the system allows less, what cannot be registered here, whatever the
 *     reason, comes through blocks of the pool: slower, but it comes.
 * I3  done is called by glexch_rndv_run and glexch_rndv_drop only: never inside
 *     glexch_get, and with the get off the list.
 * I4  A get has lost its peer only if the connection fails, too: who has not got all of
 *     it else would wait for the rest of it, and the peer for its end.
 */
#include "chan_priv.h"

#include <stdlib.h>

#define GLEXCH_PIECE_BYTES  (1u << 20)
#define GLEXCH_POSTS_MAX    8	  /* pieces posted in one round */
#define GLEXCH_SHARE_MIN    4	  /* regions */
#define GLEXCH_REGISTER_GAP 0x3fu /* rounds between attempts while the memory table is full */

struct glexch_get {
	struct glexch_get *next;
	struct glexch_conn *conn;
	uint8_t *buf;
	uint64_t len;
	uint64_t from;			 /* where in the peer's regions buf begins */
	uint64_t pos;			 /* posted up to here */
	struct glex_rcache_region local; /* of the part pos is in */
	int open;			 /* local is held */
	uint32_t under_way;		 /* pieces */
	int puts;			 /* the other way: from buf */
	enum glexch_got failed;
	int refused;	   /* as by a full memory table: asked again now and then */
	const char *why;   /* the peer is lost, if the channel knows no better */
	glex_event_t tell; /* the peer, with the last piece; no cookie_1: nothing */
	glexch_get_fn done;
	void *arg;
	struct glexch_region regions[];
};

/* ---- exposing ------------------------------------------------------------ */

static uint64_t glexch_region_len(uint64_t len, uint64_t start)
{
	return len - start < GLEXCH_REGION_BYTES ? len - start : GLEXCH_REGION_BYTES;
}

void *glexch_alloc(struct glexch *ch, uint64_t len)
{
	void *mem;

	return glex_alloc(ch->dev, len, &mem) == GLEX_SUCCESS ? mem : NULL;
}

void glexch_free(struct glexch *ch, void *mem)
{
	if (mem)
		glex_free(ch->dev, mem);
}

uint32_t glexch_region_share(uint32_t units, uint32_t sharers)
{
	uint32_t share = units / (8 * (sharers ? sharers : 1));

	return share > GLEXCH_SHARE_MIN ? share : GLEXCH_SHARE_MIN;
}

glex_ret_t glexch_rndv_open(struct glexch *ch)
{
	uint32_t i;

	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_COUNT, .max_count = 4 * ch->exposed_max};
	uint64_t most;

	for (i = 0; i < GLEXCH_PIECES; i++)
		ch->pieces[i].block = GLEXCH_NONE;
	if (glex_config_uint("GLEX_RCACHE_MAX_COUNT", &most) == GLEX_SUCCESS && most < attr.max_count)
		attr.max_count = most;
	return glex_rcache_create(ch->ep, &attr, &ch->rc);
}

void glexch_rndv_close(struct glexch *ch)
{
	if (ch->rc)
		glex_rcache_destroy(ch->rc);
	ch->rc = NULL;
}

/* Whether so many more may be exposed.  I2; a single buffer may be of any length. */
static int glexch_may_expose(struct glexch *ch, uint32_t n, int wanted)
{
	uint32_t most = wanted ? 2 * ch->exposed_max : ch->exposed_max;

	if (!ch->exposed || ch->exposed + n <= most)
		return 1;
	ch->stats.expose_refused++;
	return 0;
}

static void glexch_show(struct glexch *ch, const struct glex_rcache_region *got, struct glexch_region *region)
{
	region->handle = got->mh.v;
	region->offset = got->offset;
	region->slot = got->slot;
	ch->exposed++;
}

static void glexch_hide(struct glexch *ch, const struct glexch_region *region)
{
	struct glex_rcache_region held = {.mh = {.v = region->handle}, .offset = region->offset, .slot = region->slot};

	glex_rcache_put(ch->rc, &held);
	ch->exposed--;
}

glex_ret_t glexch_expose(struct glexch *ch, void *buf, uint64_t len, int wanted, struct glexch_region *regions)
{
	uint32_t i, n = glexch_region_count(len);

	if (!glexch_may_expose(ch, n, wanted))
		return GLEX_BUSY;
	for (i = 0; i < n; i++) {
		uint64_t start = i * GLEXCH_REGION_BYTES;
		struct glex_rcache_region got;
		glex_ret_t ret = glex_rcache_get(ch->rc, (uint8_t *)buf + start, glexch_region_len(len, start),
						 GLEX_MEM_READ, &got);

		if (ret != GLEX_SUCCESS) {
			glexch_unexpose(ch, start, regions);
			ch->stats.expose_refused += ret == GLEX_NO_MEM_RESOURCE;
			return ret;
		}
		glexch_show(ch, &got, &regions[i]);
	}
	return GLEX_SUCCESS;
}

/* A buffer of one region, if peers map it. */
static int glexch_expose_mapped(struct glexch *ch, void *buf, uint64_t len, int flags, int wanted,
				struct glexch_region *region)
{
	struct glex_rcache_region got;

	if (len > GLEXCH_REGION_BYTES || !glexch_may_expose(ch, 1, wanted) ||
	    glex_rcache_get(ch->rc, buf, len, flags, &got) != GLEX_SUCCESS)
		return 0;
	if (!got.mapped) {
		glex_rcache_put(ch->rc, &got);
		return 0;
	}
	glexch_show(ch, &got, region);
	return 1;
}

int glexch_expose_near(struct glexch *ch, void *buf, uint64_t len, struct glexch_region *region)
{
	return glexch_expose_mapped(ch, buf, len, GLEX_MEM_READ, 0, region);
}

int glexch_accept(struct glexch *ch, void *buf, uint64_t len, struct glexch_region *region)
{
	return glexch_expose_mapped(ch, buf, len, GLEX_MEM_READ | GLEX_MEM_WRITE, 1, region);
}

void glexch_revoke(struct glexch *ch, void *buf, uint64_t len, const struct glexch_region *region)
{
	glex_mem_invalidate(buf, len); /* first: then the cache does not keep what is put back, but deregisters it */
	glexch_hide(ch, region);
}

void glexch_unexpose(struct glexch *ch, uint64_t len, const struct glexch_region *regions)
{
	uint32_t i, n = glexch_region_count(len);

	for (i = 0; i < n; i++)
		glexch_hide(ch, &regions[i]);
}

/* ---- posting ------------------------------------------------------------- */

static void glexch_get_close_region(struct glexch *ch, struct glexch_get *get)
{
	if (get->open)
		glex_rcache_put(ch->rc, &get->local);
	get->open = 0;
}

/* Gets our side of the part at pos.  0: not now, or failed. */
static int glexch_get_open_region(struct glexch *ch, struct glexch_get *get)
{
	uint64_t start = get->pos - get->pos % GLEXCH_REGION_BYTES;
	glex_ret_t ret;

	if (get->open)
		return 1;
	if (get->refused && (ch->tick & GLEXCH_REGISTER_GAP))
		return 0;
	ret = glex_rcache_get(ch->rc, get->buf + start, glexch_region_len(get->len, start), 0, &get->local);
	get->open = ret == GLEX_SUCCESS;
	get->refused = !get->open; /* whyever: the peer is not to wait for what is wrong here */
	return get->open;
}

static uint32_t glexch_piece_find(struct glexch *ch)
{
	uint32_t i;

	for (i = 0; i < GLEXCH_PIECES; i++)
		if (!ch->pieces[i].get && ch->pieces[i].block == GLEXCH_NONE)
			return i;
	return GLEXCH_NONE;
}

/* A receive block for a piece; not the last one, if another piece has one: block.c, I3. */
static uint32_t glexch_piece_block(struct glexch *ch)
{
	if (ch->rx.free <= (ch->get_blocks != 0)) {
		ch->hungry = !ch->get_blocks;
		return GLEXCH_NONE;
	}
	ch->hungry = 0;
	ch->get_blocks++;
	return glexch_block_take(&ch->rx);
}

static void glexch_piece_put_block(struct glexch *ch, struct glexch_piece *piece)
{
	if (piece->block == GLEXCH_NONE)
		return;
	glexch_block_put(&ch->rx, piece->block);
	ch->get_blocks--;
	piece->block = GLEXCH_NONE;
}

/* Where the next n bytes go: the buffer, or a block.  Returns how many; 0: nowhere now. */
static uint32_t glexch_get_place(struct glexch *ch, struct glexch_get *get, uint64_t n, struct glexch_piece *piece,
				 struct glex_rdma_req *req)
{
	piece->block = GLEXCH_NONE;
	piece->at = get->pos;
	if (glexch_get_open_region(ch, get)) {
		req->local_mh = get->local.mh;
		req->local_offset = get->local.offset + (uint32_t)(get->pos % GLEXCH_REGION_BYTES);
		return (uint32_t)(n < ch->max_rdma ? n : ch->max_rdma);
	}
	if (!get->refused)
		return 0;
	if (get->puts) { /* blocks are for what comes */
		get->failed = GLEXCH_GOT_NO_ACCESS;
		return 0;
	}
	piece->block = glexch_piece_block(ch);
	if (piece->block == GLEXCH_NONE)
		return 0;
	req->local_mh = ch->pool_mh;
	req->local_offset = glexch_block_offset(ch, &ch->rx, piece->block);
	return n < ch->block_size ? (uint32_t)n : ch->block_size;
}

/* Posts the next piece.  0: there is none, or not now. */
static int glexch_get_post(struct glexch *ch, struct glexch_get *get)
{
	uint64_t in_region = get->pos % GLEXCH_REGION_BYTES;
	uint64_t at = get->from + get->pos, in_remote = at % GLEXCH_REGION_BYTES;
	uint64_t n = GLEXCH_REGION_BYTES - (in_region > in_remote ? in_region : in_remote);
	struct glex_rdma_req req;
	const struct glexch_region *remote;
	uint32_t slot;
	glex_ret_t ret;

	if (get->pos == get->len || get->failed || (in_region == 0 && get->under_way))
		return 0;
	slot = glexch_piece_find(ch);
	if (slot == GLEXCH_NONE) /* I2: first */
		return 0;
	if (n > get->len - get->pos)
		n = get->len - get->pos;
	n = glexch_get_place(ch, get, n, &ch->pieces[slot], &req);
	if (!n)
		return 0;
	req.flag = GLEX_FLAG_LOCAL_EVT;
	req.rmt_evt = get->tell;
	if (get->tell.cookie_1 && get->pos + n == get->len) {
		if (get->under_way) { /* the last arrives last */
			glexch_piece_put_block(ch, &ch->pieces[slot]);
			return 0;
		}
		req.flag |= GLEX_FLAG_REMOTE_EVT;
	}
	req.rmt_ep_addr.v = get->conn->peer;
	req.len = (uint32_t)n;
	remote = &get->regions[at / GLEXCH_REGION_BYTES];
	req.rmt_mh.v = remote->handle;
	req.rmt_offset = remote->offset + (uint32_t)in_remote;
	req.type = get->puts ? GLEX_RDMA_TYPE_PUT : GLEX_RDMA_TYPE_GET;
	req.local_evt.cookie_0 = ++ch->pieces[slot].gen; /* I1 */
	req.local_evt.cookie_1 = (uint64_t)slot << 8 | GLEXCH_EV_PIECE;
	req.rmt_key = get->conn->key;
	req.coll_counter = req.coll_set_num = 0;
	req.next = NULL;
	ret = glex_rdma(ch->ep, &req, NULL);
	if (ret != GLEX_SUCCESS) {
		glexch_piece_put_block(ch, &ch->pieces[slot]);
		if (ret != GLEX_BUSY) {
			get->failed = GLEXCH_GOT_LOST_PEER;
			get->why = glex_error_str(ret);
		}
		return 0;
	}
	ch->pieces[slot].get = get;
	ch->pieces[slot].len = req.len;
	ch->pieces[slot].handle = req.rmt_mh.v;
	ch->pieces[slot].offset = req.rmt_offset;
	get->under_way++;
	get->pos += n;
	return 1;
}

static int glexch_get_push(struct glexch *ch, struct glexch_get *get, int posts)
{
	while (posts > 0 && glexch_get_post(ch, get))
		posts--;
	return posts;
}

struct glexch_get *glexch_get(struct glexch_conn *conn, void *buf, uint64_t len, const struct glexch_region *regions,
			      glexch_get_fn done, void *arg)
{
	return glexch_get_part(conn, buf, len, regions, 0, done, arg);
}

struct glexch_get *glexch_get_part(struct glexch_conn *conn, void *buf, uint64_t len,
				   const struct glexch_region *regions, uint64_t from, glexch_get_fn done, void *arg)
{
	return glexch_get_and_tell(conn, buf, len, regions, from, NULL, done, arg);
}

/* One that is begun next. */
static struct glexch_get *glexch_get_new(struct glexch_conn *conn, void *buf, uint64_t len,
					 const struct glexch_region *regions, uint64_t from, glexch_get_fn done,
					 void *arg)
{
	const struct glexch_region *first = regions + from / GLEXCH_REGION_BYTES;
	uint32_t n = glexch_region_count(from % GLEXCH_REGION_BYTES + len);
	struct glexch_get **p, *get = malloc(sizeof(*get) + n * sizeof(*regions));

	if (!get)
		return NULL;
	/* one after another: to clear it as a whole takes longer than to fill it */
	get->next = NULL;
	get->conn = conn;
	get->buf = buf;
	get->len = len;
	get->from = from % GLEXCH_REGION_BYTES;
	get->pos = 0;
	get->open = 0;
	get->under_way = 0;
	get->puts = 0;
	get->refused = 0;
	get->why = NULL;
	get->tell = (glex_event_t){0};
	for (uint32_t i = 0; i < n; i++)
		get->regions[i] = first[i];
	get->done = done;
	get->arg = arg;
	get->failed = conn->slow & GLEXCH_SLOW_FAILED ? GLEXCH_GOT_LOST_PEER : GLEXCH_GOT_ALL;
	for (p = &conn->ch->gets; *p; p = &(*p)->next)
		;
	*p = get;
	return get;
}

/* tell: an event for the peer, when all of it has arrived; or NULL. */
struct glexch_get *glexch_get_and_tell(struct glexch_conn *conn, void *buf, uint64_t len,
				       const struct glexch_region *regions, uint64_t from, const glex_event_t *tell,
				       glexch_get_fn done, void *arg)
{
	struct glexch_get *get = glexch_get_new(conn, buf, len, regions, from, done, arg);

	if (!get)
		return NULL;
	if (tell)
		get->tell = *tell;
	glexch_count(conn->ch, GLEXCH_WAY_GET, len);
	glexch_get_push(conn->ch, get, GLEXCH_POSTS_MAX);
	return get;
}

struct glexch_get *glexch_put(struct glexch_conn *conn, void *buf, uint64_t len, const struct glexch_region *region,
			      glexch_get_fn done, void *arg)
{
	return glexch_put_and_tell(conn, buf, len, region, NULL, done, arg);
}

/* tell: as above. */
struct glexch_get *glexch_put_and_tell(struct glexch_conn *conn, void *buf, uint64_t len,
				       const struct glexch_region *region, const glex_event_t *tell, glexch_get_fn done,
				       void *arg)
{
	struct glexch_get *get = glexch_get_new(conn, buf, len, region, 0, done, arg);

	if (!get)
		return NULL;
	get->puts = 1;
	if (tell)
		get->tell = *tell;
	glexch_count(conn->ch, GLEXCH_WAY_PUT, len);
	glexch_get_push(conn->ch, get, GLEXCH_POSTS_MAX);
	return get;
}

/* ---- finishing ----------------------------------------------------------- */

static void glexch_get_unlink(struct glexch *ch, struct glexch_get *get)
{
	struct glexch_get **p;

	for (p = &ch->gets; *p != get; p = &(*p)->next)
		;
	*p = get->next;
	glexch_get_close_region(ch, get);
}

/* I4 */
static void glexch_get_finish(struct glexch *ch, struct glexch_get *get)
{
	if (get->failed == GLEXCH_GOT_LOST_PEER && !(get->conn->slow & GLEXCH_SLOW_FAILED)) {
		glexch_conn_fail(get->conn, get->why);
		return;
	}
	glexch_get_unlink(ch, get);
	get->done(get->arg, get->failed); /* I3 */
	free(get);
}

/* Local event of a piece. */
void glexch_rndv_arrived(struct glexch *ch, uint32_t index, uint32_t gen)
{
	struct glexch_piece *piece;
	struct glexch_get *get;

	if (index >= GLEXCH_PIECES || ch->pieces[index].gen != gen) /* I1 */
		return;
	piece = &ch->pieces[index];
	get = piece->get;
	if (get && piece->block != GLEXCH_NONE)
		memcpy(get->buf + piece->at, glexch_block_mem(ch, &ch->rx, piece->block), piece->len);
	glexch_piece_put_block(ch, piece);
	if (!get)
		return;
	piece->get = NULL;
	if (--get->under_way == 0 && get->pos % GLEXCH_REGION_BYTES == 0)
		glexch_get_close_region(ch, get);
}

/* Error request: memory of a peer could not be reached.  0: none of our pieces was meant. */
int glexch_rndv_no_access(struct glexch *ch, glex_ep_addr_t addr, const struct glex_err_req *err)
{
	uint32_t i;

	for (i = 0; i < GLEXCH_PIECES; i++) {
		struct glexch_piece *piece = &ch->pieces[i];

		if (!piece->get || piece->handle != err->data0 || piece->offset != err->data1 ||
		    !glexch_conn_at(piece->get->conn, addr))
			continue;
		piece->get->failed = GLEXCH_GOT_NO_ACCESS;
		piece->get->under_way--;
		piece->get = NULL;
		glexch_piece_put_block(ch, piece);
		return 1;
	}
	return 0;
}

/* Posts what can be posted, reports what has ended. */
void glexch_rndv_run(struct glexch *ch)
{
	int posts = GLEXCH_POSTS_MAX;
	struct glexch_get *get = ch->gets;

	ch->hungry = 0; /* who still is will say so again */
	while (get) {
		if (!get->under_way && (get->failed || get->pos == get->len)) {
			glexch_get_finish(ch, get);
			get = ch->gets; /* done may have changed the list */
			continue;
		}
		posts = glexch_get_push(ch, get, posts);
		get = get->next;
	}
}

/* The connection ends: pieces under way are forgotten. */
void glexch_rndv_drop(struct glexch_conn *conn, int tell)
{
	struct glexch *ch = conn->ch;
	struct glexch_get *get = ch->gets;
	uint32_t i;

	while (get) {
		if (get->conn != conn) {
			get = get->next;
			continue;
		}
		for (i = 0; i < GLEXCH_PIECES; i++) {
			if (ch->pieces[i].get != get)
				continue;
			ch->pieces[i].get = NULL;
			if (tell) /* the peer is dead: no event will come; else its block waits for it */
				glexch_piece_put_block(ch, &ch->pieces[i]);
		}
		glexch_get_unlink(ch, get);
		if (tell)
			get->done(get->arg, GLEXCH_GOT_LOST_PEER);
		free(get);
		get = ch->gets;
	}
}
