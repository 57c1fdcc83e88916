/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer.h - the other processes of a test, talking over socket pairs; deadlines.
 *
 * A device does not survive a fork, so peers are started before it is opened.
 * What a peer asserts fails the test, for it shares Check's report.
 */
#ifndef TEST_PEER_H
#define TEST_PEER_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
	pid_t pid;
	int fd; /* to the peer */
};

/* Runs body(fd to us, arg) in a new process, which ends with success when it returns. */
struct peer peer_start(void (*body)(int fd, void *arg), void *arg);

/* The peer must end by itself, with success, in reasonable time. */
void peer_join(struct peer *peer);

/* Kills it at once and takes it away. */
void peer_kill(struct peer *peer);

/* Exactly size bytes each; a peer that is gone fails the test. */
void say(int fd, const void *data, size_t size);
void hear(int fd, void *data, size_t size);

/*
 * Check notes the place of each assertion that holds in the report.  A process
 * killed in the middle of such a note leaves a piece of it, and Check cannot read
 * on ("Bad message type arg"): a peer writes only when something fails.
 */
void peer_mark_point(const char *file, int line);
#define _mark_point(file, line) peer_mark_point(file, line)

/* A word that means only "I am here"; both sides call it. */
void meet(int fd);

int64_t now_ns(void);

#define PATIENCE_S 100 /* much longer than anything takes that works, on a machine that has other things to do */

/* Gives way to others until cond holds; fails the test when it never does. */
#define UNTIL(cond)                                                                                                    \
	do {                                                                                                           \
		int64_t deadline_ = now_ns() + INT64_C(1000000000) * PATIENCE_S;                                       \
		while (!(cond)) {                                                                                      \
			ck_assert_msg(now_ns() < deadline_, "never came true: %s", #cond);                             \
			sched_yield();                                                                                 \
		}                                                                                                      \
	} while (0)

#endif /* TEST_PEER_H */
