/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.c - the device: one a process, shared by all who open it.
 *
 * I1  `the_device` lives while somebody has it open or an endpoint of it lives that was not retired.
 * I2  `lost` only goes up.  A lost device answers GLEX_SYS_ERR to everything and
 *     is replaced at the first open after the last close.
 * A fork's child must not touch the parent's queues: it would be a second
 * consumer.  There the queues are pointed at an empty one and the device is lost.
 */
#include "core/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg/cfg.h"
#include "cfg/log.h"
#include "core/memwatch.h"

int glex_single_threaded;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct glexi_device *the_device;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What a forked child's queues look at: one slot that never gets published. */
static struct emu_ring_ctl nothing_ctl;
static struct emu_mp_slot nothing_slot = {.seq = 0x80000000u};

static void empty_queue(struct glexi_queue *queue)
{
	queue->ring.ctl = &nothing_ctl;
	queue->ring.slots = (unsigned char *)&nothing_slot;
	queue->ring.mask = 0;
	atomic_init(&queue->read, 0);
	atomic_init(&queue->probe, 0);
	atomic_init(&queue->lock.held, 0); /* the thread that held it is not in the child */
}

static void before_fork(void)
{
	pthread_mutex_lock(&mutex);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
	struct glexi_ep *ep;

	glexi_memwatch_forked();
	if (the_device) {
		atomic_store_explicit(&the_device->lost, GLEXI_FORKED, memory_order_relaxed); /* relaxed: a flag */
		LIST_FOREACH(ep, &the_device->eps, link)
		{
			empty_queue(&ep->mpq);
			empty_queue(&ep->eq);
			empty_queue(&ep->err);
			empty_queue(&ep->intq);
			empty_queue(&ep->epq);
			atomic_init(&ep->post_lock.held, 0);
		}
		the_device->ops->forked(the_device);
		the_device = NULL; /* leaked on purpose: the child's copies of the parent's handles point to it */
	}
	pthread_mutex_unlock(&mutex);
}

static void init_once(void)
{
	if (glexi_cfg()->single_threaded)
		glex_single_threaded = 1;
	pthread_atfork(before_fork, in_parent, in_child);
}

glex_ret_t glexi_device_lost(struct glexi_device *dev)
{
	uint32_t present = GLEXI_PRESENT;

	/* relaxed: a flag; the exchange only finds out who says it */
	if (atomic_compare_exchange_strong_explicit(&dev->lost, &present, GLEXI_LOST, memory_order_relaxed,
						    memory_order_relaxed)) /* relaxed: a flag */
		glexi_error("glexd is gone: endpoints of this process no longer work; close the device and open it "
			    "again");
	return GLEX_SYS_ERR;
}

glex_ret_t glexi_device_check(struct glexi_device *dev)
{
	if (glexi_is_lost(dev))
		return GLEX_SYS_ERR;
	return dev->ops->alive(dev) ? GLEX_SUCCESS : glexi_device_lost(dev);
}

glex_ret_t glexi_device_idle(struct glexi_device *dev)
{
	glex_ret_t ret = glexi_device_check(dev);

	if (ret == GLEX_SUCCESS)
		dev->ops->tend(dev);
	return ret;
}

void glexi_device_add_ep(struct glexi_device *dev, struct glexi_ep *ep)
{
	pthread_mutex_lock(&mutex);
	LIST_INSERT_HEAD(&dev->eps, ep, link);
	pthread_mutex_unlock(&mutex);
}

/* Under the mutex.  I1 */
static void free_if_unused(struct glexi_device *dev)
{
	if (dev->opens || !LIST_EMPTY(&dev->eps) || dev != the_device)
		return;
	the_device = NULL;
	dev->ops->close(dev);
	glexi_memwatch_stop();
	pthread_mutex_destroy(&dev->pub.mutex);
	free(dev);
}

/* Nobody has it but endpoints that were retired: then it is held, for end_retired.  Under the mutex. */
static bool hold_if_retired(struct glexi_device *dev)
{
	struct glexi_ep *ep;

	if (dev->opens || LIST_EMPTY(&dev->eps) || dev != the_device)
		return false;
	LIST_FOREACH(ep, &dev->eps, link)
	if (!ep->is_retired)
		return false;
	dev->opens++;
	return true;
}

