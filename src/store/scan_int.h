/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_int - the inside of a scan: scan.c holds the view and goes through it, scan_block.c and
 * scan_head.c show rows, scan_choose.c decides about series, labels and links, scan_filter.c about
 * single rows, scan_stacks.c about stacks.
 *
 * Threads: as store/scan.h.
 */
#ifndef KILN_STORE_SCAN_INT_H
#define KILN_STORE_SCAN_INT_H

#include "store/block_naming.h"
#include "store/dict.h"
#include "store/fund.h"
#include "store/scan.h"
#include "store/store_int.h"

enum { KILN_SCAN_MATCHERS_MAX = 64 };

/* What is to be looked at of a tenant. */
struct kiln_scan_part {
    struct kiln_tenant *tenant;
    struct kiln_block_list blocks;
    bool *damaged; /* parallel */
    struct kiln_head *cutting, *head;
    uint32_t n_rows, n_series, n_stacks, n_frames; /* of the head, at that moment */
};

/* How a matcher about something else than the series is decided. */
enum kiln_scan_verdict { KILN_VERDICT_OPEN, KILN_VERDICT_LACKS, KILN_VERDICT_NO, KILN_VERDICT_YES };

/* A series of the source at hand. */
struct kiln_scan_series {
    struct kiln_series series;
    struct kiln_str key;
    uint64_t pending; /* a bit for each matcher that the series does not decide */
    bool chosen;
};

/* What the attributes of an origin say of pending matchers. */
struct kiln_scan_opinion {
    uint64_t asked, holds;
    uint64_t absent; /* it has no such attribute, nor could its series: `holds` is what it is if
                        samples lack it too */
};

/* What is remembered of a source: about series, origins, sets, links, stacks. */
struct kiln_scan_memo {
    struct kiln_budget budget;
    struct kiln_scan_series *series;
    struct kiln_scan_opinion *origins; /* by number - 1 */
    uint8_t *sets;                     /* by matcher, then set: enum kiln_scan_verdict */
    uint64_t *links;                   /* a bit each */
    uint8_t *stacks;                   /* by number - 1: 1 if it counts; NULL: all do */
    uint32_t n_series, n_origins, n_sets, n_stacks;
    uint32_t cap_series, cap_origins, cap_sets, cap_links, cap_stacks;
    uint64_t in_sets; /* matchers whose key occurs in sets of attributes */
};

/* Ids that are asked for, sorted. */
struct kiln_scan_ids {
    void *all;
    uint32_t n;
    size_t size;
};

struct kiln_scan {
    struct kiln_store *store;
    const struct kiln_question *q;
    unsigned columns; /* that the visitor wants */
    struct kiln_scan_ids traces, spans, profiles;
    const struct kiln_str *names; /* labels that it asks for */
    uint32_t n_names;
    uint64_t pairs_left; /* bytes of rows that may still be read for KILN_SCAN_PAIRS */
    bool pairs_missing;  /* there were more */
    struct kiln_scan_part *parts;
    uint32_t n_parts, n_damaged;
    bool again;              /* a block turned out to be damaged */
    struct kiln_fund fund;   /* what is taken of the leash */
    struct kiln_str service; /* the last one that was asked about */
    uint32_t n_judged;       /* series, for the leash */
    bool has_service;
    int service_passes;
    bool rolls;   /* roll-ups will do, if the visitor takes them */
    bool is_wide; /* sources do not fit all at once: forests are not cached */
    size_t wide_bytes;
    bool is_rest; /* what is shown is what roll-ups left of the windows */
    const struct kiln_scan_visitor *visitor;
    struct kiln_basis basis;
    struct kiln_budget budget; /* of scratch */
    struct kiln_scan_interval *intervals;
    struct kiln_column scratch[5]; /* stacks, attrs, links, values, times that are left */
    uint32_t n_intervals, cap_intervals;
    uint32_t first_interval;          /* of the piece at hand */
    struct kiln_scan_memo memo;       /* of the source at hand */
    struct kiln_block_naming *naming; /* of the block at hand; NULL: not needed yet */
    uint32_t only_service;            /* of the block, and 1: no other is judged; 0: all are */
};

