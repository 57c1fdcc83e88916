/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_adopt.c - private memory that is moved into a shared mapping: when,
 * when not, that nobody notices but by the speed, and that it behaves as private
 * memory does when the program unmaps, moves or forks it.
 */
#include <linux/aio_abi.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/api/adopt.h"
#include "test/lib/seccomp.h"

static bool is_zero(const unsigned char *mem, size_t len)
{
	return mem[0] == 0 && !memcmp(mem, mem + 1, len - 1);
}

/* ---- used often -------------------------------------------------------------------- */

START_TEST(adopt__used_often__mapped_by_peers_and_bytes_are_the_same)
{
	struct peer strict, plain;
	unsigned char *room = pages(LEN + 2 * PAGE), *base = room + 1000;
	glex_mem_handle_t mh;
	struct side side;

	fill(room, LEN + 2 * PAGE, 7);
	log_begin();
	open_adopting(&side, "always");
	strict = peer_start(helper_main, &mapper);
	plain = peer_start(helper_main, &mover);
	mh = make_hot(&side, base, LEN);
	expect_filled(room, LEN + 2 * PAGE, 7);
	ck_assert(is_logged("are in a shared mapping now"));
	log_end();
	ck_assert(!is_shared(base)); /* the first page is not whole */
	ck_assert(is_shared(base + PAGE));
	expect_reached(&strict, &side, mh, base, 3096, (uint32_t)(LEN - 2 * PAGE));
	expect_reached(&plain, &side, mh, base, 0, LEN);
	expect_reached(&plain, &side, mh, base, 3000, 200);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&strict);
	let_go(&plain);
	side_close(&side);
}
END_TEST

/* _i: 0 never, 1 auto without a monitor */
START_TEST(adopt__not_allowed__stays_private)
{
	unsigned char *base = pages(LEN);
	struct side side;

	setenv("GLEX_MEM_MONITOR", "off", 1);
	log_begin();
	open_adopting(&side, _i ? "auto" : "never");
	fill(base, LEN, 1);
	make_hot(&side, base, LEN);
	ck_assert(!is_shared(base));
	ck_assert(
		is_logged(_i ? "stay private: nothing tells before it changes" : "stay private: GLEX_ADOPT is never"));
	log_end();
	side_close(&side);
}
END_TEST

/* Where the kernel does not make writers wait. */
START_TEST(adopt__another_region_is_open_to_writers__not_before_it_is_gone)
{
	unsigned char *base = pages(LEN);
	glex_mem_handle_t other, mh;
	struct side side;
	int i;

	ck_assert_int_eq(forbid_userfaultfd(), 0);
	open_adopting(&side, "always");
	OK(glex_register_mem(side.ep, base + LEN / 2, 10, GLEX_MEM_WRITE, &other));
	mh = make_hot(&side, base, LEN);
	ck_assert(!is_shared(base));
	OK(glex_deregister_mem(side.ep, mh));
	OK(glex_deregister_mem(side.ep, other));
	OK(glex_register_mem(side.ep, base + LEN / 2, 10, GLEX_MEM_READ, &other));
	for (i = 0; i < 8; i++) {
		OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
		OK(glex_deregister_mem(side.ep, mh));
	}
	ck_assert(is_shared(base));
	side_close(&side);
}
END_TEST

/* _i: 0 the kernel does not make it wait, 1 it does */
START_TEST(adopt__another_thread_runs__stays_private_unless_it_can_be_made_to_wait)
{
	unsigned char *base = pages(LEN);
	struct sleeper sleeper;
	struct side side;

	if (_i == 0)
		ck_assert_int_eq(forbid_userfaultfd(), 0);
	open_adopting(&side, "always");
	sleeper_start(&sleeper);
	make_hot(&side, base, LEN);
	ck_assert_int_eq(is_shared(base), _i);
	sleeper_end(&sleeper);
	side_close(&side);
}
END_TEST

/*
 * _i: 0 an io_uring, 1 a context of asynchronous I/O.  The kernel makes nobody wait, so nothing tells whether what it
 * does in the background is meant for these pages.
 */
