/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * put_way.c - ways of immediate PUTs, GETs and atomic operations, which their callers look at themselves
 *             (glex_put_place, glex_get_place, glex_atomic_place).
 *
 * What a way shows it shows by plain pointers, so it is forgotten, by whoever holds the endpoint's lock, before what
 * they point to is unmapped.  Who stores along it holds no lock: he may if there is no other thread, which the way
 * itself tells him, and so nothing is unmapped meanwhile.
 */
#include "core/priv.h"

#include <stdlib.h>

static const uint8_t yes = 1;
#ifndef GLEXI_KNOWS_THREADS
static const uint8_t no = 0;
#endif

/* What is not zero while the endpoint's lock need not be taken. */
static const uint8_t *alone_of(const struct glexi_ep *ep)
{
	if (ep->post_lock.never)
		return &yes;
#ifdef GLEXI_KNOWS_THREADS
	return (const uint8_t *)&__libc_single_threaded;
#else
	return &no;
#endif
}

glex_ret_t glex_put_way_open(glex_ep_handle_t handle, glex_ep_addr_t to, glex_mem_handle_t rmt_mh, uint32_t rmt_key,
			     struct glex_put_way **way_p)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	struct glexi_put_way *way;
	bool locked;

	if (!ep || !way_p)
		return GLEX_INVALID_PARAM;
	way = calloc(1, sizeof(*way));
	if (!way)
		return GLEX_NO_MEM_RESOURCE;
	way->ep = ep;
	way->to = to.v;
	way->mh = rmt_mh.v;
	way->key = rmt_key;
	way->pub.alone = alone_of(ep);
	way->pub.lost = (const uint32_t *)(const void *)&ep->dev->lost;
	locked = glexi_lock(&ep->post_lock);
	LIST_INSERT_HEAD(&ep->ways, way, link);
	glexi_unlock(&ep->post_lock, locked);
	*way_p = &way->pub;
	return GLEX_SUCCESS;
}

void glex_put_way_close(struct glex_put_way *pub)
{
	struct glexi_put_way *way = glexi_put_way_of(pub);
	struct glexi_ep *ep = way ? way->ep : NULL;
	bool locked;

	if (!way)
		return;
	locked = glexi_lock(&ep->post_lock);
	LIST_REMOVE(way, link);
	glexi_unlock(&ep->post_lock, locked);
	free(way);
}

void *glex_put_way_find(struct glex_put_way *pub, uint32_t rmt_offset, uint32_t len)
{
	struct glexi_put_way *way = glexi_put_way_of(pub);
	struct glexi_ep *ep = way->ep;

	if (!*pub->alone) /* then it is not to be touched */
		return NULL;
	pub->len = 0;
	if (glexi_is_lost(ep->dev) || !len || !ep->dev->ops->find_put_way(ep, way))
		return NULL;
	return glex_put_way_is_open(pub, rmt_offset, len) ? pub->base + rmt_offset : NULL;
}

void glexi_put_ways_forget(struct glexi_ep *ep)
{
	struct glexi_put_way *way;

	LIST_FOREACH(way, &ep->ways, link)
	{
		way->pub.len = 0;
	}
}

void glexi_put_ways_end(struct glexi_ep *ep)
{
	struct glexi_put_way *way;

	while ((way = LIST_FIRST(&ep->ways)) != NULL) {
		LIST_REMOVE(way, link);
		free(way);
	}
}
