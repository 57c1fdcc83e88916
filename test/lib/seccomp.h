/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seccomp.h - a process that may not use cross-memory attach, as in a container
 * with a strict filter.  Holds for this process and all it starts, for ever.
 */
#ifndef TEST_SECCOMP_H
#define TEST_SECCOMP_H

/* 0, or -1 with errno: the kernel has no such filters. */
int forbid_attach(void);

/* Likewise one that gets no userfaultfd. */
int forbid_userfaultfd(void);

/* Likewise one whose kernel tells what is mapped by the text of /proc alone, as those before Linux 6.11 do. */
int forbid_vma_query(void);

/* Nothing but to end: any other system call ends the process by SIGSYS. */
int forbid_all(void);

/* Likewise one that cannot make others order their memory. */
int forbid_membarrier(void);

#endif /* TEST_SECCOMP_H */
