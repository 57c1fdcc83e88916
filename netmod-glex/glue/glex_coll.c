/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_coll.c - barrier, broadcast, reductions, gathers and exchanges of MPI, run by the NICs.
 *
 *   communicator --- netmod_priv ---> tree ---> group (glex_ext.h), endpoints of its own
 *                                       |
 *                                       +-----> operations: the first has begun, the others wait
 *
 * MPICH asks here first (glex_hook.h).  Whether the NICs do it is decided by what all
 * ranks of the communicator know alike: its kind, the operation, the type, the bytes,
 * how many such calls it has seen, and, of those with a root, the ones before (MPID_nem_glex_row_is_over).  One of them
 * has the tree made (glex_tree.c), whether it blocks or not.  Until then, and for good if that was not to be, MPICH does
 * them.
 *
 * What does not block, and comes while the tree is made, is queued behind that.  If there is
 * none then, some ranks knew it when they made the call, and some did not; so all have MPICH do it
 * out of the queue (by a schedule of ours), until a call that blocks has come: then all know.
 *
 * An operation longer than a packet takes several, one after the other: what begins the
 * next is a poll, as with the operations that wait.  A long broadcast is fetched from the
 * root's buffer instead, or passed down the tree (glex_group_bcast_long), if all reach each other's memory.
 * Long reductions and gathers to all, and exchanges, go through memory that ranks keep for each other's (glex_stage.c), if
 * all can.  A gather to one takes one packet of each rank, or is MPICH's.
 *
 * I1  The operations of a communicator begin in the order of the calls, one at a time, whoever does them.
 * I2  A request holds its communicator, and whoever waits is in a call that has it, so a
 *     communicator goes when its queue is empty.
 * I3  A tree that is broken stays: what begins on it ends with the same error at once.  A rank breaks it for all
 *     if it cannot do its part: an error ended the making of the tree, or a step before of what it is a step of.
 * I4  Of a communicator that has been revoked nothing is waited for any more, by anybody; its
 *     tree is not used again.
 */
#include "glex_coll.h"

#include <sched.h>

#define MPID_NEM_GLEX_SPINS	 64   /* looks at the own queue alone, before the others' messages */
#define MPID_NEM_GLEX_COLL_LOOKS 8    /* one in so many from then on is for the others' messages */
#define MPID_NEM_GLEX_STAYS	 2048 /* looks of who has no reason to give way, at most */

/* ---- operations ------------------------------------------------------------ */

static int MPID_nem_glex_coll_error(const struct MPID_nem_glex_tree *tree, glex_ret_t ret)
{
	int mpi_errno = MPI_SUCCESS;

	if (ret != GLEX_SUCCESS && tree->comm->revoked)
		MPIR_ERR_SET(mpi_errno, MPIX_ERR_REVOKED, "**revoked");
	else if (ret == GLEX_SYS_ERR)
		MPIR_ERR_SET(mpi_errno, MPIX_ERR_PROC_FAILED, "**proc_failed");
	else if (ret != GLEX_SUCCESS)
		MPIR_ERR_SET1(mpi_errno, MPI_ERR_OTHER, "**fail", "**fail %s", glex_error_str(ret));
	return mpi_errno;
}

static int MPID_nem_glex_reduces(const struct MPID_nem_glex_op *op)
{
	return op->kind == MPID_NEM_GLEX_REDUCE || op->kind == MPID_NEM_GLEX_SCATTER;
}

