/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crowd.c - processes that all talk to each other, and one after the other is
 * killed in the middle of it.
 *
 *	crowd TYPE MEMORY KILLS     TYPE fast or normal, MEMORY private or mapped
 *
 * Each worker sends MPs and PUTs with events to all others without pause.  The
 * supervisor kills one at a random moment; then every other must be told by an
 * error request within BOUND_S, must go on receiving from the rest (a slot that
 * the dead one had claimed in its queue would stop it), and a successor must get
 * the same endpoint number.  MPs of a sender must never be seen twice or in
 * another order.
 *
 *   desk[i]: what worker i shows the others and the supervisor; only it writes
 */
#include <glex.h>
#include <glex_ext.h>

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS	    4
#define AREA	    1024
#define IN_FLIGHT   32
#define BOUND_S	    10
#define START_S	    20
#define LOCAL_EVENT 100

struct desk {
	_Atomic uint32_t gen; /* 0: nobody there; set last */
	_Atomic uint32_t key;
	_Atomic uint64_t addr, mh;
	_Atomic uint64_t received;
	_Atomic uint64_t dead[WORKERS]; /* error requests that say worker i is gone */
};

struct hall {
	struct desk desk[WORKERS];
	_Atomic bool over;
	_Atomic bool failed;
};

static struct hall *hall;
static enum glex_ep_type type;
static bool mapped;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- a worker --------------------------------------------------------------------- */

struct message {
	uint32_t from, gen;
	uint64_t seq;
};

struct worker {
	uint32_t id, gen;
	glex_device_handle_t dev;
	glex_ep_handle_t ep;
	glex_mem_handle_t mh;
	unsigned char *buf; /* an area for each worker's PUTs, and one they are made from */
	uint64_t seq[WORKERS];
	uint32_t in_flight;
	struct message last[WORKERS];
};

__attribute__((format(printf, 2, 3), noreturn)) static void fail(const struct worker *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("worker %u: ", w->id);
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
	hall->failed = true;
	_exit(EXIT_FAILURE);
}

static void must(const struct worker *w, const char *what, glex_ret_t ret)
{
	if (ret != GLEX_SUCCESS)
		fail(w, "%s: %s", what, glex_error_str(ret));
}

static uint32_t number_of(uint32_t id)
{
	return type == GLEX_EP_TYPE_NORMAL ? id + 8 : id;
}

/* The predecessor's number is free as soon as glexd has noticed its death. */
static void take_number(struct worker *w)
{
	struct glex_ep_attr attr = {.type = type, .num = number_of(w->id), .key = w->gen * 16 + w->id};
	double end = now() + BOUND_S;
	glex_ret_t ret;

	do {
		ret = glex_create_ep(w->dev, &attr, &w->ep);
		sched_yield();
	} while (ret == GLEX_NO_EP_RESOURCE && now() < end);
	must(w, "taking the number again", ret);
}

static void move_in(struct worker *w)
{
	size_t len = (WORKERS + 1) * AREA;
	glex_ep_addr_t addr;
	void *buf = NULL;

	must(w, "open", glex_open_device(0, &w->dev));
	take_number(w);
	if (mapped)
		must(w, "alloc", glex_alloc(w->dev, len, &buf));
	else
		buf = calloc(1, len);
	w->buf = buf;
	memset(w->buf + WORKERS * AREA, (int)(w->id + 1), AREA);
	must(w, "register", glex_register_mem(w->ep, buf, len, GLEX_MEM_READ | GLEX_MEM_WRITE, &w->mh));
	must(w, "address", glex_get_ep_addr(w->ep, &addr));
	hall->desk[w->id].key = w->gen * 16 + w->id;
	hall->desk[w->id].addr = addr.v;
	hall->desk[w->id].mh = w->mh.v;
	hall->desk[w->id].gen = w->gen;
}

