#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# install-into.sh MPICH_SRC - puts the netmod "glex" into an MPICH source tree.
#
# MPICH needs no autogen for it:
#
#   netmod/glex/   <- all of glue/*.[ch] and channel/*.[ch], flat.  configure asks only whether
#                     the directory is there before it accepts --with-device=ch3:nemesis:glex,tcp
#   netmod/none/none.c <- one #include of ../glex/glex_all.c.  none.c is part of every
#                     ch3:nemesis build, so no Makefile has to change.
#   include/mpid_coll.h <- #include of glue/glex_hook.h around its functions: some collectives ask
#                     the netmod first, if it is in use
#   src/mpi/request/request_impl.c <- a line in MPI_Wait, which has glue/glex_coll.c look first
#   src/mpid_send.c, src/mpid_isend.c <- a line each that offers messages that go in one piece
#                     to glue/glex_send.c first
#   src/ch3u_recvq.c <- a function of one line at its end, which gives glue/glex_held.c the queue of
#                     unexpected messages
#   src/ch3u_rma_sync.c, src/mpidi_rma.c <- a line where MPI_Win_post names a group, and one where
#                     windows wait for others, which asks glue/glex_target.c whether they will come;
#                     MPI_Win_free goes on to where all learn of it
#   src/ch3u_rma_sync.c, src/ch3u_rma_progress.c <- a line wherever calls wait that complete one-sided
#                     operations, which asks glue/glex_origin.c whether what they wait for can come; two
#                     where the collective step of a fence begins and ends, the error of which it makes; one
#                     that passes by targets which are lost; one without which nothing is sent to anybody
#                     any more once something could not be sent
#   src/ch3u_win_fns.c, src/mpidi_rma.c, src/ch3u_rma_ops.c, src/ch3u_rma_sync.c <- a line where windows
#                     are made, where their memory comes from, where they and it go, where MPI_Put and
#                     its like begin and where MPI_Win_flush waits, which asks glue/glex_window.c
#   src/ch3u_handle_recv_req.c, src/ch3u_rma_pkthandler.c <- a line where a lock for shared memory is taken, or given
#                     back, in the midst of what has to be atomic: the window has one, too
#   include/mpidrma.h <- a line that tells glue/glex_origin.c of requests for what is read
#   src/mpid_probe.c, src/mpid_mprobe.c <- a line where they wait, which asks glue/glex_lost.c
#                     whether there is anybody left to wait for
#   src/ch3u_comm.c <- a line where mpiexec's word of dead ranks ends receives from any source, which asks
#                     glue/glex_lost.c whether that is news
#   coll/allreduce/ <- where its algorithms note the errors of their steps and end well all the
#                     same, a line that returns the error: else a sum without a dead rank passes
#                     for the sum
#   src/ch3u_request.c <- two lines for what does not fit of a message that is not contiguous: else
#                     it is waited for for ever, or overwrites what does fit
#   coll/transports/gentran/ <- where the steps of a schedule end, a line that notes their errors,
#                     and one for sends that made no request because their rank is dead
#   src/mpid/common/sched/mpidu_sched.c <- the same where receives of the other kind of schedules end; a
#                     line that ends those that could not begin, since their communicator is revoked
#   src/ch3u_rma_sync.c <- a line where the barrier of a fence ends: when that is after the posts
#                     that a start waits for, nobody would tell the start
#   src/pm/hydra/.../pmiserv_cb.c <- a line where mpiexec tells the others that a rank has died:
#                     who has left meanwhile need not hear of it, and is no reason for mpiexec to die
#   src/pm/hydra/.../pmiserv_pmi_v1.c (MPICH 5: pmiserv_misc.c) <- a line where mpiexec ends because a
#                     rank has aborted: it reads first what the ranks have said
#   src/pm/hydra/utils/launch/launch.c <- a line that keeps the ranks of a machine in one session, since
#                     giving way to each other ends at its bounds
#   src/mpi/errhan/errutil.c <- a line that ends the text of an error where the caller's room ends; some
#                     by which errors that are joined make no circle, and walks along them end
#
# It may be run again at any time: only files whose content differs are written, so that make
# rebuilds what is needed and nothing else.
set -eu

