/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_tree.c - makes the trees of communicators, beside whatever else goes on.
 *
 *   LATER --- the call that makes it, in all ranks the same one ---> BUILDING
 *
 *   BUILDING  a schedule of MPICH's, that its progress engine goes through:
 *             everybody's card, and whether it could open a group --> join --> could all?
 *                |                                                               |
 *             READY <--- yes                                            no ---> NEVER
 *
 *   LATER ---> NEVER, which all know: groups of processes share it that were told otherwise (glex_same.c)
 *
 * The schedule is one for all ranks, whatever their calls are: who blocks waits for it, who does not finds his
 * operations behind it in the queue.
 *
 * Whether what is long can be fetched from everybody is found out by an operation of the tree's own, in
 * front of the first that asks: the first ranks are each fetched from, then all agree.
 *
 * A rank with an error breaks the tree, for it cannot know whether the others have one now: who has
 * died before the last step is missed by all there, and later by those who have a tree (glex_coll.c, I3).
 */
#include "glex_coll.h"

#include <sched.h>

#define MPID_NEM_GLEX_PROBES 16 /* ranks whose memory is tried before anything long is fetched from it */

/* What a rank says of itself. */
struct MPID_nem_glex_member {
	struct glex_group_card card;
	int32_t ok, zero;
};

struct MPID_nem_glex_build {
	MPIR_Request *req;
	struct MPID_nem_glex_tree *tree;
	int ok;
	struct MPID_nem_glex_member all[]; /* this rank's, and then those behind it, round */
};

/* ---- beginning and end ----------------------------------------------------- */

/*
 * A group whose NICs may have something to do for others yet, or whose board they may look at: that must not keep
 * MPI_Comm_free.
 */
struct MPID_nem_glex_leaving {
	struct MPID_nem_glex_leaving *next;
	glex_group_t group;
};

/* Those that are done. */
static void MPID_nem_glex_leaving_close(void)
{
	struct MPID_nem_glex_leaving *leaving, **p = &MPID_nem_glex.coll_leaving;

	while ((leaving = *p)) {
		if (glex_group_wait(leaving->group, 0) == GLEX_NO_MP) {
			p = &leaving->next;
			continue;
		}
		*p = leaving->next;
		glex_group_close(leaving->group);
		MPL_free(leaving);
	}
}

static void MPID_nem_glex_leaving_add(glex_group_t group)
{
	struct MPID_nem_glex_leaving *leaving = MPL_malloc(sizeof(*leaving), MPL_MEM_COLL);

	if (!leaving) {
		glex_group_close(group);
		return;
	}
	leaving->group = group;
	leaving->next = MPID_nem_glex.coll_leaving;
	MPID_nem_glex.coll_leaving = leaving;
}

/*
 * Where it was revoked some may never have begun what others have ended, and all learn it from MPICH: a group's note could
 * be there before that, and be taken for a death.
 */
static void MPID_nem_glex_tree_fail(struct MPID_nem_glex_tree *tree)
{
	if (tree->comm->revoked)
		glex_group_abandon(tree->group);
	else
		glex_group_fail(tree->group);
}

void MPID_nem_glex_tree_drop(struct MPID_nem_glex_tree *tree)
{
	MPID_nem_glex_leaving_close();
	if (!tree->group)
		return;
	if (tree->comm->revoked)
		MPID_nem_glex_tree_fail(tree);
	if (glex_group_leave(tree->group) == GLEX_SUCCESS && glex_group_wait(tree->group, 0) == GLEX_NO_MP)
		MPID_nem_glex_leaving_add(tree->group);
	else
		glex_group_close(tree->group);
	tree->group = NULL;
	tree->word = NULL; /* of the group */
}

/* Others may have to hear from this rank before they come to where they leave: the end of CH3's connections. */
void MPID_nem_glex_trees_end(void)
{
	for (MPID_nem_glex_leaving_close(); MPID_nem_glex.coll_leaving; MPID_nem_glex_leaving_close()) {
		glexch_progress(MPID_nem_glex.ch);
		sched_yield();
	}
}

void MPID_nem_glex_tree_break(struct MPID_nem_glex_tree *tree)
{
	if (tree->group)
		MPID_nem_glex_tree_fail(tree);
	tree->is_broken = 1;
}

static int MPID_nem_glex_has_trees(const MPIR_Comm *comm)
{
	if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM || comm->remote_size < 2)
		return 0;
	switch (MPID_nem_glex_nearness(comm)) {
	case MPID_NEM_GLEX_APART:
		return 1;
	case MPID_NEM_GLEX_MIXED:
		return MPID_nem_glex.coll_where == MPID_NEM_GLEX_COLL_ALL;
	default:
		return 0;
	}
}

