/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_kinds.c - each kind of endpoint up to its limit, and what stops one
 * before it: numbers, descriptors, memory.  All processes sit on one NIC.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/lib/side.h"

#define EMULATE_EPS   16384u
#define FIRST_EMULATE 40u

static struct glex_ep_attr tiny(uint32_t num)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_EMULATE, .num = num, .dq_capacity = 1};

	attr.mpq_capacity = attr.eq_capacity = 2;
	return attr;
}

/* ---- EMULATE ------------------------------------------------------------------------------------ */

/* Some 30 KiB of memory each, and a descriptor of glexd's.  Says why not all can be had. */
static bool may_have_all(void)
{
	struct rlimit limit;
	bool may;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	may = limit.rlim_max > EMULATE_EPS + 64 && sysconf(_SC_AVPHYS_PAGES) / 256 > 1024;
	if (!may)
		fprintf(stderr,
			"SKIPPED in part: %u endpoints take as many descriptors (ulimit -Hn is %llu) and a GiB of "
			"memory; 500 are tried, and that the next is refused is not\n",
			EMULATE_EPS, (unsigned long long)limit.rlim_max);
	return may;
}

static void expect_delivery(glex_ep_handle_t from, glex_ep_handle_t to, uint32_t value)
{
	glex_imm_mp_req_t req = {.data = &value, .len = sizeof(value)};

	OK(glex_get_ep_addr(to, &req.rmt_ep_addr));
	OK(glex_send_imm_mp(from, &req, NULL));
	expect_mp(to, &value, sizeof(value));
}

/* Creates until refused, or `most`; how many it has become. */
static uint32_t create_all(glex_device_handle_t dev, glex_ep_handle_t *ep, uint32_t most)
{
	uint32_t n;

	for (n = 0; n < most; n++) {
		struct glex_ep_attr attr = tiny(GLEX_ANY_EP_NUM);
		glex_ret_t ret = glex_create_ep(dev, &attr, &ep[n]);

		if (ret != GLEX_SUCCESS) {
			RETURNS(ret, GLEX_NO_EP_RESOURCE);
			break;
		}
	}
	return n;
}

START_TEST(emulate__as_many_as_the_nic_has__each_works_and_one_more_is_refused)
{
	static glex_ep_handle_t ep[EMULATE_EPS + 1];
	struct glex_ep_attr attr;
	glex_device_handle_t dev;
	uint32_t n, i;

	OK(glex_open_device(0, &dev));
	if (may_have_all()) {
		n = create_all(dev, ep, EMULATE_EPS + 1);
		ck_assert_uint_eq(n, EMULATE_EPS);
	} else {
		n = create_all(dev, ep, 500);
		ck_assert_uint_gt(n, 100);
	}
	for (i = 0; i < n; i += 97) {
		OK(glex_query_ep(ep[i], &attr));
		ck_assert_uint_eq(attr.num, FIRST_EMULATE + i);
		expect_delivery(ep[n - 1 - i], ep[i], i);
	}
	OK(glex_destroy_ep(ep[n / 2]));
	attr = tiny(GLEX_ANY_EP_NUM);
	OK(glex_create_ep(dev, &attr, &ep[n / 2]));
	OK(glex_query_ep(ep[n / 2], &attr));
	ck_assert_uint_eq(attr.num, FIRST_EMULATE + n / 2);
	expect_delivery(ep[0], ep[n / 2], n);
	for (i = 0; i < n; i++)
		OK(glex_destroy_ep(ep[i]));
	OK(glex_close_device(dev));
}
END_TEST

static void have_thousands(int fd, void *arg)
{
	glex_device_handle_t dev;
	glex_ep_handle_t ep;
	uint32_t i;

	(void)arg;
	OK(glex_open_device(0, &dev));
	for (i = 0; i < 4000; i++) {
		struct glex_ep_attr attr = tiny(FIRST_EMULATE + i);

		OK(glex_create_ep(dev, &attr, &ep));
	}
	meet(fd);
	meet(fd);
}

START_TEST(emulate__owner_of_thousands_dies__all_numbers_are_free_again)
{
	struct glex_ep_attr attr = tiny(FIRST_EMULATE + 3999);
	struct peer peer = peer_start(have_thousands, NULL);
	glex_device_handle_t dev;
	glex_ep_handle_t ep;

	OK(glex_open_device(0, &dev));
	meet(peer.fd);
	RETURNS(glex_create_ep(dev, &attr, &ep), GLEX_NO_EP_RESOURCE);
	peer_kill(&peer);
	UNTIL(glex_create_ep(dev, &attr, &ep) == GLEX_SUCCESS);
	OK(glex_destroy_ep(ep));
	attr = tiny(FIRST_EMULATE);
	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_destroy_ep(ep));
	OK(glex_close_device(dev));
}
END_TEST

/* ---- descriptors --------------------------------------------------------------------------------- */

