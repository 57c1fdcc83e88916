/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_intr.c - the descriptor of an endpoint: what makes it readable, that
 * nothing else does, and that nothing is missed; interrupts and their causes.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/raw.h"
#include "test/lib/side.h"

static int fd_of(const struct side *side)
{
	int fd = -1;

	OK(glex_ep_fd(side->ep, &fd));
	ck_assert_int_ge(fd, 0);
	return fd;
}

static bool is_readable(int fd, int ms)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&in, 1, ms);
	while (n < 0);
	return n == 1;
}

/* Takes what interrupts there are, at most 8. */
static uint32_t take_intrs(const struct side *side, struct glex_intr *list)
{
	uint32_t num = 8;

	OK(glex_ep_poll_intr(side->ep, &num, list, NULL));
	return num;
}

static void expect_intr(const struct side *side, enum glex_intr_cause cause, glex_ep_addr_t peer)
{
	struct glex_intr list[8];

	ck_assert(is_readable(fd_of(side), WAIT_MS));
	ck_assert_uint_eq(take_intrs(side, list), 1);
	ck_assert_uint_eq(list[0].field_mask, GLEX_INTR_FIELDS);
	ck_assert_int_eq(list[0].cause, cause);
	ck_assert_uint_eq(list[0].peer.v, peer.v);
	ck_assert(!is_readable(fd_of(side), 0));
}

/* ---- interrupts -------------------------------------------------------------------------------- */

enum { OP_MP, OP_IMM, OP_PUT, OP_GET, OPS };

static void post(struct side *side, const struct card *to, int op, int32_t flag)
{
	struct glex_imm_mp_req mp = {.rmt_ep_addr = to->addr, .data = "intr", .len = 4, .flag = flag};
	struct glex_imm_rdma_req imm = {.rmt_ep_addr = to->addr, .data = "intr", .len = 4, .flag = flag};
	struct glex_rdma_req rdma =
		rdma_between(side, to, op == OP_GET ? GLEX_RDMA_TYPE_GET : GLEX_RDMA_TYPE_PUT, 0, 64);

	imm.rmt_mh = to->mh;
	imm.rmt_key = to->key;
	imm.rmt_evt.cookie_1 = rdma.rmt_evt.cookie_1 = rdma.local_evt.cookie_1 = 1;
	rdma.flag = flag;
	switch (op) {
	case OP_MP:
		OK(glex_send_imm_mp(side->ep, &mp, NULL));
		return;
	case OP_IMM:
		post_imm(side->ep, &imm);
		return;
	default:
		post_rdma(side->ep, &rdma);
	}
}

static void interrupt_once(int fd, void *arg)
{
	int i = *(int *)arg;
	struct side side;
	struct card card;

	side_open(&side, type_of(i / OPS), 4096, is_mapped(i / OPS));
	card = swap_cards(&side, fd);
	meet(fd);
	post(&side, &card, i % OPS, 0); /* without the flag: no interrupt */
	rdma_done(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 8);
	meet(fd);
	meet(fd);
	post(&side, &card, i % OPS, GLEX_FLAG_REMOTE_INTR);
	meet(fd);
	expect_no_error(side.ep);
	side_close(&side);
}

START_TEST(remote_intr__any_request__descriptor_readable_once_and_source_told)
{
	struct peer peer = peer_start(interrupt_once, &_i);
	struct glex_intr list[8];
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 4096, is_mapped(_i / OPS));
	card = swap_cards(&side, peer.fd);
	ck_assert(!is_readable(fd_of(&side), 0));
	ck_assert_uint_eq(take_intrs(&side, list), 0);
	meet(peer.fd);
	meet(peer.fd);
	ck_assert(!is_readable(fd_of(&side), 0));
	meet(peer.fd);
	expect_intr(&side, GLEX_INTR_REMOTE, card.addr);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

START_TEST(local_intr__any_request__poster_is_interrupted_when_it_is_complete)
{
	struct side side, target;

	side_open(&side, type_of(_i / OPS), 4096, is_mapped(_i / OPS));
	side_open(&target, GLEX_EP_TYPE_FAST, 4096, false);
	ck_assert(!is_readable(fd_of(&target), 0));
	post(&side, &target.card, _i % OPS, GLEX_FLAG_LOCAL_INTR);
	expect_intr(&side, GLEX_INTR_LOCAL, target.card.addr);
	ck_assert(!is_readable(fd_of(&target), 0));
	side_close(&target);
	side_close(&side);
}
END_TEST

