/* SPDX-License-Identifier: BSD-2-Clause */
/* adopt.h - what the tests of adopted memory have in common. */
#ifndef TEST_ADOPT_H
#define TEST_ADOPT_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/lib/helper.h"

#define RW   (GLEX_MEM_READ | GLEX_MEM_WRITE)
#define PAGE ((size_t)4096)
#define LEN  ((size_t)1 << 18)

static inline unsigned char *pages(size_t len)
{
	unsigned char *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(base, MAP_FAILED);
	return base;
}

/* The mapping that holds addr is shared. */
static inline bool is_shared(const void *addr)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	bool shared = false;
	char line[512], mode[5];

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && (uintptr_t)addr >= from &&
		    (uintptr_t)addr < to)
			shared = mode[3] == 's';
	fclose(maps);
	return shared;
}

/* Registers it as often as makes it hot, the last one stays. */
static inline glex_mem_handle_t make_hot(struct side *side, void *addr, size_t len)
{
	glex_mem_handle_t mh;
	int i;

	for (i = 0; i < 7; i++) {
		OK(glex_register_mem(side->ep, addr, len, RW, &mh));
		OK(glex_deregister_mem(side->ep, mh));
	}
	OK(glex_register_mem(side->ep, addr, len, RW, &mh));
	return mh;
}

/* Another thread, which does nothing. */
struct sleeper {
	pthread_mutex_t until;
	pthread_t thread;
};

static inline void *sleeper_main(void *arg)
{
	struct sleeper *sleeper = arg;

	pthread_mutex_lock(&sleeper->until);
	pthread_mutex_unlock(&sleeper->until);
	return NULL;
}

static inline void sleeper_start(struct sleeper *sleeper)
{
	pthread_mutex_init(&sleeper->until, NULL);
	pthread_mutex_lock(&sleeper->until);
	ck_assert_int_eq(pthread_create(&sleeper->thread, NULL, sleeper_main, sleeper), 0);
}

static inline void sleeper_end(struct sleeper *sleeper)
{
	pthread_mutex_unlock(&sleeper->until);
	pthread_join(sleeper->thread, NULL);
}

/* The system may write to this page whenever it likes, until the descriptor is closed; -1: it does not do that. */
static inline int pin_page(unsigned char *page)
{
	struct iovec iov = {page, PAGE};
	unsigned char params[120] = "";
	int ring = (int)syscall(SYS_io_uring_setup, 4, params);

	if (ring >= 0)
		ck_assert_int_eq(syscall(SYS_io_uring_register, ring, 0, &iov, 1), 0);
	return ring;
}

/* Looking for what does not come, as programs do; that is when the library sees to its memory. */
static inline void idle(struct side *side)
{
	glex_ep_addr_t from;
	char data[128];
	uint32_t len;

	for (int i = 0; i < 70000; i++)
		glex_receive_mp(side->ep, 0, &from, data, &len);
}

static inline void open_adopting(struct side *side, const char *when)
{
	setenv("GLEX_ADOPT", when, 1);
	side_open(side, GLEX_EP_TYPE_FAST, 0, false);
}

#endif /* TEST_ADOPT_H */
