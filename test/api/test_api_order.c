/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_order.c - what may be relied on without asking: MPs and PUTs of one
 * pair in the order posted; the last bytes of a PUT last; FENCE; and that all
 * of it goes on while neither side makes a call.
 */
#include <stdlib.h>
#include <string.h>

#include "test/lib/seccomp.h"
#include "test/lib/side.h"

/* ---- MPs of several senders ---------------------------------------------------------------- */

#define SENDERS 3
#define MPS	4000
#define CREDIT	500

static void numbered_mps(int fd, void *arg)
{
	struct side side;
	struct card card;
	uint32_t word[2] = {0, 0};

	side_open(&side, (enum glex_ep_type)(*(int *)arg), 64, false);
	card = swap_cards(&side, fd);
	for (word[1] = 0; word[1] < MPS; word[1]++) {
		word[0] = side.card.pid;
		send_mp(&side, card.addr, word, sizeof(word));
		if (word[1] % CREDIT == CREDIT - 1)
			expect_mp(side.ep, "credit", 6);
	}
	expect_no_error(side.ep);
	meet(fd);
	side_close(&side);
}

static int index_of(const struct peer *peer, uint32_t pid)
{
	int i;

	for (i = 0; i < SENDERS; i++)
		if ((uint32_t)peer[i].pid == pid)
			return i;
	ck_abort_msg("an MP of nobody");
	return -1;
}

START_TEST(order__mps_of_each_pair__as_posted_under_load)
{
	struct peer peer[SENDERS];
	uint32_t next[SENDERS] = {0}, word[28], len, n;
	glex_ep_addr_t src;
	struct side side;
	int i;

	for (i = 0; i < SENDERS; i++)
		peer[i] = peer_start(numbered_mps, &_i);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	for (i = 0; i < SENDERS; i++)
		swap_cards(&side, peer[i].fd);
	for (n = 0; n < SENDERS * MPS; n++) {
		OK(glex_receive_mp(side.ep, WAIT_MS, &src, word, &len));
		ck_assert_uint_eq(len, 8);
		i = index_of(peer, word[0]);
		ck_assert_uint_eq(word[1], next[i]);
		next[i]++;
		if (next[i] % CREDIT == 0)
			send_mp(&side, src, "credit", 6);
	}
	for (i = 0; i < SENDERS; i++) {
		meet(peer[i].fd);
		peer_join(&peer[i]);
	}
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- PUTs, and PUT then MP, PUT then event --------------------------------------------------- */

#define PUTS 300
#define CELL 512

static void numbered_puts(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct side side;
	struct card card;
	uint32_t i;

	side_open(&side, type_of(kind), PUTS * CELL, is_mapped(kind));
	card = swap_cards(&side, fd);
	for (i = 0; i < PUTS; i++) {
		struct glex_rdma_req req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, i * CELL, i % CELL + 1);

		memset(side.buf + i * CELL, (int)(i % 255 + 1), i % CELL + 1);
		if (i % 3 == 0) {
			req.flag = GLEX_FLAG_REMOTE_EVT;
			req.rmt_evt.cookie_0 = i;
			req.rmt_evt.cookie_1 = 1;
		}
		post_rdma(side.ep, &req);
		if (i % 3 == 1)
			send_mp(&side, card.addr, &i, sizeof(i));
	}
	meet(fd);
	expect_no_error(side.ep);
	side_close(&side);
}

static void expect_cell(const struct side *side, uint32_t i)
{
	uint32_t j;

	for (j = 0; j <= i % CELL; j++)
		ck_assert_uint_eq(side->buf[i * CELL + j], i % 255 + 1);
}

