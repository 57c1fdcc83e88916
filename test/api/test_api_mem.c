/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_mem.c - registering memory: any address, any length, many times;
 * whose a handle is, and until when.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/lib/side.h"

#define RW    (GLEX_MEM_READ | GLEX_MEM_WRITE)
#define UNITS 4096

static unsigned char static_memory[333];

/* A card for other memory on the same endpoint. */
static struct card card_of(const struct side *side, glex_mem_handle_t mh)
{
	struct card card = side->card;

	card.mh = mh;
	return card;
}

/* Another process PUTs into what we registered, and GETs it back. */
struct visit {
	struct card target;
	uint32_t offset;
	uint32_t len;
};

static void visitor(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct side side;
	struct visit visit;
	struct glex_rdma_req req;

	side_open(&side, type_of(kind), 1 << 20, is_mapped(kind));
	for (;;) {
		hear(fd, &visit, sizeof(visit));
		if (!visit.len)
			break;
		fill(side.buf, visit.len, visit.len);
		req = rdma_between(&side, &visit.target, GLEX_RDMA_TYPE_PUT, 0, visit.len);
		req.rmt_offset = visit.offset;
		req.flag = GLEX_FLAG_LOCAL_EVT;
		req.local_evt.cookie_1 = 1;
		post_rdma(side.ep, &req);
		take_event(side.ep);
		memset(side.buf, 0, visit.len);
		req.type = GLEX_RDMA_TYPE_GET;
		post_rdma(side.ep, &req);
		take_event(side.ep);
		expect_filled(side.buf, visit.len, visit.len);
		expect_no_error(side.ep);
		meet(fd);
	}
	side_close(&side);
}

static void let_visit(const struct side *side, int fd, unsigned char *base, glex_mem_handle_t mh, uint32_t offset,
		      uint32_t len)
{
	struct visit visit = {card_of(side, mh), offset, len};

	say(fd, &visit, sizeof(visit));
	meet(fd);
	expect_filled(base + offset, len, len);
}

static void end_visits(struct peer *peer)
{
	struct visit none = {.len = 0};

	say(peer->fd, &none, sizeof(none));
	peer_join(peer);
}

START_TEST(register_mem__ten_bytes_stack_static__reached_by_a_peer)
{
	struct peer peer = peer_start(visitor, &_i);
	unsigned char stack[77], *ten = malloc(10), *odd = malloc(100003);
	struct {
		unsigned char *base;
		uint32_t len;
	} rows[] = {
		{ten, 10}, {stack, sizeof(stack)}, {static_memory, sizeof(static_memory)}, {odd + 3, 100000}, {odd, 1}};
	struct side side;
	glex_mem_handle_t mh;
	size_t i;

	side_open(&side, type_of(_i), 0, false);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		OK(glex_register_mem(side.ep, rows[i].base, rows[i].len, RW, &mh));
		let_visit(&side, peer.fd, rows[i].base, mh, 0, rows[i].len);
		OK(glex_deregister_mem(side.ep, mh));
	}
	end_visits(&peer);
	free(ten);
	free(odd);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__two_gigabytes__last_byte_is_reached)
{
	const uint64_t len = UINT64_C(2) << 30;
	struct peer peer = peer_start(visitor, &_i);
	unsigned char *huge =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct side side;
	glex_mem_handle_t mh;

	ck_assert_ptr_ne(huge, MAP_FAILED);
	side_open(&side, type_of(_i), 0, false);
	OK(glex_register_mem(side.ep, huge, len, RW, &mh));
	let_visit(&side, peer.fd, huge, mh, 0, 5000);
	let_visit(&side, peer.fd, huge, mh, (uint32_t)(len - 5000), 5000);
	OK(glex_deregister_mem(side.ep, mh));
	end_visits(&peer);
	munmap(huge, len);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__six_gigabytes__offset_counts_to_four)
{
	const uint64_t len = UINT64_C(6) << 30;
	struct peer peer = peer_start(visitor, &_i);
	unsigned char *huge =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct side side;
	glex_mem_handle_t mh;

	ck_assert_ptr_ne(huge, MAP_FAILED);
	side_open(&side, type_of(_i), 0, false);
	OK(glex_register_mem(side.ep, huge, len, RW, &mh));
	let_visit(&side, peer.fd, huge, mh, UINT32_MAX, 100);
	end_visits(&peer);
	munmap(huge, len);
	OK(glex_deregister_mem(side.ep, mh));
	side_close(&side);
}
END_TEST

