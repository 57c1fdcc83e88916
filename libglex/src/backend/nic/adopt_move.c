/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt_move.c - the pages of one piece go from their place into the memfd.
 *
 *   place   |= private pages =|<--------- 3. mremap, one moment --------.
 *                | 1. UFFDIO_MOVE                                       |
 *                v                                                      |
 *   out     |= the same pages =|-- 2. copy -->|= pages of the memfd =|  aside
 *
 * Where userfaultfd can move pages they are taken out of their place before they
 * are copied.  From then on whoever touches the place waits in the kernel: a
 * thread, a system call that reads or writes there, a peer's attach.  They go on
 * when the memfd's pages are there, which have the same contents.  What the
 * system has pinned to write to in the background (direct or asynchronous I/O, a
 * peer's transfer under way) cannot be taken out, and so is not adopted.  No
 * write is lost whatever runs.  Long pieces go by the slice, so that nobody waits
 * longer than that takes.
 *
 * Elsewhere the pages are copied where they are; that is safe only if nobody can
 * write meanwhile (adopt.c, I1 and I2).
 *
 * I4  While pages are out, this thread touches only its stack, its errno and
 *     static data: it would wait for itself.  It allocates nothing, takes no lock.
 * I5  What is unmapped here was mapped here and is there still: other threads may
 *     get any address that is free.
 *
 * A failure at any step leaves the pages of the slice as they were, in their place.
 */
#include "backend/nic/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/nic/adopt.h"
#include "emulator/nic/copy.h"

/* Known to kernels newer than the headers this may be built with. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00) /* since Linux 6.1 */
#endif
#define FEATURE_MOVE (UINT64_C(1) << 16) /* since Linux 6.8 */
#define MOVE_HOLES   UINT64_C(2)

struct uffd_move {
	uint64_t dst, src, len, mode;
	int64_t moved;
};

#define UFFD_MOVE _IOWR(0xAA, 0x05, struct uffd_move)

#define PAGE	 UINT64_C(4096)
#define HUGE	 (UINT64_C(2) << 20)
#define SLICE	 (UINT64_C(4) << 20)
#define STATES	 512u /* pages whose state is asked for at once */
#define BUSY_MAX 20u  /* attempts at pages that somebody holds just now */
#define TRY_MAX	 50u  /* attempts at a slice, between which those who wait go on: they may hold what is missing */

#define PAGE_IN_USE (UINT64_C(3) << 62) /* of /proc/self/pagemap: present or swapped out */

/* These are not reported to ourselves, see memwatch.h. */
static void *raw_mmap(void *addr, uint64_t len, int prot, int flags, int fd, uint64_t offset)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, (off_t)offset);
}

static void raw_munmap(void *addr, uint64_t len)
{
	if (len)
		syscall(SYS_munmap, addr, len);
}

static int raw_madvise(void *addr, uint64_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
}

static bool raw_remap(void *from, uint64_t len, uint64_t to)
{
	return syscall(SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)to;
}

/* ---- what is in use ---------------------------------------------------------------- */

/* A run of pages in use: `from` where they are, `to` where they go. */
typedef bool (*run_fn)(unsigned char *to, unsigned char *from, uint64_t len);

/* Asked for first, so that a lack of memory is an answer and not a signal. */
static bool populate(unsigned char *at, uint64_t len)
{
	return raw_madvise(at, len, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

/* The second: pages that a fork's child shares become our own, for others cannot be taken out. */
static bool prepare_run(unsigned char *to, unsigned char *from, uint64_t len)
{
	return populate(to, len) && populate(from, len);
}

static bool copy_run(unsigned char *to, unsigned char *from, uint64_t len)
{
	if (!populate(to, len))
		return false;
	emu_copy_unwatched(to, from, len);
	return true;
}

/*
 * Calls run for what is in use of [from, from+len); what never was written stays a hole, and reads as zero as before;
 * but for all of what is shared already, of which the page tables need not know.
 */
static bool for_runs(unsigned char *to, unsigned char *from, uint64_t len, bool all, run_fn run)
{
	uint64_t state[STATES], at = 0, i, n;
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	bool done = true;

	while (done && at < len) {
		n = (len - at) / PAGE < STATES ? (len - at) / PAGE : STATES;
		if (all || pread(pagemap, state, n * 8, (off_t)(((uintptr_t)from + at) / PAGE * 8)) != (ssize_t)(n * 8))
			memset(state, 0xff, sizeof(state)); /* or it does not say */
		for (i = 0; done && i < n;) {
			uint64_t first = i;

			while (i < n && state[i] & PAGE_IN_USE)
				i++;
			if (i > first)
				done = run(to + at + first * PAGE, from + at + first * PAGE, (i - first) * PAGE);
			while (i < n && !(state[i] & PAGE_IN_USE))
				i++;
		}
		at += n * PAGE;
	}
	if (pagemap >= 0)
		close(pagemap);
	return done;
}

/* ---- taking pages out ---------------------------------------------------------------- */

/* Faults that the kernel takes in a system call must wait too, so UFFD_USER_MODE_ONLY would not do. */
static int open_uffd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), dev;

	if (fd >= 0 || errno != EPERM)
		return fd;
	dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -1;
	fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
	close(dev);
	return fd;
}

