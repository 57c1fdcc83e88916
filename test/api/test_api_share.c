/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_share.c - regions over shared mappings that the program made itself:
 * which are mapped by peers, which are not, and what happens when they change.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/lib/helper.h"
#include "test/lib/raw.h"

#define RW   (GLEX_MEM_READ | GLEX_MEM_WRITE)
#define PAGE ((size_t)4096)
#define LEN  (16 * PAGE)

/* ---- kinds of memory ---------------------------------------------------------- */

enum what { SEALED, UNSEALED, ANONYMOUS, SHM_FILE, UNLINKED, KINDS_OF_MEMORY };

static char path[64];

static int file_of(enum what what, size_t len)
{
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/glex-share-%d", (int)getpid());
	if (what == SEALED || what == UNSEALED)
		fd = memfd_create("share", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	else
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	if (what == SEALED)
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	if (what == UNLINKED)
		unlink(path);
	return fd;
}

/* len bytes of it, with the descriptor still open or not. */
static unsigned char *map_of(enum what what, size_t len, bool keep_fd)
{
	int fd = what == ANONYMOUS ? -1 : file_of(what, len);
	void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	ck_assert_ptr_ne(base, MAP_FAILED);
	memset(base, 0x55, len);
	if (fd >= 0 && !keep_fd)
		close(fd);
	return base;
}

static void remove_file(void)
{
	unlink(path);
}

/* The kernel lets this process open what it has mapped. */
static bool may_open_mappings(void)
{
	unsigned char *base = map_of(ANONYMOUS, PAGE, false);
	char link[80];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/map_files/%lx-%lx", (unsigned long)base, (unsigned long)base + PAGE);
	fd = open(link, O_RDWR | O_CLOEXEC);
	munmap(base, PAGE);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool should_be_mapped(enum what what, bool all, bool keep_fd)
{
	bool can = (keep_fd && what != ANONYMOUS) || what == SHM_FILE || may_open_mappings();

	return can && (all || what == SEALED || what == ANONYMOUS);
}

/* _i: what | keep_fd << 3 | GLEX_SHARE_FILES=yes << 4 */
START_TEST(register_mem__shared_mapping__mapped_or_attached_and_always_reached)
{
	enum what what = (enum what)(_i & 7);
	bool keep_fd = _i & 8, all = _i & 16;
	struct peer strict, plain;
	struct side side;
	unsigned char *base;
	glex_mem_handle_t mh;

	if (what >= KINDS_OF_MEMORY)
		return;
	if (all)
		setenv("GLEX_SHARE_FILES", "yes", 1);
	base = map_of(what, LEN, keep_fd);
	strict = peer_start(helper_main, &mapper);
	plain = peer_start(helper_main, &mover);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, base + 100, LEN - 100, RW, &mh));
	expect_reached(&plain, &side, mh, base + 100, 0, LEN - 100);
	expect_reached(&plain, &side, mh, base + 100, 5000, 5000);
	if (should_be_mapped(what, all, keep_fd))
		expect_reached(&strict, &side, mh, base + 100, 4000, 9000);
	else
		expect_refusal(&strict, &side, mh, GET, 5000, GLEX_ERR_STATUS_PCIE_READ);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&strict);
	let_go(&plain);
	munmap(base, LEN);
	side_close(&side);
}
END_TEST

/* glexd moves; _i: what */
START_TEST(register_mem__shared_mapping_and_normal_endpoint__reached)
{
	struct peer peer;
	struct side side;
	unsigned char *base;
	glex_mem_handle_t mh;

	setenv("GLEX_SHARE_FILES", "yes", 1);
	base = map_of((enum what)_i, LEN, true);
	peer = peer_start(helper_main, &engine);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
	expect_reached(&peer, &side, mh, base, 1, LEN - 1);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&peer);
	munmap(base, LEN);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__switched_off__attach)
{
	struct peer peer;
	struct side side;
	unsigned char *base = map_of(SEALED, LEN, true);
	glex_mem_handle_t mh;

	setenv("GLEX_SHARE_FILES", "no", 1);
	peer = peer_start(helper_main, &mapper);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
	expect_refusal(&peer, &side, mh, GET, 5000, GLEX_ERR_STATUS_PCIE_READ);
	let_go(&peer);
	OK(glex_deregister_mem(side.ep, mh));
	side_close(&side);
}
END_TEST

