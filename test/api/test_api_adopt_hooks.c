/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_adopt_hooks.c - adoption as it happens by itself: by the registration
 * cache, with libglex-memhooks in the process, which sees what the program does
 * to memory that is not private any more.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "test/api/adopt.h"
#include "test/api/rcache_bench.h"
#include "test/lib/helper.h"

/* KiB of memory that adopted pages have; it is one file of the process. */
static long adopted_kib(void)
{
	char path[64], name[256];
	struct stat st;

	for (int fd = 3; fd < 200; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		if (strstr(name, "glex_adopted") && fstat(fd, &st) == 0)
			return st.st_blocks / 2;
	}
	return -1;
}

struct adopter {
	struct side side;
	struct peer mapper; /* may not attach: what it reaches it has mapped */
	glex_rcache_handle_t rc;
};

static void open_adopter(struct adopter *a)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	a->mapper = peer_start(helper_main, &mapper);
	side_open(&a->side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_rcache_create(a->side.ep, NULL, &a->rc));
}

static void close_adopter(struct adopter *a)
{
	OK(glex_rcache_destroy(a->rc));
	let_go(&a->mapper);
	side_close(&a->side);
}

/* Used so often that it is moved; a region of it that is held. */
static struct glex_rcache_region use_often(struct adopter *a, unsigned char *mem, size_t len)
{
	struct glex_rcache_region region;

	for (int i = 0; i < 20; i++) {
		OK(glex_rcache_get(a->rc, mem, len, RW, &region));
		OK(glex_rcache_put(a->rc, &region));
	}
	OK(glex_rcache_get(a->rc, mem, len, RW, &region));
	return region;
}

static void expect_mapped(struct adopter *a, unsigned char *mem, const struct glex_rcache_region *region)
{
	glex_mem_handle_t mh = region->mh;

	ck_assert(!tell(&a->mapper, &a->side, mh, PUT, region->offset, 60000, 5).failed);
	expect_filled(mem, 60000, 5);
	fill(mem, 60000, 6);
	ck_assert(!tell(&a->mapper, &a->side, mh, GET, region->offset, 60000, 6).failed);
}

/* As a program does that sends longer and longer parts of a buffer.  0: many short ones before. */
START_TEST(rcache__grows__all_of_it_is_mapped_by_peers)
{
	unsigned char *mem = map_at(NULL, 4 * LEN, 3);
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	for (int i = 0; i < 1000 && _i == 0; i++) {
		OK(glex_rcache_get(a.rc, mem, LEN / 16, RW, &region));
		OK(glex_rcache_put(a.rc, &region));
	}
	for (size_t len = LEN / 4; len <= 4 * LEN; len *= 2) {
		glex_mem_handle_t mh;

		region = use_often(&a, mem, len);
		mh = region.mh;
		ck_assert(!tell(&a.mapper, &a.side, mh, PUT, region.offset + (uint32_t)len - 60000, 60000, 5).failed);
		expect_filled(mem + len - 60000, 60000, 5);
		expect_mapped(&a, mem, &region);
		OK(glex_rcache_put(a.rc, &region));
	}
	ck_assert_int_eq(adopted_kib(), (long)(4 * LEN / 1024)); /* what was left behind is given back */
	close_adopter(&a);
}
END_TEST

START_TEST(rcache__used_often__is_adopted_and_mapped_by_peers)
{
	unsigned char *mem = map_at(NULL, LEN, 3);
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	for (int i = 0; i < 3; i++) {
		OK(glex_rcache_get(a.rc, mem, LEN, RW, &region));
		OK(glex_rcache_put(a.rc, &region));
	}
	ck_assert(!is_shared(mem)); /* three times is not often */
	region = use_often(&a, mem, LEN);
	ck_assert(is_shared(mem));
	ck_assert_int_eq(mem[LEN - 1], 3);
	expect_mapped(&a, mem, &region);
	OK(glex_rcache_put(a.rc, &region));
	munmap(mem, LEN);
	close_adopter(&a);
}
END_TEST

