/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_limit.h - what the machine gives without GLEX: the yardsticks of
 * bandwidth and of waking up.  Those of latency are in perf_raw.h.
 *
 *   MEMCPY   the best copy in one thread with warm buffers: the best of memcpy,
 *            rep movsb and loops of vector moves, these also there and back in
 *            turns.  Stores past the cache are none of them: who then reads the
 *            bytes waits for them longer than the copier gained.
 *   ATTACH   process_vm_readv or process_vm_writev as they are, with the best of
 *            several ways to split a transfer into calls
 *   FUTEX    from a store and futex_wake to the sleeper running on its core
 *
 * Medians, in MB (10^6 bytes) a second or nanoseconds; of a bandwidth over looks of
 * `times` transfers, which are to be as many as in a sample of what is compared.
 */
#ifndef PERF_LIMIT_H
#define PERF_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

double perf_copy_MBps(void *dst, const void *src, size_t len, uint32_t times);

/* here: memory of this process; there: address in the process pid.  0: the system refuses. */
double perf_attach_MBps(pid_t pid, void *here, uint64_t there, size_t len, bool put, uint32_t times);

/* Sleeps until *word is want, 50 ms at most; true: it is.  For a word in memory shared by processes. */
bool perf_futex_wait(_Atomic uint32_t *word, uint32_t want);
/* Stores want and wakes who sleeps. */
void perf_futex_wake(_Atomic uint32_t *word, uint32_t want);

#endif /* PERF_LIMIT_H */
