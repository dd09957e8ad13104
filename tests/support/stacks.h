/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks - batches drawn as text: one line a sample, root first, its value last.
 *
 *   batch_of_stacks("main;parse;read 3\n" "main;idle 1\n")
 */
#ifndef KILN_TESTS_SUPPORT_STACKS_H
#define KILN_TESTS_SUPPORT_STACKS_H

#include "core/builder.h"

/* The samples of a drawing, in a profile of the builder. */
void draw_stacks(struct kiln_builder *b, uint32_t profile, const char *drawing);

/* A batch of one profile, cpu in nanoseconds, that starts at `time_ns` and lasts 10 s. */
struct kiln_batch *batch_of_stacks_at(uint64_t time_ns, const char *drawing);
struct kiln_batch *batch_of_stacks(const char *drawing);

/* All samples of a batch as a drawing, in their order; the caller frees it with kiln_free(). */
char *stacks_of_batch(const struct kiln_batch *batch);
/* Fails the test unless the batch draws like this. */
void check_stacks(const struct kiln_batch *batch, const char *drawing);

#endif /* KILN_TESTS_SUPPORT_STACKS_H */
