/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.c - collectives of few members, each of whom sends to each:
 *
 *   barrier, allreduce   all to all; operands are combined where they are wanted
 *   bcast, reduce        from one to all, from all to one: nobody else waits for anybody
 *
 *   packet   | seq 4 | from 2 | what 2 | data, or units |      seq: of the collective
 *
 * Where few members share few processors this is fastest: all that a member waits for
 * is sent by those who come to the same call, and nobody has to be there in between.
 *
 * Who only sends in a collective does not learn whether it was received.  A packet of
 * collective s says that its sender has ended all before s.  Nobody sends to another
 * whom he is not known to be less than 2 * window ahead of: he asks, goes on when he is
 * told, and until then the collective has begun, but is not sent.  So there is always
 * room for whatever may be under way.  Who is asked needs what is held back, so he is
 * still there, and so is who waits to be told.
 *
 * Packets come in any order.  Those of a later collective are kept aside.
 *
 * I1  known[i] is not ahead of what i has ended; lag is not ahead of any known[].
 * I2  a packet of collective s is sent to i while s - 1 - known[i] < 2 * window.
 */
#include "group/priv.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/nic/reduce.h"

#define HEAD   8u
#define DATA   (GLEXI_GROUP_MP - HEAD)
#define OTHERS (GLEX_GROUP_DIRECT_MAX - 1u)
/* In `what`: */
#define TOLD   0x8000u /* seq has been ended, and no more is said */
#define ASK    0x4000u /* has seq been ended? */
#define SECOND 0x2000u /* the rest of a broadcast */

struct packet {
	uint32_t seq;
	uint16_t from;
	uint16_t what;
	unsigned char data[DATA];
};

static_assert(sizeof(struct packet) == GLEXI_GROUP_MP, "a packet is a mini-packet's data");
static_assert(OTHERS <= EMU_OPERANDS, "what is combined at once");
static_assert(DATA >= GLEX_COLL_REDUCE_MAX_DATA_UNITS * sizeof(union glex_coll_data_loc), "all units are in one");

/* A packet that came too early. */
struct early {
	struct early *next;
	uint32_t len;
	struct packet packet;
};

struct glexi_direct {
	uint32_t window;
	uint32_t seq;	 /* of what was begun last */
	uint32_t lag;	 /* what the last of the others is known to have ended */
	uint32_t *known; /* what each member is known to have ended */
	uint32_t *asked; /* who waits to be told, by member: the answer is due when this has been ended */
	uint32_t due;	 /* answers; who waits for none has 0 */
	struct early *early, *spare;
	/* of what was begun */
	bool is_late, is_busy; /* it has not been sent yet, or not to all; for want of room in a queue */
	bool has_asked;
	uint32_t to, part, need; /* whom the next one is for, which of a broadcast's; packets that are still to come */
	uint32_t operands, own_len;
	struct emu_operand own;
	struct emu_coll_kept *operand; /* as many as there are others */
	struct packet packet[2];
	uint32_t len[2]; /* of a packet; 0: it is not there */
};

static uint32_t others_of(const struct glex_group *group)
{
	return group->n - 1;
}

/* The place of member i among the others, and who is there. */
static uint32_t member_at(const struct glex_group *group, uint32_t at)
{
	return at + (at >= group->me);
}

glex_ret_t glexi_direct_join(struct glex_group *group, const struct glex_group_card *cards)
{
	uint32_t others = others_of(group), i;
	struct glexi_direct *direct;

	if (others > OTHERS)
		return GLEX_INVALID_PARAM;
	direct = group->direct = calloc(1, sizeof(*direct));
	if (!direct)
		return GLEX_NO_MEM_RESOURCE;
	group->near = calloc(others + 1, sizeof(*group->near));
	direct->known = calloc(2 * group->n, sizeof(*direct->known));
	direct->operand = calloc(others + 1, sizeof(*direct->operand));
	if (!group->near || !direct->known || !direct->operand)
		return GLEX_NO_MEM_RESOURCE;
	direct->asked = direct->known + group->n;
	/* Of each other: two packets of each collective that I2 allows, a question, an answer. */
	direct->window = others ? (GLEXI_GROUP_MPQ / others - 2) / 4 : 1;
	if (direct->window > 32)
		direct->window = 32;
	for (i = 0; i < others; i++)
		group->near[i].card = cards[member_at(group, i)];
	group->neighbours = others;
	return GLEX_SUCCESS;
}