START_TEST(create_ep__glexd_without_descriptors__refused_until_one_is_destroyed)
{
	static glex_ep_handle_t ep[EMULATE_EPS + 1];
	struct rlimit few = {.rlim_cur = 64, .rlim_max = 64};
	struct glex_ep_attr attr = tiny(GLEX_ANY_EP_NUM);
	glex_device_handle_t dev;
	uint32_t n, i;

	own_job("kinds-few"); /* a glexd that nobody has started yet: it has our limit */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	OK(glex_open_device(0, &dev));
	n = create_all(dev, ep, EMULATE_EPS + 1);
	ck_assert_uint_gt(n, 16);
	ck_assert_uint_lt(n, 64);
	expect_delivery(ep[0], ep[n - 1], 5);
	OK(glex_destroy_ep(ep[n - 1]));
	OK(glex_create_ep(dev, &attr, &ep[n - 1]));
	expect_delivery(ep[0], ep[n - 1], 6);
	for (i = 0; i < n; i++)
		OK(glex_destroy_ep(ep[i]));
	OK(glex_close_device(dev));
}
END_TEST

/* Takes every descriptor that is left; *last_p: the highest. */
static int take_descriptors(int *last_p)
{
	struct rlimit few = {.rlim_cur = 64};
	int first = -1, fd;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
	few.rlim_cur = 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) >= 0) {
		first = first < 0 ? fd : first;
		*last_p = fd;
	}
	return first;
}

START_TEST(create_ep__process_without_descriptors__refused_and_the_number_stays_free)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = 5};
	glex_device_handle_t dev;
	glex_ep_handle_t ep;
	int first, last = -1;

	OK(glex_open_device(0, &dev));
	first = take_descriptors(&last);
	RETURNS(glex_create_ep(dev, &attr, &ep), GLEX_NO_EP_RESOURCE);
	close_range((unsigned)first, (unsigned)last, 0);
	ck_assert_int_ge(dup(STDERR_FILENO), 0);
	OK(glex_open_device(0, &dev));
	OK(glex_create_ep(dev, &attr, &ep));
	expect_delivery(ep, ep, 1);
	OK(glex_destroy_ep(ep));
}
END_TEST

/* ---- numbers ------------------------------------------------------------------------------------- */

static void hold_numbers(int fd, void *arg)
{
	static const struct glex_ep_attr want[] = {
		{.type = GLEX_EP_TYPE_FAST, .num = 6},
		{.type = GLEX_EP_TYPE_NORMAL, .num = 8},
		{.type = GLEX_EP_TYPE_EMULATE, .num = FIRST_EMULATE},
	};
	glex_device_handle_t dev;
	glex_ep_handle_t ep[3];
	int i;

	(void)arg;
	OK(glex_open_device(0, &dev));
	for (i = 0; i < 3; i++) {
		struct glex_ep_attr attr = want[i];

		OK(glex_create_ep(dev, &attr, &ep[i]));
	}
	meet(fd);
	meet(fd);
	for (i = 0; i < 3; i++)
		OK(glex_destroy_ep(ep[i]));
	meet(fd);
	OK(glex_close_device(dev));
}

START_TEST(create_ep__number_of_another_process_on_the_nic__refused_until_it_is_destroyed)
{
	static const uint32_t num[] = {[GLEX_EP_TYPE_FAST] = 6, [GLEX_EP_TYPE_NORMAL] = 8, [GLEX_EP_TYPE_EMULATE] = 40};
	struct glex_ep_attr attr = {.type = (enum glex_ep_type)_i, .num = num[_i]}, any = attr, real;
	struct peer peer = peer_start(hold_numbers, NULL);
	glex_device_handle_t dev;
	glex_ep_handle_t ep, other;

	OK(glex_open_device(0, &dev));
	meet(peer.fd);
	RETURNS(glex_create_ep(dev, &attr, &ep), GLEX_NO_EP_RESOURCE);
	any.num = GLEX_ANY_EP_NUM;
	OK(glex_create_ep(dev, &any, &other));
	OK(glex_query_ep(other, &real));
	ck_assert_uint_ne(real.num, num[_i]);
	meet(peer.fd);
	meet(peer.fd);
	OK(glex_create_ep(dev, &attr, &ep));
	OK(glex_destroy_ep(ep));
	OK(glex_destroy_ep(other));
	OK(glex_close_device(dev));
	peer_join(&peer);
}
END_TEST

/* ---- NORMAL -------------------------------------------------------------------------------------- */

START_TEST(normal__error_found_after_the_last_post__told_when_the_endpoint_goes)
{
	char path[] = "/tmp/glex-kinds-XXXXXX", text[4096] = "";
	int fd = mkstemp(path);
	struct glex_rdma_req req;
	struct side side;

	ck_assert_int_ge(fd, 0);
	setenv("GLEX_LOG_FILE", path, 1);
	side_open(&side, GLEX_EP_TYPE_NORMAL, 64, false);
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	req.rmt_key++;
	post_rdma(side.ep, &req);
	side_close(&side);
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	ck_assert_msg(strstr(text, "came to nothing"), "%s", text);
	unlink(path);
	close(fd);
}
END_TEST

