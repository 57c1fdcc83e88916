/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.c - cross-memory attach (process_vm_readv, process_vm_writev).
 *
 * One call moves at most `chunk` bytes: a very long one was measured to be slower than
 * several of 4 MiB, and one of less than that costs 1 to 4 us more.  The kernel copies an iovec element
 * at a time in ascending order, so an element of its own for the last word
 * keeps that word last.  It is one of ours: an element of the other process's
 * memory costs 200 to 300 ns, for the kernel looks up its pages anew.
 */
#include "emulator/host/attach.h"

#include <errno.h>
#include <sys/uio.h>

#include "emulator/host/futex.h"

static enum emu_reach reach_of(int error)
{
	switch (error) {
	case ESRCH:
		return EMU_REACH_GONE;
	case EFAULT:
		return EMU_REACH_FAULT;
	default:
		return EMU_REACH_REFUSED;
	}
}

static struct iovec iov_at(uint64_t addr, uint64_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};

	return iov;
}

EMU_TOGETHER enum emu_reach emu_attach_read(uint32_t pid, void *here, uint64_t there, uint64_t len, uint64_t chunk)
{
	uint64_t done = 0;

	while (done < len) {
		uint64_t n = len - done < chunk ? len - done : chunk;
		struct iovec local = iov_at((uintptr_t)here + done, n), remote = iov_at(there + done, n);
		ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

		/* A short count means that the next page is not there: the next call says so. */
		if (got <= 0)
			return got < 0 ? reach_of(errno) : EMU_REACH_FAULT;
		done += (uint64_t)got;
	}
	return EMU_REACH_OK;
}

EMU_TOGETHER enum emu_reach emu_attach_write(uint32_t pid, const void *here, uint64_t there, uint64_t len,
					     uint32_t tail, uint64_t chunk)
{
	uint64_t done = 0;

	while (done < len) {
		uint64_t n = len - done < chunk ? len - done : chunk;
		uint64_t last = done + n == len && n > tail ? tail : 0;
		uint64_t from = (uintptr_t)here + done;
		struct iovec local[2] = {iov_at(from, n - last), iov_at(from + n - last, last)};
		struct iovec remote = iov_at(there + done, n);
		ssize_t put = process_vm_writev((pid_t)pid, local, last ? 2 : 1, &remote, 1, 0);

		if (put <= 0)
			return put < 0 ? reach_of(errno) : EMU_REACH_FAULT;
		done += (uint64_t)put;
	}
	return EMU_REACH_OK;
}

void emu_host_wake(struct emu_host *host, struct emu_port *port)
{
	(void)host;
	/* relaxed: the kernel compares the word under its own lock */
	atomic_fetch_add_explicit(&port->doorbell, 1, memory_order_relaxed);
	emu_futex_wake(&port->doorbell);
}
