/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_error.c - keys, bounds and handles; every status that a request can
 * come to nothing with; how errors are told.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/seccomp.h"
#include "test/lib/side.h"

#define BOTH_EVENTS (GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT)

static void none(struct side *side)
{
	glex_event_t *event;

	RETURNS(glex_probe_first_event(side->ep, 0, &event), GLEX_NO_EVENT);
}

/* ---- keys -------------------------------------------------------------------------------------- */

START_TEST(key__macros__keep_what_they_promise)
{
	ck_assert_uint_eq(GLEX_EP_MAKE_KEY(0), 0);
	ck_assert_uint_eq(GLEX_EP_MAKE_KEY(12345), 12345);
	ck_assert_uint_eq(GLEX_EP_MAKE_KEY(12345), GLEX_EP_MAKE_KEY(12345));
	ck_assert_uint_ne(GLEX_EP_MAKE_HC_UMMT_KEY(5), GLEX_EP_MAKE_HC_UMMT_KEY(6));
	ck_assert_uint_ne(GLEX_EP_MAKE_HC_UMMT_KEY(0), 0);
}
END_TEST

static const uint32_t keys[] = {0, 1, 0xaf, GLEX_EP_MAKE_KEY(0x12345678), 0x80000001u, UINT32_MAX};

START_TEST(key__that_of_the_target__honoured)
{
	struct glex_ep_attr attr = {.num = GLEX_ANY_EP_NUM, .key = GLEX_EP_MAKE_HC_UMMT_KEY(keys[_i])};
	struct side side;

	side_open_as(&side, &attr, 64, false);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	side_close(&side);
	attr.key = keys[_i];
	side_open_as(&side, &attr, 64, true);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_GET, 0, 64);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- wrong requests to a target that looks ------------------------------------------------------- */

/* long: one wrong request after the other, each on the same two sides */
static void wrong_requests(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct side side;
	struct card card;
	struct glex_rdma_req good, req;
	struct glex_imm_rdma_req imm = {.data = "wrong", .len = 5, .flag = GLEX_FLAG_REMOTE_EVT};
	struct glex_err_req err;

	side_open(&side, type_of(kind), 4096, is_mapped(kind));
	card = swap_cards(&side, fd);
	good = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 100);
	good.flag = BOTH_EVENTS;
	good.local_evt.cookie_1 = good.rmt_evt.cookie_1 = 1;

	req = good;
	req.rmt_key = card.key + 1;
	req.rmt_offset = 7;
	post_rdma(side.ep, &req);
	err = take_error(side.ep);
	ck_assert_int_eq(err.op, GLEX_ERR_OP_RDMA_PUT);
	ck_assert_int_eq(err.status, GLEX_ERR_STATUS_MMT);
	ck_assert_uint_eq(err.rmt_nic_id, card.addr.nic_id);
	ck_assert_uint_eq(err.rmt_ep_num, card.addr.ep_num);
	ck_assert_uint_eq(err.data0, card.mh.v);
	ck_assert_uint_eq(err.data1, 7);
	ck_assert_uint_eq(err.data2, 100);
	req.type = GLEX_RDMA_TYPE_GET;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_MMT);

	req = good;
	req.rmt_offset = 3997; /* one byte beyond */
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_MMT);
	req.rmt_offset = UINT32_MAX;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_MMT);

	req = good;
	req.rmt_mh.v = 0;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_ATT);
	req.rmt_mh.v = UINT64_MAX;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_ATT);
	req.rmt_mh.v = card.mh.v ^ (UINT64_C(1) << 33);
	req.type = GLEX_RDMA_TYPE_GET;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_ATT);

	imm.rmt_ep_addr = card.addr;
	imm.rmt_mh = card.mh;
	imm.rmt_key = card.key ^ 1;
	imm.rmt_evt.cookie_1 = 1;
	post_imm(side.ep, &imm);
	expect_error(side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, GLEX_ERR_STATUS_MMT);
	imm.rmt_key = card.key;
	imm.rmt_offset = 4092;
	post_imm(side.ep, &imm);
	expect_error(side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, GLEX_ERR_STATUS_MMT);
	imm.rmt_mh.v = 1;
	post_imm(side.ep, &imm);
	expect_error(side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, GLEX_ERR_STATUS_ATT);

	none(&side);
	/* and the endpoint is as good as before */
	rdma_done(&side, &card, GLEX_RDMA_TYPE_PUT, 4000, 96);
	expect_no_error(side.ep);
	meet(fd);
	side_close(&side);
}

