/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.c - where messages go, and how often.
 *
 * I1  A line is put together on the stack and leaves with one write: nothing is
 *     shared between threads but the descriptor, so there is no lock that a
 *     fork could leave taken.
 * I2  The sink is written by glexi_log_setup inside the pthread_once of the
 *     configuration, before the threshold (LOG-R1), and read after it (LOG-A1).
 * I3  errno on return is errno on entry.
 *
 * If the log file cannot be opened, or a write fails, the message goes to
 * standard error, or nowhere: a message is never a reason to fail.
 *
 * label    access                          order     pairs    says
 * LOG-R1   setup  threshold, level         release   LOG-A1   the sink is complete
 * LOG-A1   write  load threshold           acquire   LOG-R1   the sink may be read
 */
#include "cfg/log.h"

#include "cfg/cfg.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE 1024

atomic_int glexi_log_threshold = GLEXI_LOG_UNREAD;

static struct {
	int fd;
	const char *name;
	char host[64];
	char rank[24];
} sink = {.fd = STDERR_FILENO, .name = "glex", .host = "?", .rank = "-"};

static const char *level_name(enum glexi_log_level level)
{
	static const char *const names[] = {
		[GLEXI_LOG_ERROR] = "error", [GLEXI_LOG_WARN] = "warn",	  [GLEXI_LOG_INFO] = "info",
		[GLEXI_LOG_DEBUG] = "debug", [GLEXI_LOG_TRACE] = "trace",
	};

	return names[level];
}

/* ---- lines --------------------------------------------------------------- */

static int put_prefix(char *line, size_t size, enum glexi_log_level level)
{
	struct timespec now;
	int day_seconds;

	/* by hand: localtime_r takes a lock, which a fork may leave taken (I1) */
	clock_gettime(CLOCK_REALTIME, &now);
	day_seconds = (int)(now.tv_sec % 86400);
	return snprintf(line, size, "%s: %s: [%02d:%02d:%02d.%06ld %s %d %s] ", sink.name, level_name(level),
			day_seconds / 3600, day_seconds / 60 % 60, day_seconds % 60, now.tv_nsec / 1000, sink.host,
			(int)getpid(), sink.rank);
}

static bool put_to(int fd, const char *line, size_t len)
{
	ssize_t done;

	do
		done = write(fd, line, len);
	while (done < 0 && errno == EINTR);
	return done >= 0;
}

static void put_line(const char *line, size_t len)
{
	if (!put_to(sink.fd, line, len) && sink.fd != STDERR_FILENO)
		put_to(STDERR_FILENO, line, len);
}

static atomic_uint left_out;

/* How many lines the limit held back since the last one that was printed. */
static void put_left_out(void)
{
	char line[LINE];
	unsigned int count;
	int len;

	/* relaxed: counter */
	if (!atomic_load_explicit(&left_out, memory_order_relaxed))
		return;
	/* relaxed: counter */
	count = atomic_exchange_explicit(&left_out, 0, memory_order_relaxed);
	if (!count)
		return;
	len = put_prefix(line, sizeof(line), GLEXI_LOG_WARN);
	len += snprintf(line + len, sizeof(line) - (size_t)len, "%u messages left out, too many at once\n", count);
	put_line(line, (size_t)len);
}

void glexi_log_write(enum glexi_log_level level, const char *format, ...)
{
	int saved_errno = errno;
	char line[LINE];
	va_list args;
	int len, more;

	/* LOG-A1 */
	if (atomic_load_explicit(&glexi_log_threshold, memory_order_acquire) == GLEXI_LOG_UNREAD)
		glexi_cfg();
	if (!glexi_log_on(level))
		goto out;
	put_left_out();
	len = put_prefix(line, sizeof(line), level);
	errno = saved_errno;
	va_start(args, format);
	more = vsnprintf(line + len, sizeof(line) - (size_t)len, format, args);
	va_end(args);
	if (more < 0)
		goto out;
	len += more;
	if (len > LINE - 2)
		len = LINE - 2;
	line[len] = '\n';
	put_line(line, (size_t)len + 1);
out:
	errno = saved_errno; /* I3 */
}

/* ---- once per cause ------------------------------------------------------ */

