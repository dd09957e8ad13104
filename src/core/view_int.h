/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_int - the inside of a view while it is made: view.c adds up samples and makes rows,
 * view_frames.c turns locations into frames, view_labels.c judges attributes.
 */
#ifndef KILN_CORE_VIEW_INT_H
#define KILN_CORE_VIEW_INT_H

#include "base/arena.h"
#include "base/regex.h"
#include "core/intern.h"
#include "core/view.h"

#define KILN_VIEW_MEMORY_BYTES ((size_t)1 << 30)

/* What a view owns besides what its header shows. */
struct kiln_view_box {
    struct kiln_view view; /* first: the two have one address */
    struct kiln_budget budget;
    struct kiln_arena arena; /* names made here */
    uint32_t frames_cap, path_cap, rows_cap;
};

/* ---- labels ---- */

/* The sets that are searched: of a sample, its profile, its scope, its resource. */
#define KILN_LABEL_SETS 4

struct kiln_label {
    struct kiln_str key;
    struct kiln_str value;    /* for = and != */
    struct kiln_regex *regex; /* for =~ and !~ */
    bool negated;
    /* What the last set searched in each place gave: a resource is asked about all its samples. */
    struct {
        uint32_t set; /* 1 + its index */
        const struct kiln_attr *attr;
    } last[KILN_LABEL_SETS];
};

struct kiln_labels {
    struct kiln_label *conditions;
    uint32_t n;
};

KILN_CHECK int kiln_labels_init(struct kiln_labels *labels, const struct kiln_str *texts,
                                uint32_t n, struct kiln_err *err);
void kiln_labels_done(struct kiln_labels *labels);

/*
 * 1 if all conditions hold for attributes looked up in `sets`, the first set that has a key wins; 0
 * if not.  A key that is in none is an empty text, or good enough where `absent_holds`.  All calls
 * are about the same batch.
 */
KILN_CHECK int kiln_labels_hold(struct kiln_labels *labels, const struct kiln_batch *batch,
                                const uint32_t sets[KILN_LABEL_SETS], bool absent_holds);

/* ---- observations ---- */

/* How many observations stand behind the values of a profile. */
struct kiln_counter {
    const struct kiln_batch *batch;
    const struct kiln_profile *own;
    const struct kiln_profile *sibling; /* whose samples line up and count, or NULL */
    double unit;                        /* value of one observation; 0: each value is one */
};

struct kiln_counter kiln_counter_of(const struct kiln_batch *batch, const struct kiln_scope *scope,
                                    uint32_t profile, const struct kiln_type *type);

/* Of the i-th sample, whose values add up to `raw`. */
double kiln_counter_count(const struct kiln_counter *counter, uint32_t i, int64_t raw);

/* ---- frames ---- */

enum { FOCUS, IGNORE, SHOW, HIDE, N_FILTERS };

/* The frames of one location that are shown, root first, and what its frames match. */
struct kiln_view_location {
    uint32_t first; /* into pool */
    uint32_t n;
    uint8_t done;   /* made already */
    uint8_t focus;  /* a frame matches focus */
    uint8_t ignore; /* a frame matches ignore */
};

struct kiln_framer {
    struct kiln_view_box *box;
    const struct kiln_batch *batch;
    struct kiln_err *err;
    enum kiln_granularity granularity;
    struct kiln_regex *filters[N_FILTERS]; /* NULL: not asked for */

    struct kiln_intern names;             /* frames by name */
    struct kiln_view_location *locations; /* parallel to dict.locations */
    uint8_t *matches;     /* parallel to dict.functions: bit 7 made, bits by filter */
    uint32_t *pool;       /* frames of locations */
    struct kiln_buf text; /* scratch for names */
    uint64_t name_bytes;  /* made, hashed or matched so far */
    uint32_t locations_cap, matches_cap, pool_cap, n_pool;
};

KILN_CHECK int kiln_framer_init(struct kiln_framer *framer, struct kiln_view_box *box,
                                const struct kiln_view_opts *opts, struct kiln_err *err);
void kiln_framer_done(struct kiln_framer *framer);

/* Makes framer->locations[location] if it is not made yet. */
KILN_CHECK int kiln_framer_make(struct kiln_framer *framer, uint32_t location);

#endif /* KILN_CORE_VIEW_INT_H */