/* Peers that use it often by attach do not take the cache's turn.  _i: so many times. */
struct registrant {
	struct adopter *adopter;
	void *mem; /* of an object that glexd has to be told of */
	struct glex_rcache_region region;
};

static void *register_shared(void *arg)
{
	struct registrant *r = arg;

	OK(glex_rcache_get(r->adopter->rc, r->mem, LEN, RW, &r->region));
	return NULL;
}

static uint64_t misses_of(const struct adopter *a)
{
	struct glex_rcache_stats stats;

	OK(glex_rcache_query(a->rc, &stats));
	return stats.misses;
}

/* What must not happen while another thread registers is put off, not given up. */
START_TEST(rcache__becomes_hot_while_another_thread_registers__is_adopted_later)
{
	unsigned char *mem = map_at(NULL, LEN, 3);
	struct glex_rcache_region region;
	struct registrant other;
	struct adopter a;
	pthread_t thread;
	uint64_t misses;

	open_adopter(&a);
	other.adopter = &a;
	other.mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(other.mem, MAP_FAILED);
	OK(glex_rcache_get(a.rc, mem, LEN, RW, &region));
	ck_assert(tell(&a.mapper, &a.side, region.mh, GET, 0, 100, 3).failed); /* not yet; and it is there */
	OK(glex_rcache_put(a.rc, &region));
	misses = misses_of(&a);
	glexd_stop();
	ck_assert_int_eq(pthread_create(&thread, NULL, register_shared, &other), 0);
	UNTIL(misses_of(&a) == misses + 1);
	for (int i = 0; i < 20; i++) {
		OK(glex_rcache_get(a.rc, mem, LEN, RW, &region));
		OK(glex_rcache_put(a.rc, &region));
	}
	ck_assert(!is_shared(mem));
	glexd_go_on();
	pthread_join(thread, NULL);
	region = use_often(&a, mem, LEN);
	expect_mapped(&a, mem, &region);
	OK(glex_rcache_put(a.rc, &region));
	OK(glex_rcache_put(a.rc, &other.region));
	munmap(other.mem, LEN);
	munmap(mem, LEN);
	close_adopter(&a);
}
END_TEST

START_TEST(rcache__peers_used_it_often__is_adopted_when_the_cache_asks)
{
	struct peer near = peer_start(helper_main, &mover);
	unsigned char *mem = map_at(NULL, LEN, 3);
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	OK(glex_rcache_get(a.rc, mem, LEN, RW, &region));
	for (int i = 0; i < 9 * _i; i++) {
		ck_assert(!tell(&near, &a.side, region.mh, PUT, region.offset, LEN, (uint32_t)i).failed);
		if (i % 9 == 8)
			idle(&a.side);
	}
	OK(glex_rcache_put(a.rc, &region));
	ck_assert(!is_shared(mem));
	region = use_often(&a, mem, LEN);
	ck_assert(is_shared(mem));
	OK(glex_rcache_put(a.rc, &region));
	munmap(mem, LEN);
	let_go(&near);
	close_adopter(&a);
}
END_TEST

/* The last one private memory would refuse, and this does not, for it is private no more: it is what was asked for. */
static const int advices[] = {MADV_DONTNEED, MADV_FREE, MADV_REMOVE};

/* _i: which advice */
START_TEST(rcache__contents_of_adopted_memory_discarded__zero_for_all)
{
	unsigned char *mem = map_at(NULL, LEN, 3);
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	region = use_often(&a, mem, LEN);
	ck_assert(is_shared(mem));
	ck_assert_int_eq(adopted_kib(), LEN / 1024);
	OK(glex_rcache_put(a.rc, &region));
	madvise(mem + LEN / 2, LEN / 4, advices[_i]); /* what it returns is the system's business */
	for (size_t i = 0; i < LEN; i++)
		ck_assert_int_eq(mem[i], i >= LEN / 2 && i < LEN * 3 / 4 ? 0 : 3);
	region = use_often(&a, mem, LEN);
	memset(mem, 0, 60000);
	expect_mapped(&a, mem, &region);
	OK(glex_rcache_put(a.rc, &region));
	munmap(mem, LEN);
	close_adopter(&a);
}
END_TEST

