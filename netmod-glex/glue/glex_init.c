/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_init.c - the netmod's table, its beginning and its end.
 *
 * One channel, so one endpoint, serves the process.  All ranks of a process
 * group make their endpoint's key of its id, so nothing but the business card
 * has to be exchanged; the card is read when a VC is first used.
 *
 * finalize runs after every VC has been closed by CH3's protocol, so all that
 * mattered has arrived.  It leaves the netmod as it was before init.
 */
#include "glex_impl.h"

#include <stdio.h>
#include <unistd.h>

#define MPID_NEM_GLEX_DRAIN_SECONDS 5.0

struct MPID_nem_glex MPID_nem_glex;

MPID_nem_netmod_funcs_t MPIDI_nem_glex_funcs = {
	MPID_nem_glex_init,
	MPID_nem_glex_finalize,
#ifdef ENABLE_CHECKPOINTING
	NULL,
	NULL,
	NULL,
#endif
	MPID_nem_glex_poll,
	MPID_nem_glex_get_business_card,
	MPID_nem_glex_connect_to_root,
	MPID_nem_glex_vc_init,
	MPID_nem_glex_vc_destroy,
	MPID_nem_glex_vc_terminate,
	NULL, /* anysource_iprobe: matching is CH3's */
	NULL, /* anysource_improbe */
	MPID_nem_glex_get_ordering,
};

static const struct glexch_ops MPID_nem_glex_ops = {
	.data = MPID_nem_glex_data,
	.packet = MPID_nem_glex_packet,
	.place = MPID_nem_glex_room,
	.placed = MPID_nem_glex_filled,
	.identify = MPID_nem_glex_identify,
	.hello = MPID_nem_glex_hello,
	.fail = MPID_nem_glex_vc_failed,
	.drained = MPID_nem_glex_vc_drained,
	.held = MPID_nem_glex_held,
	.died = MPID_nem_glex_died,
	.land = MPID_nem_glex_land,
	.landed = MPID_nem_glex_landed,
};

/* FNV-1a of the group's name: what its members are known by. */
uint64_t MPID_nem_glex_pg_hash(MPIDI_PG_t *pg)
{
	const unsigned char *s = pg->id;
	uint64_t h = 0xcbf29ce484222325u;

	while (*s)
		h = (h ^ *s++) * 0x100000001b3u;
	return h;
}

/* A variable whose row the library has; limit keeps it in the range of the channel. */
static uint32_t MPID_nem_glex_setting(const char *name, uint64_t limit)
{
	uint64_t v = 0;

	glex_config_uint(name, &v);
	return (uint32_t)(v < limit ? v : limit);
}

/* What the job scripts of the machine set about the endpoint; what is not set leaves 0. */
static void MPID_nem_glex_ep_settings(struct glexch_params *params)
{
	uint64_t memory = 0;

	params->ep_type = (enum glex_ep_type)MPID_nem_glex_setting("GLEX_EP_TYPE", GLEX_EP_TYPE_EMULATE);
	params->mpq_slots = MPID_nem_glex_setting("GLEX_EP_MPQ_SLOTS", UINT32_MAX);
	if (!params->mpq_slots)
		params->mpq_slots = MPID_nem_glex_setting("PDP_GLEX_HC_MPQ_L1_CAPACITY", UINT32_MAX);
	params->hc_mpq = MPID_nem_glex_setting("GLEX_EP_HC_MPQ", 1) || MPID_nem_glex_setting("PDP_GLEX_USE_HC_MPQ", 1);
	params->hc_eq = (int)MPID_nem_glex_setting("GLEX_EP_HC_EQ", 1);
	if (MPID_nem_glex_setting("GLEX_EP_HC_MR", 1))
		params->key = GLEX_EP_MAKE_HC_UMMT_KEY(params->key);
	if (glex_config_uint("GLEX_EP_MEM_SIZE", &memory) == GLEX_SUCCESS)
		params->blocks = (uint32_t)(memory / params->block_size);
	if (params->blocks < 4)
		params->blocks = 4;
}

