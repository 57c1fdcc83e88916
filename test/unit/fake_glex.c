/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_glex.h"

#include <assert.h>
#include <glex_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EPS	  16
#define SLOTS	  4096u
#define UNDER_WAY 65536
#define REGIONS	  256
#define MP_BYTES  112
#define IMM_BYTES 96
#define FAKE_NIC  7
#define DEAD	  64

struct slot {
	glex_ep_addr_t src;
	uint32_t len;
	_Alignas(8) uint8_t data[MP_BYTES];
};

struct ring {
	uint32_t r, p, w, capacity;
};

struct endpoint {
	glex_ep_t pub; /* first */
	int alive;
	uint32_t key;
	glex_ep_addr_t addr;
	struct ring mpq, eq;
	struct slot mps[SLOTS];
	glex_event_t events[SLOTS];
	struct glex_err_req errors[64];
	uint32_t error_count;
};

enum kind { MP, RDMA, IMM };

struct packet {
	enum kind kind;
	unsigned number; /* as posted */
	struct endpoint *from;
	glex_ep_addr_t to;
	struct glex_rdma_req get; /* or PUT */
	uint32_t len;
	uint8_t data[MP_BYTES];
	uint8_t *more; /* instead of data: of glex_inject */
};

struct region {
	struct endpoint *ep;
	uint8_t *addr;
	uint64_t len;
	int32_t flag;
};

struct fake_glex fake;

static struct endpoint *eps[EPS];
static struct packet *under_way;
static int count;
static unsigned posted;
static struct region regions[REGIONS];
static unsigned state;
static uint8_t last_mp[MP_BYTES];
static glex_ep_addr_t dead[DEAD];

unsigned fake_random(unsigned below)
{
	state = state * 1103515245u + 12345u;
	return (state >> 8) % below;
}

void fake_reset(unsigned seed)
{
	int i;

	for (i = 0; i < EPS; i++) {
		free(eps[i]);
		eps[i] = NULL;
	}
	if (!under_way)
		under_way = calloc(UNDER_WAY, sizeof(*under_way));
	while (count)
		free(under_way[--count].more);
	memset(regions, 0, sizeof(regions));
	memset(&fake, 0, sizeof(fake));
	fake.regions_max = REGIONS;
	fake.def_capacity = SLOTS;
	fake.injects = (int)(seed & 1);
	state = seed;
}

/* ---- queues -------------------------------------------------------------- */

static struct endpoint *at(glex_ep_addr_t addr)
{
	struct endpoint *ep = addr.s.nic_id == FAKE_NIC && addr.s.ep_num < EPS ? eps[addr.s.ep_num] : NULL;

	return ep && ep->alive ? ep : NULL;
}

static int claim(struct ring *q, uint32_t *index_p)
{
	if (q->w - q->r >= q->capacity) {
		fake.lost++;
		return 0;
	}
	*index_p = q->w++ % SLOTS;
	return 1;
}

static void put_mp(struct endpoint *to, glex_ep_addr_t src, const void *data, uint32_t len)
{
	uint32_t i;

	if (!claim(&to->mpq, &i))
		return;
	to->mps[i].src = src;
	to->mps[i].len = len;
	memcpy(to->mps[i].data, data, len);
	if (to->mpq.w - to->mpq.r > fake.mpq_peak)
		fake.mpq_peak = to->mpq.w - to->mpq.r;
}

static void put_event(struct endpoint *to, const glex_event_t *ev)
{
	uint32_t i;

	if (!claim(&to->eq, &i))
		return;
	to->events[i].cookie_0 = ev->cookie_0;
	to->events[i].cookie_1 = ev->cookie_1;
}

