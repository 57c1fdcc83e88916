/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_small.c - what is small makes no system call, allocates nothing and takes no
 * lock of the system's: mini-packets, PUTs with and without an event, GETs, polls
 * of empty queues, of FAST endpoints, to oneself and to another process.
 *
 * A system call kills the process that is looked at; allocations and locks are
 * counted here, where the library finds these names before the system's.  It does not poll
 * while it waits for the other: after thousands of empty polls the library
 * looks whether glexd is still there.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/seccomp.h"
#include "test/lib/side.h"

/* A sanitizer's library has these names, and makes system calls of its own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define ROUNDS 1000
#define WARMUP 100
#define TURN   128 /* where the other process counts its answers, after its packet */

static _Atomic unsigned allocations, locks;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	allocations++;
	return __libc_realloc(p, size);
}

static int (*system_lock)(pthread_mutex_t *mutex);

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	locks++;
	if (!system_lock)
		*(void **)&system_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	return system_lock(mutex);
}

/* To whom, and what the program has said or done about threads. */
enum threads { NOTHING_SAID, ALONE, ANOTHER_HAS_POSTED, THREADS };
enum target { ONESELF, ANOTHER_PROCESS, TARGETS };

struct round {
	glex_ep_handle_t ep;
	struct glex_imm_mp_req mp;
	struct glex_imm_rdma_req imm;
	struct glex_rdma_req rdma;
	bool echoes; /* a packet comes back, by whoever got it */
	volatile uint32_t *turn;
	uint32_t turns;
};

static struct round round_with(struct side *side, const struct card *to, enum target target)
{
	struct round round = {
		.ep = side->ep,
		.mp = {.rmt_ep_addr = to->addr, .len = 8, .data = "payload"},
		.imm = {.rmt_ep_addr = to->addr,
			.len = 8,
			.data = "payload",
			.rmt_mh = to->mh,
			.rmt_key = to->key,
			.rmt_evt = {.cookie_1 = 1},
			.flag = GLEX_FLAG_REMOTE_EVT},
		.rdma = rdma_between(side, to, GLEX_RDMA_TYPE_PUT, 0, 64),
		.echoes = target == ANOTHER_PROCESS,
		.turn = (volatile uint32_t *)(void *)(side->buf + TURN),
	};

	return round;
}

static bool has_mp(glex_ep_handle_t ep)
{
	glex_ep_addr_t from;
	uint32_t len;
	void *data;

	return glex_probe_first_mp(ep, 0, &from, &data, &len) == GLEX_SUCCESS && len == 8 &&
	       glex_discard_probed_mp(ep) == GLEX_SUCCESS;
}

static bool has_event(glex_ep_handle_t ep)
{
	glex_event_t *event;

	return glex_probe_first_event(ep, 0, &event) == GLEX_SUCCESS && glex_discard_probed_event(ep) == GLEX_SUCCESS;
}

/* The packet is what follows the rest, so that whoever got it has all. */
static bool go_round(struct round *round)
{
	glex_event_t *event;
	glex_ep_addr_t from;
	uint32_t len;
	void *data;

	round->turns++;
	round->rdma.type = round->rdma.type == GLEX_RDMA_TYPE_PUT ? GLEX_RDMA_TYPE_GET : GLEX_RDMA_TYPE_PUT;
	if (glex_rdma(round->ep, &round->rdma, NULL) != GLEX_SUCCESS ||
	    glex_imm_rdma(round->ep, &round->imm, NULL) != GLEX_SUCCESS ||
	    glex_send_imm_mp(round->ep, &round->mp, NULL) != GLEX_SUCCESS)
		return false;
	while (round->echoes && *round->turn != round->turns)
		;
	return (round->echoes || has_event(round->ep)) && has_mp(round->ep) &&
	       glex_probe_first_mp(round->ep, 0, &from, &data, &len) == GLEX_NO_MP &&
	       glex_probe_first_event(round->ep, 0, &event) == GLEX_NO_EVENT;
}