prog=install-into.sh
begin='/* glex netmod: begin (written by install-into.sh) */'
end='/* glex netmod: end */'
include='#include "../glex/glex_all.c"'
hook='#include "../channels/nemesis/netmod/glex/glex_hook.h"'
queue='MPIR_Request *MPIDI_GLEX_unexpected(void); MPIR_Request *MPIDI_GLEX_unexpected(void) { return recvq_unexpected_head; }'
forgotten='if (mpi_errno == MPI_SUCCESS) mpi_errno = mpi_errno_ret; if (mpi_errno == MPI_SUCCESS && *errflag) MPIR_ERR_SET(mpi_errno, *errflag, "**coll_fail");'
vain='__attribute__((weak)) int MPIDI_GLEX_vain(int, MPIR_Comm *); if (MPIDI_GLEX_vain && (mpi_errno = MPIDI_GLEX_vain(source, comm)) != MPI_SUCCESS) break;'
disables='comm->dev.anysource_enabled = FALSE;'
old_news='__attribute__((weak)) int MPIDI_GLEX_knows(MPIDI_VC_t *); if (MPIDI_GLEX_knows) { int glex_news = 0; for (int i = 0; i < new_failed_procs->size; i++) { MPIDI_VC_t *glex_vc; MPIDI_PG_Get_vc(MPIDI_Process.my_pg, new_failed_procs->lrank_to_lpid[i].lpid, &glex_vc); glex_news |= !MPIDI_GLEX_knows(glex_vc); } if (!glex_news) continue; }'
posts='win_ptr->at_completion_counter += post_grp_ptr->size;'
exposed='__attribute__((weak)) void MPIDI_GLEX_exposed(MPIR_Win *, MPIR_Group *); if (MPIDI_GLEX_exposed) MPIDI_GLEX_exposed(win_ptr, post_grp_ptr);'
missing='while (win_ptr->at_completion_counter) {'
deserted='__attribute__((weak)) int MPIDI_GLEX_deserted(MPIR_Win *); if (MPIDI_GLEX_deserted) { mpi_errno = MPIDI_GLEX_deserted(win_ptr); MPIR_ERR_CHECK(mpi_errno); }'
tests='*flag = (win_ptr->at_completion_counter) ? 0 : 1;'
in_vain='__attribute__((weak)) int MPIDI_GLEX_deserted(MPIR_Win *); if (MPIDI_GLEX_deserted && !*flag) { mpi_errno = MPIDI_GLEX_deserted(win_ptr); MPIR_ERR_CHECK(mpi_errno); }'
completes='mpi_errno = wait_progress_engine();'
asks='MPIDI_GLEX_given_up(win_ptr,'
given_up='__attribute__((weak)) int MPIDI_GLEX_given_up(MPIR_Win *, MPIDI_RMA_Target_t *); if (MPIDI_GLEX_given_up) { mpi_errno = MPIDI_GLEX_given_up(win_ptr, WHOM); MPIR_ERR_CHECK(mpi_errno); }'
each_target='for (target = win_ptr->slots[idx].target_list_head; target != NULL; target = target->next) {'
passed_by='__attribute__((weak)) int MPIDI_GLEX_unreachable(MPIR_Win *, MPIDI_RMA_Target_t *); if (MPIDI_GLEX_unreachable && MPIDI_GLEX_unreachable(win_ptr, target)) continue;'
all_count='win_ptr->at_completion_counter += comm_size;'
meets='struct MPID_nem_glex_meeting { struct MPID_nem_glex_meeting *next; MPIR_Win *win; } glex_meeting; __attribute__((weak)) void MPIDI_GLEX_meets(struct MPID_nem_glex_meeting *, MPIR_Win *); if (MPIDI_GLEX_meets) MPIDI_GLEX_meets(&glex_meeting, win_ptr);'
marked='MPI_SUM, win_ptr->comm_ptr,'
met='__attribute__((weak)) int MPIDI_GLEX_met(struct MPID_nem_glex_meeting *, int); if (MPIDI_GLEX_met) mpi_errno = MPIDI_GLEX_met(&glex_meeting, mpi_errno);'
reads='(*req)->dev.rma_target_ptr = target;'
expects='__attribute__((weak)) void MPIDI_GLEX_expects(MPIR_Win *, MPIDI_RMA_Target_t *, MPIR_Request *); if (MPIDI_GLEX_expects) MPIDI_GLEX_expects(win_ptr, target, *req);'
not_busy='fn_reentrance_check = FALSE; /* nor is it after an error */'
in_use='(*win_ptr)->current_target_lock_data_bytes != 0 || (*win_ptr)->sync_request_cnt != 0) {'
left='__attribute__((weak)) int MPIDI_GLEX_deserted(MPIR_Win *); if (MPIDI_GLEX_deserted && MPIDI_GLEX_deserted(*win_ptr)) break;'
gathers='mpi_errno = MPIDI_CH3U_Win_fns.gather_info('
created='__attribute__((weak)) int MPIDI_GLEX_window(MPIR_Win *, void *, MPI_Aint); if (mpi_errno == MPI_SUCCESS && MPIDI_GLEX_window) mpi_errno = MPIDI_GLEX_window(*win_ptr, base, size);'
allocated='{ __attribute__((weak)) int MPIDI_GLEX_window(MPIR_Win *, void *, MPI_Aint); if (mpi_errno == MPI_SUCCESS && MPIDI_GLEX_window) mpi_errno = MPIDI_GLEX_window(*win_ptr, *(void **)baseptr, size); }'
allocates='MPIR_CHKPMEM_MALLOC(*base_pp,'
from_glex='__attribute__((weak)) void *MPIDI_GLEX_window_memory(MPI_Aint); if (MPIDI_GLEX_window_memory && (*base_pp = MPIDI_GLEX_window_memory(size))) {} else'
frees='MPL_free((*win_ptr)->base);'
to_glex='__attribute__((weak)) int MPIDI_GLEX_window_free(void *); if (MPIDI_GLEX_window_free && MPIDI_GLEX_window_free((*win_ptr)->base)) {} else'
have_met='if (MPIDI_CH3U_Win_hooks.win_free != NULL) {'
over='__attribute__((weak)) void MPIDI_GLEX_window_over(MPIR_Win *); if (MPIDI_GLEX_window_over) MPIDI_GLEX_window_over(*win_ptr);'
makes_op='MPIDI_RMA_Op_t *op_ptr = NULL;'
puts='__attribute__((weak)) int MPIDI_GLEX_put(const void *, MPI_Aint, MPI_Datatype, int, MPI_Aint, MPI_Aint, MPI_Datatype, MPIR_Win *, MPIR_Request *); if (MPIDI_GLEX_put && MPIDI_GLEX_put(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win_ptr, ureq)) goto fn_exit;'
gets='__attribute__((weak)) int MPIDI_GLEX_get(void *, MPI_Aint, MPI_Datatype, int, MPI_Aint, MPI_Aint, MPI_Datatype, MPIR_Win *, MPIR_Request *); if (MPIDI_GLEX_get && MPIDI_GLEX_get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win_ptr, ureq)) goto fn_exit;'
accumulates='__attribute__((weak)) int MPIDI_GLEX_accumulate(const void *, MPI_Aint, MPI_Datatype, void *, MPI_Aint, MPI_Datatype, int, MPI_Aint, MPI_Aint, MPI_Datatype, MPI_Op, MPIR_Win *, MPIR_Request *, int *); if (MPIDI_GLEX_accumulate && MPIDI_GLEX_accumulate('
sums="${accumulates}origin_addr, origin_count, origin_datatype, NULL, 0, MPI_DATATYPE_NULL, target_rank, target_disp, target_count, target_datatype, op, win_ptr, ureq, &mpi_errno)) goto fn_exit;"
sums_and_gets="${accumulates}origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win_ptr, ureq, &mpi_errno)) goto fn_exit;"
fetches="${accumulates}origin_addr, 1, datatype, result_addr, 1, datatype, target_rank, target_disp, 1, datatype, op, win_ptr, NULL, &mpi_errno)) goto fn_exit;"
swaps='__attribute__((weak)) int MPIDI_GLEX_compare_and_swap(const void *, const void *, void *, MPI_Datatype, int, MPI_Aint, MPIR_Win *); if (MPIDI_GLEX_compare_and_swap && MPIDI_GLEX_compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win_ptr)) goto fn_exit;'
holds='{ __attribute__((weak)) void MPIDI_GLEX_hold(MPIR_Win *); if (MPIDI_GLEX_hold) MPIDI_GLEX_hold(win_ptr); }'
releases='{ __attribute__((weak)) void MPIDI_GLEX_release(MPIR_Win *); if (MPIDI_GLEX_release) MPIDI_GLEX_release(win_ptr); }'
alone='__attribute__((weak)) void MPIDI_GLEX_hold(MPIR_Win *); __attribute__((weak)) void MPIDI_GLEX_release(MPIR_Win *); if (MPIDI_GLEX_hold) MPIDI_GLEX_hold(win_ptr); for (int glex_held = 1; glex_held; glex_held = 0, MPIDI_GLEX_release ? MPIDI_GLEX_release(win_ptr) : (void)0)'
takes_lock='MPIDI_CH3I_SHM_MUTEX_LOCK(win_ptr)'
flushes='if (target->sync.sync_flag < MPIDI_RMA_SYNC_FLUSH) {'
flushed='__attribute__((weak)) int MPIDI_GLEX_flushed(const MPIR_Win *, const MPIDI_RMA_Target_t *); if (MPIDI_GLEX_flushed && MPIDI_GLEX_flushed(win_ptr, target)) goto finish_flush;'
waits='mpi_errno = MPIDI_CH3_Progress_wait(&progress_state);'
wait_there='__attribute__((weak)) int MPIDI_GLEX_wait(MPIR_Request *); if (MPIDI_GLEX_wait) { mpi_errno = MPIDI_GLEX_wait(request_ptr); MPIR_ERR_CHECK(mpi_errno); }'
wait_here='mpi_errno = MPID_Wait(request_ptr'
next_message='while (errcode != MPI_SUCCESS) {'
full='if (maxlen < max_location_len + 2) { errcode = MPI_SUCCESS; break; }'
join='ErrorRing[ring_idx].prev_error = error2_code;'
no_circle='int glex_at, glex_id, glex_generic, glex_met = 0; for (int code = error2_code, n = 0; code != MPI_SUCCESS && n < MAX_ERROR_RING && !glex_met; n++) { if (convertErrcodeToIndexes(code, &glex_at, &glex_id, &glex_generic) != 0 || glex_generic < 0 || ErrorRing[glex_at].id != glex_id) break; glex_met = glex_at == ring_idx; code = ErrorRing[glex_at].prev_error; } if (glex_met) break;'
overflow='rreq->dev.iov[0].iov_base = (void *)rreq->dev.tmpbuf;'
one_piece='rreq->dev.iov_count = 1; rreq->dev.iov_offset = 0;'
unpacked='if (last != tmpbuf_last)'
all_of_it='if (last == tmpbuf_last) rreq->dev.msg_offset = last;'
fence_over='if (win_ptr->states.access_state == MPIDI_RMA_FENCE_ISSUED) {'
start_over='if (win_ptr->states.access_state == MPIDI_RMA_PSCW_ISSUED) { win_ptr->states.access_state = MPIDI_RMA_PSCW_GRANTED; if (win_ptr->num_targets_with_pending_net_ops) { mpi_errno = MPIDI_CH3I_Win_set_active(win_ptr); MPIR_ERR_CHECK(mpi_errno); } }'
send_threshold='MPIDI_CH3_GET_EAGER_THRESHOLD(&eager_threshold, comm, vc);'
now='__attribute__((weak)) int MPIDI_GLEX_send(MPIDI_VC_t *, const void *, intptr_t, int, MPIR_Comm *, int); if (dt_contig && MPIDI_GLEX_send && MPIDI_GLEX_send(vc, (const char *)buf + dt_true_lb, data_sz, tag, comm, context_offset)) goto fn_exit;'
send_request='MPIDI_Request_create_sreq(sreq, mpi_errno, goto fn_exit);'
at_once='__attribute__((weak)) int MPIDI_GLEX_isend(MPIDI_VC_t *, const void *, intptr_t, int, int, MPIR_Comm *, int, MPIR_Request **); MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb); if (dt_contig && MPIDI_GLEX_isend && MPIDI_GLEX_isend(vc, (const char *)buf + dt_true_lb, data_sz, rank, tag, comm, context_offset, &sreq)) goto fn_exit;'
signals='hdr.signum = signum;'
signals_41='hdr.u.data = signum;' # MPICH 4.1
whoever_is_left='if (proxy->control_fd < 0 || send(proxy->control_fd, &hdr, sizeof(hdr), MSG_NOSIGNAL) >= 0 || errno != EAGAIN) goto fn_exit;'
addressed='hdr.pgid = proxy->pgid; hdr.proxy_id = proxy->proxy_id; hdr.buflen = 0;'
end_of_all='clean everything up and exit'
aborts='status = HYDT_bsci_wait_for_completion(0);'
last_words='static int glex_ends; if (glex_ends) return HYD_SUCCESS; glex_ends = 1; for (int tries = 0, quiet = 0; tries < 10000 && quiet < 20; tries++) { if (HYDT_dmx_wait_for_event(0) == HYD_SUCCESS) { quiet = 0; } else { quiet++; usleep(5000); } }'
session='setsid();'
not_of_ranks='if (idx < 0 || setpgid(0, 0) != 0)'
step_failed='int err = MPIR_Process_status(&e->u.recv.rreq->status);'
step_ended='if (i == s->idx && e->status >= MPIDU_SCHED_ENTRY_STATUS_COMPLETE) {'
not_begun='if (e->type == MPIDU_SCHED_ENTRY_RECV && e->status == MPIDU_SCHED_ENTRY_STATUS_STARTED && !e->u.recv.rreq) e->status = MPIDU_SCHED_ENTRY_STATUS_FAILED;'
hooked="Barrier Bcast Reduce Allreduce Gather Allgather Allgatherv Reduce_scatter Reduce_scatter_block Alltoall Alltoallv"
hooked="$hooked Ibarrier Ibcast Ireduce Iallreduce Igather Iallgather Iallgatherv Ireduce_scatter"
hooked="$hooked Ireduce_scatter_block Ialltoall Ialltoallv"

