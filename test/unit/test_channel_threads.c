/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_channel_threads.c - channels of one process, each in a thread of its own,
 * over libglex itself: what the thread sanitizer looks at.
 *
 *      thread 0                       thread 1                  thread 2 ...
 *      glexch, endpoint <--stream-->  glexch, endpoint  <-...
 *
 * Each two have a stream in both directions.  It consists of messages, a header
 * and perhaps a body; the bytes of a body follow from who sends it to whom, its
 * number and their place in it, and all are looked at.
 *
 *      DATA   the body follows                    OFFER  the body lies in exposed memory
 *      LAST   no DATA or OFFER comes any more     TAKEN  it has been fetched
 *
 * I1  Between start and finish the threads share nothing but the network.  The
 *     flags that say how far others are order no memory: what the network does
 *     not order is a race.
 * I2  A thread touches its own worker only, but for the cards, which are
 *     complete before the start line.
 */
#include "unit.h"

#include <pthread.h>

#include "netmod-glex/channel/chan.h"
#include "test/lib/side.h"

#define WORKERS	   4
#define WINDOW	   8	  /* messages of a stream that are queued */
#define BURST	   4	  /* messages of a stream sent in one turn */
#define BODY_MOST  40000  /* ten blocks */
#define RING	   16384  /* bytes: it wraps all the time */
#define OFFERS	   3	  /* of a stream at a time */
#define OFFER_MOST 150000 /* bytes */

/* The sanitizer makes everything ten times slower.  Of two threads' messages there are enough for each MPQ to wrap. */
#ifdef __SANITIZE_THREAD__
#define MESSAGES       2500
#define CROWD_MESSAGES 200
#define VISITS	       8
#else
#define MESSAGES       12000
#define CROWD_MESSAGES 2000
#define VISITS	       60
#endif
#define VISIT_MESSAGES 25
#define AFTER	       100 /* messages of those who stay when somebody has gone */

enum message_kind { DATA = 1, OFFER, TAKEN, LAST };

struct header {
	uint32_t kind;
	uint32_t seq; /* in this stream */
	uint32_t len; /* of the body */
	uint32_t ref; /* TAKEN: seq of the offer */
	struct glexch_region region;
};

#define IN_MP (GLEXCH_MP_BODY - sizeof(struct header))

static const struct glexch_region nothing;

struct message {
	struct glexch_item item; /* must be first */
	struct iovec iov[2];
	struct link *link;
	struct header head;
	unsigned char body[];
};

struct offer {
	unsigned char *buf; /* NULL: free */
	bool shared;	    /* of glexch_alloc */
	uint32_t seq;
	uint32_t len;
	struct glexch_region region;
};

struct fetch {
	struct link *link;
	uint32_t seq;
	uint32_t len;
	unsigned char buf[];
};

/* One thread's end of the streams with another; the user pointer of the connection. */
struct link {
	unsigned me, to;
	struct glexch_conn *conn; /* NULL: the other opens it, and has not yet */
	bool used;
	bool may_fail;
	bool failed;
	uint32_t left; /* DATA and OFFER to send */
	uint32_t sent;
	unsigned open; /* messages queued */
	bool ended;    /* our LAST is sent */
	struct offer offers[OFFERS];
	uint32_t received;
	bool heard_last;
	unsigned fetching;
	size_t have; /* bytes of the message that is coming in */
	struct header head;
	unsigned char body[BODY_MOST];
};

struct worker;
typedef void (*main_fn)(struct worker *w);

/* What channels have to share: a lot, little, as little as possible; and rings for all, or for some in turn. */
static const struct pool {
	uint32_t credits, blocks;
	uint32_t er_max;
	enum glexch_mode mode;
} pools[] = {{64, 32, 0, GLEXCH_MODE_SR},
	     {8, 8, 0, GLEXCH_MODE_SR},
	     {1, 4, 0, GLEXCH_MODE_SR},
	     {16, 8, WORKERS, GLEXCH_MODE_ER},
	     {8, 8, 1, GLEXCH_MODE_AUTO}};

#define POOLS (int)(sizeof(pools) / sizeof(pools[0]))

struct worker {
	pthread_t thread;
	main_fn main;
	unsigned id; /* its place in workers */
	const struct pool *pool;
	uint32_t random;
	uint32_t turns;
	int64_t deadline;
	struct glexch *ch;
	struct glexch_peer card;
	struct link link[WORKERS];
};

