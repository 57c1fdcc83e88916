/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic.c - the backend over the NIC emulator: device and endpoints.
 */
#include "backend/nic/nic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cfg/cfg.h"
#include "cfg/log.h"
#include "emulator/host/crowd.h"
#include "emulator/host/futex.h"
#include "emulator/nic/dead.h"

/* ---- device ---------------------------------------------------------------- */

/* Maps and checks a segment; NULL logged.  Closes fd. */
static void *map_checked(int fd, uint64_t magic, const char *what)
{
	uint64_t size;
	void *base = nic_map_segment(fd, what, &size);
	const char *wrong = base ? emu_seg_check(base, magic, size) : NULL;

	if (!wrong)
		return base;
	glexi_error("%s cannot be used: %s", what, wrong);
	munmap(base, size);
	return NULL;
}

static void free_device(struct nic_device *dev)
{
	nic_ctl_close(&dev->ctl);
	nic_peers_free(dev);
	nic_allocs_free(dev);
	nic_files_free(dev);
	if (dev->vma_fd >= 0)
		close(dev->vma_fd);
	if (dev->engine)
		munmap(dev->engine, dev->engine->seg.total_size);
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->ep_lock);
	pthread_mutex_destroy(&dev->ctl.lock);
	free(dev);
}

/*
 * Where the kernel's Yama module lets only a parent attach, say that peers may:
 * the processes of a job trust each other.  Elsewhere this fails, and need not succeed.
 */
static void allow_attach(void)
{
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

/* ---- another PID namespace ---------------------------------------------------- */

static enum emu_reach refuse_attach(struct emu_host *host)
{
	const struct emu_ctl_hello_reply *welcome = &nic_ep_of(host)->dev->welcome;

	glexi_error_once(
		0,
		"this process cannot attach to others: it is in another PID namespace than glexd %u, for which "
		"it is pid %u; let glexd run in its namespace, or use memory of glex_alloc",
		welcome->glexd_pid, welcome->pid);
	return EMU_REACH_REFUSED;
}

static enum emu_reach refuse_read(struct emu_host *host, uint32_t pid, void *here, uint64_t there, uint64_t len)
{
	(void)pid, (void)here, (void)there, (void)len;
	return refuse_attach(host);
}

static enum emu_reach refuse_write(struct emu_host *host, uint32_t pid, const void *here, uint64_t there, uint64_t len,
				   uint32_t tail)
{
	(void)pid, (void)here, (void)there, (void)len, (void)tail;
	return refuse_attach(host);
}

/*
 * Processes are known by the pids that glexd sees.  In another namespace those are
 * nobody's, or other processes', whose memory a PUT would go to.  Peers in glexd's
 * namespace can attach to this process all the same.
 */
static void choose_ops(struct nic_device *dev)
{
	dev->ops = nic_host_ops;
	if (dev->welcome.elsewhere) {
		dev->ops.read = refuse_read;
		dev->ops.write = refuse_write;
	}
}

/* ---- opening -------------------------------------------------------------------- */

static glex_ret_t device_open(struct glexi_device *device)
{
	struct nic_device *dev = calloc(1, sizeof(*dev));
	int fds[EMU_WIRE_FDS];
	glex_ret_t ret;

	if (!dev)
		return GLEX_NO_MEM_RESOURCE;
	dev->dev = device;
	dev->vma_fd = nic_vma_open();
	LIST_INIT(&dev->allocs);
	LIST_INIT(&dev->files);
	LIST_INIT(&dev->eps);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->ep_lock, NULL);
	if (glexi_cfg()->mem_attach)
		allow_attach(); /* glexd tries it */
	ret = nic_ctl_open(&dev->ctl, true, &dev->welcome, fds);
	if (ret != GLEX_SUCCESS) {
		pthread_mutex_destroy(&dev->lock);
		pthread_mutex_destroy(&dev->ep_lock);
		if (dev->vma_fd >= 0)
			close(dev->vma_fd);
		free(dev);
		return ret;
	}
	choose_ops(dev);
	dev->engine = map_checked(fds[0], EMU_MAGIC_ENGINE, "the engine's switches");
	dev->nic = map_checked(fds[1], EMU_MAGIC_NIC, "the NIC's memory table");
	if (!dev->engine || !dev->nic || !nic_peer_add_own(dev)) {
		free_device(dev);
		return GLEX_SYS_ERR;
	}
	device->be = dev;
	glexi_info("device 0 is NIC %u of glexd %u at %s", dev->welcome.nic_id, dev->welcome.glexd_pid, dev->ctl.name);
	return GLEX_SUCCESS;
}

static void device_close(struct glexi_device *device)
{
	free_device(device->be);
}

