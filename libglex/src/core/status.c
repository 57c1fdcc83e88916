/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.c - codes as sentences.  Constant strings: any thread, never freed.
 */
#include <glex.h>

#include <stddef.h>

#include "core/priv.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Codes come from callers, who may have made them up: any value, and holes, get the other text. */
static const char *text_of(const char *const *list, size_t count, unsigned int code, const char *other)
{
	return code < count && list[code] ? list[code] : other;
}

const char *glex_error_str(glex_ret_t ret)
{
	static const char *const texts[] = {
		[GLEX_SUCCESS] = "successful", /* programs compare with this very word */
		[GLEX_SYS_ERR] = "the system refused, or the device is lost",
		[GLEX_INVALID_PARAM] = "invalid parameter",
		[GLEX_NO_EP_RESOURCE] = "no endpoint of that number or type is left",
		[GLEX_NO_MEM_RESOURCE] = "the memory table or the memory is full",
		[GLEX_BUSY] = "the descriptor queue is full at present",
		[GLEX_NO_MP] = "no mini-packet",
		[GLEX_NO_EVENT] = "no event",
		[GLEX_INTR] = "interrupted by a signal",
		[GLEX_ACCESS_ERR] = "access denied",
		[GLEX_NOT_IMPLEMENTED] = "not implemented",
	};

	return text_of(texts, COUNT(texts), (unsigned int)ret, "unknown return code");
}

const char *glex_error_req_status_str(enum glex_err_req_status status)
{
	static const char *const texts[] = {
		[GLEX_ERR_STATUS_FORMAT] = "malformed request",
		[GLEX_ERR_STATUS_SRC_HOST_DEAD] = "the sending node is dead",
		[GLEX_ERR_STATUS_DEST_HOST_DEAD] = "the target process is dead",
		[GLEX_ERR_STATUS_PCIE_READ] = "memory could not be reached",
		[GLEX_ERR_STATUS_ATT] = "unknown or revoked memory handle, or unmapped memory",
		[GLEX_ERR_STATUS_MMT] = "wrong key, outside the registered memory, or access not allowed",
		[GLEX_ERR_STATUS_SRC_VP_STOP] = "the sending endpoint was destroyed",
		[GLEX_ERR_STATUS_DEST_VP_STOP] = "the target endpoint does not exist",
		[GLEX_ERR_STATUS_DEST_MPQ_FULL] = "the target's mini-packet queue is full",
		[GLEX_ERR_STATUS_DEST_EQ_FULL] = "the event queue is full",
		[GLEX_ERR_STATUS_CONNECTION_MAX_RETRY] = "too many retries on the connection",
		[GLEX_ERR_STATUS_CONNECTION_RDMA_GET] = "an RDMA GET failed on the connection",
		[GLEX_ERR_STATUS_CONNECTION_NACK] = "the connection was refused by the target",
		[GLEX_ERR_STATUS_CONNECTION_ECC] = "uncorrectable bit error on the connection",
	};

	return text_of(texts, COUNT(texts), (unsigned int)status, "unknown error status");
}

const char *glexi_error_req_cure(enum glex_err_req_status status)
{
	static const char *const texts[] = {
		[GLEX_ERR_STATUS_PCIE_READ] = "; use memory of glex_alloc where one process may not reach another's "
					      "(GLEX_MEM_ATTACH, GLEX_ADOPT)",
		[GLEX_ERR_STATUS_ATT] = "; exchange handles again after registering, deregister when all are done",
		[GLEX_ERR_STATUS_MMT] = "; all processes of a job must use the same key (are they of one build?), "
					"and the offset counts from the start of the region",
		[GLEX_ERR_STATUS_DEST_VP_STOP] = "; its process has ended, or has destroyed it",
		[GLEX_ERR_STATUS_DEST_MPQ_FULL] = "; let it receive more often, send less ahead, or give it a larger "
						  "queue (mpq_capacity; GLEX_EP_MPQ_SLOTS for MPI)",
		[GLEX_ERR_STATUS_DEST_EQ_FULL] = "; let its owner poll more often, or give it a larger queue "
						 "(eq_capacity)",
	};

	return text_of(texts, COUNT(texts), (unsigned int)status, "");
}

const char *glex_error_req_opcode_str(enum glex_err_req_op opcode)
{
	static const char *const texts[] = {
		[GLEX_ERR_OP_IMM_MP] = "immediate mini-packet",
		[GLEX_ERR_OP_MP] = "mini-packet",
		[GLEX_ERR_OP_IMM_RDMA_PUT] = "immediate RDMA PUT",
		[GLEX_ERR_OP_RDMA_PUT] = "RDMA PUT",
		[GLEX_ERR_OP_RDMA_GET] = "RDMA GET",
	};

	return text_of(texts, COUNT(texts), (unsigned int)opcode, "unknown operation");
}
