/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata - headers that deliveries came with, where their receiver includes them: what keeps
 * batches apart (metadata_keys), and what actions take values from (from_context).
 *
 * Threads: no state.
 */
#ifndef KILN_PIPELINE_METADATA_H
#define KILN_PIPELINE_METADATA_H

#include "pipeline/pipeline.h"

enum { KILN_METADATA_KEYS_MAX = 16 };

/* Names in any case, each once; borrowed. */
struct kiln_metadata_keys {
    struct kiln_str names[KILN_METADATA_KEYS_MAX];
    uint32_t n;
};

/* The values of one name, one after the other; *at is 0 at first. */
bool kiln_metadata_next(const struct kiln_remote *remote, struct kiln_str name, uint32_t *at,
                        struct kiln_str *ret_value);

/* Appends what tells senders apart: two have the same values of all keys where they get the same
 * text.  A value that is empty differs from none. */
void kiln_metadata_tell(const struct kiln_metadata_keys *keys, const struct kiln_remote *remote,
                        struct kiln_buf *out);

/* What is left of a sender when others are gathered who are alike: those headers alone, of which at
 * most `max` are put into `headers`. */
struct kiln_remote kiln_metadata_common(const struct kiln_metadata_keys *keys,
                                        const struct kiln_remote *remote,
                                        struct kiln_header *headers, uint32_t max);

#endif /* KILN_PIPELINE_METADATA_H */
