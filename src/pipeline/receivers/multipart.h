/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipart - the parts of a multipart/form-data body (RFC 7578), without copying.
 *
 *   kiln_multipart_init(&m, content_type, body, &err);
 *   while ((r = kiln_multipart_next(&m, &part, &err)) > 0)
 *       ... part.name, part.content ...
 *
 * Bounded: 64 parts, 16 KiB of headers a part.  The content of a part is found in one pass.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_RECEIVERS_MULTIPART_H
#define KILN_PIPELINE_RECEIVERS_MULTIPART_H

#include "base/err.h"
#include "base/str.h"

struct kiln_multipart {
    struct kiln_str rest;
    char delimiter[80]; /* CR LF, two dashes, the boundary (at most 70 bytes) */
    size_t delimiter_len;
    uint32_t n; /* parts so far */
};

struct kiln_part {
    struct kiln_str name;
    struct kiln_str filename;
    struct kiln_str content;
};

/* Reads the boundary from the Content-Type and finds the first part. */
KILN_CHECK int kiln_multipart_init(struct kiln_multipart *m, struct kiln_str content_type,
                                   struct kiln_str body, struct kiln_err *err);

/* Returns 1, 0 behind the last part, or KILN_E_MALFORMED, KILN_E_TRUNCATED, KILN_E_LIMIT. */
KILN_CHECK int kiln_multipart_next(struct kiln_multipart *m, struct kiln_part *ret_part,
                                   struct kiln_err *err);

#endif /* KILN_PIPELINE_RECEIVERS_MULTIPART_H */