START_TEST(intr__to_oneself__both_flags_two_interrupts)
{
	struct glex_intr list[8];
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 4096, false);
	post(&side, &side.card, OP_PUT, GLEX_FLAG_LOCAL_INTR | GLEX_FLAG_REMOTE_INTR);
	ck_assert(is_readable(fd_of(&side), 0));
	ck_assert_uint_eq(take_intrs(&side, list), 2);
	ck_assert_int_eq(list[0].cause, GLEX_INTR_REMOTE);
	ck_assert_int_eq(list[1].cause, GLEX_INTR_LOCAL);
	ck_assert(!is_readable(fd_of(&side), 0));
	side_close(&side);
}
END_TEST

START_TEST(intr__before_the_descriptor_was_asked_for__it_is_readable_at_once)
{
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	post(&side, &side.card, OP_MP, GLEX_FLAG_REMOTE_INTR);
	expect_intr(&side, GLEX_INTR_REMOTE, side.card.addr);
	side_close(&side);
}
END_TEST

START_TEST(intr__more_than_the_queue_holds__the_rest_is_counted_and_wakes_too)
{
	struct glex_intr list[100];
	uint32_t num = 100, lost = 7;
	struct side side;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	for (i = 0; i < 70; i++)
		post(&side, &side.card, OP_MP, GLEX_FLAG_REMOTE_INTR);
	ck_assert(is_readable(fd_of(&side), 0));
	OK(glex_ep_poll_intr(side.ep, &num, list, &lost));
	ck_assert_uint_eq(num, 64);
	ck_assert_uint_eq(lost, 6);
	for (i = 0; i < 64; i++)
		post(&side, &side.card, OP_MP, GLEX_FLAG_REMOTE_INTR);
	num = 100;
	OK(glex_ep_poll_intr(side.ep, &num, list, &lost));
	ck_assert_uint_eq(num, 64);
	post(&side, &side.card, OP_MP, GLEX_FLAG_REMOTE_INTR);
	ck_assert(is_readable(fd_of(&side), 0));
	side_close(&side);
}
END_TEST

