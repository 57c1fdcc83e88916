/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_rcache_gone.c - memory that goes while it is cached: what the
 * registration cache gives is never of memory that is no longer there.
 *
 * Loops run over the ways in which it may learn of changes (MONITORS).
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <time.h>

#include "test/api/rcache_bench.h"
#include "test/lib/seccomp.h"

struct crowd {
	struct bench *bench;
	int monitor;
	unsigned char *mem;
	_Atomic int stop;
	_Atomic int sent;
};

/* ---- memory that goes ----------------------------------------------------------- */

static bool sees_all(int monitor)
{
	return monitor == EXPLICIT || monitor == USERFAULTFD || monitor == HOOKS;
}

/* Where others found what was there before: ofi-cray#1350. */
START_TEST(rcache__get_unmapped__new_memory_in_the_same_place_is_what_peers_find)
{
	int monitor = _i / KINDS_OF_MEMORY, kind = _i % KINDS_OF_MEMORY, round;
	struct glex_rcache_region region;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, monitor, NULL);
	mem = map_kind(kind, NULL, 8 * page, 1);
	for (round = 1; round < 20; round++) {
		region = get_put(&b, mem, 8 * page, RW);
		region = get(&b, mem, 8 * page, RW);
		peer_finds(&b, &region, (uint32_t)(8 * page), (unsigned char)round);
		put(&b, &region);
		unmap(monitor, mem, 8 * page);
		map_kind(kind, mem, 8 * page, (unsigned char)(round + 1));
	}
	/* of what cannot become wrong userfaultfd may tell later, and of two rounds at once */
	if (sees_all(monitor))
		ck_assert_uint_ge(stats_of(&b).invalidated, monitor == USERFAULTFD && kind == PRIVATE ? 1 : 19);
	unmap(monitor, mem, 8 * page);
	bench_close(&b);
}
END_TEST

/* Every way in which addresses can get other pages, without a word to the library. */
static void replace(int how, unsigned char *mem, size_t len, unsigned char byte)
{
	unsigned char *other, *back;

	switch (how) {
	case 0: /* mapped over */
		ck_assert_ptr_eq(mmap(mem, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 mem);
		break;
	case 1: /* something else is moved there */
		other = map_kind(PRIVATE, NULL, len, 0);
		ck_assert_ptr_eq(mremap(other, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, mem), mem);
		break;
	case 2: /* it moves away */
		other = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		back = mremap(mem, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, other);
		ck_assert_ptr_eq(back, other);
		map_kind(PRIVATE, mem, len, 0);
		memset(back, 0xee, len);
		munmap(back, len);
		break;
	default: /* its contents go */
		ck_assert_int_eq(madvise(mem, len, MADV_DONTNEED), 0);
	}
	memset(mem, byte, len);
}

enum { REPLACEMENTS = 4 };

START_TEST(rcache__memory_replaced__peers_find_what_is_there_now)
{
	static const int which[] = {AUTO, OFF, USERFAULTFD, HOOKS};
	int monitor = which[_i / KINDS_OF_MEMORY], kind = _i % KINDS_OF_MEMORY;
	struct glex_rcache_region region;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, monitor, NULL);
	for (int how = 0; how < REPLACEMENTS; how++) {
		uint64_t before = stats_of(&b).invalidated;

		mem = map_kind(kind, NULL, 8 * page, 0x11);
		region = get_put(&b, mem, 8 * page, RW);
		region = get(&b, mem, 8 * page, RW);
		peer_finds(&b, &region, (uint32_t)(8 * page), 0x11);
		put(&b, &region);
		replace(how, mem, 8 * page, 0x22);
		region = get(&b, mem, 8 * page, RW);
		peer_finds(&b, &region, (uint32_t)(8 * page), 0x22);
		ck_assert_uint_eq(ask_peer(&b, &region, 0, (uint32_t)(8 * page), true, 0x33).failed, 0);
		ck_assert_uint_eq(mem[8 * page - 1], 0x33);
		put(&b, &region);
		if (sees_all(monitor))
			ck_assert_uint_gt(stats_of(&b).invalidated, before);
		munmap(mem, 8 * page);
	}
	bench_close(&b);
}
END_TEST

static const size_t blocks[] = {64u << 20, 5u << 20, 200 * K, 40 * K};

