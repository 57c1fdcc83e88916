/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_coll.h - what the queue of collectives (glex_coll.c) and the making of trees (glex_tree.c) know of each other.
 */
#ifndef MPID_NEM_GLEX_COLL_H
#define MPID_NEM_GLEX_COLL_H

#include "glex_impl.h"
#include "glex_release.h"

enum MPID_nem_glex_tree_state {
	MPID_NEM_GLEX_TREE_LATER,
	MPID_NEM_GLEX_TREE_BUILDING,
	MPID_NEM_GLEX_TREE_READY,
	MPID_NEM_GLEX_TREE_NEVER,
};

/*
 * Ranks that take turns on a processor find little in its caches: what each operation passes through lies together,
 * and what each has comes first in it.
 */
#define MPID_NEM_GLEX_HOT ATTRIBUTE((hot))

#define MPID_NEM_GLEX_MP_BYTES 112 /* of a packet */

/* Longer ones are faster as a message of MPICH's, which is copied once. */
#define MPID_NEM_GLEX_BLOCK_OF_TWO (16 << 10)

struct MPID_nem_glex_op {
	struct MPID_nem_glex_op *next;
	MPIR_Request *req;   /* NULL: it is on the stack of who waits for done, or the tree's own */
	MPIR_Request *inner; /* of MPICH, which does it */
	enum MPID_nem_glex_coll_kind kind;
	int root;
	size_t len, at, part; /* bytes or units: all of them, those that are done, those begun */
	unsigned char *to;    /* NULL: the result is not wanted */
	const unsigned char *from;
	unsigned char *packed; /* of a type with gaps, the bytes: to and from are there */
	int is_long;	       /* a broadcast that is fetched from the root's buffer; any other: by a stage */
	int is_denied;	       /* of the tree's own: something could not be fetched */
	int calls;	       /* of a reduction: MPICH's function combines */
	int done;
	int error;
	struct MPID_nem_glex_operand operand;
	MPI_Datatype type;
	MPI_Op mpi_op;
	union {
		union glex_coll_data_loc units[GLEX_COLL_REDUCE_MAX_DATA_UNITS];
		unsigned char part_of_it[GLEX_GROUP_GATHER_MAX]; /* what this rank has to give to a short gather */
		unsigned char blocks[GLEX_GROUP_BY_MAX(2)];	 /* of all, of which this rank gets one */
		struct {
			struct glex_group_block sent[GLEX_GROUP_GATHER_MEMBERS], into[GLEX_GROUP_GATHER_MEMBERS];
			int is_blind; /* of others' blocks it is not known how long they are */
			int is_in_place;
		};
	};
	size_t packed_len;
	void *buf;
	MPI_Aint count;
};

struct MPID_nem_glex_build;

/* What long ones need: broadcasts that all reach each other's buffers, all others a stage. */
enum MPID_nem_glex_need { MPID_NEM_GLEX_NEEDS_BUFFERS, MPID_NEM_GLEX_NEEDS_STAGE, MPID_NEM_GLEX_NEEDS };

/* is_known: as of the tree */
struct MPID_nem_glex_longs {
	enum MPID_nem_glex_tree_state state;
	int is_known;
};

struct MPID_nem_glex_tree {
	struct MPID_nem_glex_tree *next; /* of those with operations, or that are being made */
	enum MPID_nem_glex_tree_state state;
	uint32_t calls;
	int rank, is_broken;
	/* Of the last short one with a root; and how many like it in a row the NICs have run, up to GLEX_MPI_COLL_ROW */
	enum MPID_nem_glex_coll_kind row_kind;
	int row_root;
	uint32_t row;
	uint32_t skip, skips; /* so many exchanges are MPICH's yet; and were after the last that was too long */
	/* A call that blocks has come since it was begun, so all know what became of it: of the tree, of longs */
	int is_known;
	struct MPID_nem_glex_longs longs[MPID_NEM_GLEX_NEEDS];
	MPIR_Comm *comm; /* whose it is, and goes with */
	glex_group_t group;
	struct MPID_nem_glex_build *build; /* while it is made */
	struct MPID_nem_glex_op *first, **last;
	/* As its last look at the group left them: another finds nothing before *word is value; NULL: who knows */
	const uint64_t *word;
	uint64_t value;
	unsigned vain; /* how often this rank stayed on its processor in vain, less how often not, within limits */
};

/* ---- glex_coll.c ----------------------------------------------------------- */

/* An operation of a tree's own; and into the queue, behind those that wait. */
int MPID_nem_glex_coll_own(struct MPID_nem_glex_op **op_p, enum MPID_nem_glex_coll_kind kind);
void MPID_nem_glex_tree_add(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op);

/* With a request of the communicator. */
int MPID_nem_glex_op_request(MPIR_Comm *comm, enum MPID_nem_glex_coll_kind kind, MPIR_Request **req_p,
			     struct MPID_nem_glex_op **op_p);