int MPID_nem_glex_tree_at(MPIR_Comm *comm, struct MPID_nem_glex_tree **tree_p)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_tree *tree = comm->dev.ch.netmod_priv;

	if (!tree && MPID_nem_glex_has_trees(comm)) {
		tree = MPL_calloc(1, sizeof(*tree), MPL_MEM_COLL);
		MPIR_ERR_CHKANDJUMP(!tree, mpi_errno, MPI_ERR_OTHER, "**nomem");
		tree->last = &tree->first;
		tree->rank = comm->rank;
		tree->comm = comm;
		comm->dev.ch.netmod_priv = tree;
		if (!MPID_nem_glex_same_in(comm)) {
			tree->state = MPID_NEM_GLEX_TREE_NEVER;
			tree->is_known = 1;
		}
	}
fn_fail:
	*tree_p = tree;
	return mpi_errno;
}

/* ---- by MPICH's schedules -------------------------------------------------- */

/*
 * With the tag that MPICH gives to none (its own end before it).  What all ranks begin in the same order, each when the
 * one before has ended for it, needs no other: between two ranks messages keep their order.
 */
int MPID_nem_glex_sched_new(MPIR_Sched_t *sched_p)
{
	int mpi_errno = MPIR_Sched_create(sched_p, MPIR_SCHED_KIND_REGULAR);

	if (mpi_errno == MPI_SUCCESS)
		MPIR_Sched_set_tag(*sched_p, MPIR_Process.attrs.tag_ub);
	return mpi_errno;
}

/* ---- making it ------------------------------------------------------------- */

/* The one that is wanted, if it can be.  As measured, without a tree is the fastest as far as that goes. */
enum glex_group_shape MPID_nem_glex_shape(uint32_t n)
{
	switch (MPID_nem_glex.coll_shape) {
	case MPID_NEM_GLEX_COLL_AUTO:
	case GLEX_GROUP_DIRECT:
		return n <= GLEX_GROUP_DIRECT_MAX ? GLEX_GROUP_DIRECT : GLEX_GROUP_KARY;
	default:
		return (enum glex_group_shape)MPID_nem_glex.coll_shape;
	}
}

static int MPID_nem_glex_tree_open(struct MPID_nem_glex_tree *tree, struct glex_group_card *card)
{
	glex_device_handle_t dev = glexch_device(MPID_nem_glex.ch);
	uint32_t n = (uint32_t)tree->comm->remote_size, direct = MPID_nem_glex_shape(n) == GLEX_GROUP_DIRECT ? n : 0;
	glex_ret_t ret = glex_group_open(dev, GLEX_EP_TYPE_FAST, direct, &tree->group, card);

	if (ret == GLEX_NO_EP_RESOURCE)
		ret = glex_group_open(dev, GLEX_EP_TYPE_EMULATE, direct, &tree->group, card);
	return ret == GLEX_SUCCESS;
}

/*
 * A tree was asked for, or is worth it by itself: not where ranks outnumber processors, and wait for each
 * other's turns on each of its levels.
 */
static int MPID_nem_glex_is_worth_it(const MPIR_Comm *comm)
{
	return MPID_nem_glex.coll_shape != MPID_NEM_GLEX_COLL_AUTO || comm->remote_size <= GLEX_GROUP_DIRECT_MAX ||
	       !glexch_crowded(MPID_nem_glex.ch);
}

/* With the degree that is wanted, or the greatest one that gives nobody too many children. */
static int MPID_nem_glex_tree_join(struct MPID_nem_glex_tree *tree, const struct glex_group_card *cards)
{
	uint32_t n = (uint32_t)tree->comm->remote_size, degree = MPID_nem_glex.coll_degree, parent, count;
	uint32_t children[GLEX_COLL_MAX_BRANCH_DEGREE];
	enum glex_group_shape shape = MPID_nem_glex_shape(n);

	while (shape != GLEX_GROUP_DIRECT && degree > 2 &&
	       glex_group_tree(shape, n, 0, degree, &parent, children, &count) != GLEX_SUCCESS)
		degree--;
	if (glex_group_join(tree->group, cards, n, (uint32_t)tree->rank, shape, degree) != GLEX_SUCCESS)
		return 0;
	return shape == GLEX_GROUP_DIRECT ||
	       glex_group_set_long(tree->group, (enum glex_group_long)MPID_nem_glex.coll_long_by) == GLEX_SUCCESS;
}

/* What has come from everybody is looked at; who has died has not said that it could. */
static int MPID_nem_glex_build_join(MPIR_Comm *comm, int tag, void *state)
{
	struct MPID_nem_glex_build *build = state;
	struct glex_group_card *cards;
	int i, n = comm->remote_size;

	cards = MPL_malloc((size_t)n * sizeof(*cards), MPL_MEM_COLL);
	build->ok = cards != NULL;
	for (i = 0; i < n && build->ok; i++) {
		cards[(comm->rank + i) % n] = build->all[i].card;
		build->ok = build->all[i].ok;
	}
	build->ok = build->ok && MPID_nem_glex_tree_join(build->tree, cards);
	MPL_free(cards);
	return MPI_SUCCESS;
}

