/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.c - payloads of collective mini-packets: not in this version.
 *
 * The symbols are there so that programs link; the posting calls refuse the
 * flags that would need them (GLEX_FLAG_COLL and above) in the same way.
 */
#include <glex.h>

glex_ret_t glex_coll_compose_mp_swap_addr_data(glex_ep_handle_t ep, glex_mem_handle_t mh, uint32_t offset, uint32_t key,
					       void *data, uint32_t *data_len)
{
	(void)ep, (void)mh, (void)offset, (void)key, (void)data, (void)data_len;
	return GLEX_NOT_IMPLEMENTED;
}

glex_ret_t glex_coll_compose_mp_reduce_data(union glex_coll_data_loc send_buf[], uint32_t count,
					    enum glex_coll_reduce_data_bits data_bits,
					    enum glex_coll_reduce_op reduce_op, uint32_t branch_degree, void *data,
					    uint32_t *data_len)
{
	(void)send_buf, (void)count, (void)data_bits, (void)reduce_op, (void)branch_degree, (void)data, (void)data_len;
	return GLEX_NOT_IMPLEMENTED;
}

glex_ret_t glex_coll_decompose_mp_reduce_data(union glex_coll_data_loc recv_buf[], uint32_t count,
					      enum glex_coll_reduce_data_bits data_bits, void *data)
{
	(void)recv_buf, (void)count, (void)data_bits, (void)data;
	return GLEX_NOT_IMPLEMENTED;
}

glex_ret_t glex_coll_compose_mp_set_data(glex_ep_addr_t ep_addrs[], uint32_t count, void *data, uint32_t *data_len)
{
	(void)ep_addrs, (void)count, (void)data, (void)data_len;
	return GLEX_NOT_IMPLEMENTED;
}
