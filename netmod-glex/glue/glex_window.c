/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_window.c - one-sided operations at once: by the NIC, into the window and out of it, without its owner.
 *
 *      MPI_Win_create, MPI_Win_allocate    each registers its window, and all tell each other where it is
 *      MPI_Put, MPI_Get                    before CH3 makes an operation of it: PUT or GET, and it is over
 *      MPI_Accumulate, MPI_Fetch_and_op,   the same, behind a lock in the window owner's memory
 *      MPI_Compare_and_swap ...
 *      MPI_Win_flush, MPI_Win_unlock ...   CH3 finds that nothing is missing, and asks nobody
 *      MPI_Win_free                        all have met: the region goes
 *
 * Where install-into.sh has the lines that ask here, over any netmod.  What cannot go so is CH3's to do, by packets
 * that the target takes: data that is not contiguous on both sides (of sums: not of a basic type), windows that nobody
 * can map, endpoints whose requests others execute, and what comes before the epoch has begun at the target.
 *
 * I1  CH3 knows of no operation that went so.  So it has to have its turn at once, when the epoch has begun at
 *     the target (its lock is granted, its post or fence has come), and to be over when the call returns.
 * I2  All members take part in telling, whatever they have to tell, also those whose memory is MPICH's own since they
 *     share it: so no setting need be alike.
 * I3  Memory of MPI_Win_allocate is of the channel, for that is mapped by all.  What a program brings is adopted up to
 *     GLEX_MPI_RMA_ADOPT: that takes time, and no private memory is left of it.
 * I4  A program that waits for something in a window by reading it again and again need call nothing else.  So one
 *     operation in MPID_NEM_GLEX_RMA_ROUND looks what has come.
 * I5  What reads comes after what was written before it, to whomever: processors let loads pass stores.
 * I6  Sums and exchanges are atomic, and in the order of their calls.  Each is made by whoever holds the window's lock,
 *     its owner for what comes by packets and for himself; one that goes straight there has to wait for nothing of
 *     ours that is still on its way.  Where members share memory, MPICH has a lock of its own, and they do not.
 */
#include "glex_impl.h"

#include "glex_release.h"
#include "mpid_rma_types.h"
#include "mpidrma.h"

#define MPID_NEM_GLEX_ADOPTED_MAX 16 /* windows of the program's memory: hundreds would take seconds */
#define MPID_NEM_GLEX_RMA_ROUND	  32
#define MPID_NEM_GLEX_GRANT_POKES 8 /* rounds that an operation waits for its epoch: an answer takes no longer, */
#define MPID_NEM_GLEX_GRANT_LOOKS 2 /* but where ranks outnumber processors, which is worth a look */

struct MPID_nem_glex_window {
	struct MPID_nem_glex_window *next;
	const MPIR_Win *win;	  /* NULL: memory of one that is being made, or freed */
	void *mem;		  /* the channel's; NULL: the program's */
	struct glexch_window *of; /* by rank; NULL: there is no other rank */
	int members;
	int rank;  /* ours */
	int apart; /* no two of them share memory: MPICH keeps no others from what it does there */
};

static struct MPID_nem_glex_window *MPID_nem_glex_windows;

/* The window; the one that was asked for last is the first. */
static struct MPID_nem_glex_window *MPID_nem_glex_window_find(const MPIR_Win *win)
{
	struct MPID_nem_glex_window **at = &MPID_nem_glex_windows, *window = *at;

	if (likely(window && window->win == win))
		return window;
	while (window && window->win != win) {
		at = &window->next;
		window = *at;
	}
	if (window) {
		*at = window->next;
		window->next = MPID_nem_glex_windows;
		MPID_nem_glex_windows = window;
	}
	return window;
}

static struct MPID_nem_glex_window *MPID_nem_glex_window_new(const MPIR_Win *win, void *mem)
{
	struct MPID_nem_glex_window *window = MPL_calloc(1, sizeof(*window), MPL_MEM_RMA);

	if (window) {
		window->win = win;
		window->mem = mem;
		window->next = MPID_nem_glex_windows;
		MPID_nem_glex_windows = window;
	}
	return window;
}

/* Nothing is known of the others any more. */
static void MPID_nem_glex_window_forget(struct MPID_nem_glex_window *window)
{
	int i;

	for (i = 0; i < window->members; i++)
		glexch_window_forget(&window->of[i]);
	MPL_free(window->of);
	window->of = NULL;
	window->members = 0;
}

