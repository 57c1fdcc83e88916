/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer.c - other NICs, ports and shared objects, found on first use.
 *
 * Finding one asks glexd, maps what it sends, and enters the view into the tree
 * of nic.h; from then on a request costs a look at the endpoint's last peer or
 * three loads.  A port that was closed is asked for again, because its number
 * may have a new owner.
 *
 * Own endpoints are in the tree from the start, in the mapping their owner polls:
 * threads of one process meet at the same addresses.  It costs no question and
 * no second mapping, and the thread sanitizer, which knows memory by its address,
 * sees what orders them.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cfg/cfg.h"
#include "cfg/log.h"
#include "emulator/host/attach.h"

#define POPULATE_MAX (8u << 20) /* bytes; larger queues are touched as they fill */

void *nic_map_segment(int fd, const char *what, uint64_t *size_p)
{
	struct stat st;
	void *base = MAP_FAILED;
	int error;

	if (fd < 0) {
		glexi_error_once((uintptr_t)what,
				 "%s came without a descriptor: this process can have no more; see "
				 "ulimit -n",
				 what);
		return NULL;
	}
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		*size_p = (uint64_t)st.st_size;
		base = mmap(NULL, *size_p, PROT_READ | PROT_WRITE,
			    MAP_SHARED | (*size_p <= POPULATE_MAX ? MAP_POPULATE : 0), fd, 0);
	}
	error = errno;
	close(fd);
	if (base != MAP_FAILED)
		return base;
	glexi_error("mapping %s failed: %s", what, strerror(error));
	return NULL;
}

/* A request of glexd, under dev->lock; as nic_ctl_call. */
static int ask(struct nic_device *dev, uint16_t op, struct emu_ctl_msg *msg, int *fds)
{
	int status = nic_ctl_call(&dev->ctl, op, msg, -1, fds);

	if (status < 0)
		glexi_device_lost(dev->dev);
	return status;
}

/* Under dev->lock: the page of the tree a NIC is on; NULL: no memory. */
static struct nic_page *page_of(struct nic_device *dev, uint32_t nic_id)
{
	_Atomic(struct nic_page *) *at = &dev->pages[nic_id / NIC_PAGE];
	struct nic_page *page = atomic_load_explicit(at, memory_order_acquire); /* PEER-A1 */

	if (!page) {
		page = calloc(1, sizeof(*page));
		if (page)
			atomic_store_explicit(at, page, memory_order_release); /* PEER-R1 */
	}
	return page;
}

static struct nic_view *enter_nic(struct nic_device *dev, uint32_t nic_id, struct emu_nic *nic)
{
	struct nic_page *page = page_of(dev, nic_id);
	struct nic_view *view = page ? calloc(1, sizeof(*view)) : NULL;

	if (view) {
		view->nic = nic;
		atomic_store_explicit(&page->nic[nic_id % NIC_PAGE], view, memory_order_release); /* PEER-R1 */
	}
	return view;
}

static struct nic_view *known_nic(struct nic_device *dev, uint32_t nic_id)
{
	struct nic_page *page;

	if (nic_id >= EMU_MAX_NICS)
		return NULL;
	page = atomic_load_explicit(&dev->pages[nic_id / NIC_PAGE], memory_order_acquire);		/* PEER-A1 */
	return page ? atomic_load_explicit(&page->nic[nic_id % NIC_PAGE], memory_order_acquire) : NULL; /* PEER-A1 */
}

struct nic_view *nic_peer_add_own(struct nic_device *dev)
{
	return enter_nic(dev, dev->welcome.nic_id, dev->nic);
}

/* Under dev->lock. */
static struct nic_view *ask_for_nic(struct nic_device *dev, uint32_t nic_id)
{
	struct emu_ctl_msg msg = {.port = {.nic_id = nic_id}};
	int fds[EMU_WIRE_FDS];
	struct emu_nic *nic;
	const char *wrong;
	uint64_t size;

