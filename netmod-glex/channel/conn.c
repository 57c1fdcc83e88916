/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn.c - connections: how packets find them, how they begin and end.
 *
 * A connection is known by the address of the peer's endpoint and a channel id.
 * Id 0 is the lasting connection of two endpoints.  Any other is chosen by who
 * opens: it sends with an odd id and receives with the even one below; the
 * opposite side the other way round.  So two processes may open towards each
 * other at once without agreeing on anything.
 *
 *      opened here                        opened by the peer
 *      glexch_conn_open                   first packet from an unknown source
 *      first send: HELLO, then data       HELLO in its turn -> hello callback -> bound
 *
 * Both sides may open at once: then each has the connection when the HELLO of
 * the other comes, and ignores it.
 *
 * I1  A connection destroyed is out of every list at once, but its memory stays
 *     until no round is under way: callers up the stack may look at slow.
 * I2  A failure is told once, items and GETs first, the connection then.
 * I3  A packet opens a connection only if it comes from one that its sender has
 *     opened, and not from the stream of one that has been destroyed here.
 */
#include "chan_priv.h"

#include <stdlib.h>

#define GLEXCH_HASH_START   64u
#define GLEXCH_TEND_BUCKETS 16u

static uint32_t glexch_hash(uint64_t peer, uint32_t chan)
{
	uint64_t x = (peer ^ (uint64_t)chan << 40) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(x >> 32);
}

static int glexch_hash_grow(struct glexch *ch)
{
	uint32_t i, mask = ch->hash ? ch->hash_mask * 2 + 1 : GLEXCH_HASH_START - 1;
	struct glexch_conn **tab = calloc((size_t)mask + 1, sizeof(struct glexch_conn *));

	if (!tab)
		return 0;
	for (i = 0; ch->hash && i <= ch->hash_mask; i++) {
		while (ch->hash[i]) {
			struct glexch_conn *conn = ch->hash[i];
			struct glexch_conn **p = &tab[glexch_hash(conn->peer, glexch_tag_chan(conn->rx_tag)) & mask];

			ch->hash[i] = conn->hash_next;
			conn->hash_next = *p;
			*p = conn;
		}
	}
	free(ch->hash);
	ch->hash = tab;
	ch->hash_mask = mask;
	return 1;
}

static struct glexch_conn *glexch_conn_find(struct glexch *ch, uint64_t peer, uint32_t chan)
{
	struct glexch_conn *conn;

	if (!ch->hash)
		return NULL;
	conn = ch->hash[glexch_hash(peer, chan) & ch->hash_mask];
	while (conn && (conn->peer != peer || glexch_tag_chan(conn->rx_tag) != chan))
		conn = conn->hash_next;
	return conn;
}

/* ---- graves -------------------------------------------------------------- */

static struct glexch_grave **glexch_grave_place(struct glexch *ch, uint64_t peer)
{
	struct glexch_grave **p = &ch->graves[glexch_hash(peer, 0) & ch->graves_mask];

	while (*p && (*p)->peer != peer)
		p = &(*p)->next;
	return p;
}

/* I3.  Without memory for it a late packet may make a connection that nobody greets. */
static void glexch_grave_dig(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_grave **p;

	if (!ch->graves) {
		ch->graves = calloc((size_t)ch->hash_mask + 1, sizeof(struct glexch_grave *));
		ch->graves_mask = ch->hash_mask;
	}
	if (!ch->graves)
		return;
	p = glexch_grave_place(ch, conn->peer);
	if (!*p)
		*p = calloc(1, sizeof(**p));
	if (!*p)
		return;
	(*p)->peer = conn->peer;
	(*p)->stream = glexch_tag_stream(conn->rx_tag);
}

/* Whose packets a new connection to this peer must not take for its own. */
static uint16_t glexch_grave_open(struct glexch *ch, uint64_t peer)
{
	struct glexch_grave **p = ch->graves ? glexch_grave_place(ch, peer) : NULL;
	struct glexch_grave *grave = p ? *p : NULL;
	uint16_t stream;

	if (!grave)
		return 0;
	stream = (uint16_t)grave->stream;
	*p = grave->next;
	free(grave);
	return stream;
}

