/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reopen - a finished batch becomes a builder again, for a few changes that need no copy of it.
 *
 *   r = kiln_reopen(batch, &b, &err);            takes the reference over
 *   kiln_builder_resource(b, 0)->attrs = kiln_draft_close(&draft);
 *   r = kiln_builder_finish(b, &batch, &err);
 *
 * A batch that others hold too is copied first, so that nobody sees it change.  Entries of the
 * dictionary are never changed, as others may refer to them: whoever wants another attribute adds
 * one and refers to that.  What nothing refers to any more stays in memory and is not written
 * (codec/otlp_tables.h).
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_REOPEN_H
#define KILN_CORE_REOPEN_H

#include "core/builder.h"

/* Returns 0, -ENOMEM or KILN_E_LIMIT; the reference is gone in any case. */
KILN_CHECK int kiln_reopen(struct kiln_batch *batch, struct kiln_builder **ret_builder,
                           struct kiln_err *err);

/* Gives a resource another set of attributes; its entities lose the keys that are not in it. */
void kiln_reopened_resource(struct kiln_builder *b, uint32_t resource, uint32_t attrs);

/* Gives one sample another set of attributes, or another link. */
void kiln_reopened_sample(struct kiln_builder *b, uint32_t sample, uint32_t attrs);
void kiln_reopened_link(struct kiln_builder *b, uint32_t sample, uint32_t link);

/*
 * Gives one sample other observations: values, timestamps or both (NULL: none), at least one of
 * them.  They may not be the batch's own.
 */
void kiln_reopened_observations(struct kiln_builder *b, uint32_t sample, const int64_t *values,
                                const uint64_t *times, uint32_t n);

/*
 * Gives all samples other sets of attributes: asked once for each set that any sample has, whatever
 * the number of samples and profiles.  Returns 0, or what `edit` failed with.
 */
KILN_CHECK int kiln_reopened_samples(struct kiln_builder *b,
                                     int (*edit)(void *context, struct kiln_builder *b,
                                                 uint32_t *attrs),
                                     void *context);

/* True where nobody else holds the batch; it is then the caller's who does. */
bool kiln_batch_is_sole(const struct kiln_batch *batch);

#endif /* KILN_CORE_REOPEN_H */
