/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client.c - a small client for the stories of test/integ.
 *
 *	client hello          says hello to itself
 *	client hold           says "ready", stays until its standard input ends
 *	client lose CALL      says "ready", is in CALL until the device is lost, says how long
 *	                      that took since glexd's end, and opens the device again
 *	client alloc BYTES    allocates shareable memory
 *	client attach         PUTs to a child's private memory and to mapped memory
 *	client target         says where private memory of it lies; in the end, what is there
 *	client put ADDR MH    PUTs to such memory, says what came of it
 *
 * Exit status 0: all as it should be; 1: a call returned what is on stdout.
 */
#include <glex.h>
#include <glex_ext.h>

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/lib/raw.h"
#include "test/lib/seccomp.h"

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		glex_ret_t ret_ = (call);                                                                              \
		if (ret_ != GLEX_SUCCESS)                                                                              \
			fail(#call, ret_);                                                                             \
	} while (0)

#define WAIT_MS 20000

static glex_device_handle_t dev;
static glex_ep_handle_t ep;
static glex_ep_addr_t addr;

static void fail(const char *call, glex_ret_t ret)
{
	printf("%s: %s\n", call, glex_error_str(ret));
	exit(EXIT_FAILURE);
}

static void open_as(enum glex_ep_type type)
{
	struct glex_ep_attr attr = {.type = type, .num = GLEX_ANY_EP_NUM, .key = 1, .dq_capacity = 16};

	TRY(glex_open_device(0, &dev));
	TRY(glex_create_ep(dev, &attr, &ep));
	TRY(glex_get_ep_addr(ep, &addr));
}

static void close_all(void)
{
	TRY(glex_destroy_ep(ep));
	TRY(glex_close_device(dev));
}

static int hello(void)
{
	struct glex_imm_mp_req req = {.data = "hello", .len = 6};
	char got[112];
	uint32_t len;

	open_as(GLEX_EP_TYPE_FAST);
	req.rmt_ep_addr = addr;
	TRY(glex_send_imm_mp(ep, &req, NULL));
	TRY(glex_receive_mp(ep, WAIT_MS, NULL, got, &len));
	close_all();
	return len == 6 && !strcmp(got, "hello") ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

/* A region that is reached by attach, and one that peers map. */
static void register_two(void)
{
	static char private[64];
	glex_mem_handle_t mh;
	void *shared;

	TRY(glex_alloc(dev, 4096, &shared));
	TRY(glex_register_mem(ep, private, sizeof(private), GLEX_MEM_READ, &mh));
	TRY(glex_register_mem(ep, shared, 4096, GLEX_MEM_READ, &mh));
}

static int hold(void)
{
	char byte;

	open_as(GLEX_EP_TYPE_FAST);
	register_two();
	ready();
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	close_all();
	return EXIT_SUCCESS;
}

/* ---- losing the device -------------------------------------------------------- */

static char buf[4096];

static glex_ret_t by_receive(void)
{
	uint32_t len;

	return glex_receive_mp(ep, -1, NULL, buf, &len);
}

static glex_ret_t by_event(void)
{
	glex_event_t *event;

	return glex_probe_first_event(ep, -1, &event);
}

static glex_ret_t by_timeouts(void)
{
	glex_ret_t ret;
	uint32_t len;
	void *at;

	do
		ret = glex_probe_first_mp(ep, 10, NULL, &at, &len);
	while (ret == GLEX_NO_MP);
	return ret;
}

static glex_ret_t by_polling(void)
{
	glex_event_t *event;
	glex_ret_t ret;

	do
		ret = glex_probe_next_event(ep, &event);
	while (ret == GLEX_NO_EVENT);
	return ret;
}

/* Until BUSY clears, which it never does. */
static glex_ret_t by_posting(void)
{
	struct glex_rdma_req req = {.rmt_ep_addr = addr, .len = 8, .rmt_key = 1};
	glex_ret_t ret;

	TRY(glex_register_mem(ep, buf, sizeof(buf), GLEX_MEM_WRITE, &req.local_mh));
	req.rmt_mh = req.local_mh;
	do
		ret = glex_rdma(ep, &req, NULL);
	while (ret == GLEX_SUCCESS || ret == GLEX_BUSY);
	return ret;
}

static glex_ret_t by_creating(void)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_NORMAL, .num = GLEX_ANY_EP_NUM};
	glex_ep_handle_t other;
	glex_ret_t ret;

	do {
		ret = glex_create_ep(dev, &attr, &other);
		if (ret == GLEX_SUCCESS)
			TRY(glex_destroy_ep(other));
	} while (ret == GLEX_SUCCESS);
	return ret;
}

static const struct {
	const char *name;
	glex_ret_t (*call)(void);
} ways[] = {{"receive", by_receive}, {"event", by_event},     {"timeouts", by_timeouts},
	    {"polling", by_polling}, {"posting", by_posting}, {"creating", by_creating}};

