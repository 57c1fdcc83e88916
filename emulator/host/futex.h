/* SPDX-License-Identifier: BSD-2-Clause */
/* futex.h - sleeping on a word of shared memory, and the asymmetric fence that goes with it. */
#ifndef EMU_FUTEX_H
#define EMU_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word == value, at most ns nanoseconds.  May return early for any reason. */
static inline void emu_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

static inline void emu_futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Asks the kernel to let this process take part; 0 or -1. */
static inline int emu_membarrier_join(void)
{
	return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

/*
 * After it returns, every process that joined has passed a full fence: a plain
 * store of ours before is seen by their loads after, or their store before that
 * fence by our loads after this call.
 */
static inline int emu_membarrier_all(void)
{
	return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

#endif /* EMU_FUTEX_H */
