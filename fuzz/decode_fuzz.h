/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_fuzz - what every fuzz target of a decoder does: decode under small limits, finish, and
 * insist that a failure has a code and a sentence.
 */
#ifndef KILN_FUZZ_DECODE_FUZZ_H
#define KILN_FUZZ_DECODE_FUZZ_H

#include "core/builder.h"
#include "fuzz.h"

/* The batch, which the caller gives back, or NULL. */
static inline struct kiln_batch *
kiln_fuzz_decode(int (*decode)(struct kiln_str text, struct kiln_builder *b, struct kiln_err *err),
                 struct kiln_str text)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_err err = {0};
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;
    int r;

    limits.memory_bytes = 64u << 20;
    if (kiln_builder_new(&limits, &b) < 0)
        return NULL;
    r = decode(text, b, &err);
    if (r < 0) {
        FUZZ_CHECK(err.code ? err.code == r : kiln_builder_error(b) != 0);
        kiln_builder_free(b);
        return NULL;
    }
    if (err.code || kiln_builder_finish(b, &batch, &err) < 0)
        return NULL;
    return batch;
}

#endif /* KILN_FUZZ_DECODE_FUZZ_H */
