/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * channel_kit.c - processes with streams between them, over fake_glex.
 */
#include "channel_kit.h"

#include "cfg/cfg.h"

#define HEADER 80 /* bytes of the stream that a header takes */

struct proc procs[PROCS];
int kit_many;
struct glexch_params kit_params;

static uint8_t pattern(unsigned tag, size_t pos)
{
	return (uint8_t)((pos * 2654435761u >> 13) + pos + tag * 17u);
}

void fill(uint8_t *p, unsigned tag, size_t pos, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = pattern(tag, pos + i);
}

static uint8_t expected(const struct end *end, size_t pos)
{
	if (end->expect_zeros && pos >= end->zeros_from && pos < end->zeros_to)
		return 0;
	return pattern(end->rx_tag, pos);
}

/* ---- callbacks ----------------------------------------------------------- */

static void on_data(struct glexch_conn *conn, void *buf, size_t len)
{
	struct end *end = glexch_conn_user(conn);
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len && p[i] == expected(end, end->received + i); i++)
		;
	ck_assert_msg(i == len, "byte %zu of the stream is wrong", end->received + i);
	end->received += len;
	if (end->on_data)
		end->on_data(end);
}

/* Some are taken from where they lie, and what of their header did not come is known to be zero. */
static int on_packet(struct glexch_conn *conn, void *hdr, size_t hdr_len, void *bytes, size_t len)
{
	struct end *end = glexch_conn_user(conn);
	size_t room = HEADER;
	uint8_t *whole;

	ck_assert_uint_eq((uintptr_t)hdr % 8, 0);
	ck_assert_uint_le(hdr_len, room);
	if (fake_random(2))
		return 0;
	end->packets++;
	whole = calloc(1, room + len);
	memcpy(whole, hdr, hdr_len);
	if (len)
		memcpy(whole + room, bytes, len);
	on_data(conn, whole, room + len);
	free(whole);
	return 1;
}

/* Now and then it is known where the next bytes belong. */
static void *on_place(struct glexch_conn *conn, size_t len)
{
	struct end *end = glexch_conn_user(conn);

	return len <= sizeof(end->place) && !fake_random(2) ? end->place : NULL;
}

static void on_placed(struct glexch_conn *conn, size_t len)
{
	struct end *end = glexch_conn_user(conn);

	end->placed += len;
	on_data(conn, end->place, len);
}

static size_t on_identify(struct glexch_conn *conn, void *blob)
{
	struct end *end = glexch_conn_user(conn);
	int temp = glexch_conn_chan(conn) != GLEXCH_CHAN_MAIN;

	memcpy(blob, &end->tx_tag, sizeof(end->tx_tag));
	memcpy((char *)blob + sizeof(end->tx_tag), &temp, sizeof(temp));
	return sizeof(end->tx_tag) + sizeof(temp);
}

/* The tag says to which process: that of a process i towards j is 10 * i + j. */
static void *on_hello(struct glexch_conn *conn, const void *blob, size_t len)
{
	unsigned tag;
	int temp;
	struct proc *to;
	struct end *end;

	ck_assert_uint_eq(len, sizeof(tag) + sizeof(temp));
	memcpy(&tag, blob, sizeof(tag));
	memcpy(&temp, (const char *)blob + sizeof(tag), sizeof(temp));
	to = &procs[tag % 10];
	if (to->refuse > 0) {
		to->refuse--;
		return NULL;
	}
	end = temp ? &to->temp_end : kit_many ? &to->ends[tag / 10] : &to->main_end;
	end->conn = conn;
	return end;
}

static void on_fail(struct glexch_conn *conn, const char *why)
{
	ck_assert_ptr_nonnull(why);
	((struct end *)glexch_conn_user(conn))->failed++;
}

static void on_drained(struct glexch_conn *conn)
{
	((struct end *)glexch_conn_user(conn))->drained++;
}

static void on_held(struct glexch_conn *conn, int on)
{
	struct end *end = glexch_conn_user(conn);

	end->held = on;
	end->holds++;
}