/* Blocks of whole cache lines, and a pool whose offsets have 32 bits. */
static void MPID_nem_glex_settings(struct glexch_params *params)
{
	uint64_t eager, unexpected = 0;

	params->credits = MPID_nem_glex_setting("GLEX_MPI_SR_CREDITS", UINT8_MAX);
	params->block_size = MPID_nem_glex_setting("GLEX_MPI_SR_BLOCK_SIZE", 1u << 30) & ~63u;
	params->blocks = MPID_nem_glex_setting("GLEX_MPI_SR_BLOCKS", UINT32_MAX / (params->block_size | 1));
	params->mode = (enum glexch_mode)MPID_nem_glex_setting("GLEX_MPI_CHANNEL", GLEXCH_MODE_ER);
	if (MPID_nem_glex_setting("GLEX_BYPASS_ER", 1) || MPID_nem_glex_setting("GLEX_BYPASS_RDMA_WRITE_CHANNEL", 1))
		params->mode = GLEXCH_MODE_SR;
	params->er_max = MPID_nem_glex_setting("GLEX_MAX_ER_CHANNELS", INT32_MAX);
	params->er_bytes = MPID_nem_glex_setting("GLEX_MPI_ER_RING_SIZE", INT32_MAX);
	params->sharers = MPID_nem_glex_setting("GLEX_PPN", INT32_MAX);
	MPID_nem_glex.eager_max = MPID_nem_glex_setting("GLEX_MPI_EAGER_MAX", INT32_MAX);
	if (glex_config_uint("GLEX_EAGER_MAX_MSG_SIZE", &eager) == GLEX_SUCCESS)
		MPID_nem_glex.eager_max = (intptr_t)eager;
	glex_config_uint("GLEX_MPI_UNEXPECTED_MAX", &unexpected);
	MPID_nem_glex_held_init(unexpected);
	MPID_nem_glex.zero_copy = (int)MPID_nem_glex_setting("GLEX_USE_ZC_RNDV", 1);
	MPID_nem_glex.lend_above =
		MPID_nem_glex.zero_copy ? MPID_nem_glex_setting("GLEX_MPI_RMA_COPY_MAX", INT32_MAX) : SIZE_MAX;
	MPID_nem_glex.rma_direct = (int)MPID_nem_glex_setting("GLEX_MPI_RMA_DIRECT", 1);
	glex_config_uint("GLEX_MPI_RMA_ADOPT", &MPID_nem_glex.rma_adopt);
	MPID_nem_glex.near_above =
		MPID_nem_glex.zero_copy ? MPID_nem_glex_setting("GLEX_MPI_COPY_MAX", INT32_MAX) : SIZE_MAX;
	MPID_nem_glex.part_above = MPID_nem_glex.near_above / 2;
	MPID_nem_glex_pool_init(MPID_nem_glex_setting("GLEX_MPI_PACK_SIZE", 1u << 30) & ~63u,
				MPID_nem_glex_setting("GLEX_MPI_PACK_CHUNKS", 1u << 16));
	MPID_nem_glex.coll_where = (enum MPID_nem_glex_coll_where)MPID_nem_glex_setting("GLEX_MPI_COLL", 2);
	MPID_nem_glex.coll_shape = MPID_nem_glex_setting("GLEX_MPI_COLL_SHAPE", MPID_NEM_GLEX_COLL_AUTO);
	MPID_nem_glex.coll_degree = MPID_nem_glex_setting("GLEX_MPI_COLL_DEGREE", GLEX_COLL_MAX_BRANCH_DEGREE);
	MPID_nem_glex.coll_after = MPID_nem_glex_setting("GLEX_MPI_COLL_AFTER", UINT32_MAX);
	MPID_nem_glex.coll_packets = MPID_nem_glex_setting("GLEX_MPI_COLL_PACKETS", INT32_MAX);
	MPID_nem_glex.coll_row = MPID_nem_glex_setting("GLEX_MPI_COLL_ROW", UINT32_MAX);
	MPID_nem_glex.coll_long = MPID_nem_glex_setting("GLEX_MPI_COLL_LONG", INT32_MAX);
	MPID_nem_glex.coll_stage = MPID_nem_glex_setting("GLEX_MPI_COLL_STAGE", GLEX_GROUP_STAGE_MAX);
	MPID_nem_glex.coll_long_by = MPID_nem_glex_setting("GLEX_MPI_COLL_LONG_BY", GLEX_GROUP_LONG_PASSED);
}

/* Says what could not be had, and what helps; libglex has named the cause before. */
static void MPID_nem_glex_refused(int rank, glex_ret_t ret)
{
	const char *cure = "the lines of glex above say why";
	char host[64] = "";

	if (ret == GLEX_NO_EP_RESOURCE)
		cure = "its NIC has no endpoint or no queue of that size left: fewer ranks a node (GLEX_PPN), or "
		       "smaller "
		       "queues (GLEX_EP_MPQ_SLOTS, GLEX_MPI_SR_CREDITS)";
	else if (ret == GLEX_NO_MEM_RESOURCE)
		cure = "no memory, or no room to register it: a smaller pool (GLEX_EP_MEM_SIZE, GLEX_MPI_SR_BLOCKS), "
		       "or "
		       "higher limits (GLEX_MAX_REGIONS, GLEX_MAX_LOCKED)";
	gethostname(host, sizeof(host) - 1);
	fprintf(stderr, "glex netmod: rank %d on host %s: opening the endpoint: %s; %s\n", rank, host,
		glex_error_str(ret), cure);
	usleep(MPID_NEM_GLEX_LAST_WORDS_US);
}