void glexch_conn_free_graves(struct glexch *ch)
{
	uint32_t i;

	for (i = 0; ch->graves && i <= ch->graves_mask; i++) {
		while (ch->graves[i]) {
			struct glexch_grave *grave = ch->graves[i];

			ch->graves[i] = grave->next;
			free(grave);
		}
	}
	free(ch->graves);
}

/* ---- the table ----------------------------------------------------------- */

static struct glexch_conn *glexch_conn_make(struct glexch *ch, uint64_t peer, uint32_t rx_tag)
{
	uint32_t chan = glexch_tag_chan(rx_tag);
	struct glexch_conn **p, *conn;

	if ((!ch->hash || ch->conns > ch->hash_mask) && !glexch_hash_grow(ch))
		return NULL;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return NULL;
	if (!(++ch->next_stream & 0xffff))
		ch->next_stream++;
	conn->ch = ch;
	conn->peer = peer;
	conn->rx_tag = rx_tag;
	conn->tx_tag = (ch->next_stream & 0xffff) << 16 | (chan == GLEXCH_CHAN_MAIN ? GLEXCH_CHAN_MAIN : chan ^ 1);
	if (chan == GLEXCH_CHAN_MAIN)
		conn->dead_stream = glexch_grave_open(ch, peer);
	p = &ch->hash[glexch_hash(peer, chan) & ch->hash_mask];
	conn->hash_next = *p;
	*p = conn;
	ch->conns++;
	ch->stats.peers++;
	return conn;
}

static void glexch_conn_unlink(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_conn **p = &ch->hash[glexch_hash(conn->peer, glexch_tag_chan(conn->rx_tag)) & ch->hash_mask];

	while (*p != conn)
		p = &(*p)->hash_next;
	*p = conn->hash_next;
	ch->conns--;
	if (ch->last == conn)
		ch->last = NULL;
}

/* ---- beginning ----------------------------------------------------------- */

uint32_t glexch_new_chan(struct glexch *ch)
{
	ch->next_chan = (ch->next_chan + 2) & 0xfffe; /* even: what the opener receives with */
	if (!ch->next_chan)
		ch->next_chan = 2;
	return ch->next_chan;
}

struct glexch_conn *glexch_conn_open(struct glexch *ch, const struct glexch_peer *peer, uint32_t chan, int counted,
				     void *user)
{
	struct glexch_conn *conn = glexch_conn_find(ch, peer->addr.v, chan);

	if (conn) {
		if (!conn->bound) /* a stranger, until its hello is taken; but it is told if that never comes */
			conn->user = user;
		return conn;
	}
	conn = glexch_conn_make(ch, peer->addr.v, chan);
	if (!conn)
		return NULL;
	conn->user = user;
	conn->bound = 1;
	conn->counted = counted != 0;
	conn->slow = GLEXCH_SLOW_HELLO;
	conn->key = peer->key;
	conn->tx_block = peer->block_size < ch->block_size ? peer->block_size : ch->block_size;
	conn->pool = peer->pool;
	conn->born = peer->born;
	conn->tx_start = (uint8_t)(counted ? peer->grant : GLEXCH_START_FOREIGN);
	conn->credits = conn->tx_start;
	if (!glexch_credit_open(conn)) {
		glexch_conn_destroy(conn);
		return NULL;
	}
	return conn;
}

/* A packet that belongs to no connection: opens one, unless it is late (I3). */
static struct glexch_conn *glexch_conn_accept(struct glexch *ch, uint64_t peer, const struct glexch_mp_hdr *hdr)
{
	struct glexch_grave *grave = NULL;
	struct glexch_conn *conn;

