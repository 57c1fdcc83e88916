/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memhooks.c - libglex-memhooks.so: tells libglex what the process does to its
 * memory, by standing before the C library's functions of the same names.
 *
 * Until libglex connects each of them costs one load.  They take no lock and
 * allocate nothing, so they work before constructors, inside malloc, in signal
 * handlers and in a fork's child.
 *
 * What glibc calls inside itself does not come through here, and malloc does
 * that in four places:
 *
 *   free, realloc of a block that has a mapping of its own   these are wrapped; realloc is taken for an mremap
 *   the top of the heap goes back (sbrk, MADV_DONTNEED)      M_TRIM_THRESHOLD: never
 *   a thread's heap goes back when it is empty               M_TOP_PAD: more than a heap's length
 *   malloc_trim                                              wrapped: does nothing
 *
 * A block with a mapping of its own ends where its last page ends; a block in a
 * heap never does, as the next one's size comes before it.  Other allocators
 * that are loaded (LD_PRELOAD) unmap and advise through the names wrapped here.
 * libglex tries, when it connects, whether a large free() is seen; if not, it
 * does not rely on these hooks.
 *
 * Escapes by nature: syscall(2), what is linked statically, process_madvise(2).
 *
 * at once     everything by any thread
 * label       access                   order     pairs     says
 * HOOK-R1     libglex  client = c      release   HOOK-A1   the client is complete
 * HOOK-A1     caller   load client     acquire   HOOK-R1   it may be called
 */
#include "libglex/memhooks/memhooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT	   __attribute__((visibility("default")))
#define SMALL_PAGE 4096u /* the smallest there is: a block that ends with a page ends with one of these */
#define TOP_PAD	   (65 << 20)

static _Atomic(const struct glex_memhooks_client *) the_client;

/* Who must be told; NULL: nobody. */
static const struct glex_memhooks_client *client(void)
{
	return atomic_load_explicit(&the_client, memory_order_acquire); /* HOOK-A1 */
}

struct change {
	const struct glex_memhooks_client *client;
	struct glex_memhooks_change what;
};

static struct change begin(enum glex_memhooks_kind kind, int how, const void *addr, uint64_t len)
{
	struct change change = {client(), {.kind = kind, .how = how, .addr = (uintptr_t)addr, .len = len}};

	if (!len)
		change.client = NULL;
	if (change.client)
		change.client->begin(&change.what);
	return change;
}

static void end(const struct change *change, bool done)
{
	if (change->client)
		change->client->end(&change->what, done);
}

/* The function of this name behind us; NULL while this very thread looks for it, or if there is none. */
static void *next(_Atomic(void *) *cache, const char *name)
{
	static __thread __attribute__((tls_model("initial-exec"))) bool looking;
	void *found = atomic_load_explicit(cache, memory_order_relaxed); /* relaxed: known to the linker before */

	if (found || looking)
		return found;
	looking = true;
	found = dlsym(RTLD_NEXT, name);
	looking = false;
	atomic_store_explicit(cache, found, memory_order_relaxed); /* relaxed: see above */
	return found;
}

/* ---- mappings ----------------------------------------------------------------- */

EXPORT int munmap(void *addr, size_t len)
{
	struct change change = begin(GLEX_MEMHOOKS_UNMAP, 0, addr, len);
	int ret = (int)syscall(SYS_munmap, addr, len);

	end(&change, ret == 0);
	return ret;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	bool lands = (flags & MAP_FIXED) && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE;
	struct change change = begin(GLEX_MEMHOOKS_UNMAP, 0, addr, lands ? len : 0);
	void *ret = (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);

	end(&change, ret != MAP_FAILED);
	return ret;
}

_Static_assert(sizeof(off_t) == 8, "mmap and mmap64 are the same");
EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset) __attribute__((alias("mmap")));

