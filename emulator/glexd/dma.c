/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dma.c - the DMA engine: fetches the descriptors of NORMAL ports from their
 * owners' memory and executes them, so that a transfer goes on while the poster
 * computes.
 *
 * In turn, every port with work gets one quantum (GLEX_DMA_CHUNK bytes, or a
 * few dozen small requests).  A long PUT or GET is moved in pieces of a quantum,
 * so it delays nobody.  The engine holds glexd->lock during a quantum and sleeps
 * on its bell when there is nothing to do; a nap in which nothing came is followed
 * by the next one.
 *
 * With GLEX_REORDER every port has a queue, and dma_shuffle.c serves them; and coll_shuffle.c all collective units,
 * which rings as a poster does.
 *
 * Which cache lines travel between it and a poster: backend/nic/queue.c.  An empty round
 * only loads dma_pending of each NIC, which stays in this core's cache until somebody
 * posts; the queues of ports without a bit there are not touched.
 *
 * label     access                        order     pairs     says
 * DQ-R1     poster dq.tail = n+1          release   DQ-A1     the descriptor is complete
 * DQ-A1     engine load dq.tail           acquire   DQ-R1     it may be read
 * DQ-R2     engine dq.head = n+1          release   DQ-A2     all up to n have been executed, their slots may be reused
 * DQ-A2     poster load dq.head           acquire   DQ-R2     room; and all earlier requests are complete (FENCE)
 * DQ-R3     poster dma_pending |= port    seq_cst   DQ-A3     after DQ-R1 and before it looks at asleep
 * DQ-A3     engine take dma_pending       seq_cst   DQ-R3     after it has said that it is asleep
 * DQ-R4     engine asleep = 1             seq_cst   DQ-A4     before it looks at dma_pending a last time
 * DQ-A4     poster load asleep            seq_cst   DQ-R4     so one of the two sees the other
 * crash     the poster dies: session_end closes the port under the lock; descriptors not yet
 *           fetched are dropped | glexd dies: the poster's next call tells it
 */
#include <errno.h>
#include <glex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cfg/cfg.h"
#include "cfg/log.h"
#include "emulator/glexd/dma.h"
#include "emulator/host/attach.h"
#include "emulator/host/futex.h"
#include "emulator/host/pick.h"
#include "emulator/nic/copy.h"
#include "emulator/nic/exec.h"

#define BOUNCE_SIZE (1u << 20)
#define IDLE_ROUNDS 200 /* empty rounds, a yield each, before it sleeps */
#define NAP_NS	    1000000000u
#define PICK_ROUNDS 12 /* of looks at the copiers, one after each of the first naps */
#define PICK_NAP_NS 20000000u

static struct glexd *glexd_of(struct emu_host *host)
{
	return (struct glexd *)(void *)((char *)host - offsetof(struct glexd, host));
}

static struct emu_vport *host_port(struct emu_host *host, uint32_t nic_id, uint32_t ep_num)
{
	struct port *port = port_find(glexd_of(host), nic_id, ep_num);

	return port ? &port->view : NULL;
}

static struct emu_coll_view *host_coll(struct emu_host *host, struct emu_vport *view)
{
	struct port *port = port_find(glexd_of(host), view->port->nic_id, view->port->ep_num);

	return port && &port->view == view && coll_open(port) == EMU_CTL_OK ? &port->coll : NULL;
}

static struct emu_nic *host_nic(struct emu_host *host, uint32_t nic_id)
{
	struct node *node = node_find(glexd_of(host), nic_id);

	return node ? node->nic : NULL;
}

static void map_here(struct shared *shared)
{
	int prot = PROT_READ | (shared->writable ? PROT_WRITE : 0);
	void *base = mmap(NULL, shared->len, prot, MAP_SHARED, shared->fd, (off_t)shared->offset);

	shared->mapped = true;
	if (base != MAP_FAILED)
		shared->base = base;
	else
		glexi_warn_once(0, "mapping %llu KiB of a client's shared memory failed: %s; moved by attach",
				(unsigned long long)shared->len / 1024, strerror(errno));
}

