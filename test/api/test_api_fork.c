/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_fork.c - what a forked child may do with its parent's handles:
 * nothing; and with its own: everything.  Meanwhile the parent goes on.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/side.h"

static struct side parents;
static void *parents_memory;

static void every_post_fails(struct side *side)
{
	struct glex_imm_mp_req mp = {.rmt_ep_addr = side->card.addr, .data = "child", .len = 5};
	struct glex_imm_rdma_req imm = {.rmt_ep_addr = side->card.addr,
					.data = "child",
					.len = 5,
					.rmt_mh = side->card.mh,
					.rmt_key = side->card.key};
	struct glex_rdma_req req = rdma_between(side, &side->card, GLEX_RDMA_TYPE_PUT, 0, 8);

	RETURNS(glex_send_imm_mp(side->ep, &mp, NULL), GLEX_SYS_ERR);
	RETURNS(glex_imm_rdma(side->ep, &imm, NULL), GLEX_SYS_ERR);
	RETURNS(glex_rdma(side->ep, &req, NULL), GLEX_SYS_ERR);
	req.type = GLEX_RDMA_TYPE_GET;
	RETURNS(glex_rdma(side->ep, &req, NULL), GLEX_SYS_ERR);
}

static void every_call_fails(struct side *side)
{
	struct glex_ep_attr attr = {.num = GLEX_ANY_EP_NUM};
	struct glex_device_attr limits;
	unsigned char data[112];
	glex_mem_handle_t mh;
	glex_ep_handle_t ep;
	glex_event_t *event;
	glex_ep_addr_t addr;
	uint32_t len = 1;
	void *at;

	every_post_fails(side);
	RETURNS(glex_query_device(side->dev, &limits), GLEX_SYS_ERR);
	RETURNS(glex_create_ep(side->dev, &attr, &ep), GLEX_SYS_ERR);
	RETURNS(glex_query_ep(side->ep, &attr), GLEX_SYS_ERR);
	RETURNS(glex_get_ep_addr(side->ep, &addr), GLEX_SYS_ERR);
	RETURNS(glex_register_mem(side->ep, data, 1, 3, &mh), GLEX_SYS_ERR);
	RETURNS(glex_deregister_mem(side->ep, side->card.mh), GLEX_SYS_ERR);
	RETURNS(glex_receive_mp(side->ep, 0, NULL, data, &len), GLEX_SYS_ERR);
	RETURNS(glex_receive_mp(side->ep, -1, NULL, data, &len), GLEX_SYS_ERR);
	RETURNS(glex_probe_first_mp(side->ep, 10, NULL, &at, &len), GLEX_SYS_ERR);
	RETURNS(glex_probe_next_mp(side->ep, NULL, &at, &len), GLEX_SYS_ERR);
	RETURNS(glex_discard_probed_mp(side->ep), GLEX_SYS_ERR);
	RETURNS(glex_probe_first_event(side->ep, -1, &event), GLEX_SYS_ERR);
	RETURNS(glex_probe_next_event(side->ep, &event), GLEX_SYS_ERR);
	RETURNS(glex_discard_probed_event(side->ep), GLEX_SYS_ERR);
	RETURNS(glex_poll_error_req(side->ep, &len, NULL), GLEX_SYS_ERR);
	RETURNS(glex_alloc(side->dev, 4096, &at), GLEX_SYS_ERR);
	RETURNS(glex_free(side->dev, parents_memory), GLEX_SYS_ERR);
	RETURNS(glex_destroy_ep(side->ep), GLEX_SYS_ERR);
	RETURNS(glex_close_device(side->dev), GLEX_SYS_ERR);
}