/* A part of the file, in between private pages. */
START_TEST(register_mem__part_of_a_file_between_private_pages__each_byte_is_reached)
{
	const size_t part = 8 * PAGE, all = part + 6 * PAGE;
	unsigned char *base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = file_of(SEALED, LEN);
	struct peer strict = peer_start(helper_main, &mapper), plain = peer_start(helper_main, &mover);
	struct side side;
	glex_mem_handle_t mh;

	ck_assert_ptr_ne(base, MAP_FAILED);
	ck_assert_ptr_eq(mmap(base + 2 * PAGE, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 3 * PAGE),
			 base + 2 * PAGE);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, base + 50, all - 50, RW, &mh));
	expect_reached(&plain, &side, mh, base + 50, 0, (uint32_t)all - 50);
	expect_reached(&plain, &side, mh, base + 50, 2 * PAGE - 150, 200);
	expect_reached(&plain, &side, mh, base + 50, (uint32_t)(2 * PAGE + part) - 150, 200);
	expect_reached(&strict, &side, mh, base + 50, 2 * PAGE - 50, (uint32_t)part); /* that goes by mapping alone */
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&strict);
	let_go(&plain);
	side_close(&side);
}
END_TEST

/* _i: 0 FAST, 1 NORMAL */
START_TEST(register_mem__mapped_for_reading__get_works_and_put_is_an_error)
{
	int fd = file_of(SEALED, LEN);
	unsigned char *own = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned char *base = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	struct peer peer = peer_start(helper_main, _i ? &engine : &mover);
	struct side side;
	glex_mem_handle_t mh;

	ck_assert_ptr_ne(own, MAP_FAILED);
	ck_assert_ptr_ne(base, MAP_FAILED);
	fill(own, LEN, 6);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
	ck_assert(!tell(&peer, &side, mh, GET, 0, LEN, 6).failed);
	expect_refusal(&peer, &side, mh, PUT, 5000, GLEX_ERR_STATUS_ATT);
	expect_filled(own, LEN, 6);
	let_go(&peer);
	OK(glex_deregister_mem(side.ep, mh));
	side_close(&side);
}
END_TEST

/* ---- files that become shorter ---------------------------------------------------- */

/* _i: helper | GLEX_SHARE_FILES=yes << 1; a peer that maps because it was told to is not asked to survive */
START_TEST(register_mem__file_is_truncated__att_error_and_nobody_dies)
{
	static struct helper *const helpers[] = {&mover, &engine};
	struct peer peer;
	struct side side;
	unsigned char *base;
	glex_mem_handle_t mh;
	struct report report;
	int fd, round;

	if (_i == 2)
		return;
	if (_i & 2)
		setenv("GLEX_SHARE_FILES", "yes", 1);
	fd = file_of(UNSEALED, LEN);
	base = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(base, MAP_FAILED);
	peer = peer_start(helper_main, helpers[_i & 1]);
	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
	for (round = 0; round < 20; round++) {
		struct order order = {GET, side.card, 0, LEN, 3};

		fill(base, LEN, 3);
		order.target.mh = mh;
		ck_assert(!tell(&peer, &side, mh, GET, 0, LEN, 3).failed);
		order.act = PUT; /* while it is under way, or before, or after */
		say(peer.fd, &order, sizeof(order));
		ck_assert_int_eq(ftruncate(fd, (off_t)PAGE), 0);
		hear(peer.fd, &report, sizeof(report));
		expect_refusal(&peer, &side, mh, PUT, 5000, GLEX_ERR_STATUS_ATT);
		expect_refusal(&peer, &side, mh, GET, 5000, GLEX_ERR_STATUS_ATT);
		ck_assert_int_eq(ftruncate(fd, (off_t)LEN), 0);
	}
	let_go(&peer);
	OK(glex_deregister_mem(side.ep, mh));
	side_close(&side);
}
END_TEST

/* ---- what is kept, and for how long ---------------------------------------------------- */

static int objects_of_glexd(void)
{
	char name[128], command[256];
	int n = -1;
	FILE *out;

	raw_name(name, sizeof(name));
	snprintf(command, sizeof(command), "ls -l /proc/%d/fd | grep -c memfd:share", (int)raw_glexd_pid(name));
	out = popen(command, "r");
	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(fscanf(out, "%d", &n), 1);
	pclose(out);
	return n;
}

