/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle - questions about samples answered in the plainest way there is: everything is selected
 * from the engine, series by series, looked at one observation after the other, and added up.
 *
 * Needs `series` and `select` of the engine only.  No speed, no limits of memory but the leash's.
 * Threads: as the engine's.
 */
#ifndef KILN_TESTS_SUPPORT_ORACLE_H
#define KILN_TESTS_SUPPORT_ORACLE_H

#include "store/engine.h"

int kiln_oracle_merge(struct kiln_engine *engine, const struct kiln_question *question,
                      const struct kiln_merge_wants *wants, struct kiln_merged **ret_merged,
                      struct kiln_err *err);
int kiln_oracle_timeline(struct kiln_engine *engine, const struct kiln_question *question,
                         const struct kiln_timeline_opts *opts, struct kiln_timeline **ret_timeline,
                         struct kiln_err *err);
int kiln_oracle_found(struct kiln_engine *engine, const struct kiln_question *question,
                      const struct kiln_found_opts *opts, struct kiln_found **ret_found,
                      struct kiln_err *err);
int kiln_oracle_labels(struct kiln_engine *engine, const struct kiln_question *question,
                       const struct kiln_str *names, uint32_t n, struct kiln_labels **ret_labels,
                       struct kiln_err *err);

#endif /* KILN_TESTS_SUPPORT_ORACLE_H */