/* The next packet of it, by the NICs. */
MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_op_post(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	size_t left = op->len - op->at;
	size_t most = MPID_nem_glex_reduces(op) ? MPID_nem_glex_reduce_most(tree, op) : MPID_NEM_GLEX_MP_BYTES;

	op->part = left < most || op->is_long ? left : most;
	if (op->kind == MPID_NEM_GLEX_BARRIER) /* what is asked for most is asked first: a switch jumps */
		return glex_group_barrier(tree->group);
	if (MPID_nem_glex_reduces(op))
		return MPID_nem_glex_reduce_post(tree, op);
	switch (op->kind) {
	case MPID_NEM_GLEX_LONGS:
		op->part = 1;
		return MPID_nem_glex_longs_step(tree, op);
	case MPID_NEM_GLEX_STAGE:
		op->part = 1;
		return glex_group_stage(tree->group, MPID_nem_glex.coll_stage);
	case MPID_NEM_GLEX_BCAST:
		if (op->is_long)
			return glex_group_bcast_long(tree->group, (uint32_t)op->root, op->to, op->len);
		return glex_group_bcast(tree->group, (uint32_t)op->root, op->to + op->at, (uint32_t)op->part);
	case MPID_NEM_GLEX_ALLTOALL:
		return glex_group_alltoall(tree->group, op->from, op->to, op->len);
	case MPID_NEM_GLEX_ALLTOALLV:
		return MPID_nem_glex_exchange_post(tree, op);
	default: /* MPID_NEM_GLEX_GATHER */
		if (op->is_long)
			return glex_group_allgather_long(tree->group, op->from, op->to, op->len);
		if (op->root == MPIDI_GLEX_ALL)
			return glex_group_allgather(tree->group, op->part_of_it, op->to, (uint32_t)op->part);
		return glex_group_gather(tree->group, (uint32_t)op->root, op->part_of_it, op->to, (uint32_t)op->part);
	}
}

static int MPID_nem_glex_is_passed(const struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op)
{
	enum MPID_nem_glex_need need =
		op->kind == MPID_NEM_GLEX_BCAST ? MPID_NEM_GLEX_NEEDS_BUFFERS : MPID_NEM_GLEX_NEEDS_STAGE;

	return tree->state == MPID_NEM_GLEX_TREE_NEVER ||
	       (op->is_long && tree->longs[need].state == MPID_NEM_GLEX_TREE_NEVER);
}

static int MPID_nem_glex_is_own(const struct MPID_nem_glex_op *op)
{
	return op->kind >= MPID_NEM_GLEX_KINDS;
}

/* Its first packet. */
MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_op_begin(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	if (unlikely(tree->is_broken))
		return GLEX_SYS_ERR;
	if (MPID_nem_glex_is_own(op) && tree->state == MPID_NEM_GLEX_TREE_NEVER)
		return GLEX_INVALID_PARAM;
	if (unlikely(MPID_nem_glex_is_passed(tree, op) || MPID_nem_glex_exchange_skips(tree, op))) {
		op->error = MPID_nem_glex_op_pass(tree, op);
		return op->error == MPI_SUCCESS ? GLEX_SUCCESS : GLEX_INVALID_PARAM;
	}
	if (!MPID_nem_glex_is_own(op)) {
		MPID_nem_glex.stats.coll[op->kind]++;
		MPID_nem_glex.stats.coll_long[op->kind] += (unsigned)op->is_long;
	}
	return MPID_nem_glex_op_post(tree, op);
}

/* What came of it so far: not GLEX_SUCCESS: it has ended; GLEX_NO_MP: MPICH goes on with it. */
MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_op_stepped(struct MPID_nem_glex_tree *tree,
							     struct MPID_nem_glex_op *op, glex_ret_t ret)
{
	switch (op->kind) {
	case MPID_NEM_GLEX_LONGS:
		return MPID_nem_glex_longs_stepped(op, ret);
	case MPID_NEM_GLEX_STAGE:
		return MPID_nem_glex_stage_stepped(op, ret);
	case MPID_NEM_GLEX_ALLTOALLV:
		MPID_nem_glex_exchange_learn(tree, op, ret == GLEX_ACCESS_ERR);
		if (ret != GLEX_ACCESS_ERR)
			return ret;
		MPID_nem_glex.stats.coll[op->kind]--; /* MPICH's after all */
		MPID_nem_glex.stats.coll_long[op->kind]--;
		op->error = MPID_nem_glex_op_pass(tree, op);
		return op->error == MPI_SUCCESS ? GLEX_NO_MP : GLEX_INVALID_PARAM;
	default:
		return ret;
	}
}

/* A packet of it is done.  True: that was the last. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_op_advance(const struct MPID_nem_glex_tree *tree,
						      struct MPID_nem_glex_op *op)
{
	if (MPID_nem_glex_reduces(op))
		MPID_nem_glex_reduce_store(tree, op);
	op->at += op->part;
	return op->at >= op->len;
}

int MPID_nem_glex_coll_pack(const void *buf, MPI_Aint count, MPI_Datatype type, void *packed, MPI_Aint len)
{
	MPI_Aint done;

#ifndef MPIR_TYPEREP_FLAG_NONE /* since MPICH 4.1 */
	return MPIR_Typerep_pack(buf, count, type, 0, packed, len, &done);
