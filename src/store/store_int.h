/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_int - the inside of the embedded engine: tenants, their heads, and the catalog of blocks.
 *
 * There is no catalog file: the catalog is the footers of the files in blocks/<tenant>/, read when
 * the store is opened.  A tenant's profiles are, each exactly once, in one of:
 *
 *   head      what the applier puts in; grows
 *   cutting   the head before, frozen, while it is written as a block
 *   blocks    everything else; everything of log records <= covered
 *
 * Locks, taken in this order, never the other way round:
 *   merging (store/keep.h)   whoever takes blocks out of the catalog.  Held for long.
 *   keeping (of the store)   whoever writes, replaces or removes block files: cut, compaction,
 *                            retention, deletion, backup.  Held for long.
 *   lock (of a tenant)       head, cutting, blocks, covered, known.  Held while one batch is
 *                            applied or the head is read; no file is written under it.
 *   lock (of the store)      the list of tenants and the queue of the applier.  Held for moments.
 *
 * A reader takes the tenant's lock, references all blocks and the frozen head, reads the head, and
 * lets go: what it holds is one consistent state, whatever is swapped meanwhile.
 *
 * Threads: as said per field.
 */
#ifndef KILN_STORE_STORE_INT_H
#define KILN_STORE_STORE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/tenant.h"
#include "store/aside.h"
#include "store/block.h"
#include "store/book.h"
#include "store/cache.h"
#include "store/census.h"
#include "store/head.h"
#include "store/keep.h"
#include "store/seen.h"
#include "store/store.h"
#include "store/wal.h"
#include "store/wide_names.h"

#define KILN_TENANT_CHAINS 1024u
#define KILN_PATH_MAX      256u /* bytes of any path of the store, with its NUL */
#define KILN_BLOCK_ENDING  ".kb"
#define KILN_COVERED_NAME  "covered" /* beside a tenant's blocks */

struct kiln_tenant {
    char *name; /* constant, like `next` and `beside` */
    struct kiln_tenant *next;
    struct kiln_tenant *beside; /* of the same hash */
    pthread_mutex_t lock;
    struct kiln_head *head;     /* never NULL */
    struct kiln_head *cutting;  /* or NULL */
    struct kiln_block **blocks; /* in the order of ids: of age */
    uint32_t n_blocks;
    uint64_t covered;             /* records of the log up to here are in blocks */
    struct kiln_series_set known; /* the series of blocks and heads */
    bool known_stale;             /* profiles went: some series of `known` may be gone */
    struct kiln_seen seen;        /* hashes of what was applied lately */
    struct kiln_book *book;       /* names that came later; constant, like the next */
    struct kiln_census *census;   /* what they are for */
    uint64_t counted_mono_ns;     /* the keeper's: when it last counted the series anew */
    /* the keeper's, under `keeping` */
    bool cut_failed; /* the last try left something that must be swept before the next */
    /* under `merging` */
    bool merge_failed; /* likewise, of a merge: store/keep.c */
};

/* An append between submit and applied. */
struct kiln_pending;

struct kiln_store_metrics {
    struct kiln_metric *appends, *profiles, *samples, *duplicates, *time_set, *clamped, *overflow;
    struct kiln_metric *too_old, *refused_memory, *refused_lag, *refused_space, *refused_io;
    struct kiln_metric *undecodable, *unchecked, *set_aside, *cuts, *cut_failures, *cut_seconds;
    struct kiln_metric *head_bytes, *log_bytes, *blocks, *block_bytes, *lag, *lag_seconds, *series;
    struct kiln_metric *symbol_files, *damaged_symbols;
};

/* The last try to write: store/probe.c. */
struct kiln_store_probe {
    pthread_mutex_t lock;
    _Atomic uint64_t since_ns; /* a try began; 0: none is under way */
    _Atomic uint64_t ended_ns;
    _Atomic int code;
};

struct kiln_store {
    struct kiln_engine engine;   /* first */
    struct kiln_store_opts opts; /* with the defaults filled in; its pointers are borrowed */
    struct kiln_io *io;
    struct kiln_pool *pool, own_pool;
    struct kiln_series_rule *own_rule;
    struct kiln_wal *wal;
    uint64_t seed; /* of content hashes; from store.json */
    struct kiln_store_metrics metrics;
    _Atomic uint64_t set_aside;
    struct kiln_aside aside;

