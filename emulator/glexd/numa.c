/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa.c - clients and cores: tells everybody how many of each there are, and
 * puts the DMA engine and the ports where place.h says.
 *
 * Reading the machine's topology takes milliseconds, so a thread of its own does
 * it, once, a little later; no client waits for it.  What is made before it is there lies where
 * the kernel put it, the engine is moved afterwards.  All with glexd->lock held,
 * but the reading itself.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfg/cfg.h"
#include "cfg/log.h"
#include "emulator/glexd/glexd.h"
#include "emulator/host/place.h"

#ifdef HAVE_HWLOC
#include <hwloc/glibc-sched.h>

/* The first clients are starting, and wait for each other and for us: on few cores the reader would be in their way. */
#define READER_NAP_US 5000u
#define READER_NAPS   20    /* before it begins */
#define CLIENTS_MAX   1024u /* with more nobody is bound to cores of his own */

struct numa {
	struct glexd *glexd;
	int wish;
	pthread_t reader;
	atomic_bool leaving;
	hwloc_topology_t topology; /* NULL: not yet read */
	hwloc_cpuset_t engine;	   /* where it has been put; empty: nowhere yet */
	bool several;		   /* NUMA nodes */
};

/* The clients' cores, as hwloc has them; returns how many, none if that cannot be had. */
static unsigned collect(struct numa *numa, hwloc_cpuset_t *sets)
{
	struct session *session;
	unsigned n = 0;

	LIST_FOREACH(session, &numa->glexd->sessions, link)
	{
		if (CPU_COUNT(&session->cores) == 0)
			continue;
		if (n == CLIENTS_MAX || !(sets[n] = hwloc_bitmap_alloc())) {
			while (n)
				hwloc_bitmap_free(sets[--n]);
			return 0;
		}
		hwloc_cpuset_from_glibc_sched_affinity(numa->topology, sets[n++], &session->cores,
						       sizeof(session->cores));
	}
	return n;
}

static void move_engine(struct numa *numa, hwloc_cpuset_t to)
{
	char text[128];

	if (hwloc_bitmap_isequal(to, numa->engine))
		return;
	hwloc_bitmap_copy(numa->engine, to);
	hwloc_bitmap_list_snprintf(text, sizeof(text), to);
	if (hwloc_set_thread_cpubind(numa->topology, numa->glexd->dma_thread, to, 0) == 0)
		glexi_info("the DMA engine runs on cores %s", text);
	else
		glexi_info("the DMA engine cannot run on cores %s: %s", text, strerror(errno));
}

static void place_engine(struct numa *numa)
{
	static hwloc_cpuset_t sets[CLIENTS_MAX];
	hwloc_cpuset_t engine = hwloc_bitmap_alloc();
	unsigned n = engine ? collect(numa, sets) : 0;

	if (emu_place_engine(numa->topology, (hwloc_const_cpuset_t *)sets, n, numa->wish, engine))
		move_engine(numa, engine);
	while (n)
		hwloc_bitmap_free(sets[--n]);
	hwloc_bitmap_free(engine);
}

/*
 * Only what is asked for: nodes, cores, their threads.  A copy, for the original may
 * keep files open, in this thread's table.
 */
static hwloc_topology_t read_topology(void)
{
	hwloc_topology_t topology, copy;

	if (hwloc_topology_init(&topology) < 0)
		return NULL;
	hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (hwloc_topology_load(topology) < 0 || hwloc_topology_dup(&copy, topology) < 0)
		copy = NULL;
	hwloc_topology_destroy(topology);
	return copy;
}

/*
 * The files it has open for a moment must not be those that keep a client from its
 * last descriptor: the thread gets a table of its own.  (The thread sanitizer
 * knows only one, and takes equal numbers for equal files.)
 */
static void own_descriptors(void)
{
#ifndef __SANITIZE_THREAD__
	if (unshare(CLONE_FILES) < 0)
		glexi_debug("reading the topology takes descriptors from clients: %s", strerror(errno));
#endif
}

/* As the kernel lists them: "0", or "0-1", "0,8".  What cannot be read is one node. */
static bool has_several_nodes(void)
{
	char list[64] = "";
	FILE *file = fopen("/sys/devices/system/node/online", "re");

	if (!file)
		return false;
	if (!fgets(list, sizeof(list), file))
		list[0] = '\0';
	fclose(file);
	return strpbrk(list, ",-") != NULL;
}

/* Where there is one memory node nothing that is made meanwhile lies in a wrong place. */
static void let_clients_start(const struct numa *numa)
{
	int i;

	if (has_several_nodes())
		return;
	for (i = 0; i < READER_NAPS; i++) {
		if (atomic_load_explicit(&numa->leaving, memory_order_relaxed)) /* relaxed: only that it ends counts */
			return;
		usleep(READER_NAP_US);
	}
}

