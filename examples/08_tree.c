/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 08_tree.c - a long table goes down a tree of chosen shape, and what each makes
 * of its share of it comes up as one sum.
 *
 *   k-nomial, degree 2: few levels     k-ary, degree 2: nobody tells more than two
 *            0                              0
 *        1   2   4                        1   2
 *            3   5 6                     3 4 5 6
 *                  7                    7
 *
 *     cc -pthread 08_tree.c $(pkg-config --cflags --libs libglex) && ./a.out 8 knomial 2
 */
#include <glex_ext.h>

#include <pthread.h>
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
#define MAX_PROCESSES 64u
#define WORDS	      (256u << 10) /* of the table: a megabyte, where a packet has 112 bytes */

struct tree {
	enum glex_group_shape shape;
	uint32_t n, degree;
};

/* Who is whose parent is known without a group: to who wants to draw it, or to choose the shape that suits. */
static void show(const struct tree *tree)
{
	for (uint32_t me = 0; me < tree->n; me++) {
		uint32_t parent, child[GLEX_COLL_MAX_BRANCH_DEGREE], count;

		CHECK(glex_group_tree(tree->shape, tree->n, me, tree->degree, &parent, child, &count));
		for (uint32_t i = 0; i < count; i++)
			printf("%s%u", i ? ", " : me ? "; " : "", child[i]);
		if (count)
			printf(" from %u", me);
	}
	printf("\n");
}

static uint64_t sum_of(const uint32_t *word, uint32_t first, uint32_t end)
{
	uint64_t sum = 0;

	while (first < end)
		sum += word[first++];
	return sum;
}

/* What all processes see; in a parallel program MPI_Allgather would bring the cards, and MPI_Barrier be the barrier. */
struct shared {
	pthread_barrier_t all;
	struct glex_group_card cards[MAX_PROCESSES];
};

static int member(uint32_t me, const struct tree *tree, struct shared *shared)
{
	uint32_t *table = calloc(WORDS, sizeof(*table)), share = WORDS / tree->n, end;
	union glex_coll_data_loc sum;
	glex_device_handle_t dev;
	glex_group_t group;
	int right;

	if (!table)
		return 1;
	alarm(60); /* for a member that another waits for in vain */
	CHECK(glex_open_device(0, &dev));
	CHECK(glex_group_open(dev, GLEX_EP_TYPE_EMULATE, 0, &group, &shared->cards[me]));
	pthread_barrier_wait(&shared->all); /* the cards are there */
	CHECK(glex_group_join(group, shared->cards, tree->n, me, tree->shape, tree->degree));
	/* In parts, by the NICs, from each to its children; without this, all fetch it from the root. */
	CHECK(glex_group_set_long(group, GLEX_GROUP_LONG_PASSED));
	pthread_barrier_wait(&shared->all); /* all have joined: before, nobody may begin */

	for (uint32_t i = 0; me == 0 && i < WORDS; i++)
		table[i] = i * 2654435761u;
	CHECK(glex_group_bcast_long(group, 0, table, WORDS * sizeof(*table)));
	CHECK(glex_group_wait(group, TIMEOUT_MS));

	end = me + 1 == tree->n ? WORDS : (me + 1) * share;
	memset(&sum, 0, sizeof(sum));
	sum.uint64_s.data = sum_of(table, me * share, end);
	CHECK(glex_group_reduce(group, 0, &sum, 1, GLEX_COLL_REDUCE_DATA_BITS_64, GLEX_COLL_REDUCE_SUM_UNSIGNED));
	CHECK(glex_group_wait(group, TIMEOUT_MS));

	right = me || sum.uint64_s.data == sum_of(table, 0, WORDS);
	if (me == 0)
		printf("%u processes, sum %llu\n", tree->n, (unsigned long long)sum.uint64_s.data);
	CHECK(glex_group_close(group));
	CHECK(glex_close_device(dev));
	free(table);
	return !right;
}

int main(int argc, char **argv)
{
	struct tree tree = {argc > 2 && strcmp(argv[2], "kary") == 0 ? GLEX_GROUP_KARY : GLEX_GROUP_KNOMIAL,
			    argc > 1 ? (uint32_t)atoi(argv[1]) : 8, argc > 3 ? (uint32_t)atoi(argv[3]) : 2};
	pthread_barrierattr_t attr;
	struct shared *shared;
	int right = 1, status;

	if (tree.n < 1 || tree.n > MAX_PROCESSES) {
		fprintf(stderr, "usage: 08_tree [1..%u] [kary|knomial] [DEGREE]\n", MAX_PROCESSES);
		return 1;
	}
	show(&tree);
	fflush(stdout); /* else each child would say it, too */
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pthread_barrierattr_init(&attr) ||
	    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) ||
	    pthread_barrier_init(&shared->all, &attr, tree.n)) {
		fprintf(stderr, "cannot prepare the group\n");
		return 1;
	}
	for (uint32_t me = 0; me < tree.n; me++) {
		pid_t pid = fork();

		if (pid == 0)
			return member(me, &tree, shared);
		if (pid < 0)
			right = 0;
	}
	while (wait(&status) > 0)
		right = right && status == 0;
	printf("%s\n", right ? "ok" : "FAILED");
	return !right;
}
