/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * long.c - a broadcast of any length: made of short ones, and of RDMA between the members' own buffers.
 *
 *   root                                 another
 *   registers its buffer
 *   says where it is (broadcast)  ---->
 *                                 <----  GETs it from there, into its own buffer
 *                                 <----  says that it has it (reduction to the root)
 *
 * Each byte is copied once, by whoever wants it, so as many processors copy as there are; nobody
 * waits for another receiver, and the root's cache is what all read from.  What a root cannot
 * register, for want of room, goes by broadcasts of a packet each: slowly, but it goes.
 *
 * I1  `what` is not GLEXI_NOTHING from the first of these to the last.
 * I2  The root's region is held until all have said that they have it.
 * I3  Once a wait has said that it never will end, nobody reaches the buffer any more: the program may have other
 *     things there then, which a late member must not take for the root's, nor a late PUT write over.
 */
#include "group/priv.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define REGIONS 4u	   /* kept registered */
#define CHUNK	(1u << 18) /* fetched in one look */

enum step { TELL, FETCH, READY, PASS, PACKETS, TOLD, OVER };

/* What the root says. */
struct source {
	glex_ep_addr_t addr;
	glex_mem_handle_t mh;
	uint32_t offset, key;
	uint32_t len;
	uint32_t by_packets; /* there is no region */
};

struct own {
	struct glexi_longer base;
	glex_rcache_handle_t rc;
	struct glex_rcache_region region;
	bool is_held, has_posted, is_lost; /* region; a GET is under way; something could not be reached */
	enum step step;
	unsigned char *data;
	uint32_t root, len, at, part;
	uint32_t chunk; /* bytes of a GET at most */
	struct source source;
	union glex_coll_data_loc lost;	   /* how many could not reach it */
	union glex_coll_data_loc ready[3]; /* whether somebody has no region, and the longest and shortest */
};

static struct own *own_of(const struct glex_group *group)
{
	return (struct own *)group->fetched;
}

static void let_go(struct own *own)
{
	if (own->is_held)
		glex_rcache_put(own->rc, &own->region);
	own->is_held = false;
}

/* ---- fetching ------------------------------------------------------------------- */

/* The endpoint's oldest error.  GLEX_ACCESS_ERR: a GET that failed; GLEX_SYS_ERR: a member that is gone. */
static glex_ret_t take_error(struct glex_group *group)
{
	struct glex_err_req error;
	uint32_t num = 1;

	do {
		if (glex_poll_error_req(group->up, &num, &error) != GLEX_SUCCESS)
			return GLEX_SYS_ERR;
		if (!num)
			return GLEX_SUCCESS;
	} while (group->direct && error.op != GLEX_ERR_OP_RDMA_GET && glexi_group_is_harmless(group, &error));
	return error.op != GLEX_ERR_OP_RDMA_GET || error.status == GLEX_ERR_STATUS_DEST_VP_STOP ? GLEX_SYS_ERR
												: GLEX_ACCESS_ERR;
}

/* Where others execute what is posted: into registered memory, and an event says that it has come. */
static glex_ret_t get_posted(struct glex_group *group, const struct glex_imm_rdma_req *from, int32_t timeout)
{
	struct own *own = own_of(group);
	struct glex_rdma_req req = {
		.rmt_ep_addr = from->rmt_ep_addr,
		.len = from->len,
		.rmt_mh = from->rmt_mh,
		.rmt_offset = from->rmt_offset,
		.type = GLEX_RDMA_TYPE_GET,
		.local_evt = {.cookie_0 = own->at, .cookie_1 = 1},
		.rmt_key = from->rmt_key,
		.flag = GLEX_FLAG_LOCAL_EVT,
	};
	glex_event_t *event;
	glex_ret_t ret;

	if (!own->is_held)
		return GLEX_ACCESS_ERR;
	if (!own->has_posted) {
		req.local_mh = own->region.mh;
		req.local_offset = own->region.offset + own->at;
		ret = glex_rdma(group->up, &req, NULL);
		own->has_posted = ret == GLEX_SUCCESS;
		if (ret != GLEX_SUCCESS)
			return ret;
	}
	ret = glex_probe_first_event(group->up, timeout, &event);
	if (ret == GLEX_NO_EVENT) {
		ret = take_error(group);
		return ret == GLEX_SUCCESS ? GLEX_NO_MP : ret;
	}
	if (ret == GLEX_SUCCESS)
		glex_discard_probed_event(group->up);
	own->has_posted = false;
	return ret;
}

