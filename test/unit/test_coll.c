/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_coll.c - the collective engine flag by flag: what arrives where, what is
 * swapped for what, what goes wrong and how; long chains; many who execute.
 */
#include <pthread.h>

#include "coll_net.h"
#include "emulator/nic/reduce.h"

#define A 0u
#define B 1u
#define C 2u

static void begin(void)
{
	net_setup();
	net_begin(6, AT_ONCE, false);
}

static void mp(uint32_t from, uint32_t to, uint32_t flag, uint32_t counter, const char *text)
{
	net_post(from, 0, net_mp(flag, net_addr(to, 0), counter), text, (uint32_t)strlen(text));
}

static void expect(uint32_t node, const char *text)
{
	net_expect_mp(node, 0, text, (uint32_t)strlen(text));
}

static void nothing(uint32_t node)
{
	unsigned char data[EMU_MP_DATA];
	uint32_t len;

	ck_assert(!net_take_mp(node, 0, data, &len));
}

/* ---- what arrives -------------------------------------------------------------- */

static const struct {
	uint32_t flag;
	bool queued, counts;
} arrivals[] = {
	{0, true, false},
	{CP_DATA, true, false},
	{CP_SWAP, true, false},
	{CONTROL, false, true},
	{CONTROL | CP_SWAP, false, true},
	{CONTROL | CP_DATA, true, true},
	{CONTROL | CP_DATA | CP_SWAP, true, true},
	{CONTROL | GLEX_FLAG_COLL_CP_SWAP_ADDR, false, true},
};

START_TEST(arrival__by_its_flags__queued_or_counted)
{
	mp(A, B, arrivals[_i].flag, 9, "data");
	if (arrivals[_i].queued)
		expect(B, "data");
	nothing(B);
	mp(B, C, START, 1, "gate");
	if (!arrivals[_i].counts) {
		nothing(C);
		mp(A, B, CONTROL, 0, "");
	}
	expect(C, "gate");
	net_expect_clean();
}
END_TEST

START_TEST(gate__counter_zero__waits_only_behind_earlier_gates)
{
	mp(B, C, START, 0, "at once");
	expect(C, "at once");
	mp(B, C, START, 2, "gate");
	mp(B, C, START, 0, "behind");
	mp(B, C, 0, 5, "no start: its counter means nothing");
	mp(A, B, CONTROL, 0, "");
	nothing(C);
	mp(A, B, CONTROL, 0, "");
	expect(C, "gate");
	expect(C, "behind");
	expect(C, "no start: its counter means nothing");
	net_expect_clean();
}
END_TEST

START_TEST(gate__more_than_it_needs__the_rest_is_for_the_next)
{
	int i;

	for (i = 0; i < 5; i++)
		mp(A, B, CONTROL, 0, "");
	mp(B, C, START, 2, "one");
	mp(B, C, START, 2, "two");
	mp(B, C, START | TAIL, 2, "three");
	expect(C, "one");
	expect(C, "two");
	nothing(C);
	mp(A, B, CONTROL, 0, "");
	expect(C, "three");
	net_expect_clean();
}
END_TEST

/* D has room for NET_MPQ of them. */
START_TEST(gate__larger_than_the_queue__opens)
{
	uint32_t i;

	mp(B, C, START | SWAP, NET_MPQ * 5 + 3, "gate");
	mp(A, B, CONTROL | CP_SWAP, 0, "early");
	for (i = 1; i < NET_MPQ * 5 + 3; i++) {
		nothing(C);
		mp(A, B, CONTROL, 0, "");
	}
	expect(C, "early");
	net_expect_clean();
}
END_TEST

START_TEST(packet_to_itself__opens_the_own_gate)
{
	mp(A, B, START, 3, "gate");
	mp(A, A, 0, 0, "ordinary");
	net_queue(A, 0, net_mp(CONTROL | CP_DATA, net_addr(A, 0), 0), "me", 2);
	nothing(A); /* behind the gate */
	mp(B, A, CONTROL, 0, "");
	mp(B, A, CONTROL, 0, "");
	mp(B, A, CONTROL, 0, "");
	expect(B, "gate");
	expect(A, "ordinary");
	expect(A, "me");
	mp(A, B, START, 1, "again");
	expect(B, "again");
	net_expect_clean();
}
END_TEST

