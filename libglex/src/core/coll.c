/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.c - payloads of collective mini-packets, which the NIC reads: operands,
 * swap addresses, sets (shm_layout.h).
 */
#include <string.h>

#include "core/priv.h"

glex_ret_t glex_coll_compose_mp_swap_addr_data(glex_ep_handle_t handle, glex_mem_handle_t mh, uint32_t offset,
					       uint32_t key, void *data, uint32_t *data_len)
{
	struct glexi_ep *ep = glexi_ep_of(handle);
	struct emu_swap_addr addr;

	if (!ep || !data || !data_len || mh.v == 0)
		return GLEX_INVALID_PARAM;
	if (glexi_is_forked(ep->dev))
		return GLEX_SYS_ERR;
	addr = (struct emu_swap_addr){.ep = ep->addr.v, .mh = mh.v, .offset = offset, .key = key};
	memcpy(data, &addr, sizeof(addr));
	*data_len = sizeof(addr);
	return GLEX_SUCCESS;
}

static_assert(sizeof(union glex_coll_data_loc) == sizeof(((struct emu_operand *)0)->unit[0]), "units as they are");

static bool is_width(enum glex_coll_reduce_data_bits bits)
{
	return bits == GLEX_COLL_REDUCE_DATA_BITS_32 || bits == GLEX_COLL_REDUCE_DATA_BITS_64;
}

EMU_TOGETHER glex_ret_t glex_coll_compose_mp_reduce_data(union glex_coll_data_loc send_buf[], uint32_t count,
							 enum glex_coll_reduce_data_bits data_bits,
							 enum glex_coll_reduce_op reduce_op, uint32_t branch_degree,
							 void *data, uint32_t *data_len)
{
	struct emu_operand head = {
		.magic = EMU_OPERAND_MAGIC,
		.count = (uint8_t)count,
		.bits = (uint8_t)data_bits,
		.op = (uint8_t)reduce_op,
		.degree = (uint8_t)branch_degree,
	};
	uint32_t i;

	if ((count && !send_buf) || count > GLEX_COLL_REDUCE_MAX_DATA_UNITS || !is_width(data_bits) ||
	    (unsigned)reduce_op > GLEX_COLL_REDUCE_BXOR || branch_degree > GLEX_COLL_MAX_BRANCH_DEGREE || !data ||
	    !data_len)
		return GLEX_INVALID_PARAM;
	memcpy(data, &head, EMU_OPERAND_HEAD);
	/* Only what the width means: the rest of a union is whatever the program had there. */
	for (i = 0; i < count; i++) {
		union glex_coll_data_loc unit;

		memset(&unit, 0, sizeof(unit));
		if (data_bits == GLEX_COLL_REDUCE_DATA_BITS_64) {
			unit.uint64_s.data = send_buf[i].uint64_s.data;
			unit.uint64_s.location = send_buf[i].uint64_s.location;
		} else {
			unit.uint32_s.data = send_buf[i].uint32_s.data;
			unit.uint32_s.location = send_buf[i].uint32_s.location;
		}
		memcpy((unsigned char *)data + EMU_OPERAND_HEAD + i * sizeof(unit), &unit, sizeof(unit));
	}
	*data_len = EMU_OPERAND_HEAD + count * (uint32_t)sizeof(head.unit[0]);
	return GLEX_SUCCESS;
}

glex_ret_t glex_coll_decompose_mp_reduce_data(union glex_coll_data_loc recv_buf[], uint32_t count,
					      enum glex_coll_reduce_data_bits data_bits, void *data)
{
	struct emu_operand operand;

	if ((count && !recv_buf) || !data)
		return GLEX_INVALID_PARAM;
	memcpy(&operand, data, EMU_OPERAND_HEAD);
	if (operand.magic != EMU_OPERAND_MAGIC || count > operand.count ||
	    operand.count > GLEX_COLL_REDUCE_MAX_DATA_UNITS || operand.bits != (uint8_t)data_bits)
		return GLEX_INVALID_PARAM;
	if (count)
		memcpy(recv_buf, (const unsigned char *)data + EMU_OPERAND_HEAD, count * sizeof(recv_buf[0]));
	return GLEX_SUCCESS;
}

glex_ret_t glex_coll_compose_mp_set_data(glex_ep_addr_t ep_addrs[], uint32_t count, void *data, uint32_t *data_len)
{
	if ((count && !ep_addrs) || count > GLEX_COLL_SET_MAX_NUM || !data || !data_len)
		return GLEX_INVALID_PARAM;
	*data_len = count * (uint32_t)sizeof(ep_addrs[0]);
	if (count)
		memcpy(data, ep_addrs, *data_len);
	return GLEX_SUCCESS;
}
