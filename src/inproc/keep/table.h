/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - rows of what was sampled, added up by what keeps them apart, in the order they came.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_KEEP_TABLE_H
#define KILN_INPROC_KEEP_TABLE_H

#include <stdint.h>

#include "base/mem.h"
#include "core/intern.h"
#include "inproc/thread/ring.h"

/* What keeps rows apart; all bytes of it count. */
struct kiln_in_key {
    uint32_t stack;
    uint8_t kind, reason;
    uint16_t labels;
    uint8_t trace[16], span[8];
};

struct kiln_in_row {
    struct kiln_in_key key;
    double count, value;
};

struct kiln_in_table {
    struct kiln_in_row *rows;
    uint32_t n, cap;
    struct kiln_intern index;
    struct kiln_budget budget;
};

/* 0, or negative: a row more than `max`, or no memory. */
KILN_CHECK int kiln_in_table_add(struct kiln_in_table *table, const struct kiln_in_key *key,
                                 double count, double value, uint32_t max);
/* The rows are the caller's, to be freed by kiln_free(); the table is empty. */
struct kiln_in_row *kiln_in_table_take(struct kiln_in_table *table, uint32_t *ret_n);
void kiln_in_table_done(struct kiln_in_table *table);

#endif /* KILN_INPROC_KEEP_TABLE_H */