static struct worker workers[WORKERS];
static pthread_barrier_t start_line, finish_line;
static unsigned staying;	     /* workers that meet at the finish line */
static _Atomic unsigned finished;    /* of them, those with nothing left to do */
static _Atomic unsigned gone;	     /* closed without a word */
static _Atomic unsigned released[2]; /* visits whose connection this host has given up */

static uint32_t seed_of(unsigned from, unsigned to, uint32_t seq)
{
	return seq * 7 + from * 31 + to * 101;
}

/* relaxed: I1 */
static void count_up(_Atomic unsigned *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed); /* relaxed: I1 */
}

static unsigned count_of(_Atomic unsigned *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed); /* relaxed: I1 */
}

/* ---- sending --------------------------------------------------------------- */

static int on_done(struct glexch_conn *conn, struct glexch_item *item, int failed)
{
	struct message *m = (struct message *)item;

	(void)conn;
	UNIT_CHECK(!failed || m->link->may_fail);
	m->link->open--;
	free(m);
	return 0;
}

static void send_message(struct link *link, enum message_kind kind, uint32_t len, uint32_t ref,
			 struct glexch_region region)
{
	uint32_t bytes = kind == DATA ? len : 0;
	struct message *m = malloc(sizeof(*m) + bytes);

	UNIT_CHECK(m);
	m->head = (struct header){.kind = kind, .seq = link->sent++, .len = len, .ref = ref, .region = region};
	fill(m->body, bytes, seed_of(link->me, link->to, m->head.seq));
	m->link = link;
	m->item.done = on_done;
	link->open++;
	if (bytes <= IN_MP &&
	    glexch_try_short(link->conn, &m->head, sizeof(m->head), sizeof(m->head), m->body, bytes)) {
		on_done(link->conn, &m->item, 0);
		return;
	}
	m->iov[0] = (struct iovec){&m->head, sizeof(m->head)};
	m->iov[1] = (struct iovec){m->body, bytes};
	glexch_cursor_init(&m->item.cur, m->iov, 2);
	glexch_try(link->conn, &m->item.cur);
	if (m->item.cur.left)
		glexch_queue(link->conn, &m->item);
	else
		on_done(link->conn, &m->item, 0);
}

/* False: as many as may be are out. */
static bool send_offer(struct link *link)
{
	struct worker *w = &workers[link->me];
	struct offer *o = link->offers;

	while (o < link->offers + OFFERS && o->buf)
		o++;
	if (o == link->offers + OFFERS)
		return false;
	o->seq = link->sent;
	o->len = 1 + unit_random(&w->random) % OFFER_MOST;
	o->shared = unit_random(&w->random) % 2;
	o->buf = o->shared ? glexch_alloc(w->ch, o->len) : malloc(o->len);
	UNIT_CHECK(o->buf);
	fill(o->buf, o->len, seed_of(link->me, link->to, o->seq));
	UNIT_CHECK(glexch_expose(w->ch, o->buf, o->len, 0, &o->region) == GLEX_SUCCESS);
	send_message(link, OFFER, o->len, 0, o->region);
	return true;
}

static void send_next(struct link *link)
{
	/* In one MP, in several, in a block or two, in many. */
	static const uint32_t most[8] = {IN_MP, IN_MP, IN_MP, IN_MP, 500, 500, 5000, BODY_MOST};
	uint32_t *random = &workers[link->me].random;

	if (link->left == 0) {
		link->ended = true;
		send_message(link, LAST, 0, 0, nothing);
		return;
	}
	link->left--;
	/* Nothing orders what a peer read before the news that it is lost: memory offered to it could not be freed. */
	if (unit_random(random) % 32 == 0 && !link->may_fail && send_offer(link))
		return;
	send_message(link, DATA, unit_random(random) % (most[unit_random(random) % 8] + 1), 0, nothing);
}

/* ---- receiving ------------------------------------------------------------- */

static void on_got(void *arg, enum glexch_got how)
{
	struct fetch *f = arg;

	UNIT_CHECK(how == GLEXCH_GOT_ALL || f->link->may_fail);
	f->link->fetching--;
	if (how == GLEXCH_GOT_ALL) {
		expect_filled(f->buf, f->len, seed_of(f->link->to, f->link->me, f->seq));
		send_message(f->link, TAKEN, 0, f->seq, nothing);
	}
	free(f);
}