EXPORT void *mremap(void *addr, size_t old_len, size_t new_len, int flags, ...)
{
	struct change from = begin(GLEX_MEMHOOKS_MOVE, flags, addr, old_len), onto;
	void *to = NULL, *ret;
	va_list args;

	if (flags & MREMAP_FIXED) {
		va_start(args, flags);
		to = va_arg(args, void *);
		va_end(args);
	}
	onto = begin(GLEX_MEMHOOKS_UNMAP, 0, to, to ? new_len : 0);
	ret = (void *)syscall(SYS_mremap, addr, old_len, new_len, flags, to);
	from.what.to = (uintptr_t)ret;
	from.what.to_len = new_len;
	end(&onto, ret != MAP_FAILED);
	end(&from, ret != MAP_FAILED);
	return ret;
}

static bool destroys(int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_REMOVE:
	case 24:  /* MADV_DONTNEED_LOCKED */
	case 102: /* MADV_GUARD_INSTALL */
		return true;
	default:
		return false;
	}
}

EXPORT int madvise(void *addr, size_t len, int advice)
{
	struct change change = begin(GLEX_MEMHOOKS_DISCARD, advice, addr, destroys(advice) ? len : 0);
	int ret = (int)syscall(SYS_madvise, addr, len, advice);

	end(&change, ret == 0);
	return ret;
}

/* ---- the break ------------------------------------------------------------------ */

/* The C library keeps the break in a variable of its own, so its functions must be called. */
static void *real_sbrk(intptr_t step)
{
	static _Atomic(void *) cache;
	void *(*call)(intptr_t) = (void *(*)(intptr_t))next(&cache, "sbrk");

	if (call)
		return call(step);
	errno = ENOMEM;
	return (void *)-1;
}

EXPORT void *sbrk(intptr_t step)
{
	char *top = step < 0 && client() ? real_sbrk(0) : NULL;
	struct change change = begin(GLEX_MEMHOOKS_UNMAP, 0, top ? top + step : NULL, top ? (uint64_t)-step : 0);
	void *ret = real_sbrk(step);

	end(&change, ret != (void *)-1);
	return ret;
}

EXPORT int brk(void *addr)
{
	static _Atomic(void *) cache;
	int (*call)(void *) = (int (*)(void *))next(&cache, "brk");
	char *top = client() ? real_sbrk(0) : NULL;
	uint64_t less = top && (char *)addr < top ? (uint64_t)(top - (char *)addr) : 0;
	struct change change = begin(GLEX_MEMHOOKS_UNMAP, 0, addr, less);
	int ret = -1;

	if (call)
		ret = call(addr);
	else
		errno = ENOMEM;
	end(&change, ret == 0);
	return ret;
}

/* ---- System V segments ------------------------------------------------------------ */

/* Follows lines of /proc/self/maps, which begin with `from-to `. */
struct lines {
	uint64_t number[2];
	int field; /* 0 from, 1 to, 2 the rest */
};

/* True when both numbers of a line are there. */
static bool step(struct lines *lines, char c)
{
	if (c == '\n')
		*lines = (struct lines){0};
	else if (lines->field < 2 && (c == '-' || c == ' '))
		return ++lines->field == 2;
	else if (lines->field < 2)
		lines->number[lines->field] =
			lines->number[lines->field] * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	return false;
}

/* The length of the mapping that begins at addr, or 0; if that cannot be found out, all that may be of it. */
static uint64_t length_at(uint64_t addr)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct lines lines = {0};
	uint64_t len = 0;
	char text[1024];
	long n;

	while (fd >= 0 && !len && (n = syscall(SYS_read, fd, text, sizeof(text))) > 0)
		for (long i = 0; i < n && !len; i++)
			if (step(&lines, text[i]) && lines.number[0] == addr)
				len = lines.number[1] - addr;
	if (fd < 0)
		return UINT64_MAX - addr;
	syscall(SYS_close, fd);
	return len;
}

