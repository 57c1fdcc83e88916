/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.h - the parts of glex_perf.
 *
 *   glex_perf.c   forks the two sides and watches them
 *   perf_options.c  the table of tests, the command line
 *   perf_plan.c   how many messages, in how many samples, and where they lie
 *   perf_side.c   one side: device, endpoint, memory, the other side's addresses,
 *                 waiting with a deadline
 *   perf_lat.c    ping-pong and GET latency            \
 *   perf_bw.c     windows of PUTs and GETs              > struct perf_test
 *   perf_rate.c   streams of mini-packets and PUTs     |
 *   perf_wake.c   waking a sleeper; computing meanwhile |
 *   perf_coll.c   collectives by the NICs              |
 *   perf_cost.c   what opening takes in time and memory /
 *   perf_out.c    table and JSON lines
 *   perf_raw.c, perf_ring.c, perf_limit.c   the yardsticks        perf_base.c   what knows no GLEX
 *
 * Both sides run the same plan in step.  Side 0 initiates, measures and prints.
 * Collectives may have further members, which know the plan too, and skip all else.
 */
#ifndef PERF_H
#define PERF_H

#include "perf_base.h"
#include "perf_limit.h"
#include "perf_raw.h"
#include "perf_ring.h"

#include <stdbool.h>
#include <stdint.h>

#include <glex.h>
#include <glex_ext.h>

#define PERF_NONE	UINT64_MAX
#define PERF_MEMBERS	32U  /* processes */
#define PERF_WINDOW_MAX 256U /* messages; two such windows fit into any default queue */

enum perf_memory {
	PERF_MEMORY_ALLOC,  /* glex_alloc: the other process maps it */
	PERF_MEMORY_MALLOC, /* private, on small pages: reached by attaching to the process */
	PERF_MEMORY_HUGE    /* private, on huge pages */
};

enum perf_shape {
	PERF_SHAPE_AUTO, /* direct as far as it goes, then kary */
	PERF_SHAPE_KARY,
	PERF_SHAPE_KNOMIAL,
	PERF_SHAPE_DIRECT
};

/* PERF_FIGURE: the samples are in the test's own unit. */
enum perf_kind { PERF_LATENCY, PERF_BANDWIDTH, PERF_RATE, PERF_FIGURE };

/* What the user asked for; 0 where he left it to the test. */
struct perf_options {
	const char *tests;
	struct perf_sizes sizes;
	uint32_t iterations;
	uint32_t warmup;
	uint32_t window;
	uint32_t deadline_s;
	uint32_t processes;
	enum glex_ep_type ep_type;
	enum perf_shape shape;
	uint32_t degree; /* of a tree; 0: the group's own */
	enum perf_memory memory;
	bool check;
	bool json;
	uint64_t open_once; /* this process is a child of perf_open and registers so many bytes; 0: it is not */
	uint64_t broken;    /* this message is corrupted on purpose; PERF_NONE: none is */
	int core[2];
	double busy; /* other tasks that ran when we began */
};

/* Anonymous shared memory made before the fork: all that the two sides and their parent share outside GLEX. */
struct perf_shared {
	struct perf_raw_lines raw;
	struct perf_ring ring[2];
	_Atomic uint64_t progress[PERF_MEMBERS]; /* each process counts up while it gets on */
	_Atomic uint64_t limit_MBps;		 /* what side 1 measured; whole numbers */
	_Atomic uint32_t limit_known;		 /* side 0 has measured */
	/* perf_wake.c */
	_Atomic uint64_t turn, done; /* the sample that side 1 waits for, has received */
	_Atomic uint64_t sent_ns, got_ns;
	_Atomic uint32_t slept;
	_Atomic uint32_t futex;
	/* perf_coll.c */
	_Atomic uint64_t met; /* meetings of all, times those that came */
	struct glex_group_card cards[PERF_MEMBERS];
};

