/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_atomic.c - atomic operations on other processes' memory: that none
 * misses another's, whoever makes it, and which memory they can be made on.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/seccomp.h"
#include "test/lib/side.h"

#define RWA (GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_ATOMIC)
#define LEN ((size_t)20000)

static struct glex_atomic_req request(const struct card *to, glex_mem_handle_t mh, enum glex_atomic_op op,
				      uint32_t offset, uint32_t width, uint64_t operand)
{
	struct glex_atomic_req req = {
		.field_mask = GLEX_ATOMIC_FIELD_TARGET | GLEX_ATOMIC_FIELD_OP,
		.rmt_ep_addr = to->addr,
		.rmt_mh = mh,
		.rmt_offset = offset,
		.rmt_key = to->key,
		.op = op,
		.width = width,
		.operand = operand,
	};

	return req;
}

static uint64_t add(struct side *side, const struct card *to, glex_mem_handle_t mh, uint32_t offset, uint64_t n)
{
	struct glex_atomic_req req = request(to, mh, GLEX_ATOMIC_ADD, offset, 8, n);
	uint64_t old = 0;
	glex_ret_t ret;

	UNTIL((ret = glex_atomic(side->ep, &req, &old)) != GLEX_BUSY);
	OK(ret);
	return old;
}

static bool compare_and_swap(struct side *side, const struct card *to, glex_mem_handle_t mh, uint32_t offset,
			     uint64_t from, uint64_t into)
{
	struct glex_atomic_req req = request(to, mh, GLEX_ATOMIC_CAS, offset, 8, into);
	uint64_t old = ~from;

	req.field_mask |= GLEX_ATOMIC_FIELD_COMPARE;
	req.compare = from;
	OK(glex_atomic(side->ep, &req, &old));
	return old == from;
}

/* ---- counters that must add up ------------------------------------------------------- */

enum memory { HEAP, SMALL_HEAP, PAGES, STATIC, ALLOC, SEALED, MEMORIES };

static unsigned char static_memory[LEN + 3 * 4096]; /* its ends may share pages with initialised data */

static unsigned char *memory_of(enum memory kind, glex_device_handle_t dev)
{
	void *base = NULL;
	int fd;

	switch (kind) {
	case HEAP:
		return calloc(1, LEN);
	case SMALL_HEAP:
		return calloc(1, 64);
	case PAGES:
		base = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	case STATIC:
		return static_memory + 4096 + 8;
	case ALLOC:
		OK(glex_alloc(dev, LEN, &base));
		break;
	default:
		fd = memfd_create("x", MFD_ALLOW_SEALING);
		ck_assert_int_eq(ftruncate(fd, (off_t)LEN), 0);
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		base = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	ck_assert_ptr_ne(base, MAP_FAILED);
	return base;
}

static uint32_t length_of(enum memory kind)
{
	return kind == SMALL_HEAP ? 64 : (uint32_t)LEN;
}

/* Words of the region: counted up by everybody; tickets; counted up by compare and swap. */
enum { COUNT = 8, TICKET = 16, SWAPPED = 24 };

#define PEERS 3
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 4000
#else
#define ROUNDS 20000
#endif
#define OWNERS 2

struct work {
	struct card card;
	glex_mem_handle_t mh;
};

static void operate(int fd, void *arg)
{
	enum glex_ep_type type = *(enum glex_ep_type *)arg;
	uint64_t tickets = 0;
	struct work work;
	struct side side;

	side_open(&side, type, 0, false);
	hear(fd, &work, sizeof(work));
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t seen;

		add(&side, &work.card, work.mh, COUNT, 3);
		tickets += add(&side, &work.card, work.mh, TICKET, 1);
		if (i % 4 == 0)
			do
				seen = add(&side, &work.card, work.mh, SWAPPED, 0);
			while (!compare_and_swap(&side, &work.card, work.mh, SWAPPED, seen, seen + 1));
	}
	say(fd, &tickets, sizeof(tickets));
	expect_no_error(side.ep);
	side_close(&side);
}

struct owner {
	unsigned char *base;
	uint64_t tickets;
};

