/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_bad_packet.c - the error-packet queue: what a target is told of
 * packets that it would not have; and queues of interrupts and bad packets whose
 * writer died in the middle.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator/nic/vport.h"
#include "test/lib/raw.h"
#include "test/lib/side.h"

static struct glex_bad_packet take_bad(const struct side *side)
{
	struct glex_bad_packet bad[4];
	uint32_t num;

	UNTIL((num = 4, glex_ep_poll_bad_packet(side->ep, &num, bad, NULL)) == GLEX_SUCCESS && num > 0);
	ck_assert_uint_eq(num, 1);
	ck_assert_uint_eq(bad[0].field_mask, GLEX_BAD_PACKET_FIELDS);
	return bad[0];
}

static void expect_none(const struct side *side)
{
	struct glex_bad_packet bad[4];
	uint32_t num = 4;

	OK(glex_ep_poll_bad_packet(side->ep, &num, bad, NULL));
	ck_assert_uint_eq(num, 0);
}

static bool is_readable(const struct side *side, int ms)
{
	struct pollfd in = {.fd = -1, .events = POLLIN};

	OK(glex_ep_fd(side->ep, &in.fd));
	return poll(&in, 1, ms) == 1;
}

static void expect_intr(const struct side *side, enum glex_intr_cause cause, glex_ep_addr_t peer)
{
	struct glex_intr list[4];
	uint32_t num = 4;

	ck_assert(is_readable(side, WAIT_MS));
	OK(glex_ep_poll_intr(side->ep, &num, list, NULL));
	ck_assert_uint_eq(num, 1);
	ck_assert_int_eq(list[0].cause, cause);
	ck_assert_uint_eq(list[0].peer.v, peer.v);
}

/* ---- each rule of a region ------------------------------------------------------------------------- */

enum { WRONG_HANDLE, GONE_HANDLE, WRONG_ENDPOINT, OFFSET, END, KEY, ACCESS, RULES };

static const enum glex_bad_cause causes[] = {
	[WRONG_HANDLE] = GLEX_BAD_HANDLE, [GONE_HANDLE] = GLEX_BAD_HANDLE, [WRONG_ENDPOINT] = GLEX_BAD_ENDPOINT,
	[OFFSET] = GLEX_BAD_BOUNDS,	  [END] = GLEX_BAD_BOUNDS,	   [KEY] = GLEX_BAD_KEY,
	[ACCESS] = GLEX_BAD_ACCESS,
};

/* Breaks the rule in *req, a sound request from side to target. */
static void break_rule(int rule, struct side *target, struct side *other, struct glex_rdma_req *req)
{
	static unsigned char memory[64];
	int32_t only = req->type == GLEX_RDMA_TYPE_PUT ? GLEX_MEM_READ : GLEX_MEM_WRITE;

	switch (rule) {
	case WRONG_HANDLE:
		req->rmt_mh.v ^= UINT64_C(1) << 40;
		return;
	case GONE_HANDLE:
		OK(glex_register_mem(target->ep, memory, sizeof(memory), GLEX_MEM_READ | GLEX_MEM_WRITE, &req->rmt_mh));
		OK(glex_deregister_mem(target->ep, req->rmt_mh));
		return;
	case WRONG_ENDPOINT:
		req->rmt_mh = other->card.mh;
		return;
	case OFFSET:
		req->rmt_offset = 4097;
		return;
	case END:
		req->rmt_offset = 4096 - 63;
		return;
	case KEY:
		req->rmt_key++;
		return;
	default:
		OK(glex_register_mem(target->ep, memory, sizeof(memory), only, &req->rmt_mh));
	}
}

