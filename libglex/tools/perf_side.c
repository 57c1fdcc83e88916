/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_side.c - one of the two measuring processes.
 *
 * A side never waits without a deadline: it polls, then lets the library put it
 * to sleep for a moment at a time, and ends the process with a message when
 * deadline_s have passed.  Whatever ends a side ends the other: their parent
 * sees the exit status and kills it.
 *
 * label       access                  order     pairs     says
 * PERF-R1     any   met += 1          release   PERF-A1   what it has put into the shared page is there
 * PERF-A1     any   load met          acquire   PERF-R1   it may be read
 */
#include "perf.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS	     50
#define ERRORS_SHOWN 4

/* The name of what failed comes first: test, size, side. */
static void say_who(const struct perf_side *s)
{
	fflush(stdout);
	if (s->test)
		fprintf(stderr, "glex_perf: %s, %u bytes, side %d: ", s->test, s->size, s->side);
	else
		fprintf(stderr, "glex_perf: side %d: ", s->side);
}

/* What the NIC refused in the meantime often explains what did not come. */
static void say_errors(const struct perf_side *s)
{
	struct glex_err_req err[ERRORS_SHOWN];
	uint32_t num = ERRORS_SHOWN;

	if (!s->ep || glex_poll_error_req(s->ep, &num, err) != GLEX_SUCCESS)
		return;
	for (uint32_t i = 0; i < num; i++)
		fprintf(stderr, "glex_perf: side %d: the NIC reports: %s to NIC %u endpoint %u: %s\n", s->side,
			glex_error_req_opcode_str(err[i].op), err[i].rmt_nic_id, err[i].rmt_ep_num,
			glex_error_req_status_str(err[i].status));
}

void perf_fail(const struct perf_side *s, const char *format, ...)
{
	va_list args;

	say_who(s);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	say_errors(s);
	_exit(1);
}

void perf_fail_ret(const struct perf_side *s, const char *call, glex_ret_t ret)
{
	perf_fail(s, "%s: %s", call, glex_error_str(ret));
}

static void must(const struct perf_side *s, const char *call, glex_ret_t ret)
{
	if (ret != GLEX_SUCCESS)
		perf_fail_ret(s, call, ret);
}

/* ---- waiting ------------------------------------------------------------- */

static uint64_t deadline_of(const struct perf_side *s)
{
	return perf_now_ns() + s->opt->deadline_s * 1000000000ULL;
}

glex_event_t *perf_wait_event_slow(struct perf_side *s)
{
	uint64_t until = deadline_of(s);
	glex_event_t *event;
	glex_ret_t ret;

	while ((ret = glex_probe_first_event(s->ep, NAP_MS, &event)) == GLEX_NO_EVENT)
		if (perf_now_ns() > until)
			perf_fail(s, "no event came for %u s", s->opt->deadline_s);
	must(s, "glex_probe_first_event", ret);
	return event;
}

/* One can sleep only at the queue's read index, so what has been looked at, and is done with, goes first. */
void *perf_wait_mp_slow(struct perf_side *s, uint32_t *len_p)
{
	uint64_t until = deadline_of(s);
	glex_ret_t ret;
	void *data;

	must(s, "glex_discard_probed_mp", glex_discard_probed_mp(s->ep));
	while ((ret = glex_probe_first_mp(s->ep, NAP_MS, NULL, &data, len_p)) == GLEX_NO_MP)
		if (perf_now_ns() > until)
			perf_fail(s, "no mini-packet came for %u s", s->opt->deadline_s);
	must(s, "glex_probe_first_mp", ret);
	return data;
}

void perf_wait_word_slow(struct perf_side *s, const uint64_t *word, uint64_t want)
{
	uint64_t until = deadline_of(s);

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != want) { /* relaxed: stronger, pairs with the NIC */
		if (perf_now_ns() > until)
			perf_fail(s, "no PUT arrived for %u s", s->opt->deadline_s);
		sched_yield();
	}
}

/* Between two tries of a post that found the descriptor queue full.  True: try again. */
bool perf_busy_wait(struct perf_side *s, uint64_t *since_p)
{
	uint64_t now = perf_now_ns();

	if (*since_p == 0)
		*since_p = now;
	else if (now - *since_p > s->opt->deadline_s * 1000000000ULL)
		perf_fail(s, "the descriptor queue stayed full for %u s", s->opt->deadline_s);
	else if (now - *since_p > 100000)
		sched_yield();
	return true;
}

void perf_bad_event(const struct perf_side *s, const glex_event_t *event, uint64_t number, uint64_t kind)
{
	perf_fail(s, "event %llu of kind %llu came where %llu of kind %llu was due",
		  (unsigned long long)event->cookie_0, (unsigned long long)event->cookie_1, (unsigned long long)number,
		  (unsigned long long)kind);
}

/* ---- data ---------------------------------------------------------------- */

/* Each side's messages differ from the other's, or one that came back unchanged would pass. */
static uint64_t seed_of(int sender, uint64_t number)
{
	return number * 2 + (uint64_t)sender;
}

