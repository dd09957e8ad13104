/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head in the order of a block: series by key, their profiles by time.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/head.h"

/* Sorted by a number; ties keep the order of `index`. */
struct ordered {
    uint64_t major, minor;
    uint32_t index;
};

static int by_order(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor < y->minor ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int by_key(const void *a, const void *b)
{
    const struct kiln_head_series *const *x = a, *const *y = b;

    return kiln_str_cmp((*x)->key, (*y)->key);
}

/* What a head is in the order of a block. */
struct sorted {
    const struct kiln_head_series **series; /* those with profiles, by key */
    struct kiln_str *keys;
    uint32_t *rank; /* by series of the head */
    struct ordered *rows;
    uint32_t n_series;
};

static void sorted_done(struct sorted *s)
{
    kiln_free(s->series);
    kiln_free(s->keys);
    kiln_free(s->rank);
    kiln_free(s->rows);
}

static int sort_head(const struct kiln_head *head, struct sorted *s)
{
    const struct kiln_rows *rows = kiln_head_rows(head);
    const struct kiln_batch *batch = kiln_rows_batch(rows);
    uint32_t n_series = kiln_head_info(head)->n_series;
    size_t n = (size_t)n_series + 1;

    s->series = kiln_malloc(n * sizeof(*s->series));
    s->keys = kiln_malloc(n * sizeof(*s->keys));
    s->rank = kiln_malloc(n * sizeof(*s->rank));
    s->rows = kiln_malloc(((size_t)rows->n + 1) * sizeof(*s->rows));
    if (!s->series || !s->keys || !s->rank || !s->rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_series; i++) {
        if (kiln_head_series(head, i)->n_profiles)
            s->series[s->n_series++] = kiln_head_series(head, i);
    }
    qsort(s->series, s->n_series, sizeof(*s->series), by_key);
    for (uint32_t i = 0; i < s->n_series; i++) {
        s->keys[i] = s->series[i]->key;
        s->rank[s->series[i] - kiln_head_series(head, 0)] = i;
    }
    for (uint32_t i = 0; i < rows->n; i++)
        s->rows[i] = (struct ordered){s->rank[rows->rows[i].series], batch->profiles[i].time_ns, i};
    qsort(s->rows, rows->n, sizeof(*s->rows), by_order);
    return 0;
}

static int write_sorted(const struct kiln_head *head, const struct sorted *s, struct kiln_io *io,
                        const struct kiln_block_write_opts *opts, struct kiln_block_id *ret_id,
                        struct kiln_err *err)
{
    const struct kiln_rows *rows = kiln_head_rows(head);
    struct kiln_block_writer *writer;
    int r;

    r = kiln_block_create(io, opts, kiln_rows_batch(rows), s->keys, s->n_series, &writer, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < rows->n; i++) {
        struct kiln_block_profile profile = kiln_rows_profile(rows, s->rows[i].index);

        profile.series = (uint32_t)s->rows[i].major;
        kiln_block_add(writer, &profile);
    }
    r = kiln_block_commit(writer, ret_id, err);
    if (r < 0)
        kiln_block_abort(writer);
    return r;
}

int kiln_head_write(const struct kiln_head *head, struct kiln_io *io, struct kiln_str tenant,
                    size_t memory_bytes, struct kiln_block_id *ret_id, struct kiln_err *err)
{
    struct kiln_block_write_opts opts = {.tenant = tenant,
                                         .log_from = kiln_head_info(head)->log_from,
                                         .log_to = kiln_head_info(head)->log_to,
                                         .memory_bytes = memory_bytes};
    struct sorted sorted = {0};
    int r = sort_head(head, &sorted);

    if (r == 0)
        r = write_sorted(head, &sorted, io, &opts, ret_id, err);
    else
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    sorted_done(&sorted);
    return r;
}