START_TEST(rdma__breaks_a_rule__target_learns_source_cause_and_region)
{
	int kind = _i % KINDS, rule = _i / KINDS % RULES;
	bool get = _i / KINDS / RULES;
	struct side side, target, other;
	struct glex_bad_packet bad;
	struct glex_rdma_req req;

	side_open(&side, type_of(kind), 4096, is_mapped(kind));
	side_open(&target, GLEX_EP_TYPE_FAST, 4096, is_mapped(kind));
	side_open(&other, GLEX_EP_TYPE_FAST, 4096, false);
	req = rdma_between(&side, &target.card, get ? GLEX_RDMA_TYPE_GET : GLEX_RDMA_TYPE_PUT, 0, 64);
	break_rule(rule, &target, &other, &req);
	post_rdma(side.ep, &req);
	bad = take_bad(&target);
	ck_assert_uint_eq(bad.src.v, side.card.addr.v);
	ck_assert_int_eq(bad.op, get ? GLEX_ERR_OP_RDMA_GET : GLEX_ERR_OP_RDMA_PUT);
	ck_assert_int_eq(bad.cause, causes[rule]);
	ck_assert_uint_eq(bad.mh.v, req.rmt_mh.v);
	ck_assert_uint_eq(bad.offset, req.rmt_offset);
	ck_assert_uint_eq(bad.len, 64);
	ck_assert_uint_eq(bad.key, req.rmt_key);
	expect_intr(&target, GLEX_INTR_BAD_PACKET, side.card.addr);
	expect_intr(&side, GLEX_INTR_ERROR, target.card.addr);
	expect_none(&target);
	expect_none(&side);
	side_close(&other);
	side_close(&target);
	side_close(&side);
}
END_TEST

START_TEST(imm_put__wrong_key__target_learns_it)
{
	struct glex_imm_rdma_req req = {.data = "x", .len = 1};
	struct side side, target;
	struct glex_bad_packet bad;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	side_open(&target, GLEX_EP_TYPE_FAST, 64, false);
	req.rmt_ep_addr = target.card.addr;
	req.rmt_mh = target.card.mh;
	req.rmt_key = target.card.key + 1;
	post_imm(side.ep, &req);
	bad = take_bad(&target);
	ck_assert_int_eq(bad.op, GLEX_ERR_OP_IMM_RDMA_PUT);
	ck_assert_int_eq(bad.cause, GLEX_BAD_KEY);
	side_close(&target);
	side_close(&side);
}
END_TEST

START_TEST(request__sound__is_no_bad_packet)
{
	struct side side;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_GET, 0, 64);
	expect_none(&side);
	ck_assert(!is_readable(&side, 0));
	side_close(&side);
}
END_TEST

/* ---- full queues ------------------------------------------------------------------------------------ */

static void open_small(struct side *side)
{
	struct glex_ep_attr attr = {.num = GLEX_ANY_EP_NUM, .key = 3, .mpq_capacity = 2, .eq_capacity = 2};

	side_open_as(side, &attr, 64, false);
}

START_TEST(mp__target_queue_full__target_learns_what_it_lost)
{
	struct side side, target;
	struct glex_bad_packet bad;
	int i;

	side_open(&side, type_of(_i), 64, false);
	open_small(&target);
	for (i = 0; i < 3; i++)
		send_mp(&side, target.card.addr, "full", 4);
	bad = take_bad(&target);
	ck_assert_int_eq(bad.op, GLEX_ERR_OP_IMM_MP);
	ck_assert_int_eq(bad.cause, GLEX_BAD_MPQ_FULL);
	ck_assert_uint_eq(bad.src.v, side.card.addr.v);
	ck_assert_uint_eq(bad.len, 4);
	ck_assert_uint_eq(bad.mh.v, 0);
	side_close(&target);
	side_close(&side);
}
END_TEST

START_TEST(put__event_queue_full__only_that_of_the_target_counts)
{
	struct side side, target;
	struct glex_rdma_req req;
	int i;

	open_small(&side);
	open_small(&target);
	req = rdma_between(&side, &target.card, GLEX_RDMA_TYPE_PUT, 0, 64);
	req.local_evt.cookie_1 = req.rmt_evt.cookie_1 = 1;
	req.flag = _i ? GLEX_FLAG_REMOTE_EVT : GLEX_FLAG_LOCAL_EVT;
	for (i = 0; i < 3; i++)
		post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_DEST_EQ_FULL);
	if (_i)
		ck_assert_int_eq(take_bad(&target).cause, GLEX_BAD_EQ_FULL);
	expect_none(&target);
	side_close(&target);
	side_close(&side);
}
END_TEST

