/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_adopt_live.c - memory that is moved into a shared mapping while threads,
 * the system and peers write to it, and while regions over it are in use.
 */
#include <pthread.h>
#include <unistd.h>

#include "emulator/abi/shm_layout.h"
#include "test/api/adopt.h"
#include "test/lib/raw.h"
#include "test/lib/seccomp.h"

/* ---- while others write ---------------------------------------------------------------- */

#define COUNTERS 3
#define SPACE	 ((size_t)4 << 20)

/* What all threads write to at once, with its counters of how often. */
struct traffic {
	unsigned char
		*base; /* [0, SPACE/2) words that are counted up, then the part of the pipe, then that of the peer */
	struct side side;
	struct peer peer;
	glex_mem_handle_t open_part;
	_Atomic bool stop;
	_Atomic uint64_t counted, piped, put;
};

static void *count_up(void *arg)
{
	struct traffic *traffic = arg;
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)traffic->base;
	unsigned seed = (unsigned)(uintptr_t)&seed;
	uint64_t n = 0;

	for (; !traffic->stop; n++)
		word[(size_t)rand_r(&seed) % (SPACE / 16)]++;
	traffic->counted += n;
	return NULL;
}

/* The kernel writes for us: what it has written must be there. */
static void *read_pipe(void *arg)
{
	struct traffic *traffic = arg;
	unsigned char sent[3000], *part = traffic->base + SPACE / 2;
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	for (uint32_t i = 0; !traffic->stop; i++, traffic->piped++) {
		unsigned char *at = part + (size_t)i * 4001 % (SPACE / 4 - sizeof(sent));

		fill(sent, sizeof(sent), i);
		ck_assert_int_eq(write(fd[1], sent, sizeof(sent)), sizeof(sent));
		ck_assert_int_eq(read(fd[0], at, sizeof(sent)), sizeof(sent));
		expect_filled(at, sizeof(sent), i);
	}
	close(fd[0]);
	close(fd[1]);
	return NULL;
}

static void *let_peer_put(void *arg)
{
	struct traffic *traffic = arg;

	for (uint32_t i = 0; !traffic->stop; i++, traffic->put++) {
		uint32_t at = i * 6007 % (SPACE / 4 - 9000);

		ck_assert(!tell(&traffic->peer, &traffic->side, traffic->open_part, PUT, at, 9000, i).failed);
		expect_filled(traffic->base + SPACE * 3 / 4 + at, 9000, i);
	}
	return NULL;
}

static void start_traffic(struct traffic *traffic, pthread_t *threads)
{
	traffic->base = pages(SPACE);
	traffic->stop = false;
	traffic->counted = traffic->piped = traffic->put = 0;
	OK(glex_register_mem(traffic->side.ep, traffic->base + SPACE * 3 / 4, SPACE / 4, RW, &traffic->open_part));
	for (int i = 0; i < COUNTERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up, traffic), 0);
	ck_assert_int_eq(pthread_create(&threads[COUNTERS], NULL, read_pipe, traffic), 0);
	ck_assert_int_eq(pthread_create(&threads[COUNTERS + 1], NULL, let_peer_put, traffic), 0);
	UNTIL(traffic->piped > 20 && traffic->put > 20);
}

static void end_traffic(struct traffic *traffic, pthread_t *threads)
{
	const uint64_t *word = (const uint64_t *)(const void *)traffic->base;
	uint64_t piped = traffic->piped, put = traffic->put, found = 0;

	UNTIL(traffic->piped > piped + 20 && traffic->put > put + 20);
	traffic->stop = true;
	for (int i = 0; i < COUNTERS + 2; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < SPACE / 16; i++)
		found += word[i];
	ck_assert_uint_eq(found, traffic->counted);
	OK(glex_deregister_mem(traffic->side.ep, traffic->open_part));
}

/* _i: 1: with huge pages */
START_TEST(adopt__threads_and_peers_write_throughout__nothing_is_lost)
{
	pthread_t threads[COUNTERS + 2];
	struct traffic traffic;
	glex_mem_handle_t mh;

	open_adopting(&traffic.side, "always");
	traffic.peer = peer_start(helper_main, &mover);
	for (int round = 0; round < 5; round++) {
		start_traffic(&traffic, threads);
		if (_i)
			madvise(traffic.base, SPACE, MADV_HUGEPAGE);
		mh = make_hot(&traffic.side, traffic.base, SPACE);
		ck_assert(is_shared(traffic.base));
		ck_assert(is_shared(traffic.base + SPACE - 1));
		end_traffic(&traffic, threads);
		expect_reached(&traffic.peer, &traffic.side, mh, traffic.base, 1000, 1 << 19);
		OK(glex_deregister_mem(traffic.side.ep, mh));
		munmap(traffic.base, SPACE);
	}
	let_go(&traffic.peer);
	side_close(&traffic.side);
}
END_TEST