/*
 * Everybody's, as Bruck has it (IEEE TPDS 8(11), 1997), left in the order in which they come.  MPICH's own takes memory that
 * is not cleared to put them in order: what has failed would leave there what an earlier one was told.
 */
static int MPID_nem_glex_build_gather(struct MPID_nem_glex_build *build, MPIR_Comm *comm, MPIR_Sched_t sched)
{
	int mpi_errno = MPI_SUCCESS, n = comm->remote_size, have, more;
	const MPI_Aint size = sizeof(build->all[0]);

	for (have = 1; have < n; have += more) {
		more = have < n - have ? have : n - have;
		mpi_errno = MPIR_Sched_send(build->all, more * size, MPID_NEM_GLEX_BYTE, (comm->rank + n - have) % n,
					    comm, sched);
		MPIR_ERR_CHECK(mpi_errno);
		mpi_errno = MPIR_Sched_recv(&build->all[have], more * size, MPID_NEM_GLEX_BYTE, (comm->rank + have) % n,
					    comm, sched);
		MPIR_ERR_CHECK(mpi_errno);
		mpi_errno = MPIR_Sched_barrier(sched);
		MPIR_ERR_CHECK(mpi_errno);
	}
fn_fail:
	return mpi_errno;
}

static int MPID_nem_glex_build_sched(struct MPID_nem_glex_build *build, MPIR_Comm *comm, MPIR_Sched_t *sched_p)
{
	int mpi_errno = MPID_nem_glex_sched_new(sched_p);

	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPID_nem_glex_build_gather(build, comm, *sched_p);
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPIR_Sched_cb(MPID_nem_glex_build_join, build, *sched_p);
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPIR_Sched_barrier(*sched_p);
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPIR_Iallreduce_intra_sched_auto(MPI_IN_PLACE, &build->ok, 1, MPID_NEM_GLEX_INT, MPI_MIN, comm,
						     *sched_p);
fn_fail:
	return mpi_errno;
}

/* All know whether all have joined, but who has an error. */
static void MPID_nem_glex_build_end(struct MPID_nem_glex_tree *tree, int mpi_errno, int ok)
{
	MPL_free(tree->build);
	tree->build = NULL;
	tree->state = ok || mpi_errno != MPI_SUCCESS ? MPID_NEM_GLEX_TREE_READY : MPID_NEM_GLEX_TREE_NEVER;
	if (mpi_errno != MPI_SUCCESS)
		MPID_nem_glex_tree_break(tree);
	if (mpi_errno == MPI_SUCCESS && ok) {
		MPID_nem_glex.stats.coll_trees++;
	} else {
		MPID_nem_glex.stats.coll_refused++;
		MPID_nem_glex_tree_drop(tree);
	}
	MPIDI_CH3_Progress_signal_completion(); /* who waits for it looks again */
}

int MPID_nem_glex_build_poll(struct MPID_nem_glex_tree *tree)
{
	MPIR_Request *req = tree->build->req;

	if (!MPIR_Request_is_complete(req))
		return 0;
	MPID_nem_glex_build_end(tree, req->status.MPI_ERROR, tree->build->ok);
	MPID_nem_glex_tree_go(tree);
	MPIR_Request_free(req); /* the tree may be gone, if this was all that held the communicator */
	return 1;
}

/* An error: this rank could not even begin; the others miss it, as one that has died. */
int MPID_nem_glex_tree_build(struct MPID_nem_glex_tree *tree)
{
	int mpi_errno = MPI_SUCCESS;
	MPIR_Comm *comm = tree->comm;
	MPIR_Sched_t sched = MPIR_SCHED_NULL;
	struct MPID_nem_glex_build *build;
	size_t size = sizeof(*build) + (size_t)comm->remote_size * sizeof(build->all[0]);

	tree->state = MPID_NEM_GLEX_TREE_BUILDING;
	tree->build = build = MPL_calloc(1, size, MPL_MEM_COLL);
	MPIR_ERR_CHKANDJUMP(!build, mpi_errno, MPI_ERR_OTHER, "**nomem");
	build->tree = tree;
	build->all[0].ok = MPID_nem_glex_is_worth_it(comm) && MPID_nem_glex_tree_open(tree, &build->all[0].card);
	mpi_errno = MPID_nem_glex_build_sched(build, comm, &sched);
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPIR_Sched_start(sched, comm, &build->req);
	MPIR_ERR_CHECK(mpi_errno);
	MPID_nem_glex_tree_enter(tree);
fn_exit:
	return mpi_errno;
fn_fail:
	if (sched)
		tree->build = NULL; /* not freed: receives into it may have been posted */
	MPID_nem_glex_build_end(tree, mpi_errno, 0);
	goto fn_exit;
}