/* The next chunk.  GLEX_NO_MP: not now. */
static glex_ret_t fetch(struct glex_group *group, int32_t timeout)
{
	struct own *own = own_of(group);
	uint32_t left = own->len - own->at;
	struct glex_imm_rdma_req req = {
		.rmt_ep_addr = own->source.addr,
		.data = own->data + own->at,
		.len = left < own->chunk ? left : own->chunk,
		.rmt_mh = own->source.mh,
		.rmt_offset = own->source.offset + own->at,
		.rmt_key = own->source.key,
	};
	glex_ret_t ret = glex_fetch(group->up, &req);

	if (ret == GLEX_NOT_IMPLEMENTED)
		ret = get_posted(group, &req, timeout);
	else if (ret == GLEX_ACCESS_ERR && take_error(group) == GLEX_SYS_ERR) /* no report: that queue was full */
		ret = GLEX_SYS_ERR;
	switch (ret) {
	case GLEX_SUCCESS:
		own->at += req.len;
		return GLEX_SUCCESS;
	case GLEX_ACCESS_ERR:
		own->is_lost = true;
		return GLEX_SUCCESS;
	case GLEX_BUSY:
		sched_yield();
		return timeout ? GLEX_SUCCESS : GLEX_NO_MP; /* it clears by itself */
	default:
		return ret;
	}
}

/* ---- step by step ------------------------------------------------------------------ */

/* Short ones, one behind the other. */
static glex_ret_t begin_packet(struct glex_group *group)
{
	struct own *own = own_of(group);
	uint32_t left = own->len - own->at;

	own->step = PACKETS;
	own->part = left < GLEXI_GROUP_MP ? left : GLEXI_GROUP_MP;
	group->what = GLEXI_NOTHING;
	return glex_group_bcast(group, group->root, own->data + own->at, own->part);
}

static glex_ret_t begin_told(struct glex_group *group)
{
	struct own *own = own_of(group);

	own->step = TOLD;
	if (group->me != group->root)
		let_go(own);
	memset(&own->lost, 0, sizeof(own->lost));
	own->lost.uint32_s.data = own->is_lost;
	group->what = GLEXI_NOTHING;
	if (group->puts)
		return glex_group_allreduce(group, &own->lost, 1, GLEX_COLL_REDUCE_DATA_BITS_32,
					    GLEX_COLL_REDUCE_SUM_UNSIGNED);
	return glex_group_reduce(group, group->root, &own->lost, 1, GLEX_COLL_REDUCE_DATA_BITS_32,
				 GLEX_COLL_REDUCE_SUM_UNSIGNED);
}

/* All have begun. */
static glex_ret_t begin_passing(struct glex_group *group)
{
	struct own *own = own_of(group);

	if (own->ready[1].uint64_s.data != own->len || ~own->ready[2].uint64_s.data != own->len)
		return GLEX_SYS_ERR;
	group->root = own->root;
	if (own->ready[0].uint64_s.data)
		return begin_packet(group);
	own->step = own->len ? PASS : OVER;
	group->what = GLEXI_LONG; /* I1 */
	own->base.takes_errors = own->len != 0;
	return GLEX_SUCCESS;
}

/* What follows the step that has ended, or, of several fetches, one of them. */
static glex_ret_t begin_next(struct glex_group *group)
{
	struct own *own = own_of(group);
	bool all = group->me == group->root || own->at == own->len || own->is_lost;

	switch (own->step) {
	case TELL:
		if (own->source.len != own->len)
			return GLEX_SYS_ERR;
		if (own->source.by_packets)
			return begin_packet(group);
		own->step = FETCH;
		group->what = GLEXI_LONG; /* I1 */
		return all ? begin_told(group) : GLEX_SUCCESS;
	case FETCH:
		return all ? begin_told(group) : GLEX_SUCCESS;
	case READY:
		return begin_passing(group);
	case PASS:
		own->base.takes_errors = false;
		return begin_told(group);
	case PACKETS:
		own->at += own->part;
		if (own->at < own->len)
			return begin_packet(group);
		break;
	default:
		own->is_lost |= (group->puts || group->me == group->root) && own->lost.uint32_s.data;
		break;
	}
	own->step = OVER;
	return GLEX_SUCCESS;
}

