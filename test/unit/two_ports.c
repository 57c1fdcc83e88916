/* SPDX-License-Identifier: BSD-2-Clause */
#include "two_ports.h"

struct side ours, theirs;
struct emu_engine engine;
struct fake fake;

/* ---- the host ------------------------------------------------------------ */

static struct emu_vport *fake_port(struct emu_host *host, uint32_t nic_id, uint32_t ep_num)
{
	(void)host;
	if (fake.no_port)
		return NULL;
	if (nic_id == OUR_NIC && ep_num == OUR_EP)
		return &ours.port;
	return nic_id == THEIR_NIC && ep_num == THEIR_EP ? &theirs.port : NULL;
}

static struct emu_nic *fake_nic(struct emu_host *host, uint32_t nic_id)
{
	(void)host;
	if (fake.no_nic)
		return NULL;
	return nic_id == OUR_NIC ? ours.nic : nic_id == THEIR_NIC ? theirs.nic : NULL;
}

static unsigned char *fake_map(struct emu_host *host, uint64_t map, bool write, uint64_t *len_p)
{
	(void)host;
	(void)map;
	(void)write;
	(void)len_p;
	return NULL;
}

static enum emu_reach fake_read(struct emu_host *host, uint32_t pid, void *here, uint64_t there, uint64_t len)
{
	(void)host;
	(void)pid;
	if (fake.reach == EMU_REACH_OK)
		memcpy(here, (const void *)(uintptr_t)there, len);
	return fake.reach;
}

bool has_event(const struct side *side)
{
	return emu_ring_peek(&side->port.eq, atomic_load(&side->port.port->eq.head)) != NULL;
}

static enum emu_reach fake_write(struct emu_host *host, uint32_t pid, const void *here, uint64_t there, uint64_t len,
				 uint32_t tail)
{
	(void)host;
	(void)pid;
	(void)tail;
	fake.writes++;
	fake.order_kept = fake.order_kept && !has_event(&theirs) && !has_event(&ours);
	if (fake.reach == EMU_REACH_OK)
		memcpy((void *)(uintptr_t)there, here, len);
	return fake.reach;
}

static void fake_wake(struct emu_host *host, struct emu_port *port)
{
	(void)host;
	fake.wakes++;
	fake.woken = port;
}

static bool fake_interrupt(struct emu_host *host, struct emu_port *port)
{
	(void)host;
	atomic_fetch_add(&fake.interrupts, 1);
	return !fake.on_interrupt || fake.on_interrupt(port);
}

static const struct emu_host_ops ops = {
	.port = fake_port,
	.nic = fake_nic,
	.map = fake_map,
	.read = fake_read,
	.write = fake_write,
	.wake = fake_wake,
	.interrupt = fake_interrupt,
};

/* ---- the two sides ------------------------------------------------------- */

uint64_t enter(struct side *side, uint32_t session, uint32_t ep_num, uint64_t len, uint32_t access)
{
	struct emu_region region = {
		.addr = (uintptr_t)side->memory,
		.len = len,
		.key = KEY,
		.pid = session + 1000,
		.session = session,
		.ep_num = ep_num,
		.access = access,
	};
	uint64_t handle = 0;

	ck_assert(emu_mmt_register(side->nic, &region, &handle));
	return handle;
}

static void make_side(struct side *side, uint32_t nic_id, uint32_t ep_num, uint32_t session)
{
	struct emu_vport_shape shape = {
		.nic_id = nic_id,
		.ep_num = ep_num,
		.key = KEY,
		.session = session,
		.mpq_capacity = MPQ,
		.eq_capacity = EQ,
	};
	uint64_t size = emu_vport_size(&shape);

	side->segment = unit_zeroed(size);
	side->nic = unit_zeroed(sizeof(*side->nic));
	side->memory = unit_zeroed(SIZE);
	emu_vport_format(side->segment, size, &shape);
	ck_assert_ptr_null(emu_vport_attach(&side->port, side->segment, size));
	side->handle = enter(side, session, ep_num, SIZE, GLEX_MEM_READ | GLEX_MEM_WRITE);
}

static void free_side(struct side *side)
{
	free(side->segment);
	free(side->nic);
	free(side->memory);
}

void setup(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.order_kept = true;
	fake.host.ops = &ops;
	fake.host.engine = &engine;
	fake.host.session = OUR_SESSION;
	make_side(&ours, OUR_NIC, OUR_EP, OUR_SESSION);
	make_side(&theirs, THEIR_NIC, THEIR_EP, THEIR_SESSION);
	for (size_t i = 0; i < SIZE; i++) {
		ours.memory[i] = (unsigned char)(i % 251 + 1);
		theirs.memory[i] = (unsigned char)(i % 241 + 10);
	}
}

void teardown(void)
{
	free_side(&ours);
	free_side(&theirs);
}

glex_ep_addr_t their_addr(void)
{
	glex_ep_addr_t addr = {.v = 0};

	addr.nic_id = THEIR_NIC;
	addr.ep_num = THEIR_EP;
	return addr;
}

struct emu_desc desc_of(enum emu_op op, uint32_t len)
{
	struct emu_desc desc = {
		.op = op,
		.flag = op == EMU_OP_MP ? 0 : GLEX_FLAG_LOCAL_EVT | GLEX_FLAG_REMOTE_EVT,
		.dst = their_addr().v,
		.local_mh = ours.handle,
		.rmt_mh = theirs.handle,
		.local_offset = 16,
		.rmt_offset = 160,
		.len = len,
		.rmt_key = KEY,
		.local_evt = {OUR_EVT, 1},
		.rmt_evt = {THEIR_EVT, 2},
	};

	return desc;
}

int exec(const struct emu_desc *desc)
{
	return emu_exec(&fake.host, &ours.port, desc, ours.memory);
}

uint64_t next_event(struct side *side)
{
	uint32_t head = atomic_load(&side->port.port->eq.head);
	struct emu_event_slot *slot = emu_ring_peek(&side->port.eq, head);

	if (!slot)
		return 0;
	emu_ring_release(&side->port.eq, head + 1);
	return slot->cookie[0];
}

struct emu_mp_slot *first_mp(struct side *side)
{
	return emu_ring_peek(&side->port.mpq, atomic_load(&side->port.port->mpq.head));
}

struct emu_err_slot *first_error(void)
{
	return emu_ring_peek(&ours.port.err, atomic_load(&ours.port.port->err.head));
}

void fill_eq(struct side *side)
{
	const uint64_t cookie[2] = {FULL_EVT, 1};

	for (uint32_t n = 0; n < EQ; n++)
		ck_assert_int_eq(emu_deliver_event(&fake.host, &side->port, cookie), EMU_OK);
}

bool untouched(const struct side *side)
{
	for (size_t i = 0; i < SIZE; i++)
		if (side->memory[i] != (side == &ours ? i % 251 + 1 : i % 241 + 10))
			return false;
	return true;
}

void expect_refused(const struct emu_desc *desc, int status)
{
	ck_assert_int_eq(exec(desc), status);
	ck_assert(untouched(&ours));
	ck_assert(untouched(&theirs));
	ck_assert(!has_event(&ours));
	ck_assert(!has_event(&theirs));
	ck_assert_ptr_null(first_mp(&theirs));
}