static bool device_alive(struct glexi_device *device)
{
	struct nic_device *dev = device->be;

	nic_mem_tend(dev); /* who waits has the time */
	return nic_ctl_alive(&dev->ctl);
}

static void device_tend(struct glexi_device *device)
{
	nic_tend_views(device->be);
}

static bool device_crowded(const struct glexi_device *device)
{
	const struct nic_device *dev = device->be;

	/* relaxed: hints, each by itself */
	return emu_is_crowded(atomic_load_explicit(&dev->engine->cores, memory_order_relaxed),	    /* relaxed: hint */
			      atomic_load_explicit(&dev->engine->processes, memory_order_relaxed)); /* relaxed: hint */
}

/* Those from number *next on that the engine's list has no more, and maybe some that it has; 0: they are lost. */
static uint32_t ask_for_missed(struct nic_device *dev, uint64_t *next, uint32_t max, struct glex_dead *list)
{
	struct emu_ctl_msg msg = {.dead.next = *next};
	int status = nic_ctl_call(&dev->ctl, EMU_CTL_DEAD_LIST, &msg, -1, NULL);
	uint32_t n;

	if (status < 0)
		glexi_device_lost(dev->dev);
	if (status != EMU_CTL_OK)
		return 0;
	for (n = 0; n < max && n < msg.dead.num && n < EMU_CTL_DEAD_MAX; n++) {
		list[n] = (struct glex_dead){
			.field_mask = GLEX_DEAD_FIELDS, .addr.v = msg.dead.of[n].addr, .number = msg.dead.of[n].number};
		*next = list[n].number + 1;
	}
	return n;
}

static uint32_t device_dead(const struct glexi_device *device, uint64_t *next, uint32_t max, struct glex_dead *list)
{
	struct nic_device *dev = device->be;
	uint32_t n = 0, missed;
	uint64_t number, addr;

	while (n < max) {
		number = *next;
		if (!emu_dead_read(dev->engine, &number, &addr))
			break;
		missed = number == *next ? 0 : ask_for_missed(dev, next, max - n, &list[n]);
		n += missed;
		if (missed)
			continue;
		list[n++] = (struct glex_dead){.field_mask = GLEX_DEAD_FIELDS, .addr.v = addr, .number = number};
		*next = number + 1;
	}
	return n;
}

static uint64_t device_deaths(const struct glexi_device *device)
{
	const struct nic_device *dev = device->be;

	return emu_dead_count(dev->engine);
}

/* The child's copy of the socket would keep the session alive after the parent's death. */
static void device_forked(struct glexi_device *device)
{
	struct nic_device *dev = device->be;

	nic_ctl_close(&dev->ctl);
	if (dev->vma_fd >= 0)
		close(dev->vma_fd);
}

static void device_query(struct glexi_device *device, struct glex_device_attr *attr)
{
	struct nic_device *dev = device->be;

	*attr = (struct glex_device_attr){
		.nic_id = dev->welcome.nic_id,
		.max_fast_ep_num = EMU_FAST_EPS - 1,
		.max_ep_num = EMU_HW_EPS - 1,
		.max_emulate_ep_num = EMU_EMULATE_EPS,
		.mmt_units = EMU_MMT_UNITS,
		.att_units = EMU_ATT_UNITS,
		.max_imm_mp_data_len = EMU_MP_DATA,
		.max_mp_data_len = EMU_MP_DATA,
		.max_imm_rdma_data_len = EMU_IMM_RDMA_DATA,
		.max_rdma_data_len = EMU_RDMA_DATA,
		.def_ep_dq_capacity = EMU_DEF_DQ,
		.def_ep_eq_capacity = EMU_DEF_EQ,
		.def_ep_mpq_capacity = EMU_DEF_MPQ,
		.max_ep_dq_capacity = EMU_MAX_DQ,
		.max_ep_eq_capacity = EMU_MAX_EQ,
		.max_ep_mpq_capacity = EMU_MAX_MPQ,
		.max_ep_hc_eq_capacity = EMU_MAX_HC_EQ,
		.max_ep_hc_mpq_capacity = EMU_MAX_HC_MPQ,
	};
}

/* ---- endpoints -------------------------------------------------------------- */