	if (ask(dev, EMU_CTL_NIC_OPEN, &msg, fds) != EMU_CTL_OK)
		return NULL;
	nic = nic_map_segment(fds[0], "a NIC's memory table", &size);
	wrong = nic ? emu_seg_check(&nic->seg, EMU_MAGIC_NIC, size) : NULL;
	if (wrong)
		glexi_error("the memory table of NIC %u cannot be used: %s", nic_id, wrong);
	return nic && !wrong ? enter_nic(dev, nic_id, nic) : NULL;
}

static struct nic_view *find_nic(struct nic_device *dev, uint32_t nic_id)
{
	struct nic_view *view = known_nic(dev, nic_id);

	if (GLEXI_LIKELY(view != NULL) || nic_id >= EMU_MAX_NICS)
		return view;
	pthread_mutex_lock(&dev->lock);
	view = known_nic(dev, nic_id);
	if (!view)
		view = ask_for_nic(dev, nic_id);
	pthread_mutex_unlock(&dev->lock);
	return view;
}

/* Where a port's pointer is kept; NULL: nowhere yet, and `make` is false or there is no memory. */
static _Atomic(struct nic_port_view *) *place_of(struct nic_view *nic, uint32_t num, bool make)
{
	_Atomic(struct nic_port_page *) *at;
	struct nic_port_page *page;

	if (num < LOW_PORTS)
		return &nic->low[num];
	if (num >= EMU_MAX_EPS)
		return NULL;
	at = &nic->pages[num / PORT_PAGE];
	page = atomic_load_explicit(at, memory_order_acquire); /* PEER-A1 */
	if (!page && make) {
		page = calloc(1, sizeof(*page));
		if (page)
			atomic_store_explicit(at, page, memory_order_release); /* PEER-R1 */
	}
	return page ? &page->port[num % PORT_PAGE] : NULL;
}

static struct nic_port_view *known_port(struct nic_view *nic, uint32_t num)
{
	_Atomic(struct nic_port_view *) *at = place_of(nic, num, false);
	struct nic_port_view *view = at ? atomic_load_explicit(at, memory_order_acquire) : NULL; /* PEER-A1 */

	return view && nic_port_is_open(view) ? view : NULL;
}

/* Under dev->lock. */
static struct nic_port_view *ask_for_port(struct nic_device *dev, uint32_t nic_id, uint32_t num)
{
	struct emu_ctl_msg msg = {.port = {.nic_id = nic_id, .ep_num = num}};
	struct nic_port_view *view;
	int fds[EMU_WIRE_FDS];
	const char *wrong;
	void *base;

	if (ask(dev, EMU_CTL_PORT_OPEN, &msg, fds) != EMU_CTL_OK)
		return NULL;
	view = calloc(1, sizeof(*view));
	base = view ? nic_map_segment(fds[0], "a peer's queues", &view->size) : NULL;
	if (!base) {
		free(view);
		return NULL;
	}
	wrong = emu_vport_attach(&view->view, base, view->size);
	if (!wrong)
		return view;
	glexi_error("port %u:%u cannot be used: %s", nic_id, num, wrong);
	munmap(base, view->size);
	free(view);
	return NULL;
}

/* Under dev->lock. */
static void replace_port(struct nic_device *dev, _Atomic(struct nic_port_view *) *at, struct nic_port_view *view)
{
	struct nic_port_view *old = atomic_load_explicit(at, memory_order_acquire); /* PEER-A1 */

	atomic_store_explicit(at, view, memory_order_release); /* PEER-R1 */
	if (old && old->size)
		nic_bury_port(dev, old, old->view.port, old->size);
}

static struct nic_port_view *resolve_port(struct nic_device *dev, struct nic_view *nic, uint32_t nic_id, uint32_t num)
{
	_Atomic(struct nic_port_view *) *at;
	struct nic_port_view *view;