static void free_all(struct early *early)
{
	struct early *next;

	for (; early; early = next) {
		next = early->next;
		free(early);
	}
}

void glexi_direct_leave(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;

	if (!direct)
		return;
	free_all(direct->early);
	free_all(direct->spare);
	free(direct->known);
	free(direct->operand);
	free(direct);
	group->direct = NULL;
}

/* ---- sending ------------------------------------------------------------------ */

/* What all members must have begun alike; the root they need not tell. */
static uint16_t what_of(const struct glex_group *group)
{
	const struct glexi_direct *direct = group->direct;

	if (group->what != GLEXI_REDUCE)
		return (uint16_t)group->what;
	return (uint16_t)(group->what | (uint32_t)group->to_all << 2 | (uint32_t)direct->own.bits << 3 |
			  (uint32_t)direct->own.count << 4 | (uint32_t)direct->own.op << 8);
}

static glex_ret_t send_to(struct glex_group *group, uint32_t at, struct packet *packet, uint32_t len)
{
	struct glex_imm_mp_req req = {.rmt_ep_addr = group->near[at].card.down, .data = packet, .len = len};

	return glex_send_imm_mp(group->down, &req, NULL);
}

static bool is_far(const struct glexi_direct *direct, uint32_t known)
{
	return direct->seq - 1 - known >= 2 * direct->window;
}

/* What was begun goes to these others. */
static void destinations(const struct glex_group *group, uint32_t *first, uint32_t *end)
{
	bool to_one = group->what == GLEXI_REDUCE && !group->to_all;

	*first = to_one ? group->root - (group->root > group->me) : 0;
	*end = to_one ? *first + 1 : others_of(group);
}

/* I2: true if so; else those who are too far behind have been asked to tell. */
static bool may_send(struct glex_group *group, uint32_t first, uint32_t end)
{
	struct glexi_direct *direct = group->direct;
	struct packet packet = {.from = (uint16_t)group->me, .what = ASK};
	uint32_t i, known, lag = direct->seq - 1;
	bool is_all = end - first == others_of(group), refused = false;

	if (!is_far(direct, direct->lag))
		return true;
	packet.seq = direct->seq - 1 - direct->window;
	for (i = first; i < end; i++) {
		known = direct->known[member_at(group, i)];
		if ((int32_t)(known - lag) < 0)
			lag = known;
		if (is_far(direct, known) && !direct->has_asked)
			refused |= send_to(group, i, &packet, HEAD) == GLEX_BUSY;
	}
	if (is_all)
		direct->lag = lag; /* I1 */
	direct->is_busy = refused;
	direct->has_asked = !refused;
	return !is_far(direct, lag);
}

/* Whatever can be sent of what was begun.  An error: the group is broken. */
static glex_ret_t send_all(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	uint32_t first, end;
	glex_ret_t ret;

	destinations(group, &first, &end);
	direct->is_late = true;
	direct->is_busy = false;
	if (!may_send(group, first, end))
		return GLEX_SUCCESS;
	for (; direct->part < 2 && direct->len[direct->part]; direct->part++) {
		for (; first + direct->to < end; direct->to++) {
			ret = send_to(group, first + direct->to, &direct->packet[direct->part],
				      direct->len[direct->part]);
			direct->is_busy = ret == GLEX_BUSY;
			if (ret != GLEX_SUCCESS)
				return direct->is_busy ? GLEX_SUCCESS : ret;
		}
		direct->to = 0;
	}
	direct->is_late = false;
	return GLEX_SUCCESS;
}

