/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_wait.c - timeouts 0, n and -1; what wakes a sleeper and what does not.
 *
 * Upper bounds are far above what an idle machine needs: this one may be busy.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "test/lib/side.h"

/* The four calls that wait, as one. */
enum call { PROBE_MP, RECEIVE_MP, PROBE_EVENT, CALLS };

static glex_ret_t wait_by(int call, glex_ep_handle_t ep, int32_t timeout)
{
	unsigned char data[112];
	glex_event_t *event;
	uint32_t len;
	void *at;

	switch (call) {
	case PROBE_MP:
		return glex_probe_first_mp(ep, timeout, NULL, &at, &len);
	case RECEIVE_MP:
		return glex_receive_mp(ep, timeout, NULL, data, &len);
	default:
		return glex_probe_first_event(ep, timeout, &event);
	}
}

static glex_ret_t none_of(int call)
{
	return call == PROBE_EVENT ? GLEX_NO_EVENT : GLEX_NO_MP;
}

START_TEST(wait__timeout_0__returns_at_once)
{
	struct side side;
	int64_t start;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	start = now_ns();
	for (i = 0; i < 1000; i++)
		RETURNS(wait_by(_i, side.ep, 0), none_of(_i));
	ck_assert_int_lt(now_ns() - start, INT64_C(1000000000));
	side_close(&side);
}
END_TEST

START_TEST(wait__timeout_n__expires_after_n_milliseconds)
{
	static const int32_t timeouts[] = {1, 5, 20, 30, 120, 250};
	struct side side;
	int64_t start, took;
	size_t i;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	for (i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		start = now_ns();
		RETURNS(wait_by(_i, side.ep, timeouts[i]), none_of(_i));
		took = now_ns() - start;
		ck_assert_int_ge(took, timeouts[i] * INT64_C(1000000));
		ck_assert_int_lt(took, (timeouts[i] + 1500) * INT64_C(1000000));
	}
	side_close(&side);
}
END_TEST

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* Processor time, so a busy machine makes no difference; who spins all the while takes a hundred times as much. */
START_TEST(wait__asleep_for_a_second__takes_no_processor_time)
{
	struct side side;
	int64_t start;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	start = cpu_ns();
	RETURNS(wait_by(_i, side.ep, 1000), none_of(_i));
	ck_assert_int_lt(cpu_ns() - start, INT64_C(50000000));
	side_close(&side);
}
END_TEST

/* ---- waking --------------------------------------------------------------------------------- */

/* True once thread tid of process pid sleeps in the kernel. */
static bool is_asleep(pid_t pid)
{
	char path[64], text[256] = "";
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	state = n > 0 ? strrchr(text, ')') : NULL;
	return state && state[1] == ' ' && state[2] == 'S';
}

struct sleeper {
	int call;
	int32_t timeout;
	enum glex_ep_type type;
};

static void sleep_and_wake(int fd, void *arg)
{
	struct sleeper *sleeper = arg;
	struct side side;
	int i;

	side_open(&side, sleeper->type, 64, false);
	swap_cards(&side, fd);
	for (i = 0; i < 20; i++) {
		OK(wait_by(sleeper->call, side.ep, sleeper->timeout));
		if (sleeper->call == PROBE_MP)
			OK(glex_discard_probed_mp(side.ep));
		if (sleeper->call == PROBE_EVENT)
			OK(glex_discard_probed_event(side.ep));
		meet(fd);
	}
	side_close(&side);
}

static void send_one(struct side *side, struct card *card, int call)
{
	struct glex_rdma_req req;

	if (call != PROBE_EVENT) {
		send_mp(side, card->addr, "wake", 4);
		return;
	}
	req = rdma_between(side, card, GLEX_RDMA_TYPE_PUT, 0, 8);
	req.flag = GLEX_FLAG_REMOTE_EVT;
	req.rmt_evt.cookie_1 = 1;
	post_rdma(side->ep, &req);
}

