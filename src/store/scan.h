/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan - goes over all rows that a question (store/engine.h) wants, of blocks and heads, and shows
 * them to a visitor, profile by profile: under every answer of the embedded engine.
 *
 * Everything the question says of rows is decided here: tenants, series, windows, labels of any
 * level, links, profile ids, functions of stacks.  What the visitor sees counts.
 *
 *   kiln_scan_open(store, question, KILN_SCAN_TIMES, &scan, err);
 *   kiln_scan_run(scan, &visitor, &basis, err);      once or several times: the rows are the same
 *   kiln_scan_close(scan);
 *
 * A source is a place where numbers of stacks and attributes mean something: one service of one
 * block, or a head.  The visitor is told when one begins and ends.  A head that grows is looked at
 * under its tenant's lock, let go now and then; `profile` is called under it, so it must not take
 * long, and nothing of `batch` but texts may be kept after it.
 *
 * A block that turns out to be damaged is set aside, and the run begins anew without it: the
 * visitor is told by `restart`, and forgets everything.
 *
 * Threads: a scan has one owner.
 */
#ifndef KILN_STORE_SCAN_H
#define KILN_STORE_SCAN_H

#include "store/engine.h"
#include "store/forest.h"
#include "store/meaning.h"

struct kiln_store;
struct kiln_scan;
struct kiln_origin; /* store/block_int.h */
struct kiln_tenant;
struct kiln_head;
struct kiln_rollup;

/* Columns that a visitor looks at, besides stacks and values. */
enum kiln_scan_columns {
    KILN_SCAN_ATTRS = 1,
    KILN_SCAN_LINKS = 2,
    KILN_SCAN_TIMES = 4,
    KILN_SCAN_IDS = 8,
    /* Shortcuts that the visitor allows, where nothing of the question is in their way. */
    KILN_SCAN_SUMS = 16,  /* rows of one time may be shown as their sum; without TIMES, all rows */
    KILN_SCAN_PAIRS = 32, /* only series, origin and sets matter: each may be shown once, of all a
                             block has where it touches the time, newest blocks first, and not all
                             of them (kiln_scan_missed); not with SUMS */
};

struct kiln_scan_interval {
    uint64_t start, end;
};

/* What a source adds to the basis. */
struct kiln_scan_piece {
    struct kiln_basis basis;              /* but for blocks, and the time that is covered: */
    struct kiln_scan_interval *intervals; /* borrowed in a source */
    uint32_t n;
};

struct kiln_scan_source {
    struct kiln_str tenant_name;
    struct kiln_tenant *tenant;
    struct kiln_block *block;       /* NULL: a head */
    struct kiln_head *head;         /* NULL: a block */
    const struct kiln_batch *batch; /* the dictionary; of a block without stacks */
    uint32_t service;               /* of the block */
    uint32_t n_stacks;              /* rows have stacks 1 to n_stacks */
    bool live;                      /* a head that grows */
    /* Of a block, where all rows of these series are meant, and no other; else NULL. */
    const uint32_t *whole;
    uint32_t n_whole;
    const struct kiln_scan_piece *piece; /* in `end`, where they are whole */
};

/* Rows of one profile and one shape, all of them wanted. */
struct kiln_scan_run {
    uint32_t n;
    const uint64_t *stacks; /* numbers from 1 on */
    const uint64_t *attrs;  /* sets of the dictionary; NULL: not asked for */
    const uint64_t *links;  /* 0: none; NULL: not asked for */
    const uint64_t *values; /* int64_t; NULL: each counts one */
    const uint64_t *times;  /* NULL: all have the profile's, or were not asked for */
    bool timed;             /* they have times, asked for or not */
    /* Not 0: the sum of so many rows, of which the first and last times are shown, and how many
     * observations they are. */
    uint64_t summed;
    double count;
};

struct kiln_scan_profile {
    const struct kiln_scan_source *source;
    const struct kiln_series *series;
    struct kiln_str key;              /* of the series */
    uint32_t series_number;           /* in the source's block or head */
    const struct kiln_origin *origin; /* numbers of `batch`; resource and scope count from 1 */
    uint32_t origin_number;           /* of a block; of heads 0 */
    uint64_t time_ns, duration_ns;
    struct kiln_weight weight; /* of its values */
    const uint8_t *id;         /* 16 bytes; NULL: none, or not asked for */
    struct kiln_scan_run runs[3];
    uint32_t n_runs; /* may be 0: the profile is in the time and of the labels, but has no row that
                        counts.  In a mean it counts as nothing; in no other answer it counts */
};

/* Some hours and days of a group of series, as the roll-ups of a block have them (store/rollup.h).
 */
