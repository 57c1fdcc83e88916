/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h - messages of the library, of glexd and of the tools.
 *
 *	glexi_warn("mapping vport %u failed: %zu KiB: %m; see GLEX_NODES", n, kib);
 *
 * prints, with one write, so that lines of several processes do not mix,
 *
 *	glex: warn: [13:05:42.123456 host 4711 3] mapping vport 3 failed: ...
 *
 * time of day in UTC, host, process, rank (or -).  The first function that
 * decides an error logs it, once: exact cause, value, what to do; lower case,
 * with units, without `=`.  BUSY, NO_MP and NO_EVENT are answers, not errors.
 *
 * A message that is not printed costs one relaxed load; its arguments are not
 * evaluated.  errno is left alone, and %m works.  Everything here may be called
 * by any thread, with any lock held, and after fork; not by signal handlers.
 */
#ifndef GLEXI_LOG_H
#define GLEXI_LOG_H

#ifndef GLEXI_BUILD
#error "log.h is not for users"
#endif

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum glexi_log_level {
	GLEXI_LOG_ERROR, /* the caller gets an error because of this */
	GLEXI_LOG_WARN,	 /* it goes on, not as asked for */
	GLEXI_LOG_INFO,	 /* what was chosen, and why: a few lines a process */
	GLEXI_LOG_DEBUG, /* what happens to objects: creation, mapping, death */
	GLEXI_LOG_TRACE	 /* what happens to requests */
};

/* Before the configuration is read it lets everything through to the slow path, which reads it. */
#define GLEXI_LOG_UNREAD 127

extern atomic_int glexi_log_threshold;

/* relaxed: nothing is published with it */
#define glexi_log_on(level) ((int)(level) <= atomic_load_explicit(&glexi_log_threshold, memory_order_relaxed))

__attribute__((format(printf, 2, 3), cold)) void glexi_log_write(enum glexi_log_level level, const char *format, ...);

#define glexi_log(level, ...)                                                                                          \
	do {                                                                                                           \
		if (glexi_log_on(level))                                                                               \
			glexi_log_write(level, __VA_ARGS__);                                                           \
	} while (0)

#define glexi_error(...) glexi_log(GLEXI_LOG_ERROR, __VA_ARGS__)
#define glexi_warn(...)	 glexi_log(GLEXI_LOG_WARN, __VA_ARGS__)
#define glexi_info(...)	 glexi_log(GLEXI_LOG_INFO, __VA_ARGS__)
#define glexi_debug(...) glexi_log(GLEXI_LOG_DEBUG, __VA_ARGS__)
#define glexi_trace(...) glexi_log(GLEXI_LOG_TRACE, __VA_ARGS__)

/*
 * Once per cause: the first message of this place in the source with this key
 * (an address, a handle, a status: whatever makes it another cause).  All of
 * them together are limited to a burst of 32 lines and then 4 a second; what is
 * left out is counted in the next line, and the cause may speak again later.
 */
#define glexi_log_once(level, key, ...)                                                                                \
	do {                                                                                                           \
		static const char glexi_site_;                                                                         \
		if (glexi_log_on(level) && glexi_log_first(&glexi_site_, (key)))                                       \
			glexi_log_write(level, __VA_ARGS__);                                                           \
	} while (0)

#define glexi_error_once(key, ...) glexi_log_once(GLEXI_LOG_ERROR, key, __VA_ARGS__)
#define glexi_warn_once(key, ...)  glexi_log_once(GLEXI_LOG_WARN, key, __VA_ARGS__)
#define glexi_info_once(key, ...)  glexi_log_once(GLEXI_LOG_INFO, key, __VA_ARGS__)

/* True if (site, key) was not seen before and the limit leaves room for a line. */
bool glexi_log_first(const void *site, uint64_t key);

/* The word lines begin with, "glex" until set; a constant string.  For programs, before their first message. */
void glexi_log_name(const char *name);

/* Called by the configuration once it is known.  rank: GLEXI_CFG_UNSET where there is none. */
void glexi_log_setup(enum glexi_log_level level, const char *file, uint64_t rank);

#endif /* GLEXI_LOG_H */