/* ---- wrong after many that were right ------------------------------------------------------------- */

enum turn { WRONG_KEY, BEYOND_REMOTE, BEYOND_LOCAL, WRONG_WAY, REMOTE_GONE, LOCAL_GONE, ENDPOINT_GONE, TURNS };

struct beaten {
	struct side side;
	glex_ep_handle_t to;	 /* another endpoint of this process, */
	glex_mem_handle_t mh;	 /* which may be written, */
	unsigned char mem[1024]; /* here */
	struct glex_rdma_req req;
	struct glex_imm_rdma_req imm;
	uint64_t told, seen; /* events raised, and those that came */
};

/* The immediate PUT, and an event. */
static void beaten_tell(struct beaten *b)
{
	struct glex_imm_rdma_req req = b->imm;

	req.flag = GLEX_FLAG_REMOTE_EVT;
	req.rmt_evt.cookie_0 = ++b->told;
	req.rmt_evt.cookie_1 = 1;
	OK(glex_imm_rdma(b->side.ep, &req, NULL));
}

/* All that were told of have come, in order, and no other. */
static void beaten_hear(struct beaten *b, uint64_t last)
{
	glex_event_t *event;

	while (glex_probe_next_event(b->to, &event) == GLEX_SUCCESS)
		ck_assert_uint_eq(event->cookie_0, ++b->seen);
	ck_assert_uint_eq(b->seen, last);
	OK(glex_discard_probed_event(b->to));
}

static void beaten_open(struct beaten *b)
{
	struct glex_ep_attr attr = {.num = GLEX_ANY_EP_NUM, .key = 9};

	memset(b, 0, sizeof(*b));
	side_open(&b->side, GLEX_EP_TYPE_FAST, sizeof(b->mem), false);
	OK(glex_create_ep(b->side.dev, &attr, &b->to));
	OK(glex_register_mem(b->to, b->mem, sizeof(b->mem), GLEX_MEM_WRITE, &b->mh));
	b->req.local_mh = b->side.card.mh;
	b->req.rmt_mh = b->imm.rmt_mh = b->mh;
	b->req.rmt_key = b->imm.rmt_key = 9;
	b->req.len = 512;
	b->imm.len = 8;
	b->imm.data = "12345678";
	OK(glex_get_ep_addr(b->to, &b->req.rmt_ep_addr));
	b->imm.rmt_ep_addr = b->req.rmt_ep_addr;
}

static void beaten_turn(struct beaten *b, enum turn turn)
{
	switch (turn) {
	case WRONG_KEY:
		b->req.rmt_key = b->imm.rmt_key = 8;
		break;
	case BEYOND_REMOTE:
		b->req.rmt_offset = 513;
		b->imm.rmt_offset = 1017;
		break;
	case BEYOND_LOCAL:
		b->req.local_offset = 513;
		break;
	case WRONG_WAY:
		b->req.type = GLEX_RDMA_TYPE_GET;
		break;
	case REMOTE_GONE:
		OK(glex_deregister_mem(b->to, b->mh));
		break;
	case LOCAL_GONE:
		OK(glex_deregister_mem(b->side.ep, b->side.card.mh));
		break;
	default:
		OK(glex_destroy_ep(b->to));
		b->to = NULL;
		break;
	}
}

