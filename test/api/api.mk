# Tests of the endpoint API against a running glexd, and the stories about processes.
glex_api_programs = test/api/client test/api/crowd test/api/hostile
check_PROGRAMS += $(glex_api_programs)
test_api_client_SOURCES = test/api/client.c test/lib/raw.c test/lib/raw.h test/lib/seccomp.c test/lib/seccomp.h
test_api_client_LDADD = libglex/libglex.la
test_api_crowd_LDADD = libglex/libglex.la
test_api_hostile_SOURCES = test/api/hostile.c test/lib/raw.c test/lib/raw.h

glex_api_stories = \
	test/integ/10_autostart.sh \
	test/integ/20_kill_client.sh \
	test/integ/30_kill_glexd.sh \
	test/integ/35_stale_path.sh \
	test/integ/36_idle.sh \
	test/integ/37_numa.sh \
	test/integ/40_leftovers.sh \
	test/integ/45_without_locks.sh \
	test/integ/50_refusals.sh \
	test/integ/55_pid_namespaces.sh \
	test/integ/60_hostile.sh
dist_check_SCRIPTS += $(glex_api_stories)
TESTS += $(glex_api_stories)
EXTRA_DIST += test/lib/limit.sh test/lib/tap.sh

if HAVE_CHECK
check_LTLIBRARIES += test/lib/libside.la
test_lib_libside_la_SOURCES = \
	test/lib/helper.c test/lib/helper.h \
	test/lib/peer.c test/lib/peer.h \
	test/lib/raw.c test/lib/raw.h \
	test/lib/seccomp.c test/lib/seccomp.h \
	test/lib/side.c test/lib/side.h \
	test/lib/suite.h
test_lib_libside_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

glex_api_tests = \
	test/api/test_api_adopt \
	test/api/test_api_adopt_live \
	test/api/test_api_adopt_parts \
	test/api/test_api_alloc \
	test/api/test_api_atomic \
	test/api/test_api_bad_packet \
	test/api/test_api_coll \
	test/api/test_api_device \
	test/api/test_api_error \
	test/api/test_api_event \
	test/api/test_api_fork \
	test/api/test_api_group \
	test/api/test_api_group_ahead \
	test/api/test_api_group_death \
	test/api/test_api_group_by \
	test/api/test_api_group_gather \
	test/api/test_api_group_long \
	test/api/test_api_group_here \
	test/api/test_api_group_meet \
	test/api/test_api_group_open \
	test/api/test_api_group_stage \
	test/api/test_api_inject \
	test/api/test_api_intr \
	test/api/test_api_kinds \
	test/api/test_api_leave \
	test/api/test_api_limits \
	test/api/test_api_mem \
	test/api/test_api_mpq \
	test/api/test_api_order \
	test/api/test_api_place \
	test/api/test_api_post \
	test/api/test_api_reorder \
	test/api/test_api_share \
	test/api/test_api_small \
	test/api/test_api_rcache \
	test/api/test_api_rcache_gone \
	test/api/test_api_threads \
	test/api/test_api_tree \
	test/api/test_api_wait
check_PROGRAMS += $(glex_api_tests)
TESTS += $(glex_api_tests)