START_TEST(adopt__kernel_could_write_in_the_background__stays_private_until_it_cannot)
{
	unsigned char *base = pages(LEN), *elsewhere = pages(PAGE);
	glex_mem_handle_t mh;
	aio_context_t ctx = 0;
	struct side side;
	int ring = -1, i;

	log_begin();
	ck_assert_int_eq(forbid_userfaultfd(), 0);
	open_adopting(&side, "always");
	fill(base, LEN, 8);
	if (_i == 0)
		ring = pin_page(elsewhere);
	if (_i == 0 ? ring < 0 : syscall(SYS_io_setup, 1, &ctx) != 0) {
		skipped("adopt__kernel_could_write", "no io_uring, or no asynchronous I/O, can be had");
	} else {
		OK(glex_deregister_mem(side.ep, make_hot(&side, base, LEN)));
		ck_assert(!is_shared(base + LEN / 2));
		ck_assert(is_logged("asynchronous input of the program could write to it"));
		if (_i == 0)
			close(ring);
		else
			syscall(SYS_io_destroy, ctx);
	}
	for (i = 0; i < 8; i++) {
		OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
		OK(glex_deregister_mem(side.ep, mh));
	}
	ck_assert(is_shared(base + LEN / 2));
	expect_filled(base, LEN, 8);
	log_end();
	side_close(&side);
}
END_TEST

static bool is_adopted_now(struct side *side, unsigned char *base)
{
	OK(glex_deregister_mem(side->ep, make_hot(side, base, LEN)));
	return is_shared(base + LEN / 2);
}

/* What the system may write to whenever it likes: buffers that an io_uring has pinned. */
START_TEST(adopt__pages_are_pinned__stays_private_and_nothing_is_lost)
{
	unsigned char *base = pages(LEN);
	struct sleeper sleeper;
	glex_mem_handle_t mh;
	struct side side;
	int ring;

	open_adopting(&side, "always");
	fill(base, LEN, 6);
	ring = pin_page(base + LEN / 2);
	if (ring < 0) {
		skipped("adopt__pages_are_pinned", "no io_uring can be had to pin them");
		side_close(&side);
		return;
	}
	sleeper_start(&sleeper);
	mh = make_hot(&side, base, LEN);
	ck_assert(!is_shared(base + LEN / 2));
	expect_filled(base, LEN, 6);
	OK(glex_deregister_mem(side.ep, mh));
	close(ring);
	/* the system lets go of them in its own time */
	UNTIL(is_adopted_now(&side, base));
	expect_filled(base, LEN, 6);
	sleeper_end(&sleeper);
	side_close(&side);
}
END_TEST

enum special { LOCKED, READ_ONLY, PRIVATE_FILE, NO_FORK, STACK, SPECIALS };

static unsigned char *special_pages(enum special what, unsigned char *stack)
{
	unsigned char *base = what == STACK ? stack : pages(LEN);
	int fd;

	fill(base, LEN, 4);
	if (what == LOCKED)
		ck_assert_int_eq(syscall(SYS_mlock, base, PAGE), 0); /* sanitizers make nothing of mlock */
	if (what == READ_ONLY)
		mprotect(base, LEN, PROT_READ);
	if (what == NO_FORK)
		ck_assert_int_eq(madvise(base, LEN, MADV_DONTFORK), 0);
	if (what == PRIVATE_FILE) {
		fd = memfd_create("x", MFD_CLOEXEC);
		ck_assert_int_eq(ftruncate(fd, (off_t)LEN), 0);
		ck_assert_ptr_eq(mmap(base, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0), base);
		fill(base, LEN, 4);
	}
	return base;
}

/* _i: enum special */
START_TEST(adopt__special_memory__stays_as_it_is)
{
	unsigned char stack[LEN], *base = special_pages((enum special)_i, stack);
	struct side side;

	open_adopting(&side, "always");
	make_hot(&side, base, LEN);
	ck_assert(!is_shared(base + LEN / 2));
	expect_filled(base, LEN, 4);
	side_close(&side);
}
END_TEST

/* ---- attach is refused ------------------------------------------------------------------ */

static unsigned char static_memory[5 * 4096]; /* its first page may be of the program file */

