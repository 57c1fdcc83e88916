/* SPDX-License-Identifier: BSD-2-Clause */
/* group.h - what the tests of groups have in common: their members, and what those do. */
#ifndef TEST_GROUP_H
#define TEST_GROUP_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/side.h"

#define MAX 64

struct crowd {
	uint32_t n, me, degree;
	enum glex_group_shape shape;
	enum glex_ep_type type;
	bool tests;	   /* it does not wait, but looks in */
	bool unregistered; /* the board is all that it can register, or what stands for it in a tree */
	bool shuffled;	   /* out of order */
	bool passed;	   /* long broadcasts are, down the tree */
	bool undecided;	   /* opened before it is known that there is no tree */
};

static glex_device_handle_t dev;
static glex_group_t group;
static struct glex_group_card all_cards[MAX]; /* of who has started the others */

/* What glex_group_open is told. */
static inline uint32_t direct_of(const struct crowd *c, uint32_t n)
{
	return c->shape == GLEX_GROUP_DIRECT && !c->undecided ? n : 0;
}

static inline void open_group(struct glex_group_card *card, const struct crowd *c)
{
	if (c->unregistered)
		setenv("GLEX_MAX_REGIONS", "1", 1);
	OK(glex_open_device(0, &dev));
	OK(glex_group_open(dev, c->type, direct_of(c, c->n), &group, card));
}

static inline void close_group(void)
{
	OK(glex_group_close(group));
	OK(glex_close_device(dev));
}

static inline void *nothing(void *arg)
{
	return arg;
}

/* This process has had another thread, and so may have one again. */
static inline void have_thread(void)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static inline double value_of(uint32_t round, uint32_t me)
{
	return (round + 1) / (me + 3.0);
}

/* Close to the sum, whatever the order; and its bits the same everywhere, which a reduction of them shows. */
static inline void sum_up(const struct crowd *c, uint32_t round, bool all)
{
	union glex_coll_data_loc unit[6], low, high;
	double want = 0, got;
	uint32_t i;

	for (i = 0; i < c->n; i++)
		want += value_of(round, i);
	memset(unit, 0, sizeof(unit));
	for (i = 0; i < 6; i++)
		unit[i].double_s.data = value_of(round, c->me) * (i + 1);
	if (all)
		OK(glex_group_allreduce(group, unit, 6, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_FLOAT));
	else
		OK(glex_group_reduce(group, round % c->n, unit, 6, GLEX_COLL_REDUCE_DATA_BITS_64,
				     GLEX_COLL_REDUCE_SUM_FLOAT));
	OK(glex_group_wait(group, WAIT_MS));
	if (!all && c->me != round % c->n)
		want = value_of(round, c->me);
	for (i = 0; i < 6; i++) {
		got = unit[i].double_s.data;
		ck_assert(got > want * (i + 1) * (1 - 1e-12) && got < want * (i + 1) * (1 + 1e-12));
	}
	if (!all)
		return;
	low = high = unit[0];
	OK(glex_group_allreduce(group, &low, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_MINLOC_UNSIGNED));
	OK(glex_group_wait(group, WAIT_MS));
	OK(glex_group_allreduce(group, &high, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_MAXLOC_UNSIGNED));
	OK(glex_group_wait(group, WAIT_MS));
	ck_assert_uint_eq(low.uint64_s.data, high.uint64_s.data);
}

static inline void find_greatest(const struct crowd *c, uint32_t round)
{
	uint32_t winner = round * 7 % c->n;
	union glex_coll_data_loc unit = {.int32_s = {.data = c->me == winner ? 5 : -3, .location = c->me}};

	OK(glex_group_allreduce(group, &unit, 1, GLEX_COLL_REDUCE_DATA_BITS_32, GLEX_COLL_REDUCE_MAXLOC_SIGNED));
	OK(glex_group_wait(group, WAIT_MS));
	ck_assert_int_eq(unit.int32_s.data, 5);
	ck_assert_uint_eq(unit.int32_s.location, winner);
}

static inline void spread(const struct crowd *c, uint32_t round)
{
	uint32_t root = round % c->n, len = round * 5 % 113;
	unsigned char data[112];

	memset(data, 0, sizeof(data));
	if (c->me == root)
		fill(data, len, round);
	OK(glex_group_bcast(group, root, data, len));
	OK(glex_group_wait(group, -1));
	expect_filled(data, len, round);
}

static const uint32_t long_lens[] = {100000, 0, 1, 113, 300000, 3 << 20, 4096, 65536};

/* Into and out of the middle of memory that nobody has registered; nothing beside it is touched. */
static inline void spread_long(const struct crowd *c, uint32_t round)
{
	uint32_t root = round % c->n, len = long_lens[round % 8] / (c->unregistered ? 1500 : 1), i;
	unsigned char *data = malloc(len + 200);

	ck_assert_ptr_nonnull(data);
	memset(data, 0xee, len + 200);
	if (c->me == root)
		fill(data + 100, len, round);
	OK(glex_group_bcast_long(group, root, data + 100, len));
	RETURNS(glex_group_barrier(group), GLEX_BUSY);
	OK(glex_group_wait(group, WAIT_MS));
	expect_filled(data + 100, len, round);
	for (i = 0; i < 100; i++)
		SURE(data[i] == 0xee && data[100 + len + i] == 0xee);
	free(data);
}

