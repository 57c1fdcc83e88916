/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 03_get.c - reading another process's memory by RDMA GET.
 *
 * The owner registers its memory, says where it is, and then computes: it makes
 * no call while the other reads.  A remote event tells it at the end that its
 * memory has been read and may change.
 *
 *     cc 03_get.c $(pkg-config --cflags --libs libglex) && ./a.out
 */
#include <glex.h>
#include <glex_ext.h> /* glex_alloc is ours: on the hardware it would be malloc */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		glex_ret_t ret_ = (call);                                                                              \
		if (ret_ != GLEX_SUCCESS) {                                                                            \
			fprintf(stderr, "%s: %s\n", #call, glex_error_str(ret_));                                      \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define TIMEOUT_MS 10000
#define LEN	   (1U << 20)

struct source {
	glex_ep_addr_t addr;
	glex_mem_handle_t mh;
	uint32_t key;
};

static glex_device_handle_t dev;
static glex_ep_handle_t ep;
static glex_mem_handle_t mh;
static uint8_t *memory;

static void open_and_register(uint32_t key)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = key};
	void *addr;

	CHECK(glex_open_device(0, &dev));
	CHECK(glex_create_ep(dev, &attr, &ep));
	/* Any memory will do, but this kind is reached without a system call. */
	CHECK(glex_alloc(dev, LEN, &addr));
	memory = addr;
	/* GLEX_MEM_READ: others may GET from here. */
	CHECK(glex_register_mem(ep, memory, LEN, GLEX_MEM_READ, &mh));
}

static void close_all(void)
{
	CHECK(glex_deregister_mem(ep, mh));
	CHECK(glex_destroy_ep(ep));
	CHECK(glex_free(dev, memory));
	CHECK(glex_close_device(dev));
}

static uint8_t byte_at(uint32_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

/* The child owns the data. */
static int own(int to_parent)
{
	struct source me = {.key = GLEX_EP_MAKE_KEY(getpid())};
	glex_event_t *event;

	open_and_register(me.key);
	for (uint32_t i = 0; i < LEN; i++)
		memory[i] = byte_at(i);
	CHECK(glex_get_ep_addr(ep, &me.addr));
	me.mh = mh;
	if (write(to_parent, &me, sizeof(me)) != sizeof(me))
		return 1;

	CHECK(glex_probe_first_event(ep, TIMEOUT_MS, &event));
	printf("child:  event %llu says that my memory has been read\n", (unsigned long long)event->cookie_0);
	CHECK(glex_discard_probed_event(ep));
	memset(memory, 0, LEN);
	close_all();
	return 0;
}

static int fetch(int from_child)
{
	/* The same offset on both sides; it could be any. */
	struct glex_rdma_req req = {.type = GLEX_RDMA_TYPE_GET, .len = LEN};
	struct source child;
	glex_event_t *event;
	glex_ret_t ret;
	int right = 1;

	open_and_register(GLEX_EP_MAKE_KEY(getpid()));
	if (read(from_child, &child, sizeof(child)) != sizeof(child))
		return 1;
	req.rmt_ep_addr = child.addr;
	req.rmt_mh = child.mh;
	req.rmt_key = child.key;
	req.local_mh = mh;
	req.flag = GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT;
	req.local_evt.cookie_1 = 1;
	req.rmt_evt.cookie_0 = 42;
	req.rmt_evt.cookie_1 = 1;
	while ((ret = glex_rdma(ep, &req, NULL)) == GLEX_BUSY)
		;
	CHECK(ret);

	/* The local event of a GET: the data has arrived. */
	CHECK(glex_probe_first_event(ep, TIMEOUT_MS, &event));
	CHECK(glex_discard_probed_event(ep));
	for (uint32_t i = 0; i < LEN; i++)
		right = right && memory[i] == byte_at(i);
	printf("parent: fetched %u bytes: they are %s\n", LEN, right ? "right" : "WRONG");
	close_all();
	return !right;
}

int main(void)
{
	int fd[2], status, right;
	pid_t child;

	if (pipe(fd) || (child = fork()) < 0) {
		perror("cannot start the second process");
		return 1;
	}
	if (child == 0) {
		close(fd[0]);
		return own(fd[1]);
	}
	close(fd[1]);
	right = fetch(fd[0]) == 0;
	waitpid(child, &status, 0);
	right = right && status == 0;
	printf("%s\n", right ? "ok" : "FAILED");
	return !right;
}