/* _i: the peer's end moves itself, or glexd does */
START_TEST(adopt__attach_is_refused__all_but_stacks_is_reached)
{
	unsigned char stack[6000], *ten, *odd, *many;
	struct peer peer;
	struct side side;
	glex_mem_handle_t mh;
	size_t i;

	own_job("adopt-refused");
	ck_assert_int_eq(forbid_attach(), 0);
	peer = peer_start(helper_main, _i ? &engine : &mover);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	ten = malloc(10);
	odd = malloc(100003);
	many = pages(LEN);
	struct {
		unsigned char *base;
		uint32_t len;
	} rows[] = {{ten, 10},		{odd + 3, 100000}, {odd, 1}, {static_memory + PAGE + 1, 8000},
		    {many + 100, 5000}, {many, LEN}};
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		OK(glex_register_mem(side.ep, rows[i].base, rows[i].len, RW, &mh));
		expect_reached(&peer, &side, mh, rows[i].base, 0, rows[i].len);
		OK(glex_deregister_mem(side.ep, mh));
	}
	OK(glex_register_mem(side.ep, stack, sizeof(stack), RW, &mh));
	expect_refusal(&peer, &side, mh, PUT, 5000, GLEX_ERR_STATUS_PCIE_READ);
	free(ten);
	free(odd);
	let_go(&peer);
	side_close(&side);
}
END_TEST

/* ---- it behaves like private memory --------------------------------------------------------- */

START_TEST(adopt__never_written_pages__stay_without_memory)
{
	unsigned char *base = pages(64 << 20);
	struct side side;
	long shmem = -1;
	char line[128];
	FILE *status;
	size_t i;

	open_adopting(&side, "always");
	memset(base + (8 << 20), 5, 3 * PAGE);
	make_hot(&side, base, 64 << 20);
	ck_assert(is_shared(base));
	status = fopen("/proc/self/status", "re");
	while (fgets(line, sizeof(line), status))
		sscanf(line, "RssShmem: %ld", &shmem);
	fclose(status);
	ck_assert_int_ge(shmem, 12);
	ck_assert_int_lt(shmem, 20 << 10);
	for (i = 0; i < 64 << 20; i += PAGE / 2)
		if (base[i] != (i >= 8 << 20 && i < (8 << 20) + 3 * PAGE ? 5 : 0))
			ck_abort_msg("byte %zu is %d", i, base[i]);
	side_close(&side);
}
END_TEST

START_TEST(adopt__unmapped_and_mapped_again__peer_sees_the_new_memory)
{
	struct peer peer;
	unsigned char *base = pages(LEN);
	glex_mem_handle_t mh;
	struct side side;
	int i;

	open_adopting(&side, "always");
	peer = peer_start(helper_main, &mover);
	for (i = 0; i < 20; i++) {
		mh = make_hot(&side, base, LEN);
		expect_reached(&peer, &side, mh, base, 0, LEN);
		OK(glex_deregister_mem(side.ep, mh));
		munmap(base + (i % 3 == 1 ? LEN / 2 : 0), i % 3 ? LEN / 2 : LEN);
		ck_assert_ptr_eq(
			mmap(base, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), base);
		OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
		expect_reached(&peer, &side, mh, base, 0, LEN);
		OK(glex_deregister_mem(side.ep, mh));
	}
	let_go(&peer);
	side_close(&side);
}
END_TEST

START_TEST(adopt__moved_and_made_longer__bytes_follow_and_the_rest_is_zero)
{
	struct peer peer;
	unsigned char *base = pages(LEN), *longer;
	glex_mem_handle_t mh;
	struct side side;

	open_adopting(&side, "always");
	peer = peer_start(helper_main, &mapper);
	fill(base, LEN, 3);
	OK(glex_deregister_mem(side.ep, make_hot(&side, base, LEN)));
	ck_assert(is_shared(base));
	longer = mremap(base, LEN, 4 * LEN, MREMAP_MAYMOVE);
	ck_assert_ptr_ne(longer, MAP_FAILED);
	expect_filled(longer, LEN, 3);
	ck_assert(is_zero(longer + LEN, 3 * LEN));
	OK(glex_register_mem(side.ep, longer, 4 * LEN, RW, &mh));
	expect_reached(&peer, &side, mh, longer, 0, 4 * LEN);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&peer);
	side_close(&side);
}
END_TEST

