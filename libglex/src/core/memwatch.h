/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memwatch.h - what happens to the process's memory, and who wants to know.
 *
 *   glex_mem_invalidate, glex_free --+                            +--> subscribers: called before and after
 *   libglex-memhooks.so -------------+--> glexi_memwatch_begin ---+
 *   userfaultfd's thread ------------+    glexi_memwatch_end      +--> the log: a ring of ranges, read later
 *
 * The registration cache reads the log: a lookup compares one word, the log's
 * length, with what it has seen.  Who must act at once, or before the kernel
 * does, subscribes.
 *
 * Changes are reported from anywhere: by any thread, inside malloc and free, in
 * a signal handler, by a thread of the library's own.  So nothing in here takes
 * a lock, allocates, or waits for anybody who might.
 *
 * Changes that overlap in time.  A change is `open` from begin to end, that is
 * while the kernel is at it.  What somebody learns of memory at time t (that it
 * is registered, that it is a certain shared object) may be relied on until the
 * log tells otherwise, if at a moment after t no change was open and the log
 * says nothing of that memory since before t: glexi_memwatch_unchanged().
 *
 * at once     report: anybody, anywhere | read the log: anybody | subscribe: opening and closing a device
 * label       access                      order     pairs     says
 * MEMW-R1     reporter  open + 1          seq_cst   MEMW-A1   before subscribers are looked for, and the kernel acts
 * MEMW-A1     reader    load open         seq_cst   MEMW-R1 MEMW-R4   0: whatever was open has ended and is in the log
 * MEMW-R2     reporter  length + 1        acq_rel   MEMW-A2   a slot is claimed; before the kernel acts
 * MEMW-A2     reader    load length       acquire   MEMW-R2   what was learnt before this length may have changed
 * MEMW-R3     reporter  slot.seq = n+1    release   MEMW-A3   the slot's range is complete
 * MEMW-A3     reader    load slot.seq     acquire   MEMW-R3   before and after the range: n+1 both times, or anything
 *                                                             may have changed
 * MEMW-R4     reporter  open - 1          release   MEMW-A1   the kernel is done
 * MEMW-R5     opener    slot = subscriber seq_cst   MEMW-A5   the subscriber is complete; or gone, before open is read
 * MEMW-A5     reporter  load slot         seq_cst   MEMW-R5   it may be called while the change is open
 * MEMW-R7     mover     paused            seq_cst   MEMW-A7   before open is read: who comes later waits
 * MEMW-A7     reporter  load paused       seq_cst   MEMW-R7   after open + 1: nobody moves memory while the kernel acts
 * MEMW-R6     chooser   made = true       release   MEMW-A6   the monitor runs; false: it is about to stop
 * MEMW-A6     anyone    load made         acquire   MEMW-R6   what it sees may be asked
 * MEMW-R8     chooser   monitor           release   MEMW-A8   what it works with is there
 * MEMW-A8     anyone    load monitor      acquire   MEMW-R8   so it may be made to watch, and settled
 * crash       a reporter that never ends (its process died): nobody is left to care; a fork's child starts anew
 */
#ifndef GLEXI_MEMWATCH_H
#define GLEXI_MEMWATCH_H

#ifndef GLEXI_BUILD
#error "memwatch.h is not for users"
#endif

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- changes --------------------------------------------------------------- */

enum glexi_mem_kind {
	GLEXI_MEM_UNMAP,   /* the pages go: munmap, shmdt, brk, what mmap(MAP_FIXED) or mremap lands on, glex_free */
	GLEXI_MEM_MOVE,	   /* mremap: the pages go elsewhere, or the range shrinks */
	GLEXI_MEM_DISCARD, /* the addresses stay, the contents go: madvise with MADV_DONTNEED, FREE, REMOVE, ... */
	GLEXI_MEM_RELEASE, /* the allocator gets it back: it may do any of these, or keep it and hand it out again */
	GLEXI_MEM_SAID	   /* glex_mem_invalidate: somebody knows that it changes, not how */
};

struct glexi_mem_change {
	enum glexi_mem_kind kind;
	int how;       /* DISCARD: of madvise; MOVE: mremap's flags; 0 where the monitor cannot tell */
	uint64_t addr; /* whole pages, but with SAID and RELEASE */
	uint64_t len;
	uint64_t to,
		to_len; /* MOVE, when it is done: where it is now, perhaps longer; to_len 0: the monitor cannot tell */
};