/* What its owner could make shorter is not mapped: touching what is gone would end glexd, and so the job. */
static unsigned char *host_map(struct emu_host *host, uint64_t map, bool write, uint64_t *len_p)
{
	struct shared *shared = shared_find(glexd_of(host), map);

	if (!shared || !shared->lasting || (write && !shared->writable))
		return NULL;
	if (!shared->mapped)
		map_here(shared);
	*len_p = shared->len;
	return shared->base;
}

static enum emu_reach host_read(struct emu_host *host, uint32_t pid, void *here, uint64_t there, uint64_t len)
{
	return emu_attach_read(pid, here, there, len, host->attach_chunk);
}

static enum emu_reach host_write(struct emu_host *host, uint32_t pid, const void *here, uint64_t there, uint64_t len,
				 uint32_t tail)
{
	return emu_attach_write(pid, here, there, len, tail, host->attach_chunk);
}

static const struct emu_host_ops host_ops = {
	.port = host_port,
	.nic = host_nic,
	.map = host_map,
	.read = host_read,
	.write = host_write,
	.wake = emu_host_wake,
	.coll = host_coll,
	.hold = coll_hold,
	.interrupt = intr_host,
};

/* libglex checks before it queues; the engine does not take its word for it. */
static bool is_sound(const struct emu_desc *desc)
{
	switch (desc->op) {
	case EMU_OP_MP:
		return desc->len <= EMU_MP_DATA;
	case EMU_OP_IMM_PUT:
		return desc->len <= EMU_IMM_RDMA_DATA;
	case EMU_OP_PUT:
	case EMU_OP_GET:
		return desc->len <= EMU_RDMA_DATA;
	default:
		return false;
	}
}

enum dma_outcome dma_step(struct emu_host *host, struct port *port, const struct emu_desc *desc, uint64_t quantum,
			  bool later, uint64_t *cost_p)
{
	bool moves = desc->op == EMU_OP_PUT || desc->op == EMU_OP_GET;
	uint64_t n = desc->len;
	int status;

	/* The owner may have changed it between two pieces: no longer than what was moved is not sound either. */
	if (!is_sound(desc) || (moves && port->done > desc->len)) {
		status = GLEX_ERR_STATUS_FORMAT;
		n = 0;
	} else if (desc->op == EMU_OP_MP) {
		status = emu_exec(host, &port->view, desc, desc->imm);
		later = false;
	} else if (!moves) {
		status = emu_exec_imm(host, &port->view, desc, desc->imm);
	} else {
		n -= port->done;
		n = n < quantum ? n : quantum;
		status = emu_exec_move(host, &port->view, desc, port->done, n);
		port->done += n;
		if (status == EMU_OK && port->done < desc->len) {
			*cost_p = n;
			return DMA_MORE;
		}
	}
	later &= status == EMU_OK;
	if (status == EMU_OK && !later && desc->op != EMU_OP_MP)
		status = emu_exec_finish(host, &port->view, desc);
	if (status != EMU_OK)
		emu_report(host, &port->view, desc, status);
	port->done = 0;
	*cost_p = n > DMA_SMALL_COST ? n : DMA_SMALL_COST;
	return later ? DMA_MOVED : DMA_ENDED;
}