void perf_prepare(const struct perf_side *s, void *buf, size_t len, uint64_t number)
{
	perf_fill(buf, len, seed_of(s->side, number));
	if (number == s->opt->broken && len)
		((uint8_t *)buf)[len / 2] ^= 0x10;
}

void perf_verify(const struct perf_side *s, const void *buf, size_t len, uint64_t number)
{
	size_t at = perf_differs(buf, len, seed_of(!s->side, number));

	if (at < len)
		perf_fail(s, "message %llu is corrupt: byte %zu is 0x%02x", (unsigned long long)number, at,
			  ((const uint8_t *)buf)[at]);
}

/* ---- requests ------------------------------------------------------------ */

void perf_req_mp(const struct perf_side *s, uint32_t size, union perf_req *req)
{
	req->mp = (struct glex_imm_mp_req){.rmt_ep_addr = s->peer.addr, .data = s->out, .len = size};
}

/* kind 0: no event */
void perf_req_imm(const struct perf_side *s, uint32_t size, uint64_t kind, union perf_req *req)
{
	req->imm = (struct glex_imm_rdma_req){.rmt_ep_addr = s->peer.addr,
					      .data = s->out,
					      .len = size,
					      .rmt_mh = s->peer.mh,
					      .rmt_offset = (uint32_t)s->half,
					      .rmt_key = s->peer.key,
					      .flag = kind ? GLEX_FLAG_REMOTE_EVT : 0};
	req->imm.rmt_evt.cookie_1 = kind;
}

void perf_req_put(const struct perf_side *s, uint32_t size, uint64_t kind, union perf_req *req)
{
	req->rdma = (struct glex_rdma_req){.rmt_ep_addr = s->peer.addr,
					   .local_mh = s->mh,
					   .len = size,
					   .rmt_mh = s->peer.mh,
					   .rmt_offset = (uint32_t)s->half,
					   .type = GLEX_RDMA_TYPE_PUT,
					   .rmt_key = s->peer.key,
					   .flag = kind ? GLEX_FLAG_REMOTE_EVT : 0};
	req->rdma.rmt_evt.cookie_1 = kind;
}

void perf_req_get(const struct perf_side *s, uint32_t size, union perf_req *req)
{
	req->rdma = (struct glex_rdma_req){.rmt_ep_addr = s->peer.addr,
					   .local_mh = s->mh,
					   .local_offset = (uint32_t)s->half,
					   .len = size,
					   .rmt_mh = s->peer.mh,
					   .type = GLEX_RDMA_TYPE_GET,
					   .rmt_key = s->peer.key,
					   .flag = GLEX_FLAG_LOCAL_EVT};
	req->rdma.local_evt.cookie_1 = PERF_EVENT_LOCAL;
}

const char *perf_refuse_mp(const struct perf_side *s, uint32_t size)
{
	return size > s->dev_attr.max_imm_mp_data_len ? "more than a mini-packet holds" : NULL;
}

const char *perf_refuse_imm(const struct perf_side *s, uint32_t size)
{
	return size > s->dev_attr.max_imm_rdma_data_len ? "more than an immediate PUT holds" : NULL;
}

const char *perf_refuse_rdma(const struct perf_side *s, uint32_t size)
{
	return size > s->dev_attr.max_rdma_data_len ? "more than one request may move" : NULL;
}

/* ---- meeting ------------------------------------------------------------- */

/* Reads exactly len bytes from the other side. */
static void sock_read(struct perf_side *s, void *buf, size_t len)
{
	uint64_t seen = 0, until = deadline_of(s);
	uint8_t *at = buf;

	while (len) {
		struct pollfd pfd = {.fd = s->sock, .events = POLLIN};
		/* relaxed: only asks whether it still moves */
		uint64_t other = atomic_load_explicit(&s->shared->progress[!s->side], memory_order_relaxed);
		ssize_t got;

		if (other != seen) {
			seen = other;
			until = deadline_of(s);
		}
		if (perf_now_ns() > until)
			perf_fail(s, "the other side did not get on for %u s", s->opt->deadline_s);
		if (poll(&pfd, 1, 200) <= 0)
			continue;
		got = read(s->sock, at, len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) /* the parent tells what became of it */
			_exit(1);
		at += got;
		len -= (size_t)got;
	}
}

