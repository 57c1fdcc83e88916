/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_queue.c - the consumer's side of the queues: the read index, the probe cursor, and what a dead process left.
 *
 * The endpoint is put together by hand over rings in plain memory; its backend
 * only sleeps, and in a sleep does what the test wants to happen.
 */
#include "unit.h"

#include "core/priv.h"

enum { MPQ = 8, EQ = 8, ERR = 8, SENDER = 7, DEAD = 66 };
#define NEAR_END 0xfffffffdu

static struct glexi_device dev;
static struct glexi_ep ep;
static _Atomic uint64_t taken_mp, taken_events, taken_errors, sleeps;
static void (*on_sleep)(void);
static bool alive;

static void be_sleep(struct glexi_ep *sleeper, struct glexi_queue *queue, uint64_t ns)
{
	(void)queue;
	ck_assert_ptr_eq(sleeper, &ep);
	ck_assert_uint_gt(ns, 0);
	if (on_sleep)
		on_sleep();
	sched_yield();
}

static bool be_alive(struct glexi_device *device)
{
	(void)device;
	return alive;
}

static bool be_crowded(const struct glexi_device *device)
{
	return device == NULL;
}

static const struct glexi_be_ops ops = {
	.name = "hand", .alive = be_alive, .crowded = be_crowded, .ep_sleep = be_sleep, .tend = unit_tend};

/* device.c opens this one; no test opens a device. */
const struct glexi_be_ops glexi_nic_ops = {.name = "none"};

static void make_queue(struct glexi_queue *queue, uint32_t capacity, uint32_t shift, _Atomic uint64_t *taken)
{
	unit_ring_init(&queue->ring, unit_zeroed(unit_ring_size(capacity, shift)), capacity, shift, NEAR_END);
	atomic_init(&queue->read, NEAR_END);
	atomic_init(&queue->probe, NEAR_END);
	queue->taken = taken;
}

static void setup(void)
{
	memset(&ep, 0, sizeof(ep));
	memset(&dev, 0, sizeof(dev));
	alive = true;
	dev.ops = &ops;
	ep.dev = &dev;
	ep.sleeps = &sleeps;
	make_queue(&ep.mpq, MPQ, 7, &taken_mp);
	make_queue(&ep.eq, EQ, 5, &taken_events);
	make_queue(&ep.err, ERR, 6, &taken_errors);
}

static void teardown(void)
{
	free(ep.mpq.ring.ctl);
	free(ep.eq.ring.ctl);
	free(ep.err.ring.ctl);
}

/* ---- what arrives -------------------------------------------------------- */

static void put_mp(uint32_t n)
{
	uint32_t index;
	struct emu_mp_slot *slot = emu_ring_claim(&ep.mpq.ring, SENDER, &index);

	ck_assert_ptr_nonnull(slot);
	slot->flags = 0;
	slot->len = sizeof(n);
	slot->src = 1000 + n;
	memcpy(slot->data, &n, sizeof(n));
	emu_ring_publish(slot, index);
}

static void put_event(uint64_t n)
{
	uint32_t index;
	struct emu_event_slot *slot = emu_ring_claim(&ep.eq.ring, SENDER, &index);

	ck_assert_ptr_nonnull(slot);
	slot->flags = 0;
	slot->cookie[0] = n;
	slot->cookie[1] = 1;
	emu_ring_publish(slot, index);
}

static void put_error(uint64_t n)
{
	uint32_t index;
	struct emu_err_slot *slot = emu_ring_claim(&ep.err.ring, SENDER, &index);

	ck_assert_ptr_nonnull(slot);
	slot->flags = 0;
	slot->op = GLEX_ERR_OP_RDMA_GET;
	slot->status = GLEX_ERR_STATUS_MMT;
	slot->rmt_nic_id = 11;
	slot->rmt_ep_num = 12;
	for (uint64_t i = 0; i < 3; i++)
		slot->data[i] = n + i;
	emu_ring_publish(slot, index);
}

/* A process claims a slot and dies; glexd discards it. */
static void die_in(struct glexi_queue *queue, size_t flags_at)
{
	uint32_t index;

	ck_assert_ptr_nonnull(emu_ring_claim(&queue->ring, DEAD, &index));
	ck_assert_uint_eq(emu_ring_reap(&queue->ring, DEAD, flags_at), 1);
}

