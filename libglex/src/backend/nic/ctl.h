/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl.h - the client's end of glexd's control socket.
 *
 * One call at a time; calls of several threads queue on a mutex.  Also used by
 * tools that only look (observer).
 */
#ifndef GLEXI_CTL_H
#define GLEXI_CTL_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include <glex.h>

#include "emulator/abi/wire.h"

struct nic_ctl {
	pthread_mutex_t lock;
	int fd;		 /* -1: closed */
	pid_t glexd;	 /* its number here; 0: not known */
	bool membarrier; /* this process can make the others order their memory, and they it */
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
};

/*
 * Connects to the glexd of this user and job, starting it if `start` and it is
 * a private one, and says hello.  fds: engine and NIC, -1 for an observer.
 * GLEX_SYS_ERR, GLEX_ACCESS_ERR; the cause has been logged.  Without `start` an
 * absent glexd is GLEX_NO_MP, not logged.
 */
glex_ret_t nic_ctl_open(struct nic_ctl *ctl, bool start, struct emu_ctl_hello_reply *welcome, int fds[EMU_WIRE_FDS]);
void nic_ctl_close(struct nic_ctl *ctl);

/*
 * One request and its reply.  fd_in: passed along, -1 for none; stays the
 * caller's.  fds_out: EMU_WIRE_FDS entries, the caller's to close, -1 where none;
 * may be NULL.  Returns an emu_ctl_status, or -1: glexd does not answer.
 */
int nic_ctl_call(struct nic_ctl *ctl, uint16_t op, struct emu_ctl_msg *msg, int fd_in, int *fds_out);

/* What a result of nic_ctl_call says, in words. */
const char *nic_ctl_status_str(int status);

/* True unless glexd has closed its end.  Never waits. */
bool nic_ctl_alive(struct nic_ctl *ctl);

/* launch.c: the socket's name into name (size bytes): 0, or -1 logged.  *private_p: we may start it. */
int nic_socket_name(char *name, size_t size, bool *private_p);

/* launch.c: whether a process runs, or waits for a processor and nothing else; false too where it cannot be told. */
bool nic_is_at_work(pid_t pid);

/*
 * launch.c: starts a private glexd: 1: it listens now; 0: another process is just starting one, which does not matter to
 * who has waited long enough (alone); -1: logged.
 */
int nic_start_glexd(const char *name, bool alone);

#endif /* GLEXI_CTL_H */