static inline void MPID_nem_glex_op_set(struct MPID_nem_glex_op *op, enum MPID_nem_glex_coll_kind kind,
					MPIR_Request *req)
{
	op->req = req;
	op->inner = NULL;
	op->kind = kind;
	op->root = MPIDI_GLEX_ALL;
	op->len = op->at = op->part = 0;
	op->to = NULL;
	op->from = NULL;
	op->is_long = 0;
	op->is_denied = 0;
	op->packed = NULL;
	op->done = 0;
	op->error = MPI_SUCCESS;
}

/* As a communicator's call makes one: with a request, unless it blocks; then it is *here. */
static inline int MPID_nem_glex_op_new(struct MPID_nem_glex_op *here, MPIR_Comm *comm,
				       enum MPID_nem_glex_coll_kind kind, MPIR_Request **req_p,
				       struct MPID_nem_glex_op **op_p)
{
	if (unlikely(req_p))
		return MPID_nem_glex_op_request(comm, kind, req_p, op_p);
	MPID_nem_glex_op_set(here, kind, NULL);
	*op_p = here;
	return MPI_SUCCESS;
}

/* packed, as long as this, is to be, or was, so many of that type at buf, which is kept; and packs what is sent. */
void MPID_nem_glex_op_set_packed(struct MPID_nem_glex_op *op, unsigned char *packed, size_t len, void *buf,
				 MPI_Aint count, MPI_Datatype type);
int MPID_nem_glex_coll_pack(const void *buf, MPI_Aint count, MPI_Datatype type, void *packed, MPI_Aint len);
int MPID_nem_glex_coll_unpack(const void *packed, MPI_Aint len, void *buf, MPI_Aint count, MPI_Datatype type);

/*
 * *tree_p becomes NULL if the communicator has none, and so MPICH does it.  find: where that is not known yet, or not
 * well.
 */
int MPID_nem_glex_tree_find(MPIR_Comm *comm, int may_block, int failed, struct MPID_nem_glex_tree **tree_p);

static inline int MPID_nem_glex_tree_of(MPIR_Comm *comm, int may_block, int failed, struct MPID_nem_glex_tree **tree_p)
{
	struct MPID_nem_glex_tree *tree = comm->dev.ch.netmod_priv;

	if (unlikely(!tree || tree->state != MPID_NEM_GLEX_TREE_READY || !tree->is_known || comm->revoked || failed))
		return MPID_nem_glex_tree_find(comm, may_block, failed, tree_p);
	*tree_p = tree;
	return MPI_SUCCESS;
}

/*
 * GLEX_MPI_COLL_ROW.  Who is not waited for, the root of a broadcast or who sends to one, fills the boards of those he
 * sends to, and then waits for their turns; MPICH's messages have room for hundreds.  (Not those in shared memory, where
 * a sender without room is given one place in each turn.)  All ranks count alike, each short call with a root once, of so
 * many bytes of a rank, and anew behind whatever else the NICs run.  Not 0: this one is MPICH's.
 */
int MPID_nem_glex_row_is_over(struct MPID_nem_glex_tree *tree, enum MPID_nem_glex_coll_kind kind, int root, size_t len);

/* Begins it, or has it wait for its turn; waits for what blocks. */
int MPID_nem_glex_coll_do(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op);

/* Whether what long ones need is there; try begins to find out. */
int MPID_nem_glex_tree_has(struct MPID_nem_glex_tree *tree, enum MPID_nem_glex_need need,
			   int (*try)(struct MPID_nem_glex_tree *tree), int may_block, int *has_p);

/* On the list of those that are polled; a tree that has been made, or not, begins what waits for that. */
void MPID_nem_glex_tree_enter(struct MPID_nem_glex_tree *tree);
void MPID_nem_glex_tree_go(struct MPID_nem_glex_tree *tree);

/* ---- glex_bcast.c ---------------------------------------------------------- */

/* As struct MPIDI_GLEX_coll has it. */
int MPID_nem_glex_bcast(void *buf, MPI_Aint count, MPI_Datatype type, int root, MPIR_Comm *comm, int failed,
			MPIR_Request **req_p);

/* ---- glex_exchange.c ------------------------------------------------------- */

/* As struct MPIDI_GLEX_coll has them. */
int MPID_nem_glex_allgatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			     const MPI_Aint counts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPIR_Comm *comm,
			     int failed, MPIR_Request **req_p);
int MPID_nem_glex_alltoallv(const void *sendbuf, const MPI_Aint scounts[], const MPI_Aint sdispls[],
			    MPI_Datatype sendtype, void *recvbuf, const MPI_Aint rcounts[], const MPI_Aint rdispls[],
			    MPI_Datatype recvtype, MPIR_Comm *comm, int failed, MPIR_Request **req_p);

/*
 * Begins it; puts it into a schedule of MPICH's; unpacks what n ranks have sent.  skips: it is not even begun, as those before
 * it were too long; learn: whether that one was.
 */