static void put_error(struct endpoint *ep, glex_ep_addr_t to, enum glex_err_req_op op, enum glex_err_req_status status,
		      const struct glex_rdma_req *get)
{
	struct glex_err_req *err;

	if (ep->error_count == 64)
		return;
	err = &ep->errors[ep->error_count++];
	memset(err, 0, sizeof(*err));
	err->op = op;
	err->status = status;
	err->rmt_nic_id = to.s.nic_id;
	err->rmt_ep_num = to.s.ep_num;
	err->data0 = get ? get->rmt_mh.v : 0;
	err->data1 = get ? get->rmt_offset : 0;
}

/* ---- the network --------------------------------------------------------- */

static uint8_t *region_at(struct endpoint *ep, uint64_t handle, uint64_t offset, uint64_t len)
{
	struct region *r = handle > 0 && handle <= REGIONS ? &regions[handle - 1] : NULL;

	if (!r || r->ep != ep || offset + len > r->len)
		return NULL;
	return r->addr + offset;
}

static void arrive_rdma(struct packet *p, struct endpoint *to)
{
	int put = p->get.type == GLEX_RDMA_TYPE_PUT;
	enum glex_err_req_op op = p->kind == IMM ? GLEX_ERR_OP_IMM_RDMA_PUT
				  : put		 ? GLEX_ERR_OP_RDMA_PUT
						 : GLEX_ERR_OP_RDMA_GET;
	uint8_t *local = p->more ? p->more : p->data;
	uint8_t *remote = to ? region_at(to, p->get.rmt_mh.v, p->get.rmt_offset, p->get.len) : NULL;

	if (p->kind == RDMA && p->get.len)
		local = region_at(p->from, p->get.local_mh.v, p->get.local_offset, p->get.len);
	if (!to || !remote || !local || to->key != p->get.rmt_key) {
		put_error(p->from, p->to, op, to ? GLEX_ERR_STATUS_MMT : GLEX_ERR_STATUS_DEST_HOST_DEAD, &p->get);
		return;
	}
	if (p->get.rmt_mh.v == fake.private_handle || (put && p->kind == RDMA && fake.puts_refused)) {
		put_error(p->from, p->to, op, GLEX_ERR_STATUS_PCIE_READ, &p->get);
		return;
	}
	if (put)
		memcpy(remote, local, p->get.len);
	if (put && p->kind == IMM && p->get.len == 8 && fake.words_lie)
		memset(remote, 0x7f, 8);
	else
		memcpy(local, remote, p->get.len);
	if (p->get.flag & GLEX_FLAG_REMOTE_EVT)
		put_event(to, &p->get.rmt_evt);
	if (p->get.flag & GLEX_FLAG_LOCAL_EVT)
		put_event(p->from, &p->get.local_evt);
}

static void arrive(struct packet *p)
{
	struct endpoint *to = at(p->to);

	if (!p->from->alive)
		return;
	if (p->kind != MP)
		arrive_rdma(p, to);
	else if (to)
		put_mp(to, p->from->addr, p->data, p->len);
	else
		put_error(p->from, p->to, GLEX_ERR_OP_IMM_MP, GLEX_ERR_STATUS_DEST_HOST_DEAD, NULL);
}

static void arrive_and_go(struct packet *p)
{
	arrive(p);
	free(p->more);
}

/* The request must wait for earlier ones of its endpoint. */
static int fenced(const struct packet *p)
{
	int i;

	if (!(p->get.flag & GLEX_FLAG_FENCE)) /* an MP's too */
		return 0;
	for (i = 0; i < count; i++)
		if (under_way[i].from == p->from && (int)(under_way[i].number - p->number) < 0)
			return 1;
	return 0;
}

int fake_deliver(int n)
{
	while (count && n--) {
		int i = (int)fake_random((unsigned)count);
		struct packet p = under_way[i];

		if (fenced(&p))
			continue;
		under_way[i] = under_way[--count];
		arrive_and_go(&p);
	}
	return count;
}

