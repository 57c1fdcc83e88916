/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_adopt.c - what the library keeps of adopted memory, without a device: the
 * pieces, their windows, what is given back.  Changes of memory are reported here
 * by hand, as the hooks would.
 */
#include "backend/nic/nic.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/nic/adopt.h"
#include "test/lib/seccomp.h"
#include "test/unit/unit.h"

#define PAGE ((size_t)4096)
#define LEN  (4 * PAGE)

/* What adopt.c asks of the rest of the backend. */
bool nic_mem_is_split(struct glexi_device *device, void *addr, uint64_t len)
{
	(void)device;
	(void)addr;
	(void)len;
	return false;
}

uint32_t nic_dq_used(const struct nic_ep *nep)
{
	(void)nep;
	return 0;
}

static struct nic_device dev;

static void setup(void)
{
	dev.nic = unit_zeroed(sizeof(*dev.nic));
	dev.vma_fd = nic_vma_open();
	LIST_INIT(&dev.eps);
}

static unsigned char *pages(size_t len)
{
	unsigned char *base = mmap(NULL, len + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(base, MAP_FAILED); /* a page on either side, so that no two become one mapping */
	ck_assert_int_eq(mprotect(base + PAGE, len, PROT_READ | PROT_WRITE), 0);
	memset(base + PAGE, 3, len);
	return base + PAGE;
}

static void adopt(unsigned char *base, size_t len)
{
	const char *why = "";

	ck_assert_msg(nic_adopt_range(&dev, (uintptr_t)base, (uintptr_t)base + len, &why), "%s", why);
}

static long adopted_kib(void)
{
	struct stat st;

	ck_assert_int_eq(fstat(nic_adopt.fd, &st), 0);
	return st.st_blocks / 2;
}

static void unmap(unsigned char *base, size_t len)
{
	struct glexi_mem_change change = {.kind = GLEXI_MEM_UNMAP, .addr = (uintptr_t)base, .len = len};

	glexi_memwatch_begin(&change);
	ck_assert_int_eq(munmap(base, len), 0);
	glexi_memwatch_end(&change, true);
}

static void move(unsigned char *from, unsigned char *to, size_t len)
{
	struct glexi_mem_change change = {.kind = GLEXI_MEM_MOVE,
					  .how = MREMAP_MAYMOVE | MREMAP_FIXED,
					  .addr = (uintptr_t)from,
					  .len = len,
					  .to = (uintptr_t)to,
					  .to_len = len};

	glexi_memwatch_begin(&change);
	ck_assert_ptr_eq(mremap(from, len, len, change.how, to), to);
	glexi_memwatch_end(&change, true);
}

/* ---- windows ----------------------------------------------------------------------- */

START_TEST(adopt__as_often_as_there_are_windows__begins_anew_beside_what_is_still_there)
{
	unsigned char *first = pages(LEN), *others[4];

	setup();
	adopt(first, LEN);
	nic_adopt.window = ADOPT_ROOMS - 2; /* as if so many had come and gone */
	for (int i = 0; i < 4; i++) {
		others[i] = pages(LEN);
		adopt(others[i], LEN);
		memset(others[i], 4 + i, LEN);
	}
	for (size_t k = 0; k < LEN; k++) {
		ck_assert_int_eq(first[k], 3);
		for (int i = 0; i < 4; i++)
			ck_assert_int_eq(others[i][k], 4 + i);
	}
	ck_assert_int_eq(adopted_kib(), 5 * LEN / 1024);
	for (int i = 0; i < 4; i++)
		unmap(others[i], LEN);
	unmap(first, LEN);
	ck_assert_int_eq(adopted_kib(), 0);
}
END_TEST

/* ---- parts ------------------------------------------------------------------------- */

/* _i: which of the two goes first */
START_TEST(adopt__a_part_is_moved_below_the_others__each_is_given_back_when_it_is_unmapped)
{
	unsigned char *room = pages(8 * LEN), *base = room + 4 * LEN, *low = room, *parts[2];

	setup();
	adopt(base, 2 * LEN);
	move(base + LEN, low, LEN);
	ck_assert_int_eq(adopted_kib(), 2 * LEN / 1024);
	parts[0] = _i ? low : base;
	parts[1] = _i ? base : low;
	unmap(parts[0], LEN);
	ck_assert_int_eq(adopted_kib(), LEN / 1024);
	for (size_t k = 0; k < LEN; k++)
		ck_assert_int_eq(parts[1][k], 3);
	unmap(parts[1], LEN);
	ck_assert_int_eq(adopted_kib(), 0);
}
END_TEST

/* More than the list of what is shown has room for, and in no order: every second page, back to front. */
START_TEST(adopt__very_many_parts__what_is_left_keeps_its_bytes_and_the_rest_is_given_back)
{
	size_t n = 3000, i;
	unsigned char *base = pages(n * PAGE), *room = pages(n * PAGE);

	setup();
	for (i = 0; i < n; i++)
		base[i * PAGE] = (unsigned char)(i * 7);
	adopt(base, n * PAGE);
	for (i = 1; i < n; i += 2) /* as nobody has seen */
		ck_assert_ptr_ne(
			mremap(base + i * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + (n - 1 - i) * PAGE),
			MAP_FAILED);
	for (i = 1; i < n; i += 6)
		munmap(room + (n - 1 - i) * PAGE, PAGE);
	unmap(base, PAGE);
	ck_assert_int_eq(adopted_kib(), (long)(n - n / 6 - 1) * 4);
	for (i = 1; i < n; i++)
		if (i % 2 == 0)
			UNIT_CHECK(base[i * PAGE] == (unsigned char)(i * 7));
		else if (i % 6 != 1)
			UNIT_CHECK(room[(n - 1 - i) * PAGE] == (unsigned char)(i * 7));
	unmap(base, n * PAGE);
	unmap(room, n * PAGE);
	ck_assert_int_eq(adopted_kib(), 0);
}
END_TEST

/* ---- memory that is promised --------------------------------------------------------- */

/* In this process vm.overcommit_memory reads as 2.  False: it may not change what it sees. */
static bool see_promises(void)
{
	char path[] = "/dev/shm/glex-adopt-XXXXXX";
	int fd = mkstemp(path);
	bool seen;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "2\n", 2), 2);
	close(fd);
	seen = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount(path, "/proc/sys/vm/overcommit_memory", NULL, MS_BIND, NULL) == 0;
	unlink(path);
	return seen;
}

