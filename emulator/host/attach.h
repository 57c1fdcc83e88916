/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - reading and writing another process's private memory.
 *
 * What libglex and glexd both put behind struct emu_host_ops.  No state.
 */
#ifndef EMU_ATTACH_H
#define EMU_ATTACH_H

#include "emulator/nic/move.h"

/* chunk: bytes one system call moves at most.  errno tells the cause of anything but EMU_REACH_OK. */
enum emu_reach emu_attach_read(uint32_t pid, void *here, uint64_t there, uint64_t len, uint64_t chunk);

/* The last `tail` bytes are stored by themselves after all others. */
enum emu_reach emu_attach_write(uint32_t pid, const void *here, uint64_t there, uint64_t len, uint32_t tail,
				uint64_t chunk);

/* Rings the port's bell and wakes who sleeps on it. */
void emu_host_wake(struct emu_host *host, struct emu_port *port);

#endif /* EMU_ATTACH_H */