static void *count_with_them(void *arg)
{
	struct owner *owner = arg;
	_Atomic uint64_t *count = (_Atomic uint64_t *)(void *)(owner->base + COUNT);
	_Atomic uint64_t *ticket = (_Atomic uint64_t *)(void *)(owner->base + TICKET);
	_Atomic uint64_t *swapped = (_Atomic uint64_t *)(void *)(owner->base + SWAPPED);

	for (int i = 0; i < ROUNDS; i++) {
		*count += 3;
		owner->tickets += (*ticket)++;
		*swapped += i % 4 == 0;
	}
	return NULL;
}

static uint64_t word_at(const unsigned char *base, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, base + offset, 8);
	return word;
}

/* _i: enum memory, with FAST endpoints, then with NORMAL ones */
START_TEST(atomic__owner_and_peers_at_once__counters_add_up)
{
	enum glex_ep_type type = _i < MEMORIES ? GLEX_EP_TYPE_FAST : GLEX_EP_TYPE_NORMAL;
	const uint64_t all = (PEERS + OWNERS) * (uint64_t)ROUNDS;
	struct owner owners[OWNERS] = {{NULL, 0}};
	uint64_t tickets = 0, theirs;
	pthread_t threads[OWNERS];
	struct peer peers[PEERS];
	struct work work;
	struct side side;
	unsigned char *base;

	for (int i = 0; i < PEERS; i++)
		peers[i] = peer_start(operate, &type);
	side_open(&side, type, 0, false);
	base = memory_of((enum memory)(_i % MEMORIES), side.dev);
	/* they write from before it is adopted on */
	for (int i = 0; i < OWNERS; i++) {
		owners[i].base = base;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, count_with_them, &owners[i]), 0);
	}
	OK(glex_register_mem(side.ep, base, length_of((enum memory)(_i % MEMORIES)), RWA, &work.mh));
	work.card = side.card;
	for (int i = 0; i < PEERS; i++)
		say(peers[i].fd, &work, sizeof(work));
	for (int i = 0; i < PEERS; i++) {
		hear(peers[i].fd, &theirs, sizeof(theirs));
		tickets += theirs;
		peer_join(&peers[i]);
	}
	for (int i = 0; i < OWNERS; i++) {
		pthread_join(threads[i], NULL);
		tickets += owners[i].tickets;
	}
	ck_assert_uint_eq(word_at(base, COUNT), 3 * all);
	ck_assert_uint_eq(word_at(base, TICKET), all);
	ck_assert_uint_eq(tickets, all * (all - 1) / 2); /* each was given out once */
	ck_assert_uint_eq(word_at(base, SWAPPED), all / 4);
	OK(glex_deregister_mem(side.ep, work.mh));
	if (_i % MEMORIES == ALLOC)
		OK(glex_free(side.dev, base));
	else if (_i % MEMORIES <= SMALL_HEAP)
		free(base);
	side_close(&side);
}
END_TEST

/* ---- by the caller himself -------------------------------------------------------------- */

/* Returns how many of them he made himself. */
static uint32_t add_in_place(struct side *side, const struct work *work, uint32_t offset)
{
	struct glex_put_way *way;
	uint64_t *word;
	uint32_t n = 0;

	OK(glex_put_way_open(side->ep, work->card.addr, work->mh, work->card.key, &way));
	for (int i = 0; i < ROUNDS; i++) {
		word = glex_atomic_place(way, offset, 8);
		if (word)
			__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST); /* relaxed: stronger, as the NIC does */
		else
			add(side, &work->card, work->mh, offset, 1);
		n += word != NULL;
	}
	ck_assert_ptr_null(glex_atomic_place(way, offset + 4, 8)); /* not aligned */
	ck_assert_ptr_null(glex_atomic_place(way, LEN, 4));
	glex_put_way_close(way);
	return n;
}

static void operate_in_place(int fd, void *arg)
{
	struct work work;
	struct side side;
	uint32_t n;

	glex_single_threaded = 1; /* a sanitizer has a thread of its own */
	side_open(&side, *(enum glex_ep_type *)arg, 0, false);
	hear(fd, &work, sizeof(work));
	n = add_in_place(&side, &work, COUNT);
	say(fd, &n, sizeof(n));
	expect_no_error(side.ep);
	side_close(&side);
}

