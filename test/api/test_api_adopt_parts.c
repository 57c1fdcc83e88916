/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_adopt_parts.c - memory that is moved into a shared mapping part by
 * part becomes one mapping, which one region can be over; and what was one
 * mapping before the program took it apart does not share bytes.
 */
#include "test/api/adopt.h"
#include "test/lib/seccomp.h"

#define SLICE ((size_t)4 << 20) /* what is moved at once */

/* The mapping that holds addr holds [base, base + len), and is shared. */
static bool is_one(const unsigned char *base, size_t len)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512], mode[5];
	bool one = false;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && from <= (uintptr_t)base &&
		    (uintptr_t)base + len <= to)
			one = mode[3] == 's';
	fclose(maps);
	return one;
}

static void heat(struct side *side, unsigned char *base, size_t len)
{
	OK(glex_deregister_mem(side->ep, make_hot(side, base, len)));
}

/* A peer that may not attach reaches all of it. */
static void expect_mapped(struct side *side, const struct peer *peer, unsigned char *base, size_t len)
{
	glex_mem_handle_t mh;

	OK(glex_register_mem(side->ep, base, (uint32_t)len, RW, &mh));
	expect_reached(peer, side, mh, base, 0, (uint32_t)len);
	OK(glex_deregister_mem(side->ep, mh));
}

/* With other threads, or without and by copying. */
struct scene {
	struct side side;
	struct peer peer;
	struct sleeper sleeper;
	bool threads;
};

static void scene_open(struct scene *scene, bool threads)
{
	scene->threads = threads;
	if (!threads)
		ck_assert_int_eq(forbid_userfaultfd(), 0);
	open_adopting(&scene->side, "always");
	scene->peer = peer_start(helper_main, &mapper);
	if (threads)
		sleeper_start(&scene->sleeper);
}

static void scene_close(struct scene *scene)
{
	if (scene->threads)
		sleeper_end(&scene->sleeper);
	let_go(&scene->peer);
	side_close(&scene->side);
}

/* _i: 0 its end, 1 its beginning is moved first; + 2: there are other threads */
START_TEST(adopt__grows__becomes_one_mapping)
{
	size_t first = _i % 2 ? 3 * LEN : 0;
	unsigned char *base = pages(4 * LEN);
	struct scene scene;

	scene_open(&scene, _i / 2);
	fill(base, 4 * LEN, 1);
	heat(&scene.side, base + first, LEN);
	ck_assert(is_one(base + first, LEN));
	ck_assert(!is_shared(base + 2 * LEN));
	heat(&scene.side, base + LEN, 2 * LEN); /* not beside what a region of its own is over */
	ck_assert(is_one(base + LEN, 2 * LEN) && !is_one(base, 2 * LEN));
	munmap(base + LEN, 2 * LEN);
	ck_assert_ptr_eq(
		mmap(base + LEN, 2 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		base + LEN);
	fill(base, 4 * LEN, 2);
	heat(&scene.side, base, 4 * LEN);
	ck_assert(is_one(base, 4 * LEN));
	expect_filled(base, 4 * LEN, 2);
	expect_mapped(&scene.side, &scene.peer, base, 4 * LEN);
	scene_close(&scene);
}
END_TEST

static bool is_one_now(struct side *side, unsigned char *base, size_t len)
{
	heat(side, base, len);
	return is_one(base, len);
}

START_TEST(adopt__a_later_slice_is_pinned__the_rest_follows_when_it_is_not)
{
	unsigned char *room = pages(2 * SLICE), *edge, *base;
	struct scene scene;
	int ring;

	edge = (unsigned char *)(((uintptr_t)room + SLICE) / SLICE * SLICE);
	base = edge - LEN / 2;
	scene_open(&scene, true);
	fill(base, LEN, 6);
	ring = pin_page(edge + PAGE);
	if (ring >= 0) {
		heat(&scene.side, base, LEN);
		ck_assert(is_shared(base) && !is_shared(edge + PAGE));
		expect_filled(base, LEN, 6);
		close(ring);
		UNTIL(is_one_now(&scene.side, base, LEN));
		expect_filled(base, LEN, 6);
		expect_mapped(&scene.side, &scene.peer, base, LEN);
	} else {
		skipped("adopt__a_later_slice_is_pinned", "no io_uring can be had to pin it");
	}
	scene_close(&scene);
}
END_TEST

/* _i: 1: there are other threads, so they stay apart; nobody else notices */
START_TEST(adopt__parts_lie_apart__one_mapping_where_nobody_writes)
{
	unsigned char *base = pages(4 * LEN);
	struct scene scene;
	glex_mem_handle_t mh;

	scene_open(&scene, _i);
	fill(base, 4 * LEN, 1);
	heat(&scene.side, base, LEN);
	heat(&scene.side, base + 2 * LEN, LEN);
	heat(&scene.side, base, 4 * LEN);
	ck_assert(is_shared(base + LEN) && is_shared(base + 3 * LEN));
	ck_assert(is_one(base, 4 * LEN) == !_i);
	expect_filled(base, 4 * LEN, 1);
	OK(glex_register_mem(scene.side.ep, base, 2 * LEN, RW, &mh));
	expect_reached(&scene.peer, &scene.side, mh, base, 0, 2 * LEN);
	OK(glex_deregister_mem(scene.side.ep, mh));
	scene_close(&scene);
}
END_TEST

/* What was moved elsewhere keeps its bytes when others come where it was.  _i: 1: there are other threads */
START_TEST(adopt__part_is_moved_elsewhere__shares_nothing_with_what_comes_in_its_place)
{
	unsigned char *base = pages(2 * LEN), *other = pages(LEN);
	struct scene scene;

	scene_open(&scene, _i);
	fill(base, 2 * LEN, 1);
	heat(&scene.side, base, 2 * LEN);
	ck_assert(is_one(base, 2 * LEN));
	fill(base + LEN, LEN, 2);
	ck_assert_ptr_eq(mremap(base + LEN, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, other), other);
	ck_assert_ptr_eq(
		mmap(base + LEN, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		base + LEN);
	fill(base, 2 * LEN, 3);
	heat(&scene.side, base, 2 * LEN);
	ck_assert(is_shared(base + LEN));
	expect_filled(other, LEN, 2);
	fill(other, LEN, 4);
	expect_filled(base, 2 * LEN, 3);
	scene_close(&scene);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("adopt_parts");
	TCase *tc = tcase_create("adopt_parts");
	int alone = CAN_BE_ALONE ? 0 : 1; /* where a sanitizer has a thread of its own it is as with threads */

	own_job("adopt_parts");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, adopt__grows__becomes_one_mapping, 2 * alone, 4);
	tcase_add_test(tc, adopt__a_later_slice_is_pinned__the_rest_follows_when_it_is_not);
	tcase_add_loop_test(tc, adopt__parts_lie_apart__one_mapping_where_nobody_writes, alone, 2);
	tcase_add_loop_test(tc, adopt__part_is_moved_elsewhere__shares_nothing_with_what_comes_in_its_place, alone, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
