/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_stats.c - what the netmod and its channel did: a table at finalize
 * (GLEX_MPI_STATS), and performance variables of MPI_T.
 *
 * The variables are read where they are counted, so they cost nothing and need no
 * build option of MPICH.  They are registered once a process: MPI_T keeps them.
 */
#include "glex_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* ---- the table ----------------------------------------------------------- */

#define MPID_NEM_GLEX_TABLE 4096

struct MPID_nem_glex_text {
	char buf[MPID_NEM_GLEX_TABLE];
	size_t len;
};

static void __attribute__((format(printf, 2, 3)))
MPID_nem_glex_say(struct MPID_nem_glex_text *text, const char *format, ...)
{
	size_t room = sizeof(text->buf) - text->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->buf + text->len, room, format, args);
	va_end(args);
	text->len += n > 0 && (size_t)n < room ? (size_t)n : 0;
}

/* One line; none if there is nothing to tell. */
static void MPID_nem_glex_row(struct MPID_nem_glex_text *text, const char *name, const uint64_t counts[GLEXCH_SIZES],
			      uint64_t bytes)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < GLEXCH_SIZES; i++)
		sum += counts[i];
	if (!sum)
		return;
	MPID_nem_glex_say(text, "  %-18s %10" PRIu64 " %14" PRIu64, name, sum, bytes);
	for (i = 0; i < GLEXCH_SIZES; i++)
		MPID_nem_glex_say(text, " %9" PRIu64, counts[i]);
	MPID_nem_glex_say(text, "\n");
}

static void MPID_nem_glex_table(struct MPID_nem_glex_text *text)
{
	static const char *const ways[GLEXCH_WAYS] = {"in mini-packets", "in shared blocks", "by immediate PUT",
						      "by PUT",		 "fetched, no copy", "put, no copy"};
	const struct MPID_nem_glex_stats *mpi = &MPID_nem_glex.stats;
	const struct glexch_stats *st = glexch_stats(MPID_nem_glex.ch);
	struct glex_ep_attr ep;
	char host[64] = "";
	uint64_t pool;
	int way;

	gethostname(host, sizeof(host) - 1);
	MPID_nem_glex_say(text, "glex: rank %d on %s, process %d\n", MPID_nem_glex.rank, host, (int)getpid());
	glexch_describe(MPID_nem_glex.ch, &ep, &pool);
	MPID_nem_glex_say(text, "  endpoint type %d, key %#x, MPQ %u%s, EQ %u%s; blocks %" PRIu64 " KiB\n", ep.type,
			  ep.key, ep.mpq_capacity, ep.mpq_type == GLEX_MPQ_TYPE_HIGH_CAPACITY ? " (HC)" : "",
			  ep.eq_capacity, ep.eq_type == GLEX_EQ_TYPE_HIGH_CAPACITY ? " (HC)" : "", pool >> 10);
	MPID_nem_glex_say(text, "  %-18s %10s %14s %9s %9s %9s %9s %9s %9s %9s %9s\n", "", "number", "bytes", "to 64",
			  "256", "1 Ki", "4 Ki", "16 Ki", "64 Ki", "1 Mi", "more");
	MPID_nem_glex_row(text, "MPI packets", mpi->eager, mpi->eager_bytes);
	MPID_nem_glex_row(text, "rendezvous", mpi->rndv, mpi->rndv_bytes);
	MPID_nem_glex_row(text, "messages, lent", mpi->near, mpi->near_bytes);
	MPID_nem_glex_row(text, "one-sided, lent", mpi->lent, mpi->lent_bytes);
	MPID_nem_glex_row(text, "one-sided, put", mpi->put, mpi->put_bytes);
	MPID_nem_glex_row(text, "one-sided, got", mpi->got, mpi->got_bytes);
	MPID_nem_glex_row(text, "one-sided, summed", mpi->summed, mpi->summed_bytes);
	for (way = 0; way < GLEXCH_WAYS; way++)
		MPID_nem_glex_row(text, ways[way], st->sent[way], st->bytes[way]);
	MPID_nem_glex_say(text,
			  "  peers %" PRIu64 ", lost %" PRIu64 "; exclusive rings opened %" PRIu64 ", refused %" PRIu64
			  ", closed %" PRIu64 "\n",
			  st->peers, st->peers_failed, st->er_opened, st->er_refused, st->er_closed);
	MPID_nem_glex_say(text,
			  "  waited for credits %" PRIu64 ", for room %" PRIu64 "; credit packets %" PRIu64
			  "; arrived out of order %" PRIu64 "\n",
			  st->credit_waits, st->room_waits, st->credit_mps, st->reordered);
	MPID_nem_glex_say(text,
			  "  registration cache hits %" PRIu64 ", misses %" PRIu64
			  "; rendezvous that found no room %" PRIu64 ", copied %" PRIu64 ", streamed %" PRIu64 "\n",
			  st->cache_hits, st->cache_misses, st->expose_refused, mpi->copied, mpi->streamed);
	MPID_nem_glex_say(text,
			  "  not contiguous: packed %" PRIu64 ", unpacked %" PRIu64 ", in chunks %" PRIu64
			  ", of them at a time %" PRIu64 " KiB\n",
			  mpi->packed, mpi->unpacked, mpi->chunks, mpi->chunks_max >> 10);
	MPID_nem_glex_say(text,
			  "  sends had to wait for their receives %" PRIu64 " times, those of peers %" PRIu64 "\n",
			  mpi->held, mpi->holds);
	MPID_nem_glex_say(
		text,
		"  collectives by the NIC: barriers %" PRIu64 ", broadcasts %" PRIu64 " (of them long %" PRIu64
		"), reductions %" PRIu64 " (of them long %" PRIu64 "), gathers %" PRIu64 " (of them long %" PRIu64
		"), exchanges %" PRIu64 "; trees %" PRIu64 ", refused %" PRIu64 "\n",
		mpi->coll[MPID_NEM_GLEX_BARRIER], mpi->coll[MPID_NEM_GLEX_BCAST], mpi->coll_long[MPID_NEM_GLEX_BCAST],
		mpi->coll[MPID_NEM_GLEX_REDUCE] + mpi->coll[MPID_NEM_GLEX_SCATTER],
		mpi->coll_long[MPID_NEM_GLEX_REDUCE] + mpi->coll_long[MPID_NEM_GLEX_SCATTER],
		mpi->coll[MPID_NEM_GLEX_GATHER], mpi->coll_long[MPID_NEM_GLEX_GATHER],
		mpi->coll[MPID_NEM_GLEX_ALLTOALL] + mpi->coll[MPID_NEM_GLEX_ALLTOALLV], mpi->coll_trees,
		mpi->coll_refused);
}

