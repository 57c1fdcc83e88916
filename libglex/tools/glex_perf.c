/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_perf - measures the endpoint interface between two processes of this machine.
 *
 *   glex_perf (parent)  options; forks both sides, watches them, never opens the device
 *     +- side 0         initiates, measures, prints
 *     +- side 1         answers
 *     +- members        of collectives, if more than two are asked for
 *
 * The sides share an anonymous page (RAW's cache line, progress) and a
 * socketpair (addresses, meeting between rows).  A side that dies is noticed by
 * its end, one that hangs by its progress counter; then the parent kills the
 * other and says which it was.  If the parent dies the kernel kills both.
 */
#include "perf.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARTS 16

/* ---- one side ------------------------------------------------------------ */

static void poll_until_known(struct perf_side *s)
{
	uint64_t until = perf_now_ns() + s->opt->deadline_s * 1000000000ULL, looks = 0;

	/* relaxed: meeting orders what follows */
	while (!atomic_load_explicit(&s->shared->limit_known, memory_order_relaxed))
		if (++looks % 4096 == 0 && perf_now_ns() > until)
			perf_fail(s, "the other side did not get on for %u s", s->opt->deadline_s);
}

/*
 * What the machine moves at best with the memory and in the direction of a
 * bandwidth test; where data go both ways both sides ask at once, and the answer
 * is the sum.  Where side 1 would be polling for the data it polls now too: the
 * cores may be neighbours that slow each other down.
 */
static double bandwidth_limit(struct perf_side *s, const struct perf_test *test, const struct perf_plan *plan)
{
	uint32_t times = plan->batch * plan->window;
	bool get = test->one_sided;
	double mine = 0;

	/* relaxed: meeting orders it */
	atomic_store_explicit(&s->shared->limit_known, 0, memory_order_relaxed);
	perf_side_meet(s);
	if (s->side == 1 && !get && !test->both_ways)
		poll_until_known(s);
	if (s->side == 0 || test->both_ways) {
		if (s->opt->memory == PERF_MEMORY_ALLOC)
			mine = perf_copy_MBps(s->in, s->out, plan->size, times);
		else
			mine = perf_attach_MBps((pid_t)s->peer.pid, get ? s->in : s->out,
						s->peer.mem + (get ? 0 : s->half), plan->size, !get, times);
	}
	if (s->side == 0)
		/* relaxed: meeting orders what follows */
		atomic_store_explicit(&s->shared->limit_known, 1, memory_order_relaxed);
	else
		/* relaxed: meeting orders it */
		atomic_store_explicit(&s->shared->limit_MBps, (uint64_t)mine, memory_order_relaxed);
	perf_side_meet(s);
	if (s->side == 1)
		return 0;
	/* relaxed: meeting orders it */
	return mine + (double)atomic_load_explicit(&s->shared->limit_MBps, memory_order_relaxed);
}

static void measure_raw(struct perf_side *s, struct perf_row *row)
{
	row->raw_ns = perf_raw_bounce(&s->shared->raw, s->side, 1, s->opt->deadline_s * 1000);
	row->raw2_ns = perf_raw_bounce(&s->shared->raw, s->side, 2, s->opt->deadline_s * 1000);
	row->ring_ns = perf_ring_bounce(s->shared->ring, s->side, s->opt->deadline_s * 1000);
	if (row->raw_ns < 0 || row->raw2_ns < 0 || row->ring_ns < 0)
		perf_fail(s, "the other side did not answer for %u s", s->opt->deadline_s);
}

/*
 * A bandwidth is measured in many short parts with its yardstick between them, for
 * the machine wanders: the yardstick against itself a moment later is anything from
 * 0.9 to 1.1.  What counts is the median of the ratios of neighbours.  In one part
 * if data are verified, where no two messages of a row may be alike.
 */
static void run_bandwidth(struct perf_side *s, struct perf_row *row, double *sample)
{
	uint32_t parts = s->opt->check ? 1 : PARTS, done = 0;
	double limit[PARTS + 1], ratio[PARTS];
	struct perf_plan part = *row->plan;
	int spins = s->spins;
	struct perf_stat stat;

	s->spins = s->window_spins;
	if (parts > part.samples)
		parts = part.samples;
	limit[0] = bandwidth_limit(s, row->test, &part);
	for (uint32_t i = 0; i < parts; i++) {
		part.samples = (row->plan->samples - done) / (parts - i);
		row->test->run(s, &part, sample + done);
		perf_side_meet(s);
		limit[i + 1] = bandwidth_limit(s, row->test, &part);
		perf_stat_of(sample + done, part.samples, &stat);
		ratio[i] = perf_MBps(row, stat.p50) / ((limit[i] + limit[i + 1]) / 2);
		done += part.samples;
		part.warmup = 1;
	}
	s->spins = spins;
	perf_stat_of(ratio, parts, &stat);
	row->of_limit = stat.p50;
	perf_stat_of(limit, parts + 1, &stat);
	row->limit_name = s->opt->memory == PERF_MEMORY_ALLOC ? "memcpy" : "attach";
	row->limit = stat.p50;
}

static void run_row(struct perf_side *s, const struct perf_test *test, const struct perf_plan *plan)
{
	struct perf_row row = {.test = test, .plan = plan, .extra = s->extra};
	double *sample = calloc(plan->samples, sizeof(*sample));

	if (!sample)
		perf_fail(s, "no memory for %u samples", plan->samples);
	s->limit = 0;
	memset(s->extra, 0, sizeof(s->extra));
	perf_side_meet(s);
	measure_raw(s, &row);
	perf_side_meet(s);
	if (test->kind == PERF_BANDWIDTH)
		run_bandwidth(s, &row, sample);
	else
		test->run(s, plan, sample);
	perf_side_meet(s);
	if (s->limit > 0) {
		row.limit_name = "futex";
		row.limit = s->limit;
	}
	if (s->side == 0) {
		perf_stat_of(sample, plan->samples, &row.ns);
		if (s->limit > 0)
			row.of_limit = row.ns.p50 / row.limit;
		perf_out_row(s->opt, &row);
	}
	free(sample);
}

static void run_test(struct perf_side *s, const struct perf_test *test, uint64_t room)
{
	struct perf_sizes sizes;

	s->test = test->name;
	if (s->side == 0)
		perf_out_test(s->opt, test);
	perf_sizes_of(s->opt, test, &sizes);
	for (uint32_t i = 0; i < sizes.count; i++) {
		const char *why;
		struct perf_plan plan;

		s->size = (uint32_t)sizes.size[i];
		why = test->refuse(s, s->size);
		if (!why && s->opt->processes > 2 && !test->collective)
			why = "it is of two processes";
		if (why) {
			if (s->side == 0)
				perf_out_left_out(s->opt, test, s->size, why);
			continue;
		}
		perf_make_plan(s->opt, test, s->size, room, &plan);
		run_row(s, test, &plan);
	}
	s->test = NULL;
}

static void run_side(const struct perf_options *opt, struct perf_shared *shared, int side, int sock)
{
	struct perf_side s = {.side = side, .opt = opt, .shared = shared, .sock = sock};
	uint64_t room = perf_room(opt);
	const struct perf_test *test = NULL;
	const char *at = opt->tests;

	perf_side_open(&s, room + 4096);
	if (side == 0)
		perf_out_head(opt);
	while (perf_next_test(opt, &at, &test))
		run_test(&s, test, room);
	perf_side_close(&s);
}

/* ---- the parent ---------------------------------------------------------- */

struct child {
	pid_t pid; /* 0: reaped */
	int status;
	bool killed; /* by us */
	uint64_t progress, since;
};

static pid_t start_side(const struct perf_options *opt, struct perf_shared *shared, int side, const int sock[2],
			const sigset_t *mask)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigprocmask(SIG_SETMASK, mask, NULL);
	for (int i = 0; i < 2; i++)
		if (i != side)
			close(sock[i]);
	if (side < 2)
		run_side(opt, shared, side, sock[side]);
	else
		perf_run_member(opt, shared, side);
	exit(0);
}

