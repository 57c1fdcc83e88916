/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * patience.h - how long to wait for somebody who may never answer.
 *
 * Clocks leap where the whole machine stood still: a virtual one was stopped or
 * moved, or its host had no time for it.  Whoever is waited for has not run
 * meanwhile either, so a wait is cut into slices and none of them counts for
 * much more than its length.
 */
#ifndef NIC_PATIENCE_H
#define NIC_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define NIC_SLICE_NS UINT64_C(100000000)

struct nic_patience {
	uint64_t left_ns, last_ns;
};

static inline void nic_patience_begin(struct nic_patience *p, uint64_t ns, uint64_t now_ns)
{
	*p = (struct nic_patience){.left_ns = ns, .last_ns = now_ns};
}

/*
 * To be asked once a slice, or more often; false: it has come to its end.  at_work: who is waited for had something to
 * do, if perhaps no processor to do it, so that time counts for an eighth only.  A system whose processors are all
 * taken by processes that give way to each other can leave one without for nine seconds (Linux 6.18).
 */
static inline bool nic_patience_left(struct nic_patience *p, uint64_t now_ns, bool at_work)
{
	uint64_t ns = now_ns - p->last_ns;

	if (ns > 2 * NIC_SLICE_NS)
		ns = 2 * NIC_SLICE_NS;
	if (at_work)
		ns /= 8;
	p->last_ns = now_ns;
	p->left_ns = ns < p->left_ns ? p->left_ns - ns : 0;
	return p->left_ns > 0;
}

#endif /* NIC_PATIENCE_H */