/* In one piece, so that the tables of the ranks do not mix. */
void MPID_nem_glex_stats_print(void)
{
	static struct MPID_nem_glex_text text;
	uint64_t wanted = 0;

	if (glex_config_uint("GLEX_MPI_STATS", &wanted) != GLEX_SUCCESS || !wanted)
		return;
	text.len = 0;
	MPID_nem_glex_table(&text);
	fwrite(text.buf, 1, text.len, stderr);
	fflush(stderr);
}

/* ---- MPI_T --------------------------------------------------------------- */

struct MPID_nem_glex_pvar {
	const char *name;
	int of_channel; /* else of MPID_nem_glex.stats */
	size_t offset;
	unsigned count; /* so many in a row, added up */
	int elements;	/* or, if more than one, as they are */
	const char *desc;
};

#define CHANNEL(member) 1, offsetof(struct glexch_stats, member), 1, 1
#define OF_MPI(member)	0, offsetof(struct MPID_nem_glex_stats, member), 1, 1
#define STAGED                                                                                                         \
	0, offsetof(struct MPID_nem_glex_stats, coll_long[MPID_NEM_GLEX_REDUCE]),                                      \
		MPID_NEM_GLEX_KINDS - MPID_NEM_GLEX_REDUCE, 1
#define SUM_OF_CHANNEL(member)	   1, offsetof(struct glexch_stats, member), GLEXCH_SIZES, 1
#define SUM_OF_MPI(member)	   0, offsetof(struct MPID_nem_glex_stats, member), GLEXCH_SIZES, 1
#define BY_SIZE_OF_CHANNEL(member) 1, offsetof(struct glexch_stats, member), GLEXCH_SIZES, GLEXCH_SIZES
#define BY_SIZE_OF_MPI(member)	   0, offsetof(struct MPID_nem_glex_stats, member), GLEXCH_SIZES, GLEXCH_SIZES
#define CLASSES			   ", by length: to 64, 256, 1 Ki, 4 Ki, 16 Ki, 64 Ki, 1 Mi bytes, more"