static bool reap(struct child *child, uint32_t n)
{
	bool failed = false;

	for (uint32_t i = 0; i < n; i++) {
		if (!child[i].pid || waitpid(child[i].pid, &child[i].status, WNOHANG) != child[i].pid)
			continue;
		child[i].pid = 0;
		failed |= child[i].status != 0;
	}
	return failed;
}

/* True when a side has not got on for much longer than its own deadline. */
static bool stuck(const struct perf_options *opt, struct perf_shared *shared, struct child *child, uint32_t side)
{
	/* relaxed: only asks whether it still moves */
	uint64_t progress = atomic_load_explicit(&shared->progress[side], memory_order_relaxed);
	uint64_t now = perf_now_ns();

	if (progress != child->progress || child->since == 0) {
		child->progress = progress;
		child->since = now;
	}
	return now - child->since > (2 * opt->deadline_s + 5) * 1000000000ULL;
}

static bool is_any_left(const struct child *child, uint32_t n)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++)
		any |= child[i].pid != 0;
	return any;
}

static void end_all(struct child *child, uint32_t n, const sigset_t *sigchld)
{
	struct timespec grace = {.tv_nsec = 200000000};

	/* One that lost its partner ends by itself; its own words are better than ours. */
	if (is_any_left(child, n)) {
		sigtimedwait(sigchld, NULL, &grace);
		reap(child, n);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!child[i].pid)
			continue;
		child[i].killed = true;
		kill(child[i].pid, SIGKILL);
		waitpid(child[i].pid, &child[i].status, 0);
		child[i].pid = 0;
	}
}

