/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collsim.h - the parts of glex_collsim: one measurement (collsim_run.c), the
 * endpoint interface over a simulated machine (collsim_glex.c), the command line
 * (collsim_options.c), tables (glex_collsim.c).
 */
#ifndef COLLSIM_H
#define COLLSIM_H

#include <glex_ext.h>

#include "emulator/sim/sim.h"

enum collsim_test { COLLSIM_BARRIER, COLLSIM_ALLREDUCE, COLLSIM_BCAST, COLLSIM_TESTS };
enum collsim_way { COLLSIM_NIC, COLLSIM_HOST, COLLSIM_WAYS };

#define COLLSIM_SHORT 112u /* bytes of a broadcast that go in one packet; more are passed down by PUTs */

/* One measurement. */
struct collsim_case {
	enum collsim_test test;
	enum collsim_way way;
	enum glex_group_shape shape;
	uint32_t degree, nodes, processes, root, units, bytes, iterations;
	double skew_ns;	   /* nodes begin the first at different times, up to so much apart */
	double compute_ns; /* of each node, from when it has begun until it looks what has come */
	bool broken;	   /* somebody gives what nobody expects, to try the verification */
	struct sim_params params;
};

struct collsim_result {
	double mean_us, min_us, max_us; /* from the last that began to the last that ended */
	double overlap;			/* of the mean, how much is hidden where all compute for as long, in per cent */
	uint32_t depth;			/* of the tree */
	struct sim_counts counts;	/* of all iterations */
};

/* NULL: done, and every result was right; else what went wrong.  All of the result but its overlap. */
const char *collsim_run(const struct collsim_case *c, struct collsim_result *result);

/* False: no such tree. */
bool collsim_has_tree(enum glex_group_shape shape, uint32_t nodes, uint32_t degree);

/* ---- the endpoint interface, as far as a group needs it ---------------------- */

/* The device of one node; endpoints that are created on it are that node's. */
struct collsim_device {
	glex_device_t base;
	struct sim *sim;
	uint32_t node;
	uint32_t eps[SIM_MAX_NODES]; /* created so far, of each node */
};

/* ---- the command line -------------------------------------------------------- */

#define COLLSIM_LIST 64u

struct collsim_list {
	uint32_t value[COLLSIM_LIST], count;
};

struct collsim_options {
	bool test[COLLSIM_TESTS], way[COLLSIM_WAYS], shape[2];
	struct collsim_list degrees, nodes;
	struct sim_machine machine;
	struct collsim_case base; /* what all measurements have in common */
	bool overlap, tsv, list_times;
};

extern const char *const collsim_test_name[], *const collsim_way_name[], *const collsim_shape_name[];

/* Ends the program when the command line is wrong. */
void collsim_parse(struct collsim_options *opt, int argc, char **argv);

#endif /* COLLSIM_H */
