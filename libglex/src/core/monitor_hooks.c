/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * monitor_hooks.c - changes of memory as libglex-memhooks.so sees them.
 *
 * The library is found by the name of its one call.  That it is in the process
 * does not mean that it stands before everybody else (it may have been loaded
 * late, or an allocator may have functions of its own), so it has to show that
 * it sees an unmapping, an advice, and the freeing of a large block.
 */
#include "core/monitor.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libglex/memhooks/memhooks.h"

#define TRIAL_BYTES ((size_t)64 << 20) /* never touched */

static _Atomic uint64_t trial; /* an address whose change is waited for */

static struct glexi_mem_change change_of(const struct glex_memhooks_change *change)
{
	static const enum glexi_mem_kind kinds[] = {
		[GLEX_MEMHOOKS_UNMAP] = GLEXI_MEM_UNMAP,
		[GLEX_MEMHOOKS_MOVE] = GLEXI_MEM_MOVE,
		[GLEX_MEMHOOKS_DISCARD] = GLEXI_MEM_DISCARD,
		[GLEX_MEMHOOKS_RELEASE] = GLEXI_MEM_RELEASE,
	};

	return (struct glexi_mem_change){.kind = kinds[change->kind],
					 .how = change->how,
					 .addr = change->addr,
					 .len = change->len,
					 .to = change->to,
					 .to_len = change->to_len};
}

static void hooks_begin(const struct glex_memhooks_change *what)
{
	struct glexi_mem_change change = change_of(what);
	uint64_t at = atomic_load_explicit(&trial, memory_order_relaxed); /* relaxed: set by the thread that tries */

	if (at >= change.addr && at - change.addr < change.len)
		atomic_store_explicit(&trial, 0, memory_order_relaxed); /* relaxed: see above */
	glexi_memwatch_begin(&change);
}

static void hooks_end(const struct glex_memhooks_change *what, int done)
{
	struct glexi_mem_change change = change_of(what);

	glexi_memwatch_end(&change, done != 0);
}

static const struct glex_memhooks_client us = {GLEX_MEMHOOKS_VERSION, hooks_begin, hooks_end};

/* ---- trying them ----------------------------------------------------------------- */

static void expect(const void *addr)
{
	atomic_store_explicit(&trial, (uintptr_t)addr, memory_order_relaxed); /* relaxed: for this thread */
}

static bool came(void)
{
	return atomic_exchange_explicit(&trial, 0, memory_order_relaxed) == 0; /* relaxed: from this thread */
}

static bool sees_mappings(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool advice, unmapping;

	if (page == MAP_FAILED)
		return false;
	expect(page);
	madvise(page, 4096, MADV_DONTNEED);
	advice = came();
	expect(page);
	munmap(page, 4096);
	unmapping = came();
	return advice && unmapping;
}

static bool sees_free(void)
{
	void *block = malloc(TRIAL_BYTES);

	if (!block)
		return false;
	expect(block); /* which also tells the compiler that somebody uses it */
	free(block);
	return came();
}

/* ---- for memwatch.c --------------------------------------------------------------- */

static glex_memhooks_connect_fn find(void)
{
	return (glex_memhooks_connect_fn)dlsym(RTLD_DEFAULT, "glex_memhooks_connect");
}

bool glexi_hooks_present(void)
{
	return find() != NULL;
}

const char *glexi_hooks_start(void)
{
	glex_memhooks_connect_fn connect = find();

	if (!connect)
		return "libglex-memhooks.so is not in the process; preload it, or link with -lglex-memhooks";
	if (connect(&us) != 0)
		return "libglex-memhooks.so is of another version";
	if (!sees_mappings())
		return "libglex-memhooks.so does not see munmap and madvise; it must be loaded before the C library";
	if (!sees_free())
		return "libglex-memhooks.so does not see the memory allocator; it must be loaded before it";
	return NULL;
}