static glex_ret_t long_wait(struct glex_group *group, int32_t timeout)
{
	struct own *own = own_of(group);
	glex_ret_t ret;

	while (own->step != OVER) {
		bool fetches = own->step == FETCH;

		if (own->step == PASS)
			ret = glexi_puts_step(group, timeout, &own->is_lost);
		else
			ret = fetches ? fetch(group, timeout) : glexi_group_wait_one(group, timeout);
		if (ret == GLEX_SUCCESS)
			ret = begin_next(group);
		if (ret != GLEX_SUCCESS)
			return ret;
		if (fetches && own->step == FETCH && !timeout)
			return GLEX_NO_MP; /* who only looks in has other things to do */
	}
	let_go(own); /* I2 */
	return own->is_lost ? GLEX_ACCESS_ERR : GLEX_SUCCESS;
}

/* ---- beginning ------------------------------------------------------------------- */

static void long_drop(struct glex_group *group)
{
	struct own *own = own_of(group);

	if (own->rc)
		glex_rcache_destroy(own->rc);
	free(own);
}

/* I3.  The cache would keep the region: it goes with it.  Nothing is begun in a broken group. */
static void long_give_up(struct glex_group *group)
{
	struct own *own = own_of(group);

	let_go(own);
	if (own->rc)
		glex_rcache_destroy(own->rc);
	own->rc = NULL;
}

/* Once a group.  Without a cache a root sends packets. */
static struct own *open_own(struct glex_group *group)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_COUNT, .max_count = REGIONS};
	struct own *own = calloc(1, sizeof(*own));
	struct glex_device_attr device;

	if (!own)
		return NULL;
	own->base.wait = long_wait;
	own->base.give_up = long_give_up;
	own->base.drop = long_drop;
	own->chunk = CHUNK;
	if (glex_query_device(group->dev, &device) == GLEX_SUCCESS && device.max_rdma_data_len < own->chunk)
		own->chunk = device.max_rdma_data_len;
	if (glex_rcache_create(group->puts ? group->down : group->up, &attr, &own->rc) != GLEX_SUCCESS)
		own->rc = NULL;
	group->fetched = &own->base;
	return own;
}

/* Also who only fetches: what is often used is moved to where others reach it fast, and the next root may be this one. */
static void hold(struct own *own, int32_t access)
{
	own->is_held = own->len && own->rc &&
		       glex_rcache_get(own->rc, own->data, own->len, access, &own->region) == GLEX_SUCCESS;
}

static void show(struct glex_group *group)
{
	struct own *own = own_of(group);
	struct source *source = &own->source;

	source->addr = group->card.up;
	source->mh = own->region.mh;
	source->offset = own->region.offset;
	source->key = group->card.key;
	source->len = own->len;
	source->by_packets = own->len && !own->is_held;
}

static glex_ret_t begin_fetched(struct glex_group *group)
{
	struct own *own = own_of(group);

	own->step = TELL;
	memset(&own->source, 0, sizeof(own->source));
	hold(own, GLEX_MEM_READ);
	if (own->root == group->me)
		show(group);
	return glex_group_bcast(group, own->root, &own->source, sizeof(own->source));
}

static glex_ret_t begin_passed(struct glex_group *group)
{
	struct own *own = own_of(group);

	own->step = READY;
	hold(own, own->root == group->me ? GLEX_MEM_READ : GLEX_MEM_READ | GLEX_MEM_WRITE);
	group->root = own->root;
	glexi_puts_begin(group, own->is_held ? &own->region : NULL, own->len);
	memset(own->ready, 0, sizeof(own->ready));
	own->ready[0].uint64_s.data = own->len && !own->is_held;
	own->ready[1].uint64_s.data = own->len;
	own->ready[2].uint64_s.data = ~(uint64_t)own->len;
	return glex_group_allreduce(group, own->ready, 3, GLEX_COLL_REDUCE_DATA_BITS_64,
				    GLEX_COLL_REDUCE_MAXLOC_UNSIGNED);
}

glex_ret_t glex_group_bcast_long(glex_group_t group, uint32_t root, void *data, uint64_t len)
{
	struct own *own;
	glex_ret_t ret = glexi_group_may_begin(group);

	if (ret != GLEX_SUCCESS)
		return ret;
	if (root >= group->n || len > GLEX_GROUP_LONG_MAX || (len && !data))
		return GLEX_INVALID_PARAM;
	own = group->fetched ? own_of(group) : open_own(group);
	if (!own)
		return GLEX_NO_MEM_RESOURCE;
	own->data = data;
	own->len = (uint32_t)len;
	own->at = 0;
	own->root = root;
	own->has_posted = own->is_lost = own->base.takes_errors = false;
	ret = group->puts ? begin_passed(group) : begin_fetched(group);
	group->longer = &own->base;
	group->is_longer = ret == GLEX_SUCCESS;
	if (ret != GLEX_SUCCESS)
		let_go(own);
	return ret;
}