	if ((hdr->type & GLEXCH_MP_ANSWER) || (hdr->type & GLEXCH_MP_TYPE) == GLEXCH_MP_CREDIT)
		return NULL;
	if (ch->graves && glexch_tag_chan(hdr->tag) == GLEXCH_CHAN_MAIN)
		grave = *glexch_grave_place(ch, peer);
	if (grave && grave->stream == glexch_tag_stream(hdr->tag))
		return NULL;
	conn = glexch_conn_make(ch, peer, hdr->tag);
	if (!conn)
		return NULL;
	conn->accepted = 1;
	conn->born = glexch_deaths(ch);
	conn->slow = GLEXCH_SLOW_STRANGER;
	conn->tx_tag = glexch_tag_chan(conn->tx_tag) | (hdr->tag & 0xffff0000u);
	ch->unbound++;
	return conn;
}

/* The connection that a packet belongs to, or opens; NULL: none. */
struct glexch_conn *glexch_conn_source(struct glexch *ch, uint64_t peer, const struct glexch_mp_hdr *hdr)
{
	uint32_t chan = glexch_tag_chan(hdr->tag), stream = glexch_tag_stream(hdr->tag);
	struct glexch_conn *conn = NULL, *silent = NULL;

	if (!stream)
		return NULL;
	if (ch->hash)
		conn = ch->hash[glexch_hash(peer, chan) & ch->hash_mask];
	for (; conn; conn = conn->hash_next) {
		if (conn->peer != peer || glexch_tag_chan(conn->rx_tag) != chan)
			continue;
		if (conn->rx_tag == hdr->tag)
			return conn;
		if (conn->dead_stream == stream)
			return NULL;
		if (!glexch_tag_stream(conn->rx_tag))
			silent = conn;
	}
	if (!silent)
		return glexch_conn_accept(ch, peer, hdr);
	/* Answers and credits say to which stream they belong: perhaps to an earlier one. */
	if ((hdr->type & GLEXCH_MP_TYPE) == GLEXCH_MP_CREDIT)
		stream = hdr->seq;
	if ((hdr->type & GLEXCH_MP_ANSWER) && stream != glexch_tag_stream(silent->tx_tag))
		return NULL;
	silent->rx_tag = hdr->tag;
	return silent;
}

/* The hello of a peer.  0: nobody can say yet whose it is, or it has failed. */
int glexch_conn_greet(struct glexch_conn *conn, const struct glexch_hello *hello)
{
	struct glexch *ch = conn->ch;
	void *user;

	if (conn->bound)
		return 1; /* both have opened */
	conn->key = hello->key;
	conn->pool = hello->pool;
	conn->tx_block = hello->block_size < ch->block_size ? hello->block_size : ch->block_size;
	conn->counted = hello->counted;
	user = ch->ops->hello(conn, hello->blob, hello->blob_len);
	if (!user)
		return 0;
	conn->user = user;
	conn->bound = 1;
	ch->unbound--;
	conn->tx_start = hello->grant;
	conn->credits = (uint16_t)(conn->credits + hello->grant);
	conn->slow &= (uint8_t)~GLEXCH_SLOW_STRANGER;
	glexch_sr_kick(conn); /* what was to be sent to a stranger waited for this */
	if (glexch_credit_open(conn))
		return 1;
	glexch_conn_fail(conn, "the mini-packet queue has no room for one more process");
	return 0;
}

/* ---- end ----------------------------------------------------------------- */

void glexch_conn_destroy(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;

	if (conn->slow & GLEXCH_SLOW_DEAD)
		return;
	conn->slow |= GLEXCH_SLOW_DEAD;
	glexch_conn_unlink(conn);
	if (!ch->closing && glexch_tag_chan(conn->rx_tag) == GLEXCH_CHAN_MAIN && glexch_tag_stream(conn->rx_tag))
		glexch_grave_dig(conn);
	glexch_rndv_drop(conn, 0);
	glexch_lend_drop(conn, 0);
	glexch_sr_drop(conn, 0);
	glexch_block_forget(conn, 0);
	glexch_er_leave(conn, 0);
	glexch_seq_drop(conn);
	glexch_credit_close(conn);
	if (!conn->bound)
		ch->unbound--;
	conn->hash_next = ch->dead; /* I1 */
	ch->dead = conn;
}