START_TEST(poll_intr__wrong_arguments__invalid)
{
	struct glex_intr list[1];
	struct glex_bad_packet bad[1];
	uint32_t num = 1, none = 0, many = 4097;
	struct side side;
	int fd;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	RETURNS(glex_ep_fd(NULL, &fd), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_fd(side.ep, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_arm(NULL, GLEX_ARM_MP), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_arm(side.ep, 4), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_intr(NULL, &num, list, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_intr(side.ep, NULL, list, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_intr(side.ep, &num, NULL, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_intr(side.ep, &none, list, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_intr(side.ep, &many, list, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_bad_packet(NULL, &num, bad, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_bad_packet(side.ep, &none, bad, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_ep_poll_bad_packet(side.ep, &num, NULL, NULL), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

START_TEST(fd__epoll_with_several_endpoints__tells_which_one)
{
	struct epoll_event event = {.events = EPOLLIN}, got[4];
	struct side side[3];
	int epoll = epoll_create1(EPOLL_CLOEXEC), i;

	ck_assert_int_ge(epoll, 0);
	for (i = 0; i < 3; i++) {
		side_open(&side[i], GLEX_EP_TYPE_FAST, 64, false);
		event.data.u32 = (uint32_t)i;
		ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, fd_of(&side[i]), &event), 0);
	}
	ck_assert_int_eq(epoll_wait(epoll, got, 4, 0), 0);
	post(&side[0], &side[2].card, OP_IMM, GLEX_FLAG_REMOTE_INTR);
	ck_assert_int_eq(epoll_wait(epoll, got, 4, WAIT_MS), 1);
	ck_assert_uint_eq(got[0].data.u32, 2);
	expect_intr(&side[2], GLEX_INTR_REMOTE, side[0].card.addr);
	ck_assert_int_eq(epoll_wait(epoll, got, 4, 0), 0);
	for (i = 0; i < 3; i++)
		side_close(&side[i]);
	close(epoll);
}
END_TEST

/* ---- arming -------------------------------------------------------------------------------------- */

static void clear(const struct side *side)
{
	struct glex_intr list[8];

	ck_assert_uint_eq(take_intrs(side, list), 0);
	ck_assert(!is_readable(fd_of(side), 0));
}

START_TEST(arm__mps_arrive__readable_for_the_first_only)
{
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	send_mp(&side, side.card.addr, "not armed", 9);
	ck_assert(!is_readable(fd_of(&side), 0));
	expect_mp(side.ep, "not armed", 9);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	ck_assert(!is_readable(fd_of(&side), 0));
	send_mp(&side, side.card.addr, "one", 3);
	ck_assert(is_readable(fd_of(&side), 0));
	clear(&side);
	send_mp(&side, side.card.addr, "two", 3);
	ck_assert(!is_readable(fd_of(&side), 0));
	RETURNS(glex_ep_arm(side.ep, GLEX_ARM_MP), GLEX_BUSY);
	expect_mp(side.ep, "one", 3);
	RETURNS(glex_ep_arm(side.ep, GLEX_ARM_MP), GLEX_BUSY);
	expect_mp(side.ep, "two", 3);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	OK(glex_ep_arm(side.ep, 0));
	send_mp(&side, side.card.addr, "three", 5);
	ck_assert(!is_readable(fd_of(&side), 0));
	side_close(&side);
}
END_TEST

START_TEST(arm__for_the_other_queue__does_not_wake_and_stays_armed)
{
	uint32_t what = _i ? GLEX_ARM_EVENT : GLEX_ARM_MP;
	int own = _i ? OP_IMM : OP_MP, other = _i ? OP_MP : OP_IMM;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	OK(glex_ep_arm(side.ep, what));
	post(&side, &side.card, other, GLEX_FLAG_REMOTE_EVT * (other == OP_IMM));
	ck_assert(!is_readable(fd_of(&side), 0));
	post(&side, &side.card, own, GLEX_FLAG_REMOTE_EVT * (own == OP_IMM));
	ck_assert(is_readable(fd_of(&side), 0));
	clear(&side);
	side_close(&side);
}
END_TEST

START_TEST(arm__both__either_wakes)
{
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP | GLEX_ARM_EVENT));
	post(&side, &side.card, _i ? OP_MP : OP_IMM, _i ? 0 : GLEX_FLAG_REMOTE_EVT);
	ck_assert(is_readable(fd_of(&side), 0));
	side_close(&side);
}
END_TEST

START_TEST(arm__probed_but_not_discarded__counts_as_taken)
{
	glex_event_t *event;
	struct side side;
	uint32_t len;
	void *data;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	send_mp(&side, side.card.addr, "x", 1);
	post(&side, &side.card, OP_IMM, GLEX_FLAG_REMOTE_EVT);
	OK(glex_probe_first_mp(side.ep, 0, NULL, &data, &len));
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	RETURNS(glex_ep_arm(side.ep, GLEX_ARM_EVENT), GLEX_BUSY);
	OK(glex_probe_first_event(side.ep, 0, &event));
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP | GLEX_ARM_EVENT));
	side_close(&side);
}
END_TEST

/* ---- nothing is missed ----------------------------------------------------------------------------- */

#define MESSAGES 100000u

struct flood {
	int kind;
	bool by_event;
};

static void nap_sometimes(unsigned *seed)
{
	unsigned dice = (unsigned)rand_r(seed) % 1000;

	if (dice == 0)
		usleep(200);
	else if (dice < 20)
		sched_yield();
	else if (dice < 200)
		for (volatile unsigned n = (unsigned)rand_r(seed) % 2000; n > 0; n--)
			;
}

static void flood(int fd, void *arg)
{
	const struct flood *how = arg;
	unsigned seed = (unsigned)getpid();
	struct glex_imm_rdma_req req = {.flag = GLEX_FLAG_REMOTE_EVT};
	struct side side;
	struct card card;
	uint32_t n, credit = 0, done;

	side_open(&side, type_of(how->kind), 64, false);
	card = swap_cards(&side, fd);
	req.rmt_ep_addr = card.addr;
	req.rmt_mh = card.mh;
	req.rmt_key = card.key;
	for (n = 0; n < MESSAGES; n++) {
		req.rmt_evt.cookie_0 = n;
		req.rmt_evt.cookie_1 = n + 1;
		if (how->by_event)
			post_imm(side.ep, &req);
		else
			send_mp(&side, card.addr, &n, sizeof(n));
		if (n - credit >= 1000) {
			hear(fd, &done, sizeof(done));
			credit = done;
		}
		nap_sometimes(&seed);
	}
	expect_no_error(side.ep);
	say(fd, "x", 1);
	while (recv(fd, &done, sizeof(done), 0) > 0)
		;
	side_close(&side);
}

/* Takes all there is; how many. */
static uint32_t drain(struct side *side, bool by_event, uint32_t from)
{
	glex_event_t *event;
	uint32_t n = from, got, len;

	if (by_event) {
		while (glex_probe_first_event(side->ep, 0, &event) == GLEX_SUCCESS) {
			if (event->cookie_0 != n)
				ck_abort_msg("event %u is not in its place", n);
			OK(glex_discard_probed_event(side->ep));
			n++;
		}
		return n;
	}
	while (glex_receive_mp(side->ep, 0, NULL, &got, &len) == GLEX_SUCCESS) {
		if (got != n)
			ck_abort_msg("MP %u is not in its place", n);
		n++;
	}
	return n;
}

START_TEST(arm__100000_messages_with_pauses__none_missed_and_no_busy_loop)
{
	struct flood how = {.kind = _i / 2 ? NORMAL_PRIVATE : FAST_PRIVATE, .by_event = _i % 2};
	struct peer peer = peer_start(flood, &how);
	uint32_t n = 0, wakes = 0, told = 0;
	struct glex_intr list[8];
	struct side side;
	glex_ret_t ret;
	int fd;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	swap_cards(&side, peer.fd);
	fd = fd_of(&side);
	while (n < MESSAGES) {
		n = drain(&side, how.by_event, n);
		if (n - told >= 500) {
			told = n;
			say(peer.fd, &told, sizeof(told));
		}
		if (n == MESSAGES)
			break;
		ret = glex_ep_arm(side.ep, how.by_event ? GLEX_ARM_EVENT : GLEX_ARM_MP);
		if (ret == GLEX_BUSY)
			continue;
		OK(ret);
		ck_assert_msg(is_readable(fd, WAIT_MS), "a wake-up was missed behind message %u", n);
		take_intrs(&side, list);
		wakes++;
	}
	ck_assert_uint_le(wakes, MESSAGES); /* a message makes it readable once at most */
	shutdown(peer.fd, SHUT_WR);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

static void *arm_and_disarm(void *arg)
{
	struct side *side = arg;
	int i;

	for (i = 0; i < 3000; i++)
		glex_ep_arm(side->ep, i % 3 ? GLEX_ARM_MP | GLEX_ARM_EVENT : 0);
	return NULL;
}

START_TEST(arm__several_threads_while_messages_come__last_arming_counts)
{
	pthread_t thread[2];
	struct side side;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, arm_and_disarm, &side), 0);
	for (i = 0; i < 3000; i++)
		send_mp(&side, side.card.addr, &i, sizeof(i));
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 3000; i++)
		expect_mp(side.ep, &i, sizeof(i));
	clear(&side);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	send_mp(&side, side.card.addr, "x", 1);
	ck_assert(is_readable(fd_of(&side), 0));
	side_close(&side);
}
END_TEST

/* ---- ends ------------------------------------------------------------------------------------------ */

static void meet_and_wait(int fd, void *arg)
{
	struct side side;
	struct card card;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	card = swap_cards(&side, fd);
	if (*(int *)arg)
		send_mp(&side, card.addr, "hello", 5);
	meet(fd);
	meet(fd);
	side_close(&side);
	meet(fd);
}

START_TEST(peer__killed__interrupt_tells_its_address)
{
	struct peer peer = peer_start(meet_and_wait, &_i);
	struct side side, other;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	side_open(&other, GLEX_EP_TYPE_FAST, 64, false);
	fd_of(&side);
	card = swap_cards(&side, peer.fd);
	if (!_i)
		send_mp(&side, card.addr, "hello", 5);
	meet(peer.fd);
	ck_assert(!is_readable(fd_of(&side), 0));
	peer_kill(&peer);
	expect_intr(&side, GLEX_INTR_PEER_DEAD, card.addr);
	side_close(&other);
	side_close(&side);
}
END_TEST

START_TEST(peer__destroys_its_endpoint_or_never_talked__no_interrupt)
{
	int talks = _i;
	struct peer peer = peer_start(meet_and_wait, &talks);
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	fd_of(&side);
	swap_cards(&side, peer.fd);
	meet(peer.fd);
	if (talks) {
		meet(peer.fd);
		meet(peer.fd);
		peer_join(&peer);
	} else {
		peer_kill(&peer);
		RETURNS(glex_receive_mp(side.ep, 200, NULL, &talks, &(uint32_t){0}), GLEX_NO_MP);
	}
	ck_assert(!is_readable(fd_of(&side), 0));
	side_close(&side);
}
END_TEST

START_TEST(glexd__killed__descriptor_readable_and_calls_tell)
{
	struct glex_intr list[1];
	uint32_t num = 1;
	struct side side;
	char name[128];
	pid_t glexd;
	int fd;

	own_job("intr-dead");
	raw_name(name, sizeof(name));
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	fd = fd_of(&side);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	ck_assert(!is_readable(fd, 0));
	glexd = raw_glexd_pid(name);
	ck_assert_int_gt(glexd, 0);
	ck_assert_int_eq(kill(glexd, SIGKILL), 0);
	ck_assert(is_readable(fd, WAIT_MS));
	RETURNS(glex_ep_poll_intr(side.ep, &num, list, NULL), GLEX_SYS_ERR);
	RETURNS(glex_ep_arm(side.ep, GLEX_ARM_MP), GLEX_SYS_ERR);
	RETURNS(glex_ep_fd(side.ep, &fd), GLEX_SYS_ERR);
}
END_TEST

static int count_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void use_descriptors(int fd, void *arg)
{
	struct glex_intr list[8];
	struct side side;
	struct card card;
	int before, i;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	before = count_fds();
	for (i = 0; i < 20; i++) {
		card = swap_cards(&side, fd);
		post(&side, &card, OP_MP, GLEX_FLAG_REMOTE_INTR);
		meet(fd);
		meet(fd);
		post(&side, &card, OP_MP, GLEX_FLAG_REMOTE_INTR); /* it is closed, armed as it was */
		meet(fd);
	}
	take_intrs(&side, list);
	ck_assert_int_le(count_fds(), before + 2);
	meet(fd);
	side_close(&side);
}

START_TEST(endpoint__destroyed_while_armed__no_descriptor_stays_here_or_there)
{
	struct peer peer = peer_start(use_descriptors, NULL);
	struct side keep, side;
	struct card card;
	int before = 0, i;

	side_open(&keep, GLEX_EP_TYPE_FAST, 64, false);
	for (i = 0; i < 20; i++) {
		struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = 5, .key = 1};

		side_open_as(&side, &attr, 64, false);
		fd_of(&side);
		card = swap_cards(&side, peer.fd);
		meet(peer.fd);
		expect_intr(&side, GLEX_INTR_REMOTE, card.addr);
		expect_mp(side.ep, "intr", 4);
		OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
		side_close(&side);
		meet(peer.fd);
		meet(peer.fd);
		if (i == 0)
			before = count_fds();
	}
	ck_assert_int_eq(count_fds(), before);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&keep);
}
END_TEST