START_TEST(bad_packets__more_than_the_queue_holds__are_counted)
{
	struct glex_bad_packet bad[100];
	struct side side, target;
	uint32_t num = 100, lost;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	open_small(&target);
	for (i = 0; i < 2 + 16 + 5; i++) /* an MPQ of two entries */
		send_mp(&side, target.card.addr, &i, sizeof(i));
	OK(glex_ep_poll_bad_packet(target.ep, &num, bad, &lost));
	ck_assert_uint_eq(num, 16);
	ck_assert_uint_eq(lost, 5);
	send_mp(&side, target.card.addr, &i, sizeof(i));
	take_bad(&target);
	side_close(&target);
	side_close(&side);
}
END_TEST

/* ---- a writer that dies ------------------------------------------------------------------------------- */

/* A client that has the port mapped, and no library. */
struct rough {
	int ctl;
	uint32_t session;
	struct emu_vport view;
};

static void rough_open(struct rough *rough, glex_ep_addr_t to)
{
	struct emu_ctl_msg msg;
	int fds[EMU_WIRE_FDS];
	char name[128];
	uint64_t size;
	off_t end;
	void *base;

	raw_name(name, sizeof(name));
	rough->ctl = raw_dial(name);
	ck_assert_int_ge(rough->ctl, 0);
	raw_hello(&msg, false);
	ck_assert_int_eq(raw_call(rough->ctl, EMU_CTL_HELLO, &msg, -1, NULL), EMU_CTL_OK);
	rough->session = msg.welcome.session;
	memset(&msg, 0, sizeof(msg));
	msg.port.nic_id = to.nic_id;
	msg.port.ep_num = to.ep_num;
	ck_assert_int_eq(raw_call(rough->ctl, EMU_CTL_PORT_OPEN, &msg, -1, fds), EMU_CTL_OK);
	end = lseek(fds[0], 0, SEEK_END);
	ck_assert_int_gt(end, 0);
	size = (uint64_t)end;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	ck_assert_ptr_ne(base, MAP_FAILED);
	ck_assert_ptr_null(emu_vport_attach(&rough->view, base, size));
}

enum { INTQ, EPQ, MPQ };

struct end {
	int queue;
	bool published;
};

/* Goes as far as it is told, then waits to be killed. */
static void die_there(int fd, void *arg)
{
	const struct end *end = arg;
	struct emu_ring *ring;
	glex_ep_addr_t to;
	struct rough rough;
	uint32_t index;
	void *slot;

	hear(fd, &to, sizeof(to));
	rough_open(&rough, to);
	ring = end->queue == INTQ ? &rough.view.intq : end->queue == EPQ ? &rough.view.epq : &rough.view.mpq;
	slot = emu_ring_claim(ring, rough.session, &index);
	ck_assert_ptr_nonnull(slot);
	if (end->queue == INTQ)
		((struct emu_intr_slot *)slot)->cause = EMU_INTR_REMOTE;
	if (end->published)
		emu_ring_publish(slot, index);
	meet(fd);
	pause();
}

static uint32_t count_intrs(const struct side *side)
{
	struct glex_intr list[4];
	uint32_t num = 4;

	OK(glex_ep_poll_intr(side->ep, &num, list, NULL));
	return num;
}

static void let_die(struct peer *peer, const struct side *side)
{
	say(peer->fd, &side->card.addr, sizeof(side->card.addr));
	meet(peer->fd);
}

