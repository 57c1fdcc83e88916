/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_stress.c - see ring_stress.h.
 *
 *   shared:  | stop | sent[stream] | ring ctl | slots | log |
 *
 * A producer is a session with one stream, or a process whose threads send a
 * stream each.  In some modes the ring is one that the first producer has to
 * itself until another comes (emulator/nic/bias.h); then each stream is a sender
 * of its own, and a run is many short ones, for that happens once a ring.
 *
 * What must hold: of each stream the messages 0, 1, 2, ... come, whole and in
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

#include "emulator/host/futex.h"
#include "emulator/nic/bias.h"

#define CAPACITY  64u
#define SHIFT	  7 /* struct message */
#define PRODUCERS 4
#define SESSIONS  4096u
#define THREADS	  3u /* of a process that has several */
#define STREAMS	  (SESSIONS * THREADS)
#define FIRST	  (UINT32_MAX - 3000u) /* the wrap comes early */
#define WORDS	  13
#define PATIENCE  30 /* seconds without anything coming */
#define FLAGS_AT  offsetof(struct message, flags)

struct message {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved;
	uint32_t stream;
	uint32_t number;
	uint64_t body[WORDS];
	uint64_t check;
};

struct area {
	_Atomic uint32_t stop;
	_Atomic uint32_t sent[STREAMS]; /* of each, after it was published */
	_Alignas(EMU_LINE) struct emu_ring_ctl ctl;
	unsigned char slots[CAPACITY << SHIFT];
	_Atomic uint64_t log[CAPACITY];
};

struct producer {
	struct stress *stress;
	uint32_t session;
	uint32_t threads; /* of its process; 0: it has one stream */
	uint32_t count;	  /* messages to send */
	uint32_t random;  /* state of its generator */
	uint32_t linger;  /* it yields with a claimed slot in hand once in so many messages */
	pthread_t thread;
	pid_t pid; /* 0: none */
};

struct stress {
	struct area *area;
	struct emu_ring ring;
	struct producer producers[PRODUCERS];
	uint32_t random;
	uint32_t sessions; /* used so far, from 1 */
	bool biased;
	uint32_t got[STREAMS];
	bool killed[SESSIONS];
	uint32_t total, discarded, reaped;
	uint32_t head;
	time_t last; /* when something came */
	bool failed;
};

