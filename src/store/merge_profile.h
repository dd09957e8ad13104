/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_profile - the sums of a merge as a batch of one profile: a sample for each stack, with
 * whole locations.
 *
 * Threads: one owner.
 */
#ifndef KILN_STORE_MERGE_PROFILE_H
#define KILN_STORE_MERGE_PROFILE_H

#include "store/scan.h"

struct kiln_merge_profile;

KILN_CHECK int kiln_merge_profile_new(struct kiln_scan *scan, const struct kiln_question *question,
                                      struct kiln_merge_profile **ret_profile,
                                      struct kiln_err *err);
void kiln_merge_profile_free(struct kiln_merge_profile *profile);
/* Forgets everything. */
void kiln_merge_profile_restart(struct kiln_merge_profile *profile);

/* A profile went by: the first one says of which type all are. */
KILN_CHECK int kiln_merge_profile_saw(struct kiln_merge_profile *profile,
                                      const struct kiln_scan_profile *seen);
/* Of a source, by number of a stack less 1. */
struct kiln_merge_sums {
    const int64_t *sums;
    const double *means; /* NULL: sums count; else these, rounded when all are there */
    uint32_t n;
};
KILN_CHECK int kiln_merge_profile_add(struct kiln_merge_profile *profile,
                                      const struct kiln_scan_source *source,
                                      const struct kiln_merge_sums *sums, struct kiln_err *err);
KILN_CHECK int kiln_merge_profile_finish(struct kiln_merge_profile *profile,
                                         const struct kiln_basis *basis,
                                         struct kiln_batch **ret_batch, struct kiln_err *err);

#endif /* KILN_STORE_MERGE_PROFILE_H */
