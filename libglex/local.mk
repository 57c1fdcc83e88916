# libglex.so, its headers and tools.
include_HEADERS += libglex/include/glex.h libglex/include/glex_ext.h
pkgconfig_DATA += libglex/libglex.pc
EXTRA_DIST += libglex/libglex.map libglex/doc/collectives.md libglex/doc/collectives.svg

noinst_LTLIBRARIES += libglex/src/cfg/libglexcfg.la
libglex_src_cfg_libglexcfg_la_SOURCES = \
	libglex/src/cfg/cfg.h libglex/src/cfg/log.h \
	libglex/src/cfg/table.c libglex/src/cfg/parse.c libglex/src/cfg/log.c
libglex_src_cfg_libglexcfg_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

# Talking to glexd: the library does, and glex_info, which looks without being a client.
noinst_LTLIBRARIES += libglex/src/backend/nic/libglexctl.la
libglex_src_backend_nic_libglexctl_la_SOURCES = \
	libglex/src/backend/nic/ctl.c libglex/src/backend/nic/ctl.h libglex/src/backend/nic/launch.c \
	libglex/src/backend/nic/patience.h
libglex_src_backend_nic_libglexctl_la_CPPFLAGS = $(AM_CPPFLAGS) -DGLEX_BINDIR='"$(bindir)"'
libglex_src_backend_nic_libglexctl_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

lib_LTLIBRARIES += libglex/libglex.la
libglex_libglex_la_SOURCES = \
	libglex/src/core/priv.h \
	libglex/src/core/device.c \
	libglex/src/core/endpoint.c \
	libglex/src/core/mem.c \
	libglex/src/core/put_way.c \
	libglex/src/core/memwatch.c \
	libglex/src/core/memwatch.h \
	libglex/src/core/monitor.h \
	libglex/src/core/monitor_hooks.c \
	libglex/src/core/monitor_uffd.c \
	libglex/memhooks/memhooks.h \
	libglex/src/core/mpq.c \
	libglex/src/core/eq.c \
	libglex/src/core/wait.c \
	libglex/src/core/error.c \
	libglex/src/core/intr.c \
	libglex/src/core/coll.c \
	libglex/src/group/priv.h \
	libglex/src/group/direct.h \
	libglex/src/group/board.c \
	libglex/src/group/board_pool.c \
	libglex/src/group/direct.c \
	libglex/src/group/gather.c \
	libglex/src/group/gates.c \
	libglex/src/group/group.c \
	libglex/src/group/long.c \
	libglex/src/group/meet.c \
	libglex/src/group/puts.c \
	libglex/src/group/stage.c \
	libglex/src/group/tree.c \
	libglex/src/core/config.c \
	libglex/src/core/status.c \
	libglex/src/backend/backend.h \
	libglex/src/backend/nic/nic.h \
	libglex/src/backend/nic/nic.c \
	libglex/src/backend/nic/peer.c \
	libglex/src/backend/nic/adopt.c libglex/src/backend/nic/adopt.h \
	libglex/src/backend/nic/adopt_move.c \
	libglex/src/backend/nic/adopt_shown.c \
	libglex/src/backend/nic/adopt_watch.c \
	libglex/src/backend/nic/alloc.c \
	libglex/src/backend/nic/coll.c \
	libglex/src/backend/nic/file.c \
	libglex/src/backend/nic/grave.c \
	libglex/src/backend/nic/intr.c \
	libglex/src/backend/nic/memory.c \
	libglex/src/backend/nic/promote.c \
	libglex/src/backend/nic/vma.c libglex/src/backend/nic/vma.h \
	libglex/src/backend/nic/quota.c \
	libglex/src/backend/nic/now.c \
	libglex/src/backend/nic/stream.c \
	libglex/src/backend/nic/post.c \
	libglex/src/backend/nic/queue.c \
	libglex/src/backend/nic/quiet.h \
	libglex/src/rcache/rcache.h \
	libglex/src/rcache/rcache.c \
	libglex/src/rcache/index.c \
	libglex/src/rcache/maps.c \
	libglex/src/rcache/miss.c