static void *post_one(void *arg)
{
	SURE(go_round(arg));
	return NULL;
}

enum outcome { WELL, NOT_FORBIDDEN, NOT_DONE, ALLOCATED, LOCKED };

static enum outcome go_rounds(struct round *round)
{
	unsigned allocated, locked;
	int i;

	for (i = 0; i < WARMUP; i++) /* what is found out at first contact */
		if (!go_round(round))
			return NOT_DONE;
	if (forbid_all() < 0)
		return NOT_FORBIDDEN;
	allocated = allocations;
	locked = locks;
	for (i = 0; i < ROUNDS; i++)
		if (!go_round(round))
			return NOT_DONE;
	return allocations != allocated ? ALLOCATED : locks != locked ? LOCKED : WELL;
}

/* A process of its own, for it can do nothing but end then. */
static void watched(int fd, void *arg)
{
	enum threads threads = (enum threads)(*(int *)arg / TARGETS);
	enum target target = (enum target)(*(int *)arg % TARGETS);
	pthread_t thread;
	struct side side;
	struct round round;
	struct card theirs;

	glex_single_threaded = threads == ALONE;
	side_open(&side, GLEX_EP_TYPE_FAST, 4096, true);
	theirs = swap_cards(&side, fd);
	round = round_with(&side, target == ONESELF ? &side.card : &theirs, target);
	if (threads == ANOTHER_HAS_POSTED) {
		post_one(&round);
		ck_assert_int_eq(pthread_create(&thread, NULL, post_one, &round), 0);
		pthread_join(thread, NULL);
	} else {
		post_one(&round);
		post_one(&round);
	}
	_exit((int)go_rounds(&round));
}

/* Polls: who slept would have to be woken, by a call. */
static void answer(struct side *side, const struct card *to)
{
	struct round back = round_with(side, to, ANOTHER_PROCESS);
	uint32_t n;

	back.imm.flag = 0;
	back.imm.rmt_offset = TURN;
	back.imm.data = &n;
	back.imm.len = sizeof(n);
	for (n = 1; n <= 2 + WARMUP + ROUNDS; n++) {
		UNTIL(has_mp(side->ep));
		SURE(has_event(side->ep));
		OK(glex_send_imm_mp(side->ep, &back.mp, NULL));
		OK(glex_imm_rdma(side->ep, &back.imm, NULL));
	}
}

START_TEST(small__requests_and_empty_polls__no_system_call_allocation_or_lock)
{
	struct peer peer = peer_start(watched, &_i);
	struct side side;
	struct card theirs;

	side_open(&side, GLEX_EP_TYPE_FAST, 4096, true);
	theirs = swap_cards(&side, peer.fd);
	if (_i % TARGETS == ANOTHER_PROCESS)
		answer(&side, &theirs);
	peer_join(&peer); /* status 0x1f or 0x9f: SIGSYS; else its upper byte is an enum outcome */
	side_close(&side);
}
END_TEST

/* Else what is counted above says nothing. */
START_TEST(count__of_a_program_that_does_both__rises)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	unsigned allocated = allocations, locked = locks;
	glex_ep_handle_t ep;
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM};
	struct side side;

	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	ck_assert_uint_gt(locks, locked);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	allocated = allocations;
	locked = locks;
	OK(glex_create_ep(side.dev, &attr, &ep));
	ck_assert_uint_gt(allocations, allocated);
	ck_assert_uint_gt(locks, locked);
	OK(glex_destroy_ep(ep));
	side_close(&side);
}
END_TEST

#endif

int main(void)
{
	Suite *suite = suite_create("small");
	TCase *tc = tcase_create("small");

	own_job("small");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	tcase_add_loop_test(tc, small__requests_and_empty_polls__no_system_call_allocation_or_lock, 0,
			    THREADS * TARGETS);
	tcase_add_test(tc, count__of_a_program_that_does_both__rises);
#else
	skipped("small", "the sanitizer makes system calls of its own");
#endif
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