/* Something else that a test found out beside its samples. */
struct perf_extra {
	const char *name; /* NULL: nothing */
	double value;
};

#define PERF_EXTRAS 3
#define PERF_WAKES  101 /* samples of what takes long by nature, at most */

/* What a side tells the other once. */
struct perf_card {
	glex_ep_addr_t addr;
	glex_mem_handle_t mh;
	uint64_t mem; /* for the yardstick that attaches */
	uint32_t key;
	uint32_t pid;
};

struct perf_side {
	glex_ep_handle_t ep;
	struct perf_card peer;
	glex_mem_handle_t mh;
	int side;	  /* 2 and on: a further member of a collective */
	int spins;	  /* polls before a wait may sleep */
	int window_spins; /* what spins is while a bandwidth is measured */
	uint8_t *out;	  /* what is sent from: offset 0 of the region on both sides */
	uint8_t *in;	  /* what is received into: offset half on both sides */
	uint64_t half;
	uint64_t meetings; /* of all */
	const struct perf_options *opt;
	struct perf_shared *shared;
	const char *test; /* for messages */
	uint32_t size;
	int sock;
	glex_device_handle_t dev;
	struct glex_device_attr dev_attr;
	void *mem;
	uint64_t mem_len;
	/* Set by a test's run, if at all; empty before. */
	double limit; /* ns, of a latency other than RAW's */
	struct perf_extra extra[PERF_EXTRAS];
};

/* One row: a test at one size. */
struct perf_plan {
	uint32_t size;
	uint32_t batch; /* operations (round trips, windows, messages) timed together: one sample */
	uint32_t samples;
	uint32_t warmup; /* batches before the first sample */
	uint32_t window;
	uint32_t slots;	 /* messages that have room side by side */
	uint32_t stride; /* from slot to slot */
	bool check;
};

/* Filled in once a row; a loop changes only what differs from message to message. */
union perf_req {
	struct glex_imm_mp_req mp;
	struct glex_imm_rdma_req imm;
	struct glex_rdma_req rdma;
};

struct perf_test {
	const char *name;
	const char *help;
	enum perf_kind kind;
	bool one_sided;	    /* side 1 only waits */
	bool both_ways;	    /* as many bytes come back as go */
	bool one_at_a_time; /* a sample is one message, and there are few */
	bool collective;    /* of all processes, else of two */
	const char *unit;   /* PERF_FIGURE only */
	const char *sizes;
	uint32_t window;
	uint32_t samples; /* with one_at_a_time */
	/* Why it cannot be done with this size, or NULL. */
	const char *(*refuse)(const struct perf_side *s, uint32_t size);
	/* Runs both sides; side 0 stores nanoseconds per message, one way, a sample (PERF_FIGURE: what unit says). */
	void (*run)(struct perf_side *s, const struct perf_plan *plan, double *sample);
};

struct perf_row {
	const struct perf_test *test;
	const struct perf_plan *plan;
	struct perf_stat ns; /* a message */
	double raw_ns, raw2_ns, ring_ns;
	const char *limit_name; /* NULL: none but RAW */
	double limit;		/* in MB/s of a bandwidth, ns of a latency */
	double of_limit;	/* of a bandwidth the median over its parts, each beside its own limit */
	const struct perf_extra *extra;
};

/* perf_lat.c, perf_bw.c, perf_rate.c */
extern const struct perf_test perf_imm_put_lat, perf_put_lat, perf_put_poll_lat, perf_get_lat, perf_mp_lat;
extern const struct perf_test perf_put_bw, perf_get_bw, perf_put_bibw;
extern const struct perf_test perf_mp_rate, perf_imm_put_rate;
/* perf_wake.c, perf_cost.c */
extern const struct perf_test perf_wake_lat, perf_overlap, perf_open, perf_ep_mem, perf_rcache_hit, perf_reg_miss;