static void MPID_nem_glex_window_drop(struct MPID_nem_glex_window *window)
{
	struct MPID_nem_glex_window **at = &MPID_nem_glex_windows;

	while (*at != window)
		at = &(*at)->next;
	*at = window->next;
	MPID_nem_glex_window_forget(window);
	MPL_free(window);
}

/* That of win, if others are in it; NULL: nothing goes straight there. */
static inline struct MPID_nem_glex_window *MPID_nem_glex_window_among(const MPIR_Win *win)
{
	struct MPID_nem_glex_window *window = MPID_nem_glex_window_find(win);

	return window && window->members ? window : NULL;
}

/* ---- making and freeing --------------------------------------------------- */

/* Memory for a window of MPI_Win_allocate.  NULL: CH3 has some. */
void *MPIDI_GLEX_window_memory(MPI_Aint size);
void *MPIDI_GLEX_window_memory(MPI_Aint size)
{
	void *mem;

	if (!MPID_nem_glex.ch || !MPID_nem_glex.rma_direct)
		return NULL;
	mem = glexch_alloc(MPID_nem_glex.ch, (uint64_t)size);
	if (mem && !MPID_nem_glex_window_new(NULL, mem)) {
		glexch_free(MPID_nem_glex.ch, mem);
		mem = NULL;
	}
	return mem;
}

static struct MPID_nem_glex_window *MPID_nem_glex_window_of_memory(const void *mem)
{
	struct MPID_nem_glex_window *window = MPID_nem_glex_windows;

	while (window && (!mem || window->mem != mem))
		window = window->next;
	return window;
}

/* What we have to tell of ours: as it is, that others have to ask. */
static void MPID_nem_glex_window_show(struct MPID_nem_glex_window *window, void *mem, MPI_Aint size)
{
	struct glexch_window *mine = &window->of[window->rank];

	if (!MPID_nem_glex.rma_direct || !mem || size <= 0 ||
	    (!window->mem && ((uint64_t)size > MPID_nem_glex.rma_adopt || /* I3 */
			      MPID_nem_glex.rma_adopted >= MPID_NEM_GLEX_ADOPTED_MAX)))
		return;
	glexch_window_open(MPID_nem_glex.ch, mem, (uint64_t)size, mine);
	MPID_nem_glex.rma_adopted += !window->mem && mine->len;
}

/* All have met, or it could not be made: nobody reaches ours any more. */
void MPIDI_GLEX_window_over(MPIR_Win *win);
void MPIDI_GLEX_window_over(MPIR_Win *win)
{
	struct MPID_nem_glex_window *window = MPID_nem_glex_window_find(win);

	if (!window)
		return;
	if (window->members) {
		MPID_nem_glex.rma_adopted -= !window->mem && window->of[window->rank].len;
		glexch_window_close(MPID_nem_glex.ch, &window->of[window->rank]);
	}
	if (!window->mem) {
		MPID_nem_glex_window_drop(window);
	} else {
		MPID_nem_glex_window_forget(window);
		window->win = NULL;
	}
}

/* What is kept of a window that has just been made: perhaps with its memory.  NULL: there is no room. */
static struct MPID_nem_glex_window *MPID_nem_glex_window_begin(const MPIR_Win *win, const void *mem)
{
	struct MPID_nem_glex_window *window = NULL;

	if (win->create_flavor == MPI_WIN_FLAVOR_ALLOCATE) /* others may be over the memory of one of those */
		window = MPID_nem_glex_window_of_memory(mem);
	if (!window)
		return MPID_nem_glex_window_new(win, NULL);
	window->win = win;
	return window;
}

/* CH3 has made a window of size bytes at mem: all tell each other where theirs is. */
int MPIDI_GLEX_window(MPIR_Win *win, void *mem, MPI_Aint size);
int MPIDI_GLEX_window(MPIR_Win *win, void *mem, MPI_Aint size)
{
	int mpi_errno = MPI_SUCCESS, i, n = win->comm_ptr->local_size;
	struct MPID_nem_glex_window *window;
	uint32_t born;

	if (!MPID_nem_glex.ch)
		goto fn_exit;
	MPIDI_GLEX_window_over(win); /* another one there that CH3 could not make in the end */
	window = MPID_nem_glex_window_begin(win, mem);
	MPIR_ERR_CHKANDJUMP(!window, mpi_errno, MPI_ERR_OTHER, "**nomem");
	if (n == 1)
		goto fn_exit;
	window->of = MPL_calloc((size_t)n, sizeof(*window->of), MPL_MEM_RMA);
	MPIR_ERR_CHKANDJUMP(!window->of, mpi_errno, MPI_ERR_OTHER, "**nomem");
	window->members = n;
	window->rank = win->comm_ptr->rank;
	window->apart = MPID_nem_glex_nearness(win->comm_ptr) == MPID_NEM_GLEX_APART;
	born = glexch_deaths(MPID_nem_glex.ch);
	MPID_nem_glex_window_show(window, mem, size);
	mpi_errno = MPID_nem_glex_allgather(window->of, (int)sizeof(*window->of), win->comm_ptr);
	MPIR_ERR_CHECK(mpi_errno);
	for (i = 0; i < n; i++)
		window->of[i].born = born;
fn_exit:
	return mpi_errno;
fn_fail:
	MPIDI_GLEX_window_over(win);
	goto fn_exit;
}