    struct kiln_store_probe probe;
    struct kiln_cache cache;      /* what was read of blocks */
    _Atomic uint64_t symbols_age; /* of the names that came last: store/book.h */

    struct kiln_keep keep; /* compaction, retention, deletion: store/keep.h; zero is ready */
    pthread_mutex_t keeping;

    pthread_mutex_t lock;
    struct kiln_tenant *tenants, *last_tenant;
    struct kiln_tenant *tenants_by_hash[KILN_TENANT_CHAINS];
    uint32_t n_tenants;
    struct kiln_pending *queue, **queue_end; /* durable, not applied yet; in the order of numbers */
    uint64_t under_way;                      /* appends between submit and done */
    uint64_t queued, applied;                /* how many ever were; equal when settled */
    uint64_t oldest_mono_ns;                 /* since when the first of these waits; 0: none does */
    pthread_cond_t settled, work;            /* of the queue */
    pthread_cond_t keeper_work;
    bool closing, stop_applier, stop_keeper;

    _Atomic size_t head_bytes;  /* of all heads, also frozen ones */
    _Atomic uint64_t raw_bytes; /* decoded, in heads that are not cut */
    _Atomic size_t pending_bytes;
    _Atomic bool cut_wanted;
    _Atomic bool log_lost;        /* kiln_store_log_lost() */
    _Atomic bool starved;         /* the pool had no more for the head */
    _Atomic bool short_of_memory; /* nor for what was to be appended last */
    _Atomic uint64_t cut_said;
    _Atomic uint64_t last_number; /* applied */
    _Atomic int cut_error;        /* of the last cut; 0: it went well */
    size_t head_max;              /* bytes of heads that make a cut; twice that refuses appends */
    size_t reserve;               /* of the pool, for writing: a cut must always be possible */

    pthread_t applier, keeper;
    bool has_applier, has_keeper;

    struct kiln_wide_shelf wide; /* names of summaries in the cache */
};

static inline struct kiln_store *kiln_store_of(struct kiln_engine *engine)
{
    return (struct kiln_store *)engine;
}

/* ---- tenants ---- */

/* The tenant, or NULL.  A tenant once there stays until the store is closed. */
struct kiln_tenant *kiln_tenant_find(struct kiln_store *store, struct kiln_str name);
/* The same, made if it is not there yet. */
KILN_CHECK int kiln_tenant_get(struct kiln_store *store, struct kiln_str name,
                               struct kiln_tenant **ret_tenant);
/* Whether there is room for another tenant, or this one is there: more than memory can bear may be
 * on the disk, but no new ones come. */
bool kiln_tenant_may_come(struct kiln_store *store, struct kiln_str name);
/* One after the other: the first for NULL, NULL after the last. */
struct kiln_tenant *kiln_tenant_next(struct kiln_store *store, struct kiln_tenant *tenant);

/* Whether a block is in the catalog of a tenant. */
bool kiln_tenant_has_block(struct kiln_tenant *tenant, const struct kiln_block *block);
/* Profiles went: that they were here once does not make them duplicates. */
void kiln_store_forget_seen(struct kiln_store *store, struct kiln_tenant *tenant);
/* An empty head with the settings of the store. */
KILN_CHECK int kiln_tenant_new_head(struct kiln_store *store, struct kiln_head **ret_head);
/* Counts the series of a tenant anew; under its lock.  Walks all blocks: for stores without a
 * keeper, and the start. */
KILN_CHECK int kiln_tenant_count_series(struct kiln_tenant *tenant);
/* The same without the lock, which is held for what came meanwhile. */
KILN_CHECK int kiln_tenant_recount_series(struct kiln_tenant *tenant);
void kiln_tenant_free(struct kiln_tenant *tenant);

/* ---- catalog ---- */

struct kiln_block_list {
    struct kiln_block **blocks; /* a reference each */
    uint32_t n;
};

/* The blocks of a tenant at this moment, in the order of age. */
KILN_CHECK int kiln_catalog_list(struct kiln_tenant *tenant, struct kiln_block_list *ret_list);
/* The same, under the tenant's lock already. */
KILN_CHECK int kiln_catalog_list_locked(const struct kiln_tenant *tenant,
                                        struct kiln_block_list *ret_list);