static glex_ret_t launch(struct packet *p)
{
	if (fake.busy_percent && (int)fake_random(100) < fake.busy_percent)
		return GLEX_BUSY;
	p->number = ++posted;
	if (fake.direct)
		arrive_and_go(p);
	else if (count == UNDER_WAY)
		return GLEX_BUSY;
	else
		under_way[count++] = *p;
	return GLEX_SUCCESS;
}

void fake_kill(glex_ep_addr_t addr)
{
	struct endpoint *ep = at(addr);

	if (ep)
		ep->alive = 0;
}

void fake_announce_death(glex_ep_addr_t addr)
{
	dead[fake.deaths++ % DEAD] = addr;
}

void fake_report(glex_ep_addr_t of, glex_ep_addr_t rmt, enum glex_err_req_status status)
{
	put_error(at(of), rmt, GLEX_ERR_OP_IMM_RDMA_PUT, status, NULL);
}

int glex_is_crowded(glex_device_handle_t dev)
{
	(void)dev;
	return 0;
}

glex_ret_t glex_poll_dead(glex_device_handle_t dev, uint64_t *next, uint32_t *num, struct glex_dead *list)
{
	uint32_t n = 0;

	(void)dev;
	if (*num == 0)
		*next = fake.deaths;
	for (; n < *num && *next < fake.deaths; n++) {
		list[n] = (struct glex_dead){.field_mask = GLEX_DEAD_FIELDS, .addr = dead[*next % DEAD]};
		list[n].number = (*next)++;
	}
	*num = n;
	return GLEX_SUCCESS;
}

const uint8_t *fake_last_mp(void)
{
	return last_mp;
}

void fake_inject(glex_ep_addr_t from, glex_ep_addr_t to, const void *data, uint32_t len)
{
	put_mp(at(to), from, data, len);
}

/* ---- posting ------------------------------------------------------------- */

static glex_ret_t send_imm_mp(struct glex_ep *ep, struct glex_imm_mp_req *req, struct glex_imm_mp_req **bad)
{
	struct packet p = {0};
	glex_ret_t ret;

	(void)bad;
	if (req->len > MP_BYTES)
		return GLEX_INVALID_PARAM;
	p.from = (struct endpoint *)ep;
	p.to = req->rmt_ep_addr;
	p.len = req->len;
	p.get.flag = req->flag;
	memcpy(p.data, req->data, req->len);
	ret = launch(&p);
	if (ret == GLEX_SUCCESS) {
		fake.mps++;
		memcpy(last_mp, p.data, sizeof(last_mp));
		fake.credit_mps += req->len == 8 && (p.data[0] & 0xf) == 4;
	}
	return ret;
}

static glex_ret_t rdma(struct glex_ep *ep, struct glex_rdma_req *req, struct glex_rdma_req **bad)
{
	struct packet p = {0};

	(void)bad;
	if ((req->flag & GLEX_FLAG_LOCAL_EVT) && !req->local_evt.cookie_1)
		return GLEX_INVALID_PARAM;
	if (req->type == GLEX_RDMA_TYPE_GET && fake.gets_invalid)
		return GLEX_INVALID_PARAM;
	p.kind = RDMA;
	p.from = (struct endpoint *)ep;
	p.to = req->rmt_ep_addr;
	p.get = *req;
	return launch(&p);
}

static struct packet imm_packet(struct glex_ep *ep, const struct glex_imm_rdma_req *req)
{
	struct packet p = {0};

	p.kind = IMM;
	p.from = (struct endpoint *)ep;
	p.to = req->rmt_ep_addr;
	p.get.type = GLEX_RDMA_TYPE_PUT;
	p.get.rmt_mh = req->rmt_mh;
	p.get.rmt_offset = req->rmt_offset;
	p.get.len = req->len;
	p.get.rmt_key = req->rmt_key;
	p.get.flag = req->flag & ~GLEX_FLAG_LOCAL_EVT;
	p.get.rmt_evt = req->rmt_evt;
	return p;
}