START_TEST(register_mem__same_mapping_again_and_again__one_object_that_goes_with_the_mapping)
{
	struct peer peer = peer_start(helper_main, &mapper);
	glex_mem_handle_t mh[20];
	struct side side;
	unsigned char *base = map_of(SEALED, LEN, true);
	int i, round;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 20; i++)
			OK(glex_register_mem(side.ep, base + i * 100, 5000, RW, &mh[i]));
		ck_assert_int_eq(objects_of_glexd(), 1);
		expect_reached(&peer, &side, mh[7], base + 700, 0, 5000);
		for (i = 0; i < 20; i++)
			OK(glex_deregister_mem(side.ep, mh[i]));
	}
	OK(glex_register_mem(side.ep, base, 5000, RW, &mh[0]));
	munmap(base, LEN);
	ck_assert_int_eq(objects_of_glexd(), 1);
	OK(glex_deregister_mem(side.ep, mh[0]));
	ck_assert_int_eq(objects_of_glexd(), 0);
	let_go(&peer);
	side_close(&side);
}
END_TEST

START_TEST(destroy_ep__with_regions_over_a_file__object_goes)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM};
	unsigned char *base = map_of(SEALED, LEN, true), *other = map_of(SEALED, LEN, true);
	glex_mem_handle_t mh, kept;
	glex_ep_handle_t second;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	OK(glex_create_ep(side.dev, &attr, &second));
	OK(glex_register_mem(second, base, LEN, RW, &mh));
	OK(glex_register_mem(side.ep, other, LEN, RW, &kept));
	munmap(base, LEN);
	munmap(other, LEN);
	ck_assert_int_eq(objects_of_glexd(), 2);
	OK(glex_destroy_ep(second));
	ck_assert_int_eq(objects_of_glexd(), 1);
	OK(glex_deregister_mem(side.ep, kept));
	ck_assert_int_eq(objects_of_glexd(), 0);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__another_file_at_the_same_address__its_bytes_are_seen)
{
	struct peer peer = peer_start(helper_main, &mapper);
	unsigned char *base = map_of(SEALED, LEN, true), *again;
	glex_mem_handle_t mh;
	struct side side;
	int i;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	for (i = 0; i < 30; i++) {
		int fd = file_of(SEALED, LEN);

		OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
		expect_reached(&peer, &side, mh, base, 0, LEN);
		OK(glex_deregister_mem(side.ep, mh));
		again = mmap(base, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
		ck_assert_ptr_eq(again, base);
		close(fd);
	}
	ck_assert_int_le(objects_of_glexd(), 1);
	let_go(&peer);
	side_close(&side);
}
END_TEST

START_TEST(register_mem__no_descriptors_left__attach)
{
	struct peer peer = peer_start(helper_main, &mover);
	unsigned char *base = map_of(SEALED, LEN, false);
	struct rlimit limit, none;
	glex_mem_handle_t mh;
	struct side side;

	side_open(&side, GLEX_EP_TYPE_FAST, 0, false);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	OK(glex_register_mem(side.ep, base, LEN, RW, &mh));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	expect_reached(&peer, &side, mh, base, 0, LEN);
	OK(glex_deregister_mem(side.ep, mh));
	let_go(&peer);
	side_close(&side);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("share");
	TCase *tc = tcase_create("share");

	own_job("share");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, NULL, remove_file);
	tcase_add_loop_test(tc, register_mem__shared_mapping__mapped_or_attached_and_always_reached, 0, 32);
	tcase_add_loop_test(tc, register_mem__shared_mapping_and_normal_endpoint__reached, 0, KINDS_OF_MEMORY);
	tcase_add_test(tc, register_mem__switched_off__attach);
	tcase_add_test(tc, register_mem__part_of_a_file_between_private_pages__each_byte_is_reached);
	tcase_add_loop_test(tc, register_mem__mapped_for_reading__get_works_and_put_is_an_error, 0, 2);
	tcase_add_loop_test(tc, register_mem__file_is_truncated__att_error_and_nobody_dies, 0, 4);
	tcase_add_test(tc, register_mem__same_mapping_again_and_again__one_object_that_goes_with_the_mapping);
	tcase_add_test(tc, destroy_ep__with_regions_over_a_file__object_goes);
	tcase_add_test(tc, register_mem__another_file_at_the_same_address__its_bytes_are_seen);
	tcase_add_test(tc, register_mem__no_descriptors_left__attach);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