/* 0: it is CH3's to free. */
int MPIDI_GLEX_window_free(void *mem);
int MPIDI_GLEX_window_free(void *mem)
{
	struct MPID_nem_glex_window *window = MPID_nem_glex_window_of_memory(mem);

	if (!window)
		return 0;
	MPID_nem_glex_window_drop(window);
	glexch_free(MPID_nem_glex.ch, mem);
	return 1;
}

/* At the end; the channel's memory goes with the channel. */
void MPID_nem_glex_windows_forget(void)
{
	while (MPID_nem_glex_windows)
		MPID_nem_glex_window_drop(MPID_nem_glex_windows);
}

/* ---- operations ------------------------------------------------------------ */

enum MPID_nem_glex_epoch {
	MPID_NEM_GLEX_EPOCH_LATER, /* CH3 knows */
	MPID_NEM_GLEX_EPOCH_ASKED, /* the target may have answered */
	MPID_NEM_GLEX_EPOCH_BEGUN
};

/* I1 */
static inline enum MPID_nem_glex_epoch MPID_nem_glex_epoch(MPIR_Win *win, int rank)
{
	MPIDI_RMA_Target_t *target = NULL;

	switch (win->states.access_state) {
	case MPIDI_RMA_FENCE_GRANTED:
	case MPIDI_RMA_PSCW_GRANTED:
	case MPIDI_RMA_LOCK_ALL_GRANTED:
		return MPID_NEM_GLEX_EPOCH_BEGUN;
	case MPIDI_RMA_FENCE_ISSUED:
	case MPIDI_RMA_PSCW_ISSUED:
	case MPIDI_RMA_LOCK_ALL_ISSUED:
		return MPID_NEM_GLEX_EPOCH_ASKED;
	case MPIDI_RMA_PER_TARGET:
	case MPIDI_RMA_LOCK_ALL_CALLED:
		MPIDI_CH3I_Win_find_target(win, rank, &target);
		if (target && target->access_state == MPIDI_RMA_LOCK_GRANTED)
			return MPID_NEM_GLEX_EPOCH_BEGUN;
		return target && target->access_state == MPIDI_RMA_LOCK_ISSUED ? MPID_NEM_GLEX_EPOCH_ASKED
									       : MPID_NEM_GLEX_EPOCH_LATER;
	default:
		return MPID_NEM_GLEX_EPOCH_LATER;
	}
}

static __attribute__((noinline)) int MPID_nem_glex_epoch_await(MPIR_Win *win, int rank)
{
	int pokes = MPID_nem_glex.crowded ? MPID_NEM_GLEX_GRANT_LOOKS : MPID_NEM_GLEX_GRANT_POKES;
	enum MPID_nem_glex_epoch epoch = MPID_nem_glex_epoch(win, rank);

	while (epoch == MPID_NEM_GLEX_EPOCH_ASKED && pokes-- > 0 && poke_progress_engine() == MPI_SUCCESS)
		epoch = MPID_nem_glex_epoch(win, rank);
	return epoch == MPID_NEM_GLEX_EPOCH_BEGUN;
}

static inline int MPID_nem_glex_epoch_begins(MPIR_Win *win, int rank)
{
	return likely(MPID_nem_glex_epoch(win, rank) == MPID_NEM_GLEX_EPOCH_BEGUN) ||
	       MPID_nem_glex_epoch_await(win, rank);
}

/* Bytes in one piece: where they begin behind what the program names, and how many; 0: they are not. */
static inline uint64_t MPID_nem_glex_window_piece(MPI_Aint count, MPI_Datatype type, MPI_Aint *lb_p)
{
	MPIR_Datatype *dtp;
	intptr_t len;
	int contig;

	MPIDI_Datatype_get_info(count, type, contig, len, dtp, *lb_p);
	return contig ? (uint64_t)len : 0;
}