/* PUTs like the last one take a short way; what has changed since is seen there too. */
START_TEST(request__wrong_after_many_like_it__error_and_no_data)
{
	static const int status[] = {GLEX_ERR_STATUS_MMT,	  GLEX_ERR_STATUS_MMT, 0,
				     GLEX_ERR_STATUS_MMT,	  GLEX_ERR_STATUS_ATT, 0,
				     GLEX_ERR_STATUS_DEST_VP_STOP};
	bool here = _i == BEYOND_LOCAL || _i == LOCAL_GONE;
	struct beaten b;

	beaten_open(&b);
	for (int i = 0; i < 5; i++) {
		OK(glex_rdma(b.side.ep, &b.req, NULL));
		OK(glex_imm_rdma(b.side.ep, &b.imm, NULL));
		OK(glex_inject(b.side.ep, &b.imm));
		beaten_tell(&b);
	}
	beaten_hear(&b, 5);
	ck_assert_mem_eq(b.mem, "12345678", 8);
	memset(b.mem, 0xee, sizeof(b.mem));
	beaten_turn(&b, (enum turn)_i);
	RETURNS(glex_rdma(b.side.ep, &b.req, NULL), here ? GLEX_INVALID_PARAM : GLEX_SUCCESS);
	if (!here)
		expect_error(b.side.ep, _i == WRONG_WAY ? GLEX_ERR_OP_RDMA_GET : GLEX_ERR_OP_RDMA_PUT,
			     (enum glex_err_req_status)status[_i]);
	if (!here && _i != WRONG_WAY) {
		OK(glex_imm_rdma(b.side.ep, &b.imm, NULL));
		expect_error(b.side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, (enum glex_err_req_status)status[_i]);
		OK(glex_inject(b.side.ep, &b.imm));
		expect_error(b.side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, (enum glex_err_req_status)status[_i]);
		beaten_tell(&b);
		expect_error(b.side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, (enum glex_err_req_status)status[_i]);
	}
	if (b.to)
		beaten_hear(&b, 5);
	for (size_t i = 0; i < sizeof(b.mem); i++)
		ck_assert_uint_eq(b.mem[i], 0xee);
	if (b.to)
		OK(glex_destroy_ep(b.to));
	if (_i == LOCAL_GONE) /* side_close gives it back */
		OK(glex_register_mem(b.side.ep, b.side.buf, sizeof(b.mem), GLEX_MEM_READ, &b.side.card.mh));
	side_close(&b.side);
}
END_TEST

START_TEST(request__wrong_key_bounds_or_handle__error_no_data_no_events)
{
	struct peer peer = peer_start(wrong_requests, &_i);
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 4096, is_mapped(_i));
	fill(side.buf, 4000, 6);
	swap_cards(&side, peer.fd);
	meet(peer.fd);
	expect_filled(side.buf, 4000, 6);
	none(&side);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- endpoints that are not there ------------------------------------------------------------------ */

START_TEST(request__no_such_endpoint__dest_vp_stop)
{
	struct side side;
	struct glex_rdma_req req;
	glex_ep_addr_t nowhere[4];
	int i;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	for (i = 0; i < 4; i++)
		nowhere[i] = side.card.addr;
	nowhere[0].ep_num = 39;
	nowhere[1].ep_num = 65535;
	nowhere[2].nic_id = 4711;
	nowhere[3].nic_id = UINT32_MAX;
	for (i = 0; i < 4; i++) {
		send_mp(&side, nowhere[i], "x", 1);
		expect_error(side.ep, GLEX_ERR_OP_IMM_MP, GLEX_ERR_STATUS_DEST_VP_STOP);
		req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_GET, 0, 8);
		req.rmt_ep_addr = nowhere[i];
		post_rdma(side.ep, &req);
		expect_error(side.ep, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_DEST_VP_STOP);
	}
	side_close(&side);
}
END_TEST

static void come_go_and_come_again(int fd, void *arg)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = 3};
	struct side side;

	(void)arg;
	side_open_as(&side, &attr, 0, false);
	swap_cards(&side, fd);
	meet(fd);
	OK(glex_destroy_ep(side.ep));
	meet(fd);
	meet(fd);
	OK(glex_create_ep(side.dev, &attr, &side.ep));
	meet(fd);
	expect_mp(side.ep, "new", 3);
	meet(fd);
	side_close(&side);
}