/* All before `ended` has been ended, and this too: tells those who have asked for no more. */
static glex_ret_t tell(struct glex_group *group, uint32_t ended)
{
	struct glexi_direct *direct = group->direct;
	struct packet packet = {.seq = ended, .from = (uint16_t)group->me, .what = TOLD};
	glex_ret_t ret;
	uint32_t i;

	for (i = 0; i < others_of(group) && direct->due; i++) {
		uint32_t *asked = &direct->asked[member_at(group, i)];

		if (!*asked || (int32_t)(ended - *asked) < 0)
			continue;
		ret = send_to(group, i, &packet, HEAD);
		if (ret == GLEX_BUSY)
			continue; /* with the next one */
		if (ret != GLEX_SUCCESS)
			return ret;
		*asked = 0;
		direct->due--;
	}
	return GLEX_SUCCESS;
}

/* ---- receiving ---------------------------------------------------------------- */

static bool is_packet(const struct glex_group *group, const struct packet *packet, uint32_t len)
{
	return len >= HEAD && packet->from < group->n && packet->from != group->me;
}

static glex_ret_t take_data(struct glex_group *group, const struct packet *packet, uint32_t len)
{
	bool second = packet->what & SECOND;
	uint32_t at = second ? DATA : 0, want = group->len - at;

	if (packet->from != group->root || (second && group->len <= DATA))
		return GLEX_SYS_ERR;
	if (len != (want > DATA ? DATA : want))
		return GLEX_SYS_ERR;
	if (len)
		memcpy((unsigned char *)group->result + at, packet->data, len);
	return GLEX_SUCCESS;
}

static glex_ret_t take_operand(struct glex_group *group, const struct packet *packet, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	uint32_t at = packet->from - (packet->from > group->me);
	struct emu_coll_kept *kept = &direct->operand[at];

	if (EMU_OPERAND_HEAD + len != direct->own_len)
		return GLEX_SYS_ERR;
	memcpy(kept->data, &direct->own, EMU_OPERAND_HEAD);
	memcpy(kept->data + EMU_OPERAND_HEAD, packet->data, len);
	kept->len = direct->own_len;
	kept->src = group->near[at].card.down.v;
	return GLEX_SUCCESS;
}

/* A packet of what was begun. */
static glex_ret_t take(struct glex_group *group, const struct packet *packet, uint32_t len)
{
	struct glexi_direct *direct = group->direct;

	if ((packet->what & ~SECOND) != what_of(group) || !direct->need)
		return GLEX_SYS_ERR; /* the others had begun something else */
	direct->need--;
	if (group->what == GLEXI_BCAST)
		return take_data(group, packet, len - HEAD);
	if (group->what == GLEXI_REDUCE)
		return take_operand(group, packet, len - HEAD);
	return GLEX_SUCCESS;
}

static glex_ret_t keep(struct glexi_direct *direct, const struct packet *packet, uint32_t len)
{
	struct early *early = direct->spare;

	if (early)
		direct->spare = early->next;
	else if (!(early = malloc(sizeof(*early))))
		return GLEX_NO_MEM_RESOURCE;
	memcpy(&early->packet, packet, len);
	early->len = len;
	early->next = direct->early;
	direct->early = early;
	return GLEX_SUCCESS;
}

static glex_ret_t receive(struct glex_group *group, const struct packet *packet, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	uint32_t ended;

	if (!is_packet(group, packet, len))
		return GLEX_SYS_ERR;
	if (packet->what == ASK) {
		uint32_t *asked = &direct->asked[packet->from];

		direct->due += !*asked;
		*asked = packet->seq ? packet->seq : 1; /* 0 says that it does not */
		return tell(group, direct->seq - 1);
	}
	ended = packet->what == TOLD ? packet->seq : packet->seq - 1;
	if ((int32_t)(ended - direct->known[packet->from]) > 0)
		direct->known[packet->from] = ended; /* I1 */
	if (packet->what == TOLD)
		return GLEX_SUCCESS;
	if (packet->seq == direct->seq)
		return take(group, packet, len);
	return (int32_t)(packet->seq - direct->seq) > 0 ? keep(direct, packet, len) : GLEX_SYS_ERR;
}

