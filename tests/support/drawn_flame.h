/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn_flame - flames out of drawn stacks ("main;parse 3"), and flames and diffs as text.
 *
 * Helpers fail the test on any error.
 */
#ifndef KILN_TESTS_SUPPORT_DRAWN_FLAME_H
#define KILN_TESTS_SUPPORT_DRAWN_FLAME_H

#include "core/flame.h"
#include "core/flame_diff.h"

/* With a tree of at most `nodes_max` nodes (0: all; "other" not counted) and all functions. */
struct kiln_flame *kiln_test_flame(const char *stacks, uint32_t nodes_max);

/* Indented nodes, "main 3->4 1->0": totals and selfs of both sides; a line each.  Texts live until
 * the next call of any of them. */
const char *kiln_test_flame_tree_text(const struct kiln_flame *flame);
const char *kiln_test_flame_diff_text(const struct kiln_flame_diff *diff);

#endif /* KILN_TESTS_SUPPORT_DRAWN_FLAME_H */