static const struct MPID_nem_glex_pvar MPID_nem_glex_pvars[] = {
	{"glex_packets", SUM_OF_MPI(eager), "MPI packets sent"},
	{"glex_packet_bytes", OF_MPI(eager_bytes), "bytes of their data"},
	{"glex_rendezvous", SUM_OF_MPI(rndv), "messages sent by rendezvous"},
	{"glex_rendezvous_bytes", OF_MPI(rndv_bytes), "their bytes"},
	{"glex_lent", SUM_OF_MPI(lent), "one-sided operations whose data was fetched by the peer"},
	{"glex_lent_bytes", OF_MPI(lent_bytes), "their bytes"},
	{"glex_rma_puts", SUM_OF_MPI(put), "MPI_Put and its like that were over with the call"},
	{"glex_rma_put_bytes", OF_MPI(put_bytes), "their bytes"},
	{"glex_rma_gets", SUM_OF_MPI(got), "MPI_Get and its like that were over with the call"},
	{"glex_rma_get_bytes", OF_MPI(got_bytes), "their bytes"},
	{"glex_rma_sums", SUM_OF_MPI(summed),
	 "MPI_Accumulate, MPI_Fetch_and_op and their like that were over with the call"},
	{"glex_rma_sum_bytes", OF_MPI(summed_bytes), "their bytes"},
	{"glex_near", SUM_OF_MPI(near), "messages whose data was fetched by the peer, whether it was asked for or not"},
	{"glex_near_bytes", OF_MPI(near_bytes), "their bytes"},
	{"glex_rendezvous_packed", OF_MPI(packed), "rendezvous whose data had to be packed"},
	{"glex_rendezvous_unpacked", OF_MPI(unpacked), "rendezvous received whose data had to be unpacked"},
	{"glex_rendezvous_chunks", OF_MPI(chunks), "chunks they were packed into and unpacked from"},
	{"glex_rendezvous_chunk_bytes", OF_MPI(chunks_max), "bytes of such chunks in use at a time, at most"},
	{"glex_rendezvous_copied", OF_MPI(copied),
	 "rendezvous whose data had to be copied to where peers can reach it"},
	{"glex_rendezvous_streamed", OF_MPI(streamed), "rendezvous whose data could not be registered"},
	{"glex_held", OF_MPI(held), "times that a peer had sends wait for their receives"},
	{"glex_holds", OF_MPI(holds), "times that the sends of a peer were made to"},
	{"glex_coll_barriers", OF_MPI(coll[MPID_NEM_GLEX_BARRIER]), "barriers run by the NIC"},
	{"glex_coll_bcasts", OF_MPI(coll[MPID_NEM_GLEX_BCAST]), "broadcasts run by the NIC"},
	{"glex_coll_staged", STAGED, "reductions, gathers and exchanges through memory that ranks keep for each other"},
	{"glex_coll_long", OF_MPI(coll_long[MPID_NEM_GLEX_BCAST]),
	 "broadcasts fetched from the root's buffer, or passed down the tree"},
	{"glex_coll_reductions", OF_MPI(coll[MPID_NEM_GLEX_REDUCE]), "reductions run by the NIC"},
	{"glex_coll_gathers", OF_MPI(coll[MPID_NEM_GLEX_GATHER]), "gathers, to one rank or to all, run by the NIC"},
	{"glex_coll_scatters", OF_MPI(coll[MPID_NEM_GLEX_SCATTER]), "reductions of a block for each, run by the NIC"},
	{"glex_coll_exchanges", OF_MPI(coll[MPID_NEM_GLEX_ALLTOALL]), "exchanges of a block of each for each"},
	{"glex_coll_exchanges_any", OF_MPI(coll[MPID_NEM_GLEX_ALLTOALLV]),
	 "exchanges, and gathers to all, of blocks that may differ in length"},
	{"glex_coll_trees", OF_MPI(coll_trees), "communicators that have a tree of NICs"},
	{"glex_coll_refused", OF_MPI(coll_refused),
	 "communicators that have none: some rank had no room, or ranks outnumber processors"},
	{"glex_sr_mps", SUM_OF_CHANNEL(sent[GLEXCH_WAY_SR_MP]), "mini-packets with data"},
	{"glex_sr_mp_bytes", CHANNEL(bytes[GLEXCH_WAY_SR_MP]), "bytes sent in them"},
	{"glex_sr_blocks", SUM_OF_CHANNEL(sent[GLEXCH_WAY_SR_BLOCK]), "blocks sent"},
	{"glex_sr_block_bytes", CHANNEL(bytes[GLEXCH_WAY_SR_BLOCK]), "bytes sent in them"},
	{"glex_er_imms", SUM_OF_CHANNEL(sent[GLEXCH_WAY_ER_IMM]), "immediate PUTs into exclusive rings"},
	{"glex_er_imm_bytes", CHANNEL(bytes[GLEXCH_WAY_ER_IMM]), "bytes sent by them"},
	{"glex_er_puts", SUM_OF_CHANNEL(sent[GLEXCH_WAY_ER_PUT]), "PUTs into exclusive rings"},
	{"glex_er_put_bytes", CHANNEL(bytes[GLEXCH_WAY_ER_PUT]), "bytes sent by them"},
	{"glex_gets", SUM_OF_CHANNEL(sent[GLEXCH_WAY_GET]), "messages fetched without a copy"},
	{"glex_get_bytes", CHANNEL(bytes[GLEXCH_WAY_GET]), "their bytes"},
	{"glex_puts", SUM_OF_CHANNEL(sent[GLEXCH_WAY_PUT]), "messages put into their receives by the sender"},
	{"glex_put_bytes", CHANNEL(bytes[GLEXCH_WAY_PUT]), "their bytes"},
	{"glex_peers", CHANNEL(peers), "connections opened"},
	{"glex_credit_waits", CHANNEL(credit_waits), "packets that waited for a credit"},
	{"glex_room_waits", CHANNEL(room_waits), "packets that waited for a block or the NIC's queue"},
	{"glex_reordered", CHANNEL(reordered), "packets that arrived before one sent earlier"},
	{"glex_cache_hits", CHANNEL(cache_hits), "hits of the registration cache"},
	{"glex_cache_misses", CHANNEL(cache_misses), "misses of the registration cache"},
	{"glex_peers_lost", CHANNEL(peers_failed), "peers that died, or cannot be reached any more"},
	{"glex_credit_packets", CHANNEL(credit_mps), "mini-packets that only brought credits"},
	{"glex_rings_opened", CHANNEL(er_opened), "exclusive rings opened"},
	{"glex_rings_refused", CHANNEL(er_refused), "exclusive rings that the peer had no room for"},
	{"glex_rings_closed", CHANNEL(er_closed), "exclusive rings handed back"},
	{"glex_rendezvous_no_room", CHANNEL(expose_refused),
	 "rendezvous that found the memory table full, or a limit reached"},
	{"glex_packets_by_size", BY_SIZE_OF_MPI(eager), "MPI packets sent" CLASSES},
	{"glex_rendezvous_by_size", BY_SIZE_OF_MPI(rndv), "messages sent by rendezvous" CLASSES},
	{"glex_lent_by_size", BY_SIZE_OF_MPI(lent), "one-sided operations whose data was fetched by the peer" CLASSES},
	{"glex_rma_puts_by_size", BY_SIZE_OF_MPI(put), "MPI_Put and its like that were over with the call" CLASSES},
	{"glex_rma_gets_by_size", BY_SIZE_OF_MPI(got), "MPI_Get and its like that were over with the call" CLASSES},
	{"glex_near_by_size", BY_SIZE_OF_MPI(near),
	 "messages whose data was fetched by the peer, whether it was asked for or not" CLASSES},
	{"glex_sr_mps_by_size", BY_SIZE_OF_CHANNEL(sent[GLEXCH_WAY_SR_MP]), "mini-packets with data" CLASSES},
	{"glex_sr_blocks_by_size", BY_SIZE_OF_CHANNEL(sent[GLEXCH_WAY_SR_BLOCK]), "blocks sent" CLASSES},
	{"glex_er_imms_by_size", BY_SIZE_OF_CHANNEL(sent[GLEXCH_WAY_ER_IMM]),
	 "immediate PUTs into exclusive rings" CLASSES},
	{"glex_er_puts_by_size", BY_SIZE_OF_CHANNEL(sent[GLEXCH_WAY_ER_PUT]), "PUTs into exclusive rings" CLASSES},
	{"glex_gets_by_size", BY_SIZE_OF_CHANNEL(sent[GLEXCH_WAY_GET]), "messages fetched without a copy" CLASSES},
	{"glex_puts_by_size", BY_SIZE_OF_CHANNEL(sent[GLEXCH_WAY_PUT]),
	 "messages put into their receives by the sender" CLASSES},
};

