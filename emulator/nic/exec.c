/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec.c - descriptors: checks, data, events, in this order.
 *
 * I1  nothing is moved before port, key, bounds and access have been checked.
 * I2  the remote event follows the last byte, the local event follows both.
 * I3  a slot claimed here is published here.
 */
#include "emulator/nic/exec.h"

#include <glex.h>

#include "emulator/nic/att.h"
#include "emulator/nic/fast.h"

static uint32_t nic_of(uint64_t addr)
{
	glex_ep_addr_t a = {.v = addr};

	return a.nic_id;
}

static uint32_t ep_of(uint64_t addr)
{
	glex_ep_addr_t a = {.v = addr};

	return a.ep_num;
}

int emu_lost(struct emu_ring_ctl *ctl, int status)
{
	atomic_fetch_add_explicit(&ctl->lost, 1, memory_order_relaxed); /* relaxed: counter */
	return status;
}

int emu_deliver_mp(struct emu_host *host, struct emu_vport *to, uint64_t src, const void *data, uint32_t len)
{
	return emu_is_open(to) ? emu_put_mp(host, to, src, data, len) : GLEX_ERR_STATUS_DEST_VP_STOP;
}

int emu_deliver_event(struct emu_host *host, struct emu_vport *to, const uint64_t cookie[2])
{
	return emu_is_open(to) ? emu_put_event(host, to, cookie) : GLEX_ERR_STATUS_DEST_VP_STOP;
}

/* The other end, in another process's private memory. */
static void remember_away(struct emu_host *host, struct emu_nic *nic, uint64_t handle, uint64_t port,
			  const struct emu_region *region)
{
	struct emu_away *away = emu_away_place(host, handle, port);

	if (!away || region->way != EMU_WAY_ATTACH || region->session == host->session)
		return;
	*away = (struct emu_away){
		.handle = handle,
		.port = port,
		.nic = nic,
		.addr = region->addr,
		.len = region->len,
		.key = region->key,
		.access = emu_mmt_access(region),
		.pid = region->pid,
	};
}

/* Keeps a region that was found for emu_recall, if all of it lies open to this process.  to: of the other end. */
static void remember(struct emu_host *host, struct emu_vport *to, struct emu_nic *nic, uint64_t handle, uint64_t port,
		     const struct emu_region *region)
{
	enum emu_end end = to ? EMU_END_REMOTE : EMU_END_LOCAL;
	struct emu_known *known = emu_known_place(host, end, handle, port);
	unsigned char *base;

	if (!known)
		return;
	if (known->handle == handle && known->port == port) {
		known->to = to; /* it may have been mapped anew */
		return;
	}
	base = emu_direct(host, region, region->access & (GLEX_MEM_WRITE | EMU_ACCESS_ATOMIC));
	if (base)
		*known = (struct emu_known){
			.handle = handle,
			.port = port,
			.nic = nic,
			.base = base,
			.len = region->len,
			.key = region->key,
			.access = region->access,
			.session = region->session,
			.to = to,
		};
	else if (end == EMU_END_REMOTE)
		remember_away(host, nic, handle, port, region);
}

int emu_check_region(struct emu_nic *nic, uint64_t handle, uint32_t ep_num, uint64_t offset, uint64_t len,
		     struct emu_region *region)
{
	if (!emu_mmt_find(nic, handle, region))
		return GLEX_ERR_STATUS_ATT;
	if (region->ep_num != ep_num || offset > region->len || len > region->len - offset)
		return GLEX_ERR_STATUS_MMT;
	return EMU_OK;
}

static int check_remote(struct emu_host *host, struct emu_vport *to, const struct emu_desc *desc,
			struct emu_region *region)
{
	uint32_t access = emu_access_of(desc->op);
	struct emu_nic *nic = host->ops->nic(host, nic_of(desc->dst));
	int status;

	if (!nic)
		return GLEX_ERR_STATUS_DEST_VP_STOP;
	status = emu_check_region(nic, desc->rmt_mh, ep_of(desc->dst), desc->rmt_offset, desc->len, region);
	if (status == EMU_OK && (region->key != desc->rmt_key || !(region->access & access)))
		status = GLEX_ERR_STATUS_MMT;
	if (status == EMU_OK)
		remember(host, to, nic, desc->rmt_mh, desc->dst, region);
	return status;
}

int emu_status_of(enum emu_reach reach)
{
	switch (reach) {
	case EMU_REACH_OK:
		return EMU_OK;
	case EMU_REACH_GONE:
		return GLEX_ERR_STATUS_DEST_HOST_DEAD;
	case EMU_REACH_FAULT:
		return GLEX_ERR_STATUS_ATT;
	case EMU_REACH_REFUSED:
		break;
	}
	return GLEX_ERR_STATUS_PCIE_READ;
}

static struct emu_vport *target_of(struct emu_host *host, const struct emu_desc *desc)
{
	struct emu_vport *to = host->ops->port(host, nic_of(desc->dst), ep_of(desc->dst));

	return to && emu_is_open(to) ? to : NULL;
}

static uint64_t addr_of(const struct emu_vport *port)
{
	glex_ep_addr_t addr = {.v = 0};

	addr.ep_num = (uint16_t)port->port->ep_num;
	addr.nic_id = port->port->nic_id;
	return addr.v;
}

