/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_tree - formats that only Pyroscope's old agents write: lines, trie, tree.
 *
 * Each becomes one profile of samples/count without a time.  Nothing of the content is kept.
 *
 * Threads: no state.
 */
#ifndef KILN_PIPELINE_RECEIVERS_INGEST_TREE_H
#define KILN_PIPELINE_RECEIVERS_INGEST_TREE_H

#include "core/builder.h"

/* One stack a line, root first, "a;b;c"; each line counts one. */
KILN_CHECK int kiln_ingest_lines(struct kiln_str content, struct kiln_builder *b,
                                 struct kiln_err *err);
KILN_CHECK int kiln_ingest_trie(struct kiln_str content, struct kiln_builder *b,
                                struct kiln_err *err);
KILN_CHECK int kiln_ingest_tree(struct kiln_str content, struct kiln_builder *b,
                                struct kiln_err *err);

#endif /* KILN_PIPELINE_RECEIVERS_INGEST_TREE_H */
