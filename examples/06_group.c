/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 06_group.c - N processes find the mean of what each has, by the NICs.
 *
 *              0                   up: each tells its parent the sum of what it
 *            / | \                     and its children have
 *           1  2  3                down: the total, which all get
 *          / \
 *         4   5
 *
 * Each opens its part of the group and puts its card where all can read it; in a
 * parallel program MPI_Allgather or the launcher would do that.
 *
 *     cc 06_group.c $(pkg-config --cflags --libs libglex) && ./a.out 6
 */
#include <glex_ext.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#define DEGREE	      3

/* Where all are waited for, once: pipes to and from who lets them go on. */
struct meeting {
	int ready[2], go[2];
};

static void meet(const struct meeting *at)
{
	char byte = 0;

	if (write(at->ready[1], &byte, 1) != 1 || close(at->ready[1]) || read(at->go[0], &byte, 1) != 1)
		exit(1);
}

/* The other side of meet.  False: somebody has died, and with it the last end of the pipe. */
static int let_all_meet(uint32_t n, const struct meeting *at)
{
	char byte;

	for (uint32_t i = 0; i < n; i++)
		if (read(at->ready[0], &byte, 1) != 1)
			return 0;
	for (uint32_t i = 0; i < n; i++)
		if (write(at->go[1], "", 1) != 1)
			return 0;
	return 1;
}

/* The body of process me of n. */
static int member(uint32_t me, uint32_t n, struct glex_group_card *cards, const struct meeting at[2])
{
	union glex_coll_data_loc sum[2];
	glex_device_handle_t dev;
	glex_group_t group;
	char text[64] = "";

	CHECK(glex_open_device(0, &dev));
	CHECK(glex_group_open(dev, GLEX_EP_TYPE_EMULATE, 0, &group, &cards[me]));
	meet(&at[0]); /* all cards are there */
	CHECK(glex_group_join(group, cards, n, me, GLEX_GROUP_KARY, DEGREE));
	meet(&at[1]); /* all have joined, so anybody may begin */

	/* Two values in one reduction: up to six go at once. */
	memset(sum, 0, sizeof(sum));
	sum[0].double_s.data = me * 10.0;
	sum[1].double_s.data = 1;
	CHECK(glex_group_allreduce(group, sum, 2, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_FLOAT));
	CHECK(glex_group_wait(group, TIMEOUT_MS));

	/* The last one says what came out, and all hear it. */
	if (me == n - 1)
		snprintf(text, sizeof(text), "%u processes, mean %g", n, sum[0].double_s.data / sum[1].double_s.data);
	CHECK(glex_group_bcast(group, n - 1, text, sizeof(text)));
	CHECK(glex_group_wait(group, TIMEOUT_MS));
	if (me == 0)
		printf("%s\n", text);
	CHECK(glex_group_close(group));
	CHECK(glex_close_device(dev));
	return sum[0].double_s.data != 5.0 * n * (n - 1) || sum[1].double_s.data != n || text[0] == 0;
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 6;
	struct glex_group_card *cards;
	struct meeting at[2];
	int right = 1, status;

	if (n < 1 || n > MAX_PROCESSES) {
		fprintf(stderr, "usage: 06_group [1..%d]\n", MAX_PROCESSES);
		return 1;
	}
	cards = mmap(NULL, n * sizeof(*cards), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cards == MAP_FAILED || pipe(at[0].ready) || pipe(at[0].go) || pipe(at[1].ready) || pipe(at[1].go)) {
		perror("cannot prepare the group");
		return 1;
	}
	for (uint32_t me = 0; me < n; me++) {
		pid_t pid = fork();

		if (pid == 0) {
			close(at[0].go[1]);
			close(at[1].go[1]);
			return member(me, n, cards, at);
		}
		if (pid < 0)
			right = 0;
	}
	for (int i = 0; i < 2; i++) {
		close(at[i].ready[1]);
		right = right && let_all_meet(n, &at[i]);
		close(at[i].go[1]); /* who waits there ends */
	}
	while (wait(&status) > 0)
		right = right && status == 0;
	printf("%s\n", right ? "ok" : "FAILED");
	return !right;
}