START_TEST(register_mem__overlapping_and_repeated__each_handle_is_good)
{
	struct peer peer = peer_start(visitor, &_i);
	glex_mem_handle_t mh[5];
	struct side side;
	int i, j;

	side_open(&side, type_of(_i), 1 << 16, is_mapped(_i));
	OK(glex_register_mem(side.ep, side.buf, side.len, RW, &mh[0]));
	OK(glex_register_mem(side.ep, side.buf, side.len, RW, &mh[1]));
	OK(glex_register_mem(side.ep, side.buf + 1000, 9000, RW, &mh[2]));
	OK(glex_register_mem(side.ep, side.buf + 5000, 9000, RW, &mh[3]));
	OK(glex_register_mem(side.ep, side.buf + 5001, 1, RW, &mh[4]));
	for (i = 0; i < 5; i++)
		for (j = 0; j < i; j++)
			ck_assert_uint_ne(mh[i].v, mh[j].v);
	let_visit(&side, peer.fd, side.buf, mh[0], 0, 1 << 16);
	let_visit(&side, peer.fd, side.buf, mh[1], 1 << 15, 1 << 15);
	let_visit(&side, peer.fd, side.buf + 1000, mh[2], 4000, 5000);
	OK(glex_deregister_mem(side.ep, mh[2]));
	let_visit(&side, peer.fd, side.buf + 5000, mh[3], 0, 9000);
	let_visit(&side, peer.fd, side.buf + 5001, mh[4], 0, 1);
	for (i = 0; i < 5; i++)
		if (i != 2)
			OK(glex_deregister_mem(side.ep, mh[i]));
	end_visits(&peer);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__same_buffer_on_several_endpoints__each_has_its_handle)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = 5};
	glex_mem_handle_t on_first, on_second;
	struct side side;
	glex_ep_handle_t second;
	struct glex_rdma_req req;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	OK(glex_create_ep(side.dev, &attr, &second));
	OK(glex_register_mem(side.ep, side.buf, 4096, RW, &on_first));
	OK(glex_register_mem(second, side.buf, 4096, RW, &on_second));
	rdma_done(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 2048);
	/* somebody else's handle: locally at once, remotely by an error request */
	req = rdma_between(&side, &side.card, GLEX_RDMA_TYPE_PUT, 0, 2048);
	req.local_mh = on_second;
	RETURNS(glex_rdma(side.ep, &req, NULL), GLEX_INVALID_PARAM);
	req.local_mh = on_first;
	req.rmt_mh = on_second;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_MMT);
	RETURNS(glex_deregister_mem(second, on_first), GLEX_INVALID_PARAM);
	RETURNS(glex_deregister_mem(side.ep, on_second), GLEX_INVALID_PARAM);
	OK(glex_deregister_mem(side.ep, on_first));
	OK(glex_deregister_mem(second, on_second));
	OK(glex_destroy_ep(second));
	side_close(&side);
}
END_TEST