static uint64_t on_land(struct glexch_conn *conn, uint64_t left, void **buf_p)
{
	struct end *end = glexch_conn_user(conn);
	uint64_t n = left < end->land_max ? left : end->land_max;

	ck_assert_int_eq(end->lands, end->landed); /* one at a time */
	if (!n)
		return 0;
	end->lands++;
	*buf_p = malloc(n);
	return n;
}

static void on_landed(struct glexch_conn *conn, void *buf, uint64_t n, int put)
{
	struct end *end = glexch_conn_user(conn);

	end->landed++;
	end->puts += put;
	if (n)
		on_data(conn, buf, n);
	free(buf);
}

const struct glexch_ops kit_ops = {
	.data = on_data,
	.packet = on_packet,
	.place = on_place,
	.placed = on_placed,
	.land = on_land,
	.landed = on_landed,
	.identify = on_identify,
	.hello = on_hello,
	.fail = on_fail,
	.drained = on_drained,
	.held = on_held,
};

/* The netmod takes the place of a word in the list of GLEX_MPI_CHANNEL for the mode. */
_Static_assert((int)GLEXI_MPI_CHANNEL_AUTO == (int)GLEXCH_MODE_AUTO, "GLEX_MPI_CHANNEL=auto");
_Static_assert((int)GLEXI_MPI_CHANNEL_SR == (int)GLEXCH_MODE_SR, "GLEX_MPI_CHANNEL=sr");
_Static_assert((int)GLEXI_MPI_CHANNEL_ER == (int)GLEXCH_MODE_ER, "GLEX_MPI_CHANNEL=er");

/* ---- helpers ------------------------------------------------------------- */

void start_proc(int i, uint32_t peers, uint32_t credits, uint32_t blocks)
{
	struct glexch_params params = kit_params;
	char card[GLEXCH_CARD_MAX];

	params.ops = kit_params.ops ? kit_params.ops : &kit_ops;
	params.key = 100u + (unsigned)i;
	params.peers = peers;
	params.credits = credits;
	params.blocks = blocks;
	params.block_size = kit_params.block_size ? kit_params.block_size : 4096;
	params.sharers = 1;
	params.header = HEADER;
	memset(&procs[i], 0, sizeof(procs[i]));
	procs[i].main_end.land_max = procs[i].temp_end.land_max = UINT64_MAX;
	ck_assert_int_eq(glexch_open(&params, &procs[i].ch), GLEX_SUCCESS);
	glexch_card_format(procs[i].ch, card);
	ck_assert_int_eq(glexch_card_parse(card, &procs[i].card), GLEX_SUCCESS);
}

void tag_ends(int from, int to)
{
	procs[from].main_end.tx_tag = procs[to].main_end.rx_tag = (unsigned)(10 * from + to);
	procs[to].main_end.tx_tag = procs[from].main_end.rx_tag = (unsigned)(10 * to + from);
}

void start(unsigned seed, uint32_t credits, uint32_t blocks)
{
	fake_reset(seed);
	start_proc(0, 2, credits, blocks);
	start_proc(1, 2, credits, blocks);
	tag_ends(0, 1);
	procs[0].temp_end.tx_tag = procs[1].temp_end.rx_tag = 21;
	procs[1].temp_end.tx_tag = procs[0].temp_end.rx_tag = 30;
}

static LIST_HEAD(, message) undone = LIST_HEAD_INITIALIZER(undone);

static void free_message(struct message *m)
{
	LIST_REMOVE(m, link);
	free(m->bytes);
	free(m);
}

void stop(void)
{
	for (int i = 0; i < PROCS; i++)
		if (procs[i].ch)
			glexch_close(procs[i].ch);
	while (!LIST_EMPTY(&undone))
		free_message(LIST_FIRST(&undone));
	memset(procs, 0, sizeof(procs));
	memset(&kit_params, 0, sizeof(kit_params));
	kit_many = 0;
	ck_assert_int_eq(fake.regions, 0);
}

void open_end(int from, int to)
{
	struct end *end = &procs[from].main_end;

	end->conn = glexch_conn_open(procs[from].ch, &procs[to].card, GLEXCH_CHAN_MAIN, 1, end);
	ck_assert_ptr_nonnull(end->conn);
}