/* perf_coll.c */
extern const struct perf_test perf_barrier, perf_bcast, perf_allreduce;
void perf_run_member(const struct perf_options *opt, struct perf_shared *shared, int index);

/* perf_options.c.  Ends the process with a message where the options make no sense. */
void perf_parse_options(int argc, char **argv, struct perf_options *opt_p);
/* The tests asked for, one a call.  At first *at_p is opt->tests and *test_p NULL; false: there is no more. */
bool perf_next_test(const struct perf_options *opt, const char **at_p, const struct perf_test **test_p);

/* perf_cost.c.  Opens, creates, registers bytes, prints the nanoseconds of the three and closes again. */
int perf_open_once(uint64_t bytes);

/* perf_plan.c */
void perf_sizes_of(const struct perf_options *opt, const struct perf_test *test, struct perf_sizes *sizes_p);
/* Bytes of messages in each half of a side's region. */
uint64_t perf_room(const struct perf_options *opt);
void perf_make_plan(const struct perf_options *opt, const struct perf_test *test, uint32_t size, uint64_t room,
		    struct perf_plan *plan_p);

/* perf_out.c: rows on stdout, by side 0 alone. */
void perf_out_head(const struct perf_options *opt);
void perf_out_test(const struct perf_options *opt, const struct perf_test *test);
void perf_out_left_out(const struct perf_options *opt, const struct perf_test *test, uint64_t size, const char *why);
/* What ns a message is in MB/s; of both ways the sum. */
double perf_MBps(const struct perf_row *row, double ns);
void perf_out_row(const struct perf_options *opt, const struct perf_row *row);

/* ---- perf_side.c: all of it ends the process with a message when something fails ---- */

void perf_side_open(struct perf_side *s, uint64_t half);
void perf_side_close(struct perf_side *s);

/* The device alone, and memory for messages: what a further member has. */
void perf_member_open(struct perf_side *s, uint64_t half);
void perf_member_close(struct perf_side *s);

/* All processes call it; it returns when all did. */
void perf_all_meet(struct perf_side *s);

/* Gives ours, takes theirs. */
void perf_side_swap(struct perf_side *s, const void *ours, void *theirs, size_t len);

/* Both sides call it; it returns when both did.  Fails only when nobody gets on for the deadline. */
void perf_side_meet(struct perf_side *s);

__attribute__((format(printf, 2, 3), noreturn)) void perf_fail(const struct perf_side *s, const char *format, ...);
__attribute__((noreturn)) void perf_fail_ret(const struct perf_side *s, const char *call, glex_ret_t ret);

/* The slow ends of the waits below. */
glex_event_t *perf_wait_event_slow(struct perf_side *s);
void *perf_wait_mp_slow(struct perf_side *s, uint32_t *len_p);
void perf_wait_word_slow(struct perf_side *s, const uint64_t *word, uint64_t want);
bool perf_busy_wait(struct perf_side *s, uint64_t *since_p);
void perf_bad_event(const struct perf_side *s, const glex_event_t *event, uint64_t number, uint64_t kind);
void perf_verify(const struct perf_side *s, const void *buf, size_t len, uint64_t number);
void perf_prepare(const struct perf_side *s, void *buf, size_t len, uint64_t number);

/* Requests towards the other side with all that is the same in every message of a row. */
void perf_req_mp(const struct perf_side *s, uint32_t size, union perf_req *req);
void perf_req_imm(const struct perf_side *s, uint32_t size, uint64_t kind, union perf_req *req);
void perf_req_put(const struct perf_side *s, uint32_t size, uint64_t kind, union perf_req *req);
void perf_req_get(const struct perf_side *s, uint32_t size, union perf_req *req);

/* perf_test.refuse for what travels inside a descriptor. */
const char *perf_refuse_mp(const struct perf_side *s, uint32_t size);
const char *perf_refuse_imm(const struct perf_side *s, uint32_t size);
const char *perf_refuse_rdma(const struct perf_side *s, uint32_t size);

