/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chan.c - the channel: opening, closing, and the round of progress.
 *
 * One round, in this order:
 *
 *      rings    deliver what is in order
 *      MPs      the same, start GETs                          at most GLEXCH_BATCH
 *      events   GETs done: deliver; blocks read: free         at most GLEXCH_BATCH
 *      rest     waiting GETs, the run queue, rendezvous       only if there are any
 *      discard  the slots of this round
 *      credits  to those who heard nothing that carried them
 *
 * With nothing under way a round is only a look: at the next word of each ring, at
 * that of the MPQ, which is one call, and at a few words of its own.
 *
 * I1  Callbacks may start a round inside a round.  MPs handed out by the outer
 *     one stay where they are: only the outermost discards.  Events are copied
 *     out, so any round may discard those.
 * I2  Nothing that a round found out before a callback is used after it, but
 *     the channel and the connection itself.
 */
#include "chan_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GLEXCH_LAST_WORDS 4096 /* rounds of reading: more than the credits of all peers, if they send no more */

/* ---- opening and closing ------------------------------------------------- */

static glex_ret_t glexch_create_ep(struct glexch *ch, const struct glexch_params *params)
{
	const enum glex_ep_type types[] = {params->ep_type, GLEX_EP_TYPE_FAST, GLEX_EP_TYPE_EMULATE,
					   GLEX_EP_TYPE_NORMAL};
	struct glex_ep_attr attr = {0};
	struct glex_device_attr dev;
	glex_ret_t ret = glex_query_device(ch->dev, &dev);
	uint32_t events;
	size_t i;

	if (ret != GLEX_SUCCESS)
		return ret;
	ch->max_rdma = dev.max_rdma_data_len;
	ch->exposed_max = glexch_region_share(dev.mmt_units, params->sharers);
	attr.num = GLEX_ANY_EP_NUM;
	attr.key = params->key;
	attr.mpq_capacity = glexch_credit_plan(ch, params, &dev);
	if (!attr.mpq_capacity)
		return GLEX_NO_EP_RESOURCE;
	attr.mpq_type = params->hc_mpq || attr.mpq_capacity > dev.max_ep_mpq_capacity ? GLEX_MPQ_TYPE_HIGH_CAPACITY
										      : GLEX_MPQ_TYPE_NORMAL;
	events = params->blocks + GLEXCH_PIECES + GLEXCH_LOANS + 1 + GLEXCH_PLACES + GLEXCH_BATCH;
	attr.eq_capacity = events > dev.def_ep_eq_capacity ? events : dev.def_ep_eq_capacity;
	attr.eq_type = params->hc_eq || attr.eq_capacity > dev.max_ep_eq_capacity ? GLEX_EQ_TYPE_HIGH_CAPACITY
										  : GLEX_EQ_TYPE_NORMAL;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		attr.type = types[i];
		ret = glex_create_ep(ch->dev, &attr, &ch->ep);
		if (ret != GLEX_NO_EP_RESOURCE)
			break;
	}
	return ret == GLEX_SUCCESS ? glex_get_ep_addr(ch->ep, &ch->addr) : ret;
}

/* Nobody can guess it by chance, nor had an earlier process with the same endpoint the same. */
uint64_t glexch_some_number(const void *place)
{
	struct timespec now;
	uint64_t x;

	clock_gettime(CLOCK_REALTIME, &now);
	x = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)place << 20;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