static int on_done(struct glexch_conn *conn, struct glexch_item *item, int failed)
{
	struct message *m = (struct message *)item;
	struct end *end = m->end;

	(void)conn;
	end->done++;
	end->failed_items += failed;
	free_message(m);
	if (end->on_done)
		end->on_done(end);
	return 0;
}

static struct message *new_message(struct end *end, size_t n)
{
	struct message *m = calloc(1, sizeof(*m));

	LIST_INSERT_HEAD(&undone, m, link);
	m->end = end;
	m->bytes = malloc(n);
	fill(m->bytes, end->tx_tag, end->sent, n);
	m->item.done = on_done;
	return m;
}

int lend_message(struct end *end, size_t n)
{
	struct message *m = new_message(end, n);

	m->iov[0] = (struct iovec){m->bytes, 80};
	glexch_cursor_init(&m->item.cur, m->iov, 1);
	end->sent += n;
	end->queued++;
	if (glexch_lend(end->conn, &m->item, m->bytes + 80, n - 80,
			end->lends | ((end->offers > 1 ? (int)fake_random(2) : end->offers) ? GLEXCH_LEND_OFFER : 0)))
		return 1;
	end->sent -= n;
	end->queued--;
	free_message(m);
	return 0;
}

void send_message(struct end *end, size_t n)
{
	struct message *m = new_message(end, n);
	size_t head = n < 80 ? n / 2 : 80;
	struct glexch_cursor cur;

	end->sent += n;
	m->iov[0] = (struct iovec){m->bytes, head};
	m->iov[1] = (struct iovec){m->bytes + head, (n - head) / 3};
	m->iov[2] = (struct iovec){m->bytes + head + m->iov[1].iov_len, n - head - m->iov[1].iov_len};
	end->queued++;
	glexch_cursor_init(&cur, m->iov, 3);
	glexch_try(end->conn, &cur);
	if (cur.left) {
		m->item.cur = cur;
		glexch_queue(end->conn, &m->item);
	} else {
		on_done(end->conn, &m->item, 0);
	}
}

int step(void)
{
	int busy = fake_deliver(1 + (int)fake_random(8));

	for (int i = 0; i < PROCS; i++)
		if (procs[i].ch)
			busy += glexch_progress(procs[i].ch);
	return busy;
}

static int arrived(const struct end *from, const struct end *to)
{
	return to->received == from->sent && from->done == from->queued;
}

void settle(const struct end *from, const struct end *to)
{
	for (int n = 0; n < STEPS && !arrived(from, to); n++)
		step();
	ck_assert_uint_eq(to->received, from->sent);
	ck_assert_int_eq(from->done, from->queued);
}

void quiet(struct proc *p)
{
	for (int n = 0; n < STEPS && !glexch_quiet(p->ch); n++)
		step();
	ck_assert(glexch_quiet(p->ch));
}

/* ---- exclusive channels --------------------------------------------------- */

const struct glexch_stats *stats(int i)
{
	return glexch_stats(procs[i].ch);
}

void steps(int n)
{
	while (n--)
		step();
}

void start_er(unsigned seed, enum glexch_mode mode, uint32_t most, uint32_t ring)
{
	kit_params.mode = mode;
	kit_params.er_max = most;
	kit_params.er_bytes = ring;
	start(seed, 16, 8);
}

uint64_t by_ring(int i)
{
	return stats(i)->bytes[GLEXCH_WAY_ER_IMM] + stats(i)->bytes[GLEXCH_WAY_ER_PUT];
}

/* Both ways, until the rings are there. */
void open_ring(void)
{
	open_end(0, 1);
	send_message(&procs[0].main_end, 100);
	settle(&procs[0].main_end, &procs[1].main_end);
	for (int n = 0; n < 3000 && !(stats(0)->er_opened && stats(1)->er_opened); n++)
		step();
	ck_assert_uint_eq(stats(0)->er_opened, 1);
	ck_assert_uint_eq(stats(1)->er_opened, 1);
}