# A table to jump by is one page more: what each collective passes through is to be in few (emulator/nic/together.h).
libglex_libglex_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -fno-jump-tables -pthread
libglex_libglex_la_LIBADD = libglex/src/backend/nic/libglexctl.la libglex/src/cfg/libglexcfg.la emulator/nic/libemunic.la -lpthread
libglex_libglex_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(GLEX_VERSION_INFO) -no-undefined -Wl,-z,nodelete
if HAVE_VERSION_SCRIPT
if !SANITIZED
libglex_libglex_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/libglex/libglex.map -Wl,-Bsymbolic-functions
endif
endif
libglex_libglex_la_DEPENDENCIES = libglex/src/backend/nic/libglexctl.la libglex/src/cfg/libglexcfg.la emulator/nic/libemunic.la $(top_srcdir)/libglex/libglex.map

# ---- hooks --------------------------------------------------------------------
# Before the C library, which no sanitizer expects to be instrumented.
lib_LTLIBRARIES += libglex/libglex-memhooks.la
libglex_libglex_memhooks_la_SOURCES = libglex/memhooks/memhooks.c libglex/memhooks/memhooks.h
libglex_libglex_memhooks_la_CFLAGS = $(GLEX_WARN) -fvisibility=hidden -fno-builtin
libglex_libglex_memhooks_la_LDFLAGS = -avoid-version -no-undefined -Wl,-z,nodelete
libglex_libglex_memhooks_la_LIBADD = -ldl

# ---- tools ------------------------------------------------------------------
bin_PROGRAMS += libglex/tools/glex_info libglex/tools/glex_perf
libglex_tools_glex_info_SOURCES = \
	libglex/tools/glex_info.c libglex/tools/glex_info.h \
	libglex/tools/glex_info_config.c libglex/tools/glex_info_device.c
libglex_tools_glex_info_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libglex_tools_glex_info_LDADD = libglex/src/backend/nic/libglexctl.la libglex/libglex.la libglex/src/cfg/libglexcfg.la $(JANSSON_LIBS) -lpthread
libglex_tools_glex_perf_SOURCES = \
	libglex/tools/glex_perf.c libglex/tools/perf.h \
	libglex/tools/perf_base.c libglex/tools/perf_base.h libglex/tools/perf_bw.c libglex/tools/perf_lat.c \
	libglex/tools/perf_options.c libglex/tools/perf_out.c libglex/tools/perf_plan.c libglex/tools/perf_rate.c \
	libglex/tools/perf_raw.c libglex/tools/perf_raw.h libglex/tools/perf_side.c libglex/tools/perf_stream.h \
	libglex/tools/perf_limit.c libglex/tools/perf_limit.h libglex/tools/perf_wake.c libglex/tools/perf_cost.c \
	libglex/tools/perf_coll.c libglex/tools/perf_ring.c libglex/tools/perf_ring.h
libglex_tools_glex_perf_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -pthread
libglex_tools_glex_perf_LDADD = libglex/libglex.la $(JANSSON_LIBS) -lpthread

# Many nodes without processes: the group's own code over the simulated NICs, not over the library.
bin_PROGRAMS += libglex/tools/glex_collsim
libglex_tools_glex_collsim_SOURCES = \
	libglex/tools/glex_collsim.c libglex/tools/collsim.h libglex/tools/collsim_options.c $(glex_collsim_parts)
libglex_tools_glex_collsim_CFLAGS = $(AM_CFLAGS)
libglex_tools_glex_collsim_LDADD = emulator/sim/libemusim.la emulator/nic/libemunic.la -lm
glex_collsim_parts = \
	libglex/tools/collsim_run.c libglex/tools/collsim_glex.c \
	libglex/src/group/long.c libglex/src/group/puts.c $(glex_group_parts)
glex_group_parts = \
	libglex/tools/collsim_near.c libglex/src/group/priv.h libglex/src/group/direct.h libglex/src/group/board.c \
	libglex/src/group/direct.c libglex/src/group/gather.c libglex/src/group/gates.c libglex/src/group/group.c \
	libglex/src/group/meet.c libglex/src/group/tree.c libglex/src/core/coll.c
