/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_stress.c - see ring_stress.h.
 *
 *   shared:  | stop | sent[session] | ring ctl | slots | log |
 *
 * What must hold: of each producer the messages 0, 1, 2, ... come, whole and in
 * order; of one that was killed, those it had published and no more; a slot is
 * found discarded only if a reap said so; the consumer always gets on.
 */
#include "ring_stress.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emulator/nic/ring.h"

#define CAPACITY  64u
#define SHIFT	  7 /* struct message */
#define PRODUCERS 4
#define SESSIONS  4096u
#define FIRST	  (UINT32_MAX - 3000u) /* the wrap comes early */
#define WORDS	  13
#define PATIENCE  30 /* seconds without anything coming */
#define FLAGS_AT  offsetof(struct message, flags)

struct message {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved;
	uint32_t session;
	uint32_t number;
	uint64_t body[WORDS];
	uint64_t check;
};

struct area {
	_Atomic uint32_t stop;
	_Atomic uint32_t sent[SESSIONS]; /* by each producer, after it has published */
	_Alignas(EMU_LINE) struct emu_ring_ctl ctl;
	unsigned char slots[CAPACITY << SHIFT];
	_Atomic uint64_t log[CAPACITY];
};

struct producer {
	struct stress *stress;
	uint32_t session;
	uint32_t count;	 /* messages to send */
	uint32_t random; /* state of its generator */
	uint32_t linger; /* it yields with a claimed slot in hand once in so many messages */
	pthread_t thread;
	pid_t pid; /* 0: none */
};

struct stress {
	struct area *area;
	struct emu_ring ring;
	struct producer producers[PRODUCERS];
	uint32_t random;
	uint32_t sessions; /* used so far, from 1 */
	uint32_t got[SESSIONS];
	bool killed[SESSIONS];
	uint32_t total, discarded, reaped;
	uint32_t head;
	time_t last; /* when something came */
	bool failed;
};

const char *ring_stress_name(enum ring_stress_mode mode)
{
	static const char *const names[] = {"thread", "threads", "process", "processes", "killed"};

	return names[mode];
}

