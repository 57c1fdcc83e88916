/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_cost.c - what it takes to begin: the time until the first request can be
 * posted, the memory of an endpoint, a region from the registration cache.
 *
 * A process opens the device once, and the first time is what counts; so for
 * each sample this program starts itself anew.  glexd runs already: both sides
 * have it open.
 */
#include "perf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPENED, CREATED, REGISTERED, STEPS };

/* ---- the time ------------------------------------------------------------- */

int perf_open_once(uint64_t bytes)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = 1};
	glex_device_handle_t dev;
	glex_ep_handle_t ep;
	glex_mem_handle_t mh;
	uint64_t at[STEPS + 1];
	glex_ret_t ret;
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (mem == MAP_FAILED)
		return 1;
	at[0] = perf_now_ns();
	ret = glex_open_device(0, &dev);
	at[1] = perf_now_ns();
	if (ret == GLEX_SUCCESS)
		ret = glex_create_ep(dev, &attr, &ep);
	at[2] = perf_now_ns();
	if (ret == GLEX_SUCCESS)
		ret = glex_register_mem(ep, mem, bytes, GLEX_MEM_READ | GLEX_MEM_WRITE, &mh);
	at[3] = perf_now_ns();
	if (ret != GLEX_SUCCESS) {
		fprintf(stderr, "glex_perf: open: %s\n", glex_error_str(ret));
		return 1;
	}
	for (int i = 0; i < STEPS; i++)
		printf("%" PRIu64 "\n", at[i + 1] - at[i]);
	glex_deregister_mem(ep, mh);
	glex_destroy_ep(ep);
	glex_close_device(dev);
	return 0;
}

/* Becomes perf_open_once with its output in fd. */
static __attribute__((noreturn)) void become_opener(uint32_t size, int fd, int core)
{
	char option[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(option, sizeof(option), "--open-once=%u", size);
	perf_pin(core);
	dup2(fd, STDOUT_FILENO);
	execl("/proc/self/exe", "glex_perf", option, (char *)NULL);
	_exit(127);
}

static void open_sample(struct perf_side *s, uint32_t size, double ms[STEPS])
{
	int fd[2], status = 0;
	FILE *f = NULL;
	pid_t child;

	if (pipe2(fd, O_CLOEXEC) || !(f = fdopen(fd[0], "r")) || (child = fork()) < 0)
		perf_fail(s, "cannot start another process: %s", strerror(errno));
	if (child == 0)
		become_opener(size, fd[1], s->opt->core[0]);
	close(fd[1]);
	for (int i = 0; i < STEPS; i++) {
		uint64_t ns;

		if (fscanf(f, "%" SCNu64, &ns) != 1)
			perf_fail(s, "the process that opens the device failed");
		ms[i] = (double)ns / 1e6;
	}
	fclose(f);
	if (waitpid(child, &status, 0) != child || status)
		perf_fail(s, "the process that opens the device ended with status %d", status);
}

static void open_all(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	static const char *const name[STEPS] = {"open_ms", "create_ms", "register_ms"};
	double step[STEPS][PERF_WAKES], ms[STEPS];
	struct perf_stat stat;

	if (s->side == 1)
		return;
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		open_sample(s, plan->size, ms);
		perf_progress(s);
		if (k < plan->warmup)
			continue;
		sample[k - plan->warmup] = 0;
		for (int i = 0; i < STEPS; i++) {
			step[i][k - plan->warmup] = ms[i];
			sample[k - plan->warmup] += ms[i];
		}
	}
	for (int i = 0; i < STEPS; i++) {
		perf_stat_of(step[i], plan->samples, &stat);
		s->extra[i] = (struct perf_extra){name[i], stat.p50};
	}
}

/* ---- the memory ----------------------------------------------------------- */

