/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_isolate - a frozen head that cannot be written as a block that reads back: finds the series
 * at fault, so that all others get their block and the write-ahead log is not kept for ever.
 *
 * Threads: under the store's `keeping`.
 */
#ifndef KILN_STORE_CUT_ISOLATE_H
#define KILN_STORE_CUT_ISOLATE_H

#include "store/store_int.h"

/*
 * Writes the series at fault as OTLP to aside/TENANT-RECORD.otlp, and then the others as a block.
 * Returns 1, 0 if no series was left for a block, or an error: nothing has changed then.
 */
KILN_CHECK int kiln_cut_isolate(struct kiln_store *store, struct kiln_tenant *tenant,
                                const struct kiln_head_write_opts *opts,
                                struct kiln_block_id *ret_id, struct kiln_err *err);

#endif /* KILN_STORE_CUT_ISOLATE_H */
