/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head - the newest profiles of a tenant, in memory, until they are cut into a block.
 *
 * Batches are brought over entry by entry (core/remap.h), each dictionary entry once for the whole
 * head; addresses become those of the file (core/code.h), so that the next start of a program meets
 * its own stacks.  What applies to one profile is decided here: its time, its series, whether it is
 * there already.
 *
 * Threads: one owner at a time (the tenant's lock); read by many once it is frozen.
 */
#ifndef KILN_STORE_HEAD_H
#define KILN_STORE_HEAD_H

#include "base/pool.h"
#include "core/intern.h"
#include "core/series.h"
#include "store/content.h"
#include "store/rows.h"

/* A set of series, by the hash of their keys.  Zero is empty. */
struct kiln_series_set {
    uint64_t *slots; /* 0: free */
    uint32_t n, n_slots;
};
/* Returns 1 if it was new, 0 if it was there, or -ENOMEM. */
KILN_CHECK int kiln_series_set_add(struct kiln_series_set *set, struct kiln_str key);
bool kiln_series_set_has(const struct kiln_series_set *set, struct kiln_str key);
void kiln_series_set_done(struct kiln_series_set *set);

struct kiln_head_series {
    struct kiln_str key; /* in the head's arena */
    uint64_t min_ns, max_ns;
    uint64_t n_profiles, n_samples, n_observations;
};

struct kiln_head;

struct kiln_head_opts {
    uint64_t seed;
    const struct kiln_series_rule *rule;
    struct kiln_pool *pool; /* what its memory is charged to */
    _Atomic size_t *bytes;  /* where it is added up; may be NULL */
    size_t memory_bytes;    /* the most it may take */
};

KILN_CHECK int kiln_head_new(const struct kiln_head_opts *opts, struct kiln_head **ret_head);
struct kiln_head *kiln_head_ref(struct kiln_head *head);
void kiln_head_unref(struct kiln_head *head);

/* What a batch meets on its way in, and what became of it. */
struct kiln_head_batch {
    const struct kiln_batch *batch;
    uint64_t number, received_ns, oldest_ns;
    /* Whether a series may be opened; else the overflow series of its service takes the profile. */
    bool (*may_open)(void *context, struct kiln_str key);
    /* Whether this profile is known from elsewhere: a frozen head, blocks. */
    bool (*is_known)(void *context, struct kiln_str key, uint64_t time_ns,
                     struct kiln_content_hash hash);
    /* Told of each profile that is taken and can be recognised later. */
    void (*taken)(void *context, struct kiln_str key, uint64_t time_ns,
                  struct kiln_content_hash hash);
    void *context;
    uint32_t n_profiles, n_duplicates, n_too_old, n_time_set, n_overflow; /* filled */
    uint64_t n_samples, n_clamped; /* filled; clamped: timestamps (core/profile_time.h) */
};

/*
 * Puts a batch in.  On failure nothing of it is in, and the head is full: it takes no more, but can
 * be read and cut.
 */
KILN_CHECK int kiln_head_apply(struct kiln_head *head, struct kiln_head_batch *batch);

/* Whether this very profile is in the head. */
bool kiln_head_has(const struct kiln_head *head, struct kiln_str key, uint64_t time_ns,
                   struct kiln_content_hash hash);

bool kiln_head_is_full(const struct kiln_head *head);
size_t kiln_head_bytes(const struct kiln_head *head);    /* of memory */
bool kiln_head_is_charged(const struct kiln_head *head); /* false: the pool had no more for it */

struct kiln_head_info {
    uint64_t serial;           /* no other head of the process has it */
    uint64_t log_from, log_to; /* the first record with a profile in here, and the last of all */
    uint64_t raw_bytes;        /* of the batches since its first profile, decoded */
    uint64_t since_mono_ns;    /* when the first record came */
    uint64_t min_ns, max_ns;
    uint64_t n_profiles, n_samples, n_observations;
    uint32_t n_series;
};
const struct kiln_head_info *kiln_head_info(const struct kiln_head *head);
const struct kiln_rows *kiln_head_rows(const struct kiln_head *head);
const struct kiln_head_series *kiln_head_series(const struct kiln_head *head, uint32_t i);

struct kiln_head_choice {
    uint64_t start_ns, end_ns; /* 0, 0: all times */
    const struct kiln_matcher *matchers;
    uint32_t n_matchers;
};
/* The chosen profiles as a batch; NULL, and 0, where there are none. */
KILN_CHECK int kiln_head_select(const struct kiln_head *head, const struct kiln_head_choice *choice,
                                const struct kiln_limits *limits, struct kiln_batch **ret_batch,
                                struct kiln_err *err);

struct kiln_head_write_opts {
    struct kiln_io *io;
    struct kiln_str tenant;
    size_t memory_bytes;
    kiln_block_verifier *verify; /* NULL: kiln_block_verify_within() */
    const bool *leave_out;       /* by series of the head; NULL: none */
};
/* Writes a frozen head as a block of level 0. */
KILN_CHECK int kiln_head_write(const struct kiln_head *head,
                               const struct kiln_head_write_opts *opts,
                               struct kiln_block_id *ret_id, struct kiln_err *err);
/* Writes the same, reads it back and removes it. */
KILN_CHECK int kiln_head_try_write(const struct kiln_head *head,
                                   const struct kiln_head_write_opts *opts, struct kiln_err *err);

#endif /* KILN_STORE_HEAD_H */