	pthread_mutex_lock(&dev->lock);
	at = place_of(nic, num, true);
	view = known_port(nic, num);
	if (!view && at) {
		view = ask_for_port(dev, nic_id, num);
		replace_port(dev, at, view);
	}
	pthread_mutex_unlock(&dev->lock);
	return view;
}

void nic_peer_add_port(struct nic_ep *nep)
{
	struct nic_view *nic = known_nic(nep->dev, nep->port.port->nic_id);
	_Atomic(struct nic_port_view *) *at;

	nep->own = calloc(1, sizeof(*nep->own));
	if (!nep->own)
		return; /* then it is asked for, like any other */
	nep->own->view = nep->port;
	pthread_mutex_lock(&nep->dev->lock);
	at = place_of(nic, nep->port.port->ep_num, true);
	if (at)
		replace_port(nep->dev, at, nep->own);
	pthread_mutex_unlock(&nep->dev->lock);
}

void nic_peer_remove_port(struct nic_ep *nep)
{
	struct nic_device *dev = nep->dev;
	struct nic_view *nic = known_nic(dev, nep->port.port->nic_id);
	_Atomic(struct nic_port_view *) *at = place_of(nic, nep->port.port->ep_num, false);

	pthread_mutex_lock(&dev->lock);
	/* Somebody may have found it closed already, and its number a new owner. */
	if (nep->own && at && atomic_load_explicit(at, memory_order_acquire) == nep->own) /* PEER-A1 */
		atomic_store_explicit(at, NULL, memory_order_release);			  /* PEER-R1 */
	nic_bury_port(dev, nep->own, nep->port.port, nep->port_size);
	pthread_mutex_unlock(&dev->lock);
	nic_empty_graveyard(dev);
}

static struct emu_nic *host_nic(struct emu_host *host, uint32_t nic_id)
{
	struct nic_ep *ep = nic_ep_of(host);
	struct nic_view *view;

	if (GLEXI_LIKELY(ep->last_nic && ep->last_nic_id == nic_id))
		return ep->last_nic->nic;
	view = find_nic(ep->dev, nic_id);
	return view ? view->nic : NULL;
}

static void turn_to(struct nic_ep *ep, glex_ep_addr_t addr, struct nic_view *nic, struct nic_port_view *view)
{
	ep->last_addr = addr.v;
	ep->last_nic_id = addr.nic_id;
	ep->last_nic = nic;
	ep->last_ep_num = addr.ep_num;
	ep->last_port = view;
}

static struct emu_vport *host_port(struct emu_host *host, uint32_t nic_id, uint32_t num)
{
	struct nic_ep *ep = nic_ep_of(host);
	struct nic_port_view *view;
	struct nic_view *nic;
	glex_ep_addr_t addr = {.v = 0};

	if (GLEXI_LIKELY(ep->last_port && ep->last_nic_id == nic_id && ep->last_ep_num == num &&
			 nic_port_is_open(ep->last_port)))
		return &ep->last_port->view;
	nic = find_nic(ep->dev, nic_id);
	if (!nic)
		return NULL;
	view = known_port(nic, num);
	if (!view)
		view = resolve_port(ep->dev, nic, nic_id, num);
	addr.nic_id = nic_id;
	addr.ep_num = (uint16_t)num;
	turn_to(ep, addr, nic, view);
	return view ? &view->view : NULL;
}

EMU_TOGETHER bool nic_peer_turn(struct nic_ep *nep, uint64_t to)
{
	glex_ep_addr_t addr = {.v = to};
	struct nic_view *nic = addr.resv ? NULL : known_nic(nep->dev, addr.nic_id);
	struct nic_port_view *view = nic ? known_port(nic, addr.ep_num) : NULL;

	if (!view)
		return false;
	turn_to(nep, addr, nic, view);
	return true;
}

struct nic_port_view *nic_peer_port(struct nic_device *dev, uint32_t nic_id, uint32_t num)
{
	struct nic_view *nic = known_nic(dev, nic_id);