/* ---- swaps ------------------------------------------------------------------------ */

START_TEST(swap__several_values__the_last_that_carries_data)
{
	mp(B, C, START | SWAP, 4, "own");
	mp(B, C, SWAP | TAIL, 0, "other length");
	mp(A, B, CONTROL | CP_SWAP, 0, "first");
	mp(A, B, CONTROL | CP_SWAP, 0, "the second");
	mp(A, B, CONTROL, 0, "no swap data");
	mp(A, B, CONTROL | CP_DATA, 0, "nor here");
	expect(C, "the second");
	expect(C, "the second");
	expect(B, "nor here");
	net_expect_clean();
}
END_TEST

START_TEST(swap__of_no_length__replaces_by_nothing)
{
	mp(B, C, START | SWAP, 1, "own");
	mp(A, B, CONTROL | CP_SWAP, 0, "");
	expect(C, "");
	net_expect_clean();
}
END_TEST

START_TEST(swap__no_value__the_request_as_it_is)
{
	mp(B, C, START | SWAP, 0, "nothing came");
	mp(A, B, CONTROL, 0, "");
	mp(B, C, START | SWAP, 1, "nothing in it");
	mp(A, B, CONTROL | CP_SWAP, 0, "value");
	mp(B, C, START | SWAP | TAIL, 1, "own");
	mp(B, C, SWAP, 0, "behind the tail");
	expect(C, "nothing came");
	expect(C, "nothing in it");
	expect(C, "value");
	expect(C, "behind the tail");
	net_expect_clean();
}
END_TEST

START_TEST(sequence__begun_twice_without_tail__the_second_has_its_own_value)
{
	mp(A, B, CONTROL | CP_SWAP, 0, "one");
	mp(A, B, CONTROL, 0, "");
	mp(B, C, START | SWAP, 1, "x");
	mp(B, C, 0, 0, "unswapped");
	mp(B, C, SWAP, 0, "x");
	mp(B, C, START | SWAP, 1, "own");
	mp(B, C, SWAP, 1, "own too");
	expect(C, "one");
	expect(C, "unswapped");
	expect(C, "one");
	expect(C, "own");
	expect(C, "own too");
	net_expect_clean();
}
END_TEST

START_TEST(swap_ep__data__goes_back_to_its_sender)
{
	mp(B, C, START | SWAP | GLEX_FLAG_COLL_SWAP_EP, 1, "x");
	mp(A, B, CONTROL | CP_SWAP, 0, "echo");
	expect(A, "echo");
	nothing(C);
	net_expect_clean();
}
END_TEST

static struct emu_swap_addr address(uint32_t node, uint32_t ep)
{
	return (struct emu_swap_addr){
		.ep = net_addr(node, ep), .mh = net.node[node].handle, .offset = 512, .key = NET_KEY};
}

/* B PUTs to wherever A says, which is at A or at C. */
START_TEST(swap_addr__put__goes_where_the_packet_says)
{
	bool elsewhere = _i & 1, imm = _i & 2;
	uint32_t to = elsewhere ? C : A;
	struct emu_swap_addr addr = address(to, 0);
	struct emu_desc put =
		net_put(START | SWAP | GLEX_FLAG_COLL_SWAP_EP | GLEX_FLAG_REMOTE_EVT | (imm ? 0 : GLEX_FLAG_LOCAL_EVT),
			B, 1, 0, 64);

	memset(net.node[B].memory, 7, 64);
	if (imm)
		put.op = EMU_OP_IMM_PUT;
	net_post(B, 0, put, imm ? net.node[B].memory : NULL, imm ? 64 : 0);
	net_post(A, 0, net_mp(CONTROL | GLEX_FLAG_COLL_CP_SWAP_ADDR, net_addr(B, 0), 0), &addr, sizeof(addr));
	ck_assert_uint_eq(net_take_event(to, 0), 2);
	ck_assert_uint_eq(net_take_event(B, 0), imm ? 0 : 1);
	ck_assert_uint_eq(net.node[to].memory[512], 7);
	ck_assert_uint_eq(net.node[to].memory[575], 7);
	ck_assert_uint_eq(net.node[to].memory[511], 0);
	ck_assert_uint_eq(net.node[to].memory[576], 0);
	net_expect_clean();
}
END_TEST