/* Bytes of shared memory mapped here, all of which is really there; and of the heap. */
static uint64_t memory_now(struct perf_side *s)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct mallinfo2 heap = mallinfo2();
	uint64_t bytes = heap.uordblks + heap.hblkhd;
	char line[512];

	if (!f)
		perf_fail(s, "/proc/self/maps: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		uint64_t from, to;

		if (strstr(line, "/memfd:") && sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) == 2)
			bytes += to - from;
	}
	fclose(f);
	return bytes;
}

static void ep_mem(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	struct glex_ep_attr attr = {.type = s->opt->ep_type, .num = GLEX_ANY_EP_NUM, .key = 1};

	if (s->side == 1)
		return;
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		uint64_t before = memory_now(s);
		glex_ep_handle_t ep;
		glex_ret_t ret = glex_create_ep(s->dev, &attr, &ep);

		if (ret != GLEX_SUCCESS)
			perf_fail_ret(s, "glex_create_ep", ret);
		if (k >= plan->warmup)
			sample[k - plan->warmup] = (double)(memory_now(s) - before) / 1024;
		glex_destroy_ep(ep);
		perf_progress(s);
	}
}

/* ---- the registration cache ----------------------------------------------- */

#define HELD   64  /* regions got before any is put back */
#define ROUNDS 100 /* of that in a sample */

/* Nanoseconds of a get that finds its region, and of the put. */
static void hits(struct perf_side *s, glex_rcache_handle_t rc, uint32_t size, double *get_ns, double *put_ns)
{
	struct glex_rcache_region region[HELD];
	uint64_t get = 0, put = 0;
	glex_ret_t ret = GLEX_SUCCESS;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = perf_now_ns(), middle;

		for (int i = 0; i < HELD; i++)
			ret |= glex_rcache_get(rc, s->out, size, GLEX_MEM_READ, &region[i]);
		middle = perf_now_ns();
		for (int i = 0; i < HELD; i++)
			ret |= glex_rcache_put(rc, &region[i]);
		put += perf_now_ns() - middle;
		get += middle - start;
	}
	if (ret != GLEX_SUCCESS)
		perf_fail(s, "the registration cache failed");
	*get_ns = (double)get / (HELD * ROUNDS);
	*put_ns = (double)put / (HELD * ROUNDS);
}

static void rcache_hit(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	struct glex_rcache_stats stats;
	double put[PERF_WAKES];
	glex_rcache_handle_t rc;
	struct perf_stat stat;
	glex_ret_t ret;

	if (s->side == 1)
		return;
	ret = glex_rcache_create(s->ep, NULL, &rc);
	if (ret != GLEX_SUCCESS)
		perf_fail_ret(s, "glex_rcache_create", ret);
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		double get_ns, put_ns;

		hits(s, rc, plan->size, &get_ns, &put_ns);
		perf_progress(s);
		if (k >= plan->warmup) {
			sample[k - plan->warmup] = get_ns;
			put[k - plan->warmup] = put_ns;
		}
	}
	ret = glex_rcache_query(rc, &stats);
	if (ret != GLEX_SUCCESS || stats.misses != 1)
		perf_fail(s, "of all gets %llu missed the registration cache", (unsigned long long)stats.misses);
	glex_rcache_destroy(rc);
	perf_stat_of(put, plan->samples, &stat);
	s->extra[0] = (struct perf_extra){"put_ns", stat.p50};
}

