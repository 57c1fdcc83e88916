/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_vma.c - what the kernel knows of this process's addresses: both ways to
 * ask, by its own call and by the text of /proc, say the same.
 */
#include "backend/nic/vma.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/unit.h"

#define PAGE ((size_t)4096)

static void expect_same(const struct nic_vma *a, const struct nic_vma *b)
{
	ck_assert_uint_eq(a->start, b->start);
	ck_assert_uint_eq(a->end, b->end);
	ck_assert_uint_eq(a->offset, b->offset);
	ck_assert_uint_eq(a->dev, b->dev);
	ck_assert_uint_eq(a->ino, b->ino);
	ck_assert_int_eq(a->readable, b->readable);
	ck_assert_int_eq(a->writable, b->writable);
	ck_assert_int_eq(a->executable, b->executable);
	ck_assert_int_eq(a->shared, b->shared);
	ck_assert_int_eq(nic_vma_is_plain(a), nic_vma_is_plain(b));
}

/* Private, read-only, shared memory and files, with holes between. */
static unsigned char *map_some(int fd)
{
	unsigned char *base = mmap(NULL, 40 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(base, MAP_FAILED);
	mmap(base + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	mmap(base + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	mmap(base + 6 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)(5 * PAGE));
	mmap(base + 9 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
	munmap(base + 20 * PAGE, 5 * PAGE);
	return base;
}

START_TEST(vma__every_mapping__both_ways_say_the_same)
{
	int mem = memfd_create("a file", MFD_CLOEXEC), fd = nic_vma_open(), n = 0;
	struct nic_vma by_call = {.end = 0}, by_text;
	uint64_t at = 0;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(mem, (off_t)(8 * PAGE)), 0);
	map_some(mem);
	while (nic_vma_find(fd, at, &by_call)) {
		ck_assert(nic_vma_find_text(fd, at, &by_text));
		expect_same(&by_call, &by_text);
		if (!strstr(by_text.name, "[v")) /* the kernel's own have names in the text only */
			ck_assert_str_eq(by_call.name, by_text.name);
		ck_assert(nic_vma_find_text(fd, by_call.end - 1, &by_text));
		ck_assert_uint_eq(by_text.start, by_call.start);
		at = by_call.end;
		n++;
	}
	ck_assert_int_gt(n, 15);
	ck_assert(!nic_vma_find_text(fd, at, &by_text) || strstr(by_text.name, "[vsyscall]"));
	close(fd);
	close(mem);
}
END_TEST

/* _i: 1 by text */
START_TEST(vma__what_a_mapping_is__is_said)
{
	int mem = memfd_create("a file", MFD_CLOEXEC), fd = _i ? -1 : nic_vma_open(); /* no descriptor: by text */
	unsigned char *base;
	struct nic_vma vma;
	struct stat st;

	ck_assert_int_eq(ftruncate(mem, (off_t)(8 * PAGE)), 0);
	ck_assert_int_eq(fstat(mem, &st), 0);
	base = map_some(mem);
	ck_assert(nic_vma_find(fd, (uintptr_t)base + PAGE + 7, &vma));
	ck_assert(nic_vma_is_plain(&vma));
	ck_assert_uint_eq(vma.start, (uintptr_t)base + PAGE);
	ck_assert_uint_eq(vma.end, (uintptr_t)base + 2 * PAGE);
	ck_assert(nic_vma_find(fd, (uintptr_t)base + 3 * PAGE, &vma));
	ck_assert(vma.shared && !nic_vma_is_plain(&vma));
	ck_assert_str_eq(vma.name, "/dev/zero (deleted)");
	ck_assert(nic_vma_find(fd, (uintptr_t)base + 7 * PAGE, &vma));
	ck_assert(vma.shared && vma.readable && !vma.writable);
	ck_assert_uint_eq(vma.ino, st.st_ino);
	ck_assert_uint_eq(vma.dev, st.st_dev);
	ck_assert_uint_eq(vma.offset, 5 * PAGE);
	ck_assert_str_eq(vma.name, "/memfd:a file (deleted)");
	ck_assert(nic_vma_find(fd, (uintptr_t)base + 9 * PAGE, &vma));
	ck_assert(!vma.shared && !nic_vma_is_plain(&vma));
	ck_assert(nic_vma_find(fd, (uintptr_t)base + 21 * PAGE, &vma)); /* a hole: what is behind it */
	ck_assert_uint_eq(vma.start, (uintptr_t)base + 25 * PAGE);
	ck_assert(!nic_vma_find(fd, UINT64_MAX - PAGE, &vma));
	if (fd >= 0)
		close(fd);
	close(mem);
}
END_TEST

/* A name longer than any buffer for a line, and with spaces and newlines in it. */
START_TEST(vma__long_and_odd_names__do_not_confuse_what_follows)
{
	char dir[] = "/dev/shm/glex-vma-XXXXXX", path[300];
	struct nic_vma by_call, by_text;
	int mem, fd = nic_vma_open();
	unsigned char *base;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%.200s\n 7f00 x%.20s", dir,
		 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
		 "nnnnnnnnn"
		 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
		 "nnnnn",
		 "mmmmmmmmmmmmmmmmmmmmmmmm");
	mem = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(mem, 0);
	unlink(path);
	rmdir(dir);
	ck_assert_int_eq(ftruncate(mem, (off_t)(8 * PAGE)), 0);
	base = map_some(mem);
	for (size_t i = 0; i < 40; i++) {
		ck_assert(nic_vma_find(fd, (uintptr_t)base + i * PAGE, &by_call));
		ck_assert(nic_vma_find_text(fd, (uintptr_t)base + i * PAGE, &by_text));
		expect_same(&by_call, &by_text);
	}
	close(fd);
	close(mem);
}
END_TEST

/* Everything but what is mapped only while it is looked at. */
static int walk_over(struct nic_vma_walk *walk, struct nic_vma *list, int room)
{
	int n = 0;

	while (n < room && nic_vma_next(walk, &list[n]))
		n++;
	return n;
}

#define ALL 2000

START_TEST(vma__walk__by_text_finds_what_the_call_finds)
{
	static struct nic_vma by_call[ALL], by_text[ALL];
	int fd = nic_vma_open(), mem = memfd_create("a file", MFD_CLOEXEC), n;
	struct nic_vma_walk walk;
	unsigned char *base;

	ck_assert_int_eq(ftruncate(mem, (off_t)(8 * PAGE)), 0);
	base = mmap(NULL, ALL * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 1000; i += 2)
		mmap(base + (size_t)i * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, mem, 0);
	nic_vma_walk(&walk, fd);
	n = walk_over(&walk, by_call, ALL);
	ck_assert_int_gt(n, 1000);
	nic_vma_walk(&walk, fd);
	walk.text = true;
	ck_assert_int_ge(walk_over(&walk, by_text, ALL), n); /* [vsyscall] is in the text only */
	for (int i = 0; i < n; i++)
		expect_same(&by_call[i], &by_text[i]);
	close(fd);
	close(mem);
}
END_TEST

/* What is left of a line that was cut looks like another line. */
START_TEST(vma__name_longer_than_a_line_may_be__its_end_is_no_mapping)
{
	char dir[] = "/dev/shm/glex-vma-XXXXXX", path[2000];
	struct nic_vma by_call, by_text;
	int fd = nic_vma_open(), mem = -1, len;
	unsigned char *base;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	/* 16 bytes a time, so one of 16 lengths is cut where a line could begin */
	for (int depth = 0, lead = _i; depth < 8; depth++, lead = 0) {
		len = depth ? (int)strlen(path) : snprintf(path, sizeof(path), "%s", dir);
		snprintf(path + len, sizeof(path) - (size_t)len, "/%.*s", lead, "xxxxxxxxxxxxxxxx");
		for (int k = 0; k < 15; k++)
			strcat(path, "1-f rwxp 0 0:0 9");
		if (depth < 7)
			ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	mem = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(mem, 0);
	ck_assert_int_eq(ftruncate(mem, (off_t)(8 * PAGE)), 0);
	base = map_some(mem);
	for (size_t i = 0; i < 40; i++) {
		ck_assert(nic_vma_find(fd, (uintptr_t)base + i * PAGE, &by_call));
		ck_assert(nic_vma_find_text(fd, (uintptr_t)base + i * PAGE, &by_text));
		expect_same(&by_call, &by_text);
	}
	ck_assert(nic_vma_find_text(fd, 0, &by_text));
	ck_assert_uint_gt(by_text.start, 1);
	unlink(path);
	for (char *end; (end = strrchr(path, '/')) && strcmp(path, dir) != 0;) {
		*end = '\0';
		rmdir(path);
	}
	close(fd);
	close(mem);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vma");
	TCase *tc = tcase_create("vma");

	tcase_add_test(tc, vma__every_mapping__both_ways_say_the_same);
	tcase_add_loop_test(tc, vma__what_a_mapping_is__is_said, 0, 2);
	tcase_add_test(tc, vma__long_and_odd_names__do_not_confuse_what_follows);
	tcase_add_loop_test(tc, vma__name_longer_than_a_line_may_be__its_end_is_no_mapping, 0, 16);
	tcase_add_test(tc, vma__walk__by_text_finds_what_the_call_finds);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