START_TEST(swap_addr__without_swap_ep__at_the_endpoint_posted)
{
	struct emu_swap_addr addr = address(C, 0);
	struct emu_desc put = net_put(START | SWAP, C, 1, 0, 8);

	addr.ep = net_addr(A, 0); /* not looked at */
	memset(net.node[B].memory, 9, 8);
	put.rmt_mh = 4711;
	net_post(B, 0, put, NULL, 0);
	net_post(A, 0, net_mp(CONTROL | GLEX_FLAG_COLL_CP_SWAP_ADDR, net_addr(B, 0), 0), &addr, sizeof(addr));
	ck_assert_uint_eq(net.node[C].memory[512], 9);
	net_expect_clean();
}
END_TEST

START_TEST(swap__put_with_data_that_is_no_address__format)
{
	net_post(B, 0, net_put(START | SWAP | GLEX_FLAG_REMOTE_EVT, C, 1, 0, 8), NULL, 0);
	mp(B, C, TAIL, 0, "goes on");
	memset(net.node[B].memory, 9, 8);
	mp(A, B, CONTROL | CP_SWAP, 0, "24 bytes, and no address");
	ck_assert_int_eq(net_take_error(B, 0), GLEX_ERR_STATUS_FORMAT);
	ck_assert_uint_eq(net.node[C].memory[0], 0);
	expect(C, "goes on");
	net_expect_clean();
}
END_TEST

/* ---- sets -------------------------------------------------------------------------- */

static void post_set(uint32_t flag, uint32_t counter, uint32_t n)
{
	uint64_t list[14];
	uint32_t i;

	for (i = 0; i < n; i++)
		list[i] = net_addr(C + i % 4, i / 4 % 2);
	net_post(B, 0, net_mp(flag | SWAP | GLEX_FLAG_COLL_SWAP_SET, net_addr(B, 0), counter), list, n * 8);
}

START_TEST(set__any_size__the_value_to_itself_and_all_of_them)
{
	uint32_t i, n = (uint32_t)_i;

	post_set(START | TAIL | CP_DATA, 1, n);
	mp(A, B, CONTROL | CP_SWAP, 0, "to all");
	expect(B, "to all");
	for (i = 0; i < n; i++)
		net_expect_mp(C + i % 4, i / 4 % 2, "to all", 6);
	net_expect_clean();
}
END_TEST

START_TEST(set__of_control_packets_without_value__opens_all_gates)
{
	mp(C, A, START, 1, "c");
	mp(C + 1, A, START, 1, "d");
	post_set(START | CONTROL, 2, 2);
	mp(A, B, CONTROL, 0, "");
	mp(A, B, CONTROL, 0, "");
	expect(A, "c");
	expect(A, "d");
	mp(B, A, START, 1, "its own copy counts too");
	expect(A, "its own copy counts too");
	net_expect_clean();
}
END_TEST

START_TEST(set__one_of_them_is_gone__an_error_for_it_and_the_others_have_it)
{
	atomic_store(&net.node[C + 1].ep[0].port.port->state, EMU_PORT_CLOSED);
	post_set(START | CP_DATA, 1, 3);
	mp(A, B, CONTROL | CP_SWAP, 0, "all");
	expect(B, "all");
	expect(C, "all");
	expect(C + 2, "all");
	ck_assert_int_eq(net_take_error(B, 0), GLEX_ERR_STATUS_DEST_VP_STOP);
	net_expect_clean();
}
END_TEST

/* What a client's library would not let pass. */
START_TEST(request__not_sound__format_and_the_next_goes_on)
{
	struct emu_desc desc = net_mp(START, net_addr(C, 0), 0);
	unsigned char data[EMU_MP_DATA] = {0};

	net_queue(B, 0, desc, data, 8);
	net.node[B].ep[0].coll.cq[0].len = EMU_MP_DATA + 1;
	net_queue(B, 0, net_mp(SWAP | GLEX_FLAG_COLL_SWAP_SET, net_addr(C, 0), 0), data, 9);
	desc.op = EMU_OP_GET;
	net_queue(B, 0, desc, NULL, 0);
	desc.op = 77;
	net_queue(B, 0, desc, NULL, 0);
	mp(B, C, 0, 0, "next");
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(net_take_error(B, 0), GLEX_ERR_STATUS_FORMAT);
	expect(C, "next");
	net_expect_clean();
}
END_TEST

