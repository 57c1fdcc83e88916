/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grave.c - what peers have left: letting go of it, without disturbing requests.
 *
 *   tree (nic.h)  --replaced, closed, named by no region-->  graveyard  --no request can be at it-->  unmapped
 *
 * A port's view goes when the port has been closed, by its owner or because he
 * died.  A shared object's goes when for a while no region of any NIC we know
 * has named it: then nothing can lead to it, and if it is named again it is
 * asked for again, as at the first time.  While it is mapped here, its memory
 * stays, whoever has freed it or died.
 *
 * This is looked after by who waits or polls in vain, not more often than every
 * LOOK_NS, and by asking nobody: glexd may be busy, or stopped, and a poll goes on.
 * Where another thread has a lock that is needed it is left to the next look.
 */
#include "backend/nic/nic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EPS_PER_GRAVE 16u /* else destroying thousands of endpoints one by one would take the square of it */
#define LOOK_NS	      INT64_C(100000000) /* a look takes some microseconds, */
#define MAPS_EVERY    10u /* and at the objects that many for each NIC, so it is done at one of so many */
#define UNNAMED_MAX   2u  /* such looks in a row: who registers a buffer for each transfer is not to map it each time */

/* ---- the graveyard ------------------------------------------------------------------ */

void nic_bury(struct nic_device *dev, void *base, uint64_t size, void *memory, int fd)
{
	struct nic_grave *grave = malloc(sizeof(*grave));

	if (!grave)
		return; /* stays mapped until the process ends: no harm but the space */
	*grave = (struct nic_grave){.next = dev->graveyard, .base = base, .size = size, .memory = memory, .fd = fd};
	dev->graveyard = grave;
	dev->graves++;
}

void nic_bury_port(struct nic_device *dev, struct nic_port_view *view, void *base, uint64_t size)
{
	struct emu_coll_view *coll =
		view ? atomic_load_explicit(&view->coll, memory_order_acquire) : NULL; /* PEER-A1 */

	if (coll)
		nic_bury(dev, coll->coll, coll->coll->seg.total_size, coll, -1);
	nic_bury(dev, base, size, view, view ? nic_port_intr_fd(view) : -1);
}

static void forget(struct nic_ep *nep)
{
	nep->last_port = NULL;
	memset(nep->known, 0, sizeof(nep->known));
	memset(nep->away, 0, sizeof(nep->away));
	memset(&nep->track, 0, sizeof(nep->track));
	memset(&nep->imm_track, 0, sizeof(nep->imm_track));
	glexi_put_ways_forget(nep->ep);
}

/*
 * Requests that began before a view was replaced hold their endpoint's lock: once
 * through it, none is left.  False: somebody holds one, and we are not to wait.
 */
static bool let_requests_pass(struct nic_device *dev, bool wait)
{
	struct nic_ep *nep;
	bool locked, passed = true;

	if (wait)
		pthread_mutex_lock(&dev->ep_lock);
	else if (pthread_mutex_trylock(&dev->ep_lock) != 0)
		return false;
	LIST_FOREACH(nep, &dev->eps, link)
	{
		if (wait)
			locked = glexi_lock(&nep->ep->post_lock);
		else if (!glexi_try_lock(&nep->ep->post_lock, &locked)) {
			passed = false;
			break;
		}
		forget(nep);
		glexi_unlock(&nep->ep->post_lock, locked);
	}
	pthread_mutex_unlock(&dev->ep_lock);
	return passed;
}

/* All graves, if they are worth a look at every endpoint; under dev->lock. */
static struct nic_grave *take_graves(struct nic_device *dev, uint32_t *n_p)
{
	struct nic_grave *graves = dev->graveyard;
	/* relaxed: only a matter of cost */
	uint32_t eps = atomic_load_explicit(&dev->ep_count, memory_order_relaxed);

	if (dev->graves < eps / EPS_PER_GRAVE)
		return NULL;
	*n_p = dev->graves;
	dev->graveyard = NULL;
	dev->graves = 0;
	return graves;
}

static void put_graves_back(struct nic_device *dev, struct nic_grave *graves, uint32_t n)
{
	struct nic_grave *last = graves;

	while (last->next)
		last = last->next;
	pthread_mutex_lock(&dev->lock);
	last->next = dev->graveyard;
	dev->graveyard = graves;
	dev->graves += n;
	pthread_mutex_unlock(&dev->lock);
}

static void empty(struct nic_grave *grave)
{
	struct nic_grave *next;

	for (; grave; grave = next) {
		next = grave->next;
		if (grave->base)
			munmap(grave->base, grave->size);
		if (grave->fd >= 0)
			close(grave->fd);
		free(grave->memory);
		free(grave);
	}
}

/* ---- what has been left ---------------------------------------------------------------- */