const char *ring_stress_name(enum ring_stress_mode mode)
{
	static const char *const names[] = {"thread", "threads",	"process", "processes",
					    "killed", "killed-threads", "biased",  "biased-threads"};

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

static uint64_t word_of(uint32_t stream, uint32_t number, int i)
{
	return (emu_pair(stream, number) + (uint64_t)i) * 0x9e3779b97f4a7c15u;
}

static bool is_stopped(const struct producer *producer)
{
	/* relaxed: nothing is handed over with it */
	return atomic_load_explicit(&producer->stress->area->stop, memory_order_relaxed) != 0;
}

struct stream {
	struct producer *producer;
	uint32_t number, random;
	struct emu_bias bias;
	pthread_t thread;
};

static bool order_all(struct emu_bias *bias)
{
	(void)bias;
	return emu_membarrier_all() == 0;
}

static void *claim(struct stream *stream, uint32_t *index_p)
{
	struct producer *producer = stream->producer;
	struct emu_ring *ring = &producer->stress->ring;

	return producer->stress->biased ? emu_ring_claim_as(ring, producer->session, &stream->bias, index_p)
					: emu_ring_claim(ring, producer->session, index_p);
}

static bool send_one(struct stream *stream, uint32_t number)
{
	struct producer *producer = stream->producer;
	struct message *message;
	uint32_t index;

	while (!(message = claim(stream, &index))) {
		if (is_stopped(producer))
			return false;
		sched_yield();
	}
	message->flags = 0;
	message->stream = stream->number;
	message->number = number;
	message->check = 0;
	for (int i = 0; i < WORDS; i++) {
		message->body[i] = word_of(stream->number, number, i);
		message->check += message->body[i];
	}
	if (next_random(&stream->random) % producer->linger == 0)
		sched_yield();
	emu_ring_publish(message, index);
	atomic_store_explicit(&producer->stress->area->sent[stream->number], number + 1, memory_order_release);
	return true;
}

static void *produce(void *arg)
{
	struct stream *stream = arg;

	for (uint32_t n = 0; n < stream->producer->count && !is_stopped(stream->producer); n++)
		if (!send_one(stream, n))
			break;
	return NULL;
}

static void init_stream(struct stream *stream, struct producer *producer, uint32_t n)
{
	stream->producer = producer;
	stream->number = producer->session * THREADS + n;
	stream->random = producer->random + n;
	stream->bias.order = order_all;
	if (producer->stress->biased && emu_membarrier_join() == 0)
		stream->bias.word = emu_bias_word(producer->session, n);
}

static void *produce_one(void *arg)
{
	struct stream stream = {0};

	init_stream(&stream, arg, 0);
	return produce(&stream);
}

/* A process with threads; what it cannot start, it does not miss. */
static void produce_many(struct producer *producer)
{
	struct stream streams[THREADS] = {0};
	uint32_t n, started = 0;

	for (n = 0; n < producer->threads; n++) {
		init_stream(&streams[n], producer, n);
		if (pthread_create(&streams[n].thread, NULL, produce, &streams[n]) != 0)
			break;
		started++;
	}
	for (n = 0; n < started; n++)
		pthread_join(streams[n].thread, NULL);
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
	if (getppid() == parent && producer->threads)
		produce_many(producer);
	else if (getppid() == parent)
		produce_one(producer);
	_exit(0);
}

/*
 * The thread sanitizer sees its own process only: that a slot which another thread
 * of it wrote has meanwhile been given back by a consumer elsewhere, it does not.
 */
#ifdef __SANITIZE_THREAD__
#define THREADS_MOST 1u
#else
#define THREADS_MOST UINT32_MAX
#endif

#define AS_THREAD UINT32_MAX /* instead of the number of threads of a process: a thread of this one */

static bool start(struct stress *stress, struct producer *producer, uint32_t threads, uint32_t count, uint32_t linger)
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
	producer->threads = threads == AS_THREAD ? 0 : threads < THREADS_MOST ? threads : THREADS_MOST;
	if (threads != AS_THREAD)
		return start_process(producer);
	error = pthread_create(&producer->thread, NULL, produce_one, producer);
	return error == 0 || fail(stress, "pthread_create: %s", strerror(error));
}

/* ---- the consumer -------------------------------------------------------- */

