/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine - what a store must be able to do; the embedded one (store/store.h) is the first, one on
 * ClickHouse may be the second.
 *
 * An engine takes batches and answers questions.  It is asked questions, not for cursors: one whose
 * data is elsewhere must be able to answer where the data is.
 *
 * Threads: everything may be called from anywhere at once.
 */
#ifndef KILN_STORE_ENGINE_H
#define KILN_STORE_ENGINE_H

#include "base/compress.h"
#include "base/err.h"
#include "core/batch.h"
#include "core/series.h"

struct kiln_engine;

/* ---- in ---- */

/* One append under way; the caller keeps it, and what it points to, until done. */
struct kiln_append {
    struct kiln_batch *batch; /* borrowed; the engine takes its own reference, and keeps it longer
                                 than `body` lives: its texts must not point there */
    const char *tenant;
    uint64_t received_ns;
    /* What becomes the batch again: OTLP protobuf, or what the recipe is for; empty: the engine
     * encodes it. */
    struct kiln_str body;
    struct kiln_str recipe;
    enum kiln_compression body_compression;
    /* filled before done */
    uint32_t rejected;   /* profiles that were not taken (too old) though the code is 0 */
    struct kiln_err err; /* why: of the first rejected one, or of the failure */
    /* Called once, from any thread: 0 when what was taken survives a power cut; else -EAGAIN (too
     * much under way), -ENOSPC, -EIO, -ESHUTDOWN, KILN_E_LIMIT. */
    void (*done)(struct kiln_append *append, int code);
    void *context;
};

/* ---- out ---- */

struct kiln_selection {
    struct kiln_str tenant;
    uint64_t start_ns, end_ns;           /* start <= t < end; 0, 0: all times */
    const struct kiln_matcher *matchers; /* of series labels */
    uint32_t n_matchers;
};

/* One series that has profiles in the selection.  Times and counts are of the blocks and heads that
 * touch it, as a whole. */
struct kiln_series_found {
    struct kiln_str key; /* core/series.h */
    uint64_t min_ns, max_ns;
    uint64_t n_profiles, n_observations;
};

struct kiln_symbol {
    uint64_t address; /* in the file */
    uint64_t size;    /* 0: up to the next */
    struct kiln_str name, file;
    int64_t line;
};

struct kiln_engine_stats {
    uint64_t blocks, block_bytes, log_bytes, head_bytes; /* head: memory */
    uint64_t series, profiles, samples, observations;    /* blocks and head */
    uint64_t oldest_ns, newest_ns;
    uint64_t set_aside; /* damaged files */
};

struct kiln_engine_ops {
    void (*append)(struct kiln_engine *engine, struct kiln_append *append);

    /* Calls `each` for every series with something in the selection, in the order of keys. */
    int (*series)(struct kiln_engine *engine, const struct kiln_selection *selection,
                  int (*each)(void *context, const struct kiln_series_found *series), void *context,
                  struct kiln_err *err);

    /*
     * The profiles of the selection as one batch: those whose own time, or any of whose
     * observations, lie in it; observations outside are left out.  `memory_bytes` bounds the batch.
     * Everything acknowledged before the call is seen.
     */
    int (*select)(struct kiln_engine *engine, const struct kiln_selection *selection,
                  size_t memory_bytes, struct kiln_batch **ret_batch, struct kiln_err *err);

    /* Names for addresses of a build id, which may come later than the samples. */
    int (*put_symbols)(struct kiln_engine *engine, struct kiln_str tenant, struct kiln_str build_id,
                       const struct kiln_symbol *symbols, uint32_t n, struct kiln_err *err);

    /* Removes every profile of a service, also from the log; back when nothing of it is left. */
    int (*delete_service)(struct kiln_engine *engine, struct kiln_str tenant,
                          struct kiln_str service, uint64_t *ret_profiles, struct kiln_err *err);

    void (*stats)(struct kiln_engine *engine, struct kiln_str tenant, /* empty: all */
                  struct kiln_engine_stats *ret_stats);

    /* Stops taking, finishes what is under way, closes.  Frees the engine. */
    void (*close)(struct kiln_engine *engine);
};

struct kiln_engine {
    const struct kiln_engine_ops *ops;
};

#endif /* KILN_STORE_ENGINE_H */