/* The first is the NIC's: then the region is known.  NORMAL endpoints leave all to it. */
START_TEST(atomic_place__peers_and_owner_at_once__counters_add_up)
{
	enum glex_ep_type type = _i ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST;
	struct peer peers[PEERS];
	struct work work;
	struct side side;
	unsigned char *base;
	uint32_t n;

	for (int i = 0; i < PEERS; i++)
		peers[i] = peer_start(operate_in_place, &type);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	base = memory_of(ALLOC, side.dev);
	OK(glex_register_mem(side.ep, base, LEN, RWA, &work.mh));
	work.card = side.card;
	for (int i = 0; i < PEERS; i++)
		say(peers[i].fd, &work, sizeof(work));
	for (int i = 0; i < ROUNDS; i++)
		__atomic_fetch_add((uint64_t *)(void *)(base + COUNT), 1, __ATOMIC_SEQ_CST); /* relaxed: stronger */
	for (int i = 0; i < PEERS; i++) {
		hear(peers[i].fd, &n, sizeof(n));
		ck_assert_uint_eq(n, _i ? 0 : ROUNDS - 1);
		peer_join(&peers[i]);
	}
	ck_assert_uint_eq(word_at(base, COUNT), (PEERS + 1) * (uint64_t)ROUNDS);
	OK(glex_deregister_mem(side.ep, work.mh));
	OK(glex_free(side.dev, base));
	side_close(&side);
}
END_TEST

/* A region that may be written to, and no more. */
START_TEST(atomic_place__not_registered_for_it__is_nowhere)
{
	const uint64_t word = 1;
	struct glex_imm_rdma_req req = {.data = (void *)(uintptr_t)&word, .len = 8};
	struct glex_put_way *way;
	struct side side;

	glex_single_threaded = 1; /* as above */
	side_open(&side, GLEX_EP_TYPE_FAST, LEN, true);
	req.rmt_ep_addr = side.card.addr;
	req.rmt_mh = side.card.mh;
	req.rmt_key = side.card.key;
	OK(glex_imm_rdma(side.ep, &req, NULL));
	OK(glex_put_way_open(side.ep, side.card.addr, side.card.mh, side.card.key, &way));
	ck_assert_ptr_nonnull(glex_put_place(way, 8, 8));
	ck_assert_ptr_null(glex_atomic_place(way, 8, 8));
	side_close(&side);
}
END_TEST

/* A region that may be read, and one that may not. */
START_TEST(get_place__by_rights__is_where_the_bytes_are)
{
	int32_t flags = _i ? GLEX_MEM_WRITE : GLEX_MEM_READ | GLEX_MEM_WRITE;
	struct glex_imm_rdma_req req = {.len = 8};
	uint64_t word = 0x1122334455667788;
	struct glex_put_way *way;
	glex_mem_handle_t mh;
	struct side side;
	void *base;

	glex_single_threaded = 1; /* as above */
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_alloc(side.dev, LEN, &base));
	OK(glex_register_mem(side.ep, base, LEN, flags | GLEX_MEM_MAPPED, &mh));
	OK(glex_put_way_open(side.ep, side.card.addr, mh, side.card.key, &way));
	ck_assert_ptr_null(glex_get_place(way, 0, 8)); /* nothing is known yet */
	req.rmt_ep_addr = side.card.addr;
	req.rmt_mh = mh;
	req.rmt_key = side.card.key;
	req.data = &word;
	OK(glex_imm_rdma(side.ep, &req, NULL));
	if (_i) {
		ck_assert_ptr_null(glex_get_place(way, 0, 8));
	} else {
		ck_assert_mem_eq(glex_get_place(way, 0, 8), &word, 8);
		ck_assert_ptr_nonnull(glex_get_place(way, LEN - 8, 8));
		ck_assert_ptr_null(glex_get_place(way, LEN - 7, 8));
		OK(glex_deregister_mem(side.ep, mh));
		ck_assert_ptr_null(glex_get_place(way, 0, 8));
	}
	side_close(&side);
}
END_TEST

/* ---- by a mapping or not at all ----------------------------------------------------------- */