START_TEST(adopt__heap__malloc_free_realloc_and_trim_work)
{
	struct peer peer;
	unsigned char *block[8];
	glex_mem_handle_t mh;
	struct side side;
	int i, round;

	open_adopting(&side, "always");
	peer = peer_start(helper_main, &mover);
	mallopt(M_MMAP_THRESHOLD, 32 << 20); /* all from the heap */
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 8; i++) {
			block[i] = calloc(1, LEN + (size_t)i * 1000);
			ck_assert(is_zero(block[i], LEN));
			mh = make_hot(&side, block[i], LEN);
			expect_reached(&peer, &side, mh, block[i], 0, LEN);
			OK(glex_deregister_mem(side.ep, mh));
			fill(block[i], LEN, (uint32_t)i);
		}
		for (i = 0; i < 8; i++) {
			block[i] = realloc(block[i], LEN * 2 + (size_t)round * 5000);
			expect_filled(block[i], LEN, (uint32_t)i);
		}
		for (i = 7; i >= 0; i--)
			free(block[(i + round) % 8]);
		malloc_trim(0);
	}
	let_go(&peer);
	side_close(&side);
}
END_TEST

/* ---- when it cannot be ------------------------------------------------------------------------ */

/* Bytes of addresses this process uses, and a little more. */
static rlim_t all_addresses(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long used;

	ck_assert_ptr_nonnull(statm);
	ck_assert_int_eq(fscanf(statm, "%lu", &used), 1);
	fclose(statm);
	return (rlim_t)used * PAGE + (4 << 20);
}

/* _i: which limit */
START_TEST(adopt__at_a_limit__stays_private_and_is_reached)
{
	static const int limits[] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE};
	unsigned char *base = pages(64 * LEN);
	struct rlimit limit, before;
	struct peer peer;
	struct side side;
	glex_mem_handle_t mh;

	fill(base, 64 * LEN, 9);
	open_adopting(&side, "always");
	peer = peer_start(helper_main, &mover);
	getrlimit((__rlimit_resource_t)limits[_i], &before);
	limit = before;
	limit.rlim_cur = limits[_i] == RLIMIT_AS ? all_addresses() : limits[_i] == RLIMIT_FSIZE ? 1 << 20 : 3;
	ck_assert_int_eq(setrlimit((__rlimit_resource_t)limits[_i], &limit), 0);
	mh = make_hot(&side, base, 64 * LEN);
	setrlimit((__rlimit_resource_t)limits[_i], &before);
	ck_assert(!is_shared(base));
	expect_filled(base, 64 * LEN, 9);
	expect_reached(&peer, &side, mh, base, 0, LEN);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&peer);
	side_close(&side);
}
END_TEST

/* ---- fork ----------------------------------------------------------------------------------------- */

static unsigned char *forked_memory;

static void child_writes(int fd, void *arg)
{
	(void)arg;
	expect_filled(forked_memory, LEN, 1);
	ck_assert(!is_shared(forked_memory));
	ck_assert_int_eq(forked_memory[2 * LEN - 1], 0);
	meet(fd); /* the parent writes */
	meet(fd);
	expect_filled(forked_memory, LEN, 1);
	fill(forked_memory, LEN, 3);
	forked_memory[2 * LEN - 1] = 9;
	meet(fd); /* the parent looks */
	meet(fd);
	expect_filled(forked_memory, LEN, 3);
}