START_TEST(child__of_a_fork__is_refused_and_does_not_disturb_the_parent)
{
	struct glex_intr list[1];
	uint32_t num = 1;
	struct side side;
	int fd, status;
	pid_t child;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	post(&side, &side.card, OP_MP, GLEX_FLAG_REMOTE_INTR);
	fd = fd_of(&side);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		bool refused = glex_ep_fd(side.ep, &fd) == GLEX_SYS_ERR &&
			       glex_ep_arm(side.ep, GLEX_ARM_MP) == GLEX_SYS_ERR &&
			       glex_ep_poll_intr(side.ep, &num, list, NULL) == GLEX_SYS_ERR;

		_exit(refused ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
	expect_mp(side.ep, "intr", 4);
	expect_intr(&side, GLEX_INTR_REMOTE, side.card.addr);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	send_mp(&side, side.card.addr, "x", 1);
	ck_assert(is_readable(fd, 0));
	side_close(&side);
}
END_TEST

/* ---- no descriptors left ---------------------------------------------------------------------------- */

/* Takes all; two of them, to give back, into *a_p and *b_p. */
static void take_descriptors(int *a_p, int *b_p)
{
	struct rlimit few;
	int fd;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
	few.rlim_cur = 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) >= 0) {
		*a_p = *b_p;
		*b_p = fd;
	}
}