/* Of many fewer rounds: where they outnumber processors so much each takes long. */
static inline void take_part(const struct crowd *c)
{
	uint32_t round, rounds = c->n <= 16 ? 24 : c->n <= 32 ? 9 : 3;

	for (round = 0; round < rounds; round++) {
		OK(glex_group_barrier(group));
		RETURNS(glex_group_barrier(group), GLEX_BUSY);
		OK(glex_group_wait(group, WAIT_MS));
		spread(c, round);
		if (c->n <= 16 || round % 8 < 2)
			spread_long(c, round);
		sum_up(c, round, true);
		sum_up(c, round, false);
		find_greatest(c, round);
	}
}

/* A place in the table of regions. */
static inline void occupy(void)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = 1};
	static unsigned char byte[1];
	glex_mem_handle_t mh;
	glex_ep_handle_t ep;

	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_register_mem(ep, byte, sizeof(byte), GLEX_MEM_READ, &mh));
}

static inline void join(const struct crowd *c, const struct glex_group_card *cards)
{
	RETURNS(glex_group_barrier(group), GLEX_INVALID_PARAM);
	if (c->n > 1)
		RETURNS(glex_group_join(group, cards, c->n, (c->me + 1) % c->n, c->shape, c->degree),
			GLEX_INVALID_PARAM);
	OK(glex_group_join(group, cards, c->n, c->me, c->shape, c->degree));
	RETURNS(glex_group_join(group, cards, c->n, c->me, c->shape, c->degree), GLEX_INVALID_PARAM);
	RETURNS(glex_group_wait(group, 0), GLEX_INVALID_PARAM);
	if (c->unregistered && c->shape != GLEX_GROUP_DIRECT)
		occupy();
	if (c->passed)
		OK(glex_group_set_long(group, GLEX_GROUP_LONG_PASSED));
}

static inline void meet_all(int fd, const struct crowd *c)
{
	struct glex_group_card cards[MAX], card;

	open_group(&card, c);
	say(fd, &card, sizeof(card));
	hear(fd, cards, sizeof(cards));
	join(c, cards);
	say(fd, "j", 1);
	hear(fd, &card, 1); /* all have */
	if (!c->passed)
		return;
	OK(glex_group_barrier(group)); /* nobody may be told anything before he has joined */
	OK(glex_group_wait(group, WAIT_MS));
}

static inline void member(int fd, void *arg)
{
	const struct crowd *c = arg;

	meet_all(fd, c);
	take_part(c);
	close_group();
}

/* Nobody may begin anything before all have joined. */
static inline void await_all(const struct peer *peer, uint32_t first, uint32_t n)
{
	uint32_t i;
	char joined;

	for (i = first; i < n; i++)
		hear(peer[i].fd, &joined, 1);
	for (i = first; i < n; i++)
		say(peer[i].fd, "j", 1);
}

static inline void start(struct crowd *c, struct peer *peer, void (*body)(int fd, void *arg))
{
	uint32_t i;

	memset(all_cards, 0, sizeof(all_cards));
	for (c->me = 1; c->me < c->n; c->me++)
		peer[c->me] = peer_start(body, c);
	c->me = 0;
	open_group(&all_cards[0], c);
	for (i = 1; i < c->n; i++)
		hear(peer[i].fd, &all_cards[i], sizeof(all_cards[i]));
	for (i = 1; i < c->n; i++)
		say(peer[i].fd, all_cards, sizeof(all_cards));
	join(c, all_cards);
	await_all(peer, 1, c->n);
}

/* Members that are processes, and none of them this one. */
static inline void start_all(struct crowd *c, struct peer *peer, void (*body)(int fd, void *arg), void *arg)
{
	struct glex_group_card cards[MAX];
	uint32_t i;

	memset(cards, 0, sizeof(cards));
	for (c->me = 0; c->me < c->n; c->me++)
		peer[c->me] = peer_start(body, arg);
	for (i = 0; i < c->n; i++)
		hear(peer[i].fd, &cards[i], sizeof(cards[i]));
	for (i = 0; i < c->n; i++)
		say(peer[i].fd, cards, sizeof(cards));
	await_all(peer, 0, c->n);
}

static inline void run_all(struct crowd *c, void (*body)(int fd, void *arg))
{
	struct peer peer[MAX];
	uint32_t i;

	start_all(c, peer, body, c);
	for (i = 0; i < c->n; i++)
		peer_join(&peer[i]);
}

static inline uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 10;
}

/* Until it ends, or is known never to: waiting, or looking in now and then. */
static inline glex_ret_t wait_or_test(bool tests)
{
	glex_ret_t ret = GLEX_NO_MP;

	if (!tests)
		return glex_group_wait(group, -1);
	UNTIL((ret = glex_group_wait(group, 0)) != GLEX_NO_MP);
	return ret;
}

/* With a glexd of its own: it reads these when it starts, and others are to be in order. */
static inline void shuffle(const char *job)
{
	own_job(job);
	setenv("GLEX_REORDER", "16", 1);
	setenv("GLEX_REORDER_SEED", "7", 1);
}

/* All are processes of their own, so that any of them may die: this one does when all have met once more. */
static inline void lose(struct crowd *c, uint32_t doomed, void (*body)(int fd, void *arg), void *arg)
{
	struct peer peer[MAX];
	uint32_t i;

	start_all(c, peer, body, arg);
	for (i = 0; i < c->n; i++)
		meet(peer[i].fd);
	peer_kill(&peer[doomed]);
	for (i = 0; i < c->n; i++)
		if (i != doomed)
			peer_join(&peer[i]);
}

#endif /* TEST_GROUP_H */