START_TEST(register_mem__bad_arguments__invalid)
{
	struct side side;
	glex_mem_handle_t mh = {.v = 42};
	char c;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	RETURNS(glex_register_mem(NULL, &c, 1, RW, &mh), GLEX_INVALID_PARAM);
	RETURNS(glex_register_mem(side.ep, NULL, 1, RW, &mh), GLEX_INVALID_PARAM);
	RETURNS(glex_register_mem(side.ep, &c, 0, RW, &mh), GLEX_INVALID_PARAM);
	RETURNS(glex_register_mem(side.ep, &c, UINT64_MAX, RW, &mh), GLEX_INVALID_PARAM);
	RETURNS(glex_register_mem(side.ep, &c, 1, 8, &mh), GLEX_INVALID_PARAM);
	RETURNS(glex_register_mem(side.ep, &c, 1, RW, NULL), GLEX_INVALID_PARAM);
	ck_assert_uint_eq(mh.v, 42);
	RETURNS(glex_deregister_mem(side.ep, mh), GLEX_INVALID_PARAM);
	mh.v = 0;
	RETURNS(glex_deregister_mem(side.ep, mh), GLEX_INVALID_PARAM);
	mh.v = UINT64_MAX;
	RETURNS(glex_deregister_mem(side.ep, mh), GLEX_INVALID_PARAM);
	OK(glex_register_mem(side.ep, &c, 1, RW | GLEX_MEM_IOMMU, &mh));
	OK(glex_deregister_mem(side.ep, mh));
	RETURNS(glex_deregister_mem(side.ep, mh), GLEX_INVALID_PARAM);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__table_full__no_mem_resource_and_recovers)
{
	static glex_mem_handle_t mh[UNITS];
	glex_mem_handle_t more = {.v = 7};
	struct side side;
	char text[80];
	int i;

	log_begin();
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	for (i = 0; i < UNITS; i++)
		OK(glex_register_mem(side.ep, static_memory, 1 + (unsigned)i % 100, RW, &mh[i]));
	RETURNS(glex_register_mem(side.ep, static_memory, 2, RW, &more), GLEX_NO_MEM_RESOURCE);
	snprintf(text, sizeof(text), "(GLEX_NO_MEM_RESOURCE): the memory table of NIC %u is full",
		 (unsigned)side.card.addr.s.nic_id);
	ck_assert(is_logged("registering 2 bytes failed") && is_logged(text) && is_logged("deregister some"));
	log_end();
	ck_assert_uint_eq(more.v, 7);
	OK(glex_deregister_mem(side.ep, mh[1234]));
	OK(glex_register_mem(side.ep, static_memory, 1, RW, &mh[1234]));
	RETURNS(glex_register_mem(side.ep, static_memory, 1, RW, &more), GLEX_NO_MEM_RESOURCE);
	for (i = 0; i < UNITS; i++)
		OK(glex_deregister_mem(side.ep, mh[i]));
	OK(glex_register_mem(side.ep, static_memory, 1, RW, &more));
	OK(glex_deregister_mem(side.ep, more));
	/* what an endpoint had registered goes with it */
	for (i = 0; i < UNITS; i++)
		OK(glex_register_mem(side.ep, static_memory, 1, RW, &mh[i]));
	side_close(&side);
	side_open(&side, GLEX_EP_TYPE_FAST, 64, true);
	side_close(&side);
}
END_TEST

static void use_revoked(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct side side;
	struct card card;
	struct glex_rdma_req req;

	side_open(&side, type_of(kind), 4096, is_mapped(kind));
	card = swap_cards(&side, fd);
	rdma_done(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	meet(fd);
	meet(fd); /* it has been revoked, and its place in the table reused */
	memset(side.buf, 0xee, side.len);
	req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 4096);
	req.flag = GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT;
	req.local_evt.cookie_1 = req.rmt_evt.cookie_1 = 1;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_ATT);
	req.type = GLEX_RDMA_TYPE_GET;
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_ATT);
	RETURNS(glex_probe_first_event(side.ep, 0, &(glex_event_t *){NULL}), GLEX_NO_EVENT);
	meet(fd);
	side_close(&side);
}

START_TEST(deregister_mem__peer_uses_the_handle__att_error_and_memory_untouched)
{
	struct peer peer = peer_start(use_revoked, &_i);
	glex_mem_handle_t next;
	struct side side;

	side_open(&side, type_of(_i), 4096, is_mapped(_i));
	swap_cards(&side, peer.fd);
	meet(peer.fd);
	OK(glex_deregister_mem(side.ep, side.card.mh));
	OK(glex_register_mem(side.ep, side.buf, side.len, RW, &next));
	fill(side.buf, side.len, 9);
	meet(peer.fd);
	meet(peer.fd);
	expect_filled(side.buf, side.len, 9);
	RETURNS(glex_probe_first_event(side.ep, 0, &(glex_event_t *){NULL}), GLEX_NO_EVENT);
	side.card.mh = next;
	peer_join(&peer);
	side_close(&side);
}
END_TEST

