/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw.h - glexd's control socket without libglex: for tests that need its pid,
 * or to say what the library never would.  Nothing here asserts.
 */
#ifndef TEST_RAW_H
#define TEST_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "emulator/abi/wire.h"

/* The socket's name for GLEX_JOB or GLEX_SOCKET of the environment, as the library makes it. */
void raw_name(char *name, size_t size);

/* A socket bound to name and listening, or connected to it; -1 with errno. */
int raw_listen(const char *name);
int raw_dial(const char *name);

/* One message; fds: descriptors to send along, n of them.  True if it went. */
bool raw_send(int fd, const void *data, size_t size, const int *fds, size_t n);

/* One message in patience; fds: EMU_WIRE_FDS entries or NULL.  False: the end, or nothing came. */
bool raw_receive(int fd, struct emu_ctl_msg *msg, int *fds);

/* A request and its reply; the status, or -1. */
int raw_call(int fd, uint16_t op, struct emu_ctl_msg *msg, int fd_in, int *fds_out);

/* Sound HELLO of this build into msg. */
void raw_hello(struct emu_ctl_msg *msg, bool observer);

/* The process behind the name; 0: none. */
pid_t raw_glexd_pid(const char *name);

/* What glexd tells of a NIC.  -1: it does not. */
int raw_nic(uint32_t nic_id, struct emu_ctl_nic *nic);

#endif /* TEST_RAW_H */
