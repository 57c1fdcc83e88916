/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt.c - moving private memory into a shared mapping, in place.
 *
 * adopt_move.c moves a piece so that no write is lost, whoever writes: threads,
 * peers, the system in the background.  Where the kernel does not help with that,
 * and for pages that were adopted before and now have to lie in one piece with
 * others, it only copies.  What would be written between copying and mapping
 * would be lost, so then:
 *
 * I1  no region of this process over these pages is open to writers of a peer, or
 *     belongs to an endpoint for which the engine has something left to do: it may
 *     be a GET into them, for which a region need not be open to anybody;
 * I2  the process has no other thread, and nothing by which the system could be asked to write
 *     behind its back: no io_uring, no context of asynchronous I/O.
 *
 * And always:
 *
 * I3  only plain memory: private, of no file, writable, no stack, not locked, not
 *     of huge pages set aside, not watched by somebody's userfaultfd, nothing the
 *     program has told the kernel to treat specially at a fork;
 * I4  signals are blocked meanwhile, and no change of memory that is reported
 *     (memwatch.h) is under way: what another thread unmaps does not come back.
 *     Pages that hold a byte of what is just being registered nobody may unmap.
 *
 * A failure at any step leaves the pages as they were.
 */
#include "backend/nic/nic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/nic/adopt.h"
#include "cfg/log.h"

#define PAGE  UINT64_C(4096)
#define HUGE  (UINT64_C(2) << 20)
#define SWEEP 64u   /* pieces after which is looked whether they are still there */
#define SELF  2560u /* bytes of the structure that the C library and the system keep for a thread */

struct adopt nic_adopt = {.turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .vma_fd = -1};

/* ---- what may be adopted -------------------------------------------------------- */

static bool has_other_threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) < 0 || st.st_nlink != 3; /* itself, its parent, one thread */
}

static bool is_ring(int dir, const char *name)
{
	char target[64];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	return strstr(target, "[io_uring]") != NULL;
}

/* An io_uring that need not be mapped.  Without opendir, whose memory comes and goes: such changes are reported to who adopts. */
static bool has_ring(void)
{
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = dir < 0; /* it cannot be told */
	_Alignas(struct dirent64) char buf[1024];
	const struct dirent64 *entry;
	ssize_t at, n = 0;

	while (!found && (n = getdents64(dir, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += entry->d_reclen) {
			entry = (const struct dirent64 *)(const void *)(buf + at);
			found |= is_ring(dir, entry->d_name);
		}
	if (dir >= 0)
		close(dir);
	return found || n < 0;
}

/* I2, the second half.  A context of asynchronous I/O has a mapping of this name as long as it lives. */
static bool may_write_in_background(void)
{
	struct nic_vma_walk walk;
	struct nic_vma vma;
	int fd = nic_vma_open();
	bool found = fd < 0;

	if (fd >= 0) {
		nic_vma_walk(&walk, fd);
		while (!found && nic_vma_next(&walk, &vma))
			found = strstr(vma.name, "[aio]") || strstr(vma.name, "[io_uring]");
		close(fd);
	}
	return found || has_ring();
}

/* The engine has not executed all that was posted on this endpoint.  Without ep_lock: nobody else is there, I2. */
static bool is_engine_at(const struct nic_device *dev, uint32_t ep_num)
{
	const struct nic_ep *nep;

	LIST_FOREACH(nep, &dev->eps, link)
	if (nep->ep->attr.num == ep_num)
		return nep->port.dq && nic_dq_used(nep) != 0;
	return false;
}

/*
 * I1.  Regions that peers only read have nothing to fear, unless they name the object that is left behind; nor those
 * that only this process's own GETs write to, while there are none.
 */
static bool is_in_use(struct nic_device *dev, uint64_t addr, uint64_t end, bool again)
{
	struct emu_region region;
	uint32_t i;

	for (i = 0; i < EMU_MMT_UNITS; i++)
		if (emu_mmt_at(dev->nic, i, &region) && region.session == dev->welcome.session && region.addr < end &&
		    addr < region.addr + region.len &&
		    (again || region.access & GLEX_MEM_WRITE || is_engine_at(dev, region.ep_num)))
			return true;
	return false;
}

/*
 * Mappings with any of these are left alone: locked, huge, device, growing, special at fork, userfaultfd.  Where there
 * are threads also those without huge pages: that is how the kernel marks a thread's stack.
 */
static bool has_odd_flag(const char *flags, bool threads)
{
	static const char *const odd[] = {" lo", " ht", " io", " pf", " gd", " dc", " wf", " um", " uw", " ui", " sl"};
	size_t i;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		if (strstr(flags, odd[i]))
			return true;
	return threads && strstr(flags, " nh");
}

/*
 * None of the mappings in [addr, end) has a flag that only smaps tells.  They come in the order of their addresses, and
 * each costs the system a look at all its pages: what lies behind is not asked for.
 */
static bool is_even(uint64_t addr, uint64_t end, bool threads)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long long from, to;
	bool inside = false, even = smaps != NULL;
	char line[4096 + 128];

	while (even && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
			if (from >= end)
				break;
			inside = addr < to;
		} else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			even = !has_odd_flag(line + 8, threads);
	}
	if (smaps)
		fclose(smaps);
	return even;
}