static void die_in_mpq(void)
{
	die_in(&ep.mpq, offsetof(struct emu_mp_slot, flags));
}

static void die_in_eq(void)
{
	die_in(&ep.eq, offsetof(struct emu_event_slot, flags));
}

static void die_in_err(void)
{
	die_in(&ep.err, offsetof(struct emu_err_slot, flags));
}

/* ---- what is seen -------------------------------------------------------- */

#define NOTHING UINT32_MAX

static uint32_t seen_mp(glex_ret_t ret, const void *data, uint32_t len)
{
	uint32_t n;

	if (ret == GLEX_NO_MP)
		return NOTHING;
	ck_assert_int_eq(ret, GLEX_SUCCESS);
	ck_assert_uint_eq(len, sizeof(n));
	memcpy(&n, data, sizeof(n));
	return n;
}

static uint32_t probe_first(void)
{
	uint32_t len = 0;
	void *data = NULL;
	glex_ret_t ret = glex_probe_first_mp(&ep.pub, 0, NULL, &data, &len);

	return seen_mp(ret, data, len);
}

static uint32_t probe_next(void)
{
	uint32_t len = 0;
	void *data = NULL;
	glex_ret_t ret = glex_probe_next_mp(&ep.pub, NULL, &data, &len);

	return seen_mp(ret, data, len);
}

static uint32_t receive(void)
{
	uint32_t len = 0, data = 0;
	glex_ret_t ret = glex_receive_mp(&ep.pub, 0, NULL, &data, &len);

	return seen_mp(ret, &data, len);
}

static void discard(void)
{
	ck_assert_int_eq(glex_discard_probed_mp(&ep.pub), GLEX_SUCCESS);
}

static uint64_t event_of(glex_ret_t ret, const glex_event_t *event)
{
	if (ret == GLEX_NO_EVENT)
		return NOTHING;
	ck_assert_int_eq(ret, GLEX_SUCCESS);
	return event->cookie_0;
}

static uint64_t first_event(void)
{
	glex_event_t *event = NULL;
	glex_ret_t ret = glex_probe_first_event(&ep.pub, 0, &event);

	return event_of(ret, event);
}

static uint64_t next_event(void)
{
	glex_event_t *event = NULL;
	glex_ret_t ret = glex_probe_next_event(&ep.pub, &event);

	return event_of(ret, event);
}

static uint32_t head_of(const struct glexi_queue *queue)
{
	return atomic_load(&queue->ring.ctl->head) - NEAR_END;
}

/* ---- find ---------------------------------------------------------------- */

static void *find_mp(uint32_t from, uint32_t *at_p)
{
	return glexi_queue_find(&ep.mpq, from, offsetof(struct emu_mp_slot, flags), at_p);
}

START_TEST(find__empty__is_null_and_moves_nothing)
{
	uint32_t at = 99;

	ck_assert_ptr_null(find_mp(NEAR_END, &at));
	ck_assert_uint_eq(at, 99);
	ck_assert_uint_eq(head_of(&ep.mpq), 0);
}
END_TEST

START_TEST(find__live_slot__is_given_with_its_index)
{
	uint32_t at = 0;

	put_mp(5);
	ck_assert_ptr_eq(find_mp(NEAR_END, &at), emu_ring_slot(&ep.mpq.ring, NEAR_END));
	ck_assert_uint_eq(at, NEAR_END);
}
END_TEST

START_TEST(find__leading_discarded__steps_over_and_gives_nothing_back)
{
	uint32_t at = 0;

	die_in_mpq();
	die_in_mpq();
	put_mp(5);
	ck_assert_ptr_eq(find_mp(NEAR_END, &at), emu_ring_slot(&ep.mpq.ring, NEAR_END + 2));
	ck_assert_uint_eq(at, NEAR_END + 2);
	ck_assert_uint_eq(head_of(&ep.mpq), 0);
}
END_TEST