static glex_ret_t imm_rdma(struct glex_ep *ep, struct glex_imm_rdma_req *req, struct glex_imm_rdma_req **bad)
{
	struct packet p = imm_packet(ep, req);

	(void)bad;
	if (req->len > IMM_BYTES)
		return GLEX_INVALID_PARAM;
	memcpy(p.data, req->data, req->len);
	return launch(&p);
}

glex_ret_t glex_inject(glex_ep_handle_t ep, const struct glex_imm_rdma_req *req)
{
	struct packet p = imm_packet(ep, req);
	glex_ret_t ret;

	if (!fake.injects)
		return GLEX_NOT_IMPLEMENTED;
	if (req->len == 0)
		return GLEX_SUCCESS;
	p.more = malloc(req->len);
	memcpy(p.more, req->data, req->len);
	ret = launch(&p);
	if (ret == GLEX_SUCCESS)
		fake.injected++;
	else
		free(p.more);
	return ret;
}

static struct way {
	struct glex_put_way pub; /* nothing is known: asked for each PUT */
	uint64_t puts;		 /* nobody looks */
	struct way *next;
	glex_ep_handle_t from;
	glex_ep_addr_t to;
	uint64_t mh;
	uint32_t key;
} * ways;

glex_ret_t glex_put_way_open(glex_ep_handle_t ep, glex_ep_addr_t to, glex_mem_handle_t rmt_mh, uint32_t rmt_key,
			     struct glex_put_way **way_p)
{
	struct way *way = calloc(1, sizeof(*way));

	if (!way)
		return GLEX_NO_MEM_RESOURCE;
	way->pub.alone = (const uint8_t *)"";
	way->pub.counters[0] = way->pub.counters[1] = &way->puts;
	way->next = ways;
	ways = way;
	way->from = ep;
	way->to = to;
	way->mh = rmt_mh.v;
	way->key = rmt_key;
	*way_p = &way->pub;
	return GLEX_SUCCESS;
}

void glex_put_way_close(struct glex_put_way *pub)
{
	struct way **p = &ways, *way = (struct way *)pub;

	if (!way)
		return;
	while (*p != way)
		p = &(*p)->next;
	*p = way->next;
	free(way);
}

/* Those of an endpoint end with it. */
static void end_ways(glex_ep_handle_t ep)
{
	struct way **p = &ways, *way;

	while ((way = *p) != NULL) {
		if (way->from == ep)
			glex_put_way_close(&way->pub);
		else
			p = &way->next;
	}
}

/* What is stored there has been delivered: as long as nothing is under way, that is in order. */
void *glex_put_way_find(struct glex_put_way *pub, uint32_t rmt_offset, uint32_t len)
{
	const struct way *way = (const struct way *)pub;
	struct endpoint *target = at(way->to);
	uint8_t *place;

	if (!fake.injects || !fake.direct || !target || target->key != way->key || !fake_random(4))
		return NULL;
	place = region_at(target, way->mh, rmt_offset, len);
	if (place)
		pub->base = place - rmt_offset;
	pub->readable = pub->atomic = 1;
	return place;
}

/* For prefetches: any address will do. */
const void *glex_prefetch_at(glex_ep_handle_t ep, const struct glex_imm_rdma_req *req)
{
	(void)ep;
	return fake_random(2) ? NULL : (const void *)(uintptr_t)(0x1000 + req->rmt_offset);
}