static void fetch_offer(struct link *link)
{
	struct fetch *f = malloc(sizeof(*f) + link->head.len);

	UNIT_CHECK(f);
	f->link = link;
	f->seq = link->head.seq;
	f->len = link->head.len;
	link->fetching++;
	UNIT_CHECK(glexch_get(link->conn, f->buf, f->len, &link->head.region, on_got, f));
}

static void take_back(struct link *link, uint32_t seq)
{
	struct glexch *ch = workers[link->me].ch;
	struct offer *o = link->offers;

	while (o < link->offers + OFFERS && (!o->buf || o->seq != seq))
		o++;
	UNIT_CHECK(o < link->offers + OFFERS);
	glexch_unexpose(ch, o->len, &o->region);
	if (o->shared)
		glexch_free(ch, o->buf);
	else
		free(o->buf);
	o->buf = NULL;
}

static void on_message(struct link *link)
{
	const struct header *head = &link->head;

	UNIT_CHECK(head->seq == link->received);
	link->received++;
	switch (head->kind) {
	case DATA:
		expect_filled(link->body, head->len, seed_of(link->to, link->me, head->seq));
		break;
	case OFFER:
		fetch_offer(link);
		break;
	case TAKEN:
		take_back(link, head->ref);
		break;
	default:
		UNIT_CHECK(head->kind == LAST);
		link->heard_last = true;
	}
}

/* Adds to the message that is coming in, header or body.  Returns how many bytes. */
static size_t take_bytes(struct link *link, const unsigned char *p, size_t len)
{
	size_t n = len, whole = sizeof(link->head);

	if (link->have < whole) {
		n = n < whole - link->have ? n : whole - link->have;
		memcpy((unsigned char *)&link->head + link->have, p, n);
	}
	if (link->have + n >= whole && link->head.kind == DATA) {
		UNIT_CHECK(link->head.len <= BODY_MOST);
		whole += link->head.len;
	}
	if (link->have >= sizeof(link->head)) {
		n = n < whole - link->have ? n : whole - link->have;
		memcpy(link->body + link->have - sizeof(link->head), p, n);
	}
	link->have += n;
	if (link->have == whole) {
		link->have = 0;
		on_message(link);
	}
	return n;
}

static void on_data(struct glexch_conn *conn, void *buf, size_t len)
{
	const unsigned char *p = buf, *end = p + len;

	while (p < end)
		p += take_bytes(glexch_conn_user(conn), p, (size_t)(end - p));
}

/* ---- connections ----------------------------------------------------------- */

static size_t on_identify(struct glexch_conn *conn, void *blob)
{
	struct link *link = glexch_conn_user(conn);
	unsigned who[2] = {link->me, link->to};

	memcpy(blob, who, sizeof(who));
	return sizeof(who);
}

static void *on_hello(struct glexch_conn *conn, const void *blob, size_t len)
{
	struct link *link;
	unsigned who[2];

	UNIT_CHECK(len == sizeof(who));
	memcpy(who, blob, sizeof(who));
	UNIT_CHECK(who[0] < WORKERS && who[1] < WORKERS);
	link = &workers[who[1]].link[who[0]];
	UNIT_CHECK(link->used && !link->conn);
	link->conn = conn;
	return link;
}

static void on_fail(struct glexch_conn *conn, const char *why)
{
	struct link *link = glexch_conn_user(conn);

	if (!link->may_fail)
		ck_abort_msg("the connection from %u to %u fails: %s", link->me, link->to, why);
	UNIT_CHECK(!link->failed && link->open == 0 && link->fetching == 0);
	link->failed = true;
}

static void on_drained(struct glexch_conn *conn)
{
	(void)conn;
}

static const struct glexch_ops ops = {
	.data = on_data,
	.identify = on_identify,
	.hello = on_hello,
	.fail = on_fail,
	.drained = on_drained,
};