static void MPID_nem_glex_pvar_read(void *addr, void *obj, int count, void *buf)
{
	const struct MPID_nem_glex_pvar *pvar = addr;
	unsigned long long *out = buf;
	const uint64_t *p;
	unsigned i;

	memset(out, 0, (size_t)pvar->elements * sizeof(*out));
	if (MPID_nem_glex.ch) { /* a tool may ask at any time */
		p = pvar->of_channel ? (const void *)glexch_stats(MPID_nem_glex.ch)
				     : (const void *)&MPID_nem_glex.stats;
		p += pvar->offset / sizeof(*p);
		for (i = 0; i < pvar->count; i++)
			out[pvar->elements > 1 ? i : 0] += p[i];
	}
}

void MPID_nem_glex_stats_init(void)
{
	static int registered;
	size_t i;

	if (registered)
		return;
	registered = 1;
	for (i = 0; i < sizeof(MPID_nem_glex_pvars) / sizeof(MPID_nem_glex_pvars[0]); i++)
		MPIR_T_PVAR_REGISTER_impl(MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG, MPID_nem_glex_pvars[i].name,
					  (void *)&MPID_nem_glex_pvars[i], MPID_nem_glex_pvars[i].elements,
					  MPI_T_ENUM_NULL, MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT,
					  MPIR_T_PVAR_FLAG_READONLY | MPIR_T_PVAR_FLAG_CONTINUOUS,
					  MPID_nem_glex_pvar_read, NULL, "GLEX", MPID_nem_glex_pvars[i].desc);
}