START_TEST(request__endpoint_destroyed__dest_vp_stop_until_the_number_has_a_new_owner)
{
	struct peer peer = peer_start(come_go_and_come_again, NULL);
	struct side side;
	struct card card;

	side_open(&side, type_of(_i), 64, is_mapped(_i));
	card = swap_cards(&side, peer.fd);
	send_mp(&side, card.addr, "lost with it", 12);
	meet(peer.fd);
	meet(peer.fd);
	send_mp(&side, card.addr, "x", 1);
	expect_error(side.ep, GLEX_ERR_OP_IMM_MP, GLEX_ERR_STATUS_DEST_VP_STOP);
	meet(peer.fd);
	meet(peer.fd);
	send_mp(&side, card.addr, "new", 3);
	meet(peer.fd);
	peer_join(&peer);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- a target that is dead while glexd does not know it ---------------------------------------------- */

static void wait_for_death(int fd, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 4096, false);
	swap_cards(&side, fd);
	meet(fd);
	pause();
}

START_TEST(request__target_process_dead__dest_host_dead)
{
	struct peer peer = peer_start(wait_for_death, NULL);
	struct glex_rdma_req req;
	struct side side;
	struct card card;

	side_open(&side, GLEX_EP_TYPE_FAST, 4096, _i);
	card = swap_cards(&side, peer.fd);
	rdma_done(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	meet(peer.fd);
	glexd_stop();
	peer_kill(&peer);
	req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_DEST_HOST_DEAD);
	req.type = GLEX_RDMA_TYPE_GET;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_DEST_HOST_DEAD);
	glexd_go_on();
	side_close(&side);
}
END_TEST

/* ---- cross-memory attach forbidden --------------------------------------------------------------------- */

static void plain_target(int fd, void *arg)
{
	struct side side;
	void *shared;
	glex_mem_handle_t mh;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 4096, false);
	OK(glex_alloc(side.dev, 4096, &shared));
	OK(glex_register_mem(side.ep, shared, 4096, GLEX_MEM_READ | GLEX_MEM_WRITE, &mh));
	swap_cards(&side, fd);
	say(fd, &mh, sizeof(mh));
	meet(fd);
	expect_filled(shared, 4096, 2);
	OK(glex_deregister_mem(side.ep, mh));
	OK(glex_free(side.dev, shared));
	side_close(&side);
}

START_TEST(request__attach_forbidden__pcie_read_but_mapped_memory_works)
{
	struct glex_rdma_req req;
	struct peer peer;
	struct side side;
	struct card card;

	/* a glexd of its own: it is started by this process and inherits the filter */
	own_job("error-attach");
	setenv("GLEX_ADOPT", "never", 1); /* or private memory would be shared */
	ck_assert_int_eq(forbid_attach(), 0);
	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	peer = peer_start(plain_target, NULL);
	card = swap_cards(&side, peer.fd);
	req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	req.flag = BOTH_EVENTS;
	req.local_evt.cookie_1 = req.rmt_evt.cookie_1 = 1;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_PCIE_READ);
	req.type = GLEX_RDMA_TYPE_GET;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_PCIE_READ);
	none(&side);
	hear(peer.fd, &card.mh, sizeof(card.mh));
	fill(side.buf, 4096, 2);
	if (_i != NORMAL_PRIVATE) { /* there glexd would have to read our memory */
		rdma_done(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 4096);
		rdma_done(&side, &card, GLEX_RDMA_TYPE_GET, 0, 4096);
		expect_no_error(side.ep);
		meet(peer.fd);
		peer_join(&peer);
	} else {
		peer_kill(&peer);
	}
	side_close(&side);
}
END_TEST

/* ---- glex_poll_error_req ------------------------------------------------------------------------------ */

static void fail_n(struct side *side, uint32_t n)
{
	glex_ep_addr_t nowhere = side->card.addr;
	uint32_t num;

	nowhere.ep_num = 39;
	while (n-- > 0)
		send_mp(side, nowhere, "xyz", n % 4);
	num = 0;
	UNTIL((num = 0, glex_poll_error_req(side->ep, &num, NULL)) == GLEX_SUCCESS && num > 0);
}