static void try_access(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct side side;
	struct card card[3]; /* both, read only, write only */
	struct glex_rdma_req req;
	struct glex_imm_rdma_req imm = {.data = "x", .len = 1};

	side_open(&side, type_of(kind), 256, is_mapped(kind));
	hear(fd, card, sizeof(card));
	memset(side.buf, 0x11, 256);
	rdma_done(&side, &card[0], GLEX_RDMA_TYPE_PUT, 0, 256);
	rdma_done(&side, &card[2], GLEX_RDMA_TYPE_PUT, 0, 256);
	rdma_done(&side, &card[0], GLEX_RDMA_TYPE_GET, 0, 256);
	rdma_done(&side, &card[1], GLEX_RDMA_TYPE_GET, 0, 256);
	expect_no_error(side.ep);
	req = rdma_between(&side, &card[1], GLEX_RDMA_TYPE_PUT, 0, 256);
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_MMT);
	imm.rmt_ep_addr = card[1].addr;
	imm.rmt_mh = card[1].mh;
	imm.rmt_key = card[1].key;
	post_imm(side.ep, &imm);
	expect_error(side.ep, GLEX_ERR_OP_IMM_RDMA_PUT, GLEX_ERR_STATUS_MMT);
	req = rdma_between(&side, &card[2], GLEX_RDMA_TYPE_GET, 0, 256);
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_GET, GLEX_ERR_STATUS_MMT);
	side_close(&side);
}

START_TEST(register_mem__read_only_and_write_only__others_get_mmt_errors)
{
	struct peer peer = peer_start(try_access, &_i);
	struct card card[3];
	struct side side;

	side_open(&side, type_of(_i), 256, is_mapped(_i));
	card[0] = card[1] = card[2] = side.card;
	OK(glex_register_mem(side.ep, side.buf, 256, GLEX_MEM_READ, &card[1].mh));
	OK(glex_register_mem(side.ep, side.buf, 256, GLEX_MEM_WRITE, &card[2].mh));
	say(peer.fd, card, sizeof(card));
	peer_join(&peer);
	/* the poster's own side needs neither */
	side.card.mh = card[2].mh;
	rdma_done(&side, &card[0], GLEX_RDMA_TYPE_PUT, 0, 256);
	OK(glex_deregister_mem(side.ep, card[0].mh));
	OK(glex_deregister_mem(side.ep, card[1].mh));
	side_close(&side);
}
END_TEST

START_TEST(alloc__any_length__zeroed_page_aligned_and_reached)
{
	static const uint64_t lens[] = {1, 4096, 100000, 16 << 20};
	struct peer peer = peer_start(visitor, &_i);
	struct side side;
	glex_mem_handle_t mh;
	size_t i, j;
	void *mem;

	side_open(&side, type_of(_i), 0, false);
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		OK(glex_alloc(side.dev, lens[i], &mem));
		ck_assert_uint_eq((uintptr_t)mem % 4096, 0);
		for (j = 0; j < lens[i]; j++)
			if (((unsigned char *)mem)[j])
				ck_abort_msg("byte %zu is not zero", j);
		OK(glex_register_mem(side.ep, mem, lens[i], RW, &mh));
		let_visit(&side, peer.fd, mem, mh, (uint32_t)(lens[i] / 2),
			  (uint32_t)(lens[i] - lens[i] / 2 > 9000 ? 9000 : 1));
		OK(glex_deregister_mem(side.ep, mh));
		OK(glex_free(side.dev, mem));
	}
	RETURNS(glex_alloc(side.dev, 0, &mem), GLEX_INVALID_PARAM);
	RETURNS(glex_alloc(side.dev, UINT64_MAX, &mem), GLEX_INVALID_PARAM);
	RETURNS(glex_alloc(side.dev, 1, NULL), GLEX_INVALID_PARAM);
	RETURNS(glex_alloc(NULL, 1, &mem), GLEX_INVALID_PARAM);
	RETURNS(glex_free(side.dev, static_memory), GLEX_INVALID_PARAM);
	RETURNS(glex_free(side.dev, NULL), GLEX_INVALID_PARAM);
	end_visits(&peer);
	side_close(&side);
}
END_TEST

START_TEST(alloc__freed_and_allocated_again__peer_sees_the_new_memory)
{
	struct peer peer = peer_start(visitor, &_i);
	struct side side;
	glex_mem_handle_t mh;
	void *mem;
	int i;

	side_open(&side, type_of(_i), 0, false);
	for (i = 1; i <= 20; i++) {
		OK(glex_alloc(side.dev, 4096, &mem));
		OK(glex_register_mem(side.ep, mem, 4096, RW, &mh));
		let_visit(&side, peer.fd, mem, mh, 0, (uint32_t)i * 100);
		OK(glex_deregister_mem(side.ep, mh));
		OK(glex_free(side.dev, mem));
		RETURNS(glex_free(side.dev, mem), GLEX_INVALID_PARAM);
	}
	end_visits(&peer);
	side_close(&side);
}
END_TEST

