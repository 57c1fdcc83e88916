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
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/nic/adopt.h"
#include "cfg/log.h"

#define PAGE UINT64_C(4096)

/* ---- what goes ---------------------------------------------------------------------- */

static void punch(uint64_t from, uint64_t to)
{
	fallocate(nic_adopt.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
}

static bool is_ours(const struct nic_vma *vma)
{
	return nic_adopt_is(vma->dev, vma->ino);
}

/*
 * The mapping, anywhere, that shows the memfd at `at` or first behind it, below
 * `end`.  False: none does.
 */
static bool shown_from(int vma_fd, uint64_t at, uint64_t end, struct nic_vma *shown)
{
	struct nic_vma vma = {.end = 0};
	bool found = false;

	while (nic_vma_find(vma_fd, vma.end, &vma)) {
		if (!is_ours(&vma) || vma.offset >= end || vma.offset + (vma.end - vma.start) <= at)
			continue;
		if (!found || vma.offset < shown->offset)
			*shown = vma;
		found = true;
	}
	return found;
}

bool nic_adopt_is_free(int vma_fd, uint64_t from, uint64_t to)
{
	struct nic_vma vma;

	if (shown_from(vma_fd, from, to, &vma))
		return false;
	punch(from, to);
	return true;
}

/* Punches what of the piece's window no mapping shows; false: none shows anything of it. */
static bool settle_piece(int vma_fd, struct adopt_piece *piece)
{
	uint64_t at = piece->offset >> ADOPT_WINDOW << ADOPT_WINDOW, end = at + (UINT64_C(1) << ADOPT_WINDOW);
	struct nic_vma vma = {.end = 0};
	bool shown = false;

	while (at < end && shown_from(vma_fd, at, end, &vma)) {
		if (vma.offset > at)
			punch(at, vma.offset);
		if (!shown)
			piece->start = vma.start;
		piece->end = vma.end;
		at = vma.offset + (vma.end - vma.start);
		shown = true;
	}
	if (at < end)
		punch(at, end);
	return shown;
}

static bool is_in(const struct adopt_piece *piece, uint64_t start, uint64_t end)
{
	return piece->start < end && start < piece->end;
}

/* Looks after the pieces that were last seen in [start, end).  Under the lock. */
static void settle(uint64_t start, uint64_t end)
{
	/* relaxed: under the lock */
	uint32_t i = 0, count = atomic_load_explicit(&nic_adopt.count, memory_order_relaxed);

	while (i < count) {
		struct adopt_piece *piece = &nic_adopt.piece[i];

		if (is_in(piece, start, end) && !settle_piece(nic_adopt.vma_fd, piece))
			*piece = nic_adopt.piece[--count];
		else
			i++;
	}
	atomic_store_explicit(&nic_adopt.count, count, memory_order_relaxed); /* relaxed: see above */
}

void nic_adopt_sweep(void)
{
	settle(0, UINT64_MAX);
}

static bool is_any(void)
{
	/* relaxed: who changes memory that is being adopted has a race with or without us */
	return atomic_load_explicit(&nic_adopt.count, memory_order_relaxed) != 0;
}

/* madvise would only unmap the pages of a shared mapping: their contents would come back. */
static void discard(const struct glexi_mem_change *change)
{
	uint64_t at = change->addr, end = at + change->len, from, to;
	struct nic_vma vma;

	while (at < end && nic_vma_find(nic_adopt.vma_fd, at, &vma) && vma.start < end) {
		from = at > vma.start ? at : vma.start;
		to = end < vma.end ? end : vma.end;
		if (is_ours(&vma))
			punch(vma.offset + (from - vma.start), vma.offset + (to - vma.start));
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

/* Mappings other than [addr, end) show the memfd's bytes [from, to) too. */
static bool is_shown_elsewhere(int vma_fd, uint64_t from, uint64_t to, uint64_t addr, uint64_t end)
{
	struct nic_vma vma = {.end = 0};

	while (nic_vma_find(vma_fd, vma.end, &vma)) {
		uint64_t first = from > vma.offset ? from : vma.offset;
		uint64_t stop = vma.offset + (vma.end - vma.start);

		stop = to < stop ? to : stop;
		if (is_ours(&vma) && first < stop &&
		    (vma.start + (first - vma.offset) < addr || vma.start + (stop - vma.offset) > end))
			return true;
	}
	return false;
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

static uint64_t whole_pages(uint64_t len)
{
	return (len + PAGE - 1) / PAGE * PAGE;
}

/* Adopted memory is where mremap put it, and behaves there as private memory does.  Under the lock. */
static void moved(struct glexi_mem_change change)
{
	int vma_fd = nic_adopt.vma_fd;
	struct nic_vma vma;

	change.len = whole_pages(change.len); /* the program may say less, and means them */
	change.to_len = whole_pages(change.to_len);
	if (nic_vma_find(vma_fd, change.to, &vma) && vma.start <= change.to && is_ours(&vma)) {
		uint64_t from = vma.offset + (change.to - vma.start) + change.len;

		if (change.how & MREMAP_DONTUNMAP)
			map_private(change.addr, change.len, prot_of(&vma));
		if (change.to_len > change.len && is_shown_elsewhere(vma_fd, from, from + (change.to_len - change.len),
								     change.to + change.len, change.to + change.to_len))
			part(&change, &vma);
	}
}

static void before(struct glexi_memwatch *self, const struct glexi_mem_change *change)
{
	(void)self;
	if (change->kind != GLEXI_MEM_DISCARD || !is_any())
		return;
	pthread_mutex_lock(&nic_adopt.lock);
	discard(change);
	pthread_mutex_unlock(&nic_adopt.lock);
}

static void after(struct glexi_memwatch *self, const struct glexi_mem_change *change, bool done)
{
	(void)self;
	if (!done || !is_any() || change->kind == GLEXI_MEM_DISCARD || change->kind == GLEXI_MEM_SAID)
		return;
	pthread_mutex_lock(&nic_adopt.lock);
	if (change->kind == GLEXI_MEM_MOVE) {
		moved(*change);
		nic_adopt_sweep(); /* where they are now, only the kernel knows */
	} else {
		settle(change->addr, change->addr + change->len);
	}
	pthread_mutex_unlock(&nic_adopt.lock);
}

void nic_adopt_watch(void)
{
	static struct glexi_memwatch watch = {.before = before, .after = after};

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

static uint64_t count_mappings(int vma_fd)
{
	struct nic_vma vma = {.end = 0};
	uint64_t count = 0;

	while (nic_vma_find(vma_fd, vma.end, &vma))
		count += is_ours(&vma);
	return count;
}

static uint64_t room_bytes(void)
{
	return whole_pages(copies_room * sizeof(*copies));
}

/* Copies what is adopted; returns the bytes it had no memory for. */
static uint64_t copy_mappings(void)
{
	struct nic_vma vma = {.end = 0};
	int vma_fd = nic_adopt.vma_fd;
	uint64_t count = count_mappings(vma_fd), short_of = 0;

	if (count == 0)
		return 0;
	copies_room = count + MORE;
	copies = (struct copy *)(void *)map_private(0, room_bytes(), PROT_READ | PROT_WRITE);
	while (nic_vma_find(vma_fd, vma.end, &vma)) {
		if (!is_ours(&vma))
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
	uint64_t short_of;

	pthread_mutex_lock(&nic_adopt.lock);
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
	while (copied > 0)
		if (copies[--copied].aside)
			syscall(SYS_munmap, copies[copied].aside, copies[copied].len);
	drop_table();
	pthread_mutex_unlock(&nic_adopt.lock);
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
	nic_adopt.windows = 0;
	atomic_store_explicit(&nic_adopt.count, 0, memory_order_relaxed); /* relaxed: the child has one thread */
	pthread_mutex_init(&nic_adopt.lock, NULL);
	pthread_mutex_init(&nic_adopt.turn, NULL);
	glexi_memwatch_resume(); /* who had paused them is not in the child */
}

/* When the library is loaded, so that in the child no other handler writes before the pages are its own. */
static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}