START_TEST(fork__adopted_memory__child_has_its_own_and_the_parent_goes_on)
{
	struct peer child, peer;
	glex_mem_handle_t mh;
	struct side side;

	forked_memory = pages(2 * LEN);
	fill(forked_memory, LEN, 1);
	open_adopting(&side, "always");
	peer = peer_start(helper_main, &mapper);
	mh = make_hot(&side, forked_memory, 2 * LEN);
	ck_assert(is_shared(forked_memory));
	child = peer_start(child_writes, NULL);
	meet(child.fd);
	fill(forked_memory, LEN, 2);
	ck_assert(!tell(&peer, &side, mh, PUT, 5000, 5000, 8).failed);
	meet(child.fd);
	meet(child.fd);
	expect_filled(forked_memory, 5000, 2);
	expect_filled(forked_memory + 5000, 5000, 8);
	ck_assert_int_eq(forked_memory[2 * LEN - 1], 0);
	ck_assert(is_shared(forked_memory));
	meet(child.fd);
	peer_join(&child);
	expect_reached(&peer, &side, mh, forked_memory, 0, LEN);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&peer);
	side_close(&side);
	/* and when the device is closed, too */
	fill(forked_memory, LEN, 1);
	forked_memory[2 * LEN - 1] = 0;
	child = peer_start(child_writes, NULL);
	meet(child.fd);
	fill(forked_memory, LEN, 2);
	meet(child.fd);
	meet(child.fd);
	expect_filled(forked_memory, LEN, 2);
	meet(child.fd);
	peer_join(&child);
}
END_TEST

/* Pages made read-only after they were adopted, and pages moved away. */
static void child_looks(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	expect_filled(forked_memory, LEN, 1);
	ck_assert(!is_shared(forked_memory));
	ck_assert(!is_shared(forked_memory + LEN));
}

START_TEST(fork__adopted_memory_was_moved_and_protected__child_has_it_where_it_is)
{
	unsigned char *base = pages(2 * LEN);
	struct peer child;
	struct side side;

	fill(base, LEN, 1);
	open_adopting(&side, "always");
	OK(glex_deregister_mem(side.ep, make_hot(&side, base, 2 * LEN)));
	forked_memory = pages(4 * LEN);
	forked_memory = mremap(base, 2 * LEN, 2 * LEN, MREMAP_MAYMOVE | MREMAP_FIXED, forked_memory + LEN);
	ck_assert_ptr_ne(forked_memory, MAP_FAILED);
	ck_assert_int_eq(mprotect(forked_memory, PAGE, PROT_READ), 0);
	child = peer_start(child_looks, NULL);
	peer_join(&child);
	expect_filled(forked_memory, LEN, 1);
	ck_assert(is_shared(forked_memory));
	side_close(&side);
}
END_TEST

#define SPLIT ((size_t)1500) /* mappings, of two pages each, of which one may not be written */

static void child_writes_all(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	for (size_t i = 0; i < SPLIT; i++) {
		ck_assert_int_eq(forked_memory[2 * i * PAGE], 1);
		forked_memory[2 * i * PAGE] = 2;
	}
	ck_assert(!is_shared(forked_memory + (2 * SPLIT - 1) * PAGE));
}

START_TEST(fork__adopted_memory_was_protected_in_parts_without_number__child_has_its_own)
{
	struct peer child;
	struct side side;

	forked_memory = pages(2 * SPLIT * PAGE);
	memset(forked_memory, 1, 2 * SPLIT * PAGE);
	open_adopting(&side, "always");
	OK(glex_deregister_mem(side.ep, make_hot(&side, forked_memory, 2 * SPLIT * PAGE)));
	ck_assert(is_shared(forked_memory));
	for (size_t i = 0; i < SPLIT; i++)
		ck_assert_int_eq(mprotect(forked_memory + (2 * i + 1) * PAGE, PAGE, PROT_READ), 0);
	child = peer_start(child_writes_all, NULL);
	peer_join(&child);
	for (size_t i = 0; i < SPLIT; i++)
		ck_assert_int_eq(forked_memory[2 * i * PAGE], 1);
	side_close(&side);
}
END_TEST

static void fork_in_the_child(int fd, void *arg)
{
	struct side side;
	glex_mem_handle_t mh;
	struct peer child, peer;

	(void)fd;
	(void)arg;
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	peer = peer_start(helper_main, &mapper);
	fill(forked_memory, LEN, 1);
	forked_memory[2 * LEN - 1] = 0;
	mh = make_hot(&side, forked_memory, 2 * LEN);
	ck_assert(is_shared(forked_memory));
	expect_reached(&peer, &side, mh, forked_memory, 0, LEN);
	fill(forked_memory, LEN, 1);
	child = peer_start(child_looks, NULL);
	peer_join(&child);
	let_go(&peer);
	side_close(&side);
}