static void open_channel(struct worker *w)
{
	struct glexch_params params = {
		.ops = &ops,
		.key = 100 + w->id,
		.peers = WORKERS,
		.credits = w->pool->credits,
		.blocks = w->pool->blocks,
		.block_size = 4096,
		.sharers = WORKERS,
		.header = sizeof(struct header),
		.mode = w->pool->mode,
		.er_max = w->pool->er_max,
		.er_bytes = RING,
	};
	char card[GLEXCH_CARD_MAX];

	UNIT_CHECK(glexch_open(&params, &w->ch) == GLEX_SUCCESS);
	glexch_card_format(w->ch, card);
	UNIT_CHECK(glexch_card_parse(card, &w->card) == GLEX_SUCCESS);
}

/* A fresh end towards another worker, with so many messages to send. */
static struct link *begin_link(struct worker *w, unsigned to, uint32_t messages)
{
	struct link *link = &w->link[to];

	memset(link, 0, sizeof(*link));
	link->me = w->id;
	link->to = to;
	link->used = true;
	link->left = messages;
	return link;
}

static void connect_link(struct link *link, int counted)
{
	link->conn = glexch_conn_open(workers[link->me].ch, &workers[link->to].card, GLEXCH_CHAN_MAIN, counted, link);
	UNIT_CHECK(link->conn);
}

static bool has_offers(const struct link *link)
{
	for (unsigned i = 0; i < OFFERS; i++)
		if (link->offers[i].buf)
			return true;
	return false;
}

/* Nothing of ours is with the other, nothing of its is with us but what it goes on sending. */
static bool is_calm(const struct link *link)
{
	return link->open == 0 && link->fetching == 0 && !has_offers(link);
}

/* All is sent and received. */
static bool is_over(const struct link *link)
{
	return link->ended && link->heard_last && is_calm(link);
}

/* ---- the threads ----------------------------------------------------------- */

static bool all_links(const struct worker *w, bool (*holds)(const struct link *link))
{
	for (unsigned i = 0; i < WORKERS; i++)
		if (w->link[i].used && !holds(&w->link[i]))
			return false;
	return true;
}

static bool all_over(const struct worker *w)
{
	return all_links(w, is_over) && glexch_quiet(w->ch);
}

static void feed(struct link *link)
{
	for (unsigned i = 0; i < BURST && link->open < WINDOW && !link->ended; i++)
		send_next(link);
}

/* Sends a little, then does one round of progress. */
static void turn(struct worker *w)
{
	for (unsigned i = 0; i < WORKERS; i++)
		if (w->link[i].conn && !w->link[i].failed)
			feed(&w->link[i]);
	if (glexch_progress(w->ch) == 0)
		sched_yield();
	if (++w->turns % 1024 == 0)
		UNIT_CHECK(unit_now_ns() < w->deadline);
}

/* When all who stay have nothing left to do nobody polls any more; then all close. */
static void finish(struct worker *w)
{
	while (!all_over(w))
		turn(w);
	count_up(&finished);
	while (count_of(&finished) < staying)
		turn(w);
	pthread_barrier_wait(&finish_line);
	glexch_close(w->ch);
}

/* Opens the channel; behind the start line all cards can be read. */
static void arrive(struct worker *w)
{
	open_channel(w);
	pthread_barrier_wait(&start_line);
}

static void *thread_main(void *arg)
{
	struct worker *w = arg;

	w->main(w);
	return NULL;
}

/* `stay` threads with one main, and perhaps a last one with another, which is not at the finish line. */
static void run(unsigned stay, main_fn stays, main_fn leaves, int pool)
{
	unsigned n = stay + (leaves != NULL);

	memset(workers, 0, sizeof(workers));
	staying = stay;
	finished = gone = released[0] = released[1] = 0;
	pthread_barrier_init(&start_line, NULL, n);
	pthread_barrier_init(&finish_line, NULL, stay);
	for (unsigned i = 0; i < n; i++) {
		workers[i].id = i;
		workers[i].main = i < stay ? stays : leaves;
		workers[i].pool = &pools[pool];
		workers[i].random = (unsigned)pool * WORKERS + i;
		workers[i].deadline = unit_now_ns() + UNIT_PATIENCE_NS;
	}
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, thread_main, &workers[i]), 0);
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
	pthread_barrier_destroy(&start_line);
	pthread_barrier_destroy(&finish_line);
}

/* ---- tests: all stay ------------------------------------------------------- */

