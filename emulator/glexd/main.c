/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - glexd, the NIC emulator process: options, socket, event loop.
 *
 * Programs start one by themselves (--private): it goes into the background
 * once its socket listens, and leaves with its last client.  If another one has
 * the name already it ends with success, for then the starter has what it
 * wanted.  By hand it stays in the foreground until a signal.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <glex.h>
#include <libgen.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"

#include "cfg/cfg.h"
#include "cfg/log.h"
#include "emulator/glexd/glexd.h"

#define FIRST_CLIENT_S 10 /* a private glexd nobody connects to leaves after that */
#define BACKLOG	       1024

const char *argp_program_version = "glexd " PACKAGE_VERSION;

static const struct argp_option options[] = {
	{"socket", 's', "NAME", 0, "Listen on NAME: a path, or @NAME for an abstract socket (required)", 0},
	{"private", 'p', NULL, 0, "Go into the background when listening, leave with the last client", 0},
	{"linger", 'l', "TIME", 0, "With --private: stay so long after the last client (GLEX_LINGER)", 0},
	{0},
};

/* As the variable that gives the default: 250, 250ms, 5s. */
static error_t parse_linger(const char *text, struct glexd *glexd, struct argp_state *state)
{
	const struct glexi_cfg_row *row = glexi_cfg_table;
	uint64_t ms = 0;
	const char *why;

	while (row->name && strcmp(row->name, "GLEX_LINGER") != 0)
		row++;
	if (!row->name || !glexi_cfg_parse_value(row, text, &ms, &why))
		argp_error(state, "--linger: '%s' %s", text, row->name ? why : "cannot be read");
	glexd->linger_ms = (uint32_t)ms;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct glexd *glexd = state->input;

	switch (key) {
	case 's':
		glexd->socket = arg;
		return 0;
	case 'p':
		glexd->private = true;
		return 0;
	case 'l':
		return parse_linger(arg, glexd, state);
	case ARGP_KEY_END:
		if (!glexd->socket || glexd->socket[0] == '\0')
			argp_error(state, "which socket? give --socket PATH or --socket @NAME");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp parser = {
	options, parse,
	NULL,	 "glexd - the NIC emulator behind libglex\vPrograms start one by themselves; see glexd(8).",
	NULL,	 NULL,
	NULL};

/* Fills in the address; 0 or -1 if the name is too long. */
static int address_of(const char *name, struct sockaddr_un *addr, socklen_t *len)
{
	size_t n = strlen(name);

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (n >= sizeof(addr->sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(addr->sun_path, name, n);
	if (name[0] == '@')
		addr->sun_path[0] = '\0';
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] != '@'));
	return 0;
}

/* A path left by a glexd that was killed: nobody answers there. */
static bool is_stale(const char *name, const struct sockaddr_un *addr, socklen_t len)
{
	int fd, refused;

	if (name[0] == '@')
		return false;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	refused = fd >= 0 && connect(fd, (const struct sockaddr *)addr, len) < 0 && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return refused;
}

/*
 * Locks the directory of a path: of several that find a stale socket, only one
 * at a time may look, remove it and listen in its place.  -1: there is nothing
 * to lock, for an abstract name or a directory that is missing.
 */
static int lock_place(const char *name)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;

	if (name[0] == '@' || strlen(name) >= sizeof(path))
		return -1;
	strcpy(path, name);
	fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		flock(fd, LOCK_EX);
	return fd;
}

/* 0, or -1 with errno: EADDRINUSE when another glexd has the name. */
static int bind_and_listen(struct glexd *glexd)
{
	struct sockaddr_un addr;
	socklen_t len;
	int fd;

	if (address_of(glexd->socket, &addr, &len) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&addr, len) < 0 &&
	    (errno != EADDRINUSE || !is_stale(glexd->socket, &addr, len) || unlink(glexd->socket) < 0 ||
	     bind(fd, (struct sockaddr *)&addr, len) < 0)) {
		int error = errno == ENOENT ? EADDRINUSE : errno;

		close(fd);
		errno = error;
		return -1;
	}
	if (listen(fd, BACKLOG) < 0) {
		close(fd);
		return -1;
	}
	glexd->listener = fd;
	return 0;
}

static int listen_on(struct glexd *glexd)
{
	int place = lock_place(glexd->socket), ret = bind_and_listen(glexd), error = errno;

	if (place >= 0)
		close(place);
	errno = error;
	return ret;
}

