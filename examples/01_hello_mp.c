/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 01_hello_mp.c - two processes say hello by mini-packets.
 *
 * A mini-packet (MP) carries up to 112 bytes into the mini-packet queue of
 * another endpoint.  It is the simplest thing there is: no memory is registered,
 * and the receiver learns from whom it came, so that it can answer.
 *
 *     cc 01_hello_mp.c $(pkg-config --cflags --libs libglex) && ./a.out
 */
#include <glex.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every call returns GLEX_SUCCESS or says what is wrong. */
#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		glex_ret_t ret_ = (call);                                                                              \
		if (ret_ != GLEX_SUCCESS) {                                                                            \
			fprintf(stderr, "%s: %s\n", #call, glex_error_str(ret_));                                      \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define TIMEOUT_MS 10000

static glex_ep_handle_t ep;

/* One device, one endpoint.  Attributes left 0 mean: the default. */
static glex_ep_addr_t open_endpoint(glex_device_handle_t *dev)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM};
	glex_ep_addr_t addr;

	CHECK(glex_open_device(0, dev));
	CHECK(glex_create_ep(*dev, &attr, &ep));
	CHECK(glex_get_ep_addr(ep, &addr));
	return addr;
}

static void say(glex_ep_addr_t to, const char *text)
{
	struct glex_imm_mp_req req = {.rmt_ep_addr = to, .data = (char *)text, .len = (uint32_t)strlen(text) + 1};
	glex_ret_t ret;

	/* BUSY: the queue of requests is full at the moment.  It clears by itself. */
	while ((ret = glex_send_imm_mp(ep, &req, NULL)) == GLEX_BUSY)
		;
	CHECK(ret);
	/* The text has been copied: the buffer could be reused now. */
}

/* The child: it does not know the parent's endpoint, but who says hello tells his address. */
static int answer(int to_parent)
{
	glex_device_handle_t dev;
	glex_ep_addr_t me = open_endpoint(&dev), from;
	char text[112];
	uint32_t len;

	/* An address is 8 bytes and may travel by any means: here through a pipe. */
	if (write(to_parent, &me, sizeof(me)) != sizeof(me))
		return 1;
	CHECK(glex_receive_mp(ep, TIMEOUT_MS, &from, text, &len));
	printf("child  (NIC %u, endpoint %u) received \"%s\"\n", me.nic_id, me.ep_num, text);
	say(from, "hello, parent");

	CHECK(glex_destroy_ep(ep));
	CHECK(glex_close_device(dev));
	return 0;
}

static int greet(int from_child)
{
	glex_device_handle_t dev;
	glex_ep_addr_t me = open_endpoint(&dev), child;
	char text[112];
	uint32_t len;

	if (read(from_child, &child, sizeof(child)) != sizeof(child))
		return 1;
	say(child, "hello, child");
	CHECK(glex_receive_mp(ep, TIMEOUT_MS, NULL, text, &len));
	printf("parent (NIC %u, endpoint %u) received \"%s\"\n", me.nic_id, me.ep_num, text);

	CHECK(glex_destroy_ep(ep));
	CHECK(glex_close_device(dev));
	return strcmp(text, "hello, parent") != 0;
}

int main(void)
{
	int fd[2], status, right;
	pid_t child;

	/* Fork first: a child cannot use the device its parent opened. */
	if (pipe(fd) || (child = fork()) < 0) {
		perror("cannot start the second process");
		return 1;
	}
	if (child == 0) {
		close(fd[0]);
		return answer(fd[1]);
	}
	close(fd[1]); /* so that reading ends if the child dies */
	right = greet(fd[0]) == 0;
	waitpid(child, &status, 0);
	right = right && status == 0;
	printf("%s\n", right ? "ok" : "FAILED");
	return !right;
}