glex_ret_t MPID_nem_glex_exchange_post(const struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op);
int MPID_nem_glex_exchange_sched(struct MPID_nem_glex_op *op, MPIR_Comm *comm, MPIR_Sched_t sched);
int MPID_nem_glex_exchange_unpack(struct MPID_nem_glex_op *op, int n);
int MPID_nem_glex_exchange_skips(struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op);
void MPID_nem_glex_exchange_learn(struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op, int too_long);

/* ---- glex_gather.c --------------------------------------------------------- */

/* As struct MPIDI_GLEX_coll has them. */
int MPID_nem_glex_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			   MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm *comm, int failed,
			   MPIR_Request **req_p);
int MPID_nem_glex_gather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
			 MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm *comm, int failed,
			 MPIR_Request **req_p);

/* ---- glex_pass.c ----------------------------------------------------------- */

/* All of it, by MPICH: op->inner. */
int MPID_nem_glex_op_pass(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op);

/* ---- glex_reduce.c --------------------------------------------------------- */

/* As struct MPIDI_GLEX_coll has them. */
int MPID_nem_glex_scatter(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op mpi_op,
			  MPIR_Comm *comm, int failed, MPIR_Request **req_p);
int MPID_nem_glex_scatter_counts(const void *sendbuf, void *recvbuf, const MPI_Aint counts[], MPI_Datatype type,
				 MPI_Op mpi_op, MPIR_Comm *comm, int failed, MPIR_Request **req_p);
int MPID_nem_glex_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op mpi_op, int root,
			 MPIR_Comm *comm, int failed, MPIR_Request **req_p);

/* The numbers that one packet has room for; begins the next packet; puts its result where it belongs; all is over. */
size_t MPID_nem_glex_reduce_most(const struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op);
glex_ret_t MPID_nem_glex_reduce_post(const struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op);
void MPID_nem_glex_reduce_store(const struct MPID_nem_glex_tree *tree, const struct MPID_nem_glex_op *op);
void MPID_nem_glex_reduce_end(const struct MPID_nem_glex_op *op);

/* ---- glex_stage.c ---------------------------------------------------------- */

/* Whether so many bytes of each, or for each, together would go by a stage, if there is one. */
int MPID_nem_glex_is_staged(const MPIR_Comm *comm, uint64_t len);

/* Whether it has one; and as MPID_nem_glex_tree_of, *tree_p becoming NULL, too, if one is wanted and there is none. */
int MPID_nem_glex_tree_has_stage(struct MPID_nem_glex_tree *tree, int may_block, int *has_p);
int MPID_nem_glex_stage_of(MPIR_Comm *comm, int is_wanted, int may_block, int failed,
			   struct MPID_nem_glex_tree **tree_p);

/* What comes of a stage that is being made; all of that has ended. */
glex_ret_t MPID_nem_glex_stage_stepped(struct MPID_nem_glex_op *op, glex_ret_t ret);
void MPID_nem_glex_stage_end(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op, glex_ret_t ret);

/* ---- glex_tree.c ----------------------------------------------------------- */

/* What the group of so many is to be. */
enum glex_group_shape MPID_nem_glex_shape(uint32_t n);

void MPID_nem_glex_tree_drop(struct MPID_nem_glex_tree *tree);

/* No communicator has one any more. */
void MPID_nem_glex_trees_end(void);

/* That of the communicator, NULL if it can have none. */
int MPID_nem_glex_tree_at(MPIR_Comm *comm, struct MPID_nem_glex_tree **tree_p);

/* For all members: what begins ends with an error, and so does what has begun, by its group's wait. */
void MPID_nem_glex_tree_break(struct MPID_nem_glex_tree *tree);

/* Begins to make it; and looks whether it has been made.  Returns whether anything happened. */
int MPID_nem_glex_tree_build(struct MPID_nem_glex_tree *tree);
int MPID_nem_glex_build_poll(struct MPID_nem_glex_tree *tree);

/* Begins to find out whether what is long can be fetched; begins a step of that, ends one, and all of it. */
int MPID_nem_glex_longs_try(struct MPID_nem_glex_tree *tree);
glex_ret_t MPID_nem_glex_longs_step(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op);
glex_ret_t MPID_nem_glex_longs_stepped(struct MPID_nem_glex_op *op, glex_ret_t ret);
void MPID_nem_glex_longs_end(struct MPID_nem_glex_tree *tree, struct MPID_nem_glex_op *op, glex_ret_t ret);

/* What has been found out of what long ones need; ret: not GLEX_SUCCESS: nothing, and the tree is broken. */
void MPID_nem_glex_longs_found(struct MPID_nem_glex_tree *tree, enum MPID_nem_glex_need need, glex_ret_t ret, int all);

/* A schedule for what MPICH is to do for a tree: of one communicator's, each begins when the one before has ended. */
int MPID_nem_glex_sched_new(MPIR_Sched_t *sched_p);

#endif /* MPID_NEM_GLEX_COLL_H */