#define TRIES 32

/* Allocates len bytes with a private page right before them, which it maps. Where the kernel puts an allocation is up
 * to it, and it may lie right behind something else: those are given back at the end. */
static unsigned char *alloc_behind_page(struct side *side, uint64_t len, uint64_t page)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	void *got[TRIES], *before = MAP_FAILED;
	int n = 0, i;

	while (before == MAP_FAILED && n < TRIES) {
		OK(glex_alloc(side->dev, len, &got[n]));
		before = mmap((unsigned char *)got[n++] - page, page, prot, flags, -1, 0);
		ck_assert(before != MAP_FAILED || errno == EEXIST);
	}
	ck_assert_ptr_eq(before, (unsigned char *)got[n - 1] - page);
	for (i = 0; i < n - 1; i++)
		OK(glex_free(side->dev, got[i]));
	return before;
}

/* A private page, an allocation, and mostly another allocation right behind it: the larger one is mapped. */
START_TEST(register_mem__over_the_bounds_of_allocations__all_bytes_are_reached)
{
	const uint64_t page = 4096, len = 16 * page;
	struct peer peer = peer_start(visitor, &_i);
	struct side side;
	unsigned char *base, *mem;
	glex_mem_handle_t mh;
	void *behind;
	uint64_t all;

	side_open(&side, type_of(_i), 0, false);
	OK(glex_alloc(side.dev, 4 * page, &behind));
	base = alloc_behind_page(&side, len, page);
	mem = base + page;
	all = page + len + (behind == mem + len ? 4 * page : 0);
	OK(glex_register_mem(side.ep, base + 7, all - 7, RW, &mh));
	let_visit(&side, peer.fd, base + 7, mh, 0, (uint32_t)all - 7);
	let_visit(&side, peer.fd, base + 7, mh, (uint32_t)page - 57, 100);
	let_visit(&side, peer.fd, base + 7, mh, (uint32_t)page - 7, (uint32_t)len);
	let_visit(&side, peer.fd, base + 7, mh, (uint32_t)all - 8, 1);
	OK(glex_deregister_mem(side.ep, mh));
	OK(glex_free(side.dev, mem));
	OK(glex_free(side.dev, behind));
	munmap(base, page);
	end_visits(&peer);
	side_close(&side);
}
END_TEST

#define HUGE ((size_t)2 << 20)

/* KiB of huge pages in the mapping that holds addr. */
static long huge_kib(const void *addr)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool inside = false;
	char line[512];
	long kib = -1;

	ck_assert_ptr_nonnull(smaps);
	while (kib < 0 && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (uintptr_t)addr >= start && (uintptr_t)addr < end;
		else if (inside)
			sscanf(line, "AnonHugePages: %ld", &kib);
	}
	fclose(smaps);
	return kib;
}

START_TEST(register_mem__the_same_private_memory_often__is_put_into_huge_pages)
{
	unsigned char *room = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *base = (unsigned char *)(((uintptr_t)room + HUGE) / HUGE * HUGE);
	glex_mem_handle_t mh;
	struct side side;
	long kib;
	bool can;
	int i;

	ck_assert_ptr_ne(room, MAP_FAILED);
	fill(base, 2 * HUGE, 3);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	for (i = 0; i < 7; i++) {
		OK(glex_register_mem(side.ep, base, 2 * HUGE, RW, &mh));
		OK(glex_deregister_mem(side.ep, mh));
		ck_assert_int_eq(huge_kib(base), 0);
	}
	OK(glex_register_mem(side.ep, base, 2 * HUGE, RW, &mh));
	kib = huge_kib(base);
	can = madvise(base, 2 * HUGE, 25) == 0; /* MADV_COLLAPSE: does the system have such pages at all? */
	ck_assert_int_eq(kib, can ? 4096 : 0);
	expect_filled(base, 2 * HUGE, 3);
	OK(glex_deregister_mem(side.ep, mh));
	munmap(room, 4 * HUGE);
	side_close(&side);
}
END_TEST

static void put_into_hole(int fd, void *arg)
{
	int kind = *(int *)arg;
	struct side side;
	struct card card;
	struct glex_rdma_req req;

	side_open(&side, type_of(kind), 8192, is_mapped(kind));
	card = swap_cards(&side, fd);
	req = rdma_between(&side, &card, GLEX_RDMA_TYPE_PUT, 0, 8192);
	post_rdma(side.ep, &req);
	expect_error(side.ep, GLEX_ERR_OP_RDMA_PUT, GLEX_ERR_STATUS_ATT);
	side_close(&side);
}

