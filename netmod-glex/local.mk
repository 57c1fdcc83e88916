# The channel library, for its tests; MPICH compiles the same files itself.
noinst_LTLIBRARIES += netmod-glex/channel/libglexch.la
netmod_glex_channel_libglexch_la_SOURCES = \
	netmod-glex/channel/block.c \
	netmod-glex/channel/chan.c \
	netmod-glex/channel/chan.h \
	netmod-glex/channel/chan_priv.h \
	netmod-glex/channel/conn.c \
	netmod-glex/channel/copy.h \
	netmod-glex/channel/credit.c \
	netmod-glex/channel/er.c \
	netmod-glex/channel/er_open.c \
	netmod-glex/channel/er_head.h \
	netmod-glex/channel/er_room.h \
	netmod-glex/channel/lend.c \
	netmod-glex/channel/rndv.c \
	netmod-glex/channel/seq.c \
	netmod-glex/channel/sr.c \
	netmod-glex/channel/window.c

EXTRA_DIST += \
	netmod-glex/README.md \
	netmod-glex/build-mpich.sh \
	netmod-glex/glue/glex_all.c \
	netmod-glex/glue/glex_bcast.c \
	netmod-glex/glue/glex_coll.c \
	netmod-glex/glue/glex_coll.h \
	netmod-glex/glue/glex_reduce.c \
	netmod-glex/glue/glex_release.h \
	netmod-glex/glue/glex_coll_op.c \
	netmod-glex/glue/glex_dead.c \
	netmod-glex/glue/glex_dyn.c \
	netmod-glex/glue/glex_exchange.c \
	netmod-glex/glue/glex_gather.c \
	netmod-glex/glue/glex_held.c \
	netmod-glex/glue/glex_hook.h \
	netmod-glex/glue/glex_impl.h \
	netmod-glex/glue/glex_init.c \
	netmod-glex/glue/glex_lend.c \
	netmod-glex/glue/glex_lmt.c \
	netmod-glex/glue/glex_lost.c \
	netmod-glex/glue/glex_origin.c \
	netmod-glex/glue/glex_pass.c \
	netmod-glex/glue/glex_pipe.c \
	netmod-glex/glue/glex_poll.c \
	netmod-glex/glue/glex_put.c \
	netmod-glex/glue/glex_same.c \
	netmod-glex/glue/glex_send.c \
	netmod-glex/glue/glex_stage.c \
	netmod-glex/glue/glex_stats.c \
	netmod-glex/glue/glex_target.c \
	netmod-glex/glue/glex_tree.c \
	netmod-glex/glue/glex_vc.c \
	netmod-glex/glue/glex_window.c \
	netmod-glex/install-into.sh

# This test brings a network of its own in place of libglex.
glex_channel_kit = \
	test/unit/channel_kit.c test/unit/channel_kit.h test/unit/fake_glex.c test/unit/fake_glex.h
if HAVE_CHECK
check_PROGRAMS += test/unit/test_channel
TESTS += test/unit/test_channel
test_unit_test_channel_SOURCES = test/unit/test_channel.c $(glex_channel_kit)
test_unit_test_channel_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)

check_PROGRAMS += test/unit/test_channel_credit
TESTS += test/unit/test_channel_credit
test_unit_test_channel_credit_SOURCES = test/unit/test_channel_credit.c $(glex_channel_kit)
test_unit_test_channel_credit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_credit_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)
check_PROGRAMS += test/unit/test_channel_copy
TESTS += test/unit/test_channel_copy
test_unit_test_channel_copy_SOURCES = test/unit/test_channel_copy.c test/unit/unit.h
test_unit_test_channel_copy_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_copy_LDADD = $(CHECK_LIBS)
check_PROGRAMS += test/unit/test_channel_window
TESTS += test/unit/test_channel_window
test_unit_test_channel_window_SOURCES = test/unit/test_channel_window.c $(glex_channel_kit)
test_unit_test_channel_window_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_window_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)
check_PROGRAMS += test/unit/test_channel_get
TESTS += test/unit/test_channel_get
test_unit_test_channel_get_SOURCES = test/unit/test_channel_get.c $(glex_channel_kit)
test_unit_test_channel_get_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_get_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)

check_PROGRAMS += test/unit/test_channel_er
TESTS += test/unit/test_channel_er
test_unit_test_channel_er_SOURCES = test/unit/test_channel_er.c $(glex_channel_kit)
test_unit_test_channel_er_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_er_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)

check_PROGRAMS += test/unit/test_channel_lines
TESTS += test/unit/test_channel_lines
test_unit_test_channel_lines_SOURCES = test/unit/test_channel_lines.c $(glex_channel_kit)
test_unit_test_channel_lines_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_lines_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)

check_PROGRAMS += test/unit/test_channel_lend
TESTS += test/unit/test_channel_lend
test_unit_test_channel_lend_SOURCES = test/unit/test_channel_lend.c $(glex_channel_kit)
test_unit_test_channel_lend_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_lend_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)

check_PROGRAMS += test/unit/test_channel_stats
TESTS += test/unit/test_channel_stats
test_unit_test_channel_stats_SOURCES = test/unit/test_channel_stats.c test/unit/fake_glex.c test/unit/fake_glex.h
test_unit_test_channel_stats_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_channel_stats_LDADD = netmod-glex/channel/libglexch.la $(CHECK_LIBS)

# This one is over libglex itself.
check_PROGRAMS += test/unit/test_channel_threads
TESTS += test/unit/test_channel_threads
test_unit_test_channel_threads_SOURCES = test/unit/test_channel_threads.c test/unit/unit.h
test_unit_test_channel_threads_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
test_unit_test_channel_threads_LDADD = \
	netmod-glex/channel/libglexch.la test/lib/libside.la libglex/libglex.la $(CHECK_LIBS) -lpthread
endif