glex_ret_t glexch_open(const struct glexch_params *params, struct glexch **ch_p)
{
	struct glexch *ch;
	glex_ret_t ret;

	if (params->credits < 1 || params->credits > UINT8_MAX || params->blocks < 4 || params->block_size % 64 ||
	    !params->block_size || (uint64_t)params->blocks * params->block_size > UINT32_MAX ||
	    params->header > GLEXCH_MP_BODY)
		return GLEX_INVALID_PARAM;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return GLEX_NO_MEM_RESOURCE;
	ch->ops = params->ops;
	ch->key = params->key;
	ch->header = params->header;
	ch->fetches = params->ops->place != NULL;
	ch->next_stream = (uint32_t)glexch_some_number(ch);
	ch->wants_tail = &ch->wants;
	glexch_er_plan(ch, params);
	glexch_lend_open(ch);
	ret = glex_open_device(0, &ch->dev);
	if (ret == GLEX_SUCCESS)
		ret = glexch_create_ep(ch, params);
	if (ret == GLEX_SUCCESS) {
		uint32_t none = 0;

		ret = glex_poll_dead(ch->dev, &ch->dead_next, &none, NULL);
		ch->born = (uint32_t)ch->dead_next;
	}
	if (ret == GLEX_SUCCESS)
		ret = glexch_rndv_open(ch);
	if (ret == GLEX_SUCCESS)
		ret = glexch_blocks_open(ch, params->blocks, params->block_size);
	if (ret != GLEX_SUCCESS) {
		glexch_close(ch);
		return ret;
	}
	*ch_p = ch;
	return GLEX_SUCCESS;
}

static void glexch_drop_waiting(struct glexch *ch)
{
	while (ch->wants) {
		struct glexch_rx *rx = ch->wants;

		ch->wants = rx->wnext;
		glexch_seq_release(ch, rx);
	}
}

void glexch_close(struct glexch *ch)
{
	uint32_t i;

	ch->closing = 1;
	for (i = 0; ch->hash && i <= ch->hash_mask; i++)
		while (ch->hash[i])
			glexch_conn_destroy(ch->hash[i]);
	glexch_conn_reap(ch);
	glexch_conn_free_graves(ch);
	glexch_drop_waiting(ch);
	for (i = 0; i < ch->rx.count && ch->rx.tab; i++)
		if (ch->rx.tab[i].rx)
			glexch_seq_release(ch, ch->rx.tab[i].rx);
	glexch_seq_free_all(ch);
	glexch_rndv_close(ch);
	if (ch->ep)
		glex_destroy_ep(ch->ep);
	glexch_blocks_close(ch);
	glexch_er_free_all(ch);
	if (ch->dev)
		glex_close_device(ch->dev);
	free(ch->hash);
	free(ch);
}

int glexch_quiet(const struct glexch *ch)
{
	return !ch->runq.head && !ch->gets && !ch->wants && !ch->owing && !ch->borrowed && !ch->loans_out &&
	       ch->tx.free == ch->tx.count && ch->rx.free == ch->rx.count;
}

const struct glexch_stats *glexch_stats(struct glexch *ch)
{
	struct glex_rcache_stats cache = {.field_mask = GLEX_RCACHE_STATS_ALL};

	if (glex_rcache_query(ch->rc, &cache) == GLEX_SUCCESS) {
		ch->stats.cache_hits = cache.hits;
		ch->stats.cache_misses = cache.misses;
	}
	return &ch->stats;
}

void glexch_describe(const struct glexch *ch, struct glex_ep_attr *ep, uint64_t *pool_p)
{
	memset(ep, 0, sizeof(*ep));
	glex_query_ep(ch->ep, ep);
	*pool_p = (uint64_t)(ch->tx.count + ch->rx.count) * ch->block_size;
}

glex_device_handle_t glexch_device(struct glexch *ch)
{
	return ch->dev;
}

/* ---- card ---------------------------------------------------------------- */

void glexch_card_format(const struct glexch *ch, char card[GLEXCH_CARD_MAX])
{
	snprintf(card, GLEXCH_CARD_MAX, "%016" PRIx64 ".%08" PRIx32 ".%02" PRIx32 ".%" PRIx32 ".%" PRIx64 ".%" PRIx32,
		 (uint64_t)ch->addr.v, ch->key, ch->start_grant, ch->block_size, (uint64_t)ch->pool_mh.v, ch->born);
}