/* Those kept aside that belong to what has been begun now. */
static glex_ret_t take_early(struct glex_group *group)
{
	struct early **p = &group->direct->early, *early;
	glex_ret_t ret = GLEX_SUCCESS;

	while ((early = *p) && ret == GLEX_SUCCESS) {
		if (early->packet.seq != group->direct->seq) {
			p = &early->next;
			continue;
		}
		ret = take(group, &early->packet, early->len);
		*p = early->next;
		early->next = group->direct->spare;
		group->direct->spare = early;
	}
	return ret;
}

/* ---- beginning, waiting --------------------------------------------------------- */

/* The packets of it, and how many are to come; true: there is somebody to send them to. */
static bool prepare(struct glex_group *group, const void *data, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	bool root = group->me == group->root, all = group->what == GLEXI_BARRIER || group->to_all;
	uint32_t i, others = others_of(group);
	struct packet *packet = direct->packet;

	if (group->what == GLEXI_REDUCE) {
		memcpy(&direct->own, data, len);
		direct->own_len = len;
		data = direct->own.unit;
		len -= EMU_OPERAND_HEAD;
	}
	direct->need = all ? others : group->what == GLEXI_REDUCE ? (root ? others : 0) : root ? 0 : 1 + (len > DATA);
	if (!(all || (group->what == GLEXI_BCAST) == root))
		return false;
	direct->len[1] = 0;
	for (i = 0; i == 0 || (i == 1 && len > DATA); i++) {
		uint32_t at = i ? DATA : 0, n = i ? len - DATA : len > DATA ? DATA : len;

		packet[i].seq = direct->seq;
		packet[i].from = (uint16_t)group->me;
		packet[i].what = what_of(group) | (i ? SECOND : 0);
		if (n)
			memcpy(packet[i].data, (const unsigned char *)data + at, n);
		direct->len[i] = HEAD + n;
	}
	return others != 0;
}

glex_ret_t glexi_direct_begin(struct glex_group *group, void *data, uint32_t len)
{
	struct glexi_direct *direct = group->direct;
	glex_ret_t ret = GLEX_SUCCESS;

	direct->seq++;
	direct->is_late = direct->has_asked = false;
	direct->part = direct->to = 0;
	if (prepare(group, data, len))
		ret = send_all(group);
	if (ret == GLEX_SUCCESS && direct->early)
		ret = take_early(group);
	return ret;
}

static glex_ret_t finish(struct glex_group *group)
{
	struct glexi_direct *direct = group->direct;
	struct emu_operand sum;

	if (group->what == GLEXI_REDUCE && group->result) {
		if (!emu_reduce_all(&sum, &direct->own, direct->own_len, group->card.down.v, direct->operand,
				    others_of(group)))
			return GLEX_SYS_ERR;
		memcpy(group->result, sum.unit, group->len * sizeof(sum.unit[0]));
	}
	return direct->due ? tell(group, direct->seq) : GLEX_SUCCESS;
}

glex_ret_t glexi_direct_wait(struct glex_group *group, int32_t timeout)
{
	struct glexi_direct *direct = group->direct;
	struct packet packet;
	int32_t slice;
	uint32_t len;
	glex_ret_t ret;

	for (;;) {
		if (direct->is_late && (ret = send_all(group)) != GLEX_SUCCESS)
			return ret;
		if (!direct->need && !direct->is_late)
			return finish(group);
		if (direct->due && (ret = tell(group, direct->seq - 1)) != GLEX_SUCCESS)
			return ret;
		slice = direct->is_late && direct->is_busy && timeout > 0 ? 1 : timeout; /* room tells nobody */
		ret = glex_receive_mp(group->down, slice, NULL, &packet, &len);
		if (ret == GLEX_SUCCESS)
			ret = receive(group, &packet, len);
		else if (ret == GLEX_NO_MP && (timeout -= slice) > 0)
			continue;
		if (ret != GLEX_SUCCESS)
			return ret;
	}
}