/* Into the background: no terminal, and nobody who reads the starter's output waits for us. */
static int detach(void)
{
	int null, fd;
	pid_t child = fork();

	if (child < 0)
		return -1;
	if (child > 0)
		_exit(0);
	if (setsid() < 0 || chdir("/") < 0)
		return -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -1;
	for (fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	return 0;
}

static void on_signal(evutil_socket_t sig, short what, void *arg)
{
	struct glexd *glexd = arg;

	(void)what;
	glexi_info("ends on signal %d", (int)sig);
	event_base_loopbreak(glexd->base);
}

static void on_leave(evutil_socket_t fd, short what, void *arg)
{
	struct glexd *glexd = arg;

	(void)fd;
	(void)what;
	event_base_loopbreak(glexd->base);
}

/* What may fail for want of memory: before we go into the background, where nobody hears us. */
static int make_engine(struct glexd *glexd)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* posix_fallocate then says EFBIG */
	if (segment_create(&glexd->engine_seg, "the engine's switches", sizeof(struct emu_engine)) < 0)
		return -1;
	glexd->engine = glexd->engine_seg.base;
	emu_seg_format(&glexd->engine->seg, EMU_MAGIC_ENGINE, glexd->engine_seg.size);
	glexd->engine->reorder = (uint32_t)glexi_cfg()->reorder;
	glexd->engine->reorder_seed = glexi_cfg()->reorder_seed;
	return 0;
}

/* What most first clients ask for. */
static void want_usual(struct glexd *glexd)
{
	const struct emu_vport_shape shape = {.mpq_capacity = EMU_DEF_MPQ,
					      .eq_capacity = EMU_DEF_EQ,
					      .dq_capacity = glexd->engine->reorder ? EMU_DEF_DQ : 0};

	stock_want(glexd, STOCK_NIC, EMU_NIC_SIZE(glexd->host.model));
	stock_want(glexd, STOCK_PORT, emu_vport_size(&shape));
}

static int set_up(struct glexd *glexd)
{
	static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
	struct timeval first = {.tv_sec = FIRST_CLIENT_S};
	size_t i;

	glexd->base = event_base_new();
	if (!glexd->base)
		return -1;
	glexd->leave = evtimer_new(glexd->base, on_leave, glexd);
	glexd->acceptor = event_new(glexd->base, glexd->listener, EV_READ | EV_PERSIST, session_accept, glexd);
	if (!glexd->leave || !glexd->acceptor || event_add(glexd->acceptor, NULL) < 0)
		return -1;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct event *e = evsignal_new(glexd->base, ends[i], on_signal, glexd);

		if (!e || event_add(e, NULL) < 0)
			return -1;
	}
	if (glexd->private)
		event_add(glexd->leave, &first);
	stock_start(glexd);
	if (dma_start(glexd) < 0)
		return -1;
	want_usual(glexd);
	numa_start(glexd);
	return 0;
}

static void serve(struct glexd *glexd)
{
	glexi_info("listening on %s", glexd->socket);
	event_base_dispatch(glexd->base);
	/* First the name: who comes now starts another one. */
	close(glexd->listener);
	if (glexd->socket[0] != '@')
		unlink(glexd->socket);
	numa_stop(glexd);
	dma_stop(glexd);
	while (!LIST_EMPTY(&glexd->sessions))
		session_end(LIST_FIRST(&glexd->sessions), "glexd ends");
	stock_stop(glexd);
}

/* A client costs two, an endpoint and a shared object one each: the usual 1024 do not take a node far. */
static void more_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Before options are parsed: the defaults they replace come from the configuration. */
static bool is_private(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], "--private") == 0 || strcmp(argv[i], "-p") == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static struct glexd glexd = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1, .next_session = EMU_SESSION_GLEXD + 1};

	/* No inherited descriptor stays; before the first of our own, the log, is opened. */
	close_range(3, ~0U, 0);
	more_descriptors();
	glexi_log_name("glexd");
	if (is_private(argc, argv))
		glexi_cfg_inherited(); /* the program that starts us has told its user of wrong variables */
	glexd.linger_ms = (uint32_t)glexi_cfg()->linger_ms;
	LIST_INIT(&glexd.sessions);
	argp_parse(&parser, argc, argv, 0, NULL, &glexd);
	if (listen_on(&glexd) < 0) {
		if (errno == EADDRINUSE && glexd.private)
			return 0;
		glexi_error("cannot listen on %s: %s; is another glexd running there, or is the directory missing?",
			    glexd.socket, strerror(errno));
		return 1;
	}
	if (make_engine(&glexd) < 0)
		return 1;
	if (glexd.private && detach() < 0) {
		glexi_error("cannot go into the background: %s", strerror(errno));
		return 1;
	}
	if (set_up(&glexd) < 0) {
		glexi_error("cannot start: %s", strerror(errno));
		return 1;
	}
	serve(&glexd);
	return 0;
}