START_TEST(find__only_discarded__gives_them_back)
{
	uint32_t at = 99;

	die_in_mpq();
	die_in_mpq();
	ck_assert_ptr_null(find_mp(NEAR_END, &at));
	ck_assert_uint_eq(at, 99);
	ck_assert_uint_eq(head_of(&ep.mpq), 2);
	ck_assert(!glexi_queue_has(&ep.mpq, glexi_queue_read(&ep.mpq)));
}
END_TEST

START_TEST(find__whole_queue_discarded__is_empty_afterwards)
{
	uint32_t at;

	for (uint32_t n = 0; n < MPQ; n++)
		die_in_mpq();
	ck_assert_ptr_null(find_mp(NEAR_END, &at));
	ck_assert_uint_eq(head_of(&ep.mpq), MPQ);
	put_mp(1);
	ck_assert_uint_eq(receive(), 1);
}
END_TEST

START_TEST(find__discarded_then_unpublished__gives_back_the_first_only)
{
	uint32_t at, index;

	die_in_mpq();
	ck_assert_ptr_nonnull(emu_ring_claim(&ep.mpq.ring, SENDER, &index));
	die_in_mpq();
	ck_assert_ptr_null(find_mp(NEAR_END, &at));
	ck_assert_uint_eq(head_of(&ep.mpq), 1);
}
END_TEST

/* What was probed is the user's until it is discarded, whatever comes behind it. */
START_TEST(find__only_discarded_behind_a_probed_slot__gives_nothing_back)
{
	put_mp(1);
	ck_assert_uint_eq(probe_first(), 1);
	die_in_mpq();
	ck_assert_uint_eq(probe_next(), NOTHING);
	ck_assert_uint_eq(head_of(&ep.mpq), 0);
	ck_assert_uint_eq(probe_first(), 1);
}
END_TEST

/* ---- cursors ------------------------------------------------------------- */

START_TEST(receive__several__come_in_order_and_are_given_back)
{
	for (uint32_t n = 1; n <= 20; n++) {
		put_mp(n);
		ck_assert_uint_eq(receive(), n);
		ck_assert_uint_eq(head_of(&ep.mpq), n);
	}
	ck_assert_uint_eq(receive(), NOTHING);
	ck_assert_uint_eq(atomic_load(&taken_mp), 20);
}
END_TEST

START_TEST(receive__outputs__are_source_bytes_and_length)
{
	unsigned char data[EMU_MP_DATA];
	glex_ep_addr_t src;
	uint32_t len;

	memset(data, 0xee, sizeof(data));
	put_mp(5);
	ck_assert_int_eq(glex_receive_mp(&ep.pub, 0, &src, data, &len), GLEX_SUCCESS);
	ck_assert_uint_eq(src.v, 1005);
	ck_assert_uint_eq(len, 4);
	ck_assert_uint_eq(data[0], 5);
	ck_assert_uint_eq(data[4], 0xee);
}
END_TEST

START_TEST(probe_next__from_the_start__walks_to_the_end)
{
	put_mp(1);
	put_mp(2);
	ck_assert_uint_eq(probe_next(), 1);
	ck_assert_uint_eq(probe_next(), 2);
	ck_assert_uint_eq(probe_next(), NOTHING);
	put_mp(3);
	ck_assert_uint_eq(probe_next(), 3);
	ck_assert_uint_eq(head_of(&ep.mpq), 0);
}
END_TEST

START_TEST(probe_first__after_next__puts_the_cursor_back)
{
	for (uint32_t n = 1; n <= 3; n++)
		put_mp(n);
	ck_assert_uint_eq(probe_next(), 1);
	ck_assert_uint_eq(probe_next(), 2);
	ck_assert_uint_eq(probe_first(), 1);
	ck_assert_uint_eq(probe_first(), 1);
	ck_assert_uint_eq(probe_next(), 2);
}
END_TEST

START_TEST(discard__some_probed__frees_those_and_no_more)
{
	for (uint32_t n = 1; n <= 3; n++)
		put_mp(n);
	probe_first();
	probe_next();
	discard();
	ck_assert_uint_eq(head_of(&ep.mpq), 2);
	ck_assert_uint_eq(probe_first(), 3);
	ck_assert_uint_eq(atomic_load(&taken_mp), 2);
}
END_TEST