static void post(struct worker *w, uint32_t to)
{
	struct desk *desk = &hall->desk[to];
	struct message message = {w->id, w->gen, w->seq[to] + 1};
	struct glex_imm_mp_req mp = {.data = &message, .len = sizeof(message)};
	struct glex_rdma_req put = {.len = AREA, .flag = GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT};
	glex_ret_t ret;

	mp.rmt_ep_addr.v = desk->addr;
	ret = glex_send_imm_mp(w->ep, &mp, NULL);
	if (ret != GLEX_BUSY) {
		must(w, "sending", ret);
		w->seq[to]++;
	}
	if (w->in_flight >= IN_FLIGHT)
		return;
	put.rmt_ep_addr.v = desk->addr;
	put.rmt_mh.v = desk->mh;
	put.rmt_key = desk->key;
	put.local_mh = w->mh;
	put.local_offset = WORKERS * AREA;
	put.rmt_offset = w->id * AREA;
	put.local_evt.cookie_1 = LOCAL_EVENT;
	put.rmt_evt.cookie_1 = w->id + 1;
	ret = glex_rdma(w->ep, &put, NULL);
	if (ret != GLEX_BUSY) {
		must(w, "putting", ret);
		w->in_flight++;
	}
}

static void take_mps(struct worker *w)
{
	struct message m, *last;
	uint32_t len, n;
	glex_ret_t ret;
	void *at;

	for (n = 0; n < 64 && (ret = glex_probe_next_mp(w->ep, NULL, &at, &len)) == GLEX_SUCCESS; n++) {
		memcpy(&m, at, sizeof(m));
		if (len != sizeof(m) || m.from >= WORKERS)
			fail(w, "an MP of %u bytes from %u", len, m.from);
		last = &w->last[m.from];
		if (m.gen < last->gen || (m.gen == last->gen && m.seq <= last->seq))
			fail(w, "MP %llu of %u.%u after %llu of %u", (unsigned long long)m.seq, m.from, m.gen,
			     (unsigned long long)last->seq, last->gen);
		*last = m;
		hall->desk[w->id].received++;
	}
	must(w, "discarding", glex_discard_probed_mp(w->ep));
}

static void take_events(struct worker *w)
{
	glex_event_t *event;
	uint32_t n, i;

	for (n = 0; n < 64 && glex_probe_next_event(w->ep, &event) == GLEX_SUCCESS; n++) {
		uint64_t from = event->cookie_1;

		if (from == LOCAL_EVENT) {
			w->in_flight -= w->in_flight > 0;
			continue;
		}
		if (from == 0 || from > WORKERS)
			fail(w, "an event of %llu", (unsigned long long)from);
		for (i = 0; i < AREA; i++)
			if (w->buf[(from - 1) * AREA + i] != from)
				fail(w, "byte %u of %llu is not there", i, (unsigned long long)from);
	}
	must(w, "discarding", glex_discard_probed_event(w->ep));
}

static void take_errors(struct worker *w)
{
	struct glex_err_req list[64];
	uint32_t num = 64, i, id;

	must(w, "polling errors", glex_poll_error_req(w->ep, &num, list));
	for (i = 0; i < num; i++) {
		if (list[i].op == GLEX_ERR_OP_RDMA_PUT && list[i].status != GLEX_ERR_STATUS_DEST_EQ_FULL)
			w->in_flight -= w->in_flight > 0;
		id = list[i].rmt_ep_num - number_of(0);
		switch (list[i].status) {
		case GLEX_ERR_STATUS_DEST_MPQ_FULL:
		case GLEX_ERR_STATUS_DEST_EQ_FULL:
			break; /* nobody has promised to keep up */
		case GLEX_ERR_STATUS_DEST_VP_STOP:
		case GLEX_ERR_STATUS_DEST_HOST_DEAD:
		case GLEX_ERR_STATUS_ATT:
			if (id < WORKERS)
				hall->desk[w->id].dead[id]++;
			break;
		default:
			fail(w, "error: %s", glex_error_req_status_str(list[i].status));
		}
	}
}

