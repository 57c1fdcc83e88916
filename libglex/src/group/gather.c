/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gather.c - everybody's part, to one member or to all, where there is no tree: direct.h.
 *
 *   to one   as a reduction, but that the root copies the lines out instead of combining them
 *   to all   everybody PUTs his lines to where all meet, and adds himself there, as for a reduction.  Who is
 *            the last GETs the lines of all, and PUTs them to the same place on everybody's board.  Of two
 *            each PUTs to the other
 *   crossed  the same of two, but that what each PUTs is a block for the other: glex_group_alltoall of few bytes
 *
 *   board 0    | line 0 | line 1 | ... | line n-1 |   of member 1, 2, ..., as they come
 *       last      GET ->   | all of them |  -> PUT    boards of the others
 *
 * So what members send is n lines, n-1 PUTs of them all and n additions; each to each would be n * (n-1) lines.
 *
 * I1  Where all meet the lines are before the last has them.  Member 0 must not leave meanwhile: he waits for
 *     a line of results, which has nothing to say but that.
 */
#include "group/direct.h"

/* Of all, in their order.  Crossed: the own line has what is the other's, and the own block is there already. */
static void collect(struct glex_group *group)
{
	unsigned char *to = group->result;
	uint32_t i;

	for (i = 0; i < group->n && group->len; i++)
		if (!group->is_crossed || i != group->me)
			glexi_board_unpack(group, OPERAND, i, to + (size_t)i * group->len);
}

glex_ret_t glexi_gather_spread(struct glex_group *group)
{
	glex_ret_t ret = group->direct->has_asked ? GLEX_SUCCESS : glexi_board_share(group);

	if (ret == GLEX_SUCCESS)
		ret = glexi_board_answered(group);
	if (ret == GLEX_SUCCESS)
		collect(group);
	return ret;
}

glex_ret_t glexi_gather_take(struct glex_group *group)
{
	bool is_host = group->to_all && !group->direct->exchange && host_of(group) == group->me;
	glex_ret_t ret = is_host ? glexi_board_has(group, RESULT, 0) : GLEX_SUCCESS; /* I1 */

	if (ret == GLEX_SUCCESS)
		ret = glexi_board_has_all(group);
	if (ret == GLEX_SUCCESS)
		collect(group);
	return ret;
}