/* ---- while the engine writes ------------------------------------------------------------ */

#define GOT	 ((size_t)32 << 20)
#define AT_ONCE	 4u /* GETs of all of it: when the last comes to its beginning, that would long be copied */
#define GET_ALLS 6u

/* The word that is there, of one of two kinds of contents. */
static uint64_t word_of(size_t i, uint32_t kind)
{
	return (i + 1) * (kind + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Others get from it: one kind of contents, and behind it the other. */
static void giver(int fd, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 2 * GOT, true);
	for (size_t i = 0; i < 2 * GOT / 8; i++)
		((uint64_t *)(void *)side.buf)[i] = word_of(i % (GOT / 8), i >= GOT / 8);
	swap_cards(&side, fd);
	meet(fd);
	side_close(&side);
}

/* Of both kinds in turn; this one comes last. */
static void get_all(struct side *side, const struct card *theirs, glex_mem_handle_t mh, uint32_t kind)
{
	struct glex_rdma_req req = rdma_between(side, theirs, GLEX_RDMA_TYPE_GET, 0, GOT);
	glex_event_t *event;

	req.local_mh = mh;
	for (uint32_t left = AT_ONCE; left-- > 0;) {
		req.rmt_offset = (kind + left) % 2 ? GOT : 0;
		req.flag = left == 0 ? GLEX_FLAG_LOCAL_EVT : 0;
		req.local_evt.cookie_1 = 1;
		post_rdma(side->ep, &req);
	}
	OK(glex_probe_first_event(side->ep, -1, &event));
	OK(glex_discard_probed_event(side->ep));
}

/* Its own side of a GET needs no rights.  Where the kernel does not make writers wait, and no thread is there. */
START_TEST(adopt__engine_writes_what_the_process_gets__nothing_is_lost)
{
	struct peer peer = peer_start(giver, NULL);
	unsigned char *base = pages(GOT);
	glex_mem_handle_t mh;
	struct card theirs;
	struct side side;

	ck_assert_int_eq(forbid_userfaultfd(), 0);
	setenv("GLEX_ADOPT", "always", 1);
	side_open(&side, GLEX_EP_TYPE_NORMAL, 0, false);
	theirs = swap_cards(&side, peer.fd);
	OK(glex_register_mem(side.ep, base, GOT, 0, &mh));
	for (uint32_t round = 0; round < GET_ALLS; round++) {
		get_all(&side, &theirs, mh, round % 2);
		for (size_t i = 0; i < GOT / 8; i++)
			if (((uint64_t *)(void *)base)[i] != word_of(i, round % 2))
				ck_abort_msg("round %u: word %zu is not what the peer has", round, i);
	}
	meet(peer.fd);
	for (uint32_t i = 0; i < 16 && !is_shared(base); i++) { /* now that nobody writes, nothing is in the way */
		OK(glex_deregister_mem(side.ep, mh));
		OK(glex_register_mem(side.ep, base, GOT, 0, &mh));
	}
	ck_assert(is_shared(base));
	OK(glex_deregister_mem(side.ep, mh));
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- while it is registered ------------------------------------------------------------- */

static uint32_t adopted_regions(const struct side *side)
{
	struct emu_ctl_nic nic;

	ck_assert_int_eq(raw_nic(side->card.addr.nic_id, &nic), 0);
	return nic.kind[EMU_KIND_ADOPTED];
}

/* All of it, as often as makes it hot. */
static void use_often(const struct peer *peer, struct side *side, glex_mem_handle_t mh, uint32_t offset, uint32_t len)
{
	for (uint32_t i = 0; i < 9; i++)
		ck_assert(!tell(peer, side, mh, PUT, offset, len, i).failed);
}

START_TEST(adopt__region_in_use_turns_hot__mapped_by_peers_under_the_handle_it_has)
{
	unsigned char *base = pages(LEN), *mem = base + 100;
	struct peer away = peer_start(helper_main, &mapper), near = peer_start(helper_main, &mover);
	uint32_t len = LEN - 200, whole = PAGE - 100;
	glex_mem_handle_t mh, part;
	struct side side;

	open_adopting(&side, "always");
	OK(glex_register_mem(side.ep, mem, len, RW, &mh));
	OK(glex_register_mem(side.ep, mem + LEN / 2, LEN / 4, RW, &part));
	ck_assert(tell(&away, &side, mh, PUT, whole, 1000, 1).failed);
	idle(&side);
	ck_assert(!is_shared(base + PAGE)); /* nothing is hot yet */
	use_often(&near, &side, mh, 0, len);
	UNTIL((idle(&side), adopted_regions(&side) == 2)); /* the other one too: it is over the same pages */
	ck_assert(is_shared(base + PAGE) && is_shared(base + LEN - PAGE - 1));
	ck_assert(!is_shared(base) && !is_shared(base + LEN - 1)); /* which other data may share */
	expect_filled(mem, len, 8);
	ck_assert(!tell(&away, &side, mh, PUT, whole, 60000, 2).failed);
	expect_filled(mem + whole, 60000, 2);
	ck_assert(!tell(&away, &side, part, PUT, 0, 1000, 3).failed);
	expect_filled(mem + LEN / 2, 1000, 3);
	ck_assert(tell(&away, &side, mh, PUT, 0, whole + 1, 4).failed); /* the first page goes by attach */
	expect_reached(&near, &side, mh, mem, 0, len);
	OK(glex_deregister_mem(side.ep, mh));
	ck_assert(tell(&near, &side, mh, PUT, whole, 1000, 1).failed);
	expect_reached(&away, &side, part, mem + LEN / 2, 0, LEN / 4);
	OK(glex_deregister_mem(side.ep, part));
	ck_assert_uint_eq(adopted_regions(&side), 0);
	let_go(&near);
	let_go(&away);
	side_close(&side);
}
END_TEST

START_TEST(adopt__region_in_use_turns_hot_and_may_not__goes_on_by_attach)
{
	struct peer near = peer_start(helper_main, &mover);
	unsigned char *base = pages(LEN);
	glex_mem_handle_t mh;
	struct side side;

	open_adopting(&side, "never");
	OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
	use_often(&near, &side, mh, 0, LEN);
	idle(&side);
	ck_assert(!is_shared(base));
	expect_reached(&near, &side, mh, base, 0, LEN);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&near);
	side_close(&side);
}
END_TEST

/* It watches what it has cached by the way that has, so that must not change. */
START_TEST(adopt__region_of_a_cache_turns_hot__keeps_its_way)
{
	struct peer near = peer_start(helper_main, &mover);
	unsigned char *base = pages(LEN);
	struct glex_rcache_region region;
	glex_mem_handle_t mh, direct;
	glex_rcache_handle_t rc;
	struct side side;

	open_adopting(&side, "always");
	OK(glex_rcache_create(side.ep, NULL, &rc));
	OK(glex_rcache_get(rc, base, LEN, RW, &region));
	mh = region.mh;
	use_often(&near, &side, mh, 0, LEN);
	idle(&side);
	ck_assert(!is_shared(base));
	OK(glex_register_mem(side.ep, base, LEN, RW, &direct));
	use_often(&near, &side, direct, 0, LEN);
	UNTIL((idle(&side), adopted_regions(&side) == 1));
	ck_assert(is_shared(base));
	expect_reached(&near, &side, mh, base, 0, LEN);
	expect_reached(&near, &side, direct, base, 0, LEN);
	OK(glex_deregister_mem(side.ep, direct));
	OK(glex_rcache_put(rc, &region));
	OK(glex_rcache_destroy(rc));
	let_go(&near);
	side_close(&side);
}
END_TEST

START_TEST(adopt__region_turns_hot_while_threads_and_peers_write__nothing_is_lost)
{
	pthread_t threads[COUNTERS + 2];
	struct traffic traffic;

	open_adopting(&traffic.side, "always");
	traffic.peer = peer_start(helper_main, &mover);
	for (int round = 0; round < 3; round++) {
		start_traffic(&traffic, threads);
		UNTIL((idle(&traffic.side), adopted_regions(&traffic.side) == 1));
		ck_assert(is_shared(traffic.base + SPACE * 3 / 4));
		end_traffic(&traffic, threads);
		munmap(traffic.base, SPACE);
	}
	let_go(&traffic.peer);
	side_close(&traffic.side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("adopt_live");
	TCase *tc = tcase_create("adopt_live");

	own_job("adopt_live");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, adopt__threads_and_peers_write_throughout__nothing_is_lost, 0, 2);
	if (CAN_BE_ALONE)
		tcase_add_test(tc, adopt__engine_writes_what_the_process_gets__nothing_is_lost);
	tcase_add_test(tc, adopt__region_in_use_turns_hot__mapped_by_peers_under_the_handle_it_has);
	tcase_add_test(tc, adopt__region_in_use_turns_hot_and_may_not__goes_on_by_attach);
	tcase_add_test(tc, adopt__region_of_a_cache_turns_hot__keeps_its_way);
	tcase_add_test(tc, adopt__region_turns_hot_while_threads_and_peers_write__nothing_is_lost);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