/* ---- the fast paths, compiled into each test's loop ---- */

#define PERF_INLINE static inline __attribute__((always_inline))

/* cookie_1 of an event: what it says.  cookie_0 is the number of the message or window. */
#define PERF_EVENT_DATA	  1U
#define PERF_EVENT_CREDIT 2U
#define PERF_EVENT_LOCAL  3U

PERF_INLINE void perf_progress(struct perf_side *s)
{
	_Atomic uint64_t *mine = &s->shared->progress[s->side];
	uint64_t n = atomic_load_explicit(mine, memory_order_relaxed); /* relaxed: only we write it */

	atomic_store_explicit(mine, n + 1, memory_order_relaxed); /* relaxed: it only feeds the watchdog */
}

/* No store of this may stand between two messages, so what waits is told the time only if it comes to that. */
#define PERF_POST(call, s, req)                                                                                        \
	do {                                                                                                           \
		glex_ret_t ret_ = call((s)->ep, req, NULL);                                                            \
		if (__builtin_expect(ret_ != GLEX_SUCCESS, 0)) {                                                       \
			uint64_t since_ = 0;                                                                           \
			while (ret_ == GLEX_BUSY && perf_busy_wait(s, &since_))                                        \
				ret_ = call((s)->ep, req, NULL);                                                       \
			if (ret_ != GLEX_SUCCESS)                                                                      \
				perf_fail_ret(s, #call, ret_);                                                         \
		}                                                                                                      \
	} while (0)

PERF_INLINE void perf_put(struct perf_side *s, struct glex_rdma_req *req)
{
	PERF_POST(glex_rdma, s, req);
}

PERF_INLINE void perf_imm_put(struct perf_side *s, struct glex_imm_rdma_req *req)
{
	PERF_POST(glex_imm_rdma, s, req);
}

PERF_INLINE void perf_send_mp(struct perf_side *s, struct glex_imm_mp_req *req)
{
	PERF_POST(glex_send_imm_mp, s, req);
}

/*
 * Between two polls that found nothing.  A poll takes the line it looks at away
 * from who is about to write it; polled without a breath, a message is some 10 %
 * later.  It is what any program's loop around a poll should do.
 */
PERF_INLINE void perf_breathe(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* Takes one event, which must be this one. */
PERF_INLINE void perf_wait_event(struct perf_side *s, uint64_t number, uint64_t kind)
{
	glex_event_t *event = NULL;
	int spins = 0;

	while (glex_probe_first_event(s->ep, 0, &event) != GLEX_SUCCESS) {
		if (__builtin_expect(++spins == s->spins, 0)) {
			event = perf_wait_event_slow(s);
			break;
		}
		perf_breathe();
	}
	if (__builtin_expect(event->cookie_0 != number || event->cookie_1 != kind, 0))
		perf_bad_event(s, event, number, kind);
	glex_discard_probed_event(s->ep);
}

/* The next MP behind those already looked at; the caller discards. */
PERF_INLINE void *perf_wait_mp(struct perf_side *s, uint32_t *len_p)
{
	void *data;
	int spins = 0;

	while (glex_probe_next_mp(s->ep, NULL, &data, len_p) != GLEX_SUCCESS) {
		if (__builtin_expect(++spins == s->spins, 0))
			return perf_wait_mp_slow(s, len_p);
		perf_breathe();
	}
	return data;
}

/* Pairs with the order in which the bytes of a PUT become visible: its last word after all others. */
PERF_INLINE void perf_wait_word(struct perf_side *s, const uint64_t *word, uint64_t want)
{
	int spins = 0;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != want) { /* relaxed: stronger, pairs with the NIC */
		if (__builtin_expect(++spins == s->spins, 0)) {
			perf_wait_word_slow(s, word, want);
			return;
		}
		perf_breathe();
	}
}

#endif /* PERF_H */