/* Puts a word at the end of regions, and says of each whether all of it is mapped here. */
static void put_at_the_end(int fd, void *arg)
{
	uint32_t len = (uint32_t)(uintptr_t)arg;
	struct work work;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	while (hear(fd, &work, sizeof(work)), work.mh.v) {
		struct glex_imm_rdma_req req = {
			.rmt_ep_addr = work.card.addr,
			.rmt_mh = work.mh,
			.rmt_key = work.card.key,
			.rmt_offset = len - 8,
			.data = &work.card.key,
			.len = 4,
		};
		struct glex_put_way *way;
		uint32_t is_mapped;

		glex_single_threaded = 1;
		OK(glex_imm_rdma(side.ep, &req, NULL));
		OK(glex_put_way_open(side.ep, work.card.addr, work.mh, work.card.key, &way));
		is_mapped = glex_put_place(way, 0, len) != NULL;
		glex_put_way_close(way);
		say(fd, &is_mapped, sizeof(is_mapped));
	}
	side_close(&side);
}

static void atomic_is_refused(struct side *side, glex_mem_handle_t mh)
{
	struct glex_atomic_req req = request(&side->card, mh, GLEX_ATOMIC_ADD, 0, 8, 1);
	struct glex_err_req error;
	uint32_t n = 1;
	uint64_t old;

	ck_assert_int_eq(glex_atomic(side->ep, &req, &old), GLEX_ACCESS_ERR);
	OK(glex_poll_error_req(side->ep, &n, &error));
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(error.status, GLEX_ERR_STATUS_MMT);
}

/* Peers map all of what is registered so, whatever it was; and it is no more than that. */
START_TEST(mapped__any_memory_that_can_be__is_mapped_by_peers)
{
	uint32_t is_mapped, len = length_of((enum memory)_i);
	struct work work = {0};
	struct side side;
	struct peer peer;
	unsigned char *base;

	glex_single_threaded = 1;
	peer = peer_start(put_at_the_end, (void *)(uintptr_t)length_of((enum memory)_i));
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	base = memory_of((enum memory)_i, side.dev);
	OK(glex_register_mem(side.ep, base, len, GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_MAPPED, &work.mh));
	work.card = side.card;
	say(peer.fd, &work, sizeof(work));
	hear(peer.fd, &is_mapped, sizeof(is_mapped));
	ck_assert_uint_eq(is_mapped, 1);
	ck_assert_mem_eq(base + len - 8, &side.card.key, 4);
	atomic_is_refused(&side, work.mh);
	work.mh.v = 0;
	say(peer.fd, &work, sizeof(work));
	peer_join(&peer);
	side_close(&side);
	if (_i <= SMALL_HEAP)
		free(base);
}
END_TEST

START_TEST(mapped__what_cannot_be__is_refused)
{
	unsigned char on_the_stack[64];
	glex_mem_handle_t mh;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	ck_assert_int_eq(glex_register_mem(side.ep, on_the_stack, sizeof(on_the_stack),
					   GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_MAPPED, &mh),
			 GLEX_SYS_ERR);
	side_close(&side);
}
END_TEST

/* ---- one operation ---------------------------------------------------------------------- */

static void lend(int fd, void *arg)
{
	uint64_t words[4] = {1, 2, 3, 4};
	struct work work;
	struct side side;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 4096, false);
	memcpy(side.buf, words, sizeof(words));
	OK(glex_register_mem(side.ep, side.buf, 4096, GLEX_MEM_ATOMIC, &work.mh));
	work.card = side.card;
	say(fd, &work, sizeof(work));
	meet(fd);
	say(fd, side.buf, sizeof(words));
	OK(glex_deregister_mem(side.ep, work.mh));
	meet(fd);
	meet(fd);
	side_close(&side);
}

#define A64 UINT64_C(0xfedcba9876543210)
#define B64 UINT64_C(0x0ff0f0f0cafe5555)

