/* SPDX-License-Identifier: BSD-2-Clause */
/* turns.c - see turns.h. */
#include "turns.h"

#include "emulator/host/futex.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

/* They are written to by a shell, too, which wakes nobody. */
#define LOOK_NS (50 * 1000 * 1000)

static struct {
	_Atomic uint32_t *over; /* turns; NULL: alone */
	uint32_t next, count;
} turns;

bool turns_join(const char *text)
{
	unsigned index, count;
	int at = 0, fd;
	void *word;

	if (sscanf(text, "%u/%u/%n", &index, &count, &at) != 2 || !at || index >= count)
		return false;
	fd = open(text + at, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	word = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (word == MAP_FAILED)
		return false;
	turns.over = word;
	turns.next = index;
	turns.count = count;
	return true;
}

bool turns_wait(void)
{
	uint32_t over;

	if (!turns.over)
		return true;
	while ((over = atomic_load(turns.over)) != turns.next && over != TURNS_BROKEN)
		emu_futex_wait(turns.over, over, LOOK_NS);
	return over != TURNS_BROKEN;
}

void turns_pass(bool passes)
{
	uint32_t mine = turns.next;

	if (!turns.over)
		return;
	turns.next += turns.count;
	/* not over TURNS_BROKEN */
	if (passes && atomic_compare_exchange_strong(turns.over, &mine, mine + 1))
		emu_futex_wake(turns.over);
}
