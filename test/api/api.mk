# Tests of the endpoint API against a running glexd, and the stories about processes.
noinst_HEADERS += test/lib/peer.h test/lib/raw.h test/lib/seccomp.h test/lib/side.h
EXTRA_DIST += test/lib/tap.sh

if HAVE_CHECK
check_LIBRARIES += test/lib/libside.a
test_lib_libside_a_SOURCES = test/lib/peer.c test/lib/raw.c test/lib/seccomp.c test/lib/side.c
test_lib_libside_a_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

glex_api_ldadd = test/lib/libside.a libglex/libglex.la $(CHECK_LIBS) -lpthread
glex_api_tests = \
	test/api/test_api_device
check_PROGRAMS += $(glex_api_tests)
TESTS += $(glex_api_tests)
test_api_test_api_device_LDADD = $(glex_api_ldadd)
endif
