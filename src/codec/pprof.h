/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof - google/pprof's profile.proto, in both directions, uncompressed.
 *
 * Nothing of a pprof is lost in a batch.  N sample types become N profiles of one value each, in
 * one scope, with the same samples in the same order, the default type first; what OTLP has no
 * field for becomes an attribute:
 *
 *   scope     order of sample types     pprof.scope.sample_type_order
 *             default type              pprof.scope.default_sample_type
 *   profile   comments, doc URL         pprof.profile.comment, .doc_url
 *             drop and keep frames      pprof.profile.drop_frames, .keep_frames
 *   mapping   build id                  process.executable.build_id.gnu; .go where it has a '/'
 *             has_functions and others  pprof.mapping.has_functions, ... (where true)
 *   location  is_folded                 pprof.location.is_folded (where true)
 *   sample    label, text or number     an attribute, with its unit; several values of one key are
 *                                       an array, with different units an array of {value, unit}
 *
 * Going back, one pprof has to hold what a batch may spread over resources, scopes, links and
 * timestamps; kiln_pprof_losses says what did not fit.
 *
 * Texts that are not UTF-8 get U+FFFD for each bad byte; times before 1970 become 0.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_PPROF_H
#define KILN_CODEC_PPROF_H

#include "base/buf.h"
#include "base/err.h"
#include "core/builder.h"

/*
 * Looks at the first messages: true if they can only be a pprof (or one of its old text formats,
 * which kiln_pprof_decode() refuses by name).
 */
bool kiln_pprof_detect(struct kiln_str content);

/*
 * Adds one resource, one scope and a profile for each sample type.  The batch points into `raw`,
 * which has to live as long.  Returns 0, or an error that names the place.
 */
KILN_CHECK int kiln_pprof_decode(struct kiln_str raw, struct kiln_builder *b, struct kiln_err *err);

/* What a batch said that its pprof does not; counts of things. */
struct kiln_pprof_losses {
    uint64_t timestamps;     /* added up into a count or a value */
    uint64_t profile_ids;    /* also payloads of profiles */
    uint64_t scopes;         /* with a name, version, schema or attributes of their own */
    uint64_t periods;        /* profiles whose period differs from the one kept */
    uint64_t attributes;     /* of profiles, mappings, locations; build ids beside the one kept */
    uint64_t values_as_text; /* booleans, doubles, bytes, maps that became the text of a label */
    uint64_t overflows;      /* sums past 64 bits, kept at the limit */
};

struct kiln_pprof_opts {
    struct kiln_pprof_losses *losses; /* filled where not NULL */
};

/* Appends one uncompressed pprof that holds the whole batch.  `opts` may be NULL. */
KILN_CHECK int kiln_pprof_encode(const struct kiln_batch *batch, const struct kiln_pprof_opts *opts,
                                 struct kiln_buf *out, struct kiln_err *err);

#endif /* KILN_CODEC_PPROF_H */
