/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - the rows of the configuration, and how a row describes itself.
 *
 * To add a variable: a member in struct glexi_cfg, a line here.  A type that
 * does not fit the member fails to compile.  Constant data and pure functions:
 * any thread, no environment.
 */
#include "cfg/cfg.h"

#include "cfg/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define K (UINT64_C(1) << 10)
#define M (UINT64_C(1) << 20)
#define G (UINT64_C(1) << 30)

static const char *const log_levels[] = {
	[GLEXI_LOG_ERROR] = "error", [GLEXI_LOG_WARN] = "warn",	  [GLEXI_LOG_INFO] = "info",
	[GLEXI_LOG_DEBUG] = "debug", [GLEXI_LOG_TRACE] = "trace", NULL,
};

static const char *const monitors[] = {
	[GLEXI_MONITOR_AUTO] = "auto",
	[GLEXI_MONITOR_HOOKS] = "hooks",
	[GLEXI_MONITOR_USERFAULTFD] = "userfaultfd",
	[GLEXI_MONITOR_EXPLICIT] = "explicit",
	[GLEXI_MONITOR_OFF] = "off",
	NULL,
};

static const char *const adopt[] = {
	[GLEXI_ADOPT_AUTO] = "auto", [GLEXI_ADOPT_ALWAYS] = "always", [GLEXI_ADOPT_NEVER] = "never", NULL};

static const char *const mpi_channels[] = {
	[GLEXI_MPI_CHANNEL_AUTO] = "auto", [GLEXI_MPI_CHANNEL_SR] = "sr", [GLEXI_MPI_CHANNEL_ER] = "er", NULL};

static const char *const mpi_colls[] = {
	[GLEXI_MPI_COLL_OFF] = "off", [GLEXI_MPI_COLL_NODES] = "nodes", [GLEXI_MPI_COLL_ALL] = "all", NULL};

static const char *const long_ways[] = {"get", "put", NULL};

static const char *const tree_shapes[] = {"kary", "knomial", "direct", "auto", NULL};

static const char *const share_files[] = {
	[GLEXI_SHARE_NO] = "no", [GLEXI_SHARE_SEALED] = "sealed", [GLEXI_SHARE_YES] = "yes", NULL};

static const char *const atc_models[] = {
	[GLEXI_CFG_ATC_OFF] = "off",
	[GLEXI_CFG_ATC_COUNT] = "count",
	NULL,
};

/* auto, off, the number of a node */
static const char *const numa_wishes[] = {"auto", "off", "0",  "1",  "2",  "3",	 "4",  "5",  "6", "7",
					  "8",	  "9",	 "10", "11", "12", "13", "14", "15", NULL};

/* The offset of a member, after a check of its type that costs nothing at run time. */
#define AT(member, ctype)                                                                                              \
	(offsetof(struct glexi_cfg, member) + 0 * sizeof(_Generic(((struct glexi_cfg *)0)->member, ctype : 0)))

#define ROW(name, type, kind, def, min, max, unit, choices, offset, help)                                              \
	{                                                                                                              \
		name, GLEXI_CFG_##type, GLEXI_CFG_##kind, def, min, max, unit, choices, help, offset                   \
	}

#define STRING(name, member, def, help) ROW(name, STRING, OWN, def, 0, 0, "", NULL, AT(member, const char *), help)
#define UINT(name, member, def, min, max, unit, help)                                                                  \
	ROW(name, UINT, OWN, def, min, max, unit, NULL, AT(member, uint64_t), help)
#define SIZE(name, member, def, min, max, help)                                                                        \
	ROW(name, SIZE, OWN, def, min, max, "bytes", NULL, AT(member, uint64_t), help)
#define TIME(name, member, def, min, max, unit, help)                                                                  \
	ROW(name, TIME, OWN, def, min, max, unit, NULL, AT(member, uint64_t), help)
#define BOOL(name, member, def, help) ROW(name, BOOL, OWN, def, 0, 1, "", NULL, AT(member, bool), help)
#define ENUM(name, member, def, choices, help)                                                                         \
	ROW(name, ENUM, OWN, def, 0, sizeof(choices) / sizeof(choices[0]) - 2, "", choices, AT(member, int), help)