int nic_adopt_open_mover(const char **why_p)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_MOVE};
	int fd = open_uffd();

	*why_p = "other threads run, and userfaultfd, which makes them wait, is not allowed here; see "
		 "vm.unprivileged_userfaultfd";
	if (fd < 0)
		return -1;
	if (ioctl(fd, UFFDIO_API, &api) == 0 && api.features & FEATURE_MOVE)
		return fd;
	*why_p = "other threads run, and this kernel's userfaultfd cannot move pages; Linux 6.8's can";
	close(fd);
	return -1;
}

static bool watch(int uffd, const void *addr, uint64_t len)
{
	struct uffdio_register range = {.range = {.start = (uintptr_t)addr, .len = len},
					.mode = UFFDIO_REGISTER_MODE_MISSING};

	return ioctl(uffd, UFFDIO_REGISTER, &range) == 0;
}

/* Who waits goes on. */
static void unwatch(int uffd, const void *addr, uint64_t len)
{
	struct uffdio_range range = {.start = (uintptr_t)addr, .len = len};
	int saved = errno;

	ioctl(uffd, UFFDIO_UNREGISTER, &range);
	errno = saved;
}

static void wake(int uffd, const void *addr, uint64_t len)
{
	struct uffdio_range range = {.start = (uintptr_t)addr, .len = len};

	ioctl(uffd, UFFDIO_WAKE, &range);
}

/* Moves pages of one mapping; how many bytes.  If not all, errno says why. */
static uint64_t shift(int uffd, unsigned char *to, unsigned char *from, uint64_t len)
{
	uint64_t done = 0;
	unsigned busy = 0;

	while (done < len) {
		struct uffd_move move = {(uintptr_t)to + done, (uintptr_t)from + done, len - done, MOVE_HOLES, 0};
		int failed = ioctl(uffd, UFFD_MOVE, &move) < 0 ? errno : 0;

		if (move.moved > 0)
			done += (uint64_t)move.moved;
		if (move.moved > 0 || failed == EAGAIN)
			continue;
		if (failed != EBUSY || ++busy > BUSY_MAX) {
			errno = failed;
			break;
		}
		sched_yield();
	}
	return done;
}

/* As shift, of pages that several mappings show. */
static uint64_t take_out(int uffd, int vma_fd, unsigned char *to, unsigned char *from, uint64_t len)
{
	uint64_t done = 0;
	struct nic_vma vma;

	while (done < len && nic_vma_find(vma_fd, (uintptr_t)from + done, &vma)) {
		uint64_t n = vma.end - ((uintptr_t)from + done), moved;

		n = n < len - done ? n : len - done;
		moved = vma.start > (uintptr_t)from + done ? 0 : shift(uffd, to + done, from + done, n);
		done += moved;
		if (moved < n)
			break;
	}
	return done;
}

/* Back to a place whose protection the program has changed meanwhile: it is writable for this moment. */
static uint64_t shift_protected(int uffd, const struct nic_vma *vma, unsigned char *place, unsigned char *out,
				uint64_t len)
{
	int prot = (vma->readable ? PROT_READ : 0) | (vma->executable ? PROT_EXEC : 0);
	uint64_t done;

	syscall(SYS_mprotect, place, len, PROT_READ | PROT_WRITE);
	done = shift(uffd, place, out, len);
	syscall(SYS_mprotect, place, len, prot);
	return done;
}

/*
 * They were there before, so there is room for them: this ends.  What the
 * program has unmapped or mapped over meanwhile needs nothing any more.
 */
static void put_back(int uffd, int vma_fd, unsigned char *place, unsigned char *out, uint64_t len)
{
	uint64_t done = 0, to, n;
	struct nic_vma vma;

	while (done < len && nic_vma_find(vma_fd, (uintptr_t)place + done, &vma) &&
	       vma.start < (uintptr_t)place + len) {
		if (vma.start > (uintptr_t)place + done)
			done = vma.start - (uintptr_t)place;
		to = vma.end - (uintptr_t)place;
		to = to < len ? to : len;
		errno = 0;
		n = vma.writable ? shift(uffd, place + done, out + done, to - done)
				 : shift_protected(uffd, &vma, place + done, out + done, to - done);
		done += n;
		if (done < to && errno != EBUSY && errno != ENOMEM)
			done = to;
		else if (done < to)
			sched_yield();
	}
}

/* ---- one slice ----------------------------------------------------------------------- */

struct slice {
	unsigned char *place, *aside;
	uint64_t len;
};

/* Nobody has changed the place's protection meanwhile. */
static bool is_as_it_was(int vma_fd, const struct slice *slice)
{
	uint64_t at = (uintptr_t)slice->place, end = at + slice->len;
	struct nic_vma vma;

	for (; at < end; at = vma.end)
		if (!nic_vma_find(vma_fd, at, &vma) || vma.start > at || !nic_vma_is_plain(&vma))
			return false;
	return true;
}