/*
 * The causes seen: a hash set that only grows, open addressing.  A full
 * neighbourhood makes a cause unknown for ever: then only the limit holds it
 * back.
 */
#define SEEN_SLOTS  1024
#define SEEN_PROBES 16

static _Atomic uint64_t seen[SEEN_SLOTS];

/*
 * The limit as one word: the time at which all the lines let through would be
 * paid for, at a line per INTERVAL.  It may run ahead of now by a burst.
 */
#define INTERVAL_NS (UINT64_C(1000000000) / 4)
#define BURST_NS    (32 * INTERVAL_NS)

static _Atomic uint64_t paid_until;

static uint64_t cause_hash(const void *site, uint64_t key)
{
	uint64_t x = (uint64_t)(uintptr_t)site * UINT64_C(0x9e3779b97f4a7c15) ^ key;

	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (x ^ x >> 32) | 1; /* 0 marks a free slot */
}

static bool limit_allows(void)
{
	struct timespec ts;
	uint64_t now, until, next;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
	/* relaxed: a limit, nothing is published with it */
	until = atomic_load_explicit(&paid_until, memory_order_relaxed);
	do {
		next = (until > now ? until : now) + INTERVAL_NS;
		if (next > now + BURST_NS) {
			/* relaxed: counter */
			atomic_fetch_add_explicit(&left_out, 1, memory_order_relaxed);
			return false;
		}
		/* relaxed: a limit, nothing is published with it */
	} while (!atomic_compare_exchange_weak_explicit(&paid_until, &until, next, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

bool glexi_log_first(const void *site, uint64_t key)
{
	uint64_t hash = cause_hash(site, key);
	_Atomic uint64_t *slot = NULL;
	uint64_t expected = 0;

	for (unsigned int i = 0; i < SEEN_PROBES && !slot; i++) {
		_Atomic uint64_t *candidate = &seen[(hash + i) % SEEN_SLOTS];
		/* relaxed: a set of numbers, nothing is published with it */
		uint64_t there = atomic_load_explicit(candidate, memory_order_relaxed);

		if (there == hash)
			return false;
		if (!there)
			slot = candidate;
	}
	/* Held back is not yet seen: the cause may speak when there is room again. */
	if (!limit_allows())
		return false;
	if (!slot)
		return true;
	/* relaxed: a set; who loses the slot to another thread with this cause is silent */
	return atomic_compare_exchange_strong_explicit(slot, &expected, hash, memory_order_relaxed,
						       memory_order_relaxed) ||
	       expected != hash;
}

/* ---- set-up -------------------------------------------------------------- */

void glexi_log_name(const char *name)
{
	sink.name = name;
}

/* %p: process, %h: host, %%: %. */
static void expand_path(const char *file, char *path, size_t size)
{
	size_t used = 0;

	for (; *file && used < size - 1; file++) {
		if (file[0] == '%' && file[1] == 'p')
			used += (size_t)snprintf(path + used, size - used, "%d", (int)getpid());
		else if (file[0] == '%' && file[1] == 'h')
			used += (size_t)snprintf(path + used, size - used, "%s", sink.host);
		else
			path[used++] = *file;
		if (file[0] == '%' && file[1] && strchr("ph%", file[1]))
			file++;
	}
	path[used < size ? used : size - 1] = '\0';
}

void glexi_log_setup(enum glexi_log_level level, const char *file, uint64_t rank)
{
	char path[4096];
	int fd = -1;

	if (gethostname(sink.host, sizeof(sink.host) - 1))
		strcpy(sink.host, "?");
	sink.host[strcspn(sink.host, ".")] = '\0';
	if (rank != GLEXI_CFG_UNSET)
		snprintf(sink.rank, sizeof(sink.rank), "%" PRIu64, rank);
	if (*file) {
		expand_path(file, path, sizeof(path));
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (fd >= 0)
			sink.fd = fd;
	}
	/* LOG-R1 */
	atomic_store_explicit(&glexi_log_threshold, level, memory_order_release);
	if (*file && fd < 0)
		glexi_warn("GLEX_LOG_FILE: opening %s failed: %m; standard error is used", path);
}