START_TEST(rcache__malloc_free_malloc__peers_find_the_new_contents)
{
	struct glex_rcache_region region;
	unsigned char *mem;
	struct bench b;

	bench_open(&b, _i, NULL);
	for (size_t size = 0; size < sizeof(blocks) / sizeof(blocks[0]); size++) {
		for (int round = 1; round < 8; round++) {
			mem = malloc(blocks[size]);
			if (round % 3 == 2)
				mem = realloc(mem, blocks[size] * 2);
			memset(mem, round, blocks[size]);
			get_put(&b, mem, blocks[size], RW);
			region = get(&b, mem, blocks[size], RW);
			peer_finds(&b, &region, 40 * K, (unsigned char)round);
			put(&b, &region);
			if (_i == EXPLICIT)
				OK(glex_mem_invalidate(mem, blocks[size]));
			free(mem);
		}
		if (_i == HOOKS && size == 0) /* what the allocator gives back was seen each time */
			ck_assert_uint_ge(stats_of(&b).invalidated, 7);
	}
	bench_close(&b);
}
END_TEST

static void *sender(void *arg)
{
	struct crowd *crowd = arg;
	struct glex_rcache_region region;

	while (!crowd->stop) {
		region = get(crowd->bench, crowd->mem, 64 * K, R);
		peer_finds(crowd->bench, &region, 64 * K, 0x44);
		put(crowd->bench, &region);
		crowd->sent++;
	}
	return NULL;
}

/* Where others hung: libfabric#5554. */
START_TEST(rcache__munmap_of_512_mib_while_sends_run__both_go_on)
{
	const size_t huge = (size_t)512 << 20;
	struct crowd crowd = {.monitor = _i};
	unsigned char *mem;
	pthread_t thread;
	struct bench b;

	crowd.bench = &b;
	bench_open(&b, _i, NULL);
	crowd.mem = map_kind(SHARED, NULL, 64 * K, 0x44);
	ck_assert_int_eq(pthread_create(&thread, NULL, sender, &crowd), 0);
	for (int i = 0; i < 30; i++) {
		mem = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		ck_assert_ptr_ne(mem, MAP_FAILED);
		memset(mem + huge / 2, 1, 64 * K);
		get_put(&b, mem, huge, RW);
		unmap(_i, mem, huge);
		UNTIL(crowd.sent > i);
	}
	crowd.stop = 1;
	pthread_join(thread, NULL);
	unmap(_i, crowd.mem, 64 * K);
	bench_close(&b);
}
END_TEST

/* ---- threads --------------------------------------------------------------------- */

static void *unmapper(void *arg)
{
	struct crowd *crowd = arg;
	unsigned seed = 1;

	for (int i = 0; i < 2000; i++) {
		size_t at = (size_t)(rand_r(&seed) % 8) * 2 * page;

		unmap(crowd->monitor, crowd->mem + at, page);
		map_at(crowd->mem + at, page, 1);
	}
	crowd->stop = 1;
	return NULL;
}

/* Takes regions that come and go; nothing is transferred, as what is there at a moment is not known. */
static void *user(void *arg)
{
	struct crowd *crowd = arg;
	struct glex_rcache_region region;
	unsigned seed = 2;

	while (!crowd->stop) {
		size_t at = (size_t)(rand_r(&seed) % 16) * page;

		OK(glex_rcache_get(crowd->bench->rc, crowd->mem + at, 1 + (size_t)(rand_r(&seed) % 4) * page, R,
				   &region));
		OK(glex_rcache_put(crowd->bench->rc, &region));
	}
	return NULL;
}

/* The program's: of an allocator, say, which unmaps with it held, and which others want for what they do to the cache. */
static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;

/* A sanitizer writes down each page of what is allocated. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKED_ROUNDS 50
#else
#define LOCKED_ROUNDS 500
#endif

static void malloc_and_free(void)
{
	void *block = malloc(33u << 20); /* more than malloc ever keeps */

	__asm__ __volatile__("" : "+r"(block)); /* or the compiler would spare both */
	free(block);
}

static void *locked_unmapper(void *arg)
{
	struct crowd *crowd = arg;

	for (int i = 0; i < LOCKED_ROUNDS; i++) {
		pthread_mutex_lock(&allocator);
		unmap(crowd->monitor, crowd->mem, 8 * page);
		map_at(crowd->mem, 8 * page, 1);
		pthread_mutex_unlock(&allocator);
		malloc_and_free();
	}
	crowd->stop = 1;
	return NULL;
}

/*
 * What it puts may have been unmapped since: that is deregistered here, with the lock held.  It pauses without the lock,
 * which goes to whoever runs, not to who has waited: for minutes, on some systems.
 */