#else
	return MPIR_Typerep_pack(buf, count, type, 0, packed, len, &done, MPIR_TYPEREP_FLAG_NONE);
#endif
}

int MPID_nem_glex_coll_unpack(const void *packed, MPI_Aint len, void *buf, MPI_Aint count, MPI_Datatype type)
{
	MPI_Aint done;

#ifndef MPIR_TYPEREP_FLAG_NONE /* since MPICH 4.1 */
	return MPIR_Typerep_unpack(packed, len, buf, count, type, 0, &done);
#else
	return MPIR_Typerep_unpack(packed, len, buf, count, type, 0, &done, MPIR_TYPEREP_FLAG_NONE);
#endif
}

static int MPID_nem_glex_op_unpack(const struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	if (op->kind == MPID_NEM_GLEX_ALLTOALLV)
		return MPID_nem_glex_exchange_unpack(op, tree->comm->remote_size);
	return MPID_nem_glex_coll_unpack(op->packed, (MPI_Aint)op->packed_len, op->buf, op->count, op->type);
}

static void MPID_nem_glex_op_drop_packed(struct MPID_nem_glex_op *op)
{
	if (!op->packed)
		return;
	MPIR_Datatype_release_if_not_builtin(op->type);
	MPL_free(op->packed);
}

void MPID_nem_glex_op_set_packed(struct MPID_nem_glex_op *op, unsigned char *packed, size_t len, void *buf,
				 MPI_Aint count, MPI_Datatype type)
{
	op->packed = packed;
	op->packed_len = len;
	op->buf = buf;
	op->count = count;
	op->type = type;
	MPIR_Datatype_add_ref_if_not_builtin(type);
}

static struct MPID_nem_glex_op *MPID_nem_glex_op_take(void)
{
	struct MPID_nem_glex_op *op = MPID_nem_glex.coll_ops;

	if (!op)
		return MPL_malloc(sizeof(*op), MPL_MEM_COLL);
	MPID_nem_glex.coll_ops = op->next;
	return op;
}

static void MPID_nem_glex_op_put(struct MPID_nem_glex_op *op)
{
	op->next = MPID_nem_glex.coll_ops;
	MPID_nem_glex.coll_ops = op;
}

int MPID_nem_glex_coll_own(struct MPID_nem_glex_op **op_p, enum MPID_nem_glex_coll_kind kind)
{
	int mpi_errno = MPI_SUCCESS;

	*op_p = MPID_nem_glex_op_take();
	if (*op_p)
		MPID_nem_glex_op_set(*op_p, kind, NULL);
	else
		MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**nomem");
	return mpi_errno;
}

int MPID_nem_glex_op_request(MPIR_Comm *comm, enum MPID_nem_glex_coll_kind kind, MPIR_Request **req_p,
			     struct MPID_nem_glex_op **op_p)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_op *op = MPID_nem_glex_op_take();
	MPIR_Request *req;

	MPIR_ERR_CHKANDJUMP(!op, mpi_errno, MPI_ERR_OTHER, "**nomem");
	req = MPIR_Request_create(MPIR_REQUEST_KIND__COLL);
	MPIR_ERR_CHKANDJUMP(!req, mpi_errno, MPI_ERR_OTHER, "**nomemreq");
	MPIR_Request_add_ref(req); /* the user's; ours goes when it is complete */
	req->comm = comm;	   /* I2 */
	MPIR_Comm_add_ref(comm);
	*req_p = req;
	MPID_nem_glex_op_set(op, kind, req);
	*op_p = op;
	return MPI_SUCCESS;
fn_fail:
	MPL_free(op);
	return mpi_errno;
}