START_TEST(register_mem__unmapped_behind_its_back__att_error_at_the_peer)
{
	struct peer peer = peer_start(put_into_hole, &_i);
	unsigned char *mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct side side;

	ck_assert_ptr_ne(mem, MAP_FAILED);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, mem, 8192, RW, &side.card.mh));
	munmap(mem + 4096, 4096);
	swap_cards(&side, peer.fd);
	peer_join(&peer);
	OK(glex_deregister_mem(side.ep, side.card.mh));
	munmap(mem, 4096);
	side_close(&side);
}
END_TEST

/* ---- one thread registers while another creates and destroys endpoints ---------- */

#define ROUNDS 300

static _Atomic bool enough;

static void *come_and_go(void *arg)
{
	struct glex_ep_attr attr = {
		.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .mpq_capacity = 2, .eq_capacity = 2};
	glex_device_handle_t dev = arg;
	glex_mem_handle_t mh[8];
	glex_ep_handle_t ep;
	int i, j;

	for (i = 0; i < ROUNDS; i++) {
		OK(glex_create_ep(dev, &attr, &ep));
		for (j = 0; j < 8; j++)
			OK(glex_register_mem(ep, static_memory, 10, RW, &mh[j]));
		/* some are left for destroy to revoke, some leave their place to the other thread */
		for (j = 0; j < 4; j++)
			OK(glex_deregister_mem(ep, mh[j]));
		OK(glex_destroy_ep(ep));
	}
	enough = true;
	return NULL;
}

START_TEST(register_mem__while_other_endpoints_are_destroyed__handles_stay_good)
{
	struct side side;
	glex_mem_handle_t mh[4];
	pthread_t thread;
	uint64_t n = 0;
	int j;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, come_and_go, side.dev), 0);
	while (!enough) {
		for (j = 0; j < 4; j++)
			OK(glex_register_mem(side.ep, static_memory, 10, RW, &mh[j]));
		for (j = 0; j < 4; j++)
			if (glex_deregister_mem(side.ep, mh[j]) != GLEX_SUCCESS)
				ck_abort_msg("a handle was revoked by somebody else, after %llu good ones",
					     (unsigned long long)n);
		n++;
	}
	pthread_join(thread, NULL);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mem");
	TCase *tc = tcase_create("mem");

	own_job("mem");
	tcase_add_loop_test(tc, register_mem__ten_bytes_stack_static__reached_by_a_peer, 0, KINDS);
	tcase_add_loop_test(tc, register_mem__two_gigabytes__last_byte_is_reached, 0, KINDS);
	tcase_add_loop_test(tc, register_mem__six_gigabytes__offset_counts_to_four, 0, KINDS);
	tcase_add_loop_test(tc, register_mem__overlapping_and_repeated__each_handle_is_good, 0, KINDS);
	tcase_add_loop_test(tc, register_mem__same_buffer_on_several_endpoints__each_has_its_handle, 0, KINDS);
	tcase_add_test(tc, register_mem__bad_arguments__invalid);
	tcase_add_test(tc, register_mem__table_full__no_mem_resource_and_recovers);
	tcase_add_loop_test(tc, deregister_mem__peer_uses_the_handle__att_error_and_memory_untouched, 0, KINDS);
	tcase_add_loop_test(tc, register_mem__read_only_and_write_only__others_get_mmt_errors, 0, KINDS);
	tcase_add_loop_test(tc, alloc__any_length__zeroed_page_aligned_and_reached, 0, KINDS);
	tcase_add_loop_test(tc, register_mem__over_the_bounds_of_allocations__all_bytes_are_reached, 0, KINDS);
	tcase_add_test(tc, register_mem__the_same_private_memory_often__is_put_into_huge_pages);
	tcase_add_loop_test(tc, alloc__freed_and_allocated_again__peer_sees_the_new_memory, 0, KINDS);
	tcase_add_loop_test(tc, register_mem__unmapped_behind_its_back__att_error_at_the_peer, 0, KINDS);
	tcase_add_test(tc, register_mem__while_other_endpoints_are_destroyed__handles_stay_good);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
