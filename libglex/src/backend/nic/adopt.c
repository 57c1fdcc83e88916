/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt.c - moving private memory into a shared mapping, in place.
 *
 * The pages are copied into the memfd, mapped elsewhere, and that mapping is
 * moved over the range by one mremap, which other threads see as one moment.
 * What would be written between copy and move would be lost, so:
 *
 * I1  no region of this process over these pages is open to writers of a peer;
 * I2  the process has no other thread, and signals are blocked meanwhile;
 * I3  only plain memory: private, of no file, writable, no stack, not locked, not
 *     of huge pages set aside, not watched by somebody's userfaultfd, nothing the
 *     program has told the kernel to treat specially at a fork.
 *
 * What the system may itself still be writing for the program in the background
 * (asynchronous input, a device) is not seen: GLEX_ADOPT=never is for that.
 *
 * A failure at any step leaves the pages as they were.
 */
#include "backend/nic/nic.h"

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
#include "emulator/nic/copy.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

#define PAGE	  UINT64_C(4096)
#define HUGE	  (UINT64_C(2) << 20)
#define FILE_SIZE (INT64_C(1) << 60)
#define SWEEP	  64u  /* pieces after which is looked whether they are still there */
#define SLICE	  512u /* pages whose state is asked for at once */

#define PAGE_IN_USE (UINT64_C(3) << 62) /* of /proc/self/pagemap: present or swapped out */

struct adopt nic_adopt = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* These are not reported to ourselves, see memwatch.h. */
static void *raw_mmap(void *addr, uint64_t len, int prot, int flags, int fd, uint64_t offset)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, (off_t)offset);
}

static void raw_munmap(void *addr, uint64_t len)
{
	syscall(SYS_munmap, addr, len);
}

static int raw_madvise(void *addr, uint64_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
}

/* ---- what may be adopted -------------------------------------------------------- */

static bool has_other_threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) < 0 || st.st_nlink != 3; /* itself, its parent, one thread */
}

/* I1.  Regions that peers only read have nothing to fear, unless they name the object that is left behind. */
static bool is_in_use(struct nic_device *dev, uint64_t addr, uint64_t end, bool again)
{
	struct emu_region region;
	uint32_t i;

	for (i = 0; i < EMU_MMT_UNITS; i++)
		if (emu_mmt_at(dev->nic, i, &region) && region.session == dev->welcome.session &&
		    (again || region.access & GLEX_MEM_WRITE) && region.addr < end && addr < region.addr + region.len)
			return true;
	return false;
}

/* Mappings with any of these are left alone: locked, huge, device, growing, special at fork, userfaultfd. */
static bool has_odd_flag(const char *flags)
{
	static const char *const odd[] = {" lo", " ht", " io", " pf", " gd", " dc", " wf", " um", " uw", " ui", " sl"};
	size_t i;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		if (strstr(flags, odd[i]))
			return true;
	return false;
}

/* None of the mappings in [addr, end) has a flag that only smaps tells. */
static bool is_even(uint64_t addr, uint64_t end)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long long from, to;
	bool inside = false, even = smaps != NULL;
	char line[4096 + 128];

	while (even && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
			inside = from < end && addr < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			even = !has_odd_flag(line + 8);
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

/* ---- the memfd -------------------------------------------------------------------- */

static bool open_memfd(void)
{
	struct rlimit limit;
	struct stat st;
	int fd;

	if (nic_adopt.fd >= 0)
		return true;
	/* Beyond it the system would not only refuse, but send a signal that ends the process. */
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < (rlim_t)FILE_SIZE)
		return false;
	fd = memfd_create("glex_adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	if (ftruncate(fd, FILE_SIZE) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
	    fstat(fd, &st) < 0) {
		close(fd);
		return false;
	}
	nic_adopt.dev = st.st_dev;
	nic_adopt.ino = st.st_ino;
	nic_adopt.fd = fd;
	nic_adopt_watch();
	return true;
}

/* ---- one piece ---------------------------------------------------------------------- */

/* Copies a run of pages that are in use; false: no memory. */
static bool copy_run(unsigned char *to, uint64_t from, uint64_t len)
{
	/* asked for first, so that a lack of memory is an answer and not a signal */
	if (raw_madvise(to, len, MADV_POPULATE_WRITE) < 0 && errno != EINVAL)
		return false;
	/* not memcpy: on a heap, an address sanitizer would find the gaps between what was allocated */
	emu_copier_run(EMU_COPIER_MOVSB, to, (const void *)(uintptr_t)from, len);
	return true;
}

/*
 * Copies what is in use of a piece; what never was written stays a hole, and reads as zero as before; but all of
 * what is shared already, of which the page tables need not know.
 */