/* It is over; op is gone afterwards, unless somebody waits for it. */
MPID_NEM_GLEX_HOT static void MPID_nem_glex_op_end(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op,
						   glex_ret_t ret)
{
	MPIR_Request *req = op->req;

	if (unlikely(MPID_nem_glex_is_own(op))) {
		if (op->kind == MPID_NEM_GLEX_LONGS)
			MPID_nem_glex_longs_end(tree, op, ret);
		else
			MPID_nem_glex_stage_end(tree, op, ret);
		MPID_nem_glex_op_put(op);
		return;
	}
	if (op->error == MPI_SUCCESS)
		op->error = MPID_nem_glex_coll_error(tree, ret);
	if (op->packed && op->to == op->packed && op->error == MPI_SUCCESS &&
	    (op->kind != MPID_NEM_GLEX_BCAST || op->root != tree->rank))
		op->error = MPID_nem_glex_op_unpack(tree, op);
	MPID_nem_glex_op_drop_packed(op);
	if (MPID_nem_glex_reduces(op))
		MPID_nem_glex_reduce_end(op);
	op->done = 1;
	if (!req) {
		MPIDI_CH3_Progress_signal_completion();
		return;
	}
	req->status.MPI_ERROR = op->error;
	MPID_nem_glex_op_put(op);
	MPID_nem_glex_note(MPID_Request_complete(req));
}

MPID_NEM_GLEX_HOT void MPID_nem_glex_tree_enter(struct MPID_nem_glex_tree *tree)
{
	tree->next = MPID_nem_glex.coll_busy;
	MPID_nem_glex.coll_busy = tree;
}

MPID_NEM_GLEX_HOT static void MPID_nem_glex_tree_leave(struct MPID_nem_glex_tree *tree)
{
	struct MPID_nem_glex_tree **p;

	for (p = &MPID_nem_glex.coll_busy; *p; p = &(*p)->next)
		if (*p == tree) {
			*p = tree->next;
			return;
		}
}

/* The first one ends; begins those behind it, as far as one of them does not end at once. */
MPID_NEM_GLEX_HOT static void MPID_nem_glex_tree_next(struct MPID_nem_glex_tree *tree, glex_ret_t ret)
{
	struct MPID_nem_glex_op *op;
	int was_last;

	do {
		op = tree->first;
		tree->first = op->next;
		was_last = !tree->first;
		if (was_last) {
			tree->last = &tree->first;
			if (!tree->build)
				MPID_nem_glex_tree_leave(tree);
		}
		MPID_nem_glex_op_end(tree, op, ret);
		if (was_last)
			return; /* the tree may be gone, if the request was all that held the communicator */
		ret = tree->comm->revoked ? GLEX_SYS_ERR : MPID_nem_glex_op_begin(tree, tree->first);
	} while (ret != GLEX_SUCCESS);
}

void MPID_nem_glex_tree_go(struct MPID_nem_glex_tree *tree)
{
	glex_ret_t ret;

	if (!tree->first) {
		MPID_nem_glex_tree_leave(tree);
		return;
	}
	ret = MPID_nem_glex_op_begin(tree, tree->first);
	if (ret != GLEX_SUCCESS)
		MPID_nem_glex_tree_next(tree, ret);
}

/* What MPICH does is waited for until MPICH says that it is over: it has the user's buffers. */
static int MPID_nem_glex_inner_poll(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	MPIR_Request *inner = op->inner;

	if (!MPIR_Request_is_complete(inner))
		return 0;
	op->error = inner->status.MPI_ERROR;
	op->inner = NULL;
	MPIR_Request_free(inner); /* our request has the communicator */
	MPID_nem_glex_tree_next(tree, GLEX_SUCCESS);
	return 1;
}

/* Returns whether anything happened. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_tree_poll(struct MPID_nem_glex_tree *tree)
{
	struct MPID_nem_glex_op *op = tree->first;
	glex_ret_t ret;

	if (unlikely(tree->build) && (!op || !tree->comm->revoked))
		return MPID_nem_glex_build_poll(tree);
	if (unlikely(op->inner))
		return MPID_nem_glex_inner_poll(tree, op);
	if (unlikely(tree->comm->revoked)) {   /* I4 */
		MPID_nem_glex_tree_drop(tree); /* nothing is put into the user's buffers any more */
		MPID_nem_glex_tree_next(tree, GLEX_SYS_ERR);
		return 1;
	}
	ret = glex_group_look(tree->group, &tree->word, &tree->value);
	if (ret == GLEX_NO_MP)
		return 0;
	ret = MPID_nem_glex_op_stepped(tree, op, ret);
	if (ret == GLEX_NO_MP)
		return 1;
	if (ret == GLEX_SUCCESS && !MPID_nem_glex_op_advance(tree, op)) {
		ret = MPID_nem_glex_op_post(tree, op);
		if (ret == GLEX_SUCCESS)
			return 1;
	}
	MPID_nem_glex_tree_next(tree, ret);
	return 1;
}

