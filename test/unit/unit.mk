# Unit tests of the hardware model and of the consumer's side of the queues; the
# load tests that go with them, which need no Check.
EXTRA_DIST += test/unit/unit.mk
check_PROGRAMS += test/stress/ring
TESTS += test/stress/ring
test_stress_ring_SOURCES = test/stress/ring.c test/stress/ring_stress.c test/stress/ring_stress.h
test_stress_ring_CFLAGS = $(AM_CFLAGS) -pthread
test_stress_ring_LDADD = emulator/nic/libemunic.la -lpthread

if HAVE_CHECK
glex_model_tests = \
	test/unit/test_adopt \
	test/unit/test_coll \
	test/unit/test_coll_order \
	test/unit/test_copy \
	test/unit/test_dead \
	test/unit/test_att \
	test/unit/test_bias \
	test/unit/test_board_pool \
	test/unit/test_exec \
	test/unit/test_memwatch \
	test/unit/test_vma \
	test/unit/test_fast \
	test/unit/test_intr \
	test/unit/test_mmt \
	test/unit/test_move \
	test/unit/test_patience \
	test/unit/test_place \
	test/unit/test_polling \
	test/unit/test_queue \
	test/unit/test_reduce \
	test/unit/test_reorder \
	test/unit/test_ring \
	test/unit/test_ring_stress \
	test/unit/test_group_order \
	test/unit/test_sim \
	test/unit/test_vport
check_PROGRAMS += $(glex_model_tests)
TESTS += $(glex_model_tests)

# What test_queue puts together by hand needs of the library, whose own symbols are hidden.
check_LTLIBRARIES += test/unit/libqueue.la
endif

test_unit_libqueue_la_SOURCES = \
	libglex/src/core/device.c libglex/src/core/endpoint.c libglex/src/core/eq.c libglex/src/core/error.c \
	libglex/src/core/memwatch.c libglex/src/core/memwatch.h libglex/src/core/monitor.h \
	libglex/src/core/monitor_hooks.c libglex/src/core/monitor_uffd.c \
	libglex/src/core/mpq.c libglex/src/core/priv.h libglex/src/core/put_way.c libglex/src/core/wait.c
test_unit_libqueue_la_CFLAGS = $(AM_CFLAGS) -pthread

glex_model_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
glex_model_libs = emulator/nic/libemunic.la $(CHECK_LIBS) -lpthread

test_unit_test_board_pool_SOURCES = test/unit/test_board_pool.c test/unit/unit.h libglex/src/group/board_pool.c
test_unit_test_board_pool_CFLAGS = $(glex_model_cflags)
test_unit_test_board_pool_LDADD = $(glex_model_libs)
# They have the engine's own code in them, with points to die at.
test_unit_test_coll_SOURCES = test/unit/test_coll.c test/unit/coll_net.c test/unit/coll_net.h test/unit/unit.h
test_unit_test_coll_CFLAGS = $(glex_model_cflags)
test_unit_test_coll_LDADD = $(glex_model_libs)
test_unit_test_coll_order_SOURCES = test/unit/test_coll_order.c test/unit/coll_net.c test/unit/coll_net.h test/unit/unit.h
test_unit_test_coll_order_CFLAGS = $(glex_model_cflags)
test_unit_test_coll_order_LDADD = $(glex_model_libs)
test_unit_test_copy_SOURCES = test/unit/test_copy.c test/unit/unit.h
test_unit_test_copy_CFLAGS = $(glex_model_cflags)
test_unit_test_copy_LDADD = $(glex_model_libs)
test_unit_test_dead_SOURCES = test/unit/test_dead.c test/unit/unit.h
test_unit_test_dead_CFLAGS = $(glex_model_cflags)
test_unit_test_dead_LDADD = $(glex_model_libs)
test_unit_test_att_SOURCES = test/unit/test_att.c test/unit/two_ports.c test/unit/two_ports.h test/unit/unit.h
test_unit_test_att_CFLAGS = $(glex_model_cflags)
test_unit_test_att_LDADD = $(glex_model_libs)
test_unit_test_bias_SOURCES = test/unit/test_bias.c test/unit/unit.h
test_unit_test_bias_CFLAGS = $(glex_model_cflags)
test_unit_test_bias_LDADD = $(glex_model_libs)
test_unit_test_exec_SOURCES = test/unit/test_exec.c test/unit/two_ports.c test/unit/two_ports.h test/unit/unit.h
test_unit_test_exec_CFLAGS = $(glex_model_cflags)
test_unit_test_exec_LDADD = $(glex_model_libs)
test_unit_test_memwatch_SOURCES = test/unit/test_memwatch.c
test_unit_test_memwatch_CFLAGS = $(glex_model_cflags)
test_unit_test_memwatch_LDADD = test/unit/libqueue.la libglex/src/cfg/libglexcfg.la $(glex_model_libs)
test_unit_test_adopt_SOURCES = test/unit/test_adopt.c test/unit/unit.h test/lib/seccomp.c test/lib/seccomp.h \
	libglex/src/backend/nic/adopt.c libglex/src/backend/nic/adopt.h libglex/src/backend/nic/adopt_move.c \
	libglex/src/backend/nic/adopt_shown.c libglex/src/backend/nic/adopt_watch.c \
	libglex/src/backend/nic/vma.c libglex/src/backend/nic/vma.h