/* ---- scan_choose.c ---- */

KILN_CHECK int kiln_scan_sort_ids(struct kiln_scan *scan);
/* Makes the memo ready for a source. */
void kiln_scan_forget(struct kiln_scan *scan);
/* Whether a series is chosen. */
KILN_CHECK int kiln_scan_judge_series(struct kiln_scan *scan, struct kiln_str key,
                                      struct kiln_scan_series *ret_series);
/* Adds a series, in the order of numbers. */
KILN_CHECK int kiln_scan_add_series(struct kiln_scan *scan, struct kiln_str key, bool touches);
/* Which pending matchers may be decided by attributes of samples, and which links count. */
KILN_CHECK int kiln_scan_learn(struct kiln_scan *scan, const struct kiln_batch *batch);
/* Whether some attribute of the dictionary has this key. */
bool kiln_scan_occurs(const struct kiln_batch *batch, struct kiln_str name);
bool kiln_scan_has_links(const struct kiln_scan *scan);
bool kiln_scan_has_stacks(const struct kiln_scan *scan);

/* `number` of the origin, to remember it by; 0: not. */
KILN_CHECK int kiln_scan_judge(struct kiln_scan *scan, const struct kiln_scan_series *series,
                               const struct kiln_batch *batch, const struct kiln_origin *origin,
                               uint32_t number, struct kiln_scan_opinion *ret_opinion);
/* 1, 0, or an error of an expression. */
KILN_CHECK int kiln_scan_set_passes(struct kiln_scan *scan, const struct kiln_batch *batch,
                                    uint64_t set, uint64_t pending, uint64_t origin_holds);
bool kiln_scan_id_wanted(const struct kiln_scan *scan, const uint8_t *id);
/* Scale and unit of a profile. */
void kiln_scan_weigh(struct kiln_scan_profile *p);

/* ---- scan_filter.c ---- */

bool kiln_scan_touches(const struct kiln_scan *scan, uint64_t min_ns, uint64_t max_ns);
bool kiln_scan_covers(const struct kiln_scan *scan, uint64_t min_ns, uint64_t max_ns);
bool kiln_scan_in_time(const struct kiln_scan *scan, uint64_t time_ns);

/* What is to be decided row by row. */
struct kiln_scan_sieve {
    bool times, links, stacks;
    uint64_t pending;                 /* matchers */
    struct kiln_scan_opinion opinion; /* of the origin */
    uint32_t flags;                   /* of the profile */
    uint64_t min_ns, max_ns;          /* around all times, where these are not looked at */
};
/* Takes rows that do not count out of the profile's runs, counts it in the basis and shows it. */
KILN_CHECK int kiln_scan_show(struct kiln_scan *scan, struct kiln_scan_profile *p,
                              const struct kiln_scan_sieve *sieve, struct kiln_err *err);
uint64_t kiln_scan_covered(struct kiln_scan *scan);
/* From here on the basis is that of a piece; what it was before. */
struct kiln_basis kiln_scan_begin_piece(struct kiln_scan *scan);
/* The piece; the basis is all of it again.  Intervals are the scan's. */
struct kiln_scan_piece kiln_scan_end_piece(struct kiln_scan *scan, const struct kiln_basis *before);

/* ---- scan_digest.c ---- */

struct kiln_row_sums; /* store/rows.h */
/* Whether profiles may be shown as sums at all; and one with these. */
bool kiln_scan_wants_sums(const struct kiln_scan *scan);
bool kiln_scan_sums_do(const struct kiln_scan *scan, const struct kiln_row_sums *sums);
KILN_CHECK int kiln_scan_show_sums(struct kiln_scan *scan, struct kiln_scan_profile *p,
                                   const struct kiln_row_sums *sums, struct kiln_err *err);

/* Waits for memory without a view, and takes a new one. */
KILN_CHECK int kiln_scan_wait(struct kiln_scan *scan, size_t bytes, size_t ahead,
                              struct kiln_err *err);
