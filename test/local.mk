# Tests.  Unit tests use Check; stories are shell scripts that speak TAP.
TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = $(BASH_PROG)
AM_TESTS_ENVIRONMENT = \
	GLEX_GLEXD='$(abs_top_builddir)/emulator/glexd/glexd'; export GLEX_GLEXD; \
	abs_top_builddir='$(abs_top_builddir)'; export abs_top_builddir; \
	abs_top_srcdir='$(abs_top_srcdir)'; export abs_top_srcdir; \
	CK_DEFAULT_TIMEOUT=60; export CK_DEFAULT_TIMEOUT;

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
