/* SPDX-License-Identifier: BSD-2-Clause */
/* helper.c - see helper.h. */
#include "test/lib/helper.h"

#include <string.h>

#include "test/lib/seccomp.h"

static void act(struct side *side, const struct order *order, struct report *report)
{
	struct glex_rdma_req req = rdma_between(
		side, &order->target, order->act == PUT ? GLEX_RDMA_TYPE_PUT : GLEX_RDMA_TYPE_GET, 0, order->len);
	glex_event_t *event;
	uint32_t num = 0;

	memset(report, 0, sizeof(*report));
	fill(side->buf, order->len, order->act == PUT ? order->seed : order->seed + 1);
	req.rmt_offset = order->offset;
	req.flag = GLEX_FLAG_LOCAL_EVT;
	req.local_evt.cookie_1 = 1;
	post_rdma(side->ep, &req);
	UNTIL(glex_probe_first_event(side->ep, 0, &event) == GLEX_SUCCESS ||
	      (glex_poll_error_req(side->ep, (num = 0, &num), NULL) == GLEX_SUCCESS && num > 0));
	if (num > 0) {
		report->failed = true;
		report->status = take_error(side->ep).status;
		return;
	}
	OK(glex_discard_probed_event(side->ep));
	if (order->act == GET)
		expect_filled(side->buf, order->len, order->seed);
}

void helper_main(int fd, void *arg)
{
	const struct helper *helper = arg;
	struct report report;
	struct order order;
	struct side side;

	side_open(&side, helper->type, 1 << 20, true);
	if (!helper->may_attach)
		ck_assert_int_eq(forbid_attach(), 0);
	for (;;) {
		hear(fd, &order, sizeof(order));
		if (order.act == END)
			break;
		act(&side, &order, &report);
		say(fd, &report, sizeof(report));
	}
	side_close(&side);
}

struct helper mapper = {GLEX_EP_TYPE_FAST, false};
struct helper mover = {GLEX_EP_TYPE_FAST, true};
struct helper engine = {GLEX_EP_TYPE_NORMAL, true};

struct report tell(const struct peer *peer, const struct side *side, glex_mem_handle_t mh, enum act what,
		   uint32_t offset, uint32_t len, uint32_t seed)
{
	struct order order = {what, side->card, offset, len, seed};
	struct report report;

	order.target.mh = mh;
	say(peer->fd, &order, sizeof(order));
	hear(peer->fd, &report, sizeof(report));
	return report;
}

void let_go(struct peer *peer)
{
	struct order order = {.act = END};

	say(peer->fd, &order, sizeof(order));
	peer_join(peer);
}

void expect_reached(const struct peer *peer, const struct side *side, glex_mem_handle_t mh, unsigned char *base,
		    uint32_t offset, uint32_t len)
{
	ck_assert(!tell(peer, side, mh, PUT, offset, len, len).failed);
	expect_filled(base + offset, len, len);
	fill(base + offset, len, len + 9);
	ck_assert(!tell(peer, side, mh, GET, offset, len, len + 9).failed);
}

void expect_refusal(const struct peer *peer, const struct side *side, glex_mem_handle_t mh, enum act what, uint32_t len,
		    enum glex_err_req_status status)
{
	struct report report = tell(peer, side, mh, what, 0, len, 1);

	ck_assert(report.failed);
	ck_assert_str_eq(glex_error_req_status_str(report.status), glex_error_req_status_str(status));
}
