# The examples: those of the endpoint interface are built and run by make check.
glex_examples = \
	examples/01_hello_mp \
	examples/02_put_event \
	examples/03_get \
	examples/04_chain \
	examples/05_ring \
	examples/06_group \
	examples/07_triggered \
	examples/08_tree
check_PROGRAMS += $(glex_examples)
TESTS += $(glex_examples)

examples_01_hello_mp_LDADD = libglex/libglex.la
examples_02_put_event_LDADD = libglex/libglex.la
examples_03_get_LDADD = libglex/libglex.la
examples_04_chain_LDADD = libglex/libglex.la
examples_05_ring_LDADD = libglex/libglex.la
examples_06_group_LDADD = libglex/libglex.la
examples_07_triggered_LDADD = libglex/libglex.la
examples_08_tree_LDADD = libglex/libglex.la -lpthread

EXTRA_DIST += \
	examples/README.md \
	examples/mpi/pingpong.c \
	examples/mpi/halo.c \
	examples/plots/collsim.gp examples/plots/endpoint.gp examples/plots/mpi_compare.gp examples/plots/osu.gp