usage()
{
	cat <<EOF
usage: $prog [--from DIR] [--remove] [--quiet] MPICH_SRC

Copies the netmod "glex" into the MPICH source tree MPICH_SRC (4.0.2 to 5.0). Then:
  MPICH_SRC/configure --with-device=ch3:nemesis:glex,tcp --disable-maintainer-mode ...

  --from DIR   take the sources from DIR/glue and DIR/channel (default: beside this script)
  --remove     take the netmod out again
  --quiet      say nothing unless something is wrong
EOF
}

die()
{
	echo "$prog: $*" >&2
	exit 1
}

say()
{
	[ -n "$quiet" ] || echo "$prog: $*"
}

check_source_tree()
{
	[ -d "$mpich" ] || die "$mpich is no directory; give the top of an unpacked MPICH source tree"
	if [ ! -f "$mpich/maint/version.m4" ] || [ ! -d "$mpich/src/mpid" ]; then
		die "$mpich is not the top of an MPICH source tree (no maint/version.m4 or src/mpid in it)"
	fi
	[ -d "$mpich/$nem_path" ] ||
		die "this MPICH has no ch3:nemesis ($nem_path is absent); take one from 4.0.2 to 5.0"
	grep -qE 'MPIR_Errflag_t|MPIR_COLL_ATTR_HAS_ERR' "$mpich/src/include/mpir_misc.h" ||
		die "this MPICH is older than 4.0 or newer than 5.0; take one from 4.0.2 to 5.0"
	[ -f "$none_c" ] ||
		die "$none_c is absent; is the tree complete? unpack the release again"
	[ -f "$coll_h" ] ||
		die "$coll_h is absent; is the tree complete? unpack the release again"
	if [ ! -f "$recvq_c" ] || ! grep -q 'MPIR_Request \* *recvq_unexpected_head' "$recvq_c"; then
		die "$recvq_c is absent or has no recvq_unexpected_head; is this an MPICH newer than 5.0?"
	fi
	if [ ! -w "$netmod" ] || [ ! -w "$none_c" ] || [ ! -w "$coll_h" ] || [ ! -w "$recvq_c" ]; then
		die "$netmod cannot be written; unpack MPICH where you may write"
	fi
}