/* ---- reductions ------------------------------------------------------------------------ */

static uint32_t operand(int64_t value, enum glex_coll_reduce_op op, uint32_t count, void *data)
{
	struct emu_operand o = {
		.magic = EMU_OPERAND_MAGIC, .count = (uint8_t)count, .bits = GLEX_COLL_REDUCE_DATA_BITS_64};

	o.op = (uint8_t)op;
	for (uint32_t i = 0; i < count; i++)
		memcpy(o.unit[i], &value, sizeof(value));
	memcpy(data, &o, emu_operand_len(&o));
	return emu_operand_len(&o);
}

static void send_operand(uint32_t node, uint32_t flag, uint64_t to, uint32_t counter, int64_t value, uint32_t count)
{
	unsigned char data[EMU_MP_DATA];
	uint32_t len = operand(value, GLEX_COLL_REDUCE_SUM_SIGNED, count, data);

	net_post(node, 0, net_mp(flag | REDUCE, to, counter), data, len);
}

static void expect_value(uint32_t node, int64_t value, uint32_t count)
{
	unsigned char data[EMU_MP_DATA];
	uint32_t len = operand(value, GLEX_COLL_REDUCE_SUM_SIGNED, count, data);

	net_expect_mp(node, 0, data, len);
}

START_TEST(reduce__operands_and_mere_control_packets__all_operands_combined)
{
	send_operand(B, START | SWAP, net_addr(C, 0), 4, 1000, 6);
	send_operand(A, CONTROL, net_addr(B, 0), 0, 1, 6);
	mp(A, B, CONTROL, 0, "");
	send_operand(C, CONTROL | CP_SWAP, net_addr(B, 0), 0, 20, 6);
	nothing(C);
	send_operand(A, CONTROL, net_addr(B, 0), 0, 300, 6);
	expect_value(C, 1321, 6);
	net_expect_clean();
}
END_TEST

START_TEST(reduce__without_swap__sends_its_own)
{
	send_operand(A, CONTROL, net_addr(B, 0), 0, 1, 1);
	send_operand(B, START, net_addr(C, 0), 1, 1000, 1);
	expect_value(C, 1000, 1);
	send_operand(B, START | SWAP, net_addr(C, 0), 0, 5, 1);
	expect_value(C, 5, 1);
	net_expect_clean();
}
END_TEST

START_TEST(reduce__result_to_several__the_same_for_all)
{
	unsigned char own[EMU_MP_DATA];
	uint32_t len = operand(-1, GLEX_COLL_REDUCE_SUM_SIGNED, 1, own);

	send_operand(B, START | SWAP, net_addr(C, 0), 1, 1000, 1);
	net_post(B, 0, net_mp(RESULT | SWAP | TAIL, net_addr(C + 1, 0), 0), own, len);
	send_operand(A, CONTROL, net_addr(B, 0), 0, 1, 1);
	expect_value(C, 1001, 1);
	expect_value(C + 1, 1001, 1);
	net_expect_clean();
}
END_TEST

enum misfit { OTHER_OP, OTHER_COUNT, NO_OPERAND, TOO_MANY, MISFITS };

START_TEST(reduce__operands_that_do_not_fit__format_and_the_next_gate_works)
{
	unsigned char data[EMU_MP_DATA];
	uint32_t n = _i == TOO_MANY ? EMU_OPERANDS + 1 : 2, len, i;

	send_operand(B, START | SWAP, net_addr(C, 0), n, 1000, 2);
	net_post(B, 0, net_mp(SWAP, net_addr(C, 0), 0), "must not go", 11);
	mp(B, C, 0, 0, "no swap, goes");
	for (i = 1; i < n; i++)
		send_operand(A, CONTROL, net_addr(B, 0), 0, 1, 2);
	if (_i == NO_OPERAND) {
		mp(A, B, CONTROL | CP_SWAP, 0, "abc");
	} else if (_i == TOO_MANY) {
		send_operand(A, CONTROL, net_addr(B, 0), 0, 1, 2);
	} else {
		len = operand(1, _i == OTHER_OP ? GLEX_COLL_REDUCE_BOR : GLEX_COLL_REDUCE_SUM_SIGNED,
			      _i == OTHER_COUNT ? 1 : 2, data);
		net_post(A, 0, net_mp(CONTROL | REDUCE, net_addr(B, 0), 0), data, len);
	}
	ck_assert_int_eq(net_take_error(B, 0), GLEX_ERR_STATUS_FORMAT);
	ck_assert_int_eq(net_take_error(B, 0), GLEX_ERR_STATUS_FORMAT);
	expect(C, "no swap, goes");
	send_operand(B, START | SWAP, net_addr(C, 0), 1, 1000, 2);
	send_operand(A, CONTROL, net_addr(B, 0), 0, 1, 2);
	expect_value(C, 1001, 2);
	net_expect_clean();
}
END_TEST

