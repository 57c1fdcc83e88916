/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt_watch.c - what must happen to adopted memory where the program expects
 * it to be private: it goes when it is unmapped, reads zero after MADV_DONTNEED,
 * a fork's child has its own, and what mremap makes longer reads zero there.
 *
 * Fork.  Before it, everything adopted is copied into private memory aside; the
 * child moves the copies over the pages it shares with its parent, before any
 * other handler runs, the parent drops them.  Where the adopted pages are now is
 * asked of the kernel, for the program may have moved them.  If there is no
 * memory for the copies, the child shares the pages with its parent, which is
 * said.  vfork, posix_spawn and clone with CLONE_VM need nothing.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/nic/adopt.h"
#include "cfg/log.h"

#define PAGE UINT64_C(4096)

/* ---- the lock ----------------------------------------------------------------------- */

/* A signal's handler may unmap and fork as well: on this thread it would wait for itself. */
static void lock_quietly(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
	pthread_mutex_lock(&nic_adopt.lock);
}

static void unlock_quietly(const sigset_t *before)
{
	pthread_mutex_unlock(&nic_adopt.lock);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- what is discarded ---------------------------------------------------------------- */

static bool is_any(void)
{
	/* relaxed: who changes memory that is being adopted has a race with or without us */
	return atomic_load_explicit(&nic_adopt.count, memory_order_relaxed) != 0;
}

static uint64_t whole_pages(uint64_t len)
{
	return (len + PAGE - 1) / PAGE * PAGE;
}

/* What the kernel would have discarded of private memory, but not of this, or before it came to what it does not. */
static bool is_discarded(int advice, uint64_t from, uint64_t to)
{
	return (advice == MADV_DONTNEED || advice == MADV_FREE) &&
	       syscall(SYS_madvise, from, to - from, MADV_DONTNEED) == 0;
}

/*
 * The kernel has judged.  Of a shared mapping it only unmaps the pages: their
 * contents would come back.  Where it has refused, by far the most often because
 * it knows no MADV_FREE of such memory, each mapping is judged by itself.
 */
static void discard(const struct glexi_mem_change *change, bool done)
{
	uint64_t at = change->addr, end = at + whole_pages(change->len), from, to;
	struct nic_vma vma;

	if (at % PAGE != 0)
		return;
	while (at < end && nic_vma_find(nic_adopt.vma_fd, at, &vma) && vma.start < end) {
		from = at > vma.start ? at : vma.start;
		to = end < vma.end ? end : vma.end;
		if (nic_adopt_shows(&vma) && (done || is_discarded(change->how, from, to)))
			nic_adopt_punch(vma.offset + (from - vma.start), vma.offset + (to - vma.start));
		at = vma.end;
	}
}

/* ---- mremap --------------------------------------------------------------------------- */

static int prot_of(const struct nic_vma *vma)
{
	return (vma->readable ? PROT_READ : 0) | (vma->writable ? PROT_WRITE : 0) | (vma->executable ? PROT_EXEC : 0);
}

static unsigned char *map_private(uint64_t addr, uint64_t len, int prot)
{
	void *at =
		(void *)syscall(SYS_mmap, addr, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0), -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Reads what is not a hole; a hole's copy is zero already. */
static bool read_data(unsigned char *to, uint64_t offset, uint64_t len)
{
	off_t at = (off_t)offset, end = (off_t)(offset + len), stop;

	while ((at = lseek(nic_adopt.fd, at, SEEK_DATA)) >= 0 && at < end) {
		stop = lseek(nic_adopt.fd, at, SEEK_HOLE);
		if (stop < 0 || stop > end)
			stop = end;
		while (at < stop) {
			ssize_t n = pread(nic_adopt.fd, to + ((uint64_t)at - offset), (size_t)(stop - at), at);

			if (n <= 0)
				return false;
			at += n;
		}
	}
	return true;
}

/*
 * It shows what lies behind it in the memfd, which other memory shows too, for
 * both were adopted as one: so it becomes private again.  Who did not allow it to
 * move may write to it meanwhile, from other threads: only its new part does then.
 */
static void part(const struct glexi_mem_change *change, const struct nic_vma *vma)
{
	int prot = prot_of(vma);
	unsigned char *aside =
		change->how & MREMAP_MAYMOVE ? map_private(0, change->to_len, PROT_READ | PROT_WRITE) : NULL;

	if (!aside || !read_data(aside, vma->offset + (change->to - vma->start), change->len)) {
		map_private(change->to + change->len, change->to_len - change->len, prot);
		if (aside)
			syscall(SYS_munmap, aside, change->to_len);
		return;
	}
	if (prot != (PROT_READ | PROT_WRITE))
		syscall(SYS_mprotect, aside, change->to_len, prot);
	syscall(SYS_mremap, aside, change->to_len, change->to_len, MREMAP_MAYMOVE | MREMAP_FIXED, change->to);
}

/* Adopted memory is where mremap put it, and behaves there as private memory does.  Under the lock. */
static void moved(struct glexi_mem_change change)
{
	struct nic_vma vma;

	change.len = whole_pages(change.len); /* the program may say less, and means them */
	change.to_len = whole_pages(change.to_len);
	if (nic_vma_find(nic_adopt.vma_fd, change.to, &vma) && vma.start <= change.to && nic_adopt_shows(&vma)) {
		uint64_t from = vma.offset + (change.to - vma.start) + change.len;

		if (change.how & MREMAP_DONTUNMAP)
			map_private(change.addr, change.len, prot_of(&vma));
		if (change.to_len > change.len &&
		    nic_adopt_is_shown_elsewhere(from, from + (change.to_len - change.len), change.to + change.len,
						 change.to + change.to_len))
			part(&change, &vma);
	}
}

/* Under the lock. */
static void follow(const struct glexi_mem_change *change, bool done)
{
	switch (change->kind) {
	case GLEXI_MEM_DISCARD:
		discard(change, done);
		break;
	case GLEXI_MEM_MOVE:
		moved(*change);
		nic_adopt_sweep(); /* where they are now, only the kernel knows */
		break;
	default:
		nic_adopt_settle(change->addr, change->addr + change->len);
	}
}

static void after(struct glexi_memwatch *self, const struct glexi_mem_change *change, bool done)
{
	bool discards = change->kind == GLEXI_MEM_DISCARD;
	sigset_t before;

	(void)self;
	if (!(done || discards) || !is_any() || change->kind == GLEXI_MEM_SAID)
		return;
	if (discards && glexi_memwatch_lags())
		return; /* who discarded it may have written to it since */
	lock_quietly(&before);
	follow(change, done);
	unlock_quietly(&before);
}

void nic_adopt_watch(void)
{
	static struct glexi_memwatch watch = {.after = after};

	glexi_memwatch_subscribe(&watch);
}

/* ---- fork ------------------------------------------------------------------------------ */

/* A mapping of adopted memory, and its private copy for the child. */
struct copy {
	uint64_t start, len;
	unsigned char *aside; /* NULL: there was no memory */
	int prot;
};

#define MORE 64 /* mappings that other threads may make of those counted, by mprotect */

static struct copy *copies; /* memory of its own: malloc's lock may be held */
static uint64_t copied, copies_room;
static sigset_t before_fork_mask; /* under the lock */

static void copy_mapping(const struct nic_vma *vma, struct copy *copy)
{
	unsigned char *aside = map_private(0, vma->end - vma->start, PROT_READ | PROT_WRITE);

	*copy = (struct copy){
		.start = vma->start,
		.len = vma->end - vma->start,
		.prot = prot_of(vma),
	};
	if (!aside)
		return;
	if (read_data(aside, vma->offset, copy->len))
		copy->aside = aside;
	else
		syscall(SYS_munmap, aside, copy->len);
}

static uint64_t count_mappings(void)
{
	struct nic_vma_walk walk;
	struct nic_vma vma;
	uint64_t count = 0;

	nic_vma_walk(&walk, nic_adopt.vma_fd);
	while (nic_vma_next(&walk, &vma))
		count += nic_adopt_shows(&vma);
	return count;
}

static uint64_t room_bytes(void)
{
	return whole_pages(copies_room * sizeof(*copies));
}

/* Copies what is adopted; returns the bytes it had no memory for. */
static uint64_t copy_mappings(void)
{
	uint64_t count = count_mappings(), short_of = 0;
	struct nic_vma_walk walk;
	struct nic_vma vma;

	if (count == 0)
		return 0;
	copies_room = count + MORE;
	copies = (struct copy *)(void *)map_private(0, room_bytes(), PROT_READ | PROT_WRITE);
	nic_vma_walk(&walk, nic_adopt.vma_fd);
	while (nic_vma_next(&walk, &vma)) {
		if (!nic_adopt_shows(&vma))
			continue;
		if (!copies || copied == copies_room) {
			short_of += vma.end - vma.start;
			continue;
		}
		copy_mapping(&vma, &copies[copied]);
		short_of += copies[copied].aside ? 0 : copies[copied].len;
		copied++;
	}
	return short_of;
}

static void before_fork(void)
{
	sigset_t before;
	uint64_t short_of;

	lock_quietly(&before);
	before_fork_mask = before;
	copied = 0;
	copies = NULL;
	if (nic_adopt.fd < 0)
		return;
	short_of = copy_mappings();
	if (short_of)
		glexi_warn("fork: no memory for a private copy of %llu KiB of adopted memory: the child shares it with "
			   "its parent; see GLEX_ADOPT",
			   (unsigned long long)short_of / 1024);
}

static void drop_table(void)
{
	if (copies)
		syscall(SYS_munmap, copies, room_bytes());
	copies = NULL;
}

static void in_parent(void)
{
	sigset_t before = before_fork_mask;

	while (copied > 0)
		if (copies[--copied].aside)
			syscall(SYS_munmap, copies[copied].aside, copies[copied].len);
	drop_table();
	unlock_quietly(&before);
}

static void in_child(void)
{
	while (copied > 0) {
		const struct copy *copy = &copies[--copied];

		if (!copy->aside)
			continue;
		if (copy->prot != (PROT_READ | PROT_WRITE))
			syscall(SYS_mprotect, copy->aside, copy->len, copy->prot);
		syscall(SYS_mremap, copy->aside, copy->len, copy->len, MREMAP_MAYMOVE | MREMAP_FIXED, copy->start);
	}
	drop_table();
	if (nic_adopt.fd >= 0) {
		close(nic_adopt.fd);
		close(nic_adopt.vma_fd);
	}
	nic_adopt.fd = nic_adopt.vma_fd = -1;
	nic_adopt.window = 0;
	atomic_store_explicit(&nic_adopt.count, 0, memory_order_relaxed); /* relaxed: the child has one thread */
	pthread_mutex_init(&nic_adopt.lock, NULL);
	pthread_mutex_init(&nic_adopt.turn, NULL);
	glexi_memwatch_resume(); /* who had paused them is not in the child */
	pthread_sigmask(SIG_SETMASK, &before_fork_mask, NULL);
}

/* When the library is loaded, so that in the child no other handler writes before the pages are its own. */
static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}
