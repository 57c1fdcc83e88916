/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stock.c - segments made before somebody asks for them.
 *
 * To find the pages of an endpoint's queues takes longer than all the rest of
 * creating it, and whoever asks waits.  So one NIC's table and one
 * endpoint's queues are kept ready, of the size that was asked for last; what
 * was taken is made anew when nobody has asked for anything for RESTOCK_US.
 * Only the control thread comes here.
 *
 * What is kept is nobody's loss: it is given up before a process, NIC or endpoint
 * is refused for want of memory or descriptors, and takes none of the last half of
 * those.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "emulator/glexd/glexd.h"

#define RESTOCK_US 300
#define KEPT_MAX   (4u << 20) /* bytes; longer ones are made when they are asked for */

static bool is_kept(const struct glexd *glexd, enum stock_kind kind)
{
	return glexd->stock[kind].seg.base != NULL;
}

static void arm(struct glexd *glexd)
{
	const struct timeval calm = {.tv_usec = RESTOCK_US};

	if (glexd->restock)
		event_add(glexd->restock, &calm);
}

static bool has_many_descriptors(int last)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)last < limit.rlim_cur / 2;
}

static void on_calm(evutil_socket_t fd, short what, void *arg)
{
	struct glexd *glexd = arg;

	(void)fd;
	(void)what;
	for (int kind = 0; kind < STOCK_KINDS; kind++) {
		struct stock *stock = &glexd->stock[kind];

		if (is_kept(glexd, kind) && stock->seg.size != stock->wanted)
			segment_destroy(&stock->seg);
		if (is_kept(glexd, kind) || stock->wanted == 0 || segment_create(&stock->seg, NULL, stock->wanted) < 0)
			continue;
		if (!has_many_descriptors(stock->seg.fd))
			segment_destroy(&stock->seg);
	}
}

bool stock_give_up(struct glexd *glexd)
{
	bool any = false;

	for (int kind = 0; kind < STOCK_KINDS; kind++) {
		any |= is_kept(glexd, kind);
		segment_destroy(&glexd->stock[kind].seg);
	}
	return any;
}

void stock_start(struct glexd *glexd)
{
	for (int kind = 0; kind < STOCK_KINDS; kind++)
		glexd->stock[kind].seg = (struct segment){.fd = -1};
	glexd->restock = evtimer_new(glexd->base, on_calm, glexd);
}

void stock_stop(struct glexd *glexd)
{
	stock_give_up(glexd);
	if (glexd->restock)
		event_free(glexd->restock);
	glexd->restock = NULL;
}

void stock_want(struct glexd *glexd, enum stock_kind kind, uint64_t size)
{
	if (size > KEPT_MAX)
		return;
	glexd->stock[kind].wanted = segment_round(size);
	arm(glexd);
}

int stock_take(struct glexd *glexd, enum stock_kind kind, struct segment *seg, const char *what, uint64_t size)
{
	struct stock *stock = &glexd->stock[kind];

	stock_want(glexd, kind, size);
	if (is_kept(glexd, kind) && stock->seg.size == segment_round(size)) {
		*seg = stock->seg;
		stock->seg = (struct segment){.fd = -1};
		return 0;
	}
	if (segment_create(seg, NULL, size) == 0)
		return 0;
	stock_give_up(glexd);
	return segment_create(seg, what, size);
}