START_TEST(order__put_then_mp_or_event__all_earlier_data_is_there)
{
	struct peer peer = peer_start(numbered_puts, &_i);
	struct side side;
	uint32_t i, n, len;
	unsigned char data[112];

	side_open(&side, GLEX_EP_TYPE_FAST, PUTS * CELL, is_mapped(_i));
	swap_cards(&side, peer.fd);
	for (i = 0; i < PUTS; i++) {
		if (i % 3 == 0) {
			ck_assert_uint_eq(take_event(side.ep).cookie_0, i);
		} else if (i % 3 == 1) {
			OK(glex_receive_mp(side.ep, WAIT_MS, NULL, data, &len));
			memcpy(&n, data, sizeof(n));
			ck_assert_uint_eq(n, i);
		} else {
			continue;
		}
		expect_cell(&side, i);
		if (i > 0)
			expect_cell(&side, i - 1);
	}
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- polling memory: the last bytes last ------------------------------------------------------ */

#define AREA (300 * 1024)

struct poll_case {
	uint32_t offset; /* of the PUT in the area; the word polled is its last one */
	uint32_t len;
	uint32_t word;
	uint32_t rounds;
	bool imm;
};

/* Lengths around the limits of how things are copied, ends on every alignment. */
static const struct poll_case cases[] = {
	{0, 8, 8, 20, false},	   {0, 12, 4, 20, false},    {8, 64, 8, 20, false},	{4, 20, 4, 20, false},
	{0, 96, 8, 20, true},	   {4, 96, 4, 20, true},     {0, 128, 8, 20, false},	{0, 136, 8, 20, false},
	{4, 1000, 4, 20, false},   {2, 4094, 4, 20, false},  {7, 4097, 8, 20, false},	{16, 65536, 8, 10, false},
	{12, 100004, 4, 8, false}, {2, 200006, 8, 8, false}, {64, 262144, 8, 8, false}, {5, 13, 2, 20, false},
	{0, 33, 1, 20, false},
};

#define CASES ((int)(sizeof(cases) / sizeof(cases[0])))

/* Round r fills everything with its number, in each byte. */
static unsigned char mark(uint32_t round)
{
	return (unsigned char)(round % 200 + 1);
}

static void put_round(struct side *side, const struct card *card, const struct poll_case *c, uint32_t round)
{
	struct glex_rdma_req req = rdma_between(side, card, GLEX_RDMA_TYPE_PUT, c->offset, c->len);
	struct glex_imm_rdma_req imm = {.len = c->len, .rmt_offset = c->offset};
	unsigned char data[96];

	if (c->imm) {
		memset(data, mark(round), c->len);
		imm.rmt_ep_addr = card->addr;
		imm.rmt_mh = card->mh;
		imm.rmt_key = card->key;
		imm.data = data;
		post_imm(side->ep, &imm);
	} else {
		memset(side->buf + c->offset, mark(round), c->len);
		post_rdma(side->ep, &req);
	}
}

static void rounds_of_puts(int fd, void *arg)
{
	int i, kind = *(int *)arg & 3, theirs = *(int *)arg >> 2;
	struct side side;
	struct card card;
	uint32_t round;

	(void)theirs;
	side_open(&side, type_of(kind), AREA, is_mapped(kind));
	card = swap_cards(&side, fd);
	for (i = 0; i < CASES; i++)
		for (round = 1; round <= cases[i].rounds; round++) {
			put_round(&side, &card, &cases[i], round);
			meet(fd); /* it has been seen */
		}
	expect_no_error(side.ep);
	side_close(&side);
}

static bool word_is(const unsigned char *at, uint32_t word, unsigned char value)
{
	uint64_t want = UINT64_C(0x0101010101010101) * value, got = 0;

	switch (word) {
	case 8:
		got = __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
		return got == want;
	case 4:
		got = __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
		return got == (uint32_t)want;
	case 2:
		got = __atomic_load_n((const uint16_t *)(const void *)at, __ATOMIC_ACQUIRE);
		return got == (uint16_t)want;
	default:
		return __atomic_load_n(at, __ATOMIC_ACQUIRE) == value;
	}
}

/* The target, which makes no GLEX call, polls the trailing word and then looks at every byte. */
START_TEST(order__target_polls_the_trailing_word__all_bytes_before_are_there)
{
	struct peer peer = peer_start(rounds_of_puts, &_i);
	struct side side;
	uint32_t round, j;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, AREA, _i >> 2);
	swap_cards(&side, peer.fd);
	for (i = 0; i < CASES; i++) {
		const struct poll_case *c = &cases[i];
		unsigned char *area = side.buf + c->offset, *last = area + c->len - c->word;

		ck_assert_uint_eq((uintptr_t)last % c->word, 0);
		for (round = 1; round <= c->rounds; round++) {
			UNTIL(word_is(last, c->word, mark(round)));
			for (j = 0; j < c->len; j++)
				if (area[j] != mark(round))
					ck_abort_msg("case %d, round %u: byte %u of %u is of round %u", i, round, j,
						     c->len, area[j]);
			meet(peer.fd);
		}
	}
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- FENCE ------------------------------------------------------------------------------------ */

static void fenced(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct side side;
	struct card card;
	uint64_t i;

	side_open(&side, type_of(kind), 1 << 20, is_mapped(kind));
	card = swap_cards(&side, fd);
	for (i = 1; i <= 20; i++) {
		struct glex_rdma_req get = rdma_between(&side, &card, GLEX_RDMA_TYPE_GET, 0, 1 << 20);
		struct glex_rdma_req put = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, (1 << 20) - 8, 8);

		/* the PUT sends what the GET before it fetched */
		get.next = &put;
		put.rmt_offset = 0;
		put.flag = GLEX_FLAG_FENCE | GLEX_FLAG_REMOTE_EVT | GLEX_FLAG_LOCAL_EVT;
		put.rmt_evt.cookie_1 = put.local_evt.cookie_1 = i;
		post_rdma(side.ep, &get);
		ck_assert_uint_eq(take_event(side.ep).cookie_1, i);
		meet(fd);
	}
	expect_no_error(side.ep);
	side_close(&side);
}