void kiln_block_list_done(struct kiln_block_list *list);

/*
 * In one step for readers: `gone` leave, `added` come (each with a reference that becomes the
 * catalog's).  Under `keeping`.  On failure nothing changed; -ENOENT: one of `gone` was not there.
 * The files of `gone` are removed after it with kiln_catalog_unlink(); whoever has them open can
 * still read.
 */
KILN_CHECK int kiln_catalog_swap(struct kiln_tenant *tenant, struct kiln_block *const *gone,
                                 uint32_t n_gone, struct kiln_block *const *added,
                                 uint32_t n_added);
struct kiln_catalog_change {
    struct kiln_block *const *gone, *const *added;
    uint32_t n_gone, n_added;
};
/* The same, under the tenant's lock already; the caller drops the references of `gone` after. */
KILN_CHECK int kiln_catalog_change_locked(struct kiln_tenant *tenant,
                                          const struct kiln_catalog_change *change);
/* Removes the files of blocks and syncs the folder.  What cannot be removed now goes at the next
 * start if a block `replaces` it. */
KILN_CHECK int kiln_catalog_unlink(struct kiln_store *store, struct kiln_tenant *tenant,
                                   struct kiln_block *const *blocks, uint32_t n);
/*
 * Keeps on disk, in blocks/<tenant>/covered, how far the log is covered: before a block is removed
 * that nothing replaces (retention, deletion), for else its log records, where their segment is
 * still there, would be replayed at the next start.  Under `keeping`.
 */
KILN_CHECK int kiln_catalog_cover(struct kiln_store *store, struct kiln_tenant *tenant);

/* "blocks/<tenant>/<id>.kb" */
void kiln_block_path(const char *tenant, const struct kiln_block_id *id,
                     char ret_path[KILN_PATH_MAX]);
/* Opens a block that was just committed. */
KILN_CHECK int kiln_catalog_open_block(struct kiln_store *store, const char *tenant,
                                       const struct kiln_block_id *id,
                                       struct kiln_block **ret_block, struct kiln_err *err);
void kiln_store_count_aside(struct kiln_store *store);
/* Moves a damaged file into aside/, counts it and says so in the log. */
void kiln_store_set_aside(struct kiln_store *store, const char *path, const struct kiln_err *why);

/* Reads all of blocks/: opens what is whole, honours `replaces`, sets aside what is damaged. */
KILN_CHECK int kiln_catalog_load(struct kiln_store *store, struct kiln_err *err);

/* ---- opening ---- */

/* Reads store.json, or makes one: format version, seed.  A newer version is refused. */
KILN_CHECK int kiln_store_read_meta(struct kiln_store *store, struct kiln_err *err);
/* Opens the log and applies what blocks do not hold. */
KILN_CHECK int kiln_store_replay(struct kiln_store *store, struct kiln_err *err);

/* Whether the opening of the store was cancelled. */
bool kiln_store_is_cancelled(const struct kiln_store *store);

/* The batch of a record; without `copies` it may point into the record's body. */
KILN_CHECK int kiln_replay_decode(kiln_follow *follow, const struct kiln_wal_record *record,
                                  bool copies, struct kiln_batch **ret_batch, struct kiln_err *err);

/* ---- the ways through ---- */

void kiln_store_append(struct kiln_engine *engine, struct kiln_append *append);
bool kiln_store_has_room(struct kiln_engine *engine, size_t bytes);
/* Profiles of a tenant before this time are not taken any more. */
uint64_t kiln_store_oldest_ns(const struct kiln_store *store, const char *tenant);
/* Applies one durable record to its tenant's head; the applier's, and replay's. */
struct kiln_apply {
    struct kiln_tenant *tenant;
    const struct kiln_batch *batch;
    uint64_t number, received_ns, oldest_ns;
};
void kiln_store_apply(struct kiln_store *store, const struct kiln_apply *apply);
void *kiln_applier_main(void *store);
/* How far the applier is behind: durable batches that are not in a head yet, and the age of the
 * oldest. */
struct kiln_store_lag {
    uint64_t n, age_ns;
};
struct kiln_store_lag kiln_store_lag(struct kiln_store *store);
/*
 * Waits until everything acknowledged before is in the heads, as long as the leash allows (NULL: a
 * minute).  0, or -ETIMEDOUT or -ECANCELED, with a sentence.
 */
