/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 05_ring.c - N processes pass a token around a ring.
 *
 *     0 -> 1 -> 2 -> ... -> N-1 -> 0, three times
 *
 * Each process tells its NIC and endpoint number, two small integers; anybody
 * composes the address from them.  The sum of what everybody added to the token
 * shows at the end that nobody was left out.
 *
 *     cc 05_ring.c $(pkg-config --cflags --libs libglex) && ./a.out 8
 */
#include <glex.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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

#define TIMEOUT_MS    20000
#define MAX_PROCESSES 64
#define LAPS	      3

struct token {
	uint32_t hops;
	uint32_t sum;
};

/* Where each process's endpoint is.  In a parallel program MPI or the launcher would spread this. */
struct place {
	uint32_t nic_id;
	uint32_t ep_num;
};

/* Token in, token out. */
static void pass_on(glex_ep_handle_t ep, glex_ep_addr_t next, struct token *token)
{
	struct glex_imm_mp_req req = {.rmt_ep_addr = next, .data = token, .len = sizeof(*token)};
	glex_ret_t ret;

	while ((ret = glex_send_imm_mp(ep, &req, NULL)) == GLEX_BUSY)
		;
	CHECK(ret);
}

static void take(glex_ep_handle_t ep, struct token *token)
{
	uint32_t len;

	CHECK(glex_receive_mp(ep, TIMEOUT_MS, NULL, token, &len)); /* asleep, not spinning, if it takes long */
}

/* The body of process me of n.  ready and go are pipes that hold everybody until all places are known. */
static int member(uint32_t me, uint32_t n, struct place *place, int ready, int go)
{
	/* EMULATE endpoints: there are more of them than the hardware has ports. */
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_EMULATE, .num = GLEX_ANY_EP_NUM};
	struct token token = {0, 0};
	glex_device_handle_t dev;
	glex_ep_addr_t mine, next;
	glex_ep_handle_t ep;
	char byte = 0;

	CHECK(glex_open_device(0, &dev));
	CHECK(glex_create_ep(dev, &attr, &ep));
	CHECK(glex_get_ep_addr(ep, &mine));
	CHECK(glex_decompose_ep_addr(mine, attr.type, &place[me].nic_id, &place[me].ep_num));
	if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
		return 1;
	CHECK(glex_compose_ep_addr(place[(me + 1) % n].nic_id, place[(me + 1) % n].ep_num, attr.type, &next));

	for (uint32_t lap = 0; lap < LAPS; lap++) {
		if (me != 0 || lap > 0)
			take(ep, &token);
		token.hops++;
		token.sum += me;
		pass_on(ep, next, &token);
	}
	if (me == 0) {
		take(ep, &token);
		printf("%u processes, %d laps: %u hops, sum %u\n", n, LAPS, token.hops, token.sum);
	}
	CHECK(glex_destroy_ep(ep));
	CHECK(glex_close_device(dev));
	return me == 0 && (token.hops != LAPS * n || token.sum != LAPS * n * (n - 1) / 2);
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 4;
	struct place *place;
	int ready[2], go[2], right = 1, status;
	char byte;

	if (n < 1 || n > MAX_PROCESSES) {
		fprintf(stderr, "usage: 05_ring [1..%d]\n", MAX_PROCESSES);
		return 1;
	}
	place = mmap(NULL, n * sizeof(*place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (place == MAP_FAILED || pipe(ready) || pipe(go)) {
		perror("cannot prepare the ring");
		return 1;
	}
	for (uint32_t me = 0; me < n; me++) {
		pid_t pid = fork();

		if (pid == 0) {
			close(ready[0]);
			close(go[1]);
			return member(me, n, place, ready[1], go[0]);
		}
		if (pid < 0)
			right = 0;
	}
	close(ready[1]);
	close(go[0]);
	/* All are ready, or one died and its end of the pipe closes. */
	for (uint32_t i = 0; i < n && right; i++)
		right = read(ready[0], &byte, 1) == 1;
	for (uint32_t i = 0; i < n && right; i++)
		right = write(go[1], "", 1) == 1;
	close(go[1]);
	while (wait(&status) > 0)
		right = right && status == 0;
	printf("%s\n", right ? "ok" : "FAILED");
	return !right;
}