#define LAUNCHER_UINT(name, member, help)                                                                              \
	ROW(name, UINT, LAUNCHER, "", 0, UINT32_MAX, "", NULL, AT(member, uint64_t), help)
#define LAUNCHER_STRING(name, member, help)                                                                            \
	ROW(name, STRING, LAUNCHER, "", 0, 0, "", NULL, AT(member, const char *), help)

/* clang-format off */
const struct glexi_cfg_row glexi_cfg_table[] = {
	/* where glexd is, and who we are */
	STRING("GLEX_SOCKET", socket, "",
	       "socket of the glexd to use, a path or @NAME for an abstract one; empty: the private one of this user and job, started when needed"),
	STRING("GLEX_GLEXD", glexd, "", "path of the glexd program to start; empty: the installed one"),
	STRING("GLEX_JOB", job, "",
	       "name of the job; processes of one job share a private glexd; empty: derived from the launcher"),
	UINT("GLEX_NODE", node, "", 0, 65535, "",
	     "number of the emulated node, and so of the NIC, this process sits on; empty: derived from its rank and GLEX_PPN"),
	UINT("GLEX_NODES", nodes, "8", 1, 65536, "nodes",
	     "emulated nodes over which processes without a rank are spread in turn"),
	UINT("GLEX_PPN", ppn, "1", 1, 65536, "ranks", "MPI ranks that sit on one emulated node"),
	TIME("GLEX_LINGER", linger_ms, "100ms", 0, 3600 * 1000, "ms",
	     "how long a private glexd stays after its last client has left"),

	/* waiting and locking */
	TIME("GLEX_SPIN_TIME", spin_us, "50us", 0, 10 * 1000 * 1000, "us",
	     "how long a blocking wait spins before it yields the processor; not at all where processes outnumber the cores they may use"),
	TIME("GLEX_YIELD_TIME", yield_us, "200us", 0, 10 * 1000 * 1000, "us",
	     "how long a blocking wait then yields before it sleeps"),
	ENUM("GLEX_NUMA", numa, "auto", numa_wishes,
	     "auto: glexd puts each endpoint's queues on the NUMA node of its owner's cores and its DMA engine near its clients, on cores that none is bound to; a number: all of it on that node; off: nothing is placed"),
	BOOL("GLEX_SINGLE_THREADED", single_threaded, "n",
	     "only one thread of the process makes GLEX calls: no locks are taken"),

	/* moving data */
	SIZE("GLEX_DMA_CHUNK", dma_chunk, "1M", 4 * K, G,
	     "what the DMA engine of glexd moves for one endpoint before it looks at the next"),
	SIZE("GLEX_ATTACH_CHUNK", attach_chunk, "4M", 4 * K, G, "what one cross-memory attach call moves at most"),
	BOOL("GLEX_MEM_ATTACH", mem_attach, "y",
	     "move private memory by cross-memory attach; n refuses it, as a container may"),
	ENUM("GLEX_SHARE_FILES", share_files, "sealed", share_files,
	     "which shared mappings of the program are mapped by its peers too: none (no), those that cannot become shorter (sealed), or all (yes), where shortening a file in use ends the peers that touch it"),
	ENUM("GLEX_ADOPT", adopt, "auto", adopt,
	     "when private memory is moved into a shared mapping, in place: when cross-memory attach is refused, or it is used often and libglex-memhooks sees what becomes of it (auto); when used often in any case (always); or never"),
	SIZE("GLEX_ADOPT_MIN", adopt_min, "8K", 8 * K, G, "the least memory that is adopted, or counted, for being used often"),
	BOOL("GLEX_HUGE_PAGES", huge_pages, "y",
	     "put private memory that is used often by cross-memory attach into huge pages, in place"),
	UINT("GLEX_PROMOTE_AFTER", promote_after, "8", 1, 1000000, "times",
	     "how often the same memory is registered before it counts as used often"),

	/* the registration cache */
	ENUM("GLEX_MEM_MONITOR", mem_monitor, "auto", monitors,
	     "how it is noticed that memory is unmapped: by libglex-memhooks.so, by userfaultfd, explicit (the program tells), auto (the first of these that works), or off (nothing is cached)"),
	UINT("GLEX_RCACHE_MAX_COUNT", rcache_entries, "1024", 1, 4096, "regions",
	     "regions that a registration cache keeps"),
	SIZE("GLEX_RCACHE_MAX_SIZE", rcache_bytes, "1T", 4 * K, 1024 * G * 1024,
	     "bytes that the regions of a registration cache cover together"),

	/* the model of the NIC and its limits */
	ENUM("GLEX_MODEL_ATC", model_atc, "off", atc_models,
	     "model the NIC's cache of address translations: each access to a region looks its pages up, glex_info -d shows hits and misses; read by glexd"),
	UINT("GLEX_REORDER", reorder, "0", 0, 64, "requests",
	     "deliver mini-packets, PUTs, GETs and their events, and what collective requests send, out of order, as the network may: how many later requests of its endpoint can overtake one (0: none); read by glexd"),
	UINT("GLEX_REORDER_SEED", reorder_seed, "1", 0, UINT64_MAX, "",
	     "which order GLEX_REORDER makes of it: the same seed, the same order within a list; read by glexd"),
	TIME("GLEX_REORDER_HOLD", reorder_hold_us, "50us", 0, 1000 * 1000, "us",
	     "how long GLEX_REORDER holds requests back, at most, when nothing comes that could overtake them; read by glexd"),
	UINT("GLEX_MAX_REGIONS", max_regions, "4096", 1, 4096, "regions",
	     "how many regions this process may have registered at a time; all processes of a node share its 4096"),
	SIZE("GLEX_MAX_LOCKED", max_locked, "0", 0, UINT64_MAX,
	     "how much memory this process may have registered at a time, in whole pages, as ulimit -l on the hardware; 0: no limit"),

	/* diagnostics */
	ENUM("GLEX_LOG_LEVEL", log_level, "warn", log_levels, "the least important kind of message that is printed"),
	STRING("GLEX_LOG_FILE", log_file, "",
	       "file that messages are appended to, %p becoming the process number and %h the host; empty: standard error"),
	BOOL("GLEX_WARN_UNUSED", warn_unused, "y", "warn of variables that begin with GLEX_ and do not exist"),

	/* read by the scripts that come with the source, not by the library: here so that nobody is warned of them */
	STRING("GLEX_CACHE_DIR", cache_dir, "",
	       "where quickstart keeps the build of MPICH; empty: libglex in the user's cache directory"),
	STRING("GLEX_PREFIX", prefix, "", "prefix with bin/mpicc that the tests take MPI from"),

	/* the MPI netmod */
	ENUM("GLEX_MPI_CHANNEL", mpi_channel, "auto", mpi_channels,
	     "how MPI's short messages travel: through queues and blocks that all peers share (sr), through rings that each peer has of its own as far as there is room (er), or rings for the peers that much is sent to (auto)"),
	UINT("GLEX_MAX_ER_CHANNELS", mpi_er_channels, "32", 0, 4096, "peers",
	     "peers that can have rings of their own at a time; 0: none"),
	SIZE("GLEX_MPI_ER_RING_SIZE", mpi_er_ring_size, "0", 0, 256 * K,
	     "size of such a ring, at least 4K, of which it has half where the sender needs a copy of it (endpoints of type NORMAL); 0: 64K; a peer has one in each direction, the same in all processes of a job"),
	SIZE("GLEX_MPI_SR_BLOCK_SIZE", mpi_sr_block_size, "16K", K, M,
	     "size of a block of the channel shared by all peers"),
	UINT("GLEX_MPI_SR_BLOCKS", mpi_sr_blocks, "128", 4, 4096, "blocks",
	     "blocks of the shared channel, half of them for each direction"),
	UINT("GLEX_MPI_SR_CREDITS", mpi_sr_credits, "64", 1, 255, "credits",
	     "mini-packets a peer may have under way at most in the shared channel: it begins with up to 8"),
	SIZE("GLEX_MPI_EAGER_MAX", mpi_eager_max, "64K", 0, 16 * M,
	     "longest message, with MPI's header of 32 bytes, that is sent without asking the receiver first"),
	SIZE("GLEX_MPI_UNEXPECTED_MAX", mpi_unexpected_max, "64M", 0, 64 * G,
	     "memory for messages that have come before their receives; who sends more waits for them, short messages too, until half of it is free: of what MPI_Isend begins then, or has begun, only envelopes come, 1 KB each with at most 256 bytes of data; 0: no limit"),
	UINT("GLEX_EAGER_MAX_MSG_SIZE", eager_max_msg_size, "", 0, 16 * M, "bytes",
	     "the same under the name that job scripts for the machine know; goes before it"),
	SIZE("GLEX_MPI_COPY_MAX", mpi_copy_max, "4K", 256, G,
	     "longest message that is copied on its way whatever its buffer is; longer ones are fetched from where they lie if that is used often, and mapped by the receiver, as is the data of one-sided operations; from where longer ones go, MPI_Isend's and one-sided data from half of this on; but where ranks outnumber processors not those that somebody waits for, of MPI_Send and of collectives"),
	SIZE("GLEX_MPI_RMA_COPY_MAX", mpi_rma_copy_max, "48K", 256, G,
	     "longest contiguous data of a one-sided operation that is copied, if GLEX_MPI_COPY_MAX does not say otherwise; longer is fetched from wherever it lies, as long messages are"),
	BOOL("GLEX_MPI_RMA_DIRECT", mpi_rma_direct, "y",
	     "one-sided operations of MPI on contiguous data, sums on basic types, go straight to the window, without the process that it belongs to, where that is mapped: windows of MPI_Win_allocate, others as GLEX_MPI_RMA_ADOPT says; no: by packets, which the target takes"),
	SIZE("GLEX_MPI_RMA_ADOPT", mpi_rma_adopt, "256K", 0, 4 * G,
	     "longest window of the program's own memory (MPI_Win_create) that is adopted for it when it is made, with the pages it shares with other data (glex_register_mem(3)), which takes up to 3 ms a MiB; of 16 windows at a time; 0: none"),
	SIZE("GLEX_MPI_PACK_SIZE", mpi_pack_size, "64K", 4 * K, 4 * M,
	     "long messages whose data is not contiguous are packed and unpacked in chunks of this size"),
	UINT("GLEX_MPI_PACK_CHUNKS", mpi_pack_chunks, "32", 2, 1024, "chunks",
	     "such chunks that a process keeps, half of them for sending; a message that finds none free waits for one, to be sent for a short while only"),
	BOOL("GLEX_USE_ZC_RNDV", use_zc_rndv, "y",
	     "let the receiver of a long message fetch it from the sender's buffer into its own; n: longer ones are copied too, in blocks"),
	BOOL("GLEX_BYPASS_ER", bypass_er, "n", "let no peer have rings of its own, whatever GLEX_MPI_CHANNEL says"),
	BOOL("GLEX_BYPASS_RDMA_WRITE_CHANNEL", bypass_rdma_write, "n", "the older name of GLEX_BYPASS_ER"),
	UINT("GLEX_EP_TYPE", ep_type, "", 0, 2, "",
	     "type of MPI's endpoint: 0 fast, 1 normal (a DMA engine executes requests), 2 emulated; another where none of it is free; empty: 0"),
	UINT("GLEX_EP_MPQ_SLOTS", ep_mpq_slots, "", 1, 1024 * 1024, "mini-packets",
	     "room in the mini-packet queue of MPI's endpoint, never less than the peers may have under way; empty: for them, and some to grow"),
	BOOL("GLEX_EP_HC_MPQ", ep_hc_mpq, "n",
	     "make that queue one of high capacity also where a normal one would do"),
	BOOL("PDP_GLEX_USE_HC_MPQ", pdp_hc_mpq, "n", "the older name of GLEX_EP_HC_MPQ"),
	UINT("PDP_GLEX_HC_MPQ_L1_CAPACITY", pdp_mpq_slots, "", 1, 1024 * 1024, "mini-packets",
	     "room in the first level of a high-capacity queue; the emulated one has no other: as GLEX_EP_MPQ_SLOTS, which goes before it"),
	BOOL("GLEX_EP_HC_EQ", ep_hc_eq, "n", "the same for the event queue"),
	BOOL("GLEX_EP_HC_MR", ep_hc_mr, "n",
	     "mark the endpoint's key as one of the large memory table; the emulated NIC has one table for all keys"),
	SIZE("GLEX_EP_MEM_SIZE", ep_mem_size, "", 64 * K, 2 * G,
	     "registered memory for the blocks of the shared channel, both directions together; goes before GLEX_MPI_SR_BLOCKS"),
	ENUM("GLEX_MPI_COLL", mpi_coll, "all", mpi_colls,
	     "which collectives of MPI the NICs run (barrier, broadcasts that are short or, by GLEX_MPI_COLL_LONG, long, short reductions and, of up to 16 ranks without a tree, gathers of up to 112 bytes of each and, by GLEX_MPI_COLL_STAGE, longer reductions and gathers, and exchanges): off: none; nodes: those among ranks that share no memory, such as one of each node; all: those of any communicator; the same in all processes of a job, as all of this name"),
	ENUM("GLEX_MPI_COLL_SHAPE", mpi_coll_shape, "auto", tree_shapes,
	     "shape of the tree that a communicator's NICs form; direct, auto: none up to 64 ranks, kary for more, which auto leaves to MPICH where ranks outnumber processors"),
	UINT("GLEX_MPI_COLL_DEGREE", mpi_coll_degree, "8", 2, 32, "branches",
	     "children of a member of that tree (kary), or the base of its number's digits (knomial)"),
	UINT("GLEX_MPI_COLL_AFTER", mpi_coll_after, "100", 1, 1000000000, "calls",
	     "which such call on a communicator makes its tree; earlier ones are MPICH's: without a tree it takes an endpoint, some 13 KiB in each process (17 for 16 ranks, 35 for 64), with one two, 150 KiB, and a millisecond or more"),
	UINT("GLEX_MPI_COLL_PACKETS", mpi_coll_packets, "1", 1, 65536, "packets",
	     "the longest such broadcast or reduction, in packets of 112 bytes, of a reduction 6 numbers; without a tree a reduction of 392 bytes of three or four ranks, 224 of up to eight, 112 of up to 16, 224 of more, twice as much to all, and of two ranks 112, 504 to both; packets go one after the other"),
	UINT("GLEX_MPI_COLL_ROW", mpi_coll_row, "64", 0, 1000000000, "calls",
	     "so many short broadcasts from the same root, one behind the other, are run by the NICs where there is no tree and no two ranks share memory, and those behind them by MPICH, whose messages run further ahead, until the NICs have run another collective of the communicator; so are reductions and gathers to the same root, of 5 to 8 ranks those of more than 56 bytes, of 9 to 16 of more than 24, and reductions of more ranks; 0: all are run by the NICs"),
	SIZE("GLEX_MPI_COLL_LONG", mpi_coll_long, "8K", 0, G,
	     "the shortest broadcast that a tree's members fetch from the root's buffer, up to 1 GiB, if they are more than two; two fetch from four times that on; 0: none"),
	ENUM("GLEX_MPI_COLL_LONG_BY", mpi_coll_long_by, "get", long_ways,
	     "how such a broadcast gets to all: each member fetches it from the root (get), so that all copy at a time, or where there is a tree it is passed down by its NICs in parts (put), which need nobody's processor for it, and send no more each than its branches take"),
	SIZE("GLEX_MPI_COLL_STAGE", mpi_coll_stage, "256K", 0, 16 * M,
	     "half the memory that each of up to 16 ranks without a tree keeps for what the others send of reductions that are longer than a part (GLEX_MPI_COLL_PACKETS; to one rank, than 2 KiB), gathers to all that are longer than a packet of each or differ in length, and exchanges of all with all, from the first such on a communicator, and the longest of these, counting the blocks of all (where they differ as if all were as long as the longest; of gathers and exchanges of two ranks up to 16 KiB each); 0: none, MPICH does them"),
	BOOL("GLEX_MPI_STATS", mpi_stats, "n",
	     "print, when MPI ends, what each rank sent in which way, and what it waited for"),

	/* from the launcher */
	LAUNCHER_UINT("PMI_RANK", pmi_rank, "rank of the process"),
	LAUNCHER_UINT("PMI_SIZE", pmi_size, "how many processes the job has"),
	LAUNCHER_UINT("PMI_FD", pmi_fd, "descriptor of the connection to the process manager"),
	LAUNCHER_UINT("MPI_LOCALRANKID", local_rank, "rank of the process among those of this machine"),
	LAUNCHER_STRING("SLURM_JOB_ID", slurm_job_id, "number of the Slurm job; part of the default of GLEX_JOB"),
	LAUNCHER_STRING("SLURM_STEP_ID", slurm_step_id, "number of its step; part of the default of GLEX_JOB"),

	{.name = NULL},
};
/* clang-format on */