static void raise_limit(void)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(fd__process_without_descriptors__refused_and_works_later)
{
	struct side side;
	int a = -1, b = -1, fd;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	take_descriptors(&a, &b);
	RETURNS(glex_ep_fd(side.ep, &fd), GLEX_NO_EP_RESOURCE);
	close(a); /* the eventfd finds room, the other one does not */
	RETURNS(glex_ep_fd(side.ep, &fd), GLEX_NO_EP_RESOURCE);
	RETURNS(glex_ep_arm(side.ep, GLEX_ARM_MP), GLEX_NO_EP_RESOURCE);
	close(b);
	post(&side, &side.card, OP_MP, GLEX_FLAG_REMOTE_INTR);
	expect_intr(&side, GLEX_INTR_REMOTE, side.card.addr);
	side_close(&side);
}
END_TEST

static void interrupt_without_descriptors(int fd, void *arg)
{
	struct side side;
	struct card card;
	int a, b = -1;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	card = swap_cards(&side, fd);
	send_mp(&side, card.addr, "view", 4); /* its port is known */
	take_descriptors(&a, &b);
	meet(fd);
	post(&side, &card, OP_MP, GLEX_FLAG_REMOTE_INTR);
	meet(fd);
	send_mp(&side, card.addr, "armed", 5);
	meet(fd);
	raise_limit();
	side_close(&side);
}