/* Executed at once, whatever is under way: nothing that the channel posts is asked of it earlier. */
glex_ret_t glex_fetch(glex_ep_handle_t handle, const struct glex_imm_rdma_req *req)
{
	struct endpoint *ep = (struct endpoint *)handle, *to = at(req->rmt_ep_addr);
	uint8_t *remote = to ? region_at(to, req->rmt_mh.v, req->rmt_offset, req->len) : NULL;
	const struct glex_rdma_req get = {.rmt_mh = req->rmt_mh, .rmt_offset = req->rmt_offset};

	if (!fake.injects)
		return GLEX_NOT_IMPLEMENTED;
	if (fake.busy_percent && (int)fake_random(100) < fake.busy_percent)
		return GLEX_BUSY;
	if (!remote || to->key != req->rmt_key) {
		put_error(ep, req->rmt_ep_addr, GLEX_ERR_OP_RDMA_GET,
			  to ? GLEX_ERR_STATUS_MMT : GLEX_ERR_STATUS_DEST_HOST_DEAD, &get);
		return GLEX_ACCESS_ERR;
	}
	if (req->rmt_mh.v == fake.private_handle) {
		put_error(ep, req->rmt_ep_addr, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_PCIE_READ, &get);
		return GLEX_ACCESS_ERR;
	}
	memcpy(req->data, remote, req->len);
	if (req->flag & GLEX_FLAG_REMOTE_EVT)
		put_event(to, &req->rmt_evt);
	fake.fetched++;
	return GLEX_SUCCESS;
}

/* ---- devices, endpoints, memory ------------------------------------------ */

glex_ret_t glex_open_device(uint32_t dev_id, glex_device_handle_t *dev)
{
	static glex_device_t device;

	*dev = &device;
	return dev_id ? GLEX_INVALID_PARAM : GLEX_SUCCESS;
}

glex_ret_t glex_close_device(glex_device_handle_t dev)
{
	return dev ? GLEX_SUCCESS : GLEX_INVALID_PARAM;
}

glex_ret_t glex_query_device(glex_device_handle_t dev, struct glex_device_attr *attr)
{
	(void)dev;
	memset(attr, 0, sizeof(*attr));
	attr->max_rdma_data_len = 1u << 27;
	attr->mmt_units = REGIONS;
	attr->def_ep_mpq_capacity = fake.def_capacity;
	attr->def_ep_eq_capacity = SLOTS;
	attr->max_ep_mpq_capacity = SLOTS;
	attr->max_ep_eq_capacity = SLOTS;
	attr->max_ep_hc_mpq_capacity = 1u << 20;
	attr->max_ep_hc_eq_capacity = 1u << 20;
	return GLEX_SUCCESS;
}

glex_ret_t glex_create_ep(glex_device_handle_t dev, struct glex_ep_attr *attr, glex_ep_handle_t *ep_p)
{
	int i;

	(void)dev;
	for (i = 0; i < EPS && eps[i]; i++)
		;
	if (i == EPS)
		return GLEX_NO_EP_RESOURCE;
	eps[i] = calloc(1, sizeof(*eps[i]));
	eps[i]->alive = 1;
	eps[i]->key = attr->key;
	eps[i]->addr.s.nic_id = FAKE_NIC;
	eps[i]->addr.s.ep_num = (uint16_t)i;
	eps[i]->mpq.capacity = attr->mpq_capacity < SLOTS ? attr->mpq_capacity : SLOTS;
	eps[i]->eq.capacity = attr->eq_capacity < SLOTS ? attr->eq_capacity : SLOTS;
	eps[i]->pub.send_imm_mp = send_imm_mp;
	eps[i]->pub.rdma = rdma;
	eps[i]->pub.imm_rdma = imm_rdma;
	*ep_p = &eps[i]->pub;
	return GLEX_SUCCESS;
}

glex_ret_t glex_query_ep(glex_ep_handle_t pub, struct glex_ep_attr *attr)
{
	struct endpoint *ep = (struct endpoint *)pub;

	memset(attr, 0, sizeof(*attr));
	attr->num = ep->addr.s.ep_num;
	attr->key = ep->key;
	attr->mpq_capacity = ep->mpq.capacity;
	attr->eq_capacity = ep->eq.capacity;
	return GLEX_SUCCESS;
}

/* What glex_alloc gives ends at a page that nobody may touch. */
static struct {
	void *addr;
	uint8_t *pages;
	uint64_t len; /* of all pages */
} allocated[REGIONS];