static glex_ret_t ret_of(struct nic_device *dev, int status, const struct glex_ep_attr *attr)
{
	switch (status) {
	case EMU_CTL_OK:
		return GLEX_SUCCESS;
	case EMU_CTL_BAD:
		return GLEX_INVALID_PARAM;
	case EMU_CTL_TAKEN:
		glexi_info("endpoint %u of NIC %u is in use", attr->num, dev->welcome.nic_id);
		return GLEX_NO_EP_RESOURCE;
	case EMU_CTL_EXHAUSTED:
		glexi_info("NIC %u has no endpoint of type %d left", dev->welcome.nic_id, (int)attr->type);
		return GLEX_NO_EP_RESOURCE;
	case EMU_CTL_NO_DESCRIPTORS:
		glexi_error("glexd has no descriptor left for another endpoint; destroy some, or raise ulimit -Hn "
			    "where it is started");
		return GLEX_NO_EP_RESOURCE;
	case EMU_CTL_NO_MEMORY:
		glexi_error("glexd has no memory left for an endpoint's queues; make them smaller, or see ulimit -f, "
			    "vm.max_map_count and the memory limits of the session that started it");
		return GLEX_NO_MEM_RESOURCE;
	case EMU_CTL_ACCESS:
		return GLEX_ACCESS_ERR;
	default:
		return glexi_device_lost(dev->dev);
	}
}

static void set_queue(struct glexi_queue *queue, const struct emu_ring *ring, _Atomic uint64_t *taken)
{
	queue->ring = *ring;
	queue->taken = taken;
}

static void set_up(struct glexi_ep *ep, struct nic_ep *nep, const struct emu_ctl_port *got)
{
	struct emu_port_counters *counters = &nep->port.port->counters;

	ep->pub.send_imm_mp = nic_send_imm_mp;
	ep->pub.imm_rdma = nic_imm_rdma;
	ep->pub.rdma = nic_rdma;
	ep->be = nep;
	ep->addr.v = 0;
	ep->addr.ep_num = (uint16_t)got->ep_num;
	ep->addr.nic_id = got->nic_id;
	ep->attr.num = got->ep_num;
	set_queue(&ep->mpq, &nep->port.mpq, &counters->rx_mp);
	set_queue(&ep->eq, &nep->port.eq, &counters->rx_event);
	set_queue(&ep->err, &nep->port.err, &counters->tx_error);
	set_queue(&ep->intq, &nep->port.intq, NULL);
	set_queue(&ep->epq, &nep->port.epq, NULL);
	ep->sleeps = &counters->sleeps;
	nep->ep = ep;
	nep->host.by = counters;
}

static glex_ret_t attach_port(struct nic_ep *nep, int fd)
{
	void *base = nic_map_segment(fd, "an endpoint's queues", &nep->port_size);
	const char *wrong;

	if (!base)
		return fd < 0 ? GLEX_NO_EP_RESOURCE : GLEX_NO_MEM_RESOURCE;
	wrong = emu_vport_attach(&nep->port, base, nep->port_size);
	if (!wrong)
		return GLEX_SUCCESS;
	glexi_error("an endpoint's queues cannot be used: %s", wrong);
	munmap(base, nep->port_size);
	return GLEX_SYS_ERR;
}

/* Where membarrier is refused to this process, glexd can do it, or nobody has a ring to himself. */
static bool order_all(struct emu_bias *bias)
{
	struct nic_ep *nep = (void *)((unsigned char *)bias - offsetof(struct nic_ep, host.bias));
	struct emu_ctl_msg msg = {0};

	return emu_membarrier_all() == 0 || nic_ctl_call(&nep->dev->ctl, EMU_CTL_ORDER, &msg, -1, NULL) == EMU_CTL_OK;
}

static void set_up_bias(struct nic_ep *nep)
{
	struct nic_device *dev = nep->dev;

	nep->host.bias.order = order_all;
	/* relaxed: set before anybody is served, where glexd cannot help */
	if (dev->ctl.membarrier && !atomic_load_explicit(&dev->engine->fences, memory_order_relaxed))
		nep->host.bias.word = emu_bias_word(dev->welcome.session, nep->port.port->ep_num);
}