glex_ret_t glexch_card_parse(const char *card, struct glexch_peer *peer)
{
	struct glexch_peer p;
	uint64_t addr;
	int end = 0;

	if (sscanf(card, "%16" SCNx64 ".%8" SCNx32 ".%2" SCNx32 ".%8" SCNx32 ".%16" SCNx64 ".%8" SCNx32 "%n", &addr,
		   &p.key, &p.grant, &p.block_size, &p.pool, &p.born, &end) != 6 ||
	    card[end] != '\0' || p.grant < 1 || p.block_size < 1)
		return GLEX_INVALID_PARAM;
	p.addr.v = addr;
	*peer = p;
	return GLEX_SUCCESS;
}

/* ---- the round ----------------------------------------------------------- */

/* The next MP that has come. */
struct glexch_arrival {
	glex_ret_t ret; /* GLEX_SUCCESS: there is one, not yet taken */
	glex_ep_addr_t src;
	void *data;
	uint32_t len;
};

static inline void glexch_look(struct glexch *ch, struct glexch_arrival *mp)
{
	mp->ret = glex_probe_next_mp(ch->ep, &mp->src, &mp->data, &mp->len);
	ch->undiscarded += mp->ret == GLEX_SUCCESS;
}

/* From mp on, if that has been looked for. */
static int glexch_poll_mps(struct glexch *ch, struct glexch_arrival *mp)
{
	int n;

	if (ch->depth > 1 && ch->undiscarded >= GLEXCH_NESTED_MPS) /* room promised in credit.c */
		return 0;
	for (n = 0; n < GLEXCH_BATCH; n++) {
		if (mp->ret != GLEX_SUCCESS)
			glexch_look(ch, mp);
		if (mp->ret != GLEX_SUCCESS)
			break;
		mp->ret = GLEX_NO_MP;
		glexch_sr_receive(ch, mp->src.v, mp->data, mp->len);
	}
	if (mp->ret == GLEX_SYS_ERR)
		ch->lost = 1;
	return n;
}

static void glexch_handle_event(struct glexch *ch, uint64_t cookie_0, uint64_t cookie_1)
{
	uint32_t gen = (uint32_t)cookie_0;
	uint32_t index = (uint32_t)(cookie_1 >> 8);

	switch (cookie_1 & 0xff) {
	case GLEXCH_EV_FETCHED:
		glexch_block_fetched(ch, index, gen);
		break;
	case GLEXCH_EV_FREED:
		glexch_block_freed(ch, index, gen);
		break;
	case GLEXCH_EV_PIECE:
		glexch_rndv_arrived(ch, index, gen);
		break;
	case GLEXCH_EV_RETURNED:
		glexch_lend_returned(ch, index, gen);
		break;
	case GLEXCH_EV_RECALL:
		glexch_lend_recalled(ch, index, cookie_0);
		break;
	case GLEXCH_EV_ANSWER:
		glexch_lend_answered(ch, cookie_0, cookie_1);
		break;
	case GLEXCH_EV_PLACE:
		glexch_lend_place(ch, cookie_0, cookie_1);
		break;
	case GLEXCH_EV_PUT:
		glexch_lend_was_put(ch, cookie_0, cookie_1);
		break;
	default: /* not ours: a stray PUT of somebody else */
		break;
	}
}

static int glexch_poll_events(struct glexch *ch)
{
	glex_event_t *ev;
	int n;

	for (n = 0; n < GLEXCH_BATCH && glex_probe_next_event(ch->ep, &ev) == GLEX_SUCCESS; n++)
		glexch_handle_event(ch, ev->cookie_0, ev->cookie_1);
	if (n)
		glex_discard_probed_event(ch->ep); /* I1 */
	return n;
}

/* What a lost peer sent before may lie here still, perhaps that it is done and leaves: it is read first. */
static void glexch_read_last_words(struct glexch *ch)
{
	struct glexch_arrival mp = {.ret = GLEX_NO_MP};
	int i;

	for (i = 0; i < GLEXCH_LAST_WORDS; i++)
		if (!glexch_er_poll(ch, ch->ers) && !glexch_poll_mps(ch, &mp))
			break;
}

