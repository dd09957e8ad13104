/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_rows - between plain numbers and the columns of a page of rows, both ways.
 *
 * Threads: as the writer or reader they belong to.
 */
#ifndef KILN_STORE_BLOCK_ROWS_H
#define KILN_STORE_BLOCK_ROWS_H

#include "store/block_writer.h"
#include "store/ticks.h"

/* Writes the page of rows at hand, if there is something in it. */
void kiln_rows_flush(struct kiln_block_writer *w);

/* How far the numbers of a page may go, and what moments there are. */
struct kiln_rows_tables {
    uint64_t n_series, n_stacks, n_sets, n_links, n_origins, n_moments;
    const struct kiln_moment *moments; /* by number - 1 */
    const uint16_t *cpus;              /* by number of a set: the processor it names, or 0 */
    struct kiln_ticks *ticks;          /* scratch */
    uint32_t skipped; /* a bit for each column that was passed over: its numbers are not there, only
                         how many they are; of the three columns of times all or none */
};

/* The processor that a set of attributes names, for kiln_rows_tables; 0 if none. */
uint16_t kiln_rows_cpu(const struct kiln_dict *dict, uint32_t set);

/* Turns the columns of a page, as read, into plain numbers again, all of them inside the tables. */
KILN_CHECK int kiln_rows_decode(struct kiln_column *columns, uint64_t n_profiles,
                                const struct kiln_rows_tables *tables, struct kiln_budget *budget,
                                struct kiln_err *err);

/* The same for the times of profiles alone: only the columns HEAD, SERIES, MOMENT, SHAPE and EXTRA
 * are looked at, and SERIES is made plain. */
struct kiln_rows_clock {
    uint64_t n_series;
    const uint64_t *times; /* of moments, by number - 1 */
    uint32_t n;
};
KILN_CHECK int kiln_rows_decode_times(struct kiln_column *columns, uint64_t n_profiles,
                                      const struct kiln_rows_clock *clock, uint64_t *ret_times);

/* ---- walking a page of plain numbers ---- */

struct kiln_rows_cursor {
    const struct kiln_column *columns;
    const struct kiln_rows_tables *tables;
    uint32_t profile, extra, row, value, time; /* the next of each */
    uint64_t id, payload;                      /* likewise: bytes */
};

struct kiln_rows_profile {
    uint32_t shape; /* the column of that name */
    uint64_t of[4]; /* rows by shape */
    struct kiln_moment moment;
    uint32_t row, value, time; /* the first of each */
    uint64_t id, payload, payload_len;
};

/* The next profile.  Returns 1, 0 at the end, KILN_E_CORRUPT where the columns do not fit together.
 */
KILN_CHECK int kiln_rows_next(struct kiln_rows_cursor *cursor, struct kiln_rows_profile *ret);

#endif /* KILN_STORE_BLOCK_ROWS_H */