int emu_exec_move(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, uint64_t done, uint64_t n)
{
	struct emu_vport *to = target_of(host, desc);
	struct emu_region remote, local;
	struct emu_nic *nic;
	int status;

	if (!to)
		return GLEX_ERR_STATUS_DEST_VP_STOP;
	status = check_remote(host, to, desc, &remote);
	if (status != EMU_OK || n == 0)
		return status;
	nic = host->ops->nic(host, from->port->nic_id);
	status = nic ? emu_check_region(nic, desc->local_mh, from->port->ep_num, desc->local_offset, desc->len, &local)
		     : GLEX_ERR_STATUS_SRC_HOST_DEAD;
	if (status != EMU_OK)
		return status;
	remember(host, NULL, nic, desc->local_mh, addr_of(from), &local);
	if (!EMU_LIKELY(!host->model))
		emu_att_request(host, from, desc, done, n);
	if (desc->op == EMU_OP_PUT)
		return emu_status_of(
			emu_move(host, &remote, desc->rmt_offset + done, &local, desc->local_offset + done, n));
	return emu_status_of(emu_move(host, &local, desc->local_offset + done, &remote, desc->rmt_offset + done, n));
}

/* Checks a request whose data at this end is plain memory.  EMU_OK and *remote: there is something to move. */
static int check_plain(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc,
		       struct emu_region *remote)
{
	struct emu_vport *to = target_of(host, desc);
	int status;

	if (!to)
		return GLEX_ERR_STATUS_DEST_VP_STOP;
	status = check_remote(host, to, desc, remote);
	if (status == EMU_OK && desc->len != 0 && !EMU_LIKELY(!host->model))
		emu_att_request(host, from, desc, 0, desc->len);
	return status;
}

int emu_exec_imm(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, const void *imm)
{
	struct emu_region remote;
	int status = check_plain(host, from, desc, &remote);

	if (status != EMU_OK || desc->len == 0)
		return status;
	return emu_status_of(emu_move_from(host, &remote, desc->rmt_offset, imm, desc->len));
}

int emu_exec_fetch(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, void *here)
{
	struct emu_region remote;
	int status = check_plain(host, from, desc, &remote);

	if (status != EMU_OK || desc->len == 0)
		return status;
	return emu_status_of(emu_move_to(host, here, &remote, desc->rmt_offset, desc->len));
}

int emu_open_word(struct emu_host *host, const struct emu_desc *desc, unsigned char **word_p)
{
	struct emu_vport *to = target_of(host, desc);
	struct emu_region region;
	unsigned char *base;
	int status;

	if (!to)
		return GLEX_ERR_STATUS_DEST_VP_STOP;
	status = check_remote(host, to, desc, &region);
	if (status != EMU_OK)
		return status;
	base = emu_direct(host, &region, true);
	if (!base)
		return GLEX_ERR_STATUS_PCIE_READ;
	*word_p = base + desc->rmt_offset;
	return EMU_OK;
}

int emu_exec_finish(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc)
{
	struct emu_vport *to;
	int status = EMU_OK, local = EMU_OK;

	if (desc->flag & GLEX_FLAG_REMOTE_EVT) {
		to = target_of(host, desc);
		status = to ? emu_deliver_event(host, to, desc->rmt_evt) : GLEX_ERR_STATUS_DEST_VP_STOP;
	}
	/* The data has moved, so the poster's event is due even when the target's was lost. */
	if (desc->flag & GLEX_FLAG_LOCAL_EVT && desc->op != EMU_OP_IMM_PUT)
		local = emu_deliver_event(host, from, desc->local_evt);
	if (!EMU_LIKELY(!(desc->flag & EMU_INTR_FLAGS)))
		emu_interrupts(host, from, desc);
	return status != EMU_OK ? status : local;
}

int emu_exec(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, const void *imm)
{
	struct emu_vport *to;
	int status;

	if (desc->op == EMU_OP_MP) {
		to = target_of(host, desc);
		status = to ? emu_put_mp(host, to, addr_of(from), imm, desc->len) : GLEX_ERR_STATUS_DEST_VP_STOP;
		if (!EMU_LIKELY(!(desc->flag & EMU_INTR_FLAGS)) && status == EMU_OK)
			emu_interrupts(host, from, desc);
		return status;
	}
	status = desc->op == EMU_OP_IMM_PUT ? emu_exec_imm(host, from, desc, imm)
					    : emu_exec_move(host, from, desc, 0, desc->len);
	return status == EMU_OK ? emu_exec_finish(host, from, desc) : status;
}

static void record_error(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, int status)
{
	uint32_t index;
	struct emu_err_slot *slot = emu_ring_claim(&from->err, host->session, &index);

	if (!slot) {
		emu_lost(&from->port->err, 0);
		return;
	}
	slot->flags = 0;
	slot->op = emu_err_op(desc->op);
	slot->status = (uint32_t)status;
	slot->rmt_nic_id = nic_of(desc->dst);
	slot->rmt_ep_num = ep_of(desc->dst);
	slot->data[0] = desc->op == EMU_OP_MP ? desc->len : desc->rmt_mh;
	slot->data[1] = desc->op == EMU_OP_MP ? 0 : desc->rmt_offset;
	slot->data[2] = desc->op == EMU_OP_MP ? 0 : desc->len;
	emu_ring_publish(slot, index); /* I3 */
}

void emu_report(struct emu_host *host, struct emu_vport *from, const struct emu_desc *desc, int status)
{
	record_error(host, from, desc, status);
	emu_interrupt(host, from, EMU_INTR_ERROR, desc->dst);
	emu_record_bad(host, from, desc, status);
}