static void child_of_a_client(int fd, void *arg)
{
	struct side own;
	struct card card;
	int kind = *(int *)arg;

	every_call_fails(&parents);
	side_open(&own, type_of(kind), 4096, is_mapped(kind));
	ck_assert_uint_ne(own.card.addr.v, parents.card.addr.v);
	every_call_fails(&parents);
	card = swap_cards(&own, fd);
	fill(own.buf, 4096, 5);
	rdma_done(&own, &card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	send_mp(&own, card.addr, "done", 4);
	expect_mp(own.ep, "thanks", 6);
	side_close(&own);
}

START_TEST(fork__child__sys_err_with_parents_handles_and_works_with_its_own)
{
	struct card card;
	struct peer peer;

	side_open(&parents, type_of(_i), 4096, is_mapped(_i));
	OK(glex_alloc(parents.dev, 4096, &parents_memory));
	/* what waits in the parent's queues is the parent's, whatever the child does */
	send_mp(&parents, parents.card.addr, "mine", 4);
	rdma_done(&parents, &parents.card, GLEX_RDMA_TYPE_PUT, 0, 8);
	peer = peer_start(child_of_a_client, &_i);
	card = swap_cards(&parents, peer.fd);
	expect_mp(parents.ep, "mine", 4);
	expect_mp(parents.ep, "done", 4);
	expect_filled(parents.buf, 4096, 5);
	send_mp(&parents, card.addr, "thanks", 6);
	peer_join(&peer);
	rdma_done(&parents, &parents.card, GLEX_RDMA_TYPE_GET, 0, 8);
	expect_no_error(parents.ep);
	OK(glex_free(parents.dev, parents_memory));
	side_close(&parents);
}
END_TEST

static void sleep_on(int fd, void *arg)
{
	(void)arg;
	meet(fd);
	meet(fd);
}

static void forks_and_dies(int fd, void *arg)
{
	struct side side;
	struct peer child;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	child = peer_start(sleep_on, NULL);
	meet(child.fd);
	swap_cards(&side, fd);
	say(fd, &child.pid, sizeof(child.pid));
	meet(fd);
	_exit(EXIT_SUCCESS); /* its child is alive, and holds whatever it inherited */
}

START_TEST(fork__parent_ends_child_lives_on__endpoint_is_gone)
{
	struct peer peer = peer_start(forks_and_dies, NULL);
	struct side side;
	struct card card;
	pid_t grandchild;

	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	card = swap_cards(&side, peer.fd);
	hear(peer.fd, &grandchild, sizeof(grandchild));
	meet(peer.fd);
	peer_join(&peer);
	UNTIL(({
		uint32_t num = 0;

		send_mp(&side, card.addr, "?", 1);
		OK(glex_poll_error_req(side.ep, &num, NULL));
		num != 0;
	}));
	side_close(&side);
}
END_TEST

/* ---- fork while other threads are in the library ------------------------------------------------ */

static _Atomic bool enough;

/* No word of Check's here: it allocates and writes, and that may have locks of its own. */
static void *post_without_pause(void *arg)
{
	struct side *side = arg;
	struct glex_imm_mp_req mp = {.rmt_ep_addr = side->card.addr, .data = "x", .len = 1};
	unsigned char data[112];
	uint32_t len;

	while (!enough) {
		glex_send_imm_mp(side->ep, &mp, NULL);
		glex_receive_mp(side->ep, 0, NULL, data, &len);
	}
	return NULL;
}

static void child_posts(int fd, void *arg)
{
	struct glex_imm_mp_req mp = {.rmt_ep_addr = parents.card.addr, .data = "child", .len = 5};
	unsigned char data[112];
	uint32_t len = 1;
	bool right = glex_send_imm_mp(parents.ep, &mp, NULL) == GLEX_SYS_ERR &&
		     glex_receive_mp(parents.ep, -1, NULL, data, &len) == GLEX_SYS_ERR &&
		     glex_discard_probed_mp(parents.ep) == GLEX_SYS_ERR;

	(void)fd;
	(void)arg;
	_exit(right ? EXIT_SUCCESS : EXIT_FAILURE);
}

START_TEST(fork__other_threads_post__child_finds_no_lock_taken)
{
	pthread_t thread[2];
	int i;

	side_open(&parents, (enum glex_ep_type)_i, 0, false);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, post_without_pause, &parents), 0);
	for (i = 0; i < 60; i++) {
		struct peer peer = peer_start(child_posts, NULL);

		peer_join(&peer);
	}
	enough = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	side_close(&parents);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fork");
	TCase *tc = tcase_create("fork");

	own_job("fork");
	tcase_add_loop_test(tc, fork__child__sys_err_with_parents_handles_and_works_with_its_own, 0, KINDS);
	tcase_add_test(tc, fork__parent_ends_child_lives_on__endpoint_is_gone);
	tcase_add_loop_test(tc, fork__other_threads_post__child_finds_no_lock_taken, 0, 3);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
