/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally - a timeline while it is made: values by group of labels and bucket of time.
 *
 * Profiles come one after the other, each with all it has: so that how many of them a point has,
 * and which is the largest, is known when the last has gone by.  Spans are spread over profiles,
 * and each is remembered.  Means of levels are kept by process, and divided at the end.
 *
 *   kiln_tally_next_source(t);
 *     kiln_tally_begin(t, profile);                  also for one that has nothing
 *       kiln_tally_group(t, profile, set, &group);
 *       kiln_tally_add(t, &value);                   each value, or sum of some
 *     kiln_tally_end(t);
 *   kiln_tally_finish(t, basis, &timeline);
 *
 * Threads: one owner.
 */
#ifndef KILN_STORE_TALLY_H
#define KILN_STORE_TALLY_H

#include "store/fund.h"
#include "store/scan.h"

struct kiln_tally {
    const struct kiln_question *q;
    const struct kiln_timeline_opts *opts;
    uint64_t start_ns;
    struct kiln_fund fund;
    struct kiln_fund_texts groups; /* values of labels, each with its length */
    struct kiln_fund_texts series; /* keys */
    struct kiln_fund_table known;  /* groups, by what they are of */
    struct kiln_fund_table points; /* by group and bucket */
    struct kiln_fund_table spans;  /* by point and link */
    struct kiln_fund_table means;  /* by point and process */
    struct kiln_fund_table looks;  /* by bucket and process: how many profiles */
    uint32_t *touched;             /* points of the profile at hand */
    uint32_t n_touched, cap_touched;
    uint64_t serial, source; /* of the profile and the source at hand */
    uint64_t process;
    struct kiln_exemplar profile; /* the profile at hand */
    uint32_t key;                 /* of its series */
    double count;
};

struct kiln_tally_value {
    uint32_t group;
    uint64_t time_ns;
    int64_t value; /* in the unit of the type */
    double count;
    const struct kiln_link *link; /* NULL: none */
};

void kiln_tally_init(struct kiln_tally *t, const struct kiln_question *q,
                     const struct kiln_timeline_opts *opts);
void kiln_tally_done(struct kiln_tally *t);

/* From now on numbers of series, origins and sets are another source's. */
void kiln_tally_next_source(struct kiln_tally *t);

KILN_CHECK int kiln_tally_begin(struct kiln_tally *t, const struct kiln_scan_profile *p);
/* The group of samples with this set of attributes. */
KILN_CHECK int kiln_tally_group(struct kiln_tally *t, const struct kiln_scan_profile *p,
                                uint64_t set, uint32_t *ret_group);
KILN_CHECK int kiln_tally_add(struct kiln_tally *t, const struct kiln_tally_value *value);
void kiln_tally_end(struct kiln_tally *t);

/* KILN_E_LIMIT, here or above: more points than the options allow, or memory than the leash. */
KILN_CHECK int kiln_tally_finish(struct kiln_tally *t, const struct kiln_basis *basis,
                                 struct kiln_timeline **ret_timeline);

/* ---- between tally.c and tally_finish.c ---- */

struct kiln_tally_point {
    uint64_t group, bucket; /* the key */
    int64_t sum, own;       /* of all; of the profile at hand */
    double count;
    uint64_t n_profiles, serial;
    struct kiln_exemplar best;
    bool has_best;
};

struct kiln_tally_span {
    uint64_t point; /* with the link: the key */
    struct kiln_link link;
    uint64_t time_ns;
    int64_t value;
    uint32_t series;
};

struct kiln_tally_mean {
    uint64_t point, process; /* the key */
    double sum;
};

struct kiln_tally_look {
    uint64_t bucket, process; /* the key */
    uint64_t n, serial;
};

/* Whether the first is the better exemplar: larger; earlier; of the smaller id; of the smaller key
 * of a series. */
bool kiln_tally_is_better(const struct kiln_exemplar *a, const struct kiln_exemplar *b);

#endif /* KILN_STORE_TALLY_H */