/* What the kernel does not do to private memory is not done to this.  _i: 0 an odd address, 1 it is locked; + 2: _FREE */
START_TEST(rcache__advice_is_refused__adopted_contents_stay)
{
	int advice = _i / 2 ? MADV_FREE : MADV_DONTNEED;
	unsigned char *mem = map_at(NULL, LEN, 3);
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	region = use_often(&a, mem, LEN);
	OK(glex_rcache_put(a.rc, &region));
	ck_assert(is_shared(mem));
	if (_i % 2)
		ck_assert_int_eq(mlock(mem + LEN / 2, page), 0);
	ck_assert_int_eq(madvise(mem + LEN / 2 + (_i % 2 ? 0 : 8), page, advice), -1);
	for (size_t i = 0; i < LEN; i++)
		ck_assert_int_eq(mem[i], 3);
	munmap(mem, LEN);
	close_adopter(&a);
}
END_TEST

/* Pages go as a whole, and what is mapped goes even if the call fails for what is not.  _i: 1: a page is missing */
START_TEST(rcache__some_of_adopted_memory_is_discarded__whole_pages_are_zero)
{
	size_t from = LEN / 2, len = 5 * PAGE + 100, hole = from + 2 * PAGE;
	unsigned char *mem = map_at(NULL, LEN, 3);
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	region = use_often(&a, mem, LEN);
	OK(glex_rcache_put(a.rc, &region));
	ck_assert(is_shared(mem));
	if (_i)
		munmap(mem + hole, page);
	ck_assert_int_eq(madvise(mem + from, len, MADV_DONTNEED), _i ? -1 : 0);
	for (size_t i = 0; i < LEN; i++)
		if (!_i || i < hole || i >= hole + page)
			ck_assert_int_eq(mem[i], i >= from && i < from + 6 * PAGE ? 0 : 3);
	munmap(mem, LEN);
	close_adopter(&a);
}
END_TEST

/* ---- signals --------------------------------------------------------------------- */

static _Atomic unsigned handled;

/* As a runtime does that looks after its memory, or a profiler. */
static void map_and_unmap(int number)
{
	void *mem = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)number;
	if (mem != MAP_FAILED) {
		madvise(mem, page, MADV_DONTNEED);
		munmap(mem, page);
	}
	handled++;
}

