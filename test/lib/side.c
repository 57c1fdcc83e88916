/* SPDX-License-Identifier: BSD-2-Clause */
/* side.c - see side.h. */
#include "test/lib/side.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/raw.h"

#define ALL (GLEX_MEM_READ | GLEX_MEM_WRITE)

void own_job(const char *test)
{
	char job[64];

	snprintf(job, sizeof(job), "%s-%d", test, (int)getpid());
	setenv("GLEX_JOB", job, 1);
	unsetenv("GLEX_SOCKET");
}

static const char *log_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/dev/shm/glex-log-%d", (int)getpid());
	return path;
}

void log_begin(void)
{
	setenv("GLEX_LOG_FILE", log_path(), 1);
	setenv("GLEX_LOG_LEVEL", "info", 1);
}

bool is_logged(const char *what)
{
	static char text[1 << 16];
	int log = open(log_path(), O_RDONLY);
	ssize_t n = read(log, text, sizeof(text) - 1);

	close(log);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, what) != NULL;
}

void log_end(void)
{
	unlink(log_path());
}

void side_open_as(struct side *side, struct glex_ep_attr *attr, size_t len, bool mapped)
{
	void *buf = NULL;

	memset(side, 0, sizeof(*side));
	OK(glex_open_device(0, &side->dev));
	OK(glex_create_ep(side->dev, attr, &side->ep));
	OK(glex_get_ep_addr(side->ep, &side->card.addr));
	side->card.key = attr->key;
	side->card.pid = (uint32_t)getpid();
	side->len = len;
	side->mapped = mapped;
	if (!len)
		return;
	if (mapped)
		OK(glex_alloc(side->dev, len, &buf));
	else
		ck_assert_int_eq(posix_memalign(&buf, 64, len), 0);
	memset(buf, 0, len);
	side->buf = buf;
	OK(glex_register_mem(side->ep, buf, len, ALL, &side->card.mh));
}

void side_open(struct side *side, enum glex_ep_type type, size_t len, bool mapped)
{
	struct glex_ep_attr attr = {
		.type = type, .num = GLEX_ANY_EP_NUM, .key = GLEX_EP_MAKE_KEY((unsigned)getpid() * 7u)};

	side_open_as(side, &attr, len, mapped);
}

void side_close(struct side *side)
{
	if (side->len)
		OK(glex_deregister_mem(side->ep, side->card.mh));
	OK(glex_destroy_ep(side->ep));
	if (side->len && side->mapped)
		OK(glex_free(side->dev, side->buf));
	else
		free(side->buf);
	OK(glex_close_device(side->dev));
}

struct card swap_cards(const struct side *side, int fd)
{
	struct card theirs;

	say(fd, &side->card, sizeof(side->card));
	hear(fd, &theirs, sizeof(theirs));
	return theirs;
}

static struct {
	pid_t glexd, guard;
	int alive; /* open as long as we are there */
} stopped;

/* A process that outlives us, even if we are killed with all our group, and then lets glexd go on. */
static void stand_guard(pid_t glexd)
{
	int ends[2];
	char byte;

	ck_assert_int_eq(pipe(ends), 0);
	stopped.guard = fork();
	ck_assert_int_ge(stopped.guard, 0);
	if (stopped.guard == 0) {
		setsid();
		close(ends[1]);
		while (read(ends[0], &byte, 1) > 0)
			;
		kill(glexd, SIGCONT);
		_exit(EXIT_SUCCESS);
	}
	close(ends[0]);
	stopped.alive = ends[1];
}

/* The first letter behind the name in /proc/PID/task/TID/stat: T when stopped. */
static bool is_stopped(pid_t pid, const char *task)
{
	char path[512], text[512] = "", *after;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, task);
	stat = fopen(path, "r");
	if (!stat)
		return true;
	after = fgets(text, sizeof(text), stat) ? strrchr(text, ')') : NULL;
	fclose(stat);
	return after && after[1] == ' ' && after[2] == 'T';
}

/* A signal to stop reaches the threads of a process one after the other, and not at once. */
static bool all_stopped(pid_t pid)
{
	char path[64];
	struct dirent *task;
	bool all = true;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	ck_assert_ptr_nonnull(tasks);
	while (all && (task = readdir(tasks)))
		all = task->d_name[0] == '.' || is_stopped(pid, task->d_name);
	closedir(tasks);
	return all;
}

pid_t glexd_stop(void)
{
	char name[128];

	raw_name(name, sizeof(name));
	stopped.glexd = raw_glexd_pid(name);
	ck_assert_int_gt(stopped.glexd, 0);
	stand_guard(stopped.glexd);
	ck_assert_int_eq(kill(stopped.glexd, SIGSTOP), 0);
	UNTIL(all_stopped(stopped.glexd));
	return stopped.glexd;
}

