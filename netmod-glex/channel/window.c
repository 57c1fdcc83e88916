/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.c - memory that peers PUT to and GET from at once, whenever they like, without a word to its owner.
 *
 * Its owner registers it so that all of it is mapped by whoever reaches it, and tells where it is.  What others do
 * there the caller's own processor does, and has done when the call returns: nothing is under way, nothing is to be
 * waited for, and what the caller sends next comes later.  So it is only for endpoints that execute their requests
 * themselves; others (NORMAL, out of order) are told so by glex_fetch, and never try again.
 *
 * What is more than a PUT or a GET, a sum or an exchange, has a lock in the memory of the window's owner.  It is held for
 * the time of one operation, by who does it, and by the owner for what he does for others; by whoever is dead
 * it is held no more.
 *
 *      label     access                                  order     pairs     says
 *      WIN-A1    compare and exchange: 0 by the holder   acquire   WIN-R1    the window is as the last one left it
 *      WIN-R1    lock = 0                                release   WIN-A1    what was done in it is there
 *
 * I1  A window has one region, whose offsets have 32 bits.  A process shows no more of them than its share of the
 *     memory table, so they leave room for what is sent by rendezvous.
 * I2  What a peer's window refuses is not tried again: its description is marked.  Whether the peer is lost, the error
 *     request tells, which is looked at there and then; one that only this process cannot map is no fault of his.
 * I3  A member of a window that died did so after all had met to make it; an earlier process with its address is
 *     none.
 */
#include "chan_priv.h"

#include <sched.h>

#define GLEXCH_WINDOW_TRIES 64
#define GLEXCH_LOCKS	    64u
#define GLEXCH_LOCK_SPINS   64u	  /* between two times that the processor is given away */
#define GLEXCH_LOCK_LOOKS   1024u /* of these between two looks whether the holder is alive */
#define GLEXCH_WINDOW_NEAR  4096u /* bytes that are copied here: longer ones the library copies as fast, or faster */

/* ---- locks --------------------------------------------------------------- */

/* Memory for the locks of this process's windows, a line each.  0: there is none. */
static int glexch_locks_open(struct glexch *ch)
{
	void *mem;

	if (ch->locks)
		return 1;
	if (glex_alloc(ch->dev, GLEXCH_LOCKS * GLEXCH_LINE, &mem) != GLEX_SUCCESS)
		return 0;
	if (glex_register_mem(ch->ep, mem, GLEXCH_LOCKS * GLEXCH_LINE,
			      GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_ATOMIC | GLEX_MEM_MAPPED,
			      &ch->locks_mh) != GLEX_SUCCESS) {
		glex_free(ch->dev, mem);
		return 0;
	}
	ch->locks = mem;
	return 1;
}

static uint64_t *glexch_lock_at(const struct glexch *ch, uint32_t lock)
{
	return ch->locks + lock / sizeof(*ch->locks);
}

/* None, if all are taken. */
static void glexch_lock_take(struct glexch *ch, struct glexch_window *window)
{
	uint32_t i = ~ch->locks_used ? (uint32_t)__builtin_ctzll(~ch->locks_used) : GLEXCH_LOCKS;

	if (i == GLEXCH_LOCKS || !glexch_locks_open(ch))
		return;
	ch->locks_used |= UINT64_C(1) << i;
	window->lock_handle = ch->locks_mh.v;
	window->lock = i * GLEXCH_LINE;
	/* relaxed: nobody knows of it yet */
	__atomic_store_n(glexch_lock_at(ch, window->lock), 0, __ATOMIC_RELAXED);
}

static void glexch_lock_give(struct glexch *ch, const struct glexch_window *window)
{
	if (window->lock_handle)
		ch->locks_used &= ~(UINT64_C(1) << window->lock / GLEXCH_LINE);
}

/* What a lock shows while this process holds it. */
static uint64_t glexch_lock_sign(const struct glexch *ch)
{
	return ch->addr.v + 1;
}

