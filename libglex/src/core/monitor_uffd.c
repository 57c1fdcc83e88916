/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * monitor_uffd.c - changes of memory as the kernel reports them by userfaultfd.
 *
 *   munmap(tracked) --> the kernel unmaps --> waits ............... returns
 *                                               |  event              ^
 *                                               v                     |
 *                            this thread: poll, hold, read -----------+--> log, unhold
 *
 * Ranges are tracked in write-protect mode in which nothing is ever protected:
 * so no page fault comes here, and none can hang; only the events of munmap,
 * mremap and madvise do.  All of them, from whoever makes the call, with or
 * without the C library.
 *
 * Who unmaps waits until the event has been read.  So the thread that reads
 * waits for nobody: it takes no lock and allocates nothing.
 *
 * The event comes late.  When the range is free already, and another thread may
 * have mapped something there, the event has perhaps not been read; and when
 * munmap returns, it has been read, and is perhaps not in the log.  settle()
 * closes both gaps: the kernel answers EAGAIN to those who want to change
 * protections while an event is on its way, even if the request makes no sense;
 * and the thread is `reading` from before it reads until the log is written.
 *
 * The price is the thread, whose presence costs every malloc and free of a
 * program with one thread some nanoseconds: so it is started for the first
 * region that needs it, and leaves with the device.
 *
 * label    access                       order     pairs     says
 * UFFD-R1  reader  reading = 1          seq_cst   UFFD-A1   before the kernel lets who unmaps go on
 * UFFD-R2  reader  reading = 0          release   UFFD-A1   what was read is in the log
 * UFFD-A1  settle  load reading         seq_cst   UFFD-R1 UFFD-R2   after the kernel said that nothing is on its way
 */
#include "core/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cfg/log.h"

/* Known to kernels newer than the headers this may be built with. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define FEATURE_WP_SHMEM (UINT64_C(1) << 12) /* shared memory too */
#define FEATURE_WP_ASYNC (UINT64_C(1) << 15) /* protections, of which there are none, would lift by themselves */
#define EVENTS		 ((uint64_t)(UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE))
#define BATCH		 16
#define STACK		 (256u * 1024u)

static int uffd = -1, stop_fd = -1;
static pthread_t thread;
static _Atomic uint32_t reading;

/* ---- opening ------------------------------------------------------------------- */

static int open_uffd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	/* faults that the kernel takes for the process are what it does not trust everybody with: we need none */
	if (fd < 0 && errno == EPERM)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	return fd;
}

/* A descriptor that gives the events, or -1 with errno. */
static int open_with_events(void)
{
	static const uint64_t wishes[] = {FEATURE_WP_SHMEM | FEATURE_WP_ASYNC, FEATURE_WP_SHMEM};
	int fd = -1, error;

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		struct uffdio_api api = {.api = UFFD_API,
					 .features = EVENTS | UFFD_FEATURE_PAGEFAULT_FLAG_WP | wishes[i]};

		fd = open_uffd();
		if (fd < 0 || ioctl(fd, UFFDIO_API, &api) == 0)
			return fd;
		error = errno;
		close(fd);
		errno = error;
	}
	return -1;
}

bool glexi_uffd_allowed(void)
{
	int fd = open_with_events();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- the thread ------------------------------------------------------------------ */

static void report(const struct uffd_msg *msg)
{
	struct glexi_mem_change change;

	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		change = (struct glexi_mem_change){
			.kind = msg->event == UFFD_EVENT_UNMAP ? GLEXI_MEM_UNMAP : GLEXI_MEM_DISCARD,
			.addr = msg->arg.remove.start,
			.len = msg->arg.remove.end - msg->arg.remove.start,
		};
		break;
	case UFFD_EVENT_REMAP:
		change = (struct glexi_mem_change){
			.kind = GLEXI_MEM_MOVE, .addr = msg->arg.remap.from, .len = msg->arg.remap.len};
		break;
	default:
		return;
	}
	glexi_memwatch_begin(&change);
	glexi_memwatch_end(&change, true);
}

static void read_events(int fd)
{
	struct uffd_msg msgs[BATCH];
	ssize_t n;

	glexi_memwatch_hold();
	atomic_store_explicit(&reading, 1, memory_order_seq_cst); /* UFFD-R1 */
	while ((n = read(fd, msgs, sizeof(msgs))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(msgs[0]); i++)
			report(&msgs[i]);
	glexi_memwatch_unhold();
	atomic_store_explicit(&reading, 0, memory_order_release); /* UFFD-R2 */
}

static void *watch(void *arg)
{
	struct pollfd fds[2] = {{.fd = uffd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};

	(void)arg;
	while (poll(fds, 2, -1) < 0 || !fds[1].revents)
		if (fds[0].revents & POLLIN)
			read_events(fds[0].fd);
	return NULL;
}

/* errno's value. */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int error;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are not for us */
	error = pthread_create(&thread, &attr, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!error)
		pthread_setname_np(thread, "glex-memory");
	return error;
}

static void close_both(void)
{
	if (uffd >= 0)
		close(uffd);
	if (stop_fd >= 0)
		close(stop_fd);
	uffd = stop_fd = -1;
}

/* ---- for memwatch.c --------------------------------------------------------------- */

const char *glexi_uffd_start(void)
{
	int error;

	uffd = open_with_events();
	if (uffd < 0 && errno == EPERM)
		return "userfaultfd is not allowed here (a container's filter, or vm.unprivileged_userfaultfd)";
	if (uffd < 0)
		return "this kernel's userfaultfd does not report changes of memory; Linux 5.19 does";
	stop_fd = eventfd(0, EFD_CLOEXEC);
	error = stop_fd < 0 ? errno : start_thread();
	if (!error)
		return NULL;
	glexi_warn("starting the thread that reads userfaultfd failed: %s", strerror(error));
	close_both();
	return "its thread could not be started";
}

void glexi_uffd_stop(void)
{
	uint64_t one = 1;

	if (uffd < 0)
		return;
	if (write(stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(thread, NULL);
	close_both(); /* who waits for an event to be read is let go by it */
}

void glexi_uffd_forked(void)
{
	close_both(); /* the thread is not in the child, and the parent's events are none of its business */
	atomic_store_explicit(&reading, 0, memory_order_release); /* UFFD-R2 */
}

bool glexi_uffd_track(uint64_t start, uint64_t end)
{
	struct uffdio_register range = {.range = {.start = start, .len = end - start}, .mode = UFFDIO_REGISTER_MODE_WP};

	if (ioctl(uffd, UFFDIO_REGISTER, &range) == 0)
		return true;
	glexi_debug("userfaultfd cannot watch %llu bytes at %#llx: %s", (unsigned long long)(end - start),
		    (unsigned long long)start, strerror(errno));
	return false;
}

void glexi_uffd_settle(void)
{
	struct uffdio_writeprotect nothing = {.range = {.start = 0, .len = 0}};

	while (ioctl(uffd, UFFDIO_WRITEPROTECT, &nothing) < 0 && errno == EAGAIN)
		sched_yield();
	while (atomic_load_explicit(&reading, memory_order_seq_cst)) /* UFFD-A1 */
		sched_yield();
}
