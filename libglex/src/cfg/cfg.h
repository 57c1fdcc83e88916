/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfg.h - the configuration: every variable that libglex, glexd, the tools and
 * the layers above read from the environment.
 *
 * A variable is ONE row of the table in table.c and ONE member of struct
 * glexi_cfg.  The row gives the parsing, the warnings, `glex_info -c`, the
 * manual page glex_env(7) and glex_config_uint().  Nobody else calls getenv.
 *
 * The environment is read once a process, at the first glexi_cfg(); what the
 * process changes in it afterwards is not seen.  Everything here may be called
 * by any thread at any time.
 */
#ifndef GLEXI_CFG_H
#define GLEXI_CFG_H

#ifndef GLEXI_BUILD
#error "cfg.h is not for users"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a number that may be left unset, and is. */
#define GLEXI_CFG_UNSET UINT64_MAX

/* GLEX_MEM_MONITOR. */
enum glexi_monitor {
	GLEXI_MONITOR_AUTO,
	GLEXI_MONITOR_HOOKS,
	GLEXI_MONITOR_USERFAULTFD,
	GLEXI_MONITOR_EXPLICIT,
	GLEXI_MONITOR_OFF
};

/* GLEX_ADOPT. */
enum glexi_adopt { GLEXI_ADOPT_AUTO, GLEXI_ADOPT_ALWAYS, GLEXI_ADOPT_NEVER };

/* GLEX_MPI_CHANNEL; the same numbers as enum glexch_mode. */
enum glexi_mpi_channel { GLEXI_MPI_CHANNEL_AUTO, GLEXI_MPI_CHANNEL_SR, GLEXI_MPI_CHANNEL_ER };

/* GLEX_MPI_COLL; the same numbers as enum MPID_nem_glex_coll_where. */
enum glexi_mpi_coll { GLEXI_MPI_COLL_OFF, GLEXI_MPI_COLL_NODES, GLEXI_MPI_COLL_ALL };

/* GLEX_SHARE_FILES. */
enum glexi_share { GLEXI_SHARE_NO, GLEXI_SHARE_SEALED, GLEXI_SHARE_YES };

enum { GLEXI_CFG_ATC_OFF, GLEXI_CFG_ATC_COUNT };

/*
 * The values in force.  Strings are never NULL ("" where unset) and live as
 * long as the process.  Sizes are bytes, times are in the unit of their row,
 * which the member's name repeats.
 */
struct glexi_cfg {
	/* where glexd is, and who we are */
	const char *socket;
	const char *glexd;
	const char *job;
	uint64_t node; /* or GLEXI_CFG_UNSET */
	uint64_t nodes;
	uint64_t ppn;
	uint64_t linger_ms;

	/* waiting and locking */
	uint64_t spin_us;
	uint64_t yield_us;
	int numa; /* auto, off, node 0, node 1, ... */
	bool single_threaded;

	/* moving data */
	uint64_t dma_chunk;
	uint64_t attach_chunk;
	bool mem_attach;
	int share_files; /* enum glexi_share */
	int adopt;	 /* enum glexi_adopt */
	uint64_t adopt_min;
	bool huge_pages;
	uint64_t promote_after;

	/* the registration cache, and how it learns that memory changes */
	int mem_monitor; /* enum glexi_monitor */
	uint64_t rcache_entries;
	uint64_t rcache_bytes;

	/* the model of the NIC and its limits */
	int model_atc;	  /* GLEXI_CFG_ATC_* */
	uint64_t reorder; /* requests; 0: in order */
	uint64_t reorder_seed;
	uint64_t reorder_hold_us;
	uint64_t max_regions;
	uint64_t max_locked; /* 0: no limit */

	/* diagnostics */
	int log_level; /* enum glexi_log_level */
	const char *log_file;
	bool warn_unused;

	/* read by scripts only */
	const char *cache_dir;
	const char *prefix;

	/* the MPI netmod: it reads these by glex_config_uint() */
	int mpi_channel; /* enum glexi_mpi_channel */
	uint64_t mpi_er_channels;
	uint64_t mpi_er_ring_size;
	uint64_t mpi_sr_block_size;
	uint64_t mpi_sr_blocks;
	uint64_t mpi_sr_credits;
	uint64_t mpi_eager_max;
	uint64_t mpi_copy_max;
	uint64_t mpi_rma_copy_max;
	uint64_t mpi_rma_adopt;
	bool mpi_rma_direct;
	uint64_t mpi_unexpected_max;
	uint64_t mpi_pack_size;
	uint64_t mpi_pack_chunks;
	bool mpi_stats;
	int mpi_coll;	    /* enum glexi_mpi_coll */
	int mpi_coll_shape; /* enum glex_group_shape; auto: the netmod's (glex_impl.h) */
	uint64_t mpi_coll_degree;
	uint64_t mpi_coll_after;
	uint64_t mpi_coll_packets;
	uint64_t mpi_coll_row;
	uint64_t mpi_coll_long;
	uint64_t mpi_coll_stage;
	int mpi_coll_long_by;	     /* enum glex_group_long */
	uint64_t eager_max_msg_size; /* or GLEXI_CFG_UNSET */
	bool use_zc_rndv;
	bool bypass_er;
	bool bypass_rdma_write;
	uint64_t ep_type; /* or GLEXI_CFG_UNSET, as the next */
	uint64_t ep_mpq_slots;
	uint64_t pdp_mpq_slots;
	bool ep_hc_mpq;
	bool pdp_hc_mpq;
	bool ep_hc_eq;
	bool ep_hc_mr;
	uint64_t ep_mem_size; /* or GLEXI_CFG_UNSET */

