/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h - the time that only goes forward. */
#ifndef EMU_CLOCK_H
#define EMU_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t emu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif /* EMU_CLOCK_H */
