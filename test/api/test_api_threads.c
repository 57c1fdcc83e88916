/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_threads.c - any call on any endpoint from any thread.
 *
 * What is sent is numbered and filled with its number: each must come once,
 * whole, and each thread that takes sees a poster's in ascending order.  All of
 * it runs under the thread sanitizer too.  Between themselves the threads of the
 * test use atomics only, so what the sanitizer reports is the library's; relaxed
 * ones where notes are exchanged, so that they order nothing for it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/side.h"

#define POSTERS	  3
#define TAKERS	  3
#define EACH	  300
#define IN_FLIGHT 128 /* so that no queue can overflow */

static void start(pthread_t *thread, void *(*body)(void *), void *arg)
{
	ck_assert_int_eq(pthread_create(thread, NULL, body, arg), 0);
}

/* Takes one error request; false: there is none. */
static bool poll_error(glex_ep_handle_t ep, struct glex_err_req *error)
{
	uint32_t num = 1;

	OK(glex_poll_error_req(ep, &num, error));
	return num == 1;
}

static void join(pthread_t *threads, int n)
{
	while (n--)
		ck_assert_int_eq(pthread_join(threads[n], NULL), 0);
}

/* ---- several post on one endpoint, several take from one -------------------------------------- */

struct traffic {
	glex_ep_handle_t from, to;
	glex_ep_addr_t addr;
	int takers;
	atomic_uint next_poster, sent, taken;
	atomic_uchar seen[POSTERS][EACH];
};

struct note {
	uint32_t poster, number;
	uint32_t fill[26];
};

static uint32_t length_of(uint32_t number)
{
	return 8 + number % 27 * 4;
}

