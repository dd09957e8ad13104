/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tags - what a sender says about a profile beside its bytes: labels, a name, a time.
 *
 * Labels become attributes of the resource under their own names, with these exceptions, which are
 * Pyroscope's labels with a meaning:
 *
 *   service_name            service.name
 *   __name__                the family of the profile types (core/type.h); a leading godeltaprof_
 *                           is cut off, and cpu in "wall" is of "process_cpu"
 *   __session_id__          kept as it is
 *   any other __label__     dropped: Pyroscope makes them itself
 *
 * A label that comes twice has its last value.  Texts are borrowed.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_RECEIVERS_TAGS_H
#define KILN_PIPELINE_RECEIVERS_TAGS_H

#include "base/err.h"
#include "core/builder.h"

enum { KILN_TAGS_MAX = 100, KILN_TAG_NAME_MAX = 1024, KILN_TAG_VALUE_MAX = 2048 };

struct kiln_tag {
    struct kiln_str name, value;
    uint32_t attr; /* in the builder at hand */
};

struct kiln_tags {
    struct kiln_tag list[KILN_TAGS_MAX];
    uint32_t n;
    struct kiln_str service;    /* empty: unknown */
    struct kiln_str family;     /* empty: the usual ones */
    uint64_t from_ns, until_ns; /* of profiles that do not say when they were; 0: unknown */
    bool moves;                 /* the first profile is of from_ns whatever it says, all move along;
                                   timestamps of samples do not */
    uint8_t id[16];             /* of the profiles; zero: none */
};

/* An empty value takes the label away.  KILN_E_MALFORMED, KILN_E_UTF8 or KILN_E_LIMIT. */
KILN_CHECK int kiln_tags_add(struct kiln_tags *tags, struct kiln_str name, struct kiln_str value,
                             struct kiln_err *err);
/* The value of a label, KILN_STR_NONE without it. */
struct kiln_str kiln_tags_get(const struct kiln_tags *tags, struct kiln_str name);

/*
 * Before and after the profiles are decoded into a builder: the first call brings the labels there
 * (cheap while the builder has little in it), the second puts all of this on every resource and
 * profile, and makes links of the ids of samples.
 */
void kiln_tags_prepare(struct kiln_tags *tags, struct kiln_builder *b);
KILN_CHECK int kiln_tags_apply(const struct kiln_tags *tags, struct kiln_builder *b);

#endif /* KILN_PIPELINE_RECEIVERS_TAGS_H */
