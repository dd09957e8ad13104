/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep - what keeps the store in shape: merges blocks, retires what is out, removes services.
 *
 * In a server it has a thread of its own, so that a long merge never delays a cut.  `merging` is
 * held by whoever takes blocks out of the catalog (a merge, retention, a deletion), from choosing
 * them to removing their files; it is taken before all other locks of the store (store_int.h).  The
 * store's `keeping` is taken only for the moment of the swap.
 *
 * Threads: as said per function; a struct of zeros is ready.
 */
#ifndef KILN_STORE_KEEP_H
#define KILN_STORE_KEEP_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/block.h"
#include "store/clock_watch.h"

struct kiln_store;
struct kiln_tenant;
struct kiln_block_list;

enum { KILN_KEEP_SKIPS = 128 }; /* more than the inputs of one merge */
enum { KILN_KEEP_FOUND = 16 };  /* damaged blocks that wait; the next reader finds the others */

struct kiln_keep_found {
    struct kiln_tenant *tenant;
    struct kiln_block *block; /* a reference */
    struct kiln_err why;
};

/* A block that could not be merged: it is left alone for an hour. */
struct kiln_keep_skip {
    struct kiln_block_id id;
    uint64_t until_ns; /* of the clock that never jumps */
};

struct kiln_keep_metrics {
    struct kiln_metric *merges, *merge_failures, *merge_seconds, *merge_bytes_in, *merge_bytes_out;
    struct kiln_metric *backlog_blocks, *backlog_bytes;
    struct kiln_metric *retired_blocks[3], *retired_bytes[3]; /* enum kiln_retain_reason */
    struct kiln_metric *rewritten, *renamed, *deleted_profiles, *paused;
};

struct kiln_keep {
    pthread_mutex_t merging;
    pthread_mutex_t salvaging; /* before `merging`: one salvage at a time */
    pthread_t thread;
    _Atomic bool stop, is_behind;
    pthread_mutex_t sleep; /* of the thread, between two rounds; covers has_thread */
    bool has_thread;
    pthread_cond_t wake;
    struct kiln_keep_found found[KILN_KEEP_FOUND]; /* under `sleep` */
    uint32_t n_found;
    struct kiln_keep_skip skips[KILN_KEEP_SKIPS]; /* under `merging`, like what follows */
    uint32_t next_skip;
    uint32_t n_busy;  /* merges in a row for which there was no memory */
    bool has_metrics; /* under `sleep` */
    struct kiln_keep_metrics metrics;
    uint64_t retire_next_ns, merge_next_ns; /* of the clock that never jumps */
    struct kiln_clock_watch clock;          /* the thread's, once it runs */
    _Atomic uint64_t clock_ahead_ns;        /* 0: it is trusted */
};

/* Ends the thread, giving up a merge that is under way.  Before anything else is closed. */
void kiln_keep_stop(struct kiln_store *store);

/* True while so much waits to be merged that ingest must be held back.  From anywhere. */
bool kiln_keep_is_behind(const struct kiln_store *store);

/*
 * A reader, who holds no lock, found that a block is damaged: it is rescued, in the background or,
 * where there is none, now, unless it is gone already, or blocks are being merged.
 */
void kiln_keep_damaged(struct kiln_store *store, struct kiln_tenant *tenant,
                       struct kiln_block *block, const struct kiln_err *why);

/* The rest is for the files of this part. */

/*
 * Rewrites a damaged block without what cannot be read; a copy of the original is kept in aside/.
 * Where nothing can be read, or what is read cannot be written, all of it is set aside.  Under
 * `merging`.
 */
void kiln_keep_rescue(struct kiln_store *store, struct kiln_tenant *tenant,
                      struct kiln_block *block, const struct kiln_err *why);
/* The blocks that readers found.  Under `merging`. */
void kiln_keep_rescue_found(struct kiln_store *store);
/* Sets aside all of a block. */
void kiln_keep_set_aside(struct kiln_store *store, struct kiln_tenant *tenant,
                         struct kiln_block *block, const struct kiln_err *why);

struct kiln_keep_metrics *kiln_keep_metrics_of(struct kiln_store *store);

/* Blocks of one tenant that become one, or less. */
struct kiln_rewrite {
    struct kiln_tenant *tenant;
    struct kiln_block *const *blocks;
    uint32_t n;
    uint32_t level;
    uint64_t (*cutoff)(void *context, struct kiln_str service); /* as kiln_compact_opts */
    /* As kiln_compact_opts; not NULL: failures change nothing else, and nothing is set aside. */
    void (*lost)(void *context, const struct kiln_block_lost *lost);
    void *context;
    bool only_smaller;           /* as kiln_compact_opts; the blocks rest after it */
    bool whatever;               /* take the memory that it needs, if there is any */
    uint64_t extra_bytes;        /* by which the dictionary may grow */
    uint64_t profiles, left_out; /* filled */
    uint64_t bytes_out;
    int unlinked;           /* 0, or why the old files are still there */
    struct kiln_block *bad; /* the input that turned out damaged, or NULL */
};

/*
 * Writes the new block, puts it in the place of the old ones, removes their files.  An input that
 * turns out damaged is rescued, and KILN_E_CORRUPT returned: what is left can be tried again.
 * -ENOTRECOVERABLE: the new block does not read back; the old ones stay, and are left alone for a
 * while.  Under `merging`.
 */
KILN_CHECK int kiln_keep_rewrite(struct kiln_store *store, struct kiln_rewrite *rewrite,
                                 struct kiln_err *err);

/* Removes blocks for good.  Under `merging`. */
KILN_CHECK int kiln_keep_drop(struct kiln_store *store, struct kiln_tenant *tenant,
                              struct kiln_block *const *blocks, uint32_t n, struct kiln_err *err);

/* One merge, of whatever tenant has one due.  1 if there was one.  Under `merging`. */
KILN_CHECK int kiln_keep_merge(struct kiln_store *store, uint64_t now_ns, bool all,
                               struct kiln_err *err);

/* When it is worth it; variable for tests only. */
extern struct kiln_rename_limits {
    uint64_t rest_ns;  /* between two makings of a block */
    uint64_t quiet_ns; /* for which its names have not changed */
} kiln_rename_limits;
/*
 * Rewrites one block, of whatever tenant, with names that came later; `all`: without waiting until
 * it is worth it.  1 if there was one.  Under `merging`.
 */
KILN_CHECK int kiln_keep_rename(struct kiln_store *store, bool all, struct kiln_err *err);

/* Whether retention by age may trust the clock: first when the store is opened, then about once a
 * second, by the thread. */
void kiln_keep_clock_start(struct kiln_store *store);
void kiln_keep_clock_look(struct kiln_store *store);
/* How far the clock is ahead of where it was expected; 0: it is trusted.  From anywhere. */
uint64_t kiln_keep_clock_ahead(const struct kiln_store *store);

/* Leaves a block alone for an hour.  Under `merging`. */
void kiln_keep_skip(struct kiln_store *store, const struct kiln_block *block);
bool kiln_keep_is_skipped(const struct kiln_store *store, const struct kiln_block *block);

/* Retention, once.  Under `merging`. */
KILN_CHECK int kiln_keep_retire(struct kiln_store *store, uint64_t now_ns, struct kiln_err *err);

#endif /* KILN_STORE_KEEP_H */