START_TEST(fork__child_is_a_client_too__adopts_its_own)
{
	struct peer child;
	struct side side;

	forked_memory = pages(2 * LEN);
	fill(forked_memory, LEN, 5);
	open_adopting(&side, "always");
	OK(glex_deregister_mem(side.ep, make_hot(&side, forked_memory, 2 * LEN)));
	child = peer_start(fork_in_the_child, NULL);
	peer_join(&child);
	expect_filled(forked_memory, LEN, 5);
	side_close(&side);
}
END_TEST

/* _i: 0 no memory: the child shares it, 1 no descriptor: it has its own */
START_TEST(fork__no_means_for_the_copy__fork_works_and_it_is_said)
{
	int what = _i ? RLIMIT_NOFILE : RLIMIT_AS;
	struct rlimit limit, usual;
	struct side side;
	char text[4096] = "";
	int log, status;
	pid_t child;

	setenv("GLEX_LOG_FILE", "/dev/shm/glex-adopt-log", 1);
	unlink("/dev/shm/glex-adopt-log");
	forked_memory = pages(64 * LEN);
	memset(forked_memory, 1, 64 * LEN);
	open_adopting(&side, "always");
	OK(glex_deregister_mem(side.ep, make_hot(&side, forked_memory, 64 * LEN)));
	ck_assert(is_shared(forked_memory));
	getrlimit(what, &usual);
	limit = usual;
	limit.rlim_cur = _i ? 0 : all_addresses();
	ck_assert_int_eq(setrlimit(what, &limit), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	setrlimit(what, &usual);
	if (child == 0)
		_exit(is_shared(forked_memory) == !_i ? EXIT_SUCCESS : EXIT_FAILURE);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	log = open("/dev/shm/glex-adopt-log", O_RDONLY);
	ck_assert(read(log, text, sizeof(text) - 1) > 0 || _i);
	unlink("/dev/shm/glex-adopt-log");
	ck_assert_int_eq(strstr(text, "fork: no memory for a private copy") != NULL, !_i);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("adopt");
	TCase *tc = tcase_create("adopt");

	own_job("adopt");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, adopt__used_often__mapped_by_peers_and_bytes_are_the_same);
	tcase_add_loop_test(tc, adopt__not_allowed__stays_private, 0, 2);
	if (CAN_BE_ALONE) {
		tcase_add_test(tc, adopt__another_region_is_open_to_writers__not_before_it_is_gone);
		tcase_add_loop_test(tc, adopt__attach_is_refused__all_but_stacks_is_reached, 0, 2);
	}
	tcase_add_loop_test(tc, adopt__another_thread_runs__stays_private_unless_it_can_be_made_to_wait, 0, 2);
	tcase_add_test(tc, adopt__pages_are_pinned__stays_private_and_nothing_is_lost);
	tcase_add_loop_test(tc, adopt__kernel_could_write_in_the_background__stays_private_until_it_cannot, 0, 2);
	tcase_add_loop_test(tc, adopt__special_memory__stays_as_it_is, 0, SPECIALS);
	tcase_add_test(tc, adopt__never_written_pages__stay_without_memory);
	tcase_add_test(tc, adopt__unmapped_and_mapped_again__peer_sees_the_new_memory);
	tcase_add_test(tc, adopt__moved_and_made_longer__bytes_follow_and_the_rest_is_zero);
	tcase_add_test(tc, adopt__heap__malloc_free_realloc_and_trim_work);
	tcase_add_loop_test(tc, adopt__at_a_limit__stays_private_and_is_reached, 0, 3);
	tcase_add_test(tc, fork__adopted_memory__child_has_its_own_and_the_parent_goes_on);
	tcase_add_test(tc, fork__adopted_memory_was_moved_and_protected__child_has_it_where_it_is);
	tcase_add_test(tc, fork__adopted_memory_was_protected_in_parts_without_number__child_has_its_own);
	tcase_add_test(tc, fork__child_is_a_client_too__adopts_its_own);
	tcase_add_loop_test(tc, fork__no_means_for_the_copy__fork_works_and_it_is_said, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