static bool copy_piece(unsigned char *to, const struct adopt_piece *piece, bool all)
{
	uint64_t state[SLICE], at = piece->start, i, n;
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	bool copied = true;

	while (copied && at < piece->end) {
		n = (piece->end - at) / PAGE < SLICE ? (piece->end - at) / PAGE : SLICE;
		if (all || pread(pagemap, state, n * 8, (off_t)(at / PAGE * 8)) != (ssize_t)(n * 8))
			memset(state, 0xff, sizeof(state)); /* or it does not say */
		for (i = 0; copied && i < n;) {
			uint64_t first = i;

			while (i < n && state[i] & PAGE_IN_USE)
				i++;
			if (i > first)
				copied = copy_run(to + (at - piece->start) + first * PAGE, at + first * PAGE,
						  (i - first) * PAGE);
			while (i < n && !(state[i] & PAGE_IN_USE))
				i++;
		}
		at += n * PAGE;
	}
	if (pagemap >= 0)
		close(pagemap);
	return copied;
}

/* Maps the piece's part of the memfd at addresses of which *room_p is the beginning. */
static unsigned char *map_aside(const struct adopt_piece *piece, unsigned char **room_p)
{
	uint64_t len = piece->end - piece->start, room = len + HUGE;
	unsigned char *base = raw_mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *at;

	if (base == MAP_FAILED)
		return NULL;
	at = base + (piece->start - (uintptr_t)base) % HUGE;
	*room_p = base;
	if (raw_mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, nic_adopt.fd, piece->offset) == at)
		return at;
	raw_munmap(base, room);
	return NULL;
}

static bool move_piece(struct adopt_piece *piece, bool again)
{
	uint64_t len = piece->end - piece->start;
	unsigned char *room, *aside;
	bool moved;

	if (nic_adopt.windows >= (uint64_t)FILE_SIZE >> ADOPT_WINDOW)
		return false;
	piece->offset = (nic_adopt.windows++ << ADOPT_WINDOW) + piece->start % HUGE;
	aside = map_aside(piece, &room);
	if (!aside)
		return false;
	if (len >= HUGE)
		raw_madvise(aside, len, MADV_HUGEPAGE);
	moved = copy_piece(aside, piece, again) &&
		syscall(SYS_mremap, aside, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, piece->start) == (long)piece->start;
	raw_munmap(room, len + HUGE);
	if (!moved)
		fallocate(nic_adopt.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)piece->offset, (off_t)len);
	return moved;
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

/* Under the lock.  How many pages were moved. */
static uint64_t move_pieces(int vma_fd, uint64_t addr, uint64_t end, bool again, const char **why_p)
{
	struct adopt_piece piece;
	uint64_t pages = 0;

	for (; next_piece(vma_fd, addr, end, again, &piece, why_p); addr = piece.end) {
		/* relaxed: under the lock; others only look whether it is 0 */
		uint32_t count = atomic_load_explicit(&nic_adopt.count, memory_order_relaxed);

		if (count == ADOPT_MAX) {
			*why_p = "too many pieces are adopted";
		} else if (!move_piece(&piece, again)) {
			*why_p = "the system has not the memory, or the mappings";
		} else {
			nic_adopt.piece[count] = piece;
			/* relaxed: see above */
			atomic_store_explicit(&nic_adopt.count, count + 1, memory_order_relaxed);
			pages += (piece.end - piece.start) / PAGE;
		}
	}
	return pages;
}

static uint64_t move_quietly(int vma_fd, uint64_t addr, uint64_t end, bool again, const char **why_p)
{
	uint64_t pages = 0;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&nic_adopt.lock);
	/* relaxed: under the lock */
	if (atomic_load_explicit(&nic_adopt.count, memory_order_relaxed) % SWEEP == SWEEP - 1)
		nic_adopt_sweep();
	if (open_memfd())
		pages = move_pieces(vma_fd, addr, end, again, why_p);
	else
		*why_p = "no memfd of its size can be made; see ulimit -f and -n";
	pthread_mutex_unlock(&nic_adopt.lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pages;
}

bool nic_adopt_range(struct nic_device *dev, uint64_t addr, uint64_t end, bool again, const char **why_p)
{
	uint64_t pages;

	if (has_other_threads()) {
		*why_p = "the process has other threads";
		return false;
	}
	if (is_in_use(dev, addr, end, again)) {
		*why_p = "a region over it is in use, or open to writers";
		return false;
	}
	if (!is_even(addr, end)) {
		*why_p = "it is locked, or special in another way";
		return false;
	}
	*why_p = "it is adopted already";
	pages = move_quietly(dev->vma_fd, addr, end, again, why_p);
	if (pages)
		glexi_info("adopted: %llu of %llu pages at %#llx are in a shared mapping now",
			   (unsigned long long)pages, (unsigned long long)((end - addr) / PAGE),
			   (unsigned long long)addr);
	return pages > 0;
}