static void *reader_main(void *arg)
{
	struct numa *numa = arg;
	hwloc_topology_t topology;

	own_descriptors();
	let_clients_start(numa);
	if (atomic_load_explicit(&numa->leaving, memory_order_relaxed)) /* relaxed: as there */
		return NULL;
	topology = read_topology();
	if (!topology) {
		glexi_info("the machine's topology cannot be read: nothing is placed");
		return NULL;
	}
	pthread_mutex_lock(&numa->glexd->lock);
	numa->topology = topology;
	numa->several = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1;
	if (numa->wish >= 0 && !hwloc_get_numanode_obj_by_os_index(topology, (unsigned)numa->wish))
		glexi_warn("GLEX_NUMA: there is no node %d on this machine: nothing is placed", numa->wish);
	place_engine(numa);
	pthread_mutex_unlock(&numa->glexd->lock);
	return NULL;
}

/* GLEX_NUMA: its choices are auto, off, 0, 1, ... */
static int wish_of(int choice)
{
	static const int words[] = {EMU_PLACE_AUTO, EMU_PLACE_OFF};

	return choice < 2 ? words[choice] : choice - 2;
}

void numa_start(struct glexd *glexd)
{
	struct numa *numa;
	int wish = wish_of(glexi_cfg()->numa);

	if (wish == EMU_PLACE_OFF)
		return;
	numa = calloc(1, sizeof(*numa));
	if (!numa)
		return;
	numa->glexd = glexd;
	numa->wish = wish;
	numa->engine = hwloc_bitmap_alloc();
	if (!numa->engine || pthread_create(&numa->reader, NULL, reader_main, numa) != 0) {
		hwloc_bitmap_free(numa->engine);
		free(numa);
		return;
	}
	glexd->numa = numa;
}

void numa_stop(struct glexd *glexd)
{
	struct numa *numa = glexd->numa;

	if (!numa)
		return;
	atomic_store_explicit(&numa->leaving, true, memory_order_relaxed); /* relaxed: the join orders */
	pthread_join(numa->reader, NULL);
	if (numa->topology)
		hwloc_topology_destroy(numa->topology);
	hwloc_bitmap_free(numa->engine);
	free(numa);
	glexd->numa = NULL;
}

bool numa_memory_of(const struct session *owner)
{
	struct numa *numa = owner->glexd->numa;
	hwloc_cpuset_t cores;
	hwloc_obj_t node;

	if (!numa || !numa->topology || !numa->several || !(cores = hwloc_bitmap_alloc()))
		return false;
	hwloc_cpuset_from_glibc_sched_affinity(numa->topology, cores, &owner->cores, sizeof(owner->cores));
	node = emu_place_memory(numa->topology, cores, numa->wish);
	/* Not strictly: a full node is no reason to fail. */
	if (node && hwloc_set_membind(numa->topology, node->nodeset, HWLOC_MEMBIND_BIND,
				      HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) < 0)
		glexi_debug("queues cannot be put on node %u: %s", node->os_index, strerror(errno));
	hwloc_bitmap_free(cores);
	return true;
}

void numa_memory_anywhere(struct glexd *glexd)
{
	struct numa *numa = glexd->numa;

	if (numa && numa->topology && numa->several)
		hwloc_set_membind(numa->topology, hwloc_topology_get_allowed_nodeset(numa->topology),
				  HWLOC_MEMBIND_DEFAULT, HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
}

#else /* !HAVE_HWLOC */

struct numa {
	int wish;
};

static void place_engine(struct numa *numa)
{
	(void)numa;
}

void numa_start(struct glexd *glexd)
{
	glexi_info("built without hwloc: nothing is placed");
	glexd->numa = NULL;
}

void numa_stop(struct glexd *glexd)
{
	(void)glexd;
}

bool numa_memory_of(const struct session *owner)
{
	(void)owner;
	return false;
}

void numa_memory_anywhere(struct glexd *glexd)
{
	(void)glexd;
}

#endif

uint32_t numa_cores(const struct glexd *glexd, cpu_set_t *cores)
{
	const struct session *session;
	uint32_t processes = 0;

	CPU_ZERO(cores);
	LIST_FOREACH(session, &glexd->sessions, link)
	{
		CPU_OR(cores, cores, &session->cores);
		processes += CPU_COUNT(&session->cores) != 0;
	}
	return processes;
}

/* What decides whether who waits may spin (crowd.h). */
static void recount(struct glexd *glexd)
{
	cpu_set_t cores;
	uint32_t processes = numa_cores(glexd, &cores);

	processes += glexd->engine->reorder && processes; /* this one, through which all goes then */
	/* relaxed: hints, each by itself */
	atomic_store_explicit(&glexd->engine->cores, (uint32_t)CPU_COUNT(&cores), memory_order_relaxed);
	/* relaxed: as above */
	atomic_store_explicit(&glexd->engine->processes, processes, memory_order_relaxed);
}

static bool is_read(const struct numa *numa)
{
#ifdef HAVE_HWLOC
	return numa && numa->topology;
#else
	return numa != NULL;
#endif
}

void numa_client_in(struct session *session)
{
	/* Fails where there are more cores than the set has room for: then this one does not count. */
	if (sched_getaffinity((pid_t)session->pid, sizeof(session->cores), &session->cores) < 0)
		CPU_ZERO(&session->cores);
	recount(session->glexd);
	if (is_read(session->glexd->numa))
		place_engine(session->glexd->numa);
}

void numa_client_out(struct session *session)
{
	CPU_ZERO(&session->cores);
	recount(session->glexd);
	if (is_read(session->glexd->numa))
		place_engine(session->glexd->numa);
}
