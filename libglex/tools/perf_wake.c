/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_wake.c - a receiver that sleeps, and a poster that computes meanwhile.
 *
 *   side 0   ............ pause, sent_ns = now, send ........... done is n: next
 *   side 1   turn = n, sleeps ......................... wakes, got_ns = now, done = n
 *
 * The clock is the same on both cores.  A sample in which side 1 did not sleep
 * (its voluntary switches tell) is taken again.
 *
 * label    access                     order     pairs     says
 * WAKE-R1  side 1  turn = n           release   WAKE-A1   it is about to wait for sample n
 * WAKE-A1  side 0  load turn          acquire   WAKE-R1
 * WAKE-R2  side 1  done = n           release   WAKE-A2   got_ns and slept are those of sample n
 * WAKE-A2  side 0  load done          acquire   WAKE-R2
 */
#include "perf.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define BEYOND_SPIN_US 500U /* longer than the library spins and yields */
#define ASLEEP_MS      2000U
#define DOUBLINGS      6U /* of the pause, while side 1 has not slept: other programs may hold its core */

/* Waits until *word is want. */
static void await(struct perf_side *s, _Atomic uint64_t *word, uint64_t want)
{
	uint64_t until = perf_now_ns() + s->opt->deadline_s * 1000000000ULL;

	while (atomic_load_explicit(word, memory_order_acquire) != want) { /* WAKE-A1, WAKE-A2 */
		if (perf_now_ns() > until)
			perf_fail(s, "the other side did not get on for %u s", s->opt->deadline_s);
		sched_yield();
	}
}

static void compute_until(uint64_t ns)
{
	while (perf_now_ns() < ns)
		;
}

static long naps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

/* ---- the time it takes to wake a receiver --------------------------------- */

/* How a sample is sent and received: by GLEX, or by a bare futex as the yardstick. */
struct wake_way {
	void (*send)(struct perf_side *s, union perf_req *req, uint64_t number);
	void (*wait)(struct perf_side *s, const struct perf_plan *plan, uint64_t number);
};

static void send_event(struct perf_side *s, union perf_req *req, uint64_t number)
{
	req->imm.rmt_evt.cookie_0 = number;
	perf_imm_put(s, &req->imm);
}

static void wait_event(struct perf_side *s, const struct perf_plan *plan, uint64_t number)
{
	(void)plan;
	perf_wait_event(s, number, PERF_EVENT_DATA);
}

static void send_futex(struct perf_side *s, union perf_req *req, uint64_t number)
{
	(void)req;
	perf_futex_wake(&s->shared->futex, (uint32_t)number);
}

static void wait_futex(struct perf_side *s, const struct perf_plan *plan, uint64_t number)
{
	uint64_t until = perf_now_ns() + s->opt->deadline_s * 1000000000ULL;

	(void)plan;
	while (!perf_futex_wait(&s->shared->futex, (uint32_t)number))
		if (perf_now_ns() > until)
			perf_fail(s, "the futex was not rung for %u s", s->opt->deadline_s);
}

static const struct wake_way by_event = {send_event, wait_event}, by_futex = {send_futex, wait_futex};

/* Beyond what the library spins and yields before it sleeps; longer with each try. */
static uint64_t pause_ns(uint32_t tries)
{
	uint64_t spin_us = 0, yield_us = 0;

	glex_config_uint("GLEX_SPIN_TIME", &spin_us);
	glex_config_uint("GLEX_YIELD_TIME", &yield_us);
	return ((2 * (spin_us + yield_us) + BEYOND_SPIN_US) * 1000) << (tries < DOUBLINGS ? tries : DOUBLINGS);
}

/* As the kernel sees it. */
static bool is_asleep(uint32_t pid)
{
	char path[40], stat[512];
	const char *state = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return true; /* then it is not known, and whether it slept will be seen */
	if (fgets(stat, sizeof(stat), file))
		state = strrchr(stat, ')');
	fclose(file);
	return state && strncmp(state, ") S", 3) == 0;
}

/* On a busy machine a receiver may get its core late, and sleeps later still. */
static void await_sleep(struct perf_side *s)
{
	uint64_t until = perf_now_ns() + ASLEEP_MS * 1000000ULL;

	while (!is_asleep(s->peer.pid) && perf_now_ns() < until)
		sched_yield();
}

