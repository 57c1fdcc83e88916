/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_all.c - the whole netmod as one compilation unit.
 *
 * MPICH compiles netmod/none/none.c in every ch3:nemesis build; a line there
 * that includes this file adds the netmod without a change to its makefiles.
 * All files lie in one directory then.  Where MPICH is configured without glex nothing is
 * left of it, nor needed: its headers, which none.c includes, say which netmods there are.
 */
#ifdef MPIDI_NEM_GLEX

#include "chan.c"
#include "conn.c"
#include "credit.c"
#include "seq.c"
#include "block.c"
#include "sr.c"
#include "er.c"
#include "er_open.c"
#include "rndv.c"
#include "lend.c"
#include "window.c"

#include "glex_init.c"
#include "glex_vc.c"
#include "glex_dyn.c"
#include "glex_dead.c"
#include "glex_lost.c"
#include "glex_origin.c"
#include "glex_target.c"
#include "glex_window.c"
#include "glex_same.c"
#include "glex_send.c"
#include "glex_lend.c"
#include "glex_held.c"
#include "glex_poll.c"
#include "glex_lmt.c"
#include "glex_put.c"
#include "glex_pipe.c"
#include "glex_stats.c"
#include "glex_coll_op.c"
#include "glex_tree.c"
#include "glex_coll.c"
#include "glex_bcast.c"
#include "glex_stage.c"
#include "glex_pass.c"
#include "glex_gather.c"
#include "glex_exchange.c"
#include "glex_reduce.c"

#endif /* MPIDI_NEM_GLEX */