static bool check(struct stress *stress, const struct message *message)
{
	uint32_t stream = message->stream, number = message->number;
	uint64_t sum = 0;

	if (stream < THREADS || stream >= (stress->sessions + 1) * THREADS)
		return fail(stress, "a message of stream %u, which there is not", stream);
	if (number != stress->got[stream])
		return fail(stress, "message %u of stream %u came where %u was due", number, stream,
			    stress->got[stream]);
	for (int i = 0; i < WORDS; i++) {
		if (message->body[i] != word_of(stream, number, i))
			return fail(stress, "word %d of message %u of stream %u is wrong", i, number, stream);
		sum += message->body[i];
	}
	if (message->check != sum)
		return fail(stress, "the checksum of message %u of stream %u is wrong", number, stream);
	stress->got[stream]++;
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
		fine = start(stress, &stress->producers[n], as_threads ? AS_THREAD : 0, each, 64);
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
static bool bury(struct stress *stress, struct producer *producer)
{
	uint32_t wait = next_random(&stress->random) % 100, reaped, most = producer->threads ? producer->threads : 1;

	kill(producer->pid, SIGKILL);
	if (waitpid(producer->pid, NULL, 0) != producer->pid)
		return fail(stress, "waitpid: %s", strerror(errno));
	producer->pid = 0;
	stress->killed[producer->session] = true;
	while (wait--)
		if (!consume(stress))
			return false;
	reaped = emu_ring_reap(&stress->ring, producer->session, FLAGS_AT);
	if (reaped > most)
		return fail(stress, "%u slots were reaped of session %u, which claims %u at a time", reaped,
			    producer->session, most);
	stress->reaped += reaped;
	return true;
}

/* Consumes so many messages more, or fewer. */
static bool consume_some(struct stress *stress, uint32_t most)
{
	uint32_t until = stress->total + next_random(&stress->random) % most;

	while ((int32_t)(stress->total - until) < 0)
		if (!consume(stress))
			return false;
	return true;
}

static bool run_killed(struct stress *stress, uint32_t kills, uint32_t threads)
{
	bool fine = true;
	uint32_t n;

	for (n = 0; n < PRODUCERS && fine; n++) {
		fine = start(stress, &stress->producers[n], threads, UINT32_MAX, 4);
		/* Where the ring is biased the others come while its owner is at work. */
		if (fine && stress->biased && n == 0)
			fine = consume_some(stress, 300);
	}
	while (fine && kills--) {
		struct producer *producer = &stress->producers[next_random(&stress->random) % PRODUCERS];

		fine = consume_some(stress, stress->biased ? 100 : 500) && bury(stress, producer) &&
		       start(stress, producer, threads, UINT32_MAX, 4);
	}
	atomic_store_explicit(&stress->area->stop, 1, memory_order_relaxed); /* relaxed: see is_stopped */
	for (n = 0; n < PRODUCERS && fine; n++)
		fine = await_process(stress, &stress->producers[n]);
	return fine;
}

/* All producers are gone: what they said they sent has come. */
static bool check_end(struct stress *stress)
{
	uint32_t stream, sent;

	while (emu_ring_peek(&stress->ring, stress->head))
		if (!consume(stress))
			return false;
	if (stress->head != emu_ring_end(&stress->area->ctl))
		return fail(stress, "claimed slots are left over");
	if (stress->discarded != stress->reaped)
		return fail(stress, "%u slots came discarded, %u were reaped", stress->discarded, stress->reaped);
	for (stream = THREADS; stream < (stress->sessions + 1) * THREADS; stream++) {
		sent = atomic_load_explicit(&stress->area->sent[stream], memory_order_acquire);
		/* Killed between the two stores: published, and not said so. */
		if (stress->got[stream] != sent &&
		    !(stress->killed[stream / THREADS] && stress->got[stream] == sent + 1))
			return fail(stress, "of stream %u %u messages came, %u were sent", stream, stress->got[stream],
				    sent);
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
	atomic_init(&area->ctl.lead, FIRST);
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

static bool run(struct stress *stress, enum ring_stress_mode mode, uint32_t count)
{
	bool many = mode == RING_STRESS_THREADS || mode == RING_STRESS_PROCESSES;

	switch (mode) {
	case RING_STRESS_KILLED:
		return run_killed(stress, count, 0);
	case RING_STRESS_KILLED_THREADS:
		return run_killed(stress, count, THREADS);
	case RING_STRESS_BIASED:
		return run_killed(stress, 2, 0);
	case RING_STRESS_BIASED_THREADS:
		return run_killed(stress, 2, THREADS);
	default:
		return run_steady(stress, many ? PRODUCERS : 1,
				  mode == RING_STRESS_THREAD || mode == RING_STRESS_THREADS, count);
	}
}

/* One ring's life; adds to *total_p and *discarded_p. */
static bool run_ring(enum ring_stress_mode mode, uint32_t count, uint32_t seed, uint32_t *total_p,
		     uint32_t *discarded_p)
{
	struct stress *stress = calloc(1, sizeof(*stress));
	bool fine;

	if (!stress)
		return false;
	stress->biased = mode == RING_STRESS_BIASED || mode == RING_STRESS_BIASED_THREADS;
	fine = set_up(stress, seed);
	if (fine) {
		fine = run(stress, mode, count) && check_end(stress);
		tear_down(stress);
		*total_p += stress->total;
		*discarded_p += stress->discarded;
	}
	free(stress);
	return fine;
}

bool ring_stress(enum ring_stress_mode mode, uint32_t count, uint32_t seed)
{
	uint32_t rings = mode == RING_STRESS_BIASED || mode == RING_STRESS_BIASED_THREADS ? count : 1;
	uint32_t total = 0, discarded = 0;
	bool fine = true;

	for (uint32_t n = 0; n < rings && fine; n++)
		fine = run_ring(mode, count, seed + n, &total, &discarded);
	printf("%s: %u messages, %u slots of the dead\n", ring_stress_name(mode), total, discarded);
	return fine;
}