static void *locked_user(void *arg)
{
	const struct timespec pause = {.tv_nsec = 100000};
	struct crowd *crowd = arg;
	struct glex_rcache_region region;

	while (!crowd->stop) {
		OK(glex_rcache_get(crowd->bench->rc, crowd->mem, 8 * page, R, &region));
		pthread_mutex_lock(&allocator);
		OK(glex_rcache_put(crowd->bench->rc, &region));
		OK(glex_rcache_get(crowd->bench->rc, crowd->mem, 4 * page, R, &region));
		OK(glex_rcache_put(crowd->bench->rc, &region));
		malloc_and_free();
		pthread_mutex_unlock(&allocator);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

START_TEST(rcache__unmap_dereg_with_lock__who_holds_it_and_who_wants_it_go_on)
{
	pthread_t threads[3];
	struct bench b;
	struct crowd crowd = {.bench = &b, .monitor = _i};

	bench_open(&b, _i, NULL);
	crowd.mem = map_at(NULL, 8 * page, 1);
	ck_assert_int_eq(pthread_create(&threads[0], NULL, locked_unmapper, &crowd), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, locked_user, &crowd), 0);
	ck_assert_int_eq(pthread_create(&threads[2], NULL, locked_user, &crowd), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	unmap(_i, crowd.mem, 8 * page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__get_while_another_unmaps__both_go_on)
{
	pthread_t threads[3];
	struct bench b;
	struct crowd crowd = {.bench = &b, .monitor = _i};

	bench_open(&b, _i, NULL);
	crowd.mem = map_at(NULL, 20 * page, 1);
	ck_assert_int_eq(pthread_create(&threads[0], NULL, unmapper, &crowd), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, user, &crowd), 0);
	ck_assert_int_eq(pthread_create(&threads[2], NULL, user, &crowd), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	unmap(_i, crowd.mem, 20 * page);
	if (_i == EXPLICIT || _i == HOOKS) /* userfaultfd does not take ranges with holes, as there were at times */
		ck_assert_uint_eq(stats_of(&b).registered, 0);
	bench_close(&b);
}
END_TEST

/* ---- stress --------------------------------------------------------------------- */

#define STRESSORS 3
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 150
#else
#define ROUNDS 1500
#endif

struct stressor {
	struct bench bench; /* the one cache, and a looker of its own */
	int monitor;
	unsigned seed;
};

/* One more place than threads: so they take each other's addresses, and their own again. */
#define PLACES	  (STRESSORS + 1)
#define PLACE_LEN (16 * 4096)

static unsigned char *places;
static atomic_bool taken[PLACES];

static int take_place(unsigned *seed)
{
	int i;

	do
		i = rand_r(seed) % PLACES;
	while (atomic_exchange(&taken[i], true));
	return i;
}

static void *stress(void *arg)
{
	struct stressor *s = arg;

	for (int round = 0; round < ROUNDS; round++) {
		int kind = rand_r(&s->seed) % (KINDS_OF_MEMORY + 1);
		size_t len = (1 + (size_t)rand_r(&s->seed) % 15) * 4096;
		unsigned char byte = (unsigned char)(1 + rand_r(&s->seed) % 255);
		int uses = 1 + rand_r(&s->seed) % 3, place = take_place(&s->seed);
		unsigned char *mem =
			kind == KINDS_OF_MEMORY ? malloc(len) : map_kind(kind, places + place * PLACE_LEN, len, byte);
		struct glex_rcache_region region;

		memset(mem, byte, len);
		while (uses--) {
			region = get(&s->bench, mem, len, RW);
			peer_finds(&s->bench, &region, (uint32_t)len, byte);
			byte ^= 0x55;
			ck_assert_uint_eq(ask_peer(&s->bench, &region, 0, (uint32_t)len, true, byte).failed, 0);
			ck_assert_uint_eq(mem[0], byte);
			ck_assert_uint_eq(mem[len - 1], byte);
			put(&s->bench, &region);
		}
		if (kind != KINDS_OF_MEMORY) {
			unmap(s->monitor, mem, len);
		} else {
			if (s->monitor == EXPLICIT)
				OK(glex_mem_invalidate(mem, len));
			free(mem);
		}
		atomic_store(&taken[place], false);
	}
	return NULL;
}

START_TEST(rcache__stress__threads_map_use_and_unmap_the_same_addresses)
{
	struct glex_rcache_attr attr = {.field_mask = GLEX_RCACHE_ATTR_MAX_COUNT, .max_count = 40};
	struct stressor stressors[STRESSORS];
	pthread_t threads[STRESSORS];
	struct ask end = {.len = 0};
	struct peer peers[STRESSORS];
	struct bench b;

	for (int i = 1; i < STRESSORS; i++)
		peers[i] = peer_start(looker, NULL);
	bench_open(&b, _i, &attr);
	places = lonely(PLACES * PLACE_LEN);
	peers[0] = b.peer;
	for (int i = 0; i < STRESSORS; i++) {
		stressors[i] = (struct stressor){b, _i, (unsigned)i + 1};
		stressors[i].bench.peer = peers[i];
		ck_assert_int_eq(pthread_create(&threads[i], NULL, stress, &stressors[i]), 0);
	}
	for (int i = 0; i < STRESSORS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < STRESSORS; i++) {
		say(peers[i].fd, &end, sizeof(end));
		peer_join(&peers[i]);
	}
	bench_close(&b);
}
END_TEST

/* ---- monitors --------------------------------------------------------------------- */

#ifdef WITH_HOOKS

/* ---- what only the hooks see ---------------------------------------------------- */

/* The bytes are used, then `go` puts others in their place: it was seen, and peers find those. */
static void expect_seen(struct bench *b, unsigned char *mem, size_t len, void (*go)(unsigned char *mem, size_t len))
{
	struct glex_rcache_region region;
	uint64_t before;

	memset(mem, 0x11, len);
	region = get(b, mem, len, RW);
	peer_finds(b, &region, (uint32_t)len, 0x11);
	put(b, &region);
	before = stats_of(b).invalidated;
	go(mem, len);
	memset(mem, 0x22, len);
	ck_assert_uint_gt(stats_of(b).invalidated, before);
	region = get(b, mem, len, RW);
	peer_finds(b, &region, (uint32_t)len, 0x22);
	put(b, &region);
}

static void by_sbrk(unsigned char *mem, size_t len)
{
	ck_assert_ptr_eq(sbrk(0), mem + len); /* malloc has not taken more meanwhile, which would be its end */
	ck_assert_ptr_eq(sbrk(-(intptr_t)len), mem + len);
	ck_assert_ptr_eq(sbrk((intptr_t)len), mem);
}

static void by_brk(unsigned char *mem, size_t len)
{
	ck_assert_ptr_eq(sbrk(0), mem + len);
	ck_assert_int_eq(brk(mem), 0);
	ck_assert_int_eq(brk(mem + len), 0);
}

/* _i: 0 sbrk, 1 brk */
START_TEST(rcache__break_goes_back_and_forth__is_seen)
{
	unsigned char *mem;
	struct bench b;

	bench_open(&b, HOOKS, NULL);
	mem = sbrk(0);
	mem += (page - (uintptr_t)mem % page) % page;
	ck_assert_int_eq(brk(mem + 8 * page), 0);
	expect_seen(&b, mem, 8 * page, _i ? by_brk : by_sbrk);
	bench_close(&b);
}
END_TEST

static int segment; /* of System V */

static void by_shmdt(unsigned char *mem, size_t len)
{
	ck_assert_int_eq(shmdt(mem), 0);
	map_at(mem, len, 0);
}

static void by_shmdt_without_descriptors(unsigned char *mem, size_t len)
{
	struct rlimit usual, none;

	getrlimit(RLIMIT_NOFILE, &usual);
	none = usual;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	by_shmdt(mem, len);
	setrlimit(RLIMIT_NOFILE, &usual);
}

static void by_shmat(unsigned char *mem, size_t len)
{
	(void)len;
	ck_assert_ptr_eq(shmat(segment, mem, SHM_REMAP), mem);
}

/* _i: 0 detached, 1 the same where no descriptor is left, 2 attached over what is there */
START_TEST(rcache__segment_of_system_v_comes_or_goes__is_seen)
{
	void (*const how[])(unsigned char *, size_t) = {by_shmdt, by_shmdt_without_descriptors, by_shmat};
	unsigned char *mem;
	struct bench b;

	bench_open(&b, HOOKS, NULL);
	segment = shmget(IPC_PRIVATE, 8 * page, IPC_CREAT | 0600);
	ck_assert_int_ge(segment, 0);
	mem = _i == 2 ? map_at(NULL, 8 * page, 0) : shmat(segment, NULL, 0);
	if (_i == 2)
		expect_seen(&b, mem, 8 * page, how[_i]);
	shmctl(segment, IPC_RMID, NULL); /* it goes with its last attachment, whatever happens here */
	if (_i != 2)
		expect_seen(&b, mem, 8 * page, how[_i]);
	bench_close(&b);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they have a malloc of their own */

/* The heap's top would go without a call that anybody sees. */
START_TEST(rcache__program_asks_malloc_to_give_memory_back__heap_stays)
{
	struct bench b;
	void *block, *top;

	bench_open(&b, HOOKS, NULL);
	block = malloc(20u << 20);
	ck_assert_ptr_nonnull(block);
	top = sbrk(0);
	ck_assert_int_eq(mallopt(M_TRIM_THRESHOLD, 0), 1);
	ck_assert_int_eq(mallopt(M_TOP_PAD, 0), 1);
	free(block);
	ck_assert_int_eq(malloc_trim(0), 0);
	ck_assert_ptr_eq(sbrk(0), top);
	bench_close(&b);
}
END_TEST

#endif
#endif

START_TEST(rcache__monitor__is_the_one_asked_for)
{
	static const uint64_t want[] = {
#ifdef WITH_HOOKS
		[AUTO] = GLEX_MEM_MONITOR_HOOKS,
#else
		[AUTO] = GLEX_MEM_MONITOR_USERFAULTFD,
#endif
		[EXPLICIT] = GLEX_MEM_MONITOR_EXPLICIT,
		[OFF] = GLEX_MEM_MONITOR_NONE,
		[USERFAULTFD] = GLEX_MEM_MONITOR_USERFAULTFD,
		[HOOKS] = GLEX_MEM_MONITOR_HOOKS,
	};
	struct bench b;
	unsigned char *mem;

	bench_open(&b, _i, NULL);
	ck_assert_uint_eq(stats_of(&b).monitor, want[_i]);
	mem = map_kind(SHARED, NULL, page, 1);
	get_put(&b, mem, page, R);
	ck_assert_uint_eq(stats_of(&b).monitor, want[_i]);
	unmap(_i, mem, page);
	bench_close(&b);
}
END_TEST

START_TEST(rcache__userfaultfd_refused__right_without_it)
{
	static const int which[] = {AUTO, USERFAULTFD};
	int monitor = which[_i / KINDS_OF_MEMORY], kind = _i % KINDS_OF_MEMORY;
	struct glex_rcache_region region;
	struct bench b;
	unsigned char *mem;

	bench_open(&b, monitor, NULL);
	ck_assert_int_eq(forbid_userfaultfd(), 0);
	mem = map_kind(kind, NULL, 8 * page, 1);
	for (int round = 1; round < 5; round++) {
		region = get(&b, mem, 8 * page, RW);
		peer_finds(&b, &region, (uint32_t)(8 * page), (unsigned char)round);
		put(&b, &region);
		unmap(monitor, mem, 8 * page);
		map_kind(kind, mem, 8 * page, (unsigned char)(round + 1));
	}
#ifndef WITH_HOOKS
	ck_assert_uint_eq(stats_of(&b).monitor, GLEX_MEM_MONITOR_NONE);
#endif
	munmap(mem, 8 * page);
	bench_close(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rcache_gone");
	TCase *tc = tcase_create("rcache_gone");

	own_job("rcache_gone");
	tcase_add_loop_test(tc, rcache__get_unmapped__new_memory_in_the_same_place_is_what_peers_find, 0,
			    MONITORS * KINDS_OF_MEMORY);
	tcase_add_loop_test(tc, rcache__memory_replaced__peers_find_what_is_there_now, 0,
			    (MONITORS - 1) * KINDS_OF_MEMORY);
	tcase_add_loop_test(tc, rcache__malloc_free_malloc__peers_find_the_new_contents, 0, MONITORS);
	tcase_add_loop_test(tc, rcache__munmap_of_512_mib_while_sends_run__both_go_on, 0, MONITORS);
	tcase_add_loop_test(tc, rcache__stress__threads_map_use_and_unmap_the_same_addresses, 0, MONITORS);
	tcase_add_loop_test(tc, rcache__monitor__is_the_one_asked_for, 0, MONITORS);
	tcase_add_loop_test(tc, rcache__userfaultfd_refused__right_without_it, 0, 2 * KINDS_OF_MEMORY);
	tcase_add_loop_test(tc, rcache__unmap_dereg_with_lock__who_holds_it_and_who_wants_it_go_on, 0, MONITORS);
	tcase_add_loop_test(tc, rcache__get_while_another_unmaps__both_go_on, 0, MONITORS);
#ifdef WITH_HOOKS
	tcase_add_loop_test(tc, rcache__break_goes_back_and_forth__is_seen, 0, 2);
	tcase_add_loop_test(tc, rcache__segment_of_system_v_comes_or_goes__is_seen, 0, 3);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	tcase_add_test(tc, rcache__program_asks_malloc_to_give_memory_back__heap_stays);
#endif
#endif
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