/* Nanoseconds of a get that finds nothing, of the put, and of registering alone; mem: HELD buffers, none beside another. */
static void misses(struct perf_side *s, glex_rcache_handle_t rc, unsigned char *mem, uint64_t stride, uint32_t size,
		   double ns[3])
{
	struct glex_rcache_region region[HELD];
	glex_mem_handle_t mh[HELD];
	glex_ret_t ret = GLEX_SUCCESS;
	uint64_t at[4];

	at[0] = perf_now_ns();
	for (int i = 0; i < HELD; i++)
		ret |= glex_rcache_get(rc, mem + (uint64_t)i * stride, size, GLEX_MEM_READ, &region[i]);
	at[1] = perf_now_ns();
	for (int i = 0; i < HELD; i++)
		ret |= glex_rcache_put(rc, &region[i]);
	at[2] = perf_now_ns();
	for (int i = 0; i < HELD; i++)
		ret |= glex_register_mem(s->ep, mem + (uint64_t)i * stride, size, GLEX_MEM_READ, &mh[i]);
	at[3] = perf_now_ns();
	for (int i = 0; i < HELD; i++)
		ret |= glex_deregister_mem(s->ep, mh[i]);
	ret |= glex_mem_invalidate(mem, HELD * stride);
	if (ret != GLEX_SUCCESS)
		perf_fail(s, "the registration cache failed");
	for (int i = 0; i < 3; i++)
		ns[i] = (double)(at[i + 1] - at[i]) / HELD;
}

static void reg_miss(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	uint64_t page = 4096, stride = (plan->size + page - 1) / page * page + page;
	double put[PERF_WAKES], bare[PERF_WAKES], ns[3];
	struct glex_rcache_stats stats;
	glex_rcache_handle_t rc;
	struct perf_stat stat;
	unsigned char *mem;

	if (s->side == 1)
		return;
	mem = mmap(NULL, HELD * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED || glex_rcache_create(s->ep, NULL, &rc) != GLEX_SUCCESS)
		perf_fail(s, "there is no memory for a registration cache and its buffers");
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		misses(s, rc, mem, stride, plan->size, ns);
		perf_progress(s);
		if (k >= plan->warmup) {
			sample[k - plan->warmup] = ns[0];
			put[k - plan->warmup] = ns[1];
			bare[k - plan->warmup] = ns[2];
		}
	}
	if (glex_rcache_query(rc, &stats) != GLEX_SUCCESS || stats.hits != 0)
		perf_fail(s, "of all gets %llu hit the registration cache", (unsigned long long)stats.hits);
	glex_rcache_destroy(rc);
	munmap(mem, HELD * stride);
	perf_stat_of(put, plan->samples, &stat);
	s->extra[0] = (struct perf_extra){"put_ns", stat.p50};
	perf_stat_of(bare, plan->samples, &stat);
	s->extra[1] = (struct perf_extra){"register_ns", stat.p50};
}

static const char *refuse_nothing(const struct perf_side *s, uint32_t size)
{
	(void)s;
	(void)size;
	return NULL;
}

const struct perf_test perf_open = {
	.name = "open",
	.help = "open the device, create an endpoint, register so many bytes, in a new process",
	.kind = PERF_FIGURE,
	.one_sided = true,
	.one_at_a_time = true,
	.unit = "ms",
	.sizes = "1M",
	.samples = 31,
	.refuse = refuse_nothing,
	.run = open_all,
};

const struct perf_test perf_rcache_hit = {
	.name = "rcache_hit",
	.help = "a get from the registration cache that finds its region",
	.kind = PERF_FIGURE,
	.one_sided = true,
	.one_at_a_time = true,
	.unit = "ns",
	.sizes = "4K",
	.samples = 51,
	.refuse = refuse_nothing,
	.run = rcache_hit,
};

const struct perf_test perf_reg_miss = {
	.name = "reg_miss",
	.help = "a get from the registration cache that has to register",
	.kind = PERF_FIGURE,
	.one_sided = true,
	.one_at_a_time = true,
	.unit = "ns",
	.sizes = "4K",
	.samples = 51,
	.refuse = refuse_nothing,
	.run = reg_miss,
};

const struct perf_test perf_ep_mem = {
	.name = "ep_mem",
	.help = "memory of an endpoint with default queues",
	.kind = PERF_FIGURE,
	.one_sided = true,
	.one_at_a_time = true,
	.unit = "KiB",
	.sizes = "1",
	.samples = 5,
	.refuse = refuse_nothing,
	.run = ep_mem,
};
