/* SPDX-License-Identifier: BSD-2-Clause */
/* suite.h - runs a suite of Check's. */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#include <link.h>
#include <sanitizer/lsan_interface.h>
#include <string.h>

/*
 * At the end of each process whatever is not reached from global data is a leak.  The sanitizers' own are 12 MB there, hold
 * nothing of ours, and to read them takes longer than most tests: so all but theirs is named instead.  Weak, as several
 * files of a program include this one.
 */
__attribute__((weak)) const char *__lsan_default_options(void)
{
	return "use_globals=0";
}

static inline int suite_root_module(struct dl_phdr_info *module, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (strstr(module->dlpi_name, "/libasan.so") || strstr(module->dlpi_name, "/libubsan.so"))
		return 0;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &module->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & PF_W))
			__lsan_register_root_region((void *)(module->dlpi_addr + part->p_vaddr), part->p_memsz);
	}
	return 0;
}
#endif

static inline int suite_run_by(SRunner *runner)
{
	int failed;

#ifdef __SANITIZE_ADDRESS__
	dl_iterate_phdr(suite_root_module, NULL);
#endif
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
 * to look for leaks when it ends, takes longer there than most of them.
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