glex_api_ldadd = test/lib/libside.la libglex/libglex.la $(CHECK_LIBS) -lpthread
glex_api_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
test_api_test_api_bad_packet_CFLAGS = $(glex_api_cflags)
# It also plays a client that writes into a port and dies.
test_api_test_api_bad_packet_LDADD = test/lib/libside.la emulator/nic/libemunic.la libglex/libglex.la $(CHECK_LIBS) -lpthread
test_api_test_api_adopt_live_CFLAGS = $(glex_api_cflags)
test_api_test_api_adopt_live_LDADD = $(glex_api_ldadd)
test_api_test_api_adopt_parts_CFLAGS = $(glex_api_cflags)
test_api_test_api_adopt_parts_LDADD = $(glex_api_ldadd)
test_api_test_api_adopt_CFLAGS = $(glex_api_cflags)
test_api_test_api_adopt_LDADD = $(glex_api_ldadd)
test_api_test_api_alloc_CFLAGS = $(glex_api_cflags)
test_api_test_api_alloc_LDADD = $(glex_api_ldadd)
test_api_test_api_atomic_CFLAGS = $(glex_api_cflags)
test_api_test_api_atomic_LDADD = $(glex_api_ldadd)
test_api_test_api_coll_CFLAGS = $(glex_api_cflags)
test_api_test_api_coll_LDADD = $(glex_api_ldadd)
test_api_test_api_device_CFLAGS = $(glex_api_cflags)
test_api_test_api_device_LDADD = $(glex_api_ldadd)
test_api_test_api_error_CFLAGS = $(glex_api_cflags)
test_api_test_api_error_LDADD = $(glex_api_ldadd)
test_api_test_api_event_CFLAGS = $(glex_api_cflags)
test_api_test_api_event_LDADD = $(glex_api_ldadd)
test_api_test_api_fork_CFLAGS = $(glex_api_cflags)
test_api_test_api_fork_LDADD = $(glex_api_ldadd)
test_api_test_api_group_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_LDADD = $(glex_api_ldadd)
test_api_test_api_group_ahead_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_ahead_LDADD = $(glex_api_ldadd)
test_api_test_api_group_death_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_death_LDADD = $(glex_api_ldadd)
test_api_test_api_group_by_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_by_LDADD = $(glex_api_ldadd)
test_api_test_api_group_gather_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_gather_LDADD = $(glex_api_ldadd)
test_api_test_api_group_long_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_long_LDADD = $(glex_api_ldadd)
test_api_test_api_group_here_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_here_LDADD = $(glex_api_ldadd)
test_api_test_api_group_meet_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_meet_LDADD = $(glex_api_ldadd)
test_api_test_api_group_open_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_open_LDADD = $(glex_api_ldadd)
test_api_test_api_group_stage_CFLAGS = $(glex_api_cflags)
test_api_test_api_group_stage_LDADD = $(glex_api_ldadd)
test_api_test_api_inject_CFLAGS = $(glex_api_cflags)
test_api_test_api_inject_LDADD = $(glex_api_ldadd)
test_api_test_api_intr_CFLAGS = $(glex_api_cflags)
test_api_test_api_intr_LDADD = $(glex_api_ldadd)
test_api_test_api_kinds_CFLAGS = $(glex_api_cflags)
test_api_test_api_kinds_LDADD = $(glex_api_ldadd)
test_api_test_api_leave_CFLAGS = $(glex_api_cflags)
test_api_test_api_leave_LDADD = $(glex_api_ldadd)
test_api_test_api_limits_CFLAGS = $(glex_api_cflags)
test_api_test_api_limits_LDADD = $(glex_api_ldadd)
test_api_test_api_mem_CFLAGS = $(glex_api_cflags)
test_api_test_api_mem_LDADD = $(glex_api_ldadd)
test_api_test_api_mpq_CFLAGS = $(glex_api_cflags)
test_api_test_api_mpq_LDADD = $(glex_api_ldadd)
test_api_test_api_order_CFLAGS = $(glex_api_cflags)
test_api_test_api_order_LDADD = $(glex_api_ldadd)
test_api_test_api_place_CFLAGS = $(glex_api_cflags)
test_api_test_api_place_LDADD = $(glex_api_ldadd)
test_api_test_api_reorder_CFLAGS = $(glex_api_cflags)
test_api_test_api_reorder_LDADD = $(glex_api_ldadd)
test_api_test_api_post_CFLAGS = $(glex_api_cflags)
test_api_test_api_post_LDADD = $(glex_api_ldadd)
test_api_test_api_small_CFLAGS = $(glex_api_cflags)
test_api_test_api_small_LDADD = $(glex_api_ldadd)
test_api_test_api_share_CFLAGS = $(glex_api_cflags)
test_api_test_api_share_LDADD = $(glex_api_ldadd)
EXTRA_DIST += test/api/rcache_bench.h test/api/adopt.h test/api/group.h
test_api_test_api_rcache_CFLAGS = $(glex_api_cflags)
test_api_test_api_rcache_LDADD = $(glex_api_ldadd)
test_api_test_api_rcache_gone_CFLAGS = $(glex_api_cflags)
test_api_test_api_rcache_gone_LDADD = $(glex_api_ldadd)
# The same with libglex-memhooks in the process.  The sanitizers' allocators cannot be seen by hooks.
if !SANITIZED
check_PROGRAMS += test/api/test_api_rcache_hooks test/api/test_api_adopt_hooks
TESTS += test/api/test_api_rcache_hooks test/api/test_api_adopt_hooks
endif
test_api_test_api_adopt_hooks_SOURCES = test/api/test_api_adopt_hooks.c
test_api_test_api_adopt_hooks_CFLAGS = $(glex_api_cflags) -DWITH_HOOKS
test_api_test_api_adopt_hooks_LDADD = libglex/libglex-memhooks.la $(glex_api_ldadd)
test_api_test_api_rcache_hooks_SOURCES = test/api/test_api_rcache_gone.c
test_api_test_api_rcache_hooks_CFLAGS = $(glex_api_cflags) -DWITH_HOOKS
test_api_test_api_rcache_hooks_LDADD = libglex/libglex-memhooks.la $(glex_api_ldadd)
test_api_test_api_threads_CFLAGS = $(glex_api_cflags)
test_api_test_api_threads_LDADD = $(glex_api_ldadd)
test_api_test_api_tree_CFLAGS = $(glex_api_cflags)
test_api_test_api_tree_LDADD = $(glex_api_ldadd)
test_api_test_api_wait_CFLAGS = $(glex_api_cflags)
test_api_test_api_wait_LDADD = $(glex_api_ldadd)
endif