check_own_sources()
{
	for f in glex_all.c glex_hook.h; do
		[ -f "$from/glue/$f" ] || die "$from/glue/$f is absent; this is not the complete netmod"
	done
	# Flat means: a name in both directories would overwrite its namesake.
	twice=$(for f in "$from"/glue/*.[ch] "$from"/channel/*.[ch]; do
		[ ! -f "$f" ] || basename "$f"
	done | sort | uniq -d)
	[ -z "$twice" ] || die "in glue/ and in channel/ alike: $twice; rename one, both go to one directory"
}

copy_sources()
{
	mkdir -p "$netmod/glex"
	for f in "$from"/glue/*.[ch] "$from"/channel/*.[ch]; do
		[ -f "$f" ] || continue
		to=$netmod/glex/$(basename "$f")
		if ! cmp -s "$f" "$to"; then
			cp "$f" "$to"
			changed=$((changed + 1))
		fi
	done
}

remove_stale()
{
	for f in "$netmod"/glex/*.[ch]; do
		[ -f "$f" ] || continue
		name=$(basename "$f")
		if [ ! -f "$from/glue/$name" ] && [ ! -f "$from/channel/$name" ]; then
			rm -f "$f"
			changed=$((changed + 1))
		fi
	done
}

# Written beside and renamed, so that an interrupted run leaves the old file or the new one.
# append FILE LINE
append()
{
	if grep -qF "$2" "$1"; then
		# make knows what the line includes only once the file was compiled with it
		[ "$changed" = 0 ] || touch "$1"
		return
	fi
	cp -p "$1" "$1.glex-new"
	printf '\n%s\n%s\n%s\n' "$begin" "$2" "$end" >>"$1.glex-new"
	mv "$1.glex-new" "$1"
	changed=$((changed + 1))
}

# Before the first function and behind the last, of which the header's #endif tells.
hook_collectives()
{
	! grep -qF "$hook" "$coll_h" || return 0
	for f in $hooked; do
		grep -q "MPIR_${f}_impl(" "$coll_h" ||
			die "$coll_h does not call MPIR_${f}_impl; is this an MPICH newer than 5.0?"
	done
	awk -v b="$begin" -v e="$end" -v hook="$hook" -v hooked="$hooked" '
		{ line[NR] = $0 }
		!first && /^static inline/ { first = NR }
		/^#endif/ { last = NR }
		END {
			for (i = 1; i <= NR; i++) {
				if (i == first) printf "\n%s\n%s\n%s\n", b, hook, e
				if (i == last) {
					printf "\n%s\n", b
					n = split(hooked, f, " ")
					for (k = 1; k <= n; k++) printf "#undef MPIR_%s_impl\n", f[k]
					print e
				}
				print line[i]
			}
		}
	' "$coll_h" >"$coll_h.glex-new"
	mv "$coll_h.glex-new" "$coll_h"
	changed=$((changed + 1))
}

# insert before|after TEXT LINE FILE [FUNCTION]: where FILE, or FUNCTION in it, has TEXT
insert()
{
	if grep -qF "$3" "$4" || ! grep -qF "$2" "$4"; then
		return
	fi
	awk -v where="$1" -v text="$2" -v line="$3" -v in_it="${5-}" -v b="$begin" -v e="$end" '
		/^[a-z].*\(/ { here = in_it != "" && index($0, in_it "(") }
		{ found = index($0, text) && (in_it == "" || here) }
		found && where == "before" { printf "\n%s\n%s\n%s\n", b, line, e }
		{ print }
		found && where == "after" { printf "\n%s\n%s\n%s\n", b, line, e }
	' "$4" >"$4.glex-new"
	mv "$4.glex-new" "$4"
	changed=$((changed + 1))
}

# Without it the progress engine ends them too, a little later.
hook_wait()
{
	if [ -f "$wait_c" ] && [ "$(grep -cF "$wait_here" "$wait_c")" = 1 ]; then
		insert before "$wait_here" "$wait_there" "$wait_c"
	fi
}

# Without them short messages are made up by CH3, which takes longer.
hook_send()
{
	if [ -f "$send_c" ] && [ "$(grep -cF "$send_threshold" "$send_c")" = 1 ]; then
		insert before "$send_threshold" "$now" "$send_c"
	fi
	if [ -f "$isend_c" ] && [ "$(grep -cF "$send_request" "$isend_c")" = 1 ]; then
		insert before "$send_request" "$at_once" "$isend_c"
	fi
}

# Those that note errors in mpi_errno_ret and never look at it again.
mend_allreduce()
{
	for f in "$mpich"/src/mpi/coll/allreduce/allreduce_intra_*.c; do
		if [ ! -f "$f" ] || ! grep -q 'MPIR_ERR_ADD(mpi_errno_ret' "$f" ||
			! grep -q 'MPIR_Errflag_t \* *errflag' "$f" || grep -qE '(=|return) mpi_errno_ret' "$f"; then
			continue
		fi
		insert after 'fn_exit:' "$forgotten" "$f"
	done
}

# note REQUEST CLASS: of a collective, the first error of its steps; class_of ERROR: its class there
note()
{
	field=errflag
	! grep -q 'u\.nbc\.coll_attr' "$mpich/src/include/mpir_request.h" || field=coll_attr # MPICH 5.0
	echo "if (!$1->u.nbc.$field) $1->u.nbc.$field = $2;"
}

class_of()
{
	echo "MPIR_ERR_GET_CLASS($1) == MPIX_ERR_PROC_FAILED ? MPIR_ERR_PROC_FAILED : MPIR_ERR_OTHER"
}

# Of a step that receives; of one that could not send, for which something has to end.
received()
{
	if grep -q 'MPIR_Process_status(.*errflag' "$mpich/src/include/mpir_misc_post.h"; then
		echo "MPIR_Process_status(&vtxp->u.$1.req->status, &sched->req->u.nbc.errflag);"
	else # MPICH 4.2
		echo "if (MPIR_Process_status(&vtxp->u.$1.req->status)) {" \
			"$(note 'sched->req' "$(class_of "vtxp->u.$1.req->status.MPI_ERROR")") }"
	fi
}

unsent()
{
	echo "if (!vtxp->u.$1.req) { vtxp->u.$1.req = MPIR_Request_create_complete(MPIR_REQUEST_KIND__SEND);" \
		"$(note 'sched->req' MPIR_ERR_PROC_FAILED) }"
}

mend_schedules()
{
	if [ ! -f "$gentran_c" ] || ! grep -qE 'u\.nbc\.(errflag|coll_attr)' "$gentran_c"; then
		return
	fi
	for step in irecv irecv_status; do
		insert before "MPIR_Request_free(vtxp->u.$step.req);" "$(received $step)" "$gentran_c"
	done
	for step in isend issend; do
		insert before "if (MPIR_Request_is_complete(vtxp->u.$step.req)) {" "$(unsent $step)" "$gentran_c"
	done
}

# The other kind of schedules: since MPICH 4.2 a step that has failed there is no error of the whole.  In all, one that
# waits for a receive which was refused waits for ever.
mend_steps()
{
	if [ -f "$sched_c" ] && [ "$(grep -cF "$step_failed" "$sched_c")" = 1 ]; then
		insert after "$step_failed" "$(failed)" "$sched_c"
	fi
	[ ! -f "$sched_c" ] || insert before "$step_ended" "$not_begun" "$sched_c"
}

failed()
{
	echo "if (err) { $(note 's->req' "$(class_of err)") }"
}

# A request ends with its peer, but a probe has none.
mend_probes()
{
	for f in "$mpich"/src/mpid/ch3/src/mpid_probe.c "$mpich"/src/mpid/ch3/src/mpid_mprobe.c; do
		grep -qF "$waits" "$f" || die "$f does not wait as it did; is this an MPICH newer than 5.0?"
		insert before "$waits" "$vain" "$f"
	done
}

# Where mpiexec is later than glexd, the program may have acknowledged meanwhile what it tells.
mend_late_news()
{
	if [ -f "$comm_c" ] && [ "$(grep -cF "$disables" "$comm_c")" = 1 ] && grep -qF -- '->lrank_to_lpid[' "$comm_c"; then
		insert before "$disables" "$old_news" "$comm_c"
	fi
}

# A window waits for others by a counter, which does not tell for whom.
mend_windows()
{
	if [ ! -f "$rma_sync_c" ] || [ ! -f "$win_c" ] || [ "$(grep -cF "$posts" "$rma_sync_c")" != 1 ] ||
		! grep -qF "$missing" "$rma_sync_c" || [ "$(grep -cF "$tests" "$rma_sync_c")" != 1 ] ||
		[ "$(grep -cF "$in_use" "$win_c")" != 1 ]; then
		return
	fi
	insert after "$posts" "$exposed" "$rma_sync_c"
	insert after "$missing" "$deserted" "$rma_sync_c"
	insert after "$tests" "$in_vain" "$rma_sync_c"
	insert after "$in_use" "$left" "$win_c"
}

# Calls that complete what was done to others wait for a counter, too: for one target or for all.  (MPI_Win_wait
# completes what others did.)
mend_origins()
{
	for f in "$rma_sync_c" "$rma_progress_c"; do
		if [ ! -f "$f" ] || grep -qF "$asks" "$f" || ! grep -qF "$completes" "$f"; then
			continue
		fi
		awk -v text="$completes" -v line="$given_up" -v b="$begin" -v e="$end" '
			/^[a-z].*\(/ { whom = /MPID_Win_wait\(/ ? "" : "NULL" }
			/MPIDI_RMA_Target_t \*target = NULL;/ { whom = "target" }
			index($0, text) && whom != "" {
				asked = line
				sub(/WHOM/, whom, asked)
				printf "\n%s\n%s\n%s\n", b, asked, e
			}
			{ print }
		' "$f" >"$f.glex-new"
		mv "$f.glex-new" "$f"
		changed=$((changed + 1))
	done
	if [ -f "$rma_sync_c" ] && [ "$(grep -cF "$all_count" "$rma_sync_c")" = 1 ] &&
		[ "$(grep -cF "$marked" "$rma_sync_c")" = 1 ]; then
		insert after "$all_count" "$meets" "$rma_sync_c"
		insert after "$marked" "$met" "$rma_sync_c"
	fi
	if [ -f "$mpidrma_h" ] && [ "$(grep -cF "$reads" "$mpidrma_h")" = 1 ]; then
		insert after "$reads" "$expects" "$mpidrma_h"
	fi
	if [ -f "$rma_progress_c" ] && [ "$(grep -cF "$each_target" "$rma_progress_c")" = 1 ]; then
		insert after "$each_target" "$passed_by" "$rma_progress_c"
	fi
	if [ -f "$rma_progress_c" ] && grep -qF 'static int fn_reentrance_check' "$rma_progress_c"; then
		insert after 'fn_fail:' "$not_busy" "$rma_progress_c" issue_ops_target
	fi
}

# Windows that the NIC reaches: without all of these lines there are none.  What CH3 itself does in ours that has to be
# atomic is where it has a lock for memory that is shared.
hook_windows()
{
	has 3 "$gathers" "$win_fns_c" && has 1 "$allocates" "$win_fns_c" && has 1 "$frees" "$win_c" &&
		has 1 "$have_met" "$win_c" && has 6 "$makes_op" "$rma_ops_c" && has 1 "$flushes" "$rma_sync_c" || return 0
	insert after "$gathers" "$created" "$win_fns_c" MPIDI_CH3U_Win_create
	insert after 'fn_exit:' "$allocated" "$win_fns_c" MPIDI_CH3U_Win_allocate
	insert before "$allocates" "$from_glex" "$win_fns_c"
	insert before "$frees" "$to_glex" "$win_c"
	insert before "$have_met" "$over" "$win_c"
	insert before "$makes_op" "$puts" "$rma_ops_c" MPIDI_CH3I_Put
	insert before "$makes_op" "$gets" "$rma_ops_c" MPIDI_CH3I_Get
	insert before "$flushes" "$flushed" "$rma_sync_c" MPID_Win_flush
	for how in acc get_acc cas fop; do
		has 1 "mpi_errno = MPIDI_CH3I_Shm_${how}_op(" "$rma_ops_c" || return 0
	done
	has 8 "$takes_lock" "$recv_req_c" && has 4 "$takes_lock" "$rma_handler_c" || return 0
	hold_windows "$recv_req_c"
	hold_windows "$rma_handler_c"
	for how in acc get_acc cas fop; do
		insert before "mpi_errno = MPIDI_CH3I_Shm_${how}_op(" "$alone /* $how */" "$rma_ops_c"
	done
	insert before "$makes_op" "$sums" "$rma_ops_c" MPIDI_CH3I_Accumulate
	insert before "$makes_op" "$sums_and_gets" "$rma_ops_c" MPIDI_CH3I_Get_accumulate
	insert before "$makes_op" "$swaps" "$rma_ops_c" MPID_Compare_and_swap
	insert before "$makes_op" "$fetches" "$rma_ops_c" MPID_Fetch_and_op
}

# has N TEXT FILE: N lines of it
has()
{
	[ -f "$3" ] && [ "$(grep -cF "$2" "$3")" = "$1" ]
}

# hold_windows FILE: where it takes its lock, and where it gives it back
hold_windows()
{
	! grep -qF "$holds" "$1" || return 0
	awk -v holds="$holds" -v releases="$releases" -v b="$begin" -v e="$end" '
		/MPIDI_CH3I_SHM_MUTEX_(LOCK|UNLOCK)\(win_ptr\)/ {
			printf "\n%s\n%s\n%s\n", b, /UNLOCK/ ? releases : holds, e
		}
		held { print kept; held = 0 }
		/if \(win_ptr->shm_allocated == TRUE\)/ { kept = $0; held = 1; next }
		{ print }
		END { if (held) print kept }
	' "$1" >"$1.glex-new"
	mv "$1.glex-new" "$1"
	changed=$((changed + 1))
}

# A text longer than the caller's room is written past its end, and errors of dead ranks have long ones.
mend_error_text()
{
	if grep -q 'max_location_len' "$errutil_c" && [ "$(grep -cF "$next_message" "$errutil_c")" = 1 ]; then
		insert after "$next_message" "$full" "$errutil_c"
	fi
}

# Errors are chained in a ring of 128, those of one lost rank with each other too: where both chains end in the
# same one, its end was made to lead back to it.  One that was used again since may do so as well.
mend_error_chains()
{
	if [ "$(grep -cF "$join" "$errutil_c")" != 1 ] || ! grep -q 'define MAX_ERROR_RING' "$errutil_c"; then
		return
	fi
	insert before "$join" "$no_circle" "$errutil_c"
	bound 'for (;;) {' CombineSpecificCodes
	bound 'while (tmp_errcode != MPI_SUCCESS) {' MPIR_Err_print_stack_string
	bound 'while (errorcode != MPI_SUCCESS) {' ErrGetInstanceString
}

# bound LOOP FUNCTION: a walk along errors sees each of the ring once at most
bound()
{
	insert before "$1" "int glex_steps = 0; /* $2 */" "$errutil_c" "$2"
	insert after "$1" "if (++glex_steps > MAX_ERROR_RING) break; /* $2 */" "$errutil_c" "$2"
}

# The last buffer of a truncated message is followed by what does not fit, and not by itself;
# and that begins with the first of its segments, not where the last ones ended.
mend_truncation()
{
	if [ "$(grep -cF "$overflow" "$request_c")" = 1 ]; then
		insert before "$overflow" "$one_piece" "$request_c"
	fi
	if [ "$(grep -cF "$unpacked" "$request_c")" = 1 ]; then
		insert before "$unpacked" "$all_of_it" "$request_c"
	fi
}

# A start may follow a fence whose barrier goes on in the background; both count down the same counter.
mend_fence()
{
	if [ -f "$rma_sync_c" ] && [ "$(grep -cF "$fence_over" "$rma_sync_c")" = 1 ]; then
		insert before "$fence_over" "$start_over" "$rma_sync_c"
	fi
}

# The proxy of a rank that has died leaves on its own time, and a write to it is an error, or SIGPIPE.
mend_launcher()
{
	if [ -f "$pmiserv_c" ] && [ "$(grep -cF "$signals" "$pmiserv_c")" = 1 ] &&
		grep -qF 'HYDU_sock_write(proxy->control_fd, &hdr, sizeof(hdr)' "$pmiserv_c"; then
		insert after "$signals" "$whoever_is_left" "$pmiserv_c"
	elif [ -f "$pmiserv_c" ] && [ "$(grep -cF "$signals_41" "$pmiserv_c")" = 1 ] &&
		grep -qF 'send_hdr_downstream(proxy, &hdr, NULL, 0)' "$pmiserv_c"; then
		insert after "$signals_41" "$addressed $whoever_is_left" "$pmiserv_c"
	fi
}

# What a rank said before it aborted comes by another way than that it did, and later.  Others may abort
# meanwhile, since it has: the first one's status is the job's.
mend_abort()
{
	for f in $pmiserv_all; do
		if grep -qF "$end_of_all" "$f" && [ "$(grep -cF "$aborts" "$f")" = 1 ]; then
			insert before "$aborts" "$last_words" "$f"
		fi
	done
}

# Linux gives processor time to sessions by turns, and sched_yield gives way within its own session only: of
# ranks that have one each and share a processor, one that waits may keep all others from running for long.
mend_sessions()
{
	if [ -f "$launch_c" ] && [ "$(grep -cF "$session" "$launch_c")" = 1 ] && grep -qF 'int idx)' "$launch_c"; then
		insert before "$session" "$not_of_ranks" "$launch_c"
	fi
}

take_out()
{
	for f in "$mpich"/src/mpid/ch3/src/mpid_probe.c "$mpich"/src/mpid/ch3/src/mpid_mprobe.c; do
		take_out_of "$f" "$vain"
	done
	[ ! -f "$comm_c" ] || take_out_of "$comm_c" "$old_news"
	rm -rf "$netmod/glex" "$stamp"
	for f in "$mpich"/src/mpi/coll/allreduce/allreduce_intra_*.c; do
		[ ! -f "$f" ] || take_out_of "$f" "$forgotten"
	done
	if [ -f "$gentran_c" ]; then
		for step in irecv irecv_status; do take_out_of "$gentran_c" "$(received $step)"; done
		for step in isend issend; do take_out_of "$gentran_c" "$(unsent $step)"; done
	fi
	for line in "$(failed)" "$not_begun"; do
		[ ! -f "$sched_c" ] || take_out_of "$sched_c" "$line"
	done
	for line in "$left" "$to_glex" "$over"; do
		[ ! -f "$win_c" ] || take_out_of "$win_c" "$line"
	done
	[ ! -f "$win_fns_c" ] || take_out_of "$win_fns_c" "$from_glex"
	[ ! -f "$rma_ops_c" ] || take_out_of "$rma_ops_c" "$puts"
	for f in "$recv_req_c" "$rma_handler_c"; do
		[ ! -f "$f" ] || take_out_of "$f" "$holds"
	done
	take_out_of "$none_c" "$include"
	take_out_of "$coll_h" "$hook"
	[ ! -f "$wait_c" ] || take_out_of "$wait_c" "$wait_there"
	[ ! -f "$send_c" ] || take_out_of "$send_c" "$now"
	[ ! -f "$isend_c" ] || take_out_of "$isend_c" "$at_once"
	take_out_of "$recvq_c" "$queue"
	take_out_of "$request_c" "$one_piece"
	take_out_of "$request_c" "$all_of_it"
	for line in "$start_over" "$flushed" "$exposed" "$deserted" "$asks" "$meets" "$met"; do
		[ ! -f "$rma_sync_c" ] || take_out_of "$rma_sync_c" "$line"
	done
	for line in "$asks" "$passed_by" "$not_busy"; do
		[ ! -f "$rma_progress_c" ] || take_out_of "$rma_progress_c" "$line"
	done
	[ ! -f "$mpidrma_h" ] || take_out_of "$mpidrma_h" "$expects"
	[ ! -f "$pmiserv_c" ] || take_out_of "$pmiserv_c" "$whoever_is_left"
	for f in $pmiserv_all; do
		[ ! -f "$f" ] || take_out_of "$f" "$last_words"
	done
	[ ! -f "$launch_c" ] || take_out_of "$launch_c" "$not_of_ranks"
	take_out_of "$errutil_c" "$full"
}

# take_out_of FILE LINE
take_out_of()
{
	! grep -qF "$2" "$1" || take_out_all "$1"
}

# take_out_all FILE: the lines from mark to mark and the empty line before them
take_out_all()
{
	awk -v b="$begin" -v e="$end" '
		$0 == b { skipping = 1; held = 0; next }
		skipping { if ($0 == e) skipping = 0; next }
		held { print ""; held = 0 }
		$0 == "" { held = 1; next }
		{ print }
		END { if (held) print "" }
	' "$1" >"$1.glex-new"
	mv "$1.glex-new" "$1"
}

# What another version of this script has put in goes first: its lines may be others.
replace_another()
{
	self=$(cksum <"$0")
	if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$self" ]; then
		grep -rlF "$begin" "$mpich/src" | while read -r f; do take_out_all "$f"; done
		echo "$self" >"$stamp"
	fi
}

quiet=
remove=
mpich=
from=$(cd "$(dirname "$0")" && pwd)
while [ $# -gt 0 ]; do
	case $1 in
	--from) [ $# -gt 1 ] || die "--from needs a directory"; from=$2; shift ;;
	--remove) remove=1 ;;
	--quiet) quiet=1 ;;
	-h | --help) usage; exit 0 ;;
	-*) usage >&2; die "unknown option $1" ;;
	*) [ -z "$mpich" ] || die "one source tree only, got $mpich and $1"; mpich=$1 ;;
	esac
	shift