test_unit_test_adopt_CFLAGS = $(glex_model_cflags) -I$(top_srcdir)/libglex/src
test_unit_test_adopt_LDADD = test/unit/libqueue.la libglex/src/cfg/libglexcfg.la $(glex_model_libs)
test_unit_test_vma_SOURCES = test/unit/test_vma.c test/unit/unit.h libglex/src/backend/nic/vma.c libglex/src/backend/nic/vma.h
test_unit_test_vma_CFLAGS = $(glex_model_cflags) -I$(top_srcdir)/libglex/src
test_unit_test_vma_LDADD = $(glex_model_libs)
test_unit_test_fast_SOURCES = test/unit/test_fast.c test/unit/two_ports.c test/unit/two_ports.h test/unit/unit.h
test_unit_test_fast_CFLAGS = $(glex_model_cflags)
test_unit_test_fast_LDADD = $(glex_model_libs)
test_unit_test_intr_SOURCES = test/unit/test_intr.c test/unit/two_ports.c test/unit/two_ports.h test/unit/unit.h
test_unit_test_intr_CFLAGS = $(glex_model_cflags)
test_unit_test_intr_LDADD = $(glex_model_libs)
test_unit_test_mmt_SOURCES = test/unit/test_mmt.c test/unit/unit.h
test_unit_test_mmt_CFLAGS = $(glex_model_cflags)
test_unit_test_mmt_LDADD = $(glex_model_libs)
test_unit_test_move_SOURCES = test/unit/test_move.c test/unit/unit.h
test_unit_test_move_CFLAGS = $(glex_model_cflags)
test_unit_test_move_LDADD = $(glex_model_libs)
test_unit_test_patience_SOURCES = test/unit/test_patience.c test/unit/unit.h libglex/src/backend/nic/patience.h
test_unit_test_patience_CFLAGS = $(glex_model_cflags) -I$(top_srcdir)/libglex/src
test_unit_test_patience_LDADD = $(glex_model_libs)
test_unit_test_place_SOURCES = test/unit/test_place.c test/unit/unit.h emulator/host/place.c emulator/host/place.h
test_unit_test_place_CFLAGS = $(glex_model_cflags) $(HWLOC_CFLAGS)
test_unit_test_place_LDADD = $(glex_model_libs) $(HWLOC_LIBS)
test_unit_test_polling_SOURCES = test/unit/test_polling.c test/unit/unit.h
test_unit_test_polling_CFLAGS = $(glex_model_cflags)
test_unit_test_polling_LDADD = test/unit/libqueue.la libglex/src/cfg/libglexcfg.la $(glex_model_libs)
test_unit_test_queue_SOURCES = test/unit/test_queue.c test/unit/unit.h
test_unit_test_queue_CFLAGS = $(glex_model_cflags)
test_unit_test_queue_LDADD = test/unit/libqueue.la libglex/src/cfg/libglexcfg.la $(glex_model_libs)
test_unit_test_reorder_SOURCES = test/unit/test_reorder.c test/unit/unit.h
test_unit_test_reorder_CFLAGS = $(glex_model_cflags)
test_unit_test_reorder_LDADD = $(glex_model_libs)
test_unit_test_ring_SOURCES = test/unit/test_ring.c test/unit/unit.h
test_unit_test_ring_CFLAGS = $(glex_model_cflags)
test_unit_test_ring_LDADD = $(glex_model_libs)
test_unit_test_ring_stress_SOURCES = \
	test/unit/test_ring_stress.c test/unit/unit.h test/stress/ring_stress.c test/stress/ring_stress.h
test_unit_test_ring_stress_CFLAGS = $(glex_model_cflags)
test_unit_test_ring_stress_LDADD = $(glex_model_libs)
# The group's own code over NICs whose packets come in any order.
test_unit_test_group_order_SOURCES = test/unit/test_group_order.c test/unit/coll_net.c test/unit/coll_net.h test/unit/unit.h \
	libglex/src/group/long.c libglex/src/group/puts.c \
	$(glex_group_parts)
test_unit_test_group_order_CFLAGS = $(glex_model_cflags)
test_unit_test_group_order_LDADD = $(glex_model_libs)
# As glex_collsim: the group's own code over simulated NICs, and not the library.
test_unit_test_sim_SOURCES = test/unit/test_sim.c test/unit/unit.h libglex/tools/collsim.h $(glex_collsim_parts)
test_unit_test_sim_CFLAGS = $(glex_model_cflags)
test_unit_test_sim_LDADD = emulator/sim/libemusim.la $(glex_model_libs) -lm
test_unit_test_vport_SOURCES = test/unit/test_vport.c test/unit/unit.h
test_unit_test_vport_CFLAGS = $(glex_model_cflags)
test_unit_test_vport_LDADD = $(glex_model_libs)
test_unit_test_reduce_SOURCES = test/unit/test_reduce.c test/unit/unit.h
test_unit_test_reduce_CFLAGS = $(glex_model_cflags)
test_unit_test_reduce_LDADD = $(glex_model_libs)
