/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - rows of cells, aligned when they are printed.
 *
 * Columns are as wide as their widest cell.  On a terminal, the column that may shrink (at most
 * one) gives up what the line is too long.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CLI_TABLE_H
#define KILN_CLI_TABLE_H

#include "base/mem.h"
#include "cli/term.h"

enum kiln_align { KILN_LEFT, KILN_RIGHT };

/* What a column gives up where the line is too long: nothing, or a part of its texts. */
enum kiln_cut { KILN_KEEP, KILN_CUT_START, KILN_CUT_MIDDLE, KILN_CUT_END };

struct kiln_column {
    const char *title;
    enum kiln_align align;
    enum kiln_cut cut;
};

enum { KILN_COLUMNS_MAX = 12 };

struct kiln_cell {
    size_t at; /* in `text` */
    uint32_t len;
    uint32_t style; /* enum kiln_style */
};

struct kiln_table {
    const struct kiln_column *columns;
    uint32_t n_columns;
    struct kiln_cell *cells;
    uint32_t n_cells, cap;
    struct kiln_budget budget;
    struct kiln_buf text;
    int error; /* sticky */
};

/* `columns` is borrowed. */
void kiln_table_init(struct kiln_table *table, const struct kiln_column *columns, uint32_t n);
void kiln_table_done(struct kiln_table *table);

/* The next cell, row by row: its text is what the caller appends to `text` before the next call. */
struct kiln_buf *kiln_table_cell(struct kiln_table *table, enum kiln_style style);
/* The same, for a text that is there already. */
void kiln_table_add(struct kiln_table *table, enum kiln_style style, struct kiln_str text);

/* Appends all rows to `out`, with a line of titles first, each line after `indent` spaces. */
void kiln_table_print(struct kiln_table *table, const struct kiln_term *term, uint32_t indent,
                      struct kiln_buf *out);

#endif /* KILN_CLI_TABLE_H */