/* What a request was meant for is not there; else it was, and something of the stream is lost. */
static int glexch_is_gone(enum glex_err_req_status status)
{
	return status == GLEX_ERR_STATUS_DEST_HOST_DEAD || status == GLEX_ERR_STATUS_DEST_VP_STOP ||
	       status == GLEX_ERR_STATUS_ATT || status == GLEX_ERR_STATUS_MMT;
}

/*
 * Requests that came to nothing: their peers are lost, or at least their private memory.  window: a region of one; how
 * many are of it is returned.
 */
int glexch_poll_errors(struct glexch *ch, uint64_t window)
{
	struct glex_err_req errs[16];
	uint32_t i, num = 16;
	int of_it = 0;

	if (ch->depth > 1 || glex_poll_error_req(ch->ep, &num, errs) != GLEX_SUCCESS || !num)
		return 0;
	glexch_read_last_words(ch);
	for (i = 0; i < num && i < 16; i++) {
		glex_ep_addr_t addr = ch->addr;

		addr.s.nic_id = errs[i].rmt_nic_id;
		addr.s.ep_num = (uint16_t)errs[i].rmt_ep_num;
		of_it += window && errs[i].data0 == window;
		if (window && errs[i].data0 == window && errs[i].status == GLEX_ERR_STATUS_PCIE_READ)
			continue;
		if ((errs[i].op == GLEX_ERR_OP_RDMA_GET || errs[i].op == GLEX_ERR_OP_RDMA_PUT) &&
		    errs[i].status == GLEX_ERR_STATUS_PCIE_READ &&
		    (glexch_rndv_no_access(ch, addr, &errs[i]) || glexch_lend_no_access(ch, addr, &errs[i])))
			continue;
		glexch_conn_fail_peer(ch, addr, glexch_is_gone(errs[i].status),
				      glex_error_req_status_str(errs[i].status));
	}
	return of_it;
}

int glexch_crowded(const struct glexch *ch)
{
	return glex_is_crowded(ch->dev);
}

/* How many processes' endpoints have died on this network. */
uint32_t glexch_deaths(struct glexch *ch)
{
	uint64_t next = 0;
	uint32_t none = 0;

	glex_poll_dead(ch->dev, &next, &none, NULL);
	return (uint32_t)next;
}

/* Who has died, also of those that nothing was sent to, of whom no request tells. */
static void glexch_poll_dead(struct glexch *ch)
{
	struct glex_dead dead[16];
	uint32_t i, num = 16;

	if (ch->depth > 1 || glex_poll_dead(ch->dev, &ch->dead_next, &num, dead) != GLEX_SUCCESS || !num)
		return;
	glexch_read_last_words(ch);
	for (i = 0; i < num; i++) {
		glexch_conn_fail_dead(ch, dead[i].addr, (uint32_t)dead[i].number);
		if (ch->ops->died)
			ch->ops->died(ch, dead[i].addr, (uint32_t)dead[i].number);
	}
}

static void glexch_rest(struct glexch *ch)
{
	if (ch->unbound)
		glexch_seq_retry(ch);
	if (ch->wants)
		glexch_block_feed(ch);
	if (ch->gets)
		glexch_rndv_run(ch);
	if (ch->lend_todo)
		glexch_lend_run(ch);
	if (ch->runq.head)
		glexch_sr_run(ch);
}

/* Something is under way that ends with an event.  Others, late or astray, can lie there for a while. */
static int glexch_expects_events(const struct glexch *ch)
{
	return ch->tx.free < ch->tx.count || ch->rx.free < ch->rx.count || ch->gets || ch->loans_out || ch->lend_asks ||
	       ch->placing || !(ch->tick & GLEXCH_EVENT_MASK);
}

/* What every round ends with. */
static inline void glexch_round_end(struct glexch *ch)
{
	if (--ch->depth != 0)
		return;
	if (ch->undiscarded) {
		glex_discard_probed_mp(ch->ep); /* I1 */
		ch->undiscarded = 0;
	}
	if (ch->dead)
		glexch_conn_reap(ch);
	if (ch->owing)
		glexch_credit_flush(ch);
}

