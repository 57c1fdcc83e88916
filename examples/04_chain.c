/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 04_chain.c - several requests posted by one call.
 *
 * Requests are linked by next.  A chain is taken whole or not at all: on
 * GLEX_BUSY nothing of it was posted, and the same chain is posted again.  Here
 * ten PUTs scatter the rows of a table, and only the last asks for an event;
 * FENCE makes it start after all others have completed.
 *
 *     cc 04_chain.c $(pkg-config --cflags --libs libglex) && ./a.out
 */
#include <glex.h>

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
#define ROWS	   10
#define ROW_LEN	   64

struct target {
	glex_ep_addr_t addr;
	glex_mem_handle_t mh;
	uint32_t key;
};

static glex_device_handle_t dev;
static glex_ep_handle_t ep;
static glex_mem_handle_t mh;
static char table[ROWS][ROW_LEN];

static void open_and_register(uint32_t key)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = key};

	CHECK(glex_open_device(0, &dev));
	CHECK(glex_create_ep(dev, &attr, &ep));
	CHECK(glex_register_mem(ep, table, sizeof(table), GLEX_MEM_WRITE, &mh));
}

/* Destroying an endpoint completes what was posted; only then it revokes the registrations. */
static void close_all(void)
{
	CHECK(glex_destroy_ep(ep));
	CHECK(glex_close_device(dev));
}

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

	/* One event for ten PUTs. */
	CHECK(glex_probe_first_event(ep, TIMEOUT_MS, &event));
	CHECK(glex_discard_probed_event(ep));
	for (int i = 0; i < ROWS; i++) {
		char want[ROW_LEN];

		/* They were sent in reverse. */
		snprintf(want, sizeof(want), "row %d of the sender", ROWS - 1 - i);
		right = right && strcmp(table[i], want) == 0;
		printf("child:  table[%d] = \"%s\"\n", i, table[i]);
	}
	close_all();
	return !right;
}

static int scatter(int from_child)
{
	struct glex_rdma_req req[ROWS] = {{.len = 0}}, *bad;
	struct target child;
	glex_ret_t ret;

	open_and_register(GLEX_EP_MAKE_KEY(getpid()));
	for (int i = 0; i < ROWS; i++)
		snprintf(table[i], ROW_LEN, "row %d of the sender", i);
	if (read(from_child, &child, sizeof(child)) != sizeof(child))
		return 1;
	for (int i = 0; i < ROWS; i++) {
		req[i].type = GLEX_RDMA_TYPE_PUT;
		req[i].rmt_ep_addr = child.addr; /* a chain may even have many targets */
		req[i].rmt_mh = child.mh;
		req[i].rmt_key = child.key;
		req[i].local_mh = mh;
		req[i].len = ROW_LEN;
		req[i].local_offset = (uint32_t)i * ROW_LEN;
		req[i].rmt_offset = (uint32_t)(ROWS - 1 - i) * ROW_LEN;
		req[i].next = i + 1 < ROWS ? &req[i + 1] : NULL; /* NULL ends the chain */
	}
	req[ROWS - 1].flag = GLEX_FLAG_FENCE | GLEX_FLAG_REMOTE_EVT;
	req[ROWS - 1].rmt_evt.cookie_1 = 1;
	while ((ret = glex_rdma(ep, req, &bad)) == GLEX_BUSY)
		; /* the whole chain again */
	if (ret != GLEX_SUCCESS)
		fprintf(stderr, "request %td is refused\n", bad - req);
	CHECK(ret);
	printf("parent: posted %d PUTs by one call\n", ROWS);
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
	right = scatter(fd[0]) == 0;
	waitpid(child, &status, 0);
	right = right && status == 0;
	printf("%s\n", right ? "ok" : "FAILED");
	return !right;
}
