/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows - profiles in a heap, before they are put in order: a builder in which resources, scopes,
 * profiles and samples lie in the order they came, and beside it, for each profile, which resource,
 * scope and series it is of.  The tree that a batch has comes at the end.
 *
 * The head of the store is one; a question reads blocks into one.
 *
 * Threads: one owner at a time; may be read by many while nobody adds.
 */
#ifndef KILN_STORE_ROWS_H
#define KILN_STORE_ROWS_H

#include "core/builder.h"
#include "store/block.h"

/* What observations come down to: of those without a time of their own, and of those with. */
enum { KILN_SUM_PLAIN, KILN_SUM_TIMED, KILN_N_SUMS };
struct kiln_row_sums {
    struct {
        int64_t raw;   /* of values, or of times that count one */
        double weight; /* of their amounts */
        uint64_t n;
    } of[KILN_N_SUMS];
    uint64_t min_ns, max_ns; /* of the times of their own */
};

/* One profile; its number is that of its profile in the builder. */
struct kiln_row {
    uint32_t series, resource, scope;
    uint32_t flags;          /* enum kiln_profile_flag */
    uint32_t first_sample;   /* in the builder */
    uint64_t min_ns, max_ns; /* of its own time and its observations' */
    struct kiln_row_sums sums;
};

struct kiln_rows {
    struct kiln_builder *b;
    struct kiln_row *rows;
    uint32_t n, cap;
};

KILN_CHECK int kiln_rows_init(struct kiln_rows *rows, const struct kiln_limits *limits);
void kiln_rows_done(struct kiln_rows *rows);
size_t kiln_rows_bytes(const struct kiln_rows *rows);

static inline const struct kiln_batch *kiln_rows_batch(const struct kiln_rows *rows)
{
    return kiln_builder_peek(rows->b);
}

/* Adds a row for the last profile of the builder, all of whose samples are there; fills in its
 * times, sums and first sample.  Failures stick in the builder. */
void kiln_rows_add(struct kiln_rows *rows, struct kiln_row row);

/* All profiles of a block that a reader gives, through to its end; with a window, those whose own
 * time is in it. */
struct kiln_window;
KILN_CHECK int kiln_rows_read(struct kiln_rows *rows, struct kiln_block_reader *reader,
                              const struct kiln_window *window, struct kiln_err *err);

/* A profile as a block wants it. */
struct kiln_block_profile kiln_rows_profile(const struct kiln_rows *rows, uint32_t row);

struct kiln_rows_choice {
    const uint64_t *series;    /* a bit each; NULL: all */
    uint64_t start_ns, end_ns; /* 0, 0: all times */
};
/*
 * The chosen rows as a batch of its own: profiles whose own time or any of whose observations lie
 * in the time, without the observations outside.  NULL, and 0, where there are none.
 */
KILN_CHECK int kiln_rows_select(const struct kiln_rows *rows, const struct kiln_rows_choice *choice,
                                const struct kiln_limits *limits, struct kiln_batch **ret_batch,
                                struct kiln_err *err);

#endif /* KILN_STORE_ROWS_H */