/* As long as nobody opens the device again; each takes the mutex. */
static void end_retired(struct glexi_device *dev)
{
	struct glexi_ep *ep;

	for (;;) {
		pthread_mutex_lock(&mutex);
		ep = dev->opens == 1 ? LIST_FIRST(&dev->eps) : NULL;
		if (!ep)
			break;
		pthread_mutex_unlock(&mutex);
		glexi_ep_end(ep);
	}
	dev->opens--;
	free_if_unused(dev);
	pthread_mutex_unlock(&mutex);
}

void glexi_device_remove_ep(struct glexi_device *dev, struct glexi_ep *ep)
{
	bool ends;

	pthread_mutex_lock(&mutex);
	LIST_REMOVE(ep, link);
	ends = hold_if_retired(dev);
	free_if_unused(dev);
	pthread_mutex_unlock(&mutex);
	if (ends)
		end_retired(dev);
}

void glexi_device_retire_ep(struct glexi_device *dev, struct glexi_ep *ep)
{
	bool ends;

	pthread_mutex_lock(&mutex);
	ep->is_retired = true;
	ends = hold_if_retired(dev);
	pthread_mutex_unlock(&mutex);
	if (ends)
		end_retired(dev);
}

glex_ret_t glex_num_of_device(uint32_t *num)
{
	if (!num)
		return GLEX_INVALID_PARAM;
	*num = 1;
	return GLEX_SUCCESS;
}

/* Under the mutex. */
static glex_ret_t open_first(void)
{
	struct glexi_device *dev = calloc(1, sizeof(*dev));
	glex_ret_t ret;

	if (!dev)
		return GLEX_NO_MEM_RESOURCE;
	pthread_mutex_init(&dev->pub.mutex, NULL);
	LIST_INIT(&dev->eps);
	dev->ops = &glexi_nic_ops;
	ret = dev->ops->open(dev);
	if (ret != GLEX_SUCCESS) {
		pthread_mutex_destroy(&dev->pub.mutex);
		free(dev);
		return ret;
	}
	the_device = dev;
	return GLEX_SUCCESS;
}

glex_ret_t glex_open_device(uint32_t dev_id, glex_device_handle_t *dev_p)
{
	glex_ret_t ret = GLEX_SUCCESS;

	if (!dev_p || dev_id != 0)
		return GLEX_INVALID_PARAM;
	pthread_once(&once, init_once);
	pthread_mutex_lock(&mutex);
	if (!the_device)
		ret = open_first();
	else
		ret = glexi_device_check(the_device);
	if (ret == GLEX_SUCCESS) {
		the_device->opens++;
		*dev_p = &the_device->pub;
	}
	pthread_mutex_unlock(&mutex);
	return ret;
}

glex_ret_t glex_close_device(glex_device_handle_t handle)
{
	struct glexi_device *dev = glexi_device_of(handle);
	glex_ret_t ret = GLEX_INVALID_PARAM;
	bool ends = false;

	if (!dev)
		return ret;
	pthread_mutex_lock(&mutex);
	if (dev == the_device && dev->opens > 0) {
		dev->opens--;
		ends = hold_if_retired(dev);
		free_if_unused(dev);
		ret = GLEX_SUCCESS;
	} else if (dev != the_device && glexi_is_forked(dev)) {
		ret = GLEX_SYS_ERR; /* a child closes its parent's, which lives as long as the child */
	}
	pthread_mutex_unlock(&mutex);
	if (ends)
		end_retired(dev);
	return ret;
}

glex_ret_t glex_query_device(glex_device_handle_t handle, struct glex_device_attr *attr)
{
	struct glexi_device *dev = glexi_device_of(handle);

	if (!dev || !attr)
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(dev))
		return GLEX_SYS_ERR;
	dev->ops->query(dev, attr);
	return GLEX_SUCCESS;
}

int glex_is_crowded(glex_device_handle_t handle)
{
	const struct glexi_device *dev = glexi_device_of(handle);

	return dev && !glexi_is_lost(dev) && dev->ops->crowded(dev);
}

glex_ret_t glex_poll_dead(glex_device_handle_t handle, uint64_t *next, uint32_t *num, struct glex_dead *list)
{
	struct glexi_device *dev = glexi_device_of(handle);

	if (!dev || !next || !num || (*num && !list))
		return GLEX_INVALID_PARAM;
	if (glexi_is_lost(dev))
		return GLEX_SYS_ERR;
	if (*num == 0)
		*next = dev->ops->deaths(dev);
	else
		*num = dev->ops->dead(dev, next, *num, list);
	return GLEX_SUCCESS;
}