static int is_allocated(const void *addr)
{
	int i;

	for (i = 0; i < REGIONS && allocated[i].addr != addr; i++)
		;
	return i < REGIONS;
}

glex_ret_t glex_destroy_ep(glex_ep_handle_t ep)
{
	struct endpoint *gone = (struct endpoint *)ep;
	int i;

	/* Registrations go with it: of rings, and of what was allocated; but all others should have gone before. */
	for (i = 0; i < REGIONS; i++) {
		if (regions[i].ep != gone || !(regions[i].flag & GLEX_MEM_WRITE || is_allocated(regions[i].addr)))
			continue;
		regions[i].ep = NULL;
		fake.regions--;
	}
	end_ways(ep);
	gone->alive = 0;
	return GLEX_SUCCESS;
}

glex_ret_t glex_get_ep_addr(glex_ep_handle_t ep, glex_ep_addr_t *addr)
{
	*addr = ((struct endpoint *)ep)->addr;
	return GLEX_SUCCESS;
}

glex_ret_t glex_register_mem(glex_ep_handle_t ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh)
{
	int i;

	for (i = 0; i < REGIONS && regions[i].ep; i++)
		;
	if (i == REGIONS || fake.regions >= fake.regions_max)
		return GLEX_NO_MEM_RESOURCE;
	regions[i].ep = (struct endpoint *)ep;
	regions[i].addr = addr;
	regions[i].len = len;
	regions[i].flag = flag;
	fake.regions++;
	mh->v = (uint64_t)i + 1;
	return GLEX_SUCCESS;
}

glex_ret_t glex_deregister_mem(glex_ep_handle_t ep, glex_mem_handle_t mh)
{
	if (mh.v < 1 || mh.v > REGIONS || regions[mh.v - 1].ep != (struct endpoint *)ep)
		return GLEX_INVALID_PARAM;
	regions[mh.v - 1].ep = NULL;
	fake.regions--;
	return GLEX_SUCCESS;
}

/* ---- the registration cache: keeps nothing, but its regions begin before the buffer ---- */

#define BEFORE 24

struct glex_rcache {
	glex_ep_handle_t ep;
};

glex_ret_t glex_rcache_create(glex_ep_handle_t ep, const struct glex_rcache_attr *attr, glex_rcache_handle_t *rc_p)
{
	(void)attr;
	*rc_p = malloc(sizeof(**rc_p));
	(*rc_p)->ep = ep;
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_destroy(glex_rcache_handle_t rc)
{
	free(rc);
	return GLEX_SUCCESS;
}

glex_ret_t glex_rcache_get(glex_rcache_handle_t rc, void *addr, uint64_t len, int32_t flag,
			   struct glex_rcache_region *region)
{
	if (fake.cache_broken)
		return GLEX_SYS_ERR;
	region->offset = BEFORE;
	region->slot = 7;
	region->mapped = fake.mapped;
	fake.registered++;
	return glex_register_mem(rc->ep, (char *)addr - BEFORE, len + BEFORE, flag, &region->mh);
}

glex_ret_t glex_rcache_put(glex_rcache_handle_t rc, const struct glex_rcache_region *region)
{
	return region->slot == 7 ? glex_deregister_mem(rc->ep, region->mh) : GLEX_INVALID_PARAM;
}

/* What is got is deregistered with its put anyway. */
glex_ret_t glex_mem_invalidate(void *addr, uint64_t len)
{
	(void)addr;
	fake.invalidated++;
	return len ? GLEX_SUCCESS : GLEX_INVALID_PARAM;
}

glex_ret_t glex_rcache_query(glex_rcache_handle_t rc, struct glex_rcache_stats *stats)
{
	(void)rc;
	memset(stats, 0, sizeof(*stats));
	stats->misses = fake.registered;
	return GLEX_SUCCESS;
}

glex_ret_t glex_config_uint(const char *name, uint64_t *value_p)
{
	(void)name;
	(void)value_p;
	return GLEX_INVALID_PARAM;
}

glex_ret_t glex_alloc_with(glex_device_handle_t dev, uint64_t len, const struct glex_alloc_attr *attr, void **addr_p)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), all = (len + page - 1) / page * page + page;
	uint8_t *pages = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	(void)dev;
	(void)attr;
	if (pages == MAP_FAILED || mprotect(pages + all - page, page, PROT_NONE) != 0)
		return GLEX_NO_MEM_RESOURCE;
	for (i = 0; allocated[i].addr; i++)
		assert(i + 1 < REGIONS);
	allocated[i].addr = *addr_p = pages + all - page - (len + 63) / 64 * 64;
	allocated[i].pages = pages;
	allocated[i].len = all;
	return GLEX_SUCCESS;
}