/* ---- what is long ---------------------------------------------------------- */

/*
 * Where it is put: in memory that is reached by the fewest, for a file's mapping is never made shared.  The
 * value puts them into that of the library, not into the zeroed memory behind it.
 */
static struct MPID_nem_glex_probe {
	uint64_t word[2];
	int is_taken;
} MPID_nem_glex_probe[4] = {{.word = {1}}};

static void MPID_nem_glex_probe_take(struct MPID_nem_glex_op *op)
{
	size_t i;

	op->to = (unsigned char *)op->units; /* will do: an allocator's memory is hardly ever shared */
	for (i = 0; i < sizeof(MPID_nem_glex_probe) / sizeof(MPID_nem_glex_probe[0]); i++)
		if (!MPID_nem_glex_probe[i].is_taken) {
			MPID_nem_glex_probe[i].is_taken = 1;
			op->to = (unsigned char *)MPID_nem_glex_probe[i].word;
			return;
		}
}

static void MPID_nem_glex_probe_return(const struct MPID_nem_glex_op *op)
{
	size_t i;

	for (i = 0; i < sizeof(MPID_nem_glex_probe) / sizeof(MPID_nem_glex_probe[0]); i++)
		if (op->to == (unsigned char *)MPID_nem_glex_probe[i].word)
			MPID_nem_glex_probe[i].is_taken = 0;
}

/* A few bytes from each of the first ranks in turn; and what came of it. */
int MPID_nem_glex_longs_try(struct MPID_nem_glex_tree *tree)
{
	struct MPID_nem_glex_op *op;
	int n = tree->comm->remote_size, mpi_errno = MPID_nem_glex_coll_own(&op, MPID_NEM_GLEX_LONGS);

	if (mpi_errno != MPI_SUCCESS)
		return mpi_errno;
	tree->longs[MPID_NEM_GLEX_NEEDS_BUFFERS].state = MPID_NEM_GLEX_TREE_BUILDING;
	op->len = (size_t)(n < MPID_NEM_GLEX_PROBES ? n : MPID_NEM_GLEX_PROBES) + 1;
	MPID_nem_glex_probe_take(op);
	MPID_nem_glex_tree_add(tree, op);
	return MPI_SUCCESS;
}

static int MPID_nem_glex_longs_is_last(const struct MPID_nem_glex_op *op)
{
	return op->at + 1 == op->len;
}

glex_ret_t MPID_nem_glex_longs_stepped(struct MPID_nem_glex_op *op, glex_ret_t ret)
{
	uint64_t word[2];

	if (MPID_nem_glex_longs_is_last(op))
		return ret;
	memcpy(word, op->to, sizeof(word));
	if (ret == GLEX_ACCESS_ERR || (ret == GLEX_SUCCESS && word[1] != op->at + 1)) {
		op->is_denied = 1;
		return GLEX_SUCCESS;
	}
	return ret;
}

glex_ret_t MPID_nem_glex_longs_step(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	uint64_t word[2];
	glex_ret_t ret;

	for (; !MPID_nem_glex_longs_is_last(op); op->at++) {
		word[0] = word[1] = op->at == (size_t)tree->rank ? op->at + 1 : 0;
		memcpy(op->to, word, sizeof(word));
		ret = glex_group_bcast_long(tree->group, (uint32_t)op->at, op->to, sizeof(word));
		if (ret != GLEX_ACCESS_ERR)
			return ret;
		op->is_denied = 1; /* it was not begun here */
	}
	op->units[0].uint32_s.data = !op->is_denied;
	op->units[0].uint32_s.location = 0;
	return glex_group_allreduce(tree->group, op->units, 1, GLEX_COLL_REDUCE_DATA_BITS_32, GLEX_COLL_REDUCE_LAND);
}

void MPID_nem_glex_longs_found(struct MPID_nem_glex_tree *tree, enum MPID_nem_glex_need need, glex_ret_t ret, int all)
{
	int has = ret == GLEX_SUCCESS && all;

	if (ret != GLEX_SUCCESS && tree->state == MPID_NEM_GLEX_TREE_READY)
		MPID_nem_glex_tree_break(tree);
	tree->longs[need].state = has || tree->is_broken ? MPID_NEM_GLEX_TREE_READY : MPID_NEM_GLEX_TREE_NEVER;
	MPIDI_CH3_Progress_signal_completion(); /* as in MPID_nem_glex_build_end */
}

void MPID_nem_glex_longs_end(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op, glex_ret_t ret)
{
	MPID_nem_glex_probe_return(op);
	MPID_nem_glex_longs_found(tree, MPID_NEM_GLEX_NEEDS_BUFFERS, ret, op->units[0].uint32_s.data != 0);
}