START_TEST(poll_error_req__nothing_pending__num_0_and_list_untouched)
{
	static const uint32_t nums[] = {0, 1, 16, 4096, 4097, 0xdeadbeef, UINT32_MAX};
	struct glex_err_req *wild = (void *)0x10;
	struct side side;
	uint32_t num;
	size_t i;

	side_open(&side, (enum glex_ep_type)_i, 64, false);
	for (i = 0; i < sizeof(nums) / sizeof(nums[0]); i++) {
		num = nums[i];
		OK(glex_poll_error_req(side.ep, &num, NULL));
		ck_assert_uint_eq(num, 0);
		num = nums[i];
		OK(glex_poll_error_req(side.ep, &num, wild));
		ck_assert_uint_eq(num, 0);
	}
	RETURNS(glex_poll_error_req(side.ep, NULL, wild), GLEX_INVALID_PARAM);
	RETURNS(glex_poll_error_req(NULL, &num, wild), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

START_TEST(poll_error_req__some_pending__counted_or_taken_as_asked)
{
	struct glex_err_req *wild = (void *)0x10, list[8];
	struct side side;
	uint32_t num, i;

	side_open(&side, (enum glex_ep_type)_i, 64, false);
	fail_n(&side, 7);
	UNTIL((num = 0, glex_poll_error_req(side.ep, &num, wild)) == GLEX_SUCCESS && num == 7);
	num = 0xdeadbeef;
	OK(glex_poll_error_req(side.ep, &num, wild));
	ck_assert_uint_eq(num, 7);
	num = 3;
	RETURNS(glex_poll_error_req(side.ep, &num, NULL), GLEX_INVALID_PARAM);
	memset(list, 0x5a, sizeof(list));
	num = 3;
	OK(glex_poll_error_req(side.ep, &num, list));
	ck_assert_uint_eq(num, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(list[i].op, GLEX_ERR_OP_IMM_MP);
		ck_assert_uint_eq(list[i].data0, (6 - i) % 4);
	}
	ck_assert_uint_eq(list[3].data0, UINT64_C(0x5a5a5a5a5a5a5a5a));
	num = 8;
	OK(glex_poll_error_req(side.ep, &num, list));
	ck_assert_uint_eq(num, 4);
	ck_assert_uint_eq(list[0].data0, 3);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

START_TEST(poll_error_req__hundreds_pending__oldest_kept_and_endpoint_works)
{
	static struct glex_err_req list[4096];
	struct side side;
	uint32_t num = 4096;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	fail_n(&side, 1000);
	OK(glex_poll_error_req(side.ep, &num, list));
	ck_assert_uint_ge(num, 256);
	ck_assert_uint_le(num, 1000);
	ck_assert_uint_eq(list[0].data0, 999 % 4);
	ck_assert_uint_eq(list[255].data0, (999 - 255) % 4);
	expect_no_error(side.ep);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	fail_n(&side, 1);
	take_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- stderr ------------------------------------------------------------------------------------------- */

static uint32_t lines_with(int fd, const char *text)
{
	char all[65536];
	ssize_t n = pread(fd, all, sizeof(all) - 1, 0);
	uint32_t count = 0;
	const char *at = all;

	ck_assert_int_ge(n, 0);
	all[n] = '\0';
	while ((at = strstr(at, text))) {
		count++;
		at++;
	}
	return count;
}

START_TEST(stderr__same_cause_many_times__one_line)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	glex_ep_addr_t elsewhere;
	struct side side;
	uint32_t i;

	ck_assert_int_ge(fd, 0);
	side_open(&side, (enum glex_ep_type)_i, 64, false);
	dup2(fd, STDERR_FILENO);
	for (i = 0; i < 50; i++)
		fail_n(&side, 4);
	elsewhere = side.card.addr;
	elsewhere.ep_num = 38;
	send_mp(&side, elsewhere, "x", 1);
	send_mp(&side, side.card.addr, "x", 1);
	expect_mp(side.ep, "x", 1);
	dup2(saved, STDERR_FILENO);
	ck_assert_uint_eq(lines_with(fd, " endpoint 39 came to nothing: status 7, the target endpoint does not exist; "
					 "its process has ended"),
			  1);
	ck_assert_uint_eq(lines_with(fd, " endpoint 38 came to nothing: status 7, the target endpoint does not exist; "
					 "its process has ended"),
			  1);
	ck_assert_uint_eq(lines_with(fd, "\n"), 2);
	side_close(&side);
}
END_TEST

START_TEST(stderr__quiet_endpoint__nothing_but_the_error_is_there)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	struct side side;
	uint32_t num = 0;

	ck_assert_int_ge(fd, 0);
	side_open(&side, (enum glex_ep_type)_i, 64, false);
	OK(glex_quiet_ep(side.ep));
	dup2(fd, STDERR_FILENO);
	fail_n(&side, 4);
	send_mp(&side, side.card.addr, "x", 1);
	expect_mp(side.ep, "x", 1);
	dup2(saved, STDERR_FILENO);
	ck_assert_uint_eq(lines_with(fd, "\n"), 0);
	OK(glex_poll_error_req(side.ep, &num, NULL));
	ck_assert_uint_eq(num, 4);
	side_close(&side);
}
END_TEST

START_TEST(stderr__normal_endpoint__line_comes_with_a_later_post)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	struct glex_rdma_req req;
	struct side side;

	ck_assert_int_ge(fd, 0);
	side_open(&side, GLEX_EP_TYPE_NORMAL, 64, false);
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	req.rmt_key++;
	dup2(fd, STDERR_FILENO);
	post_rdma(side.ep, &req);
	UNTIL(({
		uint32_t num = 0;

		OK(glex_poll_error_req(side.ep, &num, NULL));
		num == 1;
	}));
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	dup2(saved, STDERR_FILENO);
	ck_assert_uint_eq(lines_with(fd, "came to nothing: status 5, wrong key"), 1);
	side_close(&side);
}
END_TEST

START_TEST(stderr__nothing_wrong__stays_empty)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	struct side side;

	ck_assert_int_ge(fd, 0);
	dup2(fd, STDERR_FILENO);
	side_open(&side, type_of(_i), 64, is_mapped(_i));
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	RETURNS(glex_receive_mp(side.ep, 1, NULL, side.buf, &(uint32_t){0}), GLEX_NO_MP);
	side_close(&side);
	dup2(saved, STDERR_FILENO);
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), 0);
}
END_TEST

