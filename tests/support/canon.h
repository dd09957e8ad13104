/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon - what a batch says, whatever its order and dictionary: a fingerprint of text for each
 * profile.  Written for tests, without the hashes that the store itself compares by.
 */
#ifndef KILN_TESTS_SUPPORT_CANON_H
#define KILN_TESTS_SUPPORT_CANON_H

#include "base/buf.h"
#include "core/batch.h"

struct canon_hash {
    uint64_t lo, hi;
};

struct canon_profile {
    struct canon_hash what;  /* that decides whether it is the same profile once more */
    struct canon_hash whole; /* with counts of dropped attributes, and entities */
    uint32_t number;         /* in the batch */
    bool arrived;            /* it has the time of arrival */
};

struct canon {
    struct canon_profile *profiles; /* sorted */
    uint32_t n;
    uint32_t n_arrived;
};

/*
 * `arrival_ns`: as a store that receives it then; a profile without a time, or with one more than
 * ten minutes later, has this one.  0: times as they are.
 */
struct canon canon_of(const struct kiln_batch *batch, uint64_t arrival_ns);
/* Adds the profiles of another; their numbers are those of its batch. */
void canon_add(struct canon *canon, const struct canon *more);
void canon_done(struct canon *canon);

/* The text of a profile, for people: what is long by its hash. */
void canon_print(const struct kiln_batch *batch, uint32_t profile, struct kiln_buf *out);

/*
 * True if `got` has every profile of `sent`, once, and no other.  Equal profiles of `sent` are one,
 * unless they have the time of arrival.
 * Else *ret_sent and *ret_got are the profiles at which they differ, UINT32_MAX: there is no more.
 */
bool canon_same(const struct canon *sent, const struct canon *got, uint32_t *ret_sent,
                uint32_t *ret_got);

#endif /* KILN_TESTS_SUPPORT_CANON_H */