START_TEST(reduce__as_many_as_a_tree_has_branches__combined)
{
	uint32_t i;

	send_operand(B, START | SWAP, net_addr(C, 0), EMU_OPERANDS, 1000, 1);
	for (i = 0; i < EMU_OPERANDS; i++)
		send_operand(A, CONTROL, net_addr(B, 0), 0, i, 1);
	expect_value(C, 1000 + 31 * 16, 1);
	net_expect_clean();
}
END_TEST

/* ---- PUTs --------------------------------------------------------------------------------- */

START_TEST(put__source__is_read_when_the_gate_opens)
{
	net_post(B, 0, net_put(START | GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT | CONTROL, C, 1, 0, 1000), NULL, 0);
	mp(C, A, START, 1, "c was told");
	memset(net.node[B].memory, 3, 1000);
	ck_assert_uint_eq(net_take_event(C, 0), 0);
	mp(A, B, CONTROL, 0, "");
	ck_assert_uint_eq(net.node[C].memory[999], 3);
	ck_assert_uint_eq(net_take_event(B, 0), 1);
	ck_assert_uint_eq(net_take_event(C, 0), 2);
	expect(A, "c was told");
	net_expect_clean();
}
END_TEST

enum wrong_put { WRONG_KEY, WRONG_HANDLE, WRONG_BOUNDS, WRONG_SOURCE, WRONG_PORT, WRONG_PUTS };

static const int wrong_status[] = {GLEX_ERR_STATUS_MMT, GLEX_ERR_STATUS_ATT, GLEX_ERR_STATUS_MMT, GLEX_ERR_STATUS_ATT,
				   GLEX_ERR_STATUS_DEST_VP_STOP};

START_TEST(put__refused__an_error_and_neither_event_nor_count)
{
	struct emu_desc put = net_put(GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT | CONTROL, C, 0, 0, 8);

	if (_i == WRONG_KEY)
		put.rmt_key++;
	else if (_i == WRONG_HANDLE)
		put.rmt_mh = 4711;
	else if (_i == WRONG_BOUNDS)
		put.rmt_offset = NET_MEMORY - 7;
	else if (_i == WRONG_PORT)
		put.dst = net_addr(99, 0);
	net_queue(B, 0, put, NULL, 0);
	if (_i == WRONG_SOURCE)
		net.node[B].ep[0].coll.cq[0].local_mh = 4711;
	net_run(B, 0);
	ck_assert_int_eq(net_take_error(B, 0), wrong_status[_i]);
	net_expect_clean();
}
END_TEST

START_TEST(put__no_room_for_the_event__told_and_counts)
{
	uint32_t i;

	for (i = 0; i < NET_EQ; i++)
		net_post(A, 0, net_put(GLEX_FLAG_REMOTE_EVT, C, 0, 0, 0), NULL, 0);
	net_post(B, 0, net_put(GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT | CONTROL, C, 0, 0, 8), NULL, 0);
	ck_assert_int_eq(net_take_error(B, 0), GLEX_ERR_STATUS_DEST_EQ_FULL);
	ck_assert_uint_eq(net_take_event(B, 0), 1);
	for (i = 0; i < NET_EQ; i++)
		ck_assert_uint_eq(net_take_event(C, 0), 2);
	mp(C, A, START, 1, "counted");
	expect(A, "counted");
	net_expect_clean();
}
END_TEST

/* ---- full, and gone ------------------------------------------------------------------------- */