static void sock_write(struct perf_side *s, const void *buf, size_t len)
{
	/* At most one card waits in the socket, which holds far more: this does not block. */
	if (send(s->sock, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		_exit(1);
}

void perf_side_swap(struct perf_side *s, const void *ours, void *theirs, size_t len)
{
	sock_write(s, ours, len);
	sock_read(s, theirs, len);
}

void perf_side_meet(struct perf_side *s)
{
	uint8_t token = 0;

	perf_progress(s);
	sock_write(s, &token, 1);
	sock_read(s, &token, 1);
	perf_progress(s);
}

static uint64_t progress_of_all(const struct perf_side *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->opt->processes; i++)
		/* relaxed: only asks whether somebody still moves */
		sum += atomic_load_explicit(&s->shared->progress[i], memory_order_relaxed);
	return sum;
}

/* Napping: the two sides may be measuring something else first. */
void perf_all_meet(struct perf_side *s)
{
	const struct timespec nap = {.tv_nsec = 200000};
	uint64_t want = ++s->meetings * s->opt->processes, seen = 0, until = deadline_of(s);

	perf_progress(s);
	/* PERF-R1 */
	atomic_fetch_add_explicit(&s->shared->met, 1, memory_order_release);
	/* PERF-A1 */
	while (atomic_load_explicit(&s->shared->met, memory_order_acquire) < want) {
		uint64_t others = progress_of_all(s);

		if (others != seen) {
			seen = others;
			until = deadline_of(s);
		}
		if (perf_now_ns() > until)
			perf_fail(s, "the others did not get on for %u s", s->opt->deadline_s);
		nanosleep(&nap, NULL);
	}
	perf_progress(s);
}

/* ---- opening and closing ------------------------------------------------- */

/* Private pages that are all small or all huge, whatever the system would choose.  In whole huge pages, aligned. */
static void get_private(struct perf_side *s, uint64_t len)
{
	const uint64_t huge = 2U << 20;
	bool wanted = s->opt->memory == PERF_MEMORY_HUGE;
	uint8_t *base;

	s->mem_len = (len + huge - 1) / huge * huge;
	base = mmap(NULL, s->mem_len + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		perf_fail(s, "no memory: %llu bytes: %s", (unsigned long long)s->mem_len, strerror(errno));
	s->mem = (void *)(((uintptr_t)base + huge - 1) / huge * huge);
	/* What lies before and behind the aligned part is left mapped, untouched. */
	if (madvise(s->mem, s->mem_len, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) && wanted)
		perf_fail(s, "this system has no transparent huge pages: %s", strerror(errno));
}

static void get_memory(struct perf_side *s, uint64_t len)
{
	if (s->opt->memory == PERF_MEMORY_ALLOC)
		must(s, "glex_alloc", glex_alloc(s->dev, len, &s->mem));
	else
		get_private(s, len);
	memset(s->mem, 0, len);
	s->out = s->mem;
	s->in = s->out + s->half;
}

/*
 * Polls before the library may put the caller to sleep: far longer than any
 * answer that is on its way, and in a test of bandwidth than any window of data, or
 * each would end with a wake-up.  Not so if glexd must move the data and finds all
 * cores taken by pollers.
 */
static void choose_spins(struct perf_side *s)
{
	const int *core = s->opt->core;
	int list[3], cores = perf_cores(list, 3);

	s->spins = s->window_spins = 20000;
	if (s->opt->ep_type == GLEX_EP_TYPE_NORMAL && cores < 3)
		s->spins = s->window_spins = 200;
	else if (cores > 1 && (core[0] != core[1] || core[0] == PERF_NO_CORE))
		s->window_spins = 4000000;
}

static void open_device(struct perf_side *s)
{
	int core = s->opt->core[s->side % 2];

	glex_single_threaded = 1;
	must(s, "glex_open_device", glex_open_device(0, &s->dev));
	/* Not earlier: a glexd started by the line above would share the core for ever. */
	if (perf_pin(core))
		perf_fail(s, "cannot run on core %d: %s", core, strerror(errno));
	must(s, "glex_query_device", glex_query_device(s->dev, &s->dev_attr));
}

void perf_member_open(struct perf_side *s, uint64_t half)
{
	s->half = half;
	open_device(s);
	s->out = s->mem = calloc(2, half);
	if (!s->mem)
		perf_fail(s, "no memory: %llu bytes", 2ULL * half);
	s->in = s->out + half;
}

void perf_member_close(struct perf_side *s)
{
	free(s->mem);
	must(s, "glex_close_device", glex_close_device(s->dev));
}

void perf_side_open(struct perf_side *s, uint64_t half)
{
	struct glex_ep_attr attr = {.type = s->opt->ep_type, .num = GLEX_ANY_EP_NUM, .key = GLEX_EP_MAKE_KEY(getpid())};
	struct perf_card card = {.key = attr.key, .pid = (uint32_t)getpid()};

	choose_spins(s);
	s->half = half;
	open_device(s);
	must(s, "glex_create_ep", glex_create_ep(s->dev, &attr, &s->ep));
	must(s, "glex_get_ep_addr", glex_get_ep_addr(s->ep, &card.addr));
	get_memory(s, 2 * half);
	must(s, "glex_register_mem",
	     glex_register_mem(s->ep, s->mem, 2 * half, GLEX_MEM_READ | GLEX_MEM_WRITE, &s->mh));
	card.mh = s->mh;
	card.mem = (uintptr_t)s->mem;
	perf_side_swap(s, &card, &s->peer, sizeof(s->peer));
}

void perf_side_close(struct perf_side *s)
{
	perf_side_meet(s); /* nobody's memory goes while the other may still touch it */
	must(s, "glex_deregister_mem", glex_deregister_mem(s->ep, s->mh));
	must(s, "glex_destroy_ep", glex_destroy_ep(s->ep));
	if (s->opt->memory == PERF_MEMORY_ALLOC)
		must(s, "glex_free", glex_free(s->dev, s->mem));
	else
		munmap(s->mem, s->mem_len);
	must(s, "glex_close_device", glex_close_device(s->dev));
}