static glex_ret_t ep_create(struct glexi_ep *ep)
{
	struct nic_device *dev = ep->dev->be;
	struct emu_ctl_msg msg = {.port = {
					  .ep_num = ep->attr.num,
					  .type = ep->attr.type,
					  .key = ep->attr.key,
					  .dq_capacity = ep->attr.dq_capacity,
					  .mpq_capacity = ep->attr.mpq_capacity,
					  .eq_capacity = ep->attr.eq_capacity,
				  }};
	struct nic_ep *nep;
	int fds[EMU_WIRE_FDS];
	glex_ret_t ret;

	nic_empty_graveyard(dev);
	if (posix_memalign((void **)&nep, EMU_LINE, sizeof(*nep)) != 0)
		return GLEX_NO_MEM_RESOURCE;
	memset(nep, 0, sizeof(*nep));
	ret = ret_of(dev, nic_ctl_call(&dev->ctl, EMU_CTL_PORT_CREATE, &msg, -1, fds), &ep->attr);
	if (ret == GLEX_SUCCESS) {
		ret = attach_port(nep, fds[0]);
		if (ret != GLEX_SUCCESS) /* else the number would stay in use */
			nic_ctl_call(&dev->ctl, EMU_CTL_PORT_CLOSE, &(struct emu_ctl_msg){.port = msg.port}, -1, NULL);
	}
	if (ret != GLEX_SUCCESS) {
		free(nep);
		return ret;
	}
	nep->dev = dev;
	nep->host.ops = &dev->ops;
	nep->host.attach_chunk = glexi_cfg()->mem_attach ? glexi_cfg()->attach_chunk : 0;
	nep->host.engine = dev->engine;
	nep->host.session = dev->welcome.session;
	emu_copy_ways(nep->host.way);
	set_up_bias(nep);
	nep->host.model = dev->nic->seg.total_size >= EMU_NIC_SIZE(true);
	nep->host.known = nep->host.model ? NULL : nep->known; /* what is modelled takes the long way */
	nep->host.away = nep->host.model ? NULL : nep->away;
	nic_intr_init(nep);
	set_up(ep, nep, &msg.port);
	nep->shuffle.window = dev->engine->reorder;
	nep->shuffle.seed = emu_reorder_seed(dev->engine->reorder_seed, ep->addr.nic_id, ep->addr.ep_num);
	pthread_mutex_lock(&dev->ep_lock);
	LIST_INSERT_HEAD(&dev->eps, nep, link);
	atomic_fetch_add_explicit(&dev->ep_count, 1, memory_order_relaxed); /* relaxed: see take_graves */
	pthread_mutex_unlock(&dev->ep_lock);
	nic_peer_add_port(nep);
	return GLEX_SUCCESS;
}

static void ep_destroy(struct glexi_ep *ep)
{
	struct nic_ep *nep = ep->be;
	struct nic_device *dev = nep->dev;
	struct emu_ctl_msg msg = {.port = {.ep_num = ep->attr.num}};
	bool drained = !glexi_is_lost(ep->dev) && nic_drain(ep);

	pthread_mutex_lock(&dev->lock); /* its regions go with it, and are not given another way meanwhile */
	if (drained)
		nic_ctl_call(&dev->ctl, EMU_CTL_PORT_CLOSE, &msg, -1, NULL);
	if (!LIST_EMPTY(&dev->files) && !glexi_is_lost(ep->dev))
		nic_files_recount(dev);
	pthread_mutex_unlock(&dev->lock);
	pthread_mutex_lock(&dev->ep_lock);
	LIST_REMOVE(nep, link);
	atomic_fetch_sub_explicit(&dev->ep_count, 1, memory_order_relaxed); /* relaxed: see take_graves */
	pthread_mutex_unlock(&dev->ep_lock);
	nic_peer_remove_port(nep);
	nic_intr_destroy(nep);
	nic_quota_give_all(nep);
	free(nep);
}

/* See emu_ring_bell in emulator/nic/fast.h for the other side. */
static void ep_sleep(struct glexi_ep *ep, struct glexi_queue *queue, uint64_t ns)
{
	struct nic_ep *nep = ep->be;
	struct emu_port *port = nep->port.port;
	uint32_t bell =
		atomic_load_explicit(&port->doorbell, memory_order_relaxed); /* relaxed: the kernel compares it */

	atomic_fetch_add_explicit(&port->sleepers, 1, memory_order_seq_cst); /* relaxed: stronger */
	/*
	 * Also where `fences` is set: a sender may have read it just before.  Where
	 * there is no membarrier it fails, and all who know this endpoint do fence.
	 */
	emu_membarrier_all();
	if (!glexi_queue_has(queue, glexi_queue_read(queue)))
		emu_futex_wait(&port->doorbell, bell, ns);
	atomic_fetch_sub_explicit(&port->sleepers, 1, memory_order_relaxed); /* relaxed: too high only costs a wake */
}

const struct glexi_be_ops glexi_nic_ops = {
	.name = "nic",
	.alloc = nic_alloc,
	.alive = device_alive,
	.atomic = nic_atomic,
	.close = device_close,
	.ep_arm = nic_ep_arm,
	.crowded = device_crowded,
	.dead = device_dead,
	.deaths = device_deaths,
	.ep_create = ep_create,
	.ep_destroy = ep_destroy,
	.ep_fd = nic_ep_fd,
	.ep_fd_clear = nic_ep_fd_clear,
	.ep_sleep = ep_sleep,
	.free = nic_free,
	.forked = device_forked,
	.inject = nic_inject,
	.fetch = nic_fetch,
	.find_put_way = nic_find_put_way,
	.mem_deregister = nic_mem_deregister,
	.mem_promote = nic_mem_promote,
	.mem_register = nic_mem_register,
	.mem_is_split = nic_mem_is_split,
	.mem_tie = nic_mem_tie,
	.open = device_open,
	.prefetch_at = nic_prefetch_at,
	.query = device_query,
	.tend = device_tend,
};