	/* from the launcher; the numbers may be GLEXI_CFG_UNSET */
	uint64_t pmi_rank;
	uint64_t pmi_size;
	uint64_t pmi_fd;
	uint64_t local_rank;
	const char *slurm_job_id;
	const char *slurm_step_id;
};

/*
 * Never NULL.  The call that reads the environment logs what is wrong in it: as
 * a warning, but at level info in ranks other than 0, which have it from there.
 */
const struct glexi_cfg *glexi_cfg(void);

/*
 * For a program that one of ours started with its own environment: that one has
 * warned already, so this one logs at level info.  Before anything else.
 */
void glexi_cfg_inherited(void);

/*
 * The value in force of a number, size, time, bool (0, 1) or choice (its place
 * in the list, from 0) by its variable's name.  False, with *value_p untouched: no such row, a text, or unset.
 */
bool glexi_cfg_uint(const char *name, uint64_t *value_p);

/* ---- the table, for those who print it ----------------------------------- */

enum glexi_cfg_type {
	GLEXI_CFG_STRING,
	GLEXI_CFG_UINT, /* an empty default makes it one that may be unset */
	GLEXI_CFG_SIZE, /* 4096 64K 1M 2G */
	GLEXI_CFG_TIME, /* 500ns 10us 5ms 1s; a bare number is in the row's unit */
	GLEXI_CFG_BOOL, /* y n 1 0 yes no on off true false */
	GLEXI_CFG_ENUM
};

enum glexi_cfg_kind {
	GLEXI_CFG_OWN,	   /* GLEX_*: a bad value is warned about */
	GLEXI_CFG_LAUNCHER /* set by the launcher, not by the user: a bad value counts as unset, silently */
};

enum glexi_cfg_source { GLEXI_CFG_FROM_DEFAULT, GLEXI_CFG_FROM_ENV };

struct glexi_cfg_row {
	const char *name;
	enum glexi_cfg_type type;
	enum glexi_cfg_kind kind;
	const char *def; /* parsed like a value of the user's */
	uint64_t min;	 /* of numbers, in the row's unit */
	uint64_t max;
	const char *unit;	    /* "" where there is none */
	const char *const *choices; /* ENUM: ends with NULL; the value is the index */
	const char *help;	    /* one sentence, first word lower case, no full stop */
	size_t offset;		    /* of the member of struct glexi_cfg */
};

/* Ends with a row whose name is NULL; grouped by subject. */
extern const struct glexi_cfg_row glexi_cfg_table[];

/* Room for any formatted number or range; a longer string value is cut. */
#define GLEXI_CFG_TEXT 256

/* The row's value in *cfg as text that would parse back, "" where unset, into buf.  Returns buf. */
const char *glexi_cfg_format(const struct glexi_cfg *cfg, const struct glexi_cfg_row *row, char *buf, size_t size);

/* Where the value in force comes from.  row must be of the table. */
enum glexi_cfg_source glexi_cfg_source(const struct glexi_cfg_row *row);

/* "1 to 65536", "16K to 1M", "y or n", "error, warn, info"; "" for texts.  Returns buf.  Needs no environment. */
const char *glexi_cfg_range(const struct glexi_cfg_row *row, char *buf, size_t size);

const char *glexi_cfg_type_name(const struct glexi_cfg_row *row);
const char *glexi_cfg_source_name(enum glexi_cfg_source source);

/* ---- the parser by itself, for tests ------------------------------------- */

/* Called with each warning, a line without its end. */
typedef void (*glexi_cfg_warn_fn)(void *arg, const char *text);

/*
 * Fills *cfg from the NULL-terminated environment env (of which it keeps no
 * pointer) and source[] (one entry a row, may be NULL).
 */
void glexi_cfg_parse(struct glexi_cfg *cfg, enum glexi_cfg_source *source, char *const *env, glexi_cfg_warn_fn warn,
		     void *arg);

/* How many rows the table has. */
size_t glexi_cfg_rows(void);

/* Parses text as a value of this row.  False: it is not one, *why_p says why, *member is untouched. */
bool glexi_cfg_parse_value(const struct glexi_cfg_row *row, const char *text, void *member, const char **why_p);

#endif /* GLEXI_CFG_H */