/* One quantum for one port.  True: it has more. */
static bool serve_port(struct glexd *glexd, struct port *port)
{
	struct emu_ring_ctl *ctl = &port->view.port->dq;
	uint64_t quantum = glexi_cfg()->dma_chunk, spent = 0, cost;
	uint32_t head =
		atomic_load_explicit(&ctl->head, memory_order_relaxed); /* relaxed: only this thread writes it */
	uint32_t tail = emu_low(atomic_load_explicit(&ctl->tail, memory_order_acquire)); /* DQ-A1 */

	glexd->host.by = &port->view.port->counters;
	while (head != tail && spent < quantum) {
		/* A copy: what is checked is what is executed, whatever the owner does to its queue meanwhile. */
		struct emu_desc desc = port->view.dq[head & port->view.dq_mask];

		glexd->steps++;
		if (dma_step(&glexd->host, port, &desc, quantum, false, &cost) == DMA_ENDED)
			atomic_store_explicit(&ctl->head, ++head, memory_order_release); /* DQ-R2 */
		spent += cost;
	}
	return head != tail;
}

/* ---- rounds ---------------------------------------------------------------- */

/* A quantum for each port of the node that has work.  True if there is any. */
static bool serve_node(struct glexd *glexd, struct node *node)
{
	uint32_t num, end = glexd->engine->reorder || node->room < EMU_HW_EPS ? node->room : EMU_HW_EPS;
	bool (*serve)(struct glexd *, struct port *) = glexd->engine->reorder ? dma_serve_shuffled : serve_port;
	uint64_t todo = node->dma_active;

	if (atomic_load_explicit(&node->nic->dma_pending, memory_order_relaxed)) /* relaxed: a later round sees it */
		todo |= atomic_exchange_explicit(&node->nic->dma_pending, 0, memory_order_seq_cst); /* DQ-A3 */
	node->dma_active = 0;
	for (num = 0; num < end && todo; num++) {
		struct port *port = todo & emu_dma_bit(num) ? node->ports[num] : NULL;

		if (!port || !port->view.dq)
			continue;
		if (serve(glexd, port))
			node->dma_active |= emu_dma_bit(num);
		if (glexd->engine->reorder)
			node->dma_active |= coll_serve_shuffled(glexd, port) ? emu_dma_bit(num) : 0;
		else
			coll_kick(glexd, port); /* its collective requests wait for what was posted before them */
	}
	return todo != 0;
}

static bool serve_round(struct glexd *glexd)
{
	bool worked = false;
	uint32_t n;

	for (n = 0;; n++) {
		while (atomic_load_explicit(&glexd->wanted,
					    memory_order_relaxed)) /* relaxed: a hint; the mutex orders */
			sched_yield();
		pthread_mutex_lock(&glexd->lock);
		if (n >= glexd->node_count) {
			pthread_mutex_unlock(&glexd->lock);
			return worked;
		}
		worked |= serve_node(glexd, glexd->made[n]);
		pthread_mutex_unlock(&glexd->lock);
	}
}

static bool is_stopping(struct glexd *glexd)
{
	return atomic_load_explicit(&glexd->stopping, memory_order_relaxed); /* relaxed: a flag; the join orders */
}

static bool any_pending(struct glexd *glexd)
{
	bool pending = false;
	uint32_t n;

	pthread_mutex_lock(&glexd->lock);
	for (n = 0; n < glexd->node_count && !pending; n++)
		pending = atomic_load_explicit(&glexd->made[n]->nic->dma_pending, memory_order_seq_cst); /* DQ-A3 */
	pthread_mutex_unlock(&glexd->lock);
	return pending;
}

static void nap(struct glexd *glexd, uint32_t ns)
{
	struct emu_engine *engine = glexd->engine;
	uint32_t bell = atomic_load_explicit(&engine->bell, memory_order_relaxed); /* relaxed: the kernel compares it */

	atomic_store_explicit(&engine->asleep, 1, memory_order_seq_cst); /* DQ-R4 */
	if (!any_pending(glexd) && !is_stopping(glexd))
		emu_futex_wait(&engine->bell, bell, ns);
	atomic_store_explicit(&engine->asleep, 0, memory_order_seq_cst); /* DQ-R4 */
}

