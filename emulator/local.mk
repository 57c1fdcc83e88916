# The hardware model (in libglex and in glexd) and glexd.
noinst_LTLIBRARIES += emulator/nic/libemunic.la
emulator_nic_libemunic_la_SOURCES = \
	emulator/abi/shm_layout.h emulator/abi/wire.h \
	emulator/nic/ring.c emulator/nic/ring.h \
	emulator/nic/bias.c emulator/nic/bias.h \
	emulator/nic/vport.c emulator/nic/vport.h \
	emulator/nic/mmt.c emulator/nic/mmt.h \
	emulator/nic/copy.c emulator/nic/copy.h \
	emulator/nic/move.c emulator/nic/move.h emulator/nic/together.h \
	emulator/nic/exec.c emulator/nic/exec.h emulator/nic/fast.h \
	emulator/nic/dead.h \
	emulator/nic/intr.c emulator/nic/intr.h \
	emulator/nic/coll.c emulator/nic/coll.h emulator/nic/coll_send.c \
	emulator/nic/reduce.c emulator/nic/reduce.h \
	emulator/nic/att.c emulator/nic/att.h \
	emulator/nic/atomic.c emulator/nic/atomic.h \
	emulator/nic/reorder.c emulator/nic/reorder.h \
	emulator/host/attach.c emulator/host/attach.h \
	emulator/host/clock.h \
	emulator/host/pick.c emulator/host/pick.h \
	emulator/host/futex.h
emulator_nic_libemunic_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

# Many NICs in virtual time.
noinst_LTLIBRARIES += emulator/sim/libemusim.la
emulator_sim_libemusim_la_SOURCES = \
	emulator/sim/sim.h emulator/sim/heap.c emulator/sim/memory.c emulator/sim/net.c emulator/sim/ports.c emulator/sim/priv.h emulator/sim/times.c emulator/sim/topo.c
emulator_sim_libemusim_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden

bin_PROGRAMS += emulator/glexd/glexd
emulator_glexd_glexd_SOURCES = \
	emulator/glexd/main.c \
	emulator/glexd/glexd.h \
	emulator/glexd/segment.c \
	emulator/glexd/session.c \
	emulator/glexd/stock.c \
	emulator/glexd/control.c \
	emulator/glexd/node.c \
	emulator/glexd/intr.c \
	emulator/glexd/coll.c \
	emulator/glexd/coll_shuffle.c \
	emulator/glexd/dead.c \
	emulator/glexd/numa.c \
	emulator/host/bell.h emulator/host/place.c emulator/host/place.h emulator/host/crowd.h emulator/host/pid_ns.h \
	emulator/glexd/dma.c emulator/glexd/dma.h emulator/glexd/dma_shuffle.c
emulator_glexd_glexd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(HWLOC_CFLAGS) -pthread
emulator_glexd_glexd_LDADD = emulator/nic/libemunic.la libglex/src/cfg/libglexcfg.la $(EVENT_LIBS) $(HWLOC_LIBS) -lpthread
