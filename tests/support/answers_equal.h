/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers_equal - whether two answers to a question say the same.
 *
 * They fail the test where not.  `loose`: values are means, that were rounded or added up in
 * another order.
 */
#ifndef KILN_TESTS_SUPPORT_ANSWERS_EQUAL_H
#define KILN_TESTS_SUPPORT_ANSWERS_EQUAL_H

#include "store/engine.h"

void kiln_test_basis_equal(const struct kiln_basis *a, const struct kiln_basis *b);
void kiln_test_merged_equal(const struct kiln_merged *a, const struct kiln_merged *b, bool loose);
/* An answer from roll-ups, of which functions are exact and nodes within their bound; `truth` is
 * the whole tree, and `whole`: so should be the other. */
void kiln_test_merged_within(const struct kiln_merged *a, const struct kiln_merged *truth,
                             bool whole);
/* An answer of a wide query (store/merge_wide.h): its total is exact, nodes and functions are
 * within their bounds, and none that is larger is missing. */
void kiln_test_merged_pruned(const struct kiln_merged *a, const struct kiln_merged *truth,
                             bool whole);
void kiln_test_timeline_equal(const struct kiln_timeline *a, const struct kiln_timeline *b,
                              uint32_t n_by);
void kiln_test_found_equal(const struct kiln_found *a, const struct kiln_found *b);
/* The same rows, with the same sizes. */
void kiln_test_labels_equal(const struct kiln_labels *a, const struct kiln_labels *b, uint32_t n);
/* All rows of `part` are in `whole`. */
void kiln_test_labels_within(const struct kiln_labels *part, const struct kiln_labels *whole,
                             uint32_t n);

#endif /* KILN_TESTS_SUPPORT_ANSWERS_EQUAL_H */
