/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_check - does a message keep the rules of OTLP profiles?
 *
 * The rules and the flags are those of the OpenTelemetry project's profcheck, and a few more: what
 * the protocol says MUST hold is an error, what it says SHOULD hold is a warning, each with the
 * path of the place.  Duplicates and orphans are looked for on request, and then they are errors.
 * It reads the bytes itself, not through the decoder, which forgives much of
 * this. A message of an older revision is an error in itself; the rest is checked on its
 * translation.
 *
 * Threads: plain results, owned by the caller.
 */
#ifndef KILN_CODEC_OTLP_CHECK_H
#define KILN_CODEC_OTLP_CHECK_H

#include "base/err.h"
#include "codec/otlp.h"

enum kiln_finding_level { KILN_FINDING_ERROR, KILN_FINDING_WARNING };

struct kiln_finding {
    enum kiln_finding_level level;
    const char *rule; /* a short name: "index", "zero-value", ... */
    char where[160];
    char text[160];
};

struct kiln_check_opts {
    bool dupes;         /* look for equal entries in a table */
    bool orphans;       /* look for entries that nothing refers to */
    bool sample_shapes; /* samples of a profile must have one shape */
    bool strict;        /* warnings are errors, and a timestamp at the very end is outside */
};

struct kiln_check {
    struct kiln_finding *findings; /* the first of them */
    uint32_t n_findings;
    uint64_t n_errors, n_warnings; /* all of them */
    enum kiln_otlp_revision revision;
    uint32_t n_profiles;
    uint64_t n_samples;
};

/* How many findings are kept; all are counted. */
#define KILN_FINDINGS_MAX 1000u

/*
 * Returns 0 (with findings or without), or a negative code where the check itself could not be
 * done: no memory, or bytes that are no protobuf at all.
 */
KILN_CHECK int kiln_otlp_check(struct kiln_str message, const struct kiln_check_opts *opts,
                               struct kiln_check **ret_check, struct kiln_err *err);
void kiln_check_free(struct kiln_check *check);

#endif /* KILN_CODEC_OTLP_CHECK_H */