static void tell_deaths(const struct child *child, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		/* SIGPIPE: who read our output has seen enough. */
		if (!child[i].killed && WIFSIGNALED(child[i].status) && WTERMSIG(child[i].status) != SIGPIPE)
			fprintf(stderr, "glex_perf: side %u was ended by signal %d (%s)\n", i,
				WTERMSIG(child[i].status), strsignal(WTERMSIG(child[i].status)));
}

static int watch(const struct perf_options *opt, struct perf_shared *shared, struct child *child,
		 const sigset_t *sigchld)
{
	struct timespec second = {.tv_sec = 1};
	bool failed = false;

	while (!failed && is_any_left(child, opt->processes)) {
		sigtimedwait(sigchld, NULL, &second);
		failed = reap(child, opt->processes);
		for (uint32_t i = 0; i < opt->processes && !failed; i++) {
			if (!child[i].pid || !stuck(opt, shared, &child[i], i))
				continue;
			fprintf(stderr, "glex_perf: side %u has been stuck for %u s\n", i, 2 * opt->deadline_s + 5);
			failed = true;
		}
	}
	if (failed) {
		end_all(child, opt->processes, sigchld);
		tell_deaths(child, opt->processes);
	}
	return failed;
}

static int run_all(const struct perf_options *opt)
{
	struct child child[PERF_MEMBERS] = {{0}};
	struct perf_shared *shared;
	sigset_t sigchld, mask;
	int sock[2], status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock)) {
		perror("glex_perf: cannot set up the two sides");
		return 1;
	}
	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &sigchld, &mask);
	for (uint32_t i = 0; i < opt->processes; i++) {
		child[i].pid = start_side(opt, shared, (int)i, sock, &mask);
		if (child[i].pid > 0)
			continue;
		perror("glex_perf: fork");
		child[i].pid = 0;
		end_all(child, opt->processes, &sigchld);
		return 1;
	}
	close(sock[0]);
	close(sock[1]);
	status = watch(opt, shared, child, &sigchld);
	munmap(shared, sizeof(*shared));
	return status;
}

int main(int argc, char **argv)
{
	struct perf_options opt;

	perf_parse_options(argc, argv, &opt);
	return opt.open_once ? perf_open_once(opt.open_once) : run_all(&opt);
}