/* Which way of copying suits which length on this machine; for whoever wonders. */
static void say_copiers(struct emu_engine *engine)
{
	enum emu_copier last = EMU_COPIERS;
	uint64_t picks = atomic_load_explicit(&engine->copiers, memory_order_relaxed); /* relaxed: we wrote it */

	for (uint32_t k = 0; k < EMU_COPY_CLASSES; k++) {
		enum emu_copier copier = (enum emu_copier)(picks >> 4 * k & 15);

		if (copier != last)
			glexi_info("copies from %u bytes on: %s", EMU_COPY_CLASS_MIN << k, emu_copier_name(copier));
		last = copier;
	}
}

/*
 * Looks at the copiers after each of the first naps, which are short, if there is nothing else to do: one look may
 * meet anything that goes on beside it, and what it says lasts as long as we do.  Not before the first: then
 * clients are opening their devices, and wait for us.  Returns how long the next nap may be.
 */
static uint32_t look_after_nap(struct emu_looks *looks, uint32_t *rounds, struct glexd *glexd)
{
	cpu_set_t cores;

	if (*rounds == PICK_ROUNDS)
		return NAP_NS;
	pthread_mutex_lock(&glexd->lock);
	numa_cores(glexd, &cores);
	pthread_mutex_unlock(&glexd->lock);
	emu_pick_copiers(looks, &cores, glexd->engine);
	if (++*rounds == PICK_ROUNDS)
		say_copiers(glexd->engine);
	return PICK_NAP_NS;
}

static void *dma_main(void *arg)
{
	struct glexd *glexd = arg;
	struct emu_looks looks = {0};
	uint64_t steps = 0;
	uint32_t idle = 0, rounds = 0, sleep_ns = PICK_NAP_NS;

	while (!is_stopping(glexd)) {
		if (serve_round(glexd)) {
			idle = 0;
			if (steps == glexd->steps) /* all it has is held back for a while */
				sched_yield();
			steps = glexd->steps;
		} else if (++idle < IDLE_ROUNDS) {
			sched_yield();
		} else {
			nap(glexd, sleep_ns);
			idle = any_pending(glexd) ? 0 : IDLE_ROUNDS; /* nothing came: straight to the next nap */
			if (idle)				     /* whoever woke us does not wait for this */
				sleep_ns = look_after_nap(&looks, &rounds, glexd);
		}
	}
	return NULL;
}

static bool order_all(struct emu_bias *bias)
{
	(void)bias;
	return emu_membarrier_all() == 0;
}

int dma_start(struct glexd *glexd)
{
	int error;

	/* Sleepers count on it, and so do those who may have a ring to themselves. */
	if (emu_membarrier_join() != 0)
		atomic_store_explicit(&glexd->engine->fences, 1, memory_order_seq_cst); /* relaxed: stronger */
	glexd->host.bias.order = order_all;
	glexd->host.ops = &host_ops;
	glexd->host.attach_chunk = glexi_cfg()->attach_chunk;
	glexd->host.engine = glexd->engine;
	glexd->host.session = EMU_SESSION_GLEXD;
	glexd->host.model = glexi_cfg()->model_atc == GLEXI_CFG_ATC_COUNT;
	glexd->host.bounce = malloc(BOUNCE_SIZE);
	glexd->host.bounce_size = BOUNCE_SIZE;
	if (!glexd->host.bounce)
		return -1;
	error = pthread_create(&glexd->dma_thread, NULL, dma_main, glexd);
	if (error) {
		free(glexd->host.bounce);
		errno = error;
		return -1;
	}
	return 0;
}

void dma_stop(struct glexd *glexd)
{
	atomic_store_explicit(&glexd->stopping, true, memory_order_relaxed);	  /* relaxed: a flag; the join orders */
	atomic_fetch_add_explicit(&glexd->engine->bell, 1, memory_order_relaxed); /* relaxed: the kernel compares it */
	emu_futex_wake(&glexd->engine->bell);
	pthread_join(glexd->dma_thread, NULL);
	free(glexd->host.bounce);
}
