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
 */
#include "chan_priv.h"

#include <stdlib.h>

#define GLEXCH_HASH_START 64u

static uint32_t glexch_hash(uint64_t peer, uint32_t rx_chan)
{
	uint64_t x = (peer ^ (uint64_t)rx_chan << 40) * 0x9e3779b97f4a7c15u;

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
			struct glexch_conn **p = &tab[glexch_hash(conn->peer, conn->rx_chan) & mask];

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

struct glexch_conn *glexch_conn_find(struct glexch *ch, uint64_t peer, uint32_t rx_chan)
{
	struct glexch_conn *conn;

	if (!ch->hash)
		return NULL;
	conn = ch->hash[glexch_hash(peer, rx_chan) & ch->hash_mask];
	while (conn && (conn->peer != peer || conn->rx_chan != rx_chan))
		conn = conn->hash_next;
	return conn;
}

static struct glexch_conn *glexch_conn_make(struct glexch *ch, uint64_t peer, uint32_t rx_chan)
{
	struct glexch_conn **p, *conn;

	if ((!ch->hash || ch->conns > ch->hash_mask) && !glexch_hash_grow(ch))
		return NULL;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return NULL;
	conn->ch = ch;
	conn->peer = peer;
	conn->rx_chan = rx_chan;
	conn->tx_chan = rx_chan == GLEXCH_CHAN_MAIN ? GLEXCH_CHAN_MAIN : rx_chan ^ 1;
	p = &ch->hash[glexch_hash(peer, rx_chan) & ch->hash_mask];
	conn->hash_next = *p;
	*p = conn;
	ch->conns++;
	ch->stats.peers++;
	return conn;
}

static void glexch_conn_unlink(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;
	struct glexch_conn **p = &ch->hash[glexch_hash(conn->peer, conn->rx_chan) & ch->hash_mask];

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
	return ch->next_chan += 2; /* even: what the opener receives with */
}

struct glexch_conn *glexch_conn_open(struct glexch *ch, const struct glexch_peer *peer, uint32_t chan, int counted,
				     void *user)
{
	struct glexch_conn *conn = glexch_conn_find(ch, peer->addr.v, chan);

	if (conn)
		return conn;
	conn = glexch_conn_make(ch, peer->addr.v, chan);
	if (!conn)
		return NULL;
	conn->user = user;
	conn->bound = 1;
	conn->counted = counted != 0;
	conn->slow = GLEXCH_SLOW_HELLO;
	conn->key = peer->key;
	conn->tx_block = peer->block_size < ch->block_size ? peer->block_size : ch->block_size;
	conn->credits = (uint16_t)(counted ? peer->grant : GLEXCH_START_FOREIGN);
	glexch_credit_open(conn);
	return conn;
}

/* A packet from an unknown source. */
struct glexch_conn *glexch_conn_accept(struct glexch *ch, uint64_t peer, uint32_t rx_chan)
{
	struct glexch_conn *conn = glexch_conn_make(ch, peer, rx_chan);

	if (conn)
		ch->unbound++;
	return conn;
}

/* The hello of a peer.  0: nobody can say yet whose it is. */
int glexch_conn_greet(struct glexch_conn *conn, const struct glexch_hello *hello)
{
	struct glexch *ch = conn->ch;

	if (conn->bound)
		return 1; /* both have opened */
	conn->key = hello->key;
	conn->tx_block = hello->block_size < ch->block_size ? hello->block_size : ch->block_size;
	conn->counted = hello->counted;
	conn->user = ch->ops->hello(conn, hello->blob, hello->blob_len);
	if (!conn->user)
		return 0;
	conn->bound = 1;
	ch->unbound--;
	conn->credits = (uint16_t)(conn->credits + hello->grant);
	glexch_credit_open(conn);
	return 1;
}

/* ---- end ----------------------------------------------------------------- */

void glexch_conn_destroy(struct glexch_conn *conn)
{
	struct glexch *ch = conn->ch;

	if (conn->slow & GLEXCH_SLOW_DEAD)
		return;
	conn->slow |= GLEXCH_SLOW_DEAD;
	glexch_conn_unlink(conn);
	glexch_sr_drop(conn, 0);
	glexch_rndv_drop(conn, 0);
	glexch_block_forget(conn, 0);
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
	conn->ch->stats.peers_failed++;
	glexch_block_forget(conn, 1);
	glexch_seq_drop(conn);
	glexch_sr_drop(conn, 1); /* I2 */
	glexch_rndv_drop(conn, 1);
	if (conn->bound && !(conn->slow & GLEXCH_SLOW_DEAD))
		conn->ch->ops->fail(conn, why);
}

/* Error requests name port and NIC, not the reserved bits of an address. */
int glexch_conn_at(const struct glexch_conn *conn, glex_ep_addr_t addr)
{
	glex_ep_addr_t peer = {.v = conn->peer};

	return peer.s.nic_id == addr.s.nic_id && peer.s.ep_num == addr.s.ep_num;
}

/* Fails every connection to an endpoint that is lost. */
void glexch_conn_fail_peer(struct glexch *ch, glex_ep_addr_t addr, const char *why)
{
	uint32_t i = 0;

	while (ch->hash && i <= ch->hash_mask) {
		struct glexch_conn *conn = ch->hash[i];

		while (conn && (!glexch_conn_at(conn, addr) || (conn->slow & GLEXCH_SLOW_FAILED)))
			conn = conn->hash_next;
		if (conn)
			glexch_conn_fail(conn, why); /* the callback may change the list: look at it again */
		else
			i++;
	}
}

/* ---- small things -------------------------------------------------------- */

void *glexch_conn_user(const struct glexch_conn *conn)
{
	return conn->user;
}

uint32_t glexch_conn_chan(const struct glexch_conn *conn)
{
	return conn->rx_chan;
}