int MPID_nem_glex_coll_poll(void)
{
	struct MPID_nem_glex_tree *tree, *next;
	int n = 0;

	for (tree = MPID_nem_glex.coll_busy; tree; tree = next) {
		next = tree->next;
		n += MPID_nem_glex_tree_poll(tree);
	}
	return n;
}

/* Behind those that wait (I1).  True: there are none, and it may begin. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_tree_push(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	int only = !tree->first;

	op->next = NULL;
	*tree->last = op;
	tree->last = &op->next;
	if (!only || tree->build)
		return 0;
	MPID_nem_glex_tree_enter(tree);
	return 1;
}

MPID_NEM_GLEX_HOT void MPID_nem_glex_tree_add(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	glex_ret_t ret;

	if (!MPID_nem_glex_tree_push(tree, op))
		return;
	ret = MPID_nem_glex_op_begin(tree, op);
	if (ret != GLEX_SUCCESS)
		MPID_nem_glex_tree_next(tree, ret);
}

static void MPID_nem_glex_first_error(int *first, int mpi_errno)
{
	if (unlikely(*first == MPI_SUCCESS && mpi_errno != MPI_SUCCESS))
		*first = mpi_errno;
}

/* Nothing is to be waited for here any more: for an operation without a request, or a request of the communicator. */
static int MPID_nem_glex_is_over(const struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op,
				 MPIR_Request *req)
{
	return op ? op->done : MPIR_Request_is_complete(req) || !tree->first;
}

static int MPID_nem_glex_is_mpichs(const struct MPID_nem_glex_tree *tree)
{
	return tree->first && tree->first->inner;
}

/* In its progress engine, as long as that has something to do for it, or threads want it. */
static void MPID_nem_glex_wait_by_mpich(struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op,
					MPIR_Request *req, int *mpi_errno)
{
	MPID_Progress_state state;

	MPID_Progress_start(&state);
	while ((MPIR_IS_THREADED || MPID_nem_glex_is_mpichs(tree)) && !MPID_nem_glex_is_over(tree, op, req))
		MPID_nem_glex_first_error(mpi_errno, MPID_Progress_wait(&state));
	MPID_Progress_end(&state);
}

static int MPID_nem_glex_is_there(const struct MPID_nem_glex_tree *tree)
{
	/* relaxed: the poll loads it again */
	return tree->word && __atomic_load_n(tree->word, __ATOMIC_RELAXED) == tree->value;
}

/*
 * Before it gives way: where all ranks take part and this one was the last of its processor, nobody there can bring on
 * what is waited for; if it comes while another one runs, all there have one more turn.  Half as long after each time that
 * it did not come, as where ranks compute, and others' processes may want the processor; twice after one that it did.
 */
MPID_NEM_GLEX_HOT static void MPID_nem_glex_stay(struct MPID_nem_glex_tree *tree)
{
	unsigned left = MPID_NEM_GLEX_STAYS >> tree->vain;

	if (tree->comm->remote_size != MPIR_Process.size || !glex_group_is_last_here(tree->group))
		return;
	for (; left && !MPID_nem_glex_is_there(tree); left--)
		glexch_relax();
	if (left)
		tree->vain -= tree->vain > 0;
	else
		tree->vain += MPID_NEM_GLEX_STAYS >> tree->vain > MPID_NEM_GLEX_SPINS;
}