static bool is_stack(const struct nic_vma *vma)
{
	uint64_t here = (uintptr_t)__builtin_frame_address(0);

	return strcmp(vma->name, "[stack]") == 0 || (vma->start <= here && here < vma->end);
}

static bool is_within(uint64_t addr, uint64_t end, const void *from, uint64_t len)
{
	return (uintptr_t)from < end && addr < (uintptr_t)from + len;
}

/* This thread would wait for pages that it has taken out itself: its errno, what the system keeps for it, the state. */
static bool is_needed_here(uint64_t addr, uint64_t end)
{
	return is_within(addr, end, &errno, sizeof(errno)) || is_within(addr, end, &nic_adopt, sizeof(nic_adopt)) ||
	       is_within(addr, end, (const void *)(uintptr_t)pthread_self(), SELF);
}

/* ---- the memfd -------------------------------------------------------------------- */

static bool open_memfd(void)
{
	struct rlimit limit;
	struct stat st;
	int fd, vma_fd;

	if (nic_adopt.fd >= 0)
		return true;
	/* Beyond it the system would not only refuse, but send a signal that ends the process. */
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < (rlim_t)ADOPT_FILE)
		return false;
	fd = memfd_create("glex_adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	vma_fd = nic_vma_open();
	if (vma_fd < 0 || ftruncate(fd, ADOPT_FILE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 || fstat(fd, &st) < 0) {
		close(fd);
		if (vma_fd >= 0)
			close(vma_fd);
		return false;
	}
	nic_adopt.vma_fd = vma_fd;
	nic_adopt.dev = st.st_dev;
	nic_adopt.ino = st.st_ino;
	nic_adopt.fd = fd;
	nic_adopt_watch();
	return true;
}

/* ---- a range -------------------------------------------------------------------------- */

/* NULL: a mapping whose pages can be moved, else why not.  again: even if they were adopted already. */
static const char *objection(const struct nic_vma *vma, bool again)
{
	if (nic_adopt_is(vma->dev, vma->ino))
		return again && vma->readable && vma->writable ? NULL : "it is adopted already";
	if (is_stack(vma))
		return "it is a stack";
	return nic_vma_is_plain(vma) ? NULL : "it is not plain private memory";
}

/* The next piece at or after addr: neighbours become one.  False: there is none. */
static bool next_piece(int vma_fd, uint64_t addr, uint64_t end, bool again, struct adopt_piece *piece,
		       const char **why_p)
{
	struct nic_vma vma;

	*piece = (struct adopt_piece){.start = 0};
	while (addr < end && nic_vma_find(vma_fd, addr, &vma) && vma.start < end) {
		const char *why = objection(&vma, again);

		if (piece->end && (why || vma.start > piece->end))
			break;
		if (why)
			*why_p = why;
		else if (!piece->end)
			piece->start = addr > vma.start ? addr : vma.start;
		if (!why)
			piece->end = end < vma.end ? end : vma.end;
		addr = vma.end;
	}
	return piece->end != 0;
}

/* ---- where it goes to --------------------------------------------------------------------- */

static uint64_t window_of(uint64_t offset)
{
	return offset >> ADOPT_WINDOW;
}

/* An adopted mapping that the piece can be put beside of, at piece->offset: all of it is free, and in one window. */
static bool fits_beside(const struct nic_vma *vma, const struct adopt_piece *piece)
{
	uint64_t last = piece->offset + (piece->end - piece->start) - 1;

	return window_of(piece->offset) == window_of(vma->offset) && window_of(last) == window_of(vma->offset) &&
	       nic_adopt_is_free(piece->offset, last + 1);
}

/* What of [addr, end) lies before the piece, or behind it, is adopted: both become one mapping. */
static bool put_beside(int vma_fd, uint64_t addr, uint64_t end, struct adopt_piece *piece)
{
	struct nic_vma vma;

	if (piece->start > addr && nic_vma_find(vma_fd, piece->start - 1, &vma) && vma.end == piece->start &&
	    nic_adopt_is(vma.dev, vma.ino)) {
		piece->offset = vma.offset + (vma.end - vma.start);
		if (fits_beside(&vma, piece))
			return true;
	}
	if (piece->end < end && nic_vma_find(vma_fd, piece->end, &vma) && vma.start == piece->end &&
	    nic_adopt_is(vma.dev, vma.ino)) {
		piece->offset = vma.offset - (piece->end - piece->start);
		return fits_beside(&vma, piece);
	}
	return false;
}

/* The piece of this window; NULL: there is none. */
static struct adopt_piece *in_window(uint64_t window)
{
	/* relaxed: under the lock */
	uint32_t i, count = atomic_load_explicit(&nic_adopt.count, memory_order_relaxed);

	for (i = 0; i < count; i++)
		if (window_of(nic_adopt.piece[i].offset) == window)
			return &nic_adopt.piece[i];
	return NULL;
}

/* It has been moved. */
static void remember(const struct adopt_piece *piece)
{
	uint64_t window = window_of(piece->offset);
	struct adopt_piece *other = in_window(window);
	/* relaxed: under the lock; others only look whether it is 0 */
	uint32_t count = atomic_load_explicit(&nic_adopt.count, memory_order_relaxed);

	if (other) {
		other->start = piece->start < other->start ? piece->start : other->start;
		other->end = piece->end > other->end ? piece->end : other->end;
		return;
	}
	nic_adopt.piece[count] = *piece;
	nic_adopt.window = (window + 1) % ADOPT_ROOMS;
	atomic_store_explicit(&nic_adopt.count, count + 1, memory_order_relaxed); /* relaxed: see above */
}

/* Beside what is there of [addr, end), or into a window of its own.  False: there is none left. */
static bool place(int vma_fd, uint64_t addr, uint64_t end, bool again, struct adopt_piece *piece)
{
	const uint64_t half = UINT64_C(1) << (ADOPT_WINDOW - 1);

	if (!again && put_beside(vma_fd, addr, end, piece))
		return true;
	/* relaxed: under the lock */
	if (atomic_load_explicit(&nic_adopt.count, memory_order_relaxed) == ADOPT_MAX ||
	    piece->end - piece->start > half - HUGE)
		return false;
	/* Each in its turn, so that what was left long ago is used again the latest: a transfer may still be under way. */
	while (in_window(nic_adopt.window))
		nic_adopt.window = (nic_adopt.window + 1) % ADOPT_ROOMS;
	piece->offset = (nic_adopt.window << ADOPT_WINDOW) + half + piece->start % HUGE;
	return true;
}

/* ---- moving ------------------------------------------------------------------------------- */

/* Under the lock.  How many pages were moved. */
static uint64_t move_pieces(int uffd, int vma_fd, uint64_t addr, uint64_t end, bool again, const char **why_p)
{
	struct adopt_piece piece;
	uint64_t pages = 0, at, stop;

	for (at = addr; next_piece(vma_fd, at, end, again, &piece, why_p); at = stop) {
		stop = piece.end;
		if (!place(vma_fd, addr, end, again, &piece)) {
			*why_p = "too many pieces are adopted";
		} else if (!nic_adopt_move(uffd, vma_fd, &piece, again)) {
			*why_p = "the system has not the memory, or the mappings, or is just using its pages";
		} else {
			remember(&piece);
			pages += (piece.end - piece.start) / PAGE;
		}
	}
	return pages;
}

/* Nothing that is reported changes meanwhile. */
static uint64_t move_locked(int uffd, int vma_fd, uint64_t addr, uint64_t end, bool again, const char **why_p)
{
	uint64_t pages = 0;

	pthread_mutex_lock(&nic_adopt.lock);
	/* relaxed: under the lock */
	if (atomic_load_explicit(&nic_adopt.count, memory_order_relaxed) % SWEEP == SWEEP - 1)
		nic_adopt_sweep();
	if (open_memfd())
		pages = move_pieces(uffd, vma_fd, addr, end, again, why_p);
	else
		*why_p = "no memfd of its size can be made; see ulimit -f and -n";
	if (again && pages)
		nic_adopt_sweep(); /* of what was adopted before there is a copy now */
	pthread_mutex_unlock(&nic_adopt.lock);
	return pages;
}

/* I4.  The changes under way may need the lock to end. */
static uint64_t move_quietly(int uffd, int vma_fd, uint64_t addr, uint64_t end, bool again, const char **why_p)
{
	uint64_t pages = 0;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&nic_adopt.turn);
	if (glexi_memwatch_pause()) {
		pages = move_locked(uffd, vma_fd, addr, end, again, why_p);
		glexi_memwatch_resume();
	} else {
		*why_p = "memory is being unmapped just now";
	}
	pthread_mutex_unlock(&nic_adopt.turn);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pages;
}

