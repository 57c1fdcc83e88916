/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 07_triggered.c - a message goes through a process that is stopped.
 *
 *     parent --> child (stopped) --> parent
 *
 * The child posts a collective request: wait for one control packet, then send its
 * payload back.  Then it stops itself.  The parent's packet opens the gate, and the
 * NIC sends the answer, though the child runs no instruction.
 *
 *     cc 07_triggered.c $(pkg-config --cflags --libs libglex) && ./a.out
 */
#include <glex.h>

#include <signal.h>
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

static glex_device_handle_t dev;
static glex_ep_handle_t ep;

static glex_ep_addr_t open_ep(void)
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM};
	glex_ep_addr_t addr;

	CHECK(glex_open_device(0, &dev));
	CHECK(glex_create_ep(dev, &attr, &ep));
	CHECK(glex_get_ep_addr(ep, &addr));
	return addr;
}

/* Posts what is to happen, says where it is, and stops. */
static int child(int in, int out)
{
	struct glex_imm_mp_req back = {
		.coll_counter = 1, /* control packets that open the gate */
		.flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_SEQ_START | GLEX_FLAG_COLL_SEQ_TAIL | GLEX_FLAG_COLL_SWAP,
	};
	glex_ep_addr_t mine = open_ep();

	if (read(in, &back.rmt_ep_addr, sizeof(back.rmt_ep_addr)) != sizeof(back.rmt_ep_addr))
		return 1;
	CHECK(glex_send_imm_mp(ep, &back, NULL));
	if (write(out, &mine, sizeof(mine)) != sizeof(mine))
		return 1;
	raise(SIGSTOP);
	CHECK(glex_destroy_ep(ep));
	CHECK(glex_close_device(dev));
	return 0;
}

int main(void)
{
	struct glex_imm_mp_req there = {
		.data = "from a stopped process",
		.len = sizeof("from a stopped process"),
		.flag = GLEX_FLAG_COLL | GLEX_FLAG_COLL_COUNTER | GLEX_FLAG_COLL_CP_SWAP_DATA,
	};
	int to_child[2], to_us[2], status;
	char text[112] = "";
	glex_ep_addr_t mine;
	uint32_t len;
	pid_t pid;

	if (pipe(to_child) || pipe(to_us))
		return 1;
	pid = fork();
	if (pid == 0)
		return child(to_child[0], to_us[1]);
	mine = open_ep();
	if (write(to_child[1], &mine, sizeof(mine)) != sizeof(mine) ||
	    read(to_us[0], &there.rmt_ep_addr, sizeof(mine)) != sizeof(mine))
		return 1;
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return 1;
	CHECK(glex_send_imm_mp(ep, &there, NULL));
	CHECK(glex_receive_mp(ep, TIMEOUT_MS, NULL, text, &len));
	printf("%s\n", text);
	kill(pid, SIGCONT);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	CHECK(glex_destroy_ep(ep));
	CHECK(glex_close_device(dev));
	printf("%s\n", strcmp(text, there.data) == 0 ? "ok" : "FAILED");
	return strcmp(text, there.data) != 0;
}
