/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcache_bench.h - what the tests of the registration cache share: a cache, and
 * another process that looks at memory through the handles it gives.
 */
#ifndef TEST_RCACHE_BENCH_H
#define TEST_RCACHE_BENCH_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/lib/side.h"

#define R  GLEX_MEM_READ
#define W  GLEX_MEM_WRITE
#define RW (GLEX_MEM_READ | GLEX_MEM_WRITE)
#define K  1024u

static size_t page; /* of the system; set by bench_open */

/* With the hooks in the process (WITH_HOOKS) auto means them. */
static const char *const monitors[] = {"auto", "explicit", "off", "userfaultfd", "hooks"};
#ifdef WITH_HOOKS
enum { AUTO, EXPLICIT, OFF, USERFAULTFD, HOOKS, MONITORS };
#else
enum { AUTO, EXPLICIT, OFF, USERFAULTFD, MONITORS, HOOKS };
#endif

/* ---- the other process -------------------------------------------------------- */

struct ask {
	struct card target;
	uint32_t offset;
	uint32_t len; /* up to 64 KiB; 0: the end */
	uint32_t put; /* else GET */
	unsigned char byte;
};

struct answer {
	uint32_t failed;
	uint32_t status; /* of the error request, if it has */
	unsigned char first, last;
};

static inline void looker(int fd, void *arg)
{
	struct glex_rdma_req req;
	struct answer answer;
	glex_event_t *event;
	struct side side;
	struct ask ask;
	uint32_t num;
	struct glex_err_req err;

	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 64 * K, false);
	for (;;) {
		hear(fd, &ask, sizeof(ask));
		if (!ask.len)
			break;
		memset(side.buf, ask.byte, 64 * K);
		req = rdma_between(&side, &ask.target, ask.put ? GLEX_RDMA_TYPE_PUT : GLEX_RDMA_TYPE_GET, 0, ask.len);
		req.rmt_offset = ask.offset;
		req.flag = GLEX_FLAG_LOCAL_EVT;
		req.local_evt.cookie_1 = 1;
		post_rdma(side.ep, &req);
		answer.failed = 2;
		UNTIL((glex_probe_first_event(side.ep, 0, &event) == GLEX_SUCCESS && (answer.failed = 0, 1)) ||
		      (num = 1,
		       glex_poll_error_req(side.ep, &num, &err) == GLEX_SUCCESS && num == 1 && (answer.failed = 1, 1)));
		glex_discard_probed_event(side.ep);
		answer.status = answer.failed == 1 ? (uint32_t)err.status : 0;
		answer.first = side.buf[0];
		answer.last = side.buf[ask.len - 1];
		say(fd, &answer, sizeof(answer));
	}
	side_close(&side);
}

struct bench {
	struct side side;
	struct peer peer;
	glex_rcache_handle_t rc;
};

static inline void bench_open(struct bench *b, int monitor, const struct glex_rcache_attr *attr)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	setenv("GLEX_MEM_MONITOR", monitors[monitor], 1);
	b->peer = peer_start(looker, NULL);
	side_open(&b->side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_rcache_create(b->side.ep, attr, &b->rc));
}

static inline struct glex_rcache_stats stats_of(const struct bench *b)
{
	struct glex_rcache_stats stats;

	OK(glex_rcache_query(b->rc, &stats));
	return stats;
}

/* Nothing is held any more; destroy leaves nothing in the table. */
static inline void bench_close(struct bench *b)
{
	struct ask end = {.len = 0};

	ck_assert_uint_eq(stats_of(b).in_use, 0);
	OK(glex_rcache_destroy(b->rc));
	say(b->peer.fd, &end, sizeof(end));
	peer_join(&b->peer);
	side_close(&b->side);
}

static inline struct answer ask_peer(const struct bench *b, const struct glex_rcache_region *region, uint32_t at,
				     uint32_t len, bool put, unsigned char byte)
{
	struct ask ask = {.target = b->side.card, .offset = region->offset + at, .len = len, .put = put, .byte = byte};
	struct answer answer;

	ask.target.mh = region->mh;
	say(b->peer.fd, &ask, sizeof(ask));
	hear(b->peer.fd, &answer, sizeof(answer));
	return answer;
}

static inline void peer_finds(const struct bench *b, const struct glex_rcache_region *region, uint32_t len,
			      unsigned char byte)
{
	struct answer answer = ask_peer(b, region, 0, len, false, 0);

	ck_assert_msg(answer.failed == 0, "the peer's request failed: %s", glex_error_req_status_str(answer.status));
	ck_assert_uint_eq(answer.first, byte);
	ck_assert_uint_eq(answer.last, byte);
}

/* ---- memory ------------------------------------------------------------------- */

/*
 * Addresses far from those the system gives by itself: what is unmapped there stays free until the test maps it
 * again, also while a sanitizer maps memory for itself.  Only a wish, so any place may come of it.
 */
#ifdef __SANITIZE_THREAD__
#define LONELY UINT64_C(0x1000000000) /* the thread sanitizer allows no mapping at the others */
#else
#define LONELY UINT64_C(0x200000000000)
#endif

static inline void *lonely(size_t len)
{
	static _Atomic uintptr_t next = LONELY;

	/* relaxed: only that no two are the same */
	return (void *)atomic_fetch_add_explicit(&next, len + 4 * page, memory_order_relaxed);
}

static inline unsigned char *map_at(void *where, size_t len, unsigned char byte)
{
	unsigned char *mem = mmap(where ? where : lonely(len), len, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	memset(mem, byte, len);
	return mem;
}

/* What kinds of memory there are to be unmapped. */
enum { PRIVATE, SHARED, KINDS_OF_MEMORY };

static inline unsigned char *map_kind(int kind, void *where, size_t len, unsigned char byte)
{
	unsigned char *mem;
	int fd;

	if (kind == PRIVATE)
		return map_at(where, len, byte);
	fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0); /* such are mapped by peers */
	mem = mmap(where ? where : lonely(len), len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | (where ? MAP_FIXED_NOREPLACE : 0), fd, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	close(fd);
	memset(mem, byte, len);
	return mem;
}

/* Unmaps it as a program does under this monitor. */
static inline void unmap(int monitor, void *mem, size_t len)
{
	if (monitor == EXPLICIT)
		OK(glex_mem_invalidate(mem, len));
	ck_assert_int_eq(munmap(mem, len), 0);
}

static inline struct glex_rcache_region get(struct bench *b, void *mem, size_t len, int32_t flag)
{
	struct glex_rcache_region region;

	OK(glex_rcache_get(b->rc, mem, len, flag, &region));
	return region;
}

static inline void put(struct bench *b, const struct glex_rcache_region *region)
{
	OK(glex_rcache_put(b->rc, region));
}

static inline struct glex_rcache_region get_put(struct bench *b, void *mem, size_t len, int32_t flag)
{
	struct glex_rcache_region region = get(b, mem, len, flag);

	put(b, &region);
	return region;
}

#endif /* TEST_RCACHE_BENCH_H */