/* Frees what has been destroyed; only when no round is under way. */
void glexch_conn_reap(struct glexch *ch)
{
	while (ch->dead) {
		struct glexch_conn *conn = ch->dead;

		ch->dead = conn->hash_next;
		free(conn);
	}
}

void glexch_conn_fail(struct glexch_conn *conn, const char *why)
{
	if (conn->slow & (GLEXCH_SLOW_FAILED | GLEXCH_SLOW_DEAD))
		return;
	conn->slow |= GLEXCH_SLOW_FAILED;
	if (!conn->bound) { /* its hello is not waited for any more */
		conn->ch->unbound--;
		conn->bound = 1;
	}
	conn->ch->why = why;
	conn->ch->stats.peers_failed++;
	glexch_block_forget(conn, 1);
	glexch_er_leave(conn, 1);
	glexch_seq_drop(conn);
	glexch_rndv_drop(conn, 1); /* I2 */
	glexch_lend_drop(conn, 1);
	glexch_sr_drop(conn, 1);
	if (conn->slow & GLEXCH_SLOW_DEAD)
		return;
	if (conn->user)
		conn->ch->ops->fail(conn, why);
	else
		glexch_conn_destroy(conn); /* nobody knows of it */
}

/* Error requests name port and NIC, not the reserved bits of an address. */
int glexch_conn_at(const struct glexch_conn *conn, glex_ep_addr_t addr)
{
	glex_ep_addr_t peer = {.v = conn->peer};

	return peer.s.nic_id == addr.s.nic_id && peer.s.ep_num == addr.s.ep_num;
}

/* Which connections fail. */
struct glexch_doomed {
	int all;
	glex_ep_addr_t addr; /* else those to this endpoint, */
	int dead;	     /* and if a process with it has died, */
	uint32_t number;     /* as the number-th, no later one's, */
	int silent;	     /* unless nothing has come from that for long */
};

static int glexch_is_doomed(const struct glexch_conn *conn, const struct glexch_doomed *doomed)
{
	if (conn->slow & GLEXCH_SLOW_FAILED)
		return 0;
	if (doomed->all)
		return 1;
	if (!glexch_conn_at(conn, doomed->addr))
		return 0;
	return !doomed->dead || glexch_outlived(conn->born, doomed->number) ||
	       (doomed->silent && conn->silent == GLEXCH_SILENT);
}

static void glexch_conn_fail_which(struct glexch *ch, const struct glexch_doomed *doomed, const char *why)
{
	uint32_t i = 0;

	while (ch->hash && i <= ch->hash_mask) {
		struct glexch_conn *conn = ch->hash[i];

		while (conn && !glexch_is_doomed(conn, doomed))
			conn = conn->hash_next;
		if (conn)
			glexch_conn_fail(conn, why); /* the callback may change the list: look at it again */
		else
			i++;
	}
}

/* The last that has died with this address since the channel opened.  0: nobody has. */
static int glexch_last_death(struct glexch *ch, glex_ep_addr_t addr, uint32_t *number_p)
{
	struct glex_dead dead[64];
	uint64_t next = ch->born;
	uint32_t i, num;
	int found = 0;

	do {
		num = 64;
		if (glex_poll_dead(ch->dev, &next, &num, dead) != GLEX_SUCCESS)
			break;
		for (i = 0; i < num; i++) {
			if (dead[i].addr.s.nic_id != addr.s.nic_id || dead[i].addr.s.ep_num != addr.s.ep_num)
				continue;
			*number_p = (uint32_t)dead[i].number;
			found = 1;
		}
	} while (num);
	return found;
}

/*
 * A request to this endpoint came to nothing.  gone: because what it was meant for is not
 * there.  If a process with this address has died, that was meant by what was sent before this was
 * known, and who has the address now lives: unless nothing has come from it for so
 * long that it is asked for (glexch_conn_feel), for then this is the answer.
 */
void glexch_conn_fail_peer(struct glexch *ch, glex_ep_addr_t addr, int gone, const char *why)
{
	struct glexch_doomed doomed = {.addr = addr, .silent = 1};

	doomed.dead = gone && glexch_last_death(ch, addr, &doomed.number);
	glexch_conn_fail_which(ch, &doomed, why);
}

