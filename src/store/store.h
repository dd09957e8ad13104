/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - the embedded engine: a write-ahead log, a head in memory for each tenant, and blocks.
 *
 *   append ─▶ wal (group commit) ─▶ acknowledged ─▶ applier ─▶ head ─▶ cut ─▶ block, level 0
 *                                                                              │ compaction
 *   select ◀─────────────────────── head + blocks ◀────────────────────────────┘ retention
 *
 *   DIR/LOCK             flock of the process that has it
 *   DIR/store.json       format version, seed of content hashes
 *   DIR/wal/N.log        store/wal.h
 *   DIR/blocks/TENANT/ID.kb   store/block.h
 *   DIR/symbols/TENANT/BUILD_ID
 *   DIR/aside/           damaged files, moved here and reported: store/aside.h
 *
 * Threads: one applier owns the heads (readers take its lock), one keeper cuts, compacts, and
 * retires; everything else as engine.h.
 */
#ifndef KILN_STORE_STORE_H
#define KILN_STORE_STORE_H

#include "base/log.h"
#include "base/metric.h"
#include "base/pool.h"
#include "core/builder.h"
#include "store/block.h"
#include "store/engine.h"
#include "store/io.h"
#include "store/wal.h"

enum { KILN_STORE_VERSION = 1 };

struct kiln_retention {
    uint64_t age_ns;       /* 0: 14 days */
    uint64_t bytes;        /* of all blocks; 0: no limit */
    uint32_t disk_percent; /* of the file system that may be used; 0: 80 */
};

/* Other limits for a tenant, or for a service of it; store/retain.h says which one counts. */
struct kiln_retention_rule {
    const char *tenant;  /* NULL: any */
    const char *service; /* NULL: all of the tenant */
    uint64_t age_ns;
    uint64_t bytes;
};

/*
 * Makes what was kept with a recipe what it was when it was appended (pipeline's
 * kiln_recipe_follow); the batch may point into `content`.
 */
typedef int kiln_follow(struct kiln_str recipe, struct kiln_str content, struct kiln_builder *b,
                        struct kiln_err *err);

struct kiln_store_opts {
    struct kiln_io *io;           /* borrowed; open before, closed after */
    struct kiln_pool *pool;       /* head, cuts, compaction; NULL: 256 MiB */
    struct kiln_pool *query_pool; /* what was read of blocks and may be asked for again, as far as
                                     nobody else needs it; NULL: `pool` */
    struct kiln_retention retention;
    const struct kiln_retention_rule *rules;
    uint32_t n_rules;
    const struct kiln_series_rule *series_rule; /* NULL: the default */
    uint32_t series_max;                        /* of a tenant; 0: 250,000 */
    uint64_t cut_raw_bytes;  /* memory of decoded batches since the first profile of a head, which
                                a start would replay, that makes a cut; 0: 128 MiB */
    uint64_t cut_age_ns;     /* of the oldest thing in the head; 0: 10 minutes */
    uint64_t lag_wait_ns;    /* how far the applier may be behind before appends wait for it, */
    uint64_t lag_max_ns;     /* and before they are refused; 0: 250 ms, 2 s */
    uint64_t min_free_bytes; /* of the disk: refuse appends below; 0: 64 MiB */
    /* NULL: nothing is kept with a recipe, and a store that has such records in its log is not
     * opened. */
    kiln_follow *follow;
    bool read_only; /* the log is replayed, nothing is written: for `kiln store` */
    struct kiln_store_opening *opening; /* borrowed until it is open; NULL: nothing looks */
    bool no_background;          /* cut and compact only when told: for tests and `kiln store` */
    kiln_block_verifier *verify; /* what reads a new block back; NULL: kiln_block_verify_within() */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

/* An opening under way: what other threads see of it, and what ends it. */
struct kiln_store_opening {
    struct kiln_wal_progress log;
    bool (*is_cancelled)(void *context); /* asked often, on the thread that opens */
    void *context;
};

/* Opens or makes a store; replays the log.  A newer format is refused in one sentence.  -ECANCELED:
 * `opening` cancelled it; the log is there for the next one. */
KILN_CHECK int kiln_store_open(const struct kiln_store_opts *opts, struct kiln_engine **ret_engine,
                               struct kiln_err *err);

/* ---- beyond the engine: for its keeper, `kiln store` and tests ---- */

/* Waits until everything acknowledged before is in the heads, however long that takes: not for
 * queries. */
void kiln_store_settle(struct kiln_engine *engine);
/*
 * Whether an append could become durable now: 0, or why not.  Writes, syncs and removes a small
 * file of the log's directory, at most every two seconds.  From any thread.
 */
KILN_CHECK int kiln_store_probe(struct kiln_engine *engine, struct kiln_err *err);
/* Cuts all heads into blocks and trims the log. */
KILN_CHECK int kiln_store_flush(struct kiln_engine *engine, struct kiln_err *err);
/* One round of compaction (`all`: until nothing is left to merge), and of retention at `now_ns`. */
KILN_CHECK int kiln_store_compact(struct kiln_engine *engine, bool all, struct kiln_err *err);
KILN_CHECK int kiln_store_retire(struct kiln_engine *engine, uint64_t now_ns, struct kiln_err *err);
/* Hard links (else copies) of a consistent state into DIR/`name`; on a live store. */
KILN_CHECK int kiln_store_backup(struct kiln_engine *engine, const char *target_dir,
                                 struct kiln_err *err);
/* The same into the directory `name` in `dir`; the name may come from a stranger. */
KILN_CHECK int kiln_store_backup_in(struct kiln_engine *engine, const char *dir, const char *name,
                                    struct kiln_err *err);

#endif /* KILN_STORE_STORE_H */
