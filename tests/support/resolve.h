/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve - what a batch says, as sorted lines of text: the same for batches that differ only in
 * the order of tables, in how samples are grouped, or in how observations are spread over samples.
 *
 *   {host=a}|scope|cpu/ns|... main;parse;read {thread=1} @100 1 30
 *
 * A line stands for one identity and time: how often it was observed (of values without a time only
 * the sum matters, and the count is 0) and the sum of its values.
 */
#ifndef KILN_TESTS_SUPPORT_RESOLVE_H
#define KILN_TESTS_SUPPORT_RESOLVE_H

#include "base/buf.h"
#include "core/batch.h"

struct resolved {
    struct line {
        char *text;
        uint64_t count;
        int64_t sum;
    } * lines;
    size_t n, cap;
};

enum { RESOLVE_NO_PROFILE_TIME = 1 };

/* Adds the samples of a batch, its empty profiles included; may be called for several batches. */
void resolve_add(struct resolved *to, const struct kiln_batch *batch, int flags);
/* All lines as one text, sorted and added up.  Frees the lines; the caller frees the text. */
char *resolve_text(struct resolved *lines);
/* The same for one batch. */
char *resolve_batch(const struct kiln_batch *batch, int flags);

/* Fails the test unless every index, range and order of the batch is as core/batch.h promises. */
void check_invariants(const struct kiln_batch *batch);
/* Fails the test if some dictionary entry (but the zero values) is used by nothing. */
void check_no_orphans(const struct kiln_batch *batch);

#endif /* KILN_TESTS_SUPPORT_RESOLVE_H */