/*
 * begin: the kernel has not acted yet, unless the monitor is one that sees it
 * too late (see glexi_memwatch_sees).  end: it has; done tells whether it did
 * what it was asked.  Always in pairs, by one thread, with the same change.
 */
void glexi_memwatch_begin(const struct glexi_mem_change *change);
void glexi_memwatch_end(const struct glexi_mem_change *change, bool done);

/*
 * Who moves memory in place stops the world's changes meanwhile: those that are
 * reported before the kernel acts wait in begin.  Between the two the caller may
 * not report any itself, nor wait for anybody who might; one pauses at a time.
 * False: a change goes on and on; nothing is paused.
 */
bool glexi_memwatch_pause(void);
void glexi_memwatch_resume(void);

/* ---- subscribers ------------------------------------------------------------ */

/*
 * The functions may be NULL.  They run wherever changes are reported, with any
 * lock of the program's held, malloc's among them: so they may not allocate or
 * free; they may wait for a lock only if nobody allocates, frees or unmaps while
 * holding it; and if they map, unmap or advise themselves, they do so by
 * syscall(2), which is not reported.  errno is theirs to spoil.
 *
 * after() of a DISCARD may do more than the kernel has done, such as punch a hole
 * into a shared object whose pages madvise only unmaps; not where the monitor
 * lags, for who made the call may have gone on.
 */
struct glexi_memwatch {
	void (*before)(struct glexi_memwatch *self, const struct glexi_mem_change *change);
	void (*after)(struct glexi_memwatch *self, const struct glexi_mem_change *change, bool done);
};

/* False: too many.  A subscriber is not called any more when unsubscribe returns; no callback may call it. */
bool glexi_memwatch_subscribe(struct glexi_memwatch *watch);
void glexi_memwatch_unsubscribe(struct glexi_memwatch *watch);

/* ---- monitors --------------------------------------------------------------- */

enum {
	GLEXI_SEES_UNMAP = 1,	/* every UNMAP and MOVE of memory that is tracked is reported */
	GLEXI_SEES_DISCARD = 2, /* every DISCARD too */
	GLEXI_SEES_BEFORE = 4,	/* before the kernel acts; otherwise at any time until the call returns */
};

/*
 * Starts the monitor of GLEX_MEM_MONITOR, at the first call, and says what it
 * sees.  0: there is none that can be relied on, and nobody may keep what
 * somebody else's munmap makes wrong.  May allocate and make system calls.
 */
uint32_t glexi_memwatch_start(void);

/* What the monitor that runs sees; 0 before it is started. */
uint32_t glexi_memwatch_sees(void);

/* enum glex_mem_monitor of glex_ext.h: the one that runs, or would if it were started. */
uint32_t glexi_memwatch_monitor(void);

/* The device is closed: nobody subscribes or caches any more, until it is opened again. */
void glexi_memwatch_stop(void);

/* The program asked for one monitor, which should then see also what is harmless. */
bool glexi_memwatch_wants_all(void);

/* False: nobody is to keep anything, GLEX_MEM_MONITOR=off. */
bool glexi_memwatch_caches(void);

/*
 * From here on changes of [start, end) are seen; true at once for a monitor that
 * sees the whole process.  False: not of this memory.
 */
bool glexi_memwatch_track(uint64_t start, uint64_t end);

/*
 * A monitor that lags learns of a change while another thread may already have
 * mapped something else in its place.  settle() waits until all changes that had
 * happened when it was called are in the log.  A system call.
 */
bool glexi_memwatch_lags(void);
void glexi_memwatch_settle(void);

/* ---- the log ---------------------------------------------------------------- */

#define GLEXI_MEMWATCH_LOG 512u /* how far a reader may be behind before all is one change to it */

extern _Atomic uint64_t glexi_memwatch_length;

/* The log's length: to be read before something is learnt of memory. */
static inline uint64_t glexi_memwatch_now(void)
{
	return atomic_load_explicit(&glexi_memwatch_length, memory_order_acquire); /* MEMW-A2 */
}

/*
 * What changed at place n of the log, n < glexi_memwatch_now().  False: that is
 * not known (any more, or yet), so anything may have.
 */
bool glexi_memwatch_read(uint64_t n, uint64_t *start_p, uint64_t *end_p);

/* Nothing in [start, end) changed since the log had this length, and no change is open. */
bool glexi_memwatch_unchanged(uint64_t since, uint64_t start, uint64_t end);

/* In the child of a fork. */
void glexi_memwatch_forked(void);

#endif /* GLEXI_MEMWATCH_H */