START_TEST(intr__sender_without_descriptors__arrives_all_the_same)
{
	struct peer peer = peer_start(interrupt_without_descriptors, NULL);
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	fd_of(&side);
	card = swap_cards(&side, peer.fd);
	meet(peer.fd);
	expect_mp(side.ep, "view", 4);
	expect_intr(&side, GLEX_INTR_REMOTE, card.addr);
	expect_mp(side.ep, "intr", 4);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	meet(peer.fd);
	ck_assert(is_readable(fd_of(&side), WAIT_MS));
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("intr");
	TCase *tc = tcase_create("intr");

	own_job("intr");
	tcase_add_loop_test(tc, remote_intr__any_request__descriptor_readable_once_and_source_told, 0, KINDS * OPS);
	tcase_add_loop_test(tc, local_intr__any_request__poster_is_interrupted_when_it_is_complete, 0, KINDS * OPS);
	tcase_add_test(tc, intr__to_oneself__both_flags_two_interrupts);
	tcase_add_test(tc, intr__before_the_descriptor_was_asked_for__it_is_readable_at_once);
	tcase_add_test(tc, intr__more_than_the_queue_holds__the_rest_is_counted_and_wakes_too);
	tcase_add_test(tc, poll_intr__wrong_arguments__invalid);
	tcase_add_test(tc, fd__epoll_with_several_endpoints__tells_which_one);
	tcase_add_test(tc, arm__mps_arrive__readable_for_the_first_only);
	tcase_add_loop_test(tc, arm__for_the_other_queue__does_not_wake_and_stays_armed, 0, 2);
	tcase_add_loop_test(tc, arm__both__either_wakes, 0, 2);
	tcase_add_test(tc, arm__probed_but_not_discarded__counts_as_taken);
	tcase_add_loop_test(tc, arm__100000_messages_with_pauses__none_missed_and_no_busy_loop, 0, 4);
	tcase_add_test(tc, arm__several_threads_while_messages_come__last_arming_counts);
	tcase_add_loop_test(tc, peer__killed__interrupt_tells_its_address, 0, 2);
	tcase_add_loop_test(tc, peer__destroys_its_endpoint_or_never_talked__no_interrupt, 0, 2);
	tcase_add_test(tc, glexd__killed__descriptor_readable_and_calls_tell);
	tcase_add_test(tc, endpoint__destroyed_while_armed__no_descriptor_stays_here_or_there);
	tcase_add_test(tc, child__of_a_fork__is_refused_and_does_not_disturb_the_parent);
	tcase_add_test(tc, fd__process_without_descriptors__refused_and_works_later);
	tcase_add_test(tc, intr__sender_without_descriptors__arrives_all_the_same);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