/* mp: the next MP, if that has been looked for; then the rings were empty just before. */
static __attribute__((noinline)) int glexch_round(struct glexch *ch, struct glexch_arrival *mp)
{
	int n;

	ch->depth++;
	n = mp->ret != GLEX_SUCCESS ? glexch_er_poll(ch, ch->ers) : 0;
	n += glexch_poll_mps(ch, mp);
	if (glexch_expects_events(ch))
		n += glexch_poll_events(ch);
	if (ch->runq.head || ch->gets || ch->wants || ch->unbound || ch->lend_todo)
		glexch_rest(ch);
	if (!(++ch->tick & GLEXCH_TICK_MASK)) {
		glexch_poll_errors(ch, 0);
		glexch_poll_dead(ch);
		glexch_conn_tend(ch);
	}
	if (ch->lost) {
		glexch_conn_fail_all(ch, "the network is gone: glexd has ended");
		n = -1;
	}
	glexch_round_end(ch);
	return n;
}

/* A round that only looks at the rings, from the one in which something seems to be. */
static inline int glexch_er_round(struct glexch *ch, struct glexch_er *er)
{
	int n;

	ch->depth++;
	ch->tick++;
	n = glexch_er_poll(ch, er);
	glexch_round_end(ch);
	return n;
}

/* There is more to a round than to look whether something has come.  One test: this is asked in each. */
static inline int glexch_is_busy(const struct glexch *ch)
{
	uintptr_t lists = (uintptr_t)ch->runq.head | (uintptr_t)ch->gets | (uintptr_t)ch->wants | (uintptr_t)ch->owing |
			  (uintptr_t)ch->dead | (uintptr_t)ch->borrowed;
	uint32_t counts = (uint32_t)ch->depth | ch->unbound | ch->loans_out | (uint32_t)ch->lost |
			  (ch->tx.count - ch->tx.free) | (ch->rx.count - ch->rx.free);

	return (lists | counts) != 0 || !((ch->tick + 1) & GLEXCH_EVENT_MASK);
}

int glexch_linger(struct glexch *ch, uint32_t looks)
{
	struct glexch_arrival mp;
	struct glexch_er *er;

	mp.ret = GLEX_NO_MP;
	if (glexch_is_busy(ch))
		return glexch_round(ch, &mp);
	for (;;) {
		er = glexch_er_next(ch);
		if (er)
			return ch->tick & GLEXCH_ER_ROUNDS ? glexch_er_round(ch, er) : glexch_round(ch, &mp);
		glexch_look(ch, &mp);
		if (mp.ret != GLEX_NO_MP)
			return glexch_round(ch, &mp);
		if (looks-- == 0)
			break;
		glexch_relax();
	}
	ch->tick++;
	return 0;
}

int glexch_progress(struct glexch *ch)
{
	return glexch_linger(ch, 0);
}

/* ---- what is sent next ---------------------------------------------------- */

void glexch_expect(const struct glexch_conn *conn)
{
	if (conn->er)
		glexch_er_want(conn->er);
}

/*
 * In a stream, where nobody answers, of short messages the lines behind the next record too: a line takes as long to
 * come as two messages take to be made up, and until it is here all that is stored after it waits.  6 % more messages
 * of up to 64 bytes, 20 % more between distant processors.  Of longer ones the next lines may not have been read yet,
 * and are better left with the peer: 5 % fewer.
 */
void glexch_expect_stream(const struct glexch_conn *conn, size_t len)
{
	const struct glexch_er *er = conn->er;
	const uint8_t *next;
	uint32_t i;

	if (!er)
		return;
	glexch_er_want(er);
	if (!er->tx_at || er->rx_seq != conn->rx_seq || len > GLEXCH_ER_NEXT * GLEXCH_LINE / 2)
		return;
	next = er->tx_at + er->tx_line * GLEXCH_LINE;
#pragma GCC unroll 8
	for (i = 1; i < GLEXCH_ER_NEXT; i++)
		glexch_prefetch_own(next + i * GLEXCH_LINE);
}