static int lose(const char *name)
{
	glex_ret_t ret = GLEX_SUCCESS;
	size_t i;

	open_as(GLEX_EP_TYPE_NORMAL);
	ready();
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, name))
			ret = ways[i].call();
	printf("%s\n", ret == GLEX_SYS_ERR ? "lost" : glex_error_str(ret));
	fflush(stdout);
	TRY(glex_destroy_ep(ep));
	TRY(glex_close_device(dev));
	return ret == GLEX_SYS_ERR ? hello() : EXIT_FAILURE;
}

/* ---- memory --------------------------------------------------------------------- */

static int alloc(const char *bytes)
{
	void *mem;

	open_as(GLEX_EP_TYPE_FAST);
	TRY(glex_alloc(dev, strtoull(bytes, NULL, 10), &mem));
	TRY(glex_free(dev, mem));
	close_all();
	return EXIT_SUCCESS;
}

struct target {
	glex_ep_addr_t addr;
	glex_mem_handle_t mh[2]; /* private, mapped */
};

static int attach_target(int from_us, int to_us)
{
	struct target me;
	void *mem;

	open_as(GLEX_EP_TYPE_FAST);
	me.addr = addr;
	TRY(glex_alloc(dev, sizeof(buf), &mem));
	TRY(glex_register_mem(ep, buf, sizeof(buf), GLEX_MEM_WRITE, &me.mh[0]));
	TRY(glex_register_mem(ep, mem, sizeof(buf), GLEX_MEM_WRITE, &me.mh[1]));
	if (write(to_us, &me, sizeof(me)) != sizeof(me) || read(from_us, &me, 1) != 0)
		return EXIT_FAILURE;
	return memcmp(mem, "there", 6) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int attach(void)
{
	struct glex_rdma_req req = {.len = 6, .rmt_key = 1};
	struct glex_err_req err;
	struct target target;
	uint32_t num = 1;
	int down[2], up[2];

	if (forbid_attach() < 0 || pipe(down) || pipe(up))
		return EXIT_FAILURE;
	if (fork() == 0) {
		close(down[1]);
		close(up[0]);
		_exit(attach_target(down[0], up[1]));
	}
	close(down[0]);
	close(up[1]);
	open_as(GLEX_EP_TYPE_FAST);
	strcpy(buf, "there");
	if (read(up[0], &target, sizeof(target)) != sizeof(target))
		return EXIT_FAILURE;
	TRY(glex_register_mem(ep, buf, sizeof(buf), GLEX_MEM_READ, &req.local_mh));
	req.rmt_ep_addr = target.addr;
	req.rmt_mh = target.mh[1];
	TRY(glex_rdma(ep, &req, NULL));
	req.rmt_mh = target.mh[0];
	TRY(glex_rdma(ep, &req, NULL));
	TRY(glex_poll_error_req(ep, &num, &err));
	printf("%s\n", num ? glex_error_req_status_str(err.status) : "no error");
	close(down[1]);
	close_all();
	return num == 1 && err.status == GLEX_ERR_STATUS_PCIE_READ ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define PRIVATE_LEN (64u << 10)

/* Of whole pages, so that it can be adopted. */
static char *private_memory(glex_mem_handle_t *mh)
{
	char *mem = aligned_alloc(4096, PRIVATE_LEN);

	if (!mem)
		exit(EXIT_FAILURE);
	memset(mem, '-', PRIVATE_LEN);
	TRY(glex_register_mem(ep, mem, PRIVATE_LEN, GLEX_MEM_READ | GLEX_MEM_WRITE, mh));
	return mem;
}

static int target(void)
{
	glex_mem_handle_t mh;
	char *mem, byte;

	open_as(GLEX_EP_TYPE_FAST);
	mem = private_memory(&mh);
	printf("ready %#llx %#llx\n", (unsigned long long)addr.v, (unsigned long long)mh.v);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	printf("%.6s\n", mem);
	close_all();
	free(mem);
	return EXIT_SUCCESS;
}

static int put(const char *to, const char *mh)
{
	struct glex_rdma_req req = {.len = 6, .rmt_key = 1, .local_offset = 8, .rmt_offset = 0};
	struct glex_err_req err;
	uint32_t num = 1;
	char *mem;

	open_as(GLEX_EP_TYPE_FAST);
	mem = private_memory(&req.local_mh);
	memcpy(mem + 8, "there", 6);
	req.rmt_ep_addr.v = strtoull(to, NULL, 0);
	req.rmt_mh.v = strtoull(mh, NULL, 0);
	TRY(glex_rdma(ep, &req, NULL));
	TRY(glex_poll_error_req(ep, &num, &err));
	printf("%s\n", num ? glex_error_req_status_str(err.status) : "no error");
	close_all();
	free(mem);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "hello"))
		return hello();
	if (!strcmp(what, "hold"))
		return hold();
	if (!strcmp(what, "lose") && argc > 2)
		return lose(argv[2]);
	if (!strcmp(what, "alloc") && argc > 2)
		return alloc(argv[2]);
	if (!strcmp(what, "attach"))
		return attach();
	if (!strcmp(what, "target"))
		return target();
	if (!strcmp(what, "put") && argc > 3)
		return put(argv[2], argv[3]);
	fprintf(stderr, "usage: client hello | hold | lose CALL | alloc BYTES | attach | target | put ADDR MH\n");
	return 2;
}
