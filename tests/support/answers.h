/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers - questions to a store, and its answers printed as text.
 *
 * Helpers fail the test on any error.  A text lives until the next call of any of them.
 */
#ifndef KILN_TESTS_SUPPORT_ANSWERS_H
#define KILN_TESTS_SUPPORT_ANSWERS_H

#include "store/engine.h"

/* A question to the tenant "anonymous" about all there is, on a leash without limits. */
struct kiln_question kiln_test_question(void);

/* As an indented tree ("main 3 1": total, self), then the functions ("main self total"), each if
 * it is there. */
const char *kiln_test_flame_text(const struct kiln_flame *flame);
/* A line for each series: "a,b: bucket=value bucket=value". */
const char *kiln_test_timeline_text(const struct kiln_timeline *timeline, uint32_t n_by);
/* A line for each row: "a,b". */
const char *kiln_test_labels_text(const struct kiln_labels *labels, uint32_t n);
/* A line for each row: "time value samples id", or of a span "time+duration value samples
 * trace.span" (the last bytes of ids). */
const char *kiln_test_found_text(const struct kiln_found *found);

/* The answers themselves, as texts. */
const char *kiln_test_merge(struct kiln_engine *engine, const struct kiln_question *q,
                            const struct kiln_merge_wants *wants);
const char *kiln_test_timeline(struct kiln_engine *engine, const struct kiln_question *q,
                               const struct kiln_timeline_opts *opts);
const char *kiln_test_labels(struct kiln_engine *engine, const struct kiln_question *q,
                             const struct kiln_str *names, uint32_t n);
const char *kiln_test_found(struct kiln_engine *engine, const struct kiln_question *q,
                            const struct kiln_found_opts *opts);

#endif /* KILN_TESTS_SUPPORT_ANSWERS_H */