	return nic ? known_port(nic, num) : NULL;
}

/* ---- shared objects ------------------------------------------------------- */

/* Maps what glexd sent into view, for reading alone if it may not be written.  Closes fd. */
static void map_object(struct nic_map_view *view, int fd, const struct emu_ctl_share *share)
{
	int mode = fcntl(fd, F_GETFL);
	bool populate = share->len <= POPULATE_MAX && !share->untouched;
	void *base;

	view->writable = mode >= 0 && (mode & O_ACCMODE) == O_RDWR;
	base = nic_map_aligned(share->len, PROT_READ | (view->writable ? PROT_WRITE : 0),
			       MAP_SHARED | (populate ? MAP_POPULATE : 0), fd, share->offset);
	if (base != MAP_FAILED) {
		view->base = base;
		view->len = share->len;
	} else {
		glexi_warn_once(0,
				"mapping %llu KiB of a peer's shared memory failed: %s; moved by attach, more slowly",
				(unsigned long long)share->len / 1024, strerror(errno));
	}
	close(fd);
}

/* A view without base, if glexd has no such object or it cannot be mapped: who has asked once need not again. */
static struct nic_map_view *ask_for_map(struct nic_device *dev, uint64_t id)
{
	struct emu_ctl_msg msg = {.share = {.id = id}};
	struct nic_map_view *view = calloc(1, sizeof(*view));
	int fds[EMU_WIRE_FDS];

	if (!view)
		return NULL;
	view->id = id;
	if (ask(dev, EMU_CTL_SHARE_OPEN, &msg, fds) == EMU_CTL_OK)
		map_object(view, fds[0], &msg.share);
	return view;
}

static _Atomic(struct nic_map_view *) *map_place(struct nic_device *dev, uint64_t id)
{
	_Atomic(struct nic_map_page *) *at = &dev->maps[emu_low(id) / MAP_PAGE % MAP_PAGES];
	struct nic_map_page *page = atomic_load_explicit(at, memory_order_acquire); /* PEER-A1 */

	if (!page) {
		pthread_mutex_lock(&dev->lock);
		page = atomic_load_explicit(at, memory_order_acquire); /* PEER-A1 */
		if (!page) {
			page = calloc(1, sizeof(*page));
			atomic_store_explicit(at, page, memory_order_release); /* PEER-R1 */
		}
		pthread_mutex_unlock(&dev->lock);
	}
	return page ? &page->map[emu_low(id) % MAP_PAGE] : NULL;
}

static unsigned char *host_map(struct emu_host *host, uint64_t id, bool write, uint64_t *len_p)
{
	struct nic_device *dev = nic_ep_of(host)->dev;
	_Atomic(struct nic_map_view *) *at = map_place(dev, id);
	struct nic_map_view *view = at ? atomic_load_explicit(at, memory_order_acquire) : NULL; /* PEER-A1 */
	struct nic_map_view *old;

	if (GLEXI_UNLIKELY(at && (!view || view->id != id))) {
		pthread_mutex_lock(&dev->lock);
		old = atomic_load_explicit(at, memory_order_acquire); /* PEER-A1 */
		view = old && old->id == id ? old : ask_for_map(dev, id);
		if (view && view != old) {
			atomic_store_explicit(at, view, memory_order_release); /* PEER-R1 */
			dev->map_count += !old;
			if (old)
				nic_bury(dev, old->base, old->len, old, -1);
		}
		pthread_mutex_unlock(&dev->lock);
	}
	if (GLEXI_UNLIKELY(!view || (write && !view->writable)))
		return NULL;
	*len_p = view->len;
	return view->base;
}

static void free_coll(struct nic_port_view *view)
{
	struct emu_coll_view *coll = atomic_load_explicit(&view->coll, memory_order_acquire); /* PEER-A1 */

	if (coll)
		munmap(coll->coll, coll->coll->seg.total_size);
	free(coll);
}