/* Streams with all who stay.  Who opens: both, or the lower. */
static void exchange(struct worker *w, uint32_t messages, bool both_open)
{
	for (unsigned i = 0; i < staying; i++)
		if (i != w->id)
			begin_link(w, i, messages);
	arrive(w);
	for (unsigned i = 0; i < staying; i++)
		if (i != w->id && (both_open || w->id < i))
			connect_link(&w->link[i], 1);
}

static void one_of_two(struct worker *w)
{
	exchange(w, MESSAGES, true);
	finish(w);
}

START_TEST(channels__two_threads__every_byte_arrives)
{
	run(2, one_of_two, NULL, _i);
}
END_TEST

static void one_of_all(struct worker *w)
{
	exchange(w, CROWD_MESSAGES, false);
	finish(w);
}

START_TEST(channels__four_threads_all_to_all__every_byte_arrives)
{
	run(WORKERS, one_of_all, NULL, _i);
}
END_TEST

/* ---- tests: one comes and goes --------------------------------------------- */

/*
 * Two hosts keep their stream going; a guest opens a channel, exchanges some
 * messages with both, and closes it; its next one has the same address.  A host
 * forgets the connection before that, or a late credit would reach the next.
 */
#define HOSTS 2

static void host(struct worker *w)
{
	struct link *mate = &w->link[1 - w->id], *guest = begin_link(w, HOSTS, VISIT_MESSAGES);
	unsigned visits = 0;

	exchange(w, AFTER, false);
	while (visits < VISITS) {
		mate->left = AFTER;
		turn(w);
		if (!is_over(guest))
			continue;
		glexch_conn_destroy(guest->conn);
		begin_link(w, HOSTS, VISIT_MESSAGES);
		visits++;
		count_up(&released[w->id]);
	}
	guest->used = false;
	finish(w);
}

static void guest_for_a_while(struct worker *w)
{
	pthread_barrier_wait(&start_line);
	for (unsigned visit = 1; visit <= VISITS; visit++) {
		open_channel(w);
		for (unsigned i = 0; i < HOSTS; i++)
			connect_link(begin_link(w, i, VISIT_MESSAGES), 0);
		while (!all_over(w) || count_of(&released[0]) < visit || count_of(&released[1]) < visit)
			turn(w);
		glexch_close(w->ch);
	}
}

START_TEST(channel__opened_and_closed_again_and_again__others_go_on)
{
	run(HOSTS, host, guest_for_a_while, _i);
}
END_TEST

/* ---- tests: one goes without a word ---------------------------------------- */

/*
 * It stops sending and closes as soon as nothing of its own is with the others,
 * who are sending to it all the time: they lose it and only it.
 */
#define STAYERS 3

static void stayer(struct worker *w)
{
	struct link *lost = begin_link(w, STAYERS, AFTER);

	lost->may_fail = true;
	exchange(w, AFTER, true);
	while (!lost->failed) {
		for (unsigned i = 0; i <= STAYERS; i++)
			w->link[i].left = AFTER;
		turn(w);
	}
	lost->used = false;
	finish(w);
}

static bool heard_enough(const struct link *link)
{
	return link->received >= AFTER;
}

static void quitter(struct worker *w)
{
	for (unsigned i = 0; i < STAYERS; i++)
		begin_link(w, i, UINT32_MAX);
	arrive(w);
	for (unsigned i = 0; i < STAYERS; i++)
		connect_link(&w->link[i], 1);
	while (!all_links(w, heard_enough))
		turn(w);
	for (unsigned i = 0; i < STAYERS; i++)
		w->link[i].ended = true;
	while (!all_links(w, is_calm) || !glexch_quiet(w->ch))
		turn(w);
	glexch_close(w->ch);
	count_up(&gone);
}

START_TEST(channel__closed_while_others_send_to_it__they_go_on)
{
	run(STAYERS, stayer, quitter, _i);
}
END_TEST

/* ---- main ------------------------------------------------------------------- */

int main(void)
{
	Suite *suite = suite_create("channel_threads");
	TCase *tc = tcase_create("threads");

	own_job("channel_threads");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, channels__two_threads__every_byte_arrives, 0, POOLS);
	tcase_add_loop_test(tc, channels__four_threads_all_to_all__every_byte_arrives, 0, POOLS);
	tcase_add_loop_test(tc, channel__opened_and_closed_again_and_again__others_go_on, 0, POOLS);
	tcase_add_loop_test(tc, channel__closed_while_others_send_to_it__they_go_on, 0, POOLS);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