static void work(uint32_t id, uint32_t gen)
{
	static struct worker w;
	uint32_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	w.id = id;
	w.gen = gen;
	move_in(&w);
	while (!hall->over) {
		for (i = 0; i < WORKERS; i++)
			if (i != id && hall->desk[i].gen)
				post(&w, i);
		take_mps(&w);
		take_events(&w);
		take_errors(&w);
	}
	must(&w, "destroy", glex_destroy_ep(w.ep));
	must(&w, "close", glex_close_device(w.dev));
	_exit(EXIT_SUCCESS);
}

/* ---- the supervisor ------------------------------------------------------------------ */

static pid_t pids[WORKERS];

static void start(uint32_t id, uint32_t gen)
{
	pids[id] = fork();
	if (pids[id] == 0)
		work(id, gen);
}

/* Waits for a condition about all workers but one; false: never. */
static bool all_but(uint32_t victim, bool (*cond)(uint32_t id, uint32_t victim, uint64_t then), const uint64_t *then,
		    double seconds)
{
	double end = now() + seconds;
	uint32_t i;

	for (i = 0; i < WORKERS; i++)
		while (i != victim && !cond(i, victim, then[i])) {
			if (hall->failed || now() > end)
				return false;
			usleep(200);
		}
	return true;
}

static bool has_been_told(uint32_t id, uint32_t victim, uint64_t then)
{
	return hall->desk[id].dead[victim] > then;
}

static bool has_received(uint32_t id, uint32_t victim, uint64_t then)
{
	(void)victim;
	return hall->desk[id].received > then + 20;
}

static void note(uint32_t victim, uint64_t told[WORKERS], uint64_t received[WORKERS])
{
	uint32_t i;

	for (i = 0; i < WORKERS; i++) {
		told[i] = hall->desk[i].dead[victim];
		received[i] = hall->desk[i].received;
	}
}

static const char *kill_one(uint32_t victim, uint32_t gen, double *told_s)
{
	uint64_t told[WORKERS], received[WORKERS];

	usleep((useconds_t)(rand() % 3000));
	note(victim, told, received);
	kill(pids[victim], SIGKILL);
	waitpid(pids[victim], NULL, 0);
	*told_s = now();
	if (!all_but(victim, has_been_told, told, BOUND_S))
		return "somebody is not told of the death";
	*told_s = now() - *told_s;
	note(victim, told, received);
	if (!all_but(victim, has_received, received, BOUND_S))
		return "somebody receives nothing any more";
	hall->desk[victim].gen = 0;
	start(victim, gen);
	if (!all_but(WORKERS, has_received, received, START_S))
		return "the successor does not take part";
	return NULL;
}

static bool all_end(void)
{
	bool good = true;
	int i, status;

	hall->over = true;
	for (i = 0; i < WORKERS; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			good = false;
	return good;
}

int main(int argc, char **argv)
{
	const uint64_t nothing[WORKERS] = {0};
	const char *wrong = NULL;
	double told_s, longest = 0;
	uint32_t i, kills;

	if (argc != 4) {
		fprintf(stderr, "usage: crowd fast|normal private|mapped KILLS\n");
		return 2;
	}
	type = strcmp(argv[1], "normal") ? GLEX_EP_TYPE_FAST : GLEX_EP_TYPE_NORMAL;
	mapped = !strcmp(argv[2], "mapped");
	kills = (uint32_t)strtoul(argv[3], NULL, 10);
	setenv("GLEX_NODE", "0", 1);
	srand((unsigned)getpid());
	hall = mmap(NULL, sizeof(*hall), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hall == MAP_FAILED)
		return 2;
	for (i = 0; i < WORKERS; i++)
		start(i, 1);
	if (!all_but(WORKERS, has_received, nothing, START_S))
		wrong = "the crowd does not get going";
	for (i = 0; i < kills && !wrong; i++) {
		wrong = kill_one((uint32_t)rand() % WORKERS, i + 2, &told_s);
		longest = told_s > longest ? told_s : longest;
	}
	if (!all_end() && !wrong)
		wrong = "a worker failed at the end";
	printf("%u killed, error requests at most %.0f ms later; %s\n", i, longest * 1e3,
	       wrong ? wrong : "all went on");
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