START_TEST(wait__asleep__wakes_when_something_arrives)
{
	struct sleeper sleeper = {_i % CALLS, _i / CALLS % 2 ? WAIT_MS : -1,
				  _i / CALLS / 2 ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST};
	struct peer peer = peer_start(sleep_and_wake, &sleeper);
	struct side side;
	struct card card;
	int64_t start;
	int i;

	side_open(&side, sleeper.type, 64, false);
	card = swap_cards(&side, peer.fd);
	for (i = 0; i < 20; i++) {
		if (i % 2) /* else it may be anywhere on its way to sleep */
			UNTIL(is_asleep(peer.pid));
		start = now_ns();
		send_one(&side, &card, sleeper.call);
		meet(peer.fd);
		ck_assert_int_lt(now_ns() - start, INT64_C(5000000000));
	}
	peer_join(&peer);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/*
 * A wake that is lost costs a nap of a tenth of a second.  On a busy machine a
 * round may take as long all the same, so each is followed by one through a
 * socket, which loses none: its slow rounds are the machine's.
 */
#define ROUNDS	 1500
#define BUDGET_S 15
#define SLOW_NS	 90000000

static void ping_back(int fd, void *arg)
{
	struct side side;
	struct card card;
	uint32_t i;
	char more;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	card = swap_cards(&side, fd);
	for (i = 0; hear(fd, &more, 1), more; i++) {
		say(fd, &more, 1);
		expect_mp(side.ep, &i, sizeof(i));
		send_mp(&side, card.addr, &i, sizeof(i));
	}
	side_close(&side);
}

static int64_t round_by_socket(int fd)
{
	int64_t start = now_ns();
	char more = 1;

	say(fd, &more, 1);
	hear(fd, &more, 1);
	return now_ns() - start;
}

static int64_t round_by_mp(struct side *side, const struct card *card, uint32_t i)
{
	int64_t start = now_ns();

	send_mp(side, card->addr, &i, sizeof(i));
	expect_mp(side->ep, &i, sizeof(i));
	return now_ns() - start;
}

START_TEST(wait__ping_pong__no_wake_is_lost)
{
	int64_t end = now_ns() + BUDGET_S * INT64_C(1000000000);
	uint32_t i, slow = 0, slow_machine = 0;
	struct peer peer;
	struct side side;
	struct card card;

	setenv("GLEX_SPIN_TIME", "0", 1);
	setenv("GLEX_YIELD_TIME", _i ? "20us" : "0", 1);
	peer = peer_start(ping_back, NULL);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	card = swap_cards(&side, peer.fd);
	for (i = 0; i < ROUNDS && now_ns() < end; i++) {
		slow_machine += round_by_socket(peer.fd) > SLOW_NS;
		slow += round_by_mp(&side, &card, i) > SLOW_NS;
	}
	say(peer.fd, "", 1);
	peer_join(&peer);
	ck_assert_msg(slow <= 10 + 3 * slow_machine, "%u of %u rounds took a nap, %u by socket were as slow", slow, i,
		      slow_machine);
	side_close(&side);
}
END_TEST

/* ---- signals ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void alarm_every_ms(void)
{
	struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART: calls are interrupted */
	struct itimerval every = {{0, 1000}, {0, 1000}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

START_TEST(wait__signals_meanwhile__goes_on_until_the_timeout)
{
	struct itimerval off = {0};
	struct side side;
	int64_t start;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	alarm_every_ms();
	start = now_ns();
	RETURNS(wait_by(_i, side.ep, 200), none_of(_i));
	ck_assert_int_ge(now_ns() - start, INT64_C(200000000));
	ck_assert_int_gt(alarms, 10);
	setitimer(ITIMER_REAL, &off, NULL);
	side_close(&side);
}
END_TEST

static void send_late(int fd, void *arg)
{
	struct side side;
	struct card card;
	pid_t waiter;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	card = swap_cards(&side, fd);
	hear(fd, &waiter, sizeof(waiter));
	wait_by(PROBE_MP, side.ep, 50); /* nothing comes: the other one takes signals all the while */
	send_one(&side, &card, *(int *)arg);
	meet(fd);
	side_close(&side);
}

START_TEST(wait__for_ever_with_signals__ends_only_by_arrival)
{
	struct peer peer = peer_start(send_late, &_i);
	struct itimerval off = {0};
	pid_t self = getpid();
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	swap_cards(&side, peer.fd);
	alarm_every_ms();
	say(peer.fd, &self, sizeof(self));
	OK(wait_by(_i, side.ep, -1));
	setitimer(ITIMER_REAL, &off, NULL);
	ck_assert_int_gt(alarms, 0);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- several threads -------------------------------------------------------------------------- */

static void *wait_for_one(void *arg)
{
	struct side *side = arg;
	unsigned char data[112];
	uint32_t len;

	OK(glex_receive_mp(side->ep, -1, NULL, data, &len));
	return NULL;
}

START_TEST(wait__several_threads_on_one_endpoint__each_mp_lets_one_go)
{
	pthread_t thread[4];
	struct side side;
	int i;

	side_open(&side, (enum glex_ep_type)_i, 0, false);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_for_one, &side), 0);
	RETURNS(wait_by(PROBE_EVENT, side.ep, 20), GLEX_NO_EVENT);
	for (i = 0; i < 4; i++)
		send_mp(&side, side.card.addr, "go", 2);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	RETURNS(wait_by(PROBE_MP, side.ep, 0), GLEX_NO_MP);
	side_close(&side);
}
END_TEST

static void *post_when_told(void *arg)
{
	struct side *side = arg;

	RETURNS(wait_by(PROBE_MP, side->ep, 30), GLEX_NO_MP);
	rdma_between(side, &side->card, GLEX_RDMA_TYPE_PUT, 0, 8);
	send_one(side, &side->card, PROBE_EVENT);
	return NULL;
}

START_TEST(wait__main_waits_helper_posts__same_endpoint)
{
	pthread_t helper;
	struct side side;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	ck_assert_int_eq(pthread_create(&helper, NULL, post_when_told, &side), 0);
	OK(wait_by(PROBE_EVENT, side.ep, -1));
	pthread_join(helper, NULL);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wait");
	TCase *tc = tcase_create("wait");

	own_job("wait");
	tcase_add_loop_test(tc, wait__timeout_0__returns_at_once, 0, CALLS);
	tcase_add_loop_test(tc, wait__timeout_n__expires_after_n_milliseconds, 0, CALLS);
	tcase_add_loop_test(tc, wait__asleep_for_a_second__takes_no_processor_time, 0, CALLS);
	tcase_add_loop_test(tc, wait__asleep__wakes_when_something_arrives, 0, CALLS * 4);
	tcase_add_loop_test(tc, wait__ping_pong__no_wake_is_lost, 0, 2);
	tcase_add_loop_test(tc, wait__signals_meanwhile__goes_on_until_the_timeout, 0, CALLS);
	tcase_add_loop_test(tc, wait__for_ever_with_signals__ends_only_by_arrival, 0, CALLS);
	tcase_add_loop_test(tc, wait__several_threads_on_one_endpoint__each_mp_lets_one_go, 0, 3);
	tcase_add_loop_test(tc, wait__main_waits_helper_posts__same_endpoint, 0, KINDS);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