static void bury_closed(struct nic_device *dev, _Atomic(struct nic_port_view *) *port, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct nic_port_view *view = atomic_load_explicit(&port[i], memory_order_acquire); /* PEER-A1 */

		if (!view || !view->size || nic_port_is_open(view))
			continue;
		atomic_store_explicit(&port[i], NULL, memory_order_release); /* PEER-R1 */
		nic_bury_port(dev, view, view->view.port, view->size);
	}
}

static struct nic_map_view *view_of(struct nic_device *dev, uint64_t id)
{
	struct nic_map_page *page = atomic_load_explicit(&dev->maps[emu_low(id) / MAP_PAGE % MAP_PAGES],
							 memory_order_acquire); /* PEER-A1 */
	struct nic_map_view *view =
		page ? atomic_load_explicit(&page->map[emu_low(id) % MAP_PAGE], memory_order_acquire)
		     : NULL; /* PEER-A1 */

	return view && view->id == id ? view : NULL;
}

/* The objects that regions of this NIC name. */
static void note_named(struct nic_device *dev, struct emu_nic *nic)
{
	/* relaxed: of what is being registered just now a later look hears */
	uint32_t left = atomic_load_explicit(&nic->mmt_used, memory_order_relaxed);
	struct nic_map_view *view;
	struct emu_region region;

	for (uint32_t i = 0; i < EMU_MMT_UNITS && left > 0; i++) {
		if (!emu_mmt_at(nic, i, &region))
			continue;
		left--;
		view = region.way == EMU_WAY_MAP ? view_of(dev, region.map) : NULL;
		if (view)
			view->unnamed = 0;
	}
}

static void look_after_nic(struct nic_device *dev, struct nic_view *nic, bool maps)
{
	bury_closed(dev, nic->low, LOW_PORTS);
	for (uint32_t i = 0; i < PORT_PAGES; i++) {
		struct nic_port_page *page = atomic_load_explicit(&nic->pages[i], memory_order_acquire); /* PEER-A1 */

		if (page)
			bury_closed(dev, page->port, PORT_PAGE);
	}
	if (maps)
		note_named(dev, nic->nic);
}

static void look_after_nics(struct nic_device *dev, bool maps)
{
	for (uint32_t p = 0; p < NIC_PAGES; p++) {
		struct nic_page *page = atomic_load_explicit(&dev->pages[p], memory_order_acquire); /* PEER-A1 */

		for (uint32_t i = 0; page && i < NIC_PAGE; i++) {
			struct nic_view *nic = atomic_load_explicit(&page->nic[i], memory_order_acquire); /* PEER-A1 */

			if (nic)
				look_after_nic(dev, nic, maps);
		}
	}
}

/* What was unnamed too often; before, the NICs have been looked at. */
static void look_after_maps(struct nic_device *dev)
{
	for (uint32_t p = 0; p < MAP_PAGES; p++) {
		struct nic_map_page *page = atomic_load_explicit(&dev->maps[p], memory_order_acquire); /* PEER-A1 */

		for (uint32_t i = 0; page && i < MAP_PAGE; i++) {
			struct nic_map_view *view =
				atomic_load_explicit(&page->map[i], memory_order_acquire); /* PEER-A1 */

			if (!view || view->unnamed++ < UNNAMED_MAX)
				continue;
			atomic_store_explicit(&page->map[i], NULL, memory_order_release); /* PEER-R1 */
			dev->map_count--;
			nic_bury(dev, view->base, view->len, view, -1);
		}
	}
}

/* One thread at a time, if it is time. */
static bool is_my_turn(struct nic_device *dev)
{
	struct timespec ts;
	int64_t now, due = atomic_load_explicit(&dev->look_at, memory_order_relaxed); /* relaxed: a time */

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	return now >= due &&
	       atomic_compare_exchange_strong_explicit(&dev->look_at, &due, now + LOOK_NS, memory_order_relaxed,
						       memory_order_relaxed); /* relaxed: a time */
}

/* Under dev->lock. */
static void look_after_all(struct nic_device *dev)
{
	bool maps = dev->looks++ % MAPS_EVERY == 0 && dev->map_count > 0;

	look_after_nics(dev, maps);
	if (maps)
		look_after_maps(dev);
}

void nic_empty_graveyard(struct nic_device *dev)
{
	bool look = is_my_turn(dev);
	struct nic_grave *graves;
	uint32_t n;

	pthread_mutex_lock(&dev->lock);
	if (look)
		look_after_all(dev);
	graves = take_graves(dev, &n);
	pthread_mutex_unlock(&dev->lock);
	if (graves)
		let_requests_pass(dev, true);
	empty(graves);
}

void nic_tend_views(struct nic_device *dev)
{
	struct nic_grave *graves;
	uint32_t n;

	if (!is_my_turn(dev) || pthread_mutex_trylock(&dev->lock) != 0)
		return;
	look_after_all(dev);
	graves = take_graves(dev, &n);
	pthread_mutex_unlock(&dev->lock);
	if (!graves)
		return;
	if (let_requests_pass(dev, false))
		empty(graves);
	else
		put_graves_back(dev, graves, n);
}