static void free_ports(_Atomic(struct nic_port_view *) *port, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct nic_port_view *view = atomic_load_explicit(&port[i], memory_order_acquire); /* PEER-A1 */

		if (view) {
			free_coll(view);
			munmap(view->view.port, view->size);
			if (nic_port_intr_fd(view) >= 0)
				close(nic_port_intr_fd(view));
			free(view);
		}
	}
}

static void free_nic(struct nic_view *nic)
{
	uint32_t i;

	free_ports(nic->low, LOW_PORTS);
	for (i = 0; i < PORT_PAGES; i++) {
		struct nic_port_page *page = atomic_load_explicit(&nic->pages[i], memory_order_acquire); /* PEER-A1 */

		if (page)
			free_ports(page->port, PORT_PAGE);
		free(page);
	}
	munmap(nic->nic, nic->nic->seg.total_size);
	free(nic);
}

static void free_maps(struct nic_map_page *page)
{
	uint32_t i;

	for (i = 0; page && i < MAP_PAGE; i++) {
		struct nic_map_view *view = atomic_load_explicit(&page->map[i], memory_order_acquire); /* PEER-A1 */

		if (view && view->base)
			munmap(view->base, view->len);
		free(view);
	}
	free(page);
}

void nic_peers_free(struct nic_device *dev)
{
	uint32_t p, i;

	nic_empty_graveyard(dev);
	for (p = 0; p < NIC_PAGES; p++) {
		struct nic_page *page = atomic_load_explicit(&dev->pages[p], memory_order_acquire); /* PEER-A1 */

		for (i = 0; page && i < NIC_PAGE; i++) {
			struct nic_view *nic = atomic_load_explicit(&page->nic[i], memory_order_acquire); /* PEER-A1 */

			if (nic)
				free_nic(nic);
		}
		free(page);
	}
	for (p = 0; p < MAP_PAGES; p++)
		free_maps(atomic_load_explicit(&dev->maps[p], memory_order_acquire)); /* PEER-A1 */
}

/* ---- private memory ------------------------------------------------------- */

static __attribute__((noinline, cold)) enum emu_reach explain(enum emu_reach reach, const char *why, uint32_t pid)
{
	if (reach == EMU_REACH_REFUSED)
		glexi_error_once(pid,
				 "cross-memory attach to pid %u refused: %s; a container or seccomp filter may forbid "
				 "process_vm_readv: allow it (CAP_SYS_PTRACE), or use memory of glex_alloc",
				 pid, why);
	return reach;
}

static EMU_TOGETHER enum emu_reach host_read(struct emu_host *host, uint32_t pid, void *here, uint64_t there,
					     uint64_t len)
{
	enum emu_reach reach;

	if (!host->attach_chunk)
		return explain(EMU_REACH_REFUSED, "GLEX_MEM_ATTACH forbids it", pid);
	reach = emu_attach_read(pid, here, there, len, host->attach_chunk);
	return EMU_LIKELY(reach == EMU_REACH_OK) ? reach : explain(reach, strerror(errno), pid);
}

static EMU_TOGETHER enum emu_reach host_write(struct emu_host *host, uint32_t pid, const void *here, uint64_t there,
					      uint64_t len, uint32_t tail)
{
	enum emu_reach reach;

	if (!host->attach_chunk)
		return explain(EMU_REACH_REFUSED, "GLEX_MEM_ATTACH forbids it", pid);
	reach = emu_attach_write(pid, here, there, len, tail, host->attach_chunk);
	return EMU_LIKELY(reach == EMU_REACH_OK) ? reach : explain(reach, strerror(errno), pid);
}

const struct emu_host_ops nic_host_ops = {
	.port = host_port,
	.nic = host_nic,
	.map = host_map,
	.read = host_read,
	.write = host_write,
	.wake = emu_host_wake,
	.coll = nic_host_coll,
	.interrupt = nic_host_interrupt,
};