START_TEST(normal__glexd_stopped_with_requests_queued__destroyed_all_the_same)
{
	struct glex_rdma_req req;
	struct side side;
	int64_t start;

	own_job("kinds-stopped");
	side_open(&side, GLEX_EP_TYPE_NORMAL, 64, false);
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	glexd_stop();
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	post_rdma(side.ep, &req);
	start = now_ns();
	OK(glex_destroy_ep(side.ep));
	ck_assert_int_lt(now_ns() - start, INT64_C(60000000000)); /* eleven seconds of its own */
	OK(glex_close_device(side.dev));
	free(side.buf);
	glexd_go_on();
}
END_TEST

/* ---- high-capacity queues, full ------------------------------------------------------------------- */

#define MPS    (1u << 20)
#define EVENTS (4u << 20)

START_TEST(high_capacity__mpq_filled_to_its_limit__holds_each_mp_and_refuses_the_next)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST,
				    .mpq_type = GLEX_MPQ_TYPE_HIGH_CAPACITY,
				    .num = GLEX_ANY_EP_NUM,
				    .mpq_capacity = MPS};
	struct side side;
	uint32_t i, got, len;

	side_open_as(&side, &attr, 0, false);
	for (i = 0; i < MPS; i++)
		send_mp(&side, side.card.addr, &i, sizeof(i));
	expect_no_error(side.ep);
	send_mp(&side, side.card.addr, &i, sizeof(i));
	expect_error(side.ep, GLEX_ERR_OP_IMM_MP, GLEX_ERR_STATUS_DEST_MPQ_FULL);
	for (i = 0; i < MPS; i++) {
		if (glex_receive_mp(side.ep, 0, NULL, &got, &len) != GLEX_SUCCESS || got != i)
			ck_abort_msg("MP %u is not in its place", i);
	}
	RETURNS(glex_receive_mp(side.ep, 0, NULL, &got, &len), GLEX_NO_MP);
	side_close(&side);
}
END_TEST

START_TEST(high_capacity__eq_filled_to_its_limit__holds_each_event_and_refuses_the_next)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST,
				    .eq_type = GLEX_EQ_TYPE_HIGH_CAPACITY,
				    .num = GLEX_ANY_EP_NUM,
				    .key = 9,
				    .eq_capacity = EVENTS};
	struct glex_imm_rdma_req req = {.rmt_key = 9, .flag = GLEX_FLAG_REMOTE_EVT, .rmt_evt = {.cookie_1 = 1}};
	glex_event_t *event;
	struct side side;
	uint32_t i;

	side_open_as(&side, &attr, 64, false);
	req.rmt_ep_addr = side.card.addr;
	req.rmt_mh = side.card.mh;
	for (i = 0; i < EVENTS; i++) {
		req.rmt_evt.cookie_0 = i;
		if (glex_imm_rdma(side.ep, &req, NULL) != GLEX_SUCCESS)
			ck_abort_msg("event %u was not taken", i);
	}
	expect_no_error(side.ep);
	post_imm(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, GLEX_ERR_STATUS_DEST_EQ_FULL);
	OK(glex_probe_first_event(side.ep, 0, &event));
	for (i = 0; i < EVENTS; i++) {
		if (event->cookie_0 != i)
			ck_abort_msg("event %u is not in its place", i);
		if (glex_probe_next_event(side.ep, &event) != GLEX_SUCCESS)
			break;
	}
	ck_assert_uint_eq(i, EVENTS - 1);
	OK(glex_discard_probed_event(side.ep));
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kinds");
	TCase *tc = tcase_create("kinds");

	own_job("kinds");
	setenv("GLEX_NODE", "0", 1);
	tcase_set_timeout(tc, 400); /* thousands of endpoints, on a machine that may have other things to do */
	tcase_add_test(tc, emulate__as_many_as_the_nic_has__each_works_and_one_more_is_refused);
	tcase_add_test(tc, emulate__owner_of_thousands_dies__all_numbers_are_free_again);
	tcase_add_test(tc, create_ep__glexd_without_descriptors__refused_until_one_is_destroyed);
	tcase_add_test(tc, create_ep__process_without_descriptors__refused_and_the_number_stays_free);
	tcase_add_loop_test(tc, create_ep__number_of_another_process_on_the_nic__refused_until_it_is_destroyed, 0, 3);
	tcase_add_test(tc, normal__error_found_after_the_last_post__told_when_the_endpoint_goes);
	tcase_add_test(tc, normal__glexd_stopped_with_requests_queued__destroyed_all_the_same);
	tcase_add_test(tc, high_capacity__mpq_filled_to_its_limit__holds_each_mp_and_refuses_the_next);
	tcase_add_test(tc, high_capacity__eq_filled_to_its_limit__holds_each_event_and_refuses_the_next);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