START_TEST(fence__put_of_what_a_get_fetched__sends_the_new_value)
{
	struct peer peer = peer_start(fenced, &_i);
	struct side side;
	uint64_t i, got;

	side_open(&side, GLEX_EP_TYPE_FAST, 1 << 20, is_mapped(_i));
	memset(side.buf + (1 << 20) - 8, 1, 8);
	swap_cards(&side, peer.fd);
	for (i = 1; i <= 20; i++) {
		ck_assert_uint_eq(take_event(side.ep).cookie_1, i);
		memcpy(&got, side.buf, 8);
		ck_assert_uint_eq(got, UINT64_C(0x0101010101010101) * i);
		memset(side.buf + (1 << 20) - 8, (int)i + 1, 8);
		meet(peer.fd);
	}
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- a queue that one sender has to itself -------------------------------------------------- */

#define TURNS 6

/* The second one comes when the first has sent, and cannot make it order its memory. */
static void send_in_turn(int fd, void *arg)
{
	uint32_t me = *(uint32_t *)arg, word[2] = {me, 0};
	struct side side;
	struct card card;

	if (me == 1) {
		ck_assert_int_eq(forbid_membarrier(), 0);
		meet(fd);
	}
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	card = swap_cards(&side, fd);
	for (uint32_t turn = me; turn < TURNS; turn += 2) {
		meet(fd);
		for (int i = 0; i < 100; i++, word[1]++)
			send_mp(&side, card.addr, word, sizeof(word));
	}
	meet(fd);
	expect_no_error(side.ep);
	side_close(&side);
}

START_TEST(queue_of_one_sender__another_without_membarrier_comes__both_go_on)
{
	uint32_t who[2] = {0, 1}, word[2] = {0, 0}, next[2] = {0, 0};
	struct peer peer[2];
	struct side side;

	for (int i = 0; i < 2; i++)
		peer[i] = peer_start(send_in_turn, &who[i]);
	side_open(&side, GLEX_EP_TYPE_FAST, 64, false);
	swap_cards(&side, peer[0].fd);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		word[0] = turn % 2;
		if (turn == 1) {
			meet(peer[1].fd);
			swap_cards(&side, peer[1].fd);
		}
		meet(peer[word[0]].fd);
		for (int i = 0; i < 100; i++) {
			word[1] = next[word[0]]++;
			expect_mp(side.ep, word, sizeof(word));
		}
	}
	for (int i = 0; i < 2; i++) {
		meet(peer[i].fd);
		peer_join(&peer[i]);
	}
	side_close(&side);
}
END_TEST

/* ---- overlap ------------------------------------------------------------------------------------ */

#define LONG (64u << 20)

static volatile uint64_t sink;

static void compute_for_ever(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct glex_rdma_req req;
	struct side side;
	struct card card;

	side_open(&side, type_of(kind), LONG, is_mapped(kind));
	card = swap_cards(&side, fd);
	memset(side.buf, 0x77, LONG);
	rdma_done(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 8); /* both have met */
	meet(fd);
	meet(fd); /* glexd is stopped */
	req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 8, LONG - 8);
	OK(glex_rdma(side.ep, &req, NULL));
	meet(fd); /* posted */
	for (;;)  /* no call of any kind, until killed */
		sink++;
}