START_TEST(discard__nothing_probed__frees_nothing)
{
	put_mp(1);
	discard();
	discard();
	ck_assert_uint_eq(head_of(&ep.mpq), 0);
	ck_assert_uint_eq(receive(), 1);
}
END_TEST

START_TEST(receive__cursor_lags__takes_it_along)
{
	for (uint32_t n = 1; n <= 2; n++)
		put_mp(n);
	ck_assert_uint_eq(receive(), 1);
	ck_assert_uint_eq(probe_next(), 2);
}
END_TEST

START_TEST(receive__cursor_ahead__stays_ahead)
{
	for (uint32_t n = 1; n <= 4; n++)
		put_mp(n);
	probe_first();
	probe_next();
	probe_next();
	ck_assert_uint_eq(receive(), 1);
	ck_assert_uint_eq(probe_next(), 4);
	discard();
	ck_assert_uint_eq(head_of(&ep.mpq), 4);
}
END_TEST

START_TEST(probe__full_queue__shows_all)
{
	for (uint32_t n = 0; n < MPQ; n++)
		put_mp(n);
	for (uint32_t n = 0; n < MPQ; n++)
		ck_assert_uint_eq(probe_next(), n);
	ck_assert_uint_eq(probe_next(), NOTHING);
	discard();
	ck_assert_uint_eq(probe_first(), NOTHING);
}
END_TEST

/* ---- cursors and discarded slots ----------------------------------------- */

START_TEST(receive__leading_and_middle_discarded__gives_the_live_ones)
{
	die_in_mpq();
	put_mp(1);
	die_in_mpq();
	die_in_mpq();
	put_mp(2);
	die_in_mpq();
	ck_assert_uint_eq(receive(), 1);
	ck_assert_uint_eq(receive(), 2);
	ck_assert_uint_eq(receive(), NOTHING);
	ck_assert_uint_eq(head_of(&ep.mpq), 6);
	ck_assert_uint_eq(atomic_load(&taken_mp), 2);
}
END_TEST

START_TEST(probe__leading_and_middle_discarded__shows_the_live_ones)
{
	die_in_mpq();
	put_mp(1);
	die_in_mpq();
	put_mp(2);
	ck_assert_uint_eq(probe_first(), 1);
	ck_assert_uint_eq(probe_next(), 2);
	ck_assert_uint_eq(probe_next(), NOTHING);
	ck_assert_uint_eq(receive(), 1);
	ck_assert_uint_eq(atomic_load(&taken_mp), 1);
	discard();
	ck_assert_uint_eq(head_of(&ep.mpq), 4);
	ck_assert_uint_eq(atomic_load(&taken_mp), 2);
}
END_TEST

START_TEST(discard__a_discarded_one_follows__next_look_gives_it_back)
{
	put_mp(1);
	die_in_mpq();
	probe_first();
	discard();
	ck_assert_uint_eq(head_of(&ep.mpq), 1);
	ck_assert_uint_eq(probe_first(), NOTHING);
	ck_assert_uint_eq(head_of(&ep.mpq), 2);
}
END_TEST

START_TEST(queue__full_of_discarded__producers_get_room_after_a_look)
{
	for (uint32_t n = 0; n < MPQ; n++)
		die_in_mpq();
	ck_assert_uint_eq(receive(), NOTHING);
	for (uint32_t n = 0; n < MPQ; n++)
		put_mp(n);
	for (uint32_t n = 0; n < MPQ; n++)
		ck_assert_uint_eq(receive(), n);
}
END_TEST

/* ---- waiting ------------------------------------------------------------- */

#define SHORT 30 /* ms */

START_TEST(wait__nothing_comes__no_mp_in_time_and_not_before)
{
	int64_t begin = unit_now_ns();
	uint32_t len;
	void *data;

	ck_assert_int_eq(glex_probe_first_mp(&ep.pub, SHORT, NULL, &data, &len), GLEX_NO_MP);
	ck_assert_int_ge(unit_now_ns() - begin, SHORT * INT64_C(1000000));
}
END_TEST