size_t glexi_cfg_rows(void)
{
	return sizeof(glexi_cfg_table) / sizeof(glexi_cfg_table[0]) - 1;
}

const char *glexi_cfg_type_name(const struct glexi_cfg_row *row)
{
	static const char *const names[] = {
		[GLEXI_CFG_STRING] = "text", [GLEXI_CFG_UINT] = "number", [GLEXI_CFG_SIZE] = "size",
		[GLEXI_CFG_TIME] = "time",   [GLEXI_CFG_BOOL] = "bool",	  [GLEXI_CFG_ENUM] = "choice",
	};

	return names[row->type];
}

const char *glexi_cfg_source_name(enum glexi_cfg_source source)
{
	return source == GLEXI_CFG_FROM_ENV ? "env" : "default";
}

/* The largest suffix that leaves no rest, so that the text parses back to the same number. */
static void format_size(uint64_t value, char *buf, size_t size)
{
	static const char suffix[] = "KMGT";
	int power = -1;

	while (value != 0 && value % K == 0 && power < 3) {
		value /= K;
		power++;
	}
	if (power < 0)
		snprintf(buf, size, "%" PRIu64, value);
	else
		snprintf(buf, size, "%" PRIu64 "%c", value, suffix[power]);
}

/* Likewise; unit is that of the value. */
static void format_time(uint64_t value, const char *unit, char *buf, size_t size)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	size_t i = 0;

	while (i < 3 && strcmp(units[i], unit))
		i++;
	while (i < 3 && value != 0 && value % 1000 == 0) {
		value /= 1000;
		i++;
	}
	snprintf(buf, size, "%" PRIu64 "%s", value, units[i]);
}