glex_ret_t glex_alloc(glex_device_handle_t dev, uint64_t len, void **addr_p)
{
	return glex_alloc_with(dev, len, NULL, addr_p);
}

glex_ret_t glex_free(glex_device_handle_t dev, void *addr)
{
	int i;

	(void)dev;
	for (i = 0; i < REGIONS; i++)
		assert(!regions[i].ep || regions[i].addr != addr);
	for (i = 0; i < REGIONS; i++) {
		if (allocated[i].addr != addr)
			continue;
		munmap(allocated[i].pages, allocated[i].len);
		allocated[i].addr = NULL;
	}
	return GLEX_SUCCESS;
}

/* ---- probing ------------------------------------------------------------- */

glex_ret_t glex_probe_next_mp(glex_ep_handle_t pub, glex_ep_addr_t *src, void **data, uint32_t *len)
{
	struct endpoint *ep = (struct endpoint *)pub;
	struct slot *slot = &ep->mps[ep->mpq.p % SLOTS];

	if (fake.broken)
		return GLEX_SYS_ERR;
	if (ep->mpq.p == ep->mpq.w)
		return GLEX_NO_MP;
	ep->mpq.p++;
	*src = slot->src;
	*data = slot->data;
	*len = slot->len;
	return GLEX_SUCCESS;
}

glex_ret_t glex_discard_probed_mp(glex_ep_handle_t pub)
{
	struct endpoint *ep = (struct endpoint *)pub;

	for (; ep->mpq.r != ep->mpq.p; ep->mpq.r++)
		memset(ep->mps[ep->mpq.r % SLOTS].data, 0xdd, MP_BYTES); /* nobody may look at it any more */
	return GLEX_SUCCESS;
}

glex_ret_t glex_probe_next_event(glex_ep_handle_t pub, glex_event_t **event)
{
	struct endpoint *ep = (struct endpoint *)pub;

	if (ep->eq.p == ep->eq.w)
		return GLEX_NO_EVENT;
	*event = &ep->events[ep->eq.p++ % SLOTS];
	return GLEX_SUCCESS;
}

glex_ret_t glex_discard_probed_event(glex_ep_handle_t pub)
{
	struct endpoint *ep = (struct endpoint *)pub;

	for (; ep->eq.r != ep->eq.p; ep->eq.r++)
		ep->events[ep->eq.r % SLOTS].cookie_1 = 0;
	return GLEX_SUCCESS;
}

glex_ret_t glex_poll_error_req(glex_ep_handle_t pub, uint32_t *num, struct glex_err_req *list)
{
	struct endpoint *ep = (struct endpoint *)pub;
	uint32_t n = ep->error_count < *num ? ep->error_count : *num;

	memcpy(list, ep->errors, n * sizeof(*list));
	memmove(ep->errors, ep->errors + n, (ep->error_count - n) * sizeof(*list));
	ep->error_count -= n;
	*num = n;
	return GLEX_SUCCESS;
}

const char *glex_error_str(glex_ret_t ret)
{
	return ret == GLEX_SUCCESS ? "successful" : "refused";
}

const char *glex_error_req_status_str(enum glex_err_req_status status)
{
	(void)status;
	return "lost";
}