START_TEST(full__mpq_or_control_packets__the_packet_is_lost_whole)
{
	uint32_t i, flag = _i ? CONTROL : CP_DATA;

	for (i = 0; i < NET_MPQ; i++)
		mp(A, B, flag, 0, "full");
	ck_assert_int_eq(net_take_error(A, 0), -1);
	mp(A, B, CONTROL | CP_DATA | CP_SWAP, 0, "one too many");
	ck_assert_int_eq(net_take_error(A, 0), GLEX_ERR_STATUS_DEST_MPQ_FULL);
	for (i = 0; i < NET_MPQ && !_i; i++)
		expect(B, "full");
	nothing(B);
	if (_i) {
		mp(B, C, START | SWAP, NET_MPQ, "all there were");
		expect(C, "all there were");
	}
	/* And then there is room again. */
	mp(B, C, START | SWAP, 1, "x");
	mp(A, B, CONTROL | CP_DATA | CP_SWAP, 0, "room");
	expect(B, "room");
	expect(C, "room");
	net_expect_clean();
}
END_TEST

START_TEST(gone__target_port__an_error_and_the_sequence_goes_on)
{
	atomic_store(&net.node[C].ep[0].port.port->state, EMU_PORT_CLOSED);
	mp(B, C, START | CONTROL, 0, "lost");
	mp(B, A, TAIL, 0, "arrives");
	ck_assert_int_eq(net_take_error(B, 0), GLEX_ERR_STATUS_DEST_VP_STOP);
	expect(A, "arrives");
	net_expect_clean();
}
END_TEST

START_TEST(gone__own_port__nothing_more_happens)
{
	mp(B, C, START, 1, "x");
	atomic_store(&net.node[B].ep[0].port.port->state, EMU_PORT_CLOSED);
	emu_coll_turn(&net.node[A].host, &net.node[B].ep[0].coll);
	mp(A, B, CONTROL, 0, "");
	ck_assert_int_eq(net_take_error(A, 0), GLEX_ERR_STATUS_DEST_VP_STOP);
	nothing(C);
	ck_assert_uint_eq(atomic_load(&net.node[B].ep[0].coll.coll->turn), 0);
}
END_TEST

/* ---- an owner that does not keep to it ------------------------------------------------------------ */