/* Why these pages stay as they are; NULL: they need not.  can_take: by adopt_move.c, without harm to anybody. */
static const char *hindrance(struct nic_device *dev, uint64_t addr, uint64_t end, bool again, bool can_take,
			     const char *why_not_take)
{
	bool threads = has_other_threads();

	if (is_needed_here(addr, end))
		return "it holds what the calling thread itself needs";
	if (threads && !can_take)
		return again ? "other threads run, and parts of it were adopted apart" : why_not_take;
	if (!can_take && is_in_use(dev, addr, end, again))
		return "a region over it is in use, or open to writers";
	if (!can_take && may_write_in_background())
		return "asynchronous input of the program could write to it meanwhile";
	return is_even(addr, end, threads) ? NULL : "it is locked, or special in another way";
}

/* again: also what is adopted already, so that all of it lies in one piece.  How many pages were moved. */
static uint64_t move_range(struct nic_device *dev, uint64_t addr, uint64_t end, bool again, const char **why_p)
{
	const char *why_not_take = NULL;
	int uffd = again ? -1 : nic_adopt_open_mover(&why_not_take);
	uint64_t pages = 0;

	*why_p = hindrance(dev, addr, end, again, uffd >= 0, why_not_take);
	if (!*why_p) {
		*why_p = "it is adopted already";
		pages = move_quietly(uffd, dev->vma_fd, addr, end, again, why_p);
	}
	if (uffd >= 0)
		close(uffd);
	return pages;
}

bool nic_adopt_range(struct nic_device *dev, uint64_t addr, uint64_t end, const char **why_p)
{
	uint64_t pages = move_range(dev, addr, end, false, why_p);

	if (nic_mem_is_split(dev->dev, (void *)(uintptr_t)addr, end - addr))
		pages += move_range(dev, addr, end, true, why_p);
	atomic_fetch_add_explicit(&dev->nic->counters.adopted, pages, memory_order_relaxed); /* relaxed: counter */
	if (pages)
		glexi_info("adopted: %llu of %llu pages at %#llx are in a shared mapping now",
			   (unsigned long long)pages, (unsigned long long)((end - addr) / PAGE),
			   (unsigned long long)addr);
	return pages > 0;
}
