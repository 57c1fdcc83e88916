/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_leave.c - what others leave behind: memory they have freed, objects and
 * queues of processes that are gone.  Who had mapped it lets go of it, also if it
 * does nothing but poll.
 */
#include <fcntl.h>
#include <string.h>

#include "test/api/adopt.h"

#define ROUNDS	8
#define CLIENTS 6

/* Mappings of this process with this in their names. */
static int mappings_of(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, name) != NULL;
	fclose(maps);
	return n;
}

static long shared_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;

	ck_assert_ptr_nonnull(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "RssShmem: %ld", &kib);
	fclose(status);
	return kib;
}

/* ---- memory -------------------------------------------------------------------------- */

#define BIG ((size_t)16 << 20)

enum kind_of_object { ALLOC, FILE_OF_ITS_OWN, OF_THE_DEAD };

static void *share(struct side *side, enum kind_of_object kind)
{
	void *mem;
	int fd;

	if (kind != FILE_OF_ITS_OWN) {
		OK(glex_alloc(side->dev, BIG, &mem));
		return mem;
	}
	fd = memfd_create("glex_alloc of its own", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(fd, (off_t)BIG), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	mem = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	close(fd);
	return mem;
}

/* Has memory written to, and lets go of it, again and again. */
static void owner(int fd, void *arg)
{
	enum kind_of_object kind = *(enum kind_of_object *)arg;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned char *mem = share(&side, kind);

		OK(glex_register_mem(side.ep, mem, BIG, RW, &side.card.mh));
		swap_cards(&side, fd);
		meet(fd); /* it has been written to */
		SURE(mem[0] == round + 1 && mem[BIG - 1] == round + 1);
		if (kind == OF_THE_DEAD)
			break; /* with the memory, and without a word */
		OK(glex_deregister_mem(side.ep, side.card.mh));
		if (kind == ALLOC)
			OK(glex_free(side.dev, mem));
		else
			munmap(mem, BIG);
		meet(fd);
	}
	if (kind == OF_THE_DEAD)
		meet(fd); /* to be killed */
	side_close(&side);
}

static void put_all(struct side *side, unsigned char byte, const struct card *theirs)
{
	memset(side->buf, byte, BIG);
	rdma_done(side, theirs, GLEX_RDMA_TYPE_PUT, 0, BIG);
}

START_TEST(alloc__freed__its_memory_goes_back_though_a_peer_has_it_mapped)
{
	enum kind_of_object kind = ALLOC;
	struct peer peer = peer_start(owner, &kind);
	struct card theirs;
	struct side side;
	long before;

	side_open(&side, GLEX_EP_TYPE_FAST, BIG, false);
	before = shared_kib();
	for (int round = 0; round < ROUNDS; round++) {
		theirs = swap_cards(&side, peer.fd);
		put_all(&side, (unsigned char)(round + 1), &theirs);
		ck_assert_int_ge(shared_kib(), before + (long)BIG / 1024);
		meet(peer.fd);
		meet(peer.fd); /* it has freed it; this process has done nothing since */
		ck_assert_int_lt(shared_kib(), before + (long)BIG / 2048);
	}
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* _i: enum kind_of_object */
START_TEST(object__is_gone__a_peer_that_polls_unmaps_it)
{
	enum kind_of_object kind = (enum kind_of_object)_i;
	struct peer peer = peer_start(owner, &kind);
	struct card theirs;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, BIG, false);
	for (int round = 0; round < ROUNDS; round++) {
		theirs = swap_cards(&side, peer.fd);
		put_all(&side, (unsigned char)(round + 1), &theirs);
		meet(peer.fd);
		if (kind == OF_THE_DEAD)
			break;
		meet(peer.fd);
	}
	ck_assert_int_ge(mappings_of("glex_alloc"), 1);
	if (kind == OF_THE_DEAD)
		peer_kill(&peer);
	else
		peer_join(&peer);
	UNTIL((idle(&side), mappings_of("glex_alloc") == 0));
	side_close(&side);
}
END_TEST

/* What is still registered stays mapped, however long nobody uses it. */
static void keeper(int fd, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, BIG, true);
	swap_cards(&side, fd);
	meet(fd);
	side_close(&side);
}

START_TEST(object__is_registered__stays_mapped)
{
	struct peer peer = peer_start(keeper, NULL);
	int64_t end = now_ns() + INT64_C(4000000000);
	struct card theirs;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, BIG, false);
	theirs = swap_cards(&side, peer.fd);
	put_all(&side, 1, &theirs);
	while (now_ns() < end) /* longer than it takes where it is gone */
		idle(&side);
	ck_assert_int_eq(mappings_of("glex_alloc"), 1);
	meet(peer.fd);
	peer_join(&peer);
	side_close(&side);
}
END_TEST

/* ---- queues ---------------------------------------------------------------------------- */

static void client(int fd, void *arg)
{
	glex_ep_addr_t server;
	struct side side;

	(void)arg;
	hear(fd, &server, sizeof(server));
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	send_mp(&side, server, "here", 4);
	expect_mp(side.ep, "there", 5);
	meet(fd); /* some are killed here */
	side_close(&side);
}

/* _i: 1: they die */
START_TEST(port__clients_come_and_go__server_that_polls_keeps_none_of_them)
{
	struct peer clients[CLIENTS];
	glex_ep_addr_t from;
	struct side side;
	char data[112];
	uint32_t len;
	int before;

	for (int i = 0; i < CLIENTS; i++)
		clients[i] = peer_start(client, NULL);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	before = mappings_of("memfd:glex (");
	ck_assert_int_ge(before, 1);
	for (int i = 0; i < CLIENTS; i++)
		say(clients[i].fd, &side.card.addr, sizeof(side.card.addr));
	for (int i = 0; i < CLIENTS; i++) {
		OK(glex_receive_mp(side.ep, WAIT_MS, &from, data, &len));
		send_mp(&side, from, "there", 5);
	}
	ck_assert_int_eq(mappings_of("memfd:glex ("), before + 2 * CLIENTS); /* a NIC's table and a port each */
	for (int i = 0; i < CLIENTS; i++) {
		meet(clients[i].fd);
		if (_i)
			peer_kill(&clients[i]);
		else
			peer_join(&clients[i]);
	}
	/* the tables stay: others come to these NICs */
	UNTIL((idle(&side), mappings_of("memfd:glex (") == before + CLIENTS));
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("leave");
	TCase *tc = tcase_create("leave");

	own_job("leave");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, alloc__freed__its_memory_goes_back_though_a_peer_has_it_mapped);
	tcase_add_loop_test(tc, object__is_gone__a_peer_that_polls_unmaps_it, 0, 3);
	tcase_add_test(tc, object__is_registered__stays_mapped);
	tcase_add_loop_test(tc, port__clients_come_and_go__server_that_polls_keeps_none_of_them, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
