/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_bench.c - what blocking waits cost, with GLEX_SPIN_TIME and GLEX_YIELD_TIME as
 * the caller has set them; wait.sh tries several.
 *
 *   wait_bench gap US     a receiver waits, messages come US apart: how late it has
 *                         them, and how much of a core the waiting took
 *   wait_bench ring N     N processes pass a token round, each waiting for it
 *
 * One line on stdout: figures with their units.
 */
#include <glex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS 64
#define MESSAGES  300
#define TURNS	  400

static glex_device_handle_t dev;
static glex_ep_handle_t ep;
static glex_ep_addr_t all[MAX_RANKS];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static double cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void must(const char *what, glex_ret_t ret)
{
	if (ret == GLEX_SUCCESS)
		return;
	fprintf(stderr, "wait_bench: %s: %s\n", what, glex_error_str(ret));
	exit(1);
}

static void send_to(int rank, uint64_t word)
{
	struct glex_imm_mp_req req = {.rmt_ep_addr = all[rank], .data = &word, .len = sizeof(word)};
	glex_ret_t ret;

	while ((ret = glex_send_imm_mp(ep, &req, NULL)) == GLEX_BUSY)
		sched_yield();
	must("glex_send_imm_mp", ret);
}

static uint64_t wait_word(void)
{
	uint32_t len;
	uint64_t word;
	void *data;

	must("glex_probe_first_mp", glex_probe_first_mp(ep, -1, NULL, &data, &len));
	memcpy(&word, data, sizeof(word));
	must("glex_discard_probed_mp", glex_discard_probed_mp(ep));
	return word;
}

/* Where a rank is to be reached. */
struct card {
	uint64_t rank;
	glex_ep_addr_t addr;
};

static void open_all(uint32_t rank, int ranks, int fd[][2])
{
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_FAST, .num = GLEX_ANY_EP_NUM, .key = GLEX_EP_MAKE_KEY(1)};
	struct card card = {.rank = rank};

	must("glex_open_device", glex_open_device(0, &dev));
	must("glex_create_ep", glex_create_ep(dev, &attr, &ep));
	must("glex_get_ep_addr", glex_get_ep_addr(ep, &card.addr));
	for (int i = 0; i < ranks; i++)
		if (write(fd[i][0], &card, sizeof(card)) != sizeof(card))
			exit(1);
	for (int i = 0; i < ranks; i++) {
		if (read(fd[rank][1], &card, sizeof(card)) != sizeof(card))
			exit(1);
		all[card.rank] = card.addr;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Else the sender, who computes, may sit on the receiver's core. */
static void pin(int rank)
{
	cpu_set_t may, one;

	if (sched_getaffinity(0, sizeof(may), &may))
		return;
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &may) || rank--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(core, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
}

/* Rank 0 computes between two messages; what it sends is the time. */
static void run_gap(int rank, uint64_t gap_ns)
{
	double late[MESSAGES], cpu = 0;
	uint64_t next;

	pin(rank);
	next = now_ns();
	for (int i = 0; i < MESSAGES; i++) {
		if (rank == 0) {
			for (next += gap_ns; now_ns() < next;)
				;
			next = now_ns();
			send_to(1, next);
			continue;
		}
		if (i == 1) {
			cpu = cpu_us();
			next = now_ns();
		}
		late[i] = (double)wait_word();
		late[i] = (double)now_ns() - late[i];
	}
	if (rank == 0)
		return;
	cpu = (cpu_us() - cpu) * 1e5 / (double)(now_ns() - next);
	qsort(late, MESSAGES, sizeof(late[0]), compare);
	printf("%.2f us late (median), %.1f %% of a core\n", late[MESSAGES / 2] / 1e3, cpu);
}

static void run_ring(int rank, int ranks)
{
	uint64_t start = 0;

	for (int turn = 0; turn < TURNS + 20; turn++) {
		if (rank == 0) {
			if (turn == 20)
				start = now_ns();
			send_to(1 % ranks, (uint64_t)turn);
			wait_word();
		} else {
			send_to((rank + 1) % ranks, wait_word());
		}
	}
	if (rank == 0)
		printf("%.2f us a hop\n", (double)(now_ns() - start) / 1e3 / TURNS / ranks);
}

int main(int argc, char **argv)
{
	bool ring = argc == 3 && strcmp(argv[1], "ring") == 0;
	int number = argc == 3 ? atoi(argv[2]) : 0, ranks = ring ? number : 2, fd[MAX_RANKS][2], failed = 0, status;

	if (number < 1 || ranks > MAX_RANKS || (!ring && strcmp(argv[1], "gap") != 0)) {
		fprintf(stderr, "usage: %s gap MICROSECONDS | ring PROCESSES\n", argv[0]);
		return 2;
	}
	for (int i = 0; i < ranks; i++)
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fd[i]))
			return 1;
	for (int rank = 0; rank < ranks; rank++) {
		if (fork())
			continue;
		open_all((uint32_t)rank, ranks, fd);
		if (ring)
			run_ring(rank, ranks);
		else
			run_gap(rank, (uint64_t)number * 1000);
		fflush(stdout);
		glex_destroy_ep(ep);
		glex_close_device(dev);
		_exit(0);
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