KILN_CHECK int kiln_store_settle_within(struct kiln_store *store, const struct kiln_leash *leash,
                                        struct kiln_err *err);
void kiln_pending_free(struct kiln_store *store, struct kiln_pending *pending);

int kiln_store_series(struct kiln_engine *engine, const struct kiln_selection *selection,
                      int (*each)(void *context, const struct kiln_series_found *series),
                      void *context, struct kiln_err *err);
int kiln_store_select(struct kiln_engine *engine, const struct kiln_selection *selection,
                      size_t memory_bytes, struct kiln_batch **ret_batch, struct kiln_err *err);
int kiln_store_merge(struct kiln_engine *engine, const struct kiln_question *question,
                     const struct kiln_merge_wants *wants, struct kiln_merged **ret_merged,
                     struct kiln_err *err);
int kiln_store_timeline(struct kiln_engine *engine, const struct kiln_question *question,
                        const struct kiln_timeline_opts *opts, struct kiln_timeline **ret_timeline,
                        struct kiln_err *err);
int kiln_store_found(struct kiln_engine *engine, const struct kiln_question *question,
                     const struct kiln_found_opts *opts, struct kiln_found **ret_found,
                     struct kiln_err *err);
int kiln_store_moments(struct kiln_engine *engine, const struct kiln_question *question,
                       const struct kiln_moments_opts *opts, struct kiln_moments **ret_moments,
                       struct kiln_err *err);
int kiln_store_labels(struct kiln_engine *engine, const struct kiln_question *question,
                      const struct kiln_str *names, uint32_t n, struct kiln_labels **ret_labels,
                      struct kiln_err *err);
void kiln_store_stats(struct kiln_engine *engine, struct kiln_str tenant,
                      struct kiln_engine_stats *ret_stats);

void kiln_store_open_metrics(struct kiln_store *store);
/* Sets the gauges to what is; the keeper does, about once a second. */
void kiln_store_set_gauges(struct kiln_store *store);

/* Cuts a tenant's head into a block.  Takes `keeping`.  0 also where there was nothing to cut. */
KILN_CHECK int kiln_store_cut(struct kiln_store *store, struct kiln_tenant *tenant,
                              struct kiln_err *err);
/* Wakes the keeper for a cut. */
void kiln_store_want_cut(struct kiln_store *store);
/* The same where the log was removed: only the heads have its records. */
void kiln_store_log_lost(struct kiln_store *store);
/* Whether heads are so large, or so much is in the log, that they should be cut. */
bool kiln_store_is_large(struct kiln_store *store);
void *kiln_keeper_main(void *store);

/* ---- compaction, retention, symbols, deletion: beside kiln_store_compact() and so on ---- */

/*
 * Starts the thread that merges and retires, unless it runs; the keeper calls it about once a
 * second, until there was room for one more.  It is ended by kiln_keep_stop(), which a store that
 * is being closed calls first.
 */
void kiln_keep_start(struct kiln_store *store);
int kiln_store_put_symbols(struct kiln_engine *engine, struct kiln_str tenant,
                           struct kiln_str build_id, const struct kiln_symbol *symbols, uint32_t n,
                           struct kiln_err *err);
int kiln_store_drop_symbols(struct kiln_engine *engine, struct kiln_str tenant,
                            struct kiln_str build_id, struct kiln_err *err);
int kiln_store_build_ids(struct kiln_engine *engine, struct kiln_str tenant,
                         int (*each)(void *context, struct kiln_str build_id), void *context,
                         struct kiln_err *err);
int kiln_store_tenants(struct kiln_engine *engine,
                       int (*each)(void *context, struct kiln_str tenant), void *context);
int kiln_store_unnamed(struct kiln_engine *engine, struct kiln_str tenant,
                       int (*each)(void *context, const struct kiln_unnamed *unnamed),
                       void *context, struct kiln_err *err);
int kiln_store_delete_service(struct kiln_engine *engine, struct kiln_str tenant,
                              struct kiln_str service, uint64_t *ret_profiles,
                              struct kiln_err *err);

#endif /* KILN_STORE_STORE_INT_H */