static uint32_t count(atomic_uint *counter)
{
	return atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint32_t counted(atomic_uint *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void *post_notes(void *arg)
{
	struct traffic *t = arg;
	struct note note = {.poster = count(&t->next_poster)};
	struct glex_imm_mp_req req = {.rmt_ep_addr = t->addr, .data = &note};
	uint32_t i;

	for (note.number = 0; note.number < EACH; note.number++) {
		glex_ret_t ret;

		for (i = 0; i < 26; i++)
			note.fill[i] = note.poster * EACH + note.number + i;
		req.len = length_of(note.number);
		UNTIL(counted(&t->sent) - counted(&t->taken) < IN_FLIGHT);
		count(&t->sent);
		while ((ret = glex_send_imm_mp(t->from, &req, NULL)) == GLEX_BUSY)
			sched_yield();
		OK(ret);
	}
	return NULL;
}

static void check_note(struct traffic *t, const struct note *note, uint32_t len, uint32_t next[POSTERS])
{
	uint32_t i;

	ck_assert_uint_lt(note->poster, POSTERS);
	ck_assert_uint_lt(note->number, EACH);
	ck_assert_uint_eq(len, length_of(note->number));
	for (i = 0; i < (len - 8) / 4; i++)
		ck_assert_uint_eq(note->fill[i], note->poster * EACH + note->number + i);
	ck_assert_uint_ge(note->number, next[note->poster]);
	next[note->poster] = note->number + 1;
	ck_assert_uint_eq(atomic_exchange_explicit(&t->seen[note->poster][note->number], 1, memory_order_relaxed), 0);
}

/* Polls, waits a little and waits long, in turn. */
static void *take_notes(void *arg)
{
	static const int32_t timeouts[] = {0, 1, 20};
	struct traffic *t = arg;
	uint32_t next[POSTERS] = {0}, turn = 0, len;
	struct note note;

	while (counted(&t->taken) < POSTERS * EACH) {
		glex_ret_t ret = glex_receive_mp(t->to, timeouts[turn++ % 3], NULL, &note, &len);

		if (ret == GLEX_NO_MP) {
			sched_yield();
			continue;
		}
		OK(ret);
		check_note(t, &note, len, next);
		count(&t->taken);
	}
	return NULL;
}

static void run_traffic(struct traffic *t, int takers)
{
	pthread_t threads[POSTERS + TAKERS];
	int i;

	for (i = 0; i < POSTERS; i++)
		start(&threads[i], post_notes, t);
	for (i = 0; i < takers; i++)
		start(&threads[POSTERS + i], take_notes, t);
	join(threads, POSTERS + takers);
	ck_assert_uint_eq(atomic_load(&t->taken), POSTERS * EACH);
}

/* _i: the posters' endpoint, the takers', whether they are the same one, one taker or several. */
START_TEST(threads__post_and_take_on_shared_endpoints__each_mp_comes_once)
{
	struct traffic *t = calloc(1, sizeof(*t));
	struct side from, to;
	bool same = _i / 4 % 2;

	ck_assert_ptr_nonnull(t);
	side_open(&from, _i % 2 ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST, 0, false);
	side_open(&to, _i / 2 % 2 ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST, 0, false);
	t->from = from.ep;
	t->to = same ? from.ep : to.ep;
	t->addr = same ? from.card.addr : to.card.addr;
	run_traffic(t, _i / 8 ? TAKERS : 1);
	expect_no_error(from.ep);
	expect_no_error(to.ep);
	side_close(&to);
	side_close(&from);
	free(t);
}
END_TEST

/* ---- registering, moving, deregistering at once ------------------------------------------------- */

#define CELL   4096u
#define ROUNDS 25
#define MOVERS 3
#define STALE  7 /* the cookie of nobody */

struct movers {
	struct side *side;
	atomic_uint next;
	atomic_uint done[MOVERS]; /* local events, counted by the one who takes them */
	atomic_bool stop;
};

static glex_event_t event_of(uint32_t mover)
{
	return (glex_event_t){.cookie_0 = mover, .cookie_1 = 1};
}

static void move_cell(struct movers *m, uint32_t me, glex_mem_handle_t mine, enum glex_rdma_type type)
{
	struct glex_rdma_req req = rdma_between(m->side, &m->side->card, type, 0, CELL);
	uint32_t before = atomic_load(&m->done[me]);

	req.local_mh = mine;
	req.rmt_offset = me * CELL;
	req.flag = GLEX_FLAG_LOCAL_EVT;
	req.local_evt = event_of(me);
	post_rdma(m->side->ep, &req);
	UNTIL(atomic_load(&m->done[me]) != before);
}

/* A buffer of its own, each round registered anew: PUT into the shared region and fetched back from there. */
static void *register_and_move(void *arg)
{
	struct movers *m = arg;
	uint32_t me = atomic_fetch_add(&m->next, 1), round, i;
	unsigned char *buf = NULL;
	glex_mem_handle_t mh, last = {.v = 0};

	ck_assert_int_eq(posix_memalign((void **)&buf, CELL, CELL), 0);
	for (round = 1; round <= ROUNDS; round++) {
		memset(buf, (int)(me * ROUNDS + round), CELL);
		OK(glex_register_mem(m->side->ep, buf, CELL, GLEX_MEM_READ | GLEX_MEM_WRITE, &mh));
		ck_assert_uint_ne(mh.v, last.v);
		move_cell(m, me, mh, GLEX_RDMA_TYPE_PUT);
		memset(buf, 0, CELL);
		move_cell(m, me, mh, GLEX_RDMA_TYPE_GET);
		for (i = 0; i < CELL; i++)
			ck_assert_uint_eq(buf[i], (unsigned char)(me * ROUNDS + round));
		OK(glex_deregister_mem(m->side->ep, mh));
		RETURNS(glex_deregister_mem(m->side->ep, mh), GLEX_INVALID_PARAM);
		last = mh;
	}
	free(buf);
	return NULL;
}

/* One thread takes the events of all: an event has no receive that takes and removes at once. */
static void *take_events(void *arg)
{
	struct movers *m = arg;
	glex_event_t *event;

	while (!atomic_load(&m->stop)) {
		glex_ret_t ret = glex_probe_first_event(m->side->ep, 1, &event);

		if (ret == GLEX_NO_EVENT)
			continue;
		OK(ret);
		ck_assert_uint_lt(event->cookie_0, MOVERS);
		atomic_fetch_add(&m->done[event->cookie_0], 1);
		OK(glex_discard_probed_event(m->side->ep));
	}
	return NULL;
}

START_TEST(threads__register_and_move_on_one_endpoint__every_byte_is_right)
{
	pthread_t taker, threads[MOVERS];
	struct movers m = {0};
	struct side side;
	int i;

	side_open(&side, type_of(_i), MOVERS * CELL, is_mapped(_i));
	m.side = &side;
	start(&taker, take_events, &m);
	for (i = 0; i < MOVERS; i++)
		start(&threads[i], register_and_move, &m);
	join(threads, MOVERS);
	atomic_store(&m.stop, true);
	join(&taker, 1);
	for (i = 0; i < MOVERS; i++)
		ck_assert_uint_eq(atomic_load(&m.done[i]), 2 * ROUNDS);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* A region that goes while others PUT into it: each PUT arrives whole, or is refused. */
struct victim {
	struct side *side;
	_Atomic uint64_t mh; /* in force, or just not any more */
	atomic_bool stop;
	atomic_uint arrived;
};

static void *put_into_victim(void *arg)
{
	struct victim *v = arg;
	struct glex_imm_rdma_req req = {.rmt_ep_addr = v->side->card.addr, .rmt_key = v->side->card.key, .len = 64};
	struct glex_err_req error;
	unsigned char data[64];

	memset(data, 0x5a, sizeof(data));
	req.data = data;
	while (!atomic_load(&v->stop)) {
		req.rmt_mh.v = atomic_load(&v->mh);
		post_imm(v->side->ep, &req);
		if (poll_error(v->side->ep, &error)) {
			ck_assert_int_eq(error.op, GLEX_ERR_OP_IMM_RDMA_PUT);
			ck_assert_int_eq(error.status, GLEX_ERR_STATUS_ATT);
		} else {
			atomic_fetch_add(&v->arrived, 1);
		}
	}
	return NULL;
}

START_TEST(threads__deregistered_under_puts__only_error_requests)
{
	pthread_t threads[2];
	struct victim v = {0};
	struct side side;
	glex_mem_handle_t mh;
	unsigned char *buf;
	int round;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	buf = malloc(4096);
	v.side = &side;
	atomic_store(&v.mh, side.card.mh.v);
	start(&threads[0], put_into_victim, &v);
	start(&threads[1], put_into_victim, &v);
	for (round = 0; round < 60; round++) {
		OK(glex_register_mem(side.ep, buf, 4096, GLEX_MEM_WRITE, &mh));
		atomic_store(&v.mh, mh.v);
		if (round % 10 == 0)
			UNTIL(atomic_exchange(&v.arrived, 0) != 0);
		OK(glex_deregister_mem(side.ep, mh));
	}
	atomic_store(&v.stop, true);
	join(threads, 2);
	free(buf);
	side_close(&side);
}
END_TEST

/* ---- endpoints that come and go ------------------------------------------------------------------ */

struct churn {
	glex_device_handle_t dev;
	_Atomic uint64_t addr; /* of the one that is there, or just was */
	atomic_bool stop;
};

static void *come_and_go(void *arg)
{
	struct churn *c = arg;
	struct glex_ep_attr attr = {
		.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .mpq_capacity = 64, .eq_capacity = 64};
	unsigned char data[112];
	uint32_t len;

	while (!atomic_load(&c->stop)) {
		glex_ep_handle_t ep;
		glex_ep_addr_t addr;
		glex_ret_t ret;

		OK(glex_create_ep(c->dev, &attr, &ep));
		OK(glex_get_ep_addr(ep, &addr));
		atomic_store(&c->addr, addr.v);
		ret = glex_receive_mp(ep, 2, NULL, data, &len);
		ck_assert(ret == GLEX_NO_MP || (ret == GLEX_SUCCESS && len == 5 && !memcmp(data, "hello", 5)));
		OK(glex_destroy_ep(ep));
	}
	return NULL;
}

/* What is sent to one that has gone comes back as an error; nothing else may. */
static void *call_on_them(void *arg)
{
	struct churn *c = arg;
	struct glex_err_req error;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	while (!atomic_load(&c->stop)) {
		glex_ep_addr_t addr = {.v = atomic_load(&c->addr)};

		if (addr.v)
			send_mp(&side, addr, "hello", 5);
		while (poll_error(side.ep, &error))
			ck_assert(error.status == GLEX_ERR_STATUS_DEST_VP_STOP ||
				  error.status == GLEX_ERR_STATUS_DEST_MPQ_FULL);
		sched_yield();
	}
	side_close(&side);
	return NULL;
}

START_TEST(threads__endpoints_come_and_go_meanwhile__others_lose_nothing)
{
	struct traffic *t = calloc(1, sizeof(*t));
	pthread_t threads[4];
	struct churn c = {0};
	struct side from, to;

	ck_assert_ptr_nonnull(t);
	side_open(&from, _i ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST, 0, false);
	side_open(&to, GLEX_EP_TYPE_FAST, 0, false);
	c.dev = from.dev;
	start(&threads[0], come_and_go, &c);
	start(&threads[1], come_and_go, &c);
	start(&threads[2], call_on_them, &c);
	start(&threads[3], call_on_them, &c);
	t->from = from.ep;
	t->to = to.ep;
	t->addr = to.card.addr;
	run_traffic(t, TAKERS);
	atomic_store(&c.stop, true);
	join(threads, 4);
	expect_no_error(from.ep);
	side_close(&to);
	side_close(&from);
	free(t);
}
END_TEST

static void *open_and_close(void *arg)
{
	int round;

	(void)arg;
	for (round = 0; round < 12; round++) {
		struct side side;

		side_open(&side, GLEX_EP_TYPE_FAST, 4096, round % 2);
		send_mp(&side, side.card.addr, "self", 4);
		expect_mp(side.ep, "self", 4);
		side_close(&side);
	}
	return NULL;
}

START_TEST(threads__each_opens_and_closes_the_device__it_lives_as_long_as_anybody_uses_it)
{
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		start(&threads[i], open_and_close, NULL);
	join(threads, 4);
}
END_TEST

static void *destroy_it(void *arg)
{
	struct side *side = arg;

	expect_mp(side->ep, "moved", 5);
	side_close(side);
	return NULL;
}

START_TEST(threads__created_by_one_used_by_another__destroyed_by_a_third)
{
	struct side side;
	pthread_t thread;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	send_mp(&side, side.card.addr, "moved", 5);
	start(&thread, destroy_it, &side);
	join(&thread, 1);
}
END_TEST

/* ---- error requests ------------------------------------------------------------------------------- */

struct errors {
	glex_ep_handle_t ep;
	atomic_uint got;
};

#define ERRORS 200 /* as many as surely fit */

static void *take_errors(void *arg)
{
	struct errors *e = arg;
	struct glex_err_req error;

	while (atomic_load(&e->got) < ERRORS) {
		if (!poll_error(e->ep, &error)) {
			sched_yield();
			continue;
		}
		ck_assert_int_eq(error.status, GLEX_ERR_STATUS_DEST_VP_STOP);
		atomic_fetch_add(&e->got, 1);
	}
	return NULL;
}

START_TEST(threads__poll_errors_at_once__each_is_told_once)
{
	glex_ep_addr_t nobody = {.v = 0};
	struct errors e = {0};
	pthread_t threads[3];
	struct side side;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	nobody.nic_id = side.card.addr.nic_id;
	nobody.ep_num = 7777;
	e.ep = side.ep;
	for (i = 0; i < 3; i++)
		start(&threads[i], take_errors, &e);
	for (i = 0; i < ERRORS; i++)
		send_mp(&side, nobody, "lost", 4);
	join(threads, 3);
	ck_assert_uint_eq(atomic_load(&e.got), ERRORS);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- the switch for one thread --------------------------------------------------------------------- */

START_TEST(single_threaded__switch_on__all_calls_work)
{
	struct side side;
	int i;

	glex_single_threaded = 1;
	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	for (i = 0; i < 300; i++) {
		send_mp(&side, side.card.addr, &i, sizeof(i));
		expect_mp(side.ep, &i, sizeof(i));
		rdma_done(&side, &side.card, i % 2 ? GLEX_RDMA_TYPE_PUT : GLEX_RDMA_TYPE_GET, 0, 4096);
	}
	expect_no_error(side.ep);
	side_close(&side);
	glex_single_threaded = 0;
}
END_TEST

/* The switch set though there are threads: what the locks are for must be seen to go wrong. */
static int run_without_locks(Suite *suite, TCase *tc)
{
	glex_single_threaded = 1;
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, threads__post_and_take_on_shared_endpoints__each_mp_comes_once, 0, 16);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create("threads");
	TCase *tc = tcase_create("threads");

	own_job("threads");
	if (argc > 1 && strcmp(argv[1], "--without-locks") == 0)
		return run_without_locks(suite, tc);
	tcase_set_timeout(tc, 120); /* the thread sanitizer makes it ten times as long */
	tcase_add_loop_test(tc, threads__post_and_take_on_shared_endpoints__each_mp_comes_once, 0, 16);
	tcase_add_loop_test(tc, threads__register_and_move_on_one_endpoint__every_byte_is_right, 0, KINDS);
	tcase_add_loop_test(tc, threads__deregistered_under_puts__only_error_requests, 0, KINDS);
	tcase_add_loop_test(tc, threads__endpoints_come_and_go_meanwhile__others_lose_nothing, 0, 2);
	tcase_add_test(tc, threads__each_opens_and_closes_the_device__it_lives_as_long_as_anybody_uses_it);
	tcase_add_loop_test(tc, threads__created_by_one_used_by_another__destroyed_by_a_third, 0, KINDS);
	tcase_add_test(tc, threads__poll_errors_at_once__each_is_told_once);
	tcase_add_loop_test(tc, single_threaded__switch_on__all_calls_work, 0, KINDS);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