/* _i: 1: the system does */
START_TEST(adopt__never_written__has_memory_where_the_system_promises_it)
{
	unsigned char *base = mmap(NULL, 16 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(base, MAP_FAILED);
	if (_i && !see_promises()) {
		puts("skipped: adopt__never_written: no mount namespace can be had, which takes CAP_SYS_ADMIN");
		return;
	}
	setup();
	base[0] = 3;
	adopt(base, 16 * LEN);
	ck_assert_int_eq(adopted_kib() == 16 * LEN / 1024, _i);
	ck_assert(base[0] == 3 && base[16 * LEN - 1] == 0);
	unmap(base, 16 * LEN);
	ck_assert_int_eq(adopted_kib(), 0);
}
END_TEST

/* ---- kernels that tell by text ------------------------------------------------------- */

/* Bytes this process has read by now; -1: the kernel does not count them. */
static long long bytes_read(void)
{
	FILE *io = fopen("/proc/self/io", "re");
	long long n = -1;

	if (io && fscanf(io, "rchar: %lld", &n) != 1)
		n = -1;
	if (io)
		fclose(io);
	return n;
}

static long long bytes_of_maps(void)
{
	static char text[1 << 16];
	int fd = nic_vma_open();
	long long sum = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		sum += n;
	close(fd);
	return sum;
}

#define PIECES 100

START_TEST(adopt__kernel_tells_mappings_by_text__is_read_a_few_times_however_many_there_are)
{
	unsigned char *piece[PIECES], *other = pages(LEN);
	long long before, all;
	int i;

	if (bytes_read() < 0) {
		puts("skipped: adopt__kernel_tells_mappings_by_text: the kernel does not count what is read");
		return;
	}
	setup();
	ck_assert_int_eq(forbid_vma_query(), 0);
	for (i = 0; i < PIECES; i++) {
		piece[i] = pages(LEN);
		adopt(piece[i], LEN);
		ck_assert_int_eq(mprotect(piece[i], PAGE, PROT_READ), 0); /* a mapping more */
	}
	all = bytes_of_maps();
	before = bytes_read();
	move(piece[0], other, LEN);
	ck_assert_int_lt(bytes_read() - before, 6 * all);
	before = bytes_read();
	unmap(other, LEN);
	ck_assert_int_lt(bytes_read() - before, 4 * all);
	ck_assert_int_eq(adopted_kib(), (PIECES - 1) * LEN / 1024);
	for (i = 1; i < PIECES; i++) {
		UNIT_CHECK(piece[i][LEN - 1] == 3);
		unmap(piece[i], LEN);
	}
	ck_assert_int_eq(adopted_kib(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("adopt");
	TCase *tc = tcase_create("adopt");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, adopt__as_often_as_there_are_windows__begins_anew_beside_what_is_still_there);
	tcase_add_loop_test(tc, adopt__a_part_is_moved_below_the_others__each_is_given_back_when_it_is_unmapped, 0, 2);
	tcase_add_test(tc, adopt__very_many_parts__what_is_left_keeps_its_bytes_and_the_rest_is_given_back);
	tcase_add_loop_test(tc, adopt__never_written__has_memory_where_the_system_promises_it, 0, 2);
	tcase_add_test(tc, adopt__kernel_tells_mappings_by_text__is_read_a_few_times_however_many_there_are);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