EXPORT int shmdt(const void *addr)
{
	int saved = errno;
	uint64_t len = client() ? length_at((uintptr_t)addr) : 0;
	struct change change = begin(GLEX_MEMHOOKS_UNMAP, 0, addr, len);
	int ret;

	errno = saved;
	ret = (int)syscall(SYS_shmdt, addr);
	end(&change, ret == 0);
	return ret;
}

EXPORT void *shmat(int id, const void *addr, int flags)
{
	struct shmid_ds info;
	bool lands = (flags & SHM_REMAP) && client() && shmctl(id, IPC_STAT, &info) == 0;
	struct change change = begin(GLEX_MEMHOOKS_UNMAP, 0, addr, lands ? info.shm_segsz : 0);
	void *ret = (void *)syscall(SYS_shmat, id, addr, flags);

	end(&change, ret != (void *)-1);
	return ret;
}

/* ---- the allocator ---------------------------------------------------------------- */

/* How much of a block that has a mapping of its own can be used, to the mapping's end; 0: it lies in a heap. */
static size_t own_mapping(void *block)
{
	size_t usable = block && client() ? malloc_usable_size(block) : 0;

	return ((uintptr_t)block + usable) % SMALL_PAGE == 0 ? usable : 0;
}

EXPORT void free(void *block)
{
	static _Atomic(void *) cache;
	void (*call)(void *);
	struct change change;
	size_t len;

	if (!block) /* an MPI does so for each message */
		return;
	call = (void (*)(void *))next(&cache, "free");
	if (!call) /* the linker frees while it looks for free: a few bytes stay */
		return;
	len = own_mapping(block);
	if (!len) { /* nearly always */
		call(block);
		return;
	}
	change = begin(GLEX_MEMHOOKS_RELEASE, 0, block, len);
	call(block);
	end(&change, true);
}

EXPORT void *realloc(void *block, size_t size)
{
	static _Atomic(void *) cache;
	void *(*call)(void *, size_t) = (void *(*)(void *, size_t))next(&cache, "realloc");
	size_t len = own_mapping(block), head = len ? (uintptr_t)block % SMALL_PAGE : 0;
	/* by mremap, where there is a mapping still; what lies before the block in its page goes with it */
	struct change change = begin(GLEX_MEMHOOKS_MOVE, MREMAP_MAYMOVE, (char *)block - head, len ? head + len : 0);
	void *ret = call ? call(block, size) : NULL;

	if (change.client && ret && (uintptr_t)ret % SMALL_PAGE == head) { /* else it has been copied */
		change.what.to = (uintptr_t)ret - head;
		change.what.to_len = head + malloc_usable_size(ret);
	}
	end(&change, ret != NULL || size == 0);
	return ret;
}

EXPORT int malloc_trim(size_t pad)
{
	static _Atomic(void *) cache;
	int (*call)(size_t) = (int (*)(size_t))next(&cache, "malloc_trim");

	return !client() && call ? call(pad) : 0;
}

static int real_mallopt(int param, int value)
{
	static _Atomic(void *) cache;
	int (*call)(int, int) = (int (*)(int, int))next(&cache, "mallopt");

	return call ? call(param, value) : 0;
}

EXPORT int mallopt(int param, int value)
{
	if (client() && (param == M_TRIM_THRESHOLD || param == M_TOP_PAD))
		return 1; /* they have their values for good */
	return real_mallopt(param, value);
}

EXPORT int glex_memhooks_connect(const struct glex_memhooks_client *c)
{
	if (c->version != GLEX_MEMHOOKS_VERSION)
		return -1;
	real_mallopt(M_TOP_PAD, TOP_PAD);
	real_mallopt(M_TRIM_THRESHOLD, -1);
	real_mallopt(M_MMAP_THRESHOLD, 32 << 20); /* smaller blocks stay in the heap, and so what is known of them */
	atomic_store_explicit(&the_client, c, memory_order_release); /* HOOK-R1 */
	return 0;
}
