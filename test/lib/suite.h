/* SPDX-License-Identifier: BSD-2-Clause */
/* suite.h - runs a suite of Check's. */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int suite_run_by(SRunner *runner)
{
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Each test in a process of its own; returns what main does. */
static inline int suite_run(Suite *suite)
{
	return suite_run_by(srunner_create(suite));
}

/*
 * For short tests that leave nothing behind for the next one: with a sanitizer all are in this process.  To start one, and
 * to look for leaks when it ends, takes longer there than hundreds of them.
 */
static inline int suite_run_short(Suite *suite)
{
	SRunner *runner = srunner_create(suite);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	srunner_set_fork_status(runner, CK_NOFORK);
#endif
	return suite_run_by(runner);
}

#endif /* TEST_SUITE_H */
