/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 02_put_event.c - an RDMA PUT, and the events that tell both sides.
 *
 * A PUT moves bytes of registered memory of this process into registered memory
 * of another, which need not do anything for it.  Who wants to know asks for
 * events: 128 bits of the poster's choice arrive in the event queue of the
 * target when the data is there, and in the poster's own when he may reuse his.
 *
 *     cc 02_put_event.c $(pkg-config --cflags --libs libglex) && ./a.out
 */
#include <glex.h>

#include <stdio.h>
#include <stdlib.h>
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
#define COUNT	   1000

/* What a process must be told before it may write into the memory of another. */
struct target {
	glex_ep_addr_t addr;
	glex_mem_handle_t mh;
	uint32_t key;
};

static glex_device_handle_t dev;
static glex_ep_handle_t ep;
static uint64_t data[COUNT]; /* any memory can be registered */
static glex_mem_handle_t mh;

static void open_and_register(uint32_t key)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = key};

	CHECK(glex_open_device(0, &dev));
	CHECK(glex_create_ep(dev, &attr, &ep));
	/* GLEX_MEM_WRITE: others may PUT here. */
	CHECK(glex_register_mem(ep, data, sizeof(data), GLEX_MEM_WRITE, &mh));
}

static void close_all(void)
{
	CHECK(glex_deregister_mem(ep, mh));
	CHECK(glex_destroy_ep(ep));
	CHECK(glex_close_device(dev));
}

/* The child only waits. */
static int receive(int to_parent)
{
	struct target me = {.key = GLEX_EP_MAKE_KEY(getpid())};
	glex_event_t *event;
	int right = 1;

	open_and_register(me.key);
	CHECK(glex_get_ep_addr(ep, &me.addr));
	me.mh = mh;
	if (write(to_parent, &me, sizeof(me)) != sizeof(me))
		return 1;

	/* When the event can be seen, so can every byte of the PUT. */
	CHECK(glex_probe_first_event(ep, TIMEOUT_MS, &event));
	for (uint64_t i = 0; i < COUNT; i++)
		right = right && data[i] == i * i;
	printf("child:  event (%llu, %llu) says that data arrived: it is %s\n", (unsigned long long)event->cookie_0,
	       (unsigned long long)event->cookie_1, right ? "right" : "WRONG");
	CHECK(glex_discard_probed_event(ep)); /* the queue's slot is free again; event points nowhere now */
	close_all();
	return !right;
}

static int send_it(int from_child)
{
	struct glex_rdma_req req = {.type = GLEX_RDMA_TYPE_PUT, .len = sizeof(data)};
	struct target child;
	glex_event_t *event;
	glex_ret_t ret;

	open_and_register(GLEX_EP_MAKE_KEY(getpid()));
	for (uint64_t i = 0; i < COUNT; i++)
		data[i] = i * i;
	if (read(from_child, &child, sizeof(child)) != sizeof(child))
		return 1;
	req.rmt_ep_addr = child.addr;
	req.rmt_mh = child.mh;
	req.rmt_key = child.key; /* without the right key nothing is written */
	req.local_mh = mh;
	req.flag = GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT;
	req.rmt_evt.cookie_0 = 17; /* free choice */
	req.rmt_evt.cookie_1 = 1;  /* free choice, but not 0 */
	req.local_evt.cookie_0 = 18;
	req.local_evt.cookie_1 = 2;
	while ((ret = glex_rdma(ep, &req, NULL)) == GLEX_BUSY)
		;
	CHECK(ret);

	CHECK(glex_probe_first_event(ep, TIMEOUT_MS, &event));
	printf("parent: event (%llu, %llu) says that the PUT of %zu bytes is complete\n",
	       (unsigned long long)event->cookie_0, (unsigned long long)event->cookie_1, sizeof(data));
	CHECK(glex_discard_probed_event(ep));
	close_all();
	return 0;
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
		return receive(fd[1]);
	}
	close(fd[1]);
	right = send_it(fd[0]) == 0;
	waitpid(child, &status, 0);
	right = right && status == 0;
	printf("%s\n", right ? "ok" : "FAILED");
	return !right;
}
