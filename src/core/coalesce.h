/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coalesce - equal resources and equal scopes of what is being built, once: what is in the later
 * ones goes to the first, in the order in which it came.  Of two counts of dropped attributes the
 * larger stays.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_COALESCE_H
#define KILN_CORE_COALESCE_H

#include "core/builder.h"

/* Of a builder whose samples came in the order of their profiles; failures stick in it. */
void kiln_builder_coalesce(struct kiln_builder *b);

#endif /* KILN_CORE_COALESCE_H */
