/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - many batches into one, and compact - one batch without what nobody uses.
 *
 * What becomes one:
 *   - resources of equal attributes, schema URL and entity references;
 *   - within a resource, scopes of equal name, version, attributes and schema URL;
 *   - within a scope, profiles of equal sample type, period, id, attributes, start and duration,
 *     whose samples have the same shape; never one that carries an original payload;
 *   - within a profile, samples of equal stack, attributes and link.  Values without times are
 *     added up (saturating), observations with times are all kept.  A sample keeps its shape:
 *     values with times, values alone and times alone stay three samples.
 * Of two counts of dropped attributes the larger stays.
 *
 * With `combine_times` profiles of different start become one as well.  It starts with the
 * earliest; its duration is the time its parts cover: ten seconds and the next ten seconds are
 * twenty, the same ten seconds of two hosts are ten, a gap between two parts does not count.
 * Where samples carry times the gaps do count, so that every time lies inside the profile.
 * Parts without a start cannot overlap with anything: their durations are added.
 *
 * With `relocate` every start of a program has the addresses of the first: its mapping stands for
 * the later ones of the same code, and addresses move with it, so that equal stacks meet.
 *
 * Everything is linear in the input.
 *
 * Threads: no state; the batches are only read.
 */
#ifndef KILN_CORE_MERGE_H
#define KILN_CORE_MERGE_H

#include "core/builder.h"

struct kiln_merge_opts {
    struct kiln_limits limits; /* zero: the default */
    bool combine_times;        /* also merge profiles of different start into one longer profile */
    bool keep_profiles_apart;  /* never merge two profiles, only their resources and scopes */
    bool relocate; /* the same code at other addresses is the same: core/code.h says when */
};

/* Merges `n` batches.  `opts` may be NULL. */
KILN_CHECK int kiln_merge(struct kiln_batch *const *batches, uint32_t n,
                          const struct kiln_merge_opts *opts, struct kiln_batch **ret_batch,
                          struct kiln_err *err);

/* The same batch without dictionary entries that nothing refers to. */
KILN_CHECK int kiln_compact(const struct kiln_batch *batch, struct kiln_batch **ret_batch,
                            struct kiln_err *err);

#endif /* KILN_CORE_MERGE_H */