/*
 * Until it is over; who has an operation has looked for it a while (MPID_nem_glex_tree_look).  Where ranks outnumber
 * processors, whoever has nothing to do gives way at once, unless it stays, and looks at a word alone between two turns:
 * the others have to come to their calls.  An error of MPICH's progress engine is somebody else's, and is returned when it
 * is over: a collective that one rank gives up is one that the others wait for.  Deaths, and the end of glexd, end it.
 */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_wait(struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op,
						MPIR_Request *req)
{
	int mpi_errno = MPI_SUCCESS, crowded = MPID_nem_glex.crowded;
	unsigned i, spins = crowded ? !tree->word : MPID_NEM_GLEX_SPINS;

	for (i = 0; i < spins; i++)
		if (MPID_nem_glex_tree_poll(tree) && MPID_nem_glex_is_over(tree, op, req))
			return MPI_SUCCESS;
	if (crowded && !op && tree->word)
		MPID_nem_glex_stay(tree);
	for (i = op ? MPID_NEM_GLEX_COLL_LOOKS : 1; !MPID_nem_glex_is_over(tree, op, req); i++) {
		if (MPIR_IS_THREADED || MPID_nem_glex_is_mpichs(tree)) {
			MPID_nem_glex_wait_by_mpich(tree, op, req, &mpi_errno);
			continue;
		}
		if ((crowded && !MPID_nem_glex_is_there(tree)) || i % MPID_NEM_GLEX_COLL_LOOKS == 0)
			sched_yield();
		if (i % MPID_NEM_GLEX_COLL_LOOKS == 0) {
			MPID_nem_glex.idle = 0; /* else it may give way too, which costs all a turn of everybody's */
			MPID_nem_glex_first_error(&mpi_errno, MPID_Progress_test(NULL));
			tree->word = NULL; /* it may be in memory that is not there any more */
		} else if (!crowded || !tree->word || MPID_nem_glex_is_there(tree)) {
			MPID_nem_glex_tree_poll(tree);
		}
	}
	return mpi_errno;
}

/* MPI_Wait: if the request is one of ours, it is looked for where it ends, and only then anywhere else. */
int MPIDI_GLEX_wait(MPIR_Request *req)
{
	struct MPID_nem_glex_tree *tree;

	if (!MPIDI_GLEX_coll || req->kind != MPIR_REQUEST_KIND__COLL || !req->comm)
		return MPI_SUCCESS;
	tree = req->comm->dev.ch.netmod_priv;
	return tree && tree->first ? MPID_nem_glex_wait(tree, NULL, req) : MPI_SUCCESS;
}

/* ---- trees ----------------------------------------------------------------- */

/* Until it is known what becomes of it.  An error of MPICH's progress engine is somebody else's. */
static void MPID_nem_glex_settle(const enum MPID_nem_glex_tree_state *state)
{
	MPID_Progress_state progress;

	if (*state != MPID_NEM_GLEX_TREE_BUILDING)
		return;
	MPID_Progress_start(&progress);
	while (*state == MPID_NEM_GLEX_TREE_BUILDING)
		MPID_Progress_wait(&progress);
	MPID_Progress_end(&progress);
}

int MPID_nem_glex_tree_find(MPIR_Comm *comm, int may_block, int failed, struct MPID_nem_glex_tree **tree_p)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_tree *tree;

	*tree_p = NULL;
	if (unlikely(comm->revoked)) /* MPICH has the error for it */
		goto fn_exit;
	mpi_errno = MPID_nem_glex_tree_at(comm, &tree);
	if (!tree)
		goto fn_exit;
	if (tree->state == MPID_NEM_GLEX_TREE_LATER) {
		if (++tree->calls < MPID_nem_glex.coll_after)
			goto fn_exit;
		mpi_errno = MPID_nem_glex_tree_build(tree);
		MPIR_ERR_CHECK(mpi_errno);
	}
	if (may_block) {
		MPID_nem_glex_settle(&tree->state);
		tree->is_known = 1;
	}
	if (tree->state != MPID_NEM_GLEX_TREE_NEVER || !tree->is_known)
		*tree_p = tree;
	if (unlikely(failed && *tree_p))
		MPID_nem_glex_tree_break(tree); /* a packet has no room for the flag that MPICH's messages carry */
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* As with the tree. */
MPID_NEM_GLEX_HOT int MPID_nem_glex_tree_has(struct MPID_nem_glex_tree *tree, enum MPID_nem_glex_need need,
					     int (*try)(struct MPID_nem_glex_tree *tree), int may_block, int *has_p)
{
	int mpi_errno = MPI_SUCCESS;
	struct MPID_nem_glex_longs *longs = &tree->longs[need];

	if (longs->state == MPID_NEM_GLEX_TREE_LATER)
		mpi_errno = try(tree);
	if (may_block) {
		MPID_nem_glex_settle(&longs->state);
		longs->is_known = 1;
	}
	*has_p = longs->state != MPID_NEM_GLEX_TREE_NEVER || !longs->is_known;
	return mpi_errno;
}

/* ---- what MPICH calls ------------------------------------------------------ */

/*
 * For what has begun, a while, by the one word alone.  Where ranks outnumber processors each look is a turn of theirs.  It
 * takes less than the wait below, and mostly is all: the operation is in no queue, and no message is looked for.
 */
MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_tree_look(struct MPID_nem_glex_tree *tree)
{
	unsigned left = MPID_nem_glex.crowded ? MPID_NEM_GLEX_COLL_LOOKS - 1 : MPID_NEM_GLEX_SPINS;
	glex_ret_t ret = glex_group_look(tree->group, &tree->word, &tree->value);

	if (unlikely(MPIR_IS_THREADED))
		return ret;
	if (MPID_nem_glex.crowded && ret == GLEX_NO_MP && tree->word)
		MPID_nem_glex_stay(tree);
	for (; ret == GLEX_NO_MP && tree->word && left; left--) {
		if (MPID_nem_glex.crowded && !MPID_nem_glex_is_there(tree))
			sched_yield();
		if (MPID_nem_glex_is_there(tree))
			ret = glex_group_look(tree->group, &tree->word, &tree->value);
	}
	return ret;
}

static int MPID_nem_glex_coll_wait(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	int mpi_errno = MPID_nem_glex_wait(tree, op, NULL);

	return mpi_errno == MPI_SUCCESS ? op->error : mpi_errno;
}

/* Begun, and looked for.  GLEX_NO_MP: it is under way. */
MPID_NEM_GLEX_HOT static glex_ret_t MPID_nem_glex_op_run(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	glex_ret_t ret = MPID_nem_glex_op_begin(tree, op);

	while (ret == GLEX_SUCCESS) {
		if (unlikely(op->inner))
			return GLEX_NO_MP;
		ret = MPID_nem_glex_tree_look(tree);
		if (ret != GLEX_NO_MP)
			ret = MPID_nem_glex_op_stepped(tree, op, ret);
		if (ret != GLEX_SUCCESS || MPID_nem_glex_op_advance(tree, op))
			break;
		ret = MPID_nem_glex_op_post(tree, op);
	}
	return ret;
}

/* Of what blocks: so it stands.  It is in the queue only if it has to be waited for. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_coll_stands(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op,
						       glex_ret_t ret)
{
	if (ret == GLEX_NO_MP)
		MPID_nem_glex_tree_push(tree, op);
	else
		MPID_nem_glex_op_end(tree, op, ret);
	return op->done ? op->error : MPID_nem_glex_coll_wait(tree, op);
}

/*
 * Whether as many such calls fit on the board that they come to as it takes to be faster than MPICH: of reductions and
 * gathers of more than four ranks four, by what operands take there (libglex/src/group/direct.h); up to four are faster
 * in any case.  Teams meet, so nobody runs ahead.
 */
static int MPID_nem_glex_has_row(const MPIR_Comm *comm, enum MPID_nem_glex_coll_kind kind, size_t len)
{
	int n = comm->remote_size;

	return kind != MPID_NEM_GLEX_BCAST && n <= 16 && (n <= 4 || len <= (n <= 8 ? 56 : 24));
}

MPID_NEM_GLEX_HOT int MPID_nem_glex_row_is_over(struct MPID_nem_glex_tree *tree, enum MPID_nem_glex_coll_kind kind,
						int root, size_t len)
{
	if (tree->row_kind != kind || tree->row_root != root)
		tree->row = 0;
	tree->row_kind = kind;
	tree->row_root = root;
	if (!MPID_nem_glex.coll_row || MPID_nem_glex_nearness(tree->comm) != MPID_NEM_GLEX_APART ||
	    MPID_nem_glex_shape((uint32_t)tree->comm->remote_size) != GLEX_GROUP_DIRECT)
		return 0;
	if (tree->row == MPID_nem_glex.coll_row)
		return !MPID_nem_glex_has_row(tree->comm, kind, len);
	tree->row++;
	return 0;
}

/* What is none of a row: to and from all, or long. */
static int MPID_nem_glex_ends_row(const struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op)
{
	return op->kind != tree->row_kind || op->root != tree->row_root || op->is_long;
}

MPID_NEM_GLEX_HOT int MPID_nem_glex_coll_do(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op)
{
	if (MPID_nem_glex_ends_row(tree, op))
		tree->row = 0;
	if (unlikely(op->req)) {
		MPID_nem_glex_tree_add(tree, op);
		return MPI_SUCCESS; /* op may be gone */
	}
	if (unlikely(tree->first || tree->build)) {
		MPID_nem_glex_tree_add(tree, op);
		return op->done ? op->error : MPID_nem_glex_coll_wait(tree, op);
	}
	return MPID_nem_glex_coll_stands(tree, op, MPID_nem_glex_op_run(tree, op));
}