START_TEST(normal_endpoint__long_put__complete_though_the_poster_only_computes)
{
	int kind = NORMAL_PRIVATE + _i % 2;
	struct peer peer = peer_start(compute_for_ever, &kind);
	struct side side;
	uint32_t j;

	side_open(&side, GLEX_EP_TYPE_FAST, LONG, _i / 2);
	swap_cards(&side, peer.fd);
	meet(peer.fd);
	glexd_stop();
	meet(peer.fd);
	meet(peer.fd);
	/* The call has returned, and of what it posted nothing has moved: that is left to glexd. */
	for (j = 8; j < LONG; j += 4088)
		SURE(side.buf[j] == 0);
	ck_assert(word_is(side.buf + LONG - 8, 8, 0));
	glexd_go_on();
	UNTIL(word_is(side.buf + LONG - 8, 8, 0x77));
	for (j = 0; j < LONG; j += 4093)
		SURE(side.buf[j] == 0x77);
	peer_kill(&peer);
	side_close(&side);
}
END_TEST

/* ---- the same request again, for which the endpoint knows a shorter way -------------------------- */

#define AGAIN 4096u

/* PUTs of `len` bytes from offset `from` of one region to `to` of another, or of the same, four times each. */
static void put_again(struct side *side, glex_mem_handle_t mh, unsigned char *there, uint32_t from, uint32_t to,
		      uint32_t len)
{
	struct glex_rdma_req req = rdma_between(side, &side->card, GLEX_RDMA_TYPE_PUT, 0, len);
	unsigned char expected[3 * AGAIN];

	req.flag = 0;
	req.rmt_mh = mh;
	req.local_offset = from;
	req.rmt_offset = to;
	for (uint32_t turn = 0; turn < 4; turn++) {
		for (uint32_t i = 0; i < sizeof(expected); i++)
			side->buf[i] = (unsigned char)(i * 7 + i / 251 + turn + len);
		if (there != side->buf)
			memset(there, 0x5a, sizeof(expected));
		memcpy(expected, there, sizeof(expected));
		memmove(expected + to, side->buf + from, len);
		OK(glex_rdma(side->ep, &req, NULL));
		ck_assert_mem_eq(there, expected, sizeof(expected));
	}
}

/* For so long that glexd, which is new, has found its ways to copy before the end. */
START_TEST(rdma__same_lengths_again__those_bytes_wherever_they_lie)
{
	static const uint32_t len[] = {8, 96, 136, 1000, 1024, 1027, 4096, 4096, 1024};
	const uint32_t lens = sizeof(len) / sizeof(len[0]);
	int64_t until = now_ns() + 1000000000;
	glex_mem_handle_t mh;
	struct side side;
	void *other;

	side_open(&side, GLEX_EP_TYPE_FAST, sizeof(unsigned char[3 * AGAIN]), true);
	OK(glex_alloc(side.dev, 3 * AGAIN, &other));
	OK(glex_register_mem(side.ep, other, 3 * AGAIN, GLEX_MEM_READ | GLEX_MEM_WRITE, &mh));
	for (uint32_t i = 0; i % lens != 0 || now_ns() < until; i++) {
		put_again(&side, mh, other, 0, 0, len[i % lens]);
		put_again(&side, mh, other, 64, 4099, len[i % lens]); /* ends where no word does */
		put_again(&side, mh, other, 3, 4096, len[i % lens]);
		put_again(&side, side.card.mh, side.buf, 0, 512, len[i % lens]); /* over itself, up and down */
		put_again(&side, side.card.mh, side.buf, 512, 8, len[i % lens]);
	}
	OK(glex_deregister_mem(side.ep, mh));
	OK(glex_free(side.dev, other));
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("order");
	TCase *tc = tcase_create("order");

	own_job("order");
	tcase_add_loop_test(tc, order__mps_of_each_pair__as_posted_under_load, 0, 3);
	tcase_add_loop_test(tc, order__put_then_mp_or_event__all_earlier_data_is_there, 0, KINDS);
	tcase_add_loop_test(tc, order__target_polls_the_trailing_word__all_bytes_before_are_there, 0, 2 * KINDS);
	tcase_add_loop_test(tc, fence__put_of_what_a_get_fetched__sends_the_new_value, 0, KINDS);
	tcase_add_test(tc, queue_of_one_sender__another_without_membarrier_comes__both_go_on);
	tcase_add_test(tc, rdma__same_lengths_again__those_bytes_wherever_they_lie);
	tcase_add_loop_test(tc, normal_endpoint__long_put__complete_though_the_poster_only_computes, 0, 4);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