/* False with errno EBUSY: somebody holds a page just now. */
static bool move_out_and_over(int uffd, int vma_fd, const struct slice *slice, unsigned char *out)
{
	uint64_t taken = take_out(uffd, vma_fd, out, slice->place, slice->len);
	int why = errno;
	bool moved;

	if (taken < slice->len) {
		put_back(uffd, vma_fd, slice->place, out, taken);
		errno = why;
		return false;
	}
	unwatch(uffd, out, slice->len); /* or we would wait at its holes */
	moved = for_runs(slice->aside, out, slice->len, false, copy_run) && is_as_it_was(vma_fd, slice) &&
		raw_remap(slice->aside, slice->len, (uintptr_t)slice->place);
	if (!moved)
		put_back(uffd, vma_fd, slice->place, out, slice->len);
	errno = 0;
	return moved;
}

/* Somewhere with the same place in a huge page, so that huge pages can be taken whole. */
static unsigned char *map_out(const struct slice *slice, unsigned char **room_p)
{
	unsigned char *room =
		raw_mmap(NULL, slice->len + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return NULL;
	*room_p = room;
	return room + ((uintptr_t)slice->place - (uintptr_t)room) % HUGE;
}

/* out: of map_out, empty before and after. */
static bool try_slice(int uffd, int vma_fd, const struct slice *slice, unsigned char *out)
{
	bool moved = false;

	if (!for_runs(slice->aside, slice->place, slice->len, false, prepare_run) || !watch(uffd, out, slice->len))
		return false;
	if (watch(uffd, slice->place, slice->len)) {
		moved = move_out_and_over(uffd, vma_fd, slice, out);
		if (moved)
			wake(uffd, slice->place, slice->len);
		else
			unwatch(uffd, slice->place, slice->len);
	}
	unwatch(uffd, out, slice->len);
	return moved;
}

static bool move_slice_safely(int uffd, int vma_fd, const struct slice *slice)
{
	unsigned char *room, *out = map_out(slice, &room);
	uint32_t tries = 1;
	bool moved;

	if (!out)
		return false;
	errno = 0;
	while (!(moved = try_slice(uffd, vma_fd, slice, out)) && errno == EBUSY && tries++ < TRY_MAX)
		sched_yield();
	raw_munmap(room, slice->len + HUGE);
	return moved;
}

static bool move_slice(int uffd, int vma_fd, const struct slice *slice, bool again)
{
	if (uffd >= 0 && !again)
		return move_slice_safely(uffd, vma_fd, slice);
	return for_runs(slice->aside, slice->place, slice->len, again, copy_run) &&
	       raw_remap(slice->aside, slice->len, (uintptr_t)slice->place);
}

/* ---- one piece ----------------------------------------------------------------------- */

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

/* vm.overcommit_memory=2: what is mapped is promised.  Without an allocation. */
static bool is_promised(void)
{
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	char mode = '0';
	bool read_it;

	if (fd < 0)
		return false;
	read_it = read(fd, &mode, 1) == 1;
	close(fd);
	return read_it && mode == '2';
}

/*
 * Private memory that was never written has been promised to the program where the
 * system promises: it would be able to write there.  Of a memfd's holes nobody keeps
 * count, and who touches one when there is no memory gets a signal.  So there all of
 * the piece gets memory now, or stays private.
 */
static bool reserve(const struct adopt_piece *piece)
{
	return !is_promised() ||
	       fallocate(nic_adopt.fd, 0, (off_t)piece->offset, (off_t)(piece->end - piece->start)) == 0;
}

/* How many bytes have moved. */
static uint64_t move_slices(int uffd, int vma_fd, const struct adopt_piece *piece, unsigned char *aside, bool again)
{
	uint64_t at = piece->start;

	while (at < piece->end) {
		uint64_t stop = (at / SLICE + 1) * SLICE;
		struct slice slice = {(unsigned char *)(uintptr_t)at, aside + (at - piece->start), 0};

		if (again || stop > piece->end)
			stop = piece->end; /* again: the pages of both kinds become one piece, or none does */
		slice.len = stop - at;
		if (!move_slice(uffd, vma_fd, &slice, again))
			break;
		at = stop;
	}
	return at - piece->start;
}

bool nic_adopt_move(int uffd, int vma_fd, struct adopt_piece *piece, bool again)
{
	uint64_t len = piece->end - piece->start, moved;
	unsigned char *room, *aside;

	aside = map_aside(piece, &room);
	if (!aside)
		return false;
	if (len >= HUGE)
		raw_madvise(aside, len, MADV_HUGEPAGE);
	moved = reserve(piece) ? move_slices(uffd, vma_fd, piece, aside, again) : 0;
	raw_munmap(room, (uint64_t)(aside - room)); /* I5: between these two somebody else may be */
	raw_munmap(aside + moved, (uint64_t)(room + len + HUGE - (aside + moved)));
	if (moved < len)
		fallocate(nic_adopt.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(piece->offset + moved),
			  (off_t)(len - moved));
	piece->end = piece->start + moved;
	return moved > 0;
}