/* A slot that never becomes an MP keeps no wait from sleeping, nor ending; but a busy machine may keep short ones. */
START_TEST(wait__only_discarded__sleeps_and_ends)
{
	uint32_t len, data;

	for (uint32_t n = 0; n < 50 && !atomic_load(&sleeps); n++) {
		die_in_mpq();
		die_in_mpq();
		ck_assert_int_eq(glex_receive_mp(&ep.pub, SHORT, NULL, &data, &len), GLEX_NO_MP);
		ck_assert_uint_eq(head_of(&ep.mpq), 2 * (n + 1));
	}
	ck_assert_uint_gt(atomic_load(&sleeps), 0);
}
END_TEST

static uint32_t naps;

static void die_then_send(void)
{
	if (++naps <= 3)
		die_in_mpq();
	else if (naps == 4)
		put_mp(42);
}

START_TEST(wait__discarded_while_asleep_then_live__gives_the_live_one)
{
	uint32_t len = 0, data = 0;

	on_sleep = die_then_send;
	ck_assert_int_eq(glex_receive_mp(&ep.pub, -1, NULL, &data, &len), GLEX_SUCCESS);
	ck_assert_uint_eq(data, 42);
	ck_assert_uint_eq(naps, 4);
	ck_assert_uint_eq(atomic_load(&sleeps), 4);
}
END_TEST

static void die_then_raise(void)
{
	if (++naps <= 3)
		die_in_eq();
	else if (naps == 4)
		put_event(42);
}

START_TEST(wait__event_behind_discarded__is_given)
{
	glex_event_t *event = NULL;

	on_sleep = die_then_raise;
	ck_assert_int_eq(glex_probe_first_event(&ep.pub, -1, &event), GLEX_SUCCESS);
	ck_assert_uint_eq(event->cookie_0, 42);
	ck_assert_uint_eq(atomic_load(&sleeps), 4);
}
END_TEST

static void lose_glexd(void)
{
	alive = false;
}

START_TEST(wait__glexd_dies_meanwhile__sys_err)
{
	uint32_t len;
	void *data;

	on_sleep = lose_glexd;
	ck_assert_int_eq(glex_probe_first_mp(&ep.pub, -1, NULL, &data, &len), GLEX_SYS_ERR);
	ck_assert_int_eq(glex_receive_mp(&ep.pub, 0, NULL, &data, &len), GLEX_SYS_ERR);
}
END_TEST

START_TEST(poll__glexd_died__is_noticed_after_many_empty_ones)
{
	uint32_t len, polls = 0;
	void *data;

	alive = false;
	while (glex_probe_first_mp(&ep.pub, 0, NULL, &data, &len) == GLEX_NO_MP)
		UNIT_CHECK(++polls < 1000000);
	ck_assert_int_eq(glex_probe_first_mp(&ep.pub, 0, NULL, &data, &len), GLEX_SYS_ERR);
}
END_TEST

START_TEST(receive__glexd_died__what_is_there_can_still_be_taken)
{
	put_mp(5);
	atomic_store(&dev.lost, GLEXI_LOST);
	ck_assert_uint_eq(receive(), 5);
}
END_TEST

/* ---- events -------------------------------------------------------------- */

START_TEST(event__probe_next_discard__as_mps)
{
	for (uint64_t n = 1; n <= 3; n++)
		put_event(n);
	ck_assert_uint_eq(first_event(), 1);
	ck_assert_uint_eq(first_event(), 1);
	ck_assert_uint_eq(next_event(), 2);
	ck_assert_int_eq(glex_discard_probed_event(&ep.pub), GLEX_SUCCESS);
	ck_assert_uint_eq(head_of(&ep.eq), 2);
	ck_assert_uint_eq(next_event(), 3);
	ck_assert_uint_eq(next_event(), NOTHING);
	ck_assert_uint_eq(atomic_load(&taken_events), 2);
}
END_TEST

START_TEST(event__discarded_among_live__are_stepped_over)
{
	die_in_eq();
	put_event(1);
	die_in_eq();
	put_event(2);
	ck_assert_uint_eq(first_event(), 1);
	ck_assert_uint_eq(next_event(), 2);
	glex_discard_probed_event(&ep.pub);
	die_in_eq();
	ck_assert_uint_eq(first_event(), NOTHING);
	ck_assert_uint_eq(head_of(&ep.eq), 5);
}
END_TEST