done
[ -n "$mpich" ] || { usage >&2; exit 1; }

nem_path=src/mpid/ch3/channels/nemesis
netmod=$mpich/$nem_path/netmod
none_c=$netmod/none/none.c
coll_h=$mpich/src/mpid/ch3/include/mpid_coll.h
recvq_c=$mpich/src/mpid/ch3/src/ch3u_recvq.c
request_c=$mpich/src/mpid/ch3/src/ch3u_request.c
comm_c=$mpich/src/mpid/ch3/src/ch3u_comm.c
rma_sync_c=$mpich/src/mpid/ch3/src/ch3u_rma_sync.c
mpidrma_h=$mpich/src/mpid/ch3/include/mpidrma.h
rma_progress_c=$mpich/src/mpid/ch3/src/ch3u_rma_progress.c
pmiserv_c=$mpich/src/pm/hydra/pm/pmiserv/pmiserv_cb.c
[ -f "$pmiserv_c" ] || pmiserv_c=$mpich/src/pm/hydra/mpiexec/pmiserv_cb.c # MPICH 4.1
pmiserv_all=$(find "$(dirname "$pmiserv_c")" -name 'pmiserv_*.c' 2>/dev/null || true)
launch_c=$mpich/src/pm/hydra/utils/launch/launch.c
[ -f "$launch_c" ] || launch_c=$mpich/src/pm/hydra/lib/utils/launch.c # MPICH 4.1
win_c=$mpich/src/mpid/ch3/src/mpidi_rma.c
win_fns_c=$mpich/src/mpid/ch3/src/ch3u_win_fns.c
recv_req_c=$mpich/src/mpid/ch3/src/ch3u_handle_recv_req.c
rma_handler_c=$mpich/src/mpid/ch3/src/ch3u_rma_pkthandler.c
rma_ops_c=$mpich/src/mpid/ch3/src/ch3u_rma_ops.c
send_c=$mpich/src/mpid/ch3/src/mpid_send.c
isend_c=$mpich/src/mpid/ch3/src/mpid_isend.c
wait_c=$mpich/src/mpi/request/request_impl.c
errutil_c=$mpich/src/mpi/errhan/errutil.c
gentran_c=$mpich/src/mpi/coll/transports/gentran/gentran_utils.c
sched_c=$mpich/src/mpid/common/sched/mpidu_sched.c
stamp=$netmod/.glex-installed
changed=0

check_source_tree
if [ -n "$remove" ]; then
	take_out
	say "netmod glex removed from $mpich"
	exit 0
fi
check_own_sources
replace_another
copy_sources
remove_stale
append "$none_c" "$include"
append "$recvq_c" "$queue"
hook_collectives
hook_wait
hook_send
mend_allreduce
mend_schedules
mend_steps
mend_probes
mend_late_news
mend_windows
mend_origins
hook_windows
mend_truncation
mend_fence
mend_launcher
mend_abort
mend_sessions
mend_error_text
mend_error_chains
if [ "$changed" = 0 ]; then
	say "netmod glex in $mpich is up to date"
else
	say "netmod glex copied into $mpich ($changed files changed)"
fi
