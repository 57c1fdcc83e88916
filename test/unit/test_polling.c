/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_polling.c - who waits and finds nothing: when it gives way, and when it sleeps,
 * depending on whether processes outnumber processors.
 *
 * The endpoint is put together by hand over an empty ring; its backend only sleeps.
 */
#include "unit.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/priv.h"

#define CAPACITY 8u

static struct glexi_device dev;
static struct glexi_ep ep;
static _Atomic uint64_t taken, sleeps;
static bool crowded;
static int yields;

static void be_sleep(struct glexi_ep *sleeper, struct glexi_queue *queue, uint64_t ns)
{
	(void)sleeper;
	(void)queue;
	ck_assert_uint_gt(ns, 0);
	syscall(SYS_sched_yield);
}

static bool be_alive(struct glexi_device *device)
{
	(void)device;
	return true;
}

static bool be_crowded(const struct glexi_device *device)
{
	(void)device;
	return crowded;
}

static const struct glexi_be_ops ops = {
	.name = "hand", .alive = be_alive, .crowded = be_crowded, .ep_sleep = be_sleep, .tend = unit_tend};

/* device.c opens this one; no test opens a device. */
const struct glexi_be_ops glexi_nic_ops = {.name = "none"};

/* In place of the C library's. */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/*
 * _i: 1 crowded.  The spin phase is longer than the wait: with a core for everybody nobody is given way to.
 * Where other processes want the core, giving way may take some milliseconds each time: there is time for many.
 */
START_TEST(wait__crowded__gives_way_at_once_and_else_spins_first)
{
	int64_t start;

	setenv("GLEX_SPIN_TIME", "3000000", 1);
	setenv("GLEX_YIELD_TIME", "500000", 1);
	crowded = _i;
	dev.ops = &ops;
	ep.dev = &dev;
	ep.sleeps = &sleeps;
	unit_ring_init(&ep.mpq.ring, unit_zeroed(unit_ring_size(CAPACITY, 7)), CAPACITY, 7, 0);
	ep.mpq.taken = &taken;
	start = glexi_deadline(0);
	ck_assert_int_eq(glexi_queue_wait(&ep, &ep.mpq, glexi_deadline(1000), GLEX_NO_MP), GLEX_NO_MP);
	ck_assert_int_ge(glexi_deadline(0) - start, 1000000000);
	if (_i)
		ck_assert_int_gt(yields, 10);
	else
		ck_assert_int_le(yields, 1); /* the last look before it is told that nothing came */
	ck_assert_uint_eq(atomic_load(&sleeps) > 0,
			  (unsigned)_i); /* after its 500 ms; who spins does so until the end */
	free(ep.mpq.ring.ctl);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("polling");
	TCase *tc = tcase_create("polling");

	tcase_add_loop_test(tc, wait__crowded__gives_way_at_once_and_else_spins_first, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