/* ---- error requests ------------------------------------------------------ */

static struct glex_err_req list[2 * ERR];

static uint32_t poll_errors(uint32_t room)
{
	uint32_t num = room;

	ck_assert_int_eq(glex_poll_error_req(&ep.pub, &num, list), GLEX_SUCCESS);
	return num;
}

START_TEST(poll_error__none__is_zero_and_leaves_the_list)
{
	list[0].data0 = 77;
	ck_assert_uint_eq(poll_errors(4), 0);
	ck_assert_uint_eq(list[0].data0, 77);
}
END_TEST

START_TEST(poll_error__one__has_every_field)
{
	put_error(5);
	ck_assert_uint_eq(poll_errors(4), 1);
	ck_assert_int_eq(list[0].op, GLEX_ERR_OP_RDMA_GET);
	ck_assert_int_eq(list[0].status, GLEX_ERR_STATUS_MMT);
	ck_assert_uint_eq(list[0].rmt_nic_id, 11);
	ck_assert_uint_eq(list[0].rmt_ep_num, 12);
	ck_assert_uint_eq(list[0].data0, 5);
	ck_assert_uint_eq(list[0].data1, 6);
	ck_assert_uint_eq(list[0].data2, 7);
}
END_TEST

START_TEST(poll_error__more_than_room__come_in_order_over_several_calls)
{
	for (uint64_t n = 0; n < 5; n++)
		put_error(n);
	ck_assert_uint_eq(poll_errors(2), 2);
	ck_assert_uint_eq(list[1].data0, 1);
	ck_assert_uint_eq(poll_errors(2), 2);
	ck_assert_uint_eq(list[0].data0, 2);
	ck_assert_uint_eq(poll_errors(2), 1);
	ck_assert_uint_eq(list[0].data0, 4);
	ck_assert_uint_eq(poll_errors(2), 0);
	ck_assert_uint_eq(head_of(&ep.err), 5);
}
END_TEST

START_TEST(poll_error__room_zero_or_huge__counts_and_takes_none)
{
	for (uint64_t n = 0; n < 3; n++)
		put_error(n);
	ck_assert_uint_eq(poll_errors(0), 3);
	ck_assert_uint_eq(poll_errors(4097), 3);
	ck_assert_uint_eq(poll_errors(UINT32_MAX), 3);
	ck_assert_uint_eq(poll_errors(4096), 3);
	ck_assert_uint_eq(poll_errors(0), 0);
}
END_TEST

START_TEST(poll_error__discarded_among_live__are_not_counted)
{
	die_in_err();
	put_error(1);
	die_in_err();
	put_error(2);
	die_in_err();
	ck_assert_uint_eq(poll_errors(0), 2);
	ck_assert_uint_eq(poll_errors(8), 2);
	ck_assert_uint_eq(list[0].data0, 1);
	ck_assert_uint_eq(list[1].data0, 2);
	ck_assert_uint_eq(poll_errors(8), 0);
	ck_assert_uint_eq(head_of(&ep.err), 5);
}
END_TEST

START_TEST(poll_error__only_discarded__is_zero_and_gives_them_back)
{
	uint32_t room = _i ? 4 : 0;

	for (uint32_t n = 0; n < ERR; n++)
		die_in_err();
	ck_assert_uint_eq(poll_errors(room), 0);
	ck_assert_uint_eq(head_of(&ep.err), ERR);
	put_error(1);
	ck_assert_uint_eq(poll_errors(4), 1);
}
END_TEST

/* ---- arguments ----------------------------------------------------------- */