struct MPID_nem_glex_span {
	struct glexch_window *peer;
	uint64_t offset;
	uint64_t len;
	char *buf;
};

/* 0: CH3 has to. */
static inline int MPID_nem_glex_window_span(MPIR_Win *win, const void *buf, MPI_Aint count, MPI_Datatype type, int rank,
					    MPI_Aint disp, MPI_Aint target_count, MPI_Datatype target_type,
					    struct MPID_nem_glex_span *span)
{
	const struct MPID_nem_glex_window *window = MPID_nem_glex_window_among(win);
	MPI_Aint lb, target_lb;

	if (!window || !window->of[rank].len)
		return 0;
	span->peer = &window->of[rank];
	span->len = MPID_nem_glex_window_piece(count, type, &lb);
	if (!span->len || MPID_nem_glex_window_piece(target_count, target_type, &target_lb) != span->len)
		return 0;
	span->buf = (char *)(uintptr_t)buf + lb;
	span->offset = (uint64_t)(win->basic_info_table[rank].disp_unit * disp + target_lb);
	return MPID_nem_glex_epoch_begins(win, rank);
}

/* I5 */
static inline void MPID_nem_glex_window_settle(void)
{
	if (MPID_nem_glex.rma_put)
		MPL_atomic_read_write_barrier();
	MPID_nem_glex.rma_put = 0;
}

/* I4 */
static inline int MPID_nem_glex_window_done(MPIR_Request *ureq)
{
	if (ureq)
		MPID_nem_glex_note(MPID_Request_complete(ureq));
	if (++MPID_nem_glex.rma_done % MPID_NEM_GLEX_RMA_ROUND == 0)
		MPID_nem_glex_note(poke_progress_engine());
	return 1;
}

/* Of what was sent there. */
static int MPID_nem_glex_window_misses_nothing(const MPIDI_RMA_Target_t *target)
{
	return !target->num_ops_flush_not_issued && !MPID_nem_glex_missing(target);
}

/* A call is about to complete what was done to the target: 1, nothing is missing. */
int MPIDI_GLEX_flushed(const MPIR_Win *win, const MPIDI_RMA_Target_t *target);
int MPIDI_GLEX_flushed(const MPIR_Win *win, const MPIDI_RMA_Target_t *target)
{
	return win->states.access_state != MPIDI_RMA_LOCK_ALL_ISSUED &&
	       target->access_state == MPIDI_RMA_LOCK_GRANTED && MPID_nem_glex_window_misses_nothing(target);
}

/* 1: it is done. */
int MPIDI_GLEX_put(const void *buf, MPI_Aint count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Aint target_count,
		   MPI_Datatype target_type, MPIR_Win *win, MPIR_Request *ureq);
int MPIDI_GLEX_put(const void *buf, MPI_Aint count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Aint target_count,
		   MPI_Datatype target_type, MPIR_Win *win, MPIR_Request *ureq)
{
	struct MPID_nem_glex_span span;

	if (!MPID_nem_glex_window_span(win, buf, count, type, rank, disp, target_count, target_type, &span) ||
	    !glexch_window_put(MPID_nem_glex.ch, span.peer, span.offset, span.buf, span.len))
		return 0;
	MPID_nem_glex.rma_put = 1;
	MPID_nem_glex.stats.put[glexch_size_class(span.len)]++;
	MPID_nem_glex.stats.put_bytes += span.len;
	return MPID_nem_glex_window_done(ureq);
}

int MPIDI_GLEX_get(void *buf, MPI_Aint count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Aint target_count,
		   MPI_Datatype target_type, MPIR_Win *win, MPIR_Request *ureq);
int MPIDI_GLEX_get(void *buf, MPI_Aint count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Aint target_count,
		   MPI_Datatype target_type, MPIR_Win *win, MPIR_Request *ureq)
{
	struct MPID_nem_glex_span span;

	if (!MPID_nem_glex_window_span(win, buf, count, type, rank, disp, target_count, target_type, &span))
		return 0;
	MPID_nem_glex_window_settle();
	if (!glexch_window_get(MPID_nem_glex.ch, span.peer, span.offset, span.buf, span.len))
		return 0;
	MPID_nem_glex.stats.got[glexch_size_class(span.len)]++;
	MPID_nem_glex.stats.got_bytes += span.len;
	return MPID_nem_glex_window_done(ureq);
}

/* ---- what also reads what it writes ----------------------------------------- */

/* I6.  1: what was sent there before is over. */
static int MPID_nem_glex_window_is_next(MPIR_Win *win, int rank)
{
	MPIDI_RMA_Target_t *target = NULL;

	MPIDI_CH3I_Win_find_target(win, rank, &target);
	return !target || MPID_nem_glex_window_misses_nothing(target);
}