/* 1: it was held by `holder`, 0 for nobody, and is by us. */
static inline int glexch_lock_try(const struct glexch *ch, uint64_t *word, uint64_t holder)
{
	/* WIN-A1; relaxed: what it shows else is only looked at */
	return __atomic_compare_exchange_n(word, &holder, glexch_lock_sign(ch), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* I3.  1: who holds it is dead. */
static int glexch_lock_is_orphan(const struct glexch *ch, uint64_t holder, uint32_t born)
{
	struct glex_dead dead[16];
	uint64_t next = born;
	uint32_t num = 16;

	while (holder && glex_poll_dead(ch->dev, &next, &num, dead) == GLEX_SUCCESS && num) {
		for (uint32_t i = 0; i < num && i < 16; i++)
			if (dead[i].addr.v + 1 == holder)
				return 1;
		num = 16;
	}
	return 0;
}

/* Others have it for as long as an operation takes, unless they have no processor, or are no more. */
static __attribute__((noinline)) void glexch_lock_await(const struct glexch *ch, uint64_t *word, uint32_t born)
{
	uint64_t holder;
	uint32_t n = 0;

	do {
		glexch_relax();
		holder = __atomic_load_n(word, __ATOMIC_RELAXED); /* relaxed: only a guess */
		if (++n % GLEXCH_LOCK_SPINS == 0)
			sched_yield();
		if (n % (GLEXCH_LOCK_SPINS * GLEXCH_LOCK_LOOKS) == 0 && glexch_lock_is_orphan(ch, holder, born) &&
		    glexch_lock_try(ch, word, holder))
			return;
	} while (holder || !glexch_lock_try(ch, word, 0));
}

static inline void glexch_lock(const struct glexch *ch, uint64_t *word, uint32_t born)
{
	if (!glexch_lock_try(ch, word, 0))
		glexch_lock_await(ch, word, born);
}

static inline void glexch_unlock(uint64_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE); /* WIN-R1 */
}

/* ---- ours ---------------------------------------------------------------- */

/* len 0 in the description: peers have to ask. */
void glexch_window_open(struct glexch *ch, void *mem, uint64_t len, struct glexch_window *window)
{
	glex_mem_handle_t mh;

	memset(window, 0, sizeof(*window));
	if (!len || len > UINT32_MAX || ch->windows >= ch->exposed_max ||
	    glex_register_mem(ch->ep, mem, len, GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_MAPPED, &mh) != GLEX_SUCCESS)
		return;
	ch->windows++;
	window->ep = ch->addr.v;
	window->handle = mh.v;
	window->key = ch->key;
	window->len = (uint32_t)len;
	glexch_lock_take(ch, window);
}

void glexch_window_close(struct glexch *ch, struct glexch_window *window)
{
	glex_mem_handle_t mh = {.v = window->handle};

	if (!window->handle)
		return;
	glex_deregister_mem(ch->ep, mh);
	glexch_lock_give(ch, window);
	ch->windows--;
	memset(window, 0, sizeof(*window));
}

void glexch_window_hold_own(struct glexch *ch, struct glexch_window *window)
{
	if (window->lock_handle)
		glexch_lock(ch, glexch_lock_at(ch, window->lock), window->born);
}

void glexch_window_release_own(struct glexch *ch, const struct glexch_window *window)
{
	if (window->lock_handle)
		glexch_unlock(glexch_lock_at(ch, window->lock));
}

/* ---- those of others ----------------------------------------------------- */

/* I2; but of GLEX_BUSY, which clears by itself. */
static __attribute__((noinline)) void glexch_window_refused(struct glexch *ch, struct glexch_window *peer,
							    glex_ret_t ret)
{
	if (ret == GLEX_BUSY)
		return;
	if (ret == GLEX_NOT_IMPLEMENTED)
		ch->fetches = 0;
	glexch_poll_errors(ch, peer->handle);
	peer->len = 0;
}

static inline void glexch_window_describe(const struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len,
					  struct glex_imm_rdma_req *req)
{
	req->rmt_ep_addr.v = peer->ep;
	req->data = buf;
	req->len = (uint32_t)len;
	req->rmt_mh.v = peer->handle;
	req->rmt_offset = (uint32_t)offset;
	req->rmt_key = peer->key;
	req->flag = 0;
	req->next = NULL;
}

/* Words whole, for somebody may look at one meanwhile. */
static inline void glexch_window_copy(void *to, const void *from, uint64_t len)
{
	switch (len) {
	case 8:
		memcpy(to, from, 8);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	default:
		glexch_copy_some(to, from, len);
	}
}

/* By the way, if that leads there. */
static inline int glexch_window_load(struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len)
{
	const void *at = len <= GLEXCH_WINDOW_NEAR ? glex_get_place(peer->way, (uint32_t)offset, (uint32_t)len) : NULL;

	if (at)
		glexch_window_copy(buf, at, len);
	return at != NULL;
}

static inline int glexch_window_store(struct glexch_window *peer, uint64_t offset, const void *buf, uint64_t len)
{
	void *at = len <= GLEXCH_WINDOW_NEAR ? glex_put_place(peer->way, (uint32_t)offset, (uint32_t)len) : NULL;

	if (at)
		glexch_window_copy(at, buf, len);
	return at != NULL;
}

static int glexch_window_fetch(struct glexch *ch, struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len)
{
	int tries = GLEXCH_WINDOW_TRIES;
	struct glex_imm_rdma_req req;
	glex_ret_t ret;

	glexch_window_describe(peer, offset, buf, len, &req);
	do
		ret = glex_fetch(ch->ep, &req);
	while (ret == GLEX_BUSY && --tries);
	if (ret != GLEX_SUCCESS)
		glexch_window_refused(ch, peer, ret);
	return ret == GLEX_SUCCESS;
}

static int glexch_window_inject(struct glexch *ch, struct glexch_window *peer, uint64_t offset, const void *buf,
				uint64_t len)
{
	int tries = GLEXCH_WINDOW_TRIES;
	struct glex_imm_rdma_req req;
	glex_ret_t ret;

	glexch_window_describe(peer, offset, (void *)(uintptr_t)buf, len, &req);
	do
		ret = glex_inject(ch->ep, &req);
	while (ret == GLEX_BUSY && --tries);
	if (ret == GLEX_SUCCESS && glexch_poll_errors(ch, peer->handle))
		ret = GLEX_ACCESS_ERR;
	if (ret != GLEX_SUCCESS)
		glexch_window_refused(ch, peer, ret);
	return ret == GLEX_SUCCESS;
}

/* The answer to a PUT that is refused is an error request; to a GET, the call's: so one is first.  0: it cannot be. */
static __attribute__((noinline)) int glexch_window_try(struct glexch *ch, struct glexch_window *peer)
{
	glex_ep_addr_t addr = {.v = peer->ep};
	glex_mem_handle_t mh = {.v = peer->handle};
	uint8_t byte;

	return glexch_window_fetch(ch, peer, 0, &byte, sizeof(byte)) &&
	       glex_put_way_open(ch->ep, addr, mh, peer->key, &peer->way) == GLEX_SUCCESS;
}

static inline int glexch_window_has(struct glexch *ch, struct glexch_window *peer, uint64_t offset, uint64_t len)
{
	return ch->fetches && offset <= peer->len && len <= peer->len - offset && len <= ch->max_rdma &&
	       (peer->way || glexch_window_try(ch, peer));
}

int glexch_window_get(struct glexch *ch, struct glexch_window *peer, uint64_t offset, void *buf, uint64_t len)
{
	if (!glexch_window_has(ch, peer, offset, len))
		return 0;
	return glexch_window_load(peer, offset, buf, len) || glexch_window_fetch(ch, peer, offset, buf, len);
}

int glexch_window_put(struct glexch *ch, struct glexch_window *peer, uint64_t offset, const void *buf, uint64_t len)
{
	if (!glexch_window_has(ch, peer, offset, len))
		return 0;
	return glexch_window_store(peer, offset, buf, len) || glexch_window_inject(ch, peer, offset, buf, len);
}

/* 0: the window has no lock, or none that can be reached, and is not asked for it again. */
static __attribute__((noinline)) int glexch_window_try_lock(struct glexch *ch, struct glexch_window *peer)
{
	struct glexch_window lock = {.ep = peer->ep, .handle = peer->lock_handle, .key = peer->key};
	glex_ep_addr_t addr = {.v = peer->ep};
	glex_mem_handle_t mh = {.v = peer->lock_handle};
	uint64_t word;

	if (!peer->lock_handle)
		return 0;
	if (glexch_window_fetch(ch, &lock, peer->lock, &word, sizeof(word)) &&
	    glex_put_way_open(ch->ep, addr, mh, peer->key, &peer->lock_way) == GLEX_SUCCESS)
		return 1;
	peer->lock_handle = 0;
	return 0;
}

void *glexch_window_hold(struct glexch *ch, struct glexch_window *peer, uint64_t offset, uint64_t len)
{
	uint64_t *word;
	void *at;

	if (!glexch_window_has(ch, peer, offset, len) || (!peer->lock_way && !glexch_window_try_lock(ch, peer)))
		return NULL;
	word = glex_atomic_place(peer->lock_way, peer->lock, sizeof(*word));
	if (!word)
		return NULL;
	glexch_lock(ch, word, peer->born);
	ch->held = word;
	at = glex_put_place(peer->way, (uint32_t)offset, (uint32_t)len);
	if (!at)
		glexch_window_release(ch);
	return at;
}

void glexch_window_release(struct glexch *ch)
{
	glexch_unlock(ch->held);
}

void glexch_window_forget(struct glexch_window *peer)
{
	glex_put_way_close(peer->way);
	glex_put_way_close(peer->lock_way);
	peer->way = peer->lock_way = NULL;
}