/* Its process writes into its own unit; who executes must come through, and come to an end. */
START_TEST(unit__state_is_garbage__who_executes_is_not_harmed)
{
	static const uint32_t garbage[] = {2, 33, 77, 0x10000, 0x7fffffff, UINT32_MAX};
	struct emu_coll *coll = net.node[B].ep[0].coll.coll;

	for (uint32_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		for (uint32_t what = 0; what < 3; what++) {
			mp(B, C, START | SWAP | (i % 2 ? REDUCE : 0), 1, "");
			for (uint32_t k = 0; k < 2; k++) {
				coll->state[k].operands = coll->state[k].x = garbage[i];
				coll->state[k].sent = what == 0 ? 0 : garbage[i];
				coll->state[k].flags = what == 2 ? garbage[i] | EMU_COLL_OPEN | EMU_COLL_SWAP : 0;
				coll->x[k].len = coll->operand[k].len = garbage[i];
			}
			mp(A, B, CONTROL | CP_SWAP, 0, "y");
			emu_coll_turn(&net.node[A].host, &net.node[B].ep[0].coll);
		}
	ck_assert_uint_eq(atomic_load(&coll->turn), 0);
}
END_TEST

/* ---- behind the descriptor queue --------------------------------------------------------------- */

START_TEST(normal_port__requests_before__go_first)
{
	struct net_port *b = &net.node[B].ep[0];
	struct emu_desc dq;

	b->port.dq = &dq; /* not looked at: glexd does */
	net_queue(B, 0, net_mp(START, net_addr(C, 0), 0), "now", 3);
	b->coll.cq[0].after = 5;
	atomic_store(&b->port.port->dq.tail, 5);
	atomic_store(&b->port.port->dq.head, 4);
	net_run(B, 0);
	nothing(C);
	atomic_store(&b->port.port->dq.head, 5);
	net_run(B, 0);
	expect(C, "now");
	net_expect_clean();
}
END_TEST

/* Its gate opens when so many more have been posted there, and executed, that 32 bits cannot tell them from fewer. */
START_TEST(normal_port__many_requests_since__it_is_still_due)
{
	static const uint64_t since[] = {10, (UINT64_C(1) << 31) - 1, (UINT64_C(1) << 31) + 10, UINT64_C(5) << 32};
	struct net_port *b = &net.node[B].ep[0];
	uint64_t head = 5 + since[_i];
	struct emu_desc dq;

	b->port.dq = &dq;
	net_queue(B, 0, net_mp(START, net_addr(C, 0), 1), "now", 3);
	b->coll.cq[0].after = 5;
	atomic_store(&b->port.port->dq.tail, head + 3); /* some of them not yet */
	atomic_store(&b->port.port->dq.head, (uint32_t)head);
	mp(A, B, CONTROL, 0, "");
	expect(C, "now");
	net_expect_clean();
}
END_TEST

/* The other way round: its own number is past what 32 bits hold. */
START_TEST(normal_port__requests_before_past_32_bits__go_first)
{
	struct net_port *b = &net.node[B].ep[0];
	uint64_t after = (UINT64_C(3) << 32) + 2;
	struct emu_desc dq;

	b->port.dq = &dq;
	net_queue(B, 0, net_mp(START, net_addr(C, 0), 0), "now", 3);
	b->coll.cq[0].after = after;
	atomic_store(&b->port.port->dq.tail, after);
	atomic_store(&b->port.port->dq.head, UINT32_MAX - 1);
	net_run(B, 0);
	nothing(C);
	atomic_store(&b->port.port->dq.head, 1);
	net_run(B, 0);
	nothing(C);
	atomic_store(&b->port.port->dq.head, 2);
	net_run(B, 0);
	expect(C, "now");
	net_expect_clean();
}
END_TEST

/* ---- long, and many ------------------------------------------------------------------------------ */

#define CHAIN 16384u

static void *hop(void *arg)
{
	uint64_t word = 42;

	(void)arg;
	net_post(C, 0, net_mp(CONTROL | CP_SWAP, net_addr(A, 0), 0), &word, sizeof(word));
	return NULL;
}

/* A and B trigger each other 16384 times in one call, on a stack that has room for little. */
START_TEST(chain__of_16384_triggers__takes_no_stack)
{
	struct emu_coll_shape shape = {.cq_capacity = CHAIN / 2, .d_capacity = 64};
	void *segment[2]; /* the ports' own now */
	pthread_attr_t attr;
	pthread_t thread;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		shape.nic_id = i;
		segment[i] = unit_zeroed(emu_coll_size(&shape));
		emu_coll_format(segment[i], emu_coll_size(&shape), &shape);
		free(net.node[i].ep[0].coll.coll);
		ck_assert_ptr_null(emu_coll_attach(&net.node[i].ep[0].coll, &net.node[i].ep[0].port, segment[i],
						   emu_coll_size(&shape)));
	}
	for (i = 0; i < CHAIN; i++)
		net_queue(i % 2, 0,
			  net_mp(START | TAIL | SWAP | (i + 1 < CHAIN ? CONTROL | CP_SWAP : 0),
				 net_addr(i + 1 < CHAIN ? (i + 1) % 2 : C, 0), 1),
			  "wrong!", 6);
	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, 128 * 1024), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, hop, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	net_expect_mp(C, 0, &(uint64_t){42}, 8);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(emu_coll_now(&net.node[i].ep[0].coll)->cq_head, CHAIN / 2);
	}
}
END_TEST

#define SENDERS 4u
#define TURNS	5000u

/* Each sends a control packet, waits until the hub has answered it, and so on. */
static void *send_and_wait(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg, got[2], len, i;
	struct net_port *own = &net.node[me].ep[0];

	for (i = 0; i < TURNS; i++) {
		uint32_t word[2] = {me, i};

		net_queue(me, 0, net_mp(CONTROL | CP_SWAP, net_addr(0, 0), 0), word, sizeof(word));
		net_run(me, 0);
		UNIT_WAIT(emu_ring_peek(&own->port.mpq, atomic_load(&own->port.port->mpq.head)));
		UNIT_CHECK(net_take_mp(me, 0, got, &len) && len == 8 && got[1] == i);
	}
	return NULL;
}

/*
 * The hub's gate needs one packet of everybody; what opens it goes to all.  Who
 * brings the last one executes, in whatever thread.
 */