START_TEST(writer__killed_before_it_wakes_anybody__glexd_does)
{
	struct end end = {.queue = _i ? MPQ : INTQ, .published = true};
	struct peer peer = peer_start(die_there, &end);
	struct side side;
	uint32_t len;
	char data[112];

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	let_die(&peer, &side);
	ck_assert(!is_readable(&side, 0));
	peer_kill(&peer);
	ck_assert(is_readable(&side, WAIT_MS));
	if (_i)
		OK(glex_receive_mp(side.ep, 0, NULL, data, &len));
	else
		ck_assert_uint_eq(count_intrs(&side), 1);
	side_close(&side);
}
END_TEST

START_TEST(writer_of_intq__killed_between_claim_and_publish__later_ones_arrive)
{
	struct end end = {.queue = INTQ};
	struct peer peer = peer_start(die_there, &end);
	struct glex_imm_mp_req mp = {.flag = GLEX_FLAG_REMOTE_INTR};
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	ck_assert(!is_readable(&side, 0));
	let_die(&peer, &side);
	mp.rmt_ep_addr = side.card.addr;
	OK(glex_send_imm_mp(side.ep, &mp, NULL));
	ck_assert(is_readable(&side, 0));
	ck_assert_uint_eq(count_intrs(&side), 0); /* it lies behind the unfinished one */
	ck_assert(!is_readable(&side, 0));
	peer_kill(&peer);
	expect_intr(&side, GLEX_INTR_REMOTE, side.card.addr);
	side_close(&side);
}
END_TEST

START_TEST(writer_of_epq__killed_between_claim_and_publish__later_ones_arrive)
{
	struct end end = {.queue = EPQ};
	struct peer peer = peer_start(die_there, &end);
	struct glex_imm_rdma_req wrong = {.flag = 0};
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	let_die(&peer, &side);
	wrong.rmt_ep_addr = side.card.addr;
	wrong.rmt_mh = side.card.mh;
	wrong.rmt_key = side.card.key + 1;
	post_imm(side.ep, &wrong);
	expect_none(&side);
	peer_kill(&peer);
	ck_assert_int_eq(take_bad(&side).cause, GLEX_BAD_KEY);
	side_close(&side);
}
END_TEST

START_TEST(writer_of_mpq__killed_between_claim_and_publish__armed_descriptor_is_readable_again)
{
	struct end end = {.queue = MPQ};
	struct peer peer = peer_start(die_there, &end);
	struct side side;
	uint32_t len;
	char data[112];

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	let_die(&peer, &side);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	send_mp(&side, side.card.addr, "behind", 6);
	ck_assert(is_readable(&side, 0));
	ck_assert_uint_eq(count_intrs(&side), 0);
	RETURNS(glex_receive_mp(side.ep, 0, NULL, data, &len), GLEX_NO_MP);
	OK(glex_ep_arm(side.ep, GLEX_ARM_MP));
	ck_assert(!is_readable(&side, 0));
	peer_kill(&peer);
	ck_assert(is_readable(&side, WAIT_MS));
	expect_mp(side.ep, "behind", 6);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bad_packet");
	TCase *tc = tcase_create("bad_packet");

	own_job("bad-packet");
	tcase_add_loop_test(tc, rdma__breaks_a_rule__target_learns_source_cause_and_region, 0, 2 * KINDS * RULES);
	tcase_add_test(tc, imm_put__wrong_key__target_learns_it);
	tcase_add_loop_test(tc, request__sound__is_no_bad_packet, 0, KINDS);
	tcase_add_loop_test(tc, mp__target_queue_full__target_learns_what_it_lost, 0, 2);
	tcase_add_loop_test(tc, put__event_queue_full__only_that_of_the_target_counts, 0, 2);
	tcase_add_test(tc, bad_packets__more_than_the_queue_holds__are_counted);
	tcase_add_loop_test(tc, writer__killed_before_it_wakes_anybody__glexd_does, 0, 2);
	tcase_add_test(tc, writer_of_intq__killed_between_claim_and_publish__later_ones_arrive);
	tcase_add_test(tc, writer_of_epq__killed_between_claim_and_publish__later_ones_arrive);
	tcase_add_test(tc, writer_of_mpq__killed_between_claim_and_publish__armed_descriptor_is_readable_again);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