struct kiln_scan_rolled {
    const struct kiln_scan_source *source; /* without a dictionary */
    struct kiln_rollup *rollup;
    uint32_t group;
    const bool *wanted[2]; /* by level: its spans that are meant */
    uint32_t n_blocks;     /* of the tenant that the question touches */
};

struct kiln_scan_visitor {
    void *context;
    /* All but `profile` may be NULL.  What is not 0 ends the run and is its result. */
    int (*begin)(void *context, const struct kiln_scan_source *source, struct kiln_err *err);
    int (*profile)(void *context, const struct kiln_scan_profile *profile, struct kiln_err *err);
    int (*end)(void *context, const struct kiln_scan_source *source, struct kiln_err *err);
    void (*restart)(void *context);
    /* Whether rows of a series are wanted at all; NULL: all. */
    bool (*series)(void *context, const struct kiln_series *series);
    /* Instead of begin, rows and end of a source that is whole: 1 if that is done.  May be NULL. */
    int (*known)(void *context, const struct kiln_scan_source *source, struct kiln_err *err);
    /*
     * Around a block of which all rows of the chosen series are meant (source->whole), before and
     * after what it has: 1 from begin_block if that is done.  May be NULL.
     */
    int (*begin_block)(void *context, const struct kiln_scan_source *source, struct kiln_err *err);
    int (*end_block)(void *context, const struct kiln_scan_source *source, struct kiln_err *err);
    /*
     * Instead of their rows: NULL where only rows will do.  Spans without a tree come only if
     * `no_trees`.  A failure is no end: it must leave nothing behind, and the rows come instead.
     */
    int (*rolled)(void *context, const struct kiln_scan_rolled *rolled, struct kiln_err *err);
    bool no_trees;
};

/* Waits until everything acknowledged is there, and fixes what will be looked at. */
KILN_CHECK int kiln_scan_open(struct kiln_store *store, const struct kiln_question *question,
                              unsigned columns, struct kiln_scan **ret_scan, struct kiln_err *err);
/*
 * Waits for the memory that the answer will take, and takes it until the scan is closed: so much a
 * stack of every source, and where `forests` are needed, what making the largest one takes; and to
 * find so many nodes.
 */
struct kiln_scan_needs {
    size_t bytes_a_stack;
    bool forests;
    uint32_t nodes_max;
    /* The visitor can do with less memory than all sources take at once; and shall.  Where it must,
     * the scan is wide: scan->wide_bytes are reserved for it. */
    bool may_be_wide, is_wide;
};
KILN_CHECK int kiln_scan_reserve(struct kiln_scan *scan, const struct kiln_scan_needs *needs,
                                 struct kiln_err *err);
/* The basis is filled but for `count`; it may be NULL. */
KILN_CHECK int kiln_scan_run(struct kiln_scan *scan, const struct kiln_scan_visitor *visitor,
                             struct kiln_basis *ret_basis, struct kiln_err *err);
void kiln_scan_close(struct kiln_scan *scan);
/* Labels that the visitor will ask for: sums will not do where samples have them. */
/* Whether the last run with PAIRS left blocks out: more had to be read than such a question may. */
bool kiln_scan_missed(const struct kiln_scan *scan);
void kiln_scan_asks(struct kiln_scan *scan, const struct kiln_str *names, uint32_t n);

/* ---- for visitors ---- */

/* For `known`: what the source adds to the basis. */
KILN_CHECK int kiln_scan_add_piece(struct kiln_scan *scan, const struct kiln_scan_piece *piece);

/* The value of a label for a profile and, unless 0, a set of attributes of its samples.  Empty
 * where it is absent. */
struct kiln_str kiln_scan_label(const struct kiln_scan_profile *profile, struct kiln_str name,
                                uint64_t attrs, char scratch[KILN_MEANING_SCRATCH]);

/* Which process the profile is of (store/meaning.h): a hash (base/hash.h). */
KILN_CHECK int kiln_scan_process(const struct kiln_scan_profile *profile, uint64_t *ret_hash);

/*
 * The forest of a source, a reference: of a block all stacks of its service, with forest->rank; of
 * a head, the `n` stacks listed (numbers from 1 on), rank[i] being that of the i-th.  To be asked
 * for between two calls of `profile`, or in `end`; not in `profile`.
 */
KILN_CHECK int kiln_scan_forest(struct kiln_scan *scan, const struct kiln_scan_source *source,
                                const uint32_t *stacks, uint32_t n, struct kiln_forest **ret_forest,
                                struct kiln_err *err);

#endif /* KILN_STORE_SCAN_H */
