/* SPDX-License-Identifier: BSD-2-Clause */
/* seccomp.c - see seccomp.h. */
#include "test/lib/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* No other architecture's calls are looked at: nothing here makes them. */
static int forbid(unsigned one, unsigned two)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, two, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int forbid_attach(void)
{
	return forbid(SYS_process_vm_readv, SYS_process_vm_writev);
}

int forbid_userfaultfd(void)
{
	return forbid(SYS_userfaultfd, SYS_userfaultfd);
}

int forbid_membarrier(void)
{
	return forbid(SYS_membarrier, SYS_membarrier);
}