/* Where count elements of the target are, to be operated on; NULL: CH3 has to.  *len_p: their bytes. */
static void *MPID_nem_glex_window_hold(MPIR_Win *win, int rank, MPI_Aint disp, MPI_Aint count, MPI_Datatype type,
				       size_t *len_p)
{
	const struct MPID_nem_glex_window *window = MPID_nem_glex_window_among(win);

	if (!window || !window->apart || !window->of[rank].len || count <= 0 || !HANDLE_IS_BUILTIN(type) ||
	    !MPID_nem_glex_epoch_begins(win, rank) || !MPID_nem_glex_window_is_next(win, rank))
		return NULL;
	MPID_nem_glex_window_settle();
	*len_p = (size_t)count * (size_t)MPIR_Datatype_get_basic_size(type);
	return glexch_window_hold(MPID_nem_glex.ch, &window->of[rank],
				  (uint64_t)(win->basic_info_table[rank].disp_unit * disp), *len_p);
}

static int MPID_nem_glex_window_released(size_t len, MPIR_Request *ureq)
{
	glexch_window_release(MPID_nem_glex.ch);
	MPID_nem_glex.rma_put = 1;
	MPID_nem_glex.stats.summed[glexch_size_class(len)]++;
	MPID_nem_glex.stats.summed_bytes += len;
	return MPID_nem_glex_window_done(ureq);
}

/* MPI_Accumulate (result NULL), MPI_Get_accumulate and their like.  1: it is done, or has the error. */
int MPIDI_GLEX_accumulate(const void *buf, MPI_Aint count, MPI_Datatype type, void *result, MPI_Aint result_count,
			  MPI_Datatype result_type, int rank, MPI_Aint disp, MPI_Aint target_count,
			  MPI_Datatype target_type, MPI_Op op, MPIR_Win *win, MPIR_Request *ureq, int *mpi_errno_p);
int MPIDI_GLEX_accumulate(const void *buf, MPI_Aint count, MPI_Datatype type, void *result, MPI_Aint result_count,
			  MPI_Datatype result_type, int rank, MPI_Aint disp, MPI_Aint target_count,
			  MPI_Datatype target_type, MPI_Op op, MPIR_Win *win, MPIR_Request *ureq, int *mpi_errno_p)
{
	size_t len;
	void *at;

	if (!HANDLE_IS_BUILTIN(op) || (op != MPI_NO_OP && (type != target_type || count != target_count)) ||
	    (result && (result_type != target_type || result_count != target_count)))
		return 0;
	at = MPID_nem_glex_window_hold(win, rank, disp, target_count, target_type, &len);
	if (!at)
		return 0;
	if (result)
		memcpy(result, at, len);
	if (op != MPI_NO_OP)
		*mpi_errno_p = do_accumulate_op((void *)(uintptr_t)buf, count, type, at, target_count, target_type, 0,
						op, MPIDI_RMA_ACC_SRCBUF_DEFAULT);
	return MPID_nem_glex_window_released(len, ureq);
}

int MPIDI_GLEX_compare_and_swap(const void *buf, const void *compare, void *result, MPI_Datatype type, int rank,
				MPI_Aint disp, MPIR_Win *win);
int MPIDI_GLEX_compare_and_swap(const void *buf, const void *compare, void *result, MPI_Datatype type, int rank,
				MPI_Aint disp, MPIR_Win *win)
{
	size_t len;
	void *at = MPID_nem_glex_window_hold(win, rank, disp, 1, type, &len);

	if (!at)
		return 0;
	memcpy(result, at, len);
	if (MPIR_Compare_equal(compare, at, type))
		memcpy(at, buf, len);
	return MPID_nem_glex_window_released(len, NULL);
}

/* CH3 operates on our window, for others or for this process. */
void MPIDI_GLEX_hold(MPIR_Win *win);
void MPIDI_GLEX_hold(MPIR_Win *win)
{
	struct MPID_nem_glex_window *window = MPID_nem_glex_window_among(win);

	if (window && window->apart)
		glexch_window_hold_own(MPID_nem_glex.ch, &window->of[window->rank]);
}

void MPIDI_GLEX_release(MPIR_Win *win);
void MPIDI_GLEX_release(MPIR_Win *win)
{
	const struct MPID_nem_glex_window *window = MPID_nem_glex_window_among(win);

	if (window && window->apart)
		glexch_window_release_own(MPID_nem_glex.ch, &window->of[window->rank]);
}