START_TEST(atomic__each_operation__gives_the_old_word_and_leaves_the_new)
{
	static const struct {
		enum glex_atomic_op op;
		uint64_t compare, new8;
	} rows[] = {{GLEX_ATOMIC_ADD, 0, A64 + B64}, {GLEX_ATOMIC_AND, 0, A64 & B64}, {GLEX_ATOMIC_OR, 0, A64 | B64},
		    {GLEX_ATOMIC_XOR, 0, A64 ^ B64}, {GLEX_ATOMIC_SWAP, 0, B64},      {GLEX_ATOMIC_CAS, A64, B64},
		    {GLEX_ATOMIC_CAS, A64 + 1, A64}};
	struct peer peer = peer_start(lend, NULL);
	struct glex_atomic_req req;
	struct work work;
	struct side side;
	uint64_t old, words[4];

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	hear(peer.fd, &work, sizeof(work));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (uint32_t width = 4; width <= 8; width += 4) {
			uint64_t mask = width == 8 ? UINT64_MAX : UINT32_MAX;

			req = request(&work.card, work.mh, GLEX_ATOMIC_SWAP, 8, 8, A64);
			OK(glex_atomic(side.ep, &req, &old));
			req = request(&work.card, work.mh, rows[i].op, 8, width, B64);
			req.field_mask = GLEX_ATOMIC_FIELDS;
			req.compare = rows[i].compare;
			OK(glex_atomic(side.ep, &req, &old));
			ck_assert_uint_eq(old, A64 & mask);
			req = request(&work.card, work.mh, GLEX_ATOMIC_ADD, 8, 8, 0);
			OK(glex_atomic(side.ep, &req, &old));
			ck_assert_uint_eq(old, (rows[i].new8 & mask) | (A64 & ~mask));
		}
	}
	meet(peer.fd);
	hear(peer.fd, words, sizeof(words));
	ck_assert_uint_eq(words[0], 1);
	ck_assert_uint_eq(words[1], A64);
	ck_assert_uint_eq(words[2], 3);
	meet(peer.fd);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

static void expect_denied(struct side *side, struct glex_atomic_req req, enum glex_err_req_status status)
{
	uint64_t old = 77;

	RETURNS(glex_atomic(side->ep, &req, &old), GLEX_ACCESS_ERR);
	ck_assert_uint_eq(old, 77);
	expect_error(side->ep, GLEX_ERR_OP_IMM_RDMA_PUT, status);
}