START_TEST(many__who_execute__each_gate_opens_once)
{
	pthread_t thread[SENDERS];
	uint64_t list[SENDERS];
	uint32_t i, round;

	for (i = 0; i < SENDERS; i++)
		list[i] = net_addr(i + 1, 0);
	for (i = 0; i < SENDERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, send_and_wait, (void *)(uintptr_t)(i + 1)), 0);
	for (round = 0; round < TURNS; round++) {
		UNIT_WAIT(emu_coll_room(&net.node[0].ep[0].coll) > 0);
		net_post(0, 0, net_mp(START | TAIL | SWAP | GLEX_FLAG_COLL_SWAP_SET, list[0], SENDERS), &list[1],
			 (SENDERS - 1) * 8);
	}
	for (i = 0; i < SENDERS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	for (i = 0; i <= SENDERS; i++)
		UNIT_CHECK(atomic_load(&net.node[i].ep[0].coll.coll->turn) == 0);
	net_expect_clean();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll");
	TCase *tc = tcase_create("coll");

	tcase_add_checked_fixture(tc, begin, net_teardown);
	tcase_add_loop_test(tc, arrival__by_its_flags__queued_or_counted, 0,
			    (int)(sizeof(arrivals) / sizeof(arrivals[0])));
	tcase_add_test(tc, gate__counter_zero__waits_only_behind_earlier_gates);
	tcase_add_test(tc, gate__more_than_it_needs__the_rest_is_for_the_next);
	tcase_add_test(tc, gate__larger_than_the_queue__opens);
	tcase_add_test(tc, packet_to_itself__opens_the_own_gate);
	tcase_add_test(tc, swap__several_values__the_last_that_carries_data);
	tcase_add_test(tc, swap__of_no_length__replaces_by_nothing);
	tcase_add_test(tc, swap__no_value__the_request_as_it_is);
	tcase_add_test(tc, sequence__begun_twice_without_tail__the_second_has_its_own_value);
	tcase_add_test(tc, swap_ep__data__goes_back_to_its_sender);
	tcase_add_loop_test(tc, swap_addr__put__goes_where_the_packet_says, 0, 4);
	tcase_add_test(tc, swap_addr__without_swap_ep__at_the_endpoint_posted);
	tcase_add_test(tc, swap__put_with_data_that_is_no_address__format);
	tcase_add_loop_test(tc, set__any_size__the_value_to_itself_and_all_of_them, 0, 15);
	tcase_add_test(tc, set__of_control_packets_without_value__opens_all_gates);
	tcase_add_test(tc, set__one_of_them_is_gone__an_error_for_it_and_the_others_have_it);
	tcase_add_test(tc, request__not_sound__format_and_the_next_goes_on);
	tcase_add_test(tc, reduce__operands_and_mere_control_packets__all_operands_combined);
	tcase_add_test(tc, reduce__without_swap__sends_its_own);
	tcase_add_test(tc, reduce__result_to_several__the_same_for_all);
	tcase_add_loop_test(tc, reduce__operands_that_do_not_fit__format_and_the_next_gate_works, 0, MISFITS);
	tcase_add_test(tc, reduce__as_many_as_a_tree_has_branches__combined);
	tcase_add_test(tc, put__source__is_read_when_the_gate_opens);
	tcase_add_loop_test(tc, put__refused__an_error_and_neither_event_nor_count, 0, WRONG_PUTS);
	tcase_add_test(tc, put__no_room_for_the_event__told_and_counts);
	tcase_add_loop_test(tc, full__mpq_or_control_packets__the_packet_is_lost_whole, 0, 2);
	tcase_add_test(tc, gone__target_port__an_error_and_the_sequence_goes_on);
	tcase_add_test(tc, gone__own_port__nothing_more_happens);
	tcase_add_test(tc, unit__state_is_garbage__who_executes_is_not_harmed);
	tcase_add_test(tc, normal_port__requests_before__go_first);
	tcase_add_loop_test(tc, normal_port__many_requests_since__it_is_still_due, 0, 4);
	tcase_add_test(tc, normal_port__requests_before_past_32_bits__go_first);
	tcase_add_test(tc, chain__of_16384_triggers__takes_no_stack);
	tcase_add_test(tc, many__who_execute__each_gate_opens_once);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