/* Side 0: nanoseconds, or 0 if side 1 was awake. */
static uint64_t wake_once(struct perf_side *s, const struct wake_way *way, union perf_req *req, uint64_t number,
			  uint32_t tries)
{
	struct perf_shared *sh = s->shared;
	uint64_t now;

	await(s, &sh->turn, number); /* WAKE-A1 */
	compute_until(perf_now_ns() + pause_ns(tries));
	await_sleep(s);
	now = perf_now_ns();
	atomic_store_explicit(&sh->sent_ns, now, memory_order_relaxed); /* relaxed: only we read it */
	way->send(s, req, number);
	await(s, &sh->done, number); /* WAKE-A2 */
	/* relaxed: WAKE-A2 orders both */
	if (!atomic_load_explicit(&sh->slept, memory_order_relaxed))
		return 0;
	return atomic_load_explicit(&sh->got_ns, memory_order_relaxed) - now; /* relaxed: WAKE-A2 */
}

/* Side 1. */
static void sleep_once(struct perf_side *s, const struct perf_plan *plan, const struct wake_way *way, uint64_t number)
{
	struct perf_shared *sh = s->shared;
	long before = naps();

	atomic_store_explicit(&sh->turn, number, memory_order_release); /* WAKE-R1 */
	way->wait(s, plan, number);
	atomic_store_explicit(&sh->got_ns, perf_now_ns(), memory_order_relaxed);   /* relaxed: WAKE-R2 */
	atomic_store_explicit(&sh->slept, naps() != before, memory_order_relaxed); /* relaxed: WAKE-R2 */
	atomic_store_explicit(&sh->done, number, memory_order_release);		   /* WAKE-R2 */
	perf_progress(s);
}

/* One sample, repeated until side 1 slept; *number_p counts what was sent. */
static double wake_sample(struct perf_side *s, const struct perf_plan *plan, const struct wake_way *way,
			  union perf_req *req, uint64_t *number_p)
{
	uint64_t until = perf_now_ns() + s->opt->deadline_s * 1000000000ULL;

	for (uint32_t tries = 0;; tries++) {
		uint64_t ns;

		++*number_p;
		if (s->side == 1) {
			sleep_once(s, plan, way, *number_p);
			/* relaxed: our own */
			if (atomic_load_explicit(&s->shared->slept, memory_order_relaxed))
				return 0;
			continue;
		}
		ns = wake_once(s, way, req, *number_p, tries);
		perf_progress(s);
		if (ns)
			return (double)ns;
		if (perf_now_ns() > until)
			perf_fail(s, "the receiver does not sleep; see GLEX_SPIN_TIME and GLEX_YIELD_TIME");
	}
}

static void rewind_words(struct perf_side *s)
{
	perf_side_meet(s);
	if (s->side == 1) {							   /* relaxed: meeting orders them */
		atomic_store_explicit(&s->shared->turn, 0, memory_order_relaxed);  /* relaxed: see above */
		atomic_store_explicit(&s->shared->done, 0, memory_order_relaxed);  /* relaxed: see above */
		atomic_store_explicit(&s->shared->futex, 0, memory_order_relaxed); /* relaxed: see above */
	}
	perf_side_meet(s);
}

/* A sample of each in turn, so that whatever the machine does meets both. */
static void wake_lat(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	double futex[PERF_WAKES];
	struct perf_stat stat;
	uint64_t number = 0;
	union perf_req req;

	perf_req_imm(s, plan->size, PERF_EVENT_DATA, &req);
	rewind_words(s);
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		double glex, bare;

		if (plan->check && s->side == 0)
			perf_prepare(s, s->out, plan->size, k + 1);
		glex = wake_sample(s, plan, &by_event, &req, &number);
		if (plan->check && s->side == 1)
			perf_verify(s, s->in, plan->size, k + 1);
		bare = wake_sample(s, plan, &by_futex, &req, &number);
		if (k >= plan->warmup) {
			sample[k - plan->warmup] = glex;
			futex[k - plan->warmup] = bare;
		}
	}
	perf_stat_of(futex, plan->samples, &stat);
	s->limit = s->side == 0 ? stat.p50 : 0;
}

/* ---- computing while the NIC moves ---------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

#define CHUNK 20000 /* steps: some ten microseconds between two looks */