START_TEST(calls__null_arguments__are_invalid)
{
	uint32_t len = 4;
	void *data;
	glex_event_t *event;

	put_error(1);
	ck_assert_int_eq(glex_probe_first_mp(NULL, 0, NULL, &data, &len), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_probe_first_mp(&ep.pub, 0, NULL, NULL, &len), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_probe_first_mp(&ep.pub, 0, NULL, &data, NULL), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_probe_next_mp(NULL, NULL, &data, &len), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_discard_probed_mp(NULL), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_receive_mp(&ep.pub, 0, NULL, NULL, &len), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_probe_first_event(NULL, 0, &event), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_probe_first_event(&ep.pub, 0, NULL), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_probe_next_event(&ep.pub, NULL), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_discard_probed_event(NULL), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_poll_error_req(NULL, &len, list), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_poll_error_req(&ep.pub, NULL, list), GLEX_INVALID_PARAM);
	ck_assert_int_eq(glex_poll_error_req(&ep.pub, &len, NULL), GLEX_INVALID_PARAM);
	ck_assert_uint_eq(len, 4);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, setup, teardown);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static void add_mpq(Suite *suite)
{
	TCase *find = add_case(suite, "find"), *cursors = add_case(suite, "cursors");

	tcase_add_test(find, find__empty__is_null_and_moves_nothing);
	tcase_add_test(find, find__live_slot__is_given_with_its_index);
	tcase_add_test(find, find__leading_discarded__steps_over_and_gives_nothing_back);
	tcase_add_test(find, find__only_discarded__gives_them_back);
	tcase_add_test(find, find__whole_queue_discarded__is_empty_afterwards);
	tcase_add_test(find, find__discarded_then_unpublished__gives_back_the_first_only);
	tcase_add_test(find, find__only_discarded_behind_a_probed_slot__gives_nothing_back);
	tcase_add_test(cursors, receive__several__come_in_order_and_are_given_back);
	tcase_add_test(cursors, receive__outputs__are_source_bytes_and_length);
	tcase_add_test(cursors, probe_next__from_the_start__walks_to_the_end);
	tcase_add_test(cursors, probe_first__after_next__puts_the_cursor_back);
	tcase_add_test(cursors, discard__some_probed__frees_those_and_no_more);
	tcase_add_test(cursors, discard__nothing_probed__frees_nothing);
	tcase_add_test(cursors, receive__cursor_lags__takes_it_along);
	tcase_add_test(cursors, receive__cursor_ahead__stays_ahead);
	tcase_add_test(cursors, probe__full_queue__shows_all);
	tcase_add_test(cursors, receive__leading_and_middle_discarded__gives_the_live_ones);
	tcase_add_test(cursors, probe__leading_and_middle_discarded__shows_the_live_ones);
	tcase_add_test(cursors, discard__a_discarded_one_follows__next_look_gives_it_back);
	tcase_add_test(cursors, queue__full_of_discarded__producers_get_room_after_a_look);
}

static void add_the_rest(Suite *suite)
{
	TCase *wait = add_case(suite, "wait"), *event = add_case(suite, "event"), *error = add_case(suite, "error");

	tcase_add_test(wait, wait__nothing_comes__no_mp_in_time_and_not_before);
	tcase_add_test(wait, wait__only_discarded__sleeps_and_ends);
	tcase_add_test(wait, wait__discarded_while_asleep_then_live__gives_the_live_one);
	tcase_add_test(wait, wait__event_behind_discarded__is_given);
	tcase_add_test(wait, wait__glexd_dies_meanwhile__sys_err);
	tcase_add_test(wait, poll__glexd_died__is_noticed_after_many_empty_ones);
	tcase_add_test(wait, receive__glexd_died__what_is_there_can_still_be_taken);
	tcase_add_test(event, event__probe_next_discard__as_mps);
	tcase_add_test(event, event__discarded_among_live__are_stepped_over);
	tcase_add_test(error, poll_error__none__is_zero_and_leaves_the_list);
	tcase_add_test(error, poll_error__one__has_every_field);
	tcase_add_test(error, poll_error__more_than_room__come_in_order_over_several_calls);
	tcase_add_test(error, poll_error__room_zero_or_huge__counts_and_takes_none);
	tcase_add_test(error, poll_error__discarded_among_live__are_not_counted);
	tcase_add_loop_test(error, poll_error__only_discarded__is_zero_and_gives_them_back, 0, 2);
	tcase_add_test(error, calls__null_arguments__are_invalid);
}

int main(void)
{
	Suite *suite = suite_create("queue");

	add_mpq(suite);
	add_the_rest(suite);
	return suite_run(suite);
}