/* Frees what a scan has besides its view. */
void kiln_scan_done(struct kiln_scan *scan);
int kiln_scan_cover(struct kiln_scan *scan, uint64_t time_ns, uint64_t duration_ns);
void kiln_scan_widen(struct kiln_scan *scan, uint64_t from, uint64_t to);

/* ---- scan_roll.c ---- */

/* Nodes of the trees of all blocks together, about: beyond, smaller trees will do. */
#define KILN_SCAN_ROLLED_NODES 1500000u

/* Whether roll-ups may answer the question at all. */
bool kiln_scan_may_roll(const struct kiln_scan *scan);
/* Whether the roll-ups of a block say all there is of a service, in all likelihood. */
bool kiln_scan_is_rolled(const struct kiln_scan *scan, const struct kiln_block *block,
                         uint32_t service);
/* Shows what roll-ups have of the chosen series of a block, and has `rows` show the rest. */
KILN_CHECK int kiln_scan_roll(struct kiln_scan *scan, struct kiln_scan_part *part,
                              struct kiln_block *block,
                              int (*rows)(struct kiln_scan *scan, struct kiln_scan_part *part,
                                          struct kiln_block *block, struct kiln_err *err),
                              struct kiln_err *err);

/* ---- sources ---- */

/* Which series of a block are chosen, and whether any is. */
KILN_CHECK int kiln_scan_choose_block(struct kiln_scan *scan, const struct kiln_block *block,
                                      bool *ret_any);
/* A block without its rows: 1 where these are needed, and nothing was shown. */
KILN_CHECK int kiln_scan_digest(struct kiln_scan *scan, struct kiln_scan_part *part,
                                struct kiln_block *block, struct kiln_err *err);

KILN_CHECK int kiln_scan_block(struct kiln_scan *scan, struct kiln_scan_part *part,
                               struct kiln_block *block, struct kiln_err *err);
KILN_CHECK int kiln_scan_head(struct kiln_scan *scan, struct kiln_scan_part *part,
                              struct kiln_head *head, bool live, struct kiln_err *err);

/* ---- scan_stacks.c ---- */

/* Marks the stacks of the source that the question's choice of functions leaves; of a head, out of
 * those listed. */
KILN_CHECK int kiln_scan_mark_stacks(struct kiln_scan *scan, const struct kiln_scan_source *source,
                                     const uint32_t *stacks, uint32_t n, struct kiln_err *err);

/* ---- forest_block.c, forest_head.c ---- */

struct kiln_forest_place {
    struct kiln_store *store;
    struct kiln_tenant *tenant; /* whose names count; NULL: none that came later */
    struct kiln_fund *fund;
    struct kiln_block_naming **naming; /* of blocks: kept from one forest to the next */
    bool is_wide;                      /* a new forest is neither cached nor paid for */
};
KILN_CHECK int kiln_forest_of_block(const struct kiln_forest_place *place, struct kiln_block *block,
                                    uint32_t service, struct kiln_forest **ret_forest,
                                    struct kiln_err *err);
/* Of stacks of a head, by number; takes the tenant's lock for a growing one. */
struct kiln_head_stacks {
    struct kiln_tenant *tenant;
    struct kiln_head *head;
    bool live;
    const uint32_t *stacks; /* NULL: the first `n` */
    uint32_t n;
    struct kiln_batch *batch; /* not a head's, but those of a batch; else NULL */
};
KILN_CHECK int kiln_forest_of_head(const struct kiln_forest_place *place,
                                   const struct kiln_head_stacks *stacks,
                                   struct kiln_forest **ret_forest);

/* Has the names loaded that the dictionary of a growing head needs, before its lock is held. */
KILN_CHECK int kiln_scan_load_names(struct kiln_tenant *tenant, const struct kiln_batch *batch,
                                    struct kiln_finder *finder);

/* ---- a growing head's lock ---- */

/* Takes the lock of a growing head; lets it go for a moment once a millisecond has passed. */
void kiln_scan_lock(struct kiln_tenant *tenant, uint64_t *since_ns);
void kiln_scan_breathe(struct kiln_tenant *tenant, uint64_t *since_ns);
void kiln_scan_unlock(struct kiln_tenant *tenant);

#endif /* KILN_STORE_SCAN_INT_H */
