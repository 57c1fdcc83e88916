/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_collsim - latency of collectives run by the NICs, or by the hosts, of a
 * simulated machine: one row for each test, shape, degree, number of nodes, way.
 *
 * Where there is no such tree (a member of a k-nomial one may have too many
 * children) there is no row, and a line on stderr says so.
 */
#include "collsim.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static void print_times(const struct collsim_options *opt)
{
	struct sim_times times = opt->machine.times;
	struct sim_machine own;
	size_t i;

	sim_machine_find(opt->machine.name, &own);
	for (i = 0; i < sim_time_row_count; i++) {
		const struct sim_time_row *row = &sim_time_rows[i];
		double now = *sim_time_find(&times, row->name), was = *sim_time_find(&own.times, row->name);
		const char *source = opt->machine.name[0] == 'a' ? row->aries_source : row->th2_source;

		printf("%-8s %7.*f ns  %s\n%21s%s\n", row->name, now > 0 && now < 1 ? 4 : 1, now, row->what, "",
		       now < was || now > was ? "as given" : source);
	}
}

static void print_head(const struct collsim_options *opt)
{
	if (opt->tsv)
		printf("machine\ttest\tway\tshape\tdegree\tnodes\tprocesses\tdepth\tus\tmin_us\tmax_"
		       "us\tpackets\trequests\t"
		       "events");
	else
		printf("%s: %s\n%-10s %-4s %-8s %6s %8s %9s %5s %9s %9s %9s %9s", opt->machine.name, opt->machine.what,
		       "test", "way", "shape", "degree", "nodes", "processes", "depth", "us", "min", "max", "packets");
	if (opt->overlap)
		fputs(opt->tsv ? "\toverlap" : " overlap %", stdout);
	putchar('\n');
}

static void print_row(const struct collsim_options *opt, const struct collsim_case *c, const struct collsim_result *r)
{
	unsigned long long processes = (unsigned long long)c->nodes * c->processes;

	if (opt->tsv)
		printf("%s\t%s\t%s\t%s\t%u\t%u\t%llu\t%u\t%.3f\t%.3f\t%.3f\t%llu\t%llu\t%llu", opt->machine.name,
		       collsim_test_name[c->test], collsim_way_name[c->way], collsim_shape_name[c->shape], c->degree,
		       c->nodes, processes, r->depth, r->mean_us, r->min_us, r->max_us,
		       (unsigned long long)r->counts.packets, (unsigned long long)r->counts.requests,
		       (unsigned long long)r->counts.events);
	else
		printf("%-10s %-4s %-8s %6u %8u %9llu %5u %9.3f %9.3f %9.3f %9llu", collsim_test_name[c->test],
		       collsim_way_name[c->way], collsim_shape_name[c->shape], c->degree, c->nodes, processes, r->depth,
		       r->mean_us, r->min_us, r->max_us, (unsigned long long)r->counts.packets);
	if (opt->overlap)
		printf(opt->tsv ? "\t%.1f" : " %9.1f", r->overlap);
	putchar('\n');
	fflush(stdout);
}

static void progress(const struct collsim_case *c)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s, %s, %s %u, %u nodes", collsim_test_name[c->test], collsim_way_name[c->way],
			collsim_shape_name[c->shape], c->degree, c->nodes);
}

static void clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* With its overlap, if that is asked for: all nodes compute for as long as it takes without. */
static const char *measure(const struct collsim_options *opt, const struct collsim_case *c, struct collsim_result *r)
{
	const char *wrong = collsim_run(c, r);
	struct collsim_case computing = *c;
	struct collsim_result with;

	if (wrong || !opt->overlap)
		return wrong;
	computing.compute_ns = 1000 * r->mean_us;
	wrong = collsim_run(&computing, &with);
	if (wrong)
		return wrong;
	r->overlap = r->mean_us > 0 ? 100 * (2 - with.mean_us / r->mean_us) : NAN; /* there is nothing to hide */
	if (r->overlap < 0)
		r->overlap = 0;
	return NULL;
}

/* All numbers of nodes, both ways.  False: something failed. */
static bool run_tree(const struct collsim_options *opt, struct collsim_case *c, uint32_t *rows_p)
{
	struct collsim_result result;
	const char *wrong;
	uint32_t i, way;

	for (i = 0; i < opt->nodes.count; i++) {
		c->nodes = opt->nodes.value[i];
		if (!collsim_has_tree(c->shape, c->nodes, c->degree)) {
			fprintf(stderr, "glex_collsim: there is no %s tree of degree %u over %u nodes: %s\n",
				collsim_shape_name[c->shape], c->degree, c->nodes,
				c->degree < 2 ? "its degree is from 2" : "somebody would have more than 32 children");
			return true;
		}
		for (way = 0; way < COLLSIM_WAYS; way++) {
			if (!opt->way[way])
				continue;
			c->way = (enum collsim_way)way;
			progress(c);
			wrong = measure(opt, c, &result);
			clear_progress();
			if (wrong) {
				fprintf(stderr, "glex_collsim: %s, %s, %s tree of degree %u, %u nodes: %s\n",
					collsim_test_name[c->test], collsim_way_name[c->way],
					collsim_shape_name[c->shape], c->degree, c->nodes, wrong);
				return false;
			}
			print_row(opt, c, &result);
			++*rows_p;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct collsim_options opt;
	struct collsim_case c;
	uint32_t test, shape, i, rows = 0;

	collsim_parse(&opt, argc, argv);
	if (opt.list_times) {
		print_times(&opt);
		return 0;
	}
	print_head(&opt);
	c = opt.base;
	for (test = 0; test < COLLSIM_TESTS; test++)
		for (shape = 0; shape < 2; shape++)
			for (i = 0; i < opt.degrees.count; i++) {
				c.test = (enum collsim_test)test;
				c.shape = (enum glex_group_shape)shape;
				c.degree = opt.degrees.value[i];
				if (opt.test[test] && opt.shape[shape] && !run_tree(&opt, &c, &rows))
					return 1;
			}
	return rows ? 0 : 1;
}
