/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_rows - the samples of a batch as the rows of one table, a column for each sample type: the
 * shape that a pprof has.
 *
 * Profiles that came from one pprof have the same samples in the same order, and become that table
 * again, row by row.  Of any other batch, samples of one identity (resource, stack, attributes,
 * link) make one row, and types of one name and unit one column.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_PPROF_ROWS_H
#define KILN_CODEC_PPROF_ROWS_H

#include "base/mem.h"
#include "codec/pprof.h"

struct kiln_pprof_row {
    uint32_t stack, attrs, link;
    uint32_t resource; /* attribute set of the resource */
};

struct kiln_pprof_rows {
    struct kiln_budget budget;
    struct kiln_value_type *types; /* of the columns */
    struct kiln_pprof_row *rows;
    int64_t *values; /* row by row */
    uint32_t n_types, n_rows;
    uint32_t cap_types, cap_rows, cap_values;
    bool has_cpu_time; /* the last column is CPU time made of counts */
};

/* `losses` counts timestamps and overflows.  Returns 0, KILN_E_LIMIT or -ENOMEM. */
KILN_CHECK int kiln_pprof_rows_init(struct kiln_pprof_rows *rows, const struct kiln_batch *batch,
                                    struct kiln_pprof_losses *losses);
void kiln_pprof_rows_done(struct kiln_pprof_rows *rows);

#endif /* KILN_CODEC_PPROF_ROWS_H */
