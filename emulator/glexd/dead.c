/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dead.c - all who have died, for whoever was too far behind to read it from the engine's segment
 * (emulator/nic/dead.h), which keeps only the last.
 *
 *   of | 3 A | 7 B | 8 C | ... | n Z |      number and address; the numbers grow
 *
 * I1  Of an address the last number is always there, and it stands for the earlier ones: an endpoint is as old as
 *     the number that it was born with, and dead if its address has died with that number or any later one.
 *     So there are no more than there are addresses, times two.
 *
 * All under glexd's lock.  Without memory the newest are not kept, and can be missed.
 */
#include <stdlib.h>

#include "cfg/log.h"
#include "emulator/glexd/glexd.h"
#include "emulator/nic/dead.h"

#define FEW 64u

static int by_address(const void *a, const void *b)
{
	const struct death *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int by_number(const void *a, const void *b)
{
	const struct death *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* I1 */
static void forget_earlier(struct deaths *deaths)
{
	uint32_t i, n = 0;

	if (!deaths->n)
		return; /* there is no array yet */
	qsort(deaths->of, deaths->n, sizeof(deaths->of[0]), by_address);
	for (i = 0; i < deaths->n; i++)
		if (i + 1 == deaths->n || deaths->of[i + 1].addr != deaths->of[i].addr)
			deaths->of[n++] = deaths->of[i];
	deaths->n = n;
	qsort(deaths->of, deaths->n, sizeof(deaths->of[0]), by_number);
}

static bool has_room(struct deaths *deaths)
{
	uint32_t room = deaths->room ? deaths->room * 2 : FEW;
	struct death *more;

	if (deaths->n < deaths->room)
		return true;
	forget_earlier(deaths);
	if (deaths->n * 2 < deaths->room)
		return true;
	more = realloc(deaths->of, room * sizeof(*more));
	if (!more)
		return deaths->n < deaths->room;
	deaths->of = more;
	deaths->room = room;
	return true;
}

void dead_note(struct glexd *glexd, uint64_t addr)
{
	struct deaths *deaths = &glexd->deaths;

	if (has_room(deaths))
		deaths->of[deaths->n++] = (struct death){.number = emu_dead_count(glexd->engine), .addr = addr};
	else
		glexi_warn_once(0, "no memory to remember who has died: who looks late may miss somebody");
	emu_dead_note(glexd->engine, addr);
}

/* The first with this number or a later one. */
static uint32_t find(const struct deaths *deaths, uint64_t number)
{
	uint32_t low = 0, high = deaths->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (deaths->of[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void dead_list(const struct glexd *glexd, uint64_t next, struct emu_ctl_dead *out)
{
	const struct deaths *deaths = &glexd->deaths;
	uint32_t i = find(deaths, next), n = 0;

	for (; i < deaths->n && n < EMU_CTL_DEAD_MAX; i++, n++) {
		out->of[n].number = deaths->of[i].number;
		out->of[n].addr = deaths->of[i].addr;
	}
	out->num = n;
}
