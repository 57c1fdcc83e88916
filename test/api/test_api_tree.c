/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api_tree.c - glex_group_tree: who is whose parent.
 */
#include <glex_ext.h>

#include "test/lib/side.h"

START_TEST(tree__any_size_and_degree__each_member_has_one_way_to_the_root)
{
	uint32_t degree = (uint32_t)_i / 2 + 1, n, me, i, parent, up, count, counts, seen;
	enum glex_group_shape shape = _i % 2 ? GLEX_GROUP_KNOMIAL : GLEX_GROUP_KARY;
	uint32_t children[32], others[32];

	for (n = 1; n <= 200; n++) {
		/* Nobody has more children than the root. */
		if (glex_group_tree(shape, n, 0, degree, &parent, children, &count) != GLEX_SUCCESS) {
			ck_assert(shape == GLEX_GROUP_KNOMIAL && (degree == 1 || (degree > 17 && n > degree)));
			continue;
		}
		for (me = 0, seen = 0; me < n; me++) {
			SURE(glex_group_tree(shape, n, me, degree, &parent, children, &count) == GLEX_SUCCESS);
			SURE(parent < me || (me == 0 && parent == 0));
			for (i = 0; i < count; i++) {
				SURE(children[i] > me && children[i] < n);
				SURE(glex_group_tree(shape, n, children[i], degree, &up, others, &counts) ==
				     GLEX_SUCCESS);
				SURE(up == me);
			}
			seen += count;
		}
		ck_assert_uint_eq(seen, n - 1);
	}
}
END_TEST

START_TEST(tree__that_cannot_be__invalid)
{
	uint32_t parent, children[32], count;

	RETURNS(glex_group_tree(GLEX_GROUP_KARY, 0, 0, 2, &parent, children, &count), GLEX_INVALID_PARAM);
	RETURNS(glex_group_tree(GLEX_GROUP_KARY, 3, 3, 2, &parent, children, &count), GLEX_INVALID_PARAM);
	RETURNS(glex_group_tree(GLEX_GROUP_KARY, 3, 0, 0, &parent, children, &count), GLEX_INVALID_PARAM);
	RETURNS(glex_group_tree(GLEX_GROUP_KARY, 3, 0, 33, &parent, children, &count), GLEX_INVALID_PARAM);
	RETURNS(glex_group_tree(GLEX_GROUP_KNOMIAL, 3, 0, 1, &parent, children, &count), GLEX_INVALID_PARAM);
	RETURNS(glex_group_tree(GLEX_GROUP_KNOMIAL, 2000, 0, 32, &parent, children, &count), GLEX_INVALID_PARAM);
	RETURNS(glex_group_tree((enum glex_group_shape)2, 3, 0, 2, &parent, children, &count), GLEX_INVALID_PARAM);
	RETURNS(glex_group_tree(GLEX_GROUP_KARY, 3, 0, 2, NULL, children, &count), GLEX_INVALID_PARAM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tree");
	TCase *tc = tcase_create("tree");

	tcase_add_loop_test(tc, tree__any_size_and_degree__each_member_has_one_way_to_the_root, 0, 64);
	tcase_add_test(tc, tree__that_cannot_be__invalid);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