int MPID_nem_glex_init(MPIDI_PG_t *pg_p, int pg_rank, char **bc_val_p, int *val_max_sz_p)
{
	int mpi_errno = MPI_SUCCESS;
	struct glexch_params params = {0};
	glex_ret_t ret;

	memset(&MPID_nem_glex, 0, sizeof(MPID_nem_glex));
	MPID_nem_glex.pg = pg_p;
	MPID_nem_glex.rank = pg_rank;
	MPID_nem_glex.alone = MPID_nem_mem_region.num_local == 1;
	MPID_nem_glex_settings(&params);
	params.ops = &MPID_nem_glex_ops;
	params.key = GLEX_EP_MAKE_KEY(MPID_nem_glex_pg_hash(pg_p));
	MPID_nem_glex_ep_settings(&params);
	params.peers = (uint32_t)pg_p->size - 1;
	params.header = sizeof(MPIDI_CH3_Pkt_t);
	ret = glexch_open(&params, &MPID_nem_glex.ch);
	if (ret != GLEX_SUCCESS)
		MPID_nem_glex_refused(pg_rank, ret);
	MPIR_ERR_CHKANDJUMP1(ret != GLEX_SUCCESS, mpi_errno, MPI_ERR_OTHER, "**fail", "%s", glex_error_str(ret));
	MPID_nem_glex_stats_init();
	mpi_errno = MPID_nem_glex_same_init();
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPID_nem_glex_coll_init();
	MPIR_ERR_CHECK(mpi_errno);
	mpi_errno = MPID_nem_glex_get_business_card(pg_rank, bc_val_p, val_max_sz_p);
	MPIR_ERR_CHECK(mpi_errno);
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

int MPID_nem_glex_get_business_card(int my_rank, char **bc_val_p, int *val_max_sz_p)
{
	int mpi_errno = MPI_SUCCESS;
	char card[GLEXCH_CARD_MAX], host[64] = "";
	int str_errno;

	gethostname(host, sizeof(host) - 1);
	glexch_card_format(MPID_nem_glex.ch, card);
	str_errno = MPL_str_add_string_arg(bc_val_p, val_max_sz_p, MPID_NEM_GLEX_CARD_KEY, card);
	if (str_errno == MPL_SUCCESS) /* for messages */
		str_errno = MPL_str_add_string_arg(bc_val_p, val_max_sz_p, MPID_NEM_GLEX_HOST_KEY, host);
	if (str_errno == MPL_SUCCESS)
		str_errno = MPID_nem_glex_same_say(bc_val_p, val_max_sz_p);
	MPIR_ERR_CHKANDJUMP(str_errno != MPL_SUCCESS, mpi_errno, MPI_ERR_OTHER, "**buscard");
fn_exit:
	return mpi_errno;
fn_fail:
	goto fn_exit;
}

/* A VC's packets are delivered in the order they were sent: RMA needs no extra acknowledgements. */
int MPID_nem_glex_get_ordering(int *ordering)
{
	*ordering = 1;
	return MPI_SUCCESS;
}

/* Acknowledgements of CH3's close protocol may still be on their way out. */
static void MPID_nem_glex_drain(void)
{
	MPL_time_t start, now;
	double seconds = 0;

	MPL_wtime(&start);
	while (!glexch_quiet(MPID_nem_glex.ch) && seconds < MPID_NEM_GLEX_DRAIN_SECONDS) {
		glexch_progress(MPID_nem_glex.ch);
		MPL_wtime(&now);
		MPL_wtime_diff(&start, &now, &seconds);
	}
	if (!glexch_quiet(MPID_nem_glex.ch))
		fprintf(stderr, "glex netmod: rank %d leaves although a peer has not read all that was sent to it\n",
			MPID_nem_glex.rank);
}

int MPID_nem_glex_finalize(void)
{
	if (!MPID_nem_glex.ch)
		return MPI_SUCCESS;
	MPID_nem_glex_coll_finalize();
	MPID_nem_glex_drain();
	MPID_nem_glex_stats_print();
	MPID_nem_glex_await_nothing();
	MPID_nem_glex_exposed_forget();
	MPID_nem_glex_windows_forget();
	MPID_nem_glex_pool_finalize();
	glexch_close(MPID_nem_glex.ch);
	MPL_free(MPID_nem_glex.places);
	memset(&MPID_nem_glex, 0, sizeof(MPID_nem_glex));
	return MPI_SUCCESS;
}
