/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * side.h - one process's end of a test: a device, an endpoint, a registered
 * buffer; what the other end must know of it; posting with one line.
 *
 * Every function fails the test where something is not as it should be.
 */
#ifndef TEST_SIDE_H
#define TEST_SIDE_H

#include <check.h>
#include <glex.h>
#include <glex_ext.h>
#include <sched.h>

#include "test/lib/peer.h"
#include "test/lib/suite.h"

#define OK(call)                                                                                                       \
	do {                                                                                                           \
		glex_ret_t ret_ = (call);                                                                              \
		ck_assert_msg(ret_ == GLEX_SUCCESS, "%s: %s", #call, glex_error_str(ret_));                            \
	} while (0)

#define RETURNS(call, want)                                                                                            \
	do {                                                                                                           \
		glex_ret_t ret_ = (call);                                                                              \
		ck_assert_msg(ret_ == (want), "%s: %s, expected %s", #call, glex_error_str(ret_), #want);              \
	} while (0)

/* For inner loops: an assertion of Check's writes to a file each time. */
#define SURE(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			ck_abort_msg("%s", #condition);                                                                \
	} while (0)

#define WAIT_MS (PATIENCE_S * 1000)

/* Whether a process can have one thread only; the thread sanitizer's has another. */
#ifdef __SANITIZE_THREAD__
#define CAN_BE_ALONE false
#else
#define CAN_BE_ALONE true
#endif

/* The rows of a loop test: which kind of endpoint, and how the memory is reached. */
enum kind { FAST_PRIVATE, FAST_MAPPED, NORMAL_PRIVATE, NORMAL_MAPPED, KINDS };

static inline enum glex_ep_type type_of(int kind)
{
	return kind >= NORMAL_PRIVATE ? GLEX_EP_TYPE_NORMAL : GLEX_EP_TYPE_FAST;
}

static inline bool is_mapped(int kind)
{
	return kind == FAST_MAPPED || kind == NORMAL_MAPPED;
}

/* What a peer must know. */
struct card {
	glex_ep_addr_t addr;
	glex_mem_handle_t mh;
	uint32_t key;
	uint32_t pid;
};

struct side {
	glex_device_handle_t dev;
	glex_ep_handle_t ep;
	unsigned char *buf; /* len zeroed bytes, registered for all */
	size_t len;
	bool mapped;
	struct card card;
};

/* What the library says from info on goes to a file of this process; before anything is opened.  And: it holds this. */
void log_begin(void);
bool is_logged(const char *what);
void log_end(void);

/* Opens the device, creates an endpoint of this type; len bytes of memory, private or of glex_alloc; 0: none. */
void side_open(struct side *side, enum glex_ep_type type, size_t len, bool mapped);

/* The same with attributes of one's own. */
void side_open_as(struct side *side, struct glex_ep_attr *attr, size_t len, bool mapped);
void side_close(struct side *side);

/* Gives ours, takes theirs. */
struct card swap_cards(const struct side *side, int fd);

/* A word for GLEX_JOB that no other run has; call it first in main: the environment is read only once. */
void own_job(const char *test);

/*
 * Stops the glexd of this job; it goes on by glexd_go_on, or when this process
 * ends in whatever way.  Returns its process.
 */
pid_t glexd_stop(void);
void glexd_go_on(void);

/* ---- posting; BUSY is waited for ------------------------------------------ */

void send_mp(struct side *side, glex_ep_addr_t to, const void *data, uint32_t len);
void post_mp(glex_ep_handle_t ep, struct glex_imm_mp_req *req);
void post_imm(glex_ep_handle_t ep, struct glex_imm_rdma_req *req);
void post_rdma(glex_ep_handle_t ep, struct glex_rdma_req *req);

/* A request between the same offset of both sides' buffers; no events. */
struct glex_rdma_req rdma_between(const struct side *side, const struct card *to, enum glex_rdma_type type,
				  uint32_t offset, uint32_t len);

/* PUT or GET, waiting for the local event. */
void rdma_done(struct side *side, const struct card *to, enum glex_rdma_type type, uint32_t offset, uint32_t len);

/* Waits for an event, takes it off the queue. */
glex_event_t take_event(glex_ep_handle_t ep);

/* Waits for an MP of len bytes and compares it. */
void expect_mp(glex_ep_handle_t ep, const void *data, uint32_t len);

/* Waits for one error request and takes it. */
struct glex_err_req take_error(glex_ep_handle_t ep);
void expect_error(glex_ep_handle_t ep, enum glex_err_req_op op, enum glex_err_req_status status);

/* Nothing has gone wrong on this endpoint. */
void expect_no_error(glex_ep_handle_t ep);

/* Bytes that tell where they come from. */
void fill(unsigned char *buf, size_t len, uint32_t seed);
void expect_filled(const unsigned char *buf, size_t len, uint32_t seed);

/* What cannot be tried here, and why: Check itself knows nothing between passed and failed. */
void skipped(const char *test, const char *why);

#endif /* TEST_SIDE_H */
