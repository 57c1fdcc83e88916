/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch.c - which glexd is ours, and starting it.
 *
 * Processes of one job must find the same one without having talked: the name
 * is an abstract socket made of the user and the job.  The job is GLEX_JOB, the
 * Slurm step, or under an MPI launcher the number of its mpiexec process, which
 * started the proxy that all ranks of a machine, and all processes they spawn,
 * descend from: as its children, or with shells, debuggers and the like between;
 * without any of them all programs of the user share one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/nic/ctl.h"
#include "cfg/cfg.h"
#include "cfg/log.h"

extern char **environ;

#define ANCESTORS_MAX 64

/* Up to size - 1 bytes of a file of /proc/PID, and a final 0.  How many; 0 if it cannot be read. */
static size_t read_proc(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];
	size_t len = 0;
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	text[len] = '\0';
	return len;
}

/* State and parent of a process, from the kernel; a parent of 0: it cannot be told. */
static pid_t stat_of(pid_t pid, char *state)
{
	char text[512], *after;
	int parent = 0;

	*state = '\0';
	if (read_proc(pid, "stat", text, sizeof(text)) == 0)
		return 0;
	after = strrchr(text, ')'); /* the program's name may hold anything */
	if (!after || sscanf(after, ") %c %d", state, &parent) != 2)
		return 0;
	return parent;
}

static pid_t parent_of(pid_t pid)
{
	char state;

	return stat_of(pid, &state);
}

bool nic_is_at_work(pid_t pid)
{
	char state = '\0';

	if (pid > 0)
		stat_of(pid, &state);
	return state == 'R';
}

/*
 * The process was started as a rank, and what runs as the rank is below it: a shell, a debugger, a tracer.  A proxy
 * has a rank too where mpiexec was started by a rank.
 */
static bool is_around_rank(pid_t pid)
{
	static const char rank[] = "PMI_RANK=";
	size_t len, size = 256 << 10;
	char name[64], *text, *at;
	bool found = false;

	if (read_proc(pid, "comm", name, sizeof(name)) == 0 || strstr(name, "pmi_proxy"))
		return false;
	text = malloc(size);
	if (!text)
		return false;
	len = read_proc(pid, "environ", text, size);
	for (at = text; !found && at < text + len; at += strlen(at) + 1)
		found = strncmp(at, rank, sizeof(rank) - 1) == 0;
	free(text);
	return found;
}

/* The mpiexec that has started this rank; 0 if it cannot be told. */
static pid_t launcher_of_rank(void)
{
	pid_t proxy = getppid();

	for (int i = 0; i < ANCESTORS_MAX && proxy > 1 && is_around_rank(proxy); i++)
		proxy = parent_of(proxy);
	return parent_of(proxy);
}

/* Into job: what names this job, "" where nothing does. */
static void job_name(char *job, size_t size)
{
	const struct glexi_cfg *cfg = glexi_cfg();
	pid_t launcher;

	job[0] = '\0';
	if (cfg->job[0]) {
		snprintf(job, size, "-%s", cfg->job);
	} else if (cfg->slurm_job_id[0]) {
		snprintf(job, size, "-slurm%s.%s", cfg->slurm_job_id, cfg->slurm_step_id);
	} else if (cfg->pmi_rank != GLEXI_CFG_UNSET) {
		launcher = launcher_of_rank();
		if (launcher > 1)
			snprintf(job, size, "-mpi%d", (int)launcher);
	}
}

int nic_socket_name(char *name, size_t size, bool *private_p)
{
	const struct glexi_cfg *cfg = glexi_cfg();
	char job[256];
	int n;

	*private_p = cfg->socket[0] == '\0';
	if (*private_p) {
		job_name(job, sizeof(job));
		n = snprintf(name, size, "@glex-%u%s", (unsigned)geteuid(), job);
	} else {
		n = snprintf(name, size, "%s", cfg->socket);
	}
	if ((size_t)n < size - 1)
		return 0;
	glexi_error("the socket's name is too long: %d characters, the system takes %zu; shorten GLEX_SOCKET or "
		    "GLEX_JOB",
		    n, size - 2);
	return -1;
}

/* Into path: the glexd that belongs to this library: GLEX_GLEXD, the one beside us, the one configured. */
static void find_glexd(char *path, size_t size)
{
	const char *given = glexi_cfg()->glexd;
	Dl_info self;
	char *slash;

	if (given[0]) {
		snprintf(path, size, "%s", given);
		return;
	}
	if (dladdr((void *)(uintptr_t)find_glexd, &self) && self.dli_fname && strchr(self.dli_fname, '/')) {
		char dir[PATH_MAX];

		snprintf(dir, sizeof(dir), "%s", self.dli_fname);
		slash = strrchr(dir, '/');
		*slash = '\0';
		snprintf(path, size, "%s/../bin/glexd", dir);
		if (access(path, X_OK) == 0)
			return;
	}
	snprintf(path, size, "%s/glexd", GLEX_BINDIR);
}

/*
 * The processes of a job open their devices at the same time, and each would start one; all but the first would come
 * too late for its name, and meanwhile be in the way of the one that did not.  So the turn is a name too, which
 * goes with its owner, whatever becomes of him.  -1 with errno; EADDRINUSE: somebody else has it.
 */
static int take_turn(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s.start", name), fd, error;

	if (n >= (int)sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int start_one(const char *name)
{
	char path[PATH_MAX], program[] = "glexd", flag[] = "--private", option[] = "--socket";
	char *argv[] = {program, flag, option, (char *)(uintptr_t)name, NULL};
	int error, status = 0;
	pid_t pid, got;

	find_glexd(path, sizeof(path));
	glexi_debug("starting %s for %s", path, name);
	error = posix_spawn(&pid, path, NULL, NULL, argv, environ);
	if (error) {
		glexi_error("cannot start glexd: %s: %s; install it there or set GLEX_GLEXD", path, strerror(error));
		return -1;
	}
	/* It goes into the background once it listens; what we wait for here is its starter. */
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (got == pid && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
		glexi_error("glexd at %s ended with status %d before it listened; see its message above", path,
			    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
		return -1;
	}
	return 1; /* ECHILD: the program reaps all its children itself; connecting will tell */
}

int nic_start_glexd(const char *name, bool alone)
{
	int turn = take_turn(name), ret;

	if (turn < 0 && errno == EADDRINUSE && !alone)
		return 0;
	ret = start_one(name);
	if (turn >= 0)
		close(turn);
	return ret;
}
