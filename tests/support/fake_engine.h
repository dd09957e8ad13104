/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_engine - an engine that answers what a test tells it to, and remembers what it was asked.
 */
#ifndef KILN_TESTS_SUPPORT_FAKE_ENGINE_H
#define KILN_TESTS_SUPPORT_FAKE_ENGINE_H

#include "store/engine.h"

struct kiln_fake_label {
    const char *values[8]; /* in the order of `names`; NULL: empty */
    uint64_t min_ns, max_ns, n_profiles;
};

struct kiln_fake_series {
    const char *key; /* with '|' for each NUL: "shop|cpu:cpu:ns::|service.version|1.2|" */
    uint64_t min_ns, max_ns, n_profiles;
};

/* What is NULL or 0 is not there. */
struct kiln_fake {
    struct kiln_engine engine;
    const char *label_names[8];
    const struct kiln_fake_label *labels; /* projected to what is asked for; matchers hold */
    uint32_t n_labels;
    const struct kiln_fake_series *series;
    uint32_t n_series;
    /* the answer of everything else */
    int code;
    struct kiln_timeline *(*timeline)(void *context, const struct kiln_question *question,
                                      const struct kiln_timeline_opts *opts);
    struct kiln_merged *(*merge)(void *context, const struct kiln_question *question);
    struct kiln_found *(*found)(void *context, const struct kiln_question *question);
    void *context;
    /* how often it was asked */
    uint32_t n_labels_asked, n_asked;
};

void kiln_fake_init(struct kiln_fake *fake);

#endif /* KILN_TESTS_SUPPORT_FAKE_ENGINE_H */