void glexch_conn_fail_dead(struct glexch *ch, glex_ep_addr_t addr, uint32_t number)
{
	const struct glexch_doomed doomed = {.addr = addr, .dead = 1, .number = number};

	glexch_conn_fail_which(ch, &doomed, GLEXCH_DIED);
}

void glexch_conn_fail_all(struct glexch *ch, const char *why)
{
	const struct glexch_doomed doomed = {.all = 1};

	glexch_conn_fail_which(ch, &doomed, why);
}

/* ---- looking after them -------------------------------------------------- */

/*
 * Who only waits posts nothing, and so would never hear from the network that a
 * peer is gone: one bucket after the other is asked for.  Only who has been silent
 * for a while, and does not part: others live, or say goodbye, and what is asked of
 * them then may come when they have gone.  (Those for whom something is queued, or
 * lent to, are asked for more often: it waits for them.)
 */
static void glexch_conn_feel(struct glexch *ch)
{
	struct glexch_conn *conn = ch->hash ? ch->hash[ch->pulse++ & ch->hash_mask] : NULL;

	while (conn) {
		struct glexch_conn *next = conn->hash_next;

		if (conn->bound && !conn->parting && conn->silent == GLEXCH_SILENT &&
		    !(conn->slow & GLEXCH_SLOW_FAILED))
			glexch_sr_probe(conn);
		if (conn->slow & (GLEXCH_SLOW_FAILED | GLEXCH_SLOW_DEAD))
			return; /* the list may have changed */
		conn = next;
	}
}

/* Now and then: a few connections, until all have had their turn. */
void glexch_conn_tend(struct glexch *ch)
{
	uint32_t i;

	ch->thirst -= ch->thirst < GLEXCH_TEND_BUCKETS ? ch->thirst : GLEXCH_TEND_BUCKETS;
	ch->er_wants -= ch->er_wants < GLEXCH_TEND_BUCKETS ? ch->er_wants : GLEXCH_TEND_BUCKETS;
	for (i = 0; ch->hash && i < GLEXCH_TEND_BUCKETS; i++) {
		struct glexch_conn *conn = ch->hash[ch->hand++ & ch->hash_mask];

		for (; conn; conn = conn->hash_next) {
			if (conn->slow & GLEXCH_SLOW_FAILED)
				continue;
			conn->silent = conn->hot ? 0 : (uint8_t)(conn->silent + (conn->silent < GLEXCH_SILENT));
			glexch_credit_cool(conn);
			glexch_er_cool(conn);
			if (conn->bound && ((conn->slow & GLEXCH_SLOW_QUEUE) || glexch_lend_has(conn)))
				glexch_sr_probe(conn);
			if (conn->slow & (GLEXCH_SLOW_FAILED | GLEXCH_SLOW_DEAD))
				break; /* the list may have changed */
		}
	}
	glexch_conn_feel(ch);
}

/* ---- small things -------------------------------------------------------- */

void glexch_conn_hold(struct glexch_conn *conn, int on)
{
	if (conn->hold == (on != 0) || conn->draining || (conn->slow & (GLEXCH_SLOW_FAILED | GLEXCH_SLOW_DEAD)))
		return;
	conn->hold = on != 0;
	glexch_say(conn, GLEXCH_SAY_HOLD);
}

/* What is queued had begun before. */
int glexch_has_begun(const struct glexch_conn *conn)
{
	return !conn->tx_head && conn->er && conn->er->begun;
}

void *glexch_conn_user(const struct glexch_conn *conn)
{
	return conn->user;
}

uint32_t glexch_conn_chan(const struct glexch_conn *conn)
{
	return glexch_tag_chan(conn->rx_tag);
}

glex_ep_addr_t glexch_conn_addr(const struct glexch_conn *conn)
{
	glex_ep_addr_t addr = {.v = conn->peer};

	return addr;
}

const char *glexch_why(const struct glexch *ch)
{
	return ch->why ? ch->why : "it was given up";
}
