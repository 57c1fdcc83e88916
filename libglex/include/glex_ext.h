/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_ext.h - what libglex has beyond the real GLEX2 interface.
 *
 * Kept as small as can be: a program that uses it needs an #ifdef to be built
 * for the hardware.
 */
#ifndef GLEX_EXT_H
#define GLEX_EXT_H

#include <glex.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/*
 * Set it to 1 before the first endpoint is created if only one thread of the
 * process makes GLEX calls: the endpoints' locks then vanish.  It is exported by
 * the vendor's library too.
 */
extern int glex_single_threaded;

/*
 * Allocates len bytes (rounded up to whole pages) that are shareable from the
 * start: zeroed, page-aligned, and, once registered, reached by other processes
 * as a mapping, by plain copies, where private memory takes a system call a
 * transfer.  Anything inside may be registered any number of times.
 * GLEX_NO_MEM_RESOURCE: the system has not that much shared memory.
 * Thread-safe.  The memory belongs to the caller until glex_free, at the latest
 * when the process ends; it must not be unmapped by other means.
 */
glex_ret_t glex_alloc(glex_device_handle_t dev, uint64_t len, void **addr_p);

/* addr: what glex_alloc gave.  Deregister the regions inside first.  GLEX_INVALID_PARAM: not such an address. */
glex_ret_t glex_free(glex_device_handle_t dev, void *addr);

/*
 * The value in force of a numeric variable of glex_env(7): for the layers above,
 * which have their rows in the same table and so need no parser of their own.
 * Sizes in bytes, times in the unit of the row.  GLEX_INVALID_PARAM: no such
 * variable, or not a number.  Thread-safe, needs no device.
 */
glex_ret_t glex_config_uint(const char *name, uint64_t *value_p);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* GLEX_EXT_H */
