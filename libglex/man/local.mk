# Manual pages.  Sources are scdoc, but for glex_env(7), which a program writes
# from the table of the configuration.  The tarball holds the made pages, so only
# who changes them needs scdoc.
noinst_PROGRAMS += libglex/man/gen_env
libglex_man_gen_env_SOURCES = libglex/man/gen_env.c
libglex_man_gen_env_LDADD = libglex/src/cfg/libglexcfg.la -lpthread

glex_man_pages = \
	libglex/man/glex_info.1 \
	libglex/man/glex_perf.1 \
	libglex/man/glex_collsim.1 \
	libglex/man/glex_open_device.3 \
	libglex/man/glex_create_ep.3 \
	libglex/man/glex_register_mem.3 \
	libglex/man/glex_rdma.3 \
	libglex/man/glex_receive_mp.3 \
	libglex/man/glex_probe_first_event.3 \
	libglex/man/glex_poll_error_req.3 \
	libglex/man/glex_coll.3 \
	libglex/man/glex_group.3 \
	libglex/man/glex_alloc.3 \
	libglex/man/glex_atomic.3 \
	libglex/man/glex_inject.3 \
	libglex/man/glex_poll_dead.3 \
	libglex/man/glex_ep_fd.3 \
	libglex/man/glex_rcache_get.3 \
	libglex/man/glex.7 \
	libglex/man/glexd.8

# Further names of pages: each is in the first line under NAME of one of them.
glex_man_aliases = \
	libglex/man/glex_num_of_device.3 \
	libglex/man/glex_close_device.3 \
	libglex/man/glex_query_device.3 \
	libglex/man/glex_is_crowded.3 \
	libglex/man/glex_destroy_ep.3 \
	libglex/man/glex_retire_ep.3 \
	libglex/man/glex_quiet_ep.3 \
	libglex/man/glex_query_ep.3 \
	libglex/man/glex_get_ep_addr.3 \
	libglex/man/glex_compose_ep_addr.3 \
	libglex/man/glex_decompose_ep_addr.3 \
	libglex/man/glex_deregister_mem.3 \
	libglex/man/glex_send_imm_mp.3 \
	libglex/man/glex_imm_rdma.3 \
	libglex/man/glex_probe_first_mp.3 \
	libglex/man/glex_probe_next_mp.3 \
	libglex/man/glex_discard_probed_mp.3 \
	libglex/man/glex_probe_next_event.3 \
	libglex/man/glex_discard_probed_event.3 \
	libglex/man/glex_error_str.3 \
	libglex/man/glex_error_req_status_str.3 \
	libglex/man/glex_error_req_opcode_str.3 \
	libglex/man/glex_coll_compose_mp_swap_addr_data.3 \
	libglex/man/glex_coll_compose_mp_reduce_data.3 \
	libglex/man/glex_coll_decompose_mp_reduce_data.3 \
	libglex/man/glex_coll_compose_mp_set_data.3 \
	libglex/man/glex_group_open.3 \
	libglex/man/glex_group_join.3 \
	libglex/man/glex_group_close.3 \
	libglex/man/glex_group_barrier.3 \
	libglex/man/glex_group_bcast.3 \
	libglex/man/glex_group_bcast_long.3 \
	libglex/man/glex_group_set_long.3 \
	libglex/man/glex_group_reduce.3 \
	libglex/man/glex_group_allreduce.3 \
	libglex/man/glex_group_reduce_by.3 \
	libglex/man/glex_group_allreduce_by.3 \
	libglex/man/glex_group_stage.3 \
	libglex/man/glex_group_allreduce_long.3 \
	libglex/man/glex_group_reduce_long.3 \
	libglex/man/glex_group_reduce_scatter.3 \
	libglex/man/glex_group_allgather_long.3 \
	libglex/man/glex_group_alltoall.3 \
	libglex/man/glex_group_alltoallv.3 \
	libglex/man/glex_group_gather.3 \
	libglex/man/glex_group_allgather.3 \
	libglex/man/glex_group_wait.3 \
	libglex/man/glex_group_look.3 \
	libglex/man/glex_group_is_last_here.3 \
	libglex/man/glex_group_abandon.3 \
	libglex/man/glex_group_fail.3 \
	libglex/man/glex_group_leave.3 \
	libglex/man/glex_group_tree.3 \
	libglex/man/glex_ep_arm.3 \
	libglex/man/glex_ep_poll_intr.3 \
	libglex/man/glex_ep_poll_bad_packet.3 \
	libglex/man/glex_alloc_with.3 \
	libglex/man/glex_fetch.3 \
	libglex/man/glex_prefetch_at.3 \
	libglex/man/glex_atomic_place.3 \
	libglex/man/glex_get_place.3 \
	libglex/man/glex_put_place.3 \
	libglex/man/glex_put_way_close.3 \
	libglex/man/glex_put_way_find.3 \
	libglex/man/glex_put_way_is_open.3 \
	libglex/man/glex_put_way_open.3 \
	libglex/man/glex_free.3 \
	libglex/man/glex_config_uint.3 \
	libglex/man/glex_single_threaded.3 \
	libglex/man/glex_rcache_create.3 \
	libglex/man/glex_rcache_destroy.3 \
	libglex/man/glex_rcache_put.3 \
	libglex/man/glex_rcache_query.3 \
	libglex/man/glex_mem_invalidate.3

glex_man_made = $(glex_man_pages) $(glex_man_aliases) libglex/man/glex_env.7

EXTRA_DIST += $(glex_man_pages:=.scd) $(glex_man_made)
MAINTAINERCLEANFILES = $(glex_man_made)
if HAVE_SCDOC
man_MANS += $(glex_man_made)
endif

glex_scdoc = test -n "$(SCDOC)" || { echo "install scdoc to make $@" >&2; exit 1; }; $(MKDIR_P) libglex/man; "$(SCDOC)"

$(glex_man_pages): %: %.scd
	$(AM_V_GEN)$(glex_scdoc) <$< >$@.tmp && mv -f $@.tmp $@

# Not remade because the program was: a tarball's page is newer than what it comes from.
libglex/man/glex_env.7: libglex/src/cfg/table.c libglex/man/gen_env.c | libglex/man/gen_env$(EXEEXT)
	$(AM_V_GEN)libglex/man/gen_env$(EXEEXT) >$@.scd && { $(glex_scdoc) <$@.scd >$@.tmp; } && \
	  mv -f $@.tmp $@ && rm -f $@.scd

$(glex_man_aliases):
	$(AM_V_GEN)$(MKDIR_P) libglex/man; name=`basename $@ .3`; \
	  page=`grep -lE "^(.*, )?$$name(,.*)? - " $(srcdir)/libglex/man/*.3.scd` && \
	  echo ".so man3/`basename $$page .scd`" >$@