static void format_number(const struct glexi_cfg_row *row, uint64_t value, char *buf, size_t size)
{
	if (row->type == GLEXI_CFG_SIZE)
		format_size(value, buf, size);
	else if (row->type == GLEXI_CFG_TIME)
		format_time(value, row->unit, buf, size);
	else
		snprintf(buf, size, "%" PRIu64, value);
}

static void join_choices(const struct glexi_cfg_row *row, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; row->choices[i] && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", row->choices[i]);
}

const char *glexi_cfg_range(const struct glexi_cfg_row *row, char *buf, size_t size)
{
	char min[32], max[32];

	switch (row->type) {
	case GLEXI_CFG_STRING:
		buf[0] = '\0';
		break;
	case GLEXI_CFG_BOOL:
		snprintf(buf, size, "y or n");
		break;
	case GLEXI_CFG_ENUM:
		join_choices(row, buf, size);
		break;
	default:
		if (row->min == 0) /* needs no unit */
			strcpy(min, "0");
		else
			format_number(row, row->min, min, sizeof(min));
		format_number(row, row->max, max, sizeof(max));
		snprintf(buf, size, "%s to %s", min, max);
	}
	return buf;
}

const char *glexi_cfg_format(const struct glexi_cfg *cfg, const struct glexi_cfg_row *row, char *buf, size_t size)
{
	const void *member = (const char *)cfg + row->offset;
	uint64_t number;

	switch (row->type) {
	case GLEXI_CFG_STRING:
		snprintf(buf, size, "%s", *(const char *const *)member);
		break;
	case GLEXI_CFG_BOOL:
		snprintf(buf, size, "%s", *(const bool *)member ? "y" : "n");
		break;
	case GLEXI_CFG_ENUM:
		snprintf(buf, size, "%s", row->choices[*(const int *)member]);
		break;
	default:
		number = *(const uint64_t *)member;
		if (number == GLEXI_CFG_UNSET)
			buf[0] = '\0';
		else
			format_number(row, number, buf, size);
	}
	return buf;
}
