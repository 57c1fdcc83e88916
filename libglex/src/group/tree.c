/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree.c - who is whose parent.
 *
 *   k-ary, degree 2, 7 members      k-nomial, degree 2, 8 members
 *            0                              0
 *          1   2                        1   2   4
 *         3 4 5 6                           3   5 6
 *                                                 7
 *
 * In the k-nomial tree a member's digits (to the base degree) are its way from the
 * root: its parent lacks the lowest that is not 0.  Who is close to the root has
 * more children, so that all are reached in the same number of sending steps.
 */
#include <glex_ext.h>
#include <stdbool.h>

static glex_ret_t add(uint32_t child, uint32_t children[GLEX_COLL_MAX_BRANCH_DEGREE], uint32_t *count)
{
	if (*count == GLEX_COLL_MAX_BRANCH_DEGREE)
		return GLEX_INVALID_PARAM;
	children[(*count)++] = child;
	return GLEX_SUCCESS;
}

static glex_ret_t kary(uint32_t n, uint32_t me, uint32_t degree, uint32_t *parent, uint32_t *children, uint32_t *count)
{
	uint64_t first = (uint64_t)me * degree + 1, child;

	*parent = me ? (me - 1) / degree : 0;
	for (child = first; child < n && child < first + degree; child++)
		if (add((uint32_t)child, children, count) != GLEX_SUCCESS)
			return GLEX_INVALID_PARAM;
	return GLEX_SUCCESS;
}

static glex_ret_t knomial(uint32_t n, uint32_t me, uint32_t degree, uint32_t *parent, uint32_t *children,
			  uint32_t *count)
{
	uint64_t weight, child;

	*parent = 0;
	for (weight = 1; weight < n; weight *= degree) {
		uint64_t digit = me / weight % degree;

		if (digit) {
			*parent = (uint32_t)(me - digit * weight);
			break;
		}
		for (child = me + weight; child < n && child < me + weight * degree; child += weight)
			if (add((uint32_t)child, children, count) != GLEX_SUCCESS)
				return GLEX_INVALID_PARAM;
	}
	return GLEX_SUCCESS;
}

glex_ret_t glex_group_tree(enum glex_group_shape shape, uint32_t n, uint32_t me, uint32_t degree, uint32_t *parent,
			   uint32_t children[GLEX_COLL_MAX_BRANCH_DEGREE], uint32_t *count)
{
	bool nomial = shape == GLEX_GROUP_KNOMIAL;

	if (n == 0 || me >= n || !parent || !children || !count || (!nomial && shape != GLEX_GROUP_KARY) ||
	    degree < (nomial ? 2u : 1u) || degree > GLEX_COLL_MAX_BRANCH_DEGREE)
		return GLEX_INVALID_PARAM;
	*count = 0;
	return nomial ? knomial(n, me, degree, parent, children, count) : kary(n, me, degree, parent, children, count);
}