START_TEST(atomic__target_would_not_have_it__error_request_and_nothing_done)
{
	struct peer peer = peer_start(lend, NULL);
	struct glex_atomic_req good, req;
	struct work work;
	struct side side;
	uint64_t words[4];

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	hear(peer.fd, &work, sizeof(work));
	good = request(&work.card, work.mh, GLEX_ATOMIC_ADD, 8, 8, 5);
	req = good;
	req.rmt_mh = work.card.mh; /* for reading and writing only */
	expect_denied(&side, req, GLEX_ERR_STATUS_MMT);
	req = good;
	req.rmt_key++;
	expect_denied(&side, req, GLEX_ERR_STATUS_MMT);
	req = good;
	req.rmt_offset = 4092;
	expect_denied(&side, req, GLEX_ERR_STATUS_MMT);
	req = good;
	req.rmt_offset = 12;
	expect_denied(&side, req, GLEX_ERR_STATUS_FORMAT);
	req = good;
	req.rmt_ep_addr.ep_num++;
	expect_denied(&side, req, GLEX_ERR_STATUS_DEST_VP_STOP);
	meet(peer.fd);
	hear(peer.fd, words, sizeof(words));
	ck_assert_uint_eq(words[0], 1);
	ck_assert_uint_eq(words[1], 2);
	meet(peer.fd);
	expect_denied(&side, good, GLEX_ERR_STATUS_ATT); /* revoked */
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

START_TEST(atomic__bad_arguments__invalid)
{
	struct glex_atomic_req good, req;
	struct side side;
	uint64_t old;

	side_open(&side, GLEX_EP_TYPE_FAST, 4096, true);
	good = request(&side.card, side.card.mh, GLEX_ATOMIC_ADD, 0, 8, 1);
	RETURNS(glex_atomic(NULL, &good, &old), GLEX_INVALID_PARAM);
	RETURNS(glex_atomic(side.ep, NULL, &old), GLEX_INVALID_PARAM);
	RETURNS(glex_atomic(side.ep, &good, NULL), GLEX_INVALID_PARAM);
	req = good;
	req.width = 2;
	RETURNS(glex_atomic(side.ep, &req, &old), GLEX_INVALID_PARAM);
	req = good;
	req.op = (enum glex_atomic_op)(GLEX_ATOMIC_CAS + 1);
	RETURNS(glex_atomic(side.ep, &req, &old), GLEX_INVALID_PARAM);
	req = good;
	req.op = GLEX_ATOMIC_CAS; /* and nothing to compare */
	RETURNS(glex_atomic(side.ep, &req, &old), GLEX_INVALID_PARAM);
	req = good;
	req.field_mask = GLEX_ATOMIC_FIELD_TARGET;
	RETURNS(glex_atomic(side.ep, &req, &old), GLEX_INVALID_PARAM);
	req = good;
	req.field_mask |= 1 << 20;
	RETURNS(glex_atomic(side.ep, &req, &old), GLEX_INVALID_PARAM);
	expect_no_error(side.ep);
	side_close(&side);
}
END_TEST

/* ---- without and behind others ---------------------------------------------------------- */

static void stop_yourself(int fd, void *arg)
{
	struct work work;
	struct side side;
	void *base;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	base = calloc(1, 64);
	OK(glex_register_mem(side.ep, base, 64, RWA, &work.mh));
	work.card = side.card;
	say(fd, &work, sizeof(work));
	raise(SIGSTOP);
	ck_assert_uint_eq(word_at(base, COUNT), 1000);
	side_close(&side);
	free(base);
}

START_TEST(atomic__target_is_stopped__done_all_the_same)
{
	struct peer peer = peer_start(stop_yourself, NULL);
	struct work work;
	struct side side;
	int status;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	hear(peer.fd, &work, sizeof(work));
	ck_assert_int_eq(waitpid(peer.pid, &status, WUNTRACED), peer.pid);
	ck_assert(WIFSTOPPED(status));
	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(add(&side, &work.card, work.mh, COUNT, 1), i);
	kill(peer.pid, SIGCONT);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

START_TEST(atomic__behind_puts_in_the_queue__sees_what_they_wrote)
{
	struct glex_rdma_req put;
	struct side side;
	glex_mem_handle_t mh;
	uint64_t value;

	side_open(&side, GLEX_EP_TYPE_NORMAL, 1 << 20, true);
	OK(glex_register_mem(side.ep, side.buf, side.len, RWA, &mh));
	put = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, (uint32_t)side.len / 2);
	put.rmt_offset = (uint32_t)side.len / 2;
	for (value = 1; value < 50; value++) {
		memset(side.buf, (int)value, side.len / 2);
		post_rdma(side.ep, &put);
		ck_assert_uint_eq(add(&side, &side.card, mh, (uint32_t)side.len - 8, 0),
				  value * UINT64_C(0x0101010101010101));
	}
	OK(glex_deregister_mem(side.ep, mh));
	side_close(&side);
}
END_TEST

/* ---- memory that cannot ------------------------------------------------------------------ */

enum special { STACK, PRIVATE_FILE, LOCKED, UNSEALED, HALF_ALLOC, READ_ONLY, SPECIALS };

static unsigned char *special_memory(enum special kind, struct side *side, unsigned char *stack)
{
	int fd = memfd_create("x", MFD_CLOEXEC), prot = kind == READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	void *base = stack;

	ck_assert_int_eq(ftruncate(fd, (off_t)LEN), 0);
	if (kind == HALF_ALLOC) {
		OK(glex_alloc(side->dev, 8192, &base));
		base = (unsigned char *)base + 8;
	} else if (kind != STACK) {
		base = kind == PRIVATE_FILE || kind == UNSEALED
			       ? mmap(NULL, LEN, prot, kind == UNSEALED ? MAP_SHARED : MAP_PRIVATE, fd, 0)
			       : mmap(NULL, LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert_ptr_ne(base, MAP_FAILED);
	}
	if (kind == LOCKED)
		ck_assert_int_eq(syscall(SYS_mlock, base, 4096), 0); /* sanitizers make nothing of mlock */
	close(fd);
	return base;
}

/* _i: enum special */
START_TEST(atomic__memory_cannot_be_mapped_by_peers__refused_and_as_before)
{
	unsigned char stack[LEN], *base;
	glex_mem_handle_t mh;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	base = special_memory((enum special)_i, &side, stack);
	if (_i != READ_ONLY)
		fill(base, 8000, 3);
	RETURNS(glex_register_mem(side.ep, base, _i == HALF_ALLOC ? 8192 : LEN, RWA, &mh), GLEX_SYS_ERR);
	if (_i != READ_ONLY)
		expect_filled(base, 8000, 3);
	if (_i != HALF_ALLOC) { /* behind which nothing need be */
		OK(glex_register_mem(side.ep, base, LEN, GLEX_MEM_READ, &mh));
		OK(glex_deregister_mem(side.ep, mh));
	}
	side_close(&side);
}
END_TEST

START_TEST(atomic__adopting_is_forbidden__private_memory_is_refused)
{
	glex_mem_handle_t mh;
	struct side side;
	void *shared;

	setenv("GLEX_ADOPT", "never", 1);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	RETURNS(glex_register_mem(side.ep, static_memory + 4096, 64, RWA, &mh), GLEX_SYS_ERR);
	OK(glex_alloc(side.dev, 64, &shared));
	OK(glex_register_mem(side.ep, shared, 64, RWA, &mh));
	ck_assert_uint_eq(add(&side, &side.card, mh, 0, 1), 0);
	ck_assert_uint_eq(add(&side, &side.card, mh, 0, 1), 1);
	OK(glex_deregister_mem(side.ep, mh));
	OK(glex_free(side.dev, shared));
	side_close(&side);
}
END_TEST

/* Without a userfaultfd that makes others wait: alone it can be adopted, beside threads not. */
static void *wait_for_end(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

START_TEST(atomic__nothing_makes_other_threads_wait__refused_until_they_are_gone)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	unsigned char *base = memory_of(PAGES, NULL);
	glex_mem_handle_t mh;
	struct side side;
	pthread_t thread;

	ck_assert_int_eq(forbid_userfaultfd(), 0);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	pthread_mutex_lock(&mutex);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_end, &mutex), 0);
	RETURNS(glex_register_mem(side.ep, base, LEN, RWA, &mh), GLEX_SYS_ERR);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	OK(glex_register_mem(side.ep, base, LEN, RWA, &mh));
	ck_assert_uint_eq(add(&side, &side.card, mh, 0, 1), 0);
	OK(glex_deregister_mem(side.ep, mh));
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("atomic");
	TCase *tc = tcase_create("atomic");

	own_job("atomic");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, atomic_place__peers_and_owner_at_once__counters_add_up, 0, 2);
	tcase_add_test(tc, atomic_place__not_registered_for_it__is_nowhere);
	tcase_add_loop_test(tc, get_place__by_rights__is_where_the_bytes_are, 0, 2);
	tcase_add_loop_test(tc, mapped__any_memory_that_can_be__is_mapped_by_peers, 0, MEMORIES);
	tcase_add_test(tc, mapped__what_cannot_be__is_refused);
	tcase_add_loop_test(tc, atomic__owner_and_peers_at_once__counters_add_up, 0, 2 * MEMORIES);
	tcase_add_test(tc, atomic__each_operation__gives_the_old_word_and_leaves_the_new);
	tcase_add_test(tc, atomic__target_would_not_have_it__error_request_and_nothing_done);
	tcase_add_test(tc, atomic__bad_arguments__invalid);
	tcase_add_test(tc, atomic__target_is_stopped__done_all_the_same);
	tcase_add_test(tc, atomic__behind_puts_in_the_queue__sees_what_they_wrote);
	tcase_add_loop_test(tc, atomic__memory_cannot_be_mapped_by_peers__refused_and_as_before, 0, SPECIALS);
	tcase_add_test(tc, atomic__adopting_is_forbidden__private_memory_is_refused);
	if (CAN_BE_ALONE)
		tcase_add_test(tc, atomic__nothing_makes_other_threads_wait__refused_until_they_are_gone);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