/* The first failure is the one to be told. */
static bool fail(struct stress *stress, const char *format, ...)
{
	va_list args;

	if (!stress->failed) {
		va_start(args, format);
		vfprintf(stderr, format, args);
		va_end(args);
		fputc('\n', stderr);
	}
	stress->failed = true;
	return false;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* ---- producers ----------------------------------------------------------- */

static uint64_t word_of(uint32_t session, uint32_t number, int i)
{
	return (emu_pair(session, number) + (uint64_t)i) * 0x9e3779b97f4a7c15u;
}

static bool is_stopped(const struct producer *producer)
{
	/* relaxed: nothing is handed over with it */
	return atomic_load_explicit(&producer->stress->area->stop, memory_order_relaxed) != 0;
}

static bool send_one(struct producer *producer, uint32_t number)
{
	struct message *message;
	uint32_t index;

	while (!(message = emu_ring_claim(&producer->stress->ring, producer->session, &index))) {
		if (is_stopped(producer))
			return false;
		sched_yield();
	}
	message->flags = 0;
	message->session = producer->session;
	message->number = number;
	message->check = 0;
	for (int i = 0; i < WORDS; i++) {
		message->body[i] = word_of(producer->session, number, i);
		message->check += message->body[i];
	}
	if (next_random(&producer->random) % producer->linger == 0)
		sched_yield();
	emu_ring_publish(message, index);
	atomic_store_explicit(&producer->stress->area->sent[producer->session], number + 1, memory_order_release);
	return true;
}

static void *produce(void *arg)
{
	struct producer *producer = arg;

	for (uint32_t n = 0; n < producer->count && !is_stopped(producer); n++)
		if (!send_one(producer, n))
			break;
	return NULL;
}

static bool start_process(struct producer *producer)
{
	pid_t parent = getpid();

	producer->pid = fork();
	if (producer->pid < 0)
		return fail(producer->stress, "fork: %s", strerror(errno));
	if (producer->pid > 0)
		return true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		produce(producer);
	_exit(0);
}

static bool start(struct stress *stress, struct producer *producer, bool as_thread, uint32_t count, uint32_t linger)
{
	int error;

	if (stress->sessions + 1 >= SESSIONS)
		return fail(stress, "no session number is left");
	memset(producer, 0, sizeof(*producer));
	producer->stress = stress;
	producer->session = ++stress->sessions;
	producer->count = count;
	producer->random = next_random(&stress->random);
	producer->linger = linger;
	if (!as_thread)
		return start_process(producer);
	error = pthread_create(&producer->thread, NULL, produce, producer);
	return error == 0 || fail(stress, "pthread_create: %s", strerror(error));
}

/* ---- the consumer -------------------------------------------------------- */

static bool check(struct stress *stress, const struct message *message)
{
	uint32_t session = message->session, number = message->number;
	uint64_t sum = 0;

	if (session == 0 || session > stress->sessions)
		return fail(stress, "a message of session %u, which there is not", session);
	if (number != stress->got[session])
		return fail(stress, "message %u of session %u came where %u was due", number, session,
			    stress->got[session]);
	for (int i = 0; i < WORDS; i++) {
		if (message->body[i] != word_of(session, number, i))
			return fail(stress, "word %d of message %u of session %u is wrong", i, number, session);
		sum += message->body[i];
	}
	if (message->check != sum)
		return fail(stress, "the checksum of message %u of session %u is wrong", number, session);
	stress->got[session]++;
	stress->total++;
	return true;
}

/* Takes what is there, up to a quarter of the ring.  False: a failure. */
static bool consume(struct stress *stress)
{
	uint32_t n;

	for (n = 0; n < CAPACITY / 4; n++) {
		const struct message *message = emu_ring_peek(&stress->ring, stress->head);

		if (!message)
			break;
		if (message->flags & EMU_SLOT_DISCARDED)
			stress->discarded++;
		else if (!check(stress, message))
			return false;
		stress->head++;
		if (next_random(&stress->random) % 4 == 0)
			emu_ring_release(&stress->ring, stress->head);
	}
	emu_ring_release(&stress->ring, stress->head);
	if (n > 0) {
		stress->last = now();
		return true;
	}
	sched_yield();
	return now() - stress->last < PATIENCE || fail(stress, "nothing has come for %d seconds", PATIENCE);
}

/* ---- the modes ----------------------------------------------------------- */

static bool is_over(pid_t pid, int *status_p)
{
	return waitpid(pid, status_p, WNOHANG) == pid;
}

/* Consumes until the process has ended by itself. */
static bool await_process(struct stress *stress, struct producer *producer)
{
	int status = 0;

	while (!is_over(producer->pid, &status))
		if (!consume(stress))
			return false;
	producer->pid = 0;
	return status == 0 || fail(stress, "session %u ended with status %#x", producer->session, status);
}

static bool run_steady(struct stress *stress, uint32_t producers, bool as_threads, uint32_t count)
{
	uint32_t n, started = 0, each = count / producers;
	bool fine = true;

	for (n = 0; n < producers && fine; n++, started += fine)
		fine = start(stress, &stress->producers[n], as_threads, each, 64);
	while (fine && stress->total < each * producers)
		fine = consume(stress);
	atomic_store_explicit(&stress->area->stop, !fine, memory_order_relaxed); /* relaxed: see is_stopped */
	for (n = 0; n < started; n++) {
		if (as_threads)
			pthread_join(stress->producers[n].thread, NULL);
		else
			fine = fine && await_process(stress, &stress->producers[n]);
	}
	return fine;
}

/* What glexd does when a client has died: not at once, the others go on meanwhile. */
static bool kill_one(struct stress *stress)
{
	struct producer *producer = &stress->producers[next_random(&stress->random) % PRODUCERS];
	uint32_t wait = next_random(&stress->random) % 100, reaped;

	kill(producer->pid, SIGKILL);
	if (waitpid(producer->pid, NULL, 0) != producer->pid)
		return fail(stress, "waitpid: %s", strerror(errno));
	producer->pid = 0;
	stress->killed[producer->session] = true;
	while (wait--)
		if (!consume(stress))
			return false;
	reaped = emu_ring_reap(&stress->ring, producer->session, FLAGS_AT);
	if (reaped > 1)
		return fail(stress, "%u slots were reaped of session %u, which claims one at a time", reaped,
			    producer->session);
	stress->reaped += reaped;
	return start(stress, producer, false, UINT32_MAX, 4);
}

static bool run_killed(struct stress *stress, uint32_t kills)
{
	bool fine = true;
	uint32_t n;

	for (n = 0; n < PRODUCERS && fine; n++)
		fine = start(stress, &stress->producers[n], false, UINT32_MAX, 4);
	while (fine && kills--) {
		uint32_t until = stress->total + next_random(&stress->random) % 500;

		while (fine && (int32_t)(stress->total - until) < 0)
			fine = consume(stress);
		fine = fine && kill_one(stress);
	}
	atomic_store_explicit(&stress->area->stop, 1, memory_order_relaxed); /* relaxed: see is_stopped */
	for (n = 0; n < PRODUCERS && fine; n++)
		fine = await_process(stress, &stress->producers[n]);
	return fine;
}

/* All producers are gone: what they said they sent has come. */
static bool check_end(struct stress *stress)
{
	uint32_t session, sent;

	while (emu_ring_peek(&stress->ring, stress->head))
		if (!consume(stress))
			return false;
	if (stress->head != emu_low(atomic_load_explicit(&stress->area->ctl.tail, memory_order_acquire)))
		return fail(stress, "claimed slots are left over");
	if (stress->discarded != stress->reaped)
		return fail(stress, "%u slots came discarded, %u were reaped", stress->discarded, stress->reaped);
	for (session = 1; session <= stress->sessions; session++) {
		sent = atomic_load_explicit(&stress->area->sent[session], memory_order_acquire);
		/* Killed between the two stores: published, and not said so. */
		if (stress->got[session] != sent && !(stress->killed[session] && stress->got[session] == sent + 1))
			return fail(stress, "of session %u %u messages came, %u were sent", session,
				    stress->got[session], sent);
	}
	return true;
}

static bool set_up(struct stress *stress, uint32_t seed)
{
	struct area *area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return fail(stress, "mmap: %s", strerror(errno));
	stress->area = area;
	stress->random = seed;
	stress->last = now();
	stress->head = FIRST;
	stress->ring.ctl = &area->ctl;
	stress->ring.slots = area->slots;
	stress->ring.log = area->log;
	stress->ring.mask = CAPACITY - 1;
	stress->ring.shift = SHIFT;
	atomic_init(&area->ctl.tail, emu_pair(EMU_SESSION_NONE, FIRST));
	atomic_init(&area->ctl.head, FIRST);
	atomic_init(&area->ctl.head_seen, FIRST);
	for (uint32_t i = 0; i < CAPACITY; i++) /* as the lap before would have left it */
		atomic_init(emu_ring_seq(emu_ring_slot(&stress->ring, FIRST + i)), FIRST + i - CAPACITY + 1);
	return true;
}

static void tear_down(struct stress *stress)
{
	for (int n = 0; n < PRODUCERS; n++) {
		if (stress->producers[n].pid > 0) {
			kill(stress->producers[n].pid, SIGKILL);
			waitpid(stress->producers[n].pid, NULL, 0);
		}
	}
	munmap(stress->area, sizeof(*stress->area));
}

bool ring_stress(enum ring_stress_mode mode, uint32_t count, uint32_t seed)
{
	bool as_threads = mode == RING_STRESS_THREAD || mode == RING_STRESS_THREADS;
	bool many = mode == RING_STRESS_THREADS || mode == RING_STRESS_PROCESSES;
	struct stress *stress = calloc(1, sizeof(*stress));
	bool fine;

	if (!stress)
		return false;
	fine = set_up(stress, seed);
	if (fine) {
		fine = mode == RING_STRESS_KILLED ? run_killed(stress, count)
						  : run_steady(stress, many ? PRODUCERS : 1, as_threads, count);
		fine = fine && check_end(stress);
		tear_down(stress);
		printf("%s: %u messages, %u slots of the dead\n", ring_stress_name(mode), stress->total,
		       stress->discarded);
	}
	free(stress);
	return fine;
}
