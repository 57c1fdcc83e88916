# Tests.  Unit tests use Check; stories are shell scripts that speak TAP.
TEST_EXTENSIONS = .sh
# None may hang: far above what the slowest takes with sanitizers on a busy machine.
LOG_COMPILER = $(BASH_PROG)
AM_LOG_FLAGS = $(top_srcdir)/test/lib/limit.sh 600
SH_LOG_COMPILER = $(BASH_PROG)
AM_SH_LOG_FLAGS = $(top_srcdir)/test/lib/limit.sh 600 $(BASH_PROG)
# Each test has a glexd of its own.  Check's limits are longer than what peer.h waits for others, which says more.
AM_TESTS_ENVIRONMENT = \
	GLEX_JOB=check-$$$$; export GLEX_JOB; \
	GLEX_GLEXD='$(abs_top_builddir)/emulator/glexd/glexd'; export GLEX_GLEXD; \
	abs_top_builddir='$(abs_top_builddir)'; export abs_top_builddir; \
	abs_top_srcdir='$(abs_top_srcdir)'; export abs_top_srcdir; \
	CK_DEFAULT_TIMEOUT=60; export CK_DEFAULT_TIMEOUT; \
	CK_TIMEOUT_MULTIPLIER=4; export CK_TIMEOUT_MULTIPLIER;

if HAVE_CHECK
glex_unit_tests = \
	test/unit/test_cfg \
	test/unit/test_header \
	test/unit/test_status
check_PROGRAMS += $(glex_unit_tests)
TESTS += $(glex_unit_tests)
endif

test_unit_test_cfg_SOURCES = test/unit/test_cfg.c
test_unit_test_cfg_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_cfg_LDADD = libglex/src/cfg/libglexcfg.la $(CHECK_LIBS) -lpthread
test_unit_test_header_SOURCES = test/unit/test_header.c
test_unit_test_header_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_header_LDADD = $(CHECK_LIBS)
test_unit_test_status_SOURCES = test/unit/test_status.c
test_unit_test_status_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_unit_test_status_LDADD = libglex/libglex.la $(CHECK_LIBS)

# Stories: need the built tree, some also an MPI in GLEX_PREFIX.
glex_stories = \
	test/integ/05_quickstart.sh \
	test/integ/65_glex_info.sh \
	test/integ/70_mpi_examples.sh \
	test/integ/71_glex_perf.sh \
	test/integ/72_glex_collsim.sh \
	test/integ/73_debian_mpi.sh \
	test/integ/74_mpi_osu.sh \
	test/integ/75_mpi_stats.sh \
	test/integ/76_mpi_limits.sh \
	test/integ/77_mpi_soak.sh \
	test/integ/78_mpi_lost.sh \
	test/integ/79_mpi_coll.sh \
	test/integ/80_mpi_job_variables.sh \
	test/integ/81_mpi_unexpected.sh \
	test/integ/82_mpi_kill.sh \
	test/integ/83_mpi_derived.sh \
	test/integ/84_mpi_memhooks.sh \
	test/integ/85_mpi_part.sh \
	test/integ/86_mpi_rma.sh \
	test/integ/87_mpi_coll_long.sh \
	test/integ/88_mpi_rma_lost.sh \
	test/integ/89_mpi_rma_threads.sh \
	test/integ/90_mpi_serve.sh \
	test/integ/91_mpi_rma_direct.sh
# Guards of the source itself.
glex_guards = \
	test/ci/getenv.sh \
	test/ci/headers.sh \
	test/ci/layering.sh \
	test/ci/man.sh \
	test/ci/order.sh \
	test/ci/shape.sh \
	test/ci/style.sh \
	test/ci/words.sh
dist_check_SCRIPTS += $(glex_stories) $(glex_guards)
TESTS += $(glex_stories)

# The test programs, or those whose names begin with TESTS_UNDER, and then no others are compiled, and of the stories
# STORIES: what another compiler or a sanitizer has to run, too.
check-programs:
	@tests='$(STORIES)'; \
	for test in $(TESTS); do case $$test in *.sh) ;; $(TESTS_UNDER)*) tests="$$tests $$test" ;; esac; done; \
	$(MAKE) check TESTS="$$tests" $(if $(TESTS_UNDER),check_PROGRAMS="$$tests")
.PHONY: check-programs

EXTRA_DIST += \
	test/mpi/come_and_go.c \
	test/ci/lib.sh test/ci/order.awk test/ci/strip.awk \
	test/lib/failures.sh test/lib/mpi.sh test/mpi/helper.h test/mpi/cancel.c test/mpi/coll.c test/mpi/coll.h test/mpi/coll_ahead.c test/mpi/coll_blocks.c test/mpi/coll_death.c test/mpi/coll_late.c test/mpi/coll_long.c test/mpi/coll_merged.c test/mpi/coll_refused.c test/mpi/coll_revoke.c test/mpi/coll_row.c test/mpi/coll_soak.c test/mpi/derived.c test/mpi/eager.c test/mpi/echo.c test/mpi/last_words.c test/mpi/limits.c test/mpi/lost.c test/mpi/lost_child.c test/mpi/near.c test/mpi/no_memory.c test/mpi/one_core.c test/mpi/part.c test/mpi/rma.c test/mpi/rma_direct.c test/mpi/rma_lost.c test/mpi/rma_threads.c test/mpi/serve.c test/mpi/soak.c test/mpi/unexpected.c \
	test/mpi/stats.c test/bench/coll_bench.c test/bench/coll_least.c test/bench/coll_least.h test/bench/coll_compare.sh test/bench/collsim.sh \
	test/bench/endpoint.sh test/bench/floor.sh test/bench/lib.sh test/bench/mpi_bench.c test/bench/mpi_compare.sh \
	test/bench/mpi_shapes.c test/bench/osu test/bench/osu_table.awk test/bench/turns.c test/bench/turns.h test/bench/wait.sh \
	test/model/arm.pml test/model/bias.pml test/model/coll.pml test/model/dead.pml test/model/dma.pml test/model/memwatch.pml test/model/mmt.pml test/model/ring.pml test/model/sleep.pml test/model/run.sh \
	test/mpich/exclude.txt test/mpich/fenced-mpiexec.sh test/mpich/patch.sh test/mpich/run-suite.sh test/mpich/san-cc.sh test/mpich/soak.sh

# The hardware model and the queues, in one process.  Before the others: the longest test would else be the last, alone.
include test/unit/unit.mk

# The endpoint API, and stories about its processes.
include test/api/api.mk

# What test/bench/wait.sh runs.
check_PROGRAMS += test/bench/wait_bench
test_bench_wait_bench_SOURCES = test/bench/wait_bench.c
test_bench_wait_bench_LDADD = libglex/libglex.la