void glexd_go_on(void)
{
	close(stopped.alive);
	waitpid(stopped.guard, NULL, 0);
	stopped.glexd = 0;
}

/* ---- posting ---------------------------------------------------------------- */

#define POST(call)                                                                                                     \
	do {                                                                                                           \
		glex_ret_t got_;                                                                                       \
		int64_t deadline_ = now_ns() + INT64_C(1000000000) * PATIENCE_S;                                       \
		while ((got_ = (call)) == GLEX_BUSY)                                                                   \
			ck_assert_msg(now_ns() < deadline_, "BUSY for ever: %s", #call);                               \
		ck_assert_msg(got_ == GLEX_SUCCESS, "%s: %s", #call, glex_error_str(got_));                            \
	} while (0)

void post_mp(glex_ep_handle_t ep, struct glex_imm_mp_req *req)
{
	POST(glex_send_imm_mp(ep, req, NULL));
}

void send_mp(struct side *side, glex_ep_addr_t to, const void *data, uint32_t len)
{
	struct glex_imm_mp_req req = {.rmt_ep_addr = to, .data = (void *)(uintptr_t)data, .len = len};

	post_mp(side->ep, &req);
}

void post_imm(glex_ep_handle_t ep, struct glex_imm_rdma_req *req)
{
	POST(glex_imm_rdma(ep, req, NULL));
}

void post_rdma(glex_ep_handle_t ep, struct glex_rdma_req *req)
{
	POST(glex_rdma(ep, req, NULL));
}

struct glex_rdma_req rdma_between(const struct side *side, const struct card *to, enum glex_rdma_type type,
				  uint32_t offset, uint32_t len)
{
	struct glex_rdma_req req = {
		.rmt_ep_addr = to->addr,
		.local_mh = side->card.mh,
		.local_offset = offset,
		.len = len,
		.rmt_mh = to->mh,
		.rmt_offset = offset,
		.type = type,
		.rmt_key = to->key,
	};
	return req;
}

glex_event_t take_event(glex_ep_handle_t ep)
{
	glex_event_t *event, copy;

	OK(glex_probe_first_event(ep, WAIT_MS, &event));
	copy = *event;
	OK(glex_discard_probed_event(ep));
	return copy;
}

void rdma_done(struct side *side, const struct card *to, enum glex_rdma_type type, uint32_t offset, uint32_t len)
{
	struct glex_rdma_req req = rdma_between(side, to, type, offset, len);
	glex_event_t event;

	req.flag = GLEX_FLAG_LOCAL_EVT;
	req.local_evt.cookie_0 = offset;
	req.local_evt.cookie_1 = (uint64_t)len + 1;
	post_rdma(side->ep, &req);
	event = take_event(side->ep);
	ck_assert_uint_eq(event.cookie_0, offset);
	ck_assert_uint_eq(event.cookie_1, (uint64_t)len + 1);
}

void expect_mp(glex_ep_handle_t ep, const void *data, uint32_t len)
{
	unsigned char got[112];
	uint32_t got_len;

	OK(glex_receive_mp(ep, WAIT_MS, NULL, got, &got_len));
	ck_assert_uint_eq(got_len, len);
	ck_assert_mem_eq(got, data, len);
}

/* ---- errors ------------------------------------------------------------------ */

struct glex_err_req take_error(glex_ep_handle_t ep)
{
	struct glex_err_req err = {0};
	uint32_t num;

	UNTIL((num = 1, glex_poll_error_req(ep, &num, &err)) == GLEX_SUCCESS && num == 1);
	return err;
}

void expect_error(glex_ep_handle_t ep, enum glex_err_req_op op, enum glex_err_req_status status)
{
	struct glex_err_req err = take_error(ep);

	ck_assert_str_eq(glex_error_req_opcode_str(err.op), glex_error_req_opcode_str(op));
	ck_assert_str_eq(glex_error_req_status_str(err.status), glex_error_req_status_str(status));
}

void expect_no_error(glex_ep_handle_t ep)
{
	struct glex_err_req err = {0};
	uint32_t num = 1;

	OK(glex_poll_error_req(ep, &num, &err));
	ck_assert_msg(num == 0, "an error request: %s", glex_error_req_status_str(err.status));
}

/* ---- data -------------------------------------------------------------------- */

static unsigned char byte_at(size_t i, uint32_t seed)
{
	return (unsigned char)((i * 2654435761u >> 7) + seed * 131u + 1u);
}

void fill(unsigned char *buf, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = byte_at(i, seed);
}

void expect_filled(const unsigned char *buf, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != byte_at(i, seed))
			ck_abort_msg("byte %zu of %zu is %#x, not %#x", i, len, buf[i], byte_at(i, seed));
}

void skipped(const char *test, const char *why)
{
	printf("skipped: %s: %s\n", test, why);
	fflush(stdout);
}