/* As by an operation, which is only made if it does not end soon, and well. */
MPID_NEM_GLEX_HOT static int MPID_nem_glex_barrier_now(struct MPID_nem_glex_tree *tree)
{
	struct MPID_nem_glex_op here;
	glex_ret_t ret = glex_group_barrier(tree->group);

	tree->row = 0;
	MPID_nem_glex.stats.coll[MPID_NEM_GLEX_BARRIER]++;
	if (ret == GLEX_SUCCESS)
		ret = MPID_nem_glex_tree_look(tree);
	if (ret == GLEX_SUCCESS)
		return MPI_SUCCESS;
	MPID_nem_glex_op_set(&here, MPID_NEM_GLEX_BARRIER, NULL);
	return MPID_nem_glex_coll_stands(tree, &here, ret);
}

MPID_NEM_GLEX_HOT static int MPID_nem_glex_barrier(MPIR_Comm *comm, int failed, MPIR_Request **req_p)
{
	struct MPID_nem_glex_op here, *op;
	struct MPID_nem_glex_tree *tree;
	int mpi_errno = MPID_nem_glex_tree_of(comm, !req_p, failed, &tree);

	if (!tree)
		return mpi_errno == MPI_SUCCESS ? MPIDI_GLEX_PASS : mpi_errno;
	if (!req_p && tree->state == MPID_NEM_GLEX_TREE_READY && !tree->first && !tree->build && !tree->is_broken)
		return MPID_nem_glex_barrier_now(tree);
	mpi_errno = MPID_nem_glex_op_new(&here, comm, MPID_NEM_GLEX_BARRIER, req_p, &op);
	return mpi_errno == MPI_SUCCESS ? MPID_nem_glex_coll_do(tree, op) : mpi_errno;
}

/* ---- beginning and end ----------------------------------------------------- */

const struct MPIDI_GLEX_coll *MPIDI_GLEX_coll;

static const struct MPIDI_GLEX_coll MPID_nem_glex_coll = {
	.barrier = MPID_nem_glex_barrier,
	.bcast = MPID_nem_glex_bcast,
	.reduce = MPID_nem_glex_reduce,
	.gather = MPID_nem_glex_gather,
	.scatter = MPID_nem_glex_scatter,
	.scatter_counts = MPID_nem_glex_scatter_counts,
	.alltoall = MPID_nem_glex_alltoall,
	.allgatherv = MPID_nem_glex_allgatherv,
	.alltoallv = MPID_nem_glex_alltoallv,
};

/* MPICH leaves the member to us. */
static int MPID_nem_glex_comm_created(MPIR_Comm *comm, void *param)
{
	comm->dev.ch.netmod_priv = NULL;
	return MPI_SUCCESS;
}

static int MPID_nem_glex_comm_destroyed(MPIR_Comm *comm, void *param)
{
	struct MPID_nem_glex_tree *tree = comm->dev.ch.netmod_priv;

	if (!tree)
		return MPI_SUCCESS;
	MPIR_Assert(!tree->first && !tree->build); /* I2 */
	MPID_nem_glex_tree_drop(tree);
	MPL_free(tree);
	comm->dev.ch.netmod_priv = NULL;
	return MPI_SUCCESS;
}

int MPID_nem_glex_coll_init(void)
{
	int mpi_errno = MPI_SUCCESS;

	if (MPID_nem_glex.coll_where == MPID_NEM_GLEX_COLL_OFF)
		return MPI_SUCCESS;
	mpi_errno = MPIDI_CH3U_Comm_register_create_hook(MPID_nem_glex_comm_created, NULL);
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPIDI_CH3U_Comm_register_destroy_hook(MPID_nem_glex_comm_destroyed, NULL);
	MPIR_ERR_CHECK(mpi_errno);
	MPIDI_GLEX_coll = &MPID_nem_glex_coll;
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

void MPID_nem_glex_coll_finalize(void)
{
	struct MPID_nem_glex_op *op;

	MPIDI_GLEX_coll = NULL;
	MPID_nem_glex_trees_end();
	while ((op = MPID_nem_glex.coll_ops)) {
		MPID_nem_glex.coll_ops = op->next;
		MPL_free(op);
	}
}