static void alarms(long us)
{
	struct itimerval every = {{0, us}, {0, us}};

	ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* So many that giving back takes a while. */
static void map_very_many(void)
{
	unsigned char *room = map_at(NULL, 1000 * page, 0);

	for (size_t i = 0; i < 1000; i += 2)
		ck_assert_int_eq(mprotect(room + i * page, page, PROT_READ), 0);
}

START_TEST(rcache__handler_of_a_signal_unmaps_while_the_program_does__both_go_on)
{
	struct sigaction action = {.sa_handler = map_and_unmap, .sa_flags = SA_RESTART}, usual;
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	map_very_many();
	ck_assert_int_eq(sigaction(SIGALRM, &action, &usual), 0);
	for (int round = 0; round < 5; round++) {
		unsigned char *mem = map_at(NULL, LEN, 3);
		unsigned before;
		pid_t child;

		region = use_often(&a, mem, LEN);
		OK(glex_rcache_put(a.rc, &region));
		ck_assert(is_shared(mem));
		before = handled;
		alarms(300);
		child = fork();
		if (child == 0)
			_exit(EXIT_SUCCESS);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
		for (size_t at = 0; at < LEN; at += page) {
			ck_assert_int_eq(madvise(mem + at, page, MADV_DONTNEED), 0);
			ck_assert_int_eq(munmap(mem + at, page), 0);
		}
		alarms(0);
		ck_assert_uint_gt(handled, before);
		ck_assert_int_eq(adopted_kib(), 0);
	}
	sigaction(SIGALRM, &usual, NULL);
	close_adopter(&a);
}
END_TEST

/* ---- what goes ------------------------------------------------------------------- */

/* _i: 0 unmapped, 1 mapped over, 2 moved away and unmapped there */
START_TEST(rcache__adopted_memory_goes__its_pages_are_given_back)
{
	unsigned char *mem = map_at(NULL, LEN, 3), *other;
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	for (int round = 0; round < 9; round++) { /* however often: only attempts in vain become rarer */
		region = use_often(&a, mem, LEN);
		ck_assert(is_shared(mem));
		ck_assert_int_eq(adopted_kib(), LEN / 1024);
		expect_mapped(&a, mem, &region);
		OK(glex_rcache_put(a.rc, &region));
		if (_i == 2) {
			other = map_at(NULL, LEN, 0);
			ck_assert_ptr_eq(mremap(mem, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, other), other);
			ck_assert_int_eq(other[LEN - 1], 3);
			ck_assert_int_eq(adopted_kib(), LEN / 1024);
			munmap(other, LEN);
		}
		if (_i == 0)
			munmap(mem, LEN);
		ck_assert_ptr_eq(mmap(mem, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 mem);
		ck_assert_int_eq(adopted_kib(), 0);
		ck_assert_int_eq(mem[0], 0);
		memset(mem, 3, LEN);
	}
	munmap(mem, LEN);
	close_adopter(&a);
}
END_TEST

/*
 * Two blocks side by side that the cache has one region over: what becomes longer
 * shares no bytes with the other one.  _i: 1 it may move; + 2: it has room where it is
 */
START_TEST(rcache__one_of_two_that_were_adopted_as_one_is_made_longer__the_other_keeps_its_bytes)
{
	unsigned char *mem = map_at(NULL, 2 * LEN, 3), *other = mem + LEN, *longer;
	int flags = _i % 2 ? MREMAP_MAYMOVE : 0;
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	region = use_often(&a, mem, 2 * LEN);
	OK(glex_rcache_put(a.rc, &region));
	ck_assert(is_shared(mem) && is_shared(other));
	if (_i / 2) {
		other = map_at(NULL, LEN, 0);
		ck_assert_ptr_eq(mremap(mem + LEN, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, other), other);
	}
	longer = mremap(mem, LEN - 1, 2 * LEN - 1, flags); /* which means whole pages */
	if (_i == 0) {
		ck_assert_ptr_eq(longer, MAP_FAILED);
	} else {
		ck_assert_ptr_ne(longer, MAP_FAILED);
		ck_assert(_i < 2 || longer == mem);
		for (size_t i = 0; i < 2 * LEN; i++)
			ck_assert_int_eq(longer[i], i < LEN ? 3 : 0);
		memset(longer, 4, 2 * LEN);
		region = use_often(&a, longer, 2 * LEN);
		expect_mapped(&a, longer, &region);
		OK(glex_rcache_put(a.rc, &region));
	}
	for (size_t i = 0; i < LEN; i++)
		ck_assert_int_eq(other[i], 3);
	munmap(other, LEN);
	munmap(longer, 2 * LEN);
	close_adopter(&a);
}
END_TEST

/* A block of malloc's that has a mapping of its own, which is LEN long. */
static unsigned char *own_mapping(void)
{
	unsigned char *block;

	mallopt(M_MMAP_THRESHOLD, LEN / 2);
	block = malloc(LEN - 64);
	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq(((uintptr_t)block + malloc_usable_size(block)) % page, 0);
	memset(block, 3, LEN - 64);
	return block;
}

static unsigned char *page_of(unsigned char *block)
{
	return block - (uintptr_t)block % page;
}

/* As above, but malloc's blocks, which realloc moves without anybody's seeing mremap. */
START_TEST(rcache__one_of_two_blocks_that_were_adopted_as_one_is_reallocated__the_other_keeps_its_bytes)
{
	unsigned char *block[16], *other = NULL, *longer = NULL;
	struct glex_rcache_region region;
	struct adopter a;
	int i;

	open_adopter(&a);
	for (i = 0; i < 16 && !other; i++) {
		block[i] = own_mapping();
		for (int k = 0; k < i; k++)
			if (block[k] == block[i] + LEN)
				other = block[k];
	}
	ck_assert_ptr_nonnull(other);
	region = use_often(&a, page_of(block[i - 1]), 2 * LEN);
	OK(glex_rcache_put(a.rc, &region));
	ck_assert(is_shared(block[i - 1]) && is_shared(other));
	longer = realloc(block[i - 1], 2 * LEN - 64);
	ck_assert_ptr_nonnull(longer);
	for (size_t k = 0; k < LEN - 64; k++)
		ck_assert(longer[k] == 3 && other[k] == 3);
	memset(longer, 4, 2 * LEN - 64);
	for (size_t k = 0; k < LEN - 64; k++)
		ck_assert_int_eq(other[k], 3);
	memset(other, 5, LEN - 64);
	for (size_t k = 0; k < 2 * LEN - 64; k++)
		ck_assert_int_eq(longer[k], 4);
	free(longer);
	while (--i > 0)
		free(block[i - 1]);
	ck_assert_int_eq(adopted_kib(), 0);
	close_adopter(&a);
}
END_TEST

/* _i: 1 by realloc */
START_TEST(rcache__adopted_block_is_freed__its_pages_are_given_back)
{
	struct glex_rcache_region region;
	struct adopter a;

	open_adopter(&a);
	for (int round = 0; round < 9; round++) {
		unsigned char *block = own_mapping();

		region = use_often(&a, page_of(block), LEN);
		OK(glex_rcache_put(a.rc, &region));
		ck_assert(is_shared(block));
		ck_assert_int_eq(adopted_kib(), LEN / 1024);
		if (_i)
			block = realloc(block, 64);
		ck_assert(!_i || (block && block[0] == 3 && block[63] == 3));
		free(block);
		ck_assert_int_eq(adopted_kib(), 0);
	}
	close_adopter(&a);
}
END_TEST

/* What mremap leaves behind reads zero. */
/* _i: 1 when the process has no descriptor left */
START_TEST(rcache__adopted_memory_is_moved_and_its_place_kept__is_zero_there)
{
	unsigned char *mem = map_at(NULL, LEN, 3), *moved;
	struct glex_rcache_region region;
	struct rlimit usual, none;
	struct adopter a;

	open_adopter(&a);
	region = use_often(&a, mem, LEN);
	OK(glex_rcache_put(a.rc, &region));
	ck_assert(is_shared(mem));
	getrlimit(RLIMIT_NOFILE, &usual);
	none = usual;
	none.rlim_cur = _i ? 0 : usual.rlim_cur;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	moved = mremap(mem, LEN, LEN, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	ck_assert_ptr_ne(moved, MAP_FAILED);
	ck_assert_ptr_ne(moved, mem);
	for (size_t i = 0; i < LEN; i++)
		ck_assert(moved[i] == 3 && mem[i] == 0);
	ck_assert_int_eq(madvise(moved, page, MADV_DONTNEED), 0);
	for (size_t i = 0; i < LEN; i++)
		ck_assert_int_eq(moved[i], i < page ? 0 : 3);
	setrlimit(RLIMIT_NOFILE, &usual);
	munmap(mem, LEN);
	munmap(moved, LEN);
	close_adopter(&a);
}
END_TEST

/* ---- everybody at once ------------------------------------------------------------- */

#define THREADS 3
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 40
#else
#define ROUNDS 250
#endif

/*
 * Side by side in one piece of addresses, so that the cache merges what they
 * register, and moves pages of one while another unmaps and maps its own.
 */
struct neighbour {
	struct adopter *adopter;
	struct peer peer;
	unsigned char *mem;
	size_t len;
	unsigned seed;
};

static void use_once(struct neighbour *n, uint32_t seed)
{
	struct glex_rcache_region region;
	glex_mem_handle_t mh;

	OK(glex_rcache_get(n->adopter->rc, n->mem, n->len, RW, &region));
	mh = region.mh;
	fill(n->mem, n->len, seed);
	ck_assert(!tell(&n->peer, &n->adopter->side, mh, GET, region.offset, (uint32_t)n->len, seed).failed);
	ck_assert(!tell(&n->peer, &n->adopter->side, mh, PUT, region.offset, (uint32_t)n->len, seed + 1).failed);
	expect_filled(n->mem, n->len, seed + 1);
	OK(glex_rcache_put(n->adopter->rc, &region));
	expect_filled(n->mem, n->len, seed + 1);
}

static void *come_and_go(void *arg)
{
	struct neighbour *n = arg;

	for (int round = 0; round < ROUNDS; round++) {
		uint32_t uses = 1 + (uint32_t)rand_r(&n->seed) % 6;

		ck_assert_ptr_eq(mmap(n->mem, n->len, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
				 n->mem);
		while (uses--)
			use_once(n, (uint32_t)rand_r(&n->seed));
		if (round % 4 == 0) {
			madvise(n->mem, n->len, MADV_DONTNEED);
			for (size_t i = 0; i < n->len; i += page)
				ck_assert_int_eq(n->mem[i], 0);
			use_once(n, (uint32_t)round);
		}
		ck_assert_int_eq(munmap(n->mem, n->len), 0);
	}
	return NULL;
}

START_TEST(rcache__neighbours_come_and_go_while_they_are_adopted__never_stale)
{
	struct neighbour neighbours[THREADS];
	pthread_t threads[THREADS];
	struct peer peers[THREADS];
	unsigned char *room;
	size_t step;
	struct adopter a;

	setenv("GLEX_PROMOTE_AFTER", "2", 1);
	setenv("GLEX_ADOPT_MIN", "8K", 1);
	for (int i = 0; i < THREADS; i++)
		peers[i] = peer_start(helper_main, &mover);
	open_adopter(&a);
	step = 16 * page;
	room = map_at(NULL, (THREADS + 2) * step, 0);
	munmap(room + step, THREADS * step); /* a hole that is too small for a stack or an arena */
	for (int i = 0; i < THREADS; i++) {
		neighbours[i] = (struct neighbour){&a, peers[i], room + (size_t)(i + 1) * step, step, (unsigned)i + 1};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, &neighbours[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(adopted_kib(), 0); /* some was, and all of it is gone */
	munmap(room, (THREADS + 2) * step);
	for (int i = 0; i < THREADS; i++)
		let_go(&peers[i]);
	close_adopter(&a);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("adopt_hooks");
	TCase *tc = tcase_create("adopt_hooks");

	own_job("adopt_hooks");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, rcache__grows__all_of_it_is_mapped_by_peers, 0, 2);
	tcase_add_test(tc, rcache__used_often__is_adopted_and_mapped_by_peers);
	tcase_add_test(tc, rcache__becomes_hot_while_another_thread_registers__is_adopted_later);
	tcase_add_loop_test(tc, rcache__peers_used_it_often__is_adopted_when_the_cache_asks, 0, 6);
	tcase_add_loop_test(tc, rcache__contents_of_adopted_memory_discarded__zero_for_all, 0, 3);
	tcase_add_loop_test(tc, rcache__advice_is_refused__adopted_contents_stay, 0, 4);
	tcase_add_loop_test(tc, rcache__some_of_adopted_memory_is_discarded__whole_pages_are_zero, 0, 2);
	tcase_add_test(tc, rcache__handler_of_a_signal_unmaps_while_the_program_does__both_go_on);
	tcase_add_loop_test(tc, rcache__adopted_memory_goes__its_pages_are_given_back, 0, 3);
	tcase_add_loop_test(tc, rcache__one_of_two_that_were_adopted_as_one_is_made_longer__the_other_keeps_its_bytes,
			    0, 4);
	tcase_add_test(tc,
		       rcache__one_of_two_blocks_that_were_adopted_as_one_is_reallocated__the_other_keeps_its_bytes);
	tcase_add_loop_test(tc, rcache__adopted_block_is_freed__its_pages_are_given_back, 0, 2);
	tcase_add_loop_test(tc, rcache__adopted_memory_is_moved_and_its_place_kept__is_zero_there, 0, 2);
	tcase_add_test(tc, rcache__neighbours_come_and_go_while_they_are_adopted__never_stale);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