START_TEST(error_str__success__exactly_successful)
{
	ck_assert_str_eq(glex_error_str(GLEX_SUCCESS), "successful");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("error");
	TCase *tc = tcase_create("error");

	own_job("error");
	tcase_add_test(tc, key__macros__keep_what_they_promise);
	tcase_add_loop_test(tc, key__that_of_the_target__honoured, 0, 6);
	tcase_add_loop_test(tc, request__wrong_key_bounds_or_handle__error_no_data_no_events, 0, KINDS);
	tcase_add_loop_test(tc, request__wrong_after_many_like_it__error_and_no_data, 0, TURNS);
	tcase_add_loop_test(tc, request__no_such_endpoint__dest_vp_stop, 0, KINDS);
	tcase_add_loop_test(tc, request__endpoint_destroyed__dest_vp_stop_until_the_number_has_a_new_owner, 0, KINDS);
	tcase_add_loop_test(tc, request__target_process_dead__dest_host_dead, 0, 2);
	tcase_add_loop_test(tc, request__attach_forbidden__pcie_read_but_mapped_memory_works, 0, KINDS);
	tcase_add_loop_test(tc, poll_error_req__nothing_pending__num_0_and_list_untouched, 0, 3);
	tcase_add_loop_test(tc, poll_error_req__some_pending__counted_or_taken_as_asked, 0, 3);
	tcase_add_test(tc, poll_error_req__hundreds_pending__oldest_kept_and_endpoint_works);
	tcase_add_loop_test(tc, stderr__same_cause_many_times__one_line, 0, 3);
	tcase_add_loop_test(tc, stderr__quiet_endpoint__nothing_but_the_error_is_there, 0, 3);
	tcase_add_test(tc, stderr__normal_endpoint__line_comes_with_a_later_post);
	tcase_add_loop_test(tc, stderr__nothing_wrong__stays_empty, 0, KINDS);
	tcase_add_test(tc, error_str__success__exactly_successful);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