/* Needs nothing but the core. */
static uint64_t compute_chunk(uint64_t x)
{
	for (int i = 0; i < CHUNK; i++) {
		x = x * 6364136223846793005U + 1442695040888963407U;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Nanoseconds of a chunk when nothing else happens. */
static double chunk_alone_ns(void)
{
	double sample[51];
	struct perf_stat stat;
	uint64_t x = 1;

	for (int i = 0; i < 51; i++) {
		uint64_t start = perf_now_ns();

		x = compute_chunk(x);
		sample[i] = (double)(perf_now_ns() - start);
	}
	perf_stat_of(sample, 51, &stat);
	return stat.p50;
}

struct overlap {
	double taken, slower, post_us; /* %, %, us */
};

/* Side 0: posts, computes until side 1 has the data, without a call of the library. */
static void overlap_once(struct perf_side *s, union perf_req *req, uint64_t number, struct overlap *o)
{
	struct perf_shared *sh = s->shared;
	double alone = chunk_alone_ns(), whole;
	uint64_t start, posted, computed, end, chunks = 0, x = 1;

	await(s, &sh->turn, number); /* WAKE-A1 */
	req->rdma.rmt_evt.cookie_0 = number;
	start = perf_now_ns();
	posted = cpu_ns();
	perf_put(s, &req->rdma);
	computed = cpu_ns();
	while (atomic_load_explicit(&sh->done, memory_order_acquire) != number) { /* WAKE-A2 */
		x = compute_chunk(x);
		chunks++;
	}
	end = cpu_ns();
	whole = (double)(perf_now_ns() - start);
	o->post_us = (double)(computed - posted) / 1e3;
	o->taken = 100 * (1 - (double)(end - computed) / whole);
	o->slower = 100 * (1 - (double)chunks * alone / whole);
}

/*
 * A sample: how much of the time between post and arrival the poster did not
 * have its core for computing, be it in the post or because somebody else ran there.
 */
static void overlap(struct perf_side *s, const struct perf_plan *plan, double *sample)
{
	double slower[PERF_WAKES], post[PERF_WAKES];
	struct perf_stat stat;
	union perf_req req;

	perf_req_put(s, plan->size, PERF_EVENT_DATA, &req);
	rewind_words(s);
	for (uint32_t k = 0; k < plan->warmup + plan->samples; k++) {
		struct overlap o = {0};

		if (plan->check && s->side == 0)
			perf_prepare(s, s->out, plan->size, k + 1);
		if (s->side == 0) {
			overlap_once(s, &req, k + 1, &o);
			perf_progress(s);
		} else {
			sleep_once(s, plan, &by_event, k + 1);
		}
		if (plan->check && s->side == 1)
			perf_verify(s, s->in, plan->size, k + 1);
		perf_side_meet(s);
		if (k >= plan->warmup) {
			sample[k - plan->warmup] = o.taken;
			slower[k - plan->warmup] = o.slower;
			post[k - plan->warmup] = o.post_us;
		}
	}
	perf_stat_of(slower, plan->samples, &stat);
	s->extra[0] = (struct perf_extra){"slower_percent", stat.p50};
	perf_stat_of(post, plan->samples, &stat);
	s->extra[1] = (struct perf_extra){"post_us", stat.p50};
}

static const char *refuse_overlap(const struct perf_side *s, uint32_t size)
{
	if (s->opt->ep_type != GLEX_EP_TYPE_NORMAL)
		return "only the NIC of NORMAL endpoints moves by itself: -T normal";
	return perf_refuse_rdma(s, size);
}

const struct perf_test perf_wake_lat = {
	.name = "wake_lat",
	.help = "immediate PUT that wakes a sleeping receiver, beside a bare futex",
	.kind = PERF_LATENCY,
	.one_at_a_time = true,
	.sizes = "8",
	.samples = PERF_WAKES,
	.refuse = perf_refuse_imm,
	.run = wake_lat,
};

const struct perf_test perf_overlap = {
	.name = "overlap",
	.help = "processor time a PUT takes from its computing poster, in percent of the transfer (-T normal)",
	.kind = PERF_FIGURE,
	.one_at_a_time = true,
	.unit = "percent",
	.sizes = "64M",
	.samples = 11,
	.refuse = refuse_overlap,
	.run = overlap,
};
